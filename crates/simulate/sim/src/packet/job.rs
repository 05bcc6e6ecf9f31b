//! Jobs at the packet level: each pair of hosts has one connection, on which messages follow each other.
//!
//! ```text
//!   executor ── transfer ──▶ connection: [ message 0 | 1 | 2 ] ──▶ segments ──▶ … ──▶ in order ──▶ executor
//! ```
//! A message begins with a segment of its own, as programs that turn off Nagle's algorithm have it. The answer to a long
//! message's request does not wait for long messages the other way: it goes in front of what has not been sent, and cuts
//! a message that is on its way in two.
//!
//! ```text
//!   sent ▕ 0 0 0 ▏ 0 0 0 | 1 1     an answer comes     sent ▕ 0 0 0 ▏ a | 0 0 0 | 1 1
//! ```

use std::collections::VecDeque;

use super::{Network, What};
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
    queue: VecDeque<Piece>,
    /// The number of the next message's first frame.
    next_frame: u32,
}

/// A message, or what of it travels without a break.
#[derive(Clone, Copy)]
struct Piece {
    token: Token,
    bytes: u64,
    first: u32,
    frames: u32,
    /// Frames that arrived, of a datagram sender's.
    arrived: u32,
    /// Whether the message ends with it.
    is_last: bool,
}

impl Piece {
    /// The number after that of its last frame.
    fn end(&self) -> u32 {
        self.first.saturating_add(self.frames)
    }
}

impl Messages {
    /// Puts a message behind those that wait, or an answer in front of what has not been sent: of frames from number
    /// `unsent` on nobody has seen any. How many frames it takes.
    fn push(&mut self, token: Token, bytes: u64, payload_bytes: u32, unsent: u32) -> u32 {
        let frames = bytes.div_ceil(u64::from(payload_bytes)).max(1);
        let frames = u32::try_from(frames).expect("a message of fewer than 2^32 frames");
        let at = if token.is_answer() { self.gap(unsent, payload_bytes) } else { self.queue.len() };
        let first = self.queue.get(at).map_or(self.next_frame, |piece| piece.first);
        self.next_frame = self.next_frame.checked_add(frames).expect("a connection carries fewer than 2^32 frames");
        self.queue.range_mut(at..).for_each(|piece| piece.first += frames);
        self.queue.insert(at, Piece { token, bytes, first, frames, arrived: 0, is_last: true });
        frames
    }

    /// The place in the queue from which on nothing has been sent, behind answers that wait there already; a message of
    /// which some frames have been sent is cut there.
    fn gap(&mut self, unsent: u32, payload_bytes: u32) -> usize {
        let mut at = self.queue.partition_point(|piece| piece.end() <= unsent);
        if let Some(piece) = self.queue.get_mut(at).filter(|piece| piece.first < unsent) {
            let rest = *piece;
            piece.frames = unsent - piece.first;
            piece.bytes = u64::from(piece.frames) * u64::from(payload_bytes);
            piece.is_last = false;
            let (frames, bytes) = (rest.frames - piece.frames, rest.bytes - piece.bytes);
            at += 1;
            self.queue.insert(at, Piece { first: unsent, frames, bytes, arrived: 0, ..rest });
        }
        while self.queue.get(at).is_some_and(|piece| piece.token.is_answer()) {
            at += 1;
        }
        at
    }

    /// Octets in a frame; none if its message has arrived already.
    pub(super) fn payload(&self, number: u32, payload_bytes: u32) -> u32 {
        let Some(piece) = self.of(number).and_then(|at| self.queue.get(at)) else { return payload_bytes };
        let before = u64::from(number - piece.first) * u64::from(payload_bytes);
        piece.bytes.saturating_sub(before).min(u64::from(payload_bytes)) as u32
    }

    /// The number after that of the last frame of a frame's message, if what the frame belongs to is the message's end.
    pub(super) fn end(&self, number: u32) -> u32 {
        let piece = self.of(number).and_then(|at| self.queue.get(at));
        piece.filter(|piece| piece.is_last).map_or(u32::MAX, Piece::end)
    }

    fn of(&self, number: u32) -> Option<usize> {
        self.queue.partition_point(|piece| piece.first <= number).checked_sub(1)
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
        let supply = self.supplies.get_mut(&flow);
        let unsent = supply.as_ref().map_or_else(|| state.unsent(), |supply| supply.drawn);
        let frames = state.messages.get_or_insert_default().push(token, bytes, payload_bytes, unsent);
        let subflows = match supply {
            Some(supply) => {
                supply.total += frames;
                supply.subflows.clone()
            }
            None => {
                state.extend(frames);
                vec![flow]
            }
        };
        if self.flow_outcomes[flow as usize].started_ps.is_none() {
            self.handle_start(flow);
        } else if self.flows[flow as usize].begun {
            subflows.into_iter().for_each(|subflow| self.make_ready(subflow));
        }
    }

    /// A frame of a message has arrived, or for senders that see to it all up to `in_order`.
    pub(super) fn receive_message(&mut self, flow: u32, number: u32, in_order: Option<u32>) {
        let Some(messages) = &mut self.flows[flow as usize].messages else { return };
        if in_order.is_none() {
            let Some(at) = messages.of(number) else { return };
            messages.queue[at].arrived += 1;
        }
        let mut done = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = messages.queue.front() {
            let whole = match in_order {
                Some(upto) => upto >= piece.end(),
                None => piece.arrived == piece.frames,
            };
            if !whole {
                break;
            }
            bytes += piece.bytes;
            if piece.is_last {
                done.push(piece.token);
            }
            messages.queue.pop_front();
        }
        self.count_payload(flow, bytes);
        if done.is_empty() {
            return;
        }
        for token in done {
            if let Some(running) = &mut self.job {
                running.executor.handle_arrival(self.now_ps, token);
            }
        }
        self.carry_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    /// Messages and answers at random, frames sent in between: every frame belongs to one message, every message has its
    /// octets, long messages stay in order, and answers pass only what has not been sent.
    #[test]
    fn answers_go_in_front_of_what_has_not_been_sent() {
        for seed in 0..200 {
            let (mut rng, mut messages, mut unsent, mut total) = (Rng::new(seed), Messages::default(), 0, 0);
            let mut sizes = Vec::new();
            for number in 0..40 {
                let token = Token::of_test(number, rng.below(3) == 0);
                let bytes = if token.is_answer() { 0 } else { rng.below(3_000) as u64 };
                total += messages.push(token, bytes, 100, unsent);
                if token.is_answer() {
                    let piece = messages.queue.iter().find(|piece| piece.token == token).expect("it waits");
                    let before = messages.queue.iter().filter(|other| other.first < piece.first);
                    let behind = before.filter(|other| other.end() > unsent && !other.token.is_answer()).count();
                    assert_eq!(behind, 0, "seed {seed}: an answer waits for what has not been sent");
                }
                sizes.push((token, bytes));
                unsent += rng.below((total - unsent) as usize + 1) as u32;
            }
            let mut next = 0;
            for piece in &messages.queue {
                assert_eq!(piece.first, next, "seed {seed}");
                next = piece.end();
            }
            assert_eq!((next, messages.next_frame), (total, total), "seed {seed}");
            for (token, bytes) in sizes {
                let own: Vec<&Piece> = messages.queue.iter().filter(|piece| piece.token == token).collect();
                assert_eq!(own.iter().map(|piece| piece.bytes).sum::<u64>(), bytes, "seed {seed}");
                let last: Vec<bool> = own.iter().map(|piece| piece.is_last).collect();
                assert_eq!(last.iter().filter(|is_last| **is_last).count(), 1, "seed {seed}");
                assert_eq!(last.last(), Some(&true), "seed {seed}");
                let payload: u64 = own
                    .iter()
                    .flat_map(|piece| piece.first..piece.end())
                    .map(|frame| u64::from(messages.payload(frame, 100)))
                    .sum();
                assert_eq!(payload, bytes, "seed {seed}");
            }
            for wanted in [true, false] {
                let ends: Vec<Token> = messages
                    .queue
                    .iter()
                    .filter(|piece| piece.is_last && piece.token.is_answer() == wanted)
                    .map(|piece| piece.token)
                    .collect();
                assert!(ends.is_sorted(), "seed {seed}: out of order");
            }
        }
    }
}
