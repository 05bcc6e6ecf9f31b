//! What guards a packet beside the UDP checksum: nothing, a CRC, or a keyed tag.
//!
//! The keyed tag is BLAKE3 in keyed mode, cut to 16 bytes, over link, whole packet number and packet, with one key a
//! direction. It authenticates; it does not encrypt. With it, a packet that was changed, made up or replayed by someone
//! *on* the path is dropped before it has any effect; without, the 64-bit token keeps out those off the path only.

use std::fmt;

/// What guards packets when there is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// UDP's own checksum and Ethernet's, as with TCP.
    #[default]
    UdpChecksum,
    /// A CRC-32 in each packet besides.
    Checksum,
}

/// A secret that both ends know beforehand.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// A key of 32 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A key from a passphrase, which should be long: nothing here slows down a guesser who recorded a handshake.
    #[must_use]
    pub fn from_passphrase(passphrase: &str) -> Self {
        Self(blake3::derive_key("ri2n v1 passphrase", passphrase.as_bytes()))
    }

    /// The key of one purpose, tied to some bytes.
    pub(crate) fn derive(&self, purpose: &'static str, context: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0);
        for part in context {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How the packets of one connection are guarded.
#[derive(Clone)]
pub enum Seal {
    /// No tag.
    None,
    /// Four bytes of CRC-32.
    Checksum,
    /// Sixteen bytes of keyed BLAKE3.
    Keyed {
        /// Key of what is sent.
        send: Box<[u8; 32]>,
        /// Key of what is received.
        receive: Box<[u8; 32]>,
    },
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Checksum => "Checksum",
            Self::Keyed { .. } => "Keyed(…)",
        })
    }
}

impl Seal {
    /// Bytes that the tag takes at the end of each packet.
    #[must_use]
    pub const fn tag_len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Checksum => 4,
            Self::Keyed { .. } => 16,
        }
    }

    /// Appends the tag of a packet made of these parts.
    pub(crate) fn put_tag(&self, link: u8, number: u64, parts: &[&[u8]], out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Checksum => out.extend_from_slice(&crc(parts)),
            Self::Keyed { send, .. } => out.extend_from_slice(&keyed(send, link, number, parts)),
        }
    }

    /// Whether the tag is the packet's own.
    pub(crate) fn is_valid(&self, link: u8, number: u64, packet: &[u8], tag: &[u8]) -> bool {
        match self {
            Self::None => tag.is_empty(),
            Self::Checksum => tag == crc(&[packet]),
            Self::Keyed { receive, .. } => equal(tag, &keyed(receive, link, number, &[packet])),
        }
    }
}

fn crc(parts: &[&[u8]]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().to_le_bytes()
}

fn keyed(key: &[u8; 32], link: u8, number: u64, parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&[link]);
    hasher.update(&number.to_le_bytes());
    for part in parts {
        hasher.update(part);
    }
    let mut tag = [0; 16];
    tag.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    tag
}

/// Compares without telling by its time where the difference is.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_of_one_packet_alone() {
        let (a, b) = (Box::new([1; 32]), Box::new([2; 32]));
        let ours = Seal::Keyed { send: a.clone(), receive: b.clone() };
        let theirs = Seal::Keyed { send: b, receive: a };
        for (send, receive) in [(&ours, &theirs), (&Seal::Checksum, &Seal::Checksum)] {
            let mut tag = Vec::new();
            send.put_tag(1, 7, &[b"head", b"body"], &mut tag);
            assert_eq!(tag.len(), send.tag_len());
            assert!(receive.is_valid(1, 7, b"headbody", &tag));
            assert!(!receive.is_valid(1, 7, b"headbodY", &tag));
            assert!(!receive.is_valid(1, 7, b"headbody", &tag[1..]));
        }
        let mut tag = Vec::new();
        ours.put_tag(1, 7, &[b"x"], &mut tag);
        assert!(!theirs.is_valid(1, 8, b"x", &tag) && !theirs.is_valid(2, 7, b"x", &tag));
        assert!(!ours.is_valid(1, 7, b"x", &tag), "a packet sent back to its sender is refused");
    }
}
