//! What the two ends of a socket pair share, and the order that it keeps; see the crate's own words.

use std::{
    io,
    sync::atomic::{
        AtomicU8, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    datagram::{Copy, MESSAGE_MAX},
    lock::{Guard, Lock, Refused},
    talk::Talk,
};

/// Bytes that may wait for the broker's next look.
const RING_BYTES: usize = 16 << 10;
const VERSION: u32 = 1;

/// Neither side counts bytes yet.
const NOT_YET: u32 = 0;
const OPEN: u32 = 1;
/// The program's end of the pair is no more for this.
const CLOSED: u32 = 2;

/// The shared memory of one end of a connection. All zeros but for its locks when it is new.
#[repr(C)]
pub struct Block {
    version: AtomicU32,
    token_in: AtomicU64,
    token_out: AtomicU64,
    /// From the program to the broker.
    pub up: Up,
    /// From the broker to the program.
    pub down: Down,
    /// What programs know of the conversation.
    pub talk: Talk,
}

/// Bytes that a program writes.
#[repr(C)]
pub struct Up {
    lock: Lock,
    phase: AtomicU32,
    /// Whether the broker looks into the ring at every tick.
    is_watched: AtomicU32,
    /// Bytes that the broker has read from the pair.
    piped: AtomicU64,
    /// Bytes ever put into the ring, and taken out.
    head: AtomicU64,
    tail: AtomicU64,
    ring: [AtomicU8; RING_BYTES],
}

/// Bytes that a program reads.
#[repr(C)]
pub struct Down {
    lock: Lock,
    phase: AtomicU32,
    /// Bytes that the program has got, or can get from the pair.
    position: AtomicU64,
    /// Calls in which the broker wrote to the pair.
    writes: AtomicU64,
    /// True bytes of the stream from an offset on, which the program has not got yet.
    kept_at: AtomicU64,
    kept_length: AtomicU32,
    kept: [AtomicU8; MESSAGE_MAX],
}

/// Where a message went, and its offset in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Into the ring: the broker finds it at its next tick.
    Ring(u64),
    /// Into the pair, which wakes the broker.
    Pair(u64),
    /// Into the pair, but others wrote at the same time: nobody knows its offset.
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

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// So many bytes are in the reader's buffer.
    Bytes(usize),
    /// The copy is not the next one.
    No,
}

impl Block {
    pub(crate) fn set_up(&self, token_in: u64, token_out: u64) {
        self.up.lock.set_up();
        self.down.lock.set_up();
        self.token_in.store(token_in, Relaxed);
        self.token_out.store(token_out, Relaxed);
        self.version.store(VERSION, Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.version.load(Relaxed) == VERSION
    }

    /// What datagrams to this end begin with.
    #[must_use]
    pub fn token_in(&self) -> u64 {
        self.token_in.load(Relaxed)
    }

    /// What datagrams to the peer begin with.
    #[must_use]
    pub fn token_out(&self) -> u64 {
        self.token_out.load(Relaxed)
    }
}

impl Up {
    /// Program: takes a message of at most [`MESSAGE_MAX`] bytes, if it can be told where in the stream it lies. It goes to
    /// the ring if `may_wait` and the broker looks there, otherwise to the pair at once.
    ///
    /// `is_pair_empty` says whether the broker has read all that was written; `write_pair` writes all or nothing. Other
    /// threads and processes may write to the pair at any time, without this lock. What they write after the look comes after
    /// the ring, but before or after what goes to the pair.
    pub fn say(
        &self,
        bytes: &[u8],
        may_wait: impl FnOnce() -> bool,
        is_pair_empty: impl FnOnce() -> bool,
        write_pair: impl FnOnce() -> Wrote,
    ) -> Said {
        if self.phase.load(Relaxed) != OPEN {
            return Said::No;
        }
        let Ok(_guard) = self.lock.try_lock() else { return Said::No };
        if self.phase.load(Relaxed) != OPEN || !is_pair_empty() {
            return Said::No;
        }
        let head = self.head.load(Relaxed);
        let offset = self.piped.load(Relaxed) + head;
        let free = RING_BYTES - (head - self.tail.load(Relaxed)) as usize;
        if self.is_watched.load(Relaxed) != 0 && bytes.len() <= free && may_wait() {
            for (k, byte) in bytes.iter().enumerate() {
                self.ring[(head as usize + k) % RING_BYTES].store(*byte, Relaxed);
            }
            self.head.store(head + bytes.len() as u64, Relaxed);
            return Said::Ring(offset);
        }
        match write_pair() {
            Wrote::Alone => Said::Pair(offset),
            Wrote::AmongOthers => Said::Somewhere,
            Wrote::Nothing => Said::No,
        }
    }

    /// Broker: `piped` bytes were read from the pair so far; from now on [`Self::collect`] reads it. Returns whether the
    /// lock could be had.
    pub fn begin(&self, piped: u64) -> bool {
        let Ok(_guard) = self.lock.lock() else { return false };
        if self.phase.load(Relaxed) == NOT_YET {
            self.piped.store(piped, Relaxed);
            self.phase.store(OPEN, Relaxed);
        }
        true
    }

    /// Broker: takes out the ring or, if nothing is there, what `read_pair` gives without waiting. Returns the bytes, and
    /// whether there may be more: not after the end of the pair.
    ///
    /// # Errors
    /// Those of `read_pair`, but for having nothing; a lock that is broken.
    ///
    /// # Panics
    /// If `into` is shorter than the ring.
    pub fn collect(
        &self,
        into: &mut [u8],
        read_pair: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<(usize, bool)> {
        assert!(into.len() >= RING_BYTES, "the ring must fit");
        let Some(_guard) = taken(self.lock.lock())? else { return Ok((0, true)) };
        let (head, tail) = (self.head.load(Relaxed), self.tail.load(Relaxed));
        // A program that scribbles over its memory harms its own stream alone.
        let ringed = (head.wrapping_sub(tail) as usize).min(RING_BYTES);
        if ringed > 0 {
            for (k, byte) in into[..ringed].iter_mut().enumerate() {
                *byte = self.ring[(tail as usize).wrapping_add(k) % RING_BYTES].load(Relaxed);
            }
            self.tail.store(head, Relaxed);
            // The pair has its turn next, with its error if there is one: what was written before it is not lost.
            return Ok((ringed, true));
        }
        match read_pair(into) {
            Ok(0) => {
                self.phase.store(CLOSED, Relaxed);
                Ok((0, false))
            }
            Ok(count) => {
                self.piped.store(self.piped.load(Relaxed) + count as u64, Relaxed);
                self.is_watched.store(u32::from(count <= MESSAGE_MAX), Relaxed);
                Ok((count, true))
            }
            Err(error) if is_nothing(&error) => Ok((0, true)),
            Err(error) => {
                self.phase.store(CLOSED, Relaxed);
                Err(error)
            }
        }
    }

    /// Broker: whether it must look into the ring at the next tick.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed) != 0
    }

    /// Broker: stops looking into the ring, if nothing is there. Returns whether it may.
    pub fn rest(&self) -> bool {
        let Ok(_guard) = self.lock.lock() else { return false };
        let is_empty = self.head.load(Relaxed) == self.tail.load(Relaxed);
        if is_empty {
            self.is_watched.store(0, Relaxed);
        }
        is_empty
    }

    /// Broker: nothing is taken any more.
    pub fn close(&self) {
        self.phase.store(CLOSED, Relaxed);
    }
}

impl Down {
    /// Broker: `written` bytes went to the pair so far. Returns whether the lock could be had.
    pub fn begin(&self, written: u64) -> bool {
        let Ok(_guard) = self.lock.lock() else { return false };
        if self.phase.load(Relaxed) == NOT_YET {
            self.position.store(written, Relaxed);
            self.phase.store(OPEN, Relaxed);
        }
        true
    }

    /// Broker: passes on bytes of the stream that begin at `offset`, but for those that the program has from copies.
    /// Returns how many are through: fewer than there are if the pair is full.
    ///
    /// # Errors
    /// Those of `write_pair`, which never waits, but for having no room; a lock that is broken.
    pub fn pass(
        &self,
        offset: u64,
        bytes: &[u8],
        write_pair: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(_guard) = taken(self.lock.lock())? else { return Ok(0) };
        let position = self.position.load(Relaxed);
        let known = usize::try_from(position.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        if known == bytes.len() {
            return Ok(known);
        }
        match write_pair(&bytes[known..]) {
            Ok(count) => {
                // After the write itself: who sees the new count sees what was written.
                self.writes.store(self.writes.load(Relaxed).wrapping_add(1), Release);
                self.position.store(offset + (known + count) as u64, Relaxed);
                Ok(known + count)
            }
            Err(error) if is_nothing(&error) => Ok(known),
            Err(error) => Err(error),
        }
    }

    /// Program: how things are before it looks whether the pair has something to read.
    pub fn look(&self) -> u64 {
        self.writes.load(Acquire)
    }

    /// Program: delivers a copy, if it is the next, and nothing came by the pair since [`Self::look`] said `seen`, after which
    /// the pair was empty. One that may be next soon is kept for [`Self::deliver_kept`].
    pub fn deliver(&self, copy: &Copy<'_>, seen: u64, into: &mut impl Sink) -> Delivery {
        let Some(_guard) = self.lock_to_deliver() else { return Delivery::No };
        let position = self.position.load(Relaxed);
        if self.phase.load(Relaxed) != OPEN || copy.offset.saturating_add(copy.bytes.len() as u64) <= position {
            return Delivery::No;
        }
        // The broker's write may have woken the program before the broker could note it.
        if copy.offset > position || self.writes.load(Relaxed) != seen {
            self.keep(position, copy.offset, copy.bytes);
            return Delivery::No;
        }
        let bytes = &copy.bytes[(position - copy.offset) as usize..];
        let count = bytes.len().min(into.room());
        into.put(&bytes[..count]);
        let next = position + count as u64;
        if count < bytes.len() {
            self.keep(next, next, &bytes[count..]);
        }
        self.position.store(next, Relaxed);
        Delivery::Bytes(count)
    }

    /// Program: whether [`Self::deliver_kept`] may have something.
    pub fn has_kept(&self) -> bool {
        self.kept_length.load(Relaxed) > 0
    }

    /// Program: delivers what was kept, if that is next and the pair is empty: the rest of a copy that was longer than the
    /// reader's buffer, or a copy that came too early.
    pub fn deliver_kept(&self, is_pair_empty: impl FnOnce() -> bool, into: &mut impl Sink) -> Delivery {
        let Some(_guard) = self.lock_to_deliver() else { return Delivery::No };
        let (position, at) = (self.position.load(Relaxed), self.kept_at.load(Relaxed));
        let length = (self.kept_length.load(Relaxed) as usize).min(MESSAGE_MAX);
        let Some(known) = position.checked_sub(at) else { return Delivery::No };
        if known >= length as u64 {
            self.kept_length.store(0, Relaxed);
            return Delivery::No;
        }
        if self.phase.load(Relaxed) != OPEN || !is_pair_empty() {
            return Delivery::No;
        }
        let known = known as usize;
        let count = (length - known).min(into.room());
        let mut bytes = [0; MESSAGE_MAX];
        for (to, from) in bytes[..count].iter_mut().zip(&self.kept[known..]) {
            *to = from.load(Relaxed);
        }
        into.put(&bytes[..count]);
        self.position.store(position + count as u64, Relaxed);
        Delivery::Bytes(count)
    }

    /// Whoever died with the lock may have written to the pair without noting it: nobody knows the position any more.
    fn lock_to_deliver(&self) -> Option<Guard<'_>> {
        let guard = self.lock.lock().ok()?;
        if guard.is_inherited {
            self.phase.store(CLOSED, Relaxed);
        }
        Some(guard)
    }

    /// Keeps bytes, unless others are kept that come before them.
    fn keep(&self, position: u64, at: u64, bytes: &[u8]) {
        let kept_at = self.kept_at.load(Relaxed);
        let kept_length = u64::from(self.kept_length.load(Relaxed));
        if kept_length > 0 && kept_at < at && position < kept_at.saturating_add(kept_length) {
            return;
        }
        self.kept_length.store(0, Relaxed);
        for (to, from) in self.kept.iter().zip(bytes) {
            to.store(*from, Relaxed);
        }
        self.kept_at.store(at, Relaxed);
        self.kept_length.store(bytes.len() as u32, Relaxed);
    }
}

/// A broker's lock, or nothing if it must try again.
fn taken(lock: Result<Guard<'_>, Refused>) -> io::Result<Option<Guard<'_>>> {
    match lock {
        Ok(guard) => Ok(Some(guard)),
        Err(Refused::Taken) => Ok(None),
        Err(Refused::Broken) => Err(io::Error::other("a program destroyed the memory that it shares with its broker")),
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A reader's buffer.
pub trait Sink {
    /// How many bytes it takes.
    fn room(&self) -> usize;
    /// Takes bytes, no more than there is room for.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
