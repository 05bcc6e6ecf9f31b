//! Switches by SNMP, the vendor-neutral way: the manager's side.
//!
//! ```text
//!   Session (who, how often, how long) ─ walk ─▶ read: SwitchConfig, mark, fence
//!        │                                       discover: neighbours     counters
//!        └──────────── set ◀── write: edits, in the order that switches accept
//! ```

mod addresses;
mod batch;
mod device;
mod entries;
mod faults;
mod glance;
mod identify;
mod learned;
mod look;
mod memory;
mod neighbours;
mod ports;
mod pulse;
mod read;
mod save;
mod sight;
mod station;
mod vlan_tables;
mod vlans;

pub use device::{Device, Settings};
pub use glance::{Glance, PortGlance};
pub use identify::{read_description, read_identity};
pub use ports::{PortEntry, PortKind, PortTable, Reader};
pub use pulse::{PortPulse, Pulse, PulseColumns};
pub use save::{CopyStatus, Row, SaveMethod, VENDOR_SAVES, VendorSave};
pub use station::read_station;
pub use vlan_tables::{VlanMib, VlanTables};
/// Most ports that a switch may say it has.
pub const PORTS_MAX: usize = 4096;
