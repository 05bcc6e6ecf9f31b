//! The frames that a switch exchanges with its neighbours: a packet socket for all of its ports, and waiting for several
//! sockets.
//!
//! Those of spanning tree and LLDP pass the queues of cables by, since a switch lets nothing delay the messages that keep it
//! from looping. LACPDUs wait before all data but take the way that data takes, since they are to tell whether it gets through.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

use fabric::Mac;
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket},
};

/// Where spanning tree speaks.
pub const STP_ADDRESS: Mac = Mac::new([0x01, 0x80, 0xc2, 0, 0, 0]);
/// Where the slow protocols speak, of which LACP is one.
pub const SLOW_ADDRESS: Mac = Mac::new([0x01, 0x80, 0xc2, 0, 0, 0x02]);
/// Where LLDP speaks.
pub const LLDP_ADDRESS: Mac = Mac::new([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// How BPDUs follow a length field.
const LLC_BPDU: [u8; 3] = [0x42, 0x42, 0x03];
const HEADER_LEN: usize = 14;
const FRAME_LEN_MIN: usize = 60;
const FRAME_LEN_MAX: usize = 2048;
/// `PACKET_QDISC_BYPASS` of `linux/if_packet.h`.
const PACKET_QDISC_BYPASS: libc::c_int = 20;
/// `TC_PRIO_CONTROL` of `linux/pkt_sched.h`: what queues serve first.
const PRIORITY_CONTROL: libc::c_int = 7;
const ETHERTYPE_LLDP: u16 = 0x88cc;
const ETHERTYPE_SLOW: u16 = 0x8809;

/// The protocol that neighbours speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourProtocol {
    /// Spanning tree.
    Stp,
    /// LLDP.
    Lldp,
    /// LACP.
    Lacp,
}

/// A packet socket for one protocol on all devices of the calling thread's namespace.
pub struct NeighbourSocket {
    fd: OwnedFd,
    protocol: NeighbourProtocol,
}

/// What came in: by which device, and what follows the headers.
pub struct NeighbourFrame {
    /// The device's index.
    pub ifindex: u32,
    /// What follows the headers.
    pub octets: Vec<u8>,
}

impl NeighbourSocket {
    /// Opens one in the calling thread's namespace.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(protocol: NeighbourProtocol) -> io::Result<Self> {
        let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
        let (level, option, value): (_, _, libc::c_int) = match protocol {
            NeighbourProtocol::Stp | NeighbourProtocol::Lldp => (libc::SOL_PACKET, PACKET_QDISC_BYPASS, 1),
            NeighbourProtocol::Lacp => (libc::SOL_SOCKET, libc::SO_PRIORITY, PRIORITY_CONTROL),
        };
        let address = link_address(protocol, 0);
        // SAFETY: both calls get pointers to live values with their true sizes.
        let done = unsafe {
            libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), size_of_val(&value) as u32) == 0
                && libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32) == 0
        };
        if done { Ok(Self { fd, protocol }) } else { Err(io::Error::last_os_error()) }
    }

    /// The next frame that came in, if one waits. Frames of other kinds are passed over.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn receive(&self) -> io::Result<Option<NeighbourFrame>> {
        let mut buffer = [0_u8; FRAME_LEN_MAX];
        loop {
            // SAFETY: all-zero bytes are a valid sockaddr_ll.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut from_len = size_of_val(&from) as u32;
            // SAFETY: the buffers outlive the call, and their true lengths go with them.
            let len = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                    (&raw mut from).cast(),
                    &raw mut from_len,
                )
            };
            let Ok(len) = usize::try_from(len) else {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    // A device that goes down is told once; its cable's end is another matter.
                    _ if error.raw_os_error() == Some(libc::ENETDOWN) => continue,
                    _ => Err(error),
                };
            };
            let frame = &buffer[..len.min(FRAME_LEN_MAX)];
            if from.sll_pkttype == libc::PACKET_OUTGOING || frame.len() < HEADER_LEN {
                continue;
            }
            let octets = match self.protocol {
                NeighbourProtocol::Stp => {
                    let len = usize::from(u16::from_be_bytes([frame[12], frame[13]]));
                    let body = frame[HEADER_LEN..].get(..len).and_then(|body| body.strip_prefix(&LLC_BPDU));
                    body.filter(|_| frame[..6] == STP_ADDRESS.octets())
                }
                NeighbourProtocol::Lldp | NeighbourProtocol::Lacp => Some(&frame[HEADER_LEN..]),
            };
            if let Some(octets) = octets {
                return Ok(Some(NeighbourFrame { ifindex: from.sll_ifindex as u32, octets: octets.to_vec() }));
            }
        }
    }

    /// Sends by a device. A device that is down sends nothing, and that is no error.
    ///
    /// # Errors
    /// What else the kernel refused.
    pub fn send(&self, ifindex: u32, source: Mac, octets: &[u8]) -> io::Result<()> {
        let (destination, head) = match self.protocol {
            NeighbourProtocol::Stp => (STP_ADDRESS, ((LLC_BPDU.len() + octets.len()) as u16).to_be_bytes()),
            NeighbourProtocol::Lldp => (LLDP_ADDRESS, ETHERTYPE_LLDP.to_be_bytes()),
            NeighbourProtocol::Lacp => (SLOW_ADDRESS, ETHERTYPE_SLOW.to_be_bytes()),
        };
        let mut frame = [&destination.octets()[..], &source.octets(), &head].concat();
        if self.protocol == NeighbourProtocol::Stp {
            frame.extend(LLC_BPDU);
        }
        frame.extend(octets);
        frame.resize(frame.len().max(FRAME_LEN_MIN), 0);
        let to = link_address(self.protocol, ifindex);
        // SAFETY: frame and address are live and their true lengths are given.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                size_of_val(&to) as u32,
            )
        };
        let error = io::Error::last_os_error();
        let passing = [libc::ENETDOWN, libc::ENXIO, libc::ENOBUFS, libc::EAGAIN, libc::EINTR, libc::ENODEV];
        if sent >= 0 || error.raw_os_error().is_some_and(|number| passing.contains(&number)) {
            Ok(())
        } else {
            Err(error)
        }
    }
}

impl AsRawFd for NeighbourSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn link_address(protocol: NeighbourProtocol, ifindex: u32) -> libc::sockaddr_ll {
    let ethertype = match protocol {
        NeighbourProtocol::Stp => libc::ETH_P_802_2 as u16,
        NeighbourProtocol::Lldp => ETHERTYPE_LLDP,
        NeighbourProtocol::Lacp => ETHERTYPE_SLOW,
    };
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = ifindex as i32;
    address
}

/// A socket on which the kernel tells of devices that come, go and change.
///
/// # Errors
/// What the kernel refused.
pub fn link_events() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let events = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(events.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32))?;
    fcntl(&events, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(events)
}

/// Empties a socket whose messages only mean that something has happened; whether there were any.
pub fn drain(fd: &OwnedFd) -> bool {
    let mut buffer = [0_u8; 8192];
    let mut any = false;
    loop {
        // SAFETY: the buffer is live and its true length is given.
        let len = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let overrun = len < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
        if len <= 0 && !overrun {
            return any;
        }
        any = true;
    }
}

/// Waits until one of these can be read or time is up; which can.
///
/// # Errors
/// What the kernel refused.
pub fn wait<const N: usize>(fds: [RawFd; N], time: Duration) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the array is live and its true length is given.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, time.as_millis() as libc::c_int) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok([false; N]) } else { Err(error) };
    }
    Ok(polled.map(|poll| poll.revents != 0))
}
