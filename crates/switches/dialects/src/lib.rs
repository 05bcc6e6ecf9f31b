//! What a plan asks of switches, said in each vendor's language, and what such a text says, understood.
//!
//! ```text
//!   Plan ─▶ DeviceIntent ─▶ SwitchConfig ─ render ─▶ text ─▶ a switch
//!                               ▲                     │
//!                               └────── read_back ────┘     (then the judge)
//! ```
//! [`render()`] writes full configurations and differences; [`read_back`] reads them as the switch would, defaults and all,
//! so that the judge can look at the text instead of the intention. Nothing here talks to a device, reads a clock or
//! chooses anything: the same plan gives the same bytes.
#![forbid(unsafe_code)]

pub mod names;
pub mod text;

mod ansible;
mod console;
mod dialect;
mod error;
mod manifest;
mod read;
mod render;

pub use ansible::{Deployment, write_ansible};
pub use dialect::{Folder, Target, TextFile, foreign, sieve::ForeignLines};
pub use error::{ParseError, RenderError};
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError, Part};
pub use names::{canonical_port, near_ports, same_port};
pub use read::{read_among_others, read_back, refuse_snooping};
pub use render::{Difference, Memory, RenderRequest, TargetChoice, render, write_change, write_full, write_transition};
