//! The cabling: switches, their ports, the links between them, and the hosts at the rim.

use std::{collections::BTreeMap, net::IpAddr, ops::Range, sync::Arc};

use crate::{
    ChannelId, Group, GroupId, Guid, HostId, LagNumber, LinkId, Mac, MachineId, Model, PortId, SwitchId,
    SwitchIdentity, VlanId,
};

/// A switch and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Unique among switches.
    pub name: String,
    /// What it can do.
    pub model: Arc<Model>,
    /// Where it is managed, if that is known.
    pub mgmt: Option<IpAddr>,
    /// Its InfiniBand GUID, if it is an InfiniBand switch.
    pub guid: Option<Guid>,
    /// What its maker gave it, as far as that is known: whether the device at `mgmt` is this switch.
    pub identity: SwitchIdentity,
    first_port: PortId,
    port_count: usize,
}

/// A switch before its ports are known.
#[derive(Clone, Debug)]
pub(crate) struct DraftSwitch {
    pub(crate) name: String,
    pub(crate) model: Arc<Model>,
    pub(crate) mgmt: Option<IpAddr>,
    pub(crate) guid: Option<Guid>,
    pub(crate) identity: SwitchIdentity,
}

/// A switch port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The switch that it is on.
    pub switch: SwitchId,
    /// Unique on its switch.
    pub name: String,
    /// What its cable leads to.
    pub attachment: Attachment,
}

impl Port {
    /// The number of the LAG that it is; none where it is a port with a cable of its own.
    pub fn lag(&self) -> Option<LagNumber> {
        LagNumber::of_port(&self.name)
    }
}

/// What a port's cable leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// Nothing is plugged in.
    Nothing,
    /// Another switch.
    Link(LinkId),
    /// A host.
    Host(HostId),
    /// Whatever the LAG leads to that it is a member of: the port carries nothing of its own.
    Member(PortId),
}

/// A cable between two switches, or all cables between two LAGs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: PortId,
    /// The other end.
    pub b: PortId,
    /// Capacity of each direction.
    pub rate_bps: u64,
}

/// A machine at the rim: one host for each of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Unique among machines; that of its host where it has one port.
    pub name: String,
    pub(crate) first: HostId,
    pub(crate) ports: usize,
}

impl Machine {
    /// Its ports, in order.
    pub fn hosts(&self) -> impl DoubleEndedIterator<Item = HostId> + ExactSizeIterator + Clone + use<> {
        let first = self.first.index();
        (first..first + self.ports).map(HostId::new)
    }
}

/// A port of a machine and its cable to a switch. A machine with several ports is several hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique among hosts.
    pub name: String,
    /// The machine that it is a port of.
    pub machine: MachineId,
    /// The rail that it is on, where machines have a port on each of several groups of switches: the number of the group.
    pub rail: Option<u8>,
    /// How much it counts in all-to-all traffic beside a host of weight 1; one of weight 0 sends and receives nothing there.
    pub weight: u8,
    /// The station address; unicast, and unique among hosts but for the ports of one failover bond. All zeros for an edge port
    /// without an address of its own.
    pub mac: Mac,
    /// Further station addresses behind the same port, such as those of virtual machines and management processors;
    /// unicast and unique, ascending.
    pub further_macs: Vec<Mac>,
    /// Most further addresses that are learned at the port while the fabric runs, beside `further_macs`; none where no address is.
    pub learned_max: Option<usize>,
    /// Whether it is a standby port of its machine's failover bond: the addresses are those of the bond, and behind the
    /// machine's active port now.
    pub standby: bool,
    /// Whether it is an edge port: an uplink to a network outside, behind which any address may be.
    pub edge: bool,
    /// The switch port that it is plugged into.
    pub port: PortId,
    /// Capacity of each direction of its cable.
    pub rate_bps: u64,
    /// Its IP address, if the cabling file states one.
    pub address: Option<IpAddr>,
    /// The InfiniBand GUID of its port, if it has one.
    pub guid: Option<Guid>,
}

impl Host {
    /// Every station address behind the port, its own first; none behind a standby port.
    pub fn macs(&self) -> impl Iterator<Item = Mac> + Clone + '_ {
        self.all_macs().filter(|_| !self.standby)
    }

    /// Every station address that is behind the port while it is not on standby, its own first.
    pub fn all_macs(&self) -> impl Iterator<Item = Mac> + Clone + '_ {
        std::iter::once(self.mac).filter(|mac| !mac.is_zero()).chain(self.further_macs.iter().copied())
    }
}

/// An edge port on standby: a second uplink to the network outside that the edge port leads to. Its port is shut, since the two would
/// close a loop through that network, so it is no host: no tree reaches it and no entry leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyEdge {
    /// Unique among hosts and standby edges.
    pub name: String,
    /// The switch port that it is plugged into, no LAG; its [`Attachment`] is nothing.
    pub port: PortId,
    /// Capacity of each direction of its cable.
    pub rate_bps: u64,
    /// Station addresses that are known to be behind it once it is no longer on standby, ascending; those of the edge port may be
    /// among them.
    pub macs: Vec<Mac>,
}

/// How switches are managed where they have no port of their own for it: over the data ports, in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InBand {
    /// The VLAN, which no data travels in.
    pub vlan: VlanId,
    /// The port that the controller is plugged into; its frames have no tag.
    pub controller: PortId,
}

impl InBand {
    /// Whether its frames travel between switches with a tag.
    pub fn is_tagged(&self) -> bool {
        self.vlan != VlanId::MIN
    }
}

/// An immutable, connected graph of switches with hosts at its rim; made by [`TopologyBuilder`](crate::TopologyBuilder).
///
/// Ports are numbered switch by switch, so that a switch's ports are a range; two links may join the same two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    switches: Vec<Switch>,
    ports: Vec<Port>,
    links: Vec<Link>,
    hosts: Vec<Host>,
    standby_edges: Vec<StandbyEdge>,
    groups: Vec<Group>,
    /// `switch_of[host]`.
    switch_of: Vec<SwitchId>,
    machines: Vec<Machine>,
    /// Station addresses of the hosts before each: `macs_before[h + 1] - macs_before[h]` are host `h`'s.
    macs_before: Vec<usize>,
    /// Entries to keep room for because of the hosts before each: their station addresses, and as many as they may learn.
    room_before: Vec<usize>,
    /// Channels that leave each switch, in port order: `out[out_start[s]..out_start[s + 1]]`.
    out: Vec<ChannelId>,
    out_start: Vec<usize>,
    /// Hosts of each switch, in port order: `rim[rim_start[s]..rim_start[s + 1]]`.
    rim: Vec<HostId>,
    rim_start: Vec<usize>,
    rate_max_bps: u64,
    in_band: Option<InBand>,
    /// Ascending.
    return_ports: Vec<PortId>,
}

impl Topology {
    /// Assembles a topology from parts that [`TopologyBuilder`](crate::TopologyBuilder) has validated.
    /// `ports` are grouped by switch, hosts by machine, in ascending order.
    pub(crate) fn assemble(
        switches: Vec<DraftSwitch>,
        ports: Vec<Port>,
        links: Vec<Link>,
        hosts: Vec<Host>,
        machine_names: Vec<String>,
        standby_edges: Vec<StandbyEdge>,
        in_band: Option<InBand>,
    ) -> Self {
        let mut counts = vec![0; switches.len()];
        for port in &ports {
            counts[port.switch.index()] += 1;
        }
        let mut next = 0;
        let switches = switches
            .into_iter()
            .zip(counts)
            .map(|(DraftSwitch { name, model, mgmt, guid, identity }, port_count)| {
                let first_port = PortId::new(next);
                next += port_count;
                Switch { name, model, mgmt, guid, identity, first_port, port_count }
            })
            .collect::<Vec<_>>();
        let (mut out, mut out_start, mut rim, mut rim_start) = (Vec::new(), vec![0], Vec::new(), vec![0]);
        for switch in &switches {
            for (port, Port { attachment, .. }) in
                ports.iter().enumerate().skip(switch.first_port.index()).take(switch.port_count)
            {
                match *attachment {
                    Attachment::Nothing | Attachment::Member(_) => {}
                    Attachment::Host(host) => rim.push(host),
                    Attachment::Link(link) if links[link.index()].a.index() == port => {
                        out.push(ChannelId::forward(link));
                    }
                    Attachment::Link(link) => out.push(ChannelId::backward(link)),
                }
            }
            out_start.push(out.len());
            rim_start.push(rim.len());
        }
        let rate_max_bps = links.iter().map(|link| link.rate_bps).max().unwrap_or(0);
        let mut machines: Vec<Machine> =
            (machine_names.into_iter()).map(|name| Machine { name, first: HostId::new(0), ports: 0 }).collect();
        for (id, host) in HostId::all(hosts.len()).zip(&hosts) {
            let machine = &mut machines[host.machine.index()];
            if machine.ports == 0 {
                machine.first = id;
            }
            machine.ports += 1;
        }
        let switch_of = hosts.iter().map(|host| ports[host.port.index()].switch).collect();
        Self {
            switches,
            ports,
            links,
            macs_before: macs_before(&hosts),
            room_before: room_before(&hosts),
            switch_of,
            hosts,
            standby_edges,
            groups: Vec::new(),
            machines,
            out,
            out_start,
            rim,
            rim_start,
            rate_max_bps,
            in_band,
            return_ports: Vec::new(),
        }
    }

    /// The same with these groups, which [`TopologyBuilder`](crate::TopologyBuilder) has validated.
    pub(crate) fn with_groups(self, groups: Vec<Group>) -> Self {
        Self { groups, ..self }
    }

    /// The same with these return ports, which are free.
    pub(crate) fn with_return_ports(self, mut return_ports: Vec<PortId>) -> Self {
        return_ports.sort_unstable();
        Self { return_ports, ..self }
    }

    /// All switches; `switches()[id.index()]` is switch `id`.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// All switch ports, grouped by switch.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// All links between switches.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// All machines, in the order of their hosts.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The numbers of all machines.
    pub fn machine_ids(&self) -> impl DoubleEndedIterator<Item = MachineId> + ExactSizeIterator + Clone + use<> {
        (0..self.machines.len()).map(MachineId::new)
    }

    /// One machine.
    #[inline]
    pub fn machine(&self, id: MachineId) -> &Machine {
        &self.machines[id.index()]
    }

    /// Whether some machine has several ports.
    pub fn has_multi_port_machines(&self) -> bool {
        self.machines.len() < self.hosts.len()
    }

    /// Whether two hosts are ports of one machine.
    #[inline]
    pub fn are_of_one_machine(&self, a: HostId, b: HostId) -> bool {
        self.host(a).machine == self.host(b).machine
    }

    /// The edge port, if there is one that is not on standby.
    pub fn edge(&self) -> Option<HostId> {
        self.hosts.iter().position(|host| host.edge).map(HostId::new)
    }

    /// Edge ports on standby, in the order of their file.
    pub fn standby_edges(&self) -> &[StandbyEdge] {
        &self.standby_edges
    }

    /// Named groups of switches and links that fail together, in the order of their file.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The groups' indices, in order.
    pub fn group_ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + ExactSizeIterator + Clone + use<> {
        GroupId::all(self.groups.len())
    }

    /// One group.
    #[inline]
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    /// The group of this name. Cost: O(groups).
    pub fn find_group(&self, name: &str) -> Option<GroupId> {
        self.groups.iter().position(|group| group.name == name).map(GroupId::new)
    }

    /// The standby edge at a port, if there is one. Cost: O(standby edges).
    pub fn standby_edge_at(&self, port: PortId) -> Option<&StandbyEdge> {
        self.standby_edges.iter().find(|edge| edge.port == port)
    }

    /// Whether a cable may be plugged into a port: it has none, and neither the controller, nor a switch that is left out, nor a
    /// standby edge is there. Cost: O(standby edges).
    pub fn is_free(&self, port: PortId) -> bool {
        let is_managed =
            self.in_band.is_some_and(|in_band| in_band.controller == port) || self.return_ports.contains(&port);
        self.port(port).attachment == Attachment::Nothing && !is_managed && self.standby_edge_at(port).is_none()
    }

    /// Hosts at whose ports addresses are learned, ascending.
    pub fn learning_hosts(&self) -> impl Iterator<Item = HostId> + Clone + '_ {
        self.host_ids().filter(|host| self.host(*host).learned_max.is_some())
    }

    /// The same cabling with addresses that were learned, `learned[address]` being the port: they are among its further addresses, and
    /// take their share of what it may learn. An address that some host has, or whose port learns none, changes nothing.
    #[must_use]
    pub fn with_learned(&self, learned: &BTreeMap<Mac, HostId>) -> Self {
        let (mut changed, owners) = (self.clone(), self.all_owners());
        for (mac, host) in learned.iter().filter(|(mac, _)| !owners.contains_key(mac)) {
            let host = &mut changed.hosts[host.index()];
            if let Some(left) = &mut host.learned_max {
                *left = left.saturating_sub(1);
                host.further_macs.insert(host.further_macs.partition_point(|other| other < mac), *mac);
            }
        }
        (changed.macs_before, changed.room_before) = (macs_before(&changed.hosts), room_before(&changed.hosts));
        changed
    }

    /// A host of each station address, those of standby ports included. Cost: O(addresses · log addresses).
    pub fn all_owners(&self) -> BTreeMap<Mac, HostId> {
        let owned = |(id, host): (HostId, &Host)| host.all_macs().map(move |mac| (mac, id)).collect::<Vec<_>>();
        self.host_ids().zip(&self.hosts).flat_map(owned).collect()
    }

    /// Whether some machine has a failover bond.
    pub fn has_standby_ports(&self) -> bool {
        self.hosts.iter().any(|host| host.standby)
    }

    /// Whether a host is a port of a failover bond. Cost: O(ports of the machine).
    pub fn is_in_bond(&self, host: &Host) -> bool {
        self.machine(host.machine).hosts().any(|port| self.host(port).standby)
    }

    /// The port that the addresses of a host are behind: the host itself, unless it is a standby port. Cost: O(ports of the
    /// machine).
    pub fn active_port(&self, host: HostId) -> HostId {
        let mut ports = self.machine(self.host(host).machine).hosts();
        if self.host(host).standby { ports.find(|port| !self.host(*port).standby).unwrap_or(host) } else { host }
    }

    /// The standby ports of the bond that a host is the active port of; none where it is no port of a bond.
    pub fn standby_ports(&self, active: HostId) -> impl Iterator<Item = HostId> + '_ {
        let ports = self.machine(self.host(active).machine).hosts();
        ports.filter(move |port| !self.host(active).standby && self.host(*port).standby)
    }

    /// The same cabling after a failover bond has changed to another of its ports. A host that is no port of a bond, or its active
    /// port, changes nothing.
    #[must_use]
    pub fn with_active(&self, port: HostId) -> Self {
        let mut changed = self.clone();
        if self.host(port).standby {
            self.machine(self.host(port).machine)
                .hosts()
                .for_each(|own| changed.hosts[own.index()].standby = own != port);
            (changed.macs_before, changed.room_before) = (macs_before(&changed.hosts), room_before(&changed.hosts));
        }
        changed
    }

    /// The host of each station address. Cost: O(addresses · log addresses).
    pub fn hosts_by_mac(&self) -> BTreeMap<Mac, HostId> {
        let owned = |(id, host): (HostId, &Host)| host.macs().map(move |mac| (mac, id)).collect::<Vec<_>>();
        self.host_ids().zip(&self.hosts).flat_map(owned).collect()
    }

    /// The number of station addresses of the hosts `first` to `last`. Cost: O(1).
    #[inline]
    pub fn mac_count(&self, first: HostId, last: HostId) -> usize {
        self.macs_before[last.index() + 1] - self.macs_before[first.index()]
    }

    /// The number of addresses that the hosts `first` to `last` have and may learn: the most entries toward them in a VLAN. Cost:
    /// O(1).
    #[inline]
    pub fn mac_room(&self, first: HostId, last: HostId) -> usize {
        self.room_before[last.index() + 1] - self.room_before[first.index()]
    }

    /// How switches are managed over the data ports, if they are.
    pub fn in_band(&self) -> Option<InBand> {
        self.in_band
    }

    /// Ports whose cables lead to switches that the topology leaves out, ascending. They are up for the management VLAN alone, so that
    /// the switch can be configured once it has power. None unless switches are managed over the data ports.
    pub fn return_ports(&self) -> &[PortId] {
        &self.return_ports
    }

    /// One switch.
    #[inline]
    pub fn switch(&self, id: SwitchId) -> &Switch {
        &self.switches[id.index()]
    }

    /// One port.
    #[inline]
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.index()]
    }

    /// One link.
    #[inline]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// One host.
    #[inline]
    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.index()]
    }

    /// The switches' indices, in order.
    pub fn switch_ids(&self) -> impl DoubleEndedIterator<Item = SwitchId> + ExactSizeIterator + Clone + use<> {
        SwitchId::all(self.switches.len())
    }

    /// The hosts' indices, in order.
    pub fn host_ids(&self) -> impl DoubleEndedIterator<Item = HostId> + ExactSizeIterator + Clone + use<> {
        HostId::all(self.hosts.len())
    }

    /// The links' indices, in order.
    pub fn link_ids(&self) -> impl DoubleEndedIterator<Item = LinkId> + ExactSizeIterator + Clone + use<> {
        LinkId::all(self.links.len())
    }

    /// The channels' indices, in order.
    pub fn channel_ids(&self) -> impl DoubleEndedIterator<Item = ChannelId> + ExactSizeIterator + Clone + use<> {
        ChannelId::all(self.channel_count())
    }

    /// The number of channels: two a link.
    pub fn channel_count(&self) -> usize {
        2 * self.links.len()
    }

    /// The ports of a switch, in the order in which its file or generator names them.
    pub fn switch_ports(&self, switch: SwitchId) -> Range<usize> {
        let Switch { first_port, port_count, .. } = self.switches[switch.index()];
        first_port.index()..first_port.index() + port_count
    }

    /// The port indices of a switch.
    pub fn port_ids(
        &self,
        switch: SwitchId,
    ) -> impl DoubleEndedIterator<Item = PortId> + ExactSizeIterator + Clone + use<> {
        self.switch_ports(switch).map(PortId::new)
    }

    /// The members of a LAG, in port order; none of any other port. Cost: O(ports of the switch).
    pub fn members(&self, lag: PortId) -> impl DoubleEndedIterator<Item = PortId> + Clone + '_ {
        self.port_ids(self.port(lag).switch).filter(move |port| self.port(*port).attachment == Attachment::Member(lag))
    }

    /// The ports that a port's cables are in: its members where it is a LAG, else itself. Cost: O(ports of the switch) for a LAG.
    pub fn cabled_ports(&self, port: PortId) -> Vec<PortId> {
        if self.port(port).lag().is_some() { self.members(port).collect() } else { vec![port] }
    }

    /// The port that VLANs and entries name: the LAG that a port is a member of, else the port itself.
    #[inline]
    pub fn logical_port(&self, port: PortId) -> PortId {
        if let Attachment::Member(lag) = self.port(port).attachment { lag } else { port }
    }

    /// Every cable between switches, each of a LAG's included: its two ports, and its rate.
    pub fn switch_cables(&self) -> impl Iterator<Item = (PortId, PortId, u64)> + '_ {
        self.links.iter().flat_map(|link| {
            let [a, b] = [link.a, link.b].map(|port| self.cabled_ports(port));
            let rate_bps = link.rate_bps / a.len() as u64;
            a.into_iter().zip(b).map(move |(a, b)| (a, b, rate_bps))
        })
    }

    /// Every cable of a host, each of a LAG's included: the port, the host, which of its cables it is, and its rate.
    pub fn host_cables(&self) -> impl Iterator<Item = (PortId, HostId, usize, u64)> + '_ {
        self.host_ids().flat_map(|id| {
            let host = self.host(id);
            let ports = self.cabled_ports(host.port);
            let rate_bps = host.rate_bps / ports.len() as u64;
            ports.into_iter().enumerate().map(move |(number, port)| (port, id, number, rate_bps))
        })
    }

    /// Whether some port is a LAG.
    pub fn has_lags(&self) -> bool {
        self.ports.iter().any(|port| matches!(port.attachment, Attachment::Member(_)))
    }

    /// The rate of the fastest link between switches; 0 if there is none.
    pub fn rate_max_bps(&self) -> u64 {
        self.rate_max_bps
    }

    /// How many times longer a channel takes than one of the fastest link: 1 or more.
    pub fn slowness(&self, channel: ChannelId) -> f64 {
        self.rate_max_bps as f64 / self.link(channel.link()).rate_bps as f64
    }

    /// The channels that leave a switch, in port order.
    #[inline]
    pub fn channels_from(&self, switch: SwitchId) -> &[ChannelId] {
        &self.out[self.out_start[switch.index()]..self.out_start[switch.index() + 1]]
    }

    /// The channels that leave a switch, in port order, each with the switch that it leads to.
    #[inline]
    pub fn neighbours(&self, switch: SwitchId) -> impl Iterator<Item = (ChannelId, SwitchId)> + '_ {
        self.channels_from(switch).iter().map(|&channel| (channel, self.head(channel)))
    }

    /// The hosts of a switch, in port order.
    #[inline]
    pub fn hosts_of(&self, switch: SwitchId) -> &[HostId] {
        &self.rim[self.rim_start[switch.index()]..self.rim_start[switch.index() + 1]]
    }

    /// The switch that a host is plugged into.
    #[inline]
    pub fn switch_of(&self, host: HostId) -> SwitchId {
        self.switch_of[host.index()]
    }

    /// The port through which a channel leaves its first switch.
    #[inline]
    pub fn tail_port(&self, channel: ChannelId) -> PortId {
        let link = self.link(channel.link());
        if channel.is_forward() { link.a } else { link.b }
    }

    /// The port through which a channel enters its second switch.
    #[inline]
    pub fn head_port(&self, channel: ChannelId) -> PortId {
        self.tail_port(channel.reverse())
    }

    /// The switch that a channel leaves.
    #[inline]
    pub fn tail(&self, channel: ChannelId) -> SwitchId {
        self.port(self.tail_port(channel)).switch
    }

    /// The switch that a channel enters.
    #[inline]
    pub fn head(&self, channel: ChannelId) -> SwitchId {
        self.port(self.head_port(channel)).switch
    }

    /// The switch of this name. Cost: O(switches).
    pub fn find_switch(&self, name: &str) -> Option<SwitchId> {
        self.switches.iter().position(|switch| switch.name == name).map(SwitchId::new)
    }

    /// The host of this name. Cost: O(hosts).
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.hosts.iter().position(|host| host.name == name).map(HostId::new)
    }

    /// The port of a switch of this name. Cost: O(ports of the switch).
    pub fn find_port(&self, switch: SwitchId, name: &str) -> Option<PortId> {
        self.port_ids(switch).find(|port| self.port(*port).name == name)
    }

    /// A port as people write it: `sw1:g23`.
    pub fn port_label(&self, port: PortId) -> String {
        let port = self.port(port);
        format!("{}:{}", self.switch(port.switch).name, port.name)
    }

    /// A link as people write it: `sw1:g23 -- sw2:g23`.
    pub fn link_label(&self, link: LinkId) -> String {
        let Link { a, b, .. } = *self.link(link);
        format!("{} -- {}", self.port_label(a), self.port_label(b))
    }

    /// A channel as people write it: `sw1:g23 -> sw2:g23`.
    pub fn channel_label(&self, channel: ChannelId) -> String {
        format!("{} -> {}", self.port_label(self.tail_port(channel)), self.port_label(self.head_port(channel)))
    }
}

/// `macs_before[host]`: station addresses of the hosts before it.
fn macs_before(hosts: &[Host]) -> Vec<usize> {
    let mut before = vec![0];
    hosts.iter().for_each(|host| before.push(before[before.len() - 1] + host.macs().count()));
    before
}

/// `room_before[host]`: station addresses of the hosts before it, and as many as they may learn.
fn room_before(hosts: &[Host]) -> Vec<usize> {
    let mut before = vec![0];
    hosts
        .iter()
        .for_each(|host| before.push(before[before.len() - 1] + host.macs().count() + host.learned_max.unwrap_or(0)));
    before
}
