//! The packet level: every frame through every queue, by the plan's device state.
//!
//! One event a frame and hop. A port knows until when it is busy; a frame that finds it free starts at once, and the
//! event of its arrival at the other end also starts whatever has waited behind it, at the instant at which the port
//! really became free. That instant is past by no more than the cable's length, and what starts then arrives later than
//! now, so nothing is decided with hindsight. PAUSE frames take the port before any waiting frame, after the one on the
//! cable.
//!
//! ```text
//!   port busy ▕████ A ████▏████ B ████▏         A's arrival, one cable later, frees A's memory and starts B
//!                         ▕──▶ A arrives        where A ended
//! ```
//!
//! Nothing is created or lost unseen: [`Counters`] are checked against the frames that still exist at the end of
//! every run. Cost: about 60 ns an event; memory linear in ports, flows and queued frames.

mod capture;
mod config;
mod deadlock;
mod engine;
mod job;
mod outcome;
mod port;
mod switch;
mod tcp;
mod transport;

pub use capture::{CAPTURE_MAX, Captured, Carries, Direction, Seen, SeenFrame};
pub use config::{Arp, Buffers, FlowControlAt, Limit, PacketConfig, Refresh, Switching};
pub use deadlock::{Blocked, Deadlock};
pub use engine::Simulation;
pub use outcome::{Counters, FlowOutcome, Outcome, PortOutcome, Sample};
pub use tcp::RTO_MIN_PS;
