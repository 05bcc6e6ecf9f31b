//! Switches over the wire: a [`switch_model::driver::Driver`] for whatever speaks SNMP, and one for command lines over SSH.
//!
//! ```text
//!   credentials ─▶ snmp::Device ─ a Session ─▶ agent
//!               └▶ ssh::SshDevice ─ OpenSSH ─▶ command line
//! ```
#![forbid(unsafe_code)]

pub mod credentials;
pub mod snmp;
pub mod ssh;
