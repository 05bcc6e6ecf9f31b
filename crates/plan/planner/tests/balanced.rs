//! The balanced engine on hundreds of random cablings, judged by walking every route and by `verify`.

use std::collections::BTreeMap;

use fabric::{
    ChannelId, EngineName, Finding, FlowControl, Mac, Plan, Policy, Severity, SwitchSpec, Tagging, Topology,
    TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{StepLimit, Watch, plan_with};

const FLOWS: [FlowControl; 4] = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2), FlowControl::Pfc(4)];

#[test]
fn random_cablings_plan_under_every_flow_control() {
    for seed in 0..300 {
        let topology = random_topology(seed);
        let flows: Vec<FlowControl> =
            [FlowControl::None, FlowControl::Pause].into_iter().chain((2..=8).map(FlowControl::Pfc)).collect();
        let one = [flows[seed as usize % flows.len()]];
        for &flow_control in if seed < 20 { &flows[..] } else { &one } {
            let plan = balanced(&topology, flow_control, seed, if seed % 10 == 0 { 30 } else { 4 });
            judge(&plan, &format!("seed {seed}, {flow_control}"));
            let report = verify::check(&plan);
            let notes = flow_control == FlowControl::None;
            let expected = |finding: &Finding| notes && finding.severity == Severity::Note;
            assert!(report.findings().iter().all(expected), "seed {seed}, {flow_control}\n{report}");
        }
    }
}

#[test]
fn other_taggings_plan_too() {
    for seed in 0..12 {
        let topology = random_topology(seed);
        for &tagging in Tagging::ALL {
            for flow_control in FLOWS {
                let policy = Policy { engine: EngineName::Balanced, tagging, flow_control, ..Policy::default() };
                let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(2)).expect("always possible");
                judge(&plan, &format!("seed {seed}, {tagging}, {flow_control}"));
            }
        }
    }
}

#[test]
fn no_engine_is_better() {
    for seed in 0..16 {
        let topology = random_topology(seed);
        for flow_control in FLOWS {
            let balanced = balanced(&topology, flow_control, 1, 4);
            for engine in [EngineName::Dor, EngineName::Clos, EngineName::Updown] {
                let policy = Policy { engine, flow_control, ..Policy::default() };
                let Ok(other) = plan_with(&topology, &policy, None, &mut StepLimit::new(0)) else { continue };
                let (own, other) = (seconds_max(&balanced), seconds_max(&other));
                assert!(own <= other * 1.000_001, "seed {seed}, {flow_control}: {own} against {other} by {engine}");
            }
        }
    }
}

#[test]
fn the_same_steps_give_the_same_plan_and_more_steps_no_worse_one() {
    for seed in 0..10 {
        let topology = random_topology(seed);
        let plans = [0, 3, 3, 12].map(|steps| balanced(&topology, FlowControl::Pause, seed, steps));
        assert_eq!(plans[1], plans[2], "seed {seed}");
        assert!(seconds_max(&plans[3]) <= seconds_max(&plans[1]), "seed {seed}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_plan() {
    for (kind, size, steps) in
        [("torus", "5x7", 70), ("random-regular", "n=40,d=5,seed=2", 80), ("dragonfly", "a=4,h=2", 50)]
    {
        let topology = known(kind, size);
        for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)] {
            // Also where steps run out in the midst of work that is shared.
            for steps in [steps / 7, steps / 2, steps] {
                let plans = [1, 2, 3].map(|threads| {
                    let policy = Policy { engine: EngineName::Balanced, flow_control, ..Policy::default() };
                    let mut watch = Threaded { steps: StepLimit::new(steps), threads };
                    plan_with(&topology, &policy, None, &mut watch).expect("balanced always plans")
                });
                assert!(plans.iter().all(|plan| *plan == plans[0]), "{kind} {size}, {flow_control}, {steps} steps");
            }
        }
    }
}

#[test]
fn large_tori_are_searched_by_their_symmetries() {
    let torus = Kind::parse("torus", &["8x10x8".to_owned()]).expect("a valid size");
    let topology = generate(&torus, &Options { shuffle: Some(3), ..Options::default() }).expect("a sane size");
    let flow_control = FlowControl::Pfc(2);
    let dor = Policy { engine: EngineName::Dor, flow_control, ..Policy::default() };
    let dor = plan_with(&topology, &dor, None, &mut StepLimit::new(0)).expect("a torus has structure");
    let plans = [1, 2].map(|threads| {
        let policy = Policy { engine: EngineName::Balanced, flow_control, ..Policy::default() };
        let mut watch = Threaded { steps: StepLimit::new(150), threads };
        plan_with(&topology, &policy, None, &mut watch).expect("balanced always plans")
    });
    assert_eq!(plans[0], plans[1]);
    judge(&plans[0], "torus 8x10x8");
    assert!(verify::check(&plans[0]).findings().is_empty());
    // No routing can have less than 800.
    assert_eq!(dor.summary.max_channel_load, 960.0);
    assert!(plans[0].summary.max_channel_load <= 900.0, "{}", plans[0].summary.max_channel_load);
}

#[test]
fn any_cap_on_vlans_is_kept() {
    let topology = known("random-regular", "n=24,d=4,seed=3");
    for vlans_max in [1, 2, 8, 24] {
        for flow_control in FLOWS {
            let policy =
                Policy { engine: EngineName::Balanced, flow_control, vlans_max: Some(vlans_max), ..Policy::default() };
            let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(4)).expect("one tree always fits");
            judge(&plan, &format!("{vlans_max} VLANs, {flow_control}"));
            assert!(plan.trees.len() <= vlans_max);
        }
    }
}

#[test]
fn known_fabrics_come_close_to_their_bounds() {
    for (kind, size, flow_control, steps, load_max) in [
        ("mesh", "8x8", FlowControl::None, 10, 128),
        ("mesh", "8x8", FlowControl::Pause, 10, 128),
        ("torus", "4x4", FlowControl::None, 10, 8),
        ("torus", "4x4", FlowControl::Pause, 10, 8),
        ("torus", "4x4x4", FlowControl::Pause, 10, 32),
        ("torus", "5x7", FlowControl::Pfc(2), 0, 30),
        ("torus", "9x5", FlowControl::Pfc(3), 0, 50),
        ("torus", "8x8", FlowControl::None, 40, 64),
        // Nothing has structure there, so a hurried order comes first.
        ("random-regular", "n=128,d=8,seed=3", FlowControl::Pause, 120, 60),
        ("hyperx", "8x8", FlowControl::Pause, 10, 8),
        ("fat-tree", "k=8", FlowControl::Pause, 10, 124),
        ("random-regular", "n=64,d=6,seed=5", FlowControl::None, 60, 31),
    ] {
        let topology = known(kind, size);
        let plan = balanced(&topology, flow_control, 1, steps);
        judge(&plan, &format!("{kind}, {flow_control}"));
        let load = plan.summary.max_channel_load;
        assert!(load <= f64::from(load_max), "{kind}, {flow_control}: {load}, and {load_max} is possible");
    }
}

#[test]
fn equal_odd_rings_reach_their_bounds_on_two_lanes_where_pairs_choose() {
    for (size, load) in [("5x5", 15.0), ("7x7", 42.0), ("9x9", 90.0)] {
        let topology = known("torus", size);
        for engine in [EngineName::Dor, EngineName::Auto, EngineName::Balanced] {
            let flow_control = FlowControl::Pfc(2);
            let policy = Policy { engine, tagging: Tagging::Pair, flow_control, ..Policy::default() };
            let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(0)).expect("a torus has structure");
            let what = format!("{size}, {engine}");
            judge(&plan, &what);
            let report = verify::check(&plan);
            assert!(report.findings().iter().all(|finding| finding.severity == Severity::Note), "{what}: {report}");
            assert_eq!((plan.summary.max_channel_load, plan.summary.lanes), (load, 2), "{what}");
        }
    }
}

/// So many steps on so many threads.
struct Threaded {
    steps: StepLimit,
    threads: usize,
}

impl Watch for Threaded {
    fn expired(&mut self) -> bool {
        self.steps.expired()
    }

    fn progress(&mut self, _load: f64, _bound: f64) {}

    fn threads(&self) -> usize {
        self.threads
    }

    fn steps_left(&self) -> u64 {
        self.steps.steps_left()
    }
}

fn known(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

fn balanced(topology: &Topology, flow_control: FlowControl, seed: u64, steps: u64) -> Plan {
    let policy = Policy { engine: EngineName::Balanced, flow_control, seed, ..Policy::default() };
    plan_with(topology, &policy, None, &mut StepLimit::new(steps)).expect("balanced always plans")
}

/// Walks every route of a plan in its tree, recounts the loads and checks the certificate.
fn judge(plan: &Plan, what: &str) {
    let topology = &plan.topology;
    let mut load = vec![0.0; topology.channel_count()];
    let mut hops = 0;
    let mut rooted = BTreeMap::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            let vlan = plan.assignment.unicast(source, destination);
            let tree = plan.tree(vlan).expect("an assigned VLAN has a tree");
            let root = topology.switch_of(source);
            let rooted = rooted.entry((vlan, root)).or_insert_with(|| tree.tree.rooted_at(topology, root));
            let end = topology.switch_of(destination);
            assert!(rooted.covers(end), "{what}: VLAN {vlan} of {source:?} does not reach {destination:?}");
            let path = rooted.path_to(topology, end);
            assert_path(topology, &path, root, end, what);
            path.iter().for_each(|channel| load[channel.index()] += 1.0);
            hops += path.len();
            if let Some(certificate) = &plan.certificate {
                let rank = &certificate.rank[usize::from(tree.lane)];
                for turn in path.windows(2) {
                    assert!(rank[turn[0].index()] < rank[turn[1].index()], "{what}: ranks do not rise");
                }
            }
        }
    }
    let allowed = plan.policy.flow_control.lanes();
    assert!(allowed.is_none() || plan.certificate.is_some(), "{what}: no proof");
    assert!(plan.trees.iter().all(|tree| tree.lane < allowed.unwrap_or(1)), "{what}: too many lanes");
    assert_eq!(load.into_iter().fold(0.0, f64::max), plan.summary.max_channel_load, "{what}");
    let pairs = topology.hosts().len() * (topology.hosts().len() - 1);
    let average = if pairs == 0 { 0.0 } else { hops as f64 / pairs as f64 };
    assert!((average - plan.summary.avg_hops).abs() < 1e-9, "{what}");
}

fn assert_path(topology: &Topology, path: &[ChannelId], from: fabric::SwitchId, to: fabric::SwitchId, what: &str) {
    let mut at = from;
    for &channel in path {
        assert_eq!(topology.tail(channel), at, "{what}: a path has a gap");
        at = topology.head(channel);
    }
    assert_eq!(at, to, "{what}: a path ends elsewhere");
}

/// The longest time that any channel is busy with all-to-all, from routes walked anew.
fn seconds_max(plan: &Plan) -> f64 {
    let topology = &plan.topology;
    let mut load = vec![0.0; topology.channel_count()];
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            let tree = plan.tree(plan.assignment.unicast(source, destination)).expect("an assigned VLAN has a tree");
            let rooted = tree.tree.rooted_at(topology, topology.switch_of(source));
            for channel in rooted.path_to(topology, topology.switch_of(destination)) {
                load[channel.index()] += 1.0 / topology.link(channel.link()).rate_bps as f64;
            }
        }
    }
    load.into_iter().fold(0.0, f64::max)
}

/// A connected cabling of 1 to 40 switches: a random tree, which has cut switches, some cables more, some in parallel, of
/// three rates, and none to three hosts a switch, but at least one in all.
fn random_topology(seed: u64) -> Topology {
    const RATES_BPS: [u64; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];
    let mut rng = Rng::new(seed);
    let switches = 1 + rng.below(if seed % 4 == 0 { 40 } else { 16 });
    let mut links: Vec<(usize, usize)> = (1..switches).map(|switch| (rng.below(switch), switch)).collect();
    for _ in 0..rng.below(2 * switches) {
        let (a, b) = (rng.below(switches), rng.below(switches));
        if a != b {
            links.push((a, b));
        } else if !links.is_empty() {
            links.push(links[rng.below(links.len())]);
        }
    }
    let mut builder = TopologyBuilder::new();
    let spec = || SwitchSpec { model: None, mgmt: None };
    let ids: Vec<_> =
        (0..switches).map(|n| builder.add_switch(&format!("s{n}"), spec()).expect("names differ")).collect();
    let mut ports = 0;
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        ports += 1;
        builder.add_port(ids[switch], &format!("p{ports}")).expect("names differ")
    };
    let mixed = rng.below(2) == 0;
    for (a, b) in links {
        let rate_bps = if mixed { RATES_BPS[rng.below(3)] } else { RATES_BPS[1] };
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, rate_bps).expect("free ports");
    }
    let mut hosts = 0;
    for switch in 0..switches {
        let count = if hosts == 0 && switch == switches - 1 { 1 } else { rng.below(4) };
        for _ in 0..count {
            hosts += 1;
            let at = port(&mut builder, switch);
            let name = format!("h{hosts}");
            builder.add_host(&name, Mac::local(hosts), at, RATES_BPS[1], None).expect("a free port");
        }
    }
    builder.finish().expect("a tree connects everything")
}
