//! Failover bonds as a state machine: random port states, and switches read back in every state.

use std::time::Duration;

use fabric::{HostId, Mac, Plan, Policy, Topology, TopologyBuilder, rng::Rng};
use planner::{StepLimit, plan_with};
use rollout::{
    bonds::{BondNotice, Bonds, Reading, bond_entries, port_health, take_bonds},
    standby::LinkHealth,
};
use switch_model::{
    Entries, SwitchConfig,
    observe::{Count, Received},
};

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
        let moved = bonds.handle_ports(Duration::from_secs(round), &ports);
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
    assert!(bonds.handle_ports(Duration::ZERO, &health));
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
        bonds.handle_ports(Duration::ZERO, &health);
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

/// A bond of three ports as its host runs it, and what switches count of it.
struct Machine {
    ports: Vec<HostId>,
    up: Vec<bool>,
    used: usize,
    sends: bool,
    /// Unicast and broadcast frames, by port.
    received: Vec<[u64; 2]>,
}

impl Machine {
    fn new(plan: &Plan) -> Self {
        let topology = &plan.topology;
        let planned = topology.host_ids().find(|host| topology.standby_ports(*host).count() == 2).expect("a bond");
        let ports: Vec<HostId> = std::iter::once(planned).chain(topology.standby_ports(planned)).collect();
        Self { ports, up: vec![true; 3], used: 0, sends: true, received: vec![[0; 2]; 3] }
    }

    fn uses(&mut self, port: usize) {
        if port != self.used {
            self.used = port;
            self.received[port][1] += 1;
        }
    }

    /// A port goes down or comes up: the bond goes back to its primary one once that works, and keeps its own while it does.
    fn flip(&mut self, port: usize) {
        self.up[port] ^= true;
        let first = self.up.iter().position(|up| *up);
        match first {
            Some(0) if port == 0 => self.uses(0),
            Some(first) if !self.up[self.used] => self.uses(first),
            _ => {}
        }
    }

    fn received(&self, port: usize) -> Received {
        let [unicast, broadcast] = self.received[port];
        match port {
            // Wraps at once.
            1 => Received {
                unicast: Count::Narrow(u32::MAX.wrapping_sub(50).wrapping_add(unicast as u32)),
                broadcast: Count::Narrow(u32::MAX.wrapping_add(broadcast as u32)),
            },
            _ => Received { unicast: Count::Wide(unicast), broadcast: Count::Wide(broadcast) },
        }
    }

    fn is_at(&self, bonds: &Bonds) -> bool {
        !bonds.topology().host(self.ports[self.used]).standby
    }

    /// Polls every port every 50 ms for a while, one after the other.
    fn live(&mut self, bonds: &mut Bonds, plan: &Plan, now_ms: &mut u64, lasts_ms: u64) {
        for _ in 0..lasts_ms / 50 {
            *now_ms += 50;
            let now = Duration::from_millis(*now_ms);
            for (nth, port) in self.ports.iter().enumerate() {
                let sent = u64::from(self.sends && self.up[self.used]);
                self.received[self.used][0] += sent;
                let (at, up_cs) = (now + Duration::from_millis(nth as u64 * 10), (*now_ms / 10) as u32);
                bonds.handle_reading(*port, Reading { at, up_cs, received: self.received(nth) });
            }
            let mut health = vec![LinkHealth::Up; plan.topology.hosts().len()];
            for (port, _) in self.ports.iter().zip(&self.up).filter(|(_, up)| !**up) {
                health[port.index()] = LinkHealth::Down;
            }
            bonds.handle_ports(now, &health);
        }
    }
}

/// Ports fail and come back, somebody changes the active one, and the bond sends or does not: some seconds later entries lead to the port
/// that it uses, and stay there.
#[test]
fn entries_follow_whatever_a_bond_of_three_ports_does() {
    let plan = plan();
    let (mut by_state, mut by_frames) = (0, 0);
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let (mut machine, mut bonds, mut now_ms) = (Machine::new(&plan), Bonds::new(&plan), 0);
        machine.live(&mut bonds, &plan, &mut now_ms, 2_000);
        for round in 0..40 {
            match rng.below(4) {
                0 => {
                    let port = rng.below(3);
                    if !machine.up[port] || machine.up.iter().filter(|up| **up).count() > 1 {
                        machine.flip(port);
                    }
                }
                1 => machine.sends ^= true,
                _ => {
                    let port = rng.below(3);
                    if machine.up[port] {
                        machine.uses(port);
                    }
                }
            }
            // Where little is sent, and after many turns, the port in use is silent for longer before it counts as left.
            let within_ms = if machine.sends { 12_000 } else { 62_000 };
            machine.live(&mut bonds, &plan, &mut now_ms, within_ms);
            assert!(machine.is_at(&bonds), "seed {seed}, round {round}: the bond uses its port {}", machine.used);
            let turned: Vec<BondNotice> = std::iter::from_fn(|| bonds.poll_notice()).collect();
            assert!(turned.len() <= 1, "seed {seed}, round {round}: {turned:?}");
            by_state += turned.iter().filter(|notice| matches!(notice, BondNotice::Moves { .. })).count();
            by_frames += turned.iter().filter(|notice| matches!(notice, BondNotice::Sends { .. })).count();
            machine.live(&mut bonds, &plan, &mut now_ms, rng.below(3_000) as u64);
            assert!(bonds.poll_notice().is_none(), "seed {seed}, round {round}: it stays");
        }
    }
    assert!(by_state > 30 && by_frames > 100, "{by_state} by states, {by_frames} by frames");
}

/// A bond stays at the port that switches were found to use, until its frames or a port say otherwise.
#[test]
fn what_switches_hold_is_taken_up() {
    let plan = plan();
    let mut machine = Machine::new(&plan);
    machine.used = 2;
    let state = plan.topology.with_active(machine.ports[2]);
    let held: Vec<Entries> = plan.topology.switch_ids().map(|switch| bond_entries(&plan, &state, switch)).collect();
    for (sends, used) in [(true, 2), (false, 2), (true, 0), (true, 1)] {
        let (mut bonds, mut now_ms) = (Bonds::held(&plan, &held), 0);
        assert_eq!(*bonds.topology(), state);
        (machine.sends, machine.used) = (sends, used);
        machine.live(&mut bonds, &plan, &mut now_ms, 12_000);
        assert!(machine.is_at(&bonds), "it sends from port {used}: {sends}");
        let turned: Vec<BondNotice> = std::iter::from_fn(|| bonds.poll_notice()).collect();
        assert_eq!(turned.len(), usize::from(used != 2), "{turned:?}");
    }
}

/// A bond that sends from several ports at once is none of active-backup, and its entries are not turned without end.
#[test]
fn entries_do_not_turn_without_end() {
    let plan = plan();
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let (mut machine, mut bonds, mut now_ms, mut turns) = (Machine::new(&plan), Bonds::new(&plan), 0, 0);
        for _ in 0..1_500 {
            machine.used = rng.below(3);
            machine.received[machine.used][1] += 1;
            machine.live(&mut bonds, &plan, &mut now_ms, 200);
            while bonds.poll_notice().is_some() {
                turns += 1;
            }
        }
        assert!(turns < 50, "seed {seed}: {turns} turns within 300 s");
    }
}
