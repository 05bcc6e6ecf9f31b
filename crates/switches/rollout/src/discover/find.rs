//! Which cables there are: what one end says, matched with what the other says.

use std::collections::{BTreeMap, BTreeSet};

use fabric::Mac;

use super::{Cabling, Doubt, Evidence, FoundHost, PortPosition};
use dialects::names::is_called;
use switch_model::station::{CHASSIS_MAC, LldpNeighbour, PORT_MAC, Station, StationPort};

/// Finds the cables.
///
/// Cost: O(neighbours · (switches + ports of one switch)).
pub fn cabling(stations: &[Station]) -> Cabling {
    let known = Known::of(stations);
    let mut cabling = Cabling::default();
    // sightings[(hearer)] = places heard
    let mut sightings: BTreeMap<PortPosition, BTreeSet<PortPosition>> = BTreeMap::new();
    let mut spoken: BTreeSet<PortPosition> = BTreeSet::new();
    let mut others: Vec<(PortPosition, &LldpNeighbour)> = Vec::new();
    for (at, station) in stations.iter().enumerate() {
        for heard in station.heard.iter().filter(|heard| heard.port < station.ports.len()) {
            let place = (at, heard.port);
            spoken.extend([place, logical(stations, place)]);
            match known.station(stations, at, heard) {
                Some(other) => match find_port(&stations[other], heard) {
                    Some(port) if (other, port) == place => cabling.doubts.push(Doubt::Itself { hears: place }),
                    Some(port) => {
                        sightings.entry(place).or_default().insert((other, port));
                    }
                    None => cabling.doubts.push(Doubt::UnknownPort {
                        hears: place,
                        switch: other,
                        port: if heard.description.is_empty() { heard.id.text() } else { heard.description.clone() },
                    }),
                },
                None => others.push((logical(stations, place), heard)),
            }
        }
        for unplaced in &station.unplaced {
            cabling.doubts.push(Doubt::Unplaced { switch: at, unplaced: unplaced.clone() });
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
    let ends = cabling.links.iter().flat_map(|(a, b)| [*a, *b]);
    let cabled: BTreeSet<PortPosition> = ends.flat_map(|end| [end, logical(stations, end)]).collect();
    add_hosts(&mut cabling, &others, &cabled);
    add_learned(&mut cabling, stations, &known, &spoken, &cabled);
    cabling
}

/// Where a host is that is heard at a port: at the LAG that the port is a member of, else at the port.
fn logical(stations: &[Station], (at, port): PortPosition) -> PortPosition {
    (at, stations[at].ports[port].lag.unwrap_or(port))
}

/// Neighbours that are none of the switches: hosts, switches that were not asked, and what is neither for sure.
fn add_hosts(cabling: &mut Cabling, others: &[(PortPosition, &LldpNeighbour)], cabled: &BTreeSet<PortPosition>) {
    let address = |heard: &LldpNeighbour| heard.id.mac(PORT_MAC).or_else(|| heard.chassis.mac(CHASSIS_MAC));
    // One address on several ports is no host's; a host with several ports has several addresses.
    let mut places: BTreeMap<Mac, BTreeSet<PortPosition>> = BTreeMap::new();
    for (place, heard) in others {
        if let Some(mac) = address(heard) {
            places.entry(mac).or_default().insert(*place);
        }
    }
    for &(place, heard) in others {
        let neighbour = if heard.system.is_empty() { heard.chassis.text() } else { heard.system.clone() };
        let several = address(heard).is_some_and(|mac| places[&mac].len() > 1);
        // A switch that speaks two protocols is heard twice on a port.
        if cabled.contains(&place) && (heard.capabilities.is_switch() || heard.chassis.mac(CHASSIS_MAC).is_none()) {
            continue;
        }
        if heard.capabilities.is_switch() || several {
            let (port, mac) = (heard.id.text(), address(heard));
            cabling.doubts.push(Doubt::Unasked { hears: place, neighbour, port, mac });
            continue;
        }
        let Some(mac) = address(heard) else {
            cabling.doubts.push(Doubt::NoAddress { hears: place, neighbour });
            continue;
        };
        let there = cabling.hosts.get(&place).map(|host| host.mac);
        if there.is_some() || cabled.contains(&place) {
            if there != Some(mac) {
                cabling.doubts.push(Doubt::SecondHost { hears: place, mac });
            }
            continue;
        }
        let name = Some(heard.system.clone()).filter(|name| !name.is_empty());
        cabling.hosts.insert(place, FoundHost { name, mac, evidence: Evidence::Lldp });
    }
}

/// Hosts that do not speak: the only address that was learned at a port.
fn add_learned(
    cabling: &mut Cabling,
    stations: &[Station],
    known: &Known,
    spoken: &BTreeSet<PortPosition>,
    cabled: &BTreeSet<PortPosition>,
) {
    let mut taken: BTreeMap<Mac, PortPosition> = cabling.hosts.iter().map(|(place, host)| (host.mac, *place)).collect();
    for (at, station) in stations.iter().enumerate() {
        let mut behind: BTreeMap<usize, Vec<Mac>> = BTreeMap::new();
        for &(mac, port) in &station.learned {
            behind.entry(port).or_default().push(mac);
        }
        for (port, macs) in behind {
            let place = (at, port);
            let ([mac], false, false) = (macs.as_slice(), spoken.contains(&place), cabled.contains(&place)) else {
                continue;
            };
            if mac.is_multicast() || mac.is_zero() || known.addresses.contains_key(mac) {
                continue;
            }
            match taken.get(mac) {
                Some(&other) => cabling.doubts.push(Doubt::SameHost { hears: place, other, mac: *mac }),
                None => {
                    taken.insert(*mac, place);
                    cabling.hosts.insert(place, FoundHost { name: None, mac: *mac, evidence: Evidence::Learned });
                }
            }
        }
    }
}

/// The switches by what neighbours call them.
struct Known {
    /// By chassis, bridge and port addresses; none for an address that several have.
    addresses: BTreeMap<Mac, Option<usize>>,
    /// By sysName; none for a name that several have.
    names: BTreeMap<String, Option<usize>>,
}

impl Known {
    fn of(stations: &[Station]) -> Self {
        let mut known = Self { addresses: BTreeMap::new(), names: BTreeMap::new() };
        for (at, station) in stations.iter().enumerate() {
            let chassis = station.chassis.as_ref().and_then(|chassis| chassis.mac(CHASSIS_MAC));
            let ports = station
                .ports
                .iter()
                .flat_map(|port| port.mac.into_iter().chain(port.id.as_ref().and_then(|id| id.mac(PORT_MAC))));
            for mac in chassis.into_iter().chain(station.address).chain(ports) {
                let owner = known.addresses.entry(mac).or_insert(Some(at));
                *owner = owner.filter(|owner| *owner == at);
            }
            if !station.system.is_empty() {
                known.names.entry(station.system.clone()).and_modify(|owner| *owner = None).or_insert(Some(at));
            }
        }
        known
    }

    /// The switch that one of them, `own`, hears. A name that is its own is another's too: names need not differ.
    fn station(&self, stations: &[Station], own: usize, heard: &LldpNeighbour) -> Option<usize> {
        let by_chassis = stations.iter().position(|station| station.chassis.as_ref() == Some(&heard.chassis));
        let by_address = || self.addresses.get(&heard.chassis.mac(CHASSIS_MAC)?).copied().flatten();
        let named = |name: &str| self.names.get(name).copied().flatten().filter(|at| *at != own);
        let by_name = || named(&heard.system);
        // Whoever speaks CDP is named NAME(SERIAL) among those who speak LLDP.
        let by_label = || {
            let text = heard.chassis.text();
            let name = text.split_once('(').map_or(text.as_str(), |(name, _)| name);
            let is_label = heard.system.is_empty() && heard.chassis.mac(CHASSIS_MAC).is_none();
            if is_label { named(name) } else { None }
        };
        by_chassis.or_else(by_address).or_else(by_name).or_else(by_label)
    }
}

/// The port of a switch that a neighbour's words name; none if they name none or several.
fn find_port(station: &Station, heard: &LldpNeighbour) -> Option<usize> {
    let only = |fits: &dyn Fn(&StationPort) -> bool| {
        let mut found = station.ports.iter().enumerate().filter(|(_, port)| fits(port));
        let first = found.next().map(|(at, _)| at);
        first.filter(|_| found.next().is_none())
    };
    let (text, description) = (heard.id.text(), heard.description.as_str());
    let mac = heard.id.mac(PORT_MAC);
    let named = |port: &StationPort, text: &str| {
        !text.is_empty() && (port.name == text || port.labels.iter().any(|label| label == text))
    };
    let of_port = |port: &StationPort| port.id.as_ref().and_then(|id| id.mac(PORT_MAC)).or(port.mac);
    only(&|port| port.id.as_ref() == Some(&heard.id))
        .or_else(|| only(&|port| mac.is_some() && of_port(port) == mac))
        .or_else(|| only(&|port| named(port, &text)))
        .or_else(|| only(&|port| named(port, description)))
        .or_else(|| only(&|port| is_called(port, &text)))
        .or_else(|| only(&|port| is_called(port, description)))
}
