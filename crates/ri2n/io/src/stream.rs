//! The stream as callers see it: blocking like [`std::net::TcpStream`], or polled.

use crate::{
    config::Config,
    connect,
    duty::Duty,
    shared::{Readiness, Shared},
    status::ConnectionStatus,
    sys::{self, EventFd},
};
use ri2n::{CloseReason, Patience, ReadError, StreamState, WriteError};
use std::{
    io,
    net::{IpAddr, Shutdown, SocketAddr},
    os::fd::BorrowedFd,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

/// One end of a connection. Clones are the same connection; when the last is dropped, what was written is still delivered.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    read_fd: OnceLock<Arc<EventFd>>,
    write_fd: OnceLock<Arc<EventFd>>,
}

impl Clone for Stream {
    fn clone(&self) -> Self {
        self.shared.handles.fetch_add(1, Ordering::Relaxed);
        Self { shared: self.shared.clone(), read_fd: self.read_fd.clone(), write_fd: self.write_fd.clone() }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.abandon();
        }
    }
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, read_fd: OnceLock::new(), write_fd: OnceLock::new() }
    }

    /// Connects to a listener.
    ///
    /// # Errors
    /// `ConnectionRefused` if nobody listens there, `TimedOut` if nobody answers, `PermissionDenied` if the keys differ.
    pub fn connect(server: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::connect_any(&[server], config)
    }

    /// Connects to one server by the first of its addresses that answers; each has a small head start before the next.
    ///
    /// # Errors
    /// As [`Self::connect`], of one of the addresses.
    pub fn connect_any(servers: &[SocketAddr], config: &Config) -> io::Result<Self> {
        connect::connect(servers, config).map(Self::new)
    }

    /// The same without waiting: `then` is called once with how it came out, on a worker's thread or, if nobody can be
    /// asked, on this one. It must not wait. The stream begins with `first_bytes`, which are written already then; up to
    /// [`FIRST_BYTES_MAX`](ri2n::wire::handshake::FIRST_BYTES_MAX) arrive with the question for the connection.
    pub fn connect_any_then(
        servers: &[SocketAddr],
        config: &Config,
        first_bytes: &[u8],
        then: impl FnOnce(io::Result<Self>) + Send + 'static,
    ) {
        connect::connect_then(servers, config, first_bytes, move |result| then(result.map(Self::new)));
    }

    /// Whether a server answers at one of its addresses within the configuration's time to connect; nothing is opened.
    ///
    /// # Errors
    /// If nobody can be asked.
    pub fn is_answered(servers: &[SocketAddr], config: &Config) -> io::Result<bool> {
        connect::is_answered(servers, config)
    }

    /// Waits until bytes arrive, and copies out what there are. Zero means that the peer finished.
    ///
    /// # Errors
    /// `WouldBlock` after the read timeout; `ConnectionReset`, `ConnectionAborted` (by this end) or `TimedOut` (the
    /// outage deadline) if the connection ended before its time.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let mut until = None;
        loop {
            let now = sys::now();
            match state.connection.read(now, into) {
                Ok(count) => {
                    self.shared.leave(state, now);
                    return Ok(count);
                }
                Err(ReadError::Closed(reason)) => return Err(closed(reason)),
                Err(ReadError::WouldBlock) => {}
            }
            let timeout = state.read_timeout;
            let until = *until.get_or_insert_with(|| timeout.map(|timeout| now + timeout));
            if until.is_some_and(|until| now >= until) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            state = self.shared.wait(state, until);
        }
    }

    /// Copies out what arrived.
    ///
    /// # Errors
    /// `WouldBlock` if nothing did; otherwise as [`Self::read`].
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let now = sys::now();
        let result = state.connection.read(now, into);
        self.shared.leave(state, now);
        result.map_err(|error| match error {
            ReadError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            ReadError::Closed(reason) => closed(reason),
        })
    }

    /// Waits until there is room, and copies in as much as there is.
    ///
    /// # Errors
    /// `WouldBlock` after the write timeout, `BrokenPipe` after a shutdown; otherwise as [`Self::read`].
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let mut until = None;
        loop {
            let now = sys::now();
            match state.connection.write(now, bytes) {
                Ok(count) => {
                    self.shared.leave(state, now);
                    return Ok(count);
                }
                Err(WriteError::WouldBlock) => {}
                Err(error) => return Err(write_error(error)),
            }
            let timeout = state.write_timeout;
            let until = *until.get_or_insert_with(|| timeout.map(|timeout| now + timeout));
            if until.is_some_and(|until| now >= until) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            state = self.shared.wait(state, until);
        }
    }

    /// Has the worker's thread call `then` once: when `least` bytes can be read, the peer has finished, the connection
    /// has ended, or `within` has passed; this thread calls it if that is so already. It must not wait; [`Self::try_read`] says what
    /// has happened. Only the last call counts.
    pub fn when_readable(&self, least: usize, within: Duration, then: impl FnOnce() + Send + 'static) {
        self.shared.when_readable(least, sys::now() + within, Box::new(then));
    }

    /// Copies in as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`Self::write`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let now = sys::now();
        let result = state.connection.write(now, bytes);
        self.shared.leave(state, now);
        result.map_err(write_error)
    }

    /// Finishes one direction or both. What was written before is delivered; what arrives after a read shutdown is dropped.
    ///
    /// # Errors
    /// None today.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut state = self.shared.lock();
        let now = sys::now();
        if how != Shutdown::Read {
            state.connection.shutdown_write();
        }
        if how != Shutdown::Write {
            state.connection.shutdown_read(now);
        }
        self.shared.leave(state, now);
        Ok(())
    }

    /// Ends the connection at once; the peer sees `ConnectionReset`.
    pub fn reset(&self) {
        let mut state = self.shared.lock();
        state.connection.abort();
        self.shared.leave(state, sys::now());
        self.shared.call_worker();
    }

    /// Waits until the peer's end acknowledged everything written, and the end of the stream after a shutdown.
    ///
    /// # Errors
    /// `TimedOut` if that takes longer than `timeout`; otherwise as [`Self::write`].
    pub fn flush_wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut state = self.shared.lock();
        let until = timeout.map(|timeout| sys::now() + timeout);
        loop {
            if state.connection.is_flushed() {
                return Ok(());
            }
            if let StreamState::Closed(reason) = state.connection.state() {
                return Err(closed(reason));
            }
            if until.is_some_and(|until| sys::now() >= until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            state = self.shared.wait(state, until);
        }
    }

    /// Leaves this stream to its worker thread, which runs `duty` whenever the stream or the duty's descriptor changes,
    /// until the duty is done. The descriptor is watched for edges (epoll(7), `EPOLLET`).
    ///
    /// # Errors
    /// If the descriptor cannot be watched; stream and duty are then dropped.
    pub fn give(self, duty: Box<dyn Duty>) -> io::Result<()> {
        self.shared.give(duty)
    }

    /// Bounds how long [`Self::read`] waits.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.shared.lock().read_timeout = timeout;
    }

    /// Bounds how long [`Self::write`] waits.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.shared.lock().write_timeout = timeout;
    }

    /// Changes how long all links may be silent.
    pub fn set_outage_deadline(&self, deadline: Duration) {
        let mut state = self.shared.lock();
        state.connection.set_outage_deadline(deadline);
        drop(state);
        self.shared.call_worker();
    }

    /// Changes what else ends the connection.
    pub fn set_patience(&self, patience: Patience) {
        let mut state = self.shared.lock();
        state.connection.set_patience(patience);
        drop(state);
        self.shared.call_worker();
    }

    /// Its identifier at this end, which no other stream of this process has.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shared.id()
    }

    /// The peer: a server as it was named to [`Self::connect`], a client by its first address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.peer
    }

    /// All addresses of the server that this client can reach, for further connections; none at a server.
    #[must_use]
    pub fn peer_addresses(&self) -> &[IpAddr] {
        &self.shared.peer_addresses
    }

    /// This end: the address first used, with the listener's port at a server.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// How the connection and its links are.
    #[must_use]
    pub fn status(&self) -> ConnectionStatus {
        self.shared.status_at(sys::now())
    }

    /// A descriptor that is readable while [`Self::try_read`] would not say `WouldBlock`.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn read_fd(&self) -> io::Result<BorrowedFd<'_>> {
        Self::ready_fd(&self.shared, &self.read_fd, Readiness::Read)
    }

    /// A descriptor that is *readable* while [`Self::try_write`] would not say `WouldBlock`.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn write_fd(&self) -> io::Result<BorrowedFd<'_>> {
        Self::ready_fd(&self.shared, &self.write_fd, Readiness::Write)
    }

    fn ready_fd<'a>(shared: &Shared, slot: &'a OnceLock<Arc<EventFd>>, which: Readiness) -> io::Result<BorrowedFd<'a>> {
        if slot.get().is_none() {
            let _ = slot.set(shared.ready_fd(which)?);
        }
        Ok(slot.get().expect("set above").fd())
    }
}

impl io::Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Stream::read(self, into)
    }
}

impl io::Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Stream::read(self, into)
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn closed(reason: CloseReason) -> io::Error {
    match reason {
        CloseReason::Reset => io::Error::new(io::ErrorKind::ConnectionReset, "the peer ended the connection"),
        CloseReason::Aborted => io::Error::new(io::ErrorKind::ConnectionAborted, "this end aborted the connection"),
        CloseReason::Outage => io::Error::new(io::ErrorKind::TimedOut, "all links were silent beyond the deadline"),
    }
}

fn write_error(error: WriteError) -> io::Error {
    match error {
        WriteError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        WriteError::Shut => io::Error::new(io::ErrorKind::BrokenPipe, "written after the end"),
        WriteError::Closed(reason) => closed(reason),
    }
}
