//! RI2N: one reliable stream over one to eight links, as a state machine.
//!
//! This crate is the protocol alone. It opens no socket, reads no clock and draws no random number: the time is an
//! argument, seeds are arguments, datagrams go in through `handle_*` and come out through `poll_*`. `ri2n-io` gives it
//! sockets and threads; the tests give it a simulated world.
//!
//! ```text
//!  application ── write ─▶ SendBuffer ─ schedule ─▶ Link 0 ─▶ Batch ─▶ datagrams
//!              ◀─ read ── ReceiveBuffer ◀─────────┐ Link 1 ─▶ …
//!                                                 └─ handle_datagrams ◀─ datagrams
//! ```
//!
//! # Order of calls
//! 1. [`handshake::Client`] and [`handshake::Server`] make a [`Connection`] on each side.
//! 2. Whenever something arrives, [`Connection::handle_datagrams`]; when [`Connection::poll_timeout`] is due,
//!    [`Connection::handle_timeout`]; when the application acts, [`Connection::read`], [`Connection::write`] and so on.
//! 3. After any of them, [`Connection::poll_transmit`] until it returns `false`.
//!
//! The wire format is in `docs/ri2n-protocol.md`. The idea is that of T. Okamoto et al., *RI2N/UDP: High bandwidth and
//! fault-tolerant network for a PC-cluster based on multi-link Ethernet*, IPDPS 2007, cited as \[RI2N\].
#![forbid(unsafe_code)]

mod buffer;
mod congestion;
mod connection;
pub mod handshake;
mod health;
mod key;
mod lateness;
mod link;
mod noise;
mod ranges;
mod rtt;
mod seal;
mod time;
pub mod wire;

pub use buffer::Target;
pub use connection::{
    Arrival, BUFFER_MAX, BUFFER_MIN, Batch, Carrier, CloseReason, Connection, LinkTerms, Neighbour, Neighbours, Part,
    PathKnowledge, PathReport, Patience, Precedence, ReadError, Settings, StreamState, WriteError,
};
pub use health::Health;
pub use key::{KEYS_MAX, Key, KeyId, Keys};
pub use link::{LinkId, LinkReport, Path};
pub use ranges::RangeSet;
pub use seal::{Integrity, PACKETS_A_KEY, Seal};
pub use time::Time;

/// Most links of a connection.
pub const LINKS_MAX: usize = 8;

/// Source ports by which links between the same two addresses differ ([`Path::entropy`]).
pub const ENTROPIES: u8 = 8;
