//! Correct plans are found correct, in every tagging mode, and the report is always the same.

mod common;

use common::{Wish, clos, plan, ring, topology};
use fabric::{
    FdbMode, FindingKind, Flood, FloodKind, FloodSet, FlowControl, HostId, LinkId, Plan, PortRole, Severity, Tagging,
    Tree,
};
use verify::{Deadlock, Disposition, FrameKind, Judgement, Loss, Receiver, check, judge, walk};

fn assert_clean(plan: &Plan) {
    let report = check(plan);
    let worst = report.findings().iter().filter(|finding| finding.severity != Severity::Note);
    assert_eq!(worst.count(), 0, "{report}");
}

#[test]
fn every_tagging_mode_is_clean() {
    for &tagging in Tagging::ALL {
        for topology in [clos(), ring(), topology(&[3], &[]), topology(&[1, 2], &[(0, 1), (0, 1)])] {
            assert_clean(&plan(&topology, Wish::tagged_by(tagging)));
            assert_clean(&plan(&topology, Wish { fdb: FdbMode::Full, ..Wish::tagged_by(tagging) }));
        }
    }
    assert_clean(&plan(&clos(), Wish::switch_tagged()));
}

#[test]
fn lanes_are_judged_apart() {
    let lanes = |classes| Wish { flow_control: FlowControl::Pfc(classes), ..Wish::switch_tagged() };
    assert_clean(&plan(&ring(), lanes(5)));
    let one_lane = check(&plan(&ring(), lanes(1)));
    let kinds: Vec<FindingKind> = one_lane.findings().iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::DependencyCycle, FindingKind::BadCertificate], "{one_lane}");
}

#[test]
fn without_flow_control_a_cycle_is_a_note() {
    let report = check(&plan(&ring(), Wish::tagged_by(Tagging::Switch)));
    assert!(report.is_deployable(), "{report}");
    assert_eq!(report.count(Severity::Note), 2, "{report}");
    let cycle = "lane 0: 5 channels wait for each other in a cycle: s0:2 -> s1:2, s1:3 -> s2:2, s2:3 -> s3:2";
    assert!(report.to_string().contains(cycle), "{report}");
}

#[test]
fn one_input_has_one_report() {
    let mut damaged = plan(&clos(), Wish::switch_tagged());
    damaged.devices[3].fdb.clear();
    damaged.devices[1].ports[0].tagged = "2-9".parse().expect("a valid set");
    let report = check(&damaged);
    assert!(!report.is_deployable());
    assert_eq!(report, check(&damaged.clone()));
    assert_eq!(report.to_string(), check(&damaged).to_string());
}

#[test]
fn a_route_is_explained_step_by_step() {
    let mut plan = plan(&clos(), Wish::switch_tagged());
    let (from, to) = (HostId::new(0), HostId::new(5));
    let found = walk(&plan, from, Receiver::Host(to));
    assert_eq!(found.disposition, Disposition::Delivered);
    assert_eq!(
        found.lines(&plan.topology),
        [
            "s0:1 VLAN 2: entry: tagged out of s0:3 to s3:1",
            "s3:1 VLAN 2: entry: tagged out of s3:3 to s2:3",
            "s2:3 VLAN 2: entry: untagged out of s2:2 to h5",
            "h0 -> h5: the frame is delivered",
        ]
    );
    let everybody = walk(&plan, from, Receiver::Everybody);
    assert_eq!(everybody.disposition, Disposition::Spread);
    assert!(everybody.deliveries.iter().all(|(host, copies)| *host != from && *copies == 1));
    assert_eq!((everybody.deliveries.len(), walk(&plan, from, Receiver::Nobody).deliveries.len()), (5, 5));
    plan.devices[3].fdb.clear();
    let found = walk(&plan, from, Receiver::Host(to));
    assert_eq!(found.disposition, Disposition::Flooded { at: plan.devices[3].switch });
    assert_eq!(
        found.lines(&plan.topology).last().map(String::as_str),
        Some("h0 -> h5: the frame floods from s3, which has no entry for it")
    );
    plan.devices[3].ports.iter_mut().for_each(|port| port.blocked = Flood::DropAll.blocked());
    let found = walk(&plan, from, Receiver::Host(to));
    let at = plan.devices[3].ports[0].port;
    assert_eq!(found.disposition, Disposition::Dropped { at, loss: Loss::Blocked });
    assert_eq!(
        found.lines(&plan.topology)[1..],
        [
            "s3:1 VLAN 2: no entry, so dropped: nowhere to go",
            "h0 -> h5: the frame is lost at s3:1: the switch has no entry for it, and drops such frames",
        ]
    );
    // Only s4 lets broadcasts on: none of its neighbours hears them by the other spine.
    let everybody = walk(&plan, from, Receiver::Everybody);
    assert_eq!((everybody.disposition, everybody.deliveries.len()), (Disposition::Spread, 1));
}

#[test]
fn broadcasts_that_close_a_ring_are_noted() {
    // From one leaf through a spine to the other leaf, and up again to the second spine, where nobody is.
    let links = [(0, 2), (1, 2), (1, 3), (0, 3)];
    let mut plan = plan(&topology(&[1, 1, 0, 0], &links), Wish::switch_tagged());
    let tree = |links: [usize; 3]| Tree::new(&plan.topology, links.map(LinkId::new)).expect("a tree");
    let trees = [tree([0, 1, 2]), tree([2, 3, 0])];
    for (index, tree) in trees.into_iter().enumerate() {
        let vlan = plan.trees[index].vlan;
        for link in plan.topology.link_ids() {
            for end in [plan.topology.link(link).a, plan.topology.link(link).b] {
                let ports = plan.devices.iter_mut().flat_map(|device| &mut device.ports);
                for port in ports.filter(|port| port.port == end) {
                    port.tagged.remove(vlan);
                    if tree.contains(link) {
                        port.tagged.insert(vlan);
                    }
                }
            }
        }
        plan.trees[index].tree = tree;
    }
    let report = check(&plan);
    let note = report.findings().iter().find(|finding| finding.severity == Severity::Note);
    assert!(report.is_deployable(), "{report}");
    let words = "unicast frames cannot block, but with broadcast, multicast and unknown unicast 4 channels wait";
    assert!(note.is_some_and(|note| note.message.starts_with(words)), "{report}");
    let floods = [FrameKind::Broadcast, FrameKind::Multicast, FrameKind::UnknownUnicast];
    let Judgement { deadlock: Deadlock::Waits { covered, open }, dropped, .. } = judge(&plan) else {
        panic!("PAUSE makes frames wait")
    };
    assert_eq!((&covered[..], &open[..], &dropped[..]), (&[FrameKind::Unicast][..], &floods[..], &[][..]));
    // What no port lets out is on no cable and waits for nothing: the proof need not cover it.
    for (flood, left, gone) in [(Flood::Drop, &floods[..2], &floods[2..]), (Flood::DropAll, &[], &floods[..])] {
        plan.policy.flood = flood;
        for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
            if port.role != PortRole::Unused {
                port.blocked = flood.blocked();
            }
        }
        let Judgement { deadlock: Deadlock::Waits { covered, open }, dropped, report } = judge(&plan) else {
            panic!("PAUSE makes frames wait")
        };
        assert_eq!(
            (&covered[..], &open[..], &dropped[..]),
            (&[FrameKind::Unicast][..], left, gone),
            "{flood}: {report}"
        );
        assert_eq!(report.findings().is_empty(), left.is_empty(), "{flood}: {report}");
    }
    // A single port that lets broadcasts out has them on the wire again.
    let link = plan.topology.link(plan.topology.link_ids().next().expect("a link")).a;
    let port = plan.devices.iter_mut().flat_map(|device| &mut device.ports).find(|port| port.port == link);
    port.expect("its state").blocked = FloodSet::ALL.without(FloodSet::NONE.with(FloodKind::Broadcast));
    let Judgement { deadlock: Deadlock::Waits { covered, .. }, dropped, report } = judge(&plan) else {
        panic!("PAUSE makes frames wait")
    };
    assert_eq!((&covered[..], &dropped[..]), (&[FrameKind::Unicast, FrameKind::Broadcast][..], &floods[1..]));
    assert!(report.to_string().contains("forwards broadcast, which the plan drops"), "{report}");
}
