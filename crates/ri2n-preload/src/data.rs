//! The calls that carry data: small messages of a conversation may go by early copies; all else is the C library's.

use std::ptr;

use libc::{c_int, c_void, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::{ask, descriptor, express, real, slot};

/// # Safety
/// As `read(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, into: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { express::receive(fd, into, count, 0).unwrap_or_else(|| noted(fd, real::read(fd, into, count))) }
}

/// # Safety
/// As `write(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, from: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { express::send(fd, from, count, 0).unwrap_or_else(|| real::write(fd, from, count)) }
}

/// # Safety
/// As `recv(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(fd: c_int, into: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { express::receive(fd, into, count, flags).unwrap_or_else(|| noted(fd, real::recv(fd, into, count, flags))) }
}

/// A stream tells no address, as one of TCP does not.
///
/// # Safety
/// As `recvfrom(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    count: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    let plain = || {
        // SAFETY: the arguments are the caller's, unchanged.
        noted(fd, unsafe { real::recvfrom(fd, into, count, flags, address, length) })
    };
    if !address.is_null() {
        return plain();
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, flags) }.unwrap_or_else(plain)
}

/// What `read` becomes where the compiler knows how large the buffer is.
///
/// # Safety
/// As `read(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(fd: c_int, into: *mut c_void, count: size_t, room: size_t) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || noted(fd, unsafe { real::read_checked(fd, into, count, room) });
    if count > room {
        return plain();
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, 0) }.unwrap_or_else(plain)
}

/// What `recv` becomes where the compiler knows how large the buffer is.
///
/// # Safety
/// As `recv(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    into: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || noted(fd, unsafe { real::recv_checked(fd, into, count, room, flags) });
    if count > room {
        return plain();
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, flags) }.unwrap_or_else(plain)
}

/// # Safety
/// As `send(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(fd: c_int, from: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { express::send(fd, from, count, flags).unwrap_or_else(|| real::send(fd, from, count, flags)) }
}

/// # Safety
/// As `close(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    slot::close(fd);
    // SAFETY: no memory is involved.
    unsafe { real::close(fd) }
}

fn noted(fd: c_int, received: ssize_t) -> ssize_t {
    slot::received(fd, received);
    received
}

/// TCP takes no notice of an address once it is connected; a socket pair would refuse it.
///
/// # Safety
/// As `sendto(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    from: *const c_void,
    count: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    let is_stream = !address.is_null() && ask::has_broker() && descriptor::name(fd).is_some();
    let (address, length) = if is_stream { (ptr::null(), 0) } else { (address, length) };
    if address.is_null() {
        // SAFETY: the caller vouches for the bytes.
        if let Some(sent) = unsafe { express::send(fd, from, count, flags) } {
            return sent;
        }
    }
    // SAFETY: the arguments are the caller's, less at most the address.
    unsafe { real::sendto(fd, from, count, flags, address, length) }
}

/// As [`sendto`].
///
/// # Safety
/// As `sendmsg(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the message, if there is one.
    let named = unsafe { message.as_ref() }.filter(|message| !message.msg_name.is_null());
    if let Some(named) = named.filter(|_| ask::has_broker() && descriptor::name(fd).is_some()) {
        let message = msghdr { msg_name: ptr::null_mut(), msg_namelen: 0, ..*named };
        // SAFETY: the message is the caller's, less the address.
        return unsafe { real::sendmsg(fd, &raw const message, flags) };
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real::sendmsg(fd, message, flags) }
}
