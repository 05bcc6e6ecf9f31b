//! What the kernel says of a bridge's devices.
//!
//! ```text
//! ifinfomsg (16: index at 4, flags at 8) │ name, address, alias, counters │ LINKINFO ┬ DATA        of a bridge
//!                                                                                    └ SLAVE_DATA  of a port of one
//! ```
//! Source: `linux/if_link.h`.

use fabric::Mac;
use linux_net::netlink::{attributes, find, number, text};

const ADDRESS: u16 = 1;
const NAME: u16 = 3;
const MTU: u16 = 4;
const MASTER: u16 = 10;
const OPERSTATE: u16 = 16;
const LINKINFO: u16 = 18;
const ALIAS: u16 = 20;
const STATS64: u16 = 23;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_SLAVE_DATA: u16 = 5;
const HEADER_LEN: usize = 16;
/// `IF_OPER_UP`.
const OPER_UP: u64 = 6;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mac: Mac,
    /// Whether it is to be up.
    pub(super) up: bool,
    /// Whether it works.
    pub(super) runs: bool,
    pub(super) alias: String,
    pub(super) mtu_bytes: u32,
    /// The bridge that it is a port of.
    pub(super) bridge: Option<u32>,
    pub(super) traffic: DeviceCounters,
    pub(super) kind: DeviceRole,
}

/// What has passed: a part of `struct rtnl_link_stats64`, received and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct DeviceCounters {
    pub(super) frames: [u64; 2],
    pub(super) octets: [u64; 2],
    pub(super) errors: [u64; 2],
    pub(super) dropped: [u64; 2],
    pub(super) multicast: u64,
}

/// What a device is to bridging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceRole {
    Bridge(Box<Bridge>),
    Port(PortTree),
    Other,
}

/// Options of a bridge, and what its spanning tree found. Times are in hundredths of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Bridge {
    pub(super) filters_vlans: bool,
    pub(super) stp: bool,
    pub(super) priority: u16,
    pub(super) ageing_cs: u32,
    pub(super) root: [u8; 8],
    pub(super) root_port: u16,
    pub(super) root_cost: u32,
    pub(super) max_age_cs: u32,
    pub(super) hello_cs: u32,
    pub(super) forward_delay_cs: u32,
}

/// Spanning tree on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct PortTree {
    /// `BR_STATE_DISABLED`, listening, learning, forwarding, blocking: 0 to 4.
    pub(super) state: u8,
    pub(super) cost: u32,
    pub(super) root: [u8; 8],
    pub(super) bridge: [u8; 8],
    pub(super) designated_port: u16,
    pub(super) designated_cost: u16,
}

impl Link {
    /// Reads a message of a list of devices; none if it is too short to be one.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
        let mut link = Self {
            index: word(4)?,
            name: String::new(),
            mac: Mac::new([0; 6]),
            up: word(8)? & libc::IFF_UP as u32 != 0,
            runs: false,
            alias: String::new(),
            mtu_bytes: 0,
            bridge: None,
            traffic: DeviceCounters::default(),
            kind: DeviceRole::Other,
        };
        for (kind, value) in attributes(message.get(HEADER_LEN..)?) {
            let small = || number(value).and_then(|value| u32::try_from(value).ok());
            match kind {
                NAME => link.name = text(value),
                ADDRESS => link.mac = value.try_into().map_or(link.mac, Mac::new),
                ALIAS => link.alias = text(value),
                MTU => link.mtu_bytes = small().unwrap_or_default(),
                MASTER => link.bridge = small(),
                OPERSTATE => link.runs = number(value) == Some(OPER_UP),
                STATS64 => link.traffic = DeviceCounters::parse(value),
                LINKINFO => link.kind = kind_of(value),
                _ => {}
            }
        }
        Some(link)
    }
}

impl DeviceCounters {
    fn parse(octets: &[u8]) -> Self {
        let word = |at: usize| octets.get(8 * at..8 * at + 8).and_then(number).unwrap_or_default();
        let both = |at: usize| [word(at), word(at + 1)];
        Self { frames: both(0), octets: both(2), errors: both(4), dropped: both(6), multicast: word(8) }
    }
}

fn kind_of(info: &[u8]) -> DeviceRole {
    if let Some(data) = find(info, INFO_DATA).filter(|_| find(info, INFO_KIND).map(text).as_deref() == Some("bridge")) {
        return DeviceRole::Bridge(Box::new(Bridge::parse(data)));
    }
    find(info, INFO_SLAVE_DATA).map_or(DeviceRole::Other, |data| DeviceRole::Port(PortTree::parse(data)))
}

impl Bridge {
    fn parse(data: &[u8]) -> Self {
        let mut bridge = Self::default();
        for (kind, value) in attributes(data) {
            let number = number(value).unwrap_or_default() as u32;
            match kind {
                1 => bridge.forward_delay_cs = number,
                2 => bridge.hello_cs = number,
                3 => bridge.max_age_cs = number,
                4 => bridge.ageing_cs = number,
                5 => bridge.stp = number != 0,
                6 => bridge.priority = number as u16,
                7 => bridge.filters_vlans = number != 0,
                10 => bridge.root = value.try_into().unwrap_or_default(),
                12 => bridge.root_port = number as u16,
                13 => bridge.root_cost = number,
                _ => {}
            }
        }
        bridge
    }
}

impl PortTree {
    fn parse(data: &[u8]) -> Self {
        let mut port = Self::default();
        for (kind, value) in attributes(data) {
            let number = number(value).unwrap_or_default() as u32;
            match kind {
                1 => port.state = number as u8,
                3 => port.cost = number,
                13 => port.root = value.try_into().unwrap_or_default(),
                14 => port.bridge = value.try_into().unwrap_or_default(),
                15 => port.designated_port = number as u16,
                16 => port.designated_cost = number as u16,
                _ => {}
            }
        }
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_net::netlink::{attribute, emit, nest};

    fn message(attributes: &[netlink_packet_core::DefaultNla]) -> Vec<u8> {
        let header = [&[0_u8; 4][..], &7_u32.to_ne_bytes(), &(libc::IFF_UP as u32).to_ne_bytes(), &[0; 4]].concat();
        [header, emit(attributes)].concat()
    }

    #[test]
    fn a_port_is_read() {
        let tree = [attribute(1, &[3]), attribute(14, &[0x80, 0, 2, 0, 0, 0, 0, 9]), attribute(99, &[1, 2, 3])];
        let words: Vec<u8> = (1..=12_u64).flat_map(u64::to_ne_bytes).collect();
        let octets = message(&[
            attribute(NAME, b"g1\0"),
            attribute(ADDRESS, &[2, 0, 0, 0, 0, 1]),
            attribute(MASTER, &4_u32.to_ne_bytes()),
            attribute(OPERSTATE, &[6]),
            attribute(STATS64, &words),
            nest(LINKINFO, &[attribute(INFO_KIND, b"veth\0"), nest(INFO_SLAVE_DATA, &tree)]),
        ]);
        let link = Link::parse(&octets).expect("a device");
        assert_eq!((link.index, link.name.as_str(), link.up, link.runs), (7, "g1", true, true));
        assert_eq!((link.bridge, link.mac), (Some(4), Mac::local(1)));
        assert_eq!((link.traffic.frames, link.traffic.dropped, link.traffic.multicast), ([1, 2], [7, 8], 9));
        let DeviceRole::Port(port) = &link.kind else { panic!("{link:?}") };
        assert_eq!((port.state, port.bridge), (3, [0x80, 0, 2, 0, 0, 0, 0, 9]));
        // Cut anywhere, it is read as far as it goes, or not at all.
        for end in 0..octets.len() {
            assert_eq!(Link::parse(&octets[..end]).is_some(), end >= HEADER_LEN, "{end}");
        }
    }

    #[test]
    fn a_bridge_is_read() {
        let data = [attribute(5, &1_u32.to_ne_bytes()), attribute(6, &4096_u16.to_ne_bytes()), attribute(7, &[1])];
        let octets = message(&[nest(LINKINFO, &[attribute(INFO_KIND, b"bridge\0"), nest(INFO_DATA, &data)])]);
        let DeviceRole::Bridge(bridge) = Link::parse(&octets).expect("a device").kind else { panic!("no bridge") };
        assert_eq!((bridge.stp, bridge.priority, bridge.filters_vlans), (true, 4096, true));
    }
}
