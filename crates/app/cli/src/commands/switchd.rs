//! `espalier switchd`: a Linux bridge as a managed switch.

use std::process::ExitCode;

use anyhow::Result;
use switchd::{
    bridge::{Secrets, ServeEvent, serve},
    settings::{SwitchdTarget, parse_switchd},
};

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
    let ready = || eprintln!("{what} answers on {}", config.listen);
    match &config.target {
        SwitchdTarget::Bridge(bridge) => serve(&config, bridge, interrupt.flag(), &mut |event| match event {
            ServeEvent::Ready => ready(),
            ServeEvent::NotSaved(error, again) => {
                eprintln!("espalier: {error}; tried again every {} s", again.as_secs());
            }
            ServeEvent::StartsLost(file, why) => eprintln!("espalier: {file}: {why}; starts are counted by the clock"),
        })?,
        SwitchdTarget::Lab { lab, switch } => {
            let secrets = Secrets::read(&config)?;
            let access = |engine_id: &[u8]| secrets.access(engine_id);
            lab::managed::serve_one(lab, switch, config.listen, &access, interrupt.flag(), &mut || ready())?;
        }
    }
    eprintln!("{what} goes on as it is");
    Ok(ExitCode::SUCCESS)
}
