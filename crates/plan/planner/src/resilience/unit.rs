//! Units: traffic that moves from tree to tree as one when a link, a switch or a group fails.
//!
//! ```text
//!   by source        the hosts of one switch in one tree, toward everybody
//!   by priority      one host in its tree, toward and from all hosts of lower priority
//!   by pair          one sender in one tree; only the receivers beyond what failed move
//! ```
//! A unit in a tree is a *trace*: the channels that it crosses, with the pairs on each, and the dependencies between
//! them. All that is asked of a tree (load, legality, entries) is asked of traces.

use std::{collections::BTreeMap, rc::Rc};

use fabric::{Assignment, ChannelId, Failure, HostId, SwitchId, Topology, Traffic, Tree};

use super::both;
use crate::{
    dependency::Dependency,
    fan::{Direction, for_each_fan},
    host_set::HostSet,
    measure::crossed,
    replan::{Flow, in_units},
    routing::Routing,
};

/// Traffic that moves as one.
pub(super) struct Unit {
    /// The tree that it takes while all links are up.
    pub(super) tree: usize,
    /// The switch of its owners.
    pub(super) root: SwitchId,
    /// The hosts whose choice it is.
    pub(super) owners: Vec<HostId>,
    pub(super) streams: Vec<Stream>,
    /// Whether receivers are chosen one by one.
    pub(super) by_pair: bool,
}

/// Traffic in one direction between a unit's owners and others.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) direction: Direction,
    pub(super) owners: u32,
    pub(super) peers: Rc<HostSet>,
    /// `counts[switch]`: peers there.
    pub(super) counts: Rc<Vec<u32>>,
    /// `demand[switch]`: what owners and peers there send that way; none where it is one unit for each of them.
    pub(super) demand: Option<Rc<Vec<f64>>>,
}

/// A tree rooted at a unit's root.
pub(super) struct Rooted {
    /// Switches from the root outward, the root first.
    pub(super) order: Vec<SwitchId>,
    /// By which channel each switch is entered.
    pub(super) inward: Vec<Option<ChannelId>>,
}

/// What a unit's frames cross in a tree.
#[derive(Default)]
pub(super) struct Trace {
    /// Channels, and the demand that crosses each.
    pub(super) crossed: Vec<(ChannelId, f64)>,
    pub(super) dependencies: Vec<Dependency>,
}

impl Unit {
    /// The units of a routing, in the order of their trees.
    pub(super) fn all(topology: &Topology, traffic: &Traffic, routing: &Routing) -> Vec<Self> {
        let hosts = topology.hosts().len();
        let whole = Rc::new(HostSet::all(hosts));
        let everywhere = Rc::new(counts(topology, &whole));
        let by_pair = matches!(routing.assignment, Assignment::Pair { .. });
        let mut units: BTreeMap<(usize, SwitchId, HostId), Self> = BTreeMap::new();
        for_each_fan(topology, routing, |fan| {
            // By pair every sender moves by itself, though senders that choose alike are one fan.
            let size = if by_pair { 1 } else { fan.owners.len() };
            for owners in fan.owners.chunks(size) {
                let (peers, counts) = if *fan.peers == *whole {
                    (whole.clone(), everywhere.clone())
                } else {
                    (Rc::new(fan.peers.clone()), Rc::new(counts(topology, fan.peers)))
                };
                let demand = demand(topology, traffic, fan.direction, owners, &peers);
                let stream = Stream { direction: fan.direction, owners: owners.len() as u32, peers, counts, demand };
                let unit = units.entry((fan.tree, fan.root, owners[0])).or_insert_with(|| Self {
                    tree: fan.tree,
                    root: fan.root,
                    owners: owners.to_vec(),
                    streams: Vec::new(),
                    by_pair,
                });
                unit.streams.push(stream);
            }
        });
        units.into_values().collect()
    }

    /// The part of the unit that a failure cuts in a tree; none if nothing is, or the unit's own switch is what fails.
    pub(super) fn beyond(
        &self,
        topology: &Topology,
        traffic: &Traffic,
        rooted: &Rooted,
        failure: Failure,
    ) -> Option<Vec<Stream>> {
        let is_cut =
            |switch: SwitchId| rooted.inward[switch.index()].is_some_and(|channel| failure.blocks(topology, channel));
        let ends = failure.links(topology).into_iter().flat_map(both).map(|channel| topology.head(channel));
        if failure.takes(topology, self.root) || !ends.into_iter().any(is_cut) {
            return None;
        }
        if !self.by_pair {
            return Some(self.streams.clone());
        }
        let mut below = vec![false; rooted.inward.len()];
        let mut peers = HostSet::empty(topology.hosts().len());
        for &switch in &rooted.order {
            let inward = rooted.inward[switch.index()];
            below[switch.index()] =
                is_cut(switch) || inward.is_some_and(|channel| below[topology.tail(channel).index()]);
            if below[switch.index()] && !failure.takes(topology, switch) {
                let here = topology.hosts_of(switch).iter();
                here.filter(|host| self.streams[0].peers.contains(**host)).for_each(|host| peers.insert(*host));
            }
        }
        peers.runs().next()?;
        Some(vec![self.stream_to(topology, traffic, peers)])
    }

    /// By pair, what is left of the unit without the part that is cut.
    pub(super) fn without(&self, topology: &Topology, traffic: &Traffic, cut: &Stream) -> Stream {
        let mut peers = (*self.streams[0].peers).clone();
        peers.subtract(&cut.peers);
        self.stream_to(topology, traffic, peers)
    }

    /// By pair, what goes to some of the unit's peers.
    fn stream_to(&self, topology: &Topology, traffic: &Traffic, peers: HostSet) -> Stream {
        let whole = &self.streams[0];
        let counts = Rc::new(counts(topology, &peers));
        let demand = demand(topology, traffic, whole.direction, &self.owners, &peers);
        Stream { peers: Rc::new(peers), counts, demand, ..whole.clone() }
    }

    /// The same as flows, for mending, in units of so much demand.
    pub(super) fn flows(&self, streams: &[Stream], unit: f64) -> Vec<Flow> {
        let flow = |stream: &Stream| Flow {
            root: self.root,
            direction: stream.direction,
            owners: stream.owners,
            peers: Some(stream.counts.to_vec()),
            demand: stream.demand.as_ref().map(|demand| demand.iter().map(|amount| in_units(*amount, unit)).collect()),
        };
        streams.iter().map(flow).collect()
    }
}

impl Rooted {
    pub(super) fn new(topology: &Topology, tree: &Tree, root: SwitchId) -> Self {
        let rooted = tree.rooted_at(topology, root);
        Self { order: rooted.order, inward: rooted.inward }
    }

    /// What streams cross. Cost: O(streams · switches).
    pub(super) fn trace(&self, topology: &Topology, streams: &[Stream]) -> Trace {
        let mut trace = Trace::default();
        let (mut below, mut sent) = (vec![0_u64; self.inward.len()], vec![0.0; self.inward.len()]);
        for Stream { direction, owners, counts, demand, .. } in streams {
            for &switch in &self.order {
                below[switch.index()] = u64::from(counts[switch.index()]);
                sent[switch.index()] = demand.as_ref().map_or(0.0, |demand| demand[switch.index()]);
            }
            for &switch in self.order[1..].iter().rev() {
                let Some(last) = self.inward[switch.index()].filter(|_| below[switch.index()] > 0) else { continue };
                let parent = topology.tail(last);
                below[parent.index()] += below[switch.index()];
                sent[parent.index()] += sent[switch.index()];
                let amount = match demand {
                    Some(_) => sent[switch.index()],
                    None => (below[switch.index()] * u64::from(*owners)) as f64,
                };
                trace.crossed.push((crossed(last, *direction), amount));
                if let Some(first) = self.inward[parent.index()] {
                    trace.dependencies.push(dependency(first, last, *direction));
                }
            }
        }
        trace
    }
}

/// The dependency of frames that go over `last` after `first` outward, or the other way round inward.
pub(super) fn dependency(first: ChannelId, last: ChannelId, direction: Direction) -> Dependency {
    let (first, last) = (crossed(first, direction).index() as u32, crossed(last, direction).index() as u32);
    match direction {
        Direction::Outward => (first, last),
        Direction::Inward => (last, first),
    }
}

/// `counts[switch]`: how many of the hosts are there.
fn counts(topology: &Topology, hosts: &HostSet) -> Vec<u32> {
    let here = |switch| topology.hosts_of(switch).iter().filter(|host| hosts.contains(**host)).count() as u32;
    topology.switch_ids().map(here).collect()
}

/// `demand[switch]`: what owners send to peers there, or receive from them; none where all send alike.
fn demand(
    topology: &Topology,
    traffic: &Traffic,
    direction: Direction,
    owners: &[HostId],
    peers: &HostSet,
) -> Option<Rc<Vec<f64>>> {
    let Traffic::Matrix(matrix) = traffic else { return None };
    let mut demand = vec![0.0; topology.switches().len()];
    let mut add = |peer: HostId, amount: f64| demand[topology.switch_of(peer).index()] += amount;
    for &owner in owners {
        match direction {
            Direction::Outward => {
                let sent = matrix.sent_by(owner).iter().filter(|(peer, _)| peers.contains(*peer));
                sent.for_each(|&(peer, amount)| add(peer, amount));
            }
            Direction::Inward => {
                let senders = topology.host_ids().filter(|peer| peers.contains(*peer));
                senders.for_each(|peer| add(peer, traffic.demand(peer, owner)));
            }
        }
    }
    Some(Rc::new(demand))
}
