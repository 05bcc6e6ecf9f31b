//! Whom a frame is for.

use fabric::{FloodKind, HostId};

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receiver {
    /// One host.
    Host(HostId),
    /// The broadcast address.
    Everybody,
    /// A unicast address that no host has and no switch knows.
    Nobody,
}

impl Receiver {
    /// What kind of frame it is to a switch that has no entry for it.
    pub(crate) const fn flood(self) -> FloodKind {
        match self {
            Self::Host(_) | Self::Nobody => FloodKind::UnknownUnicast,
            Self::Everybody => FloodKind::Broadcast,
        }
    }
}
