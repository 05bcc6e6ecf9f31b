//! What a managed switch does when it is told something: the memory behind the parsers of command languages.
//!
//! ```text
//!   "switchport general pvid 7"  ─ a dialect's parser ─▶  console.set_pvid(7)  ─▶  SwitchConfig
//! ```
//! A switch remembers settings that do not count at the moment (the hybrid memberships of a port in access mode, the
//! PVID of a port that takes tagged frames only). They are kept beside the state and weighed when the text ends.

use std::collections::BTreeSet;

use fabric::{Admin, FloodKind, FloodSet, FlowControlMode, Lldp, Mac, StormLimit, VlanId, VlanSet};

use crate::{
    Target,
    dialect::{lags, remove_lag, snooping, stands},
    names::{PortIndex, no_such_port},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{LagMembership, PortConfig, Slot, SwitchConfig};

/// How a port treats VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A member of one VLAN, without tags.
    Access,
    /// A tagged or untagged member of any VLANs.
    Hybrid,
    /// A tagged member of the VLANs that it is allowed, untagged in its PVID alone.
    Trunk,
}

/// What to do about a frame's tag when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// It keeps it.
    Keep,
    /// It leaves without one.
    Strip,
}

/// Which frames a port lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// Any; those without a tag belong to the PVID.
    All,
    /// Those with a tag.
    Tagged,
}

/// How a language keeps untagged frames out of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It says that only tagged frames come in.
    ByFrameType,
    /// It leaves the PVID at a VLAN that the port is no member of.
    ByPvid,
}

/// A switch that is being told.
pub(crate) struct Console<'a> {
    config: &'a mut SwitchConfig,
    index: PortIndex,
    ports: Vec<Memory>,
    /// Ports that commands are about at the moment.
    here: Vec<Slot>,
    /// What members of LAGs do about VLANs.
    membership: Membership,
    /// The mode of a port in its factory state.
    fresh: Mode,
    /// LAGs that are there; those that are not come into being where they are entered.
    there: BTreeSet<Slot>,
    /// LAGs that speak LACP.
    lacp: BTreeSet<Slot>,
}

/// What a member of a LAG does about VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Its settings count no more until it leaves. LAGs are there by themselves, and speak LACP.
    Suspended,
    /// It has those of the LAG, and keeps them when it leaves. LAGs are made.
    Mirrors,
    /// It may have none of its own but the factory's. LAGs are made.
    Factory,
}

/// What a port remembers beside its state.
#[derive(Clone, PartialEq, Eq)]
struct Memory {
    mode: Mode,
    access: VlanId,
    pvid: VlanId,
    frames: Frames,
    /// VLANs and PVID of the port as a trunk.
    allowed: VlanSet,
    native: VlanId,
}

impl Memory {
    /// A port that nobody has told anything.
    fn of_fresh(mode: Mode) -> Self {
        let only_1 = [VlanId::MIN].into_iter().collect();
        Self { mode, access: VlanId::MIN, pvid: VlanId::MIN, frames: Frames::All, allowed: only_1, native: VlanId::MIN }
    }
}

impl<'a> Console<'a> {
    /// A switch in this state. A port in its factory state is in mode `fresh`; one that has been set up is hybrid, or in
    /// mode `fresh` if that is not access mode.
    pub(crate) fn new(target: Target, config: &'a mut SwitchConfig, fresh: Mode, refusal: Refusal) -> Self {
        let memory = |port: &PortConfig| Memory {
            mode: match fresh {
                Mode::Access if is_factory(port) => Mode::Access,
                Mode::Access => Mode::Hybrid,
                mode => mode,
            },
            access: VlanId::MIN,
            pvid: port.pvid.unwrap_or(VlanId::MIN),
            frames: match (port.pvid, refusal) {
                (None, Refusal::ByFrameType) => Frames::Tagged,
                _ => Frames::All,
            },
            allowed: [VlanId::MIN].into_iter().collect(),
            native: VlanId::MIN,
        };
        let ports: Vec<Memory> = config.ports.iter().map(memory).collect();
        let index = PortIndex::new(Some(target), config.ports.iter().map(|port| port.name.as_str()));
        let there: BTreeSet<Slot> = lags(config).filter(|lag| stands(config, *lag)).collect();
        let (lacp, membership) = (there.clone(), Membership::Suspended);
        Self { config, index, ports, here: Vec::new(), membership, fresh, there, lacp }
    }

    /// The same, whose members of LAGs do this about VLANs.
    pub(crate) fn with(mut self, membership: Membership) -> Self {
        self.membership = membership;
        for index in 0..self.config.ports.len() {
            let LagMembership::Of(lag) = self.config.ports[index].lag else { continue };
            match membership {
                Membership::Suspended => {}
                Membership::Mirrors => {
                    let PortConfig { tagged, untagged, .. } = self.config.port(lag).clone();
                    (self.config.ports[index].tagged, self.config.ports[index].untagged) = (tagged, untagged);
                    self.ports[index] = self.ports[lag.index()].clone();
                }
                Membership::Factory => {
                    self.config.ports[index].untagged.insert(VlanId::MIN);
                    self.ports[index] = Memory::of_fresh(self.fresh);
                }
            }
        }
        self
    }

    /// Weighs what was told: which of a port's settings count, and whether untagged frames find a VLAN.
    pub(crate) fn finish(self) {
        let Self { config, ports, there, membership, .. } = self;
        for (index, (port, memory)) in config.ports.iter_mut().zip(&ports).enumerate() {
            let is_absent = port.lag_number().is_some() && !there.contains(&Slot::new(index));
            if matches!(port.lag, LagMembership::Of(_)) || (membership != Membership::Suspended && is_absent) {
                (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
                continue;
            }
            match memory.mode {
                Mode::Access => {
                    port.tagged = VlanSet::new();
                    port.untagged = [memory.access].into_iter().collect();
                    port.pvid = Some(memory.access);
                }
                Mode::Trunk => {
                    let exists = |vlan: &VlanId| *vlan == VlanId::MIN || config.vlans.contains(*vlan);
                    let members: VlanSet = memory.allowed.iter().filter(exists).collect();
                    port.pvid = Some(memory.native).filter(|native| members.contains(*native));
                    port.untagged = port.pvid.into_iter().collect();
                    port.tagged = members.iter().filter(|vlan| Some(*vlan) != port.pvid).collect();
                }
                Mode::Hybrid => {
                    // The factory's PVID on a port that has left VLAN 1 says only that untagged frames are dropped.
                    let dropped = memory.pvid == VlanId::MIN && !port.is_member(VlanId::MIN);
                    port.pvid = (memory.frames == Frames::All && !dropped).then_some(memory.pvid);
                }
            }
        }
        if membership != Membership::Suspended {
            take_flow_control(config);
        }
    }

    /// Refuses LAGs that would not carry what the state says.
    pub(crate) fn check_lags(&self) -> Result<(), String> {
        for (port, memory) in self.config.ports.iter().zip(&self.ports) {
            let LagMembership::Of(slot) = port.lag else { continue };
            let lag = self.config.port(slot);
            if self.membership != Membership::Suspended && !self.there.contains(&slot) {
                return Err(format!("port {} is a member of {}, which nothing makes", port.name, lag.name));
            }
            if self.membership != Membership::Suspended && !self.lacp.contains(&slot) {
                return Err(format!("{} speaks no LACP", lag.name));
            }
            let differs =
                (&port.tagged, &port.untagged, memory) != (&lag.tagged, &lag.untagged, &self.ports[slot.index()]);
            if self.membership == Membership::Mirrors && differs {
                return Err(format!("port {} has other VLANs than {}, so it carries nothing", port.name, lag.name));
            }
            if self.membership == Membership::Factory && !(is_bare(port) && *memory == Memory::of_fresh(self.fresh)) {
                return Err(format!(
                    "port {} has VLANs of its own, so it cannot be a member of {}",
                    port.name, lag.name
                ));
            }
        }
        Ok(())
    }

    /// Makes the ports members of a LAG, by its number.
    pub(crate) fn join_lag(&mut self, number: &str) -> Result<(), String> {
        let name = format!("lag{number}");
        let lag = self.config.slot(&name).ok_or_else(|| no_such_lag(number))?;
        if let Some(own) = self.here.iter().find(|slot| self.config.port(**slot).lag_number().is_some()) {
            return Err(format!("{} is a LAG itself", self.config.port(*own).name));
        }
        self.each(|port, _| port.lag = LagMembership::Of(lag))
    }

    /// Makes the ports members of no LAG.
    pub(crate) fn leave_lag(&mut self) -> Result<(), String> {
        self.each(|port, _| port.lag = LagMembership::Alone)
    }

    /// Has the LAGs that commands are about speak LACP, or not.
    pub(crate) fn set_lacp(&mut self, speaks: bool) -> Result<(), String> {
        if let Some(port) = self.here.iter().find(|slot| self.config.port(**slot).lag_number().is_none()) {
            return Err(format!("{} is no LAG", self.config.port(*port).name));
        }
        for slot in &self.here {
            if speaks {
                self.lacp.insert(*slot)
            } else {
                self.lacp.remove(slot)
            };
        }
        Ok(())
    }

    /// Removes a LAG, which has no members.
    pub(crate) fn remove_lag(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        if !self.there.remove(&slot) {
            return Err(format!("there is no {name} to remove"));
        }
        remove_lag(self.config, slot)?;
        self.lacp.remove(&slot);
        Ok(())
    }

    /// Leaves the ports that commands were about.
    pub(crate) fn leave_port(&mut self) {
        self.here.clear();
    }

    /// Turns to a port.
    pub(crate) fn enter_port(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        let is_lag = self.config.port(slot).lag_number().is_some();
        if is_lag && self.membership != Membership::Suspended && self.there.insert(slot) {
            let made = SwitchConfig::out_of_the_box([self.config.port(slot).name.clone()]);
            self.config.ports[slot.index()] = made.ports.into_iter().next().ok_or("a LAG is a port")?;
            self.ports[slot.index()] = Memory::of_fresh(self.fresh);
        }
        self.here = vec![slot];
        Ok(())
    }

    /// Turns to several ports at once.
    pub(crate) fn enter_ports(&mut self, slots: Vec<Slot>) {
        self.here = slots;
    }

    /// The port of this name.
    pub(crate) fn slot(&self, name: &str) -> Result<Slot, String> {
        let known = || self.config.ports.iter().map(|port| port.name.as_str());
        self.index.said(name).map(Slot::new).ok_or_else(|| no_such_port(name, known()))
    }

    /// Makes VLANs.
    pub(crate) fn make_vlans(&mut self, vlans: &VlanSet) {
        self.config.vlans.extend(vlans.iter().filter(|vlan| *vlan != VlanId::MIN));
    }

    /// Removes VLANs, and every port from them.
    pub(crate) fn remove_vlans(&mut self, vlans: &VlanSet) -> Result<(), String> {
        self.must_exist(vlans)?;
        if vlans.contains(VlanId::MIN) {
            return Err("VLAN 1 cannot be removed".to_owned());
        }
        let bears = |memory: &Memory| match memory.mode {
            Mode::Access => memory.access,
            Mode::Hybrid => memory.pvid,
            Mode::Trunk => memory.native,
        };
        let bearer = self.config.ports.iter().zip(&self.ports).find(|(_, memory)| vlans.contains(bears(memory)));
        if let Some((port, memory)) = bearer {
            return Err(format!(
                "VLAN {} is still the PVID of port {}, so it cannot be removed",
                bears(memory),
                port.name
            ));
        }
        for vlan in vlans.iter() {
            self.config.vlans.remove(vlan);
            for port in &mut self.config.ports {
                port.tagged.remove(vlan);
                port.untagged.remove(vlan);
            }
        }
        Ok(())
    }

    /// Refuses VLANs that nobody made.
    pub(crate) fn must_exist(&self, vlans: &VlanSet) -> Result<(), String> {
        match vlans.iter().find(|vlan| *vlan != VlanId::MIN && !self.config.vlans.contains(*vlan)) {
            Some(vlan) => Err(format!("VLAN {vlan} does not exist here: nothing above makes it")),
            None => Ok(()),
        }
    }

    /// Makes the ports members of VLANs.
    pub(crate) fn join(&mut self, vlans: &VlanSet, tag: Tag) -> Result<(), String> {
        self.must_exist(vlans)?;
        self.each_with_members(|port, _| {
            for vlan in vlans.iter() {
                let (to, from) = match tag {
                    Tag::Keep => (&mut port.tagged, &mut port.untagged),
                    Tag::Strip => (&mut port.untagged, &mut port.tagged),
                };
                from.remove(vlan);
                to.insert(vlan);
            }
        })
    }

    /// Takes the ports out of VLANs.
    pub(crate) fn leave(&mut self, vlans: &VlanSet) -> Result<(), String> {
        self.each_with_members(|port, _| {
            for vlan in vlans.iter() {
                port.tagged.remove(vlan);
                port.untagged.remove(vlan);
            }
        })
    }

    /// Changes the tag of frames that leave in VLANs that the port is a member of; others are not affected.
    pub(crate) fn set_tag(&mut self, vlans: &VlanSet, tag: Tag) -> Result<(), String> {
        self.each_with_members(|port, _| {
            for vlan in vlans.iter().filter(|vlan| port.is_member(*vlan)).collect::<Vec<_>>() {
                let (to, from) = match tag {
                    Tag::Keep => (&mut port.tagged, &mut port.untagged),
                    Tag::Strip => (&mut port.untagged, &mut port.tagged),
                };
                from.remove(vlan);
                to.insert(vlan);
            }
        })
    }

    /// Sets the VLAN of untagged frames.
    pub(crate) fn set_pvid(&mut self, vlan: VlanId) -> Result<(), String> {
        self.must_exist(&[vlan].into_iter().collect())?;
        self.each_with_members(|_, memory| memory.pvid = vlan)
    }

    /// Sets the VLAN of a port in access mode.
    pub(crate) fn set_access(&mut self, vlan: VlanId) -> Result<(), String> {
        self.must_exist(&[vlan].into_iter().collect())?;
        self.each_with_members(|_, memory| memory.access = vlan)
    }

    /// Allows the ports VLANs for when they are trunks.
    pub(crate) fn allow(&mut self, vlans: &VlanSet) -> Result<(), String> {
        self.each_with_members(|_, memory| memory.allowed.extend(vlans.iter()))
    }

    /// Forbids the ports VLANs for when they are trunks.
    pub(crate) fn forbid(&mut self, vlans: &VlanSet) -> Result<(), String> {
        self.each_with_members(|_, memory| {
            for vlan in vlans.iter() {
                memory.allowed.remove(vlan);
            }
        })
    }

    /// Sets the PVID of ports for when they are trunks.
    pub(crate) fn set_native(&mut self, vlan: VlanId) -> Result<(), String> {
        self.each_with_members(|_, memory| memory.native = vlan)
    }

    /// Lets untagged frames in, or only tagged ones.
    pub(crate) fn set_frames(&mut self, frames: Frames) -> Result<(), String> {
        self.each_with_members(|_, memory| memory.frames = frames)
    }

    /// Lets tagged frames of other VLANs in, or not.
    pub(crate) fn set_ingress_filter(&mut self, filter: IngressFilter) -> Result<(), String> {
        self.each(|port, _| port.ingress_filter = filter)
    }

    /// Sets how the ports treat VLANs.
    pub(crate) fn set_mode(&mut self, mode: Mode) -> Result<(), String> {
        self.each_with_members(|_, memory| memory.mode = mode)
    }

    /// Puts the ports into service or out of it.
    pub(crate) fn set_admin(&mut self, admin: Admin) -> Result<(), String> {
        self.each(|port, _| port.admin = admin)
    }

    /// Sets link-level flow control.
    pub(crate) fn set_flow_control(&mut self, mode: FlowControlMode) -> Result<(), String> {
        self.each(|port, _| port.flow_control = mode.clone())
    }

    /// Has the ports let out no floods of a kind.
    pub(crate) fn block(&mut self, kind: FloodKind) -> Result<(), String> {
        self.each(|port, _| port.blocked = Some(port.blocked.unwrap_or_default().with(kind)))
    }

    /// Has the ports let out floods of a kind again.
    pub(crate) fn unblock(&mut self, kind: FloodKind) -> Result<(), String> {
        self.each(|port, _| port.blocked = Some(port.blocked.unwrap_or_default().without(FloodSet::NONE.with(kind))))
    }

    /// Limits floods of a kind that the ports admit, or lifts the limit.
    pub(crate) fn set_storm_limit(&mut self, kind: FloodKind, limit: Option<StormLimit>) -> Result<(), String> {
        self.each(|port, _| port.storm_limits.get_or_insert_default()[kind as usize] = limit)
    }

    /// Turns LLDP on or off.
    pub(crate) fn set_lldp(&mut self, lldp: Lldp) {
        self.config.lldp = Some(lldp);
    }

    /// Does what a command outside any section says of snooping; refuses one that is none.
    pub(crate) fn set_snooping(&mut self, target: Target, words: &[&str]) -> Result<(), String> {
        snooping::tell(target, words, &mut self.config.snooping)
    }

    /// Turns spanning tree on or off.
    pub(crate) fn set_spanning_tree(&mut self, spanning_tree: SpanningTree) {
        self.config.spanning_tree = spanning_tree;
    }

    /// Enters an address statically; the port must be a member of the VLAN, as switches demand.
    pub(crate) fn set_entry(&mut self, vlan: VlanId, mac: Mac, slot: Slot) -> Result<(), String> {
        self.must_exist(&[vlan].into_iter().collect())?;
        let port = self.config.port(slot);
        if !port.is_member(vlan) {
            return Err(format!("port {} is no member of VLAN {vlan}, so it can hold no address there", port.name));
        }
        self.config.entries.insert((vlan, mac), slot);
        Ok(())
    }

    /// Enters an address statically on the one port that commands are about.
    pub(crate) fn set_entry_here(&mut self, vlan: VlanId, mac: Mac) -> Result<(), String> {
        match self.here[..] {
            [slot] => self.set_entry(vlan, mac, slot),
            _ => Err("an address belongs to one port, and this is said outside any".to_owned()),
        }
    }

    /// Removes a static address.
    pub(crate) fn unset_entry(&mut self, vlan: VlanId, mac: Mac) -> Result<(), String> {
        match self.config.entries.remove(&(vlan, mac)) {
            Some(_) => Ok(()),
            None => Err(format!("there is no static entry for {mac} in VLAN {vlan} to remove")),
        }
    }

    /// As [`each`](Self::each), for settings of VLANs, which members may have from their LAG.
    fn each_with_members(&mut self, change: impl FnMut(&mut PortConfig, &mut Memory)) -> Result<(), String> {
        let here = self.here.clone();
        if self.membership == Membership::Mirrors {
            let members: Vec<Slot> = here.iter().flat_map(|lag| self.config.members_of(*lag)).collect();
            self.here.extend(members);
        }
        let outcome = self.each(change);
        self.here = here;
        outcome
    }

    fn each(&mut self, mut change: impl FnMut(&mut PortConfig, &mut Memory)) -> Result<(), String> {
        if self.here.is_empty() {
            return Err("this is a command for a port, and no port is entered".to_owned());
        }
        for slot in &self.here {
            change(&mut self.config.ports[slot.index()], &mut self.ports[slot.index()]);
        }
        Ok(())
    }
}

/// What is wrong where a port joins a LAG that the state does not have.
pub(crate) fn no_such_lag(number: &str) -> String {
    format!("the switch has no port lag{number}: LAG {number} is not in the plan")
}

/// LAGs have the flow control of their members.
pub(crate) fn take_flow_control(config: &mut SwitchConfig) {
    for lag in lags(config).collect::<Vec<_>>() {
        let member = config.members_of(lag).next();
        let mode = member.map_or(FlowControlMode::Off, |member| config.port(member).flow_control.clone());
        config.ports[lag.index()].flow_control = mode;
    }
}

/// Whether a port is in VLAN 1 alone, without a tag.
fn is_bare(port: &PortConfig) -> bool {
    port.tagged.is_empty() && port.untagged.iter().eq([VlanId::MIN])
}

/// Whether nobody has told a port anything about VLANs.
fn is_factory(port: &PortConfig) -> bool {
    port.tagged.is_empty() && port.pvid == Some(VlanId::MIN) && port.untagged.iter().eq([VlanId::MIN])
}
