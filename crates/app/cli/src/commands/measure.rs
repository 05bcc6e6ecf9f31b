//! `espalier lab measure`: real traffic beside the plan's prediction.

use anyhow::{Context, Result};
use fabric::{
    Plan,
    format::plan::{ReadMode, read_plan},
};
use lab::{
    Lab,
    measure::{Load, Measurement, Pace, Pattern, Prediction, Transport, iperf3, measure, predict},
};

use super::{Output, bars, say};
use crate::{cli, failure::bad_input};

pub(super) fn run(lab: &Lab, args: &cli::Measure, output: Output) -> Result<()> {
    let words: Vec<&str> = std::iter::once(&args.pattern).chain(&args.hosts).map(String::as_str).collect();
    let pattern: Pattern = words.join(" ").parse().map_err(|error: String| bad_input(error))?;
    if args.iperf3 {
        return by_iperf3(lab, &pattern, output);
    }
    let load = Load {
        pattern,
        bytes_per_pair: args.bytes,
        transport: if args.udp { Transport::Udp } else { Transport::Tcp },
        pace: if args.free { Pace::Free } else { Pace::Together },
    };
    let plan = plan_of(lab)?;
    let predicted = prediction(lab, &plan, &load)?;
    let measured = measure_with_progress(lab, &load)?;
    match output {
        Output::Json => say!("{}", json(&load, &predicted, &measured)),
        Output::Person => print(&load, &predicted, &measured)?,
    }
    Ok(())
}

/// The plan that a lab carries out.
fn plan_of(lab: &Lab) -> Result<Plan> {
    let text = lab.plan_text()?.context("the lab was built without keeping its plan")?;
    read_plan(text.as_bytes(), ReadMode::Strict).context("read the lab's plan")
}

/// What the plan lets one expect of a load in a lab.
pub(super) fn prediction(lab: &Lab, plan: &Plan, load: &Load) -> Result<Prediction> {
    let layout = lab.layout();
    let pairs = lab::measure::pairs(layout, &load.pattern)?;
    Ok(predict(plan, &pairs, load.bytes_per_pair, layout.rate_bps, load.transport))
}

/// Runs a load with a progress bar on standard error.
pub(super) fn measure_with_progress(lab: &Lab, load: &Load) -> Result<Measurement> {
    let bar = bars::measuring(&load.pattern);
    let measured = measure(lab, load, &mut |part| bars::show_measuring(&bar, part));
    bar.finish_and_clear();
    Ok(measured?)
}

fn print(load: &Load, predicted: &Prediction, measured: &Measurement) -> Result<()> {
    let (pairs, bytes) = (measured.pairs.len(), load.bytes_per_pair);
    let (expected_s, found_s) = (predicted.completion.as_secs_f64(), measured.completion.as_secs_f64());
    say!("{}: {pairs} pairs, {bytes} bytes each", load.pattern);
    say!("predicted  {expected_s:.2} s: {} pairs share {}", predicted.busiest_flows, predicted.busiest);
    say!("measured   {found_s:.2} s, {:.3} of the prediction", found_s / expected_s.max(f64::MIN_POSITIVE));
    say!("goodput    {:.1} Mbit/s in all", measured.total_goodput_bps() / 1e6);
    if let Some(slowest) = measured.slowest() {
        let goodput_mbps = slowest.goodput_bps() / 1e6;
        say!("slowest    {} to {}: {goodput_mbps:.2} Mbit/s", slowest.source, slowest.destination);
    }
    if measured.loss() > 0.0 {
        say!("loss       {:.2} %", 100.0 * measured.loss());
    }
    say!("floods     {} unknown-unicast frames", measured.unknown_floods);
    Ok(())
}

fn json(load: &Load, predicted: &Prediction, measured: &Measurement) -> serde_json::Value {
    let pairs: Vec<_> = (measured.pairs.iter())
        .map(|pair| {
            serde_json::json!({
                "source": pair.source, "destination": pair.destination, "received_bytes": pair.received_bytes,
                "elapsed_s": pair.elapsed.as_secs_f64(), "goodput_bps": pair.goodput_bps(),
            })
        })
        .collect();
    serde_json::json!({
        "pattern": load.pattern.to_string(), "bytes_per_pair": load.bytes_per_pair,
        "predicted_s": predicted.completion.as_secs_f64(), "busiest": predicted.busiest,
        "busiest_flows": predicted.busiest_flows, "measured_s": measured.completion.as_secs_f64(),
        "total_goodput_bps": measured.total_goodput_bps(), "loss": measured.loss(),
        "unknown_floods": measured.unknown_floods, "pairs": pairs,
    })
}

fn by_iperf3(lab: &Lab, pattern: &Pattern, output: Output) -> Result<()> {
    const SECONDS: u32 = 5;
    let Pattern::Pair(source, destination) = pattern else {
        return Err(bad_input("--iperf3 measures one pair: espalier lab measure pair h0 h5 --iperf3"));
    };
    let result = iperf3(lab, source, destination, SECONDS)?;
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({
                "source": source, "destination": destination, "goodput_bps": result.goodput_bps,
                "retransmits": result.retransmits,
            })
        ),
        Output::Person => say!(
            "iperf3 {source} to {destination}: {:.1} Mbit/s, {} segments sent again",
            result.goodput_bps / 1e6,
            result.retransmits
        ),
    }
    Ok(())
}
