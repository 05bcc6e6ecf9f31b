//! `espalier export`: the cabling in another tool's format.

use std::process::ExitCode;

use anyhow::Result;
use fabric::format::{
    exchange::{Format, UnknownFormat, export},
    plan::ReadMode,
};

use crate::{
    cli,
    failure::bad_input,
    files::{read_plan_file, read_topology, write_file},
};

pub(super) fn run(args: &cli::Export) -> Result<ExitCode> {
    let format: Format = args.to.parse().map_err(|error: UnknownFormat| bad_input(error.to_string()))?;
    let is_plan = args.file.extension().is_some_and(|extension| extension == "json");
    let topology = match is_plan.then(|| read_plan_file(&args.file, ReadMode::Strict)) {
        Some(plan) => plan?.topology,
        None => read_topology(&args.file)?,
    };
    let text = export(format, &topology).ok_or_else(|| {
        let known: Vec<&str> =
            Format::ALL.iter().filter(|format| format.can_export()).map(|format| format.name()).collect();
        bad_input(format!("{} can only be read; formats to write: {}", format.name(), known.join(", ")))
    })?;
    write_file(&args.output, |out| out.write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}
