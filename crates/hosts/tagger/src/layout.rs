//! Keys and values of the maps, byte by byte: the Rust side of `bpf/tagger.h`.

use fabric::{Mac, VlanId, VlanSet};

use crate::table::{CHOICES_MAX, Classes, Route, Spread};

const VID_MASK: u16 = 0x0fff;
const PCP_SHIFT: u32 = 13;
const CLASS_MASK: u8 = 7;
const OWN_VLAN: u8 = 0x80;
const OWN_BY_DSCP: u8 = 0x40;

/// `PATH_PORTS`: source ports from here on select a VLAN of the list. Linux's ephemeral range ends below, at 60,999.
pub const PATH_PORTS: u16 = 61_440;
/// `FLOW_ENDS_NS`: a flow that sends again after so long is a new one.
pub const FLOW_ENDS_NS: u64 = 1_000_000_000;
/// Flows that are told apart when flowlets are.
pub const FLOWLETS_MAX: usize = 4096;
/// `sizeof(struct table_key)`.
pub const KEY_BYTES: usize = 8;
/// `sizeof(struct table_entry)`.
pub const ENTRY_BYTES: usize = 28;
/// `sizeof(struct destination_count)`.
pub const DESTINATION_COUNT_BYTES: usize = 16;
/// `sizeof(struct flow)`.
pub const FLOW_BYTES: usize = 32;
/// `sizeof(struct placement)`.
pub const PLACEMENT_BYTES: usize = 24;
/// `sizeof(struct own)`: one for each VLAN id.
pub const OWN_BYTES: usize = 4096;
/// `DSCP_CLASS_MAX`: the highest class that a frame may ask for.
pub const DSCP_CLASS_MAX: u8 = 5;
/// Type of a probe's frame.
pub const PROBE_TYPE: u16 = 0x88b6;
/// `sizeof(struct probe)`.
pub const PROBE_BYTES: usize = 24;
/// `PROBE_REQUEST`.
pub const PROBE_REQUEST: u8 = 1;
/// `PROBE_REPLY`.
pub const PROBE_REPLY: u8 = 2;
/// `PROBE_WARNING`.
pub const PROBE_WARNING: u8 = 3;
/// `PROBE_FLOWS`: the sender's long flows, to all hosts.
pub const PROBE_FLOWS: u8 = 4;
/// `PROBE_PRIORITY`: `TC_PRIO_CONTROL` of `linux/pkt_sched.h`, whose frames leave before what waits.
pub const PROBE_PRIORITY: u32 = 7;

/// What happens to frames that are not just tagged or untagged, in the order of the slots of `tagger_events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Went out with the tag that it had.
    TaggedAlready,
    /// Went out untagged: for the neighbour alone.
    LinkLocal,
    /// Dropped: no whole Ethernet header.
    Truncated,
    /// Dropped: the table has no VLAN for it.
    NoVlan,
    /// Dropped: the kernel had no room for a tag.
    PushFailed,
    /// Came in untagged, and was let in.
    UntaggedIn,
    /// Came in with a tag that is none of ours, and was let in as it was.
    ForeignIn,
    /// A probe that went back.
    ProbeAnswered,
}

impl Event {
    /// All, in the order of their slots.
    pub const ALL: [Self; 8] = [
        Self::TaggedAlready,
        Self::LinkLocal,
        Self::Truncated,
        Self::NoVlan,
        Self::PushFailed,
        Self::UntaggedIn,
        Self::ForeignIn,
        Self::ProbeAnswered,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TaggedAlready => "tagged-already",
            Self::LinkLocal => "link-local",
            Self::Truncated => "truncated",
            Self::NoVlan => "no-vlan",
            Self::PushFailed => "push-failed",
            Self::UntaggedIn => "untagged-in",
            Self::ForeignIn => "foreign-in",
            Self::ProbeAnswered => "probe-answered",
        }
    }
}

/// The key of a destination.
pub fn destination_key(mac: Mac) -> [u8; KEY_BYTES] {
    let [a, b, c, d, e, f] = mac.octets();
    [a, b, c, d, e, f, 0, 0]
}

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Frames for a station.
    Destination(Mac),
    /// Broadcast, multicast, unknown stations.
    Group,
}

/// Reads a key.
pub fn read_key(bytes: &[u8]) -> Option<Key> {
    let mac: [u8; 6] = bytes.get(..6)?.try_into().ok()?;
    match Mac::new(mac) {
        Mac::BROADCAST => Some(Key::Group),
        mac => Some(Key::Destination(mac)),
    }
}

/// `struct table_entry`.
pub fn entry_bytes(route: &Route, slot: u32, classes: &Classes) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    for (at, vlan) in route.choices().iter().enumerate() {
        let tag = u16::from(classes.of(*vlan).unwrap_or(0)) << PCP_SHIFT | vlan.get();
        bytes[2 * at..2 * at + 2].copy_from_slice(&tag.to_ne_bytes());
    }
    let (spread, gap_us) = match route.how() {
        Spread::First => (0, 0),
        Spread::Flow => (1, 0),
        Spread::Flowlet { gap_us } => (2, gap_us),
        Spread::Port => (3, 0),
        Spread::Placed => (4, 0),
    };
    bytes[16..18].copy_from_slice(&(route.choices().len() as u16).to_ne_bytes());
    bytes[18] = spread;
    bytes[19] = (*classes == Classes::Dscp).into();
    bytes[20..24].copy_from_slice(&gap_us.to_ne_bytes());
    bytes[24..28].copy_from_slice(&slot.to_ne_bytes());
    bytes
}

/// Reads a `struct table_entry`: the route and its slot.
pub fn read_entry(bytes: &[u8]) -> Option<(Route, u32)> {
    let bytes: &[u8; ENTRY_BYTES] = bytes.try_into().ok()?;
    let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let count = usize::from(half(16)).min(CHOICES_MAX);
    let choices = (0..count).map(|at| VlanId::new(half(2 * at) & VID_MASK)).collect::<Result<Vec<_>, _>>().ok()?;
    let spread = match bytes[18] {
        0 => Spread::First,
        1 => Spread::Flow,
        3 => Spread::Port,
        4 => Spread::Placed,
        _ => Spread::Flowlet { gap_us: word(20) },
    };
    Some((Route::spread(choices, spread)?, word(24)))
}

/// `struct flow`: a flow of [`Spread::Placed`]. Times are of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// When it began.
    pub began_ns: u64,
    /// When it sent last.
    pub seen_ns: u64,
    /// Bytes sent since it began.
    pub bytes: u64,
    /// The index of its VLAN in the route.
    pub choice: u32,
    /// The slot of its destination.
    pub destination: u32,
}

/// Reads a `struct flow`; none of a slot that was never used.
pub fn read_flow(bytes: &[u8]) -> Option<FlowRecord> {
    let bytes: &[u8; FLOW_BYTES] = bytes.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let flow =
        FlowRecord { began_ns: long(0), seen_ns: long(8), bytes: long(16), choice: word(24), destination: word(28) };
    (flow.seen_ns > 0).then_some(flow)
}

/// `struct placement`: the move of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementRecord {
    /// When it was asked for.
    pub ordered_ns: u64,
    /// When the flow moves if it has not paused by then.
    pub latest_ns: u64,
    /// The index of its VLAN in the route.
    pub choice: u32,
    /// The pause during which it moves.
    pub pause_us: u32,
}

impl PlacementRecord {
    /// As the kernel reads it.
    pub fn bytes(&self) -> [u8; PLACEMENT_BYTES] {
        let mut bytes = [0; PLACEMENT_BYTES];
        bytes[..8].copy_from_slice(&self.ordered_ns.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.latest_ns.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.choice.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.pause_us.to_ne_bytes());
        bytes
    }
}

/// `struct own`.
pub fn own_bytes(vlans: &VlanSet, classes: &Classes) -> [u8; OWN_BYTES] {
    let mut bytes = [0; OWN_BYTES];
    for vlan in vlans.iter() {
        bytes[usize::from(vlan.get())] = OWN_VLAN | classes.of(vlan).unwrap_or(OWN_BY_DSCP);
    }
    bytes
}

/// Reads a `struct own`.
pub fn read_own(bytes: &[u8]) -> Option<(VlanSet, Classes)> {
    let bytes: &[u8; OWN_BYTES] = bytes.try_into().ok()?;
    let own = || (0_u16..).zip(bytes).filter_map(|(id, said)| (*said != 0).then_some((VlanId::new(id).ok()?, *said)));
    let classes = if own().any(|(_, said)| said & OWN_BY_DSCP != 0) {
        Classes::Dscp
    } else {
        Classes::Vlan(own().map(|(vlan, said)| (vlan, said & CLASS_MASK)).filter(|(_, class)| *class > 0).collect())
    };
    Some((own().map(|(vlan, _)| vlan).collect(), classes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HEADER: &str = include_str!("../bpf/tagger.h");

    #[test]
    fn numbers_are_those_of_the_header() {
        let mut defined: BTreeMap<&str, u32> = BTreeMap::new();
        for line in HEADER.lines() {
            let mut words = line.split_whitespace();
            if let (Some("#define"), Some(name), Some(value)) = (words.next(), words.next(), words.next()) {
                let value = value.strip_prefix("0x").map_or_else(|| value.parse(), |hex| u32::from_str_radix(hex, 16));
                defined.insert(name, value.expect("a number"));
            }
        }
        let ours = [
            ("CHOICES_MAX", CHOICES_MAX as u32),
            ("PATH_PORTS", u32::from(PATH_PORTS)),
            ("FLOWLETS_MAX", FLOWLETS_MAX as u32),
            ("FLOW_ENDS_NS", FLOW_ENDS_NS as u32),
            ("PROBE_TYPE", u32::from(PROBE_TYPE)),
            ("PROBE_REQUEST", u32::from(PROBE_REQUEST)),
            ("PROBE_REPLY", u32::from(PROBE_REPLY)),
            ("PROBE_WARNING", u32::from(PROBE_WARNING)),
            ("PROBE_FLOWS", u32::from(PROBE_FLOWS)),
            ("PROBE_PRIORITY", PROBE_PRIORITY),
            ("VLAN_IDS", OWN_BYTES as u32),
            ("VID_MASK", u32::from(VID_MASK)),
            ("PCP_SHIFT", PCP_SHIFT),
            ("CLASS_MASK", u32::from(CLASS_MASK)),
            ("OWN_VLAN", u32::from(OWN_VLAN)),
            ("OWN_BY_DSCP", u32::from(OWN_BY_DSCP)),
            ("DSCP_CLASS_MAX", u32::from(DSCP_CLASS_MAX)),
            ("EVENTS", Event::ALL.len() as u32),
            ("SPREAD_FIRST", 0),
            ("SPREAD_FLOW", 1),
            ("SPREAD_FLOWLET", 2),
            ("SPREAD_PORT", 3),
            ("SPREAD_PLACED", 4),
        ];
        for (name, value) in ours {
            assert_eq!(defined.get(name), Some(&value), "{name}");
        }
        for (slot, event) in (0..).zip(Event::ALL) {
            let name = format!("EVENT_{}", event.word().to_uppercase().replace('-', "_"));
            assert_eq!(defined.get(name.as_str()), Some(&slot), "{name}");
        }
    }

    #[test]
    fn structures_have_the_layout_of_the_header() {
        assert_eq!(structure("table_key"), (vec![("mac", 0), ("zero", 6)], KEY_BYTES));
        let entry = vec![("choice", 0), ("choices", 16), ("spread", 18), ("by_dscp", 19), ("gap_us", 20), ("slot", 24)];
        assert_eq!(structure("table_entry"), (entry, ENTRY_BYTES));
        assert_eq!(structure("own").1, OWN_BYTES);
        assert_eq!(structure("destination_count").1, DESTINATION_COUNT_BYTES);
        assert_eq!(structure("vlan_count").1, 32);
        let flow = vec![("began_ns", 0), ("seen_ns", 8), ("bytes", 16), ("choice", 24), ("destination", 28)];
        assert_eq!(structure("flow"), (flow, FLOW_BYTES));
        let placement = vec![("ordered_ns", 0), ("latest_ns", 8), ("choice", 16), ("pause_us", 20)];
        assert_eq!(structure("placement"), (placement, PLACEMENT_BYTES));
        let probe = vec![("kind", 0), ("version", 1), ("vlan", 2), ("path", 4), ("sequence", 8), ("session", 12)];
        assert_eq!(structure("probe"), ([probe, vec![("sent_ns", 16)]].concat(), PROBE_BYTES));
    }

    /// Fields of a structure with their offsets, and its size, by C's rules of alignment.
    fn structure(name: &str) -> (Vec<(&'static str, usize)>, usize) {
        let body = HEADER.split(&format!("struct {name} {{")).nth(1).and_then(|rest| rest.split('}').next());
        let (mut fields, mut end, mut widest) = (Vec::new(), 0_usize, 1);
        for line in body.expect("a structure of the header").lines() {
            let line = line.split("/*").next().unwrap_or_default().trim().trim_end_matches(';');
            let Some((kind, field)) = line.split_once(' ') else { continue };
            let width = match kind {
                "__u8" => 1,
                "__u16" => 2,
                "__u32" => 4,
                "__u64" => 8,
                other => panic!("a field of type {other}"),
            };
            let (field, count) = match field.split_once('[') {
                None => (field, 1),
                Some((field, "CHOICES_MAX]")) => (field, CHOICES_MAX),
                Some((field, "VLAN_IDS]")) => (field, OWN_BYTES),
                Some((field, count)) => (field, count.trim_end_matches(']').parse().expect("a number")),
            };
            end = end.next_multiple_of(width);
            fields.push((field, end));
            end += width * count;
            widest = widest.max(width);
        }
        (fields, end.next_multiple_of(widest))
    }

    /// RI2N knows nothing of the tagger, so both state the first port.
    #[test]
    fn ri2n_selects_paths_by_the_same_ports() {
        let ri2n = include_str!("../../../ri2n/io/src/entropy.rs");
        assert!(ri2n.contains("PORTS: RangeInclusive<u16> = 61_440..=") && PATH_PORTS == 61_440);
    }

    #[test]
    fn entries_and_keys_come_back() {
        let vlan = |id| VlanId::new(id).expect("in range");
        let lanes = Classes::Vlan([(vlan(3), 1), (vlan(4094), 7)].into());
        for spread in [Spread::First, Spread::Port, Spread::Flow, Spread::Flowlet { gap_us: 500 }, Spread::Placed] {
            for classes in [&lanes, &Classes::Dscp, &Classes::default()] {
                let route = Route::spread([vlan(2), vlan(4094)], spread).expect("some");
                assert_eq!(read_entry(&entry_bytes(&route, 7, classes)), Some((route, 7)));
                let vlans: VlanSet = [2, 3, 4094].map(vlan).into_iter().collect();
                assert_eq!(read_own(&own_bytes(&vlans, classes)), Some((vlans, classes.clone())));
            }
        }
        assert_eq!(read_entry(&[0; ENTRY_BYTES]), None);
        assert_eq!(read_own(&[0; OWN_BYTES]), Some((VlanSet::new(), Classes::default())));
        assert_eq!(read_key(&destination_key(Mac::local(3))), Some(Key::Destination(Mac::local(3))));
        assert_eq!(read_key(&destination_key(Mac::BROADCAST)), Some(Key::Group));
        assert_eq!(read_key(&[1, 2, 3]), None);
    }
}
