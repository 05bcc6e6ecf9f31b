//! `espalier status` and `watch`: what is wrong with a fabric, and what its links carry.
//!
//! ```text
//!   a switch ─ pulse: counters, states, indicators ─ every interval ─▶ load of links
//!        └─── tables: configuration, neighbours ─ when an indicator moved, or every --full-every ─▶ diagnose
//! ```

mod picture;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use drivers::snmp::{Pulse, PulseColumns};
use fabric::{Plan, SwitchId, VlanSet, format::plan::ReadMode};
use rollout::diagnose::{PortSight, Sight};
use switch_model::{SwitchConfig, driver::Fault, mark::Mark, observe::Snapshot, station::Station};

use super::{
    Output,
    controller::{self, Connected, Reached, Ways},
    interrupt::{INTERRUPTED, Interrupt},
    say,
};
use crate::{cli, failure::FAILED, files::read_plan_file};

use picture::Picture;

/// How long a program takes to notice Ctrl-C at most.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(args: &cli::Status, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let interrupt = Interrupt::watch()?;
    let ways = Ways::of(&plan, &args.reach, interrupt.cancel())?;
    // Its second look is only at what may have changed since the first.
    let mut fabric = Fabric::new(&plan, &ways, &args.reach, Duration::MAX);
    fabric.look();
    let started = Instant::now();
    let before = fabric.counts();
    rest(started + Duration::from_secs_f64(args.interval), &interrupt);
    if !interrupt.is_pressed() {
        fabric.look();
    }
    if interrupt.is_pressed() {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "interrupted": true })),
            Output::Person => eprintln!("espalier: interrupted; not every switch was asked"),
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let picture = fabric.picture(&before);
    picture.show(output)?;
    Ok(if picture.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Lets time pass, less if it is asked to stop.
fn rest(until: Instant, interrupt: &Interrupt) {
    while !interrupt.is_pressed() && Instant::now() < until {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
    }
}

pub(super) fn watch(args: &cli::Watch, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.status.plan, ReadMode::Strict)?;
    let interval = Duration::from_secs_f64(args.status.interval);
    let interrupt = Interrupt::watch_in_order()?;
    let stop = || interrupt.is_pressed();
    let ways = Ways::of(&plan, &args.status.reach, interrupt.cancel())?;
    let mut fabric = Fabric::new(&plan, &ways, &args.status.reach, Duration::from_secs_f64(args.full_every));
    fabric.look();
    let mut before = fabric.counts();
    let mut done = 0;
    while !stop() && args.times.is_none_or(|times| done < times) {
        rest(Instant::now() + interval, &interrupt);
        if stop() {
            break;
        }
        fabric.look();
        // Switches that were left in the middle of a request are no finding.
        if stop() {
            break;
        }
        fabric.picture(&before).show(output)?;
        if output == Output::Person {
            say!("");
        }
        before = fabric.counts();
        done += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// The switches of a plan, and what is known of each.
struct Fabric<'a> {
    plan: &'a Plan,
    ways: &'a Ways<'a>,
    goals: Vec<SwitchConfig>,
    vlans: VlanSet,
    parallel: usize,
    full_every: Duration,
    /// `switches[switch]`.
    switches: Vec<Attended>,
}

/// A switch, and what it said last.
struct Attended {
    reached: Option<Connected>,
    columns: PulseColumns,
    pulse: Option<Pulse>,
    tables: Option<Tables>,
}

/// What a switch held and whom it heard.
struct Tables {
    config: SwitchConfig,
    mark: Option<Mark>,
    /// None of one that is asked by its command line.
    station: Option<Station>,
    read_at: Instant,
}

impl<'a> Fabric<'a> {
    fn new(plan: &'a Plan, ways: &'a Ways<'a>, reach: &cli::Reach, full_every: Duration) -> Self {
        let goals = controller::goals(plan);
        let vlans = controller::vlans_of(&goals);
        let unknown = |_| Attended { reached: None, columns: PulseColumns::default(), pulse: None, tables: None };
        Self {
            plan,
            ways,
            goals,
            vlans,
            parallel: reach.parallel,
            full_every,
            switches: plan.topology.switches().iter().map(unknown).collect(),
        }
    }

    /// Asks every switch what has changed; one that was away is sought again.
    fn look(&mut self) {
        let Self { plan, ways, vlans, full_every, parallel, .. } = self;
        let attended = plan.topology.switch_ids().zip(&mut self.switches).collect();
        controller::at_once(attended, *parallel, |(id, switch): (SwitchId, &mut Attended)| {
            let mut reached = match switch.reached.take() {
                Some(Ok(reached)) => reached,
                Some(Err(_)) | None => match ways.connect_to_look(id) {
                    Ok(reached) => reached,
                    Err(fault) => return switch.forget(fault),
                },
            };
            match switch.ask(ways, id, &mut reached, vlans, *full_every) {
                Ok(()) => switch.reached = Some(Ok(reached)),
                Err(fault) => switch.forget(fault),
            }
        });
    }

    fn counts(&self) -> Vec<Option<Snapshot>> {
        self.switches.iter().map(|switch| switch.pulse.as_ref().map(|pulse| pulse.counts.clone())).collect()
    }

    /// Everything that is known, and what links carried since an earlier reading of counters.
    fn picture(&self, before: &[Option<Snapshot>]) -> Picture<'_> {
        let switches = self.switches.iter().zip(&self.goals);
        let seen = switches.map(|(switch, goal)| switch.sight(goal.ports.len())).collect();
        let ages = self.switches.iter().map(|switch| switch.tables.as_ref().map(|tables| tables.read_at.elapsed()));
        Picture::new(self.plan, &self.goals, seen, ages.collect(), (before, &self.counts()))
    }
}

impl Attended {
    fn forget(&mut self, fault: Fault) {
        *self = Self { reached: Some(Err(fault)), columns: PulseColumns::default(), pulse: None, tables: None };
    }

    /// Reads counters, and tables if they are old or something may have changed.
    fn ask(
        &mut self,
        ways: &Ways<'_>,
        id: SwitchId,
        reached: &mut Reached,
        vlans: &VlanSet,
        full_every: Duration,
    ) -> Result<(), Fault> {
        let mut changed = self.tables.as_ref().is_none_or(|tables| tables.read_at.elapsed() >= full_every);
        if let Reached::Snmp(device) = reached {
            if changed {
                // Counters that were not there may have come.
                self.columns = PulseColumns::default();
            }
            let pulse = device.pulse(&mut self.columns)?;
            if self.pulse.as_ref().is_some_and(|before| pulse.has_restarted_since(before)) {
                // It may number its ports anew; connecting again finds them.
                return Err(Fault::Fenced);
            }
            changed |= self.pulse.as_ref().is_none_or(|before| pulse.has_changed_since(before));
            self.pulse = Some(pulse);
        }
        if changed {
            let read_at = Instant::now();
            // Ports that the plan does not name, but that have to do with its VLANs.
            ways.include_unmanaged(id, reached, vlans)?;
            let reading = reached.driver().read()?;
            let station = match reached {
                Reached::Snmp(_) => ways.survey(id, reached)?.map(|reply| reply.station),
                Reached::CommandLine(_) => None,
            };
            self.tables = Some(Tables { config: reading.config, mark: reading.mark, station, read_at });
        }
        Ok(())
    }

    /// What it said of `ports` ports of the plan and the further ones that it took in.
    fn sight(&self, ports: usize) -> Result<Sight, Fault> {
        if let Some(Err(fault)) = &self.reached {
            return Err(fault.clone());
        }
        let Some(Tables { config, mark, station, .. }) = &self.tables else { return Err(Fault::Silent) };
        let hundredths = |cs: u32| Duration::from_millis(u64::from(cs) * 10);
        let pulse = self.pulse.as_ref();
        let states = pulse.map_or(&[][..], |pulse| &pulse.ports).iter().take(ports);
        Ok(Sight {
            config: config.clone(),
            mark: *mark,
            station: station.clone(),
            ports: states
                .map(|port| PortSight { running: port.running, since: port.since_cs.map(hundredths) })
                .collect(),
            lldp_interval: pulse.and_then(|pulse| pulse.lldp_interval_s).map(|s| Duration::from_secs(u64::from(s))),
            up: pulse.map(|pulse| hundredths(pulse.counts.up_cs)),
        })
    }
}
