//! What outages cost, against every frame followed through the switches that are left.

use std::collections::BTreeSet;

use fabric::{HostId, LinkId, Mac, Plan, Policy, SwitchId, Topology, TopologyBuilder, rng::Rng};
use verify::{Losses, Outage, links_lost_at_most, losses, switch_losses};

/// A random cabling with bonds, hosts, and switches without hosts.
fn cabling(rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let count = 2 + rng.below(6);
    let ids: Vec<SwitchId> =
        (0..count).map(|number| builder.add_switch(&format!("s{number}"), Default::default()).unwrap()).collect();
    let mut ports = 0;
    let mut port = |builder: &mut TopologyBuilder, at: usize| {
        ports += 1;
        builder.add_port(ids[at], &format!("p{ports}")).unwrap()
    };
    let further: Vec<(usize, usize)> = (0..rng.below(6)).map(|_| (rng.below(count), rng.below(count))).collect();
    let tree: Vec<(usize, usize)> = (1..count).map(|at| (at, rng.below(at))).collect();
    for (a, b) in tree.into_iter().chain(further).filter(|(a, b)| a != b) {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, 1_000_000_000).unwrap();
    }
    for number in 0..1 + rng.below(7) {
        let mac = Mac::local(number as u32 + 1);
        let at = port(&mut builder, rng.below(count));
        if rng.below(3) > 0 {
            builder.add_host(&format!("h{number}"), mac, at, 1_000_000_000, None).unwrap();
            continue;
        }
        let bond = format!("m{number}");
        builder.add_host(&format!("{bond}/0"), mac, at, 1_000_000_000, None).unwrap();
        builder.join_machine(&bond).unwrap();
        let beside = port(&mut builder, rng.below(count));
        builder.add_standby(&format!("{bond}/1"), beside, 1_000_000_000).unwrap();
    }
    builder.finish().unwrap()
}

/// The same by following every pair by itself.
fn one_by_one(plan: &Plan, outage: &Outage) -> Losses {
    let planned = &plan.topology;
    let alive = |host: HostId| !outage.switches.contains(&planned.switch_of(host));
    let mut found = Losses::default();
    let mut active = Vec::new();
    for host in planned.host_ids().filter(|host| !planned.host(*host).standby) {
        match planned.standby_ports(host).find(|port| alive(*port)) {
            _ if alive(host) => active.push(host),
            Some(port) => {
                found.taking_over.push(port);
                active.push(port);
            }
            None => found.cut_off.push(host),
        }
    }
    let topology = active.iter().fold(planned.clone(), |topology, port| topology.with_active(*port));
    let works = |link: LinkId| {
        let ends = [topology.link(link).a, topology.link(link).b].map(|port| topology.port(port).switch);
        !outage.links.contains(&link) && ends.iter().all(|end| !outage.switches.contains(end))
    };
    for &source in &active {
        let mut reached = BTreeSet::from([topology.switch_of(source)]);
        while let Some(next) = (topology.link_ids().filter(|link| works(*link)))
            .flat_map(|link| {
                let [a, b] = [topology.link(link).a, topology.link(link).b].map(|port| topology.port(port).switch);
                [(a, b), (b, a)]
            })
            .find_map(|(a, b)| (reached.contains(&a) && !reached.contains(&b)).then_some(b))
        {
            reached.insert(next);
        }
        for &to in active.iter().filter(|to| **to != source) {
            found.pairs += 1;
            let tree = plan.tree(plan.assignment.unicast(source, to)).expect("a tree");
            let rooted = tree.tree.rooted_at(&topology, topology.switch_of(source));
            let way = rooted.path_to(&topology, topology.switch_of(to));
            if way.iter().any(|channel| !works(channel.link())) {
                found.lost += 1;
                found.divided += usize::from(!reached.contains(&topology.switch_of(to)));
            }
        }
    }
    found
}

#[test]
fn outages_cost_what_following_every_pair_finds() {
    let (mut lost, mut divided, mut taken_over) = (0, 0, 0);
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let topology = cabling(&mut rng);
        let tagging = fabric::Tagging::ALL[seed as usize % fabric::Tagging::ALL.len()];
        let policy = Policy { tagging, ..Policy::default() };
        let plan = planner::plan_with(&topology, &policy, None, &mut planner::StepLimit::new(2)).unwrap();
        for (switch, alone) in topology.switch_ids().zip(switch_losses(&plan)) {
            let outage = Outage { switches: [switch].into(), ..Outage::default() };
            assert_eq!(alone, one_by_one(&plan, &outage), "seed {seed}: {switch:?}");
        }
        for _ in 0..6 {
            let switches = (0..rng.below(3)).map(|_| SwitchId::new(rng.below(topology.switches().len()))).collect();
            let links: BTreeSet<LinkId> = (0..rng.below(3).min(topology.links().len()))
                .map(|_| LinkId::new(rng.below(topology.links().len())))
                .collect();
            let outage = Outage { switches, links };
            let found = losses(&plan, &outage);
            assert_eq!(found, one_by_one(&plan, &outage), "seed {seed}: {outage:?}");
            if outage.switches.is_empty() {
                assert!(found.lost <= links_lost_at_most(&plan, outage.links.len()), "seed {seed}");
            }
            (lost, divided) = (lost + found.lost, divided + found.divided);
            taken_over += found.taking_over.len();
        }
    }
    assert!(
        lost > divided + 200 && divided > 200 && taken_over > 20,
        "{lost} lost, {divided} divided, {taken_over} bonds"
    );
}
