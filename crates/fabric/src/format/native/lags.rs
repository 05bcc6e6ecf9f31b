//! LAGs: ports of a switch that are one port.
//!
//! ```yaml
//! switches:
//!   sw1: {lags: {lag1: [g21, g22]}}                # a LAG by its number, for links and hosts to name: sw1:lag1
//! machines:
//!   storage1:                                      # a bond of a machine whose ports are on one switch (IEEE 802.3ad):
//!     bond: lacp                                   # the LAG of just these ports, else a new one of the lowest free number
//!     mac: "02:00:00:00:00:10"
//!     nics: {eth0: {port: "sw1:g5"}, eth1: {port: "sw1:g6"}}
//! ```

use std::collections::BTreeSet;

use super::{
    Fields, Reader,
    hosts::{Entry, NICS_EXAMPLE, Named, TooMany},
    inner,
};
use crate::{
    DEFAULT_RATE_BPS, LagNumber, PortId, SwitchId, Topology,
    format::{
        node::{Node, Value},
        yaml::quote,
    },
};

/// What belongs to each port of the bond; all else belongs to the bond.
const PORT_KEYS: [&str; 2] = ["port", "rate"];
const PORTS_EXAMPLE: &str = "nics: {eth0: {port: \"sw1:g1\"}, eth1: {port: \"sw1:g2\"}}";
const LAGS_EXAMPLE: &str = "lags: {lag1: [g21, g22]}";

/// The LAGs of a switch, if it has any.
pub(super) fn write(topology: &Topology, switch: SwitchId) -> Option<String> {
    let lags = topology.port_ids(switch).filter(|port| topology.port(*port).lag().is_some());
    let listed = lags.map(|lag| {
        let members: Vec<String> = topology.members(lag).map(|port| quote(&topology.port(port).name)).collect();
        format!("{}: [{}]", topology.port(lag).name, members.join(", "))
    });
    let listed: Vec<String> = listed.collect();
    (!listed.is_empty()).then(|| format!("lags: {{{}}}", listed.join(", ")))
}

impl Reader<'_> {
    pub(super) fn read_lags(&mut self, switch: SwitchId, section: &Node) {
        if !self.expect_map(section, "lags", LAGS_EXAMPLE) {
            return;
        }
        for Entry { key, name, first_line, value } in self.named_entries(section, "LAG") {
            if let Err(message) = name.parse::<LagNumber>() {
                self.diagnostics.push(self.at(key).error(message).with_help(format!("such as {LAGS_EXAMPLE}")));
                continue;
            }
            if first_line < key.place.line {
                let error = self.at(key).error(format!("{name} is given twice"));
                self.diagnostics
                    .push(error.with_help(format!("it is given first on line {first_line}; merge the two")));
                continue;
            }
            if !matches!(value.value, Value::List(_)) {
                let message = format!("expected the members of {name}, found {}", value.kind());
                self.diagnostics.push(self.at(value).error(message).with_help(format!("such as {LAGS_EXAMPLE}")));
                continue;
            }
            let Ok(lag) = self.builder.add_port(switch, name) else { continue };
            for item in value.items() {
                let Some(member) = self.word(item, "a port", LAGS_EXAMPLE) else { continue };
                match self.builder.add_port(switch, member) {
                    Ok(member) => self.join_lag(item, lag, member),
                    Err(fault) => self.diagnostics.push(self.at(item).fault(&fault)),
                }
            }
        }
    }

    fn join_lag(&mut self, node: &Node, lag: PortId, member: PortId) {
        if self.check_free(self.at(node), member) {
            self.refuse(node, |builder| builder.add_to_lag(lag, member));
            self.plugged.insert(member, node.place.line);
        }
    }

    /// A machine whose ports are bonded by LACP: a host on a LAG.
    pub(super) fn read_lacp_bond(
        &mut self,
        named: &Named<'_>,
        fields: &Fields<'_>,
        nics: &Node,
    ) -> Result<(), TooMany> {
        let machine = &named.name;
        for key in PORT_KEYS {
            if let Some(node) = fields.get(key) {
                let error =
                    self.at(node).error(format!("machine {machine} has a bond, so each port has its own {key}"));
                self.diagnostics.push(error.with_help(format!("write it there: {PORTS_EXAMPLE}")));
            }
        }
        if !self.expect_map(nics, "nics", NICS_EXAMPLE) {
            return Ok(());
        }
        let (mut members, mut rates_bps) = (Vec::new(), BTreeSet::new());
        for Entry { key, name: nic, value, .. } in self.named_entries(nics, "port") {
            let name = format!("{machine}/{nic}");
            if !self.expect_map(value, &name, "{port: \"sw1:g1\"}") {
                continue;
            }
            let fields = self.checked_entries(value, &PORT_KEYS, "key");
            let Some(node) = fields.get("port") else {
                let error = self.at(key).error(format!("host {name} has no port"));
                self.diagnostics.push(error.with_help("say where it is plugged in: port: \"sw1:g1\""));
                continue;
            };
            let text = self.word(node, "a port", "port: \"sw1:g1\"").unwrap_or_default();
            let site = inner(self.at(node), text, 0, text.chars().count());
            let end = if text.is_empty() { None } else { Some(self.end(site, text)) };
            members.extend(end.and_then(|end| Some((end.switch?, end.port?, *node))));
            let rate_bps =
                fields.get("rate").and_then(|node| self.rate(self.at(node), node.text().unwrap_or_default()));
            rates_bps.insert(rate_bps.unwrap_or(DEFAULT_RATE_BPS));
        }
        let Some(&(switch, ..)) = members.first() else {
            let error = self.at(nics).error(format!("the bond of machine {machine} has no ports"));
            self.diagnostics.push(error.with_help(PORTS_EXAMPLE.to_owned()));
            return Ok(());
        };
        if let Some((_, _, elsewhere)) = members.iter().find(|(other, ..)| *other != switch) {
            let message = format!("machine {machine} is bonded by LACP, and its ports are on two switches");
            let help = "an LACP bond connects to one switch; for several, write bond: failover";
            self.diagnostics.push(self.at(elsewhere).error(message).with_help(help));
            return Ok(());
        }
        if rates_bps.len() > 1 {
            let message = format!("the ports of machine {machine}, which are bonded by LACP, have different rates");
            let help = "members of a LAG have one rate: LACP leaves out those of another";
            self.diagnostics.push(self.at(nics).error(message).with_help(help));
            return Ok(());
        }
        let ports: BTreeSet<PortId> = members.iter().map(|(_, port, _)| *port).collect();
        let lag = match self.builder.lag_of(&ports) {
            Some(lag) if self.check_free(self.at(nics), lag) => lag,
            Some(_) => return Ok(()),
            None => {
                let lag = match self.builder.add_lag(switch, None) {
                    Ok(lag) => lag,
                    Err(fault) => {
                        self.diagnostics.push(self.at(nics).fault(&fault));
                        return Ok(());
                    }
                };
                members.iter().for_each(|(_, port, node)| self.join_lag(node, lag, *port));
                lag
            }
        };
        let rate_bps = rates_bps.first().map_or(DEFAULT_RATE_BPS, |rate| rate.saturating_mul(ports.len() as u64));
        let own = fields.iter().filter(|(key, _)| !["bond", "nics"].contains(key) && !PORT_KEYS.contains(key));
        let own = own.map(|(key, node)| (*key, *node)).collect();
        self.read_host_at(named, &own, (Some(lag), rate_bps)).map(drop)
    }
}
