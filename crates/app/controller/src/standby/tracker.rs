//! What was seen of each switch, and what each is to hold because of that. No thread, no clock, no switch.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use drivers::snmp::Glance;
use fabric::{HostId, LinkId, Plan, SwitchId, Topology};
use rollout::{
    bonds::{Bonds, Reading, bond_entries, port_health},
    standby::{LinkHealth, Pvid, Standby, link_health},
};
use switch_model::{Entries, Slot, driver::Fault, edit::Edit, mark::Mark};

use super::{StandbyEvent, StandbyResult};

/// What a switch is to hold of what a standby changes.
#[derive(Clone, Default)]
pub struct DesiredState {
    /// Grows with each change of what switches are to hold.
    pub turn: u64,
    /// PVIDs of hosts' ports.
    pub pvids: Vec<(Slot, Pvid)>,
    /// Entries for the addresses of bonds; there are to be no others.
    pub entries: Arc<Entries>,
}

impl DesiredState {
    /// What is to be written to a switch that was seen like this and holds these entries for addresses of bonds.
    pub fn edits(&self, seen: &Glance, held: &Entries) -> Vec<Edit> {
        let differs = |(slot, pvid): &&(Slot, Pvid)| seen.ports[slot.index()].pvid != *pvid;
        let pvids = self.pvids.iter().filter(differs).map(|(slot, pvid)| Edit::SetPvid(*slot, *pvid));
        let gone = held.keys().filter(|entry| !self.entries.contains_key(entry));
        let gone = gone.map(|(vlan, mac)| Edit::UnsetEntry(*vlan, *mac));
        let turned = self.entries.iter().filter(|(entry, slot)| held.get(entry) != Some(slot));
        let turned = turned.map(|((vlan, mac), slot)| Edit::SetEntry(*vlan, *mac, *slot));
        turned.chain(gone).chain(pvids).collect()
    }
}

/// The result of a look at a switch, which was brought to what was desired at `turn`.
pub struct Report {
    /// Which switch.
    pub switch: SwitchId,
    /// The turn; 0 before anything was desired.
    pub turn: u64,
    /// When it was, since the start.
    pub at: Duration,
    /// What was seen.
    pub seen: Result<Glance, Fault>,
}

/// What was seen of each switch, and what each is to hold.
pub struct Tracker<'a> {
    plan: &'a Plan,
    mark: Mark,
    standby: Standby,
    bonds: Bonds,
    /// `seen[switch]`.
    seen: Vec<Option<Glance>>,
    /// `turns[switch]`.
    turns: Vec<u64>,
    faults: BTreeMap<SwitchId, Fault>,
    silent: BTreeSet<SwitchId>,
    turn: u64,
    /// What hosts use by the turn.
    told: Option<rollout::standby::ActiveVlans>,
    is_up: bool,
}

/// Whether a deployment tag is of the deployment of `mark`. Nonces differ where a deployment was resumed.
pub(super) fn is_same_deployment(found: Mark, mark: Mark) -> bool {
    (found.generation, found.digest) == (mark.generation, mark.digest)
}

impl<'a> Tracker<'a> {
    /// Nothing has been seen yet of the switches of a plan, which bear this deployment tag.
    pub fn new(plan: &'a Plan, mark: Mark, standby: Standby, bonds: Bonds) -> Self {
        let switches = plan.topology.switches().len();
        Self {
            plan,
            mark,
            standby,
            bonds,
            seen: vec![None; switches],
            turns: vec![0; switches],
            faults: BTreeMap::new(),
            silent: BTreeSet::new(),
            turn: 0,
            told: None,
            is_up: false,
        }
    }

    /// What hosts are to use now.
    pub fn standby(&self) -> &Standby {
        &self.standby
    }

    /// Takes looks at switches, at `now` since the start; returns whether switches are to hold something else from now on.
    ///
    /// # Errors
    /// How standing by ends: the switches are not those of the plan any more.
    pub fn take(
        &mut self,
        now: Duration,
        reports: impl IntoIterator<Item = Report>,
        events: &mut (dyn FnMut(StandbyEvent) + '_),
    ) -> Result<bool, StandbyResult> {
        reports.into_iter().try_for_each(|report| self.note(report, events))?;
        let topology = &self.plan.topology;
        let running: Vec<Option<Vec<bool>>> = (self.seen.iter())
            .map(|glance| Some(glance.as_ref()?.ports.iter().map(|port| port.running).collect()))
            .collect();
        let links = link_health(topology, &running);
        if !self.is_up {
            // Everybody has answered at the start; what they said of their hosts' ports is to be known of all at once.
            let Some(found) = self.found() else { return Ok(false) };
            let down = |(_, health): &(LinkId, &LinkHealth)| **health == LinkHealth::Down;
            let dead = topology.link_ids().zip(&links).filter(down).map(|(link, _)| link).collect();
            if let Err(host) = self.standby.take_up(&found, &dead) {
                return Err(StandbyResult::Foreign(host, found[host.index()]));
            }
            self.is_up = true;
            events(StandbyEvent::Ready { prepared: self.standby.prepared(), bonds: self.bonds.len() });
        }
        self.standby.handle_links(now, &links, &self.silent);
        let turned = self.bonds.handle_ports(now, &port_health(topology, &running, &links));
        let is_behind = |switch: &SwitchId| {
            self.turns[switch.index()] != self.turn || self.told != Some(self.standby.active()) || self.lags(*switch)
        };
        let behind: BTreeSet<SwitchId> = topology.switch_ids().filter(is_behind).collect();
        self.standby.handle_held(now, &behind, &self.silent);
        while let Some((link, in_a_row)) = self.standby.poll_failure() {
            events(StandbyEvent::Failure(link, in_a_row));
        }
        while let Some(notice) = self.standby.poll_notice() {
            events(StandbyEvent::Notice(notice));
        }
        while let Some(notice) = self.bonds.poll_notice() {
            events(StandbyEvent::Bond(notice));
        }
        let changes = self.told != Some(self.standby.active()) || turned;
        if changes {
            (self.told, self.turn) = (Some(self.standby.active()), self.turn + 1);
        }
        Ok(changes)
    }

    fn note(
        &mut self,
        Report { switch, turn, at, seen }: Report,
        events: &mut (dyn FnMut(StandbyEvent) + '_),
    ) -> Result<(), StandbyResult> {
        match seen {
            Ok(glance) => {
                match glance.mark {
                    Some(mark) if is_same_deployment(mark, self.mark) => {}
                    Some(mark) => return Err(StandbyResult::Superseded(switch, mark)),
                    None => return Err(StandbyResult::Untagged(switch)),
                }
                if self.faults.remove(&switch).is_some() {
                    events(StandbyEvent::Answers(switch));
                }
                self.silent.remove(&switch);
                for (host, slot) in host_ports(&self.plan.topology, switch) {
                    let Glance { up_cs, ref ports, .. } = glance;
                    self.bonds.handle_reading(host, Reading { at, up_cs, received: ports[slot.index()].received });
                }
                (self.seen[switch.index()], self.turns[switch.index()]) = (Some(glance), turn);
            }
            Err(fault) => {
                if self.faults.get(&switch) != Some(&fault) {
                    events(StandbyEvent::Fault(switch, fault.clone()));
                }
                if fault == Fault::Silent {
                    self.seen[switch.index()] = None;
                    self.silent.insert(switch);
                }
                self.faults.insert(switch, fault);
            }
        }
        Ok(())
    }

    /// What a switch is to hold now.
    pub fn desired(&self, switch: SwitchId) -> DesiredState {
        let pvids = host_ports(&self.plan.topology, switch).map(|(host, slot)| (slot, self.standby.pvid(host)));
        let entries = Arc::new(self.bonds.entries(self.plan, switch));
        DesiredState { turn: self.turn, pvids: pvids.collect(), entries }
    }

    /// Ends: what a switch is to hold from now on, if anything is to be changed for that.
    pub fn leave(&mut self) -> Option<Vec<DesiredState>> {
        if !self.is_up || self.bonds.is_empty() {
            return None;
        }
        self.turn += 1;
        let of = |switch: SwitchId| {
            let entries = Arc::new(bond_entries(self.plan, self.bonds.topology(), switch));
            DesiredState { entries, ..self.desired(switch) }
        };
        Some(self.plan.topology.switch_ids().map(of).collect())
    }

    /// `found[host]`: what its port has; none before every switch has been seen.
    fn found(&self) -> Option<Vec<Pvid>> {
        let topology = &self.plan.topology;
        let of = |host: HostId| {
            let switch = topology.switch_of(host);
            let slot = topology.host(host).port.index() - topology.switch_ports(switch).start;
            Some(self.seen[switch.index()].as_ref()?.ports[slot].pvid)
        };
        topology.host_ids().map(of).collect()
    }

    /// Whether a switch holds a state other than the one wanted, or its state is unknown.
    fn lags(&self, switch: SwitchId) -> bool {
        let Some(glance) = &self.seen[switch.index()] else { return true };
        let mut ports = host_ports(&self.plan.topology, switch);
        ports.any(|(host, slot)| glance.ports[slot.index()].pvid != self.standby.pvid(host))
    }
}

/// The ports of a switch where the frames of bonds are counted.
pub fn counted_ports(topology: &Topology, switch: SwitchId) -> Vec<Slot> {
    let ports = host_ports(topology, switch).filter(|(host, _)| topology.is_in_bond(topology.host(*host)));
    ports.map(|(_, slot)| slot).collect()
}

fn host_ports(topology: &Topology, switch: SwitchId) -> impl Iterator<Item = (HostId, Slot)> + '_ {
    let first = topology.switch_ports(switch).start;
    topology.hosts_of(switch).iter().map(move |host| (*host, Slot::new(topology.host(*host).port.index() - first)))
}
