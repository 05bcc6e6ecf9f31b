//! Whole columns of tables, whatever the device makes of the question.
//!
//! ```text
//!   GETBULK ×40 ─ tooBig, genErr, silence ─▶ ×20 ─▶ ×10 ─▶ ×5 ─▶ ×2 ─▶ GETNEXT
//! ```
//! Some agents answer large GETBULKs with errors or not at all, so the size is halved until they do. An agent that goes
//! backwards, or never ends, is cut short: identifiers must grow, no table has more than [`ROWS_MAX`] rows or more octets
//! than [`OCTETS_MAX`], and none takes longer than [`TIME_MAX`].

use std::time::{Duration, Instant};

use crate::{Column, Link, Oid, RowIndex, Session, SessionError, Value, wire::ErrorStatus};

/// Most rows that a table may have: all the entries that the largest switch known holds.
pub const ROWS_MAX: usize = 1 << 20;
/// Most octets that a table's values may have together: a thousand VLANs of a thousand ports, many times over.
pub const OCTETS_MAX: usize = 64 << 20;
/// Longest time that a table may take, however slowly it comes.
pub const TIME_MAX: Duration = Duration::from_secs(600);
/// Rows asked for at once, to begin with.
const REPETITIONS: i32 = 40;

/// How large a question a device answers; it is learned once and kept for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkSize(i32);

impl BulkSize {
    /// Rows that are asked for at once.
    pub fn repetitions(self) -> i32 {
        self.0
    }
}

impl Default for BulkSize {
    fn default() -> Self {
        Self(REPETITIONS)
    }
}

/// Reads a column: for each row its index and value, in the table's order. Rows whose index makes no sense are left out.
///
/// # Errors
/// [`SessionError`]; [`SessionError::Nonsense`] for a walk that goes backwards or does not end.
pub fn walk<L: Link, I: RowIndex>(
    session: &mut Session<L>,
    size: &mut BulkSize,
    column: &Column,
) -> Result<Vec<(I, Value)>, SessionError> {
    let root = column.root();
    let mut at = root.clone();
    let mut rows: Vec<(I, Value)> = Vec::new();
    let (mut seen, mut octets) = (0_usize, 0_usize);
    let until = Instant::now() + TIME_MAX;
    loop {
        if Instant::now() > until {
            return Err(SessionError::Nonsense(format!(
                "{} does not end within {} s",
                column.name,
                TIME_MAX.as_secs()
            )));
        }
        let found = next(session, size, &root, &at)?;
        if found.is_empty() {
            return Err(SessionError::Nonsense(format!("no object at all behind {at}")));
        }
        for (oid, value) in found {
            if matches!(value, Value::EndOfMibView) || oid.strip_prefix(root.parts()).is_none() {
                return Ok(rows);
            }
            if oid <= at {
                return Err(SessionError::Nonsense(format!("{oid} comes after {at}: the walk goes backwards")));
            }
            octets += value.octets().map_or(0, <[u8]>::len);
            if octets > OCTETS_MAX {
                return Err(SessionError::Nonsense(format!("{} has more than {OCTETS_MAX} octets", column.name)));
            }
            if let Some(index) = column.index_of::<I>(&oid) {
                if !value.is_exception() {
                    rows.push((index, value));
                }
            }
            at = oid;
            seen += 1;
            if seen > ROWS_MAX {
                return Err(SessionError::Nonsense(format!("{} has more than {ROWS_MAX} rows", column.name)));
            }
        }
    }
}

fn next<L: Link>(
    session: &mut Session<L>,
    size: &mut BulkSize,
    root: &Oid,
    at: &Oid,
) -> Result<Vec<(Oid, Value)>, SessionError> {
    while size.0 > 1 {
        match session.walk_on(root, at, size.0) {
            Err(SessionError::Refused { status: ErrorStatus::TooBig | ErrorStatus::GenErr, .. }) => size.0 /= 2,
            // A device that chokes on a large answer may just stay silent; one that is gone does so for GETNEXT as well.
            Err(SessionError::Silent { .. }) if size.0 == REPETITIONS => size.0 = 1,
            result => return result,
        }
    }
    match session.get_next(std::slice::from_ref(at)) {
        // Version 1's way to say that there is nothing behind, which some agents keep.
        Err(SessionError::Refused { status: ErrorStatus::NoSuchName, .. }) => {
            Ok(vec![(at.clone(), Value::EndOfMibView)])
        }
        result => result,
    }
}
