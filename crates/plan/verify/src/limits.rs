//! What a make of switch can hold and do, against what it is told; and the VLANs that the policy allows.
//!
//! ```text
//!   powerconnect-5324: 256 VLANs, 8,192 static entries     state: 300 VLANs ▶ limit-exceeded
//!   no hybrid ports                                        state: a port untagged in 2-5 ▶ unsupported
//! ```

use std::collections::BTreeSet;

use fabric::{DeviceIntent, FindingKind, FlowControl, FlowControlMode, Model, PortId, PortIntent, VlanSet};

use crate::{
    findings::{Findings, counted, grouped},
    state::FabricState,
};

/// Judges every switch against its model, and the VLANs and lanes against the policy.
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    for device in state.devices.iter().flatten() {
        let switch = state.topology.switch(device.switch);
        let faults = judge_device(&switch.model, device, state.entry_room(device), |port| {
            state.topology.ports().get(port).map_or("?", |p| &p.name)
        });
        for (kind, message) in faults {
            findings.fatal(kind, || (switch.name.clone(), message));
        }
    }
    judge_vlans(state, findings);
    judge_lanes(state, findings);
}

/// What one switch is told that its model cannot do, a sentence for each limit.
fn judge_device<'a>(
    model: &Model,
    device: &DeviceIntent,
    entries: usize,
    port_name: impl Fn(usize) -> &'a str,
) -> Vec<(FindingKind, String)> {
    let mut faults = Vec::new();
    let vlans = device.vlans().len();
    if vlans > model.vlans_max {
        let (needs, holds) = (counted(vlans, "VLAN"), model.vlans_max);
        faults.push((FindingKind::LimitExceeded, format!("needs {needs}; a {} holds {holds}", model.name)));
    }
    if entries > model.static_entries_max {
        let (needs, holds) = (grouped(entries), grouped(model.static_entries_max));
        let message = format!("needs {needs} static entries; a {} holds {holds}", model.name);
        faults.push((FindingKind::LimitExceeded, message));
    }
    let lags: BTreeSet<PortId> = device.ports.iter().filter_map(|port| port.lag).collect();
    if let Some(holds) = model.lags_max.filter(|holds| lags.len() > *holds) {
        let message = format!("needs {}; a {} has {holds}", counted(lags.len(), "LAG"), model.name);
        faults.push((FindingKind::LimitExceeded, message));
    }
    if vlans > 1 && entries > 0 && !model.independent_vlan_learning {
        let message = format!("has entries in {vlans} VLANs; a {} keeps one table for all of them", model.name);
        faults.push((FindingKind::Unsupported, message));
    }
    let first = |wrong: &dyn Fn(&PortIntent) -> bool| device.ports.iter().find(|port| wrong(port));
    let name = |port: &PortIntent| port_name(port.port.index());
    if let Some(port) = first(&|port| port.untagged.len() > 1).filter(|_| !model.hybrid_ports) {
        let (name, vlans) = (name(port), &port.untagged);
        let message = format!("port {name} is to be untagged in VLANs {vlans}; a {} allows one a port", model.name);
        faults.push((FindingKind::Unsupported, message));
    }
    if let Some(port) = first(&|port| port.flow_control == FlowControlMode::Pause).filter(|_| !model.pause) {
        faults.push((
            FindingKind::Unsupported,
            format!("port {} is to use PAUSE; a {} has none", name(port), model.name),
        ));
    }
    let too_many = |port: &PortIntent| match port.flow_control {
        FlowControlMode::Pfc { lanes } => lanes > model.pfc_classes,
        FlowControlMode::Off | FlowControlMode::Pause => false,
    };
    if let Some(port) = first(&too_many) {
        let name = name(port);
        faults.push(if model.pfc_classes == 0 {
            let message = format!("port {name} is to use priority flow control; a {} has none", model.name);
            (FindingKind::Unsupported, message)
        } else {
            let message = format!(
                "port {name} needs more flow-control classes than the {} of a {}",
                model.pfc_classes, model.name
            );
            (FindingKind::LimitExceeded, message)
        });
    }
    let unable = |port: &PortIntent| port.blocked.without(model.blocks_floods);
    if let Some(port) = first(&|port| !unable(port).is_empty()) {
        let (name, kinds) = (name(port), unable(port));
        let message = format!("port {name} is to block {kinds}; a {} cannot", model.name);
        faults.push((FindingKind::Unsupported, message));
    }
    if let Some(port) = first(&|port| port.storm_limit.is_some()).filter(|_| !model.storm_control) {
        let message = format!("port {} is to have storm control; a {} has none", name(port), model.name);
        faults.push((FindingKind::Unsupported, message));
    }
    faults
}

fn judge_vlans(state: &FabricState<'_>, findings: &mut Findings) {
    let policy = &state.plan.policy;
    let mut vlans = state.vlans.clone();
    vlans.extend(state.devices.iter().flatten().flat_map(|device| device.ports.iter().filter_map(|port| port.pvid)));
    if let Some(in_band) = state.topology.in_band() {
        vlans.remove(in_band.vlan);
    }
    let forbidden: VlanSet = vlans.iter().filter(|vlan| !policy.vlans.contains(*vlan)).collect();
    if !forbidden.is_empty() {
        findings.fatal(FindingKind::ForbiddenVlan, || {
            let (first, last) = (policy.vlans.first, policy.vlans.last);
            (
                format!("VLAN {forbidden}"),
                format!("the policy allows {first}-{last} less {{{}}}", policy.vlans.reserved),
            )
        });
    }
    if let Some(limit) = policy.vlans_max.filter(|limit| vlans.len() > *limit) {
        findings.fatal(FindingKind::LimitExceeded, || {
            ("policy".to_owned(), format!("{} in use; the policy allows {limit}", counted(vlans.len(), "VLAN")))
        });
    }
}

fn judge_lanes(state: &FabricState<'_>, findings: &mut Findings) {
    let lanes = match state.plan.policy.flow_control {
        FlowControl::None | FlowControl::Pause => 1,
        FlowControl::Pfc(classes) => classes,
    };
    for (vlan, lane) in state.lanes.iter().filter(|(_, lane)| **lane >= lanes) {
        findings.fatal(FindingKind::LimitExceeded, || {
            let message =
                format!("travels in lane {lane}; the policy's flow control has {}", counted(lanes.into(), "lane"));
            (format!("VLAN {vlan}"), message)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::{Admin, FdbRun, FloodKind, FloodSet, HostId, StormLimit, SwitchId, VlanId};

    fn device(untagged: &str, flow_control: FlowControlMode) -> DeviceIntent {
        let untagged = untagged.parse().expect("a valid set");
        let port = PortIntent { admin: Admin::Up, untagged, flow_control, ..PortIntent::unused(PortId::new(0)) };
        let vlan = VlanId::new(2).expect("valid");
        let run = FdbRun { vlan, first: HostId::new(0), last: HostId::new(4), port: PortId::new(0) };
        DeviceIntent { ports: vec![port], fdb: vec![run], ..DeviceIntent::blank(SwitchId::new(0)) }
    }

    fn faults(change: impl FnOnce(&mut Model), device: &DeviceIntent) -> Vec<FindingKind> {
        let mut model = (*Model::generic()).clone();
        change(&mut model);
        judge_device(&model, device, 5, |_| "1").into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn each_limit_holds_at_its_value_and_breaks_one_below() {
        let (plain, three) = (device("2", FlowControlMode::Pause), device("2-4", FlowControlMode::Pfc { lanes: 2 }));
        assert_eq!(faults(|_| {}, &three), []);
        assert_eq!(faults(|model| model.vlans_max = 3, &three), []);
        assert_eq!(faults(|model| model.vlans_max = 2, &three), [FindingKind::LimitExceeded]);
        assert_eq!(faults(|model| model.static_entries_max = 5, &plain), []);
        assert_eq!(faults(|model| model.static_entries_max = 4, &plain), [FindingKind::LimitExceeded]);
        assert_eq!(faults(|model| model.pfc_classes = 2, &three), []);
        assert_eq!(faults(|model| model.pfc_classes = 1, &three), [FindingKind::LimitExceeded]);
        // Two members of one LAG, and one of another.
        let member = |port, lag| PortIntent { lag: Some(PortId::new(lag)), ..PortIntent::unused(PortId::new(port)) };
        let ports = vec![member(1, 8), member(2, 8), member(3, 9)];
        let bonded = DeviceIntent { ports, ..DeviceIntent::blank(SwitchId::new(0)) };
        assert_eq!(faults(|model| model.lags_max = None, &bonded), []);
        assert_eq!(faults(|model| model.lags_max = Some(2), &bonded), []);
        assert_eq!(faults(|model| model.lags_max = Some(1), &bonded), [FindingKind::LimitExceeded]);
        assert_eq!(faults(|model| model.lags_max = Some(0), &plain), []);
    }

    #[test]
    fn what_a_model_lacks_is_named() {
        let (plain, three) = (device("2", FlowControlMode::Pause), device("2-4", FlowControlMode::Pfc { lanes: 2 }));
        assert_eq!(faults(|model| model.hybrid_ports = false, &plain), []);
        assert_eq!(faults(|model| model.hybrid_ports = false, &three), [FindingKind::Unsupported]);
        assert_eq!(faults(|model| model.independent_vlan_learning = false, &plain), []);
        assert_eq!(faults(|model| model.independent_vlan_learning = false, &three), [FindingKind::Unsupported]);
        assert_eq!(faults(|model| model.pause = false, &three), []);
        assert_eq!(faults(|model| model.pause = false, &plain), [FindingKind::Unsupported]);
        assert_eq!(faults(|model| model.pfc_classes = 0, &three), [FindingKind::Unsupported]);
        let mut blocking = plain.clone();
        blocking.ports[0].blocked = FloodSet::NONE.with(FloodKind::UnknownUnicast);
        let able = |kind| move |model: &mut Model| model.blocks_floods = FloodSet::NONE.with(kind);
        assert_eq!(faults(able(FloodKind::UnknownUnicast), &blocking), []);
        assert_eq!(faults(able(FloodKind::Broadcast), &blocking), [FindingKind::Unsupported]);
        let mut limited = plain.clone();
        limited.ports[0].storm_limit = StormLimit::new(5);
        assert_eq!(faults(|model| model.storm_control = true, &limited), []);
        assert_eq!(faults(|model| model.storm_control = false, &limited), [FindingKind::Unsupported]);
    }
}
