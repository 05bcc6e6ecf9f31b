//! Plans of random cablings, judged by `verify`, which knows nothing of how they were made.

use fabric::{
    EngineName, FdbMode, Finding, FlowControl, Mac, Plan, Policy, Rails, Severity, SwitchSpec, Tagging, Topology,
    TopologyBuilder, VlanPool, Weights, rng::Rng,
};
use planner::{PlanError, StepLimit, plan, plan_with};
use proptest::prelude::*;

/// A connected cabling of `switches`, with `extra` cables beyond a tree, some parallel, some slow, and up to three hosts
/// a switch, none on some.
fn random_topology(switches: usize, extra: usize, seed: u64) -> Topology {
    let mut rng = Rng::new(seed);
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> = (0..switches)
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    let mut ports = 0;
    let mut cable = |builder: &mut TopologyBuilder, a: usize, b: usize, rate_bps| {
        ports += 1;
        let a = builder.add_port(ids[a], &format!("p{ports}")).expect("a fresh port");
        let b = builder.add_port(ids[b], &format!("p{ports}")).expect("a fresh port");
        builder.add_link(a, b, rate_bps).expect("two switches");
    };
    for b in 1..switches {
        let a = rng.below(b);
        cable(&mut builder, a, b, 1_000_000_000);
    }
    for _ in 0..extra {
        let (a, b) = (rng.below(switches), rng.below(switches));
        if a != b {
            cable(&mut builder, a, b, [100_000_000, 1_000_000_000, 10_000_000_000][rng.below(3)]);
        }
    }
    let mut number = 0;
    for (at, id) in ids.iter().enumerate() {
        for _ in 0..if at == 0 { 1 } else { rng.below(4) } {
            number += 1;
            let port = builder.add_port(*id, &format!("h{number}")).expect("a fresh port");
            // In every other cabling some hosts are ports of machines, with rails and further addresses.
            let machine = (seed % 2 == 1 && number % 5 > 1).then(|| format!("m{}", number / 5));
            let name = machine.as_ref().map_or(format!("h{number}"), |machine| format!("{machine}/{number}"));
            // Every other of those machines is a failover bond, whose active port is any of its ports.
            if machine.is_some() && number / 5 % 2 == 1 && number % 5 > 2 {
                let host = builder.add_standby(&name, port, 1_000_000_000).expect("a fresh port");
                if rng.below(3) == 0 {
                    builder.set_active(host);
                }
                continue;
            }
            let rate_bps = [1_000_000_000, 10_000_000_000][usize::from(seed % 4 == 1 && number % 3 == 0)];
            let host = builder.add_host(&name, Mac::local(number), port, rate_bps, None).expect("a fresh host");
            if let Some(machine) = machine {
                builder.join_machine(&machine).expect("one after another");
                builder.set_rail(host, (number % 2) as u8);
                builder.set_weight(host, (number % 4) as u8);
                (0..number % 3).for_each(|k| {
                    builder.add_mac(host, Mac::local(1000 + 10 * number + k)).expect("a fresh address");
                });
            }
        }
    }
    builder.finish().expect("the tree connects everything")
}

/// Plans with little search: these tests are about being right, not about being good.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(3))
}

fn judged(plan: &Plan) {
    let report = verify::check(plan);
    // Without flow control nothing waits, so a cycle of dependencies is merely worth knowing; so is one that only
    // broadcasts could close, where they spread along trees that unicast frames follow inward.
    let cycles_are_notes = plan.policy.flow_control == FlowControl::None
        || !matches!(plan.policy.tagging, Tagging::Switch | Tagging::Source);
    let expected = |finding: &Finding| cycles_are_notes && finding.severity == Severity::Note;
    assert!(report.findings().iter().all(expected), "{} {:?}\n{report}", plan.engine, plan.policy);
}

fn flow_control() -> impl Strategy<Value = FlowControl> {
    prop_oneof![Just(FlowControl::None), Just(FlowControl::Pause), (1_u8..=8).prop_map(FlowControl::Pfc)]
}

/// None, one lane, and two to eight of them.
fn every_flow_control() -> impl Strategy<Value = FlowControl> {
    let lanes = (2..=8).map(FlowControl::Pfc);
    prop::sample::select([FlowControl::None, FlowControl::Pause].into_iter().chain(lanes).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Every connected cabling has a plan in every mode, and the judge finds nothing.
    #[test]
    fn any_cabling_is_planned_and_passes_the_judge(
        switches in 1_usize..24,
        extra in 0_usize..40,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        fdb in prop::sample::select(&[FdbMode::Full, FdbMode::Minimal][..]),
        flow_control in flow_control(),
        rails in prop::sample::select(Rails::ALL),
        weights in prop::sample::select(Weights::ALL),
    ) {
        let topology = random_topology(switches, extra, seed);
        let policy = Policy { tagging, fdb, flow_control, rails, weights, ..Policy::default() };
        judged(&few_steps(&topology, &policy, None).expect("auto always finds a plan"));
    }

    /// `balanced` by name never fails: with cut vertices, parallel cables and uneven speeds, whoever chooses the VLAN and
    /// whatever waits.
    #[test]
    fn balanced_plans_any_cabling_in_every_mode(
        switches in 1_usize..20,
        extra in 0_usize..32,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in every_flow_control(),
    ) {
        let topology = random_topology(switches, extra, seed);
        let policy = Policy { engine: EngineName::Balanced, tagging, flow_control, ..Policy::default() };
        let plan = few_steps(&topology, &policy, None).expect("balanced always plans");
        judged(&plan);
        prop_assert!(plan.summary.deadlock_free || flow_control == FlowControl::None, "no certificate");
        prop_assert!(plan.summary.lanes <= usize::from(flow_control.lanes().unwrap_or(1)));
    }

    /// Each engine by name either plans or says why it does not apply.
    #[test]
    fn every_engine_is_right_or_says_why_not(
        switches in 1_usize..16,
        extra in 0_usize..24,
        seed in any::<u64>(),
        engine in prop::sample::select(EngineName::ALL),
    ) {
        let topology = random_topology(switches, extra, seed);
        match few_steps(&topology, &Policy { engine, ..Policy::default() }, None) {
            Ok(plan) => judged(&plan),
            Err(error) => prop_assert!(matches!(error, PlanError::Unsuitable { .. }), "{error}"),
        }
    }

    /// A cap on VLANs is kept, or named with what is needed.
    #[test]
    fn a_cap_on_vlans_is_kept(
        switches in 2_usize..16,
        extra in 0_usize..24,
        seed in any::<u64>(),
        cap in 1_usize..12,
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in flow_control(),
    ) {
        let topology = random_topology(switches, extra, seed);
        let policy = Policy { vlans_max: Some(cap), tagging, flow_control, ..Policy::default() };
        let capped = few_steps(&topology, &policy, None).expect("a single tree always fits");
        prop_assert!(capped.summary.vlans <= cap);
        judged(&capped);
    }

    /// The same input gives the same plan, and planning again from it changes nothing.
    #[test]
    fn planning_again_changes_nothing(switches in 1_usize..16, extra in 0_usize..24, seed in any::<u64>()) {
        let topology = random_topology(switches, extra, seed);
        let first = few_steps(&topology, &Policy::default(), None).expect("auto always finds a plan");
        let again = few_steps(&topology, &Policy::default(), None).expect("auto always finds a plan");
        prop_assert_eq!(&first, &again);
        let kept = few_steps(&topology, &Policy::default(), Some(&first)).expect("auto always finds a plan");
        prop_assert_eq!(&first, &kept);
    }
}

#[test]
fn a_cap_that_an_engine_cannot_keep_is_named_with_the_need() {
    let kind = fabric::generate::Kind::parse("mesh", &["4x4".to_owned()]).expect("a valid size");
    let mesh = fabric::generate::generate(&kind, &fabric::generate::Options::default()).expect("a sane size");
    let policy = Policy { engine: EngineName::Dor, vlans_max: Some(3), ..Policy::default() };
    let error = plan(&mesh, &policy, None).expect_err("a 4×4 mesh needs four");
    assert_eq!(
        error.to_string(),
        "engine dor needs 4 VLANs, but --max-vlans allows 3; raise it to --max-vlans 4, or use --engine auto or tree"
    );
}

#[test]
fn reserved_ids_are_left_alone_and_old_ones_kept() {
    let kind = fabric::generate::Kind::parse("mesh", &["4x4".to_owned()]).expect("a valid size");
    let mesh = fabric::generate::generate(&kind, &fabric::generate::Options::default()).expect("a sane size");
    let pool = |first: u16, reserved: &str| VlanPool {
        first: fabric::VlanId::new(first).expect("valid"),
        reserved: reserved.parse().expect("valid"),
        ..VlanPool::default()
    };
    let old = plan(&mesh, &Policy { vlans: pool(100, "101,103"), ..Policy::default() }, None).expect("it fits");
    let vlans = |plan: &Plan| plan.trees.iter().map(|tree| tree.vlan.get()).collect::<Vec<_>>();
    assert_eq!(vlans(&old), [100, 102, 104, 105]);
    let new = plan(&mesh, &Policy { vlans: pool(2, "102"), ..Policy::default() }, Some(&old)).expect("it fits");
    assert_eq!(vlans(&new), [2, 100, 104, 105]);
}

#[test]
fn small_tables_are_kept_by_fewer_trees() {
    // Holds 20 and 256 static entries; a tree for every switch takes 28 and more than 256.
    for (kind, size, model) in
        [("torus", "4x4", "edgeswitch-24"), ("random-regular", "n=64,d=5,seed=3", "zyxel-gs4012f")]
    {
        let kind = fabric::generate::Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
        let options = fabric::generate::Options { model: Some(model.to_owned()), ..Default::default() };
        let topology = fabric::generate::generate(&kind, &options).expect("a sane size");
        for tagging in [Tagging::Switch, Tagging::Pair] {
            for engine in [EngineName::Auto, EngineName::Balanced] {
                for flow_control in [FlowControl::None, FlowControl::Pause] {
                    let policy = Policy { engine, tagging, flow_control, ..Policy::default() };
                    let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(20)).expect("one tree fits");
                    let limit = topology.switches()[0].model.static_entries_max;
                    assert!(plan.summary.fdb_entries_max <= limit, "{kind}, {engine}, {tagging}, {flow_control}");
                    judged(&plan);
                }
            }
        }
    }
}

#[test]
fn a_table_too_small_for_any_plan_is_named_with_the_need() {
    let kind = fabric::generate::Kind::parse("mesh", &["5x5".to_owned()]).expect("a valid size");
    let options = fabric::generate::Options { model: Some("edgeswitch-24".to_owned()), ..Default::default() };
    let mesh = fabric::generate::generate(&kind, &options).expect("a sane size");
    let error = plan(&mesh, &Policy::default(), None).expect_err("25 hosts, and room for 20");
    assert_eq!(
        error.to_string(),
        "switch s0-0 (edgeswitch-24) holds 20 static entries, but 25 are needed; use a switch that holds 25"
    );
}

/// A cable between two switches carries what the weights of hosts say, also after weights have changed.
#[test]
fn pairs_count_by_their_weights() {
    let with_weights = |weights: [u8; 4]| {
        let mut builder = TopologyBuilder::new();
        let [a, b] = ["a", "b"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a fresh name"));
        let ends = [a, b].map(|switch| builder.add_port(switch, "up").expect("a fresh port"));
        builder.add_link(ends[0], ends[1], 10_000_000_000).expect("two free ports");
        for (number, (weight, switch)) in weights.into_iter().zip([a, a, b, b]).enumerate() {
            let name = format!("h{number}");
            let port = builder.add_port(switch, &name).expect("a fresh port");
            let rate_bps = if number == 0 { 10_000_000_000 } else { 1_000_000_000 };
            let host =
                builder.add_host(&name, Mac::local(number as u32 + 1), port, rate_bps, None).expect("a fresh host");
            builder.set_weight(host, weight);
        }
        builder.finish().expect("one cable connects them")
    };
    let (equal, uneven) = (with_weights([1; 4]), with_weights([3, 1, 2, 0]));
    for (topology, weights, load) in [
        (&equal, Weights::Stated, 4.0),
        (&equal, Weights::Rate, 22.0),
        (&uneven, Weights::Stated, 8.0),
        (&uneven, Weights::Rate, 62.0),
    ] {
        let policy = Policy { weights, ..Policy::default() };
        let afresh = few_steps(topology, &policy, None).expect("a tree");
        let before = few_steps(&equal, &policy, None).expect("a tree");
        for plan in [&afresh, &few_steps(topology, &policy, Some(&before)).expect("a tree")] {
            judged(plan);
            assert_eq!((plan.summary.max_channel_load, plan.summary.load_bound), (load, load), "{weights}");
        }
    }
}
