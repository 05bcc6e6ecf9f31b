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
//! takes the whole list away, which is how a list is shortened: a part of a range cannot be deleted. Source: vendor's
//! guides; nobody has tried it here.

use std::{collections::BTreeMap, io};

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, TextFile, Traits, Untagged,
    commands::{Commands, Entry, give},
    is_word, read_only,
};
use crate::text::{LineError, interpret, mac, unknown, vlan, vlans};
use fabric::SpanningTree;
use switch_model::{
    PortConfig, Slot, SwitchConfig,
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
            storm_control: Ability::Lacks,
            lags: Lags::Lacks,
            lldp: Some(["set protocols lldp interface all", "delete protocols lldp interface all"]),
            port_name: (is_word, "ge-0/0/1"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::out_of_the_box(ports)
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
        ports.iter().try_for_each(|port| writeln!(out, "set interfaces {port} disable"))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "delete interfaces {port} disable"))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        vlans.iter().try_for_each(|vlan| writeln!(out, "set vlans espalier-{vlan} vlan-id {vlan}"))
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        vlans.iter().try_for_each(|vlan| writeln!(out, "delete vlans espalier-{vlan}"))
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        let name = change.name();
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
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, "set interfaces {name} ether-options flow-control"),
            Some(_) => writeln!(out, "set interfaces {name} ether-options no-flow-control"),
            None => Ok(()),
        }
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "set vlans espalier-{vlan} switch-options interface {port}.0 static-mac {mac}")
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "delete vlans espalier-{vlan} switch-options interface {port}.0 static-mac {mac}")
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "delete protocols rstp")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "set protocols rstp")
    }
}

/// What a port is told, before the commit.
struct Unit {
    trunk: bool,
    native: Option<VlanId>,
    members: VlanSet,
}

struct Reader<'a> {
    config: &'a mut SwitchConfig,
    units: Vec<Unit>,
    ids: BTreeMap<String, VlanId>,
}

impl<'a> Reader<'a> {
    fn new(config: &'a mut SwitchConfig) -> Self {
        let unit = |port: &PortConfig| {
            let trunk = !port.untagged.contains(VlanId::MIN);
            Unit { trunk, native: port.pvid.filter(|_| trunk), members: port.members() }
        };
        let units = config.ports.iter().map(unit).collect();
        let ids = config.vlans.iter().map(|vlan| (format!("espalier-{vlan}"), vlan)).collect();
        Self { config, units, ids }
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
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
                    ["unit", "0", "family", "ethernet-switching", rest @ ..] => match rest {
                        [] => {}
                        ["interface-mode", "trunk"] => unit.trunk = true,
                        ["interface-mode", "access"] => unit.trunk = false,
                        ["vlan", "members", list] => unit.members.extend(vlans(list)?.iter()),
                        _ => return unknown(words),
                    },
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
                    ["unit", "0"] => *unit = Unit { trunk: false, native: unit.native, members: VlanSet::new() },
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
            _ => unknown(words),
        }
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        self.config.slot(name).ok_or_else(|| format!("the switch has no port {name}"))
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
        for (port, unit) in self.config.ports.iter_mut().zip(&self.units) {
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
