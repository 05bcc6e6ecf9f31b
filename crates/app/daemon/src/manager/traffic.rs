//! Plans for the traffic that there is: noted, or proposed.

use std::sync::Arc;

use fabric::Plan;

use super::{
    CONTROLLER, Manager, Refused, kinds,
    proposals::{Draft, Omission},
};
use crate::{
    archive::ArchiveError,
    core::{
        events::Condition,
        ladder::Reaction,
        traffic::{GAIN_KEPT, GAIN_MIN, Measured, Replanned, plan_for},
    },
    documents::{Cause, Proposal, ProposalState, Severity, Target, TargetState},
};

impl Manager {
    /// Once traffic has been averaged for long enough, says whether a plan for it would load links less: as an event, or as a proposal,
    /// as the ladder says. This may take as long as planning does.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn propose_for_traffic(&self) -> Result<(), ArchiveError> {
        let config = self.config();
        let window_s = config.watch.traffic as u64;
        let Some((target, held, measured)) = self.measured(window_s) else { return Ok(()) };
        // A plan for the traffic would forget what this one does without, and comes from.
        let of_target = self.archive.proposal(target.proposal)?;
        if of_target.is_some_and(|proposal| !proposal.drained.is_empty()) {
            return Ok(());
        }
        let now_s = self.now_s();
        let replanned = plan_for(&held, &measured).unwrap_or_else(|why| {
            tracing::info!("no plan for the measured traffic: {why}");
            None
        });
        let (max_load, load) = (measured.max_load, replanned.as_ref().map(|replanned| replanned.load));
        tracing::debug!(max_load, ?load, "traffic was averaged");
        let proposals = self.archive.proposals()?;
        let own: Vec<&Proposal> = (proposals.iter())
            .filter(|proposal| proposal.cause == Cause::Traffic && proposal.parent == target.number)
            .collect();
        let is_open = |proposal: &&&Proposal| proposal.state == ProposalState::Open;
        let open = own.iter().find(is_open);
        let gain = replanned.as_ref().map_or(0.0, Replanned::gain);
        let is_noted = self.inner().events.open().iter().any(|event| event.kind == kinds::TRAFFIC);
        let enough = if open.is_some() || is_noted { GAIN_KEPT } else { GAIN_MIN };
        let Some(replanned) = replanned.filter(|_| gain >= enough) else {
            if let Some(open) = open {
                self.archive.update_proposal(open.id, &|stale| stale.state = ProposalState::Stale)?;
            }
            let mut inner = self.inner();
            return self.record(&mut inner, now_s, Vec::new(), &|kind| kind == kinds::TRAFFIC);
        };
        let [before, after] = replanned.load.map(|load| 100.0 * load);
        let minutes = window_s.div_ceil(60);
        let reason = format!(
            "for the traffic of the last {minutes} min: the most loaded link at {after:.0} % instead of {before:.0} %"
        );
        if config.ladder.traffic == Reaction::Report {
            let noted = Condition {
                kind: kinds::TRAFFIC.to_owned(),
                subject: String::new(),
                severity: Severity::Warning,
                message: format!("another plan would load links less, {reason}"),
                consequences: Vec::new(),
                remedy: Some("let espalierd propose it: traffic = \"propose\" in [ladder]".to_owned()),
                maintenance: None,
            };
            let mut inner = self.inner();
            return self.record(&mut inner, now_s, vec![noted], &|kind| kind == kinds::TRAFFIC);
        }
        {
            // Noted before the ladder was changed.
            let mut inner = self.inner();
            self.record(&mut inner, now_s, Vec::new(), &|kind| kind == kinds::TRAFFIC)?;
        }
        // What a person has withdrawn is not proposed again for this target.
        if open.is_some() || own.iter().any(|proposal| proposal.state == ProposalState::Withdrawn) {
            return Ok(());
        }
        match self.propose_replanned(&replanned, &reason) {
            Ok(()) => Ok(()),
            Err(Refused::Archive(error)) => Err(error),
            Err(why) => {
                tracing::info!("no plan for the measured traffic: {why}");
                Ok(())
            }
        }
    }

    fn propose_replanned(&self, Replanned { plan, load }: &Replanned, reason: &str) -> Result<(), Refused> {
        let _keeping = self.keeping();
        let digest = self.archive.keep_plan(plan)?;
        let time_before = Some(load[0] * plan.topology.rate_max_bps() as f64);
        let draft = Draft { reason, by: CONTROLLER, cause: Cause::Traffic, time_before };
        self.proposal(plan, &digest, &draft, Omission::nothing(&digest)).map(drop)
    }

    /// The target, its plan and the traffic of the last window, if all switches hold the target and nothing has failed.
    fn measured(&self, window_s: u64) -> Option<(Target, Arc<Plan>, Measured)> {
        let now_s = self.now_s();
        let mut inner = self.inner();
        let measured = inner.traffic.take(now_s, window_s)?;
        let sent = inner.hosts.take_sent();
        let (target, plan) = inner.held.clone()?;
        let measured = measured.with_counted(&plan, window_s, &sent);
        let is_current = inner.target.as_ref().is_some_and(|current| current.number == target.number);
        let is_whole = inner.failed.is_empty() && inner.silent.is_empty();
        let is_settled = is_current && target.state == TargetState::Deployed && inner.standing.is_none() && is_whole;
        is_settled.then_some((target, plan, measured))
    }
}
