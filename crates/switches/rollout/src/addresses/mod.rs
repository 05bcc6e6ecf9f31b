//! Addresses that are learned at ports, such as those of virtual machines: where each is, and which entries lead there.
//!
//! ```text
//!   a row that is new, of an address that nobody has   ▶ it is entered, up to the port's bound
//!   a row that is new and says another port            ▶ it moves there
//!   a row that is new and says one of several ports    ▶ their switch has its entry removed, and learns which one
//!   rows of two ports that are both new                ▶ refused: the rows are removed, and who sends next has it
//!   moved 5 times within 180 s                         ▶ a duplicate: its entries stay where they are
//!   no row at its own switch any more, for a while     ▶ its entries go, unless its host has switched over
//!   a row of an address that the plan has elsewhere    ▶ refused, and told
//! ```
//! The entries of an address are those of the port's own address, so what the plan proves of the one holds for the other, whatever mixture
//! of old and new the switches hold while it moves: all entries of a VLAN follow one tree, and in a tree a frame that does not turn
//! back meets no switch twice. The entries are static. A row that a switch has learned counts only where it has no entry.
//!
//! Duplicates: RFC 7432, 15.1 (N = 5 moves within M = 180 s).
//!
//! Nothing is done here. Tell [`Addresses::handle_pvids`] and [`Addresses::handle_tables`] what switches have and have learned, have
//! them hold [`Addresses::entries`], remove the rows of [`Addresses::stale`], and tell [`Addresses::handle_removed`] that they are gone.

mod held;
mod places;
mod record;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use fabric::{HostId, Mac, Plan, SwitchId, Topology, VlanId};
use switch_model::{Entries, Slot, SwitchConfig};

pub use held::{LearnedPlan, in_other_topology};
pub use places::{Evidence, NothingToLearn, Places};
pub use record::{Record, parse_record, write_record};

/// Moves within [`MOVES_WITHIN`] that make an address a duplicate.
pub const MOVES_MAX: usize = 5;
/// See [`MOVES_MAX`]. For so long the entries of a duplicate stay where they are.
pub const MOVES_WITHIN: Duration = Duration::from_secs(180);

/// For how long a switch does without the entry of an address that is behind one of several of its ports.
pub const SEARCH: Duration = Duration::from_secs(5);

/// For how long a row that was removed may still be told: switches tell their tables as they were a while ago.
pub const TABLE_AGE_MAX: Duration = Duration::from_secs(10);

/// A row of a switch's table that is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LearnedRow {
    /// The VLAN.
    pub vlan: VlanId,
    /// The address.
    pub mac: Mac,
    /// The port that it is learned at.
    pub at: Slot,
}

/// What is worth telling a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressNotice {
    /// An address is behind a port; its entries are written.
    Appears(Mac, HostId),
    /// An address has moved; its entries turn.
    Moves {
        /// The address.
        mac: Mac,
        /// The port until now.
        from: HostId,
        /// The port from now on.
        to: HostId,
    },
    /// An address has not been heard for long enough; its entries go.
    Gone(Mac, HostId),
    /// A port has as many addresses as it may have; this one is not entered.
    Full(Mac, HostId),
    /// An address is heard at two ports at the same time; it is not entered, or its entries stay where they are.
    Twice(Mac, BTreeSet<HostId>),
    /// An address has moved too often: its entries stay at the first of these ports, and the second is heard as well.
    Duplicate(Mac, [HostId; 2]),
    /// The plan has this address at the port; it is heard at one of the others, and nothing changes.
    Planned(Mac, HostId, BTreeSet<HostId>),
}

/// An address that is entered.
#[derive(Clone, Debug)]
struct Resident {
    at: HostId,
    /// When it moved, the latest last.
    moves: VecDeque<Duration>,
    missing_since: Option<Duration>,
    /// Until when its entries stay, since it is a duplicate.
    frozen_until: Option<Duration>,
    /// Behind one of which ports it is now, and until when their switches are waited for to learn which.
    search: Option<(BTreeSet<HostId>, Duration)>,
}

/// A learned row, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    at: Slot,
    evidence: Evidence,
}

impl Row {
    /// Whether the address may be behind a port.
    fn allows(&self, port: HostId) -> bool {
        match &self.evidence {
            Evidence::At(host) => *host == port,
            Evidence::Among(hosts) => hosts.contains(&port),
        }
    }
}

/// What tables say of one address.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// Ports that some row names.
    at: BTreeSet<HostId>,
    /// Ports that a row names which was not there before.
    fresh: BTreeSet<HostId>,
    /// Ports of which a row says, which was not there before, that it is one of them.
    among: Vec<BTreeSet<HostId>>,
}

/// Decides where addresses are.
#[derive(Clone, Debug)]
pub struct Addresses {
    places: Places,
    topology: Topology,
    owners: BTreeMap<Mac, HostId>,
    age: Duration,
    residents: BTreeMap<Mac, Resident>,
    /// `rows[switch]`: what each learned row says, as far as it has been taken into account.
    rows: Vec<BTreeMap<(VlanId, Mac), Row>>,
    /// `removed[switch]`: rows that were removed and have been told ever since, and when they were.
    removed: Vec<BTreeMap<(VlanId, Mac), (Row, Duration)>>,
    /// Ports whose hosts send in another VLAN than the plan has for them, where nothing is learned of them.
    away: BTreeSet<HostId>,
    /// Addresses that are heard at two ports and have not been entered.
    contested: BTreeSet<Mac>,
    /// What has been told, and when it was so last; it is told again once it has not been so for [`MOVES_WITHIN`].
    told: BTreeMap<(Mac, HostId), Duration>,
    notices: VecDeque<AddressNotice>,
}

impl Addresses {
    /// The addresses of an earlier run, `known[address]`; those of the plan's own hosts and of ports that learn none are left out. An
    /// address goes once it has been missing from its switch's table for `age`.
    ///
    /// # Errors
    /// [`NothingToLearn`].
    pub fn new(plan: &Plan, known: &BTreeMap<Mac, HostId>, age: Duration) -> Result<Self, NothingToLearn> {
        let (places, topology) = (Places::of(plan)?, plan.topology.clone());
        let owners = topology.all_owners();
        let rows = vec![BTreeMap::new(); topology.switches().len()];
        let removed = vec![BTreeMap::new(); topology.switches().len()];
        let residents = held::fitting(&topology, &places, known);
        let residents = residents.into_iter().map(|(mac, host)| (mac, Resident::at(host))).collect();
        let (away, contested) = (BTreeSet::new(), BTreeSet::new());
        let (told, notices) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { places, topology, owners, age, residents, rows, removed, away, contested, told, notices })
    }

    /// Takes which VLAN each of a switch's ports has frames without a tag in, `pvids[slot]`. While a host has switched over, entries of
    /// every VLAN that it sends in keep its switch from learning, and addresses behind it do not age.
    ///
    /// # Panics
    /// If there are fewer than the switch has ports.
    pub fn handle_pvids(&mut self, switch: SwitchId, pvids: &[Option<VlanId>]) {
        let first = self.topology.switch_ports(switch).start;
        for host in self.topology.hosts_of(switch) {
            let pvid = pvids[self.topology.host(*host).port.index() - first];
            match pvid == self.places.vlan(*host) {
                true => self.away.remove(host),
                false => self.away.insert(*host),
            };
        }
    }

    /// The plan's ports at which addresses are learned.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Where each address is.
    pub fn known(&self) -> BTreeMap<Mac, HostId> {
        self.residents.iter().map(|(mac, resident)| (*mac, resident.at)).collect()
    }

    /// The entries for learned addresses that a switch is to hold; there are to be no others.
    pub fn entries(&self, switch: SwitchId) -> Entries {
        let mut entries = self.places.entries(switch, &self.known());
        for (mac, (hosts, _)) in self.residents.iter().filter_map(|(mac, own)| Some((mac, own.search.as_ref()?))) {
            let here = hosts.iter().filter(|host| self.topology.switch_of(**host) == switch);
            for vlan in here.filter_map(|host| self.places.vlan(*host)) {
                entries.remove(&(vlan, *mac));
            }
        }
        entries
    }

    /// Whether a switch is waited for to learn at which of its ports an address is.
    pub fn is_searching(&self) -> bool {
        self.residents.values().any(|resident| resident.search.is_some())
    }

    /// Learned rows of a switch that say where an address was, or who else has it, each with its port. A switch forgets a row when it
    /// takes an entry in its place, so such an entry, written and removed again, removes the row.
    pub fn stale(&self, switch: SwitchId) -> Entries {
        let is_stale = |(key, row): &(&(VlanId, Mac), &Row)| match self.residents.get(&key.1) {
            Some(resident) => !row.allows(resident.at) && resident.frozen_until.is_none() && resident.search.is_none(),
            None => self.contested.contains(&key.1),
        };
        self.rows[switch.index()].iter().filter(is_stale).map(|(key, row)| (*key, row.at)).collect()
    }

    /// Takes note that these rows were removed. If one is told after it was not, or still is after [`TABLE_AGE_MAX`], somebody has sent
    /// since.
    pub fn handle_removed(&mut self, now: Duration, switch: SwitchId, rows: &Entries) {
        for key in rows.keys() {
            if let Some(row) = self.rows[switch.index()].remove(key) {
                self.removed[switch.index()].insert(*key, (row, now));
            }
        }
    }

    /// Takes the learned rows of every switch, `tables[switch]`, none of one that does not answer; says whether entries change.
    ///
    /// # Panics
    /// If there is not one table a switch.
    pub fn handle_tables(&mut self, now: Duration, tables: &[Option<Vec<LearnedRow>>]) -> bool {
        assert_eq!(tables.len(), self.rows.len(), "a table for every switch");
        let mut heard: BTreeMap<Mac, Heard> = BTreeMap::new();
        for (index, table) in tables.iter().enumerate() {
            let Some(table) = table else { continue };
            let switch = SwitchId::new(index);
            let row = |row: &LearnedRow| {
                let evidence = self.places.evidence(switch, row.vlan, row.at)?;
                Some(((row.vlan, row.mac), Row { at: row.at, evidence }))
            };
            let is_station = |row: &&LearnedRow| !row.mac.is_multicast() && !row.mac.is_zero();
            let mut rows: BTreeMap<(VlanId, Mac), Row> = table.iter().filter(is_station).filter_map(row).collect();
            let still = |key: &(VlanId, Mac), (row, at): &mut (Row, Duration)| {
                rows.get(key) == Some(row) && now.saturating_sub(*at) < TABLE_AGE_MAX
            };
            self.removed[index].retain(still);
            rows.retain(|key, _| !self.removed[index].contains_key(key));
            for (key, row) in rows.iter().filter(|(key, row)| self.rows[index].get(*key) != Some(*row)) {
                let heard = heard.entry(key.1).or_default();
                match &row.evidence {
                    Evidence::At(host) => _ = heard.fresh.insert(*host),
                    Evidence::Among(hosts) => heard.among.push(hosts.clone()),
                }
            }
            self.rows[index] = rows;
        }
        for ((_, mac), row) in self.rows.iter().flatten() {
            let heard = heard.entry(*mac).or_default();
            if let Evidence::At(host) = row.evidence {
                heard.at.insert(host);
            }
        }
        self.told.retain(|(mac, host), last| {
            if heard.get(mac).is_some_and(|heard| heard.at.contains(host)) {
                *last = now;
            }
            now.saturating_sub(*last) < MOVES_WITHIN
        });
        self.contested.retain(|mac| heard.contains_key(mac));
        let before = self.known();
        self.age(now, tables);
        for (mac, heard) in &heard {
            if let Some(owner) = self.owners.get(mac).copied() {
                self.refuse_planned(now, *mac, owner, heard);
            } else if self.residents.contains_key(mac) {
                self.follow(now, *mac, heard);
            } else {
                // A row that is new says where it is now. Of rows that were contested, only those count.
                let is_new = heard.fresh.len() == 1 || self.contested.contains(mac);
                let hosts = if is_new { &heard.fresh } else { &heard.at };
                self.admit(now, *mac, hosts);
            }
        }
        before != self.known()
    }

    /// The next thing worth telling a person.
    pub fn poll_notice(&mut self) -> Option<AddressNotice> {
        self.notices.pop_front()
    }

    /// Lets addresses go that no table has at their port any more. A row that says one of several ports keeps none: the switch of the
    /// port itself says which.
    fn age(&mut self, now: Duration, tables: &[Option<Vec<LearnedRow>>]) {
        let mut gone = Vec::new();
        let heard: BTreeSet<(Mac, HostId)> = (self.rows.iter().flatten())
            .filter_map(|((_, mac), row)| {
                let at = self.residents.get(mac)?.at;
                (row.evidence == Evidence::At(at)).then_some((*mac, at))
            })
            .collect();
        for (mac, resident) in &mut self.residents {
            resident.search = resident.search.take().filter(|(_, until)| now < *until);
            if heard.contains(&(*mac, resident.at)) || self.away.contains(&resident.at) {
                resident.missing_since = None;
            } else if tables[self.topology.switch_of(resident.at).index()].is_some() {
                let since = *resident.missing_since.get_or_insert(now);
                if now.saturating_sub(since) >= self.age {
                    gone.push((*mac, resident.at));
                }
            }
        }
        for (mac, at) in gone {
            self.residents.remove(&mac);
            self.notices.push_back(AddressNotice::Gone(mac, at));
        }
    }

    fn refuse_planned(&mut self, now: Duration, mac: Mac, owner: HostId, heard: &Heard) {
        let single = heard.at.iter().map(|host| BTreeSet::from([*host]));
        for hosts in single.chain(heard.among.iter().cloned()) {
            let is_elsewhere = hosts.iter().all(|host| !self.topology.are_of_one_machine(*host, owner));
            let Some(first) = hosts.first().copied().filter(|_| is_elsewhere) else { continue };
            if self.told.insert((mac, first), now).is_none() {
                self.notices.push_back(AddressNotice::Planned(mac, owner, hosts));
            }
        }
    }

    /// An address that is not entered, heard at these ports.
    fn admit(&mut self, now: Duration, mac: Mac, hosts: &BTreeSet<HostId>) {
        let Some(host) = hosts.first().copied() else { return };
        if hosts.len() > 1 {
            self.contested.insert(mac);
            self.tell_twice(now, mac, hosts);
        } else if self.has_room(host) {
            self.contested.remove(&mac);
            self.residents.insert(mac, Resident::at(host));
            self.notices.push_back(AddressNotice::Appears(mac, host));
        } else if self.told.insert((mac, host), now).is_none() {
            self.notices.push_back(AddressNotice::Full(mac, host));
        }
    }

    /// An address that is entered.
    fn follow(&mut self, now: Duration, mac: Mac, heard: &Heard) {
        let Some(resident) = self.residents.get_mut(&mac) else { return };
        resident.moves.retain(|at| now.saturating_sub(*at) < MOVES_WITHIN);
        resident.frozen_until = resident.frozen_until.filter(|until| now < *until);
        if resident.frozen_until.is_some() {
            return;
        }
        let (from, fresh) = (resident.at, &heard.fresh);
        let Some(to) = fresh.iter().copied().find(|host| *host != from) else {
            if let Some(hosts) = heard.among.iter().find(|hosts| !hosts.contains(&from)) {
                resident.search = Some((hosts.clone(), now + SEARCH));
            }
            return;
        };
        resident.search = None;
        let is_twice = fresh.len() > 1;
        if resident.moves.len() + 1 >= MOVES_MAX {
            resident.frozen_until = Some(now + MOVES_WITHIN);
            self.notices.push_back(AddressNotice::Duplicate(mac, [from, to]));
        } else if is_twice {
            resident.moves.push_back(now);
            self.tell_twice(now, mac, fresh);
        } else if self.has_room(to) {
            if let Some(resident) = self.residents.get_mut(&mac) {
                resident.moves.push_back(now);
                (resident.at, resident.missing_since) = (to, None);
            }
            self.notices.push_back(AddressNotice::Moves { mac, from, to });
        } else if self.told.insert((mac, to), now).is_none() {
            self.notices.push_back(AddressNotice::Full(mac, to));
        }
    }

    fn tell_twice(&mut self, now: Duration, mac: Mac, hosts: &BTreeSet<HostId>) {
        let before = self.told.len();
        self.told.extend(hosts.iter().map(|host| ((mac, *host), now)));
        let is_new = self.told.len() > before;
        if is_new {
            self.notices.push_back(AddressNotice::Twice(mac, hosts.clone()));
        }
    }

    fn has_room(&self, port: HostId) -> bool {
        self.residents.values().filter(|resident| resident.at == port).count() < self.places.most(port)
    }
}

impl Resident {
    fn at(host: HostId) -> Self {
        Self { at: host, moves: VecDeque::new(), missing_since: None, frozen_until: None, search: None }
    }
}

/// The plan with as many learned addresses at each port as it may have, whatever they are. The judge's verdict on it holds for any
/// addresses: their entries are these, or some of them.
#[must_use]
pub fn with_most(plan: &Plan) -> Plan {
    let topology = &plan.topology;
    let owners = topology.all_owners();
    let mut free = (0..).map(Mac::local).filter(|mac| !owners.contains_key(mac));
    let ports = topology.learning_hosts().flat_map(|host| vec![host; topology.host(host).learned_max.unwrap_or(0)]);
    let most = ports.map(|host| (free.next().expect("there are more addresses than ports have"), host)).collect();
    with_learned(plan, &most)
}

/// The plan with addresses that were learned: their ports have them as further addresses. `check` judges it as any other.
#[must_use]
pub fn with_learned(plan: &Plan, known: &BTreeMap<Mac, HostId>) -> Plan {
    let mut plan = plan.clone();
    plan.topology = plan.topology.with_learned(known);
    let entries = || plan.devices.iter().map(|device| device.fdb_len(&plan.topology));
    let (most, total) = (entries().max().unwrap_or(0), entries().sum());
    (plan.summary.fdb_entries_max, plan.summary.fdb_entries_total) = (most, total);
    if let Some(failover) = &mut plan.failover {
        // Entries of VLANs that carry frames only after a failure, as the plan counts them.
        let used: BTreeSet<VlanId> = plan.topology.host_ids().map(|host| plan.assignment.broadcast(host)).collect();
        let extra = |device: &fabric::DeviceIntent| -> usize {
            let runs = device.fdb.iter().filter(|run| !used.contains(&run.vlan));
            runs.map(|run| run.len(&plan.topology)).sum()
        };
        failover.summary.fdb_entries_extra = plan.devices.iter().map(extra).sum();
    }
    plan
}

/// Completes what switches hold, `configs[switch]`, by the entries that [`with_learned`] asks for and switches do without: a switch learns there,
/// or no frame to the address comes by. What is missing then differs from what [`Addresses`] has written.
pub fn complete(plan: &Plan, known: &BTreeMap<Mac, HostId>, configs: &mut [Option<SwitchConfig>]) {
    let Ok(places) = Places::of(plan) else { return };
    for (switch, config) in plan.topology.switch_ids().zip(configs) {
        let Some(config) = config else { continue };
        for (key, slot) in places.left_out(switch, known) {
            config.entries.entry(key).or_insert(slot);
        }
    }
}
