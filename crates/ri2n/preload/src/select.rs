//! `select` with the sockets of early copies beside their streams, in sets of our own that have room for them.

use std::{mem::size_of, slice};

use libc::{c_int, fd_set};

use crate::{
    clock::Limit,
    poll::{can_read, has_kept},
    slot,
};

/// Numbers from here on do not fit; streams whose sockets have such are woken by the pair alone.
const BITS: usize = 4096;
const WORD_BITS: usize = 64;
/// Streams with copies in one call.
const STREAMS_MAX: usize = 64;

/// Sets for reading, for writing and for exceptions.
pub(crate) type Sets = [*mut fd_set; 3];
type Set = [u64; BITS / WORD_BITS];

fn has(set: &[u64], fd: usize) -> bool {
    set[fd / WORD_BITS] & 1 << (fd % WORD_BITS) != 0
}

fn put(set: &mut [u64], fd: usize) {
    set[fd / WORD_BITS] |= 1 << (fd % WORD_BITS);
}

fn take(set: &mut [u64], fd: usize) {
    set[fd / WORD_BITS] &= !(1 << (fd % WORD_BITS));
}

/// Waits, and returns what `select` does; `None` if no stream among the descriptors has copies. `call` waits as the program asked,
/// or for at most so many nanoseconds.
///
/// # Safety
/// The sets have `count` bits each, rounded up to words, or are null.
pub(crate) unsafe fn wait(
    count: c_int,
    sets: Sets,
    limit: Limit,
    call: impl Fn(c_int, Sets, Option<u64>) -> c_int,
) -> Option<c_int> {
    const { assert!(size_of::<fd_set>() <= size_of::<Set>()) };
    let count = usize::try_from(count).ok().filter(|count| (1..=BITS).contains(count) && !sets[0].is_null())?;
    let words = count.div_ceil(WORD_BITS);
    // SAFETY: the caller vouches for so many.
    let read = unsafe { slice::from_raw_parts_mut(sets[0].cast::<u64>(), words) };
    let (mut streams, mut found, mut most) = ([(0, 0); STREAMS_MAX], 0, count);
    for fd in (0..count).filter(|fd| has(read, *fd)) {
        let Some(used) = slot::enter(fd as c_int) else { continue };
        let socket = used.socket as usize;
        if socket < BITS && found < STREAMS_MAX {
            used.listen();
            streams[found] = (fd, socket);
            found += 1;
            most = most.max(socket + 1);
        }
    }
    let streams = &streams[..found];
    if streams.is_empty() {
        return None;
    }
    let mut left = None;
    loop {
        let has_kept = streams.iter().any(|(fd, _)| has_kept(*fd as c_int));
        let mut own: [Set; 3] = [[0; BITS / WORD_BITS]; 3];
        for (own, theirs) in own.iter_mut().zip(sets).filter(|(_, theirs)| !theirs.is_null()) {
            // SAFETY: as above.
            own[..words].copy_from_slice(unsafe { slice::from_raw_parts(theirs.cast::<u64>(), words) });
        }
        for (_, socket) in streams {
            put(&mut own[0], *socket);
        }
        let mut given = sets;
        for (given, own) in given.iter_mut().zip(&mut own).filter(|(given, _)| !given.is_null()) {
            *given = own.as_mut_ptr().cast();
        }
        let mut ready = call(most as c_int, given, if has_kept { Some(0) } else { left });
        if ready < 0 {
            return Some(ready);
        }
        let is_late = ready == 0 && !has_kept;
        for (fd, socket) in streams {
            let is_told = has(&own[0], *socket);
            if is_told {
                take(&mut own[0], *socket);
                ready -= 1;
            }
            if (is_told || has_kept) && can_read(*fd as c_int) && !has(&own[0], *fd) {
                put(&mut own[0], *fd);
                ready += 1;
            }
        }
        if ready > 0 || is_late || matches!(limit, Limit::AtOnce) {
            for (own, theirs) in own.iter().zip(sets).filter(|(_, theirs)| !theirs.is_null()) {
                // SAFETY: as above.
                unsafe { slice::from_raw_parts_mut(theirs.cast::<u64>(), words) }.copy_from_slice(&own[..words]);
            }
            return Some(ready);
        }
        left = limit.left_ns();
    }
}
