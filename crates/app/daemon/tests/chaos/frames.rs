//! Follows frames through the virtual switches, by their state alone and independently of the judge.

use std::collections::BTreeSet;

use fabric::{Attachment, Mac, PortId, SpanningTree, SwitchId, VlanId};

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

/// The VLAN of frames that enter by a host's port, if any do.
fn sent_in(fabric: &VirtualFabric, port: PortId) -> Option<VlanId> {
    let is_in = |vlan: &VlanId| fabric.running(port).is_member(*vlan);
    fabric.running(port).pvid.filter(is_in).filter(|_| fabric.carries(port))
}

/// Whether frames of a VLAN leave by a port to a host.
fn leaves_to_host(fabric: &VirtualFabric, port: PortId, vlan: VlanId) -> bool {
    let is_host = matches!(fabric.topology.port(port).attachment, Attachment::Host(_));
    is_host && fabric.running(port).is_member(vlan) && fabric.carries(port)
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
    walk(fabric, from, &|_, _| None)
}

/// The way of a frame to an address from a host's port; none if it enters no switch.
pub(crate) fn unicast(fabric: &VirtualFabric, from: PortId, to: Mac) -> Option<Way> {
    walk(fabric, from, &|switch, vlan| {
        let first = fabric.topology.switch_ports(switch).start;
        let entry = fabric.switch(switch).running.entries.get(&(vlan, to)).copied();
        entry.or_else(|| fabric.row(switch, vlan, to)).map(|slot| PortId::new(first + slot.index()))
    })
}

/// Follows a frame; `knows` says by which port a switch sends it on, if it knows.
fn walk(fabric: &VirtualFabric, from: PortId, knows: &dyn Fn(SwitchId, VlanId) -> Option<PortId>) -> Option<Way> {
    let mut way = Way::default();
    let mut passed: BTreeSet<SwitchId> = BTreeSet::new();
    let mut due = vec![(from, sent_in(fabric, from)?)];
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
