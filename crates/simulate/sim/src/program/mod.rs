//! Programs: what processes send, receive and compute, and what must end before what.
//!
//! A program is a list of actions for each rank and an order among the actions of one rank; between ranks only messages
//! make an order. MPI collectives ([`collective`]), GOAL schedules ([`goal`]) and traces of MPI programs ([`ti`]) all
//! become programs, and one executor ([`executor`]) carries them out, over the packet level, over the flow level, or over
//! an ideal network ([`ideal`]).
//!
//! ```text
//!   rank 0   compute ──▶ send to 1 ─────────┐
//!                └─────▶ receive from 1 ─┐  │ message
//!   rank 1   receive from 0 ◀────────────┼──┘
//!                └─────▶ send to 0 ──────┘
//! ```
//! Source: the model is that of Hoefler, Siebert and Lumsdaine, "Group operation assembly language", 2009.

pub mod collective;
pub mod executor;
pub mod goal;
pub mod ideal;
mod mailbox;
pub mod text;
pub mod ti;
mod token;

use thiserror::Error;

/// Tags from here on belong to collectives; a receive that takes any tag does not take these.
pub const COLLECTIVE_TAG: u32 = 1 << 31;
/// Most actions of a program.
pub const ACTIONS_MAX: usize = 1 << 30;
/// Most ranks of a program.
pub const RANKS_MAX: usize = 1 << 16;
/// Longest time of one action: 11 days.
pub const ACTION_PS_MAX: u64 = 1_000_000_000_000_000_000;
/// Most octets of one message.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 40;
/// A follower that waits for the start of an action rather than for its end.
const AT_START: u32 = 1 << 31;
/// Orders between more pairs than this go over one action without effect.
const PAIRS_MAX: usize = 16;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hands a message to the network. It ends when the program may go on: see [`executor::Costs::eager_bytes_max`].
    Send {
        /// The receiving rank.
        to: u32,
        /// What the receiver tells it by.
        tag: u32,
        /// Its size.
        bytes: u64,
        /// The processor that prepares it.
        cpu: u16,
    },
    /// Waits for a message; messages of one sender and tag are taken in the order in which they were sent.
    Receive {
        /// The sending rank; any if none.
        from: Option<u32>,
        /// Its tag; any below [`COLLECTIVE_TAG`] if none.
        tag: Option<u32>,
        /// The processor that takes it.
        cpu: u16,
    },
    /// Keeps a processor of the rank busy; what needs the same processor waits.
    Compute {
        /// How long.
        ps: u64,
        /// Which processor of the rank.
        cpu: u16,
    },
    /// Lets time pass and keeps nothing busy; without any time it only orders others.
    Wait {
        /// How long.
        ps: u64,
    },
}

/// An action of a rank, as the builder names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId {
    rank: u32,
    index: u32,
}

/// Actions of ranks and their order. Made by a [`Builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The actions of rank `r`: `first[r]..first[r + 1]`.
    first: Vec<u32>,
    actions: Vec<Action>,
    /// `waits[action]`: how many others it waits for.
    waits: Vec<u32>,
    /// The followers of action `a`: `followers[starts[a]..starts[a + 1]]`, each with [`AT_START`] or not.
    starts: Vec<u32>,
    followers: Vec<u32>,
}

/// Why actions are no program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A peer that does not exist.
    #[error("rank {rank} names rank {peer}, and there are {ranks}")]
    NoSuchRank {
        /// Whose action it is.
        rank: u32,
        /// Whom it names.
        peer: u32,
        /// How many there are.
        ranks: usize,
    },
    /// Actions that wait for each other.
    #[error("actions of rank {rank} depend on each other in a cycle")]
    Circle {
        /// Whose actions they are.
        rank: u32,
    },
    /// Beyond [`ACTIONS_MAX`], [`RANKS_MAX`], [`ACTION_PS_MAX`] or [`MESSAGE_BYTES_MAX`].
    #[error("rank {rank}: {what} beyond the most that is simulated, {most}")]
    TooMuch {
        /// Whose actions they are.
        rank: u32,
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        most: u64,
    },
}

/// Collects the actions of a program, in any order among ranks.
///
/// Each rank has a *frontier*: actions that those added by [`step`](Self::step) wait for, so that a process that does one
/// thing after the other needs no more than steps. [`add`](Self::add) and [`after`](Self::after) leave it alone.
#[derive(Clone, Debug)]
pub struct Builder {
    ranks: Vec<Draft>,
}

#[derive(Clone, Debug, Default)]
struct Draft {
    actions: Vec<Action>,
    /// Follower, and whom it waits for (with [`AT_START`] or not).
    orders: Vec<(u32, u32)>,
    frontier: Vec<u32>,
}

impl Program {
    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    /// The actions of a rank, in the order in which they were added.
    pub fn actions(&self, rank: u32) -> &[Action] {
        &self.actions[self.first[rank as usize] as usize..self.first[rank as usize + 1] as usize]
    }

    /// All actions, rank by rank.
    pub fn all_actions(&self) -> &[Action] {
        &self.actions
    }

    /// Orders among the actions of a rank: follower, whom it waits for, and whether for its start only. Sorted by the
    /// action that is waited for.
    pub fn orders(&self, rank: u32) -> impl Iterator<Item = (usize, usize, Until)> + '_ {
        let (first, last) = (self.first[rank as usize], self.first[rank as usize + 1]);
        (first..last).flat_map(move |action| {
            self.followers_of(action).iter().map(move |follower| {
                let until = if follower & AT_START == 0 { Until::End } else { Until::Start };
                (((follower & !AT_START) - first) as usize, (action - first) as usize, until)
            })
        })
    }

    /// Messages and octets that are sent in all.
    pub fn sent(&self) -> (u64, u64) {
        self.actions.iter().fold((0, 0), |(messages, octets), action| match action {
            Action::Send { bytes, .. } => (messages + 1, octets + bytes),
            _ => (messages, octets),
        })
    }

    /// Ordered pairs of ranks of which the first sends to the second, sorted.
    pub fn pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for rank in 0..self.ranks() as u32 {
            let begin = pairs.len();
            pairs.extend(self.actions(rank).iter().filter_map(|action| match action {
                Action::Send { to, .. } => Some((rank, *to)),
                _ => None,
            }));
            pairs[begin..].sort_unstable();
            pairs.dedup();
        }
        pairs
    }

    fn rank_of(&self, action: u32) -> u32 {
        (self.first.partition_point(|first| *first <= action) - 1) as u32
    }

    fn followers_of(&self, action: u32) -> &[u32] {
        &self.followers[self.starts[action as usize] as usize..self.starts[action as usize + 1] as usize]
    }
}

/// Until when an action waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until it has ended.
    End,
    /// Until it has started.
    Start,
}

impl Builder {
    /// A program of ranks that do nothing yet.
    pub fn new(ranks: usize) -> Self {
        Self { ranks: vec![Draft::default(); ranks] }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Adds an action that waits for nothing.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn add(&mut self, rank: u32, action: Action) -> ActionId {
        let draft = &mut self.ranks[rank as usize];
        draft.actions.push(action);
        ActionId { rank, index: (draft.actions.len() - 1) as u32 }
    }

    /// Makes an action wait for another of the same rank.
    ///
    /// # Panics
    /// If they are of different ranks.
    pub fn after(&mut self, follower: ActionId, of: ActionId, until: Until) {
        assert_eq!(follower.rank, of.rank, "only messages order actions of different ranks");
        let flag = if until == Until::Start { AT_START } else { 0 };
        self.ranks[of.rank as usize].orders.push((follower.index, of.index | flag));
    }

    /// Adds an action that waits for the frontier, and does not move it: what comes next does not wait for it.
    pub fn fork(&mut self, rank: u32, action: Action) -> ActionId {
        let id = self.add(rank, action);
        let draft = &mut self.ranks[rank as usize];
        draft.orders.extend(draft.frontier.iter().map(|before| (id.index, *before)));
        id
    }

    /// What comes next waits for this action as well.
    pub fn join(&mut self, action: ActionId) {
        let frontier = &mut self.ranks[action.rank as usize].frontier;
        if !frontier.contains(&action.index) {
            frontier.push(action.index);
        }
    }

    /// Adds actions that wait for the frontier, and become it.
    pub fn step(&mut self, rank: u32, actions: &[Action]) {
        if actions.is_empty() {
            return;
        }
        let waiting = self.ranks[rank as usize].frontier.len();
        if waiting > 1 && waiting * actions.len() > PAIRS_MAX {
            let all = self.fork(rank, Action::Wait { ps: 0 });
            self.ranks[rank as usize].frontier = vec![all.index];
        }
        let added: Vec<u32> = actions.iter().map(|action| self.fork(rank, *action).index).collect();
        self.ranks[rank as usize].frontier = added;
    }

    /// Puts ranks together, and looks for what can never run.
    ///
    /// # Errors
    /// If a rank is named that does not exist, actions wait for each other, or a bound is exceeded.
    pub fn build(self) -> Result<Program, ProgramError> {
        let ranks = self.ranks.len();
        let total: usize = self.ranks.iter().map(|draft| draft.actions.len()).sum();
        let orders: usize = self.ranks.iter().map(|draft| draft.orders.len()).sum();
        let bounds = [("ranks", ranks, RANKS_MAX), ("actions", total, ACTIONS_MAX), ("orders", orders, ACTIONS_MAX)];
        if let Some((what, _, most)) = bounds.iter().find(|(_, count, most)| count > most) {
            return Err(ProgramError::TooMuch { rank: 0, what, most: *most as u64 });
        }
        let mut program = Program {
            first: Vec::with_capacity(ranks + 1),
            actions: Vec::with_capacity(total),
            waits: vec![0; total],
            starts: vec![0; total + 1],
            followers: vec![0; orders],
        };
        for (rank, draft) in self.ranks.iter().enumerate() {
            let rank = rank as u32;
            draft.actions.iter().try_for_each(|action| check(rank, action, ranks))?;
            let first = program.actions.len() as u32;
            program.first.push(first);
            program.actions.extend(&draft.actions);
            for (follower, of) in &draft.orders {
                program.waits[(first + follower) as usize] += 1;
                program.starts[(first + (of & !AT_START)) as usize + 1] += 1;
            }
        }
        program.first.push(total as u32);
        (0..total).for_each(|action| program.starts[action + 1] += program.starts[action]);
        let mut next = program.starts.clone();
        for (rank, draft) in self.ranks.into_iter().enumerate() {
            let first = program.first[rank];
            for (follower, of) in draft.orders {
                let slot = &mut next[(first + (of & !AT_START)) as usize];
                program.followers[*slot as usize] = (first + follower) | (of & AT_START);
                *slot += 1;
            }
        }
        program.refuse_circles()?;
        Ok(program)
    }
}

impl Program {
    fn refuse_circles(&self) -> Result<(), ProgramError> {
        let mut left = self.waits.clone();
        let mut free: Vec<u32> = (0..self.actions.len() as u32).filter(|action| left[*action as usize] == 0).collect();
        let mut seen = 0;
        while let Some(action) = free.pop() {
            seen += 1;
            for follower in self.followers_of(action) {
                let follower = follower & !AT_START;
                left[follower as usize] -= 1;
                if left[follower as usize] == 0 {
                    free.push(follower);
                }
            }
        }
        if seen == self.actions.len() {
            return Ok(());
        }
        let stuck = left.iter().position(|left| *left > 0).unwrap_or(0);
        Err(ProgramError::Circle { rank: self.rank_of(stuck as u32) })
    }
}

fn check(rank: u32, action: &Action, ranks: usize) -> Result<(), ProgramError> {
    let peer = match action {
        Action::Send { to, .. } => Some(*to),
        Action::Receive { from, .. } => *from,
        Action::Compute { .. } | Action::Wait { .. } => None,
    };
    if let Some(peer) = peer.filter(|peer| *peer as usize >= ranks) {
        return Err(ProgramError::NoSuchRank { rank, peer, ranks });
    }
    match action {
        Action::Compute { ps, .. } | Action::Wait { ps } if *ps > ACTION_PS_MAX => {
            Err(ProgramError::TooMuch { rank, what: "picoseconds of one action", most: ACTION_PS_MAX })
        }
        Action::Send { bytes, .. } if *bytes > MESSAGE_BYTES_MAX => {
            Err(ProgramError::TooMuch { rank, what: "octets of one message", most: MESSAGE_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Action = Action::Wait { ps: 0 };

    #[test]
    fn circles_and_strangers_are_refused() {
        let mut builder = Builder::new(2);
        let (a, b) = (builder.add(1, NOTHING), builder.add(1, NOTHING));
        builder.after(a, b, Until::End);
        builder.after(b, a, Until::Start);
        assert_eq!(builder.build(), Err(ProgramError::Circle { rank: 1 }));
        let mut builder = Builder::new(2);
        builder.add(0, Action::Send { to: 2, tag: 0, bytes: 1, cpu: 0 });
        assert_eq!(builder.build(), Err(ProgramError::NoSuchRank { rank: 0, peer: 2, ranks: 2 }));
    }

    #[test]
    fn a_step_waits_for_the_whole_step_before_it() {
        let mut builder = Builder::new(1);
        builder.step(0, &[NOTHING; 3]);
        builder.step(0, &[NOTHING; 2]);
        let forked = builder.fork(0, NOTHING);
        builder.step(0, &[NOTHING]);
        builder.join(forked);
        builder.step(0, &[NOTHING]);
        let program = builder.build().expect("a program");
        assert_eq!(program.waits, [0, 0, 0, 3, 3, 2, 2, 2]);
        // Many before many meet in one.
        let mut builder = Builder::new(1);
        builder.step(0, &[NOTHING; 100]);
        builder.step(0, &[NOTHING; 100]);
        assert_eq!(builder.build().expect("a program").followers.len(), 200);
    }
}
