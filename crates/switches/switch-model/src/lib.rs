//! Managed switches in no vendor's language: what one is set to, how that changes, what it is asked and what it answers.
//!
//! ```text
//!   config    the state of a switch: ports, VLANs, entries           driver    what every switch can be asked
//!   change    from one state to another, phase by phase              sight     what it says of its ports at one moment
//!   edit      the writes of a change, in an order that all accept    station   whom it hears over LLDP
//!   align, unmanaged    ports beyond those of a plan                 identity  whether it is the one that is meant
//!   observe   what differs from what is wanted, what passes          mark      who deployed what on it last
//! ```
//! Everything here is pure: no socket, no clock, no file.
#![forbid(unsafe_code)]

pub mod change;
pub mod driver;
pub mod edit;
pub mod format;
pub mod identity;
pub mod mark;
pub mod observe;
pub mod printable;
pub mod sight;
pub mod station;
pub mod unmanaged;

mod align;
mod config;
mod entries;
mod slot;
mod snooping;

pub use align::{align, judge_flow_control};
pub use change::{Phase, Reach, phases};
pub use config::{LagMembership, PortConfig, PortLearning, StormLimits, SwitchConfig};
pub use entries::Entries;
pub use slot::Slot;
pub use snooping::Snooping;
