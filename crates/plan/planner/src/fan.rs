//! Fans: how the traffic of a routing lies on its trees.
//!
//! Every routing, whatever chooses the tree, is a set of *fans*: a tree, one switch as its root, and traffic between
//! the root's hosts and some peers, either all outward or all inward. Loads, dependencies and forwarding entries are
//! then sums over fans, each computed by one pass over a tree.
//!
//! ```text
//!   outward: h0 sends to h1, h2, h3        inward: h1, h2, h3 send to h0
//!        h0─[s0]──▶[s1]──▶[s2]─h3               h0─[s0]◀──[s1]◀──[s2]─h3
//!                   ├─h1   └─h2                            ├─h1   └─h2
//! ```

use std::{collections::BTreeMap, ops::Range};

use fabric::{Assignment, HostId, SwitchId, Topology};

use crate::{host_set::HostSet, routing::Routing};

/// Traffic between the hosts of one switch and some peers, along one tree.
pub(crate) struct Fan<'a> {
    /// Position of the tree in the routing.
    pub(crate) tree: usize,
    /// The owners' switch.
    pub(crate) root: SwitchId,
    /// Which way the frames go.
    pub(crate) direction: Direction,
    /// Hosts of the root that take part; at least one.
    pub(crate) owners: &'a [HostId],
    /// Hosts at the other end. It may hold owners: a host and itself exchange nothing.
    pub(crate) peers: &'a HostSet,
}

/// Which way the frames of a fan go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the owners to the peers.
    Outward,
    /// From the peers to the owners.
    Inward,
}

impl Direction {
    /// The other way.
    pub(crate) const fn reverse(self) -> Self {
        match self {
            Self::Outward => Self::Inward,
            Self::Inward => Self::Outward,
        }
    }
}

/// Visits every fan of a routing, grouped so that all fans of a tree follow each other in ascending order of trees.
/// Cost: O(hosts) fans by source or destination, up to 2·hosts by priority, and one a row and tree by pair.
pub(crate) fn for_each_fan(topology: &Topology, routing: &Routing, visit: impl FnMut(&Fan<'_>)) {
    for_each_fan_of(topology, routing, &(0..routing.trees.len()), visit);
}

/// Visits the fans of some trees, in the same order.
pub(crate) fn for_each_fan_of(
    topology: &Topology,
    routing: &Routing,
    trees: &Range<usize>,
    mut visit: impl FnMut(&Fan<'_>),
) {
    let hosts = topology.hosts().len();
    let all = HostSet::all(hosts);
    let mut peers = HostSet::empty(hosts);
    match &routing.assignment {
        Assignment::Source(choice) => {
            for ((tree, root), owners) in owners(topology, choice, trees) {
                visit(&Fan { tree, root, direction: Direction::Outward, owners: &owners, peers: &all });
            }
        }
        Assignment::Destination { choice, .. } => {
            for ((tree, root), owners) in owners(topology, choice, trees) {
                visit(&Fan { tree, root, direction: Direction::Inward, owners: &owners, peers: &all });
            }
        }
        Assignment::Priority { choice, priority, .. } => {
            for ((tree, root), owners) in owners(topology, choice, trees) {
                for owner in owners {
                    let own = priority[owner.index()];
                    for direction in [Direction::Outward, Direction::Inward] {
                        peers.clear();
                        for host in topology.host_ids() {
                            let other = priority[host.index()];
                            // On a tie the sender's own tree is used, so the owner's frames go out along it and the
                            // peer's come in along the peer's.
                            if host != owner && (other < own || (other == own && direction == Direction::Outward)) {
                                peers.insert(host);
                            }
                        }
                        visit(&Fan { tree, root, direction, owners: &[owner], peers: &peers });
                    }
                }
            }
        }
        Assignment::Pair { unicast, .. } => {
            // Hosts of a switch that share their row are one fan a tree.
            let mut groups: Vec<Vec<HostId>> = Vec::new();
            for switch in topology.switch_ids() {
                let start = groups.len();
                for &source in topology.hosts_of(switch) {
                    let alike = |group: &&mut Vec<HostId>| unicast[group[0].index()] == unicast[source.index()];
                    match groups[start..].iter_mut().find(alike) {
                        Some(group) => group.push(source),
                        None => groups.push(vec![source]),
                    }
                }
            }
            let mut uses: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (number, group) in groups.iter().enumerate() {
                let mut chosen: Vec<usize> = unicast[group[0].index()].iter().map(|run| run.choice).collect();
                chosen.sort_unstable();
                chosen.dedup();
                chosen
                    .into_iter()
                    .filter(|tree| trees.contains(tree))
                    .for_each(|tree| uses.entry(tree).or_default().push(number));
            }
            for (tree, users) in uses {
                for owners in users.into_iter().map(|number| &groups[number]) {
                    peers.clear();
                    for run in unicast[owners[0].index()].iter().filter(|run| run.choice == tree) {
                        (run.first.index()..=run.last.index()).for_each(|host| peers.insert(HostId::new(host)));
                    }
                    let root = topology.switch_of(owners[0]);
                    visit(&Fan { tree, root, direction: Direction::Outward, owners, peers: &peers });
                }
            }
        }
    }
}

/// Hosts by tree and switch.
fn owners(topology: &Topology, choice: &[usize], trees: &Range<usize>) -> BTreeMap<(usize, SwitchId), Vec<HostId>> {
    let mut owners: BTreeMap<_, Vec<HostId>> = BTreeMap::new();
    for host in topology.host_ids().filter(|host| trees.contains(&choice[host.index()])) {
        owners.entry((choice[host.index()], topology.switch_of(host))).or_default().push(host);
    }
    owners
}
