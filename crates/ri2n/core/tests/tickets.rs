//! A cookie that a client got begins other connections of its address and port.

use ri2n::{
    Key, Path, Settings, Time,
    handshake::{Client, PRESENTED_MAX, Privacy, Protection, Response, Server, Terms, Ticket},
    wire::handshake::{self as wire, Body},
};
use std::{net::SocketAddr, time::Duration};

const NOW: Time = Time::from_nanos(50_000_000_000);

fn from() -> SocketAddr {
    "10.0.0.1:7".parse().unwrap()
}

fn path() -> Path {
    Path { local: Some(from().ip()), interface: 0, entropy: 0, remote: "10.0.0.2:7".parse().unwrap() }
}

fn client(number: u8, protection: &Protection) -> Client {
    Client::new([number; 32], Settings::default(), protection.clone(), Vec::new())
}

fn is_hello(question: &[u8]) -> bool {
    matches!(wire::decode(question).unwrap().body, Body::Hello { .. })
}

/// Says HELLO, and hears the answer so much later.
fn hello(server: &mut Server, client: &mut Client, after: Duration) {
    let question = client.poll_transmit(NOW).unwrap().to_vec();
    assert!(is_hello(&question));
    let Response::Reply(cookie) = server.handle_datagram(NOW, from(), &question) else { panic!("a cookie is due") };
    assert!(client.handle_datagram(NOW + after, path(), &cookie).unwrap().is_none());
}

fn open(server: &mut Server, client: &mut Client, now: Time) {
    let question = client.poll_transmit(now).unwrap().to_vec();
    assert!(!is_hello(&question));
    let Response::Open(opening) = server.handle_datagram(now, from(), &question) else { panic!("the cookie is good") };
    let settings = Settings::default();
    let terms = Terms { seed: [9; 32], port: 9, local: None, offered: Vec::new(), settings };
    let (_, answer) = server.accept(now, *opening, terms);
    assert!(client.handle_datagram(now, path(), &answer).unwrap().is_some());
}

fn ticket(server: &mut Server, protection: &Protection) -> Ticket {
    let mut first = client(1, protection);
    hello(server, &mut first, Duration::from_millis(1));
    open(server, &mut first, NOW + Duration::from_millis(1));
    first.ticket().expect("the cookie came soon")
}

#[test]
fn another_connection_begins_with_open() {
    let key = || Key::from_passphrase("a secret").into();
    let authenticated = Protection { keys: key(), ..Protection::default() };
    let encrypted = Protection { keys: key(), privacy: Privacy::Encrypted, ..Protection::default() };
    for protection in [Protection::default(), authenticated, encrypted] {
        let mut server = Server::new([1; 32], protection.clone());
        let ticket = ticket(&mut server, &protection);
        let later = NOW + Duration::from_secs(1);
        assert!(ticket.is_good(later) && !ticket.is_good(NOW + Duration::from_secs(3)));
        let mut second = client(2, &protection);
        second.present(&ticket);
        open(&mut server, &mut second, later);
        assert!(!second.was_ignored());
        // From another port it is nothing.
        let mut third = client(3, &protection);
        third.present(&ticket);
        let question = third.poll_transmit(later).unwrap();
        let elsewhere = SocketAddr::new(from().ip(), 8);
        assert!(matches!(server.handle_datagram(later, elsewhere, question), Response::Ignore));
    }
}

#[test]
fn a_server_that_does_not_know_the_cookie_is_asked_for_one() {
    let protection = Protection::default();
    let ticket = ticket(&mut Server::new([1; 32], protection.clone()), &protection);
    let (mut server, mut client, mut now) = (Server::new([2; 32], protection.clone()), client(2, &protection), NOW);
    client.present(&ticket);
    for _ in 0..PRESENTED_MAX {
        let question = client.poll_transmit(now).unwrap();
        assert!(!is_hello(question));
        assert!(matches!(server.handle_datagram(now, from(), question), Response::Ignore));
        assert!(!client.was_ignored());
        now = client.poll_timeout();
    }
    let question = client.poll_transmit(now).unwrap().to_vec();
    assert!(is_hello(&question) && client.was_ignored());
    let Response::Reply(cookie) = server.handle_datagram(now, from(), &question) else { panic!("a cookie is due") };
    assert!(client.handle_datagram(now, path(), &cookie).unwrap().is_none());
    open(&mut server, &mut client, now);
}

#[test]
fn a_cookie_from_far_away_is_not_for_others() {
    let protection = Protection::default();
    let (mut server, mut client) = (Server::new([1; 32], protection.clone()), client(1, &protection));
    hello(&mut server, &mut client, Duration::from_millis(50));
    assert_eq!(client.ticket(), None);
    open(&mut server, &mut client, NOW + Duration::from_millis(50));
}
