//! Why an experiment fails.

use std::io;

use files::{ReadError, WriteError};
use thiserror::Error;

/// Why a request fails.
#[derive(Debug, Error)]
pub enum Error {
    /// The request or a file that it names is at fault; the message says where and what to do.
    #[error("{0}")]
    Request(String),
    /// A file or folder cannot be made or read.
    #[error("{what}")]
    File {
        /// What was to be done, and with which.
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Request(error.to_string())
    }
}

/// Says of an I/O error what was to be done with which file.
pub(crate) trait OnFile<T> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::File { what: what(), source })
    }
}
