//! A finished plan: immutable, complete, and carrying its own proof.

use std::{collections::BTreeSet, net::IpAddr};

use crate::{
    Assignment, Bound, Certificate, DeviceIntent, EngineName, Failover, HostId, HostIntent, HostTagging,
    IPV6_PREFIX_BITS, Link, LinkId, PathSets, PathSummary, Policy, Tagging, Topology, VlanId, VlanTree,
};

/// A finished plan. What executes it never chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The cabling that it is for.
    pub topology: Topology,
    /// What was asked for.
    pub policy: Policy,
    /// The engine whose routes these are; never `auto`.
    pub engine: EngineName,
    /// One tree a VLAN, ascending by VLAN.
    pub trees: Vec<VlanTree>,
    /// Which VLAN a frame takes.
    pub assignment: Assignment<VlanId>,
    /// `addresses[host]`: the host's IP address.
    pub addresses: Vec<IpAddr>,
    /// `devices[switch]`: the switch's complete desired state.
    pub devices: Vec<DeviceIntent>,
    /// The proof that no cycle of full buffers can form; none where routes have one.
    pub certificate: Option<Certificate>,
    /// The proof that no routing could load the most loaded channel less than `summary.load_bound`.
    pub bound: Bound,
    /// What to do when a link fails; none unless the policy asks for it.
    pub failover: Option<Failover>,
    /// Which VLANs hosts may spread a pair over; none where each pair has the assigned one alone.
    pub paths: Option<PathSets>,
    /// What the plan claims of itself.
    pub summary: Summary,
}

/// What a plan claims of itself; `check` recomputes every figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of links between switches.
    pub links: usize,
    /// VLANs used.
    pub vlans: usize,
    /// Lanes used.
    pub lanes: usize,
    /// Switches on a path, averaged over all ordered pairs of hosts, each host with itself included (\[Otsuka\] Table 3).
    pub avg_switches_per_path: f64,
    /// Links between switches on a path, averaged over ordered pairs of distinct hosts.
    pub avg_hops: f64,
    /// Switches on the longest path.
    pub max_switches_per_path: usize,
    /// The most demand that crosses any channel between switches. With all-to-all traffic that is a number of ordered
    /// pairs of hosts, with a matrix it is in the matrix's unit.
    pub max_channel_load: f64,
    /// How long the most loaded channel takes: the most, over channels, of demand times [`Topology::slowness`], which is the
    /// demand that a channel of the fastest link would carry in that time. The same as `max_channel_load` where all links
    /// have one rate.
    pub max_channel_time: f64,
    /// No routing whatever can have a lower `max_channel_time`.
    pub load_bound: f64,
    /// `max_channel_time / load_bound`; 1 is perfect. 1 where nothing crosses a link.
    pub load_gap: f64,
    /// Whether the plan carries a valid certificate.
    pub deadlock_free: bool,
    /// Static entries on the switch that has most.
    pub fdb_entries_max: usize,
    /// Static entries in the whole fabric.
    pub fdb_entries_total: usize,
    /// Figures of the path sets, if the plan has some.
    pub paths: Option<PathSummary>,
}

impl Eq for Summary {}

impl Plan {
    /// The tree of a VLAN. Cost: O(log VLANs).
    pub fn tree(&self, vlan: VlanId) -> Option<&VlanTree> {
        self.trees.binary_search_by_key(&vlan, |tree| tree.vlan).ok().map(|at| &self.trees[at])
    }

    /// Links that no tree uses although a parallel one between the same two switches is in use, ascending: cables that
    /// are there for failures only. Cost: O(links of all trees + links · log links).
    pub fn idle_parallels(&self) -> Vec<LinkId> {
        let mut used = vec![false; self.topology.links().len()];
        self.trees.iter().flat_map(|tree| tree.tree.links()).for_each(|link| used[link.index()] = true);
        let ends = |link: LinkId| {
            let Link { a, b, .. } = *self.topology.link(link);
            let [a, b] = [a, b].map(|port| self.topology.port(port).switch);
            (a.min(b), a.max(b))
        };
        let busy: BTreeSet<_> = self.topology.link_ids().filter(|link| used[link.index()]).map(ends).collect();
        self.topology.link_ids().filter(|link| !used[link.index()] && busy.contains(&ends(*link))).collect()
    }

    /// Active ports of the failover bonds that no other port can take over from: hosts tag by address, so a bond keeps the VLANs of
    /// its active port, and switches have no entries there toward a port that is planned in other VLANs. Cost: O(ports of bonds ·
    /// hosts).
    pub fn bonds_without_failover(&self) -> Vec<HostId> {
        let (topology, chosen) = (&self.topology, &self.assignment);
        if self.policy.tagging == Tagging::Switch {
            return Vec::new();
        }
        let set = |from: HostId, to: HostId| self.paths.as_ref().map(|paths| paths.of(from, to));
        let is_alike = |active: HostId, standby: HostId| {
            let mut others = topology.host_ids().filter(|other| !topology.are_of_one_machine(*other, active));
            let both = |other: HostId| {
                let to = [active, standby].map(|port| (chosen.unicast(other, port), set(other, port)));
                let from = [active, standby].map(|port| (chosen.unicast(port, other), set(port, other)));
                to[0] == to[1] && from[0] == from[1]
            };
            chosen.broadcast(active) == chosen.broadcast(standby) && others.all(both)
        };
        let has_none = |active: &HostId| topology.standby_ports(*active).any(|port| !is_alike(*active, port));
        topology.host_ids().filter(has_none).collect()
    }

    /// The complete desired state of a host.
    pub fn host_intent(&self, host: HostId) -> HostIntent {
        let address = self.addresses[host.index()];
        HostIntent {
            host,
            mac: self.topology.host(host).mac,
            address,
            prefix_bits: if address.is_ipv4() { self.policy.subnet.prefix_bits } else { IPV6_PREFIX_BITS },
            mtu_bytes: self.policy.mtu_bytes,
            tagging: match self.policy.tagging {
                Tagging::Switch => HostTagging::BySwitch,
                Tagging::Pair | Tagging::Source | Tagging::Destination | Tagging::SourceDestination => {
                    HostTagging::ByHost
                }
            },
        }
    }
}
