//! Hosts: senders in turn, receivers that answer, and address requests.

use fabric::{FloodKind, HostId, Plan};

use super::{
    Network, What,
    config::PacketConfig,
    coupled::Subflow,
    frame::{Frame, Payload},
    job::Messages,
    path_choice::PathChoice,
    tcp::{Answer, Receiver, Scheme, Sender},
};
use crate::{
    lag::FlowHash,
    tables::{NONE, Tables, UNTAGGED},
    workload::{Arrivals, Flow, SECOND_PS, TCP_OVERHEAD_BYTES, Transport, WIRE_OVERHEAD_BYTES},
};

/// How long a receiver waits for a second segment to acknowledge.
const ACK_DELAY_PS: u64 = SECOND_PS / 25;
/// How long a host waits for the answer to an address request.
const ASK_AGAIN_PS: u64 = SECOND_PS;

/// A flow's state at both ends, or that of one of its subflows.
pub(super) struct FlowState {
    /// Which flow of the workload it is, or belongs to.
    pub(super) origin: u32,
    /// What it carries as a subflow.
    pub(super) subflow: Option<Subflow>,
    /// Data frames left to make; [`u32::MAX`] for no end.
    left: u32,
    made: u32,
    /// Data frames that exist.
    pub(super) outstanding: u32,
    pub(super) begun: bool,
    /// What a job sends on it, where it is a job's.
    pub(super) messages: Option<Messages>,
    /// In its host's list of senders.
    is_ready: bool,
    interval_ps: u64,
    pub(super) scheme: Option<Scheme>,
    pub(super) sender: Sender,
    receiver: Receiver,
    in_order: u32,
    timeout_at_ps: u64,
    delay_pending: bool,
    /// The tags of data frames, and of what answers them.
    data_paths: PathChoice,
    ack_paths: PathChoice,
}

impl FlowState {
    /// A flow of the workload, the `number`-th of its pair.
    pub(super) fn new(
        plan: &Plan,
        tables: &Tables,
        (origin, flow): (u32, &Flow),
        (hash, number): (&FlowHash, u32),
        config: &PacketConfig,
    ) -> Self {
        assert!(flow.payload_bytes > 0 && flow.payload_bytes <= 9_000, "frames carry 1 to 9,000 octets of payload");
        let paths = |from: HostId, to: Option<HostId>| match to {
            Some(to) => PathChoice::spread(plan, tables, (from, to), (hash, number), config),
            None => PathChoice::assigned(plan, tables, from, None),
        };
        let data_paths = paths(flow.source, flow.destination);
        // A flood has no receiver that answers.
        let ack_paths = flow.destination.map_or(data_paths.clone(), |from| paths(from, Some(flow.source)));
        let frames = flow.frames().map_or(u32::MAX, |frames| u32::try_from(frames).unwrap_or(u32::MAX - 1));
        let (scheme, interval_ps) = match flow.transport {
            Transport::Udp { rate_bps, .. } => {
                let wire = u64::from(flow.frame_bytes(flow.payload_bytes) + WIRE_OVERHEAD_BYTES);
                (None, rate_bps.map_or(0, |rate| (wire * 8_000_000_000_000 / rate.max(1)).max(1)))
            }
            Transport::Tcp(variant) => (Some(Scheme::Tcp(variant)), 0),
            Transport::GoBackN => (Some(Scheme::GoBackN), 0),
        };
        let window = config.window_bytes / flow.payload_bytes;
        Self {
            origin,
            subflow: None,
            left: frames,
            made: 0,
            outstanding: 0,
            begun: false,
            messages: None,
            is_ready: false,
            interval_ps,
            scheme,
            sender: Sender::new(scheme.unwrap_or(Scheme::GoBackN), frames, window, config.go_back_ps),
            receiver: Receiver::default(),
            in_order: 0,
            timeout_at_ps: u64::MAX,
            delay_pending: false,
            data_paths,
            ack_paths,
        }
    }

    /// The same as a subflow that has nothing to carry yet, in the path that is the `at`-th of each way's.
    pub(super) fn coupled(mut self, at: usize) -> Self {
        self.sender.extend_from_nothing();
        self.sender = self.sender.of_several();
        self.subflow = Some(Subflow::default());
        self.data_paths.settle(at);
        self.ack_paths.settle(at);
        self
    }

    /// The same as a connection on which nothing is sent yet.
    pub(super) fn open(mut self) -> Self {
        self.left = 0;
        self.sender.extend_from_nothing();
        self.messages = Some(Messages::default());
        self
    }

    /// More frames are to be sent on a connection without subflows.
    pub(super) fn extend(&mut self, frames: u32) {
        if self.scheme.is_some() { self.sender.extend(frames) } else { self.left += frames }
    }

    /// Its frames stay on the path that the hash chose, both ways.
    pub(super) fn stay(&mut self) {
        self.data_paths.stay();
        self.ack_paths.stay();
    }

    /// How many paths its data frames may take.
    pub(super) fn path_count(&self) -> usize {
        self.data_paths.count()
    }

    /// How many frames carry the flow; [`u32::MAX`] for no end.
    pub(super) fn frames(&self) -> u32 {
        self.left
    }

    /// The number from which on no frame has been sent.
    pub(super) fn unsent(&self) -> u32 {
        if self.scheme.is_some() { self.sender.unsent() } else { self.made }
    }

    /// A datagram flow that has made all that it will make.
    pub(super) fn is_spent(&self) -> bool {
        self.scheme.is_none() && self.left == 0 && self.messages.is_none()
    }
}

impl Network<'_> {
    /// A flow begins, once its sender knows whom to send to.
    pub(super) fn handle_start(&mut self, flow: u32) {
        let spec = self.spec(flow);
        self.flow_outcomes[flow as usize].started_ps.get_or_insert(self.now_ps);
        let source = spec.source.index() as u32;
        if let Some(destination) = spec.destination {
            if destination == spec.source {
                return self.end_flow(flow);
            }
            let pair = (source, destination.index() as u32);
            if self.asks() && !self.neighbours.contains(&pair) {
                self.asking.entry(pair).or_default().push(flow);
                return self.handle_ask(flow);
            }
        }
        self.begin(flow);
    }

    /// A flow's first frame may go; a second call does nothing.
    fn begin(&mut self, flow: u32) {
        let sisters = self.supplies.get(&flow).map(|supply| supply.subflows.clone()).unwrap_or_default();
        self.begin_alone(flow);
        sisters.into_iter().for_each(|sister| self.begin_alone(sister));
    }

    fn begin_alone(&mut self, flow: u32) {
        if std::mem::replace(&mut self.flows[flow as usize].begun, true) {
            return;
        }
        // Even senders of one host do not start in step.
        let interval_ps = self.flows[flow as usize].interval_ps;
        if interval_ps > 0 {
            let offset_ps = (interval_ps as f64 * self.rng.unit_f64()) as u64;
            let wait_ps = self.wait_ps(flow, offset_ps);
            self.wheel.push(self.now_ps + wait_ps, What::Tick { flow });
        } else {
            self.make_ready(flow);
        }
    }

    /// Asks for a neighbour's address, unless it is known by now.
    pub(super) fn handle_ask(&mut self, flow: u32) {
        let spec = self.spec(flow);
        let (source, Some(destination)) = (spec.source, spec.destination) else { return };
        if self.neighbours.contains(&(source.index() as u32, destination.index() as u32)) {
            return self.begin(flow);
        }
        let (tag, vlan) = self.tables.host_tag(self.plan, source, None);
        self.send_control(flow, Payload::ArpRequest, source.index() as u32, NONE, tag, vlan);
        self.wheel.push(self.now_ps + ASK_AGAIN_PS, What::Ask { flow });
    }

    /// Puts a flow into its host's list of senders.
    #[inline]
    pub(super) fn make_ready(&mut self, flow: u32) {
        let spec = self.spec(flow);
        let own = self.nic(spec.source.index() as u32);
        let nic = self.lags.nic(own, flow, (spec.source, spec.destination));
        let waiting = self.waiting_at(nic);
        if !self.flows[flow as usize].is_ready {
            if self.ready[waiting].is_empty() && self.ports[nic as usize].queued_bytes < self.config.socket_bytes {
                self.send_one(flow, nic);
            } else {
                self.flows[flow as usize].is_ready = true;
                self.ready[waiting].push_back(flow);
            }
        }
        self.offer_room(nic);
    }

    /// Lets the senders that wait for a host's port send, in turn, while their socket buffers have room.
    #[inline]
    pub(super) fn offer_room(&mut self, nic: u32) {
        let waiting = self.waiting_at(nic);
        while self.ports[nic as usize].queued_bytes < self.config.socket_bytes {
            let Some(flow) = self.ready[waiting].pop_front() else { return };
            self.flows[flow as usize].is_ready = false;
            self.send_one(flow, nic);
        }
    }

    /// Sends a flow's next data frame, if it may.
    fn send_one(&mut self, flow: u32, nic: u32) {
        let spec = self.spec(flow);
        let waiting = self.waiting_at(nic);
        self.draw(flow);
        let state = &mut self.flows[flow as usize];
        let number = if state.scheme.is_some() {
            match state.sender.poll_segment(self.now_ps) {
                Some(number) => {
                    state.is_ready = true;
                    self.ready[waiting].push_back(flow);
                    number
                }
                None => return,
            }
        } else {
            if state.left == 0 {
                return;
            }
            if state.left != u32::MAX {
                state.left -= 1;
            }
            state.made = state.made.wrapping_add(1);
            let number = state.made.wrapping_sub(1);
            if state.left > 0 {
                if state.interval_ps == 0 {
                    state.is_ready = true;
                    self.ready[waiting].push_back(flow);
                } else {
                    let wait_ps = self.wait_ps(flow, self.flows[flow as usize].interval_ps);
                    self.wheel.push(self.now_ps + wait_ps, What::Tick { flow });
                }
            }
            number
        };
        // What a segment of a subflow carries is another frame of the flow.
        let carried = self.flows[flow as usize].subflow.as_ref().map_or(Some(number), |subflow| subflow.frame(number));
        let carried = carried.expect("what is sent is not known to have arrived");
        let messages = self.flows[self.flows[flow as usize].origin as usize].messages.as_ref();
        let payload = match spec.bytes {
            _ if messages.is_some() => {
                messages.map_or(spec.payload_bytes, |messages| messages.payload(carried, spec.payload_bytes))
            }
            Some(bytes) => {
                let before = u64::from(carried) * u64::from(spec.payload_bytes);
                bytes.saturating_sub(before).min(u64::from(spec.payload_bytes)) as u32
            }
            None => spec.payload_bytes,
        };
        let state = &mut self.flows[flow as usize];
        state.outstanding += 1;
        let (tag, class) = state.data_paths.next(self.now_ps);
        let origin = self.flows[flow as usize].origin;
        self.flow_outcomes[origin as usize].sent_frames += 1;
        self.counters.injected += 1;
        let frame = self.create(Frame {
            at_ps: self.now_ps,
            born_ps: self.now_ps,
            flow,
            number,
            source: spec.source.index() as u32,
            destination: spec.destination.map_or(NONE, |host| host.index() as u32),
            ingress: NONE,
            exit: NONE,
            next: NONE,
            bytes: spec.frame_bytes(payload) as u16,
            tag,
            vlan: UNTAGGED,
            kind: Payload::Data,
            flood: if spec.destination.is_some() { FloodKind::UnknownUnicast } else { spec.flood },
            class,
            marked: false,
        });
        self.enqueue(nic, frame);
        self.watch_timeout(flow);
    }

    /// How long until a datagram sender's next one.
    fn wait_ps(&mut self, flow: u32, even_ps: u64) -> u64 {
        match self.spec(flow).transport {
            Transport::Udp { arrivals: Arrivals::Poisson, .. } => {
                let mean_ps = self.flows[flow as usize].interval_ps as f64;
                (-(1.0 - self.rng.unit_f64()).ln() * mean_ps) as u64
            }
            _ => even_ps,
        }
    }

    /// A frame has reached a host.
    pub(super) fn deliver(&mut self, host: u32, frame: u32) {
        let Frame { flow, number, source, destination, kind, born_ps, marked, .. } = self.frames[frame as usize];
        if destination != NONE && destination != host || source == host {
            self.counters.strayed += 1;
            return self.forget(frame);
        }
        self.counters.delivered += 1;
        match kind {
            Payload::Data => {
                let outcome = &mut self.flow_outcomes[self.flows[flow as usize].origin as usize];
                outcome.received_frames += 1;
                let latency_ps = self.now_ps - born_ps;
                outcome.latency_sum_ps += u128::from(latency_ps);
                outcome.latency_max_ps = outcome.latency_max_ps.max(latency_ps);
                self.receive_data(flow, number, born_ps, marked);
                self.forget(frame);
            }
            Payload::Ack | Payload::MarkedAck => {
                self.forget(frame);
                self.couple(flow, number);
                let state = &mut self.flows[flow as usize];
                state.sender.handle_ack(self.now_ps, number, born_ps, kind == Payload::MarkedAck);
                self.watch_timeout(flow);
                self.make_ready(flow);
            }
            Payload::ArpRequest => {
                self.forget(frame);
                let asked = self.spec(flow).destination.map(|host| host.index() as u32);
                if asked == Some(host) {
                    self.neighbours.insert((host, source));
                    let (from, to) = (HostId::new(host as usize), HostId::new(source as usize));
                    let (tag, vlan) = self.tables.host_tag(self.plan, from, Some(to));
                    self.send_control(flow, Payload::ArpReply, host, source, tag, vlan);
                }
            }
            Payload::ArpReply => {
                self.forget(frame);
                self.neighbours.insert((host, source));
                self.begin_waiting(host, source);
            }
        }
    }

    /// A host has learnt a neighbour's address: whoever waits for it may send, in the order of flows.
    fn begin_waiting(&mut self, host: u32, neighbour: u32) {
        let mut flows = self.asking.remove(&(host, neighbour)).unwrap_or_default();
        flows.sort_unstable();
        flows.into_iter().for_each(|flow| self.begin(flow));
    }

    fn receive_data(&mut self, flow: u32, number: u32, born_ps: u64, marked: bool) {
        let spec = self.spec(flow);
        let state = &mut self.flows[flow as usize];
        let payload = u64::from(spec.payload_bytes);
        let is_job = self.job.is_some();
        if is_job && state.scheme.is_none() {
            return self.receive_message(flow, number, None);
        }
        let Some(scheme) = state.scheme else {
            let before = u64::from(number) * payload;
            let bytes = spec.bytes.map_or(payload, |bytes| bytes.saturating_sub(before).min(payload));
            return self.count_payload(flow, bytes);
        };
        let total = match &state.messages {
            // The end of a message is acknowledged at once, as RoCE does; TCP knows no messages.
            Some(messages) if scheme == Scheme::GoBackN => messages.end(number),
            _ => spec.frames().map_or(u32::MAX, |frames| frames as u32),
        };
        let before = state.receiver.in_order();
        let (answer, segments) = state.receiver.handle_segment(scheme, number, born_ps, marked, total);
        let fresh = self.arrive(flow, before, segments);
        // The flow is its own first subflow, which knows what the program has.
        let origin = self.flows[flow as usize].origin;
        let state = &mut self.flows[origin as usize];
        if fresh > 0 && is_job {
            state.in_order += fresh;
            let in_order = state.in_order;
            self.receive_message(origin, number, Some(in_order));
        } else if fresh > 0 {
            let (before, after) = (u64::from(state.in_order) * payload, u64::from(state.in_order + fresh) * payload);
            state.in_order += fresh;
            let most = spec.bytes.unwrap_or(u64::MAX);
            let complete = state.in_order >= spec.frames().map_or(u32::MAX, |frames| frames as u32);
            self.count_payload(flow, after.min(most) - before.min(most));
            if complete {
                self.end_flow(origin);
            }
        }
        match answer {
            Answer::Nothing => {}
            Answer::Later => {
                let state = &mut self.flows[flow as usize];
                if !state.delay_pending {
                    state.delay_pending = true;
                    self.wheel.push(self.now_ps + ACK_DELAY_PS, What::Delay { flow });
                }
            }
            Answer::Now { ack, sent_ps, marked } => self.send_ack(flow, ack, sent_ps, marked),
        }
    }

    pub(super) fn count_payload(&mut self, flow: u32, bytes: u64) {
        let outcome = &mut self.flow_outcomes[self.flows[flow as usize].origin as usize];
        outcome.delivered_bytes += bytes;
        if self.now_ps >= self.config.warmup_ps {
            outcome.goodput_bytes += bytes;
        }
        self.delivered_bytes += bytes;
    }

    /// A receiver has waited for a second segment.
    pub(super) fn handle_delay(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.delay_pending = false;
        if let Answer::Now { ack, sent_ps, marked } = state.receiver.handle_delay() {
            self.send_ack(flow, ack, sent_ps, marked);
        }
    }

    /// A sender's oldest segment may be lost.
    pub(super) fn handle_timeout(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.timeout_at_ps = u64::MAX;
        if state.sender.deadline_ps() <= self.now_ps {
            state.sender.handle_timeout(self.now_ps);
            self.watch_timeout(flow);
            self.make_ready(flow);
        } else {
            self.watch_timeout(flow);
        }
    }

    /// Keeps one event waiting for a sender's deadline; an event that comes too early waits again.
    #[inline]
    fn watch_timeout(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.scheme.is_some() && state.sender.deadline_ps() < state.timeout_at_ps && !state.sender.is_done() {
            state.timeout_at_ps = state.sender.deadline_ps();
            self.wheel.push(state.timeout_at_ps.max(self.now_ps), What::Timeout { flow });
        }
    }

    fn send_ack(&mut self, flow: u32, ack: u32, sent_ps: u64, marked: bool) {
        let spec = self.spec(flow);
        let Some(from) = spec.destination else { return };
        let (tag, class) = self.flows[flow as usize].ack_paths.next(self.now_ps);
        let kind = if marked { Payload::MarkedAck } else { Payload::Ack };
        let frame = Frame {
            at_ps: self.now_ps,
            born_ps: sent_ps,
            flow,
            number: ack,
            source: from.index() as u32,
            destination: spec.source.index() as u32,
            ingress: NONE,
            exit: NONE,
            next: NONE,
            bytes: TCP_OVERHEAD_BYTES as u16,
            tag,
            vlan: UNTAGGED,
            kind,
            flood: FloodKind::UnknownUnicast,
            class,
            marked: false,
        };
        self.send_frame(frame);
    }

    fn send_control(&mut self, flow: u32, kind: Payload, source: u32, destination: u32, tag: u16, vlan: u16) {
        let class = if vlan == UNTAGGED { 0 } else { self.tables.lane[usize::from(vlan)] };
        let (at_ps, born_ps) = (self.now_ps, self.now_ps);
        let (ingress, exit, next, bytes, vlan) = (NONE, NONE, NONE, 64, UNTAGGED);
        self.send_frame(Frame {
            at_ps,
            born_ps,
            flow,
            number: 0,
            source,
            destination,
            ingress,
            exit,
            next,
            bytes,
            tag,
            vlan,
            kind,
            flood: if destination == NONE { FloodKind::Broadcast } else { FloodKind::UnknownUnicast },
            class,
            marked: false,
        });
    }

    fn send_frame(&mut self, frame: Frame) {
        self.counters.injected += 1;
        let nic = self.lags.exit(self.nic(frame.source), &frame);
        let frame = self.create(frame);
        self.enqueue(nic, frame);
    }
}
