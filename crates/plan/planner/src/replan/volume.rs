//! Volumes: what a flow carries to or from each switch, in whole units, so that sums do not depend on their order.
//!
//! ```text
//!   all-to-all   a unit is a pair of hosts
//!   matrix       a unit is a 2⁴⁰th of all demand; whatever is demanded is at least one
//! ```

use fabric::{HostId, Topology, Traffic, TrafficMatrix};

use super::mend::Flow;
use crate::{fan::Direction, host_set::HostSet};

/// Units of a matrix in all.
const UNITS: f64 = (1_u64 << 40) as f64;

/// The traffic of a request, by senders and by receivers.
pub(crate) struct Volumes<'a> {
    topology: &'a Topology,
    matrix: Option<Matrix<'a>>,
    unit: f64,
}

struct Matrix<'a> {
    sent: &'a TrafficMatrix,
    received: TrafficMatrix,
}

impl<'a> Volumes<'a> {
    /// Cost: O(demands).
    pub(crate) fn new(topology: &'a Topology, traffic: &'a Traffic) -> Self {
        let matrix = match traffic {
            Traffic::AllToAll => None,
            Traffic::Matrix(sent) => Some(Matrix { sent, received: sent.transposed() }),
        };
        Self { topology, matrix, unit: unit(traffic) }
    }

    /// The demand that a unit stands for.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// The flow between some hosts of one switch and others, or all. Cost: O(hosts + demands of the owners).
    pub(crate) fn flow(&self, direction: Direction, owners: &[HostId], peers: Option<&HostSet>) -> Flow {
        let topology = self.topology;
        let count = |peers: &HostSet| -> Vec<u32> {
            let here = |switch| topology.hosts_of(switch).iter().filter(|host| peers.contains(**host)).count() as u32;
            topology.switch_ids().map(here).collect()
        };
        let demand = self.matrix.as_ref().map(|Matrix { sent, received }| {
            let by_owner = match direction {
                Direction::Outward => sent,
                Direction::Inward => received,
            };
            let mut demand = vec![0; topology.switches().len()];
            for &(peer, amount) in owners.iter().flat_map(|owner| by_owner.sent_by(*owner)) {
                if peers.is_none_or(|peers| peers.contains(peer)) {
                    demand[topology.switch_of(peer).index()] += in_units(amount, self.unit);
                }
            }
            demand
        });
        let (root, owners) = (topology.switch_of(owners[0]), owners.len() as u32);
        Flow { root, direction, owners, peers: peers.map(count), demand }
    }
}

/// The demand that a unit of a flow stands for.
pub(crate) fn unit(traffic: &Traffic) -> f64 {
    match traffic {
        Traffic::AllToAll => 1.0,
        Traffic::Matrix(matrix) => matrix.total().max(f64::MIN_POSITIVE) / UNITS,
    }
}

/// A demand in units: none if there is none.
pub(crate) fn in_units(demand: f64, unit: f64) -> u64 {
    if demand > 0.0 { (demand / unit).round().max(1.0) as u64 } else { 0 }
}
