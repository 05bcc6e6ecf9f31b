//! Failover bonds: which port of each the entries of its addresses lead to.
//!
//! ```text
//!   login1/eth0 up              ▶ the planned port
//!   login1/eth0 down, eth1 up   ▶ eth1, as the plan has it stored
//!   login1/eth0 up again        ▶ the planned port at once: the bond has it as its primary
//! ```
//! A plan treats a standby port as a host: entries toward it are worked out, and proven, as those toward the active port are.
//! A change of ports turns entries from one set to the other, and touches nothing else. Whatever mixture of the two switches hold
//! meanwhile, a frame either goes on toward one of the two ports or is dropped where it would turn back, since in a tree the way
//! from any switch to either port is the same from wherever the frame comes; and it waits only where one of the two waits. No frame
//! meets a switch without an entry for it, and floods: a switch on the way to any port of a bond holds one the whole time.
//!
//! Nothing is done here. Tell [`Bonds::handle_ports`] what became of the ports; [`Bonds::entries`] says what switches are to hold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{FdbEntry, HostId, LinkId, Mac, Plan, SwitchId, Topology};
use switch_model::{Entries, Slot, SwitchConfig};

use crate::standby::LinkHealth;

/// What is worth telling a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondNotice {
    /// The entries of a bond lead from one port to another now.
    Moves {
        /// The port until now.
        from: HostId,
        /// The port from now on.
        to: HostId,
    },
    /// The active port of a bond is down, and no other is up.
    Down(HostId),
}

/// Decides which port of each bond is active.
#[derive(Clone, Debug)]
pub struct Bonds {
    /// By planned port: the port that is active now.
    active: BTreeMap<HostId, HostId>,
    topology: Topology,
    /// Cablings with other ports active, in which every port of every bond is active once.
    others: Vec<Topology>,
    down: BTreeSet<HostId>,
    notices: VecDeque<BondNotice>,
}

impl Bonds {
    /// The bonds of a plan, each with its planned port.
    pub fn new(plan: &Plan) -> Self {
        let topology = plan.topology.clone();
        let planned = topology.host_ids().filter(|host| topology.standby_ports(*host).next().is_some());
        let active: BTreeMap<HostId, HostId> = planned.map(|host| (host, host)).collect();
        let others = other_ways(&topology);
        Self { active, topology, others, down: BTreeSet::new(), notices: VecDeque::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The plan's cabling with the ports that are active now.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The entries for the addresses of bonds that a switch is to hold now: those of the plan with the ports that are active, and
    /// where the switch is on the way only to others, entries toward those. So a change of ports turns entries, and neither makes
    /// nor removes any. A table without room for the latter does without them.
    pub fn entries(&self, plan: &Plan, switch: SwitchId) -> Entries {
        let mut entries = bond_entries(plan, &self.topology, switch);
        let further = further_entries(plan, &self.others, switch, &entries);
        let held = plan.devices[switch.index()].fdb_len(&self.topology);
        if held + further.len() <= plan.topology.switch(switch).model.static_entries_max {
            entries.extend(further);
        }
        entries
    }

    /// Takes what is known of every host's port, `ports[host]`; says whether some bond changed to another port.
    pub fn handle_ports(&mut self, ports: &[LinkHealth]) -> bool {
        let health = |port: HostId| ports[port.index()];
        let mut moved = false;
        for (&planned, active) in &mut self.active {
            let own = self.topology.machine(self.topology.host(planned).machine).hosts();
            let wanted = match health(*active) {
                // The host leaves its primary port only while that is down.
                _ if health(planned) == LinkHealth::Up => Some(planned),
                LinkHealth::Down => own.into_iter().find(|port| health(*port) == LinkHealth::Up),
                LinkHealth::Up | LinkHealth::Unknown => Some(*active),
            };
            match wanted {
                Some(port) => {
                    self.down.remove(&planned);
                    if port != *active {
                        self.notices.push_back(BondNotice::Moves { from: *active, to: port });
                        self.topology = self.topology.with_active(port);
                        (*active, moved) = (port, true);
                    }
                }
                None if self.down.insert(planned) => self.notices.push_back(BondNotice::Down(*active)),
                None => {}
            }
        }
        moved
    }

    /// The next thing worth telling a person.
    pub fn poll_notice(&mut self) -> Option<BondNotice> {
        self.notices.pop_front()
    }
}

/// What is known of every host's port, by its switch: `running[switch][slot]`, none for a switch that does not answer, and
/// `links[link]`. A switch whose links are all down leads nowhere, whatever it says of its hosts.
///
/// # Panics
/// If a switch says something of fewer ports than it has.
pub fn port_health(topology: &Topology, running: &[Option<Vec<bool>>], links: &[LinkHealth]) -> Vec<LinkHealth> {
    let is_cut_off = |switch: SwitchId| {
        let own: Vec<LinkId> = topology.channels_from(switch).iter().map(|channel| channel.link()).collect();
        !own.is_empty() && own.iter().all(|link| links[link.index()] == LinkHealth::Down)
    };
    let cut_off: Vec<bool> = topology.switch_ids().map(is_cut_off).collect();
    let of = |host: HostId| {
        let switch = topology.switch_of(host);
        let slot = topology.host(host).port.index() - topology.switch_ports(switch).start;
        match &running[switch.index()] {
            _ if cut_off[switch.index()] => LinkHealth::Down,
            None => LinkHealth::Unknown,
            Some(ports) if ports[slot] => LinkHealth::Up,
            Some(_) => LinkHealth::Down,
        }
    };
    topology.host_ids().map(of).collect()
}

/// The entries for the addresses of bonds that a switch is to hold while these ports are active.
pub fn bond_entries(plan: &Plan, active: &Topology, switch: SwitchId) -> Entries {
    let (addresses, own) = (bond_addresses(active), active.switch_ports(switch));
    if addresses.is_empty() {
        return Entries::new();
    }
    let entries = plan.devices[switch.index()].fdb_entries(active);
    let of_bonds = entries.filter(|entry| addresses.contains(&entry.mac) && own.contains(&entry.port.index()));
    of_bonds.map(|FdbEntry { vlan, mac, port }| ((vlan, mac), Slot::new(port.index() - own.start))).collect()
}

/// The addresses of bonds, whichever of their ports is active.
pub fn bond_addresses(topology: &Topology) -> BTreeSet<Mac> {
    let is_bonds = |(_, host): &(Mac, HostId)| topology.is_in_bond(topology.host(*host));
    topology.hosts_by_mac().into_iter().filter(is_bonds).map(|(mac, _)| mac).collect()
}

/// Cablings with other ports active than planned, in which together every standby port is active once.
fn other_ways(planned: &Topology) -> Vec<Topology> {
    let mut ways: Vec<Topology> = Vec::new();
    for host in planned.host_ids() {
        for (nth, port) in planned.standby_ports(host).enumerate() {
            match ways.get_mut(nth) {
                Some(way) => *way = way.with_active(port),
                None => ways.push(planned.with_active(port)),
            }
        }
    }
    ways
}

/// The entries of a switch toward ports of bonds where it is on the way to them and not to the active one, whose entries are
/// `entries`.
fn further_entries(plan: &Plan, others: &[Topology], switch: SwitchId, entries: &Entries) -> Entries {
    let ways = [&plan.topology].into_iter().chain(others);
    let mut further = Entries::new();
    for (entry, slot) in ways.flat_map(|active| bond_entries(plan, active, switch)) {
        if !entries.contains_key(&entry) {
            further.entry(entry).or_insert(slot);
        }
    }
    further
}

/// The plan's cabling with the ports active that most switches' entries lead to, `configs[switch]`: what a standby has changed is
/// no difference from the plan, and entries that it keeps toward ports that are not active are taken out of `configs`.
pub fn take_bonds(plan: &Plan, configs: &mut [Option<SwitchConfig>]) -> Topology {
    let active = as_held(plan, configs);
    let others = other_ways(&plan.topology);
    for (switch, config) in plan.topology.switch_ids().zip(configs) {
        let Some(config) = config.as_mut().filter(|_| !others.is_empty()) else { continue };
        let further = further_entries(plan, &others, switch, &bond_entries(plan, &active, switch));
        config.entries.retain(|entry, slot| further.get(entry) != Some(slot));
    }
    active
}

/// The plan's cabling with the ports active that leave the fewest entries leading elsewhere. A bond keeps its planned port where no
/// other leaves fewer.
fn as_held(plan: &Plan, configs: &[Option<SwitchConfig>]) -> Topology {
    let mut held = plan.topology.clone();
    for planned in plan.topology.host_ids() {
        for port in plan.topology.standby_ports(planned) {
            let other = held.with_active(port);
            let astray = |active: &Topology| -> usize {
                let of = |(switch, config): (SwitchId, &Option<SwitchConfig>)| {
                    let Some(config) = config else { return 0 };
                    let wanted = bond_entries(plan, active, switch);
                    wanted.into_iter().filter(|(entry, slot)| config.entries.get(entry) != Some(slot)).count()
                };
                plan.topology.switch_ids().zip(configs).map(of).sum()
            };
            if astray(&other) < astray(&held) {
                held = other;
            }
        }
    }
    held
}
