//! Early copies of small messages, from this program straight to the peer's; what they are is told in `ri2n-express`.
//!
//! A number that `connect` or `accept` made a stream of RI2N is watched: once the program has taken turns on it (read a little,
//! wrote a little) [`TURNS`] times, the broker is asked for the block of memory and the socket, and from then on small
//! messages go and come by copies where they can. All else is the kernel's, as are calls that are not seen here.
//!
//! Numbers are reused behind our back (by `fclose`, raw system calls, another process's habits), so before each use the kernel is
//! asked for the cookies of both sockets: a number that is another socket by now is forgotten.
//!
//! ```text
//!  send     ring, or pair ─▶ copy             (message of at most 1 KiB, pair empty)
//!  receive  wait for pair or copy ─▶ copy, if it is the next; else the C library's call
//! ```

use std::{
    mem, ptr, slice,
    sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use libc::{c_int, c_void, size_t, ssize_t};
use ri2n_express::{Block, Copy, DATAGRAM_MAX, Delivery, MESSAGE_MAX, Map, Said, Sink, encode};
use ri2n_session::{Operation, Verdict};

use crate::{
    ask::{self, Question, ask},
    descriptor::{self, errno, set_errno},
    signals::{self, Wish},
    table::Table,
};

/// Turns of a conversation before copies are asked for.
const TURNS: u32 = 16;
/// How long a reader waits for a copy before it waits in the C library's own call, which copies cannot wake.
const PATIENCE: Duration = Duration::from_millis(20);
/// A wait that took longer has slept: what it found was not there before.
const SLEPT: Duration = Duration::from_micros(3);
/// Numbers from here on are for descriptors that the program knows nothing of, if its limit allows.
const HIDDEN_FROM: c_int = 512;

/// What is known of a number. Zeros: nothing.
struct Slot {
    /// Of the stream's socket.
    cookie: AtomicU64,
    /// Turns so far.
    turns: AtomicU32,
    /// Whether the last small thing was received.
    has_received: AtomicBool,
    /// Somebody asks the broker, or it said no.
    is_settled: AtomicBool,
    /// Receiving is left to the kernel, which knows what is not known here: time limits, which handlers interrupt.
    is_kernels: AtomicBool,
    /// Threads that use the block.
    users: AtomicU32,
    block: AtomicPtr<Block>,
    /// A block that is given up once nobody uses it.
    retired: AtomicPtr<Block>,
    socket: AtomicI32,
    socket_cookie: AtomicU64,
    /// The process that asked for the block: a child after `vfork` has the same memory, and other descriptors.
    process: AtomicI32,
}

static SLOTS: Table<Slot> = Table::new();

/// Notes that a number is a stream of RI2N now.
pub(crate) fn note(fd: c_int) {
    let Some(slot) = SLOTS.make(fd) else { return };
    slot.forget();
    // One from before `fork` that is still there belongs to another stream. Its pages and its socket stay until we end.
    slot.block.store(ptr::null_mut(), SeqCst);
    slot.turns.store(0, SeqCst);
    slot.has_received.store(false, SeqCst);
    slot.is_settled.store(false, SeqCst);
    slot.is_kernels.store(descriptor::has_time_limit(fd), SeqCst);
    slot.cookie.store(cookie(fd), SeqCst);
}

/// Notes that the program has set a time limit, or taken it away.
pub(crate) fn note_time_limit(fd: c_int) {
    if let Some(slot) = slot(fd) {
        slot.is_kernels.store(descriptor::has_time_limit(fd), SeqCst);
    }
}

/// The program is about to close a number.
pub(crate) fn close(fd: c_int) {
    if let Some(slot) = slot(fd) {
        let before = errno();
        slot.forget();
        set_errno(before);
    }
}

/// Notes what the C library's call received.
pub(crate) fn received(fd: c_int, count: ssize_t) {
    if let Some(slot) = slot(fd) {
        slot.has_received.store((1..=MESSAGE_MAX as ssize_t).contains(&count), SeqCst);
    }
}

/// Sends a small message, if that can be done here.
///
/// # Safety
/// As `send(2)`.
#[inline]
pub(crate) unsafe fn send(fd: c_int, from: *const c_void, count: size_t, flags: c_int) -> Option<ssize_t> {
    let slot = slot(fd)?;
    if !(1..=MESSAGE_MAX).contains(&count) || flags & !(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) != 0 || from.is_null()
    {
        slot.turns.store(0, SeqCst);
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
    let write_pair = || {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the bytes are live.
        unsafe { libc::syscall(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), flags, 0, 0) == bytes.len() as i64 }
    };
    let said = used.block.up.say(bytes, || is_heard, || waiting(fd, libc::TIOCOUTQ) == Some(0), write_pair);
    let (Said::Ring(offset) | Said::Pair(offset)) = said else { return false };
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
    if flags & !libc::MSG_NOSIGNAL != 0 || into.room == 0 || used.is_kernels() || descriptor::is_nonblocking(fd) {
        talk.set_listens(false);
        return Received::Nothing;
    }
    let began_ns = now_ns();
    let (patience_ns, slept_ns) = (PATIENCE.as_nanos() as u64, SLEPT.as_nanos() as u64);
    let mut now = began_ns;
    loop {
        if let Delivery::Bytes(count) = down.deliver_kept(|| waiting(fd, libc::FIONREAD) == Some(0), &mut into) {
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

/// A block that stays mapped while this lives.
struct Used {
    slot: &'static Slot,
    block: &'static Block,
    socket: c_int,
}

impl Used {
    /// Whether both numbers are still what they were.
    fn is_right(&self, fd: c_int) -> bool {
        let is_right =
            cookie(fd) == self.slot.cookie.load(SeqCst) && cookie(self.socket) == self.slot.socket_cookie.load(SeqCst);
        if !is_right {
            self.slot.forget();
        }
        is_right
    }

    fn is_kernels(&self) -> bool {
        self.slot.is_kernels.load(SeqCst)
    }

    fn leave_to_kernel(&self) {
        self.slot.is_kernels.store(true, SeqCst);
    }

    fn receive<'a>(&self, datagram: &'a mut [u8; DATAGRAM_MAX]) -> Option<Copy<'a>> {
        let (at, room) = (datagram.as_mut_ptr(), datagram.len());
        // SAFETY: the buffer is as long as it says.
        let count = unsafe { libc::syscall(libc::SYS_recvfrom, self.socket, at, room, libc::MSG_DONTWAIT, 0, 0) };
        let count = usize::try_from(count).ok()?;
        Copy::decode(&datagram[..count], self.block.token_in())
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if self.slot.users.fetch_sub(1, SeqCst) == 1 && !self.slot.retired.load(SeqCst).is_null() {
            self.slot.unmap();
        }
    }
}

impl Slot {
    fn enter(&'static self) -> Option<Used> {
        if self.block.load(SeqCst).is_null() {
            return None;
        }
        // Counted before it is looked at again: who retires the block looks at the count afterwards.
        self.users.fetch_add(1, SeqCst);
        let block = self.block.load(SeqCst);
        if block.is_null() {
            self.users.fetch_sub(1, SeqCst);
            return None;
        }
        // SAFETY: mapped until the count falls to zero, which is after `Used` is gone.
        Some(Used { slot: self, block: unsafe { &*block }, socket: self.socket.load(SeqCst) })
    }

    /// A small message is sent: after something small was received, that is a turn.
    fn take_turn(&self, fd: c_int) {
        if !self.has_received.swap(false, SeqCst) || self.turns.fetch_add(1, SeqCst) + 1 < TURNS {
            return;
        }
        self.turns.store(0, SeqCst);
        let is_fit =
            cookie(fd) == self.cookie.load(SeqCst) && !descriptor::is_nonblocking(fd) && signals::wish() != Wish::Mixed;
        if is_fit && !self.is_kernels.load(SeqCst) && !self.is_settled.swap(true, SeqCst) {
            self.attach(fd);
        }
    }

    /// Asks the broker for the block and the socket.
    fn attach(&self, fd: c_int) {
        let Some(name) = descriptor::name(fd) else { return };
        let question = Question { operation: Operation::Express, id: name.id, ..Question::default() };
        let reply = match ask(&question) {
            Ok(reply) => reply,
            Err(ask::Silent::Interrupted) => return self.is_settled.store(false, SeqCst),
            Err(_) => return,
        };
        let map = reply.descriptor.filter(|_| reply.answer.verdict == Verdict::Ready).and_then(descriptor::map);
        let socket = reply.second.and_then(|socket| descriptor::duplicate_from(socket, HIDDEN_FROM));
        for given in [reply.descriptor, reply.second].into_iter().flatten() {
            descriptor::close(given);
        }
        match (map, socket) {
            (Some(map), Some(socket)) => {
                self.socket.store(socket, SeqCst);
                self.socket_cookie.store(cookie(socket), SeqCst);
                self.process.store(process(), SeqCst);
                self.block.store(Map::into_raw(map), SeqCst);
            }
            (_, Some(socket)) => descriptor::close(socket),
            _ => {}
        }
    }

    /// The number is not that stream any more.
    fn forget(&self) {
        if !self.block.load(SeqCst).is_null() && self.process.load(SeqCst) != process() {
            // A child's: what it closes is closed for itself alone. Its own mapping goes with it.
            return;
        }
        self.cookie.store(0, SeqCst);
        let block = self.block.swap(ptr::null_mut(), SeqCst);
        if block.is_null() {
            return;
        }
        let socket = self.socket.load(SeqCst);
        if cookie(socket) == self.socket_cookie.load(SeqCst) {
            descriptor::close(socket);
        }
        // One that is still in use from before is lost: pages, not correctness.
        self.retired.store(block, SeqCst);
        if self.users.load(SeqCst) == 0 {
            self.unmap();
        }
    }

    fn unmap(&self) {
        let block = self.retired.swap(ptr::null_mut(), SeqCst);
        // SAFETY: it came from `into_raw`, was taken out once, and nobody is counted as its user.
        drop(unsafe { Map::from_raw(block) });
    }
}

fn slot(fd: c_int) -> Option<&'static Slot> {
    SLOTS.find(fd).filter(|slot| slot.cookie.load(SeqCst) != 0)
}

/// What the kernel calls a socket, never to call another so; zero if the number is none.
fn cookie(fd: c_int) -> u64 {
    let (mut cookie, mut length) = (0_u64, mem::size_of::<u64>() as libc::socklen_t);
    let (value, length) = (ptr::from_mut(&mut cookie), ptr::from_mut(&mut length));
    // SAFETY: the value has the length that is told.
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, libc::SO_COOKIE, value, length) };
    cookie
}

/// Bytes that wait in a pair: to be read here (`FIONREAD`), or at the other end (`TIOCOUTQ`).
fn waiting(fd: c_int, which: libc::Ioctl) -> Option<c_int> {
    let mut count: c_int = 0;
    // SAFETY: the call fills one integer.
    let result = unsafe { libc::syscall(libc::SYS_ioctl, fd, which, ptr::from_mut(&mut count)) };
    (result == 0).then_some(count)
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

fn process() -> c_int {
    // SAFETY: no memory is involved.
    unsafe { libc::getpid() }
}
