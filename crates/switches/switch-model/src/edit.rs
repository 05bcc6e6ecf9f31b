//! From one state of a switch to another in the order in which every known switch accepts the writes.
//!
//! ```text
//!   shut ports ─ leave LAGs ─ filters ─ drop entries ─ make and widen VLANs ─ move PVIDs ─ narrow VLANs ─ remove VLANs
//!        ─ join LAGs ─ add entries ─ flow control ─ spanning tree ─ open ports
//! ```
//! A PVID wants its VLAN to exist with the port in it, an entry wants its port to be a member, and a VLAN that ports still
//! use cannot go. Ports that come into service do so last, those that leave it first.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Admin, FlowControlMode, Mac, VlanId, VlanSet};

use crate::{LagMembership, Slot, SwitchConfig};
use fabric::{IngressFilter, SpanningTree};

/// One write that a switch takes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Takes a port out of service.
    Shut(Slot),
    /// Removes a static entry.
    UnsetEntry(VlanId, Mac),
    /// Makes a VLAN if there is none, and sets which ports are in it.
    SetVlan {
        /// Which.
        vlan: VlanId,
        /// Ports from which its frames leave with a tag.
        tagged: BTreeSet<Slot>,
        /// Ports from which they leave without one.
        untagged: BTreeSet<Slot>,
    },
    /// Sets the VLAN of untagged frames that enter a port; none drops them.
    SetPvid(Slot, Option<VlanId>),
    /// Removes a VLAN.
    RemoveVlan(VlanId),
    /// Adds a static entry, or turns it to another port.
    SetEntry(VlanId, Mac, Slot),
    /// Sets whether a port drops tagged frames of VLANs that it is no member of.
    SetIngressFilter(Slot, IngressFilter),
    /// Has a port be a member of a LAG, or a port of its own.
    SetLag(Slot, Option<Slot>),
    /// Sets a port's flow control.
    SetFlowControl(Slot, FlowControlMode),
    /// Turns spanning tree on or off.
    SetSpanningTree(SpanningTree),
    /// Brings a port into service.
    Open(Slot),
}

impl Edit {
    /// The write in words. Ports are named as in `config`, which has the same ports.
    pub fn sentence(&self, config: &SwitchConfig) -> String {
        let port = |slot: &Slot| config.port(*slot).name.as_str();
        let ports = |slots: &BTreeSet<Slot>| match slots.is_empty() {
            true => "none".to_owned(),
            false => slots.iter().map(port).collect::<Vec<_>>().join(" "),
        };
        match self {
            Self::Shut(slot) => format!("shut port {}", port(slot)),
            Self::Open(slot) => format!("open port {}", port(slot)),
            Self::UnsetEntry(vlan, mac) => format!("remove the entry of {mac} in VLAN {vlan}"),
            Self::SetEntry(vlan, mac, slot) => format!("entry of {mac} in VLAN {vlan} to port {}", port(slot)),
            Self::SetVlan { vlan, tagged, untagged } => {
                format!("VLAN {vlan}: tagged {}; untagged {}", ports(tagged), ports(untagged))
            }
            Self::RemoveVlan(vlan) => format!("remove VLAN {vlan}"),
            Self::SetPvid(slot, Some(vlan)) => format!("port {}: PVID {vlan}", port(slot)),
            Self::SetPvid(slot, None) => format!("port {}: only tagged frames", port(slot)),
            Self::SetIngressFilter(slot, filter) => format!("port {}: ingress filter {filter:?}", port(slot)),
            Self::SetLag(slot, Some(lag)) => format!("port {}: member of {}", port(slot), port(lag)),
            Self::SetLag(slot, None) => format!("port {}: in no LAG", port(slot)),
            Self::SetFlowControl(slot, mode) => format!("port {}: flow control {mode:?}", port(slot)),
            Self::SetSpanningTree(state) => format!("spanning tree {state:?}"),
        }
    }

    /// Applies the write to a state.
    pub fn apply(&self, config: &mut SwitchConfig) {
        match self {
            Self::Shut(slot) => config.ports[slot.index()].admin = Admin::Down,
            Self::Open(slot) => config.ports[slot.index()].admin = Admin::Up,
            Self::UnsetEntry(vlan, mac) => {
                config.entries.remove(&(*vlan, *mac));
            }
            Self::SetEntry(vlan, mac, slot) => {
                config.entries.insert((*vlan, *mac), *slot);
            }
            Self::SetVlan { vlan, tagged, untagged } => {
                if *vlan != VlanId::MIN {
                    config.vlans.insert(*vlan);
                }
                for (index, port) in config.ports.iter_mut().enumerate() {
                    let member = |set: &BTreeSet<Slot>| set.contains(&Slot::new(index));
                    place(&mut port.tagged, *vlan, member(tagged));
                    place(&mut port.untagged, *vlan, member(untagged));
                }
            }
            Self::RemoveVlan(vlan) => {
                config.vlans.remove(*vlan);
                for port in &mut config.ports {
                    port.tagged.remove(*vlan);
                    port.untagged.remove(*vlan);
                }
            }
            Self::SetPvid(slot, pvid) => config.ports[slot.index()].pvid = *pvid,
            Self::SetIngressFilter(slot, filter) => config.ports[slot.index()].ingress_filter = *filter,
            Self::SetLag(slot, lag) => {
                config.ports[slot.index()].lag = lag.map_or(LagMembership::Alone, LagMembership::Of);
            }
            Self::SetFlowControl(slot, mode) => config.ports[slot.index()].flow_control = mode.clone(),
            Self::SetSpanningTree(state) => config.spanning_tree = *state,
        }
    }
}

fn place(set: &mut VlanSet, vlan: VlanId, member: bool) {
    if member {
        set.insert(vlan);
    } else {
        set.remove(vlan);
    }
}

/// The writes that lead from one state to another, in order; none if they are the same.
/// Cost: O(entries · log entries + ports · VLANs).
///
/// # Panics
/// If the states do not have the same ports.
pub fn edits(before: &SwitchConfig, after: &SwitchConfig) -> Vec<Edit> {
    assert_eq!(before.ports.len(), after.ports.len(), "both states are of one switch");
    let mut edits = Vec::new();
    let ports = || before.ports.iter().zip(&after.ports).enumerate().map(|(index, (a, b))| (Slot::new(index), a, b));
    let turned =
        |to: Admin| ports().filter(move |(_, a, b)| a.admin != b.admin && b.admin == to).map(|(slot, ..)| slot);
    edits.extend(turned(Admin::Down).map(Edit::Shut));
    let regrouped = || ports().filter(|(_, a, b)| a.lag != b.lag && b.lag != LagMembership::Unsaid);
    let is_member = |lag| matches!(lag, LagMembership::Of(_));
    edits.extend(regrouped().filter(|(_, a, _)| is_member(a.lag)).map(|(slot, ..)| Edit::SetLag(slot, None)));
    let filtered = ports().filter(|(_, a, b)| a.ingress_filter != b.ingress_filter);
    edits.extend(filtered.map(|(slot, _, b)| Edit::SetIngressFilter(slot, b.ingress_filter)));
    let dropped = before.entries.iter().filter(|(key, _)| !after.entries.contains_key(*key));
    edits.extend(dropped.map(|(&(vlan, mac), _)| Edit::UnsetEntry(vlan, mac)));

    let (held, wanted) = (members(before), members(after));
    let none = Members::default();
    let mut narrowed = Vec::new();
    for vlan in after.vlans.iter().chain([VlanId::MIN]) {
        let (old, new) = (held.get(&vlan).unwrap_or(&none), wanted.get(&vlan).unwrap_or(&none));
        let exists = vlan == VlanId::MIN || before.vlans.contains(vlan);
        let wide = old.widened(new);
        if !exists || wide != *old {
            edits.push(wide.edit(vlan));
        }
        if wide != *new {
            narrowed.push(new.edit(vlan));
        }
    }
    edits.extend(ports().filter(|(_, a, b)| a.pvid != b.pvid).map(|(slot, _, b)| Edit::SetPvid(slot, b.pvid)));
    edits.extend(narrowed);
    edits.extend(before.vlans.iter().filter(|vlan| !after.vlans.contains(*vlan)).map(Edit::RemoveVlan));
    edits.extend(regrouped().filter_map(|(slot, _, b)| match b.lag {
        LagMembership::Of(lag) => Some(Edit::SetLag(slot, Some(lag))),
        LagMembership::Alone | LagMembership::Unsaid => None,
    }));
    let added = after.entries.iter().filter(|(key, slot)| before.entries.get(*key) != Some(*slot));
    edits.extend(added.map(|(&(vlan, mac), &slot)| Edit::SetEntry(vlan, mac, slot)));
    let flow = ports().filter(|(_, a, b)| a.flow_control != b.flow_control);
    edits.extend(flow.map(|(slot, _, b)| Edit::SetFlowControl(slot, b.flow_control.clone())));
    if before.spanning_tree != after.spanning_tree {
        edits.push(Edit::SetSpanningTree(after.spanning_tree));
    }
    edits.extend(turned(Admin::Up).map(Edit::Open));
    edits
}

/// The ports of a VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Members {
    tagged: BTreeSet<Slot>,
    untagged: BTreeSet<Slot>,
}

impl Members {
    /// These ports, and those of `new`, which decides where they differ in form.
    fn widened(&self, new: &Self) -> Self {
        let all = |own: &BTreeSet<Slot>, new: &BTreeSet<Slot>, other: &BTreeSet<Slot>| -> BTreeSet<Slot> {
            own.union(new).filter(|slot| !other.contains(*slot)).copied().collect()
        };
        Self {
            tagged: all(&self.tagged, &new.tagged, &new.untagged),
            untagged: all(&self.untagged, &new.untagged, &new.tagged),
        }
    }

    fn edit(&self, vlan: VlanId) -> Edit {
        Edit::SetVlan { vlan, tagged: self.tagged.clone(), untagged: self.untagged.clone() }
    }
}

fn members(config: &SwitchConfig) -> BTreeMap<VlanId, Members> {
    let mut members: BTreeMap<VlanId, Members> = BTreeMap::new();
    for (index, port) in config.ports.iter().enumerate() {
        let slot = Slot::new(index);
        for vlan in port.tagged.iter() {
            members.entry(vlan).or_default().tagged.insert(slot);
        }
        for vlan in port.untagged.iter() {
            members.entry(vlan).or_default().untagged.insert(slot);
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;
    use crate::change::{Reach, phases};

    /// A state of a switch with two LAGs, four ports, and VLANs 2 to 4.
    fn random(rng: &mut Rng) -> SwitchConfig {
        let names = ["lag1", "lag2", "p1", "p2", "p3", "p4"];
        let mut config = SwitchConfig::blank(names.map(str::to_owned));
        for port in &mut config.ports[2..] {
            port.lag = match rng.below(3) {
                0 => LagMembership::Alone,
                lag => LagMembership::Of(Slot::new(lag - 1)),
            };
        }
        for port in config.ports.iter_mut().filter(|port| port.lag == LagMembership::Alone) {
            port.admin = if rng.below(2) == 0 { Admin::Up } else { Admin::Down };
            for id in 2..5 {
                let vlan = VlanId::new(id).expect("in range");
                if rng.below(2) == 0 {
                    if rng.below(2) == 0 {
                        port.tagged.insert(vlan)
                    } else {
                        port.untagged.insert(vlan)
                    };
                }
            }
            port.pvid = port.untagged.iter().next();
        }
        config.vlans = config.memberships();
        for (at, port) in config.ports.clone().iter().enumerate() {
            if let Some(vlan) = port.members().iter().next() {
                config.entries.insert((vlan, Mac::local(at as u32)), Slot::new(at));
            }
        }
        config
    }

    /// A member of a LAG carries nothing of its own.
    fn has_busy_member(config: &SwitchConfig) -> bool {
        config
            .ports
            .iter()
            .any(|port| matches!(port.lag, LagMembership::Of(_)) && !(port.members().is_empty() && port.pvid.is_none()))
    }

    #[test]
    fn edits_and_phases_lead_there_and_no_port_is_a_member_and_in_a_vlan_at_once() {
        let mut rng = Rng::new(11);
        for _ in 0..500 {
            let (before, after) = (random(&mut rng), random(&mut rng));
            let mut now = before.clone();
            for edit in edits(&before, &after) {
                edit.apply(&mut now);
                assert!(!has_busy_member(&now), "{}", edit.sentence(&now));
            }
            assert_eq!(now, after);
            let reach = vec![Reach::Switch; before.ports.len()];
            let states = phases(&before, &after, &reach, &after.vlans);
            assert!(states.iter().all(|state| !has_busy_member(state)));
            assert_eq!(states[3], after);
        }
    }
}
