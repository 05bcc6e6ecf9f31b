//! The sockets of early copies beside their streams in the program's epoll instances.
//!
//! A stream that an instance watches for reading has its copies' socket in the same instance, with the same data, so that a copy
//! ends `epoll_wait`. The socket's events have a bit more (`EPOLLRDNORM`), by which they are told from the stream's own.
//! The program is shown neither: [`sift`] takes the copies off the socket, and makes one event of those of a stream, if bytes are
//! there to be read; otherwise none.
//!
//! ```text
//!  kernel   { socket: IN RDNORM, data }  { stream: OUT, data }
//!  program  { IN OUT, data }
//! ```
//!
//! A registration with `EPOLLONESHOT` gives one event until it is armed again, from whichever of the two.
//!
//! System calls of the program's own see the socket's events as they are: `EPOLLIN` with the stream's data.

use std::{
    slice,
    sync::atomic::{
        AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
};

use libc::{c_int, epoll_event};

use crate::{
    descriptor,
    epoll::{self, Registration},
    errno::{errno, set_errno},
    express::{self, Extent},
    real,
    slot::{self, CopyEvents, Owner},
};

/// What slots tell this file.
pub(crate) static COPIES: CopyEvents = CopyEvents { begin, end, is_watched };

/// Sockets in epoll instances at a time; the streams of others are woken by the pair alone.
const WATCHES_MAX: usize = 256;

const IN: u32 = libc::EPOLLIN as u32;
const ERR: u32 = libc::EPOLLERR as u32;
const ET: u32 = libc::EPOLLET as u32;
const ONESHOT: u32 = libc::EPOLLONESHOT as u32;
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// What tells the socket's events.
const MARK: u32 = libc::EPOLLRDNORM as u32;

/// Of [`Watch::epoll`], where numbers are counted from one: nothing, and what is not complete yet.
const FREE: c_int = 0;
const NEW: c_int = -1;

/// A stream that an instance watches, and its copies' socket with it.
struct Watch {
    epoll: AtomicI32,
    /// Another number of the same instance, plus one, if the program waits at that.
    alias: AtomicI32,
    fd: AtomicI32,
    /// Of the program's registration.
    events: AtomicU32,
    data: AtomicU64,
    /// Whether the program is to have an event yet, if it wants but one.
    is_armed: AtomicBool,
}

static WATCHES: [Watch; WATCHES_MAX] = [const {
    Watch {
        epoll: AtomicI32::new(FREE),
        alias: AtomicI32::new(FREE),
        fd: AtomicI32::new(0),
        events: AtomicU32::new(0),
        data: AtomicU64::new(0),
        is_armed: AtomicBool::new(false),
    }
}; WATCHES_MAX];
/// Entries from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Entries of registrations with `EPOLLONESHOT`.
static ONESHOTS: AtomicU32 = AtomicU32::new(0);

impl Watch {
    fn epoll(&self) -> c_int {
        self.epoll.load(Acquire) - 1
    }

    fn is_in(&self, epoll: c_int) -> bool {
        let epoll = epoll + 1;
        epoll > FREE && (self.epoll.load(Acquire) == epoll || self.alias.load(Relaxed) == epoll)
    }

    fn fd(&self) -> c_int {
        self.fd.load(Relaxed)
    }

    fn is(&self, event: u32) -> bool {
        self.events.load(Relaxed) & event != 0
    }

    /// Whether the program may be told that bytes can be read: not if it has had its only event.
    fn disarm(&self) -> bool {
        !self.is(ONESHOT) || self.is_armed.swap(false, SeqCst)
    }

    /// What the socket is registered with.
    fn socket_event(&self) -> epoll_event {
        epoll_event { events: IN | MARK | self.events.load(Relaxed) & (ET | ONESHOT), u64: self.data.load(Relaxed) }
    }

    fn set(&self, event: &epoll_event) {
        let was = self.events.swap(event.events, SeqCst) & ONESHOT != 0;
        match (was, event.events & ONESHOT != 0) {
            (false, true) => _ = ONESHOTS.fetch_add(1, SeqCst),
            (true, false) => _ = ONESHOTS.fetch_sub(1, SeqCst),
            _ => {}
        }
        self.data.store(event.u64, Relaxed);
        self.is_armed.store(true, SeqCst);
    }

    fn free(&self) {
        self.set(&epoll_event { events: 0, u64: 0 });
        self.alias.store(FREE, Relaxed);
        self.epoll.store(FREE, Release);
    }
}

fn all() -> slice::Iter<'static, Watch> {
    WATCHES[..USED.load(Acquire).min(WATCHES_MAX)].iter()
}

fn of_epoll(epoll: c_int) -> impl Iterator<Item = &'static Watch> {
    all().filter(move |watch| watch.is_in(epoll))
}

fn find(epoll: c_int, fd: c_int) -> Option<&'static Watch> {
    all().find(|watch| watch.epoll() == epoll && watch.fd() == fd)
}

fn of_data(epoll: c_int, data: u64) -> impl Iterator<Item = &'static Watch> {
    of_epoll(epoll).filter(move |watch| watch.data.load(Relaxed) == data)
}

fn make(epoll: c_int, fd: c_int, event: &epoll_event) -> Option<&'static Watch> {
    let (at, watch) = WATCHES.iter().enumerate().find(|(_, watch)| {
        watch.epoll.load(Relaxed) == FREE && watch.epoll.compare_exchange(FREE, NEW, SeqCst, Relaxed).is_ok()
    })?;
    watch.fd.store(fd, Relaxed);
    watch.set(event);
    watch.epoll.store(epoll + 1, Release);
    USED.fetch_max(at + 1, SeqCst);
    Some(watch)
}

/// Whether an instance watches a stream that has copies.
fn is_watched(fd: c_int) -> bool {
    all().any(|watch| watch.epoll() >= 0 && watch.fd() == fd)
}

/// Whether copies can end a wait for these events, and be told from others.
fn is_wanted(events: u32) -> bool {
    events & IN != 0 && events & (MARK | EXCLUSIVE) == 0
}

fn control(epoll: c_int, operation: c_int, fd: c_int, mut event: epoll_event) -> c_int {
    // SAFETY: the event is live.
    unsafe { real::epoll_ctl(epoll, operation, fd, &raw mut event) }
}

/// Adds a socket, or changes its registration. Returns whether the instance has it.
fn put(watch: &Watch, socket: c_int, is_there: Presence) -> bool {
    let (epoll, event) = (watch.epoll(), watch.socket_event());
    let [first, second] = match is_there {
        Presence::Likely => [libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_ADD],
        Presence::Unlikely => [libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD],
    };
    control(epoll, first, socket, event) == 0 || control(epoll, second, socket, event) == 0
}

/// Whether a socket is expected to be in an instance.
#[derive(Clone, Copy)]
enum Presence {
    Likely,
    Unlikely,
}

/// Copies of a stream begin: instances that have the stream get the socket as well. Of a registration with `EPOLLONESHOT` it is
/// not known whether it is armed until the program arms it again.
fn begin(fd: c_int, socket: c_int) {
    let before = errno();
    for Registration { epoll, event } in epoll::registrations(fd) {
        if !is_wanted(event.events) || event.events & ONESHOT != 0 || !has(epoll, fd, event) {
            continue;
        }
        let Some(watch) = make(epoll, fd, &event) else { break };
        complete(watch, socket, Presence::Unlikely);
    }
    set_errno(before);
}

/// Whether an instance has a descriptor. The kernel tells by refusing it once more.
fn has(epoll: c_int, fd: c_int, event: epoll_event) -> bool {
    let event = epoll_event { events: ET | ONESHOT, u64: event.u64 };
    if control(epoll, libc::EPOLL_CTL_ADD, fd, event) == 0 {
        control(epoll, libc::EPOLL_CTL_DEL, fd, event);
        return false;
    }
    errno() == libc::EEXIST
}

fn complete(watch: &Watch, socket: c_int, is_there: Presence) {
    if put(watch, socket, is_there) {
        if let Some(used) = slot::enter(watch.fd()) {
            used.listen();
        }
    } else {
        watch.free();
    }
}

/// Copies of a stream have ended; `socket` is taken out of the instances if it is given.
fn end(fd: c_int, socket: Option<c_int>) {
    for watch in all().filter(|watch| watch.epoll() >= 0 && watch.fd() == fd) {
        if let Some(socket) = socket {
            control(watch.epoll(), libc::EPOLL_CTL_DEL, socket, watch.socket_event());
        }
        watch.free();
    }
}

/// All copies end: the program is about to be allowed few system calls.
pub(crate) fn end_all() {
    let before = errno();
    for watch in all().filter(|watch| watch.epoll() >= 0) {
        if let Some(used) = slot::enter(watch.fd()) {
            control(watch.epoll(), libc::EPOLL_CTL_DEL, used.socket, watch.socket_event());
        }
        watch.free();
    }
    set_errno(before);
}

/// The program closes an instance, if the number is one. Others may have it still: duplicates, or the process that it is from.
pub(crate) fn end_epoll(epoll: c_int) {
    for watch in of_epoll(epoll) {
        match slot::owner(watch.fd()) {
            Owner::Lent => continue,
            Owner::This(socket) => {
                let before = errno();
                control(epoll, libc::EPOLL_CTL_DEL, socket, watch.socket_event());
                set_errno(before);
            }
            Owner::Parent => {}
        }
        watch.free();
    }
}

/// Finds the stream of a socket's event in an instance at which the program waits by another number than it registers by.
fn find_alias(epoll: c_int, data: u64) -> bool {
    let watch = all()
        .filter(|watch| watch.epoll() >= 0 && watch.data.load(Relaxed) == data)
        .find(|watch| slot::enter(watch.fd()).is_some_and(|used| has(epoll, used.socket, watch.socket_event())));
    if let Some(watch) = watch {
        watch.alias.store(epoll + 1, Relaxed);
    }
    watch.is_some()
}

/// What [`prepare`] did, for [`follow`].
pub(crate) struct Prepared {
    watch: Option<&'static Watch>,
    is_new: bool,
}

/// Before the program's `epoll_ctl` for a stream that has copies: what it arms is armed for events that come during the call.
pub(crate) fn prepare(epoll: c_int, operation: c_int, fd: c_int, event: Option<&epoll_event>) -> Prepared {
    let own = find(epoll, fd);
    let wanted = event.filter(|event| operation != libc::EPOLL_CTL_DEL && is_wanted(event.events));
    match (own, wanted) {
        (Some(watch), Some(event)) => {
            let was = watch.socket_event();
            watch.set(event);
            let is = watch.socket_event();
            let is_same = ({ was.events }, { was.u64 }) == ({ is.events }, { is.u64 });
            // Arming again is told to the kernel; that the program waits to write as well is not.
            let stays = is_same && event.events & (ONESHOT | ET) == 0;
            Prepared { watch: own.filter(|_| !stays), is_new: false }
        }
        (None, Some(event)) => Prepared { watch: make(epoll, fd, event), is_new: true },
        (own, None) => Prepared { watch: own, is_new: false },
    }
}

/// After it: the socket's registration follows the stream's.
pub(crate) fn follow(prepared: &Prepared, result: c_int, operation: c_int, event: Option<&epoll_event>) {
    let Some(watch) = prepared.watch else { return };
    let before = errno();
    let is_wanted = operation != libc::EPOLL_CTL_DEL && event.is_some_and(|event| is_wanted(event.events));
    match slot::enter(watch.fd()) {
        Some(used) if result == 0 && is_wanted => {
            complete(watch, used.socket, if prepared.is_new { Presence::Unlikely } else { Presence::Likely });
        }
        Some(used) if result == 0 => {
            control(watch.epoll(), libc::EPOLL_CTL_DEL, used.socket, watch.socket_event());
            watch.free();
        }
        _ if result != 0 && !prepared.is_new => {}
        _ => watch.free(),
    }
    set_errno(before);
}

/// Whether a stream that an instance watches has bytes of copies that come next. Edge-triggered, they have been told already.
pub(crate) fn has_kept(epoll: c_int) -> bool {
    slot::is_any_kept() && of_epoll(epoll).any(is_kept)
}

fn is_kept(watch: &Watch) -> bool {
    !watch.is(ET)
        && (!watch.is(ONESHOT) || watch.is_armed.load(SeqCst))
        && slot::enter(watch.fd()).is_some_and(|used| used.kept_next() > 0)
}

/// Adds events for what [`has_kept`] saw, if there is room. Returns how many there are then.
pub(crate) fn add_kept(epoll: c_int, events: &mut [epoll_event], mut count: usize) -> usize {
    let before = errno();
    for watch in of_epoll(epoll).filter(|watch| is_kept(watch)) {
        let Some(used) = slot::enter(watch.fd()) else { continue };
        // The instance may be another by now, at the same number.
        if !used.is_right(watch.fd()) || !has(epoll, used.socket, watch.socket_event()) {
            watch.free();
            continue;
        }
        count = tell(watch, events, count);
    }
    set_errno(before);
    count
}

/// Tells the program that a stream can be read.
fn tell(watch: &Watch, events: &mut [epoll_event], count: usize) -> usize {
    let data = watch.data.load(Relaxed);
    let same = events[..count].iter_mut().find(|event| { event.u64 } == data && event.events & MARK == 0);
    if let Some(event) = same {
        event.events |= IN;
        return count;
    }
    if count == events.len() || !watch.disarm() {
        return count;
    }
    events[count] = epoll_event { events: IN, u64: data };
    count + 1
}

/// Makes of the kernel's events those that the program is to see, in place. Returns how many.
pub(crate) fn sift(epoll: c_int, events: &mut [epoll_event]) -> usize {
    let before = errno();
    let mut count = 0;
    let has_oneshots = ONESHOTS.load(Relaxed) > 0;
    let mut marked = 0;
    for at in 0..events.len() {
        let mut event = events[at];
        let is_socket =
            event.events & MARK != 0 && (of_data(epoll, event.u64).next().is_some() || find_alias(epoll, event.u64));
        if is_socket {
            // Those of sockets come to the end: by then it is known what the streams themselves say.
            marked += 1;
        } else {
            if event.events & ERR != 0 {
                event.events &= !socket_error(epoll, event.u64);
            }
            if event.events == 0 || (has_oneshots && !may_tell(epoll, event.u64)) {
                continue;
            }
        }
        events[count] = event;
        count += 1;
    }
    if marked > 0 {
        count = tell_marked(epoll, &mut events[..count]);
    }
    set_errno(before);
    count
}

/// Makes of the events of sockets those of their streams, in place. Returns how many there are then.
fn tell_marked(epoll: c_int, events: &mut [epoll_event]) -> usize {
    let count = events.len();
    let mut told = 0;
    for at in 0..count {
        let event = events[at];
        if event.events & MARK == 0 || of_data(epoll, event.u64).next().is_none() {
            events[told] = event;
            told += 1;
            continue;
        }
        for watch in of_data(epoll, event.u64) {
            if !can_read(watch) {
                continue;
            }
            let data = watch.data.load(Relaxed);
            let is_same = |event: &&mut epoll_event| { event.u64 } == data && event.events & MARK == 0;
            // Where the stream's own event is, before or behind.
            let (before, behind) = events.split_at_mut(at + 1);
            let behind = &mut behind[..count - at - 1];
            if let Some(event) = before[..told].iter_mut().chain(behind).find(is_same) {
                event.events |= IN;
            } else if watch.disarm() {
                events[told] = epoll_event { events: IN, u64: data };
                told += 1;
                break;
            }
        }
    }
    told
}

/// Whether an event of a stream may be told: not if the program wants one and has had it.
fn may_tell(epoll: c_int, data: u64) -> bool {
    let mut oneshots = of_data(epoll, data).filter(|watch| watch.is(ONESHOT)).peekable();
    oneshots.peek().is_none() || oneshots.any(Watch::disarm)
}

/// Takes copies off the socket of which the kernel told. Returns whether bytes are there to be read.
fn can_read(watch: &Watch) -> bool {
    if watch.is(ONESHOT) && !watch.is_armed.load(SeqCst) {
        // Whoever has the stream's event reads them, or arms the socket again.
        return false;
    }
    let fd = watch.fd();
    let Some(used) = slot::enter(fd) else { return false };
    let extent = if watch.is(ET) { Extent::All } else { Extent::One };
    let can_read = express::take(fd, &used, extent);
    if !can_read && watch.is(ONESHOT) {
        put(watch, used.socket, Presence::Likely);
    }
    can_read
}

/// `EPOLLERR`, if it is that of a socket of copies, whose error is taken, and not the stream's.
fn socket_error(epoll: c_int, data: u64) -> u32 {
    let is_sockets = of_data(epoll, data).any(|watch| {
        slot::enter(watch.fd()).is_some_and(|used| {
            used.is_right(watch.fd()) && descriptor::take_error(used.socket) && !descriptor::has_failed(watch.fd())
        })
    });
    if is_sockets { ERR } else { 0 }
}
