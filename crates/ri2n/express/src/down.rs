//! Bytes that a program reads: from copies or from the pair, each of them once.

use std::{
    io,
    sync::atomic::{
        AtomicU8, AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
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
    /// Where the broker's turn ends if the pair takes all.
    passing_to: AtomicU64,
    /// Bytes that the program has got, as far as its calls are seen: never more than it has.
    read: AtomicU64,
    /// Calls of programs in the middle of getting some.
    readers: AtomicU32,
    /// Who uses the rest.
    keeper: Claim,
    kept_length: AtomicU32,
    /// True bytes of the stream from an offset on, which the program has not got yet.
    kept_at: AtomicU64,
    kept: [AtomicU8; MESSAGE_MAX],
}

/// How things were before a program looked whether the pair has something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    moment: Moment,
    /// Of the byte after those in the pair.
    position: u64,
    /// Whether copies may be delivered from there.
    is_free: bool,
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
            self.passing_to.store(offset + bytes.len() as u64, SeqCst);
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
    ///
    /// A broker whose write has woken the program may lose its processor before it can end its turn. A program that has read all
    /// that the turn is for does not wait for that.
    pub fn look(&self) -> Seen {
        let moment = self.place.look();
        if !moment.is_turn() {
            return Seen { moment, position: moment.position(), is_free: moment.is_free() };
        }
        let end = self.passing_to.load(SeqCst).max(moment.position());
        let is_free = self.read.load(SeqCst) == end;
        Seen { moment, position: if is_free { end } else { moment.position() }, is_free }
    }

    /// Program: begins to read the pair, in a call that is seen.
    pub fn begin_read(&self) {
        self.readers.fetch_add(1, SeqCst);
    }

    /// Program: has read the pair, after [`Self::begin_read`]. Who does not come here leaves programs waiting for the ends of turns.
    pub fn end_read(&self, count: usize) {
        self.read.fetch_add(count as u64, SeqCst);
        self.readers.fetch_sub(1, SeqCst);
    }

    /// Program: delivers a copy, if it is the next, and nothing came since [`Self::look`] said `then`, after which the pair was
    /// empty. One that may be next soon is kept for [`Self::deliver_kept`].
    pub fn deliver(&self, copy: &Copy<'_>, then: Seen, into: &mut impl Sink) -> Delivery {
        let position = self.look().position;
        if copy.offset.saturating_add(copy.bytes.len() as u64) <= position {
            return Delivery::No;
        }
        // The broker's write may have woken the program before the broker could note it.
        let known = then.position.checked_sub(copy.offset).filter(|known| *known < copy.bytes.len() as u64);
        let next = known.map(|known| &copy.bytes[known as usize..]).unwrap_or_default();
        let count = next.len().min(into.room());
        if count == 0 || !self.advance(then, count) {
            self.keep(position, copy.offset, copy.bytes);
            return Delivery::No;
        }
        into.put(&next[..count]);
        if count < next.len() {
            let position = then.position + count as u64;
            self.keep(position, position, &next[count..]);
        }
        Delivery::Bytes(count)
    }

    /// Moves on by bytes of copies, if nothing came since `then`, after which the pair was empty.
    fn advance(&self, then: Seen, count: usize) -> bool {
        if !then.is_free {
            return false;
        }
        let is_turn = then.moment.is_turn();
        // With the pair empty and nobody in the middle of reading, the program has got all that is before the position.
        if !is_turn
            && self.read.load(SeqCst) != then.position
            && self.readers.load(SeqCst) == 0
            && self.place.look() == then.moment
        {
            self.read.store(then.position, SeqCst);
        }
        self.begin_read();
        let has_moved = if is_turn {
            self.place.move_in_turn(then.moment, then.position + count as u64)
        } else {
            self.place.advance(then.moment, count)
        };
        self.end_read(if has_moved { count } else { 0 });
        has_moved
    }

    /// Program: whether [`Self::deliver_kept`] may have something.
    pub fn has_kept(&self) -> bool {
        self.kept_length.load(Relaxed) > 0
    }

    /// Program: keeps a copy that came while nobody reads, for [`Self::deliver_kept`]. Returns how many bytes are kept that come next.
    pub fn hold(&self, copy: &Copy<'_>) -> usize {
        let position = self.look().position;
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
        let then = self.look();
        if then.is_free { self.kept_from(then.position).map_or(0, |kept| kept.len()) } else { 0 }
    }

    /// Program: whether the broker is passing bytes on just now. They are in the pair, and it has said so, in a moment, unless it has
    /// died or lost its processor.
    pub fn is_passing(&self) -> bool {
        self.place.look().is_turn()
    }

    /// Program: delivers what was kept, if that is next and the pair is empty: the rest of a copy that was longer than the
    /// reader's buffer, or a copy that came too early.
    pub fn deliver_kept(&self, is_pair_empty: impl FnOnce() -> bool, into: &mut impl Sink) -> Delivery {
        self.give_kept(is_pair_empty, into, |then, count| self.advance(then, count))
    }

    /// Program: as [`Self::deliver_kept`], but the bytes stay to be delivered, here or by the pair.
    pub fn peek_kept(&self, is_pair_empty: impl FnOnce() -> bool, into: &mut impl Sink) -> Delivery {
        self.give_kept(is_pair_empty, into, |then, _| then.is_free && self.look() == then)
    }

    fn give_kept(
        &self,
        is_pair_empty: impl FnOnce() -> bool,
        into: &mut impl Sink,
        may_give: impl FnOnce(Seen, usize) -> bool,
    ) -> Delivery {
        let Some(_claimed) = self.keeper.take() else { return Delivery::No };
        let then = self.look();
        let Some(kept) = self.kept_from(then.position) else { return Delivery::No };
        let count = kept.len().min(into.room());
        let mut bytes = [0; MESSAGE_MAX];
        for (to, from) in bytes[..count].iter_mut().zip(kept) {
            *to = from.load(Relaxed);
        }
        if count == 0 || !is_pair_empty() || !may_give(then, count) {
            return Delivery::No;
        }
        into.put(&bytes[..count]);
        if count == kept.len() && self.look().position == then.position + count as u64 {
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
        if length > 0 && kept_at <= at.max(position) && position < end {
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
