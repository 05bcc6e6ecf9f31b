//! Sets of hosts as bits.

use fabric::HostId;

/// A set of hosts of one topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostSet {
    words: Vec<u64>,
    hosts: usize,
}

impl HostSet {
    pub(crate) fn empty(hosts: usize) -> Self {
        Self { words: vec![0; hosts.div_ceil(64)], hosts }
    }

    pub(crate) fn all(hosts: usize) -> Self {
        let mut set = Self { words: vec![u64::MAX; hosts.div_ceil(64)], hosts };
        if hosts % 64 != 0 {
            *set.words.last_mut().expect("a partial word exists") = (1 << (hosts % 64)) - 1;
        }
        set
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(crate) fn insert(&mut self, host: HostId) {
        self.words[host.index() / 64] |= 1 << (host.index() % 64);
    }

    pub(crate) fn contains(&self, host: HostId) -> bool {
        self.words[host.index() / 64] >> (host.index() % 64) & 1 == 1
    }

    /// Whether it has all hosts of the topology. Cost: O(hosts / 64).
    pub(crate) fn is_everyone(&self) -> bool {
        self.words.iter().map(|word| word.count_ones() as usize).sum::<usize>() == self.hosts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn union(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Maximal runs of consecutive hosts, `(first, last)`, ascending.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (HostId, HostId)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.next(at, u64::MIN)?;
            at = self.next(first, u64::MAX).unwrap_or(64 * self.words.len());
            Some((HostId::new(first), HostId::new(at - 1)))
        })
    }

    /// The first position from `start` on whose bit differs from those of `skip` (all zeros or all ones).
    fn next(&self, start: usize, skip: u64) -> Option<usize> {
        let mut word = start / 64;
        let mut mask = u64::MAX.checked_shl((start % 64) as u32).unwrap_or(0);
        while let Some(bits) = self.words.get(word) {
            let found = (bits ^ skip) & mask;
            if found != 0 {
                return Some(64 * word + found.trailing_zeros() as usize);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cross_words() {
        for (hosts, members, expect) in [
            (200, vec![0, 1, 62, 63, 64, 65, 130], vec![(0, 1), (62, 65), (130, 130)]),
            (64, (0..64).collect(), vec![(0, 63)]),
            (65, vec![64], vec![(64, 64)]),
            (3, vec![], vec![]),
        ] {
            let mut set = HostSet::empty(hosts);
            members.iter().for_each(|&host| set.insert(HostId::new(host)));
            let runs: Vec<_> = set.runs().map(|(first, last)| (first.index(), last.index())).collect();
            assert_eq!(runs, expect);
        }
        assert_eq!(HostSet::all(130).runs().collect::<Vec<_>>(), [(HostId::new(0), HostId::new(129))]);
    }
}
