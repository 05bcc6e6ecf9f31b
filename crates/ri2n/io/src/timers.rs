//! When each of many connections wants to be looked at.
//!
//! A heap of moments, one for each connection. A connection that puts its moment off, as each packet does, leaves the earlier
//! one in the heap; when that comes up it gives way to the later one, and nobody is woken. Putting off costs nothing.
//!
//! ```text
//!  put(7, 30)  heap 30:7          put(7, 20)  heap 20:7 30:7          put(7, 90)  heap 20:7 30:7, wanted 90
//!                                                                     next: 20:7 becomes 90:7; 30:7 is passed over
//! ```

use crate::ids::IdMap;
use ri2n::Time;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Moments by identifier.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    moments: IdMap<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    /// When the identifier comes up.
    wanted: Time,
    /// The one entry of the heap that counts, no later.
    standing: Time,
}

impl Timers {
    /// Has an identifier come up at this moment, and at no other. O(log n), O(1) if it is later than before.
    pub(crate) fn put(&mut self, id: u32, at: Time) {
        if at == Time::NEVER {
            return self.remove(id);
        }
        match self.moments.get_mut(&id) {
            Some(moment) if moment.standing <= at => moment.wanted = at,
            _ => {
                self.moments.insert(id, Moment { wanted: at, standing: at });
                self.heap.push(Reverse((at, id)));
            }
        }
    }

    /// Has an identifier come up at this moment, or earlier if it is to come up earlier anyway.
    pub(crate) fn bring_forward(&mut self, id: u32, at: Time) {
        if at != Time::NEVER && self.moments.get(&id).is_none_or(|moment| at < moment.wanted) {
            self.put(id, at);
        }
    }

    /// The identifier does not come up any more.
    pub(crate) fn remove(&mut self, id: u32) {
        self.moments.remove(&id);
    }

    /// When the next comes up.
    pub(crate) fn next(&mut self) -> Option<Time> {
        while let Some(Reverse((at, id))) = self.heap.peek().copied() {
            match self.moments.get_mut(&id) {
                Some(moment) if moment.wanted == at => return Some(at),
                Some(moment) if moment.standing == at => {
                    moment.standing = moment.wanted;
                    let later = Reverse((moment.wanted, id));
                    self.heap.pop();
                    self.heap.push(later);
                }
                _ => _ = self.heap.pop(),
            }
        }
        None
    }

    /// Takes out the next identifier whose moment has come.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<u32> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, id)) = self.heap.pop()?;
        self.moments.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A model that keeps one moment an identifier, and looks through all of them.
    #[test]
    fn nobody_comes_up_late_or_unasked() {
        for seed in 1..200_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut draw = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % bound
            };
            let (mut timers, mut model, mut now) = (Timers::default(), BTreeMap::<u32, Time>::new(), 0);
            for _ in 0..500 {
                let id = draw(20) as u32;
                let at = Time::from_nanos(now + draw(200));
                match draw(5) {
                    0 => {
                        timers.remove(id);
                        model.remove(&id);
                    }
                    1 => now += draw(50),
                    2 => {
                        timers.bring_forward(id, at);
                        model.entry(id).and_modify(|known| *known = at.min(*known)).or_insert(at);
                    }
                    _ => {
                        timers.put(id, at);
                        model.insert(id, at);
                    }
                }
                let time = Time::from_nanos(now);
                assert_eq!(timers.next(), model.values().min().copied(), "seed {seed}");
                while let Some(id) = timers.take_due(time) {
                    assert!(model.remove(&id).is_some_and(|at| at <= time), "seed {seed}: {id} was not due");
                }
                assert!(model.values().all(|at| *at > time), "seed {seed}: somebody was missed");
            }
        }
    }

    #[test]
    fn putting_off_takes_no_memory_and_wakes_nobody() {
        let mut timers = Timers::default();
        for at in 0..10_000 {
            timers.put(7, Time::from_nanos(1_000 + at));
        }
        assert_eq!((timers.heap.len(), timers.next()), (1, Some(Time::from_nanos(10_999))));
        assert_eq!(timers.take_due(Time::from_nanos(10_998)), None);
        assert_eq!((timers.take_due(Time::from_nanos(10_999)), timers.next()), (Some(7), None));
        timers.put(7, Time::from_nanos(20_000));
        timers.put(7, Time::NEVER);
        assert_eq!(timers.next(), None);
    }
}
