//! Tables of generated fabrics, walked: every packet between hosts arrives as planned, and no two packets, switches' own
//! included, can wait for each other in a ring.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    Attachment, EngineName, FlowControl, Guid, Plan, Policy, SwitchId, SwitchSpec, Tagging, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
};
use infiniband::{Destination, ForwardingTables, TablesError, forwarding_tables, write_ibsim, write_opensm};

#[test]
fn every_destination_is_reached_where_every_switch_has_hosts() {
    for (kind, size) in [("torus", "4x4x2"), ("random-regular", "n=20,d=4"), ("mesh", "5x3"), ("hyperx", "3x4")] {
        let plan = planned(&infiniband(&generated(kind, size)), by_destination());
        let tables = forwarding_tables(&plan).expect("tables");
        assert_eq!(tables.missing(), 0, "{kind} {size}");
        assert_eq!(walk_all(&plan, &tables), 0, "{kind} {size}");
    }
}

#[test]
fn switches_without_hosts_are_served_as_far_as_one_lane_allows() {
    for (kind, size) in [("fat-tree", "k=4"), ("fat-tree", "2,4,2"), ("clos", "4x3")] {
        let plan = planned(&infiniband(&generated(kind, size)), by_destination());
        let tables = forwarding_tables(&plan).expect("tables");
        assert_eq!(walk_all(&plan, &tables), tables.missing(), "{kind} {size}");
        let topology = &plan.topology;
        for switch in topology.switch_ids() {
            for destination in tables.destinations().filter(|destination| !is_bare(topology, *destination)) {
                assert!(
                    tables.port(topology, switch, destination).is_some(),
                    "{kind} {size}: {switch:?} {destination:?}"
                );
            }
        }
    }
}

#[test]
fn what_infiniband_cannot_carry_is_refused_with_the_way_out() {
    let torus = infiniband(&generated("torus", "4x4"));
    let refusal = |topology: &Topology, policy: Policy| {
        forwarding_tables(&planned(topology, policy)).expect_err("it cannot be carried").to_string()
    };
    let message = refusal(&torus, Policy::default());
    assert!(message.contains("--tagging destination"), "{message}");
    let message = refusal(&generated("torus", "4x4"), by_destination());
    assert!(message.contains("switch s0-0 has no GUID"), "{message}");

    let mut plan = planned(&torus, by_destination());
    plan.certificate = None;
    assert_eq!(forwarding_tables(&plan), Err(TablesError::NoProof));
    let mut plan = planned(&torus, by_destination());
    if let Some(certificate) = &mut plan.certificate {
        certificate.rank.push(certificate.rank[0].clone());
    }
    assert_eq!(forwarding_tables(&plan), Err(TablesError::Lanes(2)));
}

#[test]
fn entries_that_close_a_cycle_are_refused() {
    // On a ring of three everybody sends clockwise, whatever the plan's proof says.
    let mut plan = planned(&infiniband(&generated("torus", "3")), by_destination());
    let topology = plan.topology.clone();
    let clockwise: Vec<_> = topology.switch_ids().map(|switch| topology.tail_port(around(&topology, switch))).collect();
    for device in &mut plan.devices {
        for run in &mut device.fdb {
            if matches!(topology.port(run.port).attachment, Attachment::Link(_)) {
                run.port = clockwise[device.switch.index()];
            }
        }
        let senders = topology.host_ids().filter(|host| topology.switch_of(*host) != device.switch);
        let missing: Vec<_> =
            senders.filter(|host| !device.fdb.iter().any(|run| (run.first..=run.last).contains(host))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
    assert!(matches!(forwarding_tables(&plan), Err(TablesError::Contradiction(_))));
}

#[test]
fn the_files_say_what_the_tables_say() {
    let topology = infiniband(&generated("mesh", "2"));
    let plan = planned(&topology, by_destination());
    let (mut tables, mut net) = (Vec::new(), Vec::new());
    write_opensm(&topology, &forwarding_tables(&plan).expect("tables"), &mut tables).expect("memory");
    write_ibsim(&topology, &mut net).expect("memory");
    let expected = "\
# Forwarding tables of 2 switches; load with: opensm -R file,no_fallback -U FILE
Unicast lids [0x0-0x0] of switch Lid 0 guid 0x0000000000000100 (s0):
  Lid  Out   Destination
       Port     Info
0x0000 002 : (Channel Adapter portguid 0x0000000000000201: 'h0')
0x0000 001 : (Channel Adapter portguid 0x0000000000000203: 'h1')
0x0000 000 : (Switch portguid 0x0000000000000100: 's0')
0x0000 001 : (Switch portguid 0x0000000000000101: 's1')
4 lids dumped
";
    let tables = String::from_utf8(tables).expect("text");
    assert_eq!(&tables[..expected.len()], expected);
    let net = String::from_utf8(net).expect("text");
    assert!(net.starts_with("caguid=0x0000000000000200\nHca\t1 \"h0\"\n[1](0x0000000000000201)\t\"s0\"[2]\n"), "{net}");
    assert!(net.contains("switchguid=0x0000000000000101\nSwitch\t2 \"s1\"\n[1]\t\"s0\"[1]\n[2]\t\"h1\"[1]\n"), "{net}");
}

fn by_destination() -> Policy {
    Policy {
        tagging: Tagging::Destination,
        flow_control: FlowControl::Pause,
        engine: EngineName::Auto,
        ..Policy::default()
    }
}

fn planned(topology: &Topology, policy: Policy) -> Plan {
    planner::plan(topology, &policy, None).expect("a plan")
}

fn generated(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a kind");
    generate(&kind, &Options::default()).expect("a topology")
}

/// The same cabling with numbered ports and GUIDs.
fn infiniband(topology: &Topology) -> Topology {
    let mut builder = TopologyBuilder::new();
    let mut ports = Vec::new();
    for (id, switch) in topology.switch_ids().zip(topology.switches()) {
        let made = builder.add_switch(&switch.name, SwitchSpec::default()).expect("fresh");
        builder.set_switch_guid(made, guid(0x100 + id.index())).expect("fresh");
        for number in 1..=topology.port_ids(id).len() {
            ports.push(builder.add_port(made, &number.to_string()).expect("fresh"));
        }
    }
    for link in topology.links() {
        builder.add_link(ports[link.a.index()], ports[link.b.index()], link.rate_bps).expect("free");
    }
    for (id, host) in topology.host_ids().zip(topology.hosts()) {
        let made = builder.add_host(&host.name, host.mac, ports[host.port.index()], host.rate_bps, None).expect("free");
        builder.set_host_guid(made, guid(0x201 + 2 * id.index())).expect("fresh");
    }
    builder.finish().expect("connected")
}

fn guid(number: usize) -> Guid {
    Guid::new(number as u64).expect("not zero")
}

/// The channel from a switch of a ring of three to the next by number.
fn around(topology: &Topology, switch: SwitchId) -> fabric::ChannelId {
    let next = SwitchId::new((switch.index() + 1) % 3);
    *topology.channels_from(switch).iter().find(|channel| topology.head(**channel) == next).expect("a ring")
}

/// Whether it is a switch without hosts.
fn is_bare(topology: &Topology, destination: Destination) -> bool {
    matches!(destination, Destination::Switch(switch) if topology.hosts_of(switch).is_empty())
}

/// Walks every switch's packets to every destination by port numbers, checks that dependencies close no ring, and
/// returns how many walks found no entry at their first switch.
fn walk_all(plan: &Plan, tables: &ForwardingTables) -> usize {
    let topology = &plan.topology;
    let mut after: BTreeMap<(SwitchId, u8), BTreeSet<(SwitchId, u8)>> = BTreeMap::new();
    let mut without = 0;
    for destination in tables.destinations() {
        for source in topology.switch_ids() {
            let (mut at, mut held, mut steps) = (source, None, 0);
            let end = loop {
                let Some(port) = tables.port(topology, at, destination) else { break None };
                let leads = topology.port_ids(at).find(|id| topology.port(*id).name == port.to_string());
                match leads.map(|port| (port, topology.port(port).attachment)) {
                    Some((out, Attachment::Link(link))) => {
                        if let Some(held) = held.replace((at, port)) {
                            after.entry(held).or_default().insert((at, port));
                        }
                        let fabric::Link { a, b, .. } = *topology.link(link);
                        at = topology.port(if a == out { b } else { a }).switch;
                    }
                    Some((_, Attachment::Host(host))) => break Some(Destination::Host(host)),
                    _ => break Some(Destination::Switch(at)),
                }
                steps += 1;
                assert!(steps <= topology.switches().len(), "a packet goes round");
            };
            match end {
                Some(end) => assert_eq!(end, destination),
                None => {
                    assert_eq!(at, source, "an entry leads to a switch without one");
                    without += 1;
                }
            }
        }
    }
    while let Some(last) = after.iter().find(|(_, next)| next.iter().all(|c| !after.contains_key(c))).map(|(c, _)| *c) {
        after.remove(&last);
    }
    assert!(after.is_empty(), "packets can wait for each other in a ring: {:?}", after.keys().next());
    for source in topology.host_ids() {
        for host in topology.host_ids() {
            assert!(tables.port(topology, topology.switch_of(source), Destination::Host(host)).is_some());
        }
    }
    without
}
