//! `espalier status` and `watch`: what switches hold, what hangs on them, and what their links carry.

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use device::{
    SwitchConfig,
    deploy::{Fault, Mark},
    discover::{Station, cabling},
    observe::{Flow, Snapshot, drift, flow},
};
use fabric::{Plan, SwitchId, format::plan::ReadMode, format_rate};
use serde_json::{Value, json};

use super::{
    Output,
    cables::differences,
    controller::{self, Connected, Reached, Ways},
    interrupt::Interrupt,
    say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
    table::Table,
};

/// Differences of one switch that a person is shown; the rest are counted.
const SHOWN_MAX: usize = 12;
/// Shortest time between two readings of counters, in seconds: agents keep what they read for a while.
const INTERVAL_MIN: f64 = 0.25;
const INTERVAL_MAX: f64 = 3600.0;

pub(super) fn run(args: &cli::Status, output: Output) -> Result<ExitCode> {
    let (plan, goals, interval) = prepare(args)?;
    let (ways, parallel) = (Ways::of(&plan, &args.reach)?, args.reach.parallel);
    let mut switches =
        controller::at_once(plan.topology.switch_ids().collect(), parallel, |switch| ways.connect_to_look(switch));
    let before = counters(&mut switches, parallel);
    let started = Instant::now();
    let seen = look(&plan, &goals, &mut switches, parallel);
    thread::sleep(interval.saturating_sub(started.elapsed()));
    let after = counters(&mut switches, parallel);
    let picture = Picture::new(&plan, &goals, seen, &before, &after);
    picture.show(&plan, output)?;
    Ok(if picture.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

pub(super) fn watch(args: &cli::Watch, output: Output) -> Result<ExitCode> {
    let (plan, goals, interval) = prepare(&args.status)?;
    let interrupt = Interrupt::watch_in_order()?;
    let stop = || interrupt.is_pressed();
    let (ways, parallel) = (Ways::of(&plan, &args.status.reach)?, args.status.reach.parallel);
    let mut switches =
        controller::at_once(plan.topology.switch_ids().collect(), parallel, |switch| ways.connect_to_look(switch));
    let mut before = counters(&mut switches, parallel);
    let mut done = 0;
    while !stop() && args.times.is_none_or(|times| done < times) {
        let due = Instant::now() + interval;
        while !stop() && Instant::now() < due {
            thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
        if stop() {
            break;
        }
        // A switch that was away is sought again.
        let lost = plan.topology.switch_ids().zip(&mut switches).filter(|(_, switch)| switch.is_err()).collect();
        controller::at_once(lost, parallel, |(id, switch): (SwitchId, &mut Connected)| {
            *switch = ways.connect_to_look(id);
        });
        let seen = look(&plan, &goals, &mut switches, parallel);
        let after = counters(&mut switches, parallel);
        Picture::new(&plan, &goals, seen, &before, &after).show(&plan, output)?;
        if output == Output::Person {
            say!("");
        }
        before = after;
        done += 1;
    }
    Ok(ExitCode::SUCCESS)
}

fn prepare(args: &cli::Status) -> Result<(Plan, Vec<SwitchConfig>, Duration)> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&args.interval) {
        return Err(bad_input(format!("--interval is between {INTERVAL_MIN} and {INTERVAL_MAX} seconds")));
    }
    let goals = controller::goals(&plan);
    Ok((plan, goals, Duration::from_secs_f64(args.interval)))
}

/// Asks every switch something, so many at a time.
fn ask<R: Send>(
    switches: &mut [Connected],
    parallel: usize,
    question: impl Fn(usize, &mut Reached) -> Result<R, Fault> + Sync,
) -> Vec<Result<R, Fault>> {
    let one = |(at, switch): (usize, &mut Connected)| match switch {
        Ok(reached) => question(at, reached),
        Err(fault) => Err(fault.clone()),
    };
    controller::at_once(switches.iter_mut().enumerate().collect(), parallel, one)
}

fn counters(switches: &mut [Connected], parallel: usize) -> Vec<Option<Snapshot>> {
    let count = |_: usize, reached: &mut Reached| match reached {
        Reached::Snmp(device) => device.counters().map(Some),
        Reached::CommandLine(_) => Ok(None),
    };
    ask(switches, parallel, count).into_iter().map(|counted| counted.ok().flatten()).collect()
}

/// What a switch holds and whom it hears.
struct Seen {
    config: SwitchConfig,
    mark: Option<Mark>,
    /// None of one that was asked by its command line.
    station: Option<Station>,
}

fn look(plan: &Plan, goals: &[SwitchConfig], switches: &mut [Connected], parallel: usize) -> Vec<Result<Seen, Fault>> {
    let vlans = controller::vlans_of(goals);
    ask(switches, parallel, |at, reached| {
        // Ports that the plan does not name, but that have to do with its VLANs.
        controller::adopt(reached.driver(), &vlans)?;
        let reading = reached.driver().read()?;
        let station = match reached {
            Reached::Snmp(device) => Some(device.station(&plan.topology.switch(SwitchId::new(at)).name)?),
            Reached::CommandLine(_) => None,
        };
        Ok(Seen { config: reading.config, mark: reading.mark, station })
    })
}

/// Everything that a status shows.
struct Picture {
    /// `switches[switch]`.
    switches: Vec<Result<Held, Fault>>,
    /// Sentences about cables.
    cables: Vec<String>,
    /// Switches that were asked by their command line, which says nothing of cables and counters.
    unheard: usize,
    links: Vec<Carried>,
}

struct Held {
    generation: Option<u32>,
    differs: Vec<String>,
}

/// What a cable carries: from its first end to the second, and back.
struct Carried {
    name: String,
    /// None if neither end says.
    running: Option<bool>,
    speed_bps: u64,
    rate_bps: [Option<u64>; 2],
    /// At both ends, received and sent.
    errors: Option<u64>,
    discards: Option<u64>,
    /// PAUSE frames that the first end received and sent.
    pause: [Option<u64>; 2],
}

impl Picture {
    fn new(
        plan: &Plan,
        goals: &[SwitchConfig],
        seen: Vec<Result<Seen, Fault>>,
        before: &[Option<Snapshot>],
        after: &[Option<Snapshot>],
    ) -> Self {
        let (mut switches, mut stations, mut unheard) = (Vec::new(), Vec::new(), 0);
        for (seen, goal) in seen.into_iter().zip(goals) {
            switches.push(seen.map(|Seen { config, mark, station }| {
                unheard += usize::from(station.is_none());
                stations.extend(station);
                let sentence =
                    |drift: device::observe::Drift| format!("{}; {}", drift.sentence(&config), drift.remedy());
                let further = config.ports[goal.ports.len()..].iter().map(|port| &port.name);
                Held {
                    generation: mark.map(|mark| mark.generation),
                    differs: drift(&config, &goal.with_parked(further)).into_iter().map(sentence).collect(),
                }
            }));
        }
        let cables = differences(&plan.topology, &stations, &cabling(&stations));
        let flows: Vec<Vec<Option<Flow>>> = (before.iter().zip(after))
            .map(|pair| match pair {
                (Some(before), Some(after)) => flow(before, after),
                _ => Vec::new(),
            })
            .collect();
        Self { switches, cables, unheard, links: links(plan, &flows) }
    }

    fn is_sound(&self) -> bool {
        let as_planned = |switch: &Result<Held, Fault>| matches!(switch, Ok(held) if held.differs.is_empty());
        self.switches.iter().all(as_planned) && self.cables.is_empty()
    }

    fn show(&self, plan: &Plan, output: Output) -> Result<()> {
        if output == Output::Json {
            say!("{}", self.json(plan));
            return Ok(());
        }
        let mut as_planned = 0;
        for (switch, held) in plan.topology.switches().iter().zip(&self.switches) {
            match held {
                Ok(held) if held.differs.is_empty() => as_planned += 1,
                Ok(held) => {
                    say!("{}: {} differ from the plan", switch.name, held.differs.len());
                    for sentence in held.differs.iter().take(SHOWN_MAX) {
                        say!("  {sentence}");
                    }
                    if held.differs.len() > SHOWN_MAX {
                        say!("  and {} more; --json has them all", held.differs.len() - SHOWN_MAX);
                    }
                }
                Err(fault) => say!("{}: {fault}", switch.name),
            }
        }
        say!("{as_planned} of {} switches hold the plan", self.switches.len());
        for sentence in &self.cables {
            say!("{sentence}");
        }
        match self.unheard {
            0 if self.cables.is_empty() && self.switches.iter().all(Result::is_ok) => {
                say!("cables between switches are as planned: {}", plan.topology.links().len());
            }
            0 => {}
            unheard => say!("cables and counters of {unheard} switches are not known: no SNMP"),
        }
        let mut table =
            Table::new(["link", "rate", "load", "load back", "errors", "discards", "PAUSE in", "PAUSE out"]);
        for link in &self.links {
            let known = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let load =
                |way: usize| link.load(way).map_or_else(|| "?".to_owned(), |load| format!("{:.1} %", 100.0 * load));
            table.row([
                link.name.clone(),
                match link.running {
                    Some(true) => format_rate(link.speed_bps),
                    Some(false) => "down".to_owned(),
                    None => "?".to_owned(),
                },
                load(0),
                load(1),
                known(link.errors),
                known(link.discards),
                known(link.pause[0]),
                known(link.pause[1]),
            ]);
        }
        say!("{table}");
        Ok(())
    }

    fn json(&self, plan: &Plan) -> Value {
        let switches: Vec<Value> = (plan.topology.switches().iter().zip(&self.switches))
            .map(|(switch, held)| match held {
                Ok(held) => json!({
                    "switch": switch.name, "generation": held.generation, "differs": held.differs, "fault": null,
                }),
                Err(fault) => json!({ "switch": switch.name, "fault": fault.to_string() }),
            })
            .collect();
        let links: Vec<Value> = (self.links.iter())
            .map(|link| {
                json!({
                    "link": link.name, "running": link.running, "speed_bps": link.speed_bps,
                    "rate_bps": link.rate_bps[0], "rate_back_bps": link.rate_bps[1],
                    "load": link.load(0), "load_back": link.load(1),
                    "errors": link.errors, "discards": link.discards,
                    "pause_in": link.pause[0], "pause_out": link.pause[1],
                })
            })
            .collect();
        json!({
            "sound": self.is_sound(), "switches": switches, "cables": self.cables, "unheard": self.unheard, "links": links,
        })
    }
}

impl Carried {
    /// The part of the capacity that is used, 0 to 1; none if either is unknown.
    fn load(&self, way: usize) -> Option<f64> {
        let rate_bps = self.rate_bps[way].filter(|_| self.speed_bps > 0)?;
        Some(rate_bps as f64 / self.speed_bps as f64)
    }
}

/// Every cable between switches, then those of hosts. What one end does not say, the other may.
fn links(plan: &Plan, flows: &[Vec<Option<Flow>>]) -> Vec<Carried> {
    let topology = &plan.topology;
    let at = |port: fabric::PortId| {
        let switch = topology.port(port).switch;
        *flows.get(switch.index())?.get(port.index() - topology.switch_ports(switch).start)?
    };
    let carried = |name: String, first: Option<Flow>, second: Option<Flow>| {
        let of = |flow: &Option<Flow>, what: fn(&Flow) -> [Option<u64>; 2]| flow.as_ref().map_or([None; 2], what);
        let rates = [of(&first, |flow| flow.rate_bps), of(&second, |flow| flow.rate_bps)];
        let sum = |what: fn(&Flow) -> [Option<u64>; 2]| {
            let counts = [of(&first, what), of(&second, what)];
            let known: Vec<u64> = counts.iter().flatten().flatten().copied().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        let ends = || [&first, &second].into_iter().flatten();
        Carried {
            name,
            running: ends().map(|flow| flow.running).reduce(|one, other| one && other),
            speed_bps: ends().map(|flow| flow.speed_bps).filter(|speed| *speed > 0).min().unwrap_or(0),
            rate_bps: [rates[0][1].or(rates[1][0]), rates[0][0].or(rates[1][1])],
            errors: sum(|flow| flow.errors),
            discards: sum(|flow| flow.discards),
            pause: of(&first, |flow| flow.pause),
        }
    };
    let between = topology.links().iter().map(|link| {
        let name = format!("{} -- {}", topology.port_label(link.a), topology.port_label(link.b));
        carried(name, at(link.a), at(link.b))
    });
    let hosts = topology
        .hosts()
        .iter()
        .map(|host| carried(format!("{} -- {}", topology.port_label(host.port), host.name), at(host.port), None));
    between.chain(hosts).collect()
}
