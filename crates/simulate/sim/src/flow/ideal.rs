//! Max-min fair rates of pairs that split over several paths, as ideal hosts would: no pair's rate can rise without lowering that of a
//! pair that has as much or less.
//!
//! All rates rise together until some pairs cannot have more, however all split; those stop, and the others rise on. How far
//! they get is a linear program ([`super::levels`]), in which those that have stopped keep their rates and may still be
//! split otherwise.
//!
//! ```text
//!   a ═╦═ c1 ═══      a splits over c1 and c2, b has c1 alone, d c2 alone, and all three get 2/3 of a channel;
//!   b ═╝    ╔═ c2 ═   with one path, over c1, a and b would get 1/2 and d the whole of c2
//!   a ══════╬
//!   d ══════╝
//! ```
//! When a transfer ends, pairs that stopped before it keep their rates: it was one among those that still rose, so they had
//! what they had with it as well as they have it without. Rates are within [`TOLERANCE`] of the best.
//! Cost: a program for each rate that some pairs have; it is for hundreds of pairs with many paths, or thousands with few.
//!
//! Source: Bertsekas and Gallager, "Data Networks", 6.5, for paths that are given; D. Nace and M. Pióro, "Max-min fairness and its
//! applications to routing and load-balancing in communication networks", IEEE Communications Surveys 10(4), 2008, for several.

use std::collections::BTreeMap;

use super::{
    Progress, Shared,
    levels::{Level, Pair, solve},
};

/// By what part of its rate a pair may have less or more than its max-min fair rate.
pub const TOLERANCE: f64 = 0.01;
/// A pair that has no more than this above the others, where they stop, stops with them.
const TOGETHER: f64 = 0.2 * TOLERANCE;
/// By what part of its rate a pair that has stopped may miss it while others rise: programs with no room at all converge badly, and
/// the next of these is tried where one does.
const GIVES: [f64; 3] = [0.05 * TOLERANCE, 0.2 * TOLERANCE, TOLERANCE];

/// The resources of each of a transfer's paths.
pub(super) type Paths = Vec<Vec<u32>>;

/// Rates, and how each is split.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// `rate[transfer]`, in bits a second.
    pub(super) rate: Vec<f64>,
    /// `flow[transfer][path]`; their sum is the rate.
    pub(super) flow: Vec<Vec<f64>>,
}

/// Shares all capacity max-min fairly among the transfers that are not held; those keep the rates that `held` says, which must
/// be possible. None if `go_on` returns false.
pub(super) fn share(
    capacity: &[f64],
    transfers: &[&Paths],
    held: &[Option<f64>],
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Rates> {
    let unit = capacity.iter().copied().fold(0.0, f64::max);
    let most: Vec<f64> = transfers.iter().map(|paths| narrowest(capacity, paths) / unit).collect();
    let mut stopped: Vec<Option<f64>> = held.iter().map(|rate| rate.map(|rate| rate / unit)).collect();
    let mut flow: Vec<Vec<f64>> = transfers.iter().map(|paths| vec![0.0; paths.len()]).collect();
    while stopped.iter().any(Option::is_none) {
        if !go_on() {
            return None;
        }
        let mut level = next_level(capacity, unit, transfers, &most, &stopped, GIVES[0]);
        for give in &GIVES[1..] {
            // The last attempt is taken as it is: its rates fit, and may be below the optimum.
            if level.is_solved() {
                break;
            }
            level = next_level(capacity, unit, transfers, &most, &stopped, *give);
        }
        let rate = |pair: usize| level.flow[pair].iter().sum::<f64>();
        let rising = (0..transfers.len()).filter(|pair| stopped[*pair].is_none());
        // At least the pair with the highest price cannot rise, whatever rounding does.
        let dearest = rising.clone().max_by(|a, b| level.price[*a].total_cmp(&level.price[*b]));
        // Of what a pair has above the others and its price one is 0 at the best solution, and nearly so here.
        let stops = |pair: &usize| {
            let above = rate(*pair) / level.t - 1.0;
            Some(*pair) == dearest || above <= TOGETHER.min(level.price[*pair])
        };
        let now: Vec<usize> = rising.filter(stops).collect();
        now.into_iter().for_each(|pair| stopped[pair] = Some(level.t));
        flow = level.flow;
    }
    let mut rates = Rates { rate: stopped.into_iter().flatten().map(|rate| rate * unit).collect(), flow };
    rates.fit(capacity, transfers);
    Some(rates)
}

/// The most that a transfer can have by itself as far as resources of all its paths say.
fn narrowest(capacity: &[f64], paths: &Paths) -> f64 {
    let of_all = |resource: &&u32| paths.iter().all(|path| path.contains(resource));
    let narrow =
        |path: &Vec<u32>| path.iter().map(|resource| capacity[*resource as usize]).fold(f64::INFINITY, f64::min);
    let together: f64 = paths.iter().map(narrow).sum();
    let common = paths.first().into_iter().flatten().filter(of_all).map(|resource| capacity[*resource as usize]);
    common.fold(together, f64::min)
}

/// The program of the transfers that still rise, over the resources that can be full.
fn next_level(
    capacity: &[f64],
    unit: f64,
    transfers: &[&Paths],
    most: &[f64],
    stopped: &[Option<f64>],
    give: f64,
) -> Level {
    let mut wanted = vec![0.0; capacity.len()];
    for (pair, paths) in transfers.iter().enumerate() {
        let mut crossed: Vec<u32> = paths.iter().flatten().copied().collect();
        crossed.sort_unstable();
        crossed.dedup();
        crossed.iter().for_each(|resource| wanted[*resource as usize] += stopped[pair].unwrap_or(most[pair]));
    }
    let (mut row, mut room) = (vec![u32::MAX; capacity.len()], Vec::new());
    for (resource, wanted) in wanted.iter().enumerate() {
        if *wanted > capacity[resource] / unit * (1.0 + 1e-12) {
            row[resource] = room.len() as u32;
            room.push(capacity[resource] / unit);
        }
    }
    let pairs = transfers.iter().enumerate().map(|(pair, paths)| Pair {
        paths: paths
            .iter()
            .map(|path| path.iter().map(|resource| row[*resource as usize]).filter(|row| *row != u32::MAX).collect())
            .collect(),
        least: stopped[pair].map(|rate| rate * (1.0 - give)),
        most: stopped[pair].unwrap_or(most[pair]),
    });
    solve(&pairs.collect::<Vec<Pair>>(), &room)
}

impl Rates {
    /// Makes splits add up to rates, and all of it fit: what programs leave undecided is far below [`TOLERANCE`].
    fn fit(&mut self, capacity: &[f64], transfers: &[&Paths]) {
        for (flow, rate) in self.flow.iter_mut().zip(&self.rate) {
            let sum: f64 = flow.iter().sum();
            flow.iter_mut().for_each(|flow| *flow *= rate / sum);
        }
        let mut used = vec![0.0; capacity.len()];
        for (paths, flow) in transfers.iter().zip(&self.flow) {
            for (path, flow) in paths.iter().zip(flow) {
                path.iter().for_each(|resource| used[*resource as usize] += flow);
            }
        }
        let over = used.iter().zip(capacity).map(|(used, capacity)| used / capacity).fold(1.0, f64::max);
        self.rate.iter_mut().chain(self.flow.iter_mut().flatten()).for_each(|rate| *rate /= over);
    }
}

/// Runs transfers of `bits[transfer]` bits to their ends; none if `go_on` returns false.
pub(super) fn run(
    capacity: &[f64],
    transfers: &[Paths],
    bits: &[f64],
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Option<Shared> {
    let mut outcome =
        Shared { seconds: vec![0.0; bits.len()], carried: vec![0.0; capacity.len()], ..Shared::default() };
    // By number, ascending: bits that are left, and how they travel.
    let mut open: BTreeMap<usize, (f64, f64, Vec<f64>)> = BTreeMap::new();
    let (mut now, mut held): (f64, Vec<Option<f64>>) = (0.0, vec![None; bits.len()]);
    open.extend(bits.iter().enumerate().map(|(transfer, bits)| (transfer, (*bits, 0.0, Vec::new()))));
    while !open.is_empty() {
        if held.iter().any(Option::is_none) {
            let paths: Vec<&Paths> = open.keys().map(|transfer| &transfers[*transfer]).collect();
            let ended = bits.len() - open.len();
            let rates = share(capacity, &paths, &held, &mut || go_on(Progress { ended, seconds: now }))?;
            outcome.solutions += 1;
            if outcome.solutions == 1 {
                outcome.first_bps.clone_from(&rates.rate);
            }
            for (state, (rate, flow)) in open.values_mut().zip(rates.rate.into_iter().zip(rates.flow)) {
                (state.1, state.2) = (rate, flow);
            }
        }
        let span = open.values().map(|(rest, rate, _)| rest / rate).fold(f64::INFINITY, f64::min);
        now += span;
        let mut least_ended = f64::INFINITY;
        open.retain(|transfer, (rest, rate, flow)| {
            for (path, flow) in transfers[*transfer].iter().zip(flow) {
                path.iter().for_each(|resource| outcome.carried[*resource as usize] += *flow * span);
            }
            *rest -= *rate * span;
            let is_over = *rest <= *rate * now * 1e-9;
            if is_over {
                outcome.seconds[*transfer] = now;
                least_ended = least_ended.min(*rate);
            }
            !is_over
        });
        held = open.values().map(|(_, rate, _)| (*rate < least_ended * (1.0 - 1e-9)).then_some(*rate)).collect();
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    fn shared(capacity: &[f64], transfers: &[Paths]) -> Rates {
        let all: Vec<&Paths> = transfers.iter().collect();
        share(capacity, &all, &vec![None; all.len()], &mut || true).expect("nobody stops it")
    }

    fn assert_rates(capacity: &[f64], transfers: &[Paths], expected: &[f64]) {
        let rates = shared(capacity, transfers);
        for (rate, expected) in rates.rate.iter().zip(expected) {
            assert!((rate / expected - 1.0).abs() < TOLERANCE, "{:?} instead of {expected}", rates.rate);
        }
    }

    #[test]
    fn rates_are_those_that_one_finds_by_hand() {
        // The drawing.
        assert_rates(&[1.0, 1.0], &[vec![vec![0], vec![1]], vec![vec![0]], vec![vec![1]]], &[2.0 / 3.0; 3]);
        // Three pairs over two disjoint paths each, in units that are no ones.
        let pair = || vec![vec![0], vec![1]];
        assert_rates(&[2e9, 1e9], &[pair(), pair(), pair()], &[1e9; 3]);
        // Two on a slow channel leave the third, which goes round them, what is left elsewhere: 0.2, 0.2 and 1.
        let transfers = [vec![vec![0]], vec![vec![0]], vec![vec![0], vec![1]]];
        assert_rates(&[0.4, 1.0], &transfers, &[0.2, 0.2, 1.0]);
        // A cable of its own bounds a pair whatever its paths could carry.
        assert_rates(&[1.0, 1.0, 0.5], &[vec![vec![2, 0], vec![2, 1]], vec![vec![0], vec![1]]], &[0.5, 1.5]);
        // One path each: progressive filling.
        assert_rates(
            &[1.0, 1.0],
            &[vec![vec![0]], vec![vec![0, 1]], vec![vec![1]], vec![vec![1]]],
            &[2.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0],
        );
    }

    fn random_transfers(rng: &mut Rng) -> (Vec<f64>, Vec<Paths>) {
        let resources = 2 + rng.below(7);
        let capacity: Vec<f64> = (0..resources).map(|_| 1.0 + rng.below(9) as f64).collect();
        let path = |rng: &mut Rng| {
            let mut path: Vec<u32> = (0..1 + rng.below(3)).map(|_| rng.below(resources) as u32).collect();
            path.sort_unstable();
            path.dedup();
            path
        };
        let transfers = (0..1 + rng.below(9)).map(|_| {
            let mut paths: Paths = (0..1 + rng.below(3)).map(|_| path(rng)).collect();
            paths.sort_unstable();
            paths.dedup();
            paths
        });
        let transfers = transfers.collect();
        (capacity, transfers)
    }

    /// Rates fit the capacities, and none can rise without lowering one that is no higher: checked by the simplex method.
    #[test]
    fn nobody_can_have_more_without_taking_from_those_that_have_no_more() {
        for seed in 0..2000 {
            let (capacity, transfers) = random_transfers(&mut Rng::new(seed));
            let rates = shared(&capacity, &transfers);
            let mut used = vec![0.0; capacity.len()];
            for (pair, paths) in transfers.iter().enumerate() {
                let sum: f64 = rates.flow[pair].iter().sum();
                assert!((sum / rates.rate[pair] - 1.0).abs() < 1e-9, "seed {seed}: {rates:?}");
                assert!(rates.flow[pair].iter().all(|flow| *flow >= 0.0), "seed {seed}: {rates:?}");
                for (path, flow) in paths.iter().zip(&rates.flow[pair]) {
                    path.iter().for_each(|resource| used[*resource as usize] += flow);
                }
            }
            assert!(used.iter().zip(&capacity).all(|(used, capacity)| *used <= capacity * (1.0 + 1e-9)), "seed {seed}");
            for pair in 0..transfers.len() {
                let rate = rates.rate[pair];
                // Those with more may lose all.
                let others =
                    rates.rate.iter().map(|other| if *other <= rate * (1.0 + TOLERANCE) { *other } else { 0.0 });
                let others: Vec<f64> = others.map(|other| other * (1.0 - 1e-6)).collect();
                let most = most_of(pair, &capacity, &transfers, &others);
                assert!(most <= rate * (1.0 + 2.0 * TOLERANCE), "seed {seed}, pair {pair}: {most} is more than {rate}");
            }
        }
    }

    /// The most that a pair can have if the others have so much: the simplex method on the whole tableau, with Bland's rule.
    /// The starting point, with all rates zero, is made feasible by artificial variables of high cost.
    fn most_of(pair: usize, capacity: &[f64], transfers: &[Paths], others: &[f64]) -> f64 {
        let columns: Vec<(usize, &Vec<u32>)> =
            transfers.iter().enumerate().flat_map(|(pair, paths)| paths.iter().map(move |path| (pair, path))).collect();
        let (resources, pairs) = (capacity.len(), transfers.len());
        // Rows: capacities, and for each pair: Σ x + missing - surplus = what it is to have.
        let (rows, width) = (resources + pairs, columns.len() + resources + 2 * pairs);
        let mut tableau = vec![vec![0.0; width + 1]; rows];
        let mut basis = Vec::new();
        for (column, (pair, path)) in columns.iter().enumerate() {
            path.iter().for_each(|resource| tableau[*resource as usize][column] = 1.0);
            tableau[resources + pair][column] = 1.0;
        }
        for (row, capacity) in capacity.iter().enumerate() {
            tableau[row][columns.len() + row] = 1.0;
            tableau[row][width] = *capacity;
            basis.push(columns.len() + row);
        }
        let missing = |other: usize| columns.len() + resources + other;
        for other in 0..pairs {
            let row = &mut tableau[resources + other];
            row[missing(other)] = 1.0;
            row[missing(other) + pairs] = -1.0;
            row[width] = if other == pair { 0.0 } else { others[other] };
            basis.push(missing(other));
        }
        let worth = |column: usize| match column {
            path if path < columns.len() => f64::from(u8::from(columns[path].0 == pair)),
            column if (missing(0)..missing(pairs)).contains(&column) && column != missing(pair) => -1e5,
            _ => 0.0,
        };
        for round in 0.. {
            assert!(round < 2000, "the simplex method ends");
            let gain = |column: usize| {
                worth(column) - (0..rows).map(|row| worth(basis[row]) * tableau[row][column]).sum::<f64>()
            };
            let Some(enters) = (0..width).find(|column| gain(*column) > 1e-7) else { break };
            let ratio = |row: &usize| tableau[*row][width] / tableau[*row][enters];
            let leaves = (0..rows).filter(|row| tableau[*row][enters] > 1e-9);
            let leaves = leaves.min_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(basis[*a].cmp(&basis[*b])));
            let leaves = leaves.expect("capacities bound everything");
            let pivot = tableau[leaves][enters];
            tableau[leaves].iter_mut().for_each(|cell| *cell /= pivot);
            let line = tableau[leaves].clone();
            for (_, row) in tableau.iter_mut().enumerate().filter(|(row, _)| *row != leaves) {
                let factor = row[enters];
                row.iter_mut().zip(&line).for_each(|(cell, other)| *cell -= factor * other);
            }
            basis[leaves] = enters;
        }
        let value = |row: usize| tableau[row][width];
        let missed: f64 = (0..rows).filter(|row| worth(basis[*row]) < 0.0).map(value).sum();
        assert!(missed < 1e-6, "the others have what they have: {missed}");
        (0..rows).map(|row| worth(basis[row]).max(0.0) * value(row)).sum()
    }

    /// Transfers end when their bits are through, and what resources carry is what was sent.
    #[test]
    fn transfers_end_when_their_bits_are_through() {
        // Both share the two channels until the short one is through: 1 each, then 2 for the other.
        let pair = || vec![vec![0], vec![1]];
        let outcome = run(&[1.0, 1.0], &[pair(), pair()], &[1.0, 3.0], &mut |_| true).expect("nobody stops it");
        for (end, expected) in outcome.seconds.iter().zip([1.0, 2.0]) {
            assert!((end / expected - 1.0).abs() < TOLERANCE, "{:?}", outcome.seconds);
        }
        assert_eq!(outcome.solutions, 2);
        assert!((outcome.carried.iter().sum::<f64>() - 4.0).abs() < 1e-6, "{:?}", outcome.carried);
        // The faster ends first, and the slow ones are not shared anew.
        let transfers = [vec![vec![0]], vec![vec![0]], vec![vec![1]]];
        let outcome = run(&[1.0, 1.0], &transfers, &[1.0; 3], &mut |_| true).expect("nobody stops it");
        assert_eq!(outcome.solutions, 1);
        assert!((outcome.seconds[0] / 2.0 - 1.0).abs() < TOLERANCE, "{:?}", outcome.seconds);
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let (capacity, transfers) = random_transfers(&mut rng);
            let bits: Vec<f64> = transfers.iter().map(|_| 1.0 + rng.below(20) as f64).collect();
            let outcome = run(&capacity, &transfers, &bits, &mut |_| true).expect("nobody stops it");
            let end = outcome.seconds.iter().copied().fold(0.0, f64::max);
            for (carried, capacity) in outcome.carried.iter().zip(&capacity) {
                assert!(*carried <= capacity * end * (1.0 + 1e-9), "seed {seed}");
            }
            // With one path each, what is carried is what was sent.
            let single: Vec<Paths> = transfers.iter().map(|paths| vec![paths[0].clone()]).collect();
            let outcome = run(&capacity, &single, &bits, &mut |_| true).expect("nobody stops it");
            let mut sent = vec![0.0; capacity.len()];
            for (paths, bits) in single.iter().zip(&bits) {
                paths[0].iter().for_each(|resource| sent[*resource as usize] += bits);
            }
            for (carried, sent) in outcome.carried.iter().zip(sent) {
                assert!((carried - sent).abs() <= 1e-6 * sent, "seed {seed}: {carried} is not {sent}");
            }
        }
    }
}
