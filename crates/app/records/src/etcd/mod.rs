//! Records in etcd: several members, of which a majority must work.
//!
//! ```text
//!   EtcdRecords ── commit ──▶ commit  one transaction, with known outcome ─┐
//!               ── get, list ▶ blobs  long values in chunks ───────────────┴──▶ gateway  JSON over HTTP, to any member
//! ```
//! Reads are linearizable: they see every commit that was acknowledged before they began. Revisions are those of etcd.
//!
//! Source: etcd 3.4's API, "KV" and "Interacting with gRPC gateway"; D. Ongaro, "Consensus: bridging theory and practice", section 6.3
//! (a client's serial numbers make its commands take effect once).

mod blobs;
mod commit;
mod config;
mod format;
mod gateway;
mod keys;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use blobs::{Blob, Cleaner, Head, INLINE_LEN_MAX};
use commit::{Outcome, Work, Writer};
pub use config::{EtcdConfig, EtcdCredentials, EtcdHistory, EtcdTls};
use format::{Bytes, Compare, KeyValue, Number, Op, OpAnswer, Range, Txn};
use gateway::{Failure, Gateway, Why};
use keys::Keys;

use crate::{Change, Commit, Condition, Record, Records, RecordsError, check_lengths};

/// The layout that is written, and the newest that is read.
const FORMAT: i64 = 1;
/// Records that are read in one request.
const PAGE: usize = 64;
/// How often something begins anew that others have interfered with.
const TRIES_MAX: usize = 8;

/// Records in a cluster of etcd. Commits of one value are made one after another; each process opens its own.
pub struct EtcdRecords {
    gateway: Gateway,
    keys: Keys,
    writer: Mutex<Writer>,
    /// The revision of the format's record.
    format: AtomicU64,
    cleaner: Mutex<Cleaner>,
    abandoned_after: Duration,
    history: Mutex<Option<History>>,
}

/// How often the history is compacted, and how far it was at some time.
struct History {
    every: Duration,
    revision: u64,
    at: Instant,
}

impl EtcdRecords {
    /// Opens the records in a cluster, of which a majority of members must work.
    ///
    /// # Errors
    /// [`RecordsError::EtcdConfig`], [`RecordsError::EtcdUnreachable`], [`RecordsError::NewerEtcd`], [`RecordsError::Etcd`].
    pub fn open(config: &EtcdConfig) -> Result<Self, RecordsError> {
        let gateway = Gateway::new(config)?;
        let keys = Keys::new(&config.prefix);
        let format = open_format(&gateway, &keys)?;
        let writer = Writer::new(&gateway, &keys)?;
        let history = match config.history {
            EtcdHistory::Compact { every } => Some(History { every, revision: 0, at: Instant::now() }),
            EtcdHistory::Leave => None,
        };
        let records = Self {
            gateway,
            keys,
            writer: Mutex::new(writer),
            format: AtomicU64::new(format),
            cleaner: Mutex::default(),
            abandoned_after: config.abandoned_after,
            history: Mutex::new(history),
        };
        records.clean_up()?;
        Ok(records)
    }

    /// Removes what interrupted commits have left behind, if an earlier call saw it as well and
    /// [`EtcdConfig::abandoned_after`] has passed since; returns how many blobs and records of writers. [`Self::open`] calls
    /// it, and from time to time commits of long values do.
    ///
    /// # Errors
    /// [`RecordsError`].
    pub fn clean_up(&self) -> Result<usize, RecordsError> {
        let mut cleaner = lock(&self.cleaner);
        Ok(cleaner.clean(&self.gateway, &self.keys, self.abandoned_after)?)
    }

    /// A record from its key in etcd, as of a revision of the store.
    fn record(&self, found: KeyValue, at: u64) -> Result<Record, Failure> {
        let value = match Head::decode(&found.value.0) {
            Some(Head::Inline(value)) => value,
            Some(Head::Blob { token, len }) => blobs::read(&self.gateway, &self.keys, &token, len, at)?,
            None => {
                let why =
                    format!("{}: not written by espalierd; name another prefix", String::from_utf8_lossy(&found.key.0));
                let error = RecordsError::Etcd { endpoint: self.gateway.endpoints(), why };
                return Err(Failure { why: Why::Error(error), in_doubt: false });
            }
        };
        Ok(Record { value, revision: found.mod_revision.0 })
    }

    fn get_once(&self, key: &str) -> Result<Option<Record>, Failure> {
        let range = Range { key: Bytes(self.keys.record(key)), ..Range::default() };
        let answer = self.gateway.range(&range)?;
        let at = answer.header.revision.0;
        answer.kvs.into_iter().next().map(|found| self.record(found, at)).transpose()
    }

    /// All pages as of the first one's revision.
    fn list_once(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, Failure> {
        let (mut first, end) = self.keys.records(prefix, after);
        let mut all = Vec::new();
        let mut at = 0;
        while all.len() < limit && first < end {
            let most = PAGE.min(limit - all.len());
            let range = Range {
                key: Bytes(first),
                range_end: Some(Bytes(end.clone())),
                limit: Number(most as u64),
                revision: Number(at),
                keys_only: false,
            };
            let answer = self.gateway.range(&range)?;
            if at == 0 {
                at = answer.header.revision.0;
            }
            let is_last = answer.kvs.len() < most;
            first = answer.kvs.last().map_or(end.clone(), |last| [last.key.0.as_slice(), &[0]].concat());
            for found in answer.kvs {
                // Keys that are no text are not ours.
                if let Some(key) = self.keys.key_of_record(&found.key.0) {
                    all.push((key, self.record(found, at)?));
                }
            }
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// Uploads the values that are too long for a transaction.
    fn upload(&self, changes: &BTreeMap<&str, Option<&[u8]>>) -> Result<BTreeMap<String, Blob>, RecordsError> {
        let mut blobs = BTreeMap::new();
        for (&key, &value) in changes {
            let Some(value) = value.filter(|value| value.len() > INLINE_LEN_MAX) else { continue };
            let mut tries = 0;
            let blob = loop {
                if let Some(blob) = blobs::upload(&self.gateway, &self.keys, key, value)? {
                    break blob;
                }
                tries += 1;
                if tries == TRIES_MAX {
                    return Err(self.interfered());
                }
            };
            blobs.insert(key.to_owned(), blob);
        }
        Ok(blobs)
    }

    fn interfered(&self) -> RecordsError {
        let why =
            "long values are removed before they are complete; set a longer time after which they count as abandoned";
        RecordsError::Etcd { endpoint: self.gateway.endpoints(), why: why.to_owned() }
    }

    /// What no record needs any more; what is left when this fails is found by [`Self::clean_up`].
    fn discard<'a>(&self, tokens: impl Iterator<Item = &'a str>) {
        for token in tokens {
            let _ = blobs::remove(&self.gateway, &self.keys, token);
        }
    }

    /// Compacts the history from time to time. Whoever else has done so was right.
    fn keep_history_short(&self, revision: u64) {
        let mut history = lock(&self.history);
        let Some(before) = &mut *history else { return };
        if before.at.elapsed() < before.every {
            return;
        }
        let upto = before.revision;
        (before.revision, before.at) = (revision, Instant::now());
        drop(history);
        if upto > 0 {
            let _ = self.gateway.compact(upto);
        }
    }
}

impl Records for EtcdRecords {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        until_not_compacted(|| self.get_once(key))
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        until_not_compacted(|| self.list_once(prefix, after, limit))
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        check_lengths(conditions, changes)?;
        // A transaction of etcd changes a key once: the last change is the one that stays.
        let last: BTreeMap<&str, Option<&[u8]>> = (changes.iter())
            .map(|change| match change {
                Change::Put { key, value } => (key.as_str(), Some(value.as_slice())),
                Change::Delete { key } => (key.as_str(), None),
            })
            .collect();
        for _ in 0..TRIES_MAX {
            let uploaded = self.upload(&last)?;
            let blobs: Vec<Blob> = uploaded.values().cloned().collect();
            let operations = || last.iter().map(|(key, value)| self.operation(key, *value, &uploaded)).collect();
            let work =
                Work { conditions, format: self.format.load(Ordering::Relaxed), blobs: &blobs, changes: &operations };
            let outcome = lock(&self.writer).write(&self.gateway, &self.keys, &work)?;
            let unused = || blobs.iter().map(|blob| blob.token.as_str());
            match outcome {
                Outcome::Replaced(revision, values) => {
                    let replaced: Vec<String> = values.iter().filter_map(|value| Head::blob(value)).collect();
                    self.discard(replaced.iter().map(String::as_str));
                    self.after_commit(revision, &blobs);
                    return Ok(Commit::Done(revision));
                }
                Outcome::Commit(Commit::Done(revision)) => {
                    self.after_commit(revision, &blobs);
                    return Ok(Commit::Done(revision));
                }
                Outcome::Commit(conflict) => {
                    self.discard(unused());
                    return Ok(conflict);
                }
                Outcome::BlobsGone => self.discard(unused()),
                Outcome::FormatChanged => {
                    self.discard(unused());
                    self.format.store(open_format(&self.gateway, &self.keys)?, Ordering::Relaxed);
                }
            }
        }
        Err(self.interfered())
    }
}

impl EtcdRecords {
    fn operation(&self, key: &str, value: Option<&[u8]>, uploaded: &BTreeMap<String, Blob>) -> Op {
        let at = self.keys.record(key);
        let Some(value) = value else { return Op::take(at) };
        let head = match uploaded.get(key) {
            Some(blob) => Head::Blob { token: blob.token.clone(), len: blob.len },
            None => Head::Inline(value.to_vec()),
        };
        Op::replace(at, head.encode())
    }

    fn after_commit(&self, revision: u64, blobs: &[Blob]) {
        self.keep_history_short(revision);
        if !blobs.is_empty() && lock(&self.cleaner).is_due(self.abandoned_after) {
            // The commit is made; what could not be cleaned up now is next time.
            let _ = self.clean_up();
        }
    }
}

/// Reads as of one revision, again if that was compacted meanwhile.
fn until_not_compacted<T>(read: impl Fn() -> Result<T, Failure>) -> Result<T, RecordsError> {
    for _ in 1..TRIES_MAX {
        match read() {
            Err(Failure { why: Why::Compacted, .. }) => {}
            other => return Ok(other?),
        }
    }
    Ok(read()?)
}

/// The revision of the format's record, which is written if there is none.
fn open_format(gateway: &Gateway, keys: &Keys) -> Result<u64, RecordsError> {
    let key = keys.format();
    let txn = Txn {
        compare: vec![Compare::revision(key.clone(), 0)],
        success: vec![Op::put(key.clone(), FORMAT.to_string().into_bytes())],
        failure: vec![Op::read(key)],
    };
    let answer = gateway.txn(&txn)?.answer;
    let Some(found) = answer.responses.first().and_then(OpAnswer::found) else { return Ok(answer.header.revision.0) };
    let text = String::from_utf8_lossy(&found.value.0).into_owned();
    match text.parse::<i64>() {
        Ok(FORMAT) => Ok(found.mod_revision.0),
        Ok(newer) if newer > FORMAT => {
            Err(RecordsError::NewerEtcd { prefix: keys.prefix().to_owned(), found: newer, known: FORMAT })
        }
        _ => {
            let why =
                format!("{}format holds {text:?}, which espalierd did not write; name another prefix", keys.prefix());
            Err(RecordsError::Etcd { endpoint: gateway.endpoints(), why })
        }
    }
}

/// Whoever panicked has left nothing half done: what a writer knows of its record is checked by each transaction.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
