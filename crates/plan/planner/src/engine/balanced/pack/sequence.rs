//! One plan after the other, each with at most one tree more: the cap on VLANs says where to stop.
//!
//! A plan for few trees is a plan for more. So all caps share one sequence of plans, none worse than the one before,
//! and a cap of V ends it at the V-th: whatever the cap, the first V plans are the same, and the same number of steps
//! never makes a worse plan of a larger cap. From one plan to the next the most loaded tree is split, which any order
//! of channels allows. Plans for more trees than the cap are looked at as well on small networks, since some of their
//! trees may turn out to be the same. At some numbers plans made afresh for so many trees compete: trees for clusters
//! of senders (`clusters.rs`), where paths must rise within an order annealed for them (`ordered_clusters.rs`), trees
//! spread over the network, or what is left of routes with more trees.
//!
//! ```text
//!   trees     1 ── 2 ── 3 ── 4 ── 5 ── 6 ── 7 ── 8 ── …       ── one tree split, and its halves bend apart
//!   afresh         │         │                   │            │  if better, goes on from here
//! ```

use std::collections::BTreeSet;

use fabric::{FlowControl, Tagging, rng::Rng};

use crate::{SearchEvent, SearchPart, SharedStart, rivals, routing::Routing};

use super::super::{
    converter::Converter,
    improve::{Candidate, is_better},
    net::Net,
    pairs::{Pairs, improve as improve_pairs},
    schedule::{SHARED, TREE_COUNTS},
    senders::{Share, improve},
    starts::{
        clusters::clustered,
        ordered_clusters::{Clustering, ordered},
        remainder::remainder,
        split,
        spread::spread,
    },
    work::Work,
};
use super::Packer;

/// A plan to go on from.
struct StartingPoint {
    share: Share,
    /// Whether it comes from an order that was annealed for clusters.
    is_ordered: bool,
}

/// How often orders are annealed for one number of trees.
#[derive(Clone, Copy)]
pub(super) struct Attempts {
    /// Most orders; the first that comes to something is the last.
    pub(super) count: usize,
    /// Load of the most loaded channel that their trees compete with.
    pub(super) limit: f64,
}

impl Packer<'_> {
    /// The best routes by source on as many trees as there may be, as far as there is time; `milestone` is told of the best so
    /// far wherever the number of trees is a power of two.
    pub(super) fn sequence(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
        milestone: &mut dyn FnMut(&Share, &mut Rng, &mut Work<'_>),
    ) -> Share {
        let single = split::single(self.net, converter.units(), rng, work);
        let share = if self.waits() { split::in_order(self.net, &single, converter.lane_count()) } else { single };
        let first = StartingPoint { share, is_ordered: false };
        self.sequence_from(first, converter, routings, rng, work, milestone)
    }

    /// The same from the middle of the way on: from half as many trees as there may be.
    pub(super) fn sequence_from_half(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        let half = (self.limits.trees.next_power_of_two() / 2).max(TREE_COUNTS.ordered_min);
        let half = half.min(self.limits.trees);
        let attempts = Attempts { count: TREE_COUNTS.ordered_tries, limit: f64::INFINITY };
        let share = self.ordered(converter, half, attempts, rng, work)?;
        let first = StartingPoint { share, is_ordered: true };
        Some(self.sequence_from(first, converter, routings, rng, work, &mut |_, _, _| {}))
    }

    fn sequence_from(
        &self,
        first: StartingPoint,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
        milestone: &mut dyn FnMut(&Share, &mut Rng, &mut Work<'_>),
    ) -> Share {
        let net = self.net;
        let StartingPoint { share: mut best, mut is_ordered } = first;
        let mut tries = TREE_COUNTS.ordered_tries;
        let sources = converter.units().len();
        let afresh: BTreeSet<usize> = routings.iter().map(|routing| routing.trees.len()).collect();
        if self.is_small() {
            let trees = best.trees.len();
            best = self.or_remainder(best, converter, routings, trees, work);
        }
        // The best plan within the cap, once there are more trees.
        let mut capped: Option<Share> = None;
        let mut start = if is_ordered { SharedStart::Ordered } else { SharedStart::Single };
        self.tell(&best, start, work);
        for trees in best.trees.len() + 1..=self.last_count(sources) {
            if trees == self.limits.trees + 1 {
                capped = Some(best.clone());
            }
            let peak = capped.as_ref().unwrap_or(&best).trees.peak(net);
            if peak <= self.enough {
                break;
            }
            work.progress(best.trees.peak(net), self.limits.bound);
            let mut before = best.quality(net);
            let mut lower = |best: &Share, by: SharedStart, start: &mut SharedStart| {
                if is_better(best.quality(net), before) {
                    (before, *start) = (best.quality(net), by);
                }
            };
            best = self.one_more(best, trees, is_ordered, rng, work);
            lower(&best, SharedStart::Split, &mut start);
            let near_all = sources.checked_sub(trees).is_some_and(usize::is_power_of_two);
            if trees.is_power_of_two() || near_all || afresh.contains(&trees) {
                best = self.or_afresh(best, converter, routings, trees, rng, work);
            } else if self.is_small() {
                best = self.or_remainder(best, converter, routings, trees, work);
            }
            lower(&best, SharedStart::Afresh, &mut start);
            if self.waits() && trees >= TREE_COUNTS.ordered_min && (trees.is_power_of_two() || is_thrice_a_power(trees))
            {
                let attempts = Attempts { count: tries, limit: best.trees.peak(net) };
                match self.ordered(converter, trees, attempts, rng, work) {
                    Some(share) if is_better(share.quality(net), best.quality(net)) => {
                        (best, is_ordered) = (share, true);
                    }
                    Some(_) => {}
                    None => tries = tries.saturating_sub(1),
                }
            }
            lower(&best, SharedStart::Ordered, &mut start);
            if trees.is_power_of_two() || trees == self.limits.trees || best.trees.peak(net) <= self.enough {
                self.tell(&best, start, work);
            }
            match &mut capped {
                None if trees.is_power_of_two() => milestone(&best, rng, work),
                Some(capped)
                    if is_better(best.quality(net), capped.quality(net))
                        && converter.distinct_trees(&best) <= self.limits.trees =>
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
    fn last_count(&self, sources: usize) -> usize {
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
        converter: &Converter<'_>,
        trees: usize,
        attempts: Attempts,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        let Attempts { count, limit } = attempts;
        let clustering = Clustering { count: trees, lanes: converter.lane_count(), limit, shaping_max: self.shaping };
        let (units, net) = (converter.units(), self.net);
        let open = net.channels.saturating_sub(2 * units.len().saturating_sub(trees));
        let is_walled = (open as f64) < TREE_COUNTS.open_min * net.switches as f64;
        for _ in 0..count {
            if work.expired()
                || !work.uses(SearchPart::Ordered)
                || is_walled
                || self.least(trees) < TREE_COUNTS.plenty * self.limits.bound
            {
                return None;
            }
            if let Some(share) = ordered(net, units.clone(), clustering, rng, work) {
                return Some(improve(net, share, self.briefly(1, work), rng, work));
            }
        }
        None
    }

    /// The best routes by pair for one tree, for few and then for more, each time from trees spread over the network.
    pub(super) fn sequence_by_pair(
        &self,
        converter: &Converter<'_>,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Pairs> {
        let net = self.net;
        // A clone, as what follows shall not depend on how the one tree was found.
        let single = split::single(net, converter.units(), &mut rng.clone(), work);
        let mut best = Pairs::from_share(net, &single);
        for trees in (2..=self.limits.trees).filter(|trees| trees.is_power_of_two() || is_thrice_a_power(*trees)) {
            let peak = best.as_ref().map_or(f64::INFINITY, |best| best.trees.peak(net));
            if peak <= self.enough || (work.expired() && best.is_some()) {
                break;
            }
            work.progress(peak, self.limits.bound);
            let share = spread(net, converter.units(), trees, rng, work);
            if let Some(pairs) = Pairs::from_share(net, &share) {
                let pairs = improve_pairs(net, pairs, self.cycles(1), rng, work);
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
        converter: &Converter<'_>,
        routings: &[Routing],
        trees: usize,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Share {
        let net = self.net;
        let mut fresh = self.remainder(converter, routings, trees, work);
        if !self.waits() && !work.expired() {
            let mut others = Vec::new();
            if work.uses(SearchPart::Spread) {
                others.push(spread(net, converter.units(), trees, rng, work));
            }
            if trees >= TREE_COUNTS.clusters_min && work.uses(SearchPart::Clusters) {
                others.push(clustered(net, converter.units(), trees, rng, work));
            }
            for other in others {
                let other = improve(net, other, self.cycles(1), rng, work);
                fresh = Some(match fresh {
                    Some(fresh) => better(net, fresh, other),
                    None => other,
                });
            }
        }
        let Some(fresh) = fresh.filter(|fresh| fresh.trees.peak(net) <= TREE_COUNTS.promising * best.trees.peak(net))
        else {
            return best;
        };
        let fresh = improve(net, fresh, self.briefly(1, work), rng, work);
        better(net, best, fresh)
    }

    /// A plan, or what giving up trees leaves of routes with more of them, if that is better.
    fn or_remainder(
        &self,
        best: Share,
        converter: &Converter<'_>,
        routings: &[Routing],
        trees: usize,
        work: &Work<'_>,
    ) -> Share {
        match self.remainder(converter, routings, trees, work) {
            Some(remainder) => better(self.net, best, remainder),
            None => best,
        }
    }

    fn remainder(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        trees: usize,
        work: &Work<'_>,
    ) -> Option<Share> {
        if work.uses(SearchPart::Remainder) { remainder(converter, routings, trees) } else { None }
    }

    /// A plan with one more tree that is no worse.
    fn one_more(&self, before: Share, trees: usize, is_ordered: bool, rng: &mut Rng, work: &mut Work<'_>) -> Share {
        let net = self.net;
        if work.expired() {
            return before;
        }
        let mut best = if work.uses(SearchPart::Split) { split::split(net, before, rng, work) } else { before };
        let part = trees.next_power_of_two() / 2 / TREE_COUNTS.growth;
        let due = if is_ordered && self.least(trees) > TREE_COUNTS.scarce * self.limits.bound {
            is_thrice_a_power(trees)
        } else {
            trees > TREE_COUNTS.few && trees % part == 0
        };
        if trees.is_power_of_two() || due {
            let cycles = if trees <= TREE_COUNTS.few { SHARED.cycles.len() } else { 1 };
            best = improve(net, best, self.briefly(cycles, work), rng, work);
        }
        best
    }
}

fn is_thrice_a_power(number: usize) -> bool {
    number % 3 == 0 && (number / 3).is_power_of_two()
}

fn better(net: &Net, one: Share, other: Share) -> Share {
    if is_better(other.quality(net), one.quality(net)) { other } else { one }
}

pub(super) fn better_pairs(net: &Net, one: Option<Pairs>, other: Pairs) -> Pairs {
    match one {
        Some(one) if !is_better(other.quality(net), one.quality(net)) => one,
        _ => other,
    }
}
