//! Shakes hands with a server by whichever of its addresses answers first. A worker drives it; nobody need wait.

use crate::{
    config::{Config, LinkChoice},
    dispatch::Kind,
    duty::Seen,
    interfaces::{LocalAddress, interface_of, local_addresses, source_toward},
    links::{Reach, allowed},
    member::{Look, Member},
    paths::Paths,
    ports::Ports,
    shared::{Ends, Sending, Shared},
    status::Role,
    sys::{self, Socket},
    tickets::{self, Between},
    worker::{self, Worker},
};
use ri2n::{
    Arrival, Path, Time,
    handshake::{Client, ConnectError, Connected, identifier},
    wire::handshake::{ADDRESSES_MAX, Address},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long an address has before the next is asked as well; one that works answers within a round trip.
const HEAD_START: Duration = Duration::from_millis(20);
/// How long an address that has answered has before the others go on: a second connection would be opened for nothing.
const LEAD: Duration = Duration::from_millis(200);
/// How long OPEN is repeated before HELLO is said again: a cookie does not live for ever.
const OPENING_MAX: Duration = Duration::from_secs(2);

/// What is called once with how it came out: on the worker's thread, or on the caller's if nobody can be asked.
pub(crate) type Done = Box<dyn FnOnce(io::Result<Option<Arc<Shared>>>) + Send>;

/// What an attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Whether somebody answers.
    Answer,
    /// A connection.
    Connection,
}

/// An attempt to connect.
pub(crate) struct Dial {
    worker: Arc<Worker>,
    socket: Arc<Socket>,
    ids: Vec<u32>,
    /// Nothing once it is over.
    race: Mutex<Option<Race>>,
}

/// One address.
struct Try {
    server: SocketAddr,
    path: Path,
    client: Client,
    between: Between,
    begins: Time,
    /// When it answered.
    answered: Option<Time>,
}

struct Race {
    config: Config,
    goal: Goal,
    ours: Vec<LocalAddress>,
    began: Time,
    /// Those that have not failed.
    tries: Vec<Try>,
    /// The address that has answered, and until when it runs alone.
    leader: Option<(SocketAddr, Time)>,
    last_error: io::Error,
    done: Done,
}

/// Begins to connect to the first of the addresses that answers. The stream begins with `first_bytes`.
pub(crate) fn begin(servers: &[SocketAddr], config: &Config, goal: Goal, first_bytes: &[u8], done: Done) {
    let began = sys::now();
    let start = prepare(servers, config, goal, first_bytes, began);
    let Start { worker, socket, ours, tries, ids, last_error } = match start {
        Ok(start) => start,
        Err(error) => return done(Err(error)),
    };
    let race = Race { config: config.clone(), goal, ours, began, tries, leader: None, last_error, done };
    let dial = Arc::new(Dial { worker, socket, ids, race: Mutex::new(Some(race)) });
    // The first questions leave from here, which saves a turn of the worker.
    dial.worker.add_attempt(&dial.ids, &dial);
    if let Some(next) = dial.ask(began) {
        dial.worker.look_at(dial.ids[0], next);
    }
}

/// Whom to ask, and from where.
struct Start {
    worker: Arc<Worker>,
    socket: Arc<Socket>,
    ours: Vec<LocalAddress>,
    tries: Vec<Try>,
    ids: Vec<u32>,
    /// Why others are not asked.
    last_error: io::Error,
}

fn prepare(servers: &[SocketAddr], config: &Config, goal: Goal, first_bytes: &[u8], began: Time) -> io::Result<Start> {
    let first =
        servers.first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to"))?;
    config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let worker = worker::any()?;
    let socket = worker.socket(&Ports::toward(first.ip(), config.ports.as_ref()))?;
    let choice = config.links_to(first.ip());
    let ours = allowed(&choice, first.ip(), &local_addresses()?);
    let told: Vec<Address> = ours.iter().map(|local| local.address).take(ADDRESSES_MAX).collect();
    let (mut tries, mut ids, mut last_error) = (Vec::new(), Vec::new(), io::ErrorKind::TimedOut.into());
    for server in all_addresses(servers, config).into_iter().filter(|server| server.is_ipv4() == first.is_ipv4()) {
        match first_path(server, &choice) {
            Ok(path) => {
                let seed = worker.seed()?;
                ids.push(identifier(&seed));
                let mut client = Client::new(seed, config.settings(), config.protection(), told.clone());
                client.begin_with(first_bytes);
                let begins = began + HEAD_START * tries.len() as u32;
                let between = Between { server, local: path.local, port: socket.local_addr().port() };
                // The first alone: others are asked whether they answer before anything is opened there.
                if goal == Goal::Connection && tries.is_empty() {
                    if let Some(ticket) = tickets::find(&between, began) {
                        client.present(&ticket);
                    }
                }
                tries.push(Try { server, path, client, between, begins, answered: None });
            }
            Err(error) => last_error = error,
        }
    }
    if tries.is_empty() {
        return Err(last_error);
    }
    Ok(Start { worker: worker.clone(), socket, ours, tries, ids, last_error })
}

impl Dial {
    fn lock(&self) -> MutexGuard<'_, Option<Race>> {
        self.race.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks what is to be asked now. Returns when to look again.
    fn ask(&self, now: Time) -> Option<Time> {
        let mut slot = self.lock();
        let race = slot.as_mut()?;
        let deadline = race.deadline();
        if now < deadline && !race.tries.is_empty() {
            race.ask(&self.socket, now);
        }
        let result = if race.goal == Goal::Answer && race.leader.is_some() {
            Ok(None)
        } else if race.tries.is_empty() {
            Err(std::mem::replace(&mut race.last_error, io::ErrorKind::TimedOut.into()))
        } else if now >= deadline {
            let doubtful = race.tries.iter().find_map(|each| each.client.doubtful());
            let last = std::mem::replace(&mut race.last_error, io::ErrorKind::TimedOut.into());
            Err(doubtful.map_or(last, refusal))
        } else {
            let next = race.tries.iter().map(|each| race.next_look(each, now)).min();
            return Some(next.unwrap_or(deadline).min(deadline));
        };
        self.end(slot, result);
        None
    }

    fn take_answer(&self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let mut slot = self.lock();
        let Some(race) = slot.as_mut() else { return };
        if let Some((connected, server)) = race.take_in(now, from, datagram) {
            let result = self.connect(race, connected, server, now).map(Some);
            self.end(slot, result);
        }
    }

    fn end(&self, mut slot: MutexGuard<'_, Option<Race>>, result: io::Result<Option<Arc<Shared>>>) {
        let race = slot.take();
        drop(slot);
        self.worker.remove_attempt(&self.ids);
        if let Some(race) = race {
            (race.done)(result);
        }
    }

    fn connect(&self, race: &Race, mut connected: Connected, server: SocketAddr, now: Time) -> io::Result<Arc<Shared>> {
        let port = self.socket.local_addr().port();
        let first = connected.connection.links().first().and_then(|link| link.path.local);
        let local = first.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let choice = race.config.links_to(server.ip());
        let mut reach =
            Reach::of_client(choice, server.ip(), race.config.paths, connected.addresses.clone(), connected.port);
        reach.follow(now, &mut connected.connection, &local_addresses()?);
        let reached = |theirs: &&Address| race.ours.iter().any(|local| local.address.reaches(theirs.ip));
        let others = connected.addresses.iter().filter(reached).map(|theirs| theirs.ip).collect();
        let ends = Ends { local: SocketAddr::new(local, port), peer: server, others, reach };
        let shared = Shared::new(&self.worker, &self.socket, Role::Client, ends, connected.connection, Sending::AtOnce);
        // What the stream begins with, if OPEN did not carry it.
        shared.send_waiting(now);
        Ok(shared)
    }
}

impl Member for Dial {
    fn look(&self, now: Time, _seen: Seen, _paths: &mut Paths) -> Look {
        self.ask(now).map_or(Look::Wait, Look::At)
    }

    fn take_in(&self, now: Time, arrival: Arrival, kind: Kind, bytes: &[u8], segment: usize) -> bool {
        if kind != Kind::Handshake {
            return false;
        }
        bytes.chunks(segment).for_each(|datagram| self.take_answer(now, arrival.from, datagram));
        true
    }

    /// Gives up the addresses where nobody listens.
    fn take_unreachable(&self, kind: Kind, quoted: &[u8]) {
        if kind != Kind::Handshake {
            return;
        }
        if let Some(race) = self.lock().as_mut() {
            race.tries.retain(|each| !each.client.has_asked(quoted));
            race.last_error = io::ErrorKind::ConnectionRefused.into();
        }
    }
}

impl Race {
    /// When the attempt ends: later once a server has answered at all.
    fn deadline(&self) -> Time {
        let (all, answer) = (self.config.connect_timeout, self.config.answer_timeout);
        self.began + if self.leader.is_some() { all } else { answer.min(all) }
    }

    fn next_look(&self, each: &Try, now: Time) -> Time {
        let held =
            self.leader.filter(|_| !may_go_on(self.leader, each.server, now)).map_or(Time::ZERO, |(_, until)| until);
        each.client.poll_timeout().max(each.begins).max(held)
    }

    fn ask(&mut self, socket: &Socket, now: Time) {
        let mut failed = Vec::new();
        let leader = self.leader;
        for each in &mut self.tries {
            if let Some(error) = each.client.poll_failure(now) {
                failed.push((each.server, refusal(error)));
                continue;
            }
            if each.answered.is_some_and(|at| now.since(at) > OPENING_MAX) {
                each.client.restart();
                each.answered = None;
            }
            if now < each.begins || !may_go_on(leader, each.server, now) {
                continue;
            }
            let was_ignored = each.client.was_ignored();
            let Some(question) = each.client.poll_transmit(now) else { continue };
            let mut sent = socket.send_to(&each.path, question);
            if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused) {
                // What the network said of somebody's earlier datagram; this one was not sent yet.
                sent = socket.send_to(&each.path, question);
            }
            match sent {
                Err(error) if error.raw_os_error() == Some(libc::ENETUNREACH) => failed.push((each.server, error)),
                // A full queue or a neighbour that is not known yet: asked again.
                Ok(()) | Err(_) => {}
            }
            if each.client.was_ignored() && !was_ignored {
                tickets::note_ignored(&each.between, now);
            }
        }
        for (server, error) in failed {
            self.tries.retain(|each| each.server != server);
            self.last_error = error;
        }
    }

    fn take_in(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<(Connected, SocketAddr)> {
        let at = self.tries.iter().position(|each| each.path.remote == from)?;
        if !may_go_on(self.leader, from, now) {
            return None;
        }
        let each = &mut self.tries[at];
        match each.client.handle_datagram(now, each.path, datagram) {
            Ok(Some(connected)) => return Some((connected, each.server)),
            Ok(None) => {
                if each.client.is_opening() && each.answered.is_none() {
                    if let Some(ticket) = each.client.ticket() {
                        tickets::keep(&each.between, ticket, now);
                    }
                    each.answered = Some(now);
                    self.leader = Some((each.server, now + LEAD));
                }
            }
            Err(error) => {
                self.last_error = refusal(error);
                self.tries.remove(at);
            }
        }
        None
    }
}

/// Whether an address may go on, since no other has answered.
fn may_go_on(leader: Option<(SocketAddr, Time)>, server: SocketAddr, now: Time) -> bool {
    leader.is_none_or(|(leader, until)| leader == server || now >= until)
}

fn refusal(error: ConnectError) -> io::Error {
    let kind = match error {
        ConnectError::Version(_) | ConnectError::Full => io::ErrorKind::ConnectionRefused,
        ConnectError::Guard => io::ErrorKind::PermissionDenied,
    };
    io::Error::new(kind, error)
}

/// The addresses of a server: those given, then the others that the settings know of this peer, in case the first is cut off.
fn all_addresses(servers: &[SocketAddr], config: &Config) -> Vec<SocketAddr> {
    let mut all = servers.to_vec();
    let Some(first) = servers.first() else { return all };
    for pair in config.peer(first.ip()).into_iter().flatten() {
        let other = SocketAddr::new(pair.remote, first.port());
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// How to reach a server first: as the system would, or by the pair that names it.
fn first_path(server: SocketAddr, choice: &LinkChoice) -> io::Result<Path> {
    let local = match choice {
        LinkChoice::Pairs(pairs) => match pairs.iter().find(|pair| pair.remote == server.ip()) {
            Some(pair) => pair.local,
            None => source_toward(server)?,
        },
        LinkChoice::Automatic | LinkChoice::Addresses(_) => source_toward(server)?,
    };
    let interface = interface_of(local, &local_addresses()?);
    Ok(Path { local: Some(local), interface, entropy: 0, remote: server })
}
