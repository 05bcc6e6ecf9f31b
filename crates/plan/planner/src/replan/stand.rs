//! VLANs that stand: the same tree for the same hosts on the same ports, so that their entries are those of the previous
//! plan and need not be found again.
//!
//! ```text
//!   VLAN 2   same tree, same users      s0  2: h1 ▶ p3   …   copied
//!   VLAN 3   another tree               s0  3: h1 ▶ p4   …   found anew
//!   VLAN 4   same tree, h7 is new       s0  4: h1 ▶ p3   …   found anew
//! ```

use fabric::{
    Assignment, ChannelId, FdbRun, HostId, LinkId, Plan, PortId, Relation, SwitchId, Topology, VlanId, VlanSet,
    VlanTree,
};

/// A previous plan's entries that still hold.
pub(crate) struct Standing<'a> {
    previous: &'a Plan,
    vlans: VlanSet,
}

impl<'a> Standing<'a> {
    /// What stands of a previous plan for the same request in trees and choices for a newer topology.
    /// Cost: O(ports + links of all trees + choices).
    ///
    /// Entries name hosts and ports by position, so nothing stands where one of them has another position. Of a plan
    /// that is ready for failures nothing stands either: its entries are also for what hosts switch over to.
    pub(crate) fn of(
        topology: &Topology,
        previous: &'a Plan,
        relation: &Relation,
        trees: &[VlanTree],
        assignment: &Assignment<VlanId>,
    ) -> Self {
        let mut vlans = VlanSet::new();
        if previous.failover.is_some() || !is_in_place(topology, previous, relation) {
            return Self { previous, vlans };
        }
        let same_tree = |tree: &&VlanTree| {
            let Some(before) = previous.tree(tree.vlan) else { return false };
            let twin = |link: &LinkId| relation.channel[ChannelId::forward(*link).index()].map(ChannelId::link);
            let mut twins: Vec<Option<LinkId>> = before.tree.links().iter().map(twin).collect();
            twins.sort_unstable();
            twins.into_iter().eq(tree.tree.links().iter().map(|link| Some(*link)))
        };
        vlans.extend(trees.iter().filter(same_tree).map(|tree| tree.vlan));
        let mut changed = |vlan: VlanId| {
            vlans.remove(vlan);
        };
        match (&previous.assignment, assignment) {
            (Assignment::Source(before), Assignment::Source(now))
            | (Assignment::Destination { choice: before, .. }, Assignment::Destination { choice: now, .. }) => {
                before.iter().zip(now).filter(|(before, now)| before != now).for_each(|(before, now)| {
                    [*before, *now].into_iter().for_each(&mut changed);
                });
            }
            (
                Assignment::Priority { choice: before, priority: first, .. },
                Assignment::Priority { choice: now, priority: second, .. },
            ) if before == now && first == second => {}
            (Assignment::Pair { unicast: before, .. }, Assignment::Pair { unicast: now, .. }) => {
                for (before, now) in before.iter().zip(now).filter(|(before, now)| before != now) {
                    before.iter().chain(now.iter()).for_each(|run| changed(run.choice));
                }
            }
            _ => vlans = VlanSet::new(),
        }
        Self { previous, vlans }
    }

    /// Whether a VLAN's entries are those of the previous plan.
    pub(crate) fn has(&self, vlan: VlanId) -> bool {
        self.vlans.contains(vlan)
    }

    /// Adds the entries that stand to a switch's other ones, both ascending.
    pub(crate) fn add_to(&self, switch: SwitchId, entries: &mut Vec<FdbRun>) {
        if self.vlans.is_empty() {
            return;
        }
        let before = &self.previous.devices[switch.index()].fdb;
        let mut standing = before.chunk_by(|one, other| one.vlan == other.vlan).filter(|runs| self.has(runs[0].vlan));
        let fresh = std::mem::replace(entries, Vec::with_capacity(before.len() + entries.len()));
        let mut next = standing.next();
        for runs in fresh.chunk_by(|one, other| one.vlan == other.vlan) {
            while let Some(earlier) = next.filter(|earlier| earlier[0].vlan < runs[0].vlan) {
                entries.extend_from_slice(earlier);
                next = standing.next();
            }
            entries.extend_from_slice(runs);
        }
        next.into_iter().chain(standing).for_each(|runs| entries.extend_from_slice(runs));
    }
}

/// Whether switches, ports and hosts are all where they were.
fn is_in_place(topology: &Topology, previous: &Plan, relation: &Relation) -> bool {
    let old = &previous.topology;
    let same_host = |host: HostId| {
        relation.host_from[host.index()] == Some(host)
            && old.host(host).port == topology.host(host).port
            && old.host(host).standby == topology.host(host).standby
            && old.host(host).all_macs().eq(topology.host(host).all_macs())
    };
    previous.devices.len() == topology.switches().len()
        && [old.switches().len(), old.ports().len(), old.hosts().len()]
            == [topology.switches().len(), topology.ports().len(), topology.hosts().len()]
        && topology.switch_ids().all(|switch| relation.switch_from[switch.index()] == Some(switch))
        && relation.port.iter().enumerate().all(|(port, twin)| *twin == Some(PortId::new(port)))
        && topology.host_ids().all(same_host)
}
