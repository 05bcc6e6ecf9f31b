//! Espalier's own topology files: YAML that a person writes in a minute.
//!
//! ```yaml
//! switches:
//!   sw1: {model: powerconnect-5324, mgmt: 192.0.2.1}
//!   sw2: {ports: [swp1, swp2]}     # ports: only to fix an order, or to name ports without a cable
//!   sw4: {mgmt: 192.0.2.4, id: {chassis: "02:00:00:00:01:04", serial: "TX12345"}}    # who it is, as `discover` writes it
//!   sw3:                           # nothing to say: a generic switch
//!   sw5: {lags: {lag1: [g21, g22]}}     # LAGs, and which ports are their members
//! links:
//!   - sw1:g23 -- sw2:swp1
//!   - sw2:swp2 -- sw3:1 @ 10gbit   # the rate, if it is not 1gbit
//!   - sw5:lag1 -- sw6:lag1 @ 10gbit       # a cable for each member, each of 10 Gbit/s
//!   - sw1:g24 -- sw4:"TenGigabitEthernet 1/30"       # quotes where a port's name has spaces
//! hosts:
//!   node01: {mac: "02:00:00:00:00:01", port: "sw1:g1", ip: 198.51.100.1, rate: 100mbit}
//!   vmhost: {mac: "02:00:00:00:00:02", port: "sw1:g2", addresses: ["52:54:00:00:00:01", "52:54:00:00:00:02"]}
//!   vmhost2: {mac: "02:00:00:00:00:06", port: "sw1:g6", addresses: learned, addresses-max: 64}     # virtual machines come and go
//!   uplink: {kind: edge, port: "sw4:g2"}          # a network outside: any address may be behind it
//!   uplink2: {kind: edge, standby: true, port: "sw1:g10"}       # a second port to the same network, which is shut
//! machines:                        # hosts with several ports: each is a host of its own, gpu1/eth0 and gpu1/eth1
//!   gpu1:
//!     nics:
//!       eth0: {mac: "02:00:00:00:00:03", port: "sw1:g3", rail: 0}
//!       eth1: {mac: "02:00:00:00:00:04", port: "sw2:swp9", rail: 1}
//!   login1: {bond: failover, mac: "02:00:00:00:00:05", nics: {eth0: {port: "sw1:g5"}, eth1: {port: "sw2:swp5"}}}
//!   storage1: {bond: lacp, mac: "02:00:00:00:00:07", nics: {eth0: {port: "sw1:g7"}, eth1: {port: "sw1:g8"}}}
//! groups:                          # switches and cables that fail together: a power feed, a line card; a cable also as one end
//!   feed-a: [sw1, sw2]
//!   card-3: ["sw5:lag1 -- sw6:lag1", "sw1:g24"]
//! management: {vlan: 4000, controller: "sw1:g24"}    # only where switches are managed over the data ports
//! ```
//!
//! A reader judges the whole file in one pass: switches first, then links, then hosts, then machines, then groups, wherever they stand. After a
//! mistake it goes on with what the author most likely meant, so that one wrong name is one diagnostic: a cable to
//! the unknown switch `sw22` still counts as reaching `sw2`.

mod bonds;
mod edges;
mod groups;
mod hosts;
mod lags;
mod machines;

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _, net::IpAddr, rc::Rc};

use crate::{
    Attachment, DEFAULT_RATE_BPS, Fault, Guid, InBand, Models, PortId, PortNames, PortRole, SwitchId, SwitchIdentity,
    SwitchSpec, Topology, TopologyBuilder, VlanId,
    format::{
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
        node::{Node, Value},
        yaml::{double_quote, parse_yaml, quote},
    },
    format_rate,
    graph::UnionFind,
    name::most_similar,
    parse_rate,
};

/// Reads a topology.
///
/// # Errors
/// Everything that is wrong with the text, warnings included.
pub fn parse_native(file_name: &str, text: &str) -> Result<Topology, Diagnostics> {
    parse_native_with(file_name, text, &Models::built_in()).map(|(topology, _)| topology)
}

/// Reads a topology whose switches are of these models, and says what looks odd in it.
///
/// # Errors
/// Everything that is wrong with the text, warnings included.
pub fn parse_native_with(file_name: &str, text: &str, models: &Models) -> Result<(Topology, Diagnostics), Diagnostics> {
    let source = Source::new(file_name, text);
    let mut diagnostics = Diagnostics::new();
    if !source.check_size(&mut diagnostics) {
        return Err(diagnostics);
    }
    match parse_yaml(&source) {
        Ok(root) => {
            let topology = Reader::new(&source, &mut diagnostics, models).topology(&root);
            diagnostics.into_result(topology)
        }
        Err(error) => {
            diagnostics.push(*error);
            Err(diagnostics)
        }
    }
}

/// Writes a topology so that [`parse_native`] reads the same one, port numbers included.
pub fn write_native(topology: &Topology) -> String {
    let mut text = String::from("switches:\n");
    for (id, switch) in topology.switch_ids().zip(topology.switches()) {
        let mut fields = Vec::new();
        if switch.model.name != "generic" {
            fields.push(format!("model: {}", quote(&switch.model.name)));
        }
        if let Some(mgmt) = switch.mgmt {
            fields.push(format!("mgmt: {}", address(mgmt)));
        }
        if let Some(guid) = switch.guid {
            fields.push(format!("guid: \"{guid}\""));
        }
        if !switch.identity.is_empty() {
            let item = |(key, text): (&str, &str)| format!("{key}: {}", double_quote(text));
            fields.push(format!(
                "id: {{{}}}",
                switch.identity.items().into_iter().map(item).collect::<Vec<_>>().join(", ")
            ));
        }
        if let Some(names) = unexpected_port_order(topology, id) {
            fields.push(format!("ports: [{}]", names.join(", ")));
        }
        fields.extend(lags::write(topology, id));
        let _ = writeln!(text, "  {}: {{{}}}", quote(&switch.name), fields.join(", "));
    }
    for (index, link) in topology.links().iter().enumerate() {
        if index == 0 {
            text.push_str("links:\n");
        }
        let mut cable = format!("{} -- {}", end_of_cable(topology, link.a), end_of_cable(topology, link.b));
        let rate_bps = cable_rate_bps(topology, link.a, link.rate_bps);
        if rate_bps != DEFAULT_RATE_BPS {
            let _ = write!(cable, " @ {}", format_rate(rate_bps));
        }
        let plain = cable.starts_with(char::is_alphanumeric) && !cable.contains(" #") && !cable.contains(": ");
        let _ = writeln!(text, "  - {}", if plain { cable } else { double_quote(&cable) });
    }
    machines::write(topology, &mut text);
    groups::write(topology, &mut text);
    if let Some(InBand { vlan, controller }) = topology.in_band() {
        let quoted = |port: PortId| double_quote(&lone_port(topology, port));
        let _ = write!(text, "management: {{vlan: {vlan}, controller: {}", quoted(controller));
        let return_ports: Vec<String> = topology.return_ports().iter().copied().map(quoted).collect();
        if !return_ports.is_empty() {
            let _ = write!(text, ", return-ports: [{}]", return_ports.join(", "));
        }
        text.push_str("}\n");
    }
    text
}

/// A port as one end of a cable: its name stands in quotes where spaces would divide it.
fn end_of_cable(topology: &Topology, port: PortId) -> String {
    let name = &topology.port(port).name;
    if name.contains([' ', '"']) {
        format!("{}:{}", topology.switch(topology.port(port).switch).name, double_quote(name))
    } else {
        topology.port_label(port)
    }
}

/// The rate of each of a port's cables, which have `rate_bps` together.
fn cable_rate_bps(topology: &Topology, port: PortId, rate_bps: u64) -> u64 {
    rate_bps / topology.cabled_ports(port).len() as u64
}

/// A port that stands alone, where spaces divide nothing.
fn lone_port(topology: &Topology, port: PortId) -> String {
    if topology.port(port).name.starts_with('"') { end_of_cable(topology, port) } else { topology.port_label(port) }
}

/// The port names of a switch, quoted, unless the order in which links and hosts mention them says it all.
fn unexpected_port_order(topology: &Topology, switch: SwitchId) -> Option<Vec<String>> {
    if matches!(topology.switch(switch).model.ports, PortNames::Listed(_)) {
        return None;
    }
    let rank = |port: PortId| match topology.port(port).attachment {
        Attachment::Link(link) => Some((0, link.index())),
        Attachment::Host(host) => Some((1, host.index())),
        Attachment::Member(_) => None,
        // Standby edges stand behind all hosts, and ports that only the section management: mentions come last.
        Attachment::Nothing => match topology.role_without_cable(port) {
            PortRole::Controller => Some((3, 0)),
            PortRole::Return => topology.return_ports().iter().position(|own| *own == port).map(|at| (4, at)),
            _ => topology.standby_edges().iter().position(|edge| edge.port == port).map(|at| (2, at)),
        },
    };
    let ranks: Vec<_> = topology.port_ids(switch).map(rank).collect();
    let expected = ranks.iter().all(Option::is_some) && ranks.is_sorted();
    let names = || topology.port_ids(switch).map(|port| quote(&topology.port(port).name)).collect();
    (!expected).then(names)
}

fn address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"{address}\""),
    }
}

const SECTIONS: [&str; 6] = ["switches", "links", "hosts", "machines", "groups", "management"];
const MANAGEMENT_KEYS: [&str; 3] = ["vlan", "controller", "return-ports"];
const SWITCH_KEYS: [&str; 6] = ["model", "mgmt", "ports", "lags", "guid", "id"];
const IDENTITY_KEYS: [&str; 3] = ["chassis", "engine", "serial"];
const LINK_HELP: &str = "write switch:port -- switch:port, with quotes around a port that has spaces, sw1:\"Te 1/30\", and if need \
    be a rate: sw1:g23 -- sw2:g23 @ 10gbit";

struct Reader<'a> {
    source: &'a Source<'a>,
    diagnostics: &'a mut Diagnostics,
    builder: TopologyBuilder,
    /// Where each switch is named.
    switch_sites: BTreeMap<String, (SwitchId, TextSpan)>,
    /// The line that gives a management address to a switch.
    managed: BTreeMap<IpAddr, usize>,
    /// The line that plugged a cable into a port.
    plugged: BTreeMap<PortId, usize>,
    /// Switches that cables were meant to join.
    joined: UnionFind,
}

/// A `switch:port` as far as it could be understood.
struct End {
    switch: Option<SwitchId>,
    port: Option<PortId>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source<'a>, diagnostics: &'a mut Diagnostics, models: &Models) -> Self {
        let (builder, joined) = (TopologyBuilder::with_models(models.clone()), UnionFind::default());
        let (switch_sites, managed, plugged) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { source, diagnostics, builder, switch_sites, managed, plugged, joined }
    }

    fn topology(mut self, root: &Node) -> Option<Topology> {
        let help = "a topology has the sections switches:, links: and hosts:";
        if !matches!(root.value, Value::Map(_)) {
            let message = format!("expected sections, found {}", root.kind());
            self.diagnostics.push(self.at(root).error(message).with_help(help));
            return None;
        }
        let entries = self.checked_entries(root, &SECTIONS, "section");
        match entries.get("switches") {
            Some(section) => self.read_switches(section),
            None => {
                self.diagnostics.push(self.at(root).error("there is no section switches:").with_help(help));
                return None;
            }
        }
        if let Some(section) = entries.get("links") {
            self.read_links(section);
        }
        if let Some(section) = entries.get("hosts") {
            self.read_hosts(section);
        }
        if let Some(section) = entries.get("machines") {
            self.read_machines(section);
        }
        if let Some(section) = entries.get("groups") {
            self.read_groups(section);
        }
        if let Some(section) = entries.get("management") {
            self.read_management(section);
        }
        self.finish(entries.get("switches").map_or(root.place, |section| section.place))
    }

    fn read_switches(&mut self, section: &Node) {
        if !self.expect_map(section, "switches", "sw1: {model: generic}") {
            return;
        }
        for (key, value) in section.entries() {
            let Some(name) = key.key() else {
                self.diagnostics.push(self.at(key).error(format!("a switch's name is one word, not {}", key.kind())));
                continue;
            };
            let mut spec = SwitchSpec::default();
            let mut fields = BTreeMap::new();
            if !value.is_null() && self.expect_map(value, name, "{model: generic, mgmt: 192.0.2.1}") {
                fields = self.checked_entries(value, &SWITCH_KEYS, "key");
            }
            if let Some(model) = fields.get("model") {
                spec.model = self.word(model, "a model", "model: linux-bridge").map(str::to_owned);
            }
            if let Err(fault) = self.builder.add_switch(name, spec) {
                let culprit = match (&fault, fields.get("model")) {
                    (Fault::UnknownModel { .. }, Some(model)) => model,
                    _ => key,
                };
                self.diagnostics.push(self.at(culprit).fault(&fault));
                if matches!(fault, Fault::TooMany { .. }) {
                    return;
                }
            }
            let Ok(switch) = self.builder.switch(name) else { continue };
            if !self.switch_sites.contains_key(name) {
                self.switch_sites.insert(name.to_owned(), (switch, key.place));
                self.joined.push();
            }
            if let Some(mgmt) = fields.get("mgmt") {
                self.read_mgmt(switch, mgmt);
            }
            if let Some(identity) = fields.get("id") {
                self.read_identity(switch, identity);
            }
            if let Some(ports) = fields.get("ports") {
                self.read_ports(switch, ports);
            }
            if let Some(lags) = fields.get("lags") {
                self.read_lags(switch, lags);
            }
            if let Some((node, guid)) = self.guid(&fields) {
                self.refuse(node, |builder| builder.set_switch_guid(switch, guid));
            }
        }
    }

    fn read_mgmt(&mut self, switch: SwitchId, node: &Node) {
        let Some(address) = self.address(node, "mgmt: 192.0.2.1") else { return };
        let first = *self.managed.entry(address.to_canonical()).or_insert(node.place.line);
        if let Err(fault) = self.builder.set_switch_mgmt(switch, address) {
            let help = format!("it is given first on line {first}; every switch has an address of its own");
            self.diagnostics.push(self.at(node).fault(&fault).with_help(help));
        }
    }

    fn read_identity(&mut self, switch: SwitchId, node: &Node) {
        const EXAMPLE: &str = "{chassis: \"02:00:00:00:01:01\"}";
        if !self.expect_map(node, "id", EXAMPLE) {
            return;
        }
        let fields = self.checked_entries(node, &IDENTITY_KEYS, "key");
        let mut item = |key: &str| {
            let node: &Node = fields.get(key)?;
            self.word(node, "a text", "serial: \"TX12345\"").map(str::to_owned)
        };
        let identity = SwitchIdentity { chassis: item("chassis"), engine: item("engine"), serial: item("serial") };
        self.refuse(node, |builder| builder.set_switch_identity(switch, identity));
    }

    fn read_ports(&mut self, switch: SwitchId, list: &Node) {
        if !matches!(list.value, Value::List(_)) {
            let message = format!("expected a list of port names, found {}", list.kind());
            self.diagnostics.push(self.at(list).error(message).with_help("ports: [swp1, swp2]"));
            return;
        }
        let mut seen = BTreeMap::new();
        for item in list.items() {
            let Some(name) = self.word(item, "a port name", "ports: [swp1, swp2]") else { continue };
            if seen.insert(name, ()).is_some() {
                self.diagnostics.push(self.at(item).error(format!("port {name} is named twice")));
            } else if let Err(fault) = self.builder.add_port(switch, name) {
                self.diagnostics.push(self.at(item).fault(&fault));
            }
        }
    }

    fn read_links(&mut self, section: &Node) {
        if section.is_null() {
            return;
        }
        if !matches!(section.value, Value::List(_)) {
            let message = format!("links: expected a list, found {}", section.kind());
            self.diagnostics.push(self.at(section).error(message).with_help("a line a cable: - sw1:g23 -- sw2:g23"));
            return;
        }
        for item in section.items() {
            let site = self.at(item);
            match item.text() {
                Some(text) => {
                    if self.read_link(site, text).is_err() {
                        return;
                    }
                }
                None => {
                    let message = format!("a cable is one line, not {}", item.kind());
                    self.diagnostics.push(site.error(message).with_help(LINK_HELP));
                }
            }
        }
    }

    /// One cable. An error means that there are too many.
    fn read_link(&mut self, site: TextPosition<'a>, text: &str) -> Result<(), ()> {
        let words = words_of(text);
        let [first, second, third, rest @ ..] = words.as_slice() else {
            self.diagnostics.push(site.error("this is no cable between two ports").with_help(LINK_HELP));
            return Ok(());
        };
        let spot = |(offset, word): &(usize, &str)| inner(site, text, *offset, word.chars().count());
        if second.1 != "--" {
            let message = format!("expected -- between two ports, found {}", second.1);
            self.diagnostics.push(spot(second).error(message).with_help(LINK_HELP));
            return Ok(());
        }
        let rate_bps = match rest {
            [] => Some(DEFAULT_RATE_BPS),
            [(offset, word), ..] if word.starts_with('@') => {
                let tail: String = text.chars().skip(offset + 1).collect();
                let spot = inner(site, text, *offset, text.chars().count() - offset);
                self.rate(spot, &tail)
            }
            [unexpected, ..] => {
                let message = format!("unexpected {} after the second port", unexpected.1);
                self.diagnostics.push(spot(unexpected).error(message).with_help(LINK_HELP));
                None
            }
        };
        let (first_site, third_site) = (spot(first), spot(third));
        let (a, b) = (self.end(first_site, first.1), self.end(third_site, third.1));
        if let (Some(a), Some(b)) = (a.switch, b.switch) {
            self.joined.join(a.index(), b.index());
        }
        let (Some(a), Some(b)) = (a.port, b.port) else { return Ok(()) };
        let own_loop =
            matches!((first.1.split_once(':'), third.1.split_once(':')), (Some((x, _)), Some((y, _))) if x == y);
        let free = own_loop || self.check_free(first_site, a) & self.check_free(third_site, b);
        if !free {
            return Ok(());
        }
        if let Err(fault) = self.builder.check_ends(a, b) {
            self.diagnostics.push(site.fault(&fault));
            return Ok(());
        }
        let rate_bps = rate_bps.unwrap_or(DEFAULT_RATE_BPS).saturating_mul(self.builder.cables_at(a) as u64);
        match self.builder.add_link(a, b, rate_bps) {
            Ok(_) => {
                self.plugged.insert(a, site.place.line);
                self.plugged.insert(b, site.place.line);
                Ok(())
            }
            Err(fault) => {
                self.diagnostics.push(site.fault(&fault));
                if matches!(fault, Fault::TooMany { .. }) { Err(()) } else { Ok(()) }
            }
        }
    }

    fn read_management(&mut self, section: &Node) {
        const EXAMPLE: &str = "{vlan: 4000, controller: \"sw1:g24\"}";
        const RETURN_EXAMPLE: &str = "return-ports: [\"sw1:g23\"]";
        if section.is_null() || !self.expect_map(section, "management", EXAMPLE) {
            return;
        }
        let fields = self.checked_entries(section, &MANAGEMENT_KEYS, "key");
        let (Some(vlan_at), Some(port_at)) = (fields.get("vlan"), fields.get("controller")) else {
            let error =
                self.at(section).error("management: needs a VLAN and the port that the controller is plugged into");
            self.diagnostics.push(error.with_help(format!("such as {EXAMPLE}")));
            return;
        };
        let Some(text) = self.word(vlan_at, "a VLAN", "vlan: 4000") else { return };
        let vlan = text.parse::<u16>().ok().and_then(|id| VlanId::new(id).ok());
        if vlan.is_none() {
            let error = self.at(vlan_at).error(format!("{text} is no VLAN"));
            self.diagnostics.push(error.with_help("VLANs are 1 to 4094"));
        }
        let Some(text) = self.word(port_at, "a port", "controller: \"sw1:g24\"") else { return };
        let site = inner(self.at(port_at), text, 0, text.chars().count());
        let Some(controller) = self.end(site, text).port else { return };
        if let Some(vlan) = vlan.filter(|_| self.check_free(site, controller)) {
            self.refuse(port_at, |builder| builder.set_in_band(InBand { vlan, controller }));
        }
        let Some(ports_at) = fields.get("return-ports") else { return };
        if !matches!(ports_at.value, Value::List(_)) {
            let message = format!("expected a list of ports, found {}", ports_at.kind());
            self.diagnostics.push(self.at(ports_at).error(message).with_help(RETURN_EXAMPLE));
            return;
        }
        for port_at in ports_at.items() {
            let Some(text) = self.word(port_at, "a port", RETURN_EXAMPLE) else { continue };
            let site = inner(self.at(port_at), text, 0, text.chars().count());
            let Some(port) = self.end(site, text).port else { continue };
            if self.check_free(site, port) {
                self.refuse(port_at, |builder| builder.add_return_port(port));
            }
        }
    }

    /// Finds the port that a `switch:port` names, creating it where the model allows any name.
    fn end(&mut self, site: TextPosition<'_>, text: &str) -> End {
        let nothing = End { switch: None, port: None };
        let Some((switch, port)) = text.split_once(':') else {
            let error = site.error(format!("{text} is no port"));
            self.diagnostics.push(error.with_help("write the switch and its port with a colon between: sw1:g23"));
            return nothing;
        };
        let width = switch.chars().count();
        let known = self.switch_sites.get(switch).map(|(id, _)| *id);
        let Some(id) = known else {
            let site = site.within(0, width);
            if self.diagnostics.is_full() {
                // Searching the similar name of thousands of unknown ones is work that nobody would see.
                self.diagnostics.push(site.error("unknown switch"));
                return nothing;
            }
            let Err(fault) = self.builder.switch(switch) else { return nothing };
            self.diagnostics.push(site.fault(&fault));
            let meant = match &fault {
                Fault::UnknownSwitch { similar: Some(similar), .. } => self.switch_sites.get(similar),
                _ => None,
            };
            return End { switch: meant.map(|(id, _)| *id), port: None };
        };
        let name = unquoted(port);
        let port = self.builder.add_port(id, &name).map_err(|fault| {
            self.diagnostics.push(site.within(width + 1, port.chars().count()).fault(&fault));
        });
        End { switch: Some(id), port: port.ok() }
    }

    fn check_free(&mut self, site: TextPosition<'_>, port: PortId) -> bool {
        match self.builder.check_free(port) {
            Ok(()) => true,
            Err(fault) => {
                let line = self.plugged.get(&port).map_or_else(String::new, |line| format!(" (line {line})"));
                let mut diagnostic = site.fault(&fault);
                diagnostic.message.push_str(&line);
                self.diagnostics.push(diagnostic);
                false
            }
        }
    }

    fn guid<'n>(&mut self, fields: &Fields<'n>) -> Option<(&'n Node, Guid)> {
        let node: &Node = fields.get("guid")?;
        let text = self.word(node, "an InfiniBand GUID", "guid: \"0x0002c90200405a10\"")?;
        let guid =
            text.parse().map_err(|error| self.diagnostics.push(self.at(node).error(format!("{text} is {error}"))));
        guid.ok().map(|guid| (node, guid))
    }

    /// Reports what the builder has against a value.
    fn refuse(&mut self, node: &Node, set: impl FnOnce(&mut TopologyBuilder) -> Result<(), Fault>) {
        if let Err(fault) = set(&mut self.builder) {
            self.diagnostics.push(self.at(node).fault(&fault));
        }
    }

    fn rate(&mut self, site: TextPosition<'_>, text: &str) -> Option<u64> {
        parse_rate(text).map_err(|error| self.diagnostics.push(site.error(error.to_string()))).ok()
    }

    fn address(&mut self, node: &Node, example: &str) -> Option<IpAddr> {
        let text = self.word(node, "an IP address", example)?;
        let address = text.parse().ok();
        if address.is_none() {
            let error = self.at(node).error(format!("{text} is not an IP address"));
            self.diagnostics.push(error.with_help(format!("such as {example}")));
        }
        address
    }

    fn word<'n>(&mut self, node: &'n Node, what: &str, example: &str) -> Option<&'n str> {
        let text = node.text();
        if text.is_none() {
            let error = self.at(node).error(format!("expected {what}, found {}", node.kind()));
            self.diagnostics.push(error.with_help(format!("such as {example}")));
        }
        text
    }

    fn expect_map(&mut self, node: &Node, what: &str, example: &str) -> bool {
        let found = matches!(node.value, Value::Map(_));
        if !found {
            let error = self.at(node).error(format!("{what}: expected a map, found {}", node.kind()));
            self.diagnostics.push(error.with_help(format!("such as {example}")));
        }
        found
    }

    /// The entries of a map by key; unknown and repeated keys are reported.
    fn checked_entries<'n>(&mut self, map: &'n Node, known: &[&str], what: &str) -> Fields<'n> {
        let mut fields: Fields<'n> = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for (key, value) in map.entries() {
            let name = key.key().unwrap_or_default();
            if !known.contains(&name) {
                let help = match most_similar(name, known.iter().copied()) {
                    _ if name.len() > 64 => None,
                    Some(similar) => Some(format!("did you mean {similar}?")),
                    None => None,
                };
                let help = help.unwrap_or_else(|| format!("known: {}", known.join(", ")));
                self.diagnostics.push(self.at(key).error(format!("unknown {what} {name:?}")).with_help(help));
            } else if let Some(line) = lines.insert(name, key.place.line) {
                let error = self.at(key).error(format!("{what} {name} is given twice"));
                self.diagnostics.push(error.with_help(format!("it is given first on line {line}; merge the two")));
            } else {
                fields.insert(name, value);
            }
        }
        fields
    }

    fn finish(mut self, section: TextSpan) -> Option<Topology> {
        let faults = match std::mem::take(&mut self.builder).finish() {
            Ok(topology) => return Some(topology),
            Err(faults) => faults,
        };
        for fault in faults {
            match &fault {
                Fault::Unreachable { switch, .. } => {
                    let Some(&(id, place)) = self.switch_sites.get(switch) else { continue };
                    // A cable that was refused for another reason was still meant to be there.
                    if self.joined.find(id.index()) != self.joined.find(0) {
                        self.diagnostics.push(self.source.at(place).fault(&fault));
                    }
                }
                Fault::Empty if self.diagnostics.errors() > 0 => {}
                Fault::EmptyLag { .. } | Fault::UnequalLags { .. } | Fault::DuplicateMac { .. } => {
                    self.diagnostics.push(self.source.at(section).fault(&fault));
                }
                _ => {
                    let error = self.source.at(section).fault(&fault);
                    self.diagnostics.push(error.with_help("name at least one: sw1: {model: generic}"));
                }
            }
        }
        None
    }

    fn at(&self, node: &Node) -> TextPosition<'a> {
        self.source.at(node.place)
    }
}

type Fields<'n> = BTreeMap<&'n str, &'n Rc<Node>>;

/// The words of a line, each with its offset in characters. Behind a colon, quotes hold together what spaces would divide.
fn words_of(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut begin = None;
    let (mut before, mut quoted, mut escaped) = (' ', false, false);
    for (offset, (at, c)) in text.char_indices().enumerate() {
        match begin {
            None if !c.is_whitespace() => begin = Some((offset, at)),
            Some((first, start)) if c.is_whitespace() && !quoted => {
                words.push((first, &text[start..at]));
                begin = None;
            }
            _ => {}
        }
        if quoted {
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
        } else {
            quoted = c == '"' && before == ':';
        }
        before = c;
    }
    words.extend(begin.map(|(first, start)| (first, &text[start..])));
    words
}

/// A port's name without the quotes around it, if there are any; what only begins with one stays as it is.
fn unquoted(port: &str) -> Cow<'_, str> {
    let Some(inside) = port.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Cow::Borrowed(port);
    };
    let mut name = String::with_capacity(inside.len());
    let mut letters = inside.chars();
    while let Some(c) = letters.next() {
        name.extend(if c == '\\' { letters.next() } else { Some(c) });
    }
    Cow::Owned(name)
}

/// The site of a piece of a scalar; the whole scalar where escapes make offsets unknowable.
fn inner<'a>(site: TextPosition<'a>, text: &str, offset: usize, width: usize) -> TextPosition<'a> {
    match site.place.width.checked_sub(text.chars().count()) {
        Some(0) => site.within(offset, width),
        Some(2) => site.within(offset + 1, width),
        _ => site,
    }
}
