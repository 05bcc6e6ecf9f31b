//! Start: a tree for each cluster of senders that lie next to each other.
//!
//! Exploits: nearness of senders. The frames of senders that share a tree meet on it, each one's way out with the others' way in.
//! In a *cluster*, a small subtree of which no other cluster has a switch, all that happens within: up its *stems* to wherever
//! the senders' ways part, down to where they leave it, and outward from there. So trees grow from all switches of a cluster at
//! once, each against the load of the others.
//! Wins: random-regular n=64,d=6 without flow control, 1.50 with 32 trees and 1.03 with 48; not random-regular n=48,d=5, torus 8x8
//! or dragonfly a=4,h=2 with as many.
//! Costs: a tree grown for each cluster and sharpness, without flow control only; the parting into clusters is also the first
//! step of `ordered_clusters.rs`, which is worth much.
//!
//! ```text
//!    cluster {a, m, b}        h─[a]──[m]──[b]─h      from a: out at a; am, out at m; am, mb, out at b
//!                                │    │    │
//!                               out  out  out
//! ```

use fabric::{graph::breadth_first, rng::Rng};

use crate::engine::balanced::{
    build::{Builder, Rule},
    net::{NONE, Net},
    price::PathPrices,
    schedule::{CLUSTERS, PRICES},
    senders::{Share, Unit},
    shared_trees::SharedTrees,
    work::Work,
};

/// Connected switches, as a tree.
pub(in crate::engine::balanced) struct Cluster {
    /// Its switches, the middle first and parents before children.
    pub(in crate::engine::balanced) switches: Vec<usize>,
    /// `stem[i]`: the channel by which frames from the middle enter `switches[i]`; [`NONE`] at the middle.
    pub(in crate::engine::balanced) stem: Vec<u32>,
}

/// A tree for each of so many clusters, where nothing waits.
pub(in crate::engine::balanced) fn clustered(
    net: &Net,
    mut units: Vec<Unit>,
    count: usize,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Share {
    let mut senders = vec![0_u32; net.switches];
    units.iter().for_each(|unit| senders[unit.switch] += unit.hosts.len() as u32);
    let (clusters, cluster_of) = clusters(net, &senders, count, rng);
    work.spend(net.channels * CLUSTERS.trades);
    units.iter_mut().for_each(|unit| unit.tree = cluster_of[unit.switch]);
    let mut share = Share { trees: SharedTrees::new(net, None), units };
    let mut builder = Builder::new(net);
    let mut inward = vec![NONE; net.switches];
    for (round, sharpness) in CLUSTERS.sharpness.into_iter().enumerate().take(CLUSTERS.rounds_free) {
        let mut prices = PathPrices::new(net, &share.trees.load, sharpness, PRICES.floor_clusters);
        let mut turn: Vec<usize> = (0..clusters.len()).collect();
        if round > 0 {
            rng.shuffle(&mut turn);
        }
        for number in turn {
            let cluster = &clusters[number];
            if round > 0 {
                share.carry_all(net, number, &mut prices, Load::Off);
            }
            let start = vec![0.0; cluster.switches.len()];
            builder.grow_from(net, &cluster.switches, &start, &prices.price, Rule::Free, &mut inward);
            for (&switch, &stem) in cluster.switches.iter().zip(&cluster.stem) {
                inward[switch] = stem;
            }
            if round == 0 {
                share.trees.push(cluster.switches[0], &inward, 0);
            } else {
                share.trees.tree_mut(number).copy_from_slice(&inward);
            }
            share.carry_all(net, number, &mut prices, Load::On);
            if !work.spend(5 * net.channels) && round > 0 {
                break;
            }
        }
    }
    share.settle(net);
    share
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::balanced) enum Load {
    On,
    Off,
}

impl Share {
    /// Puts all that a tree carries on its channels, or takes it off.
    pub(in crate::engine::balanced) fn carry_all(
        &mut self,
        net: &Net,
        tree: usize,
        prices: &mut PathPrices,
        which: Load,
    ) {
        for (channel, pairs) in self.loads(net, tree) {
            let load = &mut self.trees.load[channel as usize];
            *load = if which == Load::On { *load + pairs } else { *load - pairs };
            prices.update(net, &self.trees.load, channel);
        }
    }
}

/// Parts the switches with senders into so many clusters, about as large as each other; and `cluster[switch]`.
pub(in crate::engine::balanced) fn clusters(
    net: &Net,
    senders: &[u32],
    count: usize,
    rng: &mut Rng,
) -> (Vec<Cluster>, Vec<usize>) {
    const NOBODY: usize = usize::MAX;
    let seeds = far_apart(net, senders, count, rng);
    let mut owner = vec![NOBODY; net.switches];
    let mut size = vec![0_u32; seeds.len()];
    let mut parts: Vec<Vec<usize>> = seeds.iter().map(|&seed| vec![seed]).collect();
    for (number, &seed) in seeds.iter().enumerate() {
        owner[seed] = number;
        size[number] = senders[seed];
    }
    // The smallest takes the next, of its neighbours that which has fewest others to join.
    let mut open = vec![true; seeds.len()];
    while let Some(number) = (0..seeds.len()).filter(|number| open[*number]).min_by_key(|number| size[*number]) {
        let free = |switch: usize| net.from(switch).iter().filter(|c| owner[net.head(**c)] == NOBODY).count();
        let near = (parts[number].iter().enumerate())
            .flat_map(|(age, &at)| net.from(at).iter().map(move |&channel| (age, net.head(channel))))
            .filter(|(_, head)| owner[*head] == NOBODY)
            .min_by_key(|&(age, head)| (free(head), age, head));
        let Some((_, head)) = near else {
            open[number] = false;
            continue;
        };
        owner[head] = number;
        size[number] += senders[head];
        parts[number].push(head);
    }
    even_out(net, senders, &mut owner, &mut parts, &mut size, rng);
    let mut found = Vec::with_capacity(parts.len());
    for part in &parts {
        found.push(rooted(net, senders, part, &owner));
    }
    (found, owner)
}

/// Moves switches to neighbouring clusters that are smaller, as long as what they leave is connected.
fn even_out(
    net: &Net,
    senders: &[u32],
    owner: &mut [usize],
    parts: &mut [Vec<usize>],
    size: &mut [u32],
    rng: &mut Rng,
) {
    let mut switches: Vec<usize> = (0..net.switches).collect();
    for _ in 0..CLUSTERS.trades {
        rng.shuffle(&mut switches);
        for &switch in &switches {
            let (from, weight) = (owner[switch], senders[switch]);
            if parts[from].len() < 2 || weight == 0 {
                continue;
            }
            // Among equals a switch moves as well, so that what is too much here drifts to where there is too little.
            let to = (net.from(switch).iter().map(|&channel| owner[net.head(channel)]))
                .filter(|&to| to != from && size[to] + weight <= size[from])
                .min_by_key(|&to| (size[to], to));
            let Some(to) = to else { continue };
            if !is_connected(net, &parts[from], switch, owner) {
                continue;
            }
            owner[switch] = to;
            size[from] -= weight;
            size[to] += weight;
            parts[from].retain(|&other| other != switch);
            parts[to].push(switch);
        }
    }
}

/// Whether a cluster is still one without one of its switches.
fn is_connected(net: &Net, part: &[usize], without: usize, owner: &[usize]) -> bool {
    let cluster = owner[without];
    let Some(&first) = part.iter().find(|&&switch| switch != without) else { return false };
    let rest = |switch: usize| net.neighbours(switch).filter(|&(_, head)| owner[head] == cluster && head != without);
    breadth_first(net.switches, [first], rest).order.len() + 1 == part.len()
}

/// Roots a cluster at the switch from which all its senders are nearest.
fn rooted(net: &Net, senders: &[u32], part: &[usize], owner: &[usize]) -> Cluster {
    let from = |middle: usize| {
        let own = |switch: usize| net.neighbours(switch).filter(|&(_, head)| owner[head] == owner[middle]);
        let found = breadth_first(net.switches, [middle], own);
        let stem = found.order.iter().map(|&switch| found.inward[switch].unwrap_or(NONE)).collect();
        let sum: u32 = found.order.iter().map(|&s| senders[s] * found.distance(s).unwrap_or(0)).sum();
        let switches = found.order;
        (sum, Cluster { switches, stem })
    };
    let best = part.iter().map(|&middle| from(middle)).min_by_key(|(sum, cluster)| (*sum, cluster.switches[0]));
    let (_, Cluster { mut switches, mut stem }) = best.expect("a cluster has a switch");
    // What leads to no sender is no part of it.
    let mut at = switches.len();
    while at > 1 {
        at -= 1;
        let leads = (at + 1..switches.len()).any(|child| net.tail(stem[child]) == switches[at]);
        if senders[switches[at]] == 0 && !leads {
            switches.remove(at);
            stem.remove(at);
        }
    }
    Cluster { switches, stem }
}

/// So many switches with senders, each as far as can be from those before.
fn far_apart(net: &Net, senders: &[u32], count: usize, rng: &mut Rng) -> Vec<usize> {
    let with: Vec<usize> = (0..net.switches).filter(|switch| senders[*switch] > 0).collect();
    let mut seeds = vec![with[rng.below(with.len())]];
    loop {
        let found = breadth_first(net.switches, seeds.iter().copied(), |switch| net.neighbours(switch));
        let nearest = |switch: usize| found.distance(switch).unwrap_or(u32::MAX);
        let far = with.iter().map(|&switch| nearest(switch)).max().unwrap_or(0);
        if seeds.len() >= count || far == 0 {
            return seeds;
        }
        let choices: Vec<usize> = with.iter().copied().filter(|&switch| nearest(switch) == far).collect();
        seeds.push(choices[rng.below(choices.len())]);
    }
}
