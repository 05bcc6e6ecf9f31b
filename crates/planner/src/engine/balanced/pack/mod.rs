//! Few trees for many: routes that fit a number of VLANs, and routes by pair.
//!
//! The rest of the engine gives every source a tree of its own. Here trees are shared: as many as there are VLANs, each for
//! several sources (`share.rs`), or for any pairs at all (`pairs.rs`). Trees and who takes which are improved
//! together by moves that lower exponential prices (`grove.rs`, `sweep.rs`); where paths must rise, the order of channels
//! bends along with them as far as no cycle comes of it (`rising.rs`).
//!
//! ```text
//!   a tree for every source ─▶ by pair ─▶ give up trees ─┐
//!   one tree ─▶ split ─▶ split …                         ├─▶ improve ─▶ best
//!   trees spread over the network                       ─┘
//! ```
//!
//! How good can it get? Where the sender chooses, some tree has S = ⌈hosts/V⌉ senders. Among the places where they sit in
//! that tree take one whose side towards all others is largest: k senders there, beyond which h hosts lie, load that
//! channel with k·(hosts − h) and its reverse with (S − k)·h; so if they all sit apart, some channel carries at least
//! hosts·(S − 1)/S pairs, and around a switch of degree d in the middle at least S·(hosts − 1)/(d + 2). Where the pair
//! chooses, neither holds.

mod grove;
mod pairs;
mod rising;
mod share;
mod start;
mod sweep;

use std::cmp::Ordering;

use fabric::{FlowControl, Policy, Tagging, Topology, rng::Rng};

use crate::{StepLimit, routing::Routing};

use super::{net::Net, work::Work};

use self::{
    grove::is_better,
    pairs::{Pairs, improve as improve_pairs},
    share::{Share, Stop, improve},
    start::Starts,
    sweep::Scratch,
};

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
    let used = policy.tagging == Tagging::Pair && (trees >= sources || policy.flow_control != FlowControl::None);
    StepLimit::by_size(topology).part(if used { 1 } else { 16 })
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
    let packer = Packer { policy, net, limits, enough };
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
}

impl Packer<'_> {
    fn by_source(&self, starts: &Starts<'_>, routings: &[Routing], rng: &mut Rng, work: &mut Work<'_>) -> Vec<Routing> {
        let Some(mut best) = self.shares(starts, routings, u64::MAX, rng, work).into_iter().next() else {
            return Vec::new();
        };
        while !work.expired() && best.grove.peak(self.net) > self.enough {
            work.progress(best.grove.peak(self.net), self.limits.bound);
            best = improve(self.net, best, self.cycles(2), rng, work);
        }
        best.drop_unused(self.net);
        vec![starts.by_source(&best)]
    }

    /// Stops after so many cycles.
    fn cycles(&self, cycles: usize) -> Stop {
        Stop { enough: self.enough, cycles, visits: u64::MAX }
    }

    /// Shared trees from every start that applies, best first; about so many visits to channels are spent on them.
    fn shares(
        &self,
        starts: &Starts<'_>,
        routings: &[Routing],
        visits: u64,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Vec<Share> {
        let visits = work.total().saturating_add(visits);
        let (net, trees) = (self.net, self.limits.trees);
        if trees == 1 {
            return vec![starts.single(rng, work)];
        }
        let mut shares: Vec<Share> = routings.iter().filter_map(|routing| starts.fitted(routing, trees)).collect();
        shares.sort_by(by_quality(net));
        // They differ little in what becomes of them.
        shares.truncate(1);
        if self.policy.flow_control == FlowControl::None {
            shares.push(share::spread(net, starts.units(), trees, rng, work));
        }
        let stop = Stop { visits, ..self.cycles(1) };
        shares = shares.into_iter().map(|share| improve(net, share, stop, rng, work)).collect();
        let done = shares.iter().any(|share| share.grove.peak(net) <= self.enough);
        if self.policy.flow_control != FlowControl::None && !done {
            let single = starts.single(rng, work);
            let mut share = starts.copies(&single, trees.min(COPIES_MAX));
            loop {
                share = improve(net, share, Stop { cycles: 2, ..stop }, rng, work);
                if share.grove.len() >= trees || work.expired() || work.total() >= visits {
                    break;
                }
                share.split(net, trees);
            }
            shares.push(share);
        }
        shares.sort_by(by_quality(net));
        shares
    }

    fn by_pair(&self, starts: &Starts<'_>, routings: &[Routing], rng: &mut Rng, work: &mut Work<'_>) -> Vec<Routing> {
        let (net, trees) = (self.net, self.limits.trees);
        if trees == 1 {
            return vec![starts.by_source(&starts.single(rng, work))];
        }
        let mut found: Option<Pairs> = None;
        let mut keep = |pairs: Option<Pairs>| {
            let better = pairs.filter(|pairs| {
                found.as_ref().is_none_or(|best| is_better(pairs.grove.quality(net), best.grove.quality(net)))
            });
            found = better.or(found.take());
            found.as_ref().map_or(f64::INFINITY, |best| best.grove.peak(net))
        };
        // The better of the routes by source, with which those by pair compete.
        let mut by_source = routings.first().and_then(|routing| starts.whole(routing));
        let fits = by_source.as_ref().is_some_and(|share| share.grove.len() <= trees);
        let near = by_source.as_ref().is_some_and(|share| share.grove.len() <= SHRINKAGE * trees);
        let peak = if fits || (near && self.policy.flow_control != FlowControl::None) {
            // From a tree for every source, of which as many as must be are given up.
            let pairs = by_source.as_ref().and_then(|share| Pairs::from_share(net, share));
            keep(pairs.and_then(|pairs| self.shrunk(pairs, rng, work)))
        } else if self.policy.flow_control != FlowControl::None {
            f64::INFINITY
        } else {
            let share = share::spread(net, starts.units(), trees, rng, work);
            let pairs = Pairs::from_share(net, &share);
            keep(pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work)))
        };
        by_source = by_source.filter(|_| fits);
        if peak > self.enough * ACCEPTABLE && !fits {
            // From trees that senders share.
            let visits = VISITS * (net.channels * net.switches) as u64;
            by_source = self.shares(starts, routings, visits, rng, work).into_iter().next();
            let pairs = by_source.as_ref().and_then(|share| Pairs::from_share(net, share));
            keep(pairs.map(|pairs| improve_pairs(net, pairs, self.cycles(1), rng, work)));
        }
        let mut routings = Vec::new();
        if let Some(mut best) = found {
            while !work.expired() && best.grove.peak(net) > self.enough {
                work.progress(best.grove.peak(net), self.limits.bound);
                best = improve_pairs(net, best, self.cycles(2), rng, work);
            }
            // Hosts of a switch may each have a tree of their own where senders choose, but not by pair.
            by_source = by_source.filter(|share| is_better(share.grove.quality(net), best.grove.quality(net)));
            best.drop_unused(net);
            routings.push(starts.by_pair(best));
        }
        routings.splice(0..0, by_source.map(|share| starts.by_source(&share)));
        routings
    }

    /// Pairs on as few of their trees as there may be; none if that cannot be, or time is up.
    fn shrunk(&self, mut pairs: Pairs, rng: &mut Rng, work: &mut Work<'_>) -> Option<Pairs> {
        let mut scratch = Scratch::new(self.net);
        let fits = pairs.shrink(self.net, self.limits.trees, &mut scratch, rng, work);
        fits.then(|| improve_pairs(self.net, pairs, self.cycles(1), rng, work))
    }
}

/// Trees for every source are given up if no more than so many times as many as there may be.
const SHRINKAGE: usize = 5;
/// Visits, for each channel and switch, that trees shared by senders take before pairs choose among them.
const VISITS: u64 = 100;
/// Pairs whose peak is within this factor of the bound need no second start.
const ACCEPTABLE: f64 = 1.5;
/// Most copies of one tree to start from; more come of splitting.
const COPIES_MAX: usize = 16;

fn by_quality(net: &Net) -> impl Fn(&Share, &Share) -> Ordering {
    |a, b| {
        let (a, b) = (a.grove.quality(net), b.grove.quality(net));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    }
}
