//! How a deployment ended, in sentences, each with the way on.

use std::collections::BTreeMap;

use fabric::{SwitchId, Topology};
use rollout::deploy::{FarEnd, Flap, LinkState, Misplaced, Outcome, Reason, Surge, Unseen};
use switch_model::{driver::Fault, sight::End};

use super::way_on::{DeployCommand, WayOn};
use crate::{count::counted, port_words};

/// Most findings of the judge that a person is shown.
const FINDINGS_MAX: usize = 12;
/// Most switches whose ports a person is shown.
const SWITCHES_MAX: usize = 24;

pub(super) fn sound(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Deployed { unsaved, doubts, .. } => unsaved.is_empty() && doubts.is_empty(),
        _ => false,
    }
}

pub(super) fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Unchanged => "unchanged",
        Outcome::Deployed { .. } => "deployed",
        Outcome::Stale { .. } => "stale",
        Outcome::Superseded { .. } => "superseded",
        Outcome::Refused(_) => "refused",
        Outcome::RolledBack { .. } => "rolled-back",
        Outcome::Quenched { .. } => "shut-by-storm",
        Outcome::Stranded { .. } => "stranded",
    }
}

/// Where a cable was found.
pub(super) fn misplaced(topology: &Topology, found: &Misplaced) -> String {
    let far = match &found.found {
        FarEnd::Port(end) => port_words(topology, *end),
        FarEnd::Switch(switch, name) => format!("{}, which calls its port {name}", topology.switch(*switch).name),
        FarEnd::Unknown => "an unknown place".to_owned(),
        FarEnd::Other(name) => format!("{name:?}, which is none of the plan's switches"),
    };
    let at = port_words(topology, found.at);
    if let (FarEnd::Unknown, Some(expected)) = (&found.found, found.expected) {
        return format!("{at} should lead to {}, which it does not hear any more", port_words(topology, expected));
    }
    match found.expected {
        Some(expected) => format!("{at} leads to {far} instead of {}", port_words(topology, expected)),
        None => format!("{at} leads to {far}, where the plan has no switch"),
    }
}

/// A cable that is not seen.
pub(super) fn unseen(topology: &Topology, unseen: &Unseen) -> String {
    let why = match unseen.link {
        LinkState::Up => "hears no LLDP from it",
        LinkState::Down => "has no link",
    };
    format!("{} should lead to {}, but {why}", port_words(topology, unseen.at), port_words(topology, unseen.expected))
}

fn surges(topology: &Topology, surges: &[Surge]) -> String {
    let one = |surge: &Surge| format!("{} ({} frames)", port_words(topology, surge.at), surge.frames);
    surges.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How a storm shows; nothing of another reason.
pub(super) fn how_a_storm_shows(topology: &Topology, storm: &Reason) -> Vec<String> {
    match storm {
        Reason::Storm(most) => {
            vec![format!("  a broadcast storm; these ports received the most: {}", surges(topology, most))]
        }
        Reason::Flapping(flaps) => {
            let one = |flap: &Flap| {
                let ports: Vec<String> =
                    flap.ports.iter().map(|slot| port_words(topology, (flap.switch, *slot))).collect();
                format!("  {} moves to and fro between {} ({} times)", flap.mac, ports.join(" and "), flap.returns)
            };
            let head =
                "  a broadcast storm, or one address used at several ports; addresses move between ports:".to_owned();
            std::iter::once(head).chain(flaps.iter().map(one)).collect()
        }
        _ => Vec::new(),
    }
}

/// Ports by switch, some switches at most.
fn by_switch(topology: &Topology, ports: &[End]) -> Vec<String> {
    let mut of: BTreeMap<SwitchId, Vec<End>> = BTreeMap::new();
    ports.iter().for_each(|at| of.entry(at.0).or_default().push(*at));
    let names = |ports: &[End]| ports.iter().map(|at| port_words(topology, *at)).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = of.values().take(SWITCHES_MAX).map(|ports| format!("  {}", names(ports))).collect();
    if of.len() > SWITCHES_MAX {
        lines.push(format!("  and those of {}", counted(of.len() - SWITCHES_MAX, "more switch")));
    }
    lines
}

/// The outcome and the way on, for a person.
pub(super) fn sentences(topology: &Topology, outcome: &Outcome, way_on: &WayOn) -> Vec<String> {
    let name = |switch: SwitchId| topology.switch(switch).name.clone();
    let choose = |by_command: &dyn Fn(&DeployCommand) -> String, by_controller: &str| match way_on {
        WayOn::CommandLine(command) => by_command(command),
        WayOn::Controller => by_controller.to_owned(),
    };
    let faults = |faults: &[(SwitchId, Fault)]| -> Vec<String> {
        faults.iter().map(|(switch, fault)| format!("  {}: {fault}", name(*switch))).collect()
    };
    let reason = |reason: &Reason| -> Vec<String> {
        match reason {
            Reason::Faults(stage, list) => {
                let mut lines = vec![format!("  at the stage \"{stage}\":")];
                lines.extend(faults(list));
                lines
            }
            Reason::Elsewhere(switch, what) => vec![
                format!("  {} does not hold the old plan: {what}", name(*switch)),
                choose(
                    &|_| "  deploy the old plan again, or this one without --since".to_owned(),
                    &format!("  espalierd put-back {} first, and espalierd retry then", name(*switch)),
                ),
            ],
            Reason::NoWay(switch, port) => vec![
                format!("  {}:{port} does not carry the management VLAN yet, and {} would be lost", name(*switch), name(*switch)),
                "  put the port into it by hand, far switches first; switches as they leave the factory have all ports in VLAN 1"
                    .to_owned(),
            ],
            Reason::Unfit(findings) => {
                let mut lines = vec![format!("  the judge found the switches unfit, for {}:", counted(findings.len(), "reason"))];
                lines.extend(findings.iter().take(FINDINGS_MAX).map(|finding| format!("  {finding}")));
                if findings.len() > FINDINGS_MAX {
                    lines.push(format!("  and {} more", findings.len() - FINDINGS_MAX));
                }
                lines
            }
            Reason::Miscabled(cables) => {
                let mut lines: Vec<String> =
                    cables.iter().map(|found| format!("  {}", misplaced(topology, found))).collect();
                let again = choose(&|command| format!("espalier deploy {} again", command.plan), "espalierd retry");
                lines.push(format!("  move the plugs back and run {again}, or plan anew from what espalier discover finds"));
                lines
            }
            Reason::Unseen(cables, waited) => {
                let mut lines: Vec<String> = cables.iter().map(|cable| format!("  {}", unseen(topology, cable))).collect();
                let way_on =
                    choose(&|_| "look at them, or give LLDP longer with --cable-wait".to_owned(), "look at them, and run espalierd retry");
                lines.push(format!(
                    "  these cables were seen before, and not again within {:.0} s of opening their ports; {way_on}",
                    waited.as_secs_f64().ceil()
                ));
                lines
            }
            Reason::Storm(_) | Reason::Flapping(_) => {
                let mut lines = how_a_storm_shows(topology, reason);
                lines.push("  look for a loop through a cable or an unmanaged switch there, and deploy again".to_owned());
                lines
            }
            Reason::Hosts(why) => {
                let again = choose(&|command| command.again.clone(), "espalierd retry");
                vec![format!("  hosts could not be given their tables: {why}"), format!("  mend that, and run {again}")]
            }
            Reason::NoJournal(what) => vec![format!("  the journal could not be written: {what}")],
            Reason::OtherChange => vec![
                "  the journal is not of this change under traffic; finish that one first, take it back with --undo, or deploy \
                 without --since"
                    .to_owned(),
            ],
            Reason::Interrupted => vec!["  it was asked to stop".to_owned()],
        }
    };
    let mut lines = Vec::new();
    match outcome {
        Outcome::Unchanged => lines.push("every switch holds the plan already; nothing was written".to_owned()),
        Outcome::Deployed { mark, unsaved, doubts } => {
            let count = topology.switches().len();
            lines.push(format!("{} of {count} switches hold the plan: generation {}", count - doubts.len(), mark.generation));
            if !doubts.is_empty() {
                lines.push("these do not, and their ports are shut; deploy again once they answer:".to_owned());
                lines.extend(faults(doubts));
            }
            if !unsaved.is_empty() {
                lines.push("these hold it, but would come back from a restart with their ports shut; save them:".to_owned());
                lines.extend(faults(unsaved));
            }
        }
        Outcome::Stale { switch, found } => lines.push(format!(
            "{} was set up by another deployment since (generation {}); nothing was written. Plan again from what is there, {}",
            name(*switch),
            found.generation,
            choose(&|command| format!("or go ahead: espalier deploy {} --take-over", command.plan), "and propose that plan")
        )),
        Outcome::Superseded { switch, by } => lines.push(format!(
            "another deployment (generation {}) took over at {}; this one has stopped and left the rest to it. If that one does not end well: {}",
            by.generation,
            name(*switch),
            choose(&|command| format!("espalier deploy {} --take-over", command.plan), "espalierd retry")
        )),
        Outcome::Refused(why) => {
            lines.push("nothing was changed:".to_owned());
            lines.extend(reason(why));
        }
        Outcome::RolledBack { reason: why, unsaved, kept_shut } => {
            lines.push("rolled back: every switch holds what it held before".to_owned());
            lines.extend(reason(why));
            if !kept_shut.is_empty() {
                let but = if topology.in_band().is_some() { " but for management" } else { "" };
                lines.push(format!("but these ports stay shut{but}, since opening them could close a loop; open them by hand once their cables are right:"));
                lines.extend(kept_shut.iter().map(|found| format!("  {}", misplaced(topology, found))));
            }
            if !unsaved.is_empty() {
                lines.push("these could not save it; save them:".to_owned());
                lines.extend(faults(unsaved));
            }
        }
        Outcome::Quenched { reason: why, storm, shut, lost } => {
            lines.push("turned back:".to_owned());
            lines.extend(reason(why));
            lines.push("but bringing ports up again during rollback caused a storm:".to_owned());
            lines.extend(how_a_storm_shows(topology, storm));
            lines.push(format!("every switch holds what it held before, but {}, which were open, are shut and stay so:", counted(shut.len(), "port")));
            lines.extend(by_switch(topology, shut));
            if !lost.is_empty() {
                lines.push("and these switches could not be brought back:".to_owned());
                lines.extend(faults(lost));
            }
            let way_on = choose(
                &|command| format!("espalier deploy {} --undo opens the ports again, and --resume goes on to the plan", command.plan),
                "espalierd retry goes on to the plan",
            );
            lines.push(format!("look for a loop through a cable or an unmanaged switch; once it is gone, {way_on}"));
        }
        Outcome::Stranded { reason: why, lost } => {
            lines.push("rolled back, but for these switches, whose neighbours keep their ports toward them shut:".to_owned());
            lines.extend(faults(lost));
            lines.extend(reason(why));
            let others = lost.iter().any(|(_, fault)| matches!(fault, Fault::UnderWay(_)));
            lines.push(match others {
                true => format!(
                    "go on with {}; or take the other deployment back where it was started: espalier deploy ITS-PLAN --undo --take-over",
                    choose(&|command| format!("espalier deploy {} --resume", command.plan), "espalierd retry")
                ),
                false => choose(
                    &|command| format!("once they answer: espalier deploy {} --undo, or --resume to go on", command.plan),
                    "once they answer: espalierd retry",
                ),
            });
        }
    }
    lines
}
