//! The loop of all searches: sweep, accept, cool, until there is a reason to stop.
//!
//! What a sweep moves, which candidates are gone on from and what happens between two sweeps is the [`Search`]'s: subtrees,
//! and then the channel order, with a tree for each source (`alternate.rs`); branches and senders (`senders.rs`) or pairs
//! (`pairs.rs`) in shared trees, at prices that go from soft to sharp.
//!
//! ```text
//!   candidate ─▶ sweep ─▶ best so far? ─▶ accept, or go back ─▶ cool ─┐
//!       ▲                     │                                       │
//!       └─────────────────────┼───────────────────────────────────────┘
//!                             └─▶ stop: good enough, or all cycles, visits or time are spent
//! ```

use super::net::Net;

/// When to stop, beside when time is up.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    /// The most loaded channel carries no more than this.
    pub(super) enough: f64,
    /// Sweeps have gone through the schedule so often.
    pub(super) cycles: usize,
    /// So many channels have been visited in all.
    pub(super) visits: u64,
}

/// How good routes are: the load of the most loaded channel, then the sum of all loads. Less is better.
pub(super) type Quality = (f64, u64);

/// Whether one is better than the other.
pub(super) fn is_better(one: Quality, other: Quality) -> bool {
    one.0 < other.0 || (one.0 == other.0 && one.1 < other.1)
}

/// Routes that are searched on from.
pub(super) trait Candidate: Clone {
    /// How good they are. Cost: O(channels).
    fn quality(&self, net: &Net) -> Quality;
}

/// What is to happen after a candidate was prepared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A sweep.
    Sweep,
    /// No sweep: the candidate could not be prepared and is as it was.
    Again,
    /// Nothing: all cycles of the schedule are over.
    Stop,
}

/// What one search does with its candidates.
pub(super) trait Search {
    /// What it changes.
    type Candidate: Candidate;

    /// The network.
    fn net(&self) -> &Net;

    /// Whether time is up, or so many visits have been made in all.
    fn is_spent(&self, visits: u64) -> bool;

    /// Moves whatever lowers the prices of all channels together.
    fn sweep(&mut self, candidate: &mut Self::Candidate);

    /// Goes on from the candidate, or replaces it by one to go on from.
    fn accept(&mut self, _candidate: &mut Self::Candidate, _best: &Self::Candidate) {}

    /// Prepares the next sweep: the next prices of the schedule, a changed channel order; `cycles` says how often the
    /// schedule is gone through.
    fn cool(&mut self, candidate: &mut Self::Candidate, cycles: usize) -> Next;
}

/// Goes on from `candidate` until it is to stop; `best` is the best of what it was and of all candidates.
pub(super) fn improve<S: Search>(search: &mut S, best: &mut S::Candidate, mut candidate: S::Candidate, stop: Stop) {
    let mut next =
        if stop.cycles == 0 || best.quality(search.net()).0 <= stop.enough { Next::Stop } else { Next::Sweep };
    while next != Next::Stop && !search.is_spent(stop.visits) {
        if next == Next::Sweep {
            search.sweep(&mut candidate);
            let quality = candidate.quality(search.net());
            if is_better(quality, best.quality(search.net())) {
                best.clone_from(&candidate);
                if quality.0 <= stop.enough {
                    return;
                }
            }
            search.accept(&mut candidate, best);
        }
        next = search.cool(&mut candidate, stop.cycles);
    }
}
