//! Devices of a namespace over rtnetlink: one dump lists them, one request changes one or moves it to another namespace.
//! Replies are read with bounds checked.
//!
//! ```text
//! nlmsghdr (16) │ ifinfomsg (16: index at 4, flags at 8) │ attribute (length, type, value), padded to 4 │ …
//! ```
//!
//! Source: `linux/rtnetlink.h`, `linux/if_link.h`.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::netns;

/// What is asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkState {
    /// Up, with carrier.
    pub(crate) running: bool,
    /// How often the device has lost its carrier since it was made; 0 where the kernel does not say.
    pub(crate) downs: u32,
    /// Largest packet, in bytes.
    pub(crate) mtu_bytes: u32,
    /// IP packets dropped because they were for another station; none before Linux 5.19.
    pub(crate) otherhost: Option<u64>,
}

const REQUEST_BYTES: u32 = 32;
const HEADER_BYTES: usize = 16;
const IFINFO_BYTES: usize = 16;
const IFINFO_INDEX: usize = 4;
const IFINFO_FLAGS: usize = 8;
/// Position of `rx_otherhost_dropped` in `struct rtnl_link_stats64`, in words.
const OTHERHOST_WORD: usize = 24;
const REPLY_BYTES_MAX: usize = 1 << 16;

/// The devices of a namespace, by name.
///
/// # Errors
/// If the namespace cannot be entered or the kernel refuses.
pub(crate) fn links(namespace: &str) -> io::Result<BTreeMap<String, LinkState>> {
    netns::within(namespace, dump)?
}

/// The devices of the calling thread's namespace, by name.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn dump() -> io::Result<BTreeMap<String, LinkState>> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut request = Vec::with_capacity(REQUEST_BYTES as usize);
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(libc::RTM_GETLINK.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.resize(REQUEST_BYTES as usize, 0);
    send(socket.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut links = BTreeMap::new();
    let mut buffer = vec![0; REPLY_BYTES_MAX];
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..length];
        while let Some((length, kind)) = Some((u32_at(rest, 0).unwrap_or(0) as usize, u16_at(rest, 4).unwrap_or(0)))
            .filter(|(length, _)| (HEADER_BYTES..=rest.len()).contains(length))
        {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(links),
                libc::NLMSG_ERROR => return Err(io::Error::other("the kernel refused to list devices")),
                _ => links.extend(parse(&rest[HEADER_BYTES..length])),
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}

/// Moves a device of the calling thread's namespace to another one, where it is down and has this name and index.
/// Queues, filters and the membership in a bridge stay behind; offloads and its peer go with it.
///
/// # Errors
/// If there is no such device, or name or index are taken in the other namespace; `EINVAL` before Linux 5.13.
pub(crate) fn move_to(device: u32, namespace: BorrowedFd<'_>, name: &str, ifindex: u32) -> io::Result<()> {
    let name = [name.as_bytes(), &[0]].concat();
    let attributes = [
        (libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes()[..]),
        (libc::IFLA_IFNAME, &name),
        (libc::IFLA_NEW_IFINDEX, &ifindex.to_ne_bytes()),
    ];
    change(device, &attributes)
}

/// Gives a device of the calling thread's namespace an alias, of whatever characters; an empty one takes it away.
///
/// # Errors
/// If there is no such device, or the alias has more than 255 bytes.
pub(crate) fn set_alias(device: u32, alias: &str) -> io::Result<()> {
    change(device, &[(libc::IFLA_IFALIAS, alias.as_bytes())])
}

fn change(device: u32, attributes: &[(u16, &[u8])]) -> io::Result<()> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut message = vec![0; HEADER_BYTES + IFINFO_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    message[HEADER_BYTES + IFINFO_INDEX..][..4].copy_from_slice(&device.to_ne_bytes());
    for (kind, value) in attributes {
        message.extend((4 + value.len() as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(*value);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut reply = vec![0; REPLY_BYTES_MAX];
    let length = recv(socket.as_raw_fd(), &mut reply, MsgFlags::empty())?;
    let answer = &reply[..length];
    match (u16_at(answer, 4).map(i32::from), u32_at(answer, HEADER_BYTES)) {
        (Some(libc::NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(libc::NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error((code as i32).wrapping_neg())),
        _ => Err(io::Error::other("the kernel's answer is no acknowledgement")),
    }
}

fn parse(message: &[u8]) -> Option<(String, LinkState)> {
    let flags = u32_at(message, IFINFO_FLAGS)?;
    let (mut name, mut otherhost, mut downs, mut mtu_bytes) = (None, None, 0, 0);
    let mut rest = message.get(IFINFO_BYTES..)?;
    while let Some(length) = u16_at(rest, 0).map(usize::from).filter(|length| (4..=rest.len()).contains(length)) {
        let value = &rest[4..length];
        match u16_at(rest, 2)? {
            libc::IFLA_IFNAME => name = std::str::from_utf8(value).ok().map(|name| name.trim_end_matches('\0')),
            libc::IFLA_CARRIER_DOWN_COUNT => downs = u32_at(value, 0).unwrap_or(0),
            libc::IFLA_MTU => mtu_bytes = u32_at(value, 0).unwrap_or(0),
            libc::IFLA_STATS64 => {
                let word = value.get(8 * OTHERHOST_WORD..8 * OTHERHOST_WORD + 8);
                otherhost = word.and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    let running = flags & libc::IFF_RUNNING as u32 != 0 && flags & libc::IFF_UP as u32 != 0;
    Some((name?.to_owned(), LinkState { running, downs, mtu_bytes, otherhost }))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
