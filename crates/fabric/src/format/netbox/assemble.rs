//! Records as devices and cables: which of a site's devices and cables are the fabric's.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    fields,
    media::rate_of,
    records::{Cable as CableRecord, Device as DeviceRecord, Far, Interface, Named, Records, Termination},
};
use crate::{
    LagNumber, Topology,
    format::{
        cabling::{Bundle, Cable, Cabling, Device, End, Role, usable_name},
        diagnostic::{Diagnostics, TextPosition},
        import_options::ImportOptions,
    },
};

/// Most names in a warning.
const NAMES_MAX: usize = 4;

pub(super) fn assemble<'a>(
    records: &Records<'a>,
    start: TextPosition<'a>,
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    for (missing, path) in [(records.devices.is_empty(), "devices"), (records.interfaces.is_empty(), "interfaces")] {
        if missing {
            let error = start.error(format!("there are no {path} in these files"));
            diagnostics.push(
                error.with_help(format!("save /api/dcim/{path}/?limit=1000 as well, and name all files at once")),
            );
        }
    }
    if records.devices.is_empty() || records.interfaces.is_empty() {
        return None;
    }
    let mut site = Site::new(records, options);
    let edges = site.edges(diagnostics);
    let cabling = site.cabling(&edges);
    site.warn(diagnostics);
    cabling.build(start, options, diagnostics)
}

/// One end of a cable: the device, by position, and what is known of the interface.
#[derive(Clone, Copy)]
struct Plug<'r, 'a> {
    device: usize,
    name: &'r str,
    interface: Option<&'r Interface<'a>>,
}

struct Edge<'r, 'a> {
    ends: [Plug<'r, 'a>; 2],
    site: TextPosition<'a>,
}

/// What is left out or assumed, counted, with the first place of each.
#[derive(Default)]
struct Remarks<'a> {
    left_out: BTreeMap<&'static str, (usize, TextPosition<'a>, String)>,
    /// Members of LAGs whose cables are not one link, by device and LAG.
    lags: BTreeMap<(usize, String), (TextPosition<'a>, Vec<String>)>,
    /// Types of switches that are no models, with the first switch of each.
    kinds: BTreeMap<String, TextPosition<'a>>,
}

/// The cables of a switch's LAG.
#[derive(Default)]
struct LagCables {
    /// Where they lead: devices, and their LAGs.
    targets: BTreeSet<(usize, Option<String>)>,
    cables: Vec<usize>,
}

struct Site<'r, 'a> {
    records: &'r Records<'a>,
    options: &'r ImportOptions,
    by_id: BTreeMap<u64, usize>,
    interface_by_id: BTreeMap<u64, &'r Interface<'a>>,
    is_switch: Vec<bool>,
    remarks: Remarks<'a>,
}

impl<'r, 'a> Site<'r, 'a> {
    fn new(records: &'r Records<'a>, options: &'r ImportOptions) -> Self {
        let is_switch = |device: &DeviceRecord<'_>| device.role.iter().any(|role| options.names_switch_role(role));
        Self {
            records,
            options,
            by_id: records.devices.iter().enumerate().map(|(index, device)| (device.id, index)).collect(),
            interface_by_id: records.interfaces.iter().map(|interface| (interface.id, interface)).collect(),
            is_switch: records.devices.iter().map(is_switch).collect(),
            remarks: Remarks::default(),
        }
    }

    /// The fabric's cables: between two switches or a switch and another device, once each, in the order of the files.
    fn edges(&mut self, diagnostics: &mut Diagnostics) -> Vec<Edge<'r, 'a>> {
        let (mut edges, mut seen) = (Vec::new(), BTreeSet::new());
        for interface in &self.records.interfaces {
            let Some(&device) = self.by_id.get(&interface.device) else { continue };
            let near = Plug { device, name: &interface.name, interface: Some(interface) };
            match &interface.far {
                Far::Unsaid | Far::Nowhere => {}
                Far::Planned(ends) => {
                    let fresh =
                        ends.iter().any(|far| seen.insert((interface.id.min(far.id), interface.id.max(far.id))));
                    if fresh && self.is_at_switch(&near, ends) {
                        self.leave_out("planned, not connected", interface.site, &near);
                    }
                }
                Far::Interfaces(ends) => match ends.as_slice() {
                    [far] => {
                        let fresh = seen.insert((interface.id.min(far.id), interface.id.max(far.id)));
                        if fresh {
                            self.add_edge(near, far, interface.site, &mut edges);
                        }
                    }
                    several if self.is_at_switch(&near, several) => {
                        let message = format!("{} leads to {} interfaces", self.label(&near), several.len());
                        diagnostics.push(interface.site.error(message).with_help(
                            "a cable of the fabric has two ends; give each branch of a breakout cable an interface of its own in NetBox",
                        ));
                    }
                    _ => {}
                },
            }
        }
        for cable in &self.records.cables {
            self.add_cable(cable, &mut seen, &mut edges, diagnostics);
        }
        edges
    }

    /// A cable between interfaces that do not say themselves where they lead.
    fn add_cable(
        &mut self,
        cable: &'r CableRecord<'a>,
        seen: &mut BTreeSet<(u64, u64)>,
        edges: &mut Vec<Edge<'r, 'a>>,
        diagnostics: &mut Diagnostics,
    ) {
        let [[a], [b]] = cable.ends.each_ref().map(Vec::as_slice) else { return };
        let is_traced = |end: &Termination| {
            let interface = self.interface_by_id.get(&end.object.id).filter(|_| end.is_interface);
            interface.is_some_and(|interface| !matches!(interface.far, Far::Unsaid))
        };
        if is_traced(a) || is_traced(b) || !(a.is_interface || b.is_interface) {
            return;
        }
        let (near, far) = if a.is_interface { (a, b) } else { (b, a) };
        let Some(near_plug) = self.plug(&near.object) else { return };
        if !far.is_interface {
            if self.is_switch[near_plug.device] {
                let message = format!(
                    "the cable at {} ends at {}, which is no interface",
                    self.label(&near_plug),
                    far.object.name
                );
                diagnostics.push(cable.site.error(message).with_help(
                    "where it leads on is in connected_endpoints of interfaces: save /api/dcim/interfaces/?limit=1000, without brief",
                ));
            }
            return;
        }
        if !cable.is_connected {
            self.leave_out("planned, not connected", cable.site, &near_plug);
        } else if seen.insert((near.object.id.min(far.object.id), near.object.id.max(far.object.id))) {
            self.add_edge(near_plug, &far.object, cable.site, edges);
        }
    }

    fn add_edge(&mut self, near: Plug<'r, 'a>, far: &'r Named, site: TextPosition<'a>, edges: &mut Vec<Edge<'r, 'a>>) {
        let Some(far_plug) = self.plug(far) else {
            if self.is_switch[near.device] {
                self.leave_out("to devices that are not in these files", site, &near);
            }
            return;
        };
        let ends = [near, far_plug];
        if !ends.iter().any(|end| self.is_switch[end.device]) {
            return;
        }
        let is_for_management = |end: &Plug<'_, '_>| {
            end.interface.is_some_and(|interface| interface.is_for_management) || self.options.ignores_port(end.name)
        };
        if let Some(end) = ends.iter().find(|end| is_for_management(end)) {
            self.leave_out("at ports for management, or that --ignore-ports names", site, end);
            return;
        }
        edges.push(Edge { ends, site });
    }

    fn plug(&self, object: &'r Named) -> Option<Plug<'r, 'a>> {
        let interface = self.interface_by_id.get(&object.id).copied();
        let device = *self.by_id.get(&interface.map_or(object.device, |interface| interface.device))?;
        Some(Plug { device, name: interface.map_or(&object.name, |interface| &interface.name), interface })
    }

    fn is_at_switch(&self, near: &Plug<'_, '_>, ends: &'r [Named]) -> bool {
        let is_switch = |end: &'r Named| self.plug(end).is_some_and(|plug| self.is_switch[plug.device]);
        self.is_switch[near.device] || ends.iter().any(is_switch)
    }

    fn label(&self, plug: &Plug<'_, '_>) -> String {
        format!("{}:{}", self.records.devices[plug.device].name, plug.name)
    }

    fn leave_out(&mut self, why: &'static str, site: TextPosition<'a>, plug: &Plug<'_, '_>) {
        let label = self.label(plug);
        self.remarks.left_out.entry(why).or_insert((0, site, label)).0 += 1;
    }

    /// Switches, then a device for each port of each machine.
    fn cabling(&mut self, edges: &[Edge<'r, 'a>]) -> Cabling<'a> {
        let mut plugs: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (number, edge) in edges.iter().enumerate() {
            for (side, end) in edge.ends.iter().enumerate() {
                plugs.entry(end.device).or_default().push((number, side));
            }
        }
        let (further, addresses) = (self.further_macs(), self.addresses());
        let bundles = self.bundles(edges);
        let mut devices: Vec<Device<'a>> = Vec::new();
        let mut place: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (index, own) in &plugs {
            let record = &self.records.devices[*index];
            let name = usable_name(&record.name);
            if self.is_switch[*index] {
                place.extend(own.iter().map(|plug| (*plug, devices.len())));
                devices.push(self.switch(record, name));
                continue;
            }
            // A port of its own for each cable, or each LAG.
            let is_first = |at: &usize| {
                bundles[own[*at].0].is_none_or(|of| own[..*at].iter().all(|(other, _)| bundles[*other] != Some(of)))
            };
            let ports = (0..own.len()).filter(is_first).count();
            for (at, (number, side)) in own.iter().enumerate() {
                let plug = &edges[*number].ends[*side];
                if !is_first(&at) {
                    let first = own.iter().find(|(other, _)| bundles[*other] == bundles[*number]);
                    if let Some(device) = first.and_then(|first| place.get(first).copied()) {
                        place.insert((*number, *side), device);
                    }
                    continue;
                }
                let (host, machine) = match ports {
                    1 => (name.clone(), None),
                    _ => (format!("{name}/{}", usable_name(plug.name)), Some(name.clone())),
                };
                let site = plug.interface.map_or(record.site, |interface| interface.site);
                let mut device = Device::new(host, site, Role::Host);
                device.machine = machine;
                if let Some(interface) = self.addressed(plug, bundles[*number].is_some()) {
                    device.mac = interface.mac.or_else(|| further.get(&interface.id)?.first().copied());
                    let all = interface.further_macs.iter().chain(further.get(&interface.id).into_iter().flatten());
                    let others: BTreeSet<_> = all.copied().filter(|mac| Some(*mac) != device.mac).collect();
                    device.further_macs = others.into_iter().collect();
                    device.address = addresses.get(&interface.id).copied();
                    fields::take(&interface.custom, &mut device);
                }
                place.insert((*number, *side), devices.len());
                devices.push(device);
            }
        }
        let end = |number: usize, side: usize, edge: &Edge<'r, 'a>| {
            let plug = &edge.ends[side];
            let site = plug.interface.map_or(edge.site, |interface| interface.site);
            End { device: place[&(number, side)], port: plug.name.to_owned(), mac: None, bond: None, site }
        };
        // Of a LAG the first cable has the groups of all.
        let mut of_lags: BTreeMap<usize, Vec<&Edge<'r, 'a>>> = BTreeMap::new();
        for (edge, bundle) in edges.iter().zip(&bundles) {
            bundle.iter().for_each(|bundle| of_lags.entry(*bundle).or_default().push(edge));
        }
        let cable = |(number, edge): (usize, &Edge<'r, 'a>)| Cable {
            ends: [end(number, 0, edge), end(number, 1, edge)],
            rate_bps: edge.ends.iter().filter_map(rate_bps).min(),
            bundle: bundles[number].map(|number| Bundle { number, lags: edge.ends.each_ref().map(lag_number) }),
            groups: groups_of(of_lags.get(&number).map_or(&[edge], Vec::as_slice)),
            site: edge.site,
        };
        Cabling { cables: edges.iter().enumerate().map(cable).collect(), devices }
    }

    /// `bundles[edge]`: the number of the LAG that a cable is one of. Its cables are one link where all of them lead from one LAG of a
    /// switch to one LAG of another switch, or to one machine; other LAGs are remarked upon.
    fn bundles(&mut self, edges: &[Edge<'r, 'a>]) -> Vec<Option<usize>> {
        let lag = |end: &Plug<'r, 'a>| end.interface.and_then(|interface| Some((end.device, interface.lag.clone()?)));
        let mut leads: BTreeMap<(usize, String), LagCables> = BTreeMap::new();
        for (number, edge) in edges.iter().enumerate() {
            for (near, far) in [(&edge.ends[0], &edge.ends[1]), (&edge.ends[1], &edge.ends[0])] {
                let Some(own) = lag(near).filter(|_| self.is_switch[near.device]) else { continue };
                let to = lag(far).filter(|_| self.is_switch[far.device]).map(|(_, lag)| lag);
                let own = leads.entry(own).or_default();
                own.targets.insert((far.device, to));
                own.cables.push(number);
            }
        }
        let is_link = |LagCables { targets, cables }: &LagCables| {
            let [(device, lag)] = targets.iter().collect::<Vec<_>>()[..] else { return false };
            let rates: BTreeSet<Option<u64>> =
                cables.iter().map(|cable| edges[*cable].ends.iter().filter_map(rate_bps).min()).collect();
            // The other LAG has the same cables, and no others.
            let both =
                lag.as_ref().map(|lag| leads.get(&(*device, lag.clone())).is_some_and(|other| other.cables == *cables));
            rates.len() == 1 && both.unwrap_or(!self.is_switch[*device])
        };
        let mut bundles = vec![None; edges.len()];
        let mut apart = Vec::new();
        for (own, lead) in &leads {
            match is_link(lead) {
                true => lead.cables.iter().for_each(|cable| bundles[*cable] = Some(lead.cables[0])),
                false => apart.push((own.clone(), lead.cables.clone())),
            }
        }
        for ((device, lag), cables) in apart {
            for end in cables.iter().flat_map(|cable| &edges[*cable].ends).filter(|end| end.device == device) {
                let site = end.interface.map_or(edges[cables[0]].site, |interface| interface.site);
                let of = self.remarks.lags.entry((device, lag.clone())).or_insert_with(|| (site, Vec::new()));
                of.1.push(end.name.to_owned());
            }
        }
        bundles
    }

    /// The interface that has the addresses of a machine's port: of several as one, that of the LAG.
    fn addressed(&self, plug: &Plug<'r, 'a>, is_bundled: bool) -> Option<&'r Interface<'a>> {
        let own = plug.interface?;
        let is_lag = |other: &&Interface<'_>| other.device == own.device && Some(&other.name) == own.lag.as_ref();
        let lag = self.records.interfaces.iter().find(is_lag).filter(|_| is_bundled);
        lag.or(Some(own))
    }

    fn switch(&mut self, record: &DeviceRecord<'a>, name: String) -> Device<'a> {
        let mut device = Device::new(name, record.site, Role::Switch);
        device.stated = Some(Role::Switch);
        device.groups.clone_from(&record.groups);
        device.mgmt = record.primary_address.as_deref().and_then(host_of);
        let known = record.kind.iter().find(|kind| self.options.models.by_name(kind).is_some());
        device.model = known.cloned();
        if known.is_none() {
            let [slug, model] = &record.kind;
            let kind = if slug.is_empty() { model } else { slug };
            self.remarks.kinds.entry(kind.clone()).or_insert(record.site);
        }
        device
    }

    /// Addresses that are listed apart from interfaces.
    fn further_macs(&self) -> BTreeMap<u64, Vec<crate::Mac>> {
        let mut macs: BTreeMap<u64, Vec<crate::Mac>> = BTreeMap::new();
        self.records.macs.iter().for_each(|(interface, mac)| macs.entry(*interface).or_default().push(*mac));
        macs
    }

    /// The first IP address of each interface.
    fn addresses(&self) -> BTreeMap<u64, std::net::IpAddr> {
        let mut addresses = BTreeMap::new();
        for (interface, address) in &self.records.addresses {
            if let Some(address) = host_of(address) {
                addresses.entry(*interface).or_insert(address);
            }
        }
        addresses
    }

    fn warn(self, diagnostics: &mut Diagnostics) {
        for (why, (count, site, first)) in self.remarks.left_out {
            let message = match count {
                1 => format!("1 cable is left out: {why} ({first})"),
                _ => format!("{count} cables are left out: {why} (the first: {first})"),
            };
            diagnostics.push(site.warning(message));
        }
        for ((device, lag), (site, members)) in self.remarks.lags {
            let name = &self.records.devices[device].name;
            let message = format!(
                "{name}: {} {} of the LAG {lag}",
                members.join(", "),
                if members.len() == 1 { "is a member" } else { "are members" }
            );
            diagnostics.push(site.warning(message).with_help(
                "its cables do not all lead from one LAG to one LAG, or one machine, at one rate: each is taken by itself; remove the LAG, or \
                 write lags: into the topology",
            ));
        }
        if let Some((_, site)) = self.remarks.kinds.first_key_value() {
            let kinds: Vec<&str> = self.remarks.kinds.keys().map(String::as_str).collect();
            let more = if kinds.len() > NAMES_MAX { " …" } else { "" };
            let named = kinds[..kinds.len().min(NAMES_MAX)].join(", ");
            let message =
                format!("no model of a switch is called {named}{more}: such switches are taken for generic ones");
            diagnostics.push(site.warning(message).with_help(
                "write model: into the topology (docs/devices.md lists the models), or describe yours in a file of the folder models beside it",
            ));
        }
    }
}

/// The number of the LAG that an interface is a member of, as far as its name says it.
fn lag_number(plug: &Plug<'_, '_>) -> Option<LagNumber> {
    LagNumber::at_end_of(plug.interface?.lag.as_deref()?)
}

/// The groups that any end of these cables names, each once.
fn groups_of(edges: &[&Edge<'_, '_>]) -> Vec<String> {
    let ends = edges.iter().flat_map(|edge| &edge.ends).filter_map(|end| end.interface);
    let mut seen = BTreeSet::new();
    ends.flat_map(|interface| &interface.groups).filter(|group| seen.insert(*group)).cloned().collect()
}

/// What NetBox says of the interface's rate: its speed, else that of its type.
fn rate_bps(plug: &Plug<'_, '_>) -> Option<u64> {
    let interface = plug.interface?;
    let speed = interface.rate_kbps.filter(|speed| *speed > 0).and_then(|speed| speed.checked_mul(1000));
    speed.filter(|speed| *speed <= RATE_BPS_MAX).or_else(|| rate_of(&interface.kind))
}

/// The fastest rate that the native format takes.
const RATE_BPS_MAX: u64 = 100_000_000_000_000;

/// The address of `192.0.2.1/24`.
fn host_of(address: &str) -> Option<std::net::IpAddr> {
    address.split('/').next()?.parse().ok()
}
