//! `ri2n completions` and `ri2n man`: what packagers install beside the program.

use std::{fs, io, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Command};

/// Print a completion script for a shell.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Write manual pages into a directory.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// The directory; made if needed.
    directory: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut program: Command) -> Result<ExitCode> {
    clap_complete::generate(args.shell, &mut program, "ri2n", &mut io::stdout().lock());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &Man, program: Command) -> Result<ExitCode> {
    fs::create_dir_all(&args.directory).with_context(|| format!("create {}", args.directory.display()))?;
    clap_mangen::generate_to(program, &args.directory)
        .with_context(|| format!("write manual pages to {}", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
