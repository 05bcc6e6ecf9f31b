//! The rows of all shards as one table.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};

use super::{
    super::{Output, say},
    plot::fields,
};
use crate::{
    failure::{FAILED, bad_input},
    files::{read_text, write_file},
};

/// The folder of rows within a sweep's.
pub(super) const ROWS: &str = "rows";
/// The header, and then each row's digest and label in the order of the table.
pub(super) const MANIFEST: &str = "manifest.tsv";

pub(super) fn run(folders: &[PathBuf], to: &Path, partial: bool, output: Output) -> Result<ExitCode> {
    let mut manifests = Vec::new();
    for folder in folders {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(bad_input(format!("{}: no sweep was run into this folder", folder.display())));
        }
        manifests.push(read_text(&path)?.1);
    }
    if let Some(other) = manifests.iter().position(|manifest| *manifest != manifests[0]) {
        return Err(bad_input(format!(
            "{} and {} are of different sweeps: run both with the same description and version",
            folders[0].display(),
            folders[other].display()
        )));
    }
    let mut lines = manifests[0].lines();
    let header = lines.next().unwrap_or_default();
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for line in lines {
        let (digest, label) = line.split_once('\t').unwrap_or((line, ""));
        let mut files = folders.iter().map(|folder| folder.join(ROWS).join(format!("{digest}.csv")));
        match files.find(|file| file.exists()) {
            Some(file) => {
                let row = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
                let row = row.trim_end_matches('\n').to_owned();
                if fields(&row).len() != fields(header).len() {
                    let why = format!("{}: damaged; remove it and run the sweep again", file.display());
                    return Err(bad_input(why));
                }
                rows.push(row);
            }
            None => missing.push(label),
        }
    }
    if !missing.is_empty() {
        let total = missing.len() + rows.len();
        eprintln!("espalier: {} of {total} rows are missing, the first is {}", missing.len(), missing[0]);
        if !partial {
            eprintln!("espalier: run the sweep again or name all shards' folders; --partial writes what there is");
            return Ok(ExitCode::from(FAILED));
        }
    }
    match output {
        Output::Person => write_file(to, |out| {
            writeln!(out, "{header}")?;
            rows.iter().try_for_each(|row| writeln!(out, "{row}"))
        })?,
        Output::Json => {
            let names = fields(header);
            let object = |row: &String| -> serde_json::Value {
                names.iter().cloned().zip(fields(row).into_iter().map(json)).collect::<serde_json::Map<_, _>>().into()
            };
            let table: Vec<serde_json::Value> = rows.iter().map(object).collect();
            let text = serde_json::json!({ "rows": table }).to_string();
            if to == Path::new("-") { say!("{text}") } else { write_file(to, |out| writeln!(out, "{text}"))? }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A number where the field is one, nothing where it is empty.
fn json(field: String) -> serde_json::Value {
    match field.parse::<serde_json::Number>() {
        _ if field.is_empty() => serde_json::Value::Null,
        Ok(number) => number.into(),
        Err(_) => field.into(),
    }
}
