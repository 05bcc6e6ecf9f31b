//! Bytes that a program reads: from copies or from the pair, each of them once.

use std::{
    io,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use crate::{
    datagram::{Copy, MESSAGE_MAX},
    place::{Claim, Moment, Place, TRIES_MAX},
    would_block::is_nothing,
};

/// From the broker to the program.
#[repr(C)]
pub struct Down {
    /// Bytes that the program has got, or can get from the pair.
    place: Place,
    /// Who uses the rest.
    keeper: Claim,
    kept_length: AtomicU32,
    /// True bytes of the stream from an offset on, which the program has not got yet.
    kept_at: AtomicU64,
    kept: [AtomicU8; MESSAGE_MAX],
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// So many bytes are in the reader's buffer.
    Bytes(usize),
    /// The copy is not the next one.
    No,
}

impl Down {
    /// Broker: `written` bytes went to the pair so far.
    pub fn begin(&self, written: u64) {
        self.place.open(written);
    }

    /// Broker: passes on bytes of the stream that begin at `offset`, but for those that the program has from copies.
    /// Returns how many are through: fewer than there are if the pair is full.
    ///
    /// # Errors
    /// Those of `write_pair`, which never waits, but for having no room.
    pub fn pass(
        &self,
        offset: u64,
        bytes: &[u8],
        write_pair: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        for _ in 0..TRIES_MAX {
            let then = self.place.look();
            let known = usize::try_from(then.position().saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
            if known == bytes.len() {
                return Ok(known);
            }
            let Some(mut turn) = self.place.take_turn(then) else { continue };
            return match write_pair(&bytes[known..]) {
                Ok(count) => {
                    turn.position = offset + (known + count) as u64;
                    Ok(known + count)
                }
                Err(error) if is_nothing(&error) => Ok(known),
                Err(error) => Err(error),
            };
        }
        Ok(0)
    }

    /// Program: how things are before it looks whether the pair has something to read.
    pub fn look(&self) -> Moment {
        self.place.look()
    }

    /// Program: delivers a copy, if it is the next, and nothing came since [`Self::look`] said `then`, after which the pair was
    /// empty. One that may be next soon is kept for [`Self::deliver_kept`].
    pub fn deliver(&self, copy: &Copy<'_>, then: Moment, into: &mut impl Sink) -> Delivery {
        let position = self.place.look().position();
        if copy.offset.saturating_add(copy.bytes.len() as u64) <= position {
            return Delivery::No;
        }
        // The broker's write may have woken the program before the broker could note it.
        let known = then.position().checked_sub(copy.offset).filter(|known| *known < copy.bytes.len() as u64);
        let next = known.map(|known| &copy.bytes[known as usize..]).unwrap_or_default();
        let count = next.len().min(into.room());
        if count == 0 || !self.place.advance(then, count) {
            self.keep(position, copy.offset, copy.bytes);
            return Delivery::No;
        }
        into.put(&next[..count]);
        if count < next.len() {
            let position = then.position() + count as u64;
            self.keep(position, position, &next[count..]);
        }
        Delivery::Bytes(count)
    }

    /// Program: whether [`Self::deliver_kept`] may have something.
    pub fn has_kept(&self) -> bool {
        self.kept_length.load(Relaxed) > 0
    }

    /// Program: keeps a copy that came while nobody reads, for [`Self::deliver_kept`]. Returns how many bytes are kept that come next.
    pub fn hold(&self, copy: &Copy<'_>) -> usize {
        let position = self.place.look().position();
        if copy.offset.saturating_add(copy.bytes.len() as u64) > position {
            self.keep(position, copy.offset, copy.bytes);
        }
        self.kept_next()
    }

    /// Program: how many bytes are kept that come next, behind nothing but what the pair holds. Zero as well while another thread
    /// or the broker is at it, and when the broker has ended.
    pub fn kept_next(&self) -> usize {
        if !self.has_kept() {
            return 0;
        }
        let Some(_claimed) = self.keeper.take() else { return 0 };
        let then = self.place.look();
        if then.is_free() { self.kept_from(then.position()).map_or(0, |kept| kept.len()) } else { 0 }
    }

    /// Program: delivers what was kept, if that is next and the pair is empty: the rest of a copy that was longer than the
    /// reader's buffer, or a copy that came too early.
    pub fn deliver_kept(&self, is_pair_empty: impl FnOnce() -> bool, into: &mut impl Sink) -> Delivery {
        self.give_kept(is_pair_empty, into, |then, count| self.place.advance(then, count))
    }

    /// Program: as [`Self::deliver_kept`], but the bytes stay to be delivered, here or by the pair.
    pub fn peek_kept(&self, is_pair_empty: impl FnOnce() -> bool, into: &mut impl Sink) -> Delivery {
        self.give_kept(is_pair_empty, into, |then, _| then.is_free() && self.place.look() == then)
    }

    fn give_kept(
        &self,
        is_pair_empty: impl FnOnce() -> bool,
        into: &mut impl Sink,
        may_give: impl FnOnce(Moment, usize) -> bool,
    ) -> Delivery {
        let Some(_claimed) = self.keeper.take() else { return Delivery::No };
        let then = self.place.look();
        let Some(kept) = self.kept_from(then.position()) else { return Delivery::No };
        let count = kept.len().min(into.room());
        let mut bytes = [0; MESSAGE_MAX];
        for (to, from) in bytes[..count].iter_mut().zip(kept) {
            *to = from.load(Relaxed);
        }
        if count == 0 || !is_pair_empty() || !may_give(then, count) {
            return Delivery::No;
        }
        into.put(&bytes[..count]);
        if count == kept.len() && self.place.look().position() == then.position() + count as u64 {
            self.kept_length.store(0, Relaxed);
        }
        Delivery::Bytes(count)
    }

    /// The bytes kept from a position on, for whoever has claimed them; forgets those that all lie before it.
    fn kept_from(&self, position: u64) -> Option<&[AtomicU8]> {
        let length = (self.kept_length.load(Relaxed) as usize).min(MESSAGE_MAX);
        let known = position.checked_sub(self.kept_at.load(Relaxed))?;
        if known >= length as u64 {
            self.kept_length.store(0, Relaxed);
            return None;
        }
        Some(&self.kept[known as usize..length])
    }

    /// Keeps bytes: behind others that they continue, if there is room; not at all where others are kept that come before them, or
    /// another thread is at it.
    fn keep(&self, position: u64, at: u64, bytes: &[u8]) {
        let Some(_claimed) = self.keeper.take() else { return };
        let kept_at = self.kept_at.load(Relaxed);
        let length = (self.kept_length.load(Relaxed) as usize).min(MESSAGE_MAX);
        let end = kept_at.saturating_add(length as u64);
        if length > 0 && kept_at <= at && position < end {
            // How many of them are kept already; more if they leave a gap.
            let known = end.checked_sub(at).map_or(usize::MAX, |known| known as usize);
            if let Some(new) = bytes.get(known..).filter(|new| length + new.len() <= MESSAGE_MAX) {
                self.store(length, new);
            }
            return;
        }
        self.kept_length.store(0, Relaxed);
        self.kept_at.store(at, Relaxed);
        self.store(0, bytes);
    }

    /// Stores bytes behind the first `length` of those that are kept.
    fn store(&self, length: usize, bytes: &[u8]) {
        for (to, from) in self.kept[length..].iter().zip(bytes) {
            to.store(*from, Relaxed);
        }
        self.kept_length.store((length + bytes.len()) as u32, Relaxed);
    }
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
