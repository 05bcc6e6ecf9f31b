//! Early copies as a broker sees them: sockets and secrets for both programs, and the pair read and written beside
//! them, without waiting.
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
    cell::RefCell,
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
};

use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, recv, recvmsg, send, sendmsg},
};
use ri2n_express::{Block, Map, TICK};
use ri2n_io::{Config, Descriptors, End, Time};
use serde::{Deserialize, Serialize};

use crate::{greeting::Offer, saved::SavedExpress};

/// Streams of a broker that can have early copies at a time, each of which takes a descriptor and a port.
const STREAMS_MAX: usize = 256;
/// Ports of the settings' range that are tried for one connection.
const PORTS_TRIED_MAX: u16 = 64;
/// Bytes taken from a program at once; more than the ring of early copies holds.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of a program that are read into memory of the thread first: many a stream has no more, and then needs no
/// memory for more.
const FIRST_BYTES: u64 = 16 << 10;
/// Ticks without a message after which the ring is looked at no more, until the pair brings one.
const QUIET_TICKS_MAX: u32 = 5;

/// A socket whose peer is not known yet.
pub(crate) struct Proposal {
    socket: UdpSocket,
    token: u64,
    counted: Counted,
}

/// One of [`STREAMS_MAX`].
struct Counted;

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Counted {
    fn new() -> Option<Self> {
        let counted = COUNT.fetch_add(1, Ordering::Relaxed) < STREAMS_MAX;
        // What is not wanted is counted back by its end.
        Some(Self).filter(|_| counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an end needs for early copies.
pub(crate) struct Express {
    socket: UdpSocket,
    token_in: u64,
    token_out: u64,
    shared: OnceLock<(Map, OwnedFd)>,
    _counted: Counted,
}

impl Proposal {
    /// Binds a socket at one of our addresses, unless packets are to be guarded, which copies are not, or many streams
    /// have one.
    pub(crate) fn new(config: &Config, ip: IpAddr) -> Option<Self> {
        if !config.keys.is_empty() || config.integrity != ri2n_io::Integrity::default() {
            return None;
        }
        let counted = Counted::new()?;
        let mut token = [0; 8];
        // SAFETY: the buffer has the length that is told, so short that the kernel fills it at once.
        let drawn = unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
        if drawn != token.len() as isize {
            return None;
        }
        Some(Self { socket: bind(config, ip)?, token: u64::from_ne_bytes(token), counted })
    }

    /// What the peer is told.
    pub(crate) fn offer(&self) -> Option<Offer> {
        Some(Offer { port: self.socket.local_addr().ok()?.port(), token: self.token })
    }

    /// Meets the peer's offer.
    pub(crate) fn meet(self, peer: IpAddr, offer: Offer) -> Option<Express> {
        self.socket.connect(SocketAddr::new(peer, offer.port)).ok()?;
        let (token_in, token_out) = (self.token, offer.token);
        Some(Express { socket: self.socket, token_in, token_out, shared: OnceLock::new(), _counted: self.counted })
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

    /// Writes it down.
    ///
    /// # Errors
    /// If a descriptor is not open.
    pub(crate) fn save(&self, descriptors: &mut Descriptors) -> io::Result<SavedExpress> {
        Ok(SavedExpress {
            socket: descriptors.keep(self.socket.as_fd())?,
            token_in: self.token_in,
            token_out: self.token_out,
            memory: self.shared.get().map(|(_, file)| descriptors.keep(file.as_fd())).transpose()?,
        })
    }

    /// Resumes saved early copies.
    ///
    /// # Errors
    /// If a descriptor is not open, or the memory is laid out in another way.
    pub(crate) fn resume(saved: SavedExpress) -> io::Result<Self> {
        let shared = OnceLock::new();
        if let Some(file) = saved.memory {
            let file = file.take()?;
            let map = Map::open(file.as_fd()).ok_or(io::ErrorKind::InvalidData)?;
            let _ = shared.set((map, file));
        }
        let (socket, token_in, token_out) = (saved.socket.take()?.into(), saved.token_in, saved.token_out);
        COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { socket, token_in, token_out, shared, _counted: Counted })
    }

    /// The program's end takes nothing any more: its next call shall find that out.
    pub(crate) fn close(&self) {
        if let Some(block) = self.block() {
            block.up.close();
        }
    }

    /// Whether a program has asked for the memory.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.get().is_some()
    }

    fn block(&self) -> Option<&Block> {
        self.shared.get().map(|(map, _)| &**map)
    }
}

/// What came of one turn at the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// So many bytes were taken; there may be more.
    Bytes(usize),
    /// So many bytes were taken, which is all that there was but for an end.
    Last(usize),
    /// Nothing is there now.
    Nothing,
    /// Nothing will be.
    End,
}

/// The pair's direction from the program, and how far it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Upward {
    total: u64,
    has_begun: bool,
    quiet_ticks: u32,
    /// When the ring is looked at next.
    tick_at: Option<Time>,
}

impl Upward {
    /// Takes bytes, whichever way they come, without waiting: straight into the stream, while the program has no copies.
    pub(crate) fn take(
        &mut self,
        end: &mut End<'_>,
        pair: BorrowedFd<'_>,
        express: Option<&Express>,
    ) -> io::Result<Turn> {
        let Some(block) = express.and_then(Express::block) else {
            let is_first = self.total < FIRST_BYTES;
            let turn = if is_first { receive_first(end, pair)? } else { receive_into_stream(end, pair)? };
            if let Turn::Bytes(count) | Turn::Last(count) = turn {
                self.total += count as u64;
            }
            return Ok(turn);
        };
        if !std::mem::replace(&mut self.has_begun, true) {
            block.up.begin(self.total);
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(BUFFER_BYTES, 0);
            let room = end.room().min(BUFFER_BYTES);
            if room < BUFFER_BYTES {
                return Ok(Turn::Nothing);
            }
            let mut was_asked = false;
            let receive = |into: &mut [u8]| {
                was_asked = true;
                Ok(recv(pair.as_raw_fd(), into, MsgFlags::MSG_DONTWAIT)?)
            };
            let (count, goes_on) = block.up.collect(buffer, receive)?;
            if count == 0 {
                return Ok(match (goes_on, was_asked) {
                    (false, _) => Turn::End,
                    (true, true) => Turn::Nothing,
                    // Programs were moving on all the time.
                    (true, false) => Turn::Bytes(0),
                });
            }
            (self.quiet_ticks, self.tick_at) = (0, None);
            // A stream that takes nothing any more has ended, which whoever reads it is told.
            let _ = end.write(&buffer[..count]);
            Ok(Turn::Bytes(count))
        })
    }

    /// When the ring is to be looked at again, though nothing says that anything is in it.
    pub(crate) fn next_tick(&mut self, now: Time, express: Option<&Express>) -> Option<Time> {
        let block = express.and_then(Express::block).filter(|_| self.has_begun)?;
        if !block.up.is_watched() {
            self.tick_at = None;
            return None;
        }
        let tick_at = *self.tick_at.get_or_insert(now + TICK);
        if now < tick_at {
            return Some(tick_at);
        }
        self.quiet_ticks += 1;
        if self.quiet_ticks >= QUIET_TICKS_MAX && block.up.rest() {
            (self.quiet_ticks, self.tick_at) = (0, None);
            return None;
        }
        self.tick_at = Some(now + TICK);
        self.tick_at
    }
}

/// The pair's direction to the program, and how far it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Downward {
    total: u64,
    has_begun: bool,
}

impl Downward {
    /// Gives the program what it has not got from copies, without waiting.
    pub(crate) fn give(
        &mut self,
        end: &mut End<'_>,
        pair: BorrowedFd<'_>,
        express: Option<&Express>,
    ) -> io::Result<Turn> {
        let (head, tail) = end.peek();
        if head.is_empty() {
            return Ok(if end.is_read_to_end() { Turn::End } else { Turn::Nothing });
        }
        let given = match express.and_then(Express::block) {
            None => send_parts(pair, head, tail),
            Some(block) => {
                if !std::mem::replace(&mut self.has_begun, true) {
                    block.down.begin(self.total);
                }
                let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                block.down.pass(self.total, head, |bytes| Ok(send(pair.as_raw_fd(), bytes, flags)?))
            }
        };
        match given {
            Ok(0) => Ok(Turn::Nothing),
            Ok(count) => {
                end.consume(count);
                self.total += count as u64;
                Ok(Turn::Bytes(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Turn::Nothing),
            Err(error) => Err(error),
        }
    }
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads the first bytes of a socket, and its end, into memory of the thread; the stream takes what they are.
fn receive_first(end: &mut End<'_>, from: BorrowedFd<'_>) -> io::Result<Turn> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(BUFFER_BYTES, 0);
        let offered = end.room().min(BUFFER_BYTES);
        if offered == 0 {
            return Ok(Turn::Nothing);
        }
        match recv(from.as_raw_fd(), &mut buffer[..offered], MsgFlags::MSG_DONTWAIT) {
            Ok(0) => Ok(Turn::End),
            Ok(count) => {
                // A stream that takes nothing any more has ended, which whoever reads it is told.
                let _ = end.write(&buffer[..count]);
                Ok(if count < offered { Turn::Last(count) } else { Turn::Bytes(count) })
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Turn::Nothing),
            Err(error) => Err(error.into()),
        }
    })
}

/// Reads a socket into the memory of the stream that it is for.
fn receive_into_stream(end: &mut End<'_>, from: BorrowedFd<'_>) -> io::Result<Turn> {
    let Ok((head, tail)) = end.reserve(BUFFER_BYTES) else { return Ok(Turn::Nothing) };
    if head.is_empty() {
        return Ok(Turn::Nothing);
    }
    let offered = head.len() + tail.len();
    let mut parts = [IoSliceMut::new(head), IoSliceMut::new(tail)];
    match recvmsg::<()>(from.as_raw_fd(), &mut parts, None, MsgFlags::MSG_DONTWAIT).map(|message| message.bytes) {
        Ok(0) => Ok(Turn::End),
        Ok(count) => {
            end.commit(count);
            Ok(if count < offered { Turn::Last(count) } else { Turn::Bytes(count) })
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(Turn::Nothing),
        Err(error) => Err(error.into()),
    }
}

fn send_parts(to: BorrowedFd<'_>, head: &[u8], tail: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(sendmsg::<()>(to.as_raw_fd(), &[IoSlice::new(head), IoSlice::new(tail)], &[], flags, None)?)
}
