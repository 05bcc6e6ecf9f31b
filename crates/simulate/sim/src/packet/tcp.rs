//! TCP and go-back-N as state machines: acknowledgements and time go in, segment numbers come out.
//!
//! The sender counts whole segments. Slow start and congestion avoidance are those of RFC 5681, fast recovery that of
//! RFC 6582 (NewReno, no selective acknowledgements), the timer that of RFC 6298 with at least 200 ms, as Linux has it;
//! CUBIC's window is that of RFC 9438. A marked acknowledgement halves the window once a round trip (RFC 3168).
//!
//! ```text
//!   una ──── in flight ──── next ──── not sent yet ──── total
//!        ◀─── min(window of congestion, of the receiver) ───▶
//! ```

use std::collections::BTreeSet;

use crate::workload::{SECOND_PS, TcpVariant};

/// The shortest time until a segment counts as lost.
pub const RTO_MIN_PS: u64 = SECOND_PS / 5;
const RTO_MAX_PS: u64 = 60 * SECOND_PS;
const DUPLICATES_MAX: u32 = 3;
const INITIAL_WINDOW: f64 = 10.0;
/// The least slow start threshold, in segments (RFC 5681).
const THRESHOLD_MIN: f64 = 2.0;
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Frames that a go-back-N sender may have in flight.
const GO_BACK_WINDOW: f64 = 256.0;

/// How a sender reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Tcp(TcpVariant),
    GoBackN,
}

/// The sending half.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    scheme: Scheme,
    total: u32,
    una: u32,
    next: u32,
    /// The highest that was ever sent, plus one.
    sent: u32,
    window: f64,
    threshold: f64,
    receive_window: f64,
    duplicates: u32,
    /// In fast recovery until this is acknowledged.
    recover: Option<u32>,
    resend: bool,
    /// Go-back-N: where it last went back to.
    went_back: Option<u32>,
    smoothed_ps: f64,
    variance_ps: f64,
    rto_ps: u64,
    deadline_ps: u64,
    marked_until: u32,
    /// CUBIC: the window at the last loss, and when growth began.
    window_max: f64,
    epoch_ps: Option<u64>,
    epoch_window: f64,
    /// The most by which coupled subflows let the window grow for a segment, and the least threshold.
    increase_max: f64,
    threshold_min: f64,
}

impl Sender {
    /// A sender of `total` segments; `u32::MAX` for no end. What go-back-N does not hear of for `go_back_ps` is lost.
    pub(crate) fn new(scheme: Scheme, total: u32, receive_window: u32, go_back_ps: u64) -> Self {
        let (window, rto_ps) = match scheme {
            Scheme::Tcp(_) => (INITIAL_WINDOW, SECOND_PS),
            Scheme::GoBackN => (GO_BACK_WINDOW, go_back_ps),
        };
        Self {
            scheme,
            total,
            una: 0,
            next: 0,
            sent: 0,
            window,
            threshold: f64::INFINITY,
            receive_window: f64::from(receive_window.max(1)),
            duplicates: 0,
            recover: None,
            resend: false,
            went_back: None,
            smoothed_ps: 0.0,
            variance_ps: 0.0,
            rto_ps,
            deadline_ps: u64::MAX,
            marked_until: 0,
            window_max: 0.0,
            epoch_ps: None,
            epoch_window: 0.0,
            increase_max: f64::INFINITY,
            threshold_min: THRESHOLD_MIN,
        }
    }

    /// The same as one of several subflows (RFC 6356).
    pub(crate) fn of_several(mut self) -> Self {
        self.threshold_min = 1.0;
        self
    }

    /// In congestion avoidance the window grows by no more for a segment.
    pub(crate) fn couple(&mut self, increase_max: f64) {
        self.increase_max = increase_max;
    }

    /// The window, and the round trip in seconds once it is known.
    pub(crate) fn window_and_round(&self) -> Option<(f64, f64)> {
        (self.smoothed_ps > 0.0).then_some((self.window, self.smoothed_ps / SECOND_PS as f64))
    }

    /// Whether a further segment could be sent at once.
    pub(crate) fn has_room(&self) -> bool {
        !self.resend && self.next == self.total && f64::from(self.next - self.una) + 1.0 <= self.allowed() + 1e-9
    }

    /// How many segments may be in flight.
    fn allowed(&self) -> f64 {
        let inflation = if self.recover.is_some() { f64::from(self.duplicates) } else { 0.0 };
        (self.window + inflation).min(self.receive_window).max(1.0)
    }

    /// Nothing is to be sent yet.
    pub(crate) fn extend_from_nothing(&mut self) {
        self.total = 0;
    }

    /// So many segments more are to be sent.
    pub(crate) fn extend(&mut self, segments: u32) {
        self.total += segments;
    }

    /// The segment from which on none was ever sent.
    pub(crate) fn unsent(&self) -> u32 {
        self.sent
    }

    /// Whether all is acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.una >= self.total
    }

    /// When the oldest segment counts as lost.
    pub(crate) fn deadline_ps(&self) -> u64 {
        self.deadline_ps
    }

    /// The next segment that may be sent, which is then sent.
    pub(crate) fn poll_segment(&mut self, now_ps: u64) -> Option<u32> {
        if self.resend {
            self.resend = false;
            self.arm(now_ps);
            return Some(self.una);
        }
        let allowed = self.allowed();
        if self.next >= self.total || f64::from(self.next - self.una) + 1.0 > allowed + 1e-9 {
            return None;
        }
        if self.next == self.una {
            self.arm(now_ps);
        }
        let segment = self.next;
        self.next += 1;
        self.sent = self.sent.max(self.next);
        Some(segment)
    }

    /// Takes an acknowledgement of everything below `ack`; `sent_ps` is when the segment that caused it was sent.
    pub(crate) fn handle_ack(&mut self, now_ps: u64, ack: u32, sent_ps: u64, marked: bool) {
        if ack > self.una {
            let fresh = ack - self.una;
            self.una = ack;
            self.next = self.next.max(ack);
            self.measure(now_ps - sent_ps.min(now_ps));
            match self.recover {
                Some(recover) if ack >= recover => {
                    self.recover = None;
                    self.duplicates = 0;
                    self.window = self.threshold;
                }
                Some(_) => {
                    // A partial acknowledgement: the next hole is lost as well.
                    self.resend = true;
                    self.duplicates = self.duplicates.saturating_sub(fresh);
                }
                None => {
                    self.duplicates = 0;
                    self.grow(now_ps, f64::from(fresh));
                }
            }
            if marked && ack > self.marked_until && self.scheme != Scheme::GoBackN {
                self.reduce(now_ps);
                self.window = self.threshold;
                self.marked_until = self.next;
            }
            if self.una == self.next { self.deadline_ps = u64::MAX } else { self.arm(now_ps) }
        } else if ack == self.una && self.una < self.next {
            self.duplicates += 1;
            if self.scheme == Scheme::GoBackN {
                // Back once for each gap; what else says the same was on its way before.
                if self.went_back != Some(self.una) {
                    self.went_back = Some(self.una);
                    self.next = self.una;
                }
            } else if self.duplicates == DUPLICATES_MAX && self.recover.is_none() {
                self.reduce(now_ps);
                self.window = self.threshold;
                self.recover = Some(self.next);
                self.resend = true;
            }
        }
    }

    /// The timer ran out.
    pub(crate) fn handle_timeout(&mut self, now_ps: u64) {
        if self.una == self.next {
            self.deadline_ps = u64::MAX;
            return;
        }
        if self.scheme != Scheme::GoBackN {
            self.reduce(now_ps);
            self.window = 1.0;
            self.rto_ps = (2 * self.rto_ps).min(RTO_MAX_PS);
        }
        self.recover = None;
        self.duplicates = 0;
        self.resend = false;
        self.next = self.una;
        self.epoch_ps = None;
        self.deadline_ps = now_ps + self.rto_ps;
    }

    fn arm(&mut self, now_ps: u64) {
        self.deadline_ps = now_ps + self.rto_ps;
    }

    fn measure(&mut self, sample_ps: u64) {
        if self.scheme == Scheme::GoBackN {
            return;
        }
        let sample = sample_ps as f64;
        if self.smoothed_ps == 0.0 {
            self.smoothed_ps = sample;
            self.variance_ps = sample / 2.0;
        } else {
            self.variance_ps += ((self.smoothed_ps - sample).abs() - self.variance_ps) / 4.0;
            self.smoothed_ps += (sample - self.smoothed_ps) / 8.0;
        }
        self.rto_ps = ((self.smoothed_ps + 4.0 * self.variance_ps) as u64).clamp(RTO_MIN_PS, RTO_MAX_PS);
    }

    fn reduce(&mut self, _now_ps: u64) {
        let flight = f64::from(self.next - self.una).min(self.window);
        self.threshold = match self.scheme {
            Scheme::Tcp(TcpVariant::Cubic) => {
                self.window_max =
                    if self.window < self.window_max { self.window * (1.0 + CUBIC_BETA) / 2.0 } else { self.window };
                flight * CUBIC_BETA
            }
            Scheme::Tcp(TcpVariant::Reno) | Scheme::GoBackN => flight / 2.0,
        }
        .max(self.threshold_min);
        self.epoch_ps = None;
    }

    fn grow(&mut self, now_ps: u64, fresh: f64) {
        let Scheme::Tcp(variant) = self.scheme else { return };
        if self.window > self.receive_window {
            return;
        }
        if self.window < self.threshold {
            self.window += fresh;
            return;
        }
        match variant {
            TcpVariant::Reno => self.window += (fresh / self.window).min(fresh * self.increase_max),
            TcpVariant::Cubic => {
                let epoch_ps = *self.epoch_ps.get_or_insert(now_ps);
                if epoch_ps == now_ps {
                    self.epoch_window = self.window;
                    self.window_max = self.window_max.max(self.window);
                }
                let second = SECOND_PS as f64;
                let elapsed = (now_ps - epoch_ps) as f64 / second;
                let round = self.smoothed_ps / second;
                let k = ((self.window_max - self.epoch_window) / CUBIC_C).cbrt();
                let target = CUBIC_C * (elapsed + round - k).powi(3) + self.window_max;
                // What Reno would have by now with the same back-off.
                let friendly =
                    self.epoch_window + 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) * elapsed / round.max(1e-9);
                let target = target.max(friendly).clamp(self.window, 1.5 * self.window);
                self.window += (target - self.window) / self.window * fresh;
            }
        }
    }
}

/// The receiving half.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    next: u32,
    early: BTreeSet<u32>,
    unacknowledged: u32,
    first_sent_ps: u64,
    refused: bool,
    marked: bool,
}

/// What a receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Acknowledge at once everything below `ack`.
    Now {
        ack: u32,
        sent_ps: u64,
        marked: bool,
    },
    /// Wait for more, at most the time of a delayed acknowledgement.
    Later,
    Nothing,
}

impl Receiver {
    /// How many segments arrived in order.
    pub(crate) fn in_order(&self) -> u32 {
        self.next
    }

    /// Takes a segment. The second value is how many segments became deliverable by it.
    pub(crate) fn handle_segment(
        &mut self,
        scheme: Scheme,
        segment: u32,
        sent_ps: u64,
        marked: bool,
        total: u32,
    ) -> (Answer, u32) {
        self.marked |= marked;
        let before = self.next;
        match segment.cmp(&self.next) {
            std::cmp::Ordering::Equal => {
                self.next += 1;
                while self.early.remove(&self.next) {
                    self.next += 1;
                }
                self.refused = false;
                if self.unacknowledged == 0 {
                    self.first_sent_ps = sent_ps;
                }
                self.unacknowledged += 1;
                let every = if scheme == Scheme::GoBackN { 16 } else { 2 };
                let jump = self.next - before > 1 || !self.early.is_empty();
                let answer = if jump || self.unacknowledged >= every || self.next >= total || self.marked {
                    self.answer(self.first_sent_ps)
                } else {
                    Answer::Later
                };
                (answer, self.next - before)
            }
            std::cmp::Ordering::Greater if scheme == Scheme::GoBackN => {
                let answer = if self.refused { Answer::Nothing } else { self.answer(sent_ps) };
                self.refused = true;
                (answer, 0)
            }
            std::cmp::Ordering::Greater => {
                self.early.insert(segment);
                (self.answer(sent_ps), 0)
            }
            std::cmp::Ordering::Less => (self.answer(sent_ps), 0),
        }
    }

    /// The time of a delayed acknowledgement has passed.
    pub(crate) fn handle_delay(&mut self) -> Answer {
        if self.unacknowledged > 0 { self.answer(self.first_sent_ps) } else { Answer::Nothing }
    }

    fn answer(&mut self, sent_ps: u64) -> Answer {
        self.unacknowledged = 0;
        let marked = std::mem::take(&mut self.marked);
        Answer::Now { ack: self.next, sent_ps, marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    /// Sender and receiver over a line that loses and holds back frames; all must arrive, in order, once.
    #[test]
    fn everything_arrives_over_a_line_that_loses() {
        let schemes = [Scheme::Tcp(TcpVariant::Reno), Scheme::Tcp(TcpVariant::Cubic), Scheme::GoBackN];
        for (seed, scheme) in (0..30).zip(schemes.into_iter().cycle()) {
            let (mut rng, total) = (Rng::new(seed), 500);
            let (mut sender, mut receiver) = (Sender::new(scheme, total, 64, SECOND_PS / 200), Receiver::default());
            let (mut now, mut delivered, mut line) = (0, 0, std::collections::VecDeque::new());
            while !sender.is_done() {
                now += SECOND_PS / 10_000;
                assert!(now < 600 * SECOND_PS, "seed {seed}: {scheme:?} makes no progress");
                while let Some(segment) = sender.poll_segment(now) {
                    if rng.below(20) != 0 && line.len() < 100 {
                        line.push_back((segment, now));
                    }
                }
                if sender.deadline_ps() <= now {
                    sender.handle_timeout(now);
                }
                for _ in 0..4 {
                    let Some((segment, sent)) = line.pop_front() else { break };
                    let (answer, fresh) = receiver.handle_segment(scheme, segment, sent, false, total);
                    delivered += fresh;
                    let answer = if answer == Answer::Later { receiver.handle_delay() } else { answer };
                    if let (Answer::Now { ack, sent_ps, marked }, true) = (answer, rng.below(20) != 0) {
                        sender.handle_ack(now, ack, sent_ps, marked);
                    }
                }
            }
            assert_eq!((delivered, receiver.in_order()), (total, total), "seed {seed}");
        }
    }

    /// In congestion avoidance a window grows by the lesser of its own increase and the coupled one; slow start is not coupled.
    #[test]
    fn a_coupled_window_grows_by_the_lesser_increase() {
        for (increase, grown) in [(f64::INFINITY, 1.0 / 8.0), (1.0, 1.0 / 8.0), (0.01, 0.01)] {
            let mut sender = Sender::new(Scheme::Tcp(TcpVariant::Reno), 100, 64, 0).of_several();
            sender.couple(increase);
            let slow = sender.window;
            sender.next = 50;
            sender.handle_ack(SECOND_PS, 1, 0, false);
            assert_eq!(sender.window, slow + 1.0);
            (sender.window, sender.threshold) = (8.0, 8.0);
            sender.handle_ack(SECOND_PS, 2, 0, false);
            assert!((sender.window - 8.0 - grown).abs() < 1e-12, "{increase}");
        }
    }
}
