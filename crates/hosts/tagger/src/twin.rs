//! What the tc programs decide, frame by frame, in Rust: `bpf/tagger.bpf.c` line for line, without the kernel.
//!
//! A frame is its bytes as they stand on the cable, tags included. `frames.rs` of the tests makes them; the program and
//! this twin must agree on every one.

use fabric::{Mac, VlanId};

use crate::{
    layout::{DSCP_CLASS_MAX, Event, PATH_PORTS, PROBE_REPLY, PROBE_REQUEST, PROBE_TYPE},
    table::{CHOICES_MAX, Route, Spread, TaggingTable},
};

const HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const TPID_CUSTOMER: u16 = 0x8100;
const TPID_SERVICE: u16 = 0x88a8;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PORT_PROTOCOLS: [u8; 3] = [6, 17, 132];
const CHOOSING_PROTOCOLS: [u8; 2] = [6, 17];

/// What happens to a frame that the host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// It gets a tag.
    Tag {
        /// The tag's VLAN.
        vlan: VlanId,
        /// The tag's priority, 0 to 7.
        class: u8,
        /// Which destination it counts for: the one that it is for, or [`Mac::BROADCAST`].
        counted: Mac,
    },
    /// It stays as it is.
    Leave(Event),
    /// It is dropped.
    Drop(Event),
}

/// What happens to a frame that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// Its tag comes off.
    Pop(VlanId),
    /// It stays as it is.
    Leave(Event),
    /// It is dropped.
    Drop(Event),
    /// It was a probe's request, and goes back like this.
    Answer(Vec<u8>),
}

/// A frame on its way out. `choice` says which one a flow with this hash has now, where the kernel remembers flows.
pub fn egress(table: &TaggingTable, frame: &[u8], choice: impl FnOnce(Spread, u32) -> u32) -> Egress {
    let Some(header) = frame.get(..HEADER_BYTES) else { return Egress::Drop(Event::Truncated) };
    let kind = be16(header, 12);
    if kind == TPID_CUSTOMER || kind == TPID_SERVICE {
        return Egress::Leave(Event::TaggedAlready);
    }
    let destination = mac_at(header, 0);
    if is_link_local(destination) {
        return Egress::Leave(Event::LinkLocal);
    }
    let known = if destination.is_multicast() { None } else { table.destinations.get(&destination) };
    let Some((route, counted)) =
        known.map(|route| (route, destination)).or(table.group.as_ref().map(|route| (route, Mac::BROADCAST)))
    else {
        return Egress::Drop(Event::NoVlan);
    };
    let vlan = route.choices()[choose(route, frame, choice)];
    Egress::Tag { vlan, class: table.classes.of(vlan).unwrap_or_else(|| dscp_class(frame, kind)), counted }
}

/// A frame on its way in, addressed to this host or not.
pub fn ingress(table: &TaggingTable, own: Mac, frame: &[u8]) -> Ingress {
    let Some(header) = frame.get(..HEADER_BYTES) else { return Ingress::Drop(Event::Truncated) };
    let tag = match be16(header, 12) {
        TPID_CUSTOMER => frame.get(HEADER_BYTES..HEADER_BYTES + TAG_BYTES),
        TPID_SERVICE => return Ingress::Leave(Event::ForeignIn),
        _ => return Ingress::Leave(Event::UntaggedIn),
    };
    let Some(tag) = tag else { return Ingress::Drop(Event::Truncated) };
    let Some(vlan) = VlanId::new(be16(tag, 0) & 0xfff).ok().filter(|vlan| table.receive.contains(*vlan)) else {
        return Ingress::Leave(Event::ForeignIn);
    };
    let body = HEADER_BYTES + TAG_BYTES;
    if be16(tag, 2) == PROBE_TYPE
        && mac_at(header, 0) == own
        && header[6] & 1 == 0
        && frame.get(body) == Some(&PROBE_REQUEST)
    {
        let mut answer = frame.to_vec();
        answer[..6].copy_from_slice(&frame[6..12]);
        answer[6..12].copy_from_slice(&frame[..6]);
        answer[body] = PROBE_REPLY;
        return Ingress::Answer(answer);
    }
    // The kernel takes an inner tag beside the frame, and cannot where it is cut.
    let inner = be16(tag, 2);
    if (inner == TPID_CUSTOMER || inner == TPID_SERVICE) && frame.len() < body + TAG_BYTES {
        return Ingress::Drop(Event::Truncated);
    }
    Ingress::Pop(vlan)
}

/// The class that a frame of this type asks for.
fn dscp_class(frame: &[u8], kind: u16) -> u8 {
    let Some(&[first, second]) = frame.get(HEADER_BYTES..HEADER_BYTES + 2) else { return 0 };
    let asked = match kind {
        TYPE_IPV4 => second >> 5,
        TYPE_IPV6 => (first & 0xf) >> 1,
        _ => 0,
    };
    asked.min(DSCP_CLASS_MAX)
}

/// What tells flows apart; both directions alike. 0 for a frame too short for its kind.
pub fn flow_hash(frame: &[u8]) -> u32 {
    try_flow_hash(frame).unwrap_or(0)
}

/// Which of `count` a hash falls on: spread by the high bits.
pub fn among(hash: u32, count: u32) -> u32 {
    ((u64::from(hash) * u64::from(count)) >> 32) as u32
}

fn choose(route: &Route, frame: &[u8], choice: impl FnOnce(Spread, u32) -> u32) -> usize {
    let count = route.choices().len() as u32;
    let chosen = match route.how() {
        _ if count < 2 => 0,
        Spread::First => 0,
        _ if source_port(frame) >= PATH_PORTS => u32::from(source_port(frame)) % CHOICES_MAX as u32 % count,
        Spread::Port => 0,
        Spread::Flow => among(flow_hash(frame), count),
        spread @ Spread::Flowlet { .. } => among(choice(spread, flow_hash(frame)), count),
        spread @ Spread::Placed => choice(spread, flow_hash(frame)) % count,
    };
    chosen as usize
}

/// The source port of a frame of TCP or UDP; 0 of any other, and of fragments.
fn source_port(frame: &[u8]) -> u16 {
    let ip = &frame[HEADER_BYTES..];
    let (protocol, at) = match (be16(frame, 12), ip) {
        (TYPE_IPV4, [first, _, _, _, _, _, a, b, _, protocol, ..]) if u16::from_be_bytes([*a, *b]) & 0x3fff == 0 => {
            (*protocol, usize::from(first & 0xf) * 4)
        }
        (TYPE_IPV6, [_, _, _, _, _, _, next, _, _, _, ..]) => (*next, 40),
        _ => return 0,
    };
    let port = ip.get(at..at + 2).filter(|_| CHOOSING_PROTOCOLS.contains(&protocol));
    port.map_or(0, |port| be16(port, 0))
}

fn try_flow_hash(frame: &[u8]) -> Option<u32> {
    let kind = be16(frame.get(..HEADER_BYTES)?, 12);
    let ip = &frame[HEADER_BYTES..];
    match kind {
        TYPE_IPV4 => {
            let ip = ip.get(..20).map(|_| ip)?;
            let hash = mix(ends_hash(&ip[12..16], &ip[16..20]), u32::from(ip[9]));
            let fragment = be16(ip, 6) & 0x3fff != 0;
            Some(if fragment { hash } else { mix(hash, ports_hash(ip, usize::from(ip[0] & 0xf) * 4, ip[9])) })
        }
        TYPE_IPV6 => {
            let ip = ip.get(..40).map(|_| ip)?;
            let hash = mix(ends_hash(&ip[8..24], &ip[24..40]), u32::from(ip[6]));
            Some(mix(hash, ports_hash(ip, 40, ip[6])))
        }
        kind => {
            let padded = |mac: &[u8]| [mac, &[0, 0]].concat();
            Some(mix(ends_hash(&padded(&frame[..6]), &padded(&frame[6..12])), u32::from(kind)))
        }
    }
}

fn ports_hash(ip: &[u8], at: usize, protocol: u8) -> u32 {
    match ip.get(at..at + 4) {
        Some(ports) if PORT_PROTOCOLS.contains(&protocol) => {
            let port = |at: usize| u32::from(u16::from_ne_bytes([ports[at], ports[at + 1]]));
            mix(0, port(0)).wrapping_add(mix(0, port(2)))
        }
        _ => 0,
    }
}

fn ends_hash(source: &[u8], destination: &[u8]) -> u32 {
    words_hash(source).wrapping_add(words_hash(destination))
}

fn words_hash(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(4).fold(0, |hash, word| mix(hash, u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
}

fn mix(hash: u32, word: u32) -> u32 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b1);
    hash ^ (hash >> 15)
}

fn is_link_local(mac: Mac) -> bool {
    let octets = mac.octets();
    octets[..5] == [0x01, 0x80, 0xc2, 0, 0] && octets[5] < 0x10
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn mac_at(bytes: &[u8], at: usize) -> Mac {
    Mac::new(std::array::from_fn(|octet| bytes[at + octet]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_flow_have_one_hash_and_flows_spread() {
        let frame = |from: [u8; 4], to: [u8; 4], ports: [u16; 2]| {
            let mut frame = vec![0; 54];
            frame[12..14].copy_from_slice(&TYPE_IPV4.to_be_bytes());
            frame[14] = 0x45;
            frame[23] = 6;
            frame[26..30].copy_from_slice(&from);
            frame[30..34].copy_from_slice(&to);
            frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
            frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
            frame
        };
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let mut hit = [0; 4];
        for port in 0..4000 {
            let hash = flow_hash(&frame(a, b, [40_000 + port, 5201]));
            assert_eq!(hash, flow_hash(&frame(b, a, [5201, 40_000 + port])));
            hit[among(hash, 4) as usize] += 1;
        }
        assert!(hit.iter().all(|count| (900..1100).contains(count)), "{hit:?}");
    }
}
