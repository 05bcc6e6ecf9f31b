//! Failover bonds (active-backup, dual ToR): one machine, one set of addresses, several ports, of which one is active.
//!
//! ```yaml
//! machines:
//!   login1:
//!     bond: failover
//!     mac: "02:00:00:00:00:11"
//!     nics:
//!       eth0: {port: "sw1:g7"}                  # the first port is the active one,
//!       eth1: {port: "sw2:g7", active: true}    # unless another says so
//! ```

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    Fields, Reader, address, cable_rate_bps,
    hosts::{Entry, NICS_EXAMPLE, Named, TooMany, list_of_macs},
    lone_port,
};
use crate::{
    DEFAULT_RATE_BPS, Host, HostId, Topology,
    format::{node::Node, yaml::double_quote, yaml::quote},
    format_rate,
};

/// What belongs to the bond, and what to each of its ports.
const SHARED_KEYS: [&str; 6] = ["bond", "nics", "mac", "ip", "addresses", "weight"];
const PORT_KEYS: [&str; 5] = ["port", "rate", "guid", "rail", "active"];
const PORTS_EXAMPLE: &str = "nics: {eth0: {port: \"sw1:g1\"}, eth1: {port: \"sw2:g1\"}}";

/// Writes what the ports of a bond share.
pub(super) fn write_shared(active: &Host, text: &mut String) {
    let _ = write!(text, "    bond: failover\n    mac: \"{}\"\n", active.mac);
    if let Some(ip) = active.address {
        let _ = writeln!(text, "    ip: {}", address(ip));
    }
    if !active.further_macs.is_empty() {
        let _ = writeln!(text, "    addresses: {}", list_of_macs(&active.further_macs));
    }
    if active.weight != 1 {
        let _ = writeln!(text, "    weight: {}", active.weight);
    }
}

/// Writes one port of a bond.
pub(super) fn write_port(topology: &Topology, port: HostId, active: HostId, nic: &str, text: &mut String) {
    let host = topology.host(port);
    let _ = write!(text, "      {}: {{port: {}", quote(nic), double_quote(&lone_port(topology, host.port)));
    let is_first = topology.machine(host.machine).hosts().next() == Some(port);
    if port == active && !is_first {
        text.push_str(", active: true");
    }
    if let Some(rail) = host.rail {
        let _ = write!(text, ", rail: {rail}");
    }
    let rate_bps = cable_rate_bps(topology, host.port, host.rate_bps);
    if rate_bps != DEFAULT_RATE_BPS {
        let _ = write!(text, ", rate: {}", format_rate(rate_bps));
    }
    if let Some(guid) = host.guid {
        let _ = write!(text, ", guid: \"{guid}\"");
    }
    text.push_str("}\n");
}

impl Reader<'_> {
    pub(super) fn read_bond(
        &mut self,
        named: &Named<'_>,
        fields: &Fields<'_>,
        bond: &Node,
        nics: Option<&std::rc::Rc<Node>>,
    ) -> Result<(), TooMany> {
        let machine = named.name.as_str();
        match (bond.text(), nics) {
            (Some("lacp"), Some(nics)) => return self.read_lacp_bond(named, fields, nics),
            (Some("failover" | "lacp"), _) => {}
            _ => {
                let error = self.at(bond).error("a bond is lacp or failover");
                let help = "lacp: all ports form a LAG with one switch; failover: one port is active, the others are on standby";
                self.diagnostics.push(error.with_help(help.to_owned()));
                return Ok(());
            }
        }
        if let Some((key, node)) = fields.iter().find(|(key, _)| !SHARED_KEYS.contains(key)) {
            let error = self.at(node).error(format!("machine {machine} has a bond, so each port has its own {key}"));
            self.diagnostics.push(error.with_help(format!("write it there: {PORTS_EXAMPLE}")));
        }
        let Some(nics) = nics else {
            let error = self.at(bond).error(format!("machine {machine} has a bond, but no nics:"));
            self.diagnostics.push(error.with_help(PORTS_EXAMPLE.to_owned()));
            return Ok(());
        };
        if !self.expect_map(nics, "nics", NICS_EXAMPLE) {
            return Ok(());
        }
        if nics.entries().len() < 2 {
            let error = self.at(nics).error(format!("the bond of machine {machine} has fewer than two ports"));
            self.diagnostics.push(error.with_help(PORTS_EXAMPLE.to_owned()));
        }
        let shared: Fields<'_> =
            fields.iter().filter(|(key, _)| !["bond", "nics"].contains(key)).map(|(key, node)| (*key, *node)).collect();
        let (mut has_first, mut named_active) = (false, BTreeMap::new());
        for Entry { key, name: nic, first_line, value } in self.named_entries(nics, "port") {
            let name = format!("{machine}/{nic}");
            if !self.expect_map(value, &name, "{port: \"sw1:g1\"}") {
                continue;
            }
            let fields = self.checked_entries(value, &PORT_KEYS, "key");
            let named = Named { key, name, machine: Some(machine), first_line };
            let host = if has_first {
                self.read_standby(&named, &fields)?
            } else {
                let all = shared.iter().chain(&fields).map(|(key, node)| (*key, *node)).collect();
                self.read_host(&named, &all)?
            };
            has_first |= host.is_some();
            let Some(node) = fields.get("active") else { continue };
            match node.text() {
                Some("true") => named_active.extend(host.map(|host| (host, *node))),
                Some("false") => {}
                _ => self.diagnostics.push(self.at(node).error("active: is true or false")),
            }
        }
        if let Some((_, second)) = named_active.iter().nth(1) {
            self.diagnostics.push(self.at(second).error(format!("two ports of machine {machine} are active")));
        }
        if let Some(active) = named_active.keys().next() {
            self.builder.set_active(*active);
        }
        Ok(())
    }

    fn read_standby(&mut self, named: &Named<'_>, fields: &Fields<'_>) -> Result<Option<HostId>, TooMany> {
        let (Some(port), rate_bps) = self.read_cable(named, fields) else { return Ok(None) };
        match self.builder.add_standby(&named.name, port, rate_bps) {
            Ok(host) => {
                self.plugged.insert(port, named.key.place.line);
                self.read_port_extras(host, fields);
                Ok(Some(host))
            }
            Err(fault) => {
                self.diagnostics.push(self.at(named.key).fault(&fault));
                if matches!(fault, crate::Fault::TooMany { .. }) { Err(TooMany) } else { Ok(None) }
            }
        }
    }
}
