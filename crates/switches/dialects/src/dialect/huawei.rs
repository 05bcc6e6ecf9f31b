//! Huawei switches with VRP 5.
//!
//! ```text
//!   vlan batch 2 to 9          interface GigabitEthernet0/0/1
//!   stp disable                 port link-type hybrid
//!                               port hybrid untagged vlan 2 to 9
//!   mac-address static          port hybrid pvid vlan 2
//!     0200-0000-0001            undo port hybrid vlan 1
//!     GigabitEthernet0/0/1 vlan 2
//! ```
//! A port is hybrid from the factory and untagged in VLAN 1, or `auto` on newer releases, so the link type is always said.
//! Untagged frames belong to the PVID and are dropped where the port is not in it. `unicast-suppression block outbound` keeps
//! unknown unicast from leaving a port, and so for multicast and broadcast; `unicast-suppression 5` admits 5 % of the
//! port's rate. A LAG is `Eth-Trunk3` in mode `lacp`, which older releases call `lacp-static`; a port joins it with the factory's VLAN
//! settings alone, and has them when it leaves. Source: vendor's guide for the PVID; the
//! rest is believed.

use std::io;

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, give},
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
    PortConfig, Slot, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command: the language takes ten.
const RUNS_MAX: usize = 10;

/// The language.
pub(super) struct Huawei;

impl Dialect for Huawei {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "cfg",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::ALL,
            storm_control: StormControl::OfPortsAndLags,
            lags: Lags::Made,
            lldp: Some(["lldp enable", "undo lldp enable"]),
            snooping: SnoopingWords::new(
                ["igmp-snooping enable", "undo igmp-snooping enable"],
                Some(["mld-snooping enable", "undo mld-snooping enable"]),
                &[],
            ),
            port_name: (is_word, "GigabitEthernet0/0/1"),
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
            let mut console =
                Console::new(Target::Huawei, config, Mode::Hybrid, Refusal::ByPvid).with(Membership::Factory);
            let mut view = View::System;
            let outcome = interpret(text, "#", |words| line(&mut console, &mut view, words));
            let lags = console.check_lags();
            console.finish();
            let line = text.lines().count().max(1);
            outcome.and(lags.map_err(|message| vec![LineError { line, message }]))
        })
    }
}

impl Commands for Huawei {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n shutdown\n quit", spelt(Target::Huawei, port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports
            .iter()
            .try_for_each(|port| writeln!(out, "interface {}\n undo shutdown\n quit", spelt(Target::Huawei, port)))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "vlan batch {}", in_words(piece)))
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "undo vlan batch {}", in_words(piece)))
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "interface {}", spelt(Target::Huawei, change.name()))?;
        if change.moves() {
            writeln!(out, " port link-type hybrid")?;
        }
        for (joined, tag) in [(&change.join_tagged, "tagged"), (&change.join_untagged, "untagged")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, " port hybrid {tag} vlan {}", in_words(&piece))?;
            }
        }
        match (change.pvid(), change.before.pvid) {
            (Some(Some(pvid)), _) => writeln!(out, " port hybrid pvid vlan {pvid}")?,
            (Some(None), before) if before != Some(VlanId::MIN) => writeln!(out, " undo port hybrid pvid vlan")?,
            _ => {}
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, " undo port hybrid vlan {}", in_words(&piece))?;
        }
        // PAUSE is said to members of a LAG.
        match change.flow_control().filter(|_| change.after.lag_number().is_none()) {
            Some(FlowControlMode::Pause) => writeln!(out, " flow-control")?,
            Some(_) => writeln!(out, " undo flow-control")?,
            None => {}
        }
        for (kind, limit) in change.storm_limits() {
            match limit {
                Some(limit) => writeln!(out, " {} {limit}", suppression(kind))?,
                None => writeln!(out, " undo {}", suppression(kind))?,
            }
        }
        for kind in change.unblocks().iter() {
            writeln!(out, " undo {} block outbound", suppression(kind))?;
        }
        for kind in change.blocks().iter() {
            writeln!(out, " {} block outbound", suppression(kind))?;
        }
        writeln!(out, " quit")
    }

    fn make_lag(&self, out: &mut dyn Folder, lag: Slot, after: &SwitchConfig) -> io::Result<()> {
        writeln!(out, "interface {}\n mode lacp\n quit", spelt(Target::Huawei, &after.port(lag).name))
    }

    fn remove_lag(&self, out: &mut dyn Folder, lag: &str) -> io::Result<()> {
        writeln!(out, "undo interface {}", spelt(Target::Huawei, lag))
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let Some(number) = lag.lag_number() else { return Ok(()) };
        writeln!(out, "interface {}\n port hybrid untagged vlan 1\n undo port link-type", port.name)?;
        writeln!(out, " eth-trunk {}\n quit", number.get())
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        writeln!(out, "interface {}\n undo eth-trunk\n port link-type hybrid", port.name)?;
        writeln!(out, " undo port hybrid vlan 1\n quit")
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "mac-address static {} {} vlan {vlan}", mac_hyphen4(*mac), spelt(Target::Huawei, port))
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "undo mac-address static {} {} vlan {vlan}", mac_hyphen4(*mac), spelt(Target::Huawei, port))
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "stp disable")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "stp enable")
    }
}

enum View {
    System,
    Vlan,
    Port,
}

fn line(console: &mut Console<'_>, view: &mut View, words: &[&str]) -> Result<(), String> {
    match (&*view, words) {
        (_, ["quit" | "return"]) => {
            console.leave_port();
            *view = View::System;
            Ok(())
        }
        (View::System, ["undo", "interface", name @ ..]) => console.remove_lag(&name.concat()),
        (_, ["interface", name @ ..]) => {
            *view = View::Port;
            console.enter_port(&name.concat())
        }
        (View::System, ["vlan", "batch", list @ ..]) => {
            console.make_vlans(&vlans_to(list)?);
            Ok(())
        }
        (View::System, ["undo", "vlan", "batch", list @ ..]) => console.remove_vlans(&vlans_to(list)?),
        (View::System, ["undo", "vlan", number]) => console.remove_vlans(&[vlan(number)?].into_iter().collect()),
        (View::System | View::Vlan, ["vlan", number]) => {
            *view = View::Vlan;
            console.make_vlans(&[vlan(number)?].into_iter().collect());
            Ok(())
        }
        (View::Vlan, ["description" | "name", ..]) => Ok(()),
        (View::System, ["mac-address", "static", address, port @ .., "vlan", number]) => {
            let slot = console.slot(&port.concat())?;
            console.set_entry(vlan(number)?, mac(address)?, slot)
        }
        (View::System, ["undo", "mac-address", "static", address, port @ .., "vlan", number]) => {
            console.slot(&port.concat())?;
            console.unset_entry(vlan(number)?, mac(address)?)
        }
        (View::System, ["lldp", "enable"]) => {
            console.set_lldp(Lldp::On);
            Ok(())
        }
        (View::System, ["undo", "lldp", "enable"]) => {
            console.set_lldp(Lldp::Off);
            Ok(())
        }
        (View::System, ["stp", "disable"] | ["undo", "stp", "enable"]) => {
            console.set_spanning_tree(SpanningTree::Off);
            Ok(())
        }
        (View::System, ["stp", "enable"]) => {
            console.set_spanning_tree(SpanningTree::On);
            Ok(())
        }
        (View::Port, words) => port(console, words),
        (View::System, words) => console.set_snooping(Target::Huawei, words),
        _ => unknown(words),
    }
}

fn port(console: &mut Console<'_>, words: &[&str]) -> Result<(), String> {
    match words {
        ["mode", "lacp" | "lacp-static"] => console.set_lacp(true),
        ["mode", "manual", ..] | ["undo", "mode"] => console.set_lacp(false),
        ["eth-trunk", number] => console.join_lag(number),
        ["undo", "eth-trunk"] => console.leave_lag(),
        ["undo", "port", "link-type"] => console.set_mode(Mode::Hybrid),
        ["shutdown"] => console.set_admin(Admin::Down),
        ["undo", "shutdown"] => console.set_admin(Admin::Up),
        ["flow-control"] => console.set_flow_control(FlowControlMode::Pause),
        ["undo", "flow-control"] => console.set_flow_control(FlowControlMode::Off),
        [word, "block", "outbound"] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.block(kind))
        }
        ["undo", word, "block", "outbound"] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.unblock(kind))
        }
        [word, percent] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, Some(storm_limit(percent)?)))
        }
        ["undo", word] if suppressed(word).is_some() => {
            suppressed(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, None))
        }
        ["port", "link-type", "hybrid"] => console.set_mode(Mode::Hybrid),
        ["port", "link-type", "access"] => console.set_mode(Mode::Access),
        ["port", "default", "vlan", number] => console.set_access(vlan(number)?),
        ["port", "link-type", "trunk"] => console.set_mode(Mode::Trunk),
        ["port", "trunk", "allow-pass", "vlan", "all"] => console.allow(&every_vlan()),
        ["port", "trunk", "allow-pass", "vlan", list @ ..] => console.allow(&vlans_to(list)?),
        ["undo", "port", "trunk", "allow-pass", "vlan", "all"] => console.forbid(&every_vlan()),
        ["undo", "port", "trunk", "allow-pass", "vlan", list @ ..] => console.forbid(&vlans_to(list)?),
        ["port", "trunk", "pvid", "vlan", number] => console.set_native(vlan(number)?),
        ["undo", "port", "trunk", "pvid", "vlan"] => console.set_native(VlanId::MIN),
        ["port", "hybrid", "pvid", "vlan", number] => console.set_pvid(vlan(number)?),
        ["undo", "port", "hybrid", "pvid", "vlan"] => console.set_pvid(VlanId::MIN),
        ["port", "hybrid", "tagged", "vlan", list @ ..] => console.join(&vlans_to(list)?, Tag::Keep),
        ["port", "hybrid", "untagged", "vlan", list @ ..] => console.join(&vlans_to(list)?, Tag::Strip),
        ["undo", "port", "hybrid", "vlan", list @ ..] => console.leave(&vlans_to(list)?),
        _ => unknown(words),
    }
}
