//! `espalier plan`: plans, has the plan judged, prints what it achieves, writes it.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use fabric::{
    Plan, Policy, Report, Severity, Summary, VlanId, VlanPool,
    format::{
        plan::ReadMode,
        report::{report_json, summary_json},
    },
};

use super::{Output, pareto, patience::Patience, say, since};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{read_plan_file, read_topology, write_plan_file},
};

/// Findings shown to a person; the rest are counted.
const FINDINGS_SHOWN_MAX: usize = 40;

pub(super) fn run(args: &cli::Plan, output: Output) -> Result<ExitCode> {
    let topology = read_topology(&args.topology)?;
    let previous = args.previous.as_deref().map(|path| read_plan_file(path, ReadMode::Strict)).transpose()?;
    let policy = policy(args)?;
    if args.pareto {
        return pareto::run(&topology, &policy, output);
    }
    let started = Instant::now();
    let mut patience = Patience::new(&topology, &policy)?;
    let plan = planner::plan_with(&topology, &policy, previous.as_ref(), &mut patience)?;
    patience.finish();
    let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
    let report = verify::check(&plan);
    let fit = report.is_deployable();
    match output {
        Output::Json => {
            let mut object = json(&plan, &report, elapsed_ms);
            if let Some(previous) = &previous {
                object["difference"] = since::difference_json(&planner::difference(previous, &plan));
            }
            say!("{object}");
        }
        Output::Person => {
            if io::stderr().is_terminal() {
                eprintln!("planned in {elapsed_ms:.1} ms");
            }
            print_summary(&plan)?;
            if let Some(previous) = &previous {
                print_change(previous, &plan, &topology, &policy)?;
            }
            print_report(&report)?;
        }
    }
    if let Some(path) = &args.output {
        if fit || args.force {
            write_plan_file(&plan, path)?;
        } else {
            eprintln!("espalier: the plan is not written, since it is unfit to deploy; --force writes it all the same");
        }
    }
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn policy(args: &cli::Plan) -> Result<Policy> {
    let (first, last) = args
        .vlans
        .runs()
        .first()
        .zip(args.vlans.runs().last())
        .map(|(a, b)| (a.0, b.1))
        .ok_or_else(|| bad_input("--vlans names no VLAN; write a range such as 2-4094"))?;
    // Holes in the range are as good as reserved.
    let mut reserved = args.reserved_vlans.clone();
    let holes = (first.get()..=last.get()).filter_map(|id| VlanId::new(id).ok()).filter(|id| !args.vlans.contains(*id));
    reserved.extend(holes);
    Ok(Policy {
        engine: args.engine,
        tagging: args.tagging,
        flow_control: args.flow_control,
        fdb: args.fdb,
        vlans: VlanPool { first, last, reserved },
        vlans_max: args.max_vlans,
        subnet: args.subnet,
        mtu_bytes: args.mtu,
        seed: args.seed,
        time_limit: time_limit(args)?,
    })
}

fn time_limit(args: &cli::Plan) -> Result<Option<Duration>> {
    let wrong = || bad_input("--time-limit takes seconds, such as 10 or 0.5");
    args.time_limit.map(|seconds| Duration::try_from_secs_f64(seconds).map_err(|_| wrong())).transpose()
}

/// The object that `plan --json` prints.
fn json(plan: &Plan, report: &Report, elapsed_ms: f64) -> serde_json::Value {
    let mut summary = summary_json(&plan.summary);
    summary["engine"] = plan.engine.word().into();
    summary["elapsed_ms"] = elapsed_ms.into();
    serde_json::json!({ "summary": summary, "findings": report_json(report), "deployable": report.is_deployable() })
}

/// What a plan achieves, for a person.
pub(super) fn print_summary(plan: &Plan) -> Result<()> {
    let Summary { switches, hosts, links, vlans, lanes, .. } = plan.summary;
    let Summary { avg_switches_per_path, avg_hops, max_switches_per_path, .. } = plan.summary;
    let Summary { max_channel_load, load_bound, load_gap, deadlock_free, .. } = plan.summary;
    let Summary { fdb_entries_max, fdb_entries_total, .. } = plan.summary;
    let proof = match (deadlock_free, lanes) {
        (true, 1) => "proven free of deadlock on one lane".to_owned(),
        (true, lanes) => format!("proven free of deadlock on {lanes} lanes"),
        (false, _) => "routes have a cycle: keep flow control off".to_owned(),
    };
    say!("{switches} switches, {links} links, {hosts} hosts");
    say!("engine           {}, {} tagging", plan.engine, plan.policy.tagging);
    say!("VLANs            {vlans}");
    say!(
        "path             {avg_switches_per_path:.2} switches on average, {max_switches_per_path} at most; {avg_hops:.2} hops"
    );
    say!(
        "busiest channel  {max_channel_load} pairs; no routing can have less than {load_bound:.1} (gap {load_gap:.3})"
    );
    say!("flow control     {}: {proof}", plan.policy.flow_control);
    say!("static entries   {fdb_entries_max} on one switch at most, {fdb_entries_total} in all");
    Ok(())
}

/// What changes since the previous plan, and whether keeping so much of it costs too much.
fn print_change(previous: &Plan, plan: &Plan, topology: &fabric::Topology, policy: &Policy) -> Result<()> {
    let difference = planner::difference(previous, plan);
    say!("since before     {}", difference.to_string().lines().next().unwrap_or_default());
    // An engine asked for by name may need a structure that is gone; then there is nothing to compare with.
    let Ok(anew) = planner::plan(topology, policy, None) else { return Ok(()) };
    let (kept, anew) = (plan.summary.max_channel_load, anew.summary.max_channel_load);
    if kept as f64 > anew as f64 * planner::REPLAN_LOAD_FACTOR {
        say!("                 a plan made anew would have {anew} pairs on its busiest channel instead of {kept};");
        say!("                 plan without --previous if that is worth more changes");
    }
    Ok(())
}

/// What the judge found, for a person.
pub(super) fn print_report(report: &Report) -> Result<()> {
    let [fatal, warnings, notes] = [Severity::Fatal, Severity::Warning, Severity::Note].map(|s| report.count(s));
    let verdict = if fatal == 0 { "fit to deploy" } else { "UNFIT to deploy" };
    say!("judge            {verdict}: {fatal} fatal, {warnings} warnings, {notes} notes");
    for finding in report.findings().iter().take(FINDINGS_SHOWN_MAX) {
        say!("  {finding}");
    }
    if let Some(more) = report.findings().len().checked_sub(FINDINGS_SHOWN_MAX).filter(|more| *more > 0) {
        say!("  … and {more} more; --json lists all");
    }
    Ok(())
}
