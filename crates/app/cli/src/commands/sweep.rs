//! `espalier sweep`: combinations of topologies, plans and traffic, each a row.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use experiments::sweep::{ChartRequest, Event, Request, Shard, Sweep, chart, fields, merge, run as make};
use indicatif::{ProgressBar, ProgressStyle};

use super::{
    Output,
    interrupt::{INTERRUPTED, Interrupt},
    processors::processors,
    say,
};
use crate::{
    cli::{self, OwnModels, SweepVerb},
    failure::FAILED,
    files::{read_text, read_topology, write_file},
    pictures::{check_name, write_picture},
};

pub(super) fn run(args: &cli::Sweep, output: Output) -> Result<ExitCode> {
    match &args.verb {
        None => {
            let description = args.description.as_ref().context("a description")?;
            let folder = args.output.as_ref().context("a folder")?;
            make_rows(description, folder, (args.shard, args.jobs), output)
        }
        Some(SweepVerb::Merge { folders, output: to, partial }) => merge_rows(folders, to, *partial, output),
        Some(SweepVerb::Plot { table, x, y, by, filters, output }) => {
            check_name(output)?;
            let (name, text) = read_text(table)?;
            let drawn = chart(&ChartRequest { name: &name, text: &text, x, y, by: by.as_deref(), filters })?;
            write_picture(output, &drawn.draw())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Makes the rows that are not there yet, with a progress bar on standard error.
fn make_rows(
    description: &Path,
    folder: &Path,
    (shard, jobs): (Shard, Option<NonZero<usize>>),
    output: Output,
) -> Result<ExitCode> {
    let (name, text) = read_text(description)?;
    // Files that a description names are relative to it.
    let beside = description.parent().unwrap_or(Path::new(""));
    let read = |file: &Path| {
        read_topology(&beside.join(file), &OwnModels { models: None }).map_err(|error| format!("{error:#}"))
    };
    let sweep = Sweep::parse(&name, &text, &read)?;
    let interrupt = Interrupt::watch()?;
    let threads = jobs.or(NonZero::new(processors())).unwrap_or(NonZero::<usize>::MIN);
    let style = ProgressStyle::with_template("{elapsed} [{bar:40}] {pos} of {len} rows, {eta} left");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let show = |event| match event {
        Event::Begun { rows } => bar.set_length(rows as u64),
        Event::Made => bar.inc(1),
    };
    let ran = make(&Request { sweep: &sweep, shard, folder, threads }, &|| !interrupt.is_pressed(), &show);
    bar.finish_and_clear();
    let (ran, total) = (ran?, sweep.rows());
    let (made, kept) = (ran.made, ran.kept);
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({ "rows": total, "in_shard": ran.in_shard, "made": made, "kept": kept,
                "interrupted": interrupt.is_pressed() })
        ),
        Output::Person if shard.of == 1 => say!("{total} rows: {made} made, {kept} there before"),
        Output::Person => {
            say!("{} of {total} rows in this shard: {made} made, {kept} there before", ran.in_shard);
        }
    }
    if ran.missing() > 0 {
        eprintln!("espalier: stopped by Ctrl-C, {} rows to go: the same command goes on", ran.missing());
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the rows of all shards as one table.
fn merge_rows(folders: &[PathBuf], to: &Path, partial: bool, output: Output) -> Result<ExitCode> {
    let merged = merge(folders)?;
    if let Some(first) = merged.missing.first() {
        let (missing, total) = (merged.missing.len(), merged.missing.len() + merged.rows.len());
        eprintln!("espalier: {missing} of {total} rows are missing, the first is {first}");
        if !partial {
            eprintln!("espalier: run the sweep again or name all shards' folders; --partial writes what there is");
            return Ok(ExitCode::from(FAILED));
        }
    }
    match output {
        Output::Person => write_file(to, |out| {
            writeln!(out, "{}", merged.header)?;
            merged.rows.iter().try_for_each(|row| writeln!(out, "{row}"))
        })?,
        Output::Json => {
            let names = fields(&merged.header);
            let object = |row: &String| -> serde_json::Value {
                names.iter().cloned().zip(fields(row).into_iter().map(json)).collect::<serde_json::Map<_, _>>().into()
            };
            let table: Vec<serde_json::Value> = merged.rows.iter().map(object).collect();
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
