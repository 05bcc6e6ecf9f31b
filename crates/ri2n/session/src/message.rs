//! One question, one answer.

use std::net::SocketAddr;

use crate::address::{self, ADDRESS_BYTES};

const MAGIC: [u8; 4] = *b"RI2S";
const VERSION: u8 = 2;

/// Size of every request.
pub const REQUEST_BYTES: usize = 4 + 1 + 1 + 1 + 16 + 8 + 12 + 2 * ADDRESS_BYTES;
/// Size of every answer.
pub const ANSWER_BYTES: usize = 4 + 1 + 1 + 4 + 8 + 4 + 2 * ADDRESS_BYTES;

/// What lets a program speak to a broker: 128 random bits, known to the session's programs alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut token = [0; 16];
        if text.len() != 32 {
            return None;
        }
        for (byte, pair) in token.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(Self(token))
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Connect to `remote`; the TCP socket itself comes along, so that its port stays taken and plain TCP remains possible.
    Connect,
    /// `local` is now listening for plain TCP: listen for RI2N as well.
    Listen,
    /// Hand over the stream that knocked from `remote` at `local`.
    Claim,
    /// What became of the connection `id`?
    State,
    /// Early copies for the connection `id`: the block of memory and the UDP socket, if it can have them.
    Express,
    /// The program has set `option` of the connection `id`.
    SetOption,
    /// What is `option` of the connection `id`?
    GetOption,
    /// Answer when all that the program has written has reached the peer, or after `option.value` milliseconds.
    Drain,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::Connect,
        Self::Listen,
        Self::Claim,
        Self::State,
        Self::Express,
        Self::SetOption,
        Self::GetOption,
        Self::Drain,
    ];
}

/// An option of a socket, by the numbers that `setsockopt` has for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOption {
    /// Of the protocol.
    pub level: i32,
    /// Of the option.
    pub name: i32,
    /// What it is set to. Of `SO_LINGER` the seconds, or less than none where it is off.
    pub value: i32,
}

/// Whether the program wants to wait for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Until it is made.
    Blocking,
    /// As little as possible.
    NonBlocking,
}

/// A question to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerRequest {
    /// Proves that the program belongs to the session.
    pub token: Token,
    /// What is asked.
    pub operation: Operation,
    /// Whether the program's descriptor is blocking.
    pub waiting: Waiting,
    /// A connection's number.
    pub id: u64,
    /// What the operations on options are about.
    pub option: SocketOption,
    /// The near address, where one is known.
    pub local: Option<SocketAddr>,
    /// The far address, where one is known.
    pub remote: Option<SocketAddr>,
}

/// What the broker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This is none of RI2N's business: carry on with plain TCP.
    Plain,
    /// Done; a descriptor comes along where one was asked for.
    Ready,
    /// A descriptor comes along that becomes writable when the connection stands. Until then its send buffer is full of
    /// [`FILLER_BYTES`](crate::FILLER_BYTES), which never reach the peer.
    Pending,
    /// It failed, with an error number of the system.
    Failed(i32),
}

/// An answer of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it went.
    pub verdict: Verdict,
    /// The connection's number.
    pub id: u64,
    /// The value of an option.
    pub value: i32,
    /// Its near address.
    pub local: Option<SocketAddr>,
    /// Its far address.
    pub remote: Option<SocketAddr>,
}

impl BrokerRequest {
    /// The request as bytes.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        let mut put = Put { bytes: &mut bytes, at: 0 };
        put.slice(&MAGIC);
        put.slice(&[VERSION, self.operation as u8, self.waiting as u8]);
        put.slice(&self.token.0);
        put.slice(&self.id.to_le_bytes());
        for number in [self.option.level, self.option.name, self.option.value] {
            put.slice(&number.to_le_bytes());
        }
        put.address(self.local);
        put.address(self.remote);
        bytes
    }

    /// Reads a request; `None` if it is none, or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut get = Get::new(bytes, REQUEST_BYTES)?;
        let [version, operation, waiting] = get.array()?;
        if version != VERSION {
            return None;
        }
        let operation = Operation::ALL.into_iter().find(|known| *known as u8 == operation)?;
        let waiting = [Waiting::Blocking, Waiting::NonBlocking].into_iter().find(|known| *known as u8 == waiting)?;
        let token = Token(get.array()?);
        let id = u64::from_le_bytes(get.array()?);
        let [level, name, value] = [get.array()?, get.array()?, get.array()?].map(i32::from_le_bytes);
        let option = SocketOption { level, name, value };
        Some(Self { token, operation, waiting, id, option, local: get.address()?, remote: get.address()? })
    }
}

impl Answer {
    /// An answer without a connection.
    pub fn of(verdict: Verdict) -> Self {
        Self { verdict, id: 0, value: 0, local: None, remote: None }
    }

    /// The answer as bytes.
    pub fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let mut put = Put { bytes: &mut bytes, at: 0 };
        put.slice(&MAGIC);
        let (verdict, errno) = match self.verdict {
            Verdict::Plain => (0, 0),
            Verdict::Ready => (1, 0),
            Verdict::Pending => (2, 0),
            Verdict::Failed(errno) => (3, errno),
        };
        put.slice(&[VERSION, verdict]);
        put.slice(&errno.to_le_bytes());
        put.slice(&self.id.to_le_bytes());
        put.slice(&self.value.to_le_bytes());
        put.address(self.local);
        put.address(self.remote);
        bytes
    }

    /// Reads an answer; `None` if it is none, or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut get = Get::new(bytes, ANSWER_BYTES)?;
        let [version, verdict] = get.array()?;
        let errno = i32::from_le_bytes(get.array()?);
        let verdict = match (version, verdict) {
            (VERSION, 0) => Verdict::Plain,
            (VERSION, 1) => Verdict::Ready,
            (VERSION, 2) => Verdict::Pending,
            (VERSION, 3) => Verdict::Failed(errno),
            _ => return None,
        };
        let id = u64::from_le_bytes(get.array()?);
        let value = i32::from_le_bytes(get.array()?);
        Some(Self { verdict, id, value, local: get.address()?, remote: get.address()? })
    }
}

struct Put<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Put<'_> {
    fn slice(&mut self, slice: &[u8]) {
        self.bytes[self.at..self.at + slice.len()].copy_from_slice(slice);
        self.at += slice.len();
    }

    fn address(&mut self, address: Option<SocketAddr>) {
        let mut bytes = [0; ADDRESS_BYTES];
        address::put(address, &mut bytes);
        self.slice(&bytes);
    }
}

struct Get<'a> {
    rest: &'a [u8],
}

impl<'a> Get<'a> {
    fn new(bytes: &'a [u8], length: usize) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        (bytes.len() == length).then_some(Self { rest })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }

    fn address(&mut self) -> Option<Option<SocketAddr>> {
        address::get(&self.array()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses() -> impl Strategy<Value = Option<SocketAddr>> {
        prop_oneof![
            Just(None),
            any::<([u8; 4], u16)>().prop_map(|address| Some(address.into())),
            any::<([u8; 16], u16)>().prop_map(|address| Some(address.into())),
        ]
    }

    proptest! {
        #[test]
        fn requests_come_back(token: [u8; 16], operation in 0..Operation::ALL.len(), blocking: bool, id: u64,
                              option: (i32, i32, i32), local in addresses(), remote in addresses()) {
            let operation = Operation::ALL[operation];
            let option = SocketOption { level: option.0, name: option.1, value: option.2 };
            let waiting = if blocking { Waiting::Blocking } else { Waiting::NonBlocking };
            let request = BrokerRequest { token: Token(token), operation, waiting, id, option, local, remote };
            prop_assert_eq!(BrokerRequest::decode(&request.encode()), Some(request));
        }

        #[test]
        fn answers_come_back(verdict in 0..4usize, errno: i32, id: u64, value: i32, local in addresses(), remote in addresses()) {
            let verdict = [Verdict::Plain, Verdict::Ready, Verdict::Pending, Verdict::Failed(errno)][verdict];
            let answer = Answer { verdict, id, value, local, remote };
            prop_assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }

        #[test]
        fn garbage_is_refused_or_read_but_never_fatal(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (BrokerRequest::decode(&bytes), Answer::decode(&bytes));
            let mut framed = MAGIC.to_vec();
            framed.push(VERSION);
            framed.extend(&bytes);
            framed.resize(REQUEST_BYTES, 7);
            let _ = BrokerRequest::decode(&framed);
            framed.resize(ANSWER_BYTES, 7);
            let _ = Answer::decode(&framed);
        }
    }

    #[test]
    fn tokens_are_hexadecimal() {
        let token = Token([0xab; 16]);
        assert_eq!(Token::parse(token.to_string().as_bytes()), Some(token));
        assert_eq!(Token::parse(b"ab"), None);
        assert_eq!(Token::parse(&[b'g'; 32]), None);
    }
}
