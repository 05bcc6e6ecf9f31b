//! The program `ri2n`: one file a verb in `commands/`.

#[macro_use]
mod tell;

mod cli;
mod commands;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ri2n: {error:#}");
            ExitCode::FAILURE
        }
    }
}
