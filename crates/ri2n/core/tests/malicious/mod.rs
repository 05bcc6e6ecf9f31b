//! A peer that knows the token and sends whatever it likes: bytes are read as its deeds. The fuzz target `ri2n_peer` runs it too.

use ri2n::{
    Arrival, Batch, Carrier, Connection, LinkId, LinkTerms, Path, Settings, Time,
    handshake::{Client, Privacy, Protection, Response, Server, Terms},
    wire::{
        handshake::{self, Address, Body},
        packet::{self, End, Header, Width},
    },
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Receive buffers.
const BUFFER: usize = 64 << 10;
/// Datagrams that an end may want to send at once: far more than a window and all control frames.
const DATAGRAMS_MAX: usize = 2000;
/// After how many rounds no timer may be due.
const ROUNDS_MAX: usize = 3;

fn address(node: u8, link: u8) -> Address {
    Address { ip: Ipv4Addr::new(10, link, 0, node).into(), prefix: 24, mtu: 1500, priority: link % 2 }
}

/// Both ends of a connection and the tokens of packets to them; those of an encrypted one are not seen.
fn connected(now: Time, privacy: Privacy) -> (Connection, Connection, [u64; 2]) {
    let protection = match privacy {
        Privacy::Authenticated => Protection::default(),
        Privacy::Encrypted => Protection { keys: ri2n::Key::new([9; 32]).into(), privacy, ..Protection::default() },
    };
    let settings = Settings { send_buffer: BUFFER, receive_buffer: BUFFER, ..Settings::default() };
    let told = (0..3).map(|link| address(1, link)).collect();
    let mut client = Client::new([1; 32], settings.clone(), protection.clone(), told);
    let mut server = Server::new([2; 32], protection);
    let from = SocketAddr::new(address(1, 0).ip, 7);
    let path = Path { local: Some(from.ip()), interface: 0, entropy: 0, remote: SocketAddr::new(address(2, 0).ip, 7) };
    let hello = client.poll_transmit(now).expect("a HELLO").to_vec();
    let Response::Reply(cookie) = server.handle_datagram(now, from, &hello) else { panic!("a cookie is due") };
    assert!(client.handle_datagram(now, path, &cookie).expect("a cookie").is_none());
    let open = client.poll_transmit(now).expect("an OPEN").to_vec();
    let Response::Open(opening) = server.handle_datagram(now, from, &open) else { panic!("the cookie is good") };
    let offered = (0..3).map(|link| (address(2, link), 1)).collect();
    let terms = Terms { seed: [3; 32], port: 7, local: Some(path.remote.ip()), offered, settings };
    let (theirs, accept) = server.accept(now, *opening, terms);
    let read = handshake::decode(&accept).expect("an ACCEPT");
    let server_token = if let Body::Accept(accept) = &read.body { accept.server_token } else { 0 };
    let tokens = [read.client_token, server_token];
    let mut ours = client.handle_datagram(now, path, &accept).expect("no refusal").expect("an ACCEPT").connection;
    for link in 1..3 {
        let path = Path {
            local: Some(address(1, link).ip),
            interface: 0,
            entropy: 0,
            remote: SocketAddr::new(address(2, link).ip, 7),
        };
        ours.add_link(now, path, LinkTerms { address: link, datagram_max: 1472, priority: link % 2 });
    }
    (ours, theirs, tokens)
}

/// Takes bytes off the front; zeros beyond the end.
struct Deeds<'a>(&'a [u8]);

impl Deeds<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().map_or((0, self.0), |(byte, rest)| (*byte, rest));
        self.0 = rest;
        byte
    }

    /// Small numbers mostly, and now and then any.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..=199 => u64::from(byte),
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = usize::from(self.byte()).min(most).min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes.to_vec()
    }
}

/// Does what the bytes say. Nothing may panic, neither end may hold or send without bound, and timers that are due must pass.
/// Returns how many of the forged packets were believed.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut believed = 0;
    let mut now = Time::from_nanos(50_000_000_000);
    let mut deeds = Deeds(data);
    let privacy = if deeds.byte() % 4 == 0 { Privacy::Encrypted } else { Privacy::Authenticated };
    let (ours, theirs, tokens) = connected(now, privacy);
    let mut ends = [ours, theirs];
    while !deeds.0.is_empty() {
        let what = deeds.byte();
        let who = usize::from(what & 1);
        let from = SocketAddr::new(address(2 - who as u8, what >> 6).ip, 7);
        match what >> 1 & 7 {
            0..=3 => {
                let data =
                    (what & 0x10 != 0).then(|| (deeds.number(), if what & 0x20 != 0 { End::Fin } else { End::Open }));
                let header = Header { link: what >> 6, token: tokens[who], number: deeds.number(), data };
                let control = deeds.bytes(80);
                let mut bytes = Vec::new();
                packet::encode(&mut bytes, if what & 2 == 0 { Width::Narrow } else { Width::Wide }, &header, &control);
                bytes.extend(deeds.bytes(200));
                let rejected = ends[who].rejected();
                ends[who].handle_datagram(now, Arrival { at: now, from }, &bytes);
                believed += u64::from(ends[who].rejected() == rejected);
            }
            4 => {
                let bytes = deeds.bytes(255);
                // A closed connection takes nothing more.
                let _ = ends[who].write(now, &bytes);
                if what & 0x10 != 0 {
                    ends[who].shutdown_write();
                }
            }
            5 => {
                let mut memory = [0; 300];
                let _ = ends[who].read(now, &mut memory);
                ends[who].handle_carrier(
                    now,
                    LinkId(what >> 6),
                    if what & 0x10 == 0 { Carrier::Up } else { Carrier::Down },
                );
            }
            6 => {
                now = now + Duration::from_micros(1) * (deeds.byte().into()) * if what & 0x10 == 0 { 1 } else { 10_000 }
            }
            _ => {
                let address = address(2, deeds.byte() % 32);
                ends[1].offer(address, 1, &[]);
                for (index, offered) in ends[0].take_offers() {
                    let path = Path { local: None, interface: 0, entropy: 0, remote: SocketAddr::new(offered.ip, 7) };
                    let terms =
                        LinkTerms { address: index, datagram_max: offered.datagram_max(), priority: offered.priority };
                    if ends[0].add_link(now, path, terms).is_none() {
                        ends[0].move_link(now, LinkId(what >> 5), path, terms);
                    }
                }
            }
        }
        let way = match what & 0x88 {
            0x80 => Way::Refused,
            0 => Way::Lost,
            _ => Way::Delivered,
        };
        exchange(now, &mut ends, way);
    }
    believed
}

/// What becomes of what both ends send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Delivered,
    Lost,
    /// A queue of the machine itself is full.
    Refused,
}

/// Has both ends do what is due, and perhaps hands each what the other sends.
fn exchange(now: Time, ends: &mut [Connection; 2], way: Way) {
    for who in 0..2 {
        let mut sent = Vec::new();
        // What is sent may make another timer due at once, as when an idle connection has something to say again.
        for _ in 0..ROUNDS_MAX {
            if ends[who].poll_timeout().is_some_and(|at| now >= at) {
                ends[who].handle_timeout(now);
            }
            let mut batch = Batch::default();
            while ends[who].poll_transmit(now, &mut batch) {
                sent.extend(batch.datagrams(&ends[who]).into_iter().map(|bytes| (batch.path, bytes)));
                assert!(sent.len() < DATAGRAMS_MAX, "an end never stops sending");
                if way == Way::Refused {
                    ends[who].handle_refused(now, &batch);
                }
            }
        }
        let due = ends[who].poll_timeout();
        assert!(due.is_none_or(|at| at > now), "a timer that is due stays due: {due:?} at {now:?}, {:#?}", ends[who]);
        assert!(ends[who].readable() <= BUFFER && ends[who].links().len() <= ri2n::LINKS_MAX);
        if way == Way::Delivered {
            for (path, bytes) in sent {
                let from = SocketAddr::new(path.local.unwrap_or(address(1 + who as u8, 0).ip), 7);
                ends[1 - who].handle_datagram(now, Arrival { at: now, from }, &bytes);
            }
        }
    }
}
