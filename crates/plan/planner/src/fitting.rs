//! How many trees fit: fewer trees take fewer entries and fewer VLANs, but how many exactly shows only when they are grown.
//!
//! Routes found in haste take long ways, and trees that are shared take more entries each than trees of one sender. So what
//! is tried first is cheap, and where that does not fit, caps are tried with a part of the steps: down in proportion to what
//! is too much until one fits, then up again between that and the lowest that did not. The best of them is searched for
//! with all the time there is.
//!
//! ```text
//!   trees   64 ✗   52 ✗   31 ✗   9 ✓          down
//!                          20 ✓   26 ✗   23 ✓  and up: 23
//! ```

use crate::StepLimit;

/// Part of all steps after which a plan shows how much there is.
const TRIAL_PART: u64 = 12;
/// Most caps that are tried on the way up.
const TRIALS_MAX: usize = 5;

/// How long to search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Only to see whether there may be too much.
    Probe,
    /// To see how much there is.
    Trial,
    /// As long as the watch lets it.
    Whole,
}

/// The way to a cap that fits.
pub(crate) struct Fitting {
    effort: Effort,
    /// What the request allows, and what is tried.
    asked: Option<usize>,
    cap: Option<usize>,
    /// The largest cap that fits, and the lowest number of trees that does not.
    fits: usize,
    too_many: usize,
    /// The cap with the least time on its most loaded channel, and that time.
    best: Option<(f64, usize)>,
    trials: usize,
}

impl Fitting {
    /// Nothing tried yet. Where nothing can be too small, the first plan is made with all steps.
    pub(crate) fn new(asked: Option<usize>, may_be_too_much: bool) -> Self {
        let effort = if may_be_too_much { Effort::Probe } else { Effort::Whole };
        Self { effort, asked, cap: asked, fits: 0, too_many: usize::MAX, best: None, trials: 0 }
    }

    /// Most trees of the next plan.
    pub(crate) fn cap(&self) -> Option<usize> {
        self.cap
    }

    /// How long to search for it, out of `all` steps; none as long as the watch lets it.
    pub(crate) fn steps(&self, all: impl Fn() -> StepLimit) -> Option<StepLimit> {
        match self.effort {
            Effort::Probe => Some(StepLimit::probe()),
            Effort::Trial => Some(all().part(TRIAL_PART)),
            Effort::Whole => None,
        }
    }

    /// Whether the next plan only shows how much there is.
    pub(crate) fn is_trial(&self) -> bool {
        self.effort != Effort::Whole
    }

    /// Whether the next plan is worth keeping, or only shows something.
    pub(crate) fn keeps(&self) -> bool {
        self.effort != Effort::Probe
    }

    /// A plan fits, with so much time on its most loaded channel. Whether it is the last one.
    pub(crate) fn fits(&mut self, time_max: f64) -> bool {
        match (self.effort, self.cap) {
            (Effort::Whole, _) => return true,
            (Effort::Trial, Some(cap)) if self.cap != self.asked => {
                self.fits = self.fits.max(cap);
                if self.best.is_none_or(|(best, _)| time_max < best) {
                    self.best = Some((time_max, cap));
                }
                self.go_up();
            }
            (Effort::Probe | Effort::Trial, _) => self.effort = Effort::Whole,
        }
        false
    }

    /// A plan of so many trees, more than one, needs more entries than a limit, or more VLANs, and may fit with so many.
    pub(crate) fn is_too_much(&mut self, trees: usize, may_fit: usize) {
        if self.effort == Effort::Probe {
            self.effort = Effort::Trial;
            return;
        }
        self.too_many = self.too_many.min(trees);
        if self.effort == Effort::Trial && self.best.is_some() {
            self.go_up();
        } else {
            self.cap = Some(may_fit.clamp(1, trees - 1));
        }
    }

    /// The next cap between what fits and what does not, or else the best one.
    fn go_up(&mut self) {
        let next = self.fits.midpoint(self.too_many);
        if self.trials < TRIALS_MAX && next > self.fits + self.fits / 16 {
            self.trials += 1;
            self.cap = Some(next);
        } else {
            self.cap = self.best.map(|(_, cap)| cap);
            self.effort = Effort::Whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goes all the way where so many trees need `entries(trees)`; the last cap, and how many plans it took.
    fn fit(own: usize, limit: usize, entries: impl Fn(usize) -> usize) -> (usize, usize) {
        let mut fitting = Fitting::new(None, true);
        for plans in 1..200 {
            let trees = fitting.cap().map_or(own, |cap| cap.min(own));
            if trees > 1 && entries(trees) > limit {
                fitting.is_too_much(trees, trees * limit / entries(trees));
            } else if fitting.fits(1.0 / trees as f64) {
                return (trees, plans);
            }
        }
        panic!("no end");
    }

    #[test]
    fn shared_trees_that_take_more_each_do_not_lead_too_far_down() {
        let entries = |trees: usize| if trees == 64 { 240 } else { 64 + 9 * trees };
        assert_eq!(fit(64, 250, entries).0, 64);
        let (trees, plans) = fit(64, 200, entries);
        assert!((13..=15).contains(&trees) && plans < 12, "{trees} trees after {plans} plans");
    }

    proptest! {
        #[test]
        fn the_way_ends_near_the_largest_that_fits(own in 1_usize..2000, limit in 1_usize..10_000, each in 1_usize..50) {
            let (trees, plans) = fit(own, limit, |trees| each * trees);
            let most = (limit / each).clamp(1, own);
            prop_assert!(trees <= most && plans < 40, "{} trees of {} after {} plans", trees, most, plans);
            prop_assert!(trees + trees / 8 + 1 >= most, "{} trees of {}", trees, most);
        }
    }
}
