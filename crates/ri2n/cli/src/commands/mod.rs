//! One file a verb.

pub(crate) mod bench;
pub(crate) mod keys;
pub(crate) mod proxy;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod status;

use crate::cli::{Cli, Command};
use std::process::ExitCode;

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Bench(bench) => bench::run(&bench),
        Command::Run(args) => run::run(&args),
        Command::Broker(args) => run::broker(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}
