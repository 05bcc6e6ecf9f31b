//! Pages, lists and objects of lists as records, each with its place.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::fields::{FIELDS, GROUPS, Values};
use crate::{
    Mac,
    format::{
        cabling::read_groups,
        diagnostic::{Diagnostics, Source, TextPosition},
        json::parse_json,
        node::{Node, Value},
    },
};

/// What NetBox knows, by its numbers.
#[derive(Default)]
pub(super) struct Records<'a> {
    /// In the order of the files.
    pub devices: Vec<Device<'a>>,
    /// In the order of the files.
    pub interfaces: Vec<Interface<'a>>,
    pub cables: Vec<Cable<'a>>,
    /// Station addresses of interfaces: the interface, the address.
    pub macs: Vec<(u64, Mac)>,
    /// IP addresses of interfaces as NetBox writes them, with a prefix length.
    pub addresses: Vec<(u64, String)>,
}

pub(super) struct Device<'a> {
    pub id: u64,
    pub name: String,
    /// Name and slug of its role.
    pub role: [String; 2],
    /// Slug and name of its type.
    pub kind: [String; 2],
    pub primary_address: Option<String>,
    /// Groups of the device, if it is a switch.
    pub groups: Vec<String>,
    pub site: TextPosition<'a>,
}

pub(super) struct Interface<'a> {
    pub id: u64,
    pub device: u64,
    pub name: String,
    pub rate_kbps: Option<u64>,
    pub kind: String,
    pub mac: Option<Mac>,
    pub further_macs: Vec<Mac>,
    /// The LAG that it is a member of.
    pub lag: Option<String>,
    pub is_for_management: bool,
    pub custom: Values,
    /// Groups of the link that the interface is at.
    pub groups: Vec<String>,
    pub far: Far,
    pub site: TextPosition<'a>,
}

/// Where NetBox says that an interface's cables lead.
pub(super) enum Far {
    /// It does not say: the file is brief, or of another source.
    Unsaid,
    /// Nowhere, or to what is no interface.
    Nowhere,
    /// To interfaces, by a path that is not connected throughout.
    Planned(Vec<Named>),
    /// To interfaces.
    Interfaces(Vec<Named>),
}

/// An interface as other objects mention it.
#[derive(Clone)]
pub(super) struct Named {
    pub id: u64,
    pub device: u64,
    pub name: String,
}

pub(super) struct Cable<'a> {
    /// What each end is plugged into.
    pub ends: [Vec<Termination>; 2],
    pub is_connected: bool,
    pub site: TextPosition<'a>,
}

pub(super) struct Termination {
    pub is_interface: bool,
    pub object: Named,
}

/// The kinds of objects that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Device,
    Interface,
    Cable,
    MacAddress,
    IpAddress,
}

impl Kind {
    /// Each kind's path in the API, its key in an object of lists, and a key that only its objects have.
    const ALL: [(Self, &str, &str, &str); 5] = [
        (Self::Device, "/dcim/devices/", "devices", "device_type"),
        (Self::Interface, "/dcim/interfaces/", "interfaces", "connected_endpoints"),
        (Self::Cable, "/dcim/cables/", "cables", "a_terminations"),
        (Self::MacAddress, "/dcim/mac-addresses/", "mac-addresses", "mac_address"),
        (Self::IpAddress, "/ipam/ip-addresses/", "ip-addresses", "address"),
    ];

    fn path(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn of(object: &Node) -> Option<Self> {
        let url = object.get("url").and_then(|url| url.text()).unwrap_or_default();
        let by_path = Self::ALL.iter().find(|(_, path, ..)| url.contains(path));
        by_path.or_else(|| Self::ALL.iter().find(|(.., key)| object.get(key).is_some())).map(|(kind, ..)| *kind)
    }
}

pub(super) fn read<'a>(sources: &'a [Source<'a>], diagnostics: &mut Diagnostics) -> Records<'a> {
    let mut reader =
        Reader { diagnostics, records: Records::default(), seen: BTreeSet::new(), stated: BTreeMap::new() };
    for source in sources {
        match parse_json(source) {
            Ok(documents) => documents.iter().for_each(|document| reader.read_document(source, document)),
            Err(error) => reader.diagnostics.push(*error),
        }
    }
    reader.check_counts();
    reader.records
}

struct Reader<'a, 'd> {
    diagnostics: &'d mut Diagnostics,
    records: Records<'a>,
    /// Objects that were read: pages that were saved at different times overlap.
    seen: BTreeSet<(Kind, u64)>,
    /// The most objects of a kind that a page says there are.
    stated: BTreeMap<Kind, (u64, TextPosition<'a>)>,
}

const WAY_OUT: &str =
    "save what NetBox's REST API answers, such as /api/dcim/devices/?limit=1000 and /api/dcim/interfaces/?limit=1000";

impl<'a> Reader<'a, '_> {
    fn read_document(&mut self, source: &'a Source<'a>, document: &Node) {
        if let Some(detail) = document.get("detail").and_then(|detail| detail.text()) {
            let error = source.at(document.place).error(format!("this is a refusal of NetBox: {detail}"));
            self.diagnostics.push(error.with_help("save the answer again, with a token that may read"));
            return;
        }
        if matches!(document.value, Value::List(_)) || document.get("results").is_some() {
            self.read_list(source, document, None);
            return;
        }
        let mut understood = false;
        for (key, value) in document.entries() {
            let name = key.key().unwrap_or_default().replace('_', "-");
            if let Some((kind, ..)) = Kind::ALL.iter().find(|(_, _, word, _)| *word == name) {
                understood = true;
                self.read_list(source, value, Some(*kind));
            }
        }
        if !understood {
            let error = source.at(document.place).error("this is no page, no list and no object of lists of NetBox's");
            self.diagnostics.push(error.with_help(WAY_OUT));
        }
    }

    /// A list, or a page with its list under `results`.
    fn read_list(&mut self, source: &'a Source<'a>, list: &Node, kind: Option<Kind>) {
        let results = list.get("results");
        let objects = results.map_or(list, |results| results);
        if !matches!(objects.value, Value::List(_)) {
            let error = source.at(objects.place).error(format!("expected a list of objects, found {}", objects.kind()));
            self.diagnostics.push(error.with_help(WAY_OUT));
            return;
        }
        for object in objects.items() {
            let Some(kind) = kind.or_else(|| Kind::of(object)) else {
                let error = source.at(object.place).error("what kind of object this is cannot be told");
                self.diagnostics.push(error.with_help(WAY_OUT));
                return;
            };
            if let (Some(count), true) = (number(list, "count"), results.is_some()) {
                let stated = self.stated.entry(kind).or_insert((count, source.at(list.place)));
                stated.0 = stated.0.max(count);
            }
            self.read_object(source, object, kind);
        }
    }

    fn read_object(&mut self, source: &'a Source<'a>, object: &Rc<Node>, kind: Kind) {
        let site = object.get("name").map_or(source.at(object.place), |name| source.at(name.place));
        let Some(id) = number(object, "id") else {
            self.diagnostics.push(site.error("this object has no id").with_help(WAY_OUT));
            return;
        };
        if !self.seen.insert((kind, id)) {
            return;
        }
        match kind {
            Kind::Device => {
                let role = object.get("role").or_else(|| object.get("device_role"));
                let words = |owner: Option<&Rc<Node>>, keys: [&str; 2]| {
                    keys.map(|key| owner.and_then(|owner| text(owner, key)).unwrap_or_default())
                };
                let primary = ["primary_ip", "primary_ip4", "primary_ip6"]
                    .iter()
                    .find_map(|key| object.get(key)?.get("address")?.text());
                let groups = self.groups(source, object);
                self.records.devices.push(Device {
                    id,
                    name: text(object, "name")
                        .or_else(|| text(object, "display"))
                        .unwrap_or_else(|| format!("device-{id}")),
                    role: words(role, ["name", "slug"]),
                    kind: words(object.get("device_type"), ["slug", "model"]),
                    primary_address: primary.map(str::to_owned),
                    groups,
                    site,
                });
            }
            Kind::Interface => self.read_interface(source, object, id, site),
            Kind::Cable => {
                let ends = ["a", "b"].map(|side| terminations(object, side));
                let status =
                    object.get("status").and_then(|status| choice(status)).unwrap_or_else(|| "connected".to_owned());
                self.records.cables.push(Cable { ends, is_connected: status == "connected", site });
            }
            Kind::MacAddress => {
                let mac = object.get("mac_address").map(|value| self.mac(source, value));
                if let (Some(Some(mac)), Some(interface)) = (mac, assigned_interface(object)) {
                    self.records.macs.push((interface, mac));
                }
            }
            Kind::IpAddress => {
                if let (Some(address), Some(interface)) = (text(object, "address"), assigned_interface(object)) {
                    self.records.addresses.push((interface, address));
                }
            }
        }
    }

    fn read_interface(&mut self, source: &'a Source<'a>, object: &Node, id: u64, site: TextPosition<'a>) {
        let (Some(device), Some(name)) =
            (object.get("device").and_then(|device| number(device, "id")), text(object, "name"))
        else {
            let error = site.error("this interface has no name or no device");
            self.diagnostics.push(error.with_help(WAY_OUT));
            return;
        };
        let primary = object.get("primary_mac_address").and_then(|primary| primary.get("mac_address"));
        let mac = primary.or_else(|| object.get("mac_address")).filter(|mac| !mac.is_null());
        let mac = mac.and_then(|mac| self.mac(source, mac));
        let further = object.get("mac_addresses").map_or(&[][..], |list| list.items());
        let further: Vec<Mac> =
            further.iter().filter_map(|other| self.mac(source, other.get("mac_address")?)).collect();
        let (custom, groups) = (self.custom(source, object), self.groups(source, object));
        self.records.interfaces.push(Interface {
            id,
            device,
            name,
            rate_kbps: number(object, "speed"),
            kind: object.get("type").and_then(|kind| choice(kind)).unwrap_or_default(),
            mac: mac.or(further.first().copied()),
            further_macs: further,
            lag: object.get("lag").and_then(|lag| text(lag, "name")),
            is_for_management: object.get("mgmt_only").and_then(|only| only.text()) == Some("true"),
            custom,
            groups,
            far: far(object),
            site,
        });
    }

    fn custom(&mut self, source: &'a Source<'a>, interface: &Node) -> Values {
        FIELDS.each_ref().map(|field| {
            let node = interface.get("custom_fields")?.get(field.name).filter(|node| !node.is_null())?;
            let number = node.text().and_then(|text| text.parse().ok()).filter(|number| field.bounds.contains(number));
            if number.is_none() {
                let (least, most) = field.bounds.clone().into_inner();
                let found = node.text().unwrap_or_else(|| node.kind());
                let message = format!("{} is a number from {least} to {most} (found {found})", field.name);
                self.diagnostics.push(source.at(node.place).error(message));
            }
            number
        })
    }

    /// Names in the custom field for groups, each once.
    fn groups(&mut self, source: &'a Source<'a>, object: &Node) -> Vec<String> {
        let node = object.get("custom_fields").and_then(|fields| fields.get(GROUPS)).filter(|node| !node.is_null());
        let Some(node) = node else { return Vec::new() };
        let Some(text) = node.text() else {
            let message = format!("{GROUPS} is names of groups, separated by spaces (found {})", node.kind());
            self.diagnostics.push(source.at(node.place).error(message));
            return Vec::new();
        };
        let mut names = read_groups(text);
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    fn mac(&mut self, source: &'a Source<'a>, node: &Node) -> Option<Mac> {
        let text = node.text()?;
        let mac = text.parse().ok();
        if mac.is_none() {
            self.diagnostics.push(source.at(node.place).error(format!("{text} is not an Ethernet address")));
        }
        mac
    }

    /// A page says how many objects there are on all of them.
    fn check_counts(&mut self) {
        for (kind, (count, site)) in std::mem::take(&mut self.stated) {
            let read = self.seen.range((kind, 0)..=(kind, u64::MAX)).count() as u64;
            if read < count {
                let message = format!("these files have {read} of {count} objects of {}", kind.path());
                let help = "save the other pages too: ?limit=1000&offset=0, ?limit=1000&offset=1000 and so on";
                self.diagnostics.push(site.error(message).with_help(help));
            }
        }
    }
}

fn text(owner: &Node, key: &str) -> Option<String> {
    owner.get(key)?.text().map(str::to_owned).filter(|text| !text.is_empty())
}

fn number(owner: &Node, key: &str) -> Option<u64> {
    owner.get(key)?.text()?.parse().ok()
}

/// `{"value": "1000base-t", "label": …}`, or the value alone.
fn choice(node: &Node) -> Option<String> {
    node.get("value").map_or(node, |value| value).text().map(str::to_owned)
}

fn assigned_interface(object: &Node) -> Option<u64> {
    let is_interface = object.get("assigned_object_type")?.text()? == "dcim.interface";
    number(object, "assigned_object_id").filter(|_| is_interface)
}

/// Before 3.3 there was one endpoint.
fn far(object: &Node) -> Far {
    let several = object.get("connected_endpoints");
    let Some(endpoints) = several.or_else(|| object.get("connected_endpoint")) else { return Far::Unsaid };
    let field = |key: &str| object.get(&format!("connected_endpoint{}{key}", if several.is_some() { "s" } else { "" }));
    if field("_type").is_some_and(|kind| kind.text() != Some("dcim.interface")) {
        return Far::Nowhere;
    }
    let found: Vec<Named> = match &endpoints.value {
        Value::List(items) => items.iter().filter_map(|item| named(item)).collect(),
        _ => named(endpoints).into_iter().collect(),
    };
    match found.len() {
        0 => Far::Nowhere,
        _ if field("_reachable").is_some_and(|reachable| reachable.text() == Some("false")) => Far::Planned(found),
        _ => Far::Interfaces(found),
    }
}

fn named(node: &Node) -> Option<Named> {
    let device = node.get("device");
    Some(Named {
        id: number(node, "id")?,
        device: device.and_then(|device| number(device, "id")).unwrap_or(u64::MAX),
        name: text(node, "name").unwrap_or_default(),
    })
}

/// `a_terminations`, or before 3.3 `termination_a`.
fn terminations(cable: &Node, side: &str) -> Vec<Termination> {
    let of = |kind: Option<&str>, object: &Node, id: Option<u64>| {
        let mut object = named(object)?;
        object.id = id.unwrap_or(object.id);
        Some(Termination { is_interface: kind == Some("dcim.interface"), object })
    };
    if let Some(list) = cable.get(&format!("{side}_terminations")) {
        let read = |item: &Rc<Node>| {
            of(item.get("object_type").and_then(|kind| kind.text()), item.get("object")?, number(item, "object_id"))
        };
        return list.items().iter().filter_map(read).collect();
    }
    let key = format!("termination_{side}");
    let kind = cable.get(&format!("{key}_type")).and_then(|kind| kind.text());
    cable.get(&key).and_then(|object| of(kind, object, number(cable, &format!("{key}_id")))).into_iter().collect()
}
