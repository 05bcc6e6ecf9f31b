//! Many streams between two machines, which share their links.

mod world;

use ri2n::Settings;
use std::{collections::BTreeMap, fmt, time::Duration};
use world::{App, OwnQueue, Pipe, World, ip};

/// What so many streams got of two links.
struct Shares {
    /// Bytes that each receiver read.
    read: Vec<u64>,
    /// Share of what the links could carry.
    used: f64,
    /// Datagrams that found the queue full, of those sent.
    dropped: f64,
    /// Runs that a queue of the machine itself did not take, of all.
    refused: f64,
}

impl Shares {
    /// Jain's index of fairness.
    fn fairness(&self) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for read in self.read.iter().map(|read| *read as f64) {
            sum += read;
            squares += read * read;
        }
        sum * sum / (squares * self.read.len() as f64)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "used {:.3}, dropped {:.3}, refused {:.3}, fairness {:.3}",
            self.used,
            self.dropped,
            self.refused,
            self.fairness()
        )
    }
}

/// Whether streams know of each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    Neighbours,
    Apart,
}

/// Streams that all have much to send, over the same two links; the first quarter of the time does not count.
fn share(streams: usize, together: Together, queue: Option<OwnQueue>, pipe: &Pipe, milliseconds: u64) -> Shares {
    let mut world = World::new(streams as u64);
    world.own_queue = queue;
    world.neighbours = (together == Together::Neighbours).then(BTreeMap::new);
    let cables = [0, 1].map(|_| [world.add_pipe(pipe.clone()), world.add_pipe(pipe.clone())]);
    for pair in 0..streams {
        let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
        for (link, [there, back]) in cables.iter().enumerate() {
            world.routes.insert((ip(client, link), ip(server, link)), vec![*there]);
            world.routes.insert((ip(server, link), ip(client, link)), vec![*back]);
        }
        let seeds = (2 * pair as u64, 2 * pair as u64 + 1);
        world.nodes[client].app = App::new(world.now, seeds, 1 << 40, 16_384);
        world.nodes[server].app = App::new(world.now, (seeds.1, seeds.0), 0, 60_000);
        world.listen(server);
        world.connect(client, server);
    }
    let until = world.after(milliseconds / 4);
    world.run(until, |_| false);
    let servers = || (0..streams).map(|pair| 2 * pair + 1);
    let before: Vec<u64> = servers().map(|node| world.nodes[node].app.read).collect();
    let began = world.now;
    world.pipes.iter_mut().for_each(|pipe| (pipe.passed, pipe.dropped) = (0, 0));
    (world.refused, world.taken) = (0, 0);
    let until = world.after(milliseconds * 3 / 4);
    world.run(until, |_| false);
    let read: Vec<u64> = servers().zip(before).map(|(node, before)| world.nodes[node].app.read - before).collect();
    let could = 2.0 * pipe.rate * world.now.since(began).as_secs_f64();
    let [passed, dropped] = cables.iter().fold([0, 0], |[passed, dropped], [there, _]| {
        [passed + world.pipes[*there].passed, dropped + world.pipes[*there].dropped]
    });
    Shares {
        used: read.iter().sum::<u64>() as f64 / could,
        dropped: dropped as f64 / (passed + dropped) as f64,
        refused: world.refused as f64 / (world.taken + world.refused).max(1) as f64,
        read,
    }
}

/// Many streams that know of each other fill both links, and each gets its share. Streams that do not, with two packets in
/// flight each, lose far more.
#[test]
fn a_hundred_streams_share_two_links() {
    let pipe = Pipe::gigabit();
    let (shares, apart) =
        (share(100, Together::Neighbours, None, &pipe, 1000), share(100, Together::Apart, None, &pipe, 1000));
    println!("neighbours {shares}, apart {apart}");
    assert!(shares.used > 0.8 && shares.fairness() > 0.9, "{shares}");
    assert!(shares.dropped < 0.08 && shares.dropped < apart.dropped / 2.0, "{shares}, apart {apart}");
}

/// A queue of the machine itself says that it is full: the streams slow down at once, and what was not sent leaves again without having
/// been missed. Where the queue says nothing, its drops are found by the acknowledgements.
#[test]
fn a_full_queue_of_our_own_slows_many_streams_down() {
    let share = |queue| share(120, Together::Neighbours, Some(queue), &Pipe::gigabit(), 800);
    let (told, silent) = (share(OwnQueue::Tells), share(OwnQueue::IsSilent));
    println!("told {told}, silent {silent}");
    assert!(told.used > 0.85 && told.refused < 0.05 && told.dropped < 0.001, "{told}");
    assert!(told.used > silent.used && told.fairness() > silent.fairness(), "{told}, silent {silent}");
}

/// Few streams each keep a window of their own, and share just as well.
#[test]
fn a_handful_of_streams_shares_two_links() {
    let pipe = Pipe { delay: Duration::from_micros(1000), ..Pipe::gigabit() };
    let shares = share(6, Together::Neighbours, None, &pipe, 1500);
    println!("{shares}");
    assert!(shares.used > 0.9 && shares.dropped < 0.01 && shares.fairness() > 0.9, "{shares}");
}
