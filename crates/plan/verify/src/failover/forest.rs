//! VLANs as forests: what streams of frames cross, and what a dead link, switch or group keeps from whom.
//!
//! Where a VLAN's active links are a forest and frames get through at all, their way is the only one there is: a switch
//! never sends a frame back where it came from. So what a host's frames cross follows from who is below which switch.
//!
//! ```text
//!   [a] top          from c to everybody: up c▶b▶a, then down a▶d; below b are b, c: so all but two hosts are
//!    ├─[b]─[c]       beyond b▶a. Link a-b dead: whoever is below b and whoever is not have nothing to say to each other
//!    └─[d]
//! ```

use std::sync::Arc;

use fabric::{ChannelId, Failure, LinkId, SwitchId, Topology, VlanId};

use crate::{state::FabricState, view::View};

const NONE: u32 = u32::MAX;

/// One VLAN's active links, rooted at its lowest switches.
pub(super) struct Forest {
    /// Switches, each after the one that it hangs from.
    order: Vec<u32>,
    /// By switch: the channel from the one that it hangs from, or [`NONE`].
    from: Vec<u32>,
    /// By switch: where it stands in `order`, so that what is below it is a range.
    place: Vec<u32>,
    /// By switch: how many are at or below it.
    size: Vec<u32>,
    /// By link: the lower one of its switches, or [`NONE`].
    lower: Vec<u32>,
}

/// Which way frames go between some hosts of one switch and their peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Outward,
    Inward,
}

/// Frames between some hosts of one switch and others, in one VLAN.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) vlan: VlanId,
    pub(super) root: SwitchId,
    pub(super) owners: u64,
    pub(super) direction: Direction,
    /// `peers[switch]`.
    pub(super) peers: Arc<[u32]>,
    /// `demand[switch]`: what they send that way; none where it is one unit for each pair.
    pub(super) demand: Option<Arc<[f64]>>,
}

/// What streams cross; kept for its memory.
#[derive(Default)]
pub(super) struct Tracer {
    below: Vec<u64>,
    sent: Vec<f64>,
    /// By switch: the channel by which frames of the root come there.
    inward: Vec<u32>,
    up: Vec<bool>,
}

impl Forest {
    /// None if the VLAN is no forest, leaks, or has links that pass one way.
    pub(super) fn of(state: &FabricState<'_>, vlan: VlanId) -> Option<Self> {
        let view = View::of(state, vlan);
        if !view.leaks.is_empty() || !view.one_way.is_empty() || !view.pieces(state).1.is_empty() {
            return None;
        }
        let topology = state.topology;
        let switches = topology.switches().len();
        let mut active = vec![false; topology.links().len()];
        view.active.iter().for_each(|link| active[link.index()] = true);
        let mut forest = Self {
            order: Vec::with_capacity(switches),
            from: vec![NONE; switches],
            place: vec![NONE; switches],
            size: vec![1; switches],
            lower: vec![NONE; topology.links().len()],
        };
        let mut stack = Vec::new();
        for top in topology.switch_ids() {
            if forest.place[top.index()] != NONE {
                continue;
            }
            stack.push((top, NONE));
            while let Some((at, from)) = stack.pop() {
                forest.place[at.index()] = forest.order.len() as u32;
                forest.from[at.index()] = from;
                forest.order.push(at.index() as u32);
                for &channel in topology.channels_from(at) {
                    let link = channel.link().index();
                    if active[link] && (from == NONE || ChannelId::new(from as usize).link() != channel.link()) {
                        let head = topology.head(channel);
                        forest.lower[link] = head.index() as u32;
                        stack.push((head, channel.index() as u32));
                    }
                }
            }
        }
        for &at in forest.order.iter().rev() {
            if let Some(above) = forest.above(topology, at as usize) {
                forest.size[above] += forest.size[at as usize];
            }
        }
        Some(forest)
    }

    /// Whether frames between switches that are left may have crossed what fails: a link of its own, a switch that is no leaf, or a
    /// link of a group.
    pub(super) fn is_hit(&self, failure: Failure, dead: &[LinkId]) -> bool {
        let own = dead.iter().filter(|link| self.lower[link.index()] != NONE).count();
        match failure {
            Failure::Link(_) | Failure::Group(_) => own > 0,
            Failure::Switch(_) => own > 1,
        }
    }

    /// Whether frames between two switches would cross any of some links. Those that cross one of a dead switch's pass it,
    /// unless they begin or end there.
    pub(super) fn crosses_any(&self, links: &[LinkId], one: SwitchId, other: SwitchId) -> bool {
        links.iter().any(|link| self.crosses(*link, one, other))
    }

    /// Whether frames between two switches would cross a link.
    pub(super) fn crosses(&self, link: LinkId, one: SwitchId, other: SwitchId) -> bool {
        let lower = self.lower[link.index()];
        lower != NONE && self.is_below(one, lower) != self.is_below(other, lower)
    }

    fn is_below(&self, switch: SwitchId, top: u32) -> bool {
        let (place, first) = (self.place[switch.index()], self.place[top as usize]);
        (first..first + self.size[top as usize]).contains(&place)
    }

    fn above(&self, topology: &Topology, at: usize) -> Option<usize> {
        let from = self.from[at];
        (from != NONE).then(|| topology.tail(ChannelId::new(from as usize)).index())
    }
}

impl Tracer {
    /// Visits every channel that a stream crosses: the channel, the demand on it, and the channel before it, if there is
    /// one. Cost: O(switches).
    pub(super) fn trace(
        &mut self,
        topology: &Topology,
        forest: &Forest,
        stream: &Stream,
        mut visit: impl FnMut(ChannelId, f64, Option<ChannelId>),
    ) {
        let switches = forest.order.len();
        self.below.clear();
        self.below.extend(stream.peers.iter().map(|peers| u64::from(*peers)));
        self.sent.clear();
        match &stream.demand {
            Some(demand) => self.sent.extend_from_slice(demand),
            None => self.sent.extend(self.below.iter().map(|peers| (peers * stream.owners) as f64)),
        }
        for &at in forest.order.iter().rev() {
            if let Some(above) = forest.above(topology, at as usize) {
                self.below[above] += self.below[at as usize];
                self.sent[above] += self.sent[at as usize];
            }
        }
        // Frames of the root go up to the top of its piece, and down from everywhere on the way.
        self.inward.clear();
        self.inward.resize(switches, NONE);
        self.up.clear();
        self.up.resize(switches, false);
        let mut top = stream.root.index();
        self.up[top] = true;
        while let Some(above) = forest.above(topology, top) {
            self.inward[above] = ChannelId::new(forest.from[top] as usize).reverse().index() as u32;
            self.up[above] = true;
            top = above;
        }
        let (all, all_sent) = (self.below[top], self.sent[top]);
        let first = forest.place[top] as usize;
        let piece = &forest.order[first..first + forest.size[top] as usize];
        for &at in &piece[1..] {
            if !self.up[at as usize] {
                self.inward[at as usize] = forest.from[at as usize];
            }
        }
        for &at in &piece[1..] {
            let at = at as usize;
            let from = ChannelId::new(forest.from[at] as usize);
            let (channel, pairs, demand) = if self.up[at] {
                (from.reverse(), all - self.below[at], all_sent - self.sent[at])
            } else {
                (from, self.below[at], self.sent[at])
            };
            if pairs == 0 {
                continue;
            }
            let before = self.inward[topology.tail(channel).index()];
            let before = (before != NONE).then(|| ChannelId::new(before as usize));
            match stream.direction {
                Direction::Outward => visit(channel, demand, before),
                Direction::Inward => {
                    visit(channel.reverse(), demand, None);
                    if let Some(before) = before {
                        // Nothing more crosses it: only that it comes next.
                        visit(before.reverse(), 0.0, Some(channel.reverse()));
                    }
                }
            }
        }
    }
}
