//! Early copies of small messages, from this program straight to the peer's; what they are is told in `ri2n-express`.
//!
//! A number that `connect` or `accept` made a stream of RI2N is watched: once the program has taken turns on it (read a little,
//! wrote a little) [`TURNS`] times, the broker is asked for the block of memory and the socket, and from then on small
//! messages go and come by copies where they can. All else is the kernel's, as are calls that are not seen here.
//!
//! ```text
//!  send     ring, or pair ─▶ copy             (message of at most 1 KiB, pair empty)
//!  receive  wait for pair or copy ─▶ copy, if it is the next; else the C library's call
//! ```

use std::{ptr, slice, time::Duration};

use libc::{c_int, c_void, size_t, ssize_t};
use ri2n_express::{Block, Copy, DATAGRAM_MAX, Delivery, MESSAGE_MAX, Pair, Sent, Sink, encode};

use crate::{
    descriptor,
    errno::{errno, set_errno},
    signals::{self, Wish},
    slot::{Slot, Used, slot},
};

/// How long a reader waits for a copy before it waits in the C library's own call, which copies cannot wake.
const PATIENCE: Duration = Duration::from_millis(20);
/// A wait that took longer has slept: what it found was not there before.
const SLEPT: Duration = Duration::from_micros(3);

/// Sends a small message, if that can be done here.
///
/// # Safety
/// As `send(2)`.
#[inline]
pub(crate) unsafe fn send(fd: c_int, from: *const c_void, count: size_t, flags: c_int) -> Option<ssize_t> {
    let slot = slot(fd)?;
    if !(1..=MESSAGE_MAX).contains(&count) || flags & !(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) != 0 || from.is_null()
    {
        slot.break_off();
        return None;
    }
    let before = errno();
    // SAFETY: the caller vouches for the bytes.
    let sent = send_copy(fd, slot, unsafe { slice::from_raw_parts(from.cast(), count) });
    set_errno(before);
    sent.then_some(count as ssize_t)
}

fn send_copy(fd: c_int, slot: &'static Slot, bytes: &[u8]) -> bool {
    let Some(used) = slot.enter() else {
        slot.take_turn(fd);
        return false;
    };
    if !used.is_right(fd) {
        return false;
    }
    let talk = &used.block.talk;
    let now = now_ns();
    let is_heard = talk.is_heard(now);
    if !is_heard && !talk.is_worth_a_copy() {
        return false;
    }
    let pair = Pair(fd);
    // The ring knows nothing of `shutdown`: the kernel is asked, and what it refuses is left to the caller's own call.
    let may_wait = || is_heard && pair.is_open();
    let said = used.block.up.say(bytes, may_wait, || pair.is_written_empty(), || pair.write(bytes));
    let offset = match said {
        Sent::Ring(offset) | Sent::Pair(offset) => offset,
        Sent::Somewhere => return true,
        Sent::No => return false,
    };
    let mut datagram = [0; DATAGRAM_MAX];
    let copy = Copy { offset, listens: talk.listens(), hears: talk.hears(now), bytes };
    let length = encode(&copy, used.block.token_out(), &mut datagram);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // A copy that cannot go now is one that got lost.
    // SAFETY: the datagram is live.
    unsafe { libc::syscall(libc::SYS_sendto, used.socket, datagram.as_ptr(), length, flags, 0, 0) };
    true
}

/// Receives what came by a copy, or waits a while for one; `None` leaves it to the C library's call.
///
/// # Safety
/// As `recv(2)`.
#[inline]
pub(crate) unsafe fn receive(fd: c_int, into: *mut c_void, count: size_t, flags: c_int) -> Option<ssize_t> {
    let used = slot(fd)?.enter()?;
    let before = errno();
    // SAFETY: the caller vouches for the buffer.
    let result = unsafe { receive_copy(fd, &used, Buffer { at: into.cast(), room: count }, flags) };
    set_errno(before);
    match result {
        Received::Bytes(count) => Some(count as ssize_t),
        Received::Interrupted => {
            set_errno(libc::EINTR);
            Some(-1)
        }
        Received::Nothing => None,
    }
}

enum Received {
    Bytes(usize),
    Interrupted,
    Nothing,
}

/// # Safety
/// The buffer is the caller's.
unsafe fn receive_copy(fd: c_int, used: &Used, mut into: Buffer, flags: c_int) -> Received {
    if !used.is_right(fd) {
        return Received::Nothing;
    }
    let Block { down, talk, .. } = used.block;
    let pair = Pair(fd);
    let deliver_kept = |into: &mut Buffer| {
        if !down.has_kept() {
            return None;
        }
        match down.deliver_kept(|| pair.is_read_empty(), into) {
            Delivery::Bytes(count) => Some(count),
            Delivery::No => None,
        }
    };
    if flags & !(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) == 0 && into.room > 0 {
        // What is here already is for those as well who do not wait.
        if let Some(count) = deliver_kept(&mut into) {
            return Received::Bytes(count);
        }
    }
    if flags & !libc::MSG_NOSIGNAL != 0 || into.room == 0 || used.is_kernels() || descriptor::is_nonblocking(fd) {
        talk.set_listens(false);
        return Received::Nothing;
    }
    let began_ns = now_ns();
    let (patience_ns, slept_ns) = (PATIENCE.as_nanos() as u64, SLEPT.as_nanos() as u64);
    let mut now = began_ns;
    loop {
        if let Some(count) = deliver_kept(&mut into) {
            return Received::Bytes(count);
        }
        let seen = down.look();
        let Some(left_ns) = patience_ns.checked_sub(now - began_ns) else { return Received::Nothing };
        let ready = wait([fd, used.socket], left_ns);
        let waited_ns = now_ns() - now;
        now += waited_ns;
        match ready {
            Ready::Signal => match signals::wish() {
                Wish::GoOn => {}
                Wish::End => return Received::Interrupted,
                Wish::Mixed => {
                    used.leave_to_kernel();
                    return Received::Interrupted;
                }
            },
            Ready::First => {
                talk.set_listens(waited_ns > slept_ns);
                return Received::Nothing;
            }
            Ready::Second => {
                let mut datagram = [0; DATAGRAM_MAX];
                let Some(copy) = used.receive(&mut datagram) else { continue };
                talk.hear(&copy, now);
                if let Delivery::Bytes(count) = down.deliver(&copy, seen, &mut into) {
                    talk.set_listens(true);
                    return Received::Bytes(count);
                }
            }
            Ready::None => return Received::Nothing,
        }
    }
}

struct Buffer {
    at: *mut u8,
    room: usize,
}

impl Sink for Buffer {
    fn room(&self) -> usize {
        self.room
    }

    fn put(&mut self, bytes: &[u8]) {
        // SAFETY: the program's buffer has room for `room` bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len()) };
    }
}

enum Ready {
    First,
    Second,
    Signal,
    None,
}

/// Sleeps until one of two descriptors has something to read. A raw call: a thread is not cancelled in the middle of it.
fn wait(fds: [c_int; 2], left_ns: u64) -> Ready {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN | libc::POLLRDHUP, revents: 0 });
    let left = libc::timespec { tv_sec: 0, tv_nsec: left_ns as libc::c_long };
    // SAFETY: both structures outlive the call.
    let count = unsafe { libc::syscall(libc::SYS_ppoll, polled.as_mut_ptr(), 2, &raw const left, 0, 0) };
    match polled.map(|polled| polled.revents != 0) {
        _ if count < 0 => Ready::Signal,
        [true, _] => Ready::First,
        [false, true] => Ready::Second,
        [false, false] => Ready::None,
    }
}

fn now_ns() -> u64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64
}
