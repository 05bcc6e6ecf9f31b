//! What a worker does for a stream beside the protocol: carrying bytes between it and a descriptor, without a thread.

use crate::descriptors::Descriptors;
use std::os::fd::BorrowedFd;

use ri2n::{CloseReason, Connection, StreamState, Time, WriteError};

/// What a stream's worker is to do for it.
pub trait Duty: Send {
    /// The descriptor that it is about, which it keeps open until it is dropped, or for as long as it wants to hear of it. Reading
    /// and writing must not wait.
    fn near(&self) -> BorrowedFd<'_>;

    /// Does what can be done without waiting. Called whenever something may have changed: the descriptor is ready, something
    /// arrived or was acknowledged, the time asked for has come. Nothing that it calls may wait for a lock under which others use
    /// the stream.
    fn run(&mut self, end: &mut End<'_>, seen: Seen) -> Then;

    /// Whether the descriptor had no room for what is to be written. Asked after each run; room is reported from the first time
    /// on that this is so.
    fn waits_for_room(&self) -> bool;

    /// Saves it for a handover.
    fn save(&self, _descriptors: &mut Descriptors) -> SavedDuty {
        SavedDuty::Impossible
    }
}

/// A duty saved for a handover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedDuty {
    /// The state from which the next program resumes it.
    Bytes(Vec<u8>),
    /// The stream needs it no longer: bytes that were written are still delivered.
    Over,
    /// It cannot be saved: the stream is reset.
    Impossible,
}

/// What the descriptor has become ready for since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// It can be read, or has ended.
    pub readable: bool,
    /// It can be written, or has ended.
    pub writable: bool,
    /// The other end has closed, or said that it writes no more: an end is behind what can be read.
    pub ended: bool,
}

/// When to call a duty again, beside when something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// When something happens.
    Wait,
    /// At this time at the latest.
    At(Time),
    /// As soon as others had their turn.
    Again,
    /// Never: the duty is dropped, and with it the last handle of the stream.
    Done,
}

/// A stream in the hands of its worker.
#[derive(Debug)]
pub struct End<'a> {
    connection: &'a mut Connection,
    now: Time,
}

impl<'a> End<'a> {
    pub(crate) fn new(connection: &'a mut Connection, now: Time) -> Self {
        Self { connection, now }
    }

    /// The time of this call.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Memory for the next bytes to write, `most` at most: none if there is no room now.
    ///
    /// # Errors
    /// If nothing can be written any more.
    pub fn reserve(&mut self, most: usize) -> Result<(&mut [u8], &mut [u8]), WriteError> {
        self.connection.reserve(most)
    }

    /// Bytes that there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.connection.writable()
    }

    /// Writes the first bytes of what [`Self::reserve`] gave.
    pub fn commit(&mut self, count: usize) {
        self.connection.commit(self.now, count);
    }

    /// Writes bytes that there is room for.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        self.connection.write(self.now, bytes)
    }

    /// What can be read.
    #[must_use]
    pub fn peek(&self) -> (&[u8], &[u8]) {
        self.connection.peek()
    }

    /// Takes bytes that [`Self::peek`] showed.
    pub fn consume(&mut self, count: usize) {
        self.connection.consume(self.now, count);
    }

    /// Whether the peer finished, and everything was read.
    #[must_use]
    pub fn is_read_to_end(&self) -> bool {
        self.connection.is_read_to_end()
    }

    /// Writes no more.
    pub fn finish(&mut self) {
        self.connection.shutdown_write();
    }

    /// Ends the connection at once; the peer sees a reset.
    pub fn reset(&mut self) {
        self.connection.abort();
    }

    /// Whether everything written, the end included if there is one, was acknowledged.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.connection.is_flushed()
    }

    /// Why the connection ended before its time, if it did.
    #[must_use]
    pub fn closed(&self) -> Option<CloseReason> {
        match self.connection.state() {
            StreamState::Closed(reason) => Some(reason),
            _ => None,
        }
    }
}
