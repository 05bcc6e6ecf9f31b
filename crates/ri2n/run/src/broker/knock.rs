//! A stream comes into the queue of a program that listens, by a *knock*: the broker connects to the program's TCP listener
//! from [`KNOCK_SOURCE`], and the preload library, which knows that address, claims the stream.
//!
//! ```text
//!  stream ─ greeting ─▶ knock from 127.82.73.50:k ─▶ in the listener's queue ─▶ welcome ─▶ accept() claims k
//!                                                     └ accepted by somebody who does not claim: refused, and plain TCP
//! ```
//! Not every program accepts by the library: one may do it by io_uring or a system call of its own, or leave it to a static
//! child. It would take the knock for a connection on which nothing arrives, while the peer writes to nobody. The kernel tells
//! whether a connection still waits in the queue, so the first stream of a listener is welcomed when it is claimed, or has waited for
//! [`HOLD`]; one that is accepted and not claimed is refused, or reset if it was welcomed, and its listener is left to plain
//! TCP.
//!
//! A listener that claims does so at once, so nobody waits for it: the stream's worker knocks and welcomes, the thread that answers
//! questions hands the stream over. A knock that the queue has no room for, one at a listener that has never claimed, and one that has
//! waited for [`LOOKED_AFTER`] have a thread that watches what becomes of them.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ri2n_io::Stream;
use ri2n_session::KNOCK_SOURCE;
use socket2::{Domain, SockAddr, Socket, Type};

use super::{
    Broker,
    announced::{Announced, Knock, Step},
    greet::refusal,
    held::Held,
    listening::{self, Acceptor},
    warn,
};
use crate::{
    express::{Express, Proposal},
    greeting::{Greeting, Offer},
    sockets::{self, Owner},
};

/// How long the program's queue may be full.
pub(super) const KNOCK_MAX: Duration = Duration::from_secs(10);
/// How long the first stream of a listener waits in its queue before it is welcomed.
const HOLD: Duration = Duration::from_millis(100);
/// How long the library may take to claim what the program has accepted; on a machine that is overloaded it may take longer,
/// and the listener is then taken back.
const CLAIM_MAX: Duration = Duration::from_secs(2);
/// First and longest time between two looks at whether the program has accepted.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(2));
/// How long a knock waits at a listener that is known to claim before a thread watches it.
const LOOKED_AFTER: Duration = Duration::from_millis(250);

/// A socket that is bound to where the knock comes from, and that address. It does not wait.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn prepare(target: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let ip: IpAddr = if target.is_ipv4() { KNOCK_SOURCE.into() } else { Ipv6Addr::LOCALHOST.into() };
    let knock = Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), None)?;
    knock.bind(&SockAddr::from(SocketAddr::new(ip, 0)))?;
    let from = knock.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((knock, from))
}

/// Which listener is knocked at.
#[derive(Clone, Copy)]
pub(super) struct Door {
    /// Where the program listens.
    pub(super) listener: SocketAddr,
    /// Where it is reached from here.
    pub(super) target: SocketAddr,
    /// Whether it has ever claimed a stream.
    pub(super) acceptor: Acceptor,
}

/// Knocks without waiting.
///
/// # Errors
/// If the peer cannot be told, or no thread can be had that waits.
pub(super) fn announce(
    broker: &Arc<Broker>,
    stream: Stream,
    greeting: Greeting,
    (socket, from): (Socket, SocketAddr),
    door: Door,
    held: Held,
) -> io::Result<()> {
    let (ours, express) = meet(broker, &greeting);
    let knock = Arc::new(Knock::new(socket, from, stream, ours));
    // The program may claim before `connect` returns here.
    let (listener, since) = (door.listener, Instant::now());
    let announced = Announced { greeting, listener, knock: Arc::clone(&knock), express, since, held };
    broker.table().announced.insert(from, announced);
    match (connect(&knock.socket, door.target), door.acceptor) {
        (Ok(Progress::Done), Acceptor::Claims) => knock.welcome(),
        (Ok(progress), _) => {
            knock.begin_watch();
            let (watching, watched) = (Arc::clone(broker), Arc::clone(&knock));
            let watch = move || {
                let knocked = match progress {
                    Progress::Done => Ok(()),
                    Progress::Waits => wait_for_connection(&watched.socket),
                };
                let told = match knocked {
                    Ok(()) => see_through(&watching, &watched, door),
                    Err(error) => turn_away(&watching, &watched, &error),
                };
                if let Err(error) = told {
                    warn(&format!("a peer's connection: {error}"));
                }
            };
            broker.threads.run(watch).or_else(|error| turn_away(broker, &knock, &error))
        }
        (Err(error), _) => turn_away(broker, &knock, &error),
    }
}

/// Has threads watch knocks that wait for long.
pub(super) fn look_after(broker: &Arc<Broker>) {
    let now = Instant::now();
    let late: Vec<(Arc<Knock>, SocketAddr)> = {
        let table = broker.table();
        let late = table.announced.values().filter(|announced| now.duration_since(announced.since) >= LOOKED_AFTER);
        late.map(|announced| (Arc::clone(&announced.knock), announced.listener)).collect()
    };
    for (knock, listener) in late {
        // What nobody is there to watch now is seen to at the next look.
        let Ok(Some(target)) = knock.socket.peer_addr().map(|target| target.as_socket()) else { continue };
        if knock.begin_watch() {
            let watching = Arc::clone(broker);
            let door = Door { listener, target, acceptor: Acceptor::Claims };
            let _ = broker.threads.run(move || {
                let fate = Watch { knock: &knock, near: target }.until(None);
                conclude(&watching, &knock, door, fate);
            });
        }
    }
}

/// How far a connection is that is being made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    /// The queue has no room.
    Waits,
}

/// Connects within this machine, which is done at once unless the queue is full.
fn connect(socket: &Socket, target: SocketAddr) -> io::Result<Progress> {
    let target = SockAddr::from(target);
    for _ in 0..2 {
        match socket.connect(&target) {
            Ok(()) => return Ok(Progress::Done),
            // The handshake is through once the call returns; another tells.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Progress::Waits)
}

fn wait_for_connection(socket: &Socket) -> io::Result<()> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    let timeout = PollTimeout::try_from(KNOCK_MAX).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, timeout) {
        Ok(ready) if ready > 0 => socket.take_error()?.map_or(Ok(()), Err),
        _ => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// The program cannot be reached.
fn turn_away(broker: &Broker, knock: &Knock, error: &io::Error) -> io::Result<()> {
    let announced = broker.table().announced.remove(&knock.from);
    drop(announced);
    knock.refuse(refusal(error))
}

/// Waits until a stream that has knocked is claimed, or the program closes, or accepts without claiming.
fn see_through(broker: &Arc<Broker>, knock: &Knock, door: Door) -> io::Result<()> {
    let watch = Watch { knock, near: door.target };
    let mut fate = match door.acceptor {
        Acceptor::Unknown => watch.until(Some(HOLD)),
        Acceptor::Claims => Fate::Waits,
    };
    let told = if fate == Fate::Taken { knock.refuse(libc::ECONNREFUSED) } else { knock.welcome() };
    if told.is_ok() && fate == Fate::Waits {
        fate = watch.until(None);
    }
    conclude(broker, knock, door, fate);
    told
}

fn conclude(broker: &Broker, knock: &Knock, door: Door, fate: Fate) {
    // Taken out first: what is dropped with it looks into the table.
    let unclaimed = broker.table().announced.remove(&knock.from);
    if let Some(unclaimed) = unclaimed {
        if fate == Fate::Taken {
            broker.table().note_taken(knock.from, door.listener);
            listening::leave_to_tcp(broker, door.listener);
        }
        if knock.step() != Step::Refused {
            knock.stream.reset();
        }
        drop(unclaimed);
    }
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

/// What became of a knock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The library has claimed the stream.
    Claimed,
    /// The program has accepted it without the library.
    Taken,
    /// It is still in the queue.
    Waits,
    /// The program has closed its listener, or the knock in exchange for the stream.
    Gone,
}

struct Watch<'a> {
    knock: &'a Knock,
    near: SocketAddr,
}

impl Watch<'_> {
    /// Watches until something becomes of the knock, or so long in the queue.
    fn until(&self, hold: Option<Duration>) -> Fate {
        let (began, mut accepted, mut pause) = (Instant::now(), None, LOOKS.0);
        loop {
            if let Some(fate) = self.sleep(pause) {
                return fate;
            }
            pause = (pause * 2).min(LOOKS.1);
            match sockets::owner(self.near, self.knock.from) {
                Ok(Some(Owner::Program)) => {
                    let since: Instant = *accepted.get_or_insert_with(Instant::now);
                    let left = CLAIM_MAX.saturating_sub(since.elapsed());
                    if left.is_zero() {
                        return Fate::Taken;
                    }
                    pause = pause.min(left);
                    continue;
                }
                // The kernel may not tell: then it is in the queue for all that is known.
                Ok(Some(Owner::Nobody)) | Err(_) => {}
                Ok(None) => return Fate::Gone,
            }
            match hold.map(|hold| hold.saturating_sub(began.elapsed())) {
                Some(left) if left.is_zero() => return Fate::Waits,
                Some(left) => pause = pause.min(left),
                None => {}
            }
        }
    }

    /// Sleeps until something happens at the knock, for `pause` at most.
    fn sleep(&self, pause: Duration) -> Option<Fate> {
        let is_claimed = || (self.knock.step() == Step::Claimed).then_some(Fate::Claimed);
        let mut fds = [PollFd::new(self.knock.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(pause.max(LOOKS.0)).unwrap_or(PollTimeout::MAX);
        if !matches!(poll(&mut fds, timeout), Ok(ready) if ready > 0) {
            return is_claimed();
        }
        is_claimed().or_else(|| {
            // The library never writes to a knock.
            let mut byte = [std::mem::MaybeUninit::uninit()];
            let written = matches!(self.knock.socket.peek(&mut byte), Ok(count) if count > 0);
            Some(if written { Fate::Taken } else { Fate::Gone })
        })
    }
}
