//! The deployment tag that a deployment leaves on a switch: who set it up last, as which plan, and whether that is over.
//!
//! No standard object holds such a thing, so it is the name of a VLAN without ports, where every manageable switch has
//! room for 32 characters. Marks are ordered, so of two deployments at once exactly one finds the other's to be higher,
//! and stops.
//!
//! ```text
//!   esp-17-9f3a02c1-5e884898     at rest: the switch holds what this deployment led it to
//!   esu-17-9f3a02c1-5e884898     under way: drained or half configured; what it held before is in that deployment's journal
//!       │  └ nonce   └ first bytes of the plan's digest
//!       └ generation
//! ```

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

/// Who set up a switch last. Equal and ordered by generation, nonce and digest: which deployment it is, not how far.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Counts deployments of this fabric, from 1.
    pub generation: u32,
    /// Drawn anew by every deployment, so that two of the same generation differ.
    pub nonce: u32,
    /// The first four bytes of the plan's digest.
    pub digest: u32,
    /// How far the deployment has come with the switch.
    pub phase: Phase,
}

/// How far a deployment has come with a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing has been changed yet, or everything has.
    #[default]
    AtRest,
    /// The switch is drained, or in the middle of a change.
    UnderWay,
}

impl Mark {
    /// A mark of a deployment that has changed nothing yet.
    pub fn new(generation: u32, nonce: u32, digest: u32) -> Self {
        Self { generation, nonce, digest, phase: Phase::AtRest }
    }

    /// The same deployment's mark, so far on.
    #[must_use]
    pub fn at(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// Whether it is of a later deployment. One that was resumed is the same, whatever plan it went on to.
    pub fn is_later_than(&self, other: Self) -> bool {
        (self.generation, self.nonce) > (other.generation, other.nonce)
    }

    /// Whether it is of the same deployment, whatever plan that went on to.
    pub fn is_of(&self, other: Self) -> bool {
        (self.generation, self.nonce) == (other.generation, other.nonce)
    }

    fn identity(&self) -> (u32, u32, u32) {
        (self.generation, self.nonce, self.digest)
    }
}

impl PartialEq for Mark {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Mark {}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Mark {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for Mark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// A VLAN's name that is no mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMark;

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.phase {
            Phase::AtRest => "esp",
            Phase::UnderWay => "esu",
        };
        write!(f, "{word}-{}-{:08x}-{:08x}", self.generation, self.nonce, self.digest)
    }
}

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let (phase, rest) = match (text.strip_prefix("esp-"), text.strip_prefix("esu-")) {
            (Some(rest), _) => (Phase::AtRest, rest),
            (None, Some(rest)) => (Phase::UnderWay, rest),
            (None, None) => return Err(NoMark),
        };
        let mut parts = rest.split('-');
        let mut part = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit())).ok_or(NoMark);
        let generation = part()?.parse().map_err(|_| NoMark)?;
        let mut hex = || part().and_then(|part| u32::from_str_radix(part, 16).map_err(|_| NoMark));
        let (nonce, digest) = (hex()?, hex()?);
        if parts.next().is_some() { Err(NoMark) } else { Ok(Self { generation, nonce, digest, phase }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mark_fits_a_vlan_name_and_reads_back() {
        for phase in [Phase::AtRest, Phase::UnderWay] {
            let mark = Mark::new(u32::MAX, u32::MAX, 0).at(phase);
            assert_eq!(mark.to_string().len(), 32);
            let read: Mark = mark.to_string().parse().expect("its own text");
            assert_eq!((read, read.phase), (mark, phase));
        }
    }

    #[test]
    fn other_names_are_no_marks() {
        for name in [
            "",
            "default",
            "esp-",
            "esp-1",
            "est-1-2-3",
            "esp-1-2",
            "esp-1-2-3-4",
            "esp-x-2-3",
            "esp-1-+2-3",
            "esp-1-2-fffffffff",
        ] {
            assert_eq!(name.parse::<Mark>(), Err(NoMark), "{name}");
        }
    }

    #[test]
    fn of_two_at_once_one_is_higher() {
        let mark = |generation, nonce| Mark::new(generation, nonce, 7);
        assert!(mark(2, 0) > mark(1, 9) && mark(2, 1) > mark(2, 0));
    }
}
