//! The simulation itself: time, events, and the frames that exist.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{Attachment, FloodKind, Link, LinkId, Plan, rng::Rng};

use super::{
    Network, What,
    capture::Direction,
    config::{Arp, FlowControlAt, PacketConfig},
    coupled::Supply,
    deadlock::Watch,
    frame::{Frame, Payload},
    job::Running,
    lag::Lags,
    outcome::{Counters, FlowOutcome, Outcome, PortOutcome, Sample},
    port::{Class, HEADER_BYTES, Port},
    tcp::Scheme,
    transport::FlowState,
};
use crate::{
    job::{Job, JobOutcome},
    lag::{FlowHash, numbers},
    spread::Spread,
    tables::{NONE, Tables},
    wheel::Wheel,
    workload::{Change, Flow, TcpVariant, Workload},
};

/// Events that a slot of the event queue should hold: with fewer, finding the next slot costs more than order in one.
const EVENTS_A_SLOT: u64 = 8;
/// Slots are no shorter, or what lies some milliseconds ahead would not fit into the ring.
const GRAIN_PS_MIN: u64 = 1 << 16;
/// Nor longer, where there is little to do.
const GRAIN_PS_MAX: u64 = 1 << 20;

/// A run of the packet level: made, driven for as long as one likes, and finished.
///
/// Call [`run_until`](Self::run_until) any number of times, then [`finish`](Self::finish).
pub struct Simulation<'a> {
    network: Network<'a>,
}

impl<'a> Simulation<'a> {
    /// Prepares a run. Cost: that of compiling the plan's device state.
    ///
    /// # Panics
    /// If a flow names a host that the plan does not have, or has no payload in its frames; if the plan, or the packet level,
    /// [cannot spread](crate::spread::Spread::check_packet) as the configuration says.
    pub fn new(plan: &'a Plan, workload: &'a Workload, config: &PacketConfig) -> Self {
        Self { network: Network::new(plan, workload, None, config.clone()) }
    }

    /// Prepares a run of a job.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn of_job(plan: &'a Plan, job: &'a Job, config: &PacketConfig) -> Self {
        Self { network: Network::new(plan, &job.workload, Some(Running::new(job)), config.clone()) }
    }

    /// Runs until a time, or until nothing is left to do. Returns the time reached.
    pub fn run_until(&mut self, time_ps: u64) -> u64 {
        self.network.run_until(time_ps)
    }

    /// Runs to the end that the configuration sets and counts.
    ///
    /// # Panics
    /// If frames do not balance, which is a bug of the simulator.
    pub fn finish(self) -> Outcome {
        self.finish_job().0
    }

    /// The same, and what became of the job if there is one.
    ///
    /// # Panics
    /// As [`finish`](Self::finish).
    pub fn finish_job(mut self) -> (Outcome, Option<JobOutcome>) {
        self.run_until(u64::MAX);
        self.stop_job()
    }

    /// Counts what there is by now.
    ///
    /// # Panics
    /// As [`finish`](Self::finish).
    pub fn stop(self) -> Outcome {
        self.stop_job().0
    }

    /// The same, and how far the job has come if there is one.
    ///
    /// # Panics
    /// As [`finish`](Self::finish).
    pub fn stop_job(mut self) -> (Outcome, Option<JobOutcome>) {
        let job = self.network.job.take().map(|running| {
            let cut_short = !running.is_over();
            JobOutcome { ran: running.finish(), cut_short }
        });
        (self.network.finish(), job)
    }
}

impl<'a> Network<'a> {
    fn new(plan: &'a Plan, workload: &'a Workload, job: Option<Running<'a>>, config: PacketConfig) -> Self {
        let mut config = config;
        if let Err(error) = config.spread.check_packet(plan) {
            panic!("{error}");
        }
        config.captures.sort_unstable();
        config.captures.dedup();
        let tables = Tables::compile(plan);
        let topology = &plan.topology;
        let (switch_ports, hosts) = (topology.ports().len(), topology.hosts().len());
        let lanes =
            tables.lane.iter().chain(&tables.untagged_class).map(|lane| usize::from(*lane) + 1).max().unwrap_or(1);
        let mut ports = Vec::with_capacity(switch_ports + hosts);
        for (index, port) in topology.ports().iter().enumerate() {
            let (peer, rate_bps, on_host) = match port.attachment {
                Attachment::Nothing | Attachment::Member(_) => (NONE, 1_000_000_000, false),
                Attachment::Host(host) => ((switch_ports + host.index()) as u32, topology.host(host).rate_bps, true),
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    let other = if link.a.index() == index { link.b } else { link.a };
                    (other.index() as u32, link.rate_bps, false)
                }
            };
            let planned = tables.flow_control[index];
            let latency_ps = if on_host { 0 } else { config.switch_latency_ps };
            let mut state = Port::new(peer, rate_bps, config.cable_ps + latency_ps);
            state.switch = port.switch.index() as u32;
            state.flow_control = flow_control(config.flow_control, planned, on_host);
            ports.push(state);
        }
        let mut lags = Lags::of(topology, workload);
        for host in topology.hosts() {
            let mut state =
                Port::new(host.port.index() as u32, host.rate_bps, config.cable_ps + config.switch_latency_ps);
            state.flow_control = ports[host.port.index()].flow_control;
            ports.push(state);
        }
        let own = ports.len();
        ports.extend(lags.extra_ports(own).map(|_| Port::new(NONE, 1_000_000_000, 0)));
        let phase_count = workload.flows.iter().map(|flow| flow.phase as usize + 1).max().unwrap_or(0);
        let mut phases = vec![Vec::new(); phase_count];
        // A job's connections begin with their first message.
        if job.is_none() {
            for (index, flow) in workload.flows.iter().enumerate() {
                phases[flow.phase as usize].push(index as u32);
            }
        }
        let hash = FlowHash::of(topology);
        let numbers = numbers(workload.flows.iter().map(|flow| (flow.phase, flow.source, flow.destination)));
        let state = |origin: usize, number: u32| {
            FlowState::new(plan, &tables, (origin as u32, &workload.flows[origin]), (&hash, number), &config)
        };
        let mut flows: Vec<FlowState> = numbers.iter().enumerate().map(|(flow, number)| state(flow, *number)).collect();
        let mut supplies = BTreeMap::new();
        if config.spread == Spread::Coupled {
            for (origin, number) in numbers.iter().enumerate() {
                let paths = flows[origin].path_count();
                if flows[origin].scheme != Some(Scheme::Tcp(TcpVariant::Reno)) || paths < 2 {
                    flows[origin].stay();
                    continue;
                }
                let further = flows.len()..flows.len() + paths - 1;
                let total = if job.is_some() { 0 } else { flows[origin].frames() };
                let subflows = std::iter::once(origin).chain(further).map(|flow| flow as u32).collect();
                lags.add_subflows(origin, paths as u32 - 1);
                flows.extend((1..paths).map(|at| state(origin, *number).coupled(at)));
                flows[origin] = state(origin, *number).coupled(0);
                supplies.insert(origin as u32, Supply::new(subflows, total));
            }
        }
        if job.is_some() {
            flows = flows.into_iter().map(FlowState::open).collect();
        }
        let mut network = Self {
            wheel: Wheel::new(grain_ps(&ports)),
            now_ps: 0,
            rng: Rng::new(config.seed),
            frames: Vec::new(),
            unused: Vec::new(),
            classes: vec![Class::default(); ports.len() * lanes],
            lanes,
            pool_used: vec![0; topology.switches().len()],
            storm_meters: vec![[0; FloodKind::ALL.len()]; switch_ports],
            switch_ports,
            flows,
            supplies,
            ready: vec![VecDeque::new(); ports.len() - switch_ports],
            neighbours: BTreeSet::new(),
            asking: BTreeMap::new(),
            phases,
            phase: 0,
            phase_open: 0,
            counters: Counters::default(),
            flow_outcomes: vec![FlowOutcome::default(); workload.flows.len()],
            watch: Watch::new(ports.len() * lanes),
            deadlock: None,
            events: 0,
            area: 0,
            area_since_ps: 0,
            live: 0,
            samples: Vec::new(),
            capturing: !config.captures.is_empty(),
            captured: Vec::new(),
            uncaptured: 0,
            delivered_bytes: 0,
            job,
            over: false,
            plan,
            tables,
            config,
            workload,
            ports,
            lags,
        };
        network.cable_members(own);
        for index in 0..network.ports.len() {
            let peer = network.ports.get(network.ports[index].peer as usize);
            network.ports[index].peer_switch = peer.map_or(NONE, |peer| peer.switch);
        }
        for (index, fault) in workload.faults.iter().enumerate() {
            network.wheel.push(fault.at_ps, What::Fault { index: index as u32 });
        }
        if network.ports.iter().any(|port| port.flow_control) {
            network.wheel.push(network.watch_ps(), What::Watch);
        }
        if let Some(sample_ps) = network.config.sample_ps {
            network.wheel.push(sample_ps, What::Sample);
        }
        network.begin_phases();
        network.begin_job();
        network
    }

    fn run_until(&mut self, time_ps: u64) -> u64 {
        let limit_ps = time_ps.min(self.config.duration_ps);
        while !self.over {
            let Some(event) = self.wheel.pop_until(limit_ps) else {
                self.now_ps = self.now_ps.max(limit_ps);
                break;
            };
            self.now_ps = event.at_ps;
            self.events += 1;
            self.handle(event.what);
        }
        self.now_ps
    }

    #[inline]
    fn handle(&mut self, what: What) {
        match what {
            What::Arrive { frame } => {
                let Frame { exit: port, ingress, bytes, class, .. } = self.frames[frame as usize];
                self.advance(port);
                self.free(port, ingress, u32::from(bytes), class);
                self.reach(port, frame, self.now_ps);
            }
            What::Far { frame } => self.reach(self.frames[frame as usize].exit, frame, self.now_ps),
            What::Head { frame } => {
                let state = &self.frames[frame as usize];
                let (port, rest) = (state.exit, state.wire_bytes() - HEADER_BYTES);
                self.reach(port, frame, self.now_ps + rest * self.ports[port as usize].ps_per_byte);
            }
            What::Sent { port } => {
                let state = &mut self.ports[port as usize];
                if state.busy_until_ps <= self.now_ps {
                    if let Some((ingress, bytes, class)) = state.sending.take() {
                        self.free(port, ingress, bytes, class);
                    }
                    self.advance(port);
                }
            }
            What::Pause { port, class, quanta } => self.handle_pause(port, class, quanta),
            What::Kick { port } => {
                self.ports[port as usize].kick_pending = false;
                self.advance(port);
            }
            What::Refresh { port, class } => self.handle_refresh(port, class),
            What::Start { flow } => self.handle_start(flow),
            What::Tick { flow } => self.make_ready(flow),
            What::Timeout { flow } => self.handle_timeout(flow),
            What::Delay { flow } => self.handle_delay(flow),
            What::Ask { flow } => self.handle_ask(flow),
            What::Fault { index } => self.handle_fault(index),
            What::Watch => {
                self.look_for_deadlock();
                self.wheel.push(self.now_ps + self.watch_ps(), What::Watch);
            }
            What::Wake { index } => self.handle_wake(index),
            What::Sample => {
                self.sample();
                self.wheel.push(self.now_ps + self.config.sample_ps.unwrap_or(u64::MAX / 4), What::Sample);
            }
        }
    }

    /// A frame is at the far end of a port's cable.
    #[inline]
    fn reach(&mut self, port: u32, frame: u32, whole_ps: u64) {
        let state = &self.ports[port as usize];
        let (peer, switch) = (state.peer, state.peer_switch);
        if !state.carries || state.loss > 0 && self.rng.next_u64() >> 32 < state.loss {
            return self.drop_fault(frame);
        }
        if self.captures(peer) {
            self.capture(peer, frame, whole_ps, Direction::In);
        }
        if switch == NONE {
            self.deliver(self.host_of(peer), frame);
        } else {
            self.switch_frame(peer, switch, frame, whole_ps);
        }
    }

    /// A host's own port, a LAG where it has several cables.
    #[inline]
    pub(super) fn nic(&self, host: u32) -> u32 {
        self.switch_ports as u32 + host
    }

    /// Whose port it is.
    #[inline]
    pub(super) fn host_of(&self, nic: u32) -> u32 {
        self.lags.logical(nic) - self.switch_ports as u32
    }

    /// The senders that wait for a host's own port, or for one of its cables: an index into `ready`.
    #[inline]
    pub(super) fn waiting_at(&self, nic: u32) -> usize {
        nic as usize - self.switch_ports
    }

    /// How many of the ports are switches' ports.
    pub(super) fn switch_port_count(&self) -> usize {
        self.switch_ports
    }

    /// A new frame.
    #[inline]
    pub(super) fn create(&mut self, frame: Frame) -> u32 {
        self.count_live(1);
        match self.unused.pop() {
            Some(index) => {
                self.frames[index as usize] = frame;
                index
            }
            None => {
                self.frames.push(frame);
                (self.frames.len() - 1) as u32
            }
        }
    }

    /// Another copy of a frame.
    pub(super) fn copy(&mut self, frame: u32) -> u32 {
        self.counters.copied += 1;
        let original = self.frames[frame as usize];
        if original.kind == Payload::Data {
            self.flows[original.flow as usize].outstanding += 1;
        }
        self.create(original)
    }

    /// A frame is no more.
    #[inline]
    pub(super) fn forget(&mut self, frame: u32) {
        self.count_live(-1);
        self.unused.push(frame);
        let Frame { flow, kind, .. } = self.frames[frame as usize];
        if kind == Payload::Data {
            let state = &mut self.flows[flow as usize];
            state.outstanding -= 1;
            if state.outstanding == 0 && state.is_spent() {
                self.end_flow(flow);
            }
        }
        if self.live == 0 {
            self.stop_if_idle();
        }
    }

    pub(super) fn drop_filtered(&mut self, frame: u32) {
        self.counters.dropped_filtered += 1;
        self.forget(frame);
    }

    /// No port of the switch lets the frame out.
    pub(super) fn drop_blocked(&mut self, frame: u32) {
        self.counters.dropped_blocked += 1;
        self.forget(frame);
    }

    /// Storm control does not admit the frame.
    pub(super) fn drop_storm(&mut self, frame: u32) {
        self.counters.dropped_storm += 1;
        self.forget(frame);
    }

    pub(super) fn drop_fault(&mut self, frame: u32) {
        self.counters.dropped_fault += 1;
        self.forget(frame);
    }

    /// A flow has ended; the next phase may begin.
    pub(super) fn end_flow(&mut self, flow: u32) {
        let outcome = &mut self.flow_outcomes[flow as usize];
        if outcome.ended_ps.is_none() {
            outcome.ended_ps = Some(self.now_ps);
            self.phase_open -= 1;
            if self.phase_open == 0 {
                self.phase += 1;
                self.begin_phases();
            }
        }
    }

    /// Schedules the flows of the current phase, or of the next that has any.
    fn begin_phases(&mut self) {
        while let Some(flows) = self.phases.get(self.phase) {
            if !flows.is_empty() {
                self.phase_open = flows.len();
                for flow in flows {
                    let start_ps = self.workload.flows[*flow as usize].start_ps;
                    self.wheel.push(self.now_ps + start_ps, What::Start { flow: *flow });
                }
                return;
            }
            self.phase += 1;
        }
        self.stop_if_idle();
    }

    pub(super) fn stop_if_idle(&mut self) {
        let is_over = match &self.job {
            Some(running) => running.is_over(),
            None => self.phase >= self.phases.len(),
        };
        self.over = self.live == 0 && is_over;
    }

    #[inline]
    fn count_live(&mut self, change: i64) {
        self.area += u128::from(self.live) * u128::from(self.now_ps - self.area_since_ps);
        self.area_since_ps = self.now_ps;
        self.live = self.live.checked_add_signed(change).expect("no fewer frames than none");
    }

    fn handle_fault(&mut self, index: u32) {
        let topology = &self.plan.topology;
        match self.workload.faults[index as usize].change {
            Change::LinkDown(link) | Change::LinkUp(link) => {
                let up = matches!(self.workload.faults[index as usize].change, Change::LinkUp(_));
                for port in self.cable_ends(link) {
                    self.advance(port);
                    self.ports[port as usize].up = up;
                    self.look_at_cable(port as usize);
                }
            }
            Change::SwitchDown(switch) | Change::SwitchUp(switch) => {
                let up = matches!(self.workload.faults[index as usize].change, Change::SwitchUp(_));
                for port in topology.switch_ports(switch) {
                    self.advance(port as u32);
                    self.ports[port].up = up;
                    self.look_at_cable(port);
                }
            }
            Change::LinkLoses(link, share) => {
                for port in self.cable_ends(link) {
                    self.ports[port as usize].loss = (share.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
                }
            }
            Change::LinkRate(link, rate_bps) => {
                let ends = self.cable_ends(link);
                let rate_bps = rate_bps / (ends.len() as u64 / 2);
                for port in ends {
                    self.advance(port);
                    self.ports[port as usize].ps_per_byte = ps_per_byte(rate_bps);
                }
            }
        }
    }

    /// The ports at both ends of each of a link's cables.
    fn cable_ends(&self, link: LinkId) -> Vec<u32> {
        let Link { a, b, .. } = *self.plan.topology.link(link);
        [a, b].into_iter().flat_map(|port| self.lags.cabled(port.index() as u32)).collect()
    }

    /// A port has gone up or down: so may have its cable.
    fn look_at_cable(&mut self, port: usize) {
        let peer = self.ports[port].peer;
        if peer != NONE {
            let carries = self.ports[port].up && self.ports[peer as usize].up;
            self.ports[port].carries = carries;
            self.ports[peer as usize].carries = carries;
        }
    }

    fn sample(&mut self) {
        let mut received_bytes = vec![0; self.plan.topology.hosts().len()];
        for (flow, outcome) in self.workload.flows.iter().zip(&self.flow_outcomes) {
            if let Some(destination) = flow.destination {
                received_bytes[destination.index()] += outcome.delivered_bytes;
            }
        }
        // A frame counts when it starts: what of it is still to come is taken off again.
        let sent = |port: &Port| {
            let to_come = port.busy_until_ps.saturating_sub(self.now_ps).div_ceil(port.ps_per_byte);
            port.outcome.wire_bytes.saturating_sub(to_come)
        };
        self.samples.push(Sample {
            at_ps: self.now_ps,
            wire_bytes: self.by_port(sent),
            queue_bytes: self.by_port(|port| port.queued_bytes),
            received_bytes,
            delivered_bytes: self.delivered_bytes,
        });
    }

    fn finish(mut self) -> Outcome {
        self.count_live(0);
        if self.config.sample_ps.is_some() && self.samples.last().is_none_or(|last| last.at_ps < self.now_ps) {
            self.sample();
        }
        self.counters.in_flight = (self.frames.len() - self.unused.len()) as u64;
        assert_eq!(self.counters.in_flight, self.live, "frames exist that nobody counted");
        assert!(self.counters.balances(), "frames do not balance: {:?}", self.counters);
        for port in 0..self.ports.len() {
            for class in 0..self.lanes {
                let queue = &self.classes[port * self.lanes + class];
                self.ports[port].outcome.paused_ps +=
                    queue.paused_until_ps.min(self.now_ps).saturating_sub(queue.paused_since_ps);
            }
        }
        self.add_up_members(self.switch_ports + self.plan.topology.hosts().len());
        self.captured.sort_by_key(|frame| frame.at_ps);
        Outcome {
            elapsed_ps: self.now_ps,
            warmup_ps: self.config.warmup_ps,
            counters: self.counters,
            flows: self.flow_outcomes,
            ports: self.ports.iter().map(|port| port.outcome).collect(),
            deadlock: self.deadlock,
            mean_in_network: self.area as f64 / self.now_ps.max(1) as f64,
            events: self.events,
            samples: self.samples,
            captured: self.captured,
            uncaptured: self.uncaptured,
        }
    }

    /// Whether hosts must ask for addresses.
    pub(super) fn asks(&self) -> bool {
        self.config.arp == Arp::Ask
    }

    /// The flow as it was asked for.
    #[inline]
    pub(super) fn spec(&self, flow: u32) -> &'a Flow {
        &self.workload.flows[self.flows[flow as usize].origin as usize]
    }
}

fn flow_control(at: FlowControlAt, planned: bool, on_host: bool) -> bool {
    match at {
        FlowControlAt::AsPlanned => planned,
        FlowControlAt::Nowhere => false,
        FlowControlAt::Everywhere => true,
        FlowControlAt::Hosts => on_host,
        FlowControlAt::Switches => !on_host,
    }
}

/// How long a slot of the event queue should be, if every port sends long frames without a break.
fn grain_ps(ports: &[Port]) -> u64 {
    let cabled = ports.iter().filter(|port| port.peer != NONE);
    let (count, fastest) =
        cabled.fold((0, u64::MAX), |(count, fastest), port| (count + 1, fastest.min(port.ps_per_byte)));
    let frame_ps = fastest.saturating_mul(1538);
    (frame_ps.saturating_mul(EVENTS_A_SLOT) / u64::max(count, 1)).clamp(GRAIN_PS_MIN, GRAIN_PS_MAX)
}

/// Rounded to a picosecond, which is exact for every usual rate up to 400 Gbit/s.
fn ps_per_byte(rate_bps: u64) -> u64 {
    (8_000_000_000_000 / rate_bps.max(1)).max(1)
}

impl Port {
    fn new(peer: u32, rate_bps: u64, flight_ps: u64) -> Self {
        Self {
            busy_until_ps: 0,
            ps_per_byte: ps_per_byte(rate_bps),
            flight_ps,
            peer,
            peer_switch: NONE,
            switch: NONE,
            queued_bytes: 0,
            turn: 0,
            kick_pending: false,
            flow_control: false,
            up: true,
            carries: true,
            loss: 0,
            sending: None,
            outcome: PortOutcome::default(),
        }
    }
}

impl Default for Class {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            paused_until_ps: 0,
            paused_since_ps: 0,
            held_bytes: 0,
            stopping: false,
            stopped_at_ps: 0,
        }
    }
}
