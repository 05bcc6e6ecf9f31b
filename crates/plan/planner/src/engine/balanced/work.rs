//! Work counted in steps, so that the same number of steps gives the same plan on every machine, and shared by threads.
//!
//! Jobs that know nothing of each other may run at the same time. Each gets its ration of steps beforehand, so where it ends
//! does not depend on the others, and the results are the same whether one thread does all jobs in turn or many do. Only
//! the thread that shared the work out asks the watch, once for every step that any job takes.
//!
//! ```text
//!   share  ─┬─▶ job a: 4 steps ─┐  tick tick tick     ┌─▶ results in the order of the jobs
//!           ├─▶ job b: 2 steps ─┤  ─────────────▶ watch
//!           └─▶ job c: 2 steps ─┘  ◀───── stop ──     └─▶ when time is up, all stop at their next step
//! ```

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
    mpsc::{Sender, channel},
};

use crate::{SearchEvent, SearchPart, StepLimit, Watch, watch::Shortened};

/// Channel visits in one step, some milliseconds of work.
const VISITS_PER_STEP: usize = 1 << 18;

/// Visits in so many steps.
pub(crate) fn visits_in(steps: &StepLimit) -> u64 {
    steps.steps_left().saturating_mul(VISITS_PER_STEP as u64)
}

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

    /// Whether time is up, or so many visits have been made.
    pub(crate) fn is_spent(&self, visits: u64) -> bool {
        self.expired || self.total >= visits
    }

    /// Visits so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Tells the watch of the best load so far.
    pub(crate) fn progress(&mut self, load: f64, bound: f64) {
        self.watch.progress(load, bound);
    }

    /// Tells the watch what happened. Jobs that run beside others tell nothing, so that the order is always the same.
    pub(crate) fn happened(&mut self, event: &SearchEvent) {
        self.watch.happened(event);
    }

    /// How many threads may work at once.
    pub(crate) fn threads(&self) -> usize {
        self.watch.threads().max(1)
    }

    /// Whether a part of the search is not left out.
    pub(crate) fn uses(&self, part: SearchPart) -> bool {
        self.watch.left_out() != Some(part)
    }

    /// Lets so many visits be made at most.
    pub(crate) fn part<R>(&mut self, visits: u64, run: impl FnOnce(&mut Work<'_>) -> R) -> R {
        let mut all = Heeded { watch: self.watch, expired: &mut self.expired };
        let mut watch = Shortened::new(&mut all, StepLimit::new(visits.div_ceil(VISITS_PER_STEP as u64)));
        let mut work = Work::new(&mut watch);
        let result = run(&mut work);
        self.total += work.total;
        result
    }

    /// Does jobs, at the same time if there are threads, and returns what they found in the order of the jobs. A job of so
    /// many visits sees its time expire about then. Where too few steps are left for all, those that come last get less, as
    /// if the jobs were done in turn: so with more steps every job gets at least as far.
    pub(crate) fn share<J: Send, R: Send>(
        &mut self,
        jobs: Vec<(u64, J)>,
        run: impl Fn(J, &mut Work<'_>) -> R + Sync,
    ) -> Vec<R> {
        if self.watch.steps_left() == 0 {
            self.expired |= self.watch.expired();
        }
        let mut left = self.watch.steps_left();
        let mut sure = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter().map(|(visits, job)| (visits.div_ceil(VISITS_PER_STEP as u64), job)).peekable();
        while let Some((steps, job)) = jobs.next_if(|(steps, _)| *steps <= left) {
            left -= steps;
            sure.push((steps, job));
        }
        let threads = self.threads().min(sure.len());
        let mut found = if threads <= 1 { self.one_by_one(sure, &run) } else { self.side_by_side(threads, sure, &run) };
        // How many steps are left for the others is known once those before them are done.
        for (steps, job) in jobs {
            let ration = steps.min(self.watch.steps_left());
            found.extend(self.one_by_one(vec![(ration, job)], &run));
        }
        let (found, visits): (Vec<R>, Vec<u64>) = found.into_iter().unzip();
        self.total += visits.iter().sum::<u64>();
        found
    }

    fn one_by_one<J, R>(&mut self, jobs: Vec<(u64, J)>, run: &impl Fn(J, &mut Work<'_>) -> R) -> Vec<(R, u64)> {
        let mut found = Vec::with_capacity(jobs.len());
        for (steps, job) in jobs {
            let mut all = Heeded { watch: self.watch, expired: &mut self.expired };
            let mut watch = Shortened::new(&mut all, StepLimit::new(steps));
            let mut work = Work::new(&mut watch);
            let result = run(job, &mut work);
            found.push((result, work.total));
        }
        found
    }

    fn side_by_side<J: Send, R: Send>(
        &mut self,
        threads: usize,
        jobs: Vec<(u64, J)>,
        run: &(impl Fn(J, &mut Work<'_>) -> R + Sync),
    ) -> Vec<(R, u64)> {
        let found: Mutex<Vec<Option<(R, u64)>>> = Mutex::new(jobs.iter().map(|_| None).collect());
        let queue = Mutex::new(jobs.into_iter().enumerate());
        let stop = AtomicBool::new(self.expired);
        let (ticks, ticked) = channel();
        let left_out = self.watch.left_out();
        let take = || queue.lock().expect("no job panics while it is taken").next();
        let labour = |ticks: Sender<()>| {
            while let Some((number, (steps, job))) = take() {
                let mut all = Remote { ticks: ticks.clone(), stop: &stop, left_out };
                let mut watch = Shortened::new(&mut all, StepLimit::new(steps));
                let mut work = Work::new(&mut watch);
                let result = run(job, &mut work);
                found.lock().expect("no job panics while it is put down")[number] = Some((result, work.total));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let ticks = ticks.clone();
                scope.spawn(|| labour(ticks));
            }
            drop(ticks);
            for () in ticked {
                self.expired |= self.watch.expired();
                stop.store(self.expired, Ordering::Relaxed);
            }
        });
        let found = found.into_inner().expect("no job panicked");
        found.into_iter().map(|found| found.expect("every job was done")).collect()
    }
}

/// The watch of the whole, which remembers that time was up.
struct Heeded<'a> {
    watch: &'a mut dyn Watch,
    expired: &'a mut bool,
}

impl Watch for Heeded<'_> {
    fn expired(&mut self) -> bool {
        *self.expired |= self.watch.expired();
        *self.expired
    }

    fn progress(&mut self, load: f64, bound: f64) {
        self.watch.progress(load, bound);
    }

    fn threads(&self) -> usize {
        self.watch.threads()
    }

    fn steps_left(&self) -> u64 {
        self.watch.steps_left()
    }

    fn left_out(&self) -> Option<SearchPart> {
        self.watch.left_out()
    }

    fn happened(&mut self, event: &SearchEvent) {
        self.watch.happened(event);
    }
}

/// The watch of the whole, seen from another thread.
struct Remote<'a> {
    ticks: Sender<()>,
    stop: &'a AtomicBool,
    left_out: Option<SearchPart>,
}

impl Watch for Remote<'_> {
    fn expired(&mut self) -> bool {
        // Nobody listens only when time is up for all.
        let unheard = self.ticks.send(()).is_err();
        unheard || self.stop.load(Ordering::Relaxed)
    }

    fn progress(&mut self, _load: f64, _bound: f64) {}

    fn left_out(&self) -> Option<SearchPart> {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expires after so many questions, and has so many threads.
    struct Steps(StepLimit, usize);

    impl Watch for Steps {
        fn expired(&mut self) -> bool {
            self.0.expired()
        }

        fn progress(&mut self, _load: f64, _bound: f64) {}

        fn threads(&self) -> usize {
            self.1
        }

        fn steps_left(&self) -> u64 {
            self.0.steps_left()
        }
    }

    #[test]
    fn jobs_get_as_far_on_any_number_of_threads() {
        let step = VISITS_PER_STEP as u64;
        for steps in [0, 1, 2, 5, 9, 10, 11, 40] {
            let outcome = |threads| {
                let mut watch = Steps(StepLimit::new(steps), threads);
                let mut work = Work::new(&mut watch);
                let jobs = vec![(4 * step, 'a'), (2 * step, 'b'), (3 * step, 'c')];
                let found = work.share(jobs, |name, work| {
                    let mut halves = 0;
                    while halves < 40 && work.spend(VISITS_PER_STEP / 2) {
                        halves += 1;
                    }
                    (name, halves)
                });
                (found, work.total(), work.spend(VISITS_PER_STEP), work.watch.steps_left())
            };
            let one = outcome(1);
            assert!((2..5).all(|threads| outcome(threads) == one), "{steps} steps: {one:?}");
        }
    }

    #[test]
    fn with_more_steps_every_job_gets_at_least_as_far() {
        let outcome = |steps| {
            let mut watch = StepLimit::new(steps);
            let mut work = Work::new(&mut watch);
            let step = VISITS_PER_STEP as u64;
            // The first takes fewer steps than it may, and leaves them to the others.
            work.share(vec![(4 * step, 1), (2 * step, 9), (3 * step, 9)], |most, work| {
                (0..most).take_while(|_| work.spend(VISITS_PER_STEP)).count()
            })
        };
        let all: Vec<Vec<usize>> = (0..14).map(outcome).collect();
        assert_eq!((&all[0], &all[13]), (&vec![0, 0, 0], &vec![1, 1, 2]));
        for pair in all.windows(2) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(less, more)| less <= more), "{pair:?}");
        }
    }
}
