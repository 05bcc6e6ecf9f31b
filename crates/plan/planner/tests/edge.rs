//! An edge port: frames for addresses that no switch knows go there, once, and nowhere else.

mod common;

use std::collections::BTreeMap;

use common::Cabling;
use fabric::{
    Admin, Fault, Finding, FindingKind, Flood, FloodKind, FloodSet, FlowControl, HostId, Mac, Plan, Policy, PortId,
    PortRole, Severity, SwitchId, Tagging, Topology, TopologyBuilder, rng::Rng,
};
use planner::{PlanError, StepLimit, plan_with};
use transition::{FabricState, apply, steps};
use verify::{Live, Receiver, check, check_state, walk};

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

/// A cabling with an uplink at one switch, and one on standby at each of others; each is named after its place in `at`.
fn with_uplinks(network: &Topology, at: &[usize], active: usize, standby: &[usize]) -> Topology {
    let mut builder = TopologyBuilder::of(network);
    let port = |builder: &mut TopologyBuilder, uplink: usize| {
        let name = format!("uplink{uplink}");
        let port = builder.add_port(SwitchId::new(at[uplink]), &name).expect("a fresh port");
        (name, port)
    };
    let (name, free) = port(&mut builder, active);
    let edge = builder.add_edge(&name, free, 1_000_000_000, None).expect("the only one");
    builder.add_mac(edge, Mac::local(900_000)).expect("a fresh address");
    for uplink in standby {
        let (name, free) = port(&mut builder, *uplink);
        let edge = builder.add_standby_edge(&name, free, 1_000_000_000).expect("a free port");
        builder.add_standby_mac(edge, Mac::local(900_000)).expect("that of the edge port");
    }
    builder.change_models(|model| model.blocks_floods = FloodSet::NONE.with(FloodKind::UnknownUnicast));
    builder.finish().expect("as connected as before")
}

/// Nothing leads to a standby edge: its port is shut and in no VLAN, no entry names it, and no frame of any host reaches it. The
/// plan is the one without it, but for the port.
#[test]
fn nothing_passes_a_standby_edge() {
    let (mut rng, mut plans) = (Rng::new(36), 0);
    while plans < 60 {
        let (switches, extra) = (2 + rng.below(8), rng.below(10));
        let Some(network) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        if network.edge().is_some() {
            continue;
        }
        let at = [rng.below(switches), rng.below(switches)];
        let topology = with_uplinks(&network, &at, 0, &[1]);
        let tagging = Tagging::ALL[plans % Tagging::ALL.len()];
        let flow_control = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][plans % 3];
        let flood = [Flood::Forward, Flood::Edge][plans % 2];
        let policy = Policy { flood, flow_control, tagging, ..Policy::default() };
        let plan = plan_with(&topology, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan");
        assert_eq!(fatal(&plan), [], "plan {plans}");
        let alone = with_uplinks(&network, &at, 0, &[]);
        let alone = plan_with(&alone, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan");
        assert_eq!((&plan.trees, &plan.assignment, &plan.summary), (&alone.trees, &alone.assignment, &alone.summary));
        let [edge] = topology.standby_edges() else { panic!("one is on standby") };
        let device = &plan.devices[topology.port(edge.port).switch.index()];
        let intent = device.ports.iter().find(|intent| intent.port == edge.port).expect("every port has one");
        assert_eq!((intent.admin, intent.role, intent.pvid), (Admin::Down, PortRole::Unused, None));
        assert!(intent.tagged.is_empty() && intent.untagged.is_empty());
        assert!(plan.devices.iter().all(|device| device.fdb.iter().all(|run| run.port != edge.port)));
        let active = topology.edge().expect("the other uplink");
        for source in topology.host_ids() {
            for receiver in [Receiver::Nobody, Receiver::Everybody] {
                let walk = walk(&plan, source, receiver);
                let exits = walk.steps.iter().flat_map(|step| &step.exits);
                assert!(exits.clone().all(|exit| exit.port != edge.port), "plan {plans}: {source:?} {walk:?}");
                assert!(source == active || walk.deliveries.contains_key(&active), "plan {plans}: {source:?}");
            }
        }
        plans += 1;
    }
}

/// The uplinks change places, hitless for all others: on the way never more than one of them passes frames.
#[test]
fn a_standby_edge_takes_over_by_a_new_plan() {
    let (mut rng, mut changes, mut states) = (Rng::new(37), 0, 0);
    while changes < 60 {
        let (switches, extra) = (2 + rng.below(8), rng.below(10));
        let Some(network) = Cabling::random(switches, extra, &mut rng).topology() else { continue };
        if network.edge().is_some() || network.hosts().len() < 2 {
            continue;
        }
        let at = [rng.below(switches), rng.below(switches)];
        let tagging = Tagging::ALL[changes % Tagging::ALL.len()];
        let policy = Policy { tagging, ..Policy::default() };
        let [before, after] = [0, 1].map(|active| with_uplinks(&network, &at, active, &[1 - active]));
        let old = plan_with(&before, &policy, None, &mut StepLimit::new(2)).expect("auto always finds a plan");
        let new = plan_with(&after, &policy, Some(&old), &mut StepLimit::new(2)).expect("the same cables");
        assert_eq!(fatal(&new), [], "change {changes}");
        let way = steps(&old, &new).expect("there are VLANs to spare");
        let mut state = way.start.clone();
        for step in &way.steps {
            let mut parts: Vec<_> = step.parts.iter().collect();
            rng.shuffle(&mut parts);
            for part in parts {
                apply(part, &mut state);
                let FabricState { devices, tables } = &state;
                let (topology, judged) = (&way.topology, &way.settled[..]);
                let now = check_state(&Live { topology, devices, tables: tables.as_deref(), judged });
                assert!(now.report.findings().is_empty(), "change {changes}: {part:?}\n{}", now.report);
                assert!(now.lost.is_empty(), "change {changes}: {part:?} cuts somebody off");
                states += 1;
            }
        }
        assert_eq!(state, way.goal);
        // The judge finds it where the new uplink opens before the old one is shut.
        let mut both = way.start.clone();
        let opened = way.topology.host(way.topology.edge().expect("the new one")).port;
        let switch = way.topology.port(opened).switch.index();
        let at = both.devices[switch].ports.iter().position(|intent| intent.port == opened).expect("its port");
        both.devices[switch].ports[at] = way.goal.devices[switch].ports[at].clone();
        let live =
            Live { topology: &way.topology, devices: &both.devices, tables: both.tables.as_deref(), judged: &[] };
        let found = check_state(&live).report;
        assert!(found.findings().iter().any(|finding| finding.kind == FindingKind::StandbyEdgeUp), "{found}");
        changes += 1;
    }
    assert!(states > 200, "{states}");
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
