//! The stream's bytes on both sides: what was written and is not yet acknowledged, what arrived and is not yet read.
//!
//! Both are rings addressed by stream offset, so that a byte is copied in once and out once, wherever it arrives. They begin
//! without memory, grow when they must, and give it back when the connection is idle: a ring goes round through all of its
//! memory, and what fits the processor's cache is copied in half the time.
//!
//! ```text
//!  send:     acknowledged | base … in flight, lost … | next … written, unsent | end
//!  receive:  read | next … ready | … holes and islands … | limit = read + capacity
//! ```

use crate::ranges::RangeSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_bytes::ByteBuf;
use std::ops::Range;

/// Bytes that the send buffer holds at first: a run, and time to fetch more. What a thousand streams hold that all wait for their
/// turns was copied for nothing so far.
const EXTENT_FIRST: usize = 64 << 10;
/// Least memory of a ring that has any.
const RING_BYTES_MIN: usize = 4 << 10;

/// Bytes copied at once.
const PIECE_BYTES: usize = 2 << 10;

/// Bytes from the application to the network.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    ring: Ring,
    /// Bytes that it holds now, at most.
    extent: usize,
    /// Bytes that it may come to hold.
    capacity: usize,
    /// Everything below is acknowledged.
    base: u64,
    /// Everything from here on was never sent.
    next: u64,
    /// One past the last byte written.
    end: u64,
    acked: RangeSet,
    lost: RangeSet,
}

impl SendBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.next_power_of_two();
        Self {
            ring: Ring::default(),
            extent: capacity.min(EXTENT_FIRST),
            capacity,
            base: 0,
            next: 0,
            end: 0,
            acked: RangeSet::new(),
            lost: RangeSet::new(),
        }
    }

    /// Copies in as much as there is room for.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let (head, tail) = self.reserve(bytes.len());
        let (first, second) = bytes[..head.len() + tail.len()].split_at(head.len());
        copy(head, first);
        copy(tail, second);
        let taken = first.len() + second.len();
        self.commit(taken);
        taken
    }

    /// Memory for the next bytes, as many as there is room for, but no more than `most`.
    pub(crate) fn reserve(&mut self, most: usize) -> (&mut [u8], &mut [u8]) {
        let room = self.room();
        let held = (self.end - self.base) as usize;
        if room + held > self.extent {
            self.extent = (2 * self.extent).min(self.capacity);
        }
        let count = most.min(room);
        self.ring.reserve(self.base, held, held + count);
        self.ring.slices_mut(self.end..self.end + count as u64)
    }

    /// Takes in bytes that were put into the memory that [`Self::reserve`] gave.
    pub(crate) fn commit(&mut self, count: usize) {
        self.end += count as u64;
        assert!((self.end - self.base) as usize <= self.ring.size(), "more than was reserved");
    }

    /// Gives back the memory if nothing is held.
    pub(crate) fn release(&mut self) {
        if self.base == self.end {
            self.ring = Ring::default();
        }
    }

    /// Bytes that [`Self::write`] takes. The buffer grows once more than half of it is in flight, as then too little would wait to
    /// be sent.
    pub(crate) fn room(&self) -> usize {
        let wants_more = (self.next - self.base) as usize > self.extent / 2;
        let extent = if wants_more { (2 * self.extent).min(self.capacity) } else { self.extent };
        extent - (self.end - self.base) as usize
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Bytes that wait to be sent, given that the peer takes none from `limit` on.
    pub(crate) fn waiting(&self, limit: u64) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum::<u64>()
            + self.end.min(limit).saturating_sub(self.next)
    }

    /// Takes up to `most` bytes to send: lost ones first, then new ones below `limit`.
    pub(crate) fn take(&mut self, most: u64, limit: u64) -> Option<Range<u64>> {
        if let Some(range) = self.lost.take_lowest(most) {
            return Some(range);
        }
        let end = self.end.min(limit).min(self.next + most);
        (end > self.next).then(|| {
            let range = self.next..end;
            self.next = end;
            range
        })
    }

    pub(crate) fn handle_acked(&mut self, range: Range<u64>) {
        if range.start <= self.base {
            if range.end <= self.base {
                return;
            }
            self.base = range.end;
            while let Some(first) = self.acked.first().filter(|first| first.start <= self.base) {
                self.base = self.base.max(first.end);
                self.acked.forget_below(self.base);
            }
        } else {
            self.acked.insert(range.clone());
        }
        if !self.lost.is_empty() {
            self.lost.remove(range);
            self.lost.forget_below(self.base);
        }
    }

    /// Queues again what of the range is still unacknowledged. Returns how many bytes that is.
    pub(crate) fn handle_lost(&mut self, range: Range<u64>) -> u64 {
        let range = range.start.max(self.base)..range.end;
        if range.start >= range.end {
            return 0;
        }
        let mut bytes = 0;
        for gap in self.acked.gaps(range) {
            bytes += gap.end - gap.start;
            self.lost.insert(gap);
        }
        bytes
    }

    /// The bytes at an offset, as up to two slices.
    pub(crate) fn slices(&self, range: Range<u64>) -> (&[u8], &[u8]) {
        debug_assert!(range.is_empty() || range.start >= self.base && range.end <= self.end);
        self.ring.slices(range)
    }
}

/// A saved send buffer: the bytes that it holds, without free memory.
#[derive(Serialize, Deserialize)]
struct SavedSendBuffer {
    held: ByteBuf,
    extent: usize,
    capacity: usize,
    base: u64,
    next: u64,
    acked: RangeSet,
    lost: RangeSet,
}

impl Serialize for SendBuffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (head, tail) = self.slices(self.base..self.end);
        let saved = SavedSendBuffer {
            held: ByteBuf::from([head, tail].concat()),
            extent: self.extent,
            capacity: self.capacity,
            base: self.base,
            next: self.next,
            acked: self.acked.clone(),
            lost: self.lost.clone(),
        };
        saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SendBuffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SavedSendBuffer { held, extent, capacity, base, next, acked, lost } =
            Deserialize::deserialize(deserializer)?;
        let end = base.saturating_add(held.len() as u64);
        if !(base..=end).contains(&next) || held.len() > extent || extent > capacity {
            return Err(D::Error::custom("a send buffer whose numbers contradict each other"));
        }
        let ring = Ring::holding(base, &held);
        Ok(Self { ring, extent, capacity, base, next, end, acked, lost })
    }
}

/// Memory of a reader that waits: what arrives next in the stream goes straight there.
#[derive(Debug, Default)]
pub struct Target<'a> {
    into: &'a mut [u8],
    filled: usize,
}

impl<'a> Target<'a> {
    /// Memory to fill from its beginning.
    #[must_use]
    pub fn new(into: &'a mut [u8]) -> Self {
        Self { into, filled: 0 }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// What is not written yet.
    pub fn rest(&mut self) -> &mut [u8] {
        &mut self.into[self.filled..]
    }

    /// Takes as much as there is room for. Returns how many bytes that is.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let rest = &mut self.into[self.filled..];
        let count = bytes.len().min(rest.len());
        copy(&mut rest[..count], &bytes[..count]);
        self.filled += count;
        count
    }
}

/// Bytes from the network to the application.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    ring: Ring,
    /// Bytes that the ring may grow to: those that the peer may send.
    capacity: usize,
    /// Everything below was read by the application.
    read: u64,
    /// Everything below arrived.
    next: u64,
    /// What arrived beyond.
    islands: RangeSet,
    /// Where the stream ends, once known.
    end: Option<u64>,
}

impl ReceiveBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            ring: Ring::default(),
            capacity: capacity.next_power_of_two(),
            read: 0,
            next: 0,
            islands: RangeSet::new(),
            end: None,
        }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The first offset that there is no room for.
    pub(crate) fn limit(&self) -> u64 {
        self.read + self.capacity as u64
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// One past the last byte that arrived.
    fn highest(&self) -> u64 {
        self.islands.iter().next_back().map_or(self.next, |island| island.end)
    }

    /// Whether everything up to the end arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.end == Some(self.next)
    }

    /// Bytes that can be read now.
    pub(crate) fn ready(&self) -> usize {
        (self.next - self.read) as usize
    }

    /// Whether everything up to the end was read.
    pub(crate) fn is_finished(&self) -> bool {
        self.end == Some(self.read)
    }

    pub(crate) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// Takes in bytes at an offset; those that a reader waits for, into its memory. Returns whether they are acceptable: a
    /// sender that passes the limit or changes the end of the stream is not.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &[u8], target: &mut Target<'_>) -> bool {
        let end = offset + bytes.len() as u64;
        if end > self.limit() || self.end.is_some_and(|last| end > last) {
            return false;
        }
        let mut start = offset.max(self.next);
        if start >= end {
            return true;
        }
        if start == self.read {
            start += target.put(&bytes[(start - offset) as usize..]) as u64;
            (self.read, self.next) = (start, start);
        }
        if start < end {
            let highest = self.highest();
            self.ring.reserve(self.read, (highest - self.read) as usize, (end.max(highest) - self.read) as usize);
            self.ring.copy_in(start, &bytes[(start - offset) as usize..]);
        }
        if start > self.next {
            self.islands.insert(start..end);
            return true;
        }
        self.next = end;
        while let Some(first) = self.islands.first().filter(|first| first.start <= self.next) {
            self.next = self.next.max(first.end);
            self.islands.forget_below(self.next);
        }
        true
    }

    /// Learns where the stream ends. Returns whether that is consistent.
    pub(crate) fn finish(&mut self, end: u64) -> bool {
        let highest = self.highest();
        if self.end.is_some_and(|known| known != end) || highest > end {
            return false;
        }
        self.end = Some(end);
        true
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.ready());
        let (head, tail) = self.ring.slices(self.read..self.read + count as u64);
        copy(&mut into[..head.len()], head);
        copy(&mut into[head.len()..count], tail);
        self.consume(count);
        count
    }

    /// What can be read now.
    pub(crate) fn peek(&self) -> (&[u8], &[u8]) {
        self.ring.slices(self.read..self.next)
    }

    /// Takes bytes that [`Self::peek`] showed.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.ready(), "more than was there");
        self.read += count as u64;
    }

    /// Gives back the memory if nothing is held.
    pub(crate) fn release(&mut self) {
        if self.read == self.next && self.islands.is_empty() {
            self.ring = Ring::default();
        }
    }

    /// Drops what arrived and all that will, after the application said that it reads no more.
    pub(crate) fn discard(&mut self) {
        self.read = self.next;
    }
}

/// A saved receive buffer. Bytes between islands have no meaning.
#[derive(Serialize, Deserialize)]
struct SavedReceiveBuffer {
    held: ByteBuf,
    capacity: usize,
    read: u64,
    next: u64,
    islands: RangeSet,
    end: Option<u64>,
}

impl Serialize for ReceiveBuffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (head, tail) = self.ring.slices(self.read..self.highest());
        let saved = SavedReceiveBuffer {
            held: ByteBuf::from([head, tail].concat()),
            capacity: self.capacity,
            read: self.read,
            next: self.next,
            islands: self.islands.clone(),
            end: self.end,
        };
        saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReceiveBuffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SavedReceiveBuffer { held, capacity, read, next, islands, end } = Deserialize::deserialize(deserializer)?;
        let highest = islands.iter().next_back().map_or(next, |island| island.end);
        if read.checked_add(held.len() as u64) != Some(highest) || next < read || held.len() > capacity {
            return Err(D::Error::custom("a receive buffer whose numbers contradict each other"));
        }
        Ok(Self { ring: Ring::holding(read, &held), capacity, read, next, islands, end })
    }
}

/// A ring of bytes addressed by offset modulo its size, which is a power of two, or nothing.
#[derive(Debug, Default)]
struct Ring {
    bytes: Box<[u8]>,
}

impl Ring {
    /// Zeroed memory is not touched until it is used.
    fn new(size: usize) -> Self {
        Self { bytes: vec![0; size.next_power_of_two().max(RING_BYTES_MIN)].into() }
    }

    /// Memory for these bytes, which begin at an offset.
    fn holding(from: u64, bytes: &[u8]) -> Self {
        let mut ring = Self::default();
        if !bytes.is_empty() {
            ring.reserve(from, 0, bytes.len());
            ring.copy_in(from, bytes);
        }
        ring
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Makes room for so many bytes from an offset on, of which the first `held` are kept.
    fn reserve(&mut self, from: u64, held: usize, bytes: usize) {
        if bytes <= self.size() {
            return;
        }
        let mut larger = Self::new(bytes);
        let (head, tail) = self.slices(from..from + held as u64);
        larger.copy_in(from, head);
        larger.copy_in(from + head.len() as u64, tail);
        *self = larger;
    }

    fn at(&self, offset: u64) -> usize {
        (offset as usize) & self.bytes.len().saturating_sub(1)
    }

    fn copy_in(&mut self, offset: u64, from: &[u8]) {
        let at = self.at(offset);
        let head = from.len().min(self.bytes.len() - at);
        copy(&mut self.bytes[at..at + head], &from[..head]);
        copy(&mut self.bytes[..from.len() - head], &from[head..]);
    }

    fn slices(&self, range: Range<u64>) -> (&[u8], &[u8]) {
        let (at, length) = (self.at(range.start), (range.end - range.start) as usize);
        let head = length.min(self.bytes.len() - at);
        (&self.bytes[at..at + head], &self.bytes[..length - head])
    }

    fn slices_mut(&mut self, range: Range<u64>) -> (&mut [u8], &mut [u8]) {
        let (at, length) = (self.at(range.start), (range.end - range.start) as usize);
        let head = length.min(self.bytes.len() - at);
        let (low, high) = self.bytes.split_at_mut(at);
        (&mut high[..head], &mut low[..length - head])
    }
}

/// Copies in pieces. For more the C library may take the processor's string instruction, which on some is fifteen times as slow
/// where the destination lies a few bytes further into its page than the source: a large write after a small header.
fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_ring() {
        let mut send = SendBuffer::new(16);
        assert_eq!(send.write(b"0123456789abcdefXYZ"), 16);
        assert_eq!(send.take(10, 6), Some(0..6));
        assert_eq!(send.take(10, 6), None);
        assert_eq!(send.take(6, 100), Some(6..12));
        send.handle_acked(6..12);
        assert_eq!((send.base(), send.room()), (0, 0));
        assert_eq!(send.handle_lost(0..12), 6);
        assert_eq!(send.waiting(100), 6 + 4);
        assert_eq!(send.take(4, 100), Some(0..4));
        send.handle_acked(0..4);
        send.handle_acked(4..6);
        assert_eq!((send.base(), send.room(), send.has_lost()), (12, 12, false));
        assert_eq!(send.write(b"ABCDEFGH"), 8);
        let (head, tail) = send.slices(12..20);
        assert_eq!([head, tail].concat(), b"cdefABCD");
    }

    fn put(receive: &mut ReceiveBuffer, offset: u64, bytes: &[u8]) -> bool {
        receive.insert(offset, bytes, &mut Target::default())
    }

    fn byte(offset: u64) -> u8 {
        (offset ^ offset >> 8 ^ offset >> 16) as u8
    }

    fn bytes(range: Range<u64>) -> Vec<u8> {
        range.map(byte).collect()
    }

    #[test]
    fn the_send_ring_grows_when_half_of_it_is_in_flight() {
        const FIRST: u64 = EXTENT_FIRST as u64;
        let mut send = SendBuffer::new(4 * EXTENT_FIRST);
        let begun = 1000;
        assert_eq!(send.write(&bytes(0..begun)), begun as usize);
        send.take(begun, u64::MAX);
        send.handle_acked(0..begun);
        let all = bytes(begun..begun + 8 * FIRST);
        assert_eq!(send.write(&all), EXTENT_FIRST);
        assert_eq!((send.write(&all), send.room()), (0, 0), "nothing of it is in flight");
        send.take(FIRST / 2 + 1, u64::MAX);
        assert_eq!(send.write(&all[FIRST as usize..]), EXTENT_FIRST);
        assert_eq!(send.room(), 0, "less than half of it is in flight");
        send.take(3 * FIRST, u64::MAX);
        assert_eq!(send.write(&all[2 * FIRST as usize..]), 2 * EXTENT_FIRST);
        send.take(4 * FIRST, u64::MAX);
        assert_eq!(send.room(), 0, "as large as it may be");
        let (head, tail) = send.slices(begun..begun + 4 * FIRST);
        assert!([head, tail].concat() == all[..4 * FIRST as usize]);
        send.handle_acked(begun..begun + FIRST);
        assert_eq!(send.room(), EXTENT_FIRST);
    }

    #[test]
    fn the_receive_ring_grows_around_islands() {
        const FIRST: u64 = EXTENT_FIRST as u64;
        let mut receive = ReceiveBuffer::new(4 * EXTENT_FIRST);
        let mut into = vec![0; 4 * EXTENT_FIRST];
        assert!(put(&mut receive, 0, &bytes(0..700)));
        assert_eq!(receive.read(&mut into), 700);
        assert!(put(&mut receive, 1000, &bytes(1000..FIRST)));
        assert_eq!(receive.ring.size(), EXTENT_FIRST);
        assert!(put(&mut receive, 4 * FIRST, &bytes(4 * FIRST..4 * FIRST + 700)));
        assert_eq!(receive.ring.size(), 4 * EXTENT_FIRST);
        assert!(!put(&mut receive, 4 * FIRST + 700, b"x"), "beyond the limit");
        assert!(put(&mut receive, 700, &bytes(700..1000)));
        assert!(put(&mut receive, FIRST, &bytes(FIRST..4 * FIRST)));
        assert_eq!(receive.read(&mut into), 4 * EXTENT_FIRST);
        assert!(into == bytes(700..4 * FIRST + 700));
        receive.release();
        assert_eq!(receive.ring.size(), 0, "nothing is held");
        assert!(put(&mut receive, 4 * FIRST + 700, b"x") && receive.peek().0 == b"x");
        receive.release();
        receive.consume(1);
        assert_eq!((receive.ready(), receive.ring.size()), (0, RING_BYTES_MIN), "what is held stays");
    }

    #[test]
    fn islands_join() {
        let mut receive = ReceiveBuffer::new(8);
        assert!(put(&mut receive, 4, b"efgh"));
        assert!(!put(&mut receive, 8, b"i"), "beyond the limit");
        assert_eq!(receive.ready(), 0);
        assert!(put(&mut receive, 0, b"abcde"));
        let mut bytes = [0; 5];
        assert_eq!(receive.read(&mut bytes), 5);
        assert_eq!(&bytes, b"abcde");
        assert!(put(&mut receive, 8, b"ijk"));
        assert!(!receive.finish(10), "less than what arrived");
        assert!(receive.finish(11) && !receive.finish(12));
        assert_eq!((receive.read(&mut bytes), receive.read(&mut bytes)), (5, 1));
        assert!(receive.is_finished());
    }

    #[test]
    fn a_reader_that_waits_is_given_what_comes_next() {
        let mut receive = ReceiveBuffer::new(16);
        let mut memory = [0; 6];
        let mut target = Target::new(&mut memory);
        assert!(receive.insert(6, b"ghij", &mut target));
        assert_eq!((target.filled(), receive.ready()), (0, 0), "a hole is before it");
        assert!(receive.insert(0, b"ab", &mut target) && receive.insert(0, b"abcd", &mut target));
        assert_eq!((target.filled(), receive.ready(), receive.limit()), (4, 0, 20));
        assert!(receive.insert(4, b"efg", &mut target));
        assert_eq!((target.filled(), receive.ready(), receive.next()), (6, 4, 10), "the memory is full");
        assert!(receive.insert(10, b"k", &mut target));
        assert_eq!(&memory, b"abcdef");
        let mut rest = [0; 6];
        assert_eq!((receive.read(&mut rest), &rest[..5]), (5, &b"ghijk"[..]));
        let mut target = Target::new(&mut memory);
        assert!(receive.insert(11, b"l", &mut target) && receive.finish(12) && receive.is_finished());
        assert_eq!(target.rest().len(), 5);
    }
}
