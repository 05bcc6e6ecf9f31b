//! Devices of a namespace over rtnetlink: one dump lists them, one request changes one or moves it to another namespace.
//!
//! Source: `linux/rtnetlink.h`, `linux/if_link.h`.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use netlink_packet_core::DefaultNla;
use nix::sys::socket::SockProtocol;

use crate::{
    netlink::{Netlink, NetlinkRequest, attribute, emit, find, number, text},
    netns,
};

/// What is asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Up, with carrier, as the kernel uses it: it looks at carriers at most once a second.
    pub running: bool,
    /// Up, with carrier, at this moment.
    pub carrier: bool,
    /// How often the device has lost its carrier since it was made; 0 where the kernel does not say.
    pub downs: u32,
    /// Largest packet, in bytes.
    pub mtu_bytes: u32,
    /// IP packets dropped because they were for another station; none before Linux 5.19.
    pub otherhost: Option<u64>,
}

/// `struct ifinfomsg`: its octets, and where the index and the flags are.
const IFINFO_LEN: usize = 16;
const IFINFO_INDEX: usize = 4;
const IFINFO_FLAGS: usize = 8;
/// Position of `rx_otherhost_dropped` in `struct rtnl_link_stats64`, in words of 8 octets.
const OTHERHOST_WORD: usize = 24;

/// The devices of a namespace, by name.
///
/// # Errors
/// If the namespace cannot be entered or the kernel refuses.
pub fn links(namespace: &str) -> io::Result<BTreeMap<String, LinkState>> {
    netns::within(namespace, dump)?
}

/// The devices of the calling thread's namespace, by name.
///
/// # Errors
/// If the kernel refuses.
pub fn dump() -> io::Result<BTreeMap<String, LinkState>> {
    let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
    let request = NetlinkRequest { kind: libc::RTM_GETLINK, flags: 0, body: vec![0; IFINFO_LEN] };
    Ok(netlink.dump(&request)?.iter().filter_map(|message| parse(message)).collect())
}

/// Moves a device of the calling thread's namespace to another one, where it is down and has this name and index.
/// Queues, filters and the membership in a bridge stay behind; offloads and its peer go with it.
///
/// # Errors
/// If there is no such device, or name or index are taken in the other namespace; `EINVAL` before Linux 5.13.
pub fn move_to(device: u32, namespace: BorrowedFd<'_>, name: &str, ifindex: u32) -> io::Result<()> {
    let name = [name.as_bytes(), &[0]].concat();
    change(
        device,
        &[
            attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes()),
            attribute(libc::IFLA_IFNAME, &name),
            attribute(libc::IFLA_NEW_IFINDEX, &ifindex.to_ne_bytes()),
        ],
    )
}

/// Gives a device of the calling thread's namespace an alias, of whatever characters; an empty one takes it away.
///
/// # Errors
/// If there is no such device, or the alias has more than 255 bytes.
pub fn set_alias(device: u32, alias: &str) -> io::Result<()> {
    change(device, &[attribute(libc::IFLA_IFALIAS, alias.as_bytes())])
}

fn change(device: u32, attributes: &[DefaultNla]) -> io::Result<()> {
    let mut body = vec![0; IFINFO_LEN];
    body[IFINFO_INDEX..][..4].copy_from_slice(&device.to_ne_bytes());
    body.extend(emit(attributes));
    let request = NetlinkRequest { kind: libc::RTM_NEWLINK, flags: 0, body };
    Netlink::open(SockProtocol::NetlinkRoute)?.change(&[request]).map_err(|refusal| refusal.errno.into())
}

fn parse(message: &[u8]) -> Option<(String, LinkState)> {
    let flags = number(message.get(IFINFO_FLAGS..)?.get(..4)?)? as i32;
    let attributes = message.get(IFINFO_LEN..)?;
    let count = |kind| find(attributes, kind).and_then(number).and_then(|value| u32::try_from(value).ok());
    let otherhost = find(attributes, libc::IFLA_STATS64)
        .and_then(|stats| stats.get(8 * OTHERHOST_WORD..8 * OTHERHOST_WORD + 8))
        .and_then(number);
    let is_up = flags & libc::IFF_UP != 0;
    let state = LinkState {
        running: flags & libc::IFF_RUNNING != 0 && is_up,
        carrier: count(libc::IFLA_CARRIER) == Some(1) && is_up,
        downs: count(libc::IFLA_CARRIER_DOWN_COUNT).unwrap_or(0),
        mtu_bytes: count(libc::IFLA_MTU).unwrap_or(0),
        otherhost,
    };
    Some((text(find(attributes, libc::IFLA_IFNAME)?), state))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn loopback_is_among_the_devices() {
        let links = dump().expect("devices");
        assert!(links.get("lo").is_some_and(|link| link.mtu_bytes > 0), "{links:?}");
    }

    #[test]
    fn a_device_that_is_not_there_cannot_be_named() {
        assert!(set_alias(i32::MAX as u32, "x").is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_read(octets in vec(any::<u8>(), 0..400)) {
            let _ = parse(&octets);
        }
    }
}
