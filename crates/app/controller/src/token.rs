//! Cancellation that reaches every request to a switch.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use cancel::Cancel;

/// Asks a request to the controller to stop. All clones are one token.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken {
    asked: Arc<AtomicBool>,
}

impl CancellationToken {
    /// A token that is set by whoever sets `asked`, such as a signal's handler.
    pub fn of(asked: Arc<AtomicBool>) -> Self {
        Self { asked }
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::SeqCst);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether it was asked to stop since this was asked last.
    pub(crate) fn take(&self) -> bool {
        self.asked.swap(false, Ordering::SeqCst)
    }

    /// A token that ends requests to switches once it was asked to stop.
    pub fn for_requests(&self) -> Cancel {
        Cancel::while_set(Arc::clone(&self.asked))
    }
}
