//! `espalier status` and `watch`: what switches hold, what hangs on them, and what their links carry.

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use device::{
    SwitchConfig,
    deploy::{Driver as _, Fault, Mark},
    discover::{Station, cabling},
    observe::{Flow, Snapshot, drift, flow},
    snmp::{Device, UdpLink},
};
use fabric::{Plan, SwitchId, format::plan::ReadMode, format_rate};
use serde_json::{Value, json};

use super::{Output, cables::differences, controller, interrupt::Interrupt, say};
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

type Switches = Vec<Result<Device<UdpLink>, Fault>>;

pub(super) fn run(args: &cli::Status, output: Output) -> Result<ExitCode> {
    let (plan, goals, interval) = prepare(args)?;
    let mut switches = controller::connect_by_snmp(&plan, &args.reach)?;
    let before = counters(&mut switches);
    let started = Instant::now();
    let seen = look(&plan, &goals, &mut switches);
    thread::sleep(interval.saturating_sub(started.elapsed()));
    let after = counters(&mut switches);
    let picture = Picture::new(&plan, &goals, seen, &before, &after);
    picture.show(&plan, output)?;
    Ok(if picture.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

pub(super) fn watch(args: &cli::Watch, output: Output) -> Result<ExitCode> {
    let (plan, goals, interval) = prepare(&args.status)?;
    let interrupt = Interrupt::watch_in_order()?;
    let stop = || interrupt.is_pressed();
    let mut switches = controller::connect_by_snmp(&plan, &args.status.reach)?;
    let mut before = counters(&mut switches);
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
        if switches.iter().any(Result::is_err) {
            for (switch, found) in switches.iter_mut().zip(controller::connect_by_snmp(&plan, &args.status.reach)?) {
                if switch.is_err() {
                    *switch = found;
                }
            }
        }
        let seen = look(&plan, &goals, &mut switches);
        let after = counters(&mut switches);
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

/// Asks every switch something, some at a time.
fn ask<R: Send>(
    switches: &mut Switches,
    question: impl Fn(usize, &mut Device<UdpLink>) -> Result<R, Fault> + Sync,
) -> Vec<Result<R, Fault>> {
    let mut answers = Vec::with_capacity(switches.len());
    for (chunk, batch) in switches.chunks_mut(controller::PARALLEL).enumerate() {
        thread::scope(|scope| {
            let question = &question;
            let threads: Vec<_> = (batch.iter_mut().enumerate())
                .map(|(at, switch)| {
                    scope.spawn(move || match switch {
                        Ok(device) => question(chunk * controller::PARALLEL + at, device),
                        Err(fault) => Err(fault.clone()),
                    })
                })
                .collect();
            for thread in threads {
                answers.push(thread.join().expect("questions do not panic"));
            }
        });
    }
    answers
}

fn counters(switches: &mut Switches) -> Vec<Option<Snapshot>> {
    ask(switches, |_, device| device.counters()).into_iter().map(Result::ok).collect()
}

/// What a switch holds and whom it hears.
struct Seen {
    config: SwitchConfig,
    mark: Option<Mark>,
    station: Station,
}

fn look(plan: &Plan, goals: &[SwitchConfig], switches: &mut Switches) -> Vec<Result<Seen, Fault>> {
    let vlans = controller::vlans_of(goals);
    ask(switches, |at, device| {
        // Ports that the plan does not name, but that have to do with its VLANs.
        controller::adopt(device, &vlans)?;
        let reading = device.read()?;
        let station = device.station(&plan.topology.switch(SwitchId::new(at)).name)?;
        Ok(Seen { config: reading.config, mark: reading.mark, station })
    })
}

/// Everything that a status shows.
struct Picture {
    /// `switches[switch]`.
    switches: Vec<Result<Held, Fault>>,
    /// Sentences about cables.
    cables: Vec<String>,
    links: Vec<Carried>,
}

struct Held {
    generation: Option<u32>,
    differs: Vec<String>,
}

/// What a cable carries: from its first end to the second, and back.
struct Carried {
    name: String,
    running: bool,
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
        let (mut switches, mut stations) = (Vec::new(), Vec::new());
        for (seen, goal) in seen.into_iter().zip(goals) {
            switches.push(seen.map(|Seen { config, mark, station }| {
                stations.push(station);
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
        Self { switches, cables, links: links(plan, &flows) }
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
        if self.cables.is_empty() && self.switches.iter().all(Result::is_ok) {
            say!("cables between switches are as planned: {}", plan.topology.links().len());
        }
        let mut table =
            Table::new(["link", "rate", "load", "load back", "errors", "discards", "PAUSE in", "PAUSE out"]);
        for link in &self.links {
            let known = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let load =
                |way: usize| link.load(way).map_or_else(|| "?".to_owned(), |load| format!("{:.1} %", 100.0 * load));
            table.row([
                link.name.clone(),
                if link.running { format_rate(link.speed_bps) } else { "down".to_owned() },
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
        json!({ "sound": self.is_sound(), "switches": switches, "cables": self.cables, "links": links })
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
            running: (first.is_some() || second.is_some()) && ends().all(|flow| flow.running),
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
