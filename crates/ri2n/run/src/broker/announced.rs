//! Streams whose knock is in a program's queue, and the order of claim and welcome.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use nix::sys::eventfd::{EfdFlags, EventFd};
use ri2n_io::Stream;

use super::held::Held;
use crate::{express::Express, greeting::Greeting};

/// A stream whose knock is in a program's queue.
pub(super) struct Announced {
    pub(super) stream: Stream,
    pub(super) greeting: Greeting,
    /// Where the program listens.
    pub(super) listener: SocketAddr,
    pub(super) turn: Arc<Turn>,
    pub(super) express: Option<Arc<Express>>,
    pub(super) held: Held,
}

/// Orders claim and welcome, which happen on two threads.
pub(super) struct Turn {
    step: Mutex<Step>,
    changed: Condvar,
    /// Readable once claimed.
    pub(super) claimed: EventFd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Knocked,
    /// The peer has been answered.
    Answered,
}

impl Turn {
    pub(super) fn new() -> io::Result<Self> {
        let claimed = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { step: Mutex::new(Step::Knocked), changed: Condvar::new(), claimed })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the program has claimed, and waits until the peer has been answered.
    pub(super) fn claim(&self) {
        // A counter of one cannot be full.
        let _ = self.claimed.write(1);
        let mut step = self.lock();
        while *step == Step::Knocked {
            step = self.changed.wait(step).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Has whoever claims go on when it goes, whatever has happened.
pub(super) struct Ends<'a>(pub(super) &'a Turn);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Step::Answered;
        self.0.changed.notify_all();
    }
}
