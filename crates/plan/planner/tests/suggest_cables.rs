//! Suggested cables: the obvious ones where there are some, figures that hold, and close to the best single cable.

use fabric::{FlowControl, Mac, Plan, Policy, SwitchSpec, Topology, TopologyBuilder, rng::Rng};
use planner::{CableEnd, CableSearch, CableStep, FreePorts, StepLimit, SuggestedCables, plan, plan_with};
use proptest::prelude::*;

/// Steps of each plan: enough for fabrics of a few switches.
const STEPS: u64 = 6;
/// Random fabrics on which every single cable is tried.
const FABRICS: u64 = 16;
/// How many times the maximum load of the best single cable the suggested one's may be on small fabrics.
const BEST_FACTOR: f64 = 1.1;

/// Switches with `hosts[switch]` hosts, `free[switch]` ports without a cable, and links between them.
fn fabric_of(hosts: &[usize], free: &[usize], links: &[(usize, usize)]) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> = (0..hosts.len())
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    for (number, &(a, b)) in links.iter().enumerate() {
        let [a, b] = [a, b].map(|end| builder.add_port(ids[end], &format!("p{number}")).expect("a fresh port"));
        builder.add_link(a, b, 1_000_000_000).expect("free ports");
    }
    let mut number = 0;
    for (at, &id) in ids.iter().enumerate() {
        for _ in 0..hosts[at] {
            number += 1;
            let port = builder.add_port(id, &format!("h{number}")).expect("a fresh port");
            builder.add_host(&format!("h{number}"), Mac::local(number), port, 1_000_000_000, None).expect("fresh");
        }
        (0..free[at]).for_each(|port| {
            builder.add_port(id, &format!("f{port}")).expect("a fresh port");
        });
    }
    builder.finish().expect("connected")
}

fn planned(topology: &Topology, policy: &Policy) -> Plan {
    plan_with(topology, policy, None, &mut StepLimit::new(STEPS)).expect("auto always finds a plan")
}

/// Drives a search to its end.
fn suggested(topology: &Topology, policy: &Policy, wanted: usize) -> SuggestedCables {
    let mut search = CableSearch::new(topology, policy, wanted, 1);
    let mut plans = search.plans_left_max();
    loop {
        let next = match search.poll_step() {
            CableStep::Plan(topology) => topology.clone(),
            CableStep::Ranked => continue,
            CableStep::Done => return search.finish(),
        };
        let plan = plan_with(&next, policy, None, &mut StepLimit::new(STEPS));
        search.handle_plan(plan).expect("auto always finds a plan");
        assert!(search.plans_left_max() < plans, "no more plans than were announced");
        plans = search.plans_left_max();
    }
}

/// The names of the switches that a suggested cable joins.
fn ends(topology: &Topology, found: &SuggestedCables) -> Vec<[String; 2]> {
    let name = |port| topology.switch(topology.port(port).switch).name.clone();
    found.cables.iter().map(|cable| [name(cable.a), name(cable.b)]).collect()
}

/// The topology with a cable between two ports.
fn with_cable(topology: &Topology, a: fabric::PortId, b: fabric::PortId, rate_bps: u64) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    builder.add_link(a, b, rate_bps).expect("free ports");
    builder.finish().expect("connected")
}

#[test]
fn the_ends_of_a_path_are_joined_to_a_ring() {
    let path = fabric_of(&[2; 4], &[1, 0, 0, 1], &[(0, 1), (1, 2), (2, 3)]);
    let found = suggested(&path, &Policy::default(), 1);
    assert_eq!(ends(&path, &found), [["s0".to_owned(), "s3".to_owned()]]);
    let cable = found.cables[0];
    // 16 pairs cross the middle; in a ring of four, 8 pairs are two hops apart and share four channels each way.
    assert_eq!((cable.before.load_bound, cable.before.max_channel_load), (16.0, 16.0));
    assert_eq!((cable.after.load_bound, cable.after.max_channel_load), (8.0, 8.0));
    assert_eq!((found.end, found.rate_bps), (CableEnd::Complete, 1_000_000_000));
}

/// A path whose inner switches have free ports as well: only the ends make a ring.
#[test]
fn among_many_free_ports_the_right_ones_are_found() {
    let path = fabric_of(&[2; 6], &[2; 6], &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    // A ring cannot be balanced on one lossless lane.
    let policy = Policy { flow_control: FlowControl::None, ..Policy::default() };
    let found = suggested(&path, &policy, 1);
    assert_eq!(ends(&path, &found), [["s0".to_owned(), "s5".to_owned()]]);
}

#[test]
fn two_clusters_get_a_second_joint() {
    // Full meshes of four, joined by one cable between s0 and s4.
    let mesh = |from: usize| (from..from + 4).flat_map(move |a| (a + 1..from + 4).map(move |b| (a, b)));
    let links: Vec<_> = mesh(0).chain(mesh(4)).chain([(0, 4)]).collect();
    let clusters = fabric_of(&[2; 8], &[1; 8], &links);
    let found = suggested(&clusters, &Policy::default(), 2);
    assert_eq!(found.cables.len(), 2, "{found:?}");
    for [a, b] in ends(&clusters, &found) {
        let side = |name: &str| name[1..].parse::<usize>().expect("a number") / 4;
        assert_ne!(side(&a), side(&b), "{a} and {b} are on one side");
    }
    let loads: Vec<f64> = found.cables.iter().map(|cable| cable.before.max_channel_load).collect();
    assert_eq!(loads[0], 64.0, "all that crosses takes one cable");
    assert!(loads[1] == 32.0 && found.cables[1].after.max_channel_load < 32.0, "{found:?}");
}

#[test]
fn a_ring_gets_a_chord_that_shortens_most() {
    let ring = fabric_of(&[2; 6], &[1; 6], &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]);
    let found = suggested(&ring, &Policy::default(), 1);
    let best = best_single(&ring, &Policy::default());
    assert_eq!(found.cables[0].after.max_channel_time, best, "{found:?}");
}

#[test]
fn where_no_cable_helps_that_is_said() {
    // All that crosses crosses between s1 and s2, which have no free port.
    let path = fabric_of(&[2; 4], &[1, 0, 0, 0], &[(0, 1), (1, 2), (2, 3)]);
    let found = suggested(&path, &Policy::default(), 3);
    assert_eq!((found.cables.len(), found.end), (0, CableEnd::NoPorts));
    // Both free ports are on one side of the joint.
    let path = fabric_of(&[1, 1, 4], &[2, 2, 0], &[(0, 1), (1, 2)]);
    let found = suggested(&path, &Policy::default(), 3);
    assert!(found.cables.is_empty(), "{found:?}");
    assert_eq!(found.end, CableEnd::NoGain { pairs: 1, planned: 0, refused: None, proven: true });
    // A full mesh of switches with a host each: one pair on every channel, which no cable lowers.
    let mesh = fabric_of(&[1; 3], &[1; 3], &[(0, 1), (1, 2), (2, 0)]);
    let found = suggested(&mesh, &Policy::default(), 1);
    assert!(found.cables.is_empty() && found.end != CableEnd::Complete, "{found:?}");
}

/// The second cable is between what the first one left free, and the third finds nothing.
#[test]
fn every_port_is_used_once() {
    let path = fabric_of(&[6, 6], &[2, 2], &[(0, 1)]);
    let found = suggested(&path, &Policy::default(), 9);
    let loads: Vec<_> = found.cables.iter().map(|cable| cable.after.max_channel_load).collect();
    assert_eq!(loads, [18.0, 12.0], "36 pairs on two, then on three cables");
    assert_eq!(found.end, CableEnd::NoPorts);
    let mut ports: Vec<_> = found.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 4);
}

#[test]
fn ports_that_a_model_lists_are_known_and_others_are_not() {
    let mut builder = TopologyBuilder::new();
    let spec = |model: Option<&str>| SwitchSpec { model: model.map(str::to_owned), mgmt: None };
    let listed = builder.add_switch("listed", spec(Some("powerconnect-5324"))).expect("fresh");
    let any = builder.add_switch("any", spec(None)).expect("fresh");
    let port = builder.add_port(listed, "g3").expect("listed");
    let other = builder.add_port(any, "p1").expect("fresh");
    builder.add_link(port, other, 1_000_000_000).expect("free ports");
    let topology = builder.finish().expect("connected");
    let free = FreePorts::of(&topology);
    assert_eq!((free.of[0].len(), free.of[1].len()), (23, 0));
    assert_eq!((free.full, free.unknown), (vec![], vec![fabric::SwitchId::new(1)]));
}

#[test]
fn a_search_that_is_stopped_keeps_what_it_has() {
    let path = fabric_of(&[2; 6], &[2; 6], &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    let mut search = CableSearch::new(&path, &Policy::default(), 2, 1);
    let mut plans = 0;
    while search.taken() == 0 {
        let next = match search.poll_step() {
            CableStep::Plan(topology) => topology.clone(),
            CableStep::Ranked => continue,
            CableStep::Done => panic!("there is a cable that helps"),
        };
        search.handle_plan(Ok(planned(&next, &Policy::default()))).expect("it plans");
        plans += 1;
    }
    search.stop();
    let found = search.finish();
    assert_eq!((found.cables.len(), found.end), (1, CableEnd::Stopped));
    assert!(plans > 1);
}

/// The lowest maximum load that a single further cable gives, by planning with each.
fn best_single(topology: &Topology, policy: &Policy) -> f64 {
    let free = FreePorts::of(topology).of;
    let first = |switch: usize| free[switch].first().copied();
    let switches = topology.switches().len();
    let pairs = (0..switches).flat_map(|a| (a + 1..switches).map(move |b| (a, b)));
    let ends = pairs.filter_map(|(a, b)| Some((first(a)?, first(b)?)));
    let times = ends.map(|(a, b)| {
        let more = with_cable(topology, a, b, topology.rate_max_bps());
        planned(&more, policy).summary.max_channel_time
    });
    times.fold(planned(topology, policy).summary.max_channel_time, f64::min)
}

/// A connected fabric of `switches` with `extra` cables beyond a tree, up to two hosts and two free ports a switch.
fn random_fabric(switches: usize, extra: usize, seed: u64) -> Topology {
    let mut rng = Rng::new(seed);
    let mut links: Vec<(usize, usize)> = (1..switches).map(|b| (rng.below(b), b)).collect();
    links.extend((0..extra).map(|_| (rng.below(switches), rng.below(switches))).filter(|(a, b)| a != b));
    let hosts: Vec<usize> = (0..switches).map(|at| if at < 2 { 1 } else { rng.below(3) }).collect();
    let free: Vec<usize> = (0..switches).map(|_| rng.below(3)).collect();
    fabric_of(&hosts, &free, &links)
}

#[test]
fn the_suggestion_is_close_to_the_best_single_cable() {
    let (mut helped, mut worst) = (0, 1.0_f64);
    for seed in 0..FABRICS {
        let topology = random_fabric(4 + seed as usize % 5, seed as usize % 4, seed);
        let policy = Policy::default();
        let found = suggested(&topology, &policy, 1);
        let now = found.now.expect("it was planned").max_channel_time;
        let reached = found.cables.first().map_or(now, |cable| cable.after.max_channel_time);
        let best = best_single(&topology, &policy);
        worst = worst.max(reached / best);
        helped += usize::from(best < now);
        assert!(reached <= best * BEST_FACTOR, "seed {seed}: {reached} where {best} is possible; {found:?}");
    }
    eprintln!(
        "{helped} of {FABRICS} fabrics have a cable that helps; the suggestion is at worst {worst:.3} times the best one"
    );
    assert!(helped >= FABRICS as usize / 2, "{helped}");
}

/// What `plan` itself makes of the cabling with the suggested cables, in its own number of steps, is what was stated.
#[test]
fn a_plan_made_afresh_has_the_figures_that_were_stated() {
    let topology = random_fabric(7, 2, 5);
    let policy = Policy::default();
    let mut search = CableSearch::new(&topology, &policy, 1, 1);
    let found = loop {
        let next = match search.poll_step() {
            CableStep::Plan(topology) => topology.clone(),
            CableStep::Ranked => continue,
            CableStep::Done => break search.finish(),
        };
        search.handle_plan(plan(&next, &policy, None)).expect("it plans");
    };
    let cable = found.cables.first().expect("a cable helps");
    let more = with_cable(&topology, cable.a, cable.b, found.rate_bps);
    let summary = plan(&more, &policy, None).expect("it plans").summary;
    assert_eq!((summary.load_bound, summary.max_channel_time), (cable.after.load_bound, cable.after.max_channel_time));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Each figure is that of a plan made afresh with the cables so far, each cable of use comes from free ports, and the
    /// judge finds nothing.
    #[test]
    fn stated_figures_are_those_of_fresh_plans(switches in 2_usize..9, extra in 0_usize..5, seed in any::<u64>()) {
        let topology = random_fabric(switches, extra, seed);
        let policy = Policy { seed: seed % 7, ..Policy::default() };
        let found = suggested(&topology, &policy, 2);
        prop_assert_eq!(&found, &suggested(&topology, &policy, 2));
        let mut more = topology.clone();
        let mut before = planned(&more, &policy).summary;
        for cable in &found.cables {
            let [a, b] = [cable.a, cable.b];
            prop_assert!([a, b].iter().all(|port| more.port(*port).attachment == fabric::Attachment::Nothing));
            more = with_cable(&more, a, b, found.rate_bps);
            let plan = planned(&more, &policy);
            prop_assert!(verify::check(&plan).is_deployable());
            let after = plan.summary;
            let stated = [cable.before, cable.after].map(|figures| (figures.load_bound, figures.max_channel_time));
            let real = [&before, &after].map(|summary| (summary.load_bound, summary.max_channel_time));
            prop_assert_eq!(stated, real);
            before = after;
        }
        if let Some(last) = found.cables.last() {
            prop_assert!(last.after.max_channel_time < last.before.max_channel_time);
        }
        if found.cables.len() < 2 {
            prop_assert_ne!(found.end, CableEnd::Complete);
        }
    }
}
