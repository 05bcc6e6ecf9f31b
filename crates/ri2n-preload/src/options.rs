//! Options of TCP and IP on a descriptor that only looks like a socket of TCP.

use std::{mem, net::SocketAddr, ptr};

use libc::{c_int, c_void, socklen_t};
use ri2n_session::{Name, Operation, Verdict};

use crate::{
    ask::{Question, ask},
    descriptor::set_errno,
    real,
};

/// What `TCP_MAXSEG` says: the payload of a frame of 1500 bytes, as programs expect it.
const SEGMENT_BYTES: c_int = 1448;
/// What `TCP_CONGESTION` says.
const CONGESTION: &[u8; 16] = b"ri2n\0\0\0\0\0\0\0\0\0\0\0\0";
/// `tcp_info` as far as the fields that are filled here.
const INFO_BYTES: usize = 104;

/// Whether an option could be answered here at all; all others are left to the kernel without looking further.
pub(crate) fn concern_us(level: c_int, option: c_int) -> bool {
    match level {
        libc::IPPROTO_TCP | libc::IPPROTO_IP | libc::IPPROTO_IPV6 => true,
        libc::SOL_SOCKET => matches!(option, libc::SO_ERROR | libc::SO_DOMAIN | libc::SO_PROTOCOL),
        _ => false,
    }
}

/// Takes an option that changes nothing of a stream of RI2N.
pub(crate) fn set(level: c_int, option: c_int) -> c_int {
    // What a program must not be told to have: other protocols on top, signatures, another state.
    let refused = level == libc::IPPROTO_TCP
        && matches!(option, libc::TCP_ULP | libc::TCP_MD5SIG | libc::TCP_REPAIR | libc::TCP_FASTOPEN_CONNECT);
    if refused || level == libc::SOL_SOCKET {
        set_errno(libc::ENOPROTOOPT);
        return -1;
    }
    0
}

/// Answers an option.
///
/// # Safety
/// `value` and `length` are as `getsockopt(2)` wants them.
pub(crate) unsafe fn get(
    fd: c_int,
    name: &Name,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let number = match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => match error(fd, name.id) {
            Ok(error) => error,
            Err(()) => return -1,
        },
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => match name.local {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        },
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY | libc::TCP_QUICKACK) => 1,
        (libc::IPPROTO_TCP, libc::TCP_CORK) => 0,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => SEGMENT_BYTES,
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => 0,
        // SAFETY: the caller vouches for the buffer.
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => return unsafe { give(CONGESTION, value, length) },
        // SAFETY: the caller vouches for the buffer.
        (libc::IPPROTO_TCP, libc::TCP_INFO) => return unsafe { give(&info(), value, length) },
        _ => {
            set_errno(libc::ENOPROTOOPT);
            return -1;
        }
    };
    // SAFETY: the caller vouches for the buffer.
    unsafe { give(&number.to_ne_bytes(), value, length) }
}

/// The pending error. The kernel knows only that the other end is gone; the broker knows why.
fn error(fd: c_int, id: u64) -> Result<c_int, ()> {
    let mut error: c_int = 0;
    let mut length = mem::size_of::<c_int>() as socklen_t;
    // SAFETY: the value has the size that is told.
    let result = unsafe {
        real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, ptr::from_mut(&mut error).cast(), &mut length)
    };
    if result != 0 {
        return Err(());
    }
    if error == 0 {
        return Ok(0);
    }
    let state = ask(&Question { operation: Operation::State, id, ..Question::default() });
    Ok(match state.map(|reply| reply.answer.verdict) {
        Ok(Verdict::Failed(why)) => why,
        _ => error,
    })
}

/// A `tcp_info` that says: established, segments of the usual size, nothing lost.
fn info() -> [u8; INFO_BYTES] {
    const STATE: usize = 0;
    const SEGMENT_SENT: usize = 16;
    const SEGMENT_RECEIVED: usize = 20;
    const ESTABLISHED: u8 = 1;
    let mut info = [0; INFO_BYTES];
    info[STATE] = ESTABLISHED;
    for at in [SEGMENT_SENT, SEGMENT_RECEIVED] {
        info[at..at + 4].copy_from_slice(&SEGMENT_BYTES.to_ne_bytes());
    }
    info
}

/// Gives a value as the kernel would: cut to the caller's room.
///
/// # Safety
/// `value` and `length` are as `getsockopt(2)` wants them.
unsafe fn give(from: &[u8], value: *mut c_void, length: *mut socklen_t) -> c_int {
    if value.is_null() || length.is_null() {
        set_errno(libc::EFAULT);
        return -1;
    }
    // SAFETY: the caller has `*length` bytes.
    unsafe {
        let copied = from.len().min(*length as usize);
        ptr::copy_nonoverlapping(from.as_ptr(), value.cast(), copied);
        *length = copied as socklen_t;
    }
    0
}
