//! A VLAN-aware Linux bridge as files for ifupdown2, the network program of Cumulus Linux.
//!
//! ```text
//!   espalier.intf                                              espalier.fdb
//!   auto swp1                 auto espalier                    fdb replace 02:… dev swp1 master static vlan 2
//!   iface swp1                iface espalier
//!       bridge-vids 2-9           bridge-vlan-aware yes
//!   iface swp2                    bridge-ports swp1 swp2 lag3
//!       bridge-vids 2-9           bridge-stp off
//!       bridge-pvid 2             post-up bridge vlan add dev swp2 vid 3-9 untagged
//!   iface lag3                    post-up bridge -batch /etc/network/espalier.fdb
//!       bond-slaves swp3 swp4
//!       bridge-vids 2-9
//! ```
//! `bridge-vids` are tagged and `bridge-pvid` is the PVID and untagged; what else is untagged is said by `post-up` commands
//! of the bridge, which run in order once its ports are there, and again at every `ifreload`. That compares a port's VLANs
//! and PVID with the file, and not their flags: as the file names all VLANs and the commands repeat what is, it takes nothing
//! away. A port says nothing of VLANs only if it is to have the bridge's: `bridge-pvid 1` from the factory. How a difference
//! is written is said in [`super::kept`]; `ifreload_down_changed=1` would have `ifreload` take changed ports and the bridge
//! down, so a difference refuses to begin there. A LAG is a bond by its `bond-slaves`, whose stanzas say nothing of the bridge;
//! there is no word for a bond without any. Source: ifupdown2's `bond.py`.

use std::{fmt::Write as _, io};

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    bond::BondSettings,
    is_member,
    kept::{self, Extent, Keeper, Kept, Reading, base},
    kernel_bridge::Ports,
    linux_bridge::{is_device, learning_word},
    present,
};
use crate::text::{LineError, interpret, unknown, vlan, vlans};
use fabric::SpanningTree;
use switch_model::{LagMembership, PortConfig, PortLearning, Slot, SwitchConfig, change::Change};

/// The bridge device.
const BRIDGE: &str = "espalier";
/// Ports and bridge.
const STANZAS: &str = "espalier.intf";
/// The static entries.
const BATCH: &str = "espalier.fdb";
/// What keeps `ifreload` from taking ports down, and ends a script where it would.
const GUARD: &str = "if grep -qs '^ifreload_down_changed=1' /etc/network/ifupdown2/ifupdown2.conf; then \
                     echo 'ifreload_down_changed=1 would take ports down: set it to 0' >&2; exit 1; fi";

/// The language.
pub(super) struct Ifupdown2;

impl Dialect for Ifupdown2 {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "d",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::AsState,
            learning: Learns::AsTold,
            blocks: FloodSet::ALL,
            storm_control: StormControl::Lacks,
            lags: Lags::MadeOfMembers,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (is_device, "swp1, of at most 15 bytes"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::blank(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        kept::write(self, change, out)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        kept::read(self, files, config)
    }
}

impl Keeper for Ifupdown2 {
    fn default_pvid(&self) -> Option<VlanId> {
        Some(VlanId::MIN)
    }

    fn files(&self, config: &SwitchConfig, ports: usize) -> Vec<Kept> {
        let ports: Vec<&PortConfig> = present(config, ports).collect();
        let mut text: String = ports.iter().map(|port| stanza(port, config)).collect();
        let bridged = ports.iter().filter(|port| !is_member(port));
        let names: Vec<&str> = bridged.map(|port| port.name.as_str()).collect();
        let stp = if config.spanning_tree == SpanningTree::On { "on" } else { "off" };
        let _ = write!(
            text,
            "\nauto {BRIDGE}\niface {BRIDGE}\n    bridge-vlan-aware yes\n    bridge-ports {}\n    \
             bridge-stp {stp}\n    bridge-mcsnoop 0\n",
            names.join(" ")
        );
        text.extend(ports.iter().map(|port| flags(port)));
        let _ = writeln!(text, "    post-up bridge -batch /etc/network/{BATCH}");
        let entries = kept::entries(config);
        vec![Kept { name: STANZAS.to_owned(), text }, Kept { name: BATCH.to_owned(), text: entries }]
    }

    fn place(&self, name: &str) -> &'static str {
        if name == BATCH { "/etc/network/" } else { "/etc/network/interfaces.d/" }
    }

    fn told(&self, name: &str) -> Option<&'static str> {
        (name == STANZAS).then_some("ifreload -a")
    }

    fn guard(&self) -> Option<&'static str> {
        Some(GUARD)
    }

    fn read(&self, read: &Reading<'_>, config: &mut SwitchConfig) -> Result<(), FileErrors> {
        let by_name = |wanted: &str| read.files.iter().find(|(_, file)| base(file.name) == wanted);
        if let Some((index, file)) = read.files.iter().find(|(_, file)| ![STANZAS, BATCH].contains(&base(file.name))) {
            let message = format!("{} is neither {STANZAS} nor {BATCH}", base(file.name));
            return Err(vec![(*index, LineError { line: 1, message })]);
        }
        let whole = |message: &str| Err(vec![(0, LineError { line: 1, message: message.to_owned() })]);
        let at = |index: usize| {
            move |errors: Vec<LineError>| errors.into_iter().map(|error| (index, error)).collect::<FileErrors>()
        };
        let mut runs_batch = read.extent == Extent::Part;
        match by_name(STANZAS) {
            Some((index, file)) => {
                config.ports.iter_mut().for_each(|port| *port = PortConfig::blank(std::mem::take(&mut port.name)));
                runs_batch = read_stanzas(file.text, config).map_err(at(*index))?;
            }
            None if read.extent == Extent::Whole => return whole("there is no espalier.intf, so no bridge"),
            None => {}
        }
        let mut ports = Ports::new(true, None, config);
        if let Some((index, file)) = by_name(BATCH) {
            kept::read_entries(file.text, &mut ports).map_err(at(*index))?;
        }
        if !runs_batch {
            return whole("no post-up command of the bridge runs the batch of static entries");
        }
        ports.finish();
        Ok(())
    }
}

/// A port: of the bridge, or a member of a LAG.
fn stanza(port: &PortConfig, config: &SwitchConfig) -> String {
    let name = &port.name;
    let mut text = format!("\nauto {name}\niface {name}\n");
    if port.admin == Admin::Down {
        text.push_str("    link-down yes\n");
    }
    if port.lag_number().is_some() {
        text.push_str(&bond(port, config));
    }
    if !is_member(port) {
        text.push_str(&bridge_port(port));
    }
    if port.flow_control == FlowControlMode::Pause && port.lag_number().is_none() {
        let _ = writeln!(text, "    post-up ethtool -A {name} rx on tx on || :");
    }
    text
}

/// A LAG and its members.
fn bond(lag: &PortConfig, config: &SwitchConfig) -> String {
    let members = config.slot(&lag.name).into_iter().flat_map(|slot| config.members_of(slot));
    let names: Vec<&str> = members.map(|member| config.port(member).name.as_str()).collect();
    format!(
        "    bond-slaves {}\n    bond-mode 802.3ad\n    bond-miimon 100\n    bond-lacp-rate fast\n    \
         bond-xmit-hash-policy layer2+3\n",
        names.join(" ")
    )
}

/// A port of the bridge, with all of its VLANs as tagged ones but for the PVID's.
fn bridge_port(port: &PortConfig) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "    bridge-learning {}", learning_word(port.learning));
    for kind in port.blocked.unwrap_or_default().iter() {
        let _ = writeln!(text, "    {} off", flood_word(kind));
    }
    let members = port.members();
    if !members.is_empty() {
        let _ = writeln!(text, "    bridge-vids {}", members.to_string().replace(',', " "));
    }
    let _ = match port.pvid {
        Some(pvid) => writeln!(text, "    bridge-pvid {pvid}"),
        None => writeln!(text, "    bridge-allow-untagged no"),
    };
    text
}

/// The word for whether a port lets floods of a kind out.
fn flood_word(kind: FloodKind) -> &'static str {
    match kind {
        FloodKind::UnknownUnicast => "bridge-unicast-flood",
        FloodKind::Multicast => "bridge-multicast-flood",
        FloodKind::Broadcast => "bridge-broadcast-flood",
    }
}

/// The commands for what the stanza has no words for.
fn flags(port: &PortConfig) -> String {
    let name = &port.name;
    let mut text = String::new();
    let untagged: VlanSet = port.untagged.iter().filter(|vlan| Some(*vlan) != port.pvid).collect();
    for (first, last) in untagged.runs() {
        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let _ = writeln!(text, "    post-up bridge vlan add dev {name} vid {range} untagged");
    }
    if let Some(pvid) = port.pvid.filter(|pvid| port.tagged.contains(*pvid)) {
        let _ = writeln!(text, "    post-up bridge vlan add dev {name} vid {pvid} pvid");
    }
    text
}

/// Reads ports and bridge, and whether the bridge's commands run the batch of entries.
fn read_stanzas(text: &str, config: &mut SwitchConfig) -> Result<bool, Vec<LineError>> {
    let stanzas = vec![None; config.ports.len()];
    let ports = Ports::new(false, None, config);
    let mut reader = Reader {
        ports,
        at: ConfigSection::Top,
        stanzas,
        aware: false,
        auto: false,
        batch: false,
        members: Vec::new(),
        later: Vec::new(),
    };
    let mut line = 0;
    let outcome = interpret_numbered(text, &mut line, |number, words| reader.line(number, words));
    let batch = reader.batch;
    outcome.and_then(|()| reader.up()).map(|()| batch)
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
    /// Whether it says anything of the bridge.
    bridged: bool,
    /// The members of a bond, and how it speaks LACP.
    slaves: Vec<String>,
    bond: BondSettings,
}

enum ConfigSection {
    Top,
    Port(Slot),
    Bridge,
}

struct Reader<'a> {
    ports: Ports<'a>,
    at: ConfigSection,
    stanzas: Vec<Option<Stanza>>,
    aware: bool,
    /// Whether the bridge comes up with the machine, and its ports with it.
    auto: bool,
    batch: bool,
    members: Vec<Slot>,
    /// Commands that run when the bridge is up, with their lines.
    later: Vec<(usize, Vec<String>)>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        match (&self.at, words) {
            (_, ["auto", name]) => {
                self.at = ConfigSection::Top;
                if *name == BRIDGE {
                    self.auto = true;
                    return Ok(());
                }
                self.ports.slot(name).map(|_| ())
            }
            (_, ["iface", BRIDGE]) => {
                // Without the word, spanning tree runs.
                self.ports.config.spanning_tree = SpanningTree::On;
                self.at = ConfigSection::Bridge;
                Ok(())
            }
            (_, ["iface", name]) => {
                let slot = self.ports.slot(name)?;
                // A port learns until it is told not to.
                self.ports.config.ports[slot.index()].learning = PortLearning::On;
                let stanza = Stanza {
                    vids: VlanSet::new(),
                    pvid: None,
                    untagged: true,
                    down: false,
                    bridged: false,
                    slaves: Vec::new(),
                    bond: BondSettings::default(),
                };
                self.stanzas[slot.index()] = Some(stanza);
                self.at = ConfigSection::Port(slot);
                Ok(())
            }
            (ConfigSection::Port(slot), ["post-up", "ethtool", "-A", rest @ ..]) => {
                let _ = slot;
                self.ports.pause(rest)
            }
            (ConfigSection::Port(slot), words) => {
                let Some(stanza) = &mut self.stanzas[slot.index()] else { return unknown(words) };
                stanza.bridged |= words[0].starts_with("bridge-");
                match words {
                    ["link-down", "yes"] => stanza.down = true,
                    ["link-down", "no"] => stanza.down = false,
                    ["bridge-learning", state @ ("on" | "off")] => {
                        let learning = if *state == "on" { PortLearning::On } else { PortLearning::Off };
                        self.ports.config.ports[slot.index()].learning = learning;
                    }
                    [word, state @ ("on" | "off")] if word.ends_with("-flood") => {
                        let found = FloodKind::ALL.iter().copied().find(|kind| flood_word(*kind) == *word);
                        let Some(kind) = found else { return unknown(words) };
                        let name = self.ports.config.ports[slot.index()].name.clone();
                        self.ports.set_flood(&name, kind, *state == "on")?;
                    }
                    ["bridge-allow-untagged", "no"] => stanza.untagged = false,
                    ["bridge-allow-untagged", "yes"] => stanza.untagged = true,
                    ["bridge-pvid", number] => stanza.pvid = Some(vlan(number)?),
                    ["bond-slaves", names @ ..] => {
                        stanza.slaves = names.iter().map(|name| (*name).to_owned()).collect();
                    }
                    ["bond-mode", mode] => stanza.bond.mode(mode),
                    ["bond-miimon", interval] => stanza.bond.miimon(interval),
                    ["bond-lacp-rate", rate] => BondSettings::lacp_rate(rate, &["slow", "fast", "0", "1"])?,
                    ["bond-xmit-hash-policy", policy] => BondSettings::hash_policy(policy)?,
                    ["bridge-vids", lists @ ..] => {
                        for list in lists {
                            stanza.vids.extend(vlans(list)?.iter());
                        }
                    }
                    _ => return unknown(words),
                }
                Ok(())
            }
            (ConfigSection::Bridge, ["bridge-vlan-aware", "yes"]) => {
                self.aware = true;
                Ok(())
            }
            (ConfigSection::Bridge, ["bridge-ports", names @ ..]) => {
                self.members = names.iter().map(|name| self.ports.slot(name)).collect::<Result<_, _>>()?;
                Ok(())
            }
            (ConfigSection::Bridge, ["bridge-stp", "off" | "no"]) => {
                self.ports.config.spanning_tree = SpanningTree::Off;
                Ok(())
            }
            (ConfigSection::Bridge, ["bridge-stp", "on" | "yes"] | ["bridge-mcsnoop", "0"]) => Ok(()),
            (ConfigSection::Bridge, ["post-up", "bridge", "-batch", "/etc/network/espalier.fdb"]) => {
                self.batch = true;
                Ok(())
            }
            (ConfigSection::Bridge, ["post-up", "bridge", rest @ ..]) => {
                self.later.push((number, rest.iter().map(|word| (*word).to_owned()).collect()));
                Ok(())
            }
            _ => unknown(words),
        }
    }

    /// Does what `ifup -a` does, at the end: ports, the bridge, and then its commands.
    fn up(mut self) -> Result<(), Vec<LineError>> {
        let at_end = |message: &str| Err(vec![LineError { line: 1, message: message.to_owned() }]);
        if !self.auto {
            return at_end("nothing brings the bridge up when the machine starts: auto is missing");
        }
        if !self.aware {
            return at_end("no bridge is vlan-aware, so none knows VLANs");
        }
        if let Err(message) = self.enslave() {
            return at_end(&message);
        }
        for (index, stanza) in self.stanzas.iter().enumerate() {
            let Some(stanza) = stanza else { continue };
            let port = &mut self.ports.config.ports[index];
            port.admin = if stanza.down { Admin::Down } else { Admin::Up };
            let bridged = self.members.contains(&Slot::new(index));
            if is_member(port) {
                if bridged || stanza.bridged {
                    return at_end(&format!("port {} is a member of a bond, and of the bridge as well", port.name));
                }
                port.learning = PortLearning::Off;
                continue;
            }
            if !bridged {
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

    /// Makes bonds of their slaves.
    fn enslave(&mut self) -> Result<(), String> {
        for (index, stanza) in self.stanzas.iter().enumerate() {
            let Some(stanza) = stanza else { continue };
            let port = self.ports.config.port(Slot::new(index));
            if port.lag_number().is_none() && stanza.slaves.is_empty() {
                continue;
            }
            let name = port.name.clone();
            let lag = self.ports.add_bond(&name)?;
            if stanza.slaves.is_empty() {
                return Err(format!("{name} has no bond-slaves, so it is no bond"));
            }
            stanza.bond.check(&name)?;
            for slave in &stanza.slaves {
                let slot = self.ports.slot(slave)?;
                self.ports.bond_of(slot, &name)?;
                let member = &mut self.ports.config.ports[slot.index()];
                if is_member(member) && member.lag != LagMembership::Of(lag) {
                    return Err(format!("port {slave} is a slave of two bonds"));
                }
                member.lag = LagMembership::Of(lag);
            }
        }
        Ok(())
    }
}
