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
pub mod layout;
pub mod managed;
pub mod measure;
pub mod name;
pub mod netns;
pub mod rootless;
pub mod switchd;
pub mod table;
pub mod twin;

mod backend;
mod backlog;
mod bridge;
mod build;
mod cable;
mod error;
mod ethtool;
mod link;
mod loss;
mod plug;
mod ready;
mod signal;
mod state;
mod status;
mod tool;

pub use backend::Backend;
pub use build::{LabOptions, Managed, Offload, Progress, Start, Step, TRAIN_FRAMES};
pub use cable::FailMode;
pub use error::{LabError, NoProgram};
pub use plug::Plugged;
pub use state::{Lab, down, list};
pub use status::{Carrier, DropCounts, PortStatus, Status, SwitchStatus, Traffic};
pub use tagger;
