//! A simulated world: pipes with a rate, a delay, a buffer and every kind of fault, and nodes that run the protocol on
//! virtual time. Everything follows from the seed.
//!
//! ```text
//!  node 0 ── pipe (rate, delay, buffer, loss, copies, reordering, corruption, largest datagram, up?) ──▶ node 1
//!         ◀──────────────────────────────── pipe ──────────────────────────────────────────────────────
//! ```
#![allow(dead_code)] // each test uses its part

use ri2n::{
    Arrival, Batch, Carrier, Connection, Health, Integrity, Key, LinkId, LinkTerms, Neighbours, Part, Path,
    PathKnowledge, Settings, Target, Time,
    handshake::{Client, Privacy, Protection, Response, Server, Terms},
    wire::handshake::Address,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

/// How long OPEN is repeated before HELLO is said again.
const OPENING_MAX: Duration = Duration::from_secs(2);
/// The port of every node.
pub(crate) const PORT: u16 = 4000;

/// SplitMix64: small, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 * 1.0 < probability
    }

    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.next().to_le_bytes()));
        bytes
    }
}

/// One direction of a cable, with a switch's buffer before it.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    /// Bytes a second.
    pub(crate) rate: f64,
    pub(crate) delay: Duration,
    /// Bytes that wait, at most.
    pub(crate) buffer: f64,
    pub(crate) loss: f64,
    pub(crate) copies: f64,
    /// Share of datagrams that come up to `reordering_delay` later.
    pub(crate) reordering: f64,
    pub(crate) reordering_delay: Duration,
    /// Share of datagrams with a flipped bit.
    pub(crate) corruption: f64,
    /// Largest UDP payload that passes.
    pub(crate) largest: usize,
    pub(crate) is_up: bool,
    pub(crate) free_at: Time,
    pub(crate) dropped: u64,
    pub(crate) passed: u64,
}

impl Pipe {
    pub(crate) fn gigabit() -> Self {
        Self {
            rate: 125e6,
            delay: Duration::from_micros(20),
            buffer: 600e3,
            loss: 0.0,
            copies: 0.0,
            reordering: 0.0,
            reordering_delay: Duration::ZERO,
            corruption: 0.0,
            largest: 1472,
            is_up: true,
            free_at: Time::ZERO,
            dropped: 0,
            passed: 0,
        }
    }

    /// Bytes that wait now.
    pub(crate) fn backlog(&self, now: Time) -> f64 {
        self.free_at.since(now).as_secs_f64() * self.rate
    }

    /// When a datagram of this size comes out, if it does.
    fn pass(&mut self, now: Time, size: usize) -> Option<Time> {
        // 42 bytes of Ethernet, IP and UDP.
        let size = size as f64 + 42.0;
        if !self.is_up || size as usize > self.largest + 42 || self.backlog(now) + size > self.buffer {
            self.dropped += 1;
            return None;
        }
        self.passed += 1;
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(size / self.rate);
        Some(self.free_at + self.delay)
    }
}

/// A datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    /// Whether a system would hand over both as one message: equally long data of one sender.
    fn may_go_with(&self, next: &Self) -> bool {
        let is_plain = |datagram: &Self| !ri2n::wire::handshake::is_handshake(&datagram.bytes);
        let same = |a: &Self, b: &Self| (a.from, a.to, a.bytes.len()) == (b.from, b.to, b.bytes.len());
        same(self, next) && is_plain(self) && is_plain(next)
    }
}

/// What happens at a moment.
enum Event {
    /// A datagram comes out of the pipe before `hop` of its route.
    Arrive {
        datagram: Datagram,
        hop: usize,
    },
    /// A pipe changes.
    Change {
        pipe: usize,
        to: Box<Pipe>,
    },
    /// A port of a node loses or gets its carrier.
    Carrier {
        node: usize,
        link: u8,
        carrier: Carrier,
    },
    /// A node may have something to do.
    Look {
        node: usize,
    },
    /// The node loses its memory.
    Crash {
        node: usize,
    },
    /// A node's processor is taken away, or given back.
    Sleep {
        node: usize,
    },
    Wake {
        node: usize,
    },
    /// Something of the test's own.
    Custom(u64),
}

/// Whether a queue of the sender's own says that it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnQueue {
    Tells,
    IsSilent,
}

/// How the processor of a node is shared with other programs. What arrives meanwhile waits in the system's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sharing {
    /// It is taken away now and then, whatever the node does: microseconds that it runs, and that it does not.
    Naps { awake_us: (u64, u64), asleep_us: (u64, u64) },
    /// A node that waited gets it up to this many microseconds late.
    LateWakes { most_us: u64 },
}

/// A node: an application over a connection.
pub(crate) struct Node {
    pub(crate) connection: Option<Connection>,
    pub(crate) client: Option<Client>,
    /// Since when the client repeats OPEN.
    opening_since: Option<Time>,
    server: Option<Server>,
    pub(crate) settings: Settings,
    pub(crate) addresses: Vec<Address>,
    looks_at: Time,
    pub(crate) app: App,
    /// What the server's address list of links is: remote addresses for the client's further links.
    pub(crate) remotes: Vec<IpAddr>,
    /// Links of the client's first pair of addresses.
    pub(crate) paths: u8,
    pub(crate) failure: Option<String>,
    sharing: Option<Sharing>,
    /// Without its processor until then.
    sleeps_until: Option<Time>,
    /// What arrived while it slept, and when.
    inbox: Vec<(Time, Datagram)>,
}

/// Writes `to_write` bytes of the pattern and checks that what it reads is the peer's.
#[derive(Clone, Debug, Default)]
pub(crate) struct App {
    pub(crate) seed: u64,
    pub(crate) to_write: u64,
    pub(crate) written: u64,
    /// Bytes that a client's stream begins with.
    pub(crate) first: u64,
    pub(crate) peer_seed: u64,
    pub(crate) read: u64,
    pub(crate) finished_reading: bool,
    /// Largest read and write.
    pub(crate) chunk: usize,
    /// Reads nothing before.
    pub(crate) reads_from: Time,
    pub(crate) progressed_at: Time,
    pub(crate) longest_pause: Duration,
    /// Stop writing but do not finish.
    pub(crate) keeps_open: bool,
}

/// The byte of a stream at an offset.
pub(crate) fn pattern(seed: u64, offset: u64) -> u8 {
    let word = (offset / 8).wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).to_le_bytes()[(offset % 8) as usize]
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) chance: Chance,
    pub(crate) pipes: Vec<Pipe>,
    /// From (source address, destination address) to the pipes on the way.
    pub(crate) routes: BTreeMap<(IpAddr, IpAddr), Vec<usize>>,
    /// The same for datagrams with a source port of their link's own, by which that is; without, they go as the others.
    pub(crate) routes_by_entropy: BTreeMap<(IpAddr, IpAddr, u8), Vec<usize>>,
    pub(crate) nodes: Vec<Node>,
    owners: BTreeMap<IpAddr, usize>,
    events: BinaryHeap<Reverse<(Time, u64)>>,
    pending: BTreeMap<u64, Event>,
    sequence: u64,
    pub(crate) protection: Protection,
    /// Copies of datagrams, for tests that replay them.
    pub(crate) recorded: Option<Vec<Datagram>>,
    pub(crate) steps: u64,
    /// Moments of the test's own that passed.
    pub(crate) customs: Vec<u64>,
    /// The first pipe of a way may be a queue of the sender's own, which takes a run whole or not at all.
    pub(crate) own_queue: Option<OwnQueue>,
    /// Runs and single datagrams that such queues did not take, and those that they took.
    pub(crate) refused: u64,
    pub(crate) taken: u64,
    /// What nodes of one machine know of their networks together: even nodes are one machine, odd nodes the other.
    pub(crate) neighbours: Option<BTreeMap<(bool, u8), PathKnowledge>>,
    /// Nodes whose connection had data waiting when they last acted.
    backlogged: BTreeSet<usize>,
    /// Draws the moments at which what a node knows is written down and read back, as where a process hands it to its successor;
    /// without, there are none.
    pub(crate) handovers: Option<Chance>,
}

/// What comes of a value that is written down and read back.
fn written_and_read<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let bytes = rmp_serde::to_vec_named(value).expect("it can be written");
    rmp_serde::from_slice(&bytes).expect("it can be read")
}

pub(crate) fn ip(node: usize, link: usize) -> IpAddr {
    let [.., high, low] = (node + 1).to_be_bytes();
    Ipv4Addr::new(10, link as u8, high, low).into()
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: Time::from_nanos(1_000_000_000_000),
            chance: Chance::new(seed),
            pipes: Vec::new(),
            routes: BTreeMap::new(),
            routes_by_entropy: BTreeMap::new(),
            nodes: Vec::new(),
            owners: BTreeMap::new(),
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            protection: Protection::default(),
            recorded: None,
            steps: 0,
            customs: Vec::new(),
            own_queue: None,
            refused: 0,
            taken: 0,
            neighbours: None,
            backlogged: BTreeSet::new(),
            handovers: None,
        }
    }

    pub(crate) fn with_checksum(mut self) -> Self {
        self.protection.integrity = Integrity::Checksum;
        self
    }

    pub(crate) fn with_key(mut self) -> Self {
        self.protection.keys = Key::new([7; 32]).into();
        self
    }

    pub(crate) fn with_encryption(mut self) -> Self {
        self.protection.privacy = Privacy::Encrypted;
        self.with_key()
    }

    /// A node with an address on each of `links` networks.
    pub(crate) fn add_node(&mut self, links: usize, settings: Settings) -> usize {
        let index = self.nodes.len();
        let addresses = (0..links)
            .map(|link| Address { ip: ip(index, link), prefix: 16, mtu: 1500, priority: 0 })
            .collect::<Vec<_>>();
        for address in &addresses {
            self.owners.insert(address.ip, index);
        }
        self.nodes.push(Node {
            connection: None,
            client: None,
            opening_since: None,
            server: None,
            settings,
            addresses,
            looks_at: Time::NEVER,
            app: App::default(),
            remotes: Vec::new(),
            paths: 1,
            failure: None,
            sharing: None,
            sleeps_until: None,
            inbox: Vec::new(),
        });
        index
    }

    /// Has a node share its processor from now on.
    pub(crate) fn share(&mut self, node: usize, sharing: Sharing) {
        self.nodes[node].sharing = Some(sharing);
        if matches!(sharing, Sharing::Naps { .. }) {
            self.schedule(self.now, Event::Sleep { node });
        }
    }

    /// Whether a node has to wait for its processor; then it acts when it gets it.
    fn waits(&mut self, node: usize) -> bool {
        if self.nodes[node].sleeps_until.is_some() {
            return true;
        }
        let Some(Sharing::LateWakes { most_us }) = self.nodes[node].sharing else { return false };
        self.sleep(node, most_us.min(1), most_us);
        true
    }

    fn sleep(&mut self, node: usize, least_us: u64, most_us: u64) {
        let until = self.now + Duration::from_micros(self.chance.between(least_us, most_us));
        self.nodes[node].sleeps_until = Some(until);
        self.schedule(until, Event::Wake { node });
    }

    fn wake(&mut self, node: usize) {
        self.nodes[node].sleeps_until = None;
        let inbox = std::mem::take(&mut self.nodes[node].inbox);
        for message in inbox.chunk_by(|(_, a), (_, b)| a.may_go_with(b)) {
            let bytes: Vec<u8> = message.iter().flat_map(|(_, datagram)| &datagram.bytes).copied().collect();
            let (at, first) = &message[0];
            self.arrive(node, *at, &Datagram { bytes, ..*first }, first.bytes.len());
        }
        self.act(node);
        if let Some(Sharing::Naps { awake_us: (least, most), .. }) = self.nodes[node].sharing {
            let until = self.now + Duration::from_micros(self.chance.between(least, most));
            self.schedule(until, Event::Sleep { node });
        }
    }

    /// A cable between two nodes on a network: pipes each way.
    pub(crate) fn join(&mut self, a: usize, b: usize, link: usize, pipe: &Pipe) -> (usize, usize) {
        let there = self.add_pipe(pipe.clone());
        let back = self.add_pipe(pipe.clone());
        self.routes.insert((ip(a, link), ip(b, link)), vec![there]);
        self.routes.insert((ip(b, link), ip(a, link)), vec![back]);
        (there, back)
    }

    pub(crate) fn add_pipe(&mut self, pipe: Pipe) -> usize {
        self.pipes.push(pipe);
        self.pipes.len() - 1
    }

    pub(crate) fn at(&mut self, time: Time, event_pipe: usize, to: Pipe) {
        self.schedule(time, Event::Change { pipe: event_pipe, to: Box::new(to) });
    }

    pub(crate) fn carrier_at(&mut self, time: Time, node: usize, link: u8, carrier: Carrier) {
        self.schedule(time, Event::Carrier { node, link, carrier });
    }

    pub(crate) fn crash_at(&mut self, time: Time, node: usize) {
        self.schedule(time, Event::Crash { node });
    }

    pub(crate) fn custom_at(&mut self, time: Time, number: u64) {
        self.schedule(time, Event::Custom(number));
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence)));
        self.pending.insert(self.sequence, event);
    }

    /// Has a node listen.
    pub(crate) fn listen(&mut self, node: usize) {
        let secret = self.chance.bytes();
        self.nodes[node].server = Some(Server::new(secret, self.protection.clone()));
    }

    /// Has a node connect to another.
    pub(crate) fn connect(&mut self, from: usize, to: usize) {
        let seed = self.chance.bytes();
        let remotes = self.nodes[to].addresses.iter().map(|address| address.ip).collect();
        let node = &mut self.nodes[from];
        let mut client = Client::new(seed, node.settings.clone(), self.protection.clone(), node.addresses.clone());
        let first = node.app.first.min(node.app.to_write);
        client.begin_with(&(0..first).map(|offset| pattern(node.app.seed, offset)).collect::<Vec<u8>>());
        node.client = Some(client);
        node.remotes = remotes;
        self.look_soon(from);
    }

    pub(crate) fn look_soon(&mut self, node: usize) {
        let now = self.now;
        self.schedule(now, Event::Look { node });
    }

    /// Puts a datagram on its way.
    pub(crate) fn send(&mut self, datagram: Datagram) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(datagram.clone());
        }
        self.forward(datagram, 0);
    }

    /// The pipes on the way from one end to another.
    fn route(&self, from: SocketAddr, to: SocketAddr) -> &[usize] {
        let (ends, entropy) = ((from.ip(), to.ip()), from.port().wrapping_sub(PORT) as u8);
        let by_entropy = self.routes_by_entropy.get(&(ends.0, ends.1, entropy));
        by_entropy.or_else(|| self.routes.get(&ends)).map_or(&[], Vec::as_slice)
    }

    fn forward(&mut self, mut datagram: Datagram, hop: usize) {
        let Some(pipe) = self.route(datagram.from, datagram.to).get(hop).copied() else { return };
        let pipe = &mut self.pipes[pipe];
        let (chance, now) = (&mut self.chance, self.now);
        if chance.happens(pipe.loss) {
            pipe.dropped += 1;
            return;
        }
        let mut arrivals = Vec::new();
        arrivals.extend(pipe.pass(now, datagram.bytes.len()));
        if chance.happens(pipe.copies) {
            arrivals.extend(pipe.pass(now, datagram.bytes.len()));
        }
        if chance.happens(pipe.corruption) && !datagram.bytes.is_empty() {
            let bit = chance.below(datagram.bytes.len() as u64 * 8);
            datagram.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        let (reordering, most) = (pipe.reordering, pipe.reordering_delay);
        for mut at in arrivals {
            if self.chance.happens(reordering) {
                at = at + Duration::from_nanos(self.chance.below(most.as_nanos() as u64));
            }
            self.schedule(at, Event::Arrive { datagram: datagram.clone(), hop: hop + 1 });
        }
    }

    /// Runs until `until`, or until `done` says so. Returns whether it did.
    pub(crate) fn run(&mut self, until: Time, mut done: impl FnMut(&Self) -> bool) -> bool {
        while let Some(Reverse((time, sequence))) = self.events.peek().copied() {
            if time > until {
                break;
            }
            self.events.pop();
            self.now = self.now.max(time);
            self.steps += 1;
            let Some(event) = self.pending.remove(&sequence) else { continue };
            match event {
                Event::Arrive { datagram, hop } => {
                    let hops = self.route(datagram.from, datagram.to).len();
                    if hop < hops {
                        self.forward(datagram, hop);
                    } else if let Some(node) = self.owners.get(&datagram.to.ip()).copied() {
                        let now = self.now;
                        if self.waits(node) {
                            self.nodes[node].inbox.push((now, datagram));
                        } else {
                            self.arrive(node, now, &datagram, datagram.bytes.len());
                            self.act(node);
                        }
                    }
                }
                Event::Change { pipe, to } => {
                    let (free_at, dropped, passed) =
                        (self.pipes[pipe].free_at, self.pipes[pipe].dropped, self.pipes[pipe].passed);
                    self.pipes[pipe] = Pipe { free_at, dropped, passed, ..*to };
                }
                Event::Carrier { node, link, carrier } => {
                    if let Some(connection) = &mut self.nodes[node].connection {
                        connection.handle_carrier(self.now, LinkId(link), carrier);
                    }
                    self.act(node);
                }
                Event::Look { node } => {
                    if self.nodes[node].looks_at <= self.now {
                        self.nodes[node].looks_at = Time::NEVER;
                    }
                    if !self.waits(node) {
                        self.act(node);
                    }
                }
                Event::Crash { node } => {
                    self.nodes[node].connection = None;
                    self.nodes[node].client = None;
                }
                Event::Sleep { node } => {
                    if let Some(Sharing::Naps { asleep_us: (least, most), .. }) = self.nodes[node].sharing {
                        self.sleep(node, least, most);
                    }
                }
                Event::Wake { node } => self.wake(node),
                Event::Custom(number) => self.customs.push(number),
            }
            if done(self) {
                return true;
            }
        }
        self.now = self.now.max(until);
        false
    }

    /// Hands a node what arrived at that moment, which is earlier if the node slept: datagrams of this length as one message.
    fn arrive(&mut self, index: usize, at: Time, datagram: &Datagram, segment: usize) {
        let now = self.now;
        let path = Path { local: Some(datagram.to.ip()), interface: 0, entropy: 0, remote: datagram.from };
        if ri2n::wire::handshake::is_handshake(&datagram.bytes) {
            if self.nodes[index].client.is_some() {
                self.arrive_at_client(index, path, &datagram.bytes);
            } else if self.nodes[index].server.is_some() {
                self.arrive_at_server(index, datagram);
            }
            return;
        }
        let node = &mut self.nodes[index];
        if let Some(connection) = &mut node.connection {
            // One end always waits to read, the other looks afterwards.
            let mut memory = vec![0; if index % 2 == 0 || !node.app.reads(now) { 0 } else { node.app.chunk }];
            let mut target = Target::new(&mut memory);
            let arrival = Arrival { at, from: datagram.from };
            assert_eq!(datagram.to.port(), PORT, "nobody receives at a port that only chooses a path");
            connection.handle_datagrams(now, arrival, &datagram.bytes, segment.max(1), &mut target);
            let filled = target.filled();
            node.app.take(now, &memory[..filled]);
        }
    }

    fn arrive_at_client(&mut self, index: usize, path: Path, bytes: &[u8]) {
        let now = self.now;
        let node = &mut self.nodes[index];
        let Some(client) = &mut node.client else { return };
        match client.handle_datagram(now, path, bytes) {
            Ok(Some(mut connected)) => {
                for (position, address) in node.addresses.iter().enumerate().skip(1) {
                    let Some(remote) = node.remotes.get(position) else { continue };
                    let listed = connected.addresses.iter().position(|address| address.ip == *remote);
                    let path = Path {
                        local: Some(address.ip),
                        interface: 0,
                        entropy: 0,
                        remote: SocketAddr::new(*remote, connected.port),
                    };
                    let terms = LinkTerms {
                        address: listed.map_or(255, |listed| listed as u8),
                        datagram_max: address.datagram_max(),
                        priority: address.priority,
                    };
                    connected.connection.add_link(now, path, terms);
                }
                for entropy in 1..node.paths {
                    let remote = SocketAddr::new(node.remotes[0], connected.port);
                    let path = Path { local: Some(node.addresses[0].ip), interface: 0, entropy, remote };
                    let terms = LinkTerms { address: 0, datagram_max: node.addresses[0].datagram_max(), priority: 0 };
                    connected.connection.add_link(now, path, terms);
                }
                node.connection = Some(connected.connection);
                node.app.written = node.app.first.min(node.app.to_write);
                node.client = None;
                node.app.progressed_at = now;
            }
            Ok(None) => {}
            Err(error) => {
                node.failure = Some(error.to_string());
                node.client = None;
            }
        }
    }

    fn arrive_at_server(&mut self, index: usize, datagram: &Datagram) {
        let now = self.now;
        let seed = self.chance.bytes();
        let node = &mut self.nodes[index];
        let Some(server) = &mut node.server else { return };
        let answer = match server.handle_datagram(now, datagram.from, &datagram.bytes) {
            Response::Ignore => return,
            Response::Reply(answer) => answer,
            Response::Open(opening) => {
                let offered = node.addresses.iter().map(|address| (*address, 0)).collect();
                let local = Some(datagram.to.ip());
                let terms = Terms { seed, port: PORT, local, offered, settings: node.settings.clone() };
                let (mut connection, acceptance) = server.begin(now, *opening, terms);
                // What it writes at once goes with the answer.
                node.app.act(now, &mut connection);
                let answer = server.answer(now, acceptance, &mut connection);
                node.connection = Some(connection);
                node.app.progressed_at = now;
                answer
            }
        };
        assert!(answer.len() <= datagram.bytes.len(), "an answer longer than its question amplifies");
        self.send(Datagram { from: datagram.to, to: datagram.from, bytes: answer });
    }

    /// Has a node do all that it can now.
    fn hand_over(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.connection = node.connection.as_ref().map(written_and_read);
        if let Some(server) = &mut node.server {
            *server = written_and_read(server);
            server.set_protection(self.protection.clone());
        }
    }

    pub(crate) fn act(&mut self, index: usize) {
        if self.handovers.as_mut().is_some_and(|chance| chance.happens(0.05)) {
            self.hand_over(index);
        }
        let now = self.now;
        let neighbours = Neighbours {
            connections: self.nodes.len() / 2,
            backlogged: self.backlogged.iter().filter(|node| *node % 2 == index % 2).count(),
        };
        let node = &mut self.nodes[index];
        let mut out = Vec::new();
        let mut queues = BTreeMap::new();
        if let Some(client) = &mut node.client {
            let to = SocketAddr::new(node.remotes[0], PORT);
            let from = SocketAddr::new(node.addresses[0].ip, PORT);
            // The cookie may be too old, or have been altered on its way.
            let since = node.opening_since.filter(|_| client.is_opening());
            node.opening_since = client.is_opening().then(|| since.unwrap_or(now));
            if since.is_some_and(|since| now.since(since) > OPENING_MAX) {
                client.restart();
            }
            if let Some(bytes) = client.poll_transmit(now) {
                out.push(Datagram { from, to, bytes: bytes.to_vec() });
            }
            if let Some(error) = client.poll_failure(now) {
                node.failure = Some(error.to_string());
                node.client = None;
            }
        }
        let mut due = node.client.as_ref().map(Client::poll_timeout);
        if let Some(connection) = &mut node.connection {
            if let Some(known) = &mut self.neighbours {
                connection.meet_neighbours(now, neighbours, |path, report| {
                    let IpAddr::V4(remote) = path.remote.ip() else { panic!("{path:?}") };
                    let known = known.entry((index % 2 == 0, remote.octets()[1])).or_default();
                    known.learn(report);
                    *known
                });
            }
            if connection.poll_timeout().is_some_and(|at| now >= at) {
                connection.handle_timeout(now);
            }
            node.app.act(now, connection);
            let mut batch = Batch::default();
            while connection.poll_transmit(now, &mut batch) {
                let port = PORT + u16::from(batch.path.entropy);
                let from = SocketAddr::new(batch.path.local.unwrap_or(node.addresses[0].ip), port);
                let sizes_are_right = |datagrams: &[Vec<u8>]| {
                    let (last, full) = datagrams.split_last().expect("a batch has a datagram");
                    last.len() <= batch.datagram_size && full.iter().all(|bytes| bytes.len() == batch.datagram_size)
                };
                let datagrams = batch.datagrams(connection);
                if let Some(own) = self.own_queue {
                    let route = &self.routes[&(from.ip(), batch.path.remote.ip())];
                    let pipe = &self.pipes[route[0]];
                    let bytes: usize = datagrams.iter().map(|bytes| bytes.len() + 42).sum();
                    let queued = queues.entry(route[0]).or_insert_with(|| pipe.backlog(now));
                    if *queued + bytes as f64 > pipe.buffer {
                        self.refused += 1;
                        if own == OwnQueue::Tells {
                            connection.handle_refused(now, &batch);
                        }
                        continue;
                    }
                    self.taken += 1;
                    *queued += bytes as f64;
                }
                if node.addresses.iter().any(|address| address.priority > 0) {
                    assert_is_preferred(connection, &batch);
                }
                assert!(sizes_are_right(&datagrams), "a run that the system would cut elsewhere");
                out.extend(datagrams.into_iter().map(|bytes| Datagram { from, to: batch.path.remote, bytes }));
            }
            if connection.is_backlogged() {
                self.backlogged.insert(index);
            } else {
                self.backlogged.remove(&index);
            }
            let next = connection.poll_timeout();
            assert!(next.is_none_or(|at| at > now), "a timer that is due stays due: {next:?} at {now:?}");
            due = next;
            if node.app.reads_from > now {
                due = Some(due.map_or(node.app.reads_from, |due| due.min(node.app.reads_from)));
            }
        }
        if let Some(due) = due.filter(|due| *due < node.looks_at) {
            node.looks_at = due;
            self.schedule(due, Event::Look { node: index });
        }
        for datagram in out {
            self.send(datagram);
        }
    }

    /// Has the links of a network have this priority.
    pub(crate) fn set_priority(&mut self, link: usize, priority: u8) {
        for node in &mut self.nodes {
            node.addresses[link].priority = priority;
        }
    }

    pub(crate) fn after(&self, milliseconds: u64) -> Time {
        self.now + Duration::from_millis(milliseconds)
    }
}

/// Data never leave on a link while one of a lower priority number delivers.
fn assert_is_preferred(connection: &Connection, batch: &Batch) {
    let has_data = batch.parts.iter().any(|part| matches!(part, Part::Data(_)));
    let links = connection.links();
    let usable = links.iter().filter(|link| matches!(link.health, Health::Good | Health::Gray));
    let preferred = usable.map(|link| link.priority).min();
    let used = links.iter().find(|link| link.id == batch.link).map(|link| link.priority);
    assert!(!has_data || used == preferred, "data on link {:?} of {links:#?}", batch.link);
}

impl App {
    pub(crate) fn new(now: Time, seeds: (u64, u64), to_write: u64, chunk: usize) -> Self {
        Self { seed: seeds.0, peer_seed: seeds.1, to_write, chunk, progressed_at: now, ..Self::default() }
    }

    fn act(&mut self, now: Time, connection: &mut Connection) {
        let mut buffer = vec![0; self.chunk.max(1)];
        while self.written < self.to_write {
            let most = (self.to_write - self.written).min(buffer.len() as u64) as usize;
            for (index, byte) in buffer[..most].iter_mut().enumerate() {
                *byte = pattern(self.seed, self.written + index as u64);
            }
            match connection.write(now, &buffer[..most]) {
                Ok(count) => self.written += count as u64,
                Err(_) => break,
            }
        }
        if self.written == self.to_write && !self.keeps_open {
            connection.shutdown_write();
        }
        while self.reads(now) {
            match connection.read(now, &mut buffer) {
                Ok(0) => self.finished_reading = true,
                Ok(count) => self.take(now, &buffer[..count]),
                Err(_) => break,
            }
        }
    }

    fn reads(&self, now: Time) -> bool {
        now >= self.reads_from && !self.finished_reading
    }

    fn take(&mut self, now: Time, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        for (index, byte) in bytes.iter().enumerate() {
            let offset = self.read + index as u64;
            assert_eq!(*byte, pattern(self.peer_seed, offset), "byte {offset} of the stream is altered");
        }
        self.read += bytes.len() as u64;
        self.longest_pause = self.longest_pause.max(now.since(self.progressed_at));
        self.progressed_at = now;
    }
}
