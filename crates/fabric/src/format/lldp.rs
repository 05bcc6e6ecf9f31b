//! What devices see of each other: `lldpcli -f json0 show neighbors`, one file a device.
//!
//! ```text
//! sw1.json: swp1 sees sw2, its swp7      sw2.json: swp7 sees sw1, its swp1      a cable
//! sw1.json: swp9 sees node01, MAC …      (node01 has no file)                   a host
//! ```
//!
//! A file's device is named by a `show chassis` in the same file, else by the file name (`sw1.json`,
//! `sw1.neighbors.json`). Devices with a file are switches, unless a pattern of [`ImportOptions`] says otherwise;
//! a neighbour without one is a switch if it announces the capability of a bridge or router, else a host whose
//! address is its port id. Both ends of a cable must agree; `pair_sightings` says how. Announcements carry a port by
//! name or by address, with the name in its description, so the far file decides which of the two is meant.
//!
//! What hosts say of their bonds may be among the files; see `bonding`.
//!
//! Source: IEEE 802.1AB; `lldpcli(8)`, format `json0`, in which every value is a list.

use std::{collections::BTreeMap, net::IpAddr, rc::Rc};

use crate::{
    Mac, Topology,
    format::{
        bonding::{self, is_bonding},
        cabling::{Cabling, Device, Role, Sighting, pair_sightings, usable_name},
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
        import_options::ImportOptions,
        json::parse_json,
        node::{Node, Value},
    },
};

pub(crate) fn read<'a>(
    sources: &'a [Source<'a>],
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let mut reader = Reader { options, diagnostics, speakers: Vec::new(), neighbours: Vec::new() };
    let (bonds, sources): (Vec<_>, Vec<_>) = sources.iter().partition(|source| is_bonding(source.text()));
    if sources.is_empty() {
        let error = bonds.first()?.at(TextSpan::START).error("a bond alone is no cabling");
        diagnostics.push(error.with_help("name the files of lldpcli -f json0 show neighbors as well"));
        return None;
    }
    for source in &sources {
        match parse_json(source) {
            Ok(documents) => reader.read_file(source, &documents),
            Err(error) => reader.diagnostics.push(*error),
        }
    }
    let Reader { speakers, neighbours, .. } = reader;
    let mut devices: Vec<Device<'a>> = speakers.iter().map(|speaker| speaker.device.clone()).collect();
    let far = identify(&speakers, &neighbours, &mut devices);
    let sightings = sightings(&neighbours, &far, speakers.len());
    let is_host = |index: usize| match devices[index].stated {
        Some(role) => role == Role::Host,
        None => options.names_host(&devices[index].name) || devices[index].habit == Role::Host,
    };
    let mut cables = pair_sightings(sightings, &devices, is_host, diagnostics);
    let bonds: Vec<_> =
        bonds.into_iter().filter_map(|bond| bonding::read(bond, host_of_bond(bond.file()), diagnostics)).collect();
    bonding::apply(&bonds, &devices, &mut cables, diagnostics);
    let start = sources.first()?.at(TextSpan::START);
    Cabling { devices, cables }.build(start, options, diagnostics)
}

/// A device of which there is a file.
struct Speaker<'a> {
    device: Device<'a>,
    chassis_id: Option<String>,
}

/// One announcement that a device has heard.
struct Neighbour<'a> {
    speaker: usize,
    near_port: String,
    chassis_id: Option<String>,
    name: Option<String>,
    mgmt: Option<IpAddr>,
    is_switch: bool,
    port: PortId,
    site: TextPosition<'a>,
}

/// How a neighbour calls its port.
struct PortId {
    /// The names by which it may mean it, best first.
    names: Vec<String>,
    mac: Option<Mac>,
}

struct Reader<'a, 'd> {
    options: &'d ImportOptions,
    diagnostics: &'d mut Diagnostics,
    speakers: Vec<Speaker<'a>>,
    neighbours: Vec<Neighbour<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn read_file(&mut self, source: &'a Source<'a>, documents: &[Rc<Node>]) {
        let chassis = documents.iter().find_map(|document| {
            let local = document.get("local-chassis")?;
            local.items().first()?.get("chassis")?.items().first()
        });
        let name = chassis.and_then(|chassis| value_of(chassis, "name")).unwrap_or_else(|| stem(source.file()));
        let speaker = self.speaker(&usable_name(&name), source.at(TextSpan::START));
        if let Some(chassis) = chassis {
            let known = &mut self.speakers[speaker];
            known.chassis_id = value_of(chassis, "id");
            known.device.mgmt = management_address(chassis);
            known.device.mac = value_of(chassis, "id").and_then(|id| id.parse().ok());
        }
        let mut understood = chassis.is_some();
        for lldp in documents.iter().filter_map(|document| document.get("lldp")) {
            understood = true;
            if !matches!(lldp.value, Value::List(_)) {
                let error = source.at(lldp.place).error("this is lldpcli's json, whose shape varies");
                self.diagnostics.push(error.with_help("use lldpcli -f json0 show neighbors"));
                continue;
            }
            for port in lldp.items().iter().flat_map(|lldp| lldp.get("interface").map_or(&[][..], |list| list.items()))
            {
                self.read_port(source, speaker, port);
            }
        }
        if !understood {
            let error = source.at(TextSpan::START).error("there are neither neighbours nor a chassis in this file");
            self.diagnostics.push(error.with_help("use lldpcli -f json0 show neighbors"));
        }
    }

    fn speaker(&mut self, name: &str, site: TextPosition<'a>) -> usize {
        if let Some(index) = self.speakers.iter().position(|speaker| speaker.device.name == name) {
            return index;
        }
        let device = Device::new(name, site, Role::Switch);
        self.speakers.push(Speaker { device, chassis_id: None });
        self.speakers.len() - 1
    }

    fn read_port(&mut self, source: &'a Source<'a>, speaker: usize, port: &Node) {
        let Some(near_port) = port.get("name").and_then(|name| name.text()) else {
            self.diagnostics.push(source.at(port.place).error("this neighbour was heard on a port without a name"));
            return;
        };
        if self.options.ignores_port(near_port) {
            return;
        }
        let site = port.get("name").map_or(source.at(port.place), |name| source.at(name.place));
        let first = |key: &str| port.get(key).and_then(|list| list.items().first());
        let (Some(chassis), Some(far_port)) = (first("chassis"), first("port")) else {
            let error = site.error(format!("what {near_port} heard names no chassis and port"));
            self.diagnostics.push(error.with_help("use lldpcli -f json0 show neighbors"));
            return;
        };
        self.neighbours.push(Neighbour {
            speaker,
            near_port: near_port.to_owned(),
            chassis_id: value_of(chassis, "id"),
            name: value_of(chassis, "name").map(|name| usable_name(&name)).filter(|name| !name.is_empty()),
            mgmt: management_address(chassis),
            is_switch: forwards(chassis),
            port: port_id(far_port),
            site,
        });
    }
}

/// For each neighbour its position among the devices; those without a file are added.
fn identify<'a>(speakers: &[Speaker<'a>], neighbours: &[Neighbour<'a>], devices: &mut Vec<Device<'a>>) -> Vec<usize> {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_short: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, speaker) in speakers.iter().enumerate() {
        by_key.insert(speaker.device.name.clone(), index);
        by_short.entry(short(&speaker.device.name)).or_default().push(index);
        if let Some(id) = &speaker.chassis_id {
            by_key.entry(id.clone()).or_insert(index);
        }
    }
    let mut far = Vec::with_capacity(neighbours.len());
    for neighbour in neighbours {
        let keys = [neighbour.chassis_id.as_ref(), neighbour.name.as_ref()];
        let known = keys.into_iter().flatten().find_map(|key| by_key.get(key).copied());
        // Some devices announce their domain, others do not.
        let known = known.or_else(|| match by_short.get(&short(neighbour.name.as_deref()?))?.as_slice() {
            [only] => Some(*only),
            _ => None,
        });
        let index = known.unwrap_or_else(|| {
            let fallback = neighbour.chassis_id.as_deref().map(usable_name).unwrap_or_default();
            let name = neighbour.name.clone().unwrap_or(fallback);
            let habit = if neighbour.is_switch { Role::Switch } else { Role::Host };
            let key = neighbour.chassis_id.clone().unwrap_or_else(|| name.clone());
            by_key.insert(key, devices.len());
            devices.push(Device::new(name, neighbour.site, habit));
            devices.len() - 1
        });
        if devices[index].mgmt.is_none() {
            devices[index].mgmt = neighbour.mgmt;
        }
        far.push(index);
    }
    far
}

/// Decides which port each announcement means: one at which the far file sees this device, else one that the far
/// file has, else the announcement's best name.
fn sightings<'a>(neighbours: &[Neighbour<'a>], far: &[usize], speakers: usize) -> Vec<Sighting<'a>> {
    let mut heard: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for (index, neighbour) in neighbours.iter().enumerate() {
        heard.entry((neighbour.speaker, neighbour.near_port.as_str())).or_insert(index);
    }
    let mut sightings = Vec::with_capacity(neighbours.len());
    for (neighbour, &device) in neighbours.iter().zip(far) {
        let at = |name: &String| heard.get(&(device, name.as_str())).copied();
        let sees_back = |name: &&String| {
            at(name).is_some_and(|back| {
                far[back] == neighbour.speaker && neighbours[back].port.names.contains(&neighbour.near_port)
            })
        };
        let names = &neighbour.port.names;
        let port = (names.iter().find(sees_back))
            .or_else(|| names.iter().find(|name| at(name).is_some()))
            .or(names.first())
            .cloned()
            .unwrap_or_default();
        sightings.push(Sighting {
            near: (neighbour.speaker, neighbour.near_port.clone()),
            far: (device, port),
            rate_bps: None,
            macs: [None, neighbour.port.mac],
            site: neighbour.site,
            far_speaks: device < speakers,
        });
    }
    sightings
}

fn port_id(port: &Node) -> PortId {
    let id = port.get("id").and_then(|list| list.items().first());
    let kind = id.and_then(|id| id.get("type")).and_then(|kind| kind.text()).unwrap_or_default();
    let value = id.and_then(|id| id.get("value")).and_then(|value| value.text()).unwrap_or_default();
    let description = value_of(port, "descr").unwrap_or_default();
    let (names, mac) = match kind {
        "mac" => ([description, usable_name(value)], value.parse().ok()),
        _ => ([value.to_owned(), description], None),
    };
    PortId { names: names.into_iter().filter(|name| !name.is_empty()).collect(), mac }
}

/// `"key": [{"value": …}]`
fn value_of(owner: &Node, key: &str) -> Option<String> {
    let text = owner.get(key)?.items().first()?.get("value")?.text()?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn forwards(chassis: &Node) -> bool {
    let field = |capability: &Node, key: &str| capability.get(key).and_then(|value| value.text()).map(str::to_owned);
    chassis.get("capability").map_or(&[][..], |list| list.items()).iter().any(|capability| {
        matches!(field(capability, "type").as_deref(), Some("Bridge" | "Router"))
            && field(capability, "enabled").as_deref() == Some("true")
    })
}

/// The first management address that is more than link-local.
fn management_address(chassis: &Node) -> Option<IpAddr> {
    let addresses = chassis.get("mgmt-ip").map_or(&[][..], |list| list.items());
    let mut addresses = addresses.iter().filter_map(|address| address.get("value")?.text()?.parse().ok());
    addresses.find(|address| match address {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_loopback(),
        IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_loopback(),
    })
}

/// `dir/login1.bond0` is about login1.
fn host_of_bond(file: &str) -> String {
    let name = stem(file);
    match name.rsplit_once('.') {
        Some((host, ending)) if ending.starts_with("bond") && !host.is_empty() => host.to_owned(),
        _ => name,
    }
}

/// `dir/sw1.neighbors.json` is about sw1.
fn stem(file: &str) -> String {
    const ENDINGS: [&str; 8] =
        [".json", ".json0", ".txt", ".lldp", ".neighbors", ".neighbours", ".chassis", ".lldpcli"];
    let mut name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    while let Some(shorter) =
        ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|name| !name.is_empty())
    {
        name = shorter;
    }
    name.to_owned()
}
