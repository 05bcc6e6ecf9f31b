//! Configuration texts, read as the switch would read them.

use std::collections::BTreeMap;

use fabric::{Admin, Finding, FindingKind, Severity};

use crate::{
    ParseError, PortConfig, Slot, SwitchConfig, Target, TextFile, dialect::sieve::Sieve, names::PortIndex,
    text::LineError,
};

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

/// Lines of a file that a plan is not about: they are for whoever wrote them, and stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignLines {
    /// The file.
    pub file: String,
    /// The first line, counted from 1.
    pub line: usize,
    /// How many lines there are.
    pub count: usize,
    /// What the first says.
    pub text: String,
    /// The port outside the plan that they are about, if it is one.
    pub port: Option<String>,
}

/// Does what the files say to a switch in the state `start`, as [`read_back`] does, and skips what a plan is not about: ports
/// that `start` does not have, and commands for other things. What is skipped comes back beside the state, in the files' order.
///
/// Cost: that of [`read_back`] for every twenty lines that are skipped.
///
/// # Errors
/// What is wrong of what a plan is about, by file and line, at most twenty a file.
pub fn read_among_others(
    target: Target,
    files: &[TextFile<'_>],
    start: &SwitchConfig,
) -> Result<(SwitchConfig, Vec<ForeignLines>), Vec<ParseError>> {
    let ports = PortIndex::new(Some(target), start.ports.iter().map(|port| port.name.as_str()));
    let mut sieve = Sieve::new(target, files, &ports);
    let originals = files;
    loop {
        let texts = sieve.texts();
        let files: Vec<TextFile<'_>> =
            files.iter().zip(&texts).map(|(file, text)| TextFile { name: file.name, text }).collect();
        let mut config = start.clone();
        let errors = match target.dialect().read(&files, &mut config) {
            Ok(()) => return Ok((config, sieve.finish())),
            Err(errors) => errors,
        };
        let (foreign, wrong): (Vec<_>, Vec<_>) =
            errors.into_iter().partition(|(file, error)| sieve.is_foreign(*file, error.line));
        if !wrong.is_empty() || foreign.is_empty() {
            let name = |index: usize| files.get(index).map_or("", |file| file.name).to_owned();
            // A database that was sieved has lost its lines: those of the whole file count.
            let whole = match target {
                Target::Sonic => target.dialect().read(originals, &mut start.clone()).err().unwrap_or_default(),
                _ => Vec::new(),
            };
            let line_of = |file: usize, error: &LineError| {
                let same = whole.iter().find(|(at, other)| *at == file && other.message == error.message);
                same.map_or(error.line, |(_, other)| other.line)
            };
            let error = |(file, error): (usize, LineError)| ParseError {
                file: name(file),
                line: line_of(file, &error),
                message: error.message,
            };
            return Err(wrong.into_iter().map(error).collect());
        }
        for (file, error) in foreign {
            sieve.skip(file, error.line);
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
    SwitchConfig { ports, vlans: config.vlans.clone(), entries, spanning_tree: config.spanning_tree, lldp: config.lldp }
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
