//! RI2N for programs on tokio.
//!
//! A [`Stream`] is a [`tokio::io::AsyncRead`] and [`tokio::io::AsyncWrite`]; a [`Listener`] is awaited for streams. Both wrap
//! those of `ri2n-io`: reads and writes run the protocol in the task that calls them and never wait; while a task waits,
//! one of the process's worker threads receives, and wakes it by a descriptor that tokio polls.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use ri2n_tokio::{Config, Stream};
//! use tokio::io::AsyncWriteExt;
//!
//! let mut stream = Stream::connect("10.0.0.2:7000".parse().unwrap(), &Config::default()).await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! stream.flush_wait(None).await
//! # }
//! ```

pub use ri2n_io::{Config, ConnectionStatus};

use std::{
    io,
    net::{Shutdown, SocketAddr},
    os::fd::OwnedFd,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
    task::spawn_blocking,
};

/// One end of a connection. Dropping it still delivers what was written, as long as the process lives: await
/// [`Self::flush_wait`] before leaving `main`.
#[derive(Debug)]
pub struct Stream {
    inner: ri2n_io::Stream,
    /// Readable while there is something to read,
    readable: AsyncFd<OwnedFd>,
    /// and while there is room to write.
    writable: AsyncFd<OwnedFd>,
}

impl Stream {
    /// Wraps a stream. Call it within a runtime.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new(inner: ri2n_io::Stream) -> io::Result<Self> {
        let readable = watch(inner.read_fd()?.try_clone_to_owned()?)?;
        let writable = watch(inner.write_fd()?.try_clone_to_owned()?)?;
        Ok(Self { inner, readable, writable })
    }

    /// Connects to a listener. If the future is dropped, the attempt ends by itself, at the configuration's time limit.
    ///
    /// # Errors
    /// `ConnectionRefused` if nobody listens there, `TimedOut` if nobody answers, `PermissionDenied` if the keys differ.
    pub async fn connect(server: SocketAddr, config: &Config) -> io::Result<Self> {
        let config = config.clone();
        Self::new(in_background(move || ri2n_io::Stream::connect(server, &config)).await?)
    }

    /// Waits until the peer's end acknowledged everything written, and the end of the stream after a shutdown.
    ///
    /// # Errors
    /// `TimedOut` if that takes longer than `timeout`; otherwise as of a write.
    pub async fn flush_wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let inner = self.inner.clone();
        in_background(move || inner.flush_wait(timeout)).await
    }

    /// Ends the connection at once; the peer sees `ConnectionReset`.
    pub fn reset(&self) {
        self.inner.reset();
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.inner.peer_addr()
    }

    /// This end's address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    /// How the connection and its links are.
    #[must_use]
    pub fn status(&self) -> ConnectionStatus {
        self.inner.status()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(poll_with(&self.readable, context, || self.inner.try_read(into.initialize_unfilled())))?;
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        poll_with(&self.writable, context, || self.inner.try_write(bytes))
    }

    /// What was written is on its way already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.inner.shutdown(Shutdown::Write))
    }
}

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    inner: ri2n_io::Listener,
    ready: AsyncFd<OwnedFd>,
}

impl Listener {
    /// Listens at a UDP address, as [`ri2n_io::Listener::bind`] does. Call it within a runtime.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(address: SocketAddr, config: &Config) -> io::Result<Self> {
        let inner = ri2n_io::Listener::bind(address, config)?;
        let ready = watch(inner.ready_fd().try_clone_to_owned()?)?;
        Ok(Self { inner, ready })
    }

    /// Waits for a connection. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let take = || self.inner.try_accept();
        let (stream, client) = std::future::poll_fn(|context| poll_with(&self.ready, context, take)).await?;
        Ok((Stream::new(stream)?, client))
    }

    /// Where this listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what is registered, which keeps it open and never gives it away.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(|error| error.into_parts().1)
}

/// Tries until it would not have to wait, and has the descriptor wake this task otherwise.
fn poll_with<T>(
    fd: &AsyncFd<OwnedFd>,
    context: &mut Context<'_>,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        let mut guard = ready!(fd.poll_read_ready(context))?;
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
            result => return Poll::Ready(result),
        }
    }
}

async fn in_background<T: Send + 'static>(run: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(run).await.map_err(io::Error::other)?
}
