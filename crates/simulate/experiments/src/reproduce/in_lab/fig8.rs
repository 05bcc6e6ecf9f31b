//! \[Otsuka\] Fig. 8 in the lab: MPI programs that send all to all, by Debian's Open MPI.
//!
//! Debian has no NAS benchmarks. hpcc's FFT and transpose do to a network what FT does, a sort of integers what IS does.

use fabric::format::table::Table;

use super::{
    super::{
        chart::bars,
        network::plan_named,
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    hpcc, integer_sort,
    labs::Labs,
    mpi::Ranks,
};
use crate::{Error, error::MpiError};

/// Networks that are run: with sixteen processes on few processors each takes most of a minute.
const NETWORKS: [&str; 4] = ["Flat", "Torus (4 x 4)", "Myri-Clos", "M-Tree"];
/// What is measured; all are rates, so more is better.
const FIGURES: [&str; 3] = ["FFT", "transpose", "integer sort"];

/// Programs that have to be installed.
pub(super) const PROGRAMS: [&str; 3] = ["mpirun", "mpicc", "hpcc"];

/// MPI programs on four networks.
///
/// # Errors
/// [`Error::Lab`], [`Error::Mpi`], or a fault of this crate.
pub(super) fn reproduce(labs: &Labs<'_>) -> Result<Reproduction, Error> {
    let mut found: Vec<[f64; 3]> = Vec::new();
    for name in NETWORKS {
        let plan = plan_named(name)?;
        let rates = labs.with(&plan, |lab| {
            let ran = Ranks::with(lab, labs.events, |ranks| rates(ranks, name));
            ran.map_err(|source| Error::Mpi { network: name.to_owned(), source })
        })?;
        found.push(rates);
    }
    let mut table = Table::new(["[Otsuka] Fig. 8, lab", FIGURES[0], FIGURES[1], FIGURES[2]]);
    let relative: Vec<Vec<f64>> =
        found.iter().map(|own| own.iter().zip(&found[0]).map(|(own, flat)| own / flat).collect()).collect();
    let mut rows = Vec::new();
    for (at, name) in NETWORKS.iter().enumerate() {
        table.row(std::iter::once((*name).to_owned()).chain(relative[at].iter().map(|value| format!("{value:.3}"))));
        let values = FIGURES.iter().zip(&found[at]).map(|(name, value)| ((*name).to_owned(), (*value).into()));
        rows.push(serde_json::json!({ "name": name, "rates": values.collect::<serde_json::Map<_, _>>() }));
    }
    let tree = &relative[NETWORKS.len() - 1];
    let tagged = &relative[1..NETWORKS.len() - 1];
    let all = |figure: usize| tagged.iter().map(|own| format!("{:.2}", own[figure])).collect::<Vec<_>>().join(", ");
    let statements = vec![
        Statement::of_paper(
            format!(
                "FT loses most on M-Tree (here FFT {:.2} of Flat, transpose {:.2}; tagged {} and {})",
                tree[0],
                tree[1],
                all(0),
                all(1)
            ),
            tagged.iter().all(|own| own[0] > tree[0] && own[1] > tree[1]),
        ),
        Statement::of_paper(
            format!("IS loses most on M-Tree (here the sort {:.2} of Flat; tagged {})", tree[2], all(2)),
            tagged.iter().all(|own| own[2] > tree[2]),
        ),
    ];
    let notes = vec![
        format!(
            "Flat = 1; hpcc of order {} ({} transposed), {} rounds of the sort, 16 hosts of the lab, Open MPI over TCP, cables of {}",
            hpcc::ORDER,
            hpcc::TRANSPOSED,
            integer_sort::ROUNDS,
            fabric::format_rate(labs.settings.rate_bps)
        ),
        "NAS benchmarks are not in Debian: hpcc's FFT and transpose stand for FT, a sort of 65,536 keys a rank for IS. All 16"
            .to_owned(),
        "  processes share this machine's processors, so cables are slow to be what counts".to_owned(),
    ];
    let series = NETWORKS.iter().zip(&relative).skip(1).map(|(name, values)| ((*name).to_owned(), values.clone()));
    let chart = bars("[Otsuka] Fig. 8 in the lab: MPI programs", "Flat = 1", FIGURES, series);
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes,
        values: values([("fig8_lab", rows.into())]),
        chart,
        csv: None,
    })
}

/// The rates of one network, in the order of [`FIGURES`].
fn rates(ranks: &Ranks<'_>, network: &str) -> Result<[f64; 3], MpiError> {
    let of = |benchmark| move |source| MpiError::Benchmark { benchmark, source: Box::new(source) };
    let sorted = integer_sort::rate(ranks, network).map_err(of("integer sort"))?;
    let [fft, transpose] = hpcc::rates(ranks, network).map_err(of("hpcc"))?;
    Ok([fft, transpose, sorted])
}
