//! `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sim::spread::Spread;

use super::{
    numbers::{real, whole},
    outputs::SimulateOutputs,
    values::{choices, patterns},
};

/// Simulate a plan's switches under a traffic pattern: where it chokes, and how far that is from the best there could be.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier simulate plan.json --pattern all-to-all\n  \
    espalier simulate plan.json --pattern transpose --transport cubic --bytes 10000000 --csv flows.csv\n  \
    espalier simulate plan.json --pattern all-to-all-phased --level flow --bytes 1000000\n  \
    espalier simulate plan.json --pattern incast --heat-map fabric.svg --plot received.png --series queues.csv\n  \
    espalier simulate plan.json --duration-ms 5 --pcap s0-0:p1=port.pcap\n  \
    espalier simulate plan.json --pattern transpose --spread packet --transport reno\n  \
    espalier simulate plan.json --collective allreduce:ring --bytes 1000000 --transport reno\n  \
    espalier simulate plan.json --trace is.B/ --transport cubic --fault '1s link sw1:g23 down'\n\n\
    What runs is the switches' planned state; the exit code is 1 if the fabric deadlocks. Ctrl-C ends \
    the simulated time of a pattern there and keeps what there is (exit code 130).")]
pub(crate) struct Simulate {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Who sends to whom.
    #[arg(long, default_value = "all-to-all", value_parser = patterns(sim::pattern::Pattern::WITH_FLOODS), value_name = "PATTERN")]
    pub(crate) pattern: sim::pattern::Pattern,
    /// Every frame, or only rates.
    #[arg(long, value_enum, default_value = "packet")]
    pub(crate) level: SimulationLevel,
    /// How hosts spread a pair's frames over its paths, in a plan with several paths a pair (plan --paths K).
    #[arg(long, default_value = "one", value_parser = choices(Spread::ALL, Spread::word, Spread::about), value_name = "SPREAD")]
    pub(crate) spread: Spread,
    /// With --spread flowlet: the silence of a flow after which it takes the next path, in microseconds; 500 unless given.
    #[arg(long, value_name = "US", value_parser = real(1e-3..=1e9))]
    pub(crate) flowlet_gap_us: Option<f64>,
    /// How hosts send, at the packet level; udp unless given.
    #[arg(long, value_enum)]
    pub(crate) transport: Option<TransportChoice>,
    /// Bytes that each pair sends; as many as fit into the time unless given (1,000,000 at the flow level).
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) bytes: Option<u64>,
    /// Simulated time, in milliseconds; with sizes, the most. 100 unless given, an hour for programs.
    #[arg(long, value_name = "MS", value_parser = real(1e-9..=1e10))]
    pub(crate) duration_ms: Option<f64>,
    /// Where PAUSE or priority flow control is on, at the packet level; as planned unless given.
    #[arg(long, value_enum)]
    pub(crate) flow_control: Option<FlowControlChoice>,
    /// Send PAUSE again before it runs out.
    #[arg(long)]
    pub(crate) refresh_pause: bool,
    /// Switches send a frame on before they have all of it.
    #[arg(long)]
    pub(crate) cut_through: bool,
    /// Seed of everything random; 1 unless given.
    #[arg(long, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) workload: crate::workload_args::WorkloadArgs,
    #[command(flatten)]
    pub(crate) fabric: crate::workload_args::FabricArgs,
    #[command(flatten)]
    pub(crate) outputs: SimulateOutputs,
}

/// How closely a simulation looks.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SimulationLevel {
    /// Every frame through every queue.
    Packet,
    /// Max-min fair rates.
    Flow,
}

/// How simulated hosts send.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TransportChoice {
    /// Datagrams, as fast as the cable takes them.
    Udp,
    /// TCP with Reno's window.
    Reno,
    /// TCP with CUBIC's window.
    Cubic,
    /// In order or again, as RoCE.
    GoBackN,
}

/// Where simulated flow control is on.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FlowControlChoice {
    /// Where the plan has it.
    AsPlanned,
    /// Nowhere.
    None,
    /// On every cable.
    All,
    /// On hosts' cables.
    Hosts,
    /// On cables between switches.
    Switches,
}
