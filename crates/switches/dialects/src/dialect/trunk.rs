//! Arista EOS and Cisco IOS: ports are trunks with one native VLAN, so hosts tag their own frames.
//!
//! ```text
//!   vlan 2-9                             interface Ethernet1
//!   spanning-tree mode none    (EOS)      switchport mode trunk
//!   no spanning-tree vlan 1-4094 (IOS)    switchport trunk allowed vlan none
//!                                         switchport trunk allowed vlan add 2-9
//!   mac address-table static 0200.0000.0001 vlan 2 interface Ethernet1
//!
//!   qos map cos 0 to traffic-class 0     interface Ethernet1               (EOS, priority flow control)
//!   …                                     qos trust cos
//!   qos map cos 7 to traffic-class 7      priority-flow-control on
//!                                         priority-flow-control priority 0 no-drop
//! ```
//! A port is an access port in VLAN 1 until it is a trunk, and a trunk allows *every* VLAN until it is told which. Frames of
//! the native VLAN have no tag; it is VLAN 1 unless named, and untagged frames are dropped where the trunk does not allow
//! it. EOS, as 802.1Q proposes, serves priorities 0 and 1 in each other's class until told otherwise; a port that is
//! not told to trust the priority of frames may go by their DSCP, and a trusted priority leaves as it came. IOS keeps unknown
//! unicast and multicast from leaving a port by `switchport block`, and limits floods that come in by `storm-control`. A LAG is `Port-channel3`, and
//! `channel-group 3 mode active` is LACP. On EOS a member's own VLANs count again when it leaves; on IOS it has those of the LAG, is
//! suspended while it has others, and keeps them when it leaves. Sources: the
//! vendors' guides; nobody has tried it here.

use std::{collections::BTreeSet, io};

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, PRIORITIES, SnoopingWords, StormControl,
    TextFile, Traits, Untagged, absent, are_apart,
    commands::{Commands, Entry, give},
    is_word, lags, read_only, snooping, stands, storm,
};
use crate::{
    Target,
    console::{no_such_lag, take_flow_control},
    names::{PortIndex, no_such_port, spelt},
    text::{every_vlan, interpret, mac, mac_dot4, pieces, storm_limit, unknown, vlan, vlans},
};
use fabric::SpanningTree;
use switch_model::{
    LagMembership, PortConfig, Slot, Snooping, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command.
const RUNS_MAX: usize = 16;

/// A vendor's language.
pub(super) enum Trunk {
    /// Arista.
    Eos,
    /// Cisco.
    Ios,
}

impl Dialect for Trunk {
    fn traits(&self) -> Traits {
        let (pause, priority_flow_control) = match self {
            Self::Eos => (Ability::Has, Ability::Has),
            Self::Ios => (Ability::Lacks, Ability::Lacks),
        };
        Traits {
            comment: Some("!"),
            extension: "cfg",
            untagged: Untagged::Native,
            pause,
            priority_flow_control,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: match self {
                Self::Eos => FloodSet::NONE,
                Self::Ios => FloodSet::NONE.with(FloodKind::UnknownUnicast).with(FloodKind::Multicast),
            },
            storm_control: match self {
                Self::Eos => StormControl::Lacks,
                Self::Ios => StormControl::OfPortsAndLags,
            },
            lags: Lags::Made,
            lldp: Some(["lldp run", "no lldp run"]),
            snooping: SnoopingWords::new(
                ["ip igmp snooping", "no ip igmp snooping"],
                Some(match self {
                    Self::Eos => ["mld snooping\n exit", "no mld snooping"],
                    Self::Ios => ["ipv6 mld snooping", "no ipv6 mld snooping"],
                }),
                &[Snooping::Igmp],
            ),
            port_name: (is_word, "Ethernet1"),
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
            let mut reader = Reader::new(self, config);
            let outcome = interpret(text, "!", |words| reader.line(words));
            let last = text.lines().count().max(1);
            outcome?;
            reader.finish().map_err(|message| vec![crate::text::LineError { line: last, message }])
        })
    }
}

impl Commands for Trunk {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n shutdown\n exit", spelt(self.target(), port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n no shutdown\n exit", spelt(self.target(), port)))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "vlan {piece}\n exit"))
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "no vlan {piece}"))
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "interface {}", spelt(self.target(), change.name()))?;
        let is_fresh = is_access(change.before);
        if is_fresh {
            writeln!(out, " switchport mode trunk\n switchport trunk allowed vlan none")?;
        }
        let joined: VlanSet =
            (change.after.members().iter()).filter(|vlan| is_fresh || !change.before.is_member(*vlan)).collect();
        for piece in pieces(&joined, RUNS_MAX) {
            writeln!(out, " switchport trunk allowed vlan add {piece}")?;
        }
        match (change.pvid(), is_fresh) {
            (Some(Some(native)), _) => writeln!(out, " switchport trunk native vlan {native}")?,
            (Some(None), false) => writeln!(out, " no switchport trunk native vlan")?,
            _ => {}
        }
        if !is_fresh {
            for piece in pieces(&change.leave, RUNS_MAX) {
                writeln!(out, " switchport trunk allowed vlan remove {piece}")?;
            }
        }
        for kind in change.unblocks().iter() {
            writeln!(out, " no switchport block {}", storm::word(kind))?;
        }
        for kind in change.blocks().iter() {
            writeln!(out, " switchport block {}", storm::word(kind))?;
        }
        for (kind, limit) in change.storm_limits() {
            match limit {
                Some(limit) => writeln!(out, " storm-control {} level {limit}", storm::word(kind))?,
                None => writeln!(out, " no storm-control {} level", storm::word(kind))?,
            }
        }
        if let Some(mode) = change.flow_control() {
            match change.after.lag_number() {
                None => self.flow_control(out, &change.before.flow_control, mode)?,
                // Its members have it, and it says by what their frames go.
                Some(_) => match (lanes(&change.before.flow_control), lanes(mode)) {
                    (0, 1..) => writeln!(out, " qos trust cos")?,
                    (1.., 0) => writeln!(out, " default qos trust")?,
                    _ => {}
                },
            }
        }
        writeln!(out, " exit")
    }

    fn make_lag(&self, out: &mut dyn Folder, lag: Slot, after: &SwitchConfig) -> io::Result<()> {
        writeln!(out, "interface {}\n exit", spelt(self.target(), &after.port(lag).name))
    }

    fn remove_lag(&self, out: &mut dyn Folder, lag: &str) -> io::Result<()> {
        writeln!(out, "no interface {}", spelt(self.target(), lag))
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let Some(number) = lag.lag_number() else { return Ok(()) };
        writeln!(out, "interface {}\n channel-group {} mode active", port.name, number.get())?;
        if matches!(self, Self::Ios) {
            // A member with other VLANs is suspended, so it gets them only now.
            writeln!(out, " switchport mode trunk")?;
            for piece in pieces(&lag.members(), RUNS_MAX) {
                writeln!(out, " switchport trunk allowed vlan add {piece}")?;
            }
            if let Some(native) = lag.pvid {
                writeln!(out, " switchport trunk native vlan {native}")?;
            }
        }
        writeln!(out, " exit")
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        writeln!(out, "interface {}", port.name)?;
        if matches!(self, Self::Ios) {
            writeln!(out, " switchport trunk allowed vlan none")?;
            if lag.pvid.is_some() {
                writeln!(out, " no switchport trunk native vlan")?;
            }
        }
        writeln!(out, " no channel-group\n exit")
    }

    fn serve_classes(&self, out: &mut dyn Folder) -> io::Result<()> {
        (0..self.classes()).try_for_each(|class| writeln!(out, "qos map cos {class} to traffic-class {class}"))
    }

    fn forget_classes(&self, out: &mut dyn Folder) -> io::Result<()> {
        (0..self.classes()).try_for_each(|class| writeln!(out, "no qos map cos {class}"))
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(
                out,
                "mac address-table static {} vlan {vlan} interface {}",
                mac_dot4(*mac),
                spelt(self.target(), port)
            )
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(
                out,
                "no mac address-table static {} vlan {vlan} interface {}",
                mac_dot4(*mac),
                spelt(self.target(), port)
            )
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        match self {
            Self::Eos => writeln!(out, "spanning-tree mode none"),
            Self::Ios => writeln!(out, "no spanning-tree vlan 1-4094"),
        }
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        match self {
            Self::Eos => writeln!(out, "spanning-tree mode mstp"),
            Self::Ios => writeln!(out, "spanning-tree vlan 1-4094"),
        }
    }
}

impl Trunk {
    fn target(&self) -> Target {
        match self {
            Self::Eos => Target::Eos,
            Self::Ios => Target::Ios,
        }
    }

    /// Whether members of a LAG have its VLANs, and keep them when they leave.
    fn mirrors(&self) -> bool {
        matches!(self, Self::Ios)
    }

    /// How many classes ports may tell apart.
    fn classes(&self) -> usize {
        match self {
            Self::Eos => PRIORITIES,
            Self::Ios => 0,
        }
    }

    fn flow_control(&self, out: &mut dyn Folder, before: &FlowControlMode, to: &FlowControlMode) -> io::Result<()> {
        let (old, new) = (lanes(before), lanes(to));
        if *before == FlowControlMode::Pause {
            writeln!(out, " flowcontrol send off\n flowcontrol receive off")?;
        }
        match (old, new) {
            (0, 1..) => writeln!(out, " qos trust cos\n priority-flow-control on")?,
            (1.., 0) => writeln!(out, " no priority-flow-control\n default qos trust")?,
            _ => {}
        }
        for class in new..old {
            writeln!(out, " no priority-flow-control priority {class} no-drop")?;
        }
        for class in old..new {
            writeln!(out, " priority-flow-control priority {class} no-drop")?;
        }
        if *to == FlowControlMode::Pause {
            writeln!(out, " flowcontrol send on\n flowcontrol receive on")?;
        }
        Ok(())
    }
}

/// How many classes are lossless.
fn lanes(mode: &FlowControlMode) -> u8 {
    match mode {
        FlowControlMode::Pfc { lanes } => *lanes,
        FlowControlMode::Off | FlowControlMode::Pause => 0,
    }
}

/// Whether a port is as it came out of the box.
fn is_access(port: &PortConfig) -> bool {
    port.untagged.contains(VlanId::MIN)
}

/// What a port remembers.
#[derive(Clone)]
struct Memory {
    trunk: bool,
    access: VlanId,
    native: VlanId,
    allowed: VlanSet,
    pause_send: bool,
    pause_receive: bool,
    priority: bool,
    lossless: [bool; PRIORITIES],
    /// Whether it was told to go by the priority of frames.
    trusts: bool,
}

impl Memory {
    /// A port that nobody has told anything.
    fn fresh() -> Self {
        Self {
            trunk: false,
            access: VlanId::MIN,
            native: VlanId::MIN,
            allowed: every_vlan(),
            pause_send: false,
            pause_receive: false,
            priority: false,
            lossless: [false; PRIORITIES],
            trusts: false,
        }
    }

    /// Takes the VLANs of another port.
    fn mirror(&mut self, other: &Self) {
        let Self { trunk, access, native, allowed, .. } = other.clone();
        (self.trunk, self.access, self.native, self.allowed) = (trunk, access, native, allowed);
    }

    /// What decides a port's VLANs, among those that there are.
    fn vlans(&self, exists: impl Fn(&VlanId) -> bool) -> (bool, VlanId, VlanSet) {
        match self.trunk {
            true => (true, self.native, self.allowed.iter().filter(exists).collect()),
            false => (false, self.access, VlanSet::new()),
        }
    }
}

struct Reader<'a> {
    language: &'a Trunk,
    config: &'a mut SwitchConfig,
    index: PortIndex,
    ports: Vec<Memory>,
    here: Option<Slot>,
    /// LAGs that are there.
    there: BTreeSet<Slot>,
    /// `class_of[priority]`.
    class_of: [u8; PRIORITIES],
}

/// The classes of the eight priorities as the switch comes.
const FACTORY_CLASSES: [u8; PRIORITIES] = [1, 0, 2, 3, 4, 5, 6, 7];

/// A priority, or a class.
fn number(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| *number < PRIORITIES);
    number.ok_or_else(|| format!("{word:?} is no number from 0 to 7"))
}

impl<'a> Reader<'a> {
    fn new(language: &'a Trunk, config: &'a mut SwitchConfig) -> Self {
        let memory = |port: &PortConfig| {
            let trunk = !is_access(port);
            let mut lossless = [false; PRIORITIES];
            let mut priority = false;
            if let FlowControlMode::Pfc { lanes } = port.flow_control {
                priority = true;
                lossless.iter_mut().take(lanes.into()).for_each(|class| *class = true);
            }
            let pause = port.flow_control == FlowControlMode::Pause;
            Memory {
                trunk,
                access: VlanId::MIN,
                native: if trunk { port.pvid.unwrap_or(VlanId::MIN) } else { VlanId::MIN },
                allowed: if trunk { port.members() } else { every_vlan() },
                pause_send: pause,
                pause_receive: pause,
                priority,
                lossless,
                trusts: priority,
            }
        };
        let mut ports: Vec<Memory> = config.ports.iter().map(memory).collect();
        for (index, port) in config.ports.iter().enumerate() {
            if let (LagMembership::Of(lag), true) = (port.lag, language.mirrors()) {
                let lag = ports[lag.index()].clone();
                ports[index].mirror(&lag);
            }
        }
        let there = lags(config).filter(|lag| stands(config, *lag)).collect();
        let class_of = if config.has_classes() { [0, 1, 2, 3, 4, 5, 6, 7] } else { FACTORY_CLASSES };
        let index = PortIndex::new(Some(language.target()), config.ports.iter().map(|port| port.name.as_str()));
        Self { language, config, index, ports, here: None, there, class_of }
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["exit" | "end"] => {
                self.here = None;
                Ok(())
            }
            ["interface", name @ ..] => {
                self.here = None;
                let slot = self.slot(&name.concat())?;
                if self.config.port(slot).lag_number().is_some() && self.there.insert(slot) {
                    let made = SwitchConfig::out_of_the_box([self.config.port(slot).name.clone()]);
                    self.config.ports[slot.index()] = made.ports.into_iter().next().ok_or("a LAG is a port")?;
                    self.ports[slot.index()] = Memory::fresh();
                }
                self.here = Some(slot);
                Ok(())
            }
            ["no", "interface", name @ ..] => {
                self.here = None;
                let slot = self.slot(&name.concat())?;
                if !self.there.remove(&slot) {
                    return Err(format!("there is no {} to remove", name.concat()));
                }
                if let Some(member) = self.config.members_of(slot).next() {
                    return Err(format!("port {} is still a member", self.config.port(member).name));
                }
                self.config.ports[slot.index()] = absent(self.config.port(slot));
                self.config.entries.retain(|_, leads| *leads != slot);
                Ok(())
            }
            ["vlan", list] => {
                self.here = None;
                self.config.vlans.extend(vlans(list)?.iter().filter(|vlan| *vlan != VlanId::MIN));
                Ok(())
            }
            ["no", "vlan", list] => {
                for vlan in vlans(list)?.iter() {
                    if !self.config.vlans.remove(vlan) {
                        return Err(format!("VLAN {vlan} does not exist here, or cannot be removed"));
                    }
                }
                Ok(())
            }
            ["name", _] if self.here.is_none() => Ok(()),
            ["lldp", "run"] => {
                self.config.lldp = Some(Lldp::On);
                Ok(())
            }
            ["no", "lldp", "run"] => {
                self.config.lldp = Some(Lldp::Off);
                Ok(())
            }
            ["mac", "address-table", "static", address, "vlan", number, "interface", port] => {
                let (slot, number) = (self.slot(port)?, vlan(number)?);
                if !self.config.vlans.contains(number) {
                    return Err(format!("VLAN {number} does not exist here: nothing above makes it"));
                }
                self.config.entries.insert((number, mac(address)?), slot);
                Ok(())
            }
            ["no", "mac", "address-table", "static", address, "vlan", number, "interface", port] => {
                let (number, address) = (vlan(number)?, mac(address)?);
                match self.config.entries.remove(&(number, address)) {
                    Some(slot) if slot == self.slot(port)? => Ok(()),
                    _ => Err(format!("there is no static entry for {address} in VLAN {number} to {port}")),
                }
            }
            ["qos", "map", "cos", priorities @ .., "to", "traffic-class", class] if self.language.classes() > 0 => {
                let class = number(class)? as u8;
                priorities.iter().try_for_each(|priority| {
                    self.class_of[number(priority)?] = class;
                    Ok(())
                })
            }
            ["no" | "default", "qos", "map", "cos", priorities @ ..] if self.language.classes() > 0 => {
                priorities.iter().try_for_each(|priority| {
                    let priority = number(priority)?;
                    self.class_of[priority] = FACTORY_CLASSES[priority];
                    Ok(())
                })
            }
            words if snooping::said(self.language.target(), words).is_some() => {
                self.here = None;
                snooping::tell(self.language.target(), words, &mut self.config.snooping)
            }
            words => {
                let off = match (self.language, words) {
                    (Trunk::Eos, ["spanning-tree", "mode", "none"]) => true,
                    (Trunk::Eos, ["spanning-tree", "mode", _]) => false,
                    (Trunk::Ios, ["no", "spanning-tree", "vlan", list]) => vlans(list)? == every_vlan(),
                    (Trunk::Ios, ["spanning-tree", "vlan", _]) => false,
                    _ => return self.port(words),
                };
                self.config.spanning_tree = if off { SpanningTree::Off } else { SpanningTree::On };
                Ok(())
            }
        }
    }

    fn port(&mut self, words: &[&str]) -> Result<(), String> {
        let Some(slot) = self.here else { return unknown(words) };
        match words {
            ["channel-group", number, "mode", "active"] => {
                let lag = self.config.slot(&format!("lag{number}")).ok_or_else(|| no_such_lag(number))?;
                if self.config.port(slot).lag_number().is_some() {
                    return Err("a LAG is no member of another".to_owned());
                }
                self.config.ports[slot.index()].lag = LagMembership::Of(lag);
                return Ok(());
            }
            ["no", "channel-group"] => {
                self.config.ports[slot.index()].lag = LagMembership::Alone;
                return Ok(());
            }
            _ => {}
        }
        self.setting(slot, words)?;
        let about_vlans =
            words.contains(&"switchport") && ["mode", "access", "trunk"].iter().any(|word| words.contains(word));
        if about_vlans && self.language.mirrors() {
            let members: Vec<Slot> = self.config.members_of(slot).collect();
            members.into_iter().try_for_each(|member| self.setting(member, words))?;
        }
        Ok(())
    }

    /// A command for a port.
    fn setting(&mut self, slot: Slot, words: &[&str]) -> Result<(), String> {
        let (port, memory) = (&mut self.config.ports[slot.index()], &mut self.ports[slot.index()]);
        match (self.language, words) {
            (_, ["shutdown"]) => port.admin = Admin::Down,
            (_, ["no", "shutdown"]) => port.admin = Admin::Up,
            (_, ["switchport"]) => {}
            (_, ["switchport", "mode", "trunk"]) => memory.trunk = true,
            (_, ["switchport", "mode", "access"]) => memory.trunk = false,
            (_, ["switchport", "access", "vlan", number]) => memory.access = vlan(number)?,
            (_, ["switchport", "trunk", "native", "vlan", number]) => memory.native = vlan(number)?,
            (_, ["no", "switchport", "trunk", "native", "vlan"]) => memory.native = VlanId::MIN,
            (_, ["switchport", "trunk", "allowed", "vlan", rest @ ..]) => match rest {
                ["none"] => memory.allowed = VlanSet::new(),
                ["all"] => memory.allowed = every_vlan(),
                ["add", list] => memory.allowed.extend(vlans(list)?.iter()),
                ["remove", list] => {
                    for vlan in vlans(list)?.iter() {
                        memory.allowed.remove(vlan);
                    }
                }
                [list] => memory.allowed = vlans(list)?,
                _ => return unknown(words),
            },
            (_, ["no", "switchport", "trunk", "allowed", "vlan"]) => memory.allowed = every_vlan(),
            (Trunk::Ios, ["switchport", "block", word @ ("unicast" | "multicast")]) => {
                let kinds = storm::kind(word).map_or(FloodSet::NONE, |kind| FloodSet::NONE.with(kind));
                port.blocked = Some(port.blocked.unwrap_or_default().or(kinds));
            }
            (Trunk::Ios, ["no", "switchport", "block", word @ ("unicast" | "multicast")]) => {
                let kinds = storm::kind(word).map_or(FloodSet::NONE, |kind| FloodSet::NONE.with(kind));
                port.blocked = Some(port.blocked.unwrap_or_default().without(kinds));
            }
            (Trunk::Ios, ["storm-control", word, "level", percent]) => {
                let Some(kind) = storm::kind(word) else { return unknown(words) };
                port.storm_limits.get_or_insert_default()[kind as usize] = Some(storm_limit(percent)?);
            }
            (Trunk::Ios, ["no", "storm-control", word, "level"]) => {
                let Some(kind) = storm::kind(word) else { return unknown(words) };
                port.storm_limits.get_or_insert_default()[kind as usize] = None;
            }
            (Trunk::Eos, ["flowcontrol", "send", "on"]) => memory.pause_send = true,
            (Trunk::Eos, ["flowcontrol", "send", "off"]) => memory.pause_send = false,
            (_, ["flowcontrol", "receive", "on"]) => memory.pause_receive = true,
            (_, ["flowcontrol", "receive", "off"]) => memory.pause_receive = false,
            (Trunk::Eos, ["priority-flow-control", "on"]) => memory.priority = true,
            // It may leave classes lossless for when it is on again.
            (Trunk::Eos, ["no", "priority-flow-control"]) => memory.priority = false,
            (Trunk::Eos, ["priority-flow-control", "priority", class, kind @ ("drop" | "no-drop")]) => {
                memory.lossless[number(class)?] = *kind == "no-drop";
            }
            (Trunk::Eos, ["no", "priority-flow-control", "priority", class, "drop" | "no-drop"]) => {
                memory.lossless[number(class)?] = false;
            }
            (Trunk::Eos, ["qos", "trust", by @ ("cos" | "dscp")]) => memory.trusts = *by == "cos",
            (Trunk::Eos, ["no" | "default", "qos", "trust"]) => memory.trusts = false,
            _ => return unknown(words),
        }
        Ok(())
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        let known = || self.config.ports.iter().map(|port| port.name.as_str());
        self.index.said(name).map(Slot::new).ok_or_else(|| no_such_port(name, known()))
    }

    /// Weighs what was told.
    fn finish(self) -> Result<(), String> {
        let exists = |vlan: &VlanId| *vlan == VlanId::MIN || self.config.vlans.contains(*vlan);
        for (port, memory) in self.config.ports.iter().zip(&self.ports) {
            let LagMembership::Of(slot) = port.lag else { continue };
            let (name, lag, of_lag) = (&port.name, self.config.port(slot), &self.ports[slot.index()]);
            if !self.there.contains(&slot) {
                return Err(format!("port {name} is a member of {}, which nothing makes", lag.name));
            }
            if self.language.mirrors() && memory.vlans(exists) != of_lag.vlans(exists) {
                return Err(format!("port {name} has other VLANs than {}, so it is suspended", lag.name));
            }
            if memory.priority && !of_lag.trusts {
                return Err(format!("{} has lossless classes, and does not go by the priority of frames", lag.name));
            }
        }
        let vlans = self.config.vlans.clone();
        let exists = |vlan: &VlanId| *vlan == VlanId::MIN || vlans.contains(*vlan);
        for (index, (port, memory)) in self.config.ports.iter_mut().zip(&self.ports).enumerate() {
            let is_lag = port.lag_number().is_some();
            if is_lag && !self.there.contains(&Slot::new(index)) {
                continue;
            }
            let (members, native) = if memory.trunk {
                (memory.allowed.iter().filter(exists).collect(), memory.native)
            } else {
                (VlanSet::from_iter([memory.access]), memory.access)
            };
            let members = if matches!(port.lag, LagMembership::Of(_)) { VlanSet::new() } else { members };
            let is_in = members.contains(native);
            port.untagged = Some(native).filter(|_| is_in).into_iter().collect();
            port.pvid = is_in.then_some(native);
            port.tagged = members.iter().filter(|vlan| *vlan != native).collect();
            if is_lag {
                continue;
            }
            let lanes = memory.lossless.iter().take_while(|class| **class).count();
            let has_gaps = memory.lossless[lanes..].contains(&true);
            let name = &port.name;
            port.flow_control = match (memory.pause_send, memory.pause_receive, memory.priority) {
                (false, false, false) if lanes == 0 && !has_gaps => FlowControlMode::Off,
                (true, true, false) if lanes == 0 && !has_gaps => FlowControlMode::Pause,
                (false, false, true) if lanes > 0 && !has_gaps => FlowControlMode::Pfc { lanes: lanes as u8 },
                _ => {
                    let what = "flow control in one direction only, in classes with gaps, or classes without it";
                    return Err(format!("port {name} has {what}"));
                }
            };
            let FlowControlMode::Pfc { lanes } = port.flow_control else { continue };
            if !memory.trusts {
                return Err(format!("port {name} has lossless classes, and does not go by the priority of frames"));
            }
            if !are_apart(self.class_of, lanes) {
                let classes = self.class_of.map(|class| class.to_string()).join(",");
                return Err(format!("port {name}: classes {classes} do not keep priorities 0 to {} apart", lanes - 1));
            }
        }
        take_flow_control(self.config);
        Ok(())
    }
}
