//! When two spellings of a port's name mean one port.
//!
//! ```text
//!   "Gi1/0/1"  "gigabitEthernet 1/0/1"  "GE1/0/1"   ─▶   gigabitethernet1/0/1
//!    kind numbers                                        kind's full name, numbers as they are
//! ```
//! A name is a *kind* and *numbers*. Each command line has a list of kinds, each with its short forms; two spellings mean
//! one port if they have one canonical form, which is `lag7` for a LAG, whatever the language calls it. Numbers are never changed, and a name that the list does not have means
//! itself, so that no two ports of a switch become one: `10GE1/0/1` and `GE1/0/1` are two ports of a CloudEngine, `eth0` and
//! `Ethernet0` two of a SONiC switch. Where no command line is known, only what is true of all of them counts.
//!
//! Sources: the vendors' guides for the interfaces of their command lines, as in `docs/devices.md`.

use std::{borrow::Cow, collections::BTreeMap};

use fabric::LagNumber;

use crate::Target;
use switch_model::station::StationPort;

/// Most names that an error offers.
const NEAR_MAX: usize = 4;
/// Most letters of a name that are compared: longer ones come from no switch.
const LETTERS_MAX: usize = 64;

/// Which numbers a kind's short forms may stand before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Any.
    Any,
    /// More than one, as `1/19`: alone, `eth0` is another port than `Ethernet0`.
    Several,
    /// Exactly one, as `po7`: `PO0/1/0` is an optical interface.
    One,
}

/// A kind of port: its canonical name, the other spellings, and where they count. Case and inner hyphens do not matter.
type PortNaming = (&'static str, &'static [&'static str], Numbers);

/// Kinds of all command lines, in spellings that mean the same on every one that has them.
const COMMON: &[PortNaming] = &[
    ("ethernet", &["eth", "et"], Numbers::Several),
    ("fastethernet", &["fa", "fas"], Numbers::Any),
    ("gigabitethernet", &["gi", "gig", "gigabit", "gigaethernet", "ge"], Numbers::Any),
    ("twogigabitethernet", &[], Numbers::Any),
    ("fivegigabitethernet", &[], Numbers::Any),
    ("tengigabitethernet", &["te", "ten", "tengig", "tengige", "tengigabit", "xgigabitethernet", "xge"], Numbers::Any),
    ("twentyfivegige", &["twe", "twentyfivegigabitethernet"], Numbers::Any),
    ("fortygige", &["fo", "fortygigabitethernet", "fge"], Numbers::Any),
    ("fiftygige", &["fiftygigabitethernet"], Numbers::Any),
    ("hundredgige", &["hu", "hundredgigabitethernet", "hge"], Numbers::Any),
    ("portchannel", &["po"], Numbers::One),
];

/// Those of Cisco's IOS and of its kin.
const IOS: &[PortNaming] = &[
    ("ethernet", &["e", "et", "eth"], Numbers::Any),
    ("twogigabitethernet", &["tw"], Numbers::Any),
    ("fivegigabitethernet", &["fi"], Numbers::Any),
    ("portchannel", &["po"], Numbers::One),
];

/// Those of Arista's EOS.
const EOS: &[PortNaming] = &[
    ("ethernet", &["e", "et", "eth"], Numbers::Any),
    ("management", &["ma", "mgmt"], Numbers::Any),
    ("portchannel", &["po"], Numbers::One),
];

/// Those of Cisco's small-business switches and of Dell's 55xx.
const CISCO_SB: &[PortNaming] = &[
    ("fastethernet", &["fa", "fas"], Numbers::Any),
    ("gigabitethernet", &["gi", "gig", "gigabit", "ge"], Numbers::Any),
    ("twopointfivegigabitethernet", &["twopointfivegigaethernet"], Numbers::Any),
    ("twogigabitethernet", &["tw"], Numbers::Any),
    ("fivegigabitethernet", &["fi"], Numbers::Any),
    ("tengigabitethernet", &["te", "ten", "tengig", "xg"], Numbers::Any),
    ("portchannel", &["po"], Numbers::One),
];

/// Those of Comware.
const COMWARE: &[PortNaming] = &[
    ("ethernet", &["eth", "e"], Numbers::Any),
    ("gigabitethernet", &["ge", "g", "gi", "gig", "gigabit"], Numbers::Any),
    ("mgigabitethernet", &["mge"], Numbers::Any),
    ("tengigabitethernet", &["xge", "te", "ten"], Numbers::Any),
    ("twentyfivegige", &["wge", "twe"], Numbers::Any),
    ("fortygige", &["fge", "fo"], Numbers::Any),
    ("hundredgige", &["hge", "hu"], Numbers::Any),
    ("bridgeaggregation", &["bagg"], Numbers::One),
];

/// Those of Huawei's VRP. A CloudEngine's `10GE`, `25GE`, `40GE` and `100GE` mean themselves.
const HUAWEI: &[PortNaming] = &[
    ("ethernet", &["eth", "e"], Numbers::Any),
    ("gigabitethernet", &["ge", "g", "gi", "gig", "gigabit"], Numbers::Any),
    ("xgigabitethernet", &["xge"], Numbers::Any),
    ("multige", &[], Numbers::Any),
    ("10ge", &[], Numbers::Any),
    ("25ge", &[], Numbers::Any),
    ("40ge", &[], Numbers::Any),
    ("50ge", &[], Numbers::Any),
    ("100ge", &[], Numbers::Any),
    ("200ge", &[], Numbers::Any),
    ("400ge", &[], Numbers::Any),
    ("ethtrunk", &[], Numbers::One),
];

/// Words before numbers that alone name a port.
const EDGE_CORE: &[&str] = &["ethernet", "eth", "port"];
const TP_LINK: &[&str] = &[
    "fastethernet",
    "gigabitethernet",
    "gi",
    "twogigabitethernet",
    "tengigabitethernet",
    "te",
    "twentyfivegigabitethernet",
    "port",
];
const ZYXEL: &[&str] = &["portchannel", "port", "interface"];
const POWERCONNECT: &[&str] = &["ethernet"];

/// What a language calls a LAG, before its number, and other kinds that mean one; none where it is called as in topologies.
///
/// Sources: the guides of `docs/devices.md`; `ch` is how a PowerConnect 53xx shows a LAG.
fn lag_kinds(target: Option<Target>) -> Option<(&'static str, &'static [&'static str])> {
    match target {
        None | Some(Target::Ios) => Some(("Port-channel", &["portchannel", "po"])),
        Some(Target::Eos) => Some(("Port-Channel", &["portchannel", "po"])),
        Some(Target::CiscoSb) => Some(("po", &["portchannel", "po"])),
        Some(Target::PowerConnect) => Some(("port-channel ", &["portchannel", "ch"])),
        Some(Target::TpLink) => Some(("port-channel ", &["portchannel", "po"])),
        Some(Target::Fastpath) => Some(("lag ", &["lag"])),
        Some(Target::Comware7 | Target::Comware5) => Some(("Bridge-Aggregation", &["bridgeaggregation", "bagg"])),
        Some(Target::Huawei) => Some(("Eth-Trunk", &["ethtrunk"])),
        Some(Target::Sonic) => Some(("PortChannel", &[])),
        Some(Target::Junos) => Some(("ae", &[])),
        Some(
            Target::LinuxBridge
            | Target::Networkd
            | Target::Ifupdown2
            | Target::OpenVswitch
            | Target::RouterOs
            | Target::EdgeCore
            | Target::Zyxel,
        ) => None,
    }
}

/// What a language calls a port: its name, but for a LAG, which has one by its number.
pub(crate) fn spelt(target: Target, port: &str) -> Cow<'_, str> {
    match (LagNumber::of_port(port), lag_kinds(Some(target))) {
        (Some(lag), Some((kind, _))) => Cow::Owned(format!("{kind}{}", lag.get())),
        _ => Cow::Borrowed(port),
    }
}

/// The number of the LAG that a language calls so.
pub(crate) fn lag_spelt(target: Option<Target>, name: &str) -> Option<LagNumber> {
    let (word, kinds) = lag_kinds(target)?;
    let squeezed = squeeze(name);
    let of_number = |number: &str| LagNumber::of_port(&format!("lag{number}"));
    if kinds.is_empty() {
        // Names that count as they stand.
        return of_number(name.strip_prefix(word)?);
    }
    let (kind, number) = split(&squeezed)?;
    of_number(number).filter(|_| kinds.contains(&folded(kind).as_str()))
}

/// How a command line's names are read.
enum Spelling {
    /// As they stand.
    Exact,
    /// As kinds and numbers; other names regardless of case.
    Kinds(&'static [&'static [PortNaming]]),
    /// As numbers, or what else is left, behind words that say nothing.
    Bare(&'static [&'static str]),
    /// As kinds and numbers; other names as they stand, but for spaces.
    Unknown,
}

fn spelling(target: Option<Target>) -> Spelling {
    match target {
        None => Spelling::Unknown,
        Some(Target::PowerConnect) => Spelling::Bare(POWERCONNECT),
        Some(Target::CiscoSb) => Spelling::Kinds(&[CISCO_SB]),
        Some(Target::EdgeCore) => Spelling::Bare(EDGE_CORE),
        Some(Target::Comware7 | Target::Comware5) => Spelling::Kinds(&[COMWARE]),
        Some(Target::Huawei) => Spelling::Kinds(&[HUAWEI]),
        Some(Target::Zyxel) => Spelling::Bare(ZYXEL),
        Some(Target::TpLink) => Spelling::Bare(TP_LINK),
        Some(Target::Fastpath) => Spelling::Kinds(&[COMMON]),
        Some(Target::Eos) => Spelling::Kinds(&[EOS]),
        Some(Target::Ios) => Spelling::Kinds(&[IOS, COMMON]),
        // Names of Linux devices, and those that a person gave.
        Some(
            Target::LinuxBridge
            | Target::Networkd
            | Target::Ifupdown2
            | Target::OpenVswitch
            | Target::RouterOs
            | Target::Sonic
            | Target::Junos,
        ) => Spelling::Exact,
    }
}

/// Whether names of ports are taken as they stand: in all but vendors' languages of lines and sections.
pub(crate) fn are_exact(target: Target) -> bool {
    matches!(spelling(Some(target)), Spelling::Exact)
}

/// The form that all spellings of a port have in common, to be compared and to key maps by; not for people or switches to
/// read. It is its own canonical form. With no target, only spellings that mean one port on every switch have one form.
///
/// Cost: linear in the name.
pub fn canonical_port(target: Option<Target>, name: &str) -> String {
    if let Some(lag) = lag_spelt(target, name) {
        return lag.to_string();
    }
    let squeezed = squeeze(name);
    match spelling(target) {
        Spelling::Exact => name.to_owned(),
        Spelling::Kinds(lists) => of_kind(lists, &squeezed).unwrap_or_else(|| squeezed.to_ascii_lowercase()),
        Spelling::Bare(words) => squeeze(behind_words(words, name)).to_ascii_lowercase(),
        Spelling::Unknown => of_kind(&[COMMON], &squeezed).unwrap_or_else(|| squeezed.into_owned()),
    }
}

/// Whether two spellings mean one port: they have one [canonical form](canonical_port).
///
/// ```
/// use dialects::{Target, same_port};
/// assert!(same_port(None, "Eth1/19", "Ethernet1/19"));
/// assert!(same_port(Some(Target::CiscoSb), "gi1", "GigabitEthernet1"));
/// assert!(!same_port(Some(Target::Huawei), "GE1/0/1", "10GE1/0/1"));
/// ```
pub fn same_port(target: Option<Target>, a: &str, b: &str) -> bool {
    a == b || canonical_port(target, a) == canonical_port(target, b)
}

/// The names among `known` that are most like `name`, at most four, best first: those with the same numbers, then those
/// that differ in the fewest letters. For errors that name a port which a switch does not have.
///
/// Cost: O(number of names × 64²).
pub fn near_ports(name: &str, known: &[&str]) -> Vec<String> {
    let wanted = canonical_port(None, name).to_lowercase();
    let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
    for (index, other) in known.iter().enumerate() {
        let other = canonical_port(None, other).to_lowercase();
        let common = common_numbers(&wanted, &other);
        let distance = edit_distance(&wanted, &other);
        let bound = (wanted.chars().count().min(LETTERS_MAX) / 3).max(1);
        if common > 0 || distance <= bound {
            // Numbers that agree from the end count for more than letters.
            ranked.push((usize::MAX - common, distance, index));
        }
    }
    ranked.sort_unstable();
    ranked.into_iter().take(NEAR_MAX).map(|(_, _, index)| known[index].to_owned()).collect()
}

/// What is left of a name behind words that say nothing.
fn behind_words<'a>(words: &[&str], name: &'a str) -> &'a str {
    let mut name = name.trim();
    loop {
        let end = name.find(|c: char| !(c.is_ascii_alphabetic() || c == '-')).unwrap_or(name.len());
        let (word, rest) = name.split_at(end);
        let goes_on = rest.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit());
        if !goes_on || !words.contains(&folded(word).as_str()) {
            return name;
        }
        name = rest.trim_start();
    }
}

/// A switch's ports, to be found by any spelling.
#[derive(Clone, Debug)]
pub struct PortIndex {
    target: Option<Target>,
    exact: BTreeMap<String, usize>,
    /// Ports by canonical form; none where two have one.
    canonical: BTreeMap<String, Option<usize>>,
}

impl PortIndex {
    /// The index of these names, by position.
    pub fn new<'a>(target: Option<Target>, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut index = Self { target, exact: BTreeMap::new(), canonical: BTreeMap::new() };
        for (position, name) in names.into_iter().enumerate() {
            index.exact.insert(name.to_owned(), position);
            index.canonical.entry(canonical_port(target, name)).and_modify(|at| *at = None).or_insert(Some(position));
        }
        index
    }

    /// The position of the port that this spelling means: the one spelt so, or the only one with its canonical form.
    pub fn find(&self, name: &str) -> Option<usize> {
        let exact = self.exact.get(name).copied();
        exact.or_else(|| self.canonical.get(&canonical_port(self.target, name)).copied().flatten())
    }

    /// As [`find`](Self::find), for a name in a text of the language, which may have another name for a LAG than topologies.
    pub(crate) fn said(&self, name: &str) -> Option<usize> {
        let is_foreign = |target| spelt(target, name) != name && lag_spelt(Some(target), name).is_none();
        if self.target.is_some_and(is_foreign) { None } else { self.find(name) }
    }
}

/// What an error says of a port that is not there: its name, and near ones.
pub fn no_such_port<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match near_ports(name, &known)[..] {
        [] => format!("the switch has no port {name}"),
        ref near => format!("the switch has no port {name}; names like it: {}", near.join(", ")),
    }
}

/// The name without spaces at its ends, beside slashes and before numbers, and with one wherever else there are some.
fn squeeze(name: &str) -> Cow<'_, str> {
    let is_tight = |c: char| c == '/' || c == ':';
    if !name.contains(char::is_whitespace) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        let joins = out.chars().last().is_none_or(|last| {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            is_tight(last) || word.starts_with(is_tight) || (last.is_ascii_alphabetic() && number)
        });
        if !joins {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// A kind and numbers: letters and hyphens, in front of them digits that belong to the kind (`10GE1/0/1`), behind them
/// numbers with `/`, `:` or `.` between.
fn split(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind(|c: char| !(c.is_ascii_digit() || "/:.".contains(c))).map(|at| at + 1)?;
    if !name.is_char_boundary(at) {
        return None;
    }
    let (kind, numbers) = name.split_at(at);
    let letters = kind.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_kind = letters.starts_with(|c: char| c.is_ascii_alphabetic())
        && letters.ends_with(|c: char| c.is_ascii_alphabetic())
        && letters.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let are_numbers = numbers.split(['/', ':', '.']).all(|part| !part.is_empty());
    (is_kind && are_numbers).then_some((kind, numbers))
}

/// A kind without case and hyphens.
fn folded(kind: &str) -> String {
    kind.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect()
}

/// The canonical form by these lists, the earlier first; none if no list has the kind.
fn of_kind(lists: &[&[PortNaming]], name: &str) -> Option<String> {
    let (kind, numbers) = split(name)?;
    let kind = folded(kind);
    let counts = |which: Numbers| match which {
        Numbers::Any => true,
        Numbers::Several => numbers.contains('/'),
        Numbers::One => !numbers.contains('/'),
    };
    let has = |(full, short, which): &&PortNaming| (*full == kind || short.contains(&kind.as_str())) && counts(*which);
    let (full, ..) = lists.iter().flat_map(|list| list.iter()).find(has)?;
    Some(format!("{full}{numbers}"))
}

/// How many of the numbers of two names agree, counted from the last.
fn common_numbers(a: &str, b: &str) -> usize {
    let numbers = |name: &str| -> Vec<String> {
        let parts = name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let plain = parts.map(|part| part.trim_start_matches('0').to_owned());
        plain.collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Levenshtein distance of the first letters, one row at a time.
fn edit_distance(a: &str, b: &str) -> usize {
    let letters = |name: &str| name.chars().take(LETTERS_MAX).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
/// Whether a port is called so, in any spelling that means it on every switch.
pub fn is_called(port: &StationPort, text: &str) -> bool {
    !text.is_empty()
        && (same_port(None, &port.name, text) || port.labels.iter().any(|label| same_port(None, label, text)))
}
