//! The lower bound on the busiest channel, recomputed from its channel lengths alone.
//!
//! Give every channel a length. All-to-all traffic must cover `Σ distance(s, d)`, the sum over ordered pairs of hosts;
//! a routing whose busiest channel carries L pairs covers at most `L · Σ length`. So L is at least the quotient,
//! whatever the routing (the dual of maximum concurrent flow; Shahrokhi and Matula, 1990).
//! ```text
//!   h0 ─ s0 ══ s1 ─ h1    lengths 1, 1: distances 1 + 1 = 2, lengths 2: no routing does better than load 1
//! ```
//! Distances by Dijkstra's algorithm (1959) from every switch that has hosts: O(switches · channels · log channels).

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{FindingKind, Plan, SwitchId};

use crate::findings::Findings;

/// How far two figures may differ that were computed in another order, relative to their size.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// What share of the provable bound a claim must at least reach to be worth anything.
const CLAIM_SHARE_MIN: f64 = 0.5;

/// Judges the claimed bound; returns what the lengths prove, if there is one length a channel.
pub(crate) fn judge(plan: &Plan, findings: &mut Findings) -> Option<f64> {
    let (lengths, channels) = (&plan.bound.lengths, plan.topology.channel_count());
    let subject = || "load bound".to_owned();
    if lengths.len() != channels {
        findings.fatal(FindingKind::BadBound, || {
            (subject(), format!("rests on {} lengths for {channels} channels", lengths.len()))
        });
        return None;
    }
    let (proven, claimed) = (proven(plan), plan.summary.load_bound);
    if !(claimed >= 0.0 && claimed <= proven * (1.0 + TOLERANCE)) {
        findings.fatal(FindingKind::BadBound, || {
            (subject(), format!("is claimed to be {claimed}, but its lengths prove no more than {proven}"))
        });
    } else if claimed < proven * CLAIM_SHARE_MIN {
        findings.warn(FindingKind::BadBound, || {
            (subject(), format!("is claimed to be only {claimed}, though its lengths prove {proven}"))
        });
    }
    Some(proven)
}

/// The bound that the lengths prove; 0 if they are all zero.
fn proven(plan: &Plan) -> f64 {
    let topology = &plan.topology;
    let total: u128 = plan.bound.lengths.iter().map(|length| u128::from(*length)).sum();
    if total == 0 {
        return 0.0;
    }
    let mut covered: u128 = 0;
    for source in topology.switch_ids() {
        let senders = topology.hosts_of(source).len() as u128;
        if senders == 0 {
            continue;
        }
        let distance = distances(plan, source);
        for (switch, distance) in topology.switch_ids().zip(distance) {
            covered += senders * topology.hosts_of(switch).len() as u128 * u128::from(distance);
        }
    }
    covered as f64 / total as f64
}

fn distances(plan: &Plan, source: SwitchId) -> Vec<u64> {
    let topology = &plan.topology;
    let mut distance = vec![u64::MAX; topology.switches().len()];
    distance[source.index()] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, source))]);
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if so_far > distance[at.index()] {
            continue;
        }
        for &channel in topology.channels_from(at) {
            let next = topology.head(channel);
            let through = so_far + u64::from(plan.bound.lengths[channel.index()]);
            if through < distance[next.index()] {
                distance[next.index()] = through;
                queue.push(Reverse((through, next)));
            }
        }
    }
    distance
}
