//! What a deployment needs beside its switches: the judge, the store, and whoever listens.

use fabric::{Severity, Topology};
use rollout::{
    addresses::LearnedPlan,
    deploy::{Event, Journal, Reason, Surroundings},
};
use switch_model::{SwitchConfig, mark::Mark};

use super::{DeployEvent, Events, HostsState};
use crate::{CancellationToken, Store};

/// The judge, the store, and whoever listens.
pub struct Judged<'a, 'e> {
    /// The plan that is deployed, with the learned addresses whose entries are kept.
    pub plan: &'a LearnedPlan,
    /// The plan's cabling, or that of both plans.
    pub topology: &'a Topology,
    /// The states that hosts that tag pass through, and the program that hands them out.
    pub hosts: (&'a [HostsState], &'a [String]),
    /// Where the journal is kept.
    pub store: &'a dyn Store,
    /// Whoever holds it can ask to stop.
    pub token: &'a CancellationToken,
    /// Takes events as they happen.
    pub events: &'a mut Events<'e>,
}

impl Surroundings for Judged<'_, '_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), Vec<String>> {
        let report = verify::check(&self.plan.as_held(devices));
        let fatal = report.findings().iter().filter(|finding| finding.severity == Severity::Fatal);
        let fatal: Vec<String> = fatal.map(|finding| format!("{}: {}", finding.subject, finding.message)).collect();
        if fatal.is_empty() { Ok(()) } else { Err(fatal) }
    }

    fn tell_hosts(&mut self, state: usize) -> Result<(), Reason> {
        let (states, program) = self.hosts;
        let none = || Reason::Hosts(format!("there is no state {state} for them"));
        states.get(state).ok_or_else(none)?.hand_out(program, self.token)
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
