//! The command line.

use crate::commands::{bench, keys, proxy, run, shell, status};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// One reliable stream over several Ethernet links, for any program.
#[derive(Debug, Parser)]
#[command(name = "ri2n", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures throughput, failures and round trips, like iperf.
    Bench(bench::Bench),
    Run(run::Run),
    Proxy(proxy::Proxy),
    Status(status::Status),
    Broker(run::Broker),
    Keys(keys::Keys),
    Completions(shell::Completions),
    Man(shell::Man),
}

impl Cli {
    /// Runs what was asked for.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Bench(bench) => bench::run(&bench),
            Command::Run(args) => run::run(&args),
            Command::Broker(args) => run::broker(&args),
            Command::Proxy(args) => proxy::run(&args),
            Command::Status(args) => status::run(&args),
            Command::Keys(args) => keys::run(&args),
            Command::Completions(args) => shell::completions(&args, Self::command()),
            Command::Man(args) => shell::man(&args, Self::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_options_of_a_verb_have_the_same_name() {
        Cli::command().debug_assert();
    }
}
