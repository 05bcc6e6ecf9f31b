//! Ctrl-C while a lab is being built: noted, so that the builder can clean up, instead of fatal.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static ARRIVED: AtomicBool = AtomicBool::new(false);

const SIGNALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// While this lives, SIGINT and SIGTERM are noted; afterwards they do what they did before.
pub(crate) struct Watch {
    before: Vec<(Signal, SigAction)>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// If the kernel refuses the handlers.
    pub(crate) fn begin() -> io::Result<Self> {
        ARRIVED.store(false, Ordering::SeqCst);
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
        let mut watch = Self { before: Vec::new() };
        for signal in SIGNALS {
            // SAFETY: the handler only stores to an atomic, which is safe at any point of any thread.
            watch.before.push((signal, unsafe { sigaction(signal, &action) }?));
        }
        Ok(watch)
    }

    /// Whether a signal has arrived since the watch began.
    pub(crate) fn has_fired(&self) -> bool {
        ARRIVED.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: restores what was installed before, whatever that was.
            let _ = unsafe { sigaction(*signal, action) };
        }
    }
}

extern "C" fn note(_: libc::c_int) {
    ARRIVED.store(true, Ordering::SeqCst);
}
