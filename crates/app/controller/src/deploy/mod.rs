//! A plan on its switches, all of them or none.
//!
//! ```text
//!   request ─ route ─ connect ─ survey ─ refuse, or plan around ─ include unmanaged ports ─ Deployment ─▶ report
//!                                  └ events all the while: what was found, what is tried, which stage begins
//! ```
//! [`deploy`] writes; [`rehearse`] says what it would write.

mod around;
mod floods;
mod found;
mod hitless;
mod hosts;
mod mtu;
mod probe;
mod rehearse;
mod route;
mod surroundings;
mod survey;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cancel::Cancel;
use drivers::credentials::Keyring;
use fabric::{HostId, LinkId, Mac, Plan, PortId, Switch, SwitchId, Tagging, Topology, format::plan::plan_digest};
use rollout::deploy::{
    Deployment, DeploymentSpec, Event, Journal, Management, Outcome, Precedence, Reason, Watch, Way,
    run as run_deployment,
};
use switch_model::{SwitchConfig, driver::Fault, mark::Mark};

use self::around::plan_around;
use crate::{
    CancellationToken, ConnectOptions, Error, Fabric, Store,
    number::fresh_number,
    parallel::at_once,
    reached::{Connected, Reached, drivers, each_device, include_named},
};

pub use self::{
    hitless::{HostTables, NotHitless, UNPROVEN_DEADLOCK, hitless},
    hosts::HostsState,
    probe::LinkTrial,
    rehearse::{Rehearsal, RehearsedStage, rehearse},
    route::Route,
    surroundings::Judged,
    survey::Looked,
};

/// Bounds of how long a switch may be cut off before it takes a change back.
const GUARD_MIN: Duration = Duration::from_secs(2);
const GUARD_MAX: Duration = Duration::from_secs(3600);

/// How long floods are watched after the last ports have come up, where hosts are too quiet for more to be seen.
const FLOODS_MIN: Duration = Duration::from_millis(60);

/// What is to be deployed, and how.
#[derive(Clone, Debug)]
pub struct DeployRequest<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The plan that every switch holds, for a change under traffic.
    pub since: Option<&'a Plan>,
    /// The program that hands hosts that tag what they are to hold: between the steps of a change under traffic, and once any other
    /// deployment is over; and its first arguments. Empty if there is none.
    pub hosts_program: &'a [String],
    /// Where addresses were last that ports of `since` learn, or of the plan if that is none: `learned[address]` is a host of it. Every
    /// switch gets the entries that the plan has for them.
    pub learned: &'a BTreeMap<Mac, HostId>,
    /// Whether the deployment starts, resumes or is rolled back.
    pub start: Start,
    /// Whether another deployment's claim is respected.
    pub precedence: Precedence,
    /// Names of switches that were replaced, so that their identity is no misfit.
    pub replaced: &'a [String],
    /// Cables that are used though nothing confirms them: `sw1:p1--sw2:p2`, one end of it, or `all`.
    pub trusted: &'a [String],
    /// What becomes of a plan that cannot do without cables that nothing confirms.
    pub unconfirmed: Unconfirmable,
    /// Whether such cables are tested by taking one end down and reading the other.
    pub trial: Trial,
    /// How long a switch may be cut off before it takes a change back.
    pub guard: Duration,
    /// How long a confirmed cable is awaited after its ports have opened.
    pub cable_wait: Duration,
}

/// How a deployment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// From whatever the switches hold; refused while the store has a journal, unless it takes over.
    Fresh,
    /// Where an interrupted one stopped.
    Resume,
    /// Back to what the switches held before an interrupted one.
    Undo,
}

/// What becomes of a plan that cannot do without cables that nothing confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfirmable {
    /// It is refused.
    Refuse,
    /// It is planned anew without them, and the new plan is handed back.
    PlanAround,
}

/// Whether cables that LLDP does not confirm are tried by their link state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// They are not.
    Never,
    /// One end after the other is taken down for a moment.
    ByLinkState,
}

/// Progress of a deployment.
#[derive(Debug)]
pub enum DeployEvent<'a> {
    /// Names of switches for which weak algorithms are allowed.
    WeakAlgorithms(&'a [&'a str]),
    /// A cable was tried by its link state.
    Tried {
        /// The topology.
        topology: &'a Topology,
        /// Which.
        link: LinkId,
        /// The result.
        trial: &'a LinkTrial,
    },
    /// A port that was taken down for a trial does not come up again.
    LeftShut {
        /// The topology.
        topology: &'a Topology,
        /// Which.
        port: PortId,
    },
    /// The survey is over, and nothing in it stops the deployment.
    Surveyed(&'a Looked, &'a Route),
    /// The journal of an interrupted deployment is of no use to this one, and why; where it is now.
    SetAside {
        /// Why.
        why: &'a str,
        /// Where.
        place: &'a str,
    },
    /// `unmanaged[switch]`: ports that the plan does not name, and that are taken out of service.
    Unmanaged(&'a Topology, &'a [Vec<String>]),
    /// `mtus[switch][slot]`, as far as switches say; [`Looked::small_mtus`] has those that are too small.
    Mtus(&'a Looked, &'a [Vec<Option<u16>>]),
    /// The deployment itself.
    Deployment(&'a Topology, &'a Event),
}

/// Takes events as they happen.
pub type Events<'a> = dyn FnMut(DeployEvent<'_>) + 'a;

/// The result of a request to deploy.
#[derive(Debug)]
pub enum DeployResult {
    /// The judge finds the plan unfit.
    Unfit,
    /// It was asked to stop before anything was written.
    Interrupted,
    /// There is no interrupted deployment to go on with or to take back.
    NothingInterrupted,
    /// The store holds the journal of an interrupted deployment of this generation; a switch bears the tag of a newer one.
    JournalHeld {
        /// Its generation.
        generation: u32,
        /// The generation that a switch bears, if it is newer.
        newer: Option<u32>,
    },
    /// The journal of the interrupted deployment is not of this plan's switches.
    OtherJournal(OtherJournal),
    /// The switches or their cables are not those of the plan.
    Refused(Surveyed),
    /// These switches would refuse what the plan asks of them.
    Unwritable(Surveyed, Vec<(SwitchId, Fault)>),
    /// This plan does without these cables, which nothing confirms; it is not deployed yet.
    PlannedAround(Box<Plan>, BTreeSet<LinkId>),
    /// The deployment came to its end.
    Ended(Surveyed, Outcome, HostsTold),
}

/// Whether hosts that tag hold the plan that their switches hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostsTold {
    /// They do, as far as a program hands it to them; or the switches tag, or do not hold the plan.
    Well,
    /// They may not, and why.
    Untold(String),
}

/// Where a deployment was to lead, and what was seen before it began.
#[derive(Debug)]
pub struct Surveyed {
    /// The states on the way.
    pub route: Route,
    /// What was seen.
    pub looked: Looked,
}

/// How a journal shows that it is not of a plan's switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherJournal {
    /// It is of another number of switches.
    Switches {
        /// How many the journal has.
        journal: usize,
        /// How many the plan has.
        plan: usize,
    },
    /// It does not know this port, which the plan names.
    Port(String),
}

/// Deploys a plan.
///
/// # Errors
/// [`Error`], if the request cannot be, or the store fails. Whatever switches do is part of the result.
pub fn deploy(
    request: &DeployRequest<'_>,
    (keyring, options): (&Keyring, &ConnectOptions),
    store: &dyn Store,
    token: &CancellationToken,
    events: &mut Events<'_>,
) -> Result<DeployResult, Error> {
    let plan = request.plan;
    let mut route = Route::new(request)?;
    if !verify::check(route.plan.plan()).is_deployable() {
        return Ok(DeployResult::Unfit);
    }
    let topology = route.topology.clone();
    // Until the first write there is nothing to take back: whoever asks to stop ends every request.
    let stop = token.for_requests();
    let fabric = Fabric::new(&topology, route.mark_vlan(), keyring, options, stop.clone())?;
    tell_weak(&fabric, events);
    let parallel = fabric.parallel();
    let mut devices = fabric.connect_all();
    floods::refuse_untold(plan, &topology, &devices)?;
    let mut resume = store.journal()?;
    match (request.start, &resume) {
        (Start::Resume | Start::Undo, None) => return Ok(DeployResult::NothingInterrupted),
        (Start::Fresh, Some(journal)) if request.precedence == Precedence::GiveWay => {
            return Ok(journal_held(journal, &mut devices, parallel));
        }
        _ => {}
    }
    route = begun_from_held(route, request, resume.as_ref(), &mut devices, parallel)?;
    let mut looked = Looked::new(request, &route, &fabric, &mut devices)?;
    if token.is_cancelled() {
        return Ok(DeployResult::Interrupted);
    }
    if request.trial == Trial::ByLinkState && looked.survey.misfits.is_empty() && !looked.partial {
        // A port that is shut for it is opened again, whoever asks to stop.
        set_cancel(&mut devices, &Cancel::default());
        probe::confirm(&mut looked, &route, &mut devices, token, parallel, events);
        looked.decide(&route);
        set_cancel(&mut devices, &stop);
    }
    let around = request.unconfirmed == Unconfirmable::PlanAround && matches!(route.way, Way::Drained);
    if around && looked.survey.misfits.is_empty() && looked.unfit.is_some() && !looked.partial {
        let links = looked.shut;
        return Ok(DeployResult::PlannedAround(Box::new(plan_around(plan, &links)?), links));
    }
    if looked.refuses(&route.way) {
        return Ok(DeployResult::Refused(Surveyed { route, looked }));
    }
    events(DeployEvent::Surveyed(&looked, &route));
    looked.shut_in(&mut route);
    // One that was interrupted has them in its journal: they may be out of service already.
    let unmanaged = match resume.as_ref().map(|journal| further_ports(&route, journal)) {
        Some(Ok(names)) => {
            include_named(&mut devices, &names, parallel);
            names
        }
        Some(Err(why)) if request.precedence == Precedence::GiveWay || request.start == Start::Undo => {
            return Ok(DeployResult::OtherJournal(why));
        }
        further => {
            if let Some(Err(why)) = further {
                let place = store.set_aside()?;
                events(DeployEvent::SetAside { why: &why.sentence(), place: &place });
                resume = None;
            }
            fabric.include_all_unmanaged(&mut devices, &route.vlans())
        }
    };
    if token.is_cancelled() {
        return Ok(DeployResult::Interrupted);
    }
    events(DeployEvent::Unmanaged(&topology, &unmanaged));
    tell_mtus(plan, &route, &mut looked, &mut devices, parallel, events);
    let unwritable = unwritable(&route, &mut devices, &unmanaged, digest_of(plan)?);
    if !unwritable.is_empty() {
        return Ok(DeployResult::Unwritable(Surveyed { route, looked }, unwritable));
    }
    if route.management != Management::OutOfBand {
        devices.iter_mut().flatten().for_each(|device| device.set_patience(guard_of(request)));
    }
    let cables = looked.cables(&topology);
    let mut order = specification(request, &route, store)?;
    (order.resume, order.parallel_max) = (resume, parallel);
    order.watch = Some(Watch { cables, cables_max: request.cable_wait, floods_min: FLOODS_MIN });
    order.park(&unmanaged);
    let cancel = Cancel::default();
    set_cancel(&mut devices, &cancel);
    let mut deployment = Deployment::new(&topology, order);
    let hosts = (&route.hosts[..], request.hosts_program);
    let mut surroundings = Judged { plan: &route.plan, topology: &topology, hosts, store, token, events };
    let outcome = run_deployment(&mut deployment, drivers(&mut devices), &mut surroundings, &cancel);
    conclude(store, &deployment, &outcome)?;
    let hosts = tell_hosts(request, &route, &outcome, token);
    Ok(DeployResult::Ended(Surveyed { route, looked }, outcome, hosts))
}

/// Has the program hand the plan to hosts that tag, once its switches hold it. A change under traffic has done so on its way.
fn tell_hosts(request: &DeployRequest<'_>, route: &Route, outcome: &Outcome, token: &CancellationToken) -> HostsTold {
    let holds = match outcome {
        Outcome::Deployed { .. } => !matches!(route.way, Way::Live { .. }),
        Outcome::Unchanged => true,
        _ => false,
    };
    if !holds || request.hosts_program.is_empty() || request.plan.policy.tagging == Tagging::Switch {
        return HostsTold::Well;
    }
    match HostsState::plan(request.plan).hand_out(request.hosts_program, token) {
        Ok(()) => HostsTold::Well,
        Err(Reason::Hosts(why)) => HostsTold::Untold(why),
        Err(_) => HostsTold::Untold("the program was interrupted".to_owned()),
    }
}

/// The route from what switches hold; from what they held before, if the deployment was interrupted, with the bonds where they are now.
fn begun_from_held(
    route: Route,
    request: &DeployRequest<'_>,
    resume: Option<&Journal>,
    devices: &mut [Connected],
    parallel: usize,
) -> Result<Route, Error> {
    if !Route::begins_with_changing_entries(request) {
        return Ok(route);
    }
    let now = each_device(devices, parallel, |_, device| Ok(Some(device.driver().read()?.config)));
    match resume.filter(|journal| journal.backup.len() == devices.len()) {
        Some(journal) => {
            let before: Vec<_> = journal.backup.iter().map(|backup| Some((**backup).clone())).collect();
            route.begun_from(request, &before, Some(&now))
        }
        None => route.begun_from(request, &now, None),
    }
}

/// What a deployment is to do that a store knows of: it resumes what the store has a journal of, looks at nothing while ports open, and
/// asks all switches at once.
///
/// # Errors
/// [`Error`], if the store fails.
pub fn specification(request: &DeployRequest<'_>, route: &Route, store: &dyn Store) -> Result<DeploymentSpec, Error> {
    Ok(DeploymentSpec {
        goals: route.goals.clone(),
        way: route.way.clone(),
        digest: digest_of(request.plan)?,
        nonce: fresh_number() as u32,
        generation: store.generation()?,
        precedence: request.precedence,
        claims: store.claims()?,
        resume: store.journal()?,
        management: route.management.clone(),
        guard: Some(guard_of(request)),
        sequence: route.sequence.clone(),
        parallel_max: route.goals.len(),
        watch: None,
    })
}

fn guard_of(request: &DeployRequest<'_>) -> Duration {
    request.guard.clamp(GUARD_MIN, GUARD_MAX)
}

/// Has a store remember how a deployment ended.
///
/// # Errors
/// [`Error`], if the store fails.
pub fn conclude(store: &dyn Store, deployment: &Deployment, outcome: &Outcome) -> Result<(), Error> {
    let settle = |mark: Option<Mark>| mark.map_or(Ok(()), |mark| store.settle(mark.generation));
    match outcome {
        Outcome::Deployed { .. } | Outcome::RolledBack { .. } => {
            // In this order: a journal without the claims that it was written under could be resumed by nobody.
            store.finish()?;
            settle(deployment.mark_left())
        }
        // What was claimed and then left alone bears our tag all the same.
        Outcome::Refused(_) | Outcome::Stranded { .. } | Outcome::Quenched { .. } => settle(deployment.mark_left()),
        Outcome::Unchanged | Outcome::Stale { .. } | Outcome::Superseded { .. } => Ok(()),
    }
}

fn tell_weak(fabric: &Fabric<'_>, events: &mut Events<'_>) {
    let weak = fabric.weak();
    if !weak.is_empty() {
        events(DeployEvent::WeakAlgorithms(&weak));
    }
}

/// The first four bytes of a plan's digest.
fn digest_of(plan: &Plan) -> Result<u32, Error> {
    let digest = plan_digest(plan).map_err(|source| Error::File { what: "the plan's digest".to_owned(), source })?;
    Ok(u32::from_str_radix(digest.get(..8).unwrap_or("0"), 16).unwrap_or(0))
}

fn set_cancel(devices: &mut [Connected], cancel: &Cancel) {
    devices.iter_mut().flatten().for_each(|device| device.set_cancel(cancel));
}

/// What switches would refuse on the way to the plan, so that nothing is written anywhere: ports whose settings are not all
/// understood, and states that a language has no words for. Of those over SSH alone, whose lines are known beforehand.
fn unwritable(
    route: &Route,
    devices: &mut [Connected],
    unmanaged: &[Vec<String>],
    digest: u32,
) -> Vec<(SwitchId, Fault)> {
    let mut refusals = Vec::new();
    for ((switch, device), unmanaged) in route.topology.switch_ids().zip(devices).zip(unmanaged) {
        let Ok(Reached::CommandLine(device)) = device else { continue };
        let Some(found) = device.held().cloned() else { continue };
        let states = route.states(switch, &found, unmanaged).into_iter().map(|(_, state)| state);
        let mut before = found;
        for state in states {
            match device.rehearse(&before, &state, Mark::new(0, 0, digest), None) {
                Ok(_) => before = state,
                Err(fault) => {
                    refusals.push((switch, fault));
                    break;
                }
            }
        }
    }
    refusals
}

/// Asks what of the ports' MTU is not as the plan needs it. What is taken back goes to a state that is not the plan's.
fn tell_mtus(
    plan: &Plan,
    route: &Route,
    looked: &mut Looked,
    devices: &mut [Connected],
    parallel: usize,
    events: &mut Events<'_>,
) {
    if !matches!(route.way, Way::Undo) {
        let mtus = mtu::ask(devices, parallel);
        looked.small_mtus = mtu::small(plan, &mtus);
        events(DeployEvent::Mtus(looked, &mtus));
    }
}

/// Says of a journal that another deployment may have begun since.
fn journal_held(journal: &Journal, devices: &mut [Connected], parallel: usize) -> DeployResult {
    let marks = at_once(devices.iter_mut().collect(), parallel, |device: &mut Connected| {
        device.as_mut().ok()?.driver().read().ok()?.mark
    });
    let newer = marks.into_iter().flatten().max().filter(|found| *found > journal.mark);
    DeployResult::JournalHeld { generation: journal.mark.generation, newer: newer.map(|mark| mark.generation) }
}

/// The ports in a journal that the plan does not name.
fn further_ports(route: &Route, journal: &Journal) -> Result<Vec<Vec<String>>, OtherJournal> {
    if journal.backup.len() != route.goals.len() {
        return Err(OtherJournal::Switches { journal: journal.backup.len(), plan: route.goals.len() });
    }
    let one = |((switch, goal), backup): ((&Switch, &SwitchConfig), &Arc<SwitchConfig>)| {
        let known = |config: &SwitchConfig, name: &str| config.slot(name).is_some();
        if let Some(port) = goal.ports.iter().find(|port| !known(backup, &port.name)) {
            return Err(OtherJournal::Port(format!("{}:{}", switch.name, port.name)));
        }
        let further = backup.ports.iter().filter(|port| !known(goal, &port.name));
        Ok(further.map(|port| port.name.clone()).collect())
    };
    route.topology.switches().iter().zip(&route.goals).zip(&journal.backup).map(one).collect()
}

impl OtherJournal {
    /// What is wrong, for a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Switches { journal, plan } => {
                format!("the interrupted deployment was of {journal} switches, and the plan has {plan}")
            }
            Self::Port(port) => format!("the interrupted deployment did not know {port}"),
        }
    }
}
