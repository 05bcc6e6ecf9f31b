//! Dijkstra's algorithm: cheapest paths from some nodes to all others.
//!
//! The node that is cheapest among those not settled yet is settled: no path over another node can be cheaper. Its arcs
//! are offers to the nodes at their heads (E. W. Dijkstra, "A note on two problems in connexion with graphs", 1959).
//!
//! ```text
//!   a ─1─ b ─1─ c      from a: a at 0, b at 1, c at 2 over b, although a─c is one arc
//!   └─────3─────┘
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Node;

/// What a path costs: totally ordered, with a value above all others.
pub trait Cost: Copy + Ord {
    /// The cost of what no path reaches.
    const UNREACHED: Self;
}

impl Cost for u64 {
    const UNREACHED: Self = Self::MAX;
}

/// A cost in floating point, in the total order of [`f64::total_cmp`].
#[derive(Clone, Copy, Debug)]
pub struct Length(pub f64);

impl PartialEq for Length {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Length {}

impl PartialOrd for Length {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Length {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Cost for Length {
    const UNREACHED: Self = Self(f64::INFINITY);
}

/// Cheapest paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dijkstra<N, A, C> {
    /// Nodes that were reached, in the order in which they were settled: ascending by cost, nodes of one cost as they became
    /// the cheapest, the least first.
    pub order: Vec<N>,
    /// `cost[node]`: of the cheapest path there; [`Cost::UNREACHED`] where there is none.
    pub cost: Vec<C>,
    /// `inward[node]`: the last arc of that path; none for starts that no cheaper path leads to, and for nodes that were not
    /// reached. Of several arcs of one cost it is the one that was offered first.
    pub inward: Vec<Option<A>>,
}

impl<N: Node, A, C: Cost> Dijkstra<N, A, C> {
    /// Whether a path leads to a node.
    #[inline]
    pub fn has_reached(&self, node: N) -> bool {
        self.cost[node.index()] < C::UNREACHED
    }
}

/// Finds the cheapest paths in a graph of `nodes` nodes from `starts`, which have costs of their own. `arcs(node, cost)` lists
/// the arcs that leave a node, the node at the head of each, and what the path costs that takes the cheapest path to `node`,
/// which costs `cost`, and then the arc; it is called once for each node that is reached.
/// Cost: O((nodes + arcs) · log arcs).
///
/// # Panics
/// If a start or a head is no node of the graph. In debug builds, if an arc makes a path cheaper.
pub fn dijkstra<N: Node + Ord, A: Copy, C: Cost, I: IntoIterator<Item = (A, N, C)>>(
    nodes: usize,
    starts: impl IntoIterator<Item = (N, C)>,
    mut arcs: impl FnMut(N, C) -> I,
) -> Dijkstra<N, A, C> {
    let mut found = Dijkstra { order: Vec::new(), cost: vec![C::UNREACHED; nodes], inward: vec![None; nodes] };
    let mut queue = BinaryHeap::new();
    for (start, cost) in starts {
        if cost < found.cost[start.index()] {
            found.cost[start.index()] = cost;
            queue.push(Reverse((cost, start)));
        }
    }
    while let Some(Reverse((cost, node))) = queue.pop() {
        // A cheaper path was found after this one had joined the queue.
        if cost > found.cost[node.index()] {
            continue;
        }
        found.order.push(node);
        for (arc, head, through) in arcs(node, cost) {
            debug_assert!(through >= cost, "an arc makes no path cheaper");
            if through < found.cost[head.index()] {
                found.cost[head.index()] = through;
                found.inward[head.index()] = Some(arc);
                queue.push(Reverse((through, head)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_drawn_example() {
        let arcs = [(0, 1, 1), (1, 2, 1), (0, 2, 3_u64)];
        let leaving = |node: usize, so_far: u64| {
            let all = arcs.iter().enumerate().filter(move |(_, arc)| arc.0 == node);
            all.map(move |(number, &(_, head, cost))| (number, head, so_far + cost))
        };
        let found = dijkstra(4, [(0, 0)], leaving);
        assert_eq!(found.order, [0, 1, 2]);
        assert_eq!(found.cost, [0, 1, 2, u64::MAX]);
        assert_eq!(found.inward, [None, Some(0), Some(1), None]);
        assert!(found.has_reached(2) && !found.has_reached(3));
    }

    #[test]
    fn a_start_may_be_reached_cheaper_from_another() {
        let found = dijkstra(2, [(0_usize, Length(5.0)), (1, Length(1.0)), (0, Length(7.0))], |node, so_far| {
            (node == 1).then_some(('x', 0, Length(so_far.0 + 0.5)))
        });
        assert_eq!((found.order, found.inward), (vec![1, 0], vec![Some('x'), None]));
        assert_eq!(found.cost, [Length(1.5), Length(1.0)]);
    }

    /// Costs are those of Bellman and Ford, arcs of no cost included; following arcs back gives paths of these costs.
    #[test]
    fn costs_and_paths_are_those_of_brute_force() {
        let mut rng = Rng::new(9);
        for seed in 0..200 {
            let nodes = 1 + rng.below(12);
            let arcs: Vec<(usize, usize, u64)> =
                (0..rng.below(40)).map(|_| (rng.below(nodes), rng.below(nodes), rng.below(5) as u64)).collect();
            let starts: Vec<(usize, u64)> =
                (0..1 + rng.below(3)).map(|_| (rng.below(nodes), rng.below(4) as u64)).collect();
            let leaving = |node: usize, so_far: u64| {
                let all = arcs.iter().enumerate().filter(move |(_, arc)| arc.0 == node);
                all.map(move |(number, &(_, head, cost))| (number, head, so_far + cost))
            };
            let found = dijkstra(nodes, starts.iter().copied(), leaving);
            let mut expect = vec![u64::MAX; nodes];
            starts.iter().for_each(|&(node, cost)| expect[node] = expect[node].min(cost));
            for _ in 0..nodes {
                for &(tail, head, cost) in &arcs {
                    expect[head] = expect[head].min(expect[tail].saturating_add(cost));
                }
            }
            assert_eq!(found.cost, expect, "seed {seed}");
            assert!(found.order.is_sorted_by_key(|node| expect[*node]), "seed {seed}");
            let mut settled = found.order.clone();
            settled.sort_unstable();
            assert!(settled.into_iter().eq((0..nodes).filter(|node| expect[*node] < u64::MAX)), "seed {seed}");
            for node in 0..nodes {
                match found.inward[node] {
                    None => assert!(expect[node] == u64::MAX || starts.contains(&(node, expect[node])), "seed {seed}"),
                    Some(arc) => {
                        let (tail, head, cost) = arcs[arc];
                        assert!(head == node && expect[tail] + cost == expect[node], "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn lengths_are_totally_ordered() {
        let mut lengths = [2.0, f64::INFINITY, 0.0, 1.5].map(Length);
        lengths.sort_unstable();
        assert_eq!(lengths.map(|length| length.0), [0.0, 1.5, 2.0, f64::INFINITY]);
        assert_eq!(Length::UNREACHED, Length(f64::INFINITY));
    }
}
