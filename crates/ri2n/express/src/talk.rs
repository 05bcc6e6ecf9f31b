//! What two programs know of each other, in the memory that they share with their brokers.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::{HEARD_FOR, datagram::Copy};

/// Copies that are sent though none has come back; then every 64th only, in case the peer's program changes its ways.
const UNHEARD_MAX: u32 = 64;

/// What is known of the peer's program, and what it is told of ours.
#[repr(C)]
pub struct Talk {
    heard_ns: AtomicU64,
    /// Whether the peer's program waits for copies, and gets ours.
    peer_listens: AtomicU32,
    listens: AtomicU32,
    unheard: AtomicU32,
}

impl Talk {
    /// A copy came from the peer.
    pub fn hear(&self, copy: &Copy<'_>, now_ns: u64) {
        self.heard_ns.store(now_ns, Relaxed);
        self.peer_listens.store(u32::from(copy.listens && copy.hears), Relaxed);
        self.unheard.store(0, Relaxed);
    }

    /// Whether copies have come of late.
    pub fn hears(&self, now_ns: u64) -> bool {
        Duration::from_nanos(now_ns.saturating_sub(self.heard_ns.load(Relaxed))) < HEARD_FOR
    }

    /// Whether the peer's program waits for copies and gets ours, as far as one can tell.
    pub fn is_heard(&self, now_ns: u64) -> bool {
        self.peer_listens.load(Relaxed) != 0 && self.hears(now_ns)
    }

    /// Bytes went by the pair alone: copies of what follows are of no use until the stream has brought them, which the peer's next
    /// copy tells.
    pub fn stop_relying(&self) {
        self.peer_listens.store(0, Relaxed);
    }

    /// Whether a copy of the next message is worth sending; counts it.
    pub fn is_worth_a_copy(&self) -> bool {
        let unheard = self.unheard.load(Relaxed);
        self.unheard.store(unheard.wrapping_add(1), Relaxed);
        unheard < UNHEARD_MAX || unheard % UNHEARD_MAX == 0
    }

    /// Whether our program waits in calls that see copies.
    pub fn listens(&self) -> bool {
        self.listens.load(Relaxed) != 0
    }

    /// Notes how our program waited last.
    pub fn set_listens(&self, listens: bool) {
        self.listens.store(u32::from(listens), Relaxed);
    }
}
