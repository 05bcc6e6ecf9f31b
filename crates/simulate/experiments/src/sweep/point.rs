//! What a sweep can vary, and one combination of it.

use std::{path::PathBuf, sync::Arc};

use fabric::{EngineName, FdbMode, FlowControl, PATHS_MAX, Tagging, Topology, generate::Kind};
use sha2::{Digest, Sha256};
use sim::{
    packet::FlowControlAt,
    pattern::Pattern,
    spread::Spread,
    workload::{Arrivals, TcpVariant, Transport},
};

/// Digests name rows as computed by this version of the program.
const VERSION: &str = concat!("espalier sweep 3, ", env!("CARGO_PKG_VERSION"));

/// Something that can be varied.
pub(super) struct Axis {
    /// The section of the description in which it stands.
    pub(super) section: Section,
    /// Its key there.
    pub(super) key: &'static str,
    /// Its column in the table.
    pub(super) column: &'static str,
    /// Its value where the description is silent.
    pub(super) default: &'static str,
    /// Says what is wrong with a value.
    pub(super) check: fn(&str) -> Result<(), String>,
}

/// A section of the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// `[plan]`
    Plan,
    /// `[simulate]`
    Simulate,
}

impl Section {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Simulate => "simulate",
        }
    }
}

const fn axis(
    section: Section,
    key: &'static str,
    column: &'static str,
    default: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> Axis {
    Axis { section, key, column, default, check }
}

/// How many things vary beside the topology.
pub(super) const AXES_COUNT: usize = 17;

/// Everything that can be varied beside the topology; what a plan depends on comes first.
pub(super) const AXES: [Axis; AXES_COUNT] = [
    axis(Section::Plan, "engine", "engine", "auto", parses::<EngineName>),
    axis(Section::Plan, "tagging", "tagging", "switch", parses::<Tagging>),
    axis(Section::Plan, "flow-control", "planned_flow_control", "pause", parses::<FlowControl>),
    axis(Section::Plan, "fdb", "fdb", "minimal", parses::<FdbMode>),
    axis(Section::Plan, "max-vlans", "max_vlans", "none", number_or_none),
    axis(Section::Plan, "paths", "paths", "1", paths),
    axis(Section::Plan, "seed", "plan_seed", "1", number),
    axis(Section::Simulate, "level", "level", "packet", |text| named(&LEVELS, text).map(drop)),
    axis(Section::Simulate, "pattern", "pattern", "all-to-all", parses::<Pattern>),
    axis(Section::Simulate, "spread", "spread", "one", parses::<Spread>),
    axis(Section::Simulate, "transport", "transport", "udp", |text| named(&TRANSPORTS, text).map(drop)),
    axis(Section::Simulate, "bytes", "bytes", "none", number_or_none),
    axis(Section::Simulate, "duration-ms", "duration_ms", "100", milliseconds),
    axis(Section::Simulate, "flow-control", "flow_control", "as-planned", |text| named(&FLOW_CONTROLS, text).map(drop)),
    axis(Section::Simulate, "refresh-pause", "refresh_pause", "false", parses::<bool>),
    axis(Section::Simulate, "cut-through", "cut_through", "false", parses::<bool>),
    axis(Section::Simulate, "seed", "seed", "1", number),
];
/// How closely a simulation looks.
#[derive(Clone, Copy)]
pub(super) enum Level {
    /// Every frame through every queue.
    Packet,
    /// Max-min fair rates.
    Flow,
}

/// The words of `level`.
pub(super) const LEVELS: [(&str, Level); 2] = [("packet", Level::Packet), ("flow", Level::Flow)];
/// The words of `transport`, and the octets of payload in a full frame of each.
pub(super) const TRANSPORTS: [(&str, (Transport, u32)); 4] = [
    ("udp", (Transport::Udp { rate_bps: None, arrivals: Arrivals::Even }, 1472)),
    ("reno", (Transport::Tcp(TcpVariant::Reno), 1448)),
    ("cubic", (Transport::Tcp(TcpVariant::Cubic), 1448)),
    ("go-back-n", (Transport::GoBackN, 1024)),
];
/// The words of `flow-control`.
pub(super) const FLOW_CONTROLS: [(&str, FlowControlAt); 5] = [
    ("as-planned", FlowControlAt::AsPlanned),
    ("none", FlowControlAt::Nowhere),
    ("all", FlowControlAt::Everywhere),
    ("hosts", FlowControlAt::Hosts),
    ("switches", FlowControlAt::Switches),
];
/// The first so many decide the plan.
pub(super) const PLAN_AXES: usize = 7;

/// A value of an axis, by its column.
///
/// # Panics
/// If there is no such column: a mistake in this program.
pub(super) fn value<'a>(values: &'a [String; AXES_COUNT], column: &str) -> &'a str {
    let at = AXES.iter().position(|axis| axis.column == column);
    &values[at.unwrap_or_else(|| unreachable!("no axis is called {column}"))]
}

fn parses<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

/// What a word of a list stands for.
///
/// # Errors
/// If it is none of them, with all that there are.
pub(super) fn named<T: Copy>(known: &[(&str, T)], text: &str) -> Result<T, String> {
    known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is none of {}", known.join(", "))
    })
}

fn number(text: &str) -> Result<(), String> {
    text.parse::<u64>().map(drop).map_err(|_| format!("{text:?} is no whole number from 0 on"))
}

fn number_or_none(text: &str) -> Result<(), String> {
    if text == "none" { Ok(()) } else { at_least_one(text) }
}

fn paths(text: &str) -> Result<(), String> {
    match text.parse::<u32>() {
        Ok(1..=PATHS_MAX) => Ok(()),
        _ => Err(format!("{text:?} is no number of paths a pair, 1 to {PATHS_MAX}")),
    }
}

fn at_least_one(text: &str) -> Result<(), String> {
    match text.parse::<u64>() {
        Ok(1..) => Ok(()),
        _ => Err(format!("{text:?} is no whole number from 1 on; \"none\" is the default")),
    }
}

fn milliseconds(text: &str) -> Result<(), String> {
    match text.parse::<f64>() {
        Ok(ms) if ms.is_finite() && ms > 0.0 => Ok(()),
        _ => Err(format!("{text:?} is no time in milliseconds")),
    }
}

/// A topology of a sweep.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Made when it is needed.
    Generated { kind: Kind, hosts_per_switch: Option<usize> },
    /// Read already.
    File {
        path: PathBuf,
        topology: Arc<Topology>,
        /// Digest of what was read.
        digest: String,
    },
}

impl Source {
    /// The columns `topology` and `hosts_per_switch`.
    pub(super) fn columns(&self) -> [String; 2] {
        match self {
            Self::Generated { kind, hosts_per_switch } => {
                [kind.to_string(), hosts_per_switch.map_or_else(|| "usual".to_owned(), |count| count.to_string())]
            }
            Self::File { path, .. } => [path.display().to_string(), "as cabled".to_owned()],
        }
    }

    fn identity(&self) -> String {
        match self {
            Self::Generated { .. } => self.columns().join("\0"),
            Self::File { digest, .. } => digest.clone(),
        }
    }
}

/// One combination.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Index among the sweep's topologies.
    pub(super) source: usize,
    /// `values[axis]`, as [`AXES`] are ordered.
    pub(super) values: [String; AXES_COUNT],
    /// What its row's file is called.
    pub(super) digest: String,
}

impl Point {
    pub(super) fn new(source: usize, topology: &Source, values: [String; AXES_COUNT]) -> Self {
        let mut hasher = Sha256::new();
        for part in [VERSION, &topology.identity()].into_iter().chain(values.iter().map(String::as_str)) {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self { source, values, digest: hex(&hasher.finalize()[..12]) }
    }

    /// What its plan depends on.
    pub(super) fn plan_key(&self) -> (usize, &[String]) {
        (self.source, &self.values[..PLAN_AXES])
    }
}

/// Digest of bytes.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
