//! A program listens, and accepts.
//!
//! The program's TCP listener stays what it is, so peers without RI2N reach it as ever, and polling, prefork servers and
//! inherited listeners work by themselves. A stream of RI2N is put into the same queue by a *knock*: the broker connects
//! to the listener from [`KNOCK_SOURCE`], and the preload library, which knows that address, claims the stream.
//!
//! ```text
//!  stream ─ greeting ─▶ knock from 127.82.73.50:k ─▶ in the listener's queue ─▶ welcome ─▶ accept() claims k
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ri2n_io::{Listener, Stream};
use ri2n_session::{Answer, KNOCK_SOURCE, Name, Request, Verdict};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{Broker, connect::read_exact, warn};
use crate::{
    express::{Express, Proposal},
    greeting::{GREETING_BYTES, Greeting, Offer, encode_welcome},
    line::Line,
    pair::{self, Pair},
    relay::{self, Far, Near},
};

/// How long a new stream may take to say whom it wants.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// How long the program's queue may be full.
const KNOCK_MAX: Duration = Duration::from_secs(10);
/// How often, and how far apart, a UDP port is tried that another is just giving up.
const BIND_TRIES: u32 = 10;
const BIND_PAUSE: Duration = Duration::from_millis(200);

/// A UDP port that is listened at, for all of the session's TCP listeners of that port.
pub(super) struct Listening {
    listener: Arc<Listener>,
    /// Where programs listen for TCP.
    addresses: BTreeMap<SocketAddr, Delivery>,
}

/// How a stream gets to a program that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The preload library claims it.
    Claim,
    /// The program knows nothing: the knock itself carries the data.
    Relay,
}

/// A stream whose knock is in a program's queue.
pub(super) struct Announced {
    stream: Stream,
    greeting: Greeting,
    /// Locked until the peer has been told that it is welcome.
    welcomed: Arc<Mutex<()>>,
    express: Option<Arc<Express>>,
    held: Held,
}

/// Counts a stream as long as it lives.
pub(super) struct Held(Arc<Broker>);

impl Held {
    /// Of a stream that the table has counted already.
    pub(super) fn new(broker: Arc<Broker>) -> Self {
        Self(broker)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.table().streams -= 1;
    }
}

/// Listens for RI2N where a program listens for TCP.
pub(super) fn begin(broker: &Arc<Broker>, local: SocketAddr, delivery: Delivery) {
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let port = local.port();
    if let Some(listening) = broker.table().listening.get_mut(&port) {
        listening.addresses.insert(local, delivery);
        return;
    }
    if add(broker, local, delivery).is_err() {
        // Somebody else has the port, perhaps a session that is just ending.
        let broker = Arc::clone(broker);
        let _ = thread::Builder::new().name("ri2n-bind".into()).spawn(move || {
            let added = (0..BIND_TRIES).find_map(|_| {
                thread::sleep(BIND_PAUSE);
                add(&broker, local, delivery).ok()
            });
            if added.is_none() {
                warn(&format!("UDP port {port} is taken: peers reach the program by plain TCP alone"));
            }
        });
    }
}

fn add(broker: &Arc<Broker>, local: SocketAddr, delivery: Delivery) -> io::Result<()> {
    let any: IpAddr = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut table = broker.table();
    if let Some(listening) = table.listening.get_mut(&local.port()) {
        listening.addresses.insert(local, delivery);
        return Ok(());
    }
    let listener = Arc::new(Listener::bind(SocketAddr::new(any, local.port()), &broker.settings.protocol)?);
    let (served, accepting) = (Arc::clone(broker), Arc::clone(&listener));
    thread::Builder::new().name("ri2n-accept".into()).stack_size(128 << 10).spawn(move || {
        while let Ok((stream, _)) = accepting.accept() {
            let (broker, port) = (Arc::clone(&served), local.port());
            if broker.table().new_stream().is_none() {
                stream.reset();
                continue;
            }
            let held = Held::new(broker);
            let _ = thread::Builder::new().name("ri2n-knock".into()).stack_size(256 << 10).spawn(move || {
                let broker = Arc::clone(&held.0);
                if let Err(error) = receive(&broker, &stream, port, held) {
                    stream.reset();
                    warn(&format!("a peer's connection: {error}"));
                }
            });
        }
    })?;
    table.listening.insert(local.port(), Listening { listener, addresses: BTreeMap::from([(local, delivery)]) });
    Ok(())
}

/// Listens for RI2N wherever a program of the control group listens for TCP.
pub(super) fn follow_redirected(broker: &Arc<Broker>) {
    let Some(redirect) = &broker.redirect else { return };
    let heard = |address: SocketAddr| {
        if !address.ip().is_loopback() {
            begin(broker, address, Delivery::Relay);
        }
    };
    if let Err(error) = redirect.hear(|| false, heard) {
        warn(&format!("listeners are not heard of any more: {error}"));
    }
}

/// Ends listening where no program listens any more.
pub(super) fn prune(broker: &Broker, still: &BTreeSet<SocketAddr>) {
    let mut table = broker.table();
    table.listening.retain(|_, listening| {
        listening.addresses.retain(|address, _| still.contains(address));
        let keep = !listening.addresses.is_empty();
        if !keep {
            listening.listener.close();
        }
        keep
    });
}

/// Brings a new stream into the queue of the program that it wants.
fn receive(broker: &Arc<Broker>, stream: &Stream, port: u16, held: Held) -> io::Result<()> {
    let greeting = receive_greeting(stream)?;
    let target = broker.table().listening.get(&port).and_then(|listening| listening.find(greeting.target));
    let Some((target, delivery)) = target else { return answer(stream, Err(libc::ECONNREFUSED)) };
    let (knock, from) = prepare_knock(target)?;
    match delivery {
        Delivery::Claim => announce(broker, stream, greeting, (knock, from, target), held),
        Delivery::Relay => {
            if let Some(redirect) = &broker.redirect {
                redirect.announce(from, greeting.source)?;
            }
            match knock.connect_timeout(&SockAddr::from(target), KNOCK_MAX) {
                Ok(()) => {
                    answer(stream, Ok(None))?;
                    let _ = knock.set_tcp_nodelay(true);
                    relay::start(Near::Tcp(knock.into()), Far::Ri2n(stream.clone()), held)
                }
                Err(error) => answer(stream, Err(refusal(&error))),
            }
        }
    }
}

/// Reads who wants whom.
pub(super) fn receive_greeting(stream: &Stream) -> io::Result<Greeting> {
    stream.set_read_timeout(Some(GREETING_MAX));
    let mut bytes = [0; GREETING_BYTES];
    read_exact(stream, &mut bytes)?;
    stream.set_read_timeout(None);
    let greeting = Greeting::decode(&bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Greeting { source: vouched(stream, greeting.source), ..greeting })
}

/// Knocks, and waits until the stream is claimed or the program closes.
fn announce(
    broker: &Arc<Broker>,
    stream: &Stream,
    greeting: Greeting,
    (knock, from, target): (Socket, SocketAddr, SocketAddr),
    held: Held,
) -> io::Result<()> {
    let welcomed = Arc::new(Mutex::new(()));
    let guard = welcomed.lock().unwrap_or_else(PoisonError::into_inner);
    // The program may claim before `connect` returns here.
    let (ours, express) = meet(broker, &greeting);
    let announced = Announced { stream: stream.clone(), greeting, welcomed: Arc::clone(&welcomed), express, held };
    broker.table().announced.insert(from, announced);
    let connected = knock.connect_timeout(&SockAddr::from(target), KNOCK_MAX);
    let result = answer(stream, connected.as_ref().map(|()| ours).map_err(refusal));
    drop(guard);
    if connected.is_ok() && result.is_ok() {
        // Nobody writes to a knock: it is readable when the program has closed it, unclaimed or in exchange for the stream.
        knock.set_nonblocking(false)?;
        let mut fds = [PollFd::new(knock.as_fd(), PollFlags::POLLIN)];
        while poll(&mut fds, PollTimeout::NONE) == Err(nix::Error::EINTR) {}
    }
    // Taken out first: what is dropped with it looks into the table.
    let unclaimed = broker.table().announced.remove(&from);
    if unclaimed.is_some() && connected.is_ok() {
        stream.reset();
    }
    result
}

/// A program has accepted a knock.
pub(super) fn claim(broker: &Arc<Broker>, line: &Line, request: &Request) -> io::Result<()> {
    let (Some(knock), Some(near)) = (request.remote, request.local) else { return Ok(()) };
    let key = SocketAddr::new(knock.ip().to_canonical(), knock.port());
    let announced = broker.table().announced.remove(&key);
    let Some(Announced { stream, greeting, welcomed, express, held }) = announced else {
        return line.answer(&Answer::of(Verdict::Plain), &[]);
    };
    // The program's first bytes must not overtake the welcome.
    drop(welcomed.lock().unwrap_or_else(PoisonError::into_inner));
    let id = broker.table().next_id();
    let as_program_sees = |address: SocketAddr| match (near, address) {
        (SocketAddr::V6(_), SocketAddr::V4(v4)) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        _ => address,
    };
    let (local, remote) = (as_program_sees(greeting.target), as_program_sees(greeting.source));
    let Pair { ours, theirs } = pair::ready(&Name { session: broker.session, id, local, remote })?;
    let answer = Answer { verdict: Verdict::Ready, id, local: Some(local), remote: Some(remote) };
    if let Some(express) = &express {
        broker.table().note_express(id, express);
    }
    line.answer(&answer, &[theirs.as_fd()])?;
    drop(theirs);
    relay::start(Near::Pair(ours, express), Far::Ri2n(stream), held)
}

/// Meets a client's offer of early copies, if it makes one; returns ours, and what comes of both.
fn meet(broker: &Broker, greeting: &Greeting) -> (Option<Offer>, Option<Arc<Express>>) {
    let met = greeting.offer.and_then(|theirs| {
        let proposal = Proposal::new(&broker.settings.protocol, greeting.target.ip())?;
        let ours = proposal.offer()?;
        Some((ours, Arc::new(proposal.meet(greeting.source.ip().to_canonical(), theirs)?)))
    });
    met.unzip()
}

impl Listening {
    /// Which of the listeners a peer means that wants `target`.
    fn find(&self, target: SocketAddr) -> Option<(SocketAddr, Delivery)> {
        let serves = |address: &SocketAddr| match (address.ip(), target.ip()) {
            (IpAddr::V4(own), IpAddr::V4(wanted)) => own.is_unspecified() || own == wanted,
            (IpAddr::V6(own), wanted) => own.is_unspecified() || wanted == own,
            (IpAddr::V4(_), IpAddr::V6(_)) => false,
        };
        self.addresses.iter().find(|(address, _)| serves(address)).map(|(address, delivery)| {
            let ip = match (address.ip().is_unspecified(), target.ip()) {
                (false, _) => address.ip(),
                (true, IpAddr::V4(_)) => Ipv4Addr::LOCALHOST.into(),
                (true, IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
            };
            (SocketAddr::new(ip, target.port()), *delivery)
        })
    }
}

/// A socket that is bound to where the knock comes from, and that address.
fn prepare_knock(target: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let ip: IpAddr = if target.is_ipv4() { KNOCK_SOURCE.into() } else { Ipv6Addr::LOCALHOST.into() };
    let knock = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
    knock.bind(&SockAddr::from(SocketAddr::new(ip, 0)))?;
    let from = knock.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((knock, from))
}

/// What a peer says of itself is believed only if it is one of the addresses that its packets come from.
fn vouched(stream: &Stream, claimed: SocketAddr) -> SocketAddr {
    let status = stream.status();
    let peer = stream.peer_addr();
    let known = |ip: IpAddr| {
        ip == peer.ip().to_canonical() || status.links.iter().any(|link| link.remote.ip().to_canonical() == ip)
    };
    if known(claimed.ip().to_canonical()) { claimed } else { SocketAddr::new(peer.ip().to_canonical(), peer.port()) }
}

pub(super) fn answer(stream: &Stream, result: Result<Option<Offer>, i32>) -> io::Result<()> {
    let mut rest = &encode_welcome(result)[..];
    while !rest.is_empty() {
        let written = stream.write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

pub(super) fn refusal(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::TimedOut { libc::ETIMEDOUT } else { libc::ECONNREFUSED }
}
