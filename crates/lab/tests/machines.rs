//! Machines as clusters have them: two ports in one subnet, a failover bond, virtual machines, an uplink.

mod common;

use std::process::Command;

use common::{Guard, lab_name, skipped};
use fabric::{Flood, FloodKind, FloodSet, Mac, Plan, Policy, Rails, SwitchSpec, Tagging, Topology, TopologyBuilder};
use lab::{
    Backend, Lab, LabOptions,
    delivery::{Probe, check},
    measure::{Load, Pattern, measure},
    netns,
};

const RATE_BPS: u64 = 1_000_000_000;

/// A ring of four switches with a chord: two hosts, one of them with virtual machines, a machine with a port on each of two rails
/// twice, a bond, an uplink, and another one on standby.
fn rack() -> Topology {
    rack_with_uplink("uplink")
}

/// The same, in which this one of `uplink` and `uplink2` is in use.
fn rack_with_uplink(in_use: &str) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> =
        (0..4).map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("fresh")).collect();
    let mut next = 0;
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        next += 1;
        builder.add_port(ids[switch], &format!("g{next}")).expect("any name is a port")
    };
    for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)] {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, RATE_BPS).expect("free ports");
    }
    let at = port(&mut builder, 0);
    builder.add_host("plain", Mac::local(1), at, RATE_BPS, None).expect("fresh");
    let at = port(&mut builder, 3);
    let vms = builder.add_host("vms", Mac::local(2), at, RATE_BPS, None).expect("fresh");
    for mac in [50, 51] {
        builder.add_mac(vms, Mac::local(mac)).expect("fresh");
    }
    for (machine, switches) in [("gpu1", [0, 1]), ("gpu2", [2, 3])] {
        for (rail, switch) in switches.into_iter().enumerate() {
            let at = port(&mut builder, switch);
            let mac = Mac::local(10 + switch as u32);
            let host = builder.add_host(&format!("{machine}/ib{rail}"), mac, at, RATE_BPS, None).expect("fresh");
            builder.join_machine(machine).expect("one after another");
            builder.set_rail(host, rail as u8);
        }
    }
    let at = port(&mut builder, 1);
    builder.add_host("login/0", Mac::local(20), at, RATE_BPS, None).expect("fresh");
    builder.join_machine("login").expect("the first");
    let at = port(&mut builder, 2);
    builder.add_standby("login/1", at, RATE_BPS).expect("a free port");
    for (name, switch) in [("uplink", 1), ("uplink2", 0)] {
        let at = port(&mut builder, switch);
        if name == in_use {
            builder.add_edge(name, at, RATE_BPS, None).expect("the only one");
        } else {
            builder.add_standby_edge(name, at, RATE_BPS).expect("a free port");
        }
    }
    builder.change_models(|model| model.blocks_floods = FloodSet::NONE.with(FloodKind::UnknownUnicast));
    builder.finish().expect("connected")
}

fn planned(tagging: Tagging) -> Plan {
    planned_for(&rack(), tagging)
}

fn planned_for(rack: &Topology, tagging: Tagging) -> Plan {
    let policy = Policy { tagging, flood: Flood::Edge, rails: Rails::Within, ..Policy::default() };
    let plan = planner::plan(rack, &policy, None).expect("any connected cabling has a plan");
    assert!(verify::check(&plan).is_deployable(), "{tagging}: {}", verify::check(&plan));
    plan
}

/// Frames for others that reached hosts, by host.
fn strays(lab: &Lab) -> Vec<(String, u64)> {
    let status = lab.status().expect("a status");
    let hosts = lab.layout().hosts.iter().zip(&status.strays);
    hosts.map(|(host, strays)| (host.name.clone(), strays.unwrap_or(0))).filter(|(_, strays)| *strays > 0).collect()
}

#[test]
fn every_kind_of_host_gets_its_frames_and_no_others() {
    for tagging in [Tagging::Switch, Tagging::Pair] {
        let plan = planned(tagging);
        for &backend in Backend::ALL {
            if skipped(backend) {
                continue;
            }
            let options =
                LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(&format!("rack_{tagging}"))) };
            let lab = Guard::up(&plan, &options);
            // Eight hosts exchange frames: all but the standby port, and not within a machine.
            for &probe in Probe::ALL {
                let delivery = check(&lab.0, probe).expect("probes can be sent");
                assert_eq!(delivery.faults, [], "{tagging}, {backend}: {probe}");
                assert_eq!(delivery.pairs, 8 * 7 - 4, "{tagging}, {backend}: {probe}");
            }
            // No switch knows the address behind the uplink: what is sent there is unknown unicast, and nobody else hears it.
            assert_eq!(strays(&lab.0), [], "{tagging}, {backend}");
            let load = Load::new(Pattern::AllToAll, 20_000);
            let measured = measure(&lab.0, &load, &mut |_| ()).expect("every byte arrives");
            assert_eq!(measured.pairs.len(), 8 * 7 - 4);
            assert!(measured.pairs.iter().all(|pair| pair.received_bytes == 20_000), "{tagging}, {backend}");
        }
    }
}

/// What a machine's port sends from its own address leaves by it, though both are in one subnet.
#[test]
fn ports_of_a_machine_are_used_by_their_addresses() {
    let plan = planned(Tagging::Switch);
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let lab = Guard::up(&plan, &LabOptions { backend: Some(backend), ..LabOptions::new(lab_name("ports")) });
        let layout = lab.0.layout();
        assert_eq!(layout.place("gpu1").expect("a machine"), layout.place("gpu1/ib1").expect("its port"));
        let host = |name: &str| layout.host(name).expect("of the plan");
        let sent = |device: &str| -> u64 {
            let path = format!("/sys/class/net/{device}/statistics/tx_bytes");
            // The folder shows the namespace that it was mounted in; `ip` mounts it anew.
            let arguments = ["netns", "exec", &host("gpu1/ib0").namespace, "cat", &path];
            let shown = Command::new("ip").args(arguments).output().expect("iproute2");
            String::from_utf8_lossy(&shown.stdout).trim().parse().expect("a number")
        };
        for (name, other) in [("gpu1/ib0", "gpu1/ib1"), ("gpu1/ib1", "gpu1/ib0")] {
            let (own, other) = (host(name), host(other));
            let before = [sent(&own.device), sent(&other.device)];
            netns::within(&own.namespace, || {
                let socket = std::net::UdpSocket::bind((own.address, 0))?;
                (0..100).try_for_each(|_| socket.send_to(&[0; 1000], (host("plain").address, 9)).map(drop))
            })
            .and_then(|result| result)
            .expect("datagrams can be sent");
            // What waits for the neighbour's address leaves a moment later.
            let since = std::time::Instant::now();
            while sent(&own.device) - before[0] <= 100_000 && since.elapsed() < std::time::Duration::from_secs(5) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let after = [sent(&own.device), sent(&other.device)];
            assert!(after[0] - before[0] > 100_000, "{name}: {before:?} {after:?}");
            assert!(after[1] - before[1] < 10_000, "{name}: {before:?} {after:?}");
        }
    }
}

/// What is behind an edge port on standby is cut off, also once its cable has a link; with the other uplink in use, it is the other one.
#[test]
fn what_is_behind_a_standby_edge_is_cut_off() {
    for (in_use, waiting) in [("uplink", "uplink2"), ("uplink2", "uplink")] {
        let plan = planned_for(&rack_with_uplink(in_use), Tagging::Switch);
        for &backend in Backend::ALL {
            if skipped(backend) {
                continue;
            }
            let options = LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(&format!("two_{in_use}"))) };
            let lab = Guard::up(&plan, &options);
            let layout = lab.0.layout();
            let site = |name: &str| layout.host(name).expect("of the plan");
            let run = |namespace: &str, words: &[&str]| {
                let arguments = [&["netns", "exec", namespace][..], words].concat();
                Command::new("ip").args(arguments).output().expect("iproute2")
            };
            let is_running = |name: &str| {
                let shown = run(&site(name).namespace, &["ip", "-o", "link", "show", &site(name).device]);
                String::from_utf8_lossy(&shown.stdout).contains("LOWER_UP")
            };
            let reaches = |from: &str, to: &str| {
                let to = site(to).address.to_string();
                run(&site(from).namespace, &["ping", "-c2", "-i0.2", "-W1", &to]).status.success()
            };
            assert_eq!([in_use, waiting].map(is_running), [true, false], "{backend}");
            assert_eq!([in_use, waiting].map(|uplink| reaches(uplink, "plain")), [true, false], "{backend}");
            let cable = layout.cable(waiting).expect("it is plugged in");
            let opened = run(&cable.a.namespace, &["ip", "link", "set", "dev", &cable.a.device, "up"]);
            assert!(opened.status.success(), "{backend}");
            let since = std::time::Instant::now();
            while !is_running(waiting) && since.elapsed() < std::time::Duration::from_secs(10) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            assert!(is_running(waiting), "{backend}");
            assert_eq!(
                [in_use, waiting].map(|uplink| reaches(uplink, "plain")),
                [true, false],
                "{backend}: with a link"
            );
            assert_eq!(strays(&lab.0), [], "{backend}");
        }
    }
}
