//! Round-trip time of a link: smoothed, its variation, and the smallest of late.
//!
//! Smoothing is RFC 6298's. The smallest is that of two adjoining windows, so that it forgets a route that is no more
//! after one to two windows without keeping every sample.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a smallest round-trip time counts.
const MINIMUM_WINDOW: Duration = Duration::from_secs(10);
/// What is assumed before the first sample.
const INITIAL: Duration = Duration::from_millis(5);

/// Reordering in time that is never taken for loss.
const OVERDUE_MIN: Duration = Duration::from_micros(100);

/// The round-trip time of one link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rtt {
    // Nanoseconds: plain numbers are cheaper to reckon with than durations.
    smoothed: u64,
    variation: u64,
    minimum: [u64; 2],
    window_ends: Time,
    sampled: bool,
}

impl Rtt {
    pub(crate) fn new() -> Self {
        Self {
            smoothed: INITIAL.as_nanos() as u64,
            variation: INITIAL.as_nanos() as u64 / 2,
            minimum: [u64::MAX; 2],
            window_ends: Time::ZERO,
            sampled: false,
        }
    }

    /// Takes in a sample: `total` less the time that the peer kept the acknowledgement.
    pub(crate) fn handle_sample(&mut self, now: Time, total: Duration, kept: Duration) {
        let sample = total.saturating_sub(kept).max(Duration::from_micros(1)).as_nanos() as u64;
        if now >= self.window_ends {
            self.minimum = [u64::MAX, self.minimum[0]];
            self.window_ends = now + MINIMUM_WINDOW;
        }
        self.minimum[0] = self.minimum[0].min(sample);
        if !self.sampled {
            self.sampled = true;
            self.smoothed = sample;
            self.variation = sample / 2;
            return;
        }
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(sample)) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed)
    }

    /// The smallest of late; the assumed one before the first sample.
    pub(crate) fn minimum(&self) -> Duration {
        Duration::from_nanos(self.minimum_nanos())
    }

    /// The smallest of late, once there was a sample.
    pub(crate) fn measured_minimum(&self) -> Option<Duration> {
        self.sampled.then(|| self.minimum())
    }

    fn minimum_nanos(&self) -> u64 {
        let minimum = self.minimum[0].min(self.minimum[1]);
        if minimum == u64::MAX { self.smoothed } else { minimum }
    }

    /// How long after later packets were acknowledged an earlier one counts as lost (RFC 9002, section 6.1.2).
    pub(crate) fn overdue(&self) -> Duration {
        Duration::from_nanos(self.smoothed.max(self.minimum_nanos()) * 9 / 8 + OVERDUE_MIN.as_nanos() as u64)
    }

    /// How long an acknowledgement may take before something is wrong.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.smoothed + self.variation * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_forgotten_after_two_windows() {
        let mut rtt = Rtt::new();
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        rtt.handle_sample(Time::ZERO, ms * 2, ms);
        assert_eq!((rtt.minimum(), rtt.smoothed()), (ms, ms));
        rtt.handle_sample(Time::ZERO + second * 11, ms * 4, Duration::ZERO);
        assert_eq!(rtt.minimum(), ms);
        rtt.handle_sample(Time::ZERO + second * 22, ms * 4, Duration::ZERO);
        assert_eq!(rtt.minimum(), ms * 4);
        assert!(rtt.smoothed() > ms && rtt.smoothed() < ms * 2 && rtt.patience() > ms * 4);
    }
}
