//! A lower bound on the busiest channel's load, with a certificate that anybody can check.
//!
//! For any channel lengths l ≥ 0, every route from s to d covers at least dist(s, d), so all routes together cover
//! Σ dist, while channels of load at most m can cover at most m·Σ l: hence m ≥ Σ dist / Σ l (the dual of maximum
//! concurrent flow). Good lengths are long where every routing is crowded. They are found by multiplicative weights
//! (Garg and Könemann, "Faster and simpler algorithms for multicommodity flow", 1998): route everything along shortest
//! paths, average the loads of all rounds so far, make each channel's length exponential in its load, repeat; the
//! average of all lengths proves most. Uniform lengths and cuts between the switches nearer to one pivot than to another
//! are tried as well; they are exact on many regular networks.
//!
//! ```text
//!   h─[a]═══[b]─h     two cables, two hosts a side: 4 ordered pairs go right, lengths 1 on both channels:
//!   h─┘       └─h     Σ dist = 4, Σ l = 2, so some channel carries at least 2
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{Bound, ChannelId, SwitchId, Topology};

/// Work spent on multiplicative weights, in channel relaxations.
const RELAXATIONS_MAX: usize = 12_000_000;
/// Most rounds of multiplicative weights, however small the network.
const ROUNDS_MAX: usize = 400;
/// Most switches from which cuts are tried.
const PIVOTS_MAX: usize = 64;
/// How fast the weights sharpen, a round.
const SHARPENING: f64 = 0.15;
/// Lengths are stored as integers up to this.
const LENGTH_MAX: f64 = 1_000_000.0;

/// A bound and its proof.
#[derive(Clone, Debug)]
pub(crate) struct LoadBound {
    /// No routing has a busiest channel with less load.
    pub(crate) load: f64,
    /// The lengths that prove it.
    pub(crate) certificate: Bound,
}

/// The best bound that the budget of work finds. Cost: bounded by `RELAXATIONS_MAX`, but at least two rounds.
pub(crate) fn bound(topology: &Topology) -> LoadBound {
    let search = Search::new(topology);
    let channels = topology.channel_count();
    let mut best = LoadBound { load: 0.0, certificate: Bound { lengths: vec![0; channels] } };
    if channels == 0 || search.demand() == 0.0 {
        return best;
    }
    search.keep_better(&vec![1; channels], &mut best);
    search.pivot_cuts(&mut best);
    search.multiplicative_weights(&mut best);
    best
}

struct Search<'a> {
    topology: &'a Topology,
    /// `hosts[switch]`.
    hosts: Vec<f64>,
    sources: Vec<SwitchId>,
    heads: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology) -> Self {
        let hosts: Vec<f64> = topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as f64).collect();
        let sources = topology.switch_ids().filter(|switch| hosts[switch.index()] > 0.0).collect();
        let heads = topology.channel_ids().map(|channel| topology.head(channel).index()).collect();
        Self { topology, hosts, sources, heads }
    }

    /// Ordered pairs of hosts on different switches.
    fn demand(&self) -> f64 {
        let all: f64 = self.hosts.iter().sum();
        all * all - self.hosts.iter().map(|hosts| hosts * hosts).sum::<f64>()
    }

    /// Keeps `lengths` if they prove more.
    fn keep_better(&self, lengths: &[u32], best: &mut LoadBound) {
        let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        if sum == 0 {
            return;
        }
        let mut shortest = Shortest::new(self.topology.switches().len());
        let weights: Vec<f64> = lengths.iter().map(|&length| f64::from(length)).collect();
        let mut covered = 0.0;
        for &source in &self.sources {
            shortest.run(self, source, &weights);
            for &switch in &shortest.order {
                covered += shortest.distance[switch] * self.hosts[switch] * self.hosts[source.index()];
            }
        }
        let load = covered / sum as f64;
        if load > best.load * (1.0 + 1e-12) {
            *best = LoadBound { load, certificate: Bound { lengths: lengths.to_vec() } };
        }
    }

    /// Multiplicative weights; keeps the averaged lengths.
    fn multiplicative_weights(&self, best: &mut LoadBound) {
        let channels = self.topology.channel_count();
        let rounds = (RELAXATIONS_MAX / (self.sources.len() * channels)).clamp(2, ROUNDS_MAX);
        let mut shortest = Shortest::new(self.topology.switches().len());
        let mut weights = vec![1.0; channels];
        let mut average_weights = vec![0.0; channels];
        let mut average_load = vec![0.0; channels];
        let mut load = vec![0.0; channels];
        for round in 0..rounds {
            load.fill(0.0);
            for &source in &self.sources {
                shortest.run(self, source, &weights);
                shortest.spread(self, source, &mut load);
            }
            let step = 1.0 / (round as f64 + 1.0);
            let sum: f64 = weights.iter().sum();
            let mut peak: f64 = 0.0;
            for (average, load) in average_load.iter_mut().zip(&load) {
                *average += step * (load - *average);
                peak = peak.max(*average);
            }
            for (average, weight) in average_weights.iter_mut().zip(&weights) {
                *average += step * (weight / sum - *average);
            }
            let sharpness = 2.0 + SHARPENING * round as f64;
            for (weight, average) in weights.iter_mut().zip(&average_load) {
                *weight = (sharpness * (average / peak - 1.0)).exp() + 1e-6;
            }
        }
        let longest = average_weights.iter().copied().fold(0.0, f64::max);
        let lengths: Vec<u32> =
            average_weights.iter().map(|weight| (weight / longest * LENGTH_MAX).round() as u32).collect();
        self.keep_better(&lengths, best);
    }

    /// Cuts between the switches nearer to one pivot than to another and the rest, for pairs of pivots and every
    /// threshold: the channels out of a set must carry what its hosts send to all others.
    fn pivot_cuts(&self, best: &mut LoadBound) {
        let pairs_max = (RELAXATIONS_MAX / self.heads.len()).max(1);
        let pivots_max = ((2 * pairs_max).isqrt() + 1).min(PIVOTS_MAX);
        let stride = self.sources.len().div_ceil(pivots_max).max(1);
        let mut shortest = Shortest::new(self.hosts.len());
        let uniform = vec![1.0; self.heads.len()];
        let distances: Vec<Vec<f64>> = (self.sources.iter().step_by(stride))
            .map(|&pivot| {
                shortest.run(self, pivot, &uniform);
                shortest.distance.clone()
            })
            .collect();
        let mut found: Option<Vec<usize>> = None;
        let mut proven = best.load;
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        for (index, one) in distances.iter().enumerate() {
            for other in &distances[index + 1..] {
                order.sort_by(|&a, &b| (one[a] - other[a]).total_cmp(&(one[b] - other[b])).then(a.cmp(&b)));
                if let Some((load, count)) = self.best_prefix(&order).filter(|(load, _)| *load > proven * (1.0 + 1e-12))
                {
                    proven = load;
                    found = Some(order[..count].to_vec());
                }
            }
        }
        if let Some(inside) = found {
            let mut within = vec![false; self.hosts.len()];
            inside.into_iter().for_each(|switch| within[switch] = true);
            let leaves = |channel: ChannelId| {
                within[self.topology.tail(channel).index()] && !within[self.topology.head(channel).index()]
            };
            let lengths: Vec<u32> = self.topology.channel_ids().map(|channel| u32::from(leaves(channel))).collect();
            self.keep_better(&lengths, best);
        }
    }

    /// The prefix of `order` whose cut proves most, as `(load, switches in it)`. Cost: O(channels).
    fn best_prefix(&self, order: &[usize]) -> Option<(f64, usize)> {
        let all: f64 = self.hosts.iter().sum();
        let mut within = vec![false; self.hosts.len()];
        let (mut hosts, mut crossing) = (0.0, 0_usize);
        let mut best = None;
        for (count, &switch) in order.iter().enumerate() {
            within[switch] = true;
            hosts += self.hosts[switch];
            // A cable to a switch already inside stops crossing, any other starts to.
            for &channel in self.topology.channels_from(SwitchId::new(switch)) {
                if within[self.heads[channel.index()]] { crossing -= 1 } else { crossing += 1 }
            }
            let load = if crossing == 0 { 0.0 } else { hosts * (all - hosts) / crossing as f64 };
            if best.is_none_or(|(most, _)| load > most) {
                best = Some((load, count + 1));
            }
        }
        best
    }
}

/// Dijkstra's algorithm with its tables kept between runs.
struct Shortest {
    distance: Vec<f64>,
    inward: Vec<Option<ChannelId>>,
    /// Switches by ascending distance.
    order: Vec<usize>,
    done: Vec<bool>,
    below: Vec<f64>,
    queue: BinaryHeap<Reverse<(Ordered, usize)>>,
}

impl Shortest {
    fn new(switches: usize) -> Self {
        Self {
            distance: vec![0.0; switches],
            inward: vec![None; switches],
            order: Vec::with_capacity(switches),
            done: vec![false; switches],
            below: vec![0.0; switches],
            queue: BinaryHeap::new(),
        }
    }

    fn run(&mut self, search: &Search<'_>, source: SwitchId, weights: &[f64]) {
        self.distance.fill(f64::INFINITY);
        self.inward.fill(None);
        self.done.fill(false);
        self.order.clear();
        self.distance[source.index()] = 0.0;
        self.queue.push(Reverse((Ordered(0.0), source.index())));
        while let Some(Reverse((Ordered(distance), switch))) = self.queue.pop() {
            if std::mem::replace(&mut self.done[switch], true) {
                continue;
            }
            self.order.push(switch);
            for &channel in search.topology.channels_from(SwitchId::new(switch)) {
                let head = search.heads[channel.index()];
                let through = distance + weights[channel.index()];
                if through < self.distance[head] {
                    self.distance[head] = through;
                    self.inward[head] = Some(channel);
                    self.queue.push(Reverse((Ordered(through), head)));
                }
            }
        }
    }

    /// Adds the loads of one source's shortest-path tree.
    fn spread(&mut self, search: &Search<'_>, source: SwitchId, load: &mut [f64]) {
        let senders = search.hosts[source.index()];
        self.below.fill(0.0);
        for &switch in self.order.iter().rev() {
            self.below[switch] += search.hosts[switch];
            if let Some(channel) = self.inward[switch] {
                load[channel.index()] += self.below[switch] * senders;
                self.below[search.topology.tail(channel).index()] += self.below[switch];
            }
        }
    }
}

/// Distances are never NaN, so they are totally ordered.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
