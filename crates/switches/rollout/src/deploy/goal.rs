//! The states that a switch passes through, made from the one before and the one that is wanted.
//!
//! ```text
//!   old, open ─ shut(old) ─▶ old, shut ─ shut(new) ─▶ new, shut ─ new ─▶ new, open
//! ```
//! Where management comes in over the data ports, those that carry its tree stay open throughout, but only for it.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Admin, DeviceIntent, SwitchId, Topology, VlanId, VlanSet};

use switch_model::{PortConfig, Slot, SwitchConfig};

/// How the controller reaches the switches.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Management {
    /// Over ports of their own, which no plan touches.
    #[default]
    OutOfBand,
    /// Over the data ports, in a VLAN of its own whose ports form a tree.
    InBand {
        /// The VLAN.
        vlan: VlanId,
        /// `ports[switch]`: the ports of the tree, the controller's and return ports, and how its frames travel there.
        ports: Vec<BTreeMap<Slot, ManagementForm>>,
        /// `return_ports[switch]`: those by which switches that are left out come back, and over which none is managed.
        return_ports: Vec<BTreeSet<Slot>>,
    },
}

/// How frames of the management VLAN travel on cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementForm {
    /// With a tag.
    Tagged,
    /// Without one, as switches come out of their boxes.
    Untagged,
}

impl Management {
    /// How a plan's switches are managed: `devices[switch]` is what each is to hold.
    pub fn of(topology: &Topology, devices: &[DeviceIntent]) -> Self {
        let Some(in_band) = topology.in_band() else { return Self::OutOfBand };
        let ports = devices.iter().map(|device| {
            let first = topology.switch_ports(device.switch).start;
            let members = device.ports.iter().filter(|port| port.is_member(in_band.vlan));
            let form = |tagged| if tagged { ManagementForm::Tagged } else { ManagementForm::Untagged };
            let member = |port: &fabric::PortIntent| {
                (Slot::new(port.port.index() - first), form(port.tagged.contains(in_band.vlan)))
            };
            members.map(member).collect()
        });
        let mut return_ports = vec![BTreeSet::new(); devices.len()];
        for &port in topology.return_ports() {
            let switch = topology.port(port).switch;
            let slot = Slot::new(port.index() - topology.switch_ports(switch).start);
            return_ports[switch.index()].insert(slot);
        }
        Self::InBand { vlan: in_band.vlan, ports: ports.collect(), return_ports }
    }

    /// Names a port of the way to this switch or over it that does not carry management in this state.
    pub fn gap(&self, switch: SwitchId, config: &SwitchConfig) -> Option<Slot> {
        let Self::InBand { vlan, ports, return_ports } = self else { return None };
        let carries = |slot: Slot, form: ManagementForm| {
            let port = config.port(slot);
            let member = match form {
                ManagementForm::Tagged => port.tagged.contains(*vlan),
                ManagementForm::Untagged => port.untagged.contains(*vlan) && port.pvid == Some(*vlan),
            };
            port.admin == Admin::Up && member
        };
        let mut way = ports[switch.index()].iter().filter(|(slot, _)| !return_ports[switch.index()].contains(slot));
        way.find(|(slot, form)| !carries(**slot, **form)).map(|(slot, _)| *slot)
    }

    /// The management VLAN, if it is in band and the port carries it.
    fn carried(&self, switch: SwitchId, slot: Slot) -> Option<(VlanId, ManagementForm)> {
        match self {
            Self::OutOfBand => None,
            Self::InBand { vlan, ports, .. } => ports[switch.index()].get(&slot).map(|form| (*vlan, *form)),
        }
    }

    /// Adds the management VLAN to what a plan wants of a switch.
    pub fn overlay(&self, switch: SwitchId, config: &mut SwitchConfig) {
        let Self::InBand { vlan, .. } = self else { return };
        for (index, port) in config.ports.iter_mut().enumerate() {
            match self.carried(switch, Slot::new(index)) {
                Some((vlan, form)) => carry(port, vlan, form),
                None => forget(port, *vlan),
            }
        }
        if *vlan != VlanId::MIN {
            config.vlans.insert(*vlan);
        }
    }

    /// Takes the management VLAN out of what a switch holds, to leave what a plan is about.
    pub fn strip(&self, config: &mut SwitchConfig) {
        let Self::InBand { vlan, .. } = self else { return };
        config.ports.iter_mut().for_each(|port| forget(port, *vlan));
        config.vlans.remove(*vlan);
    }

    /// The same state with every port shut that does not carry management, and those that do in no other VLAN than it.
    pub fn shut(&self, switch: SwitchId, config: &SwitchConfig) -> SwitchConfig {
        let mut shut = config.clone();
        for (index, port) in shut.ports.iter_mut().enumerate() {
            match self.carried(switch, Slot::new(index)) {
                None => port.admin = Admin::Down,
                Some((vlan, form)) => {
                    (port.admin, port.tagged, port.untagged, port.pvid) =
                        (Admin::Up, VlanSet::new(), VlanSet::new(), None);
                    carry(port, vlan, form);
                }
            }
        }
        shut
    }
}

/// The order in which switches are written: farthest from the controller first, so that a switch which is lost takes nobody
/// with it that is still to be written. Switches that are managed by ports of their own come in their own order.
pub fn far_first(topology: &Topology, devices: &[DeviceIntent]) -> Vec<SwitchId> {
    let Some(in_band) = topology.in_band() else { return topology.switch_ids().collect() };
    let links = in_band.links(topology, devices);
    let mut order: Vec<SwitchId> =
        in_band.outward(topology, &links).into_iter().map(|(switch, _)| switch).rev().collect();
    let missing: Vec<SwitchId> = topology.switch_ids().filter(|switch| !order.contains(switch)).collect();
    order.splice(0..0, missing);
    order
}

fn carry(port: &mut PortConfig, vlan: VlanId, form: ManagementForm) {
    port.admin = Admin::Up;
    match form {
        ManagementForm::Tagged => {
            port.tagged.insert(vlan);
        }
        ManagementForm::Untagged => {
            port.untagged.insert(vlan);
            port.pvid = Some(vlan);
        }
    }
}

fn forget(port: &mut PortConfig, vlan: VlanId) {
    port.tagged.remove(vlan);
    port.untagged.remove(vlan);
    port.pvid = port.pvid.filter(|pvid| *pvid != vlan);
}
