//! Plans that are ready for any one link, switch or group to fail: every failure is played through on random cablings, twice judged.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use common::{Cabling, grouped, pairs};
use fabric::{
    Admin, Assignment, Demand, DeviceIntent, EngineName, Failure, FdbMode, FindingKind, FlowControl, HostId, HostRun,
    HostTable, LinkId, Mac, Plan, Policy, Proof, Resilience, RootedTree, Severity, SwitchId, SwitchSpec, Tagging,
    Topology, TopologyBuilder, Traffic, TrafficMatrix, VlanId, dividing_groups, dividing_links, dividing_switches,
    format::plan::{ReadMode, read_plan, write_plan},
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, VlanLimit, plan, plan_with};
use proptest::prelude::*;
use verify::{Live, check_state};

fn ready(policy: Policy) -> Policy {
    Policy { resilience: Resilience::OneLink, ..policy }
}

/// Plans with little search: these tests are about being right, not about being good.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(2))
}

/// The failures that a plan is to be ready for, and those of them that nothing survives.
fn failures(plan: &Plan) -> (Vec<Failure>, Vec<Failure>) {
    let topology = &plan.topology;
    let mut failures: Vec<Failure> = topology.link_ids().map(Failure::Link).collect();
    let mut dividing: Vec<Failure> = dividing_links(topology).into_iter().map(Failure::Link).collect();
    if plan.policy.resilience.protects_switches() {
        failures.extend(topology.switch_ids().map(Failure::Switch));
        dividing.extend(dividing_switches(topology).into_iter().map(Failure::Switch));
    }
    if plan.policy.resilience.protects_groups() {
        failures.extend(topology.group_ids().map(Failure::Group));
        dividing.extend(dividing_groups(topology).into_iter().map(Failure::Group));
    }
    (failures, dividing)
}

/// The judge finds nothing but links and switches that nothing can replace, and what it would note of the plan anyway.
fn judged(plan: &Plan) {
    let report = verify::check(plan);
    let (failures, dividing) = failures(plan);
    let divides =
        |kind| matches!(kind, FindingKind::DividingLink | FindingKind::DividingSwitch | FindingKind::DividingGroup);
    let warned = report.findings().iter().filter(|finding| divides(finding.kind)).count();
    assert_eq!(warned, dividing.len(), "{report}");
    for finding in report.findings().iter().filter(|finding| !divides(finding.kind)) {
        assert_eq!(finding.severity, Severity::Note, "{:?}\n{report}", plan.policy);
    }
    assert!(report.is_deployable());
    let failover = plan.failover.as_ref().expect("it was asked for");
    for failure in failures {
        let over = failover.switch_over(failure);
        if dividing.contains(&failure) {
            assert!(over.is_none(), "nothing helps against {}", failure.label(&plan.topology));
            continue;
        }
        play(plan, failure);
        if let Some(over) = over.filter(|over| over.proof != Proof::Unneeded) {
            let drained = matches!(over.proof, Proof::Drained(_));
            let after = over.apply(&plan.assignment);
            let before = if drained { &after } else { &plan.assignment };
            let label = failure.label(&plan.topology);
            assert!(is_acyclic(plan, [before, &after], Some(failure)), "without {label}");
            // A group may come back member by member.
            if let Failure::Group(_) = failure {
                assert!(is_acyclic(plan, [before, &after], None), "with {label} back");
            }
        }
    }
}

/// Cuts a link on the switches, or all those of a switch or a group, lets hosts switch over, and follows every frame of the hosts that are left.
fn play(plan: &Plan, failure: Failure) {
    let topology = &plan.topology;
    let dead = failure.links(topology);
    let over = plan.failover.as_ref().and_then(|failover| failover.switch_over(failure));
    let assignment = over.map_or_else(|| plan.assignment.clone(), |over| over.apply(&plan.assignment));
    let mut devices: Vec<DeviceIntent> = plan.devices.clone();
    for port in devices.iter_mut().flat_map(|device| &mut device.ports) {
        match port.role {
            fabric::PortRole::Link(link) if dead.contains(&link) => port.admin = Admin::Down,
            fabric::PortRole::Host(host) if plan.policy.tagging == Tagging::Switch => {
                let pvid = assignment.broadcast(host);
                (port.pvid, port.untagged_class) = (Some(pvid), plan.policy.class_of(&plan.trees, pvid));
            }
            _ => {}
        }
    }
    let tables: Option<Vec<HostTable>> = (plan.policy.tagging != Tagging::Switch).then(|| {
        let table = |source: HostId| {
            let runs = topology.host_ids().filter(|to| *to != source);
            let runs = runs.map(|to| HostRun { first: to, last: to, choice: assignment.unicast(source, to) });
            let receives = plan.trees.iter().map(|tree| tree.vlan).collect();
            let broadcast = Some(assignment.broadcast(source));
            HostTable { unicast: runs.collect(), broadcast, receives, ..HostTable::default() }
        };
        topology.host_ids().map(table).collect()
    });
    let is_left = |host: &HostId| !failure.takes(topology, topology.switch_of(*host));
    let judged: Vec<HostId> = topology.host_ids().filter(is_left).collect();
    let found = check_state(&Live { topology, devices: &devices, tables: tables.as_deref(), judged: &judged });
    let label = failure.label(topology);
    assert!(found.report.findings().is_empty(), "without {label}:\n{}", found.report);
    assert!(found.lost.is_empty(), "without {label}: {}", pairs(topology, &found.lost));
    assert!(found.unheard.is_empty(), "without {label}: {}", pairs(topology, &found.unheard));
}

/// Whether the routes of several assignments together close no cycle on any lane, dead links and hosts of a failure left out.
fn is_acyclic(plan: &Plan, assignments: [&Assignment<VlanId>; 2], failure: Option<Failure>) -> bool {
    let topology = &plan.topology;
    let dead = failure.map_or_else(Vec::new, |failure| failure.links(topology));
    let is_left = |host: &HostId| failure.is_none_or(|failure| !failure.takes(topology, topology.switch_of(*host)));
    let mut next: BTreeMap<u8, BTreeSet<(usize, usize)>> = BTreeMap::new();
    let mut rooted: BTreeMap<(VlanId, SwitchId), RootedTree> = BTreeMap::new();
    for assignment in assignments {
        for source in topology.host_ids().filter(is_left) {
            for to in topology.host_ids().filter(|to| *to != source) {
                let tree = plan.tree(assignment.unicast(source, to)).expect("a VLAN of the plan");
                let root = topology.switch_of(source);
                let rooted = rooted.entry((tree.vlan, root)).or_insert_with(|| tree.tree.rooted_at(topology, root));
                let path = rooted.path_to(topology, topology.switch_of(to));
                let alive = path.windows(2).filter(|pair| pair.iter().all(|channel| !dead.contains(&channel.link())));
                let dependencies = next.entry(tree.lane).or_default();
                dependencies.extend(alive.map(|pair| (pair[0].index(), pair[1].index())));
            }
        }
    }
    next.into_values().all(|mut left| {
        // Channels that wait for nobody are taken away until none is left, or only cycles are.
        loop {
            let waiting: BTreeSet<usize> = left.iter().map(|(from, _)| *from).collect();
            let before = left.len();
            left.retain(|(_, to)| waiting.contains(to));
            if left.len() == before {
                return left.is_empty();
            }
        }
    })
}

/// Plans under a cap on VLANs: it is kept, or the error names what is enough.
fn kept_or_named(topology: &Topology, cap: usize, policy: Policy) {
    let capped = |cap| ready(Policy { vlans_max: Some(cap), ..policy.clone() });
    let is_enough = |need: usize, limit: VlanLimit| {
        assert_eq!(limit, VlanLimit::Policy(cap));
        assert!(need > cap);
        let plan = few_steps(topology, &capped(need), None).expect("what is named as enough is enough");
        assert!(plan.summary.vlans <= need);
        judged(&plan);
    };
    match few_steps(topology, &capped(cap), None) {
        Ok(plan) => {
            assert!(plan.summary.vlans <= cap);
            judged(&plan);
        }
        Err(PlanError::TooManyVlansForResilience { own, need, limit, .. }) => {
            assert!(own < need);
            is_enough(need, limit);
        }
        Err(PlanError::TooManyVlans { need, limit, .. }) if policy.engine != EngineName::Auto => is_enough(need, limit),
        Err(PlanError::Deadlock { .. }) if policy.engine != EngineName::Auto => {}
        Err(error) => panic!("{error}"),
    }
}

fn flow_control() -> impl Strategy<Value = FlowControl> {
    prop::sample::select(vec![FlowControl::None, FlowControl::Pause, FlowControl::Pause, FlowControl::Pfc(2)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Cut vertices, bridges, parallel and uneven links: whatever can be survived is.
    #[test]
    fn any_failure_that_can_be_survived_is(
        switches in 1_usize..12,
        extra in 0_usize..24,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        fdb in prop::sample::select(&[FdbMode::Full, FdbMode::Minimal][..]),
        flow_control in flow_control(),
        engine in prop::sample::select(vec![EngineName::Auto, EngineName::Tree, EngineName::Updown]),
        resilience in prop::sample::select(vec![Resilience::OneLink, Resilience::OneSwitch]),
    ) {
        let topology = Cabling::random(switches, extra, &mut Rng::new(seed)).topology().expect("connected");
        let policy = Policy { engine, tagging, fdb, flow_control, resilience, ..Policy::default() };
        match few_steps(&topology, &policy, None) {
            Ok(plan) => judged(&plan),
            Err(error) => prop_assert!(matches!(error, PlanError::Deadlock { .. }), "{error}"),
        }
    }

    /// Groups of any switches and links, overlapping or not, with as few VLANs as may be: whatever can be survived is.
    #[test]
    fn any_group_that_can_be_survived_is(
        switches in 1_usize..12,
        extra in 0_usize..24,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        fdb in prop::sample::select(&[FdbMode::Full, FdbMode::Minimal][..]),
        flow_control in flow_control(),
        vlans_max in prop::option::weighted(0.3, 2_usize..12),
    ) {
        let mut rng = Rng::new(seed);
        let topology = Cabling::random(switches, extra, &mut rng).topology().expect("connected");
        let topology = grouped(&topology, &mut rng);
        let resilience = Resilience::OneGroup;
        let policy = Policy { tagging, fdb, flow_control, resilience, vlans_max, ..Policy::default() };
        match few_steps(&topology, &policy, None) {
            Ok(plan) => {
                judged(&plan);
                // The way into a file and back.
                let mut text = Vec::new();
                write_plan(&plan, &mut text).expect("written");
                prop_assert_eq!(read_plan(&text, ReadMode::Strict).expect("read back"), plan);
            }
            Err(PlanError::TooManyVlansForResilience { .. } | PlanError::TooManyVlans { .. }) => {
                prop_assert!(vlans_max.is_some());
            }
            Err(error) => prop_assert!(matches!(error, PlanError::Deadlock { .. }), "{error}"),
        }
    }

    /// So is that of any two links, whatever groups people have named.
    #[test]
    fn any_two_links_that_can_be_survived_are(
        switches in 1_usize..8,
        extra in 0_usize..10,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in flow_control(),
    ) {
        let mut rng = Rng::new(seed);
        let topology = Cabling::random(switches, extra, &mut rng).topology().expect("connected");
        let topology = grouped(&topology, &mut rng);
        let policy = Policy { tagging, flow_control, resilience: Resilience::TwoLinks, ..Policy::default() };
        match few_steps(&topology, &policy, None) {
            Ok(plan) => {
                judged(&plan);
                let links = topology.links().len();
                let pairs = plan.topology.groups().iter().filter(|group| group.is_link_pair()).count();
                prop_assert_eq!(pairs, links * links.saturating_sub(1) / 2);
                let mut text = Vec::new();
                write_plan(&plan, &mut text).expect("written");
                prop_assert_eq!(read_plan(&text, ReadMode::Strict).expect("read back"), plan);
            }
            Err(error) => prop_assert!(matches!(error, PlanError::Deadlock { .. }), "{error}"),
        }
    }

    /// A cap on VLANs is kept, or the error says what would fit, and that is so.
    #[test]
    fn a_cap_is_kept_or_named_with_the_need(
        switches in 2_usize..10,
        extra in 4_usize..16,
        seed in any::<u64>(),
        cap in 1_usize..12,
        flow_control in flow_control(),
    ) {
        let topology = Cabling::random(switches, extra, &mut Rng::new(seed)).topology().expect("connected");
        kept_or_named(&topology, cap, Policy { flow_control, ..Policy::default() });
    }

    /// The same for engines that keep their trees, where a higher cap may let through more of them.
    #[test]
    fn engines_by_name_keep_a_cap_or_name_the_need(
        switches in 2_usize..10,
        extra in 4_usize..16,
        seed in any::<u64>(),
        cap in 1_usize..12,
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in flow_control(),
        engine in prop::sample::select(vec![EngineName::Balanced, EngineName::Tree, EngineName::Updown]),
    ) {
        let topology = Cabling::random(switches, extra, &mut Rng::new(seed)).topology().expect("connected");
        kept_or_named(&topology, cap, Policy { engine, tagging, flow_control, ..Policy::default() });
    }

    /// The same input gives the same plan; planning again from it changes nothing; a change keeps it ready.
    #[test]
    fn planning_again_stays_ready(switches in 2_usize..10, extra in 2_usize..16, seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let mut cabling = Cabling::random(switches, extra, &mut rng);
        let topology = cabling.topology().expect("connected");
        let resilience = Resilience::ALL[1 + (seed % 4) as usize];
        let topology = if resilience.protects_groups() { grouped(&topology, &mut Rng::new(seed)) } else { topology };
        let policy = Policy { resilience, ..Policy::default() };
        let first = few_steps(&topology, &policy, None).expect("it plans");
        prop_assert_eq!(&first, &few_steps(&topology, &policy, None).expect("it plans"));
        let again = few_steps(&topology, &policy, Some(&first)).expect("it plans");
        judged(&again);
        cabling.change(&mut rng);
        let changed = cabling.topology().expect("changes keep it connected");
        let changed = if resilience.protects_groups() { grouped(&changed, &mut Rng::new(!seed)) } else { changed };
        judged(&few_steps(&changed, &policy, Some(&again)).expect("it plans"));
    }
}

#[test]
fn more_pairs_of_links_than_a_topology_has_groups_are_refused() {
    let kind = Kind::parse("torus", &["5x5".to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let policy = Policy { resilience: Resilience::TwoLinks, ..Policy::default() };
    let refused = few_steps(&topology, &policy, None).expect_err("1,225 pairs");
    assert!(matches!(refused, PlanError::TooManyLinkPairs { links: 50, pairs: 1_225, .. }), "{refused}");
}

/// One tree among few, found with more or fewer steps left, may take more VLANs than another.
#[test]
fn what_is_named_as_enough_does_not_depend_on_the_cap() {
    for (switches, extra, seed) in [(8, 4, 3_887_049_360_611_293_518), (6, 9, 17_217_767_022_328_248_608)] {
        let topology = Cabling::random(switches, extra, &mut Rng::new(seed)).topology().expect("connected");
        kept_or_named(&topology, 1, Policy { flow_control: FlowControl::None, ..Policy::default() });
    }
}

#[test]
fn well_known_networks_are_ready_for_every_failure() {
    for (kind, size) in [
        ("torus", "4x4"),
        ("mesh", "4x4"),
        ("hypercube", "4"),
        ("hyperx", "3x3"),
        ("fat-tree", "k=4"),
        ("mesh", "5x1"),
        ("torus", "5x1"),
    ] {
        let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
        let topology = generate(&kind, &Options::default()).expect("a sane size");
        for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(3)] {
            for tagging in [Tagging::Switch, Tagging::Pair] {
                for resilience in [Resilience::OneLink, Resilience::OneSwitch] {
                    let policy = Policy { flow_control, tagging, resilience, ..Policy::default() };
                    judged(&plan(&topology, &policy, None).expect("it plans"));
                }
            }
        }
    }
}

/// The planes of a torus, each on a power feed of its own; cards of a fat tree's spines; whatever hangs from two feeds at once.
#[test]
fn power_feeds_and_line_cards_are_survived() {
    for (kind, size, groups) in [
        (
            "torus",
            "4x4",
            [("feed-a", vec![0, 1], vec![]), ("feed-b", vec![5, 10], vec![]), ("card", vec![], vec![0, 1, 2])],
        ),
        (
            "hyperx",
            "3x3",
            [("feed-a", vec![0, 1, 2], vec![]), ("feed-b", vec![0, 4, 8], vec![]), ("card", vec![3], vec![9, 17])],
        ),
        (
            "fat-tree",
            "k=4",
            [("feed-a", vec![0, 1], vec![]), ("feed-b", vec![2], vec![8]), ("card", vec![], vec![4, 5])],
        ),
    ] {
        let shape = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
        let mut builder = TopologyBuilder::of(&generate(&shape, &Options::default()).expect("a sane size"));
        for (name, switches, links) in groups {
            let switches: Vec<SwitchId> = switches.into_iter().map(SwitchId::new).collect();
            let links: Vec<LinkId> = links.into_iter().map(LinkId::new).collect();
            builder.add_group(name, &switches, &links).expect("a fresh name");
        }
        let topology = builder.finish().expect("connected");
        for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)] {
            for tagging in [Tagging::Switch, Tagging::Pair] {
                let policy = Policy { flow_control, tagging, resilience: Resilience::OneGroup, ..Policy::default() };
                let plan = plan(&topology, &policy, None).expect("it plans");
                judged(&plan);
                let failover = plan.failover.as_ref().expect("it was asked for");
                let groups = failover.summary.groups.expect("it was asked for");
                eprintln!(
                    "{kind} {size}, {flow_control}, {tagging}: {} VLANs, {groups:?}, worst {}",
                    plan.summary.vlans, failover.summary.max_channel_time
                );
                for over in failover.switch_overs.iter().filter(|over| matches!(over.failure, Failure::Group(_))) {
                    eprintln!("    {}: {:?}", over.failure.label(&topology), over.proof);
                }
            }
        }
    }
}

/// Without `--resilience group` named groups change nothing but the topology in the plan.
#[test]
fn groups_change_no_other_plan() {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a valid size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let grouped = grouped(&topology, &mut Rng::new(5));
    assert!(!grouped.groups().is_empty());
    for resilience in [Resilience::None, Resilience::OneLink, Resilience::OneSwitch] {
        let policy = Policy { resilience, ..Policy::default() };
        let plain = plan(&topology, &policy, None).expect("it plans");
        assert_eq!(plan(&grouped, &policy, None).expect("it plans"), Plan { topology: grouped.clone(), ..plain });
    }
}

/// By tagging on the switch a whole sender moves, and still little is busier than after planning again: the most loaded
/// channel carries at most four times as much as while all links are up, where one tree for all would take eight times.
#[test]
fn after_a_failure_the_busiest_channel_is_not_far_busier() {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a valid size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    for tagging in [Tagging::Switch, Tagging::Source, Tagging::Destination, Tagging::Pair] {
        let plan = plan(&topology, &ready(Policy { tagging, ..Policy::default() }), None).expect("it plans");
        judged(&plan);
        let failover = plan.failover.as_ref().expect("it was asked for");
        let (before, after) = (plan.summary.max_channel_time, failover.summary.max_channel_time);
        assert!(after <= 4.0 * before, "{tagging:?}: {before} pairs, {after} after the worst failure");
    }
}

#[test]
fn a_fat_tree_needs_no_further_vlan() {
    let kind = Kind::parse("fat-tree", &["k=4".to_owned()]).expect("a valid size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let plain = plan(&topology, &Policy::default(), None).expect("it plans");
    let ready = plan(&topology, &ready(Policy::default()), None).expect("it plans");
    let failover = ready.failover.as_ref().expect("it was asked for");
    assert_eq!((failover.summary.vlans_extra, failover.summary.links_dividing), (0, 0));
    assert_eq!(ready.trees, plain.trees);
    assert!(failover.switch_overs.iter().all(|over| over.proof == Proof::Certificate), "one numbering serves all");
}

/// Under a cap that binds, trees of the plan serve failures as well: little is busier for being ready, and where frames have
/// to be drained, hosts seldom end up on one tree together.
#[test]
fn a_cap_costs_little_more_where_a_plan_is_ready() {
    let (mut drained, mut on_one_tree) = (0, 0);
    for (kind, size, cap) in [
        ("random-regular", "n=24,d=4", 12),
        ("random-regular", "n=32,d=4", 16),
        ("random-regular", "n=32,d=6", 12),
        ("torus", "4x4", 12),
        ("fat-tree", "k=4", 4),
    ] {
        let topology = generate(&Kind::parse(kind, &[size.to_owned()]).expect("a valid size"), &Options::default());
        let topology = topology.expect("a sane size");
        for flow_control in [FlowControl::None, FlowControl::Pause] {
            let policy = Policy { flow_control, vlans_max: Some(cap), ..Policy::default() };
            let plain = plan(&topology, &policy, None).expect("it plans");
            let plan = plan(&topology, &ready(policy), None).expect("it plans");
            assert!(plan.summary.vlans <= cap);
            judged(&plan);
            let (load, before) = (plan.summary.max_channel_load, plain.summary.max_channel_load);
            assert!(load <= 1.5 * before, "{kind} {size}, {flow_control}: {before} pairs, {load} if ready");
            let failover = plan.failover.as_ref().expect("it was asked for");
            for over in failover.switch_overs.iter().filter(|over| matches!(over.proof, Proof::Drained(_))) {
                let after = over.apply(&plan.assignment);
                let vlans: BTreeSet<VlanId> = topology.host_ids().map(|host| after.broadcast(host)).collect();
                drained += 1;
                on_one_tree += usize::from(vlans.len() == 1);
            }
        }
    }
    assert!(drained > 100 && 10 * on_one_tree < drained, "{on_one_tree} of {drained} leave a single tree");
}

/// With a time limit the search for shared trees takes all the time. Where failures take a tree more, none is left for another
/// search.
#[test]
fn a_time_limit_leaves_vlans_for_failures() {
    let kind = Kind::parse("random-regular", &["n=32,d=4".to_owned()]).expect("a valid size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let policy = Policy { vlans_max: Some(8), time_limit: Some(Duration::from_secs(1)), ..Policy::default() };
    let timed = |policy: &Policy| plan_with(&topology, policy, None, &mut StepLimit::new(100)).expect("it plans");
    let (plain, ready) = (timed(&policy), timed(&ready(policy.clone())));
    judged(&ready);
    let failover = ready.failover.as_ref().expect("it was asked for");
    assert!(failover.summary.vlans_extra > 0, "some cable is in all trees");
    let (load, before) = (ready.summary.max_channel_load, plain.summary.max_channel_load);
    assert!(load <= 1.5 * before, "{before} pairs, {load} if ready");
}

/// 36 pairs on 100 Mbit/s take longer than 36 on 1 Gbit/s: the failure of the fast cable is the worst one.
#[test]
fn after_a_failure_pairs_count_by_the_rate_of_their_cable() {
    let mut builder = TopologyBuilder::new();
    let ends = ["a", "b"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a fresh name"));
    for (name, rate_bps) in [("fast", 1_000_000_000), ("slow", 100_000_000)] {
        let [a, b] = ends.map(|end| builder.add_port(end, name).expect("a fresh port"));
        builder.add_link(a, b, rate_bps).expect("free ports");
    }
    for number in 0..12 {
        let port = builder.add_port(ends[number % 2], &format!("h{number}")).expect("a fresh port");
        let mac = Mac::local(number as u32 + 1);
        builder.add_host(&format!("h{number}"), mac, port, 1_000_000_000, None).expect("a free port");
    }
    let topology = builder.finish().expect("connected");
    let plan = plan(&topology, &ready(Policy::default()), None).expect("it plans");
    judged(&plan);
    assert_eq!(plan.failover.as_ref().expect("it was asked for").summary.max_channel_time, 360.0);
    let after = [0, 1].map(|link| verify::time_after(&plan, Failure::Link(LinkId::new(link))).expect("it is stored"));
    assert_eq!(after, [360.0, 36.0]);
}

/// One in eight pairs exchanges much. Routes of these engines are the same whatever hosts send, so only switch-overs
/// differ: those for the matrix take less time after the worst failure, with fewer VLANs.
#[test]
fn switch_overs_for_a_matrix_are_better_for_it() {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a valid size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let (mut aware_sum, mut blind_sum, mut aware_extras, mut blind_extras) = (0.0, 0.0, 0, 0);
    for seed in 1..=3 {
        let traffic = matrix(&topology, seed);
        for tagging in Tagging::ALL.iter().copied() {
            let policy = ready(Policy { engine: EngineName::Updown, tagging, ..Policy::default() });
            let with = |traffic| plan(&topology, &Policy { traffic, ..policy.clone() }, None).expect("it plans");
            let aware = with(traffic.clone());
            judged(&aware);
            let mut blind = with(Traffic::AllToAll);
            assert_eq!(aware.assignment, blind.assignment, "the same routes while all links are up");
            blind.policy.traffic = traffic.clone();
            let worst = |plan: &Plan| {
                topology
                    .link_ids()
                    .map(|link| verify::time_after(plan, Failure::Link(link)).expect("it is stored"))
                    .fold(0.0, f64::max)
            };
            let said = aware.failover.as_ref().expect("it was asked for").summary.max_channel_time;
            assert!((worst(&aware) - said).abs() < 1e-6 * said, "{tagging}: {} instead of {said}", worst(&aware));
            let extras = |plan: &Plan| plan.failover.as_ref().map_or(0, |failover| failover.summary.vlans_extra);
            eprintln!("{tagging}, seed {seed}: {said} with {} more VLANs", extras(&aware));
            eprintln!("    made for all pairs alike {} with {}", worst(&blind), extras(&blind));
            (aware_extras, blind_extras) = (aware_extras + extras(&aware), blind_extras + extras(&blind));
            (aware_sum, blind_sum) = (aware_sum + said, blind_sum + worst(&blind));
        }
    }
    assert!(aware_sum < 0.95 * blind_sum, "{aware_sum} against {blind_sum}");
    assert!(aware_extras < blind_extras, "{aware_extras} against {blind_extras}");
}

/// One in eight pairs sends a hundred times as much as the others.
fn matrix(topology: &Topology, seed: u64) -> Traffic {
    let mut rng = Rng::new(seed);
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|destination| *destination != source) {
            let amount = if rng.below(8) == 0 { 100.0 } else { 1.0 };
            demands.push(Demand { source, destination, amount });
        }
    }
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands).expect("sane demands"))
}
