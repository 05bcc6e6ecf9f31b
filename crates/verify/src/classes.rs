//! The priority class of each VLAN, as the switches are told it, and whether that is the lane of its tree.
//!
//! ```text
//!   s0   classes {2,4} {3}      VLAN 3 waits in class 1 on s0 and in class 0 on s1: frames that the
//!   s1   classes {2,3,4} {}     proof keeps apart share a buffer                            fatal
//! ```
//! Whether channels can wait for each other for ever is judged by these classes, and never by the trees'.

use std::collections::BTreeMap;

use fabric::{DeviceIntent, FindingKind, FlowControl, VlanId, VlanSet};

use crate::{findings::Findings, state::State};

/// By VLAN: its class on the first switch that states one. Cost: O(switches · VLANs).
pub(crate) fn read<'a>(devices: impl Iterator<Item = &'a DeviceIntent>) -> BTreeMap<VlanId, u8> {
    let mut classes = BTreeMap::new();
    for device in devices {
        for (class, vlans) in device.classes.iter().enumerate() {
            for vlan in vlans.iter() {
                classes.entry(vlan).or_insert(u8::try_from(class).unwrap_or(u8::MAX));
            }
        }
    }
    classes
}

/// Judges whether every switch states one class for each of its VLANs, and all of them the lane of its tree.
pub(crate) fn judge(state: &State<'_>, findings: &mut Findings) {
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

fn judge_device(state: &State<'_>, device: &DeviceIntent, findings: &mut Findings) {
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
