//! Carries bytes between a program's end and a stream until both directions are through.
//!
//! ```text
//!  program ══ near (socket pair, or TCP on this machine) ══ relay ══ stream of RI2N ══ peer
//!             end of file ───────────────────────────────────▶ half close
//!             half close  ◀─────────────────────────────────── end of stream
//!             broken pipe: what was written is delivered, then the peer is reset, as TCP does
//! ```
//!
//! A relay is a duty of the stream's worker: it has no thread and no buffer. What the program writes is read into the stream's own
//! memory, and what the program reads is written from there.

use std::{io, net::TcpStream, os::fd::BorrowedFd, time::Duration};

use ri2n_io::{CloseReason, Descriptors, Duty, End, SavedDuty, Seen, Stream, Then, Time};
use serde::{Deserialize, Serialize};

use crate::{
    express::{Downward, Turn, Upward},
    near::Near,
    plain,
    saved::{Kept, SavedProgram},
};

/// Bytes carried in each direction before other streams have their turn.
const TURN_BYTES: usize = 256 << 10;
/// How long the end of a stream may take to be acknowledged.
const LINGER_MAX: Duration = Duration::from_secs(60);
/// How long a stream that has ended at both sides is kept to acknowledge the peer's end again, should that get lost: at least. Those
/// that are over by then end together every [`TIME_WAIT_STEP`], in one turn of the worker.
const TIME_WAIT: Duration = Duration::from_millis(500);
const TIME_WAIT_STEP: Duration = Duration::from_millis(50);
/// How long data of a program that has closed may take to reach the peer before the peer is reset.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The end toward the peer.
pub(crate) enum Far {
    /// RI2N.
    Ri2n(Stream),
    /// Plain TCP, to a peer without RI2N.
    Tcp(TcpStream),
}

/// Starts a relay; `kept` lives until the last byte has arrived.
///
/// # Errors
/// If the descriptor cannot be watched, or no thread can be had for plain TCP.
pub(crate) fn start<K: Kept>(near: Near, far: Far, kept: K) -> io::Result<()> {
    let stream = match far {
        Far::Ri2n(stream) => stream,
        Far::Tcp(tcp) => return plain::start(near, tcp, kept),
    };
    resume(near, stream, Progress::default(), kept)
}

/// Goes on with a relay of the earlier program of this process.
///
/// # Errors
/// If the descriptor cannot be watched.
pub(crate) fn resume<K: Kept>(near: Near, stream: Stream, progress: Progress, kept: K) -> io::Result<()> {
    // Whatever the descriptor is ready for besides is told when it begins to be watched.
    let (is_readable, is_writable, has_ended) = (false, true, false);
    stream.give(Box::new(Relay { near, progress, is_readable, is_writable, has_ended, kept }))
}

struct Relay<K> {
    near: Near,
    progress: Progress,
    /// What the descriptor is ready for, as far as is known,
    is_readable: bool,
    is_writable: bool,
    /// and whether an end is behind what can be read.
    has_ended: bool,
    kept: K,
}

/// How far a relay is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    up: Upward,
    down: Downward,
    is_up_through: bool,
    is_down_through: bool,
    phase: Phase,
}

/// A relay, written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedRelay {
    pub(crate) program: SavedProgram,
    pub(crate) progress: Progress,
}

/// What a relay does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    #[default]
    Carrying,
    /// The program has closed without reading to the end: the peer is reset once it has what was written.
    LastWords(Time),
    /// Both directions are through: everything, the end included, is to arrive, since the broker must not end before.
    Lingering(Time),
    /// A straggler may be answered.
    TimeWait(Time),
}

impl Phase {
    fn time_wait(now: Time) -> Self {
        Self::TimeWait((now + TIME_WAIT).rounded_up(TIME_WAIT_STEP))
    }
}

impl<K: Kept> Duty for Relay<K> {
    fn near(&self) -> BorrowedFd<'_> {
        self.near.descriptor()
    }

    fn waits_for_room(&self) -> bool {
        !self.is_writable && !self.progress.is_down_through && self.progress.phase == Phase::Carrying
    }

    fn run(&mut self, end: &mut End<'_>, seen: Seen) -> Then {
        self.is_readable |= seen.readable;
        self.is_writable |= seen.writable;
        self.has_ended |= seen.ended;
        let now = end.now();
        let mut then = Then::Wait;
        if self.progress.phase == Phase::Carrying {
            then = self.carry(end);
        }
        if let Phase::LastWords(until) = self.progress.phase {
            self.carry_up(end);
            if !end.is_flushed() && end.closed().is_none() && now < until {
                return Then::At(until);
            }
            end.reset();
            self.near.close();
            self.progress.phase = Phase::time_wait(now);
        }
        if let Phase::Lingering(until) = self.progress.phase {
            if !end.is_flushed() && end.closed().is_none() && now < until {
                return Then::At(until);
            }
            self.progress.phase = Phase::time_wait(now);
        }
        match self.progress.phase {
            Phase::TimeWait(until) if now < until => Then::At(until),
            Phase::TimeWait(_) => Then::Done,
            _ => then,
        }
    }

    fn save(&self, descriptors: &mut Descriptors) -> SavedDuty {
        if matches!(self.progress.phase, Phase::Lingering(_) | Phase::TimeWait(_)) {
            return SavedDuty::Over;
        }
        let program = self.near.save(&self.kept, descriptors);
        let saved = program.map(|program| SavedRelay { program, progress: self.progress.clone() });
        let bytes = saved.and_then(|saved| rmp_serde::to_vec_named(&saved).ok());
        bytes.map_or(SavedDuty::Impossible, SavedDuty::Bytes)
    }
}

impl<K> Relay<K> {
    fn carry(&mut self, end: &mut End<'_>) -> Then {
        let more_up = self.carry_up(end);
        let more_down = self.carry_down(end);
        let now = end.now();
        if self.progress.phase != Phase::Carrying {
            return Then::Again;
        }
        if let Some(reason) = end.closed() {
            // What arrived before is the program's, if it takes it.
            if self.progress.is_down_through || end.peek().0.is_empty() || reason == CloseReason::Aborted {
                self.near.fail(reason);
                self.progress.phase = Phase::time_wait(now);
            }
        } else if self.progress.is_up_through && self.progress.is_down_through {
            self.near.hang_up();
            self.progress.phase = Phase::Lingering(now + LINGER_MAX);
        }
        match self.progress.up.next_tick(now, self.near.express()) {
            _ if more_up || more_down => Then::Again,
            Some(tick) => Then::At(tick),
            None => Then::Wait,
        }
    }

    /// Takes what the program has written. Returns whether there may be more.
    fn carry_up(&mut self, end: &mut End<'_>) -> bool {
        let mut carried = 0;
        while !self.progress.is_up_through && end.closed().is_none() {
            // A ring may hold bytes of which the descriptor tells nothing.
            if !self.is_readable && !self.near.has_ring() {
                return false;
            }
            match self.progress.up.take(end, self.near.descriptor(), self.near.express()) {
                Ok(Turn::Bytes(count)) => carried += count,
                Ok(Turn::Last(_)) if !self.has_ended => {
                    self.is_readable = false;
                    return false;
                }
                Ok(Turn::Last(count)) => carried += count,
                Ok(Turn::Nothing) => {
                    // No room is no reason to forget that something can be read.
                    self.is_readable &= end.room() < crate::express::BUFFER_BYTES;
                    return false;
                }
                Ok(Turn::End) => {
                    self.progress.is_up_through = true;
                    if self.near.resets_when_closed() { end.reset() } else { end.finish() }
                }
                Err(_) => {
                    // The program closed with data unread.
                    self.progress.is_up_through = true;
                    end.reset();
                }
            }
            if carried >= TURN_BYTES {
                return true;
            }
        }
        false
    }

    /// Gives the program what arrived. Returns whether there may be more.
    fn carry_down(&mut self, end: &mut End<'_>) -> bool {
        let mut carried = 0;
        while !self.progress.is_down_through && self.is_writable {
            match self.progress.down.give(end, self.near.descriptor(), self.near.express()) {
                Ok(Turn::Bytes(count) | Turn::Last(count)) => carried += count,
                Ok(Turn::Nothing) => {
                    self.is_writable = end.peek().0.is_empty();
                    return false;
                }
                Ok(Turn::End) => {
                    self.progress.is_down_through = true;
                    if !self.progress.is_up_through {
                        self.near.finish();
                    }
                }
                Err(_) => {
                    self.progress.is_down_through = true;
                    self.progress.phase = Phase::LastWords(end.now() + LAST_WORDS);
                }
            }
            if carried >= TURN_BYTES {
                return true;
            }
        }
        false
    }
}
