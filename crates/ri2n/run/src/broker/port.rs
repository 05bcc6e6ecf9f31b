//! The address that a program's end of a stream has: no other connection of this machine to the same peer may have it.
//!
//! The program's own socket of TCP is bound to it, as connecting would, and kept open, so that the kernel gives the port to nobody
//! else. That takes a descriptor; beyond [`KEPT_MAX`] streams the socket is closed, and the broker alone remembers its ports: then a
//! connection of plain TCP may get a number that a stream has.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ri2n_io::Descriptors;
use socket2::{SockAddr, SockRef};

use super::{Broker, held::Held};
use crate::{
    networks::source_for,
    saved::{Kept, SavedKept, SavedPort},
};

/// Streams whose sockets stay open.
const KEPT_MAX: usize = 1024;
/// Ports of the kernel's that are tried before one is taken that a stream may have.
const TRIES_MAX: usize = 16;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// An address that is taken.
pub(super) struct Port {
    broker: Arc<Broker>,
    address: SocketAddr,
    socket: Option<OwnedFd>,
    is_counted: bool,
}

impl Port {
    /// Binds a program's socket as connecting would, if it has not bound it; returns the address in the family that it speaks.
    ///
    /// # Errors
    /// If no address or port can be had.
    pub(super) fn take(
        broker: &Arc<Broker>,
        socket: OwnedFd,
        bound: Option<SocketAddr>,
        target: SocketAddr,
        remote: &SocketAddr,
    ) -> io::Result<(SocketAddr, Self)> {
        let ip = match bound.map(|bound| bound.ip().to_canonical()) {
            Some(ip) if !ip.is_unspecified() => ip,
            _ => source_for(target)?,
        };
        let as_program_sees: IpAddr = match (ip, remote) {
            (IpAddr::V4(ip), SocketAddr::V6(_)) => ip.to_ipv6_mapped().into(),
            _ => ip,
        };
        let port = match bound.map_or(0, |bound| bound.port()) {
            0 => bind(broker, &socket, as_program_sees)?,
            port => port,
        };
        let address = SocketAddr::new(ip, port);
        broker.table().ports.insert(address);
        let broker = Arc::clone(broker);
        let taken = Self { broker, address, socket: Some(socket), is_counted: false };
        Ok((SocketAddr::new(as_program_sees, port), taken))
    }

    /// The program's socket once more.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?.try_clone()
    }

    /// The stream stands: the socket is only there to keep the port, if there are not many.
    pub(super) fn settle(mut self) -> Self {
        self.is_counted = KEPT.fetch_add(1, Ordering::Relaxed) < KEPT_MAX;
        if !self.is_counted {
            KEPT.fetch_sub(1, Ordering::Relaxed);
            self.socket = None;
        }
        self
    }
}

impl Port {
    fn save(&self, descriptors: &mut Descriptors) -> io::Result<SavedPort> {
        let socket = self.socket.as_ref().map(|socket| descriptors.keep(socket.as_fd())).transpose()?;
        Ok(SavedPort { address: self.address, socket })
    }

    /// Resumes a saved address.
    ///
    /// # Errors
    /// If the socket is not open.
    pub(super) fn resume(broker: &Arc<Broker>, saved: SavedPort) -> io::Result<Self> {
        let socket = saved.socket.map(|socket| socket.take()).transpose()?;
        let (broker, address, is_counted) = (Arc::clone(broker), saved.address, socket.is_some());
        if is_counted {
            KEPT.fetch_add(1, Ordering::Relaxed);
        }
        broker.table().ports.insert(address);
        Ok(Self { broker, address, socket, is_counted })
    }
}

/// What is kept for a connection's lifetime. Only connections that a program of this session made have an address.
impl Kept for (Held, Option<Port>) {
    fn save(&self, descriptors: &mut Descriptors) -> Option<SavedKept> {
        let port = self.1.as_ref().map(|port| port.save(descriptors)).transpose().ok()?;
        Some(SavedKept { port })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if self.is_counted {
            KEPT.fetch_sub(1, Ordering::Relaxed);
        }
        self.broker.table().ports.remove(&self.address);
    }
}

/// Binds a socket to a port that the kernel chooses, and that no stream has.
fn bind(broker: &Broker, socket: &OwnedFd, ip: IpAddr) -> io::Result<u16> {
    let any = SockAddr::from(SocketAddr::new(ip, 0));
    let port_of = |socket: SockRef<'_>| {
        let bound = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        io::Result::Ok(bound.port())
    };
    for _ in 0..TRIES_MAX {
        if KEPT.load(Ordering::Relaxed) < KEPT_MAX {
            break;
        }
        // A socket is bound once only: another asks the kernel for a port.
        let other =
            socket2::Socket::new(socket2::Domain::for_address(SocketAddr::new(ip, 0)), socket2::Type::STREAM, None)?;
        other.bind(&any)?;
        let port = port_of(SockRef::from(&other))?;
        drop(other);
        let is_free = !broker.table().ports.contains(&SocketAddr::new(ip.to_canonical(), port));
        if is_free && SockRef::from(socket).bind(&SockAddr::from(SocketAddr::new(ip, port))).is_ok() {
            return Ok(port);
        }
    }
    SockRef::from(socket).bind(&any)?;
    port_of(SockRef::from(socket))
}
