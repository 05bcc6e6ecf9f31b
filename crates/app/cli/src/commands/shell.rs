//! `espalier completions` and `espalier man`: what packagers install beside the program.

use std::{io, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::{
    cli::{self, Cli},
    files::Drafts,
};

pub(super) fn completions(args: &cli::Completions) -> Result<ExitCode> {
    clap_complete::generate(args.shell, &mut Cli::command(), "espalier", &mut io::stdout().lock());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(args: &cli::Man) -> Result<ExitCode> {
    let mut drafts = Drafts::new(args.directory.clone())?;
    let mut command = Cli::command().disable_help_subcommand(true);
    // As clap_mangen's own generate_to does: subcommands know by what they are called.
    command.build();
    write_pages(&command, &mut drafts)
        .and_then(|()| drafts.publish())
        .with_context(|| format!("write manual pages to {}", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn write_pages(command: &Command, drafts: &mut Drafts) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_pages(verb, drafts)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut file = drafts.create(&page.get_filename())?;
    page.render(&mut file)
}
