//! Switches in virtual time: what they hold, what they restart with, which of their ports carry, and whether they answer.

use std::{collections::BTreeSet, time::Duration};

use drivers::snmp::{Glance, PortGlance};
use fabric::{Admin, Attachment, LinkId, PortId, SwitchId, Topology, VlanId, rng::Rng};
use rollout::{
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

use crate::loops;

/// Subtypes of LLDP identifiers: locally assigned chassis, interface name.
const CHASSIS_LOCAL: i32 = 7;
const PORT_NAME: i32 = 5;
const LLDP_INTERVAL: Duration = Duration::from_secs(30);

/// A switch.
pub(crate) struct Switch {
    pub(crate) running: SwitchConfig,
    saved: SwitchConfig,
    pub(crate) mark: Option<Mark>,
    saved_mark: Option<Mark>,
    fence: u64,
    pub(crate) on: bool,
    pub(crate) reachable: bool,
    booted_ms: u64,
    /// `carries[slot]`, and since when.
    carries: Vec<(bool, u64)>,
}

/// All switches and their cables.
pub(crate) struct VirtualFabric {
    /// The cabling, which plans may know only in part.
    pub(crate) topology: Topology,
    pub(crate) switches: Vec<Switch>,
    cut: BTreeSet<LinkId>,
    pub(crate) now_ms: u64,
    /// Changes that managers made.
    pub(crate) writes: usize,
    /// Grows with each change of anything.
    pub(crate) version: u64,
}

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
    /// Switches as they come out of their boxes.
    pub(crate) fn new(topology: &Topology) -> Self {
        let switch = |switch: SwitchId| {
            let names = names(topology, switch);
            let carries = vec![(false, 0); names.len()];
            let config = SwitchConfig::out_of_the_box(names);
            Switch {
                running: config.clone(),
                saved: config,
                mark: None,
                saved_mark: None,
                fence: 1,
                on: true,
                reachable: true,
                booted_ms: 0,
                carries,
            }
        };
        let switches = topology.switch_ids().map(switch).collect();
        let mut fabric =
            Self { topology: topology.clone(), switches, cut: BTreeSet::new(), now_ms: 0, writes: 0, version: 0 };
        fabric.settle();
        fabric
    }

    /// The switch that a plan calls so.
    pub(crate) fn find(&self, plan: &Topology, switch: SwitchId) -> SwitchId {
        self.topology.find_switch(&plan.switch(switch).name).expect("plans name switches of the fabric")
    }

    fn switch(&self, switch: SwitchId) -> &Switch {
        &self.switches[switch.index()]
    }

    /// Takes that something has changed: which ports carry since now.
    fn settle(&mut self) {
        self.version += 1;
        for switch in self.topology.switch_ids() {
            for (slot, port) in self.topology.port_ids(switch).enumerate() {
                let carries = self.carries(port);
                let state = &mut self.switches[switch.index()].carries[slot];
                if state.0 != carries {
                    *state = (carries, self.now_ms);
                }
            }
        }
    }

    /// The port's switch and place.
    fn place(&self, port: PortId) -> (SwitchId, usize) {
        let switch = self.topology.port(port).switch;
        (switch, port.index() - self.topology.switch_ports(switch).start)
    }

    fn is_open(&self, port: PortId) -> bool {
        let (switch, slot) = self.place(port);
        let state = self.switch(switch);
        state.on && state.running.ports[slot].admin == Admin::Up
    }

    /// The port at the other end of a cable between switches that is not cut.
    pub(crate) fn far(&self, port: PortId) -> Option<PortId> {
        let Attachment::Link(id) = self.topology.port(port).attachment else { return None };
        let link = self.topology.link(id);
        (!self.cut.contains(&id)).then(|| if link.a == port { link.b } else { link.a })
    }

    /// Whether a port has a carrier.
    pub(crate) fn carries(&self, port: PortId) -> bool {
        match self.topology.port(port).attachment {
            Attachment::Link(_) => self.is_open(port) && self.far(port).is_some_and(|far| self.is_open(far)),
            Attachment::Host(_) => self.is_open(port),
            Attachment::Nothing | Attachment::Member(_) => false,
        }
    }

    /// The state of a port, and whether its switch runs spanning tree.
    pub(crate) fn running(&self, port: PortId) -> &switch_model::PortConfig {
        let (switch, slot) = self.place(port);
        &self.switch(switch).running.ports[slot]
    }

    // What happens to it.

    pub(crate) fn is_cut(&self, link: LinkId) -> bool {
        self.cut.contains(&link)
    }

    pub(crate) fn set_cut(&mut self, link: LinkId, cut: bool) {
        if cut {
            self.cut.insert(link)
        } else {
            self.cut.remove(&link)
        };
        self.settle();
    }

    pub(crate) fn turn_off(&mut self, switch: SwitchId) {
        self.switches[switch.index()].on = false;
        self.settle();
    }

    /// It starts with what it saved.
    pub(crate) fn turn_on(&mut self, switch: SwitchId) {
        let now_ms = self.now_ms;
        let state = &mut self.switches[switch.index()];
        if !state.on {
            (state.on, state.booted_ms) = (true, now_ms);
            (state.running, state.mark) = (state.saved.clone(), state.saved_mark);
            state.fence = state.fence.wrapping_add(1 << 40);
            self.settle();
        }
    }

    pub(crate) fn set_reachable(&mut self, switch: SwitchId, reachable: bool) {
        self.switches[switch.index()].reachable = reachable;
        self.settle();
    }

    /// Somebody changes a switch by hand: an entry, a PVID or a port, none of which closes a loop.
    pub(crate) fn interfere(&mut self, switch: SwitchId, rng: &mut Rng) {
        let ports: Vec<PortId> = self.topology.port_ids(switch).collect();
        let state = &mut self.switches[switch.index()];
        if !state.on {
            return;
        }
        let key = state.running.entries.keys().nth(rng.below(state.running.entries.len().max(1))).copied();
        let slot = Slot::new(rng.below(ports.len()));
        let edit = match (rng.below(4), key) {
            (0, Some((vlan, mac))) => Edit::UnsetEntry(vlan, mac),
            (1, Some((vlan, mac))) => Edit::SetEntry(vlan, mac, slot),
            (2, _) => Edit::SetPvid(slot, None),
            _ => Edit::Shut(slot),
        };
        edit.apply(&mut state.running);
        state.fence += 1;
        if rng.below(2) == 0 {
            (state.saved, state.saved_mark) = (state.running.clone(), state.mark);
        }
        self.settle();
    }

    // What managers do with it.

    /// Whether a switch answers.
    pub(crate) fn answers(&self, switch: SwitchId) -> bool {
        self.switch(switch).on && self.switch(switch).reachable
    }

    fn reached(&self, switch: SwitchId) -> Result<&Switch, Fault> {
        if self.answers(switch) { Ok(self.switch(switch)) } else { Err(Fault::Silent) }
    }

    /// What a switch of a plan holds.
    pub(crate) fn read(&self, plan: &Topology, switch: SwitchId) -> Result<Reading, Fault> {
        let state = self.reached(self.find(plan, switch))?;
        let config = align(&state.running, &names(plan, switch));
        Ok(Reading { config, mark: state.mark, fence: Fence(state.fence) })
    }

    /// A switch of a plan as a standby sees it.
    pub(crate) fn glance(&self, plan: &Topology, switch: SwitchId) -> Result<Glance, Fault> {
        let state = self.reached(self.find(plan, switch))?;
        let port = |name: &String| {
            let slot = state.running.slot(name).expect("plans name ports of the fabric");
            let running = state.carries[slot.index()].0;
            PortGlance { running, pvid: state.running.port(slot).pvid }
        };
        Ok(Glance { mark: state.mark, ports: names(plan, switch).iter().map(port).collect() })
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
            self.settle();
            loops::none(self, "after a change");
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
    pub(crate) fn edit(&mut self, plan: &Topology, switch: SwitchId, changes: &[Edit]) -> Result<(), Fault> {
        let own = self.find(plan, switch);
        self.reached(own)?;
        let names = names(plan, switch);
        for edit in changes {
            let state = &mut self.switches[own.index()];
            // A standby knows the plan's ports alone.
            let mut config = align(&state.running, &names);
            edit.apply(&mut config);
            state.running = align(&config, &self::names(&self.topology, own));
            state.fence += 1;
            self.writes += 1;
        }
        self.settle();
        loops::none(self, "after a change of standby");
        Ok(())
    }

    /// VLANs that any port is a member of.
    pub(crate) fn vlans(&self) -> BTreeSet<VlanId> {
        self.switches.iter().flat_map(|switch| switch.running.memberships().iter().collect::<Vec<_>>()).collect()
    }
}

/// The names of a switch's ports.
pub(crate) fn names(topology: &Topology, switch: SwitchId) -> Vec<String> {
    topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect()
}
