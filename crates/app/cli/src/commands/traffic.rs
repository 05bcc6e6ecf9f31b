//! `espalier traffic`: who sends what to whom, estimated from byte counters.

use std::process::ExitCode;

use anyhow::Result;
use fabric::{
    format::{counters::read_counters, table::amount, traffic::write_matrix},
    gravity,
};

use super::{Output, say};
use crate::{
    cli,
    failure::{BadInput, bad_input},
    files::{read_text, read_topology, write_file},
};

/// Misfit, as a share of all traffic, from which on a person should know.
const MISFIT_MAX: f64 = 1e-3;

pub(super) fn run(args: &cli::Traffic, output: Output) -> Result<ExitCode> {
    let paths: Vec<_> = std::iter::once(&args.counters).chain(&args.later).collect();
    if std::iter::once(&args.topology).chain(paths.iter().copied()).filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(bad_input("only one of the files can be standard input"));
    }
    let topology = read_topology(&args.topology, &args.own)?;
    let texts = paths.into_iter().map(|path| read_text(path)).collect::<Result<Vec<_>>>()?;
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let (totals, warnings) = read_counters(&files, &topology).map_err(BadInput::Diagnostics)?;
    eprint!("{warnings}");
    let floats = |counts: &[u64]| counts.iter().map(|count| *count as f64).collect::<Vec<f64>>();
    let (sent, received) = (floats(&totals.sent), floats(&totals.received));
    let estimate = gravity(&sent, &received).map_err(|error| bad_input(format!("{}: {error}", files[0].0)))?;
    write_file(&args.output, |out| write_matrix(&topology, &estimate.matrix, out))?;
    let (pairs, total) = (estimate.matrix.len(), estimate.matrix.total());
    let unheard = 1.0 - received.iter().sum::<f64>() / sent.iter().sum::<f64>();
    if output == Output::Json && args.output.as_os_str() != "-" {
        say!(
            "{}",
            serde_json::json!({
                "hosts": topology.hosts().len(), "pairs": pairs, "bytes": total, "received_less": unheard,
                "misfit": estimate.misfit, "warnings": warnings.to_json(),
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} hosts, {pairs} pairs, {} bytes in all", topology.hosts().len(), amount(total));
    if unheard.abs() > MISFIT_MAX {
        let way = if unheard > 0.0 { "less" } else { "more" };
        eprintln!(
            "hosts received {:.1} % {way} than they sent; what they received is scaled to fit",
            100.0 * unheard.abs()
        );
    }
    if estimate.misfit > MISFIT_MAX {
        let share = 100.0 * estimate.misfit;
        eprintln!("no matrix fits: one host exchanges more than all others together; sums are off by {share:.1} %");
    }
    Ok(ExitCode::SUCCESS)
}
