//! `espalier addresses`: addresses that switches have learned at hypervisors' ports, entered everywhere.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use controller::{AddressesEvent, AddressesMode, AddressesRequest, AddressesResult, keep_addresses};
use fabric::{HostId, Mac, Plan, format::plan::ReadMode};
use rollout::addresses::{
    AddressNotice, MOVES_MAX, MOVES_WITHIN, Places, Record, parse_record, with_learned, write_record,
};

use super::{Output, event_log::EventLog, interrupt::Interrupt, reach, standby::disagreement};
use crate::{
    cli,
    count::counted,
    failure::{FAILED, bad_input},
    files::{read_plan_file, read_text, write_file},
};

pub(super) fn run(args: &cli::Addresses, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    // What is wrong with the plan comes before what is wrong with the credentials.
    Places::of(&plan).map_err(|why| bad_input(format!("{}: {why}", args.plan.display())))?;
    let file = args.state.clone().unwrap_or_else(|| beside(&args.plan));
    let record = read_record(&plan, &file, Absent::IsEmpty)?;
    for (mac, host) in &record.strange {
        eprintln!("espalier: {}: {host} learns no addresses in this plan; {mac} is left out", file.display());
    }
    let mode = if args.follow { AddressesMode::Follow } else { AddressesMode::Once };
    let seconds = Duration::from_secs_f64;
    let (interval, age) = (seconds(args.interval), seconds(args.age));
    let request = AddressesRequest { plan: &plan, known: &record.known, interval, age, mode };
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let interrupt = Interrupt::watch_in_order()?;
    let token = interrupt.token();
    let teller = Teller(EventLog::begin(&plan, output));
    // Whoever reads what is printed may go away; then nobody learns what happens, and it ends.
    let mut unread = None;
    let mut remember = |known: &BTreeMap<Mac, HostId>| {
        let text = write_record(&plan.topology, known);
        let written = write_file(&file, |out| out.write_all(text.as_bytes()));
        written.map_err(|error| controller::Error::Request(error.to_string()))
    };
    let result = keep_addresses(&request, (&keyring, &options), &interrupt.token(), &mut remember, &mut |event| {
        if let Err(error) = teller.event(event) {
            unread.get_or_insert(error);
            token.cancel();
        }
    })?;
    unread.map_or_else(|| teller.ended(result), Err)
}

/// Puts the addresses that `espalier addresses` has recorded into a plan, and returns them. The file is the one beside the plan unless another
/// is named; without it there are none.
///
/// # Errors
/// Bad input if a file that is named cannot be read, or says what makes no sense.
pub(super) fn take_learned(plan: &mut Plan, path: &Path, file: Option<&PathBuf>) -> Result<BTreeMap<Mac, HostId>> {
    if plan.topology.learning_hosts().next().is_none() {
        return match file {
            None => Ok(BTreeMap::new()),
            Some(_) => Err(bad_input(format!("{}: no port of the plan has addresses: learned", path.display()))),
        };
    }
    let absent = if file.is_some() { Absent::IsError } else { Absent::IsEmpty };
    let known = read_record(plan, &file.cloned().unwrap_or_else(|| beside(path)), absent)?.known;
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

/// Says what happens.
struct Teller<'a>(EventLog<'a>);

impl Teller<'_> {
    /// A port as people know it: `vmhost1 (sw1:g4)`.
    fn port(&self, host: HostId) -> String {
        let host = self.0.plan.topology.host(host);
        format!("{} ({})", host.name, self.0.plan.topology.port_label(host.port))
    }

    fn event(&self, event: AddressesEvent) -> Result<()> {
        match event {
            AddressesEvent::Waits(switch, fault) => {
                let name = self.0.switch(switch);
                self.0.say("waiting", Some(name), &format!("waiting for {name}: {fault}"))
            }
            AddressesEvent::Ready { ports, known, late } => {
                let known = counted(known, "address");
                let words = format!("{} with learned addresses; {known} recorded", counted(ports, "port"));
                self.0.say("ready", None, &words)?;
                match late {
                    0 => Ok(()),
                    _ => {
                        let pairs = counted(late, "pair");
                        let words = format!(
                            "a move is noticed only after the first port's switch has aged the address out, for {pairs} of ports"
                        );
                        self.0.say("late", None, &words)
                    }
                }
            }
            AddressesEvent::Fault(switch, fault) => {
                let name = self.0.switch(switch);
                self.0.say("fault", Some(name), &format!("{name}: {fault}"))
            }
            AddressesEvent::Answers(switch) => {
                let name = self.0.switch(switch);
                self.0.say("answers", Some(name), &format!("{name} answers again"))
            }
            AddressesEvent::Notice(notice) => self.notice(notice),
            AddressesEvent::Holds(addresses) => {
                let words = format!("every switch holds the entries of {}", counted(addresses, "learned address"));
                self.0.say("holds", None, &words)
            }
        }
    }

    fn notice(&self, notice: AddressNotice) -> Result<()> {
        let port = |host: HostId| self.port(host);
        let (event, mac, words) = match notice {
            AddressNotice::Appears(mac, at) => {
                ("appears", mac, format!("{mac} is behind {}: entries are written", port(at)))
            }
            AddressNotice::Moves { mac, from, to } => {
                ("moves", mac, format!("{mac} has moved from {} to {}: its entries turn", port(from), port(to)))
            }
            AddressNotice::Gone(mac, at) => {
                ("gone", mac, format!("{mac} is not heard behind {} any more: its entries are removed", port(at)))
            }
            AddressNotice::Full(mac, at) => {
                let most = self.0.plan.topology.host(at).learned_max.unwrap_or(0);
                let words = format!(
                    "{mac} is behind {}, which has its {} already, and is not entered; raise addresses-max and plan again",
                    port(at),
                    counted(most, "learned address")
                );
                ("full", mac, words)
            }
            AddressNotice::Twice(mac, ports) => {
                let ports: Vec<String> = ports.into_iter().map(port).collect();
                let words = format!(
                    "{mac} is behind {} at the same time: no entry changes until one is left",
                    ports.join(" and ")
                );
                ("twice", mac, words)
            }
            AddressNotice::Duplicate(mac, [at, other]) => {
                let words = format!(
                    "{mac} has moved {MOVES_MAX} times within {} s, so two machines have it, behind {} and {}: its entries stay at {}",
                    MOVES_WITHIN.as_secs(),
                    port(at),
                    port(other),
                    self.0.plan.topology.host(at).name
                );
                ("duplicate", mac, words)
            }
            AddressNotice::Planned(mac, owner, hosts) => {
                let hosts: Vec<String> = hosts.into_iter().map(port).collect();
                let words = format!(
                    "{mac} is behind {}, but the plan has it behind {}: nothing changes; give one of the two another address",
                    hosts.join(" or "),
                    port(owner)
                );
                ("planned", mac, words)
            }
        };
        self.0.say(event, Some(&mac.to_string()), &words)
    }

    /// How it ended; whether all is as it should be.
    fn ended(&self, result: AddressesResult) -> Result<ExitCode> {
        match result {
            AddressesResult::Interrupted => return Ok(ExitCode::SUCCESS),
            AddressesResult::Left(_, behind) if behind.is_empty() => return Ok(ExitCode::SUCCESS),
            AddressesResult::Left(_, behind) => {
                let names: Vec<&str> = behind.iter().map(|switch| self.0.switch(*switch)).collect();
                let names = names.join(", ");
                self.0.say("left", None, &format!("ended; entries are missing on {names}: start it again"))?;
            }
            AddressesResult::Nothing(why) => eprintln!("espalier: {why}"),
            AddressesResult::Unfit(finding) => eprintln!(
                "espalier: with as many addresses as its ports may learn, the plan is not fit: {finding}; plan it again with this version"
            ),
            AddressesResult::Disagreement(why) => {
                eprintln!("espalier: {}", disagreement(self.0.plan, &why, "start this then"));
            }
            AddressesResult::Superseded(switch, mark) => {
                let name = self.0.switch(switch);
                let words = format!("{name} was set up by another deployment, {mark}: no more entries are written");
                self.0.say("ended", Some(name), &words)?;
            }
            AddressesResult::Untagged(switch) => {
                let name = self.0.switch(switch);
                let words =
                    format!("{name} bears no deployment tag any more: no more entries are written; deploy the plan");
                self.0.say("untagged", Some(name), &words)?;
            }
        }
        Ok(ExitCode::from(FAILED))
    }
}
