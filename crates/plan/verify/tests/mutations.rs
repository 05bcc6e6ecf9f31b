//! Correct plans, each damaged in one way; every damage is caught and named.

mod common;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use common::{Wish, clos, plan, ring, topology, topology_of, uneven_clos, vlan};
use fabric::{
    Admin, Assignment, Certificate, Demand, EngineName, Failover, FailoverSummary, Failure, FdbEntry, FdbMode, FdbRun,
    FindingKind as K, FlowControl, FlowControlMode, GroupId, HostId, HostRun, IngressFilter, LinkId, Mac, PairRun,
    PartCoverage, Plan, Planes, PortIntent, PortRole, Proof, Resilience, Severity, SpanningTree, SwitchId, SwitchOver,
    Tagging, TopologyBuilder, Traffic, TrafficMatrix, Tree, VlanId, VlanSet,
};
use verify::{check, check_with};

/// A damage: its name, the plan that it is done to, what is done, and all kinds that must be found.
struct Case {
    name: &'static str,
    base: fn() -> Plan,
    damage: fn(&mut Plan),
    kinds: &'static [K],
    worst: Severity,
}

const fn fatal(name: &'static str, base: fn() -> Plan, damage: fn(&mut Plan), kinds: &'static [K]) -> Case {
    Case { name, base, damage, kinds, worst: Severity::Fatal }
}

const fn warning(name: &'static str, base: fn() -> Plan, damage: fn(&mut Plan), kinds: &'static [K]) -> Case {
    Case { name, base, damage, kinds, worst: Severity::Warning }
}

/// Leaves s0, s1, s2 (hosts on ports 1 and 2, spines on 3 and 4, 5 empty) under spines s3 and s4 (leaf i on port i + 1).
/// VLAN 2 = s0-s3, s0-s4, s3-s1, s3-s2; VLAN 3 = s1-s4, s1-s3, s4-s2, s4-s0; VLAN 4 = s2-s3, s2-s4, s3-s0, s3-s1.
fn leaves() -> Plan {
    plan(&clos(), Wish::switch_tagged())
}

fn pairs() -> Plan {
    plan(&clos(), Wish::tagged_by(Tagging::Pair))
}

fn by_source() -> Plan {
    plan(&clos(), Wish::tagged_by(Tagging::Source))
}

fn unguarded_ring() -> Plan {
    plan(&ring(), Wish::tagged_by(Tagging::Switch))
}

fn lanes() -> Plan {
    plan(&ring(), Wish { flow_control: FlowControl::Pfc(5), ..Wish::switch_tagged() })
}

/// Two switches with a host each and two cables: VLAN 2 on the first, VLAN 3 on the second.
fn twins() -> Plan {
    plan(&topology(&[1, 1], &[(0, 1), (0, 1)]), Wish::switch_tagged())
}

/// As `leaves`, with a standby edge at port 5 of s0, which nobody uses.
fn standby_edge() -> Plan {
    let mut builder = TopologyBuilder::of(&clos());
    let port = builder.add_port(SwitchId::new(0), "5").expect("it is there");
    builder.add_standby_edge("uplink2", port, 1_000_000_000).expect("a free port");
    plan(&builder.finish().expect("as it was"), Wish::switch_tagged())
}

fn bridges() -> Plan {
    plan(&topology_of("linux-bridge", &[1, 1], &[(0, 1)]), Wish::switch_tagged())
}

/// Three switches in a ring, a host each, ready for each of three links to fail. VLAN 2 = s0-s1, s2-s0; VLAN 3 = s0-s1,
/// s1-s2; VLAN 4 = s1-s2, s2-s0. All three switch-overs together would close a ring.
fn ready() -> Plan {
    let triangle = topology(&[1, 1, 1], &[(0, 1), (1, 2), (2, 0)]);
    let mut plan = plan(&triangle, Wish { fdb: FdbMode::Full, ..Wish::switch_tagged() });
    let over = |link, hosts: &[(usize, usize)], proof| SwitchOver {
        failure: Failure::Link(LinkId::new(link)),
        hosts: hosts.iter().map(|&(host, id)| host_run(host, id)).collect(),
        pairs: Vec::new(),
        proof,
    };
    plan.policy.resilience = Resilience::OneLink;
    // Channels: s0s1, s1s0, s1s2, s2s1, s2s0, s0s2.
    plan.certificate = Some(Certificate { rank: vec![vec![5, 0, 3, 2, 4, 1]] });
    plan.failover = Some(Failover {
        switch_overs: vec![
            over(0, &[(0, 4), (1, 4)], Proof::Certificate),
            over(1, &[(1, 2), (2, 2)], Proof::Certificate),
            over(2, &[(0, 3), (2, 3)], Proof::Numbering(0)),
        ],
        numberings: vec![Certificate { rank: vec![vec![0, 3, 1, 2, 4, 5]] }],
        summary: FailoverSummary {
            links_covered: 3,
            links_dividing: 0,
            switches: None,
            groups: None,
            drained: 0,
            max_channel_time: 2.0,
            vlans_extra: 0,
            fdb_entries_extra: 0,
        },
    });
    plan
}

/// The same, ready for a switch to fail as well: without s0, h1 goes to VLAN 4, in which s0 is a leaf.
fn ready_switches() -> Plan {
    let mut plan = ready();
    plan.policy.resilience = Resilience::OneSwitch;
    let (failure, hosts) = (Failure::Switch(SwitchId::new(0)), vec![host_run(1, 4)]);
    overs(&mut plan).push(SwitchOver { failure, hosts, pairs: Vec::new(), proof: Proof::Certificate });
    failover_summary(&mut plan).switches = Some(PartCoverage { covered: 3, dividing: 0 });
    plan
}

/// The same, ready for groups to fail as well: without s0 and a cable of it, h1 goes to VLAN 4; without s1 and s2 h0 is alone; and a
/// group is the cable s1-s2.
fn ready_groups() -> Plan {
    let mut plan = ready_switches();
    let mut builder = TopologyBuilder::of(&plan.topology);
    builder.add_group("feed-a", &[SwitchId::new(0)], &[LinkId::new(2)]).expect("a fresh name");
    builder.add_group("feed-b", &[SwitchId::new(1), SwitchId::new(2)], &[]).expect("a fresh name");
    builder.add_group("card-3", &[], &[LinkId::new(1)]).expect("a fresh name");
    plan.topology = builder.finish().expect("as connected as before");
    plan.policy.resilience = Resilience::OneGroup;
    for (group, hosts) in [(0, vec![host_run(1, 4)]), (2, vec![host_run(1, 2), host_run(2, 2)])] {
        let failure = Failure::Group(GroupId::new(group));
        overs(&mut plan).push(SwitchOver { failure, hosts, pairs: Vec::new(), proof: Proof::Certificate });
    }
    failover_summary(&mut plan).groups = Some(PartCoverage { covered: 3, dividing: 0 });
    plan
}

/// Three switches in a ring, of which a group takes two cables: nothing leads to s2 any more.
fn dividing_group() -> Plan {
    let mut plan = ready_switches();
    let mut builder = TopologyBuilder::of(&plan.topology);
    builder.add_group("card-3", &[], &[LinkId::new(1), LinkId::new(2)]).expect("a fresh name");
    plan.topology = builder.finish().expect("as connected as before");
    plan
}

/// Three switches in a row with a host each.
fn row() -> Plan {
    plan(&topology(&[1, 1, 1], &[(0, 1), (1, 2)]), Wish::switch_tagged())
}

/// Two switches with a host each and two cables, by pair: h0 sends in VLAN 2 on the first, h1 in VLAN 3 on the second.
fn ready_pairs() -> Plan {
    let mut plan =
        plan(&topology(&[1, 1], &[(0, 1), (0, 1)]), Wish { fdb: FdbMode::Full, ..Wish::tagged_by(Tagging::Pair) });
    let over = |link, source: usize, id| SwitchOver {
        failure: Failure::Link(LinkId::new(link)),
        hosts: vec![host_run(source, id)],
        pairs: vec![PairRun { source: HostId::new(source), run: host_run(1 - source, id) }],
        proof: Proof::Certificate,
    };
    plan.policy.resilience = Resilience::OneLink;
    plan.failover = Some(Failover {
        switch_overs: vec![over(0, 0, 3), over(1, 1, 2)],
        numberings: Vec::new(),
        summary: FailoverSummary {
            links_covered: 2,
            links_dividing: 0,
            switches: None,
            groups: None,
            drained: 0,
            max_channel_time: 1.0,
            vlans_extra: 0,
            fdb_entries_extra: 0,
        },
    });
    plan
}

fn host_run(host: usize, id: usize) -> HostRun<VlanId> {
    HostRun { first: HostId::new(host), last: HostId::new(host), choice: vlan(id) }
}

/// The switch-overs of a plan.
fn overs(plan: &mut Plan) -> &mut Vec<SwitchOver> {
    &mut plan.failover.as_mut().unwrap().switch_overs
}

/// The port of the first standby edge.
fn standby_port(plan: &mut Plan) -> &mut PortIntent {
    let port = plan.topology.standby_edges()[0].port;
    let device = &mut plan.devices[plan.topology.port(port).switch.index()];
    device.ports.iter_mut().find(|intent| intent.port == port).unwrap()
}

fn failover_summary(plan: &mut Plan) -> &mut FailoverSummary {
    &mut plan.failover.as_mut().unwrap().summary
}

/// Port `number` of a switch, counted from 1 as it is named.
fn port(plan: &mut Plan, switch: usize, number: usize) -> &mut PortIntent {
    &mut plan.devices[switch].ports[number - 1]
}

/// Scales what the first host sends.
fn change_demand(plan: &mut Plan, factor: f64) {
    let Traffic::Matrix(matrix) = &plan.policy.traffic else { panic!("planned for a matrix") };
    let scaled = |demand: Demand| {
        let factor = if demand.source.index() == 0 { factor } else { 1.0 };
        Demand { amount: demand.amount * factor, ..demand }
    };
    let demands = matrix.demands().map(scaled).collect();
    plan.policy.traffic = Traffic::Matrix(TrafficMatrix::new(matrix.hosts(), demands).unwrap());
}

/// Points the entry of a switch at one of its ports.
fn point(plan: &mut Plan, switch: usize, id: usize, host: usize, number: usize) {
    let to = port(plan, switch, number).port;
    let host = HostId::new(host);
    let mut runs = Vec::new();
    for run in &plan.devices[switch].fdb {
        if run.vlan != vlan(id) || host < run.first || host > run.last {
            runs.push(*run);
            continue;
        }
        let single = (run.first.index()..=run.last.index()).map(HostId::new);
        runs.extend(single.filter(|at| *at != host).map(|at| FdbRun { first: at, last: at, ..*run }));
    }
    runs.push(FdbRun { vlan: vlan(id), first: host, last: host, port: to });
    runs.sort_unstable();
    plan.devices[switch].fdb = runs;
}

fn all_in_one_class(plan: &mut Plan) {
    for device in &mut plan.devices {
        device.classes[0] = device.vlans();
        device.classes[1..].fill(VlanSet::new());
    }
}

fn set(text: &str) -> VlanSet {
    text.parse().unwrap()
}

fn foreign(plan: &mut Plan, switch: usize, mac: Mac, number: usize) {
    let to = port(plan, switch, number).port;
    plan.devices[switch].foreign.push(FdbEntry { vlan: vlan(2), mac, port: to });
}

const ENTRIES: &[Case] = &[
    fatal("a switch forgets its entries", leaves, |p| p.devices[3].fdb.clear(), &[K::Flood, K::SummaryMismatch]),
    fatal(
        "one entry is missing",
        leaves,
        |p| {
            p.devices[1].fdb.remove(0);
        },
        &[K::Flood],
    ),
    fatal("an entry names another host's port", leaves, |p| point(p, 1, 2, 2, 2), &[K::WrongDelivery]),
    fatal("an entry points back", leaves, |p| point(p, 3, 2, 4, 1), &[K::Drop]),
    fatal("an entry points at the sender", leaves, |p| point(p, 0, 2, 5, 1), &[K::Drop, K::WrongDelivery]),
    fatal("an entry points at an empty port", leaves, |p| point(p, 3, 2, 4, 4), &[K::Drop, K::DeadEntry]),
    fatal("an entry points out of the VLAN", leaves, |p| point(p, 1, 2, 2, 4), &[K::Drop, K::DeadEntry]),
    fatal(
        "an entry names another switch's port",
        leaves,
        |p| p.devices[0].fdb[0].port = p.devices[1].ports[0].port,
        &[K::IncompleteState],
    ),
    fatal(
        "an entry is for a host that does not exist",
        leaves,
        |p| p.devices[4].fdb.last_mut().unwrap().last = HostId::new(99),
        &[K::IncompleteState],
    ),
    fatal("an entry's ends are swapped", leaves, |p| p.devices[0].fdb[0].first = HostId::new(5), &[K::IncompleteState]),
    fatal("entries are out of order", leaves, |p| p.devices[0].fdb.reverse(), &[K::IncompleteState]),
    fatal(
        "two entries contradict",
        leaves,
        |p| {
            let run = p.devices[3].fdb[0];
            let other = port(p, 3, 1).port;
            p.devices[3].fdb.insert(1, FdbRun { port: other, ..run });
        },
        &[K::ContradictoryEntries, K::SummaryMismatch],
    ),
    fatal(
        "an entry for the broadcast address",
        leaves,
        |p| foreign(p, 3, Mac::BROADCAST, 2),
        &[K::ForeignEntry, K::MissedBroadcast],
    ),
    fatal("an entry for a group", leaves, |p| foreign(p, 3, Mac::new([1, 0, 0x5e, 0, 0, 1]), 2), &[K::ForeignEntry]),
    fatal(
        "a host's address listed as foreign",
        leaves,
        |p| foreign(p, 3, Mac::local(3), 1),
        &[K::ForeignEntry, K::ContradictoryEntries],
    ),
    fatal(
        "a stranger's address, unannounced",
        leaves,
        |p| foreign(p, 3, Mac::local(99), 2),
        &[K::ForeignEntry, K::SummaryMismatch],
    ),
    warning(
        "a stranger's address, announced",
        leaves,
        |p| {
            foreign(p, 4, Mac::local(99), 2);
            p.summary.fdb_entries_total += 1;
        },
        &[K::ForeignEntry],
    ),
    fatal(
        "a stranger's entry at a port elsewhere",
        leaves,
        |p| {
            let elsewhere = port(p, 0, 1).port;
            p.devices[3].foreign.push(FdbEntry { vlan: vlan(2), mac: Mac::local(99), port: elsewhere });
        },
        &[K::IncompleteState],
    ),
];

const MEMBERSHIP: &[Case] = &[
    fatal(
        "a VLAN gains a link",
        leaves,
        |p| {
            port(p, 1, 4).tagged.insert(vlan(2));
            port(p, 4, 2).tagged.insert(vlan(2));
        },
        &[K::NotATree, K::BroadcastLoop, K::PlanMismatch],
    ),
    fatal(
        "a VLAN gains a link, and an entry keeps all but unknown addresses from going round",
        leaves,
        |p| {
            port(p, 1, 4).tagged.insert(vlan(2));
            port(p, 4, 2).tagged.insert(vlan(2));
            foreign(p, 4, Mac::BROADCAST, 3);
        },
        &[K::NotATree, K::BroadcastLoop, K::PlanMismatch, K::ForeignEntry],
    ),
    fatal(
        "entries lead round in a ring",
        leaves,
        |p| {
            port(p, 1, 4).tagged.insert(vlan(2));
            port(p, 4, 2).tagged.insert(vlan(2));
            point(p, 3, 2, 4, 2);
            point(p, 1, 2, 4, 4);
            point(p, 4, 2, 4, 1);
        },
        &[K::Loop, K::NotATree],
    ),
    fatal(
        "a VLAN loses one end of a link",
        leaves,
        |p| {
            port(p, 3, 2).tagged.remove(vlan(2));
        },
        &[K::OneSidedMembership, K::DeadEntry, K::Drop, K::MissedBroadcast, K::PlanMismatch],
    ),
    fatal(
        "a VLAN loses the other end",
        leaves,
        |p| {
            port(p, 1, 3).tagged.remove(vlan(2));
        },
        &[K::OneSidedMembership, K::Drop, K::MissedBroadcast, K::PlanMismatch],
    ),
    fatal(
        "a VLAN loses a link and falls apart",
        leaves,
        |p| {
            port(p, 0, 3).tagged.remove(vlan(2));
            port(p, 3, 1).tagged.remove(vlan(2));
        },
        &[K::NotATree, K::MissedBroadcast, K::DeadEntry, K::PlanMismatch],
    ),
    fatal(
        "a host's port leaves a VLAN",
        leaves,
        |p| {
            port(p, 2, 1).untagged.remove(vlan(2));
        },
        &[K::Drop, K::MissedBroadcast, K::DeadEntry],
    ),
    fatal(
        "a host that knows no tags gets them",
        leaves,
        |p| {
            port(p, 2, 1).untagged.remove(vlan(2));
            port(p, 2, 1).tagged.insert(vlan(2));
        },
        &[K::Drop, K::MissedBroadcast],
    ),
    fatal(
        "a host that tags is not admitted",
        by_source,
        |p| {
            port(p, 0, 1).tagged.remove(vlan(2));
        },
        &[K::Drop, K::DeadEntry],
    ),
    fatal(
        "by pair, a host is not admitted to one of its VLANs",
        pairs,
        |p| {
            port(p, 0, 1).tagged.remove(vlan(3));
        },
        &[K::Drop],
    ),
    fatal(
        "a port is a member in two ways",
        leaves,
        |p| {
            port(p, 3, 2).untagged.insert(vlan(2));
        },
        &[K::TaggedAndUntagged],
    ),
    fatal("another PVID", leaves, |p| port(p, 0, 1).pvid = Some(vlan(3)), &[K::PlanMismatch, K::Flood]),
    fatal("no PVID", leaves, |p| port(p, 0, 1).pvid = None, &[K::Drop, K::IncompleteState, K::PlanMismatch]),
    fatal(
        "a PVID without membership",
        leaves,
        |p| {
            port(p, 0, 1).untagged.remove(vlan(2));
        },
        &[K::PvidWithoutMembership, K::Drop],
    ),
    fatal(
        "a VLAN leaks into another one",
        leaves,
        |p| {
            port(p, 3, 2).tagged.remove(vlan(2));
            port(p, 3, 2).untagged.insert(vlan(2));
            port(p, 1, 3).pvid = Some(vlan(3));
        },
        &[K::OneSidedMembership, K::PlanMismatch, K::DuplicateDelivery],
    ),
    fatal(
        "a leak makes second copies",
        twins,
        |p| {
            port(p, 0, 3).untagged.insert(vlan(2));
            port(p, 1, 3).pvid = Some(vlan(3));
        },
        &[K::DuplicateDelivery, K::OneSidedMembership],
    ),
    fatal(
        "a leak makes second copies, and an entry keeps all but unknown addresses from taking it",
        twins,
        |p| {
            port(p, 0, 3).untagged.insert(vlan(2));
            port(p, 1, 3).pvid = Some(vlan(3));
            let back = port(p, 1, 3).port;
            p.devices[1].foreign.push(FdbEntry { vlan: vlan(3), mac: Mac::BROADCAST, port: back });
        },
        &[K::DuplicateDelivery, K::OneSidedMembership, K::ForeignEntry],
    ),
    warning(
        "one end is a member of a VLAN too many",
        leaves,
        |p| {
            port(p, 1, 4).tagged.insert(vlan(2));
        },
        &[K::OneSidedMembership],
    ),
    fatal(
        "a VLAN that the policy reserves",
        leaves,
        |p| {
            p.policy.vlans.reserved.insert(vlan(3));
        },
        &[K::ForbiddenVlan],
    ),
    fatal(
        "a VLAN without a tree",
        leaves,
        |p| port(p, 0, 1).untagged = set("2-4,77"),
        &[K::PlanMismatch, K::SummaryMismatch],
    ),
    fatal("more VLANs than the policy allows", leaves, |p| p.policy.vlans_max = Some(2), &[K::LimitExceeded]),
];

const PORTS: &[Case] = &[
    fatal(
        "a link is shut",
        leaves,
        |p| {
            port(p, 0, 3).admin = Admin::Down;
            port(p, 3, 1).admin = Admin::Down;
        },
        &[K::Drop, K::DeadEntry, K::MissedBroadcast, K::PlanMismatch],
    ),
    fatal("a link is shut at one end", leaves, |p| port(p, 3, 1).admin = Admin::Down, &[K::Drop, K::RoleMismatch]),
    fatal(
        "a host's port is shut",
        leaves,
        |p| port(p, 0, 1).admin = Admin::Down,
        &[K::Drop, K::DeadEntry, K::MissedBroadcast],
    ),
    fatal("PAUSE at one end", leaves, |p| port(p, 0, 3).flow_control = FlowControlMode::Off, &[K::FlowControlMismatch]),
    fatal(
        "no PAUSE at either end",
        leaves,
        |p| {
            port(p, 0, 3).flow_control = FlowControlMode::Off;
            port(p, 3, 1).flow_control = FlowControlMode::Off;
        },
        &[K::PlanMismatch],
    ),
    fatal(
        "a port serves the wrong host",
        leaves,
        |p| port(p, 0, 1).role = PortRole::Host(HostId::new(1)),
        &[K::RoleMismatch],
    ),
    fatal("a link's port is said to be free", leaves, |p| port(p, 0, 3).role = PortRole::Unused, &[K::RoleMismatch]),
    fatal(
        "a role names a link that does not exist",
        leaves,
        |p| port(p, 0, 3).role = PortRole::Link(LinkId::new(99)),
        &[K::RoleMismatch],
    ),
    fatal(
        "a port has no state",
        leaves,
        |p| {
            p.devices[0].ports.remove(2);
        },
        &[K::IncompleteState, K::Drop],
    ),
    fatal(
        "a port has two states",
        leaves,
        |p| {
            let twice = p.devices[0].ports[2].clone();
            p.devices[0].ports.push(twice);
        },
        &[K::IncompleteState],
    ),
    fatal(
        "a switch has no state",
        leaves,
        |p| {
            p.devices.remove(4);
        },
        &[K::IncompleteState, K::Drop],
    ),
    fatal("a switch has two states", leaves, |p| p.devices.push(p.devices[0].clone()), &[K::IncompleteState]),
    fatal(
        "a state is for a switch that does not exist",
        leaves,
        |p| p.devices[4].switch = SwitchId::new(9),
        &[K::IncompleteState],
    ),
    fatal(
        "a model without priority flow control",
        bridges,
        |p| {
            p.policy.flow_control = FlowControl::Pfc(1);
            p.devices.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| {
                port.flow_control = FlowControlMode::Pfc { lanes: 1 };
            });
        },
        &[K::Unsupported],
    ),
];

const PROOFS: &[Case] = &[
    fatal(
        "flow control on routes with a cycle",
        unguarded_ring,
        |p| {
            p.policy.flow_control = FlowControl::Pause;
            p.devices.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| {
                port.flow_control = FlowControlMode::Pause;
            });
        },
        &[K::DependencyCycle, K::BadCertificate],
    ),
    fatal("no certificate", leaves, |p| p.certificate = None, &[K::BadCertificate, K::SummaryMismatch]),
    fatal(
        "a certificate that stands still",
        leaves,
        |p| p.certificate.as_mut().unwrap().rank[0].fill(7),
        &[K::BadCertificate, K::SummaryMismatch],
    ),
    fatal(
        "a certificate for fewer channels",
        leaves,
        |p| {
            p.certificate.as_mut().unwrap().rank[0].pop();
        },
        &[K::BadCertificate],
    ),
    fatal(
        "a certificate for fewer lanes",
        lanes,
        |p| {
            p.certificate.as_mut().unwrap().rank.pop();
        },
        &[K::BadCertificate],
    ),
    fatal(
        "all VLANs in one lane",
        lanes,
        |p| {
            p.trees.iter_mut().for_each(|tree| tree.lane = 0);
            all_in_one_class(p);
        },
        &[K::DependencyCycle, K::BadCertificate],
    ),
    fatal(
        "all VLANs in one class on the switches, in many lanes in the trees",
        lanes,
        all_in_one_class,
        &[K::DependencyCycle, K::BadCertificate, K::PlanMismatch],
    ),
    fatal(
        "all VLANs in one lane in the trees, in many classes on the switches",
        lanes,
        |p| p.trees.iter_mut().for_each(|tree| tree.lane = 0),
        &[K::PlanMismatch],
    ),
    fatal(
        "a switch that puts a VLAN into another class than the others",
        lanes,
        |p| {
            p.devices[4].classes[0].remove(vlan(2));
            p.devices[4].classes[1].insert(vlan(2));
        },
        &[K::PlanMismatch],
    ),
    fatal(
        "a VLAN without a class",
        lanes,
        |p| {
            p.devices[3].classes[0].remove(vlan(2));
        },
        &[K::IncompleteState],
    ),
    fatal(
        "a VLAN in two classes",
        lanes,
        |p| {
            p.devices[3].classes[1].insert(vlan(2));
        },
        &[K::IncompleteState],
    ),
    fatal("a class too many", lanes, |p| p.devices[3].classes.push(VlanSet::new()), &[K::IncompleteState]),
    warning(
        "a class for a VLAN that is not there",
        lanes,
        |p| p.devices[3].classes[1].extend([vlan(77)]),
        &[K::UnusedSetting],
    ),
    warning(
        "classes without priority flow control",
        leaves,
        |p| p.devices[3].classes = vec![set("2-4")],
        &[K::UnusedSetting],
    ),
    fatal("a port with too small an MTU", leaves, |p| port(p, 0, 3).mtu_bytes = 1400, &[K::Drop]),
    warning("a port with jumbo frames for nobody", leaves, |p| port(p, 0, 3).mtu_bytes = 9000, &[K::UnusedSetting]),
    fatal("spanning tree", leaves, |p| p.devices[0].spanning_tree = SpanningTree::On, &[K::PlanMismatch]),
    fatal("no filter at ingress", leaves, |p| port(p, 0, 3).ingress_filter = IngressFilter::Off, &[K::PlanMismatch]),
    fatal("a lane beyond the classes", lanes, |p| p.trees[4].lane = 5, &[K::LimitExceeded]),
    fatal("lanes without priority flow control", leaves, |p| p.trees[1].lane = 1, &[K::LimitExceeded]),
    fatal("a bound too good to be true", leaves, |p| p.summary.load_bound *= 1.01, &[K::BadBound]),
    fatal("a bound that is no number", leaves, |p| p.summary.load_bound = f64::NAN, &[K::BadBound]),
    fatal(
        "a bound too good for a matrix",
        uneven_clos,
        |p| p.summary.load_bound *= 1.01,
        &[K::BadBound, K::SummaryMismatch],
    ),
    fatal(
        "lengths on the wrong channels",
        uneven_clos,
        |p| p.bound.lengths.iter_mut().enumerate().for_each(|(channel, length)| *length = u32::from(channel % 4 == 1)),
        &[K::BadBound],
    ),
    fatal(
        "a matrix that is forgotten",
        uneven_clos,
        |p| p.policy.traffic = Traffic::AllToAll,
        &[K::BadBound, K::SummaryMismatch],
    ),
    fatal("a host that sends twice as much", uneven_clos, |p| change_demand(p, 2.0), &[K::SummaryMismatch]),
    fatal("a host that sends less", uneven_clos, |p| change_demand(p, 0.25), &[K::BadBound, K::SummaryMismatch]),
    fatal(
        "a matrix for other hosts",
        uneven_clos,
        |p| p.policy.traffic = Traffic::Matrix(TrafficMatrix::new(3, Vec::new()).unwrap()),
        &[K::PlanMismatch, K::BadBound, K::SummaryMismatch],
    ),
    fatal("lengths that prove nothing", leaves, |p| p.bound.lengths.fill(0), &[K::BadBound]),
    fatal(
        "too few lengths",
        leaves,
        |p| {
            p.bound.lengths.pop();
        },
        &[K::BadBound],
    ),
    warning(
        "a bound that gives away too much",
        leaves,
        |p| {
            p.summary.load_bound *= 0.1;
            p.summary.load_gap *= 10.0;
        },
        &[K::BadBound],
    ),
];

const PLAN: &[Case] = &[
    fatal(
        "the assignment says another VLAN",
        leaves,
        |p| p.assignment = p.assignment.map(|_| vlan(2)),
        &[K::PlanMismatch],
    ),
    fatal(
        "the assignment forgets a host",
        by_source,
        |p| {
            p.assignment = Assignment::Source(vec![vlan(2); 5]);
        },
        &[K::IncompleteState, K::Drop],
    ),
    fatal(
        "the assignment forgets a receiver",
        pairs,
        |p| {
            let Assignment::Pair { unicast, .. } = &mut p.assignment else {
                unreachable!("pairs are assigned by pair")
            };
            Arc::make_mut(&mut unicast[0]).remove(3);
        },
        &[K::IncompleteState],
    ),
    fatal(
        "pairs talk in a VLAN without entries, where nobody broadcasts",
        pairs,
        |p| {
            let Assignment::Pair { broadcast, .. } = &mut p.assignment else {
                unreachable!("pairs are assigned by pair")
            };
            broadcast.fill(vlan(2));
            p.devices.iter_mut().for_each(|device| device.fdb.retain(|run| run.vlan != vlan(3)));
        },
        &[K::Flood],
    ),
    fatal(
        "the assignment is of another kind",
        by_source,
        |p| p.policy.tagging = Tagging::Destination,
        &[K::PlanMismatch],
    ),
    fatal(
        "the assignment names a VLAN that nobody has",
        by_source,
        |p| {
            let Assignment::Source(choice) = &mut p.assignment else { unreachable!("sources are assigned") };
            choice[0] = vlan(99);
        },
        &[K::PlanMismatch, K::Drop],
    ),
    fatal(
        "a host's tagging table disagrees with the entries",
        by_source,
        |p| {
            let Assignment::Source(choice) = &mut p.assignment else { unreachable!("sources are assigned") };
            choice[0] = vlan(3);
        },
        &[K::Flood],
    ),
    fatal(
        "a tree has another link",
        leaves,
        |p| {
            let links: Vec<LinkId> = [0, 1, 2, 5].map(LinkId::new).to_vec();
            p.trees[0].tree = Tree::new(&p.topology, links).unwrap();
        },
        &[K::PlanMismatch],
    ),
    fatal(
        "a tree is missing",
        leaves,
        |p| {
            p.trees.remove(1);
        },
        &[K::PlanMismatch],
    ),
    fatal("trees are out of order", leaves, |p| p.trees.reverse(), &[K::PlanMismatch]),
    fatal("no engine is named", leaves, |p| p.engine = EngineName::Auto, &[K::PlanMismatch]),
    fatal("two hosts of one address", leaves, |p| p.addresses[1] = p.addresses[0], &[K::BadAddress]),
    fatal(
        "an address outside the subnet",
        leaves,
        |p| p.addresses[1] = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        &[K::BadAddress],
    ),
    fatal(
        "an IPv6 address that the cabling file does not state",
        leaves,
        |p| p.addresses[1] = "fd00::1".parse().unwrap(),
        &[K::BadAddress],
    ),
    fatal(
        "the subnet's own address",
        leaves,
        |p| p.addresses[1] = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)),
        &[K::BadAddress],
    ),
    fatal(
        "a host without an address",
        leaves,
        |p| {
            p.addresses.pop();
        },
        &[K::IncompleteState],
    ),
];

const SUMMARY: &[Case] = &[
    fatal("switches", leaves, |p| p.summary.switches += 1, &[K::SummaryMismatch]),
    fatal("hosts", leaves, |p| p.summary.hosts += 1, &[K::SummaryMismatch]),
    fatal("links", leaves, |p| p.summary.links += 1, &[K::SummaryMismatch]),
    fatal("vlans", leaves, |p| p.summary.vlans += 1, &[K::SummaryMismatch]),
    fatal("lanes", leaves, |p| p.summary.lanes += 1, &[K::SummaryMismatch]),
    fatal("avg_switches_per_path", leaves, |p| p.summary.avg_switches_per_path += 0.01, &[K::SummaryMismatch]),
    fatal("avg_hops", leaves, |p| p.summary.avg_hops += 0.01, &[K::SummaryMismatch]),
    fatal("max_switches_per_path", leaves, |p| p.summary.max_switches_per_path += 1, &[K::SummaryMismatch]),
    fatal("max_channel_load", leaves, |p| p.summary.max_channel_load += 1.0, &[K::SummaryMismatch]),
    fatal("max_channel_time", leaves, |p| p.summary.max_channel_time += 1.0, &[K::SummaryMismatch]),
    fatal("load_gap", leaves, |p| p.summary.load_gap = f64::NAN, &[K::SummaryMismatch]),
    fatal("deadlock_free", leaves, |p| p.summary.deadlock_free = false, &[K::SummaryMismatch]),
    fatal("fdb_entries_max", leaves, |p| p.summary.fdb_entries_max += 1, &[K::SummaryMismatch]),
    fatal("fdb_entries_total", leaves, |p| p.summary.fdb_entries_total -= 1, &[K::SummaryMismatch]),
];

const FAILURES: &[Case] = &[
    fatal("nothing is stored", ready, |p| p.failover = None, &[K::BadSwitchOver]),
    fatal(
        "a link's switch-over is missing",
        ready,
        |p| {
            overs(p).remove(1);
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "a host stays behind",
        ready,
        |p| {
            overs(p)[0].hosts.remove(0);
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "a host goes where the link is missed as well",
        ready,
        |p| overs(p)[0].hosts[0].choice = vlan(3),
        &[K::BadSwitchOver],
    ),
    fatal(
        "a host that need not move goes over the dead link",
        ready,
        |p| overs(p)[1].hosts.insert(0, host_run(0, 3)),
        &[K::BadSwitchOver],
    ),
    fatal("a VLAN that there is not", ready, |p| overs(p)[0].hosts[0].choice = vlan(9), &[K::BadSwitchOver]),
    fatal("a host that there is not", ready, |p| overs(p)[0].hosts[1].last = HostId::new(7), &[K::BadSwitchOver]),
    fatal("hosts out of order", ready, |p| overs(p)[0].hosts.swap(0, 1), &[K::BadSwitchOver]),
    fatal("links out of order", ready, |p| overs(p).swap(0, 1), &[K::BadSwitchOver]),
    fatal(
        "a link that there is not",
        ready,
        |p| overs(p)[2].failure = Failure::Link(LinkId::new(3)),
        &[K::BadSwitchOver],
    ),
    fatal(
        "pairs where hosts choose alone",
        ready,
        |p| overs(p)[0].pairs.push(PairRun { source: HostId::new(0), run: host_run(1, 4) }),
        &[K::BadSwitchOver],
    ),
    fatal(
        "an entry that only a switch-over needs",
        ready,
        |p| p.devices[0].fdb.retain(|run| run.vlan != vlan(4) || run.first.index() == 0),
        &[K::Flood],
    ),
    fatal("a turned entry that only a switch-over needs", ready, |p| point(p, 0, 4, 1, 1), &[K::Drop]),
    fatal(
        "a port outside the VLAN to go to",
        ready,
        |p| port(p, 0, 1).untagged = set("2-3"),
        &[K::Drop, K::MissedBroadcast],
    ),
    fatal("nothing is proven", ready, |p| overs(p)[0].proof = Proof::Unneeded, &[K::BadCertificate]),
    fatal("a numbering that there is not", ready, |p| overs(p)[2].proof = Proof::Numbering(1), &[K::BadCertificate]),
    fatal(
        "a certificate that does not reach so far",
        ready,
        |p| overs(p)[2].proof = Proof::Certificate,
        &[K::BadCertificate],
    ),
    fatal("a numbering for another failure", ready, |p| overs(p)[0].proof = Proof::Numbering(0), &[K::BadCertificate]),
    fatal(
        "a numbering for another failure, drained",
        ready,
        |p| overs(p)[0].proof = Proof::Drained(0),
        &[K::BadCertificate, K::SummaryMismatch],
    ),
    fatal(
        "a numbering too short",
        ready,
        |p| p.failover.as_mut().unwrap().numberings[0].rank[0].truncate(5),
        &[K::BadCertificate],
    ),
    fatal(
        "a numbering without a lane",
        ready,
        |p| p.failover.as_mut().unwrap().numberings[0].rank.clear(),
        &[K::BadCertificate],
    ),
    fatal("covered links", ready, |p| failover_summary(p).links_covered -= 1, &[K::SummaryMismatch]),
    fatal("dividing links", ready, |p| failover_summary(p).links_dividing += 1, &[K::SummaryMismatch]),
    fatal(
        "a drained link in use",
        ready,
        |p| {
            p.policy.drain.links.insert(LinkId::new(0));
        },
        &[K::DrainedInUse],
    ),
    fatal(
        "a drained switch in use",
        leaves,
        |p| {
            p.policy.drain.switches.insert(SwitchId::new(3));
        },
        &[K::DrainedInUse],
    ),
    fatal(
        "a spine of another plane in use",
        leaves,
        |p| {
            let spine = p.topology.switch_ids().find(|switch| p.topology.hosts_of(*switch).is_empty());
            let plane = p.topology.switch_ids().map(|switch| u8::from(Some(switch) == spine)).collect();
            p.policy.planes = Planes::new(plane);
        },
        &[K::LeavesPlane],
    ),
    fatal("a standby edge up", standby_edge, |p| standby_port(p).admin = Admin::Up, &[K::StandbyEdgeUp]),
    fatal(
        "a standby edge up in a VLAN",
        standby_edge,
        |p| {
            standby_port(p).admin = Admin::Up;
            standby_port(p).untagged.insert(vlan(2));
        },
        &[K::StandbyEdgeUp],
    ),
    warning(
        "a standby edge down in a VLAN",
        standby_edge,
        |p| {
            standby_port(p).tagged.insert(vlan(2));
        },
        &[K::UnusedSetting],
    ),
    fatal(
        "a standby edge set up for a host",
        standby_edge,
        |p| standby_port(p).role = PortRole::Host(HostId::new(0)),
        &[K::RoleMismatch],
    ),
    fatal(
        "an entry that leads to a standby edge",
        standby_edge,
        |p| {
            let port = p.topology.standby_edges()[0].port;
            p.devices[0].fdb[0].port = port;
        },
        &[K::DeadEntry],
    ),
    fatal("a path longer than paths may be", leaves, |p| p.policy.hops_max = Some(1), &[K::TooManyHops]),
    fatal("planes of other switches", ready, |p| p.policy.planes = Planes::new(vec![0]), &[K::PlanMismatch]),
    fatal("drained failures", ready, |p| failover_summary(p).drained += 1, &[K::SummaryMismatch]),
    fatal(
        "the load after the worst failure",
        ready,
        |p| failover_summary(p).max_channel_time -= 1.0,
        &[K::SummaryMismatch],
    ),
    fatal("VLANs for failures", ready, |p| failover_summary(p).vlans_extra += 1, &[K::SummaryMismatch]),
    fatal("entries for failures", ready, |p| failover_summary(p).fdb_entries_extra += 1, &[K::SummaryMismatch]),
    fatal("a pair stays behind", ready_pairs, |p| overs(p)[0].pairs.clear(), &[K::BadSwitchOver]),
    fatal("broadcasts stay behind", ready_pairs, |p| overs(p)[0].hosts.clear(), &[K::BadSwitchOver]),
    fatal(
        "a pair goes over the dead link",
        ready_pairs,
        |p| overs(p)[0].pairs[0].run.choice = vlan(2),
        &[K::BadSwitchOver],
    ),
    fatal(
        "a sender that there is not",
        ready_pairs,
        |p| overs(p)[0].pairs[0].source = HostId::new(2),
        &[K::BadSwitchOver],
    ),
    fatal(
        "a pair twice",
        ready_pairs,
        |p| {
            let pair = overs(p)[0].pairs[0];
            overs(p)[0].pairs.push(pair);
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "a host goes where the dead switch is passed",
        ready_switches,
        |p| overs(p)[3].hosts[0].choice = vlan(2),
        &[K::BadSwitchOver],
    ),
    fatal(
        "a switch that there is not",
        ready_switches,
        |p| overs(p)[3].failure = Failure::Switch(SwitchId::new(3)),
        &[K::BadSwitchOver],
    ),
    fatal("a switch before the links", ready_switches, |p| overs(p).swap(2, 3), &[K::BadSwitchOver]),
    fatal(
        "a switch-over that nobody asked for",
        ready_switches,
        |p| {
            p.policy.resilience = Resilience::OneLink;
            failover_summary(p).switches = None;
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "covered switches",
        ready_switches,
        |p| failover_summary(p).switches = Some(PartCoverage { covered: 2, dividing: 1 }),
        &[K::SummaryMismatch],
    ),
    fatal("switches not spoken of", ready_switches, |p| failover_summary(p).switches = None, &[K::SummaryMismatch]),
    fatal(
        "a host goes where a dead member of the group is passed",
        ready_groups,
        |p| overs(p)[4].hosts[0].choice = vlan(2),
        &[K::BadSwitchOver],
    ),
    fatal(
        "nobody switches over for a group",
        ready_groups,
        |p| {
            overs(p).pop();
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "a group that there is not",
        ready_groups,
        |p| overs(p)[5].failure = Failure::Group(GroupId::new(3)),
        &[K::BadSwitchOver],
    ),
    fatal("a group before a switch", ready_groups, |p| overs(p).swap(3, 4), &[K::BadSwitchOver]),
    fatal(
        "a group's switch-over that nobody asked for",
        ready_groups,
        |p| {
            p.policy.resilience = Resilience::OneSwitch;
            failover_summary(p).groups = None;
        },
        &[K::BadSwitchOver],
    ),
    fatal(
        "a group's switch-over on a numbering that does not cover it",
        ready_groups,
        |p| overs(p)[5].proof = Proof::Numbering(0),
        &[K::BadCertificate],
    ),
    fatal(
        "a group's switch-over on a numbering that does not cover a cable of the group, which may come back",
        ready_groups,
        |p| {
            p.failover.as_mut().unwrap().numberings.push(Certificate { rank: vec![vec![0, 3, 5, 2, 4, 1]] });
            overs(p)[4].proof = Proof::Numbering(1);
        },
        &[K::BadCertificate],
    ),
    fatal(
        "a group's switch-over on no numbering",
        ready_groups,
        |p| overs(p)[4].proof = Proof::Unneeded,
        &[K::BadCertificate],
    ),
    fatal(
        "covered groups",
        ready_groups,
        |p| failover_summary(p).groups = Some(PartCoverage { covered: 2, dividing: 1 }),
        &[K::SummaryMismatch],
    ),
    fatal(
        "two links that are no group",
        ready_groups,
        |p| p.policy.resilience = Resilience::TwoLinks,
        &[K::BadSwitchOver],
    ),
    fatal("groups not spoken of", ready_groups, |p| failover_summary(p).groups = None, &[K::SummaryMismatch]),
    warning(
        "a group that nothing can replace",
        dividing_group,
        |p| {
            p.policy.resilience = Resilience::OneGroup;
            failover_summary(p).groups = Some(PartCoverage { covered: 0, dividing: 1 });
        },
        &[K::DividingGroup],
    ),
    warning(
        "a switch that nothing can replace",
        row,
        |p| {
            p.policy.resilience = Resilience::OneSwitch;
            let summary = FailoverSummary {
                links_covered: 0,
                links_dividing: 2,
                switches: Some(PartCoverage { covered: 2, dividing: 1 }),
                groups: None,
                drained: 0,
                max_channel_time: 2.0,
                vlans_extra: 0,
                fdb_entries_extra: 0,
            };
            p.failover = Some(Failover { switch_overs: Vec::new(), numberings: Vec::new(), summary });
        },
        &[K::DividingLink, K::DividingSwitch],
    ),
    warning(
        "a link that nothing can replace",
        single_cable,
        |p| {
            p.policy.resilience = Resilience::OneLink;
            let (links_covered, links_dividing) = (0, 1);
            let (drained, max_channel_time, vlans_extra, fdb_entries_extra) = (0, 0.0, 0, 0);
            let summary = FailoverSummary {
                links_covered,
                links_dividing,
                switches: None,
                groups: None,
                drained,
                max_channel_time,
                vlans_extra,
                fdb_entries_extra,
            };
            p.failover = Some(Failover { switch_overs: Vec::new(), numberings: Vec::new(), summary });
        },
        &[K::DividingLink],
    ),
];

/// Two switches with a host each and one cable.
fn single_cable() -> Plan {
    plan(&topology(&[1, 1], &[(0, 1)]), Wish::switch_tagged())
}

#[test]
fn every_damage_is_caught_and_named() {
    let mut failures = Vec::new();
    for case in [ENTRIES, MEMBERSHIP, PORTS, PROOFS, PLAN, SUMMARY, FAILURES].into_iter().flatten() {
        let mut plan = (case.base)();
        let sound = check(&plan);
        assert!(sound.findings().iter().all(|finding| finding.severity == Severity::Note), "{}: {sound}", case.name);
        (case.damage)(&mut plan);
        let report = check(&plan);
        assert_eq!(report, check_with(&plan, 3), "{}", case.name);
        let worst = report.findings().first().map(|finding| finding.severity);
        let missing: Vec<&K> =
            case.kinds.iter().filter(|kind| !report.findings().iter().any(|finding| finding.kind == **kind)).collect();
        if worst != Some(case.worst) || !missing.is_empty() {
            failures.push(format!("{}: worst {worst:?}, missing {missing:?}\n{report}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn findings_name_ports_and_hosts_as_people_do() {
    let mut plan = leaves();
    point(&mut plan, 3, 2, 4, 1);
    let report = check(&plan).to_string();
    let expected = "fatal[drop] h0 -> h4: the frame in VLAN 2 is lost at s3:1: its entry points back to where it came from; so do frames from 1 other host\n";
    assert!(report.contains(expected), "{report}");
}
