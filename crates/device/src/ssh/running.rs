//! A running configuration as a switch shows it, read through its dialect.
//!
//! ```text
//!   lines ─ foreign sections, users, addresses … go ─▶ what concerns VLANs ─ dialect's reader ─▶ SwitchConfig, mark
//! ```
//! A switch shows what differs from its factory's state, so that is where reading begins. A line that concerns ports,
//! VLANs or addresses and is not understood is an error: a state that is half read would be worse than none.

use std::collections::{BTreeMap, BTreeSet};

use fabric::VlanId;

use super::{
    language::{Language, Section},
    range::expand,
};
use crate::{SpanningTree, SwitchConfig, Target, TextFile, deploy::Mark, text::LineError};

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
}

/// Reads a running configuration; the ports are `names`, in this order, and behind them any others that it shows.
///
/// # Errors
/// What is not understood of it.
pub(super) fn read_running(language: &Language, lines: &[String], names: &[String]) -> Result<Running, String> {
    let mut lines: Vec<String> = match language.target {
        Target::RouterOs => routeros(lines),
        Target::CiscoSb => lines.iter().map(|line| short_ports(line)).collect(),
        Target::EdgeCore => lines.iter().map(|line| line.replace(" VLAN ", " vlan ")).collect(),
        _ => lines.to_vec(),
    };
    lines = expand(language.target, lines, names)?;
    let ports = drop_foreign(language, &mut lines, names);
    let marks = marks(&lines);
    let pvids = pvids(language, &lines);
    entries_last(language, &mut lines);
    let mut config = understand(language, lines, &ports, names)?;
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
    Ok(Running { config, mark: marks.into_keys().next_back(), mark_vlans, pvids })
}

/// Runs the dialect's reader, taking away what it does not know and what concerns nobody here.
fn understand(
    language: &Language,
    mut lines: Vec<String>,
    ports: &[String],
    names: &[String],
) -> Result<SwitchConfig, String> {
    let mut read_len = 0;
    while read_len < READ_LEN_MAX {
        let text = lines.join("\n");
        read_len += text.len();
        let mut config = language.target.factory(ports.to_vec());
        let file = [TextFile { name: "", text: &text }];
        let errors = match language.target.dialect().read(&file, &mut config) {
            Ok(()) => return Ok(config),
            Err(errors) => errors,
        };
        for (_, LineError { line, message }) in errors {
            let said = lines.get_mut(line.saturating_sub(1)).map(std::mem::take).unwrap_or_default();
            if said.is_empty() || concerns(language.target, &said, names) {
                return Err(format!(
                    "its configuration says {:?}, which is not understood ({message}); take it out by hand first",
                    said.trim()
                ));
            }
        }
    }
    Err("its configuration has more that is not understood than there is patience for".to_owned())
}

/// Whether a line may be about what we set and read.
fn concerns(target: Target, line: &str, names: &[String]) -> bool {
    const SUBJECTS: &[&str] = &[
        "vlan",
        "switchport",
        "pvid",
        "mac-address",
        "mac-address-table",
        "address-table",
        "address",
        "bridge",
        "flowcontrol",
        "flow-control",
        "shutdown",
        "hybrid",
        "access",
        "trunk",
        "participation",
        "tagging",
    ];
    const OTHERS: &[&str] = &[
        "description",
        "name",
        "ip",
        "ipv6",
        "voice",
        "snmp-server",
        "snmp-agent",
        "snmp",
        "logging",
        "management-vlan",
        "management",
        "username",
        "aaa",
        "ssh",
        "hostname",
        "sysname",
        "stp",
        "spanning-tree",
        "lldp",
        "irf",
        "cdp",
        "ntp",
        "password",
    ];
    /// What says nothing but that a port is one.
    const HARMLESS: &[&[&str]] = &[&["port", "link-mode", "bridge"]];
    let words: Vec<&str> = line.split_whitespace().collect();
    if HARMLESS.contains(&words.as_slice()) {
        return false;
    }
    if target == Target::RouterOs {
        let ours = |word: &&str| {
            let value = word.split_once('=').map_or("", |(_, value)| value);
            value.split(',').any(|value| value == "espalier" || names.iter().any(|name| name == value))
        };
        let menu = line.starts_with("/interface bridge") || line.starts_with("/interface ethernet");
        return menu && words.iter().any(ours);
    }
    let first = if matches!(words.first(), Some(&("no" | "undo"))) { words.get(1) } else { words.first() };
    !first.is_some_and(|first| OTHERS.contains(first)) && words.iter().any(|word| SUBJECTS.contains(word))
}

/// Takes sections away that are no business of ours, ends the others, and returns every port that there is.
fn drop_foreign(language: &Language, lines: &mut [String], names: &[String]) -> Vec<String> {
    let mut ports = names.to_vec();
    let mut known: BTreeSet<String> = names.iter().cloned().collect();
    if language.target == Target::RouterOs {
        ports.extend(bridged(lines).map(str::to_owned).filter(|name| known.insert(name.clone())));
        return ports;
    }
    let mut foreign = false;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ends = language.section_end.is_some_and(|(end, _)| line.trim_end() == end) || words == ["exit"];
        match (language.section)(&words) {
            Section::Port(name) => {
                foreign = false;
                if known.insert(name.to_owned()) {
                    ports.push(name.to_owned());
                }
            }
            Section::Foreign => foreign = true,
            Section::Other => {}
        }
        if ends {
            // The command ends a section of ours, and does nothing after another's.
            let command = language.section_end.map_or("exit", |(_, command)| command);
            *line = if foreign && language.section_end.is_none() { String::new() } else { command.to_owned() };
            foreign = false;
        } else if foreign {
            line.clear();
        }
    }
    ports
}

/// Names that RouterOS calls ports of our bridge by.
fn bridged(lines: &[String]) -> impl Iterator<Item = &str> {
    let ours = |line: &&String| {
        line.starts_with("/interface bridge port add") && line.split(' ').any(|word| word == "bridge=espalier")
    };
    lines.iter().filter(ours).filter_map(|line| line.split(' ').find_map(|word| word.strip_prefix("interface=")))
}

/// Moves addresses behind the ports: a switch shows them in an order of its own, which it need not obey itself.
fn entries_last(language: &Language, lines: &mut Vec<String>) {
    let mut moved = Vec::new();
    let mut section = String::new();
    for line in lines.iter_mut() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (language.target, words.as_slice()) {
            (_, ["mac", "address-table", "static", ..] | ["mac-address-table", "static", ..])
            | (Target::Huawei, ["mac-address", "static", ..])
            | (Target::Comware7 | Target::Comware5, ["mac-address", "static", _, "interface", ..]) => {
                moved.push(std::mem::take(line));
            }
            (Target::PowerConnect, ["bridge", "address", ..]) => {
                moved.extend([section.clone(), std::mem::take(line), "exit".to_owned()]);
            }
            (_, ["interface", ..]) => section.clone_from(line),
            _ => {}
        }
    }
    let (before, after) = match (language.target, language.section_end) {
        (Target::Fastpath, _) => (Some("configure"), Some("exit")),
        (_, end) => (end.map(|(_, command)| command), None),
    };
    if !moved.is_empty() {
        lines.extend(before.map(str::to_owned));
        lines.append(&mut moved);
        lines.extend(after.map(str::to_owned));
    }
}

/// Marks, and the VLAN whose name each is.
fn marks(lines: &[String]) -> BTreeMap<Mark, Option<VlanId>> {
    let mut marks = BTreeMap::new();
    let mut section: Option<VlanId> = None;
    for line in lines {
        let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "\"'=".contains(c)).collect();
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

/// PVIDs that ports are told of, in languages that keep them where only tagged frames come in.
fn pvids(language: &Language, lines: &[String]) -> BTreeMap<String, VlanId> {
    let mut pvids = BTreeMap::new();
    let mut port = None;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["interface", ..] => {
                port = match (language.section)(&words) {
                    Section::Port(name) => Some(name),
                    Section::Foreign | Section::Other => None,
                };
            }
            ["switchport", "general", "pvid", id] | ["switchport", "native", "vlan", id] | ["vlan", "pvid", id] => {
                if let (Some(port), Ok(pvid)) = (port, id.parse()) {
                    pvids.insert(port.to_owned(), pvid);
                }
            }
            _ => {}
        }
    }
    pvids
}

/// `gigabitethernet1` is how the switch shows what it lets call `gi1`.
fn short_ports(line: &str) -> String {
    let mut line = line.to_owned();
    for (long, short) in [("tengigabitethernet", "te"), ("gigabitethernet", "gi"), ("fastethernet", "fa")] {
        line = line.replace(long, short);
    }
    line
}

/// What RouterOS shows, a line a command, with the settings that are our business.
fn routeros(lines: &[String]) -> Vec<String> {
    const KEPT: [&str; 15] = [
        "name",
        "protocol-mode",
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
        if !line.starts_with("/interface bridge") && !line.starts_with("/interface ethernet") {
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
mod tests {
    use super::{super::language::language, *};

    fn read(target: Target, text: &str, ports: &[&str]) -> Result<Running, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let names: Vec<String> = ports.iter().map(|name| (*name).to_owned()).collect();
        read_running(language(target).expect("spoken"), &lines, &names)
    }

    #[test]
    fn comware_shows_much_that_is_no_business_of_ours() {
        let text = "#\n version 7.1.070, Release 3507P09\n#\n sysname sw1\n#\n irf mac-address persistent timer\n#\nvlan 1\n#\n\
            vlan 2 to 3\n#\nvlan 4093\n name esp-3-0000000a-0000000b\n#\n undo stp global enable\n#\n\
            interface NULL0\n#\ninterface Vlan-interface1\n ip address dhcp-alloc\n#\n\
            interface GigabitEthernet1/0/1\n port link-mode bridge\n port link-type hybrid\n undo port hybrid vlan 1\n \
            port hybrid vlan 2 to 3 untagged\n port hybrid pvid vlan 2\n mac-address static 0200-0000-0001 vlan 3\n#\n\
            interface GigabitEthernet1/0/2\n port link-mode bridge\n port access vlan 2\n#\nline vty 0 63\n authentication-mode scheme\n#\nreturn\n";
        let running = read(Target::Comware7, text, &["GigabitEthernet1/0/1"]).expect("understood");
        let config = &running.config;
        assert_eq!((config.ports.len(), config.entries.len()), (2, 1));
        assert_eq!(config.ports[1].name, "GigabitEthernet1/0/2");
        assert_eq!((config.vlans.to_string(), config.ports[0].untagged.to_string()), ("2-3".into(), "2-3".into()));
        assert_eq!(config.spanning_tree, SpanningTree::Off);
        assert_eq!(running.mark.map(|mark| mark.generation), Some(3));
        assert_eq!(running.mark_vlans.len(), 1);
        let error = read(
            Target::Comware7,
            &text.replace(" port link-type hybrid\n", " port link-type trunk\n"),
            &["GigabitEthernet1/0/1"],
        );
        assert!(error.is_err_and(|error| error.contains("port link-type trunk")));
    }

    #[test]
    fn fastpath_has_blocks_in_blocks() {
        let text = "!Current Configuration:\n!\nvlan database\nvlan 2-3\nvlan 4093\nvlan name 4093 \"esp-1-00000001-00000002\"\nexit\n\
            configure\nline console\nserial timeout 160\nexit\nno spanning-tree\ninterface 0/1\nvlan ingressfilter\nvlan pvid 2\n\
            vlan participation include 2-3\nexit\ninterface vlan 1\nrouting\nexit\nexit\n";
        let running = read(Target::Fastpath, text, &["0/1"]).expect("understood");
        assert_eq!(running.config.ports[0].untagged.to_string(), "1-3");
        assert_eq!((running.config.spanning_tree, running.mark.is_some()), (SpanningTree::Off, true));
    }

    #[test]
    fn routeros_has_settings_of_all_kinds_on_a_line() {
        let text = "# 2026-01-01 by RouterOS 7.1\n/interface bridge add comment=\"a b=c\" name=espalier protocol-mode=none vlan-filtering=yes\n\
            /interface bridge add name=office\n/interface bridge port add bridge=office interface=ether9\n\
            /interface ethernet set [ find default-name=ether1 ] comment=\"up link\" disabled=yes l2mtu=1500\n\
            /interface bridge port add bridge=espalier interface=ether1 pvid=2 \\\n    trusted=yes\n\
            /interface bridge vlan add bridge=espalier vlan-ids=2\n/ip address add address=192.0.2.1/24 interface=ether9\n\
            /system note set note=esp-1-00000001-00000002 show-at-login=no\n";
        let running = read(Target::RouterOs, text, &["ether1"]).expect("understood");
        let port = &running.config.ports[0];
        assert_eq!((port.admin, port.untagged.to_string()), (fabric::Admin::Down, "2".into()));
        assert!(running.mark.is_some());
        assert!(
            read(
                Target::RouterOs,
                &text.replace("bridge=espalier interface=ether1", "bridge=office interface=ether1"),
                &["ether1"]
            )
            .is_err()
        );
        let factory = read(Target::RouterOs, "# empty\n", &["ether1"]).expect("understood");
        assert_eq!(factory.config, Target::RouterOs.factory(vec!["ether1".into()]));
    }

    #[test]
    fn powerconnects_show_ranges() {
        let text = "interface range ethernet g(1-3,24)\nswitchport mode general\nexit\nvlan database\nvlan 2-3,4093\nexit\n\
            interface range ethernet g(1-2)\nswitchport general allowed vlan add 2-3 untagged\nswitchport general pvid 2\nexit\n\
            interface range ethernet g(3,24)\nswitchport general allowed vlan add 2-3 tagged\nshutdown\nexit\n\
            interface vlan 4093\nname esp-1-00000001-00000002\nexit\ninterface vlan 2\n\
            bridge address 02:00:00:00:00:01 ethernet g2 permanent\nexit\nno spanning-tree\ninterface vlan 1\nip address 192.0.2.1 255.255.255.0\nexit\n";
        let running = read(Target::PowerConnect, text, &["g1", "g2", "g3"]).unwrap_or_else(|error| panic!("{error}"));
        let ports = &running.config.ports;
        assert_eq!((ports[0].untagged.to_string(), ports[1].pvid.map(|vlan| vlan.get())), ("1-3".into(), Some(2)));
        assert_eq!((ports[2].tagged.to_string(), ports[2].admin), ("2-3".into(), fabric::Admin::Down));
        assert_eq!((running.config.entries.len(), running.mark.is_some()), (1, true));
        let broken = text.replace("g(3,24)", "g(3;24)");
        let error = read(Target::PowerConnect, &broken, &["g1", "g2", "g3"]).expect_err("half a range");
        assert!(error.contains("g(3;24)"), "{error}");
    }

    /// A port that takes tagged frames alone has no PVID, and bears one all the same. The switch does not remove its VLAN.
    #[test]
    fn a_pvid_that_is_left_is_known() {
        let vlan = |id| VlanId::new(id).expect("in range");
        let check = |target: Target, (first, second): (&str, &str), text: &str| {
            let running = read(target, text, &[first]).unwrap_or_else(|error| panic!("{target}: {error}"));
            let borne = [(first.to_owned(), vlan(2)), (second.to_owned(), vlan(3))];
            assert_eq!(running.pvids, BTreeMap::from(borne), "{target}");
            let pvids: Vec<Option<VlanId>> = running.config.ports.iter().map(|port| port.pvid).collect();
            // The second port is none of the plan's, and in the way by its number.
            assert_eq!(pvids, [None, Some(vlan(3))], "{target}");
        };
        let general = "vlan database\nvlan 2-3\nexit\ninterface gi1\nswitchport mode general\nswitchport general pvid 2\n\
            switchport general acceptable-frame-type tagged-only\nexit\ninterface gi2\nswitchport mode general\n\
            switchport general pvid 3\nswitchport general acceptable-frame-type tagged-only\nexit\n";
        check(Target::CiscoSb, ("gi1", "gi2"), general);
        let older = general.replace("interface gi", "interface ethernet g");
        check(Target::PowerConnect, ("g1", "g2"), &older);
        let native = "vlan database\n vlan 2 media ethernet state active\n vlan 3 media ethernet state active\n!\n\
            interface ethernet 1/1\n switchport native vlan 2\n switchport acceptable-frame-types tagged\n!\n\
            interface ethernet 1/2\n switchport native vlan 3\n switchport acceptable-frame-types tagged\n!\n";
        check(Target::EdgeCore, ("1/1", "1/2"), native);
        let fastpath = "vlan database\nvlan 2-3\nexit\nconfigure\ninterface 0/1\nvlan pvid 2\nvlan acceptframe vlanonly\nexit\n\
            interface 0/2\nvlan pvid 3\nvlan acceptframe vlanonly\nexit\nexit\n";
        check(Target::Fastpath, ("0/1", "0/2"), fastpath);
    }

    #[test]
    fn small_business_switches_show_long_names() {
        let text = "vlan database\nvlan 2-3,4093\nexit\nhostname sw1\nno spanning-tree\n\
            mac address-table static 02:00:00:00:00:02 vlan 3 interface gigabitethernet1 permanent\ninterface vlan 1\n ip address 192.0.2.1 255.255.255.0\n!\n\
            interface vlan 4093\n name esp-1-00000001-00000002\n!\ninterface gigabitethernet1\n switchport mode general\n \
            switchport general allowed vlan add 2-3 untagged\n!\nmac address-table static 02:00:00:00:00:01 vlan 2 interface gigabitethernet1 permanent\n";
        let running = read(Target::CiscoSb, text, &["gi1"]).expect("understood");
        assert_eq!((running.config.ports[0].untagged.to_string(), running.config.entries.len()), ("1-3".into(), 2));
        assert_eq!((running.config.vlans.to_string(), running.mark_vlans.len()), ("2-3".into(), 1));
    }
}
