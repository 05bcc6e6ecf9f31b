//! When each of many connections wants to be looked at.
//!
//! A heap of moments. A connection that puts its moment off, as each packet does, leaves the earlier one in the heap: it comes
//! up, its owner looks again and says when next. So a moment is never missed, and putting it off costs nothing.
//!
//! ```text
//!  set(7, 30)  heap 30:7          set(7, 20)  heap 20:7 30:7          set(7, 90)  heap 20:7 30:7
//!                                 due at 20: 7 looks, set(7, 90)      due at 30: passed over, 90:7 stands
//! ```

use ri2n::Time;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// Moments by identifier.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The one entry of each identifier that counts.
    standing: HashMap<u32, Time>,
}

impl Timers {
    /// Has an identifier come up at this moment, or earlier if it was to come up earlier anyway. O(log n).
    pub(crate) fn set(&mut self, id: u32, at: Time) {
        let is_earlier = self.standing.get(&id).is_none_or(|standing| at < *standing);
        if is_earlier && at != Time::NEVER {
            self.standing.insert(id, at);
            self.heap.push(Reverse((at, id)));
        }
    }

    /// The identifier does not come up any more.
    pub(crate) fn remove(&mut self, id: u32) {
        self.standing.remove(&id);
    }

    /// When the next comes up.
    pub(crate) fn next(&mut self) -> Option<Time> {
        while let Some(Reverse((at, id))) = self.heap.peek() {
            if self.standing.get(id) == Some(at) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out the next identifier whose moment has come.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<u32> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, id)) = self.heap.pop()?;
        self.standing.remove(&id);
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
                match draw(4) {
                    0 => {
                        timers.remove(id);
                        model.remove(&id);
                    }
                    1 => now += draw(50),
                    _ => {
                        let at = Time::from_nanos(now + draw(200));
                        timers.set(id, at);
                        model.entry(id).and_modify(|known| *known = at.min(*known)).or_insert(at);
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
    fn putting_off_takes_no_memory() {
        let mut timers = Timers::default();
        for at in 0..10_000 {
            timers.set(7, Time::from_nanos(1_000 + at));
        }
        assert_eq!((timers.heap.len(), timers.next()), (1, Some(Time::from_nanos(1_000))));
        assert_eq!((timers.take_due(Time::from_nanos(1_000)), timers.next()), (Some(7), None));
    }
}
