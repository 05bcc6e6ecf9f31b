//! What limits cost: more VLANs never make a plan worse, parallel cables count, and small tables are kept.

use std::collections::BTreeMap;

use fabric::{
    EngineName, FlowControl, Mac, Plan, Policy, Severity, SwitchId, SwitchSpec, Tagging, Topology, TopologyBuilder,
    rng::Rng,
};
use planner::{StepLimit, plan_with};
use proptest::prelude::*;

const RATE_BPS: u64 = 1_000_000_000;
const FLOW_CONTROLS: [FlowControl; 3] = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)];

/// A cabling by pairs of switches, with so many hosts on each switch.
fn cabling(hosts: &[usize], cables: &[(usize, usize)], model: impl Fn(usize) -> Option<&'static str>) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<SwitchId> = (0..hosts.len())
        .map(|number| {
            let spec = SwitchSpec { model: model(number).map(str::to_owned), ..SwitchSpec::default() };
            builder.add_switch(&format!("s{number}"), spec).expect("a fresh name")
        })
        .collect();
    let mut ports = vec![0; hosts.len()];
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        ports[switch] += 1;
        let name = if model(switch).is_some() { format!("0/{}", ports[switch]) } else { format!("p{}", ports[switch]) };
        builder.add_port(ids[switch], &name).expect("a fresh port")
    };
    for &(a, b) in cables {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, RATE_BPS).expect("two switches");
    }
    let mut number = 0;
    for (switch, &count) in hosts.iter().enumerate() {
        for _ in 0..count {
            number += 1;
            let at = port(&mut builder, switch);
            builder.add_host(&format!("h{number}"), Mac::local(number), at, RATE_BPS, None).expect("a fresh host");
        }
    }
    builder.finish().expect("all is connected")
}

/// The only tree of a cap of one VLAN is as good as the only one of a plan for two.
#[test]
fn two_trees_that_turn_out_the_same_are_one() {
    let cables = [(0, 4), (0, 1), (1, 5), (1, 2), (2, 6), (2, 3), (3, 7), (4, 5), (5, 6), (6, 7)];
    let topology = cabling(&[0, 2, 1, 1, 1, 0, 0, 0], &cables, |_| None);
    let loads = [1, 2].map(|cap| {
        let policy = Policy { vlans_max: Some(cap), ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None).expect("one tree always fits");
        judged(&plan, &format!("{cap} VLANs"));
        (plan.summary.vlans, plan.summary.max_channel_load)
    });
    assert_eq!(loads, [(1, 4.0), (1, 4.0)]);
}

/// Addresses that may be learned at a port take room in tables, as those that it has do; judge and planner agree.
#[test]
fn addresses_that_may_be_learned_take_room_in_tables() {
    let plain = cabling(&[1, 1, 1], &[(0, 1), (1, 2)], |_| None);
    let with = |learned: usize, entries: usize| {
        let mut builder = TopologyBuilder::of(&plain);
        builder.set_learned(fabric::HostId::new(2), learned).expect("a plain host");
        builder.change_models(|model| model.static_entries_max = entries);
        builder.finish().expect("all is connected")
    };
    let plan = planner::plan(&with(10, 1_000), &Policy::default(), None).expect("much room");
    let most = plan.devices.iter().map(|device| device.fdb_room(&plan.topology)).max().expect("switches");
    assert!(most >= plan.summary.fdb_entries_max + 10, "{most}");
    planner::plan(&with(10, most), &Policy::default(), None).expect("just enough room");
    let refused = planner::plan(&with(10, most - 1), &Policy::default(), None);
    assert!(matches!(refused, Err(planner::PlanError::TooManyStaticEntries { .. })), "{refused:?}");
    let mut small = plan.clone();
    small.topology = with(10, most - 1);
    let report = verify::check(&small);
    assert!(report.findings().iter().any(|finding| finding.kind == fabric::FindingKind::LimitExceeded), "{report}");
    small.topology = with(10, most);
    assert!(verify::check(&small).is_deployable(), "{}", verify::check(&small));
}

/// A random connected one, some cables parallel, with none to two hosts a switch, but some on the first two.
fn random(switches: usize, extra: usize, seed: u64) -> Topology {
    let (hosts, cables) = random_parts(switches, extra, seed);
    cabling(&hosts, &cables, |_| None)
}

fn random_parts(switches: usize, extra: usize, seed: u64) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut rng = Rng::new(seed);
    let mut cables: Vec<(usize, usize)> = (1..switches).map(|b| (rng.below(b), b)).collect();
    for _ in 0..extra {
        let (a, b) = (rng.below(switches), rng.below(switches));
        cables.push(if a == b { cables[rng.below(cables.len())] } else { (a, b) });
    }
    let hosts = (0..switches).map(|switch| if switch < 2 { 1 + rng.below(2) } else { rng.below(3) }).collect();
    (hosts, cables)
}

fn sources(topology: &Topology) -> usize {
    topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count()
}

/// The judge finds nothing but cycles where nothing waits.
fn judged(plan: &Plan, what: &str) {
    let report = verify::check(plan);
    let notes_only = plan.policy.flow_control == FlowControl::None || plan.policy.tagging != Tagging::Switch;
    let bad = report.findings().iter().filter(|finding| finding.severity != Severity::Note || !notes_only).count();
    assert!(bad == 0, "{what}: {report}");
}

fn flow_control() -> impl Strategy<Value = FlowControl> {
    prop_oneof![Just(FlowControl::None), Just(FlowControl::Pause), (2_u8..=4).prop_map(FlowControl::Pfc)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// A plan for few VLANs is a plan for more, whatever the steps.
    #[test]
    fn a_larger_cap_is_never_worse(
        switches in 3_usize..14,
        extra in 0_usize..24,
        seed in any::<u64>(),
        steps in 1_u64..40,
        tagging in prop::sample::select(vec![Tagging::Switch, Tagging::Source, Tagging::Destination, Tagging::Pair]),
        engine in prop::sample::select(vec![EngineName::Balanced, EngineName::Auto]),
        flow_control in flow_control(),
    ) {
        let topology = random(switches, extra, seed);
        let mut before = f64::INFINITY;
        let mut plans: Vec<(usize, f64)> = Vec::new();
        for cap in 1..sources(&topology) {
            let policy = Policy { vlans_max: Some(cap), tagging, engine, flow_control, seed, ..Policy::default() };
            let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(steps)).expect("one tree always fits");
            prop_assert!(plan.summary.vlans <= cap);
            let time = plan.summary.max_channel_time;
            prop_assert!(time <= before, "{} VLANs: {} pairs; one fewer: {}", cap, time, before);
            before = time;
            // A plan for more VLANs that turns out to have no more than a smaller cap is one for that cap.
            let smaller = plans.iter().enumerate().skip(plan.summary.vlans.saturating_sub(1));
            for (at, &(vlans, other)) in smaller.filter(|_| tagging == Tagging::Switch) {
                prop_assert!(
                    other <= time,
                    "cap {}: {} pairs with {} VLANs; cap {}: {} pairs with {}",
                    at + 1, other, vlans, cap, time, plan.summary.vlans
                );
            }
            plans.push((plan.summary.vlans, time));
            if cap == 2 || cap + 1 == sources(&topology) {
                judged(&plan, &format!("{cap} VLANs"));
            }
        }
    }

    /// Where each switch has one host at most, no more VLANs than switches that send. Where one has more, its hosts may take
    /// parallel cables, each in a VLAN of its own; a cap of a VLAN a switch is kept all the same.
    #[test]
    fn no_more_vlans_than_switches_that_send(
        switches in 2_usize..16,
        extra in 0_usize..32,
        seed in any::<u64>(),
        steps in 1_u64..20,
        flow_control in flow_control(),
    ) {
        let (mut hosts, cables) = random_parts(switches, extra, seed);
        let many = cabling(&hosts, &cables, |_| None);
        hosts.iter_mut().for_each(|hosts| *hosts = (*hosts).min(1));
        let single = cabling(&hosts, &cables, |_| None);
        for (topology, vlans_max) in [(single, None), (many.clone(), Some(sources(&many)))] {
            let policy = Policy { flow_control, seed, vlans_max, ..Policy::default() };
            let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(steps)).expect("any cabling has a plan");
            prop_assert!(plan.summary.vlans <= sources(&topology), "{} VLANs", plan.summary.vlans);
            judged(&plan, "switch tagging");
        }
    }
}

/// One switch with a small table takes no more entries than it holds, whether frames wait or not.
#[test]
fn a_small_table_on_one_switch_is_kept() {
    const ENTRIES_MAX: usize = 20;
    let mut bound = 0;
    for seed in 0..24 {
        let (hosts, cables) = random_parts(6 + seed as usize % 5, 10, seed);
        let at = (0..hosts.len()).max_by_key(|at| cables.iter().filter(|(a, b)| a == at || b == at).count());
        let at = at.expect("there are switches");
        let ports = hosts[at] + cables.iter().flat_map(|(a, b)| [a, b]).filter(|end| **end == at).count();
        if hosts.iter().sum::<usize>() > ENTRIES_MAX || ports > 26 {
            continue;
        }
        for flow_control in [FlowControl::None, FlowControl::Pause] {
            for tagging in [Tagging::Switch, Tagging::Pair] {
                let policy = Policy { tagging, flow_control, seed, ..Policy::default() };
                let few_steps = |topology: &Topology| {
                    plan_with(topology, &policy, None, &mut StepLimit::new(8)).expect("one tree always fits")
                };
                let free = few_steps(&cabling(&hosts, &cables, |_| None));
                let tight = few_steps(&cabling(&hosts, &cables, |switch| (switch == at).then_some("edgeswitch-24")));
                let what = format!("seed {seed}, {flow_control}, {tagging}");
                assert!(tight.devices[at].fdb_len(&tight.topology) <= ENTRIES_MAX, "{what}");
                judged(&tight, &what);
                bound += usize::from(free.devices[at].fdb_len(&free.topology) > ENTRIES_MAX);
            }
        }
    }
    assert!(bound >= 24, "the table is too small {bound} times only");
}

/// Two to four cables between neighbours: each carries as much as the bound says one must, in every mode.
#[test]
fn parallel_cables_are_channels_of_their_own() {
    // Hosts of each switch, and two switches with so many cables between them.
    type Fabric = (&'static str, Vec<usize>, Vec<(usize, usize, usize)>);
    let fabrics: [Fabric; 4] = [
        ("line", vec![4, 4, 4], vec![(0, 1, 2), (1, 2, 2)]),
        ("ring", vec![4, 4, 4, 4], vec![(0, 1, 2), (1, 2, 2), (2, 3, 2), (3, 0, 2)]),
        ("star", vec![6, 6, 6, 6], vec![(0, 1, 3), (0, 2, 3), (0, 3, 3)]),
        ("pair", vec![8, 8], vec![(0, 1, 4)]),
    ];
    for (name, hosts, bundles) in fabrics {
        let cables: Vec<(usize, usize)> =
            bundles.iter().flat_map(|&(a, b, count)| std::iter::repeat_n((a, b), count)).collect();
        let topology = cabling(&hosts, &cables, |_| None);
        for flow_control in FLOW_CONTROLS {
            for tagging in [Tagging::Switch, Tagging::Pair, Tagging::Destination] {
                let what = format!("{name}, {tagging}, {flow_control}");
                let policy = Policy { tagging, flow_control, engine: EngineName::Balanced, ..Policy::default() };
                let plan =
                    plan_with(&topology, &policy, None, &mut StepLimit::new(60)).expect("any cabling has a plan");
                judged(&plan, &what);
                let load = loads(&plan);
                assert_eq!(load.iter().copied().max(), Some(plan.summary.max_channel_load as u64), "{what}");
                assert!(load.iter().all(|load| *load > 0), "{what}: {load:?}");
                assert!(plan.summary.load_gap < 1.001, "{what}: {} pairs", plan.summary.max_channel_load);
            }
        }
    }
}

/// `load[channel]`, from routes walked anew.
fn loads(plan: &Plan) -> Vec<u64> {
    let topology = &plan.topology;
    let mut load = vec![0; topology.channel_count()];
    let mut rooted = BTreeMap::new();
    for source in topology.host_ids() {
        let root = topology.switch_of(source);
        for destination in topology.host_ids().filter(|host| *host != source) {
            let vlan = plan.assignment.unicast(source, destination);
            let tree = &plan.tree(vlan).expect("an assigned VLAN has a tree").tree;
            let rooted = rooted.entry((vlan, root)).or_insert_with(|| tree.rooted_at(topology, root));
            for channel in rooted.path_to(topology, topology.switch_of(destination)) {
                load[channel.index()] += 1;
            }
        }
    }
    load
}
