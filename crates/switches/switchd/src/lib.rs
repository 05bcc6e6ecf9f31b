//! A managed switch: an SNMP agent before whatever forwards frames, spanning tree, and LLDP.
//!
//! ```text
//!   manager ─ SNMP ─▶ agent ─ DataPlane ─▶ a kernel's bridge, or a model
//!   neighbours ─ BPDUs ─▶ stp      ─ LLDP frames ─▶ lldp
//! ```
//! [`bridge`] serves a Linux bridge. [`agent`] but for its UDP server, [`stp`] and [`lldp`] have no socket and no clock: time comes in with each call.
#![forbid(unsafe_code)]

pub mod agent;
pub mod bridge;
pub mod lldp;
pub mod saved;
pub mod settings;
pub mod stp;
