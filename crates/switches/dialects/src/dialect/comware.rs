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
//! the VLAN already. A LAG is `Bridge-Aggregation3`; what it is told of VLANs its members are told as well, and they keep it when they
//! leave. A member that has other VLANs is not selected, so it gets them when it has joined, and loses them before it leaves. Sources: vendor's guides for VLANs and addresses; PAUSE and spanning tree are believed.

use std::io;

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, by_port, give},
    is_word, read_only,
    storm::{suppressed, suppression},
};
use crate::{
    Target,
    console::{Console, Membership, Mode, Refusal, Tag},
    names::spelt,
    text::{
        LineError, every_vlan, in_words, interpret, mac, mac_hyphen4, pieces, storm_limit, unknown, vlan, vlans_to,
    },
};
use fabric::SpanningTree;
use switch_model::{
    PortConfig, Slot, Snooping, SwitchConfig,
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
            storm_control: StormControl::OfPorts,
            lags: Lags::Made,
            lldp: Some(match self {
                Self::V7 => ["lldp global enable", "undo lldp global enable"],
                Self::V5 => ["lldp enable", "undo lldp enable"],
            }),
            snooping: SnoopingWords {
                in_full: match self {
                    Self::V7 => &[Snooping::Igmp, Snooping::Mld],
                    Self::V5 => &[Snooping::Igmp],
                },
                ..SnoopingWords::new(
                    ["igmp-snooping\n quit", "undo igmp-snooping"],
                    Some(["mld-snooping\n quit", "undo mld-snooping"]),
                    &[],
                )
            },
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
            let console = Console::new(self.target(), config, Mode::Access, Refusal::ByPvid).with(Membership::Mirrors);
            let mut reader = Reader { console, version: self, view: View::System };
            let outcome = interpret(text, "#", |words| reader.line(words));
            let lags = reader.console.check_lags();
            reader.console.finish();
            let line = text.lines().count().max(1);
            outcome.and(lags.map_err(|message| vec![LineError { line, message }]))
        })
    }
}

impl Commands for Comware {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n shutdown\n quit", spelt(self.target(), port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports
            .iter()
            .try_for_each(|port| writeln!(out, "interface {}\n undo shutdown\n quit", spelt(self.target(), port)))
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
        writeln!(out, "interface {}", spelt(self.target(), change.name()))?;
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
        // PAUSE is said to members of a LAG.
        match change.flow_control().filter(|_| change.after.lag_number().is_none()) {
            Some(FlowControlMode::Pause) => writeln!(out, " flow-control")?,
            Some(_) => writeln!(out, " undo flow-control")?,
            None => {}
        }
        writeln!(out, " quit")
    }

    fn make_lag(&self, out: &mut dyn Folder, lag: Slot, after: &SwitchConfig) -> io::Result<()> {
        let name = spelt(self.target(), &after.port(lag).name);
        writeln!(out, "interface {name}\n link-aggregation mode dynamic\n quit")
    }

    fn remove_lag(&self, out: &mut dyn Folder, lag: &str) -> io::Result<()> {
        writeln!(out, "undo interface {}", spelt(self.target(), lag))
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let Some(number) = lag.lag_number() else { return Ok(()) };
        // A member with other VLANs carries nothing, so it gets them only now.
        writeln!(out, "interface {}\n port link-aggregation group {}", port.name, number.get())?;
        writeln!(out, " port link-type hybrid")?;
        for (set, tag) in [(&lag.tagged, "tagged"), (&lag.untagged, "untagged")] {
            for piece in pieces(set, RUNS_MAX) {
                writeln!(out, " port hybrid vlan {} {tag}", in_words(&piece))?;
            }
        }
        if let Some(pvid) = lag.pvid {
            writeln!(out, " port hybrid pvid vlan {pvid}")?;
        }
        writeln!(out, " quit")
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        writeln!(out, "interface {}", port.name)?;
        if lag.pvid.is_some() {
            writeln!(out, " undo port hybrid pvid")?;
        }
        for piece in pieces(&lag.members(), RUNS_MAX) {
            writeln!(out, " undo port hybrid vlan {}", in_words(&piece))?;
        }
        writeln!(out, " undo port link-aggregation group\n quit")
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        for (port, entries) in by_port(entries) {
            writeln!(out, "interface {}", spelt(self.target(), port))?;
            for (vlan, mac, _) in entries {
                writeln!(out, " mac-address static {} vlan {vlan}", mac_hyphen4(mac))?;
            }
            writeln!(out, " quit")?;
        }
        Ok(())
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        for (port, entries) in by_port(entries) {
            writeln!(out, "interface {}", spelt(self.target(), port))?;
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
            (View::System, ["undo", "interface", name @ ..]) => console.remove_lag(&name.concat()),
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
                    _ => return console.set_snooping(self.version.target(), words),
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
        ["link-aggregation", "mode", mode @ ("dynamic" | "static")] => console.set_lacp(*mode == "dynamic"),
        ["undo", "link-aggregation", "mode"] => console.set_lacp(false),
        ["port", "link-aggregation", "group", number] => console.join_lag(number),
        ["undo", "port", "link-aggregation", "group"] => console.leave_lag(),
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
