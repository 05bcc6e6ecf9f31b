//! A state with other ports than it was written for, and flow control beside the state that was wanted.

use std::collections::BTreeMap;

use fabric::{Admin, Finding, FindingKind, Severity};

use crate::{LagMembership, PortConfig, Slot, SwitchConfig};

/// The same state with these ports, in this order: those that the state does not know are shut and in no VLAN, and
/// those that are not wanted are left out with their entries.
pub fn align(config: &SwitchConfig, names: &[String]) -> SwitchConfig {
    let position: BTreeMap<&str, Slot> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), Slot::new(index))).collect();
    let mut ports: Vec<PortConfig> = names.iter().cloned().map(PortConfig::blank).collect();
    let mut moved = vec![None; config.ports.len()];
    for (index, port) in config.ports.iter().enumerate() {
        if let Some(slot) = position.get(port.name.as_str()) {
            ports[slot.index()] = port.clone();
            moved[index] = Some(*slot);
        }
    }
    for port in &mut ports {
        if let LagMembership::Of(lag) = port.lag {
            port.lag = moved[lag.index()].map_or(LagMembership::Alone, LagMembership::Of);
        }
    }
    let entries = config.entries.iter().filter_map(|(key, slot)| Some((*key, moved[slot.index()]?))).collect();
    SwitchConfig {
        ports,
        vlans: config.vlans.clone(),
        entries,
        spanning_tree: config.spanning_tree,
        lldp: config.lldp,
        snooping: config.snooping.clone(),
    }
}

/// Flow control that is not the one that was wanted. What else a plan asks of settings, the judge finds in the state itself.
///
/// # Panics
/// If `wanted` has other ports.
pub fn judge_flow_control(switch: &str, config: &SwitchConfig, wanted: &SwitchConfig) -> Vec<Finding> {
    assert_eq!(config.ports.len(), wanted.ports.len(), "both are of one switch");
    let differ = |(port, wanted): &(&PortConfig, &PortConfig)| {
        port.admin == Admin::Up && port.flow_control != wanted.flow_control
    };
    let finding = |(port, _): (&PortConfig, &PortConfig)| Finding {
        severity: Severity::Warning,
        kind: FindingKind::PlanMismatch,
        subject: format!("{switch}:{}", port.name),
        message: "has other flow control than the plan gives it, so frames are lost or wait where they should not"
            .to_owned(),
    };
    config.ports.iter().zip(&wanted.ports).filter(differ).map(finding).collect()
}
