//! Ethernet addresses.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac([u8; 6]);

/// Why a text is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an Ethernet address: write six hexadecimal octets, such as 02:00:00:00:00:01")]
pub struct MacError;

impl Mac {
    /// The address of every host on a VLAN.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Wraps six octets in transmission order.
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// The `number`-th locally administered unicast address, `02:00` followed by `number` in big-endian order.
    pub const fn local(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([0x02, 0, a, b, c, d])
    }

    /// The six octets in transmission order.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether the group bit is set (broadcast included).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether all octets are zero, which names no station.
    pub const fn is_zero(self) -> bool {
        matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl FromStr for Mac {
    type Err = MacError;

    /// Reads `02:00:00:00:00:01`, `02-00-00-00-00-01`, `0200.0000.0001`, `0200-0000-0001` or twelve bare digits.
    fn from_str(text: &str) -> Result<Self, MacError> {
        let groups: Vec<&str> = text.split([':', '-', '.']).collect();
        let width = match groups.len() {
            6 => 2,
            3 => 4,
            1 => 12,
            _ => return Err(MacError),
        };
        if groups.iter().any(|group| group.len() != width || !group.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            return Err(MacError);
        }
        let digits: String = groups.concat();
        let number = u64::from_str_radix(&digits, 16).map_err(|_| MacError)?;
        let [_, _, octets @ ..] = number.to_be_bytes();
        Ok(Self(octets))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_spellings_of_the_field() {
        for text in ["02:00:00:00:0a:01", "02-00-00-00-0A-01", "0200.0000.0a01", "0200-0000-0a01", "020000000a01"] {
            assert_eq!(text.parse(), Ok(Mac::local(0x0a01)), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", "02:00:00:00:00", "2:0:0:0:0:1", "02:00:00:00:00:0g", "+20000000001", "0200.0000.00001"] {
            assert_eq!(text.parse::<Mac>(), Err(MacError), "{text}");
        }
    }
}
