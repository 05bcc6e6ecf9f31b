//! What a failure of several parts at once costs: a switch, a line card, whatever hangs from one power feed.
//!
//! ```text
//!   failed parts ──▶ hosts cut off with them        others, pair by pair, along the tree of their VLAN:
//!                                                     not through a failed part         goes on
//!                                                     through one                       lost until the fabric is planned again
//!                                                       and no cable leads around it    lost until it is mended
//! ```
//! Nothing is stored for such failures, so this is how many pairs of hosts are without a path until somebody acts, and whom no plan
//! can help.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{ChannelId, HostId, LinkId, Plan, SwitchId, Topology, VlanId};

/// Parts of a fabric that fail together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// Switches without power.
    pub switches: BTreeSet<SwitchId>,
    /// Links that carry nothing.
    pub links: BTreeSet<LinkId>,
}

/// What an outage costs. Pairs are ordered, of hosts that are not cut off; a failover bond counts by the port that is active then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Hosts on switches that failed, and no failover bond has another port.
    pub cut_off: Vec<HostId>,
    /// Ports of failover bonds that take over from ports on switches that failed.
    pub taking_over: Vec<HostId>,
    /// Pairs of hosts that are not cut off.
    pub pairs: usize,
    /// Those whose path leads through a part that failed.
    pub lost: usize,
    /// Those of them between which no other path exists.
    pub divided: usize,
}

/// What an outage costs. Cost: O(pairs + pairs of switches · path).
pub fn losses(plan: &Plan, outage: &Outage) -> Losses {
    let (topology, taking_over) = after_bonds(plan, outage);
    let is_dead = |switch: SwitchId| outage.switches.contains(&switch);
    let (mut found, piece) = (Losses { taking_over, ..Losses::default() }, pieces(&topology, outage));
    found.cut_off = outage.switches.iter().flat_map(|switch| senders(&topology, *switch)).collect();
    found.cut_off.sort_unstable();
    each_path(plan, &topology, |[from, to], path, pairs| {
        if is_dead(from) || is_dead(to) {
            return;
        }
        found.pairs += pairs;
        let through = |channel: &ChannelId| {
            outage.links.contains(&channel.link())
                || is_dead(topology.tail(*channel))
                || is_dead(topology.head(*channel))
        };
        if path.iter().any(through) {
            found.lost += pairs;
            found.divided += if piece[from.index()] == piece[to.index()] { 0 } else { pairs };
        }
    });
    found
}

/// What each switch would cost that fails alone, `losses[switch]`. Cost: O(pairs + pairs of switches · path + switches · links),
/// and that of [`losses`] for each switch on which a failover bond has its active port.
pub fn switch_losses(plan: &Plan) -> Vec<Losses> {
    let topology = &plan.topology;
    let mut through = vec![0; topology.switches().len()];
    each_path(plan, topology, |[_, to], path, pairs| {
        path.iter().map(|channel| topology.head(*channel)).filter(|switch| *switch != to).for_each(|switch| {
            through[switch.index()] += pairs;
        });
    });
    let alone = |switch: SwitchId| {
        let outage = Outage { switches: [switch].into(), ..Outage::default() };
        let own: Vec<HostId> = senders(topology, switch).collect();
        if own.iter().any(|host| topology.standby_ports(*host).next().is_some()) {
            return losses(plan, &outage);
        }
        let piece = pieces(topology, &outage);
        let mut hosts: BTreeMap<usize, usize> = BTreeMap::new();
        for other in topology.switch_ids().filter(|other| *other != switch) {
            *hosts.entry(piece[other.index()]).or_default() += senders(topology, other).count();
        }
        let ordered = |count: usize| count * count.saturating_sub(1);
        let pairs = ordered(hosts.values().sum());
        let divided = pairs - hosts.values().map(|count| ordered(*count)).sum::<usize>();
        Losses { cut_off: own, taking_over: Vec::new(), pairs, lost: through[switch.index()], divided }
    };
    topology.switch_ids().map(alone).collect()
}

/// The most pairs of hosts that lose their path if any so many links fail at once, whatever the plan has stored: the pairs of the
/// most used links, each counted as often as it uses one. Cost: O(pairs + pairs of switches · path).
pub fn links_lost_at_most(plan: &Plan, links: usize) -> usize {
    let (mut used, mut all) = (vec![0; plan.topology.links().len()], 0);
    each_path(plan, &plan.topology, |_, path, pairs| {
        all += pairs;
        path.iter().for_each(|channel| used[channel.link().index()] += pairs);
    });
    used.sort_unstable_by(|a, b| b.cmp(a));
    used.iter().take(links).sum::<usize>().min(all)
}

/// The cabling with the ports of failover bonds active that are left, and those that take over.
fn after_bonds(plan: &Plan, outage: &Outage) -> (Topology, Vec<HostId>) {
    let planned = &plan.topology;
    let is_left = |host: &HostId| !outage.switches.contains(&planned.switch_of(*host));
    let (mut topology, mut taking_over) = (planned.clone(), Vec::new());
    for active in planned.host_ids().filter(|host| !is_left(host)) {
        if let Some(port) = planned.standby_ports(active).find(is_left) {
            topology = topology.with_active(port);
            taking_over.push(port);
        }
    }
    (topology, taking_over)
}

/// The hosts of a switch but for standby ports.
fn senders(topology: &Topology, switch: SwitchId) -> impl Iterator<Item = HostId> + '_ {
    topology.hosts_of(switch).iter().copied().filter(|host| !topology.host(*host).standby)
}

/// Which switches cables still connect, `piece[switch]`: those of one piece have one number.
fn pieces(topology: &Topology, outage: &Outage) -> Vec<usize> {
    let mut piece = vec![usize::MAX; topology.switches().len()];
    for first in topology.switch_ids() {
        let mut waiting = vec![first];
        while let Some(at) = waiting.pop() {
            if piece[at.index()] != usize::MAX {
                continue;
            }
            piece[at.index()] = first.index();
            if !outage.switches.contains(&at) {
                let whole = topology.channels_from(at).iter().filter(|channel| !outage.links.contains(&channel.link()));
                waiting.extend(
                    whole.map(|channel| topology.head(*channel)).filter(|next| !outage.switches.contains(next)),
                );
            }
        }
    }
    piece
}

/// Calls back with the way of every ordered pair of hosts: its switches, the channels between them, and how many pairs take it.
fn each_path(plan: &Plan, topology: &Topology, mut path: impl FnMut([SwitchId; 2], &[ChannelId], usize)) {
    let receivers: Vec<HostId> = topology.switch_ids().flat_map(|switch| senders(topology, switch)).collect();
    for from in topology.switch_ids() {
        let mut pairs: BTreeMap<(VlanId, SwitchId), usize> = BTreeMap::new();
        for source in senders(topology, from) {
            for to in receivers.iter().copied().filter(|to| *to != source) {
                *pairs.entry((plan.assignment.unicast(source, to), topology.switch_of(to))).or_default() += 1;
            }
        }
        let mut rooted = None;
        for ((vlan, to), count) in pairs {
            if rooted.as_ref().is_none_or(|(of, _)| *of != vlan) {
                rooted = plan.tree(vlan).map(|tree| (vlan, tree.tree.rooted_at(topology, from)));
            }
            let way = rooted.as_ref().filter(|(of, _)| *of == vlan).map(|(_, tree)| tree.path_to(topology, to));
            path([from, to], &way.unwrap_or_default(), count);
        }
    }
}
