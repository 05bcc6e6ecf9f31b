//! Who sends in which VLAN: unicast from every host to every other, whatever its traffic, and a broadcast from every host.
//!
//! ```text
//!   switch-tagged   h0 ─PVID 2─▶ everybody                    by sender, read from the ports
//!   host-tagged     h0 ─ 2 ─▶ h1, h2   h0 ─ 3 ─▶ h3           by sender, receiver, priority or pair
//! ```
//! VLANs are asked for one at a time, and in each the receivers in ascending order, so that by pair a sweep over the
//! runs suffices. Over all VLANs every ordered pair comes up once: O(hosts²) in all.

use std::collections::BTreeMap;

use fabric::{Assignment, FdbMode, FindingKind, HostId, HostTagging, PathSets, VlanId};

use crate::{
    findings::{Findings, counted},
    learned,
    receiver::Receiver,
    state::FabricState,
};

/// Whether every pair of hosts was followed to its end, without which sums over pairs mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    Whole,
    Partial,
}

/// A sender and consecutive receivers.
#[derive(Clone, Copy)]
struct Run {
    first: HostId,
    last: HostId,
    source: HostId,
}

/// The traffic of every VLAN.
pub(crate) struct Demand<'a> {
    hosts: usize,
    table: DemandTable<'a>,
    /// Senders whose broadcasts enter the VLAN.
    broadcasts: BTreeMap<VlanId, Vec<HostId>>,
    /// Where switches learn: who sends in each VLAN at all.
    anybody: Option<BTreeMap<VlanId, Vec<HostId>>>,
    /// By pair: the runs of the VLAN that is asked about, by descending first receiver, and those in progress.
    waiting: Vec<Run>,
    current: Vec<Run>,
}

enum DemandTable<'a> {
    Source(BTreeMap<VlanId, Vec<HostId>>),
    Destination {
        owners: BTreeMap<VlanId, Vec<HostId>>,
        choice: &'a [VlanId],
    },
    Priority {
        owners: BTreeMap<VlanId, Vec<HostId>>,
        choice: &'a [VlanId],
        priority: &'a [u32],
    },
    Pair(BTreeMap<VlanId, Vec<Run>>),
    /// Receivers that are sent to in several VLANs.
    Receivers(BTreeMap<VlanId, Vec<HostId>>),
    /// Hosts that exchange frames with all of lower priority in several VLANs.
    Precedence {
        owners: BTreeMap<VlanId, Vec<HostId>>,
        priority: &'a [u32],
    },
}

/// Who would send in a VLAN besides those who do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standby {
    /// Hosts whose own choice it would be, ascending.
    pub(crate) owners: Vec<HostId>,
    /// By pair: senders and runs of receivers.
    pub(crate) pairs: Vec<(HostId, HostId, HostId)>,
}

impl<'a> Demand<'a> {
    /// Reads who sends where. A host whose frames enter no VLAN is a finding, once for every VLAN that it tries.
    pub(crate) fn read(state: &FabricState<'a>, findings: &mut Findings, coverage: &mut Coverage) -> Self {
        let owners = |choice: &[VlanId]| {
            let mut owners: BTreeMap<VlanId, Vec<HostId>> = BTreeMap::new();
            for (host, &vlan) in choice.iter().enumerate() {
                owners.entry(vlan).or_default().push(HostId::new(host));
            }
            owners
        };
        let mut broadcasts: BTreeMap<VlanId, Vec<HostId>> = BTreeMap::new();
        for host in state.topology.host_ids() {
            match state.send(host, Receiver::Everybody) {
                Ok(vlan) => broadcasts.entry(vlan).or_default().push(host),
                Err(loss) => {
                    *coverage = Coverage::Partial;
                    findings.fatal(FindingKind::Drop, || {
                        let port = state.topology.port_label(state.topology.host(host).port);
                        let message = format!("what it sends to everybody ends at {port}: {loss}");
                        (state.host_name(host).to_owned(), message)
                    });
                }
            }
        }
        let table = match (state.tagging, state.assignment) {
            (HostTagging::BySwitch, _) => DemandTable::Source(broadcasts.clone()),
            (HostTagging::ByHost, None) => DemandTable::Source(BTreeMap::new()),
            (HostTagging::ByHost, Some(Assignment::Source(choice))) => DemandTable::Source(owners(choice)),
            (HostTagging::ByHost, Some(Assignment::Destination { choice, .. })) => {
                DemandTable::Destination { owners: owners(choice), choice }
            }
            (HostTagging::ByHost, Some(Assignment::Priority { choice, priority, .. })) => {
                DemandTable::Priority { owners: owners(choice), choice, priority }
            }
            (HostTagging::ByHost, Some(Assignment::Pair { unicast, .. })) => {
                let mut runs: BTreeMap<VlanId, Vec<Run>> = BTreeMap::new();
                for (source, row) in unicast.iter().enumerate() {
                    for run in row.iter() {
                        let source = HostId::new(source);
                        runs.entry(run.choice).or_default().push(Run { first: run.first, last: run.last, source });
                    }
                }
                for row in runs.values_mut() {
                    row.sort_by_key(|run| std::cmp::Reverse((run.first, run.source)));
                }
                DemandTable::Pair(runs)
            }
        };
        let hosts = state.topology.hosts().len();
        let anybody = (state.plan.policy.fdb == FdbMode::Learned).then(|| learned::senders(state));
        Self { hosts, table, broadcasts, anybody, waiting: Vec::new(), current: Vec::new() }
    }

    /// What hosts may send in further VLANs of their path sets.
    pub(crate) fn further(state: &FabricState<'a>, sets: &PathSets) -> Self {
        let mut runs: BTreeMap<VlanId, Vec<Run>> = BTreeMap::new();
        for (source, row) in sets.rows.iter().enumerate() {
            let source = HostId::new(source);
            for destination in row.iter().flat_map(|run| (run.first.index()..=run.last.index()).map(HostId::new)) {
                let assigned = state.plan.assignment.unicast(source, destination);
                for &vlan in sets.of(source, destination).iter().filter(|vlan| **vlan != assigned) {
                    runs.entry(vlan).or_default().push(Run { first: destination, last: destination, source });
                }
            }
        }
        for row in runs.values_mut() {
            row.sort_by_key(|run| std::cmp::Reverse((run.first, run.source)));
        }
        let hosts = state.topology.hosts().len();
        let (table, broadcasts) = (DemandTable::Pair(runs), BTreeMap::new());
        Self { hosts, table, broadcasts, anybody: None, waiting: Vec::new(), current: Vec::new() }
    }

    /// What would be sent in each VLAN after some failure, besides broadcasts.
    pub(crate) fn standby(state: &FabricState<'a>, standby: &BTreeMap<VlanId, Standby>) -> Self {
        let owners = || {
            let owned = standby.iter().filter(|(_, standby)| !standby.owners.is_empty());
            owned.map(|(vlan, standby)| (*vlan, standby.owners.clone())).collect()
        };
        let table = match state.assignment {
            Some(Assignment::Destination { .. }) => DemandTable::Receivers(owners()),
            Some(Assignment::Priority { priority, .. }) => DemandTable::Precedence { owners: owners(), priority },
            Some(Assignment::Pair { .. }) => {
                let runs = |standby: &Standby| {
                    let run = |&(source, first, last): &(HostId, HostId, HostId)| Run { first, last, source };
                    let mut runs: Vec<Run> = standby.pairs.iter().map(run).collect();
                    runs.sort_by_key(|run| std::cmp::Reverse((run.first, run.source)));
                    runs
                };
                let paired = standby.iter().filter(|(_, standby)| !standby.pairs.is_empty());
                DemandTable::Pair(paired.map(|(vlan, standby)| (*vlan, runs(standby))).collect())
            }
            Some(Assignment::Source(_)) | None => DemandTable::Source(owners()),
        };
        let hosts = state.topology.hosts().len();
        let broadcasts = BTreeMap::new();
        Self { hosts, table, broadcasts, anybody: None, waiting: Vec::new(), current: Vec::new() }
    }

    /// The VLANs in which somebody sends.
    pub(crate) fn vlans(&self) -> Vec<VlanId> {
        let unicast: Vec<VlanId> = match &self.table {
            DemandTable::Source(owners)
            | DemandTable::Receivers(owners)
            | DemandTable::Destination { owners, .. }
            | DemandTable::Priority { owners, .. }
            | DemandTable::Precedence { owners, .. } => owners.keys().copied().collect(),
            DemandTable::Pair(runs) => runs.keys().copied().collect(),
        };
        unicast.into_iter().chain(self.broadcasts.keys().copied()).collect()
    }

    /// Whether somebody sends in a VLAN.
    pub(crate) fn is_sent_in(&self, vlan: VlanId) -> bool {
        self.broadcasts.contains_key(&vlan)
            || match &self.table {
                DemandTable::Source(owners)
                | DemandTable::Receivers(owners)
                | DemandTable::Destination { owners, .. }
                | DemandTable::Priority { owners, .. }
                | DemandTable::Precedence { owners, .. } => owners.contains_key(&vlan),
                DemandTable::Pair(runs) => runs.contains_key(&vlan),
            }
    }

    /// The hosts whose broadcasts enter this VLAN, ascending.
    pub(crate) fn broadcasters(&self, vlan: VlanId) -> &[HostId] {
        self.broadcasts.get(&vlan).map_or(&[], Vec::as_slice)
    }

    /// The hosts whose frames for addresses that no switch knows spread in this VLAN, ascending; none if they are those
    /// whose broadcasts do.
    pub(crate) fn senders_of_unknown(&self, vlan: VlanId) -> Option<&[HostId]> {
        self.anybody.as_ref().map(|anybody| anybody.get(&vlan).map_or(&[][..], Vec::as_slice))
    }

    /// Turns to a VLAN; its receivers are then asked about in ascending order.
    pub(crate) fn turn_to(&mut self, vlan: VlanId) {
        self.current.clear();
        self.waiting = match &mut self.table {
            DemandTable::Pair(runs) => runs.remove(&vlan).unwrap_or_default(),
            DemandTable::Source(_)
            | DemandTable::Receivers(_)
            | DemandTable::Destination { .. }
            | DemandTable::Priority { .. }
            | DemandTable::Precedence { .. } => Vec::new(),
        };
    }

    /// Writes to `senders` who sends to `destination` in `vlan`, in no particular order but always the same.
    pub(crate) fn senders(&mut self, vlan: VlanId, destination: HostId, senders: &mut Vec<HostId>) {
        senders.clear();
        let all = HostId::all(self.hosts);
        match &self.table {
            DemandTable::Source(owners) => senders.extend(owners.get(&vlan).into_iter().flatten()),
            DemandTable::Destination { choice, .. } => {
                if choice[destination.index()] == vlan {
                    senders.extend(all);
                }
            }
            DemandTable::Priority { owners, choice, priority } => {
                let limit = priority[destination.index()];
                let owners = owners.get(&vlan).into_iter().flatten().copied();
                senders.extend(owners.filter(|host| priority[host.index()] >= limit));
                if choice[destination.index()] == vlan {
                    senders.extend(all.filter(|host| priority[host.index()] < limit));
                }
            }
            DemandTable::Receivers(owners) => {
                if owners.get(&vlan).is_some_and(|owners| owners.binary_search(&destination).is_ok()) {
                    senders.extend(all);
                }
            }
            DemandTable::Precedence { owners, priority } => {
                let limit = priority[destination.index()];
                let owners = owners.get(&vlan).map_or(&[][..], Vec::as_slice);
                senders.extend(owners.iter().filter(|host| priority[host.index()] >= limit));
                if owners.binary_search(&destination).is_ok() {
                    senders.extend(all.filter(|host| priority[host.index()] < limit));
                }
            }
            DemandTable::Pair(_) => {
                while self.waiting.last().is_some_and(|run| run.first <= destination) {
                    self.current.extend(self.waiting.pop());
                }
                self.current.retain(|run| run.last >= destination);
                senders.extend(self.current.iter().map(|run| run.source));
            }
        }
        senders.retain(|host| *host != destination);
    }
}

/// A sender whose unicast frames do not enter their VLAN.
pub(crate) fn report_refused(
    state: &FabricState<'_>,
    vlan: VlanId,
    host: HostId,
    receivers: usize,
    findings: &mut Findings,
) {
    findings.fatal(FindingKind::Drop, || {
        let port = state.topology.host(host).port;
        let label = state.topology.port_label(port);
        let loss = state.enter(port, Some(vlan)).err().map_or_else(String::new, |loss| loss.to_string());
        let lost = counted(receivers, "receiver");
        (state.host_name(host).to_owned(), format!("its frames in VLAN {vlan} to {lost} end at {label}: {loss}"))
    });
}
