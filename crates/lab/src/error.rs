//! What can go wrong between a plan and a running lab.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a lab cannot be built, found, used or taken down.
#[derive(Debug, Error)]
pub enum LabError {
    /// A lab name that namespace names could not carry unambiguously.
    #[error("{name:?} is not a lab name: use 1 to {bytes_max} letters, digits or _")]
    BadName {
        /// The name.
        name: String,
        /// Most bytes of one.
        bytes_max: usize,
    },
    /// A lab of this name exists, whole or in pieces.
    #[error("lab {name} exists already: take it down first (espalier lab down {name}), or choose another name")]
    NameInUse {
        /// The name.
        name: String,
    },
    /// There is no lab of this name.
    #[error("there is no lab {name}{}", known_labs(.known))]
    NoSuchLab {
        /// The name as asked for.
        name: String,
        /// The labs that exist.
        known: Vec<String>,
    },
    /// A lab that only root may use.
    #[error("lab {name} belongs to root: use it as root (sudo espalier lab list)")]
    OfRoot {
        /// The name.
        name: String,
    },
    /// A lab that was never finished.
    #[error("lab {name} was never finished: take it down (espalier lab down {name}) and bring it up again")]
    Unfinished {
        /// The name.
        name: String,
    },
    /// A host that the lab does not have.
    #[error("lab {lab} has no host {host}{}", known_hosts(.known))]
    NoSuchHost {
        /// The lab.
        lab: String,
        /// The host as asked for.
        host: String,
        /// The hosts that it has, and `mgmt` where switches can be managed.
        known: Vec<String>,
    },
    /// A program that is not on this machine, or cannot be run.
    #[error("{program}: {}", .why.sentence())]
    NoProgram {
        /// As asked for.
        program: String,
        /// What is wrong with it.
        why: NoProgram,
    },
    /// A switch port that the lab does not have.
    #[error("lab {lab} has no port {port}: {}", ways_to_name_ports(.known))]
    NoSuchPort {
        /// The lab.
        lab: String,
        /// The port as asked for.
        port: String,
        /// The ports of the switch, if the lab has that.
        known: Vec<String>,
    },
    /// A cable that the lab does not have.
    #[error("lab {lab} has no cable {cable}: name a host, a port such as sw1:g23, or both ends as sw1:g23 -- sw2:g23")]
    NoSuchCable {
        /// The lab.
        lab: String,
        /// The cable as asked for.
        cable: String,
    },
    /// A plan that is too large for one machine.
    #[error("{what}: {got}, but a lab holds at most {limit}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How many.
        got: usize,
        /// The bound.
        limit: usize,
    },
    /// An option or a plan that the lab cannot carry out.
    #[error("{0}")]
    Unsupported(String),
    /// A host's frames cannot be tagged.
    #[error(transparent)]
    Tagger(#[from] tagger::TaggerError),
    /// The machine lacks something; the text says what, and the way out.
    #[error("{0}")]
    Missing(String),
    /// A tool of iproute2 refused.
    #[error("{operation} {device}: {step}: {tool}: {message}")]
    Tool {
        /// What was being done.
        operation: &'static str,
        /// To which switch, host or lab.
        device: String,
        /// In which step.
        step: &'static str,
        /// `ip`, `tc` or `bridge`.
        tool: &'static str,
        /// What the tool said, and the command that it said it of.
        message: String,
    },
    /// The kernel refused.
    #[error("{operation} {device}: {step}: {source}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// To which switch, host or lab.
        device: String,
        /// In which step.
        step: &'static str,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
    /// The eBPF switch could not be loaded, filled or read.
    #[error("{operation} {device}: {step}: {source}")]
    Bpf {
        /// What was being done.
        operation: &'static str,
        /// To which switch.
        device: String,
        /// In which step.
        step: &'static str,
        /// The loader's reason.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A state file that this version cannot read.
    #[error("{}: {source}: written by another version? take the lab down (espalier lab down {name}) and bring it up again", .path.display())]
    State {
        /// The lab.
        name: String,
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// SIGINT or SIGTERM arrived; what had been built is gone again.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
    /// A lab could not be built, and what had been built of it not taken back.
    #[error("{cause}; and some of what had been built is still there ({left}): espalier lab down {name}")]
    LeftBehind {
        /// The lab.
        name: String,
        /// Why it could not be built.
        #[source]
        cause: Box<LabError>,
        /// What kept it from going.
        left: Box<LabError>,
    },
    /// Traffic stopped moving.
    #[error("no byte has arrived for {seconds} s: {pending} of {total} transfers unfinished, such as {example}")]
    Stalled {
        /// How long.
        seconds: u64,
        /// Transfers that had not finished.
        pending: usize,
        /// All transfers.
        total: usize,
        /// One of them, as `a -> b`.
        example: String,
    },
}

/// Why a program cannot be run in a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoProgram {
    /// There is none of this name.
    Missing,
    /// There is a file of this name that nobody may run.
    NotExecutable,
}

impl NoProgram {
    /// The exit code that shells give for it (POSIX.1-2024, 2.8.2).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Missing => 127,
            Self::NotExecutable => 126,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Missing => {
                "no such program on this machine, whose programs a lab's hosts run; install it, or give its path"
            }
            Self::NotExecutable => "this file is not executable: chmod +x, or name its interpreter first",
        }
    }
}

/// Says where an I/O error happened.
pub(crate) trait Context<T> {
    /// Wraps the error with operation, device and step.
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, LabError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io { operation, device: device.to_owned(), step, source })
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, LabError> {
        self.map_err(io::Error::from).context(operation, device, step)
    }
}

impl<T> Context<T> for Result<T, libbpf_rs::Error> {
    fn context(self, operation: &'static str, device: &str, step: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::Bpf { operation, device: device.to_owned(), step, source })
    }
}

fn known_labs(known: &[String]) -> String {
    if known.is_empty() { "; none is up".to_owned() } else { format!("; up are: {}", known.join(", ")) }
}

/// Most names that an error lists.
const LISTED_MAX: usize = 12;

fn ways_to_name_ports(known: &[String]) -> String {
    if known.is_empty() {
        return "write a switch and its port as s0:p1; espalier lab status lists them".to_owned();
    }
    format!("that switch has {}", listed(known))
}

fn known_hosts(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; it has {}", listed(known)) }
}

fn listed(known: &[String]) -> String {
    let listed = known.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match known.len().saturating_sub(LISTED_MAX) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
