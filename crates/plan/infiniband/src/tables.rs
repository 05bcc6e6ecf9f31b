//! Forwarding tables that cover every switch and every destination, as far as one lane allows.
//!
//! A plan states the way to each *host* from each switch that carries frames for it. A subnet has more traffic: every switch
//! has a LID of its own at its port 0, for counters and traps, and answers from there. That traffic shares the data lane
//! (only subnet management packets have VL15 to themselves), so it must not close a cycle either:
//!
//! - toward a switch with hosts, frames take the way to its first host: no new dependency arises;
//! - everything else is grown switch by switch from what is there, taking a channel only if its dependency fits
//!   into an order with all others (`fabric::graph::TopologicalOrder`). What fits nowhere is left out, and counted.
//!
//! ```text
//!     core ── answers from here: no host's frames pass ──▶ leaf     taken: down, down
//!     core ──▶ leaf ──▶ other core                                  left out if down-up would close a cycle
//! ```

use fabric::{
    Assignment, Attachment, ChannelId, Guid, HostId, Plan, PortId, SwitchId, Tagging, Topology,
    graph::{BreadthFirst, Insertion, TopologicalOrder},
};
use thiserror::Error;

/// Highest port number: 255 stands for no route.
const PORT_MAX: u8 = 254;

/// Where a packet ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A host's port.
    Host(HostId),
    /// A switch's own port 0.
    Switch(SwitchId),
}

/// One linear forwarding table a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingTables {
    /// By destination, hosts first, then by switch: the channel to take; none where the destination is attached, and
    /// where there is no way.
    next: Vec<Vec<Option<ChannelId>>>,
    /// By port of the topology.
    number: Vec<u8>,
    host_guids: Vec<Guid>,
    switch_guids: Vec<Guid>,
    missing: usize,
}

/// Why a plan gives no forwarding tables.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TablesError {
    /// The route depends on more than the destination.
    #[error(
        "an InfiniBand switch looks at the destination alone, and this plan tags by {0}: plan with --tagging destination"
    )]
    NotByDestination(Tagging),
    /// Packets are never dropped, so a cycle can freeze.
    #[error(
        "InfiniBand never drops packets, and this plan is not proven free of deadlock: plan with --flow-control pause"
    )]
    NoProof,
    /// The proof needs several lanes.
    #[error("OpenSM's file engine uses one lane, and this plan needs {0}: plan with --flow-control pause")]
    Lanes(usize),
    /// A device that OpenSM could not find.
    #[error("{0} has no GUID: import the fabric from ibnetdiscover, or write guid: into the topology")]
    NoGuid(String),
    /// A port without a number.
    #[error("port {0} has no InfiniBand number: name ports 1 to {PORT_MAX}")]
    NoPortNumber(String),
    /// The entries contradict the plan's proof or lead nowhere.
    #[error("the entries toward {0} do not follow the plan's proof: ask espalier check")]
    Contradiction(String),
}

/// Makes the tables of a plan. Cost: O(switches · (hosts + switches)) and what completing takes.
///
/// # Errors
/// [`TablesError`], naming the way out.
pub fn forwarding_tables(plan: &Plan) -> Result<ForwardingTables, TablesError> {
    let Assignment::Destination { choice, .. } = &plan.assignment else {
        return Err(TablesError::NotByDestination(plan.policy.tagging));
    };
    let rank = match plan.certificate.as_ref().map(|certificate| certificate.rank.as_slice()) {
        None | Some([]) => return Err(TablesError::NoProof),
        Some([rank]) => rank,
        Some(lanes) => return Err(TablesError::Lanes(lanes.len())),
    };
    let topology = &plan.topology;
    let switch_guids = (topology.switches().iter())
        .map(|switch| switch.guid.ok_or_else(|| TablesError::NoGuid(format!("switch {}", switch.name))));
    let host_guids = (topology.hosts().iter())
        .map(|host| host.guid.ok_or_else(|| TablesError::NoGuid(format!("host {}", host.name))));
    let (switch_guids, host_guids) = (switch_guids.collect::<Result<_, _>>()?, host_guids.collect::<Result<_, _>>()?);
    let number = port_numbers(topology)?;

    let mut next = vec![vec![None; topology.switches().len()]; topology.hosts().len()];
    for device in &plan.devices {
        for run in &device.fdb {
            let Attachment::Link(link) = topology.port(run.port).attachment else { continue };
            let forward = ChannelId::forward(link);
            let channel = if topology.tail_port(forward) == run.port { forward } else { forward.reverse() };
            for host in (run.first.index()..=run.last.index()).filter(|&host| choice[host] == run.vlan) {
                next[host][device.switch.index()] = Some(channel);
            }
        }
    }
    let mut order = TopologicalOrder::by_number(rank);
    for (host, ways) in topology.host_ids().zip(&next) {
        if !follows(topology, &mut order, topology.switch_of(host), ways) {
            return Err(TablesError::Contradiction(format!("host {}", topology.host(host).name)));
        }
    }
    for switch in topology.switch_ids() {
        let ways = match topology.hosts_of(switch).first() {
            Some(host) => next[host.index()].clone(),
            None => vec![None; topology.switches().len()],
        };
        next.push(ways);
    }
    let mut missing = 0;
    let hosts = topology.host_ids().map(|host| topology.switch_of(host));
    for (root, ways) in hosts.chain(topology.switch_ids()).zip(&mut next) {
        missing += complete(topology, &mut order, root, ways);
    }
    Ok(ForwardingTables { next, number, host_guids, switch_guids, missing })
}

impl ForwardingTables {
    /// Every destination: hosts, then switches.
    pub fn destinations(&self) -> impl Iterator<Item = Destination> + use<> {
        let hosts = (0..self.host_guids.len()).map(|host| Destination::Host(HostId::new(host)));
        hosts.chain((0..self.switch_guids.len()).map(|switch| Destination::Switch(SwitchId::new(switch))))
    }

    /// The port through which `switch` sends to `destination`: 0 to itself, none if there is no way.
    pub fn port(&self, topology: &Topology, switch: SwitchId, destination: Destination) -> Option<u8> {
        let number = |port: PortId| self.number[port.index()];
        let (row, here) = match destination {
            Destination::Host(host) => {
                let port = topology.host(host).port;
                (host.index(), (topology.port(port).switch == switch).then(|| number(port)))
            }
            Destination::Switch(other) => (self.host_guids.len() + other.index(), (other == switch).then_some(0)),
        };
        here.or_else(|| self.next[row][switch.index()].map(|channel| number(topology.tail_port(channel))))
    }

    /// The GUID of a destination's port.
    pub fn guid(&self, destination: Destination) -> Guid {
        match destination {
            Destination::Host(host) => self.host_guids[host.index()],
            Destination::Switch(switch) => self.switch_guids[switch.index()],
        }
    }

    /// How many pairs of a switch and a destination have no entry, since every way would close a cycle. Packets between
    /// hosts, and between hosts and switches with hosts, never need one.
    pub fn missing(&self) -> usize {
        self.missing
    }
}

/// The numbers of all ports, which InfiniBand has instead of names.
fn port_numbers(topology: &Topology) -> Result<Vec<u8>, TablesError> {
    (topology.ports().iter().enumerate())
        .map(|(index, port)| {
            let number = port.name.parse().ok().filter(|number| (1..=PORT_MAX).contains(number));
            let number = number.or_else(|| (port.attachment == Attachment::Nothing).then_some(0));
            number.ok_or_else(|| TablesError::NoPortNumber(topology.port_label(PortId::new(index))))
        })
        .collect()
}

/// Adds the dependencies of the ways to `root`; false if they contradict the order or lead nowhere.
fn follows(topology: &Topology, order: &mut TopologicalOrder, root: SwitchId, ways: &[Option<ChannelId>]) -> bool {
    ways.iter().flatten().all(|&channel| {
        let head = topology.head(channel);
        head == root || ways[head.index()].is_some_and(|onward| admits(order, channel, onward))
    })
}

/// Adds the dependency of a packet that holds `from` and waits for `to`; false if it would close a cycle.
fn admits(order: &mut TopologicalOrder, from: ChannelId, to: ChannelId) -> bool {
    order.insert((from.index() as u32, to.index() as u32)) != Insertion::Cycle
}

/// Gives switches without a way to `root` one, breadth first from those that have one; returns how many stay without.
fn complete(
    topology: &Topology,
    order: &mut TopologicalOrder,
    root: SwitchId,
    ways: &mut [Option<ChannelId>],
) -> usize {
    let count = topology.switches().len();
    let covered = topology.switch_ids().filter(|switch| *switch == root || ways[switch.index()].is_some());
    let mut search = BreadthFirst::from(count, covered);
    while let Some(switch) = search.next().filter(|_| search.order.len() < count) {
        for channel in topology.channels_from(switch).iter().map(|channel| channel.reverse()) {
            let tail = topology.tail(channel);
            if !search.has_reached(tail) && ways[switch.index()].is_none_or(|onward| admits(order, channel, onward)) {
                ways[tail.index()] = Some(channel);
                search.reach(switch, channel, tail);
            }
        }
    }
    count - search.order.len()
}
