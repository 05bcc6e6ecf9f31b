//! The signals that end a broker or a proxy, held back so that what they made can be cleaned up; and the one that has a broker hand over.

use std::io;

use nix::sys::signal::{SigSet, Signal};

/// Holds the signals back in this thread and all that it starts from now on; call it before any other thread begins.
///
/// # Errors
/// If the kernel refuses.
pub fn hold() -> io::Result<()> {
    let mut all = ends();
    all.add(HANDS_OVER);
    Ok(all.thread_block()?)
}

/// Has the broker of a session hand over to the installed program.
pub(crate) const HANDS_OVER: Signal = Signal::SIGUSR2;

/// SIGTERM, SIGINT and SIGHUP.
pub(crate) fn ends() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}
