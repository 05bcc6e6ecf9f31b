//! The system calls, each wrapped once: UDP sockets with segmentation offloads, eventfd, poll, epoll.
//!
//! All `unsafe` code of the crate is here and in `descriptors.rs`, `netlink.rs`, `interfaces.rs` and `scheduling.rs`; every call passes buffers that outlive it.

use crate::duty::Seen;
use ri2n::{Batch, Connection, Neighbour, Path, Precedence, Time};
use serde::{Deserialize, Serialize};
use std::{
    cell::RefCell,
    io,
    mem::{self, MaybeUninit},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

/// Messages that one receive call takes, at most.
pub(crate) const MESSAGES: usize = 32;
/// The same where they are long, for memory.
pub(crate) const MESSAGES_FEW: usize = 8;
/// Longest message: what receive offload puts together.
const MESSAGE_LEN: usize = 65_536;
/// From one message's buffer to the next: such that their beginnings do not share sets of the processor's cache.
const MESSAGE_STRIDE: usize = MESSAGE_LEN + 4096 + 1536;
/// A shorter message that came alone is one of a conversation: the next comes after an answer.
const MESSAGE_LEN_ALONE: usize = 1200;
/// What receive offload puts together is longer than this, and so are a few datagrams of large frames.
const MESSAGE_LEN_FEW: usize = 4096;
/// Room for control messages, of which the largest set (packet info, segment size, stamp) needs 112 bytes.
const CONTROL_LEN: usize = 128;
/// The type of service of acknowledgements (RFC 1349): Linux's own queues (`pfifo_fast`, `prio`, `cake`) send it before data.
const LOW_DELAY: libc::c_int = 0x10;
/// Socket buffers asked for; the system may grant less to who is not root.
const SOCKET_BUFFER: libc::c_int = 16 << 20;
/// Longest time that a message is believed to have waited for us: a clock that was set must not date it into another day.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The time now.
pub(crate) fn now() -> Time {
    Time::from_nanos(clock_ns(libc::CLOCK_MONOTONIC))
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut spec = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for a write of its type, and the clocks asked for exist on every Linux.
    let spec = unsafe {
        libc::clock_gettime(clock, spec.as_mut_ptr());
        spec.assume_init()
    };
    spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64
}

/// Nanoseconds of the clock of the day, by which arrivals are stamped.
pub(crate) fn day_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Waits for any of the descriptors to become readable. Returns which are; none after the timeout or a signal.
pub(crate) fn wait_readable<const N: usize>(fds: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> [bool; N] {
    let mut polled = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let spec = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let spec_at = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `polled` has N entries and `spec_at` is null or points to `spec`; both outlive the call.
    let count = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, spec_at, ptr::null()) };
    polled.map(|polled| count > 0 && polled.revents != 0)
}

/// A counter that wakes who polls it.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is a new descriptor that nobody else owns.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }

    pub(crate) fn set(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from a variable of eight.
        unsafe { libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to a variable of eight.
        unsafe { libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8) };
    }
}

/// Whether a socket tells at which of our addresses a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TellLocal {
    Yes,
    No,
}

/// A message that arrived: perhaps several datagrams of equal length, but for the last.
pub(crate) struct Message<'a> {
    pub(crate) from: SocketAddr,
    /// Our address, if the socket tells.
    pub(crate) local: Option<IpAddr>,
    pub(crate) bytes: &'a [u8],
    /// Length of each datagram but the last.
    pub(crate) segment: usize,
    /// When the system received it, by the clock of the day, if the socket tells.
    stamp_ns: Option<u64>,
}

impl Message<'_> {
    /// How long before `day_ns` the system received it; no time for all that is known of a message without a stamp.
    pub(crate) fn age(&self, day_ns: u64) -> Duration {
        self.stamp_ns.map_or(Duration::ZERO, |stamp| Duration::from_nanos(day_ns.saturating_sub(stamp)).min(AGE_MAX))
    }
}

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    local: SocketAddr,
    is_v6: bool,
    /// Whether messages tell when they arrived, which nobody needs to know of conversations in single datagrams.
    is_stamped: AtomicBool,
    /// Messages to ask for at once: one, unless they come in bursts.
    expected: AtomicUsize,
}

impl Socket {
    /// A socket of the unspecified address of this family that only sends: nothing is received, not even errors.
    pub(crate) fn bind_to_send(family: IpAddr, port: u16) -> io::Result<Self> {
        let any: IpAddr = if family.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = Self::open(any.is_ipv6())?;
        if socket.is_v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        socket.send_freely()?;
        // Nothing is read from this socket: the smallest buffer bounds what unsolicited datagrams occupy.
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, 0)?;
        socket.bound((any, port).into())
    }

    /// A socket bound to `address`. One of all IPv6 addresses takes IPv4 too if `tell` asks for the local address.
    pub(crate) fn bind(address: SocketAddr, tell: TellLocal) -> io::Result<Self> {
        let socket = Self::open(address.is_ipv6())?;
        let is_v6 = socket.is_v6;
        if is_v6 {
            let only = libc::c_int::from(tell == TellLocal::No);
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, only)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        }
        socket.set_for_ipv4(libc::IP_RECVERR, 1)?;
        if tell == TellLocal::Yes {
            if is_v6 {
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            } else {
                socket.set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            }
        }
        socket.send_freely()?;
        socket.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        // Without receive offload the datagrams come one by one, which is only slower.
        let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        socket.bound(address)
    }

    /// A socket that the earlier program of this process bound.
    pub(crate) fn resumed(fd: OwnedFd) -> io::Result<Self> {
        let mut socket = Self::of(fd, false);
        socket.local = socket.ask_local_addr()?;
        socket.is_v6 = socket.local.is_ipv6();
        Ok(socket)
    }

    fn open(is_v6: bool) -> io::Result<Self> {
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        // SAFETY: no pointers; the result is a new descriptor that nobody else owns.
        let fd =
            unsafe { OwnedFd::from_raw_fd(check(libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?) };
        Ok(Self::of(fd, is_v6))
    }

    fn of(fd: OwnedFd, is_v6: bool) -> Self {
        let (is_stamped, expected) = (AtomicBool::new(false), AtomicUsize::new(MESSAGES_FEW));
        Self { fd, local: (Ipv4Addr::UNSPECIFIED, 0).into(), is_v6, is_stamped, expected }
    }

    fn bound(mut self, address: SocketAddr) -> io::Result<Self> {
        let (name, len) = to_sockaddr(address, self.is_v6);
        // SAFETY: `name` is a socket address of `len` bytes that outlives the call.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&name).cast(), len) })?;
        self.local = self.ask_local_addr()?;
        Ok(self)
    }

    /// Sizes of datagrams are RI2N's own business, and the buffer holds a run for each of many connections.
    fn send_freely(&self) -> io::Result<()> {
        if self.is_v6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
        }
        self.set_for_ipv4(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
        self.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
    }

    /// An IPv6 socket refuses some of IPv4's options on old systems and needs none of them.
    fn set_for_ipv4(&self, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set(libc::IPPROTO_IP, name, value).or_else(|error| if self.is_v6 { Ok(()) } else { Err(error) })
    }

    fn set_buffer(&self, force: libc::c_int, plain: libc::c_int) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, force, SOCKET_BUFFER).or_else(|_| self.set(libc::SOL_SOCKET, plain, SOCKET_BUFFER))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Where it is bound.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn ask_local_addr(&self) -> io::Result<SocketAddr> {
        let mut name = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut len = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: the storage is as large as `len` says; all zeros are a valid storage.
        let name = unsafe {
            check(libc::getsockname(self.fd.as_raw_fd(), name.as_mut_ptr().cast(), &raw mut len))?;
            name.assume_init()
        };
        from_sockaddr(&name).ok_or_else(|| io::Error::other("the socket has an address of another family"))
    }

    /// The address that the system would send from to reach `remote`.
    pub(crate) fn source_toward(remote: SocketAddr) -> io::Result<IpAddr> {
        let any: IpAddr = if remote.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = std::net::UdpSocket::bind((any, 0))?;
        socket.connect(remote)?;
        Ok(socket.local_addr()?.ip())
    }

    /// Has every message tell from now on when it arrived: a long transfer is steered by it.
    pub(crate) fn stamp_arrivals(&self) {
        if !self.is_stamped.swap(true, Ordering::Relaxed) {
            // Without stamps a late turn looks like a slow link, which is only slower.
            let _ = self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        }
    }

    /// Whether messages tell when they arrived.
    pub(crate) fn is_stamped(&self) -> bool {
        self.is_stamped.load(Ordering::Relaxed)
    }

    /// How many messages to ask for at once.
    pub(crate) fn expected(&self) -> usize {
        self.expected.load(Ordering::Relaxed)
    }

    /// Learns from the last call how many that is at the next.
    pub(crate) fn expect(&self, inbox: &Inbox) {
        self.expected.store(inbox.most_expected(), Ordering::Relaxed);
        if inbox.is_burst() {
            self.stamp_arrivals();
        }
    }

    fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set_value(level, name, &value)
    }

    fn set_value<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let len = mem::size_of::<T>() as libc::socklen_t;
        // SAFETY: `value` is `len` bytes long and outlives the call.
        check(unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len) })?;
        Ok(())
    }

    /// Sends a batch, in one call if `segment` says that the system cuts it up.
    pub(crate) fn send_batch(&self, connection: &Connection, batch: &Batch, segment: Segment) -> io::Result<()> {
        IOVECS.with_borrow_mut(|iovecs| {
            let mut from = 0;
            let groups: &[usize] = match (segment, batch.ends.last()) {
                (Segment::BySystem, Some(last)) => &[*last],
                _ => &batch.ends,
            };
            for end in groups {
                iovecs.clear();
                for part in &batch.parts[from..*end] {
                    let (head, tail) = connection.part(batch, part);
                    for bytes in [head, tail] {
                        if !bytes.is_empty() {
                            iovecs
                                .push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
                        }
                    }
                }
                from = *end;
                let is_run = segment == Segment::BySystem && batch.ends.len() > 1;
                let size = is_run.then_some(batch.datagram_size as u16);
                self.send_vectored(&batch.path, iovecs, size, (batch.neighbour, batch.precedence))?;
            }
            Ok(())
        })
    }

    /// Sends one datagram.
    pub(crate) fn send_to(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut iovecs = [libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }];
        self.send_vectored(path, &mut iovecs, None, (Neighbour::Unsaid, Precedence::Normal))
    }

    fn send_vectored(
        &self,
        path: &Path,
        iovecs: &mut [libc::iovec],
        segment: Option<u16>,
        (neighbour, precedence): (Neighbour, Precedence),
    ) -> io::Result<()> {
        let mut flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if neighbour == Neighbour::Keep {
            flags |= libc::MSG_CONFIRM;
        }
        let (mut name, name_len) = to_sockaddr(path.remote, self.is_v6);
        let mut control = ControlBuffer([0; CONTROL_LEN]);
        // SAFETY: an all-zero header is valid; its pointers are set to what outlives the call.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = ptr::from_mut(&mut name).cast();
        header.msg_namelen = name_len;
        header.msg_iov = iovecs.as_mut_ptr();
        header.msg_iovlen = iovecs.len();
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = 0;
        match path.local {
            Some(IpAddr::V4(local)) if !self.is_v6 => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: path.interface as libc::c_int,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(local.octets()) },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                put_control(&mut header, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(local) if self.is_v6 => {
                let octets = match local {
                    IpAddr::V6(ip) => ip.octets(),
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                };
                let info =
                    libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: octets }, ipi6_ifindex: path.interface };
                put_control(&mut header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            _ => {}
        }
        if precedence == Precedence::LowDelay {
            let (level, name) =
                if self.is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
            put_control(&mut header, level, name, &LOW_DELAY);
        }
        if let Some(size) = segment {
            put_control(&mut header, libc::SOL_UDP, libc::UDP_SEGMENT, &size);
        }
        loop {
            // SAFETY: `header` and all that it points to are initialised and outlive the call.
            let sent = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const header, flags) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Receives what there is, up to `most` messages (no more than [`MESSAGES`]). Returns how many. Asking for one only
    /// spares a look for the next.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing, or a pending error of the socket.
    pub(crate) fn receive(&self, inbox: &mut Inbox, most: usize) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT;
        inbox.prepare();
        if most == 1 {
            // SAFETY: as below, for the first header alone.
            let length = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut inbox.headers[0].msg_hdr, flags) };
            inbox.headers[0].msg_len = libc::c_uint::try_from(length).map_err(|_| io::Error::last_os_error())?;
            inbox.count = 1;
            return Ok(1);
        }
        // SAFETY: the inbox has MESSAGES headers, whose pointers `prepare` set to buffers that live as long as the inbox.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                inbox.headers.as_mut_ptr(),
                most.min(MESSAGES) as libc::c_uint,
                flags,
                ptr::null_mut(),
            )
        };
        let count = check(count)? as usize;
        // One more may have been begun.
        (inbox.count, inbox.used) = (count, (count + 1).min(MESSAGES));
        Ok(count)
    }

    /// The next datagram that the network reports as not deliverable since no port was open, if any.
    pub(crate) fn take_unreachable(&self, inbox: &mut Inbox) -> Option<Vec<u8>> {
        loop {
            inbox.prepare();
            // SAFETY: as in `receive`.
            let count = unsafe {
                libc::recvmsg(
                    self.fd.as_raw_fd(),
                    &raw mut inbox.headers[0].msg_hdr,
                    libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
                )
            };
            let count = usize::try_from(count).ok()?;
            if is_port_unreachable(&inbox.headers[0].msg_hdr) {
                return Some(inbox.buffer(0)[..count].to_vec());
            }
        }
    }
}

/// Who cuts a run into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Segment {
    /// The system (UDP_SEGMENT).
    BySystem,
    /// We, a call for each.
    ByUs,
}

thread_local! {
    static IOVECS: RefCell<Vec<libc::iovec>> = const { RefCell::new(Vec::new()) };
    static INBOX: RefCell<Option<Box<Inbox>>> = const { RefCell::new(None) };
}

/// Runs something with this thread's receive buffers.
pub(crate) fn with_inbox<R>(run: impl FnOnce(&mut Inbox) -> R) -> R {
    let mut inbox = INBOX.take().unwrap_or_else(Inbox::new);
    let result = run(&mut inbox);
    INBOX.set(Some(inbox));
    result
}

#[repr(align(16))]
struct ControlBuffer([u8; CONTROL_LEN]);

/// What the system tells of a message beside its bytes.
struct Slot {
    name: libc::sockaddr_storage,
    iovec: libc::iovec,
    control: ControlBuffer,
}

/// Buffers for messages. Pages are touched only as far as messages fill them.
pub(crate) struct Inbox {
    headers: [libc::mmsghdr; MESSAGES],
    slots: [Slot; MESSAGES],
    bytes: Vec<u8>,
    /// Messages that the last call brought.
    count: usize,
    /// Headers that the system may have written to since they were prepared.
    used: usize,
}

impl Inbox {
    fn new() -> Box<Self> {
        // SAFETY: all of these plain C structures are valid when all zeros.
        let mut inbox = unsafe {
            Box::new(Self {
                headers: mem::zeroed(),
                slots: mem::zeroed(),
                bytes: vec![0; MESSAGES * MESSAGE_STRIDE],
                count: 0,
                used: MESSAGES,
            })
        };
        inbox.prepare();
        inbox
    }

    /// Makes every header ready that the system may have written to. The box stays where it is, and so do the buffers.
    fn prepare(&mut self) {
        for at in 0..self.used {
            let base = self.bytes[at * MESSAGE_STRIDE..].as_mut_ptr();
            let slot = &mut self.slots[at];
            slot.iovec = libc::iovec { iov_base: base.cast(), iov_len: MESSAGE_LEN };
            let header = &mut self.headers[at].msg_hdr;
            header.msg_name = ptr::from_mut(&mut slot.name).cast();
            header.msg_namelen = mem::size_of_val(&slot.name) as libc::socklen_t;
            header.msg_iov = &raw mut slot.iovec;
            header.msg_iovlen = 1;
            header.msg_control = slot.control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_LEN;
            header.msg_flags = 0;
        }
        // A call that fails may have touched the first.
        (self.count, self.used) = (0, 1);
    }

    /// How many messages to ask for at the next call, going by the last: how many may wait.
    pub(crate) fn most_expected(&self) -> usize {
        let longest = self.headers[..self.count].iter().map(|header| header.msg_len as usize).max().unwrap_or(0);
        match (self.count, longest) {
            (_, MESSAGE_LEN_FEW..) => MESSAGES_FEW,
            (..=1, ..MESSAGE_LEN_ALONE) => 1,
            _ => MESSAGES,
        }
    }

    /// Whether the last call brought part of a long transfer: a run, or more datagrams than those of links being opened.
    pub(crate) fn is_burst(&self) -> bool {
        self.count >= MESSAGES_FEW || self.messages().any(|message| message.segment < message.bytes.len())
    }

    fn buffer(&self, at: usize) -> &[u8] {
        &self.bytes[at * MESSAGE_STRIDE..][..MESSAGE_LEN]
    }

    /// The messages that the last receive call brought.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.count).filter_map(|at| {
            let header = &self.headers[at];
            let len = header.msg_len as usize;
            let from = from_sockaddr(&self.slots[at].name)?;
            let (mut segment, mut local, mut stamp_ns) = (len.max(1), None, None);
            for_each_control(&header.msg_hdr, |level, kind, data| match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    if let Some(size) = data.first_chunk().map(|bytes| libc::c_int::from_ne_bytes(*bytes)) {
                        segment = (size.max(1)) as usize;
                    }
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => stamp_ns = stamp(data),
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    local = data.get(8..12).and_then(<[u8]>::first_chunk).map(|octets| Ipv4Addr::from(*octets).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    local = data.first_chunk::<16>().map(|octets| IpAddr::from(Ipv6Addr::from(*octets)).to_canonical());
                }
                _ => {}
            });
            Some(Message { from, local, bytes: &self.buffer(at)[..len], segment, stamp_ns })
        })
    }
}

/// Appends a control message to a header whose buffer has room.
fn put_control<T: Copy>(header: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: &T) {
    let size = mem::size_of::<T>() as libc::c_uint;
    // SAFETY: `msg_control` points to CONTROL_LEN aligned bytes, of which `msg_controllen` are used; all values that this
    // module puts fit beside each other, which the assertion checks.
    unsafe {
        let space = libc::CMSG_SPACE(size) as usize;
        assert!(header.msg_controllen + space <= CONTROL_LEN, "control messages fit");
        let at = header.msg_control.cast::<u8>().add(header.msg_controllen).cast::<libc::cmsghdr>();
        (*at).cmsg_level = level;
        (*at).cmsg_type = kind;
        (*at).cmsg_len = libc::CMSG_LEN(size) as usize;
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), libc::CMSG_DATA(at), size as usize);
        header.msg_controllen += space;
    }
}

fn for_each_control(header: &libc::msghdr, mut see: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the system filled `msg_control` with `msg_controllen` bytes of control messages, which the macros walk.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            let len = ((*at).cmsg_len).saturating_sub(libc::CMSG_LEN(0) as usize);
            see((*at).cmsg_level, (*at).cmsg_type, std::slice::from_raw_parts(libc::CMSG_DATA(at), len));
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
}

/// Reads a `struct timespec`.
fn stamp(data: &[u8]) -> Option<u64> {
    const HALF: usize = mem::size_of::<libc::time_t>();
    let half = |at: usize| data.get(at..at + HALF)?.first_chunk().map(|bytes| libc::time_t::from_ne_bytes(*bytes));
    Some(half(0)? as u64 * 1_000_000_000 + half(HALF)? as u64)
}

fn is_port_unreachable(header: &libc::msghdr) -> bool {
    let mut found = false;
    for_each_control(header, |level, kind, data| {
        let is_error =
            matches!((level, kind), (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR));
        // struct sock_extended_err: errno in four bytes, then origin, type, code.
        if is_error && data.len() >= 8 {
            found |= matches!(
                (data[4], data[5], data[6]),
                (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4)
            );
        }
    });
    found
}

fn to_sockaddr(address: SocketAddr, is_v6: bool) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: a storage of all zeros is valid, and large and aligned enough for either kind of address.
    unsafe {
        let mut storage: libc::sockaddr_storage = mem::zeroed();
        let address = match address {
            SocketAddr::V4(v4) if is_v6 => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into(),
            other => other,
        };
        let len = match address {
            SocketAddr::V4(v4) => {
                let at = ptr::from_mut(&mut storage).cast::<libc::sockaddr_in>();
                (*at).sin_family = libc::AF_INET as libc::sa_family_t;
                (*at).sin_port = v4.port().to_be();
                (*at).sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                mem::size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let at = ptr::from_mut(&mut storage).cast::<libc::sockaddr_in6>();
                (*at).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*at).sin6_port = v6.port().to_be();
                (*at).sin6_addr.s6_addr = v6.ip().octets();
                (*at).sin6_scope_id = v6.scope_id();
                mem::size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, len as libc::socklen_t)
    }
}

/// An address of the system as ours; IPv4 addresses in IPv6's clothes as themselves.
pub(crate) fn from_sockaddr(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the family says which kind of address the storage holds, and it is large enough for either.
    unsafe {
        match libc::c_int::from(storage.ss_family) {
            libc::AF_INET => {
                let at = &*ptr::from_ref(storage).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(at.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(at.sin_port)).into())
            }
            libc::AF_INET6 => {
                let at = &*ptr::from_ref(storage).cast::<libc::sockaddr_in6>();
                let (ip, port) = (Ipv6Addr::from(at.sin6_addr.s6_addr), u16::from_be(at.sin6_port));
                Some(match ip.to_ipv4_mapped() {
                    Some(ip) => SocketAddrV4::new(ip, port).into(),
                    None => SocketAddrV6::new(ip, port, 0, at.sin6_scope_id).into(),
                })
            }
            _ => None,
        }
    }
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

/// What of a descriptor is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Whether it is readable.
    Readable,
    /// When more can be read, or it ends.
    Arrivals,
    /// The same, and when it becomes writable.
    ArrivalsAndRoom,
}

impl Watch {
    fn events(self) -> u32 {
        let arrivals = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;
        let events = match self {
            Self::Readable => libc::EPOLLIN,
            Self::Arrivals => arrivals,
            Self::ArrivalsAndRoom => arrivals | libc::EPOLLOUT,
        };
        events as u32
    }
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is a new descriptor that nobody else owns.
        unsafe { Ok(Self(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    pub(crate) fn add(&self, fd: RawFd, number: u64, watch: Watch) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::epoll_event { events: watch.events(), u64: number })
    }

    /// Watches a descriptor in another way from now on. What it is ready for already is reported.
    pub(crate) fn change(&self, fd: RawFd, number: u64, watch: Watch) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, libc::epoll_event { events: watch.events(), u64: number })
    }

    pub(crate) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, libc::epoll_event { events: 0, u64: 0 })
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, mut event: libc::epoll_event) -> io::Result<()> {
        // SAFETY: the event outlives the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) })?;
        Ok(())
    }

    /// Waits; appends the number of each descriptor that is ready, and for what.
    pub(crate) fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<(u64, Seen)>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
        let spec = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let spec_at = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (set, at, most) = (self.0.as_raw_fd(), events.as_mut_ptr(), events.len());
        // SAFETY: the array is as long as the call is told, the time is null or a timespec, and both outlive the call.
        let mut count = unsafe {
            libc::syscall(libc::SYS_epoll_pwait2, set, at, most, spec_at, ptr::null::<libc::sigset_t>(), 0_usize)
        };
        if count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            // Before Linux 5.11: the descriptors' readiness with nanoseconds first, then which they are.
            use std::os::fd::AsFd;
            let [is_ready] = wait_readable([self.0.as_fd()], timeout);
            // SAFETY: as above.
            count = if is_ready { unsafe { libc::epoll_wait(set, at, most as libc::c_int, 0) }.into() } else { 0 };
        }
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let has = |flags: libc::c_int| event.events & flags as u32 != 0;
            let ended = has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
            let seen = Seen { readable: ended || has(libc::EPOLLIN), writable: ended || has(libc::EPOLLOUT), ended };
            ready.push((event.u64, seen));
        }
    }
}
