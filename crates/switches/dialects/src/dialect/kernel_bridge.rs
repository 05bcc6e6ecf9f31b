//! The kernel's view of a bridge's ports while it is told things, by whatever tool: shared by the languages that end in a Linux bridge.

use fabric::{Admin, FloodKind, FloodSet, FlowControlMode, SpanningTree, VlanId, VlanSet};

use super::{is_member, lags, stands};
use crate::{
    console::take_flow_control,
    text::{mac, unknown, vlan, vlans},
};
use switch_model::{PortConfig, PortLearning, Slot, SwitchConfig};

/// The bridge device.
pub(super) const BRIDGE: &str = "espalier";

/// The kernel's word for whether a port lets floods of a kind out.
pub(super) fn flood_word(kind: FloodKind) -> &'static str {
    match kind {
        FloodKind::UnknownUnicast => "flood",
        FloodKind::Multicast => "mcast_flood",
        FloodKind::Broadcast => "bcast_flood",
    }
}

/// The kernel's view of the ports while it is told things; shared by the dialects that end in a Linux bridge.
pub(super) struct Ports<'a> {
    /// Whether the bridge is there.
    pub(super) bridge: bool,
    /// The VLAN that the bridge puts ports into that it takes in.
    pub(super) default_pvid: Option<VlanId>,
    /// LAGs that are there.
    pub(super) bonds: Vec<Slot>,
    pub(super) config: &'a mut SwitchConfig,
}

impl<'a> Ports<'a> {
    /// The ports of a switch in this state.
    pub(super) fn new(bridge: bool, default_pvid: Option<VlanId>, config: &'a mut SwitchConfig) -> Self {
        let bonds = lags(config).filter(|lag| stands(config, *lag)).collect();
        Self { bridge, default_pvid, bonds, config }
    }
}

impl Ports<'_> {
    /// VLANs need no making in the kernel: those that exist are those that ports are in.
    pub(super) fn finish(self) {
        take_flow_control(self.config);
        self.config.vlans = self.config.memberships();
        self.config.vlans.remove(VlanId::MIN);
    }

    pub(super) fn slot(&self, name: &str) -> Result<Slot, String> {
        self.config.slot(name).ok_or_else(|| format!("the switch has no port {name}"))
    }

    fn port(&mut self, name: &str) -> Result<&mut PortConfig, String> {
        let slot = self.slot(name)?;
        Ok(&mut self.config.ports[slot.index()])
    }

    /// A line of `bridge`, without the tool's name.
    pub(super) fn bridge(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["vlan", "add", "dev", name, "vid", list, flags @ ..] => {
                let range = vlans(list)?;
                let has = |flag: &str| flags.contains(&flag);
                if let Some(flag) = flags.iter().find(|flag| !["pvid", "untagged", "master"].contains(flag)) {
                    return Err(format!("{flag:?} is no flag of a VLAN"));
                }
                if has("pvid") && range.len() > 1 {
                    return Err("a port has one PVID, not a range".to_owned());
                }
                let port = self.port(name)?;
                for vlan in range.iter() {
                    let (to, from) = if has("untagged") {
                        (&mut port.untagged, &mut port.tagged)
                    } else {
                        (&mut port.tagged, &mut port.untagged)
                    };
                    from.remove(vlan);
                    to.insert(vlan);
                    if has("pvid") {
                        port.pvid = Some(vlan);
                    } else if port.pvid == Some(vlan) {
                        port.pvid = None;
                    }
                }
                Ok(())
            }
            ["vlan", "del", "dev", name, "vid", list] => {
                let range = vlans(list)?;
                let port = self.port(name)?;
                for vlan in range.iter() {
                    if !port.tagged.remove(vlan) && !port.untagged.remove(vlan) {
                        return Err(format!("port {name} is not in VLAN {vlan}"));
                    }
                    port.pvid = port.pvid.filter(|pvid| *pvid != vlan);
                }
                Ok(())
            }
            ["fdb", verb @ ("add" | "replace" | "del"), address, "dev", name, rest @ ..] => {
                let (address, slot) = (mac(address)?, self.slot(name)?);
                let [flags @ .., "vlan", number] = rest else {
                    return Err("without a VLAN the entry is for every VLAN: name one".to_owned());
                };
                let number = vlan(number)?;
                if !flags.contains(&"master") {
                    return Err("without \"master\" the entry is not the bridge's".to_owned());
                }
                if !flags.contains(&"static") && *verb != "del" {
                    return Err("without \"static\" the entry ends in the bridge itself".to_owned());
                }
                if *verb == "del" {
                    return match self.config.entries.get(&(number, address)) {
                        Some(there) if *there == slot => {
                            self.config.entries.remove(&(number, address));
                            Ok(())
                        }
                        _ => Err(format!("there is no entry for {address} in VLAN {number} to {name}")),
                    };
                }
                if !self.config.port(slot).is_member(number) {
                    return Err(format!("port {name} is not in VLAN {number}"));
                }
                self.config.entries.insert((number, address), slot);
                Ok(())
            }
            _ => unknown(words),
        }
    }

    /// A line of `ip`, without the tool's name.
    pub(super) fn ip(&mut self, words: &[&str]) -> Result<(), String> {
        if let Some(done) = self.bond(words) {
            return done;
        }
        match words {
            ["link", "add", "name", BRIDGE, "type", "bridge", options @ ..] => {
                let has = |name: &str, value: &str| {
                    options.chunks(2).any(|pair| pair.first() == Some(&name) && pair.get(1) == Some(&value))
                };
                if !has("vlan_filtering", "1") {
                    return Err("a bridge without vlan_filtering 1 knows no VLANs".to_owned());
                }
                if !has("vlan_default_pvid", "0") {
                    return Err("without vlan_default_pvid 0 every port joins VLAN 1".to_owned());
                }
                if !has("mcast_snooping", "0") {
                    return Err("without mcast_snooping 0 multicasts reach only ports that asked for them".to_owned());
                }
                self.config.spanning_tree = match options.chunks(2).rfind(|pair| pair[0] == "stp_state") {
                    None | Some(["stp_state", "0"]) => SpanningTree::Off,
                    Some(["stp_state", "1"]) => SpanningTree::On,
                    Some(other) => return Err(format!("{}: stp_state is 0 or 1", other.join(" "))),
                };
                self.bridge = true;
                Ok(())
            }
            ["link", "set", "dev", BRIDGE, "up"] => Ok(()),
            ["link", "set", "dev", BRIDGE, "type", "bridge", "stp_state", state @ ("0" | "1")] => {
                self.config.spanning_tree = if *state == "1" { SpanningTree::On } else { SpanningTree::Off };
                Ok(())
            }
            ["link", "set", "dev", name, "up"] => {
                self.port(name)?.admin = Admin::Up;
                Ok(())
            }
            ["link", "set", "dev", name, "down"] => {
                self.port(name)?.admin = Admin::Down;
                Ok(())
            }
            ["link", "set", "dev", name, "master", BRIDGE] => {
                if !self.bridge {
                    return Err(format!("there is no bridge {BRIDGE} yet"));
                }
                let (slot, default_pvid) = (self.slot(name)?, self.default_pvid);
                if self.config.port(slot).lag_number().is_some() && !self.bonds.contains(&slot) {
                    return Err(format!("there is no bond {name} yet"));
                }
                if is_member(self.config.port(slot)) {
                    return Err(format!(
                        "port {name} is a member of a bond, which is a port of the bridge in its place"
                    ));
                }
                let port = &mut self.config.ports[slot.index()];
                // A port learns until it is told not to.
                port.learning = PortLearning::On;
                // A port in no VLAN may be one that the bridge did not have; to one that it has, nothing happens.
                if let Some(vlan) = default_pvid.filter(|_| port.members().is_empty()) {
                    port.untagged.insert(vlan);
                    port.pvid = Some(vlan);
                }
                Ok(())
            }
            ["link", "set", "dev", name, "addrgenmode", "none"] => self.slot(name).map(|_| ()),
            ["link", "set", "dev", name, "type", "bridge_slave", "learning", state @ ("on" | "off")] => {
                self.port(name)?.learning = if *state == "on" { PortLearning::On } else { PortLearning::Off };
                Ok(())
            }
            ["link", "set", "dev", name, "type", "bridge_slave", word, state @ ("on" | "off")] => {
                let Some(kind) = FloodKind::ALL.iter().copied().find(|kind| flood_word(*kind) == *word) else {
                    return unknown(words);
                };
                self.set_flood(name, kind, *state == "on")
            }
            _ => unknown(words),
        }
    }

    /// Whether a port lets floods of a kind out.
    pub(super) fn set_flood(&mut self, name: &str, kind: FloodKind, out: bool) -> Result<(), String> {
        let port = self.port(name)?;
        let others = port.blocked.unwrap_or_default().without(FloodSet::NONE.with(kind));
        port.blocked = Some(if out { others } else { others.with(kind) });
        Ok(())
    }

    /// A line of `ethtool -A`, from the device's name on.
    pub(super) fn pause(&mut self, words: &[&str]) -> Result<(), String> {
        let (name, mode) = match words {
            [name, "rx", "on", "tx", "on", ..] => (name, FlowControlMode::Pause),
            [name, "rx", "off", "tx", "off", ..] => (name, FlowControlMode::Off),
            _ => return Err("PAUSE is wanted in both directions or in none".to_owned()),
        };
        if self.config.port(self.slot(name)?).lag_number().is_some() {
            return Err(format!("{name} is a bond, which has no PAUSE of its own: its members have it"));
        }
        self.port(name)?.flow_control = mode;
        Ok(())
    }

    /// Takes a port out of the bridge, with its VLANs and entries.
    pub(super) fn leave_bridge(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        self.config.entries.retain(|_, leads| *leads != slot);
        let port = self.port(name)?;
        (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
        port.blocked = Some(FloodSet::NONE);
        Ok(())
    }

    /// Takes the bridge away, and every port out of it.
    pub(super) fn delete(&mut self) {
        self.bridge = false;
        self.config.entries.clear();
        for port in &mut self.config.ports {
            (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
            port.blocked = Some(FloodSet::NONE);
        }
    }
}
