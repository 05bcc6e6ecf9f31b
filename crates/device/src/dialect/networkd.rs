//! A VLAN-aware Linux bridge as files of systemd-networkd, and a unit for its static entries.
//!
//! ```text
//!   10-espalier.netdev     the bridge            espalier.fdb           a batch for bridge(8)
//!   10-espalier.network    brings it up          espalier-fdb.service   runs it
//!   20-swp1.network        a port's VLANs                               and sets PAUSE
//! ```
//! networkd's own `[BridgeFDB]` enters addresses as permanent (`NUD_PERMANENT` in its source), and to a Linux bridge a
//! permanent address is its own: frames for it would end there. Hence the unit. `EgressUntagged=` and `PVID=` imply
//! membership; a port's default PVID is the bridge's, which is none here. The files say what is; networkd finds out the
//! steps by itself, so no difference is written.

use std::{io, io::Write as _};

use fabric::{Admin, Basis, FlowControlMode, VlanId};

use super::{
    Ability, Dialect, FileErrors, Learns, Output, TextFile, Traits, Untagged,
    linux_bridge::{Ports, is_device, learning_word},
};
use crate::{
    PortLearning, SpanningTree, SwitchConfig,
    change::Change,
    text::{LineError, interpret, vlan, vlans},
};

/// The bridge device.
const BRIDGE: &str = "espalier";

/// The language.
pub(super) struct Networkd;

impl Dialect for Networkd {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "d",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            learning: Learns::AsTold,
            difference: Err(
                "render the new plan in full for the next boot, and --target linux-bridge with --since for now \
                             (its bridge has the same name)",
            ),
            port_name: (is_device, "swp1, of at most 15 bytes"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::blank(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        let folder = out.stem.to_owned();
        out.begin(&format!("{folder}/10-{BRIDGE}.netdev"), "#")?;
        writeln!(out, "[NetDev]\nName={BRIDGE}\nKind=bridge")?;
        writeln!(out, "[Bridge]\nVLANFiltering=yes\nDefaultPVID=none\nSTP=no\nMulticastSnooping=no")?;
        out.begin(&format!("{folder}/10-{BRIDGE}.network"), "#")?;
        writeln!(out, "[Match]\nName={BRIDGE}\n[Link]\nActivationPolicy=up\nRequiredForOnline=no")?;
        writeln!(out, "[Network]\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes")?;
        for port in &change.after.ports {
            let name = &port.name;
            out.begin(&format!("{folder}/20-{name}.network"), "#")?;
            let policy = if port.admin == Admin::Up { "up" } else { "always-down" };
            writeln!(out, "[Match]\nName={name}\n[Link]\nActivationPolicy={policy}\nRequiredForOnline=no")?;
            writeln!(out, "[Network]\nBridge={BRIDGE}\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes")?;
            let learning = if learning_word(port.learning) == "on" { "yes" } else { "no" };
            writeln!(out, "[Bridge]\nLearning={learning}")?;
            if !port.members().is_empty() {
                writeln!(out, "[BridgeVLAN]")?;
            }
            for (set, key) in [(&port.tagged, "VLAN"), (&port.untagged, "EgressUntagged")] {
                for (first, last) in set.runs() {
                    if first == last { writeln!(out, "{key}={first}")? } else { writeln!(out, "{key}={first}-{last}")? }
                }
            }
            if let Some(pvid) = port.pvid {
                writeln!(out, "PVID={pvid}")?;
            }
        }
        out.begin(&format!("{folder}/{BRIDGE}.fdb"), "#")?;
        for (&(vlan, mac), &slot) in &change.after.entries {
            let name = &change.after.port(slot).name;
            writeln!(out, "fdb replace {mac} dev {name} master static vlan {vlan}")?;
        }
        out.begin(&format!("{folder}/{BRIDGE}-fdb.service"), "#")?;
        writeln!(out, "[Unit]\nDescription=Static entries of the bridge {BRIDGE}\nAfter=systemd-networkd.service")?;
        writeln!(out, "[Service]\nType=oneshot\nRemainAfterExit=yes\nRestart=on-failure\nRestartSec=1")?;
        writeln!(out, "ExecStart=bridge -batch /etc/systemd/network/{BRIDGE}.fdb")?;
        for port in change.after.ports.iter().filter(|port| port.flow_control == FlowControlMode::Pause) {
            // A card that refuses PAUSE is no reason to do without the entries.
            writeln!(out, "ExecStart=-ethtool -A {} rx on tx on", port.name)?;
        }
        writeln!(out, "[Install]\nWantedBy=multi-user.target")
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        let mut errors: FileErrors = Vec::new();
        let mut seen = Seen { filtering: false, service: false };
        let mut ports = Ports { bridge: true, config };
        let is_batch = |file: &TextFile<'_>| file.name.ends_with(".fdb");
        // Entries come last, as the unit that enters them does.
        let (batches, units): (Vec<_>, Vec<_>) = files.iter().enumerate().partition(|(_, file)| is_batch(file));
        for (index, file) in units {
            if let Err(found) = read_unit(file, &mut ports, &mut seen) {
                errors.extend(found.into_iter().map(|error| (index, error)));
            }
        }
        let mut whole = |message: &str| errors.push((0, LineError { line: 1, message: message.to_owned() }));
        if !seen.filtering {
            whole("no .netdev makes a bridge with VLANFiltering=yes, so none knows VLANs");
        }
        if !batches.is_empty() && !seen.service {
            whole("no service runs the batch of static entries");
        }
        for (index, file) in batches {
            if let Err(found) = interpret(file.text, "#", |words| ports.bridge(words)) {
                errors.extend(found.into_iter().map(|error| (index, error)));
            }
        }
        ports.finish();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

struct Seen {
    filtering: bool,
    service: bool,
}

/// Reads one file in the form of systemd's units, as what it is for.
fn read_unit(file: &TextFile<'_>, ports: &mut Ports<'_>, seen: &mut Seen) -> Result<(), Vec<LineError>> {
    let mut section = String::new();
    let (mut name, mut default_pvid) = (String::new(), Some(VlanId::MIN));
    let kind = file.name.rsplit_once('.').map_or("", |(_, kind)| kind);
    interpret(file.text, "#", |words| {
        let line = words.join(" ");
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            header.clone_into(&mut section);
            return Ok(());
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!("{line:?} is neither section nor setting"));
        };
        let unknown = || Err(format!("{key}= means nothing here in [{section}]"));
        match (kind, section.as_str(), key) {
            ("service", "Service", "ExecStart") => {
                let command: Vec<&str> = value.trim_start_matches('-').split(' ').collect();
                match &command[..] {
                    ["bridge", "-batch", file] => seen.service |= file.ends_with(&format!("/{BRIDGE}.fdb")),
                    ["ethtool", "-A", rest @ ..] => ports.pause(rest)?,
                    _ => return Err(format!("{value:?} is no command that this reader knows")),
                }
            }
            ("service", ..) => {}
            (_, "NetDev" | "Match", "Name") => {
                value.clone_into(&mut name);
                if name != BRIDGE {
                    let slot = ports.slot(&name)?;
                    if kind == "network" {
                        ports.config.ports[slot.index()].admin = Admin::Up;
                    }
                }
            }
            ("netdev", "NetDev", "Kind") if value == "bridge" => {}
            ("netdev", "Bridge", "VLANFiltering") => seen.filtering = value == "yes",
            ("netdev", "Bridge", "DefaultPVID") => {
                default_pvid = if value == "none" { None } else { Some(vlan(value)?) };
            }
            ("netdev", "Bridge", "STP") => {
                ports.config.spanning_tree = if value == "yes" { SpanningTree::On } else { SpanningTree::Off };
            }
            ("netdev", "Bridge", "MulticastSnooping") => {}
            ("network", "Link", "RequiredForOnline") => {}
            ("network", "Network", "LinkLocalAddressing" | "ConfigureWithoutCarrier") => {}
            ("network", "Link", "ActivationPolicy") if name == BRIDGE => {}
            ("network", _, _) if name == BRIDGE => return unknown(),
            ("network", section, key) => {
                let slot = ports.slot(&name)?;
                let port = &mut ports.config.ports[slot.index()];
                match (section, key) {
                    ("Link", "ActivationPolicy") => {
                        port.admin = match value {
                            "up" | "always-up" => Admin::Up,
                            "down" | "always-down" => Admin::Down,
                            _ => return unknown(),
                        };
                    }
                    // A port learns until it is told not to.
                    ("Network", "Bridge") if value == BRIDGE => port.learning = PortLearning::On,
                    ("Bridge", "Learning") => {
                        port.learning = match value {
                            "yes" => PortLearning::On,
                            "no" => PortLearning::Off,
                            _ => return unknown(),
                        };
                    }
                    ("BridgeVLAN", "VLAN") => {
                        let new = vlans(value)?;
                        port.tagged
                            .extend(new.iter().filter(|vlan| !port.untagged.contains(*vlan)).collect::<Vec<_>>());
                    }
                    ("BridgeVLAN", "EgressUntagged") => {
                        for vlan in vlans(value)?.iter() {
                            port.tagged.remove(vlan);
                            port.untagged.insert(vlan);
                        }
                    }
                    ("BridgeVLAN", "PVID") => {
                        let pvid = vlan(value)?;
                        if !port.is_member(pvid) {
                            port.tagged.insert(pvid);
                        }
                        port.pvid = Some(pvid);
                    }
                    _ => return unknown(),
                }
            }
            _ => return unknown(),
        }
        Ok(())
    })?;
    let wrong = |message: &str| Err(vec![LineError { line: 1, message: message.to_owned() }]);
    match kind {
        "netdev" if default_pvid.is_some() => wrong("without DefaultPVID=none every port joins VLAN 1"),
        _ => Ok(()),
    }
}
