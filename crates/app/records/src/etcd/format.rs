//! Requests to etcd's JSON gateway and its answers. Bytes are in base64, numbers of 64 bits are strings, and what is zero,
//! false or empty is left out of answers.
//!
//! Source: etcd 3.4, `etcdserver/etcdserverpb/rpc.proto`; the mapping of proto3 to JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Bytes of a key or a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

/// A number of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// `/v3/kv/range`: one key, or those from `key` up to `range_end`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Range {
    pub(super) key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range_end: Option<Bytes>,
    /// Most keys; 0: all.
    pub(super) limit: Number,
    /// As of which revision; 0: the newest.
    pub(super) revision: Number,
    pub(super) keys_only: bool,
}

/// `/v3/kv/txn`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Txn {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Op>,
    pub(super) failure: Vec<Op>,
}

/// The key was written last under this revision; 0: there is none.
#[derive(Debug, Serialize)]
pub(super) struct Compare {
    key: Bytes,
    target: &'static str,
    result: &'static str,
    mod_revision: Number,
}

impl Compare {
    pub(super) fn revision(key: Vec<u8>, revision: u64) -> Self {
        Self { key: Bytes(key), target: "MOD", result: "EQUAL", mod_revision: Number(revision) }
    }
}

/// One operation of a transaction.
#[derive(Debug, Serialize)]
pub(super) enum Op {
    #[serde(rename = "request_range")]
    Range(Range),
    #[serde(rename = "request_put")]
    Put(Put),
    #[serde(rename = "request_delete_range")]
    DeleteRange(DeleteRange),
}

#[derive(Debug, Serialize)]
pub(super) struct Put {
    key: Bytes,
    value: Bytes,
    prev_kv: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct DeleteRange {
    key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    range_end: Option<Bytes>,
    prev_kv: bool,
}

impl Op {
    /// Revision and value of a key.
    pub(super) fn read(key: Vec<u8>) -> Self {
        Self::Range(Range { key: Bytes(key), ..Range::default() })
    }

    /// Revision of a key.
    pub(super) fn read_revision(key: Vec<u8>) -> Self {
        Self::Range(Range { key: Bytes(key), keys_only: true, ..Range::default() })
    }

    pub(super) fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self::Put(Put { key: Bytes(key), value: Bytes(value), prev_kv: false })
    }

    /// Writes, and answers with what was there before.
    pub(super) fn replace(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self::Put(Put { key: Bytes(key), value: Bytes(value), prev_kv: true })
    }

    /// Deletes, and answers with what was there before.
    pub(super) fn take(key: Vec<u8>) -> Self {
        Self::DeleteRange(DeleteRange { key: Bytes(key), range_end: None, prev_kv: true })
    }

    pub(super) fn delete(key: Vec<u8>, range_end: Option<Vec<u8>>) -> Self {
        Self::DeleteRange(DeleteRange { key: Bytes(key), range_end: range_end.map(Bytes), prev_kv: false })
    }
}

/// `/v3/kv/compaction`.
#[derive(Debug, Serialize)]
pub(super) struct Compaction {
    pub(super) revision: Number,
}

/// `/v3/auth/authenticate`.
#[derive(Serialize)]
pub(super) struct Authenticate<'a> {
    pub(super) name: &'a str,
    pub(super) password: &'a str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Authenticated {
    pub(super) token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    /// The store's revision when it answered.
    pub(super) revision: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    pub(super) key: Bytes,
    pub(super) mod_revision: Number,
    pub(super) value: Bytes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RangeAnswer {
    pub(super) header: Header,
    pub(super) kvs: Vec<KeyValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TxnAnswer {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    pub(super) responses: Vec<OpAnswer>,
}

/// The answer to one operation: one of these.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpAnswer {
    response_range: Option<RangeAnswer>,
    response_put: Option<PutAnswer>,
    response_delete_range: Option<DeleteAnswer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PutAnswer {
    prev_kv: Option<KeyValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeleteAnswer {
    prev_kvs: Vec<KeyValue>,
}

impl OpAnswer {
    /// What a read has found.
    pub(super) fn found(&self) -> Option<&KeyValue> {
        self.response_range.as_ref()?.kvs.first()
    }

    /// What a write has replaced.
    pub(super) fn replaced(&self) -> impl Iterator<Item = &KeyValue> {
        let put = self.response_put.iter().filter_map(|put| put.prev_kv.as_ref());
        put.chain(self.response_delete_range.iter().flat_map(|deleted| &deleted.prev_kvs))
    }
}

/// What the gateway answers instead.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorAnswer {
    pub(super) message: String,
    /// A status code of gRPC.
    pub(super) code: u32,
}
