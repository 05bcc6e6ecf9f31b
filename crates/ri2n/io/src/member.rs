//! What a worker drives by an identifier: a connection, or an attempt to connect.
//!
//! ```text
//!  worker ─ take_in ───▶ connection │ attempt        what arrived for its identifier
//!         ─ look ──────▶ connection │ attempt        timers, duty, sending ─▶ when to look again
//! ```

use crate::{dispatch::Kind, duty::Seen, interfaces::LocalAddress, paths::Paths, status::ConnectionStatus};
use ri2n::{Arrival, Carrier, Time};

/// A member of a worker. The worker's thread calls all methods but [`Self::status`], which any thread may call.
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
