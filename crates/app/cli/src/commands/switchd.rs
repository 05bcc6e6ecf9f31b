//! `espalier switchd`: a Linux bridge as a managed switch.

use std::process::ExitCode;

use anyhow::Result;
use switchd::settings::{SwitchdTarget, parse_switchd};

use super::interrupt::Interrupt;
use crate::{cli, failure::bad_input, files::read_text};

pub(super) fn run(args: &cli::Switchd) -> Result<ExitCode> {
    let (shown, text) = read_text(&args.config)?;
    let config = parse_switchd(&text).map_err(|error| bad_input(format!("{shown}: {error}")))?;
    let what = match &config.target {
        SwitchdTarget::Bridge(bridge) => format!("bridge {bridge}"),
        SwitchdTarget::Lab { lab, switch } => format!("switch {switch} of lab {lab}"),
    };
    if args.check {
        let (users, communities) = (config.users.len(), config.communities.len());
        eprintln!("{shown}: {what} on {}, {users} users, {communities} communities", config.listen);
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = Interrupt::watch_in_order()?;
    lab::switchd::serve(&config, interrupt.flag(), &mut || eprintln!("{what} answers on {}", config.listen))?;
    eprintln!("{what} goes on as it is");
    Ok(ExitCode::SUCCESS)
}
