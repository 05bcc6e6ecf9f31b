//! TLS before the API: connections whose handshake is done are handed to the server, each handshake by itself.
//!
//! ```text
//!   accept ─┬─ handshake ─┐
//!           ├─ handshake ─┼─▶ ready ─▶ the server          one that fails or takes too long ends alone
//!           └─ plain HTTP ─▶ 400
//! ```

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::serve::Listener;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Most handshakes at a time; more connections wait.
const HANDSHAKES_MAX: usize = 256;
/// The first byte of a handshake. Source: RFC 8446, section 5.1, `ContentType`.
const HANDSHAKE: u8 = 22;
/// Most bytes that are read of what is no handshake.
const PLAIN_LEN_MAX: u64 = 1 << 16;

/// The certificate that is shown to clients, which may be replaced while connections are open; none until there is one.
#[derive(Debug, Default)]
pub struct ServerCertificate(RwLock<Option<Arc<ServerConfig>>>);

impl ServerCertificate {
    /// Connections that open from now on are shown this one.
    pub fn replace(&self, config: Option<Arc<ServerConfig>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn current(&self) -> Option<Arc<ServerConfig>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A socket whose connections speak TLS.
pub struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: io::Result<SocketAddr>,
}

impl TlsListener {
    /// Speaks TLS to those who connect to a socket. Called within a runtime.
    pub fn new(listener: TcpListener, certificate: Arc<ServerCertificate>) -> Self {
        let (sender, ready) = mpsc::channel(1);
        let address = listener.local_addr();
        tokio::spawn(accept(listener, certificate, sender));
        Self { ready, address }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // Whoever accepts ends with the runtime, and so does whoever waits for it.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.as_ref().copied().map_err(|error| error.kind().into())
    }
}

async fn accept(
    mut listener: TcpListener,
    certificate: Arc<ServerCertificate>,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(permit) = Arc::clone(&handshakes).acquire_owned().await else { return };
        let (stream, peer) = Listener::accept(&mut listener).await;
        let (config, ready) = (certificate.current(), ready.clone());
        tokio::spawn(async move {
            let done = timeout(HANDSHAKE_MAX, shake_hands(stream, config)).await;
            drop(permit);
            match done.unwrap_or_else(|late| Err(late.into())) {
                // The server is gone when the daemon ends.
                Ok(stream) => drop(ready.send((stream, peer)).await),
                Err(error) => tracing::debug!(%peer, "no TLS: {error}"),
            }
        });
    }
}

async fn shake_hands(mut stream: TcpStream, config: Option<Arc<ServerConfig>>) -> io::Result<TlsStream<TcpStream>> {
    let config = config.ok_or(io::ErrorKind::NotConnected)?;
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
        refuse_plain(&mut stream).await?;
        return Err(io::Error::other("the client does not speak TLS"));
    }
    TlsAcceptor::from(config).accept(stream).await
}

/// Tells a client that speaks plain HTTP what is wrong, and reads what it has sent, so that the answer arrives.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    let text = "this port speaks TLS; write https://\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PLAIN_LEN_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}
