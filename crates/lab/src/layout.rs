//! Where everything of a lab is: the plan's names against the names of namespaces and devices, every cable and its rate.
//!
//! A layout follows from the plan and the options alone. It is also the lab's state file, which is how another process
//! finds its way, so its types are the file's format and [`LAYOUT_VERSION`] is the format's version.
//!
//! ```text
//! plan:   sw1:g1 -- sw2:g1 (1 Gbit/s), host n1 at sw1:g2 (1 Gbit/s)         --rate 100mbit
//! layout: esp-demo-sw1/g1 ═ esp-demo-sw2/g1 100 Mbit/s,  esp-demo-sw1/g2 ═ esp-demo-n1/eth0 100 Mbit/s
//! ```

use std::{collections::BTreeMap, net::IpAddr};

use fabric::{Attachment, Host, HostId, HostTagging, Mac, PortId, StandbyEdge, SwitchId, Topology};
use serde::{Deserialize, Serialize};

use crate::{
    Backend, LabError, LabOptions, Managed, Offload, Start,
    management::Management,
    name::{check_lab_name, host_device, host_namespace, port_device, switch_namespace},
    table::{LAG_MEMBERS_MAX, PORT_IFINDEX_BASE, Service, SwitchTable},
    twin::{FrameHead, Tag, deliver},
};

/// Version of the state file.
pub const LAYOUT_VERSION: u32 = 4;

/// Most switches and hosts of one lab together: beyond this a namespace for each no longer fits one machine.
pub const NODES_MAX: usize = 2048;

/// A lab's sites and cables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// [`LAYOUT_VERSION`] of the program that wrote it.
    pub version: u32,
    /// The lab's name.
    pub name: String,
    /// What the switches are made of.
    pub backend: Backend,
    /// Whether hosts send super-packets.
    pub offload: Offload,
    /// Rate of the fastest host cable.
    pub rate_bps: u64,
    /// Most bytes that wait for one direction of a cable.
    pub queue_bytes: u32,
    /// When it was brought up, in seconds since 1970.
    pub created_unix_s: u64,
    /// How switches are managed, if they are.
    pub management: Option<Management>,
    /// What LAGs are made of, if there are some.
    #[serde(default)]
    pub lags: LagMethod,
    /// `switches[switch]`.
    pub switches: Vec<SwitchSite>,
    /// `hosts[host]`.
    pub hosts: Vec<HostSite>,
    /// What is behind edge ports on standby: stations whose cables are plugged into ports that are shut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby_edges: Vec<HostSite>,
    /// Those between switches, then those of hosts and those of edge ports on standby, in the plan's order, which stays when plugs are
    /// moved. A LAG has one a member.
    pub cables: Vec<Cable>,
}

/// What the LAGs of a lab are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LagMethod {
    /// The kernel's bonds.
    #[default]
    Bonds,
    /// eBPF programs and LACP of the lab's own, which a process of the lab speaks.
    Own,
}

/// How a cable fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Both ends see the link go down.
    Down,
    /// Frames vanish, and neither end notices.
    Silent,
    /// Some frames vanish, by chance.
    Lossy {
        /// How many of a million.
        loss_ppm: u32,
    },
}

/// Where a switch is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchSite {
    /// Its name in the plan.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// One for every port, in order.
    pub ports: Vec<PortSite>,
}

/// Where a switch port is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSite {
    /// Its name in the plan.
    pub name: String,
    /// The device in the switch's namespace, if there is one. A port that has no cable may have one: an end whose peer is
    /// down.
    pub device: Option<String>,
    /// The position of the LAG that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<usize>,
    /// Whether the plan shuts it.
    pub shut: Shut,
    /// How often a plug was put in, pulled or exchanged since the lab came up.
    pub plugged: u32,
    /// Counters of devices that were in the port before.
    pub before: Carried,
}

/// Counters of devices that are in a port no more: what they add to those of the device that is there now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Frames that found the queue toward the cable full.
    pub queue_drops: u64,
    /// Frames and bytes received, frames and bytes sent, by VLAN, where the device keeps them and not the switch.
    pub traffic: BTreeMap<u16, [u64; 4]>,
}

/// Whether a plan shuts a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shut {
    /// In service.
    No,
    /// Shut.
    Yes,
}

/// Where a host is, and who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSite {
    /// Its name in the plan.
    pub name: String,
    /// The machine that it is a port of.
    pub machine: String,
    /// Whether it is a standby port of the machine's failover bond: it is up, and has no address.
    pub standby: bool,
    /// The machine's namespace.
    pub namespace: String,
    /// Its device there.
    pub device: String,
    /// The device's index.
    pub ifindex: u32,
    /// Where it is on a LAG: its members, in the order of the switch's ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<BondMember>,
    /// Its station address.
    pub mac: String,
    /// Further station addresses behind its port.
    #[serde(default)]
    pub further_macs: Vec<String>,
    /// Its IP address.
    pub address: IpAddr,
    /// Length of the network prefix of `address`, in bits.
    pub prefix_bits: u8,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u16,
    /// Hosts (positions, ascending; one a copy) that its group frames reach: untagged, or of hosts that tag, tagged.
    pub audience: Vec<usize>,
}

/// A device that is a member of a host's LAG.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondMember {
    /// The device.
    pub device: String,
    /// Its index.
    pub ifindex: u32,
}

/// A cable and where its ends are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// As people write it: `sw1:g23 -- sw2:g23`, or `sw1:g1 -- node01`.
    pub label: String,
    /// Capacity of each direction.
    pub rate_bps: u64,
    /// How it is broken, if it is.
    pub failed: Option<FailMode>,
    /// One end; the switch's, of a host cable.
    pub a: CableEnd,
    /// The other end; the host's, of a host cable.
    pub b: CableEnd,
}

/// Which end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// [`Cable::a`].
    A,
    /// [`Cable::b`].
    B,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn far(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Cable {
    /// The end of a side.
    pub fn end(&self, side: Side) -> &CableEnd {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// Whether it is broken so that its ends have no carrier.
    pub(crate) fn is_down(&self) -> bool {
        self.failed == Some(FailMode::Down)
    }

    /// The end of a side, to be changed.
    pub(crate) fn end_mut(&mut self, side: Side) -> &mut CableEnd {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}

impl CableEnd {
    /// The position of its port in its switch, if it is a switch's end.
    pub(crate) fn port(&self) -> usize {
        (self.ifindex - PORT_IFINDEX_BASE) as usize
    }
}

impl PortSite {
    /// The name that the device bears beside its own, where the kernel would not have the port's for a device.
    pub(crate) fn alias(&self) -> &str {
        if self.device.as_deref() == Some(&self.name) { "" } else { &self.name }
    }
}

impl Carried {
    /// Adds the counters of another device that has left.
    pub(crate) fn add(&mut self, other: &Self) {
        self.queue_drops += other.queue_drops;
        for (vlan, counts) in &other.traffic {
            let sum = self.traffic.entry(*vlan).or_default();
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
}

/// One end of a cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableEnd {
    /// As people write it: `sw1:g23` or `node01`.
    pub label: String,
    /// The namespace.
    pub namespace: String,
    /// The device in it.
    pub device: String,
    /// The device's index.
    pub ifindex: u32,
}

impl Layout {
    /// Lays a plan out. Cost: O(ports + hosts · copies of a broadcast).
    ///
    /// # Errors
    /// [`LabError::BadName`], [`LabError::TooLarge`], or [`LabError::Unsupported`] for a rate that scales a link below
    /// [`RATE_BPS_MIN`].
    pub(crate) fn new(
        plan: &fabric::Plan,
        tables: &[SwitchTable],
        options: &LabOptions,
        (backend, lags): (Backend, LagMethod),
        created_unix_s: u64,
    ) -> Result<Self, LabError> {
        check_lab_name(&options.name)?;
        let topology = &plan.topology;
        let nodes = topology.switches().len() + topology.hosts().len() + topology.standby_edges().len();
        if nodes > NODES_MAX {
            return Err(LabError::TooLarge { what: "switches and hosts", got: nodes, limit: NODES_MAX });
        }
        let lag_ports =
            (0..topology.ports().len()).map(PortId::new).filter(|port| topology.port(*port).lag().is_some());
        if let Some(got) = lag_ports.map(|lag| topology.members(lag).count()).find(|got| *got > LAG_MEMBERS_MAX) {
            return Err(LabError::TooLarge { what: "members of one LAG", got, limit: LAG_MEMBERS_MAX });
        }
        let is_switch = |name: &str| topology.find_switch(name).is_some();
        let switches: Vec<SwitchSite> =
            topology.switch_ids().map(|switch| switch_site(topology, tables, options, lags, switch)).collect();
        let hosts: Vec<HostSite> = (topology.host_ids())
            .map(|host| {
                let intent = plan.host_intent(host);
                let own = topology.host(host);
                let machine = topology.machine(own.machine);
                let number = machine.hosts().position(|port| port == host).unwrap_or(0);
                HostSite {
                    name: own.name.clone(),
                    machine: machine.name.clone(),
                    standby: own.standby,
                    namespace: host_namespace(&options.name, &machine.name, is_switch),
                    device: host_device(number),
                    ifindex: PORT_IFINDEX_BASE + number as u32,
                    members: bond_members(topology, own, number),
                    // Behind an edge port is a host whose address no switch knows.
                    mac: if own.edge { Mac::local(EDGE_MAC) } else { intent.mac }.to_string(),
                    further_macs: own.further_macs.iter().filter(|_| !own.standby).map(Mac::to_string).collect(),
                    address: intent.address,
                    prefix_bits: intent.prefix_bits,
                    mtu_bytes: intent.mtu_bytes,
                    audience: audience(plan, tables, host),
                }
            })
            .collect();
        let standby_edges = (topology.standby_edges().iter().enumerate())
            .map(|(number, edge)| standby_edge_site(plan, &options.name, number, edge))
            .collect::<Result<Vec<_>, _>>()?;
        let cables = cables(topology, &switches, (&hosts, &standby_edges), options.rate_bps)?;
        Ok(Self {
            version: LAYOUT_VERSION,
            name: options.name.clone(),
            backend,
            offload: options.offload,
            rate_bps: options.rate_bps,
            queue_bytes: options.queue_bytes,
            created_unix_s,
            lags,
            management: match options.managed {
                Managed::No => None,
                Managed::Yes => Some(Management::new(topology, &options.name, options.start)?),
            },
            switches,
            hosts,
            standby_edges,
            cables,
        })
    }

    /// Every namespace: switches, then machines.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter().map(|switch| switch.namespace.as_str());
        let management = self.management.iter().map(|management| management.namespace.as_str());
        switches.chain(self.machines().map(|ports| ports[0].namespace.as_str())).chain(management)
    }

    /// The machines, each as its ports, and then what is behind edge ports on standby.
    pub fn machines(&self) -> impl Iterator<Item = &[HostSite]> {
        self.hosts.chunk_by(|one, other| one.machine == other.machine).chain(self.standby_edges.chunks(1))
    }

    /// Whether a host sends to another, both by their positions: ports of two machines, neither of them on standby.
    pub fn exchange(&self, source: usize, destination: usize) -> bool {
        let [source, destination] = [source, destination].map(|host| &self.hosts[host]);
        source.machine != destination.machine && !source.standby && !destination.standby
    }

    /// The namespace of a host or a machine, or `mgmt`, unless a host is called so: where switches are managed from.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`].
    pub fn place(&self, name: &str) -> Result<&str, LabError> {
        let machine = self.hosts.iter().find(|host| host.machine == name);
        match (self.host(name), machine, &self.management) {
            (Err(_), Some(port), _) => Ok(&port.namespace),
            (Err(_), None, Some(management)) if name == "mgmt" => Ok(&management.namespace),
            (host, ..) => Ok(&host?.namespace),
        }
    }

    /// The host of this name.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`].
    pub fn host(&self, name: &str) -> Result<&HostSite, LabError> {
        let missing = || LabError::NoSuchHost {
            lab: self.name.clone(),
            host: name.to_owned(),
            known: (self.hosts.iter().chain(&self.standby_edges).map(|host| host.name.clone()))
                .chain(self.management.as_ref().map(|_| "mgmt".to_owned()))
                .collect(),
        };
        self.hosts.iter().chain(&self.standby_edges).find(|host| host.name == name).ok_or_else(missing)
    }

    /// The switch and the port, by their positions, that people mean by `switch:port`.
    ///
    /// # Errors
    /// [`LabError::NoSuchPort`].
    pub fn port(&self, label: &str) -> Result<(usize, usize), LabError> {
        let mut known = Vec::new();
        for (switch, site) in self.switches.iter().enumerate() {
            let Some(name) = label.strip_prefix(site.name.as_str()).and_then(|rest| rest.strip_prefix(':')) else {
                continue;
            };
            if let Some(port) = site.ports.iter().position(|port| port.name == name) {
                return Ok((switch, port));
            }
            known = site.ports.iter().map(|port| port.name.clone()).collect();
        }
        Err(LabError::NoSuchPort { lab: self.name.clone(), port: label.to_owned(), known })
    }

    /// The cable that is plugged into a port, by its position, and which of its ends is there. Cost: O(cables).
    pub fn plug(&self, switch: usize, port: usize) -> Option<(usize, Side)> {
        let (site, ifindex) = (&self.switches[switch], PORT_IFINDEX_BASE + port as u32);
        let at = |end: &CableEnd| end.ifindex == ifindex && end.namespace == site.namespace;
        self.cables.iter().enumerate().find_map(|(position, cable)| match (at(&cable.a), at(&cable.b)) {
            (true, _) => Some((position, Side::A)),
            (false, true) => Some((position, Side::B)),
            (false, false) => None,
        })
    }

    /// The switch, by its position, that an end of a cable is plugged into; none for a host's own end.
    pub fn switch_of(&self, end: &CableEnd) -> Option<usize> {
        self.switches.iter().position(|site| site.namespace == end.namespace)
    }

    /// Largest IP packet of any host, in bytes.
    pub fn mtu_bytes(&self) -> u16 {
        self.hosts.iter().map(|host| host.mtu_bytes).max().unwrap_or(1500)
    }

    /// The cable that people mean by a host's name, a port (`sw1:g23`) or both ends (`sw1:g23 -- sw2:g23`, either way
    /// round).
    ///
    /// # Errors
    /// [`LabError::NoSuchCable`].
    pub fn cable(&self, label: &str) -> Result<&Cable, LabError> {
        self.cable_position(label).map(|position| &self.cables[position])
    }

    /// The position of the cable that [`Layout::cable`] finds.
    ///
    /// # Errors
    /// [`LabError::NoSuchCable`].
    pub fn cable_position(&self, label: &str) -> Result<usize, LabError> {
        let ends: Vec<&str> = label.split(" -- ").map(str::trim).collect();
        let found = self.cables.iter().position(|cable| {
            let (a, b) = (cable.a.label.as_str(), cable.b.label.as_str());
            match ends[..] {
                [end] => end == a || end == b,
                [one, other] => (one, other) == (a, b) || (one, other) == (b, a),
                _ => false,
            }
        });
        found.ok_or_else(|| LabError::NoSuchCable { lab: self.name.clone(), cable: label.to_owned() })
    }
}

/// The address of a switch's port, counted from 1; 0 is the switch itself.
pub(crate) fn port_address(switch: usize, port: u16) -> Mac {
    let ([high, low], [port_high, port_low]) = ((switch as u16).to_be_bytes(), port.to_be_bytes());
    Mac::new([0x02, 0xe5, high, low, port_high, port_low])
}

/// The factor by which a topology's rates are scaled so that its fastest host cable runs at `rate_bps`.
pub fn rate_scale(topology: &Topology, rate_bps: u64) -> f64 {
    let fastest = |rates: &mut dyn Iterator<Item = u64>| rates.max().filter(|rate| *rate > 0);
    let fastest = fastest(&mut topology.host_cables().map(|(.., rate_bps)| rate_bps))
        .or_else(|| fastest(&mut topology.switch_cables().map(|(.., rate_bps)| rate_bps)));
    fastest.map_or(1.0, |fastest| rate_bps as f64 / fastest as f64)
}

fn switch_site(
    topology: &Topology,
    tables: &[SwitchTable],
    options: &LabOptions,
    lags: LagMethod,
    switch: SwitchId,
) -> SwitchSite {
    let (lab, start) = (&options.name, options.start);
    let controller = topology.in_band().filter(|_| options.managed == Managed::Yes).map(|in_band| in_band.controller);
    let table = &tables[switch.index()];
    let port_site = |(number, id): (usize, PortId)| {
        let port = topology.port(id);
        // Only a bond is a device.
        let has_device = port.lag().is_none() || lags == LagMethod::Bonds;
        let is_plugged =
            port.attachment != Attachment::Nothing || topology.standby_edges().iter().any(|edge| edge.port == id);
        let cabled = (is_plugged && has_device) || controller == Some(id);
        let first = topology.switch_ports(switch).start;
        let lag = Some(topology.logical_port(id)).filter(|lag| *lag != id).map(|lag| lag.index() - first);
        // A member is as its LAG.
        let served = table.ports.get(lag.unwrap_or(number));
        let shut = start == Start::Planned && served.is_some_and(|entry| entry.service == Service::Down);
        PortSite {
            name: port.name.clone(),
            device: cabled.then(|| port_device(&port.name, number)),
            lag,
            shut: if shut { Shut::Yes } else { Shut::No },
            plugged: 0,
            before: Carried::default(),
        }
    };
    let name = topology.switch(switch).name.clone();
    let ports = topology.port_ids(switch).enumerate().map(port_site).collect();
    SwitchSite { namespace: switch_namespace(lab, &name), name, ports }
}

/// The members of a host's LAG: `eth0.0` and so on; none where it is on no LAG.
fn bond_members(topology: &Topology, host: &Host, number: usize) -> Vec<BondMember> {
    let count = if topology.port(host.port).lag().is_some() { topology.members(host.port).count() } else { 0 };
    let member = |at: usize| BondMember {
        device: format!("{}.{at}", host_device(number)),
        ifindex: MEMBER_IFINDEX_BASE + (number * LAG_MEMBERS_MAX + at) as u32,
    };
    (0..count).map(member).collect()
}

/// Indexes of the members of hosts' LAGs, [`LAG_MEMBERS_MAX`] a port: above those of ports.
const MEMBER_IFINDEX_BASE: u32 = 8192;

/// Who hears a host's broadcast. A fabric that loops never finishes delivering; its audience is what was heard first.
fn audience(plan: &fabric::Plan, tables: &[SwitchTable], host: HostId) -> Vec<usize> {
    let topology = &plan.topology;
    let own = |vlan: fabric::VlanId| Tag { vid: vlan.get(), priority: 0 };
    let tag = match plan.host_intent(host).tagging {
        HostTagging::BySwitch => None,
        HostTagging::ByHost => Some(own(plan.assignment.broadcast(host))),
    };
    let frame = FrameHead { destination: Mac::BROADCAST, source: topology.host(host).mac, tag };
    let arrivals = deliver(topology, tables, host, &frame, 4 * topology.ports().len()).unwrap_or_else(|heard| heard);
    let mut heard: Vec<usize> =
        arrivals.into_iter().filter(|(_, heard)| *heard == tag).map(|(host, _)| host.index()).collect();
    heard.sort_unstable();
    heard
}

/// What is behind an edge port on standby: a station with an address after those of the plan's hosts.
fn standby_edge_site(plan: &fabric::Plan, lab: &str, number: usize, edge: &StandbyEdge) -> Result<HostSite, LabError> {
    let topology = &plan.topology;
    let nth = (topology.hosts().len() + number + 1) as u32;
    let full = || LabError::Unsupported(format!("{} has no address left for {}", plan.policy.subnet, edge.name));
    Ok(HostSite {
        name: edge.name.clone(),
        machine: edge.name.clone(),
        standby: false,
        namespace: host_namespace(lab, &edge.name, |name| topology.find_switch(name).is_some()),
        device: host_device(0),
        ifindex: PORT_IFINDEX_BASE,
        members: Vec::new(),
        mac: Mac::local(EDGE_MAC + 1 + number as u32).to_string(),
        further_macs: Vec::new(),
        address: plan.policy.subnet.station(nth).ok_or_else(full)?.into(),
        prefix_bits: plan.policy.subnet.prefix_bits,
        mtu_bytes: plan.policy.mtu_bytes,
        audience: Vec::new(),
    })
}

fn cables(
    topology: &Topology,
    switches: &[SwitchSite],
    (hosts, standby_edges): (&[HostSite], &[HostSite]),
    rate_bps: u64,
) -> Result<Vec<Cable>, LabError> {
    let scale = rate_scale(topology, rate_bps);
    let scaled = |rate_bps: u64| (rate_bps as f64 * scale).round() as u64;
    let at_port = |port: PortId| {
        let switch = topology.port(port).switch;
        let first = topology.port_ids(switch).next().map_or(0, PortId::index);
        let number = port.index() - first;
        let site = &switches[switch.index()];
        CableEnd {
            label: topology.port_label(port),
            namespace: site.namespace.clone(),
            device: port_device(&site.ports[number].name, number),
            ifindex: PORT_IFINDEX_BASE + number as u32,
        }
    };
    let links = topology.switch_cables().map(|(a, b, rate_bps)| Cable {
        label: String::new(),
        rate_bps: scaled(rate_bps),
        failed: None,
        a: at_port(a),
        b: at_port(b),
    });
    let rim = topology.host_cables().map(|(port, host, number, rate_bps)| {
        let site = &hosts[host.index()];
        let member = site.members.get(number);
        let (device, ifindex) = member.map_or((&site.device, site.ifindex), |member| (&member.device, member.ifindex));
        let label = if number == 0 { site.name.clone() } else { format!("{}.{number}", site.name) };
        let b = CableEnd { label, namespace: site.namespace.clone(), device: device.clone(), ifindex };
        Cable { label: String::new(), rate_bps: scaled(rate_bps), failed: None, a: at_port(port), b }
    });
    let waiting = topology.standby_edges().iter().zip(standby_edges).map(|(edge, site)| {
        let HostSite { name, namespace, device, ifindex, .. } = site.clone();
        let b = CableEnd { label: name, namespace, device, ifindex };
        Cable { label: String::new(), rate_bps: scaled(edge.rate_bps), failed: None, a: at_port(edge.port), b }
    });
    let mut cables: Vec<Cable> = links.chain(rim).chain(waiting).collect();
    for cable in &mut cables {
        cable.label = format!("{} -- {}", cable.a.label, cable.b.label);
        if cable.rate_bps < RATE_BPS_MIN {
            return Err(LabError::Unsupported(format!(
                "cable {} would run at {} bit/s: ask for a higher rate",
                cable.label, cable.rate_bps
            )));
        }
    }
    Ok(cables)
}

/// The local address of what is behind the edge port.
const EDGE_MAC: u32 = 0x00fe_d6e0;

/// Slowest cable: below this a single frame takes seconds.
const RATE_BPS_MIN: u64 = 10_000;
