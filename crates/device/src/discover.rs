//! Cables from what switches say of their neighbours.
//!
//! ```text
//!   s1: "my p1 hears chassis S2, port p4"  ┐
//!   s2: "my p4 hears chassis S1, port p1"  ┴─▶ s1:p1 -- s2:p4    both ends agree
//!   s1: "my p3 hears chassis H, port <MAC>" ──▶ a host on s1:p3
//! ```
//! Each end names the other by a chassis and a port, in one of several notations: a MAC address, an interface's name, a
//! number, or free text. Whatever names a port of a known switch unambiguously counts. A cable that only one end reports
//! is told as such: the other end may have LLDP off, or one direction of the fibre may be dead. Where a port has no
//! neighbour that speaks, the addresses learned there tell which host is likely behind it.
//! Source: IEEE 802.1AB-2005, 9.5.2 and 9.5.3 (chassis and port identifiers).

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Attachment, Mac, PortId, Topology};

/// A name in one of LLDP's notations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LldpId {
    /// Which notation: the subtype of a chassis or port identifier.
    pub subtype: i32,
    /// The name in it.
    pub octets: Vec<u8>,
}

/// Subtype of a chassis identifier that is a MAC address.
pub const CHASSIS_MAC: i32 = 4;
/// Subtype of a port identifier that is a MAC address.
pub const PORT_MAC: i32 = 3;

impl LldpId {
    /// The address, if the name is one.
    fn mac(&self, subtype: i32) -> Option<Mac> {
        let octets: [u8; 6] = self.octets.as_slice().try_into().ok()?;
        (self.subtype == subtype).then(|| Mac::new(octets))
    }

    fn text(&self) -> String {
        crate::text::told(&self.octets)
    }
}

/// What one switch says of itself and of its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// What it is called here.
    pub name: String,
    /// How it names its chassis.
    pub chassis: Option<LldpId>,
    /// Its sysName.
    pub system: String,
    /// Its ports.
    pub ports: Vec<StationPort>,
    /// Neighbours that it hears.
    pub heard: Vec<Heard>,
    /// Addresses that it has learned, and on which port.
    pub learned: Vec<(Mac, usize)>,
}

/// A port of a switch, by all its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationPort {
    /// What it is called here.
    pub name: String,
    /// How LLDP names it.
    pub id: Option<LldpId>,
    /// Other names: its description, its alias.
    pub labels: Vec<String>,
    /// Its own address.
    pub mac: Option<Mac>,
}

/// A neighbour that a switch hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The position of the port in [`Station::ports`].
    pub port: usize,
    /// The neighbour's chassis.
    pub chassis: LldpId,
    /// The neighbour's port.
    pub id: LldpId,
    /// The neighbour's description of its port.
    pub description: String,
    /// The neighbour's sysName.
    pub system: String,
}

/// A port: the position of its switch, and its position there.
pub type Place = (usize, usize);

/// Cables and hosts, and what is doubtful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cabling {
    /// Cables that both ends report, the lower place first, ascending.
    pub links: Vec<(Place, Place)>,
    /// Hosts, by place.
    pub hosts: BTreeMap<Place, FoundHost>,
    /// What is doubtful.
    pub doubts: Vec<Doubt>,
}

/// A host behind a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHost {
    /// Its name, if it told one.
    pub name: Option<String>,
    /// Its address.
    pub mac: Mac,
    /// How it is known.
    pub evidence: Evidence,
}

/// How something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It said so itself.
    Lldp,
    /// The switch has learned its address there, and nobody else's.
    Learned,
}

/// What is doubtful about a cabling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// One end hears the other, but not the other way round.
    OneWay {
        /// Who hears.
        hears: Place,
        /// Who does not.
        deaf: Place,
    },
    /// The neighbour is a known switch, but its port is not to be found there.
    UnknownPort {
        /// Who hears it.
        hears: Place,
        /// The switch that is heard.
        switch: usize,
        /// What it calls its port.
        port: String,
    },
    /// More than one switch is heard on a port: there is a hub or an unmanaged switch between.
    Crowd {
        /// Where.
        hears: Place,
        /// How many are heard.
        count: usize,
    },
}

/// Finds the cables.
pub fn cabling(stations: &[Station]) -> Cabling {
    let mut cabling = Cabling::default();
    // sightings[(hearer)] = places heard
    let mut sightings: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
    let mut spoken: BTreeSet<Place> = BTreeSet::new();
    for (at, station) in stations.iter().enumerate() {
        for heard in station.heard.iter().filter(|heard| heard.port < station.ports.len()) {
            let place = (at, heard.port);
            spoken.insert(place);
            match find_station(stations, heard) {
                Some(other) => match find_port(&stations[other], heard) {
                    Some(port) => {
                        sightings.entry(place).or_default().insert((other, port));
                    }
                    None => cabling.doubts.push(Doubt::UnknownPort {
                        hears: place,
                        switch: other,
                        port: if heard.description.is_empty() { heard.id.text() } else { heard.description.clone() },
                    }),
                },
                None => {
                    if let Some(mac) = heard.id.mac(PORT_MAC).or_else(|| heard.chassis.mac(CHASSIS_MAC)) {
                        let name = Some(heard.system.clone()).filter(|name| !name.is_empty());
                        cabling.hosts.entry(place).or_insert(FoundHost { name, mac, evidence: Evidence::Lldp });
                    }
                }
            }
        }
    }
    for (&place, heard) in &sightings {
        if heard.len() > 1 {
            cabling.doubts.push(Doubt::Crowd { hears: place, count: heard.len() });
            continue;
        }
        for &other in heard {
            let mutual = sightings.get(&other).is_some_and(|back| back.contains(&place));
            if !mutual {
                cabling.doubts.push(Doubt::OneWay { hears: place, deaf: other });
            } else if place < other {
                cabling.links.push((place, other));
            }
        }
    }
    let cabled: BTreeSet<Place> = cabling.links.iter().flat_map(|(a, b)| [*a, *b]).collect();
    for (at, station) in stations.iter().enumerate() {
        let mut behind: BTreeMap<usize, Vec<Mac>> = BTreeMap::new();
        for &(mac, port) in &station.learned {
            behind.entry(port).or_default().push(mac);
        }
        for (port, macs) in behind {
            let place = (at, port);
            if let ([mac], false, false) = (macs.as_slice(), spoken.contains(&place), cabled.contains(&place)) {
                cabling.hosts.entry(place).or_insert(FoundHost { name: None, mac: *mac, evidence: Evidence::Learned });
            }
        }
    }
    cabling
}

fn find_station(stations: &[Station], heard: &Heard) -> Option<usize> {
    let by_chassis = stations.iter().position(|station| station.chassis.as_ref() == Some(&heard.chassis));
    by_chassis.or_else(|| {
        let mut named = stations
            .iter()
            .enumerate()
            .filter(|(_, station)| !heard.system.is_empty() && station.system == heard.system);
        let first = named.next().map(|(at, _)| at);
        first.filter(|_| named.next().is_none())
    })
}

/// The port of a switch that a neighbour's words name; none if they name none or several.
fn find_port(station: &Station, heard: &Heard) -> Option<usize> {
    let only = |fits: &dyn Fn(&StationPort) -> bool| {
        let mut found = station.ports.iter().enumerate().filter(|(_, port)| fits(port));
        let first = found.next().map(|(at, _)| at);
        first.filter(|_| found.next().is_none())
    };
    let (text, description) = (heard.id.text(), heard.description.as_str());
    let named = |port: &StationPort, text: &str| {
        !text.is_empty() && (port.name == text || port.labels.iter().any(|label| label == text))
    };
    only(&|port| port.id.as_ref() == Some(&heard.id))
        .or_else(|| only(&|port| heard.id.mac(PORT_MAC).is_some_and(|mac| port.mac == Some(mac))))
        .or_else(|| only(&|port| named(port, &text)))
        .or_else(|| only(&|port| named(port, description)))
}

/// How a cabling differs from the one that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Two cables are in each other's holes.
    Swapped {
        /// A plug that is in the wrong hole, and the hole where it belongs.
        plug: (PortId, PortId),
        /// The cables as they should be.
        links: [(PortId, PortId); 2],
    },
    /// A cable is in another hole at one end.
    Misplaced {
        /// The end that is right.
        from: PortId,
        /// Where the other end should be.
        expected: PortId,
        /// Where it is.
        found: PortId,
    },
    /// A cable that should be there is not.
    Missing {
        /// Its ends.
        ends: (PortId, PortId),
    },
    /// A cable is there that should not be.
    Extra {
        /// Its ends.
        ends: (PortId, PortId),
    },
}

/// Compares the cables that were found, as pairs of ports of the topology, with those that the topology has.
pub fn compare(topology: &Topology, found: &[(PortId, PortId)]) -> Vec<Mismatch> {
    let mut at: BTreeMap<PortId, PortId> = BTreeMap::new();
    for &(a, b) in found {
        at.insert(a, b);
        at.insert(b, a);
    }
    let expected_of = |port: PortId| match topology.port(port).attachment {
        Attachment::Link(link) => {
            let link = topology.link(link);
            Some(if link.a == port { link.b } else { link.a })
        }
        Attachment::Host(_) | Attachment::Nothing => None,
    };
    let mut mismatches = Vec::new();
    let mut explained: BTreeSet<PortId> = BTreeSet::new();
    for link in topology.links() {
        let (a, b) = (link.a, link.b);
        if at.get(&a) == Some(&b) || explained.contains(&a) || explained.contains(&b) {
            continue;
        }
        match (at.get(&a).copied(), at.get(&b).copied()) {
            // a leads to d and b to c, where c and d belong together: swap the plugs in b and d.
            (Some(d), Some(c)) if expected_of(c) == Some(d) => {
                mismatches.push(Mismatch::Swapped { plug: (d, b), links: [(a, b), (c, d)] });
                explained.extend([a, b, c, d]);
            }
            (Some(found), None) => {
                mismatches.push(Mismatch::Misplaced { from: a, expected: b, found });
                explained.extend([a, b, found]);
            }
            (None, Some(found)) => {
                mismatches.push(Mismatch::Misplaced { from: b, expected: a, found });
                explained.extend([a, b, found]);
            }
            _ => {
                mismatches.push(Mismatch::Missing { ends: (a, b) });
                explained.extend([a, b]);
            }
        }
    }
    for &(a, b) in found {
        if expected_of(a) != Some(b) && !explained.contains(&a) && !explained.contains(&b) {
            mismatches.push(Mismatch::Extra { ends: (a, b) });
        }
    }
    mismatches
}

impl Mismatch {
    /// The mismatch and its remedy, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        let name = |port: PortId| topology.port_label(port);
        match self {
            Self::Swapped { plug: (found, expected), links: [(a, b), (c, d)] } => format!(
                "two cables are swapped: {} should lead to {} and {} to {}; exchange the plugs in {} and {}",
                name(*a),
                name(*b),
                name(*c),
                name(*d),
                name(*found),
                name(*expected)
            ),
            Self::Misplaced { from, expected, found } => {
                format!("the cable from {} is in {}; move that plug to {}", name(*from), name(*found), name(*expected))
            }
            Self::Missing { ends: (a, b) } => {
                format!("no cable between {} and {}; plug one in, or see whether it is dead", name(*a), name(*b))
            }
            Self::Extra { ends: (a, b) } => {
                format!(
                    "a cable between {} and {} that no plan knows; pull it, or plan again with it",
                    name(*a),
                    name(*b)
                )
            }
        }
    }
}
