//! The user-based security model: keys from passwords, signatures, and AES.
//!
//! ```text
//! password ─ repeat to 1 MiB ─ hash ▶ master key ─ hash with the engine's id ▶ key of this user on this engine
//! ```
//!
//! Keys differ from engine to engine, so one switch that is taken apart does not open the others. Sources: RFC 3414, 2.6
//! and A.2 (keys), 6.3 (signatures, SHA-1); RFC 7860 (SHA-256); RFC 3826 (AES-128 in CFB mode).

use aes::Aes128;
use cfb_mode::cipher::{AsyncStreamCipher, KeyIvInit};
use hmac::{Hmac, Mac as _};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::{Message, WireError};

/// Shortest password that is accepted (RFC 3414, 11.2).
pub const PASSWORD_LEN_MIN: usize = 8;

const STRETCHED_LEN: usize = 1 << 20;
const AES_KEY_LEN: usize = 16;
const SALT_LEN: usize = 8;

/// Hash functions of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProtocol {
    /// HMAC-SHA-96: SHA-1, of which 12 octets are sent.
    Sha1,
    /// HMAC-192-SHA-256: of which 24 octets are sent.
    Sha256,
}

/// A secret key. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// The keys of a user on one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The hash function.
    pub protocol: AuthProtocol,
    /// Signs.
    pub auth: Key,
    /// Enciphers, if the user may.
    pub privacy: Option<Key>,
}

impl AuthProtocol {
    /// How many octets a signature has.
    pub const fn signature_len(self) -> usize {
        match self {
            Self::Sha1 => 12,
            Self::Sha256 => 24,
        }
    }

    /// The key of a password on an engine. Cost: hashes a mebibyte.
    pub fn key(self, password: &str, engine_id: &[u8]) -> Key {
        match self {
            Self::Sha1 => localized::<Sha1>(password, engine_id),
            Self::Sha256 => localized::<Sha256>(password, engine_id),
        }
    }
}

impl Keys {
    /// The keys of a user on an engine, from the passwords.
    pub fn new(protocol: AuthProtocol, auth_password: &str, privacy_password: Option<&str>, engine_id: &[u8]) -> Self {
        let key = |password: &str| protocol.key(password, engine_id);
        Self { protocol, auth: key(auth_password), privacy: privacy_password.map(key) }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

fn localized<D: Digest>(password: &str, engine_id: &[u8]) -> Key {
    let mut hash = D::new();
    let mut left = STRETCHED_LEN;
    // Whole passwords, a few thousand octets at a time.
    let piece: Vec<u8> =
        password.bytes().cycle().take(password.len() * (4096 / password.len().max(1)).max(1)).collect();
    while left > 0 && !piece.is_empty() {
        let take = left.min(piece.len());
        hash.update(&piece[..take]);
        left -= take;
    }
    let master = hash.finalize();
    let local = D::new().chain_update(&master).chain_update(engine_id).chain_update(&master).finalize();
    Key(local.to_vec())
}

/// Signs a message of version 3 whose signature is zeros of the right number.
///
/// # Errors
/// Any [`WireError`] if it is no such message.
pub fn sign(datagram: &mut [u8], keys: &Keys) -> Result<(), WireError> {
    let place = Message::signature_place(datagram)?;
    if place.len() != keys.protocol.signature_len() {
        return Err(WireError::Content);
    }
    let signature = match keys.protocol {
        AuthProtocol::Sha1 => {
            let mut mac = Hmac::<Sha1>::new_from_slice(&keys.auth.0).expect("any key length will do");
            mac.update(datagram);
            mac.finalize().into_bytes().to_vec()
        }
        AuthProtocol::Sha256 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(&keys.auth.0).expect("any key length will do");
            mac.update(datagram);
            mac.finalize().into_bytes().to_vec()
        }
    };
    let len = place.len();
    datagram[place].copy_from_slice(&signature[..len]);
    Ok(())
}

/// Whether a message of version 3 bears the signature that belongs to it. Takes the same time wherever they differ.
pub fn is_authentic(datagram: &[u8], keys: &Keys) -> bool {
    let Ok(place) = Message::signature_place(datagram) else { return false };
    if place.len() != keys.protocol.signature_len() {
        return false;
    }
    let mut blank = datagram.to_vec();
    blank[place.clone()].fill(0);
    match keys.protocol {
        AuthProtocol::Sha1 => {
            let mut mac = Hmac::<Sha1>::new_from_slice(&keys.auth.0).expect("any key length will do");
            mac.update(&blank);
            mac.verify_truncated_left(&datagram[place]).is_ok()
        }
        AuthProtocol::Sha256 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(&keys.auth.0).expect("any key length will do");
            mac.update(&blank);
            mac.verify_truncated_left(&datagram[place]).is_ok()
        }
    }
}

/// Enciphers; the salt goes with the message, and no salt may be used twice with a key.
pub fn encrypt(plain: &[u8], key: &Key, boots: i32, time_s: i32, salt: [u8; SALT_LEN]) -> Vec<u8> {
    let mut octets = plain.to_vec();
    cfb_mode::Encryptor::<Aes128>::new(&cipher_key(key).into(), &start(boots, time_s, salt).into())
        .encrypt(&mut octets);
    octets
}

/// Deciphers; none if the salt has another length than salts have.
pub fn decrypt(cipher: &[u8], key: &Key, boots: i32, time_s: i32, salt: &[u8]) -> Option<Vec<u8>> {
    let salt = salt.try_into().ok()?;
    let mut octets = cipher.to_vec();
    cfb_mode::Decryptor::<Aes128>::new(&cipher_key(key).into(), &start(boots, time_s, salt).into())
        .decrypt(&mut octets);
    Some(octets)
}

fn cipher_key(key: &Key) -> [u8; AES_KEY_LEN] {
    std::array::from_fn(|at| key.0[at])
}

/// What the cipher starts from (RFC 3826, 3.1.2.1).
fn start(boots: i32, time_s: i32, salt: [u8; SALT_LEN]) -> [u8; AES_KEY_LEN] {
    let octets = [&boots.to_be_bytes()[..], &time_s.to_be_bytes(), &salt].concat();
    std::array::from_fn(|at| octets[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Pdu, PduKind, Scoped, ScopedData, SecurityLevel, UsmHeader, V3Message};

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn keys_are_those_of_the_standard() {
        // RFC 3414, A.3.2: SHA-1, password "maplesyrup", engine 00 00 00 00 00 00 00 00 00 00 00 02.
        let engine = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        let key = AuthProtocol::Sha1.key("maplesyrup", &engine);
        assert_eq!(hex(&key.0), "6695febc9288e36282235fc7151f128497b38f3f");
        assert_eq!(format!("{key:?}"), "Key(…)");
    }

    #[test]
    fn who_alters_a_message_is_found() {
        for protocol in [AuthProtocol::Sha1, AuthProtocol::Sha256] {
            let keys = Keys::new(protocol, "correct horse", None, b"engine");
            let pdu = Pdu { kind: PduKind::Get, request_id: 7, status: 0, index: 0, bindings: Vec::new() };
            let mut message = Message::V3(V3Message {
                id: 1,
                max_size: 1472,
                level: SecurityLevel::AuthNoPriv,
                reportable: true,
                usm: UsmHeader {
                    engine_id: b"engine".to_vec(),
                    user: b"ops".to_vec(),
                    signature: vec![0; protocol.signature_len()],
                    ..UsmHeader::default()
                },
                data: ScopedData::Plain(Scoped { engine_id: Vec::new(), context: Vec::new(), pdu }),
            })
            .encode();
            assert!(!is_authentic(&message, &keys));
            sign(&mut message, &keys).expect("a message");
            assert!(is_authentic(&message, &keys));
            assert!(!is_authentic(&message, &Keys::new(protocol, "wrong horse!", None, b"engine")));
            assert!(!is_authentic(&message, &Keys::new(protocol, "correct horse", None, b"other")));
            for at in 0..message.len() {
                message[at] ^= 1;
                assert!(!is_authentic(&message, &keys), "octet {at}");
                message[at] ^= 1;
            }
        }
    }

    #[test]
    fn what_is_enciphered_is_deciphered_by_the_same_key_salt_and_time() {
        let key = AuthProtocol::Sha256.key("correct horse", b"engine");
        let salt = 5_u64.to_be_bytes();
        let cipher = encrypt(b"some octets of no particular length", &key, 3, 99, salt);
        assert_ne!(&cipher[..], b"some octets of no particular length");
        assert_eq!(decrypt(&cipher, &key, 3, 99, &salt).as_deref(), Some(&b"some octets of no particular length"[..]));
        assert_ne!(decrypt(&cipher, &key, 3, 98, &salt).as_deref(), Some(&b"some octets of no particular length"[..]));
        assert_eq!(decrypt(&cipher, &key, 3, 99, &salt[1..]), None);
    }
}
