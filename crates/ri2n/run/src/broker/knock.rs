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
    announced::{Announced, Ends, Turn},
    greet::{answer, refusal},
    held::Held,
    listening::{self, Acceptor},
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
/// The first where the listener is known to claim, which it does sooner.
const FIRST_LOOK_CLAIMS: Duration = Duration::from_millis(250);

/// A socket that is bound to where the knock comes from, and that address.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn prepare(target: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let ip: IpAddr = if target.is_ipv4() { KNOCK_SOURCE.into() } else { Ipv6Addr::LOCALHOST.into() };
    let knock = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
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

/// Knocks, and waits until the stream is claimed, or the program closes, or accepts without claiming.
///
/// # Errors
/// If the peer cannot be told.
pub(super) fn announce(
    broker: &Arc<Broker>,
    stream: &Stream,
    greeting: Greeting,
    (knock, from): (Socket, SocketAddr),
    door: Door,
    held: Held,
) -> io::Result<()> {
    let turn = Arc::new(Turn::new()?);
    let ends = Ends(&turn);
    // The program may claim before `connect` returns here.
    let (ours, express) = meet(broker, &greeting);
    let announced =
        Announced { stream: stream.clone(), greeting, listener: door.listener, turn: Arc::clone(&turn), express, held };
    broker.table().announced.insert(from, announced);
    let connected = knock.connect_timeout(&SockAddr::from(door.target), KNOCK_MAX);
    let watch = Watch { knock: &knock, near: door.target, from, turn: &turn, acceptor: door.acceptor };
    let mut fate = match (&connected, door.acceptor) {
        (Ok(()), Acceptor::Unknown) => watch.until(Some(HOLD)),
        _ => Fate::Waits,
    };
    let answered = match (&connected, fate) {
        (Err(error), _) => answer(stream, Err(refusal(error))),
        (Ok(()), Fate::Taken) => answer(stream, Err(libc::ECONNREFUSED)),
        (Ok(()), _) => answer(stream, Ok(ours)),
    };
    drop(ends);
    let refused = fate == Fate::Taken;
    if connected.is_ok() && answered.is_ok() && fate == Fate::Waits {
        fate = watch.until(None);
    }
    if fate == Fate::Claimed {
        // Closed by a reset, which leaves no state behind: thousands a second would use up the ports for a minute each.
        let _ = knock.set_linger(Some(Duration::ZERO));
    }
    // Taken out first: what is dropped with it looks into the table.
    let unclaimed = broker.table().announced.remove(&from);
    if let Some(unclaimed) = unclaimed {
        if fate == Fate::Taken {
            broker.table().note_taken(from, door.listener);
            listening::leave_to_tcp(broker, door.listener);
        }
        if connected.is_ok() && !refused {
            stream.reset();
        }
        drop(unclaimed);
    }
    answered
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
    knock: &'a Socket,
    near: SocketAddr,
    from: SocketAddr,
    turn: &'a Turn,
    acceptor: Acceptor,
}

impl Watch<'_> {
    /// Watches until something becomes of the knock, or so long in the queue.
    fn until(&self, hold: Option<Duration>) -> Fate {
        let (began, mut accepted) = (Instant::now(), None);
        let mut pause = match self.acceptor {
            Acceptor::Unknown => LOOKS.0,
            Acceptor::Claims => FIRST_LOOK_CLAIMS,
        };
        loop {
            if let Some(fate) = self.sleep(pause) {
                return fate;
            }
            pause = (pause * 2).min(LOOKS.1);
            match sockets::owner(self.near, self.from) {
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
        let mut fds = [
            PollFd::new(self.turn.claimed.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.knock.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = PollTimeout::try_from(pause.max(LOOKS.0)).unwrap_or(PollTimeout::MAX);
        if !matches!(poll(&mut fds, timeout), Ok(ready) if ready > 0) {
            return None;
        }
        if fds[0].any() == Some(true) {
            return Some(Fate::Claimed);
        }
        // The library never writes to a knock.
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let written = matches!(self.knock.peek(&mut byte), Ok(count) if count > 0);
        Some(if written { Fate::Taken } else { Fate::Gone })
    }
}
