//! Shakes hands with a server by whichever of its addresses answers first.

use crate::{
    config::{Config, LinkChoice},
    interfaces::{interface_of, local_addresses},
    listener::random,
    sys::{self, Block, Inbox, MESSAGES, Socket},
};
use ri2n::{
    Path, Time,
    handshake::{Client, ConnectError, Connected},
    wire::handshake::Address,
};
use std::{io, net::SocketAddr, time::Duration};

/// How long an address has before the next is asked as well; one that works answers within a round trip.
const HEAD_START: Duration = Duration::from_millis(20);
/// How long an address that has answered has before the others go on: a second connection would be opened for nothing.
const LEAD: Duration = Duration::from_millis(200);

/// How long OPEN is repeated before HELLO is said again: a cookie does not live for ever.
const OPENING_MAX: Duration = Duration::from_secs(2);

/// Connects by the first of the addresses that answers. `ours` is told the server.
///
/// # Errors
/// What the last address said, if all refuse; `TimedOut` if none answers in time.
pub(crate) fn shake_hands(
    socket: &Socket,
    servers: &[SocketAddr],
    config: &Config,
    ours: &[Address],
) -> io::Result<(Connected, SocketAddr)> {
    match Race::new(socket, servers, config, ours)?.run(sys::now() + config.connect_timeout, Goal::Connection)? {
        Won::Connected(connected, server) => Ok((*connected, server)),
        Won::Answered => unreachable!("an answer is no connection"),
    }
}

/// Whether one of the addresses answers.
///
/// # Errors
/// If nobody can be asked.
pub(crate) fn is_answered(socket: &Socket, servers: &[SocketAddr], config: &Config) -> io::Result<bool> {
    Ok(Race::new(socket, servers, config, &[])?.run(sys::now() + config.connect_timeout, Goal::Answer).is_ok())
}

/// What a race is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Answer,
    Connection,
}

enum Won {
    Answered,
    Connected(Box<Connected>, SocketAddr),
}

/// One address.
struct Try {
    server: SocketAddr,
    path: Path,
    client: Client,
    begins: Time,
    /// When it answered.
    answered: Option<Time>,
}

struct Race<'a> {
    socket: &'a Socket,
    /// Those that have not failed.
    tries: Vec<Try>,
    /// The address that has answered, and until when it runs alone.
    leader: Option<(SocketAddr, Time)>,
    last_error: io::Error,
}

impl<'a> Race<'a> {
    fn new(socket: &'a Socket, servers: &[SocketAddr], config: &Config, ours: &[Address]) -> io::Result<Self> {
        let began = sys::now();
        let mut race = Self { socket, tries: Vec::new(), leader: None, last_error: io::ErrorKind::TimedOut.into() };
        for server in servers {
            match first_path(*server, config) {
                Ok(path) => {
                    let client = Client::new(random()?, config.settings(), config.protection(), ours.to_vec());
                    let begins = began + HEAD_START * race.tries.len() as u32;
                    race.tries.push(Try { server: *server, path, client, begins, answered: None });
                }
                Err(error) => race.last_error = error,
            }
        }
        Ok(race)
    }

    fn run(mut self, deadline: Time, goal: Goal) -> io::Result<Won> {
        while !self.tries.is_empty() {
            let now = sys::now();
            if now >= deadline {
                let doubtful = self.tries.iter().find_map(|each| each.client.doubtful());
                return Err(doubtful.map_or(self.last_error, refusal));
            }
            self.ask(now);
            let next = self.tries.iter().map(|each| self.next_look(each, now)).min();
            let _ = sys::wait_readable([self.socket.fd()], Some(next.unwrap_or(deadline).min(deadline).since(now)));
            if let Some((connected, server)) = self.listen() {
                return Ok(Won::Connected(Box::new(connected), server));
            }
            if goal == Goal::Answer && self.leader.is_some() {
                return Ok(Won::Answered);
            }
        }
        Err(self.last_error)
    }

    fn next_look(&self, each: &Try, now: Time) -> Time {
        let held =
            self.leader.filter(|_| !may_go_on(self.leader, each.server, now)).map_or(Time::ZERO, |(_, until)| until);
        each.client.poll_timeout().max(each.begins).max(held)
    }

    fn ask(&mut self, now: Time) {
        let mut unreachable = false;
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
            let Some(question) = each.client.poll_transmit(now) else { continue };
            match self.socket.send_to(&each.path, question) {
                Ok(()) => {}
                // What the network said of an earlier question, perhaps of another address.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => unreachable = true,
                Err(error) if error.raw_os_error() == Some(libc::ENETUNREACH) => failed.push((each.server, error)),
                // A full queue or a neighbour that is not known yet: asked again.
                Err(_) => {}
            }
        }
        for (server, error) in failed {
            self.tries.retain(|each| each.server != server);
            self.last_error = error;
        }
        if unreachable {
            sys::with_inbox(|inbox| self.take_unreachable(inbox));
        }
    }

    /// Takes in what came back.
    fn listen(&mut self) -> Option<(Connected, SocketAddr)> {
        let now = sys::now();
        sys::with_inbox(|inbox| {
            match self.socket.receive(inbox, Block::Never, MESSAGES) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.take_unreachable(inbox);
                    return None;
                }
                Err(_) => return None,
            }
            for message in inbox.messages() {
                let Some(at) = self.tries.iter().position(|each| each.path.remote == message.from) else { continue };
                if !may_go_on(self.leader, message.from, now) {
                    continue;
                }
                for datagram in message.bytes.chunks(message.segment) {
                    let each = &mut self.tries[at];
                    match each.client.handle_datagram(now, each.path, datagram) {
                        Ok(Some(connected)) => return Some((connected, each.server)),
                        Ok(None) => {
                            if each.client.is_opening() && each.answered.is_none() {
                                each.answered = Some(now);
                                self.leader = Some((each.server, now + LEAD));
                            }
                        }
                        Err(error) => {
                            self.last_error = refusal(error);
                            self.tries.remove(at);
                            break;
                        }
                    }
                }
            }
            None
        })
    }

    /// Gives up the addresses where nobody listens, as the network says.
    fn take_unreachable(&mut self, inbox: &mut Inbox) {
        while let Some(quoted) = self.socket.take_unreachable(inbox) {
            self.tries.retain(|each| !each.client.has_asked(&quoted));
            self.last_error = io::ErrorKind::ConnectionRefused.into();
        }
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

/// How to reach a server first: as the system would, or by the pair that names it.
fn first_path(server: SocketAddr, config: &Config) -> io::Result<Path> {
    let local = match &config.links {
        LinkChoice::Pairs(pairs) => match pairs.iter().find(|pair| pair.remote == server.ip()) {
            Some(pair) => pair.local,
            None => Socket::source_toward(server)?,
        },
        LinkChoice::Automatic | LinkChoice::Addresses(_) => Socket::source_toward(server)?,
    };
    let interface = interface_of(local, &local_addresses()?);
    Ok(Path { local: Some(local), interface, remote: server })
}
