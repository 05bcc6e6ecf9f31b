//! What guards a packet beside the UDP checksum: nothing, a CRC, or a keyed tag.
//!
//! The keyed tag is BLAKE3 in keyed mode, cut to 16 bytes, over link, whole packet number and packet, with one key a
//! direction. It authenticates; it does not encrypt. With it, a packet that was changed, made up or replayed by someone
//! *on* the path is dropped before it has any effect; without, the 64-bit token keeps out those off the path only.
//!
//! Encrypted packets have ChaCha20-Poly1305 (RFC 8439): control frames and data are hidden, header, link and number are
//! authenticated with them. Each link and each [`PACKETS_A_KEY`] packets of it have a key of their own, derived from that of the
//! direction, and the packet number is the nonce. A number is never used twice on a link, so no nonce is used twice with a key,
//! and no key is worn out, however long a connection lasts.

use crate::LINKS_MAX;
use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Packets of a link that one key encrypts.
pub const PACKETS_A_KEY: u64 = 1 << 20;
/// Forged packets after which nothing is believed any more: the integrity limit of the cipher (RFC 9001, 6.6).
const FORGERIES_MAX: u64 = 1 << 36;
/// Bytes of the tag of an encrypted packet.
const TAG_LEN: usize = 16;

/// What guards packets when there is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// UDP's own checksum and Ethernet's, as with TCP.
    #[default]
    UdpChecksum,
    /// A CRC-32 in each packet besides.
    Checksum,
}

/// How the packets of one connection are guarded.
#[derive(Clone, Serialize, Deserialize)]
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
    /// Authenticated encryption.
    Encrypted(Box<Encryption>),
}

/// The state of encryption of a connection.
#[derive(Clone, Serialize, Deserialize)]
pub struct Encryption {
    send: Direction,
    receive: Direction,
    forgeries: u64,
}

/// The keys of one direction.
#[derive(Clone, Serialize, Deserialize)]
struct Direction {
    base: [u8; 32],
    /// Of each link, the cipher in use and which of its keys it has.
    #[serde(skip)]
    current: [Option<(u64, ChaCha20Poly1305)>; LINKS_MAX],
}

impl Direction {
    fn new(base: [u8; 32]) -> Self {
        Self { base, current: [const { None }; LINKS_MAX] }
    }

    /// The cipher of a packet, and the number of its key.
    fn cipher(&self, link: u8, number: u64) -> (u64, ChaCha20Poly1305) {
        let epoch = number / PACKETS_A_KEY;
        if let Some((known, cipher)) = &self.current[usize::from(link)] {
            if *known == epoch {
                return (epoch, cipher.clone());
            }
        }
        let mut context = [0; 9];
        context[0] = link;
        context[1..].copy_from_slice(&epoch.to_le_bytes());
        let key = blake3::keyed_hash(&self.base, &context);
        (epoch, ChaCha20Poly1305::new(key.as_bytes().into()))
    }

    fn keep(&mut self, link: u8, cipher: (u64, ChaCha20Poly1305)) {
        let slot = &mut self.current[usize::from(link)];
        if slot.as_ref().is_none_or(|(epoch, _)| *epoch != cipher.0) {
            *slot = Some(cipher);
        }
    }
}

/// The nonce of a packet: 4 zeros and its number.
fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Checksum => "Checksum",
            Self::Keyed { .. } => "Keyed(…)",
            Self::Encrypted(_) => "Encrypted(…)",
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
            Self::Encrypted(_) => TAG_LEN,
        }
    }

    /// Encrypted packets with these keys.
    pub(crate) fn encrypted(send: [u8; 32], receive: [u8; 32]) -> Self {
        let (send, receive) = (Direction::new(send), Direction::new(receive));
        Self::Encrypted(Box::new(Encryption { send, receive, forgeries: 0 }))
    }

    /// What a connection has, for people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Checksum => "checksum",
            Self::Keyed { .. } => "authenticated",
            Self::Encrypted(_) => "encrypted",
        }
    }

    /// Encrypts what follows the first `head` bytes of a packet, and appends the tag. Nothing happens unless packets are encrypted.
    pub(crate) fn encrypt(&mut self, link: u8, number: u64, packet: &mut Vec<u8>, from: usize, head: usize) {
        let Self::Encrypted(encryption) = self else { return };
        let cipher = encryption.send.cipher(link, number);
        let (head, hidden) = packet[from..].split_at_mut(head);
        let tag = cipher.1.encrypt_in_place_detached(&nonce(number).into(), head, hidden).expect("a packet is short");
        packet.extend_from_slice(&tag);
        encryption.send.keep(link, cipher);
    }

    /// Decrypts what was hidden behind the head of a packet. Returns whether the tag is the packet's own.
    pub(crate) fn decrypt(&mut self, link: u8, number: u64, head: &[u8], hidden: &mut [u8], tag: &[u8]) -> bool {
        let Self::Encrypted(encryption) = self else { return false };
        let Ok(tag) = <[u8; TAG_LEN]>::try_from(tag) else { return false };
        if encryption.forgeries >= FORGERIES_MAX {
            return false;
        }
        let cipher = encryption.receive.cipher(link, number);
        let is_own = cipher.1.decrypt_in_place_detached(&nonce(number).into(), head, hidden, &tag.into()).is_ok();
        if is_own {
            encryption.receive.keep(link, cipher);
        } else {
            encryption.forgeries += 1;
        }
        is_own
    }

    /// Appends the tag of a packet made of these parts.
    pub(crate) fn put_tag(&self, link: u8, number: u64, parts: &[&[u8]], out: &mut Vec<u8>) {
        match self {
            Self::None | Self::Encrypted(_) => {}
            Self::Checksum => out.extend_from_slice(&crc(parts)),
            Self::Keyed { send, .. } => out.extend_from_slice(&keyed(send, link, number, parts)),
        }
    }

    /// Whether the tag is the packet's own; of an encrypted packet, [`Self::decrypt`] tells.
    pub(crate) fn is_valid(&self, link: u8, number: u64, packet: &[u8], tag: &[u8]) -> bool {
        match self {
            Self::None => tag.is_empty(),
            Self::Checksum => tag == crc(&[packet]),
            Self::Keyed { receive, .. } => equal(tag, &keyed(receive, link, number, &[packet])),
            Self::Encrypted(_) => false,
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

    #[test]
    fn encrypted_packets_are_read_by_the_other_end_alone() {
        let mut ours = Seal::encrypted([1; 32], [2; 32]);
        let mut theirs = Seal::encrypted([2; 32], [1; 32]);
        let mut seen = std::collections::BTreeSet::new();
        // Around a change of keys, late packets of the old one among them.
        let numbers =
            [0, 1, PACKETS_A_KEY - 1, PACKETS_A_KEY, PACKETS_A_KEY - 2, PACKETS_A_KEY + 1, 7 * PACKETS_A_KEY, 2];
        for (link, number) in (0..LINKS_MAX as u8).flat_map(|link| numbers.map(|number| (link, number))) {
            let mut packet = b"before head secret".to_vec();
            ours.encrypt(link, number, &mut packet, 7, 5);
            assert!(packet.starts_with(b"before head ") && packet.len() == 18 + TAG_LEN);
            assert!(seen.insert(packet[12..18].to_vec()), "link {link}, packet {number}: a keystream is used twice");
            let (head, hidden) = packet[7..].split_at(5);
            let (hidden, tag) = hidden.split_at(6);
            let reads = |seal: &mut Seal, link, number, head: &[u8], tag: &[u8]| {
                let mut bytes = hidden.to_vec();
                seal.decrypt(link, number, head, &mut bytes, tag).then_some(bytes)
            };
            assert_eq!(reads(&mut theirs, link, number ^ 1, head, tag), None);
            assert_eq!(reads(&mut theirs, link ^ 1, number, head, tag), None);
            assert_eq!(reads(&mut theirs, link, number, b"heaD ", tag), None);
            assert_eq!(reads(&mut theirs, link, number, head, &tag[1..]), None);
            assert_eq!(reads(&mut ours, link, number, head, tag), None, "a packet sent back to its sender");
            assert_eq!(reads(&mut theirs, link, number, head, tag).as_deref(), Some(&b"secret"[..]));
        }
    }

    #[test]
    fn too_many_forgeries_end_belief() {
        let mut ours = Seal::encrypted([1; 32], [2; 32]);
        let mut theirs = Seal::encrypted([2; 32], [1; 32]);
        let mut packet = b"secret".to_vec();
        ours.encrypt(0, 0, &mut packet, 0, 0);
        let mut read = |forgeries| {
            let Seal::Encrypted(encryption) = &mut theirs else { unreachable!() };
            encryption.forgeries = forgeries;
            let mut bytes = packet[..6].to_vec();
            theirs.decrypt(0, 0, &[], &mut bytes, &packet[6..])
        };
        assert!(read(FORGERIES_MAX - 1) && !read(FORGERIES_MAX));
    }
}
