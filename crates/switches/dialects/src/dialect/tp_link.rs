//! TP-Link JetStream switches whose firmware knows "general" ports.
//!
//! ```text
//!   vlan 2-9        interface gigabitEthernet 1/0/1
//!   exit              switchport general allowed vlan 2-9 untagged
//!                     switchport pvid 2
//!                     no switchport general allowed vlan 1
//!   mac address-table static 02:00:00:00:00:01 vid 2 interface gigabitEthernet 1/0/1
//! ```
//! Ports are general from the factory, untagged in VLAN 1, and filter at ingress. A LAG is `port-channel 3`, and
//! `channel-group 3 mode active` is LACP. Source: vendor's guide for VLANs; addresses
//! and frame types are believed.

use std::io;

use fabric::{Admin, Basis, FloodSet, FlowControlMode, LagNumber, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, give},
    is_numbers, read_only,
};
use crate::{
    Target,
    console::{Console, Frames, Mode, Refusal, Tag},
    names::spelt,
    text::{interpret, mac, pieces, unknown, vlan, vlans},
};
use fabric::SpanningTree;
use switch_model::{
    PortConfig, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command.
const RUNS_MAX: usize = 16;

/// The language.
pub(super) struct TpLink;

impl Dialect for TpLink {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("!"),
            extension: "cfg",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::NONE,
            storm_control: StormControl::Lacks,
            lags: Lags::Standing,
            lldp: Some(["lldp", "no lldp"]),
            snooping: SnoopingWords::new(
                ["ip igmp snooping", "no ip igmp snooping"],
                Some(["ipv6 mld snooping", "no ipv6 mld snooping"]),
                &[],
            ),
            port_name: (|name| is_numbers(name, 3..=3), "1/0/1"),
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
            let mut console = Console::new(Target::TpLink, config, Mode::Hybrid, Refusal::ByFrameType);
            let mut at = ConfigSection::Top;
            let outcome = interpret(text, "!", |words| line(&mut console, &mut at, words));
            console.finish();
            outcome
        })
    }
}

impl Commands for TpLink {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n  shutdown\nexit", kind_and_name(port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface {}\n  no shutdown\nexit", kind_and_name(port)))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "vlan {piece}\nexit"))
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "no vlan {piece}"))
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "interface {}", kind_and_name(change.name()))?;
        for (joined, tag) in [(&change.join_tagged, "tagged"), (&change.join_untagged, "untagged")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, "  switchport general allowed vlan {piece} {tag}")?;
            }
        }
        match (change.pvid(), change.before.pvid) {
            (Some(None), _) => writeln!(out, "  switchport acceptable frame tagged")?,
            (Some(Some(pvid)), before) => {
                writeln!(out, "  switchport pvid {pvid}")?;
                if before.is_none() {
                    writeln!(out, "  no switchport acceptable frame")?;
                }
            }
            (None, _) => {}
        }
        if change.forgets_pvid() {
            writeln!(out, "  no switchport pvid")?;
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, "  no switchport general allowed vlan {piece}")?;
        }
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, "  flow-control")?,
            Some(_) => writeln!(out, "  no flow-control")?,
            None => {}
        }
        writeln!(out, "exit")
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let Some(number) = lag.lag_number() else { return Ok(()) };
        let port = kind_and_name(&port.name);
        writeln!(out, "interface {port}\n  channel-group {} mode active\nexit", number.get())
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        writeln!(out, "interface {}\n  no channel-group\nexit", kind_and_name(&port.name))
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "mac address-table static {mac} vid {vlan} interface {}", kind_and_name(port))
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            writeln!(out, "no mac address-table static {mac} vid {vlan} interface {}", kind_and_name(port))
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "no spanning-tree")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "spanning-tree")
    }
}

/// A port, behind the word for its kind.
fn kind_and_name(port: &str) -> String {
    match LagNumber::of_port(port) {
        Some(_) => spelt(Target::TpLink, port).into_owned(),
        None => format!("gigabitEthernet {port}"),
    }
}

enum ConfigSection {
    Top,
    Vlan,
    Port,
}

/// A port's name behind the word for its kind, which the names of LAGs need.
fn said(kind: &str, name: &str) -> String {
    if kind == "port-channel" { format!("{kind} {name}") } else { name.to_owned() }
}

fn line(console: &mut Console<'_>, at: &mut ConfigSection, words: &[&str]) -> Result<(), String> {
    match (&*at, words) {
        (_, ["exit"]) => {
            console.leave_port();
            *at = ConfigSection::Top;
            Ok(())
        }
        (_, ["interface", kind, name]) if kind.ends_with("Ethernet") => {
            *at = ConfigSection::Port;
            console.enter_port(name)
        }
        (_, ["interface", "port-channel", number]) => {
            *at = ConfigSection::Port;
            console.enter_port(&format!("port-channel {number}"))
        }
        (ConfigSection::Vlan, ["name", _]) => Ok(()),
        (ConfigSection::Top | ConfigSection::Vlan, ["vlan", list]) => {
            *at = ConfigSection::Vlan;
            console.make_vlans(&vlans(list)?);
            Ok(())
        }
        (ConfigSection::Top, ["no", "vlan", list]) => console.remove_vlans(&vlans(list)?),
        (
            ConfigSection::Top,
            [
                "mac",
                "address-table",
                "static",
                address,
                "vid",
                number,
                "interface",
                kind @ ("gigabitEthernet" | "port-channel"),
                port,
            ],
        ) => {
            let slot = console.slot(&said(kind, port))?;
            console.set_entry(vlan(number)?, mac(address)?, slot)
        }
        (
            ConfigSection::Top,
            [
                "no",
                "mac",
                "address-table",
                "static",
                address,
                "vid",
                number,
                "interface",
                kind @ ("gigabitEthernet" | "port-channel"),
                port,
            ],
        ) => {
            console.slot(&said(kind, port))?;
            console.unset_entry(vlan(number)?, mac(address)?)
        }
        (ConfigSection::Top, ["lldp"]) => {
            console.set_lldp(Lldp::On);
            Ok(())
        }
        (ConfigSection::Top, ["no", "lldp"]) => {
            console.set_lldp(Lldp::Off);
            Ok(())
        }
        (ConfigSection::Top, ["no", "spanning-tree"]) => {
            console.set_spanning_tree(SpanningTree::Off);
            Ok(())
        }
        (ConfigSection::Top, ["spanning-tree"]) => {
            console.set_spanning_tree(SpanningTree::On);
            Ok(())
        }
        (ConfigSection::Port, words) => port(console, words),
        (ConfigSection::Top, words) => console.set_snooping(Target::TpLink, words),
        _ => unknown(words),
    }
}

fn port(console: &mut Console<'_>, words: &[&str]) -> Result<(), String> {
    match words {
        ["channel-group", number, "mode", "active"] => console.join_lag(number),
        ["no", "channel-group"] => console.leave_lag(),
        ["shutdown"] => console.set_admin(Admin::Down),
        ["no", "shutdown"] => console.set_admin(Admin::Up),
        ["flow-control"] => console.set_flow_control(FlowControlMode::Pause),
        ["no", "flow-control"] => console.set_flow_control(FlowControlMode::Off),
        ["switchport", "general", "allowed", "vlan", list, "tagged"] => console.join(&vlans(list)?, Tag::Keep),
        ["switchport", "general", "allowed", "vlan", list, "untagged"] => console.join(&vlans(list)?, Tag::Strip),
        ["no", "switchport", "general", "allowed", "vlan", list] => console.leave(&vlans(list)?),
        ["switchport", "pvid", number] => console.set_pvid(vlan(number)?),
        ["no", "switchport", "pvid"] => console.set_pvid(VlanId::MIN),
        ["switchport", "acceptable", "frame", "tagged"] => console.set_frames(Frames::Tagged),
        ["switchport", "acceptable", "frame", "all"] | ["no", "switchport", "acceptable", "frame"] => {
            console.set_frames(Frames::All)
        }
        _ => unknown(words),
    }
}
