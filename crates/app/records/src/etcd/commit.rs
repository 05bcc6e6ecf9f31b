//! Commits whose outcome is known.
//!
//! ```text
//!   if   writers/W is as this writer wrote it last, every blob is there, every condition holds
//!   then writers/W = number of this transaction, all changes
//!   else read all of that
//! ```
//! Only one writer writes `writers/W`. A transaction can therefore be sent any number of times, to any number of members, and at
//! most one copy has an effect: that one changes `writers/W`, and every other fails. When a copy fails because another one was
//! faster, `writers/W` holds its number. A conflict counts only if no other copy can still succeed: after a doubt, a transaction
//! that changes nothing but `writers/W` puts an end to the others.

use super::{
    blobs::Blob,
    format::{Compare, Op, OpAnswer, Txn, TxnAnswer},
    gateway::{Answered, Failure, Gateway, Why},
    keys::Keys,
};
use crate::{Commit, Condition, RecordsError, token::unique_token};

/// How often a writer learns anew what its record's revision is before it gives up: each time somebody has interfered.
const TRIES_MAX: usize = 16;

/// One who writes, one transaction after another.
pub(super) struct Writer {
    key: Vec<u8>,
    /// Under which revision its record was written last, as far as it knows.
    revision: u64,
    /// Numbers of its transactions.
    count: u64,
}

/// What a transaction is to do.
pub(super) struct Work<'a> {
    pub(super) conditions: &'a [Condition],
    /// The revision of the format's record.
    pub(super) format: u64,
    pub(super) blobs: &'a [Blob],
    pub(super) changes: &'a dyn Fn() -> Vec<Op>,
}

/// What came of it.
pub(super) enum Outcome {
    Commit(Commit),
    /// Done, and these values were replaced.
    Replaced(u64, Vec<Vec<u8>>),
    /// A blob was removed as abandoned: nothing was changed.
    BlobsGone,
    /// The format's record has changed: nothing was changed.
    FormatChanged,
}

/// Why a transaction failed, as of its own revision.
enum Verdict {
    DoneBefore(u64),
    WriterMoved(u64),
    WriterGone,
    Not(Outcome),
}

impl Writer {
    /// A new writer, with its record.
    pub(super) fn new(gateway: &Gateway, keys: &Keys) -> Result<Self, Failure> {
        let key = keys.writer(&unique_token());
        let txn = Txn {
            compare: vec![Compare::revision(key.clone(), 0)],
            success: vec![Op::put(key.clone(), encode(0))],
            failure: vec![Op::read(key.clone())],
        };
        let answer = gateway.txn(&txn)?.answer;
        let found = answer.responses.first().and_then(OpAnswer::found);
        let revision = found.map_or(answer.header.revision.0, |found| found.mod_revision.0);
        Ok(Self { key, revision, count: 0 })
    }

    /// Carries a transaction out.
    pub(super) fn write(&mut self, gateway: &Gateway, keys: &Keys, work: &Work<'_>) -> Result<Outcome, RecordsError> {
        for _ in 0..TRIES_MAX {
            self.count += 1;
            let asked = gateway.txn(&self.transaction(keys, work));
            let Answered { answer, in_doubt } = asked.map_err(|failure| unknown(gateway, failure))?;
            if answer.succeeded {
                self.revision = answer.header.revision.0;
                let replaced = answer.responses.iter().flat_map(OpAnswer::replaced);
                return Ok(Outcome::Replaced(self.revision, replaced.map(|found| found.value.0.clone()).collect()));
            }
            match self.verdict(&answer, work) {
                Verdict::DoneBefore(revision) => {
                    self.revision = revision;
                    return Ok(Outcome::Commit(Commit::Done(revision)));
                }
                Verdict::WriterMoved(revision) => self.revision = revision,
                Verdict::WriterGone => {
                    *self = Self::new(gateway, keys)?;
                    if in_doubt {
                        return Err(gone(gateway));
                    }
                }
                Verdict::Not(outcome) => {
                    if in_doubt {
                        if let Some(revision) = self.fence(gateway, keys)? {
                            return Ok(Outcome::Commit(Commit::Done(revision)));
                        }
                    }
                    return Ok(outcome);
                }
            }
        }
        let why = "another program writes this writer's record".to_owned();
        Err(RecordsError::Etcd { endpoint: gateway.endpoints(), why })
    }

    fn transaction(&self, keys: &Keys, work: &Work<'_>) -> Txn {
        let condition = |condition: &Condition| (keys.record(&condition.key), condition.revision.unwrap_or(0));
        let compared: Vec<(Vec<u8>, u64)> = [(self.key.clone(), self.revision), (keys.format(), work.format)]
            .into_iter()
            .chain(work.blobs.iter().map(|blob| (keys.blob(&blob.token), blob.revision)))
            .chain(work.conditions.iter().map(condition))
            .collect();
        let mut success = vec![Op::put(self.key.clone(), encode(self.count))];
        success.extend((work.changes)());
        let mut failure = vec![Op::read(self.key.clone())];
        failure.extend(compared.iter().skip(1).map(|(key, _)| Op::read_revision(key.clone())));
        let compare = compared.into_iter().map(|(key, revision)| Compare::revision(key, revision)).collect();
        Txn { compare, success, failure }
    }

    /// Reads the answers to what [`Self::transaction`] asks in its `failure`.
    fn verdict(&self, answer: &TxnAnswer, work: &Work<'_>) -> Verdict {
        let mut found = answer.responses.iter().map(OpAnswer::found);
        let Some(own) = found.next().flatten() else { return Verdict::WriterGone };
        if own.mod_revision.0 != self.revision && own.value.0 == encode(self.count) {
            return Verdict::DoneBefore(own.mod_revision.0);
        }
        let mut revision = || found.next().flatten().map_or(0, |found| found.mod_revision.0);
        if revision() != work.format {
            return Verdict::Not(Outcome::FormatChanged);
        }
        // All of them, to come to those of the conditions.
        let is_gone = work.blobs.iter().filter(|blob| revision() != blob.revision).count() > 0;
        if is_gone {
            return Verdict::Not(Outcome::BlobsGone);
        }
        for condition in work.conditions {
            if revision() != condition.revision.unwrap_or(0) {
                return Verdict::Not(Outcome::Commit(Commit::Conflict(condition.key.clone())));
            }
        }
        Verdict::WriterMoved(own.mod_revision.0)
    }

    /// Makes sure that no copy of the last transaction succeeds any more; the revision under which one has.
    fn fence(&mut self, gateway: &Gateway, keys: &Keys) -> Result<Option<u64>, RecordsError> {
        let last = self.count;
        self.count += 1;
        let txn = Txn {
            compare: vec![Compare::revision(self.key.clone(), self.revision)],
            success: vec![Op::put(self.key.clone(), encode(self.count))],
            failure: vec![Op::read(self.key.clone())],
        };
        let asked = gateway.txn(&txn);
        let doubtful = |failure: Failure| unknown(gateway, Failure { in_doubt: true, ..failure });
        let answer = asked.map_err(doubtful)?.answer;
        if answer.succeeded {
            self.revision = answer.header.revision.0;
            return Ok(None);
        }
        let Some(found) = answer.responses.first().and_then(OpAnswer::found) else {
            *self = Self::new(gateway, keys)?;
            return Err(gone(gateway));
        };
        self.revision = found.mod_revision.0;
        Ok((found.value.0 == encode(last)).then_some(self.revision))
    }
}

fn encode(count: u64) -> Vec<u8> {
    count.to_string().into_bytes()
}

/// A failure of a commit that may have been carried out says so.
fn unknown(gateway: &Gateway, failure: Failure) -> RecordsError {
    match failure {
        Failure { in_doubt: true, why: Why::Error(error) } => {
            let why = match error {
                RecordsError::EtcdUnreachable { why, .. } => why,
                other => other.to_string(),
            };
            RecordsError::Unknown { endpoints: gateway.endpoints(), why }
        }
        other => other.into(),
    }
}

fn gone(gateway: &Gateway) -> RecordsError {
    let why = "the record of this writer was removed while it was waiting".to_owned();
    RecordsError::Unknown { endpoints: gateway.endpoints(), why }
}
