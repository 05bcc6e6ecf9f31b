//! What the survey before a deployment found, in sentences, with every way out as a command.

use std::fmt::Write as _;

use fabric::{LinkId, Plan, Topology};
use rollout::deploy::Way;
use transition::Deadlock;

use super::way_on::{WayOn, quoted};
use crate::{Looked, Route, UNPROVEN_DEADLOCK, count::counted};

/// Cables of one kind that are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// One line on what was confirmed, and what does not stop the deployment.
pub fn remarks(looked: &Looked, route: &Route) -> Vec<String> {
    if looked.partial {
        // The deployment names whoever does not answer, and ends.
        return Vec::new();
    }
    let topology = &route.topology;
    let (confirmed, all) = (looked.survey.confirmed.len(), topology.links().len());
    let mut lines = vec![format!("survey: {confirmed} of {} confirmed by both ends", counted(all, "cable"))];
    let learned = route.plan.known().len();
    if learned > 0 && !matches!(route.way, Way::Undo) {
        lines.push(format!("entries of {} are kept", counted(learned, "learned address")));
    }
    if route.deadlock == Deadlock::Unproven {
        lines.push(format!("warning: {}", UNPROVEN_DEADLOCK));
    }
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
pub fn refusal(looked: &Looked, plan: &Plan, route: &Route, way_on: &WayOn) -> Vec<String> {
    let topology = &route.topology;
    let mut lines = vec!["nothing was written: the switches or their cables are not those of the plan".to_owned()];
    lines.extend(looked.survey.misfits.iter().take(NAMED_MAX).map(|misfit| format!("  {}", misfit.sentence(topology))));
    lines.extend(further(looked.survey.misfits.len(), "more of that kind"));
    if !looked.survey.misfits.is_empty() {
        if looked.survey.identity_misfits().next().is_none() {
            lines.push(format!("once the plugs are moved: {}; or plan for the cabling as it is:", way_on.again()));
        } else {
            lines.push("or let discover write the topology as it is:".to_owned());
        }
        lines.push(format!("  {}", way_on.plan_anew(plan)));
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
    let WayOn::CommandLine(command) = way_on else {
        lines.push(format!("plug them in and turn LLDP on at both ends, and run {}", way_on.again()));
        return lines;
    };
    lines.push("plug them in and turn LLDP on at both ends, and deploy again; or one of these:".to_owned());
    let mut trust = command.again.clone();
    for link in looked.shut.iter().take(NAMED_MAX) {
        let _ = write!(trust, " --trust-cabling {}", word(topology, *link));
    }
    lines.push(format!("  {trust}"));
    if matches!(route.way, Way::Drained) {
        lines.extend(command.around.iter().map(|around| format!("  {} {around}", command.again)));
    }
    lines.extend(command.confirm.iter().map(|confirm| format!("  {} {confirm}", command.again)));
    lines
}

fn further(count: usize, what: &str) -> Option<String> {
    (count > NAMED_MAX).then(|| format!("  {} {what}", count - NAMED_MAX))
}

/// A cable as `--trust-cabling` takes it.
fn word(topology: &Topology, link: LinkId) -> String {
    let link = topology.link(link);
    quoted(&format!("{}--{}", topology.port_label(link.a), topology.port_label(link.b)))
}
