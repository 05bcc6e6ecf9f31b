//! The round-trip time of requests, and the retransmission timeout that follows from it (RFC 6298, section 2). By Karn's
//! algorithm the answer to a repeated request is no sample, since it may answer either copy.

use std::time::Duration;

/// The least time between a request and its repetition.
const REPEAT_MIN: Duration = Duration::from_millis(20);

/// What is known of the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed, and its variation; nothing before the first answer.
    known: Option<(Duration, Duration)>,
    /// What was waited for an answer to a repeated request, until one comes to a request that was sent once.
    backed_off: Duration,
}

impl RoundTrip {
    /// Takes the time of an answer to a request that was sent once.
    pub(super) fn handle_answer(&mut self, took: Duration) {
        self.backed_off = Duration::ZERO;
        self.known = Some(match self.known {
            None => (took, took / 2),
            Some((smoothed, variation)) => ((smoothed * 7 + took) / 8, (variation * 3 + smoothed.abs_diff(took)) / 4),
        });
    }

    /// Takes the last wait of a repeated request that was answered: the timeout until the next sample (RFC 6298, 5.5).
    pub(super) fn handle_late_answer(&mut self, wait: Duration) {
        self.backed_off = wait;
    }

    /// The retransmission timeout; none before the first answer.
    pub(super) fn patience(self) -> Option<Duration> {
        self.known.map(|(smoothed, variation)| (smoothed + variation * 4).max(REPEAT_MIN).max(self.backed_off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn patience_follows_the_answers() {
        let mut trips = RoundTrip::default();
        assert_eq!(trips.patience(), None);
        trips.handle_answer(100 * MS);
        assert_eq!(trips.patience(), Some(300 * MS), "three times the first");
        for _ in 0..100 {
            trips.handle_answer(100 * MS);
        }
        assert!(trips.patience().is_some_and(|patience| patience < 101 * MS), "{trips:?}");
        trips.handle_answer(500 * MS);
        assert!(trips.patience().is_some_and(|patience| patience > 500 * MS), "{trips:?}");
        for _ in 0..100 {
            trips.handle_answer(MS);
        }
        assert_eq!(trips.patience(), Some(REPEAT_MIN));
        // Answers that have become slow are waited for, though none of them can be timed.
        trips.handle_late_answer(320 * MS);
        assert_eq!(trips.patience(), Some(320 * MS));
        trips.handle_answer(MS);
        assert_eq!(trips.patience(), Some(REPEAT_MIN));
    }
}
