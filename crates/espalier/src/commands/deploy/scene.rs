//! What a deployment needs beside its switches: the judge, the journal and the person before the screen.

use device::{
    SwitchConfig, align,
    deploy::{Direction, Event, Journal, Mark, Surroundings},
};
use fabric::{Plan, SwitchId};

use super::{super::interrupt::Interrupt, state::State};

/// The judge, the journal and the person before the screen.
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    pub(super) state: &'a State,
    pub(super) interrupt: Interrupt,
}

impl Surroundings for Scene<'_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), String> {
        let mut plan = self.plan.clone();
        let topology = &self.plan.topology;
        for ((switch, config), device) in topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            // On the way from another plan there may be ports that this one does not name.
            let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            *device = align(config, &ports).to_intent(topology, switch);
        }
        let report = verify::check(&plan);
        match report.findings().iter().find(|finding| finding.severity == fabric::Severity::Fatal) {
            None => Ok(()),
            Some(finding) => Err(format!("{}: {}", finding.subject, finding.message)),
        }
    }

    fn note(&mut self, mark: Mark) -> Result<(), String> {
        self.state.note(mark).map_err(|error| format!("{error:#}"))
    }

    fn record(&mut self, journal: &Journal) -> Result<(), String> {
        self.state.record(journal).map_err(|error| format!("{error:#}"))
    }

    fn tell(&mut self, event: &Event) {
        let name = |switch: &SwitchId| self.plan.topology.switch(*switch).name.as_str();
        match event {
            Event::Begun { stage, direction, switches } => {
                let back = if *direction == Direction::Back { " (back)" } else { "" };
                let whom = if *switches > 0 { format!(", {switches} switches") } else { String::new() };
                eprintln!("{stage}{back}{whom}");
            }
            Event::Done(..) => {}
            Event::Failed(stage, switch, fault) => eprintln!("  {stage}: {} {fault}", name(switch)),
            Event::Turned(_) => eprintln!("turning back: every switch gets what it held before"),
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupt.is_pressed()
    }
}
