//! LAGs: their members are set up as such, at both ends, and carry nothing of their own.
//!
//! ```text
//!   sw1:g21 in lag1, sw1:g22 not     half a LAG: the other switch waits for LACP on g22, and lag1 has one cable for two
//!   sw1:g21 in lag1 and in VLAN 5    a switch that hears no LACP may use g21 by itself: a second way, and a loop
//!   sw1:g23 in lag1, cabled to h1    frames for the other switch leave to a host
//! ```

use fabric::{Admin, Attachment, FindingKind, PortId, PortIntent, VlanSet};

use crate::{findings::Findings, hygiene, state::FabricState};

/// Judges every port by itself, and every LAG. Cost: O(ports + ports of switches with LAGs, for each LAG).
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    let topology = state.topology;
    for port in (0..topology.ports().len()).map(PortId::new) {
        let Some(intent) = state.port(port) else { continue };
        match topology.port(port).attachment {
            Attachment::Member(lag) => judge_member(state, lag, intent, findings),
            _ => judge_other(state, intent, findings),
        }
        if topology.port(port).lag().is_some() {
            judge_capacity(state, intent, findings);
        }
    }
}

fn judge_member(state: &FabricState<'_>, lag: PortId, intent: &PortIntent, findings: &mut Findings) {
    let topology = state.topology;
    let label = || topology.port_label(intent.port);
    let name = &topology.port(lag).name;
    match intent.lag {
        Some(is) if is == lag => {}
        Some(other) => findings.fatal(FindingKind::LagMismatch, || {
            (label(), format!("is a member of {}, but its cable belongs to {name}", topology.port(other).name))
        }),
        None => findings.fatal(FindingKind::LagMismatch, || {
            let message = format!(
                "is not a member of {name}, to which its cable belongs; without LACP the far end leaves the cable out"
            );
            (label(), message)
        }),
    }
    let members: VlanSet = intent.tagged.iter().chain(intent.untagged.iter()).collect();
    if !members.is_empty() {
        findings.fatal(FindingKind::LagMismatch, || {
            let message = format!(
                "is a member of {name}, and of VLAN {members} itself: without LACP the port forwards beside {name} and closes a loop"
            );
            (label(), message)
        });
    }
    if let Some(pvid) = intent.pvid {
        findings.warn(FindingKind::UnusedSetting, || {
            (label(), format!("has PVID {pvid}, but is a member of {name}, whose PVID counts"))
        });
    }
    hygiene::judge_flow_control(state, intent, findings);
}

/// A port that the cabling knows as no member is set up as none.
fn judge_other(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let Some(lag) = intent.lag else { return };
    let topology = state.topology;
    findings.fatal(FindingKind::LagMismatch, || {
        let name = &topology.port(lag).name;
        let message = format!("is a member of {name}, but its cable does not belong to {name}; frames for the far end of {name} leave by it");
        (topology.port_label(intent.port), message)
    });
}

/// A LAG that is up has members that are up: all of them, as the plan reckons.
fn judge_capacity(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let topology = state.topology;
    if intent.admin == Admin::Down {
        return;
    }
    let all = topology.members(intent.port).count();
    let up = topology.members(intent.port).filter(|member| state.port_up(*member).is_some()).count();
    let label = || topology.port_label(intent.port);
    if up == 0 {
        findings
            .fatal(FindingKind::LagMismatch, || (label(), "has no member that is up; it forwards nothing".to_owned()));
    } else if up < all {
        findings.warn(FindingKind::LagMismatch, || {
            (label(), format!("has {up} of {all} members up, and less capacity than the plan counts on"))
        });
    }
}
