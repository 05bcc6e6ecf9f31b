//! One text that all hosts share, a line a host, from which each host makes its own table.
//!
//! ```text
//!   mode source-destination          # by whose VLAN: source, destination, source-destination, pair
//!   spread flowlet 500us             # first, port, flow, flowlet PAUSE, placed
//!   vlans 2-5                        # VLANs of the fabric; those of the lines unless given
//!   class 1 4-5                      # lanes: the class of VLANs, 0 unless given; or: class dscp
//!   failover none                    # whether hosts leave paths that fail: any (unless given), none
//!   # address           VLANs  priority  switch
//!   02:00:00:00:00:01   2      8         sw1
//!   02:00:00:00:00:02   3,2    7         sw1
//!   pair 02:00:00:00:00:01 02:00:00:00:00:02 4
//! ```
//! An address, a VLAN and a priority are \[Miura\]'s: both ends of a pair use the VLAN of the end with the higher priority,
//! the sender's own on a tie and toward whoever is not listed. So n lines say what n² pairs do. The switch says which hosts
//! share paths; without one, each host is taken to be alone on its switch.
//!
//! Source: Miura et al. 2005, 3.2.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write},
};

use fabric::{Mac, VlanId, VlanSet};
use thiserror::Error;

use crate::table::{CHOICES_MAX, CLASS_MAX, Classes, DESTINATIONS_MAX, Route, Spread, TaggingTable};

/// Most pairs of a configuration: beyond, give hosts the plan itself.
pub const PAIRS_MAX: usize = 1 << 20;

/// Shortest and longest pause of a flowlet, in microseconds.
pub const GAP_US: std::ops::RangeInclusive<u32> = 10..=1_000_000;

const GAP_US_DEFAULT: u32 = 500;
const PROBLEMS_MAX: usize = 20;
const CLASSES_TWICE: &str = "classes are those of VLANs or those of DSCP: keep one of the two";

/// What all hosts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whose VLANs a frame takes.
    pub mode: Mode,
    /// How it is spread over them.
    pub spread: Spread,
    /// Where destinations behind a path that fails are moved.
    pub failover: Failover,
    /// The hosts, by address.
    pub hosts: BTreeMap<Mac, HostLine>,
    /// With [`Mode::Pair`]: VLANs from the first to the second, and back unless that is given too.
    pub pairs: BTreeMap<(Mac, Mac), Vec<VlanId>>,
    /// Where hosts send broadcasts, multicasts and frames for stations that are not listed, if not in their preferred VLAN.
    pub groups: BTreeMap<Mac, VlanId>,
    /// VLANs of the fabric.
    pub vlans: VlanSet,
    /// The class of traffic that frames leave in.
    pub classes: Classes,
}

/// Where destinations behind a path that fails are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Failover {
    /// To any of the fabric's VLANs whose path is healthy.
    #[default]
    Any,
    /// Nowhere: frames stay in their VLAN, whatever becomes of its path.
    None,
}

/// What is said of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLine {
    /// Its VLANs, the preferred one first; never empty.
    pub vlans: Vec<VlanId>,
    /// Higher decides.
    pub priority: u32,
    /// The switch that it is on.
    pub switch: Option<String>,
}

/// Whose VLANs a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The sender's.
    Source,
    /// The receiver's.
    Destination,
    /// Those of the end with the higher priority.
    SourceDestination,
    /// Those of the pair.
    Pair,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Source, Self::Destination, Self::SourceDestination, Self::Pair];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
            Self::SourceDestination => "source-destination",
            Self::Pair => "pair",
        }
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigError {
    /// What is wrong, in the order of lines; at most 20.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as it was named.
    pub file: String,
    /// From 1; 0 where it is no single line.
    pub line: usize,
    /// What is wrong, and the way out.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Problem { file, line, message }) in self.problems.iter().enumerate() {
            let end = if at + 1 == self.problems.len() { "" } else { "\n" };
            match line {
                0 => write!(f, "{file}: {message}{end}")?,
                line => write!(f, "{file}:{line}: {message}{end}")?,
            }
        }
        Ok(())
    }
}

impl Config {
    /// Reads a configuration. Never panics, whatever the text. Cost: O(text · log hosts).
    ///
    /// # Errors
    /// All that is wrong, up to 20 problems, each with file and line.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(file);
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            if let Err(message) = reader.line(number, &words) {
                reader.problem(number, message);
            }
            if reader.problems.len() >= PROBLEMS_MAX {
                break;
            }
        }
        reader.finish()
    }

    /// The table of one host. Cost: O(hosts · log hosts).
    ///
    /// # Errors
    /// The host's address, if it is not listed.
    pub fn table(&self, own: Mac) -> Result<TaggingTable, Mac> {
        let line = self.hosts.get(&own).ok_or(own)?;
        let destinations = (self.hosts.iter())
            .filter(|(mac, _)| **mac != own)
            .filter_map(|(mac, other)| {
                let vlans = match self.mode {
                    Mode::Source => &line.vlans,
                    Mode::Destination => &other.vlans,
                    Mode::SourceDestination if other.priority > line.priority => &other.vlans,
                    Mode::SourceDestination => &line.vlans,
                    Mode::Pair => {
                        let given = self.pairs.get(&(own, *mac)).or_else(|| self.pairs.get(&(*mac, own)));
                        given.unwrap_or(&line.vlans)
                    }
                };
                Some((*mac, Route::spread(vlans.iter().copied(), self.spread)?))
            })
            .collect();
        let group = self.groups.get(&own).or(line.vlans.first()).map(|vlan| Route::single(*vlan));
        Ok(TaggingTable { destinations, group, receive: self.vlans.clone(), classes: self.classes.clone() })
    }

    /// The same as text that [`Config::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = String::from("# Espalier: which VLAN a host's frames take. One file for all hosts.\n");
        let _ = writeln!(text, "mode {}", self.mode.word());
        let _ = match self.spread {
            Spread::First => writeln!(text, "spread first"),
            Spread::Port => writeln!(text, "spread port"),
            Spread::Flow => writeln!(text, "spread flow"),
            Spread::Flowlet { gap_us } => writeln!(text, "spread flowlet {gap_us}us"),
            Spread::Placed => writeln!(text, "spread placed"),
        };
        if self.failover == Failover::None {
            text += "failover none\n";
        }
        if !self.vlans.is_empty() {
            let _ = writeln!(text, "vlans {}", self.vlans);
        }
        for line in self.classes.lines() {
            let _ = writeln!(text, "class {line}");
        }
        let words = |vlans: &[VlanId]| vlans.iter().map(VlanId::to_string).collect::<Vec<_>>().join(",");
        text += "# address VLANs priority switch\n";
        for (mac, line) in &self.hosts {
            let switch = line.switch.as_ref().map_or_else(String::new, |switch| format!(" {switch}"));
            let _ = writeln!(text, "{mac} {} {}{switch}", words(&line.vlans), line.priority);
        }
        for (mac, vlan) in &self.groups {
            let _ = writeln!(text, "group {mac} {vlan}");
        }
        for ((from, to), vlans) in &self.pairs {
            let _ = writeln!(text, "pair {from} {to} {}", words(vlans));
        }
        text
    }
}

struct Reader {
    file: String,
    mode: Option<Mode>,
    spread: Option<Spread>,
    failover: Option<Failover>,
    vlans: Option<VlanSet>,
    classes: Option<Classes>,
    hosts: BTreeMap<Mac, HostLine>,
    pairs: BTreeMap<(Mac, Mac), Vec<VlanId>>,
    /// With the line of each.
    groups: BTreeMap<Mac, (usize, VlanId)>,
    /// Where each host and pair stands.
    lines: BTreeMap<(Mac, Option<Mac>), usize>,
    problems: Vec<Problem>,
}

impl Reader {
    fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            mode: None,
            spread: None,
            failover: None,
            vlans: None,
            classes: None,
            hosts: BTreeMap::new(),
            pairs: BTreeMap::new(),
            groups: BTreeMap::new(),
            lines: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem { file: self.file.clone(), line, message: message.into() });
    }

    fn line(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        match words {
            [] => Ok(()),
            ["mode", word] => {
                let mode = Mode::ALL.into_iter().find(|mode| mode.word() == *word);
                let known = Mode::ALL.map(Mode::word).join(", ");
                let mode = mode.ok_or_else(|| format!("{} is no mode: use one of {known}", shown(word)))?;
                once(&mut self.mode, mode, "mode")
            }
            ["spread", words @ ..] => {
                let spread = spread(words)?;
                once(&mut self.spread, spread, "spread")
            }
            ["failover", word] => {
                let failover = match *word {
                    "any" => Failover::Any,
                    "none" => Failover::None,
                    word => return Err(format!("{} is no failover: write any or none", shown(word))),
                };
                once(&mut self.failover, failover, "failover")
            }
            ["vlans", set] => {
                let set: VlanSet = set.parse().map_err(|error| format!("{error}: write them as 2-5,10"))?;
                once(&mut self.vlans, set, "vlans")
            }
            ["class", "dscp"] => match self.classes.replace(Classes::Dscp) {
                None => Ok(()),
                Some(Classes::Dscp) => Err("class dscp is given twice: keep one".to_owned()),
                Some(Classes::Vlan(_)) => Err(CLASSES_TWICE.to_owned()),
            },
            ["class", class, set] => {
                let class = class.parse().ok().filter(|class| *class <= CLASS_MAX);
                let class = class.ok_or_else(|| {
                    format!("{} is no class: write a number from 0 to {CLASS_MAX}, or `class dscp`", shown(words[1]))
                })?;
                let set: VlanSet = set.parse().map_err(|error| format!("{error}: write them as 2-5,10"))?;
                let Classes::Vlan(classes) = self.classes.get_or_insert_default() else {
                    return Err(CLASSES_TWICE.to_owned());
                };
                match set.iter().find(|vlan| classes.insert(*vlan, class).is_some()) {
                    None => Ok(()),
                    Some(vlan) => Err(format!("VLAN {vlan} has a class already: keep one")),
                }
            }
            ["class", ..] => Err("a class is written as: class NUMBER VLANS, or class dscp".to_owned()),
            ["pair", from, to, vlans] => {
                let (from, to) = (station(from)?, station(to)?);
                if from == to {
                    return Err(format!("{from} needs no VLAN to itself"));
                }
                if self.pairs.len() >= PAIRS_MAX {
                    return Err(format!("more than {PAIRS_MAX} pairs: give hosts the plan itself (--plan)"));
                }
                let vlans = choices(vlans)?;
                self.lines.entry((from, Some(to))).or_insert(number);
                match self.pairs.insert((from, to), vlans) {
                    None => Ok(()),
                    Some(_) => Err(format!("the pair {from} {to} is given twice: keep one")),
                }
            }
            ["group", mac, vlan] => {
                let mac = station(mac)?;
                let vlan = vlan.parse().map_err(|error| format!("{error}: write one VLAN"))?;
                match self.groups.insert(mac, (number, vlan)) {
                    None => Ok(()),
                    Some(_) => Err(format!("the group VLAN of {mac} is given twice: keep one")),
                }
            }
            ["group", ..] => Err("where a host's broadcasts go is written as: group ADDRESS VLAN".to_owned()),
            ["pair", ..] => Err("a pair is written as: pair ADDRESS ADDRESS VLANS".to_owned()),
            ["mode" | "vlans" | "failover", ..] => Err(format!("{} takes one word", words[0])),
            [mac, vlans, priority, switch @ ..] if switch.len() < 2 && is_address(mac) => {
                let mac = station(mac)?;
                let vlans = choices(vlans)?;
                let priority = priority.parse().map_err(|_| {
                    format!("{} is no priority: write a number from 0 to {}", shown(priority), u32::MAX)
                })?;
                if self.hosts.len() >= DESTINATIONS_MAX {
                    return Err(format!("more than {DESTINATIONS_MAX} hosts"));
                }
                let switch = switch.first().map(|name| (*name).to_owned());
                if let Some(before) = self.lines.insert((mac, None), number) {
                    return Err(format!("{mac} is listed in line {before} already: keep one of them"));
                }
                self.hosts.insert(mac, HostLine { vlans, priority, switch });
                Ok(())
            }
            [mac, ..] if is_address(mac) => {
                Err("a host is written as: ADDRESS VLANS PRIORITY, and its switch if paths are watched".to_owned())
            }
            [word, ..] => Err(format!(
                "{} is neither an address nor one of mode, spread, failover, vlans, class, group, pair",
                shown(word)
            )),
        }
    }

    fn finish(mut self) -> Result<Config, ConfigError> {
        let mode = self.mode;
        if mode.is_none() && self.problems.is_empty() {
            self.problem(0, "no mode: add a line such as `mode source-destination`");
        }
        if self.hosts.is_empty() && self.problems.is_empty() {
            self.problem(0, "no hosts: add a line for each, such as `02:00:00:00:00:01 2 10`");
        }
        if mode.is_some_and(|mode| mode != Mode::Pair) {
            if let Some(((from, to), _)) = self.pairs.first_key_value() {
                let line = self.lines.get(&(*from, Some(*to))).copied().unwrap_or(0);
                self.problem(line, "pairs count in `mode pair` alone: change the mode, or drop the pairs");
            }
        }
        let in_pairs = (self.pairs.keys())
            .flat_map(|(from, to)| [(*from, (*from, *to)), (*to, (*from, *to))])
            .map(|(mac, (from, to))| (self.lines.get(&(from, Some(to))).copied().unwrap_or(0), mac));
        let in_groups = self.groups.iter().map(|(mac, (line, _))| (*line, *mac));
        let unlisted = in_pairs.chain(in_groups).filter(|(_, mac)| !self.hosts.contains_key(mac));
        let unlisted: Vec<(usize, Mac)> = unlisted.take(PROBLEMS_MAX).collect();
        for (line, mac) in unlisted {
            self.problem(line, format!("{mac} has no line of its own: add `{mac} VLANS PRIORITY`"));
        }
        let used: VlanSet = (self.hosts.values())
            .flat_map(|line| line.vlans.iter().copied())
            .chain(self.pairs.values().flatten().copied())
            .chain(self.groups.values().map(|(_, vlan)| *vlan))
            .collect();
        let vlans = self.vlans.take().unwrap_or_else(|| used.clone());
        let outside: BTreeSet<VlanId> = used.iter().filter(|vlan| !vlans.contains(*vlan)).collect();
        if let Some(vlan) = outside.first() {
            self.problem(0, format!("VLAN {vlan} is used but not among `vlans {vlans}`: add it there"));
        }
        let mut classes = self.classes.take().unwrap_or_default();
        if let Classes::Vlan(classes) = &mut classes {
            let stranger = classes.keys().find(|vlan| !vlans.contains(**vlan));
            if let Some(vlan) = stranger.filter(|_| self.problems.is_empty()) {
                self.problem(
                    0,
                    format!("VLAN {vlan} has a class but is not among VLANs {vlans}: add it there (`vlans`)"),
                );
            }
            classes.retain(|_, class| *class > 0);
        }
        match mode {
            Some(mode) if self.problems.is_empty() => Ok(Config {
                mode,
                spread: self.spread.unwrap_or(Spread::First),
                failover: self.failover.unwrap_or_default(),
                hosts: self.hosts,
                pairs: self.pairs,
                groups: self.groups.into_iter().map(|(mac, (_, vlan))| (mac, vlan)).collect(),
                vlans,
                classes,
            }),
            _ => {
                self.problems.sort_by_key(|problem| problem.line);
                self.problems.truncate(PROBLEMS_MAX);
                Err(ConfigError { problems: self.problems })
            }
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T, word: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{word} is given twice: keep one")),
    }
}

fn spread(words: &[&str]) -> Result<Spread, String> {
    match words {
        ["first"] => Ok(Spread::First),
        ["port"] => Ok(Spread::Port),
        ["flow"] => Ok(Spread::Flow),
        ["placed"] => Ok(Spread::Placed),
        ["flowlet"] => Ok(Spread::Flowlet { gap_us: GAP_US_DEFAULT }),
        ["flowlet", gap] => {
            let number = |text: &str, scale: u32| text.parse::<u32>().ok().and_then(|count| count.checked_mul(scale));
            let gap_us = match (gap.strip_suffix("us"), gap.strip_suffix("ms")) {
                (Some(count), _) => number(count, 1),
                (_, Some(count)) => number(count, 1000),
                _ => None,
            };
            let gap_us = gap_us.filter(|gap_us| GAP_US.contains(gap_us));
            let gap_us = gap_us.ok_or_else(|| format!("{} is no pause: write 10us to 1000ms", shown(gap)))?;
            Ok(Spread::Flowlet { gap_us })
        }
        _ => Err("spread is one of: first, port, flow, flowlet, flowlet 500us, placed".to_owned()),
    }
}

impl std::str::FromStr for Spread {
    type Err = String;

    /// Reads `first`, `port`, `flow`, `flowlet`, `flowlet=500us` or `placed`.
    fn from_str(text: &str) -> Result<Self, String> {
        spread(&text.split('=').collect::<Vec<_>>())
    }
}

fn is_address(word: &str) -> bool {
    word.contains(':')
}

fn station(word: &str) -> Result<Mac, String> {
    let mac: Mac = word.parse().map_err(|error| format!("{}: {error}", shown(word)))?;
    if mac.is_multicast() || mac.is_zero() {
        return Err(format!("{mac} is no station's address"));
    }
    Ok(mac)
}

fn choices(word: &str) -> Result<Vec<VlanId>, String> {
    let mut vlans = Vec::new();
    for part in word.split(',') {
        let vlan: VlanId = part.parse().map_err(|error| format!("{}: {error}", shown(word)))?;
        if vlans.contains(&vlan) {
            return Err(format!("VLAN {vlan} is given twice: keep one"));
        }
        vlans.push(vlan);
    }
    if vlans.len() > CHOICES_MAX {
        return Err(format!("{} VLANs for one host or pair, but at most {CHOICES_MAX} are spread over", vlans.len()));
    }
    Ok(vlans)
}

/// A word of the text, in quotes and not too long.
fn shown(word: &str) -> String {
    format!("{:?}", word.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "mode source-destination\nvlans 2-5\n# a comment\n02:00:00:00:00:01 2 8 sw1\n\
        02:00:00:00:00:02 3 7 sw1 # another\n02:00:00:00:00:03 4,5 7 sw2\n";

    fn vlan(id: u16) -> VlanId {
        VlanId::new(id).expect("in range")
    }

    #[test]
    fn both_ends_use_the_vlan_of_the_higher_priority() {
        let config = Config::parse("t", TEXT).expect("right");
        let [a, b, c] = [1, 2, 3].map(Mac::local);
        let to = |from: Mac, to: Mac| config.table(from).expect("listed").destinations[&to].choices()[0];
        assert_eq!((to(a, b), to(b, a)), (vlan(2), vlan(2)));
        assert_eq!((to(b, c), to(c, b)), (vlan(3), vlan(4)), "on a tie, the sender's own");
        let table = config.table(b).expect("listed");
        assert_eq!(table.group, Some(Route::single(vlan(3))), "toward strangers, the sender's own");
        assert_eq!(table.receive.to_string(), "2-5");
        assert_eq!(config.table(Mac::local(9)), Err(Mac::local(9)));
    }

    #[test]
    fn every_mode_makes_its_own_table() {
        let lines = "spread flow\n02:00:00:00:00:01 2 1\n02:00:00:00:00:02 3 2\n";
        let to = |mode: &str, extra: &str| {
            let config = Config::parse("t", &format!("mode {mode}\n{lines}{extra}")).expect("right");
            config.table(Mac::local(1)).expect("listed").destinations[&Mac::local(2)].clone()
        };
        let flow = |ids: &[u16]| Route::spread(ids.iter().map(|id| vlan(*id)), Spread::Flow).expect("some");
        assert_eq!(to("source", ""), flow(&[2]));
        assert_eq!(to("destination", ""), flow(&[3]));
        assert_eq!(to("source-destination", ""), flow(&[3]));
        assert_eq!(to("pair", "pair 02:00:00:00:00:02 02:00:00:00:00:01 4,2"), flow(&[4, 2]));
    }

    #[test]
    fn lanes_are_classes_of_vlans_or_frames_have_their_own() {
        let classes = |lines: &str| Config::parse("t", &format!("{TEXT}{lines}")).expect("right").classes;
        assert_eq!(classes(""), Classes::default());
        assert_eq!(classes("class dscp\n"), Classes::Dscp);
        let lanes = classes("class 1 4-5\nclass 0 2\nclass 3 3\n");
        assert_eq!(lanes, Classes::Vlan([(vlan(3), 3), (vlan(4), 1), (vlan(5), 1)].into()));
        assert_eq!([2, 4].map(|id| lanes.of(vlan(id))), [Some(0), Some(1)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let cases = [
            ("", "t: no mode: add a line such as `mode source-destination`"),
            ("mode fast\n", "t:1: \"fast\" is no mode: use one of source, destination, source-destination, pair"),
            ("mode source\n02:00:00:00:00:01 2\n", "t:2: a host is written as: ADDRESS VLANS PRIORITY"),
            ("mode source\n02:00:00:00:00:01 4095 1\n", "t:2: \"4095\": 4095 is not a VLAN id"),
            ("mode source\n03:00:00:00:00:01 2 1\n", "t:2: 03:00:00:00:00:01 is no station's address"),
            ("mode source\n02:00:00:00:00:01 2 x\n", "t:2: \"x\" is no priority"),
            (
                "mode source\n02:00:00:00:00:01 2 1\n02:00:00:00:00:01 3 1\n",
                "t:3: 02:00:00:00:00:01 is listed in line 2",
            ),
            ("mode source\nvlans 3\n02:00:00:00:00:01 2 1\n", "t: VLAN 2 is used but not among `vlans 3`"),
            ("mode source\nspread wide\n", "t:2: spread is one of: first, port, flow, flowlet, flowlet 500us, placed"),
            ("mode source\nspread flowlet 1us\n", "t:2: \"1us\" is no pause"),
            (
                "hosts\n",
                "t:1: \"hosts\" is neither an address nor one of mode, spread, failover, vlans, class, group, pair",
            ),
            ("mode source\nfailover some\n", "t:2: \"some\" is no failover: write any or none"),
            ("mode source\nclass 8 2\n", "t:2: \"8\" is no class: write a number from 0 to 7, or `class dscp`"),
            ("mode source\nclass 1\n", "t:2: a class is written as: class NUMBER VLANS, or class dscp"),
            ("mode source\nclass 1 2-3\nclass 2 3-4\n", "t:3: VLAN 3 has a class already: keep one"),
            ("mode source\nclass 1 2\nclass dscp\n", "t:3: classes are those of VLANs or those of DSCP: keep one"),
            ("mode source\n02:00:00:00:00:01 2 1\nclass 1 3\n", "t: VLAN 3 has a class but is not among VLANs 2"),
            (
                "mode pair\n02:00:00:00:00:01 2 1\npair 02:00:00:00:00:01 02:00:00:00:00:02 3\n",
                "t:3: 02:00:00:00:00:02 has",
            ),
            (
                "mode source\n02:00:00:00:00:01 2 1\n02:00:00:00:00:02 2 1\npair 02:00:00:00:00:01 02:00:00:00:00:02 2\n",
                "t:4: pairs",
            ),
        ];
        for (text, expect) in cases {
            let error = Config::parse("t", text).expect_err(text).to_string();
            assert!(error.starts_with(expect), "{text:?}\n  gave     {error}\n  expected {expect}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic_and_what_is_written_comes_back(
            text in "(mode (source|pair)|spread (flow|port)|failover (any|none)\n|[0-9a-f:]{0,17}|[ \n#,]|pair|vlans 2-9|class [0-8] [2-5]\n|class dscp\n|02:00:00:00:00:0[1-4] [2-5] [0-9]\n){0,40}"
        ) {
            if let Ok(config) = Config::parse("t", &text) {
                proptest::prop_assert_eq!(Config::parse("again", &config.text()), Ok(config));
            }
        }
    }
}
