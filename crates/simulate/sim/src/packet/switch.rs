//! A switch: in by the ports' VLANs, out by the static table, into memory if there is room.

use fabric::FloodKind;

use super::{
    Network, What,
    config::{Limit, Refresh},
    port::QUANTUM_BITS,
};
use crate::tables::{Leave, NONE, UNTAGGED};

/// How long a switch takes to notice that a PAUSE has run out: less than a frame.
const LAPSE_PS: u64 = 4_000_000;
/// What storm control admits at once after a silence, in bytes on the wire: ten full-size frames.
const STORM_BURST_BYTES: u64 = 15_420;

impl Network<'_> {
    /// A frame has come in by `port`; its last bit comes at `whole_ps`.
    pub(super) fn switch_frame(&mut self, port: u32, switch: u32, frame: u32, whole_ps: u64) {
        // The LAG where it came in by a member; memory and PAUSE are the member's.
        let entry = self.lags.logical(port);
        let state = &mut self.frames[frame as usize];
        let Some(vlan) = self.tables.enter(entry, state.tag) else {
            return self.drop_filtered(frame);
        };
        state.vlan = vlan;
        state.ingress = port;
        state.at_ps = self.now_ps;
        // A tag names the class in which its frame travels; untagged frames get that of the port that they enter.
        if state.tag == UNTAGGED {
            state.class = self.tables.untagged_class[entry as usize];
        }
        let (destination, kind, bytes) = (state.destination, state.flood, state.wire_bytes());
        let known = if destination == NONE { None } else { self.tables.onward(switch, vlan, destination) };
        if let Some((exit, leave)) = known {
            if exit == entry || leave == Leave::Not {
                return self.drop_filtered(frame);
            }
            return self.admit((port, switch), exit, frame, leave, whole_ps);
        }
        if !self.admits_flood(entry, kind, bytes) {
            return self.drop_storm(frame);
        }
        // Out of every other port of the VLAN that lets such frames out, one copy each.
        let (mut last, mut blocked): (Option<(u32, Leave)>, bool) = (None, false);
        for exit in self.tables.ports_of(switch) {
            let leave = self.tables.leave(exit, vlan);
            if exit == entry || leave == Leave::Not || self.ports[exit as usize].peer == NONE {
                continue;
            }
            if !self.tables.lets_out(exit, kind) {
                blocked = true;
                continue;
            }
            if let Some((exit, leave)) = last.replace((exit, leave)) {
                let copy = self.copy(frame);
                self.admit((port, switch), exit, copy, leave, whole_ps);
            }
        }
        if destination != NONE && (last.is_some() || !blocked) {
            self.counters.flooded += 1;
        }
        match last {
            Some((exit, leave)) => self.admit((port, switch), exit, frame, leave, whole_ps),
            None if blocked => self.drop_blocked(frame),
            None => self.drop_filtered(frame),
        }
    }

    /// Whether storm control admits a flood by a port. The port's meter of the kind is a leaky bucket that drains at the limit
    /// and holds [`STORM_BURST_BYTES`].
    fn admits_flood(&mut self, port: u32, kind: FloodKind, bytes: u64) -> bool {
        let percent = u64::from(self.tables.storm_limit[port as usize]);
        if percent == 0 {
            return true;
        }
        let ps_per_byte = self.ports[port as usize].ps_per_byte * 100 / percent;
        let empty_ps = &mut self.storm_meters[port as usize][kind as usize];
        let level_ps = empty_ps.saturating_sub(self.now_ps) + bytes * ps_per_byte;
        let fits = level_ps <= STORM_BURST_BYTES * ps_per_byte;
        if fits {
            *empty_ps = self.now_ps + level_ps;
        }
        fits
    }

    /// Queues a frame if there is room for it, and asks its neighbour to stop if it is nearly too much.
    fn admit(&mut self, (port, switch): (u32, u32), exit: u32, frame: u32, leave: Leave, whole_ps: u64) {
        let state = &self.frames[frame as usize];
        let exit = self.lags.exit(exit, state);
        let (bytes, class, vlan) = (u32::from(state.bytes), state.class, state.vlan);
        let out = &self.ports[exit as usize];
        if !out.up {
            return self.drop_fault(frame);
        }
        let (queued, out_ps_per_byte) = (out.queued_bytes, out.ps_per_byte);
        let (lossless, in_ps_per_byte) = {
            let port = &self.ports[port as usize];
            (port.flow_control, port.ps_per_byte)
        };
        let buffers = &self.config.buffers;
        let account = &mut self.classes[port as usize * self.lanes + usize::from(class)];
        let used = &mut self.pool_used[switch as usize];
        let (held, stopping) = (account.held_bytes, account.stopping);
        let free = buffers.pool_bytes.saturating_sub(*used);
        let most = |limit: Limit| match limit {
            Limit::Static(bytes) => u64::from(bytes),
            Limit::Dynamic(share) => (f64::from(share) * f64::from(free)) as u64,
        };
        let own = buffers.reserved_bytes;
        let from_pool = (held + bytes).saturating_sub(own.max(held));
        let fits = if lossless {
            let headroom = if stopping { buffers.headroom_bytes } else { 0 };
            u64::from(held + bytes) <= most(buffers.ingress) + u64::from(own) + u64::from(headroom)
        } else {
            u64::from(queued + bytes) <= most(buffers.egress) + u64::from(own)
        };
        if !fits || from_pool > free {
            self.ports[exit as usize].outcome.dropped += 1;
            self.counters.dropped_full += 1;
            self.forget(frame);
            if lossless && stopping {
                self.stop_again(port, class);
            }
            return;
        }
        *used += from_pool;
        account.held_bytes = held + bytes;
        if self.config.ecn_bytes.is_some_and(|limit| queued > limit) {
            self.frames[frame as usize].marked = true;
            self.counters.marked += 1;
        }
        if lossless && held + bytes > buffers.xoff_bytes {
            if stopping { self.stop_again(port, class) } else { self.stop(port, class) }
        }
        let frame_state = &mut self.frames[frame as usize];
        frame_state.tag = if leave == Leave::Tagged { vlan } else { UNTAGGED };
        // A faster port must not run dry in the middle of a frame.
        if whole_ps > self.now_ps && out_ps_per_byte < in_ps_per_byte {
            frame_state.at_ps = whole_ps;
        }
        self.enqueue(exit, frame);
    }

    /// A frame that came in by `port` of `switch` has gone.
    #[inline(always)]
    pub(super) fn release(&mut self, (port, switch): (u32, u32), class: u8, bytes: u32) {
        let buffers = &self.config.buffers;
        let account = &mut self.classes[port as usize * self.lanes + usize::from(class)];
        let from_pool = account.held_bytes.saturating_sub(buffers.reserved_bytes.max(account.held_bytes - bytes));
        account.held_bytes -= bytes;
        self.pool_used[switch as usize] -= from_pool;
        if account.stopping && account.held_bytes <= buffers.xon_bytes {
            account.stopping = false;
            self.send_pause(port, class, 0);
        }
    }

    fn stop(&mut self, port: u32, class: u8) {
        let quanta = self.config.pause_quanta;
        let account = &mut self.classes[port as usize * self.lanes + usize::from(class)];
        account.stopping = true;
        account.stopped_at_ps = self.now_ps;
        self.send_pause(port, class, quanta);
        if let Some(refresh_ps) = self.refresh_ps(port) {
            self.wheel.push(self.now_ps + refresh_ps, What::Refresh { port, class });
        }
    }

    /// From one PAUSE to the next, if a clock sends them.
    fn refresh_ps(&self, port: u32) -> Option<u64> {
        match self.config.refresh {
            Refresh::OnArrival => None,
            Refresh::OnLapse => Some(self.pause_ps(port) + LAPSE_PS),
            Refresh::HalfTime => Some(self.pause_ps(port) / 2),
        }
    }

    /// The last PAUSE has run out although the port is still too full.
    fn stop_again(&mut self, port: u32, class: u8) {
        let account = &self.classes[port as usize * self.lanes + usize::from(class)];
        if self.config.refresh == Refresh::OnArrival && self.now_ps >= account.stopped_at_ps + self.pause_ps(port) {
            self.stop(port, class);
        }
    }

    /// The time for another PAUSE has come, unless one was sent meanwhile.
    pub(super) fn handle_refresh(&mut self, port: u32, class: u8) {
        let account = &self.classes[port as usize * self.lanes + usize::from(class)];
        let refresh_ps = self.refresh_ps(port).unwrap_or(u64::MAX / 2);
        if account.stopping && self.now_ps >= account.stopped_at_ps + refresh_ps {
            self.stop(port, class);
        }
    }

    /// How long one PAUSE of this port holds its neighbour.
    pub(super) fn pause_ps(&self, port: u32) -> u64 {
        u64::from(self.config.pause_quanta) * QUANTUM_BITS * self.ports[port as usize].ps_per_byte / 8
    }
}
