//! `espalier standby`: when a cable dies, hosts switch over as the plan stored.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::Result;
use controller::{AtEnd, StandbyRequest, StandbyResult, stand_by};
use fabric::format::plan::ReadMode;
use rollout::standby::{HoldDown, Standby};

use super::{Output, event_log::EventLog, interrupt::Interrupt, reach};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

pub(super) fn run(args: &cli::Standby, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let request = StandbyRequest {
        plan: &plan,
        interval: seconds("--interval", args.interval, 0.05..=60.0)?,
        hold: HoldDown::new(seconds("--hold", args.hold, 0.0..=86_400.0)?),
        past: &BTreeMap::new(),
        drain: seconds("--drain", args.drain, 0.05..=60.0)?,
        hints: None,
        at_end: AtEnd::Remove,
    };
    // What is wrong with the plan comes before what is wrong with the credentials.
    Standby::new(&plan, request.hold, request.drain)
        .map_err(|why| bad_input(format!("{}: {why}", args.plan.display())))?;
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let interrupt = Interrupt::watch_in_order()?;
    let log = EventLog::begin(&plan, output);
    // Whoever reads what is printed may go away; then there is nobody to stand by for.
    let mut unread = None;
    let token = interrupt.token();
    let result = stand_by(&request, (&keyring, &options), &interrupt.token(), &mut |event| {
        let told = event.words(&plan).map_or(Ok(()), |words| log.say(&words));
        if let Err(error) = told {
            unread.get_or_insert(error);
            token.cancel();
        }
    })?;
    unread.map_or_else(|| ended(&log, &result), Err)
}

fn seconds(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<Duration> {
    if !range.contains(&value) {
        return Err(bad_input(format!("{name} is between {} and {} seconds", range.start(), range.end())));
    }
    Ok(Duration::from_secs_f64(value))
}

/// Says how it ended; whether it was asked to.
fn ended(log: &EventLog<'_>, result: &StandbyResult) -> Result<ExitCode> {
    let Some(words) = result.words(log.plan) else { return Ok(ExitCode::SUCCESS) };
    match result {
        StandbyResult::Unprepared(_) | StandbyResult::Disagreement(_) => eprintln!("espalier: {}", words.text),
        _ => log.say(&words)?,
    }
    let asked = matches!(result, StandbyResult::Left(_));
    Ok(if asked { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
