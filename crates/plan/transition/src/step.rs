//! The rounds of a transition: which VLANs are filled, who flips, and what can be freed after that.
//!
//! ```text
//!   round 1   fill v5, v6 (v7 would overflow s3)   flip h0 ▶ v5, h1 ▶ v6   free v2, v3
//!   round 2   fill v7                              flip h2 ▶ v7            free v4
//! ```
//! A VLAN is the unit: it is filled on all switches or on none. A host flips once the VLAN that it goes to is filled; a
//! VLAN is freed of what the goal does not want once nobody who sends in it is still to leave it.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    Admin, DeviceIntent, FdbEntry, FdbRun, HostId, HostRun, HostTable, Mac, PortId, PortIntent, SwitchId, Topology,
    VlanId, VlanSet,
};

use super::{
    FabricState, Part, PortChange, Step, StepError, StepKind, SwitchChange, apply, deadlock::Waits, device_vlans,
    stage::append, table,
};

/// Why a sequence of steps stops.
pub(super) enum Obstacle {
    /// There is no way.
    NoWay(StepError),
    /// Frames might wait for each other for ever.
    MayBlock,
}

impl From<StepError> for Obstacle {
    fn from(error: StepError) -> Self {
        Self::NoWay(error)
    }
}

/// Steps so far, and where they have led.
pub(super) struct StepSequence<'a> {
    topology: &'a Topology,
    /// What may wait for ever, where switches wait instead of drop.
    waits: Option<&'a Waits<'a>>,
    /// Who has an address now.
    owner: BTreeMap<Mac, HostId>,
    now: FabricState,
    round: usize,
    steps: Vec<Step>,
}

impl<'a> StepSequence<'a> {
    pub(super) fn new(topology: &'a Topology, waits: Option<&'a Waits<'a>>, start: FabricState) -> Self {
        Self { topology, waits, owner: topology.hosts_by_mac(), now: start, round: 1, steps: Vec::new() }
    }

    pub(super) fn now(&self) -> &FabricState {
        &self.now
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Takes ports out of every VLAN. What frames wait for before that, no order of steps can help.
    pub(super) fn isolate(&mut self, ports: &BTreeSet<PortId>, goal: &FabricState) {
        let parts = self.switch_parts(goal, |_, now, goal| {
            let mut change = SwitchChange::none(now.switch);
            for (port, wanted) in now.ports.iter().zip(&goal.ports).filter(|(port, _)| ports.contains(&port.port)) {
                let leave: VlanSet = port.tagged.iter().chain(port.untagged.iter()).collect();
                let (admin, flow_control, mtu_bytes) = (wanted.admin, wanted.flow_control.clone(), wanted.mtu_bytes);
                let (blocked, storm_limit, lag) = (wanted.blocked, wanted.storm_limit, wanted.lag);
                let none = PortChange { pvid: None, untagged_class: 0, leave, ..PortChange::none(port) };
                change.port(port, PortChange { admin, flow_control, mtu_bytes, blocked, storm_limit, lag, ..none });
            }
            change
        });
        parts.iter().for_each(|part| apply(part, &mut self.now));
        self.push(StepKind::Isolate, parts);
    }

    /// Has every host accept frames in the VLANs of the whole way, and send in assigned VLANs alone.
    pub(super) fn ready(&mut self, goal: &FabricState, spare: &VlanSet) -> Result<(), Obstacle> {
        let tables = |goal: &[HostTable], now: &[HostTable]| {
            let ready = |(now, goal): (&HostTable, &HostTable)| {
                let receives = [&now.receives, &goal.receives, spare].into_iter().flat_map(VlanSet::iter).collect();
                HostTable { receives, paths: Vec::new(), ..now.clone() }
            };
            now.iter().zip(goal).map(ready).collect::<Vec<_>>()
        };
        let ready = goal.tables.as_deref().zip(self.now.tables.as_deref()).map(|(goal, now)| tables(goal, now));
        self.take_tables(StepKind::Ready, ready.as_deref())
    }

    /// Has every host send and accept what it does in the end.
    pub(super) fn settle(&mut self, goal: &FabricState) -> Result<(), Obstacle> {
        self.take_tables(StepKind::Settle, goal.tables.as_deref())
    }

    fn take_tables(&mut self, kind: StepKind, wanted: Option<&[HostTable]>) -> Result<(), Obstacle> {
        let now = self.now.tables.iter().flatten();
        let differing = now.zip(wanted.unwrap_or_default()).enumerate().filter(|(_, (now, wanted))| now != wanted);
        let parts = differing.map(|(host, (_, wanted))| Part::Host(HostId::new(host), wanted.clone()));
        self.take(kind, parts.collect())
    }

    /// Goes to a goal, in as many rounds as the switches' tables need.
    pub(super) fn go(&mut self, goal: &FabricState) -> Result<(), Obstacle> {
        let mut waiting = self.vlans_to_fill(goal);
        loop {
            let filled = self.room_for(goal, &waiting)?;
            waiting.retain(|vlan| !filled.contains(vlan));
            let before = self.steps.len();
            self.fill(goal, &filled)?;
            self.flip(goal, &waiting)?;
            self.free(goal, &waiting)?;
            let moved = self.steps.len() > before;
            if waiting.is_empty() {
                self.round += usize::from(moved);
                return Ok(());
            }
            self.round += 1;
        }
    }

    /// VLANs for which the goal has ports or entries that are not there, or leads entries elsewhere.
    fn vlans_to_fill(&self, goal: &FabricState) -> BTreeSet<VlanId> {
        let mut vlans = BTreeSet::new();
        for (now, goal) in self.now.devices.iter().zip(&goal.devices) {
            for (port, wanted) in now.ports.iter().zip(&goal.ports) {
                vlans.extend(wanted.tagged.iter().filter(|vlan| !port.tagged.contains(*vlan)));
                vlans.extend(wanted.untagged.iter().filter(|vlan| !port.untagged.contains(*vlan)));
            }
            table::sweep(&now.fdb, &goal.fdb, |run, before, after| {
                if after.is_some() && before != after {
                    vlans.insert(run.vlan);
                }
            });
        }
        vlans
    }

    /// As many of the waiting VLANs, in order, as the switches have room for.
    fn room_for(&self, goal: &FabricState, waiting: &BTreeSet<VlanId>) -> Result<BTreeSet<VlanId>, StepError> {
        let mut chosen = waiting.clone();
        let Some(mut short) = self.overflow(goal, &chosen) else { return Ok(chosen) };
        // Halves as long as it must; what fits in the end may be a single VLAN.
        while chosen.len() > 1 {
            let half = chosen.len() / 2;
            chosen = chosen.into_iter().take(half).collect();
            match self.overflow(goal, &chosen) {
                None => return Ok(chosen),
                Some(error) => short = error,
            }
        }
        for vlan in waiting {
            let alone = BTreeSet::from([*vlan]);
            if self.overflow(goal, &alone).is_none() {
                return Ok(alone);
            }
        }
        Err(short)
    }

    /// The first switch whose tables cannot hold what is there and these VLANs as well.
    fn overflow(&self, goal: &FabricState, vlans: &BTreeSet<VlanId>) -> Option<StepError> {
        for (now, goal) in self.now.devices.iter().zip(&goal.devices) {
            let switch = self.topology.switch(now.switch);
            let refuse = |what, need, limit| Some(StepError::NoRoom { switch: switch.name.clone(), what, need, limit });
            let mut held = now.vlans();
            held.extend(device_vlans(goal).filter(|vlan| vlans.contains(vlan)));
            if held.len() > switch.model.vlans_max {
                return refuse("VLANs", held.len(), switch.model.vlans_max);
            }
            let held_entries = now.fdb_len(self.topology);
            let mut entries = held_entries;
            table::sweep(&now.fdb, &goal.fdb, |run, before, after| {
                if before.is_none() && after.is_some() && vlans.contains(&run.vlan) {
                    entries += run.len(self.topology);
                }
            });
            if entries > switch.model.static_entries_max && entries > held_entries {
                return refuse("static entries", entries, switch.model.static_entries_max);
            }
        }
        None
    }

    fn fill(&mut self, goal: &FabricState, vlans: &BTreeSet<VlanId>) -> Result<(), Obstacle> {
        let chosen = |set: &VlanSet, there: &VlanSet| -> VlanSet {
            set.iter().filter(|vlan| vlans.contains(vlan) && !there.contains(*vlan)).collect()
        };
        let parts = self.switch_parts(goal, |_, now, goal| {
            let mut change = SwitchChange::none(now.switch);
            for (port, wanted) in now.ports.iter().zip(&goal.ports) {
                let join_tagged = chosen(&wanted.tagged, &port.tagged);
                let join_untagged = chosen(&wanted.untagged, &port.untagged);
                // Ports go out of service by themselves only when they are isolated or freed.
                let admin = if wanted.admin == Admin::Up { Admin::Up } else { port.admin };
                let flow_control = wanted.flow_control.clone();
                // Frames of both plans have to pass until the last of the old ones is gone.
                let mtu_bytes = port.mtu_bytes.max(wanted.mtu_bytes);
                // What either plan rests on being dropped is dropped until the last of the old one is gone.
                let blocked = port.blocked.or(wanted.blocked);
                let none = PortChange { blocked, ..PortChange::none(port) };
                change.port(port, PortChange { admin, flow_control, mtu_bytes, join_tagged, join_untagged, ..none });
            }
            change.classify(now, &with_classes_of(now, goal, vlans));
            table::sweep(&now.fdb, &goal.fdb, |run, before, after| {
                if let (None, Some(port), true) = (before, after, vlans.contains(&run.vlan)) {
                    change.set.push(FdbRun { port, ..run });
                }
            });
            // The entry of an address that is another host's now is replaced, not kept beside the new one.
            let is_set = |entry: &&FdbEntry| {
                self.owner.get(&entry.mac).is_some_and(|host| {
                    let before = change.set.partition_point(|run| (run.vlan, run.last) < (entry.vlan, *host));
                    change.set.get(before).is_some_and(|run| run.vlan == entry.vlan && run.first <= *host)
                })
            };
            change.foreign_unset = now.foreign.iter().filter(is_set).copied().collect();
            change
        });
        self.take(StepKind::Fill, parts)?;
        let parts = self.switch_parts(goal, |_, now, goal| {
            let mut change = SwitchChange::none(now.switch);
            table::sweep(&now.fdb, &goal.fdb, |run, before, after| {
                if let (Some(old), Some(port), true) = (before, after, vlans.contains(&run.vlan)) {
                    if old != port {
                        change.set.push(FdbRun { port, ..run });
                    }
                }
            });
            change
        });
        self.take(StepKind::Redirect, parts)
    }

    /// Has hosts change to the VLANs that are filled: all at once, or in turns where frames might wait for each other for ever.
    fn flip(&mut self, goal: &FabricState, waiting: &BTreeSet<VlanId>) -> Result<(), Obstacle> {
        let flipped = self.flipped(goal, |vlan| vlan.filter(|vlan| !waiting.contains(vlan)));
        let turns = match self.waits {
            None => vec![flipped],
            Some(waits) => waits.turns(&self.now, &flipped).ok_or(Obstacle::MayBlock)?,
        };
        for state in turns {
            let parts = self.sending_as(&state);
            self.take(StepKind::Flip, parts)?;
        }
        Ok(())
    }

    /// The state in which every host sends in the goal's VLANs that are ready.
    fn flipped(&self, goal: &FabricState, ready: impl Fn(Option<VlanId>) -> Option<VlanId>) -> FabricState {
        let mut flipped = self.now.clone();
        let ports = flipped.devices.iter_mut().flat_map(|device| &mut device.ports);
        for (port, wanted) in ports.zip(goal.devices.iter().flat_map(|device| &device.ports)) {
            if let Some(pvid) = ready(wanted.pvid) {
                (port.pvid, port.untagged_class) = (Some(pvid), wanted.untagged_class);
            }
        }
        let tables = flipped.tables.iter_mut().flatten().zip(goal.tables.iter().flatten());
        tables.for_each(|(table, wanted)| *table = mixed_table(self.topology, table, wanted, &ready));
        flipped
    }

    /// What changes so that hosts send as in another state.
    fn sending_as(&self, state: &FabricState) -> Vec<Part> {
        let mut parts = self.switch_parts(state, |_, now, state| {
            let mut change = SwitchChange::none(now.switch);
            for (port, wanted) in now.ports.iter().zip(&state.ports) {
                let (pvid, untagged_class) = (wanted.pvid, wanted.untagged_class);
                change.port(port, PortChange { pvid, untagged_class, ..PortChange::none(port) });
            }
            change
        });
        let tables = self.now.tables.iter().flatten().zip(state.tables.iter().flatten());
        let differing = tables.enumerate().filter(|(_, (now, wanted))| now != wanted);
        parts.extend(differing.map(|(host, (_, wanted))| Part::Host(HostId::new(host), wanted.clone())));
        parts
    }

    fn free(&mut self, goal: &FabricState, waiting: &BTreeSet<VlanId>) -> Result<(), Obstacle> {
        let still_used = self.still_used(goal);
        let free = |vlan: VlanId| !waiting.contains(&vlan) && !still_used.contains(vlan);
        let last = waiting.is_empty();
        let parts = self.switch_parts(goal, |_, now, goal| {
            let mut change = SwitchChange::none(now.switch);
            for (port, wanted) in now.ports.iter().zip(&goal.ports) {
                let extra = port.tagged.iter().filter(|vlan| !wanted.tagged.contains(*vlan));
                let extra = extra.chain(port.untagged.iter().filter(|vlan| !wanted.untagged.contains(*vlan)));
                let leave = extra.filter(|vlan| free(*vlan)).collect();
                let end = if last { wanted } else { port };
                let (flow_control, join_tagged, join_untagged) =
                    (port.flow_control.clone(), VlanSet::new(), VlanSet::new());
                let end = PortChange { flow_control, join_tagged, join_untagged, leave, ..PortChange::none(end) };
                change.port(port, end);
            }
            change.classify(now, if last { &goal.classes } else { &now.classes });
            table::sweep(&now.fdb, &goal.fdb, |run, _, after| {
                if after.is_none() && free(run.vlan) {
                    change.unset.push(run);
                }
            });
            change.foreign_unset =
                now.foreign.iter().filter(|entry| free(entry.vlan) && !goal.foreign.contains(entry)).copied().collect();
            change
        });
        self.take(StepKind::Free, parts)
    }

    /// VLANs in which somebody sends who is still to leave them.
    fn still_used(&self, goal: &FabricState) -> VlanSet {
        let mut used = VlanSet::new();
        for (now, goal) in self.now.devices.iter().zip(&goal.devices) {
            for (port, wanted) in now.ports.iter().zip(&goal.ports).filter(|(port, wanted)| port.pvid != wanted.pvid) {
                // A PVID that the goal takes away serves nobody.
                used.extend(port.pvid.filter(|_| wanted.pvid.is_some()));
            }
        }
        let tables = self.now.tables.iter().flatten().zip(goal.tables.iter().flatten());
        for (table, wanted) in tables {
            used.extend(table.broadcast.filter(|_| table.broadcast != wanted.broadcast));
            for run in &table.unicast {
                let leaves = |host| wanted.vlan_to(HostId::new(host)) != Some(run.choice);
                used.extend((run.first.index()..=run.last.index()).any(leaves).then_some(run.choice));
            }
        }
        used
    }

    fn switch_parts(
        &self,
        goal: &FabricState,
        change: impl Fn(SwitchId, &DeviceIntent, &DeviceIntent) -> SwitchChange,
    ) -> Vec<Part> {
        let pairs = self.now.devices.iter().zip(&goal.devices);
        pairs
            .map(|(now, goal)| change(now.switch, now, goal))
            .filter(|change| !change.is_empty())
            .map(Part::Switch)
            .collect()
    }

    /// Takes a step, if there is anything to it and nothing may wait for ever meanwhile.
    fn take(&mut self, kind: StepKind, parts: Vec<Part>) -> Result<(), Obstacle> {
        if parts.is_empty() {
            return Ok(());
        }
        let before = self.waits.map(|waits| (waits, self.now.clone()));
        parts.iter().for_each(|part| apply(part, &mut self.now));
        if before.is_some_and(|(waits, before)| waits.may_block(&before, &self.now)) {
            return Err(Obstacle::MayBlock);
        }
        self.push(kind, parts);
        Ok(())
    }

    fn push(&mut self, kind: StepKind, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.steps.push(Step { kind, round: self.round, parts });
        }
    }
}

impl SwitchChange {
    fn none(switch: SwitchId) -> Self {
        let (ports, set, unset, foreign_unset) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { switch, ports, set, unset, foreign_unset, classes: None }
    }

    /// Adds a port's change if it changes anything.
    fn port(&mut self, port: &PortIntent, change: PortChange) {
        if change != PortChange::none(port) {
            self.ports.push(change);
        }
    }

    /// Sets the classes of VLANs if that changes any.
    fn classify(&mut self, now: &DeviceIntent, classes: &[VlanSet]) {
        self.classes = (now.classes != classes).then(|| classes.to_vec());
    }

    fn is_empty(&self) -> bool {
        let no_entries = self.set.is_empty() && self.unset.is_empty() && self.foreign_unset.is_empty();
        self.ports.is_empty() && no_entries && self.classes.is_none()
    }
}

impl PortChange {
    fn none(port: &PortIntent) -> Self {
        Self {
            port: port.port,
            admin: port.admin,
            flow_control: port.flow_control.clone(),
            mtu_bytes: port.mtu_bytes,
            blocked: port.blocked,
            storm_limit: port.storm_limit,
            lag: port.lag,
            pvid: port.pvid,
            untagged_class: port.untagged_class,
            join_tagged: VlanSet::new(),
            join_untagged: VlanSet::new(),
            leave: VlanSet::new(),
        }
    }
}

/// The classes that a switch has now, with those of these VLANs as the goal has them.
fn with_classes_of(now: &DeviceIntent, goal: &DeviceIntent, vlans: &BTreeSet<VlanId>) -> Vec<VlanSet> {
    let count = now.classes.len().max(goal.classes.len());
    let of = |device: &DeviceIntent, class: usize| device.classes.get(class).cloned().unwrap_or_default();
    (0..count)
        .map(|class| {
            let kept = of(now, class).iter().filter(|vlan| !vlans.contains(vlan)).collect::<VlanSet>();
            kept.iter().chain(of(goal, class).iter().filter(|vlan| vlans.contains(vlan))).collect()
        })
        .collect()
}

/// A host's table with every choice that is ready to move at its goal.
fn mixed_table(
    topology: &Topology,
    now: &HostTable,
    goal: &HostTable,
    ready: &impl Fn(Option<VlanId>) -> Option<VlanId>,
) -> HostTable {
    let mut unicast: Vec<HostRun<VlanId>> = Vec::new();
    for host in topology.host_ids() {
        if let Some(choice) = ready(goal.vlan_to(host)).or_else(|| now.vlan_to(host)) {
            append(&mut unicast, host, choice);
        }
    }
    HostTable { unicast, broadcast: ready(goal.broadcast).or(now.broadcast), ..now.clone() }
}
