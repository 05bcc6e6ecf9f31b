//! Carries a program out: events of the network go in, messages to move come out.
//!
//! There is no clock and no network in here. Whoever drives it calls [`Executor::start`] once, then
//! [`poll_effect`](Executor::poll_effect) until nothing comes, and after each event one of the `handle_` calls and
//! `poll_effect` again. Transfers of one pair of ranks must arrive in the order in which they came out,
//! but for answers to requests.
//!
//! ```text
//!   eager        send ──▶ data ───────────────────────────────▶ matched with a receive
//!   rendezvous   send ──▶ request ──▶ matched ──▶ clear ──▶ data ──▶ both end
//! ```
//! Messages up to a size are sent at once and wait at the receiver; longer ones ask first, as MPI libraries do. Matching
//! is that of MPI: by sender and tag, in order, receives that take anybody's message included. A message moves on without
//! its process: a receiver answers a request even while it computes.

use std::collections::VecDeque;

pub use super::token::Token;
use super::{AT_START, Action, Program, mailbox::Mailbox, token::Stage};

/// No action.
const NONE: u32 = u32::MAX;
/// Waiting actions that are named when a program stalls.
const NAMED_MAX: usize = 8;

/// What messages cost beside the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Messages up to here are sent without asking, and their sender goes on at once.
    pub eager_bytes_max: u64,
    /// How long the sender's processor prepares a message.
    pub send_ps: u64,
    /// How long the receiver's processor takes one.
    pub receive_ps: u64,
}

impl Default for Costs {
    /// Eager up to 64 KiB, and no cost.
    fn default() -> Self {
        Self { eager_bytes_max: 64 << 10, send_ps: 0, receive_ps: 0 }
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Move octets between ranks, then call [`Executor::handle_arrival`]. No octets still make a frame.
    Transfer {
        /// To hand back.
        token: Token,
        /// The rank that sends.
        from: u32,
        /// The rank that receives.
        to: u32,
        /// How much.
        bytes: u64,
    },
    /// Call [`Executor::handle_wake`] at this time.
    Wake {
        /// When.
        at_ps: u64,
        /// To hand back.
        token: Token,
    },
}

/// A program under way.
pub struct Executor<'a> {
    program: &'a Program,
    costs: Costs,
    /// `left[action]`: how many others it still waits for; [`NONE`] once it has ended.
    left: Vec<u32>,
    /// `partner[send]`: the receive that takes its message.
    partner: Vec<u32>,
    /// `sent_ps[send]`: when it could go.
    sent_ps: Vec<u64>,
    /// `mail[rank]`
    mail: Vec<Mailbox>,
    /// `busy_until_ps[rank][cpu]`
    busy_until_ps: Vec<Vec<u64>>,
    ready: VecDeque<u32>,
    effects: VecDeque<Effect>,
    under_way: u64,
    open: usize,
    outcome: Ran,
}

/// How a program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// `ended_ps[rank]`: when its last action ended.
    pub ended_ps: Vec<u64>,
    /// `computed_ps[rank]`: how long it computed.
    pub computed_ps: Vec<u64>,
    /// Messages that arrived.
    pub messages: u64,
    /// Their octets.
    pub bytes: u64,
    /// When each message could go and when it had arrived, in order of arrival.
    pub times: Vec<MessageTime>,
    /// What still waits if not all ran, in words; empty if all ran.
    pub stalled: Vec<String>,
}

/// When a message travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTime {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Its size.
    pub bytes: u64,
    /// When nothing kept its sender from sending it any more.
    pub sent_ps: u64,
    /// When all of it was there and its receiver waited for it.
    pub arrived_ps: u64,
}

impl Ran {
    /// When the last rank ended.
    pub fn end_ps(&self) -> u64 {
        self.ended_ps.iter().copied().max().unwrap_or(0)
    }
}

impl<'a> Executor<'a> {
    /// A program of which nothing has run.
    pub fn new(program: &'a Program, costs: Costs) -> Self {
        let (ranks, actions) = (program.ranks(), program.actions.len());
        Self {
            program,
            costs,
            left: program.waits.clone(),
            partner: vec![NONE; actions],
            sent_ps: vec![0; actions],
            mail: (0..ranks).map(|_| Mailbox::default()).collect(),
            busy_until_ps: vec![Vec::new(); ranks],
            ready: VecDeque::new(),
            effects: VecDeque::new(),
            under_way: 0,
            open: actions,
            outcome: Ran { ended_ps: vec![0; ranks], computed_ps: vec![0; ranks], ..Ran::default() },
        }
    }

    /// Begins, at time 0.
    pub fn start(&mut self) {
        self.ready.extend((0..self.left.len() as u32).filter(|action| self.program.waits[*action as usize] == 0));
        self.run_ready(0);
    }

    /// What is to be done next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// A transfer has arrived whole.
    pub fn handle_arrival(&mut self, now_ps: u64, token: Token) {
        self.under_way -= 1;
        let Token { action, stage } = token;
        match stage {
            Stage::Eager | Stage::Request => {
                let (to, tag) = self.address(action);
                let from = self.program.rank_of(action);
                match self.mail[to as usize].take_receive(from, tag) {
                    Some(receive) => self.matched(now_ps, receive, token),
                    None => self.mail[to as usize].keep_message(from, tag, token),
                }
            }
            Stage::Clear => {
                let (to, _) = self.address(action);
                self.transfer(action, Stage::Data, self.program.rank_of(action), to, self.bytes_of(action));
            }
            Stage::Data => {
                self.end(now_ps, action);
                self.arrived(now_ps, action);
            }
            Stage::Passed | Stage::Prepared | Stage::Taken => unreachable!("time does not travel"),
        }
        self.run_ready(now_ps);
    }

    /// The time has come that was asked for.
    pub fn handle_wake(&mut self, now_ps: u64, token: Token) {
        self.under_way -= 1;
        match token.stage {
            Stage::Prepared => self.send(now_ps, token.action),
            _ => self.end(now_ps, token.action),
        }
        self.run_ready(now_ps);
    }

    /// Messages that have arrived so far.
    pub fn arrived_messages(&self) -> u64 {
        self.outcome.messages
    }

    /// Whether every action has ended.
    pub fn is_done(&self) -> bool {
        self.open == 0
    }

    /// Whether nothing can happen any more, although actions are left: a message is waited for that nobody sends.
    pub fn is_stalled(&self) -> bool {
        self.open > 0 && self.under_way == 0 && self.effects.is_empty()
    }

    /// How it ran, as far as it did.
    pub fn finish(mut self) -> Ran {
        let blocked = (0..self.left.len() as u32).filter(|action| self.left[*action as usize] == 0);
        let named: Vec<String> = blocked.take(NAMED_MAX).map(|action| self.describe(action)).collect();
        if self.open > 0 {
            let more = self.open - named.len().min(self.open);
            self.outcome.stalled = named;
            if more > 0 {
                self.outcome.stalled.push(format!("{more} more actions wait for these"));
            }
        }
        self.outcome
    }

    fn run_ready(&mut self, now_ps: u64) {
        while let Some(action) = self.ready.pop_front() {
            self.release(action, AT_START);
            let rank = self.program.rank_of(action);
            self.sent_ps[action as usize] = now_ps;
            match self.program.actions[action as usize] {
                Action::Wait { ps: 0 } | Action::Compute { ps: 0, .. } => self.end(now_ps, action),
                Action::Wait { ps } => self.wake(action, Stage::Passed, now_ps.saturating_add(ps)),
                Action::Compute { ps, cpu } => {
                    self.outcome.computed_ps[rank as usize] += ps;
                    let at_ps = self.occupy(now_ps, rank, cpu, ps);
                    self.wake(action, Stage::Passed, at_ps);
                }
                Action::Send { .. } if self.costs.send_ps == 0 => self.send(now_ps, action),
                Action::Send { cpu, .. } => {
                    let at_ps = self.occupy(now_ps, rank, cpu, self.costs.send_ps);
                    self.wake(action, Stage::Prepared, at_ps);
                }
                Action::Receive { from, tag, .. } => match self.mail[rank as usize].take_message(from, tag) {
                    Some(token) => self.matched(now_ps, action, token),
                    None => self.mail[rank as usize].keep_receive(from, tag, action),
                },
            }
        }
    }

    /// A prepared message leaves, or asks.
    fn send(&mut self, now_ps: u64, action: u32) {
        let (to, _) = self.address(action);
        let (from, bytes) = (self.program.rank_of(action), self.bytes_of(action));
        if bytes <= self.costs.eager_bytes_max {
            self.transfer(action, Stage::Eager, from, to, bytes);
            self.end(now_ps, action);
        } else {
            self.transfer(action, Stage::Request, from, to, 0);
        }
    }

    /// A receive and a message have found each other.
    fn matched(&mut self, now_ps: u64, receive: u32, token: Token) {
        self.partner[token.action as usize] = receive;
        match token.stage {
            Stage::Request => {
                let (to, _) = self.address(token.action);
                self.transfer(token.action, Stage::Clear, to, self.program.rank_of(token.action), 0);
            }
            _ => self.arrived(now_ps, token.action),
        }
    }

    /// All of a message is where its receive waits.
    fn arrived(&mut self, now_ps: u64, send: u32) {
        self.outcome.messages += 1;
        self.outcome.bytes += self.bytes_of(send);
        let (from, (to, _), bytes) = (self.program.rank_of(send), self.address(send), self.bytes_of(send));
        let sent_ps = self.sent_ps[send as usize];
        self.outcome.times.push(MessageTime { from, to, bytes, sent_ps, arrived_ps: now_ps });
        let receive = self.partner[send as usize];
        let cpu = match self.program.actions[receive as usize] {
            Action::Receive { cpu, .. } => cpu,
            _ => 0,
        };
        if self.costs.receive_ps == 0 {
            self.end(now_ps, receive);
        } else {
            let at_ps = self.occupy(now_ps, self.program.rank_of(receive), cpu, self.costs.receive_ps);
            self.wake(receive, Stage::Taken, at_ps);
        }
    }

    /// Takes a processor for a while, once it is free; until when.
    fn occupy(&mut self, now_ps: u64, rank: u32, cpu: u16, ps: u64) -> u64 {
        let processors = &mut self.busy_until_ps[rank as usize];
        if processors.len() <= usize::from(cpu) {
            processors.resize(usize::from(cpu) + 1, 0);
        }
        let busy = &mut processors[usize::from(cpu)];
        *busy = (*busy).max(now_ps).saturating_add(ps);
        *busy
    }

    fn end(&mut self, now_ps: u64, action: u32) {
        let rank = self.program.rank_of(action) as usize;
        self.outcome.ended_ps[rank] = self.outcome.ended_ps[rank].max(now_ps);
        self.left[action as usize] = NONE;
        self.open -= 1;
        self.release(action, 0);
    }

    /// Those that wait for the start, or for the end, of an action wait no more.
    fn release(&mut self, action: u32, when: u32) {
        for follower in self.program.followers_of(action) {
            if follower & AT_START == when {
                let follower = follower & !AT_START;
                self.left[follower as usize] -= 1;
                if self.left[follower as usize] == 0 {
                    self.ready.push_back(follower);
                }
            }
        }
    }

    fn wake(&mut self, action: u32, stage: Stage, at_ps: u64) {
        self.under_way += 1;
        self.effects.push_back(Effect::Wake { at_ps, token: Token { action, stage } });
    }

    fn transfer(&mut self, action: u32, stage: Stage, from: u32, to: u32, bytes: u64) {
        self.under_way += 1;
        self.effects.push_back(Effect::Transfer { token: Token { action, stage }, from, to, bytes });
    }

    fn address(&self, action: u32) -> (u32, u32) {
        match self.program.actions[action as usize] {
            Action::Send { to, tag, .. } => (to, tag),
            _ => unreachable!("only sends have an address"),
        }
    }

    fn bytes_of(&self, action: u32) -> u64 {
        match self.program.actions[action as usize] {
            Action::Send { bytes, .. } => bytes,
            _ => 0,
        }
    }

    fn describe(&self, action: u32) -> String {
        let rank = self.program.rank_of(action);
        let any = |number: Option<u32>| number.map_or("any".to_owned(), |number| number.to_string());
        match self.program.actions[action as usize] {
            Action::Send { to, tag, bytes, .. } => {
                format!("rank {rank} sends {bytes} octets to rank {to} with tag {tag}, which did not arrive")
            }
            Action::Receive { from, tag, .. } => {
                format!("rank {rank} waits for a message of rank {} with tag {}", any(from), any(tag))
            }
            Action::Compute { .. } | Action::Wait { .. } => format!("rank {rank} computes"),
        }
    }
}
