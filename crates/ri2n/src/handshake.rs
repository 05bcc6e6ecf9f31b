//! How a connection begins: two round trips, no state at the server before the second.
//!
//! ```text
//!  client                                   server
//!    HELLO  token, nonce (padded) ────────▶   forgets it
//!           ◀──────────────────── COOKIE      a tag over address, token, nonce and time
//!    OPEN   cookie, terms (padded) ───────▶   checks the cookie: the address answers
//!           ◀──────────────────── ACCEPT      its own token and port; its addresses
//!    packets with the server's token ─────▶
//! ```
//!
//! The cookie is \[RFC 6347 4.2.1\]'s. No answer is longer than its question. With a key, OPEN, ACCEPT and REFUSE carry proofs
//! of it, those of ACCEPT and REFUSE over OPEN as well, and both nonces and tokens go into the keys of the packets.
//!
//! A client with a key believes no refusal without a proof: it keeps asking for [`DOUBTFUL`], in which the server's own answer
//! arrives if the refusal was forged, and reports the refusal only then ([`Client::poll_failure`]).

use crate::{
    connection::{Agreement, Connection, LinkTerms, Role, Settings},
    link::{DATAGRAM_MIN, Path},
    seal::{Integrity, Key, Seal, equal},
    time::Time,
    wire::{
        VERSION,
        handshake::{self, Accept, Address, Body, Guard, Open, PROOF_LEN, Refusal},
    },
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// HELLO and OPEN are repeated at this interval.
const REPEAT: Duration = Duration::from_millis(50);
/// Seconds for which a cookie is good, beside the one in which it was made.
const COOKIE_SECONDS: u64 = 3;
/// How long a client with a key keeps asking after a refusal, or an acceptance, whose proof is wrong.
pub const DOUBTFUL: Duration = Duration::from_millis(500);
/// How long a server remembers whom it accepted, to answer a repeated OPEN alike: longer than a cookie lives.
const REMEMBERED: Duration = Duration::from_secs(COOKIE_SECONDS + 2);
/// Clients accepted within that time, at most: 13,000 a second, and some ten megabytes.
pub const REMEMBERED_MAX: usize = 65_536;
/// What the proof of a REFUSE is derived for.
const REFUSE_PURPOSE: &str = "ri2n v1 refuse";
/// HELLOs that a server answers, a second and at once. Each costs as much as a packet of data; what is beyond is dropped unread,
/// and asked again.
pub const HELLOS_A_SECOND: u64 = 20_000;
/// See [`HELLOS_A_SECOND`].
pub const HELLOS_AT_ONCE: u64 = 1_000;
/// Index of an address that the server did not offer.
pub const ADDRESS_UNLISTED: u8 = u8::MAX;

/// What guards the packets that an end agrees to.
#[derive(Clone, Debug, Default)]
pub struct Protection {
    /// Without a key.
    pub integrity: Integrity,
    /// With one; both ends need the same.
    pub key: Option<Key>,
}

impl Protection {
    fn guard(&self) -> Guard {
        match (&self.key, self.integrity) {
            (Some(_), _) => Guard::Keyed,
            (None, Integrity::Checksum) => Guard::Checksum,
            (None, Integrity::UdpChecksum) => Guard::None,
        }
    }

    fn prove(&self, purpose: &'static str, parts: &[&[u8]]) -> [u8; PROOF_LEN] {
        let mut proof = [0; PROOF_LEN];
        if let Some(key) = &self.key {
            proof.copy_from_slice(&key.derive(purpose, parts)[..PROOF_LEN]);
        }
        proof
    }

    fn seal(&self, guard: Guard, role: Role, session: &[&[u8]]) -> Seal {
        match (&self.key, guard) {
            (Some(key), _) => {
                let from_client = Box::new(key.derive("ri2n v1 packets from the client", session));
                let from_server = Box::new(key.derive("ri2n v1 packets from the server", session));
                match role {
                    Role::Client => Seal::Keyed { send: from_client, receive: from_server },
                    Role::Server => Seal::Keyed { send: from_server, receive: from_client },
                }
            }
            (None, Guard::Checksum) => Seal::Checksum,
            (None, _) => Seal::None,
        }
    }
}

/// Why a client gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The server speaks another version.
    #[error("the server speaks version {0} of the protocol, not {VERSION}")]
    Version(u8),
    /// One end has a key and the other has none, or another; or the server wants checksums and the client none.
    #[error("the passphrases or keys of the two ends differ, or only one end has one")]
    Guard,
    /// The server has no room.
    #[error("the server takes no more connections now")]
    Full,
}

/// The client's side.
#[derive(Debug)]
pub struct Client {
    token: u64,
    nonce: [u8; 16],
    secret: [u8; 32],
    settings: Settings,
    protection: Protection,
    addresses: Vec<Address>,
    /// What is repeated now, and what ACCEPT's proof is over.
    question: Vec<u8>,
    repeat_at: Time,
    opening: bool,
    /// A refusal that may be forged, and when it is believed.
    doubtful: Option<(ConnectError, Time)>,
}

/// What a client has when it was accepted.
#[derive(Debug)]
pub struct Connected {
    /// The connection, with its first link.
    pub connection: Connection,
    /// The server's port of this connection.
    pub port: u16,
    /// Where else the server can be reached; indices as [`Connection::add_link`] wants them.
    pub addresses: Vec<Address>,
}

impl Client {
    /// Begins. `seed` is 32 random bytes that nobody else knows, used for this connection alone. `addresses` are ours.
    #[must_use]
    pub fn new(seed: [u8; 32], settings: Settings, protection: Protection, addresses: Vec<Address>) -> Self {
        let (token, nonce, secret) = drawn(&seed);
        let question = handshake::encode(token, &Body::Hello { nonce }, |_| [0; PROOF_LEN]);
        let (opening, doubtful) = (false, None);
        Self {
            token,
            nonce,
            secret,
            settings,
            protection,
            addresses,
            question,
            repeat_at: Time::ZERO,
            opening,
            doubtful,
        }
    }

    /// The datagram to send to the server now, if it is time.
    pub fn poll_transmit(&mut self, now: Time) -> Option<&[u8]> {
        (now >= self.repeat_at).then(|| {
            self.repeat_at = now + REPEAT;
            &self.question[..]
        })
    }

    /// When there is something to send again, or [`Self::poll_failure`] may have something to say.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.doubtful.map_or(self.repeat_at, |(_, at)| at.min(self.repeat_at))
    }

    /// Why the client gives up, once a refusal without a valid proof has been contradicted by nothing for [`DOUBTFUL`].
    #[must_use]
    pub fn poll_failure(&self, now: Time) -> Option<ConnectError> {
        self.doubtful.filter(|(_, at)| now >= *at).map(|(error, _)| error)
    }

    /// A refusal without a valid proof that nothing has contradicted so far: the likely reason when the caller gives up.
    #[must_use]
    pub fn doubtful(&self) -> Option<ConnectError> {
        self.doubtful.map(|(error, _)| error)
    }

    /// Takes in what came back along `path`. Datagrams that are no answer to ours are ignored.
    ///
    /// # Errors
    /// If the server refused: with a valid proof where there is a key.
    pub fn handle_datagram(&mut self, now: Time, path: Path, bytes: &[u8]) -> Result<Option<Connected>, ConnectError> {
        let Ok(answer) = handshake::decode(bytes) else { return Ok(None) };
        if answer.client_token != self.token {
            return Ok(None);
        }
        match answer.body {
            Body::Cookie { time, cookie } if !self.opening => {
                self.open(time, cookie);
                self.repeat_at = now;
                Ok(None)
            }
            Body::Accept(accept) if self.opening => {
                let expected = self.protection.prove("ri2n v1 accept", &[&self.question, answer.proven]);
                if !equal(&answer.proof, &expected) {
                    self.doubt(now, ConnectError::Guard);
                    return Ok(None);
                }
                Ok(Some(self.connect(now, path, accept)))
            }
            Body::Refuse(refusal) => {
                let error = match refusal {
                    Refusal::Version(version) => ConnectError::Version(version),
                    Refusal::Guard => ConnectError::Guard,
                    Refusal::Full => ConnectError::Full,
                };
                let expected = self.protection.prove(REFUSE_PURPOSE, &[&self.question, answer.proven]);
                if self.protection.key.is_none() || equal(&answer.proof, &expected) {
                    return Err(error);
                }
                self.doubt(now, error);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Notes what may be forged: only someone on the path sees the token, but a key is to hold against them too.
    fn doubt(&mut self, now: Time, error: ConnectError) {
        if self.protection.key.is_some() && self.doubtful.is_none() {
            self.doubtful = Some((error, now + DOUBTFUL));
        }
    }

    /// Starts over with a HELLO, as when nothing answers OPEN: the cookie may be too old.
    pub fn restart(&mut self) {
        (self.opening, self.doubtful) = (false, None);
        self.question = handshake::encode(self.token, &Body::Hello { nonce: self.nonce }, |_| [0; PROOF_LEN]);
        self.repeat_at = Time::ZERO;
    }

    /// Whether the server has answered HELLO, and is asked to open the connection.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.opening
    }

    /// Whether a datagram that the network quotes, perhaps cut, is one of ours.
    #[must_use]
    pub fn has_asked(&self, quoted: &[u8]) -> bool {
        handshake::client_token(quoted) == Some(self.token)
    }

    fn open(&mut self, cookie_time: u64, cookie: [u8; 16]) {
        let open = Open {
            nonce: self.nonce,
            cookie_time,
            cookie,
            guard: self.protection.guard(),
            window: self.settings.window(),
            addresses: self.addresses.clone(),
        };
        let protection = &self.protection;
        self.question =
            handshake::encode(self.token, &Body::Open(open), |proven| protection.prove("ri2n v1 open", &[proven]));
        self.opening = true;
    }

    fn connect(&mut self, now: Time, path: Path, accept: Accept) -> Connected {
        let tokens = (self.token, accept.server_token);
        let session = session_context(tokens, &self.nonce, &accept.nonce);
        let seal = self.protection.seal(self.protection.guard(), Role::Client, &[&session]);
        let agreement = Agreement {
            role: Role::Client,
            local_token: self.token,
            peer_token: accept.server_token,
            seal,
            peer_window: accept.window,
            secret: self.secret,
            offered: Vec::new(),
        };
        let mut connection = Connection::new(now, &self.settings, agreement);
        let path = Path { remote: SocketAddr::new(path.remote.ip(), accept.port), ..path };
        let listed = accept.addresses.iter().position(|address| address.ip == path.remote.ip());
        let theirs = listed.map_or(u16::MAX, |index| accept.addresses[index].datagram_max());
        let ours = self.addresses.iter().find(|address| Some(address.ip) == path.local);
        let datagram_max = ours.map_or(u16::MAX, Address::datagram_max);
        let priority_of = |address: Option<&Address>| address.map_or(0, |address| address.priority);
        let priority = priority_of(ours).max(priority_of(listed.map(|index| &accept.addresses[index])));
        let address = listed.map_or(ADDRESS_UNLISTED, |index| index as u8);
        let terms = LinkTerms { address, datagram_max, priority };
        connection.add_proven_link(now, path, Some(terms), theirs.min(datagram_max));
        Connected { connection, port: accept.port, addresses: accept.addresses }
    }
}

/// The server's side: no state for those who only said HELLO, a bounded memory of those who were accepted.
#[derive(Debug)]
pub struct Server {
    secret: [u8; 32],
    protection: Protection,
    /// What each accepted client was answered, by its address and token.
    accepted: BTreeMap<(SocketAddr, u64), Box<[u8]>>,
    /// The same clients, the earliest first, and when they were accepted.
    earliest: VecDeque<(Time, (SocketAddr, u64))>,
    /// Since when HELLOs could have been answered at the full rate without having been.
    hellos_since: Time,
}

/// What a server does with a handshake datagram.
#[derive(Debug)]
pub enum Response {
    /// Nothing.
    Ignore,
    /// Send this back.
    Reply(Vec<u8>),
    /// Someone proved that their address answers: [`Server::accept`] or [`Server::refuse_full`].
    Open(Box<Opening>),
}

/// A client that may be accepted.
#[derive(Debug)]
pub struct Opening {
    client: SocketAddr,
    token: u64,
    open: Open,
    question: Vec<u8>,
}

impl Opening {
    /// Where the client is.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.client
    }
}

/// Our side of an accepted connection.
#[derive(Clone, Debug)]
pub struct Terms {
    /// 32 random bytes that nobody else knows, used for this connection alone.
    pub seed: [u8; 32],
    /// The UDP port of the connection.
    pub port: u16,
    /// Our address at which the client's OPEN arrived.
    pub local: Option<IpAddr>,
    /// Our addresses, each with the index of its interface.
    pub offered: Vec<(Address, u32)>,
    /// Buffers and deadline.
    pub settings: Settings,
}

impl Server {
    /// Begins. `secret` is 32 random bytes for the cookies.
    #[must_use]
    pub fn new(secret: [u8; 32], protection: Protection) -> Self {
        Self { secret, protection, accepted: BTreeMap::new(), earliest: VecDeque::new(), hellos_since: Time::ZERO }
    }

    /// Takes in a handshake datagram.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> Response {
        if let Some((_, token)) = handshake::foreign_version(bytes) {
            if !self.may_answer_hello(now) {
                return Response::Ignore;
            }
            return Response::Reply(self.refusal(token, Refusal::Version(VERSION), bytes));
        }
        let Ok(question) = handshake::decode(bytes) else { return Response::Ignore };
        let token = question.client_token;
        let seconds = now.as_nanos() / 1_000_000_000;
        match question.body {
            Body::Hello { nonce } => {
                if !self.may_answer_hello(now) {
                    return Response::Ignore;
                }
                let cookie = self.cookie(from, token, &nonce, seconds);
                Response::Reply(handshake::encode(token, &Body::Cookie { time: seconds, cookie }, |_| [0; PROOF_LEN]))
            }
            Body::Open(open) => {
                let cookie = self.cookie(from, token, &open.nonce, open.cookie_time);
                let is_fresh = open.cookie_time <= seconds && seconds - open.cookie_time <= COOKIE_SECONDS;
                if !is_fresh || !equal(&cookie, &open.cookie) {
                    return Response::Ignore;
                }
                let proof = self.protection.prove("ri2n v1 open", &[question.proven]);
                if !self.takes(open.guard) || !equal(&proof, &question.proof) && self.protection.key.is_some() {
                    return Response::Reply(self.refusal(token, Refusal::Guard, bytes));
                }
                self.forget(now);
                if let Some(answer) = self.accepted.get(&(from, token)) {
                    return Response::Reply(answer.to_vec());
                }
                if self.accepted.len() >= REMEMBERED_MAX {
                    return Response::Reply(self.refusal(token, Refusal::Full, bytes));
                }
                Response::Open(Box::new(Opening { client: from, token, open, question: bytes.to_vec() }))
            }
            _ => Response::Ignore,
        }
    }

    /// Accepts: the connection, and the datagram to send to the client.
    pub fn accept(&mut self, now: Time, opening: Opening, terms: Terms) -> (Connection, Vec<u8>) {
        let (server_token, nonce, secret) = drawn(&terms.seed);
        let session = session_context((opening.token, server_token), &opening.open.nonce, &nonce);
        let agreement = Agreement {
            role: Role::Server,
            local_token: server_token,
            peer_token: opening.token,
            seal: self.protection.seal(opening.open.guard, Role::Server, &[&session]),
            peer_window: opening.open.window,
            secret,
            offered: terms.offered,
        };
        let accept = Accept {
            server_token,
            nonce,
            port: terms.port,
            window: terms.settings.window(),
            addresses: agreement.offered.iter().map(|(address, _)| *address).collect(),
        };
        let mut connection = Connection::new(now, &terms.settings, agreement);
        let path = Path { local: terms.local, interface: 0, remote: opening.client };
        // Larger ones once the client says what its port takes.
        connection.add_proven_link(now, path, None, DATAGRAM_MIN);
        let protection = &self.protection;
        let answer = handshake::encode(opening.token, &Body::Accept(accept), |proven| {
            protection.prove("ri2n v1 accept", &[&opening.question, proven])
        });
        let (client, token) = (opening.client, opening.token);
        self.accepted.insert((client, token), answer.clone().into());
        self.earliest.push_back((now, (client, token)));
        (connection, answer)
    }

    /// The datagram that says that there is no room.
    #[must_use]
    pub fn refuse_full(&self, opening: &Opening) -> Vec<u8> {
        self.refusal(opening.token, Refusal::Full, &opening.question)
    }

    fn refusal(&self, token: u64, refusal: Refusal, question: &[u8]) -> Vec<u8> {
        handshake::encode(token, &Body::Refuse(refusal), |proven| {
            self.protection.prove(REFUSE_PURPOSE, &[question, proven])
        })
    }

    /// Takes what one answer costs out of what may be answered now, if there is so much.
    fn may_answer_hello(&mut self, now: Time) -> bool {
        const EACH: Duration = Duration::from_nanos(1_000_000_000 / HELLOS_A_SECOND);
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(EACH.as_nanos() as u64 * HELLOS_AT_ONCE));
        let next = self.hellos_since.max(earliest) + EACH;
        let may = next <= now;
        if may {
            self.hellos_since = next;
        }
        may
    }

    fn takes(&self, guard: Guard) -> bool {
        (guard == Guard::Keyed) == self.protection.key.is_some()
            && !(guard == Guard::None && self.protection.integrity == Integrity::Checksum)
    }

    fn forget(&mut self, now: Time) {
        while let Some((at, client)) = self.earliest.front() {
            if now.since(*at) <= REMEMBERED {
                break;
            }
            self.accepted.remove(client);
            self.earliest.pop_front();
        }
    }

    fn cookie(&self, client: SocketAddr, token: u64, nonce: &[u8; 16], seconds: u64) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        match client.ip() {
            IpAddr::V4(ip) => hasher.update(&ip.octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.update(&client.port().to_le_bytes());
        hasher.update(&token.to_le_bytes());
        hasher.update(nonce);
        hasher.update(&seconds.to_le_bytes());
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        cookie
    }
}

/// The identifier that a connection has at the end that draws this seed, the low half of its token: an end draws another seed if
/// it has a connection of that identifier.
#[must_use]
pub fn identifier(seed: &[u8; 32]) -> u32 {
    drawn(seed).0 as u32
}

/// Token, nonce and secret from a seed.
fn drawn(seed: &[u8; 32]) -> (u64, [u8; 16], [u8; 32]) {
    let mut bytes = [0; 24];
    let mut output = blake3::Hasher::new_derive_key("ri2n v1 tokens").update(seed).finalize_xof();
    output.fill(&mut bytes);
    let token = u64::from_le_bytes(*bytes.first_chunk().expect("24 bytes"));
    let nonce = *bytes.last_chunk().expect("24 bytes");
    (token, nonce, blake3::derive_key("ri2n v1 challenges", seed))
}

fn session_context(tokens: (u64, u64), client_nonce: &[u8; 16], server_nonce: &[u8; 16]) -> Vec<u8> {
    [&tokens.0.to_le_bytes()[..], &tokens.1.to_le_bytes(), client_nonce, server_nonce].concat()
}
