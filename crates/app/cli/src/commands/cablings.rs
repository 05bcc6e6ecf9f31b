//! What differs between two cablings, each difference with its remedy.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use fabric::{PortId, SwitchSpec, Topology, TopologyBuilder};
use rollout::discover::{Mismatch, compare};

use crate::failure::bad_input;

/// Says in sentences how `found` differs from `expected`: switches, cables and hosts, by name.
///
/// # Errors
/// Bad input if the two cannot be laid over each other, as when a name is a switch's here and a host's there.
pub(super) fn differences(expected: &Topology, found: &Topology) -> Result<Vec<String>> {
    let mut sentences = Vec::new();
    let names = |topology: &Topology| -> BTreeSet<String> {
        topology.switches().iter().map(|switch| switch.name.clone()).collect()
    };
    let (old, new) = (names(expected), names(found));
    sentences.extend(old.difference(&new).map(|name| format!("switch {name} is gone, or is called something else")));
    sentences.extend(new.difference(&old).map(|name| format!("switch {name} is new, or is called something else")));

    let (union, ports) = union(expected, found)?;
    let place = |topology: &Topology, port: PortId| ports[&label(topology, port)];
    let links: Vec<(PortId, PortId)> =
        found.links().iter().map(|link| (place(found, link.a), place(found, link.b))).collect();
    for mismatch in compare(&union, &links) {
        // That a switch is gone or new says all of its cables.
        let ends: Vec<PortId> = match &mismatch {
            Mismatch::Missing { ends: (a, b) } | Mismatch::Extra { ends: (a, b) } => vec![*a, *b],
            Mismatch::Swapped { .. } | Mismatch::Misplaced { .. } => Vec::new(),
        };
        let known = |port: &PortId| {
            let name = &union.switch(union.port(*port).switch).name;
            old.contains(name) && new.contains(name)
        };
        if ends.iter().all(known) {
            sentences.push(mismatch.sentence(&union));
        }
    }

    let hosts = |topology: &Topology| -> BTreeMap<String, String> {
        topology.hosts().iter().map(|host| (host.name.clone(), topology.port_label(host.port))).collect()
    };
    let (old, new) = (hosts(expected), hosts(found));
    for (name, port) in &old {
        match new.get(name) {
            None => sentences.push(format!("host {name} is gone from {port}; plug it in, or see whether it is up")),
            Some(other) if other != port => {
                sentences.push(format!("host {name} is on {other}; move that plug to {port}, or plan again"));
            }
            Some(_) => {}
        }
    }
    let fresh = new.iter().filter(|(name, _)| !old.contains_key(*name));
    sentences.extend(fresh.map(|(name, port)| format!("host {name} on {port} is new; plan again with it")));
    Ok(sentences)
}

/// A port by the names of its switch and itself, which no other has.
type Label = (String, String);

fn label(topology: &Topology, port: PortId) -> Label {
    let port = topology.port(port);
    (topology.switch(port.switch).name.clone(), port.name.clone())
}

/// The cables that should be, among all switches and ports that either cabling has.
fn union(expected: &Topology, found: &Topology) -> Result<(Topology, BTreeMap<Label, PortId>)> {
    let fault = |fault: fabric::Fault| bad_input(fault.to_string());
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for topology in [expected, found] {
        for id in topology.switch_ids() {
            let ports = topology.port_ids(id).map(|port| topology.port(port).name.clone());
            all.entry(topology.switch(id).name.clone()).or_default().extend(ports);
        }
    }
    let mut builder = TopologyBuilder::new();
    let mut given: BTreeMap<Label, PortId> = BTreeMap::new();
    for (name, ports) in &all {
        let switch = builder.add_switch(name, SwitchSpec { model: None, mgmt: None }).map_err(fault)?;
        for port in ports {
            given.insert((name.clone(), port.clone()), builder.add_port(switch, port).map_err(fault)?);
        }
    }
    for link in expected.links() {
        let end = |port| given[&label(expected, port)];
        builder.add_link(end(link.a), end(link.b), link.rate_bps).map_err(fault)?;
    }
    let union = builder
        .finish()
        .map_err(|faults| bad_input(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let ports = union.switch_ids().flat_map(|switch| union.port_ids(switch)).map(|port| (label(&union, port), port));
    let ports = ports.collect();
    Ok((union, ports))
}
