//! Static forwarding-table entries of a switch.

use std::{
    collections::{BTreeMap, btree_map},
    ops::{Deref, DerefMut},
    sync::Arc,
};

use fabric::{Mac, VlanId};

use crate::Slot;

type Table = BTreeMap<(VlanId, Mac), Slot>;

/// Static forwarding-table entries of a switch: where frames to an address leave, by VLAN.
///
/// Clones share one table until one of them is changed: what is wanted of a switch, what it held last and what is said of it are
/// mostly the same, and may be tens of thousands of entries.
#[derive(Clone, Debug, Default, Eq)]
pub struct Entries(Arc<Table>);

impl Entries {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shares the table of `other` if it is the same.
    pub fn share(&mut self, other: &Self) {
        if self == other {
            self.0 = Arc::clone(&other.0);
        }
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Deref for Entries {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl DerefMut for Entries {
    fn deref_mut(&mut self) -> &mut Table {
        Arc::make_mut(&mut self.0)
    }
}

impl FromIterator<((VlanId, Mac), Slot)> for Entries {
    fn from_iter<I: IntoIterator<Item = ((VlanId, Mac), Slot)>>(entries: I) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }
}

impl<const N: usize> From<[((VlanId, Mac), Slot); N]> for Entries {
    fn from(entries: [((VlanId, Mac), Slot); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl Extend<((VlanId, Mac), Slot)> for Entries {
    fn extend<I: IntoIterator<Item = ((VlanId, Mac), Slot)>>(&mut self, entries: I) {
        Arc::make_mut(&mut self.0).extend(entries);
    }
}

impl<'a> Extend<(&'a (VlanId, Mac), &'a Slot)> for Entries {
    fn extend<I: IntoIterator<Item = (&'a (VlanId, Mac), &'a Slot)>>(&mut self, entries: I) {
        Arc::make_mut(&mut self.0).extend(entries);
    }
}

impl IntoIterator for Entries {
    type Item = ((VlanId, Mac), Slot);
    type IntoIter = btree_map::IntoIter<(VlanId, Mac), Slot>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Entries {
    type Item = (&'a (VlanId, Mac), &'a Slot);
    type IntoIter = btree_map::Iter<'a, (VlanId, Mac), Slot>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_shared_until_one_is_changed() {
        let key = (VlanId::MIN, Mac::local(1));
        let wanted = Entries::from([(key, Slot::new(3))]);
        let mut held: Entries = wanted.iter().map(|(key, slot)| (*key, *slot)).collect();
        assert!(!Arc::ptr_eq(&held.0, &wanted.0));
        held.share(&wanted);
        assert!(Arc::ptr_eq(&held.0, &wanted.0));
        held.insert(key, Slot::new(4));
        assert_eq!((held[&key], wanted[&key]), (Slot::new(4), Slot::new(3)));
        held.share(&wanted);
        assert_ne!(held, wanted);
    }
}
