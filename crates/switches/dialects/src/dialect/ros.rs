//! Dell PowerConnect 53xx and 54xx, and Cisco's small-business switches with their kin: one language in two generations.
//!
//! ```text
//!   vlan database            interface ethernet g1                                interface vlan 2
//!   vlan 2-9                 switchport mode general                              bridge address 02:… ethernet g1
//!   exit                     switchport general allowed vlan add 2-9 untagged     exit
//! ```
//! A port is in access mode in VLAN 1 until it is told to be *general*; in general mode it filters at ingress, and it is
//! in VLAN 1 until that is removed. The newer generation enters addresses globally, and keeps unknown unicast from leaving a
//! port by `bridge unicast unknown filtering`. LAGs are there from the factory; `channel-group 3 mode auto` is LACP, and a member's own
//! VLANs count again when it leaves. Sources: the vendors' CLI guides for
//! VLANs; the addresses' newer form is believed.

use std::io;

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, LagNumber, Lldp, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Folder, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits,
    Untagged,
    commands::{Commands, Entry, give},
    is_word, read_only,
};
use crate::{
    Target,
    console::{Console, Frames, Mode, Refusal, Tag},
    names::spelt,
    text::{interpret, mac, pieces, unknown, vlan, vlans},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{
    PortConfig, Snooping, SwitchConfig,
    change::{Change, PortChange},
};

/// Runs of VLANs in one command.
const RUNS_MAX: usize = 16;

/// A generation of the language.
pub(super) enum Ros {
    /// `interface ethernet g1`, addresses under their VLAN.
    PowerConnect,
    /// `interface gi1`, addresses global.
    CiscoSb,
}

impl Ros {
    fn target(&self) -> Target {
        match self {
            Self::PowerConnect => Target::PowerConnect,
            Self::CiscoSb => Target::CiscoSb,
        }
    }

    fn enter(&self, port: &str) -> String {
        format!("interface {}", self.kind_and_name(port))
    }

    /// A port, behind the word for its kind where the language has one.
    fn kind_and_name(&self, port: &str) -> String {
        let name = spelt(self.target(), port);
        match self {
            Self::PowerConnect if LagNumber::of_port(port).is_none() => format!("ethernet {name}"),
            Self::PowerConnect | Self::CiscoSb => name.into_owned(),
        }
    }
}

impl Dialect for Ros {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("!"),
            extension: "cfg",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: match self {
                Self::PowerConnect => FloodSet::NONE,
                Self::CiscoSb => FloodSet::NONE.with(FloodKind::UnknownUnicast),
            },
            storm_control: StormControl::Lacks,
            lags: Lags::Standing,
            lldp: match self {
                Self::PowerConnect => None,
                Self::CiscoSb => Some(["lldp run", "no lldp run"]),
            },
            snooping: SnoopingWords::new(
                ["ip igmp snooping", "no ip igmp snooping"],
                Some(["ipv6 mld snooping", "no ipv6 mld snooping"]),
                &[Snooping::Igmp],
            ),
            port_name: match self {
                Self::PowerConnect => (is_word, "g1"),
                Self::CiscoSb => (is_word, "gi1"),
            },
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
            let mut reader = Reader {
                console: Console::new(self.target(), config, Mode::Access, Refusal::ByFrameType),
                generation: self,
                at: ConfigSection::Top,
            };
            let outcome = interpret(text, "!", |words| reader.line(words));
            reader.console.finish();
            outcome
        })
    }
}

impl Commands for Ros {
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "{}\nshutdown\nexit", self.enter(port)))
    }

    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()> {
        ports.iter().try_for_each(|port| writeln!(out, "{}\nno shutdown\nexit", self.enter(port)))
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
        writeln!(out, "{}\nswitchport mode general", self.enter(change.name()))?;
        for (joined, tag) in [(&change.join_tagged, "tagged"), (&change.join_untagged, "untagged")] {
            for piece in pieces(joined, RUNS_MAX) {
                writeln!(out, "switchport general allowed vlan add {piece} {tag}")?;
            }
        }
        match (change.pvid(), self) {
            (Some(None), _) => writeln!(out, "switchport general acceptable-frame-type tagged-only")?,
            (Some(Some(pvid)), _) => {
                writeln!(out, "switchport general pvid {pvid}")?;
                match (change.before.pvid, self) {
                    (Some(_), _) => {}
                    (None, Self::PowerConnect) => {
                        writeln!(out, "no switchport general acceptable-frame-type tagged-only")?;
                    }
                    (None, Self::CiscoSb) => writeln!(out, "switchport general acceptable-frame-type all")?,
                }
            }
            (None, _) => {}
        }
        if change.forgets_pvid() {
            writeln!(out, "no switchport general pvid")?;
        }
        for piece in pieces(&change.leave, RUNS_MAX) {
            writeln!(out, "switchport general allowed vlan remove {piece}")?;
        }
        match change.flow_control() {
            Some(FlowControlMode::Pause) => writeln!(out, "flowcontrol on")?,
            Some(_) => writeln!(out, "flowcontrol off")?,
            None => {}
        }
        // What the older generation cannot say was refused.
        if !change.blocks().is_empty() {
            writeln!(out, "bridge unicast unknown filtering")?;
        } else if !change.unblocks().is_empty() {
            writeln!(out, "bridge unicast unknown forwarding")?;
        }
        writeln!(out, "exit")
    }

    fn join_lag(&self, out: &mut dyn Folder, port: &PortConfig, lag: &PortConfig) -> io::Result<()> {
        let Some(number) = lag.lag_number() else { return Ok(()) };
        writeln!(out, "{}\nchannel-group {} mode auto\nexit", self.enter(&port.name), number.get())
    }

    fn leave_lag(&self, out: &mut dyn Folder, port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        writeln!(out, "{}\nno channel-group\nexit", self.enter(&port.name))
    }

    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        match self {
            Self::PowerConnect => by_vlan(out, entries, |out, (_, mac, port)| {
                writeln!(out, "bridge address {mac} {}", self.kind_and_name(port))
            }),
            Self::CiscoSb => entries.iter().try_for_each(|(vlan, mac, port)| {
                writeln!(
                    out,
                    "mac address-table static {mac} vlan {vlan} interface {} permanent",
                    spelt(self.target(), port)
                )
            }),
        }
    }

    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()> {
        match self {
            Self::PowerConnect => by_vlan(out, entries, |out, (_, mac, _)| writeln!(out, "no bridge address {mac}")),
            Self::CiscoSb => entries
                .iter()
                .try_for_each(|(vlan, mac, _)| writeln!(out, "no mac address-table static {mac} vlan {vlan}")),
        }
    }

    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "no spanning-tree")
    }

    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()> {
        writeln!(out, "spanning-tree")
    }
}

/// Entries in blocks, one a VLAN.
fn by_vlan(
    out: &mut dyn Folder,
    entries: &[Entry<'_>],
    write: impl Fn(&mut dyn Folder, &Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    for block in entries.chunk_by(|a, b| a.0 == b.0) {
        writeln!(out, "interface vlan {}", block[0].0)?;
        block.iter().try_for_each(|entry| write(out, entry))?;
        writeln!(out, "exit")?;
    }
    Ok(())
}

/// What commands are about at the moment.
enum ConfigSection {
    Top,
    Database,
    Port,
    Vlan(VlanId),
}

struct Reader<'a> {
    console: Console<'a>,
    generation: &'a Ros,
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
            (_, ["interface", "vlan", number]) => {
                let number = vlan(number)?;
                console.must_exist(&[number].into_iter().collect())?;
                console.leave_port();
                self.at = ConfigSection::Vlan(number);
                Ok(())
            }
            (_, ["interface", rest @ ..]) => {
                let name = match (self.generation, rest) {
                    (Ros::PowerConnect, ["ethernet", name]) => name.to_string(),
                    (Ros::PowerConnect, ["port-channel", number]) => format!("port-channel {number}"),
                    (Ros::CiscoSb, [_] | [_, _]) if rest[0] != "range" => rest.concat(),
                    _ => return unknown(words),
                };
                self.at = ConfigSection::Port;
                console.enter_port(&name)
            }
            (ConfigSection::Database, ["vlan", list]) => {
                console.make_vlans(&vlans(list)?);
                Ok(())
            }
            (ConfigSection::Database, ["no", "vlan", list]) => console.remove_vlans(&vlans(list)?),
            (ConfigSection::Vlan(number), ["bridge", "address", address, rest @ ..]) => {
                let port = match rest {
                    ["ethernet", port] | ["ethernet", port, "permanent"] | ["permanent", "ethernet", port] => {
                        (*port).to_owned()
                    }
                    ["port-channel", number] | ["port-channel", number, "permanent"] => {
                        format!("port-channel {number}")
                    }
                    _ => return unknown(words),
                };
                let slot = console.slot(&port)?;
                console.set_entry(*number, mac(address)?, slot)
            }
            (ConfigSection::Vlan(number), ["no", "bridge", "address", address]) => {
                console.unset_entry(*number, mac(address)?)
            }
            (_, ["mac", "address-table", "static", address, "vlan", number, "interface", port @ ..]) => {
                let port = port.strip_suffix(&["permanent"]).unwrap_or(port);
                let slot = console.slot(&port.concat())?;
                console.set_entry(vlan(number)?, mac(address)?, slot)
            }
            (_, ["no", "mac", "address-table", "static", address, "vlan", number]) => {
                console.unset_entry(vlan(number)?, mac(address)?)
            }
            (ConfigSection::Top, ["lldp", "run"]) => {
                console.set_lldp(Lldp::On);
                Ok(())
            }
            (ConfigSection::Top, ["no", "lldp", "run"]) => {
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
            (ConfigSection::Port, words) => self.port(words),
            (ConfigSection::Top, words) => console.set_snooping(self.generation.target(), words),
            _ => unknown(words),
        }
    }

    fn port(&mut self, words: &[&str]) -> Result<(), String> {
        let console = &mut self.console;
        match words {
            ["bridge", "unicast", "unknown", action] if matches!(self.generation, Ros::CiscoSb) => match *action {
                "filtering" => console.block(FloodKind::UnknownUnicast),
                "forwarding" => console.unblock(FloodKind::UnknownUnicast),
                _ => unknown(words),
            },
            ["no", "bridge", "unicast", "unknown"] if matches!(self.generation, Ros::CiscoSb) => {
                console.unblock(FloodKind::UnknownUnicast)
            }
            ["channel-group", number, "mode", "auto"] => console.join_lag(number),
            ["no", "channel-group"] => console.leave_lag(),
            ["shutdown"] => console.set_admin(Admin::Down),
            ["no", "shutdown"] => console.set_admin(Admin::Up),
            ["flowcontrol", "on"] => console.set_flow_control(FlowControlMode::Pause),
            ["flowcontrol", "off"] | ["no", "flowcontrol"] => console.set_flow_control(FlowControlMode::Off),
            ["switchport", "mode", "general"] => console.set_mode(Mode::Hybrid),
            ["switchport", "mode", "access"] | ["no", "switchport", "mode"] => console.set_mode(Mode::Access),
            ["switchport", "access", "vlan", number] => console.set_access(vlan(number)?),
            ["switchport", "general", rest @ ..] => match rest {
                ["allowed", "vlan", "add", list, "untagged"] => console.join(&vlans(list)?, Tag::Strip),
                ["allowed", "vlan", "add", list] | ["allowed", "vlan", "add", list, "tagged"] => {
                    console.join(&vlans(list)?, Tag::Keep)
                }
                ["allowed", "vlan", "remove", list] => console.leave(&vlans(list)?),
                ["pvid", number] => console.set_pvid(vlan(number)?),
                ["acceptable-frame-type", "tagged-only"] => console.set_frames(Frames::Tagged),
                ["acceptable-frame-type", "all"] => console.set_frames(Frames::All),
                ["ingress-filtering", "disable"] => console.set_ingress_filter(IngressFilter::Off),
                _ => unknown(words),
            },
            ["no", "switchport", "general", "ingress-filtering", "disable"] => {
                console.set_ingress_filter(IngressFilter::On)
            }
            ["no", "switchport", "general", "pvid"] => console.set_pvid(VlanId::MIN),
            ["no", "switchport", "general", "acceptable-frame-type"]
            | ["no", "switchport", "general", "acceptable-frame-type", "tagged-only"] => {
                console.set_frames(Frames::All)
            }
            _ => unknown(words),
        }
    }
}
