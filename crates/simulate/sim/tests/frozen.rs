//! No plan that is proven free of deadlock can be frozen, whatever is on the wire: data between hosts and what every host
//! floods, at line rate, with small buffers. Plans that are proven for unicast alone can be.
//!
//! `ESPALIER_FREEZES` sets how many random plans are tried; the default suits every commit.

mod common;

use common::{freezing_config, random_permutation};
use fabric::{
    Assignment, FdbMode, Flood, FloodSet, FlowControl, HostId, Plan, Policy, Tagging, Topology,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{StepLimit, plan_with, uncovered};
use sim::{
    packet::Simulation,
    workload::{Arrivals, Flow, Transport, Workload},
};

/// What a plan's switches are put under: a random permutation and, from each host, frames for nobody in particular.
fn workload(plan: &Plan, rng: &mut Rng) -> Workload {
    let hosts = plan.topology.hosts().len();
    let data = random_permutation(&plan.topology, rng);
    // Few floods leave most of the cables to data, many stop it nearly.
    let share = [0.1, 0.3, 1.0][rng.below(3)];
    let flood = |source: HostId| {
        let rate_bps = Some((plan.topology.host(source).rate_bps as f64 * share) as u64);
        let transport = Transport::Udp { rate_bps, arrivals: Arrivals::Poisson };
        Flow { destination: None, transport, ..Flow::flood(source, HostId::new((source.index() + 1) % hosts)) }
    };
    Workload { flows: data.into_iter().chain(plan.topology.host_ids().map(flood)).collect(), faults: Vec::new() }
}

fn topology(rng: &mut Rng) -> Topology {
    let fabrics: [(&str, &[&str]); 8] = [
        ("torus", &["3x3"]),
        ("torus", &["4x4"]),
        ("torus", &["3x5"]),
        ("mesh", &["4x3"]),
        ("hypercube", &["3"]),
        ("dragonfly", &["a=3", "h=1", "p=1"]),
        ("random-regular", &["n=10", "d=3"]),
        ("random-regular", &["n=12", "d=4"]),
    ];
    let (kind, words) = fabrics[rng.below(fabrics.len())];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    if kind == "random-regular" {
        words.push(format!("seed={}", 1 + rng.below(50)));
    }
    generate(&Kind::parse(kind, &words).expect("a valid size"), &Options::default()).expect("a sane size")
}

fn policy(rng: &mut Rng) -> Policy {
    Policy {
        tagging: Tagging::ALL[rng.below(Tagging::ALL.len())],
        flow_control: [FlowControl::Pause, FlowControl::Pause, FlowControl::Pfc(2)][rng.below(3)],
        fdb: [FdbMode::Minimal, FdbMode::Full][rng.below(2)],
        vlans_max: (rng.below(4) == 0).then(|| 1 + rng.below(10)),
        ..Policy::default()
    }
}

/// The plan with each host's broadcasts in its own tree, as plans were that prove unicast alone.
fn as_before(plan: &Plan) -> Plan {
    let mut before = plan.clone();
    match &mut before.assignment {
        Assignment::Destination { choice, broadcast } | Assignment::Priority { choice, broadcast, .. } => {
            broadcast.clone_from(choice);
        }
        Assignment::Source(_) | Assignment::Pair { .. } => {}
    }
    before
}

/// The same with switches that drop whatever they have no entry for: what waits is unicast alone.
fn dropping(plan: &Plan) -> Plan {
    let mut dropping = plan.clone();
    dropping.policy.flood = Flood::DropAll;
    for port in dropping.devices.iter_mut().flat_map(|device| &mut device.ports) {
        port.blocked = FloodSet::ALL;
    }
    dropping
}

#[test]
fn no_plan_that_is_proven_can_be_frozen() {
    let cases = std::env::var("ESPALIER_FREEZES").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let (mut proven, mut others, mut before, mut before_frozen) = (0, 0, 0, 0);
    for seed in 0..cases {
        let mut rng = Rng::new(seed);
        let (topology, policy) = (topology(&mut rng), policy(&mut rng));
        let Ok(plan) = plan_with(&topology, &policy, None, &mut StepLimit::new(8)) else { continue };
        let frozen = |plan: &Plan, rng: &mut Rng| {
            Simulation::new(plan, &workload(plan, rng), &freezing_config(seed)).finish().deadlock.is_some()
        };
        if uncovered(&plan).is_empty() {
            proven += 1;
            let what = format!("seed {seed}: {} tagging, {}", policy.tagging, policy.flow_control);
            assert!(!frozen(&plan, &mut rng), "{what}");
        } else {
            others += 1;
        }
        let old = as_before(&plan);
        if !uncovered(&old).is_empty() {
            before += 1;
            let mut again = rng.clone();
            if frozen(&old, &mut rng) {
                before_frozen += 1;
                assert!(!frozen(&dropping(&old), &mut again), "seed {seed}: what is dropped waits for nothing");
            }
        }
    }
    eprintln!("{proven} proven, {others} not; {before_frozen} of {before} frozen that prove unicast alone");
    assert!(proven * 2 > cases as usize, "{proven} of {cases}");
    assert!(before_frozen * 20 > before && before_frozen > 0, "{before_frozen} of {before}");
}
