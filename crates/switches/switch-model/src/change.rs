//! From one state of a switch to another, and the order of phases in which a whole fabric gets there without a storm.
//!
//! A VLAN's cables must form no cycle at any moment, while switches change one after the other. Every phase is finished on
//! all switches before the next begins:
//!
//! ```text
//!   1 retract   cables leave VLANs that go on elsewhere     all states: parts of the old trees
//!               ports leave and join LAGs
//!   2 fill      VLANs, memberships and entries are added    all states: parts of the new trees
//!   3 flip      PVIDs move to VLANs that are complete
//!   4 free      what nobody uses any more goes
//! ```
//! Part of a tree is never a cycle, so no broadcast goes round, whatever the order of switches within a phase. Between
//! phases frames of a re-cut tree may be lost; a plan that keeps its trees and adds new ones loses none.

use fabric::{Admin, FloodKind, FloodSet, FlowControlMode, Lldp, Mac, StormLimit, VlanId, VlanSet};

use crate::{LagMembership, PortConfig, PortLearning, Slot, Snooping, SwitchConfig};
use fabric::{IngressFilter, SpanningTree};

/// From one state to another. Both have the same ports.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The state that the switch is in.
    pub before: &'a SwitchConfig,
    /// The state that it is to be in.
    pub after: &'a SwitchConfig,
    /// Which part of a change this is.
    pub stage: Stage,
    /// How many ports, from the first on, the switch goes on with; the others are in its previous plan alone.
    pub kept: usize,
}

/// What a change is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The first part of a full configuration: from the box to everything but open ports.
    Prepare,
    /// The second: ports open.
    Open,
    /// A difference on a switch that is set up.
    Step,
}

/// What changes on one port, less its being up or shut.
#[derive(Clone, Debug)]
pub struct PortChange<'a> {
    /// The state that the port is in.
    pub before: &'a PortConfig,
    /// The state that it is to be in.
    pub after: &'a PortConfig,
    /// VLANs that it leaves.
    pub leave: VlanSet,
    /// VLANs that it joins with a tag.
    pub join_tagged: VlanSet,
    /// VLANs that it joins without one.
    pub join_untagged: VlanSet,
}

impl PortChange<'_> {
    /// The port's name.
    pub fn name(&self) -> &str {
        &self.after.name
    }

    /// Whether a port that was in no VLAN comes to be in some, so that the switch may not even know of it yet.
    pub fn begins(&self) -> bool {
        self.before.members().is_empty() && !self.after.members().is_empty()
    }

    /// Whether any VLAN is joined or left.
    pub fn moves(&self) -> bool {
        !(self.leave.is_empty() && self.join_tagged.is_empty() && self.join_untagged.is_empty())
    }

    /// The new PVID, if it changes.
    pub fn pvid(&self) -> Option<Option<VlanId>> {
        (self.before.pvid != self.after.pvid).then_some(self.after.pvid)
    }

    /// Whether the port loses a PVID that is not the factory's: one that only lets no untagged frame in any more would keep
    /// its VLAN from being removed.
    pub fn forgets_pvid(&self) -> bool {
        self.after.pvid.is_none() && self.before.pvid.is_some_and(|pvid| pvid != VlanId::MIN)
    }

    /// Whether the port is to begin to filter at ingress.
    pub fn filters(&self) -> bool {
        (self.before.ingress_filter, self.after.ingress_filter) == (IngressFilter::Off, IngressFilter::On)
    }

    /// Whether the port is to filter at ingress no more.
    pub fn unfilters(&self) -> bool {
        (self.before.ingress_filter, self.after.ingress_filter) == (IngressFilter::On, IngressFilter::Off)
    }

    /// Whether the port is to learn from now on, if that changes and it can be told.
    pub fn learning(&self) -> Option<bool> {
        match (self.before.learning, self.after.learning) {
            (PortLearning::Off, PortLearning::On) => Some(true),
            (PortLearning::On, PortLearning::Off) => Some(false),
            _ => None,
        }
    }

    /// Floods that the port is to block from now on.
    pub fn blocks(&self) -> FloodSet {
        let [before, after] = [self.before, self.after].map(|port| port.blocked.unwrap_or_default());
        after.without(before)
    }

    /// Floods that the port is to let out again.
    pub fn unblocks(&self) -> FloodSet {
        let [before, after] = [self.before, self.after].map(|port| port.blocked.unwrap_or_default());
        before.without(after)
    }

    /// The new storm control of each kind of flood for which it changes; none lifts the limit.
    pub fn storm_limits(&self) -> impl Iterator<Item = (FloodKind, Option<StormLimit>)> + use<> {
        let [before, after] = [self.before, self.after].map(|port| port.storm_limits.unwrap_or_default());
        let kinds = FloodKind::ALL.iter().copied().zip(before).zip(after);
        kinds.filter(|((_, before), after)| before != after).map(|((kind, _), after)| (kind, after))
    }

    /// Whether anything changes on the port but its being a member of a LAG.
    pub fn changes_settings(&self) -> bool {
        self.moves()
            || self.filters()
            || self.unfilters()
            || self.pvid().is_some()
            || self.learning().is_some()
            || !self.blocks().or(self.unblocks()).is_empty()
            || self.storm_limits().next().is_some()
            || self.flow_control().is_some()
    }

    /// The LAG that the port joins; none where it joins none.
    pub fn joins_lag(&self) -> Option<Slot> {
        match self.after.lag {
            LagMembership::Of(lag) if self.before.lag != self.after.lag => Some(lag),
            LagMembership::Of(_) | LagMembership::Alone | LagMembership::Unsaid => None,
        }
    }

    /// The LAG that the port leaves; none where it leaves none.
    pub fn leaves_lag(&self) -> Option<Slot> {
        match self.before.lag {
            LagMembership::Of(lag) if self.before.lag != self.after.lag => Some(lag),
            LagMembership::Of(_) | LagMembership::Alone | LagMembership::Unsaid => None,
        }
    }

    /// The new flow control, if it changes.
    pub fn flow_control(&self) -> Option<&FlowControlMode> {
        (self.before.flow_control != self.after.flow_control).then_some(&self.after.flow_control)
    }
}

impl<'a> Change<'a> {
    /// Ports on which something changes other than their being up or shut.
    pub fn ports(self) -> impl Iterator<Item = PortChange<'a>> {
        let pairs = self.before.ports.iter().zip(&self.after.ports);
        pairs.filter_map(|(before, after)| {
            let missing = |wanted: &VlanSet, there: &VlanSet| -> VlanSet {
                wanted.iter().filter(|vlan| !there.contains(*vlan)).collect()
            };
            let change = PortChange {
                before,
                after,
                leave: missing(&before.members(), &after.members()),
                join_tagged: missing(&after.tagged, &before.tagged),
                join_untagged: missing(&after.untagged, &before.untagged),
            };
            let changes = change.changes_settings() || change.joins_lag().or(change.leaves_lag()).is_some();
            changes.then_some(change)
        })
    }

    /// Names of ports that go out of service.
    pub fn shut(self) -> impl Iterator<Item = &'a str> {
        self.admin(Admin::Down)
    }

    /// Names of ports that come into service.
    pub fn opened(self) -> impl Iterator<Item = &'a str> {
        self.admin(Admin::Up)
    }

    fn admin(self, to: Admin) -> impl Iterator<Item = &'a str> {
        let pairs = self.before.ports.iter().zip(&self.after.ports);
        pairs
            .filter(move |(before, after)| before.admin != after.admin && after.admin == to)
            .map(|(_, p)| p.name.as_str())
    }

    /// VLANs that come into being.
    pub fn vlans_made(self) -> VlanSet {
        self.after.vlans.iter().filter(|vlan| !self.before.vlans.contains(*vlan)).collect()
    }

    /// VLANs that cease to be.
    pub fn vlans_gone(self) -> VlanSet {
        self.before.vlans.iter().filter(|vlan| !self.after.vlans.contains(*vlan)).collect()
    }

    /// Entries that are not what they were: gone, or leading elsewhere.
    pub fn entries_unset(self) -> impl Iterator<Item = (VlanId, Mac, &'a str)> {
        let entries = self.before.entries.iter().filter(move |(key, slot)| self.after.entries.get(*key) != Some(*slot));
        entries.map(move |(&(vlan, mac), &slot)| (vlan, mac, self.before.port(slot).name.as_str()))
    }

    /// Entries that are gone altogether.
    pub fn entries_gone(self) -> impl Iterator<Item = (VlanId, Mac, &'a str)> {
        let entries = self.before.entries.iter().filter(move |(key, _)| !self.after.entries.contains_key(*key));
        entries.map(move |(&(vlan, mac), &slot)| (vlan, mac, self.before.port(slot).name.as_str()))
    }

    /// Entries that are new, or lead elsewhere.
    pub fn entries_set(self) -> impl Iterator<Item = (VlanId, Mac, &'a str)> {
        let entries = self.after.entries.iter().filter(move |(key, slot)| self.before.entries.get(*key) != Some(*slot));
        entries.map(move |(&(vlan, mac), &slot)| (vlan, mac, self.after.port(slot).name.as_str()))
    }

    /// Whether frames are to be served in the class of their priority from now on.
    pub fn starts_classes(self) -> bool {
        !self.before.has_classes() && self.after.has_classes()
    }

    /// Whether frames need no longer be served in the class of their priority.
    pub fn stops_classes(self) -> bool {
        self.before.has_classes() && !self.after.has_classes()
    }

    /// Whether LLDP is to be turned on or off.
    pub fn lldp(self) -> Option<Lldp> {
        self.after.lldp.filter(|lldp| self.before.lldp != Some(*lldp))
    }

    /// Snooping that is to be turned off.
    pub fn snooping_stopped(self) -> impl Iterator<Item = Snooping> + use<'a> {
        self.before.snooping.difference(&self.after.snooping).copied()
    }

    /// Snooping that is to be turned on again.
    pub fn snooping_started(self) -> impl Iterator<Item = Snooping> + use<'a> {
        self.after.snooping.difference(&self.before.snooping).copied()
    }

    /// Whether spanning tree is to be turned on again.
    pub fn starts_spanning_tree(self) -> bool {
        (self.before.spanning_tree, self.after.spanning_tree) == (SpanningTree::Off, SpanningTree::On)
    }

    /// Whether spanning tree is to be turned off.
    pub fn stops_spanning_tree(self) -> bool {
        (self.before.spanning_tree, self.after.spanning_tree) == (SpanningTree::On, SpanningTree::Off)
    }
}

/// A stage of a change that all switches finish before any begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Cables leave VLANs whose trees are re-cut; ports that go out of service are shut.
    Retract,
    /// VLANs, memberships and entries are added.
    Fill,
    /// PVIDs move.
    Flip,
    /// What nobody uses any more goes.
    Free,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Retract, Self::Fill, Self::Flip, Self::Free];

    /// The folder that its files are in: a number, so that they sort, and a word.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Retract => "1-retract",
            Self::Fill => "2-fill",
            Self::Flip => "3-flip",
            Self::Free => "4-free",
        }
    }
}

/// What a port is for, as far as the order of a change is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It leads to another switch, before or after.
    Switch,
    /// It serves at most a host, before and after.
    Rim,
}

/// The states of one switch at the end of each phase. `reach[port]`; `surviving` are the VLANs of the new plan, anywhere.
///
/// # Panics
/// If the two states do not have the same ports.
pub fn phases(before: &SwitchConfig, after: &SwitchConfig, reach: &[Reach], surviving: &VlanSet) -> [SwitchConfig; 4] {
    assert_eq!(before.ports.len(), after.ports.len(), "both states are of one switch");
    let mut after = after.clone();
    for (now, goal) in before.ports.iter().zip(&mut after.ports) {
        // What always learns goes on to, whatever a plan has no use for.
        if now.learning == PortLearning::Always {
            goal.learning = PortLearning::Always;
        }
    }
    let after = &after;
    let mut retracted = before.clone();
    // What either plan rests on being dropped is dropped until the last of the old one is gone.
    for (now, goal) in retracted.ports.iter_mut().zip(&after.ports) {
        now.blocked = Some(now.blocked.unwrap_or_default().or(goal.blocked.unwrap_or_default()));
    }
    for ((now, goal), reach) in retracted.ports.iter_mut().zip(&after.ports).zip(reach) {
        if goal.admin == Admin::Down {
            now.admin = Admin::Down;
        }
        if *reach == Reach::Switch {
            let stays = |vlan: &VlanId| goal.is_member(*vlan) || !surviving.contains(*vlan);
            now.tagged = now.tagged.iter().filter(stays).collect();
            now.untagged = now.untagged.iter().filter(stays).collect();
        }
    }
    // A port joins a LAG without anything of its own, and leaves it before it gets anything.
    for (now, goal) in retracted.ports.iter_mut().zip(&after.ports).filter(|(now, goal)| now.lag != goal.lag) {
        now.lag = goal.lag;
        if matches!(goal.lag, LagMembership::Of(_)) {
            (now.pvid, now.tagged, now.untagged) = (None, VlanSet::new(), VlanSet::new());
            (now.blocked, now.storm_limits) = (goal.blocked, goal.storm_limits);
            if now.learning == PortLearning::On {
                now.learning = PortLearning::Off;
            }
        }
    }
    // A LAG without members forwards nothing, so it goes with the last one.
    for (at, goal) in after.ports.iter().enumerate() {
        let lag = LagMembership::Of(Slot::new(at));
        let had_members = before.ports.iter().any(|port| port.lag == lag);
        if had_members && after.ports.iter().all(|port| port.lag != lag) {
            let now = &mut retracted.ports[at];
            (now.admin, now.pvid) = (Admin::Down, None);
            (now.tagged, now.untagged) = (VlanSet::new(), VlanSet::new());
            (now.blocked, now.storm_limits) = (goal.blocked, goal.storm_limits);
            if now.learning == PortLearning::On {
                now.learning = PortLearning::Off;
            }
        }
    }
    // A LAG and its members have one flow control: that which the LAG has or is made with.
    let lags: Vec<(usize, FlowControlMode)> = (0..retracted.ports.len())
        .filter(|at| retracted.ports[*at].lag_number().is_some())
        .map(|at| {
            let lag = LagMembership::Of(Slot::new(at));
            let (was, is) =
                (before.ports.iter().any(|port| port.lag == lag), after.ports.iter().any(|port| port.lag == lag));
            let mode = match (was, is) {
                (_, false) => FlowControlMode::Off,
                (false, true) => after.ports[at].flow_control.clone(),
                (true, true) => before.ports[at].flow_control.clone(),
            };
            (at, mode)
        })
        .collect();
    for (at, mode) in lags {
        let lag = LagMembership::Of(Slot::new(at));
        retracted.ports[at].flow_control = mode.clone();
        retracted.ports.iter_mut().filter(|port| port.lag == lag).for_each(|port| port.flow_control = mode.clone());
    }
    let ports = &retracted.ports;
    let left = |vlan: VlanId, slot: Slot| !ports[slot.index()].is_member(vlan) && before.port(slot).is_member(vlan);
    retracted.entries = before.entries.clone();
    retracted.entries.retain(|(vlan, _), slot| !left(*vlan, *slot));

    let mut filled = retracted.clone();
    filled.vlans.extend(after.vlans.iter());
    for (now, goal) in filled.ports.iter_mut().zip(&after.ports) {
        for vlan in goal.tagged.iter() {
            now.untagged.remove(vlan);
            now.tagged.insert(vlan);
        }
        for vlan in goal.untagged.iter() {
            now.tagged.remove(vlan);
            now.untagged.insert(vlan);
        }
        now.flow_control = goal.flow_control.clone();
        now.storm_limits = goal.storm_limits;
        now.admin = goal.admin;
        if goal.learning == PortLearning::On {
            now.learning = PortLearning::On;
        }
    }
    filled.entries.extend(&after.entries);
    (filled.spanning_tree, filled.lldp) = (after.spanning_tree, after.lldp);
    filled.snooping.clone_from(&after.snooping);

    let mut flipped = filled.clone();
    for (now, goal) in flipped.ports.iter_mut().zip(&after.ports) {
        now.pvid = goal.pvid;
    }
    [retracted, filled, flipped, after.clone()]
}
