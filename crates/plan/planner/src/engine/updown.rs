//! Up*/down* routing on any graph.
//!
//! Switches are ordered by their distance from a root. A channel toward the root is *up*, one away from it *down*, and
//! a route goes up first and then down, never up again; number the up channels toward the root, then the down channels
//! away from it, and every route increases, so no cycle can form (Schroeder et al., "Autonet: a high-speed,
//! self-configuring local area network using point-to-point links", 1991).
//!
//! A source's routes must form one tree here. Every switch that the source reaches by up channels alone is reached that
//! way, so that frames may go on up or down from it; all others are reached by down channels from there. Trees
//! are built one after the other, each avoiding the channels that the ones before have loaded, and rebuilt a few times.
//! Several roots are tried.
//!
//! Where trees keep to planes, switches are ordered part by part: first all of the root's part, then those of a part next to it, and
//! so on, each by distance from a root of its own. What is up or down within a part is so by the part's own root, so a source
//! reaches its whole part without leaving it; and every part is below one that comes before it.
//!
//! Where paths may only be so long, no switch is entered deeper than its ceiling (`hop_limit.rs`), counted along paths that go up first
//! and then down. Where the shortest of those are too long, trees are the shortest there are, and the caller refuses them.
//!
//! ```text
//!        [r]            from a:  up a▶b▶r, then down r▶c, c▶d;
//!       ↗   ↘                    not a▶d▶c: after the down channel a▶d none may go up
//!     [b]   [c]
//!      ↑     ↓
//!     [a]───[d]
//! ```

use std::cmp::{Ordering, Reverse};

use fabric::{
    ChannelId, HostId, Policy, SwitchId, Topology, Traffic, Tree,
    graph::{BreadthFirst, Cost, Dijkstra, Length, breadth_first, dijkstra},
};

use crate::{confined::Confined, demand::sent_by, exponential::exp, measure::Measure, routing::Routing};

/// Roots tried.
const ROOTS_MAX: usize = 4;
/// Times that all trees are rebuilt against the loads of the others.
const PASSES: usize = 3;
/// Channel relaxations spent, beyond which fewer roots and passes are tried.
const RELAXATIONS_MAX: usize = 40_000_000;

pub(crate) fn route(topology: &Topology, policy: &Policy) -> Routing {
    let groups = groups(topology, policy);
    let round = (groups.len() * topology.channel_count()).max(1);
    let affordable = (RELAXATIONS_MAX / round).max(1);
    let roots = central_switches(topology, ROOTS_MAX.min(affordable));
    let confined = Confined::by(topology, policy);
    let passes = (affordable / roots.len()).min(PASSES);
    (roots.into_iter())
        .map(|root| {
            let routing = Builder::new(topology, &policy.traffic, &confined, root).routing(&groups, passes);
            (Measure::of(topology, &policy.traffic, &routing), routing)
        })
        .min_by(|(a, _), (b, _)| {
            let excess = |of: &Measure| policy.hops_max.map_or(0, |limit| of.hops_max.saturating_sub(limit as usize));
            let by_length = excess(a).cmp(&excess(b));
            by_length.then(a.time_max.total_cmp(&b.time_max)).then(a.hops_total.cmp(&b.hops_total))
        })
        .expect("there is at least one root")
        .1
}

/// Hosts that share a tree: those of a switch, dealt onto as many trees as it has cables, as far as VLANs allow.
fn groups(topology: &Topology, policy: &Policy) -> Vec<Vec<HostId>> {
    let vlans = policy.vlans.iter().count().min(policy.vlans_max.unwrap_or(usize::MAX));
    let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
    let affordable = (vlans / sources.max(1)).max(1);
    let mut groups = Vec::new();
    for switch in topology.switch_ids() {
        let hosts = topology.hosts_of(switch);
        let parts = hosts.len().min(topology.channels_from(switch).len()).min(affordable);
        let start = groups.len();
        groups.resize(start + parts.max(usize::from(!hosts.is_empty())), Vec::new());
        let parts = groups.len() - start;
        for (turn, &host) in hosts.iter().enumerate() {
            groups[start + turn % parts].push(host);
        }
    }
    groups
}

/// The switches with the smallest distance to the farthest other, most cables first, then in order. Exact for small
/// fabrics; for large ones the middle of a longest shortest path, found by two sweeps.
fn central_switches(topology: &Topology, count: usize) -> Vec<SwitchId> {
    const EXACT_MAX: usize = 2_000;
    let switches = topology.switches().len();
    if switches > EXACT_MAX {
        let farthest = |from| *search(topology, from).order.last().expect("at least the start");
        let one = farthest(SwitchId::new(0));
        let other = farthest(one);
        let (near, far) = (search(topology, one), search(topology, other));
        let mut middle: Vec<SwitchId> = topology.switch_ids().collect();
        middle
            .sort_by_key(|s| (near.distance(*s).max(far.distance(*s)), Reverse(topology.channels_from(*s).len()), *s));
        middle.truncate(count);
        return middle;
    }
    let mut ranked: Vec<_> = (topology.switch_ids())
        .map(|switch| {
            let found = search(topology, switch);
            let eccentricity = found.distance(*found.order.last().expect("at least the start"));
            (eccentricity, Reverse(topology.channels_from(switch).len()), switch)
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count.max(1)).map(|(.., switch)| switch).collect()
}

/// Switches by their distance from one.
fn search(topology: &Topology, from: SwitchId) -> BreadthFirst<SwitchId, ChannelId> {
    breadth_first(topology.switches().len(), [from], |switch| topology.neighbours(switch))
}

/// All switches, nearest to the root first within each part: the root's part, then always one next to those before, from its switch
/// with the most cables to them.
fn part_by_part(topology: &Topology, confined: &Confined, root: SwitchId) -> Vec<SwitchId> {
    if !confined.has_planes() {
        return search(topology, root).order;
    }
    let count = topology.switches().len();
    let mut order = Vec::with_capacity(count);
    // How many cables each switch has to those that are in order.
    let mut met = vec![0_usize; count];
    let mut placed = vec![false; count];
    let mut next = Some(root);
    while let Some(root) = next {
        let inside = breadth_first(count, [root], |switch| {
            let same = move |head: &SwitchId| confined.part(*head) == confined.part(root);
            topology.neighbours(switch).filter(move |(_, head)| same(head))
        });
        for &switch in &inside.order {
            placed[switch.index()] = true;
            topology.neighbours(switch).for_each(|(_, head)| met[head.index()] += 1);
        }
        order.extend(inside.order);
        let open = topology.switch_ids().filter(|switch| !placed[switch.index()] && met[switch.index()] > 0);
        next = open.max_by_key(|switch| (met[switch.index()], Reverse(*switch)));
    }
    order
}

struct Builder<'a> {
    topology: &'a Topology,
    traffic: &'a Traffic,
    confined: &'a Confined,
    /// `height[switch]`: position in breadth-first order from the root, which is 0, part by part.
    height: Vec<usize>,
    /// `load[channel]`: time to carry the demand that crosses it, in demand on the fastest link.
    load: Vec<f64>,
}

impl<'a> Builder<'a> {
    fn new(topology: &'a Topology, traffic: &'a Traffic, confined: &'a Confined, root: SwitchId) -> Self {
        let mut height = vec![0; topology.switches().len()];
        for (position, switch) in part_by_part(topology, confined, root).into_iter().enumerate() {
            height[switch.index()] = position;
        }
        Self { topology, traffic, confined, height, load: vec![0.0; topology.channel_count()] }
    }

    /// Trees for all groups, each built against the loads of the others.
    fn routing(mut self, groups: &[Vec<HostId>], passes: usize) -> Routing {
        let sent: Vec<Vec<(SwitchId, f64)>> = groups.iter().map(|group| self.sent(group)).collect();
        let mut links: Vec<Vec<ChannelId>> = vec![Vec::new(); groups.len()];
        let mut best: Option<(f64, Vec<Vec<ChannelId>>)> = None;
        for pass in 0..passes.max(1) {
            for ((group, sent), inward) in groups.iter().zip(&sent).zip(&mut links) {
                self.weigh(sent, inward, -1.0);
                *inward = self.tree_from(self.topology.switch_of(group[0]), pass);
                self.weigh(sent, inward, 1.0);
            }
            let peak = self.load.iter().copied().fold(0.0, f64::max);
            if best.as_ref().is_none_or(|(least, _)| peak < least * (1.0 - 1e-9)) {
                best = Some((peak, links.clone()));
            }
        }
        let mut choice = vec![0; self.topology.hosts().len()];
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|host| choice[host.index()] = number);
        }
        let trees = best.expect("at least one pass").1.into_iter().map(|inward| {
            Tree::new(self.topology, inward.into_iter().map(ChannelId::link)).expect("one inward channel a switch")
        });
        Routing { numbering: Some(self.numbering()), ..Routing::by_source(trees.collect(), choice) }
    }

    /// What a group sends to the hosts of each switch, zeros left out.
    fn sent(&self, group: &[HostId]) -> Vec<(SwitchId, f64)> {
        let mut below = vec![0.0; self.topology.switches().len()];
        sent_by(self.topology, self.traffic, group, &mut below);
        self.topology.switch_ids().zip(below).filter(|(_, amount)| *amount > 0.0).collect()
    }

    /// Adds or removes the load of a group's tree, given as inward channels, outermost last.
    fn weigh(&mut self, sent: &[(SwitchId, f64)], inward: &[ChannelId], sign: f64) {
        let mut below = vec![0.0; self.topology.switches().len()];
        sent.iter().for_each(|(switch, amount)| below[switch.index()] = *amount);
        for &channel in inward.iter().rev() {
            let beyond = below[self.topology.head(channel).index()];
            below[self.topology.tail(channel).index()] += beyond;
            self.load[channel.index()] += sign * beyond * self.topology.slowness(channel);
        }
    }

    /// Up channels toward the root, then down channels away from it.
    fn numbering(&self) -> Vec<u32> {
        let switches = self.height.len();
        let number = |channel| {
            let height = self.height[self.topology.head(channel).index()];
            (if self.is_up(channel) { switches - height } else { switches + height }) as u32
        };
        self.topology.channel_ids().map(number).collect()
    }

    fn is_up(&self, channel: ChannelId) -> bool {
        self.height[self.topology.head(channel).index()] < self.height[self.topology.tail(channel).index()]
    }

    /// The tree of a source as inward channels, parents before children; switches without hosts at its rim left out.
    fn tree_from(&self, source: SwitchId, pass: usize) -> Vec<ChannelId> {
        let peak = self.load.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let price = |channel: ChannelId| {
            let load = self.load[channel.index()] / peak;
            if pass == 0 { 1.0 + 0.3 * load } else { 0.2 + exp(6.0 * (load - 1.0)) * (1.0 + pass as f64) }
        };
        let found = match self.ceilings(source) {
            None => self.cheapest_tree(source, &price, None),
            Some(Ceilings::Within(ceiling)) => self.cheapest_tree(source, &price, Some(&ceiling)),
            Some(Ceilings::Unreachable(shortest)) => shortest,
        };
        let Dijkstra { mut order, cost, inward } = found;
        let mut needed: Vec<bool> =
            self.topology.switch_ids().map(|switch| !self.topology.hosts_of(switch).is_empty()).collect();
        let mut channels = Vec::new();
        order.sort_by_key(|switch| cost[switch.index()]);
        for &switch in order.iter().rev() {
            if let Some(channel) = inward[switch.index()].filter(|_| needed[switch.index()]) {
                needed[self.topology.tail(channel).index()] = true;
                channels.push(channel);
            }
        }
        channels.reverse();
        channels
    }

    /// How deep each switch may lie in a tree of a source; none if paths may be of any length.
    fn ceilings(&self, source: SwitchId) -> Option<Ceilings> {
        let limit = self.confined.hops()?;
        let shortest = self.cheapest_tree(source, &|_| 1.0, None);
        let depth: Vec<u32> = shortest.cost.iter().map(|cost| cost.hops).collect();
        let lived_in = |switch: SwitchId| !self.topology.hosts_of(switch).is_empty();
        if self.topology.switch_ids().any(|switch| lived_in(switch) && depth[switch.index()] > limit.hops_max) {
            return Some(Ceilings::Unreachable(shortest));
        }
        let is_up = |switch: SwitchId| {
            let inward = shortest.inward[switch.index()];
            inward.is_none_or(|channel| self.is_up(channel))
        };
        let next = |switch: SwitchId| {
            let here = is_up(switch);
            let onward = self.topology.neighbours(switch).filter(move |(channel, head)| {
                self.allowed(source, *channel) && if self.is_up(*channel) { here } else { !is_up(*head) }
            });
            onward.map(|(_, head)| head)
        };
        let mut order = shortest.order.clone();
        order.sort_by_key(|switch| depth[switch.index()]);
        Some(Ceilings::Within(limit.ceilings(&order, &depth, lived_in, next)))
    }

    /// The cheapest tree of a source: up channels to what they reach, then down channels to the rest; no switch deeper than its
    /// ceiling, if there are any.
    fn cheapest_tree(
        &self,
        source: SwitchId,
        price: &impl Fn(ChannelId) -> f64,
        ceiling: Option<&[u32]>,
    ) -> Dijkstra<SwitchId, ChannelId, PathCost> {
        let up = self.cheapest([(source, PathCost::START)], price, ceiling, |channel| {
            self.is_up(channel) && self.allowed(source, channel)
        });
        let ancestors = up.order.iter().map(|&switch| (switch, up.cost[switch.index()]));
        let mut found = self.cheapest(ancestors, price, ceiling, |channel| {
            !self.is_up(channel) && !up.has_reached(self.topology.head(channel)) && self.allowed(source, channel)
        });
        found.inward.iter_mut().zip(up.inward).for_each(|(down, up)| *down = down.or(up));
        found
    }

    fn allowed(&self, source: SwitchId, channel: ChannelId) -> bool {
        let [tail, head] = [self.topology.tail(channel), self.topology.head(channel)].map(SwitchId::index);
        self.confined.allows(source.index(), tail, head)
    }

    /// The cheapest paths from switches that have costs of their own, along allowed channels.
    fn cheapest(
        &self,
        starts: impl IntoIterator<Item = (SwitchId, PathCost)>,
        price: &impl Fn(ChannelId) -> f64,
        ceiling: Option<&[u32]>,
        allowed: impl Fn(ChannelId) -> bool,
    ) -> Dijkstra<SwitchId, ChannelId, PathCost> {
        let allowed = &allowed;
        dijkstra(self.topology.switches().len(), starts, |switch, so_far: PathCost| {
            let hops = so_far.hops + 1;
            let reaches = move |head: SwitchId| ceiling.is_none_or(|ceiling| hops <= ceiling[head.index()]);
            let channels =
                self.topology.neighbours(switch).filter(move |(channel, head)| allowed(*channel) && reaches(*head));
            channels.map(move |(channel, head)| {
                (channel, head, PathCost { length: Length(so_far.length.0 + price(channel)), hops })
            })
        })
    }
}

/// How deep switches may lie, or the shortest tree where some switch with hosts lies too deep in any.
enum Ceilings {
    Within(Vec<u32>),
    Unreachable(Dijkstra<SwitchId, ChannelId, PathCost>),
}

/// What a path costs, by which paths are compared, and how many links it has.
#[derive(Clone, Copy, Debug)]
struct PathCost {
    length: Length,
    hops: u32,
}

impl PartialEq for PathCost {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathCost {}

impl PartialOrd for PathCost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathCost {
    fn cmp(&self, other: &Self) -> Ordering {
        self.length.cmp(&other.length)
    }
}

impl PathCost {
    const START: Self = Self { length: Length(0.0), hops: 0 };
}

impl Cost for PathCost {
    const UNREACHED: Self = Self { length: Length::UNREACHED, hops: u32::MAX };
}
