//! Drained links and switches: that no frame crosses the ones, and none passes through the others.
//!
//! ```text
//!   s0:3 ╌╌ s1:2   drained, and s0:3 is a member of VLAN 4: frames of it leave there        fatal
//!   s2   drained: port 1 to s0 and port 2 to s1 are members of VLAN 5: frames from s0 reach s1    fatal
//! ```
//! A frame leaves by a port only in a VLAN that the port is a member of, so memberships alone are enough, whatever entries,
//! floods and switch-overs send where.

use std::collections::BTreeMap;

use fabric::{Attachment, FindingKind, Link, PortId, SwitchId, VlanId, VlanSet};

use crate::{findings::Findings, state::FabricState};

/// Judges every port of a drained link, and every drained switch. Cost: O(ports of drained links and switches · VLANs).
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    let drain = &state.plan.policy.drain;
    for &link in &drain.links {
        let Link { a, b, .. } = *state.topology.link(link);
        for port in [a, b] {
            let vlans = members(state, port);
            if !vlans.is_empty() {
                findings.fatal(FindingKind::DrainedInUse, || {
                    let message =
                        format!("is a member of VLAN {vlans}, but its link is drained: it may carry no frame");
                    (state.topology.port_label(port), message)
                });
            }
        }
    }
    drain.switches.iter().for_each(|switch| judge_switch(state, *switch, findings));
}

/// The VLANs in which frames may leave by a port.
fn members(state: &FabricState<'_>, port: PortId) -> VlanSet {
    state.port(port).map_or_else(VlanSet::new, |intent| intent.tagged.iter().chain(intent.untagged.iter()).collect())
}

/// Whether frames of some VLAN can enter a switch from one neighbour and leave it to another.
fn judge_switch(state: &FabricState<'_>, switch: SwitchId, findings: &mut Findings) {
    let topology = state.topology;
    let mut toward: BTreeMap<VlanId, Vec<PortId>> = BTreeMap::new();
    for port in topology.port_ids(switch) {
        if let Attachment::Link(_) = topology.port(port).attachment {
            members(state, port).iter().for_each(|vlan| toward.entry(vlan).or_default().push(port));
        }
    }
    for (vlan, ports) in toward.into_iter().filter(|(_, ports)| ports.len() > 1) {
        findings.fatal(FindingKind::DrainedInUse, || {
            let labels: Vec<&str> = ports.iter().map(|port| topology.port(*port).name.as_str()).collect();
            let ports = labels.join(" and ");
            (
                state.switch_name(switch).to_owned(),
                format!("is drained, but frames of VLAN {vlan} can pass through it, from and to ports {ports}"),
            )
        });
    }
}
