//! A managed switch: an SNMP agent before whatever forwards frames, spanning tree, LLDP, and LACP.
//!
//! ```text
//!   manager ─ SNMP ─▶ agent ─ DataPlane ─▶ a kernel's bridge, or a model
//!   neighbours ─ BPDUs ─▶ stp      ─ LLDP frames ─▶ lldp      ─ LACPDUs ─▶ lacp
//! ```
//! [`bridge`] serves a Linux bridge. [`agent`] but for its UDP server, [`stp`], [`lldp`] and [`lacp`] have no socket and no clock: time comes in with each call.
#![forbid(unsafe_code)]

pub mod agent;
pub mod bridge;
pub mod lacp;
pub mod lldp;
pub mod saved;
pub mod settings;
pub mod stp;
