//! What switches hold, in files (JSON, versioned), and what they say of their neighbours.

mod state;
mod station;
mod time;

pub use state::{Observed, StateRecord, parse_observed, write_observed};
pub use station::StationRecord;
pub use time::{parse_moment, write_moment};

use thiserror::Error;

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum FormatError {
    /// It is no JSON, or not of this shape.
    #[error("line {}, column {}: {}", .0.line(), .0.column(), .0)]
    Json(#[from] serde_json::Error),
    /// It was written by a program that knows more.
    #[error("version {found} is newer than {known}, which this program reads; use a newer one")]
    Version {
        /// What it says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// It holds something that cannot be.
    #[error("{0}")]
    Content(String),
}
