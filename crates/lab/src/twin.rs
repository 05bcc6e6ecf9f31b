//! The switch's decisions in pure Rust: what a frame's head and the tables say must happen to it.
//!
//! A frame is classified to a VLAN (its tag, or the port's PVID when it has none or a priority tag), filtered at
//! ingress, and relayed: by the static entry of (VLAN, destination) if there is one, else by the learned one, else to
//! every other member. Nothing is relayed by a port that spanning tree has closed. A frame that comes in by a collecting
//! member of a LAG has come in by the LAG, and one that leaves by a LAG leaves by one of its distributing members.
//! `bpf/switch.bpf.c` takes the same decisions in the kernel, and a test holds the two against each other frame by frame.
//!
//! ```text
//! untagged, PVID 2 ─▶ v2 ─ member? ─ entry? ─ yes ▶ its port, tagged or not as that port is a member
//!                              │        └── no ──▶ every other member of v2
//!                              └ no ▶ drop
//! ```
//!
//! Source: IEEE 802.1Q-2022, 6.9 (classification) and 8.6 (relay).

use std::collections::VecDeque;

use fabric::{Attachment, FloodKind, HostId, Mac, PortId, SwitchId, Topology, VlanId};

use crate::table::{LagPart, Learning, Relay, Service, SwitchTable};

/// The part of a frame that a switch looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Where it is heading.
    pub destination: Mac,
    /// Who sent it.
    pub source: Mac,
    /// Its outermost 802.1Q tag.
    pub tag: Option<Tag>,
}

/// The control information of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// VLAN identifier, 0 to 4095; 0 is a priority tag.
    pub vid: u16,
    /// Priority (3 bits) and drop eligibility (1 bit).
    pub priority: u8,
}

/// What a switch does with a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It ends here.
    Drop(DropReason),
    /// It leaves as its static entry says.
    Unicast(Exit),
    /// It leaves by every other member port.
    Flood(FloodKind, Vec<Exit>),
}

/// One copy of a frame on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit {
    /// The port, by its number on the switch; a LAG, not the member.
    pub port: u16,
    /// The tag that the copy carries.
    pub tag: Option<Tag>,
}

/// The queue of a port that a frame waits in, where there are three (IEEE 802.1Q-2022, Table 8-5), as the `skb->priority`
/// whose band `pfifo_fast` serves first, second or last: `BAND_*` in `bpf/switch_consts.h`.
#[cfg(test)]
pub(crate) fn queue(tag: Option<Tag>) -> u32 {
    match tag.map_or(0, |tag| tag.priority >> 1) {
        6.. => 7,
        4 | 5 => 0,
        _ => 2,
    }
}

/// Who received a frame, and with which tag; one element a copy.
pub type Arrivals = Vec<(HostId, Option<Tag>)>;

/// Why a switch drops a frame. The order is that of `DROP_*` in `bpf/switch_consts.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The port is shut.
    PortDown,
    /// Too short for its header, or sent by a group address.
    Malformed,
    /// 01-80-C2-00-00-00 to -0F: for the neighbour alone.
    Reserved,
    /// Untagged, at a port without a PVID.
    NoPvid,
    /// A VLAN that the switch does not have.
    NoVlan,
    /// A VLAN that the port is no member of: ingress filtering.
    NotMember,
    /// The static entry points back to where the frame came from.
    SamePort,
    /// The static entry points to a port that is no member of the VLAN.
    EgressNotMember,
    /// Spanning tree has closed the port where it came in, or the one where it should leave.
    Blocked,
    /// It came in by a member of a LAG that LACP does not let collect.
    NotCollecting,
    /// The entry points to a LAG that has no distributing member.
    NoMember,
}

impl DropReason {
    /// Every reason, in order.
    pub const ALL: [Self; 11] = [
        Self::PortDown,
        Self::Malformed,
        Self::Reserved,
        Self::NoPvid,
        Self::NoVlan,
        Self::NotMember,
        Self::SamePort,
        Self::EgressNotMember,
        Self::Blocked,
        Self::NotCollecting,
        Self::NoMember,
    ];

    /// The stable name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PortDown => "port-down",
            Self::Malformed => "malformed",
            Self::Reserved => "reserved",
            Self::NoPvid => "no-pvid",
            Self::NoVlan => "no-vlan",
            Self::NotMember => "not-member",
            Self::SamePort => "same-port",
            Self::EgressNotMember => "egress-not-member",
            Self::Blocked => "blocked",
            Self::NotCollecting => "not-collecting",
            Self::NoMember => "no-member",
        }
    }
}

/// Decides what a switch does with a frame that enters by `port`.
pub fn decide(table: &SwitchTable, port: u16, frame: &FrameHead) -> Decision {
    let (port, vlan) = match classify(table, port, frame) {
        Ok(classified) => classified,
        Err(reason) => return Decision::Drop(reason),
    };
    match table.ports[usize::from(port)].relay {
        Relay::Block => Decision::Drop(DropReason::Blocked),
        Relay::Forward => relay(table, port, vlan, frame),
    }
}

/// What a switch learns from a frame that enters by `port`: the sender, and the port or LAG that it is behind.
pub fn learn(table: &SwitchTable, port: u16, frame: &FrameHead) -> Option<((VlanId, Mac), u16)> {
    let (port, vlan) = classify(table, port, frame).ok()?;
    (table.ports[usize::from(port)].learning != Learning::Off).then_some(((vlan, frame.source), port))
}

/// The port whose device a frame with this hash leaves by, where it leaves by `port`: a member of the LAG, or the port
/// itself; none where the LAG has no distributing member.
#[cfg(test)]
pub(crate) fn device(table: &SwitchTable, port: u16, hash: u32) -> Option<u16> {
    if table.ports[usize::from(port)].part != LagPart::Lag {
        return Some(port);
    }
    let members = table.active.distributing.get(&port)?;
    members.get(((u64::from(hash) * members.len() as u64) >> 32) as usize).copied()
}

/// Follows a frame from the moment a host sends it: who receives it, and with which tag; one element a copy, in order
/// of arrival. Gives up after `copies_max` forwarded copies, as only a fabric that loops makes so many.
///
/// # Errors
/// The copies so far, if there were more than `copies_max`.
pub fn deliver(
    topology: &Topology,
    tables: &[SwitchTable],
    sender: HostId,
    frame: &FrameHead,
    copies_max: usize,
) -> Result<Arrivals, Arrivals> {
    let mut arrivals = Vec::new();
    let mut copies = 0;
    let mut in_flight = VecDeque::from([(topology.host(sender).port, frame.tag)]);
    while let Some((port, tag)) = in_flight.pop_front() {
        let switch = topology.port(port).switch;
        let first = first_port(topology, switch);
        let number = (port.index() - first) as u16;
        let exits = match decide(&tables[switch.index()], number, &FrameHead { tag, ..*frame }) {
            Decision::Drop(_) => Vec::new(),
            Decision::Unicast(exit) => vec![exit],
            Decision::Flood(_, exits) => exits,
        };
        for exit in exits {
            copies += 1;
            if copies > copies_max {
                return Err(arrivals);
            }
            match topology.ports()[first + usize::from(exit.port)].attachment {
                Attachment::Nothing | Attachment::Member(_) => {}
                Attachment::Host(host) => arrivals.push((host, exit.tag)),
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    let near = PortId::new(first + usize::from(exit.port));
                    in_flight.push_back((if link.a == near { link.b } else { link.a }, exit.tag));
                }
            }
        }
    }
    Ok(arrivals)
}

/// The port or LAG that a frame has come in by, and its VLAN.
fn classify(table: &SwitchTable, port: u16, frame: &FrameHead) -> Result<(u16, VlanId), DropReason> {
    let entry = table.ports.get(usize::from(port)).ok_or(DropReason::PortDown)?;
    if entry.service == Service::Down {
        return Err(DropReason::PortDown);
    }
    if frame.source.is_multicast() {
        return Err(DropReason::Malformed);
    }
    if matches!(frame.destination.octets(), [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f]) {
        return Err(DropReason::Reserved);
    }
    let (port, entry) = match entry.part {
        LagPart::None | LagPart::Lag => (port, entry),
        LagPart::Member(_) if !table.active.collecting.contains(port) => return Err(DropReason::NotCollecting),
        LagPart::Member(lag) => (lag, &table.ports[usize::from(lag)]),
    };
    if entry.service == Service::Down {
        return Err(DropReason::PortDown);
    }
    let vlan = match frame.tag {
        Some(Tag { vid: 1.., .. }) => frame.tag.and_then(|tag| VlanId::new(tag.vid).ok()).ok_or(DropReason::NoVlan)?,
        Some(Tag { vid: 0, .. }) | None => entry.pvid.ok_or(DropReason::NoPvid)?,
    };
    let members = table.vlans.get(&vlan).ok_or(DropReason::NoVlan)?;
    if members.contains(port) { Ok((port, vlan)) } else { Err(DropReason::NotMember) }
}

fn relay(table: &SwitchTable, port: u16, vlan: VlanId, frame: &FrameHead) -> Decision {
    let members = &table.vlans[&vlan];
    let tag = Tag { vid: vlan.get(), priority: frame.tag.map_or(0, |tag| tag.priority) };
    let exit = |port| Exit { port, tag: (!members.untagged.contains(port)).then_some(tag) };
    let is_open = |port: u16| table.ports.get(usize::from(port)).is_some_and(|entry| entry.is_open());
    let has_member = |port: u16| {
        let distributes = || table.active.distributing.get(&port).is_some_and(|members| !members.is_empty());
        table.ports[usize::from(port)].part != LagPart::Lag || distributes()
    };
    let blocks = |port: u16, kind: FloodKind| table.ports[usize::from(port)].blocked_floods.contains(kind);
    let flood = |kind| {
        let others = members.iter().filter(|member| *member != port && is_open(*member) && !blocks(*member, kind));
        Decision::Flood(kind, others.filter(|member| has_member(*member)).map(exit).collect())
    };
    if frame.destination == Mac::BROADCAST {
        return flood(FloodKind::Broadcast);
    }
    if frame.destination.is_multicast() {
        return flood(FloodKind::Multicast);
    }
    let key = (vlan, frame.destination);
    match table.fdb.get(&key).or_else(|| table.learned.get(&key)) {
        None => flood(FloodKind::UnknownUnicast),
        Some(out) if *out == port => Decision::Drop(DropReason::SamePort),
        Some(out) if !members.contains(*out) => Decision::Drop(DropReason::EgressNotMember),
        Some(out) if !is_open(*out) => Decision::Drop(DropReason::Blocked),
        Some(out) if !has_member(*out) => Decision::Drop(DropReason::NoMember),
        Some(out) => Decision::Unicast(exit(*out)),
    }
}

fn first_port(topology: &Topology, switch: SwitchId) -> usize {
    topology.port_ids(switch).next().map_or(0, PortId::index)
}
