//! `espalier lab ping`: who receives what, over the hosts' own stacks.

use std::process::ExitCode;

use anyhow::Result;
use lab::{
    Lab,
    delivery::{Delivery, Misdelivery, Probe, check},
};

use super::{Output, say};
use crate::failure::FAILED;

/// Misdeliveries shown to a person for each kind of frame.
const FAULTS_SHOWN_MAX: usize = 10;

pub(super) fn run(lab: &Lab, output: Output) -> Result<ExitCode> {
    let mut deliveries = Vec::new();
    for &probe in Probe::ALL.iter().filter(|probe| probe.is_meant_for(lab.layout())) {
        let delivery = check(lab, probe)?;
        if output == Output::Person {
            print(&delivery)?;
        }
        deliveries.push(delivery);
    }
    if output == Output::Json {
        say!("{}", deliveries.iter().map(json).collect::<serde_json::Value>());
    }
    let right = deliveries.iter().all(|delivery| delivery.faults.is_empty());
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn print(delivery: &Delivery) -> Result<()> {
    let Delivery { probe, pairs, faults, elapsed } = delivery;
    let right = pairs - faults.len();
    say!("{:<16} {right} of {pairs} pairs as they should be ({:.1} s)", probe.word(), elapsed.as_secs_f64());
    for Misdelivery { source, destination, expected, copies } in faults.iter().take(FAULTS_SHOWN_MAX) {
        say!("  {source} to {destination}: {copies} copies instead of {expected}");
    }
    Ok(())
}

fn json(delivery: &Delivery) -> serde_json::Value {
    let faults: Vec<_> = (delivery.faults.iter())
        .map(|fault| {
            serde_json::json!({
                "source": fault.source, "destination": fault.destination,
                "expected": fault.expected, "copies": fault.copies,
            })
        })
        .collect();
    serde_json::json!({
        "probe": delivery.probe.word(), "pairs": delivery.pairs, "faults": faults,
        "elapsed_s": delivery.elapsed.as_secs_f64(),
    })
}
