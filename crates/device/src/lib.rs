//! Real switches.
#![forbid(unsafe_code)]
mod config;
pub mod deploy;
pub use config::{PortConfig, Slot, SpanningTree, SwitchConfig};
