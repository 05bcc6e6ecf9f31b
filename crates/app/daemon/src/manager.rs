//! Everything that the daemon knows, and every decision that it makes.
//!
//! ```text
//!   watchers: what they see ─▶ ┌─────────┐ ─▶ events, kept and streamed
//!   callers: propose, approve ▶│ Manager │ ─▶ the next job: watch · deploy · put back · plan without
//!   restart: the archive ────▶ └─────────┘
//! ```
//! Workers carry jobs out and choose nothing. What is acknowledged to a caller is in the archive.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, mpsc},
    time::{Duration, Instant},
};

use controller::{StatusReport, Words};
use fabric::{Plan, SwitchId};
use rollout::diagnose::{Cause, Diagnosis, Urgency};
use thiserror::Error;

use crate::{
    archive::{Archive, ArchiveError},
    config::Config,
    core::{
        approve::{NotApproved, approve},
        drift::{DriftAction, DriftGuard},
        events::{Condition, EventChange, EventLog},
        ladder::Reaction,
        parts::{Parts, subject},
        propose::{NoProposal, effect, plan_without},
    },
    documents::{
        AuditEntry, Event, LinkStatus, Maintenance, Proposal, ProposalState, Severity, Status, Target, TargetState, Way,
    },
};

/// Kinds of events that do not come from polling.
mod kinds {
    pub(super) const DEPLOYMENT: &str = "deployment-failed";
    pub(super) const RETURNED: &str = "drift-returned";
    pub(super) const NO_PLAN: &str = "no-plan";
    pub(super) const STORE: &str = "store";
    pub(super) const ALL: [&str; 4] = [DEPLOYMENT, RETURNED, NO_PLAN, STORE];
}

/// Who makes proposals that nobody else makes.
pub const CONTROLLER: &str = "espalierd";
/// The subject of maintenance marks that concern everything.
pub const WHOLE_FABRIC: &str = "fabric";
/// Event changes that a slow reader may be behind by.
const STREAM_MAX: usize = 1024;

/// Why a caller's request is refused.
#[derive(Debug, Error)]
pub enum Refused {
    /// Something of that name or number is not there.
    #[error("{0}")]
    NotFound(String),
    /// It does not fit the state of things.
    #[error("{0}")]
    Conflict(String),
    /// It makes no sense.
    #[error("{0}")]
    Bad(String),
    /// The archive fails.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl From<NoProposal> for Refused {
    fn from(why: NoProposal) -> Self {
        Self::Bad(why.to_string())
    }
}

impl From<NotApproved> for Refused {
    fn from(why: NotApproved) -> Self {
        Self::Conflict(why.to_string())
    }
}

/// What is to be done next.
#[derive(Clone)]
pub enum Job {
    /// There is no plan yet.
    Wait,
    /// The switches hold this plan; attend to it until something else is to be done.
    Watch(Arc<Plan>),
    /// Bring the switches to the target.
    Deploy {
        /// The target.
        target: Target,
        /// Its plan.
        plan: Arc<Plan>,
        /// The plan that the switches hold, for a hitless change.
        since: Option<Arc<Plan>>,
    },
    /// Deploy the plan that the switches should hold once more, for those that differ.
    PutBack {
        /// The plan.
        plan: Arc<Plan>,
        /// Which switches.
        switches: BTreeSet<String>,
    },
    /// End.
    Stop,
}

/// How a deployment ended.
pub enum Deployed {
    /// Every switch holds the plan.
    Well,
    /// It failed, and why.
    Badly(String),
    /// It was asked to stop; it goes on when the daemon is started again.
    Interrupted,
}

/// What the daemon knows.
pub struct Manager {
    archive: Archive,
    config: RwLock<Arc<Config>>,
    now_s: Box<dyn Fn() -> u64 + Send + Sync>,
    inner: Mutex<Inner>,
    /// Something is to be done, or looked at.
    due: Condvar,
    stream: tokio::sync::broadcast::Sender<Arc<EventChange>>,
}

#[derive(Default)]
struct Inner {
    target: Option<Target>,
    /// The newest target that switches hold, and its plan.
    held: Option<(Target, Arc<Plan>)>,
    target_plan: Option<Arc<Plan>>,
    events: EventLog,
    drift: DriftGuard,
    put_back: BTreeSet<String>,
    /// Switches that somebody asked to put back.
    asked_back: BTreeSet<String>,
    /// What has failed without a stored answer, by the last poll.
    failed: Parts,
    /// Switches that did not answer at the last poll.
    silent: Vec<String>,
    /// Parts without which there was no plan, so that it is not tried again and again.
    hopeless: Option<Vec<String>>,
    look_at_once: bool,
    /// Whether something may have failed, come back or been marked since plans without parts were thought about last.
    parts_changed: bool,
    looked: Looked,
    doing: &'static str,
    /// Whoever stands by is told of switches that may have news.
    hints: Option<mpsc::Sender<SwitchId>>,
    stop: bool,
}

#[derive(Default)]
struct Looked {
    at_s: Option<u64>,
    took_s: f64,
    links: Vec<LinkStatus>,
    switches: usize,
    as_planned: usize,
}

impl Manager {
    /// What the archive remembers.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn open(
        archive: Archive,
        config: Config,
        now_s: Box<dyn Fn() -> u64 + Send + Sync>,
    ) -> Result<Self, ArchiveError> {
        let target = archive.target()?;
        let events = EventLog::from_events(archive.events()?);
        let mut inner = Inner { events, doing: "starting", ..Inner::default() };
        if let Some(target) = &target {
            inner.target_plan = archive.plan(&target.plan)?.map(Arc::new);
        }
        let held = archive.targets()?.into_iter().rev().find(|target| target.state == TargetState::Deployed);
        if let Some(held) = held {
            inner.held = match &inner.target_plan {
                Some(plan) if target.as_ref().is_some_and(|target| target.plan == held.plan) => {
                    Some((held, Arc::clone(plan)))
                }
                _ => archive.plan(&held.plan)?.map(|plan| (held, Arc::new(plan))),
            };
        }
        inner.target = target;
        let (stream, _) = tokio::sync::broadcast::channel(STREAM_MAX);
        Ok(Self {
            archive,
            config: RwLock::new(Arc::new(config)),
            now_s,
            inner: Mutex::new(inner),
            due: Condvar::new(),
            stream,
        })
    }

    /// The configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration; where it listens and keeps its state stays as it was.
    pub fn configure(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        self.look_at_once();
    }

    /// What is remembered.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Seconds since 1970-01-01 UTC.
    pub fn now_s(&self) -> u64 {
        (self.now_s)()
    }

    /// Changes of events from now on.
    pub fn subscribe(&self) -> tokio::sync::broadcast::Receiver<Arc<EventChange>> {
        self.stream.subscribe()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches that may have news, from now on; whoever was told before is not told any more.
    pub fn hints(&self) -> mpsc::Receiver<SwitchId> {
        let (sender, receiver) = mpsc::channel();
        self.inner().hints = Some(sender);
        receiver
    }

    /// Takes that something came from this address that may be news; nothing of it is believed but that.
    pub fn hint(&self, from: IpAddr) {
        let mut inner = self.inner();
        let Some((_, plan)) = &inner.held else { return };
        let topology = &plan.topology;
        let Some(switch) = topology.switch_ids().find(|switch| topology.switch(*switch).mgmt == Some(from)) else {
            return;
        };
        // Nobody may be standing by.
        if inner.hints.as_ref().is_some_and(|hints| hints.send(switch).is_err()) {
            inner.hints = None;
        }
        inner.look_at_once = true;
        drop(inner);
        self.due.notify_all();
    }

    // Jobs.

    /// What is to be done now.
    pub fn next_job(&self) -> Job {
        let mut inner = self.inner();
        let job = inner.next_job();
        inner.doing = match &job {
            Job::Wait => "waiting for a plan: espalierd propose PLAN",
            Job::Watch(_) => "watching",
            Job::Deploy { .. } => "deploying",
            Job::PutBack { .. } => "putting switches back",
            Job::Stop => "ending",
        };
        job
    }

    /// Waits until something else than watching is to be done, at most so long; whether it is.
    pub fn wait_for_job(&self, at_most: Duration) -> bool {
        let inner = self.inner();
        let idle = |inner: &mut Inner| matches!(inner.next_job(), Job::Wait | Job::Watch(_));
        let (mut inner, _) = self.due.wait_timeout_while(inner, at_most, idle).unwrap_or_else(PoisonError::into_inner);
        !idle(&mut inner)
    }

    /// Waits until switches are to be looked at, at most so long.
    pub fn wait_for_look(&self, at_most: Duration) {
        let inner = self.inner();
        let idle = |inner: &mut Inner| !inner.look_at_once && !inner.stop;
        let (mut inner, _) = self.due.wait_timeout_while(inner, at_most, idle).unwrap_or_else(PoisonError::into_inner);
        inner.look_at_once = false;
    }

    /// Has switches looked at now: something may have happened.
    pub fn look_at_once(&self) {
        self.inner().look_at_once = true;
        self.due.notify_all();
    }

    /// Ends.
    pub fn stop(&self) {
        self.inner().stop = true;
        self.due.notify_all();
    }

    /// Whether it is to end.
    pub fn is_stopping(&self) -> bool {
        self.inner().stop
    }

    /// Takes how the deployment of a target ended.
    ///
    /// # Errors
    /// [`ArchiveError`]; then the deployment is tried again, and finds that it is done.
    pub fn deployed(&self, target: &Target, plan: &Arc<Plan>, end: Deployed) -> Result<(), ArchiveError> {
        let (state, note) = match end {
            Deployed::Well => (TargetState::Deployed, None),
            Deployed::Badly(why) => (TargetState::Failed, Some(why)),
            Deployed::Interrupted => return Ok(()),
        };
        let ended = Target { state, note: note.clone(), ..target.clone() };
        self.archive.update_target(&ended)?;
        let now_s = self.now_s();
        let mut inner = self.inner();
        if state == TargetState::Deployed {
            inner.held = Some((ended.clone(), Arc::clone(plan)));
        }
        if inner.target.as_ref().is_some_and(|current| current.number == target.number) {
            inner.target = Some(ended);
        }
        // What was seen before is of another state.
        inner.looked = Looked::default();
        let failed = note.map(|why| Condition {
            kind: kinds::DEPLOYMENT.to_owned(),
            subject: String::new(),
            severity: Severity::Critical,
            message: format!("target {} was not deployed: {why}", target.number),
            consequences: Vec::new(),
            remedy: Some(
                "see to the cause, then espalierd retry; or espalierd rollback to an earlier target".to_owned(),
            ),
            maintenance: None,
        });
        self.record(&mut inner, now_s, failed.into_iter().collect(), &|kind| kind == kinds::DEPLOYMENT)
    }

    /// Takes that switches are being put back, so that it happens once.
    pub fn putting_back(&self, switches: &BTreeSet<String>) {
        let now_s = self.now_s();
        let mut inner = self.inner();
        for switch in switches {
            inner.drift.put_back(now_s, switch);
            inner.put_back.remove(switch);
            inner.asked_back.remove(switch);
        }
    }

    /// Has a switch put back to the plan, whoever changed it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn ask_back(&self, switch: &str, by: &str) -> Result<(), Refused> {
        let mut inner = self.inner();
        let Some((_, plan)) = &inner.held else {
            return Err(Refused::Conflict("no plan is deployed yet; propose one: espalierd propose PLAN".to_owned()));
        };
        if plan.topology.find_switch(switch).is_none() {
            return Err(Refused::NotFound(format!("{switch}: the plan has no switch of this name")));
        }
        inner.asked_back.insert(switch.to_owned());
        drop(inner);
        self.audit(by, &format!("asked to put {switch} back to the plan"))?;
        self.due.notify_all();
        Ok(())
    }

    // What watchers see.

    /// Takes a poll of all switches.
    ///
    /// # Errors
    /// [`ArchiveError`]; what was seen is known all the same.
    pub fn saw(&self, plan: &Plan, report: &StatusReport, took: Duration) -> Result<(), ArchiveError> {
        let (now_s, config) = (self.now_s(), self.config());
        let marks = self.marks(now_s)?;
        let mut inner = self.inner();
        inner.looked = Looked {
            at_s: Some(now_s),
            took_s: took.as_secs_f64(),
            links: report.links.iter().map(link_status).collect(),
            switches: report.seen.len(),
            as_planned: report.as_planned(),
        };
        let mut conditions: Vec<Condition> =
            report.diagnoses.iter().map(|diagnosis| condition(plan, report, diagnosis, (&marks, &config))).collect();
        conditions.extend(inner.decide_drift(now_s, plan, &report.diagnoses, &config, &marks));
        let kept = |kind: &str| !kinds::ALL.contains(&kind) || kind == kinds::RETURNED;
        inner.failed = Parts::unprotected(&report.diagnoses);
        let silent = plan.topology.switches().iter().zip(&report.seen).filter(|(_, seen)| seen.is_err());
        inner.silent = silent.map(|(switch, _)| switch.name.clone()).collect();
        inner.parts_changed = true;
        let recorded = self.record(&mut inner, now_s, conditions, &kept);
        // What could be kept shows that the store works again.
        let recorded = recorded.and_then(|()| self.record(&mut inner, now_s, Vec::new(), &|kind| kind == kinds::STORE));
        drop(inner);
        self.due.notify_all();
        recorded
    }

    /// Takes what a watcher says of something that happened and is over.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn heard(&self, watcher: &str, words: &Words) -> Result<(), ArchiveError> {
        let now_s = self.now_s();
        let severity = match words.kind {
            "failed" | "second" | "divided" | "waits" | "bond-down" | "duplicate" | "planned" | "full" => {
                Severity::Critical
            }
            "fault" | "waiting" | "stopped" | "disagreement" | "untagged" | "foreign" | "ended" => Severity::Warning,
            _ => Severity::Note,
        };
        let told = Condition {
            kind: format!("{watcher}-{}", words.kind),
            subject: words.subject.clone().unwrap_or_default(),
            severity,
            message: words.text.clone(),
            consequences: Vec::new(),
            remedy: None,
            maintenance: None,
        };
        let mut inner = self.inner();
        let changes = inner.events.tell(now_s, told);
        let kept = self.keep(changes);
        drop(inner);
        if severity > Severity::Note {
            self.look_at_once();
        }
        kept
    }

    /// Takes that the store failed, which may be all that it can do about it.
    pub fn store_failed(&self, error: &ArchiveError) {
        let mut inner = self.inner();
        let now_s = self.now_s();
        let condition = Condition {
            kind: kinds::STORE.to_owned(),
            subject: String::new(),
            severity: Severity::Critical,
            message: error.to_string(),
            consequences: vec!["what happens is not remembered, and nothing is approved or deployed".to_owned()],
            remedy: Some("make room on the disk of the state's folder, or mend it".to_owned()),
            maintenance: None,
        };
        // It is streamed and shown even if it cannot be kept.
        for change in inner.events.see(now_s, vec![condition], |_| false) {
            let _ = self.stream.send(Arc::new(change));
        }
    }

    /// Replaces what is open of some kinds, keeps the changes and streams them.
    fn record(
        &self,
        inner: &mut Inner,
        now_s: u64,
        seen: Vec<Condition>,
        is_of_kinds: &dyn Fn(&str) -> bool,
    ) -> Result<(), ArchiveError> {
        let changes = inner.events.see(now_s, seen, is_of_kinds);
        self.keep(changes)
    }

    fn keep(&self, changes: Vec<EventChange>) -> Result<(), ArchiveError> {
        let (mut kept, mut forgotten) = (Vec::new(), Vec::new());
        for change in &changes {
            match change {
                EventChange::Forgotten(event) => forgotten.push(event.clone()),
                _ => kept.push(change.event().clone()),
            }
        }
        for change in changes {
            let event = change.event();
            tracing::info!(
                id = event.id,
                kind = event.kind,
                subject = event.subject,
                "{}: {}",
                change.word(),
                event.message
            );
            // Nobody may be listening.
            let _ = self.stream.send(Arc::new(change));
        }
        self.archive.keep_events(&kept, &forgotten)
    }

    // Proposals.

    /// Proposes a plan.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn propose(&self, plan: &Plan, reason: &str, by: &str) -> Result<Proposal, Refused> {
        let digest = self.archive.keep_plan(plan)?;
        let proposal = self.proposal(plan, &digest, reason, by, (Vec::new(), digest.clone()))?;
        self.audit(by, &format!("proposed plan {} as proposal {}: {reason}", short(&digest), proposal.id))?;
        Ok(proposal)
    }

    fn proposal(
        &self,
        plan: &Plan,
        digest: &str,
        reason: &str,
        by: &str,
        (drained, base): (Vec<String>, String),
    ) -> Result<Proposal, Refused> {
        let (parent, held) = {
            let inner = self.inner();
            (inner.target_number(), inner.held.clone())
        };
        if held.as_ref().is_some_and(|(held, _)| held.plan == digest && held.number == parent) {
            return Err(Refused::Conflict(format!("plan {} is the target already", short(digest))));
        }
        let (way, effect) = effect(held.as_ref().map(|(_, plan)| plan.as_ref()), plan)?;
        let proposal = Proposal {
            id: 0,
            parent,
            plan: digest.to_owned(),
            reason: reason.to_owned(),
            by: by.to_owned(),
            at_s: self.now_s(),
            way,
            effect,
            state: ProposalState::Open,
            approvals: Vec::new(),
            drained,
            base,
        };
        Ok(self.archive.add_proposal(&proposal)?)
    }

    /// Approves a proposal. Once enough have, it is the target, and is deployed.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn approve(&self, id: u64, by: &str) -> Result<Proposal, Refused> {
        let rules = self.config().approval;
        let mut proposal = self.find_proposal(id)?;
        let (parent, silent) = {
            let inner = self.inner();
            (inner.target_number(), inner.silent.join(", "))
        };
        if !silent.is_empty() {
            return Err(Refused::Conflict(format!(
                "a deployment needs every switch, and these do not answer: {silent}; power them on or replace them, and approve then"
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
        inner.looked = Looked::default();
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

    /// Proposes the plan of an earlier target.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn roll_back(&self, number: u64, by: &str) -> Result<Proposal, Refused> {
        let targets = self.archive.targets()?;
        let Some(target) = targets.iter().find(|target| target.number == number) else {
            return Err(Refused::NotFound(format!("there is no target {number}; espalierd targets lists them")));
        };
        let missing = || Refused::NotFound(format!("the plan of target {number} is not kept any more"));
        let plan = self.archive.plan(&target.plan)?.ok_or_else(missing)?;
        let reason = format!("back to target {number}");
        let of_target = self.archive.proposal(target.proposal)?;
        let parts =
            of_target.map_or_else(|| (Vec::new(), target.plan.clone()), |proposal| (proposal.drained, proposal.base));
        let proposal = self.proposal(&plan, &target.plan, &reason, by, parts)?;
        self.audit(by, &format!("proposed {reason} as proposal {}", proposal.id))?;
        Ok(proposal)
    }

    /// Tries a target once more that was not deployed.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn retry(&self, by: &str) -> Result<Target, Refused> {
        let mut inner = self.inner();
        let failed = inner.target.clone().filter(|target| target.state == TargetState::Failed);
        let Some(target) = failed else {
            return Err(Refused::Conflict("the target has not failed: there is nothing to try again".to_owned()));
        };
        let target = Target { state: TargetState::Pending, note: None, ..target };
        self.archive.update_target(&target)?;
        inner.target = Some(target.clone());
        drop(inner);
        self.audit(by, &format!("tried target {} again", target.number))?;
        self.due.notify_all();
        Ok(target)
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
        let marks = self.marks(now_s)?;
        let (target, held, failed, hopeless) = {
            let inner = self.inner();
            let (Some(parent), Some((target, held))) = (inner.target.as_ref(), inner.held.clone()) else {
                return Ok(());
            };
            if parent.state == TargetState::Pending || inner.looked.at_s.is_none() {
                return Ok(());
            }
            let parent = parent.number;
            ((target, parent), held, inner.failed.clone(), inner.hopeless.clone())
        };
        let (target, parent) = target;
        let topology = &held.topology;
        let resting = marks.iter().filter(|mark| mark.drain).map(|mark| mark.subject.as_str());
        let mut wanted = Parts::named(topology, resting);
        let watched = |name: &String| !is_marked(&marks, name);
        let failed_names: Vec<String> = failed.names(topology).into_iter().filter(watched).collect();
        let failed = Parts::named(topology, failed_names.iter().map(String::as_str));
        wanted.switches.extend(failed.switches);
        wanted.links.extend(failed.links);
        let names = wanted.names(topology);
        let proposals = self.archive.proposals()?;
        let of_target = proposals.iter().find(|proposal| proposal.id == target.proposal);
        let (drained, base) =
            of_target.map_or((&[][..], &target.plan), |proposal| (&proposal.drained[..], &proposal.base));
        let mut is_proposed = false;
        for proposal in proposals.iter().filter(|proposal| proposal.by == CONTROLLER) {
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
        if hopeless.as_ref() == Some(&names) {
            return Ok(());
        }
        let Some(base_plan) = self.archive.plan(base)? else { return Ok(()) };
        let made = match wanted.is_empty() {
            true => Ok((base_plan, base.clone())),
            false => plan_without(&base_plan, &held, &wanted).map(|plan| (plan, String::new())),
        };
        let made = made.map_err(Refused::from).and_then(|(plan, digest)| {
            let digest = if digest.is_empty() { self.archive.keep_plan(&plan)? } else { digest };
            let reason = match wanted.is_empty() {
                true => format!("{} is back", drained.join(", ")),
                false => format!("without {}", names.join(", ")),
            };
            self.proposal(&plan, &digest, &reason, CONTROLLER, (names.clone(), base.clone()))
        });
        let mut inner = self.inner();
        let failed = match made {
            Ok(proposal) => {
                tracing::info!(id = proposal.id, "proposed: {}", proposal.reason);
                inner.hopeless = None;
                None
            }
            Err(Refused::Archive(error)) => return Err(error),
            Err(why) => {
                inner.hopeless = Some(names.clone());
                Some(Condition {
                    kind: kinds::NO_PLAN.to_owned(),
                    subject: names.join(", "),
                    severity: Severity::Critical,
                    message: why.to_string(),
                    consequences: Vec::new(),
                    remedy: Some("repair what has failed, or plan by hand: espalier plan --drain".to_owned()),
                    maintenance: None,
                })
            }
        };
        self.record(&mut inner, now_s, failed.into_iter().collect(), &|kind| kind == kinds::NO_PLAN)
    }

    // Maintenance.

    /// Sets a maintenance mark.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn set_maintenance(&self, mark: Maintenance) -> Result<Maintenance, Refused> {
        if let Some((_, plan)) = &self.inner().held {
            let topology = &plan.topology;
            let is_known = mark.subject == WHOLE_FABRIC
                || !Parts::named(topology, [mark.subject.as_str()]).is_empty()
                || topology.hosts().iter().any(|host| host.name == mark.subject);
            if !is_known {
                return Err(Refused::Bad(format!(
                    "{}: no switch, link or host has this name; write a switch as sw1, a link as \"sw1:p1 -- sw2:p2\", or {WHOLE_FABRIC} for everything",
                    mark.subject
                )));
            }
        }
        if mark.drain && mark.subject == WHOLE_FABRIC {
            return Err(Refused::Bad("the whole fabric cannot be drained; name switches or links".to_owned()));
        }
        let mark = self.archive.add_maintenance(&mark)?;
        self.audit(&mark.by, &format!("set maintenance {} of {}: {}", mark.id, mark.subject, mark.reason))?;
        self.look_at_once();
        Ok(mark)
    }

    /// Removes a maintenance mark.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn remove_maintenance(&self, id: u64, by: &str) -> Result<(), Refused> {
        if !self.archive.remove_maintenance(id)? {
            return Err(Refused::NotFound(format!("there is no maintenance mark {id}; espalierd status lists them")));
        }
        self.audit(by, &format!("removed maintenance {id}"))?;
        self.look_at_once();
        Ok(())
    }

    /// Maintenance marks that are in force.
    fn marks(&self, now_s: u64) -> Result<Vec<Maintenance>, ArchiveError> {
        let mut marks = self.archive.maintenance()?;
        marks.retain(|mark| mark.until_s.is_none_or(|until_s| now_s < until_s));
        Ok(marks)
    }

    // Shown.

    /// The fabric as it was polled last.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn status(&self) -> Result<Status, ArchiveError> {
        let mut proposals = self.archive.proposals()?;
        proposals.retain(|proposal| proposal.state == ProposalState::Open);
        let maintenance = self.marks(self.now_s())?;
        let inner = self.inner();
        Ok(Status {
            doing: inner.doing.to_owned(),
            target: inner.target.clone(),
            switches: inner.looked.switches,
            as_planned: inner.looked.as_planned,
            polled_s: inner.looked.at_s,
            poll_took_s: inner.looked.took_s,
            links: inner.looked.links.clone(),
            events: inner.events.open().into_iter().cloned().collect(),
            proposals,
            maintenance,
        })
    }

    /// All events that are remembered, newest first.
    pub fn events(&self) -> Vec<Event> {
        self.inner().events.events().rev().cloned().collect()
    }

    /// What was done by whom, newest first.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn audit_entries(&self) -> Result<Vec<AuditEntry>, ArchiveError> {
        let mut entries = self.archive.audit()?;
        entries.reverse();
        Ok(entries)
    }

    fn audit(&self, who: &str, what: &str) -> Result<(), ArchiveError> {
        tracing::info!(who, "{what}");
        self.archive.add_audit(self.now_s(), who, what)
    }
}

impl Inner {
    fn target_number(&self) -> u64 {
        self.target.as_ref().map_or(0, |target| target.number)
    }

    fn next_job(&self) -> Job {
        if self.stop {
            return Job::Stop;
        }
        if let (Some(target), Some(plan)) = (&self.target, &self.target_plan) {
            if target.state == TargetState::Pending {
                let since = self.held.as_ref().filter(|_| target.way == Way::Hitless).map(|(_, plan)| Arc::clone(plan));
                return Job::Deploy { target: target.clone(), plan: Arc::clone(plan), since };
            }
        }
        match &self.held {
            Some((_, plan)) => {
                let switches: BTreeSet<String> = self.put_back.union(&self.asked_back).cloned().collect();
                match switches.is_empty() {
                    true => Job::Watch(Arc::clone(plan)),
                    false => Job::PutBack { plan: Arc::clone(plan), switches },
                }
            }
            None => Job::Wait,
        }
    }

    /// Decides which switches that differ are put back, and says of which it does not any more.
    fn decide_drift(
        &mut self,
        now_s: u64,
        plan: &Plan,
        diagnoses: &[Diagnosis],
        config: &Config,
        marks: &[Maintenance],
    ) -> Vec<Condition> {
        let mut reactions = BTreeMap::new();
        for diagnosis in diagnoses {
            let reaction = match &diagnosis.cause {
                Cause::Drifted { .. } => config.ladder.drift,
                Cause::Reset { .. } => config.ladder.reset,
                _ => continue,
            };
            let name = subject(plan, diagnosis);
            if reaction == Reaction::Act && !is_marked(marks, &name) {
                reactions.insert(name, diagnosis.sentence(plan));
            }
        }
        let differing: Vec<String> = reactions.keys().cloned().collect();
        // Deploying while anything is down, or unplugged, would do harm.
        let is_whole = diagnoses.iter().all(|diagnosis| {
            diagnosis.urgency != Urgency::Act
                || matches!(
                    diagnosis.cause,
                    Cause::Drifted { .. } | Cause::Reset { .. } | Cause::Drained { .. } | Cause::Shut { .. }
                )
        });
        let actions = self.drift.see(now_s, &differing);
        self.put_back.clear();
        let mut left = Vec::new();
        for (switch, action) in actions {
            match action {
                DriftAction::PutBack if is_whole => {
                    self.put_back.insert(switch);
                }
                DriftAction::PutBack | DriftAction::Wait => {}
                DriftAction::Leave => left.push(Condition {
                    kind: kinds::RETURNED.to_owned(),
                    severity: Severity::Critical,
                    message: format!(
                        "{switch} was put back to the plan and differs again: somebody changes it, and it is left alone"
                    ),
                    consequences: reactions.get(&switch).cloned().into_iter().collect(),
                    remedy: Some(format!(
                        "find out who changes {switch}; then espalierd put-back {switch}, or plan for what is wanted"
                    )),
                    maintenance: None,
                    subject: switch,
                }),
            }
        }
        left
    }
}

/// What a diagnosis is as an event.
fn condition(
    plan: &Plan,
    report: &StatusReport,
    diagnosis: &Diagnosis,
    (marks, config): (&[Maintenance], &Config),
) -> Condition {
    /// Consequences that are named; the rest are counted.
    const NAMED_MAX: usize = 20;
    let held = diagnosis.cause.switch().and_then(|switch| Some(&report.seen[switch.index()].as_ref().ok()?.config));
    // Hosts that are still to return, or are on their way, are this daemon's own business.
    let is_own = config.ladder.stored == Reaction::Act
        && matches!(diagnosis.cause, Cause::Lingering { .. } | Cause::Between { .. });
    let named = diagnosis.consequences.iter().take(NAMED_MAX);
    let mut consequences: Vec<String> = named.map(|consequence| consequence.sentence(plan, held)).collect();
    if let Some(more) = diagnosis.consequences.len().checked_sub(NAMED_MAX + 1) {
        consequences.push(format!("and {} more", more + 1));
    }
    let subject = subject(plan, diagnosis);
    let mark = marks.iter().find(|mark| concerns(mark, &subject));
    let severity = match diagnosis.urgency {
        _ if mark.is_some() || is_own => Severity::Note,
        Urgency::Act => Severity::Critical,
        Urgency::Wait => Severity::Warning,
        Urgency::Note => Severity::Note,
    };
    Condition {
        kind: diagnosis.cause.word().to_owned(),
        subject,
        severity,
        message: diagnosis.sentence(plan),
        consequences,
        remedy: diagnosis.remedy.sentence(plan).filter(|_| !is_own),
        maintenance: mark.map(|mark| mark.reason.clone()),
    }
}

fn concerns(mark: &Maintenance, subject: &str) -> bool {
    mark.subject == WHOLE_FABRIC || mark.subject == subject
}

fn is_marked(marks: &[Maintenance], subject: &str) -> bool {
    marks.iter().any(|mark| concerns(mark, subject))
}

fn link_status(load: &controller::LinkLoad) -> LinkStatus {
    LinkStatus {
        link: load.name.clone(),
        up: load.running,
        load: [load.load(0), load.load(1)],
        errors: load.errors,
        discards: load.discards,
    }
}

/// The digits of a digest that people read.
pub fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// How long something took.
pub fn took<R>(what: impl FnOnce() -> R) -> (R, Duration) {
    let since = Instant::now();
    let result = what();
    (result, since.elapsed())
}
