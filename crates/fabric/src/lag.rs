//! Link aggregation groups (IEEE 802.1AX): several ports of a switch, its *members*, that are one port to everything above them.
//!
//! ```text
//!   sw1 g21 ─┐                 ┌─ g21 sw2
//!            ├ lag1 ══════ lag1 ┤              one link of two cables; VLANs and entries name lag1, never g21 or g22
//!   sw1 g22 ─┘                 └─ g22 sw2
//! ```
//! A LAG is a port like any other, with a name that says what it is: `lag1` is number 1 on its switch, whatever the switch's own
//! language calls it (`Port-channel1`, `ae0`, `Trk1`). Its members are ports that carry nothing of their own. Which member a frame
//! takes is the sender's choice, by a hash, so which of the members at the two ends are joined by one cable does not matter.

use std::{fmt, str::FromStr};

/// The number of a LAG on its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LagNumber(u16);

/// Highest number of a LAG.
const NUMBER_MAX: u16 = 999;

impl LagNumber {
    /// A number, if LAGs can have it: 1 to 999.
    pub const fn new(number: u16) -> Option<Self> {
        if 1 <= number && number <= NUMBER_MAX { Some(Self(number)) } else { None }
    }

    /// Every number, lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=NUMBER_MAX).map(Self)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number at the end of a LAG's name in some switch's own language, such as `Port-channel3`, `Trk3` or `ae3`.
    ///
    /// ```
    /// use fabric::LagNumber;
    /// assert_eq!(LagNumber::at_end_of("Port-channel12"), LagNumber::new(12));
    /// assert!(LagNumber::at_end_of("uplink").is_none());
    /// ```
    pub fn at_end_of(name: &str) -> Option<Self> {
        let digits = &name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
        digits.parse().ok().and_then(Self::new)
    }

    /// The number of the LAG whose port has this name; none where it is no LAG's.
    ///
    /// ```
    /// use fabric::LagNumber;
    /// assert_eq!(LagNumber::of_port("lag12"), LagNumber::new(12));
    /// assert!(LagNumber::of_port("lag012").is_none() && LagNumber::of_port("g12").is_none());
    /// ```
    pub fn of_port(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl fmt::Display for LagNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lag{}", self.0)
    }
}

impl FromStr for LagNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("lag").filter(|digits| {
            !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        let number = digits.and_then(|digits| digits.parse().ok()).and_then(Self::new);
        number.ok_or_else(|| format!("{text:?} is no LAG: they are lag1 to lag{NUMBER_MAX}"))
    }
}
