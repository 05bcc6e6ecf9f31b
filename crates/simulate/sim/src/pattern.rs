//! Who sends to whom in the traffic patterns of the field.
//!
//! ```text
//!   bit-reversal  0001 ─▶ 1000      transpose  (row, column) ─▶ (column, row)      incast  all ─▶ the first
//! ```
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 3.2.

use std::{fmt, str::FromStr};

use fabric::{FloodKind, HostId, Plan, Topology, rng::Rng};
use thiserror::Error;

/// A traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Everybody to everybody at once.
    AllToAll,
    /// Everybody to everybody, one partner a phase: host `i` to `i + phase`.
    AllToAllPhased,
    /// To the host whose number has the bits in reverse order.
    BitReversal,
    /// To the host whose row and column are swapped, hosts in a square.
    Transpose,
    /// To a partner by lot, everybody receiving once.
    Permutation,
    /// Everybody to the first host.
    Incast,
    /// To every host on a neighbouring switch.
    NearestNeighbour,
    /// Everybody to everybody at once, and each host's broadcasts beside that.
    Broadcast,
    /// The same with frames for addresses that no host has: they take the way of broadcasts.
    UnknownUnicast,
}

/// One sender and receiver, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Who sends.
    pub source: HostId,
    /// To whom.
    pub destination: HostId,
    /// Pairs of one phase send together, when those of the phase before have ended.
    pub phase: u32,
}

/// Why a pattern does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// Bits cannot be reversed.
    #[error("bit-reversal needs a power of two of hosts, and there are {0}")]
    NoPowerOfTwo(usize),
    /// There is no square.
    #[error("transpose needs a square number of hosts, and there are {0}")]
    NoSquare(usize),
}

impl Pattern {
    /// Every pattern of data alone.
    pub const ALL: &'static [Self] = match Self::WITH_FLOODS {
        [data @ .., Self::Broadcast, Self::UnknownUnicast] => data,
        _ => panic!("patterns with floods are the last two"),
    };

    /// Every pattern and, beside data, floods.
    pub const WITH_FLOODS: &'static [Self] = &[
        Self::AllToAll,
        Self::AllToAllPhased,
        Self::BitReversal,
        Self::Transpose,
        Self::Permutation,
        Self::Incast,
        Self::NearestNeighbour,
        Self::Broadcast,
        Self::UnknownUnicast,
    ];

    /// The kind of frames that every host floods beside what [`pairs`](Self::pairs) send, if it does.
    pub const fn flood(self) -> Option<FloodKind> {
        match self {
            Self::Broadcast => Some(FloodKind::Broadcast),
            Self::UnknownUnicast => Some(FloodKind::UnknownUnicast),
            Self::AllToAll
            | Self::AllToAllPhased
            | Self::BitReversal
            | Self::Transpose
            | Self::Permutation
            | Self::Incast
            | Self::NearestNeighbour => None,
        }
    }

    /// Whether every host sends to every other, which [`fabric::Policy::rails`] is about.
    pub const fn is_all_to_all(self) -> bool {
        matches!(self, Self::AllToAll | Self::AllToAllPhased | Self::Broadcast | Self::UnknownUnicast)
    }

    /// Its pairs under a plan's policy: patterns in which every host sends to every other leave out the pairs that
    /// [`fabric::Policy::exchange`] does.
    ///
    /// # Errors
    /// If the number of hosts does not suit it.
    pub fn pairs_of(self, plan: &Plan, seed: u64) -> Result<Vec<Pair>, PatternError> {
        let mut pairs = self.pairs(&plan.topology, seed)?;
        pairs.retain(|pair| {
            !self.is_all_to_all() || plan.policy.exchange(&plan.topology, pair.source, pair.destination)
        });
        Ok(pairs)
    }

    /// Whether every host floods beside what [`pairs`](Self::pairs) send.
    pub const fn floods(self) -> bool {
        self.flood().is_some()
    }

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllToAll => "all-to-all",
            Self::AllToAllPhased => "all-to-all-phased",
            Self::BitReversal => "bit-reversal",
            Self::Transpose => "transpose",
            Self::Permutation => "permutation",
            Self::Incast => "incast",
            Self::NearestNeighbour => "nearest-neighbour",
            Self::Broadcast => "broadcast",
            Self::UnknownUnicast => "unknown-unicast",
        }
    }

    /// Its pairs, by phase; no machine sends to itself.
    ///
    /// # Errors
    /// If the number of hosts does not suit it.
    pub fn pairs(self, topology: &Topology, seed: u64) -> Result<Vec<Pair>, PatternError> {
        let count = topology.hosts().len();
        let pair = |source: usize, destination: usize, phase: usize| Pair {
            source: HostId::new(source),
            destination: HostId::new(destination),
            phase: phase as u32,
        };
        let map = |partner: &dyn Fn(usize) -> usize| -> Vec<Pair> {
            (0..count).map(|host| pair(host, partner(host), 0)).filter(|pair| pair.source != pair.destination).collect()
        };
        let mut pairs = match self {
            Self::AllToAll | Self::Broadcast | Self::UnknownUnicast => {
                (0..count).flat_map(|i| (1..count).map(move |k| pair(i, (i + k) % count, 0))).collect()
            }
            Self::AllToAllPhased => {
                (1..count).flat_map(|k| (0..count).map(move |i| pair(i, (i + k) % count, k - 1))).collect()
            }
            Self::BitReversal => {
                if !count.is_power_of_two() {
                    return Err(PatternError::NoPowerOfTwo(count));
                }
                let bits = count.trailing_zeros();
                map(&|host| if bits == 0 { host } else { host.reverse_bits() >> (usize::BITS - bits) })
            }
            Self::Transpose => {
                let side = count.isqrt();
                if side * side != count {
                    return Err(PatternError::NoSquare(count));
                }
                map(&|host| host % side * side + host / side)
            }
            Self::Permutation => {
                let mut partners: Vec<usize> = (0..count).collect();
                Rng::new(seed).shuffle(&mut partners);
                map(&|host| partners[host])
            }
            Self::Incast => map(&|_| 0),
            Self::NearestNeighbour => topology
                .host_ids()
                .flat_map(|host| {
                    let mut near: Vec<HostId> = (topology.channels_from(topology.switch_of(host)).iter())
                        .flat_map(|channel| topology.hosts_of(topology.head(*channel)).iter().copied())
                        .collect();
                    near.sort_unstable();
                    near.dedup();
                    near.into_iter().map(move |to| pair(host.index(), to.index(), 0))
                })
                .collect(),
        };
        pairs.retain(|pair| !topology.are_of_one_machine(pair.source, pair.destination));
        Ok(pairs)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|pattern| pattern.word() == text).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|pattern| pattern.word()).collect();
            format!("{text:?} is none of {}", known.join(", "))
        })
    }
}
