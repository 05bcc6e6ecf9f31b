//! `espalier deploy`: a plan on its switches, all of them or none.

mod command;
mod dry_run;
mod survey;
mod through;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use controller::{
    DeployEvent, DeployRequest, DeployResult, FolderStore, OtherJournal, Rehearsal, Start, Surveyed, Trial,
    Unconfirmable, deploy,
    deploy_words::{DeployLines, end_words},
    rehearse,
};
use fabric::{HostId, LinkId, Mac, Plan, format::plan::ReadMode};
use rollout::deploy::Precedence;

use self::{command::way_on, dry_run::dry_run, survey::survey_json};
use super::{
    Output, addresses,
    interrupt::{INTERRUPTED, Interrupt},
    reach, say,
    through::Through,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{read_plan_file, write_plan_file},
};

pub(super) fn run(args: &cli::Deploy, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    if let Some(through) = Through::of(controller)? {
        return through::deploy(args, &through, output);
    }
    match attempt(args, output)? {
        Attempt::Ended(code) => Ok(code),
        Attempt::PlannedAround(file) => {
            let args = cli::Deploy { plan: file, around_unconfirmed: None, ..args.clone() };
            match attempt(&args, output)? {
                Attempt::Ended(code) => Ok(code),
                Attempt::PlannedAround(_) => Ok(ExitCode::from(FAILED)),
            }
        }
    }
}

/// How an attempt to deploy came out.
enum Attempt {
    /// It came to its end.
    Ended(ExitCode),
    /// This plan is to be deployed instead, which does without cables that nothing confirms.
    PlannedAround(PathBuf),
}

fn attempt(args: &cli::Deploy, output: Output) -> Result<Attempt> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let since = args.since.as_deref().map(|since| read_plan_file(since, ReadMode::Strict)).transpose()?;
    let learned = match (&args.since, &since) {
        _ if args.undo => BTreeMap::new(),
        (Some(path), Some(old)) => addresses::learned(old, path, args.addresses.as_ref())?,
        _ => addresses::learned(&plan, &args.plan, args.addresses.as_ref())?,
    };
    let hosts_program: Vec<String> = args.hosts_program.iter().map(|path| path.display().to_string()).collect();
    let request = request(args, (&plan, since.as_ref()), &hosts_program, &learned)?;
    let interrupt = Interrupt::watch_in_order()?;
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let mut lines = DeployLines::new(&plan);
    let mut print = |event: DeployEvent<'_>| lines.of(&event).iter().for_each(|line| eprintln!("{line}"));
    if args.dry_run {
        return match rehearse(&request, (&keyring, &options), &interrupt.token(), &mut print)? {
            Rehearsal::Unfit => Err(unfit(args)),
            Rehearsal::Interrupted => stopped(output),
            Rehearsal::Rehearsed { surveyed, stages } => {
                dry_run(&plan, &surveyed, stages, args, output).map(Attempt::Ended)
            }
        };
    }
    let store = FolderStore::open(&args.state)?;
    let failed = Attempt::Ended(ExitCode::from(FAILED));
    let result = deploy(&request, (&keyring, &options), &store, &interrupt.token(), &mut print)?;
    let ended = end_words(&result, &plan, &way_on(args));
    match result {
        DeployResult::Unfit => Err(unfit(args)),
        DeployResult::Interrupted => stopped(output),
        DeployResult::NothingInterrupted => Err(bad_input(format!(
            "{} holds no interrupted deployment: there is nothing to go on with or to take back",
            args.state.display()
        ))),
        DeployResult::JournalHeld { generation, newer } => Err(bad_input(journal_held(args, generation, newer))),
        DeployResult::OtherJournal(why) => Err(bad_input(other_journal(args, &why))),
        DeployResult::PlannedAround(new, links) => {
            let Some(file) = &args.around_unconfirmed else { return Ok(failed) };
            write_plan_file(&new, file)?;
            addresses::record_beside(&new, file, &learned)?;
            let named: Vec<String> = links.iter().map(|link: &LinkId| plan.topology.link_label(*link)).collect();
            eprintln!(
                "{}: a plan without {}: maximum channel load {} host pairs, {} before",
                file.display(),
                named.join(", "),
                new.summary.max_channel_load,
                plan.summary.max_channel_load
            );
            Ok(Attempt::PlannedAround(file.clone()))
        }
        DeployResult::Refused(Surveyed { route, looked })
        | DeployResult::Unwritable(Surveyed { route, looked }, _)
        | DeployResult::Ended(Surveyed { route, looked }, ..) => {
            let Some(end) = ended else { return Ok(failed) };
            if end.is_sound && !args.undo {
                addresses::record_beside(&plan, &args.plan, route.plan.known())?;
            }
            print_end(output, end.word, &end.lines, &survey_json(&looked, &route))?;
            Ok(if end.is_sound { Attempt::Ended(ExitCode::SUCCESS) } else { failed })
        }
    }
}

/// What the command line asks for.
fn request<'a>(
    args: &'a cli::Deploy,
    (plan, since): (&'a Plan, Option<&'a Plan>),
    hosts_program: &'a [String],
    learned: &'a BTreeMap<Mac, HostId>,
) -> Result<DeployRequest<'a>> {
    Ok(DeployRequest {
        plan,
        since,
        hosts_program,
        learned,
        start: match (args.resume, args.undo) {
            (_, true) => Start::Undo,
            (true, false) => Start::Resume,
            (false, false) => Start::Fresh,
        },
        precedence: if args.take_over { Precedence::TakeOver } else { Precedence::GiveWay },
        replaced: &args.replaced,
        trusted: &args.trust_cabling,
        unconfirmed: match args.around_unconfirmed {
            Some(_) => Unconfirmable::PlanAround,
            None => Unconfirmable::Refuse,
        },
        trial: if args.confirm_by_link_state { Trial::ByLinkState } else { Trial::Never },
        guard: Duration::try_from_secs_f64(args.deadline)
            .map_err(|_| bad_input("--deadline takes seconds, such as 90"))?,
        cable_wait: Duration::from_secs_f64(args.cable_wait),
    })
}

fn unfit(args: &cli::Deploy) -> anyhow::Error {
    bad_input(format!("{} is not fit to deploy; see espalier check", args.plan.display()))
}

/// Says that somebody asked to stop before anything was written.
fn stopped(output: Output) -> Result<Attempt> {
    print_end(output, "interrupted", &["interrupted; nothing was written".to_owned()], &serde_json::Value::Null)?;
    Ok(Attempt::Ended(ExitCode::from(INTERRUPTED)))
}

/// Prints how it came out.
fn print_end(output: Output, word: &str, lines: &[String], survey: &serde_json::Value) -> Result<()> {
    match output {
        Output::Json => say!("{}", serde_json::json!({ "outcome": word, "messages": lines, "survey": survey })),
        Output::Person => {
            for line in lines {
                say!("{line}");
            }
        }
    }
    Ok(())
}

/// Why a deployment does not begin while another one's journal is there, and the command that goes on.
fn journal_held(args: &cli::Deploy, generation: u32, newer: Option<u32>) -> String {
    let (folder, plan) = (args.state.display(), args.plan.display());
    match newer {
        Some(newer) => format!(
            "{folder} holds an interrupted deployment (generation {generation}), and another one (generation {newer}) has begun \
             since; go ahead from here with espalier deploy {plan} --take-over"
        ),
        None => format!(
            "{folder} holds an interrupted deployment (generation {generation}); go on with espalier deploy {plan} \
             --resume, or take it back with --undo"
        ),
    }
}

/// Why a journal is of no use to this plan, and the way out.
fn other_journal(args: &cli::Deploy, why: &OtherJournal) -> String {
    let way_out = match args.take_over && !args.undo {
        true => "what the switches held before it is not known to this plan",
        false => "give the plan that was interrupted, or leave its journal behind with --take-over alone",
    };
    format!("{}: {}; {way_out}", args.state.display(), why.sentence())
}
