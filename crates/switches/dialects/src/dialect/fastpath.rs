//! FASTPATH: Netgear's managed switches, Ubiquiti EdgeSwitch.
//!
//! ```text
//!   vlan database      configure                            mac address-table static
//!   vlan 2-9           interface 0/1                          02:00:00:00:00:01 vlan 2 interface 0/1
//!   exit               vlan participation include 2-9
//!                      no vlan tagging 2-9
//!                      vlan pvid 2
//!                      vlan participation exclude 1
//! ```
//! A port is in VLAN 1 from the factory, does not tag a VLAN until told to, and does not filter at ingress until told
//! to. LAGs are there from the factory, `lag 3`, and `no port-channel static` has one speak LACP. Tagging is a setting of its own, which a port keeps for VLANs that it is not in. Source: the vendors' guides for
//! VLANs; the form for addresses is that of kindred switches and believed, PAUSE as well.

use std::{collections::BTreeSet, io};

use fabric::{Admin, Basis, FloodSet, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, give},
    is_numbers, read_only, storm,
};
use crate::{
    Target,
    console::{Console, Frames, Mode, Refusal, Tag},
    names::spelt,
    text::{interpret, mac, pieces, storm_limit, unknown, vlan, vlans},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{
    PortConfig, Slot, Snooping, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command.
const RUNS_MAX: usize = 16;

/// The language.
pub(super) struct Fastpath;

impl Dialect for Fastpath {
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
            storm_control: StormControl::OfPortsAndLags,
            lags: Lags::Standing,
            lldp: None,
            snooping: SnoopingWords::new(
                ["configure\nset igmp\nexit", "configure\nno set igmp\nexit"],
                Some(["configure\nset mld\nexit", "configure\nno set mld\nexit"]),
                &[Snooping::Igmp],
            ),
            port_name: (|name| is_numbers(name, 2..=3), "0/1"),
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
            let tags = config.ports.iter().enumerate().flat_map(|(index, port)| {
                port.tagged.iter().map(move |vlan| (Slot::new(index), vlan)).collect::<Vec<_>>()
            });
            let tags = tags.collect();
            let console = Console::new(Target::Fastpath, config, Mode::Hybrid, Refusal::ByFrameType);
            let mut reader = Reader { console, at: ConfigSection::Exec, here: None, tags };
            let outcome = interpret(text, "!", |words| reader.line(words));
            reader.console.finish();
            outcome
        })
    }
}

/// Commands for ports, each in its block.
fn on_ports(out: &mut dyn Folder, ports: &[&str], command: &str) -> io::Result<()> {
    writeln!(out, "configure")?;
    let name = |port| spelt(Target::Fastpath, port);
    ports.iter().try_for_each(|port| writeln!(out, "interface {}\n{command}\nexit", name(port)))?;
    writeln!(out, "exit")
}

impl Commands for Fastpath {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        on_ports(out, ports, "shutdown")
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        on_ports(out, ports, "no shutdown")
    }

    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        writeln!(out, "vlan database")?;
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "vlan {piece}"))?;
        writeln!(out, "exit")
    }

    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()> {
        writeln!(out, "vlan database")?;
        pieces(vlans, RUNS_MAX).iter().try_for_each(|piece| writeln!(out, "no vlan {piece}"))?;
        writeln!(out, "exit")
    }

    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()> {
        writeln!(out, "configure\ninterface {}", spelt(Target::Fastpath, change.name()))?;
        if change.moves() {
            writeln!(out, "switchport mode general")?;
        }
        if change.filters() {
            writeln!(out, "vlan ingressfilter")?;
        }
        if change.unfilters() {
            writeln!(out, "no vlan ingressfilter")?;
        }
        for (joined, tagging) in [(&change.join_tagged, "vlan tagging"), (&change.join_untagged, "no vlan tagging")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, "vlan participation include {piece}\n{tagging} {piece}")?;
            }
        }
        match (change.pvid(), change.before.pvid) {
            (Some(None), _) => writeln!(out, "vlan acceptframe vlanonly")?,
            (Some(Some(pvid)), before) => {
                writeln!(out, "vlan pvid {pvid}")?;
                if before.is_none() {
                    writeln!(out, "vlan acceptframe all")?;
                }
            }
            (None, _) => {}
        }
        if change.forgets_pvid() {
            writeln!(out, "no vlan pvid")?;
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, "vlan participation exclude {piece}")?;
        }
        for (kind, limit) in change.storm_limits() {
            match limit {
                Some(limit) => writeln!(out, "storm-control {} level {limit}", storm::word(kind))?,
                None => writeln!(out, "no storm-control {}", storm::word(kind))?,
            }
        }
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, "flowcontrol symmetric")?,
            Some(_) => writeln!(out, "no flowcontrol")?,
            None => {}
        }
        writeln!(out, "exit\nexit")
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let lag = spelt(Target::Fastpath, &lag.name);
        writeln!(out, "configure\ninterface {lag}\nno port-channel static\nexit")?;
        writeln!(out, "interface {}\naddport {lag}\nexit\nexit", port.name)
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let lag = spelt(Target::Fastpath, &lag.name);
        writeln!(out, "configure\ninterface {}\ndeleteport {lag}\nexit\nexit", port.name)
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        writeln!(out, "configure")?;
        for (vlan, mac, port) in entries {
            writeln!(out, "mac address-table static {mac} vlan {vlan} interface {}", spelt(Target::Fastpath, port))?;
        }
        writeln!(out, "exit")
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        writeln!(out, "configure")?;
        for (vlan, mac, _) in entries {
            writeln!(out, "no mac address-table static {mac} vlan {vlan}")?;
        }
        writeln!(out, "exit")
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "configure\nno spanning-tree\nexit")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "configure\nspanning-tree\nexit")
    }
}

#[derive(Clone, Copy)]
enum ConfigSection {
    Exec,
    Database,
    Configure,
    Port,
}

struct Reader<'a> {
    console: Console<'a>,
    at: ConfigSection,
    here: Option<Slot>,
    /// VLANs that ports tag, if they are in them.
    tags: BTreeSet<(Slot, VlanId)>,
}

impl Reader<'_> {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let console = &mut self.console;
        match (self.at, words) {
            (at, ["exit"]) => {
                console.leave_port();
                self.here = None;
                self.at =
                    if matches!(at, ConfigSection::Port) { ConfigSection::Configure } else { ConfigSection::Exec };
                Ok(())
            }
            (ConfigSection::Exec, ["vlan", "database"]) => {
                self.at = ConfigSection::Database;
                Ok(())
            }
            (ConfigSection::Exec, ["configure"]) => {
                self.at = ConfigSection::Configure;
                Ok(())
            }
            (ConfigSection::Database, ["vlan", list]) => {
                console.make_vlans(&vlans(list)?);
                Ok(())
            }
            (ConfigSection::Database, ["vlan", "name", number, _, ..]) => {
                console.must_exist(&[vlan(number)?].into_iter().collect())
            }
            (ConfigSection::Database, ["no", "vlan", list]) => console.remove_vlans(&vlans(list)?),
            (ConfigSection::Configure, ["interface", name @ ..]) if matches!(name, [_] | ["lag", _]) => {
                let name = name.join(" ");
                self.here = Some(console.slot(&name)?);
                self.at = ConfigSection::Port;
                console.enter_port(&name)
            }
            (
                ConfigSection::Configure,
                ["mac", "address-table", "static", address, "vlan", number, "interface", port @ ..],
            ) => {
                let slot = console.slot(&port.join(" "))?;
                console.set_entry(vlan(number)?, mac(address)?, slot)
            }
            (ConfigSection::Configure, ["no", "mac", "address-table", "static", address, "vlan", number]) => {
                console.unset_entry(vlan(number)?, mac(address)?)
            }
            (ConfigSection::Configure, ["no", "spanning-tree"]) => {
                console.set_spanning_tree(SpanningTree::Off);
                Ok(())
            }
            (ConfigSection::Configure, ["spanning-tree"]) => {
                console.set_spanning_tree(SpanningTree::On);
                Ok(())
            }
            (ConfigSection::Port, words) => self.port(words),
            (ConfigSection::Configure, words) => console.set_snooping(Target::Fastpath, words),
            _ => unknown(words),
        }
    }

    fn port(&mut self, words: &[&str]) -> Result<(), String> {
        let console = &mut self.console;
        let Some(slot) = self.here else { return unknown(words) };
        match words {
            ["addport", "lag", number] => console.join_lag(number),
            ["deleteport", "lag", _] => console.leave_lag(),
            ["no", "port-channel", "static"] => console.set_lacp(true),
            ["shutdown"] => console.set_admin(Admin::Down),
            ["no", "shutdown"] => console.set_admin(Admin::Up),
            ["flowcontrol", "symmetric"] => console.set_flow_control(FlowControlMode::Pause),
            ["no", "flowcontrol"] => console.set_flow_control(FlowControlMode::Off),
            ["storm-control", word, "level", percent] if storm::kind(word).is_some() => {
                storm::kind(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, Some(storm_limit(percent)?)))
            }
            ["no", "storm-control", word] if storm::kind(word).is_some() => {
                storm::kind(word).map_or(Ok(()), |kind| console.set_storm_limit(kind, None))
            }
            ["switchport", "mode", "general"] => console.set_mode(Mode::Hybrid),
            ["vlan", "ingressfilter"] => console.set_ingress_filter(IngressFilter::On),
            ["no", "vlan", "ingressfilter"] => console.set_ingress_filter(IngressFilter::Off),
            ["vlan", "participation", "include", list] => {
                let (kept, stripped) = vlans(list)?.iter().partition(|vlan| self.tags.contains(&(slot, *vlan)));
                let (kept, stripped): (Vec<VlanId>, Vec<VlanId>) = (kept, stripped);
                console.join(&kept.into_iter().collect(), Tag::Keep)?;
                console.join(&stripped.into_iter().collect(), Tag::Strip)
            }
            // Left to dynamic registration, which is off unless it is turned on.
            ["vlan", "participation", "exclude" | "auto", list] => console.leave(&vlans(list)?),
            ["vlan", "tagging", list] => {
                self.tags.extend(vlans(list)?.iter().map(|vlan| (slot, vlan)));
                console.set_tag(&vlans(list)?, Tag::Keep)
            }
            ["no", "vlan", "tagging", list] => {
                for vlan in vlans(list)?.iter() {
                    self.tags.remove(&(slot, vlan));
                }
                console.set_tag(&vlans(list)?, Tag::Strip)
            }
            ["vlan", "pvid", number] => console.set_pvid(vlan(number)?),
            ["no", "vlan", "pvid"] => console.set_pvid(VlanId::MIN),
            ["vlan", "acceptframe", "vlanonly"] => console.set_frames(Frames::Tagged),
            ["vlan", "acceptframe", "all"] | ["no", "vlan", "acceptframe"] => console.set_frames(Frames::All),
            _ => unknown(words),
        }
    }
}
