//! A probe as it stands in a frame: `struct probe` of `bpf/tagger.h` behind a tagged Ethernet header.
//!
//! ```text
//!   destination │ source │ 8100 priority,VLAN │ 88b6 │ kind version vlan path sequence session sent │ padding
//! ```
//! A warning is the same frame with another kind: the host that sends it finds the path toward the receiver's switch in
//! `vlan` sick. It comes by a VLAN that is not, and nobody answers it.
//!
//! Long flows are announced to all hosts, in the VLAN of the sender's broadcasts:
//!
//! ```text
//!   ff:ff:ff:ff:ff:ff │ source │ 8100 priority,VLAN │ 88b6 │ kind version count │ destination vlan │ … │ padding
//! ```

use fabric::{Mac, VlanId};

use crate::layout::{PROBE_BYTES, PROBE_FLOWS, PROBE_REPLY, PROBE_REQUEST, PROBE_TYPE, PROBE_WARNING};

/// Bytes of a probe's frame, tag included: the least that Ethernet carries.
pub const FRAME_BYTES: usize = 64;
const HEADER_BYTES: usize = 18;
const VERSION: u8 = 1;
/// Most flows of an announcement.
pub const FLOWS_MAX: usize = 16;
const ANNOUNCED_BYTES: usize = 8;
const TPID: u16 = 0x8100;
/// Class of network control: switches that serve classes in order send probes past what waits.
const PRIORITY: u16 = 7;

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeFields {
    /// The VLAN that it is sent in.
    pub vlan: VlanId,
    /// Whose paths, so that replies to a process that ended are nobody's.
    pub session: u32,
    /// The sender's number of the path.
    pub path: u32,
    /// The sender's number of the probe on that path.
    pub sequence: u32,
    /// When it was sent, by the sender's clock.
    pub sent_ns: u64,
}

/// What the socket of the probes hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// A probe came back.
    Reply(ProbeFields),
    /// A host finds the path between its switch and ours sick.
    Warning {
        /// The host.
        from: Mac,
        /// The path's VLAN.
        vlan: VlanId,
    },
    /// A host announces its long flows.
    Flows {
        /// The host.
        from: Mac,
        /// The destination and the VLAN of each.
        flows: Vec<(Mac, VlanId)>,
    },
}

/// The frame that announces long flows, `by` a VLAN; those beyond [`FLOWS_MAX`] are left out.
pub fn announcement(own: Mac, by: VlanId, flows: &[(Mac, VlanId)]) -> Vec<u8> {
    let count = flows.len().min(FLOWS_MAX) as u16;
    let mut frame = [&Mac::BROADCAST.octets()[..], &own.octets(), &TPID.to_be_bytes()].concat();
    frame.extend((PRIORITY << 13 | by.get()).to_be_bytes());
    frame.extend(PROBE_TYPE.to_be_bytes());
    frame.extend([PROBE_FLOWS, VERSION]);
    frame.extend(count.to_be_bytes());
    for (to, vlan) in flows.iter().take(FLOWS_MAX) {
        frame.extend(to.octets());
        frame.extend(vlan.get().to_be_bytes());
    }
    frame.resize(frame.len().max(FRAME_BYTES), 0);
    frame
}

/// Reads an announcement behind its version.
fn read_flows(from: Mac, body: &[u8]) -> Option<ProbeMessage> {
    let count = usize::from(u16::from_be_bytes(body.get(..2)?.try_into().ok()?)).min(FLOWS_MAX);
    let listed = body.get(2..2 + count * ANNOUNCED_BYTES)?.chunks_exact(ANNOUNCED_BYTES);
    let flow = |bytes: &[u8]| {
        let vlan = VlanId::new(u16::from_be_bytes([bytes[6], bytes[7]])).ok()?;
        Some((mac_at(bytes, 0), vlan))
    };
    Some(ProbeMessage::Flows { from, flows: listed.map(flow).collect::<Option<_>>()? })
}

fn mac_at(bytes: &[u8], at: usize) -> Mac {
    Mac::new(std::array::from_fn(|octet| bytes[at + octet]))
}

/// The frame of a request.
pub fn request(own: Mac, target: Mac, probe: &ProbeFields) -> [u8; FRAME_BYTES] {
    frame(own, target, probe.vlan, PROBE_REQUEST, probe)
}

/// The frame of a warning that goes `by` a VLAN.
pub fn warning(own: Mac, target: Mac, by: VlanId, sick: VlanId) -> [u8; FRAME_BYTES] {
    frame(own, target, by, PROBE_WARNING, &ProbeFields { vlan: sick, session: 0, path: 0, sequence: 0, sent_ns: 0 })
}

fn frame(own: Mac, target: Mac, by: VlanId, kind: u8, probe: &ProbeFields) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&target.octets());
    put(&own.octets());
    put(&TPID.to_be_bytes());
    put(&(PRIORITY << 13 | by.get()).to_be_bytes());
    put(&PROBE_TYPE.to_be_bytes());
    put(&[kind, VERSION]);
    put(&probe.vlan.get().to_be_bytes());
    put(&probe.path.to_be_bytes());
    put(&probe.sequence.to_be_bytes());
    put(&probe.session.to_be_bytes());
    put(&probe.sent_ns.to_be_bytes());
    frame
}

/// Reads a frame whose tag was taken off. None for anything but replies and warnings for `own`, and announcements of others.
pub fn read(own: Mac, frame: &[u8]) -> Option<ProbeMessage> {
    let header = HEADER_BYTES - 4;
    let body = frame.get(header..header + PROBE_BYTES)?;
    if frame[12..14] != PROBE_TYPE.to_be_bytes() || body[1] != VERSION {
        return None;
    }
    let from = mac_at(frame, 6);
    if body[0] == PROBE_FLOWS {
        let is_of_another = mac_at(frame, 0) == Mac::BROADCAST && from != own;
        return is_of_another.then(|| read_flows(from, &frame[header + 2..])).flatten();
    }
    if mac_at(frame, 0) != own {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    let vlan = VlanId::new(u16::from_be_bytes([body[2], body[3]])).ok()?;
    match body[0] {
        PROBE_REPLY => Some(ProbeMessage::Reply(ProbeFields {
            vlan,
            path: word(4),
            sequence: word(8),
            session: word(12),
            sent_ns: u64::from(word(16)) << 32 | u64::from(word(20)),
        })),
        PROBE_WARNING => Some(ProbeMessage::Warning { from, vlan }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_far_end_reflects_is_read() {
        let vlan = VlanId::new(7).expect("in range");
        let probe = ProbeFields { vlan, session: 1, path: 2, sequence: 3, sent_ns: 1 << 40 | 5 };
        let frame = request(Mac::local(1), Mac::local(2), &probe);
        let table = crate::TaggingTable { receive: [vlan].into_iter().collect(), ..crate::TaggingTable::default() };
        let crate::twin::Ingress::Answer(answer) = crate::twin::ingress(&table, Mac::local(2), &frame) else {
            panic!("a request is answered")
        };
        assert_eq!(answer[..12], [Mac::local(1).octets(), Mac::local(2).octets()].concat());
        let untagged = [&answer[..12], &answer[16..]].concat();
        assert_eq!(read(Mac::local(1), &untagged), Some(ProbeMessage::Reply(probe)));
        assert_eq!(read(Mac::local(1), &untagged[..30]), None);
        let asked = [&frame[..12], &frame[16..]].concat();
        assert_eq!(read(Mac::local(2), &asked), None, "a request is no reply");
    }

    #[test]
    fn announced_flows_are_read_by_others() {
        let vlan = |id| VlanId::new(id).expect("in range");
        for count in [0, 1, FLOWS_MAX, FLOWS_MAX + 3] {
            let flows: Vec<(Mac, VlanId)> = (0..count as u32).map(|to| (Mac::local(to), vlan(2 + to as u16))).collect();
            let tagged = announcement(Mac::local(9), vlan(5), &flows);
            let frame = [&tagged[..12], &tagged[16..]].concat();
            let expect =
                ProbeMessage::Flows { from: Mac::local(9), flows: flows.into_iter().take(FLOWS_MAX).collect() };
            assert_eq!(read(Mac::local(1), &frame), Some(expect));
            assert_eq!(read(Mac::local(9), &frame), None, "one's own");
            assert_eq!(read(Mac::local(1), &frame[..16 + 4 * count]), None, "cut");
        }
    }

    #[test]
    fn a_warning_passes_the_far_end_as_it_is() {
        let [by, sick] = [7, 9].map(|id| VlanId::new(id).expect("in range"));
        let frame = warning(Mac::local(1), Mac::local(2), by, sick);
        let table = crate::TaggingTable { receive: [by, sick].into_iter().collect(), ..crate::TaggingTable::default() };
        assert_eq!(crate::twin::ingress(&table, Mac::local(2), &frame), crate::twin::Ingress::Pop(by));
        let untagged = [&frame[..12], &frame[16..]].concat();
        assert_eq!(read(Mac::local(2), &untagged), Some(ProbeMessage::Warning { from: Mac::local(1), vlan: sick }));
        assert_eq!(read(Mac::local(3), &untagged), None, "flooded: for another host, whose path is another");
    }
}
