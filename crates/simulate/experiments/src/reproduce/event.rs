//! What a caller hears while a figure is reproduced.

use std::{path::Path, time::Duration};

use lab::{Progress, measure::Pattern};

use crate::error::MpiError;

/// Progress, and what a person should know of it.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The folder of complete traces has none of a benchmark; the folded trace is replayed instead.
    FoldedTrace {
        /// The benchmark.
        benchmark: &'static str,
        /// Where its complete trace was looked for.
        path: &'a Path,
    },
    /// A lab is being built.
    Building(Progress),
    /// Traffic is being measured in a lab.
    Measuring {
        /// The pattern.
        pattern: &'a Pattern,
        /// The part of all bytes that has arrived, 0 to 1.
        part: f64,
    },
    /// An MPI program runs in a lab.
    Running {
        /// The benchmark and the network.
        title: &'a str,
        /// Time since its start.
        elapsed: Duration,
        /// How far it is.
        stage: &'a str,
    },
    /// What the last `Building`, `Measuring` or `Running` was about has ended.
    Ended,
    /// mpirun could not be ended.
    MpirunLeft(&'a MpiError),
}

/// Who hears of events.
pub(crate) type Events<'a> = &'a dyn Fn(Event<'_>);
