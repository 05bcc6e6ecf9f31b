//! Plans within the channel order of a previous one: while a fabric changes from the one to the other, no frames wait for
//! each other for ever, as `transition` finds from the entries alone.
//!
//! Requests are randomly chosen; a failure names its seed. `ESPALIER_REQUESTS` sets how many.

mod common;

use common::Cabling;
use fabric::{
    Demand, FdbMode, FlowControl, Plan, Policy, Resilience, Tagging, Topology, Traffic, TrafficMatrix,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with, plan_within_order};
use transition::Deadlock;

fn requests() -> u64 {
    std::env::var("ESPALIER_REQUESTS").ok().and_then(|count| count.parse().ok()).unwrap_or(150)
}

/// Each host sends to one other, one to three times as much.
fn shuffled(hosts: usize, rng: &mut Rng) -> Traffic {
    let mut to: Vec<usize> = (0..hosts).collect();
    rng.shuffle(&mut to);
    let pairs = fabric::HostId::all(hosts).zip(to.into_iter().map(fabric::HostId::new));
    let demands = pairs
        .filter(|(source, destination)| source != destination)
        .map(|(source, destination)| Demand { source, destination, amount: (1 + rng.below(3)) as f64 })
        .collect();
    Traffic::Matrix(TrafficMatrix::new(hosts, demands).expect("sane demands"))
}

fn generated(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a size");
    generate(&kind, &Options::default()).expect("a cabling")
}

/// A cabling and the policy of its first plan.
fn request(seed: u64, rng: &mut Rng) -> (Topology, Policy) {
    let topology = match rng.below(3) {
        0 => Cabling::random(3 + rng.below(8), 2 + rng.below(9), rng).topology().expect("connected"),
        1 => generated("torus", ["3x4", "4x4", "3x3x2"][rng.below(3)]),
        _ => generated("random-regular", &format!("n={},d=4,seed={seed}", 8 + rng.below(9))),
    };
    let policy = Policy {
        tagging: Tagging::ALL[rng.below(Tagging::ALL.len())],
        flow_control: [FlowControl::Pause, FlowControl::Pfc(2), FlowControl::Pfc(4)][rng.below(3)],
        fdb: [FdbMode::Full, FdbMode::Minimal][rng.below(2)],
        resilience: if rng.below(4) == 0 { Resilience::OneLink } else { Resilience::None },
        seed: 1 + seed,
        ..Policy::default()
    };
    let further = rng.below(3) == 0 && policy.resilience == Resilience::None && policy.tagging == Tagging::Pair;
    let paths_max = if further { 3 } else { 1 };
    (topology, Policy { paths_max, ..policy })
}

/// How the change from one plan to another goes, if there is one.
fn deadlock(old: &Plan, new: &Plan) -> Option<Deadlock> {
    transition::steps(old, new).ok().map(|change| change.deadlock)
}

#[test]
fn changes_within_the_order_are_free_of_deadlock() {
    let (mut planned, mut moved, mut unproven_anew) = (0_u64, 0_u64, 0);
    for seed in 0..requests() {
        let rng = &mut Rng::new(seed);
        let (topology, policy) = request(seed, rng);
        let few = || StepLimit::new(2);
        let Ok(old) = plan_with(&topology, &policy, None, &mut few()) else { continue };
        let asked = Policy { traffic: shuffled(topology.hosts().len(), rng), ..policy.clone() };
        if matches!(&asked.traffic, Traffic::Matrix(matrix) if matrix.is_empty()) {
            continue;
        }
        let what = format!("seed {seed}, {policy:?}");
        let within = match plan_within_order(&topology, &asked, &old, &mut few()) {
            Err(PlanError::OtherOrder { .. }) => continue,
            plan => plan.unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        planned += 1;
        let report = verify::check(&within);
        assert!(report.is_deployable(), "{what}\n{report}");
        let changed = deadlock(&old, &within);
        assert!(matches!(changed, None | Some(Deadlock::Impossible(_))), "{what}: {changed:?}");
        moved += u64::from(changed.is_some() && within.assignment != old.assignment);
        let anew = plan_with(&topology, &asked, None, &mut few()).expect("another plan");
        unproven_anew += usize::from(deadlock(&old, &anew) == Some(Deadlock::Unproven));
    }
    eprintln!("{planned} planned, {moved} with other routes; {unproven_anew} plans made anew are not proven");
    assert!(2 * planned > requests(), "{planned}");
    assert!(5 * moved > planned && unproven_anew > 0, "{moved} of {planned}, {unproven_anew}");
}

/// What other traffic asks for is found within the order as well: the most loaded links of permutations carry less.
#[test]
fn the_order_leaves_room_for_other_traffic() {
    let topology = generated("random-regular", "n=18,d=4,seed=3");
    let policy = Policy { flow_control: FlowControl::Pause, ..Policy::default() };
    let old = plan_with(&topology, &policy, None, &mut StepLimit::by_request(&topology, &policy)).expect("a plan");
    let mut times = [0.0; 2];
    for seed in 0..3 {
        let traffic = shuffled(topology.hosts().len(), &mut Rng::new(seed));
        let asked = Policy { traffic, ..policy.clone() };
        let mut steps = StepLimit::by_request(&topology, &asked);
        let within = plan_within_order(&topology, &asked, &old, &mut steps).expect("a plan");
        assert!(matches!(deadlock(&old, &within), Some(Deadlock::Impossible(_))), "seed {seed}");
        let present = Plan { policy: asked, ..old.clone() };
        for (sum, plan) in times.iter_mut().zip([&present, &within]) {
            *sum += planner::channel_times(plan).into_iter().fold(0.0, f64::max);
        }
    }
    assert!(times[1] <= 0.75 * times[0], "{times:?}");
}
