//! A reproduction in words, and as JSON.

use anyhow::Result;
use experiments::reproduce::{Comparison, Reproduction, Source, Statement};
use serde_json::Value;

use super::super::say;

/// Prints the table, the statements and the notes.
///
/// # Errors
/// If standard output has gone away.
pub(super) fn print(found: &Reproduction) -> Result<()> {
    say!("{}\n", found.table);
    let statements = statements(found).unwrap_or_default();
    for statement in statements {
        say!("{}", line(statement));
    }
    if !statements.is_empty() {
        say!();
    }
    for note in &found.notes {
        say!("{note}");
    }
    Ok(())
}

/// The values, statements and notes as one object.
pub(super) fn json(found: &Reproduction) -> Value {
    let mut object = found.values.clone();
    if let Some(statements) = statements(found) {
        object.insert("verdicts".to_owned(), statements.iter().map(statement_json).collect());
    }
    object.insert("notes".to_owned(), found.notes.clone().into());
    object.into()
}

fn statements(found: &Reproduction) -> Option<&[Statement]> {
    match &found.comparison {
        Comparison::Statements(statements) => Some(statements),
        Comparison::Numbers { .. } => None,
    }
}

fn line(statement: &Statement) -> String {
    let source = match statement.source {
        Source::Paper => "the paper's text",
        Source::Ours => "our own check",
    };
    format!("{} {source}: {}", if statement.holds { "holds  " } else { "DIFFERS" }, statement.words)
}

fn statement_json(statement: &Statement) -> Value {
    let source = match statement.source {
        Source::Paper => "paper",
        Source::Ours => "ours",
    };
    serde_json::json!({ source: statement.words, "holds": statement.holds })
}
