//! What connections cost that have nothing to say, and what becomes of them when they have.

mod world;

use ri2n::{Health, Settings, StreamState, Time};
use std::{collections::BTreeMap, time::Duration};
use world::{App, Pipe, World};

/// Connections between two machines with two cables; each has said a little.
fn quiet_world(seed: u64, connections: usize) -> (World, Vec<usize>) {
    let mut world = World::new(seed);
    if connections > 1 {
        world.neighbours = Some(BTreeMap::new());
    }
    let mut pipes: Vec<(usize, usize)> = Vec::new();
    for pair in 0..connections {
        let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
        for link in 0..2 {
            match pipes.get(link).copied() {
                Some((there, back)) => {
                    world.routes.insert((world::ip(client, link), world::ip(server, link)), vec![there]);
                    world.routes.insert((world::ip(server, link), world::ip(client, link)), vec![back]);
                }
                None => pipes.push(world.join(client, server, link, &Pipe::gigabit())),
            }
        }
        let seeds = (2 * pair as u64, 2 * pair as u64 + 1);
        world.nodes[client].app = App { keeps_open: true, ..App::new(world.now, seeds, 1000, 9_000) };
        world.nodes[server].app = App { keeps_open: true, ..App::new(world.now, (seeds.1, seeds.0), 1000, 9_000) };
        world.listen(server);
        world.connect(client, server);
    }
    let pipes = pipes.into_iter().flat_map(|(there, back)| [there, back]).collect();
    (world, pipes)
}

fn run(world: &mut World, milliseconds: u64) {
    let until = world.after(milliseconds);
    world.run(until, |_| false);
}

/// Datagrams that leave within so many seconds.
fn datagrams(world: &mut World, seconds: u64) -> u64 {
    let passed = |world: &World| world.pipes.iter().map(|pipe| pipe.passed + pipe.dropped).sum::<u64>();
    let before = passed(world);
    run(world, seconds * 1000);
    passed(world) - before
}

fn pull(world: &mut World, pipes: &[usize], at: Time, is_up: bool) {
    for pipe in pipes {
        world.at(at, *pipe, Pipe { is_up, ..Pipe::gigabit() });
    }
}

/// Has a connection write more, and returns how long its peer waits for all of it.
fn delay(world: &mut World, pair: usize) -> Duration {
    let began = world.now;
    world.nodes[2 * pair].app.to_write += 5000;
    let wanted = world.nodes[2 * pair].app.to_write;
    world.look_soon(2 * pair);
    let until = world.after(5000);
    assert!(world.run(until, |world| world.nodes[2 * pair + 1].app.read == wanted), "nothing arrived");
    world.now.since(began)
}

fn unhealthy(world: &World) -> usize {
    let links = world.nodes.iter().flat_map(|node| node.connection.as_ref().expect("connected").links());
    links.filter(|link| link.health != Health::Good).count()
}

#[test]
fn the_longer_a_connection_is_idle_the_less_it_asks() {
    let (mut world, pipes) = quiet_world(1, 1);
    run(&mut world, 500);
    let counts = [1, 10, 100, 1000].map(|seconds| datagrams(&mut world, seconds) / seconds);
    assert!(counts[0] <= 90 && counts[1] <= 25 && counts[2] <= 3 && counts[3] <= 1, "{counts:?} a second");
    // A cable that is pulled meanwhile costs the next message no more than one that is pulled under load.
    let now = world.now;
    pull(&mut world, &pipes[..2], now, false);
    let late = delay(&mut world, 0);
    assert!(late < Duration::from_millis(50), "{late:?}");
    let now = world.now;
    pull(&mut world, &pipes[2..], now, false);
    let without_any = datagrams(&mut world, 100) / 100;
    assert!(without_any <= 10, "{without_any} datagrams a second into dead cables");
    let now = world.now;
    pull(&mut world, &pipes, now, true);
    let late = delay(&mut world, 0);
    assert!(late < Duration::from_millis(50), "{late:?} after an outage of everything");
}

#[test]
fn a_crowd_asks_hardly_more_often_than_one() {
    let (mut world, pipes) = quiet_world(2, 100);
    run(&mut world, 3000);
    assert_eq!(unhealthy(&world), 0);
    let count = datagrams(&mut world, 20);
    assert!(count <= 20 * 60, "{count} datagrams in 20 s");
    // One of them finds out that a cable is dead, and it and all others that it is back.
    let now = world.now;
    pull(&mut world, &pipes[..2], now, false);
    for pair in 0..100 {
        let late = delay(&mut world, pair);
        assert!(late < Duration::from_millis(60), "pair {pair}: {late:?}");
    }
    let dead = datagrams(&mut world, 2) / 2;
    assert!(dead <= 6000, "{dead} datagrams a second with one cable dead");
    let now = world.now;
    pull(&mut world, &pipes[..2], now, true);
    run(&mut world, 5000);
    assert_eq!(unhealthy(&world), 0);
}

#[test]
fn a_connection_that_is_over_asks_nothing() {
    let (mut world, _) = quiet_world(5, 1);
    world.nodes.iter_mut().for_each(|node| node.app.keeps_open = false);
    run(&mut world, 1_000);
    let states: Vec<_> = world.nodes.iter().map(|node| node.connection.as_ref().unwrap().state()).collect();
    assert_eq!(states, [StreamState::Finished; 2]);
    assert_eq!(datagrams(&mut world, 60), 0);
}
