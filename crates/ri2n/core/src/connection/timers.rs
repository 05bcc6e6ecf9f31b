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
/// one of an idle connection this often at first,
const HEARTBEAT_IDLE: Duration = Duration::from_secs(1);
/// and less often the longer it is idle, down to this.
const HEARTBEAT_MAX: Duration = Duration::from_secs(30);
/// Heartbeats within the time that the connection bears silence, at least.
const HEARTBEATS_MIN: u32 = 4;
/// Share of the idle time so far that an idle link is left alone.
const IDLE_SHARE: u32 = 4;
/// Bytes of both directions before larger datagrams are tried: less fits a few small ones.
const SIZES_AFTER_BYTES: u64 = 4096;
/// How long a connection counts as in use after data, and a path of several.
pub(super) const IN_USE: Duration = Duration::from_secs(2);
/// Shortest wait before the last packets of a burst are asked after.
const TAIL_MIN: Duration = Duration::from_millis(2);
/// The same of heartbeats.
const TAIL_MIN_IDLE: Duration = Duration::from_millis(15);
/// Silence of everything that makes links suspect on which nothing but heartbeats is sent, at most.
const SILENCE_IDLE_MAX: Duration = Duration::from_secs(1);
/// How often the wait doubles while nothing is answered.
const TAIL_DOUBLINGS: u32 = 4;
/// Heartbeats of others on the same path for each that a connection sends for its own sake.
const OWN_EVERY: u32 = 10;
/// Probes older than this count as unanswered, if three round-trip times are less.
const PROBE_PATIENCE: Duration = Duration::from_millis(200);

impl Connection {
    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        if self.is_drained() {
            return self.ack_at;
        }
        let mut soonest = self.ends_at();
        let mut consider = |time: Option<Time>| soonest = soonest.min(time.unwrap_or(Time::NEVER));
        consider(self.ack_at);
        consider(self.turn_at);
        consider(self.announce_at);
        let (interval, own_max, tail_min) = (self.heartbeat(), self.bears() / HEARTBEATS_MIN, self.tail_min());
        for link in self.each_link() {
            consider(link.loss_deadline());
            consider(link.tail_deadline(tail_min));
            consider(link.size_deadline().filter(|_| self.tries_sizes()));
            consider(self.silence_deadline(link));
            consider(Some(link.probe_deadline(interval, own_max)));
        }
        Some(soonest)
    }

    /// Does what is due. Calling it too early does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.closed.is_some() {
            return;
        }
        if now >= self.ends_at() && !self.is_drained() {
            self.closed = Some(CloseReason::Outage);
            return;
        }
        if self.ack_at.is_some_and(|at| now >= at) {
            self.window_due |= std::mem::take(&mut self.window_due_later);
            self.schedule_ack(now);
        }
        self.control_due = true;
        if self.is_idle_at(now) {
            self.release_memory();
        }
        if self.is_drained() {
            return;
        }
        if self.announce_at.is_some_and(|at| now >= at) {
            self.announce_now();
        }
        let (interval, own_max, tail_min) = (self.heartbeat(), self.bears() / HEARTBEATS_MIN, self.tail_min());
        // When the last packets are asked after again, and how often they were then.
        let mut asked = None;
        for index in 0..self.links.len() {
            let Some(link) = &mut self.links[index] else { continue };
            if link.loss_deadline().is_some_and(|at| now >= at) {
                let outcome = link.handle_loss_deadline(now, &mut self.send);
                self.handle_outcome(&outcome);
            }
            let Some(link) = &mut self.links[index] else { continue };
            if link.tail_deadline(tail_min).is_some_and(|at| now >= at) {
                let wait = link.tail_patience(tail_min) * (1 << link.tail_probes.min(TAIL_DOUBLINGS));
                asked = asked.max(Some((now + wait, link.tail_probes + 1)));
            }
            if now >= link.probe_deadline(interval, own_max) && !self.leave_idle_path(now, index) {
                let Some(link) = &mut self.links[index] else { continue };
                link.probe_due = true;
            }
            let Some(link) = &self.links[index] else { continue };
            if self.silence_deadline(link).is_some_and(|at| now >= at) {
                // Nothing else could carry what is in flight any better, and the peer may only be late. Several paths take turns to ask.
                let asked_before = self.silent_siblings(index);
                if let Some(link) = &mut self.links[index] {
                    link.monitor.suspect(now);
                    link.monitor.next_probe = now + PROBE_INTERVAL * asked_before;
                }
                self.open_links(now);
            }
        }
        if asked.is_some() {
            // Asking on every link tells whether the link is silent or the peer. Of several paths those are asked that carry something.
            for link in self.links.iter_mut().flatten().filter(|link| link.monitor.is_usable()) {
                link.probe_due |= link.path.entropy == 0 || link.oldest_sent().is_some();
                (link.tail_probe, link.tail_probes) = (asked.map(|(at, _)| at), asked.map_or(0, |(_, count)| count));
            }
            self.open_links(now);
        }
    }

    /// Whether the stream is over and the peer knows; a straggler may still be answered, and nothing is asked.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let has_sent_all = self.fin == Fin::Acked && self.is_flushed();
        self.closed.is_some() && self.resets_due == 0 || has_sent_all && self.receive.is_complete()
    }

    /// When nobody waits any longer.
    fn ends_at(&self) -> Time {
        let unacknowledged = self.patience.unacknowledged.filter(|_| self.send.base() < self.send.end());
        let stalled = unacknowledged.map_or(Time::NEVER, |longest| self.oldest_since + longest);
        let unconfirmed = self.unconfirmed_until.unwrap_or(Time::NEVER);
        stalled.min(self.heard_at + self.bears()).min(unconfirmed)
    }

    /// How long the peer may be silent.
    fn bears(&self) -> Duration {
        self.patience.silent.map_or(self.outage_deadline, |silent| silent.min(self.outage_deadline))
    }

    /// The shortest wait before the last packets are asked after: those of data sooner than heartbeats.
    fn tail_min(&self) -> Duration {
        if self.is_flushed() { TAIL_MIN_IDLE } else { TAIL_MIN }
    }

    fn heartbeat(&self) -> Duration {
        self.interval_after(self.heard_at.max(self.active_at).since(self.active_at), HEARTBEAT)
    }

    /// How often a silent link is asked: one of several paths as seldom as if it were idle, while another delivers between its ends;
    /// if none does, all together as often as one would be.
    pub(super) fn probe_interval(&self, now: Time, index: usize) -> Duration {
        let idle = if self.is_idle_at(now) { now.since(self.active_at) } else { Duration::ZERO };
        let is_spare = self.links[index].as_ref().is_some_and(|link| self.has_usable_sibling(link));
        let interval = if is_spare { HEARTBEAT } else { PROBE_INTERVAL * self.silent_siblings(index).max(1) };
        self.interval_after(idle, interval)
    }

    /// How often links are asked after so long without data, if they are asked so often while there are some.
    fn interval_after(&self, idle: Duration, in_use: Duration) -> Duration {
        if idle < IN_USE {
            return self.stretched(in_use);
        }
        let idle = (idle / IDLE_SHARE).clamp(HEARTBEAT_IDLE, HEARTBEAT_MAX);
        self.stretched(in_use).max(idle).min(self.bears() / HEARTBEATS_MIN).max(in_use)
    }

    /// Whether nothing has come or gone for a while, and nothing waits to.
    pub(super) fn is_idle_at(&self, now: Time) -> bool {
        now.since(self.active_at) >= IN_USE && self.send.base() == self.send.end() && self.fin != Fin::Sent
    }

    /// Whether enough has passed for larger datagrams to be worth a try.
    pub(super) fn tries_sizes(&self) -> bool {
        self.send.end() + self.receive.next() >= SIZES_AFTER_BYTES
    }

    fn release_memory(&mut self) {
        self.send.release();
        self.receive.release();
        (self.scratch, self.opened) = (Vec::new(), Vec::new());
        self.links.iter_mut().flatten().for_each(|link| link.release_memory());
    }

    /// When this link's silence means that the peer is silent on every link.
    fn silence_deadline(&self, link: &Link) -> Option<Time> {
        let oldest = link.oldest_sent().filter(|_| link.monitor.is_usable())?;
        let silence = SILENCE.max(link.rtt.smoothed() * 4);
        let silence =
            if self.is_flushed() { self.stretched(silence).min(SILENCE_IDLE_MAX).max(silence) } else { silence };
        Some(oldest.max(self.heard_at).max(link.path_answered_sent) + silence)
    }
}

impl Link {
    /// When the last packets sent are asked after, since nothing later can show that they are lost.
    fn tail_deadline(&self, tail_min: Duration) -> Option<Time> {
        self.oldest_sent().filter(|_| self.monitor.is_usable())?;
        Some(self.tail_probe.unwrap_or(self.eliciting_sent + self.tail_patience(tail_min)))
    }

    fn tail_patience(&self, tail_min: Duration) -> Duration {
        self.patience().max(self.path_patience).max(tail_min)
    }

    fn probe_deadline(&self, heartbeat: Duration, own_max: Duration) -> Time {
        match self.monitor.health() {
            Health::Good | Health::Gray => {
                let own = self.eliciting_sent + (heartbeat * OWN_EVERY).min(own_max);
                own.min(self.eliciting_sent.max(self.path_answered_sent) + heartbeat)
            }
            Health::Opening | Health::Suspect | Health::Down | Health::Unused => self.monitor.next_probe,
        }
    }

    /// Whether a probe leaves now.
    pub(super) fn is_probe_due(&self, now: Time) -> bool {
        self.probe_due || !self.monitor.is_usable() && now >= self.monitor.next_probe
    }

    /// A probe leaves: old ones without an answer are given up, the next has its time.
    pub(super) fn handle_probe(&mut self, now: Time, interval: Duration, buffer: &mut SendBuffer) -> Outcome {
        self.probe_due = false;
        if self.monitor.is_usable() {
            return Outcome::default();
        }
        self.monitor.schedule_probe(now, interval);
        self.give_up_older(now, PROBE_PATIENCE.max(self.rtt.smoothed() * 3), buffer)
    }
}
