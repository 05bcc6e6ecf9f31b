//! A switch's ports by all their numbers and names, and the port that a name means.
//!
//! ```text
//!   dot1dBasePortIfIndex ─ bridge port, ifIndex ─ ifName, ifDescr, ifAlias ─▶ one name each, which finds it again
//! ```
//! A name is looked for in this order, and counts where one port alone fits: the port's own name; ifName, ifDescr, ifAlias; another
//! spelling of these ([`same_port`]); the numbers in it among ports for data, for models whose command line says `1/1` of what SNMP
//! calls `Port1`.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{LagNumber, Mac, is_port_name};

use super::PORTS_MAX;
use bridge_mib::{
    BridgePort,
    further::ieee,
    index::{ComponentPort, IfIndex, Two},
    objects::{bridge, if_mib, lag},
    quirks::{AGGREGATES, MANAGEMENT, VIRTUAL},
};
use dialects::{near_ports, same_port};
use snmp::{BulkSize, Column, Link, RowIndex, Session, SessionError, Value, walk};
use switch_model::printable::told;

/// A port by its numbers and names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortEntry {
    /// Its number in BRIDGE-MIB; the highest of all for a member of a LAG that the bridge does not know, only the LAG.
    pub bridge: BridgePort,
    /// ifIndex.
    pub interface: u32,
    /// What it is called here: no other port is, and a look-up by name finds it.
    pub name: String,
    /// ifName, ifDescr and ifAlias; empty where there is none.
    pub(crate) said: [String; 3],
    /// What it is for.
    pub kind: PortKind,
    /// Its own address.
    pub(crate) mac: Option<Mac>,
}

/// The number of no bridge port: there are fewer.
pub(super) const NO_BRIDGE_PORT: BridgePort = BridgePort(u32::MAX);

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    /// Data: an Ethernet port with a connector.
    Data,
    /// Data, but it is a member of a LAG.
    Member,
    /// Several ports as one.
    Aggregate,
    /// Management.
    Management,
    /// Nothing that a cable fits into.
    Virtual,
}

/// The ports of a switch, by bridge port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTable {
    /// Its ports, ascending by bridge port; behind them members of LAGs that are no bridge ports.
    pub ports: Vec<PortEntry>,
    /// Names of interfaces, those that are no bridge ports included, by ifIndex.
    pub(crate) interfaces: BTreeMap<u32, String>,
    /// Which LAG an interface is a member of, by ifIndex.
    pub(crate) lags: BTreeMap<u32, u32>,
}

/// Ethernet, by ifType: ethernetCsmacd, fastEther, fastEtherFX, gigabitEthernet.
const ETHERNET: [i32; 4] = [6, 62, 69, 117];
/// ifType of a LAG.
const LAG: i32 = 161;
/// Not a LAG's number: a port that is in none says so, or names itself.
const NO_LAG: u32 = 0;

/// A switch that is being read: tables, whatever the device makes of the question.
pub struct Reader<'a, L> {
    /// Speaks to it.
    pub session: &'a mut Session<L>,
    /// How many rows it answers at once, as far as is known.
    pub bulk: &'a mut BulkSize,
}

impl<L: Link> Reader<'_, L> {
    pub(crate) fn walk<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, SessionError> {
        walk(self.session, self.bulk, column)
    }

    /// A column that a switch may refuse to know.
    pub(crate) fn optional<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, SessionError> {
        match self.walk(column) {
            Err(SessionError::Refused { .. }) => Ok(Vec::new()),
            result => result,
        }
    }

    fn texts(&mut self, column: &Column) -> Result<BTreeMap<u32, String>, SessionError> {
        let rows = self.optional::<IfIndex>(column)?;
        let text = |value: &Value| Some(told(value.octets()?).trim().to_owned()).filter(|text| !text.is_empty());
        Ok(rows.into_iter().filter_map(|(index, value)| Some((index.0, text(&value)?))).collect())
    }

    pub(crate) fn numbers(&mut self, column: &Column) -> Result<BTreeMap<u32, i32>, SessionError> {
        let rows = self.optional::<IfIndex>(column)?;
        Ok(rows.into_iter().filter_map(|(index, value)| Some((index.0, value.int()?))).collect())
    }

    /// The bridge ports and their ifIndex, by RFC 4188 or, where there are none, by IEEE.
    pub(crate) fn bridge_ports(&mut self) -> Result<BTreeMap<BridgePort, u32>, SessionError> {
        let rows = self.walk::<BridgePort>(&bridge::PORT_IF_INDEX)?;
        let mut ports: BTreeMap<BridgePort, u32> =
            rows.into_iter().filter_map(|(port, value)| Some((port, value.unsigned()?))).collect();
        if ports.is_empty() {
            let rows = self.optional::<ComponentPort>(&ieee::PORT_IF_INDEX)?;
            ports.extend(rows.into_iter().filter_map(|(row, value)| Some((BridgePort(row.port), value.unsigned()?))));
        }
        if ports.len() > PORTS_MAX {
            return Err(SessionError::Nonsense(format!("it says that it has {} ports", ports.len())));
        }
        Ok(ports)
    }

    /// The whole table.
    pub fn ports(&mut self) -> Result<PortTable, SessionError> {
        let ports = self.bridge_ports()?;
        self.named(&ports)
    }

    /// The table of these bridge ports.
    pub(crate) fn named(&mut self, bridge_ports: &BTreeMap<BridgePort, u32>) -> Result<PortTable, SessionError> {
        let said = [self.texts(&if_mib::NAME)?, self.texts(&if_mib::DESCR)?, self.texts(&if_mib::ALIAS)?];
        let types = self.numbers(&if_mib::TYPE)?;
        let connectors = self.numbers(&if_mib::CONNECTOR_PRESENT)?;
        let lags = self.lags_by(&types)?;
        let macs: BTreeMap<u32, Mac> = (self.optional::<IfIndex>(&if_mib::PHYS_ADDRESS)?.into_iter())
            .filter_map(|(index, value)| Some((index.0, Mac::new(value.octets()?.try_into().ok()?))))
            .filter(|(_, mac)| !mac.is_zero() && !mac.is_multicast())
            .collect();
        // Another interface of that name which is no Ethernet: a bundle of radio links, or what lies over the port.
        let ethernet = |index: &u32| types.get(index).is_none_or(|kind| ETHERNET.contains(kind));
        let shared: BTreeSet<&String> =
            said[0].iter().filter(|(index, _)| !ethernet(index)).map(|(_, name)| name).collect();
        let bridged: BTreeSet<u32> = bridge_ports.values().copied().collect();
        let unbridged = lags.keys().filter(|member| !bridged.contains(member)).map(|member| (NO_BRIDGE_PORT, *member));
        let mut ports: Vec<PortEntry> = (bridge_ports.iter().map(|(bridge, interface)| (*bridge, *interface)))
            .chain(unbridged)
            .map(|(bridge, interface)| {
                let labels = [0, 1, 2].map(|rank: usize| said[rank].get(&interface).cloned().unwrap_or_default());
                let kind = match kind_of(&labels, types.get(&interface).copied(), connectors.get(&interface).copied()) {
                    PortKind::Data if lags.contains_key(&interface) => PortKind::Member,
                    PortKind::Data if shared.contains(&labels[0]) => PortKind::Virtual,
                    kind => kind,
                };
                let mac = macs.get(&interface).copied();
                PortEntry { bridge, interface, name: String::new(), said: labels, kind, mac }
            })
            .collect();
        name_all(&mut ports);
        let mut interfaces = said[1].clone();
        interfaces.extend(said[0].clone());
        Ok(PortTable { ports, interfaces, lags })
    }

    /// The LAG that each interface is a member of, by ifIndex, as the switch says now.
    pub(super) fn lags(&mut self) -> Result<BTreeMap<u32, u32>, SessionError> {
        let types = self.numbers(&if_mib::TYPE)?;
        self.lags_by(&types)
    }

    /// The LAG that each interface is a member of, by IEEE8023-LAG-MIB and by ifStackTable, which also knows those that are set up
    /// and hear no LACP.
    fn lags_by(&mut self, types: &BTreeMap<u32, i32>) -> Result<BTreeMap<u32, u32>, SessionError> {
        let attached = self.optional::<IfIndex>(&lag::ATTACHED_AGG)?.into_iter();
        let mut members: BTreeMap<u32, u32> = attached
            .filter_map(|(port, agg)| Some((port.0, agg.unsigned()?)))
            .filter(|(port, agg)| *agg != NO_LAG && agg != port)
            .collect();
        let stacked = self.optional::<Two>(&if_mib::STACK_STATUS)?.into_iter();
        members.extend(
            stacked
                .filter(|(Two(above, _), _)| types.get(above) == Some(&LAG))
                .map(|(Two(above, below), _)| (below, above)),
        );
        members.remove(&0);
        Ok(members)
    }
}

fn kind_of(said: &[String; 3], kind: Option<i32>, connector: Option<i32>) -> PortKind {
    const ABSENT: i32 = 2;
    let label = said[..2].iter().find(|label| !label.is_empty()).map_or("", String::as_str);
    let folded: String = label.chars().filter(|c| !" -_".contains(*c)).map(|c| c.to_ascii_lowercase()).collect();
    let letters = folded.trim_end_matches(|c: char| c.is_ascii_digit() || "/.:".contains(c));
    let is = |words: &[&str]| words.contains(&letters);
    let begins = |words: &[&str]| words.iter().any(|word| word.len() > 3 && folded.starts_with(word));
    if kind == Some(LAG) || is(AGGREGATES) || begins(AGGREGATES) {
        PortKind::Aggregate
    } else if is(MANAGEMENT) || begins(MANAGEMENT) || folded == "eth0" {
        PortKind::Management
    } else if is(VIRTUAL)
        || begins(VIRTUAL)
        || connector == Some(ABSENT)
        || kind.is_some_and(|kind| !ETHERNET.contains(&kind))
    {
        PortKind::Virtual
    } else {
        PortKind::Data
    }
}

/// Gives each port the first of ifName and ifDescr that no other interface has, or its number. Of two bridge ports of one interface
/// the first has its name.
fn name_all(ports: &mut [PortEntry]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for rank in [0, 1] {
        let mut bearers: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for port in ports.iter().filter(|port| port.name.is_empty()) {
            bearers.entry(port.said[rank].clone()).or_default().insert(port.interface);
        }
        // What is another interface's name in a column that counts more would find that one.
        for at in 0..ports.len() {
            let (label, own) = (ports[at].said[rank].clone(), ports[at].interface);
            let elsewhere = rank > 0 && ports.iter().any(|port| port.interface != own && port.said[0] == label);
            let only = ports[at].name.is_empty() && bearers[&label].len() == 1 && !elsewhere;
            if only && is_port_name(&label) && taken.insert(label.clone()) {
                ports[at].name = label;
            }
        }
    }
    for port in ports.iter_mut().filter(|port| port.name.is_empty()) {
        let mut name = format!("bridge port {}", port.bridge.0);
        while !taken.insert(name.clone()) {
            name.push('+');
        }
        port.name = name;
    }
}

/// Why a name means no port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPort {
    /// No port is called so; those that are called much like it.
    Unknown { near: Vec<String>, count: usize },
    /// Several are; what to call them.
    Several { names: Vec<String> },
}

impl NoPort {
    /// The fault in a sentence whose subject is the switch.
    pub(crate) fn sentence(&self, name: &str) -> String {
        match self {
            Self::Unknown { near, count: 0 } if near.is_empty() => {
                format!(
                    "it has no port named {name}; it names no bridge port at all: is BRIDGE-MIB (dot1dBasePortTable) open to this community or user?"
                )
            }
            Self::Unknown { near, count } if near.is_empty() => {
                format!("it has no port named {name}; discover lists the names of its {count} ports")
            }
            Self::Unknown { near, .. } => {
                format!("it has no port named {name}; names like it are {}", near.join(", "))
            }
            Self::Several { names } => format!(
                "its list of ports has more than one {name}; name the one that you mean as {} in the topology",
                names.join(" or ")
            ),
        }
    }
}

impl PortTable {
    /// The position of the port that a name means.
    ///
    /// Cost: O(ports · length of their names).
    ///
    /// # Errors
    /// [`NoPort`].
    pub(crate) fn find(&self, name: &str) -> Result<usize, NoPort> {
        if let Some(at) = self.ports.iter().position(|port| port.name == name) {
            return Ok(at);
        }
        let mut several = None;
        let mut only = |fits: &dyn Fn(&PortEntry) -> bool| -> Option<usize> {
            let found: Vec<usize> = (0..self.ports.len()).filter(|at| fits(&self.ports[*at])).collect();
            let (first, rest) = found.split_first()?;
            // Two bridge ports of one interface are one port.
            if rest.iter().all(|at| self.ports[*at].interface == self.ports[*first].interface) {
                return Some(*first);
            }
            let names = || found.iter().take(NAMED_MAX).map(|at| format!("{:?}", self.ports[*at].name)).collect();
            several.get_or_insert_with(names);
            None
        };
        let found = (0..3)
            .find_map(|rank| only(&|port| port.said[rank] == name))
            .or_else(|| {
                only(&|port| port.said[..2].iter().any(|label| !label.is_empty() && same_port(None, label, name)))
            })
            .or_else(|| only(&|port| port.kind == PortKind::Data && has_numbers(port, name)))
            .or_else(|| self.by_number(name))
            .or_else(|| self.lag(name));
        found.ok_or_else(|| match several {
            Some(names) => NoPort::Several { names },
            None => {
                let known: Vec<&str> = self.ports.iter().map(|port| port.name.as_str()).collect();
                NoPort::Unknown { near: near_ports(name, &known), count: known.len() }
            }
        })
    }

    /// The port that a bare number means, as model files have them, where each port for data is called by one word and a number:
    /// from 1, or from 0, of which the first is 1.
    fn by_number(&self, name: &str) -> Option<usize> {
        let wanted = match split(name)? {
            ("", numbers) => {
                let (last, units) = numbers.split_last()?;
                // Ports of the second unit of a stack are not those of the first.
                if units.iter().any(|unit| *unit > 1) {
                    return None;
                }
                *last
            }
            _ => return None,
        };
        let mut numbered: BTreeMap<u32, usize> = BTreeMap::new();
        let mut kind = None;
        for (at, port) in self.ports.iter().enumerate().filter(|(_, port)| port.kind == PortKind::Data) {
            let (word, numbers) = split(port.said[..2].iter().find(|label| !label.is_empty())?)?;
            let ([number], true) = (numbers.as_slice(), kind.is_none_or(|kind| kind == word)) else { return None };
            kind = Some(word);
            if numbered.insert(*number, at).is_some() {
                return None;
            }
        }
        let from_zero = numbered.contains_key(&0);
        let number = if from_zero { wanted.checked_sub(1)? } else { wanted };
        numbered.get(&number).copied()
    }

    /// The LAG that `lag3` means, whatever the switch calls it: `Po3`, `Trk3`, `ae3`.
    fn lag(&self, name: &str) -> Option<usize> {
        let number = u32::from(LagNumber::of_port(name)?.get());
        let is_called = |label: &String| split(label).is_some_and(|(_, numbers)| numbers == [number]);
        let is_lag = |port: &PortEntry| port.kind == PortKind::Aggregate && port.said[..2].iter().any(is_called);
        let mut found = (0..self.ports.len()).filter(|at| is_lag(&self.ports[*at]));
        found.next().filter(|_| found.next().is_none())
    }

    /// The port of a bridge port's number.
    pub(crate) fn by_bridge(&self, number: u32) -> Option<usize> {
        let at = self.ports.binary_search_by_key(&number, |port| port.bridge.0).ok();
        at.filter(|_| number != NO_BRIDGE_PORT.0)
    }

    /// The port of an interface.
    pub(crate) fn by_interface(&self, index: u32) -> Option<usize> {
        self.ports.iter().position(|port| port.interface == index)
    }

    /// The numbers of all bridge ports.
    pub fn numbers(&self) -> BTreeSet<u32> {
        self.ports
            .iter()
            .map(|port| port.bridge)
            .filter(|bridge| *bridge != NO_BRIDGE_PORT)
            .map(|bridge| bridge.0)
            .collect()
    }
}

/// Names of which an error about several tells.
const NAMED_MAX: usize = 4;

/// Whether a name is the bare numbers that stand at the end of the port's.
fn has_numbers(port: &PortEntry, name: &str) -> bool {
    let Some(("", wanted)) = split(name) else { return false };
    port.said[..2]
        .iter()
        .filter_map(|label| split(label))
        .any(|(word, numbers)| !word.is_empty() && numbers == wanted && wanted.len() > 1)
}

/// A word and the numbers behind it, with `/`, `:` or `.` between them; behind a colon and a space stands a remark.
fn split(label: &str) -> Option<(&str, Vec<u32>)> {
    let label = label.split_once(": ").map_or(label, |(label, _)| label);
    let at = label
        .rfind(|c: char| !(c.is_ascii_digit() || "/:.".contains(c)))
        .map_or(0, |at| at + label[at..].chars().next().map_or(0, char::len_utf8));
    let (word, numbers) = label.split_at(at);
    let numbers: Option<Vec<u32>> = numbers.split(['/', ':', '.']).map(|part| part.parse().ok()).collect();
    Some((word.trim_end(), numbers?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(labels: &[[&str; 3]]) -> PortTable {
        let mut ports: Vec<PortEntry> = (1..)
            .zip(labels)
            .map(|(number, said)| {
                let said = said.map(str::to_owned);
                let kind = kind_of(&said, Some(6), Some(1));
                PortEntry {
                    bridge: BridgePort(number),
                    interface: 100 + number,
                    name: String::new(),
                    said,
                    kind,
                    mac: None,
                }
            })
            .collect();
        name_all(&mut ports);
        PortTable { ports, ..PortTable::default() }
    }

    fn found(labels: &[[&str; 3]], name: &str) -> Option<usize> {
        table(labels).find(name).ok()
    }

    #[test]
    fn ports_are_found_by_every_name_that_they_have() {
        let labels =
            [["gi1", "GigabitEthernet1", "to sw7"], ["gi2", "GigabitEthernet2", ""], ["Po1", "Port-channel 1", ""]];
        for (name, at) in [
            ("gi1", 0),
            ("GigabitEthernet1", 0),
            ("to sw7", 0),
            ("GigabitEthernet2", 1),
            ("gigabitethernet 2", 1),
            ("po1", 2),
        ] {
            assert_eq!(found(&labels, name), Some(at), "{name}");
        }
        let error = table(&labels).find("gi4").expect_err("there is none").sentence("gi4");
        assert!(error.starts_with("it has no port named gi4; names like it are gi1"), "{error}");
    }

    #[test]
    fn names_of_models_find_their_ports() {
        let edge_core =
            [["Port1", "Ethernet Port on unit 1, port 1", ""], ["Port2", "Ethernet Port on unit 1, port 2", ""]];
        assert_eq!(
            (found(&edge_core, "1/1"), found(&edge_core, "1/2"), found(&edge_core, "2/1")),
            (Some(0), Some(1), None)
        );
        let zyxel = [["swp00", "swp00", ""], ["swp01", "swp01", ""], ["LAG1", "LAG1", ""]];
        assert_eq!((found(&zyxel, "1"), found(&zyxel, "2"), found(&zyxel, "3")), (Some(0), Some(1), None));
        let tp_link =
            [["port-channel 1", "", ""], ["gigabitEthernet 1/0/1", "", ""], ["gigabitEthernet 1/0/2", "", ""]];
        assert_eq!((found(&tp_link, "1/0/1"), found(&tp_link, "1/0/2")), (Some(1), Some(2)));
        // Two kinds of ports with one number: none is meant.
        let both = [["ge-0/0/1", "", ""], ["xe-0/0/1", "", ""]];
        assert_eq!((found(&both, "0/0/1"), found(&both, "1")), (None, None));
        assert!(matches!(table(&both).find("0/0/1"), Err(NoPort::Several { .. })));
        assert_eq!(found(&edge_core, "swp1"), None, "another word is another port");
    }

    #[test]
    fn ports_of_one_name_are_told_apart() {
        let labels =
            [["Xg2/0/2", "Xg2/0/2", "a"], ["Xg2/0/2", "Xg2/0/2", "b"], ["LAG", "lag 1", ""], ["LAG", "lag 2", ""]];
        let table = table(&labels);
        let names: Vec<&str> = table.ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(names, ["bridge port 1", "bridge port 2", "lag 1", "lag 2"]);
        let error = table.find("Xg2/0/2").expect_err("two are").sentence("Xg2/0/2");
        assert!(error.contains("\"bridge port 1\" or \"bridge port 2\""), "{error}");
    }

    #[test]
    fn two_bridge_ports_of_one_interface_are_one() {
        let mut table = table(&[["ether1", "", ""], ["ether1", "", ""]]);
        table.ports.iter_mut().for_each(|port| (port.interface, port.name) = (2, String::new()));
        name_all(&mut table.ports);
        let names: Vec<&str> = table.ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!((names, table.find("ether1")), (vec!["ether1", "bridge port 2"], Ok(0)));
    }

    #[test]
    fn ports_for_data_are_told_from_others() {
        for (name, kind, connector, is) in [
            ("gi1", 6, Some(1), PortKind::Data),
            ("GigabitEthernet1/0/1", 117, None, PortKind::Data),
            ("e1/0/23", 62, Some(1), PortKind::Data),
            ("Po8", 161, Some(2), PortKind::Aggregate),
            ("port-channel 1", 6, Some(1), PortKind::Aggregate),
            ("LAG8", 6, Some(1), PortKind::Aggregate),
            ("Bridge-Aggregation1", 6, Some(1), PortKind::Aggregate),
            ("Management1", 6, Some(1), PortKind::Management),
            ("Mg 0", 6, Some(1), PortKind::Management),
            ("fxp0", 6, None, PortKind::Management),
            ("eth0", 6, None, PortKind::Management),
            ("eth1", 6, None, PortKind::Data),
            ("Vlan10", 53, None, PortKind::Virtual),
            ("gi25", 6, Some(2), PortKind::Virtual),
            ("Port1", 6, Some(1), PortKind::Data),
        ] {
            let said = [name.to_owned(), String::new(), String::new()];
            assert_eq!(kind_of(&said, Some(kind), connector), is, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_port_has_a_name_of_its_own_that_finds_it(labels in prop::collection::vec(("[ -~\\x1b]{0,6}", "[ab1/ ]{0,4}", "[ab1]{0,3}"), 0..30)) {
            let labels: Vec<[&str; 3]> = labels.iter().map(|(a, b, c)| [a.trim(), b.trim(), c.as_str()]).collect();
            let table = table(&labels);
            for (at, port) in table.ports.iter().enumerate() {
                prop_assert!(is_port_name(&port.name), "{:?}", port.name);
                prop_assert_eq!(table.find(&port.name), Ok(at));
            }
        }
    }
}
