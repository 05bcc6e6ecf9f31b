//! Where rows of forwarding tables say that an address is, and which entries lead there.
//!
//! ```text
//!   VLAN 7, in which vmhost2 sends:    s0 ── s1 ── s2        a row of s0 for VLAN 7 and the port toward s1: the sender is beyond it
//!                                      │           │         the only host beyond that sends in VLAN 7 is vmhost2
//!                                    vmhost1    vmhost2      ▶ the address is behind vmhost2; were there two, behind one of them
//! ```
//! A switch learns where it has no static entry. So the entries of an address leave places out where switches may learn: the
//! switch of the address's own port, in the VLAN that the port sends in, and every switch that no frame to the address passes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{FdbMode, HostId, Mac, Plan, PortId, SwitchId, Tagging, VlanId};
use switch_model::{Entries, Slot};

/// What a plan says of the ports at which addresses are learned.
#[derive(Clone, Debug)]
pub struct Places {
    /// By switch, VLAN and port: the hosts beyond the port that send in the VLAN.
    beyond: BTreeMap<(SwitchId, VlanId, Slot), BTreeSet<HostId>>,
    /// The VLANs that these ports send in.
    vlans: BTreeSet<VlanId>,
    ports: BTreeMap<HostId, Place>,
}

/// What a learned row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The address is behind this port.
    At(HostId),
    /// It is behind one of these ports, at some of which addresses are learned.
    Among(BTreeSet<HostId>),
}

/// A port at which addresses are learned.
#[derive(Clone, Debug)]
struct Place {
    most: usize,
    vlan: VlanId,
    /// `planned[switch]`: where frames of each VLAN for the port's own address leave.
    planned: Vec<BTreeMap<VlanId, Slot>>,
    /// `needed[switch]`: those that frames for a learned address come by, but for the one that is left to learning.
    needed: Vec<BTreeMap<VlanId, Slot>>,
}

/// Why a plan has no addresses to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NothingToLearn {
    /// No port of the topology learns any.
    NoPort,
    /// Hosts tag their frames themselves.
    HostsChoose,
    /// All switches learn all addresses.
    SwitchesLearn,
}

impl std::fmt::Display for NothingToLearn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoPort => {
                "no port of the plan has addresses: learned; write it at the hypervisors' ports in the topology, and plan again"
            }
            Self::HostsChoose => {
                "hosts tag their own frames in this plan, so no port has one VLAN to learn in; plan with --tagging switch"
            }
            Self::SwitchesLearn => {
                "switches learn every address in this plan, so there are no entries to write; plan with --fdb minimal"
            }
        })
    }
}

impl Places {
    /// The ports of a plan at which addresses are learned. Cost: O(hosts · switches) for the VLANs that these ports send in.
    ///
    /// # Errors
    /// [`NothingToLearn`].
    pub fn of(plan: &Plan) -> Result<Self, NothingToLearn> {
        let topology = &plan.topology;
        if topology.learning_hosts().next().is_none() {
            return Err(NothingToLearn::NoPort);
        }
        if plan.policy.tagging != Tagging::Switch {
            return Err(NothingToLearn::HostsChoose);
        }
        if plan.policy.fdb == FdbMode::Learned {
            return Err(NothingToLearn::SwitchesLearn);
        }
        let vlan_of: Vec<VlanId> = topology.host_ids().map(|host| plan.assignment.broadcast(host)).collect();
        let vlans: BTreeSet<VlanId> = topology.learning_hosts().map(|host| vlan_of[host.index()]).collect();
        let mut beyond: BTreeMap<(SwitchId, VlanId, Slot), BTreeSet<HostId>> = BTreeMap::new();
        for host in topology.host_ids().filter(|host| vlans.contains(&vlan_of[host.index()])) {
            let vlan = vlan_of[host.index()];
            for (switch, slot) in toward(plan, vlan, host) {
                beyond.entry((switch, vlan, slot)).or_default().insert(host);
            }
        }
        let place = |host: HostId| {
            let mut planned = vec![BTreeMap::new(); topology.switches().len()];
            for device in &plan.devices {
                for run in device.fdb.iter().filter(|run| run.first <= host && host <= run.last) {
                    planned[device.switch.index()].insert(run.vlan, slot_of(plan, run.port));
                }
            }
            let needed = match plan.failover {
                // Which VLANs senders are in changes with every link that fails.
                Some(_) => planned.clone(),
                None => needed(plan, &vlan_of, host, &planned),
            };
            let (vlan, most) = (vlan_of[host.index()], topology.host(host).learned_max.unwrap_or(0));
            let mut place = Place { most, vlan, planned, needed };
            place.needed[topology.switch_of(host).index()].remove(&vlan);
            (host, place)
        };
        Ok(Self { beyond, ports: topology.learning_hosts().map(place).collect(), vlans })
    }

    /// The ports, ascending.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = HostId> + '_ {
        self.ports.keys().copied()
    }

    /// The VLANs that they send in, in which tables are to be read.
    pub fn vlans(&self) -> &BTreeSet<VlanId> {
        &self.vlans
    }

    /// Most addresses that are learned at a port; 0 where none are.
    pub fn most(&self, port: HostId) -> usize {
        self.ports.get(&port).map_or(0, |place| place.most)
    }

    /// Where an address is that a switch has learned in a VLAN at one of its own ports; none where no port beyond learns addresses.
    pub fn evidence(&self, switch: SwitchId, vlan: VlanId, at: Slot) -> Option<Evidence> {
        let hosts = self.beyond.get(&(switch, vlan, at))?;
        let learning = hosts.iter().find(|host| self.ports.contains_key(host))?;
        Some(if hosts.len() == 1 { Evidence::At(*learning) } else { Evidence::Among(hosts.clone()) })
    }

    /// The entries of addresses behind these ports that a switch is to hold.
    pub fn entries(&self, switch: SwitchId, known: &BTreeMap<Mac, HostId>) -> Entries {
        let of = |(mac, host): (&Mac, &HostId)| {
            let needed = self.ports.get(host).map(|place| &place.needed[switch.index()]).into_iter().flatten();
            needed.map(|(vlan, slot)| ((*vlan, *mac), *slot)).collect::<Vec<_>>()
        };
        known.iter().flat_map(of).collect()
    }

    /// Whether a plan has an entry in a VLAN for addresses behind a port that a switch does without: see [`Self::left_out`].
    pub fn leaves_out(&self, switch: SwitchId, vlan: VlanId, port: HostId) -> bool {
        let has = |entries: &[BTreeMap<VlanId, Slot>]| entries[switch.index()].contains_key(&vlan);
        self.ports.get(&port).is_some_and(|place| has(&place.planned) && !has(&place.needed))
    }

    /// The entries that a plan has for such addresses and a switch does without: it learns there, or no frame to them comes by.
    pub fn left_out(&self, switch: SwitchId, known: &BTreeMap<Mac, HostId>) -> Entries {
        let of = |(mac, host): (&Mac, &HostId)| {
            let place = self.ports.get(host);
            let planned = place.map(|place| &place.planned[switch.index()]).into_iter().flatten();
            let needed = |vlan: &VlanId| place.is_some_and(|place| place.needed[switch.index()].contains_key(vlan));
            let left = planned.filter(|(vlan, _)| !needed(vlan));
            left.map(|(vlan, slot)| ((*vlan, *mac), *slot)).collect::<Vec<_>>()
        };
        known.iter().flat_map(of).collect()
    }

    /// Whether some switch learns at once that an address has moved from one port to another: one that hears the port's broadcasts and
    /// has no entry of the address in its VLAN.
    pub fn is_seen_at_once(&self, from: HostId, to: HostId) -> bool {
        let (Some(from_place), Some(to_place)) = (self.ports.get(&from), self.ports.get(&to)) else { return false };
        let mut hears = self
            .beyond
            .iter()
            .filter(|((_, vlan, _), hosts)| *vlan == to_place.vlan && hosts.contains(&to) && !hosts.contains(&from));
        hears.any(|((switch, vlan, _), _)| !from_place.needed[switch.index()].contains_key(vlan))
    }

    /// The VLAN that a port sends in.
    pub fn vlan(&self, port: HostId) -> Option<VlanId> {
        self.ports.get(&port).map(|place| place.vlan)
    }
}

fn slot_of(plan: &Plan, port: PortId) -> Slot {
    let switch = plan.topology.port(port).switch;
    Slot::new(port.index() - plan.topology.switch_ports(switch).start)
}

/// At every switch of a VLAN's tree, the port toward a host.
fn toward(plan: &Plan, vlan: VlanId, host: HostId) -> Vec<(SwitchId, Slot)> {
    let topology = &plan.topology;
    let home = topology.switch_of(host);
    let mut found = vec![(home, slot_of(plan, topology.host(host).port))];
    let Some(tree) = plan.trees.iter().find(|tree| tree.vlan == vlan) else { return found };
    let links: BTreeSet<_> = tree.tree.links().iter().copied().collect();
    let (mut reached, mut queue) = (BTreeSet::from([home]), VecDeque::from([home]));
    while let Some(switch) = queue.pop_front() {
        for &channel in topology.channels_from(switch).iter().filter(|channel| links.contains(&channel.link())) {
            let next = topology.head(channel);
            if reached.insert(next) {
                found.push((next, slot_of(plan, topology.head_port(channel))));
                queue.push_back(next);
            }
        }
    }
    found
}

/// Those of the planned entries toward a host that frames come by: on the way from every host that sends in their VLAN.
fn needed(
    plan: &Plan,
    vlan_of: &[VlanId],
    host: HostId,
    planned: &[BTreeMap<VlanId, Slot>],
) -> Vec<BTreeMap<VlanId, Slot>> {
    let topology = &plan.topology;
    let mut needed = vec![BTreeMap::new(); planned.len()];
    for source in topology.host_ids().filter(|source| *source != host) {
        let vlan = vlan_of[source.index()];
        let mut switch = topology.switch_of(source);
        while let Some(slot) = planned[switch.index()].get(&vlan) {
            if needed[switch.index()].insert(vlan, *slot).is_some() {
                break;
            }
            let port = PortId::new(topology.switch_ports(switch).start + slot.index());
            let fabric::Attachment::Link(link) = topology.port(port).attachment else { break };
            let ends = topology.link(link);
            switch = topology.port(if ends.a == port { ends.b } else { ends.a }).switch;
        }
    }
    needed
}
