//! Values that are too long for one request.
//!
//! ```text
//!   1  blobs/T    = KEY                        only if there is no such blob
//!   2  chunks/T/0 = ..., chunks/T/1 = ...      each only while blobs/T is as in 1
//!   3  records/KEY = "in blob T", with all else that the commit changes: only while blobs/T is as in 1
//! ```
//! A blob is written once, under a name that nobody else chooses, and is never changed. A blob to which the record of its key does not lead
//! is waste, or its commit is still to come. It is removed in one transaction with its chunks and under the condition that the
//! record has not changed: after that neither step 2 nor step 3 can succeed for it. Readers take head and chunks as of one
//! revision of the store, so a value that is replaced meanwhile is read as it was.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    format::{Bytes, Compare, Number, Op, Range, Txn},
    gateway::{Failure, Gateway, Why},
    keys::Keys,
};
use crate::{RecordsError, token::unique_token};

/// Bytes of a chunk: with base64 and all else well below etcd's limit of 1.5 MiB for a request.
pub(super) const CHUNK_LEN: usize = 512 << 10;
/// Most bytes of a value that is in its record itself: as many records as are read at once, or changed at once, fit into a request.
pub(super) const INLINE_LEN_MAX: usize = 16 << 10;
/// Blobs and writers that are looked at in one request.
const PAGE: usize = 256;

/// What a record's key in etcd holds: the value, or where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Inline(Vec<u8>),
    Blob { token: String, len: usize },
}

impl Head {
    /// A byte that says which, then the value, or the blob's token and its length in bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Inline(value) => [b"=", value.as_slice()].concat(),
            Self::Blob { token, len } => format!("@{token} {len}").into_bytes(),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'=', value) => Some(Self::Inline(value.to_vec())),
            (b'@', rest) => {
                let (token, len) = std::str::from_utf8(rest).ok()?.split_once(' ')?;
                Some(Self::Blob { token: token.to_owned(), len: len.parse().ok()? })
            }
            _ => None,
        }
    }

    /// The blob that holds the value, if one does.
    pub(super) fn blob(bytes: &[u8]) -> Option<String> {
        match Self::decode(bytes) {
            Some(Self::Blob { token, .. }) => Some(token),
            _ => None,
        }
    }
}

/// A blob that is complete.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    pub(super) token: String,
    pub(super) len: usize,
    /// The revision under which it was begun: a commit is conditioned on it.
    pub(super) revision: u64,
}

/// Uploads a value of the record `key`; none if it was removed as abandoned before it was complete.
pub(super) fn upload(gateway: &Gateway, keys: &Keys, key: &str, value: &[u8]) -> Result<Option<Blob>, Failure> {
    let token = unique_token();
    let blob = keys.blob(&token);
    let begin = Txn {
        compare: vec![Compare::revision(blob.clone(), 0)],
        success: vec![Op::put(blob.clone(), key.into())],
        failure: vec![Op::read_revision(blob.clone())],
    };
    let begun = gateway.txn(&begin)?.answer;
    let revision = match begun.responses.first().and_then(|answer| answer.found()) {
        // A try before the one that was answered.
        Some(found) => found.mod_revision.0,
        None => begun.header.revision.0,
    };
    for (number, chunk) in value.chunks(CHUNK_LEN).enumerate() {
        let put = Txn {
            compare: vec![Compare::revision(blob.clone(), revision)],
            success: vec![Op::put(keys.chunk(&token, number), chunk.to_vec())],
            failure: vec![],
        };
        if !gateway.txn(&put)?.answer.succeeded {
            return Ok(None);
        }
    }
    Ok(Some(Blob { token, len: value.len(), revision }))
}

/// Reads a blob as of a revision of the store at which a record led to it.
pub(super) fn read(gateway: &Gateway, keys: &Keys, token: &str, len: usize, at: u64) -> Result<Vec<u8>, Failure> {
    let mut value = Vec::with_capacity(len);
    for number in 0..len.div_ceil(CHUNK_LEN) {
        let key = Bytes(keys.chunk(token, number));
        let found = gateway.range(&Range { key, revision: Number(at), ..Range::default() })?;
        value.extend(found.kvs.into_iter().flat_map(|chunk| chunk.value.0));
    }
    if value.len() != len {
        let why = format!("{}: the value is {len} bytes long, but {} are there; restore a backup", token, value.len());
        let error = RecordsError::Etcd { endpoint: gateway.endpoints(), why };
        return Err(Failure { why: Why::Error(error), in_doubt: false });
    }
    Ok(value)
}

/// Removes a blob to which no record leads, or will.
pub(super) fn remove(gateway: &Gateway, keys: &Keys, token: &str) -> Result<(), Failure> {
    let txn = Txn { success: removal(keys, token), ..Txn::default() };
    gateway.txn(&txn).map(drop)
}

fn removal(keys: &Keys, token: &str) -> Vec<Op> {
    let (first, end) = keys.chunks(token);
    vec![Op::delete(first, Some(end)), Op::delete(keys.blob(token), None)]
}

/// Removes what interrupted commits and writers that ended have left behind.
#[derive(Default)]
pub(super) struct Cleaner {
    /// What was seen, under which revision, and since when.
    seen: BTreeMap<Vec<u8>, (u64, Instant)>,
    /// When it was last at work.
    last: Option<Instant>,
}

impl Cleaner {
    /// Whether it has rested for so long.
    pub(super) fn is_due(&self, after: Duration) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= after)
    }

    /// Removes blobs to which no record leads, and records of writers, if this cleaner has seen them unchanged for
    /// `abandoned_after`. A commit whose blobs it removes wrongly begins anew.
    pub(super) fn clean(
        &mut self,
        gateway: &Gateway,
        keys: &Keys,
        abandoned_after: Duration,
    ) -> Result<usize, Failure> {
        let now = Instant::now();
        self.last = Some(now);
        let mut seen = BTreeMap::new();
        let mut removed = 0;
        for family in ["blobs/", "writers/"] {
            let (mut first, end) = keys.all(family);
            loop {
                let page = Range {
                    key: Bytes(first.clone()),
                    range_end: Some(Bytes(end.clone())),
                    limit: Number(PAGE as u64),
                    ..Range::default()
                };
                let page = gateway.range(&page)?.kvs;
                let Some(last) = page.last() else { break };
                first = [last.key.0.as_slice(), &[0]].concat();
                for found in page {
                    let (key, revision) = (found.key.0, found.mod_revision.0);
                    let since = match self.seen.get(&key) {
                        Some(&(before, since)) if before == revision => since,
                        _ => now,
                    };
                    if now.duration_since(since) >= abandoned_after {
                        let token = token_of(&key).to_owned();
                        let is_removed = match family {
                            "blobs/" => remove_waste(gateway, keys, &token, revision, &found.value.0)?,
                            _ => remove_writer(gateway, key.clone(), revision)?,
                        };
                        if is_removed {
                            removed += 1;
                            continue;
                        }
                    }
                    seen.insert(key, (revision, since));
                }
            }
        }
        self.seen = seen;
        Ok(removed)
    }
}

fn token_of(key: &[u8]) -> &str {
    let start = key.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    std::str::from_utf8(&key[start..]).unwrap_or_default()
}

/// Removes a blob unless its record leads to it.
fn remove_waste(
    gateway: &Gateway,
    keys: &Keys,
    token: &str,
    revision: u64,
    record_key: &[u8],
) -> Result<bool, Failure> {
    let record = keys.record(&String::from_utf8_lossy(record_key));
    let found = gateway.range(&Range { key: Bytes(record.clone()), ..Range::default() })?;
    let head = found.kvs.first();
    if head.and_then(|head| Head::blob(&head.value.0)).is_some_and(|of_record| of_record == token) {
        return Ok(false);
    }
    let unchanged = head.map_or(0, |head| head.mod_revision.0);
    let txn = Txn {
        compare: vec![Compare::revision(keys.blob(token), revision), Compare::revision(record, unchanged)],
        success: removal(keys, token),
        failure: vec![],
    };
    Ok(gateway.txn(&txn)?.answer.succeeded)
}

/// A writer whose record is gone, and that was only idle, makes a new one.
fn remove_writer(gateway: &Gateway, key: Vec<u8>, revision: u64) -> Result<bool, Failure> {
    let txn = Txn {
        compare: vec![Compare::revision(key.clone(), revision)],
        success: vec![Op::delete(key, None)],
        failure: vec![],
    };
    Ok(gateway.txn(&txn)?.answer.succeeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_were_written() {
        for head in
            [Head::Inline(vec![]), Head::Inline(b"@x 3".to_vec()), Head::Blob { token: "0a".to_owned(), len: 1 << 20 }]
        {
            assert_eq!(Head::decode(&head.encode()), Some(head));
        }
        for bytes in ["", "x", "@", "@a", "@a b", "@a -1"] {
            assert_eq!(Head::decode(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
