//! The four datagrams before a connection: HELLO, COOKIE, OPEN, ACCEPT; and REFUSE. Of an encrypted connection, OPEN and ACCEPT are
//! of kinds of their own.
//!
//! ```text
//!  0..4   "RI2N"    4  version    5  kind    6..14  the client's token    14..  by kind
//! ```
//!
//! No answer is longer than the question: HELLO is padded beyond COOKIE, OPEN beyond ACCEPT.

use super::{DATAGRAM_MIN, Malformed, Reader, VERSION, put_varint};
use crate::{LINKS_MAX, key::KeyId};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of a HELLO, which COOKIE and REFUSE do not pass.
pub const HELLO_LEN: usize = 96;
/// Length of an OPEN, which ACCEPT does not pass.
pub const OPEN_LEN: usize = 512;
/// Length of a REFUSE with its proof.
const REFUSE_LEN: usize = 14 + 2 + PROOF_LEN;
/// Most addresses that an end offers.
pub const ADDRESSES_MAX: usize = 2 * LINKS_MAX;
/// Bytes of the proof that an end knows the key.
pub const PROOF_LEN: usize = 16;
/// First bytes of the client's stream that OPEN carries, at most: there is room for them whatever else there is to say.
pub const FIRST_BYTES_MAX: usize = 54;

const MAGIC: [u8; 4] = *b"RI2N";
const HELLO: u8 = 1;
const COOKIE: u8 = 2;
const OPEN: u8 = 3;
const ACCEPT: u8 = 4;
const REFUSE: u8 = 5;
const SEALED_OPEN: u8 = 6;
const SEALED_ACCEPT: u8 = 7;
/// Where the message of a sealed OPEN begins.
const SEALED_OPEN_AT: usize = 14 + 16 + 8 + 16 + 8;
/// Bytes that the message of a sealed OPEN hides.
pub(crate) const OPEN_PAYLOAD_LEN: usize = OPEN_LEN - SEALED_OPEN_AT - Sealed::OVERHEAD;
const _: () = assert!(10 + 1 + ADDRESSES_MAX * 21 + 1 + FIRST_BYTES_MAX <= OPEN_PAYLOAD_LEN, "everything fits");
/// The same of a sealed ACCEPT, at most.
pub(crate) const ACCEPT_PAYLOAD_MAX: usize = OPEN_LEN - 14 - Sealed::OVERHEAD;

/// An address that an end can be reached at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Length of the prefix of its subnet.
    pub prefix: u8,
    /// Largest IP packet that its port sends.
    pub mtu: u16,
    /// Of links that end there: those of the lowest number that deliver carry the data.
    pub priority: u8,
}

impl Address {
    /// Largest UDP payload in one packet of this port.
    #[must_use]
    pub fn datagram_max(&self) -> u16 {
        let headers = if self.ip.is_ipv4() { 20 + 8 } else { 40 + 8 };
        self.mtu.saturating_sub(headers).max(DATAGRAM_MIN)
    }

    /// Whether `other` is in the subnet of this address.
    #[must_use]
    pub fn reaches(&self, other: IpAddr) -> bool {
        match (self.ip, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let shift = 32 - u32::from(self.prefix.min(32));
                (u64::from(a.to_bits() ^ b.to_bits())) >> shift == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let differing = a.to_bits() ^ b.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix.min(128))
            }
            _ => false,
        }
    }
}

/// The guard of packets that an end asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// None but UDP's.
    None,
    /// CRC-32.
    Checksum,
    /// A keyed tag.
    Keyed,
}

/// Why a server does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server speaks this version and not the client's.
    Version(u8),
    /// The server wants another guard: a key, or none.
    Guard,
    /// Too many connections wait or stand.
    Full,
}

/// The third datagram: the client shows the cookie and its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The client's random number.
    pub nonce: [u8; 16],
    /// Seconds of the server's clock when the cookie was made.
    pub cookie_time: u64,
    /// The server's proof that the client's address answers.
    pub cookie: [u8; 16],
    /// How packets are to be guarded.
    pub guard: Guard,
    /// Bytes that the client's receive buffer holds.
    pub window: u64,
    /// The client's addresses, at most [`ADDRESSES_MAX`]; for information.
    pub addresses: Vec<Address>,
    /// The first bytes of the client's stream, at most [`FIRST_BYTES_MAX`].
    pub first_bytes: Vec<u8>,
}

/// The third datagram of an encrypted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The client's random number, when the cookie was made, and the cookie: as in [`Open`].
    pub nonce: [u8; 16],
    /// See `nonce`.
    pub cookie_time: u64,
    /// See `nonce`.
    pub cookie: [u8; 16],
    /// Which key it is made with.
    pub key: KeyId,
    /// The first message of Noise, whose payload is a [`ClientTerms`].
    pub message: Vec<u8>,
}

impl Sealed {
    /// Bytes of a message of Noise beside its payload: a public key and a tag.
    pub(crate) const OVERHEAD: usize = 32 + 16;
}

/// What a sealed OPEN hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTerms {
    /// Bytes that the client's receive buffer holds.
    pub window: u64,
    /// The client's addresses, at most [`ADDRESSES_MAX`]; for information.
    pub addresses: Vec<Address>,
    /// The first bytes of the client's stream, at most [`FIRST_BYTES_MAX`].
    pub first_bytes: Vec<u8>,
}

impl ClientTerms {
    /// Always of the same length, whatever there is to say.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(OPEN_PAYLOAD_LEN);
        put_varint(&mut out, self.window);
        put_addresses(&mut out, &self.addresses);
        put_first_bytes(&mut out, &self.first_bytes);
        out.resize(OPEN_PAYLOAD_LEN, 0);
        out
    }

    /// Reads what [`Self::encode`] writes.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            window: reader.varint()?,
            addresses: read_addresses(&mut reader)?,
            first_bytes: read_first_bytes(&mut reader)?,
        })
    }
}

/// The fourth datagram: the server's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The token that the client puts into every packet.
    pub server_token: u64,
    /// The server's random number.
    pub nonce: [u8; 16],
    /// The UDP port of this connection.
    pub port: u16,
    /// Bytes that the server's receive buffer holds.
    pub window: u64,
    /// The server's addresses, at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
    /// Bytes of the client's stream that the server has taken from OPEN.
    pub first_taken: u8,
    /// The first bytes of the server's stream, at most [`FIRST_BYTES_MAX`]; only for a client whose OPEN carried some.
    pub first_bytes: Vec<u8>,
}

impl Accept {
    /// Appends the fields in their order.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.server_token.to_le_bytes());
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.port.to_le_bytes());
        put_varint(out, self.window);
        put_addresses(out, &self.addresses);
        if self.first_taken > 0 || !self.first_bytes.is_empty() {
            out.push(self.first_taken);
        }
        if !self.first_bytes.is_empty() {
            put_first_bytes(out, &self.first_bytes);
        }
    }

    /// Reads what [`Self::encode`] writes.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            server_token: reader.u64()?,
            nonce: reader.array()?,
            port: reader.u16()?,
            window: reader.varint()?,
            addresses: read_addresses(&mut reader)?,
            // Servers of earlier releases end here.
            first_taken: if reader.is_empty() { 0 } else { reader.u8()? },
            first_bytes: if reader.is_empty() { Vec::new() } else { read_first_bytes(&mut reader)? },
        })
    }
}

/// What a handshake datagram says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// May I?
    Hello {
        /// The client's random number.
        nonce: [u8; 16],
    },
    /// Come back with this.
    Cookie {
        /// Seconds of the server's clock.
        time: u64,
        /// A tag over them, the client's address, token and nonce.
        cookie: [u8; 16],
    },
    /// Here it is, with my terms.
    Open(Open),
    /// Come in.
    Accept(Accept),
    /// No.
    Refuse(Refusal),
    /// As Open, of an encrypted connection.
    SealedOpen(Sealed),
    /// As Accept, of an encrypted connection: the second message of Noise, whose payload is an [`Accept`].
    SealedAccept(Vec<u8>),
}

/// A handshake datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// The client's token, which every answer repeats.
    pub client_token: u64,
    /// What it says.
    pub body: Body,
    /// The last [`PROOF_LEN`] bytes of OPEN, ACCEPT and REFUSE, made with the key over all that precedes them; zeros without.
    pub proof: [u8; PROOF_LEN],
    /// What the proof is over.
    pub proven: &'a [u8],
}

/// Whether a datagram is a handshake's rather than a connection's.
#[must_use]
pub fn is_handshake(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Writes a datagram. The proof of OPEN, ACCEPT and REFUSE comes from `prove`, given all the bytes before it.
///
/// # Panics
/// If there are more than [`ADDRESSES_MAX`] addresses or [`FIRST_BYTES_MAX`] first bytes.
pub fn encode(client_token: u64, body: &Body, prove: impl FnOnce(&[u8]) -> [u8; PROOF_LEN]) -> Vec<u8> {
    let mut out = Vec::with_capacity(OPEN_LEN);
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    let kind = match body {
        Body::Hello { .. } => HELLO,
        Body::Cookie { .. } => COOKIE,
        Body::Open(_) => OPEN,
        Body::Accept(_) => ACCEPT,
        Body::Refuse(_) => REFUSE,
        Body::SealedOpen(_) => SEALED_OPEN,
        Body::SealedAccept(_) => SEALED_ACCEPT,
    };
    out.push(kind);
    out.extend_from_slice(&client_token.to_le_bytes());
    match body {
        Body::Hello { nonce } => {
            out.extend_from_slice(nonce);
            out.resize(HELLO_LEN, 0);
        }
        Body::Cookie { time, cookie } => {
            out.extend_from_slice(&time.to_le_bytes());
            out.extend_from_slice(cookie);
        }
        Body::Open(open) => {
            out.extend_from_slice(&open.nonce);
            out.extend_from_slice(&open.cookie_time.to_le_bytes());
            out.extend_from_slice(&open.cookie);
            out.push(match open.guard {
                Guard::None => 0,
                Guard::Checksum => 1,
                Guard::Keyed => 2,
            });
            put_varint(&mut out, open.window);
            put_addresses(&mut out, &open.addresses);
            put_first_bytes(&mut out, &open.first_bytes);
            out.resize(OPEN_LEN - PROOF_LEN, 0);
            let proof = prove(&out);
            out.extend_from_slice(&proof);
        }
        Body::Accept(accept) => {
            accept.encode(&mut out);
            let proof = prove(&out);
            out.extend_from_slice(&proof);
        }
        Body::Refuse(refusal) => {
            out.extend_from_slice(&match refusal {
                Refusal::Version(version) => [0, *version],
                Refusal::Guard => [1, 0],
                Refusal::Full => [2, 0],
            });
            let proof = prove(&out);
            out.extend_from_slice(&proof);
        }
        Body::SealedOpen(sealed) => {
            put_sealed_head(&mut out, sealed.nonce, sealed.cookie_time, sealed.cookie, sealed.key);
            out.extend_from_slice(&sealed.message);
        }
        Body::SealedAccept(message) => out.extend_from_slice(message),
    }
    out
}

/// What precedes the message in a sealed OPEN.
#[must_use]
pub(crate) fn sealed_prologue(client_token: u64, nonce: [u8; 16], time: u64, cookie: [u8; 16], key: KeyId) -> Vec<u8> {
    let mut out = Vec::with_capacity(SEALED_OPEN_AT);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, SEALED_OPEN]);
    out.extend_from_slice(&client_token.to_le_bytes());
    put_sealed_head(&mut out, nonce, time, cookie, key);
    out
}

fn put_sealed_head(out: &mut Vec<u8>, nonce: [u8; 16], time: u64, cookie: [u8; 16], key: KeyId) {
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&time.to_le_bytes());
    out.extend_from_slice(&cookie);
    out.extend_from_slice(&key.0);
}

/// The client's token of a datagram that may be cut anywhere behind it.
#[must_use]
pub fn client_token(bytes: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(bytes);
    let is_ours = reader.array().ok()? == MAGIC;
    let (_version, _kind) = (reader.u8().ok()?, reader.u8().ok()?);
    reader.u64().ok().filter(|_| is_ours)
}

/// Reads a datagram.
///
/// # Errors
/// If it is not one of the seven, or of another version and no REFUSE.
pub fn decode(bytes: &[u8]) -> Result<Handshake<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.array()? != MAGIC {
        return Err(Malformed);
    }
    let (version, kind, client_token) = (reader.u8()?, reader.u8()?, reader.u64()?);
    if version != VERSION && kind != REFUSE {
        return Err(Malformed);
    }
    let mut proof = [0; PROOF_LEN];
    let mut proven = &[][..];
    // The first implementations of this version sent REFUSE without a proof.
    if kind == OPEN || kind == ACCEPT || kind == REFUSE && bytes.len() >= REFUSE_LEN {
        let (before, last) = bytes.split_last_chunk().ok_or(Malformed)?;
        (proof, proven) = (*last, before);
        reader = Reader::new(before.get(14..).ok_or(Malformed)?);
    }
    let body = match kind {
        HELLO if bytes.len() >= HELLO_LEN => Body::Hello { nonce: reader.array()? },
        COOKIE => Body::Cookie { time: reader.u64()?, cookie: reader.array()? },
        OPEN if bytes.len() >= OPEN_LEN => Body::Open(Open {
            nonce: reader.array()?,
            cookie_time: reader.u64()?,
            cookie: reader.array()?,
            guard: match reader.u8()? {
                0 => Guard::None,
                1 => Guard::Checksum,
                2 => Guard::Keyed,
                _ => return Err(Malformed),
            },
            window: reader.varint()?,
            addresses: read_addresses(&mut reader)?,
            first_bytes: read_first_bytes(&mut reader)?,
        }),
        ACCEPT => Body::Accept(Accept::decode(reader.rest())?),
        SEALED_OPEN if bytes.len() == OPEN_LEN => Body::SealedOpen(Sealed {
            nonce: reader.array()?,
            cookie_time: reader.u64()?,
            cookie: reader.array()?,
            key: KeyId(reader.array()?),
            message: reader.rest().to_vec(),
        }),
        SEALED_ACCEPT if bytes.len() <= OPEN_LEN => Body::SealedAccept(reader.rest().to_vec()),
        REFUSE => Body::Refuse(match (reader.u8()?, reader.u8()?) {
            (0, version) => Refusal::Version(version),
            (1, _) => Refusal::Guard,
            (2, _) => Refusal::Full,
            _ => return Err(Malformed),
        }),
        _ => return Err(Malformed),
    };
    Ok(Handshake { client_token, body, proof, proven })
}

/// The version and the client's token of a HELLO or OPEN of any version, so that it can be refused politely.
#[must_use]
pub fn foreign_version(bytes: &[u8]) -> Option<(u8, u64)> {
    let mut reader = Reader::new(bytes);
    let magic: [u8; 4] = reader.array().ok()?;
    let (version, kind, token) = (reader.u8().ok()?, reader.u8().ok()?, reader.u64().ok()?);
    (magic == MAGIC && version != VERSION && kind == HELLO && bytes.len() >= HELLO_LEN).then_some((version, token))
}

/// Clients of earlier releases have zeros here: no bytes.
fn put_first_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    assert!(bytes.len() <= FIRST_BYTES_MAX, "too many first bytes");
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

fn read_first_bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let count = usize::from(reader.u8()?);
    if count > FIRST_BYTES_MAX {
        return Err(Malformed);
    }
    Ok(reader.bytes(count)?.to_vec())
}

fn put_addresses(out: &mut Vec<u8>, addresses: &[Address]) {
    assert!(addresses.len() <= ADDRESSES_MAX, "too many addresses");
    out.push(addresses.len() as u8);
    addresses.iter().for_each(|address| put_address(out, address));
}

/// Appends one address.
pub(super) fn put_address(out: &mut Vec<u8>, address: &Address) {
    match address.ip {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.push(address.prefix);
    out.extend_from_slice(&address.mtu.to_le_bytes());
    out.push(address.priority);
}

fn read_addresses(reader: &mut Reader<'_>) -> Result<Vec<Address>, Malformed> {
    let count = usize::from(reader.u8()?);
    if count > ADDRESSES_MAX {
        return Err(Malformed);
    }
    (0..count).map(|_| read_address(reader)).collect()
}

/// Reads one address.
pub(super) fn read_address(reader: &mut Reader<'_>) -> Result<Address, Malformed> {
    let ip: IpAddr = match reader.u8()? {
        4 => Ipv4Addr::from(reader.array::<4>()?).into(),
        6 => Ipv6Addr::from(reader.array::<16>()?).into(),
        _ => return Err(Malformed),
    };
    let (prefix, mtu, priority) = (reader.u8()?, reader.u16()?, reader.u8()?);
    if prefix > if ip.is_ipv4() { 32 } else { 128 } {
        return Err(Malformed);
    }
    Ok(Address { ip, prefix, mtu, priority })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses() -> impl Strategy<Value = Vec<Address>> {
        proptest::collection::vec(address(), 0..=ADDRESSES_MAX)
    }

    fn first_bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..=FIRST_BYTES_MAX)
    }

    pub(in crate::wire) fn address() -> impl Strategy<Value = Address> {
        (any::<u128>(), any::<bool>(), 0..=32_u8, any::<u16>(), any::<u8>()).prop_map(
            |(bits, v6, prefix, mtu, priority)| {
                let ip = if v6 { Ipv6Addr::from(bits).into() } else { Ipv4Addr::from(bits as u32).into() };
                Address { ip, prefix, mtu, priority }
            },
        )
    }

    fn body() -> impl Strategy<Value = Body> {
        let guard = prop_oneof![Just(Guard::None), Just(Guard::Checksum), Just(Guard::Keyed)];
        let refusal = prop_oneof![any::<u8>().prop_map(Refusal::Version), Just(Refusal::Guard), Just(Refusal::Full)];
        prop_oneof![
            any::<[u8; 16]>().prop_map(|nonce| Body::Hello { nonce }),
            any::<(u64, [u8; 16])>().prop_map(|(time, cookie)| Body::Cookie { time, cookie }),
            (any::<([u8; 16], u64, [u8; 16])>(), guard, any::<u64>(), addresses(), first_bytes()).prop_map(
                |((nonce, cookie_time, cookie), guard, window, addresses, first_bytes)| {
                    Body::Open(Open { nonce, cookie_time, cookie, guard, window, addresses, first_bytes })
                }
            ),
            (any::<(u64, [u8; 16], u16, u64, u8)>(), addresses(), first_bytes()).prop_map(
                |((server_token, nonce, port, window, first_taken), addresses, first_bytes)| {
                    Body::Accept(Accept { server_token, nonce, port, window, addresses, first_taken, first_bytes })
                }
            ),
            refusal.prop_map(Body::Refuse),
            (any::<([u8; 16], u64, [u8; 16], [u8; 8])>(), any::<u8>()).prop_map(
                |((nonce, cookie_time, cookie, key), fill)| {
                    let message = vec![fill; OPEN_LEN - SEALED_OPEN_AT];
                    Body::SealedOpen(Sealed { nonce, cookie_time, cookie, key: KeyId(key), message })
                }
            ),
            proptest::collection::vec(any::<u8>(), 0..OPEN_LEN - 14).prop_map(Body::SealedAccept),
        ]
    }

    proptest! {
        #[test]
        fn datagrams_survive(token: u64, body in body(), proof: [u8; PROOF_LEN]) {
            let mut proven = Vec::new();
            let bytes = encode(token, &body, |before| { proven = before.to_vec(); proof });
            let read = decode(&bytes).unwrap();
            prop_assert_eq!((read.client_token, &read.body), (token, &body));
            prop_assert_eq!(client_token(&bytes), Some(token));
            prop_assert_eq!(read.proven, &proven[..]);
            prop_assert!(is_handshake(&bytes) && crate::wire::packet::decode(&bytes).is_err());
            let limit = match body {
                Body::Open(_) | Body::Accept(_) | Body::SealedOpen(_) | Body::SealedAccept(_) => OPEN_LEN,
                _ => HELLO_LEN,
            };
            prop_assert!(bytes.len() <= limit, "no answer is longer than its question");
        }

        #[test]
        fn any_bytes_are_taken(mut bytes in proptest::collection::vec(0..=255_u8, 6..600), kind in 0..9_u8) {
            let _ = decode(&bytes);
            bytes[..6].copy_from_slice(&[b'R', b'I', b'2', b'N', VERSION, kind]);
            let _ = (decode(&bytes), foreign_version(&bytes));
            let _ = (ClientTerms::decode(&bytes), Accept::decode(&bytes));
        }

        #[test]
        fn sealed_terms_survive_and_always_fit(
            window: u64, addresses in addresses(), first_bytes in first_bytes(),
            server_token: u64, nonce: [u8; 16], port: u16, first_taken: u8,
        ) {
            let terms = ClientTerms { window, addresses: addresses.clone(), first_bytes: first_bytes.clone() };
            let bytes = terms.encode();
            prop_assert_eq!(bytes.len(), OPEN_PAYLOAD_LEN);
            prop_assert_eq!(ClientTerms::decode(&bytes), Ok(terms));
            let accept = Accept { server_token, nonce, port, window, addresses, first_taken, first_bytes };
            let mut bytes = Vec::new();
            accept.encode(&mut bytes);
            prop_assert!(bytes.len() <= ACCEPT_PAYLOAD_MAX);
            prop_assert_eq!(Accept::decode(&bytes), Ok(accept));
        }
    }

    #[test]
    fn subnets() {
        let address = |ip: &str, prefix| Address { ip: ip.parse().unwrap(), prefix, mtu: 1500, priority: 0 };
        let reaches = |a, prefix, b: &str| address(a, prefix).reaches(b.parse().unwrap());
        assert!(reaches("10.0.1.1", 24, "10.0.1.200") && !reaches("10.0.1.1", 24, "10.0.2.1"));
        assert!(reaches("10.0.1.1", 0, "1.2.3.4") && !reaches("10.0.1.1", 32, "10.0.1.2"));
        assert!(reaches("fd00::1", 64, "fd00::2") && !reaches("fd00::1", 64, "fd00:0:0:1::1"));
        assert!(!reaches("fd00::1", 0, "10.0.0.1") && reaches("fd00::1", 128, "fd00::1"));
    }
}
