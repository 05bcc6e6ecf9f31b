//! InfiniBand out of a plan: linear forwarding tables for OpenSM, and a fabric for its simulator.
//!
//! A linear forwarding table says, for every destination, through which port a switch sends on: one tree a destination,
//! which is what `--tagging destination` plans. InfiniBand never drops a packet, so a plan must be proven free of deadlock;
//! on one lane, since OpenSM's `file` engine places nothing on others.
//!
//! ```text
//! Plan ─ forwarding_tables ─▶ ForwardingTables ─ write_opensm ─▶ opensm -R file,no_fallback -U FILE
//! Topology ─ write_ibsim ─▶ ibsim -s FILE
//! ```
#![forbid(unsafe_code)]

mod ibsim;
mod opensm;
mod tables;

pub use ibsim::write_ibsim;
pub use opensm::write_opensm;
pub use tables::{Destination, ForwardingTables, TablesError, forwarding_tables};
