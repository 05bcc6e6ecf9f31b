//! What can be learnt from a descriptor, and set.

use std::{
    mem,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::BorrowedFd,
    ptr,
};

use libc::{c_int, c_short, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use ri2n_express::Map;
use ri2n_session::{LOCAL_ONLY, NAME_BYTES, Name};

use crate::{
    errno::{errno, set_errno},
    real,
};

/// Numbers from here on are for descriptors that the program knows nothing of, if its limit allows.
pub(crate) const HIDDEN_FROM: c_int = 512;

/// Room for any address.
pub(crate) struct Storage {
    bytes: sockaddr_storage,
    pub(crate) length: socklen_t,
}

impl Storage {
    pub(crate) fn new() -> Self {
        // SAFETY: all zeros is a valid, unspecified address.
        Self { bytes: unsafe { mem::zeroed() }, length: mem::size_of::<sockaddr_storage>() as socklen_t }
    }

    pub(crate) fn address(&mut self) -> *mut sockaddr {
        ptr::from_mut(&mut self.bytes).cast()
    }

    pub(crate) fn decode(&self) -> Option<SocketAddr> {
        // SAFETY: the storage is larger than any address that is read.
        unsafe { read_address(ptr::from_ref(&self.bytes).cast(), self.length) }
    }

    /// Copies the address as the kernel would: cut to the caller's room, the whole length told.
    ///
    /// # Safety
    /// `address` and `length` are null or as `accept(2)` wants them.
    pub(crate) unsafe fn copy_to(&self, address: *mut sockaddr, length: *mut socklen_t) {
        if address.is_null() || length.is_null() {
            return;
        }
        // SAFETY: the caller has `*length` bytes, and the storage has more than `self.length`.
        unsafe {
            let copied = self.length.min(*length) as usize;
            ptr::copy_nonoverlapping(ptr::from_ref(&self.bytes).cast::<u8>(), address.cast(), copied);
            *length = self.length;
        }
    }
}

/// What a descriptor is bound to.
pub(crate) enum Bound {
    /// It is a stream of RI2N, to which a broker gave this name.
    Stream(Name),
    /// It is a socket of the internet, perhaps bound to nothing yet.
    Internet(SocketAddr),
    /// It is something else.
    Other,
}

/// Asks the kernel what a descriptor is bound to.
pub(crate) fn bound(fd: c_int) -> Bound {
    let before = errno();
    let mut storage = Storage::new();
    // SAFETY: the storage holds any address.
    let result = unsafe { real::getsockname(fd, storage.address(), &mut storage.length) };
    set_errno(before);
    let path_at = mem::offset_of!(libc::sockaddr_un, sun_path);
    if result != 0 {
        return Bound::Other;
    }
    if c_int::from(storage.bytes.ss_family) != libc::AF_UNIX || storage.length as usize != path_at + NAME_BYTES {
        return storage.decode().map_or(Bound::Other, Bound::Internet);
    }
    // SAFETY: the storage is larger than `sockaddr_un`.
    let path =
        unsafe { std::slice::from_raw_parts(ptr::from_ref(&storage.bytes).cast::<u8>().add(path_at), NAME_BYTES) };
    Name::decode(path).map_or(Bound::Other, Bound::Stream)
}

/// The name that a broker gave this descriptor, if it is a stream of RI2N.
pub(crate) fn name(fd: c_int) -> Option<Name> {
    match bound(fd) {
        Bound::Stream(name) => Some(name),
        _ => None,
    }
}

/// Whether this is a socket of TCP.
pub(crate) fn is_tcp(fd: c_int) -> bool {
    let internet = matches!(option(fd, libc::SO_DOMAIN), Some(libc::AF_INET | libc::AF_INET6));
    internet
        && option(fd, libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        && option(fd, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
}

/// Whether this is a socket of TCP that is neither connected, nor connecting, nor listening.
pub(crate) fn is_fresh_tcp(fd: c_int) -> bool {
    const CLOSED: u8 = 7;
    let mut state = 0_u8;
    let mut length = 1;
    let before = errno();
    // The state is the first byte of `tcp_info`.
    // SAFETY: one byte is asked for.
    let result = unsafe {
        real::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, ptr::from_mut(&mut state).cast(), &mut length)
    };
    set_errno(before);
    // MPTCP has such a state as well.
    result == 0 && state == CLOSED && option(fd, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
}

/// The flags of an open file, `O_NONBLOCK` among them; none if the number is none.
pub(crate) fn flags(fd: c_int) -> c_int {
    // SAFETY: no memory is involved.
    unsafe { libc::fcntl(fd, libc::F_GETFL) }.max(0)
}

/// Whether calls on this descriptor never wait.
pub(crate) fn is_nonblocking(fd: c_int) -> bool {
    flags(fd) & libc::O_NONBLOCK != 0
}

/// Whether both directions of a stream have ended.
pub(crate) fn is_hung_up(fd: c_int) -> bool {
    state(fd) & libc::POLLHUP != 0
}

/// Whether the kernel holds an error for a descriptor.
pub(crate) fn has_failed(fd: c_int) -> bool {
    state(fd) & libc::POLLERR != 0
}

/// What `poll` tells unasked.
fn state(fd: c_int) -> c_short {
    let mut polled = libc::pollfd { fd, events: 0, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both structures outlive the call.
    let count = unsafe { libc::syscall(libc::SYS_ppoll, &raw mut polled, 1, &raw const at_once, 0, 0) };
    if count == 1 { polled.revents } else { 0 }
}

/// Where the socket is bound, if it is one of the internet.
pub(crate) fn local_address(fd: c_int) -> Option<SocketAddr> {
    let mut storage = Storage::new();
    // SAFETY: the storage holds any address.
    (unsafe { real::getsockname(fd, storage.address(), &mut storage.length) } == 0).then(|| storage.decode()).flatten()
}

/// Whether traffic to this address never leaves the machine by its very address.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Has a socket of TCP take packets of this machine alone. Returns whether the kernel does so; if not, the error is set.
pub(crate) fn keep_to_this_machine(fd: c_int) -> bool {
    let mut steps = LOCAL_ONLY.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let program = libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_mut_ptr() };
    let length = mem::size_of::<libc::sock_fprog>() as socklen_t;
    let value = ptr::from_ref(&program).cast();
    // SAFETY: the program and its steps outlive the call, which copies them.
    unsafe { real::setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, length) == 0 }
}

/// Whether an address is neither of the loopback network nor one that this machine has: whether nothing can be bound to it.
pub(crate) fn is_of_other_machine(storage: &Storage) -> bool {
    let Some(address) = storage.decode() else { return false };
    if is_loopback(&address) {
        return false;
    }
    let before = errno();
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut any_port = Storage { bytes: storage.bytes, length: storage.length };
    // Both families have the port at the same place.
    // SAFETY: the storage holds an address of the internet.
    unsafe { (*any_port.address().cast::<sockaddr_in>()).sin_port = 0 };
    // SAFETY: the address is as long as it says, and the descriptor is ours.
    let is_own = unsafe {
        let probe = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let bound = libc::bind(probe, any_port.address(), any_port.length) == 0;
        close(probe);
        bound
    };
    set_errno(before);
    !is_own
}

/// Closes a connection of TCP so that its peer sees a reset.
pub(crate) fn close_by_reset(fd: c_int) {
    let before = errno();
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = mem::size_of::<libc::linger>() as socklen_t;
    // SAFETY: the value has the size that is told.
    unsafe { real::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, ptr::from_ref(&linger).cast(), length) };
    close(fd);
    set_errno(before);
}

/// A socket of TCP of the family that the program's is of; less than zero with the error set.
pub(crate) fn tcp_socket(name: &Name) -> c_int {
    let family = if name.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: no memory is involved.
    unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) }
}

/// The time that a program gives `connect` on a socket becomes the time that it waits for the broker. Returns whether there is one.
pub(crate) fn pass_time_limit(socket: c_int, line: c_int) -> bool {
    pass_option(socket, line, libc::SO_SNDTIMEO, libc::SO_RCVTIMEO)
}

/// Takes the error that the kernel holds for a descriptor.
pub(crate) fn clear_error(fd: c_int) {
    take_error(fd);
}

/// Takes the error that the kernel holds for a descriptor. Returns whether there was one.
pub(crate) fn take_error(fd: c_int) -> bool {
    option(fd, libc::SO_ERROR).is_some_and(|error| error != 0)
}

pub(crate) fn close(fd: c_int) {
    // A raw call: in this library `close` is the one that programs see.
    // SAFETY: the descriptor is ours.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Maps a broker's block of memory.
pub(crate) fn map(fd: c_int) -> Option<Map> {
    // SAFETY: the descriptor is open, and stays so for this call.
    Map::open(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// A duplicate with a number from `least` on, or the lowest that is free if there is none, gone on `exec`.
pub(crate) fn duplicate_from(fd: c_int, least: c_int) -> Option<c_int> {
    // SAFETY: no memory is involved.
    [least, 3].into_iter().map(|least| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) }).find(|fd| *fd >= 0)
}

/// What the kernel calls a socket, never to call another so; zero if the number is none.
pub(crate) fn cookie(fd: c_int) -> u64 {
    number(fd, libc::SO_COOKIE)
}

/// What the kernel calls a socket's network namespace, as [`cookie`]; zero before Linux 5.14.
pub(crate) fn namespace(fd: c_int) -> u64 {
    const SO_NETNS_COOKIE: c_int = 71;
    number(fd, SO_NETNS_COOKIE)
}

/// An option of sockets that is a number of 64 bits, zero if there is none.
fn number(fd: c_int, option: c_int) -> u64 {
    let (mut number, mut length) = (0_u64, mem::size_of::<u64>() as socklen_t);
    let (value, length) = (ptr::from_mut(&mut number), ptr::from_mut(&mut length));
    // SAFETY: the value has the length that is told.
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, option, value, length) };
    number
}

/// Whether receiving has a time limit.
pub(crate) fn has_time_limit(fd: c_int) -> bool {
    let (mut limit, mut length) = ([0_i64; 2], mem::size_of::<[i64; 2]>() as socklen_t);
    let value = ptr::from_mut(&mut limit).cast();
    // SAFETY: the value has the length that is told.
    unsafe { real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, &mut length) == 0 && limit != [0, 0] }
}

/// Reads an internet address.
///
/// # Safety
/// `length` bytes are readable at `address`.
pub(crate) unsafe fn read_address(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    let length = length as usize;
    if length < mem::size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: at least a `sockaddr_in` is there; callers need not align it.
    let v4: sockaddr_in = unsafe { ptr::read_unaligned(address.cast()) };
    match c_int::from(v4.sin_family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if length >= mem::size_of::<sockaddr_in6>() => {
            // SAFETY: as many bytes are there.
            let v6: sockaddr_in6 = unsafe { ptr::read_unaligned(address.cast()) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Whether an address is of no family, which disconnects.
///
/// # Safety
/// `length` bytes are readable at `address`.
pub(crate) unsafe fn is_no_address(address: *const sockaddr, length: socklen_t) -> bool {
    let has_family = length as usize >= mem::size_of::<libc::sa_family_t>();
    // SAFETY: the family comes first, and is there; callers need not align it.
    has_family && c_int::from(unsafe { ptr::read_unaligned(address.cast::<libc::sa_family_t>()) }) == libc::AF_UNSPEC
}

/// Gives an address as the kernel would; returns what the system call would.
///
/// # Safety
/// `address` and `length` are as `getsockname(2)` wants them.
pub(crate) unsafe fn write_address(from: &SocketAddr, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    if address.is_null() || length.is_null() {
        set_errno(libc::EFAULT);
        return -1;
    }
    let mut storage = Storage::new();
    match from {
        SocketAddr::V4(from) => {
            // SAFETY: all zeros is a valid address.
            let mut v4: sockaddr_in = unsafe { mem::zeroed() };
            v4.sin_family = libc::AF_INET as libc::sa_family_t;
            v4.sin_port = from.port().to_be();
            v4.sin_addr.s_addr = u32::from(*from.ip()).to_be();
            storage.length = mem::size_of::<sockaddr_in>() as socklen_t;
            // SAFETY: the storage is larger and as aligned.
            unsafe { ptr::write(storage.address().cast(), v4) };
        }
        SocketAddr::V6(from) => {
            // SAFETY: all zeros is a valid address.
            let mut v6: sockaddr_in6 = unsafe { mem::zeroed() };
            v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            v6.sin6_port = from.port().to_be();
            v6.sin6_addr.s6_addr = from.ip().octets();
            v6.sin6_scope_id = from.scope_id();
            storage.length = mem::size_of::<sockaddr_in6>() as socklen_t;
            // SAFETY: the storage is larger and as aligned.
            unsafe { ptr::write(storage.address().cast(), v6) };
        }
    }
    // SAFETY: the caller vouches for its buffer.
    unsafe { storage.copy_to(address, length) };
    0
}

/// An option of sockets that is a number.
fn option(fd: c_int, option: c_int) -> Option<c_int> {
    let before = errno();
    let mut value: c_int = 0;
    let mut length = mem::size_of::<c_int>() as socklen_t;
    // SAFETY: the value has the size that is told.
    let result =
        unsafe { real::getsockopt(fd, libc::SOL_SOCKET, option, ptr::from_mut(&mut value).cast(), &mut length) };
    set_errno(before);
    (result == 0).then_some(value)
}

/// Room for the options that are copied: two words.
type OptionValue = [i64; 2];

/// Copies what the kernel keeps of any socket: time limits, and what is on of keepalive and linger. Returns whether receiving has a
/// time limit.
pub(crate) fn pass_options(from: c_int, to: c_int) -> bool {
    for option in [libc::SO_SNDTIMEO, libc::SO_KEEPALIVE, libc::SO_LINGER] {
        pass_option(from, to, option, option);
    }
    pass_option(from, to, libc::SO_RCVTIMEO, libc::SO_RCVTIMEO)
}

/// Copies an option that is not zero from one socket to another. Returns whether it is not zero.
fn pass_option(from: c_int, to: c_int, read: c_int, write: c_int) -> bool {
    let before = errno();
    let (mut value, mut length): (OptionValue, _) = ([0; 2], mem::size_of::<OptionValue>() as socklen_t);
    // SAFETY: the value has the length that is told, or more.
    let is_set = unsafe {
        let at = ptr::from_mut(&mut value).cast();
        let is_set = real::getsockopt(from, libc::SOL_SOCKET, read, at, &mut length) == 0 && value != [0; 2];
        if is_set {
            real::setsockopt(to, libc::SOL_SOCKET, write, at, length);
        }
        is_set
    };
    set_errno(before);
    is_set
}

/// The seconds of `SO_LINGER`, if it is on.
pub(crate) fn linger(fd: c_int) -> Option<c_int> {
    let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut length = mem::size_of::<libc::linger>() as socklen_t;
    let before = errno();
    let value = ptr::from_mut(&mut linger).cast();
    // SAFETY: the value has the size that is told.
    let result = unsafe { real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, value, &mut length) };
    set_errno(before);
    (result == 0 && linger.l_onoff != 0).then_some(linger.l_linger)
}

/// Waits until the broker has taken all that was written to a socket pair, for so many milliseconds; how many are left.
pub(crate) fn wait_until_taken(fd: c_int, milliseconds: c_int) -> c_int {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    for left in (1..=milliseconds).rev() {
        let mut waiting: c_int = 0;
        // SAFETY: the number outlives the call.
        let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut waiting) };
        if result != 0 || waiting == 0 {
            return left;
        }
        // SAFETY: the time outlives the call.
        unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
    }
    0
}
