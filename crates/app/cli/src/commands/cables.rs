//! Cables that were found, in sentences: what is doubtful, and what differs from those that should be.

use std::collections::BTreeSet;

use fabric::{PortId, Topology};
use rollout::discover::{Cabling, Doubt, Mismatch, PortPosition, compare};
use switch_model::station::{Station, Unplaced, Where};

/// What a port is called: its switch, and its name there.
pub(super) fn label(stations: &[Station], (station, port): PortPosition) -> String {
    format!("{}:{}", stations[station].name, stations[station].ports[port].name)
}

/// A doubt and what to look at, in a sentence.
pub(super) fn doubt_sentence(doubt: &Doubt, stations: &[Station]) -> String {
    match doubt {
        Doubt::OneWay { hears, deaf } => {
            let (hears, deaf) = (label(stations, *hears), label(stations, *deaf));
            format!(
                "{hears} hears {deaf}, but not the other way round; turn LLDP on there, or look at the cable: one direction may be dead"
            )
        }
        Doubt::UnknownPort { hears, switch, port } => format!(
            "{} hears {} at a port that it calls {port:?}, which is none of its names there",
            label(stations, *hears),
            stations[*switch].name
        ),
        Doubt::Crowd { hears, count } => {
            format!("{} hears {count} switches at once; is an unmanaged switch between them?", label(stations, *hears))
        }
        Doubt::Itself { hears } => {
            format!(
                "{} hears its own announcements; look for a loop or a loopback plug behind it",
                label(stations, *hears)
            )
        }
        Doubt::Unasked { hears, neighbour, port, .. } => format!(
            "{} hears {neighbour} (port {port}), a switch or router that was not asked; name its address to discover as well, or add it under hosts: if it is one",
            label(stations, *hears)
        ),
        Doubt::Unplaced { switch, unplaced: Unplaced { at, neighbour, port } } => {
            let station = &stations[*switch];
            let port = if port.is_empty() { String::new() } else { format!(" (port {port})") };
            let heard = format!("hears {neighbour}{port}");
            match at {
                Where::Interface(name) => format!(
                    "{}: interface {name} {heard}; it is no bridge port (a routed or management port, or a member of a LAG), so this cable is left out",
                    station.name
                ),
                Where::Either(one, other) => format!(
                    "{} or {} {heard}: the switch does not say which; pull that cable and see which port goes down",
                    label(stations, (*switch, *one)),
                    label(stations, (*switch, *other))
                ),
                Where::Unnamed(place) => format!(
                    "{} {heard}, which does not name itself and its port; see whether LLDP works there",
                    label(stations, (*switch, *place))
                ),
                Where::Nowhere => format!(
                    "{} {heard}, but does not say at which port (its index of lldpRemTable is too short); newer firmware may say it",
                    station.name
                ),
            }
        }
        Doubt::NoAddress { hears, neighbour } => format!(
            "{} hears {neighbour}, which tells no Ethernet address; if it is a host, add it under hosts: with its mac",
            label(stations, *hears)
        ),
        Doubt::SecondHost { hears, mac } => format!(
            "{} hears {mac} besides another neighbour; a host has a port of its own: is an unmanaged switch between them?",
            label(stations, *hears)
        ),
        Doubt::SameHost { hears, other, mac } => format!(
            "{}: address {mac} was learned there as well as at {}; it is taken for a host at the latter",
            label(stations, *hears),
            label(stations, *other)
        ),
    }
}

/// What is doubtful and what differs from the cables that should be, each with its remedy. A cable that one end hears is
/// not missing, and whoever did not answer says nothing about its cables.
pub(super) fn differences(expected: &Topology, stations: &[Station], cabling: &Cabling) -> Vec<String> {
    let port = |(station, port): PortPosition| {
        let station = &stations[station];
        let switch = expected.find_switch(&station.name)?;
        expected.find_port(switch, &station.ports[port].name)
    };
    let mut remarks: Vec<String> = cabling.doubts.iter().map(|doubt| doubt_sentence(doubt, stations)).collect();
    let mut found = Vec::new();
    for (a, b) in &cabling.links {
        match (port(*a), port(*b)) {
            (Some(a), Some(b)) => found.push((a, b)),
            _ => remarks.push(format!(
                "a cable between {} and {}, which the expected cabling does not know",
                label(stations, *a),
                label(stations, *b)
            )),
        }
    }
    let heard: BTreeSet<[PortId; 2]> = (cabling.doubts.iter())
        .filter_map(|doubt| match doubt {
            Doubt::OneWay { hears, deaf } => Some([port(*hears)?, port(*deaf)?]),
            _ => None,
        })
        .collect();
    let asked: BTreeSet<&str> = stations.iter().map(|station| station.name.as_str()).collect();
    let silent = |port: PortId| !asked.contains(expected.switch(expected.port(port).switch).name.as_str());
    let known = |mismatch: &Mismatch| match mismatch {
        Mismatch::Missing { ends: (a, b) } => {
            heard.contains(&[*a, *b]) || heard.contains(&[*b, *a]) || silent(*a) || silent(*b)
        }
        Mismatch::Swapped { .. } | Mismatch::Misplaced { .. } | Mismatch::Extra { .. } => false,
    };
    let mismatches = compare(expected, &found);
    remarks.extend(mismatches.iter().filter(|mismatch| !known(mismatch)).map(|mismatch| mismatch.sentence(expected)));
    remarks
}
