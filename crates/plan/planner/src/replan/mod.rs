//! Planning again from a previous plan: what still stands is kept, what broke is mended, and little else moves.
//!
//! ```text
//!   previous trees ─ cables that are still there ─▶ whole: kept ──────────┐
//!                                                └▶ in pieces: mended ────┼▶ VLANs, PVIDs and entries mostly as before
//!   hosts that are new, moved, or whose tree cannot be mended ─▶ the least loaded tree whose routes from there respect the order
//! ```
//! A kept or mended tree keeps its VLAN, and every host that stays keeps its choice. The numbering of channels that
//! proves the previous plan free of deadlock is kept as well: mended routes must respect it, or a numbering of everything
//! that is kept and of the new routes together must exist (`order.rs`). Where no route from a sender respects it any more, a
//! channel gets another number, and the trees that suffer from it are grown anew (`lift.rs`). Where mending makes a
//! channel busier than any was before, trees are tied elsewhere (`ease.rs`), and while one is much busier, hosts that the
//! change touched take other trees (`apart.rs`). If some tree can be neither mended nor replaced, there is no such plan, and
//! the caller plans anew.

mod apart;
mod carry;
mod ease;
mod joint;
mod lift;
mod mend;
mod seats;
mod stand;
mod volume;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fabric::{
    Assignment, Attachment, ChannelId, EngineName, FlowControl, HostId, HostRun, LinkId, Plan, Policy, PortId,
    Relation, SwitchId, Tagging, Topology, Traffic, Tree, VlanId, VlanSet, graph::TopologicalOrder, is_forest,
};

use self::{
    apart::{Limits, set_apart},
    ease::ease,
    joint::Mended,
    lift::lift,
    seats::Seats,
};
pub(crate) use self::{
    carry::carried_bound,
    mend::{Cycles, Flow, Mender},
    stand::Standing,
    volume::{Volumes, in_units, unit},
};
use crate::{
    broadcast,
    confined::Confined,
    fan::{Direction, for_each_fan},
    frames::{self, Flooding, Frames},
    number,
    routing::Routing,
    threads::with_each,
};

/// How many times the load of before mended trees may come to while their VLANs change in place.
const IN_PLACE_LOAD_FACTOR: f64 = 2.0;

/// How many times a fresh plan's maximum channel load a re-planned fabric may have before planning anew is worth its
/// changes: where an input of the request changed, the fresh plan is taken, and where the cabling did, the difference is
/// told.
pub const REPLAN_LOAD_FACTOR: f64 = 1.10;

/// In how many orders broken trees are tried.
const MENDING_ROUNDS_MAX: usize = 4;

/// How often numberings are changed for trees without any route that respects the order.
const LIFTS_MAX: usize = 4;

/// What part of all trees may be grown anew for that.
const SUFFERERS_PART: usize = 2;

/// What share of the previous plan's entries easing may change, over those that mending does.
const EASED_SHARE_MAX: f64 = 0.03;

/// What share may come or go beyond that while a channel is much busier than any was, for ties and for trees of their own.
const APART_SHARE_MAX: f64 = 0.20;

/// Whether mended trees are tied elsewhere to lower the most loaded channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondPass {
    /// They are.
    Ease,
    /// They stay as they were mended first.
    None,
}

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
pub(crate) fn replan(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    relation: &Relation,
    second: SecondPass,
    threads: usize,
) -> Option<Replanned> {
    if !is_same_request(policy, previous) {
        return None;
    }
    let certified = match Flooding::of(policy) {
        Flooding::Dropped => Frames::Unicast,
        Flooding::Broadcasts | Flooding::Everything => frames::certified(previous).unwrap_or(Frames::Unicast),
    };
    let fitted_to = |cycles, frames| {
        fit(topology, policy, previous, relation, (cycles, second, frames), threads)
            .filter(|found| broadcast::may_be_apart(policy, &found.routing.assignment) || !floods_apart(&found.routing))
    };
    // What the previous plan did not prove of floods would not stand, though nothing broke.
    let fitted = |cycles| match certified {
        Frames::All => fitted_to(cycles, Frames::All).or_else(|| fitted_to(cycles, Frames::Unicast)),
        Frames::Unicast => fitted_to(cycles, Frames::Unicast),
    };
    match (policy.flow_control, &previous.certificate) {
        (FlowControl::Pause | FlowControl::Pfc(_), _) => fitted(Cycles::Forbidden),
        // What was proven free of deadlock stays so if it can, even where nothing depends on it.
        (FlowControl::None, Some(_)) => fitted(Cycles::Forbidden).or_else(|| fitted(Cycles::Allowed)),
        (FlowControl::None, None) => fitted(Cycles::Allowed),
    }
}

/// Whether some host floods along another tree than the one that it chooses by its own address.
fn floods_apart(routing: &Routing) -> bool {
    match &routing.assignment {
        Assignment::Destination { choice, broadcast } | Assignment::Priority { choice, broadcast, .. } => {
            choice != broadcast
        }
        Assignment::Source(_) | Assignment::Pair { .. } => false,
    }
}

fn fit(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    relation: &Relation,
    (cycles, second, frames): (Cycles, SecondPass, Frames),
    threads: usize,
) -> Option<Replanned> {
    let trees: Vec<Remains> =
        previous.trees.iter().map(|tree| Remains::of(topology, previous, tree, relation)).collect();
    let position = |vlan: VlanId| previous.trees.binary_search_by_key(&vlan, |tree| tree.vlan).ok();
    let mut trees = trees;
    let mut choices = Choices::carry_over(topology, previous, relation, frames, position)?;
    let lanes = 1 + trees.iter().map(|tree| tree.lane).max()?;
    let mut orders = numberings(topology, previous, relation, lanes);
    let volumes = Volumes::new(topology, &policy.traffic);
    let mut flows = choices.flows(topology, &volumes, trees.len());
    let confined = Confined::by(topology, policy);
    let mut first = Vec::new();
    let mut lifts_left = LIFTS_MAX;
    let mut sufferers_max = trees.len() / SUFFERERS_PART;
    let (mut mender, mut links, stuck) = loop {
        let mut mender = Mender::new(topology, cycles, orders);
        mender.confine(confined.clone());
        let (links, stuck) = tie_all(&mut mender, &trees, &flows, &first);
        if stuck.is_empty() || lifts_left == 0 {
            break (mender, links, stuck);
        }
        match lift(&mut mender, &trees, &links, &flows, &stuck, &mut sufferers_max) {
            Some(lifted) => (orders, first, lifts_left) = (lifted, stuck, lifts_left - 1),
            None => break (mender, links, stuck),
        }
    };
    for number in stuck {
        for (at, part) in choices.split(&volumes, topology, number, trees.len())? {
            let Remains { lane, links: left, stubs, .. } = &trees[number];
            let (lane, mended) = (*lane, mended(&mut mender, &trees[number], &part));
            if mended.is_none() {
                choices.give_up(at)?;
            }
            if at == number {
                links[at] = mended;
            } else {
                let (links_left, stubs) = (left.clone(), stubs.clone());
                let twin = Remains { vlan: None, lane, links: links_left, stubs, reused: Vec::new() };
                trees.push(twin);
                links.push(mended);
            }
        }
    }
    let placed = choices.without_tree(topology);
    choices.place_rest(&volumes, &mut mender, &trees, &links)?;
    // Loads of before say nothing if they were counted in pairs and are in demand now, or the other way round.
    let by_matrix = |policy: &Policy| policy.traffic != Traffic::AllToAll;
    if second == SecondPass::Ease && by_matrix(policy) == by_matrix(&previous.policy) {
        if let Choices::OneEnd { .. } = choices {
            flows = choices.flows(topology, &volumes, trees.len());
        }
        let mut mended: Vec<Mended<'_>> = (trees.iter().zip(&flows).zip(&mut links))
            .filter_map(|((tree, flows), links)| {
                let links = links.as_mut().filter(|links| **links != tree.links)?;
                let in_place = tree.vlan_kept(topology, policy, links).is_some();
                Some(Mended { lane: tree.lane, left: &tree.links, reused: &tree.reused, in_place, flows, links })
            })
            .collect();
        let entries_max = previous.summary.fdb_entries_total as f64 * EASED_SHARE_MAX;
        let before = peak_before(previous) / volumes.unit();
        ease(&mut mender, &mut mended, before, entries_max as usize);
        let mut limits = Limits {
            load_enough: before * REPLAN_LOAD_FACTOR,
            trees: number::capacity(topology, policy),
            entries: (previous.summary.fdb_entries_total as f64 * APART_SHARE_MAX) as usize,
            fdb: policy.fdb,
        };
        limits.entries = ease(&mut mender, &mut mended, limits.load_enough, limits.entries);
        let mut seats = Seats { choices: &mut choices, trees: &mut trees, links: &mut links, volumes: &volumes };
        let (newcomers, others) = seats.movers(topology, &placed);
        set_apart(&mut mender, &mut seats, newcomers.clone(), &mut limits);
        // VLANs that change in place are worth some load.
        let peak = mender.busiest().map_or(0.0, |(_, peak)| peak);
        if peak > before * IN_PLACE_LOAD_FACTOR {
            let all = newcomers.into_iter().chain(others).collect();
            set_apart(&mut mender, &mut seats, all, &mut limits);
        }
    }
    let rank: Option<Vec<Vec<u32>>> = mender.orders.into_iter().map(TopologicalOrder::into_rank).collect();
    if rank.is_none() && cycles == Cycles::Forbidden {
        return None;
    }
    let (routing, vlan, lane) = finish(topology, policy, trees, links, choices, threads)?;
    Some(Replanned { engine: previous.engine, routing, vlan, lane, rank })
}

/// The time that a bit for each demand of one took on the most loaded channel, in picoseconds as a mender's loads are.
fn peak_before(previous: &Plan) -> f64 {
    previous.summary.max_channel_time * 1e12 / previous.topology.rate_max_bps().max(1) as f64
}

/// Trees by number with the links that mend them, if any do.
type Tied = Vec<(usize, Option<Vec<LinkId>>)>;

/// Takes the trees that are whole and respect the channel order, grows some anew, and mends the others. Returns their
/// links, and those without any route that respects the order.
fn tie_all(
    mender: &mut Mender<'_>,
    trees: &[Remains],
    flows: &[Vec<Flow>],
    first: &[usize],
) -> (Vec<Option<Vec<LinkId>>>, Vec<usize>) {
    let mut links: Vec<Option<Vec<LinkId>>> = vec![None; trees.len()];
    for (number, tree) in trees.iter().enumerate().filter(|(number, _)| !flows[*number].is_empty()) {
        if !first.contains(&number) {
            links[number] = mender.take(tree.lane, &tree.links, &flows[number]);
        }
    }
    // Looking for a new numbering may move what was just lifted.
    for &number in first {
        let Remains { lane, links: left, .. } = &trees[number];
        links[number] = mender.regrow(*lane, left, &flows[number]);
    }
    let broken = (0..trees.len()).filter(|&number| links[number].is_none() && !flows[number].is_empty()).collect();
    let stuck = mend_all(mender, trees, flows, broken, &mut links);
    (links, stuck)
}

/// Mends broken trees one after the other. Those without any route that respects the order come first the next time, as
/// long as fewer and fewer are left over: these are returned, and nothing of them is in the mender.
fn mend_all(
    mender: &mut Mender<'_>,
    trees: &[Remains],
    flows: &[Vec<Flow>],
    mut broken: Vec<usize>,
    links: &mut [Option<Vec<LinkId>>],
) -> Vec<usize> {
    let whole = mender.clone();
    let mut best: Option<(Mender<'_>, Tied, usize)> = None;
    for _ in 0..MENDING_ROUNDS_MAX {
        let mut tried = whole.clone();
        let tied: Tied =
            broken.iter().map(|&number| (number, mended(&mut tried, &trees[number], &flows[number]))).collect();
        let stuck = tied.iter().filter(|(_, links)| links.is_none()).count();
        if best.as_ref().is_some_and(|(_, _, least)| stuck >= *least) {
            break;
        }
        broken = tied
            .iter()
            .filter(|(_, links)| links.is_none())
            .chain(tied.iter().filter(|(_, links)| links.is_some()))
            .map(|(number, _)| *number)
            .collect();
        best = Some((tried, tied, stuck));
        if stuck == 0 {
            break;
        }
    }
    let Some((tried, tied, _)) = best else { return Vec::new() };
    *mender = tried;
    let stuck = tied.iter().filter(|(_, links)| links.is_none()).map(|(number, _)| *number).collect();
    tied.into_iter().for_each(|(number, tied)| links[number] = tied);
    stuck
}

/// The links of a tree that its flows can take again.
fn mended(mender: &mut Mender<'_>, tree: &Remains, flows: &[Flow]) -> Option<Vec<LinkId>> {
    let Remains { lane, links, stubs, .. } = tree;
    mender.mend(*lane, links, stubs, flows).or_else(|| mender.regrow(*lane, links, flows))
}

/// Trees that the previous plan has for failures only, as far as they are whole and still reach everybody, with their
/// lanes and VLANs.
pub(crate) fn former_extras(topology: &Topology, previous: &Plan, relation: &Relation) -> Vec<(Tree, u8, VlanId)> {
    let mut used = VlanSet::new();
    previous.assignment.map(|vlan| used.insert(vlan));
    let lanes = previous.certificate.as_ref().map_or(1, |certificate| certificate.rank.len());
    let mut mender = Mender::new(topology, Cycles::Allowed, Vec::new());
    (previous.trees.iter())
        .filter(|tree| !used.contains(tree.vlan) && usize::from(tree.lane) < lanes)
        .filter_map(|tree| {
            let links = tree.tree.links().iter();
            let links: Option<Vec<LinkId>> =
                links.map(|link| Some(relation.channel[ChannelId::forward(*link).index()]?.link())).collect();
            let links = links.filter(|links| mender.covers(links))?;
            Some((Tree::new(topology, links).ok()?, tree.lane, tree.vlan))
        })
        .collect()
}

/// Ports of the newer topology at which a link died and something else is plugged in now.
fn reused_ports(topology: &Topology, previous: &Plan, tree: &Tree, relation: &Relation) -> Vec<PortId> {
    let dead = tree.links().iter().filter(|link| relation.channel[ChannelId::forward(**link).index()].is_none());
    dead.flat_map(|&link| [previous.topology.link(link).a, previous.topology.link(link).b])
        .filter_map(|port| relation.port[port.index()])
        .filter(|port| topology.port(*port).attachment != Attachment::Nothing)
        .collect()
}

fn is_same_request(policy: &Policy, previous: &Plan) -> bool {
    let before = &previous.policy;
    let engine = policy.engine == EngineName::Auto || [previous.engine, before.engine].contains(&policy.engine);
    engine
        && (policy.tagging, policy.flow_control, policy.fdb) == (before.tagging, before.flow_control, before.fdb)
        && Flooding::of(policy) == Flooding::of(before)
        && policy.vlans_max.is_none_or(|limit| previous.trees.len() <= limit)
}

/// What is left of a tree in a newer topology.
struct Remains {
    /// Its VLAN; none if it is another's twin.
    vlan: Option<VlanId>,
    lane: u8,
    /// Ascending.
    links: Vec<LinkId>,
    /// Switches that lost a link.
    stubs: Vec<SwitchId>,
    /// Ports that lost a link and have something else now.
    reused: Vec<PortId>,
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
        Self {
            vlan: Some(tree.vlan),
            lane: tree.lane,
            links,
            stubs,
            reused: reused_ports(topology, previous, &tree.tree, relation),
        }
    }

    /// Its VLAN, if that may stay and can change in place to other links.
    fn vlan_kept(&self, topology: &Topology, policy: &Policy, links: &[LinkId]) -> Option<VlanId> {
        let leads_astray = |port: &PortId| match topology.port(*port).attachment {
            Attachment::Nothing => false,
            Attachment::Host(_) | Attachment::Member(_) => true,
            Attachment::Link(link) => links.contains(&link),
        };
        let vlan = self.vlan.filter(|vlan| policy.vlans.contains(*vlan) && !self.reused.iter().any(leads_astray));
        vlan.filter(|_| links == self.links || is_forest(topology, self.links.iter().chain(links).copied()))
    }
}

/// The previous certificate's numbers on the channels that are still there; new channels come last.
fn numberings(topology: &Topology, previous: &Plan, relation: &Relation, lanes: u8) -> Vec<TopologicalOrder> {
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
            TopologicalOrder::by_number(&rank)
        })
        .collect()
}

/// Who uses which tree.
enum Choices {
    /// By one end: a tree for each host that has one.
    OneEnd {
        tagging: Tagging,
        choice: Vec<Option<usize>>,
        /// Where that is a tree apart that is to be kept or mended, by host: what it floods.
        broadcast: Option<Vec<Option<usize>>>,
    },
    /// By both: complete from the start, since every choice depends on others.
    BothEnds {
        assignment: Assignment<usize>,
        frames: Frames,
        /// Hosts that take after a neighbour.
        newcomers: Vec<HostId>,
    },
}

impl Choices {
    fn carry_over(
        topology: &Topology,
        previous: &Plan,
        relation: &Relation,
        frames: Frames,
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
        let fresh = topology.host_ids().filter(|host| stays(*host).is_none()).collect();
        // A newcomer takes after a host of its own switch, if one stayed.
        let like = |host: HostId| {
            stays(host)
                .or_else(|| topology.hosts_of(topology.switch_of(host)).iter().find_map(|neighbour| stays(*neighbour)))
        };
        match (&previous.assignment, tagging) {
            (Assignment::Source(choice), Tagging::Switch | Tagging::Source) => {
                Some(Self::OneEnd { tagging, choice: one_end(choice), broadcast: None })
            }
            (Assignment::Destination { choice, broadcast }, Tagging::Destination) => {
                let broadcast = (frames == Frames::All).then(|| one_end(broadcast));
                Some(Self::OneEnd { tagging, choice: one_end(choice), broadcast })
            }
            (Assignment::Priority { choice, priority, broadcast }, Tagging::SourceDestination) => {
                let like_before = |choice: &[VlanId]| -> Option<Vec<usize>> {
                    let one = |host| like(host).map_or(Some(0), |before| position(choice[before.index()]));
                    topology.host_ids().map(one).collect()
                };
                let broadcast = like_before(if frames == Frames::All { broadcast } else { choice });
                let choice = like_before(choice);
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
                let assignment = Assignment::Priority { choice: choice?, priority: priority?, broadcast: broadcast? };
                Some(Self::BothEnds { assignment, frames, newcomers: fresh })
            }
            (Assignment::Pair { unicast: rows, broadcast }, Tagging::Pair) => {
                let old = &previous.assignment;
                let row = |source: HostId| -> Option<Vec<HostRun<usize>>> {
                    let Some(from) = like(source) else { return Some(single_run(topology, 0)) };
                    let mut runs: Vec<HostRun<usize>> = Vec::new();
                    for destination in topology.host_ids() {
                        let vlan = match like(destination) {
                            // A host and the neighbour that it takes after have no choice between them.
                            Some(to) if to != from => old.unicast(from, to),
                            _ => {
                                let own = |run: &&HostRun<VlanId>| (run.first..=run.last).contains(&from);
                                let run = rows[from.index()].iter().find(own);
                                run.map_or(broadcast[from.index()], |run| run.choice)
                            }
                        };
                        let choice = position(vlan)?;
                        match runs.last_mut() {
                            Some(run) if run.choice == choice => run.last = destination,
                            _ => runs.push(HostRun { first: destination, last: destination, choice }),
                        }
                    }
                    Some(runs)
                };
                let unicast: Option<Vec<_>> = topology.host_ids().map(|host| row(host).map(Arc::new)).collect();
                let unicast = unicast?;
                let used: BTreeSet<usize> = unicast.iter().flat_map(|row| row.iter()).map(|run| run.choice).collect();
                let everybody = |host: HostId| match like(host) {
                    None => Some(0),
                    Some(before) => {
                        // A tree for nothing but what is not proven either is not worth mending.
                        let keeps = |tree: &usize| frames == Frames::All || used.contains(tree);
                        let had = position(broadcast[before.index()])?;
                        Some(had).filter(keeps).or(Some(unicast[host.index()][0].choice))
                    }
                };
                let broadcast: Option<Vec<usize>> = topology.host_ids().map(everybody).collect();
                let assignment = Assignment::Pair { unicast, broadcast: broadcast? };
                Some(Self::BothEnds { assignment, frames, newcomers: fresh })
            }
            _ => None,
        }
    }

    /// `flows[tree]`.
    fn flows(&self, topology: &Topology, volumes: &Volumes<'_>, trees: usize) -> Vec<Vec<Flow>> {
        let mut flows: Vec<Vec<Flow>> = vec![Vec::new(); trees];
        match self {
            Self::OneEnd { tagging, choice, broadcast } => {
                let mut owners: BTreeMap<(usize, SwitchId), Vec<HostId>> = BTreeMap::new();
                for host in topology.host_ids() {
                    if let Some(tree) = choice[host.index()] {
                        owners.entry((tree, topology.switch_of(host))).or_default().push(host);
                    }
                }
                for ((tree, _), owners) in owners {
                    flows[tree].push(volumes.flow(direction_of(*tagging), &owners, None));
                }
                let spread = broadcast.iter().flatten().zip(topology.host_ids());
                let floods: BTreeSet<(usize, SwitchId)> =
                    spread.filter_map(|(tree, host)| Some(((*tree)?, topology.switch_of(host)))).collect();
                floods.into_iter().for_each(|(tree, root)| flows[tree].push(flood(root)));
            }
            Self::BothEnds { assignment, frames, .. } => {
                // Fans are found from the assignment alone; which links the trees have does not matter yet.
                let routing = routing(vec![Tree::default(); trees], assignment.clone());
                for_each_fan(topology, &routing, |fan| {
                    flows[fan.tree].push(volumes.flow(fan.direction, fan.owners, Some(fan.peers)));
                });
                if *frames == Frames::All {
                    let floods = frames::floods(topology, assignment, Flooding::Broadcasts);
                    floods.into_iter().for_each(|(tree, root)| flows[tree].push(flood(root)));
                }
            }
        }
        flows
    }

    /// Parts the users of a tree by their switch: those of the first keep it, the others get one each, numbered from
    /// `fresh` on. None if they cannot be parted.
    fn split(
        &mut self,
        volumes: &Volumes<'_>,
        topology: &Topology,
        tree: usize,
        fresh: usize,
    ) -> Option<Vec<(usize, Vec<Flow>)>> {
        let Self::OneEnd { tagging, choice, broadcast } = self else { return None };
        // What is flooded finds another tree.
        broadcast.iter_mut().flatten().filter(|flooded| **flooded == Some(tree)).for_each(|flooded| *flooded = None);
        let mut owners: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
        for host in topology.host_ids().filter(|host| choice[host.index()] == Some(tree)) {
            owners.entry(topology.switch_of(host)).or_default().push(host);
        }
        let parts = owners.into_values().enumerate().map(|(turn, hosts)| {
            let number = if turn == 0 { tree } else { fresh + turn - 1 };
            hosts.iter().for_each(|host| choice[host.index()] = Some(number));
            (number, vec![volumes.flow(direction_of(*tagging), &hosts, None)])
        });
        Some(parts.collect())
    }

    /// Takes a tree away from its users; none if they cannot do without.
    fn give_up(&mut self, tree: usize) -> Option<()> {
        match self {
            Self::OneEnd { choice, broadcast, .. } => {
                let flooded = broadcast.iter_mut().flatten().filter(|flooded| **flooded == Some(tree));
                flooded.for_each(|flooded| *flooded = None);
                choice.iter_mut().filter(|choice| **choice == Some(tree)).for_each(|choice| *choice = None);
                Some(())
            }
            Self::BothEnds { .. } => None,
        }
    }

    /// Hosts that have no tree yet, or but a neighbour's.
    fn without_tree(&self, topology: &Topology) -> Vec<HostId> {
        match self {
            Self::OneEnd { choice, .. } => topology.host_ids().filter(|host| choice[host.index()].is_none()).collect(),
            Self::BothEnds { newcomers, .. } => newcomers.clone(),
        }
    }

    /// Gives hosts without a tree one that is there: switch by switch, the one whose most loaded channel stays lowest.
    fn place_rest(
        &mut self,
        volumes: &Volumes<'_>,
        mender: &mut Mender<'_>,
        trees: &[Remains],
        links: &[Option<Vec<LinkId>>],
    ) -> Option<()> {
        let Self::OneEnd { tagging, choice, broadcast } = self else { return Some(()) };
        let topology = mender.topology;
        place(topology, mender, (trees, links), choice, &|host| volumes.flow(direction_of(*tagging), &[host], None))?;
        match broadcast {
            Some(broadcast) => {
                place(topology, mender, (trees, links), broadcast, &|host| flood(topology.switch_of(host)))
            }
            None => Some(()),
        }
    }
}

/// Gives hosts without a tree the one that is there whose most loaded channel stays lowest.
fn place(
    topology: &Topology,
    mender: &mut Mender<'_>,
    (trees, links): (&[Remains], &[Option<Vec<LinkId>>]),
    choice: &mut [Option<usize>],
    flow: &dyn Fn(HostId) -> Flow,
) -> Option<()> {
    for host in topology.host_ids() {
        if choice[host.index()].is_some() {
            continue;
        }
        let flows = [flow(host)];
        let mut best: Option<(f64, usize)> = None;
        for (number, links) in links.iter().enumerate() {
            let Some(links) = links else { continue };
            if let Some(price) = mender.price(trees[number].lane, links, &flows) {
                if best.is_none_or(|(least, _)| price < least) {
                    best = Some((price, number));
                }
            }
        }
        let (_, number) = best?;
        mender.take(trees[number].lane, links[number].as_deref()?, &flows)?;
        choice[host.index()] = Some(number);
    }
    Some(())
}

/// Which way frames go along a tree that hosts choose by one end.
fn direction_of(tagging: Tagging) -> Direction {
    match tagging {
        Tagging::Destination => Direction::Inward,
        Tagging::Switch | Tagging::Pair | Tagging::Source | Tagging::SourceDestination => Direction::Outward,
    }
}

/// What is flooded from a switch: it does not count as load, but must find its way without a cycle.
fn flood(root: SwitchId) -> Flow {
    Flow { root, direction: Direction::Outward, owners: 0, peers: None, demand: None }
}

fn single_run(topology: &Topology, choice: usize) -> Vec<HostRun<usize>> {
    vec![HostRun { first: HostId::new(0), last: HostId::new(topology.hosts().len() - 1), choice }]
}

fn routing(trees: Vec<Tree>, assignment: Assignment<usize>) -> Routing {
    Routing { trees, assignment, lane: None, numbering: None }
}

/// Puts the routing together, with `vlan[tree]` and `lane[tree]`; trees that nobody uses any more are left out.
fn finish(
    topology: &Topology,
    policy: &Policy,
    remains: Vec<Remains>,
    links: Vec<Option<Vec<LinkId>>>,
    choices: Choices,
    threads: usize,
) -> Option<(Routing, Vec<Option<VlanId>>, Vec<u8>)> {
    let assignment = match choices {
        Choices::OneEnd { tagging, choice, broadcast } => {
            let choice = choice.into_iter().collect::<Option<Vec<usize>>>()?;
            match tagging {
                Tagging::Destination => {
                    let broadcast = broadcast.map_or_else(|| Some(choice.clone()), |all| all.into_iter().collect());
                    Assignment::Destination { choice, broadcast: broadcast? }
                }
                _ => Assignment::Source(choice),
            }
        }
        Choices::BothEnds { assignment, .. } => assignment,
    };
    let mut used = vec![false; remains.len()];
    assignment.map(|tree| used[tree] = true);
    let mut renumbered = vec![usize::MAX; remains.len()];
    (0..remains.len()).filter(|&number| used[number]).enumerate().for_each(|(new, number)| renumbered[number] = new);
    let parts = remains.into_iter().zip(links).zip(&used).filter(|(_, used)| **used);
    let mut finished: Vec<(Remains, Option<Vec<LinkId>>, Option<Tree>)> =
        parts.map(|((remains, links), _)| (remains, links, None)).collect();
    with_each(threads, &mut finished, |(remains, links, tree)| {
        let Some(links) = links.take() else { return };
        remains.vlan = remains.vlan_kept(topology, policy, &links);
        *tree = Tree::new(topology, links).ok();
    });
    let (vlan, lane) = finished.iter().map(|(remains, ..)| (remains.vlan, remains.lane)).unzip();
    let trees: Option<Vec<Tree>> = finished.into_iter().map(|(.., tree)| tree).collect();
    Some((routing(trees?, assignment.map(|tree| renumbered[tree])), vlan, lane))
}
