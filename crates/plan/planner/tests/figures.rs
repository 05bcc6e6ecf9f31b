//! What a plan says of itself, three times over: by the planner from its trees, by the judge from the tables, and here by
//! following one frame for every ordered pair of hosts, step by step.

mod common;

use common::Cabling;
use fabric::{
    Demand, EngineName, FdbMode, FlowControl, HostId, Plan, Policy, Severity, Summary, Tagging, Topology, Traffic,
    TrafficMatrix,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{StepLimit, plan_with};
use proptest::prelude::*;
use verify::{Arrival, Disposition, Receiver, walk};

const FLOWS: [FlowControl; 4] = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2), FlowControl::Pfc(4)];
const CAPS: [Option<usize>; 4] = [None, Some(1), Some(3), Some(8)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// Every figure of every mode, engine, cap and cabling is the same from all three.
    #[test]
    fn planner_judge_and_frames_agree(
        switches in 1_usize..10,
        extra in 0_usize..18,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        fdb in prop::sample::select(&[FdbMode::Full, FdbMode::Minimal][..]),
        engine in prop::sample::select(EngineName::ALL),
        flow_control in prop::sample::select(&FLOWS[..]),
        vlans_max in prop::sample::select(&CAPS[..]),
        matrix in any::<bool>(),
        steps in 0_u64..16,
    ) {
        let mut rng = Rng::new(seed);
        let topology = Cabling::random(switches, extra, &mut rng).topology().expect("a tree connects everything");
        let traffic = if matrix { random_traffic(&topology, &mut rng) } else { Traffic::AllToAll };
        let policy = Policy { tagging, fdb, engine, flow_control, vlans_max, traffic, ..Policy::default() };
        // An engine by name may not apply, or need more VLANs.
        if let Ok(plan) = plan_with(&topology, &policy, None, &mut StepLimit::new(steps)) {
            agree(&plan, "a random cabling");
        }
    }
}

#[test]
fn they_agree_on_known_fabrics_in_every_mode() {
    let mut planned = 0;
    for (kind, size) in
        [("fat-tree", "2,4,2"), ("torus", "4x3"), ("mesh", "3x3"), ("random-regular", "n=10,d=3,seed=4")]
    {
        let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
        let topology = generate(&kind, &Options::default()).expect("a sane size");
        for &tagging in Tagging::ALL {
            for &engine in EngineName::ALL {
                for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)] {
                    for vlans_max in [None, Some(3)] {
                        let policy = Policy { tagging, engine, flow_control, vlans_max, ..Policy::default() };
                        let what = format!("{kind}, {engine}, {tagging} tagging, {flow_control}, cap {vlans_max:?}");
                        let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(12));
                        match plan {
                            Ok(plan) => {
                                agree(&plan, &what);
                                planned += 1;
                            }
                            Err(error) => {
                                assert!(!matches!(engine, EngineName::Auto | EngineName::Balanced), "{what}: {error}");
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(planned > 400, "only {planned} requests were planned");
}

/// What a host sends to another: nothing within a machine, unless a matrix says so, and nothing from or to standby ports, of which all
/// is at the active port.
fn demand(plan: &Plan, source: HostId, destination: HostId) -> f64 {
    let topology = &plan.topology;
    let [from, to] = [source, destination].map(|host| topology.host(host));
    if from.standby || to.standby {
        return 0.0;
    }
    if plan.policy.traffic == Traffic::AllToAll {
        return f64::from(u8::from(from.machine != to.machine));
    }
    let ports = |host: &fabric::Host| {
        let mac = host.mac;
        topology.host_ids().filter(move |port| topology.host(*port).mac == mac).collect::<Vec<_>>()
    };
    let pairs = ports(from).into_iter().flat_map(|a| ports(to).into_iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b).map(|(a, b)| plan.policy.traffic.demand(a, b)).sum()
}

/// The judge finds no figure wrong, and neither does whoever follows every frame.
fn agree(plan: &Plan, what: &str) {
    let report = verify::check(plan);
    let fatal: Vec<String> = (report.findings().iter())
        .filter(|finding| finding.severity == Severity::Fatal)
        .map(ToString::to_string)
        .collect();
    assert!(fatal.is_empty(), "{what}: {fatal:#?}");
    let topology = &plan.topology;
    let hosts = topology.hosts().len();
    let mut load = vec![0.0; topology.channel_count()];
    let (mut hops_total, mut hops_max) = (0, 0);
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            let frame = walk(plan, source, Receiver::Host(destination));
            assert_eq!(frame.disposition, Disposition::Delivered, "{what}: {source:?} to {destination:?}");
            let mut hops = 0;
            for exit in frame.steps.iter().flat_map(|step| &step.exits) {
                if let Arrival::Switch(ingress, _) = exit.arrival {
                    let crossed = topology.channel_ids().find(|channel| topology.head_port(*channel) == ingress);
                    let crossed = crossed.expect("a frame enters a switch from a link");
                    load[crossed.index()] += demand(plan, source, destination);
                    hops += 1;
                }
            }
            hops_total += hops;
            hops_max = hops_max.max(hops);
        }
    }
    let Summary { avg_hops, avg_switches_per_path, max_switches_per_path, max_channel_load, .. } = plan.summary;
    let ratio = |total: usize, count: usize| if count == 0 { 0.0 } else { total as f64 / count as f64 };
    let close = |figure: &str, said: f64, seen: f64| {
        assert!((said - seen).abs() <= 1e-9 * seen.abs(), "{what}: {figure} {said}, but frames have {seen}");
    };
    close("avg_hops", avg_hops, ratio(hops_total, hosts * (hosts - 1)));
    close("avg_switches_per_path", avg_switches_per_path, ratio(hops_total, hosts * hosts) + 1.0);
    assert_eq!(max_switches_per_path, hops_max + 1, "{what}");
    close("max_channel_load", max_channel_load, load.iter().copied().fold(0.0, f64::max));
    let time = topology.channel_ids().map(|channel| load[channel.index()] * topology.slowness(channel));
    close("max_channel_time", plan.summary.max_channel_time, time.fold(0.0, f64::max));
    let entries = || plan.devices.iter().map(|device| device.fdb_len(&plan.topology));
    assert_eq!(plan.summary.fdb_entries_total, entries().sum::<usize>(), "{what}");
    assert_eq!(plan.summary.fdb_entries_max, entries().max().unwrap_or(0), "{what}");
    assert_eq!(plan.summary.vlans, plan.trees.len(), "{what}");
    assert!(plan.policy.vlans_max.is_none_or(|most| plan.trees.len() <= most), "{what}");
}

/// Some pairs want something, others nothing.
fn random_traffic(topology: &Topology, rng: &mut Rng) -> Traffic {
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            if rng.below(3) > 0 {
                demands.push(Demand { source, destination, amount: 1.0 + rng.below(9) as f64 });
            }
        }
    }
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands).expect("demands of hosts that there are"))
}
