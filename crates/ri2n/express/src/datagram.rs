//! A copy on the wire.
//!
//! ```text
//!  token of the receiver 8 | stream offset 8 | flags 1 | bytes, 1 to 1024        integers big endian
//! ```
//!
//! The token is 64 random bits, which the brokers tell each other over the stream: nobody off the path can send one.

/// Longest message that goes as a copy, bytes: with the headers of UDP and IPv6 it fits the smallest MTU of IPv6.
pub const MESSAGE_MAX: usize = 1024;
const HEADER: usize = 8 + 8 + 1;
/// Longest datagram.
pub const DATAGRAM_MAX: usize = HEADER + MESSAGE_MAX;

/// The sender waits for copies itself.
const LISTENS: u8 = 1;
/// Copies have reached the sender of late.
const HEARS: u8 = 2;

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    /// Where the bytes lie in the program's stream.
    pub offset: u64,
    /// Whether the sender's program waits in calls that see copies.
    pub listens: bool,
    /// Whether copies have reached the sender of late: without, its peer does not rely on them.
    pub hears: bool,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Copy<'a> {
    /// Reads a datagram; `None` if it is none or has another token.
    #[must_use]
    pub fn decode(datagram: &'a [u8], token: u64) -> Option<Self> {
        let (header, bytes) = datagram.split_first_chunk::<HEADER>()?;
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|k| header[at + k]));
        let is_good =
            number(0) == token && header[16] & !(LISTENS | HEARS) == 0 && (1..=MESSAGE_MAX).contains(&bytes.len());
        let says = |flag: u8| header[16] & flag != 0;
        is_good.then(|| Self { offset: number(8), listens: says(LISTENS), hears: says(HEARS), bytes })
    }
}

/// Writes a copy; returns its length.
///
/// # Panics
/// If there are more than [`MESSAGE_MAX`] bytes.
pub fn encode(copy: &Copy<'_>, token: u64, into: &mut [u8; DATAGRAM_MAX]) -> usize {
    into[..8].copy_from_slice(&token.to_be_bytes());
    into[8..16].copy_from_slice(&copy.offset.to_be_bytes());
    into[16] = if copy.listens { LISTENS } else { 0 } | if copy.hears { HEARS } else { 0 };
    into[HEADER..HEADER + copy.bytes.len()].copy_from_slice(copy.bytes);
    HEADER + copy.bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_come_back(offset: u64, listens: bool, hears: bool, token: u64, bytes in prop::collection::vec(any::<u8>(), 1..=MESSAGE_MAX)) {
            let mut datagram = [0; DATAGRAM_MAX];
            let copy = Copy { offset, listens, hears, bytes: &bytes };
            let length = encode(&copy, token, &mut datagram);
            prop_assert_eq!(Copy::decode(&datagram[..length], token), Some(copy));
            prop_assert_eq!(Copy::decode(&datagram[..length], !token), None);
            prop_assert_eq!(Copy::decode(&datagram[..HEADER], token), None);
        }

        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..1100), token: u64) {
            let begins = bytes.starts_with(&token.to_be_bytes());
            prop_assert!(begins || Copy::decode(&bytes, token).is_none());
        }
    }
}
