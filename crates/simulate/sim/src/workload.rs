//! What hosts send: flows with a size, a start and a transport, in phases that may wait for each other.

use fabric::{FloodKind, HostId, LinkId, SwitchId};

/// One second, in the simulator's unit of time.
pub const SECOND_PS: u64 = 1_000_000_000_000;

/// Octets of Ethernet, IPv4 and UDP around a datagram's payload, the frame check sequence included.
pub const UDP_OVERHEAD_BYTES: u32 = 18 + 20 + 8;
/// The same around a segment's payload, with TCP's time stamps.
pub const TCP_OVERHEAD_BYTES: u32 = 18 + 20 + 32;
/// Preamble, start delimiter and the gap between frames.
pub const WIRE_OVERHEAD_BYTES: u32 = 20;
/// The shortest frame.
pub const FRAME_BYTES_MIN: u32 = 64;

/// Traffic: flows, and what breaks meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Flows. Those of one phase start when all of the phase before have ended.
    pub flows: Vec<Flow>,
    /// What breaks and heals.
    pub faults: Vec<Fault>,
}

/// One sender's data for one receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Who sends.
    pub source: HostId,
    /// Whom it is for; none for frames that switches flood.
    pub destination: Option<HostId>,
    /// What kind of frames those are.
    pub flood: FloodKind,
    /// Payload; none for as long as the simulation lasts.
    pub bytes: Option<u64>,
    /// When it starts, from the start of its phase.
    pub start_ps: u64,
    /// Flows of phase `n + 1` wait until all of phase `n` have ended.
    pub phase: u32,
    /// How it is sent.
    pub transport: Transport,
    /// Payload of a full frame.
    pub payload_bytes: u32,
}

/// How a flow is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// Datagrams: what is lost stays lost. The sender waits while its socket's buffer is full.
    Udp {
        /// Octets on the cable a second, preamble and gap included; none for as many as the host's cable takes.
        rate_bps: Option<u64>,
        /// When datagrams come.
        arrivals: Arrivals,
    },
    /// TCP with cumulative acknowledgements and fast recovery (RFC 6582, RFC 6298 with 200 ms at least).
    Tcp(TcpVariant),
    /// As RoCE: at the cable's rate within a window, the receiver takes frames in order only, the sender goes back.
    GoBackN,
}

/// When datagrams come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At even distances.
    Even,
    /// Independently of each other: the distances are exponential.
    Poisson,
}

/// How TCP's window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpVariant {
    /// By one segment a round trip (RFC 5681).
    Reno,
    /// By a cube of the time since the last loss (RFC 9438).
    Cubic,
}

/// Something that changes at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub at_ps: u64,
    /// What.
    pub change: Change,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The cable carries nothing.
    LinkDown(LinkId),
    /// The cable carries frames again.
    LinkUp(LinkId),
    /// The switch carries nothing.
    SwitchDown(SwitchId),
    /// The switch carries frames again.
    SwitchUp(SwitchId),
    /// The cable loses this share of frames, from 0 to 1.
    LinkLoses(LinkId, f64),
    /// The cable carries this many bits a second.
    LinkRate(LinkId, u64),
}

impl Flow {
    /// A UDP flow without end, as fast as the host's cable takes it.
    pub fn flood(source: HostId, destination: HostId) -> Self {
        let transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };
        Self {
            source,
            destination: Some(destination),
            flood: FloodKind::Broadcast,
            bytes: None,
            start_ps: 0,
            phase: 0,
            transport,
            payload_bytes: 1472,
        }
    }

    /// Octets of a frame that carries `payload_bytes`, without a VLAN tag.
    pub fn frame_bytes(&self, payload_bytes: u32) -> u32 {
        let overhead = match self.transport {
            Transport::Udp { .. } => UDP_OVERHEAD_BYTES,
            Transport::Tcp(_) | Transport::GoBackN => TCP_OVERHEAD_BYTES,
        };
        (payload_bytes + overhead).max(FRAME_BYTES_MIN)
    }

    /// How many frames carry the whole flow; none for a flow without end.
    pub fn frames(&self) -> Option<u64> {
        self.bytes.map(|bytes| bytes.div_ceil(u64::from(self.payload_bytes)).max(1))
    }
}
