//! How a deployment ended, in one sentence.

use controller::{DeployResult, Surveyed, count::abridged, port_words};
use fabric::{SwitchId, Topology};
use rollout::deploy::{Outcome, Reason};
use switch_model::{driver::Fault, sight::End};

/// Things that a sentence names; the rest are counted.
const NAMED_MAX: usize = 6;

/// Whether every switch holds the plan; if not, why.
///
/// # Errors
/// A sentence.
pub fn outcome_words(topology: &Topology, outcome: &Outcome) -> Result<(), String> {
    let name = |switch: SwitchId| topology.switch(switch).name.as_str();
    let faults = |faults: &[(SwitchId, Fault)]| -> String {
        let each: Vec<String> = faults.iter().map(|(switch, fault)| format!("{}: {fault}", name(*switch))).collect();
        abridged(&each, "; ", NAMED_MAX)
    };
    match outcome {
        Outcome::Unchanged => Ok(()),
        Outcome::Deployed { doubts, .. } if doubts.is_empty() => Ok(()),
        Outcome::Deployed { doubts, .. } => Err(format!("all but these switches hold it: {}", faults(doubts))),
        Outcome::Stale { switch, found } => Err(format!(
            "{} was set up by another deployment since (generation {}); nothing was written",
            name(*switch),
            found.generation
        )),
        Outcome::Superseded { switch, by } => {
            Err(format!("another deployment (generation {}) took over at {}", by.generation, name(*switch)))
        }
        Outcome::Refused(why) => Err(format!("nothing was changed: {}", reason_words(topology, why))),
        Outcome::RolledBack { reason, .. } => {
            Err(format!("rolled back, every switch holds what it held before: {}", reason_words(topology, reason)))
        }
        Outcome::Quenched { reason, shut, .. } => Err(format!(
            "turned back ({}), and {} ports stay administratively down, since a storm came up when they were brought up",
            reason_words(topology, reason),
            shut.len()
        )),
        Outcome::Stranded { reason, lost } => {
            Err(format!("rolled back but for {}: {}", faults(lost), reason_words(topology, reason)))
        }
    }
}

fn reason_words(topology: &Topology, reason: &Reason) -> String {
    let name = |switch: SwitchId| topology.switch(switch).name.as_str();
    let ends = |ends: &mut dyn Iterator<Item = End>| -> String {
        let each: Vec<String> = ends.map(|end| port_words(topology, end)).collect();
        abridged(&each, ", ", NAMED_MAX)
    };
    match reason {
        Reason::Faults(stage, faults) => {
            let each: Vec<String> =
                faults.iter().map(|(switch, fault)| format!("{}: {fault}", name(*switch))).collect();
            format!("at the stage \"{stage}\", {}", abridged(&each, "; ", NAMED_MAX))
        }
        Reason::Elsewhere(switch, what) => format!("{} does not hold the plan before: {what}", name(*switch)),
        Reason::NoWay(switch, port) => format!("{}:{port} does not carry the management VLAN yet", name(*switch)),
        Reason::Unfit(findings) => {
            let each: Vec<String> = findings.iter().map(ToString::to_string).collect();
            format!("the judge found the switches unfit: {}", abridged(&each, "; ", NAMED_MAX))
        }
        Reason::Miscabled(cables) => {
            format!("cables lead elsewhere at {}", ends(&mut cables.iter().map(|cable| cable.at)))
        }
        Reason::Unseen(cables, waited) => format!(
            "cables at {} were not seen again within {:.0} s",
            ends(&mut cables.iter().map(|cable| cable.at)),
            waited.as_secs_f64().ceil()
        ),
        Reason::Storm(surges) => {
            format!("a broadcast storm at {}", ends(&mut surges.iter().map(|surge| surge.at)))
        }
        Reason::Flapping(flaps) => {
            let each: Vec<String> = flaps.iter().map(|flap| format!("{} at {}", flap.mac, name(flap.switch))).collect();
            format!("a broadcast storm: addresses move between ports, {}", abridged(&each, ", ", NAMED_MAX))
        }
        Reason::Hosts(why) => format!("hosts could not be given their tables: {why}"),
        Reason::NoJournal(what) => format!("the journal could not be written: {what}"),
        Reason::OtherChange => "another change under traffic was interrupted".to_owned(),
        Reason::Interrupted => "it was asked to stop".to_owned(),
    }
}

/// Why a deployment did not begin.
pub fn refusal_words(result: &DeployResult) -> String {
    match result {
        DeployResult::Unfit => "the judge finds the plan unfit".to_owned(),
        DeployResult::Interrupted => "it was asked to stop".to_owned(),
        DeployResult::NothingInterrupted => "there is no interrupted deployment to go on with".to_owned(),
        DeployResult::JournalHeld { generation, .. } => {
            format!("an interrupted deployment (generation {generation}) is not over")
        }
        DeployResult::OtherJournal(why) => why.sentence(),
        DeployResult::Refused(Surveyed { route, looked }) => {
            let misfits = looked.survey.misfits.iter().map(|misfit| misfit.sentence(&route.topology));
            let unconfirmed = looked.shut.iter().map(|link| {
                format!("{} is not confirmed by LLDP, and the plan needs it", route.topology.link_label(*link))
            });
            let each: Vec<String> = misfits.chain(unconfirmed).collect();
            format!("the switches or their cables are not those of the plan: {}", abridged(&each, "; ", NAMED_MAX))
        }
        DeployResult::Unwritable(surveyed, refusals) => {
            let name = |switch: &SwitchId| surveyed.route.topology.switch(*switch).name.as_str();
            let each: Vec<String> =
                refusals.iter().map(|(switch, fault)| format!("{}: {fault}", name(switch))).collect();
            format!("switches would refuse what the plan asks of them: {}", abridged(&each, "; ", NAMED_MAX))
        }
        DeployResult::PlannedAround(..) => "the plan needs cables that nothing confirms".to_owned(),
        DeployResult::Ended(..) => "it ended".to_owned(),
    }
}
