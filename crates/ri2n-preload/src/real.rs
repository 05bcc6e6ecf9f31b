//! The C library's own functions, found behind this library.

use std::{
    ffi::CStr,
    mem,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use libc::{c_int, c_void, epoll_event, sockaddr, socklen_t};

/// Which of the two calls the program made.
#[derive(Clone, Copy)]
pub(crate) enum Accept {
    Plain,
    WithFlags,
}

/// Defines a function that looks its namesake up once and calls it.
macro_rules! real {
    ($name:ident ( $($arg:ident : $type:ty),* ) = $symbol:literal) => {
        pub(crate) unsafe fn $name($($arg: $type),*) -> c_int {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            let found = next(&FOUND, $symbol);
            if found.is_null() {
                crate::descriptor::set_errno(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the symbol has this type by POSIX, and the caller vouches for the arguments.
            unsafe {
                let function: unsafe extern "C" fn($($type),*) -> c_int = mem::transmute(found);
                function($($arg),*)
            }
        }
    };
}

real!(connect(fd: c_int, address: *const sockaddr, length: socklen_t) = c"connect");
real!(listen(fd: c_int, backlog: c_int) = c"listen");
real!(accept_plain(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) = c"accept");
real!(accept_flags(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) = c"accept4");
real!(getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) = c"getsockname");
real!(getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) = c"getpeername");
real!(getsockopt(fd: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut socklen_t) = c"getsockopt");
real!(setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) = c"setsockopt");
real!(epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) = c"epoll_ctl");

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
