//! What connections over the same paths learn of each other: whether the paths answer, and how many share them.
//!
//! A path that answers one connection answers all of them. So the more connections a machine has on a path, the less
//! often each of them asks whether it is alive: together they ask as often as [`ASKERS`] would alone, and each takes
//! what the others heard for its own.
//!
//! ```text
//!  connection 1  PING ··········································   alone: every 100 ms
//!  connection 1  PING ················ heard of 2 ··············   with others: when nobody was answered for as long,
//!  connection 2  ······· PING ─ answered ··············· PING ···   and, for its own sake, ten times as seldom
//! ```

use super::Connection;
use std::time::Duration;

use crate::{
    health::{PROBE_INTERVAL, SILENCE},
    link::Path,
    time::Time,
};

/// So many connections on a path ask as often as each would alone; more share that out.
const ASKERS: u32 = 8;
/// Longest stretch of an interval.
const STRETCH_MAX: u32 = 256;
/// Probes of others that were answered since a link fell silent, in their usual interval: as many as it would want itself.
const PROBES_OF_OTHERS: u32 = 3;

/// The connections of a machine, or of one of its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// All of them.
    pub connections: usize,
    /// Those that had data waiting when they were last looked at ([`Connection::is_backlogged`]).
    pub backlogged: usize,
}

/// What one connection has found out of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathReport {
    /// When the last packet was sent on it that the peer answered.
    pub answered: Time,
    /// The longest time from sending a packet to its acknowledgement since the connection last said; nothing if none
    /// was acknowledged. The time that the peer kept the acknowledgement is part of it.
    pub answer_time: Option<Duration>,
}

/// What connections on the same path know of it together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathKnowledge {
    answered: Time,
    /// Smoothed time from a packet to its acknowledgement, and its variation (RFC 6298).
    answer_time: Option<(Duration, Duration)>,
}

impl PathKnowledge {
    /// Takes in what one connection has found out.
    pub fn learn(&mut self, report: &PathReport) {
        self.answered = self.answered.max(report.answered);
        let Some(sample) = report.answer_time else { return };
        self.answer_time = Some(match self.answer_time {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                ((smoothed * 7 + sample) / 8, (variation * 3 + smoothed.abs_diff(sample)) / 4)
            }
        });
    }

    /// When the last packet was sent that the peer answered.
    #[must_use]
    pub fn answered(&self) -> Time {
        self.answered
    }

    /// How long an answer may take before something is wrong; zero if nothing was acknowledged yet.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.answer_time.map_or(Duration::ZERO, |(smoothed, variation)| smoothed + variation * 4)
    }
}

impl Connection {
    /// An interval for one connection of so many. Those that began together are not to ask together: the first answer
    /// spares the others the question.
    pub(super) fn stretched(&self, interval: Duration) -> Duration {
        if self.stretch == 1 {
            return interval;
        }
        let share = u32::from(u16::from_le_bytes([self.secret[0], self.secret[1]]));
        interval * self.stretch + interval * self.stretch / (1 << 16) * share
    }

    /// Whether data wait that the peer has room for.
    #[must_use]
    pub fn is_backlogged(&self) -> bool {
        self.closed.is_none() && self.send.waiting(self.peer_limit) > 0
    }

    /// Exchanges what is known of paths with the other connections of this machine. `meet` takes each link's path and what this
    /// connection knows of it, and returns what all connections on that path know.
    pub fn meet_neighbours(
        &mut self,
        now: Time,
        all: Neighbours,
        mut meet: impl FnMut(&Path, &PathReport) -> PathKnowledge,
    ) {
        let others = all.backlogged - usize::from(self.is_backlogged()).min(all.backlogged);
        self.stretch = u32::try_from(all.connections).unwrap_or(u32::MAX).div_ceil(ASKERS).clamp(1, STRETCH_MAX);
        self.put_off_opening(now);
        for link in self.links.iter_mut().flatten() {
            link.congestion.set_flows(others + 1);
            let report = PathReport { answered: link.newest_acked_sent, answer_time: link.answer_time.take() };
            let known = meet(&link.path, &report);
            link.path_answered_sent = link.path_answered_sent.max(known.answered);
            link.path_patience = known.patience().min(SILENCE);
            let since = link.path_answered_sent.since(link.monitor.changed_at);
            if since > PROBE_INTERVAL * PROBES_OF_OTHERS && link.monitor.recover(now) {
                link.handle_usable(now);
                self.control_due = true;
            }
        }
    }
}
