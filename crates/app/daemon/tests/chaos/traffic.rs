//! What hosts send to each other, and what their frames load links with.

use std::collections::BTreeMap;

use controller::LinkLoad;
use fabric::{HostId, PortId, Topology, rng::Rng};

use crate::{fabric::VirtualFabric, frames};

/// So many hosts send much to each other, if there is much traffic.
const BUSY: usize = 3;
/// What each of them sends, as a part of the rate of its port.
const BUSY_SHARE: f64 = 0.9;

/// What a host sends to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    from: HostId,
    to: HostId,
    rate_bps: f64,
}

/// Some hosts send each other as much as they can.
pub(crate) fn busy(topology: &Topology, rng: &mut Rng) -> Vec<Demand> {
    let mut hosts: Vec<HostId> = topology.host_ids().filter(|host| !topology.host(*host).standby).collect();
    rng.shuffle(&mut hosts);
    hosts.truncate(BUSY);
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let pairs = pairs.filter(|(from, to)| from != to);
    let rate_bps = |host: HostId| BUSY_SHARE * topology.host(host).rate_bps as f64 / (BUSY - 1) as f64;
    pairs.map(|(from, to)| Demand { from, to, rate_bps: rate_bps(from) }).collect()
}

/// The load of every link of a plan, then of the cables of its hosts, as counters of ports show it; nothing without demands.
pub(crate) fn loads(fabric: &VirtualFabric, plan: &Topology, demands: &[Demand]) -> Vec<LinkLoad> {
    if demands.is_empty() {
        return Vec::new();
    }
    // By the port that frames leave a switch by, and the port of a host that they enter by.
    let (mut out, mut entered): (BTreeMap<PortId, f64>, BTreeMap<PortId, f64>) = Default::default();
    for Demand { from, to, rate_bps } in demands {
        let (from, to) = (fabric.topology.host(*from), fabric.topology.host(*to));
        let ways = frames::unicast(fabric, from.port, to.mac);
        // Flows are many, so each VLAN has as many of them.
        let rate_bps = rate_bps / ways.len() as f64;
        for way in ways.into_iter().filter_map(|(_, way)| way) {
            *entered.entry(from.port).or_default() += rate_bps;
            let sent = way.entered.iter().filter_map(|(port, _)| fabric.far(*port));
            sent.chain(way.left).for_each(|port| *out.entry(port).or_default() += rate_bps);
        }
    }
    let load = |name: String, rate_bps: u64, ways: [f64; 2]| LinkLoad {
        name,
        running: Some(true),
        speed_bps: rate_bps,
        rate_bps: ways.map(|way| Some(way as u64)),
        errors: Some(0),
        discards: Some(0),
        pause: [None; 2],
    };
    let own = |port: PortId| {
        let port = plan.port(port);
        let switch = fabric.topology.find_switch(&plan.switch(port.switch).name).expect("a switch of the fabric");
        fabric.topology.find_port(switch, &port.name).expect("a port of the fabric")
    };
    let at = |rates: &BTreeMap<PortId, f64>, port: PortId| rates.get(&own(port)).copied().unwrap_or(0.0);
    let links = plan.link_ids().map(|id| {
        let link = plan.link(id);
        load(plan.link_label(id), link.rate_bps, [at(&out, link.a), at(&out, link.b)])
    });
    let hosts = plan
        .hosts()
        .iter()
        .map(|host| load(host.name.clone(), host.rate_bps, [at(&out, host.port), at(&entered, host.port)]));
    links.chain(hosts).collect()
}
