//! How good a routing is: channel loads and path lengths.

use std::ops::Range;

use std::cell::OnceCell;

use fabric::{ChannelId, Plan, Topology, Traffic, TrafficMatrix};

use crate::{
    fan::{Direction, Fan, for_each_fan_of},
    host_set::HostSet,
    routing::Routing,
    threads::with_each,
};

/// `time[channel]`: how long the traffic of a plan's policy keeps each direction of each link busy, in demand on the fastest
/// link; for all-to-all, in ordered pairs of hosts. Where there is further traffic, the longest of any. Cost: O(trees · switches),
/// and for a matrix O(demands) more for each tree.
pub fn channel_times(plan: &Plan) -> Vec<f64> {
    let (topology, routing) = (&plan.topology, Routing::of_plan(plan));
    let mut times = vec![0.0_f64; topology.channel_count()];
    for traffic in plan.policy.demands(topology).unwrap_or_default() {
        let measure = Measure::of(topology, &traffic, &routing);
        for (channel, time) in topology.channel_ids().zip(&mut times) {
            *time = time.max(measure.load[channel.index()] * topology.slowness(channel));
        }
    }
    times
}

/// Loads and path lengths; exact counts where every pair sends one unit.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// `load[channel]`: demand that crosses it.
    pub(crate) load: Vec<f64>,
    /// How long the most loaded channel takes, in demand on the fastest link.
    pub(crate) time_max: f64,
    /// Links between switches, summed over ordered pairs of hosts.
    pub(crate) hops_total: u64,
    /// Most links between switches on any path.
    pub(crate) hops_max: usize,
}

impl Measure {
    /// Measures a routing. Cost: O(fans · switches), and for a matrix O(demands) more for each fan of a host.
    pub(crate) fn of(topology: &Topology, traffic: &Traffic, routing: &Routing) -> Self {
        Self::by_threads(topology, traffic, routing, 1)
    }

    /// The same by so many threads, where that makes no difference: sums of a matrix depend on their order.
    pub(crate) fn by_threads(topology: &Topology, traffic: &Traffic, routing: &Routing, threads: usize) -> Self {
        let nothing = Self { load: vec![0.0; topology.channel_count()], time_max: 0.0, hops_total: 0, hops_max: 0 };
        let shares = if *traffic == Traffic::AllToAll { threads.max(1) } else { 1 };
        let share = routing.trees.len().div_ceil(shares).max(1);
        let starts = (0..routing.trees.len()).step_by(share);
        let mut parts: Vec<(Range<usize>, Self)> =
            starts.map(|start| (start..(start + share).min(routing.trees.len()), nothing.clone())).collect();
        with_each(threads, &mut parts, |(trees, measure)| {
            let mut weigher = Weigher::new(topology, traffic);
            let mut depth = vec![0; topology.switches().len()];
            for_each_fan_of(topology, routing, trees, |fan| {
                measure.add(topology, routing, fan, &mut weigher, &mut depth);
            });
        });
        let mut whole = nothing;
        for (_, part) in parts {
            whole.load.iter_mut().zip(&part.load).for_each(|(load, more)| *load += more);
            whole.hops_total += part.hops_total;
            whole.hops_max = whole.hops_max.max(part.hops_max);
        }
        let times = topology.channel_ids().map(|channel| whole.load[channel.index()] * topology.slowness(channel));
        whole.time_max = times.fold(0.0, f64::max);
        whole
    }

    fn add(
        &mut self,
        topology: &Topology,
        routing: &Routing,
        fan: &Fan<'_>,
        weigher: &mut Weigher<'_>,
        depth: &mut [usize],
    ) {
        let rooted = routing.trees[fan.tree].rooted_at(topology, fan.root);
        weigher.weigh(fan);
        let Weigher { pairs, demand, .. } = weigher;
        for &switch in &rooted.order {
            depth[switch.index()] =
                rooted.inward[switch.index()].map_or(0, |channel| depth[topology.tail(channel).index()] + 1);
            if pairs[switch.index()] > 0 {
                self.hops_max = self.hops_max.max(depth[switch.index()]);
                self.hops_total += pairs[switch.index()] * depth[switch.index()] as u64;
            }
        }
        for &switch in rooted.order.iter().rev() {
            if let Some(channel) = rooted.inward[switch.index()] {
                let beyond = demand[switch.index()];
                demand[topology.tail(channel).index()] += beyond;
                self.load[crossed(channel, fan.direction).index()] += beyond;
            }
        }
    }

    /// The most demand that crosses any channel.
    pub(crate) fn load_max(&self) -> f64 {
        self.load.iter().copied().fold(0.0, f64::max)
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

/// What a fan carries to or from each switch.
struct Weigher<'a> {
    topology: &'a Topology,
    matrix: Option<Matrix<'a>>,
    /// `pairs[switch]`: ordered pairs of hosts that the fan joins with peers there, hosts with themselves included.
    pairs: Vec<u64>,
    /// `demand[switch]`: what they send.
    demand: Vec<f64>,
}

/// A matrix, and the same by receivers once a fan asks for it.
struct Matrix<'a> {
    sent: &'a TrafficMatrix,
    received: OnceCell<TrafficMatrix>,
}

impl<'a> Weigher<'a> {
    fn new(topology: &'a Topology, traffic: &'a Traffic) -> Self {
        let matrix = match traffic {
            Traffic::AllToAll => None,
            Traffic::Matrix(sent) => Some(Matrix { sent, received: OnceCell::new() }),
        };
        let switches = topology.switches().len();
        Self { topology, matrix, pairs: vec![0; switches], demand: vec![0.0; switches] }
    }

    fn weigh(&mut self, fan: &Fan<'_>) {
        let count = |peers: &HostSet, hosts: &[fabric::HostId]| hosts.iter().filter(|h| peers.contains(**h)).count();
        for switch in self.topology.switch_ids() {
            let peers = count(fan.peers, self.topology.hosts_of(switch));
            self.pairs[switch.index()] = (peers * fan.owners.len()) as u64;
        }
        let Some(Matrix { sent, received }) = &self.matrix else {
            self.demand.iter_mut().zip(&self.pairs).for_each(|(demand, pairs)| *demand = *pairs as f64);
            return;
        };
        self.demand.fill(0.0);
        let by_owner = match fan.direction {
            Direction::Outward => *sent,
            Direction::Inward => received.get_or_init(|| sent.transposed()),
        };
        let everyone = fan.peers.is_everyone();
        for &(peer, amount) in fan.owners.iter().flat_map(|owner| by_owner.sent_by(*owner)) {
            if everyone || fan.peers.contains(peer) {
                self.demand[self.topology.switch_of(peer).index()] += amount;
            }
        }
    }
}

/// The channel that a fan's frames cross where its tree leads outward through `channel`.
pub(crate) fn crossed(channel: ChannelId, direction: Direction) -> ChannelId {
    match direction {
        Direction::Outward => channel,
        Direction::Inward => channel.reverse(),
    }
}
