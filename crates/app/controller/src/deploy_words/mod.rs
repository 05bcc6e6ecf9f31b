//! Deployments in sentences: what happens, how it ends, and the commands that lead on. The command line and the daemon print the
//! same.

mod events;
mod findings;
mod outcome;
mod way_on;

use fabric::{Plan, SwitchId};
use rollout::deploy::Outcome;
use switch_model::driver::Fault;

use crate::{DeployResult, HostsTold, Surveyed};

pub use events::{DeployLines, weak_algorithms_words};
pub use findings::{refusal, remarks};
pub use way_on::{DeployCommand, WayOn, quoted};

/// How a deployment ended, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployEnd {
    /// The outcome in one word, such as `deployed` or `rolled-back`.
    pub word: &'static str,
    /// Sentences, with the way on.
    pub lines: Vec<String>,
    /// Whether every switch holds the plan.
    pub is_sound: bool,
}

/// How it ended, if switches were surveyed; none otherwise.
pub fn end_words(result: &DeployResult, plan: &Plan, way_on: &WayOn) -> Option<DeployEnd> {
    let refused = |lines| DeployEnd { word: "refused", lines, is_sound: false };
    match result {
        DeployResult::Refused(Surveyed { looked, route }) => Some(refused(refusal(looked, plan, route, way_on))),
        DeployResult::Unwritable(surveyed, refusals) => Some(refused(unwritable(surveyed, refusals))),
        DeployResult::Ended(surveyed, outcome, hosts) => {
            let mut lines = outcome::sentences(&surveyed.route.topology, outcome, way_on);
            lines.extend(untold(hosts));
            let is_sound = matches!(outcome, Outcome::Unchanged) || outcome::sound(outcome);
            Some(DeployEnd { word: outcome::word(outcome), lines, is_sound: is_sound && *hosts == HostsTold::Well })
        }
        DeployResult::Unfit
        | DeployResult::Interrupted
        | DeployResult::NothingInterrupted
        | DeployResult::JournalHeld { .. }
        | DeployResult::OtherJournal(_)
        | DeployResult::PlannedAround(..) => None,
    }
}

/// What hosts that tag were not told, in a sentence.
fn untold(hosts: &HostsTold) -> Option<String> {
    match hosts {
        HostsTold::Well => None,
        HostsTold::Untold(why) => Some(format!(
            "the switches hold the plan, but hosts could not be given their tables: {why}; deploying it once more hands out tables \
             alone"
        )),
    }
}

/// What switches would refuse, in sentences.
fn unwritable(surveyed: &Surveyed, refusals: &[(SwitchId, Fault)]) -> Vec<String> {
    let one =
        |(switch, fault): &(SwitchId, Fault)| format!("  {}: {fault}", surveyed.route.topology.switch(*switch).name);
    let head = "nothing was written: these switches would refuse what the plan asks of them".to_owned();
    std::iter::once(head).chain(refusals.iter().map(one)).collect()
}
