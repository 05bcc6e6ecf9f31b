//! Few trees for many: routes that fit a number of VLANs, and routes by pair.
//!
//! The rest of the engine gives every source a tree of its own. Here trees are shared: as many as there are VLANs, each for
//! several sources (`share.rs`), or for any pairs at all (`pairs.rs`). Trees and who takes which are improved
//! together by moves that lower exponential prices (`trees.rs`, `sweep.rs`); where paths must rise, the order of channels
//! bends along with them as far as no cycle comes of it (`rising.rs`).
//!
//! ```text
//!   one tree ─▶ split ─▶ split ─▶ …                  ─┐
//!   trees spread over the network, or for clusters    ├─▶ improve ─▶ best so far, up to the cap (`ladder.rs`)
//!   trees for clusters, within an order for them     ─┤
//!   what is left of a tree for every source          ─┘
//! ```
//!
//! How good can it get? Where the sender chooses, some tree has S = ⌈hosts/V⌉ senders. Among the places where they sit in
//! that tree take one whose side towards all others is largest: k senders there, beyond which h hosts lie, load that
//! channel with k·(hosts − h) and its reverse with (S − k)·h; so if they all sit apart, some channel carries at least
//! hosts·(S − 1)/S pairs, and around a switch of degree d in the middle at least S·(hosts − 1)/(d + 2). Where the pair
//! chooses, neither holds.

mod cluster;
mod ladder;
mod ordered;
mod pairs;
mod rising;
mod shape;
mod share;
mod shared_trees;
mod start;
mod sweep;
#[cfg(test)]
mod tests;

use fabric::{FlowControl, Policy, Tagging, Topology, rng::Rng};

use crate::{Ending, SearchEvent, StepLimit, routing::Routing};

use super::{
    net::Net,
    work::{Work, visits_in},
};

use self::{
    ladder::better_pairs,
    pairs::{Pairs, improve as improve_pairs},
    share::{Share, Stop, improve},
    shared_trees::is_better,
    start::Starts,
};

/// How many orders are annealed in a row of which nothing better comes, where time counts.
const TRIES_IN_VAIN: usize = 3;
/// So many times the load that some channel must have is far from it.
const FAR: f64 = 2.0;

/// Part of all steps that one improvement may take on the way to more trees where paths must rise.
const BRIEF_PART: u64 = 16;
/// The same for clusters that take shape.
const SHAPING_PART: u64 = 32;
/// Visits that an improvement may make in any case.
const BRIEF_MIN: u64 = 1 << 26;

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
        FlowControl::None => 16,
        FlowControl::Pause | FlowControl::Pfc(_) => 4,
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
    let brief = visits_in(&StepLimit::for_one(topology, policy).part(BRIEF_PART)).max(BRIEF_MIN);
    let shaping = visits_in(&StepLimit::for_one(topology, policy).part(SHAPING_PART));
    let packer = Packer { policy, net, limits, enough, brief, shaping };
    let starts = Starts::new(topology, policy, net);
    let mut rng = Rng::new(policy.seed);
    if policy.tagging == Tagging::Pair {
        packer.by_pair(&starts, routings, &mut rng, work)
    } else {
        packer.by_source(&starts, routings, &mut rng, work)
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
    fn by_source(&self, starts: &Starts<'_>, routings: &[Routing], rng: &mut Rng, work: &mut Work<'_>) -> Vec<Routing> {
        let net = self.net;
        let mut tries = 0;
        let mut best = match self.climb_in_time(starts, routings, rng, work) {
            Some(best) => {
                tries = TRIES_IN_VAIN;
                best
            }
            None => self.climb(starts, routings, rng, work, &mut |_, _, _| {}),
        };
        // Where time counts, not steps, all of it is used.
        while self.policy.time_limit.is_some() && !work.expired() && best.trees.peak(net) > self.enough {
            work.progress(best.trees.peak(net), self.limits.bound);
            best = improve(net, best, self.cycles(2), rng, work);
            if tries > 0 {
                tries -= 1;
                let limit = best.trees.peak(net);
                if let Some(other) = self.ordered(starts, self.limits.trees, (1, limit), rng, work) {
                    if is_better(other.trees.quality(net), best.trees.quality(net)) {
                        (best, tries) = (other, TRIES_IN_VAIN);
                    }
                }
            }
        }
        self.end(best.trees.peak(net), work);
        best.drop_unused(self.net);
        vec![starts.by_source(&best)]
    }

    /// Where time counts and paths must rise, the best that comes of orders annealed for clusters, and if that is far from
    /// what it could be, of all plans with fewer trees.
    fn climb_in_time(
        &self,
        starts: &Starts<'_>,
        routings: &[Routing],
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        if self.policy.time_limit.is_none() || !self.waits() {
            return None;
        }
        let best = self.climb_half(starts, routings, rng, work)?;
        let least = self.limits.bound.max(self.least(self.limits.trees));
        if best.trees.peak(self.net) <= FAR * least {
            return Some(best);
        }
        let other = self.climb(starts, routings, rng, work, &mut |_, _, _| {});
        Some(if is_better(other.trees.quality(self.net), best.trees.quality(self.net)) { other } else { best })
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

    /// The same, but after a part of all steps at the latest where paths must rise, since there it takes long on large networks.
    fn briefly(&self, cycles: usize, work: &Work<'_>) -> Stop {
        let visits = if self.waits() { work.total() + self.brief } else { u64::MAX };
        Stop { visits, ..self.cycles(cycles) }
    }

    fn by_pair(&self, starts: &Starts<'_>, routings: &[Routing], rng: &mut Rng, work: &mut Work<'_>) -> Vec<Routing> {
        let (net, trees) = (self.net, self.limits.trees);
        if trees == 1 {
            return vec![starts.by_source(&starts.single(rng, work))];
        }
        let sources = starts.units().len();
        let mut found: Option<Pairs> = None;
        let mut by_source: Option<Share> = None;
        let endless = trees >= sources || self.policy.time_limit.is_some();
        if trees >= sources {
            // From a tree for every source.
            by_source = routings.first().and_then(|routing| starts.whole(routing));
            by_source = by_source.filter(|share| share.trees.len() <= trees);
            let pairs = by_source.as_ref().and_then(|share| Pairs::from_share(net, share));
            found = pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work));
        } else if self.waits() {
            // From trees that senders share.
            by_source = self.climb_in_time(starts, routings, rng, work);
            match &by_source {
                Some(share) => {
                    let pairs = Pairs::from_share(net, share);
                    found = pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work));
                }
                None => {
                    by_source = Some(self.climb(starts, routings, rng, work, &mut |share, rng, work| {
                        if let Some(pairs) = Pairs::from_share(net, share) {
                            let pairs = improve_pairs(net, pairs, self.cycles(1), rng, work);
                            found = Some(better_pairs(net, found.take(), pairs));
                        }
                    }));
                }
            }
        } else {
            found = self.climb_by_pair(starts, rng, work);
        }
        let mut routings = Vec::new();
        if let Some(mut best) = found {
            while endless && !work.expired() && best.trees.peak(net) > self.enough {
                work.progress(best.trees.peak(net), self.limits.bound);
                best = improve_pairs(net, best, self.cycles(2), rng, work);
            }
            // Hosts of a switch may each have a tree of their own where senders choose, but not by pair.
            self.end(best.trees.peak(net), work);
            by_source = by_source.filter(|share| is_better(share.trees.quality(net), best.trees.quality(net)));
            best.drop_unused(net);
            routings.push(starts.by_pair(best));
        }
        if let Some(mut share) = by_source {
            share.drop_unused(net);
            routings.insert(0, starts.by_source(&share));
        }
        routings
    }
}
