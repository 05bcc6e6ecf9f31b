//! One file a verb.

pub(crate) mod bench;

use crate::cli::{Cli, Command};
use std::process::ExitCode;

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Bench(bench) => bench::run(&bench),
    }
}
