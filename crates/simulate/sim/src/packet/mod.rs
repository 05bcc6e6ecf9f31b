//! The packet level: every frame through every queue, by the plan's device state.
//!
//! One event a frame and hop. A port knows until when it is busy; a frame that finds it free starts at once, and the
//! event of its arrival at the other end also starts whatever has waited behind it, at the instant at which the port
//! really became free. That instant is past by no more than the cable's length, and what starts then arrives later than
//! now, so nothing is decided with hindsight. PAUSE frames take the port before any waiting frame, after the one on the
//! cable.
//!
//! ```text
//!   port busy ▕████ A ████▏████ B ████▏         A's arrival, one cable later, frees A's memory and starts B
//!                         ▕──▶ A arrives        where A ended
//! ```
//!
//! Nothing is created or lost unseen: [`Counters`] are checked against the frames that still exist at the end of
//! every run. Cost: about 60 ns an event; memory linear in ports, flows and queued frames.

mod capture;
mod config;
mod coupled;
mod deadlock;
mod engine;
mod frame;
mod job;
mod lag;
mod outcome;
mod path_choice;
mod port;
mod switch;
mod tcp;
mod transport;

pub use capture::{CAPTURE_MAX, Captured, Carries, Direction, Seen, SeenFrame};
pub use config::{Arp, Buffers, FlowControlAt, Limit, PacketConfig, Refresh, Switching};
pub use deadlock::{Blocked, Deadlock};
pub use engine::Simulation;
pub use outcome::{Counters, FlowOutcome, Outcome, PortOutcome, Sample};
pub use tcp::RTO_MIN_PS;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{FloodKind, Plan, rng::Rng};

use self::{
    coupled::Supply,
    deadlock::Watch,
    frame::Frame,
    job::Running,
    lag::Lags,
    port::{Class, Port},
    transport::FlowState,
};
use crate::{tables::Tables, wheel::Wheel, workload::Workload};

/// Everything that changes; each file below handles a part of it.
struct Network<'a> {
    plan: &'a Plan,
    tables: Tables,
    config: PacketConfig,
    workload: &'a Workload,
    wheel: Wheel<What>,
    now_ps: u64,
    rng: Rng,
    frames: Vec<Frame>,
    unused: Vec<u32>,
    /// Switch ports, then hosts' own, then those of the cables of hosts that have a LAG.
    ports: Vec<Port>,
    lags: Lags,
    /// `classes[port · lanes + class]`
    classes: Vec<Class>,
    lanes: usize,
    /// `storm_meters[port][kind]`: when the floods that storm control has admitted are through at its rate, in picoseconds.
    storm_meters: Vec<[u64; FloodKind::ALL.len()]>,
    /// `pool_used[switch]`
    pool_used: Vec<u32>,
    switch_ports: usize,
    /// The workload's, then the further subflows of those that are coupled.
    flows: Vec<FlowState>,
    /// By flow of the workload, where it is coupled.
    supplies: BTreeMap<u32, Supply>,
    /// `ready[port - switch_ports]`, a host's own port or one of its cables: flows that have something to send there, in turn.
    ready: Vec<VecDeque<u32>>,
    /// Which host knows which neighbour's address.
    neighbours: BTreeSet<(u32, u32)>,
    /// By host and the neighbour whose address it does not know yet: flows that wait for it.
    asking: BTreeMap<(u32, u32), Vec<u32>>,
    /// `phases[phase]`: its flows.
    phases: Vec<Vec<u32>>,
    phase: usize,
    phase_open: usize,
    counters: Counters,
    flow_outcomes: Vec<FlowOutcome>,
    watch: Watch,
    deadlock: Option<Deadlock>,
    events: u64,
    /// Frames in the network, summed over picoseconds, and since when.
    area: u128,
    area_since_ps: u64,
    live: u64,
    samples: Vec<Sample>,
    /// Whether any port is captured.
    capturing: bool,
    captured: Vec<Captured>,
    uncaptured: u64,
    delivered_bytes: u64,
    job: Option<Running<'a>>,
    over: bool,
}

/// What happens: eight octets, so that an event is sixteen.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A frame has come to the other end of a port's cable.
    Arrive { frame: u32 },
    /// A frame has come over a long cable; its port was freed before.
    Far { frame: u32 },
    /// The first octets of one have.
    Head { frame: u32 },
    /// The last bit of a cut-through frame has left.
    Sent { port: u32 },
    /// A PAUSE has come to the other end of a port's cable.
    Pause { port: u32, class: u8, quanta: u16 },
    /// A port may be free again.
    Kick { port: u32 },
    /// Another PAUSE may be due.
    Refresh { port: u32, class: u8 },
    /// A flow begins.
    Start { flow: u32 },
    /// Its next datagram is due.
    Tick { flow: u32 },
    /// Its oldest segment may be lost.
    Timeout { flow: u32 },
    /// Its receiver has waited long enough.
    Delay { flow: u32 },
    /// Its address request is unanswered.
    Ask { flow: u32 },
    /// Something breaks or heals.
    Fault { index: u32 },
    /// Look for a deadlock.
    Watch,
    /// Note what ports have sent.
    Sample,
    /// Something of a job is due.
    Wake { index: u32 },
}
