//! What a run of the packet level found.

use fabric::PortId;

use super::{capture::Captured, deadlock::Deadlock};

/// Everything that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How long the simulated network ran.
    pub elapsed_ps: u64,
    /// From when goodput counts.
    pub warmup_ps: u64,
    /// Frames, all of them.
    pub counters: Counters,
    /// `flows[flow]`, in the workload's order.
    pub flows: Vec<FlowOutcome>,
    /// `ports[port]`: what left by each switch port, and then by each host's own port in host order.
    pub ports: Vec<PortOutcome>,
    /// A cycle of ports that wait for each other, if one lasted.
    pub deadlock: Option<Deadlock>,
    /// Frames in the network, averaged over time.
    pub mean_in_network: f64,
    /// Events that were handled.
    pub events: u64,
    /// What each port had sent, from time to time.
    pub samples: Vec<Sample>,
    /// Frames seen at captured ports, by time.
    pub captured: Vec<Captured>,
    /// Frames for which the captures had no room.
    pub uncaptured: u64,
}

/// Where frames went: `injected + copied = delivered + strayed + dropped + in_flight`, checked after every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that hosts sent, acknowledgements and address requests included.
    pub injected: u64,
    /// Copies that switches made of broadcasts and floods.
    pub copied: u64,
    /// Frames that reached a host that they were for.
    pub delivered: u64,
    /// Copies that reached other hosts.
    pub strayed: u64,
    /// Frames for which there was no room.
    pub dropped_full: u64,
    /// Frames that a port's VLANs refused, or that had nowhere to go.
    pub dropped_filtered: u64,
    /// Floods that no port of a switch lets out.
    pub dropped_blocked: u64,
    /// Floods beyond the storm limit of the port that they came in by.
    pub dropped_storm: u64,
    /// Frames lost to a fault.
    pub dropped_fault: u64,
    /// Frames that still exist.
    pub in_flight: u64,
    /// PAUSE frames, which are no part of the sums above.
    pub pauses: u64,
    /// Frames that a switch flooded because its table had no entry.
    pub flooded: u64,
    /// Data frames marked for congestion.
    pub marked: u64,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Data frames sent, again ones included.
    pub sent_frames: u64,
    /// Data frames received.
    pub received_frames: u64,
    /// Payload handed to the receiving program, each octet once, after the warm-up.
    pub goodput_bytes: u64,
    /// Payload handed to the receiving program in all.
    pub delivered_bytes: u64,
    /// When it began; none if it never did.
    pub started_ps: Option<u64>,
    /// When its last octet was accounted for; none if it never was.
    pub ended_ps: Option<u64>,
    /// Sum over received frames of the time since the sender made them.
    pub latency_sum_ps: u128,
    /// The longest of these times.
    pub latency_max_ps: u64,
}

/// What left by a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortOutcome {
    /// Frames.
    pub frames: u64,
    /// Octets on the cable, preamble and gap included.
    pub wire_bytes: u64,
    /// Frames for this port that found no room.
    pub dropped: u64,
    /// Most octets that ever waited.
    pub queue_bytes_max: u32,
    /// PAUSE frames that the port sent.
    pub pauses: u64,
    /// How long PAUSE held the port.
    pub paused_ps: u64,
}

/// What each port had sent by a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at_ps: u64,
    /// `wire_bytes[port]`, since the start, to within what fits on the cable.
    pub wire_bytes: Vec<u64>,
    /// `queue_bytes[port]`, waiting or on the cable now.
    pub queue_bytes: Vec<u32>,
    /// `received_bytes[host]`: payload handed to the host's programs, broadcasts apart.
    pub received_bytes: Vec<u64>,
    /// Payload that all flows have delivered.
    pub delivered_bytes: u64,
}

impl Counters {
    /// Frames that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_filtered + self.dropped_blocked + self.dropped_storm + self.dropped_fault
    }

    /// Whether every frame is accounted for.
    pub fn balances(&self) -> bool {
        self.injected + self.copied == self.delivered + self.strayed + self.dropped() + self.in_flight
    }
}

impl Outcome {
    /// Payload that a flow delivered a second, after the warm-up.
    pub fn goodput_bps(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        let from = flow.started_ps.unwrap_or(0).max(self.warmup_ps);
        let until = flow.ended_ps.unwrap_or(self.elapsed_ps);
        if until <= from { 0.0 } else { flow.goodput_bytes as f64 * 8e12 / (until - from) as f64 }
    }

    /// The mean of [`goodput_bps`](Self::goodput_bps) over all flows.
    pub fn mean_goodput_bps(&self) -> f64 {
        (0..self.flows.len()).map(|flow| self.goodput_bps(flow)).sum::<f64>() / self.flows.len().max(1) as f64
    }

    /// The share of data frames that hosts sent and that did not arrive.
    pub fn loss(&self) -> f64 {
        let sent: u64 = self.flows.iter().map(|flow| flow.sent_frames).sum();
        let received: u64 = self.flows.iter().map(|flow| flow.received_frames).sum();
        if sent == 0 { 0.0 } else { 1.0 - (received.min(sent) as f64 / sent as f64) }
    }

    /// Data frames that arrived.
    pub fn received_frames(&self) -> u64 {
        self.flows.iter().map(|flow| flow.received_frames).sum()
    }

    /// The port that sent most on its cable, by octets: index into [`ports`](Self::ports).
    pub fn busiest_of(&self, ports: impl Iterator<Item = PortId>) -> Option<PortId> {
        ports.max_by_key(|port| (self.ports[port.index()].wire_bytes, std::cmp::Reverse(port.index())))
    }
}
