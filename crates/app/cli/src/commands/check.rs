//! `espalier check`: the independent judge.

use std::process::ExitCode;

use anyhow::Result;
use fabric::{
    Report,
    format::{plan::ReadMode, report::report_json},
};
use switch_model::format::write_moment;
use verify::Judgement;

use super::{
    Output,
    addresses::take_learned,
    observe,
    processors::processors,
    rendered::replace_devices,
    say,
    verdict::{deadlock_json, print_open, print_report},
};
use crate::{cli, failure::FAILED, files::read_plan_file};

pub(super) fn run(args: &cli::Check, output: Output) -> Result<ExitCode> {
    let mode = if args.ignore_digest { ReadMode::IgnoreDigest } else { ReadMode::Strict };
    let mut plan = read_plan_file(&args.plan, mode)?;
    let threads = args.threads.unwrap_or_else(processors);
    let mut taken_at = None;
    let judgement = match (&args.rendered, &args.observed) {
        (None, None) => verify::judge_with(&plan, threads),
        (None, Some(folder)) => {
            let controller::Replaced { mut findings, taken_at: when } = {
                let known = take_learned(&mut plan, &args.plan, args.addresses.as_ref())?;
                observe::replace_devices(&mut plan, folder, &known)?
            };
            taken_at = when;
            let judgement = verify::judge_with(&plan, threads);
            findings.extend(judgement.report.findings().iter().cloned());
            Judgement { report: Report::new(findings), ..judgement }
        }
        (Some(folder), _) => {
            let causes = replace_devices(&mut plan, folder, args)?;
            let judgement = verify::judge_with(&plan, threads);
            Judgement { report: Report::led_by(causes, judgement.report.findings().to_vec()), ..judgement }
        }
    };
    let report = &judgement.report;
    match output {
        Output::Json => {
            let mut object = serde_json::json!({
                "findings": report_json(report), "deployable": report.is_deployable(), "deadlock": deadlock_json(&judgement),
            });
            if let Some((first, last)) = taken_at {
                object["observed"] = serde_json::json!({ "first": write_moment(first), "last": write_moment(last) });
            }
            say!("{object}");
        }
        Output::Person => {
            if let Some(taken_at) = taken_at {
                say!("observed         {}", observe::age_words(taken_at));
            }
            print_open(&judgement.deadlock)?;
            print_report(report)?;
        }
    }
    Ok(if report.is_deployable() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
