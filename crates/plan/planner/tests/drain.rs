//! Drained links and switches: nothing uses them, everybody is reached, and the way there is hitless.

use std::collections::BTreeSet;

use fabric::{
    EngineName, FindingKind, FlowControl, LinkId, Mac, Plan, Policy, Resilience, Severity, SwitchId, SwitchSpec,
    Tagging, Topology, TopologyBuilder, VlanSet,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, drain, plan_with};
use transition::{Deadlock, FabricState, StepKind, Transition, apply, steps};
use verify::{Live, check_state};

fn generated(kind: &str, words: &[&str], hosts: Option<usize>) -> Topology {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let options = Options { hosts_per_switch: hosts, ..Options::default() };
    generate(&Kind::parse(kind, &words).expect("a valid size"), &options).expect("a sane size")
}

fn fabrics() -> Vec<(&'static str, Topology)> {
    vec![
        ("torus 3x3", generated("torus", &["3x3"], None)),
        ("mesh 4x2 with two hosts a switch", generated("mesh", &["4x2"], Some(2))),
        ("fat tree", generated("fat-tree", &["k=4"], None)),
        ("random", generated("random-regular", &["n=10", "d=3", "seed=3"], None)),
    ]
}

/// Plans with little search: these tests are about being right, not about being good.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(2))
}

/// The policy with one link or switch drained; none if that would cut hosts off.
fn drained(topology: &Topology, policy: &Policy, what: Result<SwitchId, LinkId>) -> Option<Policy> {
    let (switches, links) = match what {
        Ok(switch) => (BTreeSet::from([switch]), BTreeSet::new()),
        Err(link) => (BTreeSet::new(), BTreeSet::from([link])),
    };
    let drain = drain(topology, &switches, &links).ok()?;
    Some(Policy { drain, ..policy.clone() })
}

/// Every switch and every link.
fn subjects(topology: &Topology) -> Vec<Result<SwitchId, LinkId>> {
    topology.switch_ids().map(Ok).chain(topology.link_ids().map(Err)).collect()
}

/// The judge finds nothing, and no port of a drained link is in any VLAN; only a single neighbour's links of a drained switch are.
fn judge(plan: &Plan, what: &str) {
    let report = verify::check(plan);
    let known = |finding: &&fabric::Finding| {
        finding.kind == FindingKind::DividingLink
            || finding.severity == Severity::Note && finding.kind == FindingKind::DependencyCycle
    };
    assert_eq!(report.findings().iter().filter(|finding| !known(finding)).count(), 0, "{what}\n{report}");
    let Plan { topology, policy, .. } = plan;
    let members = |port: fabric::PortId| -> VlanSet {
        let device = &plan.devices[topology.port(port).switch.index()];
        let port = device.ports.iter().find(|intent| intent.port == port).expect("every port has an intent");
        assert_eq!(port.admin, fabric::Admin::Up, "{what}: ports of drained links stay up");
        port.tagged.iter().chain(port.untagged.iter()).collect()
    };
    for link in &policy.drain.links {
        let fabric::Link { a, b, .. } = *topology.link(*link);
        assert!(members(a).is_empty() && members(b).is_empty(), "{what}: {}", topology.link_label(*link));
        assert!(plan.trees.iter().all(|tree| !tree.tree.contains(*link)), "{what}");
    }
    for &switch in &policy.drain.switches {
        let kept = topology.neighbours(switch).filter(|(channel, _)| !policy.drain.links.contains(&channel.link()));
        let neighbours: BTreeSet<SwitchId> = kept.map(|(_, neighbour)| neighbour).collect();
        assert_eq!(neighbours.len(), usize::from(!topology.hosts_of(switch).is_empty()), "{what}");
    }
}

/// Every state on the way, part by part in random order, loses no pair, and nothing loops or floods.
fn judge_steps(transition: &Transition, rng: &mut Rng, what: &str) -> usize {
    let mut state = transition.start.clone();
    let mut states = 0;
    for step in &transition.steps {
        assert_ne!(step.kind, StepKind::Isolate, "{what}: no cable was moved");
        let mut parts: Vec<_> = step.parts.iter().collect();
        rng.shuffle(&mut parts);
        for part in parts {
            apply(part, &mut state);
            let FabricState { devices, tables } = &state;
            let (topology, judged) = (&transition.topology, &transition.settled[..]);
            let now = check_state(&Live { topology, devices, tables: tables.as_deref(), judged });
            assert!(now.report.findings().is_empty(), "{what}: {part:?}\n{}", now.report);
            assert!(now.lost.is_empty() && now.unheard.is_empty(), "{what}: {part:?} cuts somebody off");
            states += 1;
        }
    }
    assert_eq!(state, transition.goal, "{what}");
    states
}

#[test]
fn every_switch_and_link_can_be_drained_hitless_and_come_back() {
    let mut rng = Rng::new(1);
    let (mut states, mut refused, mut plans, mut may_block) = (0, 0, 0, 0);
    for (number, (name, topology)) in fabrics().into_iter().enumerate() {
        let tagging = [Tagging::Switch, Tagging::Source, Tagging::Destination, Tagging::Pair][number];
        let policy = Policy { tagging, ..Policy::default() };
        let before = few_steps(&topology, &policy, None).expect("it plans");
        for subject in subjects(&topology) {
            let what = format!("{name}, {tagging}, {subject:?}");
            let Some(asked) = drained(&topology, &policy, subject) else {
                refused += 1;
                continue;
            };
            let fresh = few_steps(&topology, &asked, None).expect("it plans");
            judge(&fresh, &what);
            let next = few_steps(&topology, &asked, Some(&before)).expect("it plans");
            judge(&next, &format!("{what}, from a plan"));
            assert_eq!(few_steps(&topology, &asked, Some(&next)).as_ref(), Ok(&next), "{what}: again");
            let way = steps(&before, &next).expect("there are VLANs to spare");
            may_block += usize::from(way.deadlock == Deadlock::Unproven);
            states += judge_steps(&way, &mut rng, &what);
            let back = few_steps(&topology, &policy, Some(&next)).expect("it plans");
            judge(&back, &format!("{what}, back"));
            let way = steps(&next, &back).expect("there are VLANs to spare");
            may_block += usize::from(way.deadlock == Deadlock::Unproven);
            states += judge_steps(&way, &mut rng, &what);
            plans += 3;
        }
    }
    eprintln!(
        "{plans} plans, {states} states on the way, {refused} refused, {may_block} ways not proven free of deadlock"
    );
    assert!(may_block <= plans / 200, "{may_block} of {plans}");
    assert!(plans > 200 && states > 1000 && refused == 0, "{plans} plans, {states} states, {refused} refused");
}

#[test]
fn every_mode_plans_around_what_is_drained() {
    // One group loses a member when it is drained, another all of its own.
    let mut builder = TopologyBuilder::of(&generated("torus", &["3x3"], None));
    builder.add_group("feed-a", &[SwitchId::new(4), SwitchId::new(0)], &[]).expect("fresh");
    builder.add_group("card-3", &[], &[LinkId::new(5)]).expect("fresh");
    builder.add_group("feed-b", &[SwitchId::new(7)], &[LinkId::new(2)]).expect("fresh");
    let torus = builder.finish().expect("connected");
    for &tagging in Tagging::ALL {
        for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)] {
            for resilience in [Resilience::None, Resilience::OneLink, Resilience::OneGroup] {
                let policy = Policy { tagging, flow_control, resilience, ..Policy::default() };
                for subject in [Ok(SwitchId::new(4)), Err(LinkId::new(5))] {
                    let asked = drained(&torus, &policy, subject).expect("the rest is connected");
                    let plan = few_steps(&torus, &asked, None).expect("it plans");
                    let report = verify::check(&plan);
                    assert!(report.is_deployable(), "{tagging}, {flow_control}, {resilience}, {subject:?}\n{report}");
                    assert_eq!(plan.policy.drain, asked.drain);
                }
            }
        }
    }
}

/// Where the fastest link is drained, loads are still counted on it: the plan's figures are those of its topology.
#[test]
fn the_fastest_link_may_be_drained() {
    let ring = |rates: &[u64]| {
        let mut builder = TopologyBuilder::new();
        let ids: Vec<_> = (0..rates.len())
            .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("fresh"))
            .collect();
        for (number, rate) in rates.iter().enumerate() {
            let a = builder.add_port(ids[number], "p1").expect("fresh");
            let b = builder.add_port(ids[(number + 1) % rates.len()], "p2").expect("fresh");
            builder.add_link(a, b, *rate).expect("free ports");
            let port = builder.add_port(ids[number], "h").expect("fresh");
            builder
                .add_host(&format!("h{number}"), Mac::local(number as u32 + 1), port, 1_000_000_000, None)
                .expect("fresh");
        }
        builder.finish().expect("connected")
    };
    let topology = ring(&[10_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000]);
    for resilience in [Resilience::None, Resilience::OneLink] {
        let policy = Policy { resilience, ..Policy::default() };
        let asked = drained(&topology, &policy, Err(LinkId::new(0))).expect("a path is left");
        let plan = few_steps(&topology, &asked, None).expect("it plans");
        judge(&plan, "a ring without its fastest link");
        assert_eq!((plan.summary.max_channel_load, plan.summary.max_channel_time), (4.0, 40.0));
        assert_eq!(plan.summary.load_bound, 40.0);
    }
    let two = ring(&[10_000_000_000, 1_000_000_000]);
    let asked = drained(&two, &Policy::default(), Err(LinkId::new(0))).expect("one link is left");
    judge(&few_steps(&two, &asked, None).expect("it plans"), "two switches without the faster link");
}

/// The judge looks at ports, whatever the plan's trees say.
#[test]
fn a_frame_that_could_cross_is_found() {
    let torus = generated("torus", &["3x3"], None);
    for subject in [Ok(SwitchId::new(4)), Err(LinkId::new(5))] {
        let asked = drained(&torus, &Policy::default(), subject).expect("the rest is connected");
        let mut plan = few_steps(&torus, &asked, None).expect("it plans");
        let vlan = plan.trees[0].vlan;
        let link = *plan.policy.drain.links.first().expect("something is drained");
        let port = torus.link(link).a;
        let device = &mut plan.devices[torus.port(port).switch.index()];
        device.ports.iter_mut().find(|intent| intent.port == port).expect("its intent").tagged.insert(vlan);
        let report = verify::check(&plan);
        let found = |finding: &fabric::Finding| {
            (finding.kind, finding.severity) == (FindingKind::DrainedInUse, Severity::Fatal)
                && finding.subject == torus.port_label(port)
        };
        assert!(report.findings().iter().any(found), "{subject:?}\n{report}");
    }
    // Links that are used may not be said to be drained, nor switches through which frames pass.
    let plan = few_steps(&torus, &Policy::default(), None).expect("it plans");
    for subject in [Ok(SwitchId::new(4)), Err(LinkId::new(5))] {
        let drain = drained(&torus, &Policy::default(), subject).expect("the rest is connected").drain;
        let only_switch = fabric::Drain { links: BTreeSet::new(), ..drain.clone() };
        for drain in [drain, only_switch].into_iter().filter(|drain| !drain.is_empty()) {
            let lie = Plan { policy: Policy { drain, ..plan.policy.clone() }, ..plan.clone() };
            let report = verify::check(&lie);
            assert!(report.findings().iter().any(|finding| finding.kind == FindingKind::DrainedInUse), "{report}");
        }
    }
}

/// A spine that is drained leaves a smaller fat tree, which engine clos still knows.
#[test]
fn without_a_core_switch_a_fat_tree_is_still_one() {
    let tree = generated("fat-tree", &["k=4"], None);
    let core = tree.switch_ids().rev().find(|switch| tree.hosts_of(*switch).is_empty()).expect("it has cores");
    let policy = Policy { engine: EngineName::Updown, ..Policy::default() };
    let asked = drained(&tree, &policy, Ok(core)).expect("other cores are left");
    let plan = few_steps(&tree, &asked, None).expect("it plans");
    judge(&plan, "a fat tree less a core");
    let used = plan.devices[core.index()].vlans();
    assert!(used.is_empty() && plan.devices[core.index()].fdb.is_empty(), "{used}");
}

#[test]
fn what_would_be_cut_off_is_named_with_a_way_out() {
    let row = generated("mesh", &["4x1"], None);
    let links = |numbers: &[usize]| numbers.iter().map(|number| LinkId::new(*number)).collect::<BTreeSet<_>>();
    let refused = |switches: &[usize], numbers: &[usize]| {
        let switches = switches.iter().map(|number| SwitchId::new(*number)).collect();
        drain(&row, &switches, &links(numbers)).expect_err("somebody is cut off").to_string()
    };
    assert_eq!(refused(&[], &[0]), "draining cuts off h0; leave out --drain s0-0:p1");
    assert_eq!(refused(&[1], &[]), "draining cuts off h0; leave out --drain s1-0");
    let way_out = refused(&[], &[0, 2]);
    assert_eq!(way_out, "draining cuts off h0, h3; leave out --drain s0-0:p1 and --drain s2-0:p2");
    // Whatever is left out as the advice says, the rest can be drained.
    let ring = generated("torus", &["5x1"], None);
    let two = drain(&ring, &BTreeSet::new(), &links(&[0, 2])).expect_err("a ring in two parts").to_string();
    assert!(two.contains("; leave out one of --drain "), "{two}");
    for link in [0, 2] {
        drain(&ring, &BTreeSet::new(), &links(&[link])).expect("one link of a ring may be drained");
    }
    // A policy that was not made by `drain` is refused as well.
    let drain = fabric::Drain { links: links(&[0]), switches: BTreeSet::new() };
    let error = few_steps(&row, &Policy { drain, ..Policy::default() }, None).expect_err("h0 is cut off");
    assert!(matches!(error, PlanError::CutOff { .. }), "{error}");
}

/// A drained switch that is managed over its data ports is still managed, over its links to one neighbour.
#[test]
fn management_over_data_ports_stays() {
    let torus = generated("torus", &["3x3"], None);
    for controller_at in [0, 4] {
        let mut builder = TopologyBuilder::of(&torus);
        let controller = builder.add_port(SwitchId::new(controller_at), "ctl").expect("a fresh port");
        let vlan = fabric::VlanId::new(100).expect("in range");
        builder.set_in_band(fabric::InBand { vlan, controller }).expect("a free port");
        let managed = builder.finish().expect("connected");
        let before = few_steps(&managed, &Policy::default(), None).expect("it plans");
        for subject in [Ok(SwitchId::new(4)), Err(LinkId::new(5))] {
            let asked = drained(&managed, &Policy::default(), subject).expect("the rest is connected");
            for previous in [None, Some(&before)] {
                let plan = few_steps(&managed, &asked, previous).expect("it plans");
                let report = verify::check(&plan);
                assert!(report.is_deployable(), "{subject:?}, controller at {controller_at}\n{report}");
                assert_eq!(few_steps(&managed, &asked, Some(&plan)).as_ref(), Ok(&plan), "again");
            }
        }
    }
}

/// Links that come back are used again: the plan is as good as one that never was without them, but for a tenth.
#[test]
fn what_comes_back_carries_frames_again() {
    let topology = generated("torus", &["3x3"], None);
    let policy = Policy::default();
    let asked = drained(&topology, &policy, Ok(SwitchId::new(4))).expect("the rest is connected");
    let without = few_steps(&topology, &asked, None).expect("it plans");
    let back = few_steps(&topology, &policy, Some(&without)).expect("it plans");
    let fresh = few_steps(&topology, &policy, None).expect("it plans");
    assert!(without.summary.max_channel_time > fresh.summary.max_channel_time * 1.1, "draining costs something here");
    assert!(back.summary.max_channel_time <= fresh.summary.max_channel_time * planner::REPLAN_LOAD_FACTOR);
}
