//! What a handover saves of each connection beside what `ri2n-io` saves.
//!
//! The saved form has names of fields; a field that a later release adds needs a default.

use std::net::SocketAddr;

use ri2n_io::{Descriptors, SavedDescriptor};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// What is kept for a connection's lifetime.
pub(crate) trait Kept: Send + Sync + 'static {
    /// Saves it; `None` if it cannot be saved.
    fn save(&self, _descriptors: &mut Descriptors) -> Option<SavedKept> {
        None
    }
}

/// See [`Kept`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedKept {
    /// The address that the program's end has, if the program connected.
    pub(crate) port: Option<SavedPort>,
}

/// An address that no other connection may have.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPort {
    pub(crate) address: SocketAddr,
    pub(crate) socket: Option<SavedDescriptor>,
}

/// What a program has set of its connection, by level and name.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedOwner {
    /// The connection's number.
    pub(crate) id: u64,
    pub(crate) options: Vec<((i32, i32), i32)>,
}

/// What an end needs for early copies.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedExpress {
    pub(crate) socket: SavedDescriptor,
    pub(crate) token_in: u64,
    pub(crate) token_out: u64,
    pub(crate) memory: Option<SavedDescriptor>,
}

/// A program's end of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedProgram {
    pub(crate) pair: SavedDescriptor,
    pub(crate) express: Option<SavedExpress>,
    pub(crate) owner: SavedOwner,
    pub(crate) kept: SavedKept,
}

/// A relay between a program and plain TCP.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPlain {
    pub(crate) program: SavedProgram,
    pub(crate) far: SavedDescriptor,
    pub(crate) up: SavedWay,
    pub(crate) down: SavedWay,
}

/// One direction of it: what was read and is not written yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedWay {
    pub(crate) rest: ByteBuf,
    pub(crate) is_through: bool,
}
