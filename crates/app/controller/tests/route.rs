//! The states on the way of a change under traffic, with addresses that ports have learned and a bond that has failed over.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use controller::{DeployRequest, HostTables, NotHitless, Route, Start, Trial, Unconfirmable, hitless};
use fabric::{
    Attachment, HostId, Mac, Plan, Policy, PortId, Severity, SwitchId, Topology, TopologyBuilder,
    format::native::parse_native, rng::Rng,
};
use planner::{StepLimit, plan_with};
use rollout::{
    addresses::Addresses,
    deploy::{LiveStage, Precedence, Way},
};
use switch_model::SwitchConfig;

/// A ring of four switches and, unless it is cut, a chord; a plain host at each and hypervisors at three of them, two at the first.
fn cabling(has_chord: bool) -> Topology {
    let chord = if has_chord { "  - s0:to2 -- s2:to0\n" } else { "" };
    let mut text = format!(
        "switches: {{s0: , s1: , s2: , s3: }}\nlinks:\n  - s0:to1 -- s1:to0\n  - s1:to2 -- s2:to1\n  - s2:to3 -- s3:to2\n  - s3:to0 -- s0:to3\n{chord}hosts:\n"
    );
    for n in 0..4 {
        text += &format!("  h{n}: {{mac: \"{}\", port: \"s{n}:host\"}}\n", Mac::local(n + 1));
    }
    for (n, switch) in [0, 1, 0, 2].into_iter().enumerate() {
        let mac = Mac::local(11 + n as u32);
        text += &format!(
            "  vmhost{n}: {{mac: \"{mac}\", port: \"s{switch}:vm{n}\", addresses: learned, addresses-max: 3}}\n"
        );
    }
    parse_native("ring.yaml", &text).expect("a topology")
}

/// Whether a frame from a host's port for an address behind another arrives, by entries, in the VLAN that the port sends in now. Where a
/// switch has none for it, the address's own one has learned its port.
fn arrives(topology: &Topology, states: &[SwitchConfig], from: HostId, mac: Mac, to: HostId) -> bool {
    let place = |port: PortId| {
        let switch = topology.port(port).switch;
        (switch, port.index() - topology.switch_ports(switch).start)
    };
    let (mut switch, slot) = place(topology.host(from).port);
    let Some(vlan) = states[switch.index()].ports[slot].pvid else { return false };
    let mut by = None;
    for _ in 0..=topology.switches().len() {
        let out = match states[switch.index()].entries.get(&(vlan, mac)) {
            Some(out) => out.index(),
            None if switch == topology.switch_of(to) => return true,
            None => return false,
        };
        let ports = topology.switch_ports(switch);
        let port = PortId::new(ports.start + out);
        if by == Some(port) {
            return false;
        }
        let is_member = |state: &SwitchConfig, slot: usize| {
            state.ports[slot].tagged.contains(vlan) || state.ports[slot].untagged.contains(vlan)
        };
        if !is_member(&states[switch.index()], out) {
            return false;
        }
        match topology.port(port).attachment {
            Attachment::Host(host) => return host == to,
            Attachment::Link(link) => {
                let ends = topology.link(link);
                let far = if ends.a == port { ends.b } else { ends.a };
                switch = place(far).0;
                by = Some(far);
            }
            Attachment::Nothing | Attachment::Member(_) => return false,
        }
    }
    false
}

fn request<'a>(old: &'a Plan, new: &'a Plan, known: &'a BTreeMap<Mac, HostId>) -> DeployRequest<'a> {
    DeployRequest {
        plan: new,
        since: Some(old),
        hosts_program: &[],
        learned: known,
        start: Start::Fresh,
        precedence: Precedence::GiveWay,
        replaced: &[],
        trusted: &[],
        unconfirmed: Unconfirmable::Refuse,
        trial: Trial::Never,
        guard: Duration::from_secs(90),
        cable_wait: Duration::ZERO,
    }
}

#[test]
fn learned_addresses_are_reached_by_entries_in_every_state_of_a_change_under_traffic() {
    let (mut rng, mut states_seen, mut ways) = (Rng::new(3), 0, BTreeSet::new());
    for seed in 0..12_u64 {
        let policy = |seed: u64| Policy { seed, vlans_max: (seed % 2 == 1).then_some(3), ..Policy::default() };
        let old = plan_with(&cabling(true), &policy(seed), None, &mut StepLimit::new(2)).unwrap();
        let is_cut = seed % 3 == 0;
        let previous = is_cut.then_some(&old);
        let new = plan_with(&cabling(!is_cut), &policy(seed + 1), previous, &mut StepLimit::new(2)).unwrap();
        let ports: Vec<HostId> = old.topology.learning_hosts().collect();
        let known: BTreeMap<Mac, HostId> =
            (0..7).map(|n| (Mac::local(100 + n), ports[n as usize % ports.len()])).collect();
        let request = request(&old, &new, &known);
        let route = Route::new(&request).unwrap();
        let Way::Live { start, stages } = &route.way else { panic!("a change under traffic") };
        let entries = |plan: &Plan, switch: SwitchId| {
            let addresses = Addresses::new(plan, &known, Duration::from_secs(60)).unwrap();
            assert_eq!(addresses.known(), known);
            addresses.entries(switch)
        };
        let of_learned =
            |config: &SwitchConfig| config.entries.iter().filter(|((_, mac), _)| known.contains_key(mac)).count();
        for switch in route.topology.switch_ids() {
            let (first, last) = (&start[switch.index()], &route.goals[switch.index()]);
            assert_eq!(of_learned(first.as_ref().unwrap()), entries(&old, switch).len(), "seed {seed}");
            assert_eq!(of_learned(last), entries(&new, switch).len(), "seed {seed}");
            let own = entries(&new, switch);
            assert!(own.iter().all(|(key, slot)| last.entries.get(key) == Some(slot)), "seed {seed}");
        }
        // Switches may carry out a stage in any order. What was reached before stays so; where a cable is gone, not all is.
        let pairs = || {
            let from = route.topology.host_ids();
            from.flat_map(|from| {
                known.iter().filter(move |(_, to)| **to != from).map(move |(mac, to)| (from, *mac, *to))
            })
        };
        let reached = |held: &[SwitchConfig]| -> BTreeSet<(HostId, Mac, HostId)> {
            pairs().filter(|(from, mac, to)| arrives(&route.topology, held, *from, *mac, *to)).collect()
        };
        let all: BTreeSet<_> = pairs().collect();
        let mut held: Vec<SwitchConfig> = start.iter().flatten().cloned().collect();
        let mut before = reached(&held);
        assert_eq!(before.len() < all.len(), is_cut, "seed {seed}");
        ways.insert(stages.len());
        for (at, stage) in stages.iter().enumerate() {
            let LiveStage::Switches(stage) = stage else { panic!("switches tag") };
            let mut order: Vec<SwitchId> = stage.keys().copied().collect();
            rng.shuffle(&mut order);
            for switch in order {
                held[switch.index()] = stage[&switch].clone();
                states_seen += 1;
                let after = reached(&held);
                let lost: Vec<_> = before.difference(&after).collect();
                assert!(lost.is_empty(), "seed {seed}, stage {at}, {switch:?}: {lost:?}");
                before = after;
            }
        }
        assert_eq!(before, all, "seed {seed}");
        assert_eq!(held, route.goals, "seed {seed}");
    }
    assert!(states_seen > 100 && ways.iter().any(|stages| *stages > 3), "{states_seen} {ways:?}");
}

/// A bond that uses another port than planned goes on using it, and the judge finds the plan's own figures.
#[test]
fn a_change_while_a_bond_uses_another_port_is_as_sound_as_its_plan() {
    let mut others = 0;
    for seed in 0..12_u64 {
        let mut text = "switches: {s0: , s1: , s2: , s3: }\nlinks:\n  - s0:to1 -- s1:to0\n  - s1:to2 -- s2:to1\n  \
             - s2:to3 -- s3:to2\n  - s1:to3 -- s3:to1\nhosts:\n"
            .to_owned();
        for n in 0..4 {
            text += &format!("  h{n}: {{mac: \"{}\", port: \"s{n}:host\"}}\n", Mac::local(n + 1));
        }
        text += &format!(
            "machines:\n  login: {{bond: failover, mac: \"{}\", nics: {{eth0: {{port: \"s0:m\"}}, eth1: {{port: \"s1:m\"}}}}}}\n",
            Mac::local(9)
        );
        let topology = parse_native("bond.yaml", &text).unwrap();
        let policy = |seed: u64| Policy { seed, ..Policy::default() };
        let plan = |seed: u64| plan_with(&topology, &policy(seed), None, &mut StepLimit::new(2)).unwrap();
        let (old, new, known) = (plan(seed), plan(seed + 1), BTreeMap::new());
        let active = topology.with_active(topology.find_host("login/eth1").unwrap());
        let found: Vec<Option<SwitchConfig>> =
            old.devices.iter().map(|device| Some(SwitchConfig::of_intent(&active, device))).collect();
        let request = request(&old, &new, &known);
        let route = Route::new(&request).unwrap().begun_from(&request, &found, None).unwrap();
        let wanted: Vec<SwitchConfig> =
            new.devices.iter().map(|device| SwitchConfig::of_intent(&active, device)).collect();
        assert_eq!(route.goals, wanted, "seed {seed}");
        let report = verify::check(&route.plan.as_held(&route.goals));
        let fatal: Vec<_> = report.findings().iter().filter(|finding| finding.severity == Severity::Fatal).collect();
        assert!(fatal.is_empty(), "seed {seed}: {fatal:?}");
        // With the figures of the port in use it would find others.
        let judged = verify::check(&Plan { topology: active, ..new.clone() });
        others += usize::from(judged.findings().iter().any(|finding| finding.severity == Severity::Fatal));
    }
    assert!(others > 0, "some plans have other figures");
}

/// A ring of five switches, managed over its data ports.
fn managed_in_band() -> Topology {
    let mut text = "switches: {s0: , s1: , s2: , s3: , s4: }\nlinks:\n".to_owned();
    (0..5).for_each(|n| text += &format!("  - s{n}:next -- s{}:before\n", (n + 1) % 5));
    text += "management: {vlan: 1, controller: \"s0:controller\"}\nhosts:\n";
    (0..5).for_each(|n| text += &format!("  h{n}: {{mac: \"{}\", port: \"s{n}:host\"}}\n", Mac::local(n + 1)));
    parse_native("ring.yaml", &text).expect("a topology")
}

/// Whoever asks whether a change is hitless is told what a deployment of it would be told.
#[test]
fn a_change_that_is_called_hitless_has_a_route() {
    let whole = managed_in_band();
    let of = |topology: &Topology, previous| {
        plan_with(topology, &Policy::default(), previous, &mut StepLimit::new(2)).expect("a plan")
    };
    let old = of(&whole, None);
    let (mut ways, mut moved) = (0, 0);
    for link in whole.link_ids() {
        let mut builder = TopologyBuilder::of(&whole);
        builder.remove_links(&BTreeSet::from([link]));
        let less = of(&builder.finish().expect("a row"), Some(&old));
        for (before, after) in [(&old, &less), (&less, &old)] {
            let known = BTreeMap::new();
            let route = Route::new(&request(before, after, &known));
            match hitless(before, after, HostTables::ByHand) {
                Ok(_) => {
                    ways += 1;
                    assert!(route.is_ok(), "{:?}", route.err().map(|error| error.words()));
                }
                Err(reason) => {
                    moved += usize::from(reason == NotHitless::Management);
                    let words = route.expect_err("no hitless change").words();
                    assert!(words.contains(&reason.to_string()), "{reason} / {words}");
                }
            }
        }
    }
    assert!(ways > 0 && moved > 0, "{ways} ways, {moved} with other cables for management");
}
