//! Collective operations of MPI, in the algorithms in which libraries carry them out.
//!
//! An algorithm is a list of rounds for each rank: what it sends and what it waits for, before its next round begins.
//! Nothing else couples ranks, so a rank that is late makes late only whom it sends to.
//!
//! ```text
//!   binomial broadcast, root 0       recursive doubling          Bruck, ring, pairwise
//!     0 ─────▶ 4                       0 ◀─▶ 1   2 ◀─▶ 3           i ─▶ i + 2^k   i ─▶ i + 1   i ◀─▶ i xor k
//!     0 ─▶ 2   4 ─▶ 6                  0 ◀─▶ 2   1 ◀─▶ 3
//!     0▶1 2▶3  4▶5 6▶7
//! ```
//! Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005, also
//! for the sizes at which [`Algorithm::Auto`] changes; Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
//! all-to-all communications in multiport message-passing systems", 1997; Hensgen, Finkel and Manber, "Two algorithms
//! for barrier synchronization", 1988.

mod rounds;

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{Action, Builder, COLLECTIVE_TAG, Program, ProgramError};

pub use rounds::{Exchange, Round};

/// What is done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Each has a block for each.
    AllToAll,
    /// Each has a block for all.
    AllGather,
    /// All get the sum of what all have.
    AllReduce,
    /// All get what the root has.
    Broadcast,
    /// The root gets the sum of what all have.
    Reduce,
    /// Each gets its block of the sum.
    ReduceScatter,
    /// The root gets a block of each.
    Gather,
    /// Each gets a block of the root's.
    Scatter,
    /// Nobody goes on before all have come.
    Barrier,
}

/// How.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// What MPICH would take for this size and number of ranks.
    Auto,
    /// All messages at once, without any middleman.
    Linear,
    /// One partner a round: `i xor k` among a power of two of ranks, else to `i + k` and from `i - k`.
    Pairwise,
    /// One partner a round, to `i + k` and from `i - k`; or blocks from neighbour to neighbour.
    Ring,
    /// Distances 1, 2, 4, …, blocks gathered on the way.
    Bruck,
    /// Partners at distances 1, 2, 4, …, both of which then know the same.
    RecursiveDoubling,
    /// Partners at distances n/2, n/4, …, each of which keeps half.
    RecursiveHalving,
    /// Recursive halving, then recursive doubling.
    Rabenseifner,
    /// A tree of log n levels.
    Binomial,
    /// A binomial scatter, then a ring.
    ScatterRing,
    /// From neighbour to neighbour.
    Chain,
    /// Word to `i + 2^k` in round k.
    Dissemination,
}

/// A collective operation of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub collective: Collective,
    /// How.
    pub algorithm: Algorithm,
    /// Octets of a block: what one rank has for one other (all-to-all, all-gather, gather, scatter, reduce-scatter), or
    /// of the whole vector (all-reduce, broadcast, reduce). A barrier has none.
    pub bytes: u64,
    /// The root of broadcast, reduce, gather and scatter.
    pub root: u32,
}

/// Why an operation cannot be done so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// No such pair.
    #[error("{collective} has no algorithm {algorithm}; it has {known}")]
    NoSuchAlgorithm {
        /// The operation.
        collective: Collective,
        /// The algorithm.
        algorithm: Algorithm,
        /// Those that there are.
        known: String,
    },
    /// Partners at distances of powers of two need a power of two of ranks.
    #[error("{algorithm} {collective} needs a power of two of ranks, and there are {ranks}; take {instead}")]
    NoPowerOfTwo {
        /// The operation.
        collective: Collective,
        /// The algorithm.
        algorithm: Algorithm,
        /// How many ranks.
        ranks: u32,
        /// What works for any number.
        instead: Algorithm,
    },
    /// Root beyond the ranks.
    #[error("rank {root} cannot be the root of {ranks} ranks")]
    NoSuchRoot {
        /// Who was to be the root.
        root: u32,
        /// How many ranks.
        ranks: u32,
    },
    /// The program is none.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl Collective {
    /// Every operation.
    pub const ALL: &'static [Self] = &[
        Self::AllToAll,
        Self::AllGather,
        Self::AllReduce,
        Self::Broadcast,
        Self::Reduce,
        Self::ReduceScatter,
        Self::Gather,
        Self::Scatter,
        Self::Barrier,
    ];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllToAll => "alltoall",
            Self::AllGather => "allgather",
            Self::AllReduce => "allreduce",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Barrier => "barrier",
        }
    }

    /// In which algorithms it can be done, [`Algorithm::Auto`] apart.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm as A;
        match self {
            Self::AllToAll => &[A::Linear, A::Pairwise, A::Ring, A::Bruck],
            Self::AllGather => &[A::Linear, A::Ring, A::RecursiveDoubling, A::Bruck],
            Self::AllReduce => &[A::RecursiveDoubling, A::Ring, A::Rabenseifner, A::Binomial],
            Self::Broadcast => &[A::Linear, A::Binomial, A::ScatterRing, A::Chain],
            Self::ReduceScatter => &[A::Pairwise, A::Ring, A::RecursiveHalving],
            Self::Reduce | Self::Gather | Self::Scatter => &[A::Linear, A::Binomial],
            Self::Barrier => &[A::Dissemination, A::RecursiveDoubling, A::Binomial],
        }
    }
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: &'static [Self] = &[
        Self::Auto,
        Self::Linear,
        Self::Pairwise,
        Self::Ring,
        Self::Bruck,
        Self::RecursiveDoubling,
        Self::RecursiveHalving,
        Self::Rabenseifner,
        Self::Binomial,
        Self::ScatterRing,
        Self::Chain,
        Self::Dissemination,
    ];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Linear => "linear",
            Self::Pairwise => "pairwise",
            Self::Ring => "ring",
            Self::Bruck => "bruck",
            Self::RecursiveDoubling => "recursive-doubling",
            Self::RecursiveHalving => "recursive-halving",
            Self::Rabenseifner => "rabenseifner",
            Self::Binomial => "binomial",
            Self::ScatterRing => "scatter-ring",
            Self::Chain => "chain",
            Self::Dissemination => "dissemination",
        }
    }
}

impl Operation {
    /// The operation with the algorithm that will be taken among so many ranks.
    ///
    /// # Errors
    /// If the operation has no such algorithm, or not for this number of ranks.
    pub fn resolve(self, ranks: u32) -> Result<Self, CollectiveError> {
        let Self { collective, root, .. } = self;
        if root >= ranks {
            return Err(CollectiveError::NoSuchRoot { root, ranks });
        }
        let algorithm = if self.algorithm == Algorithm::Auto { self.usual(ranks) } else { self.algorithm };
        if !collective.algorithms().contains(&algorithm) {
            let known: Vec<&str> = collective.algorithms().iter().map(|algorithm| algorithm.word()).collect();
            return Err(CollectiveError::NoSuchAlgorithm { collective, algorithm, known: known.join(", ") });
        }
        let instead = match (collective, algorithm) {
            (Collective::AllGather, Algorithm::RecursiveDoubling) => Some(Algorithm::Bruck),
            (Collective::Barrier, Algorithm::RecursiveDoubling) => Some(Algorithm::Dissemination),
            (Collective::ReduceScatter, Algorithm::RecursiveHalving) => Some(Algorithm::Pairwise),
            _ => None,
        };
        match instead {
            Some(instead) if !ranks.is_power_of_two() => {
                Err(CollectiveError::NoPowerOfTwo { collective, algorithm, ranks, instead })
            }
            _ => Ok(Self { algorithm, ..self }),
        }
    }

    /// What MPICH takes.
    fn usual(&self, ranks: u32) -> Algorithm {
        const KIB: u64 = 1 << 10;
        let (bytes, total) = (self.bytes, self.bytes.saturating_mul(u64::from(ranks)));
        let power = ranks.is_power_of_two();
        match self.collective {
            Collective::AllToAll if bytes <= 256 && ranks >= 8 => Algorithm::Bruck,
            Collective::AllToAll if bytes <= 32 * KIB => Algorithm::Linear,
            Collective::AllToAll => Algorithm::Pairwise,
            Collective::AllGather if power && total < 512 * KIB => Algorithm::RecursiveDoubling,
            Collective::AllGather if total < 80 * KIB => Algorithm::Bruck,
            Collective::AllGather => Algorithm::Ring,
            Collective::AllReduce if bytes <= 2 * KIB => Algorithm::RecursiveDoubling,
            Collective::AllReduce => Algorithm::Rabenseifner,
            Collective::Broadcast if bytes < 12 * KIB || ranks < 8 => Algorithm::Binomial,
            Collective::Broadcast => Algorithm::ScatterRing,
            Collective::ReduceScatter if power && total < 512 * KIB => Algorithm::RecursiveHalving,
            Collective::ReduceScatter => Algorithm::Pairwise,
            Collective::Reduce | Collective::Gather | Collective::Scatter => Algorithm::Binomial,
            Collective::Barrier => Algorithm::Dissemination,
        }
    }

    /// The operation alone as a program, so many times one after the other.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and if there is too much of anything.
    pub fn program(self, ranks: u32, times: u32) -> Result<Program, CollectiveError> {
        let operation = self.resolve(ranks)?;
        let mut builder = Builder::new(ranks as usize);
        for rank in 0..ranks {
            let rounds = operation.rounds(rank, ranks);
            for _ in 0..times {
                rounds.iter().for_each(|round| append_round(&mut builder, rank, round));
            }
        }
        Ok(builder.build()?)
    }

    /// Appends a rank's part to what it does.
    ///
    /// # Panics
    /// If the operation is not [resolved](Self::resolve).
    pub fn append(self, builder: &mut Builder, rank: u32) {
        let ranks = builder.ranks() as u32;
        self.rounds(rank, ranks).iter().for_each(|round| append_round(builder, rank, round));
    }

    /// What a rank does, round by round.
    ///
    /// # Panics
    /// If the operation is not [resolved](Self::resolve).
    pub fn rounds(&self, rank: u32, ranks: u32) -> Vec<Round> {
        rounds::of(self, rank, ranks)
    }
}

/// Appends one round of a collective to what a rank does.
pub(super) fn append_round(builder: &mut Builder, rank: u32, round: &Round) {
    let action = |exchange: &Exchange| match *exchange {
        Exchange::Send { to, bytes } => Action::Send { to, tag: COLLECTIVE_TAG, bytes, cpu: 0 },
        Exchange::Receive { from } => Action::Receive { from: Some(from), tag: Some(COLLECTIVE_TAG), cpu: 0 },
    };
    let actions: Vec<Action> = round.iter().map(action).collect();
    builder.step(rank, &actions);
}

/// An all-to-all whose blocks differ: `bytes[to]` from this rank. Rounds are those of [`Algorithm::Pairwise`] or
/// [`Algorithm::Linear`].
pub fn unequal_all_to_all(rank: u32, bytes: &[u64], algorithm: Algorithm) -> Vec<Round> {
    let operation = Operation { collective: Collective::AllToAll, algorithm, bytes: 0, root: 0 };
    let mut rounds = operation.rounds(rank, bytes.len() as u32);
    for exchange in rounds.iter_mut().flatten() {
        if let Exchange::Send { to, bytes: amount } = exchange {
            *amount = bytes[*to as usize];
        }
    }
    rounds
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Collective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(Self::ALL, Self::word, text)
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(Self::ALL, Self::word, text)
    }
}

fn named<T: Copy>(all: &[T], word: fn(T) -> &'static str, text: &str) -> Result<T, String> {
    all.iter().copied().find(|one| word(*one) == text).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        format!("{text:?} is none of {}", known.join(", "))
    })
}
