//! Which switch answers at whose address, from the cabling.
//!
//! ```text
//!   plan: A:p1 ── C:p3        found at A's address: p1 hears D:p7, where the plan has B:p1
//!         B:p1 ── D:p7        so the switch at A's address votes for B: its port has the same name
//! ```
//! Each cable between a switch in its place and one that is not says which switch the second is. Votes must agree, and the
//! renamed cabling must fit, or nothing is concluded.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{PortId, SwitchId, Topology};

use super::cables::{Cables, other_end};
use switch_model::sight::SurveyReply;

/// The switch of the topology that answers at each address, if the cables speak for another order than the topology's.
pub(super) fn by_cabling(topology: &Topology, cables: &Cables) -> Option<Vec<SwitchId>> {
    let mut votes: Vec<BTreeMap<SwitchId, usize>> = vec![BTreeMap::new(); topology.switches().len()];
    let mut vote = |port: PortId, meant: PortId| {
        let (from, to) = (topology.port(port), topology.port(meant));
        if from.name == to.name {
            *votes[from.switch.index()].entry(to.switch).or_default() += 1;
        }
    };
    for &(a, b) in &cables.sightings {
        for (near, far) in [(a, b), (b, a)] {
            if let Some(meant) = other_end(topology, far) {
                vote(near, meant);
            }
        }
    }
    for &(port, host) in &cables.hosts {
        vote(port, topology.host(host).port);
    }
    let mut belongs: Vec<SwitchId> = topology.switch_ids().collect();
    for (switch, votes) in topology.switch_ids().zip(&votes) {
        let own = votes.get(&switch).copied().unwrap_or(0);
        let best = votes.iter().max_by_key(|(other, count)| (**count, std::cmp::Reverse(**other)));
        if let Some((&other, _)) = best.filter(|(_, count)| **count > own) {
            belongs[switch.index()] = other;
        }
    }
    cycles(&belongs).map(|_| belongs)
}

/// The same from sysNames, for switches that no cable places.
pub(super) fn by_name(topology: &Topology, replies: &[Option<SurveyReply>], cables: &Cables) -> Option<Vec<SwitchId>> {
    let named: BTreeMap<&str, SwitchId> =
        topology.switch_ids().map(|switch| (topology.switch(switch).name.as_str(), switch)).collect();
    let mut belongs: Vec<SwitchId> = topology.switch_ids().collect();
    for (switch, reply) in topology.switch_ids().zip(replies) {
        let system = reply.as_ref().and_then(|reply| reply.identity.system.as_deref());
        let plain = |system: &str| system.split('.').next().and_then(|plain| named.get(plain)).copied();
        if let Some(other) = system.and_then(|system| named.get(system).copied().or_else(|| plain(system))) {
            belongs[switch.index()] = other;
        }
    }
    let moved = cycles(&belongs)?;
    let placed: BTreeSet<SwitchId> = (cables.confirmed.iter())
        .flat_map(|link| [topology.link(*link).a, topology.link(*link).b])
        .map(|port| topology.port(port).switch)
        .collect();
    let moved: BTreeSet<SwitchId> = moved.into_iter().flatten().collect();
    // Cables that fit cannot all fit another order, unless nobody is in place.
    let free = moved.is_disjoint(&placed) || moved.len() == topology.switches().len();
    free.then_some(belongs)
}

/// Whether a sysName is a switch's name, perhaps with its domain.
pub(super) fn is_name(system: &str, name: &str) -> bool {
    system.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The cycles of a permutation that move something; none if it is the identity or no permutation.
pub(super) fn cycles(belongs: &[SwitchId]) -> Option<Vec<Vec<SwitchId>>> {
    let distinct: BTreeSet<SwitchId> = belongs.iter().copied().collect();
    if distinct.len() != belongs.len() {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for start in SwitchId::all(belongs.len()) {
        let mut cycle = Vec::new();
        let mut at = start;
        while seen.insert(at) {
            cycle.push(at);
            at = belongs[at.index()];
        }
        if cycle.len() > 1 {
            cycles.push(cycle);
        }
    }
    (!cycles.is_empty()).then_some(cycles)
}
