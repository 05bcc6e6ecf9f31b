//! Connections to the broker that are kept for the next question.
//!
//! Connecting to the broker costs more than a question, so a connection that answered one is kept, at a number that programs
//! rarely use. One question at a time is asked on each: whoever asks takes a line out of the table, and others that ask meanwhile
//! take another, or connect.
//!
//! ```text
//!  ask ─ take ─ a line that is still ours ─▶ question, answer ─ keep ─▶ table
//!             └ none ─▶ connect            └ interrupted, too late, none ─▶ closed
//! ```
//!
//! The table is in memory that is zeros in a child after `fork` (`MADV_WIPEONFORK`), so a child has lines of its own. A program may
//! close any number, or put another file there: before each use the kernel is asked for the socket's cookie. A line belongs to
//! a network namespace as the broker's name does, and is used for no socket of another.

use std::{
    mem, ptr,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering},
};

use libc::c_int;

use crate::descriptor::{self, cookie, namespace};

/// Lines of a process that are kept.
const KEPT_MAX: usize = 16;
/// In the place of a number: nothing is here, or somebody is using it.
const EMPTY: i32 = 0;
const TAKEN: i32 = -1;

/// A place in the table.
struct Place {
    /// The number plus one, [`EMPTY`] or [`TAKEN`].
    state: AtomicI32,
    cookie: AtomicU64,
    namespace: AtomicU64,
}

type Places = [Place; KEPT_MAX];

static PLACES: AtomicPtr<Places> = AtomicPtr::new(ptr::null_mut());

/// Makes the table; called once, while the program is loaded. Without it, each question has a connection of its own.
pub(crate) fn prepare() {
    let (length, protection) = (mem::size_of::<Places>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a fresh mapping, which is given back if it cannot be had as it is needed.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let places = libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0);
        if places == libc::MAP_FAILED {
            return;
        }
        if libc::madvise(places, length, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(places, length);
            return;
        }
        // Zeros are empty places.
        PLACES.store(places.cast(), Ordering::Release);
    }
}

fn places() -> &'static [Place] {
    // SAFETY: mapped for good, if it is.
    unsafe { PLACES.load(Ordering::Acquire).as_ref() }.map_or(&[], |places| places)
}

/// A line that nobody else uses.
pub(crate) struct Kept {
    place: &'static Place,
    pub(crate) fd: c_int,
}

/// Takes a line out of the table: for a socket, one of its network namespace.
pub(crate) fn take(socket: Option<c_int>) -> Option<Kept> {
    let mut wanted = None;
    for place in places() {
        let state = place.state.load(Ordering::Acquire);
        if state <= EMPTY {
            continue;
        }
        if let Some(socket) = socket {
            let wanted = *wanted.get_or_insert_with(|| namespace(socket));
            if wanted == 0 || wanted != place.namespace.load(Ordering::Acquire) {
                continue;
            }
        }
        if place.state.compare_exchange(state, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            continue;
        }
        let fd = state - 1;
        if cookie(fd) == place.cookie.load(Ordering::Acquire) {
            return Some(Kept { place, fd });
        }
        // The number is the program's by now.
        place.state.store(EMPTY, Ordering::Release);
    }
    None
}

impl Kept {
    /// Puts the line back.
    pub(crate) fn keep(self) {
        self.place.state.store(self.fd + 1, Ordering::Release);
    }

    /// Closes the line, which an answer may still come on.
    pub(crate) fn close(self) {
        descriptor::close(self.fd);
        self.place.state.store(EMPTY, Ordering::Release);
    }
}

/// Keeps a new line, if there is room; it is closed otherwise.
pub(crate) fn keep(line: c_int) {
    let is_empty =
        |place: &&Place| place.state.compare_exchange(EMPTY, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(place) = places().iter().find(is_empty) else { return descriptor::close(line) };
    let hidden = descriptor::duplicate_from(line, descriptor::HIDDEN_FROM);
    descriptor::close(line);
    let kept = hidden.map(|fd| (fd, cookie(fd), namespace(fd)));
    match kept {
        Some((fd, cookie, namespace)) if cookie != 0 && namespace != 0 => {
            place.cookie.store(cookie, Ordering::Release);
            place.namespace.store(namespace, Ordering::Release);
            place.state.store(fd + 1, Ordering::Release);
        }
        _ => {
            if let Some((fd, ..)) = kept {
                descriptor::close(fd);
            }
            place.state.store(EMPTY, Ordering::Release);
        }
    }
}
