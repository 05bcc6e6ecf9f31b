//! `espalier import`: what another tool says about the cabling, as a topology.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use fabric::{
    Topology,
    format::exchange::{Format, ImportOptions, Imported},
};

use super::{Output, cablings, say};
use crate::{
    cli,
    count::counted,
    failure::{FAILED, bad_input},
    files::{import_files, models, write_topology},
};

pub(super) fn run(args: &cli::Import, output: Output) -> Result<ExitCode> {
    let format = args.from.as_deref().map(str::parse::<Format>).transpose();
    let format = format.map_err(|error| bad_input(error.to_string()))?;
    let beside = args.files.first().map_or(Path::new("-"), PathBuf::as_path);
    let options = ImportOptions {
        hosts: args.hosts.clone(),
        ignored_ports: args.ignore_ports.clone(),
        switch_roles: args.switch_role.clone(),
        models: models(&args.own, beside)?,
    };
    let Imported { topology, warnings, .. } = import_files(&args.files, format, &options)?;
    eprint!("{warnings}");
    if let Some(expected) = &args.expect {
        // Which nodes are hosts is the same in both.
        let expected = import_files(std::slice::from_ref(expected), None, &options)?;
        eprint!("{}", expected.warnings);
        return compare(args, &expected.topology, &topology, output);
    }
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
        let counts = [(switches, "switch"), (links, "link"), (hosts, "host"), (warnings.warnings(), "warning")];
        eprintln!("{}", counts.map(|(count, one)| counted(count, one)).join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says how the cabling differs from the one that should be.
fn compare(args: &cli::Import, expected: &Topology, found: &Topology, output: Output) -> Result<ExitCode> {
    let differences = cablings::differences(expected, found)?;
    if args.output.as_os_str() != "-" {
        write_topology(found, &args.output)?;
    }
    match output {
        Output::Json => say!("{}", serde_json::json!({ "differences": differences })),
        Output::Person if differences.is_empty() => say!("the cabling is as expected"),
        Output::Person => {
            for difference in &differences {
                say!("{difference}");
            }
        }
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
