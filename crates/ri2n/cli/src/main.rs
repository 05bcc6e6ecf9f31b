//! The program `ri2n`: one file a verb in `commands/`.

#[macro_use]
mod tell;

mod cli;
mod commands;
mod connecting;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ri2n: {error:#}");
            ExitCode::FAILURE
        }
    }
}
