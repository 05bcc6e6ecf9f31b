//! The mark that a deployment leaves on a switch: who set it up last, and as which plan.
//!
//! No standard object holds such a thing, so it is the name of a VLAN without ports, where every manageable switch has
//! room for 32 characters. Marks are ordered, so of two deployments at once exactly one finds the other's to be higher,
//! and stops.
//!
//! ```text
//!   esp-17-9f3a02c1-5e884898
//!       │  └ nonce   └ first bytes of the plan's digest
//!       └ generation
//! ```

use std::{fmt, str::FromStr};

/// Who set up a switch last. Ordered by generation, then nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// Counts deployments of this fabric, from 1.
    pub generation: u32,
    /// Drawn anew by every deployment, so that two of the same generation differ.
    pub nonce: u32,
    /// The first four bytes of the plan's digest.
    pub digest: u32,
}

/// A VLAN's name that is no mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMark;

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "esp-{}-{:08x}-{:08x}", self.generation, self.nonce, self.digest)
    }
}

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let mut parts = text.strip_prefix("esp-").ok_or(NoMark)?.split('-');
        let mut part = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit())).ok_or(NoMark);
        let generation = part()?.parse().map_err(|_| NoMark)?;
        let mut hex = || part().and_then(|part| u32::from_str_radix(part, 16).map_err(|_| NoMark));
        let (nonce, digest) = (hex()?, hex()?);
        if parts.next().is_some() { Err(NoMark) } else { Ok(Self { generation, nonce, digest }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mark_fits_a_vlan_name_and_reads_back() {
        let mark = Mark { generation: u32::MAX, nonce: u32::MAX, digest: 0 };
        assert_eq!(mark.to_string().len(), 32);
        assert_eq!(mark.to_string().parse(), Ok(mark));
    }

    #[test]
    fn other_names_are_no_marks() {
        for name in
            ["", "default", "esp-", "esp-1", "esp-1-2", "esp-1-2-3-4", "esp-x-2-3", "esp-1-+2-3", "esp-1-2-fffffffff"]
        {
            assert_eq!(name.parse::<Mark>(), Err(NoMark), "{name}");
        }
    }

    #[test]
    fn of_two_at_once_one_is_higher() {
        let mark = |generation, nonce| Mark { generation, nonce, digest: 7 };
        assert!(mark(2, 0) > mark(1, 9) && mark(2, 1) > mark(2, 0));
    }
}
