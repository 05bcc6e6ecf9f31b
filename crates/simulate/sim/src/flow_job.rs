//! Jobs at the flow level: a message is a transfer at max-min fair rates, and arrives a little later than its last bit
//! leaves.
//!
//! The amount that travels is that of the frames, preamble and gap included, and the time along the way that of one frame
//! through each switch; so an undisturbed message takes as long as at the packet level, but for acknowledgements and
//! windows, which do not exist here. A connection's messages travel one after the other; answers to the requests of long
//! messages go between them, beside what is shared.
//!
//! ```text
//!   queue ▕ m2 m1 ▏──▶ m0: shared rate ──── last bit out ──── latency ───▶ arrived
//! ```

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use fabric::Plan;

use crate::{
    flow::{FlowLevel, NoRoute},
    job::Job,
    lag::numbers,
    live::Live,
    packet::{PacketConfig, Switching},
    program::executor::{Effect, Executor, Ran, Token},
    spread::Spread,
    workload::{Flow, WIRE_OVERHEAD_BYTES},
};

/// Octets of a VLAN tag.
const TAG_BYTES: u32 = 4;
/// Octets of a frame after which a cut-through switch goes on, preamble included.
const HEADER_BYTES: u32 = 8 + 64;

/// How a job ran at the flow level.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowJobOutcome {
    /// How its program ran.
    pub ran: Ran,
    /// `carried[resource]`: bits, frames' overhead included; those of a LAG are the sum of its cables'.
    pub carried: Vec<f64>,
    /// How often rates were shared.
    pub solutions: u64,
    /// The time that was reached.
    pub elapsed_ps: u64,
    /// Whether it was stopped before the program had ended.
    pub cut_short: bool,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// The simulated clock.
    pub now_ps: u64,
    /// Messages that have arrived.
    pub messages: u64,
}

/// Changes of rates between two looks at whether to go on.
const CHANGES_A_LOOK: u64 = 16;

struct Connection {
    way: Vec<u32>,
    queue: VecDeque<(Token, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Wake(Token),
    Arrival(Token),
}

/// Runs a job to its end, or until it stalls. Of `config` only the switches' way of forwarding, what cables and switches
/// take, and [`Spread::Flow`] count; of the job, faults do not.
///
/// # Errors
/// If a pair is not connected.
pub fn run_job(plan: &Plan, job: &Job, config: &PacketConfig) -> Result<FlowJobOutcome, NoRoute> {
    run_job_while(plan, job, config, &mut |_| true)
}

/// The same for as long as `go_on` says yes, which is asked from time to time.
///
/// # Errors
/// As [`run_job`].
pub fn run_job_while(
    plan: &Plan,
    job: &Job,
    config: &PacketConfig,
    go_on: &mut dyn FnMut(JobProgress) -> bool,
) -> Result<FlowJobOutcome, NoRoute> {
    let spread = if config.spread == Spread::Flow { Spread::Flow } else { Spread::One };
    let level = FlowLevel::compile(plan, spread);
    let mut connections = Vec::with_capacity(job.workload.flows.len());
    let numbers = numbers(job.workload.flows.iter().map(|flow| (flow.phase, flow.source, flow.destination)));
    for (flow, number) in job.workload.flows.iter().zip(numbers) {
        let mut way = Vec::new();
        if let Some(destination) = flow.destination {
            level.append_way((flow.source, destination), number, &mut way)?;
        }
        connections.push(Connection { way, queue: VecDeque::new() });
    }
    let capacity = level.capacity_bps();
    let run = Run {
        job,
        config,
        capacity,
        connections,
        live: Live::new(capacity),
        due: BinaryHeap::new(),
        pushed: 0,
        carried: vec![0.0; capacity.len()],
        now_ps: 0,
    };
    let mut outcome = run.finish(Executor::new(&job.program, job.costs), go_on);
    level.add_up(&mut outcome.carried);
    Ok(outcome)
}

struct Run<'a> {
    job: &'a Job,
    config: &'a PacketConfig,
    capacity: &'a [f64],
    connections: Vec<Connection>,
    live: Live<'a>,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    pushed: u64,
    carried: Vec<f64>,
    now_ps: u64,
}

impl Run<'_> {
    fn finish(mut self, mut executor: Executor<'_>, go_on: &mut dyn FnMut(JobProgress) -> bool) -> FlowJobOutcome {
        executor.start();
        self.carry_out(&mut executor);
        let (mut ended, mut changes, mut cut_short) = (Vec::new(), 0, false);
        loop {
            if changes % CHANGES_A_LOOK == 0 {
                let progress = JobProgress { now_ps: self.now_ps, messages: executor.arrived_messages() };
                if !go_on(progress) {
                    cut_short = !executor.is_done();
                    break;
                }
            }
            changes += 1;
            self.live.settle(self.now_ps);
            let due_ps = self.due.peek().map(|Reverse((at_ps, ..))| *at_ps);
            let next_ps = match (due_ps, self.live.next_end_ps()) {
                (None, None) => break,
                (due_ps, end_ps) => due_ps.unwrap_or(u64::MAX).min(end_ps.unwrap_or(u64::MAX)),
            };
            self.now_ps = next_ps;
            ended.clear();
            self.live.end(next_ps, &mut ended);
            // In the order of connections, whatever the order in which their slots were given.
            ended.sort_unstable();
            ended.iter().for_each(|connection| self.last_bit_left(*connection));
            while self.due.peek().is_some_and(|Reverse((at_ps, ..))| *at_ps <= next_ps) {
                let Some(Reverse((_, _, due))) = self.due.pop() else { break };
                match due {
                    Due::Wake(token) => executor.handle_wake(next_ps, token),
                    Due::Arrival(token) => executor.handle_arrival(next_ps, token),
                }
                self.carry_out(&mut executor);
            }
        }
        FlowJobOutcome {
            ran: executor.finish(),
            carried: self.carried,
            solutions: self.live.solutions,
            elapsed_ps: self.now_ps,
            cut_short,
        }
    }

    fn carry_out(&mut self, executor: &mut Executor<'_>) {
        while let Some(effect) = executor.poll_effect() {
            match effect {
                Effect::Wake { at_ps, token } => self.push(at_ps, Due::Wake(token)),
                Effect::Transfer { token, from, to, bytes } => match self.job.connection(from, to) {
                    Some(connection) if token.is_answer() => {
                        let latency_ps = self.along_ps(connection, bytes, 0);
                        self.push(self.now_ps.saturating_add(latency_ps), Due::Arrival(token));
                    }
                    Some(connection) => {
                        let queue = &mut self.connections[connection as usize].queue;
                        queue.push_back((token, bytes));
                        if queue.len() == 1 {
                            self.begin(connection);
                        }
                    }
                    None => self.push(self.now_ps.saturating_add(self.job.memory.time_ps(bytes)), Due::Arrival(token)),
                },
            }
        }
    }

    fn push(&mut self, at_ps: u64, due: Due) {
        self.due.push(Reverse((at_ps, self.pushed, due)));
        self.pushed += 1;
    }

    /// The first message of a connection's queue begins to travel.
    fn begin(&mut self, connection: u32) {
        let Some((_, bytes)) = self.connections[connection as usize].queue.front().copied() else { return };
        let way = std::mem::take(&mut self.connections[connection as usize].way);
        let bits = 8.0 * wire_bytes(&self.job.workload.flows[connection as usize], bytes, way.len()) as f64;
        way.iter().for_each(|resource| self.carried[*resource as usize] += bits);
        self.live.add(self.now_ps, connection, &way, bits);
        self.connections[connection as usize].way = way;
    }

    fn last_bit_left(&mut self, connection: u32) {
        let Some((token, bytes)) = self.connections[connection as usize].queue.pop_front() else { return };
        let latency_ps = self.along_ps(connection, bytes, 1);
        self.push(self.now_ps.saturating_add(latency_ps), Due::Arrival(token));
        if !self.connections[connection as usize].queue.is_empty() {
            self.begin(connection);
        }
    }

    /// How long a message's last frame takes along the way's cables from this one on, and along all cables as light does.
    fn along_ps(&self, connection: u32, bytes: u64, from: usize) -> u64 {
        let (flow, way) = (&self.job.workload.flows[connection as usize], &self.connections[connection as usize].way);
        let frame = frame_wire_bytes(flow, bytes.min(u64::from(flow.payload_bytes)) as u32, way.len());
        let held = match self.config.switching {
            Switching::StoreAndForward => frame,
            Switching::CutThrough => frame.min(HEADER_BYTES),
        };
        let through: f64 =
            way[from..].iter().map(|resource| f64::from(held) * 8e12 / self.capacity[*resource as usize]).sum();
        let cables = way.len() as u64;
        through as u64 + cables * self.config.cable_ps + (cables - 1) * self.config.switch_latency_ps
    }
}

/// Octets of a frame on the cable; between switches it has a tag.
fn frame_wire_bytes(flow: &Flow, payload_bytes: u32, hops: usize) -> u32 {
    flow.frame_bytes(payload_bytes) + WIRE_OVERHEAD_BYTES + if hops > 2 { TAG_BYTES } else { 0 }
}

/// Octets of a message on the cable.
fn wire_bytes(flow: &Flow, bytes: u64, hops: usize) -> u64 {
    let payload = u64::from(flow.payload_bytes);
    let full = bytes.saturating_sub(1) / payload;
    let last = (bytes - full * payload) as u32;
    full * u64::from(frame_wire_bytes(flow, flow.payload_bytes, hops)) + u64::from(frame_wire_bytes(flow, last, hops))
}
