//! Where entries of addresses lead, from the state of the virtual switches alone.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, Mac, PortId};

use crate::{fabric::VirtualFabric, frames, guests::Guests};

/// Ports of hosts that entries of an address lead to, from wherever another host sends to `port`: places where nobody sends do not
/// count, and neither do switches that are cut off from it.
fn ends(fabric: &VirtualFabric, mac: Mac, port: PortId) -> BTreeSet<PortId> {
    let switch = |port: &PortId| fabric.topology.port(*port).switch;
    let senders = senders(fabric, mac).into_iter();
    let senders = senders.filter(|from| switch(from) == switch(&port) || fabric.has_links(switch(from)));
    let ways = senders.flat_map(|from| frames::unicast_ways(fabric, from, mac));
    ways.flat_map(|way| way.named).collect()
}

/// Whether somebody has changed a switch by hand, so that nothing can be said of its entries.
pub(crate) fn is_by_hand(fabric: &VirtualFabric) -> bool {
    fabric.switches.iter().any(|switch| switch.by_hand)
}

/// Checks that entries of an address lead to one port, if anywhere.
///
/// # Panics
/// If they lead elsewhere too.
pub(crate) fn lead_to(fabric: &VirtualFabric, mac: Mac, port: PortId, when: &str) {
    let ends = ends(fabric, mac, port);
    let named: Vec<String> = ends.iter().map(|port| fabric.topology.port_label(*port)).collect();
    let wanted = fabric.topology.port_label(port);
    assert!(ends.iter().all(|end| *end == port), "{when}: entries of {mac} lead to {named:?}, not to {wanted} alone");
}

/// What is missing of this: every frame to every address reaches its port by entries, and once, but for addresses beyond the cap of a
/// port; and there are no entries of addresses that are nowhere.
pub(crate) fn missing(fabric: &VirtualFabric, guests: &Guests) -> Option<String> {
    let topology = &fabric.topology;
    let used: BTreeMap<HostId, PortId> = fabric.bonds.used().filter_map(|(host, port)| Some((host, port?))).collect();
    let mut own = topology.host_ids().filter(|host| !topology.host(*host).standby);
    let place = |host: HostId| (topology.host(host).mac, used.get(&host).copied().unwrap_or(topology.host(host).port));
    if let Some(lost) = own.find_map(|host| lost(fabric, place(host).0, place(host).1)) {
        return Some(lost);
    }
    let places: BTreeMap<Mac, PortId> = guests.places().collect();
    for (port, cap) in guests.caps() {
        let own: Vec<Mac> = places.iter().filter(|(_, at)| **at == port).map(|(mac, _)| *mac).collect();
        let entered: Vec<Mac> = own.iter().copied().filter(|mac| is_entered(fabric, *mac)).collect();
        if entered.len() != own.len().min(cap) {
            return Some(format!("of {own:?} behind {}, {entered:?} are entered", topology.port_label(port)));
        }
        if let Some(lost) = entered.iter().find_map(|mac| lost(fabric, *mac, port)) {
            return Some(lost);
        }
    }
    let mut nowhere = Guests::addresses().filter(|mac| !places.contains_key(mac) && is_entered(fabric, *mac));
    nowhere.next().map(|mac| format!("entries of {mac} are left, which is nowhere"))
}

fn is_entered(fabric: &VirtualFabric, mac: Mac) -> bool {
    fabric.switches.iter().any(|switch| switch.running.entries.keys().any(|(_, other)| *other == mac))
}

/// A frame from another host to an address at a port that does not reach it, or goes elsewhere too.
fn lost(fabric: &VirtualFabric, mac: Mac, port: PortId) -> Option<String> {
    let astray = |from: PortId| {
        let way = frames::unicast_ways(fabric, from, mac).find(|way| way.left != [port])?;
        let label = |port: &PortId| fabric.topology.port_label(*port);
        let left: Vec<String> = way.left.iter().map(label).collect();
        let how = if way.flooded { ", flooded" } else { "" };
        Some(format!("a frame from {} to {mac} at {} leaves by {left:?}{how}", label(&from), label(&port)))
    };
    senders(fabric, mac).into_iter().filter(|from| *from != port).find_map(astray)
}

/// Ports of hosts but for those of the machine that has an address.
fn senders(fabric: &VirtualFabric, mac: Mac) -> Vec<PortId> {
    let topology = &fabric.topology;
    let owner = topology.all_owners().get(&mac).copied();
    let is_own = |host: &HostId| owner.is_some_and(|owner| topology.are_of_one_machine(*host, owner));
    topology.host_ids().filter(|host| !is_own(host)).map(|host| topology.host(host).port).collect()
}
