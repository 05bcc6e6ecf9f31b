//! What is kept in files: states of switches as they were observed, journals of deployments, ledgers of probes. JSON,
//! versioned.

mod credentials;
mod journal;
mod ledger;
mod saved;
mod state;
mod switchd;
mod time;

pub use credentials::{Access, Keyring, parse_keyring};
pub use journal::{parse_journal, write_journal};
pub use ledger::{KeptLedger, parse_ledger, write_ledger};
pub use saved::{parse_saved, write_saved};
pub use state::{Observed, parse_observed, write_observed};
pub use switchd::{SwitchdConfig, SwitchdTarget, SwitchdUser, parse_switchd};
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
