//! Why records cannot be read or written.

use std::path::PathBuf;

use thiserror::Error;

use crate::{KEY_LEN_MAX, VALUE_LEN_MAX};

/// Why records cannot be read or written; the message names the file and the way out.
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
}
