//! Trees that many senders share, the loads that follow, and what one more pair costs on a channel.
//!
//! A shared tree has no root of its own: frames go up it from one switch and down to another. It is kept rooted at
//! some switch all the same, which can change at any time, as the channel by which it enters every other switch; the
//! reverse of that channel leads up.
//!
//! ```text
//!        [r]            inward: a ← ra, b ← ab, c ← ac
//!         │             b to c: up ba, down ac
//!        [a]
//!       ╱   ╲           rooted at b instead: a ← ba, r ← ar, c ← ac
//!     [b]   [c]
//! ```

use fabric::graph::breadth_first;

use super::{
    bent_order::Orders,
    improve::Quality,
    net::{NONE, Net},
    price::Prices,
    schedule::SHARED,
};

/// Shared trees, all spanning.
pub(super) struct SharedTrees {
    pub(super) switches: usize,
    /// `inward[tree · switches + switch]`; [`NONE`] at the root.
    inward: Vec<u32>,
    /// `root[tree]`: the switch that it is rooted at.
    root: Vec<u32>,
    /// `lane[tree]`.
    pub(super) lane: Vec<u8>,
    /// `load[channel]`: ordered pairs of hosts whose path crosses it.
    pub(super) load: Vec<u64>,
    /// The order of channels in each lane, where paths must rise.
    pub(super) orders: Option<Orders>,
}

impl Clone for SharedTrees {
    fn clone(&self) -> Self {
        let Self { switches, inward, root, lane, load, orders } = self;
        let (inward, root, lane) = (inward.clone(), root.clone(), lane.clone());
        Self { switches: *switches, inward, root, lane, load: load.clone(), orders: orders.clone() }
    }

    /// Copies into the tables that are there.
    fn clone_from(&mut self, other: &Self) {
        let Self { switches, inward, root, lane, load, orders } = self;
        *switches = other.switches;
        inward.clone_from(&other.inward);
        root.clone_from(&other.root);
        lane.clone_from(&other.lane);
        load.clone_from(&other.load);
        orders.clone_from(&other.orders);
    }
}

impl SharedTrees {
    pub(super) fn new(net: &Net, orders: Option<Orders>) -> Self {
        let (inward, root, lane) = (Vec::new(), Vec::new(), Vec::new());
        Self { switches: net.switches, inward, root, lane, load: vec![0; net.channels], orders }
    }

    /// Adds a tree that is rooted at `root`.
    pub(super) fn push(&mut self, root: usize, inward: &[u32], lane: u8) {
        self.inward.extend_from_slice(inward);
        self.root.push(root as u32);
        self.lane.push(lane);
    }

    pub(super) fn len(&self) -> usize {
        self.root.len()
    }

    pub(super) fn root(&self, tree: usize) -> usize {
        self.root[tree] as usize
    }

    /// The channels into each switch.
    #[inline]
    pub(super) fn tree(&self, tree: usize) -> &[u32] {
        &self.inward[tree * self.switches..(tree + 1) * self.switches]
    }

    #[inline]
    pub(super) fn tree_mut(&mut self, tree: usize) -> &mut [u32] {
        &mut self.inward[tree * self.switches..(tree + 1) * self.switches]
    }

    /// Roots a tree at another switch. Cost: O(depth).
    pub(super) fn root_at(&mut self, net: &Net, tree: usize, root: usize) {
        self.root[tree] = root as u32;
        let inward = self.tree_mut(tree);
        let (mut at, mut entering) = (root, NONE);
        loop {
            let above = std::mem::replace(&mut inward[at], entering);
            if above == NONE {
                return;
            }
            entering = net.reverse(above);
            at = net.tail(above);
        }
    }

    /// The switches of a tree, children before parents.
    pub(super) fn upward(&self, net: &Net, tree: usize, order: &mut Vec<u32>) {
        let inward = self.tree(tree);
        let mut waiting = vec![0_u32; self.switches];
        inward.iter().filter(|channel| **channel != NONE).for_each(|&channel| waiting[net.tail(channel)] += 1);
        order.clear();
        for leaf in 0..self.switches {
            let mut at = leaf;
            while waiting[at] == 0 {
                waiting[at] = u32::MAX;
                order.push(at as u32);
                if inward[at] == NONE {
                    break;
                }
                at = net.tail(inward[at]);
                waiting[at] -= 1;
            }
        }
    }

    /// Whether loads, and turns in use, are those of the same trees counted from nothing.
    pub(super) fn agrees_with(&self, recounted: &Self, net: &Net) -> bool {
        let same_turns = match (&self.orders, &recounted.orders) {
            (Some(own), Some(other)) => own.agrees_with(other, net),
            (None, None) => true,
            _ => false,
        };
        self.load == recounted.load && same_turns
    }

    /// The most loaded channel, in pairs of hosts on the fastest rate.
    pub(super) fn peak(&self, net: &Net) -> f64 {
        (0..net.channels).map(|channel| self.load[channel] as f64 * net.slowness_of(channel)).fold(0.0, f64::max)
    }

    /// Prices by the loads as they are, at which the load aimed at is a little below the peak.
    pub(super) fn prices(&self, net: &Net, sharpness: f64) -> Prices {
        Prices::new(net, &self.load, sharpness, self.peak(net) * SHARED.ambition)
    }

    /// The most loaded channel, then the sum of all loads: less is better.
    pub(super) fn quality(&self, net: &Net) -> Quality {
        (self.peak(net), self.load.iter().sum())
    }
}

/// Reaches whatever a tree leaves out from wherever it can be reached.
pub(super) fn span(net: &Net, root: usize, inward: &mut [u32]) {
    let covered = (0..net.switches).filter(|&at| at == root || inward[at] != NONE);
    let found = breadth_first(net.switches, covered, |switch| net.neighbours(switch));
    for (own, found) in inward.iter_mut().zip(found.inward) {
        *own = found.unwrap_or(*own);
    }
}
