//! Links that have failed: how often in a row, and those that have failed too often. Hosts stay where the plan has them for such a failure
//! until the link has carried for its hold-down.

use std::collections::BTreeMap;

use fabric::{Failure, LinkId, Plan};
use rollout::standby::{PastFailures, StandbyNotice};

use super::{Inner, Manager};
use crate::{
    archive::{ArchiveError, LinkFailures},
    core::events::Condition,
    documents::{KeptOut, Maintenance, Severity},
};

/// The kind of event that such a link is.
const FLAPS: &str = "flaps";

impl Manager {
    /// What is remembered of a plan's links, for whoever begins to stand by: those that are kept out, and failures in a row of others,
    /// unless the last one is so long ago that the next one counts anew. Other links are not kept out any more; without a
    /// plan, since nobody stands by, none are.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn past_failures(&self, plan: Option<&Plan>) -> Result<BTreeMap<LinkId, PastFailures>, ArchiveError> {
        let mut inner = self.inner();
        let stored = plan.and_then(|plan| Some((plan, plan.failover.as_ref()?)));
        let find = |link: &str| {
            let (plan, failover) = stored?;
            let link = plan.topology.link_ids().find(|id| plan.topology.link_label(*id) == link)?;
            failover.switch_over(Failure::Link(link)).map(|_| link)
        };
        let recent = self.recent(self.archive.failures()?).into_iter();
        let counted = recent.filter_map(|LinkFailures { link, in_a_row, .. }| {
            Some((find(&link)?, PastFailures { in_a_row, is_kept_out: false }))
        });
        let mut found: BTreeMap<LinkId, PastFailures> = counted.collect();
        let kept_out = inner
            .kept_out
            .iter()
            .filter_map(|kept| Some((find(&kept.link)?, PastFailures { in_a_row: kept.failures, is_kept_out: true })));
        found.extend(kept_out);
        let before = inner.kept_out.len();
        inner.kept_out.retain(|kept| find(&kept.link).is_some());
        if inner.kept_out.len() != before {
            self.archive.keep_kept_out(&inner.kept_out)?;
        }
        Ok(found)
    }

    /// Takes that a link has failed so often in a row.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn link_failed(&self, plan: &Plan, link: LinkId, in_a_row: u32) -> Result<(), ArchiveError> {
        let link = plan.topology.link_label(link);
        // One after the other: each writes them all.
        let _inner = self.inner();
        let mut failures = self.recent(self.archive.failures()?);
        failures.retain(|failed| failed.link != link);
        failures.push(LinkFailures { link, in_a_row, at_s: self.now_s() });
        self.archive.keep_failures(&failures)
    }

    /// Failures after which the next one is not the first in a row.
    fn recent(&self, mut failures: Vec<LinkFailures>) -> Vec<LinkFailures> {
        let (now_s, begins_anew_s) = (self.now_s(), (2.0 * self.config().watch.hold_max) as u64);
        failures.retain(|failed| now_s < failed.at_s.saturating_add(begins_anew_s));
        failures
    }

    /// Takes what a standby noticed of a link.
    ///
    /// # Errors
    /// [`ArchiveError`]; what was noticed is known all the same.
    pub fn noticed(&self, plan: &Plan, notice: &StandbyNotice) -> Result<(), ArchiveError> {
        let (link, kept) = match *notice {
            StandbyNotice::KeptOut(link, failures, hold) => (link, Some((failures, hold))),
            StandbyNotice::Admitted(link) => (link, None),
            _ => return Ok(()),
        };
        let link = plan.topology.link_label(link);
        let mut inner = self.inner();
        inner.kept_out.retain(|kept| kept.link != link);
        if let Some((failures, hold)) = kept {
            let hold_ms = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
            inner.kept_out.push(KeptOut { link, failures, hold_ms });
        }
        inner.look_at_once = true;
        let written = self.archive.keep_kept_out(&inner.kept_out);
        drop(inner);
        self.due.notify_all();
        written
    }
}

impl Inner {
    /// What is said of each such link.
    pub(super) fn flaps(&self, marks: &[Maintenance]) -> Vec<Condition> {
        let one = |KeptOut { link, failures, hold_ms }: &KeptOut| {
            let mark = marks.iter().find(|mark| super::concerns(mark, link));
            let hold_s = *hold_ms as f64 / 1e3;
            Condition {
                kind: FLAPS.to_owned(),
                subject: link.clone(),
                severity: if mark.is_some() { Severity::Note } else { Severity::Warning },
                message: format!(
                    "{link} has failed {failures} times in a row, and is kept out of use until it has carried for {hold_s} s"
                ),
                consequences: Vec::new(),
                remedy: Some(format!(
                    "replace the cable or the transceivers of {link}; hosts return to it by themselves once it has carried for {hold_s} s"
                )),
                maintenance: mark.map(|mark| mark.reason.clone()),
            }
        };
        self.kept_out.iter().map(one).collect()
    }
}
