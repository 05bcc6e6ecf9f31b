//! `espalier addresses`: addresses that switches have learned at hypervisors' ports, entered everywhere.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use controller::{AddressesMode, AddressesRequest, AddressesResult, keep_addresses};
use fabric::{HostId, Mac, Plan, format::plan::ReadMode};
use rollout::addresses::{Places, Record, parse_record, with_learned, write_record};

use super::{Output, event_log::EventLog, interrupt::Interrupt, reach};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{read_plan_file, read_text, write_file},
};

pub(super) fn run(args: &cli::Addresses, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    // What is wrong with the plan comes before what is wrong with the credentials.
    Places::of(&plan).map_err(|why| bad_input(format!("{}: {why}", args.plan.display())))?;
    let file = args.state.clone().unwrap_or_else(|| beside(&args.plan));
    let record = read_record(&plan, &file, Absent::IsEmpty)?;
    tell_strange(&record, &file);
    let mode = if args.follow { AddressesMode::Follow } else { AddressesMode::Once };
    let seconds = Duration::from_secs_f64;
    let (interval, age) = (seconds(args.interval), seconds(args.age));
    let request = AddressesRequest { plan: &plan, known: &record.known, interval, age, mode };
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let interrupt = Interrupt::watch_in_order()?;
    let token = interrupt.token();
    let log = EventLog::begin(&plan, output);
    // Whoever reads what is printed may go away; then nobody learns what happens, and it ends.
    let mut unread = None;
    let mut remember = |known: &BTreeMap<Mac, HostId>| {
        keep_record(&plan, known, &file).map_err(|error| controller::Error::Request(error.to_string()))
    };
    let result = keep_addresses(&request, (&keyring, &options), &interrupt.token(), &mut remember, &mut |event| {
        if let Err(error) = event.words(&plan).iter().try_for_each(|words| log.say(words)) {
            unread.get_or_insert(error);
            token.cancel();
        }
    })?;
    unread.map_or_else(|| ended(&log, &result), Err)
}

/// The addresses that `espalier addresses` has recorded of a plan whose entries a deployment keeps. The file is the one beside the plan
/// unless another is named; without it there are none.
///
/// # Errors
/// Bad input if a file that is named cannot be read, or says what makes no sense.
pub(super) fn learned(plan: &Plan, path: &Path, file: Option<&PathBuf>) -> Result<BTreeMap<Mac, HostId>> {
    if plan.topology.learning_hosts().next().is_none() {
        return match file {
            None => Ok(BTreeMap::new()),
            Some(_) => Err(bad_input(format!("{}: no port of the plan has addresses: learned", path.display()))),
        };
    }
    let absent = if file.is_some() { Absent::IsError } else { Absent::IsEmpty };
    let file = file.cloned().unwrap_or_else(|| beside(path));
    let record = read_record(plan, &file, absent)?;
    tell_strange(&record, &file);
    Ok(record.known)
}

/// Records the addresses whose entries a deployment has written beside its plan, where the next run finds them: `known`, and no others.
///
/// # Errors
/// The file cannot be written.
pub(super) fn record_beside(plan: &Plan, path: &Path, known: &BTreeMap<Mac, HostId>) -> Result<()> {
    let file = beside(path);
    let is_stale = || plan.topology.learning_hosts().next().is_some() && file.exists();
    if known.is_empty() && !is_stale() { Ok(()) } else { keep_record(plan, known, &file) }
}

fn keep_record(plan: &Plan, known: &BTreeMap<Mac, HostId>, file: &Path) -> Result<()> {
    let text = write_record(&plan.topology, known);
    write_file(file, |out| out.write_all(text.as_bytes()))
}

fn tell_strange(record: &Record, file: &Path) {
    for (mac, host) in &record.strange {
        eprintln!("espalier: {}: {host} learns no addresses in this plan; {mac} is left out", file.display());
    }
}

/// Puts the addresses that [`learned`] returns into a plan, and returns them.
///
/// # Errors
/// As [`learned`].
pub(super) fn take_learned(plan: &mut Plan, path: &Path, file: Option<&PathBuf>) -> Result<BTreeMap<Mac, HostId>> {
    let known = learned(plan, path, file)?;
    *plan = with_learned(plan, &known);
    Ok(known)
}

/// Whether there may be no record yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    IsEmpty,
    IsError,
}

fn read_record(plan: &Plan, file: &Path, absent: Absent) -> Result<Record> {
    let is_absent = std::fs::metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if is_absent && absent == Absent::IsEmpty {
        return Ok(Record::default());
    }
    let (name, text) = read_text(file)?;
    parse_record(&plan.topology, &text)
        .map_err(|why| bad_input(format!("{name}: {why}; remove it to start with what the switches have learned")))
}

/// The record of a plan's addresses: `plan.addresses.json` beside `plan.json`.
fn beside(plan: &Path) -> PathBuf {
    plan.with_extension("addresses.json")
}

/// Says how it ended; whether all is as it should be.
fn ended(log: &EventLog<'_>, result: &AddressesResult) -> Result<ExitCode> {
    let Some(words) = result.words(log.plan) else { return Ok(ExitCode::SUCCESS) };
    match result {
        AddressesResult::Nothing(_) | AddressesResult::Unfit(_) | AddressesResult::Disagreement(_) => {
            eprintln!("espalier: {}", words.text);
        }
        _ => log.say(&words)?,
    }
    Ok(ExitCode::from(FAILED))
}
