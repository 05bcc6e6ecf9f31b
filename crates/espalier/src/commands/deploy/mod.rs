//! `espalier deploy`: a plan on its switches, all of them or none.

mod dry_run;
mod route;
mod scene;
mod sentences;
mod state;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Result;
use device::{
    SwitchConfig,
    deploy::{Deployment, Journal, Management, Order, Outcome, run as run_deployment},
};
use fabric::format::plan::{ReadMode, plan_digest};

use self::{
    dry_run::dry_run,
    route::Route,
    scene::Scene,
    sentences::{sentences, sound, word},
    state::State,
};
use super::{
    Output,
    controller::{self, Ways},
    interrupt::Interrupt,
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

pub(super) fn run(args: &cli::Deploy, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(bad_input(format!("{} is not fit to deploy; see espalier check", args.plan.display())));
    }
    let route = Route::new(&plan, args)?;
    let parallel = args.reach.parallel;
    let mut devices = Ways::new(&route.topology, route.mark_vlan(), &args.reach)?.connect_all();
    let digest = plan_digest(&plan)?;
    let digest = u32::from_str_radix(digest.get(..8).unwrap_or("0"), 16).unwrap_or(0);
    if args.dry_run {
        let parked = controller::adopt_strangers(&mut devices, &route.vlans(), parallel);
        tell_parked(&route, &parked);
        return dry_run(&route, devices, &parked, digest, parallel, output);
    }
    let state = State::open(&args.state)?;
    let resume = match (args.resume || args.undo, state.journal()?) {
        (true, None) => return Err(bad_input(format!("{} holds no interrupted deployment", args.state.display()))),
        (false, Some(_)) => {
            return Err(bad_input(format!(
                "{} holds an interrupted deployment; go on with --resume, or take it back with --undo",
                args.state.display()
            )));
        }
        (_, journal) => journal,
    };
    // One that was interrupted has them in its journal: they may be parked already.
    let parked = match &resume {
        Some(journal) => {
            let names =
                further_ports(&route, journal).map_err(|why| bad_input(format!("{}: {why}", args.state.display())))?;
            controller::adopt_named(&mut devices, &names, parallel);
            names
        }
        None => controller::adopt_strangers(&mut devices, &route.vlans(), parallel),
    };
    tell_parked(&route, &parked);
    let Route { topology, goals, way, management, sequence } = route;
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
        generation: if args.take_over { None } else { state.generation()? },
        claims: state.claims()?,
        resume,
        management,
        guard: Some(guard),
        sequence,
        parallel_max: parallel,
    };
    order.park(&parked);
    let interrupt = Interrupt::watch_in_order()?;
    let mut deployment = Deployment::new(&topology, order);
    let mut scene = Scene { plan: &plan, state: &state, interrupt };
    let outcome = run_deployment(&mut deployment, controller::drivers(&mut devices), &mut scene);
    match &outcome {
        Outcome::Deployed { .. } | Outcome::RolledBack { .. } => {
            state.know(deployment.mark_left())?;
            state.finish()?;
        }
        // What was claimed and then left alone bears our mark all the same.
        Outcome::Refused(_) | Outcome::Stranded { .. } => state.know(deployment.mark_left())?,
        Outcome::Unchanged | Outcome::Stale { .. } | Outcome::Superseded { .. } => {}
    }
    let (word, fine) = (word(&outcome), matches!(&outcome, Outcome::Unchanged) || sound(&outcome));
    let lines = sentences(&plan, &outcome, args);
    match output {
        Output::Json => say!("{}", serde_json::json!({ "outcome": word, "messages": lines })),
        Output::Person => {
            for line in &lines {
                say!("{line}");
            }
        }
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Says which ports go out of service that the plan says nothing of.
fn tell_parked(route: &Route, parked: &[Vec<String>]) {
    for (switch, names) in route.topology.switches().iter().zip(parked).filter(|(_, names)| !names.is_empty()) {
        eprintln!(
            "espalier: {}: no port of the plan, but in VLANs that it is about: {}; taken out of them, and shut",
            switch.name,
            names.join(", ")
        );
    }
}

/// The ports in a journal that the plan does not name.
///
/// # Errors
/// Why the journal is not of this plan's switches.
fn further_ports(route: &Route, journal: &Journal) -> Result<Vec<Vec<String>>, String> {
    let way_out = "resume or undo with the plan that was interrupted";
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
