//! Edge ports on standby: further uplinks to the network outside that the edge port leads to, whose ports are shut.
//!
//! ```yaml
//! machines:
//!   uplink1: {kind: edge, port: "sw4:g24"}
//!   uplink2: {kind: edge, standby: true, port: "sw5:g24", addresses: ["00:00:5e:00:01:01"]}
//! ```

use std::fmt::Write as _;

use super::{
    Fields, Reader,
    hosts::{Named, TooMany, list_of_macs},
    lone_port,
};
use crate::{
    DEFAULT_RATE_BPS, Fault, PortId, StandbyEdge, Topology,
    format::{
        node::Value,
        yaml::{double_quote, quote},
    },
    format_rate,
};

/// What a standby edge may have; anything else is about frames, of which it has none.
const EDGE_KEYS: [&str; 5] = ["kind", "standby", "port", "rate", "addresses"];
const ADDRESSES_EXAMPLE: &str = "addresses: [\"52:54:00:00:00:01\"]";

pub(super) fn write(topology: &Topology, edge: &StandbyEdge, text: &mut String) {
    let port = double_quote(&lone_port(topology, edge.port));
    let _ = write!(text, "  {}: {{kind: edge, standby: true, port: {port}", quote(&edge.name));
    if edge.rate_bps != DEFAULT_RATE_BPS {
        let _ = write!(text, ", rate: {}", format_rate(edge.rate_bps));
    }
    if !edge.macs.is_empty() {
        let _ = write!(text, ", addresses: {}", list_of_macs(&edge.macs));
    }
    text.push_str("}\n");
}

impl Reader<'_> {
    /// Whether a host is an edge port on standby, given whether it is an edge port.
    pub(super) fn is_standby_edge(&mut self, fields: &Fields<'_>, edge: bool) -> bool {
        let Some(node) = fields.get("standby") else { return false };
        match node.text() {
            Some("true") if edge => return true,
            Some("false") if edge => {}
            Some("true" | "false") => {
                let error = self.at(node).error("standby: is for edge ports");
                let help = "write kind: edge at an uplink; of the ports of a failover bond all but the active one are on standby";
                self.diagnostics.push(error.with_help(help));
            }
            _ => {
                self.diagnostics.push(self.at(node).error("standby: is true or false"));
                return edge;
            }
        }
        false
    }

    /// Reads an edge port on standby whose port, if that can be had, and rate are known.
    pub(super) fn read_standby_edge(
        &mut self,
        named: &Named<'_>,
        fields: &Fields<'_>,
        (port, rate_bps): (Option<PortId>, u64),
    ) -> Result<(), TooMany> {
        for (key, node) in fields.iter().filter(|(key, _)| !EDGE_KEYS.contains(key) && **key != "mac") {
            let error = self.at(node).error(format!("an edge port on standby has no {key}"));
            self.diagnostics.push(error.with_help("write it there when standby: true goes away"));
        }
        let Some(port) = port else { return Ok(()) };
        let edge = match self.builder.add_standby_edge(&named.name, port, rate_bps) {
            Ok(edge) => edge,
            Err(fault) => {
                self.diagnostics.push(self.at(named.key).fault(&fault));
                return if matches!(fault, Fault::TooMany { .. }) { Err(TooMany) } else { Ok(()) };
            }
        };
        self.plugged.insert(port, named.key.place.line);
        let Some(list) = fields.get("addresses") else { return Ok(()) };
        if !matches!(list.value, Value::List(_)) {
            let message = format!("addresses: expected a list of Ethernet addresses, found {}", list.kind());
            self.diagnostics.push(self.at(list).error(message).with_help(format!("such as {ADDRESSES_EXAMPLE}")));
            return Ok(());
        }
        for node in list.items() {
            let Some(mac) = self.mac(node, ADDRESSES_EXAMPLE) else { continue };
            self.refuse(node, |builder| builder.add_standby_mac(edge, mac));
        }
        Ok(())
    }
}
