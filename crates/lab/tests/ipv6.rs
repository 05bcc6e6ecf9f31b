//! Hosts with IPv6 addresses alone: neighbour discovery finds them, by multicast, whether switches have static entries or learn.
//!
//! ```text
//!   who is fd00::9? ─▶ ff02::1:ff00:9 (33:33:ff:00:00:09)   floods the sender's tree: MLD snooping must be off
//!                  ◀── fd00::9 is at 02:…:09                unicast, by the answering host's VLAN
//! ```
//! Floods are the switches' own counts of frames for one host that left by more than one port.

mod common;

use std::{net::IpAddr, process::Command};

use common::{Guard, lab_name, skipped};
use fabric::{FdbMode, IPV6_PREFIX_BITS, Plan, Policy, Severity, Tagging, Topology, format::native::parse_native};
use lab::{
    Backend, LabOptions,
    delivery::{Probe, check},
};

/// A torus of nine switches with a host each, whose addresses are the topology's.
fn torus(policy: &Policy) -> Plan {
    let plan = planner::plan(&cabling(|_| 7), policy, None).expect("any connected cabling has a plan");
    let report = verify::check(&plan);
    assert!(report.findings().iter().all(|finding| finding.severity == Severity::Note), "{report}");
    plan
}

/// Its topology, each host's address in the network that `network` names.
fn cabling(network: impl Fn(usize) -> u16) -> Topology {
    let mut text = "switches: {}\nlinks:\n".to_owned();
    for (x, y) in (0..3).flat_map(|x| (0..3).map(move |y| (x, y))) {
        text.push_str(&format!(
            "  - s{x}{y}:east -- s{}{y}:west\n  - s{x}{y}:north -- s{x}{}:south\n",
            (x + 1) % 3,
            (y + 1) % 3
        ));
    }
    let switches: Vec<String> = (0..9).map(|number| format!("s{}{}: {{}}", number / 3, number % 3)).collect();
    text = text.replace("switches: {}", &format!("switches: {{{}}}", switches.join(", ")));
    text.push_str("hosts:\n");
    for number in 0..9 {
        let (x, y) = (number / 3, number % 3);
        let address = format!("fd00:0:0:{:x}::{}", network(number), number + 1);
        text.push_str(&format!(
            "  h{x}{y}: {{mac: \"02:00:00:00:00:0{number}\", port: \"s{x}{y}:host\", ip: \"{address}\"}}\n"
        ));
    }
    parse_native("torus.yaml", &text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn an_address_of_another_network_is_a_warning() {
    let plan = planner::plan(&cabling(|host| 7 + u16::from(host == 4)), &Policy::default(), None).expect("a plan");
    let report = verify::check(&plan);
    let warned: Vec<String> = (report.findings().iter())
        .filter(|finding| finding.severity == Severity::Warning)
        .map(|finding| format!("{} {}", finding.subject, finding.message))
        .collect();
    assert_eq!(warned, ["h11 has fd00:0:0:8::5, which is no station of fd00:0:0:7::/64"]);
}

#[test]
fn hosts_without_ipv4_reach_each_other() {
    let learned = Policy { tagging: Tagging::SourceDestination, fdb: FdbMode::Learned, ..Policy::default() };
    for (word, policy) in [("static", Policy::default()), ("learned", learned)] {
        let plan = torus(&policy);
        assert!(plan.trees.len() > 1, "{word}");
        for &backend in Backend::ALL {
            if skipped(backend) {
                continue;
            }
            let name = lab_name(&format!("six_{word}"));
            let lab = Guard::up(&plan, &LabOptions { backend: Some(backend), ..LabOptions::new(name) });
            let hosts = &lab.0.layout().hosts;
            for host in hosts {
                let shown = run(&host.namespace, &["ip", "-o", "-4", "address", "show", "scope", "global"]);
                assert_eq!(shown, "", "{word}, {backend}: {} has IPv4 addresses", host.name);
            }
            // As people do it, from the first host to the last; by the kernel's own echo and neighbour discovery.
            let target = hosts.last().expect("hosts").address;
            assert!(matches!(target, IpAddr::V6(_)) && hosts[0].prefix_bits == IPV6_PREFIX_BITS);
            run(&hosts[0].namespace, &["ping", "-c3", "-i0.05", "-W5", &target.to_string()]);
            let entries = run(&hosts[0].namespace, &["ip", "-6", "neigh", "show", &target.to_string()]);
            assert!(entries.contains(&hosts.last().expect("hosts").mac), "{word}, {backend}: {entries}");
            for probe in [Probe::Ping, Probe::PingLinkLocal, Probe::Multicast] {
                let delivery = check(&lab.0, probe).expect("probes can be sent");
                println!(
                    "{word}, {backend}: {probe}: {} of {} pairs",
                    delivery.pairs - delivery.faults.len(),
                    delivery.pairs
                );
                assert_eq!(delivery.faults, [], "{word}, {backend}: {probe}");
            }
            let floods = lab.0.status().expect("a status").unknown_floods();
            println!("{word}, {backend}: {floods} frames for one host flooded");
            assert!(policy.fdb == FdbMode::Learned || floods == 0, "{word}, {backend}: {floods}");
        }
    }
}

fn run(namespace: &str, words: &[&str]) -> String {
    let output = Command::new("ip").args(["netns", "exec", namespace]).args(words).output().expect("ip runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
