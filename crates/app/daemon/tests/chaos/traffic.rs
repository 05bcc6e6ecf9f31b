//! What hosts send to each other, what their frames load links with, and what hosts that tag say of it in heartbeats.
//!
//! ```text
//!   counters of ports alone    h0, h1, h2 each to both others      totals tell what goes from whom to whom
//!   heartbeats of hosts        h0 ─▶ h1 ─▶ h2 ─▶ … ─▶ h0           totals are those of any such ring
//! ```

use std::collections::BTreeMap;

use controller::LinkLoad;
use espalierd::{
    core::heartbeats::{Beat, Source},
    manager::Manager,
};
use fabric::{HostId, Mac, PortId, Topology, VlanSet, rng::Rng};

use crate::{fabric::VirtualFabric, frames, world::World};

/// Hosts count beyond the longest time between two polls.
const BEAT_S: u64 = 3_600;

/// So many hosts send much to each other, if there is much traffic.
const BUSY: usize = 3;
/// What each of them sends, as a part of the rate of its port.
const BUSY_SHARE: f64 = 0.9;
/// Rings of hosts from which that of the streams is chosen.
const RINGS: usize = 20;
/// What every host sends to one other, where hosts count it: two such streams load a link for which another plan has one.
const COUNTED_SHARE: f64 = 0.45;

/// What a host sends to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    from: HostId,
    to: HostId,
    rate_bps: f64,
}

/// Bytes that each host has sent to each other.
pub(crate) type Sent = BTreeMap<(Mac, Mac), f64>;

/// Some hosts send as much as they can, each to all the others; or, where they count it, all send to one other.
pub(crate) fn busy(fabric: &VirtualFabric, rng: &mut Rng) -> Vec<Demand> {
    let topology = &fabric.topology;
    let mut hosts: Vec<HostId> = topology.host_ids().filter(|host| !topology.host(*host).standby).collect();
    rng.shuffle(&mut hosts);
    let demand = |from: &HostId, to: &HostId, share: f64| {
        let rate_bps = share * topology.host(*from).rate_bps as f64;
        Demand { from: *from, to: *to, rate_bps }
    };
    if !fabric.tables.is_empty() {
        // Of several rings the one that suits the present plan least.
        let rings = (0..RINGS).map(|_| {
            rng.shuffle(&mut hosts);
            let next = hosts.iter().cycle().skip(1);
            hosts.iter().zip(next).map(|(from, to)| demand(from, to, COUNTED_SHARE)).collect::<Vec<Demand>>()
        });
        let load = |ring: &Vec<Demand>| max_load(&loads(fabric, topology, ring), topology.links().len());
        return rings.max_by(|one, other| load(one).total_cmp(&load(other))).expect("some ring");
    }
    hosts.truncate(BUSY);
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to)));
    let share = BUSY_SHARE / (BUSY - 1) as f64;
    pairs.filter(|(from, to)| from != to).map(|(from, to)| demand(from, to, share)).collect()
}

/// Counts what hosts send over some time.
pub(crate) fn count(fabric: &VirtualFabric, demands: &[Demand], sent: &mut Sent, time_ms: u64) {
    let mac = |host: HostId| fabric.topology.host(host).mac;
    for Demand { from, to, rate_bps } in demands {
        *sent.entry((mac(*from), mac(*to))).or_default() += rate_bps / 8.0 * time_ms as f64 / 1000.0;
    }
}

/// Hosts that tag say what they have sent.
pub(crate) fn beat(world: &World, manager: &Manager) {
    for host in world.fabric.tables.keys() {
        let own = world.sent.iter().filter(|((from, _), _)| from == host);
        let sent = own.map(|((_, to), bytes)| (*to, *bytes as u64)).collect();
        let (failing, tested) = (BTreeMap::new(), BTreeMap::new());
        let (host, source, every_s, vlans) = (*host, Source::Tagger, BEAT_S, VlanSet::new());
        // One that the plan leaves out is refused, and a store that does not answer is told elsewhere.
        let _ = manager.heartbeat(Beat { host, source, every_s, vlans, failing, tested, sent });
    }
}

/// The load of the most loaded link between switches, as a part of its rate.
pub(crate) fn max_load(loads: &[LinkLoad], links: usize) -> f64 {
    let each = |load: &LinkLoad| load.rate_bps.map(|rate| rate.unwrap_or(0) as f64 / load.speed_bps as f64);
    loads.iter().take(links).flat_map(each).fold(0.0, f64::max)
}

/// The load of every link of a plan, then of the cables of its hosts, as counters of ports show it; nothing without
/// demands, unless hosts count too: what they count and what ports do is averaged over the same time.
pub(crate) fn loads(fabric: &VirtualFabric, plan: &Topology, demands: &[Demand]) -> Vec<LinkLoad> {
    if demands.is_empty() && fabric.tables.is_empty() {
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
