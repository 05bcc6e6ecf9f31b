//! The heaviest matching of senders and receivers, each in at most one pair.
//!
//! One sender after the other joins: the cheapest chain of exchanges either ends at a receiver that is free, or sets free a sender
//! for whom it is worth least (the Hungarian method on sparse weights; H. Kuhn 1955, J. Edmonds and R. Karp 1972).
//!
//! ```text
//!   a─x 3   a─y 2   b─x 3        b joins: a goes over from x to y, b takes x: 2 + 3
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::graph::Length;

/// A matching and its weight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matching {
    pub(super) weight: f64,
    /// `receiver[sender]`.
    pub(super) receiver: Vec<Option<usize>>,
}

/// The heaviest matching where `weights[sender]` are the receivers below `receivers` with what a pair weighs, at least 0.
/// Cost: O(senders · weights · log weights).
pub(super) fn heaviest(weights: &[Vec<(usize, f64)>], receivers: usize) -> Matching {
    // No pair weighs more than its two potentials together; those that are free have none once they have joined.
    let most = |row: &Vec<(usize, f64)>| row.iter().map(|entry| entry.1).fold(0.0, f64::max);
    let mut of_sender: Vec<f64> = weights.iter().map(most).collect();
    let mut of_receiver = vec![0.0; receivers];
    let mut receiver: Vec<Option<usize>> = vec![None; weights.len()];
    let mut sender: Vec<Option<usize>> = vec![None; receivers];
    let (mut distance, mut before) = (vec![f64::INFINITY; receivers], vec![0; receivers]);
    for start in 0..weights.len() {
        let mut heap: BinaryHeap<Reverse<(Length, usize)>> = BinaryHeap::new();
        let (mut reached, mut touched) = (Vec::new(), Vec::new());
        // What the cheapest chain costs, and the sender that gives up its receiver, or the receiver that was free.
        let mut cheapest = (f64::INFINITY, End::Sender(start));
        let mut joins = Some((start, 0.0));
        loop {
            if let Some((from, cost)) = joins.take() {
                reached.push((from, cost));
                if cost + of_sender[from] < cheapest.0 {
                    cheapest = (cost + of_sender[from], End::Sender(from));
                }
                for &(to, weight) in weights[from].iter().filter(|entry| sender[entry.0] != Some(from)) {
                    let cost = cost + (of_sender[from] + of_receiver[to] - weight).max(0.0);
                    if cost < distance[to] {
                        if distance[to].is_infinite() {
                            touched.push(to);
                        }
                        (distance[to], before[to]) = (cost, from);
                        heap.push(Reverse((Length(cost), to)));
                    }
                }
            }
            let Some(Reverse((Length(cost), to))) = heap.pop() else { break };
            if cost >= cheapest.0 {
                break;
            }
            if cost > distance[to] {
                continue;
            }
            let Some(holder) = sender[to] else {
                cheapest = (cost, End::Receiver(to));
                break;
            };
            joins = Some((holder, cost));
        }
        let (cost, end) = cheapest;
        for (from, so_far) in reached {
            of_sender[from] -= (cost - so_far).max(0.0);
        }
        for &to in &touched {
            of_receiver[to] += (cost - distance[to]).max(0.0);
        }
        // Back along the chain: each receiver goes to the sender before it.
        let mut free = match end {
            End::Receiver(to) => Some(to),
            End::Sender(last) => receiver[last].take(),
        };
        while let Some(to) = free {
            let from = before[to];
            free = receiver[from].replace(to);
            sender[to] = Some(from);
        }
        touched.into_iter().for_each(|to| distance[to] = f64::INFINITY);
    }
    let of = |(row, to): (&Vec<(usize, f64)>, &Option<usize>)| {
        row.iter().find(|entry| Some(entry.0) == *to).map_or(0.0, |entry| entry.1)
    };
    let weight = weights.iter().zip(&receiver).map(of).sum();
    Matching { weight, receiver }
}

/// Where a chain of exchanges ends.
#[derive(Clone, Copy)]
enum End {
    /// At a sender that gives up its receiver, or finds none.
    Sender(usize),
    /// At a receiver that was free.
    Receiver(usize),
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;

    /// By trying all.
    fn brute(weights: &[Vec<(usize, f64)>], taken: &mut Vec<bool>) -> f64 {
        let Some((row, rest)) = weights.split_first() else { return 0.0 };
        let mut best = brute(rest, taken);
        for &(to, weight) in row {
            if !taken[to] {
                taken[to] = true;
                best = best.max(weight + brute(rest, taken));
                taken[to] = false;
            }
        }
        best
    }

    #[test]
    fn no_matching_is_heavier() {
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let (senders, receivers) = (1 + rng.below(5), 1 + rng.below(5));
            let weights: Vec<Vec<(usize, f64)>> = (0..senders)
                .map(|_| {
                    let some = (0..receivers).filter(|_| rng.below(3) > 0).collect::<Vec<_>>();
                    some.into_iter().map(|to| (to, rng.below(9) as f64)).collect()
                })
                .collect();
            let found = heaviest(&weights, receivers);
            let best = brute(&weights, &mut vec![false; receivers]);
            assert!((found.weight - best).abs() < 1e-9, "seed {seed}: {found:?}, and {best} is possible");
            let mut taken: Vec<usize> = found.receiver.iter().flatten().copied().collect();
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {found:?}");
        }
    }
}
