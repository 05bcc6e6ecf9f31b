//! Groups: switches and cables that fail together.
//!
//! ```yaml
//! groups:
//!   feed-a: [sw1, sw2]                              # switches
//!   card-3: ["sw5:g1 -- sw6:g2", "sw5:g2"]          # cables between switches: both ends, or one
//! ```
//! After a mistake elsewhere in the file a cable that is not there may be one that was refused, and is told of there.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Reader, end_of_cable, hosts::Entry, inner, unquoted, words_of};
use crate::{
    Fault, Group, LinkId, PortId, SwitchId, Topology,
    format::{
        diagnostic::TextPosition,
        node::{Node, Value},
        yaml::{double_quote, quote},
    },
};

const EXAMPLE: &str = "feed-a: [sw1, \"sw2:g1 -- sw3:g1\"]";
const MEMBER_HELP: &str =
    "a member is a switch, sw1, or a cable between switches, \"sw1:g23 -- sw2:g23\" or one of its ends, \"sw1:g23\"";

/// Writes the section, if there are groups.
pub(super) fn write(topology: &Topology, text: &mut String) {
    for (number, Group { name, switches, links }) in topology.groups().iter().enumerate() {
        if number == 0 {
            text.push_str("groups:\n");
        }
        let switches = switches.iter().map(|switch| quote(&topology.switch(*switch).name));
        let cable = |link: &LinkId| {
            let link = topology.link(*link);
            double_quote(&format!("{} -- {}", end_of_cable(topology, link.a), end_of_cable(topology, link.b)))
        };
        let members: Vec<String> = switches.chain(links.iter().map(cable)).collect();
        let _ = writeln!(text, "  {}: [{}]", quote(name), members.join(", "));
    }
}

/// Which cables of the file are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cables {
    All,
    /// Some may have been refused.
    Partial,
}

/// A member of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Switch(SwitchId),
    Link(LinkId),
}

impl Reader<'_> {
    pub(super) fn read_groups(&mut self, section: &Node) {
        if section.is_null() || !self.expect_map(section, "groups", EXAMPLE) {
            return;
        }
        let cables = if self.diagnostics.errors() == 0 { Cables::All } else { Cables::Partial };
        for Entry { key, name, first_line, value } in self.named_entries(section, "group") {
            if first_line < key.place.line {
                let error = self.at(key).error(format!("group {name} is named twice"));
                let help = format!("it is named first on line {first_line}; merge the two, or rename one");
                self.diagnostics.push(error.with_help(help));
                continue;
            }
            if !matches!(value.value, Value::List(_)) {
                let message = format!("expected the members of group {name}, found {}", value.kind());
                self.diagnostics.push(self.at(value).error(message).with_help(format!("such as {EXAMPLE}")));
                continue;
            }
            // The line on which each member is named.
            let mut members: BTreeMap<Member, usize> = BTreeMap::new();
            for item in value.items() {
                if self.diagnostics.is_full() {
                    return;
                }
                let Some(text) = self.word(item, "a switch or a cable", EXAMPLE) else { continue };
                let Some(member) = self.member(self.at(item), text, cables) else { continue };
                if let Some(line) = members.insert(member, item.place.line) {
                    let error = self.at(item).error(format!("{text} is twice in group {name}"));
                    self.diagnostics.push(error.with_help(format!("it is named first on line {line}; name it once")));
                }
            }
            // Members that were refused are told of; a group without the others would say less than its author meant.
            if members.len() < value.items().len() {
                continue;
            }
            let switches = members.keys().filter_map(|member| match member {
                Member::Switch(switch) => Some(*switch),
                Member::Link(_) => None,
            });
            let links = members.keys().filter_map(|member| match member {
                Member::Link(link) => Some(*link),
                Member::Switch(_) => None,
            });
            let (switches, links): (Vec<SwitchId>, Vec<LinkId>) = (switches.collect(), links.collect());
            if let Err(fault) = self.builder.add_group(name, &switches, &links) {
                self.diagnostics.push(self.at(key).fault(&fault));
                if matches!(fault, Fault::TooMany { .. }) {
                    return;
                }
            }
        }
    }
    /// What a member names.
    fn member(&mut self, site: TextPosition<'_>, text: &str, cables: Cables) -> Option<Member> {
        let words = words_of(text);
        let spot = |(offset, word): &(usize, &str)| inner(site, text, *offset, word.chars().count());
        match words.as_slice() {
            [word] if word.1.contains(':') => {
                let port = self.known_port(spot(word), word.1)?;
                self.cable_at(spot(word), word.1, port, cables)
            }
            [word] => match self.builder.switch(word.1) {
                Ok(switch) => Some(Member::Switch(switch)),
                Err(fault) => {
                    let error = spot(word).fault(&fault);
                    let near = matches!(fault, Fault::UnknownSwitch { similar: Some(_), .. });
                    self.diagnostics.push(if near { error } else { error.with_help(MEMBER_HELP) });
                    None
                }
            },
            [a, dashes, b] if dashes.1 == "--" => {
                let (first, second) = (self.known_port(spot(a), a.1)?, self.known_port(spot(b), b.1)?);
                let member = self.cable_at(spot(a), a.1, first, cables)?;
                if self.builder.link_at(second).map(Member::Link) != Some(member) {
                    let Member::Link(link) = member else { return None };
                    let message = format!("there is no cable between {} and {}", a.1, b.1);
                    let help = format!("the cable at {} is {}", a.1, self.builder.link_label(link));
                    self.diagnostics.push(site.error(message).with_help(help));
                    return None;
                }
                Some(member)
            }
            _ => {
                self.diagnostics.push(site.error("this is neither a switch nor a cable").with_help(MEMBER_HELP));
                None
            }
        }
    }

    /// The port of a `switch:port`, if it was mentioned.
    fn known_port(&mut self, site: TextPosition<'_>, text: &str) -> Option<PortId> {
        let Some((switch, port)) = text.split_once(':') else {
            self.diagnostics.push(site.error(format!("{text} is no port")).with_help(MEMBER_HELP));
            return None;
        };
        let width = switch.chars().count();
        let id =
            self.builder.switch(switch).map_err(|fault| self.diagnostics.push(site.within(0, width).fault(&fault)));
        let found = self.builder.find_port(id.ok()?, &unquoted(port));
        if found.is_none() {
            let site = site.within(width + 1, port.chars().count());
            let error = site.error(format!("no cable is plugged into port {port} of switch {switch}"));
            self.diagnostics.push(error.with_help(MEMBER_HELP));
        }
        found
    }

    /// The cable between switches at a port.
    fn cable_at(&mut self, site: TextPosition<'_>, text: &str, port: PortId, cables: Cables) -> Option<Member> {
        if let Some(link) = self.builder.link_at(port) {
            return Some(Member::Link(link));
        }
        let lag = self.builder.logical_port(port);
        if lag != port {
            let lag = self.builder.label(lag);
            let error = site.error(format!("{text} is a member of the LAG {lag}, which fails as a whole"));
            self.diagnostics.push(error.with_help(format!("name the LAG: \"{lag}\"")));
        } else if cables == Cables::All {
            let error = site.error(format!("the cable at {text} does not lead to a switch"));
            self.diagnostics.push(error.with_help(MEMBER_HELP));
        }
        None
    }
}
