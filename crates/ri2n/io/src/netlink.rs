//! Carriers and addresses of this machine's ports, as the kernel tells of them (rtnetlink(7), RTM_NEWLINK, RTM_NEWADDR).

use ri2n::Carrier;
use std::{
    io,
    mem::{self, size_of},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// A socket on which events of ports arrive.
#[derive(Debug)]
pub(crate) struct Carriers(OwnedFd);

impl Carriers {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and owned from here on; the address is plain old data that outlives the call.
        unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let fd = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_nl = mem::zeroed();
            address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            address.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
            let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            if libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(fd))
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }

    /// The events that wait.
    pub(crate) fn poll_events(&self) -> Events {
        let mut events = Events::default();
        let mut buffer = [0_u8; 16_384];
        loop {
            // SAFETY: the buffer is as long as the call is told and outlives it.
            let len = unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(len) = usize::try_from(len) else { return events };
            parse(&buffer[..len], &mut events);
        }
    }
}

/// What ports did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// Indices of interfaces and what their carriers did, oldest first.
    pub(crate) carriers: Vec<(u32, Carrier)>,
    /// Whether addresses came or went.
    pub(crate) has_new_addresses: bool,
}

/// Reads messages: `struct nlmsghdr` (length, type), then of links `struct ifinfomsg` (index at 4, flags at 8).
fn parse(mut bytes: &[u8], events: &mut Events) {
    const HEADER: usize = size_of::<libc::nlmsghdr>();
    let u32_at = |bytes: &[u8], at: usize| bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    while let Some(len) = u32_at(bytes, 0).map(|len| len as usize) {
        if len < HEADER || len > bytes.len() {
            return;
        }
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        events.has_new_addresses |= kind == libc::RTM_NEWADDR || kind == libc::RTM_DELADDR;
        if let (Some(index), Some(flags)) = (u32_at(&bytes[..len], HEADER + 4), u32_at(&bytes[..len], HEADER + 8)) {
            let wanted = (libc::IFF_UP | libc::IFF_LOWER_UP | libc::IFF_RUNNING) as u32;
            if kind == libc::RTM_NEWLINK || kind == libc::RTM_DELLINK {
                let is_up = kind == libc::RTM_NEWLINK && flags & wanted == wanted;
                events.carriers.push((index, if is_up { Carrier::Up } else { Carrier::Down }));
            }
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_far_as_they_go() {
        let message = |kind: u16, index: u32, flags: u32| {
            let mut bytes = Vec::new();
            bytes.extend(32_u32.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend([0; 4]);
            bytes.extend(index.to_ne_bytes());
            bytes.extend(flags.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes
        };
        let up = (libc::IFF_UP | libc::IFF_LOWER_UP | libc::IFF_RUNNING) as u32;
        let mut bytes = message(libc::RTM_NEWLINK, 3, up);
        bytes.extend(message(libc::RTM_NEWLINK, 4, libc::IFF_UP as u32));
        bytes.extend(message(libc::RTM_DELLINK, 5, up));
        bytes.extend(message(libc::RTM_NEWADDR, 6, up));
        let mut events = Events::default();
        parse(&bytes, &mut events);
        let carriers = vec![(3, Carrier::Up), (4, Carrier::Down), (5, Carrier::Down)];
        assert_eq!(events, Events { carriers, has_new_addresses: true });
        for cut in 0..bytes.len() {
            let mut events = Events::default();
            parse(&bytes[..cut], &mut events);
            assert!(!events.has_new_addresses, "the last message is cut");
        }
    }
}
