//! Failures that the plan says it is ready for: every link is cut in turn, and every switch and every named group if the plan says
//! so, and the stored switch-over must do.
//!
//! A cut link changes two ports, a dead switch those of its links, a group those of all its members. Frames that do not meet them go as before, so three things suffice, and they are cheap:
//! frames get through in every VLAN that some switch-over sends them to, on intact switches (`unicast.rs`, once for all
//! failures); after each failure no frames between hosts that are left go over what is dead (`after.rs`); and the routes respect the numbering
//! that the switch-over names.
//!
//! ```text
//!   1536 links, 512 hosts: who moves where at all ─▶ walk each (host, VLAN) once ─▶ 1536 times: intervals and sums
//! ```
//! Cost: for each VLAN of some switch-over its static entries and the switches on the way; for each link O(hosts), and
//! O(switches) for each group of hosts that moves. Links are judged by as many threads as the caller allows; what is found
//! does not depend on how many there are.

mod after;
mod forest;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    iter, thread,
};

use fabric::{
    Assignment, ChannelId, Failover, FailoverSummary, Failure, FindingKind, LinkId, PartCoverage, Proof, Resilience,
    SwitchId, SwitchOver, Topology, VlanId,
};

use self::{
    after::Before,
    forest::{Forest, Tracer},
};
use crate::{
    bound::TOLERANCE,
    demand::{Coverage, Demand, Standby},
    findings::Findings,
    further,
    read::read_state,
    spread,
    state::FabricState,
    unicast::{Router, Traffic},
    view::View,
    walk::Budget,
    wire::Floods,
};

/// Judges what the plan stores for failures, and whether its numberings cover what is flooded then; none if the plan stores
/// nothing.
pub(crate) fn judge(
    state: &FabricState<'_>,
    traffic: &Traffic,
    further: &[(FabricState<'_>, Traffic)],
    threads: usize,
    findings: &mut Findings,
) -> Option<Floods> {
    let Some(failover) = &state.plan.failover else {
        if state.plan.policy.resilience != Resilience::None {
            findings.fatal(FindingKind::BadSwitchOver, || {
                ("failover".to_owned(), "the policy asks for switch-overs, but the plan has none".to_owned())
            });
        }
        return None;
    };
    let Some(assignment) = state.assignment else { return Some(Floods::Open) };
    if !is_well_formed(state, failover, assignment, findings) {
        return Some(Floods::Open);
    }
    // Frames that do not get through while all links are up have been found already, and there is nothing to compare.
    if traffic.coverage == Coverage::Partial {
        return Some(Floods::Open);
    }
    let Some(forests) = judge_standby(state, failover, assignment, findings) else { return Some(Floods::Open) };
    let topology = state.topology;
    let before = Before::new(state, assignment, traffic, &forests);
    let others: Vec<Before<'_>> =
        further.iter().map(|(state, traffic)| Before::new(state, assignment, traffic, &forests)).collect();
    let mut failures: Vec<Failure> = topology.link_ids().map(Failure::Link).collect();
    if state.plan.policy.resilience.protects_switches() {
        failures.extend(topology.switch_ids().map(Failure::Switch));
    }
    if state.plan.policy.resilience.protects_groups() {
        failures.extend(topology.group_ids().map(Failure::Group));
    }
    if state.plan.policy.resilience.protects_link_pairs() {
        judge_link_pairs(topology, findings);
    }
    let judge = |failure, tracer: &mut Tracer| {
        let over = failover.switch_over(failure);
        let mut after = before.judge(failure, over, tracer);
        for other in &others {
            after.time = after.time.max(other.judge(failure, over, tracer).time);
        }
        after
    };
    let after = by_threads(threads, &failures, judge);
    let (mut dividing, mut worst, mut floods) = (Vec::new(), 0.0_f64, Floods::Covered);
    let must_hold = state.plan.policy.flow_control.lanes().is_some();
    for (failure, after) in failures.into_iter().zip(after) {
        let label = failure.label(topology);
        if divides(state, failure) {
            dividing.push(failure);
            let (kind, who) = match failure {
                Failure::Link(_) => (FindingKind::DividingLink, "all hosts"),
                Failure::Switch(_) => (FindingKind::DividingSwitch, "all other hosts"),
                Failure::Group(_) => (FindingKind::DividingGroup, "all other hosts"),
            };
            findings.warn(kind, || {
                let lost = match failure {
                    Failure::Group(_) => format!("{} lose each other", pairs_apart(state, failure)),
                    Failure::Link(_) | Failure::Switch(_) => "nothing runs beside it".to_owned(),
                };
                (label.clone(), format!("if it fails, no plan can keep {who} connected: {lost}"))
            });
        } else {
            for (host, message) in after.lost {
                findings.fatal(FindingKind::BadSwitchOver, || (format!("{host} without {label}"), message));
            }
            worst = worst.max(after.time);
        }
        for message in after.unproven {
            floods = Floods::Open;
            findings.fatal(FindingKind::BadCertificate, || (format!("failure of {label}"), message));
        }
        if !after.unproven_floods.is_empty() {
            floods = Floods::Open;
        }
        for message in after.unproven_floods.into_iter().filter(|_| must_hold) {
            findings.note(FindingKind::DependencyCycle, || (format!("failure of {label}"), message));
        }
    }
    judge_summary(state, failover, assignment, &dividing, worst, findings);
    Some(floods)
}

/// How long the most loaded channel takes after one failure and the stored switch-over, in demand on the fastest link,
/// by whatever traffic of the plan takes longest; none if the plan stores nothing, or nothing that could be judged.
pub fn time_after(plan: &fabric::Plan, failure: Failure) -> Option<f64> {
    let further = further::plans(plan, &mut Findings::default());
    iter::once(plan).chain(&further).filter_map(|plan| time_after_of(plan, failure)).reduce(f64::max)
}

/// The same by the plan's traffic without any further.
fn time_after_of(plan: &fabric::Plan, failure: Failure) -> Option<f64> {
    let mut findings = Findings::default();
    let state = read_state(plan, &mut findings);
    let (failover, assignment) = (plan.failover.as_ref()?, state.assignment?);
    let traffic = crate::judge_frames(&state, None, &mut findings);
    let over = failover.switch_over(failure);
    let one = Failover { switch_overs: over.cloned().into_iter().collect(), ..failover.clone() };
    if !is_well_formed(&state, &one, assignment, &mut findings) || traffic.coverage == Coverage::Partial {
        return None;
    }
    let forests = judge_standby(&state, &one, assignment, &mut findings)?;
    let before = Before::new(&state, assignment, &traffic, &forests);
    Some(before.judge(failure, over, &mut Tracer::default()).time)
}

/// Whether everything that switch-overs name exists and stands in order.
fn is_well_formed(
    state: &FabricState<'_>,
    failover: &Failover,
    assignment: &Assignment<VlanId>,
    findings: &mut Findings,
) -> bool {
    let (topology, hosts) = (state.topology, state.topology.hosts().len());
    let mut well = true;
    let mut broken = |subject: String, message: &str| {
        well = false;
        findings.fatal(FindingKind::BadSwitchOver, || (subject, message.to_owned()));
    };
    if !failover.switch_overs.windows(2).all(|pair| pair[0].failure < pair[1].failure) {
        broken("failover".to_owned(), "switch-overs are not one a failure, in ascending order");
    }
    for SwitchOver { failure, hosts: moved, pairs, .. } in &failover.switch_overs {
        let exists = match failure {
            Failure::Link(link) => link.index() < topology.links().len(),
            Failure::Switch(switch) => switch.index() < topology.switches().len(),
            Failure::Group(group) => group.index() < topology.groups().len(),
        };
        if !exists {
            broken(format!("{failure:?}"), "is nothing that the topology has");
            continue;
        }
        let label = || format!("without {}", failure.label(topology));
        let asked = state.plan.policy.resilience;
        if matches!(failure, Failure::Switch(_)) && !asked.protects_switches() {
            broken(label(), "hosts switch over for a switch, but the policy does not ask for that");
        }
        if matches!(failure, Failure::Group(_)) && !asked.protects_groups() {
            broken(label(), "hosts switch over for a group, but the policy does not ask for that");
        }
        let runs = moved.iter().chain(pairs.iter().map(|pair| &pair.run));
        if runs.clone().any(|run| run.first > run.last || run.last.index() >= hosts) {
            broken(label(), "hosts switch over that do not exist");
        } else if !moved.windows(2).all(|runs| runs[0].last < runs[1].first) {
            broken(label(), "hosts that switch over are out of order, or there twice");
        }
        let ascends =
            |runs: &[fabric::PairRun]| (runs[0].source, runs[0].run.last) < (runs[1].source, runs[1].run.first);
        if pairs.iter().any(|pair| pair.source.index() >= hosts) || !pairs.windows(2).all(ascends) {
            broken(label(), "pairs that switch over are out of order, there twice, or of hosts that do not exist");
        }
        if !pairs.is_empty() && !matches!(assignment, Assignment::Pair { .. }) {
            broken(label(), "pairs switch over, but hosts do not choose by pair");
        }
        if let Some(run) = runs.into_iter().find(|run| !state.lanes.contains_key(&run.choice)) {
            broken(label(), &format!("hosts switch over to VLAN {}, which the plan does not have", run.choice));
        }
    }
    well
}

/// Walks everything that some switch-over sends in a VLAN, on intact switches, and compares what respects the plan's own
/// certificate with it. The forests of all VLANs; none if some is no forest, which is found elsewhere.
fn judge_standby(
    state: &FabricState<'_>,
    failover: &Failover,
    assignment: &Assignment<VlanId>,
    findings: &mut Findings,
) -> Option<BTreeMap<VlanId, Forest>> {
    let mut standby: BTreeMap<VlanId, Standby> = BTreeMap::new();
    let mut broadcasts: BTreeMap<VlanId, Vec<fabric::HostId>> = BTreeMap::new();
    let by_pair = matches!(assignment, Assignment::Pair { .. });
    for over in &failover.switch_overs {
        for run in &over.hosts {
            let hosts = (run.first.index()..=run.last.index()).map(fabric::HostId::new);
            broadcasts.entry(run.choice).or_default().extend(hosts.clone());
            if !by_pair {
                standby.entry(run.choice).or_default().owners.extend(hosts);
            }
        }
        for pair in &over.pairs {
            let run = (pair.source, pair.run.first, pair.run.last);
            standby.entry(pair.run.choice).or_default().pairs.push(run);
        }
    }
    for Standby { owners, pairs } in standby.values_mut() {
        owners.sort_unstable();
        owners.dedup();
        pairs.sort_unstable();
        *pairs = merged(pairs);
    }
    let mut demand = Demand::standby(state, &standby);
    let mut traffic = Traffic::new(state);
    let mut router = Router::new(state);
    let mut budget = Budget::default();
    let mut forests = BTreeMap::new();
    let mut whole = true;
    let mut vlans = state.vlans.clone();
    vlans.extend(state.lanes.keys().copied());
    for vlan in vlans.iter() {
        match Forest::of(state, vlan) {
            Some(forest) => {
                forests.insert(vlan, forest);
            }
            None => {
                whole = false;
                continue;
            }
        }
        if standby.contains_key(&vlan) || broadcasts.contains_key(&vlan) {
            let view = View::of(state, vlan);
            router.judge(state, &view, &mut demand, &mut budget, &mut traffic, findings);
            let senders = broadcasts.entry(vlan).or_default();
            senders.sort_unstable();
            senders.dedup();
            senders.retain(|host| {
                let enters = state.enter(state.topology.host(*host).port, Some(vlan)).is_ok();
                whole &= enters;
                if !enters {
                    findings.fatal(FindingKind::BadSwitchOver, || {
                        let name = state.host_name(*host).to_owned();
                        (name, format!("switches over to VLAN {vlan}, of which its port is no member"))
                    });
                }
                enters
            });
            spread::judge_more(state, &view, senders, findings);
        }
    }
    (whole && traffic.coverage == Coverage::Whole).then_some(forests)
}

/// Runs of receivers of each sender, those that overlap or touch made one.
fn merged(
    runs: &[(fabric::HostId, fabric::HostId, fabric::HostId)],
) -> Vec<(fabric::HostId, fabric::HostId, fabric::HostId)> {
    let mut merged: Vec<(fabric::HostId, fabric::HostId, fabric::HostId)> = Vec::new();
    for &(source, first, last) in runs {
        match merged.last_mut() {
            Some(run) if run.0 == source && first.index() <= run.2.index() + 1 => run.2 = run.2.max(last),
            _ => merged.push((source, first, last)),
        }
    }
    merged
}

/// Whether a link, a switch or a group alone ties hosts to others: a search that uses neither it nor drained links misses some
/// host.
fn divides(state: &FabricState<'_>, failure: Failure) -> bool {
    let topology = state.topology;
    let lived_in = |switch: &SwitchId| !failure.takes(topology, *switch) && !topology.hosts_of(*switch).is_empty();
    let start = match failure {
        Failure::Link(link) => Some(topology.tail(ChannelId::forward(link))),
        Failure::Switch(_) | Failure::Group(_) => topology.switch_ids().find(lived_in),
    };
    let Some(start) = start else { return false };
    let seen = reached_without(state, &failure.links(topology), start);
    let reached = |side: bool| topology.switch_ids().filter(lived_in).any(|switch| seen[switch.index()] == side);
    reached(true) && reached(false)
}

/// Ordered pairs of hosts that are left and do not reach each other, in words.
fn pairs_apart(state: &FabricState<'_>, failure: Failure) -> String {
    let topology = state.topology;
    let dead = failure.links(topology);
    let hosts = |switch: SwitchId| match failure.takes(topology, switch) {
        true => 0,
        false => topology.hosts_of(switch).len(),
    };
    let all: usize = topology.switch_ids().map(hosts).sum();
    let mut counted = vec![false; topology.switches().len()];
    let mut apart = 0;
    for start in topology.switch_ids().filter(|switch| hosts(*switch) > 0) {
        if counted[start.index()] {
            continue;
        }
        let seen = reached_without(state, &dead, start);
        let together: usize = topology.switch_ids().filter(|switch| seen[switch.index()]).map(hosts).sum();
        apart += together * (all - together);
        counted.iter_mut().zip(seen).for_each(|(counted, seen)| *counted |= seen);
    }
    format!("{apart} of {} pairs of other hosts", all * all.saturating_sub(1))
}

/// Where a search comes from a switch that uses neither dead nor drained links, `seen[switch]`.
fn reached_without(state: &FabricState<'_>, dead: &[LinkId], start: SwitchId) -> Vec<bool> {
    let (topology, drained) = (state.topology, &state.plan.policy.drain.links);
    let mut seen = vec![false; topology.switches().len()];
    seen[start.index()] = true;
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        let carries = |channel: &&ChannelId| !dead.contains(&channel.link()) && !drained.contains(&channel.link());
        for &channel in topology.channels_from(at).iter().filter(carries) {
            let head = topology.head(channel);
            if !std::mem::replace(&mut seen[head.index()], true) {
                queue.push_back(head);
            }
        }
    }
    seen
}

/// Judges whether every two links are a group, so that their failure is among those that are judged.
fn judge_link_pairs(topology: &Topology, findings: &mut Findings) {
    let groups = topology.groups().iter().filter(|group| group.switches.is_empty());
    let known: BTreeSet<&[LinkId]> = groups.map(|group| group.links.as_slice()).collect();
    for a in topology.link_ids() {
        for b in topology.link_ids().skip(a.index() + 1).filter(|b| !known.contains(&[a, *b][..])) {
            findings.fatal(FindingKind::BadSwitchOver, || {
                let both = format!("{} and {}", topology.link_label(a), topology.link_label(b));
                (both, "the policy asks for the failure of any two links, but these are no group".to_owned())
            });
        }
    }
}

fn judge_summary(
    state: &FabricState<'_>,
    failover: &Failover,
    assignment: &Assignment<VlanId>,
    dividing: &[Failure],
    max_channel_time: f64,
    findings: &mut Findings,
) {
    let mut used = fabric::VlanSet::new();
    match assignment {
        Assignment::Source(choice) => used.extend(choice.iter().copied()),
        Assignment::Destination { choice, broadcast } | Assignment::Priority { choice, broadcast, .. } => {
            used.extend(choice.iter().chain(broadcast).copied());
        }
        Assignment::Pair { unicast, broadcast } => {
            used.extend(
                unicast.iter().flat_map(|row| row.iter()).map(|run| run.choice).chain(broadcast.iter().copied()),
            );
        }
    }
    // The VLAN over which switches are managed carries no data, and is none of the plan's.
    used.extend(state.topology.in_band().map(|in_band| in_band.vlan));
    let extra = |vlan: VlanId| !used.contains(vlan);
    let links_dividing = dividing.iter().filter(|failure| matches!(failure, Failure::Link(_))).count();
    let groups_dividing = dividing.iter().filter(|failure| matches!(failure, Failure::Group(_))).count();
    let switches_dividing = dividing.len() - links_dividing - groups_dividing;
    let coverage = |of: usize, dividing| PartCoverage { covered: of - dividing, dividing };
    let asked = state.plan.policy.resilience;
    let switches = asked.protects_switches().then(|| coverage(state.topology.switches().len(), switches_dividing));
    let groups = asked.protects_groups().then(|| coverage(state.topology.groups().len(), groups_dividing));
    let seen = FailoverSummary {
        links_covered: state.topology.links().len() - links_dividing,
        links_dividing,
        switches,
        groups,
        drained: failover.switch_overs.iter().filter(|over| matches!(over.proof, Proof::Drained(_))).count(),
        max_channel_time,
        vlans_extra: state.vlans.iter().filter(|vlan| extra(*vlan)).count(),
        fdb_entries_extra: state.devices.iter().flatten().map(|device| state.entry_count_of(device, extra)).sum(),
    };
    let said = &failover.summary;
    let figures = [
        ("links_covered", said.links_covered, seen.links_covered),
        ("links_dividing", said.links_dividing, seen.links_dividing),
        ("drained", said.drained, seen.drained),
        ("vlans_extra", said.vlans_extra, seen.vlans_extra),
        ("fdb_entries_extra", said.fdb_entries_extra, seen.fdb_entries_extra),
    ];
    for (figure, said, seen) in figures.into_iter().filter(|(_, said, seen)| said != seen) {
        findings.fatal(FindingKind::SummaryMismatch, || {
            (format!("failover.{figure}"), format!("the plan says {said}, but it is {seen}"))
        });
    }
    for (figure, said, seen) in [("switches", said.switches, seen.switches), ("groups", said.groups, seen.groups)] {
        if said != seen {
            findings.fatal(FindingKind::SummaryMismatch, || {
                (format!("failover.{figure}"), format!("the plan says {said:?}, but it is {seen:?}"))
            });
        }
    }
    let (said, seen) = (said.max_channel_time, seen.max_channel_time);
    if (said - seen).abs() > TOLERANCE * seen.abs() {
        findings.fatal(FindingKind::SummaryMismatch, || {
            ("failover.max_channel_time".to_owned(), format!("the plan says {said}, but it is {seen}"))
        });
    }
}

/// Judges failures by at most so many threads, the caller's among them; the results are in the order of the failures.
fn by_threads<T: Send>(
    threads: usize,
    failures: &[Failure],
    judge: impl Fn(Failure, &mut Tracer) -> T + Sync,
) -> Vec<T> {
    let judge_all = |failures: &[Failure]| {
        let mut tracer = Tracer::default();
        failures.iter().map(|failure| judge(*failure, &mut tracer)).collect::<Vec<T>>()
    };
    if threads <= 1 {
        return judge_all(failures);
    }
    let share = failures.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let mut shares = failures.chunks(share);
        let own = shares.next().unwrap_or_default();
        let judge_all = &judge_all;
        let workers: Vec<_> = shares.map(|failures| scope.spawn(move || judge_all(failures))).collect();
        let mut after = judge_all(own);
        after.extend(workers.into_iter().flat_map(|worker| worker.join().expect("judging does not panic")));
        after
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_more_threads_than_allowed_judge_all_failures_in_their_order() {
        let links: Vec<Failure> = LinkId::all(17).map(Failure::Link).collect();
        for threads in 0..20 {
            let judged = by_threads(threads, &links, |link, _| (link, format!("{:?}", thread::current().id())));
            assert!(judged.iter().map(|(link, _)| link).eq(&links), "{threads} threads");
            let used: BTreeSet<&String> = judged.iter().map(|(_, thread)| thread).collect();
            assert!(used.len() <= threads.max(1) && (threads < 2 || used.len() > 1), "{threads} threads: {used:?}");
        }
    }
}
