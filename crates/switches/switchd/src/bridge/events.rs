//! What the kernel tells of changes to a bridge, whoever makes them.
//!
//! ```text
//!   RTNLGRP_LINK    a device came, went, changed; a port's VLANs, PVID, state   ─▶ ports are looked at again
//!   RTNLGRP_NEIGH   an address came or went ─ as it is held? ─ yes: our own doing, or learned ─▶ nothing
//!                                             └ no ─▶ static entries are looked at again
//! ```
//! A change is told before the system call that makes it returns, so whoever asks after somebody has changed something
//! hears of it. Thousands of entries that a manager writes one by one each come back as they are held, and cost nothing
//! more; so do addresses that the bridge learns.
//!
//! Source: rtnetlink(7); `linux/rtnetlink.h`, `linux/neighbour.h`.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket},
};

use super::kernel::{Row, address, is_static};
use linux_net::netlink::messages;

/// `RTMGRP_NEIGH`.
const NEIGHBOURS: u32 = 4;
/// Longest datagram that the kernel sends.
const NEWS_LEN_MAX: usize = 1 << 16;
/// Most datagrams that are read at once; the rest waits for the next time.
const READS_MAX: usize = 4096;

/// A socket on which the kernel tells of changes.
pub(super) struct Events {
    fd: OwnedFd,
    bridge: u32,
}

/// What may not be as it is held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Doubts {
    /// Devices, memberships, PVIDs, options of the bridge.
    pub(super) ports: bool,
    pub(super) statics: bool,
}

impl Doubts {
    /// Everything.
    const ALL: Self = Self { ports: true, statics: true };

    pub(super) fn any(self) -> bool {
        self.ports || self.statics
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.ports |= other.ports;
        self.statics |= other.statics;
    }
}

impl Events {
    /// Listens from now on for what concerns the bridge with this index.
    pub(super) fn open(bridge: u32) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32 | NEIGHBOURS))?;
        Ok(Self { fd, bridge })
    }

    /// What has been told since it was last asked, where the bridge's static entries are believed to be `held`.
    pub(super) fn hear(&self, held: &BTreeMap<Row, u32>) -> Doubts {
        let mut doubts = Doubts::default();
        let mut buffer = vec![0; NEWS_LEN_MAX];
        for _ in 0..READS_MAX {
            match recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(len) => doubts.extend(doubted(&buffer[..len], self.bridge, held)),
                Err(Errno::EINTR) => {}
                // More than the socket holds: some was not told.
                Err(Errno::ENOBUFS) => doubts = Doubts::ALL,
                Err(_) => break,
            }
        }
        doubts
    }
}

impl AsRawFd for Events {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// What one datagram casts doubt upon.
fn doubted(octets: &[u8], bridge: u32, held: &BTreeMap<Row, u32>) -> Doubts {
    let mut doubts = Doubts::default();
    let read = messages(octets, |header, payload| {
        match header.message_type {
            libc::RTM_NEWLINK | libc::RTM_DELLINK => doubts.ports = true,
            kind @ (libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH) => {
                if let Some((row, port, state)) = address(payload, bridge) {
                    let now = (kind == libc::RTM_NEWNEIGH && is_static(state)).then_some(&port);
                    doubts.statics |= held.get(&row) != now;
                }
            }
            _ => {}
        }
        Ok(true)
    });
    if read.is_err() { Doubts::ALL } else { doubts }
}

#[cfg(test)]
mod tests {
    use fabric::{Mac, VlanId};

    use super::*;
    use linux_net::netlink::{attribute, emit};

    const BRIDGE: u32 = 9;
    const STATIC: u16 = 0x40;
    const LEARNED: u16 = 0x02;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let len = (16 + body.len()) as u32;
        let mut octets = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat();
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    fn neighbour(kind: u16, bridge: u32, port: u32, state: u16, vlan: u16) -> Vec<u8> {
        let header = [&[7_u8, 0, 0, 0][..], &port.to_ne_bytes(), &state.to_ne_bytes(), &[0, 0]].concat();
        let of = [
            attribute(2, &Mac::local(1).octets()),
            attribute(5, &vlan.to_ne_bytes()),
            attribute(9, &bridge.to_ne_bytes()),
        ];
        message(kind, &[header, emit(&of)].concat())
    }

    #[test]
    fn what_is_as_it_is_held_casts_no_doubt() {
        let row = (VlanId::new(10).expect("valid"), Mac::local(1));
        let held: BTreeMap<Row, u32> = [(row, 3)].into();
        let (new, gone) = (libc::RTM_NEWNEIGH, libc::RTM_DELNEIGH);
        let check = |octets: &[u8], ports: bool, statics: bool| {
            assert_eq!(doubted(octets, BRIDGE, &held), Doubts { ports, statics }, "{octets:?}");
        };
        check(&neighbour(new, BRIDGE, 3, STATIC, 10), false, false);
        check(&neighbour(new, BRIDGE, 4, STATIC, 10), false, true);
        check(&neighbour(new, BRIDGE, 3, LEARNED, 10), false, true);
        check(&neighbour(gone, BRIDGE, 3, STATIC, 10), false, true);
        check(&neighbour(new, BRIDGE, 3, STATIC, 11), false, true);
        // Learned, forgotten, and taken away by ourselves.
        check(&neighbour(new, BRIDGE, 3, LEARNED, 11), false, false);
        check(&neighbour(gone, BRIDGE, 3, LEARNED, 11), false, false);
        check(&neighbour(gone, BRIDGE, 3, STATIC, 11), false, false);
        // Another bridge's.
        check(&neighbour(new, 8, 4, STATIC, 10), false, false);
        check(&message(libc::RTM_NEWLINK, &[0; 16]), true, false);
        check(&[message(3, &[]), neighbour(gone, BRIDGE, 3, STATIC, 10), message(17, &[0; 16])].concat(), true, true);
        // What is cut off was more.
        let cut = neighbour(new, BRIDGE, 4, STATIC, 10);
        assert_eq!(doubted(&cut[..20], BRIDGE, &held), Doubts::ALL);
    }
}
