//! \[Miura\] Fig. 6 in the lab: bisection bandwidth by TCP.

use fabric::{Plan, format::table::Table};
use lab::measure::{Load, Pace, Pattern};

use super::{
    super::{
        chart::{Labels, lines},
        network::{SIDE, plain, tagged_by_hosts, two_switches},
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    labs::{CLOSE, Labs},
};
use crate::Error;

/// Payload of each stream.
const BISECTION_BYTES: u64 = 3_000_000;

/// Bisection bandwidth by TCP over the number of cables.
///
/// # Errors
/// [`Error::Lab`], or a fault of this crate.
pub(super) fn reproduce(labs: &Labs<'_>) -> Result<Reproduction, Error> {
    let rate_bps = labs.settings.rate_bps;
    let share = |plan: &Plan| -> Result<f64, Error> {
        let load = Load { pace: Pace::Free, ..Load::new(Pattern::Bisection, BISECTION_BYTES) };
        let measured = labs.with(plan, |lab| labs.measure(lab, &load))?;
        let total: f64 = measured.pairs.iter().map(|pair| pair.goodput_bps()).sum();
        Ok(total / rate_bps as f64)
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
    let statements = vec![
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
            fabric::format_rate(rate_bps)
        ),
        "  tag by a tc program. Fitted: nothing. All modes of tagging, by iperf3: bench/bisection".to_owned(),
    ];
    let level = |rate: f64| points.iter().map(|(cables, _)| (*cables, rate)).collect::<Vec<_>>();
    let (flat_line, tree_line) = (level(flat), level(tree));
    let chart = lines(
        &Labels { title: "[Miura] Fig. 6 in the lab", x: "cables between the switches", y: "payload, cables' worth" },
        [("VBFT".to_owned(), points), ("Flat".to_owned(), flat_line), ("Tree".to_owned(), tree_line)],
    );
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes,
        values: values([("miura_fig6_lab", rows.into()), ("flat", flat.into()), ("tree", tree.into())]),
        chart,
        csv: None,
    })
}
