//! Max-min fair rates while transfers come and go.
//!
//! Transfers that share no resource, not even through others, do not concern each other; so when some come or go, rates
//! are shared anew only among those that can be reached from theirs over shared resources. What is computed there is the
//! progressive filling of [`crate::flow`].
//!
//! ```text
//!   a ══ r1 ══ b ══ r2 ══ c        d ══ r3        a goes: b and c are shared anew, d is not looked at
//! ```
//! Cost of a change: O(Σ hops of those concerned · log). Times are whole picoseconds.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Transfers under way over resources.
pub(crate) struct Live<'a> {
    capacity: &'a [f64],
    /// `users[resource]`: slots of transfers that cross it.
    users: Vec<Vec<u32>>,
    slots: Vec<Slot>,
    unused: Vec<u32>,
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Resources whose transfers came or went.
    touched: Vec<u32>,
    /// Rooms and marks of the search, by resource and by slot.
    rooms: Vec<Room>,
    seen: Vec<u32>,
    round: u32,
    /// How often rates were shared.
    pub(crate) solutions: u64,
}

struct Slot {
    /// What the caller knows it by.
    name: u32,
    way: Vec<u32>,
    /// Bits left at `since_ps`.
    rest: f64,
    rate_bps: f64,
    since_ps: u64,
    version: u32,
    seen: u32,
    is_open: bool,
}

#[derive(Clone, Copy, Default)]
struct Room {
    left: f64,
    open: u32,
}

impl<'a> Live<'a> {
    pub(crate) fn new(capacity: &'a [f64]) -> Self {
        Self {
            capacity,
            users: vec![Vec::new(); capacity.len()],
            slots: Vec::new(),
            unused: Vec::new(),
            ends: BinaryHeap::new(),
            touched: Vec::new(),
            rooms: vec![Room::default(); capacity.len()],
            seen: vec![0; capacity.len()],
            round: 0,
            solutions: 0,
        }
    }

    /// A transfer begins; it gets its rate when [`settle`](Self::settle) is called.
    pub(crate) fn add(&mut self, now_ps: u64, name: u32, way: &[u32], bits: f64) {
        let slot = match self.unused.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot {
                    name: 0,
                    way: Vec::new(),
                    rest: 0.0,
                    rate_bps: 0.0,
                    since_ps: 0,
                    version: 0,
                    seen: 0,
                    is_open: false,
                });
                (self.slots.len() - 1) as u32
            }
        };
        let state = &mut self.slots[slot as usize];
        (state.name, state.rest, state.rate_bps, state.since_ps) = (name, bits, 0.0, now_ps);
        state.way.clear();
        state.way.extend(way);
        for resource in way {
            self.users[*resource as usize].push(slot);
        }
        self.touched.extend(way);
    }

    /// When the next transfer ends, if rates stay as they are.
    pub(crate) fn next_end_ps(&mut self) -> Option<u64> {
        while let Some(Reverse((end_ps, slot, version))) = self.ends.peek().copied() {
            if self.slots[slot as usize].version == version {
                return Some(end_ps);
            }
            self.ends.pop();
        }
        None
    }

    /// Ends transfers that are over by now, and writes down their names.
    pub(crate) fn end(&mut self, now_ps: u64, ended: &mut Vec<u32>) {
        while self.next_end_ps().is_some_and(|end_ps| end_ps <= now_ps) {
            let Some(Reverse((_, slot, _))) = self.ends.pop() else { return };
            let state = &mut self.slots[slot as usize];
            state.version = state.version.wrapping_add(1);
            ended.push(state.name);
            let way = std::mem::take(&mut state.way);
            for resource in &way {
                let users = &mut self.users[*resource as usize];
                if let Some(at) = users.iter().position(|user| *user == slot) {
                    users.swap_remove(at);
                }
            }
            self.touched.extend(&way);
            self.unused.push(slot);
        }
    }

    /// Shares anew where something has changed.
    pub(crate) fn settle(&mut self, now_ps: u64) {
        if self.touched.is_empty() {
            return;
        }
        self.solutions += 1;
        let (resources, concerned) = self.reach();
        let mut heap: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::with_capacity(resources.len());
        for &resource in &resources {
            let room =
                Room { left: self.capacity[resource as usize], open: self.users[resource as usize].len() as u32 };
            self.rooms[resource as usize] = room;
            if room.open > 0 {
                heap.push(Reverse((room.share().to_bits(), resource)));
            }
        }
        let mut rising = concerned.len();
        while rising > 0 {
            let Some(Reverse((known, resource))) = heap.pop() else { break };
            let room = self.rooms[resource as usize];
            if room.open == 0 {
                continue;
            }
            // A share only grows while others stop: a stale entry goes back to where it belongs.
            let share = room.share();
            if share > f64::from_bits(known) * (1.0 + 1e-13) {
                heap.push(Reverse((share.to_bits(), resource)));
                continue;
            }
            for at in 0..self.users[resource as usize].len() {
                let slot = self.users[resource as usize][at];
                if std::mem::take(&mut self.slots[slot as usize].is_open) {
                    rising -= 1;
                    self.stop(now_ps, slot, share);
                }
            }
        }
    }

    /// A transfer's rate rises no more.
    fn stop(&mut self, now_ps: u64, slot: u32, share: f64) {
        let state = &mut self.slots[slot as usize];
        for resource in &state.way {
            let room = &mut self.rooms[*resource as usize];
            room.left -= share;
            room.open -= 1;
        }
        if state.rate_bps != share {
            let passed = (now_ps - state.since_ps) as f64 * 1e-12;
            state.rest = (state.rest - state.rate_bps * passed).max(0.0);
            (state.since_ps, state.rate_bps) = (now_ps, share);
            state.version = state.version.wrapping_add(1);
            let end_ps = now_ps.saturating_add((state.rest / share * 1e12).ceil() as u64);
            self.ends.push(Reverse((end_ps, slot, state.version)));
        }
    }

    /// Resources and transfers that can be reached from those that changed.
    fn reach(&mut self) -> (Vec<u32>, Vec<u32>) {
        self.round += 1;
        let round = self.round;
        let mut resources = Vec::new();
        for resource in std::mem::take(&mut self.touched) {
            if std::mem::replace(&mut self.seen[resource as usize], round) != round {
                resources.push(resource);
            }
        }
        let (mut concerned, mut next) = (Vec::new(), 0);
        while let Some(&resource) = resources.get(next) {
            next += 1;
            for slot in &self.users[resource as usize] {
                let state = &mut self.slots[*slot as usize];
                if std::mem::replace(&mut state.seen, round) != round {
                    state.is_open = true;
                    concerned.push(*slot);
                    for other in &state.way {
                        if std::mem::replace(&mut self.seen[*other as usize], round) != round {
                            resources.push(*other);
                        }
                    }
                }
            }
        }
        (resources, concerned)
    }
}

impl Room {
    fn share(self) -> f64 {
        (self.left / f64::from(self.open)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    /// Whoever comes and goes: every transfer has a full resource on which nobody is faster, and none is overfull.
    #[test]
    fn rates_stay_max_min_fair() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let resources = 2 + rng.below(12);
            let capacity: Vec<f64> = (0..resources).map(|_| 1e9 * (1 + rng.below(9)) as f64).collect();
            let mut live = Live::new(&capacity);
            let (mut now_ps, mut open, mut ended) = (0, 0, Vec::new());
            for name in 0..150 {
                let mut way: Vec<u32> = (0..1 + rng.below(4)).map(|_| rng.below(resources) as u32).collect();
                way.sort_unstable();
                way.dedup();
                live.add(now_ps, name, &way, 1e6 * (1 + rng.below(50)) as f64);
                open += 1;
                live.settle(now_ps);
                for slot in live.slots.iter().filter(|slot| !slot.way.is_empty()) {
                    let is_bottleneck = |resource: &u32| {
                        let rates =
                            live.users[*resource as usize].iter().map(|user| live.slots[*user as usize].rate_bps);
                        let sum: f64 = rates.clone().sum();
                        assert!(sum <= capacity[*resource as usize] * (1.0 + 1e-9), "seed {seed}");
                        let is_full = sum > capacity[*resource as usize] * (1.0 - 1e-9);
                        is_full && rates.clone().all(|rate| rate <= slot.rate_bps * (1.0 + 1e-9))
                    };
                    assert!(slot.way.iter().any(is_bottleneck), "seed {seed}: {name}");
                }
                if rng.below(3) > 0 {
                    now_ps = live.next_end_ps().expect("one is open");
                    live.end(now_ps, &mut ended);
                    live.settle(now_ps);
                }
            }
            while let Some(end_ps) = live.next_end_ps() {
                assert!(end_ps >= now_ps);
                now_ps = end_ps;
                live.end(now_ps, &mut ended);
                live.settle(now_ps);
            }
            ended.sort_unstable();
            assert_eq!(ended, (0..open).collect::<Vec<u32>>(), "seed {seed}");
        }
    }
}
