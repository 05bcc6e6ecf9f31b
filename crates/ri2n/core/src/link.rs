//! One link: numbers of what was sent and seen on it, its round trips, window, health and largest datagram.
//!
//! Each link counts its own packets, so that a gap means loss (or reordering *within* the link), never that another link
//! was faster \[RI2N 3.3.1\]. What a number carried is remembered until it is acknowledged or given up; given-up bytes go
//! back to the stream's buffer and may leave on any link.

use crate::{
    buffer::SendBuffer,
    congestion::{Acked, Congestion, Limited},
    health::{Health, Monitor, Others},
    ranges::RangeSet,
    rtt::Rtt,
    time::Time,
    wire::{DATAGRAM_MIN, control, packet::End},
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Packets acknowledged beyond a missing one before it counts as lost (RFC 9002).
const REORDERING_PACKETS: u64 = 3;
/// Large datagrams lost in a row, with none acknowledged, before the path is thought to have become narrower.
const LARGE_LOST_MAX: u32 = 8;
/// How often a size that did not pass is tried again.
const SIZE_RETRY: Duration = Duration::from_secs(30);
/// How long nothing leaves after a queue of this machine was full: a round trip, at least and at most this.
const HELD_MIN: Duration = Duration::from_micros(250);
/// See [`HELD_MIN`].
const HELD_MAX: Duration = Duration::from_millis(20);
/// Longest silence of everything that is a peer which had no turn rather than an outage.
const LATE_MAX: Duration = Duration::from_millis(500);
/// Tries of one size.
const SIZE_TRIES: u32 = 3;

/// Index of a link within its connection, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkId(pub u8);

impl LinkId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where a link's datagrams go from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Our address; without, the system chooses.
    pub local: Option<IpAddr>,
    /// Index of our network interface; zero leaves it to the routes.
    pub interface: u32,
    /// Which source port the datagrams have, so that a network with several paths between the two addresses carries them by
    /// another path: zero is the connection's own port, and each number below [`ENTROPIES`](crate::ENTROPIES) a port of its own.
    pub entropy: u8,
    /// The peer.
    pub remote: SocketAddr,
}

/// A link as told to people.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// Which link.
    pub id: LinkId,
    /// Between which addresses.
    pub path: Path,
    /// Data leave on the usable links of the lowest number; zero unless configured.
    pub priority: u8,
    /// What is thought of it.
    pub health: Health,
    /// Bits a second delivered of late.
    pub rate_bps: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time of late.
    pub rtt_min: Duration,
    /// Share of packets that arrived of late.
    pub delivery_ratio: f64,
    /// Largest datagram in use.
    pub datagram_size: u16,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Packets sent, of all kinds.
    pub packets_sent: u64,
    /// Packets given up.
    pub packets_lost: u64,
    /// Packets that arrived, of all kinds.
    pub packets_received: u64,
    /// Stream bytes sent, repetitions included.
    pub bytes_sent: u64,
    /// Stream bytes received, repetitions included.
    pub bytes_received: u64,
    /// How often the link was suspected or down.
    pub suspicions: u64,
}

/// What a packet was for, beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// Data, perhaps with frames that need no repetition.
    Data,
    /// Data, and all frames of [`Link::announce`].
    Announcement,
    /// Asks for an answer.
    Probe,
    /// Tries a datagram size.
    Size,
    /// Tells that the window opened.
    Window,
}

/// A packet on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) offset: u64,
    pub(crate) length: u16,
    pub(crate) size: u16,
    pub(crate) end: End,
    pub(crate) purpose: Purpose,
    resolved: bool,
}

/// What there is to know of an acknowledgement beside what it says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    /// When it reached this machine.
    pub(crate) arrived: Time,
    pub(crate) limited: Limited,
    /// How long both ends together are expected to wait for their turns.
    pub(crate) waits: Duration,
    /// Share of a lone flow's growth that the link has while it competes.
    pub(crate) coupling: f64,
    /// Usable links between the same two addresses, this one included.
    pub(crate) paths: usize,
    /// The smallest queue of late of the others of them.
    pub(crate) least_queue: Option<Duration>,
    /// The smallest round-trip time of late of the other links between the same two addresses.
    pub(crate) least_rtt: Option<Duration>,
}

/// What became of packets, for the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) acked: u64,
    /// When the latest of the acknowledged was sent.
    pub(crate) newest_sent: Option<Time>,
    /// When the oldest of the acknowledged would have been acknowledged by a peer that never waits.
    pub(crate) due: Option<Time>,
    pub(crate) fin: Fate,
    pub(crate) window: Fate,
}

/// What became of something that is sent once at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Unknown,
    Acked,
    Lost,
}

impl Fate {
    /// One copy was lost, which matters only if no other arrived.
    fn be_lost(&mut self) {
        if *self == Self::Unknown {
            *self = Self::Lost;
        }
    }
}

/// One link.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) path: Path,
    pub(crate) rtt: Rtt,
    pub(crate) congestion: Congestion,
    pub(crate) monitor: Monitor,

    pub(crate) next_number: u64,
    sent: VecDeque<Sent>,
    pub(crate) largest_acked: Option<u64>,
    pub(crate) in_flight: u64,
    /// When the last acknowledged packet was sent, and when the last of any kind was.
    pub(crate) newest_acked_sent: Time,
    pub(crate) eliciting_sent: Time,
    /// When data last left on it.
    pub(crate) data_sent: Time,
    /// When the last packet on the same path, of whichever connection, was sent that was answered.
    pub(crate) path_answered_sent: Time,
    /// The longest time from a packet to its acknowledgement since the connections on the path were told.
    pub(crate) answer_time: Option<Duration>,
    /// How long an answer may take, by what they have measured.
    pub(crate) path_patience: Duration,
    pub(crate) tail_probe: Option<Time>,
    /// How often the last packets were asked after without an answer.
    pub(crate) tail_probes: u32,
    /// How long both ends together are expected to wait for their turns.
    waits: Duration,
    /// Where many flows share the link: no data leave before.
    pub(crate) turn_at: Time,
    /// Bytes of the last turn, at least one datagram.
    pub(crate) turn_last: u64,

    pub(crate) seen: RangeSet,
    /// Everything below was seen or is too old to tell.
    pub(crate) seen_floor: u64,
    pub(crate) seen_at: Time,
    /// Acknowledgements that told of the last arrival.
    pub(crate) told: u32,
    /// Packets that arrived and ask for an acknowledgement not yet sent.
    pub(crate) unacked: u32,
    pub(crate) pong: Option<u64>,
    /// What a pong must repeat to prove that it comes from where the link leads.
    pub(crate) challenge: u64,
    pub(crate) probe_due: bool,
    /// Links of higher numbers wait until none of a lower one delivers.
    pub(crate) priority: u8,
    /// Frames that the next data or a probe carry, until they are acknowledged: the client's that opens the link, the
    /// server's new addresses.
    pub(crate) announce: SmallVec<[control::Control; 1]>,
    /// Number of the first packet that may carry all of them.
    announced_from: u64,
    /// No data before, since a queue of this machine is full.
    pub(crate) held_until: Time,

    pub(crate) datagram: u16,
    pub(crate) datagram_max: u16,
    size_tries: u32,
    size_next: Time,
    large_lost: u32,

    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    pub(crate) packets_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl Link {
    pub(crate) fn new(now: Time, id: LinkId, path: Path, datagram_max: u16) -> Self {
        let datagram = DATAGRAM_MIN.min(datagram_max);
        Self {
            id,
            path,
            rtt: Rtt::new(),
            congestion: Congestion::new(datagram),
            monitor: Monitor::new(now),
            next_number: 0,
            sent: VecDeque::new(),
            largest_acked: None,
            in_flight: 0,
            newest_acked_sent: now,
            eliciting_sent: now,
            data_sent: Time::ZERO,
            path_answered_sent: Time::ZERO,
            answer_time: None,
            path_patience: Duration::ZERO,
            tail_probe: None,
            tail_probes: 0,
            waits: Duration::ZERO,
            turn_at: Time::ZERO,
            turn_last: u64::from(datagram),
            seen: RangeSet::new(),
            seen_floor: 0,
            seen_at: now,
            told: 0,
            unacked: 0,
            pong: None,
            challenge: 0,
            probe_due: false,
            priority: 0,
            announce: SmallVec::new(),
            announced_from: 0,
            held_until: Time::ZERO,
            datagram,
            datagram_max,
            size_tries: 0,
            size_next: now,
            large_lost: 0,
            packets_sent: 0,
            packets_lost: 0,
            packets_received: 0,
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    pub(crate) fn report(&self) -> LinkReport {
        LinkReport {
            id: self.id,
            path: self.path,
            priority: self.priority,
            health: self.monitor.health(),
            rate_bps: (self.congestion.rate() * 8.0) as u64,
            rtt: self.rtt.smoothed(),
            rtt_min: self.rtt.minimum(),
            delivery_ratio: self.monitor.delivery_ratio(),
            datagram_size: self.datagram,
            window: self.congestion.window(),
            in_flight: self.in_flight,
            packets_sent: self.packets_sent,
            packets_lost: self.packets_lost,
            packets_received: self.packets_received,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            suspicions: self.monitor.suspicions(),
        }
    }

    /// Has the next data or probe carry a frame, until it is acknowledged.
    pub(crate) fn announce(&mut self, frame: control::Control) {
        self.announce.push(frame);
        self.announced_from = self.next_number;
        self.probe_due = true;
    }

    /// Whether the peer has not been told of this link yet.
    pub(crate) fn is_unopened(&self) -> bool {
        self.monitor.health() == Health::Opening && self.packets_sent == 0
    }

    /// Whether all that is due is a frame that data may carry as well.
    pub(crate) fn announces_with_data(&self) -> bool {
        self.probe_due && !self.announce.is_empty() && self.pong.is_none() && self.monitor.is_usable()
    }

    /// Whether so much of the window is in flight that no further run would leave.
    fn is_filled(&self) -> bool {
        let (window, in_flight) = (self.congestion.window(), self.in_flight);
        in_flight as f64 > 0.7 * window as f64 || in_flight + self.worthwhile(u64::MAX) > window
    }

    /// Bytes that the window leaves.
    pub(crate) fn room(&self) -> u64 {
        self.congestion.window().saturating_sub(self.in_flight)
    }

    /// The oldest packet without an answer: when it was sent.
    pub(crate) fn oldest_sent(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Remembers a packet. Its number is `next_number`, which moves on.
    pub(crate) fn handle_sent(&mut self, now: Time, offset: u64, length: u16, size: u16, end: End, purpose: Purpose) {
        self.sent.push_back(Sent { at: now, offset, length, size, end, purpose, resolved: false });
        let is_asked_after = purpose == Purpose::Probe && self.tail_probe.is_some_and(|at| at > now);
        if self.in_flight == 0 && !is_asked_after {
            (self.tail_probe, self.tail_probes) = (None, 0);
        }
        self.next_number += 1;
        self.in_flight += u64::from(size);
        self.eliciting_sent = now;
        if length > 0 {
            self.data_sent = now;
        }
        self.packets_sent += 1;
        self.bytes_sent += u64::from(length);
    }

    /// A packet that nobody acknowledges takes a number too.
    pub(crate) fn handle_sent_unremembered(&mut self, now: Time) {
        self.sent.push_back(Sent {
            at: now,
            offset: 0,
            length: 0,
            size: 0,
            end: End::Open,
            purpose: Purpose::Data,
            resolved: true,
        });
        self.next_number += 1;
        self.packets_sent += 1;
        self.forget_resolved();
    }

    /// The last packets were not sent at all, since a queue of this machine is full: they say nothing of the link's health, and
    /// their bytes go back to the stream.
    pub(crate) fn handle_refused(&mut self, now: Time, count: usize, buffer: &mut SendBuffer) -> Outcome {
        let mut outcome = Outcome::default();
        let first = self.sent.len().saturating_sub(count);
        self.congestion.handle_refused(self.next_number - (self.sent.len() - first) as u64, self.next_number);
        for sent in self.sent.range_mut(first..).filter(|sent| !sent.resolved) {
            sent.resolved = true;
            self.in_flight -= u64::from(sent.size);
            self.packets_sent -= 1;
            self.bytes_sent -= u64::from(sent.length);
            if sent.length > 0 {
                buffer.handle_lost(sent.offset..sent.offset + u64::from(sent.length));
            }
            if sent.end == End::Fin {
                outcome.fin.be_lost();
            }
            match sent.purpose {
                Purpose::Window => outcome.window.be_lost(),
                // Asked again soon, as if it had just been answered.
                Purpose::Probe => self.monitor.hasten(now),
                Purpose::Announcement => self.probe_due = true,
                Purpose::Data | Purpose::Size => {}
            }
        }
        let wait = self.round_trip().clamp(HELD_MIN, HELD_MAX);
        self.held_until = self.held_until.max(now + wait.mul_f64(self.varied()));
        // A short run finds room where a long one does not, and comes no more often than the window allows.
        self.turn_last = u64::from(self.datagram);
        let windows = 2.0 * self.turn_last as f64 / self.congestion.window() as f64;
        self.turn_at = self.held_until.max(now + self.round_trip().mul_f64(windows * self.varied()));
        self.forget_resolved();
        outcome
    }

    /// A number from 0.75 to 1.25 that differs from link to link and from packet to packet, so that what began together
    /// does not go on together.
    pub(crate) fn varied(&self) -> f64 {
        let chance = (self.challenge ^ self.next_number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        0.75 + 0.5 * chance as f64 / 65_536.0
    }

    /// Takes in what the peer saw on this link.
    pub(crate) fn handle_ack(
        &mut self,
        now: Time,
        ack: &control::LinkAck,
        context: AckContext,
        buffer: &mut SendBuffer,
        others: Others,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let base = self.next_number - self.sent.len() as u64;
        let AckContext { arrived, limited, waits, coupling, paths, least_queue, least_rtt } = context;
        self.congestion.set_paths(paths);
        let (mut bytes, mut packets, mut newest) = (0_u64, 0_u64, None::<(u64, Time)>);
        let mut oldest_sent = Time::NEVER;
        let limited = if self.is_filled() { limited } else { Limited::ByApplication };
        // Packets of a run follow each other in the stream too.
        let mut stretch = 0..0;
        for range in ack.ranges.iter() {
            let range = range.start.max(base)..range.end.min(self.next_number);
            if range.start >= range.end {
                continue;
            }
            for number in range {
                let sent = &mut self.sent[(number - base) as usize];
                if sent.resolved {
                    continue;
                }
                sent.resolved = true;
                bytes += u64::from(sent.size);
                packets += 1;
                newest = Some((number, sent.at));
                oldest_sent = oldest_sent.min(sent.at);
                if sent.length > 0 {
                    if sent.offset != stretch.end {
                        buffer.handle_acked(std::mem::replace(&mut stretch, sent.offset..sent.offset));
                    }
                    stretch.end += u64::from(sent.length);
                }
                if sent.end == End::Fin {
                    outcome.fin = Fate::Acked;
                }
                match sent.purpose {
                    Purpose::Window => outcome.window = Fate::Acked,
                    Purpose::Size => {
                        self.datagram = self.datagram.max(sent.size).min(self.datagram_max);
                        self.size_tries = 0;
                        self.congestion.set_packet(self.datagram);
                    }
                    Purpose::Probe | Purpose::Announcement if number >= self.announced_from => self.announce.clear(),
                    Purpose::Data | Purpose::Probe | Purpose::Announcement => {}
                }
                if sent.size > DATAGRAM_MIN {
                    self.large_lost = 0;
                }
            }
        }
        buffer.handle_acked(stretch);
        let heard_of_later = ack.ranges.iter().next_back().is_some_and(|range| {
            let largest = (range.end - 1).min(self.next_number.saturating_sub(1));
            let later = self.largest_acked.is_none_or(|known| largest > known) && self.next_number > 0;
            if later {
                self.largest_acked = Some(largest);
            }
            later
        });
        self.in_flight -= bytes;
        if let Some((number, sent_at)) = newest {
            if Some(number) == self.largest_acked && heard_of_later {
                self.answer_time = self.answer_time.max(Some(arrived.since(sent_at)));
                self.rtt.handle_sample(now, arrived.since(sent_at), Duration::from_micros(ack.delay_us));
            }
            self.newest_acked_sent = self.newest_acked_sent.max(sent_at);
            self.waits = waits;
            let rtt = arrived.since(sent_at).saturating_sub(Duration::from_micros(ack.delay_us));
            outcome.acked = packets;
            outcome.newest_sent = Some(sent_at);
            outcome.due = Some(oldest_sent + rtt);
            self.congestion.handle_acked(
                now,
                Acked {
                    bytes,
                    packets,
                    rtt,
                    rtt_min: least_rtt.map_or(self.rtt.minimum(), |least| least.min(self.rtt.minimum())),
                    rtt_smoothed: self.rtt.smoothed(),
                    number,
                    next_number: self.next_number,
                    limited,
                    waits,
                    coupling,
                    least_queue,
                    has_siblings: least_rtt.is_some(),
                },
            );
            (self.tail_probe, self.tail_probes) = (None, 0);
        }
        let silent_since = self.monitor.changed_at;
        if (packets > 0 || heard_of_later) && self.monitor.handle_answer(now, others) {
            // Who was silent on every link was late, which says nothing of how much this one carries.
            let was_late = others == Others::NoneUsable && now.since(silent_since) < LATE_MAX;
            if !was_late {
                self.handle_usable(now);
            }
        }
        let lost = self.detect_lost(now, buffer, &mut outcome);
        self.monitor.handle_outcomes(packets, lost);
        self.forget_resolved();
        outcome
    }

    /// Data may be sent from now on, for the first time or again.
    pub(crate) fn handle_usable(&mut self, now: Time) {
        self.congestion.handle_recovery(now);
        (self.size_tries, self.size_next) = (0, now);
    }

    /// The same link by another path: numbers go on, everything measured starts anew.
    pub(crate) fn keep_numbers_of(&mut self, old: &Self) {
        self.next_number = old.next_number;
        self.seen = old.seen.clone();
        self.seen_floor = old.seen_floor;
    }

    /// Gives up packets that later ones overtook by number or by time. Returns how many.
    fn detect_lost(&mut self, now: Time, buffer: &mut SendBuffer, outcome: &mut Outcome) -> u64 {
        let Some(largest) = self.largest_acked else { return 0 };
        let base = self.next_number - self.sent.len() as u64;
        let overdue = self.rtt.overdue();
        let mut lost = 0;
        let count = (largest + 1).saturating_sub(base).min(self.sent.len() as u64);
        for index in 0..count {
            let number = base + index;
            let sent = &self.sent[index as usize];
            if sent.resolved {
                continue;
            }
            if number + REORDERING_PACKETS > largest && now.since(sent.at) < overdue {
                // Numbers ascend with time: what follows is younger still.
                break;
            }
            // That a size does not pass is no fault of the link.
            lost += u64::from(sent.purpose != Purpose::Size);
            self.give_up(index as usize, buffer, outcome);
        }
        lost
    }

    /// When the next packet becomes overdue by time, if later ones were acknowledged.
    pub(crate) fn loss_deadline(&self) -> Option<Time> {
        let largest = self.largest_acked?;
        let base = self.next_number - self.sent.len() as u64;
        let first = self.sent.front()?;
        (base < largest).then(|| first.at + self.rtt.overdue())
    }

    /// Looks for overdue packets without an acknowledgement.
    pub(crate) fn handle_loss_deadline(&mut self, now: Time, buffer: &mut SendBuffer) -> Outcome {
        let mut outcome = Outcome::default();
        let lost = self.detect_lost(now, buffer, &mut outcome);
        self.monitor.handle_outcomes(0, lost);
        self.forget_resolved();
        outcome
    }

    /// Gives up everything in flight, so that it leaves on other links.
    pub(crate) fn give_up_all(&mut self, buffer: &mut SendBuffer) -> Outcome {
        let mut outcome = Outcome::default();
        for index in 0..self.sent.len() {
            if !self.sent[index].resolved {
                self.give_up(index, buffer, &mut outcome);
            }
        }
        self.forget_resolved();
        self.datagram = DATAGRAM_MIN.min(self.datagram_max);
        (self.tail_probe, self.tail_probes) = (None, 0);
        outcome
    }

    /// Gives up what was sent longer ago than this.
    pub(crate) fn give_up_older(&mut self, now: Time, age: Duration, buffer: &mut SendBuffer) -> Outcome {
        let mut outcome = Outcome::default();
        for index in 0..self.sent.len() {
            if now.since(self.sent[index].at) <= age {
                break;
            }
            if !self.sent[index].resolved {
                self.give_up(index, buffer, &mut outcome);
            }
        }
        self.forget_resolved();
        outcome
    }

    fn give_up(&mut self, index: usize, buffer: &mut SendBuffer, outcome: &mut Outcome) {
        let number = self.next_number - self.sent.len() as u64 + index as u64;
        let sent = &mut self.sent[index];
        sent.resolved = true;
        self.in_flight -= u64::from(sent.size);
        self.packets_lost += 1;
        if sent.length > 0 {
            buffer.handle_lost(sent.offset..sent.offset + u64::from(sent.length));
        }
        if sent.end == End::Fin {
            outcome.fin.be_lost();
        }
        match sent.purpose {
            Purpose::Window => outcome.window.be_lost(),
            Purpose::Probe => {
                self.monitor.handle_probe_lost();
                self.probe_due |= !self.announce.is_empty() && self.monitor.is_usable();
            }
            Purpose::Data => self.congestion.handle_lost(number),
            Purpose::Announcement => {
                self.congestion.handle_lost(number);
                self.probe_due |= !self.announce.is_empty() && self.monitor.is_usable();
            }
            Purpose::Size => {}
        }
        if sent.purpose == Purpose::Data && sent.size > DATAGRAM_MIN {
            self.large_lost += 1;
            if self.large_lost >= LARGE_LOST_MAX && self.monitor.delivery_ratio() < 0.5 {
                self.datagram = DATAGRAM_MIN;
                self.large_lost = 0;
            }
        }
    }

    /// Gives back memory that only a link in use needs.
    pub(crate) fn release_memory(&mut self) {
        self.sent.shrink_to_fit();
    }

    fn forget_resolved(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.resolved) {
            self.sent.pop_front();
        }
    }

    /// The datagram size to try now, if any: the largest first, then halfway.
    pub(crate) fn size_to_try(&mut self, now: Time) -> Option<u16> {
        if !self.monitor.is_usable() || self.datagram >= self.datagram_max || now < self.size_next {
            return None;
        }
        let later = now + self.rtt.patience().max(Duration::from_millis(5));
        // Into a silence goes one, not one after the other.
        if self.in_flight > 0 && self.room() < u64::from(self.datagram_max) {
            self.size_next = later;
            return None;
        }
        let size = match self.size_tries / SIZE_TRIES {
            0 => self.datagram_max,
            steps @ 1..=4 => self.datagram + ((self.datagram_max - self.datagram) >> steps),
            _ => {
                self.size_tries = 0;
                self.size_next = now + SIZE_RETRY;
                return None;
            }
        };
        self.size_tries += 1;
        self.size_next = later;
        (size > self.datagram).then_some(size)
    }

    pub(crate) fn size_deadline(&self) -> Option<Time> {
        (self.monitor.is_usable() && self.datagram < self.datagram_max).then_some(self.size_next)
    }

    /// How long an acknowledgement may take before something is wrong.
    pub(crate) fn patience(&self) -> Duration {
        self.rtt.patience() + self.waits
    }

    /// Bytes a second to plan with: a window each round trip, which is what a busy link delivers and an idle one could.
    pub(crate) fn rate_planned(&self) -> f64 {
        self.congestion.window() as f64 / self.round_trip().as_secs_f64().max(1e-5)
    }

    /// How long a window is in flight: a round trip, and the time that the ends wait for their turns.
    pub(crate) fn round_trip(&self) -> Duration {
        self.rtt.smoothed() + self.waits
    }
}
