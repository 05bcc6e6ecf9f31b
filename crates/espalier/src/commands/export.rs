//! `espalier export`: the cabling in another tool's format, or a plan's forwarding tables.

use std::process::ExitCode;

use anyhow::Result;
use fabric::{
    Plan, Topology,
    format::{
        exchange::{Format, UnknownFormat, export},
        plan::ReadMode,
    },
};
use infiniband::{forwarding_tables, write_ibsim, write_opensm};

use crate::{
    cli,
    failure::bad_input,
    files::{read_plan_file, read_topology, write_file},
};

pub(super) fn run(args: &cli::Export) -> Result<ExitCode> {
    let is_plan = args.file.extension().is_some_and(|extension| extension == "json");
    match (args.to.as_str(), is_plan) {
        ("opensm", true) => export_opensm(&read_plan_file(&args.file, ReadMode::Strict)?, args)?,
        ("opensm", false) => {
            return Err(bad_input("forwarding tables come from a plan file, which ends in .json; plan first"));
        }
        (_, true) => export_topology(&read_plan_file(&args.file, ReadMode::Strict)?.topology, args)?,
        (_, false) => export_topology(&read_topology(&args.file)?, args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn export_topology(topology: &Topology, args: &cli::Export) -> Result<()> {
    if args.to == "ibsim" {
        return write_file(&args.output, |mut out| write_ibsim(topology, &mut out));
    }
    let format: Format =
        args.to.parse().map_err(|error: UnknownFormat| bad_input(format!("{error}; or opensm or ibsim")))?;
    let text = export(format, topology).ok_or_else(|| {
        let known: Vec<&str> =
            Format::ALL.iter().filter(|format| format.can_export()).map(|format| format.name()).collect();
        bad_input(format!("{} can only be read; formats to write: {}, opensm, ibsim", format.name(), known.join(", ")))
    })?;
    write_file(&args.output, |out| out.write_all(text.as_bytes()))
}

fn export_opensm(plan: &Plan, args: &cli::Export) -> Result<()> {
    let tables = forwarding_tables(plan).map_err(|error| bad_input(error.to_string()))?;
    if tables.missing() > 0 {
        eprintln!(
            "{} entries that only switches without hosts would need are left out: each would close a cycle on one lane",
            tables.missing()
        );
    }
    write_file(&args.output, |mut out| write_opensm(&plan.topology, &tables, &mut out))
}
