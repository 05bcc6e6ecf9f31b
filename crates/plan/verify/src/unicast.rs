//! Every ordered pair of hosts, VLAN by VLAN and receiver by receiver.
//!
//! For one VLAN and one receiver every switch has at most one entry, so switches point at switches: a functional graph.
//! Following the pointers from each sender's switch, and remembering at every switch on the way how it ends from there,
//! touches each switch once however many senders share it. Walking the touched switches from the rim inward then
//! carries what is sent along, which gives the load of every channel.
//! ```text
//!   to h3:   s0 ─▶ s1 ─▶ s3 ─▶ h3        s5 ─▶ s6        s8: no entry
//!            s2 ───┘    delivered         ▲─────┘ loop    flood
//! ```
//! VLANs, and in each the receivers, come in ascending order, as the static entries do: one cursor a switch replaces
//! every search. In a VLAN that leaks into another one the pointers mean nothing; its pairs are walked one by one.
//!
//! Cost: O(VLANs · ports + static entries + touched switches), and O(hosts²) to count senders.

use fabric::{FindingKind, FloodKind, HostId, PortId, SwitchId, TrafficMatrix};

use crate::{
    demand::{self, Coverage, Demand},
    findings::{Findings, counted},
    hops::LongPaths,
    receiver::Receiver,
    state::{FabricState, Hop, Loss},
    view::View,
    walk::{Budget, Disposition, walk_frame},
};

/// What was seen while every pair was followed.
pub(crate) struct Traffic {
    pub(crate) coverage: Coverage,
    /// `load[channel]`: demand that crosses it; a count of ordered pairs of hosts for all-to-all traffic.
    pub(crate) load: Vec<f64>,
    /// Ordered pairs of distinct hosts that were followed.
    pub(crate) pairs: u64,
    /// Links between switches, summed over ordered pairs of distinct hosts.
    pub(crate) hops_total: u64,
    /// Links between switches on the longest path.
    pub(crate) hops_max: usize,
    /// Receivers with paths that are longer than the plan allows.
    pub(crate) long: Vec<LongPaths>,
    /// By lane: which channels a unicast frame may hold while it waits for which.
    pub(crate) lanes: Vec<Dependencies>,
    /// By lane: the same for what is sent to everybody, and to groups; kept only where flow control makes frames wait.
    pub(crate) spread_lanes: Vec<Dependencies>,
    /// Whether that is all: in a VLAN that is no forest it is not worked out.
    pub(crate) spread_is_whole: bool,
    /// By lane: the same for frames to addresses that no switch knows, where they spread from more hosts than broadcasts.
    pub(crate) unknown_lanes: Vec<Dependencies>,
    /// The same of frames between the controller and the switches that it manages over their data ports; they have the
    /// class of lane 0.
    pub(crate) management: Option<Dependencies>,
    /// The same of what the switches' agents send to everybody in the management VLAN.
    pub(crate) agents: Option<Dependencies>,
}

/// `next[channel]`: the channels that frames take right after it, ascending.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) next: Vec<Vec<u32>>,
}

impl Traffic {
    pub(crate) fn new(state: &FabricState<'_>) -> Self {
        let channels = state.topology.channel_count();
        Self {
            coverage: Coverage::Whole,
            load: vec![0.0; channels],
            pairs: 0,
            hops_total: 0,
            hops_max: 0,
            long: Vec::new(),
            lanes: Vec::new(),
            spread_lanes: Vec::new(),
            spread_is_whole: true,
            unknown_lanes: Vec::new(),
            management: None,
            agents: None,
        }
    }

    /// Adds what was seen of further paths: what they wait for, and how they end. Loads and hops are not theirs.
    pub(crate) fn join(&mut self, further: Self) {
        let Self { coverage, long, lanes, .. } = further;
        if coverage == Coverage::Partial {
            self.coverage = Coverage::Partial;
        }
        self.long.extend(long);
        for (lane, dependencies) in lanes.iter().enumerate() {
            self.lane(lane as u8).extend(dependencies);
        }
    }

    /// The unicast dependencies of a lane.
    fn lane(&mut self, lane: u8) -> &mut Dependencies {
        Dependencies::of_lane(&mut self.lanes, lane, self.load.len())
    }

    /// The dependencies of a lane that frames for everybody make.
    pub(crate) fn spread_lane(&mut self, lane: u8) -> &mut Dependencies {
        Dependencies::of_lane(&mut self.spread_lanes, lane, self.load.len())
    }

    /// The dependencies of a lane that frames to unknown addresses make.
    pub(crate) fn unknown_lane(&mut self, lane: u8) -> &mut Dependencies {
        Dependencies::of_lane(&mut self.unknown_lanes, lane, self.load.len())
    }
}

impl Dependencies {
    pub(crate) fn none(channels: usize) -> Self {
        Self { next: vec![Vec::new(); channels] }
    }

    fn of_lane(lanes: &mut Vec<Self>, lane: u8, channels: usize) -> &mut Self {
        let lane = usize::from(lane);
        if lanes.len() <= lane {
            lanes.resize(lane + 1, Self::none(channels));
        }
        &mut lanes[lane]
    }

    /// Adds all of another's.
    pub(crate) fn extend(&mut self, more: &Self) {
        for (from, next) in more.next.iter().enumerate() {
            next.iter().for_each(|&to| self.insert(from as u32, to));
        }
    }

    /// Notes that frames go from one channel straight to another.
    pub(crate) fn insert(&mut self, from: u32, to: u32) {
        let next = &mut self.next[from as usize];
        if let Err(at) = next.binary_search(&to) {
            next.insert(at, to);
        }
    }
}

/// How frames for one receiver end, seen from one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Delivered,
    WrongHost(HostId),
    Flooded(SwitchId),
    Dropped(SwitchId),
    Looped(SwitchId),
    Lost(PortId, Loss),
    /// Being followed.
    Open,
}

const NONE: u32 = u32::MAX;

/// What is known about a switch for the receiver of the current epoch.
#[derive(Clone, Copy)]
struct Slot {
    epoch: u32,
    fate: Fate,
    /// The channel that frames leave by, and the switch that they enter; [`NONE`] at the end.
    channel: u32,
    next: u32,
    hops: u32,
    demand: f64,
}

/// Follows pairs; holds what is needed again for every VLAN.
pub(crate) struct Router {
    /// By port: the channel that leaves there, or [`NONE`].
    channel: Vec<u32>,
    /// By switch: position of the first static entry that is not behind the current VLAN and receiver.
    cursor: Vec<usize>,
    slots: Vec<Slot>,
    epoch: u32,
    /// Switches whose fate is known in this epoch; every switch after the one that it points at.
    settled: Vec<SwitchId>,
    chain: Vec<SwitchId>,
    senders: Vec<HostId>,
    /// By host: how many receivers its port refused in this VLAN.
    refused: Vec<u32>,
    /// What hosts receive from each other, if all do not send alike.
    received: Option<TrafficMatrix>,
    /// By host: what it sends to the receiver of the current epoch.
    sent: Vec<f64>,
}

impl Router {
    pub(crate) fn new(state: &FabricState<'_>) -> Self {
        let topology = state.topology;
        let mut channel = vec![NONE; topology.ports().len()];
        for id in topology.channel_ids() {
            channel[topology.tail_port(id).index()] = id.index() as u32;
        }
        let blank = Slot { epoch: 0, fate: Fate::Open, channel: NONE, next: NONE, hops: 0, demand: 0.0 };
        Self {
            channel,
            cursor: vec![0; topology.switches().len()],
            slots: vec![blank; topology.switches().len()],
            epoch: 0,
            settled: Vec::new(),
            chain: Vec::new(),
            senders: Vec::new(),
            refused: vec![0; topology.hosts().len()],
            received: match &*state.traffic {
                fabric::Traffic::AllToAll => None,
                fabric::Traffic::Matrix(matrix) => Some(matrix.transposed()),
            },
            sent: vec![1.0; topology.hosts().len()],
        }
    }

    /// Follows every pair that uses a VLAN.
    pub(crate) fn judge(
        &mut self,
        state: &FabricState<'_>,
        view: &View,
        demand: &mut Demand<'_>,
        budget: &mut Budget,
        traffic: &mut Traffic,
        findings: &mut Findings,
    ) {
        if !demand.is_sent_in(view.vlan) {
            return;
        }
        // From now on its pairs are no longer among those to come.
        demand.turn_to(view.vlan);
        self.refused.fill(0);
        let mut senders = std::mem::take(&mut self.senders);
        let enters: Vec<bool> =
            (state.topology.hosts().iter()).map(|host| state.enter(host.port, Some(view.vlan)).is_ok()).collect();
        for destination in state.topology.host_ids() {
            demand.senders(view.vlan, destination, &mut senders);
            senders.retain(|source| {
                self.refused[source.index()] += u32::from(!enters[source.index()]);
                enters[source.index()]
            });
            if senders.is_empty() {
                continue;
            }
            traffic.pairs += senders.len() as u64;
            if view.leaks.is_empty() {
                self.follow(state, view, destination, &senders, traffic, findings);
            } else {
                traffic.coverage = Coverage::Partial;
                walk_each(state, destination, &senders, budget, findings);
            }
        }
        for host in state.topology.host_ids() {
            let receivers = self.refused[host.index()] as usize;
            if receivers > 0 {
                traffic.coverage = Coverage::Partial;
                demand::report_refused(state, view.vlan, host, receivers, findings);
            }
        }
        self.senders = senders;
    }

    fn follow(
        &mut self,
        state: &FabricState<'_>,
        view: &View,
        destination: HostId,
        senders: &[HostId],
        traffic: &mut Traffic,
        findings: &mut Findings,
    ) {
        self.epoch += 1;
        self.settled.clear();
        let mut whole = true;
        let mut long = LongPaths::to(destination);
        if let Some(received) = &self.received {
            self.sent.fill(0.0);
            received.sent_by(destination).iter().for_each(|(source, amount)| self.sent[source.index()] = *amount);
        }
        for &source in senders {
            let switch = state.topology.switch_of(source);
            self.settle(state, view, destination, switch);
            let slot = &mut self.slots[switch.index()];
            slot.demand += self.sent[source.index()];
            if slot.fate == Fate::Delivered {
                traffic.hops_total += u64::from(slot.hops);
                traffic.hops_max = traffic.hops_max.max(slot.hops as usize);
                long.see(state, source, slot.hops);
            } else {
                whole = false;
            }
        }
        traffic.long.extend(long.if_any());
        self.add_load(view, state, traffic);
        if !whole {
            traffic.coverage = Coverage::Partial;
            self.report(state, view, destination, senders, findings);
        }
    }

    /// Finds out how frames for `destination` end from `switch` on.
    fn settle(&mut self, state: &FabricState<'_>, view: &View, destination: HostId, switch: SwitchId) {
        self.chain.clear();
        let mut at = switch;
        let (fate, mut hops) = loop {
            let slot = &mut self.slots[at.index()];
            if slot.epoch == self.epoch {
                if slot.fate == Fate::Open {
                    break (Fate::Looped(at), 0);
                }
                break (slot.fate, slot.hops + 1);
            }
            *slot = Slot { epoch: self.epoch, fate: Fate::Open, channel: NONE, next: NONE, hops: 0, demand: 0.0 };
            self.chain.push(at);
            let Some(port) = self.lookup(state, view, at, destination) else {
                let drops = state.drops(at, view.vlan, FloodKind::UnknownUnicast);
                break (if drops { Fate::Dropped(at) } else { Fate::Flooded(at) }, 0);
            };
            match view.hop[port.index()] {
                Hop::Lost(port, loss) => break (Fate::Lost(port, loss), 0),
                Hop::Host(host) if host == destination => break (Fate::Delivered, 0),
                Hop::Host(host) => break (Fate::WrongHost(host), 0),
                Hop::Switch { ingress, .. } => {
                    let next = state.topology.port(ingress).switch;
                    self.slots[at.index()].channel = self.channel[port.index()];
                    if self.lookup(state, view, next, destination) == Some(ingress) {
                        break (Fate::Lost(ingress, Loss::BackToIngress), 0);
                    }
                    self.slots[at.index()].next = next.index() as u32;
                    at = next;
                }
            }
        };
        while let Some(passed) = self.chain.pop() {
            let slot = &mut self.slots[passed.index()];
            (slot.fate, slot.hops) = (fate, hops);
            hops += 1;
            self.settled.push(passed);
        }
    }

    /// The entry of a switch for a receiver; receivers never descend within a VLAN, nor VLANs.
    fn lookup(
        &mut self,
        state: &FabricState<'_>,
        view: &View,
        switch: SwitchId,
        destination: HostId,
    ) -> Option<PortId> {
        let runs = &state.fdb[switch.index()];
        let cursor = &mut self.cursor[switch.index()];
        while runs.get(*cursor).is_some_and(|run| (run.vlan, run.last) < (view.vlan, destination)) {
            *cursor += 1;
        }
        runs.get(*cursor).filter(|run| run.vlan == view.vlan && run.first <= destination).map(|run| run.port)
    }

    /// Carries demand from the rim inward, and notes which channel follows which.
    fn add_load(&mut self, view: &View, state: &FabricState<'_>, traffic: &mut Traffic) {
        let lane = state.lane(view.vlan);
        for at in (0..self.settled.len()).rev() {
            let Slot { channel, next, demand, .. } = self.slots[self.settled[at].index()];
            if channel == NONE {
                continue;
            }
            traffic.load[channel as usize] += demand;
            if next == NONE {
                continue;
            }
            let following = &mut self.slots[next as usize];
            following.demand += demand;
            if following.channel != NONE {
                let following = following.channel;
                traffic.lane(lane).insert(channel, following);
            }
        }
    }

    /// One finding for each way in which frames of this VLAN for this receiver go wrong.
    fn report(
        &self,
        state: &FabricState<'_>,
        view: &View,
        destination: HostId,
        senders: &[HostId],
        findings: &mut Findings,
    ) {
        let mut faults: Vec<(Fate, HostId, usize)> = Vec::new();
        for &source in senders {
            let switch = state.topology.switch_of(source);
            let port = state.topology.host(source).port;
            let slot = self.slots[switch.index()];
            let fate = match slot.fate {
                Fate::Delivered => continue,
                // The switch would hand the frame back to its own sender, which no switch does.
                Fate::WrongHost(host) if host == source && slot.hops == 0 => Fate::Lost(port, Loss::BackToIngress),
                fate => fate,
            };
            match faults.iter_mut().find(|(known, ..)| *known == fate) {
                Some((_, _, pairs)) => *pairs += 1,
                None => faults.push((fate, source, 1)),
            }
        }
        for (fate, source, pairs) in faults {
            let (kind, what) = match fate {
                Fate::Delivered | Fate::Open => continue,
                Fate::WrongHost(host) => {
                    (FindingKind::WrongDelivery, format!("reaches {} instead", state.host_name(host)))
                }
                Fate::Flooded(at) => {
                    (FindingKind::Flood, format!("floods from {}, which has no entry for it", state.switch_name(at)))
                }
                Fate::Dropped(at) => {
                    (FindingKind::Drop, format!("is dropped by {}, which has no entry for it", state.switch_name(at)))
                }
                Fate::Looped(at) => (FindingKind::Loop, format!("comes back to {} for ever", state.switch_name(at))),
                Fate::Lost(port, loss) => {
                    (FindingKind::Drop, format!("is lost at {}: {loss}", state.topology.port_label(port)))
                }
            };
            report_pair(state, (source, destination), kind, &format!("in VLAN {} {what}", view.vlan), pairs, findings);
        }
    }
}

/// Walks pairs one by one, as long as the budget lasts.
fn walk_each(
    state: &FabricState<'_>,
    destination: HostId,
    senders: &[HostId],
    budget: &mut Budget,
    findings: &mut Findings,
) {
    for &source in senders {
        if budget.is_spent() {
            return;
        }
        let walk = walk_frame(state, source, Receiver::Host(destination));
        budget.spend(&walk);
        let kind = match walk.disposition {
            Disposition::Delivered | Disposition::Spread => continue,
            Disposition::WrongDelivery { .. } => FindingKind::WrongDelivery,
            Disposition::Flooded { .. } => FindingKind::Flood,
            Disposition::Looped { .. } | Disposition::Abandoned => FindingKind::Loop,
            Disposition::Dropped { .. } => FindingKind::Drop,
        };
        report_pair(state, (source, destination), kind, &walk.outcome(state.topology), 1, findings);
    }
}

fn report_pair(
    state: &FabricState<'_>,
    (source, destination): (HostId, HostId),
    kind: FindingKind,
    what: &str,
    pairs: usize,
    findings: &mut Findings,
) {
    findings.fatal(kind, || {
        let subject = format!("{} -> {}", state.host_name(source), state.host_name(destination));
        let others = match pairs {
            1 => String::new(),
            _ => format!("; so do frames from {}", counted(pairs - 1, "other host")),
        };
        (subject, format!("the frame {what}{others}"))
    });
}
