//! What ports are told, each by itself and the two ends of a cable against each other.
//!
//! ```text
//!   sw1:1  PVID 5, member of 2-4       frames without a tag die at the ingress filter
//!   sw1:2  tagged 2-4 ══ tagged 2,3  sw2:2     VLAN 4 is one-sided: what is flooded there is thrown away
//!   sw1:3  untagged 2 ── PVID 3      sw3:1     VLAN 2 comes out as VLAN 3
//!   sw1:4  PAUSE      ── no PAUSE    sw3:2     one end believes that the other waits
//! ```

use fabric::{FindingKind, FlowControlMode, HostTagging, LinkId, PortId, PortIntent, VlanSet};

use crate::{findings::Findings, state::FabricState};

/// Judges every port and every cable between switches.
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    for port in (0..state.topology.ports().len()).map(PortId::new) {
        if let Some(intent) = state.port(port) {
            judge_port(state, intent, findings);
        }
    }
    for link in state.topology.link_ids() {
        judge_link(state, link, findings);
    }
}

fn judge_port(state: &FabricState<'_>, intent: &PortIntent, findings: &mut Findings) {
    let label = || state.topology.port_label(intent.port);
    if let Some(pvid) = intent.pvid.filter(|pvid| !intent.is_member(*pvid)) {
        findings.fatal(FindingKind::PvidWithoutMembership, || {
            (label(), format!("has PVID {pvid} but is no member of that VLAN, so frames without a tag are dropped"))
        });
    }
    let both: VlanSet = intent.tagged.iter().filter(|vlan| intent.untagged.contains(*vlan)).collect();
    if !both.is_empty() {
        findings.fatal(FindingKind::TaggedAndUntagged, || {
            (label(), format!("is a tagged and an untagged member of VLAN {both}"))
        });
    }
    let on_host = matches!(state.topology.port(intent.port).attachment, fabric::Attachment::Host(_));
    if on_host && state.tagging == HostTagging::BySwitch && intent.pvid.is_none() {
        findings.fatal(FindingKind::IncompleteState, || {
            (label(), "serves a host that sends no tags, but has no PVID".to_owned())
        });
    }
}

fn judge_link(state: &FabricState<'_>, link: LinkId, findings: &mut Findings) {
    let cable = *state.topology.link(link);
    let (Some(a), Some(b)) = (state.port(cable.a), state.port(cable.b)) else { return };
    let label = || state.topology.link_label(link);
    if (a.admin == fabric::Admin::Up) != (b.admin == fabric::Admin::Up) {
        findings.warn(FindingKind::RoleMismatch, || (label(), "is shut at one end only".to_owned()));
        return;
    }
    if a.admin == fabric::Admin::Down {
        return;
    }
    judge_flow_control(state, a, b, link, findings);
    let one_sided: VlanSet =
        members(a).filter(|vlan| !b.is_member(*vlan)).chain(members(b).filter(|vlan| !a.is_member(*vlan))).collect();
    if !one_sided.is_empty() {
        findings.warn(FindingKind::OneSidedMembership, || {
            (label(), format!("only one end is a member of VLAN {one_sided}, so the other drops its frames"))
        });
    }
    for (from, to) in [(a, b), (b, a)] {
        let astray: VlanSet = from.untagged.iter().filter(|vlan| to.pvid != Some(*vlan)).collect();
        if !astray.is_empty() {
            findings.fatal(FindingKind::OneSidedMembership, || {
                let (from, to_label) = (state.topology.port_label(from.port), state.topology.port_label(to.port));
                let taken = match to.pvid {
                    Some(pvid) => format!("takes them for VLAN {pvid}"),
                    None => "has no PVID and drops them".to_owned(),
                };
                (label(), format!("{from} sends frames of VLAN {astray} without a tag, and {to_label} {taken}"))
            });
        }
    }
}

fn members(port: &PortIntent) -> impl Iterator<Item = fabric::VlanId> + '_ {
    port.tagged.iter().chain(port.untagged.iter())
}

fn judge_flow_control(state: &FabricState<'_>, a: &PortIntent, b: &PortIntent, link: LinkId, findings: &mut Findings) {
    let label = || state.topology.link_label(link);
    if a.flow_control != b.flow_control {
        findings.fatal(FindingKind::FlowControlMismatch, || {
            let (one, other) = (mode_words(&a.flow_control), mode_words(&b.flow_control));
            (label(), format!("one end has {one}, the other {other}"))
        });
        return;
    }
    let wanted = state.flow_control_mode();
    if a.flow_control != wanted {
        findings.fatal(FindingKind::PlanMismatch, || {
            let (is, wanted) = (mode_words(&a.flow_control), mode_words(&wanted));
            (
                label(),
                format!("has {is} where the policy says {wanted}, so the proof against deadlock is for another fabric"),
            )
        });
    }
}

/// What people call it.
pub(crate) fn mode_words(mode: &FlowControlMode) -> String {
    match mode {
        FlowControlMode::Off => "no flow control".to_owned(),
        FlowControlMode::Pause => "PAUSE".to_owned(),
        FlowControlMode::Pfc { lanes } => format!("priority flow control with {lanes} classes"),
    }
}
