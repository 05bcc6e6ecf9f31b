//! Real traffic through real fabrics: every byte arrives, nothing floods, and nothing is faster than its busiest channel.
//! How much slower it is belongs to `bench/lab`, since it depends on the machine.

mod common;

use common::{Guard, Shape, clos, fat_tree, grid, grid_tree, lab_name, ring, setting, skipped, wanted};
use fabric::Plan;
use lab::{
    Backend, LabError, LabOptions, Offload,
    measure::{Load, Pace, Pattern, Transport, iperf3, measure, predict},
};

/// Measured over predicted completion time, at least: less means that cables are not shaped.
const RATIO_MIN: f64 = 0.95;

/// Runs an all-to-all and says measured over predicted.
fn all_to_all(word: &str, plan: &Plan, backend: Backend, rate_bps: u64, bytes_per_pair: u64) -> f64 {
    let offload = if setting("LAB_TRAINS", 0) == 1 { Offload::Trains } else { Offload::Off };
    let options = LabOptions { backend: Some(backend), rate_bps, offload, ..LabOptions::new(lab_name(word)) };
    let lab = Guard::up(plan, &options);
    let names: Vec<&str> = lab.0.layout().hosts.iter().map(|host| host.name.as_str()).collect();
    let pairs = Pattern::AllToAll.pairs(word, &names).expect("suits every count");
    let predicted = predict(plan, &pairs, bytes_per_pair, rate_bps, Transport::Tcp);
    let measured = measure(&lab.0, &Load::new(Pattern::AllToAll, bytes_per_pair), &mut |_| {}).expect("it runs");
    let ratio = measured.completion.as_secs_f64() / predicted.completion.as_secs_f64();
    println!(
        "{word:<10} predicted {:>7.3} s ({} flows, {})  measured {:>7.3} s  ratio {ratio:.3}  goodput {:>6.1} Mbit/s  floods {}",
        predicted.completion.as_secs_f64(),
        predicted.busiest_flows,
        predicted.busiest,
        measured.completion.as_secs_f64(),
        measured.total_goodput_bps() / 1e6,
        measured.unknown_floods,
    );
    let status = lab.0.status().expect("a status");
    let lost: u64 = status.switches.iter().flat_map(|switch| &switch.ports).map(|port| port.queue_drops).sum();
    assert_eq!(lost, 0, "{word}: no queue overflows");
    let loads = status.switches.iter().flat_map(|switch| &switch.ports).filter_map(|port| port.load(status.up));
    assert!(loads.fold(0.0, f64::max) > 0.1, "{word}: the load shows");
    assert_eq!(measured.unknown_floods, 0, "{word}");
    assert!(measured.pairs.iter().all(|pair| pair.received_bytes == bytes_per_pair), "{word}");
    ratio
}

#[test]
fn all_to_all_is_carried_and_shaped() {
    let (rate_bps, bytes_per_pair) = (setting("LAB_RATE_BPS", 25_000_000), setting("LAB_BYTES", 500_000));
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let plans = [
            ("ring", ring(4)),
            ("mesh", grid(4, Shape::Mesh)),
            ("torus", grid(4, Shape::Torus)),
            ("clos", clos(4, 4)),
            ("fattree", fat_tree()),
            ("tree", grid_tree(4, Shape::Torus)),
        ];
        for (word, plan) in plans.into_iter().filter(|(word, _)| wanted(word)) {
            let ratio = all_to_all(word, &plan, backend, rate_bps, bytes_per_pair);
            assert!(ratio > RATIO_MIN, "{word}: {ratio:.3}");
        }
    }
}

/// A host's device goes down in the middle: datagrams have no limit of their own to wait for, so the reason must end it.
#[test]
fn a_transfer_that_breaks_ends_with_its_reason() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let options =
        LabOptions { backend: Some(Backend::Ebpf), rate_bps: 1_000_000, ..LabOptions::new(lab_name("breaks")) };
    let lab = Guard::up(&ring(4), &options);
    let load =
        Load { transport: Transport::Udp, ..Load::new(Pattern::Pair("n1".to_owned(), "n3".to_owned()), 1_000_000_000) };
    // A plug that is pulled only loses datagrams; a device that its host takes down refuses them.
    let cut = || {
        let arguments = ["link", "set", "dev", "eth0", "down"].map(str::to_owned);
        let done = lab.0.exec("n1", "ip", &arguments);
        assert!(done.is_ok_and(|status| status.success()));
    };
    let broken = measure(&lab.0, &load, &mut |_| cut()).expect_err("nothing arrives any more");
    assert!(broken.to_string().contains("move bytes"), "{broken}");
}

#[test]
fn every_pattern_and_transport_carries_its_bytes() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = LabOptions { backend: Some(backend), rate_bps: 20_000_000, ..LabOptions::new(lab_name("kinds")) };
        let plan = ring(4);
        let lab = Guard::up(&plan, &options);
        let pair = Pattern::Pair("n1".to_owned(), "n3".to_owned());
        for pattern in [Pattern::BitReversal, Pattern::Transpose, pair] {
            for pace in [Pace::Together, Pace::Free] {
                let load = Load { pace, ..Load::new(pattern.clone(), 100_000) };
                let mut shown = Vec::new();
                let measured = measure(&lab.0, &load, &mut |part| shown.push(part)).expect("it runs");
                assert!(measured.pairs.iter().all(|pair| pair.received_bytes == 100_000), "{pattern}");
                assert!(measured.slowest().is_some_and(|slowest| slowest.elapsed == measured.completion), "{pattern}");
                assert_eq!((measured.unknown_floods, shown.last()), (0, Some(&1.0)), "{pattern}");
            }
        }
        let load = Load { transport: Transport::Udp, ..Load::new(Pattern::AllToAll, 100_000) };
        let measured = measure(&lab.0, &load, &mut |_| {}).expect("it runs");
        assert!(measured.loss() < 0.01, "the queues hold what twelve pairs send: {}", measured.loss());

        lab.0.fail("n3", lab::FailMode::Silent).expect("a cable");
        let lost = measure(&lab.0, &load, &mut |_| {}).expect("datagrams are allowed to vanish");
        assert!((0.4..0.6).contains(&lost.loss()), "what n3 sends and receives is lost: {}", lost.loss());
    }
}

#[test]
fn iperf3_agrees_with_the_rate_of_the_cable() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = LabOptions { backend: Some(backend), rate_bps: 20_000_000, ..LabOptions::new(lab_name("iperf")) };
        let lab = Guard::up(&ring(4), &options);
        match iperf3(&lab.0, "n1", "n3", 2) {
            Err(LabError::Missing(reason)) => println!("skipped: {reason}"),
            result => {
                let goodput_bps = result.expect("it runs").goodput_bps;
                println!("{backend}: iperf3 {:.2} Mbit/s through cables of 20", goodput_bps / 1e6);
                assert!((16e6..20e6).contains(&goodput_bps), "{goodput_bps}");
            }
        }
    }
}

#[test]
fn a_transfer_that_stops_is_reported() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = LabOptions { backend: Some(backend), rate_bps: 10_000_000, ..LabOptions::new(lab_name("stall")) };
        let lab = Guard::up(&ring(4), &options);
        let load = Load::new(Pattern::Pair("n1".to_owned(), "n3".to_owned()), 50_000_000);
        let mut cut = false;
        let result = measure(&lab.0, &load, &mut |_| {
            if !std::mem::replace(&mut cut, true) {
                lab.0.fail("n3", lab::FailMode::Silent).expect("a cable");
            }
        });
        match result {
            Err(LabError::Stalled { pending: 1, total: 1, example, .. }) => assert_eq!(example, "n1 -> n3"),
            other => panic!("{other:?}"),
        }
    }
}
