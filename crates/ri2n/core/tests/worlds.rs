//! Ten thousand worlds, each from a seed: loss, copies, reordering, corruption, delay, flapping links, path MTU
//! changes, busy processors, restarts, backup links. Whatever happens, no byte is lost, doubled or altered, and once
//! the faults end the streams finish.
//!
//! `RI2N_WORLDS=N` runs another number, `RI2N_SEED=S` one world alone.

mod world;

use ri2n::{Carrier, CloseReason, Settings, StreamState, Time};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use world::{App, Chance, OwnQueue, Pipe, Sharing, World};

/// Faults end after this long.
const FAULTS_MS: u64 = 3_000;
/// And the streams are done this long after.
const PATIENCE_MS: u64 = 30_000;

#[test]
fn no_byte_is_lost_doubled_or_altered() {
    if let Some(seed) = number("RI2N_SEED") {
        run_world(seed);
        return;
    }
    let worlds = number("RI2N_WORLDS").unwrap_or(10_000);
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut failures = Vec::new();
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= worlds || failures.len() > 3 {
                            return failures;
                        }
                        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| run_world(seed))) {
                            let text = cause
                                .downcast_ref::<String>()
                                .cloned()
                                .or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                            failures.push(format!("RI2N_SEED={seed}: {}", text.unwrap_or_default()));
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("workers catch panics")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// A pipe with faults drawn by chance.
fn faulty(chance: &mut Chance, healthy: &Pipe) -> Pipe {
    let mut pipe = healthy.clone();
    match chance.below(9) {
        0 => pipe.loss = chance.between(1, 100) as f64 / 100.0,
        1 => pipe.copies = chance.between(1, 50) as f64 / 100.0,
        2 => {
            pipe.reordering = chance.between(1, 60) as f64 / 100.0;
            pipe.reordering_delay = Duration::from_micros(chance.between(50, 20_000));
        }
        3 => pipe.corruption = chance.between(1, 30) as f64 / 100.0,
        4 => pipe.delay = Duration::from_micros(chance.between(1, 300_000)),
        5 => pipe.is_up = false,
        6 => pipe.largest = chance.between(1232, 1471) as usize,
        7 => pipe.rate /= chance.between(2, 100) as f64,
        _ => pipe.buffer = chance.between(4_000, 50_000) as f64,
    }
    pipe
}

fn run_world(seed: u64) {
    run_world_with(seed, |_| {});
}

/// Runs a world to which `prepare` has done something before it begins, and returns what is left of it.
fn run_world_with(seed: u64, prepare: impl FnOnce(&mut World)) -> World {
    let mut chance = Chance::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xe5);
    let mut world = World::new(chance.next());
    world = match chance.below(4) {
        0 | 1 => world.with_checksum(),
        2 => world.with_key(),
        _ => world.with_encryption(),
    };
    prepare(&mut world);
    let links = chance.between(1, 4) as usize;
    let restarts = chance.happens(0.1);
    let settings = |chance: &mut Chance| Settings {
        send_buffer: 64 << (10 + chance.below(3)),
        receive_buffer: 64 << (10 + chance.below(3)),
        outage_deadline: Duration::from_secs(if restarts { 2 } else { 3600 }),
    };
    let (ours, theirs) = (settings(&mut chance), settings(&mut chance));
    let has_backups = chance.happens(0.3);
    world.own_queue = chance.happens(0.3).then_some(OwnQueue::Tells);
    let (client, server) = (world.add_node(links, ours), world.add_node(links, theirs));
    let start = world.now;
    let ends = world.after(FAULTS_MS);
    for link in 0..links {
        let mut healthy = Pipe::gigabit();
        healthy.rate = [1.25e6, 12.5e6, 125e6, 1.25e9][chance.below(4) as usize];
        healthy.delay = Duration::from_micros(chance.between(5, 2_000));
        healthy.buffer = healthy.buffer.min(healthy.rate / 20.0).max(20e3);
        let (there, back) = world.join(client, server, link, &healthy);
        for _ in 0..chance.below(5) {
            let at = start + Duration::from_millis(chance.below(FAULTS_MS));
            let until = (at + Duration::from_millis(chance.between(1, 1500))).min(ends);
            let pipes = match chance.below(3) {
                0 => vec![there],
                1 => vec![back],
                _ => vec![there, back],
            };
            let fault = faulty(&mut chance, &healthy);
            for pipe in pipes {
                world.at(at, pipe, fault.clone());
                world.at(until, pipe, healthy.clone());
            }
            if !fault.is_up && chance.happens(0.3) {
                world.carrier_at(at, client, link as u8, Carrier::Down);
                world.carrier_at(until, client, link as u8, Carrier::Up);
            }
        }
        if has_backups && chance.happens(0.5) {
            world.set_priority(link, chance.below(3) as u8);
        }
        // Whatever overlapped, all is well in the end.
        world.at(ends, there, healthy.clone());
        world.at(ends, back, healthy);
    }
    let amount = |chance: &mut Chance| match chance.below(4) {
        0 => chance.below(3_000),
        1 => chance.below(60_000),
        _ => chance.below(400_000),
    };
    let seeds = (chance.next(), chance.next());
    let chunks = (chance.between(1, 40_000) as usize, chance.between(1, 40_000) as usize);
    let amounts = (amount(&mut chance), amount(&mut chance));
    world.nodes[client].app = App::new(start, seeds, amounts.0, chunks.0);
    world.nodes[server].app = App::new(start, (seeds.1, seeds.0), amounts.1, chunks.1);
    if seed % 2 == 1 {
        // Of some, one or two bytes more than OPEN carries.
        world.nodes[client].app.first = 1 + seed / 2 % 56;
    }
    if chance.happens(0.3) {
        world.nodes[server].app.reads_from = start + Duration::from_millis(chance.below(2_000));
    }
    world.listen(server);
    world.connect(client, server);
    for node in [client, server] {
        match chance.below(8) {
            0 => world.share(node, Sharing::Naps { awake_us: (1, 20_000), asleep_us: (100, 60_000) }),
            1 => world.share(node, Sharing::LateWakes { most_us: 5_000 }),
            _ => {}
        }
    }
    if restarts {
        run_restart(&mut world, &mut chance, (client, server), seeds, amounts);
    } else {
        finish(&mut world, (client, server), amounts);
    }
    world
}

fn finish(world: &mut World, (client, server): (usize, usize), amounts: (u64, u64)) {
    let until = world.after(FAULTS_MS + PATIENCE_MS);
    let done = world.run(until, |world| {
        [client, server].iter().all(|node| {
            let node = &world.nodes[*node];
            node.app.finished_reading && node.connection.as_ref().is_some_and(|c| c.is_flushed())
        })
    });
    assert!(
        done,
        "not done: {:?} {:?}\n{:#?}",
        world.nodes[client].app,
        world.nodes[server].app,
        world
            .nodes
            .iter()
            .map(|node| node.connection.as_ref().map(|c| (c.progress(), c.state(), c.links())))
            .collect::<Vec<_>>()
    );
    assert_eq!((world.nodes[server].app.read, world.nodes[client].app.read), amounts, "bytes lost or doubled");
    for node in &world.nodes {
        let state = node.connection.as_ref().map(|connection| connection.state());
        assert_eq!(state, Some(StreamState::Finished));
    }
}

/// One end forgets everything. The other reads nothing but a prefix and ends by its deadline; a new connection works.
fn run_restart(
    world: &mut World,
    chance: &mut Chance,
    (client, server): (usize, usize),
    seeds: (u64, u64),
    amounts: (u64, u64),
) {
    let victim = if chance.happens(0.5) { client } else { server };
    let other = client + server - victim;
    for node in [client, server] {
        world.nodes[node].app.keeps_open = true;
        world.nodes[node].settings.outage_deadline = Duration::from_secs(2);
    }
    let crash = world.after(chance.between(1, 2_000));
    world.crash_at(crash, victim);
    let until = world.after(FAULTS_MS + 10_000);
    world.run(until, |_| false);
    assert!(world.nodes[other].app.read <= if other == client { amounts.1 } else { amounts.0 });
    // A client that had not begun when the server crashed connects to the server's second life.
    let survivor = world.nodes[other].connection.as_ref();
    if let Some(connection) = survivor.filter(|_| world.nodes[victim].connection.is_none()) {
        assert_eq!(connection.state(), StreamState::Closed(CloseReason::Outage), "the survivor noticed");
    }
    for (node, seeds, amount) in [(client, seeds, amounts.0), (server, (seeds.1, seeds.0), amounts.1)] {
        world.nodes[node].connection = None;
        world.nodes[node].app = App::new(world.now, seeds, amount, 5_000);
    }
    world.listen(server);
    world.connect(client, server);
    finish(world, (client, server), amounts);
}

/// In this world a bit of the server's token changes in an ACCEPT that no key guards.
#[test]
fn both_ends_of_an_altered_acceptance_have_the_same_token() {
    run_world(17_006);
}

/// Without faults nothing stalls: no pause is longer than a few round trips and the wire's own time.
#[test]
fn healthy_links_never_pause() {
    for seed in 0..60 {
        let mut chance = Chance::new(seed);
        let mut world = World::new(seed);
        let links = chance.between(1, 4) as usize;
        let settings = Settings { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..Settings::default() };
        let (client, server) = (world.add_node(links, settings.clone()), world.add_node(links, settings));
        for link in 0..links {
            let pipe = Pipe { delay: Duration::from_micros(chance.between(5, 500)), ..Pipe::gigabit() };
            world.join(client, server, link, &pipe);
        }
        let amount = 8_000_000;
        world.nodes[client].app = App::new(world.now, (1, 2), amount, chance.between(100, 300_000) as usize);
        world.nodes[server].app = App::new(world.now, (2, 1), 0, chance.between(100, 300_000) as usize);
        world.listen(server);
        world.connect(client, server);
        let began = world.now;
        finish(&mut world, (client, server), (amount, 0));
        let app = &world.nodes[server].app;
        let took = world.now.since(began).as_secs_f64();
        assert!(app.longest_pause < Duration::from_millis(9), "seed {seed}: a pause of {:?}", app.longest_pause);
        let least = amount as f64 / (125e6 * links as f64);
        assert!(took < least * 1.25 + 0.02, "seed {seed}: {took:.4} s for what takes {least:.4} s on {links} links");
    }
}

/// Ends that are written down and read back at one act in twenty send the same datagrams at the same times as ends that are not.
#[test]
fn what_is_handed_over_goes_on_as_if_nothing_had_happened() {
    for seed in 0..400 {
        let datagrams = |handovers: Option<Chance>| {
            let world = run_world_with(seed, |world| {
                world.handovers = handovers;
                world.recorded = Some(Vec::new());
            });
            let bytes: Vec<Vec<u8>> = world.recorded.into_iter().flatten().map(|datagram| datagram.bytes).collect();
            (bytes, world.now)
        };
        let (undisturbed, handed_over) = (datagrams(None), datagrams(Some(Chance::new(seed))));
        assert_eq!(undisturbed.0.len(), handed_over.0.len(), "seed {seed}");
        assert!(undisturbed == handed_over, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    let run = |seed| {
        let mut world = World::new(seed).with_checksum();
        let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
        for link in 0..2 {
            world.join(client, server, link, &Pipe { loss: 0.1, copies: 0.1, ..Pipe::gigabit() });
        }
        world.nodes[client].app = App::new(world.now, (1, 2), 300_000, 9_000);
        world.nodes[server].app = App::new(world.now, (2, 1), 0, 9_000);
        world.recorded = Some(Vec::new());
        world.listen(server);
        world.connect(client, server);
        finish(&mut world, (client, server), (300_000, 0));
        let bytes: Vec<Vec<u8>> = world.recorded.unwrap().into_iter().map(|datagram| datagram.bytes).collect();
        (bytes, world.now)
    };
    let (first, again): ((Vec<Vec<u8>>, Time), _) = (run(5), run(5));
    assert!(first == again && first.0 != run(6).0);
}
