//! Progressive filling: rates rise together until a channel is full; the flows on it keep their rate, the others rise on
//! (Bertsekas and Gallager, "Data Networks", 6.5).
//!
//! Channels are taken from a heap by the share that they would give; a share only grows while others stop, so a stale entry
//! is put back where it belongs. When flows end, rates are shared anew, once for all that end together, and only from where
//! the first of them stopped: until then it was one among those that rise, and without it the channels on its way fill
//! later, not earlier, so whatever stopped before it stops as before. Marks on the way hold what channels had left.
//!
//! ```text
//!   a ═══╗            c1 gives 1/2 to a and b; then c2 has 1/2 left, for c alone
//!   b ═══╩═ c1 ═══╦═ c2 ═
//!   c ════════════╝
//! ```
//! Cost of sharing: O(Σ hops of flows that rise again + channels · log channels). Memory: linear in the flows of one phase,
//! and channels times marks.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::{Progress, Shared};

/// Flows that end within this share of the time since the last change end together.
const TOGETHER: f64 = 1e-12;

/// Flows over resources, as arrays.
pub(super) struct Sharing<'a> {
    capacity: &'a [f64],
    /// The resources of flow `f`: `ways[starts[f]..starts[f + 1]]`.
    ways: &'a [u32],
    starts: &'a [u32],
    /// The flows of resource `r`: `users[user_starts[r]..user_ends[r]]`, active ones only.
    users: Vec<u32>,
    user_starts: Vec<u32>,
    user_ends: Vec<u32>,
    /// `room[resource]`.
    room: Vec<Remaining>,
    pub(super) rate: Vec<f64>,
    /// How many flows have not ended.
    active: usize,
    /// Flows in the order in which their rates stopped rising.
    order: Vec<u32>,
    /// `place[flow]`: where in `order` the flow stands; [`RISING`] while it does not.
    place: Vec<u32>,
    /// What resources had left on the way, by ascending place.
    marks: Vec<Mark>,
    heap: BinaryHeap<Reverse<(Share, u32)>>,
    /// `together[flow]`: flows whose rate stops rising when this one's does; empty if each stands alone.
    pub(super) together: Vec<std::ops::Range<u32>>,
}

/// The place of a flow whose rate still rises.
const RISING: u32 = u32::MAX;
/// Most marks.
const MARKS: usize = 64;

/// What is left of a resource.
#[derive(Clone, Copy)]
struct Remaining {
    /// Bits a second that nobody has been given.
    left: f64,
    /// Flows that still rise.
    open: u32,
}

/// What resources had left when some flows had stopped.
struct Mark {
    /// How many had.
    stopped: usize,
    room: Vec<Remaining>,
}

/// A non-negative rate, by size; its bits are ordered as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Share(u64);

impl<'a> Sharing<'a> {
    pub(super) fn new(capacity: &'a [f64], ways: &'a [u32], starts: &'a [u32]) -> Self {
        let (resources, flows) = (capacity.len(), starts.len() - 1);
        let mut user_starts = vec![0_u32; resources + 1];
        ways.iter().for_each(|resource| user_starts[*resource as usize + 1] += 1);
        (0..resources).for_each(|resource| user_starts[resource + 1] += user_starts[resource]);
        let mut user_ends = user_starts[..resources].to_vec();
        let mut users = vec![0; ways.len()];
        for flow in 0..flows {
            for resource in &ways[starts[flow] as usize..starts[flow + 1] as usize] {
                let end = &mut user_ends[*resource as usize];
                users[*end as usize] = flow as u32;
                *end += 1;
            }
        }
        Self {
            capacity,
            ways,
            starts,
            users,
            user_starts,
            user_ends,
            room: Vec::with_capacity(resources),
            rate: vec![0.0; flows],
            active: flows,
            order: Vec::with_capacity(flows),
            place: vec![RISING; flows],
            marks: Vec::new(),
            heap: BinaryHeap::with_capacity(resources),
            together: Vec::new(),
        }
    }

    /// Runs flows of so many bits to their ends; nothing comes of it if `go_on` says no, which is asked each time rates
    /// have been shared.
    pub(super) fn run(mut self, bits: Vec<f64>, go_on: &mut dyn FnMut(Progress) -> bool) -> Option<Shared> {
        let flows = bits.len();
        let mut outcome = Shared { seconds: vec![0.0; flows], ..Shared::default() };
        let mut carried = vec![0.0; self.capacity.len()];
        for (flow, amount) in bits.iter().enumerate() {
            for resource in self.way(flow) {
                carried[*resource as usize] += amount;
            }
        }
        outcome.carried = carried;
        let mut clocks = Clocks { rest: bits, since: vec![0.0; flows], rate: vec![0.0; flows], end: vec![0.0; flows] };
        let (mut now, mut ended) = (0.0, Vec::new());
        loop {
            let kept = self.share(&ended);
            if self.order.is_empty() {
                return Some(outcome);
            }
            if !go_on(Progress { ended: flows - self.active, seconds: now }) {
                return None;
            }
            outcome.solutions += 1;
            if outcome.solutions == 1 {
                outcome.first_bps.clone_from(&self.rate);
            }
            for &flow in &self.order[kept..] {
                clocks.set(flow as usize, self.rate[flow as usize], now);
            }
            let next = clocks.next();
            let slack = (next - now).max(next * 1e-3) * TOGETHER;
            clocks.stop(next + slack, &mut ended);
            now = next;
            ended.iter().for_each(|flow| outcome.seconds[*flow as usize] = now);
        }
    }

    fn way(&self, flow: usize) -> &'a [u32] {
        &self.ways[self.starts[flow] as usize..self.starts[flow + 1] as usize]
    }

    /// Shares all capacity max-min fairly among the flows that are left when `gone` have ended. Flows before the place that
    /// it returns have the rates that they had.
    pub(super) fn share(&mut self, gone: &[u32]) -> usize {
        let kept = self.rewind(gone);
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        entries.extend((0_u32..).zip(&self.room).filter(|(_, room)| room.open > 0).map(|(resource, room)| {
            let share = (room.left / f64::from(room.open)).max(0.0);
            Reverse((Share(share.to_bits()), resource))
        }));
        self.heap = entries.into();
        let (flows, mut marked) = (self.rate.len(), kept);
        while self.order.len() < self.active {
            let Some((resource, share)) = self.next_full() else { break };
            if self.order.len() >= marked + flows / MARKS && self.marks.len() < MARKS {
                marked = self.order.len();
                self.marks.push(Mark { stopped: marked, room: self.room.clone() });
            }
            let slots = self.user_starts[resource as usize] as usize..self.user_ends[resource as usize] as usize;
            for slot in slots {
                let flow = self.users[slot] as usize;
                match self.together.get(flow).cloned() {
                    None => self.stop(flow, share),
                    Some(flows) => flows.for_each(|flow| self.stop(flow as usize, share)),
                }
            }
        }
        kept
    }

    /// The next resource that fills while all rise together, and how far they get.
    fn next_full(&mut self) -> Option<(u32, f64)> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Reverse((Share(known), resource)) = *top;
            let room = self.room[resource as usize];
            if room.open == 0 {
                PeekMut::pop(top);
                continue;
            }
            let share = (room.left / f64::from(room.open)).max(0.0);
            if share <= f64::from_bits(known) * (1.0 + 1e-13) {
                PeekMut::pop(top);
                return Some((resource, share));
            }
            *top = Reverse((Share(share.to_bits()), resource));
        }
    }

    /// Takes flows away, and goes back to the last mark before any of them stopped rising; how many had stopped there.
    fn rewind(&mut self, gone: &[u32]) -> usize {
        let first = gone.iter().map(|flow| self.place[*flow as usize] as usize).min().unwrap_or(0);
        self.marks.truncate(self.marks.partition_point(|mark| mark.stopped <= first));
        gone.iter().for_each(|flow| self.remove(*flow as usize));
        self.active -= gone.len();
        let kept = match self.marks.last() {
            Some(mark) => {
                self.room.clone_from(&mark.room);
                mark.stopped
            }
            None => {
                self.room.clear();
                let users = self.user_starts.iter().zip(&self.user_ends).map(|(start, end)| end - start);
                self.room.extend(self.capacity.iter().zip(users).map(|(&left, open)| Remaining { left, open }));
                0
            }
        };
        self.order[kept..].iter().for_each(|flow| self.place[*flow as usize] = RISING);
        self.order.truncate(kept);
        kept
    }

    /// Takes a flow out of its resources' lists, and out of the marks before which it did not stop.
    fn remove(&mut self, flow: usize) {
        for resource in self.way(flow) {
            let (start, end) = (self.user_starts[*resource as usize], &mut self.user_ends[*resource as usize]);
            let users = &mut self.users[start as usize..*end as usize];
            if let Some(at) = users.iter().position(|user| *user as usize == flow) {
                users[at] = users[users.len() - 1];
                *end -= 1;
            }
            self.marks.iter_mut().for_each(|mark| mark.room[*resource as usize].open -= 1);
        }
    }

    /// A flow's rate rises no more.
    #[inline]
    fn stop(&mut self, flow: usize, share: f64) {
        if self.place[flow] != RISING {
            return;
        }
        self.place[flow] = self.order.len() as u32;
        self.order.push(flow as u32);
        self.rate[flow] = share;
        for resource in &self.ways[self.starts[flow] as usize..self.starts[flow + 1] as usize] {
            let room = &mut self.room[*resource as usize];
            room.left -= share;
            room.open -= 1;
        }
    }
}

/// When each flow ends, if its rate stays what it is.
struct Clocks {
    /// `rest[flow]`: bits that were left at `since[flow]`, when its rate became `rate[flow]`.
    rest: Vec<f64>,
    since: Vec<f64>,
    rate: Vec<f64>,
    /// `end[flow]`; infinite once it has ended.
    end: Vec<f64>,
}

impl Clocks {
    /// A flow's rate is this from now on.
    fn set(&mut self, flow: usize, rate: f64, now: f64) {
        if self.rate[flow] != rate {
            self.rest[flow] -= self.rate[flow] * (now - self.since[flow]);
            self.since[flow] = now;
            self.rate[flow] = rate;
            self.end[flow] = now + self.rest[flow].max(0.0) / rate;
        }
    }

    /// When the next flow ends.
    fn next(&self) -> f64 {
        // Several at a time, or each comparison waits for the one before it.
        let lesser = |least: f64, end: f64| if end < least { end } else { least };
        let blocks = self.end.chunks_exact(8);
        let rest = blocks.remainder();
        let mut least = [f64::INFINITY; 8];
        for block in blocks {
            least.iter_mut().zip(block).for_each(|(least, &end)| *least = lesser(*least, end));
        }
        least.iter().chain(rest).copied().fold(f64::INFINITY, lesser)
    }

    /// Ends flows that are over by `until`, and writes down which.
    fn stop(&mut self, until: f64, ended: &mut Vec<u32>) {
        ended.clear();
        for (flow, end) in (0_u32..).zip(&mut self.end) {
            if *end <= until {
                *end = f64::INFINITY;
                ended.push(flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    /// Flows over resources: capacities, and ways as `Sharing` wants them.
    fn random_flows(rng: &mut Rng) -> (Vec<f64>, Vec<u32>, Vec<u32>) {
        let resources = 2 + rng.below(12);
        let capacity: Vec<f64> = (0..resources).map(|_| 1.0 + rng.below(9) as f64).collect();
        let (mut ways, mut starts) = (Vec::new(), vec![0]);
        for _ in 0..1 + rng.below(120) {
            let mut way: Vec<u32> = (0..1 + rng.below(4)).map(|_| rng.below(resources) as u32).collect();
            way.sort_unstable();
            way.dedup();
            ways.extend(way);
            starts.push(ways.len() as u32);
        }
        (capacity, ways, starts)
    }

    /// Sharing from a mark on gives what sharing from the start gives, whoever ends and in whatever order.
    #[test]
    fn sharing_goes_on_from_where_the_first_that_ended_had_stopped() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (capacity, ways, starts) = random_flows(&mut rng);
            let flows = starts.len() as u32 - 1;
            let mut sharing = Sharing::new(&capacity, &ways, &starts);
            sharing.share(&[]);
            let mut left: Vec<u32> = (0..flows).collect();
            while left.len() > 1 {
                let count = 1 + rng.below((left.len() - 1).min(4));
                let gone: Vec<u32> = (0..count).map(|_| left.swap_remove(rng.below(left.len()))).collect();
                let before = sharing.rate.clone();
                let kept = sharing.share(&gone);
                assert_eq!(sharing.order.len(), left.len(), "seed {seed}");
                assert!(
                    sharing.order[..kept].iter().all(|flow| before[*flow as usize] == sharing.rate[*flow as usize])
                );
                let mut anew = Sharing::new(&capacity, &ways, &starts);
                let absent: Vec<u32> = (0..flows).filter(|flow| !left.contains(flow)).collect();
                anew.share(&absent);
                for &flow in &left {
                    let (rate, wanted) = (sharing.rate[flow as usize], anew.rate[flow as usize]);
                    assert!((rate / wanted - 1.0).abs() < 1e-9, "seed {seed}, flow {flow}: {rate} is not {wanted}");
                }
            }
        }
    }

    /// Rates are max-min fair if and only if every flow has a full resource on which nobody is faster.
    #[test]
    fn every_flow_has_its_bottleneck() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (capacity, ways, starts) = random_flows(&mut rng);
            let mut sharing = Sharing::new(&capacity, &ways, &starts);
            sharing.share(&[]);
            let users = |resource: u32| {
                let on = |flow: &usize| sharing.way(*flow).contains(&resource);
                (0..starts.len() - 1).filter(on).map(|flow| sharing.rate[flow]).collect::<Vec<f64>>()
            };
            for flow in 0..starts.len() - 1 {
                let is_bottleneck = |resource: &&u32| {
                    let rates = users(**resource);
                    let full = rates.iter().sum::<f64>() > capacity[**resource as usize] * (1.0 - 1e-9);
                    full && rates.iter().all(|rate| *rate <= sharing.rate[flow] * (1.0 + 1e-9))
                };
                assert!(sharing.way(flow).iter().any(|resource| is_bottleneck(&resource)), "seed {seed}, flow {flow}");
            }
            for (resource, capacity) in (0..).zip(&capacity) {
                let sum: f64 = users(resource).iter().sum();
                assert!(sum <= capacity * (1.0 + 1e-9), "seed {seed}: {sum}");
            }
        }
    }
}
