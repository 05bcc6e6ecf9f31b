//! `espalier serve`: rendered files for switches that load them at boot.

use std::{net::SocketAddr, process::ExitCode, sync::Arc, thread};

use anyhow::{Context, Result};
use file_server::{Catalog, HttpServer, Served, TftpServer};
use linux_net::privileges;

use super::interrupt::Interrupt;
use crate::{cli, failure::bad_input};

pub(super) fn run(args: &cli::Serve) -> Result<ExitCode> {
    let catalog = Catalog::read(&args.folder).map_err(|error| bad_input(error.to_string()))?;
    let catalog = Arc::new(catalog);
    let open = |port: u16| (port != 0).then_some(SocketAddr::new(args.listen, port));
    let way_out = "ports below 1024 need root: run it as root, or name others with --tftp-port and --http-port";
    let tftp = open(args.tftp_port)
        .map(|at| TftpServer::open(at, Arc::clone(&catalog)).with_context(|| format!("TFTP on {at}; {way_out}")))
        .transpose()?;
    let http = open(args.http_port)
        .map(|at| HttpServer::open(at, Arc::clone(&catalog)).with_context(|| format!("HTTP on {at}; {way_out}")))
        .transpose()?;
    if tftp.is_none() && http.is_none() {
        return Err(bad_input("both protocols are left out; give one of them a port"));
    }
    // Everything that needs rights is open, and there is one thread still: none keeps what the others give up.
    let user = privileges::become_unprivileged()
        .and_then(|user| privileges::keep_nothing().map(|()| user))
        .context("give up rights")?;
    if let Some(user) = user {
        eprintln!("serving as {user}, with no capabilities");
    }
    let interrupt = Interrupt::watch_in_order()?;
    if let Some(server) = &tftp {
        eprintln!("tftp on {}", server.address()?);
    }
    if let Some(server) = &http {
        eprintln!("http on {}", server.address()?);
    }
    for name in catalog.names() {
        eprintln!("  {name}");
    }
    let tell = |served: Served| eprintln!("{served}");
    // One that fails ends the other.
    let ended = |result: std::io::Result<()>| {
        interrupt.press();
        result
    };
    thread::scope(|scope| {
        let (stop, tell, ended) = (interrupt.flag(), &tell, &ended);
        let tftp = scope.spawn(move || tftp.map(|server| ended(server.serve(stop, tell))));
        let http = http.map(|server| ended(server.serve(stop, tell)));
        let tftp = tftp.join().expect("serving does not panic");
        [tftp, http].into_iter().flatten().collect::<std::io::Result<Vec<()>>>()
    })
    .context("serve")?;
    Ok(ExitCode::SUCCESS)
}
