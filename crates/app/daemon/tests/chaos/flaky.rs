//! A store that fails for a while, with or without having done what it was asked.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use records::{Change, Commit, Condition, MemoryRecords, Record, Records, RecordsError};

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mood {
    Works,
    /// Reads work, and there is no room for commits.
    Full,
    /// Nothing is answered, and nothing done.
    Unreachable,
    /// Reads work; commits are made, and whether they were is not said.
    Silent,
}

/// A store that fails for a while. Clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct FlakyRecords {
    records: MemoryRecords,
    mood: Arc<AtomicU8>,
}

impl FlakyRecords {
    pub(crate) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    fn mood(&self) -> Mood {
        let moods = [Mood::Works, Mood::Full, Mood::Unreachable, Mood::Silent];
        moods[usize::from(self.mood.load(Ordering::SeqCst))]
    }

    fn reachable(&self) -> Result<(), RecordsError> {
        match self.mood() {
            Mood::Unreachable => {
                Err(RecordsError::EtcdUnreachable { endpoints: "here".to_owned(), why: "no majority".to_owned() })
            }
            _ => Ok(()),
        }
    }
}

impl Records for FlakyRecords {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        self.reachable()?;
        self.records.get(key)
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        self.reachable()?;
        self.records.list(prefix, after, limit)
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        self.reachable()?;
        match self.mood() {
            Mood::Full => Err(RecordsError::Full { path: "here".into() }),
            Mood::Silent => {
                self.records.commit(conditions, changes)?;
                Err(RecordsError::Unknown { endpoints: "here".to_owned(), why: "no answer".to_owned() })
            }
            Mood::Works | Mood::Unreachable => self.records.commit(conditions, changes),
        }
    }
}
