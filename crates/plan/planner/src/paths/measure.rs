//! What path sets are worth in permutations, beside what any routing could be.
//!
//! *With ideal rates* every pair splits over its paths as suits the permutation of the moment, and all get the same share:
//! maximum concurrent flow on given paths (`bound::split`). *Any routing* has no given paths; lengths of channels bound it
//! (`bound::bound`).
//!
//! *The floor* holds for every permutation: if each pair splits evenly, what a permutation puts on a channel is a sum over
//! its pairs, and the most that any puts there is a heaviest matching of senders and receivers (B. Towles and W. Dally,
//! "Worst-case traffic for oblivious routing functions", SPAA 2002). Ideal rates do no worse. *No routing guarantees more*
//! than it reaches in one permutation: one whose pairs are far apart in the lengths that bound others.

use fabric::{
    Bound, HostId, PathSummary, PermutationProof, Plan, Topology, Traffic, TrafficMatrix, permutation_demand,
    permutation_rate, permutations,
};

use crate::{PlanError, bound, demand::Demand, threads::with_each};

use super::{
    choose::ChosenPaths,
    matching::{Matching, heaviest},
};

/// A bound of a permutation within this factor of the best is near enough: shares are said to three digits.
const ENOUGH: f64 = 1.002;
/// How often a bad permutation is sought anew by the lengths that bound the last one.
const WORST_ROUNDS: usize = 4;

/// What no routing exceeds, which is the same for all plans of a topology: found when it is first asked for.
#[derive(Default)]
pub(super) struct RoutingBounds {
    by_permutation: Vec<Option<RoutingBound>>,
    worst: Option<Worst>,
}

/// Figures and their proof.
pub(super) struct Measured {
    pub(super) summary: PathSummary,
    pub(super) proof: PermutationProof,
}

impl Measured {
    /// Whether paths carry about as much of permutations as others do, on the mean and of the worst one, or more.
    pub(super) fn carries_as_much_as(&self, other: &Self) -> bool {
        let (own, other) = (&self.summary, &other.summary);
        own.permutation_mean * ENOUGH >= other.permutation_mean
            && own.permutation_worst * ENOUGH >= other.permutation_worst
    }
}

/// Whether paths may carry about as much of permutations on the mean as measured ones do, by what they carry of the first: quick to say
/// of those that do not.
///
/// # Errors
/// [`PlanError::TooManyPairs`] if a matrix of so many hosts cannot be.
pub(super) fn may_carry_as_much(
    topology: &Topology,
    chosen: &ChosenPaths,
    measured: &Measured,
    any: &RoutingBounds,
) -> Result<bool, PlanError> {
    let permutations = permutations(topology);
    let Some(first) = permutations.first() else { return Ok(true) };
    let first = permutation_demand(topology, first).map_err(|error| PlanError::TooManyPairs(error.to_string()))?;
    let of_others = any.by_permutation.iter().skip(1).map(|any| any.as_ref().map_or(1.0, |any| any.share));
    let most = (ideal_share(topology, chosen, &first) + of_others.sum::<f64>()) / permutations.len() as f64;
    Ok(most * ENOUGH >= measured.summary.permutation_mean)
}

/// Measures path sets. Cost: that of a bound for each permutation that some pairs cannot have their whole rate in, and of a
/// matching for each channel.
///
/// # Errors
/// [`PlanError::TooManyPairs`] if a matrix of so many hosts cannot be.
pub(super) fn measure(
    topology: &Topology,
    plan: &Plan,
    chosen: &ChosenPaths,
    any: &mut RoutingBounds,
    threads: usize,
) -> Result<Measured, PlanError> {
    let too_many = |error: fabric::TrafficError| PlanError::TooManyPairs(error.to_string());
    let matrices: Vec<TrafficMatrix> = (permutations(topology).iter())
        .map(|receiver| permutation_demand(topology, receiver).map_err(too_many))
        .collect::<Result<_, _>>()?;
    any.by_permutation.resize(matrices.len(), None);
    let mut parts: Vec<(&TrafficMatrix, f64, &mut Option<RoutingBound>)> =
        matrices.iter().zip(&mut any.by_permutation).map(|(matrix, any)| (matrix, 1.0, any)).collect();
    with_each(threads, &mut parts, |(matrix, share, any)| {
        *share = ideal_share(topology, chosen, matrix);
        // Nobody gets more than the whole.
        if *share < 1.0 {
            any.get_or_insert_with(|| RoutingBound::of(topology, matrix));
        }
    });
    let whole = RoutingBound { share: 1.0, lengths: vec![0; topology.channel_count()] };
    let parts: Vec<(f64, RoutingBound)> = (parts.into_iter())
        .map(|(_, share, any)| (share, any.clone().filter(|_| share < 1.0).unwrap_or_else(|| whole.clone())))
        .collect();
    let mean = |of: &dyn Fn(&(f64, RoutingBound)) -> f64| parts.iter().map(of).sum::<f64>() / parts.len().max(1) as f64;
    let floor = even_floor(topology, chosen);
    let worst = match &any.worst {
        Some(worst) => worst.clone(),
        None => any.worst.insert(worst(topology, &plan.bound.lengths).map_err(too_many)?).clone(),
    };
    let pairs = topology.host_ids().flat_map(|from| topology.host_ids().map(move |to| (from, to)));
    let summary = PathSummary {
        paths_max: pairs.map(|(from, to)| chosen.of(from, to).len()).max().unwrap_or(0).max(1),
        permutation_mean: mean(&|part| part.0),
        permutation_mean_bound: mean(&|part| part.1.share),
        permutation_share_mean: mean(&|part| (part.0 / part.1.share).min(1.0)),
        permutation_worst: floor,
        permutation_worst_bound: worst.any.share,
        permutation_share_worst: (floor / worst.any.share).min(1.0),
    };
    let lengths = parts.into_iter().map(|(_, any)| any.lengths).collect();
    let proof = PermutationProof { lengths, worst: worst.receiver, worst_lengths: worst.any.lengths };
    Ok(Measured { summary, proof })
}

/// What no routing exceeds in some traffic, and the lengths that prove it.
#[derive(Clone)]
struct RoutingBound {
    share: f64,
    lengths: Vec<u32>,
}

impl RoutingBound {
    fn of(topology: &Topology, matrix: &TrafficMatrix) -> Self {
        let demand = Demand::new(topology, &Traffic::Matrix(matrix.clone()));
        let Bound { lengths } = bound::bound_within(topology, &demand, ENOUGH, 1).certificate;
        // A pair that takes many paths is not bound by what one carries.
        let time = bound::proven(topology, &demand, &lengths);
        Self { share: share(time), lengths }
    }
}

/// The share of its demand that every pair gets where the most loaded channel would take this long for all.
fn share(time: f64) -> f64 {
    if time <= 1.0 { 1.0 } else { 1.0 / time }
}

/// The share of a permutation with ideal rates.
fn ideal_share(topology: &Topology, chosen: &ChosenPaths, matrix: &TrafficMatrix) -> f64 {
    let demands = matrix.demands().filter_map(|demand| {
        let paths: Vec<Vec<u32>> = (chosen.of(demand.source, demand.destination))
            .map(|tree| chosen.path(topology, demand.source, demand.destination, tree).to_vec())
            .collect();
        (!paths.is_empty()).then_some((demand.amount, paths))
    });
    share(bound::split(topology, demands.collect()))
}

/// The share that every pair gets in every permutation if each splits evenly over its paths.
fn even_floor(topology: &Topology, chosen: &ChosenPaths) -> f64 {
    let hosts = topology.hosts().len();
    let mut weights: Vec<Vec<(HostId, HostId, f64)>> = vec![Vec::new(); topology.channel_count()];
    for source in topology.host_ids() {
        for destination in topology.host_ids() {
            let paths = chosen.of(source, destination);
            let amount = permutation_rate(topology, source, destination) / paths.len().max(1) as f64;
            for tree in paths.filter(|_| amount > 0.0) {
                for &channel in chosen.path(topology, source, destination, tree) {
                    match weights[channel as usize].last_mut() {
                        Some(last) if (last.0, last.1) == (source, destination) => last.2 += amount,
                        _ => weights[channel as usize].push((source, destination, amount)),
                    }
                }
            }
        }
    }
    let times = topology.channel_ids().zip(weights).map(|(channel, weights)| {
        let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new(); hosts];
        weights.into_iter().for_each(|(source, to, amount)| rows[source.index()].push((to.index(), amount)));
        heaviest(&rows, hosts).weight * topology.slowness(channel)
    });
    share(times.fold(0.0, f64::max))
}

/// A permutation of which no routing carries much.
#[derive(Clone)]
struct Worst {
    receiver: Vec<HostId>,
    any: RoutingBound,
}

/// The worst permutation that is found: the one whose pairs are farthest apart in equal lengths or in those that bound
/// all-to-all, and then in those that bound it.
fn worst(topology: &Topology, known: &[u32]) -> Result<Worst, fabric::TrafficError> {
    let even: Vec<u32> = vec![1; topology.channel_count()];
    let farthest = |lengths: &[u32]| {
        let (receiver, covered) = farthest(topology, lengths);
        let room: f64 = (topology.channel_ids().zip(lengths))
            .map(|(channel, length)| f64::from(*length) / topology.slowness(channel))
            .sum();
        let time = if room > 0.0 { covered / room } else { 0.0 };
        Worst { receiver, any: RoutingBound { share: share(time), lengths: lengths.to_vec() } }
    };
    let mut best = farthest(&even);
    if known.len() == even.len() {
        let found = farthest(known);
        if found.any.share < best.any.share {
            best = found;
        }
    }
    for _ in 0..WORST_ROUNDS {
        let any = RoutingBound::of(topology, &permutation_demand(topology, &best.receiver)?);
        let tighter = Worst { receiver: best.receiver.clone(), any };
        let next = farthest(&tighter.any.lengths);
        let before = best.any.share;
        best = [tighter, next, best].into_iter().min_by(|a, b| a.any.share.total_cmp(&b.any.share)).expect("of three");
        if best.any.share >= before * (1.0 - 1e-6) {
            break;
        }
    }
    Ok(best)
}

/// The permutation with the most demand times distance, and how much that is.
fn farthest(topology: &Topology, lengths: &[u32]) -> (Vec<HostId>, f64) {
    let hosts = topology.hosts().len();
    let distance = bound::distances(topology, lengths);
    let weights: Vec<Vec<(usize, f64)>> = (topology.host_ids())
        .map(|source| {
            let from = topology.switch_of(source).index();
            let weight =
                |to: HostId| distance[from][topology.switch_of(to).index()] * permutation_rate(topology, source, to);
            topology.host_ids().map(|to| (to.index(), weight(to))).filter(|entry| entry.1 > 0.0).collect()
        })
        .collect();
    let Matching { weight, receiver } = heaviest(&weights, hosts);
    // Who is left over sends to whom nobody sends.
    let mut is_taken = vec![false; hosts];
    receiver.iter().flatten().for_each(|to| is_taken[*to] = true);
    let mut free = (0..hosts).filter(|to| !is_taken[*to]);
    let mut other = || free.next().expect("as many receivers are left as senders");
    let receiver = receiver.into_iter().map(|to| HostId::new(to.unwrap_or_else(&mut other))).collect();
    (receiver, weight)
}
