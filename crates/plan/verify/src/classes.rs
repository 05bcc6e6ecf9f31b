//! The priority class of each VLAN, as the switches are told it, and whether that is the lane of its tree.
//!
//! ```text
//!   s0   classes {2,4} {3}      VLAN 3 waits in class 1 on s0 and in class 0 on s1: frames that the
//!   s1   classes {2,3,4} {}     proof keeps apart share a buffer                            fatal
//!   s0:1 PVID 3, class 0        frames of VLAN 3 without a tag wait in class 0              fatal
//! ```
//! Whether channels can wait for each other for ever is judged by these classes, and never by the trees'.

use fabric::{DeviceIntent, FindingKind, FlowControl, PortIntent, VlanSet};

use crate::{findings::Findings, state::FabricState};

/// Judges whether every switch states one class for each of its VLANs, and all of them the lane of its tree; and whether
/// untagged frames travel in the class of the VLAN that they enter.
pub(crate) fn judge(state: &FabricState<'_>, findings: &mut Findings) {
    state
        .devices
        .iter()
        .flatten()
        .flat_map(|device| &device.ports)
        .for_each(|port| judge_untagged(state, port, findings));
    for device in state.devices.iter().flatten() {
        let name = || state.switch_name(device.switch).to_owned();
        let FlowControl::Pfc(lanes) = state.plan.policy.flow_control else {
            if !device.classes.is_empty() {
                findings.warn(FindingKind::UnusedSetting, || {
                    (name(), "states priority classes of VLANs, but there is no priority flow control".to_owned())
                });
            }
            continue;
        };
        if device.classes.len() != usize::from(lanes) {
            findings.fatal(FindingKind::IncompleteState, || {
                let count = device.classes.len();
                (name(), format!("has {count} priority classes, and the policy's flow control {lanes}"))
            });
        }
        judge_device(state, device, findings);
    }
}

fn judge_untagged(state: &FabricState<'_>, port: &PortIntent, findings: &mut Findings) {
    let label = || state.topology.port_label(port.port);
    let class = usize::from(port.untagged_class);
    let Some(pvid) = port.pvid else {
        if class != 0 {
            findings.warn(FindingKind::UnusedSetting, || {
                (label(), format!("puts untagged frames into priority class {class}, but admits none"))
            });
        }
        return;
    };
    let wanted = match state.plan.policy.flow_control {
        FlowControl::Pfc(_) => usize::from(state.lanes.get(&pvid).copied().unwrap_or(0)),
        FlowControl::None | FlowControl::Pause => 0,
    };
    if class != wanted {
        findings.fatal(FindingKind::PlanMismatch, || {
            let message = format!(
                "puts untagged frames, which enter VLAN {pvid}, into priority class {class}, but the plan's lane is {wanted}"
            );
            (label(), message)
        });
    }
}

/// Judges in the middle of a change, where classes are those that the switches state and no plan's, whether untagged frames
/// travel in the class of the VLAN that they enter.
pub(crate) fn judge_live(state: &FabricState<'_>, findings: &mut Findings) {
    for device in state.devices.iter().flatten().filter(|device| !device.classes.is_empty()) {
        for port in &device.ports {
            let class = usize::from(port.untagged_class);
            let Some((pvid, stated)) = port.pvid.and_then(|pvid| Some((pvid, device.class_of(pvid)?))) else {
                continue;
            };
            if class != stated {
                findings.fatal(FindingKind::PlanMismatch, || {
                    let message = format!(
                        "puts untagged frames into priority class {class}, but VLAN {pvid}, which they enter, is in class \
                         {stated}"
                    );
                    (state.topology.port_label(port.port), message)
                });
            }
        }
    }
}

fn judge_device(state: &FabricState<'_>, device: &DeviceIntent, findings: &mut Findings) {
    let name = || state.switch_name(device.switch).to_owned();
    let members = device.vlans();
    let (mut stated, mut twice) = (VlanSet::new(), VlanSet::new());
    for (class, vlans) in device.classes.iter().enumerate() {
        for vlan in vlans.iter() {
            if !stated.insert(vlan) {
                twice.insert(vlan);
            }
            // Frames of management have no tree, and the class of the first lane.
            let lane = state.lanes.get(&vlan).copied().unwrap_or(0);
            if class != usize::from(lane) && members.contains(vlan) {
                findings.fatal(FindingKind::PlanMismatch, || {
                    let message =
                        format!("puts VLAN {vlan} into priority class {class}, but the plan's lane is {lane}");
                    (name(), message)
                });
            }
        }
    }
    if !twice.is_empty() {
        findings.fatal(FindingKind::IncompleteState, || {
            (name(), format!("puts VLAN {twice} into several priority classes"))
        });
    }
    let missing: VlanSet = members.iter().filter(|vlan| !stated.contains(*vlan)).collect();
    if !missing.is_empty() {
        findings
            .fatal(FindingKind::IncompleteState, || (name(), format!("states no priority class for VLAN {missing}")));
    }
    let unused: VlanSet = stated.iter().filter(|vlan| !members.contains(*vlan)).collect();
    if !unused.is_empty() {
        findings.warn(FindingKind::UnusedSetting, || {
            (name(), format!("states a priority class for VLAN {unused}, of which no port is a member"))
        });
    }
}
