//! Polls: what the last one found, and callers that wait for the next.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use controller::{
    StatusReport,
    status_words::{status_json, status_lines},
};
use fabric::Plan;

use super::{Inner, Manager, Refused};
use crate::documents::{FabricStatus, LinkStatus};

/// Which poll a caller asks for.
#[derive(Clone, Copy, Debug)]
pub enum Polled {
    /// The last one.
    Last,
    /// One that begins now.
    Now {
        /// How long it may take.
        at_most: Duration,
    },
}

/// Polls of the plan that switches hold.
#[derive(Default)]
pub(super) struct Polls {
    /// How many have begun since the start.
    begun: u64,
    /// Which one ended last.
    ended: u64,
    /// What it found; none of another plan.
    pub(super) last: Option<LastPoll>,
}

/// What a poll found.
pub(super) struct LastPoll {
    pub(super) at_s: u64,
    pub(super) took_s: f64,
    pub(super) links: Vec<LinkStatus>,
    pub(super) switches: usize,
    pub(super) as_planned: usize,
    fabric: Arc<FabricStatus>,
}

impl Polls {
    /// Takes the end of a poll.
    pub(super) fn end(
        &mut self,
        at_s: u64,
        plan: &Plan,
        report: &StatusReport,
        links: Vec<LinkStatus>,
        took: Duration,
    ) {
        self.ended = self.begun;
        self.last = Some(LastPoll {
            at_s,
            took_s: took.as_secs_f64(),
            links,
            switches: report.seen.len(),
            as_planned: report.as_planned(),
            fabric: Arc::new(FabricStatus {
                polled_s: at_s,
                is_sound: report.is_sound(),
                lines: status_lines(plan, report),
                report: status_json(plan, report),
            }),
        });
    }

    fn fabric(&self) -> Option<Arc<FabricStatus>> {
        self.last.as_ref().map(|last| Arc::clone(&last.fabric))
    }
}

impl Manager {
    /// Takes that a poll begins.
    pub fn poll_begins(&self) {
        self.inner().polls.begun += 1;
    }

    /// What `espalier status` prints of a poll.
    ///
    /// # Errors
    /// [`Refused::Conflict`], if switches are not polled, or the poll takes too long.
    pub fn fabric_status(&self, polled: Polled) -> Result<Arc<FabricStatus>, Refused> {
        let mut inner = self.inner();
        let Polled::Now { at_most } = polled else { return inner.polls.fabric().ok_or_else(|| inner.is_not_polled()) };
        if !inner.is_watching() {
            return Err(inner.is_not_polled());
        }
        let awaited = inner.polls.begun + 1;
        inner.look_at_once = true;
        self.due.notify_all();
        let waits = |inner: &mut Inner| inner.polls.ended < awaited && inner.is_watching() && !inner.stop;
        inner = self.due.wait_timeout_while(inner, at_most, waits).unwrap_or_else(PoisonError::into_inner).0;
        if waits(&mut inner) {
            return Err(Refused::Conflict(format!("the switches were not polled within {} s", at_most.as_secs())));
        }
        inner.polls.fabric().ok_or_else(|| inner.is_not_polled())
    }
}

impl Inner {
    fn is_watching(&self) -> bool {
        self.doing == super::WATCHING
    }

    fn is_not_polled(&self) -> Refused {
        Refused::Conflict(format!("the switches are not polled now; the controller is {}", self.doing))
    }
}
