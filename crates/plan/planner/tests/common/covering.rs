//! Few requests that cover every pair of values of any two options.

use std::collections::BTreeSet;

use fabric::rng::Rng;

/// Requests drawn, of which the one that covers most is made.
const DRAWN: usize = 24;

/// Rows of values, `row[option] < counts[option]`, such that any two values of any two options meet in some row. Each row is
/// the one of a few random ones that covers most pairs that none before it did.
pub(crate) fn every_pair(counts: &[usize], seed: u64) -> Vec<Vec<usize>> {
    let options = || (0..counts.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let mut uncovered: BTreeSet<[usize; 4]> = options()
        .flat_map(|(one, other)| {
            (0..counts[one]).flat_map(move |a| (0..counts[other]).map(move |b| [one, a, other, b]))
        })
        .collect();
    let (mut rng, mut rows) = (Rng::new(seed), Vec::new());
    while let Some(&[one, a, other, b]) = uncovered.first() {
        let drawn = (0..DRAWN).map(|_| {
            let mut row: Vec<usize> = counts.iter().map(|&count| rng.below(count)).collect();
            (row[one], row[other]) = (a, b);
            row
        });
        let row = drawn.max_by_key(|row| pairs(row).filter(|pair| uncovered.contains(pair)).count());
        let row = row.expect("some were drawn");
        pairs(&row).for_each(|pair| {
            uncovered.remove(&pair);
        });
        rows.push(row);
    }
    rows
}

/// All rows.
pub(crate) fn every_row(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![Vec::new()], |rows, &count| {
        let longer = |row: Vec<usize>| (0..count).map(move |value| row.iter().copied().chain([value]).collect());
        rows.into_iter().flat_map(longer).collect()
    })
}

/// The pairs of values that a row covers: `(option, value, option, value)`.
fn pairs(row: &[usize]) -> impl Iterator<Item = [usize; 4]> {
    (0..row.len()).flat_map(move |one| (0..one).map(move |other| [one, row[one], other, row[other]]))
}
