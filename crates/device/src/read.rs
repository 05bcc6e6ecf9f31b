//! Configuration texts, read as the switch would read them.

use std::collections::BTreeMap;

use fabric::{Admin, Finding, FindingKind, Severity};

use crate::{IngressFilter, ParseError, PortConfig, Slot, SpanningTree, SwitchConfig, Target, TextFile};

/// Does what the files say to a switch in the state `start`, which for a full configuration is [`Target::factory`].
///
/// Cost: linear in the text, times the ports where a line names one.
///
/// # Errors
/// What is wrong, by file and line, at most twenty a file.
pub fn read_back(target: Target, files: &[TextFile<'_>], start: SwitchConfig) -> Result<SwitchConfig, Vec<ParseError>> {
    let mut config = start;
    match target.dialect().read(files, &mut config) {
        Ok(()) => Ok(config),
        Err(errors) => {
            let name = |index: usize| files.get(index).map_or("", |file| file.name).to_owned();
            let error = |(file, error): (usize, crate::text::LineError)| ParseError {
                file: name(file),
                line: error.line,
                message: error.message,
            };
            Err(errors.into_iter().map(error).collect())
        }
    }
}

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
    let entries = config.entries.iter().filter_map(|(key, slot)| Some((*key, moved[slot.index()]?))).collect();
    SwitchConfig { ports, vlans: config.vlans.clone(), entries, spanning_tree: config.spanning_tree }
}

/// What no frame's walk shows: spanning tree left on, ports that do not filter at ingress, and flow control that is not
/// the one that was wanted.
///
/// # Panics
/// If `wanted` has other ports.
pub fn judge_settings(switch: &str, config: &SwitchConfig, wanted: &SwitchConfig) -> Vec<Finding> {
    assert_eq!(config.ports.len(), wanted.ports.len(), "both are of one switch");
    let mut findings = Vec::new();
    let mut find = |severity, subject: String, message: &str| {
        findings.push(Finding { severity, kind: FindingKind::PlanMismatch, subject, message: message.to_owned() });
    };
    let fatal = Severity::Fatal;
    if config.spanning_tree == SpanningTree::On {
        find(fatal, switch.to_owned(), "spanning tree stays on and would block the cables that the plan uses");
    }
    for (port, wanted) in config.ports.iter().zip(&wanted.ports) {
        if port.admin == Admin::Up && port.flow_control != wanted.flow_control {
            let message =
                "has other flow control than the plan gives it, so frames are lost or wait where they should not";
            find(Severity::Warning, format!("{switch}:{}", port.name), message);
        }
        if port.ingress_filter == IngressFilter::Off && !port.members().is_empty() {
            find(
                fatal,
                format!("{switch}:{}", port.name),
                "does not filter at ingress, so frames of VLANs that it is not in get onto other trees",
            );
        }
    }
    findings
}
