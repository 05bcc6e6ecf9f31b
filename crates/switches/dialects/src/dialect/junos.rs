//! Juniper Junos with the enhanced layer-2 language (ELS), as `set` and `delete` commands: hosts tag their own frames.
//!
//! ```text
//!   set vlans espalier-2 vlan-id 2
//!   delete interfaces ge-0/0/1 unit 0
//!   set interfaces ge-0/0/1 unit 0 family ethernet-switching interface-mode trunk
//!   set interfaces ge-0/0/1 unit 0 family ethernet-switching vlan members 2-9
//!   set vlans espalier-2 switch-options interface ge-0/0/1.0 static-mac 02:00:00:00:00:01
//! ```
//! Everything takes effect at once, at the commit, so the order of lines does not matter to frames. `delete … vlan members`
//! takes the whole list away, which is how a list is shortened: a part of a range cannot be deleted. A LAG is `ae3`, of which there are
//! as many as the chassis says; its members have no unit. Source: vendor's
//! guides; nobody has tried it here.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged, absent,
    commands::{Commands, Entry, give},
    is_word, lags, read_only, snooping, stands,
};
use crate::{
    Target,
    names::{PortIndex, lag_spelt, spelt},
    text::{LineError, interpret, mac, unknown, vlan, vlans},
};
use fabric::SpanningTree;
use switch_model::{
    LagMembership, PortConfig, Slot, Snooping, SwitchConfig,
    change::{Change, PortChange},
};

/// The language.
pub(super) struct Junos;

impl Dialect for Junos {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "set",
            untagged: Untagged::Native,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::NONE,
            storm_control: StormControl::Lacks,
            lags: Lags::Made,
            lldp: Some(["set protocols lldp interface all", "delete protocols lldp interface all"]),
            snooping: SnoopingWords::new(
                ["set protocols igmp-snooping vlan all", "delete protocols igmp-snooping"],
                Some(["set protocols mld-snooping vlan all", "delete protocols mld-snooping"]),
                &[Snooping::Igmp],
            ),
            port_name: (is_word, "ge-0/0/1"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        let mut config = SwitchConfig::out_of_the_box(ports);
        // A new LAG has no unit, and so no VLAN.
        for port in config.ports.iter_mut().filter(|port| port.lag_number().is_some()) {
            (port.pvid, port.untagged) = (None, VlanSet::new());
        }
        config
    }

    fn write(&self, change: &Change<'_>, to: &mut Output<'_>) -> io::Result<()> {
        give(self, change, to)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let mut reader = Reader::new(config);
            interpret(text, "#", |words| reader.line(words))?;
            let line = text.lines().count().max(1);
            reader.commit().map_err(|message| vec![LineError { line, message }])
        })
    }
}

impl Commands for Junos {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "set interfaces {} disable", spelt(Target::Junos, port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "delete interfaces {} disable", spelt(Target::Junos, port)))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        vlans.iter().try_for_each(|vlan| writeln!(out, "set vlans espalier-{vlan} vlan-id {vlan}"))
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        vlans.iter().try_for_each(|vlan| writeln!(out, "delete vlans espalier-{vlan}"))
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        let name = spelt(Target::Junos, change.name());
        let unit = format!("interfaces {name} unit 0 family ethernet-switching");
        let is_fresh = change.before.untagged.contains(VlanId::MIN);
        if is_fresh {
            writeln!(out, "delete interfaces {name} unit 0\nset {unit} interface-mode trunk")?;
        } else if !change.leave.is_empty() {
            writeln!(out, "delete {unit} vlan members")?;
        }
        let members = change.after.members();
        let joined: VlanSet = if is_fresh || !change.leave.is_empty() {
            members
        } else {
            members.iter().filter(|vlan| !change.before.is_member(*vlan)).collect()
        };
        for (first, last) in joined.runs() {
            let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
            writeln!(out, "set {unit} vlan members {range}")?;
        }
        match (change.pvid(), is_fresh) {
            (Some(Some(native)), _) => writeln!(out, "set interfaces {name} native-vlan-id {native}")?,
            (Some(None), false) => writeln!(out, "delete interfaces {name} native-vlan-id")?,
            _ => {}
        }
        let options = match change.after.lag_number() {
            Some(_) => "aggregated-ether-options",
            None => "ether-options",
        };
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, "set interfaces {name} {options} flow-control"),
            Some(_) => writeln!(out, "set interfaces {name} {options} no-flow-control"),
            None => Ok(()),
        }
    }

    fn make_lag(&self, out: &mut dyn Folder, lag: Slot, after: &SwitchConfig) -> io::Result<()> {
        let name = spelt(Target::Junos, &after.port(lag).name);
        writeln!(out, "set chassis aggregated-devices ethernet device-count {}", devices(after))?;
        writeln!(out, "set interfaces {name} aggregated-ether-options lacp active")?;
        writeln!(out, "set interfaces {name} unit 0 family ethernet-switching interface-mode trunk")
    }

    fn remove_lag(&self, out: &mut dyn Folder, lag: &str) -> io::Result<()> {
        writeln!(out, "delete interfaces {}", spelt(Target::Junos, lag))
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let (port, lag) = (&port.name, spelt(Target::Junos, &lag.name));
        writeln!(out, "delete interfaces {port} unit 0\nset interfaces {port} ether-options 802.3ad {lag}")
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        let port = &port.name;
        writeln!(out, "delete interfaces {port} ether-options 802.3ad")?;
        writeln!(out, "set interfaces {port} unit 0 family ethernet-switching interface-mode trunk")
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(
                out,
                "set vlans espalier-{vlan} switch-options interface {}.0 static-mac {mac}",
                spelt(Target::Junos, port)
            )
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(
                out,
                "delete vlans espalier-{vlan} switch-options interface {}.0 static-mac {mac}",
                spelt(Target::Junos, port)
            )
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "delete protocols rstp")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "set protocols rstp")
    }
}

/// How many aggregated devices there have to be: they are `ae0` and so on.
fn devices(config: &SwitchConfig) -> u16 {
    let there = lags(config).filter(|lag| stands(config, *lag)).filter_map(|lag| config.port(lag).lag_number());
    there.map(|number| number.get() + 1).max().unwrap_or(0)
}

/// What a port is told, before the commit.
struct Unit {
    /// Whether it is there.
    exists: bool,
    trunk: bool,
    native: Option<VlanId>,
    members: VlanSet,
}

impl Unit {
    /// What is set of its switching.
    fn set(&mut self, words: &[&str]) -> Result<(), String> {
        self.exists = true;
        match words {
            [] => {}
            ["interface-mode", "trunk"] => self.trunk = true,
            ["interface-mode", "access"] => self.trunk = false,
            ["vlan", "members", list] => self.members.extend(vlans(list)?.iter()),
            _ => return unknown(words),
        }
        Ok(())
    }
}

struct Reader<'a> {
    config: &'a mut SwitchConfig,
    units: Vec<Unit>,
    ids: BTreeMap<String, VlanId>,
    /// Aggregated devices that there may be.
    devices: u16,
    /// LAGs that are there, and those that speak LACP.
    there: BTreeSet<Slot>,
    lacp: BTreeSet<Slot>,
}

impl<'a> Reader<'a> {
    fn new(config: &'a mut SwitchConfig) -> Self {
        let unit = |port: &PortConfig| {
            let exists = !matches!(port.lag, LagMembership::Of(_));
            let trunk = exists && !port.untagged.contains(VlanId::MIN);
            Unit { exists, trunk, native: port.pvid.filter(|_| trunk), members: port.members() }
        };
        let units = config.ports.iter().map(unit).collect();
        let ids = config.vlans.iter().map(|vlan| (format!("espalier-{vlan}"), vlan)).collect();
        let there: BTreeSet<Slot> = lags(config).filter(|lag| stands(config, *lag)).collect();
        let (devices, lacp) = (devices(config), there.clone());
        Self { config, units, ids, devices, there, lacp }
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["set", "chassis", "aggregated-devices", "ethernet", "device-count", count] => {
                self.devices = count.parse().map_err(|_| format!("{count:?} is no number of devices"))?;
                Ok(())
            }
            ["set", "interfaces", name, rest @ ..] if lag_spelt(Some(Target::Junos), name).is_some() => {
                self.lag(name, rest)
            }
            ["delete", "interfaces", name] => {
                let slot = self.slot(name)?;
                if !self.there.remove(&slot) {
                    return unknown(words);
                }
                self.lacp.remove(&slot);
                self.config.ports[slot.index()] = absent(self.config.port(slot));
                Ok(())
            }
            ["set", "interfaces", name, "ether-options" | "gigether-options", "802.3ad", lag] => {
                let (slot, lag) = (self.slot(name)?, self.slot(lag)?);
                if self.config.port(lag).lag_number().is_none() {
                    return Err(format!("port {name} can join an aggregated device alone"));
                }
                self.config.ports[slot.index()].lag = LagMembership::Of(lag);
                Ok(())
            }
            ["delete", "interfaces", name, "ether-options" | "gigether-options", "802.3ad"] => {
                let slot = self.slot(name)?;
                self.config.ports[slot.index()].lag = LagMembership::Alone;
                Ok(())
            }
            ["set", "interfaces", name, rest @ ..] => {
                let slot = self.slot(name)?.index();
                let (port, unit) = (&mut self.config.ports[slot], &mut self.units[slot]);
                match rest {
                    ["disable"] => port.admin = Admin::Down,
                    ["native-vlan-id", number] => unit.native = Some(vlan(number)?),
                    ["ether-options" | "gigether-options", "flow-control"] => {
                        port.flow_control = FlowControlMode::Pause;
                    }
                    ["ether-options" | "gigether-options", "no-flow-control"] => {
                        port.flow_control = FlowControlMode::Off;
                    }
                    ["unit", "0", "family", "ethernet-switching", rest @ ..] => return unit.set(rest),
                    _ => return unknown(words),
                }
                Ok(())
            }
            ["delete", "interfaces", name, rest @ ..] => {
                let slot = self.slot(name)?.index();
                let (port, unit) = (&mut self.config.ports[slot], &mut self.units[slot]);
                match rest {
                    ["disable"] => port.admin = Admin::Up,
                    ["native-vlan-id"] => unit.native = None,
                    ["unit", "0"] => {
                        *unit = Unit { exists: false, trunk: false, native: unit.native, members: VlanSet::new() }
                    }
                    ["unit", "0", "family", "ethernet-switching", "vlan", "members"] => unit.members = VlanSet::new(),
                    _ => return unknown(words),
                }
                Ok(())
            }
            ["set", "vlans", name, "vlan-id", number] => {
                let number = vlan(number)?;
                self.ids.insert((*name).to_owned(), number);
                self.config.vlans.insert(number);
                self.config.vlans.remove(VlanId::MIN);
                Ok(())
            }
            ["delete", "vlans", name] => {
                let number = self.ids.remove(*name).ok_or_else(|| format!("there is no VLAN called {name}"))?;
                self.config.vlans.remove(number);
                // Whatever stands below the VLAN goes with it.
                self.config.entries.retain(|(vlan, _), _| *vlan != number);
                Ok(())
            }
            ["set", "vlans", name, "switch-options", "interface", port, "static-mac", address] => {
                let (number, slot) = (self.id(name)?, self.unit_slot(port)?);
                self.config.entries.insert((number, mac(address)?), slot);
                Ok(())
            }
            ["delete", "vlans", name, "switch-options", "interface", port, "static-mac", address] => {
                let (number, slot, address) = (self.id(name)?, self.unit_slot(port)?, mac(address)?);
                match self.config.entries.remove(&(number, address)) {
                    Some(there) if there == slot => Ok(()),
                    _ => Err(format!("there is no static entry for {address} in VLAN {number} to {port}")),
                }
            }
            ["set", "protocols", "lldp", "interface", "all"] => {
                self.config.lldp = Some(Lldp::On);
                Ok(())
            }
            ["delete", "protocols", "lldp"] | ["delete", "protocols", "lldp", "interface", "all"] => {
                self.config.lldp = Some(Lldp::Off);
                Ok(())
            }
            ["delete", "protocols", "rstp" | "mstp" | "vstp"] => {
                self.config.spanning_tree = SpanningTree::Off;
                Ok(())
            }
            ["set", "protocols", "rstp" | "mstp" | "vstp", ..] => {
                self.config.spanning_tree = SpanningTree::On;
                Ok(())
            }
            _ => snooping::tell(Target::Junos, words, &mut self.config.snooping),
        }
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        let index = PortIndex::new(Some(Target::Junos), self.config.ports.iter().map(|port| port.name.as_str()));
        index.said(name).map(Slot::new).ok_or_else(|| format!("the switch has no port {name}"))
    }

    /// What is set of an aggregated device, which comes into being so.
    fn lag(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let slot = self.slot(name)?;
        let (port, unit) = (&mut self.config.ports[slot.index()], &mut self.units[slot.index()]);
        if self.there.insert(slot) {
            *port = PortConfig { admin: Admin::Up, ..absent(port) };
            *unit = Unit { exists: false, trunk: false, native: None, members: VlanSet::new() };
        }
        match words {
            ["disable"] => port.admin = Admin::Down,
            ["native-vlan-id", number] => unit.native = Some(vlan(number)?),
            ["aggregated-ether-options", "lacp", "active"] => {
                self.lacp.insert(slot);
            }
            ["aggregated-ether-options", "flow-control"] => port.flow_control = FlowControlMode::Pause,
            ["aggregated-ether-options", "no-flow-control"] => port.flow_control = FlowControlMode::Off,
            ["unit", "0", "family", "ethernet-switching", rest @ ..] => return unit.set(rest),
            _ => return unknown(words),
        }
        Ok(())
    }

    /// The port of a logical interface such as `ge-0/0/1.0`.
    fn unit_slot(&self, name: &str) -> Result<Slot, String> {
        let port = name.strip_suffix(".0").ok_or_else(|| format!("{name}: only unit 0 of a port is switched"))?;
        self.slot(port)
    }

    fn id(&self, name: &str) -> Result<VlanId, String> {
        self.ids.get(name).copied().ok_or_else(|| format!("there is no VLAN called {name}"))
    }

    fn commit(self) -> Result<(), String> {
        for (port, unit) in self.config.ports.iter().zip(&self.units) {
            let LagMembership::Of(slot) = port.lag else { continue };
            let (name, lag) = (&port.name, self.config.port(slot));
            let number = lag.lag_number().map_or(0, |number| number.get());
            if unit.exists {
                return Err(format!("port {name} has a unit, so it cannot be a member of ae{number}"));
            }
            if !self.there.contains(&slot) || !self.lacp.contains(&slot) {
                return Err(format!("ae{number} does not exist, or speaks no LACP"));
            }
            if number >= self.devices {
                return Err(format!("there are {} aggregated devices, from ae0 on: no ae{number}", self.devices));
            }
        }
        for (port, unit) in self.config.ports.iter_mut().zip(&self.units) {
            if matches!(port.lag, LagMembership::Of(_)) || (port.lag_number().is_some() && !unit.exists) {
                (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
                continue;
            }
            let unmade = unit.members.iter().find(|vlan| *vlan != VlanId::MIN && !self.config.vlans.contains(*vlan));
            if let Some(vlan) = unmade {
                return Err(format!("port {} is a member of VLAN {vlan}, which nothing makes", port.name));
            }
            let native = if unit.trunk {
                unit.native.filter(|native| unit.members.contains(*native))
            } else {
                Some(unit.members.iter().next().unwrap_or(VlanId::MIN))
            };
            port.pvid = native;
            port.untagged = native.into_iter().collect();
            port.tagged = unit.members.iter().filter(|vlan| unit.trunk && Some(*vlan) != native).collect();
        }
        Ok(())
    }
}
