//! `espalier demo`: sixteen switches in a torus against the spanning tree of the same cables, on real kernels.

use std::{process::ExitCode, thread};

use anyhow::{Context, Result};
use fabric::{
    EngineName, Plan, Policy,
    format::{report::load_json, table::Table},
    format_rate,
    generate::{Kind, Options, generate},
};
use lab::{
    LabOptions,
    measure::{Load, Measurement, Pattern, Prediction},
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use super::{
    Output,
    lab::build,
    measure::{measure_with_progress, prediction},
    say,
};
use crate::{cli, count::counted, failure::FAILED};

/// Exit code after a signal, as shells have it for an interrupt.
const INTERRUPTED: i32 = 130;

/// One plan and what it achieved.
struct Trial {
    plan: Plan,
    predicted: Prediction,
    measured: Measurement,
}

pub(super) fn run(args: &cli::Demo, output: Output) -> Result<ExitCode> {
    lab::rootless::acquire()?;
    let kind = Kind::parse("torus", &["4x4".to_owned()]).context("a valid kind")?;
    let topology = generate(&kind, &Options::default())?;
    let lab_name = format!("demo{}", std::process::id());
    clean_up_on_signals(&lab_name)?;
    let mut trials = Vec::new();
    for engine in [EngineName::Tree, EngineName::Auto] {
        let policy = Policy { engine, ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None)?;
        let report = verify::check(&plan);
        anyhow::ensure!(report.is_deployable(), "the judge refuses the plan:\n{report}");
        eprintln!(
            "{kind} by {}: {}, judged fit; building 16 switches and 16 hosts",
            plan.engine,
            counted(plan.summary.vlans, "VLAN")
        );
        trials.push(trial(&lab_name, plan, args)?);
    }
    let [tree, torus] = &trials[..] else { anyhow::bail!("two plans are tried") };
    let speedup = tree.measured.completion.as_secs_f64() / torus.measured.completion.as_secs_f64();
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({
                "trials": trials.iter().map(json).collect::<Vec<_>>(), "speedup": speedup
            })
        ),
        Output::Person => print(args, &trials, speedup)?,
    }
    let floods: u64 = trials.iter().map(|trial| trial.measured.unknown_floods).sum();
    Ok(if floods == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Builds a plan's fabric, measures it, and takes it down, whether or not that went well.
fn trial(lab_name: &str, plan: Plan, args: &cli::Demo) -> Result<Trial> {
    let lab = build(&plan, LabOptions { rate_bps: args.rate, ..LabOptions::new(lab_name) })?;
    let load = Load::new(Pattern::AllToAll, args.bytes);
    let outcome =
        prediction(&lab, &plan, &load).and_then(|predicted| Ok((predicted, measure_with_progress(&lab, &load)?)));
    lab.down()?;
    let (predicted, measured) = outcome?;
    Ok(Trial { plan, predicted, measured })
}

fn print(args: &cli::Demo, trials: &[Trial], speedup: f64) -> Result<()> {
    say!("All-to-all of 16 hosts, {} bytes a pair, real TCP over {} cables:\n", args.bytes, format_rate(args.rate));
    let mut table = Table::new(["torus 4x4", "VLANs", "hops", "max load", "predicted", "measured", "ratio", "goodput"]);
    for Trial { plan, predicted, measured } in trials {
        let (expected_s, found_s) = (predicted.completion.as_secs_f64(), measured.completion.as_secs_f64());
        table.row([
            if plan.engine == EngineName::Tree {
                "spanning tree".to_owned()
            } else {
                format!("Espalier ({})", plan.engine)
            },
            plan.summary.vlans.to_string(),
            format!("{:.2}", plan.summary.avg_hops),
            format!("{} pairs", plan.summary.max_channel_load),
            format!("{expected_s:.2} s"),
            format!("{found_s:.2} s"),
            format!("{:.2}", found_s / expected_s),
            format!("{:.0} Mbit/s", measured.total_goodput_bps() / 1e6),
        ]);
    }
    say!("{table}\n");
    let floods: u64 = trials.iter().map(|trial| trial.measured.unknown_floods).sum();
    say!("The same cables carry it {speedup:.1} times as fast; {floods} frames were flooded for want of an entry.");
    Ok(())
}

fn json(trial: &Trial) -> serde_json::Value {
    let Trial { plan, predicted, measured } = trial;
    serde_json::json!({
        "engine": plan.engine.word(), "vlans": plan.summary.vlans, "avg_hops": plan.summary.avg_hops,
        "max_channel_load": load_json(plan.summary.max_channel_load), "predicted_s": predicted.completion.as_secs_f64(),
        "measured_s": measured.completion.as_secs_f64(), "total_goodput_bps": measured.total_goodput_bps(),
        "unknown_floods": measured.unknown_floods,
    })
}

/// Takes the demo's lab down if the user interrupts it.
fn clean_up_on_signals(lab_name: &str) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("watch for signals")?;
    let lab_name = lab_name.to_owned();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            match lab::down(&lab_name) {
                Ok(()) => eprintln!("espalier: interrupted; nothing is left behind"),
                Err(error) => {
                    eprintln!("espalier: interrupted; to clean up: espalier lab --name {lab_name} down ({error})")
                }
            }
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}
