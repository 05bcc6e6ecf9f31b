//! `ri2n keys`: which keys a configuration has, by their identifiers.

use crate::connecting::Connecting;
use anyhow::Result;
use clap::Args;
use std::process::ExitCode;

/// List the identifiers of the configured keys, as `ri2n status` shows them. The first is used for connections to others.
#[derive(Args, Debug)]
#[command(after_help = "Example: ri2n keys --config /etc/ri2n.toml")]
pub(crate) struct Keys {
    #[command(flatten)]
    connecting: Connecting,
}

pub(crate) fn run(args: &Keys) -> Result<ExitCode> {
    for (at, key) in args.connecting.config()?.keys.iter().enumerate() {
        println!("{}  {}", key.id(), if at == 0 { "used and accepted" } else { "accepted" });
    }
    Ok(ExitCode::SUCCESS)
}
