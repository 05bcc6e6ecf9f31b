//! Machines whose processors are busy with other programs: the protocol gets its turn late, at either end or both.

mod world;

use ri2n::{LinkReport, Settings};
use std::time::Duration;
use world::{App, Pipe, Sharing, World};

const ENDLESS: u64 = 1 << 40;

/// Naps such as a scheduler's turns of other programs make them: half of the time, three milliseconds each.
const TURNS: Sharing = Sharing::Naps { awake_us: (1, 6_000), asleep_us: (2_800, 3_000) };
/// Long ones, now and then.
const NAPS: Sharing = Sharing::Naps { awake_us: (10_000, 100_000), asleep_us: (5_000, 50_000) };

/// Two gigabit links and a stream that never ends, for a tenth of a second; then the processors are shared.
fn shared_world(seed: u64, sender: Option<Sharing>, receiver: Option<Sharing>) -> World {
    let mut world = World::new(seed);
    let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
    for link in 0..2 {
        world.join(client, server, link, &Pipe::gigabit());
    }
    world.nodes[client].app = App::new(world.now, (1, 2), ENDLESS, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    let until = world.after(40);
    world.run(until, |_| false);
    for (node, sharing) in [(client, sender), (server, receiver)] {
        if let Some(sharing) = sharing {
            world.share(node, sharing);
        }
    }
    let until = world.after(60);
    world.run(until, |_| false);
    world
}

/// MB/s for a while, and the sender's links.
fn measure(world: &mut World, milliseconds: u64) -> (f64, Vec<LinkReport>) {
    let (before, began) = (world.nodes[1].app.read, world.now);
    let until = world.after(milliseconds);
    world.run(until, |_| false);
    let rate = (world.nodes[1].app.read - before) as f64 / 1e6 / world.now.since(began).as_secs_f64();
    (rate, world.nodes[0].connection.as_ref().expect("connected").links())
}

#[test]
fn late_turns_do_not_leave_the_links_idle() {
    for (sender, receiver, least) in [(Some(TURNS), None, 205.0), (None, Some(TURNS), 205.0)] {
        for seed in 0..2 {
            let (rate, links) = measure(&mut shared_world(seed, sender, receiver), 300);
            let suspicions: u64 = links.iter().map(|link| link.suspicions).sum();
            assert!(
                rate > least && suspicions == 0,
                "seed {seed}, sender {sender:?}, receiver {receiver:?}: {rate:.1} MB/s\n{links:#?}"
            );
        }
    }
}

#[test]
fn neither_do_both_ends_together() {
    for seed in 0..2 {
        let (rate, links) = measure(&mut shared_world(seed, Some(TURNS), Some(TURNS)), 300);
        assert!(rate > 140.0, "seed {seed}: {rate:.1} MB/s\n{links:#?}");
    }
}

/// A nap is no silence of a link, and what waits in the system's buffer is not lost.
#[test]
fn naps_are_not_taken_for_failures() {
    for (sender, receiver) in [(Some(NAPS), None), (None, Some(NAPS)), (Some(NAPS), Some(NAPS))] {
        let (rate, links) = measure(&mut shared_world(3, sender, receiver), 1_000);
        let (lost, sent): (u64, u64) =
            links.iter().fold((0, 0), |sum, link| (sum.0 + link.packets_lost, sum.1 + link.packets_sent));
        let suspicions: u64 = links.iter().map(|link| link.suspicions).sum();
        assert!(suspicions == 0 && lost * 200 < sent, "{suspicions} suspicions, {lost} of {sent} given up: {links:#?}");
        assert!(rate > 60.0, "sender {sender:?}, receiver {receiver:?}: {rate:.1} MB/s");
    }
}

/// What the queue may hold while turns are late goes away with them.
#[test]
fn queues_are_short_again_once_turns_come_in_time() {
    let mut world = shared_world(4, Some(TURNS), Some(TURNS));
    measure(&mut world, 200);
    let prompt = Sharing::LateWakes { most_us: 1 };
    for node in 0..2 {
        world.share(node, prompt);
    }
    measure(&mut world, 400);
    let (rate, links) = measure(&mut world, 100);
    assert!(rate > 0.97 * 240.8, "{rate:.1} MB/s");
    assert!(links.iter().all(|link| link.rtt < Duration::from_millis(1)), "{links:#?}");
}
