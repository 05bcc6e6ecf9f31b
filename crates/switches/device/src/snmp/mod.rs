//! Switches by SNMP, the vendor-neutral way: the manager's side.
//!
//! ```text
//!   Session (who, how often, how long) ─ walk ─▶ read: SwitchConfig, mark, fence
//!        │                                       discover: neighbours     counters
//!        └──────────── set ◀── write: edits, in the order that switches accept
//! ```
//! A session speaks to one device over any [`Link`]; a program runs one for each, in threads of its own.

mod ahead;
mod device;
mod entries;
mod glance;
mod identify;
mod learned;
mod link;
mod look;
mod neighbours;
mod ports;
mod pulse;
mod read;
mod round_trip;
mod save;
mod session;
mod sight;
mod station;
mod vlan_tables;
mod vlans;
mod walk;

pub use device::{Device, Settings};
pub use glance::{Glance, PortGlance};
pub use identify::{read_description, read_identity};
pub use link::{Link, UdpLink};
pub use ports::PortKind;
pub(crate) use ports::{PortTable, Reader};
pub use pulse::{PortPulse, Pulse, PulseColumns};
pub use save::{Progress, Row, SaveMethod, VENDOR_SAVES, VendorSave};
pub use session::{Credentials, Patience, Session, SessionError};
pub use station::read_station;
pub(crate) use vlan_tables::VlanMib;
/// Most ports that a switch may say it has.
pub const PORTS_MAX: usize = 4096;

pub use walk::{BulkSize, OCTETS_MAX, ROWS_MAX, TIME_MAX, walk};
