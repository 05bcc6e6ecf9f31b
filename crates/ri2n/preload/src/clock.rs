//! The monotonic clock, and how long a call may still wait.

use libc::{c_int, timespec, timeval};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64
}

/// When a call must return. What the kernel would refuse counts as no limit: the kernel sees it first.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Never,
    AtOnce,
    At(u64),
}

impl Limit {
    /// Milliseconds from now; less than zero is no limit.
    pub(crate) fn of_ms(ms: c_int) -> Self {
        u64::try_from(ms).map_or(Self::Never, |ms| Self::of_ns(ms * 1_000_000))
    }

    pub(crate) fn of_spec(spec: Option<&timespec>) -> Self {
        spec.map_or(Self::Never, |spec| Self::of_parts(spec.tv_sec, spec.tv_nsec))
    }

    pub(crate) fn of_val(value: Option<&timeval>) -> Self {
        value.map_or(Self::Never, |value| Self::of_parts(value.tv_sec, value.tv_usec.saturating_mul(1000)))
    }

    fn of_parts(seconds: i64, ns: i64) -> Self {
        match (u64::try_from(seconds), u64::try_from(ns)) {
            (Ok(seconds), Ok(ns)) => Self::of_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns)),
            _ => Self::Never,
        }
    }

    fn of_ns(ns: u64) -> Self {
        if ns == 0 { Self::AtOnce } else { Self::At(now_ns().saturating_add(ns)) }
    }

    /// What is left, nanoseconds; `None` without a limit.
    pub(crate) fn left_ns(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::AtOnce => Some(0),
            Self::At(end) => Some(end.saturating_sub(now_ns())),
        }
    }
}

/// Rounded up: a call returns no sooner than it was asked to.
pub(crate) fn to_ms(ns: u64) -> c_int {
    c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX)
}

pub(crate) fn to_spec(ns: u64) -> timespec {
    timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
