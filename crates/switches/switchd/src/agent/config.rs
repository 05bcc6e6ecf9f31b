//! What of a switch is written, saved and restored, and what is fixed.

use std::collections::BTreeMap;

use fabric::{Mac, Model, VlanId};

use bridge_mib::{
    AcceptableFrames, Enabled, IfStatus, LldpAdmin, PauseMode, PortList, RowStatus, StaticStatus,
    index::{StaticRow, VlanIndex},
};

/// What cannot be written: the hardware and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// sysDescr.
    pub description: String,
    /// The bridge's own address.
    pub address: Mac,
    /// `ports[bridge port - 1]`.
    pub ports: Vec<PortFacts>,
    /// What it has room for.
    pub limits: Limits,
}

/// What is fixed about a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// ifName.
    pub name: String,
    /// ifIndex; ascending with the ports.
    pub if_index: u32,
    /// The port's own address.
    pub mac: Mac,
    /// Its part in a LAG, as an administrator has configured it by other means than SNMP, which cannot.
    pub kind: PortKind,
}

/// The part that a port has in a LAG (IEEE 802.1AX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// None: a port of its own.
    Own,
    /// It is a LAG: a bridge port without a cable, a LLDP agent and PAUSE of its own.
    Lag,
    /// It is a member: no bridge port, so it is in no VLAN, has no static entries, and spanning tree does not see it.
    Member {
        /// The bridge port of the LAG.
        lag: u32,
    },
}

/// What a switch has room for and what it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most VLANs.
    pub vlans_max: usize,
    /// Most static entries.
    pub statics_max: usize,
    /// Whether a port may send several VLANs without tags.
    pub hybrid: HybridPorts,
    /// How filtering databases belong to VLANs.
    pub learning: Learning,
    /// Classes with priority flow control that its ports say they have; 0 for ports that say nothing of it.
    pub pfc_classes: u8,
}

/// Whether a port may be an untagged member of several VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HybridPorts {
    /// It may.
    Allowed,
    /// A VLAN that would be the port's second untagged one is refused.
    Refused,
}

/// How filtering databases belong to VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// Each VLAN has its own, of the same number (IVL).
    Independent,
    /// All VLANs share number 1 (SVL).
    Shared,
}

/// What managers write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// sysContact.
    pub contact: Vec<u8>,
    /// sysName.
    pub name: Vec<u8>,
    /// sysLocation.
    pub location: Vec<u8>,
    /// Seconds until a learned address is forgotten.
    pub ageing_s: u32,
    /// Upper part of the bridge's identifier in spanning tree.
    pub stp_priority: u16,
    /// `ports[bridge port - 1]`.
    pub ports: Vec<PortConfig>,
    /// VLANs, in force or not.
    pub vlans: BTreeMap<VlanIndex, VlanConfig>,
    /// Static entries.
    pub statics: BTreeMap<StaticRow, StaticConfig>,
}

/// What managers write about a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Up or down.
    pub admin: IfStatus,
    /// ifAlias.
    pub alias: Vec<u8>,
    /// The VLAN of untagged frames that enter.
    pub pvid: VlanId,
    /// Which frames may enter.
    pub frames: AcceptableFrames,
    /// Whether spanning tree governs the port.
    pub stp: Enabled,
    /// What the port adds to a way; none follows from its rate.
    pub stp_cost: Option<u32>,
    /// Upper part of the port's identifier in spanning tree.
    pub stp_priority: u8,
    /// PAUSE.
    pub pause: PauseMode,
    /// LLDP.
    pub lldp: LldpAdmin,
}

/// A VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanConfig {
    /// Its name.
    pub name: Vec<u8>,
    /// Members.
    pub egress: PortList,
    /// Ports that may not become members.
    pub forbidden: PortList,
    /// Members that send without a tag.
    pub untagged: PortList,
    /// [`RowStatus::Active`] or [`RowStatus::NotInService`].
    pub status: RowStatus,
    /// sysUpTime when it came into force.
    pub created_cs: u32,
}

/// A static entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticConfig {
    /// Where frames for the address leave; exactly one port once the entry stands.
    pub ports: PortList,
    /// How long it lasts.
    pub status: StaticStatus,
}

impl Limits {
    /// The limits of a model.
    pub fn of(model: &Model) -> Self {
        Self {
            vlans_max: model.vlans_max,
            statics_max: model.static_entries_max,
            hybrid: if model.hybrid_ports { HybridPorts::Allowed } else { HybridPorts::Refused },
            learning: if model.independent_vlan_learning { Learning::Independent } else { Learning::Shared },
            pfc_classes: model.pfc_classes,
        }
    }

    /// The filtering database of a VLAN.
    pub fn fdb_of(&self, vlan: VlanId) -> u32 {
        match self.learning {
            Learning::Independent => u32::from(vlan.get()),
            Learning::Shared => 1,
        }
    }
}

impl Facts {
    /// What a switch with these ports does as it leaves the factory: members of LAGs are not in the default VLAN, and
    /// spanning tree does not govern them.
    pub fn factory(&self) -> Config {
        let mut config = Config::factory(self.ports.len());
        let is_member = |port: &u32| self.is_member(*port);
        let bridged = PortList::of((1..=self.ports.len() as u32).filter(|port| !is_member(port))).unwrap_or_default();
        for vlan in config.vlans.values_mut() {
            (vlan.egress, vlan.untagged) = (bridged.clone(), bridged.clone());
        }
        for (port, facts) in config.ports.iter_mut().zip(&self.ports) {
            if matches!(facts.kind, PortKind::Member { .. }) {
                port.stp = Enabled::No;
            }
        }
        config
    }

    /// Whether a port, counted from 1, is a member of a LAG, and so no bridge port.
    pub(super) fn is_member(&self, port: u32) -> bool {
        let facts = (port as usize).checked_sub(1).and_then(|at| self.ports.get(at));
        facts.is_some_and(|port| matches!(port.kind, PortKind::Member { .. }))
    }
}

impl Config {
    /// As it leaves the factory: one VLAN for all ports, untagged; spanning tree everywhere; nothing static.
    pub fn factory(ports: usize) -> Self {
        let port = PortConfig {
            admin: IfStatus::Up,
            alias: Vec::new(),
            pvid: VlanId::MIN,
            frames: AcceptableFrames::All,
            stp: Enabled::Yes,
            stp_cost: None,
            stp_priority: 128,
            pause: PauseMode::Off,
            lldp: LldpAdmin::TxAndRx,
        };
        let all: PortList = PortList::of(1..=ports as u32).expect("a switch has fewer ports than a list holds");
        let default = VlanConfig {
            name: b"default".to_vec(),
            egress: all.clone(),
            forbidden: PortList::new(),
            untagged: all,
            status: RowStatus::Active,
            created_cs: 0,
        };
        Self {
            contact: Vec::new(),
            name: Vec::new(),
            location: Vec::new(),
            ageing_s: 300,
            stp_priority: 32_768,
            ports: vec![port; ports],
            vlans: [(VlanIndex(VlanId::MIN), default)].into(),
            statics: BTreeMap::new(),
        }
    }

    /// VLANs in force.
    pub fn active_vlans(&self) -> impl Iterator<Item = (VlanId, &VlanConfig)> {
        self.vlans.iter().filter(|(_, vlan)| vlan.status == RowStatus::Active).map(|(index, vlan)| (index.0, vlan))
    }

    /// Whether a VLAN is in force.
    pub fn is_active(&self, vlan: VlanId) -> bool {
        self.vlans.get(&VlanIndex(vlan)).is_some_and(|vlan| vlan.status == RowStatus::Active)
    }

    /// The static entry's one port.
    pub fn exit(&self, row: &StaticRow) -> Option<u32> {
        self.statics.get(row).and_then(|entry| entry.ports.last())
    }
}
