//! The handshake of encrypted connections: the pattern NNpsk0 of the Noise protocol framework (revision 34), by the `snow` crate.
//!
//! ```text
//!  client   OPEN    psk, e  · window, addresses                        ──▶
//!           ◀──     ACCEPT  e, ee  · token, port, window, addresses
//!  both     keys of the packets, one a direction
//! ```
//!
//! NNpsk0, since all machines of a cluster share a key and none has an identity of its own. The pre-shared key is mixed in before
//! the first message, so a wrong one is noticed there, and what the client says of itself is for those who have it. The
//! Diffie-Hellman of keys made for this connection alone keeps what was recorded secret from whoever learns the pre-shared key
//! later. What precedes the message in OPEN, the cookie among it, is the prologue: both ends have the same, or the handshake fails.

use crate::{
    key::Key,
    wire::{
        Malformed,
        handshake::{ACCEPT_PAYLOAD_MAX, OPEN_PAYLOAD_LEN, Sealed},
    },
};
use snow::{
    Builder, Error, HandshakeState,
    params::{CipherChoice, DHChoice, HashChoice, NoiseParams},
    resolvers::{CryptoResolver, DefaultResolver},
    types::{Cipher, Dh, Hash, Random},
};
use std::fmt;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The keys of packets: from the client, from the server.
pub(crate) type Split = ([u8; 32], [u8; 32]);

/// A handshake on its way.
pub(crate) struct Noise(Box<HandshakeState>);

impl fmt::Debug for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Noise(…)")
    }
}

/// Randomness that came in as an argument.
struct Drawn(blake3::OutputReader);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.fill(bytes);
        Ok(())
    }
}

/// The library's own algorithms with the randomness of a seed.
struct Seeded([u8; 32]);

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let mut hasher = blake3::Hasher::new_derive_key("ri2n v2 ephemeral keys");
        hasher.update(&self.0);
        Some(Box::new(Drawn(hasher.finalize_xof())))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

enum Side {
    Initiator,
    Responder,
}

impl Noise {
    fn new(side: Side, key: &Key, seed: [u8; 32], prologue: &[u8]) -> Self {
        let parameters: NoiseParams = PATTERN.parse().expect("a pattern that snow knows");
        let psk = key.derive("ri2n v2 noise", &[]);
        let builder = Builder::with_resolver(parameters, Box::new(Seeded(seed)));
        let builder = builder.psk(0, &psk).and_then(|builder| builder.prologue(prologue));
        let state = builder.and_then(|builder| match side {
            Side::Initiator => builder.build_initiator(),
            Side::Responder => builder.build_responder(),
        });
        Self(Box::new(state.expect("a pattern that needs nothing more")))
    }

    /// The client begins: the message of OPEN. `seed` was used for no other message.
    pub(crate) fn open(key: &Key, seed: [u8; 32], prologue: &[u8], payload: &[u8]) -> (Self, Vec<u8>) {
        let mut noise = Self::new(Side::Initiator, key, seed, prologue);
        let message = noise.write(payload);
        (noise, message)
    }

    /// The server takes in the message of OPEN, and returns its payload; nothing if the key is another.
    pub(crate) fn take_open(
        key: &Key,
        seed: [u8; 32],
        prologue: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), Malformed> {
        let mut noise = Self::new(Side::Responder, key, seed, prologue);
        let payload = noise.read(message, OPEN_PAYLOAD_LEN)?;
        Ok((noise, payload))
    }

    /// The server answers: the message of ACCEPT.
    pub(crate) fn accept(mut self, payload: &[u8]) -> (Vec<u8>, Split) {
        let message = self.write(payload);
        (message, self.split())
    }

    /// The client takes in the message of ACCEPT, and returns its payload; another may still come if this was forged.
    pub(crate) fn take_accept(&mut self, message: &[u8]) -> Result<(Vec<u8>, Split), Malformed> {
        let payload = self.read(message, ACCEPT_PAYLOAD_MAX)?;
        Ok((payload, self.split()))
    }

    fn write(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut message = vec![0; payload.len() + Sealed::OVERHEAD];
        let length = self.0.write_message(payload, &mut message).expect("it is our turn and there is room");
        message.truncate(length);
        message
    }

    fn read(&mut self, message: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
        let mut payload = vec![0; most];
        let fits = message.len() <= most + Sealed::OVERHEAD;
        let length = self.0.read_message(message, &mut payload).ok().filter(|_| fits).ok_or(Malformed)?;
        payload.truncate(length);
        Ok(payload)
    }

    fn split(&mut self) -> Split {
        self.0.dangerously_get_raw_split()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_the_same_keys_or_none() {
        let (key, other) = (Key::new([1; 32]), Key::new([2; 32]));
        let (mut client, open) = Noise::open(&key, [3; 32], b"cookie", b"hello");
        assert!(!open.windows(5).any(|window| window == b"hello"));
        for (key, prologue, message) in [
            (&other, &b"cookie"[..], open.clone()),
            (&key, b"kookie", open.clone()),
            (&key, b"cookie", {
                let mut changed = open.clone();
                changed[40] ^= 1;
                changed
            }),
        ] {
            assert!(Noise::take_open(key, [4; 32], prologue, &message).is_err());
        }
        let (server, payload) = Noise::take_open(&key, [4; 32], b"cookie", &open).unwrap();
        assert_eq!(payload, b"hello");
        let (accept, keys) = server.accept(b"welcome");
        let mut forged = accept.clone();
        forged[3] ^= 1;
        assert!(client.take_accept(&forged).is_err() && client.take_accept(&[]).is_err());
        assert_eq!(client.take_accept(&accept).unwrap(), (b"welcome".to_vec(), keys));
        assert_ne!(keys.0, keys.1);
        // Another seed has other keys, whatever else is the same.
        let (server, _) = Noise::take_open(&key, [5; 32], b"cookie", &open).unwrap();
        assert_ne!(server.accept(b"welcome").1, keys);
    }
}
