//! A VLAN-aware Linux bridge as a shell script of iproute2 batches.
//!
//! ```text
//!   ip -batch - <<'EOF'                                bridge -batch - <<'EOF'
//!   link add name espalier type bridge …               vlan add dev p1 vid 2-9 untagged
//!   link set dev p1 master espalier                    vlan add dev p1 vid 2 pvid untagged
//!   EOF                                                fdb replace 02:… dev p1 master static vlan 2
//! ```
//! The kernel's rules: a bridge filters VLANs only if told so; a port it takes in joins the default PVID's VLAN, none here;
//! `vlan add` sets the flags anew, so saying it without `pvid` takes the PVID away; an entry that is not `static` is the
//! bridge's own address, and without `master` it is the port's. A port lets all floods out until it is told not to, and
//! again when it has left the bridge. LAGs are bonding devices, as [`super::bond`] says. `set -e` stops at the first refusal, with ports still shut.
//! Tried on Debian's kernel (`make test SUITES=vm`).

use std::{io, io::Write as _};

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, TextFile, Traits, Untagged, bond, lags, lags_made,
    read_only, stands,
};
use crate::console::take_flow_control;
use crate::text::{LineError, interpret, mac, unknown, vlan, vlans};
use fabric::SpanningTree;
use switch_model::{
    LagMembership, PortConfig, PortLearning, Slot, SwitchConfig,
    change::{Change, PortChange, Stage},
};

/// The bridge device.
const BRIDGE: &str = "espalier";

/// The language.
pub(super) struct LinuxBridge;

/// Whether the kernel takes this as a device's name.
pub(super) fn is_device(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != BRIDGE
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+@".contains(c))
}

impl Dialect for LinuxBridge {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "sh",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::AsTold,
            blocks: FloodSet::ALL,
            storm_control: Ability::Lacks,
            lags: Lags::Made,
            lldp: None,
            port_name: (is_device, "swp1, of at most 15 bytes"),
            basis: Basis::Tested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::blank(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        write(change, None, out)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let mut script = Script::new(Ports::new(true, None, config));
            let outcome = interpret(text, "#", |words| script.line(words));
            let end = script.end(text);
            outcome.and(end)
        })
    }
}

/// Writes the commands of a change to a bridge that puts new ports into the VLAN `default_pvid`.
pub(super) fn write(change: &Change<'_>, default_pvid: Option<VlanId>, out: &mut Output<'_>) -> io::Result<()> {
    let mut ip = Vec::new();
    if change.stage == Stage::Prepare {
        writeln!(out, "set -eu\nip link delete dev {BRIDGE} type bridge 2>/dev/null || :")?;
        for lag in lags(change.after) {
            writeln!(out, "ip link delete dev {} type bond 2>/dev/null || :", change.after.port(lag).name)?;
        }
        writeln!(
            ip,
            "link add name {BRIDGE} type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 \
             vlan_stats_enabled 1 vlan_stats_per_port 1"
        )?;
        bond::begin(change, &mut ip)?;
        for port in present(change.after) {
            writeln!(ip, "link set dev {} down", port.name)?;
        }
    } else if change.stage == Stage::Step {
        writeln!(out, "set -eu")?;
    }
    for port in change.shut() {
        writeln!(ip, "link set dev {port} down")?;
    }
    if change.stage != Stage::Prepare {
        bond::begin(change, &mut ip)?;
    }
    if change.stage == Stage::Step {
        match (change.stops_spanning_tree(), change.starts_spanning_tree()) {
            (true, _) => writeln!(ip, "link set dev {BRIDGE} type bridge stp_state 0")?,
            (_, true) => writeln!(ip, "link set dev {BRIDGE} type bridge stp_state 1")?,
            _ => {}
        }
    }
    let enslaved = enslaved(change);
    for PortConfig { name: port, learning, .. } in &enslaved {
        let learning = learning_word(*learning);
        writeln!(ip, "link set dev {port} master {BRIDGE}")?;
        writeln!(ip, "link set dev {port} type bridge_slave learning {learning}")?;
        writeln!(ip, "link set dev {port} addrgenmode none")?;
    }
    if change.stage != Stage::Open {
        for port in change.ports() {
            for (kinds, state) in [(port.blocks(), "off"), (port.unblocks(), "on")] {
                for kind in kinds.iter() {
                    writeln!(ip, "link set dev {} type bridge_slave {} {state}", port.name(), flood_word(kind))?;
                }
            }
        }
    }
    if change.stage == Stage::Step {
        let is_enslaved = |port: &PortChange<'_>| enslaved.iter().any(|own| own.name == port.name());
        for port in change.ports().filter(|port| !is_enslaved(port) && port.learning().is_some()) {
            let (name, learning) = (port.name(), learning_word(port.after.learning));
            writeln!(ip, "link set dev {name} type bridge_slave learning {learning}")?;
        }
    }
    batch(out, "ip", &ip)?;

    let mut bridge = Vec::new();
    if let Some(vlan) = default_pvid.filter(|_| change.stage == Stage::Step) {
        for port in enslaved.iter().filter(|port| !port.is_member(vlan)) {
            writeln!(bridge, "vlan del dev {} vid {vlan}", port.name)?;
        }
    }
    for (vlan, mac, port) in change.entries_gone() {
        writeln!(bridge, "fdb del {mac} dev {port} master static vlan {vlan}")?;
    }
    for port in change.ports() {
        memberships(&mut bridge, &port)?;
    }
    for (vlan, mac, port) in change.entries_set() {
        writeln!(bridge, "fdb replace {mac} dev {port} master static vlan {vlan}")?;
    }
    batch(out, "bridge", &bridge)?;

    for port in change.ports().filter(|port| port.after.lag_number().is_none()) {
        let state = match port.flow_control() {
            Some(FlowControlMode::Pause) => "on",
            Some(_) => "off",
            None => continue,
        };
        let name = port.name();
        writeln!(out, "ethtool -A {name} rx {state} tx {state} || echo \"{name}: the card refuses PAUSE\" >&2")?;
    }

    let mut ip = Vec::new();
    bond::end(change, &mut ip)?;
    if change.stage == Stage::Prepare {
        writeln!(ip, "link set dev {BRIDGE} up")?;
    }
    for port in change.opened() {
        writeln!(ip, "link set dev {port} up")?;
    }
    batch(out, "ip", &ip)
}

/// Ports that are there: all but LAGs that nobody uses.
pub(super) fn present(config: &SwitchConfig) -> impl Iterator<Item = &PortConfig> {
    let ports = config.ports.iter().enumerate();
    ports.filter(|(at, port)| port.lag_number().is_none() || stands(config, Slot::new(*at))).map(|(_, port)| port)
}

/// Whether a port is a member of a LAG, and so none of the bridge.
pub(super) fn is_member(port: &PortConfig) -> bool {
    matches!(port.lag, LagMembership::Of(_))
}

/// Ports that the bridge takes in.
fn enslaved<'a>(change: &Change<'a>) -> Vec<&'a PortConfig> {
    let made = || lags_made(change).map(|lag| change.after.port(lag));
    match change.stage {
        Stage::Prepare => present(change.after).filter(|port| !is_member(port)).collect(),
        Stage::Open => made().collect(),
        Stage::Step => {
            let is_made = |port: &PortConfig| made().any(|lag| lag.name == port.name);
            let comes = |port: &PortChange<'_>| port.begins() || port.leaves_lag().is_some();
            let ports = change.ports().filter(|port| comes(port) && !is_made(port.after) && !is_member(port.after));
            ports.map(|port| port.after).chain(made()).collect()
        }
    }
}

/// The kernel's word for whether a port learns.
pub(super) fn learning_word(learning: PortLearning) -> &'static str {
    match learning {
        PortLearning::On | PortLearning::Always => "on",
        PortLearning::Off => "off",
    }
}

/// The kernel's word for whether a port lets floods of a kind out.
pub(super) fn flood_word(kind: FloodKind) -> &'static str {
    match kind {
        FloodKind::UnknownUnicast => "flood",
        FloodKind::Multicast => "mcast_flood",
        FloodKind::Broadcast => "bcast_flood",
    }
}

/// One batch of a tool, unless it is empty.
fn batch(out: &mut Output<'_>, tool: &str, lines: &[u8]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{tool} -batch - <<'EOF'")?;
    out.write_all(lines)?;
    writeln!(out, "EOF")
}

/// The lines of `bridge -batch` that give a port its VLANs and PVID.
pub(super) fn memberships(out: &mut Vec<u8>, change: &PortChange<'_>) -> io::Result<()> {
    let name = change.name();
    for (joined, flag) in [(&change.join_tagged, ""), (&change.join_untagged, " untagged")] {
        for (first, last) in joined.runs() {
            let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
            writeln!(out, "vlan add dev {name} vid {range}{flag}")?;
        }
    }
    let flag = |vlan: VlanId| if change.after.untagged.contains(vlan) { " untagged" } else { "" };
    let said_anew = |vlan: VlanId| change.join_tagged.contains(vlan) || change.join_untagged.contains(vlan);
    match (change.before.pvid, change.after.pvid) {
        (before, Some(pvid)) if before != Some(pvid) || said_anew(pvid) => {
            writeln!(out, "vlan add dev {name} vid {pvid} pvid{}", flag(pvid))?;
        }
        (Some(old), None) if change.after.is_member(old) && !said_anew(old) => {
            writeln!(out, "vlan add dev {name} vid {old}{}", flag(old))?;
        }
        _ => {}
    }
    for (first, last) in change.leave.runs() {
        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
        writeln!(out, "vlan del dev {name} vid {range}")?;
    }
    Ok(())
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
    fn delete(&mut self) {
        self.bridge = false;
        self.config.entries.clear();
        for port in &mut self.config.ports {
            (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
            port.blocked = Some(FloodSet::NONE);
        }
    }
}

#[derive(Clone, Copy)]
enum ConfigSection {
    Shell,
    Ip,
    Bridge,
}

/// A shell script while it is read.
pub(super) struct Script<'a> {
    pub(super) ports: Ports<'a>,
    at: ConfigSection,
}

impl<'a> Script<'a> {
    /// Before its first line.
    pub(super) fn new(ports: Ports<'a>) -> Self {
        Self { ports, at: ConfigSection::Shell }
    }

    /// Whether the next line is a batch's.
    pub(super) fn in_batch(&self) -> bool {
        !matches!(self.at, ConfigSection::Shell)
    }

    /// After the last line of `text`.
    pub(super) fn end(self, text: &str) -> Result<(), Vec<LineError>> {
        let open = self.in_batch();
        self.ports.finish();
        if open {
            let line = text.lines().count().max(1);
            return Err(vec![LineError { line, message: "the batch has no EOF".to_owned() }]);
        }
        Ok(())
    }

    /// A line.
    pub(super) fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match (self.at, words) {
            (ConfigSection::Shell, ["set", "-eu"]) => Ok(()),
            (ConfigSection::Shell, ["ip", "link", "delete", "dev", BRIDGE, "type", "bridge", ..]) => {
                self.ports.delete();
                Ok(())
            }
            (ConfigSection::Shell, ["ip", "link", "delete", "dev", name, "type", "bond", ..]) => {
                self.ports.remove_any_bond(name)
            }
            (ConfigSection::Shell, ["ip", "-batch", "-", "<<'EOF'"]) => {
                self.at = ConfigSection::Ip;
                Ok(())
            }
            (ConfigSection::Shell, ["bridge", "-batch", "-", "<<'EOF'"]) => {
                self.at = ConfigSection::Bridge;
                Ok(())
            }
            (ConfigSection::Shell, ["ethtool", "-A", rest @ ..]) => self.ports.pause(rest),
            (ConfigSection::Shell, _) => unknown(words),
            (_, ["EOF"]) => {
                self.at = ConfigSection::Shell;
                Ok(())
            }
            (ConfigSection::Ip, words) => self.ports.ip(words),
            (ConfigSection::Bridge, words) => self.ports.bridge(words),
        }
    }
}
