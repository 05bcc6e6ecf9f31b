//! Floods: frames that a switch sends out of every port of their VLAN, for want of an entry; and which of them are dropped.
//!
//! ```text
//!   --flood forward    all of them spread through their VLAN, as 802.1Q says
//!   --flood edge       unknown unicast spreads between switches, and leaves by the edge port alone
//!   --flood drop       unknown unicast leaves by no port: it ends at the switch that it enters first
//!   --flood drop-all   nor do multicast and broadcast: hosts need static neighbour entries (ARP, ND)
//! ```

use std::{fmt, str::FromStr};

use crate::words::words;

words! {
    /// A kind of frames without an entry.
    FloodKind {
        /// For a unicast address that the switch has no entry for.
        UnknownUnicast = "unknown-unicast",
        /// For a group that the switch has no entry for.
        Multicast = "multicast",
        /// For everybody.
        Broadcast = "broadcast",
    }
}

words! {
    /// What the switches of a plan do with frames without an entry.
    Flood {
        /// Forward them through their VLAN.
        Forward = "forward",
        /// Forward unknown unicast to the edge port alone, which takes static entries.
        Edge = "edge",
        /// Drop unknown unicast, which takes static entries.
        Drop = "drop",
        /// Drop multicast and broadcast as well, which takes static neighbour entries (ARP, ND) on every host.
        DropAll = "drop-all",
    }
}

impl Flood {
    /// The kinds of frames that leave by no port.
    pub const fn blocked(self) -> FloodSet {
        match self {
            Self::Forward | Self::Edge => FloodSet::NONE,
            Self::Drop => FloodSet::NONE.with(FloodKind::UnknownUnicast),
            Self::DropAll => FloodSet::ALL,
        }
    }

    /// The kinds of frames that ports of switches must be able to block.
    pub const fn needed(self) -> FloodSet {
        match self {
            Self::Edge => FloodSet::NONE.with(FloodKind::UnknownUnicast),
            _ => self.blocked(),
        }
    }
}

/// A set of [`FloodKind`]s. It is written as their words with commas between, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FloodSet(u8);

impl FloodSet {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self =
        Self::NONE.with(FloodKind::UnknownUnicast).with(FloodKind::Multicast).with(FloodKind::Broadcast);

    /// The set with one kind more.
    #[must_use]
    pub const fn with(self, kind: FloodKind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Whether a kind is in the set.
    pub const fn contains(self, kind: FloodKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// Whether no kind is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Its kinds, ascending.
    pub fn iter(self) -> impl Iterator<Item = FloodKind> {
        FloodKind::ALL.iter().copied().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<FloodKind> for FloodSet {
    fn from_iter<T: IntoIterator<Item = FloodKind>>(kinds: T) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for FloodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(FloodKind::word).collect();
        f.pad(&if words.is_empty() { "none".to_owned() } else { words.join(",") })
    }
}

impl FromStr for FloodSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        text.split(',').map(str::parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_read_as_it_is_written() {
        for bits in 0..8 {
            let set = FloodSet(bits);
            assert_eq!(set.to_string().parse(), Ok(set), "{set}");
            assert_eq!(set.iter().collect::<FloodSet>(), set);
            assert_eq!(set.iter().count(), bits.count_ones() as usize);
            for other in (0..8).map(FloodSet) {
                for kind in FloodKind::ALL.iter().copied() {
                    assert_eq!(set.or(other).contains(kind), set.contains(kind) || other.contains(kind));
                    assert_eq!(set.and(other).contains(kind), set.contains(kind) && other.contains(kind));
                    assert_eq!(set.without(other).contains(kind), set.contains(kind) && !other.contains(kind));
                }
            }
        }
        assert_eq!(FloodSet::ALL, FloodSet(7));
        for wrong in ["", "broadcasts", "broadcast,", "none,broadcast"] {
            assert!(wrong.parse::<FloodSet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_stricter_choice_blocks_more() {
        let blocked: Vec<FloodSet> = Flood::ALL.iter().map(|flood| flood.blocked().or(flood.needed())).collect();
        assert!(blocked.windows(2).all(|pair| pair[0].without(pair[1]).is_empty()), "{blocked:?}");
    }
}
