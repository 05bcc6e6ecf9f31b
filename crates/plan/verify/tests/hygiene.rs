//! State that no frame needs is found, and called by its name.

mod common;

use common::{Wish, clos, plan, topology, vlan};
use fabric::{
    Admin, FdbMode, FindingKind as K, Flood, FloodKind, FloodSet, FlowControl, FlowControlMode, InBand, Learning, Lldp,
    Plan, PortIntent, PortRole, Severity, StormLimit, Tagging, Topology, TopologyBuilder, Tree, VlanSet, VlanTree,
};
use verify::{check, judge};

/// Leaves s0, s1, s2 (hosts on ports 1 and 2, links on 3 and 4) under spines s3 and s4; port 5 of a leaf, and port 4 of a
/// spine, are unused.
fn leaves() -> Plan {
    plan(&clos(), Wish::switch_tagged())
}

fn by_source() -> Plan {
    plan(&clos(), Wish::tagged_by(Tagging::Source))
}

/// A switch with two hosts, and one without: a single VLAN, without entries.
fn learned() -> Plan {
    plan(&topology(&[2, 0], &[(0, 1)]), Wish { fdb: FdbMode::Learned, ..Wish::switch_tagged() })
}

/// A line of three switches with a host each; VLANs 2 to 4 have the same tree.
fn line() -> Plan {
    plan(&topology(&[1, 1, 1], &[(0, 1), (1, 2)]), Wish::switch_tagged())
}

/// The same, managed over its links in VLAN 1, untagged, by a controller on the unused port of s0.
fn in_band() -> Plan {
    let Plan { topology, mut devices, .. } = line();
    let controller = devices[0].ports[2].port;
    let in_band = InBand { vlan: vlan(1), controller };
    let topology: Topology = {
        let mut builder = TopologyBuilder::of(&topology);
        builder.set_in_band(in_band).expect("a free port");
        builder.finish().expect("still a topology")
    };
    for port in devices.iter_mut().flat_map(|device| &mut device.ports) {
        if port.port == controller {
            port.role = PortRole::Controller;
        }
        if port.port == controller || matches!(port.role, PortRole::Link(_)) {
            in_band.join(port);
        }
    }
    Plan { topology, devices, ..line() }
}

fn port(plan: &mut Plan, switch: usize, number: usize) -> &mut PortIntent {
    &mut plan.devices[switch].ports[number - 1]
}

fn set(text: &str) -> VlanSet {
    text.parse().expect("a set")
}

struct Case {
    name: &'static str,
    base: fn() -> Plan,
    damage: fn(&mut Plan),
    found: (Severity, K, &'static str),
}

const CASES: &[Case] = &[
    Case {
        name: "an unused port in all VLANs",
        base: leaves,
        damage: |p| {
            for switch in [0, 1] {
                let unused = port(p, switch, 5);
                (unused.admin, unused.pvid, unused.untagged) = (Admin::Up, Some(vlan(2)), set("2-4"));
            }
        },
        found: (Severity::Fatal, K::UnusedPort, "s1:5: is unused, but up and a member of VLAN 2-4"),
    },
    Case {
        name: "an unused port that is up",
        base: leaves,
        damage: |p| port(p, 3, 4).admin = Admin::Up,
        found: (Severity::Warning, K::UnusedPort, "s3:4: is unused, but up"),
    },
    Case {
        name: "an unused port with a PVID",
        base: leaves,
        damage: |p| port(p, 3, 4).pvid = Some(vlan(2)),
        found: (Severity::Warning, K::UnusedSetting, "s3:4: is unused, but has PVID 2"),
    },
    Case {
        name: "an unused port in a VLAN",
        base: leaves,
        damage: |p| port(p, 3, 4).tagged = set("3"),
        found: (Severity::Warning, K::UnusedSetting, "s3:4: is unused and down, but a member of VLAN 3"),
    },
    Case {
        name: "an unused port with PAUSE",
        base: leaves,
        damage: |p| port(p, 3, 4).flow_control = FlowControlMode::Pause,
        found: (Severity::Warning, K::UnusedSetting, "s3:4: is unused, but has PAUSE"),
    },
    Case {
        name: "no PAUSE toward a host",
        base: leaves,
        damage: |p| port(p, 0, 1).flow_control = FlowControlMode::Off,
        found: (Severity::Warning, K::FlowControlMismatch, "s0:1: is the port of h0 and has no flow control"),
    },
    Case {
        name: "PAUSE toward a host of a fabric without",
        base: by_source,
        damage: |p| port(p, 0, 1).flow_control = FlowControlMode::Pause,
        found: (Severity::Warning, K::FlowControlMismatch, "the plan needs no flow control there"),
    },
    Case {
        name: "other classes toward a host",
        base: || plan(&clos(), Wish { flow_control: FlowControl::Pfc(3), ..Wish::switch_tagged() }),
        damage: |p| port(p, 0, 1).flow_control = FlowControlMode::Pfc { lanes: 2 },
        found: (Severity::Warning, K::FlowControlMismatch, "has priority flow control with 2 classes"),
    },
    Case {
        name: "learning beside static entries",
        base: leaves,
        damage: |p| p.devices[3].learning = Learning::On,
        found: (Severity::Warning, K::PlanMismatch, "s3: learns addresses in 3 VLANs beside its static entries"),
    },
    Case {
        name: "no learning where there are no entries",
        base: learned,
        damage: |p| p.devices[1].learning = Learning::Off,
        found: (Severity::Warning, K::PlanMismatch, "s1: does not learn addresses"),
    },
    Case {
        name: "a PVID on a link",
        base: leaves,
        damage: |p| port(p, 0, 3).pvid = Some(vlan(2)),
        found: (Severity::Warning, K::UnusedSetting, "s0:3: has PVID 2"),
    },
    Case {
        name: "a PVID for a host that tags",
        base: by_source,
        damage: |p| port(p, 0, 1).pvid = Some(vlan(2)),
        found: (Severity::Warning, K::UnusedSetting, "s0:1: has PVID 2, but its host tags"),
    },
    Case {
        name: "untagged frames for a host that tags",
        base: by_source,
        damage: |p| {
            port(p, 0, 1).tagged.remove(vlan(2));
            port(p, 0, 1).untagged.insert(vlan(2));
        },
        found: (Severity::Warning, K::RoleMismatch, "s0:1: sends frames of VLAN 2 untagged to a host that tags"),
    },
    Case {
        name: "a VLAN that nobody sends in",
        base: line,
        damage: |p| {
            let links = p.topology.link_ids();
            let tree = Tree::new(&p.topology, links.collect::<Vec<_>>()).expect("a line is a tree");
            p.trees.push(VlanTree { vlan: vlan(5), lane: 0, tree });
            p.summary.vlans += 1;
            p.devices.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| match port.role {
                PortRole::Link(_) => port.tagged.extend([vlan(5)]),
                PortRole::Host(_) => port.untagged.extend([vlan(5)]),
                PortRole::Unused | PortRole::Controller | PortRole::Return | PortRole::Member => {}
            });
        },
        found: (Severity::Warning, K::UnusedSetting, "VLAN 5: is on the switches, but no host sends in it"),
    },
    Case {
        name: "a VLAN that reaches a switch by no link",
        base: line,
        damage: |p| {
            // VLAN 4 no longer crosses the second link; s2's host stays in it, alone.
            port(p, 1, 3).tagged.remove(vlan(4));
            port(p, 2, 2).tagged.remove(vlan(4));
        },
        found: (Severity::Warning, K::UnusedSetting, "s2:1: is a member of VLAN 4, in which no other host's port"),
    },
    Case {
        name: "unknown unicast dropped by one port",
        base: leaves,
        damage: |p| port(p, 0, 1).blocked = Flood::Drop.blocked(),
        found: (Severity::Warning, K::PlanMismatch, "s0:1: blocks unknown-unicast, which the plan forwards"),
    },
    Case {
        name: "multicast dropped by one port",
        base: leaves,
        damage: |p| port(p, 0, 1).blocked = FloodSet::NONE.with(FloodKind::Multicast),
        found: (Severity::Fatal, K::PlanMismatch, "s0:1: blocks multicast, which the plan forwards"),
    },
    Case {
        name: "broadcasts dropped on a link",
        base: leaves,
        damage: |p| port(p, 0, 3).blocked = FloodSet::NONE.with(FloodKind::Broadcast),
        found: (Severity::Fatal, K::MissedBroadcast, "h0: its broadcasts in VLAN 2 miss 4 hosts"),
    },
    Case {
        name: "unknown unicast dropped where switches learn",
        base: learned,
        damage: |p| port(p, 0, 3).blocked = Flood::Drop.blocked(),
        found: (Severity::Fatal, K::PlanMismatch, "s0:3: blocks unknown-unicast"),
    },
    Case {
        name: "unknown unicast let out by one port",
        base: || plan(&clos(), Wish { flood: Flood::Drop, ..Wish::switch_tagged() }),
        damage: |p| port(p, 0, 3).blocked = FloodSet::NONE,
        found: (Severity::Fatal, K::PlanMismatch, "s0:3: forwards unknown-unicast, which the plan drops"),
    },
    Case {
        name: "an unused port that blocks",
        base: leaves,
        damage: |p| port(p, 3, 4).blocked = FloodSet::ALL,
        found: (Severity::Warning, K::PlanMismatch, "s3:4: blocks unknown-unicast"),
    },
    Case {
        name: "a policy that drops what learning needs",
        base: learned,
        damage: |p| p.policy.flood = Flood::Drop,
        found: (
            Severity::Fatal,
            K::PlanMismatch,
            "drops unknown-unicast, but switches that learn find hosts by floods",
        ),
    },
    Case {
        name: "a policy that drops what management needs",
        base: in_band,
        damage: |p| p.policy.flood = Flood::Drop,
        found: (Severity::Fatal, K::PlanMismatch, "but management over data ports finds agents by floods"),
    },
    Case {
        name: "a missing entry where unknown unicast is dropped",
        base: || plan(&clos(), Wish { flood: Flood::Drop, ..Wish::switch_tagged() }),
        damage: |p| p.devices[0].fdb.clear(),
        found: (Severity::Fatal, K::Drop, "is dropped by s0, which has no entry for it"),
    },
    Case {
        name: "a switch without LLDP",
        base: leaves,
        damage: |p| p.devices[3].lldp = Lldp::Off,
        found: (Severity::Warning, K::PlanMismatch, "s3: has LLDP off"),
    },
    Case {
        name: "storm control on a link",
        base: leaves,
        damage: |p| port(p, 0, 3).storm_limit = StormLimit::new(5),
        found: (Severity::Fatal, K::PlanMismatch, "s0:3: has storm control with 5 %; the plan has no limit there"),
    },
    Case {
        name: "a host without the storm control of the plan",
        base: || plan(&clos(), Wish { storm_limit: StormLimit::new(5), ..Wish::switch_tagged() }),
        damage: |p| port(p, 0, 1).storm_limit = None,
        found: (Severity::Warning, K::PlanMismatch, "s0:1: has storm control with no limit; the plan has 5 % there"),
    },
    Case {
        name: "a class of untagged frames where there are no classes",
        base: leaves,
        damage: |p| port(p, 0, 1).untagged_class = 1,
        found: (Severity::Fatal, K::PlanMismatch, "s0:1: puts untagged frames, which enter VLAN"),
    },
    Case {
        name: "a class of untagged frames that do not enter",
        base: leaves,
        damage: |p| port(p, 0, 3).untagged_class = 1,
        found: (
            Severity::Warning,
            K::UnusedSetting,
            "s0:3: puts untagged frames into priority class 1, but admits none",
        ),
    },
    Case {
        name: "untagged frames in another lane than their VLAN's",
        base: || plan(&common::ring(), Wish { flow_control: FlowControl::Pfc(5), ..Wish::switch_tagged() }),
        damage: |p| {
            let port = p.devices.iter_mut().flat_map(|d| &mut d.ports).find(|port| port.untagged_class == 1);
            port.expect("a host in lane 1").untagged_class = 0;
        },
        found: (Severity::Fatal, K::PlanMismatch, "into priority class 0, but the plan's lane is 1"),
    },
    Case {
        name: "flow control toward the controller",
        base: in_band,
        damage: |p| port(p, 0, 3).flow_control = FlowControlMode::Pause,
        found: (Severity::Warning, K::FlowControlMismatch, "s0:3: is the controller's port and has PAUSE"),
    },
];

#[test]
fn what_serves_nothing_is_found() {
    for case in CASES {
        let mut plan = (case.base)();
        let sound = check(&plan);
        assert!(sound.findings().iter().all(|finding| finding.severity == Severity::Note), "{}: {sound}", case.name);
        (case.damage)(&mut plan);
        let report = check(&plan);
        let (severity, kind, words) = case.found;
        let found = report
            .findings()
            .iter()
            .any(|finding| (finding.severity, finding.kind) == (severity, kind) && finding.to_string().contains(words));
        assert!(found, "{}: {report}", case.name);
    }
}

/// The only host of a fabric, and VLANs that only switch-overs need, are not reported; `clean.rs` and the planner's tests
/// judge whole plans.
#[test]
fn a_host_alone_is_no_finding() {
    let alone = plan(&topology(&[1], &[]), Wish::switch_tagged());
    assert_eq!(check(&alone).findings(), []);
}

/// In a fabric without links floods are dropped if no host's port forwards them, and only then.
#[test]
fn a_switch_alone_drops_what_its_plan_says() {
    for (flood, count) in [(Flood::Forward, 0), (Flood::Drop, 1), (Flood::DropAll, 3)] {
        let alone = plan(&topology(&[3], &[]), Wish { flood, ..Wish::switch_tagged() });
        let judgement = judge(&alone);
        assert_eq!((judgement.report.findings(), judgement.dropped.len()), (&[][..], count), "{flood}");
    }
}
