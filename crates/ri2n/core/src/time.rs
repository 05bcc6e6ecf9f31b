//! Instants of the caller's clock.

use serde::{Deserialize, Serialize};
use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// An instant in nanoseconds since whatever moment the caller counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The moment that the caller counts from.
    pub const ZERO: Self = Self(0);
    /// Later than every other instant.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant this many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first multiple of `step` that is no earlier; this instant if `step` is zero.
    #[must_use]
    pub fn rounded_up(self, step: Duration) -> Self {
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self(self.0.div_ceil(step).saturating_mul(step))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_is_never_earlier() {
        let step = Duration::from_nanos(50);
        let rounded = [0, 1, 50, 51].map(|nanos| Time::from_nanos(nanos).rounded_up(step).as_nanos());
        assert_eq!(rounded, [0, 50, 50, 100]);
        assert_eq!(
            (Time::NEVER.rounded_up(step), Time::from_nanos(7).rounded_up(Duration::ZERO)),
            (Time::NEVER, Time::from_nanos(7))
        );
    }
}
