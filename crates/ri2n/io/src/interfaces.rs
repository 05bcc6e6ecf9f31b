//! This machine's addresses, each with its interface, subnet and MTU.

use crate::sys::{self, Socket};
use ri2n::wire::handshake::Address;
use std::{
    collections::BTreeMap,
    ffi::CStr,
    io,
    mem::size_of,
    net::{IpAddr, SocketAddr},
    ptr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// An address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalAddress {
    pub(crate) address: Address,
    pub(crate) interface: u32,
    pub(crate) is_loopback: bool,
}

/// How long an answer of the system is good: a thousand connections within that time do not ask it a thousand times.
const KEPT_FOR: Duration = Duration::from_millis(500);
/// Answers that are kept at a time.
const KEPT_MAX: usize = 1024;

static KEPT: Mutex<Option<(Instant, Vec<LocalAddress>)>> = Mutex::new(None);

/// Has [`local_addresses`] ask the system anew, since its addresses have changed.
pub(crate) fn forget_local_addresses() {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The addresses of interfaces that are up, by interface; no link-local ones. As they were at most [`KEPT_FOR`] ago.
pub(crate) fn local_addresses() -> io::Result<Vec<LocalAddress>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((at, known)) if at.elapsed() < KEPT_FOR => Ok(known.clone()),
        _ => {
            let known = ask_local_addresses()?;
            *kept = Some((Instant::now(), known.clone()));
            Ok(known)
        }
    }
}

/// The address that the system would send from to reach `remote`; kept likewise.
pub(crate) fn source_toward(remote: SocketAddr) -> io::Result<IpAddr> {
    static KEPT: Mutex<BTreeMap<IpAddr, (Instant, IpAddr)>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, source)) = kept.get(&remote.ip()).filter(|(at, _)| at.elapsed() < KEPT_FOR) {
        return Ok(*source);
    }
    let source = Socket::source_toward(remote)?;
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(remote.ip(), (Instant::now(), source));
    Ok(source)
}

fn ask_local_addresses() -> io::Result<Vec<LocalAddress>> {
    let mut first = ptr::null_mut();
    // SAFETY: the list is freed below, after its last use.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut at = first;
    while !at.is_null() {
        // SAFETY: `at` is an entry of the list, which is not freed yet.
        let entry = unsafe { &*at };
        found.extend(local_address(entry));
        at = entry.ifa_next;
    }
    // SAFETY: the list came from getifaddrs and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    found.sort_by_key(|local| local.interface);
    Ok(found)
}

/// The interface of one of these addresses; zero if it is none of them.
pub(crate) fn interface_of(ip: IpAddr, ours: &[LocalAddress]) -> u32 {
    ours.iter().find(|local| local.address.ip == ip && !local.is_loopback).map_or(0, |local| local.interface)
}

fn local_address(entry: &libc::ifaddrs) -> Option<LocalAddress> {
    let flags = entry.ifa_flags as libc::c_int;
    if entry.ifa_addr.is_null() || entry.ifa_netmask.is_null() || flags & libc::IFF_UP == 0 {
        return None;
    }
    // SAFETY: the pointers are not null; an entry's addresses are as large as their family needs, of which no more is read.
    let (ip, mask, name) =
        unsafe { (ip_of(entry.ifa_addr)?, ip_of(entry.ifa_netmask)?, CStr::from_ptr(entry.ifa_name)) };
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if is_link_local {
        return None;
    }
    let prefix = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    // SAFETY: the name is a C string.
    let interface = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let mtu = mtu_of(name).unwrap_or(1500);
    let address = Address { ip, prefix: prefix as u8, mtu: mtu.min(u32::from(u16::MAX)) as u16, priority: 0 };
    Some(LocalAddress { address, interface, is_loopback: flags & libc::IFF_LOOPBACK != 0 })
}

/// An interface's MTU. Not from `/sys`, which may show another network namespace's.
fn mtu_of(name: &CStr) -> Option<u32> {
    // SAFETY: the request is plain old data, valid when zero; the name is cut to its room and stays terminated; the
    // descriptor is closed before anyone else can have it.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        let bytes = name.to_bytes();
        let len = bytes.len().min(libc::IFNAMSIZ - 1);
        ptr::copy_nonoverlapping(bytes.as_ptr(), request.ifr_name.as_mut_ptr().cast::<u8>(), len);
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return None;
        }
        let result = libc::ioctl(fd, libc::SIOCGIFMTU, &raw mut request);
        libc::close(fd);
        if result == 0 { u32::try_from(request.ifr_ifru.ifru_mtu).ok() } else { None }
    }
}

/// # Safety
/// `at` points to a socket address that is as large as its family needs.
unsafe fn ip_of(at: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as promised by the caller.
    unsafe {
        let len = match libc::c_int::from((*at).sa_family) {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            _ => return None,
        };
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        ptr::copy_nonoverlapping(at.cast::<u8>(), ptr::from_mut(&mut storage).cast::<u8>(), len);
        sys::from_sockaddr(&storage).map(|address| address.ip())
    }
}
