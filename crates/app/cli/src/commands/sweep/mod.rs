//! `espalier sweep`: combinations of topologies, plans and traffic, each a row.
//!
//! ```text
//!   description ─▶ points ─┬─ shard 1 ─▶ DIR/rows/<digest>.csv ─┐
//!                          └─ shard 2 ─▶ DIR/rows/<digest>.csv ─┴─ merge ─▶ table ─▶ plot
//! ```
//!
//! A row is a function of its point alone, and its file is named by a digest of the point. So it does not matter who
//! makes it, when, or how often it was tried; a file that is there is a row that is done.

mod description;
mod merge;
mod plot;
mod point;
mod rows;
mod run;

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::Output;
use crate::cli::{self, SweepVerb};

pub(super) fn run(args: &cli::Sweep, output: Output) -> Result<ExitCode> {
    match &args.verb {
        None => {
            let description = args.description.as_ref().context("a description")?;
            let folder = args.output.as_ref().context("a folder")?;
            run::run(description, folder, args.shard, args.jobs, output)
        }
        Some(SweepVerb::Merge { folders, output: to, partial }) => merge::run(folders, to, *partial, output),
        Some(SweepVerb::Plot { table, x, y, by, filters, output }) => {
            plot::run(table, &plot::Columns { x, y, by: by.as_deref() }, filters, output)
        }
    }
}
