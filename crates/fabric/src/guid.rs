//! InfiniBand's names for devices and ports.

use std::{fmt, num::NonZeroU64, str::FromStr};

use thiserror::Error;

/// A 64-bit globally unique identifier: of a switch, or of a host's port. InfiniBand Architecture Specification 4.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(NonZeroU64);

/// Why a text is not a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a GUID: write up to sixteen hexadecimal digits, not all zero, such as 0x0002c90200405a10")]
pub struct GuidError;

impl Guid {
    /// Wraps a number; none for 0, which names nothing.
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for Guid {
    type Err = GuidError;

    /// Reads `0x0002c90200405a10`, with or without `0x` and leading zeros, or `0002:c902:0040:5a10`.
    fn from_str(text: &str) -> Result<Self, GuidError> {
        let groups: Vec<&str> = text.split(':').collect();
        let digits = match groups.as_slice() {
            [digits] => digits.strip_prefix("0x").unwrap_or(digits).to_owned(),
            [_, _, _, _] if groups.iter().all(|group| group.len() == 4) => groups.concat(),
            _ => return Err(GuidError),
        };
        if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(GuidError);
        }
        u64::from_str_radix(&digits, 16).ok().and_then(Self::new).ok_or(GuidError)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_spellings_of_the_field() {
        for text in ["0x0002c90200405a10", "2c90200405a10", "0x2C90200405A10", "0002:c902:0040:5a10"] {
            let guid: Guid = text.parse().expect("a GUID");
            assert_eq!(guid.to_string(), "0x0002c90200405a10", "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", "0", "0x", "0x00000000000000001", "+1", "g", "1:2:3:4", "0000:0000:0000:0000"] {
            assert_eq!(text.parse::<Guid>(), Err(GuidError), "{text}");
        }
    }
}
