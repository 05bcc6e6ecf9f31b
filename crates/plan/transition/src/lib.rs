//! From one plan to the next on a live fabric: fill, flip, free.
//!
//! ```text
//!   isolate   ports whose cable is gone or leads elsewhere lose all VLANs: should it come back, it closes no cycle
//!   ready     hosts that tag accept frames in the VLANs of both plans, and send in their assigned VLANs alone
//!   fill      VLANs and entries that are missing are added; nobody sends there yet
//!   redirect  entries that led to what broke are turned to where the mended tree leads
//!   flip      hosts change their VLAN: PVIDs, or the hosts' own tables
//!   free      VLANs and entries that nobody needs any more are removed
//!   settle    hosts that tag send and accept as the next plan says, over several paths where it has them
//! ```
//! The parts of a step may be taken in any order, and after each of them no frame between hosts that stay loops, floods
//! or strays, and no pair that got through before is cut off. That rests on two facts.
//!
//! *A VLAN changes in place only if its old links that are left and its new links together close no cycle.* Then whatever
//! mixture of the two the switches hold is a forest, in which a frame that never turns back never returns. In a forest
//! two switches have one way between them, so where a pair's old way is whole, the new one is the same: entries are
//! turned only where they led to a break. Nor may a port that led to the break carry the VLAN somewhere else: entries
//! through it would lead astray. Any other change gives the VLAN a new id: if the next plan did not, the tree
//! travels under a spare id until its own is free.
//!
//! *Entries are complete before frames need them.* Old entries know every host wherever the old VLANs take it, and stay
//! until nobody sends by the old plan; new ones are all there before any of them is reached. So at every switch on any
//! mixed way there is an entry. Of the VLANs that hosts may spread frames over, only the assigned ones take part in this: hosts use
//! the others before the first switch changes and after the last one, by one plan or the other.
//!
//! Where tables are too small for both plans at once, VLANs move in several rounds of fill, flip and free. Where full buffers
//! wait, frames of both plans might wait for each other for ever (`deadlock.rs`); hosts flip in turns if that helps (`turn.rs`).

#![forbid(unsafe_code)]

mod deadlock;
mod difference;
mod stage;
mod step;
mod table;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    Admin, DeviceIntent, FdbEntry, FdbMode, FdbRun, FloodSet, FlowControlMode, HostId, HostTable, LinkId, Plan, PortId,
    PortIntent, Relation, StormLimit, SwitchId, Topology, VlanId, VlanSet, is_forest,
};
use thiserror::Error;

pub use self::deadlock::{Deadlock, Frames};
pub use self::difference::{
    Difference, EntryCounts, PortDifference, Presence, SettingDifference, SwitchDifference, difference,
};
use self::{deadlock::Waits, stage::Stage, step::Obstacle};

/// What switches and hosts hold at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricState {
    /// `devices[switch]`.
    pub devices: Vec<DeviceIntent>,
    /// `tables[host]`: what hosts put on their frames and accept; none if the switches tag.
    pub tables: Option<Vec<HostTable>>,
}

impl FabricState {
    /// What a port is set to.
    fn port(&self, topology: &Topology, port: PortId) -> &PortIntent {
        let device = &self.devices[topology.port(port).switch.index()];
        let at = device.ports.binary_search_by_key(&port, |intent| intent.port).expect("state for every port");
        &device.ports[at]
    }

    fn port_mut(&mut self, topology: &Topology, port: PortId) -> &mut PortIntent {
        let device = &mut self.devices[topology.port(port).switch.index()];
        let at = device.ports.binary_search_by_key(&port, |intent| intent.port).expect("state for every port");
        &mut device.ports[at]
    }
}

/// The way from one plan to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The cabling that is there now, with the old ports that the next plan's topology no longer names. Its switches,
    /// links and hosts have the same numbers as there; ports have their own.
    pub topology: Topology,
    /// What the previous plan left on it; new switches are blank.
    pub start: FabricState,
    /// What the next plan wants.
    pub goal: FabricState,
    /// Hosts with the same name, address and port in both plans, ascending: those that nothing may disturb.
    pub settled: Vec<HostId>,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// Whether frames can wait for each other for ever on the way.
    pub deadlock: Deadlock,
}

/// Changes that may be made in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What they are for.
    pub kind: StepKind,
    /// The round, from 1: small tables need several.
    pub round: usize,
    /// Each device's share.
    pub parts: Vec<Part>,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// Takes ports out of service whose cable is gone or leads elsewhere.
    Isolate,
    /// Has hosts that tag accept the VLANs of the whole way, and send in assigned VLANs alone.
    Ready,
    /// Adds VLANs and entries.
    Fill,
    /// Turns entries that led to what broke.
    Redirect,
    /// Moves hosts to their new VLANs.
    Flip,
    /// Removes VLANs and entries that nobody needs.
    Free,
    /// Has hosts that tag send and accept what the next plan says.
    Settle,
}

impl StepKind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Isolate => "isolate",
            Self::Ready => "ready",
            Self::Fill => "fill",
            Self::Redirect => "redirect",
            Self::Flip => "flip",
            Self::Free => "free",
            Self::Settle => "settle",
        }
    }
}

/// One device's share of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A switch's.
    Switch(SwitchChange),
    /// A host's: its whole table from now on.
    Host(HostId, HostTable),
}

/// What changes on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchChange {
    /// Which switch.
    pub switch: SwitchId,
    /// Changes of ports, ascending by port.
    pub ports: Vec<PortChange>,
    /// Entries to add or to turn, ascending.
    pub set: Vec<FdbRun>,
    /// Entries to remove, ascending.
    pub unset: Vec<FdbRun>,
    /// Entries to remove for addresses that no host has any more, or that another host has now, ascending. They go before
    /// those of `set` come.
    pub foreign_unset: Vec<FdbEntry>,
    /// `classes[class]`: the priority class of each VLAN from now on, if that changes.
    pub classes: Option<Vec<VlanSet>>,
}

/// What changes on one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// Which port.
    pub port: PortId,
    /// In service or not, from now on.
    pub admin: Admin,
    /// Its flow control from now on.
    pub flow_control: FlowControlMode,
    /// Its MTU from now on, in bytes.
    pub mtu_bytes: u16,
    /// Floods that do not leave by it from now on.
    pub blocked: FloodSet,
    /// The most that it admits of each kind of flood from now on.
    pub storm_limit: Option<StormLimit>,
    /// The LAG that it is a member of from now on.
    pub lag: Option<PortId>,
    /// Its PVID from now on.
    pub pvid: Option<VlanId>,
    /// The priority class of untagged frames from now on. It changes with the PVID.
    pub untagged_class: u8,
    /// VLANs that it joins, with a tag.
    pub join_tagged: VlanSet,
    /// VLANs that it joins, without one.
    pub join_untagged: VlanSet,
    /// VLANs that it leaves.
    pub leave: VlanSet,
}

/// Why a live change is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// Hosts and switches cannot change who tags while frames flow.
    #[error(
        "the plans differ in who tags frames ({before} and {after} tagging): no hitless change can do that; take the fabric down in between"
    )]
    TaggingDiffers {
        /// The previous plan's tagging.
        before: fabric::Tagging,
        /// The next plan's.
        after: fabric::Tagging,
    },
    /// Switches that learn would flood on the way.
    #[error(
        "switches learn in one of the plans, and no order of steps is proven to keep them from flooding on the way; take the fabric down in between, or plan both with --fdb minimal"
    )]
    SwitchesLearn,
    /// Trees that travel under a spare id have none.
    #[error(
        "{need} VLANs become other trees under the same id, which takes as many spare ids on the way, but the range has {spare}; widen --vlans and plan again"
    )]
    NoSpareVlans {
        /// Spare ids needed.
        need: usize,
        /// Spare ids there are.
        spare: usize,
    },
    /// A switch's tables cannot hold even one more VLAN while the old ones are in use.
    #[error(
        "switch {switch} holds {limit} {what}, but no order of changes gets by with fewer than {need} on the way; take the fabric down in between, or plan for fewer VLANs"
    )]
    NoRoom {
        /// The switch.
        switch: String,
        /// Of what.
        what: &'static str,
        /// How many are needed.
        need: usize,
        /// How many fit.
        limit: usize,
    },
}

/// Orders the way from a previous plan to the next into steps.
/// Cost: O(entries + VLANs · ports) a round, and O(hosts²) if hosts tag.
///
/// # Errors
/// [`StepError`], naming what stands in the way.
pub fn steps(previous: &Plan, next: &Plan) -> Result<Transition, StepError> {
    if [previous, next].iter().any(|plan| plan.policy.fdb == FdbMode::Learned) {
        return Err(StepError::SwitchesLearn);
    }
    let Stage { topology, before, after, relation } = Stage::set(previous, next);
    if before.tables.is_some() != after.tables.is_some() {
        let (before, after) = (previous.policy.tagging, next.policy.tagging);
        return Err(StepError::TaggingDiffers { before, after });
    }
    let settled = relation.settled(&previous.topology, &topology);
    let moved = moved_ports(&previous.topology, &topology, &relation);
    let order = |frames: Option<Frames>| -> Result<Vec<Step>, Obstacle> {
        let waits = frames.and_then(|frames| Waits::between(previous, next, &topology, frames));
        let mut way = step::StepSequence::new(&topology, waits.as_ref(), before.clone());
        way.isolate(&moved, &after);
        let misled = misled(way.now(), &after, &moved, &settled);
        let travelling = spare_ids(&topology, way.now(), &after, &misled, next)?;
        // Hosts that tag know the trees as well: they watch paths, and may spread frames over other VLANs than the assigned ones.
        let keeps_trees =
            travelling.is_empty() && links_by_vlan(&topology, &before) == links_by_vlan(&topology, &after);
        if before.tables != after.tables || !keeps_trees {
            way.ready(&after, &travelling.values().copied().collect())?;
        }
        if !travelling.is_empty() {
            way.go(&under_other_ids(&after, &travelling))?;
        }
        way.go(&after)?;
        way.settle(&after)?;
        Ok(way.into_steps())
    };
    let waits = [previous, next].iter().any(|plan| plan.policy.flow_control.lanes().is_some());
    let attempts = match waits {
        false => vec![(None, Deadlock::NothingWaits)],
        true => vec![
            (Some(Frames::All), Deadlock::Impossible(Frames::All)),
            (Some(Frames::Unicast), Deadlock::Impossible(Frames::Unicast)),
            (None, Deadlock::Unproven),
        ],
    };
    let mut ordered = attempts.into_iter().filter_map(|(frames, deadlock)| match order(frames) {
        Ok(steps) => Some(Ok((steps, deadlock))),
        Err(Obstacle::NoWay(error)) => Some(Err(error)),
        Err(Obstacle::MayBlock) => None,
    });
    let (steps, deadlock) = ordered.next().expect("where nothing is looked at, nothing blocks")?;
    drop(ordered);
    Ok(Transition { topology, start: before, goal: after, settled, steps, deadlock })
}

/// Applies one device's share of a step.
///
/// # Panics
/// If the part names switches, ports or hosts that the state does not have.
pub fn apply(part: &Part, state: &mut FabricState) {
    match part {
        Part::Host(host, table) => {
            if let Some(tables) = &mut state.tables {
                tables[host.index()] = table.clone();
            }
        }
        Part::Switch(change) => {
            let device = &mut state.devices[change.switch.index()];
            for change in &change.ports {
                let at = device.ports.binary_search_by_key(&change.port, |port| port.port).expect("a known port");
                let port = &mut device.ports[at];
                (port.admin, port.flow_control, port.pvid) = (change.admin, change.flow_control.clone(), change.pvid);
                (port.mtu_bytes, port.blocked) = (change.mtu_bytes, change.blocked);
                (port.storm_limit, port.untagged_class) = (change.storm_limit, change.untagged_class);
                port.lag = change.lag;
                for vlan in change.leave.iter() {
                    port.tagged.remove(vlan);
                    port.untagged.remove(vlan);
                }
                port.tagged.extend(change.join_tagged.iter());
                port.untagged.extend(change.join_untagged.iter());
            }
            device.foreign.retain(|entry| change.foreign_unset.binary_search(entry).is_err());
            if !change.set.is_empty() {
                device.fdb = table::set(&device.fdb, &change.set);
            }
            if !change.unset.is_empty() {
                device.fdb = table::unset(&device.fdb, &change.unset);
            }
            if let Some(classes) = &change.classes {
                device.classes.clone_from(classes);
            }
        }
    }
}

/// Ports that had a cable which is gone or leads elsewhere now.
fn moved_ports(old: &Topology, stage: &Topology, relation: &Relation) -> BTreeSet<PortId> {
    (0..old.ports().len())
        .map(PortId::new)
        .filter(|port| !relation.is_same_cable(old, stage, *port))
        .filter_map(|port| relation.port[port.index()])
        .collect()
}

/// VLANs with entries through a port that leads elsewhere now and is to carry the VLAN again: their frames would come
/// out where nobody expects them.
fn misled(now: &FabricState, goal: &FabricState, moved: &BTreeSet<PortId>, settled: &[HostId]) -> VlanSet {
    let mut vlans = VlanSet::new();
    for (device, wanted) in now.devices.iter().zip(&goal.devices) {
        for run in device.fdb.iter().filter(|run| moved.contains(&run.port)) {
            let at = settled.partition_point(|host| *host < run.first);
            let about_settled = settled.get(at).is_some_and(|host| *host <= run.last);
            let port = wanted.ports.iter().find(|port| port.port == run.port);
            if about_settled && port.is_some_and(|port| port.is_member(run.vlan)) {
                vlans.insert(run.vlan);
            }
        }
    }
    vlans
}

/// A spare id for every VLAN that cannot change in place.
fn spare_ids(
    topology: &Topology,
    now: &FabricState,
    goal: &FabricState,
    misled: &VlanSet,
    next: &Plan,
) -> Result<BTreeMap<VlanId, VlanId>, StepError> {
    let (links_now, links_then) = (links_by_vlan(topology, now), links_by_vlan(topology, goal));
    let changing: Vec<VlanId> = (links_then.iter())
        .filter(|(vlan, links)| {
            links_now
                .get(vlan)
                .is_some_and(|now| now != *links && !is_forest(topology, now.iter().chain(*links).copied()))
        })
        .map(|(vlan, _)| *vlan)
        .collect();
    let changing: VlanSet = changing.into_iter().chain(misled.iter()).collect();
    let used: VlanSet = (now.devices.iter().chain(&goal.devices)).flat_map(device_vlans).collect();
    let spare: Vec<VlanId> =
        next.policy.vlans.iter().filter(|vlan| !used.contains(*vlan)).take(changing.len()).collect();
    if spare.len() < changing.len() {
        return Err(StepError::NoSpareVlans { need: changing.len(), spare: spare.len() });
    }
    Ok(changing.iter().zip(spare).collect())
}

fn device_vlans(device: &DeviceIntent) -> impl Iterator<Item = VlanId> + '_ {
    device.ports.iter().flat_map(|port| port.tagged.iter().chain(port.untagged.iter()).chain(port.pvid))
}

/// The links that carry each VLAN, ascending.
fn links_by_vlan(topology: &Topology, state: &FabricState) -> BTreeMap<VlanId, Vec<LinkId>> {
    let mut links: BTreeMap<VlanId, Vec<LinkId>> = BTreeMap::new();
    let tagged = |port: PortId| &state.port(topology, port).tagged;
    for id in topology.link_ids() {
        let (a, b) = (tagged(topology.link(id).a), tagged(topology.link(id).b));
        a.iter().filter(|vlan| b.contains(*vlan)).for_each(|vlan| links.entry(vlan).or_default().push(id));
    }
    links
}

/// The same state with some VLANs under other ids.
fn under_other_ids(state: &FabricState, other: &BTreeMap<VlanId, VlanId>) -> FabricState {
    let name = |vlan: VlanId| other.get(&vlan).copied().unwrap_or(vlan);
    let mut state = state.clone();
    for device in &mut state.devices {
        for port in &mut device.ports {
            port.tagged = port.tagged.iter().map(name).collect();
            port.untagged = port.untagged.iter().map(name).collect();
            port.pvid = port.pvid.map(name);
        }
        device.fdb.iter_mut().for_each(|run| run.vlan = name(run.vlan));
        device.classes.iter_mut().for_each(|vlans| *vlans = vlans.iter().map(name).collect());
        device.fdb = table::tidy(std::mem::take(&mut device.fdb));
    }
    for table in state.tables.iter_mut().flatten() {
        table.unicast.iter_mut().for_each(|run| run.choice = name(run.choice));
        table.broadcast = table.broadcast.map(name);
        table.receives = table.receives.iter().map(name).collect();
    }
    state
}
