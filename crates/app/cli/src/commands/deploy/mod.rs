//! `espalier deploy`: a plan on its switches, all of them or none.

mod around;
mod dry_run;
mod findings;
mod floods;
mod mtu;
mod probe;
mod route;
mod scene;
mod sentences;
mod state;
mod survey;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Result;
use cancel::Cancel;
use fabric::{
    Plan,
    format::plan::{ReadMode, plan_digest},
};
use rollout::deploy::{Deployment, Journal, Management, Order, Outcome, Precedence, Watch, Way, run as run_deployment};
use switch_model::{SwitchConfig, mark::Mark};

use self::{
    around::plan_around,
    dry_run::{Rehearsal, dry_run},
    findings::{refusal, remarks, survey_json},
    route::Route,
    scene::{Progress, Scene},
    sentences::{sentences, sound, word},
    state::State,
    survey::Looked,
};
use super::{
    Output,
    controller::{self, Connected, Reached, Ways},
    interrupt::{INTERRUPTED, Interrupt},
    say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

/// Bounds of how long a switch may be cut off before it takes a change back.
const DEADLINE_MIN: Duration = Duration::from_secs(2);
const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// How long floods are watched after the last ports have opened, where hosts are too quiet for more to be seen.
const FLOODS_MIN: Duration = Duration::from_millis(60);

pub(super) fn run(args: &cli::Deploy, output: Output) -> Result<ExitCode> {
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
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(bad_input(format!("{} is not fit to deploy; see espalier check", args.plan.display())));
    }
    let mut route = Route::new(&plan, args)?;
    let parallel = args.reach.parallel;
    let topology = route.topology.clone();
    let interrupt = Interrupt::watch_in_order()?;
    // Until the first write there is nothing to take back: whoever asks to stop ends every request.
    let stop = interrupt.cancel();
    let ways = Ways::new(&topology, route.mark_vlan(), &args.reach, stop.clone())?;
    let mut devices = ways.connect_all();
    floods::refuse_untold(&plan, &topology, &devices)?;
    let digest = plan_digest(&plan)?;
    let digest = u32::from_str_radix(digest.get(..8).unwrap_or("0"), 16).unwrap_or(0);
    if args.dry_run {
        let mut looked = Looked::new(&plan, &route, &ways, &mut devices, args)?;
        looked.shut_in(&mut route);
        let parked = ways.include_all_unmanaged(&mut devices, &route.vlans());
        if interrupt.is_pressed() {
            return stopped(output);
        }
        tell_parked(&route, &parked);
        tell_mtus(&plan, &route, &mut looked, &mut devices, parallel);
        return dry_run(&plan, &route, devices, &Rehearsal { parked: &parked, looked: &looked, digest }, args, output)
            .map(Attempt::Ended);
    }
    let state = State::open(&args.state)?;
    let mut resume = match (args.resume || args.undo || args.take_over, state.journal()?) {
        (true, None) if args.resume || args.undo => {
            return Err(bad_input(format!(
                "{} holds no interrupted deployment: there is nothing to go on with or to take back",
                args.state.display()
            )));
        }
        (false, Some(journal)) => return Err(bad_input(interrupted(args, &journal, &mut devices))),
        (_, journal) => journal,
    };
    let mut looked = Looked::new(&plan, &route, &ways, &mut devices, args)?;
    if interrupt.is_pressed() {
        return stopped(output);
    }
    if args.confirm_by_link_state && looked.survey.misfits.is_empty() && !looked.partial {
        // A port that is shut for it is opened again, whoever asks to stop.
        set_cancel(&mut devices, &Cancel::default());
        for line in probe::confirm(&mut looked, &route, &mut devices, &interrupt, parallel) {
            eprintln!("{line}");
        }
        looked.decide(&plan, &route);
        set_cancel(&mut devices, &stop);
    }
    if let (Some(file), Way::Drained, []) = (&args.around_unconfirmed, &route.way, looked.survey.misfits.as_slice()) {
        if looked.unfit.is_some() && !looked.partial {
            let cost = plan_around(&plan, &looked.shut, file)?;
            eprintln!("{cost}");
            return Ok(Attempt::PlannedAround(file.clone()));
        }
    }
    if looked.refuses(&route.way) {
        let lines = refusal(&looked, &plan, &route, args);
        end(output, "refused", &lines, survey_json(&looked, &route))?;
        return Ok(Attempt::Ended(ExitCode::from(FAILED)));
    }
    for line in remarks(&looked, &route) {
        eprintln!("{line}");
    }
    looked.shut_in(&mut route);
    // One that was interrupted has them in its journal: they may be parked already.
    let further = resume.as_ref().map(|journal| further_ports(&route, journal, args));
    let parked = match further {
        Some(Ok(names)) => {
            controller::include_named(&mut devices, &names, parallel);
            names
        }
        Some(Err(why)) if !args.take_over || args.undo => {
            return Err(bad_input(format!("{}: {why}", args.state.display())));
        }
        further => {
            if let Some(Err(why)) = further {
                let aside = state.set_aside()?;
                eprintln!("espalier: {why}; its journal is {} now", aside.display());
                resume = None;
            }
            ways.include_all_unmanaged(&mut devices, &route.vlans())
        }
    };
    if interrupt.is_pressed() {
        return stopped(output);
    }
    tell_parked(&route, &parked);
    tell_mtus(&plan, &route, &mut looked, &mut devices, parallel);
    let surveyed = survey_json(&looked, &route);
    let refused = refused_writes(&route, &mut devices, &parked, digest);
    if !refused.is_empty() {
        end(output, "refused", &refused, surveyed)?;
        return Ok(Attempt::Ended(ExitCode::from(FAILED)));
    }
    let cables = looked.cables(&topology);
    let Route { goals, way, management, sequence, .. } = route;
    let guard = Duration::try_from_secs_f64(args.deadline)
        .map_err(|_| bad_input("--deadline takes seconds, such as 90"))?
        .clamp(DEADLINE_MIN, DEADLINE_MAX);
    if management != Management::OutOfBand {
        devices.iter_mut().flatten().for_each(|device| device.set_patience(guard));
    }
    let mut order = Order {
        goals,
        way,
        digest,
        nonce: controller::fresh_number() as u32,
        generation: state.generation()?,
        precedence: if args.take_over { Precedence::TakeOver } else { Precedence::GiveWay },
        claims: state.claims()?,
        resume,
        management,
        guard: Some(guard),
        sequence,
        parallel_max: parallel,
        watch: Some(Watch { cables, cables_max: Duration::from_secs_f64(args.cable_wait), floods_min: FLOODS_MIN }),
    };
    order.park(&parked);
    let cancel = Cancel::default();
    set_cancel(&mut devices, &cancel);
    let mut deployment = Deployment::new(&topology, order);
    let mut scene = Scene { plan: &plan, topology: &topology, state: &state, interrupt, progress: Progress::new() };
    let outcome = run_deployment(&mut deployment, controller::drivers(&mut devices), &mut scene, &cancel);
    match &outcome {
        Outcome::Deployed { .. } | Outcome::RolledBack { .. } => {
            state.know(deployment.mark_left())?;
            state.finish()?;
        }
        // What was claimed and then left alone bears our mark all the same.
        Outcome::Refused(_) | Outcome::Stranded { .. } | Outcome::Quenched { .. } => {
            state.know(deployment.mark_left())?
        }
        Outcome::Unchanged | Outcome::Stale { .. } | Outcome::Superseded { .. } => {}
    }
    let (word, fine) = (word(&outcome), matches!(&outcome, Outcome::Unchanged) || sound(&outcome));
    let lines = sentences(&topology, &outcome, args);
    end(output, word, &lines, surveyed)?;
    Ok(Attempt::Ended(if fine { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }))
}

/// Says that somebody asked to stop before anything was written.
fn stopped(output: Output) -> Result<Attempt> {
    end(output, "interrupted", &["interrupted; nothing was written".to_owned()], serde_json::Value::Null)?;
    Ok(Attempt::Ended(ExitCode::from(INTERRUPTED)))
}

fn set_cancel(devices: &mut [Connected], cancel: &Cancel) {
    devices.iter_mut().flatten().for_each(|device| device.set_cancel(cancel));
}

/// What switches would refuse on the way to the plan, so that nothing is written anywhere: ports whose settings are not all
/// understood, and states that a language has no words for. Of those over SSH alone, whose lines are known beforehand.
fn refused_writes(route: &Route, devices: &mut [Connected], parked: &[Vec<String>], digest: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for ((switch, device), parked) in route.topology.switch_ids().zip(devices).zip(parked) {
        let Ok(Reached::CommandLine(device)) = device else { continue };
        let Some(found) = device.held().cloned() else { continue };
        let states = route.states(switch, &found, parked).into_iter().map(|(_, state)| state);
        let mut before = found;
        for state in states {
            match device.rehearse(&before, &state, Mark::new(0, 0, digest), None) {
                Ok(_) => before = state,
                Err(fault) => {
                    lines.push(format!("  {}: {fault}", route.topology.switch(switch).name));
                    break;
                }
            }
        }
    }
    if !lines.is_empty() {
        lines.insert(0, "nothing was written: these switches would refuse what the plan asks of them".to_owned());
    }
    lines
}

/// Prints how it came out.
fn end(output: Output, word: &str, lines: &[String], survey: serde_json::Value) -> Result<()> {
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

/// Says what of the ports' MTU is not as the plan needs it. What is taken back goes to a state that is not the plan's.
fn tell_mtus(plan: &Plan, route: &Route, looked: &mut Looked, devices: &mut [Connected], parallel: usize) {
    if !matches!(route.way, Way::Undo) {
        let mtus = mtu::ask(devices, parallel);
        looked.small_mtus = mtu::small(plan, &mtus);
        mtu::lines(plan, &looked.small_mtus, &mtus).iter().for_each(|line| eprintln!("{line}"));
    }
}

/// Says which unmanaged ports go out of service.
fn tell_parked(route: &Route, parked: &[Vec<String>]) {
    for (switch, names) in route.topology.switches().iter().zip(parked).filter(|(_, names)| !names.is_empty()) {
        let (ports, members, they) = match names.len() {
            1 => ("port", "is not in the plan but is a member", "it"),
            _ => ("ports", "are not in the plan but are members", "they"),
        };
        eprintln!(
            "espalier: warning: {}: {ports} {} {members} of VLANs that the plan uses; {they} will be removed from them and shut \
             down",
            switch.name,
            names.join(", ")
        );
    }
}

/// Why a deployment does not begin while another one's journal is there, and the command that goes on.
fn interrupted(args: &cli::Deploy, journal: &Journal, devices: &mut [Connected]) -> String {
    let (folder, plan) = (args.state.display(), args.plan.display());
    let generation = journal.mark.generation;
    let marks = controller::at_once(devices.iter_mut().collect(), args.reach.parallel, |device| {
        device.as_mut().ok()?.driver().read().ok()?.mark
    });
    match marks.into_iter().flatten().max().filter(|found| *found > journal.mark) {
        Some(found) => format!(
            "{folder} holds an interrupted deployment (generation {generation}), and another one (generation {}) has begun \
             since; go ahead from here with espalier deploy {plan} --take-over",
            found.generation
        ),
        None => format!(
            "{folder} holds an interrupted deployment (generation {generation}); go on with espalier deploy {plan} \
             --resume, or take it back with --undo"
        ),
    }
}

/// The ports in a journal that the plan does not name.
///
/// # Errors
/// Why the journal is not of this plan's switches.
fn further_ports(route: &Route, journal: &Journal, args: &cli::Deploy) -> Result<Vec<Vec<String>>, String> {
    let way_out = match args.take_over && !args.undo {
        true => "what the switches held before it is not known to this plan",
        false => "give the plan that was interrupted, or leave its journal behind with --take-over alone",
    };
    if journal.backup.len() != route.goals.len() {
        return Err(format!(
            "the interrupted deployment was of {} switches, and the plan has {}; {way_out}",
            journal.backup.len(),
            route.goals.len()
        ));
    }
    let one = |((switch, goal), backup): ((&fabric::Switch, &SwitchConfig), &Arc<SwitchConfig>)| {
        let known = |config: &SwitchConfig, name: &str| config.slot(name).is_some();
        if let Some(port) = goal.ports.iter().find(|port| !known(backup, &port.name)) {
            return Err(format!("the interrupted deployment did not know {}:{}; {way_out}", switch.name, port.name));
        }
        let further = backup.ports.iter().filter(|port| !known(goal, &port.name));
        Ok(further.map(|port| port.name.clone()).collect())
    };
    route.topology.switches().iter().zip(&route.goals).zip(&journal.backup).map(one).collect()
}
