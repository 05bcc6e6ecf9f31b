//! What leaves: which packets, on which link.
//!
//! Data leave in runs on one link, since a run of equal datagrams costs the system as much as one (flowcells: K. He et al.,
//! *Presto*, SIGCOMM 2015). The link is the one on which the run is estimated to arrive first: its round trip plus what is
//! in flight over its rate. A link that would deliver later than the best one would with *everything* that waits gets
//! nothing, so a slow link neither delays the end of a message nor fills the receiver's buffer with islands.
//!
//! ```text
//!   arrival estimate    link 0 ████████░░░░ room → run      all that waits, on link 0: ████████████████
//!                       link 1 ██████████████████████████ later than that: not used
//! ```

use super::{CloseReason, Connection, Fin, receive::ACK_DELAY};
use crate::{
    LINKS_MAX,
    health::Health,
    link::{Fate, Link, LinkId, Outcome, Path, Purpose},
    seal::Seal,
    time::Time,
    wire::{
        DATAGRAM_MIN,
        control::{self, Control},
        packet::{self, End, Header, Width},
    },
};
use std::{ops::Range, time::Duration};

/// Most datagrams of a run: what Linux segments in one call.
const RUN_DATAGRAMS_MAX: u64 = 64;
/// Most bytes of a run: less than half a millisecond of a link of 1 Gbit/s, as what comes after a run waits for it.
const RUN_BYTES_MAX: u64 = 59_000;
/// A run takes no longer than this on the wire, so that what comes after it does not wait,
const RUN_TIME: Duration = Duration::from_micros(250);
/// unless it is as long as runs can be, which costs both ends the least, and takes no longer than this.
const RUN_TIME_WHOLE: Duration = Duration::from_micros(800);
/// The same on a gray link, since a lost frame may be a whole run.
const RUN_TIME_GRAY: Duration = Duration::from_micros(60);
/// Runs need not be shorter than this, however slow the link.
const RUN_BYTES_MIN: f64 = 3000.0;
/// Acknowledgements that tell of the same last arrival on a link. If all are lost, the peer asks on that link.
const TOLD_MAX: u32 = 4;
/// Data that carry a link's announcement, at most: with it they fit into one datagram.
const ANNOUNCING_BYTES_MAX: u64 = DATAGRAM_MIN as u64 / 2;
/// How much later a repeated byte may arrive for each lost one: what a loss costs in time.
const LOSS_COST: Duration = Duration::from_millis(10);
/// Numbers beyond the last acknowledged one up to which 16 bits are enough.
const NARROW_NUMBERS_MAX: u64 = 16_000;

/// A piece of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of [`Batch::heads`].
    Head(Range<usize>),
    /// Stream bytes, kept in the connection's buffer.
    Data(Range<u64>),
}

/// Datagrams to be sent on one path. All but the last are `datagram_size` long.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The link.
    pub link: LinkId,
    /// Where from and to.
    pub path: Path,
    /// Length of each datagram; the last may be shorter.
    pub datagram_size: usize,
    /// The pieces of all datagrams, in order.
    pub parts: Vec<Part>,
    /// For each datagram, one past its last part.
    pub ends: Vec<usize>,
    /// Headers and tags.
    pub heads: Vec<u8>,
    /// What the system shall think of the neighbour that this goes to.
    pub neighbour: Neighbour,
    /// How it is queued by the sending machine.
    pub precedence: Precedence,
}

/// How a batch is queued by the sending machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// In order.
    Normal,
    /// Before data: an acknowledgement alone. The time that it waits behind data of its own machine would be measured as queueing
    /// delay of the path that it acknowledges.
    LowDelay,
}

/// What the sender knows of the neighbour on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Nothing that the system does not find out by itself.
    Unsaid,
    /// It answered before and is silent now. The system should keep its hardware address: once forgotten, it is asked
    /// for only once a second, and that is how long a healed link would stay silent.
    Keep,
}

impl Default for Batch {
    fn default() -> Self {
        let remote = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
        Self {
            link: LinkId(0),
            path: Path { local: None, interface: 0, entropy: 0, remote },
            datagram_size: 0,
            parts: Vec::new(),
            ends: Vec::new(),
            heads: Vec::new(),
            neighbour: Neighbour::Unsaid,
            precedence: Precedence::Normal,
        }
    }
}

impl Batch {
    /// The datagrams as bytes of their own.
    #[must_use]
    pub fn datagrams(&self, connection: &Connection) -> Vec<Vec<u8>> {
        let mut from = 0;
        self.ends
            .iter()
            .map(|end| {
                let mut bytes = Vec::new();
                for part in &self.parts[from..*end] {
                    let (head, tail) = connection.part(self, part);
                    bytes.extend_from_slice(head);
                    bytes.extend_from_slice(tail);
                }
                from = *end;
                bytes
            })
            .collect()
    }

    fn clear(&mut self, link: &Link) {
        self.link = link.id;
        self.path = link.path;
        self.datagram_size = 0;
        self.parts.clear();
        self.ends.clear();
        self.heads.clear();
        let is_silent = link.largest_acked.is_some() && link.monitor.health() == Health::Suspect;
        self.neighbour = if is_silent { Neighbour::Keep } else { Neighbour::Unsaid };
        self.precedence = Precedence::Normal;
    }
}

/// A packet about to be written.
struct Draft<'a> {
    control: &'a [u8],
    data: Option<(Range<u64>, End)>,
    purpose: Option<Purpose>,
}

impl Connection {
    /// Whether [`Self::poll_transmit`] may have something; if not, nobody need look at the clock to ask it.
    #[must_use]
    pub fn wants_transmit(&self) -> bool {
        self.control_due
            || self.acks_due != 0
            || self.window_due
            || self.resets_due > 0
            || self.fin == Fin::Due
            || self.send.waiting(self.peer_limit) > 0
    }

    /// Fills in what is to be sent next. Returns `false` when there is nothing more now.
    pub fn poll_transmit(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.closed.is_some() {
            return self.transmit_reset(now, batch);
        }
        if self.announce_at.is_some() && self.send.waiting(self.peer_limit) > 0 {
            self.announce_now();
        }
        self.transmit_control(now, batch) || self.transmit_data(now, batch) || self.transmit_ack(now, batch)
    }

    /// What [`Self::poll_transmit`] gave last was not sent, since a queue of this machine is full (ENOBUFS, EAGAIN): at once a
    /// sign of congestion. Its data leave again, nothing on that link before about a round trip has passed.
    pub fn handle_refused(&mut self, now: Time, batch: &Batch) {
        let Some(link) = &mut self.links[batch.link.index()] else { return };
        let outcome = link.handle_refused(now, batch.ends.len(), &mut self.send);
        // What it acknowledged and told of the window is said again, not at once: the queue is full.
        self.links.iter_mut().flatten().for_each(|link| link.told = 0);
        self.ack_at = self.ack_at.or(Some(now + ACK_DELAY));
        self.window_due_later |= outcome.window == Fate::Lost;
        self.handle_outcome(&Outcome { window: Fate::Unknown, ..outcome });
    }

    fn transmit_reset(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.resets_due == 0 || self.closed != Some(CloseReason::Aborted) {
            return false;
        }
        // One link after the other, as often as there are RESETs for each.
        let links: Vec<usize> = self.each_link().map(|link| link.id.index()).collect();
        let Some(index) = links.get(usize::from(self.resets_due - 1) % links.len().max(1)) else { return false };
        self.resets_due -= 1;
        let mut control = Vec::new();
        control::encode(&mut control, &Control::Reset(0));
        self.transmit_one(now, *index, batch, Draft { control: &control, data: None, purpose: None });
        true
    }

    /// Answers, probes, and tries of datagram sizes.
    fn transmit_control(&mut self, now: Time, batch: &mut Batch) -> bool {
        if !self.control_due {
            return false;
        }
        let tries_sizes = self.tries_sizes();
        let carrier = self.announcement_carrier(now);
        for index in 0..LINKS_MAX {
            let interval = self.probe_interval(now, index);
            let Some(link) = &mut self.links[index] else { continue };
            let mut control = Vec::new();
            let mut purpose = None;
            let mut size = None;
            let mut given_up = Outcome::default();
            if let Some(number) = link.pong.take() {
                control::encode(&mut control, &Control::Pong(number));
            }
            if carrier == Some(index) {
                // The data that leave next are acknowledged as well as a probe.
            } else if link.is_probe_due(now) {
                given_up = link.handle_probe(now, interval, &mut self.send);
                link.announce.iter().for_each(|frame| control::encode(&mut control, frame));
                control::encode(&mut control, &Control::Ping(link.challenge));
                purpose = Some(Purpose::Probe);
            } else if control.is_empty() && tries_sizes {
                size = link.size_to_try(now);
                if size.is_some() {
                    control::encode(&mut control, &Control::Ping(link.challenge));
                    purpose = Some(Purpose::Size);
                }
            }
            self.handle_outcome(&given_up);
            if control.is_empty() {
                continue;
            }
            let suspects = self.suspects();
            if suspects != 0 {
                control::encode(&mut control, &Control::Trouble(suspects));
            }
            if size.is_none() && (self.ack_at.is_some() || self.acks_due != 0) {
                self.put_ack(now, &mut control, index);
            }
            if let Some(size) = size {
                // 2 bytes say how long the control frames are, which padding fills up.
                let fixed = packet::data_header_len(Width::Wide) - 5 + 2 + self.seal.tag_len();
                control.resize(usize::from(size).saturating_sub(fixed).max(control.len()), 0);
            }
            self.transmit_one(now, index, batch, Draft { control: &control, data: None, purpose });
            return true;
        }
        self.control_due = false;
        false
    }

    /// The link of which the next data carry the frames that it has to announce: data of one datagram. Before more than
    /// that a probe leaves alone, whose round trip is not lengthened by what is queued behind it.
    fn announcement_carrier(&self, now: Time) -> Option<usize> {
        let waiting = self.send.waiting(self.peer_limit);
        if waiting == 0 || waiting > ANNOUNCING_BYTES_MAX || !self.each_link().any(Link::announces_with_data) {
            return None;
        }
        let index = self.choose_link(now, waiting)?;
        self.links[index].as_ref().is_some_and(|link| link.announces_with_data()).then_some(index)
    }

    fn transmit_ack(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.window_due && self.acks_due == 0 {
            self.acks_due = self.best_ack_link().map_or(0, |link| 1 << link.0);
        }
        if self.acks_due == 0 {
            return false;
        }
        let index = self.acks_due.trailing_zeros() as usize;
        let mut control = self.take_scratch();
        self.put_ack(now, &mut control, index);
        let Some(link) = &self.links[index] else { return self.transmit_ack(now, batch) };
        let challenge = link.challenge;
        let purpose = std::mem::take(&mut self.window_due).then(|| {
            control::encode(&mut control, &Control::Ping(challenge));
            Purpose::Window
        });
        self.transmit_one(now, index, batch, Draft { control: &control, data: None, purpose });
        self.scratch = control;
        true
    }

    fn take_scratch(&mut self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    /// Appends an acknowledgement of all links that have something to tell, leaving on this one.
    fn put_ack(&mut self, now: Time, control: &mut Vec<u8>, index: usize) {
        self.acks_due &= !(1 << index);
        self.ack_at = None;
        self.acked_at = now;
        self.limit_told = self.receive.limit();
        let links = self.links.iter().flatten().filter(|link| link.told < TOLD_MAX);
        let entries = links.map(|link| (link.id.0, now.since(link.seen_at).as_micros() as u64, &link.seen));
        control::encode_ack(control, self.receive.next(), self.limit_told, entries);
        for link in self.links.iter_mut().flatten() {
            (link.unacked, link.told) = (0, link.told.saturating_add(1));
        }
    }

    /// One run of data on the link where it arrives first.
    fn transmit_data(&mut self, now: Time, batch: &mut Batch) -> bool {
        self.turn_at = None;
        let waiting = self.send.waiting(self.peer_limit);
        let is_fin_due = self.fin == Fin::Due && self.send.next() == self.send.end();
        if waiting == 0 && !is_fin_due {
            return false;
        }
        let Some(index) = self.choose_link(now, waiting) else {
            let preferred = self.priority_in_use();
            let in_use = self.each_link().filter(|link| Some(link.priority) == preferred);
            self.turn_at = in_use.filter_map(|link| link.next_turn(now)).min();
            return self.add_path_for_data(now) && self.transmit_control(now, batch);
        };
        let mut control = self.take_scratch();
        if self.ack_at.is_some() || self.acks_due & (1 << index) != 0 {
            self.put_ack(now, &mut control, index);
        }
        let link = self.links[index].as_mut().expect("the chosen link");
        let mut purpose = Purpose::Data;
        if link.announces_with_data() {
            link.probe_due = false;
            link.announce.iter().for_each(|frame| control::encode(&mut control, frame));
            purpose = Purpose::Announcement;
            // Its size may be due, too.
            self.control_due = true;
        }
        let link = self.links[index].as_ref().expect("the chosen link");
        batch.clear(link);
        let size = u64::from(link.datagram);
        let width = self.width_on(link);
        let overhead = (packet::data_header_len(width) + self.seal.tag_len()) as u64;
        let room = if link.sends_by_turns() { u64::MAX } else { link.room() };
        let budget = link.turn_bytes().min(room).max(size);
        let mut datagrams = (budget / size).clamp(1, RUN_DATAGRAMS_MAX);
        batch.datagram_size = usize::from(link.datagram);
        while datagrams > 0 {
            let fixed = if control.is_empty() { overhead } else { overhead + 2 + control.len() as u64 };
            let range = self.send.take(size - fixed, self.peer_limit);
            let range = match range {
                Some(range) => range,
                None if self.fin == Fin::Due && self.send.next() == self.send.end() => self.send.end()..self.send.end(),
                None => break,
            };
            let is_last = self.fin == Fin::Due && range.end == self.send.end() && self.send.next() == self.send.end();
            let end = if is_last { End::Fin } else { End::Open };
            if is_last {
                self.fin = Fin::Sent;
            }
            let is_full = range.end - range.start == size - fixed;
            let draft = Draft { control: &control, data: Some((range, end)), purpose: Some(purpose) };
            self.append(now, index, batch, &draft);
            control.clear();
            purpose = Purpose::Data;
            datagrams -= 1;
            if !is_full {
                break;
            }
            datagrams -= self.append_full(now, index, batch, width, datagrams);
        }
        self.scratch = control;
        if batch.ends.len() == 1 {
            batch.datagram_size = batch_len(batch);
        }
        if let Some(link) = &mut self.links[index] {
            link.handle_turn(now, batch_len(batch) as u64);
        }
        self.active_at = now;
        !batch.ends.is_empty()
    }

    /// The link on which what waits arrives first, if it has room now.
    fn choose_link(&self, now: Time, waiting: u64) -> Option<usize> {
        let is_repeat = self.send.has_lost();
        let estimate = |link: &Link, bytes: u64| {
            let rate = link.rate_planned();
            let seconds = (link.in_flight + bytes) as f64 / rate + link.rtt.minimum().as_secs_f64();
            let loss = if is_repeat { (1.0 - link.monitor.delivery_ratio()) * LOSS_COST.as_secs_f64() } else { 0.0 };
            seconds + loss
        };
        let preferred = self.priority_in_use()?;
        let usable = || self.each_link().filter(|link| link.monitor.is_usable() && link.priority == preferred);
        if usable().all(|link| waiting <= u64::from(link.datagram)) {
            // One datagram: nothing is gained by another link than the soonest, unless it is full.
            let soonest = usable().min_by(|a, b| estimate(a, waiting).total_cmp(&estimate(b, waiting)))?;
            return soonest.has_room_for(now, waiting).then(|| soonest.id.index());
        }
        let all_on_best = usable().map(|link| estimate(link, waiting)).min_by(f64::total_cmp)?;
        let next = |link: &Link| estimate(link, waiting.min(u64::from(link.datagram)));
        let soonest = usable().map(next).min_by(f64::total_cmp)?;
        // How long the peer's buffer lets the others go on while a byte is late.
        let best_rate = usable().map(Link::rate_planned).max_by(f64::total_cmp)?;
        let covered = self.peer_limit.saturating_sub(self.send.next()) as f64 / best_rate / 2.0;
        usable()
            .filter(|link| link.has_room_for(now, waiting))
            .map(|link| (next(link), link))
            .filter(|(arrival, _)| *arrival <= all_on_best.max(soonest) && *arrival <= soonest + covered)
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, link)| link.id.index())
    }

    /// The priority of the links that carry data now: the lowest number of a usable one.
    pub(super) fn priority_in_use(&self) -> Option<u8> {
        self.each_link().filter(|link| link.monitor.is_usable()).map(|link| link.priority).min()
    }

    fn transmit_one(&mut self, now: Time, index: usize, batch: &mut Batch, draft: Draft<'_>) {
        let link = self.links[index].as_ref().expect("a link to send on");
        batch.clear(link);
        // It would overtake data in flight on its link, which would then count as lost.
        if draft.data.is_none() && draft.purpose.is_none() && link.in_flight == 0 {
            batch.precedence = Precedence::LowDelay;
        }
        self.append(now, index, batch, &draft);
        batch.datagram_size = batch_len(batch);
    }

    /// Writes one packet and has its link remember it.
    fn append(&mut self, now: Time, index: usize, batch: &mut Batch, draft: &Draft<'_>) {
        let link = self.links[index].as_ref().expect("a link to send on");
        let width = if draft.data.is_some() { self.width_on(link) } else { Width::Wide };
        let number = link.next_number;
        let (range, end) = draft.data.clone().unwrap_or((0..0, End::Open));
        let header = Header {
            link: index as u8,
            token: self.peer_token,
            number,
            data: draft.data.as_ref().map(|_| (range.start, end)),
        };
        let from = batch.heads.len();
        packet::encode(&mut batch.heads, width, &header, draft.control);
        let head = from..batch.heads.len();
        if let Seal::Encrypted(_) = self.seal {
            let clear = head.end - head.start - draft.control.len();
            let (data, wrapped) = self.send.slices(range.clone());
            batch.heads.extend_from_slice(data);
            batch.heads.extend_from_slice(wrapped);
            self.seal.encrypt(index as u8, number, &mut batch.heads, from, clear);
            batch.parts.push(Part::Head(from..batch.heads.len()));
        } else {
            batch.parts.push(Part::Head(head.clone()));
            if range.start < range.end {
                batch.parts.push(Part::Data(range.clone()));
            }
        }
        if let Seal::Checksum | Seal::Keyed { .. } = self.seal {
            let (data, wrapped) = self.send.slices(range.clone());
            let mut tag = Vec::with_capacity(self.seal.tag_len());
            self.seal.put_tag(index as u8, number, &[&batch.heads[head.clone()], data, wrapped], &mut tag);
            let at = batch.heads.len();
            batch.heads.extend_from_slice(&tag);
            batch.parts.push(Part::Head(at..batch.heads.len()));
        }
        batch.ends.push(batch.parts.len());
        let length = (range.end - range.start) as u16;
        let size = (head.end - head.start + usize::from(length) + self.seal.tag_len()) as u16;
        let link = self.links[index].as_mut().expect("a link to send on");
        match draft.purpose {
            Some(purpose) => link.handle_sent(now, range.start, length, size, end, purpose),
            None => link.handle_sent_unremembered(now),
        }
    }

    /// Writes datagrams that new data fill, up to `most`: they need no decision each. Returns how many.
    fn append_full(&mut self, now: Time, index: usize, batch: &mut Batch, width: Width, most: u64) -> u64 {
        let link = self.links[index].as_mut().expect("a link to send on");
        let head_len = packet::data_header_len(width);
        let payload = u64::from(link.datagram) - head_len as u64;
        // Who writes the last byte may have to write the end with it, and a tag is made of the bytes.
        let kept_back = u64::from(self.fin == Fin::Due);
        let count = (self.send.waiting(self.peer_limit).saturating_sub(kept_back) / payload).min(most);
        if self.seal.tag_len() > 0 || self.send.has_lost() || count == 0 {
            return 0;
        }
        let taken = self.send.take(count * payload, self.peer_limit).expect("as many bytes wait");
        for start in taken.step_by(payload as usize) {
            let number = link.next_number;
            let header = Header { link: index as u8, token: self.peer_token, number, data: Some((start, End::Open)) };
            let head = batch.heads.len()..batch.heads.len() + head_len;
            packet::encode(&mut batch.heads, width, &header, &[]);
            batch.parts.extend([Part::Head(head), Part::Data(start..start + payload)]);
            batch.ends.push(batch.parts.len());
            link.handle_sent(now, start, payload as u16, link.datagram, End::Open, Purpose::Data);
        }
        count
    }

    fn width_on(&self, link: &Link) -> Width {
        let unanswered = link.next_number - link.largest_acked.unwrap_or(0);
        if unanswered > NARROW_NUMBERS_MAX { Width::Wide } else { self.width }
    }

    fn suspects(&self) -> u8 {
        self.each_link()
            .filter(|link| matches!(link.monitor.health(), Health::Suspect | Health::Down))
            .fold(0, |links, link| links | 1 << link.id.0)
    }
}

fn batch_len(batch: &Batch) -> usize {
    let data: u64 = batch
        .parts
        .iter()
        .map(|part| match part {
            Part::Head(range) => (range.end - range.start) as u64,
            Part::Data(range) => range.end - range.start,
        })
        .sum();
    data as usize
}

impl Link {
    /// Bytes of a run on this link.
    fn run_bytes(&self) -> u64 {
        let flows = if self.congestion.is_shared() { self.congestion.flows() } else { 1.0 };
        // What all flows of this machine send together is what the wire carries.
        let bytes_in = |time: Duration| self.rate_planned() * flows * time.as_secs_f64();
        let is_gray = self.monitor.health() == Health::Gray;
        // Where another flow fills the queue, the end of a long run finds no room.
        let may_be_whole = !self.congestion.is_shared() && !is_gray && !self.congestion.is_crowded();
        if may_be_whole && bytes_in(RUN_TIME_WHOLE) >= RUN_BYTES_MAX as f64 {
            return RUN_BYTES_MAX;
        }
        let in_time = bytes_in(if is_gray { RUN_TIME_GRAY } else { RUN_TIME });
        (in_time.max(RUN_BYTES_MIN) as u64).min(RUN_BYTES_MAX)
    }

    /// Whether the window is smaller than a run, since many flows share the link: then a run leaves when nothing is in
    /// flight, and the next only after so much time that the window is kept on average.
    fn sends_by_turns(&self) -> bool {
        self.congestion.is_part() && self.congestion.window() < self.run_bytes()
    }

    /// When the next turn begins, if that is all that keeps the link from sending.
    fn next_turn(&self, now: Time) -> Option<Time> {
        let at = if self.in_flight == 0 { self.turn_at.max(self.held_until) } else { self.held_until };
        (self.monitor.is_usable() && at > now).then_some(at)
    }

    /// Bytes that leave at once. Turns become longer one by one, and pauses differ, so that flows which began together
    /// do not send whole runs together.
    fn turn_bytes(&self) -> u64 {
        let run = self.run_bytes();
        if self.sends_by_turns() { run.min(2 * self.turn_last) } else { run }
    }

    /// Notes that data left.
    fn handle_turn(&mut self, now: Time, bytes: u64) {
        if !self.sends_by_turns() {
            (self.turn_at, self.turn_last) = (Time::ZERO, u64::from(self.datagram));
            return;
        }
        let windows = bytes as f64 / self.congestion.window() as f64;
        self.turn_at = self.turn_at.max(now) + self.round_trip().mul_f64(windows * self.varied());
        self.turn_last = bytes.max(u64::from(self.datagram));
    }

    /// Bytes of the smallest run that is sent while `waiting` bytes wait: a whole run, or half the window.
    pub(crate) fn worthwhile(&self, waiting: u64) -> u64 {
        waiting.min(self.run_bytes()).min(self.congestion.window() / 2)
    }

    /// Whether the window lets a packet go, and a worthwhile run if more waits: half the window, or a whole run.
    fn has_room_for(&self, now: Time, waiting: u64) -> bool {
        if now < self.held_until {
            return false;
        }
        if self.sends_by_turns() {
            return self.in_flight == 0 && now >= self.turn_at;
        }
        let worthwhile = self.worthwhile(waiting);
        let room = self.room();
        self.in_flight == 0 || room >= worthwhile.max(1) && room >= u64::from(self.datagram).min(waiting.max(1))
    }
}
