//! Links that have failed too often in a row: hosts stay where the plan has them for the failure until the link has carried for its
//! hold-down.

use std::collections::BTreeMap;

use fabric::{Failure, LinkId, Plan};
use rollout::standby::StandbyNotice;

use super::{Inner, Manager};
use crate::{
    archive::ArchiveError,
    core::events::Condition,
    documents::{KeptOut, Maintenance, Severity},
};

/// The kind of event that such a link is.
const FLAPS: &str = "flaps";

impl Manager {
    /// The links of a plan that are kept out, and after how many failures in a row each: for whoever begins to stand by. Others are not
    /// kept out any more; without a plan, since nobody stands by, none are.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn keep_out_of(&self, plan: Option<&Plan>) -> Result<BTreeMap<LinkId, u32>, ArchiveError> {
        let mut inner = self.inner();
        let stored = plan.and_then(|plan| Some((plan, plan.failover.as_ref()?)));
        let find = |kept: &KeptOut| {
            let (plan, failover) = stored?;
            let link = plan.topology.link_ids().find(|link| plan.topology.link_label(*link) == kept.link)?;
            failover.switch_over(Failure::Link(link)).map(|_| (link, kept.failures))
        };
        let found = inner.kept_out.iter().filter_map(find).collect();
        let before = inner.kept_out.len();
        inner.kept_out.retain(|kept| find(kept).is_some());
        if inner.kept_out.len() != before {
            self.archive.keep_kept_out(&inner.kept_out)?;
        }
        Ok(found)
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
