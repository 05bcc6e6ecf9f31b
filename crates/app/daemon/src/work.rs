//! Jobs carried out: threads that watch, and deployments that nothing else runs beside.
//!
//! ```text
//!   next job ─ watch ──▶ looks, stands by, keeps addresses, proposes ─ something else is due: all of them end ─┐
//!       ▲    └ deploy ─▶ alone ───────────────────────────────────────────────────────────────────────────────┤
//!       └──────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use controller::{
    AddressesMode, AddressesRequest, AtEnd, CancellationToken, ConnectOptions, DeployEvent, DeployRequest,
    DeployResult, Error, Fabric, HostsTold, Monitor, StandbyEvent, StandbyRequest, Start, Store as _, Trial,
    Unconfirmable, Words, deploy,
    deploy_words::{DeployEnd, DeployLines, WayOn, end_words},
    keep_addresses, stand_by,
};
use drivers::credentials::Keyring;
use fabric::{HostId, LinkId, Mac, Plan, VlanId};
use rollout::{
    addresses::with_learned,
    deploy::{Outcome, Precedence, Reason},
    standby::{HoldDown, PastFailures, Standby},
};

use crate::{
    core::ladder::Reaction,
    documents::{DeploymentOutcome, Target},
    manager::{Absent, Deployed, Job, Manager, took},
    outcome::{outcome_words, refusal_words},
    progress::Progress,
};

/// How long frames may still be under way after their senders have been stopped.
pub const DRAIN: Duration = Duration::from_millis(500);
/// How long a watcher that has ended waits before it begins again.
pub const AGAIN: Duration = Duration::from_secs(5);
/// How long switches are left alone between two looks.
const BREATH: Duration = Duration::from_millis(500);
/// A poll gives up sooner than a deployment: the next one asks again, and a switch that died is known within seconds.
const LOOK_TIMEOUT_MAX: Duration = Duration::from_secs(1);
const LOOK_ATTEMPTS_MAX: u32 = 2;
/// How soon everything notices that something else is due.
const MOMENT: Duration = Duration::from_millis(100);
/// How long a switch may be cut off before it takes a change back.
const GUARD: Duration = Duration::from_secs(90);
/// How long a confirmed cable is awaited after its ports have opened.
const CABLE_WAIT: Duration = Duration::from_secs(45);

/// How switches are reached.
pub struct Reach {
    /// What is known of each.
    pub keyring: Keyring,
    /// How they are asked.
    pub options: ConnectOptions,
}

impl Reach {
    /// Reads the credentials that a configuration names.
    ///
    /// # Errors
    /// A message that names the file and the way out.
    pub fn read(path: &Path, options: ConnectOptions, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let keyring = controller::read_keyring(path, env).map_err(|error| error.words())?;
        Ok(Self { keyring, options })
    }
}

/// Carries jobs out until there is to be an end.
pub fn work(manager: &Manager, progress: &Progress, reach: &dyn Fn() -> Arc<Reach>) {
    loop {
        match manager.next_job() {
            Job::Stop => return,
            Job::Wait => {
                manager.wait_for_job(AGAIN);
            }
            Job::Watch(plan) => watch(manager, &plan, &reach()),
            Job::Deploy { target, plan, since } => {
                progress.begin(&target, manager.now_s());
                let (end, outcome) = bring(manager, (&target, &plan, since.as_deref()), progress, &reach());
                let kept = manager.deployed(&target, &plan, end);
                progress.end(outcome);
                if let Err(error) = kept {
                    manager.store_failed(&error);
                    manager.wait_for_job(AGAIN);
                }
            }
            Job::PutBack { plan, switches } => put_back(manager, &plan, &switches, &reach()),
        }
    }
}

/// Attends to a plan until something else is due.
fn watch(manager: &Manager, plan: &Arc<Plan>, reach: &Reach) {
    let token = CancellationToken::default();
    let ladder = manager.config().ladder;
    thread::scope(|scope| {
        scope.spawn(|| look(manager, plan, reach, &token));
        if ladder.stored == Reaction::Act && has_answers(plan) {
            scope.spawn(|| answer(manager, plan, reach, &token));
        } else {
            past_failures(manager, None);
        }
        if let Some(absent) = manager.absent() {
            let token = &token;
            scope.spawn(move || await_absent(manager, &absent, reach, token));
        }
        if ladder.addresses == Reaction::Act && plan.topology.learning_hosts().next().is_some() {
            scope.spawn(|| learn(manager, plan, reach, &token));
        }
        while !manager.wait_for_job(MOMENT) {
            // Planning without what has failed takes a while, during which everything else goes on.
            let proposed = manager.propose_around().and_then(|()| manager.propose_for_traffic());
            if let Err(error) = proposed.and_then(|()| manager.forget_old()) {
                manager.store_failed(&error);
                manager.wait_for_job(AGAIN);
            }
        }
        token.cancel();
        // Whoever waits for the next look sees the token at once.
        manager.look_at_once();
    });
}

fn has_answers(plan: &Plan) -> bool {
    Standby::new(plan, HoldDown::new(Duration::ZERO), DRAIN).is_ok()
}

/// Lets time pass, less if it is asked to stop.
fn rest(token: &CancellationToken, how_long: Duration) {
    let mut left = how_long;
    while !token.is_cancelled() && !left.is_zero() {
        let part = left.min(MOMENT);
        thread::sleep(part);
        left -= part;
    }
}

fn say(manager: &Manager, watcher: &str, words: &Words) {
    if let Err(error) = manager.heard(watcher, words) {
        manager.store_failed(&error);
    }
}

fn look_options(reach: &Reach) -> ConnectOptions {
    ConnectOptions {
        timeout: reach.options.timeout.min(LOOK_TIMEOUT_MAX),
        attempts: reach.options.attempts.min(LOOK_ATTEMPTS_MAX),
        ..reach.options.clone()
    }
}

/// Polls all switches, over and over.
fn look(manager: &Manager, plan: &Plan, reach: &Reach, token: &CancellationToken) {
    let known = known_addresses(manager, plan);
    let with = with_learned(plan, &known);
    let options = look_options(reach);
    let fabric = match Fabric::of(&with, &reach.keyring, &options, token.for_requests()) {
        Ok(fabric) => fabric,
        Err(error) => {
            tracing::error!("{}", error.words());
            return;
        }
    };
    let config = manager.config();
    let every = Duration::from_secs_f64(config.watch.counters);
    let mut monitor = Monitor::new(&with, &known, &fabric, Duration::from_secs_f64(config.watch.tables));
    let learns = plan.topology.learning_hosts().next().is_some();
    while !token.is_cancelled() {
        monitor.begin_interval();
        manager.poll_begins();
        let ((), took) = took(|| monitor.look());
        // Switches that were left in the middle of a request are no finding.
        if token.is_cancelled() {
            return;
        }
        if learns {
            monitor.follow(plan, &known_addresses(manager, plan));
        }
        if let Err(error) = manager.saw(monitor.plan(), &monitor.report(), took) {
            manager.store_failed(&error);
        }
        // However many hints come, switches are not asked all the time.
        rest(token, BREATH);
        manager.wait_for_look(every.saturating_sub(took + BREATH));
    }
}

/// Asks switches that the plan does not know whether they are back.
fn await_absent(manager: &Manager, absent: &Absent, reach: &Reach, token: &CancellationToken) {
    let options = look_options(reach);
    // No tag is written or looked for.
    let found = Fabric::new(&absent.topology, VlanId::MAX, &reach.keyring, &options, token.for_requests());
    let fabric = match found {
        Ok(fabric) => fabric,
        Err(error) => {
            tracing::error!("{}", error.words());
            return;
        }
    };
    while !token.is_cancelled() {
        let answers =
            |switch: &&String| absent.topology.find_switch(switch).is_some_and(|id| fabric.connect_to_look(id).is_ok());
        let answering = absent.switches.iter().filter(answers).cloned().collect();
        // Switches that were left in the middle of a request are no finding.
        if token.is_cancelled() {
            return;
        }
        manager.saw_absent(answering);
        rest(token, Duration::from_secs_f64(manager.config().watch.counters));
    }
}

fn known_addresses(manager: &Manager, plan: &Plan) -> BTreeMap<Mac, HostId> {
    manager.archive().addresses(plan).unwrap_or_else(|error| {
        manager.store_failed(&error);
        BTreeMap::new()
    })
}

/// Has hosts switch over when something fails that the plan stores an answer for.
fn answer(manager: &Manager, plan: &Plan, reach: &Reach, token: &CancellationToken) {
    let watch = manager.config().watch.clone();
    let seconds = Duration::from_secs_f64;
    let (interval, hold) = (seconds(watch.standby), watch.hold_down());
    let hints = watch.traps.map(|_| Mutex::new(manager.hints()));
    while !token.is_cancelled() {
        let past = past_failures(manager, Some(plan));
        // A daemon that is started again finds every switch as it left it.
        let (hints, at_end) = (hints.as_ref(), AtEnd::Keep);
        let request = StandbyRequest { plan, interval, hold, past: &past, drain: DRAIN, hints, at_end };
        let result = stand_by(&request, (&reach.keyring, &reach.options), token, &mut |event| {
            let kept = match &event {
                StandbyEvent::Notice(notice) => manager.noticed(plan, notice),
                StandbyEvent::Failure(link, in_a_row) => manager.link_failed(plan, *link, *in_a_row),
                _ => Ok(()),
            };
            if let Err(error) = kept {
                manager.store_failed(&error);
            }
            if let Some(words) = event.words(plan) {
                say(manager, "standby", &words);
            }
        });
        match result {
            Ok(result) => result.words(plan).iter().for_each(|words| say(manager, "standby", words)),
            Err(error) => tracing::error!("{}", error.words()),
        }
        rest(token, AGAIN);
    }
}

/// What is remembered of a plan's links that have failed.
fn past_failures(manager: &Manager, plan: Option<&Plan>) -> BTreeMap<LinkId, PastFailures> {
    manager.past_failures(plan).unwrap_or_else(|error| {
        manager.store_failed(&error);
        BTreeMap::new()
    })
}

/// Enters addresses that ports learn.
fn learn(manager: &Manager, plan: &Plan, reach: &Reach, token: &CancellationToken) {
    let watch = manager.config().watch.clone();
    let seconds = Duration::from_secs_f64;
    while !token.is_cancelled() {
        let known = known_addresses(manager, plan);
        let request = AddressesRequest {
            plan,
            known: &known,
            interval: seconds(watch.addresses),
            age: seconds(watch.address_age),
            mode: AddressesMode::Follow,
        };
        let mut remember = |known: &BTreeMap<Mac, HostId>| {
            let kept = manager.archive().keep_addresses(plan, known);
            kept.map_err(|error| controller::Error::Request(error.to_string()))
        };
        let result = keep_addresses(&request, (&reach.keyring, &reach.options), token, &mut remember, &mut |event| {
            event.words(plan).iter().for_each(|words| say(manager, "addresses", words));
        });
        match result {
            Ok(result) => result.words(plan).iter().for_each(|words| say(manager, "addresses", words)),
            Err(error) => tracing::error!("{}", error.words()),
        }
        rest(token, AGAIN);
    }
}

/// A request to deploy, as the daemon makes them.
pub fn request<'a>(
    plan: &'a Plan,
    since: Option<&'a Plan>,
    hosts_program: &'a [String],
    learned: &'a BTreeMap<Mac, HostId>,
    start: Start,
) -> DeployRequest<'a> {
    DeployRequest {
        plan,
        since,
        hosts_program,
        learned,
        start,
        precedence: Precedence::GiveWay,
        replaced: &[],
        trusted: &[],
        unconfirmed: Unconfirmable::Refuse,
        trial: Trial::Never,
        guard: GUARD,
        cable_wait: CABLE_WAIT,
    }
}

/// Brings the switches to a target, and tells what happens meanwhile.
fn bring(
    manager: &Manager,
    (target, plan, since): (&Target, &Plan, Option<&Plan>),
    progress: &Progress,
    reach: &Reach,
) -> (Deployed, DeploymentOutcome) {
    tracing::info!(target = target.number, "deploying");
    let mut lines = DeployLines::new(plan);
    let mut tell = |event: &DeployEvent<'_>| progress.tell(lines.of(event));
    let done = attempt(manager, plan, since, reach, &mut tell);
    let end = end_of(manager, &done);
    let outcome = match (&end, &done) {
        (Deployed::Interrupted, _) => failure(
            "interrupted",
            "espalierd is stopping; it resumes the deployment when it is started again".to_owned(),
        ),
        (_, Err(error)) => failure("failed", error.words()),
        (_, Ok(result)) => match end_words(result, plan, &WayOn::Controller) {
            Some(DeployEnd { word, lines, is_sound }) => DeploymentOutcome { word: word.to_owned(), lines, is_sound },
            None => failure("failed", refusal_words(result)),
        },
    };
    (end, outcome)
}

fn failure(word: &str, why: String) -> DeploymentOutcome {
    DeploymentOutcome { word: word.to_owned(), lines: vec![why], is_sound: false }
}

/// Deploys a plan once more for switches that differ from it.
fn put_back(manager: &Manager, plan: &Plan, switches: &BTreeSet<String>, reach: &Reach) {
    let names: Vec<&str> = switches.iter().map(String::as_str).collect();
    tracing::info!("putting back {}", names.join(", "));
    if let Err(error) = manager.putting_back(switches) {
        manager.store_failed(&error);
        manager.wait_for_stop(AGAIN);
        return;
    }
    let words = |kind, text| Words { kind, subject: Some(names.join(", ")), text };
    let told = match end_of(manager, &attempt(manager, plan, None, reach, &mut |_| {})) {
        Deployed::Well => words("put-back", format!("{} put back to the plan", names.join(", "))),
        Deployed::Badly(why) => words("waits", format!("{} not put back: {why}", names.join(", "))),
        // It goes on after the next start.
        Deployed::Interrupted => return,
    };
    if let Err(error) = manager.put_back_ended(switches) {
        manager.store_failed(&error);
    }
    say(manager, "drift", &told);
}

/// Deploys a plan, beginning where an interrupted deployment stopped, if there is one. If that was another one than this plan can continue,
/// all ports of the switches go down first.
fn attempt(
    manager: &Manager,
    plan: &Plan,
    since: Option<&Plan>,
    reach: &Reach,
    tell: &mut dyn FnMut(&DeployEvent<'_>),
) -> Result<DeployResult, Error> {
    let done = attempt_once(manager, plan, since, reach, tell)?;
    match &done {
        DeployResult::OtherJournal(why) => {
            let place = manager.archive().set_aside()?;
            tracing::warn!("{}; its journal is now {place}", why.sentence());
        }
        DeployResult::Ended(_, Outcome::Refused(Reason::OtherChange), _) => {}
        _ => return Ok(done),
    }
    attempt_once(manager, plan, None, reach, tell)
}

fn attempt_once(
    manager: &Manager,
    plan: &Plan,
    since: Option<&Plan>,
    reach: &Reach,
    tell: &mut dyn FnMut(&DeployEvent<'_>),
) -> Result<DeployResult, Error> {
    let start = if manager.archive().journal()?.is_some() { Start::Resume } else { Start::Fresh };
    let (token, over) = (CancellationToken::default(), CancellationToken::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.is_cancelled() && !manager.is_stopping() {
                thread::sleep(MOMENT);
            }
            if manager.is_stopping() {
                token.cancel();
            }
        });
        let reached = (&reach.keyring, &reach.options);
        let mut tell = |event: DeployEvent<'_>| {
            tracing::debug!(?event, "deployment");
            tell(&event);
        };
        let learned = known_addresses(manager, since.unwrap_or(plan));
        let hosts_program = manager.config().hosts_program.clone();
        let request = request(plan, since, &hosts_program, &learned, start);
        let done = deploy(&request, reached, manager.archive(), &token, &mut tell);
        over.cancel();
        if let Ok(DeployResult::Ended(_, _, HostsTold::Untold(why))) = &done {
            let text = format!("hosts could not be given the tables of the plan that the switches hold: {why}");
            say(manager, "hosts", &Words { kind: "untold", subject: None, text });
        }
        done
    })
}

fn end_of(manager: &Manager, done: &Result<DeployResult, Error>) -> Deployed {
    match done {
        Ok(DeployResult::Ended(surveyed, outcome, _)) => match outcome_words(&surveyed.route.topology, outcome) {
            Ok(()) => Deployed::Well,
            Err(_) if manager.is_stopping() => Deployed::Interrupted,
            Err(why) => Deployed::Badly(why),
        },
        Ok(DeployResult::Interrupted) => Deployed::Interrupted,
        Ok(refused) => Deployed::Badly(refusal_words(refused)),
        Err(error) => Deployed::Badly(error.words()),
    }
}
