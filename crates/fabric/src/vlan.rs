//! VLAN identifiers, sets of them, and the range that a plan may draw from.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// An 802.1Q VLAN identifier, 1 to 4094 (IEEE 802.1Q-2022, 9.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

/// Why a number or text is not a VLAN, a set of VLANs or a pool of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VlanError {
    /// Outside 1..=4094.
    #[error("{0} is not a VLAN id: they run from 1 to 4094")]
    OutOfRange(String),
    /// A range whose ends are swapped.
    #[error("the range {0}-{1} runs backwards")]
    Backwards(u16, u16),
}

impl VlanId {
    /// The lowest identifier.
    pub const MIN: Self = Self(1);
    /// The highest identifier.
    pub const MAX: Self = Self(4094);

    /// Validates a number.
    ///
    /// # Errors
    /// [`VlanError::OutOfRange`] unless it is 1..=4094.
    pub fn new(id: u16) -> Result<Self, VlanError> {
        if (1..=4094).contains(&id) { Ok(Self(id)) } else { Err(VlanError::OutOfRange(id.to_string())) }
    }

    /// The identifier as it stands in a tag.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for VlanId {
    type Err = VlanError;

    fn from_str(text: &str) -> Result<Self, VlanError> {
        let number = text.trim().parse::<u16>().map_err(|_| VlanError::OutOfRange(text.trim().to_owned()))?;
        Self::new(number)
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// A set of VLANs, iterated in ascending order; written and read as `1-4,10`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct VlanSet {
    /// Bit `id % 64` of word `id / 64`; trailing zero words are not kept, so equal sets compare equal.
    words: Vec<u64>,
}

impl VlanSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Adds a VLAN; returns whether it was new.
    pub fn insert(&mut self, vlan: VlanId) -> bool {
        let (word, bit) = (usize::from(vlan.0) / 64, 1 << (vlan.0 % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    /// Removes a VLAN; returns whether it was there.
    pub fn remove(&mut self, vlan: VlanId) -> bool {
        let there = self.contains(vlan);
        if there {
            self.words[usize::from(vlan.0) / 64] &= !(1 << (vlan.0 % 64));
            while self.words.last() == Some(&0) {
                self.words.pop();
            }
        }
        there
    }

    /// Whether `vlan` is in the set.
    pub fn contains(&self, vlan: VlanId) -> bool {
        self.words.get(usize::from(vlan.0) / 64).is_some_and(|word| word >> (vlan.0 % 64) & 1 == 1)
    }

    /// How many VLANs are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no VLAN is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The VLANs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = VlanId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| VlanId((index * 64) as u16 + rest.trailing_zeros() as u16))
        })
    }

    /// The set as maximal runs of consecutive VLANs, `(first, last)`, ascending.
    pub fn runs(&self) -> Vec<(VlanId, VlanId)> {
        let mut runs: Vec<(VlanId, VlanId)> = Vec::new();
        for vlan in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if last.0 + 1 == vlan.0 => *last = vlan,
                _ => runs.push((vlan, vlan)),
            }
        }
        runs
    }
}

impl FromIterator<VlanId> for VlanSet {
    fn from_iter<I: IntoIterator<Item = VlanId>>(vlans: I) -> Self {
        let mut set = Self::new();
        set.extend(vlans);
        set
    }
}

impl Extend<VlanId> for VlanSet {
    fn extend<I: IntoIterator<Item = VlanId>>(&mut self, vlans: I) {
        for vlan in vlans {
            self.insert(vlan);
        }
    }
}

impl FromStr for VlanSet {
    type Err = VlanError;

    /// Reads `1-4,10`; the empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, VlanError> {
        let mut set = Self::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<VlanId>()?, last.parse::<VlanId>()?);
            if first > last {
                return Err(VlanError::Backwards(first.0, last.0));
            }
            set.extend((first.0..=last.0).map(VlanId));
        }
        Ok(set)
    }
}

impl fmt::Display for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.runs().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// The VLAN ids that a plan may use: a range less the ids that are spoken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanPool {
    /// The lowest id that may be used.
    pub first: VlanId,
    /// The highest id that may be used.
    pub last: VlanId,
    /// Ids inside the range that may not.
    pub reserved: VlanSet,
}

impl VlanPool {
    /// The usable ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = VlanId> + '_ {
        (self.first.0..=self.last.0).map(VlanId).filter(|vlan| !self.reserved.contains(*vlan))
    }

    /// Whether `vlan` may be used.
    pub fn contains(&self, vlan: VlanId) -> bool {
        (self.first..=self.last).contains(&vlan) && !self.reserved.contains(vlan)
    }
}

impl Default for VlanPool {
    /// 2 to 4094, less 1002–1005, which Cisco switches keep for Token Ring and FDDI. VLAN 1 is every switch's default
    /// and stays out of plans.
    fn default() -> Self {
        let reserved = (1002..=1005).map(VlanId).collect();
        Self { first: VlanId(2), last: VlanId::MAX, reserved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> VlanSet {
        text.parse().expect("a valid set")
    }

    #[test]
    fn sets_read_what_they_write() {
        for text in ["", "1", "4094", "1-4,10", "63-65,127-128"] {
            assert_eq!(set(text).to_string(), text);
        }
        assert_eq!(set(" 3, 1-2 ,2").to_string(), "1-3");
    }

    #[test]
    fn sets_refuse_what_is_no_vlan() {
        for text in ["0", "4095", "7-3", "x", "1-", "-1", "1--2"] {
            assert!(text.parse::<VlanSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn removing_the_last_member_leaves_the_empty_set() {
        let mut vlans = set("4000");
        assert!(vlans.remove(VlanId(4000)));
        assert!(!vlans.remove(VlanId(4000)));
        assert_eq!(vlans, VlanSet::new());
    }

    #[test]
    fn the_pool_skips_reserved_ids() {
        let pool = VlanPool { first: VlanId(1), last: VlanId(6), reserved: set("2-3,6") };
        assert_eq!(pool.iter().map(VlanId::get).collect::<Vec<_>>(), [1, 4, 5]);
    }
}
