//! Ports: queues, what is on the cable, and who has paused whom.

use super::{Network, What, capture::Direction, config::Switching, outcome::PortOutcome};
use crate::tables::NONE;

/// Octets of a frame after which a cut-through switch decides, preamble included.
pub(super) const HEADER_BYTES: u64 = 8 + 64;
/// Up to here a frame's memory is freed when it arrives rather than when its last bit leaves: the time of 125 octets at
/// 1 Gbit/s, far below that of a frame.
const SHORT_FLIGHT_PS_MAX: u64 = 1_000_000;
/// Octets of a PAUSE frame on the cable, preamble and gap included.
const PAUSE_WIRE_BYTES: u64 = 84;
/// Bits of a pause quantum (IEEE 802.3, annex 31B).
pub(super) const QUANTUM_BITS: u64 = 512;

/// One end of a cable, on its way out.
pub(super) struct Port {
    pub(super) busy_until_ps: u64,
    pub(super) ps_per_byte: u64,
    /// Along the cable, and through the next switch until the frame is queued.
    pub(super) flight_ps: u64,
    pub(super) peer: u32,
    /// The peer's switch; [`NONE`] if the peer is a host's own port, or there is none.
    pub(super) peer_switch: u32,
    /// The switch; [`NONE`] for a host's own port.
    pub(super) switch: u32,
    /// Frames in queues and on the cable.
    pub(super) queued_bytes: u32,
    /// The class that sent last, for turns.
    pub(super) turn: u8,
    pub(super) kick_pending: bool,
    pub(super) flow_control: bool,
    pub(super) up: bool,
    /// Whether both ends of the cable are up.
    pub(super) carries: bool,
    /// Frames lost of 2^32.
    pub(super) loss: u64,
    /// A cut-through frame whose memory is to be freed: port that it came in by, octets, class.
    pub(super) sending: Option<(u32, u32, u8)>,
    pub(super) outcome: PortOutcome,
}

/// A class of a port: a queue out, and an account of what came in.
#[derive(Clone)]
pub(super) struct Class {
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Nothing starts before this.
    pub(super) paused_until_ps: u64,
    pub(super) paused_since_ps: u64,
    /// Octets that came in by this port and are still here.
    pub(super) held_bytes: u32,
    /// Whether the neighbour has been told to stop.
    pub(super) stopping: bool,
    pub(super) stopped_at_ps: u64,
}

impl Network<'_> {
    /// Puts a frame into its queue; the caller has made room and set `at_ps`.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, port: u32, frame: u32) {
        let now_ps = self.now_ps;
        let waiting = &mut self.frames[frame as usize];
        waiting.next = NONE;
        let (class, bytes, at_ps) = (usize::from(waiting.class), u32::from(waiting.bytes), waiting.at_ps);
        let state = &mut self.ports[port as usize];
        state.queued_bytes += bytes;
        let free_ps = state.busy_until_ps;
        state.outcome.queue_bytes_max = state.outcome.queue_bytes_max.max(state.queued_bytes);
        let queue = &mut self.classes[port as usize * self.lanes + class];
        let was_empty = queue.head == NONE;
        if was_empty {
            queue.head = frame;
        } else {
            self.frames[queue.tail as usize].next = frame;
        }
        queue.tail = frame;
        if free_ps > now_ps {
            return;
        }
        if !was_empty || self.lanes > 1 {
            return self.advance(port);
        }
        let start_ps = at_ps.max(queue.paused_until_ps).max(free_ps);
        if start_ps > now_ps { self.kick(port, start_ps) } else { self.start(port, 0, start_ps) }
    }

    /// Starts whatever the port could have started by now.
    #[inline(always)]
    pub(super) fn advance(&mut self, port: u32) {
        if self.ports[port as usize].busy_until_ps > self.now_ps {
            return;
        }
        if self.lanes > 1 {
            self.advance_in_turns(port);
        } else if self.classes[port as usize].head != NONE {
            self.advance_alone(port);
        }
    }

    /// The same for ports with one class, of which a frame waits.
    #[inline(always)]
    fn advance_alone(&mut self, port: u32) {
        loop {
            let queue = &self.classes[port as usize];
            if queue.head == NONE {
                return;
            }
            let free_ps = self.ports[port as usize].busy_until_ps;
            let start_ps = self.frames[queue.head as usize].at_ps.max(queue.paused_until_ps).max(free_ps);
            if start_ps > self.now_ps {
                // A busy port goes on by itself.
                if free_ps <= self.now_ps {
                    self.kick(port, start_ps);
                }
                return;
            }
            self.start(port, 0, start_ps);
            if self.ports[port as usize].busy_until_ps > self.now_ps {
                return;
            }
        }
    }

    /// Looks again at a time before which nothing can start.
    fn kick(&mut self, port: u32, at_ps: u64) {
        if !std::mem::replace(&mut self.ports[port as usize].kick_pending, true) {
            self.wheel.push(at_ps, What::Kick { port });
        }
    }

    fn advance_in_turns(&mut self, port: u32) {
        loop {
            let state = &self.ports[port as usize];
            let free_ps = state.busy_until_ps;
            if free_ps > self.now_ps {
                return;
            }
            // The class that may start first; among equals the next in turn.
            let base = port as usize * self.lanes;
            let (mut first_ps, mut chosen) = (u64::MAX, 0);
            for step in 1..=self.lanes {
                let class = (usize::from(state.turn) + step) % self.lanes;
                let queue = &self.classes[base + class];
                if queue.head != NONE {
                    let ready_ps = self.frames[queue.head as usize].at_ps.max(queue.paused_until_ps).max(free_ps);
                    if ready_ps < first_ps {
                        (first_ps, chosen) = (ready_ps, class);
                    }
                }
            }
            if first_ps > self.now_ps {
                if first_ps != u64::MAX {
                    self.kick(port, first_ps);
                }
                return;
            }
            self.start(port, chosen, first_ps);
        }
    }

    /// Sends the first frame of a class, from `start_ps` on.
    #[inline(always)]
    fn start(&mut self, port: u32, class: usize, start_ps: u64) {
        let queue = &mut self.classes[port as usize * self.lanes + class];
        let frame = queue.head;
        let sent = &mut self.frames[frame as usize];
        sent.exit = port;
        queue.head = sent.next;
        let (wire_bytes, ingress, bytes) = (sent.wire_bytes(), sent.ingress, u32::from(sent.bytes));
        let state = &mut self.ports[port as usize];
        state.turn = class as u8;
        let end_ps = start_ps + wire_bytes * state.ps_per_byte;
        state.busy_until_ps = end_ps;
        state.outcome.frames += 1;
        state.outcome.wire_bytes += wire_bytes;
        let flight_ps = state.flight_ps;
        if flight_ps <= SHORT_FLIGHT_PS_MAX && self.config.switching == Switching::StoreAndForward {
            self.wheel.push(end_ps + flight_ps, What::Arrive { frame });
        } else {
            self.start_in_two(port, frame, (start_ps, end_ps), (ingress, bytes, class as u8));
        }
        if self.capturing && self.captures(port) {
            self.capture(port, frame, end_ps, Direction::Out);
        }
    }

    /// The same where the last bit leaves long before the frame arrives, or after its head does: two events.
    fn start_in_two(&mut self, port: u32, frame: u32, (start_ps, end_ps): (u64, u64), sent: (u32, u32, u8)) {
        let state = &mut self.ports[port as usize];
        let (flight_ps, peer, ps_per_byte) = (state.flight_ps, state.peer, state.ps_per_byte);
        let cut_through = self.config.switching == Switching::CutThrough && self.ports[peer as usize].switch != NONE;
        if !cut_through && flight_ps <= SHORT_FLIGHT_PS_MAX {
            self.wheel.push(end_ps + flight_ps, What::Arrive { frame });
            return;
        }
        let before = self.ports[port as usize].sending.replace(sent);
        if let Some((ingress, bytes, class)) = before {
            self.free(port, ingress, bytes, class);
        }
        self.wheel.push(end_ps, What::Sent { port });
        if cut_through {
            let head_ps = start_ps + HEADER_BYTES * ps_per_byte;
            self.wheel.push(head_ps + flight_ps, What::Head { frame });
        } else {
            self.wheel.push(end_ps + flight_ps, What::Far { frame });
        }
    }

    /// Frees the memory of a frame that has left by `port`.
    #[inline(always)]
    pub(super) fn free(&mut self, port: u32, ingress: u32, bytes: u32, class: u8) {
        let state = &mut self.ports[port as usize];
        state.queued_bytes -= bytes;
        let switch = state.switch;
        if switch == NONE {
            self.offer_room(port);
        } else {
            self.release((ingress, switch), class, bytes);
        }
    }

    /// Sends PAUSE, or its end if `quanta` is 0: before waiting frames, after the one on the cable.
    pub(super) fn send_pause(&mut self, port: u32, class: u8, quanta: u16) {
        self.advance(port);
        let state = &mut self.ports[port as usize];
        let end_ps = state.busy_until_ps.max(self.now_ps) + PAUSE_WIRE_BYTES * state.ps_per_byte;
        state.busy_until_ps = end_ps;
        self.counters.pauses += 1;
        self.ports[port as usize].outcome.pauses += 1;
        self.ports[port as usize].outcome.wire_bytes += PAUSE_WIRE_BYTES;
        self.wheel.push(end_ps + self.config.cable_ps, What::Pause { port, class, quanta });
        if self.captures(port) {
            self.capture_pause(port, end_ps, Direction::Out, class, quanta);
        }
    }

    /// A PAUSE has reached the other end of `port`'s cable.
    pub(super) fn handle_pause(&mut self, port: u32, class: u8, quanta: u16) {
        self.advance(port);
        let peer = self.ports[port as usize].peer;
        if self.captures(peer) {
            self.capture_pause(peer, self.now_ps, Direction::In, class, quanta);
        }
        if !self.ports[peer as usize].flow_control || !self.ports[peer as usize].up {
            return;
        }
        self.advance(peer);
        let until_ps = self.now_ps + u64::from(quanta) * QUANTUM_BITS * self.ports[peer as usize].ps_per_byte / 8;
        let now_ps = self.now_ps;
        let queue = &mut self.classes[peer as usize * self.lanes + usize::from(class)];
        let held_ps = queue.paused_until_ps.min(now_ps).saturating_sub(queue.paused_since_ps);
        self.ports[peer as usize].outcome.paused_ps += held_ps;
        queue.paused_since_ps = now_ps;
        queue.paused_until_ps = until_ps;
        self.advance(peer);
    }
}
