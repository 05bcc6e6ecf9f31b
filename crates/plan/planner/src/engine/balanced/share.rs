//! What sources send, in whole numbers.
//!
//! Loads are whole numbers, so that searches which add and subtract them millions of times end exactly where they began.
//! All-to-all traffic is counted in pairs of hosts. A matrix is counted in *quanta*: the switch that sends most sends 2²⁴ of
//! them, so that every load is right to a few millionths, and what a switch sends to another fits in a float's mantissa.
//! A pair without demand still needs a route, so every switch with hosts gets at least one quantum.
//!
//! ```text
//!   a → b: 3.0 GB, a → c: 1.0 GB, a → d: 0        quanta: b 12582912, c 4194304, d 1
//! ```

use fabric::{HostId, Policy, SwitchId, Topology, Traffic};

use crate::demand::{Demand, sent_by};

use super::forest::{Shares, Source};

/// Quanta that the switch sends which sends most.
const QUANTA_MAX: f64 = (1 << 24) as f64;

/// Makes sources out of hosts.
pub(super) struct Sharing<'a> {
    topology: &'a Topology,
    traffic: &'a Traffic,
    /// The demand of one unit of load.
    pub(super) quantum: f64,
    /// Pairs of hosts for each unit of load.
    pub(super) pairs_per_unit: f64,
}

impl<'a> Sharing<'a> {
    pub(super) fn new(topology: &'a Topology, policy: &'a Policy) -> Self {
        let traffic = &policy.traffic;
        let all_alike = Self { topology, traffic, quantum: 1.0, pairs_per_unit: 1.0 };
        if *traffic == Traffic::AllToAll {
            return all_alike;
        }
        let demand = Demand::new(topology, traffic);
        let mut row = vec![0.0; topology.switches().len()];
        let (mut most, mut all): (f64, f64) = (0.0, 0.0);
        for switch in topology.switch_ids() {
            demand.row(switch, &mut row);
            let sent = row.iter().sum::<f64>();
            most = most.max(sent);
            all += sent;
        }
        if most == 0.0 {
            return all_alike;
        }
        let quantum = most / QUANTA_MAX;
        let pairs = topology.hosts().len().pow(2) as f64;
        Self { quantum, pairs_per_unit: pairs * quantum / all, ..all_alike }
    }

    /// The source that some hosts of a switch make.
    pub(super) fn source(&self, root: SwitchId, hosts: Vec<HostId>) -> Source {
        let shares = match self.traffic {
            Traffic::AllToAll => Shares::OnePerHost,
            Traffic::Matrix(_) => {
                let mut row = vec![0.0; self.topology.switches().len()];
                sent_by(self.topology, self.traffic, &hosts, &mut row);
                row[root.index()] = 0.0;
                let quanta = |(switch, amount): (SwitchId, f64)| match self.topology.hosts_of(switch) {
                    [] => 0,
                    _ => ((amount / self.quantum).round() as u32).max(1),
                };
                Shares::BySwitch(self.topology.switch_ids().zip(row).map(quanta).collect())
            }
        };
        Source { root: root.index(), hosts, shares }
    }

    /// All hosts of each switch.
    pub(super) fn one_source_a_switch(&self) -> Vec<Source> {
        (self.topology.switch_ids())
            .filter(|switch| !self.topology.hosts_of(*switch).is_empty())
            .map(|switch| self.source(switch, self.topology.hosts_of(switch).to_vec()))
            .collect()
    }
}
