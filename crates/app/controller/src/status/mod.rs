//! The health of a fabric, and the load of its links.
//!
//! ```text
//!   a switch ─ pulse: counters, states, indicators ─ every look ─▶ load of links
//!        └─── tables: configuration, neighbours ─ when an indicator moved, or when they are old ─▶ diagnose
//! ```

mod expected;
mod load;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use drivers::snmp::{Pulse, PulseColumns};
use fabric::{HostId, Mac, Plan, SwitchId, VlanSet};
use rollout::diagnose::{Cause, Diagnosis, PortSight, Sight, Urgency};
use switch_model::{SwitchConfig, driver::Fault, mark::Mark, observe::Snapshot, station::Station};

use self::load::link_loads;
use crate::{
    Fabric,
    goals::vlans_of,
    parallel::at_once,
    reached::{Connected, Reached},
};

pub use self::{expected::Expected, load::LinkLoad};

/// The switches of a plan, and what is known of each.
pub struct Monitor<'a> {
    expected: Expected<'a>,
    began: Instant,
    fabric: &'a Fabric<'a>,
    vlans: VlanSet,
    full_every: Duration,
    /// `switches[switch]`.
    switches: Vec<Attended>,
    /// Counters when the last report was made.
    before: Vec<Option<Snapshot>>,
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
    /// `None` for a switch that is read by its command line.
    station: Option<Station>,
    read_at: Instant,
}

impl<'a> Monitor<'a> {
    /// A monitor of a plan's switches, none of which has been asked yet. Tables are read when something may have changed, and
    /// when they are `full_every` old. Addresses that were learned, `known`, are further ones of the plan's hosts.
    pub fn new(plan: &'a Plan, known: &'a BTreeMap<Mac, HostId>, fabric: &'a Fabric<'a>, full_every: Duration) -> Self {
        let expected = Expected::new(plan, known);
        let vlans = vlans_of(expected.goals());
        let unknown = |_| Attended { reached: None, columns: PulseColumns::default(), pulse: None, tables: None };
        let switches: Vec<Attended> = plan.topology.switches().iter().map(unknown).collect();
        let before = vec![None; switches.len()];
        Self { expected, began: Instant::now(), fabric, vlans, full_every, switches, before }
    }

    /// Takes which addresses have been learned by now; `base` is the plan without any. See [`Expected::follow`].
    pub fn follow(&mut self, base: &Plan, learned: &BTreeMap<Mac, HostId>) {
        let reads = self.switches.iter().filter_map(|switch| switch.tables.as_ref()).map(|tables| tables.read_at);
        let oldest = reads.min().map(|at| at.saturating_duration_since(self.began));
        self.expected.follow(self.began.elapsed(), oldest, base, learned);
    }

    /// The plan that switches are compared with, with the addresses that were learned.
    pub fn plan(&self) -> &Plan {
        self.expected.plan()
    }

    /// Reads what has changed on every switch; connects again to those that did not answer before.
    pub fn look(&mut self) {
        let Self { expected, fabric, vlans, full_every, .. } = self;
        let goals = expected.goals();
        let attended = expected.plan().topology.switch_ids().zip(&mut self.switches).collect();
        at_once(attended, fabric.parallel(), |(id, switch): (SwitchId, &mut Attended)| {
            let mut reached = match switch.reached.take() {
                Some(Ok(reached)) => reached,
                Some(Err(_)) | None => match fabric.connect_to_look(id) {
                    Ok(reached) => reached,
                    Err(fault) => return switch.forget(fault),
                },
            };
            match switch.ask(fabric, id, &mut reached, vlans, *full_every) {
                Ok(()) => {
                    switch.reached = Some(Ok(reached));
                    // Most switches hold what they are to.
                    if let Some(tables) = &mut switch.tables {
                        tables.config.entries.share(&goals[id.index()].entries);
                    }
                }
                Err(fault) => switch.forget(fault),
            }
        });
    }

    /// Starts the interval of the links' load anew.
    pub fn begin_interval(&mut self) {
        self.before = self.counts();
    }

    /// Everything that is known, and what links carried since the interval began.
    pub fn report(&self) -> StatusReport {
        let switches = self.switches.iter().zip(self.expected.goals());
        let mut seen: Vec<Result<Sight, Fault>> =
            switches.map(|(switch, goal)| switch.sight(goal.ports.len())).collect();
        let ages = self.switches.iter().map(|switch| switch.tables.as_ref().map(|tables| tables.read_at.elapsed()));
        StatusReport {
            diagnoses: self.expected.diagnose(&mut seen),
            links: link_loads(self.plan(), &self.before, &self.counts()),
            ages: ages.collect(),
            seen,
        }
    }

    fn counts(&self) -> Vec<Option<Snapshot>> {
        self.switches.iter().map(|switch| switch.pulse.as_ref().map(|pulse| pulse.counts.clone())).collect()
    }
}

/// The health of a fabric, and the load of its links.
#[derive(Debug)]
pub struct StatusReport {
    /// `seen[switch]`: what it said, or why it said nothing.
    pub seen: Vec<Result<Sight, Fault>>,
    /// `ages[switch]`: how long ago its tables were read.
    pub ages: Vec<Option<Duration>>,
    /// What is wrong, most urgent first.
    pub diagnoses: Vec<Diagnosis>,
    /// Every cable between switches, then those of hosts.
    pub links: Vec<LinkLoad>,
}

impl StatusReport {
    /// Whether there is nothing to do and nothing to wait for.
    pub fn is_sound(&self) -> bool {
        self.diagnoses.iter().all(|diagnosis| diagnosis.urgency == Urgency::Note)
    }

    /// How many switches answer and do not differ from the plan without a reason.
    pub fn as_planned(&self) -> usize {
        let differs = |switch: SwitchId| {
            self.diagnoses.iter().any(|diagnosis| match &diagnosis.cause {
                Cause::Drained { switches } => switches.contains(&switch),
                cause => cause.switch() == Some(switch),
            })
        };
        (0..self.seen.len()).filter(|switch| !differs(SwitchId::new(*switch))).count()
    }

    /// How many switches were asked by their command line, which says nothing of cables and counters.
    pub fn unasked(&self) -> usize {
        self.seen.iter().filter(|seen| seen.as_ref().is_ok_and(|sight| sight.station.is_none())).count()
    }
}

impl Attended {
    fn forget(&mut self, fault: Fault) {
        *self = Self { reached: Some(Err(fault)), columns: PulseColumns::default(), pulse: None, tables: None };
    }

    /// Reads counters, and tables if they are old or something may have changed.
    fn ask(
        &mut self,
        fabric: &Fabric<'_>,
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
            fabric.include_unmanaged(id, reached, vlans)?;
            let reading = reached.driver().read()?;
            let station = match reached {
                Reached::Snmp(_) => fabric.survey(id, reached)?.map(|reply| reply.station),
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
