//! Indices of rows: how a table's rows are numbered, and which row a walk finds next.
//!
//! Indices order as tables are walked. [`RowIndex::after`] turns whatever a GETNEXT asks for, were it cut short, too long
//! or out of range, into the first index that may answer it, so that a walk is one ordered look-up a row.

use std::ops::Bound;

/// The index of a table's rows: a fixed number of sub-identifiers, each in a range.
pub trait RowIndex: Copy + Ord {
    /// For each sub-identifier, the least and the greatest it may be.
    const RANGES: &'static [(u32, u32)];

    /// The sub-identifiers, as many as there are ranges.
    fn components(&self) -> Vec<u32>;

    /// The index with these sub-identifiers, each within its range.
    fn of(components: &[u32]) -> Self;

    /// Reads an index; none if it has another length or is out of range.
    fn decode(components: &[u32]) -> Option<Self> {
        let fits = components.len() == Self::RANGES.len()
            && components.iter().zip(Self::RANGES).all(|(part, (least, most))| (least..=most).contains(&part));
        fits.then(|| Self::of(components))
    }

    /// Where the rows begin that come after `asked`; none if no index does.
    fn after(asked: &[u32]) -> Option<Bound<Self>> {
        let mut parts: Vec<u32> = Vec::with_capacity(Self::RANGES.len());
        let fill = |parts: &mut Vec<u32>, bound: fn(&(u32, u32)) -> u32| {
            let missing = &Self::RANGES[parts.len()..];
            parts.extend(missing.iter().map(bound));
        };
        for (part, (least, most)) in asked.iter().zip(Self::RANGES) {
            if part < least {
                fill(&mut parts, |range| range.0);
                return Some(Bound::Included(Self::of(&parts)));
            }
            if part > most {
                // Nothing with these first parts comes after; what does is beyond the greatest that has them.
                fill(&mut parts, |range| range.1);
                return Some(Bound::Excluded(Self::of(&parts)));
            }
            parts.push(*part);
        }
        if parts.len() < Self::RANGES.len() {
            fill(&mut parts, |range| range.0);
            return Some(Bound::Included(Self::of(&parts)));
        }
        Some(Bound::Excluded(Self::of(&parts)))
    }
}
