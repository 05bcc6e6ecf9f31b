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
    sync::Arc,
    thread,
};

use crate::{
    broker::{Settings, forward::Forwarder},
    signals,
};

/// Serves until a signal ends it; [`signals::hold`] comes first.
///
/// # Errors
/// If the port of TCP cannot be had; where only that of RI2N cannot, a warning says so.
pub fn serve(settings: Settings, listen: SocketAddr, target: SocketAddr) -> io::Result<()> {
    let forwarder = Arc::new(Forwarder::new(settings, target));
    let tcp = TcpListener::bind(listen)?;
    if let Some(ri2n) = forwarder.listen(tcp.local_addr()?) {
        let forwarder = Arc::clone(&forwarder);
        thread::Builder::new().name("ri2n-accept".into()).spawn(move || forwarder.serve_streams(&ri2n))?;
    }
    thread::Builder::new().name("ri2n-tcp".into()).spawn(move || forwarder.serve_tcp(&tcp))?;
    signals::ends().wait()?;
    Ok(())
}
