//! Union-find: which items are in one set, while sets are joined.
//!
//! Each set is a tree whose root is its least member. Looking for a root halves the path to it on the way
//! (R. Tarjan and J. van Leeuwen, "Worst-case analysis of set union algorithms", JACM 31, 1984).
//!
//! ```text
//!   join 3 and 1, 4 and 3:    1 ◀─ 3, 1 ◀─ 4     find 4 = 1      0 and 2 are alone
//! ```

/// Disjoint sets of the items `0..len`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnionFind {
    /// `parent[item]`: a member of its set that is not greater; roots are their own.
    parent: Vec<usize>,
}

impl UnionFind {
    /// Every item in a set of its own.
    pub fn new(len: usize) -> Self {
        Self { parent: (0..len).collect() }
    }

    /// Adds an item in a set of its own and returns it.
    pub fn push(&mut self) -> usize {
        self.parent.push(self.parent.len());
        self.parent.len() - 1
    }

    /// The least member of an item's set. Cost: O(log len), amortized.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn find(&mut self, mut item: usize) -> usize {
        while self.parent[item] != item {
            self.parent[item] = self.parent[self.parent[item]];
            item = self.parent[item];
        }
        item
    }

    /// Makes the sets of two items one; false if they were one before. Cost: O(log len), amortized.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b);
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_drawn_example() {
        let mut sets = UnionFind::new(5);
        assert!(sets.join(3, 1) && sets.join(4, 3) && !sets.join(1, 4));
        assert_eq!([0, 1, 2, 3, 4].map(|item| sets.find(item)), [0, 1, 2, 1, 1]);
        assert_eq!((sets.push(), sets.find(5)), (5, 5));
    }

    #[test]
    fn sets_are_those_that_relabelling_gives() {
        let mut rng = Rng::new(11);
        for _ in 0..200 {
            let len = 1 + rng.below(20);
            let (mut sets, mut label) = (UnionFind::new(len), (0..len).collect::<Vec<_>>());
            for _ in 0..rng.below(30) {
                let (a, b) = (rng.below(len), rng.below(len));
                let (one, other) = (label[a], label[b]);
                assert_eq!(sets.join(a, b), one != other);
                label.iter_mut().filter(|label| **label == one.max(other)).for_each(|label| *label = one.min(other));
                assert!((0..len).all(|item| sets.find(item) == label[item]));
            }
        }
    }
}
