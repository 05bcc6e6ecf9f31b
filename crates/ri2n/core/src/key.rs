//! Secrets that both ends know beforehand.

use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Most keys of an end.
pub const KEYS_MAX: usize = 16;
/// Memory of the stretching of a passphrase, KiB, and passes over it: the least that OWASP recommends for Argon2id.
const STRETCH_KIB: u32 = 19 * 1024;
/// See [`STRETCH_KIB`].
const STRETCH_PASSES: u32 = 2;

/// A secret of 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// What names a key without telling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 8]);

impl Key {
    /// A key of 32 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A key from a passphrase, stretched by Argon2id (RFC 9106), so that whoever recorded a handshake pays 19 MiB and some 20 ms
    /// for each guess. The same passphrase gives the same key everywhere.
    ///
    /// # Panics
    /// If the passphrase is longer than 4 GiB.
    #[must_use]
    pub fn from_passphrase(passphrase: &str) -> Self {
        let terms =
            argon2::Params::new(STRETCH_KIB, STRETCH_PASSES, 1, Some(32)).expect("parameters within their bounds");
        let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, terms);
        let mut bytes = [0; 32];
        // Both ends know nothing but the passphrase, so the salt is the same for all of them.
        argon
            .hash_password_into(passphrase.as_bytes(), b"ri2n v2 passphrase", &mut bytes)
            .expect("a passphrase of less than 4 GiB");
        Self(bytes)
    }

    /// The name of this key in handshakes.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId(*self.derive("ri2n v2 key identifier", &[]).first_chunk().expect("32 bytes"))
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

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The keys of an end: the first is that of connections which it opens, all are accepted. At most [`KEYS_MAX`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Arc<[Key]>);

impl Keys {
    /// The key of connections that this end opens.
    #[must_use]
    pub fn first(&self) -> Option<&Key> {
        self.0.first()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        Self(keys.into_iter().take(KEYS_MAX).collect())
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self([key].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_has_one_key_and_another_has_another() {
        let (a, b) = (Key::from_passphrase("a"), Key::from_passphrase("b"));
        assert_eq!((a == b, a == Key::from_passphrase("a")), (false, true));
        assert_eq!(a.id().to_string().len(), 16);
        assert_eq!(format!("{a:?}"), "Key(…)");
    }
}
