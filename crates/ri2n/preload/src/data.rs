//! The calls that carry data: small messages of a conversation may go by early copies; all else is the C library's.

use std::ptr;

use libc::{c_int, c_ulong, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use ri2n_session::{Operation, SocketOption, Verdict};

use crate::{
    ask::{self, Question, ask},
    descriptor,
    errno::{errno, set_errno},
    express, real, sandbox, slot, watch,
};

/// # Safety
/// As `read(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, into: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe {
        express::receive(fd, into, count, 0).unwrap_or_else(|| seen(fd, count, 0, || real::read(fd, into, count)))
    }
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
    unsafe {
        express::receive(fd, into, count, flags)
            .unwrap_or_else(|| seen(fd, count, flags, || real::recv(fd, into, count, flags)))
    }
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
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || unsafe { real::recvfrom(fd, into, count, flags, address, length) };
    if !address.is_null() {
        return noted(fd, count, plain());
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, flags) }.unwrap_or_else(|| seen(fd, count, flags, plain))
}

/// # Safety
/// As `readv(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the parts, if it says how many.
    if let Some(received) =
        usize::try_from(count).ok().and_then(|count| unsafe { express::receive_parts(fd, parts, count, 0) })
    {
        return received;
    }
    // SAFETY: the arguments are the caller's, unchanged.
    let received = counted(fd, 0, || unsafe { real::readv(fd, parts, count) });
    // SAFETY: the kernel has read the parts already.
    noted(fd, unsafe { room(received, parts, count as usize) }, received)
}

/// A stream tells no address and has no ancillary data, as one of TCP.
///
/// # Safety
/// As `recvmsg(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the message, if there is one.
    let plain = unsafe { message.as_mut() }.filter(|message| slot::is_any_active() && message.msg_name.is_null());
    let is_plain = plain.is_some();
    if let Some(message) = plain {
        // SAFETY: the caller vouches for the parts.
        if let Some(received) = unsafe { express::receive_parts(fd, message.msg_iov, message.msg_iovlen, flags) } {
            if received > 0 {
                (message.msg_controllen, message.msg_flags) = (0, 0);
            }
            return received;
        }
    }
    // SAFETY: the arguments are the caller's, unchanged.
    let call = || unsafe { real::recvmsg(fd, message, flags) };
    let received = if is_plain { counted(fd, flags, call) } else { call() };
    // SAFETY: the kernel has read the message already, if it received anything.
    noted(
        fd,
        unsafe { message.as_ref().map_or(0, |message| room(received, message.msg_iov, message.msg_iovlen)) },
        received,
    )
}

/// Bytes that the parts hold; it matters only where nothing was received.
///
/// # Safety
/// If nothing was received, the parts are as `readv(2)` wants them.
unsafe fn room(received: ssize_t, parts: *const iovec, count: usize) -> usize {
    if received != 0 {
        return received.unsigned_abs();
    }
    // SAFETY: the kernel has taken `count` parts.
    (0..count).map(|at| unsafe { (*parts.add(at)).iov_len }).sum()
}

/// What `read` becomes where the compiler knows how large the buffer is.
///
/// # Safety
/// As `read(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(fd: c_int, into: *mut c_void, count: size_t, room: size_t) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || unsafe { real::read_checked(fd, into, count, room) };
    if count > room {
        return plain();
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, 0) }.unwrap_or_else(|| seen(fd, count, 0, plain))
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
    let plain = || unsafe { real::recv_checked(fd, into, count, room, flags) };
    if count > room {
        return plain();
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, flags) }.unwrap_or_else(|| seen(fd, count, flags, plain))
}

/// What `recvfrom` becomes where the compiler knows how large the buffer is.
///
/// # Safety
/// As `recvfrom(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    into: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || unsafe { real::recvfrom_checked(fd, into, count, room, flags, address, length) };
    if count > room || !address.is_null() {
        return noted(fd, count, plain());
    }
    // SAFETY: the caller vouches for the buffer.
    unsafe { express::receive(fd, into, count, flags) }.unwrap_or_else(|| seen(fd, count, flags, plain))
}

/// # Safety
/// As `writev(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the parts, if it says how many.
    usize::try_from(count)
        .ok()
        .and_then(|count| unsafe { express::send_parts(fd, parts, count, 0) })
        // SAFETY: the arguments are the caller's, unchanged.
        .unwrap_or_else(|| unsafe { real::writev(fd, parts, count) })
}

/// The C library's, but for `FIONREAD` on a stream: what came by a copy counts.
///
/// # Safety
/// As `ioctl(2)`, which takes one argument after the request, whatever their number in the call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, value: *mut c_void) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    let result = unsafe { real::ioctl(fd, request, value) };
    if slot::is_any_active() && result == 0 && request == libc::FIONREAD as c_ulong {
        // SAFETY: the kernel has written a number there.
        let count = unsafe { &mut *value.cast::<c_int>() };
        if *count == 0 {
            *count = express::readable(fd) as c_int;
        }
    }
    result
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
    if slot::is_any_active() {
        watch::end_epoll(fd);
    }
    if slot::slot(fd).is_some() {
        if let Some(seconds) = descriptor::linger(fd).filter(|seconds| *seconds > 0) {
            linger(fd, seconds);
        }
        slot::close(fd);
    }
    // SAFETY: no memory is involved.
    unsafe { real::close(fd) }
}

/// Waits until what was written has reached the peer, as `close` does where a program has set `SO_LINGER`.
fn linger(fd: c_int, seconds: c_int) {
    let before = errno();
    if let Some(name) = descriptor::name(fd) {
        let left = descriptor::wait_until_taken(fd, seconds.saturating_mul(1000));
        let option = SocketOption { value: left, ..SocketOption::default() };
        let question = Question { operation: Operation::Drain, id: name.id, option, ..Question::default() };
        let _ = ask(&question);
    }
    set_errno(before);
}

/// The C library's call, which may receive `room` bytes; what it does is noted.
fn seen(fd: c_int, room: size_t, flags: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    noted(fd, room, counted(fd, flags, call))
}

/// The C library's call, whose bytes are counted if it takes them.
fn counted(fd: c_int, flags: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    const TAKING: c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_CMSG_CLOEXEC;
    if flags & !TAKING != 0 {
        return call();
    }
    let reading = slot::begin_read(fd);
    let received = call();
    slot::end_read(fd, &reading, received);
    received
}

/// Notes what the C library's call received of `room` bytes; a stream that was reset ends with an error, once, as one of TCP
/// does.
fn noted(fd: c_int, room: size_t, received: ssize_t) -> ssize_t {
    slot::received(fd, received);
    if received == 0 && room > 0 {
        let before = errno();
        let failure = failure(fd).filter(|_| !slot::tell(fd));
        set_errno(failure.unwrap_or(before));
        return if failure.is_some() { -1 } else { 0 };
    }
    received
}

/// The error that a stream ended with. The kernel says no more of a socket pair than that it has ended; the broker knows why.
fn failure(fd: c_int) -> Option<c_int> {
    // A peer that has finished leaves the other direction open, and a program under a filter makes its own calls alone.
    if !ask::has_broker() || sandbox::is_on() || !descriptor::is_hung_up(fd) {
        return None;
    }
    let question = Question { operation: Operation::State, id: descriptor::name(fd)?.id, ..Question::default() };
    match ask(&question).ok()?.answer.verdict {
        Verdict::Failed(error) => Some(error),
        _ => None,
    }
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
        return unsafe { send_message(fd, &raw const message, flags) };
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { send_message(fd, message, flags) }
}

/// # Safety
/// As `sendmsg(2)`.
unsafe fn send_message(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the message, if there is one.
    let plain = unsafe { message.as_ref() }.filter(|message| message.msg_name.is_null() && message.msg_controllen == 0);
    if let Some(message) = plain {
        // SAFETY: the caller vouches for the parts.
        if let Some(sent) = unsafe { express::send_parts(fd, message.msg_iov, message.msg_iovlen, flags) } {
            return sent;
        }
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real::sendmsg(fd, message, flags) }
}
