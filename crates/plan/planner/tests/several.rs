//! Plans for several kinds of traffic at once: loads and the bound are those of the worst of them, by the judge, which works all of
//! it out by itself, and by plans for one kind.

use std::collections::BTreeSet;

use fabric::{
    Demand, FlowControl, HostId, Mac, Plan, Policy, Resilience, Severity, SwitchId, SwitchSpec, Tagging, Topology,
    TopologyBuilder, Traffic, TrafficMatrix,
    format::plan::{ReadMode, read_plan, write_plan},
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, REPLAN_LOAD_FACTOR, StepLimit, channel_times, plan, plan_with, times_by_traffic};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// In every mode, on any cabling and for any matrices, the judge has nothing to say; a summary of the lesser load it refutes.
    #[test]
    fn any_matrices_are_planned_for(
        switches in 2_usize..12,
        extra in 1_usize..20,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in prop::sample::select(&[FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][..]),
        resilience in prop::sample::select(Resilience::ALL),
        all_to_all in any::<bool>(),
        kinds in 2_usize..4,
    ) {
        let mut rng = Rng::new(seed);
        let topology = random_topology(switches, extra, &mut rng);
        let mut matrices: Vec<TrafficMatrix> = (0..kinds).map(|_| random_matrix(&topology, &mut rng)).collect();
        let traffic = if all_to_all { Traffic::AllToAll } else { Traffic::Matrix(matrices.remove(0)) };
        let policy =
            Policy { tagging, flow_control, resilience, traffic, further_traffic: matrices, ..Policy::default() };
        let whole = match plan_with(&topology, &policy, None, &mut StepLimit::new(3)) {
            // Chance may leave no VLANs for what failures need.
            Err(PlanError::TooManyVlansForResilience { .. }) => return Ok(()),
            planned => planned.expect("a plan"),
        };
        prop_assert_eq!(&whole.policy, &policy);
        let report = verify::check(&whole);
        let minor = |severity| severity != Severity::Fatal;
        prop_assert!(report.findings().iter().all(|finding| minor(finding.severity)), "{}", report);
        // What it says of each is what the same routes load if that is all there is.
        let times = times_by_traffic(&whole);
        let mut worst = 0.0_f64;
        for (kind, time) in times.iter().enumerate() {
            let one = for_one(&whole, kind);
            worst = worst.max(*time);
            let most = channel_times(&one).into_iter().fold(0.0, f64::max);
            prop_assert!((most - time).abs() <= 1e-9 * time);
        }
        prop_assert!((worst - whole.summary.max_channel_time).abs() <= 1e-9 * worst);
        prop_assert!(worst >= whole.summary.load_bound * (1.0 - 1e-9));
        if let Some(less) = times.iter().copied().filter(|time| *time < 0.99 * worst).reduce(f64::max) {
            let mut lies = whole.clone();
            lies.summary.max_channel_time = less;
            prop_assert!(!verify::check(&lies).is_deployable(), "{less} is not {worst}");
        }
        let mut text = Vec::new();
        write_plan(&whole, &mut text).expect("in memory");
        prop_assert_eq!(&read_plan(&text, ReadMode::Strict).expect("what was written"), &whole);
        prop_assert_eq!(&plan(&topology, &policy, Some(&whole)).expect("nothing to do"), &whole);
    }
}

/// A torus by day shifts along its rows, by night along its columns: the plan for both is as good for each as for the worse.
#[test]
fn a_plan_for_two_matrices_is_better_for_the_worse_than_a_plan_for_either() {
    let kind = Kind::parse("torus", &["6x6".to_owned()]).expect("a valid size");
    let torus = generate(&kind, &Options::default()).expect("a sane size");
    let shifted = |by: usize, amount: f64| {
        let demands = torus.host_ids().flat_map(|source| {
            let to = HostId::new((source.index() + by) % torus.hosts().len());
            torus.host_ids().filter(move |other| *other != source).map(move |destination| {
                let amount = if destination == to { amount } else { 1.0 };
                Demand { source, destination, amount }
            })
        });
        TrafficMatrix::new(torus.hosts().len(), demands.collect()).expect("sound demands")
    };
    let (day, night) = (shifted(9, 60.0), shifted(14, 60.0));
    let with = |traffic: &TrafficMatrix, further: &[&TrafficMatrix]| {
        let further_traffic = further.iter().copied().cloned().collect();
        let traffic = Traffic::Matrix(traffic.clone());
        plan(&torus, &Policy { traffic, further_traffic, ..Policy::default() }, None).expect("always possible")
    };
    let both = with(&day, &[&night]);
    let worst_of = |plan: Plan| {
        let policy =
            Policy { traffic: both.policy.traffic.clone(), further_traffic: vec![night.clone()], ..plan.policy };
        times_by_traffic(&Plan { policy, ..plan }).into_iter().fold(0.0, f64::max)
    };
    let alone = [&day, &night].map(|matrix| with(matrix, &[]));
    let own = alone.each_ref().map(|plan| plan.summary.max_channel_time);
    let [by_day, by_night] = alone.map(worst_of);
    let worst = both.summary.max_channel_time;
    println!(
        "both {worst} of at least {}; by day {by_day}, by night {by_night}; alone {own:?}",
        both.summary.load_bound
    );
    assert!(worst < 0.9 * by_day && worst < 0.9 * by_night, "{worst} for both, {by_day} by day, {by_night} by night");
    assert!(verify::check(&both).is_deployable());
}

/// A cable dies: what follows keeps the traffic, the judge agrees, and most of the trees stay.
#[test]
fn a_plan_that_follows_another_is_for_the_same_traffic() {
    let mut rng = Rng::new(11);
    let topology = random_topology(10, 14, &mut rng);
    let further_traffic = vec![random_matrix(&topology, &mut rng), random_matrix(&topology, &mut rng)];
    let policy = Policy { further_traffic, ..Policy::default() };
    let before = plan(&topology, &policy, None).expect("always possible");
    let mut builder = TopologyBuilder::of(&topology);
    let link = topology.link_ids().last().expect("a cable beyond the tree");
    builder.remove_links(&BTreeSet::from([link]));
    let less = builder.finish().expect("a tree is left");
    let after = plan(&less, &policy, Some(&before)).expect("always possible");
    assert_eq!(after.policy.further_traffic, policy.further_traffic);
    assert!(verify::check(&after).is_deployable(), "{}", verify::check(&after));
    let afresh = plan(&less, &policy, None).expect("always possible").summary.max_channel_time;
    let time = after.summary.max_channel_time;
    let anew = planner::better_anew(&after, &mut StepLimit::by_request(&less, &policy));
    assert!(
        time <= REPLAN_LOAD_FACTOR * afresh || anew.is_some(),
        "{time} where {afresh} is to be had, which nobody says"
    );
}

#[test]
fn a_matrix_for_other_hosts_is_refused() {
    let mut rng = Rng::new(5);
    let [small, large] = [4, 9].map(|switches| random_topology(switches, 3, &mut rng));
    let further_traffic = vec![random_matrix(&small, &mut rng)];
    let policy = Policy { further_traffic, ..Policy::default() };
    assert_eq!(plan(&large, &policy, None), Err(PlanError::OtherTraffic { hosts: large.hosts().len() }));
    let mut planned = plan(&small, &policy, None).expect("always possible");
    planned.policy.further_traffic = vec![random_matrix(&large, &mut rng)];
    assert!(!verify::check(&planned).is_deployable());
}

/// The plan as if one kind of its traffic were all.
fn for_one(plan: &Plan, kind: usize) -> Plan {
    let mut one = plan.clone();
    one.policy.further_traffic.clear();
    if kind > 0 {
        one.policy.traffic = Traffic::Matrix(plan.policy.further_traffic[kind - 1].clone());
    }
    one
}

/// Sparse or dense, with some demands a hundred times as large as others.
fn random_matrix(topology: &Topology, rng: &mut Rng) -> TrafficMatrix {
    let share = rng.unit_f64();
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            if rng.unit_f64() < share {
                let size = if rng.below(10) == 0 { 100.0 } else { 1.0 };
                demands.push(Demand { source, destination, amount: size * (0.1 + rng.unit_f64()) });
            }
        }
    }
    TrafficMatrix::new(topology.hosts().len(), demands).expect("sound demands")
}

/// A connected cabling of cables of two rates, with one or two hosts a switch.
fn random_topology(switches: usize, extra: usize, rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<SwitchId> = (0..switches)
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    let mut links: Vec<(usize, usize)> = (1..switches).map(|b| (rng.below(b), b)).collect();
    links.extend((0..extra).map(|_| (rng.below(switches), rng.below(switches))).filter(|(a, b)| a != b));
    for (number, (a, b)) in links.into_iter().enumerate() {
        let [a, b] = [a, b].map(|at| builder.add_port(ids[at], &format!("p{number}")).expect("a fresh port"));
        builder.add_link(a, b, [1_000_000_000, 10_000_000_000][rng.below(2)]).expect("free ports");
    }
    let mut number = 0;
    for id in ids {
        for _ in 0..1 + rng.below(2) {
            number += 1;
            let port = builder.add_port(id, &format!("h{number}")).expect("a fresh port");
            builder
                .add_host(&format!("h{number}"), Mac::local(number), port, 1_000_000_000, None)
                .expect("a free port");
        }
    }
    builder.finish().expect("a tree connects everything")
}
