//! What the packet level can be told: switching, buffers, flow control, and how long to run.

use fabric::PortId;

use crate::{spread::Spread, workload::SECOND_PS};

/// How the packet level works. The defaults are those of a store-and-forward gigabit switch of 2005.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketConfig {
    /// When a switch begins to send a frame on.
    pub switching: Switching,
    /// What a switch needs to decide about a frame.
    pub switch_latency_ps: u64,
    /// What a bit needs along a cable.
    pub cable_ps: u64,
    /// How a switch shares its memory.
    pub buffers: Buffers,
    /// Where flow control is on.
    pub flow_control: FlowControlAt,
    /// Pause time asked for, in units of 512 bit times.
    pub pause_quanta: u16,
    /// When a PAUSE is sent again.
    pub refresh: Refresh,
    /// Frames that find more than this many octets before them in a switch's queue are marked (RFC 3168).
    pub ecn_bytes: Option<u32>,
    /// A sender waits while its host holds this many octets for the cable.
    pub socket_bytes: u32,
    /// TCP's receive window, and what go-back-N may have under way, which is 256 frames at most.
    pub window_bytes: u32,
    /// How long go-back-N waits for an acknowledgement. The default is 4.096 µs · 2^10, a value of InfiniBand's local
    /// acknowledgement timeout: longer than what a host may hold for its cable.
    pub go_back_ps: u64,
    /// How hosts spread a pair's frames over its path set, acknowledgements the other way included.
    pub spread: Spread,
    /// With [`Spread::Flowlet`], the silence of a flow after which it takes the next path.
    pub flowlet_gap_ps: u64,
    /// Whether hosts ask for a neighbour's address before the first frame to it.
    pub arp: Arp,
    /// How long to run; sooner if nothing is left to send.
    pub duration_ps: u64,
    /// Goodput counts from here.
    pub warmup_ps: u64,
    /// Seed of everything random: Poisson arrivals, lost frames, the phases of even senders.
    pub seed: u64,
    /// How often to note what each port has sent; never unless given.
    pub sample_ps: Option<u64>,
    /// Switch ports whose frames are kept, both ways.
    pub captures: Vec<PortId>,
}

/// When a switch begins to send a frame on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// When it has all of it.
    StoreAndForward,
    /// When it has the first 64 octets, and the port that it goes to is free and no faster.
    CutThrough,
}

/// How a switch shares its memory. A frame is accounted to the port that it came in by, and to the queue that it waits
/// in; it is freed when its last bit has left, or has arrived where the cable is shorter than a microsecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffers {
    /// Octets of memory that all ports share.
    pub pool_bytes: u32,
    /// Octets that each port (and class) has for itself, beside the pool.
    pub reserved_bytes: u32,
    /// Most that frames from one port with flow control may hold.
    pub ingress: Limit,
    /// Most that frames for one port may hold; a port with flow control on its way in is not held to it, since what is
    /// paused shall not be dropped.
    pub egress: Limit,
    /// A port sends PAUSE when its frames hold more than this …
    pub xoff_bytes: u32,
    /// … and lets go when they hold this or less.
    pub xon_bytes: u32,
    /// What a port that has sent PAUSE may hold above its limit, for what is still on its way.
    pub headroom_bytes: u32,
}

/// A bound on a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many octets.
    Static(u32),
    /// So many times what is free of the pool (Choudhury and Hahne, 1998).
    Dynamic(f32),
}

/// Where flow control is on, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControlAt {
    /// Where the plan's ports have it.
    AsPlanned,
    /// Nowhere.
    Nowhere,
    /// On every cable.
    Everywhere,
    /// On hosts' cables.
    Hosts,
    /// On cables between switches.
    Switches,
}

/// When a PAUSE is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// When it has run out and a frame still finds the port too full: that frame and the next leak each time.
    OnArrival,
    /// When it has just run out and the port is still too full: one frame leaks each time, whoever sends.
    OnLapse,
    /// When half of it has passed and the port is still too full: nothing moves.
    HalfTime,
}

/// Whether hosts know each other's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arp {
    /// From the start.
    Known,
    /// They ask first, by a broadcast in their VLAN.
    Ask,
}

impl Default for PacketConfig {
    fn default() -> Self {
        Self {
            switching: Switching::StoreAndForward,
            switch_latency_ps: 0,
            cable_ps: 500_000,
            buffers: Buffers::default(),
            flow_control: FlowControlAt::AsPlanned,
            pause_quanta: u16::MAX,
            refresh: Refresh::OnArrival,
            ecn_bytes: None,
            socket_bytes: 200_000,
            window_bytes: 1 << 18,
            go_back_ps: 4_096_000 << 10,
            spread: Spread::One,
            flowlet_gap_ps: SECOND_PS / 2000,
            arp: Arp::Known,
            duration_ps: SECOND_PS / 10,
            warmup_ps: 0,
            seed: 1,
            sample_ps: None,
            captures: Vec::new(),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            pool_bytes: 1 << 20,
            reserved_bytes: 0,
            ingress: Limit::Static(64 << 10),
            egress: Limit::Static(128 << 10),
            xoff_bytes: 32 << 10,
            xon_bytes: 16 << 10,
            headroom_bytes: 0,
        }
    }
}
