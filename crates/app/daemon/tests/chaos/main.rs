//! Days of virtual time with random faults: cables, switches, management networks, stores and clocks fail, some fabrics are managed over
//! their data ports, virtual machines move, traffic
//! shifts, people interfere, programs that hand tables to hosts fail halfway, and the daemon is killed at any moment, also in the middle
//! of a write. After every change no broadcast may go round or come to a switch twice, and a hitless change cuts no pair, whichever tables
//! hosts hold; once switches hold what was ordered, entries of bonds and of learned addresses lead to one port; targets follow each other;
//! what anybody was told is so; and once all faults are over, a person who follows what the daemon says has every switch as planned again,
//! and every frame reaches every address by entries.
//!
//! ```text
//!   World: faults, guests and people, by a seed ─▶ VirtualFabric ◀─ daemon: polls, standby, addresses, deployments, one step at a time
//!                                                     │                 Manager, Tracker, Addresses, Deployment, judge: the daemon's
//!                                                     └▶ frames ─▶ loops, entries: what must hold
//! ```
//! `ESPALIERD_CHAOS=N` lives through N days, `ESPALIERD_CHAOS=M..N` through those from M to N alone; the seed of a failure is printed, and `SEED=N` runs it alone and tells it.

mod attendant;
mod bonds;
mod daemon;
mod entries;
mod fabric;
mod flaky;
mod frames;
mod guests;
mod hosts;
mod keeper;
mod loops;
mod managed;
mod pairs;
mod people;
mod shapes;
mod tables;
mod traffic;
mod world;

use std::{
    collections::BTreeMap,
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use ::fabric::{Attachment, Plan, rng::Rng};
use espalierd::{
    archive::Archive,
    config::{AuthorApproval, Config},
    core::ladder::Reaction,
    documents::TargetState,
    manager::Manager,
};

use crate::{
    fabric::VirtualFabric,
    people::People,
    shapes::{Shape, Tags, shapes},
    world::{DAY_MS, Died, World},
};

const DAYS: u64 = 1000;
/// How often somebody looks after the day is over, and the time between.
const LOOKS_MAX: usize = 60;
const LOOK_MS: u64 = 60_000;
/// After that many virtual machines that have vanished are out of tables and of entries.
const SETTLING_MS: u64 = 3 * 3_600_000;
/// For how long a daemon that has started is to write nothing, if nothing happens.
const START_MS: u64 = 90_000;

/// What comes up within a hundred days.
const COMES_UP: [&str; 27] = [
    "deployments",
    "hitless deployments",
    "hitless deployments that cut no pair",
    "hitless deployments of hosts that tag",
    "states that all hosts got from the program",
    "programs for hosts that failed",
    "programs for hosts that ended with the daemon",
    "deployments that failed",
    "switches put back",
    "polls in which a switch answered by a return port",
    "PVIDs written by standby",
    "starts that wrote nothing",
    "cables of hosts cut",
    "bonds that changed to another port",
    "bonds moved by hand",
    "bonds seen to send from another port",
    "bonds seen where they are",
    "LAGs with a part of their cables",
    "virtual machines that appeared",
    "virtual machines that moved",
    "virtual machines that vanished",
    "learned addresses entered",
    "learned addresses moved",
    "learned addresses gone",
    "learned addresses beyond a cap",
    "learned addresses seen where they are",
    "proposals for the traffic",
];

#[test]
fn days_of_faults() {
    if let Ok(seed) = env::var("SEED") {
        let counts = day(seed.parse().expect("SEED is a number"), true);
        println!("{counts:?}");
        return;
    }
    let Range { start, end } = env::var("ESPALIERD_CHAOS").map_or(0..DAYS, |days| seeds(&days));
    let (next, failed) = (AtomicU64::new(start), Mutex::new(Vec::new()));
    let total = Mutex::new(BTreeMap::<&'static str, u64>::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= end {
                        return;
                    }
                    match catch_unwind(AssertUnwindSafe(|| day(seed, false))) {
                        Ok(counts) => {
                            let mut total = total.lock().expect("adding does not panic");
                            counts.into_iter().for_each(|(what, count)| *total.entry(what).or_default() += count);
                        }
                        Err(_) => failed.lock().expect("adding does not panic").push(seed),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nobody panicked with it");
    let total = total.into_inner().expect("nobody panicked with it");
    let days = end - start;
    println!("{days} days: {total:#?}");
    assert!(failed.is_empty(), "seeds that failed: {failed:?}; SEED=N cargo test -p espalierd --test chaos tells one");
    for what in COMES_UP {
        assert!(total.contains_key(what) || days < 100, "{what} did not come up");
    }
}

/// What `ESPALIERD_CHAOS` asks for.
fn seeds(words: &str) -> Range<u64> {
    let number = |word: &str| word.parse().expect("ESPALIERD_CHAOS is a number, or two: 1000..3000");
    words.split_once("..").map_or_else(|| 0..number(words), |(start, end)| number(start)..number(end))
}

fn day(seed: u64, verbose: bool) -> BTreeMap<&'static str, u64> {
    let mut rng = Rng::new(seed);
    let Shape { topology, plans, tags } = &shapes()[rng.below(shapes().len())];
    let mut config = Config::default();
    config.ladder.drift = if rng.below(2) == 0 { Reaction::Act } else { Reaction::Report };
    (config.store.keep_targets, config.store.keep_days) = (people::KEPT_TARGETS, 0);
    config.ladder.traffic = Reaction::Propose;
    // Now and then nobody has set the program up, and hosts get tables by hand.
    if *tags == Tags::Hosts && rng.below(5) > 0 {
        config.hosts_program = vec!["hand-out".to_owned()];
    }
    config.approval.needed = 1 + rng.below(2);
    if rng.below(4) == 0 {
        config.approval.author = AuthorApproval::Forbidden;
    }
    let people = People::new(Arc::clone(plans));
    let mut world = World::new(VirtualFabric::new(topology), people, rng, verbose);
    let archive = Archive::new(Arc::new(world.records.clone()));
    let mut is_first = true;
    let mut until_ms = 0;
    while world.now_ms() < DAY_MS {
        world.pass_without_daemon(until_ms);
        let opened = Manager::open(archive.clone(), config.clone(), world.clock());
        let Ok(manager) = opened else {
            // The store does not answer; systemd starts the daemon again.
            until_ms = world.now_ms() + 5_000;
            continue;
        };
        if is_first {
            is_first = false;
            world.people.propose(&manager, 0, "carol");
            for who in ["ada", "bob"] {
                world.people.approve(&manager, 1, who);
            }
        }
        let lived = quiet_start(&mut world, &manager, &archive)
            .and_then(|()| daemon::run(&mut world, &manager, &|world| world.now_ms() >= DAY_MS));
        match lived {
            Ok(()) => break,
            Err(died) => until_ms = died.until_ms,
        }
        drop(manager);
        world.count("daemons that ended");
        if archive.target().is_ok() {
            world.people.check(&archive);
        }
    }
    world.say(|| "the day is over".to_owned());
    world.heal();
    world.people.check(&archive);
    recover(&mut world, &archive, &config);
    world.people.check(&archive);
    world.counts
}

/// A daemon that starts and finds everything as planned writes nothing.
fn quiet_start(world: &mut World, manager: &Manager, archive: &Archive) -> Result<(), Died> {
    world.guests.speak(&mut world.fabric);
    let is_as_planned = || {
        let target = archive.target().ok().flatten().filter(|target| target.state == TargetState::Deployed)?;
        let plan = archive.plan(&target.plan).ok().flatten()?;
        let due = archive.due_back().ok()?;
        (due.is_empty() && daemon::holds(world, &plan)).then_some(())
    };
    let version = Some(world.fabric.version);
    let (has_bonds, has_guests) = (world.fabric.topology.has_standby_ports(), world.guests.have_hosts());
    let is_kept = (!has_bonds || world.stood_by_at == version) && (!has_guests || world.kept_at == version);
    let is_entered = || entries::missing(&world.fabric, &world.guests).is_none();
    let is_kept = is_kept && !entries::is_by_hand(&world.fabric);
    if is_as_planned().is_none() || !world.fabric.is_whole() || !is_kept || !is_entered() {
        return Ok(());
    }
    let (disturbed_ms, writes, until_ms) = (world.disturbed_ms, world.fabric.writes, world.now_ms() + START_MS);
    daemon::run(world, manager, &|world| world.now_ms() >= until_ms.min(DAY_MS) || world.disturbed_ms > disturbed_ms)?;
    if world.disturbed_ms == disturbed_ms {
        assert_eq!(world.fabric.writes, writes, "a daemon that was started again wrote to switches");
        world.count("starts that wrote nothing");
    }
    Ok(())
}

/// Somebody follows what the daemon says until nothing is wrong.
fn recover(world: &mut World, archive: &Archive, config: &Config) {
    let manager = Manager::open(archive.clone(), config.clone(), world.clock()).expect("the store works");
    for look in 0..LOOKS_MAX {
        let until_ms = world.now_ms() + LOOK_MS;
        let _ = daemon::run(world, &manager, &|world| world.now_ms() >= until_ms);
        let mut told = Vec::new();
        let is_well = world.people.attend(&manager, &mut |what| told.push(what));
        world.disturbed_ms = world.now_ms();
        for what in &told {
            world.say(|| what.clone());
        }
        if is_well {
            let Some((_, plan)) = held(archive) else { panic!("no plan is held") };
            let missing = daemon::left_out(world, &plan);
            assert!(missing.is_empty(), "the plan still leaves out {missing:?}");
            assert!(daemon::holds(world, &plan), "every switch holds the plan");
            assert!(connects(world), "hosts reach each other's switches");
            settle(world, &manager);
            return;
        }
        assert!(look + 1 < LOOKS_MAX, "something is still wrong after {LOOKS_MAX} min: {told:?}");
    }
}

/// Addresses that have vanished age, and those that are there are entered.
fn settle(world: &mut World, manager: &Manager) {
    let until_ms = world.now_ms() + SETTLING_MS;
    let _ = daemon::run(world, manager, &|world| world.now_ms() >= until_ms);
    world.guests.speak(&mut world.fabric);
    let missing = entries::missing(&world.fabric, &world.guests);
    assert!(missing.is_none(), "{}", missing.unwrap_or_default());
}

fn held(archive: &Archive) -> Option<(u64, Plan)> {
    let target = archive.target().expect("the store works")?;
    Some((target.number, archive.plan(&target.plan).expect("the store works")?))
}

/// Whether every port with a host carries.
fn connects(world: &World) -> bool {
    let topology = &world.fabric.topology;
    let is_host = |port: &::fabric::PortId| matches!(topology.port(*port).attachment, Attachment::Host(_));
    topology
        .switch_ids()
        .flat_map(|switch| topology.port_ids(switch))
        .filter(is_host)
        .all(|port| world.fabric.carries(port))
}
