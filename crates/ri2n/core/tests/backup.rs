//! Links that wait until others fail.

mod world;

use ri2n::{Carrier, Health, Settings};
use std::time::Duration;
use world::{App, Pipe, World};

const ENDLESS: u64 = 1 << 40;

/// An endless stream over links of these priorities, under way for 60 ms.
fn busy_world(seed: u64, priorities: &[u8]) -> (World, Vec<(usize, usize)>) {
    let mut world = World::new(seed);
    let slow = Pipe { rate: 12.5e6, buffer: 60e3, ..Pipe::gigabit() };
    let links = priorities.len();
    let (client, server) = (world.add_node(links, Settings::default()), world.add_node(links, Settings::default()));
    let pipes = (0..links).map(|link| world.join(client, server, link, &slow)).collect();
    priorities.iter().enumerate().for_each(|(link, priority)| world.set_priority(link, *priority));
    world.nodes[client].app = App::new(world.now, (1, 2), ENDLESS, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), ENDLESS, 60_000);
    world.listen(server);
    world.connect(client, server);
    let until = world.after(60);
    world.run(until, |_| false);
    (world, pipes)
}

/// Stream bytes that each link carried in the next milliseconds, from client and server together, and the longest pause.
fn carried(world: &mut World, milliseconds: u64) -> (Vec<u64>, Duration) {
    let sent = |world: &World| -> Vec<u64> {
        let links = [0, 1].map(|node: usize| world.nodes[node].connection.as_ref().unwrap().links());
        links[0].iter().zip(&links[1]).map(|(ours, theirs)| ours.bytes_sent + theirs.bytes_sent).collect()
    };
    let before = sent(world);
    world.nodes.iter_mut().for_each(|node| node.app.longest_pause = Duration::ZERO);
    let until = world.after(milliseconds);
    world.run(until, |_| false);
    let after = sent(world);
    let pause = world.nodes.iter().map(|node| node.app.longest_pause).max().unwrap();
    (after.iter().zip(before).map(|(after, before)| after - before).collect(), pause)
}

fn set_up(world: &mut World, pipes: (usize, usize), is_up: bool) {
    for pipe in [pipes.0, pipes.1] {
        world.pipes[pipe].is_up = is_up;
    }
}

/// Stream bytes that one link carries both ways in a tenth of a second, at least.
const FULL: u64 = 2_000_000;

#[test]
fn a_backup_carries_data_only_while_no_other_link_delivers() {
    for seed in 0..3 {
        let (mut world, pipes) = busy_world(seed, &[0, 1, 2]);
        let (bytes, _) = carried(&mut world, 100);
        assert!(bytes[0] > FULL && bytes[1..] == [0, 0], "{bytes:?}");
        for link in &world.nodes[0].connection.as_ref().unwrap().links() {
            assert_eq!(link.health, Health::Good, "a backup is probed while it waits: {link:#?}");
        }
        set_up(&mut world, pipes[0], false);
        let (_, pause) = carried(&mut world, 100);
        assert!(pause <= Duration::from_millis(50), "seed {seed}: {pause:?}");
        let (bytes, _) = carried(&mut world, 100);
        assert!(bytes[0] == 0 && bytes[1] > FULL && bytes[2] == 0, "the first backup: {bytes:?}");
        set_up(&mut world, pipes[1], false);
        let (_, pause) = carried(&mut world, 100);
        assert!(pause <= Duration::from_millis(50), "seed {seed}: {pause:?}");
        let (bytes, _) = carried(&mut world, 100);
        assert!(bytes[..2] == [0, 0] && bytes[2] > FULL, "the last backup: {bytes:?}");
        set_up(&mut world, pipes[0], true);
        carried(&mut world, 100);
        let (bytes, pause) = carried(&mut world, 100);
        assert!(bytes[0] > FULL && bytes[1..] == [0, 0], "both backups are left again: {bytes:?}");
        assert!(pause < Duration::from_millis(10), "{pause:?}");
    }
}

#[test]
fn links_of_one_priority_are_used_together() {
    let (mut world, pipes) = busy_world(7, &[1, 0, 0]);
    let (bytes, _) = carried(&mut world, 100);
    assert!(bytes[0] == 0 && bytes[1] > FULL && bytes[2] > FULL, "{bytes:?}");
    set_up(&mut world, pipes[1], false);
    carried(&mut world, 100);
    let (bytes, _) = carried(&mut world, 100);
    assert!(bytes[..2] == [0, 0] && bytes[2] > FULL, "one of two is enough: {bytes:?}");
    // A port without carrier is left at once, and by the time that it is back nothing was lost for it.
    let now = world.now;
    set_up(&mut world, pipes[2], false);
    [0, 1].into_iter().for_each(|node| world.carrier_at(now, node, 2, Carrier::Down));
    let (bytes, pause) = carried(&mut world, 100);
    assert!(bytes[0] > FULL / 2 && pause <= Duration::from_millis(20), "{bytes:?}, {pause:?}");
}
