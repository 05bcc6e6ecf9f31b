//! What happens when nothing does: overdue packets, silence, probes, deadlines.

use super::{CloseReason, Connection, Fin};
use crate::{
    buffer::SendBuffer,
    health::{Health, PROBE_INTERVAL, SILENCE},
    link::{Link, Outcome},
    time::Time,
};
use std::time::Duration;

/// An idle link of a connection in use is probed this often,
const HEARTBEAT: Duration = Duration::from_millis(100);
/// and one of an idle connection this often.
const HEARTBEAT_IDLE: Duration = Duration::from_secs(1);
/// How long a connection counts as in use after data.
const IN_USE: Duration = Duration::from_secs(2);
/// Shortest wait before the last packets of a burst are asked after.
const TAIL_MIN: Duration = Duration::from_millis(2);
/// Probes older than this count as unanswered, if three round-trip times are less.
const PROBE_PATIENCE: Duration = Duration::from_millis(200);

impl Connection {
    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let mut soonest = self.ends_at();
        let mut consider = |time: Option<Time>| soonest = soonest.min(time.unwrap_or(Time::NEVER));
        consider(self.ack_at);
        let interval = self.heartbeat();
        for link in self.each_link() {
            consider(link.loss_deadline());
            consider(link.tail_deadline());
            consider(link.size_deadline());
            consider(self.silence_deadline(link));
            consider(Some(link.probe_deadline(interval)));
        }
        Some(soonest)
    }

    /// Does what is due. Calling it too early does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.closed.is_some() {
            return;
        }
        if now >= self.ends_at() {
            self.closed = Some(CloseReason::Outage);
            return;
        }
        if self.ack_at.is_some_and(|at| now >= at) {
            self.schedule_ack(now);
        }
        self.control_due = true;
        let interval = self.heartbeat();
        let mut ask_all = false;
        for index in 0..self.links.len() {
            let Some(link) = &mut self.links[index] else { continue };
            if link.loss_deadline().is_some_and(|at| now >= at) {
                let outcome = link.handle_loss_deadline(now, &mut self.send);
                self.handle_outcome(&outcome);
            }
            let Some(link) = &mut self.links[index] else { continue };
            if link.tail_deadline().is_some_and(|at| now >= at) {
                link.tail_probe = Some(now + link.patience().max(TAIL_MIN));
                ask_all = true;
            }
            if now >= link.probe_deadline(interval) {
                link.probe_due = true;
            }
            let Some(link) = &self.links[index] else { continue };
            if self.silence_deadline(link).is_some_and(|at| now >= at) {
                // Nothing else could carry what is in flight any better, and the peer may only be late.
                if let Some(link) = &mut self.links[index] {
                    link.monitor.suspect(now);
                }
            }
        }
        if ask_all {
            // Asking on every link tells whether the link is silent or the peer.
            for link in self.links.iter_mut().flatten().filter(|link| link.monitor.is_usable()) {
                link.probe_due = true;
            }
        }
    }

    /// Whether the stream is over and the peer knows; a straggler may still be answered.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.closed.is_some() && self.resets_due == 0 || self.fin == Fin::Acked && self.receive.is_complete()
    }

    /// When nobody waits any longer.
    fn ends_at(&self) -> Time {
        let silent = self.patience.silent.map_or(self.outage_deadline, |silent| silent.min(self.outage_deadline));
        let unacknowledged = self.patience.unacknowledged.filter(|_| self.send.base() < self.send.end());
        let stalled = unacknowledged.map_or(Time::NEVER, |longest| self.oldest_since + longest);
        stalled.min(self.heard_at + silent)
    }

    fn heartbeat(&self) -> Duration {
        let last = self.heard_at.max(self.active_at);
        if last.since(self.active_at) < IN_USE { HEARTBEAT } else { HEARTBEAT_IDLE }
    }

    /// When this link's silence means that the peer is silent on every link.
    fn silence_deadline(&self, link: &Link) -> Option<Time> {
        let oldest = link.oldest_sent().filter(|_| link.monitor.is_usable())?;
        Some(oldest.max(self.heard_at) + SILENCE.max(link.rtt.smoothed() * 4))
    }
}

impl Link {
    /// When the last packets sent are asked after, since nothing later can show that they are lost.
    fn tail_deadline(&self) -> Option<Time> {
        self.oldest_sent().filter(|_| self.monitor.is_usable())?;
        Some(self.tail_probe.unwrap_or(self.eliciting_sent + self.patience().max(TAIL_MIN)))
    }

    fn probe_deadline(&self, heartbeat: Duration) -> Time {
        match self.monitor.health() {
            Health::Good | Health::Gray => self.eliciting_sent + heartbeat,
            Health::Opening | Health::Suspect | Health::Down => self.monitor.next_probe,
        }
    }

    /// Whether a probe leaves now.
    pub(super) fn is_probe_due(&self, now: Time) -> bool {
        self.probe_due || !self.monitor.is_usable() && now >= self.monitor.next_probe
    }

    /// A probe leaves: old ones without an answer are given up, the next has its time.
    pub(super) fn handle_probe(&mut self, now: Time, buffer: &mut SendBuffer) -> Outcome {
        self.probe_due = false;
        if self.monitor.is_usable() {
            return Outcome::default();
        }
        self.monitor.next_probe = now + PROBE_INTERVAL;
        self.give_up_older(now, PROBE_PATIENCE.max(self.rtt.smoothed() * 3), buffer)
    }
}
