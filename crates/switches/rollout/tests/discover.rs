//! Cables from what switches say, and what is wrong with them.

use fabric::{
    Attachment, Mac, PortId, Topology,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use proptest::prelude::*;
use rollout::discover::{Doubt, Evidence, Mismatch, cabling, compare};
use switch_model::station::{CHASSIS_MAC, Capabilities, LldpId, LldpNeighbour, PORT_MAC, Station, StationPort};

const INTERFACE_NAME: i32 = 5;
const LOCAL: i32 = 7;

/// Notations of port identifiers that real switches use.
#[derive(Clone, Copy, Debug)]
enum Notation {
    Name,
    Address,
    /// The identifier is the same on every port, the description tells.
    Description,
}

fn port_mac(port: PortId) -> Mac {
    Mac::new([2, 1, 0, 0, (port.index() >> 8) as u8, port.index() as u8])
}

fn chassis(switch: usize) -> LldpId {
    LldpId { subtype: CHASSIS_MAC, octets: vec![2, 2, 0, 0, 0, switch as u8] }
}

fn port_id(topology: &Topology, port: PortId, notation: Notation) -> LldpId {
    match notation {
        Notation::Name => LldpId { subtype: INTERFACE_NAME, octets: topology.port(port).name.clone().into_bytes() },
        Notation::Address => LldpId { subtype: PORT_MAC, octets: port_mac(port).octets().to_vec() },
        Notation::Description => LldpId { subtype: LOCAL, octets: b"port".to_vec() },
    }
}

/// What the switches of a topology say if its cables are as `partner` has them.
fn stations(topology: &Topology, notation: &[Notation], partner: &dyn Fn(PortId) -> Option<PortId>) -> Vec<Station> {
    let station = |switch: fabric::SwitchId| {
        let ids: Vec<PortId> = topology.port_ids(switch).collect();
        let notation_of = |port: PortId| notation[topology.port(port).switch.index()];
        let ports = ids.iter().map(|&port| StationPort {
            name: topology.port(port).name.clone(),
            id: Some(port_id(topology, port, notation_of(port))),
            labels: vec![format!("Port {}", port.index())],
            mac: Some(port_mac(port)),
            lag: None,
        });
        let heard = ids.iter().enumerate().filter_map(|(at, &port)| {
            if let Attachment::Host(host) = topology.port(port).attachment {
                let octets = topology.host(host).mac.octets().to_vec();
                return Some(LldpNeighbour {
                    port: at,
                    chassis: LldpId { subtype: CHASSIS_MAC, octets: octets.clone() },
                    id: LldpId { subtype: PORT_MAC, octets },
                    description: "eth0".to_owned(),
                    system: topology.host(host).name.clone(),
                    capabilities: Capabilities::default(),
                });
            }
            let far = partner(port)?;
            Some(LldpNeighbour {
                port: at,
                chassis: chassis(topology.port(far).switch.index()),
                id: port_id(topology, far, notation_of(far)),
                description: format!("Port {}", far.index()),
                system: String::new(),
                capabilities: Capabilities::of(&[0x28]),
            })
        });
        Station {
            name: topology.switch(switch).name.clone(),
            chassis: Some(chassis(switch.index())),
            system: topology.switch(switch).name.clone(),
            ports: ports.collect(),
            heard: heard.collect(),
            ..Station::default()
        }
    };
    topology.switch_ids().map(station).collect()
}

fn as_cabled(topology: &Topology) -> impl Fn(PortId) -> Option<PortId> + '_ {
    |port| match topology.port(port).attachment {
        Attachment::Link(link) => {
            let link = topology.link(link);
            Some(if link.a == port { link.b } else { link.a })
        }
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
    }
}

/// Found cables as ports of the topology, which has the stations' switches and ports in the same order.
fn found(topology: &Topology, stations: &[Station]) -> Vec<(PortId, PortId)> {
    let port =
        |(switch, port): (usize, usize)| PortId::new(topology.switch_ports(fabric::SwitchId::new(switch)).start + port);
    cabling(stations).links.into_iter().map(|(a, b)| (port(a), port(b))).collect()
}

fn torus() -> Topology {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a kind");
    generate(&kind, &Options::default()).expect("a torus")
}

proptest! {
    #[test]
    fn every_cable_is_found_whatever_the_notation(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let topology = torus();
        let notation: Vec<Notation> = topology
            .switches()
            .iter()
            .map(|_| [Notation::Name, Notation::Address, Notation::Description][rng.below(3)])
            .collect();
        let stations = stations(&topology, &notation, &as_cabled(&topology));
        let cabling = cabling(&stations);
        prop_assert_eq!(cabling.doubts, vec![]);
        prop_assert_eq!(cabling.links.len(), topology.links().len());
        prop_assert_eq!(cabling.hosts.len(), 16);
        prop_assert_eq!(compare(&topology, &found(&topology, &stations)), vec![]);
    }

    #[test]
    fn swapped_plugs_are_named_with_the_remedy(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let topology = torus();
        let links = topology.links();
        let (one, other) = (rng.below(links.len()), rng.below(links.len()));
        prop_assume!(one != other);
        let (b, d) = (links[one].b, links[other].b);
        // What was in b is in d, and the other way round.
        let moved = |port: PortId| if port == b { d } else if port == d { b } else { port };
        let straight = as_cabled(&topology);
        let partner = |port: PortId| straight(moved(port)).map(moved);
        let stations = stations(&topology, &[Notation::Name; 16], &partner);
        let mismatches = compare(&topology, &found(&topology, &stations));
        prop_assert_eq!(mismatches.len(), 1, "{:?}", mismatches);
        let Mismatch::Swapped { plug, .. } = mismatches[0] else { panic!("{mismatches:?}") };
        // Exchanging those two plugs puts everything right.
        let (x, y) = plug;
        let mend = |port: PortId| if port == x { y } else if port == y { x } else { port };
        let mended: Vec<(PortId, PortId)> =
            found(&topology, &stations).into_iter().map(|(a, b)| (mend(a), mend(b))).collect();
        prop_assert_eq!(compare(&topology, &mended), vec![]);
    }
}

#[test]
fn a_missing_cable_and_a_misplaced_one_are_told_apart() {
    let topology = torus();
    let link = topology.links()[5];
    let straight = as_cabled(&topology);
    let without = |port: PortId| straight(port).filter(|_| port != link.a && port != link.b);
    let gone = stations(&topology, &[Notation::Name; 16], &without);
    let mismatches = compare(&topology, &found(&topology, &gone));
    assert_eq!(mismatches, [Mismatch::Missing { ends: (link.a, link.b) }]);
    let text = mismatches[0].sentence(&topology);
    assert!(text.contains(&topology.port_label(link.a)) && text.contains("plug one in"), "{text}");
}

#[test]
fn a_one_way_sighting_is_a_doubt_and_no_cable() {
    let topology = torus();
    let link = topology.links()[3];
    let mut stations = stations(&topology, &[Notation::Address; 16], &as_cabled(&topology));
    let place = |port: PortId| {
        let switch = topology.port(port).switch;
        (switch.index(), port.index() - topology.switch_ports(switch).start)
    };
    let (a, b) = (place(link.a), place(link.b));
    stations[b.0].heard.retain(|heard| heard.port != b.1);
    let cabling = cabling(&stations);
    assert_eq!(cabling.links.len(), topology.links().len() - 1);
    assert_eq!(cabling.doubts, [Doubt::OneWay { hears: a, deaf: b }]);
}

#[test]
fn a_silent_host_is_known_by_its_address() {
    let topology = torus();
    let mut stations = stations(&topology, &[Notation::Name; 16], &as_cabled(&topology));
    let host = &topology.hosts()[2];
    let switch = topology.port(host.port).switch;
    let at = host.port.index() - topology.switch_ports(switch).start;
    stations[switch.index()].heard.retain(|heard| heard.port != at);
    stations[switch.index()].learned.push((host.mac, at));
    let cabling = cabling(&stations);
    let found = &cabling.hosts[&(switch.index(), at)];
    assert_eq!((found.mac, found.evidence), (host.mac, Evidence::Learned));
}
