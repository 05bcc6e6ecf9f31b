//! Records by key, changed together or not at all: what a controller remembers.
//!
//! ```text
//!   get, list ◀─ records: key ─▶ value, revision
//!   commit(conditions, changes): every condition holds ─▶ all changes, under one new revision
//!                                one does not          ─▶ none, and its key
//! ```
//! Revisions grow with each commit, and a record has that of the commit that wrote it. Whoever writes back what it has
//! read names the revision that it read, so that nothing is overwritten that somebody else wrote meanwhile. Source: the
//! transactions of etcd's key space.
//!
//! | | survives | shared by |
//! |---|---|---|
//! | [`MemoryRecords`] | nothing | threads |
//! | [`SqliteRecords`] | crashes | processes of one machine |
//! | [`EtcdRecords`] | the loss of a minority of members | machines |
//!
//! Over any of them a [`Lease`] says which of several processes acts, and its [`Held::fence`] is a condition for what it commits.
#![forbid(unsafe_code)]

mod clock;
mod error;
mod etcd;
mod fenced;
mod lease;
mod memory;
mod sqlite;
mod token;

pub use clock::{BootTime, Clock, ManualClock, SystemClock};
pub use error::RecordsError;
pub use etcd::{EtcdConfig, EtcdCredentials, EtcdHistory, EtcdRecords, EtcdTls};
pub use fenced::FencedRecords;
pub use lease::{Acquired, Held, Lease, RATE_MARGIN};
pub use memory::MemoryRecords;
pub use sqlite::SqliteRecords;

/// Most bytes of a value.
pub const VALUE_LEN_MAX: usize = 64 << 20;
/// Most bytes of a key.
pub const KEY_LEN_MAX: usize = 512;
/// Most conditions of a commit.
pub const CONDITIONS_MAX: usize = 32;
/// Most changes of a commit. With the conditions they stay below the 128 operations that etcd takes in a transaction.
pub const CHANGES_MAX: usize = 64;

/// A value, and the revision of the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The value.
    pub value: Vec<u8>,
    /// At least 1.
    pub revision: u64,
}

/// What must hold for a commit: the record of `key` has this revision, or there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which record.
    pub key: String,
    /// Its revision; none if there is to be no record.
    pub revision: Option<u64>,
}

impl Condition {
    /// There is no record of this key.
    pub fn absent(key: impl Into<String>) -> Self {
        Self { key: key.into(), revision: None }
    }

    /// The record of this key is as it was read: `found`, or none.
    pub fn unchanged(key: impl Into<String>, found: Option<&Record>) -> Self {
        Self { key: key.into(), revision: found.map(|record| record.revision) }
    }
}

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes a record, in place of an older one.
    Put {
        /// Its key.
        key: String,
        /// Its value.
        value: Vec<u8>,
    },
    /// Deletes a record, if there is one.
    Delete {
        /// Its key.
        key: String,
    },
}

impl Change {
    /// Writes a record.
    pub fn put(key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self::Put { key: key.into(), value: value.into() }
    }

    /// Deletes a record.
    pub fn delete(key: impl Into<String>) -> Self {
        Self::Delete { key: key.into() }
    }

    fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// How a commit came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// All changes were made, under this revision.
    Done(u64),
    /// Nothing was changed: the condition on this key does not hold.
    Conflict(String),
}

/// Records by key.
pub trait Records: Send + Sync {
    /// The record of a key.
    ///
    /// # Errors
    /// [`RecordsError`], as all of these.
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError>;

    /// At most `limit` records whose keys begin with `prefix` and come behind `after`, in the order of their keys' bytes.
    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError>;

    /// Makes all changes, in their order, if every condition holds. Once it says so they outlast a crash. The revision of
    /// [`Commit::Done`] is greater than that of every commit before, also if nothing is changed.
    ///
    /// # Errors
    /// Nothing was changed, but for [`RecordsError::Unknown`].
    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError>;
}

/// Refuses keys and values that are too long for any store, and commits of too many parts.
fn check_lengths(conditions: &[Condition], changes: &[Change]) -> Result<(), RecordsError> {
    if conditions.len() > CONDITIONS_MAX || changes.len() > CHANGES_MAX {
        return Err(RecordsError::Commit { conditions: conditions.len(), changes: changes.len() });
    }
    for change in changes {
        let key = change.key();
        if key.is_empty() || key.len() > KEY_LEN_MAX {
            return Err(RecordsError::Key { len: key.len() });
        }
        if let Change::Put { value, .. } = change {
            if value.len() > VALUE_LEN_MAX {
                return Err(RecordsError::Value { key: key.to_owned(), len: value.len() });
            }
        }
    }
    Ok(())
}

/// The first key behind all that begin with `prefix`; none if there is no end.
fn end_of(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
