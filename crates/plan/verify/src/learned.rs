//! Switches that learn, in the state that they come to.
//!
//! ```text
//!   h0 ─ s0 ─── s1 ─── s2 ─ h2       h0's first frame in VLAN 2 goes to all of the tree:
//!        h0◀    h0◀    h0◀           now every switch there knows the port behind which h0 is
//!               └─ s3                what h2 answers in VLAN 2 takes that way, and no other
//! ```
//! A tree has one way between two hosts, so an answer in the same VLAN passes, and teaches, every switch that the question
//! will pass again. An answer in another VLAN teaches other tables: then what is sent to a host that never speaks in this
//! VLAN, or whose entry has aged, floods for ever. Hence both directions of a pair must share a VLAN, even where the spread
//! of first frames alone would have taught enough.
//!
//! Hosts of one switch that send in one VLAN are spread together. Cost: O(VLANs · (ports + switches²) + hosts²).
//!
//! Source: IEEE 802.1Q-2022, 8.7 (the learning process) and 8.8.3 (ageing); \[Miura\] 3.2.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use fabric::{
    Assignment, Attachment, FdbMode, FdbRun, FindingKind, HostId, Learning, PortId, SwitchId, VlanId, VlanSet,
};

use crate::{
    findings::{Findings, counted, grouped},
    receiver::Receiver,
    state::{FabricState, Hop},
};

/// Adds what each learning switch knows once every host has sent once in every VLAN that it uses. Static entries stand
/// before learned ones.
pub(crate) fn settle(state: &mut FabricState<'_>) {
    let mut learned: Vec<Vec<FdbRun>> = vec![Vec::new(); state.topology.switches().len()];
    for (vlan, senders) in senders(state) {
        spread(state, vlan, &senders, &mut learned);
    }
    for (switch, runs) in learned.into_iter().enumerate() {
        if !runs.is_empty() {
            state.fdb[switch] = Cow::Owned(merge(&state.fdb[switch], runs));
        }
    }
}

/// Judges what learning cannot do: answers in other VLANs, and tables that are too small.
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    if state.plan.policy.fdb != FdbMode::Learned {
        return;
    }
    judge_directions(state, findings);
    let mut reach = 0;
    for device in state.devices.iter().flatten().filter(|device| device.learning == Learning::On) {
        let switch = state.topology.switch(device.switch);
        let runs = &state.fdb[device.switch.index()];
        let known: usize = runs.iter().map(|run| state.run_len(run)).sum();
        reach = reach.max(known);
        let holds = switch.model.total_entries_max;
        if known.max(state.entry_count(device)) > holds {
            findings.fatal(FindingKind::LimitExceeded, || {
                let (known, holds, model) = (grouped(known), grouped(holds), &switch.model.name);
                let message = format!(
                    "comes to know {known} addresses, and a {model} holds {holds}: frames for the others flood; use \
                     fewer VLANs"
                );
                (switch.name.clone(), message)
            });
        }
    }
    if reach > 0 {
        findings.note(FindingKind::Flood, || {
            let message = "learn where hosts are: a frame for a host that has not been heard for as long as they \
                           remember goes to all of its VLAN's tree, and ends there";
            ("switches".to_owned(), message.to_owned())
        });
    }
}

/// Every pair must be answered in the VLAN in which it is asked.
fn judge_directions(state: &FabricState<'_>, findings: &mut Findings) {
    for source in state.topology.host_ids() {
        let mut apart =
            state.topology.host_ids().filter(|&destination| source < destination).filter_map(|destination| {
                let there = state.send(source, Receiver::Host(destination)).ok()?;
                let back = state.send(destination, Receiver::Host(source)).ok()?;
                (there != back).then_some((destination, there, back))
            });
        let Some((destination, there, back)) = apart.next() else { continue };
        let others = match apart.count() {
            0 => String::new(),
            more => format!("; so it is with {}", counted(more, "other host")),
        };
        findings.fatal(FindingKind::Flood, || {
            let (source, destination) = (state.host_name(source), state.host_name(destination));
            let message = format!(
                "frames go in VLAN {there} and come back in VLAN {back}, so that switches do not learn from answers, and \
                 flood{others}"
            );
            (format!("{source} <-> {destination}"), message)
        });
    }
}

/// Who sends in which VLAN, for anybody, ascending.
pub(crate) fn senders(state: &FabricState<'_>) -> BTreeMap<VlanId, Vec<HostId>> {
    let mut senders: BTreeMap<VlanId, Vec<HostId>> = BTreeMap::new();
    let hosts = state.topology.hosts().len();
    let every = |choice: &[VlanId]| choice.iter().copied().collect::<VlanSet>();
    let above = match state.assignment {
        Some(Assignment::Priority { choice, priority, .. }) => above(choice, priority),
        _ => BTreeMap::new(),
    };
    let everybody = match state.assignment {
        Some(Assignment::Destination { choice, .. }) => every(choice),
        _ => VlanSet::new(),
    };
    for host in (0..hosts).map(HostId::new) {
        let mut vlans: VlanSet = state.send(host, Receiver::Everybody).into_iter().collect();
        if state.tagging == fabric::HostTagging::ByHost {
            match state.assignment {
                None | Some(Assignment::Source(_)) => {}
                Some(Assignment::Destination { .. }) => vlans.extend(everybody.iter()),
                Some(Assignment::Priority { priority, .. }) => {
                    vlans.extend(above[&priority[host.index()]].iter());
                }
                Some(Assignment::Pair { unicast, .. }) => {
                    let others = unicast[host.index()].iter().filter(|run| (run.first, run.last) != (host, host));
                    vlans.extend(others.map(|run| run.choice));
                }
            }
        }
        let port = state.topology.host(host).port;
        for vlan in vlans.iter().filter(|vlan| state.enter(port, Some(*vlan)).is_ok()) {
            senders.entry(vlan).or_default().push(host);
        }
    }
    senders
}

/// By priority: the VLANs of all hosts that have a higher one.
fn above(choice: &[VlanId], priority: &[u32]) -> BTreeMap<u32, VlanSet> {
    let mut of: BTreeMap<u32, VlanSet> = BTreeMap::new();
    for (&vlan, &priority) in choice.iter().zip(priority) {
        of.entry(priority).or_default().insert(vlan);
    }
    let mut higher = VlanSet::new();
    let mut above = BTreeMap::new();
    for (priority, vlans) in of.into_iter().rev() {
        above.insert(priority, higher.clone());
        higher.extend(vlans.iter());
    }
    above
}

/// Sends a first frame from every sender of a VLAN, and notes where it comes in.
fn spread(state: &FabricState<'_>, vlan: VlanId, senders: &[HostId], learned: &mut [Vec<FdbRun>]) {
    let topology = state.topology;
    // Where a frame gets from each switch: the port that it enters the next one by.
    let onward = |switch: SwitchId, vlan: VlanId| -> Vec<(PortId, PortId, VlanId)> {
        let links =
            topology.port_ids(switch).filter(|port| matches!(topology.port(*port).attachment, Attachment::Link(_)));
        links
            .filter_map(|port| match state.leave(port, vlan) {
                Hop::Switch { ingress, vlan } => Some((port, ingress, vlan)),
                Hop::Lost(..) | Hop::Host(_) => None,
            })
            .collect()
    };
    let next: Vec<_> = topology.switch_ids().map(|switch| onward(switch, vlan)).collect();
    let mut by_switch: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
    senders.iter().for_each(|host| by_switch.entry(topology.switch_of(*host)).or_default().push(*host));
    let mut epoch = vec![0_usize; topology.switches().len()];
    for (round, (&home, hosts)) in by_switch.iter().enumerate() {
        let runs = runs(hosts);
        if learns(state, home) {
            let own =
                hosts.iter().map(|&host| FdbRun { vlan, first: host, last: host, port: topology.host(host).port });
            learned[home.index()].extend(own);
        }
        epoch[home.index()] = round + 1;
        // Frames that leak into another VLAN teach its tables.
        let mut strayed: BTreeSet<(SwitchId, VlanId)> = BTreeSet::new();
        let mut frontier: Vec<(SwitchId, VlanId, PortId)> = vec![(home, vlan, topology.host(hosts[0]).port)];
        while let Some((switch, at, came_by)) = frontier.pop() {
            let elsewhere;
            let exits = if at == vlan {
                &next[switch.index()]
            } else {
                elsewhere = onward(switch, at);
                &elsewhere
            };
            for &(_, ingress, there) in exits.iter().filter(|(port, ..)| *port != came_by) {
                let far = topology.port(ingress).switch;
                let is_new = if there == vlan {
                    std::mem::replace(&mut epoch[far.index()], round + 1) != round + 1
                } else {
                    strayed.insert((far, there))
                };
                if !is_new {
                    continue;
                }
                if learns(state, far) {
                    let run = |&(first, last): &(HostId, HostId)| FdbRun { vlan: there, first, last, port: ingress };
                    learned[far.index()].extend(runs.iter().map(run));
                }
                frontier.push((far, there, ingress));
            }
        }
    }
}

fn learns(state: &FabricState<'_>, switch: SwitchId) -> bool {
    state.devices[switch.index()].is_some_and(|device| device.learning == Learning::On)
}

/// Consecutive hosts, together.
fn runs(hosts: &[HostId]) -> Vec<(HostId, HostId)> {
    let mut runs: Vec<(HostId, HostId)> = Vec::new();
    for &host in hosts {
        match runs.last_mut() {
            Some((_, last)) if last.index() + 1 == host.index() => *last = host,
            _ => runs.push((host, host)),
        }
    }
    runs
}

/// Static entries, and learned ones where there is none; ascending and disjoint.
fn merge(fixed: &[FdbRun], mut learned: Vec<FdbRun>) -> Vec<FdbRun> {
    learned.sort_unstable();
    let mut gaps: Vec<FdbRun> = Vec::with_capacity(learned.len());
    let mut behind: Option<(VlanId, HostId)> = None;
    for run in learned {
        // What is left of the run once those before it and the static ones have taken theirs.
        let mut first = match behind {
            Some((vlan, last)) if vlan == run.vlan && last >= run.first => HostId::new(last.index() + 1),
            _ => run.first,
        };
        behind = Some(match behind {
            Some((vlan, last)) if vlan == run.vlan => (vlan, last.max(run.last)),
            _ => (run.vlan, run.last),
        });
        let from = fixed.partition_point(|entry| (entry.vlan, entry.last) < (run.vlan, first));
        for entry in fixed[from..].iter().take_while(|entry| entry.vlan == run.vlan && entry.first <= run.last) {
            if entry.first > first {
                gaps.push(FdbRun { first, last: HostId::new(entry.first.index() - 1), ..run });
            }
            first = first.max(HostId::new(entry.last.index() + 1));
        }
        if first <= run.last {
            gaps.push(FdbRun { first, ..run });
        }
    }
    let mut all: Vec<FdbRun> = fixed.iter().copied().chain(gaps).collect();
    all.sort_unstable();
    let mut merged: Vec<FdbRun> = Vec::with_capacity(all.len());
    for run in all {
        match merged.last_mut() {
            Some(last) if (last.vlan, last.port, last.last.index() + 1) == (run.vlan, run.port, run.first.index()) => {
                last.last = run.last;
            }
            _ => merged.push(run),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(vlan: u16, first: usize, last: usize, port: usize) -> FdbRun {
        let vlan = VlanId::new(vlan).expect("valid");
        FdbRun { vlan, first: HostId::new(first), last: HostId::new(last), port: PortId::new(port) }
    }

    #[test]
    fn static_entries_stand_before_learned_ones() {
        let fixed = [run(2, 3, 4, 9), run(2, 7, 7, 9)];
        let learned = vec![run(3, 0, 1, 1), run(2, 0, 5, 1), run(2, 6, 8, 2)];
        let merged = [run(2, 0, 2, 1), run(2, 3, 4, 9), run(2, 5, 5, 1), run(2, 6, 6, 2), run(2, 7, 7, 9)];
        assert_eq!(merge(&fixed, learned), [&merged[..], &[run(2, 8, 8, 2), run(3, 0, 1, 1)]].concat());
    }

    #[test]
    fn what_is_learned_twice_counts_once_and_neighbours_join() {
        let learned = vec![run(2, 0, 1, 1), run(2, 2, 3, 1), run(2, 1, 1, 5), run(2, 3, 4, 6)];
        assert_eq!(merge(&[], learned), [run(2, 0, 3, 1), run(2, 4, 4, 6)]);
    }
}
