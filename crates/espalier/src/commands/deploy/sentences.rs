//! How a deployment ended, in sentences, each with the way on.

use device::deploy::{Fault, Outcome, Reason};
use fabric::{Plan, SwitchId};

use crate::cli;

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
        Outcome::Stranded { .. } => "stranded",
    }
}

/// The outcome and the way on, for a person.
pub(super) fn sentences(plan: &Plan, outcome: &Outcome, args: &cli::Deploy) -> Vec<String> {
    let name = |switch: SwitchId| plan.topology.switch(switch).name.clone();
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
                "  deploy the old plan again, or this one without --since".to_owned(),
            ],
            Reason::NoWay(switch, port) => vec![
                format!("  {}:{port} does not carry the management VLAN yet, and {} would be lost", name(*switch), name(*switch)),
                "  put the port into it by hand, far switches first; switches as they leave the factory have all ports in VLAN 1"
                    .to_owned(),
            ],
            Reason::Unfit(what) => vec![format!("  the judge found the switches unfit: {what}")],
            Reason::NoJournal(what) => vec![format!("  the journal could not be written: {what}")],
            Reason::Interrupted => vec!["  it was asked to stop".to_owned()],
        }
    };
    let plan_file = args.plan.display();
    let mut lines = Vec::new();
    match outcome {
        Outcome::Unchanged => lines.push("every switch holds the plan already; nothing was written".to_owned()),
        Outcome::Deployed { mark, unsaved, doubts } => {
            let count = plan.topology.switches().len();
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
            "{} was set up by somebody else since (generation {}); nothing was written. Plan again from what is there, or go ahead with --take-over",
            name(*switch),
            found.generation
        )),
        Outcome::Superseded { switch, by } => lines.push(format!(
            "another deployment (generation {}) took over at {}; this one has stopped and left the rest to it",
            by.generation,
            name(*switch)
        )),
        Outcome::Refused(why) => {
            lines.push("nothing was changed:".to_owned());
            lines.extend(reason(why));
        }
        Outcome::RolledBack { reason: why, unsaved } => {
            lines.push("rolled back: every switch holds what it held before".to_owned());
            lines.extend(reason(why));
            if !unsaved.is_empty() {
                lines.push("these could not save it; save them:".to_owned());
                lines.extend(faults(unsaved));
            }
        }
        Outcome::Stranded { reason: why, lost } => {
            lines.push("rolled back, but for these switches, whose neighbours keep their ports toward them shut:".to_owned());
            lines.extend(faults(lost));
            lines.extend(reason(why));
            lines.push(format!("once they answer: espalier deploy {plan_file} --undo, or --resume to go on"));
        }
    }
    lines
}
