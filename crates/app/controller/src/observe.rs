//! Observations: the configuration read from switches, written to files, and compared with a plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fabric::{Finding, FindingKind, HostId, Mac, Plan, Severity, SwitchId, Topology, VlanId, VlanSet};
use rollout::{
    addresses::complete,
    bonds::take_bonds,
    diagnose::{Moves, Standing, span},
};
use switch_model::{
    SwitchConfig, align,
    driver::Fault,
    format::{Observed, parse_observed, write_observed},
    judge_flow_control,
    observe::{Drift, drift},
};

use crate::{
    CancellationToken, Error, Fabric,
    error::OnFile as _,
    goals::{goals, goals_while, vlans_of},
    parallel::at_once,
};

/// The result of observing one switch.
#[derive(Clone, Debug)]
pub enum Observation {
    /// What it held.
    Held(Observed),
    /// It did not answer, and why.
    Failed(String),
    /// It was not asked, since it was asked to stop before.
    NotAsked,
}

/// Reads what every switch of a plan holds, `[switch]`: the plan's ports, and others that have to do with its VLANs.
pub fn observe(plan: &Plan, fabric: &Fabric<'_>, token: &CancellationToken) -> Vec<Observation> {
    let vlans = vlans_of(&goals(plan));
    let one = |switch: SwitchId| match token.is_cancelled() {
        true => Observation::NotAsked,
        false => Observation::of(read(plan, fabric, switch, &vlans)),
    };
    at_once(plan.topology.switch_ids().collect(), fabric.parallel(), one)
}

/// Reads what one switch of a plan holds, as [`observe`] does.
pub fn observe_switch(plan: &Plan, fabric: &Fabric<'_>, switch: SwitchId) -> Observation {
    Observation::of(read(plan, fabric, switch, &vlans_of(&goals(plan))))
}

impl Observation {
    fn of(read: Result<Observed, Fault>) -> Self {
        read.map_or_else(|fault| Self::Failed(fault.to_string()), Self::Held)
    }
}

fn read(plan: &Plan, fabric: &Fabric<'_>, switch: SwitchId, vlans: &VlanSet) -> Result<Observed, Fault> {
    let mut device = fabric.connect(switch)?;
    fabric.include_unmanaged(switch, &mut device, vlans)?;
    let reading = device.driver().read()?;
    Ok(Observed {
        switch: plan.topology.switch(switch).name.clone(),
        taken_at: Some(now_s()),
        mark: reading.mark.map(|mark| mark.to_string()),
        state: reading.config,
    })
}

/// Seconds since 1970-01-01 UTC by this machine's clock.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Writes observations to a folder, a file for each switch, and removes older files of switches that were not observed now.
/// Files are replaced only once all have been written.
///
/// # Errors
/// [`Error::File`].
pub fn write_observations(folder: &Path, plan: &Plan, observations: &[Observation]) -> Result<(), Error> {
    fs::create_dir_all(folder).on(folder)?;
    let mut drafts = Vec::new();
    let mut stale = Vec::new();
    for (switch, observation) in plan.topology.switch_ids().zip(observations) {
        let path = folder.join(file_name(switch.index(), &plan.topology.switch(switch).name));
        match observation {
            Observation::Held(observed) => drafts.push(Draft::write(path, &write_observed(observed))?),
            Observation::Failed(_) | Observation::NotAsked => stale.push(path),
        }
    }
    drafts.into_iter().try_for_each(Draft::publish)?;
    for path in stale {
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.on(&path)?,
        }
    }
    Ok(())
}

/// A file under another name until all have been written; one that is not published goes.
struct Draft {
    partial: PathBuf,
    path: PathBuf,
}

impl Draft {
    fn write(path: PathBuf, text: &str) -> Result<Self, Error> {
        let mut partial = path.clone().into_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        let draft = Self { partial: partial.into(), path };
        fs::write(&draft.partial, text).on(&draft.partial)?;
        Ok(draft)
    }

    fn publish(self) -> Result<(), Error> {
        fs::rename(&self.partial, &self.path).on(&self.path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there any more once it has been published.
        let _ = fs::remove_file(&self.partial);
    }
}

/// Names of switches may hold anything; those of files may not.
fn file_name(index: usize, name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    format!("{index:04}-{safe}.json")
}

/// Differences of one switch that are named.
const CAUSES_MAX: usize = 20;
/// How far apart switches may have been observed.
const APART_MAX: Duration = Duration::from_secs(600);

/// What was observed, from the files of a folder.
#[derive(Debug)]
pub struct Observations {
    folder: PathBuf,
    /// By the switches' names, and from which file.
    seen: BTreeMap<String, (PathBuf, Observed)>,
}

impl Observations {
    /// Reads what [`write_observations`] has put into a folder.
    ///
    /// # Errors
    /// [`Error::Request`], if the folder or a file of it cannot be read, or two are of one switch; [`Error::File`].
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let mut seen: BTreeMap<String, (PathBuf, Observed)> = BTreeMap::new();
        let entries = fs::read_dir(folder).map_err(|error| Error::Request(format!("{}: {error}", folder.display())))?;
        for entry in entries {
            let path = entry.on(folder)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = fs::read_to_string(&path).on(&path)?;
                let observed =
                    parse_observed(&text).map_err(|error| Error::Request(format!("{}: {error}", path.display())))?;
                if let Some((other, _)) = seen.get(&observed.switch) {
                    return Err(Error::Request(format!(
                        "{} and {} both hold switch {}; remove the older one, or observe into another folder",
                        path.display(),
                        other.display(),
                        observed.switch
                    )));
                }
                seen.insert(observed.switch.clone(), (path, observed));
            }
        }
        Ok(Self { folder: folder.to_owned(), seen })
    }

    /// The VLANs that the switches use; VLAN 1 is not among them.
    ///
    /// # Errors
    /// [`Error::Request`], if there is no switch.
    pub fn vlans(&self) -> Result<VlanSet, Error> {
        if self.seen.is_empty() {
            return Err(Error::Request(format!(
                "{}: there is no file of observe; observe PLAN -o {0} writes them",
                self.folder.display()
            )));
        }
        let mut used = VlanSet::new();
        for (_, observed) in self.seen.values() {
            used.extend(observed.state.vlans.iter().chain(observed.state.memberships().iter()));
            used.extend(observed.state.ports.iter().filter_map(|port| port.pvid));
        }
        used.remove(VlanId::MIN);
        Ok(used)
    }

    /// Replaces a plan's devices by what the switches said, and returns what can be said of each by itself. Addresses that were learned,
    /// `known`, are further ones of the plan's hosts; where a switch has none of their entries because it learns them, it has them.
    ///
    /// # Errors
    /// [`Error::Request`], if a switch of the plan is missing.
    pub fn replace_devices(&self, plan: &mut Plan, known: &BTreeMap<Mac, HostId>) -> Result<Replaced, Error> {
        let topology = &plan.topology;
        let held = |switch: SwitchId| {
            let names: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            let (_, observed) = self.seen.get(&topology.switch(switch).name)?;
            Some(align(&observed.state, &names))
        };
        let mut held: Vec<Option<SwitchConfig>> = topology.switch_ids().map(held).collect();
        complete(plan, known, &mut held);
        let active = take_bonds(plan, &mut held);
        let goals = goals_while(plan, &active);
        let moves = moves(plan, &goals, &self.seen);
        let moments: Vec<u64> = self.seen.values().filter_map(|(_, observed)| observed.taken_at).collect();
        let taken_at = moments.iter().min().copied().zip(moments.iter().max().copied());
        let mut findings: Vec<Finding> = taken_at.into_iter().filter_map(apart).collect();
        findings.extend(moves.finding(plan));
        findings.extend(taken_over(&plan.topology, &active));
        for (switch, wanted) in plan.topology.switch_ids().zip(&goals) {
            let name = &plan.topology.switch(switch).name;
            let Some((_, observed)) = self.seen.get(name) else {
                return Err(Error::Request(format!(
                    "{} holds nothing of switch {name}; observe it again",
                    self.folder.display()
                )));
            };
            let ports: Vec<String> = wanted.ports.iter().map(|port| port.name.clone()).collect();
            let further: Vec<String> = (observed.state.ports.iter().map(|port| port.name.clone()))
                .filter(|name| wanted.slot(name).is_none())
                .collect();
            let completed = |mut config: SwitchConfig| {
                if let Some(held) = &held[switch.index()] {
                    // Those at ports that the plan does not know stay.
                    config.entries.retain(|_, slot| slot.index() >= ports.len());
                    config.entries.extend(&held.entries);
                }
                config
            };
            let config = completed(align(&observed.state, &ports));
            findings.extend(judge_flow_control(name, &config, wanted));
            // Settings have been judged; what frames make of the rest is for the judge, and this names the cause.
            let cause = |drift: &Drift| {
                !matches!(
                    drift,
                    Drift::SpanningTree { .. }
                        | Drift::IngressFilter { .. }
                        | Drift::FlowControl { .. }
                        | Drift::Floods { .. }
                )
            };
            let whole = completed(align(&observed.state, &[&ports[..], &further].concat()));
            let drifts = drift(&whole, &wanted.with_parked(&further));
            let unmoved = |drift: &&Drift| match drift {
                Drift::Pvid { port, .. } => !moves.explains(plan, switch, port.index()),
                _ => true,
            };
            findings.extend(drifts.iter().filter(|drift| cause(drift)).filter(unmoved).take(CAUSES_MAX).map(|drift| {
                Finding {
                    severity: Severity::Warning,
                    kind: FindingKind::PlanMismatch,
                    subject: name.clone(),
                    message: format!("{}; {}", drift.sentence(&whole), drift.remedy()),
                }
            }));
            plan.devices[switch.index()] = config.to_intent(&active, &plan.devices[switch.index()]);
        }
        Ok(Replaced { findings, taken_at })
    }
}

/// What switches said in place of a plan's devices.
#[derive(Debug)]
pub struct Replaced {
    /// What can be said of each by itself.
    pub findings: Vec<Finding>,
    /// When the first and the last of them said so, in seconds since 1970-01-01; none if no file says.
    pub taken_at: Option<(u64, u64)>,
}

/// Switches that were observed at very different times.
fn apart((first, last): (u64, u64)) -> Option<Finding> {
    let apart = Duration::from_secs(last - first);
    (apart > APART_MAX).then(|| Finding {
        severity: Severity::Warning,
        kind: FindingKind::PlanMismatch,
        subject: "observation".to_owned(),
        message: format!(
            "the switches were observed up to {} apart, so the fabric may never have been in this state; observe again",
            span(apart)
        ),
    })
}

/// Bonds whose entries lead to another port than the planned one.
fn taken_over<'t>(planned: &'t Topology, active: &'t Topology) -> impl Iterator<Item = Finding> + 't {
    let is_now_active = |host: &HostId| planned.host(*host).standby && !active.host(*host).standby;
    planned.host_ids().filter(is_now_active).map(|host| Finding {
        severity: Severity::Note,
        kind: FindingKind::PlanMismatch,
        subject: planned.machine(planned.host(host).machine).name.clone(),
        message: format!(
            "entries lead to its port {} instead of {}, as the plan has it stored for a failover; see espalier status",
            planned.host(host).name,
            planned.host(planned.active_port(host)).name
        ),
    })
}

/// Which hosts' ports hold what the plan stored for a cable's failure.
fn moves(plan: &Plan, goals: &[SwitchConfig], seen: &BTreeMap<String, (PathBuf, Observed)>) -> Moved {
    let topology = &plan.topology;
    let found: Vec<Option<Option<VlanId>>> = (topology.hosts().iter())
        .map(|host| {
            let switch = topology.port(host.port).switch;
            let slot = host.port.index() - topology.switch_ports(switch).start;
            let (_, observed) = seen.get(&topology.switch(switch).name)?;
            let name = &goals[switch.index()].ports[slot].name;
            Some(observed.state.port(observed.state.slot(name)?).pvid)
        })
        .collect();
    Moved(Moves::find(plan, &found, &BTreeSet::new()))
}

struct Moved(Moves);

impl Moved {
    /// Whether a port differs because a failure's answer is in force.
    fn explains(&self, plan: &Plan, switch: SwitchId, slot: usize) -> bool {
        let ports = plan.topology.switch_ports(switch);
        if slot >= ports.len() {
            return false;
        }
        let port = fabric::PortId::new(ports.start + slot);
        self.0.explained().any(|host| plan.topology.host(host).port == port)
    }

    fn finding(&self, plan: &Plan) -> Option<Finding> {
        let message = match self.0.standing {
            Standing::For(failure) | Standing::Lingering(failure) => format!(
                "hosts' ports hold what the plan stored for the failure of {}: {} in all; nothing is wrong with these switches while that is \
                 down, see espalier status",
                failure.label(&plan.topology),
                self.0.moved.len()
            ),
            Standing::Between => {
                "hosts' ports are in the middle of a change of standby; see espalier status".to_owned()
            }
            Standing::Home => return None,
        };
        Some(Finding {
            severity: Severity::Note,
            kind: FindingKind::PlanMismatch,
            subject: "standby".to_owned(),
            message,
        })
    }
}
