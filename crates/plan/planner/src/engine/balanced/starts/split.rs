//! Start: a single tree, and the tree of the most loaded channel split for each one more.
//!
//! Exploits: a single tree closes no cycle of channel dependencies, since channels up, farthest first, before channels down,
//! nearest first, is an order in which every path rises. Nor does a twin of a tree that takes over half of its senders: whatever the
//! order, one more tree is valid, and the halves bend apart from there. Plans for all numbers of trees come of one sequence.
//! Wins: with flow control nearly everywhere, 1.06 to 2.83 by sender (hyperx 5x4, four trees) and 1.17 to 5.10 by pair; without,
//! torus 5x5 with eight trees, 1.13.
//! Costs: two cycles of improvement for the first tree; a split is a count of two trees' turns and a sweep over both for each
//! sharpness.
//!
//! ```text
//!        [r]        order  b▶a c▶a  a▶r │ r▶a  a▶b a▶c       senders b, c │ split ─▶  b: this tree, c: its twin
//!        [a]
//!     [b]   [c]
//! ```

use fabric::rng::Rng;

use super::spread::spread;
use crate::engine::balanced::{
    bent_order::Orders,
    branch::Scratch,
    improve::{Candidate, Stop, is_better},
    net::{NONE, Net},
    rank::ranks_by_key,
    schedule::SHARED,
    senders::{Share, Unit, improve},
    shared_trees::SharedTrees,
    work::Work,
};

/// One good tree for all. It closes no cycle of channel dependencies, so it needs no order.
pub(in crate::engine::balanced) fn single(net: &Net, units: Vec<Unit>, rng: &mut Rng, work: &mut Work<'_>) -> Share {
    let stop = Stop { enough: 0.0, cycles: SHARED.cycles.len(), visits: u64::MAX };
    improve(net, spread(net, units, 1, rng, work), stop, rng, work)
}

/// A single tree with an order for each lane in which everything on it rises.
pub(in crate::engine::balanced) fn in_order(net: &Net, one: &Share, lanes: usize) -> Share {
    let (root, inward) = (one.trees.root(0), one.trees.tree(0));
    let mut depth = vec![0_u32; net.switches];
    let mut order = Vec::new();
    one.trees.upward(net, 0, &mut order);
    for &switch in order.iter().rev() {
        let channel = inward[switch as usize];
        if channel != NONE {
            depth[switch as usize] = depth[net.tail(channel)] + 1;
        }
    }
    let key: Vec<f64> = (0..net.channels as u32)
        .map(|channel| {
            let (tail, head) = (f64::from(depth[net.tail(channel)]), f64::from(depth[net.head(channel)]));
            if head < tail { -tail } else { head }
        })
        .collect();
    let mut trees = SharedTrees::new(net, Some(Orders::new(net, vec![ranks_by_key(&key); lanes])));
    trees.push(root, inward, 0);
    let mut share = Share { trees, units: one.units.clone() };
    let settled = share.settle(net);
    debug_assert!(settled, "a single tree closes no cycle");
    share
}

/// One tree more: that with the most to do with the most loaded channel is split, and its halves bend apart. No worse.
pub(in crate::engine::balanced) fn split(net: &Net, mut best: Share, rng: &mut Rng, work: &mut Work<'_>) -> Share {
    let Some(tree) = best.most_loaded_tree(net) else { return best };
    work.spend(best.trees.len() * net.switches);
    if best.split(net, tree) {
        let mut scratch = Scratch::new(net);
        let twin = best.trees.len() - 1;
        let mut current = best.clone();
        for sharpness in SHARED.parting {
            let mut prices = current.trees.prices(net, sharpness);
            for tree in [tree, twin] {
                current.sweep(net, tree, &mut prices, &mut scratch, rng, work);
            }
            if is_better(current.quality(net), best.quality(net)) {
                best.clone_from(&current);
            }
        }
    }
    best
}

impl Share {
    /// Splits a tree: it has a twin afterwards to which half of its senders turn, those that lie together on it. What was
    /// allowed stays allowed, since the twin is the same tree, and so do all loads. False, with everything as before, if it has
    /// but one sender. Cost: that of the turns of two trees.
    pub(in crate::engine::balanced) fn split(&mut self, net: &Net, tree: usize) -> bool {
        let mut order = Vec::new();
        self.trees.upward(net, tree, &mut order);
        let mut place = vec![0; net.switches];
        let below = self.branches(net, tree, &order);
        below.into_iter().enumerate().for_each(|(at, switch)| place[switch] = at);
        let mut own: Vec<usize> = (0..self.units.len()).filter(|&unit| self.units[unit].tree == tree).collect();
        if own.len() < 2 {
            return false;
        }
        own.sort_by_key(|&unit| place[self.units[unit].switch]);
        let before = self.turns(net, tree);
        let inward = self.trees.tree(tree).to_vec();
        self.trees.push(self.trees.root(tree), &inward, self.trees.lane[tree]);
        let twin = self.trees.len() - 1;
        own.iter().skip(own.len() / 2).for_each(|&unit| self.units[unit].tree = twin);
        let [left, moved] = [tree, twin].map(|tree| self.turns(net, tree));
        if let Some(orders) = &mut self.trees.orders {
            // Another lane for the twin, if that closes no cycle there; in its own it never does.
            let own = self.trees.lane[tree];
            let other = (twin % orders.lanes()) as u8;
            orders.release(net, own, &before);
            let is_kept = orders.adopt(net, own, &left);
            debug_assert!(is_kept, "half of the senders take no turn that all did not");
            let lane = [other, own].into_iter().find(|&lane| orders.adopt(net, lane, &moved));
            self.trees.lane[twin] = lane.expect("the twin's turns were in use in its own lane");
        }
        debug_assert!(self.is_counted(net), "loads or turns differ from a recount");
        true
    }

    /// The switches of a tree, those of a branch next to each other; `order` has children before parents.
    fn branches(&self, net: &Net, tree: usize, order: &[u32]) -> Vec<usize> {
        let inward = self.trees.tree(tree);
        let mut size = vec![1_usize; net.switches];
        for &switch in order.iter().filter(|switch| inward[**switch as usize] != NONE) {
            size[net.tail(inward[switch as usize])] += size[switch as usize];
        }
        let mut place = vec![0; net.switches];
        let mut next = vec![1; net.switches];
        let mut found = vec![0; net.switches];
        for &switch in order.iter().rev() {
            let switch = switch as usize;
            if inward[switch] != NONE {
                let parent = net.tail(inward[switch]);
                place[switch] = place[parent] + next[parent];
                next[parent] += size[switch];
            }
            found[place[switch]] = switch;
        }
        found
    }

    /// The tree with the most to do with the most loaded channel, of those that can be split.
    fn most_loaded_tree(&self, net: &Net) -> Option<usize> {
        let mut units = vec![0_usize; self.trees.len()];
        self.units.iter().for_each(|unit| units[unit.tree] += 1);
        let time = |channel: usize| self.trees.load[channel] as f64 * net.slowness_of(channel);
        let most_loaded = (0..net.channels).max_by(|&a, &b| time(a).total_cmp(&time(b)).then(b.cmp(&a)))?;
        let share = |tree: usize| {
            let loads = self.loads(net, tree);
            loads.iter().find(|(channel, _)| *channel as usize == most_loaded).map_or(0, |(_, pairs)| *pairs)
        };
        (0..self.trees.len())
            .filter(|&tree| units[tree] > 1)
            .max_by_key(|&tree| (share(tree), units[tree], std::cmp::Reverse(tree)))
    }
}
