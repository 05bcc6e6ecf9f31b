//! Whether switches hold a plan, read before something attends to them: one deployment tag, and no difference but in what changes
//! while a plan runs (PVIDs of hosts' ports, entries of failover bonds, entries of addresses that are learned).

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use drivers::snmp::Device;
use fabric::{Mac, Plan, SwitchId, Topology};
use rollout::bonds::{bond_addresses, bond_entries};
use snmp::UdpLink;
use switch_model::{
    Entries,
    driver::{Driver as _, Fault, Reading},
    mark::{Mark, Phase},
    observe::{Drift, drift},
};

use crate::{CancellationToken, Fabric, goals::goals, parallel::at_once};

/// How long it may take to notice that it is to end.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);
/// How long a switch that does not answer is left alone.
const AGAIN: Duration = Duration::from_secs(2);

/// Why switches do not hold a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// A switch bears no deployment tag.
    NoTag(SwitchId),
    /// A switch is in the middle of a deployment.
    UnderWay(SwitchId, Mark),
    /// Two switches bear the tags of different deployments.
    Tags([(SwitchId, Mark); 2]),
    /// A switch holds something else than the plan, in a sentence.
    Differs(SwitchId, String),
}

/// A switch that is attended to, and the entries that it is known to hold of those that change while a plan runs.
pub(crate) struct Attended {
    pub(crate) device: Device<UdpLink>,
    pub(crate) entries: Entries,
    /// How often the switch had started when they were read.
    starts: u32,
}

impl Attended {
    pub(crate) fn new(device: Device<UdpLink>, entries: Entries) -> Self {
        let starts = device.starts();
        Self { device, entries, starts }
    }

    /// Whether the switch was seen to start anew since its entries were read: it holds those that it had saved.
    pub(crate) fn has_restarted(&self) -> bool {
        self.device.starts() != self.starts
    }
}

/// A switch and what was read from it.
pub(crate) struct Found {
    device: Device<UdpLink>,
    reading: Reading,
}

/// Addresses whose entries change while a plan runs: those of failover bonds, and those that ports learn.
pub(crate) struct Changing {
    of_bonds: BTreeSet<Mac>,
    /// Addresses of the plan's own hosts, where ports learn others.
    owned: Option<BTreeSet<Mac>>,
}

impl Changing {
    pub(crate) fn of(topology: &Topology) -> Self {
        let learns = topology.learning_hosts().next().is_some();
        let owned = learns.then(|| topology.all_owners().into_keys().collect());
        Self { of_bonds: bond_addresses(topology), owned }
    }

    /// Whether there are no such addresses.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_bonds.is_empty() && self.owned.is_none()
    }

    /// Whether its entries change while a plan runs.
    pub(crate) fn includes(&self, mac: Mac) -> bool {
        self.is_of_bond(mac) || self.is_learned(mac)
    }

    /// Whether it is the address of a bond.
    pub(crate) fn is_of_bond(&self, mac: Mac) -> bool {
        self.of_bonds.contains(&mac)
    }

    /// Whether it is none of the plan's, and ports learn such.
    pub(crate) fn is_learned(&self, mac: Mac) -> bool {
        self.owned.as_ref().is_some_and(|owned| !owned.contains(&mac))
    }
}

/// Reads every switch, and waits for those that do not answer: what an earlier run left may be theirs. None if somebody does
/// not want to wait. `waits` is told of each switch that does not answer.
pub(crate) fn start(
    plan: &Plan,
    fabric: &Fabric<'_>,
    token: &CancellationToken,
    waits: &mut dyn FnMut(SwitchId, Fault),
) -> Option<Vec<Found>> {
    let one = |switch: SwitchId| -> Result<Found, Fault> {
        let mut device = fabric.connect_by_snmp(switch)?;
        let reading = device.read()?;
        Ok(Found { device, reading })
    };
    let mut found: BTreeMap<SwitchId, Found> = BTreeMap::new();
    let mut told = BTreeSet::new();
    loop {
        let missing: Vec<SwitchId> = plan.topology.switch_ids().filter(|switch| !found.contains_key(switch)).collect();
        if missing.is_empty() {
            return Some(found.into_values().collect());
        }
        for (switch, answer) in missing.iter().zip(at_once(missing.clone(), fabric.parallel(), one)) {
            match answer {
                Ok(answer) => {
                    found.insert(*switch, answer);
                }
                Err(fault) if told.insert(*switch) => waits(*switch, fault),
                Err(_) => {}
            }
        }
        let due = Instant::now() + AGAIN;
        while found.len() < plan.topology.switches().len() && Instant::now() < due {
            if token.is_cancelled() {
                return None;
            }
            thread::sleep(MOMENT);
        }
    }
}

/// The deployment tag of all switches, if each holds the plan, and the switches. `found[switch]`.
pub(crate) fn agree(plan: &Plan, found: Vec<Found>) -> Result<(Mark, Vec<Attended>), Disagreement> {
    let (readings, devices): (Vec<Reading>, Vec<Device<UdpLink>>) =
        found.into_iter().map(|Found { device, reading }| (reading, device)).unzip();
    let (mark, entries) = agreement(plan, readings)?;
    Ok((mark, devices.into_iter().zip(entries).map(|(device, entries)| Attended::new(device, entries)).collect()))
}

/// The deployment tag of all switches, if each holds the plan except for what changes while the plan runs; and the entries of those
/// addresses that each holds. `readings[switch]`.
///
/// # Errors
/// [`Disagreement`].
///
/// # Panics
/// If there is no switch.
pub fn agreement(plan: &Plan, readings: Vec<Reading>) -> Result<(Mark, Vec<Entries>), Disagreement> {
    let (goals, changing) = (goals(plan), Changing::of(&plan.topology));
    let changes = |mac: Mac| changing.includes(mac);
    let mut mark: Option<(SwitchId, Mark)> = None;
    let mut all = Vec::new();
    for (switch, mut reading) in plan.topology.switch_ids().zip(readings) {
        let Some(own) = reading.mark else { return Err(Disagreement::NoTag(switch)) };
        if own.phase == Phase::UnderWay {
            return Err(Disagreement::UnderWay(switch, own));
        }
        match mark {
            None => mark = Some((switch, own)),
            Some((first, other)) if (other.generation, other.digest) != (own.generation, own.digest) => {
                return Err(Disagreement::Tags([(first, other), (switch, own)]));
            }
            Some(_) => {}
        }
        // Entries that an earlier run turned are turned to where they belong as soon as that is known.
        let mut entries = reading.config.entries.clone();
        entries.retain(|(_, mac), _| changes(*mac));
        reading.config.entries.retain(|(_, mac), _| !changes(*mac));
        reading.config.entries.extend(bond_entries(plan, &plan.topology, switch));
        let ports = plan.topology.switch_ports(switch);
        let ours = |drift: &Drift| match drift {
            // Hosts that a standby moved; whether it was one is seen when all switches are known.
            Drift::Pvid { port, .. } => {
                let port = plan.topology.port(fabric::PortId::new(ports.start + port.index()));
                matches!(port.attachment, fabric::Attachment::Host(_))
            }
            _ => false,
        };
        if let Some(foreign) = drift(&reading.config, &goals[switch.index()]).iter().find(|drift| !ours(drift)) {
            return Err(Disagreement::Differs(switch, foreign.sentence(&reading.config)));
        }
        all.push(entries);
    }
    let (_, mark) = mark.expect("a plan has switches");
    Ok((mark, all))
}
