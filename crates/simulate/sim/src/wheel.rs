//! The event queue: a ring of short time slots, with a heap for what lies beyond it.
//!
//! Most events of a network lie a few frame times ahead, so they fall into a slot of the ring by a shift and a mask; only
//! timers go to the heap, and move into the ring when it comes round. A slot is sorted when its turn comes. Events of
//! one instant leave in the order in which they came in, so a run never depends on anything but its input.
//!
//! ```text
//!    now ─▶ [ 3 ─▶ 1 ─▶ 2 ][ ][ 7 ][ 5 ─▶ 5 ] …   SLOTS slots of 2^slot_bits ps      heap: 200 ms, 33 ms, …
//! ```
//! Slots are lists through one array of nodes, whose places are used again at once: what waits is a few hundred events in
//! most networks, and the whole queue stays in the processor's first cache.
//!
//! Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation", 1988; here with a fixed slot, since the
//! time of a frame sets the scale. Cost: O(1) a push and a pop for events within the ring, O(log n) beyond it.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Slots in the ring.
const SLOTS: usize = 2048;
const WORDS: usize = SLOTS / 64;
/// Events of a slot that are sorted one by one as they come out of it; more are sorted together.
const INSERTED_MAX: usize = 16;
/// No node.
const NONE: u32 = u32::MAX;

/// Something that happens at a time. Events of one instant keep the order in which they were pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<T> {
    /// When, in picoseconds.
    pub(crate) at_ps: u64,
    /// What.
    pub(crate) what: T,
}

/// A queue of events in order of time.
pub(crate) struct Wheel<T> {
    /// Picoseconds of a slot, as a power of two.
    slot_bits: u32,
    /// `newest[slot number mod SLOTS]`: the node of the event that came last, or [`NONE`].
    newest: [u32; SLOTS],
    /// Which slots hold anything.
    filled: [u64; WORDS],
    /// Events in slots, and places without one.
    nodes: Vec<Node<T>>,
    /// The first of the places without an event.
    unused: u32,
    /// The number of the slot whose events are in `due`.
    current: u64,
    /// Events of the current slot, the next one last.
    due: Vec<Event<T>>,
    /// Events beyond the ring, with a counter that keeps their order.
    beyond: BinaryHeap<Reverse<(u64, u64, Beyond<T>)>>,
    pushed: u64,
}

/// An event in a slot.
#[derive(Clone, Copy)]
struct Node<T> {
    event: Event<T>,
    /// The node that came into the slot before this one, or the next unused one.
    older: u32,
}

/// Payload that never takes part in comparisons.
struct Beyond<T>(T);

impl<T> PartialEq for Beyond<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Beyond<T> {}

impl<T> PartialOrd for Beyond<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Beyond<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<T: Copy> Wheel<T> {
    /// An empty queue whose slots are about as long as `grain_ps`.
    pub(crate) fn new(grain_ps: u64) -> Self {
        Self {
            slot_bits: grain_ps.max(1).ilog2(),
            newest: [NONE; SLOTS],
            filled: [0; WORDS],
            nodes: Vec::new(),
            unused: NONE,
            current: 0,
            due: Vec::new(),
            beyond: BinaryHeap::new(),
            pushed: 0,
        }
    }

    /// Adds an event; it must not lie before the one that was popped last.
    #[inline]
    pub(crate) fn push(&mut self, at_ps: u64, what: T) {
        let slot = at_ps >> self.slot_bits;
        let event = Event { at_ps, what };
        if slot.wrapping_sub(self.current + 1) < SLOTS as u64 - 1 {
            self.link(slot, event);
        } else {
            self.push_aside(slot, event);
        }
    }

    /// Adds an event of the current slot, or one beyond the ring.
    #[cold]
    fn push_aside(&mut self, slot: u64, event: Event<T>) {
        if slot <= self.current {
            // Behind all of its instant: `due` runs backwards.
            let at = self.due.partition_point(|waiting| waiting.at_ps > event.at_ps);
            self.due.insert(at, event);
        } else {
            self.pushed += 1;
            self.beyond.push(Reverse((event.at_ps, self.pushed, Beyond(event.what))));
        }
    }

    /// Takes the earliest event if it is not after `limit_ps`.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit_ps: u64) -> Option<Event<T>> {
        loop {
            if let Some(event) = self.due.last().copied() {
                if event.at_ps > limit_ps {
                    return None;
                }
                self.due.pop();
                return Some(event);
            }
            if !self.turn(limit_ps >> self.slot_bits) {
                return None;
            }
        }
    }

    /// Puts an event into a slot of the ring.
    #[inline]
    fn link(&mut self, slot: u64, event: Event<T>) {
        let index = slot as usize % SLOTS;
        let node = Node { event, older: self.newest[index] };
        let place = self.unused;
        self.newest[index] = match self.nodes.get_mut(place as usize) {
            Some(free) => {
                self.unused = free.older;
                *free = node;
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.filled[index / 64] |= 1 << (index % 64);
    }

    /// Moves to the next slot that holds anything, if there is one up to the slot `last`.
    fn turn(&mut self, last: u64) -> bool {
        let next = match (self.next_filled(), self.beyond.peek()) {
            (Some(slot), _) => slot,
            (None, Some(Reverse((at_ps, ..)))) => at_ps >> self.slot_bits,
            (None, None) => return false,
        };
        if next > last {
            return false;
        }
        self.current = next;
        // What lay beyond the ring was pushed before anything that the ring can now take, so it goes in front of it
        // without being compared: the slots that come into reach are still empty.
        while let Some(Reverse((at_ps, ..))) = self.beyond.peek() {
            if at_ps >> self.slot_bits >= self.current + SLOTS as u64 {
                break;
            }
            let Some(Reverse((at_ps, _, Beyond(what)))) = self.beyond.pop() else { break };
            self.link(at_ps >> self.slot_bits, Event { at_ps, what });
        }
        let index = next as usize % SLOTS;
        self.filled[index / 64] &= !(1 << (index % 64));
        // The newest comes first, and stays before others of its instant: `due` runs backwards.
        let mut at = std::mem::replace(&mut self.newest[index], NONE);
        while let Some(node) = self.nodes.get_mut(at as usize) {
            let event = node.event;
            (at, node.older, self.unused) = (node.older, self.unused, at);
            let mut place = self.due.len();
            self.due.push(event);
            if place < INSERTED_MAX {
                while place > 0 && self.due[place - 1].at_ps < event.at_ps {
                    self.due[place] = self.due[place - 1];
                    place -= 1;
                }
                self.due[place] = event;
            }
        }
        if self.due.len() > INSERTED_MAX {
            self.due.sort_by_key(|event| Reverse(event.at_ps));
        }
        true
    }

    /// The first slot after the current one that holds anything.
    fn next_filled(&self) -> Option<u64> {
        let start = (self.current as usize + 1) % SLOTS;
        let (first, shift) = (start / 64, start % 64);
        let base = self.current + 1;
        let head = self.filled[first] >> shift;
        if head != 0 {
            return Some(base + u64::from(head.trailing_zeros()));
        }
        let mut ahead = 64 - shift;
        for step in 1..=WORDS {
            let word = self.filled[(first + step) % WORDS];
            if word != 0 {
                return Some(base + ahead as u64 + u64::from(word.trailing_zeros()));
            }
            ahead += 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    #[test]
    fn events_leave_by_time_and_then_by_arrival() {
        for seed in 0..20 {
            let (mut rng, mut wheel) = (Rng::new(seed), Wheel::new(1000));
            // The reference sorts by (time, number), which is what a stable queue does.
            let (mut reference, mut popped, mut number, mut now) = (BinaryHeap::new(), Vec::new(), 0_u64, 0);
            for _ in 0..20_000 {
                if rng.below(5) < 3 {
                    let far = if rng.below(10) == 0 { 40_000_000 } else { 30_000 };
                    let at = now + rng.below(far) as u64 / 7 * 7;
                    wheel.push(at, number);
                    reference.push(Reverse((at, number)));
                    number += 1;
                } else {
                    let limit = now + rng.below(20_000) as u64;
                    let expected = match reference.peek() {
                        Some(Reverse((at, _))) if *at <= limit => reference.pop(),
                        _ => None,
                    };
                    let got = wheel.pop_until(limit);
                    assert_eq!(got.map(|e| (e.at_ps, e.what)), expected.map(|Reverse(e)| e), "seed {seed}");
                    if let Some(event) = got {
                        now = event.at_ps;
                        popped.push(event.what);
                    }
                }
            }
            while let Some(event) = wheel.pop_until(u64::MAX) {
                assert_eq!(Some(Reverse((event.at_ps, event.what))), reference.pop(), "seed {seed}");
                popped.push(event.what);
            }
            assert!(reference.is_empty());
            assert_eq!(popped.len() as u64, number);
        }
    }
}
