//! Path sets: every path of every pair, and what they are said to be worth in permutations.
//!
//! ```text
//!   h0 → h3: VLANs 2 (assigned), 5, 9     5: delivered?   9: the same links as 2? then it is no further path
//! ```
//! Frames of further paths are followed as those of assigned VLANs are, and what they wait for goes into the same dependency
//! graph, so one verdict on deadlock holds for all paths together. Loads and hops in the summary are of assigned VLANs alone.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{ChannelId, FindingKind, HostId, PathSets, SwitchId, VlanId};

use crate::{
    findings::Findings,
    receiver::Receiver,
    state::{FabricState, Hop},
    view::View,
};

/// The paths of pairs, seen in the switches' tables.
pub(crate) struct SeenPaths<'a> {
    pub(crate) sets: &'a PathSets,
    /// By VLAN, sender's switch and receiver: the channels of the path.
    paths: BTreeMap<(VlanId, SwitchId, HostId), Vec<ChannelId>>,
}

impl<'a> SeenPaths<'a> {
    /// The plan's sets, if they name VLANs for every pair: with the assigned one, and no more than asked for.
    pub(crate) fn read(state: &FabricState<'a>, findings: &mut Findings) -> Option<Self> {
        let (plan, hosts) = (state.plan, state.topology.hosts().len());
        let Some(sets) = &plan.paths else {
            if plan.policy.paths_max > 1 {
                findings.fatal(FindingKind::PlanMismatch, || {
                    let most = plan.policy.paths_max;
                    ("path sets".to_owned(), format!("there are none, where the policy asks for up to {most} paths"))
                });
            }
            return None;
        };
        let covers = |row: &[fabric::HostRun<Vec<VlanId>>]| {
            let mut next = 0;
            row.iter().all(|run| run.first.index() == std::mem::replace(&mut next, run.last.index() + 1))
                && next == hosts
        };
        if sets.rows.len() != hosts || !sets.rows.iter().all(|row| covers(row)) {
            findings.fatal(FindingKind::IncompleteState, || {
                ("path sets".to_owned(), "do not name VLANs for every pair of hosts".to_owned())
            });
            return None;
        }
        let most = plan.policy.paths_max as usize;
        for source in state.topology.host_ids() {
            for destination in state.topology.host_ids() {
                let set = sets.of(source, destination);
                let assigned = plan.assignment.unicast(source, destination);
                let subject = || format!("{} -> {}", state.host_name(source), state.host_name(destination));
                if !set.contains(&assigned) {
                    findings.fatal(FindingKind::PlanMismatch, || {
                        (subject(), format!("its path set is without the assigned VLAN {assigned}"))
                    });
                }
                if set.len() > most {
                    findings.fatal(FindingKind::PlanMismatch, || {
                        (subject(), format!("has {} paths, where the policy allows {most}", set.len()))
                    });
                }
            }
        }
        Some(Self { sets, paths: BTreeMap::new() })
    }

    /// Follows the static entries of a VLAN from every switch with senders to every receiver that has it in a set.
    pub(crate) fn see(&mut self, state: &FabricState<'_>, view: &View) {
        let topology = state.topology;
        for source in topology.host_ids() {
            let from = topology.switch_of(source);
            for run in self.sets.rows[source.index()].iter().filter(|run| run.choice.contains(&view.vlan)) {
                for destination in (run.first.index()..=run.last.index()).map(HostId::new) {
                    self.paths
                        .entry((view.vlan, from, destination))
                        .or_insert_with(|| followed(state, view, from, destination));
                }
            }
        }
    }

    /// A pair's paths, the channels of each; none where both hosts are on one switch.
    pub(crate) fn of(
        &self,
        state: &FabricState<'_>,
        source: HostId,
        destination: HostId,
    ) -> impl Iterator<Item = &[ChannelId]> {
        let from = state.topology.switch_of(source);
        let own = from == state.topology.switch_of(destination);
        let vlans = self.sets.of(source, destination).iter().filter(move |_| !own);
        vlans.filter_map(move |vlan| self.paths.get(&(*vlan, from, destination)).map(Vec::as_slice))
    }

    /// Judges whether the paths of each pair differ.
    pub(crate) fn judge(&self, state: &FabricState<'_>, findings: &mut Findings) {
        for source in state.topology.host_ids() {
            for destination in state.topology.host_ids().filter(|destination| *destination != source) {
                let paths: Vec<&[ChannelId]> = self.of(state, source, destination).collect();
                let differing: BTreeSet<&[ChannelId]> = paths.iter().copied().collect();
                if differing.len() < paths.len() {
                    findings.warn(FindingKind::UnusedSetting, || {
                        let (count, pair) = (paths.len(), [source, destination].map(|host| state.host_name(host)));
                        let message = format!("only {} of its {count} paths differ", differing.len());
                        (format!("{} -> {}", pair[0], pair[1]), message)
                    });
                }
            }
        }
    }
}

/// The channels that frames take by static entries until they reach a host's port, or go no further.
fn followed(state: &FabricState<'_>, view: &View, from: SwitchId, to: HostId) -> Vec<ChannelId> {
    let topology = state.topology;
    let mut channels = Vec::new();
    let mut at = from;
    // A loop is found, and reported, where dispositions are judged.
    while channels.len() < topology.switches().len() {
        let Some(port) = state.lookup(at, view.vlan, Receiver::Host(to)) else { break };
        let Hop::Switch { ingress, .. } = view.hop[port.index()] else { break };
        let leaves = |channel: &&ChannelId| topology.tail_port(**channel) == port;
        let Some(channel) = topology.channels_from(at).iter().find(leaves) else { break };
        channels.push(*channel);
        at = topology.port(ingress).switch;
    }
    channels
}
