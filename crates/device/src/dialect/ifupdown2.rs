//! A VLAN-aware Linux bridge as a file for ifupdown2, which Cumulus Linux reads as `/etc/network/interfaces`.
//!
//! ```text
//!   auto swp1                          auto espalier
//!   iface swp1                         iface espalier
//!       bridge-vids 2-9                    bridge-vlan-aware yes
//!       bridge-allow-untagged no           bridge-ports swp1 swp2
//!   iface swp2                             bridge-stp off
//!       bridge-pvid 2
//!       post-up bridge vlan add dev swp2 vid 2-9 untagged
//! ```
//! `bridge-vids` are tagged and `bridge-pvid` is the PVID and untagged; many untagged VLANs and static entries are said by
//! `post-up` commands of the bridge, which run in order once its ports are there. A port says nothing of VLANs only if it
//! is to have the bridge's: `bridge-pvid 1` from the factory. The file says what is, and `ifreload` finds out the steps by
//! itself, so no difference is written.

use std::{io, io::Write as _};

use fabric::{Admin, Basis, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Learns, Output, TextFile, Traits, Untagged,
    linux_bridge::{Ports, is_device, learning_word},
    read_only,
};
use crate::{
    PortLearning, Slot, SpanningTree, SwitchConfig,
    change::Change,
    text::{LineError, interpret, unknown, vlan, vlans},
};

/// The bridge device.
const BRIDGE: &str = "espalier";

/// The language.
pub(super) struct Ifupdown2;

impl Dialect for Ifupdown2 {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "interfaces",
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
        let mut after = Vec::new();
        for port in &change.after.ports {
            let name = &port.name;
            writeln!(out, "\nauto {name}\niface {name}")?;
            if port.admin == Admin::Down {
                writeln!(out, "    link-down yes")?;
            }
            writeln!(out, "    bridge-learning {}", learning_word(port.learning))?;
            // The words for one untagged VLAN that is the PVID, where they are enough; else commands.
            let plain = port.pvid.map_or(port.untagged.is_empty(), |pvid| port.untagged.iter().eq([pvid]));
            let vids: VlanSet = if plain { port.members() } else { VlanSet::new() };
            if !vids.is_empty() {
                writeln!(out, "    bridge-vids {}", vids.to_string().replace(',', " "))?;
            }
            match port.pvid.filter(|_| plain) {
                Some(pvid) => writeln!(out, "    bridge-pvid {pvid}")?,
                None => writeln!(out, "    bridge-allow-untagged no")?,
            }
            if !plain {
                for (set, flag) in [(&port.tagged, ""), (&port.untagged, " untagged")] {
                    for (first, last) in set.runs() {
                        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
                        writeln!(after, "    post-up bridge vlan add dev {name} vid {range}{flag}")?;
                    }
                }
                if let Some(pvid) = port.pvid {
                    let flag = if port.untagged.contains(pvid) { " untagged" } else { "" };
                    writeln!(after, "    post-up bridge vlan add dev {name} vid {pvid} pvid{flag}")?;
                }
            }
            if port.flow_control == FlowControlMode::Pause {
                writeln!(out, "    post-up ethtool -A {name} rx on tx on || :")?;
            }
        }
        for (&(vlan, mac), &slot) in &change.after.entries {
            let name = &change.after.port(slot).name;
            writeln!(after, "    post-up bridge fdb replace {mac} dev {name} master static vlan {vlan}")?;
        }
        let ports: Vec<&str> = change.after.ports.iter().map(|port| port.name.as_str()).collect();
        writeln!(
            out,
            "\nauto {BRIDGE}\niface {BRIDGE}\n    bridge-vlan-aware yes\n    bridge-ports {}",
            ports.join(" ")
        )?;
        writeln!(out, "    bridge-stp off\n    bridge-mcsnoop 0")?;
        out.write_all(&after)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let stanzas = vec![None; config.ports.len()];
            let ports = Ports { bridge: false, config };
            let mut reader =
                Reader { ports, at: At::Top, stanzas, aware: false, members: Vec::new(), later: Vec::new() };
            let mut line = 0;
            let outcome = interpret_numbered(text, &mut line, |number, words| reader.line(number, words));
            outcome.and_then(|()| reader.up())
        })
    }
}

/// As [`interpret`], with the number of each line.
fn interpret_numbered(
    text: &str,
    line: &mut usize,
    mut tell: impl FnMut(usize, &[&str]) -> Result<(), String>,
) -> Result<(), Vec<LineError>> {
    let numbers: Vec<usize> = (text.lines().enumerate())
        .filter(|(_, line)| line.split_whitespace().next().is_some_and(|first| !first.starts_with('#')))
        .map(|(number, _)| number + 1)
        .collect();
    interpret(text, "#", |words| {
        let number = numbers[*line];
        *line += 1;
        tell(number, words)
    })
}

/// What a port's stanza says.
#[derive(Clone)]
struct Stanza {
    vids: VlanSet,
    pvid: Option<VlanId>,
    untagged: bool,
    down: bool,
}

enum At {
    Top,
    Port(Slot),
    Bridge,
}

struct Reader<'a> {
    ports: Ports<'a>,
    at: At,
    stanzas: Vec<Option<Stanza>>,
    aware: bool,
    members: Vec<Slot>,
    /// Commands that run when the bridge is up, with their lines.
    later: Vec<(usize, Vec<String>)>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        match (&self.at, words) {
            (_, ["auto", name]) => {
                self.at = At::Top;
                if *name == BRIDGE { Ok(()) } else { self.ports.slot(name).map(|_| ()) }
            }
            (_, ["iface", BRIDGE]) => {
                // Without the word, spanning tree runs.
                self.ports.config.spanning_tree = SpanningTree::On;
                self.at = At::Bridge;
                Ok(())
            }
            (_, ["iface", name]) => {
                let slot = self.ports.slot(name)?;
                // A port learns until it is told not to.
                self.ports.config.ports[slot.index()].learning = PortLearning::On;
                let stanza = Stanza { vids: VlanSet::new(), pvid: None, untagged: true, down: false };
                self.stanzas[slot.index()] = Some(stanza);
                self.at = At::Port(slot);
                Ok(())
            }
            (At::Port(slot), ["post-up", "ethtool", "-A", rest @ ..]) => {
                let _ = slot;
                self.ports.pause(rest)
            }
            (At::Port(slot), words) => {
                let Some(stanza) = &mut self.stanzas[slot.index()] else { return unknown(words) };
                match words {
                    ["link-down", "yes"] => stanza.down = true,
                    ["link-down", "no"] => stanza.down = false,
                    ["bridge-learning", state @ ("on" | "off")] => {
                        let learning = if *state == "on" { PortLearning::On } else { PortLearning::Off };
                        self.ports.config.ports[slot.index()].learning = learning;
                    }
                    ["bridge-allow-untagged", "no"] => stanza.untagged = false,
                    ["bridge-allow-untagged", "yes"] => stanza.untagged = true,
                    ["bridge-pvid", number] => stanza.pvid = Some(vlan(number)?),
                    ["bridge-vids", lists @ ..] => {
                        for list in lists {
                            stanza.vids.extend(vlans(list)?.iter());
                        }
                    }
                    _ => return unknown(words),
                }
                Ok(())
            }
            (At::Bridge, ["bridge-vlan-aware", "yes"]) => {
                self.aware = true;
                Ok(())
            }
            (At::Bridge, ["bridge-ports", names @ ..]) => {
                self.members = names.iter().map(|name| self.ports.slot(name)).collect::<Result<_, _>>()?;
                Ok(())
            }
            (At::Bridge, ["bridge-stp", "off" | "no"]) => {
                self.ports.config.spanning_tree = SpanningTree::Off;
                Ok(())
            }
            (At::Bridge, ["bridge-stp", "on" | "yes"] | ["bridge-mcsnoop", "0" | "1"]) => Ok(()),
            (At::Bridge, ["post-up", "bridge", rest @ ..]) => {
                self.later.push((number, rest.iter().map(|word| (*word).to_owned()).collect()));
                Ok(())
            }
            _ => unknown(words),
        }
    }

    /// Does what `ifup -a` does, at the end: ports, the bridge, and then its commands.
    fn up(mut self) -> Result<(), Vec<LineError>> {
        let at_end = |message: &str| Err(vec![LineError { line: 1, message: message.to_owned() }]);
        if !self.aware {
            return at_end("no bridge is vlan-aware, so none knows VLANs");
        }
        for (index, stanza) in self.stanzas.iter().enumerate() {
            let Some(stanza) = stanza else { continue };
            let port = &mut self.ports.config.ports[index];
            port.admin = if stanza.down { Admin::Down } else { Admin::Up };
            if !self.members.contains(&Slot::new(index)) {
                return at_end(&format!("port {} is not among the bridge-ports", port.name));
            }
            port.pvid = stanza.untagged.then(|| stanza.pvid.unwrap_or(VlanId::MIN));
            port.untagged = port.pvid.into_iter().collect();
            port.tagged = stanza.vids.iter().filter(|vlan| Some(*vlan) != port.pvid).collect();
        }
        let mut errors = Vec::new();
        for (line, words) in std::mem::take(&mut self.later) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let Err(message) = self.ports.bridge(&words) {
                errors.push(LineError { line, message });
            }
        }
        self.ports.finish();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}
