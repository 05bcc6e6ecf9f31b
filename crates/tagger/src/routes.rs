//! How soon TCP sends again what was lost on a device's own subnets.
//!
//! ```text
//!   10.9.0.0/24 dev eth1 proto 229 src 10.9.0.1 rto_min 10ms     ours, which the kernel finds first
//!   10.9.0.0/24 dev eth1 proto kernel src 10.9.0.1               as it was
//! ```
//! A stream whose last frames are lost waits for TCP's timer, which Linux keeps at 200 ms or more unless the route says
//! less. No route of others is changed, so that taking ours away leaves the host as it was. Left out are subnets where a
//! route more would change which device is used, those that expire, and those whose route says `rto_min` itself.
//!
//! Source: `linux/rtnetlink.h`, ip-route(8).

use std::{collections::BTreeMap, io, time::Duration};

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use nix::{errno::Errno, sys::socket::SockProtocol};

use crate::netlink::{Netlink, Refusal, Request, attribute, attributes, emit, find, nest, number};

/// Who made a route, as the kernel keeps it: `ip route show proto 229`.
const OURS: u8 = 229;

/// `struct rtmsg`: family, lengths of destination and source, type of service, table, protocol, scope, type, flags.
const RTMSG_LEN: usize = 12;
const UNICAST: u8 = 1;
/// A copy that a lookup left behind.
const CLONED: u32 = 0x200;
const DESTINATION: u16 = 1;
const DEVICE: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const PREFERRED_SOURCE: u16 = 7;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHE_INFO: u16 = 12;
const TABLE: u16 = 15;
const VIA: u16 = 18;
const NEXT_HOP_OBJECT: u16 = 30;
/// Metrics: which of them the kernel must not change by itself, and the least retransmission timeout in milliseconds.
const LOCK: u16 = 1;
const RTO_MIN: u16 = 13;

/// A route as the kernel lists it.
struct Route<'a> {
    header: [u8; RTMSG_LEN],
    attributes: &'a [u8],
}

/// What the kernel tells routes apart by: family, prefix, type of service, table.
type Subnet = (u8, Vec<u8>, u8, u8, u64);

impl<'a> Route<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let (header, attributes) = message.split_first_chunk()?;
        Some(Self { header: *header, attributes })
    }

    fn attribute(&self, kind: u16) -> Option<&'a [u8]> {
        find(self.attributes, kind)
    }

    fn number(&self, kind: u16) -> Option<u64> {
        self.attribute(kind).and_then(number)
    }

    /// Its attributes of these kinds, to be sent back.
    fn picked(&self, kinds: &[u16]) -> Vec<DefaultNla> {
        let wanted = attributes(self.attributes).filter(|(kind, _)| kinds.contains(kind));
        wanted.map(|(kind, value)| attribute(kind, value)).collect()
    }

    fn is_ipv6(&self) -> bool {
        i32::from(self.header[0]) == libc::AF_INET6
    }

    fn is_ours(&self) -> bool {
        self.header[5] == OURS
    }

    fn is_through(&self, ifindex: i32) -> bool {
        self.number(DEVICE) == Some(ifindex as u64)
    }

    fn subnet(&self) -> Subnet {
        let [family, len, _, tos, ..] = self.header;
        let table = self.number(TABLE).unwrap_or_else(|| u64::from(self.header[4]));
        (family, self.attribute(DESTINATION).unwrap_or_default().to_vec(), len, tos, table)
    }

    /// To the neighbours of a device, for as long as it has its address.
    fn is_plain_subnet(&self) -> bool {
        let [_, len, source_len, _, _, _, _, kind, flags @ ..] = self.header;
        // `struct rta_cacheinfo`: the third word counts down to the end of a route.
        let expires = self.attribute(CACHE_INFO).and_then(|info| number(info.get(8..12)?)).unwrap_or(0) != 0;
        let elsewhere =
            [GATEWAY, MULTIPATH, VIA, NEXT_HOP_OBJECT].into_iter().any(|kind| self.attribute(kind).is_some());
        kind == UNICAST
            && len > 0
            && source_len == 0
            && u32::from_ne_bytes(flags) & CLONED == 0
            && !expires
            && !elsewhere
            && self.attribute(METRICS).and_then(|metrics| find(metrics, RTO_MIN)).is_none()
    }

    /// IPv6 takes the least metric; IPv4 has routes of one metric in a row, and new ones come first.
    fn priority_of_copy(&self) -> Option<u32> {
        let priority = self.number(PRIORITY).unwrap_or(0) as u32;
        if self.is_ipv6() { priority.checked_sub(1).filter(|priority| *priority > 0) } else { Some(priority) }
    }

    /// Ours beside this one.
    fn copy(&self, floor_ms: u32) -> Option<Request> {
        let mut header = self.header;
        header[5] = OURS;
        header[8..].fill(0);
        let mut copied = self.picked(&[DESTINATION, DEVICE, PREFERRED_SOURCE, TABLE]);
        copied.push(attribute(PRIORITY, &self.priority_of_copy()?.to_ne_bytes()));
        let before = self.attribute(METRICS).unwrap_or_default();
        let locked = find(before, LOCK).and_then(number).unwrap_or(0) as u32 | 1 << RTO_MIN;
        let mut metrics: Vec<_> = (attributes(before))
            .filter(|(kind, _)| *kind != LOCK)
            .map(|(kind, value)| attribute(kind, value))
            .collect();
        metrics.extend([attribute(LOCK, &locked.to_ne_bytes()), attribute(RTO_MIN, &floor_ms.to_ne_bytes())]);
        copied.push(nest(METRICS, &metrics));
        let body = [&header[..], &emit(&copied)].concat();
        Some(Request {
            kind: libc::RTM_NEWROUTE,
            flags: NLM_F_CREATE | if self.is_ipv6() { NLM_F_EXCL } else { 0 },
            body,
        })
    }

    fn removal(&self) -> Request {
        let mut header = self.header;
        header[8..].fill(0);
        let named = self.picked(&[DESTINATION, DEVICE, PRIORITY, TABLE]);
        Request { kind: libc::RTM_DELROUTE, flags: 0, body: [&header[..], &emit(&named)].concat() }
    }
}

/// Has TCP retransmit after `floor` at the earliest, instead of Linux's 200 ms, on every subnet of a device; none leaves
/// it to Linux again. How many subnets have it now. Rounded up to milliseconds.
pub(crate) fn set_rto_min(ifindex: i32, floor: Option<Duration>) -> io::Result<usize> {
    let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
    let all = netlink.dump(&Request { kind: libc::RTM_GETROUTE, flags: 0, body: vec![0; RTMSG_LEN] })?;
    let routes: Vec<Route<'_>> = all.iter().filter_map(|message| Route::read(message)).collect();
    for route in routes.iter().filter(|route| route.is_ours() && route.is_through(ifindex)) {
        match netlink.change(&[route.removal()]) {
            // It went with its address meanwhile.
            Err(Refusal { errno: Errno::ESRCH, .. }) | Ok(()) => {}
            Err(refusal) => return Err(refusal.errno.into()),
        }
    }
    let Some(floor) = floor else { return Ok(0) };
    let floor_ms = floor.as_micros().div_ceil(1000).try_into().unwrap_or(u32::MAX);
    let mut others: BTreeMap<Subnet, usize> = BTreeMap::new();
    for route in routes.iter().filter(|route| !route.is_ours()) {
        *others.entry(route.subnet()).or_default() += 1;
    }
    let mut set = 0;
    for route in routes.iter().filter(|route| !route.is_ours() && route.is_through(ifindex) && route.is_plain_subnet())
    {
        // With two routes to a subnet, one more would decide between them.
        if others[&route.subnet()] > 1 && !is_link_local(route) {
            continue;
        }
        let Some(copy) = route.copy(floor_ms) else { continue };
        match netlink.change(&[copy]) {
            Ok(()) => set += 1,
            Err(Refusal { errno: Errno::ESRCH | Errno::ENETUNREACH | Errno::EADDRNOTAVAIL, .. }) => {}
            Err(refusal) => return Err(refusal.errno.into()),
        }
    }
    Ok(set)
}

/// Every device has the same subnet of its own, and who sends there names the device.
fn is_link_local(route: &Route<'_>) -> bool {
    route.is_ipv6() && route.attribute(DESTINATION).is_some_and(|prefix| prefix.starts_with(&[0xfe, 0x80]))
}
