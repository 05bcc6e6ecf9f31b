//! Work counted in steps, so that the same number of steps gives the same plan on every machine.

use crate::Watch;

/// Channel visits in one step, some milliseconds of work.
const VISITS_PER_STEP: usize = 1 << 18;

/// Counts work and asks the watch at every step whether to go on.
pub(crate) struct Work<'a> {
    watch: &'a mut dyn Watch,
    visits: usize,
    total: u64,
    expired: bool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(watch: &'a mut dyn Watch) -> Self {
        let expired = watch.expired();
        Self { watch, visits: 0, total: 0, expired }
    }

    /// Counts visits to channels; false once time is up.
    #[inline]
    pub(crate) fn spend(&mut self, visits: usize) -> bool {
        self.visits += visits;
        self.total += visits as u64;
        while self.visits >= VISITS_PER_STEP && !self.expired {
            self.visits -= VISITS_PER_STEP;
            self.expired = self.watch.expired();
        }
        !self.expired
    }

    /// Whether time is up.
    pub(crate) fn expired(&self) -> bool {
        self.expired
    }

    /// Visits so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Tells the watch of the best load so far.
    pub(crate) fn progress(&mut self, load: f64, bound: f64) {
        self.watch.progress(load, bound);
    }
}
