//! Early copies: small messages straight from program to program.
//!
//! An unmodified program speaks to its broker through a socket pair, and the brokers speak RI2N: every message crosses two
//! more processes than in TCP. So, while two programs converse in small messages, each message also goes as a *copy*, a bare
//! UDP datagram from the program that sends to the program that waits. A copy is never needed: the stream carries
//! every byte as ever, only later, and whatever has arrived by a copy is left out when the stream brings it.
//!
//! ```text
//!  program ─┬─ ring in shared memory ─▶ broker ══ RI2N, every 2 ms ══▶ broker ─ what is new ─▶ socket pair ─▶ program
//!           └─ copy: token, stream offset, bytes ───────────── UDP ───────────────────────────────────────────▶ │
//! ```
//!
//! A copy that is lost, doubled, late or out of order therefore does no harm: its offset is not the next one, and it is
//! dropped. What must hold is order at both ends, which the [`Block`] of shared memory keeps:
//!
//! - Bytes in the ring come before bytes in the socket pair that were written later, and the other way round: a program may
//!   use the ring only when its broker has read the pair empty, and the broker reads the pair only with the ring drained.
//! - A byte is delivered once: by a copy, which moves the position on, or by the broker, who leaves out what lies before it.
//!
//! Both are kept without a lock: programs move on in one step, which fails if anything has moved since they looked, and
//! brokers move in turns that hold such steps off (`place.rs`), but for a program that has read all that the turn was for. So nobody waits for a program that is killed, stopped, or
//! leaves a signal's handler by `longjmp`, and a broker that dies ends the copies. Calls that this crate knows nothing
//! of (`sendfile`, other processes, raw system calls) go through the pair, and are in order by the same rules.

mod block;
mod datagram;
mod down;
mod map;
mod pair;
mod place;
mod talk;
mod up;
mod would_block;

pub use block::Block;
pub use datagram::{Copy, DATAGRAM_MAX, MESSAGE_MAX, encode};
pub use down::{Delivery, Down, Seen, Sink};
pub use map::Map;
pub use pair::Pair;
pub use talk::Talk;
pub use up::{Sent, Up, Wrote};

use std::time::Duration;

/// How often a broker looks into the ring while programs converse; a message whose copy is lost is that much later.
pub const TICK: Duration = Duration::from_millis(2);
/// How long after the peer's last copy a message may be left to the next tick: the peer is believed to wait for it.
pub const HEARD_FOR: Duration = Duration::from_millis(5);
