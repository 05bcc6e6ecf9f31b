//! `espalier status` and `watch`: what is wrong with a fabric, and what its links carry.

mod picture;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use controller::{Fabric, Monitor};
use fabric::format::plan::ReadMode;

use super::{
    Output,
    addresses::take_learned,
    interrupt::{INTERRUPTED, Interrupt},
    reach, say,
};
use crate::{cli, failure::FAILED, files::read_plan_file};

use picture::Picture;

/// How long a program takes to notice Ctrl-C at most.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(args: &cli::Status, output: Output) -> Result<ExitCode> {
    let mut plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let known = take_learned(&mut plan, &args.plan, args.addresses.as_ref())?;
    let interrupt = Interrupt::watch()?;
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let fabric = Fabric::of(&plan, &keyring, &options, interrupt.token().for_requests())?;
    reach::warn_of_weak_algorithms(&fabric.weak());
    // Its second look is only at what may have changed since the first.
    let mut monitor = Monitor::new(&plan, &known, &fabric, Duration::MAX);
    monitor.look();
    let started = Instant::now();
    monitor.begin_interval();
    rest(started + Duration::from_secs_f64(args.interval), &interrupt);
    if !interrupt.is_pressed() {
        monitor.look();
    }
    if interrupt.is_pressed() {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "interrupted": true })),
            Output::Person => eprintln!("espalier: interrupted; not every switch was asked"),
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let picture = Picture { plan: &plan, report: monitor.report() };
    picture.show(output)?;
    Ok(if picture.report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Lets time pass, less if it is asked to stop.
fn rest(until: Instant, interrupt: &Interrupt) {
    while !interrupt.is_pressed() && Instant::now() < until {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
    }
}

pub(super) fn watch(args: &cli::Watch, output: Output) -> Result<ExitCode> {
    let mut plan = read_plan_file(&args.status.plan, ReadMode::Strict)?;
    let known = take_learned(&mut plan, &args.status.plan, args.status.addresses.as_ref())?;
    let interval = Duration::from_secs_f64(args.status.interval);
    let interrupt = Interrupt::watch_in_order()?;
    let stop = || interrupt.is_pressed();
    let (keyring, options) = (reach::keyring(&args.status.reach)?, reach::options(&args.status.reach));
    let fabric = Fabric::of(&plan, &keyring, &options, interrupt.token().for_requests())?;
    reach::warn_of_weak_algorithms(&fabric.weak());
    let mut monitor = Monitor::new(&plan, &known, &fabric, Duration::from_secs_f64(args.full_every));
    monitor.look();
    let mut done = 0;
    while !stop() && args.times.is_none_or(|times| done < times) {
        monitor.begin_interval();
        rest(Instant::now() + interval, &interrupt);
        if stop() {
            break;
        }
        monitor.look();
        // Switches that were left in the middle of a request are no finding.
        if stop() {
            break;
        }
        Picture { plan: &plan, report: monitor.report() }.show(output)?;
        if output == Output::Person {
            say!("");
        }
        done += 1;
    }
    Ok(ExitCode::SUCCESS)
}
