//! A deployment through espalierd: the plan is proposed and approved there, and what happens is shown until it has ended.

use std::{process::ExitCode, thread, time::Duration};

use anyhow::Result;
use api_client::{
    Ask,
    documents::{Deployment, Proposal, ProposalState, Target, TargetState},
    encoded,
};
use controller::count::counted;
use fabric::format::plan::ReadMode;

use super::{
    super::{Output, through::Through},
    say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

/// How often the controller is asked how far it is.
const AGAIN: Duration = Duration::from_millis(200);

/// Deploys a plan through a controller.
pub(super) fn deploy(args: &cli::Deploy, through: &Through, output: Output) -> Result<ExitCode> {
    if let Some(option) = not_for_controllers(args) {
        return Err(bad_input(format!(
            "{option} is for a deployment without a controller; espalierd finds out by itself what the switches hold, whether a change is \
             hitless and whether a deployment was interrupted"
        )));
    }
    // A file that is no plan is refused here, with its line.
    read_plan_file(&args.plan, ReadMode::Strict)?;
    let text = std::fs::read(&args.plan).map_err(|error| bad_input(format!("{}: {error}", args.plan.display())))?;
    let reason = format!("espalier deploy {}", args.plan.display());
    let path = format!("/v1/proposals?reason={}", encoded(&reason));
    let proposal: Proposal = through.document(Ask::post(&path, text))?;
    let path = format!("/v1/proposals/{}/approve", proposal.id);
    let proposal: Proposal = through.document(Ask::post(&path, Vec::new()))?;
    if proposal.state == ProposalState::Open {
        let approvals = counted(proposal.approvals.len(), "approval");
        let told = format!(
            "proposal {} has {approvals} and needs more; it is deployed once others approve it: espalierd approve {}",
            proposal.id, proposal.id
        );
        end(output, "proposed", &[told], proposal.parent + 1)?;
        return Ok(ExitCode::from(FAILED));
    }
    follow(through, proposal.parent + 1, output)
}

/// Shows what happens in the deployment of a target until it has ended.
fn follow(through: &Through, target: u64, output: Output) -> Result<ExitCode> {
    let mut shown = 0;
    loop {
        // There is none before the first.
        let current: Option<Deployment> = through.document(Ask::get("/v1/deployment")).ok();
        match current.filter(|deployment| deployment.target >= target) {
            Some(deployment) if deployment.target == target => {
                for line in deployment.lines.iter().skip(shown) {
                    eprintln!("{line}");
                }
                shown = deployment.lines.len();
                if let Some(outcome) = deployment.outcome {
                    end(output, &outcome.word, &outcome.lines, target)?;
                    return Ok(if outcome.is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
                }
            }
            // Another target is deployed already, this one waits for the one before, or the controller was started again meanwhile.
            other => {
                let targets: Vec<Target> = through.document(Ask::get("/v1/targets"))?;
                let found = targets.into_iter().find(|found| found.number == target);
                let found = found.filter(|found| other.is_some() || found.state != TargetState::Pending);
                if let Some(found) = found {
                    return ended_unseen(&found, output);
                }
            }
        }
        thread::sleep(AGAIN);
    }
}

/// The end of a target's deployment whose lines are not kept any more.
fn ended_unseen(found: &Target, output: Output) -> Result<ExitCode> {
    let target = found.number;
    let (word, line) = match (found.state, &found.note) {
        (TargetState::Deployed, _) => ("deployed", format!("target {target} was deployed")),
        (_, Some(note)) => ("failed", format!("target {target} was not deployed: {note}")),
        (_, None) => ("superseded", format!("target {target} was not deployed: a later target took its place")),
    };
    end(output, word, &[line], target)?;
    let is_sound = found.state == TargetState::Deployed;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn end(output: Output, word: &str, lines: &[String], target: u64) -> Result<()> {
    match output {
        Output::Json => say!("{}", serde_json::json!({ "outcome": word, "messages": lines, "target": target })),
        Output::Person => {
            for line in lines {
                say!("{line}");
            }
        }
    }
    Ok(())
}

/// An option that says nothing to a controller, if one is given.
fn not_for_controllers(args: &cli::Deploy) -> Option<&'static str> {
    let given = [
        (args.since.is_some(), "--since"),
        (args.addresses.is_some(), "--addresses"),
        (args.dry_run, "--dry-run"),
        (args.resume, "--resume"),
        (args.undo, "--undo"),
        (args.take_over, "--take-over"),
        (!args.trust_cabling.is_empty(), "--trust-cabling"),
        (args.confirm_by_link_state, "--confirm-by-link-state"),
        (args.around_unconfirmed.is_some(), "--around-unconfirmed"),
        (!args.replaced.is_empty(), "--replaced"),
    ];
    given.into_iter().find(|(given, _)| *given).map(|(_, option)| option)
}
