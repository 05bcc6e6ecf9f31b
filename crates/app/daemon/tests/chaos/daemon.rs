//! The daemon's work in virtual time: what `espalierd::work` does with threads, done step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller::{
    CancellationToken, Judged, Report, Route, StandbyEvent, Start, StatusReport, Store as _, Tracker, agreement,
    conclude, specification,
};
use espalierd::{
    core::ladder::Reaction,
    documents::Target,
    manager::{Deployed, Job, Manager},
    outcome::outcome_words,
    work::{AGAIN, DRAIN, request},
};
use fabric::{Admin, Plan, PortId, SwitchId};
use rollout::{
    bonds::Bonds,
    deploy::{Deployment, Outcome, Reply, Surroundings as _, SwitchRequest, Watch},
    diagnose::diagnose,
    standby::Standby,
};
use switch_model::{SwitchConfig, align, observe::drift};

use crate::world::{Died, World};

const AGAIN_MS: u64 = AGAIN.as_millis() as u64;
/// Between two polls while something has happened lately, and at other times, when nothing comes of them.
const POLL_MS: u64 = 30_000;
const CALM_POLL_MS: u64 = 900_000;
const LATELY_MS: u64 = 150_000;
/// Between two looks of a standby.
const GLANCE_MS: u64 = 500;
const CALM_GLANCE_MS: u64 = 5_000;
const JUST_NOW_MS: u64 = 4_000;
/// For how long floods are watched after the last ports have come up.
const FLOODS_MIN: Duration = Duration::from_millis(60);
/// How `outcome_words` says that what was interrupted is not this change under traffic.
const OTHER_CHANGE: &str = "another change under traffic was interrupted";

/// Carries jobs out until the daemon dies, or `is_over`.
pub(crate) fn run(world: &mut World, manager: &Manager, is_over: &dyn Fn(&World) -> bool) -> Result<(), Died> {
    while !is_over(world) {
        match manager.next_job() {
            Job::Stop => return Err(world.ended()),
            Job::Wait => world.pass(manager, world.now_ms() + AGAIN_MS)?,
            Job::Watch(plan) => watch(world, manager, &plan, is_over)?,
            Job::Deploy { target, plan, since } => {
                let end = bring(world, manager, &target, (&plan, since.as_deref()))?;
                match &end {
                    Deployed::Well => world.count("deployments"),
                    Deployed::Badly(why) => {
                        world.say(|| format!("not deployed: {why}"));
                        world.count("deployments that failed");
                    }
                    Deployed::Interrupted => world.count("deployments that were interrupted"),
                }
                if let Err(error) = manager.deployed(&target, &plan, end) {
                    manager.store_failed(&error);
                    world.pass(manager, world.now_ms() + AGAIN_MS)?;
                }
                // Whoever watches polls at once.
                world.disturbed_ms = world.now_ms();
            }
            Job::PutBack { plan, switches } => {
                if let Err(error) = manager.putting_back(&switches) {
                    manager.store_failed(&error);
                    world.pass(manager, world.now_ms() + AGAIN_MS)?;
                    continue;
                }
                world.say(|| format!("putting back {switches:?}"));
                let end = deploy(world, manager, &plan, None)?;
                if let Deployed::Badly(why) = &end {
                    world.say(|| format!("not put back: {why}"));
                }
                if let (Deployed::Well | Deployed::Badly(_), Err(error)) = (&end, manager.put_back_ended(&switches)) {
                    manager.store_failed(&error);
                }
                world.count("switches put back");
                world.disturbed_ms = world.now_ms();
            }
        }
    }
    Ok(())
}

/// Attends to a plan until something else is due.
fn watch(world: &mut World, manager: &Manager, plan: &Arc<Plan>, is_over: &dyn Fn(&World) -> bool) -> Result<(), Died> {
    let goals: Vec<SwitchConfig> =
        plan.devices.iter().map(|intent| SwitchConfig::of_intent(&plan.topology, intent)).collect();
    let mut attendant = Attendant { tracker: None, again_ms: 0, started_ms: 0 };
    let (mut poll_ms, mut seen_ms) = (world.now_ms(), world.disturbed_ms);
    while !is_over(world) && matches!(manager.next_job(), Job::Watch(_)) {
        if world.now_ms() >= poll_ms {
            poll(world, manager, plan, &goals)?;
            let lately = world.now_ms() < world.disturbed_ms + LATELY_MS;
            poll_ms = world.now_ms() + if lately { POLL_MS } else { CALM_POLL_MS };
        }
        if manager.config().ladder.stored == Reaction::Act {
            attendant.step(world, manager, plan);
        }
        let since_ms = world.now_ms() - world.disturbed_ms;
        let glance_ms = match since_ms {
            0..JUST_NOW_MS => GLANCE_MS,
            JUST_NOW_MS..LATELY_MS => CALM_GLANCE_MS,
            _ => CALM_POLL_MS,
        };
        world.pass(manager, poll_ms.min(world.now_ms() + glance_ms).max(world.now_ms() + 1))?;
        if world.disturbed_ms > seen_ms {
            seen_ms = world.disturbed_ms;
            // By a trap, or when it is time.
            let within_ms = if world.rng.below(2) == 0 { 50 } else { world.rng.below(POLL_MS as usize) as u64 };
            poll_ms = poll_ms.min(world.now_ms() + within_ms);
        }
    }
    Ok(())
}

/// Polls all switches, during which something may happen, and proposes what follows.
fn poll(world: &mut World, manager: &Manager, plan: &Plan, goals: &[SwitchConfig]) -> Result<(), Died> {
    let topology = &plan.topology;
    let mut seen = Vec::new();
    for switch in topology.switch_ids() {
        seen.push(world.fabric.poll(topology, switch));
        world.pass(manager, world.now_ms() + 20)?;
    }
    let report =
        StatusReport { diagnoses: diagnose(plan, goals, &seen), ages: vec![None; seen.len()], links: Vec::new(), seen };
    if let Err(error) = manager.saw(plan, &report, Duration::ZERO) {
        manager.store_failed(&error);
    }
    if let Some(absent) = manager.absent() {
        let answers = |switch: &&String| {
            let id = world.fabric.topology.find_switch(switch);
            id.is_some_and(|id| world.fabric.answers(id))
        };
        manager.saw_absent(absent.switches.iter().filter(answers).cloned().collect());
    }
    if let Err(error) = manager.propose_around().and_then(|()| manager.forget_old()) {
        manager.store_failed(&error);
    }
    world.count("polls");
    Ok(())
}

/// Has hosts switch over.
struct Attendant<'a> {
    tracker: Option<Tracker<'a>>,
    /// When to begin again.
    again_ms: u64,
    started_ms: u64,
}

impl<'a> Attendant<'a> {
    fn step(&mut self, world: &mut World, manager: &Manager, plan: &'a Plan) {
        let topology = &plan.topology;
        let watch = &manager.config().watch;
        if self.tracker.is_none() {
            if world.now_ms() < self.again_ms {
                return;
            }
            self.again_ms = world.now_ms() + AGAIN_MS;
            let readings: Result<Vec<_>, _> =
                topology.switch_ids().map(|switch| world.fabric.read(topology, switch)).collect();
            let Ok(readings) = readings else { return };
            let Ok(mut standby) = Standby::new(plan, watch.hold_down(), DRAIN) else { return };
            let Ok(past) = manager.past_failures(Some(plan)) else { return };
            standby.remember(&past);
            match agreement(plan, readings) {
                Ok((mark, _)) => {
                    self.tracker = Some(Tracker::new(plan, mark, standby, Bonds::new(plan)));
                    self.started_ms = world.now_ms();
                }
                Err(why) => return world.say(|| format!("standby cannot begin: {why:?}")),
            }
        }
        let Some(tracker) = &mut self.tracker else { return };
        let mut order: Vec<SwitchId> = topology.switch_ids().collect();
        world.rng.shuffle(&mut order);
        for switch in order {
            let desired = tracker.desired(switch);
            let mut seen = world.fabric.glance(topology, switch);
            if let (Ok(glance), true) = (&seen, desired.turn > 0) {
                let edits = desired.edits(glance, &switch_model::Entries::new());
                if !edits.is_empty() {
                    seen = match world.fabric.edit(topology, switch, &edits) {
                        Ok(()) => world.fabric.glance(topology, switch),
                        Err(fault) => Err(fault),
                    };
                    world.count("PVIDs written by standby");
                }
            }
            let report = Report { switch, turn: desired.turn, seen };
            let now = Duration::from_millis(world.now_ms() - self.started_ms);
            let mut told = Vec::new();
            let mut is_kept = true;
            let taken = tracker.take(now, [report], &mut |event| {
                is_kept &= match &event {
                    StandbyEvent::Notice(notice) => manager.noticed(plan, notice).is_ok(),
                    StandbyEvent::Failure(link, in_a_row) => manager.link_failed(plan, *link, *in_a_row).is_ok(),
                    _ => true,
                };
                told.push(format!("{event:?}"));
            });
            if !is_kept {
                world.count("standby notices that were not kept");
            }
            told.into_iter().for_each(|event| world.say(|| event));
            if let Err(end) = taken {
                world.say(|| format!("standby ends: {end:?}"));
                self.tracker = None;
                self.again_ms = world.now_ms() + AGAIN_MS;
                return;
            }
        }
    }
}

fn bring(
    world: &mut World,
    manager: &Manager,
    target: &Target,
    (plan, since): (&Plan, Option<&Plan>),
) -> Result<Deployed, Died> {
    world.say(|| format!("deploying target {}, hitless: {}", target.number, since.is_some()));
    let end = deploy(world, manager, plan, since)?;
    if matches!(&end, Deployed::Badly(why) if why.contains(OTHER_CHANGE)) {
        return deploy(world, manager, plan, None);
    }
    Ok(end)
}

/// Cables that the plan uses and that are not there, as the survey before a deployment finds.
fn is_missing_a_cable(world: &World, plan: &Plan) -> bool {
    let topology = &plan.topology;
    let is_used = |port: PortId| {
        let switch = topology.port(port).switch;
        plan.devices[switch.index()].ports.iter().any(|intent| intent.port == port && intent.admin == Admin::Up)
    };
    topology.link_ids().any(|id| {
        let link = topology.link(id);
        let is_there = world.fabric.find_link(topology, id).is_some_and(|own| !world.fabric.is_cut(own));
        !is_there && is_used(link.a) && is_used(link.b)
    })
}

/// What `controller::deploy` does between the survey and the end.
fn deploy(world: &mut World, manager: &Manager, plan: &Plan, since: Option<&Plan>) -> Result<Deployed, Died> {
    let badly = |why: &str| Ok(Deployed::Badly(why.to_owned()));
    let store = manager.archive();
    let journal = match store.journal() {
        Ok(journal) => journal,
        Err(error) => return badly(&error.words()),
    };
    let none = BTreeMap::new();
    let request = request(plan, since, &none, if journal.is_some() { Start::Resume } else { Start::Fresh });
    let route = match Route::new(&request) {
        Ok(route) => route,
        Err(error) => return badly(&error.words()),
    };
    if journal.is_some_and(|journal| journal.backup.len() != route.goals.len()) {
        return match store.set_aside() {
            Ok(_) => deploy(world, manager, plan, None),
            Err(error) => badly(&error.words()),
        };
    }
    if is_missing_a_cable(world, plan) {
        return badly("a cable of the plan is not confirmed");
    }
    let mut order = match specification(&request, &route, store) {
        Ok(order) => order,
        Err(error) => return badly(&error.words()),
    };
    order.nonce = world.rng.next_u64() as u32;
    let cables = world.fabric.cables(&route.topology);
    order.watch = Some(Watch { cables, cables_max: request.cable_wait, floods_min: FLOODS_MIN });
    let mut deployment = Deployment::new(&route.topology, order);
    let token = CancellationToken::default();
    let mut ignore = |_: controller::DeployEvent<'_>| {};
    let mut judged = Judged { plan: &route.plan, topology: &route.topology, store, token: &token, events: &mut ignore };
    let started_ms = world.now_ms();
    let mut open: Vec<SwitchRequest> = Vec::new();
    let outcome = loop {
        deployment.handle_time(Duration::from_millis(world.now_ms() - started_ms));
        while let Some(request) = deployment.poll_request() {
            open.push(request);
        }
        while let Some(event) = deployment.poll_event() {
            world.say(|| format!("{event:?}"));
        }
        if open.is_empty() {
            break deployment.outcome().expect("a deployment that asks for nothing has ended").clone();
        }
        let at = world.rng.below(open.len());
        let asked = open.swap_remove(at);
        let takes_ms = match &asked {
            SwitchRequest::Pause(time) => time.as_millis() as u64,
            _ => 1 + world.rng.below(20) as u64,
        };
        world.perhaps_trouble(400);
        world.pass(manager, world.now_ms() + takes_ms)?;
        if manager.is_stopping() {
            deployment.handle_interrupt();
        }
        let reply = carry_out(world, &route, &mut judged, asked)?;
        deployment.handle_time(Duration::from_millis(world.now_ms() - started_ms));
        deployment.handle_reply(reply);
    };
    world.say(|| format!("outcome: {outcome:?}"));
    if let Err(error) = conclude(store, &deployment, &outcome) {
        return badly(&error.words());
    }
    let is_whole =
        matches!(&outcome, Outcome::Deployed { doubts, .. } if doubts.is_empty()) || outcome == Outcome::Unchanged;
    if is_whole && world.disturbed_ms < started_ms {
        assert!(holds(world, plan), "every switch holds the plan after {outcome:?}");
    }
    Ok(match outcome_words(&route.topology, &outcome) {
        Ok(()) => Deployed::Well,
        Err(_) if manager.is_stopping() => Deployed::Interrupted,
        Err(why) => Deployed::Badly(why),
    })
}

fn carry_out(
    world: &mut World,
    route: &Route,
    judged: &mut Judged<'_, '_>,
    asked: SwitchRequest,
) -> Result<Reply, Died> {
    let topology = &route.topology;
    Ok(match asked {
        SwitchRequest::Read { switch } => Reply::Read(switch, world.fabric.read(topology, switch)),
        SwitchRequest::Write { switch, before, after, mark, fence, .. } => {
            let midway = world.midway();
            if let Some((_, how)) = midway {
                world.say(|| format!("{how:?} in the middle of a write"));
                world.count("faults in the middle of a write");
            }
            let written = world.fabric.write((topology, switch), (&before, &after), (mark, fence), midway);
            let Some(written) = written else { return Err(Died { until_ms: world.now_ms() + 1_000 }) };
            Reply::Written(switch, written)
        }
        SwitchRequest::Save { switch, fence } => Reply::Saved(switch, world.fabric.save(topology, switch, fence)),
        SwitchRequest::Look { switch, .. } => Reply::Looked(switch, world.fabric.look(topology, switch)),
        SwitchRequest::Shut { switch, ports } => Reply::Shut(switch, world.fabric.shut(topology, switch, &ports)),
        SwitchRequest::Pause(_) => Reply::Paused,
        SwitchRequest::Judge { devices } => {
            let devices: Vec<SwitchConfig> = devices.iter().map(|device| (**device).clone()).collect();
            Reply::Judged(judged.judge(&devices))
        }
        SwitchRequest::Note(mark) => Reply::Recorded(judged.note(mark)),
        SwitchRequest::Record(journal) => Reply::Recorded(judged.record(&journal)),
    })
}

/// What every switch of a plan is to hold, by its name.
pub(crate) fn goals_by_name(plan: &Plan) -> BTreeMap<String, SwitchConfig> {
    let of = |switch: SwitchId| {
        let config = SwitchConfig::of_intent(&plan.topology, &plan.devices[switch.index()]);
        (plan.topology.switch(switch).name.clone(), config)
    };
    plan.topology.switch_ids().map(of).collect()
}

/// Whether every switch of a plan answers and holds it.
pub(crate) fn holds(world: &World, plan: &Plan) -> bool {
    let of = |(name, goal): (&String, &SwitchConfig)| {
        let switch = world.fabric.topology.find_switch(name).expect("plans name switches of the fabric");
        let running = align(&world.fabric.switches[switch.index()].running, &port_names(goal));
        world.fabric.answers(switch) && drift(&running, goal).is_empty()
    };
    goals_by_name(plan).iter().all(of)
}

fn port_names(config: &SwitchConfig) -> Vec<String> {
    config.ports.iter().map(|port| port.name.clone()).collect()
}

/// Switches of the fabric that a plan leaves out.
pub(crate) fn left_out(world: &World, plan: &Plan) -> BTreeSet<String> {
    let known = goals_by_name(plan);
    let all = world.fabric.topology.switches().iter().map(|switch| switch.name.clone());
    all.filter(|name| !known.contains_key(name)).collect()
}
