//! Errors of a request to the controller. What a switch refuses is not an error but part of the result.

use std::{io, path::Path};

use thiserror::Error;

/// Why a request failed, other than by a switch's refusal, which is part of the result.
#[derive(Debug, Error)]
pub enum Error {
    /// The request cannot be carried out; the message says what to do instead.
    #[error("{0}")]
    Request(String),
    /// A file or folder of the store, or the credentials, cannot be read or written.
    #[error("{what}")]
    File {
        /// Which, or what was to be done with it.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The message with its causes, in one line.
    pub fn words(&self) -> String {
        match self {
            Self::Request(message) => message.clone(),
            Self::File { what, source } => format!("{what}: {source}"),
        }
    }
}

/// Says of an I/O error which file it is about.
pub(crate) trait OnFile<T> {
    fn on(self, path: &Path) -> Result<T, Error>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn on(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::File { what: path.display().to_string(), source })
    }
}
