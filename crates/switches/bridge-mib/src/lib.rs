//! The objects that describe a switch to management: every object, every table's index, every enumeration, and where
//! agents are known to differ from the standards.
//!
//! A manager and an agent say the same things from two sides, so both take their words from here: every object is a
//! constant that knows its identifier, its syntax and whether it may be written; every table has a type for its index;
//! every enumeration is one. Nothing here does I/O.
//!
//! ```text
//! dot1qPvid.7 = 2        q_bridge::PVID.row(&BridgePort(7)) = Value::Gauge32(2)
//! ```
//!
//! Sources: RFC 3418 (system), 2863 (IF-MIB), 4188 (BRIDGE-MIB), 4363 (P- and Q-BRIDGE-MIB), 3635 (EtherLike-MIB),
//! IEEE 802.1AB-2005 (LLDP-MIB), IEEE 802.1AX (IEEE8023-LAG-MIB).
#![forbid(unsafe_code)]

pub mod further;
pub mod index;
pub mod objects;
pub mod quirks;

mod enums;
mod list_form;
mod port_list;

pub use enums::{
    AcceptableFrames, Enabled, FdbStatus, IfStatus, LldpAdmin, LldpChassisSubtype, LldpPortSubtype, PauseMode,
    RowStatus, StaticStatus, StpState, Truth, UnknownCode, VlanStatus,
};
pub use index::BridgePort;
pub use list_form::{ListForm, OddLists};
pub use port_list::{PORT_LIST_OCTETS_MAX, PortList, PortListError};
