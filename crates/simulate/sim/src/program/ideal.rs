//! An ideal network: a message takes a fixed time and so long an octet, and nobody is in anybody's way.
//!
//! What a program needs here is its critical path in Hockney's model, α + β·n a message; with one port a rank, a rank's own
//! messages leave one after the other. It is the yardstick of the algorithms' closed forms, and a lower bound for what
//! real networks do.
//!
//! Source: R. Hockney, "The communication challenge for MPP", 1994.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use super::{
    Program,
    executor::{Costs, Effect, Executor, Ran, Token},
};

/// The network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// α: what every message takes.
    pub latency_ps: u64,
    /// β: what an octet takes.
    pub ps_per_byte: u64,
    /// How many messages may leave a rank at a time.
    pub ports: Ports,
}

/// How many messages may leave a rank at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// One.
    Single,
    /// Any number.
    Unlimited,
}

/// Runs a program to its end, or until it stalls.
pub fn run(program: &Program, costs: Costs, network: &Ideal) -> Ran {
    let mut executor = Executor::new(program, costs);
    let mut queue: BinaryHeap<Reverse<(u64, u64, Due)>> = BinaryHeap::new();
    let (mut pushed, mut now_ps, mut free_ps) = (0, 0, vec![0_u64; program.ranks()]);
    // Messages of a pair do not overtake each other.
    let mut last_ps: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    executor.start();
    loop {
        while let Some(effect) = executor.poll_effect() {
            let (at_ps, due) = match effect {
                Effect::Wake { at_ps, token } => (at_ps, Due::Wake(token)),
                Effect::Transfer { token, from, to, bytes } => {
                    let begin_ps = match network.ports {
                        Ports::Single => free_ps[from as usize].max(now_ps),
                        Ports::Unlimited => now_ps,
                    };
                    let gone_ps = begin_ps.saturating_add(bytes.saturating_mul(network.ps_per_byte));
                    free_ps[from as usize] = gone_ps;
                    let at_ps = last_ps.entry((from, to)).or_default();
                    *at_ps = gone_ps.saturating_add(network.latency_ps).max(*at_ps);
                    (*at_ps, Due::Arrival(token))
                }
            };
            queue.push(Reverse((at_ps, pushed, due)));
            pushed += 1;
        }
        let Some(Reverse((at_ps, _, due))) = queue.pop() else { return executor.finish() };
        now_ps = at_ps;
        match due {
            Due::Wake(token) => executor.handle_wake(now_ps, token),
            Due::Arrival(token) => executor.handle_arrival(now_ps, token),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Wake(Token),
    Arrival(Token),
}
