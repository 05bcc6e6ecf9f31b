//! Builds a [`Topology`] piece by piece and refuses what no cabling can be.
//!
//! Each `add_*` call reports at once what is wrong with its own arguments, so that a parser can name the line; what
//! only shows in the whole (a switch that nothing reaches) comes from [`TopologyBuilder::finish`].

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use crate::{
    ADDRESSES_MAX, Attachment, Fault, GROUP_MEMBERS_MAX, GROUPS_MAX, Group, GroupId, Guid, HOSTS_MAX, Host, HostId,
    InBand, LINKS_MAX, LagNumber, Link, LinkId, Mac, MachineId, Model, Models, Port, PortId, SWITCHES_MAX, StandbyEdge,
    SwitchId, SwitchIdentity, Topology,
    graph::breadth_first,
    name::{check_name, check_port_name, most_similar},
    topology::DraftSwitch,
};

/// A switch to be added.
#[derive(Clone, Debug, Default)]
pub struct SwitchSpec {
    /// A model name; none is the generic model.
    pub model: Option<String>,
    /// Its management address.
    pub mgmt: Option<IpAddr>,
}

/// A topology under construction.
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    models: Models,
    switches: Vec<DraftSwitch>,
    switch_by_name: BTreeMap<String, SwitchId>,
    switch_by_mgmt: BTreeMap<IpAddr, SwitchId>,
    /// Ports in order of mention.
    ports: Vec<Port>,
    /// By switch, then by name: position in `ports`.
    port_by_name: Vec<BTreeMap<String, PortId>>,
    links: Vec<Link>,
    hosts: Vec<Host>,
    standby_edges: Vec<StandbyEdge>,
    /// `standby_edges[standby_edge_at[port]]`.
    standby_edge_at: BTreeMap<PortId, usize>,
    standby_edge_by_name: BTreeMap<String, usize>,
    /// Names of machines, in the order of their hosts.
    machines: Vec<String>,
    machine_by_name: BTreeMap<String, MachineId>,
    host_by_name: BTreeMap<String, HostId>,
    host_by_mac: BTreeMap<Mac, HostId>,
    host_by_address: BTreeMap<IpAddr, HostId>,
    owner_by_guid: BTreeMap<Guid, String>,
    groups: Vec<Group>,
    group_by_name: BTreeMap<String, GroupId>,
    in_band: Option<InBand>,
    return_ports: Vec<PortId>,
}

impl TopologyBuilder {
    /// An empty topology, whose switches are of built-in models.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty topology, whose switches are of these models, or generic.
    pub fn with_models(models: Models) -> Self {
        Self { models, ..Self::default() }
    }

    /// A topology, to be added to. Ports keep their numbers until [`finish`](Self::finish).
    pub fn of(topology: &Topology) -> Self {
        let mut builder = Self {
            ports: topology.ports().to_vec(),
            links: topology.links().to_vec(),
            hosts: topology.hosts().to_vec(),
            standby_edges: topology.standby_edges().to_vec(),
            machines: topology.machines().iter().map(|machine| machine.name.clone()).collect(),
            groups: topology.groups().to_vec(),
            in_band: topology.in_band(),
            return_ports: topology.return_ports().to_vec(),
            ..Self::default()
        };
        let groups = topology.group_ids().map(|id| (topology.group(id).name.clone(), id));
        builder.group_by_name = groups.collect();
        for (id, switch) in topology.switch_ids().zip(topology.switches()) {
            let crate::Switch { name, model, mgmt, guid, identity, .. } = switch.clone();
            builder.owner_by_guid.extend(guid.map(|guid| (guid, format!("switch {name}"))));
            builder.switch_by_name.insert(name.clone(), id);
            builder.switch_by_mgmt.extend(mgmt.map(|address| (address.to_canonical(), id)));
            builder.switches.push(DraftSwitch { name, model, mgmt, guid, identity });
            let ports = topology.port_ids(id).map(|port| (topology.port(port).name.clone(), port));
            builder.port_by_name.push(ports.collect());
        }
        for (id, host) in topology.host_ids().zip(topology.hosts()) {
            builder.host_by_name.insert(host.name.clone(), id);
            builder.host_by_mac.extend(host.macs().map(|mac| (mac, id)));
            builder.host_by_address.extend(host.address.map(|address| (address, id)));
            builder.owner_by_guid.extend(host.guid.map(|guid| (guid, format!("host {}", host.name))));
        }
        for (at, edge) in topology.standby_edges().iter().enumerate() {
            builder.standby_edge_at.insert(edge.port, at);
            builder.standby_edge_by_name.insert(edge.name.clone(), at);
        }
        let names = builder.machines.iter().cloned();
        builder.machine_by_name = names.zip((0..).map(MachineId::new)).collect();
        builder
    }

    /// Adds a switch. If only its model is unknown, or its management address taken, the switch is added all the same, as
    /// a generic one or without the address, so that the rest of a file can be judged.
    ///
    /// # Errors
    /// [`Fault`] if the name is unusable or taken, the model unknown, the management address taken, or the bound on
    /// switches reached.
    pub fn add_switch(&mut self, name: &str, spec: SwitchSpec) -> Result<SwitchId, Fault> {
        check_name(name)?;
        if self.switch_by_name.contains_key(name) {
            return Err(Fault::DuplicateSwitch(name.to_owned()));
        }
        if self.group_by_name.contains_key(name) {
            return Err(Fault::GroupNamedAsSwitch(name.to_owned()));
        }
        if self.switches.len() == SWITCHES_MAX {
            return Err(Fault::TooMany { what: "switches", limit: SWITCHES_MAX });
        }
        let model = spec.model.as_deref().map_or_else(|| Some(Model::generic()), |name| self.models.by_name(name));
        let id = SwitchId::new(self.switches.len());
        let known = model.clone().unwrap_or_else(Model::generic);
        let identity = SwitchIdentity::default();
        self.switches.push(DraftSwitch { name: name.to_owned(), model: known, mgmt: None, guid: None, identity });
        self.switch_by_name.insert(name.to_owned(), id);
        self.port_by_name.push(BTreeMap::new());
        match (model, spec.model) {
            (None, Some(name)) => {
                let known: Vec<&str> = self.models.iter().map(|model| model.name.as_str()).collect();
                let similar = most_similar(&name, known.iter().copied());
                Err(Fault::UnknownModel { similar, known: known.join(", "), name })
            }
            _ => spec.mgmt.map_or(Ok(()), |address| self.set_switch_mgmt(id, address)).map(|()| id),
        }
    }

    /// Gives a switch its management address.
    ///
    /// # Errors
    /// [`Fault::DuplicateMgmt`] if another switch has it; an IPv4 address in IPv6's notation is the same address.
    pub fn set_switch_mgmt(&mut self, switch: SwitchId, address: IpAddr) -> Result<(), Fault> {
        let owner = *self.switch_by_mgmt.entry(address.to_canonical()).or_insert(switch);
        if owner != switch {
            return Err(Fault::DuplicateMgmt { address, switch: self.switches[owner.index()].name.clone() });
        }
        self.switches[switch.index()].mgmt = Some(address);
        Ok(())
    }

    /// Says who a switch is.
    ///
    /// # Errors
    /// [`Fault::BadIdentity`] if an item is no text that files can hold.
    pub fn set_switch_identity(&mut self, switch: SwitchId, identity: SwitchIdentity) -> Result<(), Fault> {
        self.switches[switch.index()].identity = identity.checked()?;
        Ok(())
    }

    /// Changes what switches can do, such as to ask what another make would be worth.
    pub fn change_models(&mut self, mut change: impl FnMut(&mut Model)) {
        self.switches.iter_mut().for_each(|switch| change(Arc::make_mut(&mut switch.model)));
    }

    /// The switch of this name.
    ///
    /// # Errors
    /// [`Fault::UnknownSwitch`], with the known name nearest to it.
    pub fn switch(&self, name: &str) -> Result<SwitchId, Fault> {
        self.switch_by_name.get(name).copied().ok_or_else(|| Fault::UnknownSwitch {
            name: name.to_owned(),
            similar: most_similar(name, self.switch_by_name.keys().map(String::as_str)),
        })
    }

    /// Mentions a port without plugging anything in. A port that is called as LAGs are, such as `lag1`, is one, whose members are added
    /// by [`Self::add_to_lag`].
    ///
    /// # Errors
    /// [`Fault`] if the name is unusable or the model has no such port.
    pub fn add_port(&mut self, switch: SwitchId, name: &str) -> Result<PortId, Fault> {
        if let Some(port) = self.port_by_name[switch.index()].get(name) {
            return Ok(*port);
        }
        check_port_name(name)?;
        let DraftSwitch { name: switch_name, model, .. } = &self.switches[switch.index()];
        if !model.ports.contains(name) && LagNumber::of_port(name).is_none() {
            let known = match &model.ports {
                crate::PortNames::Any => String::new(),
                crate::PortNames::Listed(names) => abridge(names),
            };
            return Err(Fault::UnknownPort {
                switch: switch_name.clone(),
                model: model.name.clone(),
                port: name.to_owned(),
                known,
            });
        }
        let id = PortId::new(self.ports.len());
        self.ports.push(Port { switch, name: name.to_owned(), attachment: Attachment::Nothing });
        self.port_by_name[switch.index()].insert(name.to_owned(), id);
        Ok(id)
    }

    /// The port of this name, if it was mentioned.
    pub(crate) fn find_port(&self, switch: SwitchId, name: &str) -> Option<PortId> {
        self.port_by_name[switch.index()].get(name).copied()
    }

    /// The link at a port.
    pub(crate) fn link_at(&self, port: PortId) -> Option<LinkId> {
        match self.ports[port.index()].attachment {
            Attachment::Link(link) => Some(link),
            Attachment::Nothing | Attachment::Host(_) | Attachment::Member(_) => None,
        }
    }

    /// A link as people write it.
    pub(crate) fn link_label(&self, link: LinkId) -> String {
        let Link { a, b, .. } = self.links[link.index()];
        format!("{} -- {}", self.label(a), self.label(b))
    }

    /// A new LAG: of this number if the switch has none of it yet, else of the lowest that it has not.
    ///
    /// # Errors
    /// [`Fault::TooMany`] if it has every number.
    pub fn add_lag(&mut self, switch: SwitchId, wanted: Option<LagNumber>) -> Result<PortId, Fault> {
        let known = &self.port_by_name[switch.index()];
        let free = wanted
            .into_iter()
            .chain(LagNumber::all())
            .map(|number| number.to_string())
            .find(|name| !known.contains_key(name));
        let name = free.ok_or(Fault::TooMany { what: "LAGs of one switch", limit: LagNumber::all().count() })?;
        self.add_port(switch, &name)
    }

    /// Makes a port a member of a LAG of the same switch.
    ///
    /// # Errors
    /// [`Fault`] if the port has a cable, is on another switch, or is a LAG.
    pub fn add_to_lag(&mut self, lag: PortId, member: PortId) -> Result<(), Fault> {
        let [of, port] = [lag, member].map(|port| &self.ports[port.index()]);
        let is_lag = |port: &Port| LagNumber::of_port(&port.name).is_some();
        if of.switch != port.switch || !is_lag(of) || is_lag(port) {
            return Err(Fault::NotOfLag { port: self.label(member), lag: self.label(lag) });
        }
        self.check_free(member)?;
        self.ports[member.index()].attachment = Attachment::Member(lag);
        Ok(())
    }

    /// How many cables a port has room for: one, or one for each member of a LAG. Cost: O(ports).
    pub fn cables_at(&self, port: PortId) -> usize {
        match LagNumber::of_port(&self.ports[port.index()].name) {
            None => 1,
            Some(_) => self.ports.iter().filter(|other| other.attachment == Attachment::Member(port)).count(),
        }
    }

    /// The LAG that a port is a member of, else the port itself.
    pub fn logical_port(&self, port: PortId) -> PortId {
        if let Attachment::Member(lag) = self.ports[port.index()].attachment { lag } else { port }
    }

    /// The LAG that has just these members, if there is one.
    pub fn lag_of(&self, members: &BTreeSet<PortId>) -> Option<PortId> {
        let Attachment::Member(lag) = self.ports[members.first()?.index()].attachment else { return None };
        let is_of = |port: &PortId| self.ports[port.index()].attachment == Attachment::Member(lag);
        (members.iter().all(is_of) && self.cables_at(lag) == members.len()).then_some(lag)
    }

    /// Plugs a cable into two ports, or a cable into each member of two LAGs: the rate is that of all of them together.
    ///
    /// # Errors
    /// [`Fault`] if either port has a cable, both are on one switch, or the bound on links is reached.
    pub fn add_link(&mut self, a: PortId, b: PortId, rate_bps: u64) -> Result<LinkId, Fault> {
        let switch = self.ports[a.index()].switch;
        if switch == self.ports[b.index()].switch {
            return Err(Fault::SelfLoop { switch: self.switches[switch.index()].name.clone() });
        }
        self.check_free(a)?;
        self.check_free(b)?;
        if self.links.len() == LINKS_MAX {
            return Err(Fault::TooMany { what: "links", limit: LINKS_MAX });
        }
        let id = LinkId::new(self.links.len());
        self.links.push(Link { a, b, rate_bps });
        self.ports[a.index()].attachment = Attachment::Link(id);
        self.ports[b.index()].attachment = Attachment::Link(id);
        Ok(id)
    }

    /// Plugs a host into a port: a machine of one port, unless [`Self::join_machine`] says otherwise.
    ///
    /// # Errors
    /// [`Fault`] if the name is unusable or taken, the address is taken or no station's, the port has a cable, or the
    /// bound on hosts is reached.
    pub fn add_host(
        &mut self,
        name: &str,
        mac: Mac,
        port: PortId,
        rate_bps: u64,
        address: Option<IpAddr>,
    ) -> Result<HostId, Fault> {
        self.check_host_name(name)?;
        self.check_mac(mac)?;
        let id = self.plug_in(name, mac, port, rate_bps, address)?;
        self.host_by_mac.insert(mac, id);
        Ok(id)
    }

    /// Plugs an uplink to a network outside into a port: any address may be behind it. Those that are known are added by
    /// [`Self::add_mac`].
    ///
    /// # Errors
    /// [`Fault`] if there is an edge port already that is not on standby, and as [`Self::add_host`].
    pub fn add_edge(
        &mut self,
        name: &str,
        port: PortId,
        rate_bps: u64,
        address: Option<IpAddr>,
    ) -> Result<HostId, Fault> {
        if let Some(other) = self.hosts.iter().find(|host| host.edge) {
            return Err(Fault::SecondEdge { host: name.to_owned(), other: other.name.clone() });
        }
        self.check_host_name(name)?;
        let id = self.plug_in(name, Mac::new([0; 6]), port, rate_bps, address)?;
        self.hosts[id.index()].edge = true;
        Ok(id)
    }

    /// Plugs a second uplink to the network outside into a port that is shut until a plan has it as its edge port, and says which
    /// standby edge it is. Addresses that are known to be behind it are added by [`Self::add_standby_mac`].
    ///
    /// # Errors
    /// [`Fault`] if the name is unusable or taken, the port has a cable or is a LAG, or the bound on hosts is reached.
    pub fn add_standby_edge(&mut self, name: &str, port: PortId, rate_bps: u64) -> Result<usize, Fault> {
        self.check_host_name(name)?;
        self.check_free(port)?;
        if self.ports[port.index()].lag().is_some() {
            return Err(Fault::StandbyAtLag { edge: name.to_owned(), lag: self.label(port) });
        }
        if self.hosts.len() + self.standby_edges.len() >= HOSTS_MAX {
            return Err(Fault::TooMany { what: "hosts", limit: HOSTS_MAX });
        }
        let at = self.standby_edges.len();
        self.standby_edges.push(StandbyEdge { name: name.to_owned(), port, rate_bps, macs: Vec::new() });
        self.standby_edge_at.insert(port, at);
        self.standby_edge_by_name.insert(name.to_owned(), at);
        Ok(at)
    }

    /// Puts a station address behind a standby edge. The edge port and other standby edges may have it as well; that no other host
    /// has it is checked by [`Self::finish`].
    ///
    /// # Errors
    /// [`Fault`] if the address is behind this standby edge already or no station's, or the bound on addresses of one port is reached.
    pub fn add_standby_mac(&mut self, edge: usize, mac: Mac) -> Result<(), Fault> {
        check_station(mac)?;
        let StandbyEdge { name, macs, .. } = &mut self.standby_edges[edge];
        match macs.binary_search(&mac) {
            Ok(_) => Err(Fault::DuplicateMac { mac, host: name.clone() }),
            Err(_) if macs.len() + 1 >= ADDRESSES_MAX => {
                Err(Fault::TooMany { what: "addresses behind one port", limit: ADDRESSES_MAX })
            }
            Err(at) => {
                macs.insert(at, mac);
                Ok(())
            }
        }
    }

    /// Adds the standby edges of another topology: `port` says where each is plugged in, or that it is left out.
    ///
    /// # Errors
    /// As [`Self::add_standby_edge`].
    pub fn add_standby_edges_of(
        &mut self,
        topology: &Topology,
        mut port: impl FnMut(&StandbyEdge) -> Option<PortId>,
    ) -> Result<(), Fault> {
        for edge in topology.standby_edges() {
            let Some(port) = port(edge) else { continue };
            let added = self.add_standby_edge(&edge.name, port, edge.rate_bps)?;
            edge.macs.iter().try_for_each(|mac| self.add_standby_mac(added, *mac))?;
        }
        Ok(())
    }

    /// Checks that no host has an address of a standby edge, but the edge port.
    fn check_standby_edges(&self) -> Result<(), Fault> {
        for mac in self.standby_edges.iter().flat_map(|edge| &edge.macs) {
            let owner = self.host_by_mac.get(mac).map(|host| &self.hosts[host.index()]);
            if let Some(host) = owner.filter(|host| !host.edge) {
                return Err(Fault::DuplicateMac { mac: *mac, host: host.name.clone() });
            }
        }
        Ok(())
    }

    fn has_host(&self, name: &str) -> bool {
        self.host_by_name.contains_key(name) || self.standby_edge_by_name.contains_key(name)
    }

    fn check_host_name(&self, name: &str) -> Result<(), Fault> {
        check_name(name)?;
        if self.has_host(name) {
            return Err(Fault::DuplicateHost(name.to_owned()));
        }
        if self.machine_by_name.contains_key(name) {
            return Err(Fault::DuplicateMachine(name.to_owned()));
        }
        Ok(())
    }

    /// Adds a machine of one port, whose name and Ethernet address have been checked.
    fn plug_in(
        &mut self,
        name: &str,
        mac: Mac,
        port: PortId,
        rate_bps: u64,
        address: Option<IpAddr>,
    ) -> Result<HostId, Fault> {
        if let Some((address, other)) = address.and_then(|address| Some((address, self.host_by_address.get(&address)?)))
        {
            return Err(Fault::DuplicateAddress { address, host: self.hosts[other.index()].name.clone() });
        }
        let machine = MachineId::new(self.machines.len());
        let id = self.plug_in_port(Host {
            name: name.to_owned(),
            machine,
            rail: None,
            weight: 1,
            mac,
            further_macs: Vec::new(),
            learned_max: None,
            standby: false,
            edge: false,
            port,
            rate_bps,
            address,
            guid: None,
        })?;
        self.machines.push(name.to_owned());
        self.machine_by_name.insert(name.to_owned(), machine);
        if let Some(address) = address {
            self.host_by_address.insert(address, id);
        }
        Ok(id)
    }

    /// Adds a host whose name and addresses have been checked.
    fn plug_in_port(&mut self, host: Host) -> Result<HostId, Fault> {
        self.check_free(host.port)?;
        if self.hosts.len() + self.standby_edges.len() >= HOSTS_MAX {
            return Err(Fault::TooMany { what: "hosts", limit: HOSTS_MAX });
        }
        let id = HostId::new(self.hosts.len());
        self.host_by_name.insert(host.name.clone(), id);
        self.ports[host.port.index()].attachment = Attachment::Host(id);
        self.hosts.push(host);
        Ok(id)
    }

    /// The hosts of a machine whose ports are among those that were added last, latest first. Cost: O(ports of the machine).
    fn latest_of(&self, machine: MachineId) -> impl Iterator<Item = &Host> {
        let others = move |host: &&Host| host.machine.index() > machine.index();
        self.hosts.iter().rev().skip_while(others).take_while(move |host| host.machine == machine)
    }

    /// Makes the host that was added last, whose name is the machine's, a slash and the port's, a port of a machine, beside
    /// those that were added just before it.
    ///
    /// # Errors
    /// [`Fault`] if the host's name is another, the machine's name is unusable or taken, or hosts of other machines stand
    /// between.
    ///
    /// # Panics
    /// If no host was added.
    pub fn join_machine(&mut self, name: &str) -> Result<(), Fault> {
        check_name(name)?;
        let host = self.hosts.last().expect("a host was added");
        let own = self.machines.last().expect("every host has a machine");
        if own == name {
            return Ok(());
        }
        if !host.name.strip_prefix(name).is_some_and(|nic| nic.starts_with('/')) {
            return Err(Fault::NotOfMachine { host: host.name.clone(), machine: name.to_owned() });
        }
        match self.machine_by_name.get(name).copied() {
            Some(known) if known.index() + 1 == host.machine.index() => {
                if self.latest_of(known).any(|host| host.standby) {
                    return Err(Fault::MixedBond(name.to_owned()));
                }
                let host = self.hosts.last_mut().expect("a host was added");
                self.machine_by_name.remove(own);
                host.machine = known;
                self.machines.pop();
            }
            Some(_) => return Err(Fault::DuplicateMachine(name.to_owned())),
            None if self.has_host(name) => return Err(Fault::DuplicateHost(name.to_owned())),
            None => {
                let id = host.machine;
                self.machine_by_name.remove(own);
                self.machine_by_name.insert(name.to_owned(), id);
                self.machines[id.index()] = name.to_owned();
            }
        }
        Ok(())
    }

    /// The machine and the address of the host that was added last.
    pub(crate) fn last_port(&self) -> Option<(&str, Mac)> {
        let host = self.hosts.last()?;
        Some((&self.machines[host.machine.index()], host.mac))
    }

    /// Adds a port to the machine of the host that was added last: both are ports of a failover bond, and the new one is on
    /// standby. Its addresses are those of the others.
    ///
    /// # Errors
    /// [`Fault`] if the name is not the machine's, a slash and the port's, or taken, the machine has ports of other addresses, the
    /// port has a cable, or the bound on hosts is reached.
    ///
    /// # Panics
    /// If no host was added.
    pub fn add_standby(&mut self, name: &str, port: PortId, rate_bps: u64) -> Result<HostId, Fault> {
        check_name(name)?;
        if self.has_host(name) {
            return Err(Fault::DuplicateHost(name.to_owned()));
        }
        let beside = self.hosts.last().expect("a host was added");
        let machine = &self.machines[beside.machine.index()];
        if !name.strip_prefix(machine.as_str()).is_some_and(|nic| nic.starts_with('/')) {
            return Err(Fault::NotOfMachine { host: name.to_owned(), machine: machine.clone() });
        }
        if self.latest_of(beside.machine).any(|host| host.mac != beside.mac) {
            return Err(Fault::MixedBond(machine.clone()));
        }
        if beside.learned_max.is_some() {
            return Err(Fault::LearnsElsewhere { host: beside.name.clone() });
        }
        let (rail, guid, name) = (None, None, name.to_owned());
        self.plug_in_port(Host { name, port, rate_bps, standby: true, rail, guid, ..beside.clone() })
    }

    /// Makes a port of a failover bond the active one, and the others of its machine standby ports.
    pub fn set_active(&mut self, port: HostId) {
        let machine = self.hosts[port.index()].machine;
        let mut first = port.index();
        while first > 0 && self.hosts[first - 1].machine == machine {
            first -= 1;
        }
        let own = self.hosts.iter_mut().enumerate().skip(first).take_while(|(_, host)| host.machine == machine);
        own.for_each(|(index, host)| host.standby = index != port.index());
    }

    /// Says which rail a host is on.
    pub fn set_rail(&mut self, host: HostId, rail: u8) {
        self.hosts[host.index()].rail = Some(rail);
    }

    /// Says how much a host counts in all-to-all traffic.
    pub fn set_weight(&mut self, host: HostId, weight: u8) {
        self.hosts[host.index()].weight = weight;
    }

    /// Puts a further station address behind a host's port.
    ///
    /// # Errors
    /// [`Fault`] if the address is taken or no station's, or the bound on addresses of one port is reached.
    pub fn add_mac(&mut self, host: HostId, mac: Mac) -> Result<(), Fault> {
        self.check_mac(mac)?;
        let further = &mut self.hosts[host.index()].further_macs;
        if further.len() + 1 >= ADDRESSES_MAX {
            return Err(Fault::TooMany { what: "addresses behind one port", limit: ADDRESSES_MAX });
        }
        further.insert(further.partition_point(|other| *other < mac), mac);
        self.host_by_mac.insert(mac, host);
        Ok(())
    }

    /// Has further addresses be learned at a host's port, up to `most` of them.
    ///
    /// # Errors
    /// [`Fault`] if the port is an edge port or one of a failover bond, or it would have more addresses than a port may have.
    pub fn set_learned(&mut self, host: HostId, most: usize) -> Result<(), Fault> {
        let own = &self.hosts[host.index()];
        if own.edge || self.latest_of(own.machine).filter(|other| other.mac == own.mac).count() > 1 {
            return Err(Fault::LearnsElsewhere { host: own.name.clone() });
        }
        if most == 0 || most + own.further_macs.len() >= ADDRESSES_MAX {
            return Err(Fault::TooMany { what: "addresses behind one port", limit: ADDRESSES_MAX });
        }
        self.hosts[host.index()].learned_max = Some(most);
        Ok(())
    }

    /// Adds the hosts of another topology, in its order: `port` says where each is plugged in, or that it is left out.
    ///
    /// # Errors
    /// As [`Self::add_host`].
    pub fn add_hosts_of(
        &mut self,
        topology: &Topology,
        mut port: impl FnMut(HostId, &Host) -> Option<PortId>,
    ) -> Result<(), Fault> {
        for (id, host) in topology.host_ids().zip(topology.hosts()) {
            let Some(port) = port(id, host) else { continue };
            let machine = &topology.machine(host.machine).name;
            // The first port of a bond that is left stands for it.
            let joins_bond = topology.is_in_bond(host) && self.machines.last() == Some(machine);
            let added = if joins_bond {
                self.add_standby(&host.name, port, host.rate_bps)?
            } else {
                let added = if host.edge {
                    self.add_edge(&host.name, port, host.rate_bps, host.address)?
                } else {
                    self.add_host(&host.name, host.mac, port, host.rate_bps, host.address)?
                };
                self.join_machine(machine)?;
                host.further_macs.iter().try_for_each(|mac| self.add_mac(added, *mac))?;
                added
            };
            if joins_bond && !host.standby {
                self.set_active(added);
            }
            (self.hosts[added.index()].rail, self.hosts[added.index()].weight) = (host.rail, host.weight);
            match host.learned_max {
                // All that it may learn is among its further addresses.
                Some(0) => self.hosts[added.index()].learned_max = Some(0),
                most => most.map_or(Ok(()), |most| self.set_learned(added, most))?,
            }
            host.guid.map_or(Ok(()), |guid| self.set_host_guid(added, guid))?;
        }
        Ok(())
    }

    /// Names switches and links that fail together.
    ///
    /// # Errors
    /// [`Fault`] if the name is unusable, taken, or that of a switch, there are no members, one is there twice, or a bound on groups or
    /// their members is reached.
    pub fn add_group(&mut self, name: &str, switches: &[SwitchId], links: &[LinkId]) -> Result<GroupId, Fault> {
        check_name(name)?;
        if self.group_by_name.contains_key(name) {
            return Err(Fault::DuplicateGroup(name.to_owned()));
        }
        if self.switch_by_name.contains_key(name) {
            return Err(Fault::GroupNamedAsSwitch(name.to_owned()));
        }
        let (mut switches, mut links) = (switches.to_vec(), links.to_vec());
        switches.sort_unstable();
        links.sort_unstable();
        let twice = |member: String| Fault::DuplicateMember { group: name.to_owned(), member };
        if let Some(pair) = switches.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(twice(self.switches[pair[0].index()].name.clone()));
        }
        if let Some(pair) = links.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(twice(self.link_label(pair[0])));
        }
        if switches.is_empty() && links.is_empty() {
            return Err(Fault::EmptyGroup(name.to_owned()));
        }
        if self.groups.len() == GROUPS_MAX {
            return Err(Fault::TooMany { what: "groups", limit: GROUPS_MAX });
        }
        let members: usize = self.groups.iter().map(|group| group.switches.len() + group.links.len()).sum();
        if members + switches.len() + links.len() > GROUP_MEMBERS_MAX {
            return Err(Fault::TooMany { what: "members of groups", limit: GROUP_MEMBERS_MAX });
        }
        let id = GroupId::new(self.groups.len());
        self.groups.push(Group { name: name.to_owned(), switches, links });
        self.group_by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Adds the groups of another topology, with the members that are here: `switch` and `link` say which they are. A group without
    /// members is left out.
    ///
    /// # Errors
    /// As [`Self::add_group`].
    pub fn add_groups_of(
        &mut self,
        topology: &Topology,
        switch: impl Fn(SwitchId) -> Option<SwitchId>,
        link: impl Fn(LinkId) -> Option<LinkId>,
    ) -> Result<(), Fault> {
        for Group { name, switches, links } in topology.groups() {
            let switches: Vec<SwitchId> = switches.iter().filter_map(|id| switch(*id)).collect();
            let links: Vec<LinkId> = links.iter().filter_map(|id| link(*id)).collect();
            if !switches.is_empty() || !links.is_empty() {
                self.add_group(name, &switches, &links)?;
            }
        }
        Ok(())
    }

    fn check_mac(&self, mac: Mac) -> Result<(), Fault> {
        check_station(mac)?;
        match self.host_by_mac.get(&mac) {
            Some(other) => Err(Fault::DuplicateMac { mac, host: self.hosts[other.index()].name.clone() }),
            None => Ok(()),
        }
    }

    /// Pulls cables out: their ports stay, with nothing plugged in. The links behind them move up. Groups lose them as members.
    pub fn remove_links(&mut self, links: &BTreeSet<LinkId>) {
        for group in &mut self.groups {
            group.links.retain(|link| !links.contains(link));
            let moved_up = |link: &LinkId| LinkId::new(link.index() - links.range(..link).count());
            group.links = group.links.iter().map(moved_up).collect();
        }
        let all = std::mem::take(&mut self.links);
        for (link, old) in all.into_iter().zip(LinkId::all(usize::MAX)) {
            let attachment = match links.contains(&old) {
                true => Attachment::Nothing,
                false => Attachment::Link(LinkId::new(self.links.len())),
            };
            self.ports[link.a.index()].attachment = attachment;
            self.ports[link.b.index()].attachment = attachment;
            if attachment != Attachment::Nothing {
                self.links.push(link);
            }
        }
    }

    /// Gives a switch its InfiniBand GUID.
    ///
    /// # Errors
    /// [`Fault::DuplicateGuid`] if something else has it.
    pub fn set_switch_guid(&mut self, switch: SwitchId, guid: Guid) -> Result<(), Fault> {
        let owner = format!("switch {}", self.switches[switch.index()].name);
        self.claim_guid(guid, owner)?;
        self.switches[switch.index()].guid = Some(guid);
        Ok(())
    }

    /// Gives a host the InfiniBand GUID of its port.
    ///
    /// # Errors
    /// [`Fault::DuplicateGuid`] if something else has it.
    pub fn set_host_guid(&mut self, host: HostId, guid: Guid) -> Result<(), Fault> {
        let owner = format!("host {}", self.hosts[host.index()].name);
        self.claim_guid(guid, owner)?;
        self.hosts[host.index()].guid = Some(guid);
        Ok(())
    }

    /// Lets switches be managed over the data ports, by a controller that is plugged into a port of its own.
    ///
    /// # Errors
    /// [`Fault::PortUsedTwice`] if the port has a cable already.
    pub fn set_in_band(&mut self, in_band: InBand) -> Result<(), Fault> {
        self.check_free(in_band.controller)?;
        self.in_band = Some(in_band);
        Ok(())
    }

    /// Keeps a port up for the management VLAN alone, toward a switch that the topology leaves out. Without [`Self::set_in_band`]
    /// the port stays down.
    ///
    /// # Errors
    /// [`Fault::PortUsedTwice`] if the port is in use.
    pub fn add_return_port(&mut self, port: PortId) -> Result<(), Fault> {
        self.check_free(port)?;
        self.return_ports.push(port);
        Ok(())
    }

    /// Completes the topology.
    ///
    /// Ports are renumbered so that each switch's are consecutive: in front-panel order where the model lists its
    /// ports (uncabled ones included), in order of mention elsewhere.
    ///
    /// # Errors
    /// [`Fault::Empty`], what is wrong with LAGs, an address of a standby edge that a host has, or a [`Fault::Unreachable`] for every switch that the first one cannot reach.
    pub fn finish(self) -> Result<Topology, Vec<Fault>> {
        match self.finish_in_parts() {
            Ok((topology, unreachable)) if unreachable.is_empty() => Ok(topology),
            Ok((_, unreachable)) => Err(unreachable),
            Err(fault) => Err(vec![fault]),
        }
    }

    /// Completes a topology that may fall into parts, as what was found of a fabric before all its cables were: it can be written
    /// down, and nothing else. Beside it a [`Fault::Unreachable`] for every switch that the first one cannot reach.
    ///
    /// # Errors
    /// [`Fault::Empty`], what is wrong with a LAG, or an address of a standby edge that a host has.
    pub fn finish_in_parts(mut self) -> Result<(Topology, Vec<Fault>), Fault> {
        if self.switches.is_empty() {
            return Err(Fault::Empty);
        }
        self.check_lags()?;
        self.check_standby_edges()?;
        let unreachable = self.unreachable();
        for switch in SwitchId::all(self.switches.len()) {
            if let crate::PortNames::Listed(names) = self.switches[switch.index()].model.ports.clone() {
                for name in names {
                    self.add_port(switch, &name).expect("a listed port name is usable");
                }
            }
        }
        let rank = |port: &Port| match &self.switches[port.switch.index()].model.ports {
            crate::PortNames::Any => 0,
            crate::PortNames::Listed(names) => names.iter().position(|name| *name == port.name).unwrap_or(names.len()),
        };
        let mut order: Vec<usize> = (0..self.ports.len()).collect();
        order.sort_by_key(|&port| (self.ports[port].switch, rank(&self.ports[port]), port));
        let mut renumbered = vec![PortId::new(0); order.len()];
        for (new, &old) in order.iter().enumerate() {
            renumbered[old] = PortId::new(new);
        }
        let renumber = |port: &Port| match port.attachment {
            Attachment::Member(lag) => Port { attachment: Attachment::Member(renumbered[lag.index()]), ..port.clone() },
            _ => port.clone(),
        };
        let ports = order.iter().map(|&old| renumber(&self.ports[old])).collect();
        let links = (self.links.iter())
            .map(|link| Link { a: renumbered[link.a.index()], b: renumbered[link.b.index()], ..*link })
            .collect();
        let mut hosts: Vec<Host> =
            self.hosts.into_iter().map(|host| Host { port: renumbered[host.port.index()], ..host }).collect();
        let bonds = hosts.chunk_by_mut(|one, other| one.machine == other.machine && one.mac == other.mac);
        for bond in bonds.filter(|ports| ports.len() > 1) {
            let mut further: Vec<Mac> = bond.iter().flat_map(|host| host.further_macs.iter().copied()).collect();
            further.sort_unstable();
            further.dedup();
            bond.iter_mut().for_each(|host| host.further_macs.clone_from(&further));
        }
        let in_band = self.in_band.map(|known| InBand { controller: renumbered[known.controller.index()], ..known });
        let return_ports = match in_band {
            Some(_) => self.return_ports.iter().map(|port| renumbered[port.index()]).collect(),
            None => Vec::new(),
        };
        let mut standby_edges = self.standby_edges;
        standby_edges.iter_mut().for_each(|edge| edge.port = renumbered[edge.port.index()]);
        // Of some all members may have been unplugged.
        self.groups.retain(|group| !group.is_empty());
        let topology = Topology::assemble(self.switches, ports, links, hosts, self.machines, standby_edges, in_band);
        Ok((topology.with_groups(self.groups).with_return_ports(return_ports), unreachable))
    }

    pub(crate) fn check_free(&self, port: PortId) -> Result<(), Fault> {
        let by = match self.ports[port.index()].attachment {
            Attachment::Nothing if self.in_band.is_some_and(|in_band| in_band.controller == port) => {
                "the controller".to_owned()
            }
            Attachment::Nothing if self.return_ports.contains(&port) => "a switch that is left out".to_owned(),
            Attachment::Nothing => match self.standby_edge_at.get(&port) {
                Some(edge) => format!("the standby edge {}", self.standby_edges[*edge].name),
                None => return Ok(()),
            },
            Attachment::Host(host) => format!("host {}", self.hosts[host.index()].name),
            Attachment::Member(lag) => format!("a cable of {}", self.label(lag)),
            Attachment::Link(link) => {
                let Link { a, b, .. } = self.links[link.index()];
                format!("the cable {} -- {}", self.label(a), self.label(b))
            }
        };
        Err(Fault::PortUsedTwice { port: self.label(port), by })
    }

    /// Checks that there is a cable at one port for each at the other.
    ///
    /// # Errors
    /// [`Fault::EmptyLag`] or [`Fault::UnequalLags`].
    pub fn check_ends(&self, a: PortId, b: PortId) -> Result<(), Fault> {
        let counts = [a, b].map(|port| self.cables_at(port));
        match counts.iter().position(|count| *count == 0) {
            Some(at) => Err(Fault::EmptyLag { lag: self.label([a, b][at]) }),
            None if counts[0] != counts[1] => Err(Fault::UnequalLags { a: self.label(a), b: self.label(b), counts }),
            None => Ok(()),
        }
    }

    /// Checks that every LAG with cables has members, and that both ends of a link have as many.
    fn check_lags(&self) -> Result<(), Fault> {
        let mut members = vec![0; self.ports.len()];
        for port in &self.ports {
            if let Attachment::Member(lag) = port.attachment {
                members[lag.index()] += 1;
            }
        }
        let lags = self.ports.iter().enumerate().filter(|(_, port)| port.lag().is_some());
        for (at, port) in lags {
            let rate_bps = match port.attachment {
                Attachment::Link(link) => self.links[link.index()].rate_bps,
                Attachment::Host(host) => self.hosts[host.index()].rate_bps,
                // One that leads nowhere may be without members, as where there was one before.
                Attachment::Nothing | Attachment::Member(_) => continue,
            };
            match members[at] {
                0 => return Err(Fault::EmptyLag { lag: self.label(PortId::new(at)) }),
                count if rate_bps % count as u64 != 0 => {
                    return Err(Fault::UnequalMembers { lag: self.label(PortId::new(at)), members: count });
                }
                _ => {}
            }
        }
        let cables = |port: PortId| if self.ports[port.index()].lag().is_some() { members[port.index()] } else { 1 };
        for Link { a, b, .. } in &self.links {
            let counts = [cables(*a), cables(*b)];
            if counts[0] != counts[1] {
                return Err(Fault::UnequalLags { a: self.label(*a), b: self.label(*b), counts });
            }
        }
        Ok(())
    }

    fn claim_guid(&mut self, guid: Guid, owner: String) -> Result<(), Fault> {
        match self.owner_by_guid.entry(guid) {
            Entry::Occupied(taken) => Err(Fault::DuplicateGuid { guid, owner: taken.get().clone() }),
            Entry::Vacant(free) => {
                free.insert(owner);
                Ok(())
            }
        }
    }

    /// A port as people write it.
    pub(crate) fn label(&self, port: PortId) -> String {
        let port = &self.ports[port.index()];
        format!("{}:{}", self.switches[port.switch.index()].name, port.name)
    }

    fn unreachable(&self) -> Vec<Fault> {
        let mut neighbours = vec![Vec::new(); self.switches.len()];
        for link in &self.links {
            let (a, b) = (self.ports[link.a.index()].switch, self.ports[link.b.index()].switch);
            neighbours[a.index()].push(b.index());
            neighbours[b.index()].push(a.index());
        }
        let found = breadth_first(self.switches.len(), [0], |switch| neighbours[switch].iter().map(|&next| ((), next)));
        let from = &self.switches[0].name;
        (self.switches.iter().enumerate())
            .filter(|(at, _)| !found.has_reached(*at))
            .map(|(_, switch)| Fault::Unreachable { switch: switch.name.clone(), from: from.clone() })
            .collect()
    }
}

fn check_station(mac: Mac) -> Result<(), Fault> {
    match mac {
        _ if mac.is_multicast() => Err(Fault::MulticastMac { mac }),
        _ if mac.is_zero() => Err(Fault::ZeroMac),
        _ => Ok(()),
    }
}

fn abridge(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > 4 => format!("{first} … {last}"),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_RATE_BPS;

    fn pair() -> (TopologyBuilder, PortId, PortId) {
        let mut builder = TopologyBuilder::new();
        let a = builder.add_switch("a", SwitchSpec::default()).expect("fresh");
        let b = builder.add_switch("b", SwitchSpec::default()).expect("fresh");
        let (pa, pb) = (builder.add_port(a, "1").expect("fresh"), builder.add_port(b, "1").expect("fresh"));
        (builder, pa, pb)
    }

    #[test]
    fn a_cable_that_is_pulled_leaves_its_ports() {
        let (mut builder, pa, pb) = pair();
        builder.add_link(pa, pb, 7).expect("free ports");
        let (a, b) = (builder.switch("a").expect("known"), builder.switch("b").expect("known"));
        let (qa, qb) = (builder.add_port(a, "2").expect("fresh"), builder.add_port(b, "2").expect("fresh"));
        builder.add_link(qa, qb, 8).expect("free ports");
        builder.remove_links(&BTreeSet::from([LinkId::new(0)]));
        let topology = builder.finish().expect("one cable is left");
        assert_eq!(topology.links().len(), 1);
        assert_eq!((topology.links()[0].rate_bps, topology.ports().len()), (8, 4));
        assert_eq!(topology.port(pa).attachment, Attachment::Nothing);
        assert_eq!(topology.port(topology.links()[0].a).attachment, Attachment::Link(LinkId::new(0)));
        let mut builder = TopologyBuilder::of(&topology);
        builder.remove_links(&BTreeSet::from([LinkId::new(0)]));
        assert!(matches!(builder.finish().expect_err("divided").as_slice(), [Fault::Unreachable { .. }]));
    }

    #[test]
    fn a_standby_edge_takes_its_port_its_name_and_no_address_of_a_host() {
        let (mut builder, pa, pb) = pair();
        let (a, b) = (builder.switch("a").expect("known"), builder.switch("b").expect("known"));
        builder.add_link(pa, pb, DEFAULT_RATE_BPS).expect("free ports");
        let [edge, standby, host, _] = ["e", "s", "h", "o"].map(|name| builder.add_port(a, name).expect("fresh"));
        let active = builder.add_edge("up1", edge, 1, None).expect("the first");
        assert!(matches!(builder.add_edge("up2", standby, 1, None), Err(Fault::SecondEdge { .. })));
        assert!(matches!(builder.add_standby_edge("up1", standby, 1), Err(Fault::DuplicateHost(_))));
        assert!(matches!(builder.add_standby_edge("up2", edge, 1), Err(Fault::PortUsedTwice { .. })));
        let second = builder.add_standby_edge("up2", standby, 7).expect("a free port");
        assert!(matches!(builder.add_host("up2", Mac::local(1), host, 1, None), Err(Fault::DuplicateHost(_))));
        assert!(matches!(builder.add_host("h", Mac::local(1), standby, 1, None), Err(Fault::PortUsedTwice { .. })));
        // What is behind the edge port may be behind the other as well.
        builder.add_mac(active, Mac::local(9)).expect("fresh");
        builder.add_standby_mac(second, Mac::local(9)).expect("that of the edge port");
        assert!(matches!(builder.add_standby_mac(second, Mac::local(9)), Err(Fault::DuplicateMac { .. })));
        assert!(matches!(builder.add_standby_mac(second, Mac::new([0; 6])), Err(Fault::ZeroMac)));
        builder.add_host("h", Mac::local(1), host, 1, None).expect("a free port");
        let lag = builder.add_lag(b, None).expect("a free number");
        assert!(matches!(builder.add_standby_edge("up3", lag, 1), Err(Fault::StandbyAtLag { .. })));
        let mut clash = builder.clone();
        clash.add_standby_mac(second, Mac::local(1)).expect("known too late");
        assert!(matches!(clash.finish().expect_err("a host has it").as_slice(), [Fault::DuplicateMac { .. }]));
        let topology = builder.finish().expect("connected");
        let [found] = topology.standby_edges() else { panic!("one standby edge") };
        assert_eq!((found.name.as_str(), found.rate_bps, &found.macs[..]), ("up2", 7, &[Mac::local(9)][..]));
        assert_eq!(topology.port(found.port).attachment, Attachment::Nothing);
        let free = topology.port_ids(a).filter(|port| topology.is_free(*port));
        assert_eq!(free.map(|port| topology.port(port).name.as_str()).collect::<Vec<_>>(), ["o"]);
        assert_eq!((topology.edge(), topology.hosts().len()), (Some(active), 2));
        assert_eq!(TopologyBuilder::of(&topology).finish().as_ref(), Ok(&topology));
    }

    #[test]
    fn parallel_links_are_two_links() {
        let (mut builder, pa, pb) = pair();
        builder.add_link(pa, pb, DEFAULT_RATE_BPS).expect("free ports");
        let (a, b) = (builder.switch("a").expect("known"), builder.switch("b").expect("known"));
        let (qa, qb) = (builder.add_port(a, "2").expect("fresh"), builder.add_port(b, "2").expect("fresh"));
        builder.add_link(qb, qa, DEFAULT_RATE_BPS).expect("free ports");
        let topology = builder.finish().expect("connected");
        assert_eq!(topology.links().len(), 2);
        assert_eq!(topology.channels_from(a).len(), 2);
        assert_eq!(topology.channel_label(topology.channels_from(a)[1]), "a:2 -> b:2");
    }

    #[test]
    fn each_fault_is_named() {
        let (mut builder, pa, pb) = pair();
        builder.add_link(pa, pb, DEFAULT_RATE_BPS).expect("free ports");
        let a = builder.switch("a").expect("known");
        let spare = builder.add_port(a, "9").expect("fresh");
        assert!(matches!(builder.add_link(pa, pb, 1), Err(Fault::PortUsedTwice { .. })));
        assert!(matches!(builder.add_link(pa, spare, 1), Err(Fault::SelfLoop { .. })));
        assert!(matches!(builder.switch("aa"), Err(Fault::UnknownSwitch { similar: Some(_), .. })));
        assert!(matches!(builder.add_switch("a", SwitchSpec::default()), Err(Fault::DuplicateSwitch(_))));
        assert!(matches!(builder.add_switch("a b", SwitchSpec::default()), Err(Fault::BadName(_))));
        let group = Mac::new([1, 0, 0, 0, 0, 0]);
        assert!(matches!(builder.add_host("h", group, spare, 1, None), Err(Fault::MulticastMac { .. })));
        builder.add_host("h", Mac::local(1), spare, 1, None).expect("free port");
        let other = builder.add_port(a, "10").expect("fresh");
        assert!(matches!(builder.add_host("i", Mac::local(1), other, 1, None), Err(Fault::DuplicateMac { .. })));
        let spec = SwitchSpec { model: Some("linux-brigde".to_owned()), mgmt: None };
        let fault = builder.add_switch("lonely", spec).expect_err("unknown model");
        assert_eq!(fault.help().as_deref(), Some("did you mean linux-bridge?"));
        assert_eq!(
            builder.finish(),
            Err(vec![Fault::Unreachable { switch: "lonely".to_owned(), from: "a".to_owned() }])
        );
    }

    /// All ports of a machine with a bond are ports of the bond, in whichever order they come.
    #[test]
    fn a_bond_has_its_machine_to_itself() {
        let begun = || {
            let (mut builder, pa, pb) = pair();
            builder.add_link(pa, pb, DEFAULT_RATE_BPS).expect("free ports");
            let a = builder.switch("a").expect("known");
            let ports = ["2", "3", "4"].map(|name| builder.add_port(a, name).expect("fresh"));
            builder.add_host("m/0", Mac::local(1), ports[0], 1, None).expect("free port");
            builder.join_machine("m").expect("the first");
            (builder, ports)
        };
        let (mut builder, ports) = begun();
        builder.add_host("m/1", Mac::local(2), ports[1], 1, None).expect("free port");
        builder.join_machine("m").expect("one after another");
        assert_eq!(builder.add_standby("m/2", ports[2], 1), Err(Fault::MixedBond("m".to_owned())));
        let (mut builder, ports) = begun();
        let standby = builder.add_standby("m/1", ports[1], 1).expect("beside the first");
        builder.add_host("m/2", Mac::local(2), ports[2], 1, None).expect("free port");
        assert_eq!(builder.join_machine("m"), Err(Fault::MixedBond("m".to_owned())));
        builder.set_active(standby);
        let topology = builder.finish().expect("connected");
        let states: Vec<bool> = topology.hosts().iter().map(|host| host.standby).collect();
        assert_eq!(states, [true, false, false], "m/2 stayed a machine of its own");
    }

    #[test]
    fn a_model_with_listed_ports_has_them_all_in_front_panel_order() {
        let mut builder = TopologyBuilder::new();
        let spec = SwitchSpec { model: Some("powerconnect-5324".to_owned()), mgmt: None };
        let switch = builder.add_switch("a", spec).expect("fresh");
        let port = builder.add_port(switch, "g7").expect("listed");
        builder.add_host("h", Mac::local(1), port, DEFAULT_RATE_BPS, None).expect("free port");
        assert!(matches!(builder.add_port(switch, "g25"), Err(Fault::UnknownPort { .. })));
        let topology = builder.finish().expect("connected");
        assert_eq!(topology.ports().len(), 24);
        assert_eq!(topology.port(topology.host(HostId::new(0)).port).name, "g7");
        assert_eq!(topology.ports()[6].name, "g7");
    }
}
