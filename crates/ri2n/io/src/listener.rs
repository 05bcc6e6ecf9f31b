//! Accepting connections: a worker answers handshakes, callers take what is ready.

use crate::{
    config::Config,
    descriptors::{Descriptors, SavedDescriptor},
    handover::unreadable,
    interfaces::local_addresses,
    links::{Reach, allowed},
    ports::Ports,
    shared::{Ends, Sending, Shared},
    status::Role,
    stream::Stream,
    sys::{self, EventFd, MESSAGES, Socket, TellLocal},
    worker::{self, Worker},
};
use ri2n::{
    Path,
    handshake::{Acceptance, Opening, Response, Server, Terms, identifier},
    wire::handshake::{ADDRESSES_MAX, Address},
};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::{
    collections::VecDeque,
    fmt, io,
    net::{IpAddr, SocketAddr},
    os::fd::BorrowedFd,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

/// A listener saved for a handover, without the connections that wait to be accepted.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedListener {
    socket: SavedDescriptor,
    server: ByteBuf,
}

/// Connections that wait to be accepted, at most.
const BACKLOG_MAX: usize = 1024;

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    acceptor: Arc<Acceptor>,
}

/// What is offered each new connection first; what it gives back waits to be accepted.
type Taker = Box<dyn Fn(Stream, SocketAddr) -> Option<Stream> + Send + Sync>;

/// What the listener and its worker share.
pub(crate) struct Acceptor {
    socket: Socket,
    /// Its number at the worker.
    id: u32,
    worker: Arc<Worker>,
    config: Config,
    taker: Option<Taker>,
    queue: Mutex<Queue>,
    changed: Condvar,
    ready: EventFd,
}

#[derive(Debug)]
struct Queue {
    server: Server,
    waiting: VecDeque<(Stream, SocketAddr)>,
    is_closed: bool,
}

impl Listener {
    /// Listens at a UDP address. An unspecified address (`0.0.0.0`, or `[::]` for IPv4 as well) takes handshakes on every
    /// interface; whichever it is, accepted connections use all links that the configuration allows.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(address: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::bind_any(address, config, None)
    }

    /// The same, for a caller who need not wait: `taker` is offered each new connection, on a worker's thread, before
    /// its client hears that it is accepted. It must not wait. What it gives back waits for [`Self::accept`].
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind_offering(
        address: SocketAddr,
        config: &Config,
        taker: impl Fn(Stream, SocketAddr) -> Option<Stream> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::bind_any(address, config, Some(Box::new(taker)))
    }

    fn bind_any(address: SocketAddr, config: &Config, taker: Option<Taker>) -> io::Result<Self> {
        config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let socket = Socket::bind(address, TellLocal::Yes)?;
        Self::serve(socket, Server::new(random()?, config.protection()), config, taker)
    }

    /// Resumes a saved listener; `taker` as for [`Self::bind_offering`].
    ///
    /// # Errors
    /// If it cannot be read, or its socket is not open.
    pub fn resume_offering(
        saved: SavedListener,
        config: &Config,
        taker: impl Fn(Stream, SocketAddr) -> Option<Stream> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let mut server: Server = rmp_serde::from_slice(&saved.server).map_err(unreadable)?;
        server.set_protection(config.protection());
        Self::serve(Socket::resumed(saved.socket.take()?)?, server, config, Some(Box::new(taker)))
    }

    fn serve(socket: Socket, server: Server, config: &Config, taker: Option<Taker>) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let worker = worker::any()?;
        let acceptor = Arc::new(Acceptor {
            socket,
            id: NUMBER.fetch_add(1, Ordering::Relaxed),
            worker: worker.clone(),
            config: config.clone(),
            taker,
            queue: Mutex::new(Queue { server, waiting: VecDeque::new(), is_closed: false }),
            changed: Condvar::new(),
            ready: EventFd::new()?,
        });
        let served = acceptor.clone();
        worker.add_listener(acceptor.id, acceptor.socket.fd(), Arc::new(move || served.serve()))?;
        Ok(Self { acceptor })
    }

    /// Stops answering handshakes, which wait in the socket until [`Self::go_on`].
    pub fn pause(&self) {
        self.acceptor.worker.pause_listener(self.acceptor.socket.fd());
    }

    /// Answers handshakes again.
    ///
    /// # Errors
    /// If its socket cannot be watched.
    pub fn go_on(&self) -> io::Result<()> {
        self.acceptor.worker.go_on_listening(self.acceptor.id, self.acceptor.socket.fd())
    }

    /// Saves the listener for a handover. Workers must be parked.
    ///
    /// # Errors
    /// If its socket is not open.
    pub fn save(&self, descriptors: &mut Descriptors) -> io::Result<SavedListener> {
        let server = rmp_serde::to_vec_named(&self.acceptor.lock().server).map_err(unreadable)?;
        let socket = descriptors.keep(self.acceptor.socket.fd())?;
        Ok(SavedListener { socket, server: ByteBuf::from(server) })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// If the listener was closed.
    pub fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let mut queue = self.acceptor.lock();
        loop {
            match self.acceptor.take(&mut queue) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    queue = self.acceptor.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                result => return result,
            }
        }
    }

    /// Takes a connection if one waits.
    ///
    /// # Errors
    /// `WouldBlock` if none does; otherwise as [`Self::accept`].
    pub fn try_accept(&self) -> io::Result<(Stream, SocketAddr)> {
        self.acceptor.take(&mut self.acceptor.lock())
    }

    /// Where this listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.acceptor.socket.local_addr())
    }

    /// A descriptor that is readable while a connection waits.
    #[must_use]
    pub fn ready_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.ready.fd()
    }

    /// Takes no more connections; [`Self::accept`] returns an error.
    pub fn close(&self) {
        self.acceptor.worker.remove_listener(self.acceptor.id, self.acceptor.socket.fd());
        let mut queue = self.acceptor.lock();
        queue.is_closed = true;
        queue.waiting.clear();
        self.acceptor.ready.set();
        self.acceptor.changed.notify_all();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("id", &self.id).field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Acceptor {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, queue: &mut Queue) -> io::Result<(Stream, SocketAddr)> {
        if queue.is_closed {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the listener is closed"));
        }
        let taken = queue.waiting.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        if queue.waiting.is_empty() {
            self.ready.clear();
        }
        Ok(taken)
    }

    /// Answers what arrived.
    fn serve(&self) {
        sys::with_inbox(|inbox| {
            let Ok(count) = self.socket.receive(inbox, MESSAGES) else {
                while self.socket.take_unreachable(inbox).is_some() {}
                return;
            };
            if count == 0 {
                return;
            }
            for message in inbox.messages() {
                let path = Path { local: message.local, interface: 0, entropy: 0, remote: message.from };
                for datagram in message.bytes.chunks(message.segment) {
                    let (answer, accepted) = self.answer(&path, datagram);
                    if let Some(answer) = answer {
                        // A lost answer is asked for again.
                        let _ = self.socket.send_to(&path, &answer);
                    }
                    if let Some(accepted) = accepted {
                        accepted.release();
                    }
                }
            }
        });
    }

    /// The answer to a datagram, and the connection that sends nothing before the answer has left.
    fn answer(&self, path: &Path, datagram: &[u8]) -> (Option<Vec<u8>>, Option<Arc<Shared>>) {
        let mut queue = self.lock();
        match queue.server.handle_datagram(sys::now(), path.remote, datagram) {
            Response::Ignore => (None, None),
            Response::Reply(answer) => (Some(answer), None),
            Response::Open(opening) if queue.waiting.len() >= BACKLOG_MAX => {
                (Some(queue.server.refuse_full(&opening)), None)
            }
            Response::Open(opening) => {
                let refusal = queue.server.refuse_full(&opening);
                // No port or descriptor is left: the client hears that there is no room.
                let Ok((shared, client, acceptance)) = self.open(&mut queue, path, *opening) else {
                    return (Some(refusal), None);
                };
                drop(queue);
                let stream = Stream::new(shared.clone());
                let waits = match &self.taker {
                    Some(taker) => taker(stream, client),
                    None => Some(stream),
                };
                let mut queue = self.lock();
                if let Some(stream) = waits {
                    queue.waiting.push_back((stream, client));
                    self.ready.set();
                    self.changed.notify_one();
                }
                // What the taker has written goes along.
                let answer = queue.server.answer(sys::now(), acceptance, &mut shared.lock().connection);
                (Some(answer), Some(shared))
            }
        }
    }

    fn open(
        &self,
        queue: &mut Queue,
        path: &Path,
        opening: Opening,
    ) -> io::Result<(Arc<Shared>, SocketAddr, Acceptance)> {
        let client = opening.client();
        let worker = worker::any()?;
        let socket = worker.socket(&Ports::toward(client.ip(), self.config.ports.as_ref()))?;
        let port = socket.local_addr().port();
        let offered = offered(&self.config, client.ip(), path.local)?;
        let listening = self.socket.local_addr();
        let seed = worker.seed()?;
        let terms = Terms { seed, port, local: path.local, offered, settings: self.config.settings() };
        let (connection, acceptance) = queue.server.begin(sys::now(), opening, terms);
        debug_assert_eq!(connection.local_id(), identifier(&seed));
        let local = SocketAddr::new(path.local.unwrap_or(listening.ip()), listening.port());
        let reach = Reach::of_server(self.config.links.clone(), client.ip());
        let ends = Ends { local, peer: client, others: Vec::new(), reach };
        Ok((Shared::new(worker, &socket, Role::Server, ends, connection, Sending::Held), client, acceptance))
    }
}

/// 32 bytes that nobody can guess.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Our addresses that the other end may use, the one that it used first; loopback only among ourselves.
fn offered(config: &Config, peer: IpAddr, used: Option<IpAddr>) -> io::Result<Vec<(Address, u32)>> {
    let mut found = allowed(&config.links, peer, &local_addresses()?);
    found.sort_by_key(|local| Some(local.address.ip) != used);
    Ok(found.into_iter().take(ADDRESSES_MAX).map(|local| (local.address, local.interface)).collect())
}
