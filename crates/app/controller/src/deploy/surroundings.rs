//! What a deployment needs beside its switches: the judge, the store, and whoever listens.

use fabric::{Plan, Severity, Topology};
use rollout::deploy::{Event, Journal, Surroundings};
use switch_model::{SwitchConfig, align, mark::Mark};

use super::{DeployEvent, Events};
use crate::{CancellationToken, Store};

/// The judge, the store, and whoever listens.
pub struct Judged<'a, 'e> {
    /// The plan that is deployed.
    pub plan: &'a Plan,
    /// The plan's cabling, or that of both plans.
    pub topology: &'a Topology,
    /// Where the journal is kept.
    pub store: &'a dyn Store,
    /// Whoever holds it can ask to stop.
    pub token: &'a CancellationToken,
    /// Takes events as they happen.
    pub events: &'a mut Events<'e>,
}

impl Surroundings for Judged<'_, '_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), Vec<String>> {
        let mut plan = self.plan.clone();
        let topology = &self.plan.topology;
        for ((switch, config), device) in topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            // On the way from another plan there may be ports that this one does not name.
            let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            *device = align(config, &ports).to_intent(topology, device);
        }
        let report = verify::check(&plan);
        let fatal = report.findings().iter().filter(|finding| finding.severity == Severity::Fatal);
        let fatal: Vec<String> = fatal.map(|finding| format!("{}: {}", finding.subject, finding.message)).collect();
        if fatal.is_empty() { Ok(()) } else { Err(fatal) }
    }

    fn note(&mut self, mark: Mark) -> Result<(), String> {
        self.store.claim(mark).map_err(|error| error.words())
    }

    fn record(&mut self, journal: &Journal) -> Result<(), String> {
        self.store.record(journal).map_err(|error| error.words())
    }

    fn tell(&mut self, event: &Event) {
        (self.events)(DeployEvent::Deployment(self.topology, event));
    }

    fn interrupted(&mut self) -> bool {
        self.token.take()
    }
}
