//! Joints: links that tie two sides of a tree together, and what another tie would cost.
//!
//! Only frames between the sides move. What they add to a channel depends on which side of it the tie is, so one pass up
//! and one pass down a side tell, for each of its switches, how busy the side gets if it is tied there; every cable
//! between the sides then has its exact price at once. Source: rerooting, a folklore of dynamic programming on trees.
//!
//! ```text
//!   x──y──z ══ far     3 pairs send from x and z to the other side: 1 from x, 2 from z.
//!                      tied at z: xy 1, yz 1, zy 0      tied at x: zy 2, yx 2, xy 0      tied at y: xy 1, zy 2
//! ```

use fabric::{ChannelId, LinkId, PortId, SwitchId};

use super::mend::{Flow, Mender};
use crate::{dependency::Dependency, fan::Direction};

/// Ways of one tie over one more switch that are looked at at a time.
const DETOURS_MAX: usize = 4096;
/// How much load is no difference, of the most loaded.
pub(super) const NOTHING: f64 = 1e-9;

/// A mended tree.
pub(crate) struct Mended<'a> {
    pub(crate) lane: u8,
    /// The links that were left of it, ascending.
    pub(crate) left: &'a [LinkId],
    /// Ports that lead elsewhere than they did: no place for a tie.
    pub(crate) reused: &'a [PortId],
    /// Whether its VLAN can change in place, and so must be tied by one link for each that it lost.
    pub(crate) in_place: bool,
    pub(crate) flows: &'a [Flow],
    /// Its links now, ascending.
    pub(crate) links: &'a mut Vec<LinkId>,
}

/// A link that a tree has gained, and what it ties together.
pub(super) struct Joint {
    pub(super) tree: usize,
    link: LinkId,
    sides: [Side; 2],
    /// What frames between the sides make of channels; ascending.
    parts: Vec<(ChannelId, f64)>,
}

/// One side of a joint, rooted at the joint.
struct Side {
    /// Parents come first.
    order: Vec<SwitchId>,
    /// `parent[position]`; the first is its own.
    parent: Vec<usize>,
    /// `depth[position]`: links from the joint.
    depth: Vec<usize>,
    /// `inward[position]`: from the parent; none for the first.
    inward: Vec<Option<ChannelId>>,
    /// `sent[position]`: frames to the other side from there and beyond.
    sent: Vec<Frames>,
    /// `got[position]`: frames from the other side to there and beyond.
    got: Vec<Frames>,
    /// Hosts that get frames from the other side.
    receivers: usize,
}

/// Frames from one side of a joint to the other.
#[derive(Clone, Copy, Default)]
struct Frames {
    /// Units of demand.
    units: u64,
    /// Pairs that exchange them, where what is sent to everybody counts as well.
    all: u64,
}

/// Another way to tie two sides together.
struct Reconnection {
    /// The most loaded channel that it burdens.
    price: f64,
    /// Entries that it changes, at most.
    entries: usize,
    /// From the smaller side to the larger.
    channels: Vec<ChannelId>,
    /// Positions of its ends.
    ends: [usize; 2],
}

/// What is left to spend.
pub(super) struct Limits {
    /// The load that is good enough.
    pub(super) load_enough: f64,
    pub(super) entries: usize,
    /// Joints that may be looked at.
    pub(super) looks: usize,
    /// Ways for which a new numbering may be tried.
    pub(super) tries: usize,
}

impl Limits {
    /// Whether one more look may be had; then it is.
    pub(super) fn look(&mut self) -> bool {
        let left = self.looks.checked_sub(1);
        self.looks = left.unwrap_or(0);
        left.is_some()
    }
}

impl Joint {
    /// The joints of a mended tree that keeps its VLAN.
    pub(super) fn all_of(mender: &mut Mender<'_>, number: usize, tree: &Mended<'_>) -> Vec<Self> {
        let gained = tree.links.iter().filter(|link| tree.in_place && tree.left.binary_search(link).is_err());
        gained.map(|&link| Self::new(mender, number, tree.links, link, tree.flows)).collect()
    }

    pub(super) fn new(mender: &mut Mender<'_>, tree: usize, links: &[LinkId], link: LinkId, flows: &[Flow]) -> Self {
        let tie = ChannelId::forward(link);
        mender.spread_out(links);
        mender.part(tie);
        let mut sides = [tie, tie.reverse()].map(|away| Side::hung_at(mender, mender.topology.tail(away)));
        let mut place = vec![None; mender.hosts.len()];
        for (number, side) in sides.iter().enumerate() {
            side.order.iter().enumerate().for_each(|(at, switch)| place[switch.index()] = Some((number, at)));
        }
        for flow in flows {
            let Some((own, root)) = place[flow.root.index()] else { continue };
            let peers = flow.peers.as_ref().unwrap_or(&mender.hosts);
            let mut sum = Frames::default();
            let other = &mut sides[1 - own];
            for at in 0..other.order.len() {
                let frames = Frames::new(flow, peers, other.order[at]);
                sum.add(frames);
                other.of(flow.direction.reverse())[at].add(frames);
            }
            sides[own].of(flow.direction)[root].add(sum);
        }
        sides.iter_mut().for_each(|side| side.sum_up(&mender.hosts));
        let mut parts = vec![(tie, sides[0].sent[0]), (tie.reverse(), sides[1].sent[0])];
        for side in &sides {
            for (at, inward) in side.inward.iter().enumerate() {
                parts.extend(inward.map(|inward| (inward, side.got[at])));
                parts.extend(inward.map(|inward| (inward.reverse(), side.sent[at])));
            }
        }
        parts.retain(|(_, frames)| frames.units > 0);
        let mut parts: Vec<(ChannelId, f64)> =
            parts.into_iter().map(|(channel, frames)| (channel, frames.load(mender, channel))).collect();
        parts.sort_unstable_by_key(|(channel, _)| *channel);
        Self { tree, link, sides, parts }
    }

    /// What frames between the sides make of a channel.
    pub(super) fn part(&self, channel: ChannelId) -> f64 {
        self.parts.binary_search_by_key(&channel, |(known, _)| *known).map_or(0.0, |at| self.parts[at].1)
    }

    /// Ties the tree elsewhere, if everything that it burdens there stays below the peak.
    pub(super) fn retie(&self, mender: &mut Mender<'_>, tree: &mut Mended<'_>, peak: f64, limits: &mut Limits) -> bool {
        if !limits.look() {
            return false;
        }
        self.parts.iter().for_each(|(channel, part)| mender.load[channel.index()] -= part);
        let ways = self.ways(mender, tree, peak, limits);
        for way in ways {
            if !self.keeps(mender, tree, &way.channels) {
                continue;
            }
            let dependencies = self.dependencies(&way);
            if !mender.climbs_along(tree.lane, &dependencies) {
                // A new numbering is rarely found, and looking for one is dear.
                let Some(left) = limits.tries.checked_sub(1) else { continue };
                limits.tries = left;
            }
            if mender.admit(tree.lane, &dependencies) {
                self.tie(mender, tree.links, &way.channels);
                *tree.links = mender.links();
                let moved = Self::new(mender, self.tree, tree.links, way.channels[0].link(), tree.flows);
                moved.parts.iter().for_each(|(channel, part)| mender.load[channel.index()] += part);
                limits.entries -= way.entries;
                return true;
            }
        }
        self.parts.iter().for_each(|(channel, part)| mender.load[channel.index()] += part);
        false
    }

    /// Whether flows keep to their parts of planes with other channels in place of the link.
    fn keeps(&self, mender: &mut Mender<'_>, tree: &Mended<'_>, channels: &[ChannelId]) -> bool {
        if mender.confined.is_empty() {
            return true;
        }
        self.tie(mender, tree.links, channels);
        mender.weigh(tree.flows)
    }

    /// Lays the tree out as it would be with other channels in place of the link.
    fn tie(&self, mender: &mut Mender<'_>, links: &[LinkId], channels: &[ChannelId]) {
        mender.spread_out(links);
        mender.part(ChannelId::forward(self.link));
        channels.iter().for_each(|channel| mender.join(*channel));
        mender.trim();
    }

    /// Ways that keep below the peak, best first, with the loads less this joint's parts.
    fn ways(&self, mender: &Mender<'_>, tree: &Mended<'_>, peak: f64, limits: &Limits) -> Vec<Reconnection> {
        let topology = mender.topology;
        let [near, far] = self.small_first();
        let prices = [near, far].map(|side| side.prices(mender));
        let mut beyond = vec![None; mender.hosts.len()];
        near.order.iter().for_each(|switch| beyond[switch.index()] = Some(usize::MAX));
        far.order.iter().enumerate().for_each(|(at, switch)| beyond[switch.index()] = Some(at));
        let place = |switch: SwitchId| beyond[switch.index()];
        // Over a switch where something is left of the tree a cycle could close on the way from the old tree.
        let mut idle: Vec<bool> = mender.hosts.iter().map(|hosts| *hosts == 0).collect();
        for channel in tree.left.iter().map(|link| ChannelId::forward(*link)) {
            [channel, channel.reverse()].into_iter().for_each(|end| idle[topology.tail(end).index()] = false);
        }
        let leads_as_before = |channel: &ChannelId| {
            [topology.tail_port(*channel), topology.head_port(*channel)].iter().all(|port| !tree.reused.contains(port))
        };
        let receivers = near.receivers + far.receivers;
        let mut ways = Vec::new();
        let mut rate = |at: usize, to: usize, channels: &[ChannelId]| {
            let busy =
                channels.iter().map(|&c| near.sent[0].price(mender, c).max(far.sent[0].price(mender, c.reverse())));
            let price = busy.fold(prices[0][at].max(prices[1][to]), f64::max);
            let entries = (near.depth[at] + far.depth[to] + 1 + channels.len()) * receivers;
            if price < peak * (1.0 - NOTHING) && entries <= limits.entries {
                let price = price.max(limits.load_enough);
                ways.push(Reconnection { price, entries, channels: channels.to_vec(), ends: [at, to] });
            }
        };
        let mut detours = 0;
        for (at, &switch) in near.order.iter().enumerate() {
            for first in mender.channels_from(switch).filter(leads_as_before) {
                let middle = topology.head(first);
                match place(middle) {
                    Some(usize::MAX) => {}
                    Some(to) => rate(at, to, &[first]),
                    None if idle[middle.index()] && detours < DETOURS_MAX => {
                        for last in mender.channels_from(middle).filter(leads_as_before) {
                            if let Some(to) = place(topology.head(last)).filter(|to| *to != usize::MAX) {
                                rate(at, to, &[first, last]);
                                detours += 1;
                            }
                        }
                    }
                    None => {}
                }
            }
        }
        ways.sort_by(|one, other| {
            one.price
                .total_cmp(&other.price)
                .then(one.entries.cmp(&other.entries))
                .then(one.channels.cmp(&other.channels))
        });
        ways
    }

    fn small_first(&self) -> [&Side; 2] {
        let [one, other] = &self.sides;
        if other.order.len() < one.order.len() { [other, one] } else { [one, other] }
    }

    /// What frames between the sides depend on along a way, as far as that is new: they turn at other switches only
    /// between where the sides were tied and where they are to be.
    fn dependencies(&self, way: &Reconnection) -> Vec<Dependency> {
        let [near, far] = self.small_first();
        let mut dependencies = Vec::new();
        near.turns(way.ends[0], way.channels[0], &mut dependencies);
        far.turns(way.ends[1], way.channels[way.channels.len() - 1].reverse(), &mut dependencies);
        for pair in way.channels.windows(2) {
            depend(near.sent[0], (pair[0], pair[1]), &mut dependencies);
            depend(far.sent[0], (pair[1].reverse(), pair[0].reverse()), &mut dependencies);
        }
        dependencies
    }
}

fn depend(frames: Frames, (from, to): (ChannelId, ChannelId), dependencies: &mut Vec<Dependency>) {
    if frames.all > 0 {
        dependencies.push((from.index() as u32, to.index() as u32));
    }
}

impl Frames {
    /// What a flow's owners exchange with a switch.
    fn new(flow: &Flow, peers: &[u32], switch: SwitchId) -> Self {
        let [owners, peers] = [flow.owners, peers[switch.index()]].map(u64::from);
        let units = flow.demand.as_ref().map_or(owners * peers, |demand| demand[switch.index()]);
        Self { units, all: owners.max(1) * peers }
    }

    fn add(&mut self, other: Self) {
        self.units += other.units;
        self.all += other.all;
    }

    fn less(self, other: Self) -> Self {
        Self { units: self.units - other.units, all: self.all - other.all }
    }

    /// What they make of a channel.
    fn load(self, mender: &Mender<'_>, channel: ChannelId) -> f64 {
        self.units as f64 * mender.per_unit(channel)
    }

    /// What becomes of a channel that is to carry them too; nothing if there are none.
    fn price(self, mender: &Mender<'_>, channel: ChannelId) -> f64 {
        if self.units == 0 { 0.0 } else { mender.load[channel.index()] + self.load(mender, channel) }
    }
}

impl Side {
    /// The piece of a switch, with no traffic yet.
    fn hung_at(mender: &mut Mender<'_>, root: SwitchId) -> Self {
        mender.hang_from(root);
        let order = mender.order.clone();
        let inward: Vec<Option<ChannelId>> = order.iter().map(|switch| mender.inward[switch.index()]).collect();
        let mut place = vec![0; mender.hosts.len()];
        order.iter().enumerate().for_each(|(at, switch)| place[switch.index()] = at);
        let up = |inward: &Option<ChannelId>| inward.map_or(0, |inward| place[mender.topology.tail(inward).index()]);
        let parent: Vec<usize> = inward.iter().map(up).collect();
        let mut depth = vec![0; order.len()];
        (1..order.len()).for_each(|at| depth[at] = depth[parent[at]] + 1);
        let none = vec![Frames::default(); order.len()];
        Self { order, parent, depth, inward, sent: none.clone(), got: none, receivers: 0 }
    }

    /// What leaves the side, or what comes in.
    fn of(&mut self, direction: Direction) -> &mut [Frames] {
        match direction {
            Direction::Outward => &mut self.sent,
            Direction::Inward => &mut self.got,
        }
    }

    /// Adds what is beyond each switch to what is there.
    fn sum_up(&mut self, hosts: &[u32]) {
        let here = self.order.iter().zip(&self.got).filter(|(_, got)| got.all > 0);
        self.receivers = here.map(|(switch, _)| hosts[switch.index()] as usize).sum();
        for at in (1..self.order.len()).rev() {
            let (parent, sent, got) = (self.parent[at], self.sent[at], self.got[at]);
            self.sent[parent].add(sent);
            self.got[parent].add(got);
        }
    }

    /// `prices[position]`: the most loaded channel of the side that is burdened if it is tied there.
    fn prices(&self, mender: &Mender<'_>) -> Vec<f64> {
        let on = |inward: ChannelId, got: Frames, sent: Frames| {
            got.price(mender, inward).max(sent.price(mender, inward.reverse()))
        };
        let count = self.order.len();
        // The busiest beyond each switch, and the most loaded but for one child, if it is tied at or above it.
        let (mut most, mut second) = (vec![0.0_f64; count], vec![0.0_f64; count]);
        let mut through = vec![0.0_f64; count];
        for at in (1..count).rev() {
            let Some(inward) = self.inward[at] else { continue };
            through[at] = on(inward, self.got[at], self.sent[at]).max(most[at]);
            let parent = self.parent[at];
            second[parent] = second[parent].max(through[at].min(most[parent]));
            most[parent] = most[parent].max(through[at]);
        }
        // The busiest elsewhere if it is tied at or beyond each switch.
        let mut above = vec![0.0_f64; count];
        for at in 1..count {
            let Some(inward) = self.inward[at] else { continue };
            let parent = self.parent[at];
            let siblings = if through[at] == most[parent] { second[parent] } else { most[parent] };
            let turned = on(inward, self.sent[0].less(self.sent[at]), self.got[0].less(self.got[at]));
            above[at] = turned.max(siblings).max(above[parent]);
        }
        above.iter().zip(most).map(|(above, most)| above.max(most)).collect()
    }

    /// On what frames depend at the switches from the top to a position, if they leave there by a channel.
    fn turns(&self, end: usize, away: ChannelId, dependencies: &mut Vec<Dependency>) {
        let (mut at, mut next, mut from) = (end, away, None);
        loop {
            let first = self.parent[1..].partition_point(|parent| *parent < at) + 1;
            for child in (first..self.order.len()).take_while(|child| self.parent[*child] == at) {
                if let Some(inward) = self.inward[child].filter(|_| from != Some(child)) {
                    depend(self.sent[child], (inward.reverse(), next), dependencies);
                    depend(self.got[child], (next.reverse(), inward), dependencies);
                }
            }
            let Some(inward) = self.inward[at] else { break };
            depend(self.sent[0].less(self.sent[at]), (inward, next), dependencies);
            depend(self.got[0].less(self.got[at]), (next.reverse(), inward.reverse()), dependencies);
            (from, next, at) = (Some(at), inward, self.parent[at]);
        }
    }
}
