//! Mends one tree: joins its pieces by the fewest cables that keep every route within the channel order.
//!
//! A cable that dies splits a tree in two. Any cable between the pieces makes a tree again, but frames then run through
//! the outer piece from another switch, so some of their channels are taken the other way round, and each such turn must
//! respect the lane's numbering. Cables near the break turn least; of those, the least loaded come first.
//!
//! ```text
//!   [r]─[a]─╳─[b]─[c]        the cable a-b died. r-…-b would turn nothing beyond b;
//!    │         │   │         d-c enters the piece at c: b is reattached to c, and c ▶ b must come after d ▶ c
//!   [d]────────┼───┘
//!    └─────────┘
//! ```
//! What is tried, in this order: one cable within the order; a path over switches without hosts within the order;
//! either of them with a new numbering. A tree of a single sender can also be grown anew along the numbering, each
//! switch keeping its place where it can. Source: the numbering is that of Dally and Seitz (1987); the repair is local
//! search.

use fabric::{
    ChannelId, LinkId, SwitchId, Topology,
    graph::{BreadthFirst, TopologicalOrder, breadth_first},
};

use crate::{confined::Confined, dependency::Dependency, fan::Direction, measure::crossed};

/// Ways of tying a piece that are tried against the numbering as it is.
const CLIMBING_TRIES_MAX: usize = 96;
/// Ways that are tried with a new numbering.
const RENUMBERING_TRIES_MAX: usize = 24;
/// Ways over one more switch that are looked at.
const DETOURS_MAX: usize = 4096;
/// How many turned switches a way may cost more than another if its cable is idle instead of the most loaded.
const LOAD_WEIGHT: f64 = 3.0;

/// Traffic along one tree between some hosts of one switch and others.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) root: SwitchId,
    pub(crate) direction: Direction,
    /// Hosts of the root that take part.
    pub(crate) owners: u32,
    /// `peers[switch]`: hosts there at the other end; none if all are.
    pub(crate) peers: Option<Vec<u32>>,
    /// `demand[switch]`: units that owners and peers there send that way; none if it is one for each pair of them.
    pub(crate) demand: Option<Vec<u64>>,
}

/// Which cycles of dependencies the fabric can bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycles {
    /// None: full buffers wait.
    Forbidden,
    /// Any: frames are dropped. Routes without one are preferred all the same.
    Allowed,
}

/// Loads and numberings of all trees so far, and room for one tree to be mended.
#[derive(Clone)]
pub(crate) struct Mender<'a> {
    pub(super) topology: &'a Topology,
    pub(super) cycles: Cycles,
    /// Which channels trees may not take.
    pub(super) confined: Confined,
    /// Links that are not to be used, though they are there; ascending.
    without: Vec<LinkId>,
    /// One a lane.
    pub(crate) orders: Vec<TopologicalOrder>,
    /// `load[channel]`: time to carry one bit for each unit that crosses it, in picoseconds.
    pub(super) load: Vec<f64>,
    /// `hosts[switch]`.
    pub(super) hosts: Vec<u32>,
    /// `beside[switch]`: the tree's channels that leave it.
    pub(super) beside: Vec<Vec<ChannelId>>,
    pub(super) order: Vec<SwitchId>,
    pub(super) inward: Vec<Option<ChannelId>>,
    pub(super) below: Vec<u32>,
    /// `depth[switch]`: links from the root of the flow that was traced last.
    depth: Vec<u32>,
    /// `carried[switch]`: units for what is there and below, where a flow has a demand of its own.
    carried: Vec<u64>,
    dependencies: Vec<Dependency>,
    /// What the flows that were weighed last add to channels.
    pub(super) weights: Vec<(ChannelId, f64)>,
}

impl<'a> Mender<'a> {
    pub(crate) fn new(topology: &'a Topology, cycles: Cycles, orders: Vec<TopologicalOrder>) -> Self {
        let switches = topology.switches().len();
        Self {
            topology,
            cycles,
            confined: Confined::default(),
            without: Vec::new(),
            orders,
            load: vec![0.0; topology.channel_count()],
            hosts: topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as u32).collect(),
            beside: vec![Vec::new(); switches],
            order: Vec::with_capacity(switches),
            inward: vec![None; switches],
            below: vec![0; switches],
            depth: vec![0; switches],
            carried: vec![0; switches],
            dependencies: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Has flows keep to their parts of planes, and to how long paths may be.
    pub(super) fn confine(&mut self, confined: Confined) {
        self.confined = confined;
    }

    /// Forbids links that are there, given ascending.
    pub(crate) fn do_without(&mut self, links: &[LinkId]) {
        self.without = links.to_vec();
    }

    /// Whether a channel is not forbidden.
    pub(super) fn may_use(&self, channel: ChannelId) -> bool {
        self.without.binary_search(&channel.link()).is_err()
    }

    /// The channels that leave a switch and may be used.
    pub(super) fn channels_from(&self, switch: SwitchId) -> impl Iterator<Item = ChannelId> + use<'_> {
        self.topology.channels_from(switch).iter().copied().filter(|channel| self.may_use(*channel))
    }

    /// Whether links tie together every switch with hosts.
    pub(crate) fn covers(&mut self, links: &[LinkId]) -> bool {
        let Some(start) = self.hosts.iter().position(|hosts| *hosts > 0) else { return true };
        self.spread_out(links);
        if self.beside[start].is_empty() && !links.is_empty() {
            return false;
        }
        self.hang_from(SwitchId::new(start));
        self.reached_all()
    }

    /// Whether every switch with hosts is in the piece that was attached last.
    fn reached_all(&self) -> bool {
        let reached = self.order.iter().filter(|switch| self.hosts[switch.index()] > 0).count();
        reached == self.hosts.iter().filter(|hosts| **hosts > 0).count()
    }

    /// Takes a tree as it is, less branches that nobody lives on any more. Its links, ascending; none if it does not reach
    /// everybody, or if its flows do not respect the channel order where they must.
    pub(crate) fn take(&mut self, lane: u8, links: &[LinkId], flows: &[Flow]) -> Option<Vec<LinkId>> {
        self.spread_out(links);
        let is_trimmed = self.trim();
        let keeps = self.weigh(flows);
        let climbs = self.cycles == Cycles::Allowed || self.climbs_along(lane, &self.dependencies);
        (keeps && climbs && self.reached_all() && self.settle(lane))
            .then(|| if is_trimmed { self.links() } else { links.to_vec() })
    }

    /// On what flows along a tree depend.
    pub(super) fn dependencies_of(&mut self, links: &[LinkId], flows: &[Flow]) -> &[Dependency] {
        self.spread_out(links);
        self.dependencies.clear();
        flows.iter().for_each(|flow| {
            self.trace(flow);
        });
        &self.dependencies
    }

    /// Ties the pieces of a tree together. `stubs` are the switches at the ends of what it lost.
    /// The links of the mended tree, ascending; none if no way was found.
    pub(crate) fn mend(
        &mut self,
        lane: u8,
        links: &[LinkId],
        stubs: &[SwitchId],
        flows: &[Flow],
    ) -> Option<Vec<LinkId>> {
        self.spread_out(links);
        self.drop_idle_pieces();
        let distance = self.distances(stubs);
        loop {
            let pieces = self.pieces();
            let Some(trunk) = self.trunk(&pieces, flows) else { break };
            let ways = self.ways(&pieces, trunk, &distance);
            self.tie(lane, flows, &ways)?;
        }
        self.trim();
        (self.weigh(flows) && self.settle(lane)).then(|| self.links())
    }

    /// The tree of one flow grown anew: every switch keeps the channel by which frames reached it, unless that is gone or
    /// does not respect the order any more; then it takes the lowest channel that does. None if no such tree reaches all hosts.
    pub(crate) fn regrow(&mut self, lane: u8, links: &[LinkId], flows: &[Flow]) -> Option<Vec<LinkId>> {
        let [Flow { root, direction, .. }, ..] = *flows else { return None };
        if flows.iter().any(|flow| flow.root != root) {
            return None;
        }
        self.spread_out(links);
        let mut kept = vec![None; self.beside.len()];
        self.pieces_inward(&mut kept, root);
        let rank = self.orders[usize::from(lane)].rank();
        // Channels rise outward from the root for outward frames, and toward it for inward ones: the same walk, reversed.
        let key = |channel: ChannelId| match direction {
            Direction::Outward => i64::from(rank[channel.index()]),
            Direction::Inward => -i64::from(rank[channel.reverse().index()]),
        };
        let mut climbing: Vec<ChannelId> =
            self.topology.channel_ids().filter(|&channel| self.may_use(channel)).collect();
        climbing.sort_unstable_by_key(|&channel| (key(channel), channel));
        let ends = |channel: ChannelId| [self.topology.tail(channel), self.topology.head(channel)].map(SwitchId::index);
        // By which channel each switch is reached first, if it may choose.
        let grow = |kept: &[Option<ChannelId>]| {
            let mut arrival: Vec<Option<i64>> = vec![None; kept.len()];
            let mut grown: Vec<Option<ChannelId>> = vec![None; kept.len()];
            arrival[root.index()] = Some(i64::MIN);
            for &channel in &climbing {
                let [tail, head] = ends(channel);
                let allowed = self.confined.allows(root.index(), tail, head);
                let open = allowed && arrival[head].is_none() && kept[head].is_none_or(|kept| kept == channel);
                if open && arrival[tail].is_some_and(|arrival| arrival < key(channel)) {
                    arrival[head] = Some(key(channel));
                    grown[head] = Some(channel);
                }
            }
            grown
        };
        let reached = |grown: &[Option<ChannelId>], at: usize| at == root.index() || grown[at].is_some();
        let first = grow(&vec![None; kept.len()]);
        if !(0..kept.len()).all(|at| self.hosts[at] == 0 || reached(&first, at)) {
            return None;
        }
        let mut grown: Vec<Option<ChannelId>>;
        loop {
            grown = grow(&kept);
            let missed: Vec<usize> = (0..kept.len()).filter(|&at| !reached(&grown, at)).collect();
            // Those whose old channel leads on from a switch that was reached, but too late, have to let go of it.
            let is_late = |at: usize| kept[at].is_some_and(|kept: ChannelId| reached(&grown, ends(kept)[0]));
            let late: Vec<usize> = missed.iter().copied().filter(|&at| is_late(at)).collect();
            let cut_off: Vec<usize> = missed.iter().copied().filter(|&at| kept[at].is_some()).collect();
            if !late.is_empty() {
                late.into_iter().for_each(|at| kept[at] = None);
            } else if !cut_off.is_empty() {
                cut_off.into_iter().for_each(|at| kept[at] = None);
            } else if let Some(&lost) = missed.iter().find(|&&at| self.hosts[at] > 0) {
                // Some switch on the way is held back by what it keeps.
                let mut at = lost;
                while let Some(channel) = first[at] {
                    kept[at] = Some(channel);
                    at = ends(channel)[0];
                }
            } else {
                break;
            }
        }
        let links: Vec<LinkId> = grown.iter().flatten().map(|channel| channel.link()).collect();
        self.spread_out(&links);
        self.trim();
        (self.weigh(flows) && self.settle(lane)).then(|| self.links())
    }

    /// By which channel frames from `root` enter each switch of its piece; in other pieces, as if they came in at the
    /// lowest switch.
    fn pieces_inward(&mut self, kept: &mut [Option<ChannelId>], root: SwitchId) {
        let mut seen = vec![false; kept.len()];
        for start in std::iter::once(root).chain(self.topology.switch_ids()) {
            if !seen[start.index()] {
                self.hang_from(start);
                for &switch in &self.order {
                    seen[switch.index()] = true;
                    kept[switch.index()] = self.inward[switch.index()];
                }
            }
        }
    }

    /// What flows would make of the most loaded channel on their way along a tree, if they may take it.
    pub(crate) fn price(&mut self, lane: u8, links: &[LinkId], flows: &[Flow]) -> Option<f64> {
        self.spread_out(links);
        self.dependencies.clear();
        let mut peak: f64 = 0.0;
        for flow in flows {
            if !self.trace(flow) {
                return None;
            }
            for at in 1..self.order.len() {
                let switch = self.order[at].index();
                let Some(channel) = self.inward[switch] else { continue };
                let channel = crossed(channel, flow.direction);
                let added = self.units(flow, switch) * self.per_unit(channel);
                if added > 0.0 {
                    peak = peak.max(self.load[channel.index()] + added);
                }
            }
        }
        let order = &mut self.orders[usize::from(lane)];
        (self.cycles == Cycles::Allowed || order.accepts(&self.dependencies)).then_some(peak)
    }

    /// Lays links out by switch.
    pub(super) fn spread_out(&mut self, links: &[LinkId]) {
        self.beside.iter_mut().for_each(Vec::clear);
        for &link in links {
            self.join(ChannelId::forward(link));
        }
    }

    /// The links that are laid out, ascending.
    pub(super) fn links(&self) -> Vec<LinkId> {
        let forward = self.beside.iter().flatten().filter(|channel| channel.is_forward());
        let mut links: Vec<LinkId> = forward.map(|channel| channel.link()).collect();
        links.sort_unstable();
        links
    }

    pub(super) fn join(&mut self, channel: ChannelId) {
        for channel in [channel, channel.reverse()] {
            self.beside[self.topology.tail(channel).index()].push(channel);
        }
    }

    pub(super) fn part(&mut self, channel: ChannelId) {
        for channel in [channel, channel.reverse()] {
            self.beside[self.topology.tail(channel).index()].retain(|known| *known != channel);
        }
    }

    /// Hangs the piece of a switch up there: fills `order` and `inward`.
    pub(super) fn hang_from(&mut self, root: SwitchId) {
        self.order.clear();
        self.order.push(root);
        self.inward[root.index()] = None;
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            for &channel in &self.beside[at.index()] {
                if self.inward[at.index()].is_some_and(|inward| inward.link() == channel.link()) {
                    continue;
                }
                let head = self.topology.head(channel);
                self.inward[head.index()] = Some(channel);
                self.order.push(head);
            }
        }
    }

    /// Adds the dependencies of a flow along the tree, and says whether it keeps to its part and to how long paths may be; leaves `order`, `inward` and `below`
    /// filled.
    pub(super) fn trace(&mut self, flow: &Flow) -> bool {
        let mut keeps = true;
        self.hang_from(flow.root);
        for &switch in &self.order {
            self.below[switch.index()] = match &flow.peers {
                Some(peers) => peers[switch.index()],
                None => self.hosts[switch.index()],
            };
            self.carried[switch.index()] = flow.demand.as_ref().map_or(0, |demand| demand[switch.index()]);
        }
        if let Some(limit) = self.confined.hops() {
            for &switch in &self.order {
                let above = self.inward[switch.index()].map(|inward| self.depth[self.topology.tail(inward).index()]);
                self.depth[switch.index()] = above.map_or(0, |above| above + 1);
                keeps &= self.below[switch.index()] == 0 || self.depth[switch.index()] <= limit.hops_max;
            }
        }
        for &switch in self.order[1..].iter().rev() {
            let below = self.below[switch.index()];
            let Some(last) = self.inward[switch.index()].filter(|_| below > 0) else { continue };
            let parent = self.topology.tail(last);
            keeps &= self.confined.allows(flow.root.index(), parent.index(), switch.index());
            self.below[parent.index()] += below;
            self.carried[parent.index()] += self.carried[switch.index()];
            if let Some(first) = self.inward[parent.index()] {
                self.dependencies.push(match flow.direction {
                    Direction::Outward => (first.index() as u32, last.index() as u32),
                    Direction::Inward => (last.reverse().index() as u32, first.reverse().index() as u32),
                });
            }
        }
        keeps
    }

    /// Finds what flows along the tree depend on, and what they add to channels; says whether they keep to their parts and to how long paths may be.
    pub(super) fn weigh(&mut self, flows: &[Flow]) -> bool {
        let mut keeps = true;
        self.dependencies.clear();
        self.weights.clear();
        for flow in flows {
            keeps &= self.trace(flow);
            for at in 1..self.order.len() {
                let switch = self.order[at].index();
                if let Some(channel) = self.inward[switch].filter(|_| self.below[switch] > 0) {
                    let channel = crossed(channel, flow.direction);
                    let weight = self.units(flow, switch) * self.per_unit(channel);
                    self.weights.push((channel, weight));
                }
            }
        }
        keeps
    }

    /// Adds the finished tree's dependencies and loads, as they were weighed.
    fn settle(&mut self, lane: u8) -> bool {
        let dependencies = std::mem::take(&mut self.dependencies);
        let admitted = self.admit(lane, &dependencies);
        self.dependencies = dependencies;
        if admitted {
            self.weights.iter().for_each(|(channel, weight)| self.load[channel.index()] += weight);
        }
        admitted
    }

    /// Adds dependencies; false, and nothing is added, if they close a cycle that must not be.
    pub(super) fn admit(&mut self, lane: u8, dependencies: &[Dependency]) -> bool {
        let order = &mut self.orders[usize::from(lane)];
        match self.cycles {
            Cycles::Forbidden => order.insert_all(dependencies).is_some(),
            Cycles::Allowed => {
                order.insert_unchecked(dependencies);
                true
            }
        }
    }

    /// The most loaded channel and its load.
    pub(super) fn busiest(&self) -> Option<(ChannelId, f64)> {
        let loads = self.topology.channel_ids().zip(self.load.iter().copied());
        loads.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Units that a flow that was traced carries to or from a switch and beyond.
    fn units(&self, flow: &Flow, switch: usize) -> f64 {
        match flow.demand {
            Some(_) => self.carried[switch] as f64,
            None => f64::from(self.below[switch] * flow.owners),
        }
    }

    pub(super) fn per_unit(&self, channel: ChannelId) -> f64 {
        1e12 / self.topology.link(channel.link()).rate_bps as f64
    }

    /// `piece[switch]`: the lowest switch of its piece.
    fn pieces(&mut self) -> Vec<usize> {
        let mut piece = vec![usize::MAX; self.beside.len()];
        for start in 0..piece.len() {
            if piece[start] == usize::MAX {
                self.hang_from(SwitchId::new(start));
                self.order.iter().for_each(|switch| piece[switch.index()] = start);
            }
        }
        piece
    }

    /// Lets go of pieces in which nobody lives: a way over one of their switches can still be found.
    fn drop_idle_pieces(&mut self) {
        let piece = self.pieces();
        let mut lived_in = vec![false; piece.len()];
        piece.iter().zip(&self.hosts).for_each(|(&piece, &hosts)| lived_in[piece] |= hosts > 0);
        for (beside, &piece) in self.beside.iter_mut().zip(&piece) {
            if !lived_in[piece] {
                beside.clear();
            }
        }
    }

    /// The piece to which the others are tied: most of the flows begin there. None if there is but one.
    fn trunk(&self, piece: &[usize], flows: &[Flow]) -> Option<usize> {
        let mut weight = vec![(0_u32, 0_u32); piece.len()];
        piece.iter().zip(&self.hosts).for_each(|(&piece, &hosts)| weight[piece].1 += hosts);
        let lived_in = weight.iter().filter(|(_, hosts)| *hosts > 0).count();
        flows.iter().for_each(|flow| weight[piece[flow.root.index()]].0 += flow.owners);
        let heaviest = (0..piece.len()).filter(|&at| weight[at].1 > 0).rev().max_by_key(|&at| weight[at]);
        heaviest.filter(|_| lived_in > 1)
    }

    /// Links along the tree from the nearest stub of the same piece; 0 where a piece lost nothing.
    fn distances(&self, stubs: &[SwitchId]) -> Vec<u32> {
        let beside = |switch: SwitchId| self.beside[switch.index()].iter().map(|&c| (c, self.topology.head(c)));
        let found = breadth_first(self.beside.len(), stubs.iter().copied(), beside);
        self.topology.switch_ids().map(|switch| found.distance(switch).unwrap_or(0)).collect()
    }

    /// Ways from the trunk to other pieces with hosts, best first.
    fn ways(&self, piece: &[usize], trunk: usize, distance: &[u32]) -> Vec<Vec<ChannelId>> {
        let mut lived_in = vec![false; piece.len()];
        piece.iter().zip(&self.hosts).for_each(|(&piece, &hosts)| lived_in[piece] |= hosts > 0);
        let peak = self.load.iter().copied().fold(1.0, f64::max);
        let mut ways: Vec<(f64, Vec<ChannelId>)> = Vec::new();
        let rated = |way: &[ChannelId]| {
            let (first, last) = (way[0], way[way.len() - 1]);
            let turned = distance[self.topology.tail(first).index()] + distance[self.topology.head(last).index()];
            let busy = way.iter().map(|c| self.load[c.index()] + self.load[c.reverse().index()]).fold(0.0, f64::max);
            let cost = f64::from(turned) + 2.0 * (way.len() - 1) as f64 + LOAD_WEIGHT * busy / peak;
            (cost, way.to_vec())
        };
        let inside = |switch: SwitchId| piece[switch.index()] == trunk;
        let wanted = |switch: SwitchId| piece[switch.index()] != trunk && lived_in[piece[switch.index()]];
        let mut detours = 0;
        for start in self.topology.switch_ids().filter(|switch| inside(*switch)) {
            for first in self.channels_from(start) {
                let middle = self.topology.head(first);
                if wanted(middle) {
                    ways.push(rated(&[first]));
                } else if !inside(middle) && detours < DETOURS_MAX {
                    for last in self.channels_from(middle) {
                        if wanted(self.topology.head(last)) {
                            ways.push(rated(&[first, last]));
                            detours += 1;
                        }
                    }
                }
            }
        }
        if ways.is_empty() {
            if let Some(way) = self.long_way(&inside, &wanted) {
                ways.push(rated(&way));
            }
        }
        ways.sort_by(|(one, a), (other, b)| one.total_cmp(other).then_with(|| a.cmp(b)));
        ways.into_iter().map(|(_, way)| way).collect()
    }

    /// A shortest way from the trunk over any number of switches without hosts.
    fn long_way(
        &self,
        inside: &impl Fn(SwitchId) -> bool,
        wanted: &impl Fn(SwitchId) -> bool,
    ) -> Option<Vec<ChannelId>> {
        let starts = self.topology.switch_ids().filter(|switch| inside(*switch));
        let mut search = BreadthFirst::from(self.beside.len(), starts);
        while let Some(at) = search.next() {
            for channel in self.channels_from(at) {
                let head = self.topology.head(channel);
                if search.reach(at, channel, head) && wanted(head) {
                    let mut way = Vec::new();
                    let mut back = head;
                    while let Some(channel) = search.inward[back.index()] {
                        way.push(channel);
                        back = self.topology.tail(channel);
                    }
                    way.reverse();
                    return Some(way);
                }
            }
        }
        None
    }

    /// Takes the first way along which all flows respect the order, else the first that a new numbering allows.
    fn tie(&mut self, lane: u8, flows: &[Flow], ways: &[Vec<ChannelId>]) -> Option<()> {
        let entered: Vec<Vec<Option<ChannelId>>> = flows.iter().map(|flow| self.entered_from(flow.root)).collect();
        for way in ways.iter().take(CLIMBING_TRIES_MAX) {
            // Most ways are out of the question at their very ends.
            if !flows.iter().zip(&entered).all(|(flow, entered)| self.ends_climb(lane, way, flow, entered)) {
                continue;
            }
            way.iter().for_each(|&channel| self.join(channel));
            if flows.iter().all(|flow| self.climbs(lane, flow)) {
                return Some(());
            }
            way.iter().for_each(|&channel| self.part(channel));
        }
        for way in ways.iter().take(RENUMBERING_TRIES_MAX) {
            way.iter().for_each(|&channel| self.join(channel));
            self.dependencies.clear();
            if !flows.iter().all(|flow| self.trace(flow)) {
                way.iter().for_each(|&channel| self.part(channel));
                continue;
            }
            if self.cycles == Cycles::Allowed || self.orders[usize::from(lane)].accepts(&self.dependencies) {
                return Some(());
            }
            way.iter().for_each(|&channel| self.part(channel));
        }
        None
    }

    /// By which channel frames from a switch enter each switch of its piece.
    fn entered_from(&mut self, root: SwitchId) -> Vec<Option<ChannelId>> {
        self.hang_from(root);
        let mut entered = vec![None; self.beside.len()];
        self.order.iter().for_each(|switch| entered[switch.index()] = self.inward[switch.index()]);
        entered
    }

    /// Whether a flow would respect the order along a path to join it, and from there to the nearest hosts. Undecided
    /// turns count as respecting it.
    fn ends_climb(&self, lane: u8, way: &[ChannelId], flow: &Flow, entered: &[Option<ChannelId>]) -> bool {
        let order = &self.orders[usize::from(lane)];
        let climbs = |first: ChannelId, last: ChannelId| match flow.direction {
            Direction::Outward => order.respects((first.index() as u32, last.index() as u32)),
            Direction::Inward => order.respects((last.reverse().index() as u32, first.reverse().index() as u32)),
        };
        let lived_in = |switch: SwitchId| match &flow.peers {
            Some(peers) => peers[switch.index()] > 0,
            None => self.hosts[switch.index()] > 0,
        };
        let (first, last) = (way[0], way[way.len() - 1]);
        let end = self.topology.head(last);
        let Some(before) = entered[self.topology.tail(first).index()] else { return true };
        let onto = !lived_in(end) || climbs(before, first);
        onto && self.beside[end.index()].iter().all(|&next| !lived_in(self.topology.head(next)) || climbs(last, next))
    }

    /// Whether a flow respects the channel order along the tree as the numbering is.
    fn climbs(&mut self, lane: u8, flow: &Flow) -> bool {
        self.dependencies.clear();
        self.trace(flow) && self.climbs_along(lane, &self.dependencies)
    }

    /// Whether dependencies respect the channel order as the numbering is.
    pub(super) fn climbs_along(&self, lane: u8, dependencies: &[Dependency]) -> bool {
        let order = &self.orders[usize::from(lane)];
        dependencies.iter().all(|&dependency| order.respects(dependency))
    }

    /// Cuts branches that end at switches without hosts; whether there were any.
    pub(super) fn trim(&mut self) -> bool {
        let mut bare: Vec<usize> =
            (0..self.beside.len()).filter(|&at| self.hosts[at] == 0 && self.beside[at].len() == 1).collect();
        let is_trimmed = !bare.is_empty();
        while let Some(at) = bare.pop() {
            let Some(&only) = self.beside[at].first() else { continue };
            self.part(only);
            let next = self.topology.head(only).index();
            if self.hosts[next] == 0 && self.beside[next].len() == 1 {
                bare.push(next);
            }
        }
        is_trimmed
    }
}
