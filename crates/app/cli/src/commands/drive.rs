//! Simulations that run to their end, or to Ctrl-C, and show how far they are.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sim::{packet::Simulation, workload::SECOND_PS};

use super::interrupt::Interrupt;

/// Seed unless it is said.
pub(super) const SEED: u64 = 1;
/// Work that takes longer is shown to advance.
pub(super) const QUIET: Duration = Duration::from_secs(2);
/// Steps from one look at the clock and at Ctrl-C to the next: so many a run, and no longer ones than this.
const STEPS: u64 = 200;
const STEP_PS_MAX: u64 = SECOND_PS / 1000;

/// How a person sees that a run advances.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// By the share of the simulated time that has passed.
    Share,
    /// By the simulated clock, where nobody knows when it ends.
    Clock,
}

/// Runs to the end or to Ctrl-C, showing progress once it has taken a while.
pub(super) fn drive(simulation: &mut Simulation<'_>, duration_ps: u64, shown: Shown, interrupt: &Interrupt) {
    let (begun, mut bar) = (Instant::now(), None);
    let step_ps = (duration_ps / STEPS).clamp(1, STEP_PS_MAX);
    let mut until_ps = 0;
    while until_ps < duration_ps {
        until_ps = (until_ps + step_ps).min(duration_ps);
        if simulation.run_until(until_ps) < until_ps || interrupt.is_pressed() {
            break;
        }
        if bar.is_none() && begun.elapsed() > QUIET {
            let template = match shown {
                Shown::Share => "{elapsed} [{bar:40}] {percent} % of the simulated time, {eta} left",
                Shown::Clock => "{elapsed} {spinner} {msg}",
            };
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar = Some(ProgressBar::new(duration_ps).with_style(style));
        }
        if let Some(bar) = &bar {
            bar.set_position(until_ps);
            if shown == Shown::Clock {
                bar.set_message(format!("{:.3} s simulated", until_ps as f64 / SECOND_PS as f64));
            }
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
