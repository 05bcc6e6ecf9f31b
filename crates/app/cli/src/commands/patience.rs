//! How long the planner may go on: a time limit, a number of steps, and Ctrl-C; and on how many threads.

use std::time::{Duration, Instant};

use anyhow::Result;
use fabric::{Policy, Topology};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use planner::{SearchEvent, StepLimit, Watch};

use super::{interrupt::Interrupt, processors::processors};

/// Work that takes longer shows its progress.
const SILENT: Duration = Duration::from_secs(2);

/// Stops the search at a time limit, else after a number of steps that depends on the size alone; and on Ctrl-C.
pub(crate) struct Patience {
    /// When the first request began.
    began: Instant,
    started: Instant,
    time_limit: Option<Duration>,
    steps: StepLimit,
    threads: usize,
    interrupt: Interrupt,
    bar: ProgressBar,
    subject: String,
    log: Vec<SearchEvent>,
}

impl Patience {
    /// Starts the clock. From now on a first Ctrl-C ends the search, and a second one the program.
    pub(crate) fn new(topology: &Topology, policy: &Policy) -> Result<Self> {
        let interrupt = Interrupt::watch()?;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}; Ctrl-C keeps the best so far")?);
        let time_limit = policy.time_limit;
        let (started, steps) = (Instant::now(), StepLimit::by_request(topology, policy));
        let (began, threads) = (started, processors());
        Ok(Self { began, started, time_limit, steps, threads, interrupt, bar, subject: String::new(), log: Vec::new() })
    }

    /// Starts the clock again for another request, which the progress bar calls `subject`.
    pub(crate) fn restart(
        &mut self,
        topology: &Topology,
        policy: &Policy,
        time_limit: Option<Duration>,
        subject: String,
    ) {
        (self.started, self.time_limit) = (Instant::now(), time_limit);
        self.steps = StepLimit::by_request(topology, policy);
        self.subject = subject;
    }

    /// What happened since this was asked last.
    pub(crate) fn take_log(&mut self) -> Vec<SearchEvent> {
        std::mem::take(&mut self.log)
    }

    /// Shows what is being done beside planning.
    pub(crate) fn working(&mut self, on: String) {
        self.bar.set_message(on);
        self.show();
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_pressed()
    }

    /// Clears the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self) {
        if self.began.elapsed() > SILENT && self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.tick();
    }
}

impl Watch for Patience {
    fn expired(&mut self) -> bool {
        self.show();
        let out_of_time = match self.time_limit {
            Some(limit) => self.started.elapsed() >= limit,
            None => self.steps.expired(),
        };
        out_of_time || self.is_interrupted()
    }

    fn progress(&mut self, load: f64, bound: f64) {
        self.bar.set_message(format!("{}max load {load:.0}, bound {bound:.1}", self.subject));
        self.bar.tick();
    }

    fn happened(&mut self, event: &SearchEvent) {
        self.log.push(event.clone());
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn time_spent(&self) -> f64 {
        self.time_limit
            .map_or(0.0, |limit| (self.started.elapsed().as_secs_f64() / limit.as_secs_f64().max(1e-9)).min(1.0))
    }

    fn steps_left(&self) -> u64 {
        if self.time_limit.is_none() { self.steps.steps_left() } else { u64::MAX }
    }
}
