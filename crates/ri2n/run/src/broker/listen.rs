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
use socket2::{SockAddr, Socket};

use super::{
    Broker,
    greet::{answer, hear_greeting, refusal},
    held::Held,
    knock::{self, Door, KNOCK_MAX},
    listening::{Delivery, Listening, SavedListening},
    warn,
};
use crate::{
    greeting::Greeting,
    near::Near,
    relay::{self, Far},
};

/// How often, and how far apart, a UDP port is tried that another is just giving up.
const BIND_TRIES: u32 = 10;
const BIND_PAUSE: Duration = Duration::from_millis(200);

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
    let port = local.port();
    let address = SocketAddr::new(any, port);
    let listener = Listener::bind_offering(address, &broker.settings.protocol, taker(broker, port))?;
    let listening = serve(broker, port, listener, BTreeMap::from([(local, delivery)]))?;
    table.listening.insert(port, listening);
    Ok(())
}

/// Goes on listening where the earlier program of this process did.
///
/// # Errors
/// If its socket is not open.
pub(super) fn resume(broker: &Arc<Broker>, saved: SavedListening) -> io::Result<()> {
    let (port, mut table) = (saved.port, broker.table());
    let taker = taker(broker, port);
    let listener = Listener::resume_offering(saved.listener, &broker.settings.protocol, taker)?;
    let listening = serve(broker, port, listener, saved.addresses.into_iter().collect())?;
    table.listening.insert(port, listening);
    Ok(())
}

/// What takes each new stream of a port, unless there is no room.
fn taker(broker: &Arc<Broker>, port: u16) -> impl Fn(Stream, SocketAddr) -> Option<Stream> + Send + Sync + 'static {
    let taking = Arc::clone(broker);
    move |stream, _| {
        if taking.table().new_stream().is_none() {
            return Some(stream);
        }
        receive(&taking, stream, port, Held::new(Arc::clone(&taking)));
        None
    }
}

/// Has those that there was no room for wait until there is.
fn serve(
    broker: &Arc<Broker>,
    port: u16,
    listener: Listener,
    addresses: BTreeMap<SocketAddr, Delivery>,
) -> io::Result<Listening> {
    let listener = Arc::new(listener);
    let (served, accepting) = (Arc::clone(broker), Arc::clone(&listener));
    thread::Builder::new().name("ri2n-accept".into()).stack_size(128 << 10).spawn(move || {
        while let Ok((stream, _)) = accepting.accept() {
            served.wait_for_room();
            receive(&served, stream, port, Held::new(Arc::clone(&served)));
        }
    })?;
    Ok(Listening { listener, addresses })
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

/// Brings a new stream into the queue of the program that it wants, without waiting.
fn receive(broker: &Arc<Broker>, stream: Stream, port: u16, held: Held) {
    let (delivering, peer) = (Arc::clone(broker), stream.clone());
    hear_greeting(broker, &stream, move |greeting| {
        if let Err(error) = greeting.and_then(|greeting| deliver(&delivering, peer.clone(), greeting, port, held)) {
            peer.reset();
            warn(&format!("a peer's connection: {error}"));
        }
    });
}

fn deliver(broker: &Arc<Broker>, stream: Stream, greeting: Greeting, port: u16, held: Held) -> io::Result<()> {
    let target = broker.table().listening.get(&port).and_then(|listening| listening.find(greeting.target));
    let Some((listener, target, delivery)) = target else { return answer(&stream, Err(libc::ECONNREFUSED)) };
    let (knock, from) = knock::prepare(target)?;
    match delivery {
        Delivery::Claim(acceptor) => {
            knock::announce(broker, stream, greeting, (knock, from), Door { listener, target, acceptor }, held)
        }
        Delivery::Relay => {
            if let Some(redirect) = &broker.redirect {
                redirect.announce(from, greeting.source)?;
            }
            broker.threads.run(move || {
                if let Err(error) = relay_knock(&stream, knock, target, held) {
                    stream.reset();
                    warn(&format!("a peer's connection: {error}"));
                }
            })
        }
    }
}

/// Connects to a program that knows nothing, and carries its bytes.
fn relay_knock(stream: &Stream, knock: Socket, target: SocketAddr, held: Held) -> io::Result<()> {
    match knock.connect_timeout(&SockAddr::from(target), KNOCK_MAX) {
        Ok(()) => {
            answer(stream, Ok(None))?;
            let _ = knock.set_tcp_nodelay(true);
            relay::start(Near::Tcp(knock.into()), Far::Ri2n(stream.clone()), held)
        }
        Err(error) => answer(stream, Err(refusal(&error))),
    }
}
