//! Records that only the holder of a lease changes.

use std::sync::Arc;

use crate::{Change, Commit, Condition, Held, Record, Records, RecordsError};

/// Records that are changed only while nobody else has acquired a lease.
pub struct FencedRecords {
    records: Arc<dyn Records>,
    fence: Condition,
}

impl FencedRecords {
    /// Records behind the fence of a lease that is held.
    pub fn new(records: Arc<dyn Records>, held: &Held) -> Self {
        Self { records, fence: held.fence() }
    }
}

impl Records for FencedRecords {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        self.records.get(key)
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        self.records.list(prefix, after, limit)
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        let conditions: Vec<Condition> = conditions.iter().chain([&self.fence]).cloned().collect();
        match self.records.commit(&conditions, changes)? {
            Commit::Conflict(key) if key == self.fence.key => Err(RecordsError::LeaseLost { key }),
            done => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Acquired, Lease, ManualClock, MemoryRecords};

    #[test]
    fn whoever_lost_the_lease_changes_nothing() {
        let (records, clock) = (Arc::new(MemoryRecords::default()), Arc::new(ManualClock::default()));
        let ttl = Duration::from_secs(3);
        let lease = |holder: &str| {
            Lease::new(Arc::clone(&records) as Arc<_>, Arc::clone(&clock) as Arc<_>, "writer", holder, ttl)
        };
        let (mut first, mut second) = (lease("a"), lease("b"));
        let Ok(Acquired::Held(held)) = first.acquire() else { panic!("it is free") };
        let fenced = FencedRecords::new(Arc::clone(&records) as Arc<_>, &held);
        let put = |value: &str| fenced.commit(&[Condition::absent("other")], &[Change::put("key", value)]);
        assert!(matches!(put("1"), Ok(Commit::Done(_))));
        assert!(matches!(second.acquire(), Ok(Acquired::Taken { .. })));
        clock.advance(2 * ttl);
        assert!(matches!(second.acquire(), Ok(Acquired::Held(_))));
        assert!(matches!(put("2"), Err(RecordsError::LeaseLost { .. })));
        assert_eq!(fenced.get("key").expect("memory").map(|record| record.value), Some(b"1".to_vec()));
    }
}
