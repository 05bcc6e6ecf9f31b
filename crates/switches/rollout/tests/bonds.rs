//! Failover bonds as a state machine: random port states, and switches read back in every state.

use fabric::{HostId, Mac, Plan, Policy, Topology, TopologyBuilder, rng::Rng};
use planner::{StepLimit, plan_with};
use rollout::{
    bonds::{BondNotice, Bonds, bond_entries, port_health, take_bonds},
    standby::LinkHealth,
};
use switch_model::SwitchConfig;

/// A ring of four switches with a host each, a bond of three ports and a bond of two.
fn topology() -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> = (0..4).map(|n| builder.add_switch(&format!("s{n}"), Default::default()).unwrap()).collect();
    for n in 0..4 {
        let a = builder.add_port(ids[n], "next").unwrap();
        let b = builder.add_port(ids[(n + 1) % 4], "last").unwrap();
        builder.add_link(a, b, 1_000_000_000).unwrap();
        let port = builder.add_port(ids[n], "host").unwrap();
        builder.add_host(&format!("h{n}"), Mac::local(n as u32 + 1), port, 1_000_000_000, None).unwrap();
    }
    for (bond, switches) in [("m", &[0, 1, 2][..]), ("n", &[3, 2][..])] {
        for (number, switch) in switches.iter().enumerate() {
            let port = builder.add_port(ids[*switch], bond).unwrap();
            let name = format!("{bond}/{number}");
            if number == 0 {
                let mac = Mac::local(100 + u32::from(bond == "n"));
                let host = builder.add_host(&name, mac, port, 1_000_000_000, None).unwrap();
                builder.join_machine(bond).unwrap();
                builder.add_mac(host, Mac::local(200 + u32::from(bond == "n"))).unwrap();
            } else {
                builder.add_standby(&name, port, 1_000_000_000).unwrap();
            }
        }
    }
    builder.finish().unwrap()
}

fn plan() -> Plan {
    plan_with(&topology(), &Policy::default(), None, &mut StepLimit::new(2)).unwrap()
}

#[test]
fn entries_lead_to_the_planned_port_while_it_is_up_and_to_one_that_is_up_otherwise() {
    let plan = plan();
    let planned: Vec<HostId> =
        plan.topology.host_ids().filter(|host| plan.topology.standby_ports(*host).next().is_some()).collect();
    let (mut rng, mut moves) = (Rng::new(7), 0);
    let mut bonds = Bonds::new(&plan);
    for round in 0..5_000 {
        let health = [LinkHealth::Up, LinkHealth::Down, LinkHealth::Unknown];
        let ports: Vec<LinkHealth> = plan.topology.hosts().iter().map(|_| health[rng.below(3)]).collect();
        let before = bonds.topology().clone();
        let moved = bonds.handle_ports(&ports);
        assert_eq!(moved, before != *bonds.topology(), "round {round}");
        for &planned in &planned {
            let [was, is] = [&before, bonds.topology()].map(|topology| {
                let own = topology.machine(topology.host(planned).machine).hosts();
                let active: Vec<HostId> = own.filter(|port| !topology.host(*port).standby).collect();
                assert_eq!(active.len(), 1, "one port is active");
                active[0]
            });
            let mut own = plan.topology.machine(plan.topology.host(planned).machine).hosts();
            let is_up = |port: &HostId| ports[port.index()] == LinkHealth::Up;
            match ports[planned.index()] {
                LinkHealth::Up => assert_eq!(is, planned, "round {round}"),
                _ if ports[was.index()] != LinkHealth::Down => {
                    assert_eq!(is, was, "round {round}: nothing asks for it")
                }
                _ => assert!(is_up(&is) || (is == was && !own.any(|port| is_up(&port))), "round {round}"),
            }
        }
        while let Some(notice) = bonds.poll_notice() {
            moves += usize::from(matches!(notice, BondNotice::Moves { .. }));
        }
    }
    assert!(moves > 1_000, "{moves} moves");
}

#[test]
fn a_switch_without_links_leads_nowhere() {
    let plan = plan();
    let topology = &plan.topology;
    let mut running: Vec<Option<Vec<bool>>> =
        topology.switch_ids().map(|switch| Some(vec![true; topology.switch_ports(switch).len()])).collect();
    let up = vec![LinkHealth::Up; topology.links().len()];
    assert!(port_health(topology, &running, &up).iter().all(|health| *health == LinkHealth::Up));
    running[0] = None;
    let of = |host: &str, health: &[LinkHealth]| health[topology.find_host(host).unwrap().index()];
    assert_eq!(of("m/0", &port_health(topology, &running, &up)), LinkHealth::Unknown, "nobody knows");
    let cut: Vec<LinkHealth> = (topology.link_ids())
        .map(|link| {
            let ends = [topology.link(link).a, topology.link(link).b].map(|port| topology.port(port).switch.index());
            if ends.contains(&0) { LinkHealth::Down } else { LinkHealth::Up }
        })
        .collect();
    let health = port_health(topology, &running, &cut);
    assert_eq!((of("m/0", &health), of("m/1", &health)), (LinkHealth::Down, LinkHealth::Up));
    let mut bonds = Bonds::new(&plan);
    assert!(bonds.handle_ports(&health));
    assert!(!bonds.topology().host(topology.find_host("m/1").unwrap()).standby);
}

#[test]
fn what_switches_hold_says_which_port_is_active() {
    let plan = plan();
    let mut states = vec![plan.topology.clone()];
    for port in plan.topology.host_ids().filter(|host| plan.topology.host(*host).standby) {
        let more: Vec<Topology> = states.iter().map(|state| state.with_active(port)).collect();
        states.extend(more);
    }
    for state in &states {
        let mut held: Vec<Option<SwitchConfig>> =
            plan.devices.iter().map(|device| Some(SwitchConfig::of_intent(state, device))).collect();
        let exact = held.clone();
        assert_eq!(take_bonds(&plan, &mut held), *state);
        assert_eq!(held, exact, "nothing more is held");
        // What is read back is the plan, whichever port is active.
        for (config, device) in held.iter().zip(&plan.devices) {
            let read = config.as_ref().unwrap().to_intent(state, device);
            assert_eq!((&read.fdb, &read.foreign), (&device.fdb, &device.foreign));
            let entries = bond_entries(&plan, state, device.switch);
            assert!(entries.iter().all(|(entry, slot)| config.as_ref().unwrap().entries.get(entry) == Some(slot)));
        }
    }
    assert!(states.len() >= 6, "{} states", states.len());
}

/// A bond changes its port again and again, and switches carry it out one by one, in any order. A frame to it meets an entry at
/// every switch, whichever have turned; what a standby keeps is nothing that a reader of the switches finds amiss.
#[test]
fn no_switch_lacks_an_entry_while_a_bond_changes_its_port() {
    let plan = plan();
    let topology = &plan.topology;
    let bond =
        topology.host_ids().find(|host| topology.standby_ports(*host).count() == 2).expect("a bond of three ports");
    let addresses: Vec<Mac> = topology.host(bond).macs().collect();
    let own: Vec<HostId> = topology.machine(topology.host(bond).machine).hosts().collect();
    let mut bonds = Bonds::new(&plan);
    let entries =
        |bonds: &Bonds| -> Vec<_> { topology.switch_ids().map(|switch| bonds.entries(&plan, switch)).collect() };
    let (mut rng, mut held, mut delivered, mut late) = (Rng::new(11), entries(&bonds), 0, 0);
    for round in 0..2_000 {
        let up = rng.below(own.len());
        let mut health = vec![LinkHealth::Up; topology.hosts().len()];
        own.iter().filter(|port| **port != own[up]).for_each(|port| health[port.index()] = LinkHealth::Down);
        bonds.handle_ports(&health);
        let wanted = entries(&bonds);
        let mut order: Vec<usize> = (0..held.len()).collect();
        rng.shuffle(&mut order);
        for switch in order {
            held[switch] = wanted[switch].clone();
            for (source, mac) in topology.host_ids().filter(|host| !own.contains(host)).zip(addresses.iter().cycle()) {
                let device = &plan.devices[topology.switch_of(source).index()];
                let vlan =
                    device.ports.iter().find(|port| port.port == topology.host(source).port).unwrap().pvid.unwrap();
                let (mut at, mut came_by) = (topology.switch_of(source), topology.host(source).port);
                loop {
                    let slot = held[at.index()].get(&(vlan, *mac));
                    let slot = slot.unwrap_or_else(|| panic!("round {round}: {mac} floods at switch {}", at.index()));
                    let out = fabric::PortId::new(topology.switch_ports(at).start + slot.index());
                    match topology.port(out).attachment {
                        _ if out == came_by => break late += 1,
                        fabric::Attachment::Link(link) => {
                            let link = topology.link(link);
                            came_by = if link.a == out { link.b } else { link.a };
                            at = topology.port(came_by).switch;
                        }
                        fabric::Attachment::Host(host) => {
                            assert!(own.contains(&host), "round {round}: at somebody else");
                            break delivered += 1;
                        }
                        _ => panic!("round {round}: an entry leads nowhere"),
                    }
                }
            }
        }
        let mut configs: Vec<Option<SwitchConfig>> = (plan.devices.iter().zip(&held))
            .map(|(device, entries)| {
                let mut config = SwitchConfig::of_intent(bonds.topology(), device);
                config.entries.extend(entries);
                Some(config)
            })
            .collect();
        assert_eq!(take_bonds(&plan, &mut configs), *bonds.topology());
        for (config, device) in configs.iter().zip(&plan.devices) {
            assert_eq!(*config, Some(SwitchConfig::of_intent(bonds.topology(), device)));
        }
    }
    assert!(delivered > 10_000 && late > 100, "{delivered} delivered, {late} came back to where they came from");
}
