//! Addresses of C.

use std::{
    ffi::c_int,
    mem,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    ptr,
};

use libc::{sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::code;

/// # Safety
/// `address` is null or has `length` bytes.
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, c_int> {
    let length = length as usize;
    if address.is_null() || length < mem::size_of::<sockaddr_in>() {
        return Err(code::INVAL);
    }
    // SAFETY: as many bytes are there; callers need not align them.
    let v4: sockaddr_in = unsafe { ptr::read_unaligned(address.cast()) };
    match c_int::from(v4.sin_family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if length >= mem::size_of::<sockaddr_in6>() => {
            // SAFETY: as many bytes are there.
            let v6: sockaddr_in6 = unsafe { ptr::read_unaligned(address.cast()) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Ok(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => Err(code::INVAL),
    }
}

/// Writes as much as there is room for, and how long the whole is.
///
/// # Safety
/// `address` and `length` are null or as for `getsockname(2)`.
pub(crate) unsafe fn write(from: SocketAddr, address: *mut sockaddr, length: *mut socklen_t) -> Result<c_int, c_int> {
    if address.is_null() || length.is_null() {
        return Err(code::INVAL);
    }
    // SAFETY: all zeros is a valid address, and the caller has `*length` bytes.
    unsafe {
        match from {
            SocketAddr::V4(from) => {
                let mut v4: sockaddr_in = mem::zeroed();
                v4.sin_family = libc::AF_INET as libc::sa_family_t;
                v4.sin_port = from.port().to_be();
                v4.sin_addr.s_addr = u32::from(*from.ip()).to_be();
                copy(&v4, address, length);
            }
            SocketAddr::V6(from) => {
                let mut v6: sockaddr_in6 = mem::zeroed();
                v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                v6.sin6_port = from.port().to_be();
                v6.sin6_addr.s6_addr = from.ip().octets();
                v6.sin6_scope_id = from.scope_id();
                copy(&v6, address, length);
            }
        }
    }
    Ok(0)
}

/// # Safety
/// `address` has `*length` bytes.
unsafe fn copy<T>(from: &T, address: *mut sockaddr, length: *mut socklen_t) {
    // SAFETY: no more is copied than either has.
    unsafe {
        let count = mem::size_of::<T>().min(*length as usize);
        ptr::copy_nonoverlapping(ptr::from_ref(from).cast::<u8>(), address.cast(), count);
        *length = mem::size_of::<T>() as socklen_t;
    }
}
