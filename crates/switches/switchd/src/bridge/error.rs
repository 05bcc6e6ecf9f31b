//! Why a bridge cannot be served as a managed switch.

use std::io;

use thiserror::Error;

/// Why a bridge cannot be served as a managed switch.
#[derive(Debug, Error)]
pub enum SwitchdError {
    /// What was asked for cannot be; the message names the way out.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel or a file system refused.
    #[error("{operation} {device}: {step}: {source}")]
    Io {
        /// What is being done.
        operation: &'static str,
        /// The bridge, file or socket.
        device: String,
        /// At which step.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Says where an I/O error happened.
pub(super) trait Context<T> {
    /// Wraps the error with operation, device and step.
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, SwitchdError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, SwitchdError> {
        self.map_err(|error| SwitchdError::Io { operation, device: device.to_owned(), step, source: error.into() })
    }
}
