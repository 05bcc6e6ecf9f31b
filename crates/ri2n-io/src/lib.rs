//! RI2N over UDP sockets.
//!
//! The protocol runs to completion in the thread that calls [`Stream::read`] or [`Stream::write`]: it receives, decides
//! and sends there, since handing a packet to another thread costs more than everything else that is done with it. One
//! helper thread a process looks after connections whose callers are elsewhere: timers, packets, handshakes, carriers.
//!
//! ```text
//!  caller ─ read/write ─▶ lock ─ ri2n::Connection ─▶ sendmsg (UDP_SEGMENT)
//!     └─ nothing yet ───▶ recvmmsg (UDP_GRO), blocking ─▶ lock ─ handle ─┘
//!  helper ─ epoll, timers ─▶ the same, for whoever is not calling
//! ```
//!
//! A connection has a UDP socket, and so a port, of its own at both ends: the kernel tells connections apart.

mod config;
mod connect;
mod handshake;
mod helper;
mod interfaces;
mod listener;
mod netlink;
mod shared;
mod status;
mod stream;
mod sys;

pub use config::{Config, ConfigError, Fallback, LinkChoice, LinkPair};
pub use listener::Listener;
pub use ri2n::{Health, Integrity, Key, Patience, StreamState, handshake::ConnectError};
pub use status::{ConnectionStatus, LinkStatus, Role, connections};
pub use stream::Stream;
pub use sys::prefer_short_turns;
