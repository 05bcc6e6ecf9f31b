//! The C library's own functions, found behind this library.

use std::{
    ffi::CStr,
    mem,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use libc::{
    c_int, c_ulong, c_void, epoll_event, fd_set, iovec, msghdr, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec, timeval,
};

/// Which of the two calls the program made.
#[derive(Clone, Copy)]
pub(crate) enum Accept {
    Plain,
    WithFlags,
}

/// Defines functions that call their namesakes, and one that looks all of them up.
macro_rules! real {
    ($($name:ident ( $($arg:ident : $type:ty),* ) -> $result:ty = $symbol:literal;)*) => {
        $(pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            let found = next(&found::$name, $symbol);
            if found.is_null() {
                crate::errno::set_errno(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the symbol has this type by POSIX, and the caller vouches for the arguments.
            unsafe {
                let function: unsafe extern "C-unwind" fn($($type),*) -> $result = mem::transmute(found);
                function($($arg),*)
            }
        })*

        #[allow(non_upper_case_globals)]
        mod found {
            $(pub(super) static $name: super::AtomicPtr<super::c_void> = super::AtomicPtr::new(super::null_mut());)*
        }

        /// Looks all of them up. Later, in a signal's handler or after `fork`, the loader's lock may be held for good.
        pub(crate) fn find_all() {
            $(next(&found::$name, $symbol);)*
        }
    };
}

real! {
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = c"connect";
    listen(fd: c_int, backlog: c_int) -> c_int = c"listen";
    accept_plain(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = c"accept";
    accept_flags(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = c"accept4";
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = c"getsockname";
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = c"getpeername";
    getsockopt(fd: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int = c"getsockopt";
    setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int = c"setsockopt";
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int = c"epoll_ctl";
    close(fd: c_int) -> c_int = c"close";
    prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int = c"prctl";
    read(fd: c_int, into: *mut c_void, count: size_t) -> ssize_t = c"read";
    write(fd: c_int, from: *const c_void, count: size_t) -> ssize_t = c"write";
    recv(fd: c_int, into: *mut c_void, count: size_t, flags: c_int) -> ssize_t = c"recv";
    recvfrom(fd: c_int, into: *mut c_void, count: size_t, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> ssize_t = c"recvfrom";
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t = c"readv";
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = c"recvmsg";
    read_checked(fd: c_int, into: *mut c_void, count: size_t, room: size_t) -> ssize_t = c"__read_chk";
    recv_checked(fd: c_int, into: *mut c_void, count: size_t, room: size_t, flags: c_int) -> ssize_t = c"__recv_chk";
    send(fd: c_int, from: *const c_void, count: size_t, flags: c_int) -> ssize_t = c"send";
    sendto(fd: c_int, from: *const c_void, count: size_t, flags: c_int, address: *const sockaddr, length: socklen_t) -> ssize_t = c"sendto";
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t = c"sendmsg";
    recvfrom_checked(fd: c_int, into: *mut c_void, count: size_t, room: size_t, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> ssize_t = c"__recvfrom_chk";
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t = c"writev";
    ioctl(fd: c_int, request: c_ulong, value: *mut c_void) -> c_int = c"ioctl";
    poll(fds: *mut pollfd, count: nfds_t, ms: c_int) -> c_int = c"poll";
    ppoll(fds: *mut pollfd, count: nfds_t, limit: *const timespec, mask: *const sigset_t) -> c_int = c"ppoll";
    poll_checked(fds: *mut pollfd, count: nfds_t, ms: c_int, room: size_t) -> c_int = c"__poll_chk";
    ppoll_checked(fds: *mut pollfd, count: nfds_t, limit: *const timespec, mask: *const sigset_t, room: size_t) -> c_int = c"__ppoll_chk";
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, limit: *mut timeval) -> c_int = c"select";
    pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, limit: *const timespec, mask: *const sigset_t) -> c_int = c"pselect";
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, ms: c_int) -> c_int = c"epoll_wait";
    epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, ms: c_int, mask: *const sigset_t) -> c_int = c"epoll_pwait";
    epoll_pwait2(epoll: c_int, events: *mut epoll_event, most: c_int, limit: *const timespec, mask: *const sigset_t) -> c_int = c"epoll_pwait2";
}

/// # Safety
/// As `accept4(2)`.
pub(crate) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
    which: Accept,
) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    match which {
        Accept::Plain => unsafe { accept_plain(fd, address, length) },
        Accept::WithFlags => unsafe { accept_flags(fd, address, length, flags) },
    }
}

fn next(found: &AtomicPtr<c_void>, symbol: &CStr) -> *mut c_void {
    let known = found.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a constant name; looking it up twice is harmless.
    let symbol = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    found.store(symbol, Ordering::Release);
    symbol
}
