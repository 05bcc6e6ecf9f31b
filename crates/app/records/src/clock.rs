//! Time that no change of the wall clock moves: since this machine booted, suspension included.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// A point in time: how long this machine has been up, with the time that it was suspended. Times of two machines, or of two
/// boots, do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

impl BootTime {
    /// This long after the boot.
    pub fn from_boot(since: Duration) -> Self {
        Self(since)
    }

    /// How long after the boot.
    pub fn since_boot(self) -> Duration {
        self.0
    }

    /// This time and `duration`.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long after `earlier`; zero if it is before it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// What tells the time.
pub trait Clock: Send + Sync {
    /// The time now; it never decreases.
    fn now(&self) -> BootTime;
}

/// The kernel's `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
        BootTime(Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default()))
    }
}

/// A clock that is set by hand, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += duration;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> BootTime {
        BootTime(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
