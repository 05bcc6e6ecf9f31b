//! Greetings over a new stream: who wants whom, and the answer.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ri2n_io::Stream;

use crate::greeting::{self, GREETING_BYTES, Greeting, Offer, WELCOME_BYTES, encode_welcome};

/// How long the peer's broker may take to reach its program.
const WELCOME_MAX: Duration = Duration::from_secs(30);
/// How long a new stream may take to say whom it wants.
const GREETING_MAX: Duration = Duration::from_secs(5);

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
pub(super) fn hear_greeting(stream: &Stream, then: impl FnOnce(io::Result<Greeting>) + Send + 'static) {
    let reader = stream.clone();
    stream.when_readable(GREETING_BYTES, GREETING_MAX, move || {
        let mut bytes = [0; GREETING_BYTES];
        then(read_at_once(&reader, &mut bytes).and_then(|()| decode(&reader, &bytes)));
    });
}

/// Waits for who wants whom.
pub(super) fn receive_greeting(stream: &Stream) -> io::Result<Greeting> {
    stream.set_read_timeout(Some(GREETING_MAX));
    let mut bytes = [0; GREETING_BYTES];
    read_exact(stream, &mut bytes)?;
    stream.set_read_timeout(None);
    decode(stream, &bytes)
}

fn decode(stream: &Stream, bytes: &[u8; GREETING_BYTES]) -> io::Result<Greeting> {
    let greeting = Greeting::decode(bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Greeting { source: vouched(stream, greeting.source), ..greeting })
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
