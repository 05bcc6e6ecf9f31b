//! What the survey before a deployment found, in sentences and as JSON, with every way out as a command.

use std::fmt::Write as _;

use fabric::{EngineName, FdbMode, FlowControl, LinkId, Plan, Policy, Resilience, Tagging, Topology};
use rollout::deploy::Way;
use serde_json::{Value, json};

use controller::{Looked, Route};

use crate::{cli, count::counted};

/// Cables of one kind that are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// One line on what was confirmed, and what does not stop the deployment.
pub(super) fn remarks(looked: &Looked, route: &Route) -> Vec<String> {
    if looked.partial {
        // The deployment names whoever does not answer, and ends.
        return Vec::new();
    }
    let topology = &route.topology;
    let (confirmed, all) = (looked.survey.confirmed.len(), topology.links().len());
    let mut lines = vec![format!("survey: {confirmed} of {} confirmed by both ends", counted(all, "cable"))];
    let mut kinds = vec![
        (&looked.trusted, "is used, since --trust-cabling names it"),
        (&looked.awaited, "is looked at when it opens"),
        (&looked.kept, "stays in service"),
    ];
    if !looked.refuses(&route.way) {
        kinds.push((&looked.shut, "stays shut"));
    }
    for (links, what) in kinds {
        for link in links.iter().take(NAMED_MAX) {
            let why = looked.survey.unconfirmed.get(link).map(|why| why.sentence(topology)).unwrap_or_default();
            lines.push(format!("  {} is not confirmed: {why}; it {what}", topology.link_label(*link)));
        }
        lines.extend(further(links.len(), &format!("unconfirmed cables: each {what}")));
    }
    lines.extend(looked.survey.notes.iter().map(|note| format!("  {}", note.sentence(topology))));
    if matches!(route.way, Way::Undo) {
        lines.extend(looked.survey.misfits.iter().map(|misfit| format!("  warning: {}", misfit.sentence(topology))));
    }
    lines
}

/// Why nothing is written, and the ways out.
pub(super) fn refusal(looked: &Looked, plan: &Plan, route: &Route, args: &cli::Deploy) -> Vec<String> {
    let topology = &route.topology;
    let mut lines = vec!["nothing was written: the switches or their cables are not those of the plan".to_owned()];
    lines.extend(looked.survey.misfits.iter().take(NAMED_MAX).map(|misfit| format!("  {}", misfit.sentence(topology))));
    lines.extend(further(looked.survey.misfits.len(), "more of that kind"));
    if !looked.survey.misfits.is_empty() {
        if looked.survey.identity_misfits().next().is_none() {
            lines.push(format!("once the plugs are moved: {}; or plan for the cabling as it is:", again(args)));
        } else {
            lines.push("or let discover write the topology as it is:".to_owned());
        }
        lines.push(format!("  {}", plan_anew(plan, args)));
        return lines;
    }
    let Some(unfit) = &looked.unfit else { return lines };
    lines[0] = format!(
        "nothing was written: the plan cannot do without {} that LLDP does not confirm",
        counted(looked.shut.len(), "cable")
    );
    for link in looked.shut.iter().take(NAMED_MAX) {
        let why = looked.survey.unconfirmed.get(link).map(|why| why.sentence(topology)).unwrap_or_default();
        lines.push(format!("  {}: {why}", topology.link_label(*link)));
    }
    lines.extend(further(looked.shut.len(), "more such cables"));
    lines.push(format!("  with them shut, the judge says: {unfit}"));
    lines.push("plug them in and turn LLDP on at both ends, and deploy again; or one of these:".to_owned());
    let mut trust = again(args);
    for link in looked.shut.iter().take(NAMED_MAX) {
        let _ = write!(trust, " --trust-cabling {}", word(topology, *link));
    }
    lines.push(format!("  {trust}"));
    if matches!(route.way, Way::Drained) && args.around_unconfirmed.is_none() && !args.resume {
        lines.push(format!("  {} --around-unconfirmed around.json", again(args)));
    }
    if !args.confirm_by_link_state {
        lines.push(format!("  {} --confirm-by-link-state", again(args)));
    }
    lines
}

/// The survey as JSON.
pub(super) fn survey_json(looked: &Looked, route: &Route) -> Value {
    let topology = &route.topology;
    let state = |link: &LinkId| match link {
        link if looked.trusted.contains(link) => "trusted",
        link if looked.awaited.contains(link) => "looked at when it opens",
        link if looked.kept.contains(link) => "in service",
        link if looked.shut.contains(link) => "shut",
        _ => "unused",
    };
    let unconfirmed: Vec<Value> = (looked.survey.unconfirmed.iter())
        .map(|(link, why)| {
            json!({ "cable": topology.link_label(*link), "why": why.sentence(topology), "state": state(link) })
        })
        .collect();
    let misfits: Vec<String> = looked.survey.misfits.iter().map(|misfit| misfit.sentence(topology)).collect();
    let notes: Vec<String> = looked.survey.notes.iter().map(|note| note.sentence(topology)).collect();
    let small = looked.small_mtus.iter().map(|port| {
        json!({
            "port": topology.port_label(port.port), "found_bytes": port.found_bytes, "needed_bytes": port.needed_bytes,
        })
    });
    json!({
        "small_mtus": small.collect::<Vec<_>>(),
        "cables": topology.links().len(), "confirmed": looked.survey.confirmed.len(), "unconfirmed": unconfirmed,
        "misfits": misfits, "notes": notes, "unfit": looked.unfit,
    })
}

fn further(count: usize, what: &str) -> Option<String> {
    (count > NAMED_MAX).then(|| format!("  {} {what}", count - NAMED_MAX))
}

/// A cable as `--trust-cabling` takes it.
fn word(topology: &Topology, link: LinkId) -> String {
    let link = topology.link(link);
    quoted(&format!("{}--{}", topology.port_label(link.a), topology.port_label(link.b)))
}

/// The command that was given, to be given again.
fn again(args: &cli::Deploy) -> String {
    let mut command = format!("espalier deploy {}{}", quoted(&args.plan.display().to_string()), reach(args));
    if args.state.as_os_str() != ".espalier" {
        let _ = write!(command, " --state {}", quoted(&args.state.display().to_string()));
    }
    if let Some(since) = &args.since {
        let _ = write!(command, " --since {}", quoted(&since.display().to_string()));
    }
    let words = [(args.resume, " --resume"), (args.take_over, " --take-over"), (args.dry_run, " --dry-run")];
    command.extend(words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word));
    for switch in &args.replaced {
        let _ = write!(command, " --replaced {}", quoted(switch));
    }
    for link in &args.trust_cabling {
        let _ = write!(command, " --trust-cabling {}", quoted(link));
    }
    command
}

/// How the switches are reached, as options.
fn reach(args: &cli::Deploy) -> String {
    let mut options = String::new();
    if args.reach.credentials.as_os_str() != "credentials.toml" {
        let _ = write!(options, " --credentials {}", quoted(&args.reach.credentials.display().to_string()));
    }
    if args.reach.port != 161 {
        let _ = write!(options, " --port {}", args.reach.port);
    }
    options
}

/// The commands that plan for what is there, with the policy of the plan.
fn plan_anew(plan: &Plan, args: &cli::Deploy) -> String {
    let addresses: Vec<String> =
        plan.topology.switches().iter().filter_map(|switch| Some(switch.mgmt?.to_string())).collect();
    let reach = reach(args);
    format!(
        "espalier discover {}{reach} -o found.yaml && espalier plan found.yaml{} -o new.json && espalier deploy new.json{reach}",
        addresses.join(" "),
        options(&plan.policy, &plan.topology)
    )
}

/// A policy as options of `plan`, those left out that are the default.
fn options(policy: &Policy, topology: &Topology) -> String {
    let mut options = String::new();
    let mut option = |given: bool, name: &str, value: String| {
        if given {
            let _ = write!(options, " --{name} {value}");
        }
    };
    option(policy.engine != EngineName::Auto, "engine", policy.engine.to_string());
    option(policy.tagging != Tagging::Switch, "tagging", policy.tagging.to_string());
    option(policy.flow_control != FlowControl::Pause, "flow-control", policy.flow_control.to_string());
    option(policy.fdb != FdbMode::Minimal, "fdb", policy.fdb.to_string());
    option(policy.resilience != Resilience::None, "resilience", policy.resilience.to_string());
    option(policy.vlans_max.is_some(), "max-vlans", policy.vlans_max.unwrap_or(0).to_string());
    let whole = (policy.vlans.first.get(), policy.vlans.last.get()) == (2, 4094);
    option(!whole, "vlans", format!("{}-{}", policy.vlans.first, policy.vlans.last));
    option(policy.vlans.reserved.to_string() != "1002-1005", "reserved-vlans", policy.vlans.reserved.to_string());
    if let Some(in_band) = topology.in_band() {
        let controller = quoted(&topology.port_label(in_band.controller));
        let _ = write!(options, " --management-vlan {} --controller {controller}", in_band.vlan);
    }
    options
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+@:,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
