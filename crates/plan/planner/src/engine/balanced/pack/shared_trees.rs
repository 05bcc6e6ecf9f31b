//! Trees that many senders share, the loads that follow, and what one more pair costs on a channel.
//!
//! A shared tree has no root of its own: frames climb it from one switch and descend to another. It is kept rooted at
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

use super::super::net::{NONE, Net};
use super::rising::Orders;
use crate::exponential::exp;

/// Shared trees, all spanning.
pub(super) struct SharedTrees {
    pub(super) switches: usize,
    /// `inward[tree · switches + switch]`; [`NONE`] at the switch that the tree hangs from.
    inward: Vec<u32>,
    /// `root[tree]`: where it hangs from.
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

    /// Adds a tree that hangs from `root`.
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

    /// Hangs a tree up elsewhere. Cost: O(depth).
    pub(super) fn hang_from(&mut self, net: &Net, tree: usize, root: usize) {
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

    /// The most loaded channel, then the sum of all loads: less is better.
    pub(super) fn quality(&self, net: &Net) -> (f64, u64) {
        (self.peak(net), self.load.iter().sum())
    }
}

/// Less is better.
pub(super) fn is_better(one: (f64, u64), other: (f64, u64)) -> bool {
    one.0 < other.0 || (one.0 == other.0 && one.1 < other.1)
}

/// The price of channels: exponential in the load, which stands in for the most loaded one (see `price.rs`).
pub(super) struct ChannelPrices {
    sharpness: f64,
    /// Sharpness over the load aimed at.
    pub(super) slope: f64,
    /// `weight[channel]`: e^(slope · time − sharpness).
    pub(super) weight: Vec<f64>,
}

/// What a pair costs on a channel beside its price, in shares of the price at the load aimed at.
const HOP: f64 = 1e-4;

impl ChannelPrices {
    /// Prices by the loads as they are; `ambition` is the load aimed at as a share of the most loaded channel's.
    pub(super) fn new(net: &Net, trees: &SharedTrees, sharpness: f64, ambition: f64) -> Self {
        let slope = sharpness / (trees.peak(net) * ambition).max(1.0);
        let mut prices = Self { sharpness, slope, weight: vec![0.0; net.channels] };
        (0..net.channels as u32).for_each(|channel| prices.follow(net, &trees.load, channel));
        prices
    }

    /// Whether all changes of load have been followed.
    pub(super) fn follows(&self, net: &Net, trees: &SharedTrees) -> bool {
        let mut recounted = Self { weight: vec![0.0; net.channels], ..*self };
        (0..net.channels as u32).for_each(|channel| recounted.follow(net, &trees.load, channel));
        self.weight == recounted.weight
    }

    /// Follows a change of load.
    #[inline]
    pub(super) fn follow(&mut self, net: &Net, load: &[u64], channel: u32) {
        let time = load[channel as usize] as f64 * net.slowness_of(channel as usize);
        self.weight[channel as usize] = exp(self.slope * time - self.sharpness);
    }

    /// What so many pairs more, or less, would change.
    #[inline]
    pub(super) fn change(&self, net: &Net, channel: u32, pairs: f64) -> f64 {
        if pairs == 0.0 {
            return 0.0;
        }
        let time = self.slope * pairs * net.slowness_of(channel as usize);
        self.weight[channel as usize] * (exp(time) - 1.0) + HOP * time
    }

    /// What a pair costs, if it is the only change.
    #[inline]
    pub(super) fn of_pair(&self, net: &Net, channel: u32) -> f64 {
        self.slope * net.slowness_of(channel as usize) * (self.weight[channel as usize] + HOP)
    }
}
