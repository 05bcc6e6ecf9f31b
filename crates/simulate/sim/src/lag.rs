//! LAGs: which of its cables carries a frame.
//!
//! ```text
//!   from, to, which of their flows ─▶ hash ─▶ hash mod 3      one flow, one cable: its frames stay in order
//!                                     ├─ 0 ─▶ sw1:g21 ══ sw2:g21
//!                                     ├─ 1 ─▶ sw1:g22 ══ sw2:g22
//!                                     └─ 2 ─▶ sw1:g23 ══ sw2:g23
//! ```
//! The hash is over the Ethernet addresses of sender and receiver and, where there are several flows between the two, over the number
//! of the flow, which its ports stand for on a real cable. Every switch and host hashes alike, and cables are numbered in
//! the order of the LAG's ports, so that two LAGs with as many members in a row are used alike.
//!
//! Source: IEEE 802.1AX-2020, 6.2.4 (distribution by conversations, which stay in order; how is left to the implementer); the finalizer
//! of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

use std::collections::BTreeMap;

use fabric::{HostId, Mac, Topology};

/// How the flows of a topology's hosts are told apart.
pub(crate) struct FlowHash {
    /// `mac[host]`, in the lower 48 bits.
    mac: Vec<u64>,
}

impl FlowHash {
    pub(crate) fn of(topology: &Topology) -> Self {
        Self { mac: topology.hosts().iter().map(|host| bits(host.mac)).collect() }
    }

    /// Which of `members` cables carries the frames of a flow; a flow to nobody in particular goes to the broadcast address.
    ///
    /// # Panics
    /// If there are no members, or a host that the topology does not have.
    pub(crate) fn member(&self, (from, to): (HostId, Option<HostId>), number: u32, members: u32) -> u32 {
        let to = to.map_or_else(|| bits(Mac::BROADCAST), |to| self.mac[to.index()]);
        let hash = mixed(mixed(mixed(self.mac[from.index()]) ^ to) ^ u64::from(number));
        (hash % u64::from(members)) as u32
    }
}

impl FlowHash {
    /// Which of `paths` paths a flow takes; it has nothing to do with which cables of LAGs it takes.
    ///
    /// # Panics
    /// If there are no paths, or a host that the topology does not have.
    pub(crate) fn path(&self, (from, to): (HostId, HostId), number: u32, paths: usize) -> usize {
        let ends = mixed(!mixed(self.mac[from.index()]) ^ self.mac[to.index()]);
        (mixed(ends ^ u64::from(number)) % paths as u64) as usize
    }
}

/// `number[flow]`: how many flows with the same key come before it.
pub(crate) fn numbers<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<u32> {
    let mut seen: BTreeMap<K, u32> = BTreeMap::new();
    keys.map(|key| {
        let next = seen.entry(key).or_default();
        *next += 1;
        *next - 1
    })
    .collect()
}

fn bits(mac: Mac) -> u64 {
    mac.octets().iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet))
}

fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use fabric::generate::{Kind, Options, generate};

    use super::*;

    fn hosts(count: usize) -> FlowHash {
        let kind = Kind::parse("mesh", &[count.to_string()]).expect("a kind");
        FlowHash::of(&generate(&kind, &Options::default()).expect("a sane size"))
    }

    #[test]
    fn pairs_and_flows_of_one_pair_spread_evenly() {
        const HOSTS: usize = 64;
        let hash = hosts(HOSTS);
        for members in 1..=8 {
            let (mut by_pair, mut by_number) = (vec![0; members], vec![0; members]);
            for from in HostId::all(HOSTS) {
                for to in HostId::all(HOSTS).filter(|to| *to != from) {
                    by_pair[hash.member((from, Some(to)), 0, members as u32) as usize] += 1;
                }
            }
            let pair = (HostId::new(3), Some(HostId::new(9)));
            (0..4032).for_each(|number| by_number[hash.member(pair, number, members as u32) as usize] += 1);
            // Six standard deviations of so many throws of a die.
            let mean = 4032.0 / members as f64;
            let most = 6.0 * (mean * (1.0 - 1.0 / members as f64)).sqrt();
            for count in by_pair.iter().chain(&by_number) {
                assert!((f64::from(*count) - mean).abs() <= most, "{members}: {by_pair:?} {by_number:?}");
            }
        }
    }

    #[test]
    fn flows_of_one_key_are_numbered_in_their_order() {
        assert_eq!(numbers(["a", "b", "a", "a", "b"].into_iter()), [0, 0, 1, 2, 1]);
        assert!(numbers(std::iter::empty::<u8>()).is_empty());
    }
}
