//! An edge port: frames for addresses that no switch knows go there, once, and nowhere else.

mod common;

use std::collections::BTreeMap;

use common::Cabling;
use fabric::{
    Fault, Finding, FindingKind, Flood, FloodKind, FloodSet, FlowControl, HostId, Mac, Plan, Policy, PortId, Severity,
    Topology, TopologyBuilder, rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with};
use verify::{Receiver, check, walk};

/// A random cabling with an uplink at a random switch, whose switches can block unknown unicast.
fn with_edge(rng: &mut Rng) -> Option<Topology> {
    let (switches, extra) = (2 + rng.below(8), rng.below(10));
    let network = Cabling::random(switches, extra, rng).topology().filter(|network| network.edge().is_none())?;
    let mut builder = TopologyBuilder::of(&network);
    let switch = builder.switch(&network.switches()[rng.below(switches)].name).ok()?;
    let port = builder.add_port(switch, "uplink").ok()?;
    let edge = builder.add_edge("uplink", port, 1_000_000_000, None).ok()?;
    if rng.below(2) == 0 {
        builder.add_mac(edge, Mac::local(900_000)).ok()?;
    }
    builder.change_models(|model| model.blocks_floods = FloodSet::NONE.with(FloodKind::UnknownUnicast));
    builder.finish().ok()
}

fn planned(topology: &Topology, flood: Flood, flow_control: FlowControl) -> Plan {
    let policy = Policy { flood, flow_control, ..Policy::default() };
    plan_with(topology, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan")
}

fn fatal(plan: &Plan) -> Vec<Finding> {
    check(plan).findings().iter().filter(|finding| finding.severity == Severity::Fatal).cloned().collect()
}

#[test]
fn unknown_unicast_goes_to_the_edge_and_nowhere_else() {
    let (mut rng, mut frames) = (Rng::new(31), 0);
    for round in 0..180 {
        let Some(topology) = with_edge(&mut rng) else { continue };
        let edge = topology.edge().expect("it has one");
        let flow_control = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][round % 3];
        let plan = planned(&topology, Flood::Edge, flow_control);
        assert_eq!(fatal(&plan), [], "round {round}");
        for source in topology.host_ids() {
            let expected = if source == edge { BTreeMap::new() } else { BTreeMap::from([(edge, 1)]) };
            assert_eq!(walk(&plan, source, Receiver::Nobody).deliveries, expected, "round {round}: {source:?}");
            frames += 1;
        }
        // Whoever is behind the edge, and known, is reached as a host is; broadcasts reach everybody.
        let everybody = walk(&plan, edge, Receiver::Everybody).deliveries;
        assert_eq!(everybody.len(), topology.hosts().len() - 1, "round {round}");
    }
    assert!(frames > 300, "{frames}");
}

/// The same with floods forwarded, as where switches cannot block them: the edge gets every frame, and so do all others.
#[test]
fn forwarded_floods_reach_the_edge_too() {
    let mut rng = Rng::new(32);
    for _ in 0..20 {
        let Some(topology) = with_edge(&mut rng) else { continue };
        let plan = planned(&topology, Flood::Forward, FlowControl::Pause);
        assert_eq!(fatal(&plan), []);
        for source in topology.host_ids().filter(|host| !topology.host(*host).edge) {
            assert_eq!(walk(&plan, source, Receiver::Nobody).deliveries.len(), topology.hosts().len() - 1);
        }
    }
}

/// Each port that is set otherwise is found: one that lets unknown unicast out to a host, and one on the way that lets none out.
#[test]
fn ports_that_block_otherwise_are_found() {
    let mut rng = Rng::new(33);
    let unknown = FloodSet::NONE.with(FloodKind::UnknownUnicast);
    let mut ports = 0;
    for _ in 0..24 {
        let Some(topology) = with_edge(&mut rng) else { continue };
        let plan = planned(&topology, Flood::Edge, FlowControl::Pause);
        for at in 0..topology.ports().len() {
            let port = PortId::new(at);
            let mut wrong = plan.clone();
            let device = &mut wrong.devices[topology.port(port).switch.index()];
            let intent = device.ports.iter_mut().find(|intent| intent.port == port).expect("every port has one");
            // Frames leave by LAGs, not by their members.
            if matches!(intent.role, fabric::PortRole::Unused | fabric::PortRole::Member) {
                continue;
            }
            intent.blocked = if intent.blocked.is_empty() { unknown } else { FloodSet::NONE };
            let found = fatal(&wrong);
            assert!(found.iter().any(|finding| finding.kind == FindingKind::PlanMismatch), "{port:?}: {found:?}");
            ports += 1;
        }
    }
    assert!(ports > 100, "{ports}");
}

#[test]
fn two_uplinks_to_one_network_are_refused() {
    let mut builder = TopologyBuilder::new();
    let switch = builder.add_switch("s", Default::default()).unwrap();
    let ports: Vec<PortId> = ["a", "b"].map(|name| builder.add_port(switch, name).unwrap()).into();
    builder.add_edge("one", ports[0], 1_000_000_000, None).unwrap();
    let second = builder.add_edge("other", ports[1], 1_000_000_000, None);
    assert!(matches!(second, Err(Fault::SecondEdge { .. })), "{second:?}");
}

#[test]
fn flood_edge_needs_an_edge_and_switches_that_block() {
    let mut rng = Rng::new(34);
    let mut without = std::iter::repeat_with(|| Cabling::random(4, 3, &mut rng).topology()).flatten();
    let without = without.find(|network| network.edge().is_none()).expect("one");
    let policy = Policy { flood: Flood::Edge, ..Policy::default() };
    let refused = plan_with(&without, &policy, None, &mut StepLimit::new(1));
    assert!(matches!(refused, Err(PlanError::NoEdge)), "{refused:?}");
    let mut builder =
        TopologyBuilder::of(&std::iter::repeat_with(|| with_edge(&mut rng)).flatten().next().expect("one"));
    builder.change_models(|model| model.blocks_floods = FloodSet::NONE);
    let refused = plan_with(&builder.finish().expect("as it was"), &policy, None, &mut StepLimit::new(1));
    assert!(matches!(refused, Err(PlanError::Unsupported { .. })), "{refused:?}");
}

/// A bridge at the edge, or a machine behind it, that a later plan knows as a host: a hitless change, and back.
#[test]
fn an_address_behind_the_edge_becomes_known() {
    let mut rng = Rng::new(35);
    let mut changed = 0;
    for _ in 0..20 {
        let Some(topology) = with_edge(&mut rng) else { continue };
        let edge: HostId = topology.edge().expect("it has one");
        let plan = planned(&topology, Flood::Edge, FlowControl::Pause);
        let mut builder = TopologyBuilder::of(&topology);
        builder.add_mac(edge, Mac::local(900_001)).expect("a fresh address");
        let known = builder.finish().expect("as it was");
        let next = plan_with(&known, &plan.policy, Some(&plan), &mut StepLimit::new(2)).expect("the same cabling");
        assert_eq!(fatal(&next), []);
        assert_eq!((&next.trees, &next.devices), (&plan.trees, &plan.devices), "only addresses differ");
        changed += 1;
    }
    assert!(changed > 10, "{changed}");
}
