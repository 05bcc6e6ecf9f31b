//! Who sends to whom.

use std::{fmt, str::FromStr};

use crate::LabError;

/// A traffic pattern over hosts in plan order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every host to every other.
    AllToAll,
    /// Host b₀b₁…bₖ to host bₖ…b₁b₀; needs a power of two.
    BitReversal,
    /// Host (row, column) to host (column, row); needs a square.
    Transpose,
    /// Every host of the first half to its counterpart in the second.
    Bisection,
    /// One host to another, by name.
    Pair(String, String),
}

impl Pattern {
    /// The pairs (source, destination), by position, ascending; nobody sends to itself.
    ///
    /// # Errors
    /// [`LabError::Unsupported`] if the number of hosts does not suit, [`LabError::NoSuchHost`] for a name that none has.
    pub fn pairs(&self, lab: &str, hosts: &[&str]) -> Result<Vec<(usize, usize)>, LabError> {
        let count = hosts.len();
        let by = |receiver: &dyn Fn(usize) -> usize| {
            (0..count)
                .map(|host| (host, receiver(host)))
                .filter(|(source, destination)| source != destination)
                .collect()
        };
        match self {
            Self::AllToAll => {
                Ok((0..count).flat_map(|a| (0..count).map(move |b| (a, b))).filter(|(a, b)| a != b).collect())
            }
            Self::BitReversal if count.is_power_of_two() && count > 1 => {
                let bits = count.trailing_zeros();
                Ok(by(&|host| host.reverse_bits() >> (usize::BITS - bits)))
            }
            Self::BitReversal => {
                Err(LabError::Unsupported(format!("bit-reversal needs a power of two of hosts, and there are {count}")))
            }
            Self::Transpose if count.isqrt().pow(2) == count => {
                let side = count.isqrt();
                Ok(by(&|host| host % side * side + host / side))
            }
            Self::Transpose => {
                Err(LabError::Unsupported(format!("transpose needs a square of hosts, and there are {count}")))
            }
            Self::Bisection if count % 2 == 0 => Ok((0..count / 2).map(|host| (host, host + count / 2)).collect()),
            Self::Bisection => {
                Err(LabError::Unsupported(format!("bisection needs an even number of hosts, and there are {count}")))
            }
            Self::Pair(a, b) => {
                let find = |name: &String| {
                    let missing = || LabError::NoSuchHost {
                        lab: lab.to_owned(),
                        host: name.clone(),
                        known: hosts.iter().map(|host| (*host).to_owned()).collect(),
                    };
                    hosts.iter().position(|host| host == name).ok_or_else(missing)
                };
                let (a, b) = (find(a)?, find(b)?);
                if a == b { Err(LabError::Unsupported("a pair is two hosts".to_owned())) } else { Ok(vec![(a, b)]) }
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllToAll => f.pad("all-to-all"),
            Self::BitReversal => f.pad("bit-reversal"),
            Self::Transpose => f.pad("transpose"),
            Self::Bisection => f.pad("bisection"),
            Self::Pair(a, b) => f.pad(&format!("pair {a} {b}")),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    /// Reads the word of a pattern, or `pair A B`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["all-to-all"] => Ok(Self::AllToAll),
            ["bit-reversal"] => Ok(Self::BitReversal),
            ["transpose"] => Ok(Self::Transpose),
            ["bisection"] => Ok(Self::Bisection),
            ["pair", a, b] => Ok(Self::Pair(a.to_owned(), b.to_owned())),
            _ => Err(format!("{text:?} is none of all-to-all, bit-reversal, transpose, bisection, pair A B")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pattern: &str, count: usize) -> Result<Vec<(usize, usize)>, LabError> {
        let names: Vec<String> = (0..count).map(|host| format!("n{host}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        pattern.parse::<Pattern>().expect("a pattern").pairs("t", &names)
    }

    #[test]
    fn patterns_pair_hosts() {
        let check = |pattern, count, expect: &[(usize, usize)]| {
            assert_eq!(pairs(pattern, count).expect("suits"), expect, "{pattern}");
        };
        check("all-to-all", 3, &[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
        check("bit-reversal", 8, &[(1, 4), (3, 6), (4, 1), (6, 3)]);
        check("transpose", 4, &[(1, 2), (2, 1)]);
        check("bisection", 4, &[(0, 2), (1, 3)]);
        check("pair n2 n0", 3, &[(2, 0)]);
        assert_eq!(pairs("all-to-all", 16).expect("suits").len(), 240);
    }

    #[test]
    fn patterns_refuse_counts_that_do_not_suit() {
        for (pattern, count) in [
            ("bit-reversal", 6),
            ("bit-reversal", 0),
            ("transpose", 8),
            ("bisection", 5),
            ("pair n0 n0", 2),
            ("pair n0 x", 2),
        ] {
            assert!(pairs(pattern, count).is_err(), "{pattern} {count}");
        }
    }
}
