//! ZyXEL GS-40xx and kin.
//!
//! ```text
//!   vlan 2              interface port-channel 1
//!     fixed 1-4           pvid 2
//!     untagged 1-2        frame-type tagged          (where no untagged frame may come in)
//!     exit                ingress-check
//!                         exit
//!   mac-forward name v2-020000000001 mac 02:00:00:00:00:01 vlan 2 interface 1
//! ```
//! Membership is said by VLAN: *fixed* ports are in it, and those that are *untagged* as well send it without a tag. From the
//! factory all ports are fixed and untagged in VLAN 1, and nothing is checked at ingress. Source: GS-4012F guide for VLANs;
//! PVID, frame types and addresses are believed.

use std::{collections::BTreeSet, io};

use fabric::{Admin, Basis, FloodSet, FlowControlMode, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    is_numbers, read_only,
};
use crate::{
    Target,
    console::{Console, Frames, Mode, Refusal, Tag},
    text::{interpret, mac, unknown, vlan},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{PortConfig, Slot, SwitchConfig, change::Change};

/// The language.
pub(super) struct Zyxel;

impl Dialect for Zyxel {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some(";"),
            extension: "cfg",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::NONE,
            storm_control: StormControl::Lacks,
            lags: Lags::Lacks,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (|name| is_numbers(name, 1..=1), "1"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::out_of_the_box_unfiltered(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        use io::Write as _;
        for port in change.shut() {
            writeln!(out, "interface port-channel {port}\n  inactive\n  exit")?;
        }
        for (vlan, mac, port) in change.entries_unset() {
            writeln!(out, "no mac-forward mac {mac} vlan {vlan} interface {port}")?;
        }
        let made = change.vlans_made();
        let mut joined = change.after.memberships();
        joined.extend(made.iter());
        for vlan in joined.iter() {
            let fixed = list(change, vlan, &|port, vlan| port.is_member(vlan), Side::After);
            let untagged = list(change, vlan, &|port, vlan| port.untagged.contains(vlan), Side::After);
            let tagged = list(change, vlan, &|port, vlan| port.tagged.contains(vlan), Side::After);
            if fixed.is_empty() && untagged.is_empty() && tagged.is_empty() && !made.contains(vlan) {
                continue;
            }
            writeln!(out, "vlan {vlan}")?;
            for (word, ports) in [("fixed", fixed), ("untagged", untagged), ("no untagged", tagged)] {
                if !ports.is_empty() {
                    writeln!(out, "  {word} {ports}")?;
                }
            }
            writeln!(out, "  exit")?;
        }
        for port in change.ports() {
            let mut lines = String::new();
            if port.filters() {
                lines.push_str("  ingress-check\n");
            }
            if port.unfilters() {
                lines.push_str("  no ingress-check\n");
            }
            match (port.pvid(), port.before.pvid) {
                (Some(None), _) => {
                    lines.push_str("  frame-type tagged\n");
                    if port.forgets_pvid() {
                        lines.push_str("  pvid 1\n");
                    }
                }
                (Some(Some(pvid)), before) => {
                    lines.push_str(&format!("  pvid {pvid}\n"));
                    if before.is_none() {
                        lines.push_str("  frame-type all\n");
                    }
                }
                (None, _) => {}
            }
            match port.flow_control() {
                Some(FlowControlMode::Pause) => lines.push_str("  flow-control\n"),
                Some(_) => lines.push_str("  no flow-control\n"),
                None => {}
            }
            if !lines.is_empty() {
                writeln!(out, "interface port-channel {}\n{lines}  exit", port.name())?;
            }
        }
        let gone = change.vlans_gone();
        let left = {
            let pairs = change.before.ports.iter().zip(&change.after.ports);
            let vlans =
                pairs.flat_map(|(a, b)| a.members().iter().filter(|vlan| !b.is_member(*vlan)).collect::<Vec<_>>());
            vlans.filter(|vlan| !gone.contains(*vlan)).collect::<VlanSet>()
        };
        for vlan in left.iter() {
            let ports = list(change, vlan, &|port, vlan| port.is_member(vlan), Side::Before);
            writeln!(out, "vlan {vlan}\n  no fixed {ports}\n  no untagged {ports}\n  exit")?;
        }
        for (vlan, mac, port) in change.entries_set() {
            let name: String = mac.octets().iter().map(|octet| format!("{octet:02x}")).collect();
            writeln!(out, "mac-forward name v{vlan}-{name} mac {mac} vlan {vlan} interface {port}")?;
        }
        for vlan in gone.iter() {
            writeln!(out, "no vlan {vlan}")?;
        }
        if change.stops_spanning_tree() {
            writeln!(out, "no spanning-tree")?;
        }
        if change.starts_spanning_tree() {
            writeln!(out, "spanning-tree")?;
        }
        for port in change.opened() {
            writeln!(out, "interface port-channel {port}\n  no inactive\n  exit")?;
        }
        Ok(())
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let strip = config.ports.iter().enumerate().flat_map(|(index, port)| {
                port.untagged.iter().map(move |vlan| (Slot::new(index), vlan)).collect::<Vec<_>>()
            });
            let strip = strip.collect();
            let console = Console::new(Target::Zyxel, config, Mode::Hybrid, Refusal::ByFrameType);
            let mut reader = Reader { console, at: ConfigSection::Top, strip };
            let outcome = interpret(text, ";", |words| reader.line(words));
            reader.console.finish();
            outcome
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Ports that have it before and not after.
    Before,
    /// Ports that have it after and not before.
    After,
}

/// Ports that something is true of on one side of a change only, as `1-3,5`.
fn list(change: &Change<'_>, vlan: VlanId, is: &dyn Fn(&PortConfig, VlanId) -> bool, side: Side) -> String {
    let pairs = change.before.ports.iter().zip(&change.after.ports);
    let chosen = pairs.filter(|(before, after)| match side {
        Side::Before => is(before, vlan) && !is(after, vlan),
        Side::After => !is(before, vlan) && is(after, vlan),
    });
    let mut numbers: Vec<u32> = chosen.filter_map(|(port, _)| port.name.parse().ok()).collect();
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let word = |run: &[u32]| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(word).collect::<Vec<_>>().join(",")
}

enum ConfigSection {
    Top,
    Vlan(VlanId),
    Port,
}

struct Reader<'a> {
    console: Console<'a>,
    at: ConfigSection,
    /// Ports that send a VLAN without a tag, if they are in it.
    strip: BTreeSet<(Slot, VlanId)>,
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
            (ConfigSection::Top, ["vlan", number]) => {
                let number = vlan(number)?;
                self.at = ConfigSection::Vlan(number);
                console.make_vlans(&[number].into_iter().collect());
                Ok(())
            }
            (ConfigSection::Top, ["no", "vlan", number]) => {
                let number = vlan(number)?;
                self.strip.retain(|(_, vlan)| *vlan != number);
                console.remove_vlans(&[number].into_iter().collect())
            }
            (ConfigSection::Top, ["interface", "port-channel", ports]) => {
                let slots = self.slots(ports)?;
                self.at = ConfigSection::Port;
                self.console.enter_ports(slots);
                Ok(())
            }
            (ConfigSection::Top, ["mac-forward", "name", _, "mac", address, "vlan", number, "interface", port]) => {
                let slot = console.slot(port)?;
                console.set_entry(vlan(number)?, mac(address)?, slot)
            }
            (ConfigSection::Top, ["no", "mac-forward", "mac", address, "vlan", number, "interface", port]) => {
                console.slot(port)?;
                console.unset_entry(vlan(number)?, mac(address)?)
            }
            (ConfigSection::Top, ["no", "spanning-tree"]) => {
                console.set_spanning_tree(SpanningTree::Off);
                Ok(())
            }
            (ConfigSection::Top, ["spanning-tree"]) => {
                console.set_spanning_tree(SpanningTree::On);
                Ok(())
            }
            (ConfigSection::Vlan(number), words) => self.vlan(*number, words),
            (ConfigSection::Port, words) => port(console, words),
            _ => unknown(words),
        }
    }

    fn vlan(&mut self, number: VlanId, words: &[&str]) -> Result<(), String> {
        let (word, ports) = match words {
            ["name", _] => return Ok(()),
            ["no", word, ports] => (format!("no {word}"), *ports),
            [word, ports] => ((*word).to_owned(), *ports),
            _ => return unknown(words),
        };
        let slots = self.slots(ports)?;
        let this: VlanSet = [number].into_iter().collect();
        for slot in slots {
            let console = &mut self.console;
            console.enter_ports(vec![slot]);
            match word.as_str() {
                "fixed" => {
                    let tag = if self.strip.contains(&(slot, number)) { Tag::Strip } else { Tag::Keep };
                    console.join(&this, tag)?;
                }
                "no fixed" | "forbidden" | "normal" => console.leave(&this)?,
                "untagged" => {
                    self.strip.insert((slot, number));
                    console.set_tag(&this, Tag::Strip)?;
                }
                "no untagged" => {
                    self.strip.remove(&(slot, number));
                    console.set_tag(&this, Tag::Keep)?;
                }
                _ => return unknown(words),
            }
        }
        self.console.leave_port();
        Ok(())
    }

    /// The ports of a list such as `1-3,5`.
    fn slots(&self, ports: &str) -> Result<Vec<Slot>, String> {
        let wrong = |_| format!("{ports:?} is no list of ports such as 1-3,5");
        let mut slots = Vec::new();
        for part in ports.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u16, u16) = (first.parse().map_err(wrong)?, last.parse().map_err(wrong)?);
            for number in first..=last {
                slots.push(self.console.slot(&number.to_string())?);
            }
        }
        Ok(slots)
    }
}

fn port(console: &mut Console<'_>, words: &[&str]) -> Result<(), String> {
    match words {
        ["inactive"] => console.set_admin(Admin::Down),
        ["no", "inactive"] => console.set_admin(Admin::Up),
        ["flow-control"] => console.set_flow_control(FlowControlMode::Pause),
        ["no", "flow-control"] => console.set_flow_control(FlowControlMode::Off),
        ["pvid", number] => console.set_pvid(vlan(number)?),
        ["frame-type", "tagged"] => console.set_frames(Frames::Tagged),
        ["frame-type", "all"] => console.set_frames(Frames::All),
        ["ingress-check"] => console.set_ingress_filter(IngressFilter::On),
        ["no", "ingress-check"] => console.set_ingress_filter(IngressFilter::Off),
        _ => unknown(words),
    }
}
