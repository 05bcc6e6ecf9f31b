//! Ready for any one link, switch or named group to fail: for each, stored choices of VLANs that avoid it.
//!
//! Every unit of traffic (`unit.rs`) whose tree uses the link, or passes the switch, moves to another tree of the plan that
//! does not: one in which the switch is a leaf; for a group one in which no frame between hosts elsewhere meets a member. Trees of
//! others serve where their routes respect the channel order and are not too loaded. Where they do not serve most
//! failures, links are put into groups, and every tree that uses links of a group gets a copy without all of them
//! (`group.rs`). What finds no place even then has a tree grown for the purpose (`grow.rs`) that avoids as many more
//! links as it can. Since switches hold all of them at all times, a switch-over changes nothing but PVIDs, or what
//! hosts put on their frames.
//!
//! ```text
//!   tree of h0    avoids     link 0 in use by h0, h1: h0 ▶ B, h1 ▶ C      all routes of A, B, C … respect one numbering:
//!   A (its own)   5, 6       link 1 in use by h0:     h0 ▶ B              then frames of before and after may mix
//!   B             0, 1, 6    link 2 in use by h0:     h0 ▶ C
//!   C             0, 2, 3
//! ```
//! Proofs, the strongest first: all routes, of the plan and of all switch-overs, respect one numbering; a numbering that
//! this failure shares with some others, or has for itself, is respected by all routes of the plan and by those that
//! replace the broken ones; only the routes after the switch-over respect one, so that the fabric must be drained before
//! hosts move (`place/resettle.rs`). The last always exists: everybody moves to one tree. Links and switches that alone tie
//! parts together are left out (`fabric::dividing_links`, `fabric::dividing_switches`, `fabric::dividing_groups`).

mod group;
mod grow;
mod journal;
mod place;
mod unit;

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    Assignment, ChannelId, Failure, FlowControl, HostId, HostRun, LinkId, PairRun, Proof, Resilience, SwitchId,
    SwitchOver, Topology, Traffic, Tree, VlanId, dividing_groups, dividing_links, dividing_switches,
    graph::{TopologicalOrder, UnionFind},
};

use self::place::Placer;
use crate::{fan::Direction, host_set::HostSet, routing::Routing};

/// How much more than while all links are up the most loaded channel may carry after a failure before a tree is added that
/// could be done without.
pub(crate) const LOAD_FACTOR: f64 = 3.0;

/// What share of the failures the plan's own trees must serve to be taken as they are.
const SERVED_SHARE: (usize, usize) = (1, 2);

/// What is to be protected.
pub(crate) struct ProtectionRequest<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) flow_control: FlowControl,
    /// Which failures.
    pub(crate) resilience: Resilience,
    /// What hosts send: what loads after failures are counted by.
    pub(crate) traffic: &'a Traffic,
    pub(crate) routing: &'a Routing,
    /// `lane[tree]`.
    pub(crate) lane: &'a [u8],
    /// `rank[lane][channel]`; none where routes have a cycle.
    pub(crate) rank: Option<&'a [Vec<u32>]>,
    /// Trees that an earlier plan was ready with, and their lanes and VLANs: taken again where they serve.
    pub(crate) former: Vec<(Tree, u8, VlanId)>,
    /// How many trees may be added.
    pub(crate) extras_max: usize,
    pub(crate) extra_trees: ExtraTreePolicy,
}

/// What added trees are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraTreePolicy {
    /// To keep the load after a failure low.
    Balanced,
    /// Only what nothing else can do.
    Sparing,
}

/// How a plan gets ready.
pub(crate) struct Protection {
    /// Trees to add, their lanes, and the VLANs that they had.
    pub(crate) extras: Vec<(Tree, u8, Option<VlanId>)>,
    /// By failure, ascending.
    pub(crate) moves: Vec<(Failure, Vec<Move>, Proof)>,
    /// The numbering that the plan's certificate becomes; none where nothing needs to be proven.
    pub(crate) rank: Option<Vec<Vec<u32>>>,
    pub(crate) numberings: Vec<Vec<Vec<u32>>>,
    /// How long the most loaded channel takes after the worst failure, in demand on the fastest link.
    pub(crate) time_max: f64,
    pub(crate) links_dividing: usize,
    pub(crate) switches_dividing: usize,
    pub(crate) groups_dividing: usize,
}

/// A choice that changes.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// Everything that a unit's owners choose, and their broadcasts.
    Owners { owners: Vec<HostId>, root: SwitchId, streams: Vec<(Direction, HostSet)>, tree: usize },
    /// By pair: what a sender uses toward some receivers.
    Receivers { source: HostId, root: SwitchId, receivers: HostSet, tree: usize },
    /// By pair: what a sender uses toward everybody.
    Broadcast { source: HostId, tree: usize },
}

impl Move {
    fn tree(&self) -> usize {
        match self {
            Self::Owners { tree, .. } | Self::Receivers { tree, .. } | Self::Broadcast { tree, .. } => *tree,
        }
    }

    fn tree_mut(&mut self) -> &mut usize {
        match self {
            Self::Owners { tree, .. } | Self::Receivers { tree, .. } | Self::Broadcast { tree, .. } => tree,
        }
    }
}

/// Entries that switches need beyond those of the plan's own routes.
pub(crate) struct OwnedFan {
    pub(crate) tree: usize,
    pub(crate) root: SwitchId,
    pub(crate) direction: Direction,
    pub(crate) owners: Vec<HostId>,
    pub(crate) peers: HostSet,
}

/// Why a plan with so few trees cannot be protected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooFewTrees;

/// Makes a routing ready. Cost: O(failures · units · switches), and as much again for every tree that is added.
///
/// # Errors
/// [`TooFewTrees`] if `extras_max` trees do not suffice.
pub(crate) fn protect(request: &ProtectionRequest<'_>) -> Result<Protection, TooFewTrees> {
    let topology = request.topology;
    let mut failures: Vec<Failure> = topology.link_ids().map(Failure::Link).collect();
    let mut dividing: Vec<Failure> = dividing_links(topology).into_iter().map(Failure::Link).collect();
    if request.resilience.protects_switches() {
        failures.extend(topology.switch_ids().map(Failure::Switch));
        dividing.extend(dividing_switches(topology).into_iter().map(Failure::Switch));
    }
    if request.resilience.protects_groups() {
        failures.extend(topology.group_ids().map(Failure::Group));
        dividing.extend(dividing_groups(topology).into_iter().map(Failure::Group));
    }
    let mut placer = Placer::new(request);
    let (mut failures, idle): (Vec<(usize, Failure)>, Vec<_>) = (failures.into_iter())
        .filter(|failure| dividing.binary_search(failure).is_err())
        .map(|failure| (placer.affected(failure).len(), failure))
        .partition(|(affected, _)| *affected > 0);
    // Those that most miss first: what is added for them serves others as well.
    failures.sort_unstable_by_key(|&(affected, failure)| (std::cmp::Reverse(affected), failure));
    let mut moves = Vec::with_capacity(failures.len());
    let before = placer.bookmark();
    for (_, failure) in &failures {
        moves.extend(placer.place_on_what_is_there(*failure).map(|(placed, proof)| (*failure, placed, proof)));
    }
    // What serves only a few failures would stand in the way of what is made for the others.
    if SERVED_SHARE.0 * failures.len() > SERVED_SHARE.1 * moves.len() {
        moves.clear();
        placer.back_to(before);
    }
    let served: BTreeSet<Failure> = moves.iter().map(|(failure, ..)| *failure).collect();
    let rest = failures.into_iter().map(|(_, failure)| failure).filter(|failure| !served.contains(failure));
    let rest: Vec<Failure> = rest.collect();
    let links = rest.iter().filter_map(|failure| match failure {
        Failure::Link(link) => Some(*link),
        Failure::Switch(_) | Failure::Group(_) => None,
    });
    placer.prepare(&links.collect::<Vec<LinkId>>());
    for failure in rest {
        let (placed, proof) = placer.place(failure)?;
        moves.push((failure, placed, proof));
    }
    moves.sort_unstable_by_key(|(failure, ..)| *failure);
    if !idle.is_empty() {
        placer.note_nothing_moves();
    }
    Ok(placer.finish(moves, &dividing))
}

impl Protection {
    /// The fans of all moves, by tree.
    pub(crate) fn fans(&self) -> Vec<OwnedFan> {
        let mut owned: BTreeMap<(usize, HostId), &Move> = BTreeMap::new();
        let mut received: BTreeMap<(usize, HostId), (SwitchId, HostSet)> = BTreeMap::new();
        for change in self.moves.iter().flat_map(|(_, moves, _)| moves) {
            match change {
                Move::Owners { owners, tree, .. } => {
                    owned.insert((*tree, owners[0]), change);
                }
                Move::Receivers { source, root, receivers, tree } => {
                    received
                        .entry((*tree, *source))
                        .and_modify(|(_, all)| all.union(receivers))
                        .or_insert_with(|| (*root, receivers.clone()));
                }
                Move::Broadcast { .. } => {}
            }
        }
        let mut fans: Vec<OwnedFan> = Vec::new();
        for change in owned.into_values() {
            let Move::Owners { owners, root, streams, tree } = change else { continue };
            fans.extend(streams.iter().map(|(direction, peers)| OwnedFan {
                tree: *tree,
                root: *root,
                direction: *direction,
                owners: owners.clone(),
                peers: peers.clone(),
            }));
        }
        fans.extend(received.into_iter().map(|((tree, source), (root, peers))| OwnedFan {
            tree,
            root,
            direction: Direction::Outward,
            owners: vec![source],
            peers,
        }));
        fans.sort_by_key(|fan| fan.tree);
        fans
    }

    /// The switch-overs, `vlan[tree]` being the trees' names.
    pub(crate) fn switch_overs(&self, vlan: &[VlanId]) -> Vec<SwitchOver> {
        let over = |(failure, moves, proof): &(Failure, Vec<Move>, Proof)| {
            let mut hosts: Vec<(HostId, VlanId)> = Vec::new();
            let mut pairs: Vec<PairRun> = Vec::new();
            for change in moves {
                match change {
                    Move::Owners { owners, tree, .. } => hosts.extend(owners.iter().map(|host| (*host, vlan[*tree]))),
                    Move::Broadcast { source, tree } => hosts.push((*source, vlan[*tree])),
                    Move::Receivers { source, receivers, tree, .. } => {
                        let run = |(first, last)| HostRun { first, last, choice: vlan[*tree] };
                        pairs.extend(receivers.runs().map(|ends| PairRun { source: *source, run: run(ends) }));
                    }
                }
            }
            hosts.sort_unstable();
            pairs.sort_unstable_by_key(|pair| (pair.source, pair.run.first));
            let mut runs: Vec<HostRun<VlanId>> = Vec::new();
            for (host, choice) in hosts {
                match runs.last_mut() {
                    Some(run) if run.choice == choice && run.last.index() + 1 == host.index() => run.last = host,
                    _ => runs.push(HostRun { first: host, last: host, choice }),
                }
            }
            SwitchOver { failure: *failure, hosts: runs, pairs, proof: *proof }
        };
        self.moves.iter().map(over).collect()
    }
}

/// Whether anything can wait for ever, so that routes must respect the channel order.
fn must_climb(request: &ProtectionRequest<'_>) -> bool {
    request.flow_control.lanes().is_some()
}

/// The numberings of all lanes, as they come out of a rank for each.
fn orders(request: &ProtectionRequest<'_>) -> Vec<TopologicalOrder> {
    request.rank.into_iter().flatten().map(|rank| TopologicalOrder::by_number(rank)).collect()
}

/// How many ordered pairs a choice by broadcast has: none that count. What a host sends to everybody by pair.
fn broadcast_tree(assignment: &Assignment<usize>, host: HostId) -> Option<usize> {
    match assignment {
        Assignment::Pair { broadcast, .. } => Some(broadcast[host.index()]),
        Assignment::Source(_) | Assignment::Destination { .. } | Assignment::Priority { .. } => None,
    }
}

/// Whether frames between hosts that are left still get through a tree, or a part of one, after a failure; its links, ascending. A
/// switch must be a leaf. Cost: O(log links), for a group O(links · log members).
fn survives(topology: &Topology, links: &[LinkId], failure: Failure) -> bool {
    let has = |link: LinkId| links.binary_search(&link).is_ok();
    match failure {
        Failure::Link(link) => !has(link),
        Failure::Switch(switch) => {
            topology.channels_from(switch).iter().filter(|channel| has(channel.link())).nth(1).is_none()
        }
        Failure::Group(_) => {
            let mut pieces = UnionFind::new(topology.switches().len());
            let mut left: Vec<SwitchId> = Vec::new();
            for &link in links {
                let [forward, backward] = both(link);
                let ends = [topology.tail(forward), topology.head(forward)];
                left.extend(ends.into_iter().filter(|end| !failure.takes(topology, *end)));
                if ![forward, backward].into_iter().any(|channel| failure.blocks(topology, channel)) {
                    pieces.join(ends[0].index(), ends[1].index());
                }
            }
            let mut lived_in = left.into_iter().filter(|switch| !topology.hosts_of(*switch).is_empty());
            let first = lived_in.next().map(|switch| pieces.find(switch.index()));
            lived_in.all(|switch| Some(pieces.find(switch.index())) == first)
        }
    }
}

/// The two channels of a link.
fn both(link: LinkId) -> [ChannelId; 2] {
    [ChannelId::forward(link), ChannelId::backward(link)]
}
