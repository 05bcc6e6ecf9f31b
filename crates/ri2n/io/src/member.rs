//! What a worker drives by an identifier: a connection, or an attempt to connect.
//!
//! ```text
//!  worker ─ take_in ───▶ connection │ attempt        what arrived for its identifier
//!         ─ look ──────▶ connection │ attempt        timers, duty, sending ─▶ when to look again
//! ```

use crate::{
    descriptors::Descriptors, dispatch::Kind, duty::Seen, interfaces::LocalAddress, paths::Paths,
    status::ConnectionStatus, sys::Socket,
};
use ri2n::{Arrival, Carrier, Time};
use std::{collections::BTreeSet, sync::Arc};

/// A member of a worker. The worker's thread calls all methods but [`Self::status`] and [`Self::is_held`], which any thread may call, and
/// [`Self::save`], for which the worker is parked.
pub(crate) trait Member: Send + Sync {
    /// Does what is due after something happened or time passed.
    fn look(&self, now: Time, seen: Seen, paths: &mut Paths) -> Look;

    /// Takes in datagrams of `segment` bytes each, the last perhaps shorter. Returns whether datagrams of this kind are the
    /// member's; the worker looks afterwards if they are.
    fn take_in(&self, now: Time, arrival: Arrival, kind: Kind, bytes: &[u8], segment: usize) -> bool;

    /// Takes in a datagram that this member sent and that the network could not deliver.
    fn take_unreachable(&self, kind: Kind, quoted: &[u8]);

    /// Takes in what happened to interfaces' carriers, by interface index, and all addresses of this machine, if they
    /// changed. An attempt to connect keeps to the addresses with which it began.
    fn take_network(&self, _now: Time, _carriers: &[(u32, Carrier)], _addresses: Option<&[LocalAddress]>) {}

    /// How a connection is; nothing of an attempt to connect.
    fn status(&self, _now: Time) -> Option<ConnectionStatus> {
        None
    }

    /// Whether it is a connection with a handle and without a duty.
    fn is_held(&self) -> bool {
        false
    }

    /// Saves a connection for a handover, or resets it: if its duty cannot be saved, or if it has a handle, no duty and an identifier that
    /// is not in `also`. `place` returns the number of its socket.
    fn save(
        &self,
        _place: &dyn Fn(&Arc<Socket>) -> Option<usize>,
        _descriptors: &mut Descriptors,
        _also: &BTreeSet<u32>,
    ) -> Option<Vec<u8>> {
        None
    }
}

/// What comes of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The next is due then.
    At(Time),
    /// The next is due as soon as others had their turn.
    Again,
    /// Nothing is due before something happens.
    Wait,
    /// Nobody needs the member any more.
    Over,
}
