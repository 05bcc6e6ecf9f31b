//! One plan after the other, each with at most one tree more: the cap on VLANs says where to stop.
//!
//! A plan for few trees is a plan for more. So all caps share one sequence of plans, none worse than the one before,
//! and a cap of V ends it at the V-th: whatever the cap, the first V plans are the same, and the same number of steps
//! never makes a worse plan of a larger cap. From one plan to the next the most loaded tree is split, which any order of
//! channels allows. Plans for more trees than the cap are looked at as well on small networks, since some of their trees may turn
//! out to be the same. On *landings* plans made afresh for so many trees compete: trees for clusters of senders
//! (`cluster.rs`), where paths must rise within an order annealed for them (`ordered.rs`), trees spread
//! over the network, or what is left of routes with more trees.
//!
//! ```text
//!   trees     1 ── 2 ── 3 ── 4 ── 5 ── 6 ── 7 ── 8 ── …       ── one tree split, and its halves bend apart
//!   afresh         │         │                   │            │  if better, goes on from here
//! ```

use std::collections::BTreeSet;

use fabric::{FlowControl, Tagging, rng::Rng};

use crate::{SearchEvent, SearchPart, SharedStart, rivals, routing::Routing};

use super::super::{net::Net, work::Work};
use super::{
    Packer,
    cluster::clustered,
    ordered::ordered,
    pairs::{Pairs, improve as improve_pairs},
    share::{self, Share, improve},
    shared_trees::{ChannelPrices, is_better},
    start::Starts,
    sweep::Scratch,
};

/// Everything is improved whenever so large a part of the trees of a power of two has been added.
const GROWTH: usize = 4;
/// Cycles of improvement where trees are few, and later.
const CYCLES_FEW: usize = 2;
const CYCLES: usize = 1;
/// So many trees are few.
const FEW: usize = 16;
/// For so many trees, where paths must rise, copies of one tree compete too: all bend apart at once.
const COPIES: usize = 16;
/// Clusters of senders are worth a try for so many trees or more; fewer are too wide.
const CLUSTERS_MIN: usize = 32;
/// A plan made afresh is improved if its most loaded channel carries no more than so many times as much as the best one's.
const PROMISING: f64 = 1.3;
/// Where paths must rise, orders are annealed for so many clusters or more, and how often if they come to nothing; after each
/// landing on which all of them did, once less.
const ORDERED_MIN: usize = 8;
const ORDERED_TRIES: usize = 2;
/// Where sharing makes some channel so many times as busy as the bound, trees of an annealed order are so good that little is
/// improved between landings.
const SCARCE: f64 = 1.5;
/// With fewer channels a switch on average that no cluster takes, clusters wall each other in.
const OPEN_MIN: f64 = 3.0;
/// Where sharing need not make any channel more than this part as busy as the bound, order is not what is scarce.
const PLENTY: f64 = 0.5;
/// Sharpness of prices while the halves of a split tree part.
const PARTING: [f64; 3] = [6.0, 15.0, 40.0];

/// A plan to go on from.
struct StartingPoint {
    share: Share,
    /// Whether it comes from an order that was annealed for clusters.
    is_ordered: bool,
}

/// What plans on the way come from beside the one before.
#[derive(Clone, Copy)]
struct Given<'a> {
    starts: &'a Starts<'a>,
    /// Routes with more trees.
    routings: &'a [Routing],
    /// One tree, if copies of it are to compete.
    single: Option<&'a Share>,
}

impl Packer<'_> {
    /// The best routes by source on as many trees as there may be, as far as there is time; `landing` is told of the best so
    /// far wherever the number of trees is a power of two.
    pub(super) fn climb(
        &self,
        starts: &Starts<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
        landing: &mut dyn FnMut(&Share, &mut Rng, &mut Work<'_>),
    ) -> Share {
        let single = starts.single(rng, work);
        let first = if self.waits() { starts.copies(&single, 1) } else { single.clone() };
        let given = Given { starts, routings, single: Some(&single) };
        self.climb_from(StartingPoint { share: first, is_ordered: false }, given, rng, work, landing)
    }

    /// The same from the middle of the way on: from half as many trees as there may be.
    pub(super) fn climb_half(
        &self,
        starts: &Starts<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        let half = (self.limits.trees.next_power_of_two() / 2).max(ORDERED_MIN);
        let half = half.min(self.limits.trees);
        let share = self.ordered(starts, half, (ORDERED_TRIES, f64::INFINITY), rng, work)?;
        let first = StartingPoint { share, is_ordered: true };
        let given = Given { starts, routings, single: None };
        Some(self.climb_from(first, given, rng, work, &mut |_, _, _| {}))
    }

    fn climb_from(
        &self,
        first: StartingPoint,
        Given { starts, routings, single }: Given<'_>,
        rng: &mut Rng,
        work: &mut Work<'_>,
        landing: &mut dyn FnMut(&Share, &mut Rng, &mut Work<'_>),
    ) -> Share {
        let net = self.net;
        let StartingPoint { share: mut best, mut is_ordered } = first;
        let mut tries = ORDERED_TRIES;
        let sources = starts.units().len();
        let landings: BTreeSet<usize> = routings.iter().map(|routing| routing.trees.len()).collect();
        if self.is_small() {
            let trees = best.trees.len();
            best = self.or_remainder(best, starts, routings, trees, work);
        }
        // The best plan within the cap, once there are more trees.
        let mut capped: Option<Share> = None;
        let mut start = if is_ordered { SharedStart::Ordered } else { SharedStart::Single };
        self.tell(&best, start, work);
        for trees in best.trees.len() + 1..=self.last_rung(sources) {
            if trees == self.limits.trees + 1 {
                capped = Some(best.clone());
            }
            let peak = capped.as_ref().unwrap_or(&best).trees.peak(net);
            if peak <= self.enough {
                break;
            }
            work.progress(best.trees.peak(net), self.limits.bound);
            let mut before = best.trees.quality(net);
            let mut lower = |best: &Share, by: SharedStart, start: &mut SharedStart| {
                if is_better(best.trees.quality(net), before) {
                    (before, *start) = (best.trees.quality(net), by);
                }
            };
            best = self.one_more(best, trees, is_ordered, rng, work);
            lower(&best, SharedStart::Split, &mut start);
            let near_all = sources.checked_sub(trees).is_some_and(usize::is_power_of_two);
            if trees.is_power_of_two() || near_all || landings.contains(&trees) {
                best = self.or_afresh(best, starts, routings, trees, rng, work);
            } else if self.is_small() {
                best = self.or_remainder(best, starts, routings, trees, work);
            }
            lower(&best, SharedStart::Afresh, &mut start);
            if self.waits() && trees >= ORDERED_MIN && (trees.is_power_of_two() || is_thrice_a_power(trees)) {
                match self.ordered(starts, trees, (tries, best.trees.peak(net)), rng, work) {
                    Some(share) if is_better(share.trees.quality(net), best.trees.quality(net)) => {
                        (best, is_ordered) = (share, true);
                    }
                    Some(_) => {}
                    None => tries = tries.saturating_sub(1),
                }
            }
            lower(&best, SharedStart::Ordered, &mut start);
            if trees == COPIES && self.waits() && !is_ordered && work.uses(SearchPart::Copies) {
                if let Some(single) = single {
                    let copies = improve(net, starts.copies(single, COPIES), self.briefly(CYCLES_FEW, work), rng, work);
                    best = better(net, best, copies);
                }
            }
            lower(&best, SharedStart::Copies, &mut start);
            if trees.is_power_of_two() || trees == self.limits.trees || best.trees.peak(net) <= self.enough {
                self.tell(&best, start, work);
            }
            match &mut capped {
                None if trees.is_power_of_two() => landing(&best, rng, work),
                Some(capped)
                    if is_better(best.trees.quality(net), capped.trees.quality(net))
                        && starts.distinct_trees(&best) <= self.limits.trees =>
                {
                    capped.clone_from(&best);
                }
                _ => {}
            }
        }
        capped.unwrap_or(best)
    }

    /// Tells the watch how good shared trees are.
    fn tell(&self, best: &Share, start: SharedStart, work: &mut Work<'_>) {
        let (trees, load) = (best.trees.len(), best.trees.peak(self.net));
        work.happened(&SearchEvent::SharedTrees { trees, start, load });
    }

    /// The most trees of a plan that is looked at. Each sender has a tree of its own in the plan after the last one.
    fn last_rung(&self, sources: usize) -> usize {
        let last = if self.is_small() && self.policy.tagging != Tagging::Pair { sources.saturating_sub(1) } else { 0 };
        last.max(self.limits.trees)
    }

    /// Whether the network is so small that every plan can be looked at.
    fn is_small(&self) -> bool {
        self.net.channels * self.net.switches <= rivals::SIZE_MAX && self.policy.time_limit.is_none()
    }

    /// So many trees for clusters whose order was annealed for them, where paths must rise; none if so many tries come to
    /// nothing, or to more than a few times as much as `limit` on the most loaded channel.
    pub(super) fn ordered(
        &self,
        starts: &Starts<'_>,
        trees: usize,
        (tries, limit): (usize, f64),
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        let lanes = usize::from(self.policy.flow_control.lanes().unwrap_or(1));
        let (units, net) = (starts.units(), self.net);
        let open = net.channels.saturating_sub(2 * units.len().saturating_sub(trees));
        let is_walled = (open as f64) < OPEN_MIN * net.switches as f64;
        for _ in 0..tries {
            if work.expired()
                || !work.uses(SearchPart::Ordered)
                || is_walled
                || self.least(trees) < PLENTY * self.limits.bound
            {
                return None;
            }
            if let Some(share) = ordered(net, units.clone(), trees, lanes, (limit, self.shaping), rng, work) {
                return Some(improve(net, share, self.briefly(CYCLES, work), rng, work));
            }
        }
        None
    }

    /// The best routes by pair for one tree, for few and then for more, each time from trees spread over the network.
    pub(super) fn climb_by_pair(&self, starts: &Starts<'_>, rng: &mut Rng, work: &mut Work<'_>) -> Option<Pairs> {
        let net = self.net;
        // A clone, as what follows shall not depend on how the one tree was found.
        let single = starts.single(&mut rng.clone(), work);
        let mut best = Pairs::from_share(net, &single);
        for trees in (2..=self.limits.trees).filter(|trees| trees.is_power_of_two() || is_thrice_a_power(*trees)) {
            let peak = best.as_ref().map_or(f64::INFINITY, |best| best.trees.peak(net));
            if peak <= self.enough || (work.expired() && best.is_some()) {
                break;
            }
            work.progress(peak, self.limits.bound);
            let share = share::spread(net, starts.units(), trees, rng, work);
            if let Some(pairs) = Pairs::from_share(net, &share) {
                let pairs = improve_pairs(net, pairs, self.cycles(CYCLES), rng, work);
                best = Some(better_pairs(net, best, pairs));
            }
        }
        best
    }

    /// Whether frames may wait for each other.
    pub(super) fn waits(&self) -> bool {
        self.policy.flow_control != FlowControl::None
    }

    /// A plan, or a better one made for so many trees alone.
    fn or_afresh(
        &self,
        best: Share,
        starts: &Starts<'_>,
        routings: &[Routing],
        trees: usize,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Share {
        let net = self.net;
        let mut fresh = self.remainder(starts, routings, trees, work);
        if !self.waits() && !work.expired() {
            let mut others = Vec::new();
            if work.uses(SearchPart::Spread) {
                others.push(share::spread(net, starts.units(), trees, rng, work));
            }
            if trees >= CLUSTERS_MIN && work.uses(SearchPart::Clusters) {
                others.push(clustered(net, starts.units(), trees, rng, work));
            }
            for other in others {
                let other = improve(net, other, self.cycles(CYCLES), rng, work);
                fresh = Some(match fresh {
                    Some(fresh) => better(net, fresh, other),
                    None => other,
                });
            }
        }
        let Some(fresh) = fresh.filter(|fresh| fresh.trees.peak(net) <= PROMISING * best.trees.peak(net)) else {
            return best;
        };
        let fresh = improve(net, fresh, self.briefly(CYCLES, work), rng, work);
        better(net, best, fresh)
    }

    /// A plan, or what giving up trees leaves of routes with more of them, if that is better.
    fn or_remainder(
        &self,
        best: Share,
        starts: &Starts<'_>,
        routings: &[Routing],
        trees: usize,
        work: &Work<'_>,
    ) -> Share {
        match self.remainder(starts, routings, trees, work) {
            Some(remainder) => better(self.net, best, remainder),
            None => best,
        }
    }

    /// The best of what giving up trees leaves of routes.
    fn remainder(&self, starts: &Starts<'_>, routings: &[Routing], trees: usize, work: &Work<'_>) -> Option<Share> {
        let asked = routings.iter().filter(|_| work.uses(SearchPart::Remainder));
        asked.filter_map(|routing| starts.fitted(routing, trees)).reduce(|one, other| better(self.net, one, other))
    }

    /// A plan with one more tree that is no worse.
    fn one_more(&self, before: Share, trees: usize, is_ordered: bool, rng: &mut Rng, work: &mut Work<'_>) -> Share {
        let net = self.net;
        if work.expired() {
            return before;
        }
        let mut best = before;
        if let Some(tree) = best.busiest_tree(net).filter(|_| work.uses(SearchPart::Split)) {
            work.spend(best.trees.len() * net.switches);
            if best.split(net, tree) {
                let mut scratch = Scratch::new(net);
                let twin = best.trees.len() - 1;
                let mut current = best.clone();
                for sharpness in PARTING {
                    let mut prices = ChannelPrices::new(net, &current.trees, sharpness, share::AMBITION);
                    for tree in [tree, twin] {
                        current.sweep(net, tree, &mut prices, &mut scratch, rng, work);
                    }
                    if is_better(current.trees.quality(net), best.trees.quality(net)) {
                        best.clone_from(&current);
                    }
                }
            }
        }
        let part = trees.next_power_of_two() / 2 / GROWTH;
        let due = if is_ordered && self.least(trees) > SCARCE * self.limits.bound {
            is_thrice_a_power(trees)
        } else {
            trees > FEW && trees % part == 0
        };
        if trees.is_power_of_two() || due {
            let cycles = if trees <= FEW { CYCLES_FEW } else { CYCLES };
            best = improve(net, best, self.briefly(cycles, work), rng, work);
        }
        best
    }
}

fn is_thrice_a_power(number: usize) -> bool {
    number % 3 == 0 && (number / 3).is_power_of_two()
}

fn better(net: &Net, one: Share, other: Share) -> Share {
    if is_better(other.trees.quality(net), one.trees.quality(net)) { other } else { one }
}

pub(super) fn better_pairs(net: &Net, one: Option<Pairs>, other: Pairs) -> Pairs {
    match one {
        Some(one) if !is_better(other.trees.quality(net), one.trees.quality(net)) => one,
        _ => other,
    }
}
