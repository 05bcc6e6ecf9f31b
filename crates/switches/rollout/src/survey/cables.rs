//! Cables of the topology as their ends hear each other.
//!
//! What a port hears that is not up was heard before its cable was pulled, and counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Attachment, HostId, LinkId, Mac, PortId, SwitchId, Topology};

use super::{Misfit, Neighbour, Note};
use crate::discover::{Cabling, Doubt, Evidence, Mismatch, PortPosition, cabling, compare};
use switch_model::{
    identity::{Identity, Likeness},
    sight::{PortState, SurveyReply},
    station::{CHASSIS_MAC, LldpId, Station, StationPort},
};

/// Why nobody can see a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// This end is administratively down.
    Shut(PortId),
    /// This end is down.
    Down(PortId),
    /// More than one switch is heard at this end.
    Crowd(PortId, usize),
    /// This end hears the right switch, at a port that it calls so.
    UnknownPort(PortId, String),
    /// This end hears the other one, which does not hear it.
    OneWay(PortId),
    /// Nobody knows whom this switch hears, since it is not read by SNMP.
    NotRead(SwitchId),
    /// Neither end hears anything.
    NoLldp,
}

/// What is known of a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CableState {
    /// Both ends report it, and it carries.
    Confirmed,
    /// Nobody can see it.
    Unconfirmed(Unconfirmed),
    /// It is elsewhere.
    Elsewhere(Misfit),
}

/// What the cables of a topology are.
#[derive(Debug, Default)]
pub(super) struct Cables {
    pub(super) confirmed: BTreeSet<LinkId>,
    pub(super) unconfirmed: BTreeMap<LinkId, Unconfirmed>,
    pub(super) misfits: Vec<Misfit>,
    pub(super) notes: Vec<Note>,
    /// Pairs of ports of which one hears the other.
    pub(super) sightings: Vec<(PortId, PortId)>,
    /// Hosts, and the ports where they were found.
    pub(super) hosts: Vec<(PortId, HostId)>,
}

/// Looks at some cables again: what is known of each now, in the order of `links`. Pure, and cheap enough to be asked before
/// every group of ports that is opened. `replies[switch]` as for [`survey`](super::survey).
///
/// # Panics
/// If there is not one reply a switch, or one state a port.
pub fn recheck(topology: &Topology, replies: &[Option<SurveyReply>], links: &[LinkId]) -> Vec<(LinkId, CableState)> {
    let belongs: Vec<SwitchId> = topology.switch_ids().collect();
    let cables = Cables::of(topology, replies, &belongs);
    let state = |link: LinkId| {
        let elsewhere = || cables.misfits.iter().find(|misfit| concerns(topology, misfit, link)).cloned();
        if cables.confirmed.contains(&link) {
            CableState::Confirmed
        } else if let Some(why) = cables.unconfirmed.get(&link) {
            CableState::Unconfirmed(why.clone())
        } else {
            elsewhere().map_or(CableState::Unconfirmed(Unconfirmed::NoLldp), CableState::Elsewhere)
        }
    };
    links.iter().map(|&link| (link, state(link))).collect()
}

/// Whether a misfit is about a cable.
fn concerns(topology: &Topology, misfit: &Misfit, link: LinkId) -> bool {
    let ends = [topology.link(link).a, topology.link(link).b];
    match misfit {
        Misfit::Cable(mismatch) => ports_of(mismatch).iter().any(|port| ends.contains(port)),
        Misfit::Elsewhere { port, .. } | Misfit::PatchCord { port, .. } => ends.contains(port),
        Misfit::Exchanged { .. } | Misfit::OtherSwitch { .. } | Misfit::OneDevice { .. } => false,
    }
}

/// Every port that a mismatch names.
fn ports_of(mismatch: &Mismatch) -> Vec<PortId> {
    match mismatch {
        Mismatch::Swapped { links: [(a, b), (c, d)], .. } => vec![*a, *b, *c, *d],
        Mismatch::Misplaced { from, expected, found } => vec![*from, *expected, *found],
        Mismatch::Missing { ends: (a, b) } | Mismatch::Extra { ends: (a, b) } => vec![*a, *b],
    }
}

/// What the switches say, with their ports as the topology's.
struct Sights<'a> {
    topology: &'a Topology,
    stations: &'a [Station],
    /// Ports of cables that both ends report.
    joined: BTreeSet<PortId>,
    /// Switches that say who they are by LLDP.
    speakers: BTreeSet<SwitchId>,
}

impl Sights<'_> {
    /// The topology's port at a place, which for a member of a LAG is the LAG; none if it does not name it.
    fn port(&self, (switch, at): PortPosition) -> Option<PortId> {
        let port = self.topology.find_port(SwitchId::new(switch), &self.stations[switch].ports[at].name)?;
        Some(self.topology.logical_port(port))
    }
}

impl Cables {
    /// Compares what is heard with the topology, if the switch at the address of each is `belongs[switch]`.
    pub(super) fn of(topology: &Topology, replies: &[Option<SurveyReply>], belongs: &[SwitchId]) -> Self {
        let stations = stations(topology, replies, belongs);
        let states = states(topology, replies, belongs);
        let found = cabling(&stations);
        let speakers = belongs.iter().zip(replies).filter_map(|(switch, reply)| {
            reply.as_ref().is_some_and(|reply| reply.station.chassis.is_some()).then_some(*switch)
        });
        let mut sights =
            Sights { topology, stations: &stations, joined: BTreeSet::new(), speakers: speakers.collect() };
        let mut cables = Self::default();
        let mut mutual: Vec<(PortId, PortId)> = Vec::new();
        for (a, b) in &found.links {
            match (sights.port(*a), sights.port(*b)) {
                (Some(a), Some(b)) => mutual.push((a, b)),
                (Some(near), None) => cables.hears(topology, near, unnamed(&stations, *b)),
                (None, Some(near)) => cables.hears(topology, near, unnamed(&stations, *a)),
                // Between ports that the plan is not about.
                (None, None) => {}
            }
        }
        let mut doubts: BTreeMap<PortId, Unconfirmed> = BTreeMap::new();
        sights.joined = mutual.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let mut one_way: Vec<(PortId, PortId)> = Vec::new();
        for doubt in &found.doubts {
            cables.doubt(&sights, doubt, &mut one_way, &mut doubts);
        }
        cables.unplanned(&sights, &found, &mut doubts);
        cables.sightings = mutual.iter().chain(&one_way).copied().collect();
        let patched =
            |(a, b): &(PortId, PortId)| other_end(topology, *a).is_none() || other_end(topology, *b).is_none();
        cables.compare(topology, &mutual);
        for pair in mutual.iter().filter(|pair| patched(pair)) {
            cables.patched(topology, *pair);
        }
        let read = |switch: SwitchId| {
            belongs.iter().position(|other| *other == switch).is_some_and(|at| replies[at].is_some())
        };
        let fits: BTreeSet<(PortId, PortId)> = mutual.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        for link in topology.link_ids() {
            let ends = [topology.link(link).a, topology.link(link).b];
            if cables.misfits.iter().any(|misfit| concerns(topology, misfit, link)) {
                continue;
            }
            let state = |wanted: PortState| ends.into_iter().find(|end| states.get(end) == Some(&wanted));
            let why = (state(PortState::Shut).map(Unconfirmed::Shut))
                .or_else(|| state(PortState::Down).map(Unconfirmed::Down))
                .or_else(|| ends.iter().find_map(|end| doubts.get(end).cloned()));
            let why = match why {
                None if fits.contains(&(ends[0], ends[1])) => {
                    cables.confirmed.insert(link);
                    continue;
                }
                None | Some(Unconfirmed::OneWay(_)) => {
                    let unread = ends.map(|end| topology.port(end).switch).into_iter().find(|switch| !read(*switch));
                    unread.map(Unconfirmed::NotRead).or(why).unwrap_or(Unconfirmed::NoLldp)
                }
                Some(why) => why,
            };
            cables.unconfirmed.insert(link, why);
        }
        cables
    }

    /// A port hears something that is no port of the topology.
    fn hears(&mut self, topology: &Topology, port: PortId, heard: Neighbour) {
        match topology.port(port).attachment {
            Attachment::Link(_) => {
                let expected = other_end(topology, port).expect("a link has another end");
                self.misfits.push(Misfit::Elsewhere { port, expected, heard });
            }
            Attachment::Host(_) => self.misfits.push(Misfit::PatchCord { port, heard }),
            Attachment::Nothing if topology.in_band().is_some_and(|in_band| in_band.controller == port) => {
                self.misfits.push(Misfit::PatchCord { port, heard });
            }
            // The plan shuts it, or it stands for its LAG.
            Attachment::Nothing | Attachment::Member(_) => {}
        }
    }

    fn doubt(
        &mut self,
        sights: &Sights<'_>,
        doubt: &Doubt,
        one_way: &mut Vec<(PortId, PortId)>,
        doubts: &mut BTreeMap<PortId, Unconfirmed>,
    ) {
        let topology = sights.topology;
        match doubt {
            Doubt::OneWay { hears, deaf } => {
                let Some(near) = sights.port(*hears) else { return };
                match sights.port(*deaf) {
                    Some(far) if other_end(topology, near) == Some(far) => {
                        one_way.push((near, far));
                        doubts.insert(near, Unconfirmed::OneWay(near));
                    }
                    Some(far) => {
                        if !sights.joined.contains(&far) {
                            one_way.push((near, far));
                        }
                        self.hears(topology, near, Neighbour::Port(far));
                        // The far end is no host's, whoever is deaf.
                        if !matches!(topology.port(far).attachment, Attachment::Link(_)) {
                            self.hears(topology, far, Neighbour::Port(near));
                        }
                    }
                    None => self.hears(topology, near, unnamed(sights.stations, *deaf)),
                }
            }
            Doubt::UnknownPort { hears, switch, port: named } => {
                let Some(near) = sights.port(*hears) else { return };
                let meant = other_end(topology, near).map(|far| topology.port(far).switch);
                if meant == Some(SwitchId::new(*switch)) {
                    doubts.insert(near, Unconfirmed::UnknownPort(near, named.clone()));
                } else {
                    self.hears(topology, near, Neighbour::Switch(SwitchId::new(*switch), named.clone()));
                }
            }
            Doubt::Crowd { hears, count } => {
                let Some(near) = sights.port(*hears) else { return };
                if other_end(topology, near).is_some() {
                    doubts.insert(near, Unconfirmed::Crowd(near, *count));
                } else {
                    self.hears(topology, near, Neighbour::Other(format!("{count} switches at once")));
                }
            }
            Doubt::SecondHost { hears, .. } | Doubt::Itself { hears } => {
                let Some(near) = sights.port(*hears).filter(|near| other_end(topology, *near).is_some()) else {
                    return;
                };
                doubts.insert(near, Unconfirmed::Crowd(near, 2));
            }
            // `unplanned` tells of them.
            Doubt::Unasked { .. } | Doubt::NoAddress { .. } => {}
            // No port of the topology is known to hear it, or no neighbour to be there.
            Doubt::Unplaced { .. } | Doubt::SameHost { .. } => {}
        }
    }

    /// Neighbours that are no switch of the topology: its hosts, perhaps elsewhere, and things at ports for cables.
    fn unplanned(&mut self, sights: &Sights<'_>, found: &Cabling, doubts: &mut BTreeMap<PortId, Unconfirmed>) {
        let topology = sights.topology;
        let hosts = topology.hosts_by_mac();
        let spoken = found.hosts.iter().filter(|(_, host)| host.evidence == Evidence::Lldp);
        let spoken = spoken.map(|(place, host)| (*place, Some(host.mac), host.name.clone()));
        let others = found.doubts.iter().filter_map(|doubt| match doubt {
            Doubt::Unasked { hears, neighbour, mac, .. } => Some((*hears, *mac, Some(neighbour.clone()))),
            Doubt::NoAddress { hears, neighbour } => Some((*hears, None, Some(neighbour.clone()))),
            _ => None,
        });
        for (place, mac, name) in spoken.chain(others) {
            let Some(at) = sights.port(place) else { continue };
            let known = mac.and_then(|mac| hosts.get(&mac).copied());
            if let Some(known) = known {
                self.hosts.push((at, known));
            }
            match (topology.port(at).attachment, known) {
                (Attachment::Link(_), _) if sights.joined.contains(&at) => {
                    doubts.insert(at, Unconfirmed::Crowd(at, 2));
                }
                (Attachment::Link(_), known) => {
                    let far = other_end(topology, at).map(|far| topology.port(far).switch);
                    if let Some(far) = far.filter(|far| known.is_none() && !sights.speakers.contains(far)) {
                        doubts.insert(at, Unconfirmed::NotRead(far));
                        continue;
                    }
                    let named = known.map(|known| topology.host(known).name.clone()).or(name);
                    let text = match (named, mac) {
                        (Some(name), Some(mac)) => format!("{name} ({mac})"),
                        (Some(name), None) => name,
                        (None, mac) => mac.map_or_else(|| "somebody without a name".to_owned(), |mac| mac.to_string()),
                    };
                    self.hears(topology, at, Neighbour::Other(text));
                }
                (_, Some(known)) if topology.host(known).port != at => {
                    self.notes.push(Note::HostElsewhere { host: known, found: at });
                }
                _ => {}
            }
        }
    }

    /// A cable that both ends report, of which one end has no cable in the plan.
    fn patched(&mut self, topology: &Topology, (a, b): (PortId, PortId)) {
        let free = |port: PortId| topology.is_free(port);
        if free(a) && free(b) {
            self.notes.push(Note::Spare { ends: (a, b) });
            return;
        }
        let told = |port: &PortId| {
            let of = |misfit: &Misfit| matches!(misfit, Misfit::Cable(mismatch) if ports_of(mismatch).contains(port));
            self.misfits.iter().any(of)
        };
        let ends: Vec<(PortId, PortId)> = [(a, b), (b, a)].into_iter().filter(|(near, _)| !told(near)).collect();
        for (near, far) in ends {
            if !free(near) && other_end(topology, near).is_none() {
                self.misfits.push(Misfit::PatchCord { port: near, heard: Neighbour::Port(far) });
            }
        }
    }

    /// Cables that are in other ports than the topology's.
    fn compare(&mut self, topology: &Topology, mutual: &[(PortId, PortId)]) {
        for mismatch in compare(topology, mutual) {
            match &mismatch {
                // Nobody sees it, here or elsewhere.
                Mismatch::Missing { ends: (a, b) } => {
                    for (x, y) in mutual.iter().flat_map(|(x, y)| [(x, y), (y, x)]) {
                        if [a, b].contains(&x) {
                            self.hears(topology, *x, Neighbour::Port(*y));
                        }
                    }
                }
                // Told of already, as a patch cord or a spare one.
                Mismatch::Extra { ends: (a, b) }
                    if other_end(topology, *a).is_none() || other_end(topology, *b).is_none() => {}
                Mismatch::Extra { .. } | Mismatch::Swapped { .. } | Mismatch::Misplaced { .. } => {
                    self.misfits.push(Misfit::Cable(mismatch));
                }
            }
        }
    }
}

/// A port that the topology does not name.
fn unnamed(stations: &[Station], (switch, port): PortPosition) -> Neighbour {
    Neighbour::Switch(SwitchId::new(switch), stations[switch].ports[port].name.clone())
}

/// `stations[switch]`, whatever address answered for it; what ports hear that are not up is left out.
fn stations(topology: &Topology, replies: &[Option<SurveyReply>], belongs: &[SwitchId]) -> Vec<Station> {
    let mut stations: Vec<Station> = topology.switch_ids().map(|switch| silent(topology, switch)).collect();
    for (reply, switch) in replies.iter().zip(belongs) {
        let Some(SurveyReply { station, states, .. }) = reply else { continue };
        assert_eq!(station.ports.len(), states.len(), "a state for every port");
        let mut station = station.clone();
        station.name.clone_from(&topology.switch(*switch).name);
        // Without LLDP-MIB it is still likely to announce its bridge's address.
        let bridge = reply.as_ref().and_then(|reply| reply.identity.bridge);
        station.chassis = station
            .chassis
            .or_else(|| bridge.map(|mac| LldpId { subtype: CHASSIS_MAC, octets: mac.octets().to_vec() }));
        station.heard.retain(|heard| !matches!(states.get(heard.port), Some(PortState::Down | PortState::Shut)));
        stations[switch.index()] = station;
    }
    // Two that share a chassis identifier are told apart by their names, or not at all.
    let mut owners: BTreeMap<LldpId, Vec<usize>> = BTreeMap::new();
    for (at, station) in stations.iter().enumerate() {
        if let Some(chassis) = &station.chassis {
            owners.entry(chassis.clone()).or_default().push(at);
        }
    }
    let mut identities: Vec<Option<&Identity>> = vec![None; stations.len()];
    for (reply, switch) in replies.iter().zip(belongs) {
        identities[switch.index()] = reply.as_ref().map(|reply| &reply.identity);
    }
    for sharers in owners.into_values().filter(|sharers| sharers.len() > 1) {
        let two = |a: usize, b: usize| match (identities[a], identities[b]) {
            (Some(a), Some(b)) => a.is(b) != Likeness::Same,
            _ => true,
        };
        if sharers.windows(2).any(|pair| two(pair[0], pair[1])) {
            for at in sharers {
                stations[at].chassis = None;
            }
        }
    }
    stations
}

/// A switch of which nothing is read, as its neighbours may know it.
fn silent(topology: &Topology, switch: SwitchId) -> Station {
    let known = topology.switch(switch);
    let chassis = known.identity.chassis.as_deref().map(|text| match text.parse::<Mac>() {
        Ok(mac) => LldpId { subtype: CHASSIS_MAC, octets: mac.octets().to_vec() },
        // Another notation, of which the text does not say the number: it is looked for by its name.
        Err(_) => LldpId { subtype: 0, octets: text.as_bytes().to_vec() },
    });
    let ports = topology
        .port_ids(switch)
        .map(|port| StationPort { name: topology.port(port).name.clone(), ..StationPort::default() });
    Station {
        name: known.name.clone(),
        chassis,
        system: known.name.clone(),
        ports: ports.collect(),
        ..Station::default()
    }
}

/// The states of the topology's ports, of switches that say them.
fn states(topology: &Topology, replies: &[Option<SurveyReply>], belongs: &[SwitchId]) -> BTreeMap<PortId, PortState> {
    let mut states = BTreeMap::new();
    for (reply, switch) in replies.iter().zip(belongs) {
        let Some(reply) = reply else { continue };
        for (port, state) in reply.station.ports.iter().zip(&reply.states) {
            let Some(port) = topology.find_port(*switch, &port.name) else { continue };
            // A LAG is as well as the best of its members.
            let known = states.entry(topology.logical_port(port)).or_insert(*state);
            if !matches!(state, PortState::Down | PortState::Shut) {
                *known = *state;
            }
        }
    }
    states
}

/// The other end of a port's cable.
pub(super) fn other_end(topology: &Topology, port: PortId) -> Option<PortId> {
    match topology.port(port).attachment {
        Attachment::Link(link) => {
            let link = topology.link(link);
            Some(if link.a == port { link.b } else { link.a })
        }
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
    }
}
