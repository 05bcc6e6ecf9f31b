//! The command line of Espalier.
//!
//! Exit codes: 0 fine, 1 findings or failure, 2 usage or bad input. Results go to standard output, progress and
//! diagnostics to standard error.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod files;
mod plot;
mod table;
mod workload_args;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let json = cli.json;
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => failure::report(&error, json),
    }
}
