//! Real traffic through real fabrics takes the time that the busiest channel says.

mod common;

use common::{Guard, Shape, clos, fat_tree, grid, grid_tree, lab_name, ring, setting, skipped, wanted};
use fabric::Plan;
use lab::{
    Backend, LabOptions,
    measure::{Load, Pattern, Transport, measure, predict},
};

/// Measured over predicted completion time, at most, up and down.
const TOLERANCE: f64 = 0.15;

/// Runs an all-to-all and says measured over predicted.
fn all_to_all(word: &str, plan: &Plan, backend: Backend, rate_bps: u64, bytes_per_pair: u64) -> f64 {
    let options = LabOptions { backend: Some(backend), rate_bps, ..LabOptions::new(lab_name(word)) };
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
    assert_eq!(measured.unknown_floods, 0, "{word}");
    assert!(measured.pairs.iter().all(|pair| pair.received_bytes == bytes_per_pair), "{word}");
    ratio
}

#[test]
fn all_to_all_takes_the_predicted_time() {
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
            assert!((1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio), "{word}: {ratio:.3}");
        }
    }
}
