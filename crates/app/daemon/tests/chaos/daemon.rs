//! The daemon's work in virtual time: what `espalierd::work` does with threads, done step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller::{
    CancellationToken, Expected, Judged, Route, Start, StatusReport, Store as _, conclude, specification,
};
use espalierd::{
    core::ladder::Reaction,
    documents::{Cause, Target},
    manager::{Deployed, Job, Manager},
    outcome::outcome_words,
    work::{AGAIN, request},
};
use fabric::{Admin, HostId, Mac, Plan, PortId, SwitchId};
use rollout::{
    addresses::with_learned,
    bonds::bond_addresses,
    deploy::{Deployment, Event, Outcome, Reply, Surroundings as _, SwitchRequest, Watch},
};
use switch_model::{SwitchConfig, align, observe::drift};

use crate::{
    attendant::Attendant,
    hosts,
    keeper::{Keeper, ROUND_MS},
    pairs, traffic,
    world::{Died, World},
};

pub(crate) const AGAIN_MS: u64 = AGAIN.as_millis() as u64;
/// Between two polls while something has happened lately, and at other times, when nothing comes of them.
const POLL_MS: u64 = 30_000;
const CALM_POLL_MS: u64 = 1_800_000;
const LATELY_MS: u64 = 45_000;
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
                    Deployed::Well => {
                        world.count("deployments");
                        if is_for_traffic(manager, &target) {
                            world.count("deployments of plans for the traffic");
                        }
                        if since.is_some() {
                            world.count("hitless deployments");
                        }
                    }
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

fn is_for_traffic(manager: &Manager, target: &Target) -> bool {
    let proposal = manager.archive().proposal(target.proposal).ok().flatten();
    proposal.is_some_and(|proposal| proposal.cause == Cause::Traffic)
}

/// Attends to a plan until something else is due.
fn watch(world: &mut World, manager: &Manager, plan: &Arc<Plan>, is_over: &dyn Fn(&World) -> bool) -> Result<(), Died> {
    let known = known_addresses(manager, plan);
    let with = with_learned(plan, &known);
    let mut expected = Expected::new(&with, &known);
    let mut attendant = Attendant::new(plan);
    let mut keeper = Keeper::new(world, manager, plan);
    let (mut poll_ms, mut seen_ms) = (world.now_ms(), world.disturbed_ms);
    while !is_over(world) && matches!(manager.next_job(), Job::Watch(_)) {
        if world.now_ms() >= poll_ms {
            poll(world, manager, plan, &mut expected)?;
            let lately = world.now_ms() < world.disturbed_ms + LATELY_MS;
            poll_ms = world.now_ms() + if lately { POLL_MS } else { CALM_POLL_MS };
        }
        if manager.config().ladder.stored == Reaction::Act {
            attendant.step(world, manager);
        }
        if let Some(keeper) = &mut keeper {
            keeper.step(world, manager);
        }
        let since_ms = world.now_ms() - world.disturbed_ms;
        let glance_ms = match since_ms {
            0..JUST_NOW_MS => GLANCE_MS,
            JUST_NOW_MS..LATELY_MS => CALM_GLANCE_MS,
            _ if attendant.watches(world) => CALM_GLANCE_MS,
            _ => CALM_POLL_MS,
        };
        let keeper_ms = keeper.as_ref().map_or(poll_ms, |keeper| keeper.due_ms);
        let until_ms = poll_ms.min(keeper_ms).min(world.now_ms() + glance_ms).max(world.now_ms() + 1);
        world.pass_until_something(manager, until_ms)?;
        if world.disturbed_ms > seen_ms {
            seen_ms = world.disturbed_ms;
            // By a trap, or when it is time.
            let within_ms = if world.rng.below(2) == 0 { 50 } else { world.rng.below(POLL_MS as usize) as u64 };
            poll_ms = poll_ms.min(world.now_ms() + within_ms);
            if let Some(keeper) = &mut keeper {
                keeper.due_ms = keeper.due_ms.min(world.now_ms() + ROUND_MS);
            }
        }
    }
    Ok(())
}

fn known_addresses(manager: &Manager, plan: &Plan) -> BTreeMap<Mac, HostId> {
    manager.archive().addresses(plan).unwrap_or_default()
}

/// Polls all switches, during which something may happen, and proposes what follows.
fn poll(world: &mut World, manager: &Manager, plan: &Plan, expected: &mut Expected<'_>) -> Result<(), Died> {
    let topology = &plan.topology;
    let began = Duration::from_millis(world.now_ms());
    let mut seen = Vec::new();
    for switch in topology.switch_ids() {
        seen.push(world.fabric.poll(topology, switch));
        world.pass(manager, world.now_ms() + 20)?;
    }
    expected.follow(Duration::from_millis(world.now_ms()), Some(began), plan, &known_addresses(manager, plan));
    let diagnoses = expected.diagnose(&mut seen);
    let (ages, links) = (vec![None; seen.len()], traffic::loads(&world.fabric, topology, &world.demands));
    let report = StatusReport { diagnoses, ages, links, seen };
    if let Err(error) = manager.saw(expected.plan(), &report, Duration::ZERO) {
        manager.store_failed(&error);
    }
    if let Some(absent) = manager.absent() {
        let answers = |switch: &&String| {
            let id = world.fabric.topology.find_switch(switch);
            id.is_some_and(|id| world.fabric.answers(id))
        };
        let answering: BTreeSet<String> = absent.switches.iter().filter(answers).cloned().collect();
        if topology.in_band().is_some() && !answering.is_empty() {
            world.count("polls in which a switch answered by a return port");
        }
        manager.saw_absent(answering);
    }
    let proposed = manager.propose_around().and_then(|()| manager.propose_for_traffic());
    if let Err(error) = proposed.and_then(|()| manager.forget_old()) {
        manager.store_failed(&error);
    }
    if !world.demands.is_empty() {
        let all = manager.archive().proposals().unwrap_or_default();
        let for_traffic = all.iter().filter(|proposal| proposal.cause == Cause::Traffic).map(|proposal| proposal.id);
        world.count_proposals_for_traffic(for_traffic.max().unwrap_or(0));
    }
    world.count("polls");
    Ok(())
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
    let resumes = journal.is_some();
    let learned = known_addresses(manager, since.unwrap_or(plan));
    let program = manager.config().hosts_program.clone();
    let request = request(plan, since, &program, &learned, if resumes { Start::Resume } else { Start::Fresh });
    let route = match Route::new(&request) {
        Ok(route) => route,
        Err(error) => return badly(&error.words()),
    };
    if journal.as_ref().is_some_and(|journal| journal.backup.len() != route.goals.len()) {
        return match store.set_aside() {
            Ok(_) => deploy(world, manager, plan, None),
            Err(error) => badly(&error.words()),
        };
    }
    if is_missing_a_cable(world, plan) {
        return badly("a cable of the plan is not confirmed");
    }
    let held = |switch: SwitchId| Some(world.fabric.read(&route.topology, switch).ok()?.config);
    let now: Vec<_> = route.topology.switch_ids().map(held).collect();
    let before = match &journal {
        Some(journal) => journal.backup.iter().map(|backup| Some((**backup).clone())).collect(),
        None => now.clone(),
    };
    let route = match route.begun_from(&request, &before, Some(&now[..]).filter(|_| resumes)) {
        Ok(route) => route,
        Err(error) => return badly(&error.words()),
    };
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
    let mut judged = Judged {
        plan: &route.plan,
        topology: &route.topology,
        hosts: (&route.hosts[..], &[]),
        store,
        token: &token,
        events: &mut ignore,
    };
    let started_ms = world.now_ms();
    world.fabric.kept = since.map(|old| pairs::through(&world.fabric, [old, plan])).unwrap_or_default();
    let mut open: Vec<SwitchRequest> = Vec::new();
    let mut goes_back = false;
    let outcome = loop {
        deployment.handle_time(Duration::from_millis(world.now_ms() - started_ms));
        while let Some(request) = deployment.poll_request() {
            open.push(request);
        }
        while let Some(event) = deployment.poll_event() {
            world.say(|| format!("{event:?}"));
            // It goes back to where pairs may not have got through that do now, or without a switch that is in the middle.
            goes_back |= matches!(event, Event::Turned(_));
            if goes_back && (resumes || matches!(event, Event::Failed(..))) {
                world.fabric.kept.clear();
            }
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
        let reply = carry_out((world, manager), &route, &mut judged, asked)?;
        deployment.handle_time(Duration::from_millis(world.now_ms() - started_ms));
        deployment.handle_reply(reply);
    };
    world.say(|| format!("outcome: {outcome:?}"));
    let cut_none = !std::mem::take(&mut world.fabric.kept).is_empty();
    if let Err(error) = conclude(store, &deployment, &outcome) {
        return badly(&error.words());
    }
    let is_whole =
        matches!(&outcome, Outcome::Deployed { doubts, .. } if doubts.is_empty()) || outcome == Outcome::Unchanged;
    if is_whole && world.disturbed_ms < started_ms {
        assert!(holds(world, plan), "every switch holds the plan after {outcome:?}");
        world.fabric.set_as_planned(&plan.topology);
    }
    Ok(match outcome_words(&route.topology, &outcome) {
        Ok(()) => {
            count_well(world, &route, cut_none);
            if since.is_none() {
                hosts::hand_out_by_hand(world, plan);
            }
            Deployed::Well
        }
        Err(_) if manager.is_stopping() => Deployed::Interrupted,
        Err(why) => Deployed::Badly(why),
    })
}

fn count_well(world: &mut World, route: &Route, cut_none: bool) {
    if cut_none {
        world.count("hitless deployments that cut no pair");
    }
    if !route.hosts.is_empty() {
        world.count("hitless deployments of hosts that tag");
    }
}

fn carry_out(
    (world, manager): (&mut World, &Manager),
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
        SwitchRequest::Hosts(state) => Reply::Hosts(hosts::hand_out(world, manager, &route.hosts[state])?),
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

/// Whether every switch of a plan answers and holds it, but for entries of addresses that are learned or of bonds: see
/// [`crate::entries`].
pub(crate) fn holds(world: &World, plan: &Plan) -> bool {
    let (owners, of_bonds) = (plan.topology.all_owners(), bond_addresses(&plan.topology));
    let is_fixed = |mac: &Mac| owners.contains_key(mac) && !of_bonds.contains(mac);
    let of = |(name, mut goal): (String, SwitchConfig)| {
        let switch = world.fabric.topology.find_switch(&name).expect("plans name switches of the fabric");
        let mut running = align(&world.fabric.switches[switch.index()].running, &port_names(&goal));
        [&mut running, &mut goal].into_iter().for_each(|config| config.entries.retain(|(_, mac), _| is_fixed(mac)));
        world.fabric.answers(switch) && drift(&running, &goal).is_empty()
    };
    goals_by_name(plan).into_iter().all(of)
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
