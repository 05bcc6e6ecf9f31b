//! What the papers' benchmarks do, as programs on simulated hosts: ping-pong, exchanges, streams.
//!
//! ```text
//!   ping-pong   a ──▶ b ──▶ a          half of a round is the one-way time (IMB PingPong)
//!   exchange    a ⇄ b at once          octets of one direction over the time (IMB PingPing)
//!   stream      a ──▶ b without end    what the receiver gets a second (Iperf, Tperf)
//! ```
//! Source: Intel MPI Benchmarks, users' guide, sections on single and parallel transfer benchmarks; their "MByte" is 2^20.

use fabric::{HostId, Plan};
use sim::{
    job::{Job, Messaging},
    packet::{FlowControlAt, Outcome, PacketConfig, Simulation},
    program::{Action, Builder, Program, executor::Ran},
    workload::{Flow, SECOND_PS, Transport, Workload},
};

use crate::error::SimulationError;

/// Octets of what the benchmarks of that time call a megabyte, and bits of what they call a megabit.
pub(super) const MEGA: f64 = (1_u64 << 20) as f64;
/// Delay of a cable of ten metres.
pub(super) const CABLE_PS: u64 = 50_000;
/// Simulated time after which a program has hung.
const LONGEST_PS: u64 = 600 * SECOND_PS;

/// Pairs of hosts at work with messages, all at once: where, and how messages travel.
pub(super) struct Bench<'a> {
    pub(super) plan: &'a Plan,
    pub(super) pairs: &'a [(HostId, HostId)],
    pub(super) messaging: Messaging,
    pub(super) config: &'a PacketConfig,
}

impl Bench<'_> {
    /// To and fro, each message when the one before has come: microseconds of one way, for each pair.
    ///
    /// # Errors
    /// If the program does not end.
    pub(super) fn one_way_us(&self, bytes: u64, rounds: u32) -> Result<Vec<f64>, SimulationError> {
        let program = by_pairs(self.pairs.len(), rounds, |rank, peer| match rank < peer {
            true => vec![vec![send(peer, bytes)], vec![receive(peer)]],
            false => vec![vec![receive(peer)], vec![send(peer, bytes)]],
        })?;
        let ran = self.run(program)?;
        Ok((0..self.pairs.len()).map(|pair| ran.ended_ps[pair] as f64 / 1e6 / f64::from(2 * rounds)).collect())
    }

    /// Both directions at once: octets a second of one direction, for each pair.
    ///
    /// # Errors
    /// If the program does not end.
    pub(super) fn exchange_bytes_per_s(&self, bytes: u64, rounds: u32) -> Result<Vec<f64>, SimulationError> {
        let pairs = self.pairs.len();
        let program = by_pairs(pairs, rounds, |_, peer| vec![vec![send(peer, bytes), receive(peer)]])?;
        let ran = self.run(program)?;
        let both_ended_s = |pair: usize| ran.ended_ps[pair].max(ran.ended_ps[pairs + pair]) as f64 / 1e12;
        Ok((0..pairs).map(|pair| (bytes * u64::from(rounds)) as f64 / both_ended_s(pair)).collect())
    }

    fn run(&self, program: Program) -> Result<Ran, SimulationError> {
        let (first, second) = (self.pairs.iter().map(|pair| pair.0), self.pairs.iter().map(|pair| pair.1));
        let hosts = first.chain(second).collect();
        let job = Job::new(&self.plan.topology, program, hosts, self.messaging, Vec::new())?;
        let (_, outcome) = Simulation::of_job(self.plan, &job, self.config).finish_job();
        let outcome = outcome.expect("a job was run");
        if outcome.cut_short {
            return Err(SimulationError::TooLong);
        }
        if !outcome.ran.stalled.is_empty() {
            return Err(SimulationError::Stalled { program: "a benchmark", ranks: outcome.ran.stalled });
        }
        Ok(outcome.ran)
    }
}

/// Streams for a simulated time, each from its first host to its second: what was received once they run, by stream.
pub(super) fn streams(
    plan: &Plan,
    pairs: &[(HostId, HostId)],
    transport: Transport,
    payload_bytes: u32,
    config: &PacketConfig,
) -> Outcome {
    let flow = |(from, to): &(HostId, HostId)| Flow { transport, payload_bytes, ..Flow::flood(*from, *to) };
    let workload = Workload { flows: pairs.iter().map(flow).collect(), faults: Vec::new() };
    Simulation::new(plan, &workload, config).finish()
}

/// A network without flow control whose cables are as long as a machine room's.
pub(super) fn room() -> PacketConfig {
    PacketConfig {
        flow_control: FlowControlAt::Nowhere,
        cable_ps: CABLE_PS,
        duration_ps: LONGEST_PS,
        ..PacketConfig::default()
    }
}

/// Rank `p` and rank `pairs + p` do in every round what `steps` says for a rank and its peer.
fn by_pairs(
    pairs: usize,
    rounds: u32,
    steps: impl Fn(u32, u32) -> Vec<Vec<Action>>,
) -> Result<Program, SimulationError> {
    let mut builder = Builder::new(2 * pairs);
    for rank in 0..2 * pairs as u32 {
        let peer = (rank + pairs as u32) % (2 * pairs as u32);
        for _ in 0..rounds {
            steps(rank, peer).iter().for_each(|step| builder.step(rank, step));
        }
    }
    Ok(builder.build()?)
}

fn send(to: u32, bytes: u64) -> Action {
    Action::Send { to, tag: 0, bytes, cpu: 0 }
}

fn receive(from: u32) -> Action {
    Action::Receive { from: Some(from), tag: Some(0), cpu: 0 }
}
