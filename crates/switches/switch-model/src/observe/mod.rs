//! What a switch is found to hold and to carry, against what it should.
//!
//! ```text
//!   SwitchConfig found ─┐                       Snapshot ─ a while ─ Snapshot
//!   SwitchConfig wanted ┴─ drift ─▶ [Drift]           └──── flow ────┘─▶ [Flow]
//!   MTUs found, DeviceIntent ─ small_mtus ─▶ [SmallMtu]
//! ```

mod counters;
mod drift;
mod mtu;

pub use counters::{Arrivals, Count, Flow, PortCounts, Received, Snapshot, flow, has_restarted};
pub use drift::{Drift, drift};
pub use mtu::{SMALL_MTU_WAY_OUT, SmallMtu, small_mtus};
