//! Clusters in a good shape: no stem with many senders on either side.
//!
//! With k of a tree's S senders on one side of a stem, and h of all n hosts, its channels carry k·(n − h) and (S − k)·h
//! pairs: at best, with h = k·n/S, both carry k·(S − k)·n/S. So stems should part few senders from the others; the best
//! cluster is a star. Branches of clusters are reattached elsewhere, in the same cluster or another, by annealing, and
//! some channels of every switch are left to others, who have to reach it as well.
//!
//! ```text
//!   [a]──[b]──[c]──[d]──[e]    1·4 2·3 3·2 4·1, in units of n/5        [a]  [b]
//!                                                                         [c]        1·4 on all
//!                                                                      [d]  [e]
//! ```

use fabric::{graph::breadth_first, rng::Rng};

use super::{
    net::{NONE, Net},
    schedule::SHAPING,
    starts::clusters::Cluster,
    work::Work,
};
use crate::exponential::{between, exp};

/// Clusters, of which each switch is in one at most.
struct Shape<'a> {
    net: &'a Net,
    senders: &'a [u32],
    owner: Vec<usize>,
    stem: Vec<u32>,
    parts: Vec<Vec<usize>>,
    /// `beyond[switch]`: senders at or below it, as last counted.
    beyond: Vec<u32>,
    /// What one more unit of load on the best stems costs.
    unit: f64,
    visits: usize,
}

/// Reshapes clusters that cover every switch, in so many visits at most; none if a switch is left without a channel for others.
pub(super) fn shaped(
    net: &Net,
    clusters: &[Cluster],
    senders: &[u32],
    visits_max: u64,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Option<Vec<Cluster>> {
    // On a switch with one cable there is nothing left for others.
    if (0..net.switches).any(|switch| net.hosts[switch] > 0 && net.from(switch).len() < 2) {
        return None;
    }
    let (mut owner, mut stem) = (vec![usize::MAX; net.switches], vec![NONE; net.switches]);
    let mut parts = Vec::with_capacity(clusters.len());
    for (number, cluster) in clusters.iter().enumerate() {
        for (&switch, &entry) in cluster.switches.iter().zip(&cluster.stem) {
            (owner[switch], stem[switch]) = (number, entry);
        }
        parts.push(cluster.switches.clone());
    }
    let each = f64::from(senders.iter().sum::<u32>()) / clusters.len() as f64;
    let degree = net.channels as f64 / net.switches as f64;
    let least = ((each - 1.0) / (degree - 1.0).max(1.0)).max(1.0);
    let unit = 1.0 / (least * (each - least) / each).max(0.5);
    let beyond = vec![0; net.switches];
    let mut shape = Shape { net, senders, owner, stem, parts, beyond, unit, visits: 0 };
    let mut cost: Vec<f64> = (0..clusters.len()).map(|number| shape.cost(number)).collect();
    let tries = SHAPING.moves * net.switches;
    for at in 0..tries {
        let way = (at as f64 / tries as f64).max(shape.visits as f64 / visits_max.max(1) as f64);
        if way >= 1.0 {
            break;
        }
        let heat = between(SHAPING.heat[0], SHAPING.heat[1], way);
        shape.try_move(&mut cost, heat, rng);
    }
    work.spend(shape.visits);
    if (0..net.switches).any(|switch| net.hosts[switch] > 0 && shape.free(switch) == 0) {
        return None;
    }
    Some((0..clusters.len()).map(|number| shape.finish(number)).collect())
}

impl Shape<'_> {
    /// What a cluster costs; counts senders on the way.
    fn cost(&mut self, number: usize) -> f64 {
        let mut cost = 0.0;
        for &switch in &self.parts[number] {
            cost += match self.free(switch) {
                0 => SHAPING.blocked,
                1 => SHAPING.narrow,
                _ => 0.0,
            };
        }
        let Self { net, senders, stem, parts, beyond, .. } = self;
        let part = &parts[number];
        part.iter().for_each(|&switch| beyond[switch] = 0);
        let mut all = 0;
        for &switch in part {
            all += senders[switch];
            let mut at = switch;
            loop {
                self.visits += 1;
                beyond[at] += senders[switch];
                if stem[at] == NONE {
                    break;
                }
                at = net.tail(stem[at]);
            }
        }
        for &switch in part {
            if stem[switch] != NONE {
                let (k, all) = (f64::from(beyond[switch]), f64::from(all));
                let load = self.unit * k * (all - k) / all.max(1.0);
                cost += load * load * load * load;
            }
            self.visits += 2;
        }
        cost
    }

    /// Channels of a switch that no stem takes.
    fn free(&self, switch: usize) -> usize {
        let Self { net, stem, .. } = self;
        let own = net.from(switch).iter().filter(|channel| stem[net.head(**channel)] == **channel).count();
        net.from(switch).len() - own - usize::from(stem[switch] != NONE)
    }

    fn try_move(&mut self, cost: &mut [f64], heat: f64, rng: &mut Rng) {
        let net = self.net;
        let switch = rng.below(net.switches);
        let from = self.owner[switch];
        if from == usize::MAX || self.parts[from].len() < 2 {
            return;
        }
        if self.stem[switch] == NONE {
            let other = self.parts[from][rng.below(self.parts[from].len())];
            self.root_at(other);
            if other == switch {
                return;
            }
        }
        let into = net.into(switch);
        let channel = into.start + rng.below(into.len()) as u32;
        let (old, parent) = (self.stem[switch], net.tail(channel));
        let to = self.owner[parent];
        if channel == old || to == usize::MAX || self.is_below(parent, switch) {
            return;
        }
        let before = cost[from] + if to == from { 0.0 } else { cost[to] };
        let branch = self.change(switch, channel, from, to);
        let after = [from, to].map(|number| self.cost(number));
        let sum = after[0] + if to == from { 0.0 } else { after[1] };
        if sum <= before || rng.unit_f64() < exp((before - sum) / heat) {
            (cost[from], cost[to]) = (after[0], after[1]);
            return;
        }
        // Back, with every switch where it was in its list.
        self.stem[switch] = old;
        if to != from {
            let kept = self.parts[to].len() - branch.len();
            self.parts[to].truncate(kept);
            branch.iter().for_each(|&switch| self.owner[switch] = from);
            self.parts[from].extend(branch);
        }
    }

    /// Moves a branch, and returns its switches if it changes its cluster.
    fn change(&mut self, switch: usize, channel: u32, from: usize, to: usize) -> Vec<usize> {
        let mut branch = Vec::new();
        if to != from {
            branch = self.parts[from].iter().copied().filter(|&other| self.is_below(other, switch)).collect();
            branch.iter().for_each(|&other| self.owner[other] = to);
            let owner = &self.owner;
            self.parts[from].retain(|&other| owner[other] == from);
            self.parts[to].extend(&branch);
            self.visits += 4 * branch.len();
        }
        self.stem[switch] = channel;
        branch
    }

    /// Whether a switch is another, or below it.
    fn is_below(&self, switch: usize, above: usize) -> bool {
        let mut at = switch;
        while at != above {
            if self.stem[at] == NONE {
                return false;
            }
            at = self.net.tail(self.stem[at]);
        }
        true
    }

    /// Roots a cluster at one of its switches.
    fn root_at(&mut self, switch: usize) {
        let (mut at, mut entering) = (switch, NONE);
        loop {
            let above = std::mem::replace(&mut self.stem[at], entering);
            if above == NONE {
                return;
            }
            entering = self.net.reverse(above);
            at = self.net.tail(above);
        }
    }

    /// A cluster rooted in its middle, without what leads to no sender.
    fn finish(&mut self, number: usize) -> Cluster {
        let net = self.net;
        let part = self.parts[number].clone();
        let all: u32 = part.iter().map(|&switch| self.senders[switch]).sum();
        self.cost(number);
        // The lowest switch with at least half of all senders at or below it.
        let middle = part.iter().copied().filter(|&switch| 2 * self.beyond[switch] >= all);
        let middle = middle.min_by_key(|&switch| (self.beyond[switch], switch)).unwrap_or(part[0]);
        self.root_at(middle);
        self.cost(number);
        let below = |switch: usize| {
            net.neighbours(switch).filter(|&(channel, head)| self.stem[head] == channel && self.beyond[head] > 0)
        };
        let found = breadth_first(net.switches, [middle], below);
        let stem = found.order.iter().map(|&switch| found.inward[switch].unwrap_or(NONE)).collect();
        let switches = found.order;
        Cluster { switches, stem }
    }
}
