//! `ri2n bench`: throughput with every byte verified, failure timelines, round trips.
//!
//! The client says first what it wants: four bytes of mode, four of message size, little-endian.

mod client;
mod plot;
mod rows;
mod server;

use crate::connecting::Connecting;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
};

/// Bytes that are written or read at a time.
const CHUNK: usize = 256 << 10;
/// A stream of 64-bit numbers, counting from zero.
const MODE_STREAM: u32 = 1;
/// Messages sent back and forth.
const MODE_PING: u32 = 2;

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Waits for clients and says what arrived
    #[command(after_help = "Example:\n  ri2n bench server --verify --rows rows.txt --plot failure.svg --once")]
    Server(Server),
    /// Sends as fast as it can, or measures round trips
    #[command(
        after_help = "Examples:\n  ri2n bench client 10.0.0.2:5201 --seconds 10 --verify\n  ri2n bench client 10.0.0.2:5201 --ping-pong --size 64 --count 20000"
    )]
    Client(Client),
}

#[derive(Debug, Args)]
struct Server {
    /// Where to listen
    #[arg(long, default_value = "0.0.0.0:5201", value_name = "ADDRESS:PORT")]
    bind: SocketAddr,
    /// Check that the bytes are those that the client sends with --verify
    #[arg(long)]
    verify: bool,
    /// Write CLOCK_MONOTONIC seconds and bytes received, every 10 ms
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Draw the rate over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// End after the first client
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    connecting: Connecting,
}

#[derive(Debug, Args)]
struct Client {
    /// The server
    #[arg(value_name = "HOST:PORT")]
    server: String,
    /// How long to send
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// Send numbered words, so that the server can check every byte
    #[arg(long)]
    verify: bool,
    /// Measure round trips of messages instead
    #[arg(long)]
    ping_pong: bool,
    /// Bytes of a message
    #[arg(long, default_value_t = 64, value_name = "BYTES", requires = "ping_pong")]
    size: usize,
    /// Messages to send
    #[arg(long, default_value_t = 20_000, value_name = "N", requires = "ping_pong")]
    count: usize,
    /// Pause between messages, in microseconds
    #[arg(long, default_value_t = 0, value_name = "US", requires = "ping_pong")]
    pause: u64,
    /// Say how the links are at the end
    #[arg(long)]
    report: bool,
    #[command(flatten)]
    connecting: Connecting,
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<ExitCode> {
    ri2n_io::request_short_slices();
    let _status = super::run::serve_status_with("ri2n bench", ri2n_status::Plain::default);
    match &bench.side {
        Side::Server(server) => server::run(server),
        Side::Client(client) => client::run(client),
    }
}

/// The addresses that a name stands for.
fn resolve(server: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> =
        server.to_socket_addrs().with_context(|| format!("cannot resolve {server}; HOST:PORT is wanted"))?.collect();
    if addresses.is_empty() {
        bail!("{server} has no address");
    }
    Ok(addresses)
}

/// CLOCK_MONOTONIC in seconds.
fn monotonic_s() -> f64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    spec.tv_sec as f64 + spec.tv_nsec as f64 * 1e-9
}

/// Memory resident now, in KiB, before a stream is opened.
fn resident_kib() -> i64 {
    status_kib("VmRSS:").unwrap_or(0)
}

fn status_kib(name: &str) -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// What this process used: CPU seconds, and the most memory resident, in KiB.
fn usage() -> (f64, i64) {
    // SAFETY: all zeros are a valid structure, which outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    // The structure's own figure would count what the process was before it became this program.
    let peak = status_kib("VmHWM:");
    (seconds(usage.ru_utime) + seconds(usage.ru_stime), peak.unwrap_or(usage.ru_maxrss))
}
