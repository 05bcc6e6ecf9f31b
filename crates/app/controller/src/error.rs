//! Why a request to the controller comes to nothing before any switch is to blame.

use std::{io, path::Path};

use thiserror::Error;

/// Why a request comes to nothing. What switches refuse is no error but part of a result.
#[derive(Debug, Error)]
pub enum Error {
    /// The request asks for something that cannot be; the message names the way out.
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
    /// The whole of it in one line.
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
