//! Routes as shared trees, and shared trees as routes.
//!
//! ```text
//!   routing by source ─▶ trees that senders share ─▶ routing by source
//!                                 └▶ trees that pairs choose ─▶ routing by pair
//! ```

use std::sync::Arc;

use fabric::{Assignment, EngineName, FlowControl, HostRun, Policy, SwitchId, Topology, Tree};

use crate::{lanes, merge::merge, routing::Routing};

use super::{
    bent_order::Orders,
    net::{NONE, Net},
    pairs::{NO_TREE, Pairs},
    senders::{Share, Unit},
    shared_trees::{SharedTrees, span},
};

/// What routes are converted for.
pub(super) struct Converter<'a> {
    pub(super) topology: &'a Topology,
    pub(super) policy: &'a Policy,
    pub(super) net: &'a Net,
}

impl<'a> Converter<'a> {
    pub(super) fn new(topology: &'a Topology, policy: &'a Policy, net: &'a Net) -> Self {
        Self { topology, policy, net }
    }

    /// All hosts of a switch as one.
    pub(super) fn units(&self) -> Vec<Unit> {
        let switches = self.topology.switch_ids().filter(|switch| !self.topology.hosts_of(*switch).is_empty());
        switches
            .map(|switch| Unit { switch: switch.index(), hosts: self.topology.hosts_of(switch).to_vec(), tree: 0 })
            .collect()
    }

    /// A routing by source as it is; none if it does not obey the flow control.
    pub(super) fn whole(&self, routing: &Routing) -> Option<Share> {
        let Assignment::Source(choice) = &routing.assignment else { return None };
        let lanes = lanes::place(self.topology, self.policy, EngineName::Balanced, routing).ok()?;
        let mut units: Vec<Unit> = Vec::new();
        for switch in self.topology.switch_ids() {
            let start = units.len();
            for &host in self.topology.hosts_of(switch) {
                let tree = choice[host.index()];
                match units[start..].iter_mut().find(|unit| unit.tree == tree) {
                    Some(unit) => unit.hosts.push(host),
                    None => units.push(Unit { switch: switch.index(), hosts: vec![host], tree }),
                }
            }
        }
        let mut root = vec![0; routing.trees.len()];
        units.iter().for_each(|unit| root[unit.tree] = unit.switch);
        let rank = lanes.rank.filter(|_| self.policy.flow_control != FlowControl::None);
        let mut trees = SharedTrees::new(
            self.net,
            rank.map(|rank| Orders::new(self.net, rank.iter().map(|lane| self.net.by_number(lane)).collect())),
        );
        for ((tree, &root), &lane) in routing.trees.iter().zip(&root).zip(&lanes.lane) {
            let rooted = tree.rooted_at(self.topology, SwitchId::new(root));
            let mut inward: Vec<u32> =
                rooted.inward.iter().map(|channel| channel.map_or(NONE, |channel| self.net.number(channel))).collect();
            span(self.net, root, &mut inward);
            trees.push(root, &inward, lane);
        }
        let mut share = Share { trees, units };
        share.settle(self.net).then_some(share)
    }

    /// Lanes on which trees may be placed; one without flow control.
    pub(super) fn lane_count(&self) -> usize {
        usize::from(self.policy.flow_control.lanes().unwrap_or(1))
    }

    /// Routes by source.
    pub(super) fn by_source(&self, share: &Share) -> Routing {
        let mut choice = vec![0; self.topology.hosts().len()];
        for unit in &share.units {
            unit.hosts.iter().for_each(|host| choice[host.index()] = unit.tree);
        }
        Routing { lane: self.lanes(&share.trees), ..Routing::by_source(self.trees(&share.trees), choice) }
    }

    /// How many trees differ in what leads to hosts. Cost: O(trees · switches · log).
    pub(super) fn distinct_trees(&self, share: &Share) -> usize {
        merge(self.topology, self.by_source(share)).trees.len()
    }

    /// Routes by pair; hosts of a switch choose alike.
    pub(super) fn by_pair(&self, pairs: Pairs) -> Routing {
        let hosts = self.topology.hosts().len();
        let broadcast_of = self.broadcast(&pairs);
        let (mut unicast, mut broadcast) = (vec![Arc::default(); hosts], vec![0; hosts]);
        for switch in self.topology.switch_ids().filter(|switch| !self.topology.hosts_of(*switch).is_empty()) {
            let row = &pairs.choice[switch.index() * self.net.switches..(switch.index() + 1) * self.net.switches];
            let everybody = broadcast_of[switch.index()];
            let mut runs: Vec<HostRun<usize>> = Vec::new();
            for host in self.topology.host_ids() {
                let choice = match row[self.topology.switch_of(host).index()] {
                    NO_TREE => everybody,
                    tree => usize::from(tree),
                };
                match runs.last_mut() {
                    Some(run) if run.choice == choice => run.last = host,
                    _ => runs.push(HostRun { first: host, last: host, choice }),
                }
            }
            let runs = Arc::new(runs);
            for host in self.topology.hosts_of(switch) {
                unicast[host.index()] = Arc::clone(&runs);
                broadcast[host.index()] = everybody;
            }
        }
        let assignment = Assignment::Pair { unicast, broadcast };
        Routing { trees: self.trees(&pairs.trees), assignment, numbering: None, lane: self.lanes(&pairs.trees) }
    }

    /// `tree[switch]`: the one that its hosts use most, for what they send to everybody.
    fn broadcast(&self, pairs: &Pairs) -> Vec<usize> {
        let net = self.net;
        let most_used = |switch: usize| {
            let row = &pairs.choice[switch * net.switches..(switch + 1) * net.switches];
            let mut uses = vec![0_u32; pairs.trees.len()];
            row.iter().filter(|tree| **tree != NO_TREE).for_each(|tree| uses[usize::from(*tree)] += 1);
            (0..uses.len()).min_by_key(|tree| (std::cmp::Reverse(uses[*tree]), *tree)).unwrap_or(0)
        };
        (0..net.switches).map(|switch| if net.hosts[switch] > 0 { most_used(switch) } else { 0 }).collect()
    }

    fn lanes(&self, trees: &SharedTrees) -> Option<Vec<u8>> {
        (self.policy.flow_control != FlowControl::None).then(|| trees.lane.clone())
    }

    fn trees(&self, trees: &SharedTrees) -> Vec<Tree> {
        (0..trees.len())
            .map(|tree| {
                let channels = trees.tree(tree).iter().filter(|channel| **channel != NONE);
                let links = channels.map(|&channel| self.net.id(channel).link());
                Tree::new(self.topology, links).expect("channels into each switch form a tree")
            })
            .collect()
    }
}
