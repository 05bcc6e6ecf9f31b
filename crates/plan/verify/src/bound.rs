//! The lower bound on the most loaded channel, recomputed from its channel lengths alone.
//!
//! Give every channel a length. Traffic must cover `Σ demand(s, d) · distance(s, d)`, the sum over ordered pairs of hosts;
//! a routing whose most loaded channel takes time T, counted in demand on the fastest link, covers at most
//! `T · Σ length · rate / fastest`. So T is at least the quotient, whatever the routing (the dual of maximum concurrent
//! flow; Shahrokhi and Matula, 1990). And T is at least any one pair's demand, since that takes one path.
//! ```text
//!   h0 ─ s0 ══ s1 ─ h1    lengths 1, 1: distances 1 + 1 = 2, lengths 2: no routing does better than load 1
//! ```
//! Drained links carry no frames, so no distance is measured over them.
//! Distances by Dijkstra's algorithm (1959) from every switch that has hosts: O(switches · channels · log channels).

use std::{cmp::Reverse, collections::BinaryHeap, iter};

use fabric::{FindingKind, SwitchId, Traffic, TrafficMatrix};

use crate::{findings::Findings, state::FabricState, unicast};

/// How far two figures may differ that were computed in another order, relative to their size.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// What share of the provable bound a claim must at least reach to be worth anything.
const CLAIM_SHARE_MIN: f64 = 0.5;

/// Judges the claimed bound; returns what the lengths prove for any traffic, if there is one length a channel.
pub(crate) fn judge(
    state: &FabricState<'_>,
    further: &[(FabricState<'_>, unicast::Traffic)],
    findings: &mut Findings,
) -> Option<f64> {
    let (lengths, channels) = (&state.plan.bound.lengths, state.topology.channel_count());
    let subject = || "load bound".to_owned();
    if lengths.len() != channels {
        findings.fatal(FindingKind::BadBound, || {
            (subject(), format!("rests on {} lengths for {channels} channels", lengths.len()))
        });
        return None;
    }
    let states = iter::once(state).chain(further.iter().map(|(state, _)| state));
    let proven = states.map(|state| proven(state, lengths).max(single_max(state))).fold(0.0, f64::max);
    let claimed = state.plan.summary.load_bound;
    if !(claimed >= 0.0 && claimed <= proven * (1.0 + TOLERANCE)) {
        findings.fatal(FindingKind::BadBound, || {
            (subject(), format!("is claimed to be {claimed}, but no more than {proven} is proven by its lengths"))
        });
    } else if claimed < proven * CLAIM_SHARE_MIN {
        findings.warn(FindingKind::BadBound, || {
            (subject(), format!("is claimed to be only {claimed}, though {proven} is proven"))
        });
    }
    Some(proven)
}

/// The bound that the lengths prove; 0 if they are all zero.
fn proven(state: &FabricState<'_>, lengths: &[u32]) -> f64 {
    let covered = match &*state.traffic {
        Traffic::AllToAll => covered_by_all(state, lengths) as f64,
        Traffic::Matrix(matrix) => covered_by(state, matrix, lengths),
    };
    over_capacity(state, covered, lengths)
}

/// The time that it takes to cover so much; 0 if no channel has a length.
fn over_capacity(state: &FabricState<'_>, covered: f64, lengths: &[u32]) -> f64 {
    let topology = state.topology;
    let held = |(length, link): (&u32, &fabric::Link)| u128::from(*length) * u128::from(link.rate_bps);
    // Two channels a link.
    let links = topology.links().iter().flat_map(|link| [link, link]);
    let capacity: u128 = lengths.iter().zip(links).map(held).sum();
    if capacity == 0 { 0.0 } else { covered * topology.rate_max_bps() as f64 / capacity as f64 }
}

/// The least time of the most loaded channel in some traffic that lengths prove, whatever paths split it.
pub(crate) fn proven_for(state: &FabricState<'_>, matrix: &TrafficMatrix, lengths: &[u32]) -> f64 {
    over_capacity(state, covered_by(state, matrix, lengths), lengths)
}

/// The largest demand of one host for another at another switch.
fn single_max(state: &FabricState<'_>) -> f64 {
    let topology = state.topology;
    let apart = |a, b| topology.switch_of(a) != topology.switch_of(b);
    match &*state.traffic {
        Traffic::AllToAll => {
            let mut hosts = topology.host_ids();
            let first = hosts.next();
            if first.is_some_and(|first| hosts.any(|host| apart(first, host))) { 1.0 } else { 0.0 }
        }
        Traffic::Matrix(matrix) => {
            let demands = matrix.demands().filter(|demand| apart(demand.source, demand.destination));
            demands.map(|demand| demand.amount).fold(0.0, f64::max)
        }
    }
}

/// What all-to-all traffic covers, exactly.
fn covered_by_all(state: &FabricState<'_>, lengths: &[u32]) -> u128 {
    let topology = state.topology;
    let mut covered: u128 = 0;
    for source in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
        let senders = topology.hosts_of(source).len() as u128;
        for (switch, distance) in topology.switch_ids().zip(distances(state, lengths, source)) {
            covered += senders * topology.hosts_of(switch).len() as u128 * u128::from(distance);
        }
    }
    covered
}

/// What a traffic matrix covers.
fn covered_by(state: &FabricState<'_>, matrix: &TrafficMatrix, lengths: &[u32]) -> f64 {
    let topology = state.topology;
    let mut covered = 0.0;
    for source in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
        let distance = distances(state, lengths, source);
        for &(destination, demand) in topology.hosts_of(source).iter().flat_map(|host| matrix.sent_by(*host)) {
            covered += demand * distance[topology.switch_of(destination).index()] as f64;
        }
    }
    covered
}

fn distances(state: &FabricState<'_>, lengths: &[u32], source: SwitchId) -> Vec<u64> {
    let (topology, drained) = (state.topology, &state.plan.policy.drain.links);
    let mut distance = vec![u64::MAX; topology.switches().len()];
    distance[source.index()] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, source))]);
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if so_far > distance[at.index()] {
            continue;
        }
        for &channel in topology.channels_from(at).iter().filter(|channel| !drained.contains(&channel.link())) {
            let next = topology.head(channel);
            let through = so_far + u64::from(lengths[channel.index()]);
            if through < distance[next.index()] {
                distance[next.index()] = through;
                queue.push(Reverse((through, next)));
            }
        }
    }
    distance
}
