//! What a switch is found to hold and to carry, against what it should.
//!
//! ```text
//!   SwitchConfig found ─┐                       Snapshot ─ a while ─ Snapshot
//!   SwitchConfig wanted ┴─ drift ─▶ [Drift]           └──── flow ────┘─▶ [Flow]
//! ```

mod counters;
mod drift;

pub use counters::{Count, Flow, PortCounts, Snapshot, flow};
pub use drift::{Drift, drift};
