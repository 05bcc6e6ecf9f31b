//! Whether a filter of system calls (seccomp) may kill this program for calls that it does not make itself.
//!
//! Early copies take calls that a program in a conversation has no need of: `getsockopt`, `ppoll`, `mmap`, those that ask the
//! broker. A program under a filter is left to its own calls. A filter from before the program shows in `/proc/self/status`,
//! which is read while the program is loaded, by calls that the loader has just made. One that the program installs itself
//! is announced by `prctl`: with `PR_SET_SECCOMP`, or with `PR_SET_NO_NEW_PRIVS`, which `seccomp(2)` asks for beforehand.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::{descriptor, real};

/// Bytes of `/proc/self/status` that are read: the line is within the first 1,500.
const STATUS_BYTES: usize = 4096;
const SECCOMP_LINE: &[u8] = b"\nSeccomp:\t";

static FILTERED: AtomicBool = AtomicBool::new(false);

/// Whether this program makes only the system calls that it asks for.
pub(crate) fn is_on() -> bool {
    FILTERED.load(SeqCst)
}

/// Looks for a filter from before the program; called once, while it is loaded.
pub(crate) fn look() {
    let mut status = [0_u8; STATUS_BYTES];
    // SAFETY: the name ends with a zero, and the buffer has the length that is told.
    let count = unsafe {
        let file = libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            // Without /proc nothing is known: the careful answer.
            return FILTERED.store(true, SeqCst);
        }
        let count = real::read(file, status.as_mut_ptr().cast(), status.len());
        descriptor::close(file);
        count
    };
    FILTERED.store(has_filter(&status[..usize::try_from(count).unwrap_or(0)]), SeqCst);
}

/// Whether the text of `/proc/self/status` tells of a filter. A kernel without seccomp has no such line.
fn has_filter(status: &[u8]) -> bool {
    let line = status.windows(SECCOMP_LINE.len()).position(|window| window == SECCOMP_LINE);
    line.is_some_and(|at| status.get(at + SECCOMP_LINE.len()) != Some(&b'0'))
}

/// The program makes only the system calls that it asks for from now on.
pub(crate) fn begin() {
    FILTERED.store(true, SeqCst);
}
