//! Proposals: made, approved, withdrawn, and plans of earlier targets.

use std::{fmt::Write as _, sync::Arc};

use fabric::Plan;

use super::{Manager, Refused, short};
use crate::{
    archive::ArchiveError,
    core::{
        approve::{NotApproved, approve},
        events::Condition,
        propose::effect,
    },
    documents::{Cause, Proposal, ProposalState, Severity, Target, TargetState},
    show,
};

/// The kind of event that a proposal is.
const PROPOSED: &str = "proposed";

/// What is said of a plan that is proposed.
pub(super) struct Draft<'a> {
    /// What for.
    pub(super) reason: &'a str,
    /// Who proposes it.
    pub(super) by: &'a str,
    /// Why it was made.
    pub(super) cause: Cause,
    /// The maximum channel time now, if that is not what the plan at hand says of itself.
    pub(super) time_before: Option<f64>,
}

impl<'a> Draft<'a> {
    /// A plan that somebody asks for.
    pub(super) fn asked(reason: &'a str, by: &'a str) -> Self {
        Self { reason, by, cause: Cause::Request, time_before: None }
    }
}

/// What a plan does without, by name.
pub(super) struct Omission {
    /// Everything, in order.
    pub(super) drained: Vec<String>,
    /// Switches among it that the plan does not know at all.
    pub(super) absent: Vec<String>,
    /// The digest of the plan that it comes from.
    pub(super) base: String,
}

impl Omission {
    /// Of a plan that does without nothing.
    pub(super) fn nothing(digest: &str) -> Self {
        Self { drained: Vec::new(), absent: Vec::new(), base: digest.to_owned() }
    }

    /// Of a proposal's plan.
    pub(super) fn of(proposal: Proposal) -> Self {
        let Proposal { drained, absent, base, .. } = proposal;
        Self { drained, absent, base }
    }
}

impl Manager {
    /// Proposes a plan.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn propose(&self, plan: &Plan, reason: &str, by: &str) -> Result<Proposal, Refused> {
        let _keeping = self.keeping();
        let digest = self.archive.keep_plan(plan)?;
        let proposal = self.proposal(plan, &digest, &Draft::asked(reason, by), Omission::nothing(&digest))?;
        self.audit(by, &format!("proposed plan {} as proposal {}: {reason}", short(&digest), proposal.id))?;
        Ok(proposal)
    }

    pub(super) fn proposal(
        &self,
        plan: &Plan,
        digest: &str,
        &Draft { reason, by, cause, time_before }: &Draft<'_>,
        Omission { drained, absent, base }: Omission,
    ) -> Result<Proposal, Refused> {
        let (parent, held, since) = {
            let inner = self.inner();
            (inner.target_number(), inner.held.clone(), inner.since())
        };
        if held.is_some_and(|(held, _)| held.plan == digest && held.number == parent) {
            return Err(Refused::Conflict(format!("plan {} is the target already", short(digest))));
        }
        let (way, mut effect) = effect(since.as_deref(), plan, self.config().host_tables())?;
        effect.max_channel_time_before = time_before.or(effect.max_channel_time_before);
        let proposal = Proposal {
            id: 0,
            parent,
            plan: digest.to_owned(),
            reason: reason.to_owned(),
            by: by.to_owned(),
            cause,
            at_s: self.now_s(),
            way,
            effect,
            state: ProposalState::Open,
            approvals: Vec::new(),
            drained,
            absent,
            base,
        };
        let proposal = self.archive.add_proposal(&proposal)?;
        let told = Condition {
            kind: PROPOSED.to_owned(),
            subject: reason.to_owned(),
            severity: Severity::Warning,
            message: show::proposal(&proposal),
            consequences: Vec::new(),
            remedy: None,
            maintenance: None,
        };
        let mut inner = self.inner();
        let changes = inner.events.tell(proposal.at_s, told);
        self.keep(&mut inner, changes)?;
        Ok(proposal)
    }

    /// Approves a proposal. Once enough have, it is the target, and is deployed.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn approve(&self, id: u64, by: &str) -> Result<Proposal, Refused> {
        let rules = self.config().approval;
        let _keeping = self.keeping();
        let mut proposal = self.find_proposal(id)?;
        let (parent, silent) = {
            let inner = self.inner();
            let silent: Vec<String> = inner.silent.union(&inner.still_absent()).cloned().collect();
            (inner.target_number(), silent)
        };
        let silent: Vec<String> = silent.into_iter().filter(|switch| !proposal.absent.contains(switch)).collect();
        if !silent.is_empty() {
            return Err(Refused::Conflict(format!(
                "a deployment needs every switch of its plan, and these do not answer: {}; power them on or replace them, and \
                 approve then",
                silent.join(", ")
            )));
        }
        let now_s = self.now_s();
        let is_last = match approve(&mut proposal, by, now_s, parent, rules) {
            Err(stale @ NotApproved::Stale { .. }) => {
                self.archive.update_proposal(id, &|proposal| proposal.state = ProposalState::Stale)?;
                return Err(stale.into());
            }
            approved => approved?,
        };
        if !is_last {
            let approvals = proposal.approvals.clone();
            self.archive.update_proposal(id, &|kept| kept.approvals.clone_from(&approvals))?;
            self.audit(by, &format!("approved proposal {id}, {} of {}", approvals.len(), rules.needed))?;
            return Ok(proposal);
        }
        let plan = self.archive.plan(&proposal.plan)?.ok_or_else(|| {
            Refused::NotFound(format!("plan {} of proposal {id} is not kept any more", short(&proposal.plan)))
        })?;
        // Switches may hold another plan by now than when it was proposed.
        let since = self.inner().since();
        (proposal.way, _) = effect(since.as_deref(), &plan, self.config().host_tables())?;
        proposal.state = ProposalState::Approved;
        let target = Target {
            number: parent + 1,
            parent,
            plan: proposal.plan.clone(),
            way: proposal.way,
            proposal: id,
            by: by.to_owned(),
            at_s: now_s,
            state: TargetState::Pending,
            note: None,
        };
        // Whoever was faster has set another target; the inner one is behind only while its answer is under way.
        let mut inner = self.inner();
        if inner.target_number() != parent || !self.archive.set_target(&target, &proposal)? {
            return Err(Refused::Conflict(format!("another target was set meanwhile; propose the plan again ({id})")));
        }
        inner.target = Some(target);
        inner.target_plan = Some(Arc::new(plan));
        inner.hopeless = None;
        inner.polls.last = None;
        drop(inner);
        self.retire_others(id)?;
        self.audit(by, &format!("approved proposal {id}: it is target {}", parent + 1))?;
        self.due.notify_all();
        Ok(proposal)
    }

    /// Proposals that followed the target before are stale.
    fn retire_others(&self, id: u64) -> Result<(), ArchiveError> {
        for other in self.archive.proposals()? {
            if other.state == ProposalState::Open && other.id != id {
                self.archive.update_proposal(other.id, &|proposal| proposal.state = ProposalState::Stale)?;
            }
        }
        Ok(())
    }

    /// Withdraws a proposal.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn withdraw(&self, id: u64, by: &str) -> Result<Proposal, Refused> {
        if self.find_proposal(id)?.state != ProposalState::Open {
            return Err(NotApproved::NotOpen(id).into());
        }
        let withdrawn = self.archive.update_proposal(id, &|proposal| proposal.state = ProposalState::Withdrawn)?;
        self.audit(by, &format!("withdrew proposal {id}"))?;
        withdrawn.ok_or_else(|| Refused::NotFound(format!("there is no proposal {id}")))
    }

    fn find_proposal(&self, id: u64) -> Result<Proposal, Refused> {
        let found = self.archive.proposal(id)?;
        found.ok_or_else(|| Refused::NotFound(format!("there is no proposal {id}; espalierd proposals lists them")))
    }

    /// Proposes the plan of an earlier target, without those of its switches that were left out since then and do not answer.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn roll_back(&self, number: u64, by: &str) -> Result<Proposal, Refused> {
        let _keeping = self.keeping();
        let targets = self.archive.targets()?;
        let Some(target) = targets.iter().find(|target| target.number == number) else {
            return Err(Refused::NotFound(format!("there is no target {number}; espalierd targets lists them")));
        };
        let missing = || {
            let kept = self.config().store.keep_targets;
            Refused::NotFound(format!(
                "the plan of target {number} is not kept any more (store.keep_targets = {kept}); propose its file: espalierd propose PLAN"
            ))
        };
        let plan = self.archive.plan(&target.plan)?.ok_or_else(missing)?;
        let mut reason = format!("back to target {number}");
        let of_target = self.archive.proposal(target.proposal)?;
        let mut omission = of_target.map_or_else(|| Omission::nothing(&target.plan), Omission::of);
        let mut absent = self.inner().still_absent();
        absent.retain(|switch| plan.topology.find_switch(switch).is_some());
        let absent: Vec<String> = absent.into_iter().collect();
        let (plan, digest) = match absent.is_empty() {
            true => (plan, target.plan.clone()),
            false => {
                let _ = write!(reason, " without {}", absent.join(", "));
                omission.drained.extend(absent.iter().cloned());
                omission.drained.sort();
                omission.drained.dedup();
                omission.absent.extend(absent);
                self.plan_with_omission(&omission)?
            }
        };
        let proposal = self.proposal(&plan, &digest, &Draft::asked(&reason, by), omission)?;
        self.audit(by, &format!("proposed {reason} as proposal {}", proposal.id))?;
        Ok(proposal)
    }

    /// Tries a target once more that was not deployed.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn retry(&self, by: &str) -> Result<Target, Refused> {
        let (failed, plan, since) = {
            let inner = self.inner();
            (inner.target.clone(), inner.target_plan.clone(), inner.since())
        };
        let failed = failed.filter(|target| target.state == TargetState::Failed);
        let (Some(failed), Some(plan)) = (failed, plan) else {
            return Err(Refused::Conflict("the target has not failed: there is nothing to try again".to_owned()));
        };
        let (way, _) = effect(since.as_deref(), &plan, self.config().host_tables())?;
        let target = Target { state: TargetState::Pending, way, note: None, ..failed.clone() };
        let mut inner = self.inner();
        if inner.target.as_ref() != Some(&failed) {
            return Err(Refused::Conflict("another target was set meanwhile".to_owned()));
        }
        self.archive.update_target(&target)?;
        inner.target = Some(target.clone());
        drop(inner);
        self.audit(by, &format!("tried target {} again", target.number))?;
        self.due.notify_all();
        Ok(target)
    }
}
