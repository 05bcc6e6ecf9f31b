//! `ri2n proxy`: a TCP port here that is a TCP port there.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;
use ri2n_run::{proxy, signals};

use super::run::{Options, serve_status};

/// Carry every connection to a port, of TCP or RI2N, to a target: by RI2N where the target speaks it, else by TCP.
///
/// For machines where programs shall not be touched. Two proxies make a tunnel; one is enough where the other end is a
/// program under `ri2n run`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ri2n proxy 10.1.0.2:3306 127.0.0.1:3306     on the server's machine\n         \
                        ri2n proxy 127.0.0.1:3306 10.1.0.2:3306     on the client's")]
pub(crate) struct Proxy {
    /// Where to listen: address and port.
    listen: String,
    /// Where to: address and port.
    target: String,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Proxy) -> Result<ExitCode> {
    let (listen, target) = (resolve(&args.listen)?, resolve(&args.target)?);
    signals::hold()?;
    let settings = args.options.settings()?;
    let _status = serve_status(&format!("ri2n proxy {listen} {target}"), &settings);
    proxy::serve(settings, listen, target).with_context(|| format!("listen at {listen}"))?;
    Ok(ExitCode::SUCCESS)
}

fn resolve(text: &str) -> Result<SocketAddr> {
    let mut addresses = text.to_socket_addrs().with_context(|| format!("`{text}` is no address and port"))?;
    addresses.next().with_context(|| format!("`{text}` has no address"))
}
