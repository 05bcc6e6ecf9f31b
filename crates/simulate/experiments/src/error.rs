//! Why an experiment fails.

use std::{io, path::PathBuf};

use fabric::Report;
use files::{ReadError, WriteError};
use lab::LabError;
use planner::PlanError;
use sim::{flow::NoRoute, job::JobError, pattern::PatternError, program::ProgramError};
use thiserror::Error;

/// Why a request fails.
#[derive(Debug, Error)]
pub enum Error {
    /// The request or a file that it names is at fault; the message says where and what to do.
    #[error("{0}")]
    Request(String),
    /// A file or folder cannot be made or read.
    #[error("{what}")]
    File {
        /// What was to be done, and with which.
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The figure cannot be reproduced in the lab of this machine.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A network of a paper cannot be cabled, which is a fault of this crate.
    #[error("a cabling of our own: {0}")]
    Cabling(String),
    /// A network of a paper has no plan, which is a fault of this crate or of the planner.
    #[error("plan {network}")]
    Plan {
        /// The network.
        network: String,
        /// Why it has none.
        #[source]
        source: Box<PlanError>,
    },
    /// The plan of a network of a paper is not deployable.
    #[error("the judge refuses {network}:\n{report}")]
    Refused {
        /// The network.
        network: String,
        /// What the judge found.
        report: Report,
    },
    /// A network or a program of a paper cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The lab cannot be built, measured or taken down.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// MPI programs failed on the hosts of a lab.
    #[error("on {network}")]
    Mpi {
        /// The network that the lab was built as.
        network: String,
        /// What failed.
        #[source]
        source: MpiError,
    },
}

impl Error {
    /// Whether another request can succeed: a file, a setting or a missing program is at fault, not this program.
    pub fn is_of_request(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Unavailable(_))
    }
}

/// Why a figure cannot be reproduced in the lab of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// The figure is reproduced by the simulator alone.
    #[error("the lab does {in_lab}; the others are simulated")]
    SimulatedOnly {
        /// The names of the figures that the lab reproduces.
        in_lab: String,
    },
    /// A program that the figure needs is not in PATH.
    #[error("{program} is missing: apt-get install openmpi-bin libopenmpi-dev gcc hpcc")]
    NoProgram {
        /// Its name.
        program: &'static str,
    },
}

/// Why a network or a program of a paper cannot be simulated.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// A traffic pattern does not fit the network.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The ranks' actions are no program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program does not fit the network.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The plan does not connect two hosts that send to each other.
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
    /// A program did not end within ten simulated minutes.
    #[error("a benchmark takes more than ten simulated minutes")]
    TooLong,
    /// Ranks of a program wait for messages that never come.
    #[error("{program} stalls: {}", ranks.join("; "))]
    Stalled {
        /// The program: "a benchmark" or "a trace".
        program: &'static str,
        /// Each rank and what it waits for.
        ranks: Vec<String>,
    },
}

/// Why MPI programs fail on the hosts of a lab.
#[derive(Debug, Error)]
pub enum MpiError {
    /// One of several benchmarks failed.
    #[error("{benchmark}")]
    Benchmark {
        /// Its name.
        benchmark: &'static str,
        /// What failed.
        #[source]
        source: Box<MpiError>,
    },
    /// A file or folder of the run cannot be made, changed or removed.
    #[error("{step} {}", path.display())]
    File {
        /// What was to be done with it.
        step: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A program cannot be started, waited for or ended.
    #[error("{step} {program}")]
    Process {
        /// What was to be done with it.
        step: &'static str,
        /// The program.
        program: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The lab does not run programs on its hosts.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// mpicc refuses the source.
    #[error("mpicc: {0}")]
    Compile(String),
    /// mpirun ended before its program had printed the result.
    #[error("mpirun ended early: {0}")]
    EndedEarly(String),
    /// The program takes longer than it may.
    #[error("it takes more than {limit_s} s; it was at: {stage}")]
    TooLong {
        /// Seconds that it may take.
        limit_s: u64,
        /// How far it was.
        stage: String,
    },
    /// hpcc found a wrong result of its own.
    #[error("a check of hpcc failed")]
    CheckFailed,
    /// A program ended without one of its results.
    #[error("{program} does not tell {result}")]
    NoResult {
        /// The program.
        program: &'static str,
        /// The result.
        result: &'static str,
    },
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Request(error.to_string())
    }
}

/// Says of an I/O error what was to be done with which file.
pub(crate) trait OnFile<T> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::File { what: what(), source })
    }
}
