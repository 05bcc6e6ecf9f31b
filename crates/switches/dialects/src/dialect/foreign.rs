//! Which lines of a configuration are no business of a plan's: they are skipped where a switch is read, and stay as they are.
//!
//! ```text
//!   stp region-configuration              a block that no reader knows: foreign, to its end
//!    instance 1 vlan 1 to 4094
//!   qos map vlan 10                       foreign: about VLANs, and nothing that a plan sets
//!   interface GigabitEthernet0/0/24       a port outside the plan: what is understood counts, the rest is kept
//!    port link-type trunk
//!   interface GigabitEthernet0/0/1        a port of the plan: every line about VLANs must be understood
//!    port link-type dot1q-tunnel
//! ```
//! A line is judged by where it stands and by the words that it begins with, and only if the language's reader does not
//! understand it. Texts of banners and certificates are foreign whatever they say. Sources: the vendors' guides.

use crate::{Target, names::PortIndex, text::vlans};
use fabric::VlanSet;

/// What a line begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// A port of this name, as it is spelt here.
    Port(String),
    /// A VLAN, or several.
    Vlan(VlanSet),
    /// Where VLANs are made.
    Database,
    /// Where sections stand in.
    Container,
    /// Something that no plan is about, to its end.
    Foreign,
    /// No section, or one that only its indentation shows.
    Other,
}

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In no section, or at the beginning of one.
    Global,
    /// In the section of the port at this position of the plan's.
    Plan(usize),
    /// In the section of a port outside the plan, spelt so.
    Other(String),
    /// In the section of these VLANs.
    Vlan(VlanSet),
    /// Where VLANs are made.
    Database,
    /// In a section, or in a text, that no plan is about.
    Foreign,
}

/// How a language shows where sections end.
struct SectionStyle {
    /// A line that ends a section wherever it stands.
    mark: Option<&'static str>,
    /// Commands that end a section.
    ends: &'static [&'static str],
}

fn shape(target: Target) -> SectionStyle {
    match target {
        Target::Comware7 | Target::Comware5 | Target::Huawei => {
            SectionStyle { mark: Some("#"), ends: &["quit", "return"] }
        }
        _ => SectionStyle { mark: Some("!"), ends: &["exit", "end"] },
    }
}

/// Where each line stands; a line that begins a section stands in it. `ports` are the plan's.
///
/// Cost: linear in the text.
pub fn scopes(target: Target, lines: &[&str], ports: &PortIndex) -> Vec<Scope> {
    let shape = shape(target);
    let texts = texts(lines);
    let mut scopes = Vec::with_capacity(lines.len());
    let mut here = Scope::Global;
    // How far the section's first line is indented, and whether a line of its own was further.
    let (mut margin, mut is_deep) = (0, false);
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let indent = line.len() - line.trim_start().len();
        if texts[at] {
            scopes.push(Scope::Foreign);
            continue;
        }
        if words.is_empty() || (shape.mark.is_none_or(|mark| line.trim() != mark) && is_comment(target, &words)) {
            scopes.push(Scope::Global);
            continue;
        }
        let is_end = shape.mark.is_some_and(|mark| line.trim() == mark)
            || matches!(words[..], [word] if shape.ends.contains(&word));
        if is_end {
            // Behind a foreign section it would end another.
            scopes.push(if here == Scope::Foreign && target == Target::Fastpath {
                Scope::Foreign
            } else {
                Scope::Global
            });
            here = Scope::Global;
            continue;
        }
        if here != Scope::Global && is_deep && indent <= margin {
            here = Scope::Global;
        }
        let begun = match section(target, &words, ports) {
            Section::Port(name) => Some(match ports.find(&name) {
                Some(at) => Scope::Plan(at),
                None => Scope::Other(name),
            }),
            Section::Vlan(vlans) => Some(Scope::Vlan(vlans)),
            Section::Database => Some(Scope::Database),
            Section::Foreign => Some(Scope::Foreign),
            Section::Container => {
                here = Scope::Global;
                scopes.push(Scope::Global);
                continue;
            }
            Section::Other if here == Scope::Global && opens_block(lines, at, indent, &texts) => {
                // Its first line may be a command all the same.
                scopes.push(Scope::Global);
                (here, margin, is_deep) = (Scope::Foreign, indent, true);
                continue;
            }
            Section::Other => None,
        };
        match begun {
            // A VLAN in a foreign block, or a line of a port that looks like another's beginning.
            Some(_) if here == Scope::Foreign && is_deep && indent > margin => {}
            Some(scope) => (here, margin, is_deep) = (scope, indent, false),
            None if here != Scope::Global && indent > margin => is_deep = true,
            None => {}
        }
        scopes.push(here.clone());
    }
    scopes
}

/// Whether the next line belongs to this one by its indentation.
fn opens_block(lines: &[&str], at: usize, indent: usize, texts: &[bool]) -> bool {
    let next = lines.get(at + 1).filter(|next| !next.trim().is_empty() && !texts[at + 1]);
    next.is_some_and(|next| {
        let further = next.len() - next.trim_start().len();
        further > indent && !next.trim_start().starts_with(['!', '#'])
    })
}

fn is_comment(target: Target, words: &[&str]) -> bool {
    match target {
        Target::Comware7 | Target::Comware5 | Target::Huawei => words[0].starts_with('#'),
        _ => words[0].starts_with('!'),
    }
}

/// Which lines are a person's or a machine's text: banners, certificates, keys.
fn texts(lines: &[&str]) -> Vec<bool> {
    const KINDS: [&str; 12] = [
        "motd",
        "login",
        "exec",
        "legal",
        "shell",
        "incoming",
        "information",
        "message",
        "set",
        "slip-ppp",
        "config",
        "prompt-timeout",
    ];
    let mut texts = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        if line.starts_with("-----BEGIN ") {
            let end = lines[at..].iter().position(|line| line.trim().starts_with("-----END "));
            let end = end.map_or(at, |end| at + end);
            texts[at..=end].fill(true);
            at = end + 1;
            continue;
        }
        let rest = line.strip_prefix("banner ").or_else(|| line.strip_prefix("header "));
        if let Some(mut rest) = rest {
            while let Some(kind) = KINDS.iter().find(|kind| {
                rest.strip_prefix(**kind)
                    .is_some_and(|after| after.is_empty() || after.starts_with(char::is_whitespace))
            }) {
                rest = rest[kind.len()..].trim_start();
            }
            // The text is over where its first sign comes again; EOS ends it with a word.
            let (sign, behind) = match rest.chars().next() {
                Some('^') if rest.len() > 1 => {
                    rest.split_at(rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at))
                }
                Some(first) if !first.is_alphanumeric() => rest.split_at(first.len_utf8()),
                Some(_) => ("", ""),
                None => ("EOF", ""),
            };
            if !sign.is_empty() && !behind.contains(sign) {
                if let Some(end) = lines[at + 1..].iter().position(|line| line.contains(sign)) {
                    texts[at..=at + 1 + end].fill(true);
                    at += end + 2;
                    continue;
                }
            }
            texts[at] = true;
        }
        at += 1;
    }
    texts
}

/// What a line begins, in a language of lines and sections. A name of the plan's is always a port's.
pub(crate) fn section(target: Target, words: &[&str], ports: &PortIndex) -> Section {
    let numbers = |list: &str| vlans(list).map_or(Section::Other, Section::Vlan);
    let port = |name: &[&str], is: fn(&str) -> bool| {
        let name = name.concat();
        if ports.find(&name).is_some() || is(&name) { Section::Port(name) } else { Section::Foreign }
    };
    match (target, words) {
        (Target::Comware7 | Target::Comware5 | Target::Huawei, ["interface", "range", ..]) => Section::Other,
        (Target::Comware7 | Target::Comware5 | Target::Huawei, ["interface", name @ ..]) => port(name, is_view),
        (Target::Comware7 | Target::Comware5 | Target::Huawei, ["vlan", number]) => numbers(number),
        (Target::PowerConnect | Target::CiscoSb | Target::EdgeCore | Target::Fastpath, ["vlan", "database"]) => {
            Section::Database
        }
        (_, ["interface", "range", ..]) => Section::Other,
        (Target::PowerConnect | Target::CiscoSb, ["interface", "vlan", number]) => numbers(number),
        (Target::PowerConnect | Target::EdgeCore, ["interface", "ethernet", name @ ..]) => port(name, |_| true),
        (Target::PowerConnect | Target::TpLink, ["interface", "port-channel", number]) => {
            Section::Port(format!("port-channel {number}"))
        }
        (Target::Fastpath, ["interface", "lag", number]) => Section::Port(format!("lag {number}")),
        (Target::CiscoSb, ["interface", name @ ..]) => port(name, |name| {
            has_kind(name, &["gi", "fa", "te", "tw", "fi", "po", "xg"], &["ethernet", "portchannel", "port-channel"])
        }),
        (Target::Fastpath, ["configure"]) => Section::Container,
        (Target::Fastpath, ["interface", name]) => port(&[name], |name| name.starts_with(|c: char| c.is_ascii_digit())),
        (Target::Zyxel, ["interface", "port-channel", list]) => {
            let own = list.split([',', '-']).find(|number| ports.find(number).is_some());
            Section::Port(own.unwrap_or(list).to_owned())
        }
        (Target::Zyxel | Target::TpLink | Target::Eos | Target::Ios, ["vlan", list]) => numbers(list),
        (Target::TpLink, ["interface", kind, name]) if kind.to_ascii_lowercase().ends_with("ethernet") => {
            port(&[name], |_| true)
        }
        (Target::Eos | Target::Ios, ["interface", name @ ..]) => port(name, |name| {
            has_kind(name, &["et", "gi", "te", "fa", "fo", "hu", "po", "tw"], &["ethernet", "gige", "channel"])
        }),
        (_, ["interface" | "line", ..]) => Section::Foreign,
        (
            Target::PowerConnect | Target::CiscoSb | Target::EdgeCore | Target::Fastpath,
            ["spanning-tree", "mst", "configuration" | "config"]
            | ["spanning-tree", "mst-configuration"]
            | ["class-map" | "policy-map" | "router", _, ..]
            | ["ip" | "ipv6" | "mac" | "management", "access-list", ..]
            | ["access-list", "ip" | "mac" | "ipv6" | "arp", ..]
            | ["ip", "dhcp", "pool", ..],
        ) => Section::Foreign,
        _ => Section::Other,
    }
}

/// Whether a name has one of these short kinds, or a kind that ends so.
fn has_kind(name: &str, short: &[&str], ends: &[&str]) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || "/:.".contains(c)).to_ascii_lowercase();
    !name.contains('.') && (short.contains(&kind.as_str()) || ends.iter().any(|end| kind.ends_with(end)))
}

/// Ports and link aggregations of Comware and VRP, less ports for management and sub-interfaces.
fn is_view(name: &str) -> bool {
    const NOT: [&str; 7] =
        ["meth", "m-gigabitethernet", "mgigabitethernet", "m-ethernet", "virtual-ethernet", "ve", "vbdif"];
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || "/:.".contains(c)).to_ascii_lowercase();
    let is = ["ethernet", "ge", "gige", "eth-trunk", "bridge-aggregation"].iter().any(|end| kind.ends_with(end));
    is && !NOT.contains(&kind.as_str()) && !name.contains('.')
}

/// Whether a line that its language's reader does not understand may change what a plan is about, so that it cannot be
/// skipped.
pub fn is_business(target: Target, scope: &Scope, line: &str, ports: &PortIndex) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = match words[..] {
        ["no" | "undo" | "default", ref rest @ ..] => rest,
        ref all => all,
    };
    let Some(head) = words.first() else { return false };
    let second = words.get(1).copied().unwrap_or("");
    let is_static = || words.iter().take(4).any(|word| *word == "static");
    match scope {
        Scope::Foreign | Scope::Other(_) => false,
        Scope::Plan(_) => match *head {
            "switchport" => {
                matches!(
                    second,
                    "mode"
                        | "general"
                        | "access"
                        | "trunk"
                        | "hybrid"
                        | "allowed"
                        | "native"
                        | "customer"
                        | "pvid"
                        | "protected"
                        | "protected-port"
                        | "community"
                ) || (second.is_empty() && line.trim_start().starts_with("no "))
                    || ["acceptable", "ingress", "dot1q", "private-vlan", "vlan"]
                        .iter()
                        .any(|begin| second.starts_with(begin))
                    || (second == "forbidden" && words.contains(&"default-vlan"))
            }
            "port" => match second {
                "link-mode" => words.get(2) != Some(&"bridge"),
                "link-type" | "access" | "hybrid" | "trunk" | "default" | "link-aggregation" | "mux-vlan"
                | "private-vlan" | "isolate-user-vlan" | "vlan-mapping" | "vlan-stacking" => true,
                _ => false,
            },
            "vlan" => matches!(
                second,
                "participation"
                    | "tagging"
                    | "pvid"
                    | "acceptframe"
                    | "ingressfilter"
                    | "port"
                    | "mapping"
                    | "translation"
                    | "stacking"
            ),
            "qinq" | "vlan-mapping" | "vlan-translation" | "dot1q-tunnel" | "mac-vlan" | "eth-trunk"
            | "port-isolate" | "channel-group" | "addport" | "deleteport" | "port-channel" | "trunkport"
            | "link-aggregation" | "flowcontrol" | "flow-control" | "shutdown" | "bridge" | "pvid" | "frame-type"
            | "ingress-check" | "inactive" => true,
            "priority-flow-control" => true,
            "mac-address" | "mac" | "mac-address-table" => is_static(),
            "interface" => true,
            _ => false,
        },
        Scope::Vlan(_) => match *head {
            "bridge" => second == "address" && names_port(words, ports),
            "mac-address" => is_static() && names_port(words, ports),
            "interface" | "vlan" => true,
            "fixed" | "untagged" | "forbidden" => target == Target::Zyxel,
            _ => false,
        },
        Scope::Database => match *head {
            "vlan" => !matches!(second, "name" | "routing" | "association" | "makestatic" | "protocol"),
            "default-vlan" => true,
            _ => false,
        },
        Scope::Global => match *head {
            "vlan" => {
                second.starts_with(|c: char| c.is_ascii_digit())
                    || matches!(second, "batch" | "participation" | "port" | "to" | "acceptframe" | "ingressfilter")
            }
            "default-vlan" => true,
            // A line that would be a port's, outside any.
            "switchport" | "shutdown" | "flow-control" => words.len() <= 2 || second == "mode",
            "interface" => words.iter().any(|word| ports.find(word).is_some()) || second == "range",
            "mac-address" | "mac" | "mac-address-table" | "mac-forward" => is_static() && names_port(words, ports),
            "set" | "delete" => names_port(words, ports) || (second == "vlans" && words.contains(&"vlan-id")),
            _ => false,
        },
    }
}

/// What a VLAN's section says that changes which of its ports reach each other.
pub fn changes_reach(line: &str) -> bool {
    const WORDS: [&str; 10] = [
        "private-vlan",
        "mux-vlan",
        "isolate-user-vlan",
        "aggregate-vlan",
        "super-vlan",
        "supervlan",
        "subvlan",
        "sub-vlan",
        "subordinate",
        "separate",
    ];
    line.split_whitespace().next().is_some_and(|head| WORDS.contains(&head))
}

/// Whether one word, or two together, is a port of the plan's.
fn names_port(words: &[&str], ports: &PortIndex) -> bool {
    let bare = |word: &str| word.strip_suffix(".0").unwrap_or(word).to_owned();
    words.iter().any(|word| ports.find(word).is_some() || ports.find(&bare(word)).is_some())
        || words.windows(2).any(|pair| ports.find(&pair.concat()).is_some())
}

/// VLANs that a line about a port may make it a member of, by the numbers in it: as many as it may mean, rather than fewer.
pub fn vlans_named(line: &str) -> VlanSet {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut named = VlanSet::new();
    if matches!(words.first(), Some(&("no" | "undo" | "description" | "name"))) || words.contains(&"remove") {
        return named;
    }
    let Some(from) = words.iter().position(|word| word.contains("vlan") || *word == "pvid" || *word == "tagging")
    else {
        return named;
    };
    let list = words[from + 1..].join(" ").replace(" to ", "-");
    for word in list.split_whitespace() {
        match word {
            "all" => named.extend(crate::text::every_vlan().iter()),
            word => {
                if let Ok(found) = vlans(word) {
                    named.extend(found.iter());
                }
            }
        }
    }
    named
}
