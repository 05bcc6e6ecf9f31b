//! A topological order that is kept while arcs are added.
//!
//! An arc whose ends stand in order already costs nothing. Another one, from → to, is inserted unless it closes a cycle, and
//! then only nodes between the two change places: those that lead to *from* are put before those that follow from *to*, on
//! the same places. The search for a cycle never leaves the places between the two ends (D. Pearce and P. Kelly, "A dynamic
//! topological sort algorithm for directed acyclic graphs", ACM JEA 11, 2007).
//!
//! ```text
//!   0 a   1 b   2 c   3 d       d → b stands the wrong way round: b and c go behind d
//!   known: b → c                0 a   1 d   2 b   3 c           c → d is refused then
//! ```

/// An arc: from a node to another.
pub type Arc = (u32, u32);

/// What became of an arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// It is new.
    New,
    /// It was there before.
    Known,
    /// It was refused: it would close a cycle. Nothing has changed.
    Cycle,
}

/// The nodes of an acyclic graph, ranked so that every arc leads to a higher rank.
///
/// [`insert`](Self::insert) and what rests on it keep that so. After [`insert_unchecked`](Self::insert_unchecked), ranks
/// need not respect the arcs until [`into_rank`](Self::into_rank) has looked for a cycle.
#[derive(Clone, Debug)]
pub struct TopologicalOrder {
    rank: Vec<u32>,
    /// `next[node]`: heads of the arcs that leave it, in the order in which they were added.
    next: Vec<Vec<u32>>,
    /// `before[node]`: tails of the arcs that enter it.
    before: Vec<Vec<u32>>,
    /// Whether arcs were added that may close a cycle.
    unchecked: bool,
    /// Scratch: `seen[node]` is the search that saw it last.
    seen: Vec<u32>,
    search: u32,
}

impl TopologicalOrder {
    /// Nodes without arcs, ordered by `numbers[node]`, which may have gaps and ties; ties are broken by node.
    /// Cost: O(nodes · log nodes).
    pub fn by_number(numbers: &[u32]) -> Self {
        let mut nodes: Vec<usize> = (0..numbers.len()).collect();
        nodes.sort_by_key(|&node| (numbers[node], node));
        let mut rank = vec![0; numbers.len()];
        nodes.iter().enumerate().for_each(|(place, &node)| rank[node] = place as u32);
        let none = vec![Vec::new(); numbers.len()];
        Self { rank, next: none.clone(), before: none, unchecked: false, seen: vec![0; numbers.len()], search: 0 }
    }

    /// `rank[node]`: a permutation of `0..nodes`.
    #[inline]
    pub fn rank(&self) -> &[u32] {
        &self.rank
    }

    /// Whether an arc, known or not, leads to a higher rank.
    #[inline]
    pub fn respects(&self, (from, to): Arc) -> bool {
        self.rank[from as usize] < self.rank[to as usize]
    }

    /// Whether an arc is there. Cost: O(arcs that leave its tail).
    pub fn contains(&self, (from, to): Arc) -> bool {
        self.next[from as usize].contains(&to)
    }

    /// Adds an arc unless it closes a cycle. Cost: that of [`contains`](Self::contains) if it leads to a higher rank; else
    /// O(a · log a), in the nodes and arcs that lead to its tail or follow from its head at ranks between the two.
    pub fn insert(&mut self, (from, to): Arc) -> Insertion {
        if self.contains((from, to)) {
            return Insertion::Known;
        }
        if !self.respects((from, to)) && !self.make_room(from, to) {
            return Insertion::Cycle;
        }
        self.next[from as usize].push(to);
        self.before[to as usize].push(from);
        Insertion::New
    }

    /// Adds all arcs and returns those that are new, in order; none, with ranks and arcs as before, if they close a cycle.
    /// Cost: that of [`insert`](Self::insert) for each, and O(nodes) if some arc leads to a lower rank.
    pub fn insert_all(&mut self, arcs: &[Arc]) -> Option<Vec<Arc>> {
        let mut added = Vec::new();
        let before = self.rank_at_risk(arcs);
        for &arc in arcs {
            match self.insert(arc) {
                Insertion::New => added.push(arc),
                Insertion::Known => {}
                Insertion::Cycle => {
                    self.withdraw(&added);
                    self.rank = before.expect("without an arc to a lower rank there is no cycle");
                    return None;
                }
            }
        }
        Some(added)
    }

    /// Whether [`insert_all`](Self::insert_all) would add all arcs; ranks and arcs stay as they are. Cost: as there.
    pub fn accepts(&mut self, arcs: &[Arc]) -> bool {
        let before = self.rank_at_risk(arcs);
        let Some(added) = self.insert_all(arcs) else { return false };
        self.withdraw(&added);
        if let Some(before) = before {
            self.rank = before;
        }
        true
    }

    /// Removes arcs that were new when they were added, the latest first. Ranks stay, so later arcs cost less.
    pub fn withdraw(&mut self, added: &[Arc]) {
        for &(from, to) in added.iter().rev() {
            self.next[from as usize].retain(|known| *known != to);
            self.before[to as usize].retain(|known| *known != from);
        }
    }

    /// Removes every arc that leaves or enters a node.
    pub fn isolate(&mut self, node: u32) {
        for to in std::mem::take(&mut self.next[node as usize]) {
            self.before[to as usize].retain(|known| *known != node);
        }
        for from in std::mem::take(&mut self.before[node as usize]) {
            self.next[from as usize].retain(|known| *known != node);
        }
    }

    /// Adds arcs whether or not they close a cycle.
    pub fn insert_unchecked(&mut self, arcs: &[Arc]) {
        for &(from, to) in arcs {
            if !self.contains((from, to)) {
                self.next[from as usize].push(to);
                self.before[to as usize].push(from);
                self.unchecked = true;
            }
        }
    }

    /// `rank[node]`; none if the arcs close a cycle.
    pub fn into_rank(mut self) -> Option<Vec<u32>> {
        if self.unchecked {
            let next = std::mem::take(&mut self.next);
            let all: Vec<Arc> =
                (0_u32..).zip(&next).flat_map(|(from, next)| next.iter().map(move |&to| (from, to))).collect();
            self.before.iter_mut().for_each(Vec::clear);
            self.next = vec![Vec::new(); next.len()];
            self.insert_all(&all)?;
        }
        Some(self.rank)
    }

    /// The ranks as they are, if adding the arcs may change them.
    fn rank_at_risk(&self, arcs: &[Arc]) -> Option<Vec<u32>> {
        arcs.iter().any(|arc| !self.respects(*arc)).then(|| self.rank.clone())
    }

    /// Puts `to` behind `from`; false, with nothing changed, if `to` leads to `from`.
    fn make_room(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return false;
        }
        let (lowest, highest) = (self.rank[to as usize], self.rank[from as usize]);
        let Some(mut following) = self.reach(to, |order| &order.next, |rank| rank <= highest, Some(from)) else {
            return false;
        };
        let Some(mut leading) = self.reach(from, |order| &order.before, |rank| rank >= lowest, None) else {
            return false;
        };
        following.sort_unstable_by_key(|&node| self.rank[node as usize]);
        leading.sort_unstable_by_key(|&node| self.rank[node as usize]);
        let moved: Vec<u32> = leading.into_iter().chain(following).collect();
        let mut places: Vec<u32> = moved.iter().map(|&node| self.rank[node as usize]).collect();
        places.sort_unstable();
        moved.iter().zip(places).for_each(|(&node, place)| self.rank[node as usize] = place);
        true
    }

    /// The nodes that can be reached through ranks within bounds; none if `goal` is one of them.
    fn reach(
        &mut self,
        start: u32,
        beside: impl Fn(&Self) -> &Vec<Vec<u32>>,
        within: impl Fn(u32) -> bool,
        goal: Option<u32>,
    ) -> Option<Vec<u32>> {
        self.search += 1;
        self.seen[start as usize] = self.search;
        let mut reached = vec![start];
        let mut at = 0;
        while let Some(&node) = reached.get(at) {
            at += 1;
            for index in 0..beside(self)[node as usize].len() {
                let next = beside(self)[node as usize][index];
                if Some(next) == goal {
                    return None;
                }
                if self.seen[next as usize] != self.search && within(self.rank[next as usize]) {
                    self.seen[next as usize] = self.search;
                    reached.push(next);
                }
            }
        }
        Some(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_drawn_example() {
        let mut order = TopologicalOrder::by_number(&[0, 1, 2, 3]);
        assert_eq!(order.insert((1, 2)), Insertion::New);
        assert_eq!(order.insert((3, 1)), Insertion::New);
        assert_eq!(order.rank(), [0, 2, 3, 1]);
        assert_eq!(order.insert((2, 3)), Insertion::Cycle);
        assert_eq!(order.insert((0, 0)), Insertion::Cycle);
        assert_eq!(order.insert((1, 2)), Insertion::Known);
        assert_eq!(order.rank(), [0, 2, 3, 1]);
        assert_eq!(order.insert((2, 0)), Insertion::New);
    }

    #[test]
    fn what_closes_a_cycle_is_refused_and_leaves_no_trace() {
        let mut order = TopologicalOrder::by_number(&[0, 1, 2]);
        assert_eq!(order.insert_all(&[(0, 1), (1, 2)]), Some(vec![(0, 1), (1, 2)]));
        assert_eq!(order.insert_all(&[(2, 0)]), None);
        assert_eq!(order.clone().into_rank(), Some(vec![0, 1, 2]));
        order.insert_unchecked(&[(2, 0)]);
        assert_eq!(order.into_rank(), None);
    }

    #[test]
    fn what_closes_none_moves_as_little_as_it_must() {
        let mut order = TopologicalOrder::by_number(&[0, 1, 2, 3]);
        assert!(order.insert_all(&[(1, 2)]).is_some() && order.insert_all(&[(2, 0)]).is_some());
        assert_eq!(order.rank(), [2, 0, 1, 3]);
        assert!(order.accepts(&[(3, 1)]) && !order.accepts(&[(3, 1), (0, 3)]));
        assert!(order.insert_all(&[(0, 3)]).is_some(), "what was only tried is forgotten");
        order.isolate(2);
        assert!(!order.contains((1, 2)) && !order.contains((2, 0)) && order.contains((0, 3)));
    }

    /// Whether arcs have a cycle, found by taking away those that no other leads to.
    fn have_cycle(arcs: &[Arc]) -> bool {
        let mut left = arcs.to_vec();
        loop {
            let heads: Vec<u32> = left.iter().map(|arc| arc.1).collect();
            let before = left.len();
            left.retain(|arc| heads.contains(&arc.0));
            if left.len() == before {
                return before > 0;
            }
        }
    }

    /// Arcs are added and removed at random: those that close a cycle are refused, with nothing changed, and no others; ranks
    /// respect all arcs at all times.
    #[test]
    fn arcs_are_refused_for_cycles_and_for_nothing_else() {
        let mut rng = Rng::new(5);
        let (mut taken, mut refused) = (0, 0);
        for seed in 0..200 {
            let nodes = 2 + rng.below(12);
            let numbers: Vec<u32> = (0..nodes).map(|_| rng.below(4) as u32).collect();
            let mut order = TopologicalOrder::by_number(&numbers);
            let mut known: Vec<Arc> = Vec::new();
            for _ in 0..60 {
                let mut arc = || (rng.below(nodes) as u32, rng.below(nodes) as u32);
                let batch: Vec<Arc> = [arc(), arc(), arc()].into_iter().take(1 + arc().0 as usize % 3).collect();
                let fits = !have_cycle(&[known.as_slice(), &batch].concat());
                let rank = order.rank().to_vec();
                assert_eq!(order.accepts(&batch), fits, "seed {seed}");
                assert_eq!(order.rank(), rank, "seed {seed}");
                let added = order.insert_all(&batch);
                assert_eq!(added.is_some(), fits, "seed {seed}");
                match added {
                    Some(added) => {
                        known.extend(&added);
                        taken += 1;
                    }
                    None => {
                        assert_eq!(order.rank(), rank, "seed {seed}");
                        refused += 1;
                    }
                }
                match rng.below(8) {
                    0 => {
                        let node = rng.below(nodes) as u32;
                        order.isolate(node);
                        known.retain(|arc| arc.0 != node && arc.1 != node);
                    }
                    1 => {
                        let gone = known.split_off(known.len() / 2);
                        order.withdraw(&gone);
                    }
                    _ => {}
                }
                assert!(known.iter().all(|arc| order.contains(*arc) && order.respects(*arc)), "seed {seed}");
                let count: usize = order.next.iter().map(Vec::len).sum();
                assert_eq!((count, order.before.iter().map(Vec::len).sum::<usize>()), (known.len(), known.len()));
            }
            let mut sorted = order.rank().to_vec();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..nodes as u32), "seed {seed}");
            let mut unchecked = TopologicalOrder::by_number(&numbers);
            let arcs: Vec<Arc> = (0..nodes).map(|_| (rng.below(nodes) as u32, rng.below(nodes) as u32)).collect();
            unchecked.insert_unchecked(&arcs);
            match unchecked.into_rank() {
                None => assert!(have_cycle(&arcs), "seed {seed}"),
                Some(rank) => {
                    assert!(arcs.iter().all(|arc| rank[arc.0 as usize] < rank[arc.1 as usize]), "seed {seed}");
                }
            }
        }
        assert!(taken > 1000 && refused > 1000, "{taken} {refused}");
    }
}
