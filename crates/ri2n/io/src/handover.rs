//! Handover of all streams of a process to another program, such as a newer release, by execve(2).
//!
//! ```text
//!  earlier program   freeze ─ save ─▶ Saved, descriptors ─ execve ─┐
//!  later program     resume ◀─ Saved ──────────────────────────────┘   ─ streams get their duties ─▶ begin
//! ```
//! The process keeps its descriptors and clock, so only memory is saved. Datagrams that arrive meanwhile wait in the sockets. The saved form
//! has names of fields; fields added later have defaults, so a release reads what an earlier one saved.

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

/// The saved streams of a process.
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

/// Streams that were handed over. Their packets wait until [`Self::begin`].
#[derive(Debug)]
pub struct Resumed {
    /// Those that had a handle.
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
    /// Its saved duty, if it had one.
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
    /// Starts receiving; streams that are still in it are dropped. Returns for how long nothing was received.
    ///
    /// # Errors
    /// If a socket cannot be watched.
    pub fn begin(self) -> io::Result<Duration> {
        self.sockets.iter().try_for_each(|(worker, number)| worker.receive_from(*number))?;
        Ok(sys::now().since(self.stopped_at))
    }
}

/// The error of a saved form that cannot be read.
pub(crate) fn unreadable(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
