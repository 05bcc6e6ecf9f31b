//! What a simulation can be given to do instead of a pattern, and what happens to the fabric meanwhile.

use std::path::PathBuf;

use clap::Args;
use sim::{
    program::collective::{Algorithm, Collective},
    random::Sizes,
};

use crate::cli::numbers::{count, real, short, whole};

/// Programs instead of a pattern.
#[derive(Args)]
pub(crate) struct WorkloadArgs {
    /// A collective operation of MPI, such as alltoall or allreduce:ring; --bytes says how much (64 KiB unless given): a
    /// block for alltoall, allgather, gather, scatter and reduce-scatter, else the whole vector.
    #[arg(long, value_parser = parse_collective, value_name = "NAME[:ALGORITHM]", conflicts_with_all = ["pattern", "goal", "trace", "matrix", "random"])]
    pub(crate) collective: Option<(Collective, Algorithm)>,
    /// How often the collective operation is done.
    #[arg(long, default_value_t = 1, value_parser = short(1..=u32::MAX), value_name = "N", requires = "collective")]
    pub(crate) times: u32,
    /// The root of broadcast, reduce, gather and scatter; 0 unless given.
    #[arg(long, value_name = "RANK", requires = "collective", value_parser = short(0..=65_535))]
    pub(crate) root: Option<u32>,
    /// A GOAL schedule.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "trace", "matrix", "random"])]
    pub(crate) goal: Option<PathBuf>,
    /// Traces of an MPI program as SimGrid's SMPI writes them: a file, or a folder with one a rank.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pattern", "matrix", "random"])]
    pub(crate) trace: Option<PathBuf>,
    /// Nanoseconds that a flop of the traces takes.
    #[arg(long, default_value_t = 1.0, value_name = "NS", requires = "trace", value_parser = real(0.0..=1e9))]
    pub(crate) ns_per_flop: f64,
    /// Algorithms of the traces' collectives, such as alltoall:linear; those of MPICH unless given.
    #[arg(long, value_parser = parse_collective, value_name = "NAME:ALGORITHM", requires = "trace")]
    pub(crate) algorithm: Vec<(Collective, Algorithm)>,
    /// A traffic matrix: each pair sends its demand, times --bytes, at once.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "random"])]
    pub(crate) matrix: Option<PathBuf>,
    /// So many messages between random hosts at random times.
    #[arg(long, value_name = "MESSAGES", conflicts_with = "pattern", value_parser = whole(1..=sim::random::MESSAGES_MAX))]
    pub(crate) random: Option<u64>,
    /// Their sizes: fixed=N, exponential=MEAN, pareto=MEAN,SHAPE, web-search or data-mining.
    #[arg(long, default_value = "web-search", value_name = "SIZES", allow_hyphen_values = true, requires = "random")]
    pub(crate) sizes: Sizes,
    /// The share of the hosts' cables that they take.
    #[arg(long, default_value_t = 0.3, value_parser = parse_load, allow_hyphen_values = true, value_name = "SHARE", requires = "random")]
    pub(crate) load: f64,
    /// Ranks of a collective operation; one a host unless given.
    #[arg(long, value_name = "N", requires = "collective", value_parser = short(1..=65_536))]
    pub(crate) ranks: Option<u32>,
    /// How many ranks share a host; ranks are placed in the order of hosts. 1 unless given.
    #[arg(long, value_name = "N", value_parser = count(1..=65_536))]
    pub(crate) ranks_per_host: Option<usize>,
    /// Messages up to here are sent without asking the receiver first; 65,536 bytes unless given.
    #[arg(long, value_name = "BYTES", value_parser = whole(0..=u64::MAX))]
    pub(crate) eager: Option<u64>,
    /// What preparing and taking a message costs its processor, in microseconds each; 0 unless given.
    #[arg(long, value_name = "US", value_parser = real(0.0..=1e9))]
    pub(crate) overhead_us: Option<f64>,
}

/// What happens to the fabric, and what hosts must find out.
#[derive(Args)]
pub(crate) struct FabricArgs {
    /// What breaks or heals and when: '5ms link sw1:g23 down' (or up, loses 1%, rate 100mbit), '0 switch sw2 down'; or a
    /// file with a line each. Packet level.
    #[arg(long, value_name = "FAULT|FILE")]
    pub(crate) fault: Vec<String>,
    /// Mark frames that find more than this many bytes in a queue before them; TCP senders slow down. Packet level.
    #[arg(long, value_name = "BYTES", value_parser = short(0..=u32::MAX))]
    pub(crate) ecn: Option<u32>,
    /// Hosts ask for each other's address first, by a broadcast in their VLAN. Packet level.
    #[arg(long)]
    pub(crate) arp: bool,
}

impl WorkloadArgs {
    /// Whether there is a program to run rather than a pattern.
    pub(crate) fn is_program(&self) -> bool {
        self.collective.is_some()
            || self.goal.is_some()
            || self.trace.is_some()
            || self.matrix.is_some()
            || self.random.is_some()
    }
}

fn parse_collective(text: &str) -> Result<(Collective, Algorithm), String> {
    let (name, algorithm) = text.split_once(':').unwrap_or((text, "auto"));
    Ok((name.parse()?, algorithm.parse()?))
}

fn parse_load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| *load > 0.0 && *load <= 10.0);
    load.ok_or_else(|| format!("{text:?} is no share above 0, such as 0.3"))
}
