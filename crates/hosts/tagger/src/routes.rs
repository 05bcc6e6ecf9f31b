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

use linux_net::netlink::{Netlink, NetlinkRequest, Refusal, attribute, attributes, emit, find, nest, number};

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
    fn copy(&self, floor_ms: u32) -> Option<NetlinkRequest> {
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
        Some(NetlinkRequest {
            kind: libc::RTM_NEWROUTE,
            flags: NLM_F_CREATE | if self.is_ipv6() { NLM_F_EXCL } else { 0 },
            body,
        })
    }

    fn removal(&self) -> NetlinkRequest {
        let mut header = self.header;
        header[8..].fill(0);
        let named = self.picked(&[DESTINATION, DEVICE, PRIORITY, TABLE]);
        NetlinkRequest { kind: libc::RTM_DELROUTE, flags: 0, body: [&header[..], &emit(&named)].concat() }
    }
}

/// Has TCP retransmit after `floor` at the earliest, instead of Linux's 200 ms, on every subnet of a device; none leaves
/// it to Linux again. How many subnets have it now. Rounded up to milliseconds.
pub(crate) fn set_rto_min(ifindex: i32, floor: Option<Duration>) -> io::Result<usize> {
    let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
    let all = netlink.dump(&NetlinkRequest { kind: libc::RTM_GETROUTE, flags: 0, body: vec![0; RTMSG_LEN] })?;
    let floor_ms = floor.map(|floor| floor.as_micros().div_ceil(1000).try_into().unwrap_or(u32::MAX));
    let Changes { removals, copies } = changes(&all, ifindex, floor_ms);
    for removal in removals {
        match netlink.change(&[removal]) {
            // It went with its address meanwhile.
            Err(Refusal { errno: Errno::ESRCH, .. }) | Ok(()) => {}
            Err(refusal) => return Err(refusal.errno.into()),
        }
    }
    let mut set = 0;
    for copy in copies {
        match netlink.change(&[copy]) {
            Ok(()) => set += 1,
            Err(Refusal { errno: Errno::ESRCH | Errno::ENETUNREACH | Errno::EADDRNOTAVAIL, .. }) => {}
            Err(refusal) => return Err(refusal.errno.into()),
        }
    }
    Ok(set)
}

/// What the kernel is to be told: first which of ours go, then which come.
struct Changes {
    removals: Vec<NetlinkRequest>,
    copies: Vec<NetlinkRequest>,
}

/// What to change among all routes, as the kernel lists them, for this floor on a device.
fn changes(all: &[Vec<u8>], ifindex: i32, floor_ms: Option<u32>) -> Changes {
    let routes: Vec<Route<'_>> = all.iter().filter_map(|message| Route::read(message)).collect();
    let (ours, others): (Vec<_>, Vec<_>) = routes.iter().partition(|route| route.is_ours());
    let removals = ours.iter().filter(|route| route.is_through(ifindex)).map(|route| route.removal()).collect();
    let Some(floor_ms) = floor_ms else { return Changes { removals, copies: Vec::new() } };
    let mut ways: BTreeMap<Subnet, usize> = BTreeMap::new();
    for route in &others {
        *ways.entry(route.subnet()).or_default() += 1;
    }
    let copies = others
        .iter()
        .filter(|route| route.is_through(ifindex) && route.is_plain_subnet())
        // With two routes to a subnet, one more would decide between them.
        .filter(|route| ways[&route.subnet()] == 1 || is_link_local(route))
        .filter_map(|route| route.copy(floor_ms))
        .collect();
    Changes { removals, copies }
}

/// Every device has the same subnet of its own, and who sends there names the device.
fn is_link_local(route: &Route<'_>) -> bool {
    route.is_ipv6() && route.attribute(DESTINATION).is_some_and(|prefix| prefix.starts_with(&[0xfe, 0x80]))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const DEVICE_INDEX: i32 = 7;

    /// What a route is made of: header's protocol and type, then attributes.
    fn route(protocol: u8, kind: u8, attributes: &[DefaultNla]) -> Vec<u8> {
        let header = [libc::AF_INET as u8, 24, 0, 0, 254, protocol, 253, kind, 0, 0, 0, 0];
        [&header[..], &emit(attributes)].concat()
    }

    fn plain(prefix: u8, more: Vec<DefaultNla>) -> Vec<DefaultNla> {
        let mut all = vec![attribute(DESTINATION, &[10, prefix, 0, 0]), attribute(DEVICE, &DEVICE_INDEX.to_ne_bytes())];
        all.extend(more);
        all
    }

    #[test]
    fn only_plain_subnets_are_copied_and_only_ours_removed() {
        let elsewhere = attribute(GATEWAY, &[10, 0, 0, 1]);
        let stated = nest(METRICS, &[attribute(RTO_MIN, &50_u32.to_ne_bytes())]);
        let expiring = attribute(CACHE_INFO, &[0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        let all = [
            route(2, UNICAST, &plain(1, vec![])),
            route(OURS, UNICAST, &plain(1, vec![])),
            route(2, UNICAST, &plain(2, vec![elsewhere])),
            route(2, UNICAST, &plain(3, vec![stated])),
            route(2, UNICAST, &plain(4, vec![expiring])),
            route(2, UNICAST + 1, &plain(5, vec![])),
            // Two ways to one subnet.
            route(2, UNICAST, &plain(6, vec![])),
            route(3, UNICAST, &plain(6, vec![])),
            vec![0; RTMSG_LEN - 1],
        ];
        let found = changes(&all, DEVICE_INDEX, Some(10));
        assert_eq!((found.removals.len(), found.copies.len()), (1, 1));
        let copy = Route::read(&found.copies[0].body).expect("a whole route");
        assert!(copy.is_ours() && copy.is_through(DEVICE_INDEX));
        assert_eq!(copy.attribute(DESTINATION), Some(&[10, 1, 0, 0][..]));
        let metrics = copy.attribute(METRICS).expect("metrics");
        assert_eq!(find(metrics, RTO_MIN).and_then(number), Some(10));
        assert_eq!(find(metrics, LOCK).and_then(number), Some(1 << RTO_MIN));
        let taken_away = changes(&all, DEVICE_INDEX, None);
        assert_eq!((taken_away.removals.len(), taken_away.copies.len()), (1, 0));
        assert!(changes(&all, DEVICE_INDEX + 1, Some(10)).copies.is_empty());
    }

    fn messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let kinds = prop::sample::select(vec![
            DESTINATION,
            DEVICE,
            GATEWAY,
            PRIORITY,
            PREFERRED_SOURCE,
            METRICS,
            CACHE_INFO,
            TABLE,
            NEXT_HOP_OBJECT,
            99,
        ]);
        let own = Just(attribute(DEVICE, &DEVICE_INDEX.to_ne_bytes()));
        let other = (kinds, vec(any::<u8>(), 0..17)).prop_map(|(kind, value)| attribute(kind, &value));
        let attributes = vec(prop_oneof![own, other], 0..6);
        let said =
            (prop::sample::select(vec![2, OURS]), 0_u8..3, attributes, any::<prop::sample::Index>(), any::<bool>());
        let message = said.prop_map(|(protocol, kind, attributes, cut, is_cut)| {
            let mut message = route(protocol, kind, &attributes);
            if is_cut {
                message.truncate(cut.index(message.len()));
            }
            message
        });
        vec(prop_oneof![message, vec(any::<u8>(), 0..80)], 0..8)
    }

    proptest! {
        /// Whatever is listed: what goes was ours, and what comes stands beside a route of another's through the device.
        #[test]
        fn no_list_makes_it_touch_what_others_own(all in messages(), floor_ms in proptest::option::of(any::<u32>())) {
            let found = changes(&all, DEVICE_INDEX, floor_ms);
            let listed = |subnet: &Subnet, ours: bool| {
                let mut routes = all.iter().filter_map(|message| Route::read(message));
                routes.any(|route| route.is_ours() == ours && route.is_through(DEVICE_INDEX) && route.subnet() == *subnet)
            };
            for removal in &found.removals {
                let route = Route::read(&removal.body).expect("a whole route");
                prop_assert!(route.is_ours() && route.is_through(DEVICE_INDEX) && listed(&route.subnet(), true));
            }
            for copy in &found.copies {
                let route = Route::read(&copy.body).expect("a whole route");
                prop_assert!(route.is_ours() && route.is_through(DEVICE_INDEX) && listed(&route.subnet(), false));
                let metrics = route.attribute(METRICS).unwrap_or_default();
                prop_assert_eq!(find(metrics, RTO_MIN).and_then(number), floor_ms.map(u64::from));
            }
            prop_assert!(floor_ms.is_some() || found.copies.is_empty());
        }
    }
}
