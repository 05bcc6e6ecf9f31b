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

use thiserror::Error;

use crate::{
    config::{Config, HostLine, Mode},
    table::{CHOICES_MAX, Route, Spread, Table},
};

/// Why a plan gives no configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Its switches tag.
    #[error("the switches of this plan tag, and hosts need not: plan with --tagging source-destination")]
    BySwitch,
    /// A spread was asked for, and no list of VLANs has more than one.
    #[error(
        "nothing to spread over: the switches carry all frames of a host in its own VLAN alone; plan with --fdb full, so that \
         every VLAN reaches every host, or ask for --spread first"
    )]
    NothingToSpread,
}

/// The table of one host of a plan; a plan whose switches tag gives none. With a spread over flows, a pair's VLANs are
/// the one that the plan assigns, then those after it that the switches carry the pair in. Cost: O(hosts · log hosts), and
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
        let others = following(&vlans, assigned).filter(|vlan| carries(plan, *vlan, host, to));
        Route::spread(std::iter::once(assigned).chain(others), spread).unwrap_or_else(|| Route::single(assigned))
    };
    let destinations =
        (plan.topology.host_ids()).filter(|to| *to != host).map(|to| (plan.topology.host(to).mac, route(to))).collect();
    Some(Table { destinations, group: Some(Route::single(plan.assignment.broadcast(host))), receive: vlans })
}

/// The configuration that all hosts of a plan share. With a spread over flows a host's VLANs are its own, then those after
/// it in which the switches carry all that its line decides: what it sends, what it receives, or both. A plan by pair lists
/// every pair, with the numbers of [`Config`]. Cost: O(hosts · log hosts), and with a spread
/// O(VLANs · hosts · switches · log entries).
///
/// # Errors
/// [`PlanError`].
pub fn config(plan: &Plan, spread: Spread) -> Result<Config, PlanError> {
    let mode = match plan.policy.tagging {
        Tagging::Switch => return Err(PlanError::BySwitch),
        Tagging::Source => Mode::Source,
        Tagging::Destination => Mode::Destination,
        Tagging::SourceDestination => Mode::SourceDestination,
        Tagging::Pair => Mode::Pair,
    };
    let topology = &plan.topology;
    let vlans: VlanSet = plan.trees.iter().map(|tree| tree.vlan).collect();
    let carried = match (spread, mode) {
        (Spread::First, _) | (_, Mode::Pair) => BTreeMap::new(),
        _ => vlans.iter().map(|vlan| (vlan, Carried::new(plan, vlan))).collect(),
    };
    let is_carried = |vlan: &VlanId, host: HostId| {
        carried.get(vlan).is_some_and(|carried| match mode {
            Mode::Source => carried.sends[host.index()],
            Mode::Destination => carried.receives[host.index()],
            Mode::SourceDestination | Mode::Pair => carried.sends[host.index()] && carried.receives[host.index()],
        })
    };
    let hosts: BTreeMap<Mac, HostLine> = (topology.host_ids())
        .map(|host| {
            let priority = match &plan.assignment {
                Assignment::Priority { priority, .. } => priority[host.index()],
                _ => 0,
            };
            let switch = Some(topology.switch(topology.switch_of(host)).name.clone());
            let own = plan.assignment.broadcast(host);
            let others = following(&vlans, own).filter(|vlan| is_carried(vlan, host));
            let vlans = std::iter::once(own).chain(others).take(CHOICES_MAX).collect();
            (topology.host(host).mac, HostLine { vlans, priority, switch })
        })
        .collect();
    let mut pairs = BTreeMap::new();
    if mode == Mode::Pair {
        for from in topology.host_ids() {
            let table = table(plan, from, spread).ok_or(PlanError::BySwitch)?;
            let own = topology.host(from).mac;
            pairs.extend(table.destinations.into_iter().map(|(to, route)| ((own, to), route.choices().to_vec())));
        }
    }
    let mut lists = hosts.values().map(|line| &line.vlans).chain(pairs.values());
    if spread != Spread::First && vlans.len() > 1 && lists.all(|list| list.len() < 2) {
        return Err(PlanError::NothingToSpread);
    }
    Ok(Config { mode, spread, hosts, pairs, vlans })
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

/// Other VLANs, from the one after `own` round to the one before it: so that hosts with eight of many take different ones.
fn following(vlans: &VlanSet, own: VlanId) -> impl Iterator<Item = VlanId> + '_ {
    let after = vlans.iter().filter(move |vlan| *vlan > own);
    after.chain(vlans.iter().filter(move |vlan| *vlan < own))
}

/// Which hosts' frames the switches carry in a VLAN.
struct Carried {
    /// `sends[host]`: all that it sends to other hosts.
    sends: Vec<bool>,
    /// `receives[host]`: all that others send to it.
    receives: Vec<bool>,
}

impl Carried {
    fn new(plan: &Plan, vlan: VlanId) -> Self {
        let topology = &plan.topology;
        let is_member: Vec<bool> = topology.host_ids().map(|host| vlans(plan, host).contains(vlan)).collect();
        let all_are = is_member.iter().all(|is| *is);
        let home = |host: HostId| topology.switch_of(host).index();
        let mut sends = is_member.clone();
        let mut receives = vec![false; is_member.len()];
        for to in topology.host_ids() {
            let reaching = reaching(plan, vlan, to);
            let mut all = all_are;
            for from in topology.host_ids().filter(|from| *from != to && !reaching[home(*from)]) {
                (sends[from.index()], all) = (false, false);
            }
            receives[to.index()] = all;
        }
        Self { sends, receives }
    }
}

/// `reaching[switch]`: whether frames of a VLAN for a host find their way from there, each step by a static entry.
fn reaching(plan: &Plan, vlan: VlanId, to: HostId) -> Vec<bool> {
    let topology = &plan.topology;
    let is_member = |port: fabric::PortId| {
        let switch = topology.port(port).switch;
        let at = port.index() - topology.switch_ports(switch).start;
        plan.devices[switch.index()].ports.get(at).is_some_and(|intent| intent.tagged.contains(vlan))
    };
    let next = |switch: fabric::SwitchId| {
        let out = entry(&plan.devices[switch.index()], vlan, to).filter(|out| is_member(*out))?;
        if out == topology.host(to).port {
            return Some(None);
        }
        let Attachment::Link(link) = topology.port(out).attachment else { return None };
        let link = topology.link(link);
        let far = if link.a == out { link.b } else { link.a };
        is_member(far).then(|| Some(topology.port(far).switch))
    };
    let mut known: Vec<Option<bool>> = vec![None; topology.switches().len()];
    for start in topology.switch_ids() {
        let (mut at, mut way) = (start, Vec::new());
        let arrives = loop {
            if let Some(arrives) = known[at.index()] {
                break arrives;
            }
            // A way that comes back to itself arrives nowhere.
            known[at.index()] = Some(false);
            way.push(at);
            match next(at) {
                None => break false,
                Some(None) => break true,
                Some(Some(further)) => at = further,
            }
        };
        way.into_iter().for_each(|switch| known[switch.index()] = Some(arrives));
    }
    known.into_iter().map(|arrives| arrives == Some(true)).collect()
}

fn entry(intent: &DeviceIntent, vlan: VlanId, to: HostId) -> Option<fabric::PortId> {
    let at = intent.fdb.partition_point(|run| (run.vlan, run.last) < (vlan, to));
    intent.fdb.get(at).filter(|run| run.vlan == vlan && run.first <= to).map(|run| run.port)
}
