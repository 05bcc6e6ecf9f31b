//! Bytes that a program writes: through the ring or the pair, in one order.

use std::{
    io,
    sync::atomic::{
        AtomicU8, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    datagram::MESSAGE_MAX,
    place::{Claim, Place, TRIES_MAX},
    would_block::is_nothing,
};

/// Bytes that may wait for the broker's next look.
const RING_BYTES: usize = 16 << 10;

/// From the program to the broker.
#[repr(C)]
pub struct Up {
    /// Where the next byte of the ring lies in the stream. Whether the broker looks into the ring at every tick.
    place: Place,
    /// Of the ring's first byte, likewise.
    tail: AtomicU64,
    /// Who puts bytes into the ring.
    writer: Claim,
    ring: [AtomicU8; RING_BYTES],
}

/// Where a message went, and its offset in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Into the ring: the broker finds it at its next tick.
    Ring(u64),
    /// Into the pair, which wakes the broker.
    Pair(u64),
    /// Into the pair, but others wrote at the same time, or the broker read: nobody knows its offset.
    Somewhere,
    /// Nowhere: the program's own call must do.
    No,
}

/// What became of a write to the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// All is there, and nothing else.
    Alone,
    /// All is there, and so is what somebody else wrote meanwhile.
    AmongOthers,
    /// Nothing of it is there.
    Nothing,
}

impl Up {
    /// Program: takes a message of at most [`MESSAGE_MAX`] bytes, if it can be told where in the stream it lies. It goes to
    /// the ring if `may_wait` and the broker looks there, otherwise to the pair at once.
    ///
    /// `is_pair_empty` says whether the broker has read all that was written; `write_pair` writes all or nothing. Other
    /// threads and processes may write to the pair at any time. What they write after the look comes after the ring, but
    /// before or after what goes to the pair.
    pub fn say(
        &self,
        bytes: &[u8],
        may_wait: impl FnOnce() -> bool,
        is_pair_empty: impl FnOnce() -> bool,
        write_pair: impl FnOnce() -> Wrote,
    ) -> Sent {
        let Some(_claimed) = self.writer.take() else { return Sent::No };
        let then = self.place.look();
        if !then.is_free() || !is_pair_empty() {
            return Sent::No;
        }
        let offset = then.position();
        let waiting = offset.saturating_sub(self.tail.load(Acquire)) as usize;
        if then.is_watched() && waiting.saturating_add(bytes.len()) <= RING_BYTES && may_wait() {
            for (k, byte) in bytes.iter().enumerate() {
                self.cell(offset, k).store(*byte, Relaxed);
            }
            return if self.place.advance(then, bytes.len()) { Sent::Ring(offset) } else { Sent::No };
        }
        match write_pair() {
            Wrote::Nothing => Sent::No,
            // The broker has read nothing meanwhile: what is there is all that was written.
            Wrote::Alone if self.place.look() == then => Sent::Pair(offset),
            Wrote::Alone | Wrote::AmongOthers => Sent::Somewhere,
        }
    }

    /// Broker: `piped` bytes were read from the pair so far; from now on [`Self::collect`] reads it.
    pub fn begin(&self, piped: u64) {
        self.tail.store(piped, Release);
        self.place.open(piped);
    }

    /// Broker: takes out the ring or, if nothing is there, what `read_pair` gives without waiting. Returns the bytes, and
    /// whether there may be more: not after the end of the pair.
    ///
    /// # Errors
    /// Those of `read_pair`, but for having nothing.
    ///
    /// # Panics
    /// If `into` is shorter than the ring.
    pub fn collect(
        &self,
        into: &mut [u8],
        read_pair: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<(usize, bool)> {
        assert!(into.len() >= RING_BYTES, "the ring must fit");
        let turn = (0..TRIES_MAX).find_map(|_| {
            let then = self.place.look();
            let tail = self.tail.load(Relaxed);
            // The pair has its turn when the ring is empty, with its error if there is one: what was written before it is not
            // lost.
            if then.position() == tail {
                self.place.take_turn(then).map(Ok)
            } else {
                Some(Err((tail, then.position())))
            }
        });
        let mut turn = match turn {
            None => return Ok((0, true)),
            Some(Err((tail, head))) => {
                // A program that scribbles over its memory harms its own stream alone.
                let count = (head.wrapping_sub(tail) as usize).min(RING_BYTES);
                for (k, byte) in into[..count].iter_mut().enumerate() {
                    *byte = self.cell(tail, k).load(Relaxed);
                }
                self.tail.store(head, Release);
                return Ok((count, true));
            }
            Some(Ok(turn)) => turn,
        };
        match read_pair(into) {
            Ok(0) => {
                self.place.close();
                Ok((0, false))
            }
            Ok(count) => {
                turn.position = turn.position.wrapping_add(count as u64);
                turn.is_watched = count <= MESSAGE_MAX;
                self.tail.store(turn.position, Release);
                Ok((count, true))
            }
            Err(error) if is_nothing(&error) => Ok((0, true)),
            Err(error) => {
                self.place.close();
                Err(error)
            }
        }
    }

    /// Broker: whether it must look into the ring at the next tick.
    pub fn is_watched(&self) -> bool {
        self.place.look().is_watched()
    }

    /// Broker: stops looking into the ring, if nothing is there. Returns whether it may.
    pub fn rest(&self) -> bool {
        let then = self.place.look();
        then.position() == self.tail.load(Relaxed) && self.place.rest(then)
    }

    /// Broker: nothing is taken any more.
    pub fn close(&self) {
        self.place.close();
    }

    /// Where a byte of the ring is, `k` after an offset of the stream.
    fn cell(&self, offset: u64, k: usize) -> &AtomicU8 {
        &self.ring[(offset as usize).wrapping_add(k) % RING_BYTES]
    }
}
