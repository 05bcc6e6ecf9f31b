//! Everything that the daemon knows, and every decision that it makes.
//!
//! ```text
//!   watchers: what they see ─▶ ┌─────────┐ ─▶ events, kept and streamed
//!   callers: propose, approve ▶│ Manager │ ─▶ the next job: watch · deploy · put back · plan without
//!   restart: the archive ────▶ └─────────┘
//! ```
//! Workers carry jobs out and choose nothing. What is acknowledged to a caller is in the archive.

mod around;
mod deliveries;
mod heartbeats;
mod kept_out;
mod maintenance;
mod polls;
mod proposals;
mod put_back;
mod retention;
mod traffic;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, mpsc},
    time::{Duration, Instant},
};

use controller::{StatusReport, Words};
use fabric::{Failure, Plan, SwitchId};
use rollout::diagnose::{Cause, Diagnosis, Remedy, Sight, Urgency};
use switch_model::driver::Fault;
use thiserror::Error;

use crate::{
    archive::{Archive, ArchiveError},
    config::Config,
    core::{
        approve::NotApproved,
        drift::{DriftAction, DriftGuard},
        events::{Condition, EventChange, EventLog},
        ladder::Reaction,
        parts::{Parts, subject},
        propose::NoProposal,
        standing::standing,
        traffic::TrafficWindow,
    },
    documents::{
        AuditEntry, Event, KeptOut, LinkStatus, Maintenance, ProposalState, Severity, Status, Target, TargetState, Way,
    },
    history::History,
};

use deliveries::Deliveries;
use heartbeats::Hosts;
use polls::Polls;

pub use around::Absent;
pub use polls::Polled;

/// Kinds of events that the manager makes itself.
mod kinds {
    /// Comes with polls.
    pub(super) const LEFT_OUT: &str = "switch-left-out";
    pub(super) const DEPLOYMENT: &str = "deployment-failed";
    pub(super) const RETURNED: &str = "drift-returned";
    pub(super) const NO_PLAN: &str = "no-plan";
    pub(super) const STORE: &str = "store";
    pub(super) const TRAFFIC: &str = "traffic";
    pub(super) const PATHS: &str = "paths-fail";
    pub(super) const CEASED: &str = "heartbeats-ceased";
    /// Those that do not come with polls.
    pub(super) const ALL: [&str; 7] = [DEPLOYMENT, RETURNED, NO_PLAN, STORE, TRAFFIC, PATHS, CEASED];
}

/// Who makes proposals that nobody else makes.
pub const CONTROLLER: &str = "espalierd";
/// The subject of maintenance marks that concern everything.
pub const WHOLE_FABRIC: &str = "fabric";
/// What the controller is doing while switches are polled.
const WATCHING: &str = "watching";
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
    /// Held while a plan is kept for a proposal that is yet to name it, and while plans are forgotten.
    keeping: Mutex<()>,
    /// Something is to be done, or looked at.
    due: Condvar,
    /// None where it could not be opened.
    history: Option<History>,
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
    /// Switches that somebody asked to put back, and those that are being put back; kept in the archive.
    due_back: BTreeSet<String>,
    /// What has failed without a stored answer, by the last poll.
    failed: Parts,
    /// Cables that were down at the last poll.
    down: Parts,
    /// Switches of the plan that did not answer at the last poll.
    silent: BTreeSet<String>,
    /// Switches that the plan does not know since they were down.
    absent: Option<Arc<Absent>>,
    /// Those of them that answer.
    answering: BTreeSet<String>,
    /// The failure for which hosts have switched over, by the last poll.
    standing: Option<Failure>,
    /// When old plans and proposals were forgotten last.
    forgot_s: Option<u64>,
    /// Links that are kept out of use; in the archive as well.
    kept_out: Vec<KeptOut>,
    /// Parts without which there was no plan, so that it is not tried again and again.
    hopeless: Option<Vec<String>>,
    look_at_once: bool,
    deliveries: Deliveries,
    /// Whether something may have failed, come back or been marked since plans without parts were thought about last.
    parts_changed: bool,
    polls: Polls,
    hosts: Hosts,
    traffic: TrafficWindow,
    doing: &'static str,
    /// Whoever stands by is told of switches that may have news.
    hints: Option<mpsc::Sender<SwitchId>>,
    stop: bool,
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
        inner.absent = inner.held.as_ref().map_or(Ok(None), |(held, _)| Absent::of(&archive, held))?.map(Arc::new);
        inner.target = target;
        inner.due_back = archive.due_back()?;
        inner.kept_out = archive.kept_out()?;
        inner.post(archive.deliveries()?);
        let (stream, _) = tokio::sync::broadcast::channel(STREAM_MAX);
        Ok(Self {
            archive,
            config: RwLock::new(Arc::new(config)),
            now_s,
            inner: Mutex::new(inner),
            keeping: Mutex::default(),
            due: Condvar::new(),
            history: None,
            stream,
        })
    }

    /// The same, with loads of links recorded.
    #[must_use]
    pub fn with_history(self, history: Option<History>) -> Self {
        Self { history, ..self }
    }

    /// Loads of links over the last day; none if they are not recorded.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
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

    /// The plan that the switches hold.
    pub fn held_plan(&self) -> Option<Arc<Plan>> {
        self.inner().held.as_ref().map(|(_, plan)| Arc::clone(plan))
    }

    /// Switches that the plan at hand does not know, since they were down when it was made.
    pub fn absent(&self) -> Option<Arc<Absent>> {
        self.inner().absent.clone()
    }

    /// Changes of events from now on.
    pub fn subscribe(&self) -> tokio::sync::broadcast::Receiver<Arc<EventChange>> {
        self.stream.subscribe()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeping(&self) -> MutexGuard<'_, ()> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
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
            Job::Watch(_) => WATCHING,
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

    /// Waits until it is to end, at most so long.
    pub fn wait_for_stop(&self, at_most: Duration) {
        let inner = self.inner();
        drop(self.due.wait_timeout_while(inner, at_most, |inner| !inner.stop));
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
        let absent = Absent::of(&self.archive, &ended)?.map(Arc::new);
        let now_s = self.now_s();
        let mut inner = self.inner();
        if state == TargetState::Deployed {
            inner.held = Some((ended.clone(), Arc::clone(plan)));
            (inner.absent, inner.answering, inner.standing) = (absent, BTreeSet::new(), None);
            inner.traffic = TrafficWindow::default();
        }
        if inner.target.as_ref().is_some_and(|current| current.number == target.number) {
            inner.target = Some(ended);
        }
        // What was seen before is of another state.
        inner.polls.last = None;
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

    // What watchers see.

    /// Takes a poll of all switches.
    ///
    /// # Errors
    /// [`ArchiveError`]; what was seen is known all the same.
    pub fn saw(&self, plan: &Plan, report: &StatusReport, took: Duration) -> Result<(), ArchiveError> {
        let (now_s, config) = (self.now_s(), self.config());
        let links: Vec<LinkStatus> = report.links.iter().map(link_status).collect();
        if let Some(Err(error)) = self.history.as_ref().map(|history| history.add(now_s, &links)) {
            tracing::warn!("{error}");
        }
        let marks = self.marks(now_s)?;
        let mut inner = self.inner();
        inner.polls.end(now_s, plan, report, links, took);
        let mut conditions: Vec<Condition> =
            report.diagnoses.iter().map(|diagnosis| condition(plan, report, diagnosis, (&marks, &config))).collect();
        conditions.extend(inner.decide_drift(now_s, plan, &report.diagnoses, &config, &marks));
        conditions.extend(inner.absent.iter().flat_map(|absent| absent.conditions(&inner.answering)));
        conditions.extend(inner.flaps(&marks));
        inner.standing = standing(plan, report);
        inner.traffic.add(now_s, plan, &report.links);
        let kept = |kind: &str| !kinds::ALL.contains(&kind) || kind == kinds::RETURNED;
        inner.failed = Parts::unprotected(&plan.topology, &report.diagnoses);
        inner.down = Parts::down(&report.diagnoses);
        let silent = plan.topology.switches().iter().zip(&report.seen).filter(|(_, seen)| seen.is_err());
        inner.silent = silent.map(|(switch, _)| switch.name.clone()).collect();
        inner.parts_changed = true;
        let recorded = self.record(&mut inner, now_s, conditions, &kept);
        let recorded = recorded.and_then(|()| self.judge_heartbeats(&mut inner, now_s, &marks));
        // What can be kept shows that the store works.
        let recorded = recorded.and_then(|()| self.archive.probe(now_s));
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
            "kept-out" | "fault" | "waiting" | "stopped" | "disagreement" | "untagged" | "foreign" | "ended"
            | "untold" => Severity::Warning,
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
        let kept = self.keep(&mut inner, changes);
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
        self.keep(inner, changes)
    }

    /// Keeps changes of events, with the deliveries about them, and streams them. `inner` is the manager's own.
    fn keep(&self, inner: &mut Inner, changes: Vec<EventChange>) -> Result<(), ArchiveError> {
        let kept: Vec<_> = changes.iter().map(|change| (change.clone(), self.deliveries_about(change))).collect();
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
        let deliveries = self.archive.keep_events(&kept)?;
        inner.post(deliveries);
        self.due.notify_all();
        Ok(())
    }

    // Shown.

    /// The fabric as it was polled last.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn status(&self) -> Result<Status, ArchiveError> {
        let mut proposals = self.archive.proposals()?;
        proposals.retain(|proposal| proposal.state == ProposalState::Open);
        let now_s = self.now_s();
        let maintenance = self.marks_set(now_s)?;
        let inner = self.inner();
        let last = inner.polls.last.as_ref();
        Ok(Status {
            doing: inner.doing.to_owned(),
            target: inner.target.clone(),
            switches: last.map_or(0, |last| last.switches),
            as_planned: last.map_or(0, |last| last.as_planned),
            polled_s: last.map(|last| last.at_s),
            poll_took_s: last.map_or(0.0, |last| last.took_s),
            links: last.map_or_else(Vec::new, |last| last.links.clone()),
            kept_out: inner.kept_out.clone(),
            heartbeats: inner.hosts.count(now_s),
            paths_failing: inner.hosts.failing,
            events: inner.events.open().into_iter().cloned().collect(),
            proposals,
            maintenance,
            deliveries_pending: inner.deliveries.pending(),
            deliveries_failed: inner.deliveries.failed(),
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

    /// Switches that the plan does not know since they were down, and that still are.
    fn still_absent(&self) -> BTreeSet<String> {
        let all = self.absent.iter().flat_map(|absent| &absent.switches);
        all.filter(|switch| !self.answering.contains(*switch)).cloned().collect()
    }

    /// The plan that switches hold, with hosts where they have switched over to.
    fn since(&self) -> Option<Arc<Plan>> {
        let (_, plan) = self.held.as_ref()?;
        let over = self.standing.and_then(|failure| plan.switched_over(failure));
        Some(over.map_or_else(|| Arc::clone(plan), Arc::new))
    }

    fn next_job(&self) -> Job {
        if self.stop {
            return Job::Stop;
        }
        if let (Some(target), Some(plan)) = (&self.target, &self.target_plan) {
            if target.state == TargetState::Pending {
                let since = if target.way == Way::Hitless { self.since() } else { None };
                return Job::Deploy { target: target.clone(), plan: Arc::clone(plan), since };
            }
        }
        match &self.held {
            Some((_, plan)) => {
                let switches: BTreeSet<String> = self.put_back.union(&self.due_back).cloned().collect();
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
    // Hosts that are still to return, or are on their way, are this daemon's own business, unless switches bear the tags of several
    // deployments: then nobody has hosts switch over.
    let is_of_standby = matches!(diagnosis.cause, Cause::Lingering { .. } | Cause::Between { .. });
    let astray = if is_of_standby { other_deployment(plan, report) } else { None };
    let is_own = config.ladder.stored == Reaction::Act && is_of_standby && astray.is_none();
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
        remedy: match astray {
            Some(switch) => Some(put_back_command(plan, switch)),
            None => remedy(plan, diagnosis).filter(|_| !is_own),
        },
        maintenance: mark.map(|mark| mark.reason.clone()),
    }
}

/// What to do about a diagnosis, by this program's commands.
fn remedy(plan: &Plan, diagnosis: &Diagnosis) -> Option<String> {
    let topology = &plan.topology;
    match (&diagnosis.remedy, diagnosis.cause.switch()) {
        (Remedy::DeployAgain, Some(switch)) => Some(put_back_command(plan, switch)),
        (Remedy::Confirm(link), switch) => {
            let switch = switch.unwrap_or_else(|| topology.port(topology.link(*link).a).switch);
            let link = topology.link_label(*link);
            Some(format!("turn LLDP on at both ends of {link}, then {}", put_back_command(plan, switch)))
        }
        (Remedy::ResumeOrUndo, _) => Some(
            "let the deployment end; if it has failed, espalierd retry, or espalierd rollback to an earlier target"
                .to_owned(),
        ),
        (Remedy::StandbyAndRepair(link), _) => Remedy::Repair(*link).sentence(plan),
        (remedy, _) => remedy.sentence(plan),
    }
}

fn put_back_command(plan: &Plan, switch: SwitchId) -> String {
    format!("espalierd put-back {}", plan.topology.switch(switch).name)
}

/// A switch whose deployment tag is not that of the newest deployment among the switches that answer.
fn other_deployment(plan: &Plan, report: &StatusReport) -> Option<SwitchId> {
    let tag = |seen: &Result<Sight, Fault>| Some(seen.as_ref().ok()?.mark.map(|mark| (mark.generation, mark.digest)));
    let newest = report.seen.iter().filter_map(tag).max()?;
    plan.topology
        .switch_ids()
        .zip(&report.seen)
        .find(|(_, seen)| tag(seen).is_some_and(|tag| tag != newest))
        .map(|(switch, _)| switch)
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
