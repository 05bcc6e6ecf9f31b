//! Numbers of channels in a plan file: a numbering for each lane, and a list with one number a channel.

use super::json::{Located, Read};
use crate::{Certificate, Topology};

/// Most lanes: the priority classes of 802.1Q.
pub(super) const LANES_MAX: u8 = 8;

/// A numbering of channels for each lane.
pub(super) fn numbering(topology: &Topology, at: &Located<'_>) -> Read<Certificate> {
    at.only(&["ranks"])?;
    let ranks_at = at.field("ranks")?;
    let lanes = ranks_at.items()?;
    if lanes.len() > usize::from(LANES_MAX) {
        return Err(ranks_at.error(format!("there are at most {LANES_MAX} lanes")));
    }
    let rank = lanes.map(|at| per_channel(topology, &at)).collect::<Read<_>>()?;
    Ok(Certificate { rank })
}

/// One number for each channel.
pub(super) fn per_channel(topology: &Topology, at: &Located<'_>) -> Read<Vec<u32>> {
    at.items_for(topology.channel_count(), "channels")?.map(|at| at.whole()).collect()
}
