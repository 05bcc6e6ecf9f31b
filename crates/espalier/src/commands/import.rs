//! `espalier import`: what another tool says about the cabling, as a topology.

use std::process::ExitCode;

use anyhow::Result;
use fabric::format::exchange::{Format, ImportOptions, Imported};

use super::{Output, say};
use crate::{
    cli,
    failure::bad_input,
    files::{import_files, write_topology},
};

pub(super) fn run(args: &cli::Import, output: Output) -> Result<ExitCode> {
    let format = args.from.as_deref().map(str::parse::<Format>).transpose();
    let format = format.map_err(|error| bad_input(error.to_string()))?;
    let options = ImportOptions { hosts: args.hosts.clone(), ignored_ports: args.ignore_ports.clone() };
    let Imported { topology, warnings, .. } = import_files(&args.files, format, &options)?;
    eprint!("{warnings}");
    write_topology(&topology, &args.output)?;
    let (switches, links, hosts) = (topology.switches().len(), topology.links().len(), topology.hosts().len());
    if output == Output::Json && args.output.as_os_str() != "-" {
        say!(
            "{}",
            serde_json::json!({
                "switches": switches, "links": links, "hosts": hosts, "warnings": warnings.to_json()
            })
        );
    } else {
        eprintln!("{switches} switches, {links} links, {hosts} hosts, {} warnings", warnings.warnings());
    }
    Ok(ExitCode::SUCCESS)
}
