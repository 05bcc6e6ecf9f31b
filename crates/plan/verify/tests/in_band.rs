//! The management VLAN, judged: sound ones pass, and every way to lose a switch or to let strangers in is named.

mod common;

use common::{Wish, plan, ring, topology, vlan};
use fabric::{
    Admin, FdbRun, FindingKind, FlowControl, HostId, InBand, LinkId, Plan, PortId, PortIntent, Severity, Topology,
    TopologyBuilder,
};
use verify::check;

/// A ring of five switches, managed in VLAN `id` from a port of the first one along all links but the last.
fn managed(id: usize) -> Plan {
    managed_over(&ring(), id, FlowControl::Pause)
}

fn managed_over(topology: &Topology, id: usize, flow_control: FlowControl) -> Plan {
    let mut builder = TopologyBuilder::of(topology);
    let switch = builder.switch("s0").expect("the first switch");
    let controller = builder.add_port(switch, "ctl").expect("a free name");
    builder.set_in_band(InBand { vlan: vlan(id), controller }).expect("a free port");
    let return_port = builder.add_port(switch, "return").expect("a free name");
    builder.add_return_port(return_port).expect("a free port");
    let topology = builder.finish().expect("a ring");
    let in_band = topology.in_band().expect("as was said");
    let mut plan = plan(&topology, Wish { flow_control, ..Wish::switch_tagged() });
    plan.policy.vlans.reserved.insert(in_band.vlan);
    let links: Vec<LinkId> = topology.link_ids().skip(1).collect();
    let ends = links.iter().flat_map(|link| [topology.link(*link).a, topology.link(*link).b]);
    for port in ends.chain([in_band.controller]).chain(topology.return_ports().iter().copied()) {
        in_band.join(port_of(&mut plan, port));
    }
    port_of(&mut plan, in_band.controller).role = fabric::PortRole::Controller;
    port_of(&mut plan, topology.return_ports()[0]).role = fabric::PortRole::Return;
    plan
}

fn port_of(plan: &mut Plan, port: PortId) -> &mut PortIntent {
    plan.devices.iter_mut().flat_map(|device| &mut device.ports).find(|own| own.port == port).expect("a port")
}

fn controller(plan: &Plan) -> PortId {
    plan.topology.in_band().expect("in band").controller
}

/// Kinds and words of what is fatal.
fn fatal(plan: &Plan) -> Vec<(FindingKind, String)> {
    let report = check(plan);
    let fatal = report.findings().iter().filter(|finding| finding.severity == Severity::Fatal);
    fatal.map(|finding| (finding.kind, finding.to_string())).collect()
}

#[test]
fn a_tree_that_reaches_everybody_is_sound() {
    for id in [1, 4000] {
        let plan = managed(id);
        // The ring's own cycle of dependencies is no matter of management.
        let other = fatal(&plan_without(&plan));
        assert_eq!(fatal(&plan), other, "VLAN {id}");
    }
}

fn plan_without(managed: &Plan) -> Plan {
    let plan = plan(&ring(), Wish::switch_tagged());
    Plan { policy: managed.policy.clone(), ..plan }
}

fn assert_found(what: &str, kind: FindingKind, words: &str, damage: impl Fn(&mut Plan)) {
    for id in [1, 4000] {
        let mut plan = managed(id);
        let before = fatal(&plan);
        damage(&mut plan);
        let found: Vec<_> = fatal(&plan).into_iter().filter(|finding| !before.contains(finding)).collect();
        let named = found.iter().any(|(of, text)| *of == kind && text.contains(words));
        assert!(named, "{what}, VLAN {id}: {found:?}");
    }
}

#[test]
fn every_damage_is_named() {
    let both = |plan: &mut Plan, link: usize, change: &dyn Fn(&InBand, &mut PortIntent)| {
        let (link, in_band) = (*plan.topology.link(LinkId::new(link)), plan.topology.in_band().expect("in band"));
        for port in [link.a, link.b] {
            change(&in_band, port_of(plan, port));
        }
    };
    let leave = |in_band: &InBand, port: &mut PortIntent| {
        port.tagged.remove(in_band.vlan);
        port.untagged.remove(in_band.vlan);
        port.pvid = port.pvid.filter(|pvid| *pvid != in_band.vlan);
    };
    assert_found("a cycle", FindingKind::NotATree, "close a cycle", |plan| both(plan, 0, &InBand::join));
    assert_found("a switch is cut off", FindingKind::NotATree, "does not lead from the controller to", |plan| {
        both(plan, 2, &leave);
    });
    assert_found("a cable is shut", FindingKind::NotATree, "does not lead from the controller to", |plan| {
        both(plan, 2, &|_, port| port.admin = Admin::Down);
    });
    assert_found("one end only", FindingKind::NotATree, "does not lead", |plan| {
        let (end, in_band) = (plan.topology.link(LinkId::new(2)).a, plan.topology.in_band().expect("in band"));
        leave(&in_band, port_of(plan, end));
    });
    assert_found("the controller's port is shut", FindingKind::IncompleteState, "controller's port", |plan| {
        let port = controller(plan);
        port_of(plan, port).admin = Admin::Down;
    });
    assert_found("the controller's port carries data", FindingKind::PlanMismatch, "carries data as well", |plan| {
        let (port, data) = (controller(plan), plan.trees[0].vlan);
        port_of(plan, port).tagged.insert(data);
    });
    let return_port = |plan: &Plan| plan.topology.return_ports()[0];
    assert_found("a return port is shut", FindingKind::IncompleteState, "kept for the return of a switch", |plan| {
        let port = return_port(plan);
        port_of(plan, port).admin = Admin::Down;
    });
    assert_found("a return port does not manage", FindingKind::IncompleteState, "does not carry", |plan| {
        let (port, in_band) = (return_port(plan), plan.topology.in_band().expect("in band"));
        leave(&in_band, port_of(plan, port));
    });
    assert_found("a return port carries data", FindingKind::PlanMismatch, "return of a switch, but carries", |plan| {
        let (port, data) = (return_port(plan), plan.trees[0].vlan);
        port_of(plan, port).tagged.insert(data);
    });
    assert_found("a return port lets frames into data", FindingKind::PlanMismatch, "but carries data", |plan| {
        let (port, data) = (return_port(plan), plan.trees[0].vlan);
        port_of(plan, port).pvid = Some(data);
    });
    assert_found("a return port is said to be free", FindingKind::RoleMismatch, "nothing", |plan| {
        let port = return_port(plan);
        port_of(plan, port).role = fabric::PortRole::Unused;
    });
    assert_found("a host is let in", FindingKind::PlanMismatch, "can reach the switches' agents", |plan| {
        let (port, in_band) = (plan.topology.host(HostId::new(2)).port, plan.topology.in_band().expect("in band"));
        port_of(plan, port).tagged.insert(in_band.vlan);
    });
    assert_found("a tree of data has its VLAN", FindingKind::PlanMismatch, "carries data as well", |plan| {
        plan.trees[0].vlan = plan.topology.in_band().expect("in band").vlan;
    });
    assert_found("static entries", FindingKind::ForeignEntry, "static entries in the management VLAN", |plan| {
        let (vlan, port) = (plan.topology.in_band().expect("in band").vlan, plan.topology.link(LinkId::new(1)).a);
        let switch = plan.topology.port(port).switch;
        let run = FdbRun { vlan, first: HostId::new(0), last: HostId::new(0), port };
        let fdb = &mut plan.devices[switch.index()].fdb;
        fdb.push(run);
        fdb.sort_unstable();
    });
}

/// Data goes from s4 by s0 to s1, from s0 by s1 to s2 and back, which is no ring; management goes from s1 by s2 and s3 to s4
/// and s0, which closes one.
#[test]
fn a_ring_that_management_closes_is_said() {
    let ring = |hosts: [usize; 5]| topology(&hosts, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
    let said = |plan: &Plan| -> Vec<(Severity, String)> {
        let report = check(plan);
        let rings = report.findings().iter().filter(|finding| finding.kind == FindingKind::DependencyCycle);
        rings.map(|finding| (finding.severity, finding.to_string())).collect()
    };
    for id in [1, 4000] {
        let closed = said(&managed_over(&ring([1, 1, 1, 0, 1]), id, FlowControl::Pause));
        let words =
            format!("management VLAN {id}: frames of data cannot block, but with those of management 5 channels wait");
        let warned = closed.iter().find(|(severity, _)| *severity == Severity::Warning);
        assert!(warned.is_some_and(|(_, text)| text.contains(&words)), "VLAN {id}: {closed:?}");
        assert!(!closed.iter().any(|(severity, _)| *severity == Severity::Fatal), "VLAN {id}: {closed:?}");
        // Without data between s0 and s2 the ring stays open, and where nothing waits there is none.
        assert_eq!(said(&managed_over(&ring([0, 1, 0, 0, 1]), id, FlowControl::Pause)), []);
        assert_eq!(said(&managed_over(&ring([1, 1, 1, 0, 1]), id, FlowControl::None)), []);
    }
}
