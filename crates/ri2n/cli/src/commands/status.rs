//! `ri2n status`: what all processes of this machine do with RI2N.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;

/// List the connections of every process: links, rates, and what is thought of each link.
#[derive(Args, Debug)]
#[command(after_help = "Example: ri2n status\n         ri2n status --prometheus > /var/lib/node_exporter/ri2n.prom")]
pub(crate) struct Status {
    /// Print one JSON array for machines.
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print metrics in the text format of Prometheus.
    #[arg(long)]
    prometheus: bool,
    /// The runtime directory; that of this user unless given.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Status) -> Result<ExitCode> {
    let directory = args.directory.clone().unwrap_or_else(ri2n_status::directory);
    let reports = ri2n_status::ask_all(&directory).with_context(|| format!("read {}", directory.display()))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else if args.prometheus {
        print!("{}", ri2n_status::prometheus(&reports));
    } else {
        print!("{}", ri2n_status::text(&reports));
    }
    Ok(ExitCode::SUCCESS)
}
