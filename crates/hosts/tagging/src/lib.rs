//! What hosts that tag their own frames put on them: a VLAN for every destination, or several to spread over.
//!
//! ```text
//!  one text for all hosts ── Config ──┐
//!  a plan ─────────────────── plan ───┼─▶ TaggingTable
//!  a step between two plans ─ interim ┘
//! ```
//! Nothing here touches the host: the crate `tagger` attaches tables to network devices.

pub mod config;
pub mod interim;
pub mod plan;
pub mod table;

pub use config::Config;
pub use table::{Classes, Route, Spread, TaggingTable};
