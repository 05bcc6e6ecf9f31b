//! What every reproduction of a table or figure hands back, and how it is shown: as a table with notes, as JSON, as a plot.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use fabric::format::table::Table;
use plot::{Chart, Kind, Series};
use serde_json::Value;

use super::super::{Output, say};
use crate::{failure::FAILED, pictures::write_picture};

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
    /// It is not: a mistake of ours, of the paper, or something that is not simulated. Notes say which.
    Disagrees,
}

/// Something that is said of a figure, in words, and whether it is so here.
pub(super) struct Statement {
    source: Source,
    words: String,
    holds: bool,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The paper's text.
    Paper,
    /// This program, of its own two ways to the figure.
    Ours,
}

impl Statement {
    /// What a paper's text says.
    pub(super) fn of_paper(words: impl Into<String>, holds: bool) -> Self {
        Self { source: Source::Paper, words: words.into(), holds }
    }

    /// What no paper says, and should hold.
    pub(super) fn of_ours(words: impl Into<String>, holds: bool) -> Self {
        Self { source: Source::Ours, words: words.into(), holds }
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let source = match self.source {
            Source::Paper => "the paper's text",
            Source::Ours => "our own check",
        };
        format!("{} {source}: {}", if self.holds { "holds  " } else { "DIFFERS" }, self.words)
    }

    /// For machines.
    pub(super) fn json(&self) -> Value {
        let source = match self.source {
            Source::Paper => "paper",
            Source::Ours => "ours",
        };
        serde_json::json!({ source: self.words, "holds": self.holds })
    }
}

impl Reproduction {
    /// What is judged by what a paper's text says of it; `name` is that of its rows in JSON.
    pub(super) fn judged(
        name: &str,
        (table, chart): (Table, Chart),
        rows: Vec<Value>,
        statements: &[Statement],
        notes: Vec<String>,
    ) -> Self {
        let verdicts: Vec<Value> = statements.iter().map(Statement::json).collect();
        let holds = statements.iter().all(|statement| statement.holds);
        let gap = (!statements.is_empty()).then(String::new);
        let said = statements.iter().map(Statement::line).chain(gap);
        Self {
            table,
            json: serde_json::json!({ name: rows, "verdicts": verdicts, "notes": notes }),
            notes: said.chain(notes).collect(),
            chart,
            verdict: if holds { Verdict::Fine } else { Verdict::Disagrees },
        }
    }

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
            Output::Person => self.print()?,
        }
        Ok(self.verdict.exit_code())
    }

    /// The table and its notes, for people.
    ///
    /// # Errors
    /// If standard output has gone away.
    pub(super) fn print(&self) -> Result<()> {
        say!("{}\n", self.table);
        for note in &self.notes {
            say!("{note}");
        }
        Ok(())
    }
}

impl Verdict {
    /// What the program ends with.
    pub(super) fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Disagrees => ExitCode::from(FAILED),
        }
    }
}

/// Lines over numbers, one a series.
pub(super) fn lines(
    (title, x, y): (&str, &str, &str),
    series: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>,
) -> Chart {
    let series = series.into_iter().map(|(name, values)| Series { name, values }).collect();
    Chart { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), kind: Kind::Lines(series) }
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
