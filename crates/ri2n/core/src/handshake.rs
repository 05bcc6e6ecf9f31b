//! How a connection begins: two round trips, no state at the server before the second.
//!
//! ```text
//!  client                                   server
//!    HELLO  token, nonce (padded) ────────▶   forgets it
//!           ◀──────────────────── COOKIE      a tag over address, port and time
//!    OPEN   cookie, terms (padded) ───────▶   checks the cookie: the address answers
//!           ◀──────────────────── ACCEPT      its own token and port; its addresses
//!    packets with the server's token ─────▶
//! ```
//!
//! The cookie is \[RFC 6347 4.2.1\]'s, but for any connection of that address and port: a client that got one a moment
//! ago for another connection begins with OPEN ([`Client::present`]), which saves a round trip. A server that does not
//! know the cookie is silent, and is asked by HELLO after [`PRESENTED_MAX`] tries. No answer is longer than its
//! question. With a key, OPEN, ACCEPT and REFUSE carry proofs of it, those of ACCEPT and REFUSE over OPEN as well, and
//! both nonces and tokens go into the keys of the packets.
//!
//! OPEN may carry the first bytes of the client's stream ([`Client::begin_with`]), which saves a round trip: the server's
//! application has them when it hears of the connection. ACCEPT says whether they were taken, as a server of an earlier release
//! does not; they are sent as data then. What the server's application has written by the time of ACCEPT goes with that
//! ([`Server::answer`]), unless packets are encrypted.
//!
//! Where packets are encrypted, OPEN and ACCEPT are messages of Noise (`noise.rs`).
//!
//! A client with a key believes no refusal without a proof: it keeps asking for [`DOUBTFUL`], in which the server's own answer
//! arrives if the refusal was forged, and reports the refusal only then ([`Client::poll_failure`]).

use crate::{
    connection::{Agreement, Connection, LinkTerms, Role, Settings},
    key::{Key, KeyId, Keys},
    link::Path,
    noise::{Noise, Split},
    seal::{Integrity, Seal, equal},
    time::Time,
    wire::{
        DATAGRAM_MIN, VERSION,
        handshake::{self, Accept, Address, Body, ClientTerms, Guard, Open, PROOF_LEN, Refusal, Sealed},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// HELLO and OPEN are repeated at this interval.
const REPEAT: Duration = Duration::from_millis(50);
/// How long a client presents a cookie that it got: less than it is good for.
const TICKET_GOOD: Duration = Duration::from_secs(2);
/// How often a cookie of another connection is presented before the server is asked for one.
pub const PRESENTED_MAX: u32 = 3;
/// Seconds for which a cookie is good, beside the one in which it was made.
const COOKIE_SECONDS: u64 = 3;
/// How long a client with a key keeps asking after a refusal, or an acceptance, whose proof is wrong.
pub const DOUBTFUL: Duration = Duration::from_millis(500);
/// How long a server remembers whom it accepted, to answer a repeated OPEN alike: longer than a cookie lives.
const REMEMBERED: Duration = Duration::from_secs(COOKIE_SECONDS + 2);
/// Clients accepted within that time, at most: 13,000 a second, and some ten megabytes.
pub const REMEMBERED_MAX: usize = 65_536;
/// What the proofs of an OPEN and of an ACCEPT are derived for.
const OPEN_PURPOSE: &str = "ri2n v1 open";
const ACCEPT_PURPOSE: &str = "ri2n v1 accept";
/// What the proof of a REFUSE is derived for.
const REFUSE_PURPOSE: &str = "ri2n v1 refuse";
/// HELLOs that a server answers, a second and at once. Each costs as much as a packet of data; what is beyond is
/// dropped unread, and asked again.
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
    /// With some; both ends need one that is the same.
    pub keys: Keys,
    /// What keys are for.
    pub privacy: Privacy,
}

/// What packets are protected from where there is a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privacy {
    /// Being changed or made up: a keyed tag.
    #[default]
    Authenticated,
    /// Being read as well: authenticated encryption.
    Encrypted,
}

impl Protection {
    fn guard(&self) -> Guard {
        match (self.keys.first(), self.integrity) {
            (Some(_), _) => Guard::Keyed,
            (None, Integrity::Checksum) => Guard::Checksum,
            (None, Integrity::UdpChecksum) => Guard::None,
        }
    }

    /// The key of connections that are encrypted, if they are.
    fn encrypts(&self) -> Option<&Key> {
        self.keys.first().filter(|_| self.privacy == Privacy::Encrypted)
    }
}

fn prove(key: Option<&Key>, purpose: &'static str, parts: &[&[u8]]) -> [u8; PROOF_LEN] {
    let mut proof = [0; PROOF_LEN];
    if let Some(key) = key {
        proof.copy_from_slice(&key.derive(purpose, parts)[..PROOF_LEN]);
    }
    proof
}

/// What stands in the place of a proof without a key: it finds changed bits, and no forgery.
fn checksum(proven: &[u8]) -> [u8; PROOF_LEN] {
    let mut sum = [0; PROOF_LEN];
    sum.copy_from_slice(&blake3::hash(proven).as_bytes()[..PROOF_LEN]);
    sum
}

/// The proof of an OPEN.
#[derive(Clone, Debug)]
enum Proof {
    /// Made with this key.
    Keyed(Key),
    /// Without a key: [`checksum`].
    Checksum,
    /// Without a key, by a client that knows no checksum: zeros, and zeros are its answer's.
    Zeros,
}

impl Proof {
    /// The proof of an OPEN at a server with these keys; nothing if it is wrong.
    fn of(open: &[u8], proof: &[u8; PROOF_LEN], keys: &Keys) -> Option<Self> {
        if keys.is_empty() {
            let is_zeros = *proof == [0; PROOF_LEN];
            let is_checksum = || *proof == checksum(open);
            return if is_zeros { Some(Self::Zeros) } else { is_checksum().then_some(Self::Checksum) };
        }
        let is_proof = |key: &&Key| equal(&prove(Some(key), OPEN_PURPOSE, &[open]), proof);
        keys.iter().find(is_proof).cloned().map(Self::Keyed)
    }

    fn key(&self) -> Option<&Key> {
        match self {
            Self::Keyed(key) => Some(key),
            Self::Checksum | Self::Zeros => None,
        }
    }

    /// The proof of the ACCEPT that answers `open`.
    fn of_accept(&self, open: &[u8], accept: &[u8]) -> [u8; PROOF_LEN] {
        match self {
            Self::Keyed(key) => prove(Some(key), ACCEPT_PURPOSE, &[open, accept]),
            Self::Checksum => checksum(accept),
            Self::Zeros => [0; PROOF_LEN],
        }
    }
}

fn seal(key: Option<&Key>, guard: Guard, role: Role, session: &[&[u8]]) -> Seal {
    match (key, guard) {
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

fn encrypted((from_client, from_server): Split, role: Role) -> Seal {
    match role {
        Role::Client => Seal::encrypted(from_client, from_server),
        Role::Server => Seal::encrypted(from_server, from_client),
    }
}

/// Why a client gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The server speaks another version.
    #[error("the server speaks version {0} of the protocol, not {VERSION}")]
    Version(u8),
    /// One end has a key and the other has none, or another; only one end encrypts; or the server wants checksums and
    /// the client none.
    #[error("the passphrases or keys of the two ends differ, or only one end has one or encrypts")]
    Guard,
    /// The server has no room.
    #[error("the server takes no more connections now")]
    Full,
}

/// A server's cookie, for other connections from the same address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    cookie_time: u64,
    cookie: [u8; 16],
    received: Time,
}

impl Ticket {
    /// Whether it may be presented.
    #[must_use]
    pub fn is_good(&self, now: Time) -> bool {
        now.since(self.received) < TICKET_GOOD
    }
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
    /// The handshake of an encrypted connection, while it is being opened.
    noise: Option<Noise>,
    /// OPENs that were made so far.
    opens: u64,
    /// A refusal that may be forged, and when it is believed.
    doubtful: Option<(ConnectError, Time)>,
    /// When HELLO was first said.
    hello_at: Option<Time>,
    /// The cookie that this client got.
    ticket: Option<Ticket>,
    /// How often one of another connection was presented, if it is.
    presented: Option<u32>,
    /// What the stream begins with.
    first_bytes: Vec<u8>,
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
            noise: None,
            opens: 0,
            doubtful,
            hello_at: None,
            ticket: None,
            presented: None,
            first_bytes: Vec::new(),
        }
    }

    /// Has the stream begin with these bytes, which OPEN carries if there are no more than [`handshake::FIRST_BYTES_MAX`]. Call it
    /// before [`Self::present`] and before anything is received. The connection has them written already.
    pub fn begin_with(&mut self, bytes: &[u8]) {
        self.first_bytes = bytes.to_vec();
    }

    /// The bytes that OPEN carries.
    fn carried(&self) -> Vec<u8> {
        if self.first_bytes.len() <= handshake::FIRST_BYTES_MAX { self.first_bytes.clone() } else { Vec::new() }
    }

    /// Begins with OPEN, by a cookie that the server gave another client at our address and port.
    pub fn present(&mut self, ticket: &Ticket) {
        self.open(ticket.cookie_time, ticket.cookie);
        self.presented = Some(0);
    }

    /// The cookie that this client got, for others. None if it took so long to come that an OPEN with it would be
    /// repeated: a server that does not know the cookie could not be told from one that is far away.
    #[must_use]
    pub fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// Whether the server has said nothing to an OPEN with the cookie of another connection.
    #[must_use]
    pub fn was_ignored(&self) -> bool {
        self.presented.is_some_and(|count| count > PRESENTED_MAX)
    }

    /// The datagram to send to the server now, if it is time.
    pub fn poll_transmit(&mut self, now: Time) -> Option<&[u8]> {
        if now < self.repeat_at {
            return None;
        }
        if let Some(count) = self.presented.as_mut().filter(|count| **count <= PRESENTED_MAX) {
            *count += 1;
            if *count > PRESENTED_MAX {
                self.restart();
            }
        }
        self.repeat_at = now + REPEAT;
        if !self.opening {
            self.hello_at.get_or_insert(now);
        }
        Some(&self.question[..])
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
                let is_near = self.hello_at.is_some_and(|at| now.since(at) < REPEAT);
                self.ticket = is_near.then_some(Ticket { cookie_time: time, cookie, received: now });
                self.open(time, cookie);
                self.repeat_at = now;
                Ok(None)
            }
            Body::Accept(accept) if self.opening => {
                let key = self.protection.keys.first();
                let is_valid = match key {
                    Some(_) => equal(&answer.proof, &prove(key, ACCEPT_PURPOSE, &[&self.question, answer.proven])),
                    None => answer.proof == [0; PROOF_LEN] || answer.proof == checksum(answer.proven),
                };
                if !is_valid || self.protection.encrypts().is_some() {
                    self.doubt(now, ConnectError::Guard);
                    return Ok(None);
                }
                let session = session_context((self.token, accept.server_token), &self.nonce, &accept.nonce);
                let seal = seal(key, self.protection.guard(), Role::Client, &[&session]);
                Ok(Some(self.connect(now, path, accept, seal)))
            }
            Body::SealedAccept(message) if self.opening => {
                let Some(noise) = &mut self.noise else { return Ok(None) };
                let read = noise.take_accept(&message);
                let Ok((accept, split)) = read.and_then(|(payload, split)| Ok((Accept::decode(&payload)?, split)))
                else {
                    self.doubt(now, ConnectError::Guard);
                    return Ok(None);
                };
                Ok(Some(self.connect(now, path, accept, encrypted(split, Role::Client))))
            }
            Body::Refuse(refusal) => {
                let error = match refusal {
                    Refusal::Version(version) => ConnectError::Version(version),
                    Refusal::Guard => ConnectError::Guard,
                    Refusal::Full => ConnectError::Full,
                };
                let keys = &self.protection.keys;
                let is_proof =
                    |key| equal(&answer.proof, &prove(Some(key), REFUSE_PURPOSE, &[&self.question, answer.proven]));
                if keys.is_empty() || keys.iter().any(is_proof) {
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
        if !self.protection.keys.is_empty() && self.doubtful.is_none() {
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
        self.opening = true;
        self.opens += 1;
        if let Some(key) = self.protection.encrypts() {
            // Each OPEN has a key of its own: no two messages are encrypted alike.
            let seed = blake3::keyed_hash(&self.secret, &self.opens.to_le_bytes());
            let id = key.id();
            let prologue = handshake::sealed_prologue(self.token, self.nonce, cookie_time, cookie, id);
            let terms = ClientTerms {
                window: self.settings.window(),
                addresses: self.addresses.clone(),
                first_bytes: self.carried(),
            };
            let (noise, message) = Noise::open(key, *seed.as_bytes(), &prologue, &terms.encode());
            let sealed = Sealed { nonce: self.nonce, cookie_time, cookie, key: id, message };
            self.question = handshake::encode(self.token, &Body::SealedOpen(sealed), |_| [0; PROOF_LEN]);
            self.noise = Some(noise);
            return;
        }
        let open = Open {
            nonce: self.nonce,
            cookie_time,
            cookie,
            guard: self.protection.guard(),
            window: self.settings.window(),
            addresses: self.addresses.clone(),
            first_bytes: self.carried(),
        };
        let key = self.protection.keys.first();
        self.question = handshake::encode(self.token, &Body::Open(open), |proven| match key {
            Some(_) => prove(key, OPEN_PURPOSE, &[proven]),
            None => checksum(proven),
        });
    }

    fn connect(&mut self, now: Time, path: Path, accept: Accept, seal: Seal) -> Connected {
        let agreement = Agreement {
            role: Role::Client,
            local_token: self.token,
            peer_token: accept.server_token,
            seal,
            key: self.protection.keys.first().map(Key::id),
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
        if !self.first_bytes.is_empty() {
            connection.begin_writing(now, &self.first_bytes, usize::from(accept.first_taken));
            connection.begin_reading(&accept.first_bytes);
        }
        Connected { connection, port: accept.port, addresses: accept.addresses }
    }
}

/// The server's side: no state for those who only said HELLO, a bounded memory of those who were accepted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Server {
    secret: [u8; 32],
    #[serde(skip)]
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
    window: u64,
    first_bytes: Vec<u8>,
    terms: Guarded,
    question: Vec<u8>,
}

/// How the client wants the connection guarded.
#[derive(Debug)]
enum Guarded {
    /// By a tag or nothing, with the key that its proof is of; what is wanted, and its nonce.
    ByTag(Proof, Guard, [u8; 16]),
    /// By encryption, with this key and this message.
    ByNoise(Key, Sealed),
}

impl Opening {
    /// Where the client is.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.client
    }

    fn key(&self) -> Option<KeyId> {
        match &self.terms {
            Guarded::ByTag(proof, ..) => proof.key().map(Key::id),
            Guarded::ByNoise(key, _) => Some(key.id()),
        }
    }
}

/// A client that is accepted and has not been told.
#[derive(Debug)]
pub struct Acceptance {
    client: SocketAddr,
    token: u64,
    unsaid: Unsaid,
}

/// What it is to be told.
#[derive(Debug)]
enum Unsaid {
    /// Encrypted already.
    Sealed(Vec<u8>),
    /// With a proof over it and the question.
    ByTag { proof: Proof, question: Vec<u8>, accept: Accept },
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

    /// Sets what protects new connections. A deserialized server has neither keys nor a checksum until this is called.
    pub fn set_protection(&mut self, protection: Protection) {
        self.protection = protection;
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
            Body::Hello { .. } => {
                if !self.may_answer_hello(now) {
                    return Response::Ignore;
                }
                let cookie = self.cookie(from, seconds);
                Response::Reply(handshake::encode(token, &Body::Cookie { time: seconds, cookie }, |_| [0; PROOF_LEN]))
            }
            Body::Open(open) => {
                let cookie = self.cookie(from, open.cookie_time);
                let is_fresh = open.cookie_time <= seconds && seconds - open.cookie_time <= COOKIE_SECONDS;
                if !is_fresh || !equal(&cookie, &open.cookie) {
                    return Response::Ignore;
                }
                let proof = Proof::of(question.proven, &question.proof, &self.protection.keys);
                if !self.takes(open.guard) || proof.is_none() && !self.protection.keys.is_empty() {
                    return Response::Reply(self.refusal(token, Refusal::Guard, bytes));
                }
                // Changed on its way: the client asks again.
                let Some(proof) = proof else { return Response::Ignore };
                let terms = Guarded::ByTag(proof, open.guard, open.nonce);
                let (window, first_bytes) = (open.window, open.first_bytes);
                let question = bytes.to_vec();
                self.consider(now, Opening { client: from, token, window, first_bytes, terms, question })
            }
            Body::SealedOpen(sealed) => {
                let cookie = self.cookie(from, sealed.cookie_time);
                let is_fresh = sealed.cookie_time <= seconds && seconds - sealed.cookie_time <= COOKIE_SECONDS;
                if !is_fresh || !equal(&cookie, &sealed.cookie) {
                    return Response::Ignore;
                }
                if let Some(answer) = self.accepted.get(&(from, token)) {
                    return Response::Reply(answer.to_vec());
                }
                let Some((key, hidden)) = self.unseal(token, &sealed) else {
                    return Response::Reply(self.refusal(token, Refusal::Guard, bytes));
                };
                let terms = Guarded::ByNoise(key, sealed);
                let ClientTerms { window, first_bytes, .. } = hidden;
                let question = bytes.to_vec();
                self.consider(now, Opening { client: from, token, window, first_bytes, terms, question })
            }
            _ => Response::Ignore,
        }
    }

    /// Opens a connection unless it was opened before or there is no room.
    fn consider(&mut self, now: Time, opening: Opening) -> Response {
        self.forget(now);
        if let Some(answer) = self.accepted.get(&(opening.client, opening.token)) {
            return Response::Reply(answer.to_vec());
        }
        if self.accepted.len() >= REMEMBERED_MAX {
            return Response::Reply(self.refusal(opening.token, Refusal::Full, &opening.question));
        }
        Response::Open(Box::new(opening))
    }

    /// The key of a sealed OPEN, and what it hides; nothing if it is made with another key than ours.
    fn unseal(&self, token: u64, sealed: &Sealed) -> Option<(Key, ClientTerms)> {
        self.protection.encrypts()?;
        let key = self.protection.keys.iter().find(|key| key.id() == sealed.key)?;
        // Nothing is written yet, so no randomness is needed.
        let (_, payload) = take_sealed(key, [0; 32], token, sealed)?;
        Some((key.clone(), ClientTerms::decode(&payload).ok()?))
    }

    /// Accepts: the connection, and the datagram to send to the client.
    pub fn accept(&mut self, now: Time, opening: Opening, terms: Terms) -> (Connection, Vec<u8>) {
        let (mut connection, acceptance) = self.begin(now, opening, terms);
        let answer = self.answer(now, acceptance, &mut connection);
        (connection, answer)
    }

    /// Accepts, and leaves time to write to the connection before the client is told by [`Self::answer`]. Nothing of it may be sent
    /// in between.
    pub fn begin(&mut self, now: Time, opening: Opening, terms: Terms) -> (Connection, Acceptance) {
        let (server_token, nonce, secret) = drawn(&terms.seed);
        let accept = Accept {
            server_token,
            nonce,
            port: terms.port,
            window: terms.settings.window(),
            addresses: terms.offered.iter().map(|(address, _)| *address).collect(),
            first_taken: opening.first_bytes.len() as u8,
            first_bytes: Vec::new(),
        };
        let (client, token, key) = (opening.client, opening.token, opening.key());
        let (peer_window, first_bytes) = (opening.window, opening.first_bytes.clone());
        let (seal, unsaid) = unsaid(opening, accept, &secret);
        let agreement = Agreement {
            role: Role::Server,
            local_token: server_token,
            peer_token: token,
            seal,
            key,
            peer_window,
            secret,
            offered: terms.offered,
        };
        let mut connection = Connection::new(now, &terms.settings, agreement);
        let path = Path { local: terms.local, interface: 0, entropy: 0, remote: client };
        // Larger ones once the client says what its port takes.
        connection.add_proven_link(now, path, None, DATAGRAM_MIN);
        if !first_bytes.is_empty() {
            connection.begin_reading(&first_bytes);
            connection.await_confirmation(now);
        }
        (connection, Acceptance { client, token, unsaid })
    }

    /// The datagram that tells a client that it is accepted. It carries what has been written to the connection, if the client
    /// understands that.
    pub fn answer(&mut self, now: Time, acceptance: Acceptance, connection: &mut Connection) -> Vec<u8> {
        let Acceptance { client, token, unsaid } = acceptance;
        let answer = match unsaid {
            Unsaid::Sealed(answer) => answer,
            Unsaid::ByTag { proof, question, mut accept } => {
                if accept.first_taken > 0 {
                    accept.first_bytes = connection.take_first(handshake::FIRST_BYTES_MAX);
                }
                handshake::encode(token, &Body::Accept(accept), |proven| proof.of_accept(&question, proven))
            }
        };
        self.accepted.insert((client, token), answer.clone().into());
        self.earliest.push_back((now, (client, token)));
        answer
    }

    /// The datagram that says that there is no room.
    #[must_use]
    pub fn refuse_full(&self, opening: &Opening) -> Vec<u8> {
        self.refusal(opening.token, Refusal::Full, &opening.question)
    }

    fn refusal(&self, token: u64, refusal: Refusal, question: &[u8]) -> Vec<u8> {
        handshake::encode(token, &Body::Refuse(refusal), |proven| {
            prove(self.protection.keys.first(), REFUSE_PURPOSE, &[question, proven])
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
        (guard == Guard::Keyed) != self.protection.keys.is_empty()
            && self.protection.encrypts().is_none()
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

    fn cookie(&self, client: SocketAddr, seconds: u64) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        match client.ip() {
            IpAddr::V4(ip) => hasher.update(&ip.octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.update(&client.port().to_le_bytes());
        hasher.update(&seconds.to_le_bytes());
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        cookie
    }
}

/// The handshake of a sealed OPEN, and what it hides.
fn take_sealed(key: &Key, seed: [u8; 32], token: u64, sealed: &Sealed) -> Option<(Noise, Vec<u8>)> {
    let prologue = handshake::sealed_prologue(token, sealed.nonce, sealed.cookie_time, sealed.cookie, sealed.key);
    Noise::take_open(key, seed, &prologue, &sealed.message).ok()
}

/// What a server is to say to a client that it accepts, and what guards the packets from then on.
fn unsaid(opening: Opening, accept: Accept, secret: &[u8; 32]) -> (Seal, Unsaid) {
    let Opening { token, terms, question, .. } = opening;
    match terms {
        Guarded::ByTag(proof, guard, nonce) => {
            let session = session_context((token, accept.server_token), &nonce, &accept.nonce);
            let seal = seal(proof.key(), guard, Role::Server, &[&session]);
            (seal, Unsaid::ByTag { proof, question, accept })
        }
        Guarded::ByNoise(key, sealed) => {
            let seed = blake3::derive_key("ri2n v2 ephemeral key of a server", secret);
            let (noise, _) = take_sealed(&key, seed, token, &sealed).expect("it was read before");
            let mut payload = Vec::new();
            accept.encode(&mut payload);
            let (message, split) = noise.accept(&payload);
            let answer = handshake::encode(token, &Body::SealedAccept(message), |_| [0; PROOF_LEN]);
            (encrypted(split, Role::Server), Unsaid::Sealed(answer))
        }
    }
}

/// The identifier that a connection has at the end that draws this seed, the low half of its token: an end draws
/// another seed if it has a connection of that identifier.
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
