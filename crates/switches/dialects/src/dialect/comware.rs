//! HPE and H3C switches with Comware 5 or 7.
//!
//! ```text
//!   vlan 2 to 9                interface GigabitEthernet1/0/1
//!   quit                        port link-type hybrid
//!   undo stp global enable      port hybrid vlan 2 to 9 untagged
//!                               port hybrid pvid vlan 2
//!                               undo port hybrid vlan 1
//!                               mac-address static 0200-0000-0001 vlan 2
//! ```
//! A port is an access port in VLAN 1 until its link type is hybrid, which it can become from access only. Untagged frames
//! belong to the PVID and are dropped where the port is not in it. An address is entered on its port, which must be in
//! the VLAN already. Sources: vendor's guides for VLANs and addresses; PAUSE and spanning tree are believed.

use std::io;

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Learns, Output, TextFile, Traits, Untagged,
    commands::{Commands, Entry, by_port, give},
    is_word, read_only,
    storm::{suppressed, suppression},
};
use crate::{
    Target,
    console::{Console, Mode, Refusal, Tag},
    text::{every_vlan, in_words, interpret, mac, mac_hyphen4, pieces, storm_limit, unknown, vlan, vlans_to},
};
use fabric::SpanningTree;
use switch_model::{
    SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command: the language takes ten.
const RUNS_MAX: usize = 10;

/// A version of the language.
pub(super) enum Comware {
    /// Spanning tree is enabled globally from the factory.
    V7,
    /// Spanning tree is `stp enable`.
    V5,
}

impl Comware {
    fn target(&self) -> Target {
        match self {
            Self::V7 => Target::Comware7,
            Self::V5 => Target::Comware5,
        }
    }
}

impl Dialect for Comware {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "cfg",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::NONE,
            storm_control: Ability::Has,
            lags: Ability::Lacks,
            lldp: Some(match self {
                Self::V7 => ["lldp global enable", "undo lldp global enable"],
                Self::V5 => ["lldp enable", "undo lldp enable"],
            }),
            port_name: (is_word, "GigabitEthernet1/0/1"),
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
            let console = Console::new(self.target(), config, Mode::Access, Refusal::ByPvid);
            let mut reader = Reader { console, version: self, view: View::System };
            let outcome = interpret(text, "#", |words| reader.line(words));
            reader.console.finish();
            outcome
        })
    }
}

impl Commands for Comware {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {port}\n shutdown\n quit"))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {port}\n undo shutdown\n quit"))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        for (first, last) in vlans.runs() {
            // A single VLAN opens a view of its own; a range does not.
            if first == last { writeln!(out, "vlan {first}\n quit")? } else { writeln!(out, "vlan {first} to {last}")? }
        }
        Ok(())
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        for (first, last) in vlans.runs() {
            if first == last {
                writeln!(out, "undo vlan {first}")?
            } else {
                writeln!(out, "undo vlan {first} to {last}")?
            }
        }
        Ok(())
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "interface {}", change.name())?;
        if change.moves() {
            writeln!(out, " port link-type hybrid")?;
        }
        for (joined, tag) in [(&change.join_tagged, "tagged"), (&change.join_untagged, "untagged")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, " port hybrid vlan {} {tag}", in_words(&piece))?;
            }
        }
        match (change.pvid(), change.before.pvid) {
            (Some(Some(pvid)), _) => writeln!(out, " port hybrid pvid vlan {pvid}")?,
            (Some(None), before) if before != Some(VlanId::MIN) => writeln!(out, " undo port hybrid pvid")?,
            _ => {}
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, " undo port hybrid vlan {}", in_words(&piece))?;
        }
        for (kind, limit) in change.storm_limits() {
            match limit {
                Some(limit) => writeln!(out, " {} {limit}", suppression(kind))?,
                None => writeln!(out, " undo {}", suppression(kind))?,
            }
        }
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, " flow-control")?,
            Some(_) => writeln!(out, " undo flow-control")?,
            None => {}
        }
        writeln!(out, " quit")
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        for (port, entries) in by_port(entries) {
            writeln!(out, "interface {port}")?;
            for (vlan, mac, _) in entries {
                writeln!(out, " mac-address static {} vlan {vlan}", mac_hyphen4(mac))?;
            }
            writeln!(out, " quit")?;
        }
        Ok(())
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        for (port, entries) in by_port(entries) {
            writeln!(out, "interface {port}")?;
            for (vlan, mac, _) in entries {
                writeln!(out, " undo mac-address static {} vlan {vlan}", mac_hyphen4(mac))?;
            }
            writeln!(out, " quit")?;
        }
        Ok(())
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        match self {
            Self::V7 => writeln!(out, "undo stp global enable"),
            Self::V5 => writeln!(out, "stp disable"),
        }
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        match self {
            Self::V7 => writeln!(out, "stp global enable"),
            Self::V5 => writeln!(out, "stp enable"),
        }
    }
}

enum View {
    System,
    Vlan,
    Port,
}

struct Reader<'a> {
    console: Console<'a>,
    version: &'a Comware,
    view: View,
}

impl Reader<'_> {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let console = &mut self.console;
        match (&self.view, words) {
            (_, ["quit" | "return"]) => {
                console.leave_port();
                self.view = View::System;
                Ok(())
            }
            (_, ["interface", name @ ..]) => {
                self.view = View::Port;
                console.enter_port(&name.concat())
            }
            (View::System | View::Vlan, ["vlan", list @ ..]) => {
                self.view = if list.contains(&"to") { View::System } else { View::Vlan };
                console.make_vlans(&vlans_to(list)?);
                Ok(())
            }
            (View::System, ["undo", "vlan", list @ ..]) => console.remove_vlans(&vlans_to(list)?),
            (View::Vlan, ["description" | "name", ..]) => Ok(()),
            (View::System, ["mac-address", "static", address, "interface", port @ .., "vlan", number]) => {
                let slot = console.slot(&port.concat())?;
                console.set_entry(vlan(number)?, mac(address)?, slot)
            }
            (View::System, ["lldp", "enable"] | ["lldp", "global", "enable"]) => {
                console.set_lldp(Lldp::On);
                Ok(())
            }
            (View::System, ["undo", "lldp", "enable"] | ["undo", "lldp", "global", "enable"]) => {
                console.set_lldp(Lldp::Off);
                Ok(())
            }
            (View::System, words) => {
                let state = match (self.version, words) {
                    (Comware::V7, ["undo", "stp", "global", "enable"])
                    | (Comware::V5, ["stp", "disable"] | ["undo", "stp", "enable"]) => SpanningTree::Off,
                    (Comware::V7, ["stp", "global", "enable"]) | (Comware::V5, ["stp", "enable"]) => SpanningTree::On,
                    _ => return unknown(words),
                };
                console.set_spanning_tree(state);
                Ok(())
            }
            (View::Port, words) => port(console, words),
            (View::Vlan, words) => unknown(words),
        }
    }
}

fn port(console: &mut Console<'_>, words: &[&str]) -> Result<(), String> {
    match words {
        ["shutdown"] => console.set_admin(Admin::Down),
        ["undo", "shutdown"] => console.set_admin(Admin::Up),
        ["flow-control"] => console.set_flow_control(FlowControlMode::Pause),
        ["undo", "flow-control"] => console.set_flow_control(FlowControlMode::Off),
        [word, percent] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, Some(storm_limit(percent)?)))
        }
        ["undo", word] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, None))
        }
        ["port", "link-type", "hybrid"] => console.set_mode(Mode::Hybrid),
        ["port", "link-type", "access"] | ["undo", "port", "link-type"] => console.set_mode(Mode::Access),
        ["port", "access", "vlan", number] => console.set_access(vlan(number)?),
        ["port", "link-type", "trunk"] => console.set_mode(Mode::Trunk),
        ["port", "trunk", "permit", "vlan", "all"] => console.allow(&every_vlan()),
        ["port", "trunk", "permit", "vlan", list @ ..] => console.allow(&vlans_to(list)?),
        ["undo", "port", "trunk", "permit", "vlan", "all"] => console.forbid(&every_vlan()),
        ["undo", "port", "trunk", "permit", "vlan", list @ ..] => console.forbid(&vlans_to(list)?),
        ["port", "trunk", "pvid", "vlan", number] => console.set_native(vlan(number)?),
        ["undo", "port", "trunk", "pvid"] => console.set_native(VlanId::MIN),
        ["port", "hybrid", "pvid", "vlan", number] => console.set_pvid(vlan(number)?),
        ["undo", "port", "hybrid", "pvid"] => console.set_pvid(VlanId::MIN),
        ["port", "hybrid", "vlan", list @ .., "tagged"] => console.join(&vlans_to(list)?, Tag::Keep),
        ["port", "hybrid", "vlan", list @ .., "untagged"] => console.join(&vlans_to(list)?, Tag::Strip),
        ["undo", "port", "hybrid", "vlan", list @ ..] => console.leave(&vlans_to(list)?),
        ["mac-address", "static", address, "vlan", number] => console.set_entry_here(vlan(number)?, mac(address)?),
        ["undo", "mac-address", "static", address, "vlan", number] => console.unset_entry(vlan(number)?, mac(address)?),
        _ => unknown(words),
    }
}
