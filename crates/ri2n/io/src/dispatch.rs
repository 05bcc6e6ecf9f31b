//! Whose datagrams these are. One message of the system may hold datagrams of several connections: receive offload puts together
//! what comes from one port of one machine.
//!
//! ```text
//!  message  │ A │ A │ B │ A │ ?? │      →  A: 2 datagrams   B: 1   A: 1   (the last is nobody's)
//! ```

use ri2n::wire::{handshake, packet};

/// Datagrams that follow each other and are for one connection, or for one handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch<'a> {
    /// The identifier at this end.
    pub(crate) id: u32,
    pub(crate) kind: Kind,
    /// Datagrams of the message's segment length, the last perhaps shorter.
    pub(crate) bytes: &'a [u8],
}

/// What datagrams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An answer to a client's handshake.
    Handshake,
    /// Packets of a connection.
    Packets,
}

/// Takes a message apart, whose datagrams are `segment` bytes long but for the last. Datagrams that bear no identifier are left
/// out.
pub(crate) fn stretches(bytes: &[u8], segment: usize) -> impl Iterator<Item = Stretch<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let Some(first) = addressee(rest, segment) else {
                rest = &rest[segment.min(rest.len())..];
                continue;
            };
            let mut length = segment.min(rest.len());
            while length < rest.len() && addressee(&rest[length..], segment) == Some(first) {
                length += segment.min(rest.len() - length);
            }
            let (bytes, after) = rest.split_at(length);
            rest = after;
            return Some(Stretch { id: first.0, kind: first.1, bytes });
        }
        None
    })
}

/// Whose the first of the datagrams is.
fn addressee(bytes: &[u8], segment: usize) -> Option<(u32, Kind)> {
    let datagram = &bytes[..segment.min(bytes.len())];
    match packet::connection_id(datagram) {
        Some(id) => Some((id, Kind::Packets)),
        None => handshake::client_token(datagram).map(|token| (token as u32, Kind::Handshake)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ri2n::wire::{handshake::Body, packet::Width};

    #[test]
    fn every_datagram_gets_to_its_owner_and_no_other() {
        for seed in 1..300_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut draw = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % bound
            };
            let segment = 30 + draw(100) as usize;
            let count = 1 + draw(40);
            let (mut message, mut sent) = (Vec::new(), Vec::new());
            for number in 0..count {
                let token = draw(3) | draw(1 << 30) << 32;
                let mut datagram = Vec::new();
                match draw(8) {
                    0 => datagram.extend(handshake::encode(token, &Body::Hello { nonce: [1; 16] }, |_| [0; 16])),
                    1 => datagram.extend([draw(128) as u8; 40]),
                    _ => {
                        let header = packet::Header { link: 1, token, number, data: Some((number, packet::End::Open)) };
                        packet::encode(&mut datagram, Width::Narrow, &header, &[]);
                    }
                }
                let is_last = number + 1 == count;
                datagram.resize(if is_last { 20 + draw(10) as usize } else { segment }, number as u8);
                if let Some((id, kind)) = addressee(&datagram, segment) {
                    sent.push((id, kind, datagram.clone()));
                }
                message.extend(datagram);
            }
            let mut received = Vec::new();
            for stretch in stretches(&message, segment) {
                received.extend(stretch.bytes.chunks(segment).map(|bytes| (stretch.id, stretch.kind, bytes.to_vec())));
            }
            assert_eq!(received, sent, "seed {seed}");
            let found: Vec<(u32, Kind)> = stretches(&message, segment).map(|each| (each.id, each.kind)).collect();
            let whole = stretches(&message, segment).all(|each| !each.bytes.is_empty());
            assert!(whole && found.len() <= sent.len(), "seed {seed}");
        }
    }

    #[test]
    fn any_bytes_are_taken() {
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|at: usize| (at * 37) as u8 | 0x80).collect();
            for segment in 1..20 {
                let total: usize = stretches(&bytes, segment).map(|each| each.bytes.len()).sum();
                assert!(total <= bytes.len());
            }
        }
    }
}
