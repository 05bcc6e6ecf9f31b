//! Open vSwitch, as OpenFlow rules: its own VLAN modes know one untagged VLAN a port, rules know as many as one likes.
//!
//! ```text
//!   table 0, who comes in    in_port=p1, no tag    → push the PVID's tag, table 1
//!                            in_port=p1, VLAN 2    → table 1                          else dropped
//!   table 1, where to        VLAN 2, to 02:…:01    → [strip the tag,] out of p1
//!                            VLAN 2                → out of every tagged member; strip; out of every untagged one
//! ```
//! A rule never sends a frame back out of the port that it came in by, as a bridge does not. All rules change at once, in a
//! bundle. To rules, a member of Open vSwitch's own bonds is a port by itself, and only `NORMAL` spreads frames over a bond; so a LAG is
//! a bonding device of the kernel, as [`super::bond`] says, and one port of the bridge. Tried in the userspace datapath.

use std::{collections::BTreeMap, io, io::Write as _};

use fabric::{Basis, FloodSet, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    bond, is_member, kernel_bridge::Ports, lags, lags_removed, linux_bridge::is_device, present, read_only,
};
use crate::console::take_flow_control;
use crate::text::{LineError, interpret, mac, unknown, vlan};
use switch_model::{
    PortConfig, Slot, SwitchConfig,
    change::{Change, PortChange, Stage},
};

/// The bridge.
const BRIDGE: &str = "espalier";

/// The language.
pub(super) struct OpenVswitch;

impl Dialect for OpenVswitch {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "sh",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Never,
            blocks: FloodSet::NONE,
            storm_control: StormControl::Lacks,
            lags: Lags::Made,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (|name| is_device(name) && name.starts_with(|c: char| c.is_ascii_alphabetic()), "eth1"),
            basis: Basis::Tested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::blank(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        if change.stage == Stage::Prepare {
            writeln!(out, "set -eu")?;
            writeln!(
                out,
                "ovs-vsctl --may-exist add-br {BRIDGE} -- set bridge {BRIDGE} fail_mode=secure stp_enable=false"
            )?;
            for lag in lags(change.after) {
                writeln!(out, "ip link delete dev {} type bond 2>/dev/null || :", change.after.port(lag).name)?;
            }
            for port in present(change.after, change.kept).filter(|port| port.lag_number().is_none()) {
                writeln!(out, "ip link set dev {} down", port.name)?;
            }
        } else if change.stage == Stage::Step {
            writeln!(out, "set -eu")?;
        }
        for port in change.shut() {
            writeln!(out, "ip link set dev {port} down")?;
        }
        let mut bonds = Vec::new();
        bond::begin(change, &mut bonds)?;
        write_ip(out, &bonds)?;
        let taken: Vec<&PortConfig> = match change.stage {
            Stage::Prepare => present(change.after, change.kept).filter(|port| !is_member(port)).collect(),
            Stage::Open => Vec::new(),
            Stage::Step => change.ports().filter(PortChange::begins).map(|port| port.after).collect(),
        };
        for PortConfig { name, .. } in taken {
            writeln!(out, "ovs-vsctl --may-exist add-port {BRIDGE} {name}")?;
        }
        let (before, after) = (rules(change.before), rules(change.after));
        if change.stage == Stage::Prepare || before != after {
            writeln!(out, "ovs-ofctl --bundle add-flows {BRIDGE} - <<'EOF'")?;
            if change.stage == Stage::Prepare {
                writeln!(out, "delete")?;
                writeln!(out, "add table=0,priority=0,actions=drop\nadd table=1,priority=0,actions=drop")?;
            }
            for rule in before.keys().filter(|rule| !after.contains_key(*rule)) {
                writeln!(out, "delete_strict {rule}")?;
            }
            for (rule, actions) in after.iter().filter(|(rule, actions)| before.get(*rule) != Some(actions)) {
                writeln!(out, "add {rule},actions={actions}")?;
            }
            writeln!(out, "EOF")?;
        }
        for port in change.ports().filter(|port| port.after.lag_number().is_none()) {
            let state = match port.flow_control() {
                Some(FlowControlMode::Pause) => "on",
                Some(_) => "off",
                None => continue,
            };
            let name = port.name();
            writeln!(out, "ethtool -A {name} rx {state} tx {state} || echo \"{name}: the card refuses PAUSE\" >&2")?;
        }
        // A member of a bond is no port of the bridge; rules name ports until here.
        let given: Vec<&PortConfig> = match change.stage {
            Stage::Prepare => change.after.ports.iter().filter(|port| is_member(port)).collect(),
            Stage::Open => Vec::new(),
            Stage::Step => change.ports().filter(|port| port.joins_lag().is_some()).map(|port| port.after).collect(),
        };
        for PortConfig { name, .. } in given {
            writeln!(out, "ovs-vsctl --if-exists del-port {BRIDGE} {name}")?;
        }
        for lag in lags_removed(change) {
            writeln!(out, "ovs-vsctl --if-exists del-port {BRIDGE} {}", change.before.port(lag).name)?;
        }
        let mut bonds = Vec::new();
        bond::end(change, &mut bonds)?;
        write_ip(out, &bonds)?;
        for port in change.opened() {
            writeln!(out, "ip link set dev {port} up")?;
        }
        Ok(())
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let flows = rules(config).into_iter().filter_map(|(rule, actions)| Flow::of(&rule, &actions, config).ok());
            let flows = flows.map(|flow| (flow.key(), flow)).collect();
            let ports = Ports::new(true, None, config);
            // VLANs are what the rules say, in the end.
            for port in &mut ports.config.ports {
                (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
            }
            let mut reader = Reader { ports, flows, in_bundle: false };
            interpret(text, "#", |words| reader.line(words))?;
            let line = text.lines().count().max(1);
            reader.finish().map_err(|message| vec![LineError { line, message }])
        })
    }
}

/// Lines of `ip` as commands of their own.
fn write_ip(out: &mut Output<'_>, lines: &[u8]) -> io::Result<()> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.into_iter().try_for_each(|line| {
        out.write_all(b"ip ")?;
        out.write_all(line)?;
        out.write_all(b"\n")
    })
}

/// The rules that make a switch: match, and actions.
fn rules(config: &SwitchConfig) -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    for port in &config.ports {
        let name = &port.name;
        if let Some(pvid) = port.pvid {
            rules.insert(
                format!("table=0,priority=10,in_port={name},vlan_tci=0x0000/0x0fff"),
                format!("mod_vlan_vid:{pvid},resubmit(,1)"),
            );
        }
        for vlan in port.members().iter() {
            rules.insert(format!("table=0,priority=20,in_port={name},dl_vlan={vlan}"), "resubmit(,1)".to_owned());
        }
    }
    for vlan in config.memberships().iter() {
        let names = |is: &dyn Fn(&switch_model::PortConfig) -> bool| -> Vec<String> {
            config.ports.iter().filter(|port| is(port)).map(|port| format!("output:{}", port.name)).collect()
        };
        let mut actions = names(&|port| port.tagged.contains(vlan));
        let untagged = names(&|port| port.untagged.contains(vlan));
        if !untagged.is_empty() {
            actions.push("strip_vlan".to_owned());
            actions.extend(untagged);
        }
        rules.insert(format!("table=1,priority=10,dl_vlan={vlan}"), actions.join(","));
    }
    for (&(vlan, mac), &slot) in &config.entries {
        let port = config.port(slot);
        let strip = if port.untagged.contains(vlan) { "strip_vlan," } else { "" };
        let rule = format!("table=1,priority=20,dl_vlan={vlan},dl_dst={mac}");
        rules.insert(rule, format!("{strip}output:{}", port.name));
    }
    rules
}

/// A rule, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flow {
    /// Untagged frames of a port get its PVID.
    Untagged { port: Slot, pvid: VlanId },
    /// A port takes frames of a VLAN in.
    Enter { port: Slot, vlan: VlanId },
    /// Frames of a VLAN go out of these ports, and with what tag.
    Flood { vlan: VlanId, tagged: Vec<Slot>, untagged: Vec<Slot> },
    /// Frames of a VLAN for an address go out of this port.
    Forward { vlan: VlanId, mac: fabric::Mac, port: Slot, strip: bool },
    /// Everything else is dropped.
    Drop { table: u8 },
}

/// What tells rules of one table apart, at their priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Untagged(Slot),
    Enter(Slot, VlanId),
    Flood(VlanId),
    Forward(VlanId, fabric::Mac),
    Drop(u8),
}

impl Flow {
    fn key(&self) -> Key {
        match self {
            Self::Untagged { port, .. } => Key::Untagged(*port),
            Self::Enter { port, vlan } => Key::Enter(*port, *vlan),
            Self::Flood { vlan, .. } => Key::Flood(*vlan),
            Self::Forward { vlan, mac, .. } => Key::Forward(*vlan, *mac),
            Self::Drop { table } => Key::Drop(*table),
        }
    }

    fn of(rule: &str, actions: &str, config: &SwitchConfig) -> Result<Self, String> {
        let key = Self::key_of(rule, config)?;
        let slot = |name: &str| config.slot(name).ok_or_else(|| format!("the switch has no port {name}"));
        let actions = split_actions(actions);
        let wrong = || Err(format!("actions {:?} are not those of such a rule", actions.join(",")));
        match (key, &actions[..]) {
            (Key::Drop(table), ["drop"]) => Ok(Self::Drop { table }),
            (Key::Untagged(port), [tag, "resubmit(,1)"]) => match tag.strip_prefix("mod_vlan_vid:") {
                Some(pvid) => Ok(Self::Untagged { port, pvid: vlan(pvid)? }),
                None => wrong(),
            },
            (Key::Enter(port, vlan), ["resubmit(,1)"]) => Ok(Self::Enter { port, vlan }),
            (Key::Flood(_) | Key::Forward(..), outputs) => {
                let (mut tagged, mut untagged, mut strip) = (Vec::new(), Vec::new(), false);
                for action in outputs {
                    match action.strip_prefix("output:") {
                        Some(name) if strip => untagged.push(slot(name)?),
                        Some(name) => tagged.push(slot(name)?),
                        None if *action == "strip_vlan" => strip = true,
                        None => return wrong(),
                    }
                }
                match (key, &tagged[..], &untagged[..]) {
                    (Key::Forward(vlan, mac), [port], []) => Ok(Self::Forward { vlan, mac, port: *port, strip }),
                    (Key::Forward(vlan, mac), [], [port]) => Ok(Self::Forward { vlan, mac, port: *port, strip }),
                    (Key::Flood(vlan), ..) => Ok(Self::Flood { vlan, tagged, untagged }),
                    _ => wrong(),
                }
            }
            _ => wrong(),
        }
    }

    fn key_of(rule: &str, config: &SwitchConfig) -> Result<Key, String> {
        let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
        for field in rule.split(',') {
            let (name, value) = field.split_once('=').ok_or_else(|| format!("{field:?} is no field of a rule"))?;
            fields.insert(name, value);
        }
        let port = |name: &str| config.slot(name).ok_or_else(|| format!("the switch has no port {name}"));
        let shape: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, *value)).collect();
        match shape[..] {
            [("priority", "0"), ("table", table @ ("0" | "1"))] => Ok(Key::Drop(u8::from(table == "1"))),
            [("in_port", name), ("priority", "10"), ("table", "0"), ("vlan_tci", "0x0000/0x0fff")] => {
                Ok(Key::Untagged(port(name)?))
            }
            [("dl_vlan", number), ("in_port", name), ("priority", "20"), ("table", "0")] => {
                Ok(Key::Enter(port(name)?, vlan(number)?))
            }
            [("dl_vlan", number), ("priority", "10"), ("table", "1")] => Ok(Key::Flood(vlan(number)?)),
            [("dl_dst", address), ("dl_vlan", number), ("priority", "20"), ("table", "1")] => {
                Ok(Key::Forward(vlan(number)?, mac(address)?))
            }
            _ => Err(format!("{rule:?} is no rule that this reader knows")),
        }
    }
}

/// Actions at commas outside parentheses.
fn split_actions(actions: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, byte) in actions.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&actions[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&actions[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

struct Reader<'a> {
    ports: Ports<'a>,
    flows: BTreeMap<Key, Flow>,
    in_bundle: bool,
}

impl Reader<'_> {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["EOF"] if self.in_bundle => self.in_bundle = false,
            ["delete"] if self.in_bundle => self.flows.clear(),
            ["delete_strict", rule] if self.in_bundle => {
                let key = Flow::key_of(rule, self.ports.config)?;
                self.flows.remove(&key).ok_or_else(|| format!("there is no rule {rule} to delete"))?;
            }
            ["add", rule] if self.in_bundle => {
                let (rule, actions) = rule.split_once(",actions=").ok_or("the rule has no actions")?;
                let flow = Flow::of(rule, actions, self.ports.config)?;
                self.flows.insert(flow.key(), flow);
            }
            _ if self.in_bundle => return unknown(words),
            ["set", "-eu"] => {}
            ["ovs-vsctl", "--may-exist", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, settings @ ..] => {
                if !settings.contains(&"fail_mode=secure") {
                    return Err("without fail_mode=secure the bridge floods when it has no rules".to_owned());
                }
                let spanning_tree = settings.contains(&"stp_enable=true") || settings.contains(&"rstp_enable=true");
                self.ports.config.spanning_tree =
                    if spanning_tree { fabric::SpanningTree::On } else { fabric::SpanningTree::Off };
            }
            ["ovs-vsctl", "--may-exist", "add-port", BRIDGE, port] => {
                let slot = self.ports.slot(port)?;
                let config = &self.ports.config;
                if is_member(config.port(slot))
                    || (config.port(slot).lag_number().is_some() && !self.ports.bonds.contains(&slot))
                {
                    return Err(format!("{port} is a member of a bond, or a bond that is not there"));
                }
            }
            ["ovs-vsctl", "--if-exists", "del-port", BRIDGE, port] => {
                self.ports.slot(port)?;
            }
            ["ovs-ofctl", "--bundle", "add-flows", BRIDGE, "-", "<<'EOF'"] => self.in_bundle = true,
            ["ip", "link", "delete", "dev", name, "type", "bond", ..] => return self.ports.remove_any_bond(name),
            ["ip", rest @ ..] => return self.ports.ip(rest),
            ["ethtool", "-A", rest @ ..] => return self.ports.pause(rest),
            _ => return unknown(words),
        }
        Ok(())
    }

    /// The ports and entries that behave as the rules do.
    fn finish(self) -> Result<(), String> {
        let Self { ports: Ports { config, .. }, flows, in_bundle } = self;
        if in_bundle {
            return Err("the bundle has no EOF".to_owned());
        }
        for port in &mut config.ports {
            (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
        }
        take_flow_control(config);
        config.entries.clear();
        for flow in flows.values() {
            match flow {
                Flow::Flood { vlan, tagged, untagged } => {
                    for slot in tagged {
                        config.ports[slot.index()].tagged.insert(*vlan);
                    }
                    for slot in untagged {
                        config.ports[slot.index()].untagged.insert(*vlan);
                    }
                }
                Flow::Untagged { port, pvid } => config.ports[port.index()].pvid = Some(*pvid),
                Flow::Forward { vlan, mac, port, .. } => {
                    config.entries.insert((*vlan, *mac), *port);
                }
                Flow::Enter { .. } | Flow::Drop { .. } => {}
            }
        }
        let member =
            config.ports.iter().find(|port| is_member(port) && !(port.members().is_empty() && port.pvid.is_none()));
        if let Some(port) = member {
            return Err(format!("rules name port {}, which is a member of a bond", port.name));
        }
        // A port is a member in both directions, and an entry treats the tag as the flood does.
        for (index, port) in config.ports.iter().enumerate() {
            let slot = Slot::new(index);
            let enters = |vlan: VlanId| flows.contains_key(&Key::Enter(slot, vlan));
            if let Some(vlan) = port.members().iter().find(|vlan| !enters(*vlan)) {
                return Err(format!("port {} sends VLAN {vlan} and does not take it in", port.name));
            }
            let into = flows.values().filter_map(|flow| match flow {
                Flow::Enter { port, vlan } if *port == slot => Some(*vlan),
                _ => None,
            });
            if let Some(vlan) = into.into_iter().find(|vlan| !port.is_member(*vlan)) {
                return Err(format!("port {} takes VLAN {vlan} in and does not send it", port.name));
            }
        }
        for flow in flows.values() {
            if let Flow::Forward { vlan, mac, port, strip } = flow {
                let port = config.port(*port);
                if !port.is_member(*vlan) || port.untagged.contains(*vlan) != *strip {
                    let name = &port.name;
                    return Err(format!(
                        "the rule for {mac} in VLAN {vlan} treats tags otherwise than port {name} does"
                    ));
                }
            }
        }
        config.vlans = config.memberships();
        config.vlans.remove(VlanId::MIN);
        Ok(())
    }
}
