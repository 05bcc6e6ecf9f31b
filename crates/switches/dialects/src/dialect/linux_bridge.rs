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

use fabric::{Basis, FloodSet, FlowControlMode, VlanId};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    bond, is_member,
    kernel_bridge::{BRIDGE, Ports, flood_word},
    lags, lags_made, present, read_only,
};
use crate::text::{LineError, interpret, unknown};
use switch_model::{
    PortConfig, PortLearning, SwitchConfig,
    change::{Change, PortChange, Stage},
};

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
            storm_control: StormControl::Lacks,
            lags: Lags::Made,
            lldp: None,
            snooping: SnoopingWords::NONE,
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
        for port in present(change.after, change.kept) {
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

/// Ports that the bridge takes in.
fn enslaved<'a>(change: &Change<'a>) -> Vec<&'a PortConfig> {
    let made = || lags_made(change).map(|lag| change.after.port(lag));
    match change.stage {
        Stage::Prepare => present(change.after, change.kept).filter(|port| !is_member(port)).collect(),
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
