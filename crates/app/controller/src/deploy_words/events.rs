//! What happens during a deployment, line by line.

use std::time::{Duration, Instant};

use fabric::{ETHERNET_MTU_BYTES, Plan, SwitchId, Topology};
use rollout::deploy::{Direction, Event, Stage};
use switch_model::observe::SMALL_MTU_WAY_OUT;

use super::{
    findings::remarks,
    outcome::{how_a_storm_shows, misplaced, unseen},
};
use crate::{DeployEvent, LinkTrial, Looked, count::counted};

/// How often a stage that takes long says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);
/// Ports that are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// Makes lines of events, as they happen.
pub struct DeployLines<'a> {
    plan: &'a Plan,
    progress: Progress,
}

/// How far the present stage is.
struct Progress {
    stage: Option<Stage>,
    switches: usize,
    done: usize,
    told: Instant,
}

impl Progress {
    fn new() -> Self {
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

impl<'a> DeployLines<'a> {
    /// Lines of a plan's deployment.
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, progress: Progress::new() }
    }

    /// What to tell of an event; nothing of most.
    pub fn of(&mut self, event: &DeployEvent<'_>) -> Vec<String> {
        match event {
            DeployEvent::WeakAlgorithms(switches) => weak_algorithms_words(switches).into_iter().collect(),
            DeployEvent::Tried { topology, link, trial } => {
                vec![format!("{}: {}", topology.link_label(*link), trial_words(topology, trial))]
            }
            DeployEvent::LeftShut { topology, port } => vec![format!(
                "espalier: {} was shut to try its cable, and does not open again; open it by hand",
                topology.port_label(*port)
            )],
            DeployEvent::Surveyed(looked, route) => remarks(looked, route),
            DeployEvent::SetAside { why, place } => vec![format!(
                "espalier: {why}; what the switches held before it is not known to this plan; its journal is {place} now"
            )],
            DeployEvent::Unmanaged(topology, ports) => unmanaged(topology, ports),
            DeployEvent::Mtus(looked, mtus) => mtu_lines(self.plan, looked, mtus),
            DeployEvent::Deployment(topology, event) => self.deployment(topology, event),
        }
    }

    fn deployment(&mut self, topology: &Topology, event: &Event) -> Vec<String> {
        let name = |switch: &SwitchId| topology.switch(*switch).name.as_str();
        let names = |switches: &[SwitchId]| switches.iter().map(name).collect::<Vec<_>>().join(", ");
        match event {
            Event::Begun { stage, direction, switches } => {
                let back = if *direction == Direction::Back { " (back)" } else { "" };
                let whom = if *switches > 0 { format!(", {}", counted(*switches, "switch")) } else { String::new() };
                self.progress.begin(*stage, *switches);
                vec![format!("{stage}{back}{whom}")]
            }
            Event::Done(stage, _) => self.progress.done(*stage).into_iter().collect(),
            Event::Failed(stage, switch, fault) => vec![format!("  {stage}: {} {fault}", name(switch))],
            Event::Turned(_) => vec!["turning back: every switch gets what it held before".to_owned()],
            Event::Unwatched(switches) => {
                vec![format!("  cannot be watched for floods, as no broadcasts are counted there: {}", names(switches))]
            }
            Event::WatchedByAddresses(switches) => vec![format!(
                "  these switches have no broadcast counters, so storms there are detected by MAC address moves: {}",
                names(switches)
            )],
            Event::Quenched(storm) => {
                let head = "broadcast storm during rollback: shutting down every data port".to_owned();
                std::iter::once(head).chain(how_a_storm_shows(topology, storm)).collect()
            }
            Event::Awaited(cables) => {
                let texts: Vec<String> = cables.iter().map(|cable| unseen(topology, cable)).collect();
                vec![format!("  waiting for LLDP: {}", texts.join("; "))]
            }
            Event::KeptShut(ports) => {
                ports.iter().map(|found| format!("  stays shut: {}", misplaced(topology, found))).collect()
            }
        }
    }
}

/// Toward which switches weak algorithms are allowed; none if there are none.
pub fn weak_algorithms_words(switches: &[&str]) -> Option<String> {
    (!switches.is_empty()).then(|| {
        format!(
            "espalier: weak SSH algorithms are allowed toward {}: an attacker on the path can read and change the session",
            switches.join(", ")
        )
    })
}

/// What came of trying a cable.
fn trial_words(topology: &Topology, trial: &LinkTrial) -> String {
    match trial {
        LinkTrial::Stopped => "not tried, since it was asked to stop".to_owned(),
        LinkTrial::Dead => "not tried, since it is down".to_owned(),
        LinkTrial::CarriesManagement => "not tried, since management goes over it".to_owned(),
        LinkTrial::Done(probed) => probed.sentence(topology),
        LinkTrial::Failed(port, fault) => format!("not confirmed: {} {fault}", topology.port_label(*port)),
    }
}

/// Which unmanaged ports go out of service.
fn unmanaged(topology: &Topology, ports: &[Vec<String>]) -> Vec<String> {
    let of_switches = topology.switches().iter().zip(ports).filter(|(_, names)| !names.is_empty());
    let lines = of_switches.map(|(switch, names)| {
        let (ports, members, they) = match names.len() {
            1 => ("port", "is not in the plan but is a member", "it"),
            _ => ("ports", "are not in the plan but are members", "they"),
        };
        format!(
            "espalier: warning: {}: {ports} {} {members} of VLANs that the plan uses; {they} will be removed from them and shut \
             down",
            switch.name,
            names.join(", ")
        )
    });
    lines.collect()
}

/// That no MTU is set where hosts send jumbo frames, and which ports have less than the plan needs.
fn mtu_lines(plan: &Plan, looked: &Looked, mtus: &[Vec<Option<u16>>]) -> Vec<String> {
    let small = &looked.small_mtus;
    let needed = plan.policy.port_mtu_bytes();
    let mut lines = Vec::new();
    if needed > ETHERNET_MTU_BYTES {
        let told = match mtus.iter().flatten().flatten().count() {
            0 => "no switch tells its ports' MTU".to_owned(),
            told => format!("{} told theirs, {} less", counted(told, "port"), small.len()),
        };
        lines.push(format!(
            "MTU: deploy does not set it; every port with a cable needs {needed} bytes or more before hosts send jumbo frames; {told}"
        ));
    }
    lines.extend(small.iter().take(NAMED_MAX).map(|port| format!("  warning: {}", port.sentence(&plan.topology))));
    if small.len() > NAMED_MAX {
        lines.push(format!("  and {}", counted(small.len() - NAMED_MAX, "further port")));
    }
    if !small.is_empty() {
        lines.push(format!("  {SMALL_MTU_WAY_OUT}"));
    }
    lines
}
