//! Start: a channel order annealed for clusters of senders, and trees grown within it.
//!
//! Exploits: nearness of senders where paths must rise. On a cluster's stems frames run both ways, up to where the senders' ways
//! part and down again; beyond them only outward. So stems come first in the order, those that lead up before those that lead
//! down, and are kept from all other clusters; what is left of the network is ordered as for as many sources as there are
//! clusters, each of which may begin at any switch of its own (`anneal.rs`).
//! Wins: hyperx 5x4 and dragonfly a=4,h=2 with eight trees under PAUSE, 1.14 and 1.41; random-regular n=48,d=5 with 32, 1.25.
//! Costs: shaping of clusters and 120 rounds of annealing for each try; tried for powers of two and thrice as many, from eight
//! trees on, and less often once it came to nothing.
//!
//! ```text
//!   [a]──[m]──[b]      order   am bm │ ma mb │ a▶x  m▶y  b▶z  x▶y …     stems up, stems down, and all others as annealed
//!    x    y    z
//! ```

use fabric::rng::Rng;

use super::clusters::{Cluster, Load, clusters};
use crate::engine::balanced::{
    anneal::{self, Annealing, Origin},
    bent_order::Orders,
    build::{Builder, Rule},
    improve::{Candidate, is_better},
    net::{NONE, Net},
    price::PathPrices,
    rank::ranks_by_key,
    schedule::{ANNEALING, CLUSTERS, FAR, GROWING, PRICES},
    senders::{Share, Unit},
    shape::shaped,
    shared_trees::{SharedTrees, span},
    work::Work,
};

/// What trees are wanted for.
#[derive(Clone, Copy)]
pub(in crate::engine::balanced) struct Clustering {
    /// Clusters, each with a tree.
    pub(in crate::engine::balanced) count: usize,
    /// Lanes on which trees are placed round-robin.
    pub(in crate::engine::balanced) lanes: usize,
    /// Load of the most loaded channel that the trees compete with, in pairs of hosts.
    pub(in crate::engine::balanced) limit: f64,
    /// Most visits while clusters take shape.
    pub(in crate::engine::balanced) shaping_max: u64,
}

/// A tree for each cluster; none if no order was found that serves them all, or if the most loaded channel is far above the limit.
pub(in crate::engine::balanced) fn ordered(
    net: &Net,
    mut units: Vec<Unit>,
    clustering: Clustering,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Option<Share> {
    let Clustering { count, lanes, limit, shaping_max } = clustering;
    let mut senders = vec![0_u32; net.switches];
    units.iter().for_each(|unit| senders[unit.switch] += unit.hosts.len() as u32);
    let clusters = clusters(net, &senders, count, rng).0;
    work.spend(net.channels * CLUSTERS.trades);
    let clusters = shaped(net, &clusters, &senders, shaping_max, rng, work)?;
    let mut cluster_of = vec![0; net.switches];
    for (number, cluster) in clusters.iter().enumerate() {
        cluster.switches.iter().for_each(|&switch| cluster_of[switch] = number);
    }
    units.iter_mut().for_each(|unit| unit.tree = cluster_of[unit.switch]);
    let lane: Vec<u8> = (0..clusters.len()).map(|number| (number % lanes) as u8).collect();
    let ReservedStems { closed, key } = ReservedStems::new(net, &clusters, &lane, lanes);
    let balances = clusters.iter().map(|cluster| Balance::new(net, cluster, &senders)).collect();
    let (units, builder) = (units.clone(), Builder::new(net));
    let mut grower = TreeGrower { net, clusters: &clusters, lane: &lane, closed: &closed, balances, builder };
    // First without an order, to find out where paths should begin.
    let unordered = grower.grow(Share { trees: SharedTrees::new(net, None), units: units.clone() }, None, rng, work)?;
    if unordered.trees.peak(net) > FAR * limit {
        return None;
    }
    let origins: Vec<Origin<'_>> = (clusters.iter().zip(&grower.balances))
        .map(|(cluster, balance)| Origin {
            roots: cluster.switches.iter().map(|&switch| switch as u32).zip(balance.starts(net, cluster)).collect(),
            senders: u64::from(balance.all),
            shares: &net.hosts,
        })
        .collect();
    let rank = anneal::random_orders(net, lanes, rng);
    let annealing = Annealing { origins: &origins, lane: &lane, closed: &closed, schedule: ANNEALING.clusters };
    let annealed = anneal::anneal(net, &annealing, rank, rng, work)?;
    let rank: Vec<Vec<u32>> = (annealed.iter().zip(&key))
        .map(|(rank, key)| {
            let place = |(&rank, &key): (&u32, &f64)| if key < 0.0 { key } else { f64::from(rank) };
            ranks_by_key(&rank.iter().zip(key).map(place).collect::<Vec<f64>>())
        })
        .collect();
    let trees = SharedTrees::new(net, Some(Orders::new(net, rank.clone())));
    grower
        .grow(Share { trees, units }, Some(&rank), rng, work)
        .filter(|share| share.trees.peak(net) <= CLUSTERS.promising * limit)
}

/// What trees are grown from.
struct TreeGrower<'a> {
    net: &'a Net,
    clusters: &'a [Cluster],
    lane: &'a [u8],
    closed: &'a [Vec<bool>],
    balances: Vec<Balance>,
    builder: Builder,
}

impl TreeGrower<'_> {
    /// Trees for all clusters, grown again and again; the best of them, if there are any.
    fn grow(
        &mut self,
        mut share: Share,
        rank: Option<&[Vec<u32>]>,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> Option<Share> {
        let net = self.net;
        let mut best: Option<Share> = None;
        let rounds = if rank.is_none() { CLUSTERS.rounds_unordered } else { CLUSTERS.sharpness.len() };
        for (round, sharpness) in CLUSTERS.sharpness.into_iter().enumerate().take(rounds) {
            let mut prices = PathPrices::new(net, &share.trees.load, sharpness, PRICES.floor_clusters);
            let mut turn: Vec<usize> = (0..self.clusters.len()).collect();
            if round > 0 {
                rng.shuffle(&mut turn);
            }
            for number in turn {
                let (root, lane) = (self.clusters[number].switches[0], self.lane[number]);
                if round > 0 {
                    share.carry_all(net, number, &mut prices, Load::Off);
                }
                let rank = rank.map(|rank| &rank[usize::from(lane)][..]);
                let balancings = CLUSTERS.balancings[round.min(1)];
                let Some(inward) = self.grow_one(number, balancings, &prices.price, rank, work) else { return best };
                if round == 0 {
                    share.trees.push(root, &inward, lane);
                } else {
                    share.trees.tree_mut(number).copy_from_slice(&inward);
                }
                share.carry_all(net, number, &mut prices, Load::On);
                if work.expired() && round > 0 {
                    return best;
                }
            }
            if best.as_ref().is_none_or(|best| is_better(share.quality(net), best.quality(net))) {
                let mut settled = share.clone();
                if settled.settle(net) {
                    best = Some(settled);
                }
            }
        }
        best
    }

    /// The tree of a cluster that loads its stems least, of a few.
    fn grow_one(
        &mut self,
        number: usize,
        balancings: usize,
        price: &[f32],
        rank: Option<&[u32]>,
        work: &mut Work<'_>,
    ) -> Option<Vec<u32>> {
        let (net, cluster) = (self.net, &self.clusters[number]);
        let closed = &self.closed[usize::from(self.lane[number])];
        let prices: Vec<f32> =
            price.iter().zip(closed).map(|(&price, &closed)| if closed { f32::INFINITY } else { price }).collect();
        let mut inward = vec![NONE; net.switches];
        let mut best: Option<(f64, Vec<u32>, Vec<f64>)> = None;
        for step in 0..balancings {
            let start = self.balances[number].starts(net, cluster);
            let grown = match rank {
                None => self.builder.grow_from(net, &cluster.switches, &start, &prices, Rule::Free, &mut inward),
                Some(rank) => GROWING.attempts_clusters.iter().any(|&lateness| {
                    let rule = Rule::Strict(rank, lateness);
                    self.builder.grow_from(net, &cluster.switches, &start, &prices, rule, &mut inward)
                }),
            };
            work.spend(8 * net.channels);
            if !grown {
                break;
            }
            let balance = &mut self.balances[number];
            let before = balance.bias.clone();
            let peak = balance.adjust(net, cluster, &inward, 1.0 / (1.0 + CLUSTERS.balancing_decay * step as f64));
            if best.as_ref().is_none_or(|best| peak < best.0) {
                best = Some((peak, inward.clone(), before));
            }
            if peak <= balance.least() * CLUSTERS.balanced {
                break;
            }
        }
        let (_, mut inward, bias) = best?;
        self.balances[number].bias = bias;
        for (&switch, &stem) in cluster.switches.iter().zip(&cluster.stem) {
            inward[switch] = stem;
        }
        span(net, cluster.switches[0], &mut inward);
        Some(inward)
    }
}

/// How many hosts should lie beyond each stem of a cluster.
struct Balance {
    /// `senders[i]`: at or below `switches[i]`; and all.
    senders: Vec<u32>,
    all: u32,
    /// `bias[i]`: what it costs a path to begin at or below `switches[i]`.
    bias: Vec<f64>,
    hosts: u32,
}

impl Balance {
    fn new(net: &Net, cluster: &Cluster, senders: &[u32]) -> Self {
        let mut own: Vec<u32> = cluster.switches.iter().map(|&switch| senders[switch]).collect();
        gather(net, cluster, &mut own);
        let (all, hosts) = (own[0], net.hosts.iter().sum());
        Self { bias: vec![0.0; own.len()], senders: own, all, hosts }
    }

    /// A load that some stem must have.
    fn least(&self) -> f64 {
        let (all, hosts) = (f64::from(self.all), f64::from(self.hosts));
        let of = |&k: &u32| f64::from(k) * (all - f64::from(k)) * hosts / all;
        self.senders.iter().map(of).fold(0.0, f64::max)
    }

    /// What it costs a path to begin at each switch.
    fn starts(&self, net: &Net, cluster: &Cluster) -> Vec<f32> {
        let mut sum = self.bias.clone();
        let mut place = vec![0; net.switches];
        for (at, (&switch, &stem)) in cluster.switches.iter().zip(&cluster.stem).enumerate() {
            place[switch] = at;
            if stem != NONE {
                sum[at] += sum[place[net.tail(stem)]];
            }
        }
        let least = sum.iter().copied().fold(f64::INFINITY, f64::min);
        sum.iter().map(|sum| (sum - least) as f32).collect()
    }

    /// Raises the cost of beginning beyond stems that carry more outward, and lowers it beyond others. Returns the load of the most
    /// loaded stem.
    fn adjust(&mut self, net: &Net, cluster: &Cluster, inward: &[u32], step: f64) -> f64 {
        // Where the path to each switch begins.
        let mut begin = vec![usize::MAX; net.switches];
        for (at, &switch) in cluster.switches.iter().enumerate() {
            begin[switch] = at;
        }
        let mut hosts: Vec<u32> = vec![0; cluster.switches.len()];
        let mut way = Vec::new();
        for switch in 0..net.switches {
            let mut at = switch;
            while begin[at] == usize::MAX && inward[at] != NONE {
                way.push(at);
                at = net.tail(inward[at]);
            }
            let found = begin[at];
            way.drain(..).for_each(|at| begin[at] = found);
            if found != usize::MAX {
                hosts[found] += net.hosts[switch];
            }
        }
        gather(net, cluster, &mut hosts);
        let mut peak: f64 = 0.0;
        let least = self.least().max(1.0);
        for ((&h, &k), bias) in hosts.iter().zip(&self.senders).zip(&mut self.bias).skip(1) {
            let (k, h) = (f64::from(k), f64::from(h));
            let up = k * (f64::from(self.hosts) - h);
            let down = (f64::from(self.all) - k) * h;
            peak = peak.max(up).max(down);
            *bias += step * ((down - least).max(0.0) - (up - least).max(0.0)) / least;
        }
        peak
    }
}

/// Adds up what is at or below each switch of a cluster.
fn gather(net: &Net, cluster: &Cluster, counts: &mut [u32]) {
    let mut place = vec![0; net.switches];
    cluster.switches.iter().enumerate().for_each(|(at, &switch)| place[switch] = at);
    for at in (1..counts.len()).rev() {
        counts[place[net.tail(cluster.stem[at])]] += counts[at];
    }
}

/// The channels of all stems.
struct ReservedStems {
    /// `closed[lane][channel]`.
    closed: Vec<Vec<bool>>,
    /// `key[lane][channel]`: negative on stems, rising in the order that they come in.
    key: Vec<Vec<f64>>,
}

impl ReservedStems {
    fn new(net: &Net, clusters: &[Cluster], lane: &[u8], lanes: usize) -> Self {
        let (mut closed, mut key) = (vec![vec![false; net.channels]; lanes], vec![vec![0.0; net.channels]; lanes]);
        let far = net.switches as f64;
        let mut depth = vec![0.0; net.switches];
        for (cluster, &lane) in clusters.iter().zip(lane) {
            let (closed, key) = (&mut closed[usize::from(lane)], &mut key[usize::from(lane)]);
            for (&switch, &stem) in cluster.switches.iter().zip(&cluster.stem) {
                depth[switch] = 0.0;
                if stem != NONE {
                    depth[switch] = depth[net.tail(stem)] + 1.0;
                    let back = net.reverse(stem);
                    (closed[stem as usize], closed[back as usize]) = (true, true);
                    key[back as usize] = -2.0 * far - depth[switch];
                    key[stem as usize] = -2.0 * far + depth[switch];
                }
            }
        }
        Self { closed, key }
    }
}
