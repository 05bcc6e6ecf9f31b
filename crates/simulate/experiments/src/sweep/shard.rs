//! Shares of the rows of a sweep, for several machines.

use std::str::FromStr;

/// A share of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// Whether a row, counted from 0, belongs to it.
    pub fn has(self, row: usize) -> bool {
        row % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err("name a share and how many there are, from 1/4 to 4/4".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_every_row_once() {
        for of in 1..7 {
            let shards: Vec<Shard> =
                (1..=of).map(|number| format!("{number}/{of}").parse().expect("a shard")).collect();
            for row in 0..50 {
                assert_eq!(shards.iter().filter(|shard| shard.has(row)).count(), 1, "row {row} of {of} shards");
            }
        }
        for wrong in ["0/4", "5/4", "1", "a/b", "1/0", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
