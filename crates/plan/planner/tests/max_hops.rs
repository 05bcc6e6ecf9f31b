//! A limit on hops: every engine keeps to it or refuses, plans that are made again do so as well, and the judge follows every frame.

mod common;

use common::Cabling;
use fabric::{
    Drain, EngineName, FindingKind, FlowControl, HostId, LinkId, Plan, Policy, Resilience, SwitchId, Tagging, Topology,
    TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with};

fn topology(family: &str, size: &str) -> Topology {
    let kind = Kind::parse(family, &[size.to_owned()]).expect("a size");
    generate(&kind, &Options::default()).expect("sane")
}

fn planned(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(20))
}

/// Links between switches from one host to another by the plan's own trees.
fn hops(plan: &Plan, from: HostId, to: HostId) -> u32 {
    let vlan = plan.assignment.unicast(from, to);
    let tree = &plan.trees.iter().find(|tree| tree.vlan == vlan).expect("a tree").tree;
    let rooted = tree.rooted_at(&plan.topology, plan.topology.switch_of(from));
    let (mut at, mut hops) = (plan.topology.switch_of(to), 0);
    while let Some(channel) = rooted.inward[at.index()] {
        (at, hops) = (plan.topology.tail(channel), hops + 1);
    }
    hops
}

fn longest(plan: &Plan) -> u32 {
    let hosts = || plan.topology.host_ids();
    let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs.map(|(from, to)| hops(plan, from, to)).max().unwrap_or(0)
}

/// The farthest two hosts, by distances of all pairs of switches (Floyd and Warshall).
fn diameter(topology: &Topology, drained: &[LinkId]) -> u32 {
    let count = topology.switches().len();
    let mut distance = vec![vec![u32::MAX / 2; count]; count];
    (0..count).for_each(|at| distance[at][at] = 0);
    for channel in topology.channel_ids().filter(|channel| !drained.contains(&channel.link())) {
        distance[topology.tail(channel).index()][topology.head(channel).index()] = 1;
    }
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                distance[from][to] = distance[from][to].min(distance[from][via] + distance[via][to]);
            }
        }
    }
    let with_hosts: Vec<SwitchId> =
        topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).collect();
    let pairs = with_hosts.iter().flat_map(|from| with_hosts.iter().map(move |to| (from, to)));
    pairs.map(|(from, to)| distance[from.index()][to.index()]).max().unwrap_or(0)
}

/// What the judge says of a plan under another limit.
fn is_too_long(plan: &Plan, hops_max: u32) -> bool {
    let stated = Plan { policy: Policy { hops_max: Some(hops_max), ..plan.policy.clone() }, ..plan.clone() };
    verify::check(&stated).findings().iter().any(|finding| finding.kind == FindingKind::TooManyHops)
}

fn assert_kept(plan: &Plan, context: &str) {
    let limit = plan.policy.hops_max.expect("a limit");
    let longest = longest(plan);
    assert!(longest <= limit, "{context}: {longest} hops where {limit} are allowed");
    let report = verify::check(plan);
    assert!(report.is_deployable(), "{context}: {report}");
    assert_eq!(plan.summary.max_switches_per_path, longest as usize + 1, "{context}");
    // The judge's limit is sharp.
    assert!(!is_too_long(plan, longest), "{context}");
    assert!(longest == 0 || is_too_long(plan, longest - 1), "{context}");
}

/// The most is asked of regular fabrics: paths as short as the diameter, by every engine that can have them.
#[test]
fn regular_fabrics_are_planned_at_their_diameter() {
    for (family, size, hops_max, flow_control, engines) in [
        ("torus", "4x4", 4, FlowControl::Pause, &[EngineName::Auto, EngineName::Dor, EngineName::Balanced][..]),
        ("torus", "5x5", 4, FlowControl::None, &[EngineName::Auto, EngineName::Dor, EngineName::Balanced]),
        (
            "fat-tree",
            "k=4",
            4,
            FlowControl::Pause,
            &[EngineName::Auto, EngineName::Clos, EngineName::Updown, EngineName::Balanced],
        ),
        ("hypercube", "3", 3, FlowControl::Pause, &[EngineName::Auto, EngineName::Dor]),
    ] {
        let topology = topology(family, size);
        for &engine in engines {
            for tagging in Tagging::ALL.iter().copied() {
                let policy = Policy { engine, flow_control, tagging, hops_max: Some(hops_max), ..Policy::default() };
                let context = format!("{family} {size}, {engine}, {tagging}");
                match planned(&topology, &policy, None) {
                    Ok(plan) => assert_kept(&plan, &context),
                    // Dimension order that some frames follow backward closes cycles, and one engine may have no other routes as short.
                    Err(error) => {
                        let is_named = engine != EngineName::Auto && flow_control != FlowControl::None;
                        assert!(is_named && tagging == Tagging::SourceDestination, "{context}: {error}");
                    }
                }
            }
        }
    }
}

/// What no cabling allows is refused with the smallest limit that it does.
#[test]
fn a_limit_below_the_diameter_is_refused_with_the_diameter() {
    let torus = topology("torus", "4x4");
    let policy = |hops_max| Policy { hops_max: Some(hops_max), ..Policy::default() };
    for limit in 0..4 {
        let refused = planned(&torus, &policy(limit), None).expect_err("too short").to_string();
        let words = format!("--max-hops {limit}: h0 and h10 are 4 hops apart");
        assert!(refused.contains(&words) && refused.ends_with("--max-hops 4"), "{refused}");
    }
    assert_kept(&planned(&torus, &policy(4), None).expect("the diameter"), "the diameter");
}

/// An engine whose routes are longer says so, and what helps is tried before it is named.
#[test]
fn an_engine_with_longer_routes_names_a_way_out() {
    let torus = topology("torus", "4x4");
    let policy = Policy { engine: EngineName::Tree, hops_max: Some(4), ..Policy::default() };
    let refused = planned(&torus, &policy, None).expect_err("one tree is deeper").to_string();
    assert!(refused.contains("engine tree") && refused.contains("--max-hops allows 4"), "{refused}");
    assert!(refused.contains("--engine auto"), "{refused}");
    let more = refused.split("raise it to --max-hops ").nth(1).expect("a larger limit");
    let more: u32 = more.split(|c: char| !c.is_ascii_digit()).next().expect("digits").parse().expect("a number");
    assert_kept(&planned(&torus, &Policy { hops_max: Some(more), ..policy }, None).expect("the way out"), "tree");
}

/// Any cabling, engine, tagging and flow control: what is planned keeps to the limit, also with few VLANs, with something drained,
/// and when it is planned again; without flow control the search finds paths as short as the cabling has them.
#[test]
fn plans_of_random_cablings_keep_to_the_limit() {
    let (mut tight, mut kept, mut again, mut refusals) = (0, 0, 0, 0);
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let switches = 4 + rng.below(9);
        let extra = 2 + rng.below(14);
        let Some(topology) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        if topology.hosts().len() < 2 || topology.links().is_empty() {
            continue;
        }
        let drained = match rng.below(3) {
            0 => vec![LinkId::new(rng.below(topology.links().len()))],
            _ => Vec::new(),
        };
        let drain = planner::drain(&topology, &Default::default(), &drained.iter().copied().collect());
        let (drain, drained) = drain.map_or((Drain::default(), Vec::new()), |drain| (drain, drained));
        let least = diameter(&topology, &drained);
        let policy = Policy {
            engine: [EngineName::Auto, EngineName::Auto, EngineName::Balanced, EngineName::Updown][rng.below(4)],
            tagging: Tagging::ALL[rng.below(Tagging::ALL.len())],
            flow_control: [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][rng.below(3)],
            resilience: [Resilience::None, Resilience::None, Resilience::OneLink][rng.below(3)],
            vlans_max: [None, None, Some(1 + rng.below(6))][rng.below(3)],
            hops_max: Some(least + rng.below(2) as u32),
            drain,
            ..Policy::default()
        };
        let context = format!("seed {seed}");
        if least > 0 {
            let short = Policy { hops_max: Some(least - 1), ..policy.clone() };
            let refused = planned(&topology, &short, None).expect_err("nothing is so near");
            let PlanError::HopsTooFew { least: named, .. } = refused else { panic!("{context}: {refused}") };
            assert_eq!(named, least, "{context}");
        }
        let plan = match planned(&topology, &policy, None) {
            Ok(plan) => plan,
            Err(error) => {
                let searched = policy.engine != EngineName::Updown && policy.flow_control == FlowControl::None;
                let is_free = policy.vlans_max.is_none() && policy.resilience == Resilience::None;
                assert!(!searched || !is_free, "{context}: {error}");
                refusals += 1;
                continue;
            }
        };
        assert_kept(&plan, &context);
        kept += 1;
        tight += u32::from(policy.hops_max == Some(least));
        // A cable less, by which distances may grow.
        let gone = LinkId::new(rng.below(topology.links().len()));
        let mut builder = TopologyBuilder::of(&topology);
        builder.remove_links(&[gone].into());
        let Ok(fewer) = builder.finish() else { continue };
        let same = Policy { drain: Drain::default(), ..policy.clone() };
        match planned(&fewer, &same, Some(&plan)) {
            Ok(plan) => {
                assert_kept(&plan, &format!("{context} again"));
                again += 1;
            }
            Err(error) => assert!(
                matches!(
                    error,
                    PlanError::HopsTooFew { .. }
                        | PlanError::TooManyHops { .. }
                        | PlanError::TooManyVlans { .. }
                        | PlanError::TooManyVlansForResilience { .. }
                        | PlanError::Deadlock { .. }
                ),
                "{context} again: {error}"
            ),
        }
    }
    assert!(kept > 60 && tight > 20 && again > 40, "{kept} kept, {tight} tight, {again} again, {refusals} refused");
}

/// A limit that is no tighter than what is there leaves the previous plan's routes as they are; a tighter one does not.
#[test]
fn a_limit_on_a_running_fabric() {
    let torus = topology("torus", "4x4");
    let free = planned(&torus, &Policy { engine: EngineName::Tree, ..Policy::default() }, None).expect("planned");
    let long = longest(&free);
    assert!(long > 4, "{long}");
    let loose = Policy { hops_max: Some(long), ..free.policy.clone() };
    let kept = planned(&torus, &loose, Some(&free)).expect("planned");
    assert_eq!(kept.trees, free.trees);
    let tight = Policy { hops_max: Some(4), ..Policy::default() };
    let changed = planned(&torus, &tight, Some(&free)).expect("planned");
    assert_kept(&changed, "tight");
}

/// Paths after a failure may be longer: the ring's other way round.
#[test]
fn a_switch_over_may_take_longer_paths() {
    let ring = topology("torus", "6");
    let policy = Policy {
        hops_max: Some(3),
        flow_control: FlowControl::None,
        resilience: Resilience::OneLink,
        ..Policy::default()
    };
    let plan = planned(&ring, &policy, None).expect("planned");
    assert_kept(&plan, "ring");
    assert_eq!(plan.failover.as_ref().expect("asked for").summary.links_dividing, 0);
}
