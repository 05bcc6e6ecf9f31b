//! Real switches: what they say and understand.
#![forbid(unsafe_code)]

pub mod agent;
pub mod lldp;
pub mod mib;
pub mod stp;
pub mod wire;
