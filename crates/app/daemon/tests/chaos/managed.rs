//! What managers do with virtual switches: read, watch, write.

use std::{collections::BTreeSet, time::Duration};

use drivers::snmp::{Glance, PortGlance};
use fabric::{Admin, InBand, LinkId, Mac, PortId, SwitchId, Topology, VlanId};
use rollout::{
    addresses::LearnedRow,
    deploy::Cables,
    diagnose::{PortSight, Sight as Status},
};
use switch_model::{
    Slot, SwitchConfig, align,
    driver::{Fault, Fence, Reading},
    edit::{Edit, edits},
    mark::Mark,
    observe::Count,
    sight::Sight,
    station::{Capabilities, LldpId, LldpNeighbour, Station, StationPort},
};

use crate::{
    fabric::{Switch, VirtualFabric, names},
    frames, loops, pairs,
};

/// Subtypes of LLDP identifiers: locally assigned chassis, interface name.
const CHASSIS_LOCAL: i32 = 7;
const PORT_NAME: i32 = 5;
const LLDP_INTERVAL: Duration = Duration::from_secs(30);

/// What happens in the middle of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Midway {
    /// The switch loses its power, and comes back a little later.
    Restarts,
    /// It refuses the rest.
    Refuses,
    /// Whoever writes is no more.
    WriterDies,
    /// It does everything, and its answer is lost.
    AnswerLost,
}

impl VirtualFabric {
    /// Whether a switch answers.
    pub(crate) fn answers(&self, switch: SwitchId) -> bool {
        self.switch(switch).on && self.switch(switch).reachable && self.hears_controller(switch)
    }

    /// Whether frames of the controller come to a switch; always where management has a network of its own.
    fn hears_controller(&self, switch: SwitchId) -> bool {
        let Some(InBand { vlan, controller }) = self.topology.in_band() else { return true };
        let open = self.running(controller);
        if open.admin != Admin::Up || open.pvid != Some(vlan) || !open.untagged.contains(vlan) {
            return false;
        }
        let (first, _) = self.place(controller);
        if !self.switch(first).on {
            return false;
        }
        let mut heard = BTreeSet::from([first]);
        let mut due = frames::next(self, first, None, vlan);
        while let Some((port, vlan)) = due.pop() {
            let (at, _) = self.place(port);
            if heard.insert(at) {
                due.extend(frames::next(self, at, Some(port), vlan));
            }
        }
        heard.contains(&switch)
    }

    fn reached(&self, switch: SwitchId) -> Result<&Switch, Fault> {
        if self.answers(switch) { Ok(self.switch(switch)) } else { Err(Fault::Silent) }
    }

    /// What a switch of a plan holds.
    pub(crate) fn read(&self, plan: &Topology, switch: SwitchId) -> Result<Reading, Fault> {
        let state = self.reached(self.find(plan, switch))?;
        let config = seen_as(&state.running, plan, switch);
        Ok(Reading { config, mark: state.mark, fence: Fence(state.fence) })
    }

    /// When a switch of a plan started last.
    pub(crate) fn booted_ms(&self, plan: &Topology, switch: SwitchId) -> u64 {
        self.switch(self.find(plan, switch)).booted_ms
    }

    /// A switch of a plan as a standby sees it.
    pub(crate) fn glance(&self, plan: &Topology, switch: SwitchId) -> Result<Glance, Fault> {
        let own = self.find(plan, switch);
        let state = self.reached(own)?;
        let first = self.topology.switch_ports(own).start;
        let port = |name: &String| {
            let slot = state.running.slot(name).expect("plans name ports of the fabric");
            let running = state.carries[slot.index()].0;
            let received = self.bonds.received(PortId::new(first + slot.index()), self.now_ms);
            PortGlance { running, pvid: state.running.port(slot).pvid, received }
        };
        let up_cs = ((self.now_ms - state.booted_ms) / 10) as u32;
        Ok(Glance { mark: state.mark, up_cs, ports: names(plan, switch).iter().map(port).collect() })
    }

    /// A switch of a plan as a poll sees it.
    pub(crate) fn poll(&self, plan: &Topology, switch: SwitchId) -> Result<Status, Fault> {
        let state = self.reached(self.find(plan, switch))?;
        let Reading { config, mark, .. } = self.read(plan, switch)?;
        let since = |at_ms: u64| Duration::from_millis(self.now_ms - at_ms.min(self.now_ms));
        let port = |name: &String| {
            let slot = state.running.slot(name).expect("plans name ports of the fabric");
            let (running, at_ms) = state.carries[slot.index()];
            PortSight { running, since: Some(since(at_ms)) }
        };
        Ok(Status {
            config,
            mark,
            station: Some(self.station(plan, switch)),
            ports: names(plan, switch).iter().map(port).collect(),
            lldp_interval: Some(LLDP_INTERVAL),
            up: Some(since(state.booted_ms)),
        })
    }

    fn heard(&self, plan: &Topology, switch: SwitchId) -> Vec<LldpNeighbour> {
        let own = self.find(plan, switch);
        let hears = |(slot, name): (usize, &String)| {
            let port = self.topology.port_ids(own).find(|port| self.topology.port(*port).name == *name)?;
            let far = self.topology.port(self.far(port).filter(|_| self.carries(port))?);
            Some(LldpNeighbour {
                port: slot,
                chassis: self.chassis(far.switch),
                id: LldpId { subtype: PORT_NAME, octets: far.name.as_bytes().to_vec() },
                description: String::new(),
                system: self.topology.switch(far.switch).name.clone(),
                capabilities: Capabilities::default(),
            })
        };
        names(plan, switch).iter().enumerate().filter_map(hears).collect()
    }

    fn chassis(&self, switch: SwitchId) -> LldpId {
        LldpId { subtype: CHASSIS_LOCAL, octets: self.topology.switch(switch).name.as_bytes().to_vec() }
    }

    fn station(&self, plan: &Topology, switch: SwitchId) -> Station {
        let port = |name: String| {
            let id = Some(LldpId { subtype: PORT_NAME, octets: name.as_bytes().to_vec() });
            StationPort { name, id, ..StationPort::default() }
        };
        Station {
            name: plan.switch(switch).name.clone(),
            chassis: Some(self.chassis(self.find(plan, switch))),
            ports: names(plan, switch).into_iter().map(port).collect(),
            heard: self.heard(plan, switch),
            ..Station::default()
        }
    }

    /// The link of the fabric that a link of a plan is.
    pub(crate) fn find_link(&self, plan: &Topology, link: LinkId) -> Option<LinkId> {
        self.topology.link_ids().find(|own| self.topology.link_label(*own) == plan.link_label(link))
    }

    /// What a deployment of a plan knows of the cables: those that are not cut are where the plan has them.
    pub(crate) fn cables(&self, plan: &Topology) -> Cables {
        let stations = plan.switch_ids().map(|switch| self.station(plan, switch)).collect();
        let is_there = |link: &LinkId| self.find_link(plan, *link).is_some_and(|own| !self.cut.contains(&own));
        Cables::new(plan, stations, plan.link_ids().filter(is_there))
    }

    /// What a switch hears and counts, as a deployment looks at it.
    pub(crate) fn look(&self, plan: &Topology, switch: SwitchId) -> Result<Sight, Fault> {
        let glance = self.glance(plan, switch)?;
        let running: Vec<bool> = glance.ports.iter().map(|port| port.running).collect();
        // Broadcasts are few, and each second brings some.
        let flooded = running.iter().map(|running| Count::Wide(if *running { self.now_ms / 1000 } else { 0 }));
        Ok(Sight { heard: self.heard(plan, switch), flooded: flooded.collect(), running, learned: None })
    }

    /// Takes ports out of service at once.
    pub(crate) fn shut(&mut self, plan: &Topology, switch: SwitchId, ports: &[Slot]) -> Result<(), Fault> {
        let own = self.find(plan, switch);
        self.reached(own)?;
        let names = names(plan, switch);
        let state = &mut self.switches[own.index()];
        for slot in ports {
            let slot = state.running.slot(&names[slot.index()]).expect("plans name ports of the fabric");
            Edit::Shut(slot).apply(&mut state.running);
        }
        state.fence += 1;
        self.settle();
        Ok(())
    }

    /// Has a switch save what it holds.
    pub(crate) fn save(&mut self, plan: &Topology, switch: SwitchId, fence: Fence) -> Result<Fence, Fault> {
        let own = self.find(plan, switch);
        self.reached(own)?;
        let state = &mut self.switches[own.index()];
        if state.fence != fence.0 {
            return Err(Fault::Fenced);
        }
        (state.saved, state.saved_mark) = (state.running.clone(), state.mark);
        state.fence += 1;
        self.writes += 1;
        self.version += 1;
        Ok(Fence(state.fence))
    }

    /// Brings a switch from one state to another, a change at a time. None if whoever writes is no more.
    ///
    /// # Panics
    /// If there is a loop after a change.
    pub(crate) fn write(
        &mut self,
        (plan, switch): (&Topology, SwitchId),
        (before, after): (&SwitchConfig, &SwitchConfig),
        (mark, fence): (Mark, Fence),
        midway: Option<(usize, Midway)>,
    ) -> Option<Result<Fence, Fault>> {
        let own = self.find(plan, switch);
        if let Err(fault) = self.reached(own) {
            return Some(Err(fault));
        }
        if self.switch(own).fence != fence.0 {
            return Some(Err(Fault::Fenced));
        }
        let names = names(&self.topology, own);
        let edits = edits(&align(before, &names), &align(after, &names));
        let stop = midway.map(|(at, how)| (at % (edits.len() + 1), how));
        self.switches[own.index()].mark = Some(mark);
        for (at, edit) in edits.iter().enumerate() {
            match stop {
                Some((stop, Midway::Restarts)) if stop == at => {
                    self.turn_off(own);
                    self.turn_on(own);
                    self.kept.clear();
                    loops::none(self, "after a restart in the middle of a write");
                    return Some(Err(Fault::Silent));
                }
                Some((stop, Midway::Refuses)) if stop == at => {
                    return Some(Err(Fault::Refused("no resources".to_owned())));
                }
                Some((stop, Midway::WriterDies)) if stop == at => return None,
                _ => {}
            }
            let state = &mut self.switches[own.index()];
            edit.apply(&mut state.running);
            state.fence += 1;
            self.writes += 1;
            self.forget_entered(own);
            self.settle();
            loops::none(self, "after a change");
            pairs::none_cut(self, "after a change");
        }
        let state = &mut self.switches[own.index()];
        state.fence += 1;
        self.version += 1;
        match stop {
            Some((_, Midway::AnswerLost)) => Some(Err(Fault::Silent)),
            _ => Some(Ok(Fence(state.fence))),
        }
    }

    /// Makes single changes, as a standby does.
    ///
    /// # Panics
    /// If there is a loop after them.
    pub(crate) fn edit(&mut self, plan: &Topology, switch: SwitchId, changes: &[Edit]) -> Result<(), Fault> {
        let own = self.find(plan, switch);
        self.reached(own)?;
        let state = &mut self.switches[own.index()];
        // A standby knows the plan's ports alone.
        let mut config = seen_as(&state.running, plan, switch);
        changes.iter().for_each(|edit| edit.apply(&mut config));
        state.running = seen_as(&config, &self.topology, own);
        state.fence += changes.len() as u64;
        self.writes += changes.len();
        self.forget_entered(own);
        self.settle();
        loops::none(self, "after a change of standby");
        Ok(())
    }

    /// What a switch of a plan has learned in some VLANs.
    pub(crate) fn learned_in(
        &self,
        plan: &Topology,
        switch: SwitchId,
        vlans: &BTreeSet<VlanId>,
    ) -> Result<Vec<LearnedRow>, Fault> {
        let own = self.find(plan, switch);
        self.reached(own)?;
        let (known, all) = (names(plan, switch), names(&self.topology, own));
        let row = |(vlan, mac, slot): (VlanId, Mac, Slot)| {
            let at = known.iter().position(|name| *name == all[slot.index()])?;
            vlans.contains(&vlan).then_some(LearnedRow { vlan, mac, at: Slot::new(at) })
        };
        Ok(self.rows(own).filter_map(row).collect())
    }
}

/// The state of a switch with the ports that a topology knows.
fn seen_as(config: &SwitchConfig, topology: &Topology, switch: SwitchId) -> SwitchConfig {
    let known = topology.port_ids(switch).map(|port| &topology.port(port).name);
    if known.eq(config.ports.iter().map(|port| &port.name)) {
        return config.clone();
    }
    align(config, &names(topology, switch))
}
