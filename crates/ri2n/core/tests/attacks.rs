//! What someone off the path, or on it, can do: with the handshake, and with packets of a connection.

mod world;

use ri2n::{
    Arrival, CloseReason, Settings, StreamState, Time,
    handshake::{
        Client, ConnectError, DOUBTFUL, HELLOS_A_SECOND, HELLOS_AT_ONCE, Privacy, Protection, REMEMBERED_MAX, Response,
        Server, Terms,
    },
    wire::{
        control::{self, Control},
        handshake::{self as wire, Body, PROOF_LEN},
        packet::{self, Header, Width},
    },
};
use std::{net::SocketAddr, time::Duration};
use world::{App, Chance, Datagram, Pipe, World, ip, pattern};

fn connected(seed: u64, prepare: impl Fn(World) -> World) -> World {
    let mut world = prepare(World::new(seed));
    let (client, server) = (world.add_node(2, Settings::default()), world.add_node(2, Settings::default()));
    for link in 0..2 {
        world.join(client, server, link, &Pipe { rate: 12.5e6, ..Pipe::gigabit() });
    }
    world.nodes[client].app = App::new(world.now, (1, 2), 400_000, 9_000);
    world.nodes[server].app = App::new(world.now, (2, 1), 400_000, 9_000);
    world.recorded = Some(Vec::new());
    world.listen(server);
    world.connect(client, server);
    let until = world.after(10);
    world.run(until, |_| false);
    assert!(world.nodes.iter().all(|node| node.connection.is_some()));
    world
}

fn finishes(world: &mut World) {
    let until = world.after(20_000);
    let done = world.run(until, |world| world.nodes.iter().all(|node| node.app.finished_reading));
    assert!(done && world.nodes.iter().all(|node| node.app.read == 400_000));
}

#[test]
fn guessed_packets_change_nothing() {
    let mut world = connected(1, |world| world);
    let mut chance = Chance::new(3);
    let mut reset = Vec::new();
    control::encode(&mut reset, &Control::Reset(0));
    for round in 0..20_000_u64 {
        let node = (round % 2) as usize;
        let header = Header { link: (round % 8) as u8, token: chance.next(), number: chance.below(2_000), data: None };
        let mut bytes = Vec::new();
        packet::encode(&mut bytes, if round % 3 == 0 { Width::Narrow } else { Width::Wide }, &header, &reset);
        let now = world.now;
        let before = world.nodes[node].connection.as_ref().unwrap().rejected();
        let from = SocketAddr::new(ip(1 - node, 0), world::PORT);
        world.nodes[node].connection.as_mut().unwrap().handle_datagram(now, Arrival { at: now, from }, &bytes);
        assert_eq!(world.nodes[node].connection.as_ref().unwrap().rejected(), before + 1);
    }
    finishes(&mut world);
}

#[test]
fn every_datagram_replayed_and_reflected_changes_nothing() {
    for prepare in [
        |world: World| world,
        |world: World| world.with_key(),
        |world: World| world.with_checksum(),
        |world: World| world.with_encryption(),
    ] {
        let mut world = connected(2, prepare);
        for _ in 0..5 {
            let seen: Vec<Datagram> = std::mem::take(world.recorded.as_mut().unwrap());
            for datagram in seen {
                let reflected = Datagram { from: datagram.to, to: datagram.from, bytes: datagram.bytes.clone() };
                let elsewhere = Datagram { from: SocketAddr::new(datagram.from.ip(), 99), ..datagram.clone() };
                for copy in [datagram, reflected, elsewhere] {
                    world.send(copy);
                }
            }
            world.recorded = Some(Vec::new());
            let until = world.after(5);
            world.run(until, |_| false);
        }
        world.recorded = None;
        finishes(&mut world);
    }
}

#[test]
fn with_a_key_a_changed_bit_is_as_good_as_loss() {
    for prepare in [|world: World| world.with_key(), |world: World| world.with_encryption()] {
        let mut world = connected(4, prepare);
        for pipe in &mut world.pipes {
            pipe.corruption = 0.2;
        }
        finishes(&mut world);
    }
}

/// What someone on the path sees of an encrypted connection: neither bytes of the streams nor control frames nor addresses, and
/// the same packet never twice.
#[test]
fn who_listens_on_the_path_reads_nothing() {
    let seen = |prepare: fn(World) -> World| {
        let mut world = connected(9, prepare);
        finishes(&mut world);
        let bytes: Vec<Vec<u8>> = world.recorded.unwrap().into_iter().map(|datagram| datagram.bytes).collect();
        bytes
    };
    let shows = |seen: &[Vec<u8>], secret: &[u8]| {
        seen.iter().any(|bytes| bytes.windows(secret.len()).any(|window| window == secret))
    };
    let stream: Vec<u8> = (80..112).map(|offset| pattern(1, offset)).collect();
    let std::net::IpAddr::V4(second) = ip(0, 1) else { panic!("an address of version 4") };
    // The check can fail: without encryption, all of that is there to be seen.
    let clear = seen(|world| world.with_key());
    assert!(shows(&clear, &stream) && shows(&clear, &second.octets()));
    let hidden = seen(|world| world.with_encryption());
    assert!(!shows(&hidden, &stream) && !shows(&hidden, &second.octets()));
    let mut packets: Vec<&[u8]> = Vec::new();
    for bytes in hidden.iter().filter(|bytes| !wire::is_handshake(bytes)) {
        let raw = packet::decode(bytes).unwrap();
        let frames: Vec<_> = control::decode(raw.control).collect();
        let is_ack = matches!(frames.first(), Some(Ok(Control::Ack(ack))) if !ack.links.is_empty());
        assert!(!is_ack || frames.last().is_some_and(Result::is_err), "an acknowledgement in the clear: {frames:?}");
        packets.push(bytes);
    }
    let count = packets.len();
    packets.sort_unstable();
    packets.dedup();
    assert_eq!(packets.len(), count, "a packet was sent twice");
}

/// A key is changed in three steps, in any order of machines within a step, and at no time does a connection fail.
#[test]
fn keys_are_rotated_while_connections_are_made() {
    let (old, new) = (ri2n::Key::new([1; 32]), ri2n::Key::new([2; 32]));
    let steps: [&[&ri2n::Key]; 4] = [&[&old], &[&old, &new], &[&new, &old], &[&new]];
    for privacy in [Privacy::Authenticated, Privacy::Encrypted] {
        for (at, ahead) in
            (0..4).flat_map(|at| [(at, at), (at, at + 1), (at + 1, at)]).filter(|ends| ends.0.max(ends.1) < 4)
        {
            let protection = |step: usize| {
                let keys = steps[step].iter().copied().cloned().collect();
                Protection { keys, privacy, ..Protection::default() }
            };
            let mut world = World::new(6);
            let (client, server) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
            world.join(client, server, 0, &Pipe::gigabit());
            world.protection = protection(at);
            world.listen(server);
            world.protection = protection(ahead);
            world.connect(client, server);
            let until = world.after(50);
            world.run(until, |_| false);
            let used = |node: usize| world.nodes[node].connection.as_ref().and_then(|connection| connection.key());
            assert_eq!((used(client), used(server)), (Some(steps[ahead][0].id()), used(client)), "{at}, {ahead}");
        }
    }
}

#[test]
fn an_end_that_encrypts_and_one_that_does_not_refuse_each_other() {
    for (ours, theirs) in [(Privacy::Encrypted, Privacy::Authenticated), (Privacy::Authenticated, Privacy::Encrypted)] {
        let mut world = World::new(5).with_key();
        let (client, server) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
        world.join(client, server, 0, &Pipe::gigabit());
        world.protection.privacy = theirs;
        world.listen(server);
        world.protection.privacy = ours;
        world.connect(client, server);
        let until = world.after(50);
        world.run(until, |_| false);
        let failure = world.nodes[client].failure.as_ref();
        assert!(failure.is_some_and(|failure| failure.contains("encrypts")), "{ours:?}: {failure:?}");
        assert!(world.nodes[server].connection.is_none() && world.nodes[client].connection.is_none());
    }
}

#[test]
fn another_key_is_refused() {
    for prepare in [|world: World| world.with_key(), |world: World| world.with_encryption()] {
        is_refused(prepare(World::new(5)));
    }
}

fn is_refused(mut world: World) {
    let (client, server) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
    world.join(client, server, 0, &Pipe::gigabit());
    world.listen(server);
    world.protection = Protection { keys: ri2n::Key::from_passphrase("another").into(), ..world.protection };
    world.connect(client, server);
    let until = world.after(DOUBTFUL.as_millis() as u64 / 2);
    world.run(until, |_| false);
    assert_eq!(world.nodes[client].failure, None, "the refusal of a server with another key may be forged");
    let until = world.after(DOUBTFUL.as_millis() as u64);
    world.run(until, |_| false);
    assert!(world.nodes[client].failure.as_ref().is_some_and(|failure| failure.contains("key")));
    assert!(world.nodes[server].connection.is_none());
}

/// Every refusal there is, sent to a client by someone on the path before the server's answer arrives.
#[test]
fn forged_refusals_and_acceptances_delay_nobody_who_has_a_key() {
    for prepare in [|world: World| world.with_key(), |world: World| world.with_encryption()] {
        is_not_delayed(prepare(World::new(8)));
    }
}

fn is_not_delayed(mut world: World) {
    let (client, server) = (world.add_node(1, Settings::default()), world.add_node(1, Settings::default()));
    world.join(client, server, 0, &Pipe { delay: Duration::from_millis(5), ..Pipe::gigabit() });
    for (k, node) in [client, server].into_iter().enumerate() {
        world.nodes[node].app = App::new(world.now, (1 + k as u64, 2 - k as u64), 400_000, 9_000);
    }
    world.listen(server);
    world.recorded = Some(Vec::new());
    world.connect(client, server);
    let mut forged = 0;
    for _ in 0..30 {
        let until = world.after(1);
        world.run(until, |_| false);
        for seen in std::mem::take(world.recorded.as_mut().unwrap()) {
            let Ok(question) = wire::decode(&seen.bytes) else { continue };
            if seen.from.ip() != ip(client, 0) {
                continue;
            }
            let accept = wire::Accept {
                server_token: 1,
                nonce: [0; 16],
                port: 9,
                window: 1 << 20,
                addresses: Vec::new(),
                first_taken: 0,
                first_bytes: Vec::new(),
            };
            let refusals = [wire::Refusal::Guard, wire::Refusal::Full, wire::Refusal::Version(9)];
            let accepts = [Body::Accept(accept), Body::SealedAccept(vec![7; 100])];
            for body in refusals.map(Body::Refuse).into_iter().chain(accepts) {
                let bytes = wire::encode(question.client_token, &body, |_| [0; PROOF_LEN]);
                let now = world.now;
                let path = ri2n::Path { local: None, interface: 0, entropy: 0, remote: seen.to };
                let Some(client) = world.nodes[client].client.as_mut() else { continue };
                assert!(matches!(client.handle_datagram(now, path, &bytes), Ok(None)), "{body:?} is believed");
                forged += 1;
            }
        }
    }
    assert!(forged >= 8, "HELLO and OPEN were answered by the forger: {forged}");
    assert_eq!(world.nodes[client].failure, None);
    world.recorded = None;
    finishes(&mut world);
}

#[test]
fn a_refusal_of_the_server_that_has_the_key_is_believed_at_once() {
    let protection = Protection { keys: ri2n::Key::from_passphrase("a secret").into(), ..Protection::default() };
    let mut server = Server::new([1; 32], protection.clone());
    let mut client = Client::new([2; 32], Settings::default(), protection, Vec::new());
    let (now, from) = (Time::from_nanos(50_000_000_000), SocketAddr::new(ip(0, 0), 7));
    let path = ri2n::Path { local: None, interface: 0, entropy: 0, remote: SocketAddr::new(ip(1, 0), 7) };
    let hello = client.poll_transmit(now).unwrap().to_vec();
    let Response::Reply(cookie) = server.handle_datagram(now, from, &hello) else { panic!("a cookie is due") };
    assert!(matches!(client.handle_datagram(now, path, &cookie), Ok(None)));
    let open = client.poll_transmit(now).unwrap().to_vec();
    let Response::Open(opening) = server.handle_datagram(now, from, &open) else { panic!("the cookie is good") };
    let refusal = server.refuse_full(&opening);
    let mut changed = refusal.clone();
    changed[14] = 1;
    assert!(matches!(client.handle_datagram(now, path, &changed), Ok(None)));
    assert!(matches!(client.handle_datagram(now, path, &refusal), Err(ConnectError::Full)));
    assert!(refusal.len() <= hello.len(), "no amplification");
}

#[test]
fn a_peer_whose_port_closed_is_noticed_only_by_a_true_quote() {
    let mut world = connected(6, |world| world);
    world.recorded = Some(Vec::new());
    let until = world.after(5);
    world.run(until, |_| false);
    let ours: Vec<Datagram> =
        world.recorded.take().unwrap().into_iter().filter(|datagram| datagram.from.ip() == ip(0, 0)).collect();
    let connection = world.nodes[0].connection.as_mut().unwrap();
    for _ in 0..10 {
        connection.handle_unreachable(&[0x80; 40]);
    }
    assert!(!matches!(connection.state(), StreamState::Closed(_)));
    for datagram in ours.iter().rev().take(3) {
        connection.handle_unreachable(&datagram.bytes);
    }
    assert_eq!(connection.state(), StreamState::Closed(CloseReason::Reset));
}

#[test]
fn hellos_leave_no_trace_and_opens_a_bounded_one() {
    let mut server = Server::new([1; 32], Protection::default());
    let now = Time::from_nanos(50_000_000_000);
    let from = |number: u32| SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + number).into(), 7);
    let hello = |token: u64| wire::encode(token, &Body::Hello { nonce: [2; 16] }, |_| [0; PROOF_LEN]);
    let cookie_of = |server: &mut Server, now: Time, number: u32| {
        let Response::Reply(answer) = server.handle_datagram(now, from(number), &hello(u64::from(number))) else {
            panic!("a cookie is due")
        };
        assert!(answer.len() <= hello(0).len(), "no amplification");
        match wire::decode(&answer).unwrap().body {
            Body::Cookie { time, cookie } => (time, cookie),
            other => panic!("{other:?}"),
        }
    };
    let open = |number: u32, (cookie_time, cookie): (u64, [u8; 16])| {
        let open = wire::Open {
            nonce: [2; 16],
            cookie_time,
            cookie,
            guard: wire::Guard::None,
            window: 1 << 20,
            addresses: Vec::new(),
            first_bytes: Vec::new(),
        };
        wire::encode(u64::from(number), &Body::Open(open), |_| [0; PROOF_LEN])
    };
    // A cookie of another address, of another time, or too old opens nothing.
    let cookie = cookie_of(&mut server, now, 1);
    assert!(matches!(server.handle_datagram(now, from(2), &open(1, cookie)), Response::Ignore));
    assert!(matches!(server.handle_datagram(now, from(1), &open(1, (cookie.0 - 1, cookie.1))), Response::Ignore));
    let late = now + Duration::from_secs(12);
    assert!(matches!(server.handle_datagram(late, from(1), &open(1, cookie)), Response::Ignore));
    // Accepted ones are remembered, so that a repeated OPEN opens nothing twice; but only so many.
    let began = now;
    for number in 0..REMEMBERED_MAX as u32 + 10 {
        let now = began + Duration::from_secs(number.into()) / HELLOS_A_SECOND as u32;
        let question = open(number, cookie_of(&mut server, now, number));
        match server.handle_datagram(now, from(number), &question) {
            Response::Open(opening) => {
                let settings = Settings { send_buffer: 1, receive_buffer: 1, ..Settings::default() };
                let terms = Terms { seed: [3; 32], port: 9, local: None, offered: Vec::new(), settings };
                let (_, answer) = server.accept(now, *opening, terms);
                let Response::Reply(again) = server.handle_datagram(now, from(number), &question) else {
                    panic!("opened twice")
                };
                assert!(again == answer && answer.len() <= question.len());
            }
            Response::Reply(refusal) => {
                assert!(number >= REMEMBERED_MAX as u32);
                assert!(matches!(wire::decode(&refusal).unwrap().body, Body::Refuse(wire::Refusal::Full)));
            }
            Response::Ignore => panic!("{number} is ignored"),
        }
    }
    // A flood of HELLOs is answered at a bounded rate, whatever their addresses.
    let flooded = now + Duration::from_secs(20);
    let mut answers = |at: Time| {
        let each = |number: u32| server.handle_datagram(at, from(number), &hello(u64::from(number)));
        (0..3 * HELLOS_AT_ONCE as u32).map(each).filter(|response| matches!(response, Response::Reply(_))).count()
            as u64
    };
    assert_eq!(answers(flooded), HELLOS_AT_ONCE);
    assert_eq!(answers(flooded + Duration::from_millis(10)), HELLOS_A_SECOND / 100);
    let later = now + Duration::from_secs(25);
    let cookie = cookie_of(&mut server, later, 1);
    assert!(matches!(server.handle_datagram(later, from(1), &open(1, cookie)), Response::Open(_)), "room again");
}
