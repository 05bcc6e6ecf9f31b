//! A token that reaches into requests: whoever waits for a switch looks at it, and gives up when somebody asks to stop.
//!
//! ```text
//!   Ctrl-C, forward    stop     what is under way ends at once: no further question, no long wait
//!   Ctrl-C, going back hurry    only waits for switches that do not answer are cut short
//!   Ctrl-C, reading    a flag   what is under way ends, and whatever would begin after it
//! ```
//! A deployment that is asked to stop goes back, and needs the same switches for that. So nothing stays cancelled: each
//! piece of work remembers what the token said when it began. A program that only reads has nothing to take back: its token
//! is tied to the flag that the signal sets.

#![forbid(unsafe_code)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

/// How often a wait looks whether somebody has asked to stop.
pub const GLANCE: Duration = Duration::from_millis(100);
/// How long the answer to what was asked before is awaited once somebody has.
pub const ANSWER_MAX: Duration = Duration::from_millis(750);

/// Shared by those who ask to stop and those who wait.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    counts: Arc<[AtomicU32; 2]>,
    end: Arc<AtomicBool>,
}

/// What a token said when a piece of work began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Since([u32; 2]);

impl Cancel {
    /// A token that ends everything, whenever it began, while `end` is set.
    pub fn while_set(end: Arc<AtomicBool>) -> Self {
        Self { end, ..Self::default() }
    }

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
        self.end.load(Ordering::SeqCst) || self.now().0[0] != since.0[0]
    }

    /// Whether a wait that began then is to end.
    pub fn is_hurried(&self, since: Since) -> bool {
        self.end.load(Ordering::SeqCst) || self.now() != since
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

    #[test]
    fn nothing_begins_while_the_flag_is_set() {
        let flag = Arc::new(AtomicBool::new(false));
        let cancel = Cancel::while_set(Arc::clone(&flag));
        assert!(!cancel.is_stopped(cancel.now()));
        flag.store(true, Ordering::SeqCst);
        assert!(cancel.is_stopped(cancel.now()) && cancel.is_hurried(cancel.now()));
        flag.store(false, Ordering::SeqCst);
        assert!(!cancel.is_stopped(cancel.now()));
    }
}
