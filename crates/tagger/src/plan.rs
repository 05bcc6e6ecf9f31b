//! A plan's hosts as the tagger's configuration, and a host's table straight from the plan.
//!
//! Which VLANs a pair may use is read from the switches' intents, not from the trees: a VLAN counts if a frame walks along
//! static entries from one host to the other.
//!
//! ```text
//!   a ─ sw1 ═ sw2 ─ b     VLAN 2: sw1 sends b's frames right, sw2 to b's port: usable
//!                         VLAN 3: sw1 has no entry for b: it would flood, so not usable
//! ```

use std::collections::BTreeMap;

use fabric::{
    Assignment, Attachment, DeviceIntent, HostId, HostTagging, Mac, Plan, Tagging, Topology, VlanId, VlanSet,
};

use crate::{
    config::{Config, HostLine, Mode},
    table::{CHOICES_MAX, Route, Spread, Table},
};

/// The table of one host of a plan; a plan whose switches tag gives none. With a spread over flows, a pair's VLANs are
/// the one that the plan assigns, then every other that the switches carry the pair in. Cost: O(hosts · log hosts), and
/// with a spread O(hosts · VLANs · hops · log entries).
pub fn table(plan: &Plan, host: HostId, spread: Spread) -> Option<Table> {
    if plan.host_intent(host).tagging == HostTagging::BySwitch {
        return None;
    }
    let vlans = vlans(plan, host);
    let route = |to: HostId| {
        let assigned = plan.assignment.unicast(host, to);
        if spread == Spread::First {
            return Route::single(assigned);
        }
        let others = vlans.iter().filter(|vlan| *vlan != assigned && carries(plan, *vlan, host, to));
        Route::spread(std::iter::once(assigned).chain(others).take(CHOICES_MAX), spread)
            .unwrap_or_else(|| Route::single(assigned))
    };
    let destinations =
        (plan.topology.host_ids()).filter(|to| *to != host).map(|to| (plan.topology.host(to).mac, route(to))).collect();
    Some(Table { destinations, group: Some(Route::single(plan.assignment.broadcast(host))), receive: vlans })
}

/// The configuration that all hosts of a plan share; none if its switches tag. A plan by pair lists every pair, with the
/// numbers of [`Config`].
pub fn config(plan: &Plan, spread: Spread) -> Option<Config> {
    let mode = match plan.policy.tagging {
        Tagging::Switch => return None,
        Tagging::Source => Mode::Source,
        Tagging::Destination => Mode::Destination,
        Tagging::SourceDestination => Mode::SourceDestination,
        Tagging::Pair => Mode::Pair,
    };
    let topology = &plan.topology;
    let hosts: BTreeMap<Mac, HostLine> = (topology.host_ids())
        .map(|host| {
            let priority = match &plan.assignment {
                Assignment::Priority { priority, .. } => priority[host.index()],
                _ => 0,
            };
            let switch = Some(topology.switch(topology.switch_of(host)).name.clone());
            (topology.host(host).mac, HostLine { vlans: vec![plan.assignment.broadcast(host)], priority, switch })
        })
        .collect();
    let mut pairs = BTreeMap::new();
    if mode == Mode::Pair {
        for from in topology.host_ids() {
            let table = table(plan, from, spread)?;
            let own = topology.host(from).mac;
            pairs.extend(table.destinations.into_iter().map(|(to, route)| ((own, to), route.choices().to_vec())));
        }
    }
    let vlans = plan.trees.iter().map(|tree| tree.vlan).collect();
    Some(Config { mode, spread, hosts, pairs, vlans })
}

/// The host of a plan with this address.
pub fn host_of(topology: &Topology, mac: Mac) -> Option<HostId> {
    topology.host_ids().find(|host| topology.host(*host).mac == mac)
}

/// VLANs that a host may send and receive: those that its port carries with a tag.
pub fn vlans(plan: &Plan, host: HostId) -> VlanSet {
    let topology = &plan.topology;
    let port = topology.host(host).port;
    let intent = &plan.devices[topology.port(port).switch.index()];
    (intent.ports.iter()).find(|intent| intent.port == port).map(|intent| intent.tagged.clone()).unwrap_or_default()
}

/// Whether the switches carry frames of a VLAN from one host to another, each by a static entry.
pub fn carries(plan: &Plan, vlan: VlanId, from: HostId, to: HostId) -> bool {
    let topology = &plan.topology;
    let (mut port, end) = (topology.host(from).port, topology.host(to).port);
    for _ in 0..=topology.switches().len() {
        let switch = topology.port(port).switch;
        let intent = &plan.devices[switch.index()];
        let first = topology.switch_ports(switch).start;
        let is_member = |port: fabric::PortId| {
            intent.ports.get(port.index() - first).is_some_and(|intent| intent.tagged.contains(vlan))
        };
        let Some(out) = entry(intent, vlan, to) else { return false };
        if !is_member(port) || !is_member(out) {
            return false;
        }
        if out == end {
            return true;
        }
        let Attachment::Link(link) = topology.port(out).attachment else { return false };
        let link = topology.link(link);
        port = if link.a == out { link.b } else { link.a };
    }
    false
}

fn entry(intent: &DeviceIntent, vlan: VlanId, to: HostId) -> Option<fabric::PortId> {
    let at = intent.fdb.partition_point(|run| (run.vlan, run.last) < (vlan, to));
    intent.fdb.get(at).filter(|run| run.vlan == vlan && run.first <= to).map(|run| run.port)
}
