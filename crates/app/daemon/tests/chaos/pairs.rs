//! Pairs of hosts that get through, none of which a hitless change may cut.
//!
//! ```text
//!   before the first step:  h0 ─▶ h2 arrives in each VLAN that h0 may use: kept
//!   after each change:      every kept pair still arrives, unless a fault of the world came between
//! ```

use std::collections::BTreeSet;

use fabric::{Attachment, HostId, Plan, PortId};

use crate::{
    fabric::VirtualFabric,
    frames::{self, Place},
};

/// A sender and a receiver.
pub(crate) type Pair = (HostId, HostId);

/// Pairs of hosts that get through now, between hosts and by cables of both plans: for the change, what only the old one has is gone, and
/// what only the new one has is new, though it may carry.
pub(crate) fn through(fabric: &VirtualFabric, plans: [&Plan; 2]) -> BTreeSet<Pair> {
    let topology = &fabric.topology;
    let is_planned =
        |host: &HostId| plans.iter().all(|plan| plan.topology.find_host(&topology.host(*host).name).is_some());
    let active = topology.host_ids().filter(|host| !topology.host(*host).standby);
    let hosts: Vec<HostId> = active.filter(is_planned).collect();
    let labels = |plan: &Plan| plan.topology.link_ids().map(|link| plan.topology.link_label(link)).collect();
    let planned: [BTreeSet<String>; 2] = plans.map(labels);
    let is_unplanned = |(port, _): &Place| match topology.port(*port).attachment {
        Attachment::Link(link) => !planned.iter().all(|labels| labels.contains(&topology.link_label(link))),
        _ => false,
    };
    let stays = |(from, to): &Pair| {
        let ways = place(fabric, *from).map(|source| frames::unicast_ways(fabric, source, topology.host(*to).mac));
        !ways.into_iter().flatten().any(|way| way.entered.iter().any(is_unplanned))
    };
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    pairs.filter(|pair| pair.0 != pair.1 && cut(fabric, *pair).is_none() && stays(pair)).collect()
}

/// Checks that no pair is cut that a hitless change under way may not cut.
///
/// # Panics
/// If one is.
pub(crate) fn none_cut(fabric: &VirtualFabric, when: &str) {
    if let Some((pair, why)) = fabric.kept.iter().find_map(|pair| Some((pair, cut(fabric, *pair)?))) {
        let name = |host: HostId| &fabric.topology.host(host).name;
        panic!("{when}: a hitless change cuts the way from {} to {}: {why}", name(pair.0), name(pair.1));
    }
}

/// Why some frame from one host to another does not arrive at it alone, by entries; none if all do.
fn cut(fabric: &VirtualFabric, (from, to): Pair) -> Option<String> {
    let Some((source, sink)) = place(fabric, from).zip(place(fabric, to)) else { return Some("no port".to_owned()) };
    let label = |port: &PortId| fabric.topology.port_label(*port);
    let fault = |(vlan, way): (_, Option<frames::Way>)| match way {
        None => Some(format!("{} does not admit {vlan:?}", label(&source))),
        Some(way) if way.flooded => Some(format!("flooded in {vlan:?}")),
        Some(way) if way.left != [sink] => {
            let left: Vec<String> = way.left.iter().map(label).collect();
            Some(format!("frames in {vlan:?} for {} leave by {left:?}", label(&sink)))
        }
        Some(_) => None,
    };
    frames::unicast(fabric, source, fabric.topology.host(to).mac).into_iter().find_map(fault)
}

/// The port that a host uses, if any carries.
fn place(fabric: &VirtualFabric, host: HostId) -> Option<PortId> {
    let bond = fabric.bonds.used().find(|(bond, _)| *bond == host);
    bond.map_or(Some(fabric.topology.host(host).port), |(_, port)| port)
}
