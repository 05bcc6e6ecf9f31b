//! Sets of ports as octet strings: the first octet holds ports 1 to 8, and the lowest port is the most significant bit.
//!
//! ```text
//! ports 1, 8, 10   10000001 01000000   0x81 0x40
//! ```
//!
//! Octets of zero at the end mean nothing, so two lists are equal if they hold the same ports, however long they were.
//! Source: RFC 4363, PortList.

use std::fmt;

use thiserror::Error;

/// Longest list that is read: ports up to 65,528. Bridge ports are numbered up to 65,535, but nobody has so many.
pub const PORT_LIST_OCTETS_MAX: usize = 8191;

/// A set of bridge ports, numbered from 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortList {
    /// Without zeros at the end.
    octets: Vec<u8>,
}

/// Why a set of ports cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PortListError {
    /// More octets than [`PORT_LIST_OCTETS_MAX`].
    #[error("a port list of {0} octets: no switch has so many ports")]
    TooLong(usize),
    /// Ports are numbered from 1, and up to what fits.
    #[error("{0} is not a port number: they run from 1 to {max}", max = PORT_LIST_OCTETS_MAX * 8)]
    NoPort(u32),
}

impl PortList {
    /// The empty set.
    pub const fn new() -> Self {
        Self { octets: Vec::new() }
    }

    /// Reads an octet string.
    ///
    /// # Errors
    /// [`PortListError::TooLong`].
    pub fn decode(octets: &[u8]) -> Result<Self, PortListError> {
        if octets.len() > PORT_LIST_OCTETS_MAX {
            return Err(PortListError::TooLong(octets.len()));
        }
        let end = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        Ok(Self { octets: octets[..end].to_vec() })
    }

    /// The ports of a switch's list.
    ///
    /// # Errors
    /// [`PortListError::NoPort`] for 0 or a number beyond what fits.
    pub fn of(ports: impl IntoIterator<Item = u32>) -> Result<Self, PortListError> {
        let mut list = Self::new();
        ports.into_iter().try_for_each(|port| list.insert(port).map(drop))?;
        Ok(list)
    }

    /// Writes an octet string of at least `octets_min` octets.
    pub fn encode(&self, octets_min: usize) -> Vec<u8> {
        let mut octets = self.octets.clone();
        octets.resize(octets.len().max(octets_min.min(PORT_LIST_OCTETS_MAX)), 0);
        octets
    }

    /// How many octets hold the ports 1 to `ports`.
    pub const fn octets_for(ports: usize) -> usize {
        ports.div_ceil(8)
    }

    /// Adds a port; returns whether it was new.
    ///
    /// # Errors
    /// [`PortListError::NoPort`].
    pub fn insert(&mut self, port: u32) -> Result<bool, PortListError> {
        let (octet, bit) = place(port).ok_or(PortListError::NoPort(port))?;
        if self.octets.len() <= octet {
            self.octets.resize(octet + 1, 0);
        }
        let fresh = self.octets[octet] & bit == 0;
        self.octets[octet] |= bit;
        Ok(fresh)
    }

    /// Removes a port; returns whether it was there.
    pub fn remove(&mut self, port: u32) -> bool {
        let there = self.contains(port);
        if let Some((octet, bit)) = place(port).filter(|_| there) {
            self.octets[octet] &= !bit;
            while self.octets.last() == Some(&0) {
                self.octets.pop();
            }
        }
        there
    }

    /// Whether `port` is in the set.
    pub fn contains(&self, port: u32) -> bool {
        place(port).is_some_and(|(octet, bit)| self.octets.get(octet).is_some_and(|held| held & bit != 0))
    }

    /// The ports, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.octets.iter().zip(0_u32..).flat_map(|(octet, index)| {
            (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| 8 * index + bit + 1)
        })
    }

    /// How many ports are in the set.
    pub fn len(&self) -> usize {
        self.octets.iter().map(|octet| octet.count_ones() as usize).sum()
    }

    /// Whether no port is in the set.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// The highest port.
    pub fn last(&self) -> Option<u32> {
        let octet = self.octets.last()?;
        Some(8 * self.octets.len() as u32 - octet.trailing_zeros())
    }

    /// Whether every port is in `other` too.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.octets.len() <= other.octets.len()
            && self.octets.iter().zip(&other.octets).all(|(own, held)| own & !held == 0)
    }

    /// Whether a port is in both sets.
    pub fn meets(&self, other: &Self) -> bool {
        self.octets.iter().zip(&other.octets).any(|(own, held)| own & held != 0)
    }
}

/// Octet and bit of a port.
fn place(port: u32) -> Option<(usize, u8)> {
    let index = port.checked_sub(1)?;
    let octet = (index / 8) as usize;
    (octet < PORT_LIST_OCTETS_MAX).then_some((octet, 0x80 >> (index % 8)))
}

impl fmt::Debug for PortList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_lowest_port_is_the_most_significant_bit() {
        let list = PortList::of([1, 8, 10]).expect("ports");
        assert_eq!(list.encode(0), [0x81, 0x40]);
        assert_eq!(list.encode(4), [0x81, 0x40, 0, 0]);
        assert_eq!(list.last(), Some(10));
    }

    #[test]
    fn lists_end_where_switches_do() {
        let last = 8 * PORT_LIST_OCTETS_MAX as u32;
        assert!(PortList::of([last]).is_ok());
        assert_eq!(PortList::of([last + 1]), Err(PortListError::NoPort(last + 1)));
        assert_eq!(PortList::of([0]), Err(PortListError::NoPort(0)));
        assert_eq!(PortList::of([u32::MAX]), Err(PortListError::NoPort(u32::MAX)));
        let long = vec![0; PORT_LIST_OCTETS_MAX + 1];
        assert_eq!(PortList::decode(&long), Err(PortListError::TooLong(long.len())));
        assert_eq!(PortList::decode(&[]), Ok(PortList::new()));
    }

    proptest! {
        #[test]
        fn a_list_is_a_set(ports in prop::collection::btree_set(1_u32..600, 0..60), gone in 1_u32..600, zeros in 0_usize..40) {
            let mut list = PortList::of(ports.iter().copied()).expect("ports");
            prop_assert_eq!(list.iter().collect::<BTreeSet<_>>(), ports.clone());
            prop_assert_eq!(list.len(), ports.len());
            prop_assert_eq!(list.last(), ports.last().copied());
            let mut octets = list.encode(0);
            octets.resize(octets.len() + zeros, 0);
            prop_assert_eq!(PortList::decode(&octets), Ok(list.clone()));
            let before = list.clone();
            prop_assert_eq!(list.remove(gone), ports.contains(&gone));
            prop_assert!(!list.contains(gone) && list.is_subset(&before));
            prop_assert_eq!(before.is_subset(&list), !ports.contains(&gone));
            prop_assert_eq!(before.meets(&list), !list.is_empty());
        }
    }
}
