//! What the programs of one session and its broker say to each other.
//!
//! `ri2n run` starts a *broker*, which holds every RI2N stream of the session. The preload library inside a program asks it,
//! over one packet of an `AF_UNIX` socket, to connect, to listen or to hand over an accepted stream, and gets one answer with
//! an ordinary descriptor. A program may keep the socket and send its next question on it once the last one is answered. If the
//! broker has closed the socket meanwhile, it has not read the question, and the program asks on a new socket.
//!
//! Programs keep no other state. That a descriptor is a stream of RI2N, and between which addresses, is in its bound name, which the
//! kernel keeps through `dup`, `fork` and `exec`.
//!
//! ```text
//!  program ── Request(connect, addresses, token) + its TCP socket ──▶ broker ══ RI2N ══▶ peer
//!          ◀─ Answer(ready, id) + one end of a socket pair, named ──
//! ```
//!
//! Everything here has a fixed size and allocates nothing, so that it may run inside any program at any moment. Integers
//! are little endian: both sides are on one machine.
#![forbid(unsafe_code)]

mod address;
mod local;
mod message;
mod name;

pub use address::{ADDRESS_BYTES, is_knock};
pub use local::{FilterStep, LOCAL_ONLY};
pub use message::{
    ANSWER_BYTES, Answer, BrokerRequest, Operation, REQUEST_BYTES, SocketOption, Token, Verdict, Waiting,
};
pub use name::{NAME_BYTES, Name};

/// The environment variable that tells a program of its broker: the abstract name of its socket, a comma, the token; then
/// perhaps a comma and [`REQUIRED`].
pub const BROKER_VARIABLE: &str = "RI2N_BROKER";

/// The address that a broker knocks from at a program's own TCP listener, to say that a stream of RI2N waits there.
///
/// It lies in the loopback network, so nothing outside the machine can have it.
pub const KNOCK_SOURCE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(127, 82, 73, 50);

/// Bytes that keep the descriptor of a pending connection from looking writable; see [`Verdict::Pending`].
pub const FILLER_BYTES: usize = 3;

/// The option of sockets (`SO_NO_CHECK`) in which a program's end of a stream keeps what the program has set as `TCP_NODELAY`. It means
/// nothing to a socket of `AF_UNIX` nor to one of TCP, and like `TCP_NODELAY` it is the open file's, whoever has a descriptor of it. So
/// the broker need not be asked for what nearly every program sets on each connection.
pub const NODELAY_KEEPER: i32 = 11;

/// What stands behind the token where connections must not be plain TCP.
pub const REQUIRED: &str = "required";

/// Whether a session's connections with other machines may be plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Where RI2N cannot be had.
    PlainTcpAllowed,
    /// Never: without the broker's answer nothing is connected or accepted.
    Required,
}

/// Writes the value of [`BROKER_VARIABLE`].
pub fn broker_value(name: &str, token: Token, policy: Policy) -> String {
    match policy {
        Policy::PlainTcpAllowed => format!("{name},{token}"),
        Policy::Required => format!("{name},{token},{REQUIRED}"),
    }
}

/// Reads the value of [`BROKER_VARIABLE`]: the abstract name, the token and the policy.
pub fn parse_broker(value: &[u8]) -> Option<(&[u8], Token, Policy)> {
    let mut parts = value.split(|byte| *byte == b',');
    let (name, token) = (parts.next()?, Token::parse(parts.next()?)?);
    let policy = match parts.next() {
        None => Policy::PlainTcpAllowed,
        Some(word) if word == REQUIRED.as_bytes() => Policy::Required,
        Some(_) => return None,
    };
    (!name.is_empty() && name.len() < 100 && parts.next().is_none()).then_some((name, token, policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_back() {
        let token = Token([0xab; 16]);
        for policy in [Policy::PlainTcpAllowed, Policy::Required] {
            let value = broker_value("ri2n-7-0123", token, policy);
            assert_eq!(parse_broker(value.as_bytes()), Some((&b"ri2n-7-0123"[..], token, policy)));
        }
        for wrong in ["", ",", "name", &format!(",{token}"), &format!("name,{token},other"), &format!("name,{token},")]
        {
            assert_eq!(parse_broker(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
