//! Planes: groups of switches among which traffic between their own hosts stays, so that what the ports of a machine send on
//! different planes has no switch and no cable in common.
//!
//! ```text
//!   plane 0   s0 ─── s1 ─── s2       node1/eth0 at s0, node2/eth0 at s2
//!             │      │      │        between the planes: what hosts of one send to hosts of the other
//!   plane 1   s3 ─── s4 ─── s5       node1/eth1 at s3, node2/eth1 at s5
//! ```
//! A plane that its own links do not connect falls into *parts*, and traffic stays within the part where both its ends are.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ChannelId, HostId, InService, LinkId, MachineId, SwitchId, Topology, graph::breadth_first};

/// The plane of each switch; none where traffic may take any way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    plane: Vec<u8>,
}

/// The connected parts of planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneParts {
    part: Vec<u32>,
    plane: Vec<u8>,
}

/// How many machines have paths to each other that no single failure cuts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanePairs {
    /// Pairs of machines that have at least two ports each.
    pub all: u64,
    /// Those of them whose ports meet in at least two planes.
    pub disjoint: u64,
    /// One of the others, if there are any.
    pub example: Option<(MachineId, MachineId)>,
}

impl Planes {
    /// Most planes of a topology: a machine has at most so many ports that count.
    pub const COUNT_MAX: usize = 64;

    /// `plane[switch]`, each below [`Self::COUNT_MAX`]; no switches for no planes.
    pub fn new(plane: Vec<u8>) -> Self {
        Self { plane }
    }

    /// Whether there are none, so that traffic may take any way.
    pub fn is_empty(&self) -> bool {
        self.plane.is_empty()
    }

    /// The plane of each switch, by number.
    pub fn by_switch(&self) -> &[u8] {
        &self.plane
    }

    /// The plane of a switch.
    ///
    /// # Panics
    /// If there are none, or the switch is of another topology.
    pub fn of(&self, switch: SwitchId) -> u8 {
        self.plane[switch.index()]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.plane.iter().max().map_or(0, |most| usize::from(*most) + 1)
    }

    /// The same for what is in service.
    pub fn in_service(&self, part: &InService) -> Self {
        Self { plane: part.switch.iter().filter_map(|switch| self.plane.get(switch.index())).copied().collect() }
    }

    /// The parts that links other than the drained ones connect. Cost: O(switches + links).
    pub fn parts(&self, topology: &Topology, drained: &BTreeSet<LinkId>) -> PlaneParts {
        if self.is_empty() {
            return PlaneParts { part: Vec::new(), plane: Vec::new() };
        }
        let count = topology.switches().len();
        let mut part = vec![u32::MAX; count];
        let mut next = 0;
        for start in topology.switch_ids() {
            if part[start.index()] != u32::MAX {
                continue;
            }
            let inside = |channel: ChannelId, head: SwitchId| {
                !drained.contains(&channel.link()) && self.of(head) == self.of(start)
            };
            let found = breadth_first(count, [start], |switch| {
                topology.neighbours(switch).filter(move |(channel, head)| inside(*channel, *head))
            });
            found.order.iter().for_each(|switch| part[switch.index()] = next);
            next += 1;
        }
        PlaneParts { part, plane: self.plane.clone() }
    }
}

impl PlaneParts {
    /// Whether there are none, so that traffic may take any way.
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// `part[switch]`.
    pub fn by_switch(&self) -> &[u32] {
        &self.part
    }

    /// The part of a host's switch.
    ///
    /// # Panics
    /// If there are no planes, or the host is of another topology.
    pub fn of(&self, topology: &Topology, host: HostId) -> u32 {
        self.part[topology.switch_of(host).index()]
    }

    /// The pairs of ports by which two machines reach each other, at most one in a plane: a port of the one and a port of the
    /// other in the same part, the first of each if there are several.
    pub fn links(&self, topology: &Topology, a: MachineId, b: MachineId) -> Vec<(HostId, HostId)> {
        let (ours, theirs) = (self.ports(topology, a), self.ports(topology, b));
        let mut links: BTreeMap<u8, (HostId, HostId)> = BTreeMap::new();
        for (part, own) in ours {
            if let Some(other) = theirs.get(&part) {
                links.entry(self.plane[topology.switch_of(own).index()]).or_insert((own, *other));
            }
        }
        links.into_values().collect()
    }

    /// The first port of a machine in each part that it has ports in; ports on standby carry nothing.
    fn ports(&self, topology: &Topology, machine: MachineId) -> BTreeMap<u32, HostId> {
        let mut ports = BTreeMap::new();
        for host in topology.machine(machine).hosts().filter(|host| !topology.host(*host).standby) {
            ports.entry(self.of(topology, host)).or_insert(host);
        }
        ports
    }

    /// How many pairs of machines meet in at least two planes. Cost: O(machines + kinds of machines² · planes), two machines being
    /// of a kind if they have ports in the same parts.
    pub fn pairs(&self, topology: &Topology) -> PlanePairs {
        let mut kinds: BTreeMap<Vec<u32>, Vec<MachineId>> = BTreeMap::new();
        let is_standby = |host: HostId| topology.host(host).standby;
        for machine in topology.machine_ids() {
            if topology.machine(machine).hosts().filter(|host| !is_standby(*host)).count() > 1 {
                kinds.entry(self.ports(topology, machine).into_keys().collect()).or_default().push(machine);
            }
        }
        let kinds: Vec<(Vec<u32>, Vec<MachineId>)> = kinds.into_iter().collect();
        let mut pairs = PlanePairs::default();
        for (number, (parts, machines)) in kinds.iter().enumerate() {
            for (others_parts, others) in &kinds[number..] {
                let same = parts == others_parts;
                let ours = machines.len() as u64;
                let count = if same { ours * (ours - 1) / 2 } else { ours * others.len() as u64 };
                pairs.all += count;
                let other = if same { others.get(1) } else { others.first() };
                let Some(&other) = other else { continue };
                if self.links(topology, machines[0], other).len() > 1 {
                    pairs.disjoint += count;
                } else {
                    pairs.example.get_or_insert((machines[0].min(other), machines[0].max(other)));
                }
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Mac, SwitchSpec, TopologyBuilder,
        generate::{Kind, Options, generate},
    };

    use super::*;

    fn planes(plane: &[u8]) -> Planes {
        Planes::new(plane.to_vec())
    }

    #[test]
    fn planes_fall_into_what_their_links_connect() {
        let ring = generate(&Kind::parse("torus", &["6".to_owned()]).unwrap(), &Options::default()).unwrap();
        let none = BTreeSet::new();
        assert_eq!(planes(&[0, 0, 0, 1, 1, 1]).parts(&ring, &none).by_switch(), [0, 0, 0, 1, 1, 1]);
        assert_eq!(planes(&[0, 1, 0, 0, 1, 0]).parts(&ring, &none).by_switch(), [0, 1, 2, 2, 3, 0]);
        let between = |a: usize, b: usize| {
            let found = ring.neighbours(SwitchId::new(a)).find(|(_, head)| head.index() == b);
            BTreeSet::from([found.expect("a ring").0.link()])
        };
        assert_eq!(planes(&[0, 0, 0, 1, 1, 1]).parts(&ring, &between(1, 2)).by_switch(), [0, 0, 1, 2, 2, 2]);
        assert!(planes(&[]).parts(&ring, &none).is_empty());
    }

    #[test]
    fn machines_are_linked_once_in_each_plane_that_they_share() {
        let mut builder = TopologyBuilder::new();
        let ids: Vec<_> =
            (0..4).map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).unwrap()).collect();
        let mut next = 0;
        let mut port = |builder: &mut TopologyBuilder, switch: usize| {
            next += 1;
            builder.add_port(ids[switch], &format!("g{next}")).unwrap()
        };
        for (a, b) in [(0, 1), (1, 3), (3, 2)] {
            let (a, b) = (port(&mut builder, a), port(&mut builder, b));
            builder.add_link(a, b, 1_000_000_000).unwrap();
        }
        let mut mac = 0;
        for (machine, switches) in [("a", &[0, 2][..]), ("b", &[3, 1]), ("c", &[0, 1]), ("d", &[2])] {
            for (number, &switch) in switches.iter().enumerate() {
                mac += 1;
                let at = port(&mut builder, switch);
                builder.add_host(&format!("{machine}/{number}"), Mac::local(mac), at, 1_000_000_000, None).unwrap();
                builder.join_machine(machine).unwrap();
            }
        }
        let topology = builder.finish().unwrap();
        let parts = planes(&[0, 0, 1, 1]).parts(&topology, &BTreeSet::new());
        let links = |a: usize, b: usize| {
            let links = parts.links(&topology, MachineId::new(a), MachineId::new(b));
            let name = |host: HostId| topology.host(host).name.clone();
            links.into_iter().map(|(a, b)| format!("{}-{}", name(a), name(b))).collect::<Vec<_>>()
        };
        assert_eq!(links(0, 1), ["a/0-b/1", "a/1-b/0"]);
        assert_eq!(links(0, 2), ["a/0-c/0"]);
        assert_eq!(links(3, 0), ["d/0-a/1"]);
        assert_eq!(links(3, 2), [""; 0]);
        let found = parts.pairs(&topology);
        assert_eq!((found.all, found.disjoint), (3, 1));
        assert_eq!(found.example, Some((MachineId::new(0), MachineId::new(2))));
    }
}
