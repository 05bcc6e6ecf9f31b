//! Setting apart: hosts that came or moved, and at last hosts whose tree broke, get another tree while a channel is much
//! busier than any was before.
//!
//! A mended tree keeps most of its cables, and a host that came takes a tree that is there, so both are cheap in
//! changes and may be dear in load. What the change did not touch stays. Of the rest, whoever puts most on the most
//! loaded channel goes where all channels that it burdens stay below that peak: along another tree of the plan, or
//! along one that is grown for it against the loads of all others, in a VLAN of its own.
//!
//! ```text
//!   s ══a══▶ t     h came to s and took the tree of its neighbour: a carries 2, b none
//!     ──b──▶       with a tree of its own, by b: a 1, b 1
//! ```
//! It is local search: each move lowers a most loaded channel and makes no other as busy, so it ends. Prices are exponential in
//! loads (Garg and Könemann, 1998), and a tree's own load counts from the second try on.

use fabric::{ChannelId, FdbMode, LinkId};

use super::{
    joint::NOTHING,
    mend::{Cycles, Flow, Mender},
    seats::{Mover, Seats},
};
use crate::{engine::Grower, exponential::exp, fan::Direction};

/// How steeply a channel's price rises with its load.
const SHARPNESSES: [f64; 4] = [4.0, 8.0, 16.0, 32.0];
/// How often a tree is grown for each of them, its own load counted in.
const ROUNDS: usize = 3;
/// Hosts that are looked at, over all channels.
const LOOKS_MAX: usize = 96;

/// What may be spent.
pub(super) struct Limits {
    /// The load that is good enough.
    pub(super) load_enough: f64,
    /// Trees that there may be.
    pub(super) trees: usize,
    /// Entries that may come or go.
    pub(super) entries: usize,
    /// What a tree takes entries for.
    pub(super) fdb: FdbMode,
}

/// Where a mover could go.
struct MoveTarget {
    price: f64,
    entries: usize,
    lane: u8,
    links: Vec<LinkId>,
    /// The tree that is there; none if it was grown.
    tree: Option<usize>,
}

/// Lets movers take other trees until no channel is busier than is good enough, in the mender's unit, or nothing helps.
/// Cost: O(trees · switches + lanes · channels log channels) for each of a bounded number of looks.
pub(super) fn set_apart(mender: &mut Mender<'_>, seats: &mut Seats<'_>, mut movers: Vec<Mover>, limits: &mut Limits) {
    let mut grower: Option<Grower> = None;
    let mut looks = LOOKS_MAX;
    while let Some((busiest, peak)) = mender.busiest().filter(|(_, peak)| *peak > limits.load_enough) {
        let mut users: Vec<(f64, usize)> = Vec::new();
        for (at, mover) in movers.iter().enumerate() {
            let weights = seats.weights(mender, mover);
            let part = weights.iter().find(|(channel, part)| *channel == busiest && *part > 0.0);
            users.extend(part.map(|(_, part)| (*part, at)));
        }
        users.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
        let moved = users.into_iter().any(|(_, at)| {
            let Some(left) = looks.checked_sub(1) else { return false };
            looks = left;
            let grower = grower.get_or_insert_with(|| Grower::new(mender.topology, mender.confined.clone()));
            seats.reseat(mender, grower, &mut movers[at], peak, limits)
        });
        if !moved {
            break;
        }
    }
}

impl Seats<'_> {
    /// Gives a mover another tree, if everything that it burdens there stays below the peak.
    fn reseat(
        &mut self,
        mender: &mut Mender<'_>,
        grower: &mut Grower,
        mover: &mut Mover,
        peak: f64,
        limits: &mut Limits,
    ) -> bool {
        let flows = self.flows(mender.topology, mover);
        let weights = self.weights(mender, mover);
        weights.iter().for_each(|(channel, weight)| mender.load[channel.index()] -= weight);
        let used = self.used_by_others(mover);
        let is_alone = !used[mover.tree];
        let left = self.links[mover.tree].clone().unwrap_or_default();
        let gone = mender.entries(&left, &flows[0], (limits.fdb, is_alone));
        let mut places: Vec<MoveTarget> = Vec::new();
        for (number, links) in self.links.iter().enumerate().filter(|(number, _)| used[*number]) {
            let (Some(links), lane) = (links.as_ref().filter(|_| number != mover.tree), self.trees[number].lane) else {
                continue;
            };
            let Some(price) = mender.price(lane, links, &flows) else { continue };
            let entries = gone + mender.entries(links, &flows[0], (limits.fdb, false));
            places.push(MoveTarget { price, entries, lane, links: links.clone(), tree: Some(number) });
        }
        if used.iter().filter(|used| **used).count() < limits.trees {
            for lane in 0..mender.orders.len() as u8 {
                let grown = grown(mender, grower, lane, &flows, peak);
                places.extend(grown.map(|(price, links)| {
                    let entries = gone + mender.entries(&links, &flows[0], (limits.fdb, true));
                    MoveTarget { price, entries, lane, links, tree: None }
                }));
            }
        }
        places.retain(|place| place.price < peak * (1.0 - NOTHING) && place.entries <= limits.entries);
        let rated = |place: &MoveTarget| (place.price.max(limits.load_enough), place.entries);
        places.sort_by(|one, other| {
            let (one, other) = (rated(one), rated(other));
            one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
        });
        for MoveTarget { entries, lane, links, tree, .. } in places {
            let Some(links) = mender.take(lane, &links, &flows) else { continue };
            limits.entries -= entries;
            let number = match tree {
                Some(number) => number,
                // A tree that nobody else takes is replaced, in its own VLAN if that can change in place.
                None if is_alone && self.trees[mover.tree].lane == lane => {
                    self.links[mover.tree] = Some(links);
                    mover.tree
                }
                None => self.add(lane, links),
            };
            self.seat(mover, number);
            return true;
        }
        weights.iter().for_each(|(channel, weight)| mender.load[channel.index()] += weight);
        false
    }
}

/// The best of some trees that are grown along a lane's numbering, and what becomes of the most loaded channel that it burdens.
fn grown(
    mender: &mut Mender<'_>,
    grower: &mut Grower,
    lane: u8,
    flows: &[Flow],
    peak: f64,
) -> Option<(f64, Vec<LinkId>)> {
    let Flow { root, direction, .. } = flows[0];
    let topology = mender.topology;
    let carrying = |channel: ChannelId| match direction {
        Direction::Outward => channel,
        Direction::Inward => channel.reverse(),
    };
    let rank: Option<Vec<u32>> = (mender.cycles == Cycles::Forbidden).then(|| {
        let rank = mender.orders[usize::from(lane)].rank();
        let highest = rank.len() as u32;
        let one = |channel: ChannelId| match direction {
            Direction::Outward => rank[channel.index()],
            Direction::Inward => highest - rank[channel.reverse().index()],
        };
        topology.channel_ids().map(one).collect()
    });
    let mut best: Option<(f64, Vec<LinkId>)> = None;
    for sharpness in SHARPNESSES {
        let mut own = vec![0.0; topology.channel_count()];
        for _ in 0..ROUNDS {
            let price_of = |channel: ChannelId| {
                let channel = carrying(channel);
                let load = mender.load[channel.index()] + own[channel.index()];
                (exp(sharpness * (load / peak - 1.0)) * mender.per_unit(channel)) as f32
            };
            let price: Vec<f32> = topology.channel_ids().map(price_of).collect();
            let links = grower.grow(root, &price, rank.as_deref())?;
            if let Some(price) = mender.price(lane, &links, flows) {
                if best.as_ref().is_none_or(|(least, _)| price < *least) {
                    best = Some((price, links.clone()));
                }
            }
            mender.spread_out(&links);
            mender.weigh(flows);
            own.iter_mut().for_each(|own| *own /= 2.0);
            mender.weights.iter().for_each(|(channel, weight)| own[channel.index()] += weight / 2.0);
        }
    }
    best
}

impl Mender<'_> {
    /// How many entries a flow takes along a tree; where all hosts have theirs everywhere, only if the tree comes or goes.
    fn entries(&mut self, links: &[LinkId], flow: &Flow, (fdb, is_whole): (FdbMode, bool)) -> usize {
        self.spread_out(links);
        self.trace(flow);
        match (fdb, flow.direction) {
            (FdbMode::Full, _) => usize::from(is_whole) * self.order.len() * self.topology.hosts().len(),
            (_, Direction::Outward) => self.order.iter().map(|switch| self.below[switch.index()] as usize).sum(),
            (_, Direction::Inward) => self.order.len() * flow.owners as usize,
        }
    }
}
