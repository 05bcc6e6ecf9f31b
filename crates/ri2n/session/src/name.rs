//! What a descriptor says of itself: the abstract name that the broker binds it to.
//!
//! A table of descriptors inside the program would have to follow `dup`, `fork`, `exec` and descriptors passed between
//! processes. The kernel does all that with the name of a socket, so the name is the table:
//!
//! ```text
//!  NUL "ri2n" version | session 8 | connection 8 | near address 23 | far address 23
//! ```

use std::net::SocketAddr;

use crate::address::{self, ADDRESS_BYTES};

const PREFIX: [u8; 6] = *b"\0ri2n\x01";

/// Size of a name.
pub const NAME_BYTES: usize = PREFIX.len() + 8 + 8 + 2 * ADDRESS_BYTES;

/// The name of a program's end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The broker's number, at random.
    pub session: u64,
    /// The connection's number in the session.
    pub id: u64,
    /// What `getsockname` says.
    pub local: SocketAddr,
    /// What `getpeername` says.
    pub remote: SocketAddr,
}

impl Name {
    /// The bytes of `sun_path`.
    pub fn encode(&self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        let (prefix, rest) = bytes.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(&PREFIX);
        rest[..8].copy_from_slice(&self.session.to_le_bytes());
        rest[8..16].copy_from_slice(&self.id.to_le_bytes());
        for (at, address) in [(16, self.local), (16 + ADDRESS_BYTES, self.remote)] {
            let mut encoded = [0; ADDRESS_BYTES];
            address::put(Some(address), &mut encoded);
            rest[at..at + ADDRESS_BYTES].copy_from_slice(&encoded);
        }
        bytes
    }

    /// Reads the bytes of `sun_path`; `None` for a socket that is not ours.
    pub fn decode(path: &[u8]) -> Option<Self> {
        let path: &[u8; NAME_BYTES] = path.try_into().ok()?;
        let rest = path.strip_prefix(&PREFIX)?;
        let (session, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (local, rest) = rest.split_first_chunk()?;
        let (remote, _) = rest.split_first_chunk()?;
        Some(Self {
            session: u64::from_le_bytes(*session),
            id: u64::from_le_bytes(*id),
            local: address::get(local)??,
            remote: address::get(remote)??,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_fit() {
        const { assert!(NAME_BYTES < 108, "sun_path") };
        for (local, remote) in [("10.0.0.1:4", "10.0.0.2:5"), ("[fe80::1]:1", "[::ffff:10.0.0.2]:65535")] {
            let name =
                Name { session: 3, id: u64::MAX, local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            let bytes = name.encode();
            assert_eq!(Name::decode(&bytes), Some(name));
            assert_eq!(Name::decode(&bytes[..NAME_BYTES - 1]), None);
        }
        assert_eq!(Name::decode(b"\0/tmp/.X11-unix/X0"), None);
        assert_eq!(Name::decode(&[0; NAME_BYTES]), None);
    }
}
