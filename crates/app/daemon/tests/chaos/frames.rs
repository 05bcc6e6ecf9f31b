//! Follows frames through the virtual switches, by their state alone and independently of the judge.

use std::collections::BTreeSet;

use fabric::{Attachment, Mac, PortId, SpanningTree, SwitchId, VlanId};
use tagging::{Spread, TaggingTable};

use crate::fabric::VirtualFabric;

/// How a frame came to a switch: by which port, in which VLAN.
pub(crate) type Place = (PortId, VlanId);

/// Where a frame of a VLAN that is at a switch and leaves by a port goes next.
fn onward(fabric: &VirtualFabric, port: PortId, vlan: VlanId) -> Option<Place> {
    let far = fabric.far(port).filter(|_| fabric.carries(port))?;
    let (own, other) = (fabric.running(port), fabric.running(far));
    let arrives = if own.tagged.contains(vlan) {
        Some(vlan)
    } else if own.untagged.contains(vlan) {
        other.pvid
    } else {
        None
    };
    arrives.filter(|vlan| other.is_member(*vlan)).map(|vlan| (far, vlan))
}

/// Where a broadcast of a VLAN that is at a switch goes next.
pub(crate) fn next(fabric: &VirtualFabric, switch: SwitchId, entered: Option<PortId>, vlan: VlanId) -> Vec<Place> {
    let ports = fabric.topology.port_ids(switch).filter(|port| entered != Some(*port));
    ports.filter_map(|port| onward(fabric, port, vlan)).collect()
}

/// The table of the host at a port; none if its switch tags.
fn table(fabric: &VirtualFabric, port: PortId) -> Option<&TaggingTable> {
    let Attachment::Host(host) = fabric.topology.port(port).attachment else { return None };
    fabric.tables.get(&fabric.topology.host(host).mac)
}

/// The VLAN of broadcasts of the host at a port; none if there is none for them.
pub(crate) fn broadcast_vlan(fabric: &VirtualFabric, port: PortId) -> Option<VlanId> {
    match table(fabric, port) {
        Some(table) => table.group.as_ref().map(|route| route.choices()[0]),
        None => fabric.running(port).pvid,
    }
}

/// The VLANs of frames for an address from the host at a port: each flow has one of them.
fn unicast_vlans(fabric: &VirtualFabric, port: PortId, to: Mac) -> Vec<Option<VlanId>> {
    let destination = table(fabric, port).and_then(|table| table.destinations.get(&to));
    match destination {
        Some(route) if route.how() == Spread::First => vec![Some(route.choices()[0])],
        Some(route) => route.choices().iter().copied().map(Some).collect(),
        None => vec![broadcast_vlan(fabric, port)],
    }
}

/// Whether frames of a VLAN get in by a port.
fn gets_in(fabric: &VirtualFabric, port: PortId, vlan: VlanId) -> bool {
    fabric.running(port).is_member(vlan) && fabric.carries(port)
}

/// Whether frames of a VLAN leave by a port to a host that takes them.
fn leaves_to_host(fabric: &VirtualFabric, port: PortId, vlan: VlanId) -> bool {
    let is_host = matches!(fabric.topology.port(port).attachment, Attachment::Host(_));
    is_host && gets_in(fabric, port, vlan) && table(fabric, port).is_none_or(|table| table.receive.contains(vlan))
}

/// Where a frame goes.
#[derive(Default)]
pub(crate) struct Way {
    /// Where it enters switches, the first one included.
    pub(crate) entered: Vec<Place>,
    /// Ports of hosts that it leaves by, one for each copy.
    pub(crate) left: Vec<PortId>,
    /// Ports of hosts that entries and rows name, whether these carry or not.
    pub(crate) named: Vec<PortId>,
    /// Where no switch knew the address.
    pub(crate) flooded: bool,
    /// A switch that it came to twice, though no spanning tree runs there.
    pub(crate) twice: Option<SwitchId>,
}

/// The way of a broadcast from a host's port; none if it enters no switch.
pub(crate) fn flood(fabric: &VirtualFabric, from: PortId) -> Option<Way> {
    walk(fabric, (from, broadcast_vlan(fabric, from)?), &|_, _| None)
}

/// The ways of frames to an address from a host's port, by the VLANs that it spreads them over; no way where a frame enters no switch.
pub(crate) fn unicast(fabric: &VirtualFabric, from: PortId, to: Mac) -> Vec<(Option<VlanId>, Option<Way>)> {
    let knows = |switch: SwitchId, vlan: VlanId| {
        let first = fabric.topology.switch_ports(switch).start;
        let entry = fabric.switch(switch).running.entries.get(&(vlan, to)).copied();
        entry.or_else(|| fabric.row(switch, vlan, to)).map(|slot| PortId::new(first + slot.index()))
    };
    let way = |vlan: VlanId| walk(fabric, (from, vlan), &knows);
    unicast_vlans(fabric, from, to).into_iter().map(|vlan| (vlan, vlan.and_then(way))).collect()
}

/// The same, of frames that enter a switch.
pub(crate) fn unicast_ways(fabric: &VirtualFabric, from: PortId, to: Mac) -> impl Iterator<Item = Way> {
    unicast(fabric, from, to).into_iter().filter_map(|(_, way)| way)
}

/// Follows a frame; `knows` says by which port a switch sends it on, if it knows.
fn walk(fabric: &VirtualFabric, from: Place, knows: &dyn Fn(SwitchId, VlanId) -> Option<PortId>) -> Option<Way> {
    if !gets_in(fabric, from.0, from.1) {
        return None;
    }
    let mut way = Way::default();
    let mut passed: BTreeSet<SwitchId> = BTreeSet::new();
    let mut due = vec![from];
    while let Some((port, vlan)) = due.pop() {
        let switch = fabric.topology.port(port).switch;
        if !passed.insert(switch) {
            let blocks = fabric.switch(switch).running.spanning_tree == SpanningTree::On;
            way.twice = way.twice.or((!blocks).then_some(switch));
            continue;
        }
        way.entered.push((port, vlan));
        let known = knows(switch, vlan);
        way.flooded |= known.is_none();
        let is_host = |out: &PortId| matches!(fabric.topology.port(*out).attachment, Attachment::Host(_));
        way.named.extend(known.filter(|out| *out != port && is_host(out)));
        for out in
            fabric.topology.port_ids(switch).filter(|out| *out != port && known.is_none_or(|known| known == *out))
        {
            due.extend(onward(fabric, out, vlan));
            way.left.extend(Some(out).filter(|out| leaves_to_host(fabric, *out, vlan)));
        }
    }
    Some(way)
}
