//! Links between the same two addresses, which a network with several paths carries apart by their source ports.

mod world;

use ri2n::{Health, Settings};
use std::time::Duration;
use world::{App, Pipe, World, ip};

/// A cable of 100 Mbit/s behind a switch's buffer of 128 KiB.
fn cable() -> Pipe {
    Pipe { rate: 12.5e6, buffer: 128e3, delay: Duration::from_micros(50), ..Pipe::gigabit() }
}

/// A pair of nodes with an address each, whose client has links by all these pipes, one each way for a path.
fn pair(world: &mut World, paths: &[(Vec<usize>, Vec<usize>)]) -> (usize, usize) {
    let (client, server) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
    world.nodes[client].paths = paths.len() as u8;
    let ends = (ip(client, 0), ip(server, 0));
    world.routes.insert(ends, paths[0].0.clone());
    world.routes.insert((ends.1, ends.0), paths[0].1.clone());
    for (entropy, (there, back)) in (1..).zip(&paths[1..]) {
        world.routes_by_entropy.insert((ends.0, ends.1, entropy), there.clone());
        world.routes_by_entropy.insert((ends.1, ends.0, entropy), back.clone());
    }
    let seed = client as u64;
    world.nodes[client].app = App::new(world.now, (seed, seed + 1), 1 << 40, 60_000);
    world.nodes[server].app = App::new(world.now, (seed + 1, seed), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    (client, server)
}

/// Goodput of nodes over some time, in bytes a second.
fn rates(world: &mut World, nodes: &[usize], milliseconds: u64) -> Vec<f64> {
    let before: Vec<u64> = nodes.iter().map(|node| world.nodes[*node].app.read).collect();
    let until = world.after(milliseconds);
    world.run(until, |_| false);
    let seconds = milliseconds as f64 / 1e3;
    nodes.iter().zip(before).map(|(node, before)| (world.nodes[*node].app.read - before) as f64 / seconds).collect()
}

fn both_ways(world: &mut World, pipe: &Pipe) -> (Vec<usize>, Vec<usize>) {
    (vec![world.add_pipe(pipe.clone())], vec![world.add_pipe(pipe.clone())])
}

#[test]
fn four_paths_of_one_pair_of_addresses_carry_what_they_can_either_way() {
    for client_writes in [true, false] {
        let mut world = World::new(1);
        let paths: Vec<_> = (0..4).map(|_| both_ways(&mut world, &cable())).collect();
        let (client, server) = pair(&mut world, &paths);
        if !client_writes {
            let [seed, other] = [client, server].map(|node| world.nodes[node].app.seed);
            world.nodes[client].app = App::new(world.now, (seed, other), 0, 60_000);
            world.nodes[server].app = App::new(world.now, (other, seed), 1 << 40, 60_000);
        }
        rates(&mut world, &[], 500);
        let rate = rates(&mut world, &[if client_writes { server } else { client }], 2000);
        assert!(rate[0] > 0.88 * 4.0 * 12.5e6, "{rate:?}, the client writes: {client_writes}");
        for node in [client, server] {
            let links = world.nodes[node].connection.as_ref().unwrap().links();
            let known: Vec<(u8, u16)> = links.iter().map(|link| (link.path.entropy, link.path.remote.port())).collect();
            assert_eq!(known, (0..4).map(|entropy| (entropy, world::PORT)).collect::<Vec<_>>());
            let writes = client_writes == (node == client);
            let used = links.iter().filter(|link| link.health == Health::Good).count();
            assert_eq!(used, if writes { 4 } else { 1 }, "who only acknowledges uses one: {links:#?}");
        }
    }
}

#[test]
fn a_path_that_falls_silent_is_left_and_comes_back() {
    let mut world = World::new(2);
    let paths: Vec<_> = (0..3).map(|_| both_ways(&mut world, &cable())).collect();
    let (_, server) = pair(&mut world, &paths);
    rates(&mut world, &[], 500);
    let dead = Pipe { is_up: false, ..cable() };
    for pipe in [paths[1].0[0], paths[1].1[0]] {
        world.at(world.now, pipe, dead.clone());
        let healed = world.after(2000);
        world.at(healed, pipe, cable());
    }
    world.nodes[server].app.longest_pause = Duration::ZERO;
    let without = rates(&mut world, &[server], 1500);
    assert!(without[0] > 0.85 * 2.0 * 12.5e6, "{without:?}");
    assert!(
        world.nodes[server].app.longest_pause < Duration::from_millis(50),
        "{:?}",
        world.nodes[server].app.longest_pause
    );
    rates(&mut world, &[], 1500);
    let again = rates(&mut world, &[server], 1000);
    assert!(again[0] > 0.88 * 3.0 * 12.5e6, "{again:?}");
}

#[test]
fn load_moves_away_from_a_path_that_another_needs() {
    let mut world = World::new(3);
    let paths: Vec<_> = (0..4).map(|_| both_ways(&mut world, &cable())).collect();
    let (_, several) = pair(&mut world, &paths);
    let (_, single) = pair(&mut world, &paths[..1]);
    rates(&mut world, &[], 1000);
    let each = rates(&mut world, &[several, single], 4000);
    println!("four paths {:.2}, one of them {:.2} of a cable", each[0] / 12.5e6, each[1] / 12.5e6);
    assert!(each[0] + each[1] > 0.88 * 4.0 * 12.5e6, "{each:?}");
    assert!(each[1] > 0.4 * 12.5e6, "{each:?}");
}

/// Sixteen streams whose paths all lead through one cable: every second one has eight paths, the others have `others`. Returns the share
/// of the cable that the former take, and Jain's index of all.
fn shares_of_one_cable(others: usize) -> (f64, f64) {
    let mut world = World::new(4);
    let one = both_ways(&mut world, &Pipe { rate: 125e6, buffer: 512e3, ..cable() });
    let nodes: Vec<usize> =
        (0..16).map(|at| pair(&mut world, &vec![one.clone(); if at % 2 == 0 { 8 } else { others }]).1).collect();
    rates(&mut world, &[], 1000);
    let each = rates(&mut world, &nodes, 1500);
    let sum: f64 = each.iter().sum();
    let several: f64 = each.iter().step_by(2).sum();
    let jain = sum * sum / (each.len() as f64 * each.iter().map(|rate| rate * rate).sum::<f64>());
    println!("streams with eight paths take {:.2} of the cable; Jain {jain:.3}; {each:.0?}", several / sum);
    assert!(sum > 0.9 * 125e6, "{each:?}");
    (several / sum, jain)
}

#[test]
fn streams_of_many_paths_share_a_cable_evenly() {
    let (_, jain) = shares_of_one_cable(8);
    assert!(jain > 0.9, "{jain:.3}");
}

#[test]
fn eight_paths_through_one_cable_take_one_share() {
    let (several, jain) = shares_of_one_cable(1);
    assert!(
        several < 0.6 && jain > 0.9,
        "as many streams with one path are left {:.2} of the cable, {jain:.3}",
        1.0 - several
    );
}

#[test]
fn paths_that_nothing_needs_are_not_asked_after() {
    let passed = |world: &World| world.pipes.iter().map(|pipe| pipe.passed).collect::<Vec<u64>>();
    let mut world = World::new(5);
    let paths: Vec<_> = (0..8).map(|_| both_ways(&mut world, &cable())).collect();
    let (client, server) = pair(&mut world, &paths);
    for node in [client, server] {
        world.nodes[node].app.keeps_open = true;
    }
    // Enough for each path to be known to both ends, and for several to be used.
    world.nodes[client].app.to_write = 4 << 20;
    rates(&mut world, &[], 4000);
    let before = passed(&world);
    rates(&mut world, &[], 10_000);
    let since: Vec<u64> = passed(&world).iter().zip(before).map(|(now, before)| now - before).collect();
    assert!(since[..2].iter().all(|count| *count > 0), "the first link has its heartbeats: {since:?}");
    assert!(since[2..].iter().all(|count| *count == 0), "{since:?}");
    // What is written next goes by several again.
    let before = passed(&world);
    world.nodes[client].app.to_write += 4 << 20;
    world.look_soon(client);
    rates(&mut world, &[], 1000);
    let used =
        passed(&world).iter().step_by(2).zip(before.iter().step_by(2)).filter(|(now, before)| now > before).count();
    assert!(used >= 4, "{used} paths");
}

#[test]
fn pairs_that_cross_on_every_spine_fill_all_cables() {
    const SPINES: u8 = 4;
    let cable = Pipe { buffer: 128e3, ..Pipe::gigabit() };
    let mut world = World::new(6);
    // As many spines as pairs, all from one leaf to another: every cable is full if every host is.
    let spines: Vec<_> = (0..SPINES).map(|_| [both_ways(&mut world, &cable), both_ways(&mut world, &cable)]).collect();
    let servers: Vec<usize> = (0..SPINES)
        .map(|_| {
            let ports = [both_ways(&mut world, &cable), both_ways(&mut world, &cable)];
            let through = |spine: &[(Vec<usize>, Vec<usize>); 2]| {
                let there = [&ports[0].0, &spine[0].0, &spine[1].0, &ports[1].0];
                let back = [&ports[1].1, &spine[1].1, &spine[0].1, &ports[0].1];
                (there.into_iter().flatten().copied().collect(), back.into_iter().flatten().copied().collect())
            };
            pair(&mut world, &spines.iter().map(through).collect::<Vec<_>>()).1
        })
        .collect();
    rates(&mut world, &[], 500);
    let rates = rates(&mut world, &servers, 1000);
    let shares: Vec<f64> = rates.iter().map(|rate| rate / cable.rate).collect();
    println!("shares of hosts' rates over {SPINES} spines: {shares:.2?}");
    assert!(shares.iter().all(|share| *share > 0.85), "{shares:.2?}");
}
