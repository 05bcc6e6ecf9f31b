//! The channel dependency graph: which channel a frame may hold while it waits for which other.
//!
//! With flow control a full buffer stops the channel before it. If frames can hold channel *a* while they wait for
//! *b*, there is a dependency *a → b*; a cycle of dependencies can freeze for good, and without a cycle nothing can
//! (Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987).
//!
//! ```text
//!   routes 0▶1▶2, 1▶2▶3, 2▶3▶0, 3▶0▶1 on a ring:   01 → 12 → 23 → 30 → 01   a cycle
//! ```

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use fabric::{ChannelId, Topology, graph::Arc};

use crate::{
    fan::{Direction, Fan},
    measure::crossed,
    routing::Routing,
};

/// A dependency as an arc between numbers of channels: frames may go from one channel straight to the other.
pub(crate) type Dependency = Arc;

/// A channel dependency graph, filled fan by fan.
#[derive(Clone, Debug)]
pub(crate) struct Dependencies {
    /// `next[channel]`: ascending.
    next: Vec<Vec<ChannelId>>,
}

impl Dependencies {
    pub(crate) fn none(topology: &Topology) -> Self {
        Self { next: vec![Vec::new(); topology.channel_count()] }
    }

    /// Adds the dependencies of a fan. Cost: O(switches · log of dependencies at a channel).
    pub(crate) fn add_fan(&mut self, topology: &Topology, routing: &Routing, fan: &Fan<'_>, used: &mut Vec<bool>) {
        for_each_of(topology, routing, fan, used, |from, to| {
            self.add(from, to);
        });
    }

    /// Every dependency.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChannelId, ChannelId)> + '_ {
        let numbered = self.next.iter().enumerate();
        numbered.flat_map(|(from, next)| next.iter().map(move |to| (ChannelId::new(from), *to)))
    }

    /// Adds dependencies, and numbers the channels as [`rank`](Self::rank) does; none, and nothing is added, if they close a
    /// cycle. Cost: O(channels + dependencies).
    pub(crate) fn rank_with(&mut self, more: &BTreeSet<(ChannelId, ChannelId)>) -> Option<Vec<u32>> {
        let new: Vec<(ChannelId, ChannelId)> = more.iter().copied().filter(|&(from, to)| self.add(from, to)).collect();
        let rank = self.rank().ok();
        if rank.is_none() {
            new.into_iter().for_each(|(from, to)| self.next[from.index()].retain(|next| *next != to));
        }
        rank
    }

    /// Whether the dependency is new.
    fn add(&mut self, from: ChannelId, to: ChannelId) -> bool {
        let next = &mut self.next[from.index()];
        let place = next.binary_search(&to);
        if let Err(at) = place {
            next.insert(at, to);
        }
        place.is_err()
    }

    /// Numbers the channels so that every dependency increases: `rank[channel]`.
    ///
    /// # Errors
    /// The channels of a cycle, in order, if there is one.
    pub(crate) fn rank(&self) -> Result<Vec<u32>, Vec<ChannelId>> {
        let count = self.next.len();
        let mut waiting = vec![0_u32; count];
        self.next.iter().flatten().for_each(|to| waiting[to.index()] += 1);
        let mut ready: BinaryHeap<_> = (0..count).filter(|&c| waiting[c] == 0).map(Reverse).collect();
        let mut rank = vec![0; count];
        let mut numbered = 0;
        while let Some(Reverse(channel)) = ready.pop() {
            rank[channel] = numbered;
            numbered += 1;
            for to in &self.next[channel] {
                waiting[to.index()] -= 1;
                if waiting[to.index()] == 0 {
                    ready.push(Reverse(to.index()));
                }
            }
        }
        if numbered as usize == count { Ok(rank) } else { Err(self.cycle(&waiting)) }
    }

    /// A cycle among channels that were never ready. Each of them waits for another of them, so walking backward from
    /// any must come round.
    fn cycle(&self, waiting: &[u32]) -> Vec<ChannelId> {
        let stuck = |channel: usize| waiting[channel] > 0;
        let mut before = vec![None; self.next.len()];
        for (from, next) in self.next.iter().enumerate().filter(|(from, _)| stuck(*from)) {
            next.iter().for_each(|to| before[to.index()] = Some(from));
        }
        let mut seen = vec![false; self.next.len()];
        let mut at = (0..self.next.len()).find(|&channel| stuck(channel)).expect("some channel is stuck");
        while !std::mem::replace(&mut seen[at], true) {
            at = before[at].expect("a stuck channel waits for a stuck one");
        }
        let mut cycle = vec![ChannelId::new(at)];
        let mut back = before[at].expect("on a cycle");
        while back != at {
            cycle.push(ChannelId::new(back));
            back = before[back].expect("on a cycle");
        }
        cycle.reverse();
        cycle
    }
}

/// Visits the dependencies of a fan: channels that its frames may hold, and those for which they then wait.
/// Cost: O(switches).
pub(crate) fn for_each_of(
    topology: &Topology,
    routing: &Routing,
    fan: &Fan<'_>,
    used: &mut Vec<bool>,
    mut visit: impl FnMut(ChannelId, ChannelId),
) {
    let rooted = routing.trees[fan.tree].rooted_at(topology, fan.root);
    used.clear();
    used.resize(topology.switches().len(), false);
    for &switch in rooted.order.iter().rev() {
        let here = topology.hosts_of(switch).iter().any(|host| fan.peers.contains(*host));
        let Some(last) = rooted.inward[switch.index()] else { continue };
        if !here && !used[switch.index()] {
            continue;
        }
        let parent = topology.tail(last);
        used[parent.index()] = true;
        if let Some(first) = rooted.inward[parent.index()] {
            match fan.direction {
                Direction::Outward => visit(first, last),
                Direction::Inward => visit(crossed(last, fan.direction), crossed(first, fan.direction)),
            }
        }
    }
}
