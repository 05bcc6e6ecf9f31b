//! A process hands its streams to the program that it becomes by execve(2): a newer release of itself, most likely.
//!
//! ```text
//!  earlier program   freeze ─ save ─▶ Saved, descriptors ─ execve ─┐
//!  later program     resume ◀─ Saved ──────────────────────────────┘   ─ streams get their duties ─▶ begin
//! ```
//! The process, its descriptors and its clock stay the same, so nothing but memory is written down. What arrives meanwhile waits in the
//! sockets. Fields have names in what is written, and new ones have defaults: a release reads what an earlier one wrote.

use crate::{
    descriptors::{Descriptors, SavedDescriptor},
    freeze::Freeze,
    links::Reach,
    ports::Ports,
    shared::{Record, Shared},
    stream::Stream,
    sys::{self, Socket},
    worker::{self, Worker},
};
use ri2n::{Connection, Time};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

/// The streams of a process, written down.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    sockets: Vec<SavedSocket>,
    streams: Vec<ByteBuf>,
    /// When the workers stopped.
    stopped_at: Time,
}

/// A worker's socket.
#[derive(Debug, Serialize, Deserialize)]
struct SavedSocket {
    worker: usize,
    ports: Ports,
    descriptor: SavedDescriptor,
}

/// Workers are parked until this is dropped.
#[derive(Debug)]
pub struct Frozen {
    _freeze: Freeze,
    since: Time,
}

/// Parks all workers of this process. Other threads must not use streams while they are parked.
#[must_use]
pub fn freeze() -> Frozen {
    Frozen { _freeze: Freeze::begin(worker::wake_all), since: sys::now() }
}

/// Number of streams that have a handle and no duty: connections that are being established, above all.
#[must_use]
pub fn held_streams() -> usize {
    worker::started().flat_map(|worker| worker.members()).filter(|member| member.is_held()).count()
}

impl Frozen {
    /// Saves the streams whose duties can be saved, those without any handle, which deliver what was written, and those whose identifiers
    /// are in `also`. All others are reset.
    ///
    /// # Errors
    /// If a socket is not open.
    pub fn save(&self, descriptors: &mut Descriptors, also: &BTreeSet<u32>) -> io::Result<Saved> {
        let mut saved = Saved { sockets: Vec::new(), streams: Vec::new(), stopped_at: self.since };
        for (index, worker) in worker::started().enumerate() {
            let sockets = worker.sockets();
            let first = saved.sockets.len();
            for (ports, socket) in &sockets {
                let descriptor = descriptors.keep(socket.fd())?;
                saved.sockets.push(SavedSocket { worker: index, ports: ports.clone(), descriptor });
            }
            for member in worker.members() {
                let place = |socket: &Arc<Socket>| {
                    sockets.iter().position(|(_, known)| Arc::ptr_eq(known, socket)).map(|at| first + at)
                };
                saved.streams.extend(member.save(&place, descriptors, also).map(ByteBuf::from));
            }
        }
        Ok(saved)
    }
}

/// Streams that were handed over, whose packets wait until they have duties again.
#[derive(Debug)]
pub struct Resumed {
    /// Those that somebody referred to.
    pub streams: Vec<ResumedStream>,
    sockets: Vec<(&'static Arc<Worker>, usize)>,
    stopped_at: Time,
}

/// A stream that was handed over.
#[derive(Debug)]
pub struct ResumedStream {
    /// Its identifier ([`Stream::id`]).
    pub id: u32,
    /// The stream.
    pub stream: Stream,
    /// What its duty was, if it had one.
    pub duty: Option<Vec<u8>>,
}

/// Takes over what the earlier program of this process saved.
///
/// # Errors
/// If it cannot be read, or a descriptor is not open.
pub fn resume(saved: Saved) -> io::Result<Resumed> {
    let mut sockets = Vec::new();
    for SavedSocket { worker, ports, descriptor } in saved.sockets {
        let worker = worker::numbered(worker)?;
        let (number, socket) = worker.adopt(ports, Socket::resumed(descriptor.take()?)?);
        sockets.push((worker, number, socket));
    }
    let mut streams = Vec::new();
    for bytes in saved.streams {
        let record: Record<Connection, Reach> = rmp_serde::from_slice(&bytes).map_err(unreadable)?;
        let (worker, _, socket) = sockets.get(record.socket).ok_or_else(|| unreadable("a stream without a socket"))?;
        if let Some((shared, duty)) = Shared::resume(worker, socket, record) {
            streams.push(ResumedStream { id: shared.id(), stream: Stream::new(shared), duty });
        }
    }
    let sockets = sockets.into_iter().map(|(worker, number, _)| (worker, number)).collect();
    Ok(Resumed { streams, sockets, stopped_at: saved.stopped_at })
}

impl Resumed {
    /// Has the workers receive from now on; streams that are still here end. Returns for how long nothing was received.
    ///
    /// # Errors
    /// If a socket cannot be watched.
    pub fn begin(self) -> io::Result<Duration> {
        self.sockets.iter().try_for_each(|(worker, number)| worker.receive_from(*number))?;
        Ok(sys::now().since(self.stopped_at))
    }
}

/// What was written down makes no sense.
pub(crate) fn unreadable(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
