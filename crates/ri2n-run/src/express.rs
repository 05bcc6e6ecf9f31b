//! Early copies as a broker sees them: sockets and secrets for both programs, and the pair read and written beside them.
//!
//! ```text
//!  client ─ greeting with an offer (port, token) ─▶ server        each binds a UDP socket and connects it to the other's
//!         ◀─ welcome with an offer ──────────────
//!  program ─ Question(express, id) ─▶ broker ─ block of memory, UDP socket ─▶ program
//! ```
//!
//! The block is made when a program asks for it, which the preload library does for conversations alone. The sockets are there
//! from the beginning, since the brokers can tell each other nothing later.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{MsgFlags, recv, send},
};
use ri2n_express::{Block, Map, TICK};
use ri2n_io::Config;

use crate::greeting::Offer;

/// Ports of the settings' range that are tried for one connection.
const PORTS_TRIED_MAX: u16 = 64;
/// Ticks without a message after which the ring is looked at no more, until the pair brings one.
const QUIET_TICKS_MAX: u32 = 5;

/// A socket whose peer is not known yet.
pub(crate) struct Proposal {
    socket: UdpSocket,
    token: u64,
}

/// What an end needs for early copies.
pub(crate) struct Express {
    socket: UdpSocket,
    token_in: u64,
    token_out: u64,
    shared: OnceLock<(Map, OwnedFd)>,
}

impl Proposal {
    /// Binds a socket at one of our addresses, unless packets are to be guarded, which copies are not.
    pub(crate) fn new(config: &Config, ip: IpAddr) -> Option<Self> {
        if config.key.is_some() || config.integrity != ri2n_io::Integrity::default() {
            return None;
        }
        let mut token = [0; 8];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").ok()?, &mut token).ok()?;
        Some(Self { socket: bind(config, ip)?, token: u64::from_ne_bytes(token) })
    }

    /// What the peer is told.
    pub(crate) fn offer(&self) -> Option<Offer> {
        Some(Offer { port: self.socket.local_addr().ok()?.port(), token: self.token })
    }

    /// Meets the peer's offer.
    pub(crate) fn meet(self, peer: IpAddr, offer: Offer) -> Option<Express> {
        self.socket.connect(SocketAddr::new(peer, offer.port)).ok()?;
        Some(Express { socket: self.socket, token_in: self.token, token_out: offer.token, shared: OnceLock::new() })
    }
}

fn bind(config: &Config, ip: IpAddr) -> Option<UdpSocket> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let Some(ports) = &config.ports else { return UdpSocket::bind((ip, 0)).ok() };
    let count = (ports.end() - ports.start()).saturating_add(1);
    (0..count.min(PORTS_TRIED_MAX)).find_map(|_| {
        // From the end of the range: connections take theirs from its beginning.
        let port = ports.end() - NEXT.fetch_add(1, Ordering::Relaxed) % count;
        UdpSocket::bind((ip, port)).ok()
    })
}

impl Express {
    /// The memory and the socket that a program is given.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn open(&self) -> io::Result<[BorrowedFd<'_>; 2]> {
        let file = match self.shared.get() {
            Some((_, file)) => file,
            None => {
                let made = Map::create(self.token_in, self.token_out)?;
                &self.shared.get_or_init(|| made).1
            }
        };
        Ok([file.as_fd(), self.socket.as_fd()])
    }

    /// The program's end takes nothing any more: its next call shall find that out.
    pub(crate) fn close(&self) {
        if let Some(block) = self.block() {
            block.up.close();
        }
    }

    fn block(&self) -> Option<&Block> {
        self.shared.get().map(|(map, _)| &**map)
    }
}

/// The pair's direction from the program, and how far it is.
pub(crate) struct Upward<'a> {
    pair: &'a UnixStream,
    express: Option<&'a Express>,
    total: u64,
    has_begun: bool,
    quiet_ticks: u32,
}

impl<'a> Upward<'a> {
    pub(crate) fn new(pair: &'a UnixStream, express: Option<&'a Express>) -> Self {
        Self { pair, express, total: 0, has_begun: false, quiet_ticks: 0 }
    }

    /// Waits for bytes, whichever way they come; none mean the end. The buffer is longer than the ring.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(block) = self.express.and_then(Express::block) else {
                let count = io::Read::read(&mut &*self.pair, buffer)?;
                self.total += count as u64;
                return Ok(count);
            };
            if !std::mem::replace(&mut self.has_begun, true) {
                block.up.begin(self.total);
            }
            let tick =
                if block.up.is_watched() { PollTimeout::from(TICK.as_millis() as u8) } else { PollTimeout::NONE };
            wait(self.pair, PollFlags::POLLIN, tick);
            let receive = |into: &mut [u8]| Ok(recv(self.pair.as_raw_fd(), into, MsgFlags::MSG_DONTWAIT)?);
            let (count, goes_on) = block.up.collect(buffer, receive)?;
            if count > 0 || !goes_on {
                self.quiet_ticks = 0;
                return Ok(count);
            }
            self.quiet_ticks += 1;
            if self.quiet_ticks >= QUIET_TICKS_MAX && block.up.rest() {
                self.quiet_ticks = 0;
            }
        }
    }
}

/// The pair's direction to the program, and how far it is.
pub(crate) struct Downward<'a> {
    pair: &'a UnixStream,
    express: Option<&'a Express>,
    total: u64,
    has_begun: bool,
}

impl<'a> Downward<'a> {
    pub(crate) fn new(pair: &'a UnixStream, express: Option<&'a Express>) -> Self {
        Self { pair, express, total: 0, has_begun: false }
    }

    /// Gives the program what it has not got from copies.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(block) = self.express.and_then(Express::block) else {
            io::Write::write_all(&mut &*self.pair, bytes)?;
            self.total += bytes.len() as u64;
            return Ok(());
        };
        if !std::mem::replace(&mut self.has_begun, true) {
            block.down.begin(self.total);
        }
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            let passed = block.down.pass(self.total, bytes, |bytes| Ok(send(self.pair.as_raw_fd(), bytes, flags)?))?;
            self.total += passed as u64;
            bytes = &bytes[passed..];
            if bytes.is_empty() {
                return Ok(());
            }
            wait(self.pair, PollFlags::POLLOUT, PollTimeout::NONE);
        }
    }
}

fn wait(pair: &UnixStream, events: PollFlags, timeout: PollTimeout) {
    // What it comes to is seen by the call that follows.
    let _: Result<i32, Errno> = poll(&mut [PollFd::new(pair.as_fd(), events)], timeout);
}
