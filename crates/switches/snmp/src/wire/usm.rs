//! The user-based security model: keys from passwords, signatures, and AES.
//!
//! ```text
//! password ─ repeat to 1 MiB ─ hash ▶ master key ─ hash with the engine's id ▶ localized key, of this user on this engine
//!                                                                                  │ signs; of a second password:
//! shorter than the cipher's key: extend, longer: cut ◀─────────────────────────────┘ enciphers
//! ```
//!
//! Keys differ from engine to engine, so one switch that is taken apart does not open the others.
//!
//! No RFC says how a localized key of 20 or 28 octets (SHA-1, SHA-224) becomes a key of 24 or 32 for AES-192 and AES-256. Two
//! ways are in use, and both append to the localized key K: the hash of K (Blumenthal), or K taken for a password and localized
//! in its turn (Reeder; Cisco IOS and many others). Where the hash is as long as the key, the two are the same.
//!
//! Sources: RFC 3414, 2.6 and A.2 (keys), 6.3 (signatures, SHA-1); RFC 7860 (SHA-2); RFC 3826 (AES-128 in CFB mode);
//! draft-blumenthal-aes-usm-04, 3.1.2.1 (AES-192, AES-256); draft-reeder-snmpv3-usm-3desede-00, 2.1 (the other extension).

use std::{fmt, str::FromStr};

use aes::{Aes128, Aes192, Aes256};
use cfb_mode::{
    Decryptor, Encryptor,
    cipher::{AsyncStreamCipher, KeyIvInit},
};
use hmac::{Mac as _, SimpleHmac, digest::core_api::BlockSizeUser};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use thiserror::Error;

use super::{Message, WireError};

/// Shortest password that is accepted (RFC 3414, 11.2).
pub const PASSWORD_LEN_MIN: usize = 8;

const STRETCHED_LEN: usize = 1 << 20;
const BLOCK_LEN: usize = 16;
const SALT_LEN: usize = 8;

/// Hash functions of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthProtocol {
    /// HMAC-SHA-96: SHA-1, of which 12 octets are sent.
    Sha1,
    /// HMAC-128-SHA-224: of which 16 octets are sent.
    Sha224,
    /// HMAC-192-SHA-256: of which 24 octets are sent.
    #[default]
    Sha256,
    /// HMAC-256-SHA-384: of which 32 octets are sent.
    Sha384,
    /// HMAC-384-SHA-512: of which 48 octets are sent.
    Sha512,
}

/// Ciphers, each in CFB mode with feedback of 128 bits, and how a localized key that is too short is extended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivacyProtocol {
    /// AES-128, whose key is never too short.
    #[default]
    Aes128,
    /// AES-192 with Blumenthal's extension: net-snmp's `AES-192`.
    Aes192,
    /// AES-256 with Blumenthal's extension: net-snmp's `AES-256`.
    Aes256,
    /// AES-192 with Reeder's extension: net-snmp's `AES-192-C`.
    Aes192Reeder,
    /// AES-256 with Reeder's extension: net-snmp's `AES-256-C`.
    Aes256Reeder,
}

/// A name that no protocol has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown protocol `{found}`, expected one of {known}")]
pub struct UnknownProtocol {
    found: String,
    known: String,
}

/// A secret key that signs. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// A secret key that enciphers, as long as its cipher's keys are. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivacyKey(CipherKey);

#[derive(Clone, PartialEq, Eq)]
enum CipherKey {
    Aes128([u8; 16]),
    Aes192([u8; 24]),
    Aes256([u8; 32]),
}

/// The keys of a user on one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The hash function.
    pub protocol: AuthProtocol,
    /// Signs.
    pub auth: Key,
    /// Enciphers, if the user may.
    pub privacy: Option<PrivacyKey>,
}

/// Calls a function that is generic over the hash function with a protocol's.
macro_rules! with_hash {
    ($protocol:expr, $function:ident($($argument:expr),*)) => {
        match $protocol {
            AuthProtocol::Sha1 => $function::<Sha1>($($argument),*),
            AuthProtocol::Sha224 => $function::<Sha224>($($argument),*),
            AuthProtocol::Sha256 => $function::<Sha256>($($argument),*),
            AuthProtocol::Sha384 => $function::<Sha384>($($argument),*),
            AuthProtocol::Sha512 => $function::<Sha512>($($argument),*),
        }
    };
}

impl AuthProtocol {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Its name in configurations, such as `sha256`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// How many octets a signature has.
    pub const fn signature_len(self) -> usize {
        match self {
            Self::Sha1 => 12,
            Self::Sha224 => 16,
            Self::Sha256 => 24,
            Self::Sha384 => 32,
            Self::Sha512 => 48,
        }
    }

    /// The key of a password on an engine. Cost: hashes a mebibyte.
    pub fn key(self, password: &str, engine_id: &[u8]) -> Key {
        Key(with_hash!(self, localized(password.as_bytes(), engine_id)))
    }
}

impl PrivacyProtocol {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Aes128, Self::Aes192, Self::Aes256, Self::Aes192Reeder, Self::Aes256Reeder];

    /// Its name in configurations, such as `aes256`; a `c` at the end stands for Reeder's extension, as Cisco has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128 => "aes128",
            Self::Aes192 => "aes192",
            Self::Aes256 => "aes256",
            Self::Aes192Reeder => "aes192c",
            Self::Aes256Reeder => "aes256c",
        }
    }

    /// The key of a password on an engine. Cost: hashes a mebibyte, or two with Reeder's extension.
    pub fn key(self, auth: AuthProtocol, password: &str, engine_id: &[u8]) -> PrivacyKey {
        let mut octets = auth.key(password, engine_id).0;
        // Once is enough: the shortest hash has 20 octets, the longest key 32.
        if octets.len() < self.key_len() {
            let more = match self {
                Self::Aes192Reeder | Self::Aes256Reeder => with_hash!(auth, localized(&octets, engine_id)),
                Self::Aes128 | Self::Aes192 | Self::Aes256 => with_hash!(auth, digest(&octets)),
            };
            octets.extend(more);
        }
        PrivacyKey(match self {
            Self::Aes128 => CipherKey::Aes128(beginning(&octets)),
            Self::Aes192 | Self::Aes192Reeder => CipherKey::Aes192(beginning(&octets)),
            Self::Aes256 | Self::Aes256Reeder => CipherKey::Aes256(beginning(&octets)),
        })
    }

    const fn key_len(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::Aes192Reeder => 24,
            Self::Aes256 | Self::Aes256Reeder => 32,
        }
    }
}

impl Keys {
    /// The keys of a user on an engine, from the password that signs and, if there is one, the password that enciphers.
    pub fn new(
        protocol: AuthProtocol,
        auth_password: &str,
        privacy: Option<(PrivacyProtocol, &str)>,
        engine_id: &[u8],
    ) -> Self {
        let privacy = privacy.map(|(cipher, password)| cipher.key(protocol, password, engine_id));
        Self { protocol, auth: protocol.key(auth_password, engine_id), privacy }
    }
}

impl FromStr for AuthProtocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        named(name, &Self::ALL, Self::name)
    }
}

impl FromStr for PrivacyProtocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        named(name, &Self::ALL, Self::name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Debug for PrivacyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivacyKey(…)")
    }
}

fn named<T: Copy>(found: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UnknownProtocol> {
    all.iter().copied().find(|protocol| name(*protocol) == found).ok_or_else(|| UnknownProtocol {
        found: found.to_owned(),
        known: all.iter().map(|protocol| format!("`{}`", name(*protocol))).collect::<Vec<_>>().join(", "),
    })
}

fn localized<D: Digest>(password: &[u8], engine_id: &[u8]) -> Vec<u8> {
    let mut hash = D::new();
    let mut left = STRETCHED_LEN;
    // Whole passwords, a few thousand octets at a time.
    let piece = password.repeat((4096 / password.len().max(1)).max(1));
    while left > 0 && !piece.is_empty() {
        let take = left.min(piece.len());
        hash.update(&piece[..take]);
        left -= take;
    }
    let master = hash.finalize();
    D::new().chain_update(&master).chain_update(engine_id).chain_update(&master).finalize().to_vec()
}

fn digest<D: Digest>(octets: &[u8]) -> Vec<u8> {
    D::digest(octets).to_vec()
}

fn beginning<const LEN: usize>(octets: &[u8]) -> [u8; LEN] {
    *octets.first_chunk().expect("a localized key, extended, is as long as any cipher's")
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
    let signature = with_hash!(keys.protocol, signature(&keys.auth, datagram));
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
    with_hash!(keys.protocol, is_signature(&keys.auth, &blank, &datagram[place]))
}

fn signature<D: Digest + BlockSizeUser>(key: &Key, octets: &[u8]) -> Vec<u8> {
    mac::<D>(key, octets).finalize().into_bytes().to_vec()
}

fn is_signature<D: Digest + BlockSizeUser>(key: &Key, octets: &[u8], signature: &[u8]) -> bool {
    mac::<D>(key, octets).verify_truncated_left(signature).is_ok()
}

fn mac<D: Digest + BlockSizeUser>(key: &Key, octets: &[u8]) -> SimpleHmac<D> {
    SimpleHmac::new_from_slice(&key.0).expect("any key length will do").chain_update(octets)
}

/// Enciphers; the salt goes with the message, and no salt may be used twice with a key.
pub fn encrypt(plain: &[u8], key: &PrivacyKey, boots: i32, time_s: i32, salt: [u8; SALT_LEN]) -> Vec<u8> {
    let mut octets = plain.to_vec();
    let start = start(boots, time_s, salt).into();
    match &key.0 {
        CipherKey::Aes128(key) => Encryptor::<Aes128>::new(key.into(), &start).encrypt(&mut octets),
        CipherKey::Aes192(key) => Encryptor::<Aes192>::new(key.into(), &start).encrypt(&mut octets),
        CipherKey::Aes256(key) => Encryptor::<Aes256>::new(key.into(), &start).encrypt(&mut octets),
    }
    octets
}

/// Deciphers; none if the salt has another length than salts have.
pub fn decrypt(cipher: &[u8], key: &PrivacyKey, boots: i32, time_s: i32, salt: &[u8]) -> Option<Vec<u8>> {
    let mut octets = cipher.to_vec();
    let start = start(boots, time_s, salt.try_into().ok()?).into();
    match &key.0 {
        CipherKey::Aes128(key) => Decryptor::<Aes128>::new(key.into(), &start).decrypt(&mut octets),
        CipherKey::Aes192(key) => Decryptor::<Aes192>::new(key.into(), &start).decrypt(&mut octets),
        CipherKey::Aes256(key) => Decryptor::<Aes256>::new(key.into(), &start).decrypt(&mut octets),
    }
    Some(octets)
}

/// What the cipher starts from (RFC 3826, 3.1.2.1; the same for longer keys).
fn start(boots: i32, time_s: i32, salt: [u8; SALT_LEN]) -> [u8; BLOCK_LEN] {
    let octets = [&boots.to_be_bytes()[..], &time_s.to_be_bytes(), &salt].concat();
    std::array::from_fn(|at| octets[at])
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::{
        Pdu, PduKind, Scoped, ScopedData, SecurityLevel, UsmHeader, V3Message, decode_scoped, encode_scoped,
    };

    /// Engine 00 00 00 00 00 00 00 00 00 00 00 02 of RFC 3414, A.3.
    const ENGINE: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    /// Keys of every hash function with every cipher, made once: each takes up to three mebibytes of hashing.
    static KEYS: LazyLock<Vec<Keys>> = LazyLock::new(|| {
        let keys = |auth| move |privacy| Keys::new(auth, "correct horse", Some((privacy, "battery staple")), &ENGINE);
        AuthProtocol::ALL.iter().flat_map(|auth| PrivacyProtocol::ALL.map(keys(*auth))).collect()
    });

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    fn octets(key: &PrivacyKey) -> &[u8] {
        match &key.0 {
            CipherKey::Aes128(key) => key,
            CipherKey::Aes192(key) => key,
            CipherKey::Aes256(key) => key,
        }
    }

    fn request(request_id: i32) -> Scoped {
        let pdu = Pdu { kind: PduKind::Get, request_id, status: 0, index: 0, bindings: Vec::new() };
        Scoped { engine_id: ENGINE.to_vec(), context: Vec::new(), pdu }
    }

    /// A signed message of version 3.
    fn message(keys: &Keys, level: SecurityLevel, salt: Vec<u8>, data: ScopedData) -> Vec<u8> {
        let usm = UsmHeader {
            engine_id: ENGINE.to_vec(),
            boots: 3,
            time_s: 99,
            user: b"ops".to_vec(),
            signature: vec![0; keys.protocol.signature_len()],
            salt,
        };
        let message = V3Message { id: 1, max_size: 1472, level, reportable: true, usm, data };
        let mut datagram = Message::V3(message).encode();
        assert!(!is_authentic(&datagram, keys));
        sign(&mut datagram, keys).expect("a message");
        datagram
    }

    /// RFC 3414, A.3.2 has SHA-1's. RFC 7860 has none for SHA-2: these were computed with Python's hashlib by RFC 3414, A.2.
    #[test]
    fn keys_are_those_of_the_standard() {
        for (protocol, expect) in [
            (AuthProtocol::Sha1, "6695febc9288e36282235fc7151f128497b38f3f"),
            (AuthProtocol::Sha224, "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be682075674"),
            (AuthProtocol::Sha256, "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b"),
            (
                AuthProtocol::Sha384,
                "3b298f16164a11184279d5432bf169e2d2a48307de02b3d3f7e2b4f36eb6f0455a53689a3937eea07319a633d2ccba78",
            ),
            (
                AuthProtocol::Sha512,
                "22a5a36cedfcc085807a128d7bc6c2382167ad6c0dbc5fdff856740f3d84c099\
                 ad1ea87a8db096714d9788bd544047c9021e4229ce27e4c0a69250adfcffbb0b",
            ),
        ] {
            let key = protocol.key("maplesyrup", &ENGINE);
            assert_eq!(hex(&key.0), expect, "{protocol:?}");
            assert_eq!(format!("{key:?}"), "Key(…)");
        }
    }

    /// Reeder's of SHA-1 is of draft-reeder-snmpv3-usm-3desede-00, appendix B; the others were computed with Python's hashlib.
    #[test]
    fn short_keys_are_extended_and_long_ones_cut() {
        use AuthProtocol::{Sha1, Sha224, Sha256, Sha512};
        use PrivacyProtocol::{Aes128, Aes192, Aes192Reeder, Aes256, Aes256Reeder};
        for (auth, privacy, expect) in [
            (Sha1, Aes128, "6695febc9288e36282235fc7151f1284"),
            (Sha1, Aes192, "6695febc9288e36282235fc7151f128497b38f3f505e07eb"),
            (Sha1, Aes256, "6695febc9288e36282235fc7151f128497b38f3f505e07eb9af25568fa1f5dbe"),
            (Sha1, Aes192Reeder, "6695febc9288e36282235fc7151f128497b38f3f9b8b6d78"),
            (Sha1, Aes256Reeder, "6695febc9288e36282235fc7151f128497b38f3f9b8b6d78936ba6e7d19dfd9c"),
            (Sha224, Aes192, "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be6"),
            (Sha224, Aes256, "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be682075674e82d9bf0"),
            (Sha224, Aes256Reeder, "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be68207567422c34be4"),
            (Sha256, Aes256, "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b"),
            (Sha256, Aes256Reeder, "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b"),
            (Sha512, Aes192, "22a5a36cedfcc085807a128d7bc6c2382167ad6c0dbc5fdf"),
        ] {
            let key = privacy.key(auth, "maplesyrup", &ENGINE);
            assert_eq!(hex(octets(&key)), expect, "{auth:?} {privacy:?}");
            assert_eq!(format!("{key:?}"), "PrivacyKey(…)");
        }
    }

    /// RFC 2202, 3 and RFC 4231, 4.2: key 0b…0b, of 20 octets, and "Hi There".
    #[test]
    fn signatures_are_those_of_the_standard_cut_to_its_lengths() {
        let key = Key(vec![0x0b; 20]);
        for (protocol, expect) in [
            (AuthProtocol::Sha1, "b617318655057264e28bc0b6"),
            (AuthProtocol::Sha224, "896fb1128abbdf196832107cd49df33f"),
            (AuthProtocol::Sha256, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da7"),
            (AuthProtocol::Sha384, "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c"),
            (
                AuthProtocol::Sha512,
                "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4",
            ),
        ] {
            let whole = with_hash!(protocol, signature(&key, b"Hi There"));
            assert_eq!(hex(&whole[..protocol.signature_len()]), expect, "{protocol:?}");
        }
    }

    /// NIST SP 800-38A, F.3.13, F.3.15 and F.3.17: the first two blocks.
    #[test]
    fn ciphers_are_those_of_the_standard() {
        let plain = [
            0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a, 0xae, 0x2d,
            0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c, 0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51,
        ];
        let key = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect()
        };
        let aes128 = key("2b7e151628aed2a6abf7158809cf4f3c");
        let aes192 = key("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b");
        let aes256 = key("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        for (key, expect) in [
            (CipherKey::Aes128(beginning(&aes128)), "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b"),
            (CipherKey::Aes192(beginning(&aes192)), "cdc80d6fddf18cab34c25909c99a417467ce7f7f81173621961a2b70171d3d7a"),
            (CipherKey::Aes256(beginning(&aes256)), "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b"),
        ] {
            // 00 01 02 … 0f, as engine boots, engine time and salt.
            let cipher = encrypt(&plain, &PrivacyKey(key), 0x0001_0203, 0x0405_0607, [8, 9, 10, 11, 12, 13, 14, 15]);
            assert_eq!(hex(&cipher), expect);
        }
    }

    #[test]
    fn names_are_read_back_and_others_are_refused_with_those_that_exist() {
        for protocol in AuthProtocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
        }
        for protocol in PrivacyProtocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
        }
        let refused = "md5".parse::<AuthProtocol>().expect_err("not spoken").to_string();
        assert_eq!(refused, "unknown protocol `md5`, expected one of `sha1`, `sha224`, `sha256`, `sha384`, `sha512`");
        assert!("des".parse::<PrivacyProtocol>().is_err());
    }

    #[test]
    fn who_alters_a_message_is_found() {
        for protocol in AuthProtocol::ALL {
            let keys = Keys::new(protocol, "correct horse", None, &ENGINE);
            let mut message = message(&keys, SecurityLevel::AuthNoPriv, Vec::new(), ScopedData::Plain(request(7)));
            assert!(is_authentic(&message, &keys));
            assert!(!is_authentic(&message, &Keys::new(protocol, "wrong horse!", None, &ENGINE)));
            assert!(!is_authentic(&message, &Keys::new(protocol, "correct horse", None, b"other")));
            for at in 0..message.len() {
                message[at] ^= 1;
                assert!(!is_authentic(&message, &keys), "octet {at}");
                message[at] ^= 1;
            }
        }
    }

    #[test]
    fn a_signature_of_another_protocol_is_refused() {
        for keys in KEYS.iter() {
            let message = message(keys, SecurityLevel::AuthNoPriv, Vec::new(), ScopedData::Plain(request(7)));
            for other in KEYS.iter() {
                assert_eq!(is_authentic(&message, other), keys.protocol == other.protocol, "{keys:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_enciphered_is_deciphered_by_the_same_key_salt_and_time() {
        let plain = &b"some octets of no particular length"[..];
        let salt = 5_u64.to_be_bytes();
        for privacy in PrivacyProtocol::ALL {
            let key = privacy.key(AuthProtocol::Sha1, "correct horse", &ENGINE);
            let cipher = encrypt(plain, &key, 3, 99, salt);
            assert_ne!(&cipher[..], plain);
            assert_eq!(decrypt(&cipher, &key, 3, 99, &salt).as_deref(), Some(plain));
            assert_ne!(decrypt(&cipher, &key, 3, 98, &salt).as_deref(), Some(plain));
            assert_ne!(decrypt(&cipher, &key, 4, 99, &salt).as_deref(), Some(plain));
            assert_ne!(decrypt(&cipher, &key, 3, 99, &6_u64.to_be_bytes()).as_deref(), Some(plain));
            assert_eq!(decrypt(&cipher, &key, 3, 99, &salt[1..]), None);
            for other in PrivacyProtocol::ALL.into_iter().filter(|other| *other != privacy) {
                let other = other.key(AuthProtocol::Sha1, "correct horse", &ENGINE);
                assert_ne!(decrypt(&cipher, &other, 3, 99, &salt).as_deref(), Some(plain));
            }
        }
    }

    proptest! {
        /// With any hash function and any cipher, what is sent is what is read, and a message with an octet changed is refused.
        #[test]
        fn sealed_messages_are_opened_and_damaged_ones_refused(
            which in 0..AuthProtocol::ALL.len() * PrivacyProtocol::ALL.len(),
            request_id in 0..i32::MAX, salt: [u8; SALT_LEN], at: prop::sample::Index, change in 1..=u8::MAX,
        ) {
            let keys = &KEYS[which];
            let key = keys.privacy.as_ref().expect("a key");
            let scoped = request(request_id);
            let cipher = encrypt(&encode_scoped(&scoped), key, 3, 99, salt);
            let mut sealed = message(keys, SecurityLevel::AuthPriv, salt.to_vec(), ScopedData::Encrypted(cipher));
            prop_assert!(is_authentic(&sealed, keys));
            let Ok(Message::V3(V3Message { usm, data: ScopedData::Encrypted(cipher), .. })) = Message::decode(&sealed)
            else {
                return Err(TestCaseError::fail("not enciphered"));
            };
            let opened = decrypt(&cipher, key, usm.boots, usm.time_s, &usm.salt).expect("a salt");
            prop_assert_eq!(decode_scoped(&opened), Ok(scoped));
            let at = at.index(sealed.len());
            sealed[at] ^= change;
            prop_assert!(!is_authentic(&sealed, keys), "octet {}", at);
        }
    }
}
