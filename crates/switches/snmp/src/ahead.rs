//! What a GETBULK returned beyond the column that it was about.
//!
//! ```text
//!   GETBULK ×40 behind ifType ─▶ ifType.1 … ifType.5, ifMtu.1 … ifMtu.5, ifSpeed.1 …
//!                                                     └── the next column, already told
//! ```
//! A table of few rows takes one request for many columns. The objects are used for [`AGE_MAX`] at the most, and dropped with
//! any other request, so a walk never returns what was read before that request.
//!
//! An agent may leave out tables in an answer that runs over their end. So a column is taken from here only if a row of it was
//! returned; whether a column is empty is always requested.
//!
//! Source: RFC 3416, 4.2.3: each object of an answer is the lexicographic successor of the one before.

use std::time::{Duration, Instant};

use crate::{Oid, wire::Binding};

/// The greatest age of objects that are used.
const AGE_MAX: Duration = Duration::from_secs(1);

/// Successive objects, the first of them the successor of `from`.
#[derive(Debug)]
pub(super) struct Ahead {
    from: Oid,
    objects: Vec<Binding>,
    at: Instant,
}

impl Ahead {
    /// The answer of `at` to a GETBULK for what is behind `from`, as far as its objects succeed one another.
    pub(super) fn new(from: Oid, answer: &[Binding], at: Instant) -> Self {
        let before = std::iter::once(&from).chain(answer.iter().map(|(oid, _)| oid));
        let succeeds = |((oid, value), before): &(&Binding, &Oid)| oid > before && !value.is_exception();
        let objects = answer.iter().zip(before).take_while(succeeds).map(|(object, _)| object.clone()).collect();
        Self { from, objects, at }
    }

    /// The objects behind `oid`, if the first of them belongs to the column `root`.
    pub(super) fn behind(&self, oid: &Oid, root: &Oid, now: Instant) -> Option<&[Binding]> {
        if *oid < self.from || now.saturating_duration_since(self.at) > AGE_MAX {
            return None;
        }
        let behind = &self.objects[self.objects.partition_point(|(told, _)| told <= oid)..];
        let (first, _) = behind.first()?;
        first.strip_prefix(root.parts()).map(|_| behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn told(oids: &[&[u32]]) -> Vec<Binding> {
        oids.iter().map(|oid| (Oid::new(oid), Value::Integer(1))).collect()
    }

    fn check(ahead: &Ahead, behind: &[u32], column: &[u32], expect: Option<&[&[u32]]>) {
        let found = ahead.behind(&Oid::new(behind), &Oid::new(column), ahead.at);
        assert_eq!(found, expect.map(told).as_deref(), "behind {behind:?} in {column:?}");
    }

    #[test]
    fn columns_whose_rows_were_told_are_not_asked_for_again() {
        let answer = told(&[&[1, 2, 1], &[1, 2, 2], &[1, 3, 1], &[1, 3, 2], &[1, 5, 1]]);
        let ahead = Ahead::new(Oid::new(&[1, 2]), &answer, Instant::now());
        check(&ahead, &[1, 3], &[1, 3], Some(&[&[1, 3, 1], &[1, 3, 2], &[1, 5, 1]]));
        check(&ahead, &[1, 3, 1], &[1, 3], Some(&[&[1, 3, 2], &[1, 5, 1]]));
        // No row of it was told, or what is told begins behind it, or ends before.
        check(&ahead, &[1, 4], &[1, 4], None);
        check(&ahead, &[1, 1], &[1, 1], None);
        check(&ahead, &[1, 5, 1], &[1, 5], None);
    }

    #[test]
    fn an_answer_counts_as_far_as_its_objects_succeed_one_another() {
        let mut answer = told(&[&[1, 2, 1], &[1, 3, 1]]);
        answer.push((Oid::new(&[1, 3, 2]), Value::EndOfMibView));
        answer.extend(told(&[&[1, 3, 3]]));
        let ahead = Ahead::new(Oid::new(&[1, 2]), &answer, Instant::now());
        check(&ahead, &[1, 3], &[1, 3], Some(&[&[1, 3, 1]]));
        let backwards = Ahead::new(Oid::new(&[1, 2]), &told(&[&[1, 4, 1], &[1, 3, 1]]), Instant::now());
        check(&backwards, &[1, 3], &[1, 3], None);
    }

    #[test]
    fn what_was_told_long_ago_is_asked_again() {
        let ahead = Ahead::new(Oid::new(&[1, 2]), &told(&[&[1, 3, 1]]), Instant::now());
        let (column, later) = (Oid::new(&[1, 3]), ahead.at + AGE_MAX + Duration::from_millis(1));
        assert!(ahead.behind(&column, &column, later).is_none());
    }
}
