//! A program listens, and accepts.
//!
//! The program's TCP listener stays what it is, so peers without RI2N reach it as ever, and polling, prefork servers and
//! inherited listeners work by themselves. A stream of RI2N is put into the same queue by a knock (see `knock`).

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    thread,
    time::Duration,
};

use ri2n_io::{Listener, Stream};
use socket2::SockAddr;

use super::{
    Broker,
    connect::read_exact,
    knock::{self, Door, KNOCK_MAX},
    warn,
};
use crate::{
    greeting::{GREETING_BYTES, Greeting, Offer, encode_welcome},
    relay::{self, Far, Near},
};

/// How long a new stream may take to say whom it wants.
const GREETING_MAX: Duration = Duration::from_secs(5);
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
    Claim(Acceptor),
    /// The program knows nothing: the knock itself carries the data.
    Relay,
}

/// Whether a program accepts by the preload library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acceptor {
    /// It has claimed no stream so far.
    Unknown,
    /// It has claimed one.
    Claims,
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
        self.0.ended.notify_one();
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
            let port = local.port();
            served.wait_for_room();
            let held = Held::new(Arc::clone(&served));
            let _ = served.threads.run(move || {
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

/// A program has claimed a stream of its listener.
pub(super) fn note_claim(broker: &Broker, listener: SocketAddr) {
    let mut table = broker.table();
    let listening = table.listening.get_mut(&listener.port());
    if let Some(delivery) = listening.and_then(|listening| listening.addresses.get_mut(&listener)) {
        *delivery = Delivery::Claim(Acceptor::Claims);
    }
}

/// A program accepts without the preload library: its peers connect by plain TCP from now on.
pub(super) fn leave_to_tcp(broker: &Broker, listener: SocketAddr) {
    let mut table = broker.table();
    let Some(listening) = table.listening.get_mut(&listener.port()) else { return };
    if listening.addresses.remove(&listener).is_none() {
        return;
    }
    if listening.addresses.is_empty() {
        listening.listener.close();
        table.listening.remove(&listener.port());
    }
    drop(table);
    warn(&format!(
        "the program listening at {listener} accepts connections without the preload library (static program, io_uring or raw system call); its peers use plain TCP"
    ));
}

/// Brings a new stream into the queue of the program that it wants.
fn receive(broker: &Arc<Broker>, stream: &Stream, port: u16, held: Held) -> io::Result<()> {
    let greeting = receive_greeting(stream)?;
    let target = broker.table().listening.get(&port).and_then(|listening| listening.find(greeting.target));
    let Some((listener, target, delivery)) = target else { return answer(stream, Err(libc::ECONNREFUSED)) };
    let (knock, from) = knock::prepare(target)?;
    match delivery {
        Delivery::Claim(acceptor) => {
            knock::announce(broker, stream, greeting, (knock, from), Door { listener, target, acceptor }, held)
        }
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

impl Listening {
    /// Which of the listeners a peer means that wants `target`: where it listens, and where it is reached from here.
    fn find(&self, target: SocketAddr) -> Option<(SocketAddr, SocketAddr, Delivery)> {
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
            (*address, SocketAddr::new(ip, target.port()), *delivery)
        })
    }
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
