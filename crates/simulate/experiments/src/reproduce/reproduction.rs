//! What every reproduction of a table or figure hands back.

use fabric::format::table::Table;
use plot::Chart;
use serde_json::{Map, Value};

/// A table or figure of a paper, recomputed.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The recomputed numbers, rounded, beside the printed ones.
    pub table: Table,
    /// How the numbers compare with the paper.
    pub comparison: Comparison,
    /// What was given, fitted, reconstructed, and where the paper errs: lines of text.
    pub notes: Vec<String>,
    /// The recomputed numbers, not rounded, by the names that they have in JSON.
    pub values: Map<String, Value>,
    /// The numbers as a chart.
    pub chart: Chart,
    /// The numbers as CSV with a header, of Fig. 8 and ja-fig6 by the simulator.
    pub csv: Option<String>,
}

/// How a reproduction compares with the paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// With the printed numbers.
    Numbers {
        /// Whether all are equal that should be, errata of the paper left out.
        agree: bool,
    },
    /// With statements about the figure, in the order of the text.
    Statements(Vec<Statement>),
}

/// A statement about a figure, and whether it is true of the reproduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Whose statement it is.
    pub source: Source,
    /// The statement, with the numbers found.
    pub words: String,
    /// Whether it is true.
    pub holds: bool,
}

/// Whose statement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The paper's text.
    Paper,
    /// This crate: what its two ways to a figure should have in common.
    Ours,
}

impl Statement {
    /// A statement of the paper's text.
    pub(super) fn of_paper(words: impl Into<String>, holds: bool) -> Self {
        Self { source: Source::Paper, words: words.into(), holds }
    }

    /// A statement of no paper that should be true.
    pub(super) fn of_ours(words: impl Into<String>, holds: bool) -> Self {
        Self { source: Source::Ours, words: words.into(), holds }
    }
}

impl Reproduction {
    /// Whether the numbers agree, or every statement is true.
    pub fn agrees(&self) -> bool {
        match &self.comparison {
            Comparison::Numbers { agree } => *agree,
            Comparison::Statements(statements) => statements.iter().all(|statement| statement.holds),
        }
    }
}

/// Values by their names.
pub(super) fn values<const N: usize>(named: [(&str, Value); N]) -> Map<String, Value> {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
