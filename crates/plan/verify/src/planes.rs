//! Planes: that no frame between two hosts of one plane leaves it, and which machines have no two paths apart.
//!
//! ```text
//!   plane 0   s0 ─── s1      h0 at s0 to h1 at s1 by s0, s2, s3, s1: fatal, though it arrives
//!             │      │
//!   plane 1   s2 ─── s3      node1 with both ports at s0: no failure of s0 is survived             note
//! ```
//! A plane that its links in service do not connect falls into parts, within which frames stay. Parts are found here by a walk
//! over switches, and routes followed entry by entry.

use fabric::{FindingKind, HostId, PathSets, PlanePairs, PortId, SwitchId, VlanId};

use crate::{
    findings::{Findings, counted},
    receiver::Receiver,
    state::{FabricState, Hop},
};

/// Follows every pair of hosts of one part. Cost: O(pairs · links on their path · log entries).
pub(crate) fn judge(state: &FabricState<'_>, sets: Option<&PathSets>, findings: &mut Findings) {
    let planes = &state.plan.policy.planes;
    if planes.is_empty() {
        return;
    }
    if planes.by_switch().len() != state.topology.switches().len() {
        findings.fatal(FindingKind::PlanMismatch, || {
            let message = format!(
                "are of {} switches, where there are {}",
                planes.by_switch().len(),
                state.topology.switches().len()
            );
            ("planes".to_owned(), message)
        });
        return;
    }
    let part = parts(state);
    let mut members: Vec<Vec<HostId>> = vec![Vec::new(); part.len()];
    for host in state.topology.host_ids().filter(|host| !state.topology.host(*host).standby) {
        members[part[state.topology.switch_of(host).index()]].push(host);
    }
    for hosts in &members {
        for &source in hosts {
            let mut leaving = hosts
                .iter()
                .filter(|destination| **destination != source)
                .filter_map(|destination| Some((*destination, leaves(state, sets, &part, source, *destination)?)));
            let Some((destination, at)) = leaving.next() else { continue };
            let others = match leaving.count() {
                0 => String::new(),
                more => format!("; so do frames to {}", counted(more, "other host")),
            };
            findings.fatal(FindingKind::LeavesPlane, || {
                let subject = format!("{} -> {}", state.host_name(source), state.host_name(destination));
                (subject, format!("both are on one plane, and frames leave it by {}{others}", state.switch_name(at)))
            });
        }
    }
    note_pairs(state, findings);
}

/// Says how many pairs of machines have paths without a common switch, and names some that have none.
fn note_pairs(state: &FabricState<'_>, findings: &mut Findings) {
    let topology = state.topology;
    let parts = state.plan.policy.planes.parts(topology, &state.plan.policy.drain.links);
    let PlanePairs { all, disjoint, example } = parts.pairs(topology);
    let Some((a, b)) = example else { return };
    findings.note(FindingKind::LeavesPlane, || {
        let (a, b) = (&topology.machine(a).name, &topology.machine(b).name);
        let message = format!(
            "{} of {all} pairs of machines with several ports have no two paths without a common switch, such as {a} and {b}",
            all - disjoint
        );
        ("planes".to_owned(), message)
    });
}

/// `part[switch]`: switches of one plane that links in service connect within it have one number.
fn parts(state: &FabricState<'_>) -> Vec<usize> {
    let (topology, policy) = (state.topology, &state.plan.policy);
    let mut part = vec![usize::MAX; topology.switches().len()];
    for (number, start) in topology.switch_ids().enumerate() {
        let mut pending = vec![start];
        while let Some(switch) = pending.pop() {
            if part[switch.index()] != usize::MAX {
                continue;
            }
            part[switch.index()] = number;
            for &channel in topology.channels_from(switch) {
                let head = topology.head(channel);
                if policy.planes.of(head) == policy.planes.of(start) && !policy.drain.links.contains(&channel.link()) {
                    pending.push(head);
                }
            }
        }
    }
    part
}

/// The first switch outside their part that a frame passes on any path of the pair; none if there is none, or if the frame does
/// not arrive, which is found elsewhere.
fn leaves(
    state: &FabricState<'_>,
    sets: Option<&PathSets>,
    part: &[usize],
    source: HostId,
    destination: HostId,
) -> Option<SwitchId> {
    match sets {
        Some(sets) => {
            let mut vlans = sets.of(source, destination).iter();
            vlans.find_map(|vlan| leaves_in(state, part, source, destination, *vlan))
        }
        None => {
            let vlan = state.send(source, Receiver::Host(destination)).ok()?;
            leaves_in(state, part, source, destination, vlan)
        }
    }
}

/// The same of a frame that enters in a VLAN.
fn leaves_in(
    state: &FabricState<'_>,
    part: &[usize],
    source: HostId,
    destination: HostId,
    mut vlan: VlanId,
) -> Option<SwitchId> {
    let receiver = Receiver::Host(destination);
    let mut switch = state.topology.switch_of(source);
    let home = part[switch.index()];
    for _ in 0..state.topology.switches().len() {
        if part[switch.index()] != home {
            return Some(switch);
        }
        let port: PortId = state.lookup(switch, vlan, receiver)?;
        match state.leave(port, vlan) {
            Hop::Switch { ingress, vlan: then } => (switch, vlan) = (state.topology.port(ingress).switch, then),
            Hop::Host(_) | Hop::Lost(..) => return None,
        }
    }
    None
}
