//! What a controller does to a fabric of managed switches, as functions: connect, discover, enrol, deploy, observe, watch,
//! stand by, keep addresses.
//!
//! ```text
//!   request ─┐                                             ┌─▶ typed result
//!   Store    ├─▶ deploy · rehearse · observe · Monitor ────┤
//!   token    │   stand_by · discover · enrol_switches      └─▶ events while it happens
//!   keyring ─┘
//! ```
//! A request is typed and so is its result; the caller words it for people. A [`CancellationToken`] reaches into every
//! request to a switch. What is remembered between requests is behind the trait [`Store`]. Nothing here handles
//! signals, prints, or keeps state in the process.
#![forbid(unsafe_code)]

mod addresses;
mod connect;
pub mod count;
mod credentials;
mod deploy;
pub mod deploy_words;
mod discover;
mod enrol;
mod error;
mod goals;
mod held;
mod number;
mod observe;
mod parallel;
mod program;
mod reached;
mod rounds;
mod standby;
mod status;
pub mod status_words;
mod store;
mod token;
mod words;

pub use addresses::{
    AddressOrder, AddressStep, AddressesEvent, AddressesMode, AddressesRequest, AddressesResult, Remember,
    keep_addresses, note_edits,
};
pub use connect::{ConnectOptions, Fabric};
pub use credentials::read_keyring;
pub use deploy::{
    DeployEvent, DeployRequest, DeployResult, Events, HostTables, HostsState, HostsTold, Judged, LinkTrial, Looked,
    NotHitless, OtherJournal, Rehearsal, RehearsedStage, Route, Start, Surveyed, Trial, UNPROVEN_DEADLOCK,
    Unconfirmable, conclude, deploy, hitless, rehearse, specification,
};
pub use discover::{Asked, Discovery, FoundSwitch, FoundTopology, discover};
pub use enrol::{Cleaned, clean_switches, enrol_switches, rehearse_enrolment};
pub use error::Error;
pub use held::{Disagreement, agreement};
pub use number::fresh_number;
pub use observe::{Observation, Observations, Replaced, observe, observe_switch, write_observations};
pub use parallel::at_once;
pub use program::{ProgramFault, run_program};
pub use reached::{Commands, Connected, Reached};
pub use standby::{
    AtEnd, DesiredState, Report, StandbyEvent, StandbyRequest, StandbyResult, Tracker, counted_ports, stand_by,
};
pub use status::{Expected, LinkLoad, Monitor, StatusReport};
pub use store::{FolderStore, MemoryStore, Store};
pub use token::CancellationToken;
pub use words::{Words, moved_words, port_words};
