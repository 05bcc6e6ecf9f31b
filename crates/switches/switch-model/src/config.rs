//! What a switch is set to, in no vendor's language: the state between a plan's intent and a configuration file.
//!
//! ```text
//!   DeviceIntent ─ of_intent ─▶ SwitchConfig ─ dialect writes ─▶ text
//!   DeviceIntent ◀─ to_intent ─ SwitchConfig ◀─ dialect reads ─ text
//! ```
//! Ports go by name and hosts by address, because that is all a switch knows. What an intent says of roles and cables
//! comes from the topology again on the way back.

use std::collections::BTreeSet;

use fabric::{
    Admin, Attachment, DeviceIntent, ETHERNET_MTU_BYTES, FdbEntry, FdbRun, FloodKind, FloodSet, FlowControlMode,
    IngressFilter, LagNumber, Learning, Lldp, Mac, PortIntent, PortRole, SpanningTree, StormLimit, Topology, VlanId,
    VlanSet,
};

use crate::{Entries, Slot, Snooping};

/// The state of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Its ports, in the topology's order.
    pub ports: Vec<PortConfig>,
    /// VLANs that exist, but for VLAN 1, which exists everywhere.
    pub vlans: VlanSet,
    /// Static forwarding-table entries.
    pub entries: Entries,
    /// Whether a spanning-tree protocol runs, which would shut the very cables that a plan uses.
    pub spanning_tree: SpanningTree,
    /// Whether it sends and receives LLDP frames; none where it does not say.
    pub lldp: Option<Lldp>,
    /// Which snooping is on, as far as the switch says; over SNMP it says nothing.
    pub snooping: BTreeSet<Snooping>,
}

/// Storm control by kind of flood, in the order of [`FloodKind::ALL`]: the most that a port admits of each; none admits all.
pub type StormLimits = [Option<StormLimit>; FloodKind::ALL.len()];

/// The state of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// What the switch calls it.
    pub name: String,
    /// Up, or shut.
    pub admin: Admin,
    /// The VLAN of untagged frames that enter; none drops them.
    pub pvid: Option<VlanId>,
    /// VLANs whose frames leave with a tag.
    pub tagged: VlanSet,
    /// VLANs whose frames leave without one.
    pub untagged: VlanSet,
    /// Link-level flow control.
    pub flow_control: FlowControlMode,
    /// Whether tagged frames of VLANs that the port is no member of are dropped when they enter.
    pub ingress_filter: IngressFilter,
    /// Whether it notes who sends.
    pub learning: PortLearning,
    /// Largest IP packet that the switch says the port passes, in bytes; none where it does not say. No language here sets it.
    pub mtu_bytes: Option<u16>,
    /// Floods that do not leave by the port; none where the switch does not say, as over SNMP.
    pub blocked: Option<FloodSet>,
    /// Storm control; none where the switch does not say, as over SNMP.
    pub storm_limits: Option<StormLimits>,
    /// The LAG that it is a member of.
    pub lag: LagMembership,
}

/// Whether a port is a member of a LAG, which speaks LACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LagMembership {
    /// It is a port of its own, or a LAG.
    #[default]
    Alone,
    /// It is a member of the LAG whose port this is.
    Of(Slot),
    /// The switch does not say.
    Unsaid,
}

/// Whether a port notes who sends, so that frames for them leave by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortLearning {
    /// It does.
    On,
    /// It does not.
    Off,
    /// It does, and there is no way to tell it otherwise. Static entries stand before what it learns.
    Always,
}

impl SwitchConfig {
    /// A managed switch as it comes out of its box: every port up and an untagged member of VLAN 1, spanning tree on.
    pub fn out_of_the_box(ports: impl IntoIterator<Item = String>) -> Self {
        let port = |name| PortConfig {
            name,
            admin: Admin::Up,
            pvid: Some(VlanId::MIN),
            tagged: VlanSet::new(),
            untagged: [VlanId::MIN].into_iter().collect(),
            flow_control: FlowControlMode::Off,
            ingress_filter: IngressFilter::On,
            learning: PortLearning::Always,
            mtu_bytes: None,
            blocked: Some(FloodSet::NONE),
            storm_limits: Some(StormLimits::default()),
            lag: LagMembership::Alone,
        };
        Self {
            ports: ports.into_iter().map(port).collect(),
            vlans: VlanSet::new(),
            entries: Entries::new(),
            spanning_tree: SpanningTree::On,
            lldp: None,
            snooping: BTreeSet::new(),
        }
    }

    /// The same, but for ports that let in tagged frames of any VLAN until they are told to filter.
    pub fn out_of_the_box_unfiltered(ports: impl IntoIterator<Item = String>) -> Self {
        let mut config = Self::out_of_the_box(ports);
        config.ports.iter_mut().for_each(|port| port.ingress_filter = IngressFilter::Off);
        config
    }

    /// A switch on which nothing is set up: every port shut and in no VLAN, no spanning tree.
    pub fn blank(ports: impl IntoIterator<Item = String>) -> Self {
        Self {
            ports: ports.into_iter().map(PortConfig::blank).collect(),
            vlans: VlanSet::new(),
            entries: Entries::new(),
            spanning_tree: SpanningTree::Off,
            lldp: None,
            snooping: BTreeSet::new(),
        }
    }

    /// What an intent asks of its switch. Entries whose port is not the switch's own are left out.
    pub fn of_intent(topology: &Topology, intent: &DeviceIntent) -> Self {
        let own = topology.switch_ports(intent.switch);
        let learning = match intent.learning {
            Learning::On => PortLearning::On,
            Learning::Off => PortLearning::Off,
        };
        let mut config = Self::blank(own.clone().map(|port| topology.ports()[port].name.clone()));
        for port in intent.ports.iter().filter(|port| own.contains(&port.port.index())) {
            // No language here says an MTU, or a priority of untagged frames; rendering refuses what needs the latter.
            let PortIntent {
                port,
                role: _,
                admin,
                pvid,
                tagged,
                untagged,
                flow_control,
                mtu_bytes: _,
                ingress_filter,
                blocked,
                untagged_class: _,
                storm_limit,
                lag,
            } = port.clone();
            let to = &mut config.ports[port.index() - own.start];
            let name = to.name.clone();
            // A port in no VLAN has nobody to learn of.
            let learning = if tagged.is_empty() && untagged.is_empty() { PortLearning::Off } else { learning };
            *to = PortConfig {
                name,
                admin,
                pvid,
                tagged,
                untagged,
                flow_control,
                ingress_filter,
                learning,
                mtu_bytes: None,
                blocked: Some(blocked),
                storm_limits: Some([storm_limit; FloodKind::ALL.len()]),
                lag: match lag.filter(|lag| own.contains(&lag.index())) {
                    Some(lag) => LagMembership::Of(Slot::new(lag.index() - own.start)),
                    None => LagMembership::Alone,
                },
            };
        }
        for FdbEntry { vlan, mac, port } in intent.fdb_entries(topology) {
            if own.contains(&port.index()) {
                config.entries.insert((vlan, mac), Slot::new(port.index() - own.start));
            }
        }
        config.vlans = config.memberships();
        config.vlans.remove(VlanId::MIN);
        (config.spanning_tree, config.lldp) = (intent.spanning_tree, Some(intent.lldp));
        config
    }

    /// The intent that asks for this state of the switch of `wanted`. What a switch does not tell is as it is wanted: the
    /// class of a VLAN, which stands in the tags of its frames, that of untagged frames, LLDP, MTUs, blocked floods, storm
    /// control and LAGs that it does not say, entries stored for hosts without an address, and whether ports learn that always do. An MTU that is larger
    /// than it is wanted serves as well, and counts as that one.
    ///
    /// # Panics
    /// If the ports are not those of the switch.
    pub fn to_intent(&self, topology: &Topology, wanted: &DeviceIntent) -> DeviceIntent {
        let switch = wanted.switch;
        let own = topology.switch_ports(switch);
        assert_eq!(own.len(), self.ports.len(), "the ports are those of the switch");
        let ids = || topology.port_ids(switch);
        let asked = |port| wanted.ports.iter().find(|wanted| wanted.port == port);
        let ports = ids().zip(&self.ports).map(|(port, config)| PortIntent {
            port,
            role: match topology.port(port).attachment {
                Attachment::Nothing => topology.role_without_cable(port),
                Attachment::Host(host) => PortRole::Host(host),
                Attachment::Link(link) => PortRole::Link(link),
                Attachment::Member(_) => PortRole::Member,
            },
            admin: config.admin,
            pvid: config.pvid,
            tagged: config.tagged.clone(),
            untagged: config.untagged.clone(),
            flow_control: config.flow_control.clone(),
            mtu_bytes: {
                let wanted = asked(port).map_or(ETHERNET_MTU_BYTES, |wanted| wanted.mtu_bytes);
                config.mtu_bytes.map_or(wanted, |found| found.min(wanted))
            },
            ingress_filter: config.ingress_filter,
            blocked: config.blocked.unwrap_or_else(|| asked(port).map_or(FloodSet::NONE, |wanted| wanted.blocked)),
            untagged_class: asked(port).map_or(0, |wanted| wanted.untagged_class),
            // Kinds with different limits are as limited as the least limited of them.
            storm_limit: match config.storm_limits {
                None => asked(port).and_then(|wanted| wanted.storm_limit),
                Some(limits) => {
                    limits.into_iter().collect::<Option<Vec<_>>>().and_then(|limits| limits.into_iter().max())
                }
            },
            lag: match config.lag {
                LagMembership::Alone => None,
                LagMembership::Of(slot) => Some(fabric::PortId::new(own.start + slot.index())),
                LagMembership::Unsaid => asked(port).and_then(|wanted| wanted.lag),
            },
        });
        let owners = topology.hosts_by_mac();
        let (mut runs, mut foreign) = (Vec::new(), Vec::new());
        let port_id = |slot: Slot| fabric::PortId::new(own.start + slot.index());
        for (&(vlan, mac), &slot) in &self.entries {
            // A run is about all addresses of a host; entries for some of them stand alone.
            let leaves_here = |mac: Mac| self.entries.get(&(vlan, mac)) == Some(&slot);
            let host = owners.get(&mac).filter(|host| topology.host(**host).macs().all(leaves_here));
            match host {
                Some(&host) if topology.host(host).macs().next() == Some(mac) => {
                    runs.push(FdbRun { vlan, first: host, last: host, port: port_id(slot) });
                }
                Some(_) => {}
                None => foreign.push(FdbEntry { vlan, mac, port: port_id(slot) }),
            }
        }
        // For hosts without an address (standby ports, edge ports) no switch has entries: what is stored for them stays.
        let hosts = |run: &FdbRun| (run.first.index()..=run.last.index()).map(fabric::HostId::new);
        let stored =
            wanted.fdb.iter().flat_map(|run| hosts(run).map(move |host| FdbRun { first: host, last: host, ..*run }));
        runs.extend(stored.filter(|run| topology.host(run.first).macs().next().is_none()));
        runs.sort_unstable();
        let mut fdb: Vec<FdbRun> = Vec::with_capacity(runs.len());
        for run in runs {
            match fdb.last_mut() {
                Some(last)
                    if (last.vlan, last.port, last.last.index() + 1) == (run.vlan, run.port, run.first.index()) =>
                {
                    last.last = run.last;
                }
                _ => fdb.push(run),
            }
        }
        let in_use = || self.ports.iter().filter(|port| !port.members().is_empty());
        let learning = if in_use().any(|port| port.learning == PortLearning::Off) {
            Learning::Off
        } else if in_use().any(|port| port.learning == PortLearning::On) {
            Learning::On
        } else {
            wanted.learning
        };
        let (classes, spanning_tree, lldp) =
            (wanted.classes.clone(), self.spanning_tree, self.lldp.unwrap_or(wanted.lldp));
        DeviceIntent { switch, ports: ports.collect(), fdb, foreign, learning, classes, spanning_tree, lldp }
    }

    /// Lets what cannot be written count as what another state asks for: ports that always learn serve those that are to
    /// learn, and those that are not, since static entries stand before what they learn; MTUs and LLDP are set by other
    /// means, and so are floods and storm control where a switch does not say what it has.
    ///
    /// # Panics
    /// If the states do not have the same ports.
    pub fn take_unwritable_of(&mut self, wanted: &Self) {
        assert_eq!(self.ports.len(), wanted.ports.len(), "both states are of one switch");
        for (port, wanted) in self.ports.iter_mut().zip(&wanted.ports) {
            if port.learning == PortLearning::Always {
                port.learning = wanted.learning;
            }
            port.mtu_bytes = wanted.mtu_bytes;
            if port.blocked.is_none() {
                port.blocked = wanted.blocked;
            }
            if port.storm_limits.is_none() {
                port.storm_limits = wanted.storm_limits;
            }
            if port.lag == LagMembership::Unsaid {
                port.lag = wanted.lag;
            }
        }
        self.lldp = wanted.lldp;
    }

    /// The port of this name.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.ports.iter().position(|port| port.name == name).map(Slot::new)
    }

    /// The port's state.
    pub fn port(&self, slot: Slot) -> &PortConfig {
        &self.ports[slot.index()]
    }

    /// Whether some port has priority flow control, so that frames are to be served in the class of their priority.
    pub fn has_classes(&self) -> bool {
        self.ports.iter().any(|port| matches!(port.flow_control, FlowControlMode::Pfc { .. }))
    }

    /// The members of a LAG.
    pub fn members_of(&self, lag: Slot) -> impl Iterator<Item = Slot> + Clone + '_ {
        let ports = self.ports.iter().enumerate();
        ports.filter(move |(_, port)| port.lag == LagMembership::Of(lag)).map(|(index, _)| Slot::new(index))
    }

    /// VLANs that some port is a member of.
    pub fn memberships(&self) -> VlanSet {
        self.ports.iter().flat_map(|port| port.tagged.iter().chain(port.untagged.iter())).collect()
    }
}

impl PortConfig {
    /// A port that is shut and in no VLAN.
    pub fn blank(name: String) -> Self {
        Self {
            name,
            admin: Admin::Down,
            pvid: None,
            tagged: VlanSet::new(),
            untagged: VlanSet::new(),
            flow_control: FlowControlMode::Off,
            ingress_filter: IngressFilter::On,
            learning: PortLearning::Off,
            mtu_bytes: None,
            blocked: Some(FloodSet::NONE),
            storm_limits: Some(StormLimits::default()),
            lag: LagMembership::Alone,
        }
    }

    /// Its number, if it is a LAG.
    pub fn lag_number(&self) -> Option<LagNumber> {
        LagNumber::of_port(&self.name)
    }

    /// Whether the port is a member of `vlan`, tagged or not.
    pub fn is_member(&self, vlan: VlanId) -> bool {
        self.tagged.contains(vlan) || self.untagged.contains(vlan)
    }

    /// VLANs that the port is a member of.
    pub fn members(&self) -> VlanSet {
        self.tagged.iter().chain(self.untagged.iter()).collect()
    }
}
