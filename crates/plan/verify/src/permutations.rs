//! What path sets are worth in permutations, figure by figure, against what the plan says.
//!
//! *Ideal rates*: all pairs split over their paths so that the most loaded channel takes the least time. One pair after the other
//! moves to its cheapest path; a channel costs the more the nearer its time is to that of the most loaded channel. The channels' costs bound the least time
//! from below (linear programming duality), the loads from above. The claim has to lie between.
//!
//! *Any routing*: the claimed optimum is one that the stored lengths prove ([`crate::bound`]); a lower optimum would flatter the plan.
//!
//! *The floor*: prices of receivers, found by an auction (D. Bertsekas, 1979), bound what any permutation puts on a channel.
//! ```text
//!   price of h1: 0.25     h0 → h1 weighs 0.5 on the channel, h2 → h1 0.25: no permutation puts more than 0.25 + 0.25 there
//! ```

use std::{collections::BTreeMap, fmt::Display};

use fabric::{ChannelId, FindingKind, HostId, PathSummary, PermutationProof, TrafficMatrix, permutation_rate};

use crate::{
    bound::{self, TOLERANCE},
    findings::Findings,
    path_sets::SeenPaths,
    state::FabricState,
};

/// How far a claim may be outside of what the judge's own bounds leave open.
const CLAIM_TOLERANCE: f64 = 0.01;
/// How much more a channel at the peak costs than one without load, as a power of e, stage by stage.
const SHARPNESS: [f64; 4] = [30.0, 90.0, 270.0, 810.0];
/// Most rounds of a stage, and what distance between the bounds is near enough.
const ROUNDS: usize = 60;
const NEAR: f64 = 1.005;
/// By what part of the heaviest pair a bid raises a price.
const BID: f64 = 1e-3;

/// Judges the figures of path sets, which every pair's frames were seen to have.
pub(crate) fn judge(state: &FabricState<'_>, seen: &SeenPaths<'_>, findings: &mut Findings) {
    let Some(said) = &state.plan.summary.paths else {
        findings.fatal(FindingKind::SummaryMismatch, || {
            ("paths_max".to_owned(), "the plan has path sets, and its summary says nothing of them".to_owned())
        });
        return;
    };
    let topology = state.topology;
    let permutations = fabric::permutations(topology);
    let PermutationProof { lengths, worst, worst_lengths } = &seen.sets.proof;
    let channels = topology.channel_count();
    let misshapen = lengths.len() != permutations.len()
        || lengths.iter().chain([worst_lengths]).any(|lengths| lengths.len() != channels)
        || !is_permutation(worst, topology.hosts().len());
    if misshapen {
        findings.fatal(FindingKind::BadBound, || {
            ("permutations".to_owned(), "the proof is of other permutations or channels".to_owned())
        });
        return;
    }
    let any = |receiver: &[HostId], lengths: &[u32]| {
        let matrix = fabric::permutation_demand(topology, receiver).ok()?;
        Some(share(bound::proven_for(state, &matrix, lengths)))
    };
    let (mut mean, mut bounds, mut shares) = (Interval::default(), 0.0, Interval::default());
    for (receiver, lengths) in permutations.iter().zip(lengths) {
        let (Ok(matrix), Some(any)) = (fabric::permutation_demand(topology, receiver), any(receiver, lengths)) else {
            return;
        };
        let [low, high] = ideal(state, seen, &matrix).map(share);
        // The longest time is the lowest share.
        mean.add(high, low);
        shares.add((high / any).min(1.0), (low / any).min(1.0));
        bounds += any;
    }
    let count = permutations.len().max(1) as f64;
    let pairs = topology.host_ids().flat_map(|source| topology.host_ids().map(move |to| (source, to)));
    let paths_max = pairs.map(|(source, to)| seen.of(state, source, to).count()).max().unwrap_or(0).max(1);
    let floor = floor(state, seen);
    let worst_bound = any(worst, worst_lengths).unwrap_or(1.0);
    let PathSummary { permutation_mean, permutation_mean_bound, permutation_share_mean, .. } = said;
    let PathSummary { permutation_worst, permutation_worst_bound, permutation_share_worst, .. } = said;
    let mut report = |figure: &str, said: &dyn Display, seen: String| {
        findings.fatal(FindingKind::SummaryMismatch, || {
            (figure.to_owned(), format!("the plan says {said}, but it is {seen}"))
        });
    };
    if said.paths_max != paths_max {
        report("paths_max", &said.paths_max, paths_max.to_string());
    }
    let mut between = |figure: &str, said: f64, found: Interval| {
        if !found.admits(said) {
            report(figure, &said, format!("between {:.4} and {:.4}", found.low, found.high));
        }
    };
    between("permutation_mean", *permutation_mean, mean.over(count));
    between("permutation_mean_bound", *permutation_mean_bound, Interval::at(bounds / count));
    between("permutation_share_mean", *permutation_share_mean, shares.over(count));
    between("permutation_worst", *permutation_worst, floor);
    between("permutation_worst_bound", *permutation_worst_bound, Interval::at(worst_bound));
    let of_worst = Interval { low: (floor.low / worst_bound).min(1.0), high: (floor.high / worst_bound).min(1.0) };
    between("permutation_share_worst", *permutation_share_worst, of_worst);
}

/// Where a figure lies.
#[derive(Clone, Copy, Default)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    fn at(value: f64) -> Self {
        Self { low: value * (1.0 - TOLERANCE), high: value * (1.0 + TOLERANCE) }
    }

    fn add(&mut self, low: f64, high: f64) {
        self.low += low;
        self.high += high;
    }

    fn over(self, count: f64) -> Self {
        Self { low: self.low / count, high: self.high / count }
    }

    fn admits(self, said: f64) -> bool {
        said >= self.low * (1.0 - CLAIM_TOLERANCE) && said <= self.high * (1.0 + CLAIM_TOLERANCE)
    }
}

/// The share of its demand that every pair gets where the most loaded channel would take this long for all.
fn share(time: f64) -> f64 {
    if time <= 1.0 { 1.0 } else { 1.0 / time }
}

fn is_permutation(receiver: &[HostId], hosts: usize) -> bool {
    let mut seen = vec![false; hosts];
    receiver.len() == hosts
        && receiver.iter().all(|to| to.index() < hosts && !std::mem::replace(&mut seen[to.index()], true))
}

/// The least time of the most loaded channel for a permutation, from below and from above.
fn ideal(state: &FabricState<'_>, seen: &SeenPaths<'_>, matrix: &TrafficMatrix) -> [f64; 2] {
    let topology = state.topology;
    let mut pairs: Vec<Split<'_>> = (matrix.demands())
        .map(|demand| Split::even(demand.amount, seen.of(state, demand.source, demand.destination)))
        .filter(|split| !split.paths.is_empty())
        .collect();
    let slowness: Vec<f64> = topology.channel_ids().map(|channel| topology.slowness(channel)).collect();
    let mut costs = ChannelCosts { slowness, load: Vec::new(), sharpness: SHARPNESS[0], peak: 1.0 };
    costs.count(&pairs);
    let (mut low, mut high) = (0.0_f64, costs.time_max());
    for sharpness in SHARPNESS {
        costs.sharpness = sharpness;
        for _ in 0..ROUNDS {
            if high <= low * NEAR || high <= 1.0 {
                return [low, high];
            }
            costs.peak = high;
            pairs.iter_mut().for_each(|pair| costs.move_to_cheapest(pair));
            costs.count(&pairs);
            high = high.min(costs.time_max());
            let room: f64 = (0..costs.load.len()).map(|channel| costs.cost_of(channel) / costs.slowness[channel]).sum();
            let covered: f64 = pairs.iter().map(|pair| pair.amount * costs.cheapest(pair).1).sum();
            low = low.max(covered / room);
        }
    }
    [low, high]
}

/// What a pair sends, and how it splits over its paths.
struct Split<'p> {
    amount: f64,
    paths: Vec<&'p [ChannelId]>,
    /// `flow[path]`.
    flow: Vec<f64>,
}

impl<'p> Split<'p> {
    fn even(amount: f64, paths: impl Iterator<Item = &'p [ChannelId]>) -> Self {
        let paths: Vec<_> = paths.collect();
        Self { amount, flow: vec![amount / paths.len().max(1) as f64; paths.len()], paths }
    }
}

/// Loads of channels, each of which costs the more the nearer it is to the peak: e^(sharpness · (time / peak − 1)).
struct ChannelCosts {
    slowness: Vec<f64>,
    load: Vec<f64>,
    sharpness: f64,
    peak: f64,
}

impl ChannelCosts {
    fn count(&mut self, pairs: &[Split<'_>]) {
        self.load = vec![0.0; self.slowness.len()];
        for pair in pairs {
            for (path, flow) in pair.paths.iter().zip(&pair.flow) {
                path.iter().for_each(|channel| self.load[channel.index()] += flow);
            }
        }
    }

    fn time_max(&self) -> f64 {
        self.load.iter().zip(&self.slowness).map(|(load, slow)| load * slow).fold(0.0, f64::max)
    }

    fn cost_of(&self, channel: usize) -> f64 {
        let slow = self.slowness[channel];
        slow * (self.sharpness * (self.load[channel] * slow / self.peak - 1.0)).exp()
    }

    fn cost(&self, path: &[ChannelId]) -> f64 {
        path.iter().map(|channel| self.cost_of(channel.index())).sum()
    }

    /// The path of a pair that costs least, and what it costs.
    fn cheapest(&self, pair: &Split<'_>) -> (usize, f64) {
        let costs = pair.paths.iter().map(|path| self.cost(path)).enumerate();
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("a pair has paths")
    }

    /// Moves what a pair has on each other path to its cheapest one, as long as that stays cheaper.
    fn move_to_cheapest(&mut self, pair: &mut Split<'_>) {
        let (to, _) = self.cheapest(pair);
        for from in (0..pair.paths.len()).filter(|from| *from != to) {
            let excess = self.cost(pair.paths[from]) - self.cost(pair.paths[to]);
            if pair.flow[from] == 0.0 || excess <= 0.0 {
                continue;
            }
            let [long, short] = [pair.paths[from], pair.paths[to]];
            let apart = long.iter().filter(|channel| !short.contains(channel));
            let apart = apart.chain(short.iter().filter(|channel| !long.contains(channel)));
            let slope: f64 = apart.map(|channel| self.cost_of(channel.index()) * self.slowness[channel.index()]).sum();
            let step = (excess * self.peak / (slope * self.sharpness)).min(pair.flow[from]);
            pair.flow[from] -= step;
            pair.flow[to] += step;
            long.iter().for_each(|channel| self.load[channel.index()] -= step);
            short.iter().for_each(|channel| self.load[channel.index()] += step);
        }
    }
}

/// The share that every pair gets in every permutation if each splits evenly over its paths.
fn floor(state: &FabricState<'_>, seen: &SeenPaths<'_>) -> Interval {
    let topology = state.topology;
    let mut weights: Vec<BTreeMap<(usize, usize), f64>> = vec![BTreeMap::new(); topology.channel_count()];
    for source in topology.host_ids() {
        for to in topology.host_ids() {
            let count = seen.of(state, source, to).count();
            let amount = permutation_rate(topology, source, to) / count.max(1) as f64;
            if amount == 0.0 {
                continue;
            }
            for channel in seen.of(state, source, to).flatten() {
                *weights[channel.index()].entry((source.index(), to.index())).or_default() += amount;
            }
        }
    }
    let (mut least, mut most) = (0.0_f64, 0.0_f64);
    for (channel, weights) in topology.channel_ids().zip(weights) {
        let [low, high] = auction(&weights).map(|weight| weight * topology.slowness(channel));
        least = least.max(low);
        most = most.max(high);
    }
    Interval { low: share(most), high: share(least) }
}

/// The weight of the heaviest matching of senders and receivers, from below and from above.
fn auction(weights: &BTreeMap<(usize, usize), f64>) -> [f64; 2] {
    let mut rows: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    weights.iter().for_each(|((from, to), weight)| rows.entry(*from).or_default().push((*to, *weight)));
    let heaviest = weights.values().copied().fold(0.0, f64::max);
    let mut price: BTreeMap<usize, f64> = BTreeMap::new();
    let mut holder: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    let mut bidding: Vec<usize> = rows.keys().copied().collect();
    while let Some(bidder) = bidding.pop() {
        let profit = |entry: &(usize, f64)| entry.1 - price.get(&entry.0).copied().unwrap_or(0.0);
        let row = &rows[&bidder];
        let Some(best) = row.iter().max_by(|a, b| profit(a).total_cmp(&profit(b))) else { continue };
        let gain = profit(best);
        if gain <= 0.0 {
            continue;
        }
        let others = row.iter().filter(|entry| entry.0 != best.0).map(profit);
        let next = others.fold(0.0, f64::max);
        *price.entry(best.0).or_default() += gain - next + heaviest * BID;
        if let Some((outbid, _)) = holder.insert(best.0, (bidder, best.1)) {
            bidding.push(outbid);
        }
    }
    let low = holder.values().map(|(_, weight)| weight).sum();
    let profit_of = |row: &Vec<(usize, f64)>| {
        row.iter().map(|(to, weight)| weight - price.get(to).copied().unwrap_or(0.0)).fold(0.0, f64::max)
    };
    [low, price.values().sum::<f64>() + rows.values().map(profit_of).sum::<f64>()]
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;

    fn brute(rows: &[Vec<f64>], taken: &mut [bool]) -> f64 {
        let Some((row, rest)) = rows.split_first() else { return 0.0 };
        let mut best = brute(rest, taken);
        for (to, weight) in row.iter().enumerate() {
            if !taken[to] {
                taken[to] = true;
                best = best.max(weight + brute(rest, taken));
                taken[to] = false;
            }
        }
        best
    }

    #[test]
    fn the_heaviest_matching_lies_between_the_auctions_bounds() {
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let (senders, receivers) = (1 + rng.below(5), 1 + rng.below(5));
            let rows: Vec<Vec<f64>> =
                (0..senders).map(|_| (0..receivers).map(|_| rng.below(9) as f64).collect()).collect();
            let entries = rows.iter().enumerate().flat_map(|(from, row)| {
                row.iter()
                    .enumerate()
                    .filter(|(_, weight)| **weight > 0.0)
                    .map(move |(to, weight)| ((from, to), *weight))
            });
            let [low, high] = auction(&entries.collect());
            let best = brute(&rows, &mut vec![false; receivers]);
            assert!(low <= best + 1e-9 && best <= high + 1e-9, "seed {seed}: {low} {best} {high}");
            assert!(high - low <= 9.0 * BID * senders as f64 + 1e-9, "seed {seed}: {low} {high}");
        }
    }
}
