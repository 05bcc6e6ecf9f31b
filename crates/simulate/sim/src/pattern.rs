//! Who sends to whom in the traffic patterns of the field.
//!
//! ```text
//!   bit-reversal  0001 ─▶ 1000      transpose  (row, column) ─▶ (column, row)      incast  all ─▶ the first
//!   tornado  of 8: 0 ─▶ 3, 1 ─▶ 4 …      shift=2  0 ─▶ 2, 1 ─▶ 3 …
//! ```
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 3.2.

use std::{borrow::Cow, fmt, str::FromStr};

use fabric::{FloodKind, HostId, PathSets, Plan, Topology, rng::Rng};
use thiserror::Error;

/// A traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Everybody to everybody at once.
    AllToAll,
    /// Everybody to everybody, one partner a phase: host `i` to `i + phase`.
    AllToAllPhased,
    /// To the host whose number has the bits in reverse order, among the largest power of two of hosts.
    BitReversal,
    /// To the host whose row and column are swapped, among the largest square of hosts.
    Transpose,
    /// To a randomly chosen partner, everybody receiving once.
    Permutation,
    /// Host `i` of `n` to host `i + ⌈n / 2⌉ - 1`, modulo `n`.
    Tornado,
    /// Host `i` to host `i + N`, modulo the number of hosts.
    Shift(u32),
    /// The permutation that a plan with path sets stores: the one with the lowest bound of any routing that the planner found.
    Worst,
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
    /// No path sets, so no permutation is stored.
    #[error(
        "the pattern worst is stored in plans with several paths a pair, and this is none: make one with `espalier plan \
         TOPOLOGY --paths 8 -o plan.json`"
    )]
    NoPathSets,
}

impl Pattern {
    /// Every pattern of data alone that has no parameter; [`Shift`](Self::Shift) has one.
    pub const ALL: &'static [Self] = match Self::WITH_FLOODS {
        [data @ .., Self::Broadcast, Self::UnknownUnicast] => data,
        _ => panic!("patterns with floods are the last two"),
    };

    /// How [`Shift`](Self::Shift) is spelled.
    pub const SHIFT_WORD: &'static str = "shift=N";

    /// The same, and those that flood beside data.
    pub const WITH_FLOODS: &'static [Self] = &[
        Self::AllToAll,
        Self::AllToAllPhased,
        Self::BitReversal,
        Self::Transpose,
        Self::Permutation,
        Self::Tornado,
        Self::Worst,
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
            | Self::Tornado
            | Self::Shift(_)
            | Self::Worst
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
    /// If it is the worst permutation, and the plan has no path sets.
    pub fn pairs_of(self, plan: &Plan, seed: u64) -> Result<Vec<Pair>, PatternError> {
        let mut pairs = self.pairs_with(&plan.topology, plan.paths.as_ref(), seed)?;
        pairs.retain(|pair| {
            !self.is_all_to_all() || plan.policy.exchange(&plan.topology, pair.source, pair.destination)
        });
        Ok(pairs)
    }

    /// Whether every host floods beside what [`pairs`](Self::pairs) send.
    pub const fn floods(self) -> bool {
        self.flood().is_some()
    }

    /// The number of hosts that take part, of `hosts` in all: the first ones.
    pub fn hosts_of(self, hosts: usize) -> usize {
        match self {
            Self::BitReversal => hosts.checked_ilog2().map_or(0, |bits| 1 << bits),
            Self::Transpose => hosts.isqrt().pow(2),
            _ => hosts,
        }
    }

    /// Its name; where not all `hosts` take part, also which: "transpose of the first 49 of 60 hosts".
    pub fn title(self, hosts: usize) -> String {
        match self.hosts_of(hosts) {
            all if all == hosts => self.to_string(),
            first => format!("{self} of the first {first} of {hosts} hosts"),
        }
    }

    /// Its name, without the parameter.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllToAll => "all-to-all",
            Self::AllToAllPhased => "all-to-all-phased",
            Self::BitReversal => "bit-reversal",
            Self::Transpose => "transpose",
            Self::Permutation => "permutation",
            Self::Tornado => "tornado",
            Self::Shift(_) => "shift",
            Self::Worst => "worst",
            Self::Incast => "incast",
            Self::NearestNeighbour => "nearest-neighbour",
            Self::Broadcast => "broadcast",
            Self::UnknownUnicast => "unknown-unicast",
        }
    }

    /// Its pairs, by phase; no machine sends to itself.
    ///
    /// # Errors
    /// If it is the worst permutation, which [a plan stores](Self::pairs_of).
    pub fn pairs(self, topology: &Topology, seed: u64) -> Result<Vec<Pair>, PatternError> {
        self.pairs_with(topology, None, seed)
    }

    fn pairs_with(self, topology: &Topology, paths: Option<&PathSets>, seed: u64) -> Result<Vec<Pair>, PatternError> {
        let count = topology.hosts().len();
        let part = self.hosts_of(count);
        let pair = |source: usize, destination: usize, phase: usize| Pair {
            source: HostId::new(source),
            destination: HostId::new(destination),
            phase: phase as u32,
        };
        let map = |partner: &dyn Fn(usize) -> usize| -> Vec<Pair> {
            (0..part).map(|host| pair(host, partner(host), 0)).filter(|pair| pair.source != pair.destination).collect()
        };
        let mut pairs = match self {
            Self::AllToAll | Self::Broadcast | Self::UnknownUnicast => {
                (0..count).flat_map(|i| (1..count).map(move |k| pair(i, (i + k) % count, 0))).collect()
            }
            Self::AllToAllPhased => {
                (1..count).flat_map(|k| (0..count).map(move |i| pair(i, (i + k) % count, k - 1))).collect()
            }
            Self::BitReversal => {
                let bits = part.trailing_zeros();
                map(&|host| if bits == 0 { host } else { host.reverse_bits() >> (usize::BITS - bits) })
            }
            Self::Transpose => {
                let side = part.isqrt();
                map(&|host| host % side * side + host / side)
            }
            Self::Permutation => {
                let mut partners: Vec<usize> = (0..count).collect();
                Rng::new(seed).shuffle(&mut partners);
                map(&|host| partners[host])
            }
            Self::Tornado => map(&|host| (host + count.div_ceil(2) - 1) % count),
            Self::Shift(distance) => map(&|host| (host + distance as usize) % count),
            Self::Worst => {
                let receiver = &paths.ok_or(PatternError::NoPathSets)?.proof.worst;
                map(&|host| receiver.get(host).map_or(host, |receiver| receiver.index()))
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
        let name = match self {
            Self::Shift(distance) => Cow::Owned(format!("shift={distance}")),
            other => Cow::Borrowed(other.word()),
        };
        f.pad(&name)
    }
}

impl FromStr for Pattern {
    type Err = String;

    /// Reads the word of a pattern without floods, or `shift=N`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(distance) = Self::shift_of(text) {
            return distance;
        }
        Self::ALL.iter().copied().find(|pattern| pattern.word() == text).ok_or_else(|| {
            let words = Self::ALL.iter().map(|pattern| pattern.word()).chain([Self::SHIFT_WORD]);
            format!("{text:?} is none of {}", words.collect::<Vec<_>>().join(", "))
        })
    }
}

impl Pattern {
    /// Reads `shift=N`; none if the text is something else.
    ///
    /// # Errors
    /// If the distance is no number that a shift can have.
    pub fn shift_of(text: &str) -> Option<Result<Self, String>> {
        let distance = text.strip_prefix("shift=")?;
        let read = distance.parse::<u32>().ok().filter(|distance| *distance > 0);
        Some(
            read.map(Self::Shift)
                .ok_or_else(|| format!("{distance:?} is no distance from 1 to {}: write it as in shift=5", u32::MAX)),
        )
    }
}
