//! Sockets of the API.

use std::{fs, io, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Runtime,
};

use super::{
    callers::Peer,
    tls::{ServerCertificate, TlsListener},
};
use crate::config::Listen;

/// How long answers that are under way have when the daemon ends.
const LEAVING_MAX: Duration = Duration::from_millis(500);
/// Whoever is of the socket's group may use it.
const SOCKET_MODE: u32 = 0o660;

/// The API on its sockets; it ends when this is dropped.
pub struct Serving {
    runtime: Option<Runtime>,
    sockets: Vec<std::path::PathBuf>,
}

impl Serving {
    /// Opens all sockets and answers on them as `app` does, with this certificate where TLS is spoken.
    ///
    /// # Errors
    /// A message that names the socket.
    pub fn open(places: &[Listen], certificate: &Arc<ServerCertificate>, app: &Router) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| format!("no threads for the API: {error}"))?;
        let mut serving = Self { runtime: Some(runtime), sockets: Vec::new() };
        let runtime = serving.runtime.as_ref().expect("made just now");
        let _entered = runtime.enter();
        for place in places {
            let app = app.clone().into_make_service_with_connect_info::<Peer>();
            match place {
                Listen::Unix(path) => {
                    let listener = unix(path).map_err(|error| format!("{}: {error}", path.display()))?;
                    serving.sockets.push(path.clone());
                    runtime.spawn(async move { axum::serve(listener, app).await });
                }
                Listen::Tcp(address) => {
                    let listener = tcp(*address)?;
                    runtime.spawn(async move { axum::serve(listener, app).await });
                }
                Listen::Tls(address) => {
                    let listener = TlsListener::new(tcp(*address)?, Arc::clone(certificate));
                    runtime.spawn(async move { axum::serve(listener, app).await });
                }
            }
        }
        Ok(serving)
    }
}

fn tcp(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .and_then(TcpListener::from_std);
    bound.map_err(|error| format!("{address}: {error}"))
}

/// A socket in place of one that a daemon left that is gone; one that somebody answers on stays.
fn unix(path: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another espalierd answers here"));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

impl Drop for Serving {
    fn drop(&mut self) {
        for socket in &self.sockets {
            // Nobody answers there any more, whether the file stays or goes.
            let _ = fs::remove_file(socket);
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LEAVING_MAX);
        }
    }
}
