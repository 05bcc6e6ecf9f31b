//! What a deployment needs beside its switches: the judge, the journal and the person before the screen.

use std::time::{Duration, Instant};

use fabric::{Plan, SwitchId, Topology};
use rollout::deploy::{Direction, Event, Journal, Stage, Surroundings};
use switch_model::{SwitchConfig, align, mark::Mark};

use super::{
    super::interrupt::Interrupt,
    sentences::{how_a_storm_shows, misplaced, unseen},
    state::State,
};

use crate::count::counted;

/// How often a stage that takes long says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// The judge, the journal and the person before the screen.
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    /// The plan's cabling, or that of both plans.
    pub(super) topology: &'a Topology,
    pub(super) state: &'a State,
    pub(super) interrupt: Interrupt,
    pub(super) progress: Progress,
}

/// How far the present stage is.
pub(super) struct Progress {
    stage: Option<Stage>,
    switches: usize,
    done: usize,
    told: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { stage: None, switches: 0, done: 0, told: Instant::now() }
    }

    fn begin(&mut self, stage: Stage, switches: usize) {
        *self = Self { stage: Some(stage), switches, ..Self::new() };
    }

    /// A switch is done; what to say, if it is time.
    fn done(&mut self, stage: Stage) -> Option<String> {
        self.done += 1;
        let due = self.stage == Some(stage) && self.done < self.switches && self.told.elapsed() >= PROGRESS;
        due.then(|| {
            self.told = Instant::now();
            format!("  {stage}: {} of {} switches", self.done, self.switches)
        })
    }
}

impl Surroundings for Scene<'_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), Vec<String>> {
        let mut plan = self.plan.clone();
        let topology = &self.plan.topology;
        for ((switch, config), device) in topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            // On the way from another plan there may be ports that this one does not name.
            let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            *device = align(config, &ports).to_intent(topology, device);
        }
        let report = verify::check(&plan);
        let fatal = report.findings().iter().filter(|finding| finding.severity == fabric::Severity::Fatal);
        let fatal: Vec<String> = fatal.map(|finding| format!("{}: {}", finding.subject, finding.message)).collect();
        if fatal.is_empty() { Ok(()) } else { Err(fatal) }
    }

    fn note(&mut self, mark: Mark) -> Result<(), String> {
        self.state.note(mark).map_err(|error| format!("{error:#}"))
    }

    fn record(&mut self, journal: &Journal) -> Result<(), String> {
        self.state.record(journal).map_err(|error| format!("{error:#}"))
    }

    fn tell(&mut self, event: &Event) {
        let topology = self.topology;
        let name = |switch: &SwitchId| topology.switch(*switch).name.as_str();
        match event {
            Event::Begun { stage, direction, switches } => {
                let back = if *direction == Direction::Back { " (back)" } else { "" };
                let whom = if *switches > 0 { format!(", {}", counted(*switches, "switch")) } else { String::new() };
                eprintln!("{stage}{back}{whom}");
                self.progress.begin(*stage, *switches);
            }
            Event::Done(stage, _) => {
                if let Some(line) = self.progress.done(*stage) {
                    eprintln!("{line}");
                }
            }
            Event::Failed(stage, switch, fault) => eprintln!("  {stage}: {} {fault}", name(switch)),
            Event::Turned(_) => eprintln!("turning back: every switch gets what it held before"),
            Event::Unwatched(switches) => {
                let names: Vec<&str> = switches.iter().map(name).collect();
                eprintln!("  cannot be watched for floods, as no broadcasts are counted there: {}", names.join(", "));
            }
            Event::WatchedByAddresses(switches) => {
                let names: Vec<&str> = switches.iter().map(name).collect();
                eprintln!(
                    "  these switches have no broadcast counters, so storms there are detected by MAC address moves: {}",
                    names.join(", ")
                );
            }
            Event::Quenched(storm) => {
                eprintln!("broadcast storm during rollback: shutting down every data port");
                for line in how_a_storm_shows(self.topology, storm) {
                    eprintln!("{line}");
                }
            }
            Event::Awaited(cables) => {
                let texts: Vec<String> = cables.iter().map(|cable| unseen(self.topology, cable)).collect();
                eprintln!("  waiting for LLDP: {}", texts.join("; "));
            }
            Event::KeptShut(ports) => {
                for found in ports {
                    eprintln!("  stays shut: {}", misplaced(self.topology, found));
                }
            }
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupt.take_press()
    }
}
