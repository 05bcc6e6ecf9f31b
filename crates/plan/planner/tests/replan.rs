//! Planning again: little changes, and the new plan is sound.

use fabric::{
    Demand, EngineName, Plan, Policy, Tagging, Topology, Traffic, TrafficMatrix,
    generate::{Kind, Options, generate},
};
use planner::{PlanError, StepLimit, plan, plan_with};
use transition::difference;

fn generated(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

/// The topology less its `link`-th link.
fn without_link(topology: &Topology, link: usize) -> Topology {
    let mut builder = fabric::TopologyBuilder::new();
    let mut ports = Vec::new();
    for id in topology.switch_ids() {
        let switch = builder.add_switch(&topology.switch(id).name, Default::default()).expect("a fresh name");
        ports.extend(topology.port_ids(id).map(|p| builder.add_port(switch, &topology.port(p).name).expect("fresh")));
    }
    for (number, cable) in topology.links().iter().enumerate() {
        if number != link {
            builder.add_link(ports[cable.a.index()], ports[cable.b.index()], cable.rate_bps).expect("free ports");
        }
    }
    for host in topology.hosts() {
        builder.add_host(&host.name, host.mac, ports[host.port.index()], host.rate_bps, None).expect("a free port");
    }
    builder.finish().expect("the rest is connected")
}

#[test]
fn a_lost_link_touches_only_the_trees_that_used_it() {
    for (kind, size) in [("torus", "4x4"), ("torus", "4x4x4"), ("mesh", "6x6"), ("hypercube", "5"), ("hyperx", "4x4")] {
        let whole = generated(kind, size);
        let before = plan(&whole, &Policy::default(), None).expect("it plans");
        for link in [0, 3, 7] {
            let next = plan(&without_link(&whole, link), &Policy::default(), Some(&before)).expect("it plans");
            let report = verify::check(&next);
            assert!(report.findings().is_empty(), "{kind} {size}\n{report}");
            let difference = difference(&before, &next);
            assert!(difference.vlans_added.is_empty(), "{kind} {size}: {difference}");
            let share = difference.entries.share_touched();
            assert!(share < 0.25, "{kind} {size}: {difference}");
            let lost = fabric::LinkId::new(link);
            for tree in before.trees.iter().filter(|tree| !tree.tree.contains(lost)) {
                let same = next.tree(tree.vlan).expect("it stays").tree.links().len();
                assert_eq!(same, tree.tree.links().len(), "{kind} {size}");
            }
        }
    }
}

/// Random graphs, where the numbering leaves few routes to choose from: 9 of 140 cables took everything with them.
#[test]
fn nearly_every_cable_may_be_lost_without_planning_anew() {
    let (mut lost, mut anew) = (0, 0);
    for size in ["n=24,d=3", "n=32,d=4", "n=20,d=4,seed=3"] {
        let words: Vec<String> = size.split(',').map(str::to_owned).collect();
        let kind = Kind::parse("random-regular", &words).expect("valid sizes");
        let whole = generate(&kind, &Options::default()).expect("a sane size");
        let policy = Policy { engine: EngineName::Balanced, ..Policy::default() };
        let before = plan(&whole, &policy, None).expect("it plans");
        for link in 0..whole.links().len() {
            let next = plan(&without_link(&whole, link), &policy, Some(&before)).expect("it plans");
            assert_eq!(verify::check(&next).findings().len(), 0, "{size} less {link}");
            lost += 1;
            anew += usize::from(difference(&before, &next).vlans_added.len() > before.trees.len() / 2);
        }
    }
    assert!(anew * 50 <= lost, "{anew} of {lost}");
}

/// Rooted from the first cable that climbs, what these cables carried takes the most loaded channel to 1344 and 1280 pairs.
#[test]
fn what_a_lost_cable_carried_is_spread_over_others() {
    let whole = generated("torus", "8x8x8");
    let policy = Policy { engine: EngineName::Dor, ..Policy::default() };
    let before = plan(&whole, &policy, None).expect("it plans");
    assert_eq!(before.summary.max_channel_load, 768.0);
    for (link, busiest) in [(768, 856.0), (256, 960.0)] {
        let next = plan(&without_link(&whole, link), &policy, Some(&before)).expect("it plans");
        assert!(next.summary.max_channel_load <= busiest, "{link}: {}", next.summary.max_channel_load);
        let difference = difference(&before, &next);
        let counts = (difference.vlans_added.len(), difference.vlans_removed.len(), difference.pvids_changed);
        assert!(difference.entries.share_touched() < 0.005 && counts == (0, 0, 0), "{link}: {difference}");
        assert_eq!(verify::check(&next).findings().len(), 0);
    }
}

/// Loads are counted in the matrix's demands: where all are equal, it is as if there were none.
#[test]
fn a_matrix_of_equal_demands_is_mended_like_all_to_all() {
    let mut rerouted = 0;
    for (kind, size) in [("torus", "4x4"), ("mesh", "4x4"), ("hypercube", "4"), ("hyperx", "4x4")] {
        let whole = generated(kind, size);
        let pairs = |source| whole.host_ids().filter(move |to| *to != source).map(move |to| (source, to));
        let demands =
            whole.host_ids().flat_map(pairs).map(|(source, destination)| Demand { source, destination, amount: 0.3 });
        let matrix = TrafficMatrix::new(whole.hosts().len(), demands.collect()).expect("sane demands");
        for tagging in Tagging::ALL.iter().copied() {
            let alike = Policy { tagging, ..Policy::default() };
            let by_matrix = Policy { traffic: Traffic::Matrix(matrix.clone()), ..alike.clone() };
            let before = few_steps(&whole, &alike, None).expect("it plans");
            let mut same = Plan { policy: by_matrix.clone(), ..before.clone() };
            same.summary.max_channel_load *= 0.3;
            same.summary.max_channel_time *= 0.3;
            for link in 0..whole.links().len() / 2 {
                let less = without_link(&whole, link);
                let [next, other] = [(&alike, &before), (&by_matrix, &same)]
                    .map(|(policy, before)| few_steps(&less, policy, Some(before)).expect("it plans"));
                let what = format!("{kind} {size} less {link}, {tagging}");
                assert!(next.trees == other.trees && next.assignment == other.assignment, "{what}");
                rerouted += usize::from(next.trees != before.trees);
            }
        }
    }
    assert!(rerouted > 100, "{rerouted}");
}

/// Plans with little search: these tests are about being right, not about being good.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(2))
}
