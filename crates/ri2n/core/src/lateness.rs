//! How late an end gets to what arrived, since its processor had other programs to run.
//!
//! What is in flight must last while one end or the other waits for its turn, or the link stands idle meanwhile; half a
//! millisecond in flight does not outlast a scheduler's turn of three. So the time that something which arrives now has to
//! wait is estimated, and the window made so much larger. Something that arrives at any moment meets a wait of length *w*
//! with a probability that grows with *w*, so the mean is the sum of *w²* over the time:
//!
//! ```text
//!   wait     ███░░░░███░░░░░░░███░░░░      three of 3 ms in 21: 3 · 3² / 21 = 1.3 ms
//!   a lone   █░░░░░░░░░░░░░░░░░░░░░░      hiccup of 1 ms hardly counts
//! ```
//!
//! Twice the mean is taken, so that an end that waits half of its time is given its full wait.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long waits are remembered.
const MEMORY: Duration = Duration::from_millis(50);
/// Waits up to this are those of an idle machine, and of acknowledgements that gather.
const NOTED: Duration = Duration::from_micros(500);
/// Most that is expected, so that queues stay bounded however busy a machine is.
const EXPECTED_MAX: Duration = Duration::from_millis(3);
/// Means by which the expectation is multiplied.
const FACTOR: f64 = 2.0;

/// The waits of one end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lateness {
    /// Seconds.
    mean: f64,
    /// Time up to which waits were counted.
    counted_until: Time,
}

impl Lateness {
    pub(crate) fn new(now: Time) -> Self {
        Self { mean: 0.0, counted_until: now }
    }

    /// Takes in that something waited from one moment to another. Time that was counted before is not counted again.
    pub(crate) fn handle_wait(&mut self, from: Time, until: Time) {
        if until <= self.counted_until {
            return;
        }
        let elapsed = until.since(self.counted_until).as_secs_f64();
        let wait = until.since(from.max(self.counted_until)).saturating_sub(NOTED).as_secs_f64();
        self.counted_until = until;
        let memory = MEMORY.as_secs_f64();
        let most = EXPECTED_MAX.as_secs_f64() / FACTOR;
        self.mean = (self.mean * memory / (memory + elapsed) + wait * wait / memory).min(most);
    }

    /// How long to expect that what arrives now waits.
    pub(crate) fn expected(&self) -> Duration {
        Duration::from_nanos((self.mean * FACTOR * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(period: Duration, wait: Duration) -> Duration {
        let mut lateness = Lateness::new(Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..200 {
            now = now + period;
            lateness.handle_wait(now - wait, now);
            // The same wait, as seen by what arrived in the middle of it.
            lateness.handle_wait(now - wait / 2, now);
        }
        lateness.expected()
    }

    #[test]
    fn half_of_the_time_counts_in_full_and_an_idle_machine_not_at_all() {
        let busy = after(MS * 4, MS * 2);
        assert!(busy > MS && busy < MS * 2, "{busy:?}");
        assert_eq!(after(MS / 4, MS / 5), Duration::ZERO);
        assert_eq!(after(MS * 20, MS * 20), EXPECTED_MAX);
        assert!(after(MS * 1000, MS) < MS / 10, "a hiccup a second");
    }

    #[test]
    fn it_is_forgotten() {
        let mut lateness = Lateness::new(Time::ZERO);
        lateness.handle_wait(Time::ZERO, Time::ZERO + MS * 20);
        assert_eq!(lateness.expected(), EXPECTED_MAX);
        for step in 1..400 {
            let now = Time::ZERO + MS * (20 + step);
            lateness.handle_wait(now, now);
        }
        assert!(lateness.expected() < MS / 100, "{:?}", lateness.expected());
    }
}
