//! A running configuration as a switch shows it, read through its dialect.
//!
//! ```text
//!   lines ─ foreign sections, users, addresses … go ─▶ what concerns VLANs ─ dialect's reader ─▶ SwitchConfig, mark
//! ```
//! A switch shows what differs from its factory's state, so that is where reading begins. A line of a port of the plan's that
//! concerns VLANs and is not understood is an error: a state that is half read would be worse than none. A port outside the
//! plan is read as far as its lines are understood; of the others the VLANs count that they name, so that such a port is
//! seen if it is in the plan's VLANs, and it is never written to.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{VlanId, VlanSet};

use super::{
    language::{Language, Shows},
    mtu::{packet_bytes, routeros_packet_bytes},
    range::expand,
};
use dialects::{
    ParseError, Target, TextFile, canonical_port,
    foreign::{Scope, changes_reach, is_business, scopes, vlans_named},
    names::{PortIndex, no_such_port},
    read_back,
    text::every_vlan,
};
use fabric::SpanningTree;
use switch_model::{SwitchConfig, mark::Mark};

/// Most bytes that are read of one configuration, which is read again after lines that are no business of ours have gone: a
/// megabyte with twenty thousand such lines.
const READ_LEN_MAX: usize = 1 << 30;

/// What a running configuration says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) config: SwitchConfig,
    pub(super) mark: Option<Mark>,
    /// VLANs without ports that bear marks.
    pub(super) mark_vlans: BTreeSet<VlanId>,
    /// PVIDs as ports bear them, whether untagged frames get in or not.
    pub(super) pvids: BTreeMap<String, VlanId>,
    /// How the switch spells ports that the plan spells otherwise.
    pub(super) spelt: BTreeMap<String, String>,
    /// Ports that are not to be written to, and the line that says so.
    pub(super) untouchable: BTreeMap<String, String>,
    /// Ports of the plan's that the configuration does not mention: as the factory made them, or not there.
    pub(super) unmentioned: Vec<String>,
}

/// A line, and where it stands.
#[derive(Clone)]
struct Line {
    scope: Scope,
    text: String,
}

/// Reads a running configuration; the ports are `names`, in this order, and behind them any others that it shows.
///
/// # Errors
/// What is not understood of it.
pub(super) fn read_running(language: &Language, lines: &[String], names: &[String]) -> Result<Running, String> {
    let packets: Vec<(String, u16)> = (lines.iter().filter(|_| language.target == Target::RouterOs))
        .filter_map(|line| routeros_packet_bytes(line).map(|(name, bytes)| (name.to_owned(), bytes)))
        .collect();
    let lines: Vec<String> = match language.target {
        Target::RouterOs => routeros(lines),
        Target::EdgeCore => lines.iter().map(|line| line.replace(" VLAN ", " vlan ")).collect(),
        _ => lines.to_vec(),
    };
    let lines = expand(language.target, lines, names)?;
    let plan = PortIndex::new(Some(language.target), names.iter().map(String::as_str));
    let mut shown = Shown::of(language, lines, names, &plan)?;
    let marks = marks(&shown.lines);
    let mtus = mtus(language.target, &shown, names, &packets);
    let pvids = pvids(&shown, names);
    entries_last(language, &mut shown.lines);
    let mut config = understand(language, &mut shown, names, &plan)?;
    for (port, mtu_bytes) in config.ports.iter_mut().zip(mtus) {
        port.mtu_bytes = mtu_bytes;
    }
    for port in config.ports.iter_mut().skip(names.len()).filter(|port| port.pvid.is_none()) {
        // Of a port that nobody named the number counts: its VLAN cannot be removed, whether frames get in or not.
        port.pvid = pvids.get(&port.name).copied().filter(|pvid| *pvid != VlanId::MIN);
    }
    if language.target == Target::RouterOs && config.spanning_tree == SpanningTree::On {
        // Without a bridge of ours nothing of it is there.
        (config.vlans, config.entries) = Default::default();
    }
    let mut mark_vlans = BTreeSet::new();
    for vlan in marks.values().copied().flatten() {
        if !config.memberships().contains(vlan) && config.vlans.remove(vlan) {
            mark_vlans.insert(vlan);
        }
    }
    for (vlans, line) in &shown.odd_vlans {
        let named = config.ports[..names.len()].iter().find(|port| vlans.iter().any(|vlan| port.is_member(vlan)));
        if let Some(port) = named {
            return Err(format!(
                "VLAN {vlans} says {line:?}, so that not all of its ports reach each other, and port {} is in it; plan with \
                 other VLANs (--vlans), or take the line out by hand first",
                port.name
            ));
        }
    }
    let Shown { spelt, untouchable, suspected, unmentioned, .. } = shown;
    for port in config.ports.iter_mut().skip(names.len()) {
        let untagged = port.untagged.clone();
        let more = suspected.get(&port.name).into_iter().flat_map(VlanSet::iter);
        port.tagged.extend(more.filter(|vlan| !untagged.contains(*vlan)));
    }
    let mark = marks.into_keys().next_back();
    Ok(Running { config, mark, mark_vlans, pvids, spelt, untouchable, unmentioned })
}

/// A configuration, taken apart.
struct Shown {
    lines: Vec<Line>,
    /// The plan's ports, and behind them the others.
    ports: Vec<String>,
    spelt: BTreeMap<String, String>,
    untouchable: BTreeMap<String, String>,
    /// VLANs that a port outside the plan may be in.
    suspected: BTreeMap<String, VlanSet>,
    /// VLANs whose ports do not all reach each other, and the line.
    odd_vlans: Vec<(VlanSet, String)>,
    unmentioned: Vec<String>,
}

impl Shown {
    fn of(language: &Language, lines: Vec<String>, names: &[String], plan: &PortIndex) -> Result<Self, String> {
        let mut shown = Self {
            lines: Vec::new(),
            ports: names.to_vec(),
            spelt: BTreeMap::new(),
            untouchable: BTreeMap::new(),
            suspected: BTreeMap::new(),
            odd_vlans: Vec::new(),
            unmentioned: Vec::new(),
        };
        if language.target == Target::RouterOs {
            shown.unmentioned = names.iter().filter(|name| !mentions(&lines, name)).cloned().collect();
            let mut known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            shown.ports.extend(bridged(&lines).filter(|name| known.insert(name)).map(str::to_owned));
            shown.lines = lines.iter().map(|text| Line { scope: Scope::Global, text: text.clone() }).collect();
            return Ok(shown);
        }
        let borrowed: Vec<&str> = lines.iter().map(String::as_str).collect();
        let scopes = scopes(language.target, &borrowed, plan);
        shown.find_ports(language, &borrowed, &scopes, names)?;
        for (text, scope) in lines.into_iter().zip(scopes) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let ends = language.section_end.is_some_and(|(end, _)| text.trim_end() == end) || words == ["exit"];
            let text = match scope {
                Scope::Foreign => String::new(),
                _ if ends => language.section_end.map_or("exit", |(_, command)| command).to_owned(),
                _ => text,
            };
            shown.lines.push(Line { scope, text });
        }
        Ok(shown)
    }

    /// Notes which ports the configuration mentions, and what of them is not to be touched.
    fn find_ports(
        &mut self,
        language: &Language,
        lines: &[&str],
        scopes: &[Scope],
        names: &[String],
    ) -> Result<(), String> {
        let canonical = |name: &str| canonical_port(Some(language.target), name);
        let mut mentioned: BTreeSet<usize> = BTreeSet::new();
        let mut others: BTreeMap<String, String> = BTreeMap::new();
        for (line, scope) in lines.iter().zip(scopes) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_trunk = matches!(words[..], [.., "link-type", "trunk"] | ["switchport", "mode", "trunk", ..]);
            match scope {
                Scope::Plan(at) => {
                    if let ["interface", rest @ ..] = &words[..] {
                        mentioned.insert(*at);
                        let shown = rest.strip_prefix(&["ethernet"]).unwrap_or(rest).concat();
                        if shown != names[*at] {
                            self.spelt.insert(names[*at].clone(), shown);
                        }
                    }
                    if is_trunk {
                        self.untouchable.insert(names[*at].clone(), line.trim().to_owned());
                    }
                }
                Scope::Other(name) => {
                    let name = others.entry(canonical(name)).or_insert_with(|| name.clone()).clone();
                    let named = vlans_named(line);
                    self.suspected.entry(name.clone()).or_default().extend(named.iter());
                    if is_trunk {
                        self.untouchable.insert(name, line.trim().to_owned());
                    }
                }
                Scope::Vlan(vlans) if changes_reach(line) => {
                    self.odd_vlans.push((vlans.clone(), line.trim().to_owned()))
                }
                Scope::Global | Scope::Vlan(_) | Scope::Database | Scope::Foreign => {}
            }
        }
        let trunks: Vec<String> = self.untouchable.keys().filter(|name| !names.contains(name)).cloned().collect();
        for name in trunks {
            // A trunk is in all VLANs until it is told which.
            let suspected = self.suspected.entry(name).or_default();
            if suspected.is_empty() {
                *suspected = every_vlan();
            }
        }
        // What lines of a hybrid or access port name was understood, or makes it untouchable.
        self.suspected.retain(|name, _| self.untouchable.contains_key(name));
        self.ports.extend(others.values().cloned());
        let stem = |name: &str| {
            let name = canonical(name);
            name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
        };
        let seen: BTreeSet<String> =
            mentioned.iter().map(|at| stem(&names[*at])).chain(others.values().map(|name| stem(name))).collect();
        for (at, name) in names.iter().enumerate().filter(|(at, _)| !mentioned.contains(at)) {
            // One that shows each of its ports has none of a kind that it does not show.
            if language.shows == Shows::EveryPort && !seen.is_empty() && !seen.contains(&stem(name)) {
                let known = others.values().map(String::as_str).chain(mentioned.iter().map(|at| names[*at].as_str()));
                return Err(format!("{}; its configuration does not mention it", no_such_port(&names[at], known)));
            }
            self.unmentioned.push(name.clone());
        }
        Ok(())
    }
}

/// Runs the dialect's reader, taking away what it does not know and what concerns no port of the plan's.
fn understand(
    language: &Language,
    shown: &mut Shown,
    names: &[String],
    plan: &PortIndex,
) -> Result<SwitchConfig, String> {
    let mut read_len = 0;
    while read_len < READ_LEN_MAX {
        let text = shown.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        read_len += text.len();
        let mut start = language.target.factory(shown.ports.clone());
        // What it does not show of snooping, nobody knows: some models have it on from the factory.
        start.snooping.clear();
        let file = [TextFile { name: "", text: &text }];
        let errors = match read_back(language.target, &file, start) {
            Ok(config) => return Ok(config),
            Err(errors) => errors,
        };
        for ParseError { line, message, .. } in errors {
            let at = shown.lines.get_mut(line.saturating_sub(1));
            let Some(Line { scope, text }) = at else {
                return Err(format!("its configuration is not understood: {message}"));
            };
            let said = std::mem::take(text);
            let business = match language.target {
                Target::RouterOs => concerns_bridge(&said, names),
                target => is_business(target, scope, &said, plan),
            };
            if said.is_empty() || business {
                let of = match scope {
                    Scope::Plan(at) => format!(" of port {}", names[*at]),
                    _ => String::new(),
                };
                return Err(format!(
                    "its configuration{of} says {:?}, which is not understood ({message}); take it out by hand first",
                    said.trim()
                ));
            }
            if let Scope::Other(name) = scope {
                let index = PortIndex::new(Some(language.target), shown.ports.iter().map(String::as_str));
                let name = index.find(name).map_or_else(|| name.clone(), |at| shown.ports[at].clone());
                let named = vlans_named(&said);
                if !named.is_empty() {
                    shown.suspected.entry(name.clone()).or_default().extend(named.iter());
                    shown.untouchable.entry(name).or_insert_with(|| said.trim().to_owned());
                }
            }
        }
    }
    Err("its configuration has more that is not understood than there is patience for".to_owned())
}

/// Whether a command of RouterOS has this name as a value.
fn mentions(lines: &[String], name: &str) -> bool {
    let is = |word: &str| word.split_once('=').is_some_and(|(_, value)| value.split(',').any(|value| value == name));
    lines.iter().any(|line| line.split_whitespace().any(is))
}

/// Menus of RouterOS whose commands may be about our bridge or its ports.
const MENUS: [&str; 3] = ["/interface bridge", "/interface bonding", "/interface ethernet"];

/// Whether a command of RouterOS is about our bridge or its ports.
fn concerns_bridge(line: &str, names: &[String]) -> bool {
    let ours = |word: &str| {
        let value = word.split_once('=').map_or("", |(_, value)| value);
        value.split(',').any(|value| value == "espalier" || names.iter().any(|name| name == value))
    };
    MENUS.iter().any(|menu| line.starts_with(menu)) && line.split_whitespace().any(ours)
}

/// Names that RouterOS calls ports of our bridge by.
fn bridged(lines: &[String]) -> impl Iterator<Item = &str> {
    let ours = |line: &&String| {
        line.starts_with("/interface bridge port add") && line.split(' ').any(|word| word == "bridge=espalier")
    };
    lines.iter().filter(ours).filter_map(|line| line.split(' ').find_map(|word| word.strip_prefix("interface=")))
}

/// Moves addresses behind the ports: a switch shows them in an order of its own, which it need not obey itself.
fn entries_last(language: &Language, lines: &mut Vec<Line>) {
    let mut moved = Vec::new();
    let mut section: Option<Line> = None;
    for line in lines.iter_mut() {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let end = || Line { scope: Scope::Global, text: "exit".to_owned() };
        match (language.target, words.as_slice()) {
            (_, ["mac", "address-table", "static", ..] | ["mac-address-table", "static", ..])
            | (Target::Huawei, ["mac-address", "static", ..])
            | (Target::Comware7 | Target::Comware5, ["mac-address", "static", _, "interface", ..]) => {
                let text = std::mem::take(&mut line.text);
                moved.push(Line { scope: line.scope.clone(), text });
            }
            (Target::PowerConnect, ["bridge", "address", ..]) => {
                let text = std::mem::take(&mut line.text);
                let scope = line.scope.clone();
                moved.extend(section.clone().into_iter().chain([Line { scope, text }, end()]));
            }
            (_, ["interface", ..]) => section = Some(line.clone()),
            _ => {}
        }
    }
    let (before, after) = match (language.target, language.section_end) {
        (Target::Fastpath, _) => (Some("configure"), Some("exit")),
        (_, end) => (end.map(|(_, command)| command), None),
    };
    let line = |text: &str| Line { scope: Scope::Global, text: text.to_owned() };
    if !moved.is_empty() {
        lines.extend(before.map(line));
        lines.append(&mut moved);
        lines.extend(after.map(line));
    }
}

/// Marks, and the VLAN whose name each is.
fn marks(lines: &[Line]) -> BTreeMap<Mark, Option<VlanId>> {
    let mut marks = BTreeMap::new();
    let mut section: Option<VlanId> = None;
    for line in lines {
        let words: Vec<&str> = line.text.split(|c: char| c.is_whitespace() || "\"'=".contains(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let number = |word: &&str| word.parse::<VlanId>().ok();
        if let Some(mark) = words.iter().find_map(|word| word.parse::<Mark>().ok()) {
            marks.insert(mark, words.iter().find_map(number).or(section));
        }
        match words.as_slice() {
            ["vlan", id] | ["interface", "vlan", id] => section = number(id),
            ["interface" | "exit" | "quit", ..] => section = None,
            _ => {}
        }
    }
    marks
}

/// `mtus[port]`: largest packets of the plan's ports, as far as lines say; `packets` are those that RouterOS says.
fn mtus(target: Target, shown: &Shown, names: &[String], packets: &[(String, u16)]) -> Vec<Option<u16>> {
    let mut mtus = vec![None; names.len()];
    for Line { scope, text } in &shown.lines {
        if let (Scope::Plan(at), Some(bytes)) = (scope, packet_bytes(target, text)) {
            mtus[*at] = Some(bytes);
        }
    }
    for (name, bytes) in packets {
        if let Some(at) = names.iter().position(|known| known == name) {
            mtus[at] = Some(*bytes);
        }
    }
    mtus
}

/// PVIDs that ports are told of, in languages that keep them where only tagged frames come in.
fn pvids(shown: &Shown, names: &[String]) -> BTreeMap<String, VlanId> {
    let mut pvids = BTreeMap::new();
    for Line { scope, text } in &shown.lines {
        let port = match scope {
            Scope::Plan(at) => names[*at].clone(),
            Scope::Other(name) => name.clone(),
            Scope::Global | Scope::Vlan(_) | Scope::Database | Scope::Foreign => continue,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        if let ["switchport", "general", "pvid", id] | ["switchport", "native", "vlan", id] | ["vlan", "pvid", id] =
            words[..]
        {
            if let Ok(pvid) = id.parse() {
                pvids.insert(port, pvid);
            }
        }
    }
    pvids
}

/// What RouterOS shows, a line a command, with the settings that are our business.
fn routeros(lines: &[String]) -> Vec<String> {
    const KEPT: [&str; 19] = [
        "name",
        "protocol-mode",
        "igmp-snooping",
        "vlan-filtering",
        "bridge",
        "interface",
        "pvid",
        "frame-types",
        "ingress-filtering",
        "learn",
        "vlan-ids",
        "tagged",
        "untagged",
        "mac-address",
        "vid",
        "disabled",
        "mode",
        "slaves",
        "link-monitoring",
    ];
    let mut whole: Vec<String> = Vec::new();
    let mut open = false;
    for line in lines {
        let (text, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line.trim_end(), false),
        };
        match whole.last_mut().filter(|_| open) {
            Some(last) => last.push_str(text.trim_start()),
            None => whole.push(text.to_owned()),
        }
        open = goes_on;
    }
    let setting = |line: &String| {
        if !MENUS.iter().any(|menu| line.starts_with(menu)) {
            return line.clone();
        }
        let mut words = Vec::new();
        let mut quoted = false;
        for word in line.split(' ') {
            let begins = !quoted;
            if word.matches('"').count() % 2 == 1 {
                quoted = !quoted;
            }
            let key = word.split_once('=').map(|(key, _)| key);
            let kept =
                key.is_none_or(|key| KEPT.contains(&key) || key == "default-name" || key.ends_with("x-flow-control"));
            if begins && kept && !word.is_empty() {
                words.push(word);
            }
        }
        // A switch's own address and the like leave a command without settings.
        words.join(" ")
    };
    whole.iter().map(setting).collect()
}

#[cfg(test)]
mod tests;
