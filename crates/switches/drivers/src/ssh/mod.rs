//! Switches by their command line over SSH.
//!
//! ```text
//!   OpenSSH ─ Channel, attended ─ Screen ─ Terminal ─┬─ Cli    a vendor's command line: show, configure line by line, save
//!                                 lines   prompts    └─ Linux  a shell: iproute2's batches out, its JSON back
//!                                                           └──── Device: read, write, save, each behind a fence
//! ```
//! [`Device`] has the same seat in a deployment as a switch by SNMP, so order, drain, reading back and the way back are the
//! same. What is said is the rendered difference; what is read is the running configuration, through the dialect's reader.
//! A command line has no lock: the fence is the state itself, read again before every write, so a second writer is noticed
//! unless it writes in the same moment.

mod attended;
mod backend;
mod cli;
mod device;
mod language;
mod linux;
mod mtu;
mod range;
mod running;
mod screen;
mod shown;
mod terminal;
mod transport;

pub use device::{Device, NoLogin, connect};
pub use shown::read_shown;
pub use transport::{Arrived, Channel, Login, OldAlgorithms, OpenSsh};
