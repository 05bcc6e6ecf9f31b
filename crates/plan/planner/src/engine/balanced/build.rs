//! One tree from one source, grown cheapest first.
//!
//! Dijkstra's algorithm over switches, except that what may follow a channel depends on the channel: only channels of a
//! higher rank. A switch that is entered early and cheaply through a channel of high rank can then be a dead end, and
//! the tree may not reach everything. Adding a channel's rank to what it costs, more of it on every attempt, leads in
//! the end to a tree that enters every switch through the lowest rank possible, and that one reaches whatever any route
//! can reach.
//!
//! ```text
//!        [s]──1──▶[a]        cheapest to b: s▶b of rank 9, from which nothing goes on to c
//!          ╲9      │2        lowest rank:   s▶a▶b by 1, 2, and then b▶c of rank 3
//!            ╲▶[b]◀┘──3──▶[c]
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    depth::ceilings,
    net::{NONE, Net},
    schedule::{GROWING, Lateness},
};

/// Which turns a tree may make.
#[derive(Clone, Copy)]
pub(super) enum Rule<'a> {
    /// All of them.
    Free,
    /// Those that increase `rank[channel]`.
    Strict(&'a [u32], Lateness),
    /// All of them, at a price for each that does not increase the rank.
    Soft(&'a [u32], f32),
}

/// Tables kept between trees.
pub(super) struct Builder {
    /// `cost[switch]`: what the path there costs.
    cost: Vec<f32>,
    key: Vec<f32>,
    done: Vec<bool>,
    /// `depth[switch]`: links on the path there.
    depth: Vec<u32>,
    /// Costs, which are positive and so in the order of their bits, over channels.
    queue: BinaryHeap<Reverse<u64>>,
}

impl Builder {
    pub(super) fn new(net: &Net) -> Self {
        let n = net.switches;
        Self {
            cost: vec![0.0; n],
            key: vec![0.0; n],
            done: vec![false; n],
            depth: vec![0; n],
            queue: BinaryHeap::new(),
        }
    }

    /// Grows a tree into `inward[switch]` and says whether it reaches every switch with hosts. Where paths may only be so long, no
    /// switch is entered deeper than its ceiling.
    pub(super) fn grow(&mut self, net: &Net, root: usize, price: &[f32], rule: Rule<'_>, inward: &mut [u32]) -> bool {
        self.grow_from(net, &[root], &[0.0], price, rule, inward)
    }

    /// The same from several switches at once: a path may begin at any of them, at a cost of its own that is not negative. From
    /// several, nothing limits how long paths are.
    pub(super) fn grow_from(
        &mut self,
        net: &Net,
        roots: &[usize],
        start: &[f32],
        price: &[f32],
        rule: Rule<'_>,
        inward: &mut [u32],
    ) -> bool {
        self.key.fill(f32::INFINITY);
        self.done.fill(false);
        inward.fill(NONE);
        self.queue.clear();
        for (&root, &start) in roots.iter().zip(start) {
            self.cost[root] = start;
            self.done[root] = true;
            self.depth[root] = 0;
        }
        let ceiling = match *roots {
            [root] => net.confined.hops().map(|limit| ceilings(net, root, limit)),
            _ => None,
        };
        let reaches = |depth: u32, head: usize| ceiling.as_ref().is_none_or(|ceiling| depth < ceiling[head]);
        let scale = 1.0 / net.channels as f32;
        let key_of = |cost: f32, channel: u32| match rule {
            Rule::Strict(rank, Lateness::Decides) => rank[channel as usize] as f32,
            Rule::Strict(rank, Lateness::Costs(highest)) => cost + highest * rank[channel as usize] as f32 * scale,
            Rule::Free | Rule::Soft(..) => cost,
        };
        let allowed = |channel: u32| roots.iter().all(|root| net.allows(*root, channel));
        for &channel in roots.iter().flat_map(|root| net.from(*root)).filter(|channel| allowed(**channel)) {
            let key = key_of(self.cost[net.tail(channel)] + price[channel as usize], channel);
            let head = net.head(channel);
            if key < self.key[head] && !self.done[head] && reaches(0, head) {
                self.key[head] = key;
                self.queue.push(Reverse(packed(key, channel)));
            }
        }
        let mut missing = (net.hosts.iter().zip(&self.done)).filter(|(hosts, done)| **hosts > 0 && !**done).count();
        while let Some(Reverse(next)) = self.queue.pop() {
            let channel = next as u32;
            let switch = net.head(channel);
            if std::mem::replace(&mut self.done[switch], true) {
                continue;
            }
            missing -= usize::from(net.hosts[switch] > 0);
            inward[switch] = channel;
            let tail = net.tail(channel);
            self.depth[switch] = self.depth[tail] + 1;
            self.cost[switch] = self.cost[tail]
                + price[channel as usize]
                + match rule {
                    Rule::Soft(rank, penalty) if inward[tail] != NONE && !rises(rank, inward[tail], channel) => penalty,
                    _ => 0.0,
                };
            for &next in net.from(switch) {
                let head = net.head(next);
                if self.done[head] || !allowed(next) || !reaches(self.depth[switch], head) {
                    continue;
                }
                let mut cost = self.cost[switch] + price[next as usize];
                match rule {
                    Rule::Strict(rank, _) if !rises(rank, channel, next) => continue,
                    Rule::Soft(rank, penalty) if !rises(rank, channel, next) => cost += penalty,
                    Rule::Free | Rule::Strict(..) | Rule::Soft(..) => {}
                }
                let key = key_of(cost, next);
                if key < self.key[head] {
                    self.key[head] = key;
                    self.queue.push(Reverse(packed(key, next)));
                }
            }
        }
        missing == 0
    }

    /// What all that goes along the last tree pays together.
    pub(super) fn total(&self, shares: &[u32]) -> f64 {
        self.cost.iter().zip(shares).map(|(&cost, &share)| f64::from(cost) * f64::from(share)).sum()
    }

    /// Grows a tree by rising ranks, if there is one at all: cheap if possible, by lowest rank at last.
    pub(super) fn grow_rising(
        &mut self,
        net: &Net,
        root: usize,
        price: &[f32],
        rank: &[u32],
        inward: &mut [u32],
    ) -> bool {
        GROWING.attempts.iter().any(|&lateness| self.grow(net, root, price, Rule::Strict(rank, lateness), inward))
    }
}

#[inline]
fn rises(rank: &[u32], before: u32, after: u32) -> bool {
    rank[before as usize] < rank[after as usize]
}

#[inline]
fn packed(key: f32, channel: u32) -> u64 {
    u64::from(key.to_bits()) << 32 | u64::from(channel)
}
