//! `espalier completions` and `espalier man`: what packagers install beside the program.

use std::{fs, io, process::ExitCode};

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{self, Cli};

pub(super) fn completions(args: &cli::Completions) -> Result<ExitCode> {
    clap_complete::generate(args.shell, &mut Cli::command(), "espalier", &mut io::stdout().lock());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(args: &cli::Man) -> Result<ExitCode> {
    fs::create_dir_all(&args.directory).with_context(|| format!("create {}", args.directory.display()))?;
    clap_mangen::generate_to(Cli::command(), &args.directory)
        .with_context(|| format!("write manual pages to {}", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
