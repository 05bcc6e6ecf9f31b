//! Numberings of channels that stay valid while trees are mended: one a lane.
//!
//! Dependencies are only ever added. Those that climb the numbering cost nothing; others are admitted if, with them, the
//! dependency graph has no cycle, and then the channels are numbered anew, as near to the old order as it allows
//! (A. B. Kahn, "Topological sorting of large networks", 1962, lowest old number first).
//!
//! ```text
//!   0 ab   1 bc   2 cd        cd → ab is no climb, but closes no cycle without ab → … → cd:
//!   known: bc → cd            1 bc   2 cd   0 ab   becomes   0 bc   1 cd   2 ab
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

/// A dependency: frames may go from one channel straight to the other.
pub(super) type Dependency = (u32, u32);

/// One lane's numbering and the dependencies that it respects.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) rank: Vec<u32>,
    next: Vec<Vec<u32>>,
}

impl Order {
    pub(super) fn new(rank: Vec<u32>) -> Self {
        let next = vec![Vec::new(); rank.len()];
        Self { rank, next }
    }

    /// Whether a dependency climbs.
    pub(super) fn climbs(&self, (from, to): Dependency) -> bool {
        self.rank[from as usize] < self.rank[to as usize]
    }

    /// Adds dependencies that may or may not climb; false, and nothing is added, if they close a cycle.
    pub(super) fn admit(&mut self, dependencies: &[Dependency]) -> bool {
        let climbing = dependencies.iter().all(|&dependency| self.climbs(dependency));
        let mut added = Vec::new();
        for &(from, to) in dependencies {
            let next = &mut self.next[from as usize];
            if let Err(at) = next.binary_search(&to) {
                next.insert(at, to);
                added.push((from, to));
            }
        }
        if climbing {
            return true;
        }
        match self.sorted() {
            Some(rank) => {
                self.rank = rank;
                true
            }
            None => {
                for (from, to) in added {
                    let next = &mut self.next[from as usize];
                    next.retain(|known| *known != to);
                }
                false
            }
        }
    }

    /// Adds dependencies whether or not they close a cycle, for fabrics where none must be absent.
    pub(super) fn note(&mut self, dependencies: &[Dependency]) {
        for &(from, to) in dependencies {
            let next = &mut self.next[from as usize];
            if let Err(at) = next.binary_search(&to) {
                next.insert(at, to);
            }
        }
    }

    /// The numbering if it respects every dependency, else a new one; none if there is a cycle.
    pub(super) fn into_rank(self) -> Option<Vec<u32>> {
        let holds =
            (self.next.iter().enumerate()).all(|(from, next)| next.iter().all(|&to| self.climbs((from as u32, to))));
        if holds { Some(self.rank) } else { self.sorted() }
    }

    fn sorted(&self) -> Option<Vec<u32>> {
        let mut waiting = vec![0_u32; self.next.len()];
        self.next.iter().flatten().for_each(|&to| waiting[to as usize] += 1);
        let entry = |channel: usize| Reverse((self.rank[channel], channel));
        let mut ready: BinaryHeap<_> = (0..self.next.len()).filter(|&c| waiting[c] == 0).map(entry).collect();
        let mut rank = vec![0; self.next.len()];
        let mut numbered = 0;
        while let Some(Reverse((_, channel))) = ready.pop() {
            rank[channel] = numbered;
            numbered += 1;
            for &to in &self.next[channel] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(entry(to as usize));
                }
            }
        }
        (numbered as usize == rank.len()).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closes_a_cycle_is_refused_and_forgotten() {
        let mut order = Order::new(vec![0, 1, 2]);
        assert!(order.admit(&[(0, 1), (1, 2)]));
        assert!(!order.admit(&[(2, 0)]));
        assert_eq!(order.clone().into_rank(), Some(vec![0, 1, 2]));
        order.note(&[(2, 0)]);
        assert_eq!(order.into_rank(), None);
    }

    #[test]
    fn what_closes_none_moves_as_little_as_it_must() {
        let mut order = Order::new(vec![0, 1, 2, 3]);
        assert!(order.admit(&[(1, 2)]) && order.admit(&[(2, 0)]));
        assert_eq!(order.rank, [2, 0, 1, 3]);
    }
}
