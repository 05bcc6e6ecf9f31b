//! The load bound of a previous plan, carried over to a cabling that only lost cables.
//!
//! For all-to-all traffic, lengths l prove `Σ distance / Σ l · rate`. Without a cable no distance shrinks, and the lower sum
//! loses the cable's own part, so what was proven before, times the old sum over the new one, is still proven: nothing needs
//! to be measured.
//!
//! ```text
//!   lengths 1, 1, 1, 1 prove 12/4 = 3      less a cable of 1 + 1 in both directions:    at least 12/2 = 6
//! ```
//! The distances may have grown a lot, though. They are measured from a few switches, and if the carried figure falls
//! too far behind what the lengths prove now, a bound is sought anew.

use fabric::{Bound, ChannelId, Plan, Relation, SwitchId, Topology, graph::dijkstra};

/// Switches from which distances are measured.
const SOURCES_MAX: usize = 16;
/// What share of the measured figure the carried one must reach.
const SHARE_MIN: f64 = 0.8;

/// What the previous bound's lengths plainly still prove, and the lengths; none if hosts or cables came, or if a new
/// bound is worth its time. Cost: O(channels log channels).
pub(crate) fn carried_bound(topology: &Topology, previous: &Plan, relation: &Relation) -> Option<(f64, Bound)> {
    let (old, before) = (&previous.topology, &previous.bound.lengths);
    let stays = |id: fabric::HostId| {
        let twin = relation.host_from[id.index()];
        twin.is_some_and(|twin| relation.switch_from[topology.switch_of(id).index()] == Some(old.switch_of(twin)))
    };
    let same_hosts = old.hosts().len() == topology.hosts().len() && topology.host_ids().all(stays);
    let kept: Vec<(ChannelId, ChannelId)> =
        old.channel_ids().filter_map(|channel| Some((channel, relation.channel[channel.index()]?))).collect();
    if !same_hosts || kept.len() != topology.channel_count() || before.len() != old.channel_count() {
        return None;
    }
    let mut lengths = vec![0; topology.channel_count()];
    kept.iter().for_each(|(old, new)| lengths[new.index()] = before[old.index()]);
    let (sum_before, sum_now) = (capacity(old, before), capacity(topology, &lengths));
    let claimed = previous.summary.load_bound;
    // A single pair's demand is a bound too, and says nothing of the lengths.
    if claimed <= 1.0 {
        return None;
    }
    let load = match sum_now {
        _ if sum_now == sum_before => claimed,
        _ if sum_now == 0.0 => return None,
        _ => claimed * (sum_before / sum_now),
    };
    let bound = Bound { lengths };
    (sum_now == 0.0 || load >= SHARE_MIN * measured(topology, &bound.lengths)).then_some((load, bound))
}

/// What the lengths prove, as far as a sample of sources tells.
fn measured(topology: &Topology, lengths: &[u32]) -> f64 {
    let hosts = |switch: SwitchId| topology.hosts_of(switch).len() as f64;
    let sources: Vec<SwitchId> = topology.switch_ids().filter(|switch| hosts(*switch) > 0.0).collect();
    let stride = sources.len().div_ceil(SOURCES_MAX).max(1);
    let (mut covered, mut senders) = (0.0, 0.0);
    for &source in sources.iter().step_by(stride) {
        senders += hosts(source);
        let distance = distances(topology, lengths, source);
        let reached: f64 = topology.switch_ids().zip(distance).map(|(switch, d)| hosts(switch) * d as f64).sum();
        covered += hosts(source) * reached;
    }
    covered * topology.hosts().len() as f64 / (senders * capacity(topology, lengths))
}

/// What channels hold of a load that takes a unit of time, in units of length.
fn capacity(topology: &Topology, lengths: &[u32]) -> f64 {
    topology.channel_ids().zip(lengths).map(|(c, length)| f64::from(*length) / topology.slowness(c)).sum()
}

fn distances(topology: &Topology, lengths: &[u32], source: SwitchId) -> Vec<u64> {
    let arcs = |switch, so_far| {
        let through = move |channel: ChannelId| so_far + u64::from(lengths[channel.index()]);
        topology.neighbours(switch).map(move |(channel, head)| (channel, head, through(channel)))
    };
    dijkstra(topology.switches().len(), [(source, 0)], arcs).cost
}
