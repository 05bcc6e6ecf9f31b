//! Connecting, for callers that wait, and for those that are called.

use crate::{
    config::Config,
    dial::{self, Goal},
    shared::Shared,
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
};

/// Connects to the first of the server's addresses that answers.
pub(crate) fn connect(servers: &[SocketAddr], config: &Config) -> io::Result<Arc<Shared>> {
    wait_for(servers, config, Goal::Connection)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// The same without waiting, for a stream that begins with `first_bytes`: `then` is called once, on a worker's thread or on this one.
pub(crate) fn connect_then(
    servers: &[SocketAddr],
    config: &Config,
    first_bytes: &[u8],
    then: impl FnOnce(io::Result<Arc<Shared>>) + Send + 'static,
) {
    let done = move |result: io::Result<Option<Arc<Shared>>>| {
        then(result.and_then(|shared| shared.ok_or_else(|| io::ErrorKind::TimedOut.into())));
    };
    dial::begin(servers, config, Goal::Connection, first_bytes, Box::new(done));
}

/// Whether a server answers at one of its addresses.
pub(crate) fn is_answered(servers: &[SocketAddr], config: &Config) -> io::Result<bool> {
    Ok(wait_for(servers, config, Goal::Answer).is_ok())
}

fn wait_for(servers: &[SocketAddr], config: &Config, goal: Goal) -> io::Result<Option<Arc<Shared>>> {
    let (send, receive) = mpsc::sync_channel(1);
    let done = Box::new(move |result| {
        // Nobody waits any more if the caller has panicked.
        let _ = send.send(result);
    });
    dial::begin(servers, config, goal, &[], done);
    receive.recv().unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
