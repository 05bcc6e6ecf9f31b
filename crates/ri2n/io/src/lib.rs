//! RI2N over UDP sockets.
//!
//! A process has as many worker threads as processors, eight at most, and each of them one UDP socket an address family
//! for all of its connections: no thread and no descriptor is any connection's own. Packets name their connection.
//! Callers of [`Stream::write`] send in their own thread; whoever reads waits for the worker, unless the worker itself
//! carries the bytes to a descriptor ([`Stream::give`]).
//!
//! ```text
//!  caller ─ write ─▶ lock ─ ri2n::Connection ─▶ sendmsg (UDP_SEGMENT)
//!  worker ─ epoll ─▶ recvmmsg (UDP_GRO) ─ dispatch ─▶ lock ─ handle ─ duty ─▶ sendmsg ─▶ wake callers
//! ```

mod config;
mod connect;
mod descriptors;
mod dial;
mod dispatch;
mod duty;
mod entropy;
mod freeze;
pub mod handover;
mod ids;
mod interfaces;
mod keyfile;
mod links;
mod listener;
mod member;
mod netlink;
mod paths;
mod ports;
mod prefix;
mod scheduling;
mod shared;
mod status;
mod stream;
mod sys;
mod tickets;
mod timers;
mod worker;

pub use config::{Config, ConfigError, Fallback, LinkChoice, LinkPair, LocalLink, check_paths};
pub use descriptors::{Descriptors, SavedDescriptor};
pub use duty::{Duty, End, SavedDuty, Seen, Then};
pub use listener::{Listener, SavedListener};
pub use prefix::{NotAPrefix, Prefix};
pub use ri2n::{
    CloseReason, Health, Integrity, Key, KeyId, Keys, Patience, StreamState, Time, WriteError,
    handshake::{ConnectError, Privacy},
};
pub use scheduling::{raise_priority, request_short_slices};
pub use status::{ConnectionStatus, LinkStatus, Role};
pub use stream::Stream;
pub use worker::connections;
