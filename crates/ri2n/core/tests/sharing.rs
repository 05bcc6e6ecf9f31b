//! Links that are shared: with many senders at once, and with TCP.

mod world;

use ri2n::{Settings, Time};
use std::{collections::VecDeque, net::SocketAddr, time::Duration};
use world::{App, Datagram, Pipe, World, ip};

/// 64 senders into one port of a switch with a buffer of 512 KB: nobody starves, the port stays busy.
#[test]
fn incast_does_not_collapse() {
    const SENDERS: usize = 64;
    const AMOUNT: u64 = 500_000;
    let mut world = World::new(11);
    let port = world.add_pipe(Pipe { buffer: 512e3, ..Pipe::gigabit() });
    let settings = Settings { send_buffer: 256 << 10, receive_buffer: 256 << 10, ..Settings::default() };
    for sender in 0..SENDERS {
        // Each pair is a sender and its own socket on the receiving machine, whose port all share.
        let (client, server) = (world.add_node(1, settings.clone()), world.add_node(1, settings.clone()));
        let cable = world.add_pipe(Pipe::gigabit());
        let back = world.add_pipe(Pipe::gigabit());
        world.routes.insert((ip(client, 0), ip(server, 0)), vec![cable, port]);
        world.routes.insert((ip(server, 0), ip(client, 0)), vec![back]);
        world.nodes[client].app = App::new(world.now, (sender as u64, 999), AMOUNT, 60_000);
        world.nodes[server].app = App::new(world.now, (999, sender as u64), 0, 60_000);
        world.listen(server);
        world.connect(client, server);
    }
    let began = world.now;
    let until = world.after(10_000);
    let servers: Vec<usize> = (0..SENDERS).map(|sender| 2 * sender + 1).collect();
    let done = world.run(until, |world| servers.iter().all(|node| world.nodes[*node].app.finished_reading));
    let took = world.now.since(began).as_secs_f64();
    let least = AMOUNT as f64 * SENDERS as f64 / 120.4e6;
    assert!(done && took < least * 1.35, "{took:.3} s for what takes {least:.3} s");
    let slowest = servers.iter().map(|node| world.nodes[*node].app.read).min();
    assert_eq!(slowest, Some(AMOUNT));
}

/// Reno with fast recovery by selective acknowledgement, in packets: what a TCP does on a shared link.
struct Reno {
    window: f64,
    threshold: f64,
    sent: u64,
    in_flight: VecDeque<(u64, Time)>,
    recovery_until: u64,
    delivered: u64,
}

impl Reno {
    fn handle_ack(&mut self, number: u64) {
        self.delivered += 1;
        let lost = self.in_flight.iter().filter(|(sent, _)| *sent + 3 < number).count();
        self.in_flight.retain(|(sent, _)| *sent + 3 >= number && *sent != number);
        if lost > 0 && number > self.recovery_until {
            self.threshold = (self.window / 2.0).max(2.0);
            self.window = self.threshold;
            self.recovery_until = self.sent;
        }
        self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
    }
}

/// Bytes that pass between two looks at the TCP's acknowledgements: fewer than two packets. Where many wait for a look, the TCP
/// sends in bursts that no TCP sends, and loses most of them.
const LOOK_BYTES: f64 = 2500.0;

/// One link, an RI2N stream and a Reno flow: each gets a fair part.
#[test]
fn a_tcp_on_the_same_link_gets_its_share_and_leaves_us_ours() {
    let pipe = Pipe { rate: 12.5e6, buffer: 60e3, delay: Duration::from_micros(200), ..Pipe::gigabit() };
    let (ours, theirs) = shares_with_reno(&pipe, 1, 12_500);
    assert!(ours + theirs > 0.85, "the link is used: {ours:.2} + {theirs:.2}");
    assert!(ours > 0.25 && theirs > 0.25, "shares of the link: ours {ours:.2}, TCP's {theirs:.2}");
}

/// The same on a fast link, whose queue the TCP never lets run empty.
#[test]
fn nor_does_a_tcp_starve_us_on_a_fast_link() {
    let (ours, theirs) = shares_with_reno(&Pipe::gigabit(), 1, 5_000);
    assert!(ours + theirs > 0.85, "the link is used: {ours:.2} + {theirs:.2}");
    assert!(ours > 0.15 && theirs > 0.25, "shares of the link: ours {ours:.2}, TCP's {theirs:.2}");
}

/// Two links that lead through one bottleneck take what one link takes there, not two shares.
#[test]
fn links_through_one_bottleneck_take_one_share_together() {
    let pipe = Pipe { rate: 12.5e6, buffer: 120e3, delay: Duration::from_micros(200), ..Pipe::gigabit() };
    let (one, beside_one) = shares_with_reno(&pipe, 1, 20_000);
    let (two, beside_two) = shares_with_reno(&pipe, 2, 20_000);
    println!("one link {one:.2} : {beside_one:.2}, two links {two:.2} : {beside_two:.2}");
    assert!(two + beside_two > 0.85, "the link is used: {two:.2} + {beside_two:.2}");
    assert!(two < one * 1.2, "two links take {two:.2}, one takes {one:.2}");
    assert!(two > 0.25 && beside_two > 0.35, "shares of the link: ours {two:.2}, TCP's {beside_two:.2}");
}

/// The shares of a bottleneck that an RI2N stream of so many links and a Reno flow get in so many milliseconds, but for the first
/// quarter.
fn shares_with_reno(pipe: &Pipe, links: usize, milliseconds: u64) -> (f64, f64) {
    let Pipe { rate, delay, .. } = *pipe;
    let step = Duration::from_secs_f64(LOOK_BYTES / rate);
    let mut world = World::new(12);
    let (client, server) = (world.add_node(links, Settings::default()), world.add_node(links, Settings::default()));
    let (there, back) = world.join(client, server, 0, pipe);
    for link in 1..links {
        world.routes.insert((ip(client, link), ip(server, link)), vec![there]);
        world.routes.insert((ip(server, link), ip(client, link)), vec![back]);
    }
    // The TCP's ends share the cables; nodes 2 and 3 have no connection, so their datagrams only take up room.
    let (tcp, sink) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
    world.routes.insert((ip(tcp, 0), ip(sink, 0)), vec![there]);
    world.routes.insert((ip(sink, 0), ip(tcp, 0)), vec![back]);
    world.nodes[client].app = App::new(world.now, (1, 2), 1 << 40, 60_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 0, 60_000);
    world.listen(server);
    world.connect(client, server);
    let settle = world.after(500);
    world.run(settle, |_| false);

    let mut reno =
        Reno { window: 10.0, threshold: 1e9, sent: 0, in_flight: VecDeque::new(), recovery_until: 0, delivered: 0 };
    let (from, to) = (SocketAddr::new(ip(tcp, 0), 1), SocketAddr::new(ip(sink, 0), 1));
    let mut acks: VecDeque<(Time, u64)> = VecDeque::new();
    let (mut before, mut share_began) = (0, world.now);
    let ends = world.after(milliseconds);
    let warm = world.after(milliseconds / 4);
    while world.now < ends {
        // The pipe is a queue, so the moment of arrival is known when a packet enters.
        while reno.in_flight.len() < reno.window as usize {
            let number = reno.sent;
            reno.sent += 1;
            let dropped = world.pipes[there].dropped;
            let backlog = world.pipes[there].backlog(world.now);
            world.send(Datagram { from, to, bytes: vec![0; 1472] });
            reno.in_flight.push_back((number, world.now));
            if world.pipes[there].dropped == dropped {
                let wait = Duration::from_secs_f64((backlog + 1514.0) / rate) + 2 * delay;
                acks.push_back((world.now + wait, number));
            }
        }
        let next = world.now + step;
        world.run(next, |_| false);
        while acks.front().is_some_and(|(at, _)| *at <= world.now) {
            let (_, number) = acks.pop_front().expect("looked at");
            reno.handle_ack(number);
        }
        if acks.is_empty() {
            // A retransmission timer: all is lost.
            reno.in_flight.clear();
            reno.window = 2.0;
        }
        if world.now >= warm && before == 0 {
            before = world.nodes[server].app.read;
            share_began = world.now;
            reno.delivered = 0;
        }
    }
    let seconds = world.now.since(share_began).as_secs_f64();
    let ours = (world.nodes[server].app.read - before) as f64 / seconds / rate;
    let theirs = reno.delivered as f64 * 1472.0 / seconds / rate;
    (ours, theirs)
}
