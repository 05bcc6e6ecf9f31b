//! Early copies of small messages, from this program straight to the peer's; what they are is told in `ri2n-express`.
//!
//! A number that `connect` or `accept` made a stream of RI2N is watched: once the program has taken turns on it (read a little,
//! wrote a little) [`TURNS`] times, the broker is asked for the block of memory and the socket, and from then on small
//! messages go and come by copies where they can. All else is the kernel's, as are calls that are not seen here.
//!
//! ```text
//!  send     ring, or pair ─▶ copy             (message of at most 1 KiB, pair empty)
//!  wait     for pair or copy ─▶ keep the copy, if it is the next
//!  receive  what is kept, or a copy, if it is the next; else the C library's call
//! ```

use std::{slice, time::Duration};

use libc::{c_int, c_void, iovec, size_t, ssize_t};
use ri2n_express::{Block, Copy, DATAGRAM_MAX, Delivery, MESSAGE_MAX, Pair, Sent, Sink, encode};

use crate::{
    clock::now_ns,
    descriptor,
    errno::{errno, set_errno},
    parts::{self, Parts},
    signals::{self, Wish},
    slot::{Datagram, Slot, Used, slot},
};

/// How long a reader waits for a copy before it waits in the C library's own call, which copies cannot wake.
const PATIENCE: Duration = Duration::from_millis(20);
/// A wait that took longer has slept: what it found was not there before.
const SLEPT: Duration = Duration::from_micros(3);
/// How often the processor is left to a broker that is in the middle of passing bytes on.
const YIELDS_MAX: u32 = 1000;
/// Datagrams that are taken off a socket at one time.
const DATAGRAMS_MAX: u32 = 64;
/// Flags of `send` that change nothing where a message never waits.
const SEND_FLAGS: c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
/// Flags of `recv` that are known here.
const RECEIVE_FLAGS: c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_PEEK;

/// Sends a small message, if that can be done here.
///
/// # Safety
/// As `send(2)`.
#[inline]
pub(crate) unsafe fn send(fd: c_int, from: *const c_void, count: size_t, flags: c_int) -> Option<ssize_t> {
    let slot = slot(fd)?;
    if !(1..=MESSAGE_MAX).contains(&count) || flags & !SEND_FLAGS != 0 || from.is_null() {
        slot.break_off();
        return None;
    }
    // SAFETY: the caller vouches for the bytes.
    send_bytes(fd, slot, unsafe { slice::from_raw_parts(from.cast(), count) })
}

/// As [`send`], from several parts.
///
/// # Safety
/// As `writev(2)`.
#[inline]
pub(crate) unsafe fn send_parts(fd: c_int, parts: *const iovec, count: usize, flags: c_int) -> Option<ssize_t> {
    let slot = slot(fd)?;
    let mut bytes = [0; MESSAGE_MAX];
    // SAFETY: the caller vouches for the parts.
    let message = unsafe { parts::of(parts, count).and_then(|parts| parts::gather(parts, &mut bytes)) };
    let Some(message) = message.filter(|_| flags & !SEND_FLAGS == 0) else {
        slot.break_off();
        return None;
    };
    send_bytes(fd, slot, message)
}

fn send_bytes(fd: c_int, slot: &'static Slot, bytes: &[u8]) -> Option<ssize_t> {
    let before = errno();
    let is_sent = send_copy(fd, slot, bytes);
    set_errno(before);
    is_sent.then_some(bytes.len() as ssize_t)
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
        Sent::Somewhere => {
            talk.stop_relying();
            return true;
        }
        Sent::No => {
            talk.stop_relying();
            return false;
        }
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
    // SAFETY: the caller vouches for the buffer.
    unsafe { receive_into(fd, &used, &parts::one(into, count), flags) }
}

/// As [`receive`], into several parts.
///
/// # Safety
/// As `readv(2)`.
#[inline]
pub(crate) unsafe fn receive_parts(fd: c_int, parts: *const iovec, count: usize, flags: c_int) -> Option<ssize_t> {
    let used = slot(fd)?.enter()?;
    // SAFETY: the caller vouches for the parts.
    unsafe { receive_into(fd, &used, parts::of(parts, count)?, flags) }
}

/// # Safety
/// The parts are the caller's.
unsafe fn receive_into(fd: c_int, used: &Used, parts: &[iovec], flags: c_int) -> Option<ssize_t> {
    let before = errno();
    // SAFETY: the caller vouches for the parts.
    let result = receive_copy(fd, used, &mut unsafe { Parts::new(parts) }, flags);
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

fn receive_copy(fd: c_int, used: &Used, into: &mut Parts<'_>, flags: c_int) -> Received {
    if !used.is_stream(fd) {
        return Received::Nothing;
    }
    if flags & !RECEIVE_FLAGS != 0 || into.room() == 0 {
        used.block.talk.set_listens(false);
        return Received::Nothing;
    }
    let looks = flags & libc::MSG_PEEK != 0;
    // What is here already is for those as well who do not wait.
    if let Some(count) = deliver_kept(fd, used, into, looks) {
        return Received::Bytes(count);
    }
    if !used.has_socket(fd) {
        return Received::Nothing;
    }
    if flags & libc::MSG_DONTWAIT != 0 || descriptor::is_nonblocking(fd) {
        return receive_at_once(fd, used, into, looks);
    }
    if looks || used.is_kernels() {
        let received = receive_at_once(fd, used, into, looks);
        if matches!(received, Received::Nothing) {
            used.block.talk.set_listens(false);
        }
        return received;
    }
    receive_patiently(fd, used, into)
}

/// Receives what is kept, if it is next. Bytes that a program has been told of it gets, here or by the pair, though the broker be in
/// the middle of passing them on.
fn deliver_kept(fd: c_int, used: &Used, into: &mut Parts<'_>, looks: bool) -> Option<usize> {
    let Block { down, .. } = used.block;
    if !down.has_kept() {
        return None;
    }
    let is_pair_empty = || Pair(fd).is_read_empty();
    let mut received = None;
    for _ in 0..YIELDS_MAX {
        let delivery = if looks { down.peek_kept(is_pair_empty, into) } else { down.deliver_kept(is_pair_empty, into) };
        if let Delivery::Bytes(count) = delivery {
            received = Some(count);
            break;
        }
        if !is_pair_empty() || !(down.is_passing() || down.kept_next() > 0) {
            break;
        }
        // SAFETY: no memory is involved.
        unsafe { libc::sched_yield() };
    }
    used.note_kept();
    received
}

/// Receives a copy that is here, if the pair is empty.
fn receive_at_once(fd: c_int, used: &Used, into: &mut Parts<'_>, looks: bool) -> Received {
    let Block { down, talk, .. } = used.block;
    let mut datagram = [0; DATAGRAM_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let seen = down.look();
        let copy = match used.receive(&mut datagram) {
            Datagram::Copy(copy) => copy,
            Datagram::Other => continue,
            Datagram::Nothing => break,
        };
        talk.hear(&copy, now_ns());
        if looks || !Pair(fd).is_read_empty() {
            let count = down.hold(&copy);
            used.note_kept();
            if count == 0 {
                continue;
            }
            return deliver_kept(fd, used, into, looks).map_or(Received::Nothing, Received::Bytes);
        }
        if let Delivery::Bytes(count) = down.deliver(&copy, seen, into) {
            used.note_copy_found();
            return Received::Bytes(count);
        }
        used.note_kept();
    }
    Received::Nothing
}

/// Waits a while for the pair or a copy.
fn receive_patiently(fd: c_int, used: &Used, into: &mut Parts<'_>) -> Received {
    let Block { down, talk, .. } = used.block;
    let began_ns = now_ns();
    let (patience_ns, slept_ns) = (PATIENCE.as_nanos() as u64, SLEPT.as_nanos() as u64);
    let mut now = began_ns;
    loop {
        if let Some(count) = deliver_kept(fd, used, into, false) {
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
                used.note_pair(fd, waited_ns > slept_ns);
                return Received::Nothing;
            }
            Ready::Second => {
                let mut datagram = [0; DATAGRAM_MAX];
                let Datagram::Copy(copy) = used.receive(&mut datagram) else { continue };
                talk.hear(&copy, now);
                if let Delivery::Bytes(count) = down.deliver(&copy, seen, into) {
                    used.note_copy();
                    return Received::Bytes(count);
                }
                used.note_kept();
            }
            Ready::None => return Received::Nothing,
        }
    }
}

/// How many copies are taken off a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Up to the one that is next.
    One,
    /// All.
    All,
}

/// Takes copies off a stream's socket and keeps what can be read. Returns whether bytes are kept that come next.
pub(crate) fn take(fd: c_int, used: &Used, extent: Extent) -> bool {
    let before = errno();
    let count = if used.is_right(fd) { take_copies(used, extent) } else { 0 };
    set_errno(before);
    count > 0
}

fn take_copies(used: &Used, extent: Extent) -> usize {
    let Block { down, talk, .. } = used.block;
    let mut count = used.kept_next();
    let mut datagram = [0; DATAGRAM_MAX];
    for _ in 0..DATAGRAMS_MAX {
        if count > 0 && extent == Extent::One {
            break;
        }
        match used.receive(&mut datagram) {
            Datagram::Copy(copy) => {
                talk.hear(&copy, now_ns());
                count = down.hold(&copy);
            }
            Datagram::Other => {}
            Datagram::Nothing => break,
        }
    }
    if count > 0 {
        used.note_copy()
    } else {
        used.note_kept()
    }
    count
}

/// How many bytes can be read that are not in the pair; asked when the pair is empty.
pub(crate) fn readable(fd: c_int) -> usize {
    let Some(used) = slot(fd).and_then(Slot::enter) else { return 0 };
    let before = errno();
    let count = if used.is_right(fd) { take_copies(&used, Extent::One) } else { 0 };
    set_errno(before);
    count
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
