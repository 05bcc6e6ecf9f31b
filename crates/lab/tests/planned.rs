//! What `balanced` plans for irregular cablings delivers on real kernels: every frame once, no floods, every byte, and
//! never faster than its busiest channel allows. `bench/lab` compares times.

mod common;

use common::{Guard, cabling, lab_name, skipped, wanted};
use fabric::{
    EngineName, HostId, Mac, Plan, Policy, Rails, Tagging, Topology,
    generate::{Kind, Options, generate},
};
use lab::{
    Backend, LabOptions,
    delivery::{Probe, check},
    measure::{Load, Pattern, Transport, measure, predict},
};

/// Of every cable: slow enough for two processors to carry forty at once.
const RATE_BPS: u64 = 25_000_000;

/// The cabling of `kind` without the cables numbered in `less`.
fn damaged(kind: &str, size: &str, less: &[usize]) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a known family");
    let whole = generate(&kind, &Options::default()).expect("a sane size");
    let links: Vec<(usize, usize)> = whole
        .link_ids()
        .filter(|link| !less.contains(&link.index()))
        .map(|link| {
            let cable = whole.link(link);
            (whole.port(cable.a).switch.index(), whole.port(cable.b).switch.index())
        })
        .collect();
    let hosts: Vec<usize> = whole.switch_ids().map(|switch| whole.hosts_of(switch).len()).collect();
    cabling(whole.switches().len(), &links, &hosts)
}

fn balanced(topology: &Topology) -> Plan {
    let policy = Policy { engine: EngineName::Balanced, ..Policy::default() };
    let plan = planner::plan(topology, &policy, None).expect("any connected cabling has a plan");
    let report = verify::check(&plan);
    assert!(report.findings().iter().all(|finding| finding.severity == fabric::Severity::Note), "{report}");
    plan
}

#[test]
fn searched_plans_deliver_what_they_promise() {
    let cablings = [
        ("torus", damaged("torus", "4x4", &[])),
        ("random", damaged("random-regular", "n=20,d=3,seed=1", &[])),
        ("fattree", damaged("fat-tree", "k=4", &[2, 9, 17])),
    ];
    for (word, topology) in cablings.into_iter().filter(|(word, _)| wanted(word)) {
        let plan = balanced(&topology);
        for &backend in Backend::ALL {
            if !skipped(backend) {
                delivers(word, &plan, backend);
            }
        }
    }
}

/// Frames for virtual machines arrive behind their host's port and nowhere else, whoever tags.
#[test]
fn further_addresses_are_delivered_and_nothing_floods() {
    let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a valid size");
    let options = Options { nics: Some(3), ..Options::default() };
    let mut builder = fabric::TopologyBuilder::of(&generate(&kind, &options).expect("three rails"));
    for (number, host) in [(1, 0), (2, 0), (3, 4), (4, 7)] {
        builder.add_mac(HostId::new(host), Mac::new([0x52, 0x54, 0, 0, 0, number])).expect("a fresh address");
    }
    let topology = builder.finish().expect("as before");
    for tagging in [Tagging::Switch, Tagging::SourceDestination, Tagging::Pair] {
        let policy = Policy { tagging, rails: Rails::Within, ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None).expect("any connected cabling has a plan");
        assert!(verify::check(&plan).is_deployable(), "{tagging}");
        for &backend in Backend::ALL {
            if skipped(backend) {
                continue;
            }
            let name = lab_name(&format!("macs_{}", tagging.word().replace('-', "_")));
            let lab = Guard::up(&plan, &LabOptions { backend: Some(backend), ..LabOptions::new(name) });
            for probe in [Probe::Ping, Probe::Addresses] {
                let delivery = check(&lab.0, probe).expect("probes can be sent");
                assert_eq!(delivery.faults, [], "{tagging}, {backend}: {probe}");
            }
        }
    }
}

fn delivers(word: &str, plan: &Plan, backend: Backend) {
    let options = LabOptions { backend: Some(backend), rate_bps: RATE_BPS, ..LabOptions::new(lab_name(word)) };
    let lab = Guard::up(plan, &options);
    for &probe in Probe::ALL {
        assert_eq!(check(&lab.0, probe).expect("probes can be sent").faults, [], "{word}: {probe}");
    }
    let load = Load::new(Pattern::AllToAll, 30_000);
    let names: Vec<&str> = lab.0.layout().hosts.iter().map(|host| host.name.as_str()).collect();
    let pairs = load.pattern.pairs(word, &names).expect("suits every count");
    let predicted = predict(plan, &pairs, load.bytes_per_pair, RATE_BPS, Transport::Tcp);
    let measured = measure(&lab.0, &load, &mut |_| {}).expect("it runs");
    assert!(measured.pairs.iter().all(|pair| pair.received_bytes == load.bytes_per_pair), "{word}");
    assert_eq!(measured.unknown_floods, 0, "{word}");
    let ratio = measured.completion.as_secs_f64() / predicted.completion.as_secs_f64();
    println!("{word}: on {backend}: ratio {ratio:.3}");
    assert!(ratio > 0.95, "{word}: cables are not shaped: {ratio:.3}");
}
