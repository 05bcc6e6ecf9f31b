//! A lease that at most one process has, over any store of records.
//!
//! ```text
//!   lease/NAME        holder, token, time to live      written when the lease is acquired, deleted when it is released
//!   lease/NAME/beat   a count                          written by each renewal
//!
//!   holder      renews ──▶ beat 7 ──▶ beat 8       and then nothing
//!   contender                         beat 8 … unchanged for the time to live: takes the lease over, if it is still beat 8
//! ```
//! No wall clock, no clock of the store and no boot identifier is compared: each side measures one duration on its own machine.
//! The holder counts the time to live from *before* it sent a renewal, a contender from *after* it read that renewal, so the
//! holder's time ends first as long as the two clocks run at the same rate to within [`RATE_MARGIN`].
//! A holder that is paused between its look at the clock and its write is caught by the second rule: the record
//! `lease/NAME` keeps its revision while the holder stays the same, so a commit under [`Held::fence`] is refused as soon as
//! somebody else has acquired the lease.
//!
//! Source: C. Gray, D. Cheriton, "Leases", SOSP 1989, section 2 (clocks need a bounded rate, not a common time); the contender's rule is
//! that of Kubernetes' leader election.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{BootTime, Change, Clock, Commit, Condition, Record, Records, RecordsError, token::unique_token};

/// By which part of the time to live a contender waits longer: clocks may differ in rate by as much (1/16).
pub const RATE_MARGIN: u32 = 16;

/// What one process does about a named lease: acquires, renews and releases it.
pub struct Lease {
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    key: String,
    beat_key: String,
    mine: Term,
    beats: u64,
    seen: Option<Sighting>,
}

/// Proof that the lease was acquired or renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    fence: Condition,
    until: BootTime,
}

/// Who has a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// This process.
    Held(Held),
    /// Another one, or one that has failed but not for long enough.
    Taken {
        /// Its name.
        holder: String,
        /// When to try again at the latest: the lease is free then, unless it has been renewed.
        retry_in: Duration,
    },
}

/// The record of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Term {
    holder: String,
    /// Tells two processes of one name apart.
    token: String,
    ttl_ms: u64,
}

/// Revisions of the two records, and since when they have been these at the latest.
struct Sighting {
    term: u64,
    beat: Option<u64>,
    since: BootTime,
}

impl Held {
    /// Until when the lease is surely held, if it is not renewed.
    pub fn until(&self) -> BootTime {
        self.until
    }

    /// Whether the lease is surely held for longer than a request takes that is sent now.
    pub fn outlasts(&self, now: BootTime, request: Duration) -> bool {
        now.after(request) < self.until
    }

    /// Holds as long as nobody else has acquired the lease and it has not been released: a condition for commits.
    pub fn fence(&self) -> Condition {
        self.fence.clone()
    }
}

impl Lease {
    /// The lease of this name. `holder` is the name that others read; `ttl` is how long they wait for a holder that fails, and
    /// must be several times as long as a commit takes. Nothing is written yet.
    pub fn new(
        records: Arc<dyn Records>,
        clock: Arc<dyn Clock>,
        name: &str,
        holder: impl Into<String>,
        ttl: Duration,
    ) -> Self {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let key = format!("lease/{name}");
        Self {
            records,
            clock,
            beat_key: format!("{key}/beat"),
            key,
            mine: Term { holder: holder.into(), token: unique_token(), ttl_ms },
            beats: 0,
            seen: None,
        }
    }

    /// Acquires the lease if it is free, or if its holder has not renewed it for its time to live, watched by this value: the
    /// caller calls again and again, several times within the time to live.
    ///
    /// # Errors
    /// [`RecordsError`]; the next call finds out whether the lease was acquired all the same.
    pub fn acquire(&mut self) -> Result<Acquired, RecordsError> {
        let found = self.records.get(&self.key)?;
        let beat = self.records.get(&self.beat_key)?;
        let Some(record) = found else { return self.take(&[Condition::absent(self.key.as_str())]) };
        let term = self.read(&record)?;
        let fence = Condition::unchanged(self.key.as_str(), Some(&record));
        if term.token == self.mine.token {
            // An earlier call whose outcome was not known, or one that was made twice.
            return match self.beat(fence)? {
                Some(held) => Ok(Acquired::Held(held)),
                None => self.taken(),
            };
        }
        let now = self.clock.now();
        let beat_revision = beat.as_ref().map(|record| record.revision);
        let since = match &self.seen {
            Some(seen) if (seen.term, seen.beat) == (record.revision, beat_revision) => seen.since,
            _ => now,
        };
        self.seen = Some(Sighting { term: record.revision, beat: beat_revision, since });
        let patience = patience(&term);
        let waited = now.since(since);
        if waited < patience {
            return Ok(Acquired::Taken { holder: term.holder, retry_in: patience - waited });
        }
        self.take(&[fence, Condition::unchanged(self.beat_key.as_str(), beat.as_ref())])
    }

    /// Extends the lease to its time to live from now on; none if somebody else has acquired it meanwhile.
    ///
    /// # Errors
    /// [`RecordsError`]; `held` remains what it was.
    pub fn renew(&mut self, held: &Held) -> Result<Option<Held>, RecordsError> {
        self.beat(held.fence())
    }

    /// Gives the lease up, if it is still held: others can acquire it at once.
    ///
    /// # Errors
    /// [`RecordsError`]; the lease then lasts for its time to live.
    pub fn release(&mut self, held: Held) -> Result<(), RecordsError> {
        let changes = [Change::delete(self.key.as_str()), Change::delete(self.beat_key.as_str())];
        // A conflict says that somebody else has it: nothing is to be released.
        self.records.commit(&[held.fence], &changes).map(drop)
    }

    /// The name of who acquired the lease last and has not released it, working or not.
    ///
    /// # Errors
    /// [`RecordsError`].
    pub fn holder(&self) -> Result<Option<String>, RecordsError> {
        let found = self.records.get(&self.key)?;
        found.map(|record| self.read(&record).map(|term| term.holder)).transpose()
    }

    fn take(&mut self, conditions: &[Condition]) -> Result<Acquired, RecordsError> {
        let sent = self.clock.now();
        self.seen = None;
        let term = serde_json::to_vec(&self.mine).unwrap_or_default();
        let changes = [Change::put(self.key.as_str(), term), self.next_beat()];
        match self.records.commit(conditions, &changes)? {
            Commit::Done(revision) => {
                let fence = Condition { key: self.key.clone(), revision: Some(revision) };
                Ok(Acquired::Held(Held { fence, until: sent.after(self.ttl()) }))
            }
            Commit::Conflict(_) => self.taken(),
        }
    }

    fn beat(&mut self, fence: Condition) -> Result<Option<Held>, RecordsError> {
        let sent = self.clock.now();
        let beat = self.next_beat();
        let done = self.records.commit(std::slice::from_ref(&fence), &[beat])?;
        Ok(matches!(done, Commit::Done(_)).then(|| Held { fence, until: sent.after(self.ttl()) }))
    }

    fn next_beat(&mut self) -> Change {
        self.beats += 1;
        Change::put(self.beat_key.as_str(), self.beats.to_string())
    }

    /// Another process was faster.
    fn taken(&mut self) -> Result<Acquired, RecordsError> {
        self.seen = None;
        let found = self.records.get(&self.key)?;
        let (holder, retry_in) = match found.map(|record| self.read(&record)).transpose()? {
            Some(term) => (term.holder.clone(), patience(&term)),
            None => (String::new(), Duration::ZERO),
        };
        Ok(Acquired::Taken { holder, retry_in })
    }

    fn read(&self, record: &Record) -> Result<Term, RecordsError> {
        serde_json::from_slice(&record.value)
            .map_err(|why| RecordsError::Lease { key: self.key.clone(), why: why.to_string() })
    }

    fn ttl(&self) -> Duration {
        Duration::from_millis(self.mine.ttl_ms)
    }
}

/// How long a contender waits for a sign of life.
fn patience(term: &Term) -> Duration {
    let ttl = Duration::from_millis(term.ttl_ms);
    ttl.saturating_add(ttl / RATE_MARGIN)
}
