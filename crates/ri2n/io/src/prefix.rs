//! Networks as people write them.

use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr};

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no network.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no network: an address, a slash and a number of bits are wanted, as in 10.1.0.0/16")]
pub struct NotAPrefix(String);

impl Prefix {
    /// The network of the first `bits` bits of an address; nothing if the address has not so many.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        (bits <= width(address)).then_some(Self { address, bits })
    }

    /// Whether an address lies in this network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (network, address, width) = match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (u128::from(u32::from(network)), u128::from(u32::from(address)), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => (u128::from(network), u128::from(address), 128),
            _ => return false,
        };
        (network ^ address).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
    }

    /// The address as it was written.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    #[must_use]
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Self {
        Self { address, bits: width(address) }
    }
}

impl FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let parse = || {
            let (address, bits) = text.split_once('/')?;
            Self::new(address.parse().ok()?, bits.parse().ok()?)
        };
        parse().ok_or_else(|| NotAPrefix(text.to_owned()))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_they_should() {
        for (prefix, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.3", "10.2.0.0"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "1::", "1.2.3.4"),
        ] {
            let prefix: Prefix = prefix.parse().unwrap();
            assert!(prefix.contains(inside.parse().unwrap()), "{prefix} {inside}");
            assert!(!prefix.contains(outside.parse().unwrap()), "{prefix} {outside}");
        }
        for text in ["10.0.0.0", "10.0.0.0/33", "fd00::/129", "net/8", "10.0.0.0/-1", ""] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
