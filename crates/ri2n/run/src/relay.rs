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

use ri2n_io::{CloseReason, Duty, End, Seen, Stream, Then, Time};

use crate::{
    express::{Downward, Turn, Upward},
    near::Near,
    plain,
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
pub(crate) fn start<K: Send + 'static>(near: Near, far: Far, kept: K) -> io::Result<()> {
    let stream = match far {
        Far::Ri2n(stream) => stream,
        Far::Tcp(tcp) => return plain::start(near, tcp, kept),
    };
    stream.give(Box::new(Relay {
        near,
        up: Upward::default(),
        down: Downward::default(),
        is_up_through: false,
        is_down_through: false,
        is_readable: false,
        is_writable: true,
        has_ended: false,
        phase: Phase::Carrying,
        _kept: kept,
    }))
}

struct Relay<K> {
    near: Near,
    up: Upward,
    down: Downward,
    is_up_through: bool,
    is_down_through: bool,
    /// What the descriptor is ready for, as far as is known,
    is_readable: bool,
    is_writable: bool,
    /// and whether an end is behind what can be read.
    has_ended: bool,
    phase: Phase,
    _kept: K,
}

/// How far a relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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

impl<K: Send> Duty for Relay<K> {
    fn near(&self) -> BorrowedFd<'_> {
        self.near.descriptor()
    }

    fn waits_for_room(&self) -> bool {
        !self.is_writable && !self.is_down_through && self.phase == Phase::Carrying
    }

    fn run(&mut self, end: &mut End<'_>, seen: Seen) -> Then {
        self.is_readable |= seen.readable;
        self.is_writable |= seen.writable;
        self.has_ended |= seen.ended;
        let now = end.now();
        let mut then = Then::Wait;
        if self.phase == Phase::Carrying {
            then = self.carry(end);
        }
        if let Phase::LastWords(until) = self.phase {
            self.carry_up(end);
            if !end.is_flushed() && end.closed().is_none() && now < until {
                return Then::At(until);
            }
            end.reset();
            self.near.close();
            self.phase = Phase::time_wait(now);
        }
        if let Phase::Lingering(until) = self.phase {
            if !end.is_flushed() && end.closed().is_none() && now < until {
                return Then::At(until);
            }
            self.phase = Phase::time_wait(now);
        }
        match self.phase {
            Phase::TimeWait(until) if now < until => Then::At(until),
            Phase::TimeWait(_) => Then::Done,
            _ => then,
        }
    }
}

impl<K> Relay<K> {
    fn carry(&mut self, end: &mut End<'_>) -> Then {
        let more_up = self.carry_up(end);
        let more_down = self.carry_down(end);
        let now = end.now();
        if self.phase != Phase::Carrying {
            return Then::Again;
        }
        if let Some(reason) = end.closed() {
            // What arrived before is the program's, if it takes it.
            if self.is_down_through || end.peek().0.is_empty() || reason == CloseReason::Aborted {
                self.near.fail(reason);
                self.phase = Phase::time_wait(now);
            }
        } else if self.is_up_through && self.is_down_through {
            self.near.hang_up();
            self.phase = Phase::Lingering(now + LINGER_MAX);
        }
        match self.up.next_tick(now, self.near.express()) {
            _ if more_up || more_down => Then::Again,
            Some(tick) => Then::At(tick),
            None => Then::Wait,
        }
    }

    /// Takes what the program has written. Returns whether there may be more.
    fn carry_up(&mut self, end: &mut End<'_>) -> bool {
        let mut carried = 0;
        while !self.is_up_through && end.closed().is_none() {
            // A ring may hold bytes of which the descriptor tells nothing.
            if !self.is_readable && !self.near.has_ring() {
                return false;
            }
            match self.up.take(end, self.near.descriptor(), self.near.express()) {
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
                    self.is_up_through = true;
                    if self.near.resets_when_closed() { end.reset() } else { end.finish() }
                }
                Err(_) => {
                    // The program closed with data unread.
                    self.is_up_through = true;
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
        while !self.is_down_through && self.is_writable {
            match self.down.give(end, self.near.descriptor(), self.near.express()) {
                Ok(Turn::Bytes(count) | Turn::Last(count)) => carried += count,
                Ok(Turn::Nothing) => {
                    self.is_writable = end.peek().0.is_empty();
                    return false;
                }
                Ok(Turn::End) => {
                    self.is_down_through = true;
                    if !self.is_up_through {
                        self.near.finish();
                    }
                }
                Err(_) => {
                    self.is_down_through = true;
                    self.phase = Phase::LastWords(end.now() + LAST_WORDS);
                }
            }
            if carried >= TURN_BYTES {
                return true;
            }
        }
        false
    }
}
