//! Few trees for many: routes that fit a number of VLANs, and routes by pair.
//!
//! The rest of the engine gives every source a tree of its own. Here trees are shared: as many as there are VLANs, each
//! for several sources (`senders.rs`), or for any pairs at all (`pairs.rs`). Trees and who takes which are improved
//! together by moves that lower exponential prices (`shared_trees.rs`, `branch.rs`); where paths must rise, the order
//! of channels bends along with them as far as no cycle comes of it (`bent_order.rs`).
//!
//! ```text
//!   one tree ─▶ split ─▶ split ─▶ …                  ─┐
//!   trees spread over the network, or for clusters    ├─▶ improve ─▶ best so far, up to the cap (`sequence.rs`)
//!   trees for clusters, within an order for them     ─┤
//!   what is left of a tree for every source          ─┘
//! ```
//!
//! How good can it get? Where the sender chooses, some tree has S = ⌈hosts/V⌉ senders. Among the places where they sit in
//! that tree take one whose side towards all others is largest: k senders there, beyond which h hosts lie, load that
//! channel with k·(hosts − h) and its reverse with (S − k)·h; so if they all sit apart, some channel carries at least
//! hosts·(S − 1)/S pairs, and around a switch of degree d in the middle at least S·(hosts − 1)/(d + 2). Where the pair
//! chooses, neither holds.

mod sequence;
#[cfg(test)]
mod tests;

use fabric::{FlowControl, Policy, Tagging, Topology, rng::Rng};

use crate::{Ending, SearchEvent, StepLimit, routing::Routing};

use super::{
    converter::Converter,
    improve::{Candidate, Stop, is_better},
    net::Net,
    pairs::{Pairs, improve as improve_pairs},
    schedule::{FAR, SHAPING, SHARED, TREE_COUNTS},
    senders::{Share, improve},
    starts::split,
    work::{Work, visits_in},
};

use self::sequence::{Attempts, better_pairs};

/// What is to fit where.
pub(super) struct Limits {
    /// Most trees.
    pub(super) trees: usize,
    /// A load that no routing can go below, in pairs of hosts.
    pub(super) bound: f64,
}

/// Whether routes need packing: there are more sources than trees, or pairs may choose.
pub(super) fn applies(policy: &Policy, sources: usize, trees: usize) -> bool {
    policy.tagging == Tagging::Pair || trees < sources
}

/// Steps to be spent on a tree for every source before packing starts: all that follows by pair goes back to them, and
/// trees that few share are made anew.
pub(super) fn steps_before(topology: &Topology, policy: &Policy, sources: usize, trees: usize) -> StepLimit {
    let used = policy.tagging == Tagging::Pair && trees >= sources;
    // Where paths must rise, the orders that come of it are used whatever the number of trees.
    StepLimit::by_size(topology).part(match policy.flow_control {
        _ if used => 1,
        FlowControl::None => SHARED.before[0],
        FlowControl::Pause | FlowControl::Pfc(_) => SHARED.before[1],
    })
}

/// Routes on few trees, best first; none if all that is known is a single tree. `routings` are those with more, best
/// first.
pub(super) fn pack(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    limits: &Limits,
    routings: &[Routing],
    work: &mut Work<'_>,
) -> Vec<Routing> {
    if limits.trees == 0 || net.channels == 0 {
        return Vec::new();
    }
    let enough = if net.slowness.len() <= 1 { (limits.bound - 1e-6).ceil() } else { limits.bound };
    let brief = visits_in(&StepLimit::for_one(topology, policy).part(SHARED.brief_part)).max(SHARED.brief_min);
    let shaping = visits_in(&StepLimit::for_one(topology, policy).part(SHAPING.part));
    let packer = Packer { policy, net, limits, enough, brief, shaping };
    let converter = Converter::new(topology, policy, net);
    let mut rng = Rng::new(policy.seed);
    if policy.tagging == Tagging::Pair {
        packer.by_pair(&converter, routings, &mut rng, work)
    } else {
        packer.by_source(&converter, routings, &mut rng, work)
    }
}

struct Packer<'a> {
    policy: &'a Policy,
    net: &'a Net,
    limits: &'a Limits,
    enough: f64,
    /// Most visits of one improvement on the way where paths must rise.
    brief: u64,
    /// Most visits while clusters take shape.
    shaping: u64,
}

impl Packer<'_> {
    fn by_source(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Vec<Routing> {
        let net = self.net;
        let mut tries = 0;
        let mut best = match self.in_time(converter, routings, rng, work) {
            Some(best) => {
                tries = TREE_COUNTS.ordered_tries_in_time;
                best
            }
            None => self.sequence(converter, routings, rng, work, &mut |_, _, _| {}),
        };
        // Where time counts, not steps, all of it is used.
        while self.policy.time_limit.is_some() && !work.expired() && best.trees.peak(net) > self.enough {
            work.progress(best.trees.peak(net), self.limits.bound);
            best = improve(net, best, self.cycles(SHARED.cycles.len()), rng, work);
            if tries > 0 {
                tries -= 1;
                let limit = best.trees.peak(net);
                if let Some(other) = self.ordered(converter, self.limits.trees, Attempts { count: 1, limit }, rng, work)
                {
                    if is_better(other.quality(net), best.quality(net)) {
                        (best, tries) = (other, TREE_COUNTS.ordered_tries_in_time);
                    }
                }
            }
        }
        self.end(best.trees.peak(net), work);
        best.drop_unused(self.net);
        vec![converter.by_source(&best)]
    }

    /// Where time counts and paths must rise, the best that comes of orders annealed for clusters, and if that is far from
    /// what it could be, of all plans with fewer trees.
    fn in_time(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        if self.policy.time_limit.is_none() || !self.waits() {
            return None;
        }
        let best = self.sequence_from_half(converter, routings, rng, work)?;
        let least = self.limits.bound.max(self.least(self.limits.trees));
        if best.trees.peak(self.net) <= FAR * least {
            return Some(best);
        }
        let other = self.sequence(converter, routings, rng, work, &mut |_, _, _| {});
        Some(if is_better(other.quality(self.net), best.quality(self.net)) { other } else { best })
    }

    /// Tells the watch why the search ends, with this load.
    fn end(&self, load: f64, work: &mut Work<'_>) {
        work.happened(&SearchEvent::Ended(if load <= self.enough { Ending::Optimal } else { Ending::Spent }));
    }

    /// What some channel carries at least if so many trees are shared by senders that all sit apart.
    fn least(&self, trees: usize) -> f64 {
        let hosts = f64::from(self.net.hosts.iter().sum::<u32>());
        let senders = (hosts / trees as f64).max(1.0);
        hosts * (senders - 1.0) / senders
    }

    /// Stops after so many cycles.
    fn cycles(&self, cycles: usize) -> Stop {
        Stop { enough: self.enough, cycles, visits: u64::MAX }
    }

    /// The same, but after a part of all steps at the latest where paths must rise, since there it takes long on large
    /// networks.
    fn briefly(&self, cycles: usize, work: &Work<'_>) -> Stop {
        let visits = if self.waits() { work.total() + self.brief } else { u64::MAX };
        Stop { visits, ..self.cycles(cycles) }
    }

    fn by_pair(
        &self,
        converter: &Converter<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Vec<Routing> {
        let (net, trees) = (self.net, self.limits.trees);
        if trees == 1 {
            return vec![converter.by_source(&split::single(net, converter.units(), rng, work))];
        }
        let sources = converter.units().len();
        let mut found: Option<Pairs> = None;
        let mut by_source: Option<Share> = None;
        let endless = trees >= sources || self.policy.time_limit.is_some();
        if trees >= sources {
            // From a tree for every source.
            by_source = routings.first().and_then(|routing| converter.whole(routing));
            by_source = by_source.filter(|share| share.trees.len() <= trees);
            let pairs = by_source.as_ref().and_then(|share| Pairs::from_share(net, share));
            found = pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work));
        } else if self.waits() {
            // From trees that senders share.
            by_source = self.in_time(converter, routings, rng, work);
            match &by_source {
                Some(share) => {
                    let pairs = Pairs::from_share(net, share);
                    found = pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work));
                }
                None => {
                    by_source = Some(self.sequence(converter, routings, rng, work, &mut |share, rng, work| {
                        if let Some(pairs) = Pairs::from_share(net, share) {
                            let pairs = improve_pairs(net, pairs, self.cycles(1), rng, work);
                            found = Some(better_pairs(net, found.take(), pairs));
                        }
                    }));
                }
            }
        } else {
            found = self.sequence_by_pair(converter, rng, work);
        }
        let mut routings = Vec::new();
        if let Some(mut best) = found {
            while endless && !work.expired() && best.trees.peak(net) > self.enough {
                work.progress(best.trees.peak(net), self.limits.bound);
                best = improve_pairs(net, best, self.cycles(SHARED.cycles.len()), rng, work);
            }
            // Hosts of a switch may each have a tree of their own where senders choose, but not by pair.
            self.end(best.trees.peak(net), work);
            by_source = by_source.filter(|share| is_better(share.quality(net), best.quality(net)));
            best.drop_unused(net);
            routings.push(converter.by_pair(best));
        }
        if let Some(mut share) = by_source {
            share.drop_unused(net);
            routings.insert(0, converter.by_source(&share));
        }
        routings
    }
}
