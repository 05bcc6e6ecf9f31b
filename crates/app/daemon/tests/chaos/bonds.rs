//! Failover bonds in virtual time: which port each uses, and what switches count of its frames.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, PortId, Topology, rng::Rng};
use switch_model::observe::{Count, Received};

/// Between two frames that a bond sends.
const FRAME_MS: u64 = 10;
/// Where counters of 32 bits begin, so that they wrap soon.
const NARROW_FIRST: u64 = 0xffff_f000;

/// All bonds, by the active port of the plan.
pub(crate) struct FailoverBonds {
    bonds: BTreeMap<HostId, Bond>,
    /// Frames that have come at each port: unicast, broadcast.
    received: BTreeMap<PortId, [u64; 2]>,
    /// Ports whose counters have 32 bits.
    narrow: BTreeSet<PortId>,
    /// Until when frames are counted.
    counted_ms: u64,
    /// When a bond last did what nobody can tell from its ports alone.
    pub(crate) unforeseen_ms: u64,
}

struct Bond {
    /// Its ports, its primary one first.
    ports: Vec<PortId>,
    used: Option<PortId>,
    /// Whether somebody chose the port, not the bond.
    by_hand: bool,
    /// Whether the primary port carried when that was looked at last, and whether the switches of the primary port and of the one in
    /// use were cut off from all others.
    primary_carried: bool,
    primary_cut_off: bool,
    used_cut_off: bool,
}

impl FailoverBonds {
    pub(crate) fn new(topology: &Topology) -> Self {
        let of = |active: HostId| {
            let ports = std::iter::once(active).chain(topology.standby_ports(active));
            let ports = ports.map(|host| topology.host(host).port).collect();
            (
                active,
                Bond {
                    ports,
                    used: None,
                    by_hand: false,
                    primary_carried: false,
                    primary_cut_off: false,
                    used_cut_off: false,
                },
            )
        };
        let is_bond = |host: &HostId| topology.standby_ports(*host).next().is_some();
        let bonds: BTreeMap<HostId, Bond> = topology.host_ids().filter(is_bond).map(of).collect();
        let ports: BTreeSet<PortId> = bonds.values().flat_map(|bond| bond.ports.iter().copied()).collect();
        let narrow = ports.iter().copied().filter(|port| topology.port(*port).switch.index() % 2 == 1).collect();
        let received = ports.into_iter().map(|port| (port, [0; 2])).collect();
        Self { bonds, received, narrow, counted_ms: 0, unforeseen_ms: 0 }
    }

    /// The port that each uses, by the active port of the plan.
    pub(crate) fn used(&self) -> impl Iterator<Item = (HostId, Option<PortId>)> + '_ {
        self.bonds.iter().map(|(host, bond)| (*host, bond.used))
    }

    /// What a switch says that a port has received.
    pub(crate) fn received(&self, port: PortId, now_ms: u64) -> Received {
        let Some([unicast, broadcast]) = self.received.get(&port).copied() else { return Received::default() };
        let unicast = unicast + if self.is_used(port) { self.frames_until(now_ms) } else { 0 };
        let count = |count: u64| match self.narrow.contains(&port) {
            true => Count::Narrow((NARROW_FIRST + count) as u32),
            false => Count::Wide(count),
        };
        Received { unicast: count(unicast), broadcast: count(broadcast) }
    }

    fn is_used(&self, port: PortId) -> bool {
        self.bonds.values().any(|bond| bond.used == Some(port))
    }

    fn frames_until(&self, now_ms: u64) -> u64 {
        now_ms / FRAME_MS - self.counted_ms / FRAME_MS
    }

    fn count(&mut self, now_ms: u64) {
        let sent = self.frames_until(now_ms);
        for port in self.bonds.values().filter_map(|bond| bond.used) {
            self.received.entry(port).or_default()[0] += sent;
        }
        self.counted_ms = now_ms;
    }

    /// Has every bond use the port that it would, of those that carry: its primary one once that comes up, its own while it carries, and
    /// the first one otherwise. `cut_off` are the ports of switches that are cut off from all others.
    pub(crate) fn settle(&mut self, now_ms: u64, carries: &BTreeSet<PortId>, cut_off: &BTreeSet<PortId>) {
        self.count(now_ms);
        for bond in self.bonds.values_mut() {
            let primary_carries = carries.contains(&bond.ports[0]);
            let is_back = !std::mem::replace(&mut bond.primary_carried, primary_carries) && primary_carries;
            let used = match bond.used {
                _ if is_back => Some(bond.ports[0]),
                Some(used) if carries.contains(&used) => Some(used),
                _ => bond.ports.iter().copied().find(|port| carries.contains(port)),
            };
            let is_cut_off = cut_off.contains(&bond.ports[0]);
            let is_reached_again = std::mem::replace(&mut bond.primary_cut_off, is_cut_off) && !is_cut_off;
            if is_reached_again && used != Some(bond.ports[0]) {
                // A host may watch carriers or its peers, so only frames tell whether it goes back to its primary port.
                self.unforeseen_ms = now_ms;
            }
            let is_used_cut_off = used.is_some_and(|port| cut_off.contains(&port));
            let was_used_cut_off = std::mem::replace(&mut bond.used_cut_off, is_used_cut_off);
            if was_used_cut_off && !is_used_cut_off && used == bond.used && used != Some(bond.ports[0]) {
                // Entries lead to another port meanwhile, and only frames tell that it has stayed at this one.
                self.unforeseen_ms = now_ms;
            }
            if used == bond.used {
                continue;
            }
            if std::mem::take(&mut bond.by_hand) {
                self.unforeseen_ms = now_ms;
            }
            bond.used = used;
            announce(&mut self.received, used);
        }
    }

    /// Somebody has a bond use another of its ports that carry; whether there is one.
    pub(crate) fn choose(&mut self, now_ms: u64, carries: &BTreeSet<PortId>, rng: &mut Rng) -> bool {
        self.count(now_ms);
        let bonds: Vec<HostId> = self.bonds.keys().copied().collect();
        let bond = self.bonds.get_mut(&bonds[rng.below(bonds.len())]).expect("it is there");
        let others = bond.ports.iter().copied().filter(|port| Some(*port) != bond.used && carries.contains(port));
        let others: Vec<PortId> = others.collect();
        if others.is_empty() {
            return false;
        }
        (bond.used, bond.by_hand) = (Some(others[rng.below(others.len())]), true);
        self.unforeseen_ms = now_ms;
        announce(&mut self.received, bond.used);
        true
    }

    /// A switch counts from zero again.
    pub(crate) fn reset(&mut self, now_ms: u64, ports: impl Iterator<Item = PortId>) {
        self.count(now_ms);
        for port in ports {
            if let Some(received) = self.received.get_mut(&port) {
                *received = [0; 2];
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bonds.is_empty()
    }
}

/// A bond announces itself at a port.
fn announce(received: &mut BTreeMap<PortId, [u64; 2]>, port: Option<PortId>) {
    if let Some(port) = port {
        received.entry(port).or_default()[1] += 1;
    }
}
