//! Switches in virtual time: what they hold, what they restart with, which of their ports carry, and whether they answer.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Admin, Attachment, LinkId, Mac, PortId, SwitchId, Topology, VlanId, rng::Rng};
use switch_model::{LagMembership, Slot, SwitchConfig, edit::Edit, mark::Mark};
use tagging::TaggingTable;

use crate::{bonds::FailoverBonds, hosts::HostTables, pairs::Pair};

/// A switch.
pub(crate) struct Switch {
    pub(crate) running: SwitchConfig,
    pub(crate) saved: SwitchConfig,
    pub(crate) mark: Option<Mark>,
    pub(crate) saved_mark: Option<Mark>,
    pub(crate) fence: u64,
    pub(crate) on: bool,
    pub(crate) reachable: bool,
    pub(crate) booted_ms: u64,
    /// `carries[slot]`, and since when.
    pub(crate) carries: Vec<(bool, u64)>,
    /// Rows that it has learned, and when it heard the address last.
    pub(crate) learned: BTreeMap<(VlanId, Mac), (Slot, u64)>,
    /// Whether somebody has changed it by hand since a deployment left it as planned.
    pub(crate) by_hand: bool,
}

/// All switches and their cables.
pub(crate) struct VirtualFabric {
    /// The cabling, which plans may know only in part.
    pub(crate) topology: Topology,
    pub(crate) switches: Vec<Switch>,
    pub(crate) cut: BTreeSet<LinkId>,
    pub(crate) bonds: FailoverBonds,
    /// What hosts that tag hold.
    pub(crate) tables: HostTables,
    /// Pairs that a hitless change under way may not cut.
    pub(crate) kept: BTreeSet<Pair>,
    /// Ports whose cable to a host is cut.
    edges_cut: BTreeSet<PortId>,
    pub(crate) now_ms: u64,
    /// Changes that managers made.
    pub(crate) writes: usize,
    /// Grows with each change of anything.
    pub(crate) version: u64,
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
                learned: BTreeMap::new(),
                by_hand: false,
            }
        };
        let switches = topology.switch_ids().map(switch).collect();
        let mut fabric = Self {
            topology: topology.clone(),
            switches,
            bonds: FailoverBonds::new(topology),
            tables: HostTables::new(),
            kept: BTreeSet::new(),
            cut: BTreeSet::new(),
            edges_cut: BTreeSet::new(),
            now_ms: 0,
            writes: 0,
            version: 0,
        };
        fabric.settle();
        fabric
    }

    /// The switch that a plan calls so.
    pub(crate) fn find(&self, plan: &Topology, switch: SwitchId) -> SwitchId {
        self.topology.find_switch(&plan.switch(switch).name).expect("plans name switches of the fabric")
    }

    pub(crate) fn switch(&self, switch: SwitchId) -> &Switch {
        &self.switches[switch.index()]
    }

    /// Takes that something has changed: which ports carry since now.
    pub(crate) fn settle(&mut self) {
        self.version += 1;
        for switch in self.topology.switch_ids() {
            for (slot, port) in self.topology.port_ids(switch).enumerate() {
                let carries = self.carries(port);
                let state = &mut self.switches[switch.index()];
                if state.carries[slot].0 != carries {
                    state.carries[slot] = (carries, self.now_ms);
                    state.learned.retain(|_, (at, _)| at.index() != slot);
                }
            }
        }
        let carrying = self.carrying();
        let alone = self.topology.switch_ids().filter(|switch| !self.has_links(*switch));
        let cut_off = alone.flat_map(|switch| self.topology.port_ids(switch)).collect();
        self.bonds.settle(self.now_ms, &carrying, &cut_off);
    }

    fn carrying(&self) -> BTreeSet<PortId> {
        let ports = self.topology.switch_ids().flat_map(|switch| self.topology.port_ids(switch));
        ports.filter(|port| self.carries(*port)).collect()
    }

    /// The port's switch and place.
    pub(crate) fn place(&self, port: PortId) -> (SwitchId, usize) {
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
            Attachment::Host(_) if self.topology.port(port).lag().is_some() => {
                let (switch, lag) = self.place(port);
                let is_joined = |member: &PortId| {
                    let (_, slot) = self.place(*member);
                    self.switch(switch).running.ports[slot].lag == LagMembership::Of(Slot::new(lag))
                };
                self.is_open(port)
                    && self.topology.members(port).any(|member| is_joined(&member) && self.carries(member))
            }
            Attachment::Host(_) | Attachment::Member(_) => self.is_open(port) && !self.edges_cut.contains(&port),
            Attachment::Nothing => false,
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

    pub(crate) fn set_edge_cut(&mut self, port: PortId, cut: bool) {
        if cut {
            self.edges_cut.insert(port)
        } else {
            self.edges_cut.remove(&port)
        };
        self.settle();
    }

    /// Somebody has a bond use another of its ports while all of them stay up; whether there is one.
    pub(crate) fn move_bond(&mut self, rng: &mut Rng) -> bool {
        let carrying = self.carrying();
        let moved = self.bonds.choose(self.now_ms, &carrying, rng);
        self.settle();
        moved
    }

    /// Whether every cable is whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.cut.is_empty() && self.edges_cut.is_empty()
    }

    pub(crate) fn turn_off(&mut self, switch: SwitchId) {
        self.switches[switch.index()].on = false;
        self.settle();
    }

    /// A host holds another table.
    pub(crate) fn set_table(&mut self, mac: Mac, table: TaggingTable) {
        self.tables.insert(mac, table);
        self.version += 1;
    }

    /// It starts with what it saved.
    pub(crate) fn turn_on(&mut self, switch: SwitchId) {
        let now_ms = self.now_ms;
        let state = &mut self.switches[switch.index()];
        if !state.on {
            (state.on, state.booted_ms) = (true, now_ms);
            (state.running, state.mark) = (state.saved.clone(), state.saved_mark);
            state.fence = state.fence.wrapping_add(1 << 40);
            state.learned.clear();
            self.bonds.reset(now_ms, self.topology.port_ids(switch));
            self.settle();
        }
    }

    pub(crate) fn set_reachable(&mut self, switch: SwitchId, reachable: bool) {
        self.switches[switch.index()].reachable = reachable;
        self.settle();
    }

    /// Every switch of a plan holds what a deployment has written.
    pub(crate) fn set_as_planned(&mut self, plan: &Topology) {
        for switch in plan.switch_ids() {
            let own = self.find(plan, switch);
            self.switches[own.index()].by_hand = false;
        }
    }

    /// Whether some cable of a switch to another carries data.
    pub(crate) fn has_links(&self, switch: SwitchId) -> bool {
        let management = self.topology.in_band().map(|in_band| in_band.vlan);
        self.topology.port_ids(switch).any(|port| {
            let Some(far) = self.far(port).filter(|_| self.carries(port)) else { return false };
            let (own, other) = (self.running(port), self.running(far));
            let mut vlans = own.tagged.iter().chain(own.untagged.iter());
            vlans.any(|vlan| Some(vlan) != management && other.is_member(vlan))
        })
    }

    /// Somebody changes a switch by hand: an entry, a PVID or a port, none of which closes a loop or cuts off management.
    pub(crate) fn interfere(&mut self, switch: SwitchId, rng: &mut Rng) {
        let ports: Vec<PortId> = self.topology.port_ids(switch).collect();
        if !self.switch(switch).on {
            return;
        }
        let state = &mut self.switches[switch.index()];
        let key = state.running.entries.keys().nth(rng.below(state.running.entries.len().max(1))).copied();
        let of_a_lag = |port: &PortId| matches!(self.topology.port(*port).attachment, Attachment::Member(_));
        let management = self.topology.in_band().map(|in_band| in_band.vlan);
        let manages = |slot: usize| management.is_some_and(|vlan| state.running.ports[slot].is_member(vlan));
        let ports: Vec<usize> = (0..ports.len()).filter(|slot| !of_a_lag(&ports[*slot]) && !manages(*slot)).collect();
        if ports.is_empty() {
            return;
        }
        let slot = Slot::new(ports[rng.below(ports.len())]);
        let edit = match (rng.below(4), key) {
            (0, Some((vlan, mac))) => Edit::UnsetEntry(vlan, mac),
            (1, Some((vlan, mac))) => Edit::SetEntry(vlan, mac, slot),
            (2, _) => Edit::SetPvid(slot, None),
            _ => Edit::Shut(slot),
        };
        edit.apply(&mut state.running);
        state.fence += 1;
        state.by_hand = true;
        if rng.below(2) == 0 {
            (state.saved, state.saved_mark) = (state.running.clone(), state.mark);
        }
        self.settle();
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
