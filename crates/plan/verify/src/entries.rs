//! Static entries that point nowhere, or are about addresses that the fabric does not have.
//!
//! ```text
//!   sw1   VLAN 2  h0-h3 -> sw1:4   sw1:4 is no member of VLAN 2: dead
//!   sw1   VLAN 2  01:00:5e:00:00:01 -> sw1:3   a group: broadcasts and multicasts are the VLAN's to spread
//! ```
//! A dead entry is fatal even if no frame meets it today: whatever meets it is lost, and no switch takes some of them.

use fabric::{Attachment, FindingKind, SwitchId};

use crate::{
    findings::Findings,
    state::{FabricState, Loss},
};

/// Judges the entries of every switch. Cost: O(runs of entries).
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    for switch in state.topology.switch_ids() {
        for run in state.fdb[switch.index()].iter() {
            let Some(loss) = dead(state, run.port, run.vlan) else { continue };
            findings.fatal(FindingKind::DeadEntry, || {
                let hosts = if run.first == run.last {
                    state.host_name(run.first).to_owned()
                } else {
                    format!("{} to {}", state.host_name(run.first), state.host_name(run.last))
                };
                let port = state.topology.port_label(run.port);
                let message = format!("sends frames of VLAN {} for {hosts} to {port}, where {loss}", run.vlan);
                (state.switch_name(switch).to_owned(), message)
            });
        }
        judge_foreign(state, switch, findings);
    }
}

/// Why nothing gets out of a port in a VLAN.
fn dead(state: &FabricState<'_>, port: fabric::PortId, vlan: fabric::VlanId) -> Option<Loss> {
    match state.port_up(port) {
        None => Some(Loss::Shut),
        Some(intent) if !intent.is_member(vlan) => Some(Loss::NotMember),
        Some(_) if state.topology.port(port).attachment == Attachment::Nothing => Some(Loss::NoCable),
        Some(_) => None,
    }
}

fn judge_foreign(state: &FabricState<'_>, switch: SwitchId, findings: &mut Findings) {
    for entry in state.foreign(switch) {
        let name = || state.switch_name(switch).to_owned();
        if !state.is_port_of(switch, entry.port) {
            findings.fatal(FindingKind::IncompleteState, || {
                (name(), format!("has a static entry for {} to a port that it does not have", entry.mac))
            });
        }
        if entry.mac.is_multicast() {
            findings.fatal(FindingKind::ForeignEntry, || {
                (name(), format!("has a static entry for the group address {} in VLAN {}", entry.mac, entry.vlan))
            });
        } else if let Some(&host) = state.host_by_mac.get(&entry.mac) {
            findings.fatal(FindingKind::ForeignEntry, || {
                let host = state.host_name(host);
                (name(), format!("lists {} in VLAN {} as foreign, but it belongs to {host}", entry.mac, entry.vlan))
            });
        } else {
            findings.warn(FindingKind::ForeignEntry, || {
                (name(), format!("has a static entry for {} in VLAN {}, which no host has", entry.mac, entry.vlan))
            });
        }
    }
}
