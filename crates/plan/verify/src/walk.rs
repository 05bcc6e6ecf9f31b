//! One frame, step by step, by the rules of 802.1Q and nothing else: what `show --route` prints, and what judges the
//! VLANs in which shortcuts would be wrong.
//!
//! A switch treats a frame by (port that it came in on, VLAN) alone, so at most that many treatments exist, and copies
//! that meet the same one share their future. The treatments form a directed graph: a cycle in it is a loop, and
//! otherwise the number of paths into a treatment is the number of copies that arrive there.
//! ```text
//!   h0 ─▶ s0:1 ─▶ s1:2 ─▶ h1          one path: one copy
//!           └───▶ s2:1 ─▶ s1:3 ─▶ h1  a second path: h1 gets it twice
//!                          └───▶ s0:2 ─▶ s1:2   a way back: it never ends
//! ```
//! Breadth-first discovery, then removal of treatments in topological order (A. B. Kahn, 1962).
//! Cost: O(treatments · ports of a switch · log treatments).

use std::collections::BTreeMap;

use fabric::{HostId, Plan, PortId, SwitchId, Topology, VlanId};

use crate::{
    findings::{Findings, counted, listed},
    read::read_state,
    receiver::Receiver,
    state::{FabricState, Hop, Loss},
};

/// Most treatments of one frame that a walk follows; only state that leaks from VLAN to VLAN on a huge fabric has more.
pub const WALK_STEPS_MAX: usize = 1 << 18;

/// Most treatments that one judgement follows in all.
const BUDGET_STEPS_MAX: usize = 1 << 21;

/// What happens to one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Who sends it.
    pub source: HostId,
    /// Whom it is for.
    pub receiver: Receiver,
    /// What switches do with it, nearest first.
    pub steps: Vec<Step>,
    /// Who gets it and how often, by host.
    pub deliveries: BTreeMap<HostId, Copies>,
    /// How it ends.
    pub disposition: Disposition,
}

/// How many copies of a frame a host gets; a loop counts as [`u64::MAX`].
pub type Copies = u64;

/// One switch's treatment of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it comes in.
    pub ingress: PortId,
    /// The VLAN that it is in here.
    pub vlan: VlanId,
    /// What the forwarding table says.
    pub decision: Decision,
    /// Where it goes.
    pub exits: Vec<Exit>,
}

/// What a forwarding table says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// There is an entry.
    Entry,
    /// There is none: out of every other port of the VLAN that lets such frames out.
    Flood,
    /// There is none, and no port lets such frames out.
    Drop,
}

/// One port that a frame is sent out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Which port.
    pub port: PortId,
    /// How it looks on the cable.
    pub form: Form,
    /// Where it gets to.
    pub arrival: Arrival,
}

/// How a frame looks on a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With a tag.
    Tagged,
    /// Without one.
    Untagged,
}

/// Where a frame gets to when it leaves a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It enters the next switch here, in this VLAN.
    Switch(PortId, VlanId),
    /// It reaches a host.
    Host(HostId),
    /// It is lost at this port.
    Lost(PortId, Loss),
}

/// How a frame's walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Its receiver gets it, once, and nobody else does.
    Delivered,
    /// It is for no single host, and spreads through its VLAN to an end.
    Spread,
    /// This host gets it, though it is for another one.
    WrongDelivery {
        /// Who gets it.
        host: HostId,
    },
    /// A switch that does not know its receiver sends it everywhere.
    Flooded {
        /// The first such switch.
        at: SwitchId,
    },
    /// It comes back to a port in the VLAN in which it was there before.
    Looped {
        /// The port.
        at: PortId,
    },
    /// It is lost before it reaches its receiver.
    Dropped {
        /// Where.
        at: PortId,
        /// Why.
        loss: Loss,
    },
    /// It met more than [`WALK_STEPS_MAX`] treatments.
    Abandoned,
}

/// Walks one frame through the device state of a plan. Cost: that of reading the whole state, and of the walk.
///
/// # Panics
/// If a host is not of the plan's topology.
pub fn walk(plan: &Plan, source: HostId, receiver: Receiver) -> Walk {
    let state = read_state(plan, &mut Findings::default());
    walk_frame(&state, source, receiver)
}

impl Walk {
    /// The way of the frame and its end, a line for each treatment, as people write switches and ports.
    pub fn lines(&self, topology: &Topology) -> Vec<String> {
        let mut lines: Vec<String> = self.steps.iter().map(|step| step.line(topology)).collect();
        lines.push(format!(
            "{} -> {}: the frame {}",
            name(topology, self.source),
            self.to(topology),
            self.outcome(topology)
        ));
        lines
    }

    /// How it ends, to follow "the frame".
    pub fn outcome(&self, topology: &Topology) -> String {
        match self.disposition {
            Disposition::Delivered => "is delivered".to_owned(),
            Disposition::Spread => format!("spreads to {}", counted(self.deliveries.len(), "host")),
            Disposition::WrongDelivery { host } => format!("reaches {}, which it is not for", name(topology, host)),
            Disposition::Flooded { at } => {
                format!("floods from {}, which has no entry for it", topology.switch(at).name)
            }
            Disposition::Looped { at } => format!("comes back to {} for ever", topology.port_label(at)),
            Disposition::Dropped { at, loss } => format!("is lost at {}: {loss}", topology.port_label(at)),
            Disposition::Abandoned => "goes on for longer than anybody will follow".to_owned(),
        }
    }

    fn to(&self, topology: &Topology) -> String {
        match self.receiver {
            Receiver::Host(host) => name(topology, host).to_owned(),
            Receiver::Everybody => "everybody".to_owned(),
            Receiver::Nobody => "an unknown address".to_owned(),
        }
    }
}

impl Step {
    fn line(&self, topology: &Topology) -> String {
        let exits = self.exits.iter().map(|exit| {
            let form = match exit.form {
                Form::Tagged => "tagged",
                Form::Untagged => "untagged",
            };
            let arrival = match exit.arrival {
                Arrival::Switch(ingress, vlan) if vlan == self.vlan => topology.port_label(ingress),
                Arrival::Switch(ingress, vlan) => {
                    format!("{}, where it comes into VLAN {vlan}", topology.port_label(ingress))
                }
                Arrival::Host(host) => name(topology, host).to_owned(),
                Arrival::Lost(at, loss) => format!("lost at {}: {loss}", topology.port_label(at)),
            };
            format!("{form} out of {} to {arrival}", topology.port_label(exit.port))
        });
        let decision = match self.decision {
            Decision::Entry => "entry",
            Decision::Flood => "no entry, so everywhere",
            Decision::Drop => "no entry, so dropped",
        };
        let exits = if self.exits.is_empty() { "nowhere to go".to_owned() } else { listed(exits) };
        format!("{} VLAN {}: {decision}: {exits}", topology.port_label(self.ingress), self.vlan)
    }
}

fn name(topology: &Topology, host: HostId) -> &str {
    &topology.host(host).name
}

/// What is left of the treatments that one judgement may follow.
pub(crate) struct Budget {
    steps: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { steps: BUDGET_STEPS_MAX }
    }
}

impl Budget {
    pub(crate) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    pub(crate) fn spend(&mut self, walk: &Walk) {
        let cost = walk.steps.iter().map(|step| 1 + step.exits.len()).sum::<usize>().max(1);
        self.steps = self.steps.saturating_sub(cost);
    }
}

/// Walks one frame through state that has been read.
pub(crate) fn walk_frame(state: &FabricState<'_>, source: HostId, receiver: Receiver) -> Walk {
    let start = state.topology.host(source).port;
    let mut walk =
        Walk { source, receiver, steps: Vec::new(), deliveries: BTreeMap::new(), disposition: Disposition::Abandoned };
    match state.send(source, receiver) {
        Err(loss) => walk.disposition = Disposition::Dropped { at: start, loss },
        Ok(vlan) => {
            let next = discover(state, (start, vlan), receiver, &mut walk.steps);
            if walk.steps.len() <= WALK_STEPS_MAX {
                let looped = deliver(&mut walk, &next);
                walk.disposition = judge(state, &walk, looped);
            }
        }
    }
    walk
}

/// Finds every treatment; returns, for each, the positions of those that follow it.
fn discover(
    state: &FabricState<'_>,
    start: (PortId, VlanId),
    receiver: Receiver,
    steps: &mut Vec<Step>,
) -> Vec<Vec<usize>> {
    let mut position = BTreeMap::from([(start, 0)]);
    let mut queue = vec![start];
    let mut next = Vec::new();
    while let Some(&(ingress, vlan)) = queue.get(steps.len()) {
        if steps.len() > WALK_STEPS_MAX {
            break;
        }
        let step = treat(state, ingress, vlan, receiver);
        let mut following = Vec::new();
        for exit in &step.exits {
            if let Arrival::Switch(ingress, vlan) = exit.arrival {
                let at = *position.entry((ingress, vlan)).or_insert_with(|| {
                    queue.push((ingress, vlan));
                    queue.len() - 1
                });
                following.push(at);
            }
        }
        next.push(following);
        steps.push(step);
    }
    next
}

/// What a switch does with a frame that has come in.
fn treat(state: &FabricState<'_>, ingress: PortId, vlan: VlanId, receiver: Receiver) -> Step {
    let switch = state.topology.port(ingress).switch;
    match state.lookup(switch, vlan, receiver) {
        Some(port) => {
            let mut exit = exit(state, port, vlan);
            if port == ingress {
                exit.arrival = Arrival::Lost(port, Loss::BackToIngress);
            }
            Step { ingress, vlan, decision: Decision::Entry, exits: vec![exit] }
        }
        None => {
            let kind = receiver.flood();
            if state.drops(switch, vlan, kind) {
                return Step { ingress, vlan, decision: Decision::Drop, exits: Vec::new() };
            }
            let others = state.topology.port_ids(switch).filter(|port| *port != ingress && state.lets_out(*port, kind));
            let members = others.filter(|port| state.port_up(*port).is_some_and(|intent| intent.is_member(vlan)));
            let exits = members
                .map(|port| exit(state, port, vlan))
                .filter(|exit| !matches!(exit.arrival, Arrival::Lost(_, Loss::NoCable | Loss::FarEndShut)));
            Step { ingress, vlan, decision: Decision::Flood, exits: exits.collect() }
        }
    }
}

fn exit(state: &FabricState<'_>, port: PortId, vlan: VlanId) -> Exit {
    let untagged = state.port(port).is_some_and(|intent| intent.untagged.contains(vlan));
    Exit {
        port,
        form: if untagged { Form::Untagged } else { Form::Tagged },
        arrival: match state.leave(port, vlan) {
            Hop::Lost(at, loss) => Arrival::Lost(at, loss),
            Hop::Host(host) => Arrival::Host(host),
            Hop::Switch { ingress, vlan } => Arrival::Switch(ingress, vlan),
        },
    }
}

/// Counts copies along the treatments; returns one that the frame comes back to, if there is any.
fn deliver(walk: &mut Walk, next: &[Vec<usize>]) -> Option<PortId> {
    let mut incoming = vec![0_usize; next.len()];
    next.iter().flatten().for_each(|&at| incoming[at] += 1);
    let mut copies: Vec<Copies> = vec![0; next.len()];
    copies[0] = 1;
    let mut ready: Vec<usize> = if incoming[0] == 0 { vec![0] } else { Vec::new() };
    let mut done = vec![false; next.len()];
    while let Some(at) = ready.pop() {
        done[at] = true;
        for &following in &next[at] {
            copies[following] = copies[following].saturating_add(copies[at]);
            incoming[following] -= 1;
            if incoming[following] == 0 {
                ready.push(following);
            }
        }
    }
    for (at, step) in walk.steps.iter().enumerate() {
        for exit in &step.exits {
            if let Arrival::Host(host) = exit.arrival {
                let arriving = if done[at] { copies[at] } else { Copies::MAX };
                let count = walk.deliveries.entry(host).or_default();
                *count = count.saturating_add(arriving);
            }
        }
    }
    on_cycle(next, &done).map(|at| walk.steps[at].ingress)
}

/// A treatment on a cycle: everything that is not done is on one or behind one, and has one that is not done before it.
fn on_cycle(next: &[Vec<usize>], done: &[bool]) -> Option<usize> {
    let mut before: Vec<Option<usize>> = vec![None; next.len()];
    for (at, following) in next.iter().enumerate().filter(|(at, _)| !done[*at]) {
        following.iter().for_each(|&later| before[later] = Some(at));
    }
    let mut at = done.iter().position(|done| !done)?;
    let mut seen = vec![false; next.len()];
    while !std::mem::replace(&mut seen[at], true) {
        at = before[at].expect("what is left over has something left over before it");
    }
    Some(at)
}

fn judge(state: &FabricState<'_>, walk: &Walk, looped: Option<PortId>) -> Disposition {
    if let Some(at) = looped {
        return Disposition::Looped { at };
    }
    let dropped = walk.steps.iter().find(|step| step.decision == Decision::Drop);
    let dropped = dropped.map(|step| Disposition::Dropped { at: step.ingress, loss: Loss::Blocked });
    let Receiver::Host(destination) = walk.receiver else {
        return dropped.filter(|_| walk.deliveries.is_empty()).unwrap_or(Disposition::Spread);
    };
    if let Some(step) = walk.steps.iter().find(|step| step.decision == Decision::Flood) {
        return Disposition::Flooded { at: state.topology.port(step.ingress).switch };
    }
    if let Some((&host, _)) = walk.deliveries.iter().find(|(host, _)| **host != destination) {
        return Disposition::WrongDelivery { host };
    }
    let lost = walk.steps.iter().flat_map(|step| &step.exits).find_map(|exit| match exit.arrival {
        Arrival::Lost(at, loss) => Some(Disposition::Dropped { at, loss }),
        Arrival::Switch(..) | Arrival::Host(_) => None,
    });
    lost.or(dropped).unwrap_or(Disposition::Delivered)
}
