//! Path sets: the VLANs that hosts may spread a pair's frames over, and what they guarantee for permutations.
//!
//! ```text
//!   h0 ─[s0]═[s1]─ h1      VLAN 2: over the upper cable      h0 → h1: 2 (assigned), 3
//!                          VLAN 3: over the lower one
//! ```
//! A permutation, in which every host sends to one other at the rate of its port, is what one path a pair serves worst: two
//! pairs on one channel halve each other while other channels idle.

use std::sync::Arc;

use crate::{Demand, HostId, HostRun, Topology, TrafficError, TrafficMatrix, VlanId, rng::Rng};

/// Most VLANs of a pair.
pub const PATHS_MAX: u32 = 8;

/// Most hosts of a plan with several paths a pair: the path sets of all ordered pairs are in memory at once.
pub const PATH_HOSTS_MAX: usize = 1024;

/// How many random permutations path sets are measured by.
const RANDOM_PERMUTATIONS: u64 = 20;

/// The VLANs of every ordered pair of hosts, and the proof of what they guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSets {
    /// `rows[source]`: runs of destinations, ascending, without gaps, each with its VLANs, ascending; the assigned one is
    /// among them. Senders with the same sets share a row.
    pub rows: Vec<Arc<Vec<HostRun<Vec<VlanId>>>>>,
    /// What no routing can exceed.
    pub proof: PermutationProof,
}

/// Upper bounds on what any routing carries of permutations, whatever paths it splits pairs over.
///
/// For any channel lengths `l ≥ 0` that are not all zero, no routing carries more of each pair's demand than the share
/// `Σ l(c) / slowness(c) / Σ demand(s, d) · distance(s, d)`, the distances measured in `l`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PermutationProof {
    /// `lengths[permutation][channel]`, for those of [`permutations`].
    pub lengths: Vec<Vec<u32>>,
    /// `worst[host]`: the receiver in a permutation of which no routing carries much.
    pub worst: Vec<HostId>,
    /// `worst_lengths[channel]`: the proof of that.
    pub worst_lengths: Vec<u32>,
}

/// What a plan with path sets claims of them. Shares are of the rate at which hosts send, 1 where every pair gets all of it,
/// with ideal rates: the most that all pairs can have at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSummary {
    /// VLANs of the pair that has most.
    pub paths_max: usize,
    /// The mean share over [`permutations`].
    pub permutation_mean: f64,
    /// The mean of what any routing could reach in them, or more.
    pub permutation_mean_bound: f64,
    /// The mean of the share in each over what any routing could reach in it.
    pub permutation_share_mean: f64,
    /// The share that every pair gets in every permutation, if each pair splits evenly over its paths: a certified floor.
    pub permutation_worst: f64,
    /// No routing guarantees more for every permutation.
    pub permutation_worst_bound: f64,
    /// The floor over that bound.
    pub permutation_share_worst: f64,
}

impl PathSets {
    /// Sets by a function of sender and receiver; equal neighbours become one run, and equal rows one.
    /// Cost: O(hosts²) calls.
    pub fn new(hosts: usize, proof: PermutationProof, mut of: impl FnMut(HostId, HostId) -> Vec<VlanId>) -> Self {
        let mut rows: Vec<Arc<Vec<HostRun<Vec<VlanId>>>>> = Vec::with_capacity(hosts);
        for source in HostId::all(hosts) {
            let mut row: Vec<HostRun<Vec<VlanId>>> = Vec::new();
            for destination in HostId::all(hosts) {
                let choice = of(source, destination);
                match row.last_mut() {
                    Some(run) if run.choice == choice => run.last = destination,
                    _ => row.push(HostRun { first: destination, last: destination, choice }),
                }
            }
            // Hosts of a switch are mostly numbered one after the other.
            match rows.last() {
                Some(before) if **before == row => rows.push(Arc::clone(before)),
                _ => rows.push(Arc::new(row)),
            }
        }
        Self { rows, proof }
    }

    /// The VLANs of a pair, ascending. Cost: O(log runs).
    ///
    /// # Panics
    /// If either host is out of range.
    pub fn of(&self, source: HostId, destination: HostId) -> &[VlanId] {
        let runs = &self.rows[source.index()];
        &runs[runs.partition_point(|run| run.last < destination)].choice
    }
}

/// The permutations that path sets are measured by, as `receiver[host]`: the transpose of the largest square of hosts, and
/// twenty random ones, the same for every fabric of so many hosts. A host that is its own receiver sends nothing. Hosts that
/// take no part ([`permutation_rate`]) are their own receivers.
pub fn permutations(topology: &Topology) -> Vec<Vec<HostId>> {
    let hosts: Vec<HostId> = topology.host_ids().filter(|host| takes_part(topology, *host)).collect();
    let permutation = |partner: &dyn Fn(usize) -> usize| {
        let mut receiver: Vec<HostId> = topology.host_ids().collect();
        for (number, host) in hosts.iter().enumerate() {
            receiver[host.index()] = hosts[partner(number)];
        }
        receiver
    };
    let side = hosts.len().isqrt();
    let transpose = |host: usize| if host < side * side { host % side * side + host / side } else { host };
    let random = |seed: u64| {
        let mut partners: Vec<usize> = (0..hosts.len()).collect();
        Rng::new(seed).shuffle(&mut partners);
        permutation(&|host| partners[host])
    };
    std::iter::once(permutation(&transpose)).chain((1..=RANDOM_PERMUTATIONS).map(random)).collect()
}

/// What a permutation sends, on the fastest link between switches: [`permutation_rate`] from each host to its receiver.
///
/// # Errors
/// If there are more hosts than a matrix may have.
pub fn permutation_demand(topology: &Topology, receiver: &[HostId]) -> Result<TrafficMatrix, TrafficError> {
    let demands = topology.host_ids().zip(receiver).filter_map(|(source, &destination)| {
        let amount = permutation_rate(topology, source, destination);
        (amount > 0.0).then_some(Demand { source, destination, amount })
    });
    TrafficMatrix::new(topology.hosts().len(), demands.collect())
}

/// What a host sends to another in a permutation, as a part of the rate of the fastest link between switches: the rate of its
/// port, or of its receiver's if that is lower. 0 between hosts of one machine, and from or to standby ports and edge ports.
pub fn permutation_rate(topology: &Topology, source: HostId, destination: HostId) -> f64 {
    let apart = source != destination && !topology.are_of_one_machine(source, destination);
    if !(apart && takes_part(topology, source) && takes_part(topology, destination)) {
        return 0.0;
    }
    let rate_bps = topology.host(source).rate_bps.min(topology.host(destination).rate_bps);
    rate_bps as f64 / topology.rate_max_bps().max(1) as f64
}

fn takes_part(topology: &Topology, host: HostId) -> bool {
    let host = topology.host(host);
    !host.standby && !host.edge
}
