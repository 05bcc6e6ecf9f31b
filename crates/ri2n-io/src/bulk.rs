//! When to let packets gather: who only receives a long transfer need not be woken by each run of it.
//!
//! A caller that sleeps in the receive call is woken for every run of datagrams, thousands of times a second, and its
//! acknowledgement of each wakes the sender as often. While bytes only arrive, nobody waits for a reply, so the caller
//! sleeps by the clock instead and takes what gathered meanwhile, as network cards moderate their interrupts. Round trips
//! stay true, since packets count from when the system received them.
//!
//! ```text
//!  each run wakes     ▽  ▽  ▽  ▽  ▽  ▽  ▽  ▽      run · wake · acknowledge · run · wake · acknowledge
//!  gathered           ├──── PAUSE ────┤▽──────     run · run · run · wake · acknowledge all at once
//! ```

use ri2n::Time;
use std::time::Duration;

/// How long packets gather: well under the queue that congestion control lets stand on a link.
const PAUSE: Duration = Duration::from_micros(300);
/// Shorter pauses are not worth a timer.
const PAUSE_MIN: Duration = Duration::from_micros(100);
/// Over which rates are taken.
const PERIOD: Duration = Duration::from_millis(1);
/// Bytes a second from which a pause gathers more than the one run that offloads make a single message of.
const BUSY: f64 = 160e6;
/// How long the other direction must have been idle.
const IDLE: Duration = Duration::from_millis(5);
/// Share of a buffer that may gather in a pause.
const BUFFER_SHARE: f64 = 1.0 / 8.0;

/// What both directions did of late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    period: (Time, u64),
    /// Bytes a second that arrived.
    rate: f64,
    sent: u64,
    /// When something was last in flight from here.
    sent_at: Time,
}

impl Bulk {
    pub(crate) fn new(now: Time) -> Self {
        Self { period: (now, 0), rate: 0.0, sent: 0, sent_at: now }
    }

    /// Looks at a connection whose caller is about to wait: how much it sent, has acknowledged and received, and how much
    /// may arrive unread, in bytes. Returns how long packets may gather before anyone looks at them, if that is worth it.
    pub(crate) fn pause(
        &mut self,
        now: Time,
        (sent, acked, received): (u64, u64, u64),
        buffer: usize,
    ) -> Option<Duration> {
        if sent != self.sent || sent != acked {
            (self.sent, self.sent_at) = (sent, now);
        }
        let elapsed = now.since(self.period.0);
        if elapsed >= PERIOD {
            self.rate = (received - self.period.1) as f64 / elapsed.as_secs_f64();
            self.period = (now, received);
        }
        if self.rate < BUSY || now.since(self.sent_at) < IDLE {
            return None;
        }
        let pause = PAUSE.min(Duration::from_secs_f64(buffer as f64 * BUFFER_SHARE / self.rate));
        (pause >= PAUSE_MIN).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits every 100 µs for `ms` milliseconds while bytes arrive. Returns the last answer.
    fn receive(
        bulk: &mut Bulk,
        from_ms: u64,
        ms: u64,
        bytes_per_ms: u64,
        sent: u64,
        buffer: usize,
    ) -> Option<Duration> {
        (from_ms * 10..=(from_ms + ms) * 10)
            .map(|tick| bulk.pause(Time::from_nanos(tick * 100_000), (sent, sent, tick * bytes_per_ms / 10), buffer))
            .last()
            .flatten()
    }

    #[test]
    fn only_a_long_one_way_transfer_gathers() {
        let mut bulk = Bulk::new(Time::ZERO);
        assert_eq!(receive(&mut bulk, 0, 4, 240_000, 1, 1 << 20), None, "it has only begun");
        assert_eq!(receive(&mut bulk, 4, 10, 240_000, 1, 1 << 20), Some(PAUSE));
        assert_eq!(receive(&mut bulk, 14, 10, 240_000, 2, 1 << 20), Some(PAUSE));
        assert_eq!(receive(&mut bulk, 24, 3, 240_000, 3, 1 << 20), None, "something was sent a moment ago");
        assert_eq!(receive(&mut bulk, 27, 10, 240_000, 3, 64 << 10), None, "the buffer would fill");
        let mut bulk = Bulk::new(Time::ZERO);
        assert_eq!(receive(&mut bulk, 0, 20, 100_000, 3, 1 << 20), None, "a run a pause is nothing gathered");
    }
}
