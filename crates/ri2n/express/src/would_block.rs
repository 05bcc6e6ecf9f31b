//! Calls on a socket pair that had nothing to do.

use std::io;

/// Whether a call on the pair only had nothing to do.
pub(crate) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
