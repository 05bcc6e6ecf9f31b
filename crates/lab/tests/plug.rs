//! Plugs that are moved while a lab runs: the frames go where the cables lead, and switches see what they would see.

mod common;
mod manager;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bridge_mib::{
    BridgePort, IfStatus,
    index::IfIndex,
    objects::{bridge, if_mib, lldp, q_bridge},
};
use common::{Guard, Shape, grid, lab_name, ring, skipped};
use fabric::{Attachment, DEFAULT_RATE_BPS, Mac, Plan, SwitchSpec, TopologyBuilder, Tree};
use lab::{
    Backend, Carrier, FailMode, Lab, LabError, LabOptions, Managed, Plugged, Start,
    delivery::{Probe, check},
};
use manager::{Agents, Manager, wait_for};
use snmp::Value;

fn options(word: &str, backend: Backend) -> LabOptions {
    LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(word)) }
}

/// The label of the port where a host is.
fn home(plan: &Plan, host: &str) -> String {
    let topology = &plan.topology;
    let host = topology.host_ids().find(|id| topology.host(*id).name == host).expect("a host");
    topology.port_label(topology.host(host).port)
}

/// Frames and bytes by port label, VLANs together.
fn counted(lab: &Lab) -> BTreeMap<String, [u64; 2]> {
    let status = lab.status().expect("a status");
    let switches = status.switches.iter();
    let ports = switches
        .flat_map(|switch| switch.ports.iter().map(|port| (format!("{}:{}", switch.name, port.name), port.total())));
    ports.map(|(label, total)| (label, [total.in_frames, total.out_frames])).collect()
}

#[test]
fn plugs_change_places_and_back() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plan = ring(4);
        let mut lab = Guard::up(&plan, &options("swap", backend));
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
        let (one, other) = (home(&plan, "n1"), home(&plan, "n2"));
        let before = (lab.0.layout().clone(), counted(&lab.0));
        let since = Instant::now();
        let [first, second] = lab.0.plug(&one, &other).expect("two plugs");
        println!("{backend}: plugged in {:.0?}", since.elapsed());
        assert_eq!(first, Plugged { port: one.clone(), cable: Some(format!("{one} -- n2")) });
        assert_eq!(second, Plugged { port: other.clone(), cable: Some(format!("{other} -- n1")) });
        // Each host's static entries lead to the other one now.
        let faults = check(&lab.0, Probe::Ping).expect("probes can be sent").faults;
        assert!(faults.iter().any(|fault| fault.destination == "n1" && fault.copies == 0), "{backend}: {faults:?}");
        assert_eq!(Lab::open(&lab.0.layout().name).expect("it is up").layout(), lab.0.layout());

        lab.0.plug(&other, &one).expect("two plugs");
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{backend}");
        let (layout, after) = (lab.0.layout(), counted(&lab.0));
        assert_eq!(layout.cables, before.0.cables);
        // What was counted at a port was not lost with its devices.
        for (port, counts) in before.1 {
            assert!(counts.iter().zip(after[&port]).all(|(before, after)| after >= *before), "{backend}: {port}");
        }
        // A cable between the two ports is turned round, and that is all.
        let cable = layout.cables[0].clone();
        lab.0.plug(&cable.a.label, &cable.b.label).expect("two plugs");
        let turned = &lab.0.layout().cables[0];
        assert_eq!((&turned.a, &turned.b), (&cable.b, &cable.a));
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{backend}");
    }
}

/// Two switches, a cable and two hosts, and on each switch two ports that nothing is plugged into, named so that no device
/// can be called so.
fn with_empty_ports() -> Plan {
    let mut builder = TopologyBuilder::new();
    let switches = ["s0", "s1"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a fresh name"));
    let mut cable = Vec::new();
    for (number, at) in (1..).zip(switches) {
        cable.push(builder.add_port(at, "g1").expect("a fresh name"));
        let port = builder.add_port(at, "g2").expect("a fresh name");
        builder.add_host(&format!("n{number}"), Mac::local(number), port, DEFAULT_RATE_BPS, None).expect("free");
        for name in ["1/1#3", "TenGigabitEthernet1/30"] {
            builder.add_port(at, name).expect("a fresh name");
        }
    }
    builder.add_link(cable[0], cable[1], DEFAULT_RATE_BPS).expect("free ports");
    let topology = builder.finish().expect("connected");
    assert!(topology.ports().iter().any(|port| port.attachment == Attachment::Nothing));
    let cabling = topology.clone();
    common::plan(topology, |_| Tree::new(&cabling, cabling.link_ids()).expect("a tree"))
}

#[test]
fn a_plug_moves_into_an_empty_port_and_back() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let mut lab = Guard::up(&with_empty_ports(), &options("empty", backend));
        let carrier = |lab: &Lab, port: &str| {
            let status = lab.status().expect("a status");
            let found = status.switches[0].ports.iter().find(|site| site.name == port).expect("a port");
            found.carrier
        };
        assert_eq!((carrier(&lab.0, "g2"), carrier(&lab.0, "1/1#3")), (Carrier::Up, Carrier::None));
        let [left, taken] = lab.0.plug("s0:g2", "s0:1/1#3").expect("a plug and an empty port");
        assert_eq!((left.cable, taken.cable), (None, Some("s0:1/1#3 -- n1".to_owned())));
        // The plan shuts ports that it has no use for.
        assert_eq!((carrier(&lab.0, "g2"), carrier(&lab.0, "1/1#3")), (Carrier::None, Carrier::Down));
        assert!(!check(&lab.0, Probe::Ping).expect("probes can be sent").faults.is_empty());
        // From one empty port to another one, of another switch.
        lab.0.plug("s0:1/1#3", "s1:TenGigabitEthernet1/30").expect("a plug and an empty port");
        let nothing = lab.0.plug("s0:g2", "s0:1/1#3").expect_err("two empty ports");
        assert!(matches!(&nothing, LabError::Unsupported(why) if why.contains("has a plug")), "{nothing}");
        lab.0.plug("s1:TenGigabitEthernet1/30", "s0:g2").expect("a plug and an empty port");
        assert_eq!(carrier(&lab.0, "g2"), Carrier::Up);
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{backend}");

        let unknown = lab.0.plug("s0:g2", "s0:g9").expect_err("no port");
        assert!(unknown.to_string().contains("that switch has g1, g2, 1/1#3"), "{unknown}");
        assert!(matches!(lab.0.plug("s9:g1", "s0:g1"), Err(LabError::NoSuchPort { known, .. }) if known.is_empty()));
        assert!(lab.0.plug("s0:g1", "s0:g1").is_err());
    }
}

#[test]
fn a_broken_cable_stays_broken_wherever_it_is_plugged_in() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plan = ring(3);
        let mut lab = Guard::up(&plan, &options("broken", backend));
        let (one, other) = (home(&plan, "n1"), home(&plan, "n2"));
        for mode in [FailMode::Down, FailMode::Silent, FailMode::Lossy { loss_ppm: 1_000_000 }] {
            lab.0.fail("n1", mode).expect("a cable");
            // There and back again: n1 hears nothing all the while.
            for _ in 0..2 {
                lab.0.plug(&one, &other).expect("two plugs");
                let faults = check(&lab.0, Probe::Ping).expect("probes can be sent").faults;
                let silent = |host: &str| faults.iter().any(|fault| fault.destination == host && fault.copies == 0);
                assert!(silent("n1"), "{backend}, {mode:?}: {faults:?}");
            }
            lab.0.heal("n1").expect("a cable");
            assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{backend}, {mode:?}");
        }
    }
}

/// Names of neighbours by local port, as LLDP-MIB has them.
fn neighbours(manager: &mut Manager) -> BTreeMap<u32, Vec<String>> {
    let mut found = BTreeMap::<u32, Vec<String>>::new();
    for (row, value) in manager.walk(&lldp::REM_SYS_NAME.root()) {
        let name = value.octets().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
        found.entry(row[1]).or_default().push(name);
    }
    found
}

/// A fabric of factory-new managed switches, with an agent and a manager for each.
fn managed(plan: &Plan, name: &str) -> (Guard, Agents, Vec<Manager>) {
    let options = LabOptions { managed: Managed::Yes, start: Start::Factory, ..options(name, Backend::Ebpf) };
    let lab = Guard::up(plan, &options);
    let agents = Agents::start(&lab.0);
    let managers = (0..plan.devices.len()).map(|switch| Manager::of(&lab.0, switch)).collect();
    (lab, agents, managers)
}

#[test]
fn switches_see_what_they_would_see_when_plugs_move() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let plan = grid(2, Shape::Mesh);
    let (mut lab, agents, mut managers) = managed(&plan, "seen");
    // s0 has s1 and s2 beside it: ports 1 and 2, and a host at 3.
    let layout = lab.0.layout().clone();
    let at = |switch: usize, peer: &str| {
        let cable = layout.cables.iter().find(|cable| {
            let ends = [cable.a.label.as_str(), cable.b.label.as_str()];
            let joins = |name: &str| ends.iter().any(|end| end.starts_with(&format!("{name}:")));
            joins(&format!("s{switch}")) && joins(peer)
        });
        let cable = cable.expect("neighbours");
        let own = format!("s{switch}:");
        let end = if cable.a.label.starts_with(&own) { &cable.a } else { &cable.b };
        (end.label.clone(), end.ifindex - 15)
    };
    let ((to_one, port_one), (to_two, port_two)) = (at(0, "s1"), at(0, "s2"));
    let named = |switch: &mut Manager, port: u32| neighbours(switch).remove(&port).unwrap_or_default();
    wait_for("neighbours", || {
        named(&mut managers[0], port_one) == ["s1"] && named(&mut managers[0], port_two) == ["s2"]
    });
    let interface = |port: u32| IfIndex(15 + port);
    let before: Vec<Value> = [port_one, port_two]
        .iter()
        .flat_map(|port| {
            let [changed, octets] =
                [if_mib::LAST_CHANGE.row(&interface(*port)), if_mib::HC_IN_OCTETS.row(&interface(*port))];
            [managers[0].get(changed), managers[0].get(octets)]
        })
        .collect();
    let inserts = managers[0].get(lldp::STATS_REM_TABLES_INSERTS.instance());

    lab.0.plug(&to_one, &to_two).expect("two plugs");
    let since = Instant::now();
    // Each port has forgotten who was there and knows who is; nowhere are two at once.
    wait_for("other neighbours", || {
        let heard = [named(&mut managers[0], port_one), named(&mut managers[0], port_two)];
        assert!(heard.iter().all(|names| names.len() <= 1), "{heard:?}");
        assert!(heard[0] != ["s1"] && heard[1] != ["s2"], "{heard:?}");
        heard == [["s2"], ["s1"]]
    });
    println!("known {:.0?} after the plugs were in", since.elapsed());
    let ((_, far_one), (_, far_two)) = (at(1, "s0"), at(2, "s0"));
    let port_of = |manager: &mut Manager, local: u32| {
        let rows = manager.walk(&lldp::REM_PORT_ID.root());
        let of: Vec<_> = rows.into_iter().filter(|(row, _)| row[1] == local).map(|(_, value)| value).collect();
        of
    };
    let name_of = |label: &str| Value::Octets(label.strip_prefix("s0:").expect("of s0").as_bytes().to_vec());
    wait_for("the far ends", || {
        port_of(&mut managers[1], far_one) == [name_of(&to_two)]
            && port_of(&mut managers[2], far_two) == [name_of(&to_one)]
    });
    let after: Vec<Value> = [port_one, port_two]
        .iter()
        .flat_map(|port| {
            let [changed, octets] =
                [if_mib::LAST_CHANGE.row(&interface(*port)), if_mib::HC_IN_OCTETS.row(&interface(*port))];
            [managers[0].get(changed), managers[0].get(octets)]
        })
        .collect();
    for (before, after) in before.chunks(2).zip(after.chunks(2)) {
        assert!(after[0].count() > before[0].count(), "the link was down: {before:?}, {after:?}");
        assert!(after[1].count() >= before[1].count(), "counters go on: {before:?}, {after:?}");
    }
    assert!(
        managers[0].get(lldp::STATS_REM_TABLES_INSERTS.instance()).count() >= inserts.count().map(|count| count + 2)
    );
    // Spanning tree has begun again at these ports, and comes to a tree.
    wait_for("forwarding", || {
        managers[0].get(bridge::STP_PORT_STATE.row(&BridgePort(port_one))) == Value::Integer(5)
            || managers[0].get(bridge::STP_PORT_STATE.row(&BridgePort(port_two))) == Value::Integer(5)
    });
    wait_for("a fabric that carries", || check(&lab.0, Probe::Ping).expect("probes can be sent").faults.is_empty());

    // A host's plug, too: what was learned of it is forgotten with the link.
    let host_port = plan.devices[0].ports.len() as u32;
    let learned = |manager: &mut Manager| {
        let ports = manager.walk(&q_bridge::TP_FDB_PORT.root());
        ports.into_iter().filter(|(_, port)| port.int() == Some(host_port as i32)).count()
    };
    assert!(learned(&mut managers[0]) > 0);
    lab.0.plug(&home(&plan, "n1"), &home(&plan, "n2")).expect("two plugs");
    std::thread::sleep(Duration::from_millis(200));
    wait_for("the host's port", || {
        managers[0].get(if_mib::OPER_STATUS.row(&interface(host_port))) == Value::Integer(1)
    });
    drop(agents);
}

#[test]
fn nothing_that_is_written_mends_a_cable() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let plan = grid(2, Shape::Mesh);
    let (mut lab, agents, mut managers) = managed(&plan, "dead");
    let cable = lab.0.layout().cables[0].clone();
    let host = lab.0.layout().cables.last().cloned().expect("a host's");
    let number =
        |label: &str| label[1..].split(':').next().and_then(|digits| digits.parse::<usize>().ok()).expect("s0:…");
    let ends = [&cable.a, &cable.b, &host.a].map(|end| (number(&end.label), IfIndex(end.ifindex)));
    let mut status = |what: &str| {
        ends.map(|(switch, row)| {
            let manager = &mut managers[switch];
            let oid = if what == "oper" { if_mib::OPER_STATUS.row(&row) } else { if_mib::ADMIN_STATUS.row(&row) };
            manager.get(oid).int().expect("a number")
        })
    };
    wait_for("links", || status("oper") == [1, 1, 1]);
    lab.0.fail(&cable.label, FailMode::Down).expect("a cable");
    lab.0.fail(&host.label, FailMode::Down).expect("a cable");
    wait_for("dead links", || status("oper") == [2, 2, 2]);
    assert_eq!(status("admin"), [1, 1, 1], "a dead cable is no port that is shut");
    let mut writers: Vec<Manager> = (0..4).map(|switch| Manager::of(&lab.0, switch)).collect();
    let mut write = |end: usize, wanted: IfStatus| {
        let (switch, row) = ends[end];
        writers[switch].set(vec![(if_mib::ADMIN_STATUS.row(&row), Value::Integer(wanted.code()))]);
    };
    for wanted in [IfStatus::Up, IfStatus::Down, IfStatus::Up] {
        (0..ends.len()).for_each(|end| write(end, wanted));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!((status("admin"), status("oper")), ([wanted.code(); 3], [2; 3]), "{wanted:?}");
    }
    // Not even by hand, at the host.
    for word in ["down", "up"] {
        let args: Vec<String> = ["link", "set", "eth0", word].map(str::to_owned).into();
        assert!(lab.0.exec(&host.b.label, "ip", &args).expect("it starts").success());
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status("oper"), [2; 3]);
    // Nor by another plug at its end; and a port that is shut when the cable is mended stays so.
    lab.0.plug(&cable.a.label, &host.a.label).expect("two plugs");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status("oper"), [2; 3]);
    lab.0.plug(&cable.a.label, &host.a.label).expect("two plugs");
    write(0, IfStatus::Down);
    lab.0.heal(&cable.label).expect("a cable");
    lab.0.heal(&host.label).expect("a cable");
    wait_for("the host's link", || status("oper")[2] == 1);
    assert_eq!(status("oper"), [2, 2, 1]);
    write(0, IfStatus::Up);
    wait_for("links", || status("oper") == [1, 1, 1]);
    drop(agents);
}
