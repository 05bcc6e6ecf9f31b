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

/// Says who wants whom, and reads the answer: the peer's offer of early copies, if it makes one.
///
/// # Errors
/// What the peer says, or that it says nothing.
pub(super) fn greet(stream: &Stream, greeting: Greeting) -> io::Result<Option<Offer>> {
    let mut rest = &greeting.encode()[..];
    while !rest.is_empty() {
        let written = stream.write(rest)?;
        rest = &rest[written..];
    }
    stream.set_read_timeout(Some(WELCOME_MAX));
    let mut welcome = [0; WELCOME_BYTES];
    read_exact(stream, &mut welcome)?;
    stream.set_read_timeout(None);
    greeting::decode_welcome(&welcome)
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
    let mut rest = &encode_welcome(result)[..];
    while !rest.is_empty() {
        let written = stream.write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

/// The error number that a peer is told.
pub(super) fn refusal(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::TimedOut { libc::ETIMEDOUT } else { libc::ECONNREFUSED }
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
