//! The calls that wait for descriptors: early copies of a stream end them as its socket pair does.

use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use std::{mem::size_of, ptr, slice};

use crate::{
    clock::{Limit, to_ms, to_spec},
    poll, real,
    select::{self, Sets},
    slot, watch,
};

/// Waits with the copies of streams, if there are any and `with_copies` can; else as the program asked.
fn wait(with_copies: impl FnOnce() -> Option<c_int>, plain: impl FnOnce() -> c_int) -> c_int {
    let ready = if slot::is_any_active() { with_copies() } else { None };
    ready.unwrap_or_else(plain)
}

/// # Safety
/// As `poll(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, ms: c_int) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    wait(|| unsafe { poll_with_copies(fds, count, ms) }, || unsafe { real::poll(fds, count, ms) })
}

/// What `poll` becomes where the compiler knows how many descriptors there is room for.
///
/// # Safety
/// As `poll(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __poll_chk(fds: *mut pollfd, count: nfds_t, ms: c_int, room: size_t) -> c_int {
    let plain = || {
        // SAFETY: the arguments are the caller's, unchanged.
        unsafe { real::poll_checked(fds, count, ms, room) }
    };
    // SAFETY: the arguments are the caller's, and there is room for so many.
    if fit(count, room) { wait(|| unsafe { poll_with_copies(fds, count, ms) }, plain) } else { plain() }
}

/// # Safety
/// As `ppoll(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    wait(|| unsafe { ppoll_with_copies(fds, count, limit, mask) }, || unsafe { real::ppoll(fds, count, limit, mask) })
}

/// What `ppoll` becomes where the compiler knows how many descriptors there is room for.
///
/// # Safety
/// As `ppoll(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    let plain = || {
        // SAFETY: the arguments are the caller's, unchanged.
        unsafe { real::ppoll_checked(fds, count, limit, mask, room) }
    };
    // SAFETY: the arguments are the caller's, and there is room for so many.
    if fit(count, room) { wait(|| unsafe { ppoll_with_copies(fds, count, limit, mask) }, plain) } else { plain() }
}

/// Whether `room` bytes hold `count` descriptors to poll.
fn fit(count: nfds_t, room: size_t) -> bool {
    count as usize <= room / size_of::<pollfd>()
}

/// # Safety
/// As `poll(2)`.
unsafe fn poll_with_copies(fds: *mut pollfd, count: nfds_t, ms: c_int) -> Option<c_int> {
    // SAFETY: the caller vouches for the descriptors.
    unsafe {
        poll::wait(fds, count, Limit::of_ms(ms), |fds, count, left| real::poll(fds, count, left.map_or(ms, to_ms)))
    }
}

/// # Safety
/// As `ppoll(2)`.
unsafe fn ppoll_with_copies(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> Option<c_int> {
    // SAFETY: the caller vouches for the descriptors and the time.
    unsafe {
        poll::wait(fds, count, Limit::of_spec(limit.as_ref()), |fds, count, left| {
            let left = left.map(to_spec);
            real::ppoll(fds, count, left.as_ref().map_or(limit, ptr::from_ref), mask)
        })
    }
}

/// # Safety
/// As `select(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *mut timeval,
) -> c_int {
    let with_copies = || {
        // SAFETY: the caller vouches for the sets and the time, in which the kernel leaves what is left of it.
        unsafe {
            select::wait(count, [read, write, except], Limit::of_val(limit.as_ref()), |count, sets: Sets, left| {
                let mut at_once = timeval { tv_sec: 0, tv_usec: 0 };
                let limit = if left == Some(0) { &raw mut at_once } else { limit };
                real::select(count, sets[0], sets[1], sets[2], limit)
            })
        }
    };
    // SAFETY: the arguments are the caller's, unchanged.
    wait(with_copies, || unsafe { real::select(count, read, write, except, limit) })
}

/// # Safety
/// As `pselect(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let with_copies = || {
        // SAFETY: the caller vouches for the sets and the time.
        unsafe {
            select::wait(count, [read, write, except], Limit::of_spec(limit.as_ref()), |count, sets: Sets, left| {
                let left = left.map(to_spec);
                let limit = left.as_ref().map_or(limit, ptr::from_ref);
                real::pselect(count, sets[0], sets[1], sets[2], limit, mask)
            })
        }
    };
    // SAFETY: the arguments are the caller's, unchanged.
    wait(with_copies, || unsafe { real::pselect(count, read, write, except, limit, mask) })
}

/// # Safety
/// As `epoll_wait(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, ms: c_int) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        wait_for_events(
            epoll,
            events,
            most,
            || Limit::of_ms(ms),
            |left| real::epoll_wait(epoll, events, most, left.map_or(ms, to_ms)),
        )
    }
}

/// # Safety
/// As `epoll_pwait(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        wait_for_events(
            epoll,
            events,
            most,
            || Limit::of_ms(ms),
            |left| real::epoll_pwait(epoll, events, most, left.map_or(ms, to_ms), mask),
        )
    }
}

/// # Safety
/// As `epoll_pwait2(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        wait_for_events(
            epoll,
            events,
            most,
            || Limit::of_spec(limit.as_ref()),
            |left| {
                let left = left.map(to_spec);
                real::epoll_pwait2(epoll, events, most, left.as_ref().map_or(limit, ptr::from_ref), mask)
            },
        )
    }
}

/// Waits until there are events for the program. `call` waits as the program asked, or for at most so many nanoseconds.
///
/// # Safety
/// `call` fills `events`, of which there are `most`.
unsafe fn wait_for_events(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: impl FnOnce() -> Limit,
    call: impl Fn(Option<u64>) -> c_int,
) -> c_int {
    let is_active = slot::is_any_active();
    let limit = if is_active { limit() } else { Limit::Never };
    let mut has_kept = is_active && most > 0 && !events.is_null() && watch::has_kept(epoll);
    let mut left = None;
    loop {
        let count = call(if has_kept { Some(0) } else { left });
        if count < 0 || !slot::is_any_active() {
            return count;
        }
        let mut ready = 0;
        if count > 0 {
            // SAFETY: the kernel has written so many.
            ready = watch::sift(epoll, unsafe { slice::from_raw_parts_mut(events, count as usize) });
        }
        if has_kept {
            // SAFETY: the kernel takes no room that is not there, and has written `count` of them; zeros are events.
            let room = unsafe {
                ptr::write_bytes(events.add(ready), 0, most as usize - ready);
                slice::from_raw_parts_mut(events, most as usize)
            };
            ready = watch::add_kept(epoll, room, ready);
        }
        if ready > 0 || (count == 0 && !has_kept) || matches!(limit, Limit::AtOnce) {
            return ready as c_int;
        }
        // What came was no news. Bytes that are kept were looked for once: whoever has them by now reads them.
        has_kept = false;
        left = limit.left_ns();
    }
}
