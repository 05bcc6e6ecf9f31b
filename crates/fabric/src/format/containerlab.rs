//! containerlab topologies: labs of containers and their cables.
//!
//! ```yaml
//! topology:
//!   nodes:
//!     srl1: {kind: nokia_srlinux}
//!     br: {kind: bridge}
//!     client1: {kind: linux}
//!   links:
//!     - endpoints: ["srl1:e1-1", "br:eth1"]
//!     - endpoints: ["srl1:e1-2", "client1:eth1"]
//! ```
//!
//! A node of kind `linux` with one cable is a host; with several it is taken for a switch, with a warning; of every other kind
//! it is a switch. A pattern
//! of [`ImportOptions`] goes before that rule, and the label `espalier-role: switch` (or `host`), which exports carry,
//! before both. A node's kind may come from its group or from `defaults`. Further labels that are read and written
//! are `espalier-model`, `-mgmt`, `-mac`, `-address`, `-groups` and `-name` on nodes, and `espalier-rate` and `-groups` on links. Cables to
//! `host`, `mgmt-net`, `macvlan` and `dummy` leave the lab and are left out.
//!
//! Source: containerlab's manual, "Topology definition" and "Nodes and links" (containerlab.dev).

use std::{collections::BTreeMap, fmt::Write as _, str::FromStr};

use crate::{
    DEFAULT_RATE_BPS, Topology,
    format::{
        cabling::{
            Cable, Cabling, Device, End, Role, distinct_names, groups_of_cable, groups_text, host_facts, read_groups,
            standby_edge_facts,
        },
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
        import_options::ImportOptions,
        node::{Node, Value},
        yaml::{double_quote, parse_yaml, quote},
    },
    format_rate,
    name::most_similar,
    parse_rate,
};

/// Ends that are no nodes: the machine that runs the lab, its networks, and nothing.
const OUTSIDE: [&str; 4] = ["host", "mgmt-net", "macvlan", "dummy"];

pub(crate) fn read<'a>(
    source: &'a Source<'a>,
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let root = match parse_yaml(source) {
        Ok(root) => root,
        Err(error) => {
            diagnostics.push(*error);
            return None;
        }
    };
    let Some(topology) = root.get("topology") else {
        let error = source.at(root.place).error("there is no section topology:");
        diagnostics.push(error.with_help("a containerlab file has topology: with nodes: and links: in it"));
        return None;
    };
    let mut reader = Reader { source, diagnostics, cabling: Cabling::default(), by_name: BTreeMap::new() };
    reader.read_nodes(topology);
    reader.read_links(topology);
    let mut degree = vec![0_usize; reader.cabling.devices.len()];
    for end in reader.cabling.cables.iter().flat_map(|cable| &cable.ends) {
        degree[end.device] += 1;
    }
    let Reader { mut cabling, diagnostics, .. } = reader;
    let mut guessed: Vec<(TextPosition<'_>, String, usize)> = Vec::new();
    for (device, degree) in cabling.devices.iter_mut().zip(degree) {
        if degree > 1 && device.habit == Role::Host {
            device.habit = Role::Switch;
            if device.stated.is_none() && !options.names_host(&device.name) {
                guessed.push((device.site, device.name.clone(), degree));
            }
        }
    }
    warn_of_guesses(&guessed, diagnostics);
    cabling.build(source.at(TextSpan::START), options, diagnostics)
}

/// A container with several cables may be a router or a host with several ports; kinds do not tell.
fn warn_of_guesses(guessed: &[(TextPosition<'_>, String, usize)], diagnostics: &mut Diagnostics) {
    let [(site, name, cables), others @ ..] = guessed else { return };
    let message = match others.len() {
        0 => format!("{name} is of kind linux and has {cables} cables: it is taken for a switch"),
        1 => {
            format!("{name} and {} are of kind linux and have several cables: they are taken for switches", others[0].1)
        }
        more => format!(
            "{name} and {more} more nodes are of kind linux and have several cables: they are taken for switches"
        ),
    };
    let help = format!(
        "if it is a host with several ports, import with --hosts {name}, or give it the label espalier-role: host; the label \
         espalier-role: switch says that it is a switch"
    );
    diagnostics.push(site.warning(message).with_help(help));
}

/// Writes a topology whose nodes are all Linux containers; [`import`](crate::format::exchange::import) reads the same
/// cabling back.
pub fn write_containerlab(topology: &Topology) -> String {
    let (switches, hosts) = distinct_names(topology);
    let mut text = String::from("name: fabric\ntopology:\n  kinds:\n    linux: {image: \"alpine:3\"}\n  nodes:\n");
    let mut node = |name: &str, labels: Vec<String>| {
        let _ = writeln!(text, "    {}: {{kind: linux, labels: {{{}}}}}", quote(name), labels.join(", "));
    };
    for ((id, switch), name) in topology.switch_ids().zip(topology.switches()).zip(&switches) {
        let mut labels = vec!["espalier-role: switch".to_owned()];
        if switch.model.name != "generic" {
            labels.push(format!("espalier-model: {}", quote(&switch.model.name)));
        }
        labels.extend(switch.mgmt.map(|mgmt| format!("espalier-mgmt: \"{mgmt}\"")));
        let groups = groups_text(topology, |group| group.switches.contains(&id));
        labels.extend(groups.map(|groups| format!("espalier-groups: {}", double_quote(&groups))));
        node(name, labels);
    }
    for (host, name) in topology.hosts().iter().zip(&hosts) {
        let mut labels = vec!["espalier-role: host".to_owned()];
        labels.extend((!host.edge).then(|| format!("espalier-mac: \"{}\"", host.mac)));
        labels.extend(host.address.map(|address| format!("espalier-address: \"{address}\"")));
        if *name != host.name {
            labels.push(format!("espalier-name: {}", quote(&host.name)));
        }
        let facts = host_facts(topology, host);
        labels.extend(facts.into_iter().map(|(key, fact)| format!("espalier-{key}: {}", double_quote(&fact))));
        node(name, labels);
    }
    let edges = topology.standby_edges().iter().zip(&hosts[topology.hosts().len()..]);
    for (edge, name) in edges.clone() {
        let mut labels = vec!["espalier-role: host".to_owned()];
        if *name != edge.name {
            labels.push(format!("espalier-name: {}", quote(&edge.name)));
        }
        let facts = standby_edge_facts(edge);
        labels.extend(facts.into_iter().map(|(key, fact)| format!("espalier-{key}: {}", double_quote(&fact))));
        node(name, labels);
    }
    let links = topology.switch_cables().map(|(a, b, rate_bps)| {
        (topology.port_label(a), topology.port_label(b), rate_bps, groups_of_cable(topology, a))
    });
    let rim = topology.host_cables().map(|(port, host, number, rate_bps)| {
        (topology.port_label(port), format!("{}:eth{}", hosts[host.index()], number + 1), rate_bps, None)
    });
    let standby =
        edges.map(|(edge, name)| (topology.port_label(edge.port), format!("{name}:eth1"), edge.rate_bps, None));
    for (index, (a, b, rate_bps, groups)) in links.chain(rim).chain(standby).enumerate() {
        if index == 0 {
            text.push_str("  links:\n");
        }
        let _ = writeln!(text, "    - endpoints: [{}, {}]", double_quote(&a), double_quote(&b));
        let rate = (rate_bps != DEFAULT_RATE_BPS).then(|| ("rate", format_rate(rate_bps)));
        let labels = rate.into_iter().chain(groups.map(|groups| ("groups", groups)));
        let labels: Vec<String> =
            labels.map(|(key, value)| format!("espalier-{key}: {}", double_quote(&value))).collect();
        if !labels.is_empty() {
            let _ = writeln!(text, "      labels: {{{}}}", labels.join(", "));
        }
    }
    text
}

struct Reader<'a, 'd> {
    source: &'a Source<'a>,
    diagnostics: &'d mut Diagnostics,
    cabling: Cabling<'a>,
    by_name: BTreeMap<String, usize>,
}

impl<'a> Reader<'a, '_> {
    fn read_nodes(&mut self, topology: &Node) {
        let kind_of = |owner: Option<&Node>| owner.and_then(|owner| owner.get("kind")?.text().map(str::to_owned));
        let default_kind = kind_of(topology.get("defaults").map(|node| &**node));
        let Some(nodes) = topology.get("nodes").filter(|nodes| matches!(nodes.value, Value::Map(_))) else {
            let error = self.at(topology).error("topology: has no map nodes:");
            self.diagnostics.push(error.with_help("nodes: {sw1: {kind: bridge}, client1: {kind: linux}}"));
            return;
        };
        for (key, value) in nodes.entries() {
            let site = self.at(key);
            let Some(name) = key.key() else {
                self.diagnostics.push(site.error(format!("a node's name is one word, not {}", key.kind())));
                continue;
            };
            if let Some(&first) = self.by_name.get(name) {
                let line = self.cabling.devices[first].site.place.line;
                self.diagnostics.push(site.error(format!("node {name} is named twice (first on line {line})")));
                continue;
            }
            let group = value.get("group").and_then(|group| group.text());
            let group = group.and_then(|group| topology.get("groups")?.get(group));
            let kind = kind_of(Some(value)).or(kind_of(group.map(|node| &**node))).or(default_kind.clone());
            let habit = if kind.as_deref() == Some("linux") { Role::Host } else { Role::Switch };
            let mut device = Device::new(name, site, habit);
            self.read_labels(&mut device, value);
            self.by_name.insert(name.to_owned(), self.cabling.devices.len());
            self.cabling.devices.push(device);
        }
    }

    fn read_labels(&mut self, device: &mut Device<'a>, node: &Node) {
        let Some(labels) = node.get("labels") else { return };
        for (key, value) in labels.entries() {
            let Some(text) = value.text() else { continue };
            match key.key().unwrap_or_default() {
                "espalier-role" => match text {
                    "switch" => device.stated = Some(Role::Switch),
                    "host" => device.stated = Some(Role::Host),
                    _ => self.diagnostics.push(self.at(value).error("espalier-role is switch or host")),
                },
                "espalier-model" => device.model = Some(text.to_owned()),
                "espalier-name" => device.name = text.to_owned(),
                "espalier-groups" => device.groups = read_groups(text),
                "espalier-mac" => device.mac = self.parsed(value, text, "an Ethernet address"),
                "espalier-mgmt" => device.mgmt = self.parsed(value, text, "an IP address"),
                "espalier-address" => device.address = self.parsed(value, text, "an IP address"),
                label => {
                    let fact = label.strip_prefix("espalier-").unwrap_or_default();
                    if let Err(wrong) = device.take_host_fact(fact, text) {
                        self.diagnostics.push(self.at(value).error(wrong));
                    }
                }
            }
        }
    }

    fn read_links(&mut self, topology: &Node) {
        let Some(links) = topology.get("links") else { return };
        if !links.is_null() && !matches!(links.value, Value::List(_)) {
            self.diagnostics.push(self.at(links).error(format!("links: expected a list, found {}", links.kind())));
        }
        for link in links.items() {
            let site = self.at(link);
            let help = "- endpoints: [\"srl1:e1-1\", \"br:eth1\"]";
            let Some([first, second]) = link.get("endpoints").map(|ends| ends.items()) else {
                let outside = link.get("type").and_then(|kind| kind.text());
                if outside.is_some_and(|kind| kind != "veth") {
                    self.diagnostics.push(site.warning("this cable leaves the lab; it is left out"));
                } else {
                    self.diagnostics.push(site.error("a link has two endpoints").with_help(help));
                }
                continue;
            };
            let site = self.at(first);
            let (a, b) = (self.end(first), self.end(second));
            let label = |key: &str| link.get("labels").and_then(|labels| labels.get(key));
            let rate = label("espalier-rate");
            let groups = label("espalier-groups").and_then(|groups| groups.text()).map(read_groups).unwrap_or_default();
            let rate_bps = rate.and_then(|rate| {
                parse_rate(rate.text().unwrap_or_default())
                    .map_err(|error| self.diagnostics.push(self.source.at(rate.place).error(error.to_string())))
                    .ok()
            });
            if let (Some(a), Some(b)) = (a, b) {
                self.cabling.cables.push(Cable { ends: [a, b], rate_bps, bundle: None, groups, site });
            }
        }
    }

    /// An endpoint, `node:port` or `{node: …, interface: …, mac: …}`; none if it is outside or wrong.
    fn end(&mut self, node: &Node) -> Option<End<'a>> {
        let site = self.at(node);
        let (name, port) = match node.text() {
            Some(text) => text.split_once(':').unwrap_or((text, "")),
            None => {
                let field = |key: &str| node.get(key).and_then(|value| value.text()).unwrap_or_default();
                (field("node"), field("interface"))
            }
        };
        let mac = node.get("mac").and_then(|mac| self.parsed(mac, mac.text()?, "an Ethernet address"));
        if let Some(&device) = self.by_name.get(name) {
            return Some(End { device, port: port.to_owned(), mac, bond: None, site });
        }
        if OUTSIDE.contains(&name) {
            self.diagnostics.push(site.warning(format!("this cable leads to {name}, out of the lab; it is left out")));
            return None;
        }
        let similar = if self.diagnostics.is_full() || name.len() > 128 {
            None
        } else {
            most_similar(name, self.by_name.keys().map(String::as_str))
        };
        let help =
            similar.map_or_else(|| "name it under nodes: first".to_owned(), |name| format!("did you mean {name}?"));
        self.diagnostics.push(site.error(format!("unknown node {name:?}")).with_help(help));
        None
    }

    fn parsed<T: FromStr>(&mut self, node: &Node, text: &str, what: &str) -> Option<T> {
        let value = text.parse().ok();
        if value.is_none() {
            self.diagnostics.push(self.at(node).error(format!("{text} is not {what}")));
        }
        value
    }

    fn at(&self, node: &Node) -> TextPosition<'a> {
        self.source.at(node.place)
    }
}
