//! The papers' figures in the lab: real kernels and real programs on the same plans, beside what is simulated.
//!
//! Cables are slow, so that two processors carry a whole fabric; rates are told as shares of a cable, and as they would be
//! on one of 1 Gbit/s.

use std::{
    fs,
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use fabric::{DEFAULT_RATE_BPS, HostId, Plan, format::table::Table};
use lab::{
    Lab, LabOptions,
    measure::{Load, Measurement, Pace, Pattern, predict},
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
    iterator::Signals,
};
use sim::flow::{FlowLevel, Transfer};

use super::{
    super::{lab::build, measure::measure_with_progress},
    miura::SIDE,
    mpi,
    network::{FIG_7, plain, tagged_by_hosts, two_switches},
    reproduction::{Reproduction, Statement, bars, lines},
};
use crate::cli;

/// Exit code after a signal, as shells have it for an interrupt.
const INTERRUPTED: i32 = 130;
/// Payload of each pair: of all pairs at once, and of one pair a host.
const ALL_TO_ALL_BYTES: u64 = 100_000;
const PAIRS_BYTES: u64 = 1_500_000;
const BISECTION_BYTES: u64 = 3_000_000;
/// Of the 1,514 octets that the lab's cables count for a full frame so much is payload.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;
/// Lab and flow level agree within this.
const CLOSE: f64 = 0.15;

/// What the lab measured of one network and pattern: payload of a pair in bits a second, on its own slow cables.
struct Measured {
    mean_bps: f64,
    floods: u64,
}

/// Traffic patterns by TCP on the networks of \[Otsuka\] Fig. 7.
pub(super) fn fig_7(args: &cli::Reproduce) -> Result<Reproduction> {
    let labs = Labs::new(args)?;
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
        let lab = labs.up(&plan)?;
        let mut cells = vec![network.name.to_owned()];
        let mut json = serde_json::Map::new();
        for (pattern, all) in patterns.iter().zip(&mut all) {
            let measured = labs.measure(&lab, pattern)?;
            let expected = expected_bps(&plan, &lab, pattern, labs.rate_bps)?;
            // As it would be at 1 Gbit/s.
            let scale = DEFAULT_RATE_BPS as f64 / labs.rate_bps as f64 / 1e6;
            let (ours, expected) = (measured.mean_bps * scale, expected * scale);
            floods += measured.floods;
            if (ours / expected).ln().abs() > worst.ln().abs() {
                worst = ours / expected;
            }
            cells.extend([format!("{ours:.1}"), format!("{expected:.1}"), format!("{:.2}", ours / expected)]);
            json.insert(pattern.to_string(), serde_json::json!({ "lab_mbps": ours, "flow_mbps": expected }));
            all.push(ours);
        }
        lab.down()?;
        table.row(cells);
        rows.push(serde_json::json!({ "name": network.name, "patterns": json }));
    }
    let at = |name: &str| FIG_7.iter().position(|network| network.name == name).unwrap_or_default();
    let tree = at("M-Tree");
    let near = ["Mesh (4 x 4)", "Torus (4 x 4)", "Fat tree", "Myri-Clos"];
    let far = ["Mesh (4 x 2)", "Torus (4 x 2)"];
    let least = near.iter().map(|name| all[0][at(name)]).fold(f64::INFINITY, f64::min);
    let statements = [
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
            fabric::format_rate(labs.rate_bps)
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
    Ok(Reproduction::judged("fig7_lab", (table, chart), rows, &statements, notes))
}

/// Bisection bandwidth of \[Miura\] Fig. 6 by TCP.
pub(super) fn miura_fig_6(args: &cli::Reproduce) -> Result<Reproduction> {
    let labs = Labs::new(args)?;
    let share = |plan: &Plan| -> Result<f64> {
        let lab = labs.up(plan)?;
        let load = Load { pace: Pace::Free, ..Load::new(Pattern::Bisection, BISECTION_BYTES) };
        let measured = measure_with_progress(&lab, &load);
        lab.down()?;
        let total: f64 = measured?.pairs.iter().map(|pair| pair.goodput_bps()).sum();
        Ok(total / labs.rate_bps as f64)
    };
    let flat = share(&plain(&two_switches(0, SIDE)?)?)?;
    let tree = share(&plain(&two_switches(1, SIDE)?)?)?;
    let mut table = Table::new(["[Miura] Fig. 6, lab", "cables' worth", "share of Flat's", "ratio to n cables"]);
    let cells = |rate: f64, cables: usize| {
        [
            format!("{rate:.3}"),
            format!("{:.3}", rate / flat),
            format!("{:.3}", rate / (flat * cables as f64 / SIDE as f64)),
        ]
    };
    table.row([vec!["Flat".to_owned()], cells(flat, SIDE).to_vec()].concat());
    table.row([vec!["Tree".to_owned()], cells(tree, 1).to_vec()].concat());
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    for cables in 1..=SIDE {
        let rate = share(&tagged_by_hosts(&two_switches(cables, SIDE)?)?)?;
        table.row([vec![format!("VBFT, {cables} cables")], cells(rate, cables).to_vec()].concat());
        rows.push(serde_json::json!({ "cables": cables, "cables_worth": rate, "of_flat": rate / flat }));
        points.push((cables as f64, rate));
    }
    let wanted = |cables: f64| flat * cables / SIDE as f64;
    let close = |rate: f64, cables: f64| (rate / wanted(cables) - 1.0).abs() < CLOSE;
    let statements = [
        Statement::of_paper(format!("Tree stays at one cable (here {tree:.2})"), close(tree, 1.0)),
        Statement::of_paper(
            "VBFT grows steadily with its cables",
            points.iter().all(|(cables, rate)| close(*rate, *cables)),
        ),
        Statement::of_paper(
            format!("with enough cables VBFT has what Flat has (here {:.3})", points[SIDE - 1].1 / flat),
            close(points[SIDE - 1].1, SIDE as f64),
        ),
    ];
    let notes = vec![
        format!(
            "payload of four TCP streams, one from each host of one side, over the rate of a cable ({}); real kernels, hosts that",
            fabric::format_rate(labs.rate_bps)
        ),
        "  tag by a tc program. Fitted: nothing. All modes of tagging, by iperf3: bench/bisection".to_owned(),
    ];
    let level = |rate: f64| points.iter().map(|(cables, _)| (*cables, rate)).collect::<Vec<_>>();
    let (flat_line, tree_line) = (level(flat), level(tree));
    let chart = lines(
        ("[Miura] Fig. 6 in the lab", "cables between the switches", "payload, cables' worth"),
        [("VBFT".to_owned(), points), ("Flat".to_owned(), flat_line), ("Tree".to_owned(), tree_line)],
    );
    let mut found = Reproduction::judged("miura_fig6_lab", (table, chart), rows, &statements, notes);
    found.json["flat"] = flat.into();
    found.json["tree"] = tree.into();
    Ok(found)
}

/// Labs of one name after the other, gone whatever ends the program.
pub(super) struct Labs {
    name: String,
    pub(super) rate_bps: u64,
    is_interrupted: Arc<AtomicBool>,
}

impl Drop for Labs {
    /// What fails because a signal takes the lab away is no error of its own: the thread that cleans up ends the program.
    fn drop(&mut self) {
        while self.is_interrupted.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

impl Labs {
    /// Prepares for labs.
    ///
    /// # Errors
    /// If signals cannot be watched for.
    pub(super) fn new(args: &cli::Reproduce) -> Result<Self> {
        let name = format!("papers{}", std::process::id());
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("watch for signals")?;
        let is_interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&is_interrupted)).context("watch for signals")?;
        }
        let own = name.clone();
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                // First what still writes there is ended.
                let down = lab::down(&own);
                let folder = mpi::folder(&own);
                let left = fs::remove_dir_all(&folder).err().filter(|error| error.kind() != ErrorKind::NotFound);
                if let Some(error) = left {
                    eprintln!("espalier: interrupted; {} is left: {error}", folder.display());
                }
                match down {
                    Ok(()) => eprintln!("espalier: interrupted; nothing is left behind"),
                    Err(error) => {
                        eprintln!("espalier: interrupted; to clean up: espalier lab --name {own} down ({error})");
                    }
                }
                std::process::exit(INTERRUPTED);
            }
        });
        Ok(Self { name, rate_bps: args.rate, is_interrupted })
    }

    /// Builds a plan's fabric.
    ///
    /// # Errors
    /// If the judge refuses it, or the kernel does.
    pub(super) fn up(&self, plan: &Plan) -> Result<Lab> {
        build(plan, LabOptions { rate_bps: self.rate_bps, ..LabOptions::new(&self.name) })
    }

    fn measure(&self, lab: &Lab, pattern: &Pattern) -> Result<Measured> {
        let load = load(pattern);
        let measured = measure_with_progress(lab, &load);
        if measured.is_err() {
            lab::down(&self.name)?;
        }
        let measured = measured?;
        let mean_bps = match load.pace {
            Pace::Together => load.bytes_per_pair as f64 * 8.0 / measured.completion.as_secs_f64(),
            Pace::Free => mean_goodput_bps(&measured),
        };
        Ok(Measured { mean_bps, floods: measured.unknown_floods })
    }
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

/// The same as rates: in step by the busiest channel, free by max-min fairness until each pair's end.
fn expected_bps(plan: &Plan, lab: &Lab, pattern: &Pattern, rate_bps: u64) -> Result<f64> {
    let load = load(pattern);
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
    let shared = FlowLevel::new(plan).run(&transfers)?;
    let mean = shared.seconds.iter().map(|seconds| bits / seconds).sum::<f64>() / pairs.len() as f64;
    Ok(mean * rate_bps as f64 / DEFAULT_RATE_BPS as f64)
}
