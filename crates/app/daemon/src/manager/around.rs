//! Plans around what has failed or is to rest, proposed without being asked for; and plans with it once it is back.

use std::collections::BTreeSet;

use fabric::{Plan, Topology};

use super::{
    CONTROLLER, Manager, Refused, is_marked, kinds,
    proposals::{Draft, Omission},
};
use crate::{
    archive::{Archive, ArchiveError},
    core::{events::Condition, ladder::Reaction, parts::Parts, propose::plan_without},
    documents::{Cause, ProposalState, Severity, Target, TargetState},
};

/// Switches that the plan at hand does not know, since they were down when it was made, and the topology that they are of.
pub struct Absent {
    /// The topology of the plan with them.
    pub topology: Topology,
    /// Their names.
    pub switches: BTreeSet<String>,
    /// The newest target whose plan has them.
    target: Option<u64>,
}

impl Absent {
    /// Those of a target.
    pub(super) fn of(archive: &Archive, target: &Target) -> Result<Option<Self>, ArchiveError> {
        let Some(proposal) = archive.proposal(target.proposal)? else { return Ok(None) };
        if proposal.absent.is_empty() {
            return Ok(None);
        }
        let base = archive.plan(&proposal.base)?;
        let with_them = archive.targets()?.into_iter().rev().find(|target| target.plan == proposal.base);
        let (target, switches) = (with_them.map(|target| target.number), proposal.absent.into_iter().collect());
        Ok(base.map(|base| Self { topology: base.topology, switches, target }))
    }

    /// What is said of each, while it is not in the plan.
    pub(super) fn conditions(&self, answering: &BTreeSet<String>) -> Vec<Condition> {
        /// Hosts that are named; the rest are counted.
        const NAMED_MAX: usize = 6;
        let one = |switch: &String| {
            let id = self.topology.find_switch(switch)?;
            let hosts = self.topology.hosts_of(id).iter().map(|host| self.topology.host(*host).name.clone());
            let hosts: Vec<String> = hosts.collect();
            let cut_off = controller::count::abridged(&hosts, ", ", NAMED_MAX);
            let (message, remedy) = match answering.contains(switch) {
                true => (
                    format!("{switch} answers again, and is not in the plan"),
                    match self.target {
                        Some(target) => format!(
                            "approve the plan with it (espalierd proposals); if that was withdrawn, espalierd rollback {target}"
                        ),
                        None => "approve the plan with it: espalierd proposals".to_owned(),
                    },
                ),
                false => (
                    format!("{switch} is not in the plan: it was down when the plan was made"),
                    format!("power {switch} on, or replace it; a plan with it is proposed once it answers"),
                ),
            };
            Some(Condition {
                kind: kinds::LEFT_OUT.to_owned(),
                subject: switch.clone(),
                severity: Severity::Warning,
                message,
                consequences: if hosts.is_empty() { Vec::new() } else { vec![format!("cut off with it: {cut_off}")] },
                remedy: Some(remedy),
                maintenance: None,
            })
        };
        self.switches.iter().filter_map(one).collect()
    }
}

/// What is to be done without, by name.
struct Wanted {
    /// Everything, in order.
    names: Vec<String>,
    /// Switches among it that are down.
    dead: BTreeSet<String>,
}

impl Manager {
    /// Takes which of the switches that the plan does not know answer now.
    pub fn saw_absent(&self, answering: BTreeSet<String>) {
        let mut inner = self.inner();
        if inner.answering == answering {
            return;
        }
        inner.answering = answering;
        (inner.parts_changed, inner.look_at_once) = (true, true);
        drop(inner);
        self.due.notify_all();
    }

    /// Proposes a plan without the parts that have failed or are to rest, if that is not what switches hold or what is proposed
    /// already; and the plan with them once they are back. This may take as long as planning does.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn propose_around(&self) -> Result<(), ArchiveError> {
        if !std::mem::take(&mut self.inner().parts_changed) || self.config().ladder.unprotected == Reaction::Report {
            return Ok(());
        }
        let now_s = self.now_s();
        let Some((omission, parent, Wanted { names, dead })) = self.wanted(now_s)? else { return Ok(()) };
        let Omission { drained, base, .. } = omission;
        let mut is_proposed = false;
        for proposal in self.archive.proposals()?.iter().filter(|proposal| proposal.cause == Cause::Parts) {
            let is_wanted = proposal.drained == names && proposal.parent == parent && names != drained;
            match proposal.state {
                // What a person has withdrawn is not proposed again until something changes.
                ProposalState::Open | ProposalState::Withdrawn if is_wanted => is_proposed = true,
                ProposalState::Open => {
                    self.archive.update_proposal(proposal.id, &|stale| stale.state = ProposalState::Stale)?;
                }
                _ => {}
            }
        }
        if names == drained || is_proposed {
            let mut inner = self.inner();
            inner.hopeless = None;
            return self.record(&mut inner, now_s, Vec::new(), &|kind| kind == kinds::NO_PLAN);
        }
        if self.inner().hopeless.as_ref() == Some(&names) {
            return Ok(());
        }
        let omission = Omission { drained: names.clone(), absent: dead.into_iter().collect(), base };
        let why = match self.make_around(omission, &drained) {
            Ok(()) => None,
            Err(Refused::Archive(error)) => return Err(error),
            Err(why) => Some(why.to_string()),
        };
        let mut inner = self.inner();
        inner.hopeless = why.is_some().then(|| names.clone());
        let failed = why.map(|why| Condition {
            kind: kinds::NO_PLAN.to_owned(),
            subject: names.join(", "),
            severity: Severity::Critical,
            message: why,
            consequences: Vec::new(),
            remedy: Some("repair what has failed, or plan by hand: espalier plan --drain".to_owned()),
            maintenance: None,
        });
        self.record(&mut inner, now_s, failed.into_iter().collect(), &|kind| kind == kinds::NO_PLAN)
    }

    /// What the target that switches hold does without, the number of the newest one, and what is to be done without; none while that
    /// cannot be said.
    fn wanted(&self, now_s: u64) -> Result<Option<(Omission, u64, Wanted)>, ArchiveError> {
        let marks = self.marks(now_s)?;
        let inner = self.inner();
        let (Some(parent), Some((target, held))) = (inner.target.as_ref(), inner.held.as_ref()) else {
            return Ok(None);
        };
        let of_target = self.archive.proposal(target.proposal)?;
        let omission = of_target.map_or_else(|| Omission::nothing(&target.plan), Omission::of);
        if parent.state == TargetState::Pending || inner.polls.last.is_none() {
            return Ok(None);
        }
        let topology = &held.topology;
        let resting = marks.iter().filter(|mark| mark.drain).map(|mark| mark.subject.as_str());
        let mut names: BTreeSet<String> = Parts::named(topology, resting).names(topology).into_iter().collect();
        let is_watched = |name: &String| !is_marked(&marks, name);
        names.extend(inner.failed.names(topology).into_iter().filter(is_watched));
        // No frame of the target needs what it does without, so its failure is none; but it is not back either.
        names.extend(inner.down.names(topology).into_iter().filter(|name| omission.drained.contains(name)));
        let is_down = |name: &&String| inner.failed.switches.iter().any(|id| topology.switch(*id).name == **name);
        let mut dead: BTreeSet<String> = names.iter().filter(is_down).cloned().collect();
        dead.extend(inner.still_absent());
        names.extend(dead.iter().cloned());
        Ok(Some((omission, parent.number, Wanted { names: names.into_iter().collect(), dead })))
    }

    /// Makes and proposes a plan that does without some parts; `before` are those that the target does without.
    fn make_around(&self, omission: Omission, before: &[String]) -> Result<(), Refused> {
        let _keeping = self.keeping();
        let names = &omission.drained;
        let (plan, digest) = self.plan_with_omission(&omission)?;
        let reason = match names.is_empty() {
            true => format!("{} is back", before.join(", ")),
            false => format!("without {}", names.join(", ")),
        };
        let draft = Draft { reason: &reason, by: CONTROLLER, cause: Cause::Parts, time_before: None };
        self.proposal(&plan, &digest, &draft, omission).map(drop)
    }

    /// The plan that an omission comes from, without what it does without; it is kept, and its digest is told.
    pub(super) fn plan_with_omission(&self, omission: &Omission) -> Result<(Plan, String), Refused> {
        let gone = |what: &str| Refused::NotFound(format!("plan {what} is not kept any more"));
        let base = self.archive.plan(&omission.base)?.ok_or_else(|| gone(super::short(&omission.base)))?;
        if omission.drained.is_empty() {
            return Ok((base, omission.base.clone()));
        }
        let held = self.inner().held.clone().ok_or_else(|| gone("at hand"))?.1;
        let named = |names: &[String]| Parts::named(&base.topology, names.iter().map(String::as_str));
        let plan = plan_without(&base, &held, &named(&omission.drained), &named(&omission.absent).switches)?;
        let digest = self.archive.keep_plan(&plan)?;
        Ok((plan, digest))
    }
}
