//! Path sets: every path is judged, requests that cannot have them are refused, and plans with them are planned again.

mod common;

use std::collections::BTreeSet;

use common::Cabling;
use fabric::{
    ChannelId, Drain, FdbMode, FindingKind, FlowControl, HostId, Plan, Policy, Resilience, Severity, Tagging, Topology,
    VlanId,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with};

fn topology(family: &str, sizes: &[&str]) -> Topology {
    let sizes: Vec<String> = sizes.iter().map(|size| (*size).to_owned()).collect();
    let kind = Kind::parse(family, &sizes).expect("a size");
    generate(&kind, &Options::default()).expect("sane")
}

fn planned(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(40))
}

fn several(paths_max: u32) -> Policy {
    Policy { tagging: Tagging::Source, paths_max, ..Policy::default() }
}

/// What the judge finds worth more than a note.
fn faults(plan: &Plan) -> Vec<String> {
    let report = verify::check(plan);
    let faults = report.findings().iter().filter(|finding| finding.severity > Severity::Note);
    faults.map(|finding| format!("{} {}: {}", finding.kind.name(), finding.subject, finding.message)).collect()
}

/// The channels of a pair's path in a VLAN, by the plan's own trees.
fn path(plan: &Plan, vlan: VlanId, from: HostId, to: HostId) -> Vec<ChannelId> {
    let [from, to] = [from, to].map(|host| plan.topology.switch_of(host));
    plan.tree(vlan).expect("a tree").tree.rooted_at(&plan.topology, from).path_to(&plan.topology, to)
}

fn pairs(topology: &Topology) -> impl Iterator<Item = (HostId, HostId)> + '_ {
    let pairs = topology.host_ids().flat_map(|from| topology.host_ids().map(move |to| (from, to)));
    pairs.filter(|(from, to)| topology.switch_of(*from) != topology.switch_of(*to))
}

#[test]
fn every_path_of_every_pair_is_judged_sound_and_differs() {
    let fabrics = [
        topology("torus", &["4x4"]),
        topology("fat-tree", &["k=4"]),
        topology("dragonfly", &["a=3", "h=1", "p=2"]),
        topology("random-regular", &["n=14", "d=4", "seed=2"]),
    ];
    let taggings = [Tagging::Source, Tagging::Destination, Tagging::SourceDestination, Tagging::Pair];
    let flow_controls = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)];
    for (number, topology) in fabrics.iter().enumerate() {
        for (turn, tagging) in taggings.into_iter().enumerate() {
            let flow_control = flow_controls[(number + turn) % flow_controls.len()];
            let policy = Policy { tagging, flow_control, ..several(4) };
            let plan = planned(topology, &policy, None).expect("a plan");
            assert_eq!(faults(&plan), Vec::<String>::new(), "{tagging} {flow_control}");
            let sets = plan.paths.as_ref().expect("path sets");
            for (from, to) in pairs(topology) {
                let vlans = sets.of(from, to);
                let paths: BTreeSet<_> = vlans.iter().map(|vlan| path(&plan, *vlan, from, to)).collect();
                assert_eq!(paths.len(), vlans.len());
                assert!(vlans.contains(&plan.assignment.unicast(from, to)) && vlans.len() <= 4);
            }
            let all = pairs(topology).map(|(from, to)| sets.of(from, to).len()).sum::<usize>() as f64;
            let mean = all / pairs(topology).count() as f64;
            assert!(mean > 1.5, "{tagging} {flow_control}: {mean} paths a pair");
            let figures = plan.summary.paths.as_ref().expect("figures");
            assert!(figures.permutation_share_mean > 0.4, "{figures:?}");
            assert!(figures.permutation_worst <= figures.permutation_mean, "{figures:?}");
        }
    }
}

#[test]
fn random_cablings_have_sound_path_sets() {
    let mut silent = 0;
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let (switches, extra) = (2 + rng.below(7), rng.below(9));
        let Some(topology) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        let flow_control = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(3)][rng.below(3)];
        let policy = Policy {
            flow_control,
            fdb: [FdbMode::Minimal, FdbMode::Full][rng.below(2)],
            vlans_max: (rng.below(3) == 0).then(|| 1 + rng.below(6)),
            ..several(2 + rng.below(7) as u32)
        };
        let Ok(plan) = planned(&topology, &policy, None) else { continue };
        assert_eq!(faults(&plan), Vec::<String>::new(), "seed {seed}");
        assert!(policy.vlans_max.is_none_or(|most| plan.trees.len() <= most), "seed {seed}");
        silent += topology.hosts().iter().filter(|host| host.standby || host.edge).count();
    }
    // Standby ports and edge ports take no part in permutations, but frames for them take paths.
    assert!(silent > 10, "{silent}");
}

#[test]
fn permutations_gain_and_all_to_all_keeps_its_load() {
    let torus = topology("torus", &["6x6"]);
    let policy = Policy { flow_control: FlowControl::None, ..several(8) };
    let one = planned(&torus, &Policy { paths_max: 1, ..policy.clone() }, None).expect("a plan");
    let two = planned(&torus, &Policy { paths_max: 2, ..policy.clone() }, None).expect("a plan");
    let eight = planned(&torus, &policy, None).expect("a plan");
    assert!(one.paths.is_none() && one.summary.paths.is_none());
    assert_eq!(one.summary.max_channel_load, eight.summary.max_channel_load);
    let share = |plan: &Plan| plan.summary.paths.as_ref().expect("figures").permutation_share_mean;
    assert!(share(&two) < share(&eight) && share(&eight) > 0.9, "{} {}", share(&two), share(&eight));
}

#[test]
fn a_fat_tree_has_the_shortest_paths_alone_and_a_torus_the_ways_around() {
    let policy = Policy { flow_control: FlowControl::None, ..several(8) };
    let fat_tree = planned(&topology("fat-tree", &["k=4"]), &policy, None).expect("a plan");
    let figures = fat_tree.summary.paths.as_ref().expect("figures");
    assert!(figures.permutation_worst > 0.99, "{figures:?}");
    let torus = planned(&topology("torus", &["4x4"]), &policy, None).expect("a plan");
    let has_detours = |plan: &Plan| {
        let sets = plan.paths.as_ref().expect("path sets");
        pairs(&plan.topology).any(|(from, to)| {
            let lengths = sets.of(from, to).iter().map(|vlan| path(plan, *vlan, from, to).len());
            let (least, most) = lengths.fold((usize::MAX, 0), |(least, most), hops| (least.min(hops), most.max(hops)));
            least < most
        })
    };
    assert_eq!((has_detours(&fat_tree), has_detours(&torus)), (false, true));
    assert_eq!([faults(&fat_tree), faults(&torus)], [const { Vec::<String>::new() }; 2]);
}

/// Two switches with several cables between them, and a third with one cable to each: a pair has all the cables, up to the detour.
#[test]
fn every_one_of_parallel_cables_is_a_path() {
    for cables in 2..=9 {
        let mut text = "switches: {s0: , s1: , s2: }\nlinks:\n".to_owned();
        (0..cables).for_each(|n| text += &format!("  - s0:p{n} -- s1:p{n}\n"));
        text += "  - s0:up -- s2:p0\n  - s1:up -- s2:p1\nhosts:\n";
        for n in 0..3 {
            text += &format!("  h{n}: {{mac: \"02:00:00:00:00:0{n}\", port: \"s{n}:host\"}}\n");
        }
        let topology = fabric::format::native::parse_native("parallel.yaml", &text).expect("a topology");
        for flow_control in [FlowControl::None, FlowControl::Pause] {
            let plan = planned(&topology, &Policy { flow_control, ..several(8) }, None).expect("it plans");
            assert_eq!(faults(&plan), Vec::<String>::new());
            let [from, to] = [0, 1].map(HostId::new);
            let sets = plan.paths.as_ref().expect("path sets");
            let direct: BTreeSet<ChannelId> = (sets.of(from, to).iter())
                .map(|vlan| path(&plan, *vlan, from, to))
                .filter_map(|path| (path.len() == 1).then(|| path[0]))
                .collect();
            assert!(direct.len() >= cables.min(7), "{cables} cables, {flow_control}: {} are paths", direct.len());
            assert!(sets.of(from, to).len() >= cables.min(8), "{cables} cables, {flow_control}");
        }
    }
}

#[test]
fn a_plan_is_planned_again_with_its_path_sets() {
    let torus = topology("torus", &["4x4"]);
    for flow_control in [FlowControl::None, FlowControl::Pause] {
        let policy = Policy { flow_control, ..several(4) };
        let plan = planned(&torus, &policy, None).expect("a plan");
        assert_eq!(planned(&torus, &policy, Some(&plan)).expect("the same"), plan);
        let lost = plan.trees[0].tree.links()[0];
        let drained =
            Policy { drain: planner::drain(&torus, &BTreeSet::new(), &[lost].into()).expect("one"), ..policy };
        let mended = planned(&torus, &drained, Some(&plan)).expect("a plan");
        assert_eq!(faults(&mended), Vec::<String>::new());
        let sets = mended.paths.as_ref().expect("path sets");
        for (from, to) in pairs(&torus) {
            for vlan in sets.of(from, to) {
                assert!(path(&mended, *vlan, from, to).iter().all(|channel| channel.link() != lost));
            }
        }
        let back = planned(&torus, &Policy { drain: Drain::default(), ..drained }, Some(&mended)).expect("a plan");
        assert_eq!(faults(&back), Vec::<String>::new());
    }
}

#[test]
fn limits_on_hops_vlans_and_entries_hold_for_all_paths() {
    let torus = topology("torus", &["4x4"]);
    let plan = planned(&torus, &Policy { hops_max: Some(4), ..several(8) }, None).expect("a plan");
    let sets = plan.paths.as_ref().expect("path sets");
    let longest = pairs(&torus).flat_map(|(from, to)| sets.of(from, to).iter().map(move |vlan| (*vlan, from, to)));
    assert_eq!(longest.map(|(vlan, from, to)| path(&plan, vlan, from, to).len()).max(), Some(4));
    let capped = planned(&torus, &Policy { vlans_max: Some(20), ..several(8) }, None).expect("a plan");
    assert!(capped.trees.len() <= 20);
    assert_eq!(faults(&capped), Vec::<String>::new());
}

#[test]
fn what_cannot_have_several_paths_is_refused() {
    let torus = topology("torus", &["4x4"]);
    let refused = |policy: Policy| match planned(&torus, &policy, None) {
        Err(PlanError::NoPaths { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(Policy { tagging: Tagging::Switch, ..several(4) }).contains("--tagging source"));
    let learned = Policy { fdb: FdbMode::Learned, tagging: Tagging::SourceDestination, ..several(4) };
    assert!(refused(learned).contains("--fdb minimal"));
    assert!(refused(Policy { resilience: Resilience::OneLink, ..several(4) }).contains("--resilience"));
}

#[test]
fn the_judge_sees_through_false_claims() {
    let dragonfly = topology("dragonfly", &["a=3", "h=1", "p=2"]);
    let plan = planned(&dragonfly, &Policy { flow_control: FlowControl::Pause, ..several(4) }, None).expect("a plan");
    let found = |damage: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        damage(&mut plan);
        let report = verify::check(&plan);
        let fatal = report.findings().iter().filter(|finding| finding.severity == Severity::Fatal);
        fatal.map(|finding| finding.kind).collect::<BTreeSet<FindingKind>>()
    };
    assert!(found(&|_| {}).is_empty());
    let figures = |plan: &mut Plan, change: &dyn Fn(&mut fabric::PathSummary)| {
        change(plan.summary.paths.as_mut().expect("figures"));
    };
    for change in [
        (|figures| figures.permutation_share_mean *= 1.05) as fn(&mut fabric::PathSummary),
        |figures| figures.permutation_mean *= 1.05,
        |figures| figures.permutation_mean_bound *= 0.95,
        |figures| figures.permutation_worst *= 1.05,
        |figures| figures.permutation_worst_bound *= 0.95,
        |figures| figures.permutation_share_worst *= 1.05,
        |figures| figures.paths_max += 1,
    ] {
        let mut changed = plan.clone();
        figures(&mut changed, &change);
        let (said, then) = (&plan.summary.paths, &changed.summary.paths);
        assert_eq!(found(&|plan| figures(plan, &change)), [FindingKind::SummaryMismatch].into(), "{said:?} {then:?}");
    }
    // Lengths that prove nothing make the optimum 1.
    let no_proof = found(&|plan| {
        let paths = plan.paths.as_mut().expect("path sets");
        paths.proof.lengths.iter_mut().for_each(|lengths| lengths.fill(0));
    });
    assert_eq!(no_proof, [FindingKind::SummaryMismatch].into());
    let twice = found(&|plan| {
        let worst = &mut plan.paths.as_mut().expect("path sets").proof.worst;
        worst[0] = worst[1];
    });
    assert_eq!(twice, [FindingKind::BadBound].into());
    // A path in a VLAN that no entries serve.
    let strayed = found(&|plan| {
        let (from, to) = (HostId::new(0), HostId::new(5));
        let sets = plan.paths.as_ref().expect("path sets");
        let unserved = |vlan: &VlanId| {
            let at = &plan.devices[plan.topology.switch_of(from).index()];
            !at.fdb.iter().any(|run| run.vlan == *vlan && run.first <= to && to <= run.last)
        };
        let other = plan.trees.iter().map(|tree| tree.vlan).find(unserved).expect("some VLAN is not for the pair");
        let proof = sets.proof.clone();
        let hosts = plan.topology.hosts().len();
        let changed = fabric::PathSets::new(hosts, proof, |source, destination| {
            let mut set = sets.of(source, destination).to_vec();
            if (source, destination) == (from, to) {
                let assigned = plan.assignment.unicast(from, to);
                set = vec![assigned.min(other), assigned.max(other)];
            }
            set
        });
        plan.paths = Some(changed);
    });
    assert!(strayed.contains(&FindingKind::Flood) || strayed.contains(&FindingKind::Drop), "{strayed:?}");
    // A numbering that further paths do not respect.
    let unordered = found(&|plan| {
        let rank = &mut plan.certificate.as_mut().expect("a proof").rank[0];
        let last = rank.len() as u32;
        rank.iter_mut().for_each(|number| *number = last - *number);
    });
    assert!(unordered.contains(&FindingKind::BadCertificate), "{unordered:?}");
    let without = found(&|plan| plan.paths = None);
    assert!(without.contains(&FindingKind::PlanMismatch), "{without:?}");
}
