//! Why records cannot be read or written.

use std::path::PathBuf;

use thiserror::Error;

use crate::{CHANGES_MAX, CONDITIONS_MAX, KEY_LEN_MAX, VALUE_LEN_MAX};

/// Why records cannot be read or written; the message names the file or the endpoint, and the way out. Nothing was changed, but for
/// [`RecordsError::Unknown`].
#[derive(Debug, Error)]
pub enum RecordsError {
    /// There is no room.
    #[error("{path}: the disk is full, and nothing was written; make room there")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// A newer version wrote the file.
    #[error(
        "{path}: a newer version wrote this file (format {found}, this one reads {known}); run that version, or restore a backup from before"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The file is none of ours.
    #[error("{path}: this SQLite file was not written by espalierd; name another one")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite fails.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A key is empty or too long.
    #[error("a key has 1 to {KEY_LEN_MAX} bytes, not {len}")]
    Key {
        /// Its length.
        len: usize,
    },
    /// A value is too long.
    #[error("{key}: a value has at most {VALUE_LEN_MAX} bytes, not {len}")]
    Value {
        /// Its key.
        key: String,
        /// Its length.
        len: usize,
    },
    /// A commit has too many conditions or changes.
    #[error(
        "a commit has at most {CONDITIONS_MAX} conditions and {CHANGES_MAX} changes, not {conditions} and {changes}; make several"
    )]
    Commit {
        /// Its conditions.
        conditions: usize,
        /// Its changes.
        changes: usize,
    },
    /// The record of a lease cannot be understood.
    #[error("the lease {key} cannot be understood: {why}; delete its record while no espalierd runs")]
    Lease {
        /// Its key.
        key: String,
        /// Why.
        why: String,
    },
    /// Somebody else has acquired the lease.
    #[error("{key}: another process holds the lease; nothing was written")]
    LeaseLost {
        /// The lease.
        key: String,
    },
    /// What is configured for etcd cannot be used.
    #[error("etcd: {what}")]
    EtcdConfig {
        /// What is wrong, and the way out.
        what: String,
    },
    /// No member of etcd has answered.
    #[error(
        "etcd: no answer ({why}); see whether a majority of members works: etcdctl --endpoints={endpoints} endpoint health"
    )]
    EtcdUnreachable {
        /// All endpoints, separated by commas.
        endpoints: String,
        /// What the last one did.
        why: String,
    },
    /// etcd did not say in time whether a commit was made. It may also be made later, but not after the next commit of the
    /// same [`Records`](crate::Records).
    #[error(
        "etcd at {endpoints}: whether a commit was made is not known ({why}); read the records again before it is repeated"
    )]
    Unknown {
        /// All endpoints, separated by commas.
        endpoints: String,
        /// Why it is not known.
        why: String,
    },
    /// etcd's quota is used up.
    #[error(
        "{endpoint}: the quota of etcd is used up, and nothing was written; compact and defragment it, then \
         etcdctl --endpoints={endpoint} alarm disarm"
    )]
    EtcdFull {
        /// Who says so.
        endpoint: String,
    },
    /// A newer version wrote the keys.
    #[error(
        "etcd: a newer version wrote the keys below {prefix} (format {found}, this one reads {known}); run that version, or name another prefix"
    )]
    NewerEtcd {
        /// What the keys begin with.
        prefix: String,
        /// Their format.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// etcd refuses a request, or holds what cannot be understood.
    #[error("{endpoint}: {why}")]
    Etcd {
        /// Who says so.
        endpoint: String,
        /// What it says.
        why: String,
    },
}
