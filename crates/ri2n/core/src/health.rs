//! Whether a link delivers: \[RI2N 3.3.3\]'s arrival ratio, kept continuously, and what follows from silence.
//!
//! ```text
//!   Unused ◀──────┐         carrier lost, send refused
//!      ▼          │ (a further path that nothing needs)
//!   Opening ──▶ Good ◀──▶ Gray ──────────▶ Down
//!      │          │         │               │ carrier back
//!      │          ▼ silence ▼               ▼
//!      └─────▶ Suspect ◀──────────────── (Suspect)    three answered probes in a row: Good again
//! ```
//!
//! A link is suspected when packets sent on *other* links well after its oldest unanswered one were acknowledged: then it
//! is the link and not the peer that is silent. If everything is silent, all links are suspected together, later. Probes
//! go out at a fixed interval, however long the silence was, so that healing is noticed at once after any outage.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Silence that makes a link suspect while others deliver, if three round-trip times are less.
pub(crate) const SUSPICION: Duration = Duration::from_millis(10);
/// Silence of everything that makes every link suspect.
pub(crate) const SILENCE: Duration = Duration::from_millis(50);
/// Interval of probes on a suspect link.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of probes while the port has no carrier: a fallback, since the kernel reports the carrier's return. A packet that is sent
/// without carrier starts address resolution (ARP, ND), which the kernel repeats only after a second, even if the carrier is back by then.
const PROBE_INTERVAL_NO_CARRIER: Duration = Duration::from_secs(10);
/// Answered probes in a row that make a link good again while there are others.
const PROBES_GOOD: u32 = 3;
/// Delivery ratio below which a link is called gray.
const GRAY: f64 = 0.98;
/// Packets that outweigh what the delivery ratio remembers.
const RATIO_MEMORY: f64 = 128.0;

/// What is thought of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// Delivers.
    Good,
    /// Delivers, but loses packets.
    Gray,
    /// No answer yet.
    Opening,
    /// Silent; probed.
    Suspect,
    /// Its port has no carrier, or refuses packets.
    Down,
    /// A further path between two addresses that the stream does not need now: nothing is sent on it.
    Unused,
}

/// The health of one link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Monitor {
    health: Health,
    delivery_ratio: f64,
    good_probes: u32,
    suspicions: u64,
    /// Whether the port is known to have no carrier.
    has_no_carrier: bool,
    pub(crate) changed_at: Time,
    pub(crate) next_probe: Time,
}

impl Monitor {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            health: Health::Opening,
            delivery_ratio: 1.0,
            good_probes: 0,
            suspicions: 0,
            has_no_carrier: false,
            changed_at: now,
            next_probe: now,
        }
    }

    /// Of a further path, which is not opened before it is needed.
    pub(crate) fn unused(now: Time) -> Self {
        Self { health: Health::Unused, next_probe: Time::NEVER, ..Self::new(now) }
    }

    pub(crate) fn health(&self) -> Health {
        self.health
    }

    /// Share of packets that arrived, of the last hundred or so.
    pub(crate) fn delivery_ratio(&self) -> f64 {
        self.delivery_ratio
    }

    pub(crate) fn suspicions(&self) -> u64 {
        self.suspicions
    }

    /// Whether data may be sent.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.health, Health::Good | Health::Gray)
    }

    pub(crate) fn handle_outcomes(&mut self, acked: u64, lost: u64) {
        let total = (acked + lost) as f64;
        if total > 0.0 {
            let weight = total / (total + RATIO_MEMORY);
            self.delivery_ratio += weight * (acked as f64 / total - self.delivery_ratio);
        }
        if self.is_usable() {
            self.health = if self.delivery_ratio < GRAY { Health::Gray } else { Health::Good };
        }
    }

    /// A packet sent on this link was acknowledged. Returns whether the link became usable by that.
    pub(crate) fn handle_answer(&mut self, now: Time, others: Others) -> bool {
        match self.health {
            Health::Good | Health::Gray | Health::Opening | Health::Unused => false,
            Health::Suspect | Health::Down => {
                self.good_probes += 1;
                let needed = match others {
                    Others::SomeUsable => PROBES_GOOD,
                    Others::NoneUsable => 1,
                };
                let recovered = self.good_probes >= needed;
                if recovered {
                    self.has_no_carrier = false;
                    self.delivery_ratio = self.delivery_ratio.max(0.9);
                    self.enter(now, Health::Good);
                }
                recovered
            }
        }
    }

    /// A pong proved that the peer is where the link leads. Returns whether the link became usable by that.
    pub(crate) fn handle_pong(&mut self, now: Time) -> bool {
        let opened = self.health == Health::Opening;
        if opened {
            self.enter(now, Health::Good);
        }
        opened
    }

    /// Others found the path alive. Returns whether the link became usable by that.
    pub(crate) fn recover(&mut self, now: Time) -> bool {
        let recovered = self.health == Health::Suspect;
        if recovered {
            self.delivery_ratio = self.delivery_ratio.max(0.9);
            self.enter(now, Health::Good);
        }
        recovered
    }

    /// A path is needed that was not used: it is asked now.
    pub(crate) fn begin_opening(&mut self, now: Time) {
        self.enter(now, Health::Opening);
        self.next_probe = now;
    }

    /// A path is not needed any more.
    pub(crate) fn leave(&mut self, now: Time) {
        self.enter(now, Health::Unused);
        self.next_probe = Time::NEVER;
    }

    /// Whether sending has a chance.
    pub(crate) fn may_try(&self) -> bool {
        !matches!(self.health, Health::Down | Health::Unused)
    }

    /// The next probe of a link that is silent leaves soon.
    pub(crate) fn hasten(&mut self, now: Time) {
        if !self.has_no_carrier && self.health != Health::Unused {
            self.next_probe = self.next_probe.min(now + PROBE_INTERVAL);
        }
    }

    /// A probe of a link that is silent leaves: when the next does.
    pub(crate) fn schedule_probe(&mut self, now: Time, interval: Duration) {
        self.next_probe = now + if self.has_no_carrier { PROBE_INTERVAL_NO_CARRIER } else { interval };
    }

    /// A probe was not answered in time.
    pub(crate) fn handle_probe_lost(&mut self) {
        self.good_probes = 0;
    }

    /// The link is silent. Returns whether that is news.
    pub(crate) fn suspect(&mut self, now: Time) -> bool {
        let news = self.is_usable();
        if news {
            self.suspicions += 1;
            self.enter(now, Health::Suspect);
            self.next_probe = now;
        }
        news
    }

    /// The port lost its carrier, or else refuses what is sent. Returns whether that is news.
    pub(crate) fn handle_down(&mut self, now: Time, has_no_carrier: bool) -> bool {
        let news = self.is_usable();
        self.suspicions += u64::from(news);
        if self.health != Health::Down || has_no_carrier {
            if self.health != Health::Down {
                self.enter(now, Health::Down);
            }
            self.has_no_carrier = has_no_carrier;
            self.schedule_probe(now, PROBE_INTERVAL);
        }
        news
    }

    /// The port has its carrier again.
    pub(crate) fn handle_up(&mut self, now: Time) {
        self.has_no_carrier = false;
        if self.health == Health::Down {
            self.enter(now, Health::Suspect);
            self.next_probe = now;
        }
    }

    fn enter(&mut self, now: Time, health: Health) {
        self.health = health;
        self.good_probes = 0;
        self.changed_at = now;
    }
}

/// Whether other links can carry data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// At least one can.
    SomeUsable,
    /// None can.
    NoneUsable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_recovers_by_answers_in_a_row() {
        let now = Time::ZERO;
        let mut monitor = Monitor::new(now);
        assert!(!monitor.handle_answer(now, Others::NoneUsable), "only a pong opens a link");
        assert!(monitor.handle_pong(now) && monitor.is_usable());
        assert!(monitor.suspect(now) && !monitor.suspect(now));
        assert!(!monitor.handle_answer(now, Others::SomeUsable) && !monitor.handle_answer(now, Others::SomeUsable));
        monitor.handle_probe_lost();
        assert!(!monitor.handle_answer(now, Others::SomeUsable) && !monitor.handle_answer(now, Others::SomeUsable));
        assert!(monitor.handle_answer(now, Others::SomeUsable) && monitor.is_usable());
        assert!(monitor.handle_down(now, false) && !monitor.suspect(now));
        assert_eq!(monitor.next_probe, now + PROBE_INTERVAL);
        assert!(!monitor.handle_down(now, true));
        monitor.hasten(now);
        assert_eq!(monitor.next_probe, now + PROBE_INTERVAL_NO_CARRIER);
        monitor.handle_up(now);
        assert_eq!((monitor.health(), monitor.suspicions()), (Health::Suspect, 2));
        assert!(monitor.handle_answer(now, Others::NoneUsable), "one answer is enough where nothing else is left");
    }

    #[test]
    fn the_ratio_tells_gray_from_good() {
        let mut monitor = Monitor::new(Time::ZERO);
        monitor.handle_pong(Time::ZERO);
        for _ in 0..40 {
            monitor.handle_outcomes(9, 1);
        }
        assert_eq!(monitor.health(), Health::Gray);
        assert!((monitor.delivery_ratio() - 0.9).abs() < 0.02);
        for _ in 0..100 {
            monitor.handle_outcomes(10, 0);
        }
        assert_eq!(monitor.health(), Health::Good);
    }
}
