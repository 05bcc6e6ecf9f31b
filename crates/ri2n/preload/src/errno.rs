//! The C library's error number of this thread.

use libc::c_int;

pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives a valid pointer.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the C library gives a valid pointer.
    unsafe { *libc::__errno_location() = error };
}
