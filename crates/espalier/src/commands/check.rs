//! `espalier check`: the independent judge.

use std::{num::NonZero, process::ExitCode, thread};

use anyhow::Result;
use device::format::write_moment;
use fabric::{
    Report,
    format::{plan::ReadMode, report::report_json},
};
use verify::Judgement;

use super::{
    Output, observe,
    plan::{deadlock_json, print_open, print_report},
    rendered::replace_devices,
    say,
};
use crate::{cli, failure::FAILED, files::read_plan_file};

pub(super) fn run(args: &cli::Check, output: Output) -> Result<ExitCode> {
    let mode = if args.ignore_digest { ReadMode::IgnoreDigest } else { ReadMode::Strict };
    let mut plan = read_plan_file(&args.plan, mode)?;
    let threads = args.threads.unwrap_or_else(processors);
    let mut taken_at = None;
    let (report, deadlock) = match (&args.rendered, &args.observed) {
        (None, None) => {
            let Judgement { report, deadlock } = verify::judge_with(&plan, threads);
            (report, deadlock)
        }
        (None, Some(folder)) => {
            let observe::Replaced { mut findings, taken_at: when } = observe::replace_devices(&mut plan, folder)?;
            taken_at = when;
            let Judgement { report, deadlock } = verify::judge_with(&plan, threads);
            findings.extend(report.findings().iter().cloned());
            (Report::new(findings), deadlock)
        }
        (Some(folder), _) => {
            let causes = replace_devices(&mut plan, folder, args)?;
            let Judgement { report, deadlock } = verify::judge_with(&plan, threads);
            (Report::led_by(causes, report.findings().to_vec()), deadlock)
        }
    };
    match output {
        Output::Json => {
            let mut object = serde_json::json!({ "findings": report_json(&report), "deployable": report.is_deployable(), "deadlock": deadlock_json(&deadlock) });
            if let Some((first, last)) = taken_at {
                object["observed"] = serde_json::json!({ "first": write_moment(first), "last": write_moment(last) });
            }
            say!("{object}");
        }
        Output::Person => {
            if let Some(taken_at) = taken_at {
                say!("observed         {}", observe::age_words(taken_at));
            }
            print_open(&deadlock)?;
            print_report(&report)?;
        }
    }
    Ok(if report.is_deployable() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// How many threads run at the same time on this machine.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
