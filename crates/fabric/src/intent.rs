//! The complete desired state of one device or host: all that a switch, a renderer or a judge needs to know.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::{FloodSet, Host, HostId, HostRun, LinkId, Mac, PortId, SwitchId, Topology, VlanId, VlanSet};

/// What every Ethernet port passes: the largest IP packet, in bytes, that needs no jumbo frames.
pub const ETHERNET_MTU_BYTES: u16 = 1500;

/// Length of the network prefix of hosts' IPv6 addresses, in bits.
///
/// Source: RFC 4291, 2.5.1.
pub const IPV6_PREFIX_BITS: u8 = 64;

/// The address of the network that an IP address with a prefix of so many bits is in.
pub fn network_of(address: IpAddr, prefix_bits: u8) -> IpAddr {
    let bits = u32::from(prefix_bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// The complete desired state of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIntent {
    /// Which switch.
    pub switch: SwitchId,
    /// One for every port of the switch, in its order.
    pub ports: Vec<PortIntent>,
    /// Static entries toward the topology's hosts, ascending by VLAN and host, runs disjoint.
    pub fdb: Vec<FdbRun>,
    /// Static entries for addresses that belong to no host of the topology; plans have none.
    pub foreign: Vec<FdbEntry>,
    /// Whether it also goes by what it learns.
    pub learning: Learning,
    /// `classes[k]`: VLANs whose frames travel in priority class `k`, by the priority in their tag. Empty where flow
    /// control keeps no classes apart.
    pub classes: Vec<VlanSet>,
    /// Whether a spanning-tree protocol runs, which would block the very links that a plan uses.
    pub spanning_tree: SpanningTree,
    /// Whether it sends and receives LLDP frames at its ports.
    pub lldp: Lldp,
}

/// Whether a spanning-tree protocol runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SpanningTree {
    /// It may block ports.
    On,
    /// It does not, as every plan assumes.
    #[default]
    Off,
}

/// Whether a port drops tagged frames of VLANs that it is no member of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IngressFilter {
    /// It does, as every plan assumes.
    #[default]
    On,
    /// It lets them in.
    Off,
}

/// Whether a switch sends and receives LLDP frames (IEEE 802.1AB) at its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lldp {
    /// It does both, as every plan assumes: `deploy` and `status` confirm cables by what LLDP hears.
    #[default]
    On,
    /// It does not.
    Off,
}

/// The most that a port admits of each kind of flood (broadcast, multicast, unknown unicast), in percent of its rate: 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StormLimit(u8);

impl StormLimit {
    /// A limit of `percent`; none unless it is from 1 to 99: 100 % limit nothing.
    pub const fn new(percent: u8) -> Option<Self> {
        if 1 <= percent && percent <= 99 { Some(Self(percent)) } else { None }
    }

    /// The limit in percent of the port's rate.
    pub const fn percent(self) -> u8 {
        self.0
    }
}

impl fmt::Display for StormLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for StormLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.parse().ok().and_then(Self::new);
        percent.ok_or_else(|| format!("{text:?} is not a whole number of percent from 1 to 99"))
    }
}

/// Whether a switch notes behind which port each sender is, and sends frames for it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Learning {
    /// It does, where it has no static entry.
    On,
    /// It does not, or the plan has no use for it.
    #[default]
    Off,
}

/// The desired state of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortIntent {
    /// Which port.
    pub port: PortId,
    /// What it is for.
    pub role: PortRole,
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
    /// Largest IP packet that passes, in bytes. Ethernet's header, a VLAN tag and the check sequence, 22 bytes together,
    /// come on top.
    pub mtu_bytes: u16,
    /// Whether tagged frames of VLANs that the port is no member of are dropped when they enter.
    pub ingress_filter: IngressFilter,
    /// Floods that do not leave by the port (egress blocking): what the switch would send there for want of an entry is
    /// dropped.
    pub blocked: FloodSet,
    /// The priority class in which untagged frames that enter travel on: the priority that the switch puts in their tag. 0
    /// where flow control keeps no classes apart.
    pub untagged_class: u8,
    /// Storm control: the most that the port admits of each kind of flood; none admits all.
    pub storm_limit: Option<StormLimit>,
    /// The LAG that it is a member of, by LACP.
    pub lag: Option<PortId>,
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// Nothing is plugged in.
    Unused,
    /// It serves a host.
    Host(HostId),
    /// It leads to another switch.
    Link(LinkId),
    /// The controller that manages the switches over their data ports is plugged in.
    Controller,
    /// A switch that the topology leaves out is plugged in, and comes back by the management VLAN alone.
    Return,
    /// It is a member of a LAG, which leads somewhere.
    Member,
}

/// Whether a port is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    /// In service.
    Up,
    /// Shut.
    Down,
}

/// Link-level flow control of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowControlMode {
    /// Frames are dropped when buffers are full.
    Off,
    /// 802.3x PAUSE in both directions.
    Pause,
    /// 802.1Qbb priority flow control; [`DeviceIntent::classes`] says which VLANs travel in which class.
    Pfc {
        /// Number of lossless classes.
        lanes: u8,
    },
}

/// Static entries for consecutive hosts: frames of `vlan` for any of their addresses leave through `port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbRun {
    /// The VLAN.
    pub vlan: VlanId,
    /// The first host.
    pub first: HostId,
    /// The last host.
    pub last: HostId,
    /// Where frames for them leave.
    pub port: PortId,
}

/// One static entry: frames of `vlan` for `mac` leave through `port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbEntry {
    /// The VLAN.
    pub vlan: VlanId,
    /// The destination address.
    pub mac: Mac,
    /// Where frames for it leave.
    pub port: PortId,
}

impl DeviceIntent {
    /// A switch on which nothing is set up: no ports, no entries.
    pub fn blank(switch: SwitchId) -> Self {
        Self {
            switch,
            ports: Vec::new(),
            fdb: Vec::new(),
            foreign: Vec::new(),
            learning: Learning::Off,
            classes: Vec::new(),
            spanning_tree: SpanningTree::Off,
            lldp: Lldp::On,
        }
    }

    /// The priority class of a VLAN's frames; none if none is stated.
    pub fn class_of(&self, vlan: VlanId) -> Option<usize> {
        self.classes.iter().position(|vlans| vlans.contains(vlan))
    }

    /// Every VLAN that some port of the switch is a member of.
    pub fn vlans(&self) -> VlanSet {
        self.ports.iter().flat_map(|port| port.tagged.iter().chain(port.untagged.iter())).collect()
    }

    /// Every static entry, ascending by VLAN and host, foreign ones last.
    pub fn fdb_entries<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = FdbEntry> + 'a {
        self.fdb.iter().flat_map(|run| run.entries(topology)).chain(self.foreign.iter().copied())
    }

    /// The number of static entries. Cost: O(runs).
    pub fn fdb_len(&self, topology: &Topology) -> usize {
        self.fdb.iter().map(|run| run.len(topology)).sum::<usize>() + self.foreign.len()
    }

    /// The most static entries that it may come to hold: those of [`Self::fdb_len`], and those of addresses that may yet be learned.
    /// Cost: O(runs).
    pub fn fdb_room(&self, topology: &Topology) -> usize {
        self.fdb.iter().map(|run| topology.mac_room(run.first, run.last)).sum::<usize>() + self.foreign.len()
    }
}

impl FdbRun {
    /// The entries: one for each address of each host, ascending by host.
    pub fn entries(self, topology: &Topology) -> impl Iterator<Item = FdbEntry> + '_ {
        let hosts = &topology.hosts()[self.first.index()..=self.last.index()];
        hosts.iter().flat_map(Host::macs).map(move |mac| FdbEntry { vlan: self.vlan, mac, port: self.port })
    }

    /// The number of entries. Cost: O(1).
    pub fn len(&self, topology: &Topology) -> usize {
        topology.mac_count(self.first, self.last)
    }
}

impl PortIntent {
    /// A port that is unused, down and in no VLAN.
    pub fn unused(port: PortId) -> Self {
        Self {
            port,
            role: PortRole::Unused,
            admin: Admin::Down,
            pvid: None,
            tagged: VlanSet::new(),
            untagged: VlanSet::new(),
            flow_control: FlowControlMode::Off,
            mtu_bytes: ETHERNET_MTU_BYTES,
            ingress_filter: IngressFilter::On,
            blocked: FloodSet::NONE,
            untagged_class: 0,
            storm_limit: None,
            lag: None,
        }
    }

    /// Whether the port is a member of `vlan`, tagged or not.
    pub fn is_member(&self, vlan: VlanId) -> bool {
        self.tagged.contains(vlan) || self.untagged.contains(vlan)
    }
}

/// The complete desired state of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostIntent {
    /// Which host.
    pub host: HostId,
    /// Its station address.
    pub mac: Mac,
    /// Its IP address.
    pub address: IpAddr,
    /// Length of the network prefix of `address`, in bits.
    pub prefix_bits: u8,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u16,
    /// Who tags its frames.
    pub tagging: HostTagging,
}

/// What a host that tags its own frames puts on them, and which it accepts, at some moment: a row of the assignment, with gaps
/// for receivers that it has no VLAN for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostTable {
    /// Runs of receivers, ascending, disjoint.
    pub unicast: Vec<HostRun<VlanId>>,
    /// For broadcast, multicast and addresses that no host owns.
    pub broadcast: Option<VlanId>,
    /// The VLANs that it may spread a receiver's frames over, the one of `unicast` among them: runs of receivers, ascending,
    /// disjoint. Empty where frames take the VLAN of `unicast` alone.
    pub paths: Vec<HostRun<Vec<VlanId>>>,
    /// VLANs of which it accepts frames.
    pub receives: VlanSet,
}

impl HostTable {
    /// The VLAN of frames for a host. Cost: O(log runs).
    pub fn vlan_to(&self, destination: HostId) -> Option<VlanId> {
        find(&self.unicast, destination).copied()
    }

    /// The VLANs that frames for a host may be spread over; empty where they take [`Self::vlan_to`] alone. Cost: O(log runs).
    pub fn paths_to(&self, destination: HostId) -> &[VlanId] {
        find(&self.paths, destination).map_or(&[], Vec::as_slice)
    }
}

/// The choice for a host among runs that are ascending and disjoint.
fn find<T>(runs: &[HostRun<T>], host: HostId) -> Option<&T> {
    let run = runs.get(runs.partition_point(|run| run.last < host))?;
    (run.first <= host).then_some(&run.choice)
}

/// Who tags a host's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTagging {
    /// The switch, by the port's PVID: the host knows nothing of VLANs.
    BySwitch,
    /// The host, by the plan's [`Assignment`](crate::Assignment).
    ByHost,
}
