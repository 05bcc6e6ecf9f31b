//! `espalier status` and `watch`: what is wrong with a fabric, and what its links carry.

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use api_client::documents::FabricStatus;
use controller::{
    Fabric, Monitor,
    status_words::{status_json, status_lines},
};
use fabric::format::plan::ReadMode;
use serde_json::Value;

use super::{
    Output,
    addresses::take_learned,
    interrupt::{INTERRUPTED, Interrupt},
    reach, say,
    through::{Through, named},
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

/// How long a program takes to notice Ctrl-C at most.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(args: &cli::Status, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    if let Some(through) = asked(args, controller)? {
        // Loads are those since the poll before.
        through.fabric_status()?;
        thread::sleep(Duration::from_secs_f64(args.interval));
        let status = through.fabric_status()?;
        show(&status, output)?;
        return Ok(if status.is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
    }
    let file = named(args.plan.as_deref())?;
    let mut plan = read_plan_file(file, ReadMode::Strict)?;
    let known = take_learned(&mut plan, file, args.addresses.as_ref())?;
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
    let report = monitor.report();
    print(output, || status_lines(&plan, &report), || status_json(&plan, &report))?;
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The controller to ask, if one is named. It knows its plan and the learned addresses.
fn asked(args: &cli::Status, controller: &cli::Controller) -> Result<Option<Through>> {
    let through = Through::of(controller)?;
    if let Some(through) = &through {
        if args.addresses.is_some() {
            return Err(bad_input(
                "--addresses is for switches without a controller; espalierd enters learned addresses by itself",
            ));
        }
        if let Some(plan) = &args.plan {
            through.plan(Some(plan))?;
        }
    }
    Ok(through)
}

fn show(status: &FabricStatus, output: Output) -> Result<()> {
    print(output, || status.lines.clone(), || status.report.clone())
}

fn print(output: Output, lines: impl Fn() -> Vec<String>, json: impl Fn() -> Value) -> Result<()> {
    match output {
        Output::Json => say!("{}", json()),
        Output::Person => say!("{}", lines().join("\n")),
    }
    Ok(())
}

/// Lets time pass, less if it is asked to stop.
fn rest(until: Instant, interrupt: &Interrupt) {
    while !interrupt.is_pressed() && Instant::now() < until {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
    }
}

pub(super) fn watch(args: &cli::Watch, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    let interval = Duration::from_secs_f64(args.status.interval);
    if let Some(through) = asked(&args.status, controller)? {
        let mut done = 0;
        through.fabric_status()?;
        while args.times.is_none_or(|times| done < times) {
            thread::sleep(interval);
            show(&through.fabric_status()?, output)?;
            part(output)?;
            done += 1;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let file = named(args.status.plan.as_deref())?;
    let mut plan = read_plan_file(file, ReadMode::Strict)?;
    let known = take_learned(&mut plan, file, args.status.addresses.as_ref())?;
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
        let report = monitor.report();
        print(output, || status_lines(&plan, &report), || status_json(&plan, &report))?;
        part(output)?;
        done += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// An empty line between two statuses, for a person.
fn part(output: Output) -> Result<()> {
    if output == Output::Person {
        say!("");
    }
    Ok(())
}
