//! One host of a topology file: where it is plugged in, and its addresses.

use std::{collections::BTreeMap, fmt::Write as _, net::IpAddr};

use super::{Fields, Reader, address, cable_rate_bps, inner, lone_port};
use crate::{
    ADDRESSES_MAX, DEFAULT_RATE_BPS, Fault, Host, HostId, LEARNED_MAX_DEFAULT, Mac, PortId, SwitchSpec, Topology,
    format::{
        node::{Node, Value},
        yaml::{double_quote, quote},
    },
    format_rate,
};

pub(super) const HOST_KEYS: [&str; 11] =
    ["kind", "standby", "mac", "port", "ip", "rate", "guid", "addresses", "addresses-max", "rail", "weight"];
pub(super) const HOST_EXAMPLE: &str = "{mac: \"02:00:00:00:00:01\", port: \"sw1:g1\"}";
pub(super) const NICS_EXAMPLE: &str = "eth0: {mac: \"02:00:00:00:00:01\", port: \"sw1:g1\"}";

pub(super) fn write_host(topology: &Topology, host: HostId, key: &str, indent: &str, text: &mut String) {
    let Host { mac, further_macs, port, rate_bps, address: ip, guid, rail, weight, edge, learned_max, .. } =
        topology.host(host);
    let rate_bps = cable_rate_bps(topology, *port, *rate_bps);
    let port = double_quote(&lone_port(topology, *port));
    let _ = match edge {
        true => write!(text, "{indent}{}: {{kind: edge, port: {port}", quote(key)),
        false => write!(text, "{indent}{}: {{mac: \"{mac}\", port: {port}", quote(key)),
    };
    if let Some(rail) = rail {
        let _ = write!(text, ", rail: {rail}");
    }
    if *weight != 1 {
        let _ = write!(text, ", weight: {weight}");
    }
    if let Some(ip) = ip {
        let _ = write!(text, ", ip: {}", address(*ip));
    }
    if rate_bps != DEFAULT_RATE_BPS {
        let _ = write!(text, ", rate: {}", format_rate(rate_bps));
    }
    if let Some(guid) = guid {
        let _ = write!(text, ", guid: \"{guid}\"");
    }
    match (further_macs.is_empty(), learned_max) {
        (true, None) => {}
        (true, Some(_)) => text.push_str(", addresses: learned"),
        (false, None) => {
            let _ = write!(text, ", addresses: {}", list_of_macs(further_macs));
        }
        (false, Some(_)) => {
            let listed = list_of_macs(further_macs);
            let _ = write!(text, ", addresses: {}, learned]", listed.trim_end_matches(']'));
        }
    }
    if let Some(most) = learned_max.filter(|most| *most != LEARNED_MAX_DEFAULT) {
        let _ = write!(text, ", addresses-max: {most}");
    }
    text.push_str("}\n");
}

/// The word for addresses that are not listed.
const LEARNED: &str = "learned";

pub(super) fn list_of_macs(macs: &[Mac]) -> String {
    let macs: Vec<String> = macs.iter().map(|mac| format!("\"{mac}\"")).collect();
    format!("[{}]", macs.join(", "))
}

/// A host's own address: `mac:`, else the first of those that are listed.
fn own_address<'n>(fields: &Fields<'n>) -> Option<&'n Node> {
    let listed = || fields.get("addresses")?.items().iter().find(|node| !is_learned(node));
    fields.get("mac").copied().or_else(listed).map(|node| &**node)
}

fn is_learned(node: &Node) -> bool {
    node.text() == Some(LEARNED)
}

/// There are more hosts than a topology can have.
pub(super) struct TooMany;

struct HostFacts {
    /// Whether any address may be behind the port.
    edge: bool,
    mac: Option<Mac>,
    port: PortId,
    ip: Option<IpAddr>,
    rate_bps: u64,
}

/// An entry of a map, and the line that first has its name.
pub(super) struct Entry<'n> {
    pub(super) key: &'n Node,
    pub(super) name: &'n str,
    pub(super) first_line: usize,
    pub(super) value: &'n Node,
}

/// Where a host is named: its key, its name, and the machine that it is a port of.
pub(super) struct Named<'n> {
    pub(super) key: &'n Node,
    pub(super) name: String,
    pub(super) machine: Option<&'n str>,
    pub(super) first_line: usize,
}

impl Reader<'_> {
    /// The entries of a map by name; names that are none are reported.
    pub(super) fn named_entries<'n>(&mut self, map: &'n Node, what: &str) -> Vec<Entry<'n>> {
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        let mut named = Vec::new();
        for (key, value) in map.entries() {
            match key.key() {
                Some(name) => {
                    let first_line = *lines.entry(name).or_insert(key.place.line);
                    named.push(Entry { key, name, first_line, value });
                }
                None => {
                    let error = self.at(key).error(format!("a {what}'s name is one word, not {}", key.kind()));
                    self.diagnostics.push(error);
                }
            }
        }
        named
    }

    /// Reads a host; none if its name or its port cannot be had.
    pub(super) fn read_host(&mut self, named: &Named<'_>, fields: &Fields<'_>) -> Result<Option<HostId>, TooMany> {
        let cable = self.read_cable(named, fields);
        self.read_host_at(named, fields, cable)
    }

    /// Reads a host whose port, if that can be had, and rate are known.
    pub(super) fn read_host_at(
        &mut self,
        named: &Named<'_>,
        fields: &Fields<'_>,
        (port, rate_bps): (Option<PortId>, u64),
    ) -> Result<Option<HostId>, TooMany> {
        let Named { key, name, .. } = named;
        let edge = self.is_edge(fields);
        if self.is_standby_edge(fields, edge) {
            self.read_standby_edge(named, fields, (port, rate_bps))?;
            return Ok(None);
        }
        let mac = if edge { None } else { self.host_mac(key, name, fields) };
        let ip = fields.get("ip").and_then(|node| self.address(node, "ip: 198.51.100.1"));
        let Some(port) = port.or_else(|| self.spare_port(key)) else { return Ok(None) };
        self.add_host(named, fields, HostFacts { edge, mac, port, ip, rate_bps })
    }

    /// The port that a host is plugged into, and the rate of its cables together.
    pub(super) fn read_cable(&mut self, named: &Named<'_>, fields: &Fields<'_>) -> (Option<PortId>, u64) {
        let Named { key, name, .. } = named;
        let port = match fields.get("port") {
            None => {
                let error = self.at(key).error(format!("host {name} has no port"));
                self.diagnostics.push(error.with_help("say where it is plugged in: port: \"sw1:g1\""));
                None
            }
            Some(node) => {
                let text = self.word(node, "a port", "port: \"sw1:g1\"").unwrap_or_default();
                let site = inner(self.at(node), text, 0, text.chars().count());
                let end = if text.is_empty() { None } else { self.end(site, text).port };
                end.filter(|port| self.check_free(site, *port))
            }
        };
        let rate_bps = fields.get("rate").and_then(|node| self.rate(self.at(node), node.text().unwrap_or_default()));
        let cables = port.map_or(1, |port| self.builder.cables_at(port)) as u64;
        (port, rate_bps.unwrap_or(DEFAULT_RATE_BPS).saturating_mul(cables))
    }

    /// Whether a host is an uplink, behind which any address may be.
    fn is_edge(&mut self, fields: &Fields<'_>) -> bool {
        let Some(kind) = fields.get("kind") else { return false };
        if kind.text() != Some("edge") {
            self.diagnostics
                .push(self.at(kind).error("the only kind is edge: an uplink, behind which any address may be"));
            return false;
        }
        if let Some(mac) = fields.get("mac") {
            let error = self.at(mac).error("an edge port has no address of its own");
            self.diagnostics.push(error.with_help("list addresses that are known to be behind it: addresses: [\"…\"]"));
        }
        true
    }

    fn host_mac(&mut self, key: &Node, name: &str, fields: &Fields<'_>) -> Option<Mac> {
        let example = "mac: \"02:00:00:00:00:01\"";
        let Some(node) = own_address(fields) else {
            let error = self.at(key).error(format!("host {name} has no address"));
            let help = match fields.get("addresses") {
                Some(_) => format!(
                    "addresses are learned beside one that is known: that of the hypervisor's bridge or NIC, as ip link there shows it, {example}"
                ),
                None => format!("its Ethernet address is needed: {example}"),
            };
            self.diagnostics.push(error.with_help(help));
            return None;
        };
        self.mac(node, example)
    }

    pub(super) fn mac(&mut self, node: &Node, example: &str) -> Option<Mac> {
        let text = self.word(node, "an Ethernet address", example)?;
        text.parse().map_err(|error| self.diagnostics.push(self.at(node).error(format!("{text} is {error}")))).ok()
    }

    /// Adds a host, repairing what is wrong until all of it is known.
    fn add_host(
        &mut self,
        named: &Named<'_>,
        fields: &Fields<'_>,
        facts: HostFacts,
    ) -> Result<Option<HostId>, TooMany> {
        let HostFacts { edge, mut mac, port, mut ip, rate_bps } = facts;
        let Named { key, machine, first_line, .. } = *named;
        let (mut name, mut machine) = (named.name.clone(), machine);
        // Each round repairs one of name, address and IP address for good, so that four rounds suffice.
        for _ in 0..4 {
            // Some address must stand in for a missing or refused one; the topology is lost already.
            let stand_in = Mac::new([0xfe, 0xff, 0xff, 0xff, (port.index() >> 8) as u8, port.index() as u8]);
            let station = mac.unwrap_or(stand_in);
            let added = match edge {
                true => self.builder.add_edge(&name, port, rate_bps, ip),
                false => self.builder.add_host(&name, station, port, rate_bps, ip),
            };
            let fault = match added {
                Ok(host) => {
                    self.plugged.insert(port, key.place.line);
                    if let Some(machine) = machine {
                        self.refuse(key, |builder| builder.join_machine(machine));
                    }
                    self.read_rest(host, fields);
                    return Ok(Some(host));
                }
                Err(fault) => fault,
            };
            let mut rename = || {
                machine = None;
                name = format!("{}/{}", key.place.line, key.place.column);
            };
            let diagnostic = match &fault {
                Fault::DuplicateMac { .. } | Fault::MulticastMac { .. } | Fault::ZeroMac if mac.is_none() => {
                    return Ok(None);
                }
                Fault::DuplicateMac { .. } | Fault::MulticastMac { .. } | Fault::ZeroMac => {
                    mac = None;
                    self.at(own_address(fields).unwrap_or(key)).fault(&fault)
                }
                Fault::DuplicateAddress { .. } => {
                    ip = None;
                    self.at(fields.get("ip").map_or(key, |node| node)).fault(&fault)
                }
                Fault::DuplicateHost(_) => {
                    rename();
                    let diagnostic = self.at(key).fault(&fault);
                    if first_line < key.place.line {
                        diagnostic.with_help(format!("it is named first on line {first_line}"))
                    } else {
                        diagnostic
                    }
                }
                Fault::BadName(_) | Fault::DuplicateMachine(_) => {
                    rename();
                    self.at(key).fault(&fault)
                }
                _ => self.at(key).fault(&fault),
            };
            self.diagnostics.push(diagnostic);
            match fault {
                Fault::TooMany { .. } => return Err(TooMany),
                Fault::PortUsedTwice { .. } | Fault::SecondEdge { .. } => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }

    /// What a host may have beside its port and its addresses.
    pub(super) fn read_port_extras(&mut self, host: HostId, fields: &Fields<'_>) {
        if let Some((node, guid)) = self.guid(fields) {
            self.refuse(node, |builder| builder.set_host_guid(host, guid));
        }
        if let Some(rail) = self.small_number(fields, "rail") {
            self.builder.set_rail(host, rail);
        }
        if let Some(weight) = self.small_number(fields, "weight") {
            self.builder.set_weight(host, weight);
        }
    }

    fn small_number(&mut self, fields: &Fields<'_>, key: &str) -> Option<u8> {
        let node = fields.get(key)?;
        let word = self.word(node, "a number", &format!("{key}: 0"))?;
        let number = word.parse().ok();
        if number.is_none() {
            self.diagnostics.push(self.at(node).error(format!("a {key} is a number from 0 to 255")));
        }
        number
    }

    /// What a host may have beside its port and its first address.
    fn read_rest(&mut self, host: HostId, fields: &Fields<'_>) {
        self.read_port_extras(host, fields);
        const EXAMPLE: &str = "addresses: [\"52:54:00:00:00:01\", \"52:54:00:00:00:02\"]";
        let list = fields.get("addresses");
        let own = own_address(fields).filter(|_| !fields.contains_key("kind"));
        let mut learned: Option<&Node> = list.filter(|node| is_learned(node)).map(|node| &***node);
        if let Some(list) = list.filter(|node| !is_learned(node)) {
            if !matches!(list.value, Value::List(_)) {
                let message = format!("addresses: expected a list of Ethernet addresses, found {}", list.kind());
                let help = format!("such as {EXAMPLE}, or addresses: {LEARNED}");
                self.diagnostics.push(self.at(list).error(message).with_help(help));
                return;
            }
            for node in list.items() {
                if is_learned(node) {
                    learned = Some(node);
                    continue;
                }
                if own.is_some_and(|own| std::ptr::eq(own, &**node)) {
                    continue;
                }
                let Some(mac) = self.mac(node, EXAMPLE) else { continue };
                self.refuse(node, |builder| builder.add_mac(host, mac));
            }
        }
        self.read_learned(host, learned, fields.get("addresses-max").map(|node| &***node));
    }

    /// How many addresses are learned at a host's port, if any are.
    fn read_learned(&mut self, host: HostId, learned: Option<&Node>, most: Option<&Node>) {
        const EXAMPLE: &str = "addresses: learned, addresses-max: 64";
        let Some(learned) = learned else {
            if let Some(node) = most {
                let error = self.at(node).error("addresses-max: is for ports at which addresses are learned");
                self.diagnostics.push(error.with_help(EXAMPLE.to_owned()));
            }
            return;
        };
        let bounds = 1..ADDRESSES_MAX;
        let number = match most.map(|node| (node, self.word(node, "a number", EXAMPLE).map(str::parse))) {
            None => LEARNED_MAX_DEFAULT,
            Some((_, Some(Ok(number)))) if bounds.contains(&number) => number,
            Some((node, word)) => {
                if word.is_some() {
                    let message = format!("addresses-max: is a number from 1 to {}", ADDRESSES_MAX - 1);
                    self.diagnostics.push(self.at(node).error(message));
                }
                return;
            }
        };
        self.refuse(learned, |builder| builder.set_learned(host, number));
    }

    /// A port for a host whose own is wrong, so that its name and addresses are judged all the same.
    fn spare_port(&mut self, key: &Node) -> Option<PortId> {
        const SPARE: &str = "-/-/-";
        let spare = self.builder.switch(SPARE).or_else(|_| self.builder.add_switch(SPARE, SwitchSpec::default()));
        self.builder.add_port(spare.ok()?, &format!("{}/{}", key.place.line, key.place.column)).ok()
    }
}
