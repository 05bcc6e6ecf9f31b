//! Sockets that only send, whose source port has the network choose a path.
//!
//! ```text
//!   link 0  ─ the worker's socket, any port ──────▶ whichever path the network takes
//!   link 1  ─ port 61441, or 61449, 61457, … ─────▶ another      port mod 8 is the link's entropy
//!   link 2  ─ port 61442, or 61450, 61458, … ─────▶ another
//! ```
//! Switches that hash ports tell these links apart, and `espalier tagger` takes the port mod 8 for the place of a VLAN in the list
//! of those that lead to the peer. The peer answers to the port of link 0, so nothing is received here.

use crate::sys::Socket;
use ri2n::ENTROPIES;
use std::{net::IpAddr, ops::RangeInclusive, sync::OnceLock};

/// Source ports that select a path: above Linux's ephemeral range, which ends at 60,999. `PATH_PORTS` of the tagger is the first.
pub(crate) const PORTS: RangeInclusive<u16> = 61_440..=u16::MAX;
/// Ports tried for one socket before there is none.
const TRIED_MAX: usize = 64;

/// The process's socket of this entropy for peers at addresses like this one; none if no port was free, or for zero.
pub(crate) fn socket(entropy: u8, peer: IpAddr) -> Option<&'static Socket> {
    type Slots = [OnceLock<Option<Socket>>; ENTROPIES as usize];
    static SLOTS: [Slots; 2] = [const { [const { OnceLock::new() }; ENTROPIES as usize] }; 2];
    if entropy == 0 {
        return None;
    }
    let slot = SLOTS[usize::from(peer.is_ipv6())].get(usize::from(entropy))?;
    slot.get_or_init(|| ports(entropy, std::process::id()).find_map(|port| Socket::bind_to_send(peer, port).ok()))
        .as_ref()
}

/// Ports of an entropy, in an order that differs from process to process.
fn ports(entropy: u8, start: u32) -> impl Iterator<Item = u16> {
    let count = PORTS.len() / usize::from(ENTROPIES);
    (0..count.min(TRIED_MAX)).map(move |turn| {
        let place = (start as usize + turn) % count;
        PORTS.start() + (place * usize::from(ENTROPIES)) as u16 + u16::from(entropy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_says_its_entropy_and_stays_in_the_range() {
        for (entropy, start) in
            (0..ENTROPIES).flat_map(|entropy| [0, 1, 511, 512, u32::MAX].map(|start| (entropy, start)))
        {
            let all: Vec<u16> = ports(entropy, start).collect();
            assert_eq!(all.len(), TRIED_MAX);
            assert!(all.iter().all(|port| PORTS.contains(port) && port % 8 == u16::from(entropy)), "{all:?}");
        }
    }

    #[test]
    fn a_socket_is_made_once_and_bound_to_a_port_that_chooses() {
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        let first = socket(3, peer).expect("a free port");
        assert_eq!(first.local_addr().port() % 8, 3);
        assert!(std::ptr::eq(first, socket(3, peer).unwrap()));
        assert!(socket(0, peer).is_none());
    }
}
