//! Greetings over a new stream: who wants whom, and the answer.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ri2n_io::{ConnectionStatus, Health, Stream};

use super::{Broker, note_failed};
use crate::greeting::{self, GREETING_BYTES, Greeting, Offer, WELCOME_BYTES, encode_welcome};

/// How long the peer's broker may take to reach its program.
const WELCOME_MAX: Duration = Duration::from_secs(30);
/// How long a new stream may take to say whom it wants.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// How long a new stream has until a link confirms the source address in its greeting, and how often its links are looked at.
const PROOF_MAX: Duration = Duration::from_millis(200);
const PROOF_TICK: Duration = Duration::from_millis(2);

/// Waits for the answer to the greeting that a stream has begun with. `then` is called once with it: the peer's offer of early copies,
/// if it makes one, or what it says, or that it says nothing.
pub(super) fn hear_welcome(stream: &Stream, then: impl FnOnce(io::Result<Option<Offer>>) + Send + 'static) {
    let reader = stream.clone();
    stream.when_readable(WELCOME_BYTES, WELCOME_MAX, move || {
        let mut welcome = [0; WELCOME_BYTES];
        then(read_at_once(&reader, &mut welcome).and_then(|()| greeting::decode_welcome(&welcome)));
    });
}

/// Has `then` called once with who wants whom, or with why that is not known.
pub(super) fn hear_greeting(
    broker: &Arc<Broker>,
    stream: &Stream,
    then: impl FnOnce(io::Result<Greeting>) + Send + 'static,
) {
    let (broker, reader) = (Arc::clone(broker), stream.clone());
    stream.when_readable(GREETING_BYTES, GREETING_MAX, move || {
        let mut bytes = [0; GREETING_BYTES];
        match read_at_once(&reader, &mut bytes).and_then(|()| decode(&bytes)) {
            Ok(greeting) if !has_shown(&reader, greeting.source.ip()) => {
                // Without a thread the stream is dropped, which tells the peer.
                note_failed(broker.threads.run(move || then(Ok(vouched(&reader, greeting)))));
            }
            result => then(result),
        }
    });
}

/// Waits for who wants whom.
pub(super) fn receive_greeting(stream: &Stream) -> io::Result<Greeting> {
    stream.set_read_timeout(Some(GREETING_MAX));
    let mut bytes = [0; GREETING_BYTES];
    read_exact(stream, &mut bytes)?;
    stream.set_read_timeout(None);
    Ok(vouched(stream, decode(&bytes)?))
}

fn decode(bytes: &[u8; GREETING_BYTES]) -> io::Result<Greeting> {
    Greeting::decode(bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The greeting, with the peer's own address in place of a source address that no answered link confirms within [`PROOF_MAX`].
///
/// A stream comes from whichever of the peer's addresses was answered first; its links to the others are answered a round trip later.
fn vouched(stream: &Stream, greeting: Greeting) -> Greeting {
    let claimed = greeting.source.ip();
    if has_shown(stream, claimed) || is_known_to_have(stream.peer_addr().ip(), claimed) {
        return greeting;
    }
    let until = Instant::now() + PROOF_MAX;
    while Instant::now() < until {
        thread::sleep(PROOF_TICK);
        if has_shown(stream, claimed) {
            return greeting;
        }
    }
    let peer = stream.peer_addr();
    Greeting { source: SocketAddr::new(peer.ip().to_canonical(), peer.port()), ..greeting }
}

/// Whether a stream came from an address, or has an answered link to it.
fn has_shown(stream: &Stream, claimed: IpAddr) -> bool {
    claimed.to_canonical() == stream.peer_addr().ip().to_canonical() || leads(&stream.status(), claimed)
}

/// Whether links of any stream lead to both addresses, which therefore are one machine's. Looks at all streams.
fn is_known_to_have(peer: IpAddr, claimed: IpAddr) -> bool {
    ri2n_io::connections().iter().any(|status| leads(status, peer) && leads(status, claimed))
}

/// Whether a link to an address has been answered. Before that, it is what the peer says of itself.
fn leads(status: &ConnectionStatus, to: IpAddr) -> bool {
    let is_answered = |health| !matches!(health, Health::Opening | Health::Unused);
    let is_there = |address: IpAddr| address.to_canonical() == to.to_canonical();
    status.links.iter().any(|link| is_answered(link.health) && is_there(link.remote.ip()))
}

/// Tells a peer what became of its greeting.
pub(super) fn answer(stream: &Stream, result: Result<Option<Offer>, i32>) -> io::Result<()> {
    write_all(stream, &encode_welcome(result))
}

/// Writes what a new stream has room for.
fn write_all(stream: &Stream, bytes: &[u8]) -> io::Result<()> {
    let written = stream.try_write(bytes)?;
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// The error number that a peer is told.
pub(super) fn refusal(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::TimedOut { libc::ETIMEDOUT } else { libc::ECONNREFUSED }
}

/// Fills a buffer with what has arrived.
///
/// # Errors
/// `TimedOut` if not enough has, or why the stream has ended.
fn read_at_once(stream: &Stream, buffer: &mut [u8]) -> io::Result<()> {
    match stream.try_read(buffer) {
        Ok(count) if count == buffer.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error),
    }
}

/// Fills a buffer from a stream.
///
/// # Errors
/// If the stream ends first.
fn read_exact(stream: &Stream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
