//! A TCP port here that is a TCP port there, with RI2N between: for machines where programs shall not be touched at all.
//!
//! A proxy takes connections of TCP and of RI2N at one port and carries each to one target, by RI2N where the target speaks
//! it, else by TCP. Two of them make a tunnel; one is enough where the other end is a program under `ri2n run`.
//!
//! ```text
//!  program ─TCP─▶ proxy 127.0.0.1:3306 → 10.1.0.2:3306 ══RI2N══▶ proxy 10.1.0.2:3306 → 127.0.0.1:3306 ─TCP─▶ server
//! ```

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::AsFd,
    sync::Arc,
    thread,
};

use ri2n_io::Fallback;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    broker::{Settings, forward::Forwarder},
    local_only, signals,
};

/// Serves until a signal ends it; [`signals::hold`] comes first.
///
/// # Errors
/// If the port of TCP cannot be had; where only that of RI2N cannot, a warning says so.
pub fn serve(settings: Settings, listen: SocketAddr, target: SocketAddr) -> io::Result<()> {
    let from = if settings.protocol.fallback() == Fallback::Never { Clients::OfThisMachine } else { Clients::All };
    let forwarder = Arc::new(Forwarder::new(settings, target));
    let tcp = listen_for_tcp(listen, from)?;
    if let Some(ri2n) = forwarder.listen(tcp.local_addr()?) {
        let forwarder = Arc::clone(&forwarder);
        thread::Builder::new().name("ri2n-accept".into()).spawn(move || forwarder.serve_streams(&ri2n))?;
    }
    thread::Builder::new().name("ri2n-tcp".into()).spawn(move || forwarder.serve_tcp(&tcp))?;
    signals::ends().wait()?;
    Ok(())
}

/// Whose connections of plain TCP are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clients {
    All,
    /// Those of other machines must come by RI2N.
    OfThisMachine,
}

fn listen_for_tcp(address: SocketAddr, clients: Clients) -> io::Result<TcpListener> {
    const BACKLOG: i32 = 1024;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    if clients == Clients::OfThisMachine {
        local_only::attach_to_socket(socket.as_fd())?;
    }
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
