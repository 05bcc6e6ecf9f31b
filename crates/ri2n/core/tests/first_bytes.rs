//! The first bytes of a client's stream go with OPEN.

use ri2n::{
    Arrival, Batch, CloseReason, Connection, Key, Path, Settings, StreamState, Time,
    handshake::{Client, Connected, Privacy, Protection, Response, Server, Terms},
    wire::handshake::{self as wire, Body, FIRST_BYTES_MAX},
};
use std::{net::SocketAddr, time::Duration};

const NOW: Time = Time::from_nanos(50_000_000_000);

fn from() -> SocketAddr {
    "10.0.0.1:7".parse().unwrap()
}

fn path() -> Path {
    Path { local: Some(from().ip()), interface: 0, entropy: 0, remote: "10.0.0.2:7".parse().unwrap() }
}

fn protections() -> [Protection; 3] {
    let key = || Key::from_passphrase("a secret").into();
    let authenticated = Protection { keys: key(), ..Protection::default() };
    let encrypted = Protection { keys: key(), privacy: Privacy::Encrypted, ..Protection::default() };
    [Protection::default(), authenticated, encrypted]
}

/// A client whose OPEN is due, and that OPEN.
fn opening(server: &mut Server, protection: &Protection, bytes: &[u8]) -> (Client, Vec<u8>) {
    let mut client = Client::new([2; 32], Settings::default(), protection.clone(), Vec::new());
    client.begin_with(bytes);
    let hello = client.poll_transmit(NOW).unwrap().to_vec();
    let Response::Reply(cookie) = server.handle_datagram(NOW, from(), &hello) else { panic!("a cookie is due") };
    assert!(client.handle_datagram(NOW, path(), &cookie).unwrap().is_none());
    let open = client.poll_transmit(NOW).unwrap().to_vec();
    (client, open)
}

fn accept(server: &mut Server, open: &[u8]) -> (Connection, Vec<u8>) {
    let Response::Open(opening) = server.handle_datagram(NOW, from(), open) else { panic!("the cookie is good") };
    let settings = Settings::default();
    server.accept(NOW, *opening, Terms { seed: [9; 32], port: 9, local: None, offered: Vec::new(), settings })
}

fn received(connection: &Connection) -> Vec<u8> {
    let (head, tail) = connection.peek();
    [head, tail].concat()
}

/// Carries what one end has to send to the other. Returns how many datagrams that is.
fn deliver(now: Time, from: &mut Connection, to: &mut Connection) -> usize {
    let (mut batch, mut count) = (Batch::default(), 0);
    while from.poll_transmit(now, &mut batch) {
        for datagram in batch.datagrams(from) {
            to.handle_datagram(now, Arrival { at: now, from: path().remote }, &datagram);
            count += 1;
        }
    }
    count
}

#[test]
fn the_server_has_them_when_it_accepts_and_the_client_sends_them_no_more() {
    for protection in protections() {
        for length in [1, 53, FIRST_BYTES_MAX] {
            let bytes: Vec<u8> = (1..=length as u8).collect();
            let mut server = Server::new([1; 32], protection.clone());
            let (mut client, open) = opening(&mut server, &protection, &bytes);
            let (mut theirs, answer) = accept(&mut server, &open);
            assert_eq!(received(&theirs), bytes);
            // Repeated, it opens nothing more.
            assert!(matches!(server.handle_datagram(NOW, from(), &open), Response::Reply(again) if again == answer));
            let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
            assert!(ours.is_flushed());
            assert_eq!(deliver(NOW, &mut ours, &mut theirs), 0, "nothing is to be said");
            theirs.consume(NOW, length);
            theirs.write(NOW, b"welcome").unwrap();
            assert_eq!(deliver(NOW, &mut theirs, &mut ours), 1);
            assert_eq!(received(&ours), b"welcome");
            ours.write(NOW, b"more").unwrap();
            assert_eq!(deliver(NOW, &mut ours, &mut theirs), 1, "the link is announced with data");
            assert_eq!(received(&theirs), b"more");
        }
    }
}

#[test]
fn what_the_server_writes_first_goes_with_its_answer() {
    for (protection, carried) in protections().into_iter().zip([true, true, false]) {
        let mut server = Server::new([1; 32], protection.clone());
        let (mut client, open) = opening(&mut server, &protection, b"greetings");
        let Response::Open(opening) = server.handle_datagram(NOW, from(), &open) else { panic!("the cookie is good") };
        let settings = Settings::default();
        let terms = Terms { seed: [9; 32], port: 9, local: None, offered: Vec::new(), settings };
        let (mut theirs, acceptance) = server.begin(NOW, *opening, terms);
        let written: Vec<u8> = (0..100).collect();
        theirs.write(NOW, &written).unwrap();
        let answer = server.answer(NOW, acceptance, &mut theirs);
        assert!(answer.len() <= open.len());
        assert!(matches!(server.handle_datagram(NOW, from(), &open), Response::Reply(again) if again == answer));
        let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
        let count = if carried { FIRST_BYTES_MAX } else { 0 };
        assert_eq!(received(&ours), written[..count]);
        deliver(NOW, &mut theirs, &mut ours);
        assert_eq!(received(&ours), written);
        deliver(NOW + Duration::from_millis(5), &mut ours, &mut theirs);
    }
}

#[test]
fn too_many_are_sent_as_data() {
    for protection in protections() {
        let bytes = [7; FIRST_BYTES_MAX + 1];
        let mut server = Server::new([1; 32], protection.clone());
        let (mut client, open) = opening(&mut server, &protection, &bytes);
        let (mut theirs, answer) = accept(&mut server, &open);
        assert!(received(&theirs).is_empty());
        let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
        deliver(NOW, &mut ours, &mut theirs);
        assert_eq!(received(&theirs), bytes);
    }
}

#[test]
fn a_server_of_an_earlier_release_gets_them_as_data() {
    let mut server = Server::new([1; 32], Protection::default());
    let (mut client, open) = opening(&mut server, &Protection::default(), b"greetings");
    // It reads zeros where they are, and answers as it always has.
    let Body::Open(mut read) = wire::decode(&open).unwrap().body else { panic!("it is an OPEN") };
    let token = wire::client_token(&open).unwrap();
    read.first_bytes.clear();
    let open = wire::encode(token, &Body::Open(read), |_| [0; wire::PROOF_LEN]);
    let (mut theirs, answer) = accept(&mut server, &open);
    assert!(matches!(wire::decode(&answer).unwrap().body, Body::Accept(accept) if accept.first_taken == 0));
    let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
    assert!(!ours.is_flushed());
    deliver(NOW, &mut ours, &mut theirs);
    assert_eq!(received(&theirs), b"greetings");
}

#[test]
fn a_client_that_never_says_more_is_given_up() {
    let mut server = Server::new([1; 32], Protection::default());
    let (_, open) = opening(&mut server, &Protection::default(), b"greetings");
    let (mut silent, _) = accept(&mut server, &open);
    let minute = NOW + Duration::from_secs(60);
    while let Some(at) = silent.poll_timeout() {
        assert!(at <= minute);
        silent.handle_timeout(at);
        while silent.poll_transmit(at, &mut Batch::default()) {}
    }
    assert_eq!(silent.state(), StreamState::Closed(CloseReason::Outage));
    // One that does is not.
    let mut server = Server::new([3; 32], Protection::default());
    let (mut client, open) = opening(&mut server, &Protection::default(), b"greetings");
    let (mut theirs, answer) = accept(&mut server, &open);
    let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
    ours.write(NOW, b"more").unwrap();
    deliver(NOW, &mut ours, &mut theirs);
    theirs.handle_timeout(minute + Duration::from_secs(1));
    assert_eq!(theirs.state(), StreamState::Open);
}

#[test]
fn the_link_is_announced_soon_though_nothing_is_written() {
    let mut server = Server::new([1; 32], Protection::default());
    let (mut client, open) = opening(&mut server, &Protection::default(), b"greetings");
    let (mut theirs, answer) = accept(&mut server, &open);
    let Connected { connection: mut ours, .. } = client.handle_datagram(NOW, path(), &answer).unwrap().unwrap();
    assert_eq!(deliver(NOW, &mut ours, &mut theirs), 0);
    let at = ours.poll_timeout().unwrap();
    assert!(at > NOW && at <= NOW + Duration::from_millis(5));
    ours.handle_timeout(at);
    assert!(deliver(at, &mut ours, &mut theirs) >= 1);
    assert!(theirs.heard_at() == at);
}
