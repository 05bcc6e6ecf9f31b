//! What the foreign formats have in common: named devices and cables, from which a topology is made.
//!
//! No foreign format says all that a topology needs, so the same decisions fall for each of them here:
//!
//! - **Switch or host?** What the file states decides; else a name pattern of the user's; else the format's habit.
//! - **A host with several cables** becomes one host per cable, `node01/eth0` and `node01/eth1`: a topology's host is
//!   one network port.
//! - **A host without an address** gets a local one, `02:00:00:00:00:01` and up in order of the file.
//! - **A cable described at both ends** is one cable ([`pair_sightings`]).
//!
//! ```text
//! sw1:1 sees sw2:7   sw2:7 sees sw1:1    a cable
//! sw1:2 sees sw3:4   (sw3 is silent)     a cable, with a warning
//! sw1:5 sees sw2:6   sw2:6 sees sw4:1    an error
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{
    Attachment, DEFAULT_RATE_BPS, Fault, Group, Guid, Host, LagNumber, LinkId, Mac, NAME_BYTES_MAX, PortId,
    StandbyEdge, SwitchId, SwitchSpec, Topology, TopologyBuilder,
    format::{
        diagnostic::{Diagnostics, TextPosition},
        import_options::ImportOptions,
    },
};

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Switch,
    Host,
}

/// A device of a foreign file.
#[derive(Clone)]
pub(crate) struct Device<'a> {
    pub name: String,
    pub site: TextPosition<'a>,
    /// What the file says that it is.
    pub stated: Option<Role>,
    /// What it is if nobody says otherwise.
    pub habit: Role,
    pub model: Option<String>,
    pub mgmt: Option<IpAddr>,
    pub mac: Option<Mac>,
    pub address: Option<IpAddr>,
    /// The GUID of a switch.
    pub guid: Option<Guid>,
    /// The GUIDs of a host's ports.
    pub port_guids: BTreeMap<String, Guid>,
    /// The machine that a host is a port of; its name is then the machine's, a slash and the port's.
    pub machine: Option<String>,
    /// The rail of a host.
    pub rail: Option<u8>,
    /// How much a host counts in all-to-all traffic; none if the file does not say.
    pub weight: Option<u8>,
    /// Further addresses behind a host's port.
    pub further_macs: Vec<Mac>,
    /// Most addresses that are learned at a host's port.
    pub learned_max: Option<usize>,
    /// What a host with one cable is in its machine's failover bond, if the file says that it is a port of one.
    pub bond: Option<BondPort>,
    /// Whether a host is an edge port.
    pub is_edge: bool,
    /// Whether it is an edge port on standby.
    pub is_standby_edge: bool,
    /// The groups that a switch is in.
    pub groups: Vec<String>,
}

/// The keys of [`host_facts`].
pub(crate) const HOST_FACTS: [&str; 7] = ["machine", "rail", "weight", "macs", "bond", "kind", "learned"];

/// What formats without words of their own for it say of a host's machine, rail, weight, further addresses, bond and kind: keys and values.
pub(crate) fn host_facts(topology: &Topology, host: &Host) -> Vec<(&'static str, String)> {
    let machine = &topology.machine(host.machine).name;
    let macs: Vec<String> = host.further_macs.iter().map(Mac::to_string).collect();
    let machine = (*machine != host.name).then(|| ("machine", machine.clone()));
    let rail = host.rail.map(|rail| ("rail", rail.to_string()));
    let weight = (host.weight != 1).then(|| ("weight", host.weight.to_string()));
    let macs = (!macs.is_empty()).then(|| ("macs", macs.join(" ")));
    let bond = topology.is_in_bond(host).then(|| ("bond", if host.standby { "standby" } else { "active" }.to_owned()));
    let kind = host.edge.then(|| ("kind", "edge".to_owned()));
    let learned = host.learned_max.map(|most| ("learned", most.to_string()));
    machine.into_iter().chain(rail).chain(weight).chain(macs).chain(bond).chain(kind).chain(learned).collect()
}

/// The groups of a switch or of a link, as DOT, GraphML and containerlab files state them: names, separated by spaces.
pub(crate) fn groups_text<'t>(topology: &'t Topology, is_member: impl Fn(&'t Group) -> bool) -> Option<String> {
    let groups = topology.groups().iter().filter(|group| is_member(group));
    let names: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The groups of the link that a cable at this port is of.
pub(crate) fn groups_of_cable(topology: &Topology, port: PortId) -> Option<String> {
    let Attachment::Link(link) = topology.port(topology.logical_port(port)).attachment else { return None };
    groups_text(topology, |group| group.links.contains(&link))
}

/// Reads [`groups_text`].
pub(crate) fn read_groups(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The kind of an edge port on standby.
const STANDBY_EDGE: &str = "standby-edge";

/// What they say of an edge port on standby, which they take for a host.
pub(crate) fn standby_edge_facts(edge: &StandbyEdge) -> Vec<(&'static str, String)> {
    let macs: Vec<String> = edge.macs.iter().map(Mac::to_string).collect();
    let macs = (!macs.is_empty()).then(|| ("macs", macs.join(" ")));
    macs.into_iter().chain([("kind", STANDBY_EDGE.to_owned())]).collect()
}

impl<'a> Device<'a> {
    pub(crate) fn new(name: impl Into<String>, site: TextPosition<'a>, habit: Role) -> Self {
        Self {
            name: name.into(),
            site,
            stated: None,
            habit,
            model: None,
            mgmt: None,
            mac: None,
            address: None,
            guid: None,
            port_guids: BTreeMap::new(),
            machine: None,
            rail: None,
            weight: None,
            further_macs: Vec::new(),
            learned_max: None,
            bond: None,
            is_edge: false,
            is_standby_edge: false,
            groups: Vec::new(),
        }
    }

    /// Takes what [`host_facts`] writes; other keys are none of its business.
    ///
    /// # Errors
    /// What is wrong with the value, in words.
    pub(crate) fn take_host_fact(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "machine" => self.machine = Some(text.to_owned()),
            "rail" => {
                self.rail = Some(text.parse().map_err(|_| format!("{text} is no rail, a number from 0 to 255"))?);
            }
            "weight" => {
                self.weight = Some(text.parse().map_err(|_| format!("{text} is no weight, a number from 0 to 255"))?);
            }
            "macs" => {
                let macs = text.split_whitespace().map(|mac| mac.parse().map_err(|error| format!("{mac} is {error}")));
                self.further_macs = macs.collect::<Result<_, String>>()?;
            }
            "bond" => match text {
                "active" => self.bond = Some(BondPort::Active),
                "standby" => self.bond = Some(BondPort::Standby),
                _ => return Err(format!("{text} is none of active and standby")),
            },
            "learned" => {
                self.learned_max = Some(text.parse().map_err(|_| format!("{text} is no number of addresses"))?);
            }
            // Other programs may have this key.
            "kind" => (self.is_edge, self.is_standby_edge) = (text == "edge", text == STANDBY_EDGE),
            _ => {}
        }
        Ok(())
    }
}

/// One end of a cable.
#[derive(Clone)]
pub(crate) struct End<'a> {
    /// Position of its device.
    pub device: usize,
    /// The port's name; empty if the file names none.
    pub port: String,
    /// The address of this very port.
    pub mac: Option<Mac>,
    /// What it is in a failover bond, if the file says that it is a port of one.
    pub bond: Option<BondPort>,
    pub site: TextPosition<'a>,
}

/// A port of a failover bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BondPort {
    Active,
    Standby,
}

/// Cables that are one link, of the same number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bundle {
    pub number: usize,
    /// The numbers that the LAGs at the cable's ends are known by, as far as they have any.
    pub lags: [Option<LagNumber>; 2],
}

/// A cable of a foreign file.
#[derive(Clone)]
pub(crate) struct Cable<'a> {
    pub ends: [End<'a>; 2],
    pub rate_bps: Option<u64>,
    /// The LAG that it is a cable of.
    pub bundle: Option<Bundle>,
    /// The groups that it is in, if it joins two switches.
    pub groups: Vec<String>,
    pub site: TextPosition<'a>,
}

/// Devices and cables as a foreign file gives them.
#[derive(Default)]
pub(crate) struct Cabling<'a> {
    pub devices: Vec<Device<'a>>,
    pub cables: Vec<Cable<'a>>,
}

/// What one end of a cable says about it.
pub(crate) struct Sighting<'a> {
    pub near: (usize, String),
    pub far: (usize, String),
    pub rate_bps: Option<u64>,
    /// Addresses of the near and of the far port, where known.
    pub macs: [Option<Mac>; 2],
    pub site: TextPosition<'a>,
    /// Whether the far device has a voice in these files at all.
    pub far_speaks: bool,
}

/// Makes cables of sightings: both ends must agree; what only one end says is believed with a warning, unless the
/// other end had no voice and is a host.
pub(crate) fn pair_sightings<'a>(
    sightings: Vec<Sighting<'a>>,
    devices: &[Device<'a>],
    is_host: impl Fn(usize) -> bool,
    diagnostics: &mut Diagnostics,
) -> Vec<Cable<'a>> {
    let label = |(device, port): &(usize, String)| format!("{}:{port}", devices[*device].name);
    let mut by_port: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut repeated = BTreeSet::new();
    for (index, sighting) in sightings.iter().enumerate() {
        let first = *by_port.entry(sighting.near.clone()).or_insert(index);
        if first == index {
            continue;
        }
        repeated.insert(index);
        if sightings[first].far != sighting.far {
            let message = format!(
                "port {} sees both {} and {}",
                label(&sighting.near),
                label(&sightings[first].far),
                label(&sighting.far)
            );
            diagnostics.push(sighting.site.error(message).with_help(
                "a cable has two ends: leave this port out if it is no part of the fabric (a management port, say), or look for a \
                 device between them that forwards their announcements",
            ));
        }
    }
    let mut cables = Vec::new();
    for (index, sighting) in sightings.iter().enumerate() {
        if repeated.contains(&index) {
            continue;
        }
        match by_port.get(&sighting.far).map(|&other| (other, &sightings[other])) {
            Some((other, back)) if back.far == sighting.near => {
                if other < index {
                    continue;
                }
                cables.push(cable_of(sighting, Some(back)));
            }
            Some((_, back)) => {
                let message = format!(
                    "port {} sees {}, but that port sees {} ({}:{})",
                    label(&sighting.near),
                    label(&sighting.far),
                    label(&back.far),
                    back.site.source.file(),
                    back.site.place.line
                );
                diagnostics.push(sighting.site.error(message).with_help("collect both files again at the same time"));
            }
            None => {
                let far = &devices[sighting.far.0];
                if sighting.far_speaks {
                    let message =
                        format!("port {} sees {}, which does not see it", label(&sighting.near), label(&sighting.far));
                    let help = format!("the cable is believed; check that {} announces and listens there", far.name);
                    diagnostics.push(sighting.site.warning(message).with_help(help));
                } else if !is_host(sighting.far.0) {
                    let message = format!(
                        "port {} sees switch {}, of which there is no file",
                        label(&sighting.near),
                        devices[sighting.far.0].name
                    );
                    let help = format!("the cable is believed; add what {} says itself", far.name);
                    diagnostics.push(sighting.site.warning(message).with_help(help));
                }
                cables.push(cable_of(sighting, None));
            }
        }
    }
    cables
}

fn cable_of<'a>(sighting: &Sighting<'a>, back: Option<&Sighting<'a>>) -> Cable<'a> {
    let end = |(device, port): &(usize, String), mac, site| End {
        device: *device,
        port: port.clone(),
        mac,
        bond: None,
        site,
    };
    let near = end(&sighting.near, sighting.macs[0].or(back.and_then(|back| back.macs[1])), sighting.site);
    let far_site = back.map_or(sighting.site, |back| back.site);
    let far = end(&sighting.far, sighting.macs[1].or(back.and_then(|back| back.macs[0])), far_site);
    let rate_bps = sighting.rate_bps.or(back.and_then(|back| back.rate_bps));
    Cable { ends: [near, far], rate_bps, bundle: None, groups: Vec::new(), site: sighting.site }
}

impl<'a> Cabling<'a> {
    /// Makes a topology: switches, then links, then hosts, each in the order of the file.
    pub(crate) fn build(
        mut self,
        start: TextPosition<'a>,
        options: &ImportOptions,
        diagnostics: &mut Diagnostics,
    ) -> Option<Topology> {
        self.drop_repeated_cables(diagnostics);
        let roles: Vec<Role> = self.devices.iter().map(|device| role(device, options)).collect();
        let mut builder = TopologyBuilder::with_models(options.models.clone());
        let mut switches: Vec<Option<SwitchId>> = vec![None; self.devices.len()];
        for (index, device) in self.devices.iter().enumerate().filter(|(index, _)| roles[*index] == Role::Switch) {
            let spec = SwitchSpec { model: device.model.clone(), mgmt: device.mgmt };
            switches[index] = match builder.add_switch(&device.name, spec) {
                Ok(switch) => Some(switch),
                Err(fault) => {
                    let mut diagnostic = device.site.fault(&fault);
                    if let Fault::DuplicateMgmt { switch, .. } = &fault {
                        let first = self.devices.iter().find(|device| device.name == *switch);
                        if let Some(TextPosition { source, place }) = first.map(|device| device.site) {
                            let at = format!("{switch} has it in {}:{}", source.file(), place.line);
                            diagnostic = diagnostic.with_help(format!("{at}; every switch has an address of its own"));
                        }
                    }
                    diagnostics.push(diagnostic);
                    // A switch of unknown model, or with the address of another, is there all the same.
                    let known = matches!(fault, Fault::UnknownModel { .. } | Fault::DuplicateMgmt { .. });
                    builder.switch(&device.name).ok().filter(|_| known)
                }
            };
        }
        for (device, switch) in self.devices.iter().zip(&switches) {
            let Some((switch, guid)) = switch.zip(device.guid) else { continue };
            if let Err(fault) = builder.set_switch_guid(switch, guid) {
                diagnostics.push(device.site.fault(&fault));
            }
        }
        let mut groups = Groups::default();
        for (device, switch) in self.devices.iter().zip(&switches) {
            for switch in switch.iter() {
                device.groups.iter().for_each(|group| groups.of(group, device.site).0.push(*switch));
            }
        }
        let mut joined: Vec<usize> = (0..self.devices.len()).collect();
        let mut host_cables: Vec<Vec<HostCable<'_>>> = vec![Vec::new(); self.devices.len()];
        let mut bundled = BTreeSet::new();
        for cable in &self.cables {
            // The first cable of a LAG stands for all of them.
            if cable.bundle.is_some_and(|bundle| !bundled.insert(bundle.number)) {
                continue;
            }
            let plugs = self.plugs(cable);
            let [a, b] = &cable.ends;
            match (roles[a.device], roles[b.device]) {
                (Role::Host, Role::Host) => {
                    let (a, b) = (&self.devices[a.device].name, &self.devices[b.device].name);
                    let error = cable.site.error(format!("this cable joins the hosts {a} and {b}"));
                    diagnostics
                        .push(error.with_help("at least one end of a cable is a switch; is a host pattern too wide?"));
                }
                (Role::Switch, Role::Switch) => {
                    join(&mut joined, a.device, b.device);
                    let [x, y] = plugs.each_ref().map(|ends| plug_all(&mut builder, &switches, ends, diagnostics));
                    let (Some(x), Some(y)) = (x, y) else { continue };
                    let rate_bps = plugs[0].len() as u64 * cable.rate_bps.unwrap_or(DEFAULT_RATE_BPS);
                    match builder.add_link(x, y, rate_bps) {
                        Ok(link) => cable.groups.iter().for_each(|group| groups.of(group, cable.site).1.push(link)),
                        Err(fault) => diagnostics.push(cable.site.fault(&fault)),
                    }
                }
                (first, _) => {
                    let (side, host) = if first == Role::Switch { (0, b) } else { (1, a) };
                    if let Some(port) = plug_all(&mut builder, &switches, &plugs[side], diagnostics) {
                        host_cables[host.device].push(HostCable { port, end: host, cable, cables: plugs[side].len() });
                    }
                }
            }
        }
        let host_indices = (0..self.devices.len()).filter(|index| roles[*index] == Role::Host);
        let hosts: Vec<_> = host_indices.map(|index| (&self.devices[index], host_cables[index].as_slice())).collect();
        add_hosts(&mut builder, &hosts, diagnostics);
        groups.add(&mut builder, diagnostics);
        warn_of_leaves(&self, &roles, start, diagnostics);
        match builder.finish() {
            Ok(topology) => Some(topology),
            Err(faults) => {
                report_unfinished(&self, &faults, &mut joined, start, diagnostics);
                None
            }
        }
    }

    /// What is plugged in at each end of a cable: one plug, or one for each cable of its LAG.
    fn plugs<'c>(&'c self, cable: &'c Cable<'a>) -> [Plugs<'c, 'a>; 2] {
        let Some(bundle) = cable.bundle else { return cable.ends.each_ref().map(Plugs::Single) };
        let all = || self.cables.iter().filter(move |other| other.bundle.is_some_and(|of| of.number == bundle.number));
        [0, 1].map(|side| {
            let device = cable.ends[side].device;
            let own = all().filter_map(|other| other.ends.iter().find(|end| end.device == device));
            Plugs::OfLag(bundle.lags[side], own.collect())
        })
    }

    /// Some writers list a cable once for each of its ends.
    fn drop_repeated_cables(&mut self, diagnostics: &mut Diagnostics) {
        let mut seen = BTreeSet::new();
        self.cables.retain(|cable| {
            let mut key = cable.ends.each_ref().map(|end| (end.device, end.port.clone()));
            key.sort_unstable();
            let fresh = cable.ends.iter().any(|end| end.port.is_empty()) || seen.insert(key);
            if !fresh {
                diagnostics.push(cable.site.warning("this cable is listed before; it counts once"));
            }
            fresh
        });
    }
}

/// Groups, in the order in which the file first names them.
#[derive(Default)]
struct Groups<'a> {
    /// The name, where it is first named, and the members.
    all: Vec<(String, TextPosition<'a>, GroupMembers)>,
    by_name: BTreeMap<String, usize>,
}

type GroupMembers = (Vec<SwitchId>, Vec<LinkId>);

impl<'a> Groups<'a> {
    fn of(&mut self, name: &str, site: TextPosition<'a>) -> &mut GroupMembers {
        let next = self.all.len();
        let at = *self.by_name.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.all.push((name.to_owned(), site, GroupMembers::default()));
        }
        &mut self.all[at].2
    }

    fn add(self, builder: &mut TopologyBuilder, diagnostics: &mut Diagnostics) {
        for (name, site, (switches, links)) in self.all {
            if let Err(fault) = builder.add_group(&name, &switches, &links) {
                diagnostics.push(site.fault(&fault));
                if matches!(fault, Fault::TooMany { .. }) {
                    return;
                }
            }
        }
    }
}

/// A host's cable: the switch port, the host's own end, and the whole.
#[derive(Clone, Copy)]
struct HostCable<'c> {
    port: PortId,
    end: &'c End<'c>,
    cable: &'c Cable<'c>,
    /// How many there are, as one.
    cables: usize,
}

fn role(device: &Device<'_>, options: &ImportOptions) -> Role {
    match device.stated {
        Some(role) => role,
        None if options.names_host(&device.name) => Role::Host,
        None => device.habit,
    }
}

fn plug(
    builder: &mut TopologyBuilder,
    switches: &[Option<SwitchId>],
    end: &End<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<PortId> {
    let switch = switches[end.device]?;
    if end.port.is_empty() {
        let error = end.site.error("this end of the cable names no port");
        diagnostics.push(error.with_help("a configuration needs to know which port it is"));
        return None;
    }
    let port = builder.add_port(switch, &end.port).and_then(|port| builder.check_free(port).map(|()| port));
    port.map_err(|fault| diagnostics.push(end.site.fault(&fault))).ok()
}

/// What is plugged in at one end of a link.
enum Plugs<'c, 'a> {
    Single(&'c End<'a>),
    /// Those of a LAG's members, and the number that it is known by, if it has one.
    OfLag(Option<LagNumber>, Vec<&'c End<'a>>),
}

impl Plugs<'_, '_> {
    fn len(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::OfLag(_, ends) => ends.len(),
        }
    }
}

/// The port that these ends are plugged into: a LAG with all of them as its members, if they are one's.
fn plug_all(
    builder: &mut TopologyBuilder,
    switches: &[Option<SwitchId>],
    plugs: &Plugs<'_, '_>,
    diagnostics: &mut Diagnostics,
) -> Option<PortId> {
    let (number, ends) = match plugs {
        Plugs::Single(end) => return plug(builder, switches, end, diagnostics),
        Plugs::OfLag(number, ends) => (number, ends),
    };
    let first = ends.first()?;
    let members: Vec<Option<PortId>> = ends.iter().map(|end| plug(builder, switches, end, diagnostics)).collect();
    let lag = builder.add_lag(switches[first.device]?, *number).and_then(|lag| {
        members.iter().flatten().try_for_each(|member| builder.add_to_lag(lag, *member))?;
        Ok(lag)
    });
    let all_known = members.iter().all(Option::is_some);
    lag.map_err(|fault| diagnostics.push(first.site.fault(&fault))).ok().filter(|_| all_known)
}

fn add_hosts(builder: &mut TopologyBuilder, hosts: &[(&Device<'_>, &[HostCable<'_>])], diagnostics: &mut Diagnostics) {
    let stated = |device: &Device<'_>, cables: &[HostCable<'_>]| {
        device.mac.into_iter().chain(cables.iter().filter_map(|cable| cable.end.mac)).collect::<Vec<_>>()
    };
    let taken: BTreeSet<Mac> = hosts.iter().flat_map(|(device, cables)| stated(device, cables)).collect();
    let mut local = (1..).map(Mac::local).filter(|mac| !taken.contains(mac));
    let mut invented: Vec<(TextPosition<'_>, Mac)> = Vec::new();
    for (device, cables) in hosts {
        if cables.is_empty() {
            diagnostics
                .push(device.site.warning(format!("host {} has no cable to a switch; it is left out", device.name)));
        }
        if device.is_standby_edge {
            add_standby_edge(builder, device, cables, diagnostics);
            continue;
        }
        for (position, cable) in cables.iter().enumerate() {
            let name = match cables.len() {
                1 => device.name.clone(),
                _ => format!("{}/{}", device.name, port_name(cables, position)),
            };
            let known = cable.end.mac.or(device.mac.filter(|_| position == 0));
            let mac = known.or(device.is_edge.then(|| Mac::new([0; 6]))).unwrap_or_else(|| {
                let mac = local.next().unwrap_or(Mac::BROADCAST);
                invented.push((device.site, mac));
                mac
            });
            let bond = cable.end.bond.or(device.bond);
            let rate_bps = cable.cables as u64 * cable.cable.rate_bps.unwrap_or(DEFAULT_RATE_BPS);
            let address = device.address.filter(|_| position == 0);
            let machine = device.machine.as_ref().or(Some(&device.name).filter(|_| cables.len() > 1));
            // Ports of one machine with one address are a failover bond.
            let is_beside = machine.is_some_and(|machine| builder.last_port() == Some((machine.as_str(), mac)));
            let added = if is_beside {
                builder.add_standby(&name, cable.port, rate_bps)
            } else if device.is_edge {
                builder.add_edge(&name, cable.port, rate_bps, address)
            } else {
                builder.add_host(&name, mac, cable.port, rate_bps, address)
            };
            let named = added.and_then(|host| {
                if !is_beside {
                    machine.map_or(Ok(()), |machine| builder.join_machine(machine))?;
                    let mut further = device.further_macs.iter().filter(|_| position == 0);
                    further.try_for_each(|mac| builder.add_mac(host, *mac))?;
                    let learned = device.learned_max.filter(|_| position == 0);
                    learned.map_or(Ok(()), |most| builder.set_learned(host, most))?;
                } else if bond == Some(BondPort::Active) {
                    builder.set_active(host);
                }
                device.rail.into_iter().for_each(|rail| builder.set_rail(host, rail));
                device.weight.into_iter().for_each(|weight| builder.set_weight(host, weight));
                device.port_guids.get(&cable.end.port).map_or(Ok(()), |guid| builder.set_host_guid(host, *guid))
            });
            if let Err(fault) = named {
                diagnostics.push(device.site.fault(&fault));
            } else if is_beside && bond.is_none() {
                let warning = format!(
                    "{name} has the address {mac} of another port of its machine: both are ports of a failover bond"
                );
                let help = "if LACP bonds them, write bond: lacp into the topology";
                diagnostics.push(device.site.warning(warning).with_help(help));
            }
        }
    }
    if let [(site, first), ..] = invented.as_slice() {
        let last = invented.last().map_or(*first, |(_, mac)| *mac);
        let message = match invented.len() {
            1 => format!("this host has no Ethernet address here; it gets {first}"),
            count => format!("{count} hosts have no Ethernet address here; they get {first} to {last}"),
        };
        diagnostics.push(site.warning(message).with_help("write the real ones into the topology before deploying it"));
    }
}

/// An edge port on standby has one cable, and no address of its own.
fn add_standby_edge(
    builder: &mut TopologyBuilder,
    device: &Device<'_>,
    cables: &[HostCable<'_>],
    diagnostics: &mut Diagnostics,
) {
    if cables.len() > 1 {
        let message = format!("{} is an edge port on standby, but has {} cables", device.name, cables.len());
        diagnostics.push(device.site.error(message).with_help("each uplink is a host of its own"));
    }
    let Some(cable) = cables.first() else { return };
    let rate_bps = cable.cables as u64 * cable.cable.rate_bps.unwrap_or(DEFAULT_RATE_BPS);
    let added = builder
        .add_standby_edge(&device.name, cable.port, rate_bps)
        .and_then(|edge| device.further_macs.iter().try_for_each(|mac| builder.add_standby_mac(edge, *mac)));
    if let Err(fault) = added {
        diagnostics.push(device.site.fault(&fault));
    }
}

fn port_name(cables: &[HostCable<'_>], position: usize) -> String {
    let own = &cables[position].end.port;
    let unique = cables.iter().filter(|cable| cable.end.port == *own).count() == 1;
    if unique && !own.is_empty() { own.clone() } else { format!("{}", position + 1) }
}

/// A cabling file without hosts is rare; more often nobody has said which devices are hosts.
fn warn_of_leaves(cabling: &Cabling<'_>, roles: &[Role], start: TextPosition<'_>, diagnostics: &mut Diagnostics) {
    if roles.contains(&Role::Host) {
        return;
    }
    let mut degree = vec![0; cabling.devices.len()];
    for end in cabling.cables.iter().flat_map(|cable| &cable.ends) {
        degree[end.device] += 1;
    }
    let leaves: Vec<&str> = (0..degree.len())
        .filter(|index| degree[*index] == 1)
        .map(|index| cabling.devices[index].name.as_str())
        .collect();
    if let [first, ..] = leaves.as_slice() {
        let message = format!("no device is known to be a host, yet {} have a single cable ({first}…)", leaves.len());
        diagnostics.push(start.warning(message).with_help("say which names are hosts' with a pattern, such as node*"));
    }
}

fn report_unfinished(
    cabling: &Cabling<'_>,
    faults: &[Fault],
    joined: &mut [usize],
    start: TextPosition<'_>,
    diagnostics: &mut Diagnostics,
) {
    let index_of: BTreeMap<&str, usize> =
        cabling.devices.iter().enumerate().rev().map(|(index, device)| (device.name.as_str(), index)).collect();
    for fault in faults {
        match fault {
            Fault::Unreachable { switch, from } => {
                let (Some(&switch), Some(&from)) = (index_of.get(switch.as_str()), index_of.get(from.as_str())) else {
                    continue;
                };
                // A cable that was refused for another reason was still meant to be there.
                if root(joined, switch) != root(joined, from) {
                    diagnostics.push(cabling.devices[switch].site.fault(fault));
                }
            }
            Fault::Empty if diagnostics.errors() > 0 => {}
            _ => diagnostics.push(start.fault(fault)),
        }
    }
}

fn join(joined: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(joined, a), root(joined, b));
    joined[a.max(b)] = a.min(b);
}

fn root(joined: &mut [usize], mut device: usize) -> usize {
    while joined[device] != device {
        joined[device] = joined[joined[device]];
        device = joined[device];
    }
    device
}

/// The text with every run of characters that names cannot hold replaced by one `-`, none at the ends.
pub(crate) fn usable_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || "_./+@#-".contains(c) {
            name.push(c);
        } else if !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= NAME_BYTES_MAX - 4 {
            break;
        }
    }
    name.trim_matches('-').to_owned()
}

/// Names for a format that has one name space for switches and hosts: a host that is called like a switch gets a
/// suffix. The first list is the switches', the second the hosts' and, behind them, the standby edges'.
pub(crate) fn distinct_names(topology: &Topology) -> (Vec<String>, Vec<String>) {
    let switches: Vec<String> = topology.switches().iter().map(|switch| switch.name.clone()).collect();
    let mut taken: BTreeSet<String> = switches.iter().cloned().collect();
    let stated = topology.hosts().iter().map(|host| &host.name);
    let stated = stated.chain(topology.standby_edges().iter().map(|edge| &edge.name));
    taken.extend(stated.clone().cloned());
    let switch_names: BTreeSet<&String> = switches.iter().collect();
    let hosts = stated.map(|name| {
        if !switch_names.contains(name) {
            return name.clone();
        }
        let mut candidates = (1..).map(|number| format!("{name}+{number}"));
        let fresh = candidates.find(|candidate| !taken.contains(candidate)).unwrap_or_else(|| name.clone());
        taken.insert(fresh.clone());
        fresh
    });
    let hosts = hosts.collect();
    (switches, hosts)
}
