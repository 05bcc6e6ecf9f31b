//! Programs as GOAL schedules.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use super::PS_PER_NS;
use crate::program::{Action, Program, Until};

/// Writes a schedule that [`read_goal`](super::read_goal) reads as the same program.
///
/// A receive's size is that of the message which it takes if nobody takes any sender's messages.
///
/// # Errors
/// Those of `out`.
pub fn write_goal(program: &Program, mut out: impl io::Write) -> io::Result<()> {
    let mut sizes = sizes_by_receiver(program);
    writeln!(out, "num_ranks {}", program.ranks())?;
    for rank in 0..program.ranks() as u32 {
        writeln!(out, "\nrank {rank} {{")?;
        for (index, action) in program.actions(rank).iter().enumerate() {
            write!(out, "l{}: ", index + 1)?;
            match *action {
                Action::Send { to, tag, bytes, cpu } => writeln!(out, "send {bytes}b to {to} tag {tag} cpu {cpu}")?,
                Action::Receive { from, tag, cpu } => {
                    let key = from.zip(tag).map(|(from, tag)| (from, rank, tag));
                    let queue = key.and_then(|key| sizes.get_mut(&key));
                    let bytes = queue.and_then(VecDeque::pop_front).unwrap_or(0);
                    let any = |number: Option<u32>| number.map_or("any".to_owned(), |number| number.to_string());
                    writeln!(out, "recv {bytes}b from {} tag {} cpu {cpu}", any(from), any(tag))?;
                }
                Action::Compute { ps, cpu } => writeln!(out, "calc {} cpu {cpu}", nanoseconds(ps))?,
                Action::Wait { ps } => writeln!(out, "wait {}", nanoseconds(ps))?,
            }
        }
        for (follower, of, until) in program.orders(rank) {
            let word = if until == Until::End { "requires" } else { "irequires" };
            writeln!(out, "l{} {word} l{}", follower + 1, of + 1)?;
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// A time with as many digits as it needs.
fn nanoseconds(ps: u64) -> String {
    let (whole, rest) = (ps / PS_PER_NS, ps % PS_PER_NS);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}

/// `sizes[(from, to, tag)]`, in the order in which they are sent.
fn sizes_by_receiver(program: &Program) -> BTreeMap<(u32, u32, u32), VecDeque<u64>> {
    let mut sizes: BTreeMap<_, VecDeque<u64>> = BTreeMap::new();
    for rank in 0..program.ranks() as u32 {
        for action in program.actions(rank) {
            if let Action::Send { to, tag, bytes, .. } = action {
                sizes.entry((rank, *to, *tag)).or_default().push_back(*bytes);
            }
        }
    }
    sizes
}
