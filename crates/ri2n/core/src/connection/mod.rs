//! A connection: one stream each way over its links.
//!
//! ```text
//!  handle_datagrams ─▶ receive.rs ─┐                    ┌─▶ transmit.rs ─▶ poll_transmit
//!  handle_timeout ───▶ timers.rs ──┼─▶ links, buffers ──┤
//!  read, write, shutdown ──────────┘                    └─▶ poll_timeout
//! ```

mod neighbours;
mod paths;
mod receive;
mod timers;
mod transmit;

use crate::{
    LINKS_MAX,
    buffer::{ReceiveBuffer, SendBuffer, Target},
    health::{Monitor, Others},
    key::KeyId,
    lateness::Lateness,
    link::{Link, LinkId, LinkReport, Path},
    seal::Seal,
    time::Time,
    wire::{
        control::Control,
        handshake::{ADDRESSES_MAX, Address},
        packet::{NARROW_WINDOW_MAX, Width},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

pub use neighbours::{Neighbours, PathKnowledge, PathReport};
pub use receive::{Arrival, Carrier};
pub use transmit::{Batch, Neighbour, Part, Precedence};

/// Smallest buffer of either direction.
pub const BUFFER_MIN: usize = 64 << 10;
/// Largest buffer of either direction.
pub const BUFFER_MAX: usize = 64 << 20;
/// How long after the first link the others are opened: many a connection is over by then.
const OPEN_AFTER: Duration = Duration::from_millis(5);
/// The same among many connections, at most, while it has carried little.
const OPEN_AFTER_MAX: Duration = Duration::from_millis(100);
/// How long a server keeps a connection whose OPEN carried data, and of whose client it has heard nothing since: it may have gone
/// on without an answer.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(60);
/// Bytes of both directions that are little.
const LITTLE_BYTES: u64 = 16 << 10;
/// RESET packets that tell of an abort.
const RESETS: u8 = 3;
/// Quoted packets of ours that say that nobody is at the peer's port any more.
const UNREACHABLE_MAX: u32 = 3;

/// What may differ between connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes written and not acknowledged, at most.
    pub send_buffer: usize,
    /// Bytes arrived and not read, at most.
    pub receive_buffer: usize,
    /// How long the peer may be silent on all links.
    pub outage_deadline: Duration,
}

impl Settings {
    /// Bytes that the receive buffer really holds.
    pub(crate) fn window(&self) -> u64 {
        self.receive_buffer.clamp(BUFFER_MIN, BUFFER_MAX).next_power_of_two() as u64
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { send_buffer: 1 << 20, receive_buffer: 1 << 20, outage_deadline: Duration::from_secs(4 * 3600) }
    }
}

/// How long a connection bears what a program asked not to wait for; beyond, it ends as an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// Something written that is not acknowledged, and nothing else that is.
    pub unacknowledged: Option<Duration>,
    /// Nothing of the peer, whether it has anything to say or not.
    pub silent: Option<Duration>,
}

/// Why a connection ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// The peer aborted it, or its port is closed.
    Reset,
    /// This end aborted it.
    Aborted,
    /// The peer was silent for longer than the deadline.
    Outage,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// Both directions may carry data.
    Open,
    /// This end finished writing.
    WriteShut,
    /// The peer finished writing.
    PeerFinished,
    /// Both finished, and the peer acknowledged everything.
    Finished,
    /// Ended before its time.
    Closed(CloseReason),
}

/// Why nothing could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing has arrived yet.
    #[error("nothing to read yet")]
    WouldBlock,
    /// The connection ended before its time.
    #[error("the connection ended: {0:?}")]
    Closed(CloseReason),
}

/// Why nothing could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The buffer is full.
    #[error("no room to write now")]
    WouldBlock,
    /// This end finished writing before.
    #[error("written after the end")]
    Shut,
    /// The connection ended before its time.
    #[error("the connection ended: {0:?}")]
    Closed(CloseReason),
}

/// What both ends know of a link beside its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTerms {
    /// Index of the server's address in its list; [`crate::handshake::ADDRESS_UNLISTED`] if it is not there.
    pub address: u8,
    /// Largest UDP payload that both ports take.
    pub datagram_max: u16,
    /// Data leave on the usable links of the lowest number.
    pub priority: u8,
}

impl LinkTerms {
    fn announcement(&self, entropy: u8) -> Control {
        Control::Link { address: self.address, mtu: self.datagram_max, priority: self.priority, entropy }
    }
}

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Opens links.
    Client,
    /// Learns links from the client; the list is what it offered, each with its interface.
    Server,
}

/// This end's half of closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Fin {
    Open,
    Due,
    Sent,
    Acked,
}

/// What both ends agreed on in the handshake.
pub(crate) struct Agreement {
    pub(crate) role: Role,
    /// In packets to us.
    pub(crate) local_token: u64,
    /// In packets to the peer.
    pub(crate) peer_token: u64,
    pub(crate) seal: Seal,
    /// Which of the keys it is of.
    pub(crate) key: Option<KeyId>,
    pub(crate) peer_window: u64,
    /// What only this end knows: numbers that nobody shall guess come from it.
    pub(crate) secret: [u8; 32],
    /// Addresses that the client's links may name, with our interfaces.
    pub(crate) offered: Vec<(Address, u32)>,
}

/// One end of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    role: Role,
    local_token: u64,
    peer_token: u64,
    seal: Seal,
    key: Option<KeyId>,
    width: Width,
    secret: [u8; 32],
    challenges: u64,
    offered: Vec<(Address, u32)>,
    /// The peer's own port, which links with a source port of their own are answered at too.
    peer_port: u16,
    /// New addresses of the server that its client has been told of and nobody has taken yet.
    offers: Vec<(u8, Address)>,

    links: [Option<Box<Link>>; LINKS_MAX],
    send: SendBuffer,
    receive: ReceiveBuffer,
    /// The peer takes no byte from here on.
    peer_limit: u64,
    fin: Fin,
    reads: Reads,
    closed: Option<CloseReason>,
    resets_due: u8,
    unreachable: u32,

    /// Kept for its memory: control frames of a packet being written.
    #[serde(skip)]
    scratch: Vec<u8>,
    /// The same: what an encrypted packet hid.
    #[serde(skip)]
    opened: Vec<u8>,

    /// Whether a link may want to send an answer, a probe or a size.
    control_due: bool,
    /// Links that an acknowledgement is to leave on now, a bit each.
    acks_due: u8,
    ack_at: Option<Time>,
    acked_at: Time,
    arrivals: receive::Arrivals,
    /// Limit that the peer was last told.
    limit_told: u64,
    window_due: bool,
    /// It is due again with the next acknowledgement.
    window_due_later: bool,
    duplicate_until: Time,

    /// When a link has its next turn, if data wait for that alone.
    turn_at: Option<Time>,
    /// How much less often links are asked than if this were the only connection on their paths.
    stretch: u32,
    outage_deadline: Duration,
    patience: Patience,
    /// When the oldest byte that is not acknowledged became that.
    oldest_since: Time,
    opened_at: Time,
    heard_at: Time,
    /// When a connection ends whose client has sent nothing since an OPEN that carried data.
    unconfirmed_until: Option<Time>,
    /// When the first link is announced, if no data have carried that by then.
    announce_at: Option<Time>,
    /// Since when there was always more to send than the windows allow.
    #[serde(default)]
    backlogged_since: Option<Time>,
    /// When data last came or went.
    active_at: Time,
    /// When the latest acknowledged packet of any link was sent.
    newest_acked_sent: Time,
    /// How late this end gets to what arrives, and the peer.
    lateness: Lateness,
    peer_lateness: Lateness,
    rejected: u64,
}

/// Whether the application still wants what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reads {
    Wanted,
    Discarded,
}

impl Connection {
    pub(crate) fn new(now: Time, settings: &Settings, agreement: Agreement) -> Self {
        let receive = ReceiveBuffer::new(settings.window() as usize);
        let widest = (receive.capacity() as u64).max(agreement.peer_window);
        Self {
            role: agreement.role,
            local_token: agreement.local_token,
            peer_token: agreement.peer_token,
            seal: agreement.seal,
            key: agreement.key,
            width: if widest <= NARROW_WINDOW_MAX { Width::Narrow } else { Width::Wide },
            secret: agreement.secret,
            challenges: 0,
            offered: agreement.offered,
            peer_port: 0,
            offers: Vec::new(),
            links: [const { None }; LINKS_MAX],
            send: SendBuffer::new(settings.send_buffer.clamp(BUFFER_MIN, BUFFER_MAX)),
            limit_told: receive.limit(),
            receive,
            peer_limit: agreement.peer_window.min(BUFFER_MAX as u64),
            fin: Fin::Open,
            reads: Reads::Wanted,
            closed: None,
            resets_due: 0,
            unreachable: 0,
            scratch: Vec::new(),
            opened: Vec::new(),
            control_due: true,
            acks_due: 0,
            ack_at: None,
            acked_at: now,
            arrivals: receive::Arrivals::new(now),
            window_due: false,
            window_due_later: false,
            duplicate_until: Time::ZERO,
            turn_at: None,
            stretch: 1,
            outage_deadline: settings.outage_deadline,
            patience: Patience::default(),
            oldest_since: now,
            opened_at: now,
            heard_at: now,
            unconfirmed_until: None,
            announce_at: None,
            backlogged_since: None,
            active_at: now,
            newest_acked_sent: now,
            lateness: Lateness::new(now),
            peer_lateness: Lateness::new(now),
            rejected: 0,
        }
    }

    /// Adds a link. Only clients add links; servers learn of them. Returns nothing if all link numbers are taken.
    pub fn add_link(&mut self, now: Time, path: Path, terms: LinkTerms) -> Option<LinkId> {
        let index = self.links.iter().position(Option::is_none)?;
        let id = LinkId(index as u8);
        self.put_link(now, id, path, terms);
        Some(id)
    }

    /// Has a link of a client lead another way, as when the address at one of its ends is gone. What was in flight leaves anew.
    /// Nothing is sent there but probes until one of them is answered.
    pub fn move_link(&mut self, now: Time, id: LinkId, path: Path, terms: LinkTerms) {
        let Some(mut old) = self.links.get_mut(id.index()).and_then(Option::take) else { return };
        let lost = old.give_up_all(&mut self.send);
        self.put_link(now, id, path, terms).keep_numbers_of(&old);
        self.handle_outcome(&lost);
    }

    fn put_link(&mut self, now: Time, id: LinkId, path: Path, terms: LinkTerms) -> &mut Link {
        let mut link = Link::new(now, id, path, terms.datagram_max);
        if path.entropy > 0 {
            link.monitor = Monitor::unused(now);
        } else {
            link.monitor.next_probe = now + OPEN_AFTER;
        }
        link.priority = terms.priority;
        link.announce.push(terms.announcement(path.entropy));
        link.challenge = self.next_challenge();
        self.control_due = true;
        self.links[id.index()].insert(Box::new(link))
    }

    /// Opens the links that are not opened yet, and a further path: one that carries data may be silent.
    fn open_links(&mut self, now: Time) {
        for link in self.links.iter_mut().flatten().filter(|link| link.is_unopened()) {
            link.monitor.next_probe = link.monitor.next_probe.min(now);
            self.control_due = true;
        }
        self.add_path_for_silent_ones(now);
    }

    /// Whether this may be one of many short connections.
    fn has_carried_little(&self) -> bool {
        self.send.next() + self.receive.next() <= LITTLE_BYTES
    }

    /// Puts off the opening of links among many connections.
    fn put_off_opening(&mut self, now: Time) {
        let wait = if self.has_carried_little() { self.stretched(OPEN_AFTER).min(OPEN_AFTER_MAX) } else { OPEN_AFTER };
        for link in self.links.iter_mut().flatten().filter(|link| link.is_unopened() && link.monitor.next_probe > now) {
            link.monitor.next_probe = link.monitor.changed_at + wait;
        }
    }

    /// Adds the link on which the handshake proved that both ends answer: a client with terms, a server without, which learns
    /// them by the client's first packets.
    pub(crate) fn add_proven_link(&mut self, now: Time, path: Path, terms: Option<LinkTerms>, datagram_max: u16) {
        let mut link = Link::new(now, LinkId(0), path, datagram_max);
        if let Some(terms) = terms {
            // The server knows neither the port of its own that this link is on nor our largest datagram before it is told.
            link.priority = terms.priority;
            link.announce(terms.announcement(path.entropy));
        }
        link.challenge = self.next_challenge();
        link.monitor.handle_pong(now);
        self.peer_port = path.remote.port();
        self.links[0] = Some(Box::new(link));
    }

    /// Writes the first bytes of the stream, of which the server has taken so many from OPEN: all or none.
    pub(crate) fn begin_writing(&mut self, now: Time, bytes: &[u8], taken: usize) {
        self.note_writing(now);
        self.send.write(bytes);
        if taken != bytes.len() {
            return;
        }
        if let Some(range) = self.send.take(taken as u64, self.peer_limit) {
            self.send.handle_acked(range);
        }
        // What the server is to know of the link can wait for data.
        if let Some(link) = &mut self.links[0] {
            link.probe_due = false;
            self.announce_at = Some(now + OPEN_AFTER);
        }
    }

    /// Takes in the first bytes of the peer's stream, which OPEN or ACCEPT carried.
    pub(crate) fn begin_reading(&mut self, bytes: &[u8]) {
        self.receive.insert(0, bytes, &mut Target::default());
    }

    /// Ends the connection if nothing of the client arrives for a while.
    pub(crate) fn await_confirmation(&mut self, now: Time) {
        self.unconfirmed_until = Some(now + UNCONFIRMED_MAX);
    }

    /// Takes the first bytes that were written for ACCEPT, without which no client has the connection: they count as acknowledged.
    pub(crate) fn take_first(&mut self, most: usize) -> Vec<u8> {
        let range = if self.closed.is_none() { self.send.take(most as u64, self.peer_limit) } else { None };
        let Some(range) = range else { return Vec::new() };
        let (head, tail) = self.send.slices(range.clone());
        let bytes = [head, tail].concat();
        self.send.handle_acked(range);
        bytes
    }

    /// Has the next data, or a probe, tell the server of the first link.
    pub(super) fn announce_now(&mut self) {
        self.announce_at = None;
        if let Some(link) = &mut self.links[0] {
            link.probe_due |= !link.announce.is_empty();
            self.control_due = true;
        }
    }

    /// Offers the client another address, at a server. It takes the place of the first that is not in `present` any
    /// more, or a new one; nothing happens if there is no place. An address that is offered already may have another
    /// interface by now.
    pub fn offer(&mut self, address: Address, interface: u32, present: &[IpAddr]) {
        if self.role == Role::Client {
            return;
        }
        if let Some((_, known)) = self.offered.iter_mut().find(|(known, _)| known.ip == address.ip) {
            let before = std::mem::replace(known, interface);
            let links = self.links.iter_mut().flatten().map(|link| &mut link.path);
            links
                .filter(|path| (path.local, path.interface) == (Some(address.ip), before))
                .for_each(|path| path.interface = interface);
            return;
        }
        let gone = self.offered.iter().position(|(known, _)| !present.contains(&known.ip));
        let index = gone.unwrap_or(self.offered.len());
        match self.offered.get_mut(index) {
            Some(place) => *place = (address, interface),
            None if index < ADDRESSES_MAX => self.offered.push((address, interface)),
            None => return,
        }
        let frame = Control::Address { index: index as u8, address };
        self.links.iter_mut().flatten().for_each(|link| link.announce(frame.clone()));
        self.control_due = true;
    }

    /// Whether [`Self::take_offers`] has something to tell.
    #[must_use]
    pub fn has_offers(&self) -> bool {
        !self.offers.is_empty()
    }

    /// The addresses that the server has offered a client since the last call, each with its index in the server's list.
    pub fn take_offers(&mut self) -> Vec<(u8, Address)> {
        std::mem::take(&mut self.offers)
    }

    /// Copies out up to `into.len()` bytes that arrived. Zero means that the stream ended. `now` may be as old as the last
    /// call: nothing is dated by it.
    ///
    /// # Errors
    /// [`ReadError::WouldBlock`] if nothing has arrived.
    pub fn read(&mut self, now: Time, into: &mut [u8]) -> Result<usize, ReadError> {
        if self.closed == Some(CloseReason::Aborted) {
            return Err(ReadError::Closed(CloseReason::Aborted));
        }
        let count = self.receive.read(into);
        if count == 0 && !into.is_empty() && !self.receive.is_finished() {
            return Err(self.closed.map_or(ReadError::WouldBlock, ReadError::Closed));
        }
        self.consider_window(now);
        Ok(count)
    }

    /// Copies in as many bytes as there is room for; at least one of a slice that is not empty.
    ///
    /// # Errors
    /// [`WriteError::WouldBlock`] if there is no room.
    pub fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, WriteError> {
        self.check_writable()?;
        if self.send.room() == 0 && !bytes.is_empty() {
            return Err(WriteError::WouldBlock);
        }
        self.note_writing(now);
        Ok(self.send.write(bytes))
    }

    fn check_writable(&self) -> Result<(), WriteError> {
        match (self.closed, self.fin) {
            (Some(reason), _) => Err(WriteError::Closed(reason)),
            (None, Fin::Open) => Ok(()),
            (None, _) => Err(WriteError::Shut),
        }
    }

    /// Memory for what is to be written next, at most `most` bytes of it: none if there is no room now. [`Self::commit`] writes
    /// what was put there.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn reserve(&mut self, most: usize) -> Result<(&mut [u8], &mut [u8]), WriteError> {
        self.check_writable()?;
        Ok(self.send.reserve(most))
    }

    /// Writes the first bytes of what [`Self::reserve`] gave.
    ///
    /// # Panics
    /// If there was no room for so many.
    pub fn commit(&mut self, now: Time, count: usize) {
        self.note_writing(now);
        self.send.commit(count);
    }

    fn note_writing(&mut self, now: Time) {
        if self.send.base() == self.send.end() {
            self.oldest_since = now;
        }
        if self.is_idle_at(now) {
            // Links that were silent are asked at leisure while nothing is to be sent.
            self.links.iter_mut().flatten().for_each(|link| link.monitor.hasten(now));
            self.control_due = true;
        }
        self.active_at = now;
    }

    /// What can be read now, as up to two slices; [`Self::consume`] takes it.
    #[must_use]
    pub fn peek(&self) -> (&[u8], &[u8]) {
        self.receive.peek()
    }

    /// Takes bytes that [`Self::peek`] showed.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn consume(&mut self, now: Time, count: usize) {
        self.receive.consume(count);
        self.consider_window(now);
    }

    /// Whether the peer's stream ended, and everything of it has arrived.
    #[must_use]
    pub fn has_received_all(&self) -> bool {
        self.receive.is_complete()
    }

    /// Whether the peer's stream ended, and everything of it was read.
    #[must_use]
    pub fn is_read_to_end(&self) -> bool {
        self.receive.is_finished()
    }

    /// Ends the stream of this direction after what was written.
    pub fn shutdown_write(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Due;
        }
    }

    /// Reads no more: what arrives from now on is acknowledged and dropped.
    pub fn shutdown_read(&mut self, now: Time) {
        self.reads = Reads::Discarded;
        self.receive.discard();
        self.consider_window(now);
    }

    /// Ends both directions at once; the peer learns of it by a RESET.
    pub fn abort(&mut self) {
        if self.closed.is_none() {
            self.closed = Some(CloseReason::Aborted);
            self.resets_due = RESETS;
        }
    }

    /// Changes how long the peer may be silent on all links.
    pub fn set_outage_deadline(&mut self, deadline: Duration) {
        self.outage_deadline = deadline;
    }

    /// Changes what the connection bears besides.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Whether [`Self::read`] would not say [`ReadError::WouldBlock`].
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.receive.ready() > 0 || self.receive.is_finished() || self.closed.is_some()
    }

    /// Whether [`Self::write`] would not say [`WriteError::WouldBlock`].
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.send.room() > 0 || self.fin != Fin::Open || self.closed.is_some()
    }

    /// Bytes that there is room to write.
    #[must_use]
    pub fn writable(&self) -> usize {
        self.send.room()
    }

    /// Bytes that can be read now.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.receive.ready()
    }

    /// Whether everything written was acknowledged, the end included if there is one.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.send.base() == self.send.end() && matches!(self.fin, Fin::Open | Fin::Acked)
    }

    /// How far the stream is.
    #[must_use]
    pub fn state(&self) -> StreamState {
        let peer_finished = self.receive.is_complete();
        match (self.closed, self.fin, peer_finished) {
            (Some(reason), ..) => StreamState::Closed(reason),
            (None, Fin::Acked, true) => StreamState::Finished,
            (None, Fin::Open, true) => StreamState::PeerFinished,
            (None, Fin::Open, false) => StreamState::Open,
            (None, ..) => StreamState::WriteShut,
        }
    }

    /// The links, ascending.
    #[must_use]
    pub fn links(&self) -> Vec<LinkReport> {
        self.each_link().map(Link::report).collect()
    }

    /// What guards the packets.
    #[must_use]
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Which key guards them, if one does.
    #[must_use]
    pub fn key(&self) -> Option<KeyId> {
        self.key
    }

    /// When the last believed packet arrived.
    #[must_use]
    pub fn heard_at(&self) -> Time {
        self.heard_at
    }

    /// When the connection was made.
    #[must_use]
    pub fn opened_at(&self) -> Time {
        self.opened_at
    }

    /// Stream bytes sent for the first time, acknowledged without a hole, and arrived without a hole.
    #[must_use]
    pub fn progress(&self) -> (u64, u64, u64) {
        (self.send.next(), self.send.base(), self.receive.next())
    }

    /// Datagrams dropped since their token, tag or form was wrong.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// A number of this connection that is no secret.
    #[must_use]
    pub fn id(&self) -> u64 {
        let (low, high) = (self.local_token.min(self.peer_token), self.local_token.max(self.peer_token));
        let hash = blake3::hash(&[low.to_le_bytes(), high.to_le_bytes()].concat());
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"))
    }

    /// The identifier that packets to this end bear in the clear.
    #[must_use]
    pub fn local_id(&self) -> u32 {
        self.local_token as u32
    }

    /// The identifier that packets of this end bear.
    #[must_use]
    pub fn peer_id(&self) -> u32 {
        self.peer_token as u32
    }

    /// The bytes of a part that [`Self::poll_transmit`] gave, as up to two slices.
    #[must_use]
    pub fn part<'a>(&'a self, batch: &'a Batch, part: &Part) -> (&'a [u8], &'a [u8]) {
        match part {
            Part::Head(range) => (&batch.heads[range.clone()], &[]),
            Part::Data(range) => self.send.slices(range.clone()),
        }
    }

    fn each_link(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().flatten().map(|link| &**link)
    }

    fn others(&self, index: usize) -> Others {
        let usable = self.each_link().any(|link| link.id.index() != index && link.monitor.is_usable());
        if usable { Others::SomeUsable } else { Others::NoneUsable }
    }

    fn is_established_from(&self, link: usize, from: SocketAddr) -> bool {
        let is_same = |path: &Path| path.remote == from || path.entropy > 0 && path.remote.ip() == from.ip();
        self.links[link].as_ref().is_some_and(|link| is_same(&link.path))
    }

    fn next_challenge(&mut self) -> u64 {
        self.challenges += 1;
        let hash = blake3::keyed_hash(&self.secret, &self.challenges.to_le_bytes());
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"))
    }

    /// Tells the peer of new room once it is worth a packet.
    fn consider_window(&mut self, now: Time) {
        let (limit, capacity) = (self.receive.limit(), self.receive.capacity() as u64);
        if limit - self.limit_told < capacity / 4 || self.receive.has_end() {
            return;
        }
        if self.limit_told.saturating_sub(self.receive.next()) < capacity / 4 {
            self.window_due = true;
        }
        self.schedule_ack(now);
    }
}
