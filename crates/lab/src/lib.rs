//! A plan's fabric on one machine: network namespaces for switches and hosts, shaped cables, real IP stacks.
//!
//! [`Lab::up`] carries a [`fabric::Plan`] out without choosing anything: every switch does exactly what its intent says,
//! by the kernel's VLAN-aware bridge or by a tc program ([`Backend`]). Any program runs on the hosts; [`mod@measure`]
//! drives traffic of its own through them and predicts how long it should take, and [`delivery`] checks who receives what.
//!
//! A lab outlives the process that built it: its state is in `/run/espalier/lab/NAME`, its namespaces are
//! `esp-NAME-SWITCH` and `esp-NAME-HOST`, and [`down`] removes all of it by name, finished or not.

pub mod delivery;
mod ebpf;
pub mod lag;
pub mod layout;
pub mod managed;
pub mod measure;
pub mod name;
pub mod rootless;
pub mod table;
pub mod twin;

mod backend;
mod backlog;
mod bond;
mod bridge;
mod build;
mod cable;
mod counters;
mod directory;
mod error;
#[cfg(test)]
mod flow;
mod host_lag;
mod loss;
mod management;
mod options;
mod plug;
mod priority;
mod probe;
mod ready;
mod shaper;
mod signal;
mod speaker;
mod state;
mod status;
mod tool;

pub use backend::Backend;
pub use build::{Progress, Step};
pub use counters::{DropCounts, Traffic};
pub use directory::list;
pub use error::{LabError, NoProgram};
pub use layout::FailMode;
pub use linux_net::netns;
pub use options::{LabOptions, Managed, Offload, Start, TRAIN_FRAMES};
pub use plug::Plugged;
pub use state::{Lab, down};
pub use status::{Carrier, PortStatus, Status, SwitchStatus};
pub use tagger;
