//! The command line of Espalier.
//!
//! Exit codes: 0 fine, 1 findings or failure, 2 usage or bad input. Results go to standard output, progress and
//! diagnostics to standard error.
#![forbid(unsafe_code)]

#[macro_use]
mod tell;

mod cli;
mod commands;
mod failure;
mod files;
mod pictures;
mod workload_args;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use controller::count;

fn main() -> ExitCode {
    let command = cli::accept_negative(cli::Cli::command());
    let matches = command.try_get_matches().unwrap_or_else(|error| cli::refuse_negative(error).exit());
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let json = cli.json;
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => failure::report(&error, json),
    }
}
