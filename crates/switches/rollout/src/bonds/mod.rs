//! Failover bonds: which port of each the entries of its addresses lead to.
//!
//! ```text
//!   login1/eth0 up                              ▶ the planned port
//!   login1/eth0 down, eth1 up                   ▶ eth1, as the plan has it stored
//!   login1/eth0 comes up                        ▶ the planned port at once: the bond has it as its primary, and announces itself there
//!   both up, the bond sends from the other one  ▶ that one: see `sender`
//! ```
//! A plan treats a standby port as a host: entries toward it are worked out, and proven, as those toward the active port are.
//! A change of ports turns entries from one set to the other, and touches nothing else. Whatever mixture of the two switches hold
//! meanwhile, a frame either goes on toward one of the two ports or is dropped where it would turn back, since in a tree the way
//! from any switch to either port is the same from wherever the frame comes; and it waits only where one of the two waits. No frame
//! meets a switch without an entry for it, and floods: a switch on the way to any port of a bond holds one the whole time.
//!
//! Nothing is done here. Tell [`Bonds::handle_reading`] what came at ports and [`Bonds::handle_ports`] what became of them;
//! [`Bonds::entries`] says what switches are to hold.

mod sender;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use fabric::{FdbEntry, HostId, LinkId, Mac, Plan, SwitchId, Topology};
use switch_model::{Entries, Slot, SwitchConfig};

use self::sender::{PortTraffic, Stay, left_for, never_came_at, searches_at};
use crate::standby::LinkHealth;

pub use self::sender::{ANNOUNCED_MAX, CAUTIOUS_SILENCE_MAX, Reading, SILENCE_MAX, SILENCE_MIN};

/// How often in a row frames turn a bond's entries before more caution is called for each time, and for how long they must not have
/// turned them for that to be forgotten.
pub const TURNS_MAX: u32 = 3;
/// See [`TURNS_MAX`].
pub const CALM: Duration = Duration::from_secs(300);
/// The most caution: how many times as long as usual the active port must have been silent.
pub const CAUTION_MAX: u32 = 64;

/// What is worth telling a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondNotice {
    /// The entries of a bond lead from one port to another now, since the one went down or the other came up.
    Moves {
        /// The port until now.
        from: HostId,
        /// The port from now on.
        to: HostId,
    },
    /// They do since the bond sends from the other one, though the one is up.
    Sends {
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
    /// By planned port.
    bonds: BTreeMap<HostId, Bond>,
    /// What came at each port of a bond.
    traffic: BTreeMap<HostId, PortTraffic>,
    topology: Topology,
    /// Cablings with other ports active, in which every port of every bond is active once.
    others: Vec<Topology>,
    notices: VecDeque<BondNotice>,
}

/// What is known of a bond.
#[derive(Clone, Copy, Debug)]
struct Bond {
    /// The port that is active now, and since when.
    active: HostId,
    since: Duration,
    /// Whether the states of ports alone say that it is there.
    is_presumed: bool,
    /// The port that it may have stayed at, if entries went back to the planned port since that came up, where it announces itself.
    stayed: Option<HostId>,
    /// Whether it has an IPv4 address, and so announces itself by a broadcast.
    announces: bool,
    /// Whether the planned port was down when something was known of it last.
    planned_is_down: bool,
    /// Whether no port is up.
    is_down: bool,
    /// How often in a row frames have turned its entries, and when they did last.
    turns: u32,
    turned: Duration,
    /// How often entries have searched for it since it last sent anything but requests.
    searches: u32,
}

impl Bond {
    fn new(active: HostId, announces: bool) -> Self {
        let (since, turned) = (Duration::ZERO, Duration::ZERO);
        Self {
            active,
            since,
            is_presumed: false,
            stayed: None,
            announces,
            planned_is_down: false,
            is_down: false,
            turns: 0,
            turned,
            searches: 0,
        }
    }

    /// How many times as long as usual the active port must be silent before frames turn entries: a bond that sends from several
    /// ports, or another station behind one of them, does not have them turned without end.
    fn caution(&self, now: Duration) -> u32 {
        if now >= self.turned + CALM {
            return 1;
        }
        1_u32.checked_shl(self.turns.saturating_sub(TURNS_MAX)).unwrap_or(CAUTION_MAX).min(CAUTION_MAX)
    }

    /// The port that frames say it uses, of the active one and of `others`, which are up, if that is another one; and since when.
    fn by_frames(
        &mut self,
        traffic: &BTreeMap<HostId, PortTraffic>,
        others: &[HostId],
        now: Duration,
    ) -> Option<(HostId, Duration)> {
        let (active, since) = (&traffic[&self.active], self.since);
        if active.has_spoken(since) {
            self.searches = 0;
        }
        let (caution, searches) = (self.caution(now), self.searches);
        let stay = Stay { since, is_presumed: self.is_presumed, caution, searches };
        let latest = |at: fn(&PortTraffic, &PortTraffic, Stay) -> Option<Duration>| {
            others.iter().filter_map(|port| Some((at(active, &traffic[port], stay)?, *port))).max()
        };
        let stayed = || Some((never_came_at(active, stay)?, self.stayed.filter(|port| others.contains(port))?));
        let found = latest(left_for).or_else(stayed);
        let (since, port) = match found {
            Some(found) => {
                self.note_turn(now);
                found
            }
            None => {
                let searched = latest(searches_at)?;
                self.searches += 1;
                searched
            }
        };
        Some((port, since))
    }

    fn note_turn(&mut self, now: Duration) {
        self.turns = if now >= self.turned + CALM { 1 } else { self.turns.saturating_add(1) };
        self.turned = now;
    }
}

impl Bonds {
    /// The bonds of a plan, each with its planned port.
    pub fn new(plan: &Plan) -> Self {
        Self::at(plan, plan.topology.clone())
    }

    /// The bonds of a plan, each with the port that most entries lead to of those that switches hold, `held[switch]`. Cost: one look at
    /// the plan's entries for each port of a bond.
    pub fn held(plan: &Plan, held: &[Entries]) -> Self {
        let held: Vec<Option<&Entries>> = held.iter().map(Some).collect();
        Self::at(plan, as_held(plan, &held))
    }

    fn at(plan: &Plan, topology: Topology) -> Self {
        let planned = &plan.topology;
        let is_bond = |host: &HostId| planned.standby_ports(*host).next().is_some();
        let has_ipv4 = |host: &HostId| plan.addresses[host.index()].is_ipv4();
        let bonds: BTreeMap<HostId, Bond> = (planned.host_ids().filter(is_bond))
            .map(|host| (host, Bond::new(topology.active_port(host), has_ipv4(&host))))
            .collect();
        let ports = bonds.keys().flat_map(|host| planned.machine(planned.host(*host).machine).hosts());
        let traffic = ports.map(|port| (port, PortTraffic::default())).collect();
        Self { bonds, traffic, others: other_ways(planned), topology, notices: VecDeque::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bonds.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty()
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

    /// Takes what a switch has counted at a port of a bond; other ports say nothing.
    pub fn handle_reading(&mut self, port: HostId, reading: Reading) {
        if let Some(traffic) = self.traffic.get_mut(&port) {
            traffic.handle_reading(reading);
        }
    }

    /// Takes what is known of every host's port at `now`, `ports[host]`; says whether some bond changed to another port.
    pub fn handle_ports(&mut self, now: Duration, ports: &[LinkHealth]) -> bool {
        let is_up = |port: &HostId| ports[port.index()] == LinkHealth::Up;
        let mut moved = false;
        for (&planned, bond) in &mut self.bonds {
            let own = || self.topology.machine(self.topology.host(planned).machine).hosts();
            let was_down = bond.planned_is_down;
            match ports[planned.index()] {
                LinkHealth::Up => bond.planned_is_down = false,
                LinkHealth::Down => bond.planned_is_down = true,
                LinkHealth::Unknown => {}
            }
            let from = bond.active;
            let by_state = match ports[from.index()] {
                // The host goes back to its primary port as soon as that works.
                _ if was_down && is_up(&planned) => Some(planned),
                LinkHealth::Down => std::iter::once(planned).chain(own()).find(is_up),
                LinkHealth::Up | LinkHealth::Unknown => Some(from),
            };
            let Some(to) = by_state else {
                if !std::mem::replace(&mut bond.is_down, true) {
                    self.notices.push_back(BondNotice::Down(from));
                }
                continue;
            };
            bond.is_down = false;
            let (to, since, notice) = if to == from {
                let others: Vec<HostId> = own().filter(|port| is_up(&from) && *port != from && is_up(port)).collect();
                let Some((to, since)) = bond.by_frames(&self.traffic, &others, now) else { continue };
                (to, since, BondNotice::Sends { from, to })
            } else {
                (to, now, BondNotice::Moves { from, to })
            };
            self.notices.push_back(notice);
            let by_state = matches!(notice, BondNotice::Moves { .. });
            bond.stayed = Some(from).filter(|from| bond.announces && by_state && to == planned && is_up(from));
            bond.is_presumed = by_state;
            (bond.active, bond.since, moved) = (to, since, true);
            self.topology = self.topology.with_active(to);
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
    let active = {
        let held: Vec<Option<&Entries>> = configs.iter().map(|config| Some(&config.as_ref()?.entries)).collect();
        as_held(plan, &held)
    };
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
fn as_held(plan: &Plan, entries: &[Option<&Entries>]) -> Topology {
    let mut held = plan.topology.clone();
    for planned in plan.topology.host_ids() {
        for port in plan.topology.standby_ports(planned) {
            let other = held.with_active(port);
            let astray = |active: &Topology| -> usize {
                let of = |(switch, held): (SwitchId, &Option<&Entries>)| {
                    let Some(held) = held else { return 0 };
                    let wanted = bond_entries(plan, active, switch);
                    wanted.into_iter().filter(|(entry, slot)| held.get(entry) != Some(slot)).count()
                };
                plan.topology.switch_ids().zip(entries).map(of).sum()
            };
            if astray(&other) < astray(&held) {
                held = other;
            }
        }
    }
    held
}
