//! What a port counts.

use std::collections::BTreeMap;

use crate::twin::DropReason;

/// Frames of one VLAN at one port since the lab came up. Bytes are those of frames without tag and check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Frames that entered and passed the ingress filter.
    pub in_frames: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Frames that were sent out.
    pub out_frames: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Of those that entered, flooded for want of a static entry; none where the back end does not say.
    pub flooded_unknown: Option<u64>,
    /// Of those that entered, flooded for their group address.
    pub flooded_multicast: Option<u64>,
    /// Of those that entered, flooded as broadcast.
    pub flooded_broadcast: Option<u64>,
}

/// Dropped frames by reason; reasons that have not occurred are absent.
pub type DropCounts = BTreeMap<DropReason, u64>;
