//! What a failing link costs: how long the stream pauses, and how much of the rest it uses.

mod world;

use ri2n::{Carrier, CloseReason, Health, Patience, Settings, StreamState, Time};
use std::time::Duration;
use world::{App, Pipe, World};

/// Two or more gigabit links, a stream from node 0 to node 1 that never ends, under way for 60 ms.
fn busy_world(seed: u64, links: usize, amount: u64) -> (World, Vec<(usize, usize)>) {
    let mut world = World::new(seed);
    let (client, server) = (world.add_node(links, Settings::default()), world.add_node(links, Settings::default()));
    let pipes = (0..links).map(|link| world.join(client, server, link, &Pipe::gigabit())).collect();
    world.nodes[client].app = App::new(world.now, (1, 2), amount, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    let until = world.after(60);
    world.run(until, |_| false);
    world.nodes[server].app.longest_pause = Duration::ZERO;
    (world, pipes)
}

/// Runs on, and returns MB/s and the longest pause.
fn measure(world: &mut World, milliseconds: u64) -> (f64, Duration) {
    let (before, began): (u64, Time) = (world.nodes[1].app.read, world.now);
    world.nodes[1].app.longest_pause = Duration::ZERO;
    let until = world.after(milliseconds);
    world.run(until, |_| false);
    let app = &world.nodes[1].app;
    let megabytes = (app.read - before) as f64 / 1e6;
    (megabytes / world.now.since(began).as_secs_f64(), app.longest_pause.max(world.now.since(app.progressed_at)))
}

const ENDLESS: u64 = 1 << 40;

#[test]
fn healthy_links_are_filled() {
    for links in [1, 2, 4] {
        let (mut world, _) = busy_world(1, links, ENDLESS);
        let (rate, pause) = measure(&mut world, 200);
        let wire = 120.4 * links as f64;
        assert!(rate > 0.985 * wire && pause < Duration::from_millis(3), "{links} links: {rate:.1} MB/s, {pause:?}");
        let dropped: u64 = world.pipes.iter().map(|pipe| pipe.dropped).sum();
        assert_eq!(dropped, 0, "neither a full buffer nor a datagram larger than what the ports said");
    }
}

/// A path narrower than the ports at its ends: a size that does not pass says nothing of the link's health.
#[test]
fn a_narrow_path_is_no_bad_link() {
    let mut world = World::new(7);
    let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
    for link in 0..2 {
        world.join(client, server, link, &Pipe { largest: 1400, ..Pipe::gigabit() });
    }
    world.nodes[client].app = App::new(world.now, (1, 2), ENDLESS, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    measure(&mut world, 100);
    for node in [client, server] {
        for link in world.nodes[node].connection.as_ref().unwrap().links() {
            assert_eq!(link.health, Health::Good, "{link:#?}");
            assert!(link.delivery_ratio > 0.999, "{link:#?}");
        }
    }
    let size = world.nodes[client].connection.as_ref().unwrap().links()[0].datagram_size;
    assert!((1350..=1400).contains(&size), "{size}");
}

#[test]
fn the_search_for_the_smallest_round_trip_is_not_felt() {
    let mut world = World::new(9);
    let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
    for link in 0..2 {
        world.join(client, server, link, &Pipe { rate: 12.5e6, ..Pipe::gigabit() });
    }
    world.nodes[client].app = App::new(world.now, (1, 2), ENDLESS, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    measure(&mut world, 200);
    let (rate, pause) = measure(&mut world, 11_000);
    assert!(rate > 23.5 && pause < Duration::from_millis(8), "{rate:.1} MB/s, {pause:?}");
}

#[test]
fn a_gray_link_is_used_for_what_it_is_worth() {
    for (loss, least) in [(0.01, 225.0), (0.1, 200.0), (0.3, 150.0), (0.5, 117.0)] {
        for seed in 0..2 {
            let (mut world, pipes) = busy_world(seed, 2, ENDLESS);
            for pipe in [pipes[1].0, pipes[1].1] {
                world.pipes[pipe].loss = loss;
            }
            measure(&mut world, 100);
            let (rate, pause) = measure(&mut world, 250);
            assert!(
                rate > least,
                "{loss} lost, seed {seed}: {rate:.1} MB/s, pause {pause:?}\n{:#?}",
                world.nodes[0].connection.as_ref().map(|c| c.links())
            );
            assert!(pause < Duration::from_millis(40), "{loss} lost, seed {seed}: {rate:.1} MB/s, pause {pause:?}");
        }
    }
}

#[test]
fn a_slow_link_drags_nobody_down() {
    let (mut world, pipes) = busy_world(2, 2, ENDLESS);
    world.pipes[pipes[1].0].rate /= 10.0;
    measure(&mut world, 200);
    let (rate, pause) = measure(&mut world, 500);
    assert!(rate > 0.97 * 120.4 && pause < Duration::from_millis(10), "{rate:.1} MB/s, {pause:?}");
}

#[test]
fn a_silent_link_is_left_within_fifty_milliseconds() {
    for (links, dead) in [(2, 1), (2, 0), (4, 2)] {
        let (mut world, pipes) = busy_world(3, links, ENDLESS);
        for pipe in [pipes[dead].0, pipes[dead].1] {
            world.pipes[pipe].is_up = false;
        }
        let (_, pause) = measure(&mut world, 100);
        assert!(pause <= Duration::from_millis(50), "{links} links: {pause:?}");
        let (rate, pause) = measure(&mut world, 300);
        let rest = 120.4 * (links - 1) as f64;
        assert!(rate > 0.95 * rest && pause < Duration::from_millis(5), "{links} links: {rate:.1} MB/s, {pause:?}");
        for outage_ms in [0, 60_000] {
            world.nodes[0].app.to_write = ENDLESS;
            let until = world.after(outage_ms);
            // A minute of full rate is long to simulate: the application rests meanwhile.
            world.nodes[0].app.to_write = world.nodes[0].app.written;
            world.nodes[0].app.keeps_open = true;
            world.run(until, |_| false);
            world.nodes[0].app.to_write = ENDLESS;
        }
        for pipe in [pipes[dead].0, pipes[dead].1] {
            world.pipes[pipe].is_up = true;
        }
        world.look_soon(0);
        measure(&mut world, 150);
        let (rate, _) = measure(&mut world, 100);
        assert!(rate > 0.9 * 120.4 * links as f64, "{links} links, healed: {rate:.1} MB/s");
    }
}

#[test]
fn a_lost_carrier_costs_less_than_twenty_milliseconds() {
    let (mut world, pipes) = busy_world(4, 2, ENDLESS);
    for pipe in [pipes[1].0, pipes[1].1] {
        world.pipes[pipe].is_up = false;
    }
    for node in [0, 1] {
        let now = world.now;
        world.carrier_at(now, node, 1, Carrier::Down);
    }
    let (_, pause) = measure(&mut world, 100);
    assert!(pause <= Duration::from_millis(20), "{pause:?}");
}

#[test]
fn an_outage_of_everything_is_survived_whatever_its_length() {
    for outage_s in [1, 10, 60] {
        let (mut world, pipes) = busy_world(5, 2, ENDLESS);
        let all: Vec<usize> = pipes.iter().flat_map(|(there, back)| [*there, *back]).collect();
        for pipe in &all {
            world.pipes[*pipe].is_up = false;
        }
        let until = world.after(outage_s * 1000);
        world.run(until, |_| false);
        for pipe in &all {
            world.pipes[*pipe].is_up = true;
        }
        measure(&mut world, 150);
        let (rate, _) = measure(&mut world, 100);
        assert!(rate > 0.9 * 240.8, "after {outage_s} s: {rate:.1} MB/s");
    }
}

/// Two slow links, whose client writes `amount` with this patience and loses both for so long: whether its connection ends, and
/// when.
fn cut(patience: Patience, amount: u64, milliseconds: u64) -> Option<Duration> {
    let slow = Pipe { rate: 1.25e6, ..Pipe::gigabit() };
    let mut world = World::new(11);
    let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
    let pipes = [0, 1].map(|link| world.join(client, server, link, &slow));
    // A stream that is over has nothing to be kept alive for.
    world.nodes[client].app = App { keeps_open: true, ..App::new(world.now, (1, 2), amount, 60_000) };
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    let until = world.after(3_000);
    world.run(until, |_| false);
    world.nodes[client].connection.as_mut().unwrap().set_patience(patience);
    let (began, back) = (world.now, world.after(milliseconds));
    for pipe in pipes.into_iter().flat_map(|(there, here)| [there, here]) {
        world.at(began, pipe, Pipe { loss: 1.0, ..slow.clone() });
        world.at(back, pipe, slow.clone());
    }
    let until = world.after(milliseconds + 3_000);
    let state = |world: &World| world.nodes[client].connection.as_ref().unwrap().state();
    world.run(until, |world| matches!(state(world), StreamState::Closed(_)));
    (state(&world) == StreamState::Closed(CloseReason::Outage)).then(|| world.now.since(began))
}

#[test]
fn what_is_not_acknowledged_ends_a_connection_when_a_program_wants_that() {
    let unacknowledged = Patience { unacknowledged: Some(Duration::from_secs(2)), ..Patience::default() };
    let after = cut(unacknowledged, ENDLESS, 10_000).expect("an end");
    assert!(after.abs_diff(Duration::from_secs(2)) < Duration::from_millis(200), "{after:?}");
    // Shorter silence is survived, and so is any silence of a connection that has nothing to say.
    assert_eq!(cut(unacknowledged, ENDLESS, 1_500), None);
    assert_eq!(cut(unacknowledged, 100_000, 10_000), None);
    assert_eq!(cut(Patience::default(), ENDLESS, 10_000), None);
}

#[test]
fn silence_ends_even_an_idle_connection_that_is_to_be_kept_alive() {
    let silent = Patience { silent: Some(Duration::from_secs(4)), ..Patience::default() };
    for amount in [100_000, ENDLESS] {
        let after = cut(silent, amount, 10_000).expect("an end");
        // An idle connection hears of its peer once a second.
        assert!((2_900..4_200).contains(&after.as_millis()), "{amount}: {after:?}");
        assert_eq!(cut(silent, amount, 2_500), None, "{amount}");
    }
}
