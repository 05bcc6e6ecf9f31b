//! How good a routing is: channel loads and path lengths of all-to-all traffic.

use fabric::{ChannelId, Topology};

use crate::{
    fan::{Direction, Fan, for_each_fan},
    routing::Routing,
};

/// Loads and path lengths, in exact counts.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// `load[channel]`: ordered pairs of hosts whose path crosses it.
    pub(crate) load: Vec<u64>,
    /// Links between switches, summed over ordered pairs of hosts.
    pub(crate) hops_total: u64,
    /// Most links between switches on any path.
    pub(crate) hops_max: usize,
}

impl Measure {
    /// Measures a routing. Cost: O(fans · switches).
    pub(crate) fn of(topology: &Topology, routing: &Routing) -> Self {
        let mut measure = Self { load: vec![0; topology.channel_count()], hops_total: 0, hops_max: 0 };
        let mut below = vec![0; topology.switches().len()];
        let mut depth = vec![0; topology.switches().len()];
        for_each_fan(topology, routing, |fan| measure.add(topology, routing, fan, &mut below, &mut depth));
        measure
    }

    fn add(&mut self, topology: &Topology, routing: &Routing, fan: &Fan<'_>, below: &mut [u64], depth: &mut [usize]) {
        let rooted = routing.trees[fan.tree].rooted_at(topology, fan.root);
        for &switch in &rooted.order {
            let peers = topology.hosts_of(switch).iter().filter(|host| fan.peers.contains(**host)).count();
            below[switch.index()] = (peers * fan.owners.len()) as u64;
            depth[switch.index()] =
                rooted.inward[switch.index()].map_or(0, |channel| depth[topology.tail(channel).index()] + 1);
            if below[switch.index()] > 0 {
                self.hops_max = self.hops_max.max(depth[switch.index()]);
                self.hops_total += below[switch.index()] * depth[switch.index()] as u64;
            }
        }
        for &switch in rooted.order.iter().rev() {
            if let Some(channel) = rooted.inward[switch.index()] {
                below[topology.tail(channel).index()] += below[switch.index()];
                self.load[crossed(channel, fan.direction).index()] += below[switch.index()];
            }
        }
    }

    /// The load of the busiest channel.
    pub(crate) fn load_max(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    /// The longest time that a channel needs to carry one bit for every pair that crosses it, in femtoseconds.
    pub(crate) fn seconds_max(&self, topology: &Topology) -> u64 {
        let fs = |channel: ChannelId| {
            let rate_bps = u128::from(topology.link(channel.link()).rate_bps);
            (u128::from(self.load[channel.index()]) * 1_000_000_000_000_000 / rate_bps) as u64
        };
        topology.channel_ids().map(fs).max().unwrap_or(0)
    }

    /// Switches on a path, averaged over all ordered pairs of hosts, each with itself included.
    pub(crate) fn avg_switches_per_path(&self, topology: &Topology) -> f64 {
        let pairs = topology.hosts().len().pow(2) as f64;
        1.0 + self.hops_total as f64 / pairs
    }

    /// Links between switches on a path, averaged over ordered pairs of distinct hosts; 0 for a single host.
    pub(crate) fn avg_hops(&self, topology: &Topology) -> f64 {
        let hosts = topology.hosts().len();
        let pairs = hosts * (hosts - 1);
        if pairs == 0 { 0.0 } else { self.hops_total as f64 / pairs as f64 }
    }
}

/// The channel that a fan's frames cross where its tree leads outward through `channel`.
pub(crate) fn crossed(channel: ChannelId, direction: Direction) -> ChannelId {
    match direction {
        Direction::Outward => channel,
        Direction::Inward => channel.reverse(),
    }
}
