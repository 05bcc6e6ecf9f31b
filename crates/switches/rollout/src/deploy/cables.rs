//! Cables as they are seen: what each port hears, against where its cable is to lead.
//!
//! ```text
//!   plan    s1:p3 ──── s2:p4                  s1:p3 hears s5:p1        misplaced, at once
//!   opened  both ports                        s1:p3 hears nothing      unseen, awaited
//!                                             s1:p3 hears s2:p4        as it is to be
//! ```
//! A port is asked for its far end only where it heard it before: an end that is not `required` may stay deaf, but what
//! it does hear counts. Who is heard is found by what the switches said of themselves at the survey.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Attachment, LinkId, PortId, SwitchId, Topology};

use crate::discover::{Doubt, PortPosition, cabling};
use switch_model::{
    Slot,
    printable::told,
    sight::{End, Sight},
    station::{LldpNeighbour, Station},
};

/// What is known of the cables between switches before ports open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cables {
    /// `stations[switch]`: what the switch said of itself; none of one that cannot be asked.
    stations: Vec<Station>,
    /// `places[switch][position in the station's ports]`: the port's slot.
    places: Vec<Vec<Option<Slot>>>,
    /// The same, but for a member of a LAG the LAG's slot.
    slots: Vec<Vec<Option<Slot>>>,
    /// `far[switch][slot]`: where the port's cable is to lead.
    far: Vec<Vec<Option<End>>>,
    required: BTreeSet<End>,
}

/// Where a cable leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FarEnd {
    /// To this port.
    Port(End),
    /// To this switch, at a port that is not known by the name that it has there.
    Switch(SwitchId, String),
    /// To something that is none of the plan's switches, and calls itself so.
    Other(String),
    /// Nobody knows: nothing is heard where something was heard before.
    Unknown,
}

/// A port whose cable leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Misplaced {
    /// Where it was seen.
    pub at: End,
    /// Where its cable is to lead; none if to no switch.
    pub expected: Option<End>,
    /// Where it leads.
    pub found: FarEnd,
}

/// A port that does not hear the far end of its cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// The port.
    pub at: End,
    /// Where its cable is to lead.
    pub expected: End,
    /// Whether the port has a link at all.
    pub link: LinkState,
}

/// Whether a port has a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkState {
    /// The cable carries.
    Up,
    /// It does not: pulled, or shut at the far end.
    Down,
}

/// How cables are seen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Those that lead elsewhere, ascending.
    pub misplaced: Vec<Misplaced>,
    /// Those that are not seen, ascending.
    pub unseen: Vec<Unseen>,
}

impl Cables {
    /// `stations[switch]` is what each switch said of itself, an empty one where it could not; `links` are those whose
    /// ends must hear each other once their ports are open.
    ///
    /// # Panics
    /// If there is not one station a switch.
    pub fn new(topology: &Topology, stations: Vec<Station>, links: impl IntoIterator<Item = LinkId>) -> Self {
        let ports = links.into_iter().flat_map(|link| [topology.link(link).a, topology.link(link).b]);
        let required: BTreeSet<PortId> = ports.collect();
        Self::requiring(topology, stations, &required)
    }

    /// The same, for single ends.
    ///
    /// # Panics
    /// If there is not one station a switch.
    pub fn requiring(topology: &Topology, stations: Vec<Station>, ports: &BTreeSet<PortId>) -> Self {
        assert_eq!(stations.len(), topology.switches().len(), "a station for every switch");
        let end = |port: PortId| -> End {
            let switch = topology.port(port).switch;
            (switch, Slot::new(port.index() - topology.switch_ports(switch).start))
        };
        let far = topology.switch_ids().map(|switch| {
            let far = |port| match topology.port(port).attachment {
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    Some(end(if link.a == port { link.b } else { link.a }))
                }
                Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
            };
            topology.port_ids(switch).map(far).collect()
        });
        let places = topology.switch_ids().zip(&stations).map(|(switch, station)| {
            let names: Vec<&str> = topology.port_ids(switch).map(|port| topology.port(port).name.as_str()).collect();
            let slot = |port: &switch_model::station::StationPort| {
                let called = |name: &str| names.iter().position(|known| *known == name);
                let by_name = called(&port.name).or_else(|| port.labels.iter().find_map(|label| called(label)));
                by_name.map(Slot::new)
            };
            station.ports.iter().map(slot).collect()
        });
        let places: Vec<Vec<Option<Slot>>> = places.collect();
        let slots = topology.switch_ids().zip(&places).map(|(switch, places)| {
            let first = topology.switch_ports(switch).start;
            // What a member of a LAG hears, the LAG hears.
            let logical =
                |slot: Slot| Slot::new(topology.logical_port(PortId::new(first + slot.index())).index() - first);
            places.iter().map(|place| place.map(logical)).collect()
        });
        let (far, slots) = (far.collect(), slots.collect());
        Self { stations, places, slots, far, required: ports.iter().map(|port| end(*port)).collect() }
    }

    /// Compares what is heard with where cables are to lead, for ports of which `is_open` holds. `sights[switch]`; none
    /// of a switch that has not been asked.
    pub fn compare(&self, sights: &[Option<Sight>], is_open: impl Fn(End) -> bool) -> Comparison {
        let seen = self.seen(sights);
        let mut comparison = Comparison::default();
        for (index, far) in self.far.iter().enumerate() {
            let switch = SwitchId::new(index);
            let Some(sight) = sights.get(index).and_then(Option::as_ref).filter(|sight| !sight.running.is_empty())
            else {
                continue;
            };
            for (slot, far) in far.iter().enumerate() {
                let at = (switch, Slot::new(slot));
                if !is_open(at) {
                    continue;
                }
                let none = BTreeSet::new();
                let heard = seen.get(&at).unwrap_or(&none);
                let found = far.map(FarEnd::Port);
                let elsewhere = heard.iter().find(|heard| Some(*heard) != found.as_ref());
                match (far, elsewhere) {
                    // A host may announce itself; a switch where a host belongs is a cable in the wrong port.
                    (None, Some(FarEnd::Other(_))) => {}
                    // The expected end is heard as well: the other may be what was there before, and be forgotten soon.
                    (Some(expected), Some(_)) if heard.contains(&FarEnd::Port(*expected)) => {
                        comparison.unseen.push(unseen(at, *expected, sight));
                    }
                    (_, Some(elsewhere)) => {
                        let (expected, found) = (*far, elsewhere.clone());
                        comparison.misplaced.push(Misplaced { at, expected, found });
                    }
                    (Some(expected), None) if heard.is_empty() && self.required.contains(&at) && is_open(*expected) => {
                        comparison.unseen.push(unseen(at, *expected, sight));
                    }
                    _ => {}
                }
            }
        }
        comparison
    }

    /// Who is heard at each port.
    fn seen(&self, sights: &[Option<Sight>]) -> BTreeMap<End, BTreeSet<FarEnd>> {
        let fresh = |(index, station): (usize, &Station)| {
            let position = |slot: usize| {
                self.places[index].iter().position(|known| known.is_some_and(|known| known.index() == slot))
            };
            let heard = sights.get(index).and_then(Option::as_ref).map_or(&[][..], |sight| &sight.heard);
            let heard =
                heard.iter().filter_map(|heard| Some(LldpNeighbour { port: position(heard.port)?, ..heard.clone() }));
            Station { heard: heard.collect(), learned: Vec::new(), ..station.clone() }
        };
        let stations: Vec<Station> = self.stations.iter().enumerate().map(fresh).collect();
        let end = |(switch, position): PortPosition| -> Option<End> {
            Some((SwitchId::new(switch), (*self.slots[switch].get(position)?)?))
        };
        let mut seen: BTreeMap<End, BTreeSet<FarEnd>> = BTreeMap::new();
        let mut known: BTreeSet<PortPosition> = BTreeSet::new();
        let mut see = |at: PortPosition, far: FarEnd| {
            known.insert(at);
            if let Some(at) = end(at) {
                seen.entry(at).or_default().insert(far);
            }
        };
        let port = |place: PortPosition| match end(place) {
            Some(end) => FarEnd::Port(end),
            None => FarEnd::Switch(SwitchId::new(place.0), self.stations[place.0].ports[place.1].name.clone()),
        };
        let found = cabling(&stations);
        for &(a, b) in &found.links {
            see(a, port(b));
            see(b, port(a));
        }
        for doubt in &found.doubts {
            match doubt {
                Doubt::OneWay { hears, deaf } => see(*hears, port(*deaf)),
                Doubt::UnknownPort { hears, switch, port } => {
                    see(*hears, FarEnd::Switch(SwitchId::new(*switch), port.clone()));
                }
                // One by one, below.
                _ => {}
            }
        }
        for (index, station) in stations.iter().enumerate() {
            for heard in &station.heard {
                let place = (index, heard.port);
                if known.contains(&place) {
                    continue;
                }
                let ours = |station: &Station| {
                    station.chassis.as_ref() == Some(&heard.chassis)
                        || (!heard.system.is_empty() && station.system == heard.system)
                };
                let found = self
                    .stations
                    .iter()
                    .any(ours)
                    .then(|| self.alone(index, Station { heard: vec![heard.clone()], ..station.clone() }));
                let far = found.flatten().unwrap_or_else(|| FarEnd::Other(called(heard)));
                if let Some(at) = end(place) {
                    seen.entry(at).or_default().insert(far);
                }
            }
        }
        seen
    }

    /// Which of the plan's switches a station hears that hears one neighbour alone.
    fn alone(&self, index: usize, station: Station) -> Option<FarEnd> {
        let deaf = |(other, known): (usize, &Station)| match other == index {
            true => station.clone(),
            false => Station { heard: Vec::new(), learned: Vec::new(), ..known.clone() },
        };
        let stations: Vec<Station> = self.stations.iter().enumerate().map(deaf).collect();
        cabling(&stations).doubts.into_iter().find_map(|doubt| match doubt {
            Doubt::OneWay { deaf: (switch, position), .. } => Some(match self.slots[switch].get(position) {
                Some(Some(slot)) => FarEnd::Port((SwitchId::new(switch), *slot)),
                _ => FarEnd::Switch(SwitchId::new(switch), self.stations[switch].ports[position].name.clone()),
            }),
            Doubt::UnknownPort { switch, port, .. } => Some(FarEnd::Switch(SwitchId::new(switch), port)),
            _ => None,
        })
    }
}

fn unseen(at: End, expected: End, sight: &Sight) -> Unseen {
    let up = sight.running.get(at.1.index()).copied().unwrap_or(false);
    Unseen { at, expected, link: if up { LinkState::Up } else { LinkState::Down } }
}

/// What a neighbour calls itself.
fn called(heard: &LldpNeighbour) -> String {
    if heard.system.is_empty() { told(&heard.chassis.octets) } else { heard.system.clone() }
}

#[cfg(test)]
mod tests {
    use fabric::{SwitchSpec, TopologyBuilder};

    use super::*;
    use switch_model::station::{Capabilities, LldpId, StationPort};

    fn id(text: &str) -> LldpId {
        LldpId { subtype: 7, octets: text.as_bytes().to_vec() }
    }

    /// A triangle: s0:p0-s1:p1, s1:p0-s2:p1, s2:p0-s0:p1; every switch has a free port p2.
    fn triangle() -> (Topology, Vec<Station>) {
        let mut builder = TopologyBuilder::new();
        let mut stations = Vec::new();
        let ports: Vec<Vec<PortId>> = (0..3)
            .map(|at| {
                let switch = builder.add_switch(&format!("s{at}"), SwitchSpec::default()).expect("a new name");
                let port = |port| StationPort {
                    name: format!("p{port}"),
                    id: Some(id(&format!("p{port}"))),
                    ..StationPort::default()
                };
                stations.push(Station {
                    name: format!("s{at}"),
                    chassis: Some(id(&format!("c{at}"))),
                    ports: (0..3).map(port).collect(),
                    ..Station::default()
                });
                (0..3).map(|port| builder.add_port(switch, &format!("p{port}")).expect("a new port")).collect()
            })
            .collect();
        for at in 0..3 {
            builder.add_link(ports[at][0], ports[(at + 1) % 3][1], 1_000_000_000).expect("free ports");
        }
        (builder.finish().expect("a sound topology"), stations)
    }

    #[test]
    fn what_members_of_a_lag_hear_the_lag_hears() {
        // Two LAGs of two cables between s0 and s1, and a third cable between s0:p4 and s1:p4.
        let mut builder = TopologyBuilder::new();
        let mut stations = Vec::new();
        let mut lags = Vec::new();
        for at in 0..2 {
            let switch = builder.add_switch(&format!("s{at}"), SwitchSpec::default()).expect("a new name");
            let mut ports = vec!["lag1".to_owned(), "lag2".to_owned()];
            let own: Vec<PortId> = (0..2).map(|_| builder.add_lag(switch, None).expect("a free number")).collect();
            for port in 0..5 {
                let member = builder.add_port(switch, &format!("p{port}")).expect("a new port");
                ports.push(format!("p{port}"));
                if port < 4 {
                    builder.add_to_lag(own[port / 2], member).expect("free");
                } else {
                    lags.push(member);
                }
            }
            lags.extend(own);
            let port = |name: &String| StationPort { name: name.clone(), id: Some(id(name)), ..StationPort::default() };
            // The switch lists LAGs last.
            let listed = ports[2..].iter().chain(&ports[..2]).map(port).collect();
            let chassis = Some(id(&format!("c{at}")));
            stations.push(Station { name: format!("s{at}"), chassis, ports: listed, ..Station::default() });
        }
        for (a, b) in [(0, 3), (1, 4), (2, 5)] {
            builder.add_link(lags[a], lags[b], 1_000_000_000).expect("free ports");
        }
        let topology = builder.finish().expect("a sound topology");
        let cables = Cables::new(&topology, stations, topology.link_ids());
        // Slots are the topology's: p0 is the third port.
        let hears = |far: &str| (0..5).map(|port| heard(2 + port, far, &format!("p{port}"))).collect::<Vec<_>>();
        let look = |heard: [Vec<LldpNeighbour>; 2]| {
            let sight = |heard| Some(Sight { heard, running: vec![true; 7], ..Sight::default() });
            cables.compare(&heard.map(sight), |_| true)
        };
        assert_eq!(look([hears("c1"), hears("c0")]), Comparison::default());
        // One member of each hears nothing: the other does.
        let one = |far: &str| hears(far).into_iter().filter(|heard| heard.port % 2 == 0).collect::<Vec<_>>();
        assert_eq!(look([one("c1"), one("c0")]), Comparison::default());
        // The plugs of p0 and p2 are exchanged at one end.
        let mut swapped = hears("c1");
        (swapped[0].id, swapped[2].id) = (id("p2"), id("p0"));
        let mut far = hears("c0");
        (far[0].id, far[2].id) = (id("p2"), id("p0"));
        let found = look([swapped, far]);
        assert_eq!(found.unseen.len(), 4, "LAGs that hear what they should hear, and something else: {found:?}");
    }

    fn heard(port: usize, switch: &str, far: &str) -> LldpNeighbour {
        LldpNeighbour {
            port,
            chassis: id(switch),
            id: id(far),
            description: String::new(),
            system: String::new(),
            capabilities: Capabilities::default(),
        }
    }

    fn sights(heard: [Vec<LldpNeighbour>; 3]) -> Vec<Option<Sight>> {
        heard.into_iter().map(|heard| Some(Sight { heard, running: vec![true; 3], ..Sight::default() })).collect()
    }

    #[test]
    fn a_cable_is_as_planned_unseen_or_elsewhere() {
        let (topology, stations) = triangle();
        let cables = Cables::new(&topology, stations, topology.link_ids());
        let right = || {
            [
                vec![heard(0, "c1", "p1"), heard(1, "c2", "p0")],
                vec![heard(0, "c2", "p1"), heard(1, "c0", "p0")],
                vec![heard(0, "c0", "p1"), heard(1, "c1", "p0")],
            ]
        };
        let end = |switch: usize, slot: usize| (SwitchId::new(switch), Slot::new(slot));
        let look = |heard| cables.compare(&sights(heard), |_| true);
        assert_eq!(look(right()), Comparison::default());
        // One end is deaf.
        let mut one = right();
        one[1].remove(1);
        assert_eq!(
            look(one),
            Comparison {
                unseen: vec![Unseen { at: end(1, 1), expected: end(0, 0), link: LinkState::Up }],
                misplaced: Vec::new()
            }
        );
        // Two plugs exchanged: s0:p0 leads to s2:p1, s1:p0 to s1:p1's neighbour's place.
        let mut swapped = right();
        swapped[0][0] = heard(0, "c2", "p1");
        swapped[2][1] = heard(1, "c0", "p0");
        let found = look(swapped).misplaced;
        assert!(
            found.contains(&Misplaced { at: end(0, 0), expected: Some(end(1, 1)), found: FarEnd::Port(end(2, 1)) }),
            "{found:?}"
        );
        assert!(
            found.contains(&Misplaced { at: end(2, 1), expected: Some(end(1, 0)), found: FarEnd::Port(end(0, 0)) }),
            "{found:?}"
        );
        // A switch at a port for hosts; a host there is none of our business, nor an unmanaged device at a link's end
        // that is shut.
        let mut host = right();
        host[0].push(heard(2, "c1", "p2"));
        assert_eq!(
            look(host.clone()).misplaced,
            [Misplaced { at: end(0, 2), expected: None, found: FarEnd::Port(end(1, 2)) }]
        );
        assert_eq!(cables.compare(&sights(host), |at| at != end(0, 2)), Comparison::default());
        let mut laptop = right();
        laptop[0].push(heard(2, "laptop", "eth0"));
        assert_eq!(look(laptop), Comparison::default());
        // What was there before and what is there now: awaited until one is forgotten.
        let mut both = right();
        both[0].push(heard(0, "c2", "p1"));
        let found = look(both);
        assert_eq!(found.unseen.iter().map(|unseen| unseen.at).collect::<Vec<_>>(), [end(0, 0)]);
        // Something else altogether.
        let mut other = right();
        other[0][0] = heard(0, "foreign", "e1");
        assert_eq!(look(other).misplaced[0].found, FarEnd::Other("foreign".to_owned()));
    }
}
