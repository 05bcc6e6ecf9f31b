//! A lock between processes that survives its holder's death.

use std::{cell::UnsafeCell, mem::MaybeUninit};

/// A robust mutex of the C library, which tells its next holder that the last one died.
#[repr(C)]
pub(crate) struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex that is shared between processes may be used by all of their threads.
unsafe impl Sync for Lock {}

/// Unlocks when it is dropped.
pub(crate) struct Guard<'a> {
    lock: &'a Lock,
    /// Whether the one before died with the lock in its hands.
    pub(crate) is_inherited: bool,
}

/// Why a lock cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Somebody has it: this very thread if it would have waited, or one of the same number in another container.
    Taken,
    /// Its memory is no lock any more.
    Broken,
}

impl Lock {
    /// Makes the lock; once, before anybody else sees the memory.
    pub(crate) fn set_up(&self) {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: the attributes are made before they are used, and nobody uses the mutex yet.
        unsafe {
            let attributes = attributes.as_mut_ptr();
            libc::pthread_mutexattr_init(attributes);
            libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST);
            // A signal's handler may find the lock in the hands of the thread that it interrupted.
            libc::pthread_mutexattr_settype(attributes, libc::PTHREAD_MUTEX_ERRORCHECK);
            libc::pthread_mutex_init(self.0.get(), attributes);
            libc::pthread_mutexattr_destroy(attributes);
        }
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> Result<Guard<'_>, Refused> {
        // SAFETY: the mutex was made when its memory was.
        self.taken(unsafe { libc::pthread_mutex_lock(self.0.get()) })
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_lock(&self) -> Result<Guard<'_>, Refused> {
        // SAFETY: the mutex was made when its memory was.
        self.taken(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    fn taken(&self, result: libc::c_int) -> Result<Guard<'_>, Refused> {
        match result {
            0 => Ok(Guard { lock: self, is_inherited: false }),
            libc::EOWNERDEAD => {
                let guard = Guard { lock: self, is_inherited: true };
                // SAFETY: the mutex is locked by this thread.
                let is_whole = unsafe { libc::pthread_mutex_consistent(self.0.get()) } == 0;
                is_whole.then_some(guard).ok_or(Refused::Broken)
            }
            libc::EBUSY | libc::EDEADLK => Err(Refused::Taken),
            _ => Err(Refused::Broken),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the guard's thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.lock.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> &'static Lock {
        // SAFETY: all zeros is a mutex; it is made properly at once.
        let lock: &'static Lock = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
        lock.set_up();
        lock
    }

    #[test]
    fn one_at_a_time_and_never_twice() {
        let lock = lock();
        let guard = lock.lock().unwrap();
        assert_eq!(lock.lock().err(), Some(Refused::Taken), "the same thread");
        let other = std::thread::spawn(|| lock.try_lock().err()).join().unwrap();
        assert_eq!(other, Some(Refused::Taken), "another thread");
        drop(guard);
        assert!(std::thread::spawn(|| lock.try_lock().is_ok()).join().unwrap());
    }

    #[test]
    fn a_holder_that_dies_leaves_it() {
        let lock = lock();
        std::thread::spawn(|| std::mem::forget(lock.lock().unwrap())).join().unwrap();
        assert!(lock.lock().unwrap().is_inherited);
        assert!(!lock.try_lock().unwrap().is_inherited, "from then on it is a lock like any other");
    }
}
