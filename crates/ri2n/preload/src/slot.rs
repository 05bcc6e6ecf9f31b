//! What is known of descriptor numbers that are streams of RI2N, and of the memory and the socket that serve their copies.
//!
//! Numbers are reused behind our back (by `fclose`, raw system calls, another process's habits), so before each use the kernel is
//! asked for the cookies of both sockets: a number that is another socket by now is forgotten.

use std::{
    ptr,
    sync::{
        OnceLock,
        atomic::{
            AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
};

use libc::{c_int, ssize_t};
use ri2n_express::{Block, Copy, DATAGRAM_MAX, MESSAGE_MAX, Map};
use ri2n_session::{Operation, Verdict};

use crate::{
    ask::{self, Question, ask},
    descriptor::{self, HIDDEN_FROM, cookie},
    errno::{errno, set_errno},
    process, sandbox,
    signals::{self, Wish},
    table::Table,
};

/// Turns of a conversation before copies are asked for.
const TURNS: u32 = 16;
/// Small messages that come by the pair one after the other, before the peer is told that copies are not seen here.
const MISSED_MAX: u32 = 8;

/// What is known of a number. Zeros: nothing.
pub(crate) struct Slot {
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
    /// The program waits in `poll` or `select` before it reads.
    waits_first: AtomicBool,
    /// The program has been told why the stream ended.
    is_told: AtomicBool,
    /// Something may be kept of copies; counted in [`KEPT`].
    has_kept: AtomicBool,
    /// Small messages that came by the pair since the last one that came by a copy.
    missed: AtomicU32,
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

/// What is to be told of copies: instances of epoll, which wait for them.
pub(crate) struct CopyEvents {
    /// Copies of a stream begin, at a socket.
    pub(crate) begin: fn(fd: c_int, socket: c_int),
    /// Copies of a stream have ended; the socket is this process's own, if it is given.
    pub(crate) end: fn(fd: c_int, socket: Option<c_int>),
    /// Whether an instance waits for copies of a stream.
    pub(crate) is_watched: fn(fd: c_int) -> bool,
}

static EVENTS: OnceLock<&'static CopyEvents> = OnceLock::new();

/// Says who is told of copies; called once, while the program is loaded.
pub(crate) fn tell_of_copies(events: &'static CopyEvents) {
    let _ = EVENTS.set(events);
}

static SLOTS: Table<Slot> = Table::new();
/// Slots that have a block.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
/// Slots of which something may be kept.
static KEPT: AtomicU32 = AtomicU32::new(0);

/// Whether any stream of this process has copies: what is asked before anything else.
#[inline]
pub(crate) fn is_any_active() -> bool {
    ACTIVE.load(Relaxed) != 0
}

/// Whether something may be kept of any stream's copies.
pub(crate) fn is_any_kept() -> bool {
    KEPT.load(Relaxed) != 0
}

/// Notes that a number is a stream of RI2N now, and whether receiving has a time limit.
pub(crate) fn note(fd: c_int, has_time_limit: bool) {
    if sandbox::is_on() {
        return;
    }
    let Some(slot) = SLOTS.make(fd) else { return };
    slot.forget(fd);
    // One that is still there is that of the process whose memory this is.
    if !slot.block.load(SeqCst).is_null() {
        return;
    }
    slot.turns.store(0, SeqCst);
    slot.has_received.store(false, SeqCst);
    slot.is_settled.store(false, SeqCst);
    slot.is_told.store(false, SeqCst);
    slot.missed.store(0, SeqCst);
    slot.waits_first.store(false, SeqCst);
    slot.is_kernels.store(has_time_limit, SeqCst);
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
        slot.forget(fd);
        set_errno(before);
    }
}

/// A stream's block, if it has one.
#[inline]
pub(crate) fn enter(fd: c_int) -> Option<Used> {
    slot(fd)?.enter()
}

/// Whose a stream's block and socket are.
pub(crate) enum Owner {
    /// This process asked for them, or nobody did: the socket, or none.
    This(c_int),
    /// Those of the process that this one was forked from: it has copies of both.
    Parent,
    /// Those of the process whose memory this one uses, after `vfork`.
    Lent,
}

/// Whose the block of a number is.
pub(crate) fn owner(fd: c_int) -> Owner {
    let Some(slot) = SLOTS.find(fd).filter(|slot| !slot.block.load(SeqCst).is_null()) else { return Owner::This(-1) };
    let process = slot.process.load(SeqCst);
    if process == process::id() {
        Owner::This(slot.socket.load(SeqCst))
    } else if process::is_borrowed(process) {
        Owner::Lent
    } else {
        Owner::Parent
    }
}

/// Notes what the C library's call received. Nothing, on a descriptor that does not wait, is no message.
pub(crate) fn received(fd: c_int, count: ssize_t) {
    let Some(slot) = slot(fd).filter(|_| count >= 0) else { return };
    let is_small = (1..=MESSAGE_MAX as ssize_t).contains(&count);
    slot.has_received.store(is_small, SeqCst);
    if is_small && is_any_active() && slot.missed.fetch_add(1, Relaxed) == MISSED_MAX {
        if let Some(used) = slot.enter() {
            used.block.talk.set_listens(false);
        }
    }
}

/// Whose bytes a call of the C library reads, by the token of its copies.
pub(crate) struct Reading(Option<u64>);

/// The C library's call is about to read a number, of which it was asked just now whether it is still the stream.
pub(crate) fn begin_read(fd: c_int) -> Reading {
    let used = if is_any_active() { enter(fd) } else { None };
    Reading(used.map(|used| {
        used.block.down.begin_read();
        used.block.token_in()
    }))
}

/// It has.
pub(crate) fn end_read(fd: c_int, reading: &Reading, count: ssize_t) {
    let Some(token) = reading.0 else { return };
    // While it waited, the number may have become another stream.
    if let Some(used) = enter(fd).filter(|used| used.block.token_in() == token) {
        used.block.down.end_read(usize::try_from(count).unwrap_or(0));
    }
}

/// Notes that the program is told why a stream ended; whether it had been told before.
pub(crate) fn tell(fd: c_int) -> bool {
    slot(fd).is_some_and(|slot| slot.is_told.swap(true, SeqCst))
}

/// A block that stays mapped while this lives.
pub(crate) struct Used {
    slot: &'static Slot,
    pub(crate) block: &'static Block,
    pub(crate) socket: c_int,
}

/// What a look at the socket of copies found.
pub(crate) enum Datagram<'a> {
    Copy(Copy<'a>),
    /// Something else: from others, or an error that the kernel held.
    Other,
    /// It is empty.
    Nothing,
}

impl Used {
    /// Whether both numbers are still what they were.
    pub(crate) fn is_right(&self, fd: c_int) -> bool {
        self.is_stream(fd) && self.has_socket(fd)
    }

    /// Whether the program's number is still the stream.
    pub(crate) fn is_stream(&self, fd: c_int) -> bool {
        self.is_still(fd, cookie(fd) == self.slot.cookie.load(SeqCst))
    }

    /// Whether the socket's number is still the socket.
    pub(crate) fn has_socket(&self, fd: c_int) -> bool {
        self.is_still(fd, cookie(self.socket) == self.slot.socket_cookie.load(SeqCst))
    }

    fn is_still(&self, fd: c_int, is_right: bool) -> bool {
        if !is_right {
            self.slot.forget(fd);
        }
        is_right
    }

    /// A read has found bytes in the pair, and has slept until they came or not.
    pub(crate) fn note_pair(&self, fd: c_int, has_slept: bool) {
        if has_slept {
            self.slot.waits_first.store(false, Relaxed);
        }
        let listens = has_slept
            || self.slot.waits_first.load(Relaxed)
            || EVENTS.get().is_some_and(|events| (events.is_watched)(fd));
        self.block.talk.set_listens(listens);
    }

    /// Bytes came by a copy, which has ended a wait.
    pub(crate) fn note_copy(&self) {
        self.block.talk.set_listens(true);
        self.note_copy_found();
    }

    /// Bytes came by a copy, which was found by who did not wait for it.
    pub(crate) fn note_copy_found(&self) {
        self.slot.missed.store(0, Relaxed);
        self.note_kept();
    }

    /// The program waits in calls that see copies, before it reads.
    pub(crate) fn listen(&self) {
        if !self.slot.waits_first.load(Relaxed) {
            self.slot.waits_first.store(true, Relaxed);
        }
        if !self.block.talk.listens() {
            self.slot.missed.store(0, Relaxed);
            self.block.talk.set_listens(true);
        }
    }

    /// Notes whether something is kept.
    pub(crate) fn note_kept(&self) {
        let has_kept = self.block.down.has_kept();
        if self.slot.has_kept.load(Relaxed) != has_kept {
            self.slot.set_kept(has_kept);
        }
    }

    /// How many bytes are kept that come next, as far as this process has noted.
    pub(crate) fn kept_next(&self) -> usize {
        if !self.slot.has_kept.load(Relaxed) {
            return 0;
        }
        let count = self.block.down.kept_next();
        self.note_kept();
        count
    }

    pub(crate) fn is_kernels(&self) -> bool {
        self.slot.is_kernels.load(SeqCst)
    }

    pub(crate) fn leave_to_kernel(&self) {
        self.slot.is_kernels.store(true, SeqCst);
    }

    /// Takes one datagram off the socket.
    pub(crate) fn receive<'a>(&self, datagram: &'a mut [u8; DATAGRAM_MAX]) -> Datagram<'a> {
        let (at, room) = (datagram.as_mut_ptr(), datagram.len());
        // SAFETY: the buffer is as long as it says.
        let count = unsafe { libc::syscall(libc::SYS_recvfrom, self.socket, at, room, libc::MSG_DONTWAIT, 0, 0) };
        match usize::try_from(count) {
            Ok(count) => {
                Copy::decode(&datagram[..count], self.block.token_in()).map_or(Datagram::Other, Datagram::Copy)
            }
            Err(_) if errno() == libc::EAGAIN => Datagram::Nothing,
            Err(_) => Datagram::Other,
        }
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
    pub(crate) fn enter(&'static self) -> Option<Used> {
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

    /// What is sent is no small message: the conversation begins anew.
    pub(crate) fn break_off(&'static self) {
        self.turns.store(0, SeqCst);
        if let Some(used) = self.enter() {
            used.block.talk.stop_relying();
        }
    }

    /// A small message is sent: after something small was received, that is a turn.
    pub(crate) fn take_turn(&self, fd: c_int) {
        if !self.has_received.swap(false, SeqCst) || self.turns.fetch_add(1, SeqCst) + 1 < TURNS {
            return;
        }
        self.turns.store(0, SeqCst);
        // Who does not wait in `recv` has neither time limits nor interruptions there.
        let can_wait = || !self.is_kernels.load(SeqCst) && signals::wish() != Wish::Mixed;
        let is_fit = cookie(fd) == self.cookie.load(SeqCst) && (descriptor::is_nonblocking(fd) || can_wait());
        if is_fit && !self.is_settled.swap(true, SeqCst) {
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
                process::mark();
                self.process.store(process::id(), SeqCst);
                self.block.store(Map::into_raw(map), SeqCst);
                ACTIVE.fetch_add(1, SeqCst);
                if let Some(events) = EVENTS.get() {
                    (events.begin)(fd, socket);
                }
            }
            (_, Some(socket)) => descriptor::close(socket),
            _ => {}
        }
    }

    /// The number is not that stream any more.
    fn forget(&self, fd: c_int) {
        let process = self.process.load(SeqCst);
        if !self.block.load(SeqCst).is_null() && process::is_borrowed(process) {
            // A child after `vfork`: what it closes is closed for itself alone.
            return;
        }
        self.cookie.store(0, SeqCst);
        let block = self.block.swap(ptr::null_mut(), SeqCst);
        if block.is_null() {
            return;
        }
        ACTIVE.fetch_sub(1, SeqCst);
        self.set_kept(false);
        let socket = self.socket.load(SeqCst);
        // A registration that a child has from its parent is the parent's as well.
        if let Some(events) = EVENTS.get() {
            (events.end)(fd, (process == process::id()).then_some(socket));
        }
        if cookie(socket) == self.socket_cookie.load(SeqCst) {
            descriptor::close(socket);
        }
        // One that is still in use from before is lost: pages, not correctness.
        self.retired.store(block, SeqCst);
        if self.users.load(SeqCst) == 0 {
            self.unmap();
        }
    }

    fn set_kept(&self, has_kept: bool) {
        match (self.has_kept.swap(has_kept, SeqCst), has_kept) {
            (false, true) => _ = KEPT.fetch_add(1, SeqCst),
            (true, false) => _ = KEPT.fetch_sub(1, SeqCst),
            _ => {}
        }
    }

    fn unmap(&self) {
        let block = self.retired.swap(ptr::null_mut(), SeqCst);
        // SAFETY: it came from `into_raw`, was taken out once, and nobody is counted as its user.
        drop(unsafe { Map::from_raw(block) });
    }
}

pub(crate) fn slot(fd: c_int) -> Option<&'static Slot> {
    // Under a filter of system calls even what is known is left alone, down to the descriptors that it takes.
    SLOTS.find(fd).filter(|slot| slot.cookie.load(SeqCst) != 0 && !sandbox::is_on())
}
