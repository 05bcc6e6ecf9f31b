//! Sets of 64-bit numbers as sorted, disjoint, half-open ranges.
//!
//! Stream bytes that arrived out of order, packets seen on a link, bytes to be sent again: each is a handful of ranges,
//! mostly touched at their upper end, so a sorted vector beats a tree. Two ranges need no memory of their own: most sets
//! never have more, and they come and go with every packet.
//!
//! ```text
//!  insert 5..8 into {0..3, 4..5, 9..12}  →  {0..3, 4..8, 9..12}
//! ```

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::ops::Range;

/// A set of numbers, kept as sorted ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSet {
    ranges: SmallVec<[Range<u64>; 2]>,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: SmallVec::new_const() }
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// Whether the number is in the set.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(at).is_some_and(|range| range.start <= number)
    }

    /// Adds a range. Cost: O(log n) at the upper end, O(n) elsewhere, n ranges.
    pub fn insert(&mut self, new: Range<u64>) {
        if new.is_empty() {
            return;
        }
        if let Some(last) = self.ranges.last_mut() {
            if last.end == new.start {
                last.end = new.end;
                return;
            }
            if last.end < new.start {
                self.ranges.push(new);
                return;
            }
        } else {
            self.ranges.push(new);
            return;
        }
        let from = self.ranges.partition_point(|range| range.end < new.start);
        let to = self.ranges.partition_point(|range| range.start <= new.end);
        if from == to {
            self.ranges.insert(from, new);
            return;
        }
        let merged = self.ranges[from].start.min(new.start)..self.ranges[to - 1].end.max(new.end);
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
    }

    /// Takes a range out. Cost: O(n).
    pub fn remove(&mut self, old: Range<u64>) {
        if old.is_empty() {
            return;
        }
        let from = self.ranges.partition_point(|range| range.end <= old.start);
        let to = self.ranges.partition_point(|range| range.start < old.end);
        if from >= to {
            return;
        }
        let left = self.ranges[from].start..old.start;
        let right = old.end..self.ranges[to - 1].end;
        self.ranges.drain(from..to);
        for kept in [right, left].into_iter().filter(|range| range.start < range.end) {
            self.ranges.insert(from, kept);
        }
    }

    /// What of `range` is not in the set, ascending.
    #[must_use]
    pub fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        let from = self.ranges.partition_point(|known| known.end <= range.start);
        for known in &self.ranges[from..] {
            if known.start >= range.end {
                break;
            }
            if known.start > at {
                gaps.push(at..known.start);
            }
            at = at.max(known.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Whether all of `range` is in the set.
    #[must_use]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|known| known.end <= range.start);
        range.is_empty()
            || self.ranges.get(at).is_some_and(|known| known.start <= range.start && known.end >= range.end)
    }

    /// Forgets every number below `floor`.
    pub fn forget_below(&mut self, floor: u64) {
        let done = self.ranges.partition_point(|range| range.end <= floor);
        self.ranges.drain(..done);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(floor);
        }
    }

    /// Forgets the lowest ranges beyond the `most` highest.
    pub fn keep_highest(&mut self, most: usize) {
        let surplus = self.ranges.len().saturating_sub(most);
        self.ranges.drain(..surplus);
    }

    /// Takes up to `most` numbers from the lowest range.
    pub fn take_lowest(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.ranges.first_mut()?;
        let end = first.end.min(first.start.saturating_add(most));
        let taken = first.start..end;
        if end == first.end {
            self.ranges.remove(0);
        } else {
            first.start = end;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in proptest::collection::vec((0..3_u8, 0..60_u64, 0..12_u64), 1..60)) {
            let (mut ranges, mut model) = (RangeSet::new(), BTreeSet::new());
            for (kind, start, length) in steps {
                let range = start..start + length;
                match kind {
                    0 | 1 => {
                        ranges.insert(range.clone());
                        model.extend(range);
                    }
                    _ => {
                        ranges.remove(range.clone());
                        model.retain(|number| !range.contains(number));
                    }
                }
                let listed: Vec<u64> = ranges.iter().flatten().collect();
                prop_assert_eq!(&listed, &model.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
                let gaps: BTreeSet<u64> = ranges.gaps(10..50).into_iter().flatten().collect();
                prop_assert_eq!(gaps, (10..50).filter(|number| !model.contains(number)).collect::<BTreeSet<_>>());
                prop_assert!((0..80).all(|number| ranges.contains(number) == model.contains(&number)));
                prop_assert_eq!(ranges.covers(&(10..20)), (10..20).all(|number| model.contains(&number)));
            }
        }

        #[test]
        fn the_lowest_are_taken_first(ranges in proptest::collection::vec((0..200_u64, 1..20_u64), 1..20), most in 1..9_u64) {
            let mut set = RangeSet::new();
            for (start, length) in ranges {
                set.insert(start..start + length);
            }
            let all: Vec<u64> = set.iter().flatten().collect();
            let mut taken = Vec::new();
            while let Some(range) = set.take_lowest(most) {
                prop_assert!(range.end - range.start <= most);
                taken.extend(range);
            }
            prop_assert_eq!(taken, all);
        }
    }

    #[test]
    fn old_ranges_are_forgotten() {
        let mut set = RangeSet::new();
        for start in [0, 10, 20, 30] {
            set.insert(start..start + 5);
        }
        set.keep_highest(3);
        assert_eq!(set.first(), Some(10..15));
        set.forget_below(12);
        assert_eq!(set.first(), Some(12..15));
        set.forget_below(20);
        assert_eq!(set.iter().collect::<Vec<_>>(), [20..25, 30..35]);
    }
}
