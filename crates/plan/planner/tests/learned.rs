//! Plans on switches that learn: what is made is fit, and what cannot be is refused with a way out.

mod common;

use common::Cabling;
use fabric::{
    DeviceIntent, EngineName, FdbMode, FindingKind, FlowControl, Learning, Model, Models, Plan, Policy, Resilience,
    Severity, Tagging, Topology,
    format::plan::{ReadMode, read_plan, write_plan},
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan, plan_with};
use proptest::prelude::*;
use transition::{StepError, steps};

fn learned(tagging: Tagging) -> Policy {
    Policy { tagging, fdb: FdbMode::Learned, ..Policy::default() }
}

fn fabric(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// The routes are those of a plan with static entries; only the tables are empty.
    #[test]
    fn any_cabling_is_planned_as_with_static_entries(
        switches in 1_usize..16,
        extra in 0_usize..24,
        seed in any::<u64>(),
        flow_control in prop::sample::select(vec![FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)]),
        tree in any::<bool>(),
        tagging in prop::sample::select(Tagging::ALL),
    ) {
        let topology = Cabling::random(switches, extra, &mut Rng::new(seed)).topology().expect("connected");
        let (engine, tagging) = match tree {
            true => (EngineName::Tree, tagging),
            false => (EngineName::Auto, Tagging::SourceDestination),
        };
        let policy = Policy { engine, flow_control, ..learned(tagging) };
        let few_steps = |policy: &Policy| plan_with(&topology, policy, None, &mut StepLimit::new(3));
        let plan = few_steps(&policy).expect("both directions share a VLAN");
        let report = verify::check(&plan);
        prop_assert!(report.findings().iter().all(|finding| finding.severity == Severity::Note), "{report}");
        let silence = |finding: &&fabric::Finding| finding.kind == FindingKind::Flood;
        // An uplink alone has no address that a switch could learn.
        let heard = topology.hosts().iter().any(|host| host.macs().next().is_some());
        prop_assert_eq!(report.findings().iter().filter(silence).count(), usize::from(heard), "{}", report);
        prop_assert!(plan.devices.iter().all(|device| device.fdb_len(&plan.topology) == 0 && device.learning == Learning::On));
        let fixed = few_steps(&Policy { fdb: FdbMode::Minimal, ..policy }).expect("planned");
        for (from, to) in topology.host_ids().flat_map(|from| topology.host_ids().map(move |to| (from, to))) {
            let route = |plan: &fabric::Plan| {
                let vlan = plan.assignment.unicast(from, to);
                plan.trees.iter().find(|tree| tree.vlan == vlan).map(|tree| tree.tree.clone())
            };
            prop_assert_eq!(route(&plan), route(&fixed), "from {:?} to {:?}", from, to);
        }
        // Where switches learn, any frame may flood, so other lanes may be needed; where they do not, broadcasts may have trees of
        // their own. Where neither is so, switches are told the same.
        if (&plan.trees, &plan.assignment) == (&fixed.trees, &fixed.assignment) {
            let bare = |device: &DeviceIntent| DeviceIntent { fdb: Vec::new(), learning: Learning::On, ..device.clone() };
            prop_assert_eq!(&plan.devices, &fixed.devices.iter().map(bare).collect::<Vec<_>>());
        }
        let mut file = Vec::new();
        write_plan(&plan, &mut file).expect("it is written");
        prop_assert_eq!(read_plan(&file, ReadMode::Strict).expect("it is read"), plan);
    }
}

#[test]
fn answers_in_other_vlans_are_refused_with_a_way_out() {
    let torus = fabric("torus", "3x3");
    for tagging in [Tagging::Switch, Tagging::Source, Tagging::Destination, Tagging::Pair] {
        let refused = plan(&torus, &learned(tagging), None).expect_err("answers come back elsewhere");
        assert!(matches!(refused, PlanError::AnswersElsewhere { tagging: by, .. } if by == tagging), "{refused}");
        assert!(refused.to_string().contains("--tagging source-destination"), "{refused}");
        // With one VLAN there is nowhere else.
        for policy in
            [Policy { engine: EngineName::Tree, ..learned(tagging) }, Policy { vlans_max: Some(1), ..learned(tagging) }]
        {
            let plan = plan(&torus, &policy, None).expect("one VLAN");
            assert!(verify::check(&plan).is_deployable());
        }
    }
}

#[test]
fn what_is_not_proven_is_refused() {
    let torus = fabric("torus", "3x3");
    let policy = learned(Tagging::SourceDestination);
    let first = plan(&torus, &policy, None).expect("planned");
    let fixed_policy = Policy { fdb: FdbMode::Minimal, ..policy.clone() };
    let fixed = plan(&torus, &fixed_policy, None).expect("planned");
    let what = |result: Result<Plan, PlanError>| match result {
        Err(PlanError::LearnedUnproven { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(plan(&torus, &policy, Some(&first))), "--previous");
    assert_eq!(what(plan(&torus, &policy, Some(&fixed))), "--previous");
    assert_eq!(what(plan(&torus, &fixed_policy, Some(&first))), "--previous");
    let ready = Policy { resilience: Resilience::OneLink, ..policy };
    assert_eq!(what(plan(&torus, &ready, None)), "--resilience");
    assert_eq!(steps(&fixed, &first).expect_err("floods on the way"), StepError::SwitchesLearn);
    assert_eq!(steps(&first, &fixed).expect_err("floods on the way"), StepError::SwitchesLearn);
}

#[test]
fn tables_that_are_too_small_for_what_is_learned_are_fatal() {
    let cabling = |model: Model| {
        let options =
            Options { model: Some(model.name.clone()), models: Models::built_in().with([model]), ..Options::default() };
        generate(&Kind::parse("torus", &["3".to_owned()]).expect("a valid size"), &options).expect("a sane size")
    };
    let of = |holds| Model {
        name: "ours".to_owned(),
        total_entries_max: holds,
        static_entries_max: 0,
        ..(*Model::generic()).clone()
    };
    let policy = Policy { engine: EngineName::Tree, ..learned(Tagging::Source) };
    for (holds, fit) in [(3, true), (2, false)] {
        let plan = plan(&cabling(of(holds)), &policy, None).expect("planned");
        let report = verify::check(&plan);
        assert_eq!(report.is_deployable(), fit, "{report}");
        let full = "s0: comes to know 3 addresses, and a ours holds 2";
        assert_eq!(report.to_string().contains(full), !fit, "{report}");
    }
}
