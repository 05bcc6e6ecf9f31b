//! The words of management: object identifiers, values, and rows of the tables that describe a switch.
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
//! IEEE 802.1AB-2005 (LLDP-MIB), 3411 and 3414 (engine and its reports).

pub mod engine;
pub mod further;
pub mod index;
pub mod objects;

mod enums;
mod list_form;
mod oid;
mod port_list;
mod row_index;
mod value;

pub use enums::{
    AcceptableFrames, Enabled, FdbStatus, IfStatus, LldpAdmin, LldpChassisSubtype, LldpPortSubtype, PauseMode,
    RowStatus, StaticStatus, StpState, Truth, UnknownCode, VlanStatus,
};
pub use index::BridgePort;
pub use list_form::{ListForm, OddLists};
pub use oid::{Access, Column, OID_LEN_MAX, Oid, OidError, Scalar};
pub use port_list::{PORT_LIST_OCTETS_MAX, PortList, PortListError};
pub use row_index::RowIndex;
pub use value::{Syntax, Value};
