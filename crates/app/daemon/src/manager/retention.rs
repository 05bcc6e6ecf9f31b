//! Old plans and proposals, forgotten.

use super::Manager;
use crate::{
    archive::ArchiveError,
    core::retention::{Retention, sort_out},
};

/// Seconds between two times that old plans and proposals are forgotten.
const EVERY_S: u64 = 6 * 3600;

impl Manager {
    /// Forgets plans and proposals that are kept for nothing any more, if it is time: after the start, and every six hours.
    ///
    /// # Errors
    /// [`ArchiveError`]; what was not forgotten is next time.
    pub fn forget_old(&self) -> Result<(), ArchiveError> {
        let now_s = self.now_s();
        let store = self.config().store.clone();
        {
            let mut inner = self.inner();
            // A clock that was set back does not keep everything until it has caught up.
            if inner.forgot_s.is_some_and(|at_s| (at_s..at_s.saturating_add(EVERY_S)).contains(&now_s)) {
                return Ok(());
            }
            inner.forgot_s = Some(now_s);
        }
        let _keeping = self.keeping();
        let retention = Retention { targets: store.keep_targets, days: store.keep_days };
        let sorted = sort_out(now_s, &self.archive.targets()?, &self.archive.proposals()?, retention);
        self.archive.forget_proposals(&sorted.forgotten)?;
        let mut plans = 0;
        for digest in self.archive.plans()?.difference(&sorted.plans) {
            self.archive.forget_plan(digest)?;
            plans += 1;
        }
        if plans > 0 || !sorted.forgotten.is_empty() {
            tracing::info!(plans, proposals = sorted.forgotten.len(), "old plans and proposals were removed");
        }
        Ok(())
    }
}
