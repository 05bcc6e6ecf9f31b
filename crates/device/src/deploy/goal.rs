//! The states that a switch passes through, made from the one before and the one that is wanted.
//!
//! ```text
//!   old, open ─ shut(old) ─▶ old, shut ─ shut(new) ─▶ new, shut ─ new ─▶ new, open
//! ```
//! Where management comes in over the data ports, those that carry its tree stay open throughout, but only for it.

use std::collections::BTreeSet;

use fabric::{Admin, SwitchId, VlanId, VlanSet};

use crate::{PortConfig, Slot, SwitchConfig};

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
        /// How its frames travel on cables.
        form: ManagementForm,
        /// `ports[switch]`: the ports of the tree.
        ports: Vec<BTreeSet<Slot>>,
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
    /// The management VLAN, if it is in band and the port carries it.
    fn carried(&self, switch: SwitchId, slot: Slot) -> Option<(VlanId, ManagementForm)> {
        match self {
            Self::OutOfBand => None,
            Self::InBand { vlan, form, ports } => ports[switch.index()].contains(&slot).then_some((*vlan, *form)),
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
