//! Records that last as long as the process.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Change, Commit, Condition, Record, Records, RecordsError, check_lengths};

/// Records in memory; clones are the same records.
#[derive(Clone, Debug, Default)]
pub struct MemoryRecords {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    revision: u64,
    records: BTreeMap<String, Record>,
}

impl MemoryRecords {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records for MemoryRecords {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        Ok(self.inner().records.get(key).cloned())
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let inner = self.inner();
        let found = inner.records.range::<str, _>((from, Bound::Unbounded));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, record)| (key.clone(), record.clone())).collect())
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        check_lengths(conditions, changes)?;
        let mut inner = self.inner();
        let fails = |condition: &&Condition| {
            inner.records.get(&condition.key).map(|record| record.revision) != condition.revision
        };
        if let Some(failed) = conditions.iter().find(fails) {
            return Ok(Commit::Conflict(failed.key.clone()));
        }
        inner.revision += 1;
        let revision = inner.revision;
        for change in changes {
            match change {
                Change::Put { key, value } => {
                    inner.records.insert(key.clone(), Record { value: value.clone(), revision });
                }
                Change::Delete { key } => {
                    inner.records.remove(key);
                }
            }
        }
        Ok(Commit::Done(revision))
    }
}
