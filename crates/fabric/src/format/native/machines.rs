//! The sections `hosts:` and `machines:` of a topology file.
//!
//! ```yaml
//! hosts:                           # one port each
//!   node01: {mac: "02:00:00:00:00:01", port: "sw1:g1"}
//! machines:                        # the same, and machines with several ports
//!   gpu1: {nics: {eth0: {mac: "02:00:00:00:00:03", port: "sw1:g3", rail: 0}, eth1: {…}}}
//! ```
//!
//! Hosts are numbered in the order of `hosts:`, then of `machines:`. A port of a machine with `nics:` is the host
//! `MACHINE/NIC`.

use std::fmt::Write as _;

use super::{
    Fields, Reader, bonds, edges,
    hosts::{Entry, HOST_EXAMPLE, HOST_KEYS, NICS_EXAMPLE, Named, TooMany, write_host},
};
use crate::{
    Topology,
    format::{node::Node, yaml::quote},
};

const MACHINE_KEYS: [&str; 13] = [
    "kind",
    "standby",
    "bond",
    "nics",
    "mac",
    "port",
    "ip",
    "rate",
    "guid",
    "addresses",
    "addresses-max",
    "rail",
    "weight",
];

/// Writes both sections, each where it has anything.
pub(super) fn write(topology: &Topology, text: &mut String) {
    let machines = topology.machines();
    let is_plain = |machine: &crate::Machine| machine.hosts().all(|host| topology.host(host).name == machine.name);
    // Hosts keep their numbers: all that stand before the first machine with `nics:` come under `hosts:`.
    let plain = machines.iter().take_while(|machine| is_plain(machine)).count();
    // Edge ports on standby stand behind all hosts, in the section that is the last one then.
    let edges_are_machines = plain < machines.len();
    for (section, machines, has_edges) in
        [("hosts:\n", &machines[..plain], !edges_are_machines), ("machines:\n", &machines[plain..], edges_are_machines)]
    {
        let edges = if has_edges { topology.standby_edges() } else { &[] };
        text.push_str(if machines.is_empty() && edges.is_empty() { "" } else { section });
        for machine in machines {
            if is_plain(machine) {
                machine.hosts().for_each(|host| write_host(topology, host, &machine.name, "  ", text));
                continue;
            }
            let _ = writeln!(text, "  {}:", quote(&machine.name));
            let active = machine.hosts().find(|host| topology.standby_ports(*host).next().is_some());
            if let Some(active) = active {
                bonds::write_shared(topology.host(active), text);
            }
            text.push_str("    nics:\n");
            for host in machine.hosts() {
                let nic = &topology.host(host).name[machine.name.len() + 1..];
                match active {
                    None => write_host(topology, host, nic, "      ", text),
                    Some(active) => bonds::write_port(topology, host, active, nic, text),
                }
            }
        }
        edges.iter().for_each(|edge| edges::write(topology, edge, text));
    }
}

impl Reader<'_> {
    pub(super) fn read_hosts(&mut self, section: &Node) {
        self.read_machines_of(section, "hosts", "host", &HOST_KEYS);
    }

    pub(super) fn read_machines(&mut self, section: &Node) {
        self.read_machines_of(section, "machines", "machine", &MACHINE_KEYS);
    }

    fn read_machines_of(&mut self, section: &Node, title: &str, what: &str, keys: &[&str]) {
        if section.is_null() || !self.expect_map(section, title, &format!("node01: {HOST_EXAMPLE}")) {
            return;
        }
        for Entry { key, name, first_line, value } in self.named_entries(section, what) {
            if value.is_null() {
                let error = self.at(key).error(format!("{what} {name} has neither address nor port"));
                self.diagnostics.push(error.with_help(format!("node01: {HOST_EXAMPLE}")));
                continue;
            }
            if !self.expect_map(value, name, HOST_EXAMPLE) {
                continue;
            }
            let fields = self.checked_entries(value, keys, "key");
            let named = Named { key, name: name.to_owned(), machine: None, first_line };
            let read = match (fields.get("bond"), fields.get("nics")) {
                (Some(bond), nics) => self.read_bond(&named, &fields, bond, nics.copied()),
                (None, Some(nics)) => self.read_nics(name, &fields, nics),
                (None, None) => self.read_host(&named, &fields).map(drop),
            };
            if read.is_err() {
                return;
            }
        }
    }

    fn read_nics(&mut self, machine: &str, fields: &Fields<'_>, nics: &Node) -> Result<(), TooMany> {
        if let Some(other) = fields.iter().find(|(key, _)| **key != "nics") {
            let error =
                self.at(other.1).error(format!("machine {machine} has nics:, so each of them has its own {}", other.0));
            self.diagnostics.push(error.with_help(format!("write it there: {NICS_EXAMPLE}")));
        }
        if !self.expect_map(nics, "nics", NICS_EXAMPLE) {
            return Ok(());
        }
        if nics.entries().is_empty() {
            let error = self.at(nics).error(format!("machine {machine} has no ports"));
            self.diagnostics.push(error.with_help(format!("name at least one: {NICS_EXAMPLE}")));
        }
        for Entry { key, name: nic, first_line, value } in self.named_entries(nics, "port") {
            let name = format!("{machine}/{nic}");
            if !self.expect_map(value, &name, HOST_EXAMPLE) {
                continue;
            }
            let fields = self.checked_entries(value, &HOST_KEYS, "key");
            self.read_host(&Named { key, name, machine: Some(machine), first_line }, &fields)?;
        }
        Ok(())
    }
}
