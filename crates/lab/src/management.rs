//! How the switches of a lab are managed, as its state file has it.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use fabric::Topology;
use serde::{Deserialize, Serialize};

use crate::{
    LabError, Start,
    name::namespace_prefix,
    table::{STATICS_MAX, VLANS_MAX},
};

/// The manager's own address.
pub const CONTROLLER: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);

/// How the switches of a lab are managed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Management {
    /// The manager's namespace.
    pub namespace: String,
    /// `switches[switch]`.
    pub switches: Vec<ManagedSite>,
    /// What switches did at first.
    pub start: StartWord,
    /// The management VLAN, and the switch and port that the manager is plugged into, where it is over data ports.
    #[serde(default)]
    pub in_band: Option<InBandSite>,
}

/// Where the manager is plugged into the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InBandSite {
    /// The VLAN.
    pub vlan: u16,
    /// The switch, by its position.
    pub switch: usize,
    /// Its port, by its position.
    pub port: usize,
}

/// How one switch is managed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedSite {
    /// Where its agent answers.
    pub address: Ipv4Addr,
    /// Its model, by name and in words.
    pub model: [String; 2],
    /// What its model has room for and allows.
    pub limits: ModelLimits,
}

/// What of a model its agent goes by; a model need not be a built-in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelLimits {
    /// Most VLANs.
    pub vlans_max: usize,
    /// Most static entries.
    pub statics_max: usize,
    /// Whether a port may send several VLANs without tags.
    pub hybrid_ports: bool,
    /// Whether every VLAN has a filtering table of its own.
    pub independent_vlan_learning: bool,
    /// Classes with priority flow control that its ports say they have.
    pub pfc_classes: u8,
}

/// [`Start`], as the state file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartWord {
    /// The plan.
    Planned,
    /// Factory settings.
    Factory,
}

impl Management {
    /// Gives every switch its address: the topology's own where it is an IPv4 address that no other switch has, else one
    /// of 198.18.0.0/16.
    pub(crate) fn new(topology: &Topology, lab: &str, start: Start) -> Result<Self, LabError> {
        let mut taken: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        for switch in topology.switches() {
            if let Some(IpAddr::V4(address)) = switch.mgmt {
                *taken.entry(address).or_default() += 1;
            }
        }
        let mut free = (1_u32..65_534).map(|number| Ipv4Addr::from(0xc612_0000 + number));
        let mut switches = Vec::new();
        for switch in topology.switches() {
            let own = match switch.mgmt {
                Some(IpAddr::V4(address)) if taken[&address] == 1 && address != CONTROLLER => Some(address),
                _ => None,
            };
            let address = own.or_else(|| free.find(|address| !taken.contains_key(address)));
            let address =
                address.ok_or_else(|| LabError::Unsupported("no management addresses are left".to_owned()))?;
            let model = &switch.model;
            let limits = ModelLimits {
                vlans_max: model.vlans_max.min(VLANS_MAX),
                statics_max: model.static_entries_max.min(STATICS_MAX),
                hybrid_ports: model.hybrid_ports,
                independent_vlan_learning: model.independent_vlan_learning,
                pfc_classes: model.pfc_classes,
            };
            switches.push(ManagedSite { address, model: [model.name.clone(), model.description.clone()], limits });
        }
        let is_taken =
            |name: &str| topology.find_switch(name).is_some() || topology.hosts().iter().any(|host| host.name == name);
        let name = if is_taken("mgmt") { "mgmt~" } else { "mgmt" };
        let start = match start {
            Start::Planned => StartWord::Planned,
            Start::Factory => StartWord::Factory,
        };
        let in_band = topology.in_band().map(|in_band| {
            let switch = topology.port(in_band.controller).switch;
            let port = in_band.controller.index() - topology.switch_ports(switch).start;
            InBandSite { vlan: in_band.vlan.get(), switch: switch.index(), port }
        });
        Ok(Self { namespace: format!("{}{name}", namespace_prefix(lab)), switches, start, in_band })
    }
}
