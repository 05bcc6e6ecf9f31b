//! The survey before a deployment: every exchange of plugs or addresses is refused, and the true cabling never is.

use std::collections::BTreeSet;

use fabric::{
    Attachment, LinkId, Mac, PortId, SwitchId, SwitchIdentity, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use rollout::survey::{CableState, Misfit, Neighbour, Note, Proof, Survey, Unconfirmed, recheck, survey};
use switch_model::{
    identity::{Identity, Likeness},
    sight::{PortState, SurveyReply},
    station::{CHASSIS_MAC, Capabilities, LldpId, LldpNeighbour, PORT_MAC, Station, StationPort},
};

const INTERFACE_NAME: i32 = 5;

/// What is plugged in where, and who says what of it.
#[derive(Clone)]
struct World {
    topology: Topology,
    /// `partner[port]`: the other end of the cable that belongs into a port, if it is one between switches.
    partner: Vec<Option<PortId>>,
    /// `plug[port]`: the plug that is in the port; a plug is called by the port where it belongs.
    plug: Vec<usize>,
    /// `answers[switch]`: which switch answers at the address of each.
    answers: Vec<usize>,
    /// Whether hosts announce themselves.
    hosts_speak: bool,
    /// Ports where LLDP is off.
    deaf: BTreeSet<usize>,
    /// What every switch calls itself; else its own name.
    system: Option<&'static str>,
    states: Vec<PortState>,
}

impl World {
    fn of(topology: Topology) -> Self {
        let (ports, switches) = (topology.ports().len(), topology.switches().len());
        let mut partner = vec![None; ports];
        for (a, b, _) in topology.switch_cables() {
            (partner[a.index()], partner[b.index()]) = (Some(b), Some(a));
        }
        Self {
            topology,
            partner,
            plug: (0..ports).collect(),
            answers: (0..switches).collect(),
            hosts_speak: true,
            deaf: BTreeSet::new(),
            system: None,
            states: vec![PortState::Up; ports],
        }
    }

    fn torus() -> Self {
        let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a kind");
        Self::of(generate(&kind, &Options::default()).expect("a torus"))
    }

    /// A connected random graph with hosts on some switches.
    fn random(rng: &mut Rng) -> Self {
        let mut builder = TopologyBuilder::new();
        let count = 3 + rng.below(12);
        let switches: Vec<SwitchId> = (0..count)
            .map(|number| builder.add_switch(&format!("s{number}"), Default::default()).expect("fresh"))
            .collect();
        let mut next = vec![0; count];
        let mut port = |builder: &mut TopologyBuilder, switch: usize| {
            next[switch] += 1;
            builder.add_port(switches[switch], &format!("p{}", next[switch])).expect("fresh")
        };
        // Every fourth is a LAG of two or three cables.
        let mut cable = |builder: &mut TopologyBuilder, rng: &mut Rng, a: usize, b: usize| {
            if rng.below(4) > 0 {
                let (a, b) = (port(builder, a), port(builder, b));
                builder.add_link(a, b, 1).expect("free");
                return;
            }
            let members = 2 + rng.below(2);
            let ends = [a, b].map(|switch| {
                let lag = builder.add_lag(switches[switch], None).expect("a free number");
                (0..members).for_each(|_| {
                    let member = port(builder, switch);
                    builder.add_to_lag(lag, member).expect("free");
                });
                lag
            });
            builder.add_link(ends[0], ends[1], members as u64).expect("free");
        };
        for other in 1..count {
            let to = rng.below(other);
            cable(&mut builder, rng, other, to);
        }
        for _ in 0..rng.below(2 * count) {
            let (a, b) = (rng.below(count), rng.below(count));
            if a != b {
                cable(&mut builder, rng, a, b);
            }
        }
        for switch in 0..count {
            if rng.below(2) == 0 {
                next[switch] += 1;
                let port = builder.add_port(switches[switch], &format!("p{}", next[switch])).expect("fresh");
                builder.add_host(&format!("h{switch}"), Mac::local(switch as u32), port, 1, None).expect("fresh");
            }
        }
        Self::of(builder.finish().expect("connected"))
    }

    /// Where the other end of what is plugged into a port is.
    fn far(&self, port: usize) -> Option<PortId> {
        let far = self.partner[self.plug[port]]?;
        self.plug.iter().position(|plug| *plug == far.index()).map(PortId::new)
    }

    fn chassis(switch: usize) -> LldpId {
        LldpId { subtype: CHASSIS_MAC, octets: vec![2, 2, 0, 0, (switch >> 8) as u8, switch as u8] }
    }

    fn identity(&self, switch: usize) -> Identity {
        let name = self.system.unwrap_or(&self.topology.switches()[switch].name);
        Identity {
            chassis: Some(Self::chassis(switch)),
            bridge: None,
            engine: Some(vec![0x80, switch as u8]),
            serial: Some(format!("TX{switch}")),
            system: Some(name.to_owned()).filter(|name| !name.is_empty()),
        }
    }

    /// What the switch says that answers at an address.
    fn reply(&self, address: usize) -> SurveyReply {
        let topology = &self.topology;
        let switch = self.answers[address];
        let ids: Vec<PortId> = topology.port_ids(SwitchId::new(switch)).collect();
        let port_id =
            |port: PortId| LldpId { subtype: INTERFACE_NAME, octets: topology.port(port).name.clone().into_bytes() };
        let heard = ids.iter().enumerate().filter_map(|(at, &port)| {
            if self.deaf.contains(&port.index()) {
                return None;
            }
            // A LAG hears nothing; its members do.
            if topology.port(port).lag().is_some() {
                return None;
            }
            let plug = topology.logical_port(PortId::new(self.plug[port.index()]));
            if let Attachment::Host(host) = topology.port(plug).attachment {
                let octets = topology.host(host).mac.octets().to_vec();
                return self.hosts_speak.then(|| LldpNeighbour {
                    port: at,
                    chassis: LldpId { subtype: CHASSIS_MAC, octets: octets.clone() },
                    id: LldpId { subtype: PORT_MAC, octets },
                    description: "eth0".to_owned(),
                    system: topology.host(host).name.clone(),
                    capabilities: Capabilities::default(),
                });
            }
            let far = self.far(port.index()).filter(|far| !self.deaf.contains(&far.index()))?;
            Some(LldpNeighbour {
                port: at,
                chassis: Self::chassis(topology.port(far).switch.index()),
                id: port_id(far),
                description: String::new(),
                system: String::new(),
                capabilities: Capabilities::of(&[0x20]),
            })
        });
        let ports = ids.iter().map(|&port| StationPort {
            name: topology.port(port).name.clone(),
            id: Some(port_id(port)),
            ..StationPort::default()
        });
        let identity = self.identity(switch);
        SurveyReply {
            station: Station {
                name: topology.switches()[address].name.clone(),
                chassis: Some(Self::chassis(switch)),
                system: identity.system.clone().unwrap_or_default(),
                ports: ports.collect(),
                heard: heard.collect(),
                ..Station::default()
            },
            identity,
            states: ids.iter().map(|port| self.states[port.index()]).collect(),
        }
    }

    fn replies(&self) -> Vec<Option<SurveyReply>> {
        (0..self.answers.len()).map(|address| Some(self.reply(address))).collect()
    }

    fn survey(&self) -> Survey {
        survey(&self.topology, &self.replies(), &BTreeSet::new())
    }

    /// The same with identities in the topology, as `discover` writes them.
    fn identified(mut self) -> Self {
        let mut builder = TopologyBuilder::of(&self.topology);
        for switch in self.topology.switch_ids() {
            builder.set_switch_identity(switch, self.identity(switch.index()).for_topology()).expect("fine");
        }
        self.topology = builder.finish().expect("as before");
        self
    }

    fn sentences(&self, survey: &Survey) -> Vec<String> {
        survey.misfits.iter().map(|misfit| misfit.sentence(&self.topology)).collect()
    }

    /// Pairs of plugs in different cables whose exchange changes the cabling, each outcome once; cables from a switch to
    /// itself are left out.
    fn swaps(&self) -> Vec<(usize, usize)> {
        let cables: Vec<[PortId; 2]> = self.topology.switch_cables().map(|(a, b, _)| [a, b]).collect();
        let mut swaps = Vec::new();
        for (at, one) in cables.iter().enumerate() {
            for other in &cables[at + 1..] {
                // Which members of one LAG are joined does not matter.
                if self.topology.logical_port(one[0]) == self.topology.logical_port(other[0]) {
                    continue;
                }
                for (x, y) in [(one[1], other[1]), (one[1], other[0])] {
                    let ends = |port: PortId| self.topology.port(port).switch;
                    let far = |port: PortId| if port == other[0] { other[1] } else { other[0] };
                    if ends(one[0]) != ends(y) && ends(far(y)) != ends(x) {
                        swaps.push((x.index(), y.index()));
                    }
                }
            }
        }
        swaps
    }
}

#[test]
fn the_true_cabling_is_never_refused() {
    let mut world = World::torus();
    for _ in 0..2 {
        for (system, hosts_speak) in [(None, true), (Some(""), false), (Some("Switch"), true)] {
            (world.system, world.hosts_speak) = (system, hosts_speak);
            let survey = world.survey();
            assert_eq!(world.sentences(&survey), [""; 0]);
            assert_eq!((survey.confirmed.len(), survey.unconfirmed.len()), (32, 0));
        }
        world = world.identified();
    }
    assert_eq!(world.survey().identities, [Likeness::Same; 16]);
}

#[test]
fn every_exchange_of_two_plugs_of_a_torus_is_refused() {
    for world in [World::torus(), World::torus().identified()] {
        let swaps = world.swaps();
        assert_eq!(swaps.len(), 896);
        for (x, y) in swaps {
            for silent in [false, true] {
                let mut world = world.clone();
                world.plug.swap(x, y);
                if silent {
                    (world.system, world.hosts_speak) = (Some("Switch"), false);
                }
                let survey = world.survey();
                let [Misfit::Cable(_)] = survey.misfits.as_slice() else {
                    panic!("{x} and {y}: {:?}", world.sentences(&survey));
                };
                assert_eq!((survey.confirmed.len(), survey.unconfirmed.len()), (30, 0), "{x} and {y}");
                // While ports are opened, the two cables are told from the others.
                let all: Vec<LinkId> = world.topology.link_ids().collect();
                let again = recheck(&world.topology, &world.replies(), &all);
                let elsewhere = again.iter().filter(|(_, state)| matches!(state, CableState::Elsewhere(_)));
                assert_eq!(elsewhere.count(), 2);
            }
        }
    }
}

#[test]
fn every_exchange_of_two_addresses_of_a_torus_is_named() {
    for a in 0..16 {
        for b in a + 1..16 {
            for (system, identified, proof) in [
                (None, true, Proof::Identity),
                (Some("Switch"), true, Proof::Identity),
                (None, false, Proof::Cabling),
                (Some(""), false, Proof::Cabling),
            ] {
                let mut world = if identified { World::torus().identified() } else { World::torus() };
                (world.system, world.hosts_speak) = (system, false);
                world.answers.swap(a, b);
                let survey = world.survey();
                let switches = vec![SwitchId::new(a), SwitchId::new(b)];
                assert_eq!(survey.misfits, [Misfit::Exchanged { switches, proof }], "{:?}", world.sentences(&survey));
                assert_eq!(survey.confirmed.len(), 32);
            }
        }
    }
}

#[test]
fn an_address_given_twice_is_named() {
    for a in 0..16 {
        for b in (0..16).filter(|b| *b != a) {
            for identified in [true, false] {
                let mut world = if identified { World::torus().identified() } else { World::torus() };
                world.answers[b] = a;
                let survey = world.survey();
                let mut switches = [SwitchId::new(a), SwitchId::new(b)];
                switches.sort();
                let named = survey
                    .identity_misfits()
                    .any(|misfit| matches!(misfit, Misfit::OneDevice { switches: found, .. } if *found == switches));
                assert!(named, "{:?}", world.sentences(&survey));
            }
        }
    }
}

/// On random graphs: the truth passes; exchanges of plugs and of addresses do not, whoever is silent.
#[test]
fn random_fabrics_are_refused_if_and_only_if_something_is_elsewhere() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        (world.hosts_speak, world.system) = (rng.below(2) == 0, [None, Some("Switch")][rng.below(2)]);
        if rng.below(2) == 0 {
            world = world.identified();
        }
        let fine = world.survey();
        assert_eq!(world.sentences(&fine), [""; 0], "seed {seed}");
        assert_eq!(fine.confirmed.len(), world.topology.links().len(), "seed {seed}");
        let swaps = world.swaps();
        if !swaps.is_empty() {
            let (x, y) = swaps[rng.below(swaps.len())];
            let mut swapped = world.clone();
            swapped.plug.swap(x, y);
            assert!(!swapped.survey().misfits.is_empty(), "seed {seed}: plugs {x} and {y}");
        }
        let count = world.answers.len();
        let (a, b) = (rng.below(count), rng.below(count));
        // Switches with other port names would not have been connected to.
        let names = |switch: usize| world.topology.port_ids(SwitchId::new(switch)).len();
        if a != b && names(a) == names(b) {
            let mut exchanged = world.clone();
            exchanged.answers.swap(a, b);
            let survey = exchanged.survey();
            assert!(!survey.misfits.is_empty(), "seed {seed}: addresses {a} and {b}");
        }
        // A cable that nobody can see is not refused, but not confirmed either.
        let links = world.topology.links();
        let blind = links[rng.below(links.len())];
        let mut deaf = world.clone();
        let cabled = [blind.a, blind.b].map(|port| world.topology.cabled_ports(port));
        deaf.deaf.extend(cabled.iter().flatten().map(|port| port.index()));
        let survey = deaf.survey();
        assert_eq!(deaf.sentences(&survey), [""; 0], "seed {seed}");
        assert_eq!(survey.unconfirmed.values().collect::<Vec<_>>(), [&Unconfirmed::NoLldp], "seed {seed}");
    }
}

#[test]
fn hosts_and_ports_that_nobody_uses() {
    // A host's plug and a cable's are exchanged: the cable is in the host's port, and the host in the cable's.
    let mut world = World::torus();
    let (host, link) = (world.topology.hosts()[3].clone(), world.topology.links()[7]);
    world.plug.swap(host.port.index(), link.b.index());
    let survey = world.survey();
    let said = world.sentences(&survey).join("\n");
    assert!(!survey.misfits.is_empty() && said.contains(&world.topology.port_label(host.port)), "{said}");
    // Silent hosts change nothing.
    world.hosts_speak = false;
    assert!(!world.survey().misfits.is_empty());
    // Two hosts exchanged are no danger, but their entries lead elsewhere.
    let mut world = World::torus();
    world.plug.swap(world.topology.hosts()[0].port.index(), world.topology.hosts()[1].port.index());
    let survey = world.survey();
    assert_eq!(survey.misfits, []);
    assert!(matches!(survey.notes.as_slice(), [Note::HostElsewhere { .. }, Note::HostElsewhere { .. }]));
    // A patch cord between two hosts' ports.
    let mut world = World::torus();
    let (a, b) = (world.topology.hosts()[0].port, world.topology.hosts()[1].port);
    let link = world.topology.links()[0];
    world.plug[a.index()] = link.a.index();
    world.plug[b.index()] = link.b.index();
    (world.plug[link.a.index()], world.plug[link.b.index()]) = (a.index(), b.index());
    world.hosts_speak = false;
    let survey = world.survey();
    let cords = survey.misfits.iter().filter(|misfit| {
        matches!(misfit, Misfit::PatchCord { port, heard: Neighbour::Port(far) } if [*port, *far] == [a, b] || [*port, *far] == [b, a])
    });
    assert_eq!(cords.count(), 2, "{:?}", world.sentences(&survey));
}

#[test]
fn what_a_dead_or_shut_port_heard_once_counts_for_nothing() {
    for (state, expect) in [
        (PortState::Down, Unconfirmed::Down as fn(PortId) -> Unconfirmed),
        (PortState::Shut, Unconfirmed::Shut as fn(PortId) -> Unconfirmed),
    ] {
        let mut world = World::torus();
        let link = world.topology.links()[5];
        // Its neighbour was another one before, and the table has not forgotten it.
        world.plug.swap(link.a.index(), world.topology.links()[6].a.index());
        world.states[link.a.index()] = state;
        world.states[world.topology.links()[6].a.index()] = state;
        for index in [link.b.index(), world.topology.links()[6].b.index()] {
            world.states[index] = PortState::Down;
        }
        let survey = world.survey();
        assert_eq!(survey.misfits, []);
        assert_eq!(survey.unconfirmed.get(&LinkId::new(5)), Some(&expect(link.a)));
        assert_eq!(survey.unconfirmed.len(), 2);
    }
}

#[test]
fn one_end_is_no_proof_and_a_command_line_says_nothing() {
    let world = World::torus();
    let link = world.topology.links()[0];
    let mut replies = world.replies();
    let switch = world.topology.port(link.b).switch;
    let reply = replies[switch.index()].as_mut().expect("all answer");
    let at = link.b.index() - world.topology.switch_ports(switch).start;
    reply.station.heard.retain(|heard| heard.port != at);
    let found = survey(&world.topology, &replies, &BTreeSet::new());
    assert_eq!(found.unconfirmed.get(&LinkId::new(0)), Some(&Unconfirmed::OneWay(link.a)));
    assert_eq!((found.misfits.len(), found.confirmed.len()), (0, 31));
    // The switch is read over SSH: none of its cables is confirmed, and none is elsewhere.
    replies[switch.index()] = None;
    let found = survey(&world.topology, &replies, &BTreeSet::new());
    assert_eq!(found.misfits, [], "{:?}", world.sentences(&found));
    assert_eq!(found.unconfirmed.len(), 4);
    assert!(found.unconfirmed.values().all(|why| *why == Unconfirmed::NotRead(switch)));
    assert_eq!(found.identities[switch.index()], Likeness::Unknown);
}

#[test]
fn another_switch_is_named_and_a_replaced_one_is_let_in() {
    let mut world = World::torus().identified();
    let mut builder = TopologyBuilder::of(&world.topology);
    let old = SwitchIdentity { serial: Some("OLD".to_owned()), ..SwitchIdentity::default() };
    builder.set_switch_identity(SwitchId::new(3), old).expect("fine");
    world.topology = builder.finish().expect("as before");
    let found = world.survey();
    assert!(
        matches!(found.misfits.as_slice(), [Misfit::OtherSwitch { switch, answers: None, .. }] if switch.index() == 3)
    );
    let said = world.sentences(&found).concat();
    assert!(said.contains("--replaced") && said.contains("serial number"), "{said}");
    let replaced = BTreeSet::from([SwitchId::new(3)]);
    let found = survey(&world.topology, &world.replies(), &replaced);
    assert_eq!(found.misfits, []);
    assert!(matches!(found.notes.as_slice(), [Note::Replaced { .. }]));
    // But not as another switch of the plan.
    world.answers.swap(3, 4);
    assert!(!survey(&world.topology, &world.replies(), &replaced).misfits.is_empty());
}

/// Switches of a cheap make that share the address of their chassis: their names tell them apart.
#[test]
fn two_chassis_of_one_address_are_no_reason_to_refuse() {
    let world = World::torus();
    let mut replies = world.replies();
    let names: Vec<String> = world.topology.switches().iter().map(|switch| switch.name.clone()).collect();
    for reply in replies.iter_mut().flatten() {
        for heard in &mut reply.station.heard {
            if let Some(from) = (0..16).find(|switch| World::chassis(*switch) == heard.chassis) {
                heard.system = names[from].clone();
                if from == 1 {
                    heard.chassis = World::chassis(0);
                }
            }
        }
    }
    let shared = replies[1].as_mut().expect("all answer");
    shared.identity.chassis = Some(World::chassis(0));
    shared.station.chassis = Some(World::chassis(0));
    let found = survey(&world.topology, &replies, &BTreeSet::new());
    assert_eq!(found.misfits, [], "{:?}", world.sentences(&found));
    assert_eq!(found.confirmed.len(), 32);
}
