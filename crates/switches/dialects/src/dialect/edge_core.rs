//! Edge-Core and its kin: SMC 8648T, PowerConnect 5224.
//!
//! ```text
//!   vlan database                                   interface ethernet 1/1
//!    vlan 2 media ethernet state active              switchport mode hybrid
//!                                                    switchport allowed vlan add 2-9 untagged
//!   mac-address-table static 02-00-00-00-00-01       switchport native vlan 2
//!     interface ethernet 1/1 vlan 2 permanent        switchport allowed vlan remove 1
//! ```
//! Ports are hybrid from the factory, untagged in VLAN 1, and do not filter at ingress until told to. Source: the ECS4210's
//! guide for addresses; the rest is believed.

use std::io;

use fabric::{Admin, Basis, FloodSet, FlowControlMode, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, give},
    is_numbers, read_only,
};
use crate::{
    Target,
    console::{Console, Frames, Mode, Refusal, Tag},
    text::{interpret, mac, mac_hyphen2, pieces, unknown, vlan, vlans},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{
    Snooping, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command.
const RUNS_MAX: usize = 16;

/// The language.
pub(super) struct EdgeCore;

impl Dialect for EdgeCore {
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
            lags: Lags::Lacks,
            lldp: Some(["lldp", "no lldp"]),
            snooping: SnoopingWords::new(
                ["ip igmp snooping", "no ip igmp snooping"],
                Some(["ipv6 mld snooping", "no ipv6 mld snooping"]),
                &[Snooping::Igmp],
            ),
            port_name: (|name| is_numbers(name, 2..=2), "1/1"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::out_of_the_box_unfiltered(ports)
    }

    fn write(&self, change: &Change<'_>, to: &mut Output<'_>) -> io::Result<()> {
        give(self, change, to)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let console = Console::new(Target::EdgeCore, config, Mode::Hybrid, Refusal::ByFrameType);
            let mut reader = Reader { console, at: ConfigSection::Top };
            let outcome = interpret(text, "!", |words| reader.line(words));
            reader.console.finish();
            outcome
        })
    }
}

impl Commands for EdgeCore {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface ethernet {port}\n shutdown\nexit"))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "interface ethernet {port}\n no shutdown\nexit"))
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        writeln!(out, "vlan database")?;
        vlans.iter().try_for_each(|vlan| writeln!(out, " vlan {vlan} media ethernet state active"))?;
        writeln!(out, "exit")
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        writeln!(out, "vlan database")?;
        vlans.iter().try_for_each(|vlan| writeln!(out, " no vlan {vlan}"))?;
        writeln!(out, "exit")
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "interface ethernet {}", change.name())?;
        if change.moves() {
            writeln!(out, " switchport mode hybrid")?;
        }
        if change.filters() {
            writeln!(out, " switchport ingress-filtering")?;
        }
        if change.unfilters() {
            writeln!(out, " no switchport ingress-filtering")?;
        }
        for (joined, tag) in [(&change.join_tagged, "tagged"), (&change.join_untagged, "untagged")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, " switchport allowed vlan add {piece} {tag}")?;
            }
        }
        match (change.pvid(), change.before.pvid) {
            (Some(None), _) => writeln!(out, " switchport acceptable-frame-types tagged")?,
            (Some(Some(pvid)), before) => {
                writeln!(out, " switchport native vlan {pvid}")?;
                if before.is_none() {
                    writeln!(out, " switchport acceptable-frame-types all")?;
                }
            }
            (None, _) => {}
        }
        if change.forgets_pvid() {
            writeln!(out, " no switchport native vlan")?;
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, " switchport allowed vlan remove {piece}")?;
        }
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, " flowcontrol")?,
            Some(_) => writeln!(out, " no flowcontrol")?,
            None => {}
        }
        writeln!(out, "exit")
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, port)| {
            let mac = mac_hyphen2(*mac);
            writeln!(out, "mac-address-table static {mac} interface ethernet {port} vlan {vlan} permanent")
        })
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        entries.iter().try_for_each(|(vlan, mac, _)| {
            writeln!(out, "no mac-address-table static {} vlan {vlan}", mac_hyphen2(*mac))
        })
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "no spanning-tree")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "spanning-tree")
    }
}

enum ConfigSection {
    Top,
    Database,
    Port,
}

struct Reader<'a> {
    console: Console<'a>,
    at: ConfigSection,
}

impl Reader<'_> {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let console = &mut self.console;
        match (&self.at, words) {
            (_, ["exit"]) => {
                console.leave_port();
                self.at = ConfigSection::Top;
                Ok(())
            }
            (_, ["vlan", "database"]) => {
                console.leave_port();
                self.at = ConfigSection::Database;
                Ok(())
            }
            (_, ["interface", "ethernet", name @ ..]) => {
                self.at = ConfigSection::Port;
                console.enter_port(&name.concat())
            }
            (
                ConfigSection::Database,
                ["vlan", list, "media", "ethernet"]
                | ["vlan", list, "media", "ethernet", "state", "active"]
                | ["vlan", list, "name", _, .., "media", "ethernet"]
                | ["vlan", list, "name", _, .., "media", "ethernet", "state", "active"],
            ) => {
                console.make_vlans(&vlans(list)?);
                Ok(())
            }
            (ConfigSection::Database, ["no", "vlan", list]) => console.remove_vlans(&vlans(list)?),
            (
                ConfigSection::Top,
                ["mac-address-table", "static", address, "interface", "ethernet", port, "vlan", number]
                | ["mac-address-table", "static", address, "interface", "ethernet", port, "vlan", number, "permanent"],
            ) => {
                let slot = console.slot(port)?;
                console.set_entry(vlan(number)?, mac(address)?, slot)
            }
            (ConfigSection::Top, ["no", "mac-address-table", "static", address, "vlan", number]) => {
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
            (ConfigSection::Top, words) => console.set_snooping(Target::EdgeCore, words),
            _ => unknown(words),
        }
    }
}

fn port(console: &mut Console<'_>, words: &[&str]) -> Result<(), String> {
    match words {
        ["shutdown"] => console.set_admin(Admin::Down),
        ["no", "shutdown"] => console.set_admin(Admin::Up),
        ["flowcontrol"] => console.set_flow_control(FlowControlMode::Pause),
        ["no", "flowcontrol"] => console.set_flow_control(FlowControlMode::Off),
        ["switchport", "mode", "hybrid"] => console.set_mode(Mode::Hybrid),
        ["switchport", "ingress-filtering"] => console.set_ingress_filter(IngressFilter::On),
        ["no", "switchport", "ingress-filtering"] => console.set_ingress_filter(IngressFilter::Off),
        ["switchport", "allowed", "vlan", "add", list, "tagged"] => console.join(&vlans(list)?, Tag::Keep),
        ["switchport", "allowed", "vlan", "add", list, "untagged"] => console.join(&vlans(list)?, Tag::Strip),
        ["switchport", "allowed", "vlan", "remove", list] => console.leave(&vlans(list)?),
        ["switchport", "native", "vlan", number] => console.set_pvid(vlan(number)?),
        ["no", "switchport", "native", "vlan"] => console.set_pvid(VlanId::MIN),
        ["switchport", "acceptable-frame-types", "tagged"] => console.set_frames(Frames::Tagged),
        ["switchport", "acceptable-frame-types", "all"] | ["no", "switchport", "acceptable-frame-types"] => {
            console.set_frames(Frames::All)
        }
        _ => unknown(words),
    }
}
