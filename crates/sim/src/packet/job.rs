//! Jobs at the packet level: each pair of hosts has one connection, on which messages follow each other.
//!
//! ```text
//!   executor ── transfer ──▶ connection: [ message 0 | 1 | 2 ] ──▶ segments ──▶ … ──▶ in order ──▶ executor
//! ```
//! A message begins with a segment of its own, as programs that turn off Nagle's algorithm have it.

use std::collections::VecDeque;

use super::engine::{Network, What};
use crate::{
    job::Job,
    program::executor::{Effect, Executor, Ran, Token},
};

/// A job under way.
pub(super) struct Running<'a> {
    pub(super) job: &'a Job,
    executor: Executor<'a>,
    /// What waits for its time; an event names its place here.
    wakes: Vec<Option<Wake>>,
    unused: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Wake {
    /// The executor asked for it.
    Asked(Token),
    /// A message went through memory.
    Copied(Token),
}

/// Messages on a connection that have not arrived.
#[derive(Default)]
pub(super) struct Messages {
    queue: VecDeque<Message>,
    /// The number of the next message's first frame.
    next_frame: u32,
}

struct Message {
    token: Token,
    bytes: u64,
    first: u32,
    frames: u32,
    /// Frames that arrived, of a datagram sender's.
    arrived: u32,
}

impl Messages {
    /// Appends a message; how many frames it takes.
    fn push(&mut self, token: Token, bytes: u64, payload_bytes: u32) -> u32 {
        let frames = bytes.div_ceil(u64::from(payload_bytes)).max(1);
        let frames = u32::try_from(frames).expect("a message of fewer than 2^32 frames");
        self.queue.push_back(Message { token, bytes, first: self.next_frame, frames, arrived: 0 });
        self.next_frame = self.next_frame.checked_add(frames).expect("a connection carries fewer than 2^32 frames");
        frames
    }

    /// Octets in a frame; none if its message has arrived already.
    pub(super) fn payload(&self, number: u32, payload_bytes: u32) -> u32 {
        let Some(message) = self.of(number).and_then(|at| self.queue.get(at)) else { return payload_bytes };
        let before = u64::from(number - message.first) * u64::from(payload_bytes);
        message.bytes.saturating_sub(before).min(u64::from(payload_bytes)) as u32
    }

    /// The number after that of the last frame of a frame's message.
    pub(super) fn end(&self, number: u32) -> u32 {
        let message = self.of(number).and_then(|at| self.queue.get(at));
        message.map_or(u32::MAX, |message| message.first + message.frames)
    }

    fn of(&self, number: u32) -> Option<usize> {
        self.queue.partition_point(|message| message.first <= number).checked_sub(1)
    }
}

impl<'a> Running<'a> {
    pub(super) fn new(job: &'a Job) -> Self {
        Self { job, executor: Executor::new(&job.program, job.costs), wakes: Vec::new(), unused: Vec::new() }
    }

    pub(super) fn finish(self) -> Ran {
        self.executor.finish()
    }

    /// Whether nothing is left that could happen.
    pub(super) fn is_over(&self) -> bool {
        self.executor.is_done() || self.executor.is_stalled()
    }

    fn sleep(&mut self, wake: Wake) -> u32 {
        match self.unused.pop() {
            Some(index) => {
                self.wakes[index as usize] = Some(wake);
                index
            }
            None => {
                self.wakes.push(Some(wake));
                (self.wakes.len() - 1) as u32
            }
        }
    }
}

impl Network<'_> {
    /// A job's program begins.
    pub(super) fn begin_job(&mut self) {
        if let Some(running) = &mut self.job {
            running.executor.start();
            self.carry_out();
        }
    }

    /// Something of a job is due.
    pub(super) fn handle_wake(&mut self, index: u32) {
        let Some(running) = &mut self.job else { return };
        let Some(wake) = running.wakes[index as usize].take() else { return };
        running.unused.push(index);
        match wake {
            Wake::Asked(token) => running.executor.handle_wake(self.now_ps, token),
            Wake::Copied(token) => running.executor.handle_arrival(self.now_ps, token),
        }
        self.carry_out();
    }

    /// Does what the executor asks for.
    fn carry_out(&mut self) {
        while let Some(running) = &mut self.job {
            let Some(effect) = running.executor.poll_effect() else { break };
            let (at_ps, wake) = match effect {
                Effect::Wake { at_ps, token } => (at_ps, Wake::Asked(token)),
                Effect::Transfer { token, from, to, bytes } => match running.job.connection(from, to) {
                    Some(flow) => {
                        self.send_message(flow, token, bytes);
                        continue;
                    }
                    None => (self.now_ps + running.job.memory.time_ps(bytes), Wake::Copied(token)),
                },
            };
            let index = running.sleep(wake);
            self.wheel.push(at_ps, What::Wake { index });
        }
        self.stop_if_idle();
    }

    fn send_message(&mut self, flow: u32, token: Token, bytes: u64) {
        let payload_bytes = self.spec(flow).payload_bytes;
        let state = &mut self.flows[flow as usize];
        let frames = state.messages.get_or_insert_default().push(token, bytes, payload_bytes);
        state.extend(frames);
        if self.flow_outcomes[flow as usize].started_ps.is_none() {
            self.handle_start(flow);
        } else if self.flows[flow as usize].begun {
            self.make_ready(flow);
        }
    }

    /// A frame of a message has arrived, or for senders that see to it all up to `in_order`.
    pub(super) fn receive_message(&mut self, flow: u32, number: u32, in_order: Option<u32>) {
        let payload_bytes = self.spec(flow).payload_bytes;
        let Some(messages) = &mut self.flows[flow as usize].messages else { return };
        if in_order.is_none() {
            let Some(at) = messages.of(number) else { return };
            messages.queue[at].arrived += 1;
        }
        let mut done = Vec::new();
        let mut bytes = 0;
        while let Some(message) = messages.queue.front() {
            let whole = match in_order {
                Some(upto) => upto >= message.first.saturating_add(message.frames),
                None => message.arrived == message.frames,
            };
            if !whole {
                break;
            }
            bytes += message.bytes;
            done.push(message.token);
            messages.queue.pop_front();
        }
        debug_assert!(payload_bytes > 0);
        if done.is_empty() {
            return;
        }
        self.count_payload(flow, bytes);
        for token in done {
            if let Some(running) = &mut self.job {
                running.executor.handle_arrival(self.now_ps, token);
            }
        }
        self.carry_out();
    }
}
