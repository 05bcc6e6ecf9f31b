//! GraphML: cabling for graph tools.
//!
//! ```xml
//! <node id="s0"><data key="name">sw1</data><data key="role">switch</data></node>
//! <edge source="s0" target="s1"><data key="source_port">g23</data><data key="target_port">g23</data></edge>
//! ```
//!
//! Data are known by their keys' `attr.name`: `name` (else `label`, else the node's id), `role`, `model`, `mgmt`,
//! `mac`, `address` and `groups` of nodes; `source_port`, `target_port`, `rate` and `groups` of edges; GraphML's own `sourceport` and
//! `targetport` count as well. A node is a host if its role says so, if it has a `mac`, or by a pattern of
//! [`ImportOptions`]. Graphs from collections name no ports: theirs are numbered in order, with a warning.
//!
//! Source: the GraphML specification, graphml.graphdrawing.org.

use std::{collections::BTreeMap, fmt::Write as _, net::IpAddr, str::FromStr};

use quick_xml::{
    Reader as XmlReader, XmlVersion,
    escape::escape,
    events::{BytesStart, Event},
};

use crate::{
    DEFAULT_RATE_BPS, Mac, SwitchId, Topology,
    format::{
        cabling::{
            Cable, Cabling, Device, End, HOST_FACTS, Role, groups_of_cable, groups_text, host_facts, read_groups,
            standby_edge_facts, usable_name,
        },
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
        import_options::ImportOptions,
    },
    format_rate, parse_rate,
};

/// Longest text of one datum that is kept, in bytes.
const DATUM_BYTES_MAX: usize = 1024;

pub(crate) fn read<'a>(
    source: &'a Source<'a>,
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let graph = parse(source, diagnostics)?;
    let mut cabling = Cabling::default();
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for item in graph.iter().filter(|item| item.kind == ItemKind::Node) {
        let Some(id) = item.get("id") else {
            diagnostics.push(item.site.error("a node has an id"));
            continue;
        };
        if by_id.contains_key(id) {
            diagnostics.push(item.site.error(format!("node {id} is defined twice")));
            continue;
        }
        by_id.insert(id, cabling.devices.len());
        let label = item.get("name").map(str::to_owned).or_else(|| item.get("label").map(usable_name));
        let mut name = label.filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_owned());
        if item.get("name").is_none() && by_name.contains_key(&name) {
            name = format!("{name}-{}", usable_name(id));
        }
        by_name.insert(name.clone(), cabling.devices.len());
        let mut device = Device::new(name, item.site, Role::Switch);
        device.mac = parsed::<Mac>(item, "mac", "an Ethernet address", diagnostics);
        device.mgmt = parsed::<IpAddr>(item, "mgmt", "an IP address", diagnostics);
        device.address = parsed::<IpAddr>(item, "address", "an IP address", diagnostics);
        device.model = item.get("model").map(str::to_owned);
        device.groups = item.get("groups").map(read_groups).unwrap_or_default();
        device.stated = match item.get("role") {
            Some("host" | "server") => Some(Role::Host),
            Some("switch") => Some(Role::Switch),
            _ => device.mac.map(|_| Role::Host),
        };
        for key in HOST_FACTS {
            let taken = item.get(key).map_or(Ok(()), |text| device.take_host_fact(key, text));
            taken.unwrap_or_else(|wrong| diagnostics.push(item.site.error(wrong)));
        }
        cabling.devices.push(device);
    }
    let mut numberless = None;
    let mut numbered = vec![0_usize; cabling.devices.len()];
    for item in graph.iter().filter(|item| item.kind == ItemKind::Edge) {
        let rate = item.get("rate").map(parse_rate).transpose();
        let rate_bps = rate.map_err(|error| diagnostics.push(item.site.error(error.to_string()))).ok().flatten();
        let mut end = |side: &str, keys: [&str; 2]| {
            let id = item.get(side);
            let Some(&device) = id.and_then(|id| by_id.get(id)) else {
                let id = id.unwrap_or_default();
                diagnostics.push(item.site.error(format!("this edge's {side} {id:?} is no node")));
                return None;
            };
            let port = keys.iter().find_map(|key| item.get(key)).map_or_else(
                || {
                    numberless = numberless.or(Some(item.site));
                    numbered[device] += 1;
                    numbered[device].to_string()
                },
                str::to_owned,
            );
            Some(End { device, port, mac: None, bond: None, site: item.site })
        };
        let ends = (end("source", ["source_port", "sourceport"]), end("target", ["target_port", "targetport"]));
        if let (Some(a), Some(b)) = ends {
            let groups = item.get("groups").map(read_groups).unwrap_or_default();
            cabling.cables.push(Cable { ends: [a, b], rate_bps, bundle: None, groups, site: item.site });
        }
    }
    if let Some(site) = numberless {
        let warning = site.warning("this edge and perhaps others name no port; such ports are numbered in order");
        diagnostics.push(warning.with_help("give edges the data source_port and target_port"));
    }
    cabling.build(source.at(TextSpan::START), options, diagnostics)
}

/// Writes a topology; [`import`](crate::format::exchange::import) reads the same cabling back.
pub fn write_graphml(topology: &Topology) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    let keys = [("node", ["name", "role", "model", "mgmt", "mac", "address"].as_slice())];
    let edge_keys = [("edge", ["source_port", "target_port", "rate"].as_slice())];
    for (owner, names) in keys.into_iter().chain(edge_keys) {
        for name in names {
            let _ = writeln!(text, "  <key id=\"{name}\" for=\"{owner}\" attr.name=\"{name}\" attr.type=\"string\"/>");
        }
    }
    text.push_str("  <graph id=\"fabric\" edgedefault=\"undirected\">\n");
    for (index, switch) in topology.switches().iter().enumerate() {
        let model = Some(switch.model.name.clone()).filter(|model| model != "generic");
        let mgmt = switch.mgmt.map(|mgmt| mgmt.to_string());
        let data = [
            ("name", Some(switch.name.clone())),
            ("role", Some("switch".to_owned())),
            ("model", model),
            ("mgmt", mgmt),
            ("groups", groups_text(topology, |group| group.switches.contains(&SwitchId::new(index)))),
        ];
        let _ = writeln!(text, "    <node id=\"s{index}\">{}</node>", data_elements(&data));
    }
    for (index, host) in topology.hosts().iter().enumerate() {
        let address = host.address.map(|address| address.to_string());
        let mut data = vec![
            ("name", Some(host.name.clone())),
            ("role", Some("host".to_owned())),
            ("mac", (!host.edge).then(|| host.mac.to_string())),
            ("address", address),
        ];
        data.extend(host_facts(topology, host).into_iter().map(|(key, fact)| (key, Some(fact))));
        let _ = writeln!(text, "    <node id=\"h{index}\">{}</node>", data_elements(&data));
    }
    for (index, edge) in topology.standby_edges().iter().enumerate() {
        let mut data = vec![("name", Some(edge.name.clone())), ("role", Some("host".to_owned()))];
        data.extend(standby_edge_facts(edge).into_iter().map(|(key, fact)| (key, Some(fact))));
        let _ = writeln!(text, "    <node id=\"e{index}\">{}</node>", data_elements(&data));
    }
    let end = |port| {
        let port = topology.port(port);
        (format!("s{}", port.switch.index()), port.name.clone())
    };
    let links = topology.switch_cables();
    let links = links.map(|(a, b, rate_bps)| (end(a), end(b), rate_bps, groups_of_cable(topology, a)));
    let rim = topology.host_cables().map(|(port, host, number, rate_bps)| {
        (end(port), (format!("h{}", host.index()), format!("eth{number}")), rate_bps, None)
    });
    let standby = topology.standby_edges().iter().enumerate();
    let standby =
        standby.map(|(index, edge)| (end(edge.port), (format!("e{index}"), "eth0".to_owned()), edge.rate_bps, None));
    for ((a, a_port), (b, b_port), rate_bps, groups) in links.chain(rim).chain(standby) {
        let rate = (rate_bps != DEFAULT_RATE_BPS).then(|| format_rate(rate_bps));
        let data = [("source_port", Some(a_port)), ("target_port", Some(b_port)), ("rate", rate), ("groups", groups)];
        let _ = writeln!(text, "    <edge source=\"{a}\" target=\"{b}\">{}</edge>", data_elements(&data));
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

fn data_elements(data: &[(&str, Option<String>)]) -> String {
    let stated = data.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    stated.map(|(key, value)| format!("<data key=\"{key}\">{}</data>", escape(value.as_str()))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Node,
    Edge,
}

/// A node or an edge with its attributes and data.
struct Item<'a> {
    kind: ItemKind,
    site: TextPosition<'a>,
    values: BTreeMap<String, String>,
}

impl Item<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }
}

fn parse<'a>(source: &'a Source<'a>, diagnostics: &mut Diagnostics) -> Option<Vec<Item<'a>>> {
    let mut xml = XmlReader::from_str(source.text());
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut finished: Vec<Item<'a>> = Vec::new();
    let mut open: Vec<Item<'a>> = Vec::new();
    let mut datum: Option<(String, String)> = None;
    let mut seen_graph = false;
    loop {
        let start = position(xml.buffer_position());
        let event = xml.read_event();
        let site = source.at(source.place(start, position(xml.buffer_position())));
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let site = source.at(source.place(position(xml.error_position()), position(xml.error_position()) + 1));
                diagnostics.push(site.error(format!("not XML: {error}")));
                return None;
            }
        };
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                let attributes = match attributes_of(tag) {
                    Ok(attributes) => attributes,
                    Err(message) => {
                        diagnostics.push(site.error(format!("not XML: {message}")));
                        return None;
                    }
                };
                let empty = matches!(event, Event::Empty(_));
                let kind = match tag.local_name().as_ref() {
                    b"node" => Some(ItemKind::Node),
                    b"edge" => Some(ItemKind::Edge),
                    b"graph" => {
                        seen_graph = true;
                        None
                    }
                    b"key" => {
                        if let (Some(id), Some(name)) = (attributes.get("id"), attributes.get("attr.name")) {
                            names.insert(id.clone(), name.to_ascii_lowercase());
                        }
                        None
                    }
                    b"data" if !empty => {
                        let key = attributes.get("key").cloned().unwrap_or_default();
                        datum = Some((names.get(&key).cloned().unwrap_or(key), String::new()));
                        None
                    }
                    b"hyperedge" => {
                        let error = site.error("a hyperedge is no cable");
                        diagnostics.push(error.with_help("a cable is an edge with a source and a target"));
                        None
                    }
                    _ => None,
                };
                if let Some(kind) = kind {
                    let item = Item { kind, site, values: attributes };
                    if empty { finished.push(item) } else { open.push(item) }
                }
            }
            Event::End(tag) => match tag.local_name().as_ref() {
                b"node" | b"edge" => finished.extend(open.pop()),
                b"data" => {
                    if let (Some((key, value)), Some(item)) = (datum.take(), open.last_mut()) {
                        item.values.entry(key).or_insert_with(|| value.trim().to_owned());
                    }
                }
                _ => {}
            },
            Event::Text(text) => append(&mut datum, &text.decode().unwrap_or_default()),
            Event::CData(text) => append(&mut datum, &text.decode().unwrap_or_default()),
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => character.to_string(),
                    _ => match &*reference {
                        b"amp" => "&".to_owned(),
                        b"lt" => "<".to_owned(),
                        b"gt" => ">".to_owned(),
                        b"quot" => "\"".to_owned(),
                        b"apos" => "'".to_owned(),
                        _ => {
                            diagnostics.push(site.error("not XML: unknown entity"));
                            return None;
                        }
                    },
                };
                append(&mut datum, &character);
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    if !seen_graph || !open.is_empty() {
        let message = if seen_graph { "the text ends within an element" } else { "there is no graph element" };
        diagnostics.push(source.at(TextSpan::START).error(message));
        return None;
    }
    Some(finished)
}

fn position(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn append(datum: &mut Option<(String, String)>, text: &str) {
    if let Some((_, value)) = datum {
        if value.len() + text.len() <= DATUM_BYTES_MAX {
            value.push_str(text);
        }
    }
}

fn attributes_of(tag: &BytesStart<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut attributes = BTreeMap::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        let key = String::from_utf8_lossy(attribute.key.local_name().as_ref()).into_owned();
        attributes.insert(key, value.into_owned());
    }
    Ok(attributes)
}

fn parsed<T: FromStr>(item: &Item<'_>, key: &str, what: &str, diagnostics: &mut Diagnostics) -> Option<T> {
    let text = item.get(key)?;
    let value = text.parse().ok();
    if value.is_none() {
        diagnostics.push(item.site.error(format!("{text} is not {what}")));
    }
    value
}
