//! A plan's hosts as the tagger's configuration, and a host's table straight from the plan.
//!
//! Which VLANs a pair may use is read from the switches' intents, not from the trees: a VLAN counts if a frame walks along
//! static entries from one host to the other, and, where full buffers wait, only if it respects the plan's numbering of
//! channels on the way, as the routes do that the plan has assigned: else the frames of all could wait for each other in a
//! circle.
//!
//! ```text
//!   a ─ sw1 ═ sw2 ─ b     VLAN 2: sw1 sends b's frames right, sw2 to b's port: usable
//!                         VLAN 3: sw1 has no entry for b: it would flood, so not usable
//! ```

use std::collections::BTreeMap;

use fabric::{
    Assignment, Attachment, ChannelId, FlowControl, HostId, HostTagging, Mac, Plan, PortId, SwitchId, Tagging,
    Topology, VlanId, VlanSet,
};

use thiserror::Error;

use crate::{
    config::{Config, Failover, HostLine, Mode},
    table::{CHOICES_MAX, Classes, Route, Spread, TaggingTable},
};

/// Why a plan gives no configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Its switches tag.
    #[error("the switches of this plan tag, and hosts need not: plan with --tagging source-destination")]
    BySwitch,
    /// A spread was asked for, and no list of VLANs has more than one.
    #[error(
        "nothing to spread over: the switches carry all frames of a host in its own VLAN alone, or could deadlock in others; \
         plan with --fdb full, so that every VLAN reaches every host, and if need be with --flow-control none, or ask for \
         --spread first"
    )]
    NothingToSpread,
    /// Frames were to have classes of their own, and its lanes are classes.
    #[error(
        "the lanes of this plan are classes, and the proof against deadlock holds for frames in that of their VLAN: leave \
         classes by DSCP away, or plan with --flow-control pause or none"
    )]
    Lanes,
}

/// The table of one host of a plan; a plan whose switches tag gives none. With a spread over flows, a pair's VLANs are
/// the one that the plan assigns, then the others of its path set, or, where a plan has none, those after it that the switches
/// carry the pair in. Cost: O(hosts · log hosts), and
/// with a spread O(hosts · VLANs · hops · log entries).
pub fn table(plan: &Plan, host: HostId, spread: Spread) -> Option<TaggingTable> {
    if plan.host_intent(host).tagging == HostTagging::BySwitch {
        return None;
    }
    // All ports of a failover bond have its addresses, which are behind the active one.
    let host = plan.topology.active_port(host);
    let mut vlans = vlans(plan, host);
    plan.topology.standby_ports(host).for_each(|port| vlans.extend(self::vlans(plan, port).iter()));
    let route = |to: HostId| {
        let assigned = plan.assignment.unicast(host, to);
        if spread == Spread::First {
            return Route::single(assigned);
        }
        let spread =
            |others: &mut dyn Iterator<Item = VlanId>| Route::spread(std::iter::once(assigned).chain(others), spread);
        let route = match &plan.paths {
            Some(paths) => spread(&mut paths.of(host, to).iter().copied().filter(|vlan| *vlan != assigned)),
            None => spread(&mut following(&vlans, assigned).filter(|vlan| carries(plan, *vlan, host, to))),
        };
        route.unwrap_or_else(|| Route::single(assigned))
    };
    let others = plan.topology.host_ids().filter(|to| *to != host);
    let destinations = others.flat_map(|to| {
        let route = route(to);
        plan.topology.host(to).macs().map(move |mac| (mac, route.clone()))
    });
    let destinations = destinations.collect();
    let group = Some(Route::single(plan.assignment.broadcast(host)));
    Some(TaggingTable { destinations, group, receive: vlans, classes: lanes(plan) })
}

/// The configuration that all hosts of a plan share. With a spread over flows a host's VLANs are its own, then those after
/// it in which the switches carry all that its line decides: what it sends, what it receives, or both. A plan by pair, and a
/// spread over path sets, lists every pair, with the numbers of [`Config`]. Cost: O(hosts · log hosts), and with a spread
/// O(VLANs · hosts · switches · log entries).
///
/// # Errors
/// [`PlanError`].
pub fn config(plan: &Plan, spread: Spread) -> Result<Config, PlanError> {
    let mode = match plan.policy.tagging {
        Tagging::Switch => return Err(PlanError::BySwitch),
        _ if plan.paths.is_some() && spread != Spread::First => Mode::Pair,
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
        .flat_map(|host| {
            let priority = match &plan.assignment {
                Assignment::Priority { priority, .. } => priority[host.index()],
                _ => 0,
            };
            let switch = Some(topology.switch(topology.switch_of(host)).name.clone());
            let own = plan.assignment.own(host).unwrap_or_else(|| plan.assignment.broadcast(host));
            let others = following(&vlans, own).filter(|vlan| is_carried(vlan, host));
            let vlans = std::iter::once(own).chain(others).take(CHOICES_MAX).collect();
            let line = HostLine { vlans, priority, switch };
            topology.host(host).macs().map(move |mac| (mac, line.clone()))
        })
        .collect();
    let mut pairs = BTreeMap::new();
    if mode == Mode::Pair {
        for from in topology.host_ids() {
            let table = table(plan, from, spread).ok_or(PlanError::BySwitch)?;
            for own in topology.host(from).macs() {
                pairs.extend(table.destinations.iter().map(|(to, route)| ((own, *to), route.choices().to_vec())));
            }
        }
    }
    let mut lists = hosts.values().map(|line| &line.vlans).chain(pairs.values());
    if spread != Spread::First && vlans.len() > 1 && lists.all(|list| list.len() < 2) {
        return Err(PlanError::NothingToSpread);
    }
    let apart = (topology.host_ids())
        .map(|host| (host, plan.assignment.broadcast(host)))
        .filter(|(host, vlan)| plan.assignment.own(*host).is_some_and(|own| own != *vlan));
    let groups = apart.flat_map(|(host, vlan)| topology.host(host).macs().map(move |mac| (mac, vlan))).collect();
    Ok(Config { mode, spread, failover: Failover::Any, hosts, pairs, groups, vlans, classes: lanes(plan) })
}

/// Classes by each frame's DSCP, instead of those that the plan's hosts send in otherwise.
///
/// # Errors
/// [`PlanError::Lanes`].
pub fn by_dscp(plan: &Plan) -> Result<Classes, PlanError> {
    match plan.policy.flow_control {
        FlowControl::Pfc(_) => Err(PlanError::Lanes),
        FlowControl::Pause | FlowControl::None => Ok(Classes::Dscp),
    }
}

/// The class of each VLAN's frames: its lane, where the plan has lanes.
fn lanes(plan: &Plan) -> Classes {
    match plan.policy.flow_control {
        FlowControl::Pfc(_) => {
            let lanes = plan.trees.iter().map(|tree| (tree.vlan, tree.lane));
            Classes::Vlan(lanes.filter(|(_, lane)| *lane > 0).collect())
        }
        FlowControl::Pause | FlowControl::None => Classes::default(),
    }
}

/// The host of a plan with this address.
pub fn host_of(topology: &Topology, mac: Mac) -> Option<HostId> {
    topology.host_ids().find(|host| topology.host(*host).macs().any(|own| own == mac))
}

/// VLANs that a host may send and receive: those that its port carries with a tag.
pub fn vlans(plan: &Plan, host: HostId) -> VlanSet {
    let topology = &plan.topology;
    let port = topology.host(host).port;
    let intent = &plan.devices[topology.port(port).switch.index()];
    (intent.ports.iter()).find(|intent| intent.port == port).map(|intent| intent.tagged.clone()).unwrap_or_default()
}

/// Whether the switches carry frames of a VLAN from one host to another, each by a static entry, and cannot deadlock over it.
pub fn carries(plan: &Plan, vlan: VlanId, from: HostId, to: HostId) -> bool {
    if !vlans(plan, from).contains(vlan) {
        return false;
    }
    let routes = VlanRoutes::new(plan, vlan);
    let (mut at, mut above) = (plan.topology.switch_of(from), None);
    // A way that respects the channel order ends; so does one along a tree.
    for _ in 0..=plan.topology.switches().len() {
        match routes.next(at, to) {
            Some(Next::Arrived) => return true,
            Some(Next::Through(channel)) if routes.climbs(above, channel) => {
                (at, above) = (plan.topology.head(channel), Some(channel));
            }
            _ => return false,
        }
    }
    false
}

/// `safe[switch]`: whether a host may be sent frames in a VLAN without danger of a deadlock, by the switch that it is
/// on: what is moved there takes the VLAN's tree, entries or not. Cost: O(switches + links).
pub fn safe(plan: &Plan, vlan: VlanId, from: HostId) -> Vec<bool> {
    let (topology, routes) = (&plan.topology, VlanRoutes::new(plan, vlan));
    let mut safe = vec![false; topology.switches().len()];
    let Some(tree) = plan.tree(vlan) else { return safe };
    let rooted = tree.tree.rooted_at(topology, topology.switch_of(from));
    for &switch in &rooted.order {
        safe[switch.index()] = rooted.inward[switch.index()].is_none_or(|channel| {
            let before = topology.tail(channel);
            safe[before.index()] && routes.climbs(rooted.inward[before.index()], channel)
        });
    }
    safe
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
    let (topology, routes) = (&plan.topology, VlanRoutes::new(plan, vlan));
    let mut known: Vec<Option<bool>> = vec![None; topology.switches().len()];
    for start in topology.switch_ids() {
        let (mut at, mut way) = (start, Vec::new());
        let mut arrives = loop {
            if let Some(arrives) = known[at.index()] {
                break arrives;
            }
            // A way that comes back to itself arrives nowhere.
            known[at.index()] = Some(false);
            way.push(at);
            match routes.next(at, to) {
                None => break false,
                Some(Next::Arrived) => break true,
                Some(Next::Through(channel)) => at = topology.head(channel),
            }
        };
        for switch in way.into_iter().rev() {
            let climbs = match routes.next(switch, to) {
                Some(Next::Through(channel)) => match routes.next(topology.head(channel), to) {
                    Some(Next::Through(further)) => routes.climbs(Some(channel), further),
                    _ => true,
                },
                _ => true,
            };
            arrives &= climbs;
            known[switch.index()] = Some(arrives);
        }
    }
    known.into_iter().map(|arrives| arrives == Some(true)).collect()
}

/// Where a switch sends a frame.
enum Next {
    /// To its host.
    Arrived,
    /// To another switch.
    Through(ChannelId),
}

/// The routes of frames in one VLAN.
struct VlanRoutes<'a> {
    plan: &'a Plan,
    vlan: VlanId,
    /// What must increase on the way; none where nothing waits.
    rank: Option<&'a [u32]>,
}

impl<'a> VlanRoutes<'a> {
    fn new(plan: &'a Plan, vlan: VlanId) -> Self {
        let waits = plan.policy.flow_control != FlowControl::None;
        let rank = plan.certificate.as_ref().filter(|_| waits).and_then(|certificate| {
            let lane = plan.tree(vlan)?.lane;
            certificate.rank.get(usize::from(lane)).map(Vec::as_slice)
        });
        Self { plan, vlan, rank }
    }

    /// Where the entry for a host leads; none if there is none, or it leads out of the VLAN.
    fn next(&self, switch: SwitchId, to: HostId) -> Option<Next> {
        let topology = &self.plan.topology;
        let fdb = &self.plan.devices[switch.index()].fdb;
        let run = fdb.get(fdb.partition_point(|run| (run.vlan, run.last) < (self.vlan, to)))?;
        let out = Some(run).filter(|run| run.vlan == self.vlan && run.first <= to).map(|run| run.port)?;
        if !self.is_member(out) {
            return None;
        }
        if out == topology.host(to).port {
            return Some(Next::Arrived);
        }
        let Attachment::Link(link) = topology.port(out).attachment else { return None };
        let forward = ChannelId::forward(link);
        let channel = if topology.tail_port(forward) == out { forward } else { forward.reverse() };
        self.is_member(topology.tail_port(channel.reverse())).then_some(Next::Through(channel))
    }

    fn is_member(&self, port: PortId) -> bool {
        let switch = self.plan.topology.port(port).switch;
        let at = port.index() - self.plan.topology.switch_ports(switch).start;
        self.plan.devices[switch.index()].ports.get(at).is_some_and(|intent| intent.tagged.contains(self.vlan))
    }

    fn climbs(&self, before: Option<ChannelId>, after: ChannelId) -> bool {
        let (Some(rank), Some(before)) = (self.rank, before) else { return true };
        rank[before.index()] < rank[after.index()]
    }
}
