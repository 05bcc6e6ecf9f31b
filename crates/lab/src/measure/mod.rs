//! Real traffic between the hosts' own stacks: every pair of a pattern sends the same number of bytes at the same time.
//!
//! Sockets are made inside the hosts' namespaces and stay there, whichever thread uses them; a few threads then serve
//! all of them by `epoll`. That keeps a measurement of hundreds of transfers within two processors.
//!
//! ```text
//! listen in every host ─▶ connect every pair ─▶ one common start ─▶ send and receive ─▶ a finishing time for each pair
//! ```
//!
//! TCP must fill the busiest channel without collapsing on it. What could go wrong, and what prevents it:
//! - *losses and timeouts*, where the windows that meet at a channel exceed its queue: each receive buffer is bounded to
//!   [`WINDOW_BYTES`], so 64 transfers through one channel keep to the queue of a cable. Without loss the choice of
//!   congestion control does not matter.
//! - *idling*, where windows are smaller than what is in flight: [`WINDOW_BYTES`] is several times what a cable of
//!   100 Mbit/s holds over the scheduling delays of a busy machine.
//! - *unfairness*, which TCP through plain queues brings by itself: a transfer that waits in two full queues gets half of
//!   what its neighbours get, is left over when they have finished, and then cannot fill the channel alone. Transfers that
//!   keep together ([`Pace::Together`]) leave queues only where the pattern needs them, at the busiest channel.

mod iperf;
mod pattern;
mod predict;
mod transfer;

use std::time::Duration;

use crate::{Lab, LabError, layout::Layout};

pub use iperf::{IperfResult, iperf3};
pub use pattern::Pattern;
pub use predict::{Prediction, predict};

/// Receive window of each TCP transfer.
pub const WINDOW_BYTES: usize = 32 << 10;

/// Most transfers at once, each of which holds two sockets.
pub const PAIRS_MAX: usize = 8192;

/// How long nothing may arrive before a TCP measurement is given up.
const STALL: Duration = Duration::from_secs(10);

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// A TCP connection a pair.
    Tcp,
    /// Datagrams that fill the MTU, as fast as the host's cable takes them; what the fabric cannot carry is lost.
    Udp,
}

/// Whether transfers wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// No TCP transfer gets more than [`LEAD_BYTES`] ahead of the slowest one, as in a program whose processes exchange
    /// block by block. The completion time is the fabric's; pairs differ little.
    Together,
    /// Every transfer takes what it can get. Pairs show who is favoured; the completion time suffers.
    Free,
}

/// How far a transfer may be ahead of the slowest one: four windows, so that waiting never empties the busiest queue.
pub const LEAD_BYTES: u64 = 4 * WINDOW_BYTES as u64;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// How much, each.
    pub bytes_per_pair: u64,
    /// By what.
    pub transport: Transport,
    /// Whether transfers wait for each other; UDP never does.
    pub pace: Pace,
}

impl Load {
    /// A pattern by TCP, together.
    pub fn new(pattern: Pattern, bytes_per_pair: u64) -> Self {
        Self { pattern, bytes_per_pair, transport: Transport::Tcp, pace: Pace::Together }
    }
}

/// What one pair achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairResult {
    /// The sender.
    pub source: String,
    /// The receiver.
    pub destination: String,
    /// Bytes of payload that the receiver read.
    pub received_bytes: u64,
    /// From the common start until the last of them.
    pub elapsed: Duration,
}

/// What a pattern achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// One a pair, in the pattern's order.
    pub pairs: Vec<PairResult>,
    /// Bytes that every pair was to send.
    pub bytes_per_pair: u64,
    /// From the common start until the last byte of all.
    pub completion: Duration,
    /// Evidence of unknown-unicast floods meanwhile; see [`Status::unknown_floods`](crate::Status::unknown_floods).
    pub unknown_floods: u64,
}

impl PairResult {
    /// Payload received over the pair's own time, in bits per second.
    pub fn goodput_bps(&self) -> f64 {
        goodput(self.received_bytes, self.elapsed)
    }
}

impl Measurement {
    /// Payload of all pairs over the completion time, in bits per second.
    pub fn total_goodput_bps(&self) -> f64 {
        goodput(self.pairs.iter().map(|pair| pair.received_bytes).sum(), self.completion)
    }

    /// The pair that finished last.
    pub fn slowest(&self) -> Option<&PairResult> {
        self.pairs.iter().max_by_key(|pair| pair.elapsed)
    }

    /// Part of the payload that did not arrive, 0 to 1.
    pub fn loss(&self) -> f64 {
        let sent = self.bytes_per_pair as f64 * self.pairs.len() as f64;
        let received = self.pairs.iter().map(|pair| pair.received_bytes as f64).sum::<f64>();
        if sent == 0.0 { 0.0 } else { 1.0 - received / sent }
    }
}

/// The pairs of a pattern, by their hosts' positions: those that hosts of the lab exchange frames in.
///
/// # Errors
/// As [`Pattern::pairs`].
pub fn pairs(layout: &Layout, pattern: &Pattern) -> Result<Vec<(usize, usize)>, LabError> {
    let hosts: Vec<&str> = layout.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut pairs = pattern.pairs(&layout.name, &hosts)?;
    pairs.retain(|(source, destination)| layout.exchange(*source, *destination));
    Ok(pairs)
}

/// Runs a load. `progress` gets the part of all bytes that has arrived, 0 to 1, a few times a second.
///
/// # Errors
/// [`LabError::Stalled`] if TCP stops moving, or any [`LabError`] of setting up.
pub fn measure(lab: &Lab, load: &Load, progress: &mut dyn FnMut(f64)) -> Result<Measurement, LabError> {
    let hosts: Vec<&str> = lab.layout().hosts.iter().map(|host| host.name.as_str()).collect();
    let pairs = pairs(lab.layout(), &load.pattern)?;
    if pairs.len() > PAIRS_MAX {
        return Err(LabError::TooLarge { what: "transfers at once", got: pairs.len(), limit: PAIRS_MAX });
    }
    let floods_before = lab.status()?.unknown_floods();
    let outcomes = transfer::run(lab.layout(), &pairs, load, progress)?;
    // A host's count begins anew with its device.
    let unknown_floods = lab.status()?.unknown_floods().saturating_sub(floods_before);
    let results: Vec<PairResult> = (pairs.iter().zip(outcomes))
        .map(|(&(source, destination), outcome)| PairResult {
            source: hosts[source].to_owned(),
            destination: hosts[destination].to_owned(),
            received_bytes: outcome.received_bytes,
            elapsed: outcome.elapsed,
        })
        .collect();
    let completion = results.iter().map(|pair| pair.elapsed).max().unwrap_or_default();
    Ok(Measurement { pairs: results, bytes_per_pair: load.bytes_per_pair, completion, unknown_floods })
}

/// Payload of a full frame.
fn payload_bytes(mtu_bytes: u16, ip_header_bytes: u64, transport: Transport) -> u64 {
    let header_bytes = match transport {
        // With the time stamps that Linux always sends.
        Transport::Tcp => 32,
        Transport::Udp => 8,
    };
    u64::from(mtu_bytes).saturating_sub(ip_header_bytes + header_bytes).max(1)
}

fn goodput(bytes: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { 8.0 * bytes as f64 / elapsed.as_secs_f64() }
}
