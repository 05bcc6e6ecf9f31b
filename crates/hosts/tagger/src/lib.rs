//! The host side: a host that tags its own frames, so that every link carries traffic and the stack sees one flat network.
//!
//! ```text
//!  one text for all hosts ─ config ─┐
//!                                   ├─▶ Table ─ layout ─▶ maps ◀─ two tc programs (bpf/tagger.bpf.c)
//!  a plan ────────────────── plan ──┘                      ▲
//!                                   Health ─ verdicts ─────┤ moves destinations whose path is dead
//!  long flows of all hosts ────── Placement ─ moves ───────┘ moves long flows off loaded links
//! ```
//!
//! [`tagging`] says what tables are and makes them. [`twin`], [`health`], [`placement`] and [`wire`] decide and touch nothing outside; [`device`] hangs
//! the programs on a network device and writes their maps; [`daemon`] sends probes and carries out verdicts.
//! What is attached stays when the process ends, and needs no file to be found again: the kernel knows which programs
//! hang on the device, and the programs hold their maps.

pub mod daemon;
pub mod device;
pub mod health;
pub mod layout;
pub mod links;
pub mod paths;
pub mod placement;
pub mod twin;
pub mod wire;

mod error;
mod placer;
mod routes;
mod tc;

pub use error::TaggerError;
pub use tagging::{Classes, Config, Route, Spread, TaggingTable, config, plan, table};
