//! `espalier check --rendered`: reads rendered files as the switches would, and puts what they say in the plan's place.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;
use dialects::{ForeignLines, MANIFEST_FILE, Manifest, Part, TextFile, near_ports, read_among_others, refuse_snooping};
use fabric::{
    Finding, FindingKind, Plan, Severity, SwitchId,
    format::plan::{ReadMode, plan_digest},
};
use switch_model::{
    SwitchConfig, align, judge_flow_control,
    observe::{Drift, drift},
};

use crate::{cli, failure::bad_input, files::read_plan_file};

/// Replaces the plan's devices by what the files say, and returns what can be said of the files themselves: lines of others
/// that were skipped, and where the files differ from the plan, which is the cause of what the judge then finds.
///
/// # Errors
/// Bad input if the folder cannot be read, or a file is not what its switch would take.
pub(super) fn replace_devices(plan: &mut Plan, folder: &Path, args: &cli::Check) -> Result<Vec<Finding>> {
    let manifest = read_manifest(folder)?;
    let mut findings = Vec::new();
    if manifest.plan != plan_digest(plan)? {
        findings.push(Finding {
            severity: Severity::Warning,
            kind: FindingKind::PlanMismatch,
            subject: folder.display().to_string(),
            message: "was rendered from another plan".to_owned(),
        });
    }
    let previous = match (&manifest.since, &args.since) {
        (None, None) => None,
        (Some(_), None) => {
            return Err(bad_input(format!(
                "{} holds a difference; name the plan that it starts from with --since",
                folder.display()
            )));
        }
        (None, Some(_)) => {
            return Err(bad_input(format!("{} holds full configurations; leave --since out", folder.display())));
        }
        (Some(digest), Some(path)) => {
            let previous = read_plan_file(path, ReadMode::Strict)?;
            if *digest != plan_digest(&previous)? {
                let (folder, path) = (folder.display(), path.display());
                return Err(bad_input(format!("{folder} holds a difference from another plan than {path}")));
            }
            Some(previous)
        }
    };
    let mut parts: BTreeMap<&str, Vec<&Part>> = BTreeMap::new();
    for part in &manifest.parts {
        parts.entry(part.switch.as_str()).or_default().push(part);
    }
    let mut wrong = Vec::new();
    for switch in plan.topology.switch_ids() {
        let name = plan.topology.switch(switch).name.clone();
        let own = parts.remove(name.as_str()).unwrap_or_default();
        match read_switch(plan, switch, previous.as_ref(), &own, folder)? {
            Ok((config, foreign)) => {
                let wanted = SwitchConfig::of_intent(&plan.topology, &plan.devices[switch.index()]);
                let known: Vec<&str> = wanted.ports.iter().map(|port| port.name.as_str()).collect();
                findings.extend(foreign.iter().map(|lines| of_others(lines, &known)));
                findings.extend(judge_flow_control(&name, &config, &wanted));
                findings.extend(differences(&name, &config, &wanted));
                plan.devices[switch.index()] = config.to_intent(&plan.topology, &plan.devices[switch.index()]);
            }
            Err(errors) => wrong.extend(errors),
        }
    }
    if !wrong.is_empty() {
        return Err(bad_input(wrong.join("\n")));
    }
    if let Some(name) = parts.keys().next() {
        return Err(bad_input(format!(
            "{} has files for switch {name}, which the plan does not have",
            folder.display()
        )));
    }
    Ok(findings)
}

fn read_manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).map_err(|error| {
        bad_input(format!("{}: {error}; espalier render writes it beside the files", path.display()))
    })?;
    Manifest::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))
}

/// What a switch is when its files have been loaded, and the lines of them that are no business of the plan's.
type Loaded = (SwitchConfig, Vec<ForeignLines>);

/// Loads the files of a switch; what is wrong with them, a line each, if anything is.
fn read_switch(
    plan: &Plan,
    switch: SwitchId,
    previous: Option<&Plan>,
    parts: &[&Part],
    folder: &Path,
) -> Result<Result<Loaded, Vec<String>>> {
    let topology = &plan.topology;
    let name = &topology.switch(switch).name;
    let names: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
    let before = previous.and_then(|previous| {
        let old = previous.topology.find_switch(name)?;
        Some(SwitchConfig::of_intent(&previous.topology, &previous.devices[old.index()]))
    });
    let mut config = match (&before, parts.first()) {
        (Some(before), _) => {
            let gone = before.ports.iter().map(|port| &port.name).filter(|name| !names.contains(name));
            let all: Vec<String> = names.iter().chain(gone).cloned().collect();
            align(before, &all)
        }
        (None, Some(part)) => part.target.factory(names.clone()),
        (None, None) => return Err(bad_input(format!("{} has no file for switch {name}", folder.display()))),
    };
    let mut foreign = Vec::new();
    for part in parts {
        let mut texts = Vec::new();
        for file in &part.files {
            let path = folder.join(file);
            let text = fs::read_to_string(&path).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
            texts.push((path.display().to_string(), text));
        }
        let files: Vec<TextFile<'_>> = texts.iter().map(|(name, text)| TextFile { name, text }).collect();
        match read_among_others(part.target, &files, &config) {
            Ok((next, lines)) => {
                config = next;
                foreign.extend(lines);
                if let Err(errors) = refuse_snooping(part.target, &files, &config) {
                    return Ok(Err(errors.iter().map(ToString::to_string).collect()));
                }
            }
            Err(errors) => return Ok(Err(errors.iter().map(ToString::to_string).collect())),
        }
    }
    Ok(Ok((align(&config, &names), foreign)))
}

/// What is said of lines that were skipped.
fn of_others(lines: &ForeignLines, known: &[&str]) -> Finding {
    let ForeignLines { file, line, count, text, port } = lines;
    let more = match count {
        1 => "the line is skipped".to_owned(),
        _ => format!("{count} lines from here on are skipped"),
    };
    let (severity, message) = match port {
        Some(port) => {
            let near = near_ports(port, known);
            let near = if near.is_empty() { String::new() } else { format!("; ports like it: {}", near.join(", ")) };
            (Severity::Warning, format!("port {port} is not in the plan; {more}{near}"))
        }
        None => (Severity::Note, format!("{text:?} is nothing that the plan sets; {more}")),
    };
    Finding { severity, kind: FindingKind::PlanMismatch, subject: format!("{file}:{line}"), message }
}

/// Where the files differ from the plan in what decides a frame's way.
fn differences(switch: &str, config: &SwitchConfig, wanted: &SwitchConfig) -> Vec<Finding> {
    let decides = |drift: &Drift| {
        !matches!(
            drift,
            Drift::SpanningTree { .. }
                | Drift::IngressFilter { .. }
                | Drift::FlowControl { .. }
                | Drift::Learning { .. }
                | Drift::Floods { .. }
                | Drift::NoVlan(_)
                | Drift::ForeignVlan(_)
        )
    };
    let finding = |drift: &Drift| Finding {
        severity: Severity::Warning,
        kind: FindingKind::PlanMismatch,
        subject: switch.to_owned(),
        message: drift.sentence(config),
    };
    drift(config, wanted).iter().filter(|drift| decides(drift)).map(finding).collect()
}
