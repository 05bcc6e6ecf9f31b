//! A token that reaches into requests: whoever waits for a switch looks at it, and gives up when somebody asks to stop.
//!
//! ```text
//!   Ctrl-C, forward    stop     what is under way ends at once: no further question, no long wait
//!   Ctrl-C, going back hurry    only waits for switches that do not answer are cut short
//! ```
//! A deployment that is asked to stop goes back, and needs the same switches for that. So nothing stays cancelled: each
//! piece of work remembers what the token said when it began.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Shared by those who ask to stop and those who wait.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    counts: Arc<[AtomicU32; 2]>,
}

/// What a token said when a piece of work began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Since([u32; 2]);

impl Cancel {
    /// Ends what is under way.
    pub fn stop(&self) {
        self.counts[0].fetch_add(1, Ordering::SeqCst);
    }

    /// Cuts waits short, and lets everything else go on.
    pub fn hurry(&self) {
        self.counts[1].fetch_add(1, Ordering::SeqCst);
    }

    /// What it says now.
    pub fn now(&self) -> Since {
        Since([0, 1].map(|at| self.counts[at].load(Ordering::SeqCst)))
    }

    /// Whether work that began then is to end.
    pub fn is_stopped(&self, since: Since) -> bool {
        self.now().0[0] != since.0[0]
    }

    /// Whether a wait that began then is to end.
    pub fn is_hurried(&self, since: Since) -> bool {
        self.now() != since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_afterwards_goes_on() {
        let cancel = Cancel::default();
        let (other, before) = (cancel.clone(), cancel.now());
        other.hurry();
        assert_eq!((cancel.is_stopped(before), cancel.is_hurried(before)), (false, true));
        other.stop();
        assert!(cancel.is_stopped(before));
        let after = cancel.now();
        assert!(!cancel.is_stopped(after) && !cancel.is_hurried(after));
    }
}
