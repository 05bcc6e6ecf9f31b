//! Planning again from a previous plan: what still stands is kept, what broke is mended, and little else moves.
//!
//! ```text
//!   previous trees ─ cables that are still there ─▶ whole: kept ──────────┐
//!                                                └▶ in pieces: mended ────┼▶ VLANs, PVIDs and entries mostly as before
//!   hosts that are new, moved, or whose tree cannot be mended ─▶ the least loaded tree whose routes climb from there
//! ```
//! A kept or mended tree keeps its VLAN, and every host that stays keeps its choice. The numbering of channels that
//! proves the previous plan free of deadlock is kept as well: mended routes must climb it, or a numbering of everything
//! that is kept and of the new routes together must exist (`order.rs`). If some tree can be neither mended nor
//! replaced, there is no such plan, and the caller plans anew.

mod mend;
mod order;

use std::collections::BTreeMap;

use fabric::{
    Assignment, Bound, ChannelId, EngineName, FlowControl, HostId, HostRun, LinkId, Plan, Policy, SwitchId, Tagging,
    Topology, Tree, VlanId,
};

use self::{
    mend::{Cycles, Flow, Mender},
    order::Order,
};
use crate::{
    fan::{Direction, for_each_fan},
    relation::Relation,
    routing::Routing,
};

/// How much more than a fresh plan's the busiest channel of a re-planned fabric may carry before it is worth planning
/// anew: the change is kept small all the same, and whoever asked is told.
pub const REPLAN_LOAD_FACTOR: f64 = 1.25;

/// A previous plan's routes, made fit for another cabling.
pub(crate) struct Replanned {
    pub(crate) engine: EngineName,
    pub(crate) routing: Routing,
    /// `vlan[tree]`: the VLAN that it had, unless it has to change.
    pub(crate) vlan: Vec<Option<VlanId>>,
    /// `lane[tree]`.
    pub(crate) lane: Vec<u8>,
    /// `rank[lane][channel]`; none where routes have a cycle.
    pub(crate) rank: Option<Vec<Vec<u32>>>,
}

/// Fits a previous plan to a topology; none if it answers another request or cannot be fitted.
/// Cost: O(flows · switches), and for each broken tree a bounded number of such passes over its own flows.
pub(crate) fn replan(topology: &Topology, policy: &Policy, previous: &Plan, relation: &Relation) -> Option<Replanned> {
    if !is_same_request(policy, previous) {
        return None;
    }
    let cycles = match policy.flow_control {
        FlowControl::None => Cycles::Allowed,
        FlowControl::Pause | FlowControl::Pfc(_) => Cycles::Forbidden,
    };
    let trees: Vec<Remains> = previous.trees.iter().map(|tree| Remains::of(topology, previous, tree, relation)).collect();
    let position = |vlan: VlanId| previous.trees.binary_search_by_key(&vlan, |tree| tree.vlan).ok();
    let choices = Choices::carry_over(topology, previous, relation, position)?;
    let lanes = 1 + trees.iter().map(|tree| tree.lane).max()?;
    let mut mender = Mender::new(topology, cycles, numberings(topology, previous, relation, lanes));
    let mut flows = choices.flows(topology, trees.len());
    let mut links: Vec<Option<Vec<LinkId>>> = vec![None; trees.len()];
    let mut broken = Vec::new();
    for (number, tree) in trees.iter().enumerate().filter(|(number, _)| choices.uses(&flows, *number)) {
        if mender.covers(&tree.links) {
            if !mender.take(tree.lane, &tree.links, &flows[number]) {
                return None;
            }
            links[number] = Some(tree.links.clone());
        } else {
            broken.push(number);
        }
    }
    let mut choices = choices;
    for number in broken {
        let tree = &trees[number];
        links[number] = mender.mend(tree.lane, &tree.links, &tree.stubs, &flows[number]);
        if links[number].is_none() {
            choices.give_up(number)?;
            flows[number].clear();
        }
    }
    choices.place_rest(topology, &mut mender, &trees, &links)?;
    let rank: Option<Vec<Vec<u32>>> = mender.orders.into_iter().map(Order::into_rank).collect();
    if rank.is_none() && cycles == Cycles::Forbidden {
        return None;
    }
    finish(topology, policy, previous, trees, links, choices, rank)
}

/// The lengths of a previous bound and what they still prove, if that is plain without measuring anything: where cables
/// only went, no distance shrank.
pub(crate) fn carried_bound(topology: &Topology, previous: &Plan, relation: &Relation) -> Option<(f64, Bound)> {
    let old = &previous.topology;
    let lengths_before = &previous.bound.lengths;
    let same_hosts = old.hosts().len() == topology.hosts().len()
        && topology.host_ids().all(|id| {
            let before = relation.host_from[id.index()];
            before.is_some_and(|before| {
                relation.switch_from[topology.switch_of(id).index()] == Some(old.switch_of(before))
            })
        });
    let kept: Vec<(ChannelId, ChannelId)> =
        old.channel_ids().filter_map(|channel| Some((channel, relation.channel[channel.index()]?))).collect();
    if !same_hosts || kept.len() != topology.channel_count() || lengths_before.len() != old.channel_count() {
        return None;
    }
    let mut lengths = vec![0; topology.channel_count()];
    kept.iter().for_each(|(before, now)| lengths[now.index()] = lengths_before[before.index()]);
    let sum = |lengths: &[u32]| lengths.iter().map(|length| f64::from(*length)).sum::<f64>();
    let (before, now) = (sum(lengths_before), sum(&lengths));
    // With no length left there is nothing to prove with; equal sums leave the figure as it is, to the last bit.
    let factor = if before == now { 1.0 } else { before / now };
    (now > 0.0).then(|| (previous.summary.load_bound * factor * (1.0 - f64::EPSILON).powi(i32::from(factor != 1.0)), Bound { lengths }))
}

fn is_same_request(policy: &Policy, previous: &Plan) -> bool {
    let before = &previous.policy;
    let engine = policy.engine == EngineName::Auto || [previous.engine, before.engine].contains(&policy.engine);
    engine
        && (policy.tagging, policy.flow_control, policy.fdb) == (before.tagging, before.flow_control, before.fdb)
        && policy.vlans_max.is_none_or(|limit| previous.trees.len() <= limit)
}

/// What is left of a tree in a newer topology.
struct Remains {
    vlan: VlanId,
    lane: u8,
    /// Ascending.
    links: Vec<LinkId>,
    /// Switches that lost a link.
    stubs: Vec<SwitchId>,
}

impl Remains {
    fn of(topology: &Topology, previous: &Plan, tree: &fabric::VlanTree, relation: &Relation) -> Self {
        let old = &previous.topology;
        let mut links = Vec::with_capacity(tree.tree.links().len());
        let mut stubs = Vec::new();
        for &link in tree.tree.links() {
            match relation.channel[ChannelId::forward(link).index()] {
                Some(channel) => links.push(channel.link()),
                None => {
                    let ends = [old.link(link).a, old.link(link).b].map(|port| old.port(port).switch);
                    stubs.extend(topology.switch_ids().filter(|switch| {
                        relation.switch_from[switch.index()].is_some_and(|before| ends.contains(&before))
                    }));
                }
            }
        }
        links.sort_unstable();
        stubs.sort_unstable();
        stubs.dedup();
        Self { vlan: tree.vlan, lane: tree.lane, links, stubs }
    }
}

/// The previous certificate's numbers on the channels that are still there; new channels come last.
fn numberings(topology: &Topology, previous: &Plan, relation: &Relation, lanes: u8) -> Vec<Order> {
    let channels = topology.channel_count() as u32;
    (0..usize::from(lanes))
        .map(|lane| {
            let before = previous.certificate.as_ref().and_then(|certificate| certificate.rank.get(lane));
            let top = before.and_then(|rank| rank.iter().max()).copied().unwrap_or(0).min(u32::MAX - channels - 1);
            let mut rank: Vec<u32> = (0..channels).map(|channel| top + 1 + channel).collect();
            for (old, new) in relation.channel.iter().enumerate() {
                if let (Some(new), Some(number)) = (new, before.and_then(|rank| rank.get(old))) {
                    rank[new.index()] = *number;
                }
            }
            Order::new(rank)
        })
        .collect()
}

/// Who uses which tree.
enum Choices {
    /// By one end: a tree for each host that has one.
    OneEnd { tagging: Tagging, choice: Vec<Option<usize>> },
    /// By both: complete from the start, since every choice depends on others.
    BothEnds(Assignment<usize>),
}

impl Choices {
    fn carry_over(
        topology: &Topology,
        previous: &Plan,
        relation: &Relation,
        position: impl Fn(VlanId) -> Option<usize>,
    ) -> Option<Self> {
        let stays = |host: HostId| {
            relation.host_from[host.index()].filter(|before| {
                relation.switch_from[topology.switch_of(host).index()] == Some(previous.topology.switch_of(*before))
            })
        };
        let tagging = previous.policy.tagging;
        let one_end = |choice: &[VlanId]| -> Vec<Option<usize>> {
            topology.host_ids().map(|host| stays(host).and_then(|before| position(choice[before.index()]))).collect()
        };
        // A newcomer takes after a host of its own switch, if one stayed.
        let like = |host: HostId| {
            stays(host).or_else(|| {
                topology.hosts_of(topology.switch_of(host)).iter().find_map(|neighbour| stays(*neighbour))
            })
        };
        match (&previous.assignment, tagging) {
            (Assignment::Source(choice), Tagging::Switch | Tagging::Source)
            | (Assignment::Destination(choice), Tagging::Destination) => {
                Some(Self::OneEnd { tagging, choice: one_end(choice) })
            }
            (Assignment::Priority { choice, priority }, Tagging::SourceDestination) => {
                let choice: Option<Vec<usize>> = (topology.host_ids())
                    .map(|host| like(host).map_or(Some(0), |before| position(choice[before.index()])))
                    .collect();
                let newcomers = topology.host_ids().filter(|host| stays(*host).is_none()).count() as u32;
                let mut last = newcomers;
                let priority: Option<Vec<u32>> = (topology.host_ids())
                    .map(|host| match stays(host) {
                        Some(before) => priority[before.index()].checked_add(newcomers),
                        None => {
                            last -= 1;
                            Some(last)
                        }
                    })
                    .collect();
                Some(Self::BothEnds(Assignment::Priority { choice: choice?, priority: priority? }))
            }
            (Assignment::Pair { broadcast, .. }, Tagging::Pair) => {
                let old = &previous.assignment;
                let row = |source: HostId| -> Option<Vec<HostRun<usize>>> {
                    let Some(from) = like(source) else { return Some(single_run(topology, 0)) };
                    let mut runs: Vec<HostRun<usize>> = Vec::new();
                    for destination in topology.host_ids() {
                        let vlan = match like(destination) {
                            // A host and the neighbour that it takes after have no choice between them.
                            Some(to) if to != from => old.unicast(from, to),
                            _ => broadcast[from.index()],
                        };
                        let choice = position(vlan)?;
                        match runs.last_mut() {
                            Some(run) if run.choice == choice => run.last = destination,
                            _ => runs.push(HostRun { first: destination, last: destination, choice }),
                        }
                    }
                    Some(runs)
                };
                let unicast: Option<Vec<_>> = topology.host_ids().map(row).collect();
                let broadcast: Option<Vec<usize>> = (topology.host_ids())
                    .map(|host| like(host).map_or(Some(0), |before| position(broadcast[before.index()])))
                    .collect();
                Some(Self::BothEnds(Assignment::Pair { unicast: unicast?, broadcast: broadcast? }))
            }
            _ => None,
        }
    }

    /// `flows[tree]`.
    fn flows(&self, topology: &Topology, trees: usize) -> Vec<Vec<Flow>> {
        let mut flows: Vec<Vec<Flow>> = vec![Vec::new(); trees];
        match self {
            Self::OneEnd { tagging, choice } => {
                let mut owners: BTreeMap<(usize, SwitchId), u32> = BTreeMap::new();
                for host in topology.host_ids() {
                    if let Some(tree) = choice[host.index()] {
                        *owners.entry((tree, topology.switch_of(host))).or_default() += 1;
                    }
                }
                for ((tree, root), owners) in owners {
                    flows[tree].push(Flow { root, direction: direction(*tagging), owners, peers: None });
                }
            }
            Self::BothEnds(assignment) => {
                // Fans are found from the assignment alone; which links the trees have does not matter yet.
                let routing = routing(vec![Tree::default(); trees], assignment.clone());
                for_each_fan(topology, &routing, |fan| {
                    let here = |switch: SwitchId| topology.hosts_of(switch).iter().filter(|h| fan.peers.contains(**h));
                    let peers = topology.switch_ids().map(|switch| here(switch).count() as u32).collect();
                    let owners = fan.owners.len() as u32;
                    flows[fan.tree].push(Flow { root: fan.root, direction: fan.direction, owners, peers: Some(peers) });
                });
            }
        }
        flows
    }

    /// Whether somebody uses a tree, for unicast or broadcast.
    fn uses(&self, flows: &[Vec<Flow>], tree: usize) -> bool {
        let broadcasts = match self {
            Self::OneEnd { .. } => false,
            Self::BothEnds(Assignment::Pair { broadcast, .. }) => broadcast.contains(&tree),
            Self::BothEnds(Assignment::Priority { choice, .. }) => choice.contains(&tree),
            Self::BothEnds(_) => false,
        };
        broadcasts || !flows[tree].is_empty()
    }

    /// Takes a tree away from its users; none if they cannot do without.
    fn give_up(&mut self, tree: usize) -> Option<()> {
        match self {
            Self::OneEnd { choice, .. } => {
                choice.iter_mut().filter(|choice| **choice == Some(tree)).for_each(|choice| *choice = None);
                Some(())
            }
            Self::BothEnds(_) => None,
        }
    }

    /// Gives hosts without a tree one that is there: switch by switch, the one whose busiest channel stays lowest.
    fn place_rest(
        &mut self,
        topology: &Topology,
        mender: &mut Mender<'_>,
        trees: &[Remains],
        links: &[Option<Vec<LinkId>>],
    ) -> Option<()> {
        let Self::OneEnd { tagging, choice } = self else { return Some(()) };
        for host in topology.host_ids() {
            if choice[host.index()].is_some() {
                continue;
            }
            let flow =
                Flow { root: topology.switch_of(host), direction: direction(*tagging), owners: 1, peers: None };
            let mut best: Option<(f64, usize)> = None;
            for (number, links) in links.iter().enumerate() {
                let Some(links) = links else { continue };
                if let Some(price) = mender.price(trees[number].lane, links, &flow) {
                    if best.is_none_or(|(least, _)| price < least) {
                        best = Some((price, number));
                    }
                }
            }
            let (_, number) = best?;
            let taken = mender.take(trees[number].lane, links[number].as_deref()?, std::slice::from_ref(&flow));
            choice[host.index()] = taken.then_some(number);
            choice[host.index()]?;
        }
        Some(())
    }
}

fn direction(tagging: Tagging) -> Direction {
    match tagging {
        Tagging::Destination => Direction::Inward,
        Tagging::Switch | Tagging::Pair | Tagging::Source | Tagging::SourceDestination => Direction::Outward,
    }
}

fn single_run(topology: &Topology, choice: usize) -> Vec<HostRun<usize>> {
    vec![HostRun { first: HostId::new(0), last: HostId::new(topology.hosts().len() - 1), choice }]
}

fn routing(trees: Vec<Tree>, assignment: Assignment<usize>) -> Routing {
    Routing { trees, assignment }
}

/// Puts the routing together; trees that nobody uses any more are left out.
fn finish(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    remains: Vec<Remains>,
    links: Vec<Option<Vec<LinkId>>>,
    choices: Choices,
    rank: Option<Vec<Vec<u32>>>,
) -> Option<Replanned> {
    let assignment = match choices {
        Choices::OneEnd { tagging, choice } => {
            let choice: Option<Vec<usize>> = choice.into_iter().collect();
            match tagging {
                Tagging::Destination => Assignment::Destination(choice?),
                _ => Assignment::Source(choice?),
            }
        }
        Choices::BothEnds(assignment) => assignment,
    };
    let mut used = vec![false; remains.len()];
    assignment.map(|tree| used[tree] = true);
    let (mut trees, mut vlan, mut lane) = (Vec::new(), Vec::new(), Vec::new());
    let mut renumbered = vec![usize::MAX; remains.len()];
    for (number, (remains, links)) in remains.into_iter().zip(links).enumerate() {
        if !used[number] {
            continue;
        }
        let links = links?;
        let stays = policy.vlans.contains(remains.vlan) && is_forest_with(topology, &remains.links, &links);
        renumbered[number] = trees.len();
        trees.push(Tree::new(topology, links).ok()?);
        vlan.push(stays.then_some(remains.vlan));
        lane.push(remains.lane);
    }
    let routing = routing(trees, assignment.map(|tree| renumbered[tree]));
    Some(Replanned { engine: previous.engine, routing, vlan, lane, rank })
}

/// Whether two sets of links together close no cycle: then a VLAN can go from one to the other switch by switch, in any
/// order, and be a forest all the time.
pub(crate) fn is_forest_with(topology: &Topology, one: &[LinkId], other: &[LinkId]) -> bool {
    let mut parent: Vec<usize> = (0..topology.switches().len()).collect();
    let mut links: Vec<LinkId> = one.iter().chain(other).copied().collect();
    links.sort_unstable();
    links.dedup();
    links.into_iter().all(|link| {
        let [a, b] = [ChannelId::forward(link), ChannelId::backward(link)].map(|channel| {
            let mut at = topology.tail(channel).index();
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        });
        parent[a] = b;
        a != b
    })
}
