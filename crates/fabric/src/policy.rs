//! What the planner is asked for.

use std::{borrow::Cow, collections::BTreeMap, fmt, iter, net::Ipv4Addr, str::FromStr, time::Duration};

use crate::{
    Attachment, Demand, Drain, ETHERNET_MTU_BYTES, Flood, FloodKind, FloodSet, Host, HostId, Planes, PortId,
    StormLimit, Topology, Traffic, TrafficError, TrafficMatrix, VlanId, VlanPool, VlanSet, VlanTree, words::words,
};

/// What a plan must satisfy. Two plans from the same topology, policy and previous plan are the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How routes are found.
    pub engine: EngineName,
    /// Who chooses the VLAN of a frame, and by what.
    pub tagging: Tagging,
    /// Which flow control the fabric will run, and so which cycles are forbidden.
    pub flow_control: FlowControl,
    /// Which static entries switches hold, if they hold any.
    pub fdb: FdbMode,
    /// What switches do with frames for which they have no entry.
    pub flood: Flood,
    /// Storm control at hosts' ports: the most that each admits of each kind of flood; none admits all.
    pub storm_limit: Option<StormLimit>,
    /// The VLAN ids to draw from.
    pub vlans: VlanPool,
    /// Most VLANs to use, if fewer than the pool and the switches allow.
    pub vlans_max: Option<usize>,
    /// The subnet from which hosts without an address get one.
    pub subnet: Subnet,
    /// Largest IP packet on hosts, in bytes.
    pub mtu_bytes: u16,
    /// What hosts send to each other: what loads are counted by. All-to-all leaves out what [`Policy::demand`] does.
    pub traffic: Traffic,
    /// Further traffic that the same routes are for: a load is the greatest that any of it, or `traffic`, puts on a link.
    pub further_traffic: Vec<TrafficMatrix>,
    /// Whether all-to-all traffic crosses rails.
    pub rails: Rails,
    /// By what hosts are weighted in all-to-all traffic.
    pub weights: Weights,
    /// Seed of every random choice.
    pub seed: u64,
    /// Which failures a stored switch-over must be ready for.
    pub resilience: Resilience,
    /// Links and switches of the topology that carry no frames, or none of others.
    pub drain: Drain,
    /// Groups of switches among which traffic between their own hosts stays.
    pub planes: Planes,
    /// Most links between switches that a unicast frame crosses from one host to any other while all links are up.
    pub hops_max: Option<u32>,
    /// Most VLANs that hosts may spread a pair over, 1 to [`PATHS_MAX`](crate::PATHS_MAX).
    pub paths_max: u32,
    /// How long an engine that can go on improving may do so; it does not change what is valid.
    pub time_limit: Option<Duration>,
}

impl Policy {
    /// Whether two hosts send to each other in all-to-all traffic: ports of different machines, neither of them on standby, and,
    /// with [`Rails::Within`], not of two rails.
    pub fn exchange(&self, topology: &Topology, source: HostId, destination: HostId) -> bool {
        let [a, b] = [source, destination].map(|id| topology.host(id));
        let same_rail = a.rail.is_none() || b.rail.is_none() || a.rail == b.rail;
        let both_active = !a.standby && !b.standby;
        a.machine != b.machine && both_active && (same_rail || self.rails == Rails::Across)
    }

    /// How much each host counts in all-to-all traffic, `weights[host]`; none where all count one.
    pub fn host_weights(&self, topology: &Topology) -> Option<Vec<f64>> {
        let hosts = topology.hosts();
        let rates = || hosts.iter().filter(|host| !host.standby).map(|host| host.rate_bps);
        let by_rate = self.weights == Weights::Rate && rates().min() != rates().max();
        if !by_rate && hosts.iter().all(|host| host.weight == 1) {
            return None;
        }
        let slowest = rates().min().filter(|_| by_rate).map(|rate| rate as f64);
        let rate = |host: &Host| slowest.map_or(1.0, |slowest| host.rate_bps as f64 / slowest);
        Some(hosts.iter().map(|host| f64::from(host.weight) * rate(host)).collect())
    }

    /// What each host sends to each other: all-to-all, each pair by the product of its weights, without the pairs within a
    /// machine, of standby ports and, with [`Rails::Within`], of two rails; a traffic matrix as it is, but that the active port
    /// of a bond sends and receives what is said of its standby ports. The traffic comes back as it is where that changes nothing.
    /// Cost: O(hosts²) where it leaves something out.
    ///
    /// # Errors
    /// [`TrafficError::TooMany`] if more pairs than a matrix holds are left.
    pub fn demand(&self, topology: &Topology) -> Result<Cow<'_, Traffic>, TrafficError> {
        let Traffic::Matrix(matrix) = &self.traffic else { return self.all_to_all(topology) };
        Ok(match at_active_ports(topology, matrix)? {
            Cow::Borrowed(_) => Cow::Borrowed(&self.traffic),
            Cow::Owned(matrix) => Cow::Owned(Traffic::Matrix(matrix)),
        })
    }

    /// What hosts send to each other in each traffic that the routes are for: what [`Policy::demand`] returns, then each further
    /// matrix in the same way.
    ///
    /// # Errors
    /// As [`Policy::demand`].
    pub fn demands(&self, topology: &Topology) -> Result<Vec<Cow<'_, Traffic>>, TrafficError> {
        let further = |matrix| Ok(Cow::Owned(Traffic::Matrix(at_active_ports(topology, matrix)?.into_owned())));
        iter::once(self.demand(topology)).chain(self.further_traffic.iter().map(further)).collect()
    }

    /// All-to-all traffic without what [`Policy::demand`] leaves out, as a matrix where that is anything.
    fn all_to_all(&self, topology: &Topology) -> Result<Cow<'_, Traffic>, TrafficError> {
        let by_rail = self.rails == Rails::Within && topology.hosts().iter().any(|host| host.rail.is_some());
        let weights = self.host_weights(topology);
        if !by_rail && weights.is_none() && !topology.has_multi_port_machines() {
            return Ok(Cow::Borrowed(&self.traffic));
        }
        let amount = |source: HostId, to: HostId| {
            weights.as_ref().map_or(1.0, |weights| weights[source.index()] * weights[to.index()])
        };
        let amount = &amount;
        let receivers = |source| {
            let others = topology.host_ids().filter(move |to| self.exchange(topology, source, *to));
            others.map(move |to| (to, amount(source, to)))
        };
        TrafficMatrix::of_rows(topology.hosts().len(), receivers).map(|matrix| Cow::Owned(Traffic::Matrix(matrix)))
    }

    /// The floods that do not leave by a port.
    pub fn blocked_at(&self, topology: &Topology, port: PortId) -> FloodSet {
        match topology.port(port).attachment {
            Attachment::Nothing | Attachment::Member(_) => FloodSet::NONE,
            Attachment::Host(host) if self.flood == Flood::Edge && !topology.host(host).edge => {
                FloodSet::NONE.with(FloodKind::UnknownUnicast)
            }
            Attachment::Host(_) | Attachment::Link(_) => self.flood.blocked(),
        }
    }

    /// The MTU of a port that carries data, in bytes: room for the hosts' packets, and no less than every Ethernet port has.
    pub fn port_mtu_bytes(&self) -> u16 {
        self.mtu_bytes.max(ETHERNET_MTU_BYTES)
    }

    /// The priority classes of a switch that is in these VLANs, `classes[class]`, by the lanes of their trees; VLANs
    /// without a tree, as that of management, are in the first. Empty without priority flow control.
    pub fn classes_of(&self, trees: &[VlanTree], vlans: &VlanSet) -> Vec<VlanSet> {
        let FlowControl::Pfc(lanes) = self.flow_control else { return Vec::new() };
        let mut classes = vec![VlanSet::new(); usize::from(lanes)];
        for vlan in vlans.iter() {
            if let Some(class) = classes.get_mut(usize::from(self.class_of(trees, vlan))) {
                class.insert(vlan);
            }
        }
        classes
    }

    /// The priority class of a VLAN's frames: the lane of its tree, and the first for a VLAN without a tree. 0 without priority
    /// flow control.
    pub fn class_of(&self, trees: &[VlanTree], vlan: VlanId) -> u8 {
        let FlowControl::Pfc(_) = self.flow_control else { return 0 };
        trees.binary_search_by_key(&vlan, |tree| tree.vlan).map_or(0, |at| trees[at].lane)
    }
}

/// A matrix in which the active port of a bond sends and receives what is said of its standby ports; as it is where there are
/// none, or it is for other hosts. Cost: O(demands · log demands) where there are some.
fn at_active_ports<'a>(topology: &Topology, matrix: &'a TrafficMatrix) -> Result<Cow<'a, TrafficMatrix>, TrafficError> {
    if !topology.has_standby_ports() || matrix.hosts() != topology.hosts().len() {
        return Ok(Cow::Borrowed(matrix));
    }
    let mut amounts: BTreeMap<[HostId; 2], f64> = BTreeMap::new();
    for Demand { source, destination, amount } in matrix.demands() {
        let pair = [source, destination].map(|host| topology.active_port(host));
        *amounts.entry(pair).or_default() += amount;
    }
    let demands = amounts.into_iter().filter(|([source, destination], _)| source != destination);
    let demands = demands.map(|([source, destination], amount)| Demand { source, destination, amount });
    TrafficMatrix::new(matrix.hosts(), demands.collect()).map(Cow::Owned)
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            engine: EngineName::Auto,
            tagging: Tagging::Switch,
            flow_control: FlowControl::Pause,
            fdb: FdbMode::Minimal,
            flood: Flood::Forward,
            storm_limit: None,
            vlans: VlanPool::default(),
            vlans_max: None,
            subnet: Subnet::default(),
            mtu_bytes: 1500,
            traffic: Traffic::AllToAll,
            further_traffic: Vec::new(),
            rails: Rails::Across,
            weights: Weights::Stated,
            seed: 1,
            resilience: Resilience::None,
            drain: Drain::default(),
            planes: Planes::default(),
            hops_max: None,
            paths_max: 1,
            time_limit: None,
        }
    }
}

words! {
    /// A way to find routes.
    EngineName {
        /// All engines that fit the topology; the best result is kept.
        Auto = "auto",
        /// One spanning tree, as 802.1D would leave it: the baseline.
        Tree = "tree",
        /// Dimension-order routing on meshes, tori and HyperX: products of paths, rings and full meshes.
        Dor = "dor",
        /// Fat trees and Clos networks of any depth.
        Clos = "clos",
        /// Up*/down* on any graph.
        Updown = "updown",
        /// Search for the lowest maximum load on any graph, free of deadlock where the flow control needs it.
        Balanced = "balanced",
    }
}

words! {
    /// Who chooses a frame's VLAN, and by what.
    Tagging {
        /// The switch, by the PVID of the host's port: hosts know nothing of VLANs.
        ///
        /// Source: \[Otsuka\] 3.
        Switch = "switch",
        /// The host, by its own and the receiver's address.
        ///
        /// Source: Kudoh's VLAN routing.
        Pair = "pair",
        /// The host, by its own address.
        ///
        /// Source: \[Miura\] 3.2.
        Source = "source",
        /// The host, by the receiver's address.
        ///
        /// Source: \[Miura\] 3.2.
        Destination = "destination",
        /// The host, by one address of each pair: both directions share a VLAN.
        ///
        /// Source: \[Miura\] 3.2, the address of higher priority.
        SourceDestination = "source-destination",
    }
}

words! {
    /// Whether all-to-all traffic crosses rails.
    Rails {
        /// It does: every host sends to every host of other machines.
        Across = "across",
        /// It does not: a host with a rail sends to hosts of its rail and to hosts without a rail.
        Within = "within",
    }
}

words! {
    /// By what hosts are weighted in all-to-all traffic: a pair adds the product of its weights to the load.
    Weights {
        /// By `weight:` in the topology, 1 where it says none.
        Stated = "stated",
        /// By that times the rate of the host's port: a port of 100 Gbit/s counts ten times as much as one of 10.
        Rate = "rate",
    }
}

words! {
    /// Which static entries switches hold, if they hold any.
    FdbMode {
        /// Every host in every VLAN, on every switch of the VLAN.
        ///
        /// Source: \[Otsuka\] 3.3, \[Eicker\].
        Full = "full",
        /// Only hosts for which frames of that VLAN pass the switch.
        Minimal = "minimal",
        /// None: switches learn, which takes --tagging source-destination or a single VLAN.
        ///
        /// Source: \[Miura\] 3.2.
        Learned = "learned",
    }
}

words! {
    /// Which failures a plan is ready for, by a switch-over that it stores.
    Resilience {
        /// None: a failure takes a new plan.
        None = "0",
        /// Any one link between switches: hosts switch over as the plan stores it.
        OneLink = "1",
        /// Any one link between switches, or any one switch with its links and hosts: the other hosts switch over.
        OneSwitch = "switch",
        /// As switch, or all members of any one named group of the topology together: the other hosts switch over.
        OneGroup = "group",
        /// As group, or any two links between switches together, of which each pair is a group.
        TwoLinks = "two-links",
    }
}

impl Resilience {
    /// Whether a plan is ready for the failure of a switch.
    pub const fn protects_switches(self) -> bool {
        matches!(self, Self::OneSwitch | Self::OneGroup | Self::TwoLinks)
    }

    /// Whether a plan is ready for the failure of a named group.
    pub const fn protects_groups(self) -> bool {
        matches!(self, Self::OneGroup | Self::TwoLinks)
    }

    /// Whether a plan is ready for the failure of any two links.
    pub const fn protects_link_pairs(self) -> bool {
        matches!(self, Self::TwoLinks)
    }
}

/// The flow control that the fabric runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowControl {
    /// None: frames are dropped, so no cycle can block.
    None,
    /// 802.3x PAUSE: a whole port stops, so all VLANs share one channel dependency graph.
    Pause,
    /// 802.1Qbb priority flow control with this many lossless classes (1 to 8), each with a dependency graph of its own.
    Pfc(u8),
}

impl FlowControl {
    /// How many lanes must be acyclic, each by itself; none if nothing must.
    pub const fn lanes(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::Pause => Some(1),
            Self::Pfc(classes) => Some(classes),
        }
    }
}

impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Pause => f.pad("pause"),
            Self::Pfc(classes) => f.pad(&format!("pfc={classes}")),
        }
    }
}

impl FromStr for FlowControl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Self::None),
            "pause" => return Ok(Self::Pause),
            _ => {}
        }
        let classes = text.strip_prefix("pfc=").and_then(|number| number.parse::<u8>().ok());
        match classes {
            Some(classes @ 1..=8) => Ok(Self::Pfc(classes)),
            _ => Err(format!("{text:?} is none of none, pause, pfc=1 … pfc=8")),
        }
    }
}

/// An IPv4 subnet for hosts that state no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The network address.
    pub network: Ipv4Addr,
    /// Length of its prefix, in bits.
    pub prefix_bits: u8,
}

impl Subnet {
    /// The `number`-th station address of the subnet, counting from 1; none if the subnet is full.
    pub fn station(&self, number: u32) -> Option<Ipv4Addr> {
        let size = 1_u64 << (32 - u32::from(self.prefix_bits));
        (number >= 1 && u64::from(number) + 1 < size).then(|| Ipv4Addr::from(u32::from(self.network) + number))
    }
}

impl Default for Subnet {
    /// `10.0.0.0/8`, of which a plan uses the first addresses.
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 0, 0, 0), prefix_bits: 8 }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an IPv4 subnet such as 10.0.0.0/8 with a prefix of 8 to 30 bits");
        let (network, bits) = text.split_once('/').ok_or_else(wrong)?;
        let network: Ipv4Addr = network.parse().map_err(|_| wrong())?;
        let prefix_bits: u8 = bits.parse().map_err(|_| wrong())?;
        let host_bits = u32::MAX.checked_shr(u32::from(prefix_bits)).unwrap_or(0);
        if !(8..=30).contains(&prefix_bits) || u32::from(network) & host_bits != 0 {
            return Err(wrong());
        }
        Ok(Self { network, prefix_bits })
    }
}
