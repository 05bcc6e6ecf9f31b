//! Breadth-first search: nodes in the order of their distance in arcs.
//!
//! Nodes wait in a queue. The first node is taken out, its arcs are followed in order, and nodes that are reached for the
//! first time join the end of the queue (E. F. Moore, "The shortest path through a maze", 1959).
//!
//! ```text
//!   a ── b ── d        from a, arcs in alphabetical order:   order a b c d e   distance 0 1 1 2 2
//!   └─── c ── e        inward: b by ab, c by ac, d by bd, e by ce
//! ```

use super::Node;

/// The distance of a node that has not been reached.
const UNREACHED: u32 = u32::MAX;

/// A breadth-first search, finished or under way.
///
/// [`breadth_first`] runs one to its end. A search that stops early, or that follows an arc only under conditions that
/// depend on what was found before, takes nodes with [`next`](Self::next) and follows arcs with [`reach`](Self::reach).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreadthFirst<N, A> {
    /// Nodes that were reached, in the order in which they were: ascending by distance, the starts first.
    pub order: Vec<N>,
    /// `inward[node]`: the arc by which the search reached it; none for the starts and for nodes that were not reached.
    pub inward: Vec<Option<A>>,
    distance: Vec<u32>,
    next: usize,
}

impl<N: Node, A: Copy> BreadthFirst<N, A> {
    /// A search in a graph of `nodes` nodes that has reached `starts`, at distance 0, and nothing else. Duplicates count
    /// once. Cost: O(nodes).
    ///
    /// # Panics
    /// If a start is no node of the graph.
    pub fn from(nodes: usize, starts: impl IntoIterator<Item = N>) -> Self {
        let mut search =
            Self { order: Vec::new(), inward: vec![None; nodes], distance: vec![UNREACHED; nodes], next: 0 };
        for start in starts {
            if search.distance[start.index()] == UNREACHED {
                search.distance[start.index()] = 0;
                search.order.push(start);
            }
        }
        search
    }

    /// Takes the next node whose arcs are to be followed; none when the search is over. Cost: O(1).
    #[expect(clippy::should_implement_trait, reason = "an iterator would borrow the search while arcs are followed")]
    #[inline]
    pub fn next(&mut self) -> Option<N> {
        let node = self.order.get(self.next).copied();
        self.next += usize::from(node.is_some());
        node
    }

    /// Follows an arc from a node that was taken; whether it reached `head` for the first time. Cost: O(1).
    #[inline]
    pub fn reach(&mut self, from: N, arc: A, head: N) -> bool {
        if self.has_reached(head) {
            return false;
        }
        self.distance[head.index()] = self.distance[from.index()] + 1;
        self.inward[head.index()] = Some(arc);
        self.order.push(head);
        true
    }

    /// Whether a node has been reached.
    #[inline]
    pub fn has_reached(&self, node: N) -> bool {
        self.distance[node.index()] != UNREACHED
    }

    /// Arcs on a shortest path from the nearest start; none if the node has not been reached.
    #[inline]
    pub fn distance(&self, node: N) -> Option<u32> {
        Some(self.distance[node.index()]).filter(|distance| *distance != UNREACHED)
    }
}

/// Searches a graph of `nodes` nodes from `starts` until all that they reach has been reached. `arcs(node)` lists the arcs
/// that leave a node with the node at the head of each; it is called once for each node that is reached.
/// Cost: O(nodes + arcs).
///
/// # Panics
/// If a start or a head is no node of the graph.
pub fn breadth_first<N: Node, A: Copy, I: IntoIterator<Item = (A, N)>>(
    nodes: usize,
    starts: impl IntoIterator<Item = N>,
    mut arcs: impl FnMut(N) -> I,
) -> BreadthFirst<N, A> {
    let mut search = BreadthFirst::from(nodes, starts);
    while let Some(node) = search.next() {
        for (arc, head) in arcs(node) {
            search.reach(node, arc, head);
        }
    }
    search
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_drawn_example() {
        let arcs = [vec![(10, 1), (11, 2)], vec![(20, 0), (21, 3)], vec![(30, 0), (31, 4)], vec![(40, 1)], vec![]];
        let found = breadth_first(5, [0_usize], |node| arcs[node].iter().copied());
        assert_eq!(found.order, [0, 1, 2, 3, 4]);
        assert_eq!(found.inward, [None, Some(10), Some(11), Some(21), Some(31)]);
        assert_eq!([0, 1, 3, 4].map(|node| found.distance(node)), [Some(0), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn starts_count_once_and_what_they_do_not_reach_has_no_distance() {
        let found = breadth_first(4, [2_usize, 1, 2], |node| (node == 1).then_some(((), 0)));
        assert_eq!(found.order, [2, 1, 0]);
        assert!(found.has_reached(0) && !found.has_reached(3));
        assert_eq!((found.distance(2), found.distance(3)), (Some(0), None));
        let nothing: BreadthFirst<usize, ()> = BreadthFirst::from(3, []);
        assert!(nothing.order.is_empty() && !nothing.has_reached(0));
    }

    /// Distances are those of Bellman and Ford; each node is reached from one that is nearer by one, by the first of its arcs
    /// from the earliest such node.
    #[test]
    fn distances_and_arcs_are_those_of_brute_force() {
        let mut rng = Rng::new(3);
        for seed in 0..200 {
            let nodes = 1 + rng.below(12);
            let arcs: Vec<(usize, usize)> = (0..rng.below(30)).map(|_| (rng.below(nodes), rng.below(nodes))).collect();
            let starts: Vec<usize> = (0..1 + rng.below(2)).map(|_| rng.below(nodes)).collect();
            let leaving = |node: usize| {
                let all = arcs.iter().enumerate();
                all.filter(move |(_, (tail, _))| *tail == node).map(|(arc, (_, head))| (arc, *head))
            };
            let found = breadth_first(nodes, starts.iter().copied(), leaving);
            let mut expect: Vec<Option<u32>> = (0..nodes).map(|node| starts.contains(&node).then_some(0)).collect();
            for _ in 0..nodes {
                for &(tail, head) in &arcs {
                    let through = expect[tail].map(|distance| distance + 1);
                    expect[head] = [expect[head], through].into_iter().flatten().min();
                }
            }
            assert_eq!((0..nodes).map(|node| found.distance(node)).collect::<Vec<_>>(), expect, "seed {seed}");
            assert!(found.order.is_sorted_by_key(|node| expect[*node]), "seed {seed}");
            for node in 0..nodes {
                let position = |node: usize| found.order.iter().position(|other| *other == node);
                let nearer = (0..arcs.len()).filter(|&arc| {
                    arcs[arc].1 == node && expect[node] > Some(0) && expect[arcs[arc].0].map(|d| d + 1) == expect[node]
                });
                assert_eq!(found.inward[node], nearer.min_by_key(|&arc| (position(arcs[arc].0), arc)), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_search_may_stop_early_and_choose_its_arcs() {
        let mut search: BreadthFirst<usize, usize> = BreadthFirst::from(10, [0]);
        while let Some(node) = search.next().filter(|node| *node < 4) {
            // Only even nodes are entered by their second arc.
            for arc in [1, 2].into_iter().filter(|arc| *arc == 1 || node % 2 == 0) {
                search.reach(node, arc, node + arc);
            }
        }
        assert_eq!(search.order, [0, 1, 2, 3, 4]);
        assert_eq!(search.inward[4], Some(2));
    }
}
