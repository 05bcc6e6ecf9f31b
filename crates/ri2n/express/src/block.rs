//! What the two ends of a socket pair share; see the crate's own words.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::{down::Down, talk::Talk, up::Up};

const VERSION: u32 = 3;

/// The shared memory of one end of a connection. All zeros when it is new, but for its version and tokens.
#[repr(C)]
pub struct Block {
    version: AtomicU32,
    token_in: AtomicU64,
    token_out: AtomicU64,
    /// From the program to the broker.
    pub up: Up,
    /// From the broker to the program.
    pub down: Down,
    /// What programs know of the conversation.
    pub talk: Talk,
}

impl Block {
    pub(crate) fn set_up(&self, token_in: u64, token_out: u64) {
        self.token_in.store(token_in, Relaxed);
        self.token_out.store(token_out, Relaxed);
        self.version.store(VERSION, Release);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.version.load(Acquire) == VERSION
    }

    /// What datagrams to this end begin with.
    #[must_use]
    pub fn token_in(&self) -> u64 {
        self.token_in.load(Relaxed)
    }

    /// What datagrams to the peer begin with.
    #[must_use]
    pub fn token_out(&self) -> u64 {
        self.token_out.load(Relaxed)
    }
}
