//! `espalier observe`, and the folders that it writes.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use controller::{Fabric, Observation, Observations, Replaced, observe, write_observations};
use fabric::{HostId, Mac, Plan, VlanSet, format::plan::ReadMode};
use rollout::diagnose::span;
use switch_model::{
    format::write_moment,
    observe::{SMALL_MTU_WAY_OUT, small_mtus},
};

use super::{
    Output,
    interrupt::{INTERRUPTED, Interrupt},
    reach, say,
    through::{Through, named},
};
use crate::{cli, failure::FAILED, files::read_plan_file};

pub(super) fn run(args: &cli::Observe, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    if let Some(through) = Through::of(controller)? {
        let plan = through.plan(args.plan.as_deref())?;
        let observations = through.observe(&plan, args.reach.parallel)?;
        return conclude(args, &plan, &observations, output);
    }
    let plan = read_plan_file(named(args.plan.as_deref())?, ReadMode::Strict)?;
    let interrupt = Interrupt::watch()?;
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let fabric = Fabric::of(&plan, &keyring, &options, interrupt.token().for_requests())?;
    reach::warn_of_weak_algorithms(&fabric.weak());
    // A folder that cannot be written to is found before any switch is asked.
    fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
    let observations = observe(&plan, &fabric, &interrupt.token());
    // What some switches hold now and others held some other time is no state that the fabric was ever in.
    if interrupt.is_pressed() {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "observed": 0, "failed": [], "interrupted": true })),
            Output::Person => eprintln!("espalier: interrupted; {} is as it was", args.output.display()),
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    conclude(args, &plan, &observations, output)
}

/// Writes what was observed, and says so.
fn conclude(args: &cli::Observe, plan: &Plan, observations: &[Observation], output: Output) -> Result<ExitCode> {
    write_observations(&args.output, plan, observations)?;
    let (mut small, mut failed) = (Vec::new(), Vec::new());
    for (switch, observation) in plan.topology.switch_ids().zip(observations) {
        let fault = match observation {
            Observation::Held(observed) => {
                let mtus: Vec<Option<u16>> = observed.state.ports.iter().map(|port| port.mtu_bytes).collect();
                small.extend(small_mtus(&plan.devices[switch.index()], &mtus));
                continue;
            }
            Observation::Failed(fault) => fault.clone(),
            Observation::NotAsked => "was not asked".to_owned(),
        };
        failed.push((plan.topology.switch(switch).name.clone(), fault));
    }
    let seen = plan.topology.switches().len() - failed.len();
    match output {
        Output::Json => say!("{}", serde_json::json!({ "observed": seen, "failed": failed })),
        Output::Person => {
            say!("{seen} of {} switches observed into {}", plan.topology.switches().len(), args.output.display())
        }
    }
    for (name, fault) in &failed {
        eprintln!("espalier: {name} {fault}");
    }
    for port in &small {
        eprintln!("espalier: warning: {}; {SMALL_MTU_WAY_OUT}", port.sentence(&plan.topology));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The VLANs that switches use, from the files that `observe` wrote of them; VLAN 1 is not among them.
///
/// # Errors
/// Bad input if the folder or a file of it cannot be read, or there is no file.
pub(super) fn observed_vlans(folder: &Path) -> Result<VlanSet> {
    Ok(Observations::read(folder)?.vlans()?)
}

/// Replaces the plan's devices by what the switches said, where addresses that were learned are known, and returns what can be said of each by itself.
///
/// # Errors
/// Bad input if the folder or a file of it cannot be read, or a switch is missing.
pub(super) fn replace_devices(plan: &mut Plan, folder: &Path, known: &BTreeMap<Mac, HostId>) -> Result<Replaced> {
    Ok(Observations::read(folder)?.replace_devices(plan, known)?)
}

/// How long ago switches were observed, for a person.
pub(super) fn age_words((first, last): (u64, u64)) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let ago = |moment: u64| span(Duration::from_secs(now_s.saturating_sub(moment)));
    let (first_ago, last_ago) = (ago(first), ago(last));
    let when = if first_ago == last_ago { first_ago } else { format!("{last_ago} to {first_ago}") };
    format!("{when} ago ({})", write_moment(last))
}
