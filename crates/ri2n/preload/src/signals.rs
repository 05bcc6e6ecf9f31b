//! What a signal does to a call that waits.
//!
//! The kernel takes up a `recv` again after a handler that was installed with `SA_RESTART`, and ends it with `EINTR` after any
//! other. A wait for two descriptors at once it always ends, and does not say by which signal. So what is to be done is read
//! from the handlers that there are; where some ask for a restart and others do not, nobody can tell, and a program of that
//! kind is left to the kernel's own call.

use std::{mem, ptr};

/// What handlers of this program want of a call that they interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// None of them wants it to end, or there are none.
    GoOn,
    /// All want it to end.
    End,
    /// Some do.
    Mixed,
}

/// Looks at all handlers.
pub(crate) fn wish() -> Wish {
    let (mut any_goes_on, mut any_ends) = (false, false);
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: all zeros is a valid structure, which the call fills unless the signal is the C library's own.
        let action = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action);
            action
        };
        if action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN {
            let goes_on = action.sa_flags & libc::SA_RESTART != 0;
            any_goes_on |= goes_on;
            any_ends |= !goes_on;
        }
    }
    match (any_goes_on, any_ends) {
        (_, false) => Wish::GoOn,
        (false, true) => Wish::End,
        (true, true) => Wish::Mixed,
    }
}
