//! Options of TCP and IP on a descriptor that only looks like a socket of TCP.

use std::{mem, net::SocketAddr, ptr};

use libc::{c_int, c_void, socklen_t};
use ri2n_session::{NODELAY_KEEPER, Name, Operation, SocketOption, Verdict};

use crate::{
    ask::{self, Question, ask},
    descriptor,
    errno::{errno, set_errno},
    real, sandbox,
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

/// Takes an option of TCP or IP. Whether it can be set, and what it comes to, is said by a socket of TCP that has no other
/// use; the broker remembers it, and heeds it where it means something to a stream.
///
/// # Safety
/// `value` is as `setsockopt(2)` wants it.
pub(crate) unsafe fn set(
    fd: c_int,
    name: &Name,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if (level, option) == (libc::IPPROTO_TCP, libc::TCP_NODELAY) {
        // SAFETY: the caller vouches for the value, which both options take alike.
        return unsafe { real::setsockopt(fd, libc::SOL_SOCKET, NODELAY_KEEPER, value, length) };
    }
    // What a program must not be told to have: other protocols on top, signatures, another state.
    let refused = level == libc::IPPROTO_TCP
        && matches!(option, libc::TCP_ULP | libc::TCP_MD5SIG | libc::TCP_REPAIR | libc::TCP_FASTOPEN_CONNECT);
    if refused || level == libc::SOL_SOCKET {
        set_errno(libc::ENOPROTOOPT);
        return -1;
    }
    let before = errno();
    // Under a filter of system calls all is taken that programs set, without effect.
    let Some(scratch) = Scratch::new(name) else { return 0 };
    // SAFETY: the caller vouches for the value.
    if unsafe { real::setsockopt(scratch.0, level, option, value, length) } != 0 {
        return -1;
    }
    if let Some(value) = number(scratch.0, level, option) {
        tell(name, SocketOption { level, name: option, value });
    }
    set_errno(before);
    0
}

/// Notes an option that the kernel keeps for the socket pair, and that means something to the stream as well.
pub(crate) fn note(fd: c_int, option: c_int) {
    let Some(name) = descriptor::name(fd).filter(|_| !sandbox::is_on()) else { return };
    let before = errno();
    let value = match option {
        libc::SO_LINGER => Some(descriptor::linger(fd).unwrap_or(-1)),
        _ => number(fd, libc::SOL_SOCKET, option),
    };
    if let Some(value) = value {
        tell(&name, SocketOption { level: libc::SOL_SOCKET, name: option, value });
    }
    set_errno(before);
}

fn tell(name: &Name, option: SocketOption) {
    let question = Question { operation: Operation::SetOption, id: name.id, option, ..Question::default() };
    while matches!(ask(&question), Err(ask::Silent::Interrupted)) {}
}

fn number(fd: c_int, level: c_int, option: c_int) -> Option<c_int> {
    let (mut value, mut length) = (0, mem::size_of::<c_int>() as socklen_t);
    // SAFETY: the value has the size that is told.
    let result = unsafe { real::getsockopt(fd, level, option, ptr::from_mut(&mut value).cast(), &mut length) };
    (result == 0).then_some(value)
}

/// A socket of TCP that is asked about options.
struct Scratch(c_int);

impl Scratch {
    /// None where no descriptor can be had, and in a program that makes its own system calls alone.
    fn new(name: &Name) -> Option<Self> {
        if sandbox::is_on() {
            return None;
        }
        let fd = descriptor::tcp_socket(name);
        (fd >= 0).then_some(Self(fd))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let before = errno();
        descriptor::close(self.0);
        set_errno(before);
    }
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
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => SEGMENT_BYTES,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
            // SAFETY: the caller vouches for the buffer, which both options fill alike.
            return unsafe { real::getsockopt(fd, libc::SOL_SOCKET, NODELAY_KEEPER, value, length) };
        }
        // SAFETY: the caller vouches for the buffer.
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => return unsafe { give(CONGESTION, value, length) },
        // SAFETY: the caller vouches for the buffer.
        (libc::IPPROTO_TCP, libc::TCP_INFO) => return unsafe { give(&info(round_trip(name)), value, length) },
        _ => match (remembered(name, level, option), Scratch::new(name)) {
            (Some(number), _) => number,
            // What was never set is what a socket of TCP has.
            // SAFETY: the caller vouches for the buffer.
            (None, Some(scratch)) => return unsafe { real::getsockopt(scratch.0, level, option, value, length) },
            (None, None) => {
                set_errno(libc::ENOPROTOOPT);
                return -1;
            }
        },
    };
    // SAFETY: the caller vouches for the buffer.
    unsafe { give(&number.to_ne_bytes(), value, length) }
}

/// What the broker knows of an option.
fn remembered(name: &Name, level: c_int, option: c_int) -> Option<c_int> {
    let option = SocketOption { level, name: option, value: 0 };
    let question = Question { operation: Operation::GetOption, id: name.id, option, ..Question::default() };
    let before = errno();
    let reply = if sandbox::is_on() { Err(ask::Silent::Gone) } else { ask(&question) };
    set_errno(before);
    reply.ok().map(|reply| reply.answer).filter(|answer| answer.verdict == Verdict::Ready).map(|answer| answer.value)
}

/// The smallest round-trip time of the links, in microseconds; zero where nobody knows.
fn round_trip(name: &Name) -> c_int {
    remembered(name, libc::IPPROTO_TCP, libc::TCP_INFO).unwrap_or(0)
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

/// A `tcp_info` that says: established, segments of the usual size, nothing lost, this round-trip time in microseconds.
fn info(round_trip: c_int) -> [u8; INFO_BYTES] {
    const STATE: usize = 0;
    const SEGMENT_SENT: usize = 16;
    const SEGMENT_RECEIVED: usize = 20;
    const ROUND_TRIP: usize = 68;
    const ESTABLISHED: u8 = 1;
    let mut info = [0; INFO_BYTES];
    info[STATE] = ESTABLISHED;
    for (at, value) in [(SEGMENT_SENT, SEGMENT_BYTES), (SEGMENT_RECEIVED, SEGMENT_BYTES), (ROUND_TRIP, round_trip)] {
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
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
