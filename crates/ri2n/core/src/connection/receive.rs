//! What arrives: datagrams, carrier events, refusals.

use super::{CloseReason, Connection, Fin, Reads, Role, UNREACHABLE_MAX};
use crate::{
    buffer::Target,
    congestion::{self, Competitor, Limited},
    health::{Monitor, Others, SUSPICION},
    link::{AckContext, Fate, Link, LinkId, Outcome, Path},
    seal::Seal,
    time::Time,
    wire::{
        control::{self, Ack, Control},
        handshake::{ADDRESSES_MAX, Address},
        packet::{self, End, Header},
    },
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::{net::SocketAddr, ops::Range, time::Duration};

/// Acknowledgements a millisecond of packets that arrive fast, on all links together.
const ACKS_A_MS: u64 = 4;
/// How long an acknowledgement may wait for company.
pub(super) const ACK_DELAY: Duration = Duration::from_millis(1);
/// The same of a connection among many that has carried little: most of those are questions, and what acknowledges one
/// is its answer.
const ACK_DELAY_MAX: Duration = Duration::from_millis(4);
/// Packets a link that wait for an acknowledgement, at most, when they arrive fast.
const ACK_PACKETS_MAX: u32 = 32;
/// Ranges of numbers remembered of a link.
const SEEN_RANGES_MAX: usize = 64;
/// How long acknowledgements go to all links after the peer asked for it.
const DUPLICATE_FOR: Duration = Duration::from_millis(100);

/// What a port's carrier did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// It is there.
    Up,
    /// It is gone; its return will be told.
    Down,
    /// It may be there, but the port refuses what is sent, and nobody tells when it no longer does.
    Refused,
}

/// Where a datagram came from, and when it reached this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the system received it: earlier than now if the program was kept from looking. Who does not know says now.
    pub at: Time,
    /// Who sent it.
    pub from: SocketAddr,
}

impl Connection {
    /// Takes in one datagram. Whatever is malformed, forged, replayed or of another connection changes nothing.
    pub fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        if self.closed.is_some() || self.take_in(now, arrival, bytes).is_none() {
            self.rejected += 1;
        }
    }

    /// Takes in datagrams that arrived as one message: each `segment` bytes long, the last perhaps shorter. What comes next in
    /// the stream counts as read as far as there is room for it in `target`, the memory of a reader that waits.
    ///
    /// # Panics
    /// If `segment` is zero.
    pub fn handle_datagrams(
        &mut self,
        now: Time,
        arrival: Arrival,
        bytes: &[u8],
        segment: usize,
        target: &mut Target<'_>,
    ) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.take_in_run(now, arrival, rest, segment, target)..];
            let (datagram, after) = rest.split_at(segment.min(rest.len()));
            if !datagram.is_empty() {
                self.handle_datagram(now, arrival, datagram);
            }
            rest = after;
        }
    }

    /// Takes in those of the first datagrams that are nothing but data and follow each other on their link and in the stream,
    /// as most do: what is decided for one of them is decided for all. Returns how many bytes they are.
    fn take_in_run(
        &mut self,
        now: Time,
        arrival: Arrival,
        bytes: &[u8],
        segment: usize,
        target: &mut Target<'_>,
    ) -> usize {
        if self.closed.is_some() || self.seal.tag_len() > 0 {
            return 0;
        }
        let (mut index, mut run, mut stretch, mut taken) = (0, 0..0, 0..0, 0);
        for datagram in bytes.chunks(segment) {
            if packet::has_control(datagram) {
                break;
            }
            let Ok(raw) = packet::decode(datagram) else { break };
            if taken == 0 {
                index = usize::from(raw.link);
                let Some(link) = &self.links[index] else { break };
                (run, stretch) = (link.seen_end()..link.seen_end(), self.receive.next()..self.receive.next());
            }
            let same_link = usize::from(raw.link) == index;
            let header = raw.resolve(self.local_token, run.end, stretch.end).filter(|_| same_link);
            let Some(header) = header else { break };
            let Some((offset, End::Open)) = header.data else { break };
            if taken == 0 {
                stretch = offset..offset;
            }
            let follows = (header.number, offset) == (run.end, stretch.end);
            if !follows || !self.receive.insert(offset, raw.payload, target) {
                break;
            }
            run.end += 1;
            stretch.end += raw.payload.len() as u64;
            taken += datagram.len();
        }
        if taken == 0 {
            return 0;
        }
        let packets = (run.end - run.start) as u32;
        self.handle_heard(now, arrival, packets);
        if let Some(link) = &mut self.links[index] {
            link.handle_seen(arrival.at, run, stretch.end - stretch.start);
            link.unacked += packets;
        }
        self.consider_ack(now, index, Sequence::Next);
        self.handle_fresh_data(now);
        taken
    }

    fn handle_heard(&mut self, now: Time, arrival: Arrival, packets: u32) {
        self.heard_at = now;
        self.unconfirmed_until = None;
        self.lateness.handle_wait(arrival.at, now);
        let usable = self.each_link().filter(|link| link.monitor.is_usable()).count();
        self.arrivals.handle(arrival.at, packets, usable as u32);
    }

    fn handle_fresh_data(&mut self, now: Time) {
        self.active_at = now;
        self.introduce_path(now);
        if self.reads == Reads::Discarded {
            self.receive.discard();
        }
        self.consider_window(now);
    }

    fn take_in(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) -> Option<()> {
        let raw = packet::decode(bytes).ok()?;
        let index = usize::from(raw.link);
        let expected = self.links[index].as_ref().map_or(0, |link| link.seen_end());
        let header = raw.resolve(self.local_token, expected, self.receive.next())?;
        let data_len = raw.payload.len().checked_sub(self.seal.tag_len())?;
        let (packet, tag) = bytes.split_at(bytes.len() - self.seal.tag_len());
        if let Seal::Encrypted(_) = self.seal {
            let mut opened = std::mem::take(&mut self.opened);
            opened.clear();
            opened.extend_from_slice(raw.control);
            opened.extend_from_slice(&raw.payload[..data_len]);
            let head = &packet[..packet.len() - opened.len()];
            let is_own = self.seal.decrypt(raw.link, header.number, head, &mut opened, tag);
            let (control, data) = opened.split_at(raw.control.len());
            let taken = if is_own { self.take_in_valid(now, arrival, &header, control, data) } else { None };
            self.opened = opened;
            return taken;
        }
        if !self.seal.is_valid(raw.link, header.number, packet, tag) {
            return None;
        }
        self.take_in_valid(now, arrival, &header, raw.control, &raw.payload[..data_len])
    }

    fn take_in_valid(
        &mut self,
        now: Time,
        arrival: Arrival,
        header: &Header,
        control: &[u8],
        data: &[u8],
    ) -> Option<()> {
        let index = usize::from(header.link);
        let mut eliciting = header.data.is_some();
        let mut frames = Frames::default();
        for frame in control::decode(control) {
            match frame.ok()? {
                Control::Ack(ack) => frames.ack = Some(ack),
                Control::Ping(number) => (frames.ping, eliciting) = (Some(number), true),
                Control::Pong(number) => frames.pong = Some(number),
                Control::Link { address, mtu, priority, entropy } => {
                    frames.link = Some(LinkFrame { address, mtu, priority, entropy });
                }
                Control::Trouble(_) => frames.trouble = true,
                Control::Reset(_) => frames.reset = true,
                Control::Address { index, address } => frames.addresses.push((index, address)),
            }
        }
        if self.links[index].as_ref().is_some_and(|link| link.has_seen(header.number)) {
            // A copy, perhaps since the acknowledgement was lost: say it again.
            if eliciting {
                if let Some(link) = &mut self.links[index] {
                    link.told = 0;
                }
                self.schedule_ack(now);
            }
            return Some(());
        }
        self.meet_link(now, index, arrival.from, frames.link)?;
        if !self.insert_data(header, data) {
            return None;
        }
        self.handle_heard(now, arrival, 1);
        let link = self.links[index].as_mut()?;
        let in_order = link.handle_seen(arrival.at, header.number..header.number + 1, data.len() as u64);
        link.monitor.hasten(now);
        link.unacked += u32::from(eliciting);
        if frames.ping.is_some() {
            link.pong = frames.ping;
            self.control_due = true;
        }
        if frames.pong == Some(link.challenge) {
            self.handle_pong(now, index);
        }
        if frames.trouble {
            self.duplicate_until = now + DUPLICATE_FOR;
        }
        if self.role == Role::Client {
            self.offers.extend(frames.addresses);
            // Whoever follows them has them by then; a server has no more of them at a time.
            let excess = self.offers.len().saturating_sub(ADDRESSES_MAX);
            self.offers.drain(..excess);
        }
        if frames.reset {
            self.closed = Some(CloseReason::Reset);
        }
        if let Some(ack) = frames.ack {
            self.handle_ack(now, arrival.at, &ack);
        }
        if eliciting {
            self.consider_ack(now, index, in_order);
        }
        if !data.is_empty() {
            self.handle_fresh_data(now);
        }
        Some(())
    }

    /// Learns where a link's peer is. Nothing if the link is not known and not announced.
    fn meet_link(&mut self, now: Time, index: usize, from: SocketAddr, announced: Option<LinkFrame>) -> Option<()> {
        if self.role == Role::Client {
            return self.links[index].is_some().then_some(());
        }
        let known = self.is_established_from(index, from);
        if let Some(LinkFrame { address, mtu, priority, entropy }) = announced {
            let offered = self.offered.get(usize::from(address));
            let path = Path {
                local: offered.map(|(address, _)| address.ip),
                interface: offered.map_or(0, |(_, interface)| *interface),
                entropy,
                // The port of an entropy only sends: replies go to the connection's own port.
                remote: if entropy == 0 { from } else { SocketAddr::new(from.ip(), self.peer_port) },
            };
            let ours = offered.map_or(u16::MAX, |(address, _)| address.datagram_max());
            match &mut self.links[index] {
                Some(link) if known => {
                    // The proven link's own address becomes known.
                    link.path = path;
                    link.datagram_max = mtu.min(ours);
                    link.priority = priority;
                }
                Some(link) if link.monitor.is_usable() => {}
                slot => {
                    let mut link = Link::new(now, LinkId(index as u8), path, mtu.min(ours));
                    link.priority = priority;
                    if entropy > 0 {
                        link.monitor = Monitor::unused(now);
                    }
                    let mut lost = Outcome::default();
                    if let Some(mut old) = slot.take() {
                        lost = old.give_up_all(&mut self.send);
                        link.keep_numbers_of(&old);
                    }
                    *slot = Some(Box::new(link));
                    self.control_due = true;
                    self.handle_outcome(&lost);
                    let challenge = self.next_challenge();
                    self.links[index].as_mut()?.challenge = challenge;
                }
            }
        }
        self.links[index].is_some().then_some(())
    }

    fn insert_data(&mut self, header: &Header, data: &[u8]) -> bool {
        let Some((offset, end)) = header.data else { return true };
        let Some(last) = offset.checked_add(data.len() as u64) else { return false };
        self.receive.insert(offset, data, &mut Target::default()) && (end == End::Open || self.receive.finish(last))
    }

    /// Decides when to acknowledge: at once what tells of loss or fills a batch, soon everything else.
    fn consider_ack(&mut self, now: Time, index: usize, order: Sequence) {
        let Some(link) = self.links[index].as_ref().filter(|_| self.acks_due == 0) else { return };
        // One acknowledgement tells of all links, so it is their packets together that are counted.
        let unacked: u32 = self.each_link().map(|link| link.unacked).sum();
        // Once both directions have ended, no company is to come.
        let is_last = self.is_drained();
        if order == Sequence::Gap || unacked >= self.arrivals.ack_every || link.pong.is_some() || is_last {
            self.schedule_ack(now);
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + self.ack_delay());
        }
    }

    /// How long an acknowledgement may wait for company.
    fn ack_delay(&self) -> Duration {
        if self.has_carried_little() { self.stretched(ACK_DELAY).min(ACK_DELAY_MAX) } else { ACK_DELAY }
    }

    /// An acknowledgement leaves with the next packets.
    pub(super) fn schedule_ack(&mut self, now: Time) {
        self.ack_at = None;
        // A link on which nothing was sent yet is neither of use nor suspect.
        let tried = || self.each_link().filter(|link| link.packets_sent > 0 && !link.is_unused());
        let is_on_all = now < self.duplicate_until || tried().any(|link| !link.monitor.is_usable());
        let all = tried().filter(|link| link.monitor.may_try()).fold(0, |links, link| links | 1 << link.id.0);
        let best = self.best_ack_link().map_or(0, |link| 1 << link.0);
        self.acks_due |= if is_on_all && all != 0 { all } else { best };
    }

    /// Of the usable links of the lowest priority number, that on which something arrived last; of no usable one, any.
    pub(super) fn best_ack_link(&self) -> Option<LinkId> {
        self.each_link()
            .max_by_key(|link| {
                let preference = (std::cmp::Reverse(link.priority), link.seen_at, std::cmp::Reverse(link.id));
                (link.monitor.is_usable(), preference)
            })
            .map(|link| link.id)
    }

    fn handle_pong(&mut self, now: Time, index: usize) {
        let Some(link) = &mut self.links[index] else { return };
        if link.monitor.handle_pong(now) {
            link.handle_usable(now);
            self.control_due = true;
        }
    }

    fn handle_ack(&mut self, now: Time, arrived: Time, ack: &Ack) {
        if ack.received > self.send.next() {
            return;
        }
        let limited = if self.send.waiting(self.peer_limit) > 0 { Limited::ByWindow } else { Limited::ByApplication };
        let waits = self.lateness.expected() + self.peer_lateness.expected();
        let (mut due, base) = (None, self.send.base());
        let was_silent = self.each_link().all(|link| !link.monitor.is_usable());
        for acked in &ack.links {
            let index = usize::from(acked.link);
            // After a silence of everything, one answer brings back every link that it tells of.
            let others = if was_silent { Others::NoneUsable } else { self.others(index) };
            let coupling = self.coupling(index);
            let (paths, least_queue) = self.siblings(now, index);
            let least_rtt = self.least_rtt(index);
            let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { continue };
            let context = AckContext { arrived, limited, waits, coupling, paths, least_queue, least_rtt };
            let outcome = link.handle_ack(now, acked, context, &mut self.send, others);
            due = due.into_iter().chain(outcome.due).min();
            self.handle_outcome(&outcome);
            self.leave_path(now, index);
        }
        if limited == Limited::ByApplication {
            self.backlogged_since = None;
        }
        // Without anything that waits to be sent, an acknowledgement may be late on purpose.
        if let Some(due) = due.filter(|_| limited == Limited::ByWindow) {
            self.peer_lateness.handle_wait(due, arrived);
        }
        if was_silent && self.each_link().any(|link| link.monitor.is_usable()) {
            self.abandon_silent_links();
        }
        self.send.handle_acked(0..ack.received);
        if self.send.base() > base {
            self.oldest_since = now;
        }
        self.peer_limit = self.peer_limit.max(ack.limit);
        self.find_silent_links(now);
        let is_news = self.each_link().any(|link| !link.monitor.is_usable());
        self.control_due |= is_news;
    }

    /// The share of a lone flow's growth that a link has which competes beside others of this connection.
    fn coupling(&self, index: usize) -> f64 {
        let Some(link) = self.links.get(index).and_then(Option::as_ref) else { return 1.0 };
        let competing = |link: &&Link| link.monitor.is_usable() && link.congestion.is_crowded();
        let all = self.each_link().filter(competing).map(Link::as_competitor);
        congestion::coupling(link.as_competitor().0, all)
    }

    /// How many usable links lead between the same two addresses as this one, itself included, and the smallest queue of late of
    /// the others.
    fn siblings(&self, now: Time, index: usize) -> (usize, Option<Duration>) {
        let Some(link) = self.links.get(index).and_then(Option::as_ref) else { return (1, None) };
        let is_sibling =
            |other: &&Link| other.id != link.id && other.monitor.is_usable() && other.is_between_ends_of(link);
        let siblings = self.each_link().filter(is_sibling);
        siblings.fold((1, None), |(count, least), other| {
            (count + 1, least.into_iter().chain(other.congestion.queue_of_late(now)).min())
        })
    }

    /// The smallest round-trip time of late of the other links between the same two addresses, used now or not.
    fn least_rtt(&self, index: usize) -> Option<Duration> {
        let link = self.links.get(index).and_then(Option::as_ref)?;
        let siblings = self.each_link().filter(|other| other.id != link.id && other.is_between_ends_of(link));
        siblings.filter_map(|other| other.rtt.measured_minimum()).min()
    }

    pub(super) fn handle_outcome(&mut self, outcome: &Outcome) {
        match outcome.fin {
            Fate::Acked => self.fin = Fin::Acked,
            Fate::Lost if self.fin == Fin::Sent => self.fin = Fin::Due,
            Fate::Lost | Fate::Unknown => {}
        }
        if outcome.window == Fate::Lost {
            self.window_due = true;
            self.acks_due |= self.best_ack_link().map_or(0, |link| 1 << link.0);
        }
        if let Some(sent) = outcome.newest_sent {
            self.newest_acked_sent = self.newest_acked_sent.max(sent);
        }
    }

    /// Suspects links whose oldest packet is unanswered though much later ones on other links were answered.
    fn find_silent_links(&mut self, now: Time) {
        for index in 0..self.links.len() {
            let Some(link) = &self.links[index] else { continue };
            let patience = SUSPICION.max(link.rtt.smoothed() * 3);
            let silent = link.monitor.is_usable()
                && link.oldest_sent().is_some_and(|sent| {
                    let latest = sent.max(link.path_answered_sent);
                    self.newest_acked_sent.since(latest) > patience
                });
            if silent {
                self.suspect(now, index);
            }
        }
    }

    /// Has what is still in flight on links that did not come back leave on those that did.
    fn abandon_silent_links(&mut self) {
        for index in 0..self.links.len() {
            if let Some(link) = self.links[index].as_mut().filter(|link| !link.monitor.is_usable()) {
                let outcome = link.give_up_all(&mut self.send);
                self.handle_outcome(&outcome);
            }
        }
    }

    /// Has everything in flight on a silent link leave on the others.
    pub(super) fn suspect(&mut self, now: Time, index: usize) {
        let Some(link) = &mut self.links[index] else { return };
        if link.monitor.suspect(now) {
            let outcome = link.give_up_all(&mut self.send);
            self.handle_outcome(&outcome);
            self.open_links(now);
            self.leave_silent_path(now, index);
        }
    }

    /// A port of ours lost or got its carrier.
    pub fn handle_carrier(&mut self, now: Time, link: LinkId, carrier: Carrier) {
        self.control_due = true;
        let Some(link) = self.links.get_mut(link.index()).and_then(Option::as_mut) else { return };
        match carrier {
            Carrier::Up => link.monitor.handle_up(now),
            Carrier::Down | Carrier::Refused => {
                link.monitor.handle_down(now, carrier == Carrier::Down);
                let outcome = link.give_up_all(&mut self.send);
                self.handle_outcome(&outcome);
                self.open_links(now);
            }
        }
    }

    /// The network says that nobody is at the peer's port, quoting a datagram that it says we sent. Only a quote with the
    /// peer's token counts, which nobody off the path knows.
    pub fn handle_unreachable(&mut self, quoted: &[u8]) {
        let Ok(raw) = packet::decode(quoted) else { return };
        let Some(link) = &self.links[usize::from(raw.link)] else { return };
        if raw.resolve(self.peer_token, link.next_number, self.send.base()).is_some() {
            self.unreachable += 1;
            if self.unreachable >= UNREACHABLE_MAX && self.closed.is_none() {
                self.closed = Some(CloseReason::Reset);
            }
        }
    }
}

/// Arrivals on all links, counted over a millisecond or so.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arrivals {
    count: u32,
    since: Time,
    /// After how many packets an acknowledgement is due: a quarter of those of a millisecond.
    ack_every: u32,
}

impl Arrivals {
    pub(super) fn new(now: Time) -> Self {
        Self { count: 0, since: now, ack_every: 2 }
    }

    fn handle(&mut self, now: Time, packets: u32, links: u32) {
        self.count += packets;
        let elapsed = now.since(self.since);
        if elapsed >= Duration::from_millis(1) {
            let each = u64::from(self.count) * 1_000_000 / (elapsed.as_nanos() as u64 * ACKS_A_MS).max(1);
            self.ack_every = (each as u32).clamp(2, ACK_PACKETS_MAX * links.max(1));
            (self.count, self.since) = (0, now);
        }
    }
}

/// Whether a packet followed the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    Next,
    Gap,
}

/// What [`Control::Link`] says.
#[derive(Clone, Copy, Debug)]
struct LinkFrame {
    address: u8,
    mtu: u16,
    priority: u8,
    entropy: u8,
}

/// The control frames of one packet; of a kind that came twice, the last.
#[derive(Default)]
struct Frames {
    ack: Option<Ack>,
    ping: Option<u64>,
    pong: Option<u64>,
    link: Option<LinkFrame>,
    trouble: bool,
    reset: bool,
    addresses: SmallVec<[(u8, Address); 1]>,
}

impl Link {
    /// One past the highest number that arrived.
    fn seen_end(&self) -> u64 {
        self.seen.iter().next_back().map_or(0, |range| range.end)
    }

    fn as_competitor(&self) -> Competitor {
        (self.congestion.window() as f64, self.rtt.smoothed().as_secs_f64().max(1e-6))
    }

    fn has_seen(&self, number: u64) -> bool {
        number < self.seen_floor || self.seen.contains(number)
    }

    fn handle_seen(&mut self, arrived: Time, numbers: Range<u64>, data_len: u64) -> Sequence {
        let order = if numbers.start == self.seen_end() { Sequence::Next } else { Sequence::Gap };
        self.packets_received += numbers.end - numbers.start;
        self.seen.insert(numbers);
        if self.seen.len() > SEEN_RANGES_MAX {
            self.seen.keep_highest(SEEN_RANGES_MAX);
            self.seen_floor = self.seen.first().map_or(0, |range| range.start);
        }
        self.bytes_received += data_len;
        (self.seen_at, self.told) = (self.seen_at.max(arrived), 0);
        order
    }
}
