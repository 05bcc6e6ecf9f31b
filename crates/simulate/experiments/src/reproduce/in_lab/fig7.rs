//! \[Otsuka\] Fig. 7 in the lab: traffic patterns by TCP.

use fabric::{DEFAULT_RATE_BPS, HostId, Plan, format::table::Table};
use lab::{
    Lab,
    measure::{Load, Measurement, Pace, Pattern, predict},
};
use sim::flow::{FlowLevel, Transfer};

use super::{
    super::{
        chart::bars,
        network::FIG_7,
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    labs::{CLOSE, Labs},
};
use crate::{Error, error::SimulationError};

/// Payload of each pair: of all pairs at once, and of one pair a host.
const ALL_TO_ALL_BYTES: u64 = 100_000;
const PAIRS_BYTES: u64 = 1_500_000;
/// Of the 1,514 octets that the lab's cables count for a full frame so much is payload.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// What a pattern gives on one network: mean payload of a pair in bits a second, on the lab's slow cables.
struct Rates {
    measured_bps: f64,
    expected_bps: f64,
    /// Frames of unknown destination, which switches flooded.
    floods: u64,
}

/// Traffic patterns by TCP on the networks of \[Otsuka\] Fig. 7.
///
/// # Errors
/// [`Error::Lab`], or a fault of this crate.
pub(super) fn reproduce(labs: &Labs<'_>) -> Result<Reproduction, Error> {
    let rate_bps = labs.settings.rate_bps;
    let patterns = [Pattern::AllToAll, Pattern::BitReversal, Pattern::Transpose];
    let mut table = Table::new([
        "[Otsuka] Fig. 7, lab",
        "all-to-all",
        "flow level",
        "ratio",
        "bit-reversal",
        "flow level",
        "ratio",
        "transpose",
        "flow level",
        "ratio",
    ]);
    let (mut rows, mut all, mut floods) = (Vec::new(), vec![Vec::new(); patterns.len()], 0);
    let mut worst: f64 = 1.0;
    for network in &FIG_7 {
        let plan = network.plan()?;
        let of_network = labs.with(&plan, |lab| {
            patterns.iter().map(|pattern| rates(labs, &plan, lab, pattern)).collect::<Result<Vec<Rates>, Error>>()
        })?;
        let mut cells = vec![network.name.to_owned()];
        let mut json = serde_json::Map::new();
        for ((pattern, rates), all) in patterns.iter().zip(&of_network).zip(&mut all) {
            // As it would be at 1 Gbit/s.
            let scale = DEFAULT_RATE_BPS as f64 / rate_bps as f64 / 1e6;
            let (ours, expected) = (rates.measured_bps * scale, rates.expected_bps * scale);
            floods += rates.floods;
            if (ours / expected).ln().abs() > worst.ln().abs() {
                worst = ours / expected;
            }
            cells.extend([format!("{ours:.1}"), format!("{expected:.1}"), format!("{:.2}", ours / expected)]);
            json.insert(pattern.to_string(), serde_json::json!({ "lab_mbps": ours, "flow_mbps": expected }));
            all.push(ours);
        }
        table.row(cells);
        rows.push(serde_json::json!({ "name": network.name, "patterns": json }));
    }
    let at = |name: &str| FIG_7.iter().position(|network| network.name == name).unwrap_or_default();
    let tree = at("M-Tree");
    let near = ["Mesh (4 x 4)", "Torus (4 x 4)", "Fat tree", "Myri-Clos"];
    let far = ["Mesh (4 x 2)", "Torus (4 x 2)"];
    let least = near.iter().map(|name| all[0][at(name)]).fold(f64::INFINITY, f64::min);
    let statements = vec![
        Statement::of_paper(
            "M-Tree is the worst in every pattern",
            all.iter().all(|rates| rates.iter().all(|rate| *rate >= 0.97 * rates[tree])),
        ),
        Statement::of_paper(
            format!(
                "4 x 4 mesh and torus, fat tree and Myri-Clos come close to Flat in all-to-all (here {:.2} at least)",
                least / all[0][0]
            ),
            least > 0.75 * all[0][0] && far.iter().all(|name| all[0][at(name)] < least),
        ),
        Statement::of_ours(
            format!("lab and flow level are within 15 % of each other (here {worst:.2} at most)"),
            (worst - 1.0).abs() <= CLOSE,
        ),
    ];
    let notes = vec![
        format!(
            "payload of a pair in Mbit/s as on cables of 1 Gbit/s; real TCP on real kernels over cables of {}, {floods} frames flooded",
            fabric::format_rate(rate_bps)
        ),
        "all-to-all in step, each pair as fast as the slowest; the others free, each pair's own rate; flow level of the same".to_owned(),
        "the paper: UDP with PAUSE; the lab has no PAUSE, so TCP. Fitted: nothing".to_owned(),
    ];
    let series = patterns.iter().zip(all).map(|(pattern, rates)| (pattern.to_string(), rates));
    let chart = bars(
        "[Otsuka] Fig. 7 in the lab",
        "payload of a pair, Mbit/s as at 1 Gbit/s",
        FIG_7.iter().map(|network| network.name),
        series,
    );
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes,
        values: values([("fig7_lab", rows.into())]),
        chart,
        csv: None,
    })
}

/// Measures a pattern in a lab, and what the plan lets one expect of it.
fn rates(labs: &Labs<'_>, plan: &Plan, lab: &Lab, pattern: &Pattern) -> Result<Rates, Error> {
    let load = load(pattern);
    let measured = labs.measure(lab, &load)?;
    let measured_bps = match load.pace {
        Pace::Together => load.bytes_per_pair as f64 * 8.0 / measured.completion.as_secs_f64(),
        Pace::Free => mean_goodput_bps(&measured),
    };
    let expected_bps = expected_bps(plan, lab, &load, labs.settings.rate_bps)?;
    Ok(Rates { measured_bps, expected_bps, floods: measured.unknown_floods })
}

fn load(pattern: &Pattern) -> Load {
    match pattern {
        Pattern::AllToAll => Load::new(pattern.clone(), ALL_TO_ALL_BYTES),
        _ => Load { pace: Pace::Free, ..Load::new(pattern.clone(), PAIRS_BYTES) },
    }
}

fn mean_goodput_bps(measured: &Measurement) -> f64 {
    measured.pairs.iter().map(|pair| pair.goodput_bps()).sum::<f64>() / measured.pairs.len() as f64
}

/// What the flow level gives a pair on average: in step by the most loaded channel, free by max-min fairness until each
/// pair's end.
fn expected_bps(plan: &Plan, lab: &Lab, load: &Load, rate_bps: u64) -> Result<f64, Error> {
    let hosts: Vec<&str> = lab.layout().hosts.iter().map(|host| host.name.as_str()).collect();
    let pairs = load.pattern.pairs(&lab.layout().name, &hosts)?;
    let bits = load.bytes_per_pair as f64 * 8.0;
    if load.pace == Pace::Together {
        let predicted = predict(plan, &pairs, load.bytes_per_pair, rate_bps, load.transport);
        return Ok(bits / predicted.completion.as_secs_f64());
    }
    let transfer = |(from, to): &(usize, usize)| Transfer {
        source: HostId::new(*from),
        destination: HostId::new(*to),
        bits: bits / PAYLOAD_SHARE,
    };
    let transfers: Vec<Transfer> = pairs.iter().map(transfer).collect();
    let shared = FlowLevel::new(plan).run(&transfers).map_err(SimulationError::from)?;
    let mean = shared.seconds.iter().map(|seconds| bits / seconds).sum::<f64>() / pairs.len() as f64;
    Ok(mean * rate_bps as f64 / DEFAULT_RATE_BPS as f64)
}
