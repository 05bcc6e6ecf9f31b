//! Freezes all workers while their connections are saved.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

#[derive(Default)]
struct Parked {
    is_wanted: bool,
    workers: usize,
}

static PARKED: Mutex<Parked> = Mutex::new(Parked { is_wanted: false, workers: 0 });
static CHANGED: Condvar = Condvar::new();
/// Copy of `is_wanted` that workers read without the lock.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Workers are parked until this is dropped.
#[derive(Debug)]
pub(crate) struct Freeze(());

impl Freeze {
    /// Parks all workers between two turns, when they hold no lock; `wake_all` wakes them and returns how many there are. Not to be
    /// called by a worker, or by two threads at once.
    pub(crate) fn begin(wake_all: impl FnOnce() -> usize) -> Self {
        lock().is_wanted = true;
        IS_WANTED.store(true, Ordering::SeqCst);
        let workers = wake_all();
        let _parked = CHANGED.wait_while(lock(), |parked| parked.workers < workers);
        Self(())
    }
}

impl Drop for Freeze {
    fn drop(&mut self) {
        IS_WANTED.store(false, Ordering::SeqCst);
        lock().is_wanted = false;
        CHANGED.notify_all();
    }
}

/// Called by workers between turns: parks the thread while the process is frozen.
pub(crate) fn park_if_frozen() {
    if !IS_WANTED.load(Ordering::Relaxed) {
        return;
    }
    let mut parked = lock();
    parked.workers += 1;
    CHANGED.notify_all();
    parked = CHANGED.wait_while(parked, |parked| parked.is_wanted).unwrap_or_else(PoisonError::into_inner);
    parked.workers -= 1;
}

fn lock() -> MutexGuard<'static, Parked> {
    PARKED.lock().unwrap_or_else(PoisonError::into_inner)
}
