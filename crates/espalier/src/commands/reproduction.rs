//! What every reproduction of a table or figure hands back, and how it is shown: as a table with notes, as JSON, as a plot.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use serde_json::Value;

use super::{Output, say};
use crate::{
    failure::FAILED,
    plot::{Chart, Kind, Series, write_picture},
    table::Table,
};

/// A table or figure of a paper, recomputed.
pub(super) struct Reproduction {
    /// For people, beside the printed numbers.
    pub(super) table: Table,
    /// What was given, fitted, reconstructed, and where the paper errs.
    pub(super) notes: Vec<String>,
    /// The same for machines.
    pub(super) json: Value,
    /// The same as a picture.
    pub(super) chart: Chart,
    /// Whether the numbers are those that they should be.
    pub(super) verdict: Verdict,
}

/// Whether a reproduction is what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is, or there is nothing exact to compare with.
    Fine,
    /// It is not, which is a mistake of ours.
    Disagrees,
}

impl Reproduction {
    /// Prints the reproduction, and draws it where that is asked for.
    ///
    /// # Errors
    /// If the picture cannot be written.
    pub(super) fn show(&self, output: Output, plot: Option<&Path>) -> Result<ExitCode> {
        if let Some(path) = plot {
            write_picture(path, &self.chart.draw())?;
        }
        match output {
            Output::Json => say!("{}", self.json),
            Output::Person => {
                say!("{}\n", self.table);
                for note in &self.notes {
                    say!("{note}");
                }
            }
        }
        Ok(match self.verdict {
            Verdict::Fine => ExitCode::SUCCESS,
            Verdict::Disagrees => ExitCode::from(FAILED),
        })
    }
}

/// Bars, one group a row of the paper's table and one colour a series: `values[group]`.
pub(super) fn bars(
    title: &str,
    y: &str,
    groups: impl IntoIterator<Item = &'static str>,
    series: impl IntoIterator<Item = (String, Vec<f64>)>,
) -> Chart {
    let values = |values: Vec<f64>| values.into_iter().map(Some).collect();
    let series = series.into_iter().map(|(name, bars)| Series { name, values: values(bars) });
    let groups = groups.into_iter().map(str::to_owned).collect();
    Chart {
        title: title.to_owned(),
        x: String::new(),
        y: y.to_owned(),
        kind: Kind::Bars { groups, series: series.collect() },
    }
}
