//! The first bytes of a stream between two brokers: who wants to speak to whom.
//!
//! ```text
//!  client ─▶ "RI2G" version 2 | its address 19 | the address it wants 19 | offer 10
//!  server ─▶ "RI2G" version 2 | error number 2, 0: welcome | offer 10
//! ```
//!
//! An offer is where the end takes early copies of small messages (see `ri2n-express`): UDP port, 0 if it takes none, and the
//! token 8 that they must bear. An address is family (4 or 6), port, sixteen bytes; integers are big endian. Error numbers are those of Linux, of
//! which only `ECONNREFUSED`, `ETIMEDOUT` and `ECONNABORTED` are sent; any other is read as `ECONNREFUSED`.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use serde::{Deserialize, Serialize};

const MAGIC: [u8; 4] = *b"RI2G";
const VERSION: u8 = 2;
const ADDRESS_BYTES: usize = 1 + 2 + 16;
const OFFER_BYTES: usize = 2 + 8;

/// Size of a greeting.
pub(crate) const GREETING_BYTES: usize = 5 + 2 * ADDRESS_BYTES + OFFER_BYTES;
/// Size of the answer.
pub(crate) const WELCOME_BYTES: usize = 5 + 2 + OFFER_BYTES;

/// What the client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    pub(crate) offer: Option<Offer>,
}

/// Where an end takes early copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) port: u16,
    pub(crate) token: u64,
}

impl Offer {
    fn put(offer: Option<Self>, bytes: &mut [u8]) {
        if let Some(offer) = offer {
            bytes[..2].copy_from_slice(&offer.port.to_be_bytes());
            bytes[2..].copy_from_slice(&offer.token.to_be_bytes());
        }
    }

    fn get(bytes: &[u8]) -> Option<Self> {
        let port = u16::from_be_bytes([bytes[0], bytes[1]]);
        let token = u64::from_be_bytes(bytes[2..OFFER_BYTES].try_into().ok()?);
        (port != 0).then_some(Self { port, token })
    }
}

impl Greeting {
    pub(crate) fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        Offer::put(self.offer, &mut bytes[GREETING_BYTES - OFFER_BYTES..]);
        for (address, bytes) in [self.source, self.target].iter().zip(bytes[5..].chunks_exact_mut(ADDRESS_BYTES)) {
            bytes[1..3].copy_from_slice(&address.port().to_be_bytes());
            match address.ip().to_canonical() {
                IpAddr::V4(ip) => {
                    bytes[0] = 4;
                    bytes[3..7].copy_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes[0] = 6;
                    bytes[3..].copy_from_slice(&ip.octets());
                }
            }
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?.strip_prefix(&[VERSION])?;
        let (source, rest) = rest.split_at(ADDRESS_BYTES);
        let (target, offer) = rest.split_at(ADDRESS_BYTES);
        Some(Self { source: address(source)?, target: address(target)?, offer: Offer::get(offer) })
    }
}

/// The answer: welcome, or an error number.
pub(crate) fn encode_welcome(result: Result<Option<Offer>, i32>) -> [u8; WELCOME_BYTES] {
    let mut bytes = [0; WELCOME_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = VERSION;
    bytes[5..7].copy_from_slice(&(result.err().unwrap_or(0) as u16).to_be_bytes());
    Offer::put(result.ok().flatten(), &mut bytes[7..]);
    bytes
}

/// Reads the answer.
///
/// # Errors
/// What the server says, or that it says nothing that is known.
pub(crate) fn decode_welcome(bytes: &[u8; WELCOME_BYTES]) -> io::Result<Option<Offer>> {
    let Some(code) = bytes.strip_prefix(&MAGIC).and_then(|rest| rest.strip_prefix(&[VERSION])) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer speaks RI2N, but not as a broker"));
    };
    match i32::from(u16::from_be_bytes([code[0], code[1]])) {
        0 => Ok(Offer::get(&code[2..])),
        known @ (libc::ETIMEDOUT | libc::ECONNABORTED) => Err(io::Error::from_raw_os_error(known)),
        _ => Err(io::Error::from_raw_os_error(libc::ECONNREFUSED)),
    }
}

fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([bytes[1], bytes[2]]);
    let octets: [u8; 16] = bytes[3..].try_into().ok()?;
    let ip = match bytes[0] {
        4 => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
        6 => Ipv6Addr::from(octets).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn greetings_come_back(source: ([u8; 4], u16), target: ([u8; 16], u16), port: u16, token: u64) {
            let offer = (port != 0).then_some(Offer { port, token });
            let greeting = Greeting { source: source.into(), target: SocketAddr::from(target), offer };
            prop_assert_eq!(decode_welcome(&encode_welcome(Ok(offer))).unwrap(), offer);
            let canonical = SocketAddr::new(greeting.target.ip().to_canonical(), greeting.target.port());
            prop_assert_eq!(Greeting::decode(&greeting.encode()), Some(Greeting { target: canonical, ..greeting }));
        }

        #[test]
        fn garbage_is_no_greeting(bytes: [u8; 32], more: [u8; 21]) {
            let mut all = [0; GREETING_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            prop_assert!(all.starts_with(&MAGIC) || Greeting::decode(&all).is_none());
        }
    }

    #[test]
    fn refusals_come_back() {
        assert!(decode_welcome(&encode_welcome(Ok(None))).is_ok());
        for (sent, read) in [
            (libc::ECONNREFUSED, libc::ECONNREFUSED),
            (libc::ETIMEDOUT, libc::ETIMEDOUT),
            (libc::EPERM, libc::ECONNREFUSED),
        ] {
            assert_eq!(decode_welcome(&encode_welcome(Err(sent))).unwrap_err().raw_os_error(), Some(read));
        }
        assert!(decode_welcome(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
