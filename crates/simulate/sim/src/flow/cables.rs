//! The cables of LAGs as resources: a flow takes one of them, and what a LAG carries is the sum of what they do.
//!
//! ```text
//!   channels ▏ hosts out ▏ hosts in ▏ cables of each LAG among them, in order
//!        └───────────────────────────────▶ one of the cables, by the flow's hash
//! ```

use std::{collections::BTreeMap, ops::Range};

use fabric::{ChannelId, HostId, PortId, Topology};

use crate::lag::{FlowHash, numbers};

pub(super) struct Cables {
    hash: FlowHash,
    /// The resources of the cables of each LAG.
    of: BTreeMap<u32, Range<u32>>,
    /// The number of resources that are no cables of LAGs.
    first: u32,
    /// `lag[resource - first]`.
    lag: Vec<u32>,
}

impl Cables {
    /// The cables of a topology's LAGs, behind the resources of `capacity`, which gets theirs.
    pub(super) fn of(topology: &Topology, capacity: &mut Vec<f64>) -> Self {
        let first = capacity.len() as u32;
        let mut cables = Self { hash: FlowHash::of(topology), of: BTreeMap::new(), first, lag: Vec::new() };
        for lag in 0..first {
            let (a, _) = ends(topology, lag);
            if topology.port(a).lag().is_some() {
                let count = topology.members(a).count();
                let start = capacity.len() as u32;
                capacity.extend(std::iter::repeat_n(capacity[lag as usize] / count as f64, count));
                cables.lag.extend(std::iter::repeat_n(lag, count));
                cables.of.insert(lag, start..capacity.len() as u32);
            }
        }
        cables
    }

    /// `number[flow]`: which it is of the flows with its sender and receiver; empty where that makes no difference.
    pub(super) fn numbers(&self, flows: impl Iterator<Item = (HostId, HostId)>) -> Vec<u32> {
        if self.of.is_empty() { Vec::new() } else { numbers(flows) }
    }

    /// Puts the cable that a flow takes in the place of each LAG.
    pub(super) fn choose(&self, (from, to): (HostId, HostId), number: u32, way: &mut [u32]) {
        for resource in way {
            if let Some(cables) = self.of.get(resource) {
                *resource = cables.start + self.hash.member((from, Some(to)), number, cables.len() as u32);
            }
        }
    }

    /// The LAG that a resource is a cable of, and which of its cables.
    pub(super) fn lag(&self, resource: u32) -> Option<(u32, usize)> {
        let lag = *self.lag.get(resource.checked_sub(self.first)? as usize)?;
        Some((lag, (resource - self.of[&lag].start) as usize))
    }

    /// Adds what cables carry to what their LAGs do.
    pub(super) fn add_up<T: Copy + std::ops::AddAssign>(&self, carried: &mut [T]) {
        for (cable, lag) in (self.first as usize..).zip(&self.lag) {
            let amount = carried[cable];
            carried[*lag as usize] += amount;
        }
    }
}

/// The port that the frames of a resource leave or come in by, and the one at the other end where that is a switch's.
pub(super) fn ends(topology: &Topology, resource: u32) -> (PortId, Option<PortId>) {
    let (resource, channels, hosts) = (resource as usize, topology.channel_count(), topology.hosts().len());
    match resource {
        channel if channel < channels => {
            let channel = ChannelId::new(channel);
            (topology.tail_port(channel), Some(topology.head_port(channel)))
        }
        of_host => (topology.hosts()[(of_host - channels) % hosts].port, None),
    }
}
