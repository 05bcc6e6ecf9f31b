//! The words of `reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use fabric::parse_rate;

/// Tables and figures by name, and what they are.
pub(crate) const REPRODUCTIONS: [(&str, &str); 14] = [
    ("table2", "deadlocks by PAUSE in [Otsuka], simulated on reconstructed patterns"),
    ("table3", "the evaluated topologies of [Otsuka], from real plans"),
    ("fig4", "latency and bandwidth over the switches between two hosts, [Otsuka]"),
    ("fig5", "eight pairs over one cable with and without PAUSE, [Otsuka]"),
    ("fig7", "three traffic patterns on the topologies of [Otsuka], frame by frame and as rates"),
    ("fig8", "NAS benchmarks on the topologies of [Otsuka], from real traces"),
    ("ja-fig5", "two traffic patterns, and what the Japanese version of [Otsuka] says of them"),
    ("ja-fig6", "NAS benchmarks, and what the Japanese version of [Otsuka] says of them"),
    ("eicker144", "144 nodes on a Clos network of ten switches, [Eicker]"),
    ("eicker528", "the forecast for 528 ports, [Eicker]"),
    ("miura-fig5", "latency of hosts that tag, [Miura]"),
    ("miura-table2", "throughput of hosts that tag, [Miura]"),
    ("miura-fig6", "bisection bandwidth over the number of cables, [Miura]"),
    ("miura-fig7", "NAS benchmarks on two switches, [Miura]"),
];

/// Recompute a table or figure of the papers beside the printed numbers.
#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct Reproduce {
    /// What to reproduce; see the list below.
    #[arg(value_parser = PossibleValuesParser::new(REPRODUCTIONS.map(|(name, _)| name).into_iter().chain(["all"])), hide_possible_values = true)]
    pub(crate) name: String,
    /// By the simulator, or in the lab: on this machine's kernel with real programs.
    #[arg(long = "in", value_enum, default_value_t = Place::Simulator, value_name = "WHERE")]
    pub(crate) in_place: Place,
    /// In the lab: rate of a host's cable.
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, default_value = "20mbit")]
    pub(crate) rate: u64,
    /// Draw it, too: .svg or .png; for `all` a folder, a file each.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// For NAS benchmarks: a folder with cg.B, mg.B and lu.B, each a folder of SimGrid's complete traces, a file a rank,
    /// instead of the folded ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// For NAS benchmarks: nanoseconds that a flop of the traces takes; the papers' processors were slower than today's.
    #[arg(long, default_value_t = 4.0, value_name = "NS", value_parser = super::numbers::real(0.0..=1e9))]
    pub(crate) ns_per_flop: f64,
    /// For fig8: write the values, for plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Where something is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// In simulated time.
    Simulator,
    /// On namespaces of this machine: fig7, fig8 (by Open MPI, a sort and hpcc, where they are installed), miura-fig6.
    Lab,
}

fn help() -> String {
    let mut help = "What there is:\n".to_owned();
    for (name, what) in REPRODUCTIONS {
        help.push_str(&format!("  {name:<13} {what}\n"));
    }
    help.push_str("  all           each of them\n");
    help.push_str(
        "\nTraces of six NAS benchmarks come with the program. Exit code 1 means that a number or a statement \
         of the paper is not as it should be here.\n\nExamples:\n  espalier reproduce table3\n  \
         espalier reproduce fig7 --plot fig7.svg\n  \
         espalier reproduce all --plot figures\n  espalier reproduce all --in lab\n",
    );
    help
}
