//! The traffic between switches: what hosts send, summed over the hosts at both ends.
//!
//! Routes and bounds know nothing finer than a switch, so a matrix by hosts is folded up once. All-to-all is the product
//! of two host counts and is never written out.
//!
//! ```text
//!   h0 → h2: 5   h1 → h2: 3   h1 → h0: 9        h0, h1 at a, h2 at b:   a → b: 8, and what stays at a is left out
//! ```

use fabric::{HostId, SwitchId, Topology, Traffic};

/// What the hosts of each switch send to those of each other.
pub(crate) struct Demand {
    rows: Rows,
    single_max: f64,
}

enum Rows {
    /// `hosts[switch]`, all of which send one unit to each other.
    AllToAll(Vec<f64>),
    /// `rows[source]`: who receives how much, ascending by switch, zeros and the source itself left out.
    Sparse(Vec<Vec<(SwitchId, f64)>>),
}

impl Demand {
    /// Cost: O(switches), or O(switches² + demands) for a matrix; memory is linear in the demands.
    pub(crate) fn new(topology: &Topology, traffic: &Traffic) -> Self {
        let rows = match traffic {
            Traffic::AllToAll => {
                Rows::AllToAll(topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as f64).collect())
            }
            Traffic::Matrix(_) => {
                let mut dense = vec![0.0; topology.switches().len()];
                let row = |source: SwitchId| {
                    sent_by(topology, traffic, topology.hosts_of(source), &mut dense);
                    dense[source.index()] = 0.0;
                    SwitchId::all(dense.len()).zip(dense.iter().copied()).filter(|(_, amount)| *amount > 0.0).collect()
                };
                Rows::Sparse(topology.switch_ids().map(row).collect())
            }
        };
        let single_max = match traffic {
            Traffic::AllToAll => 1.0,
            Traffic::Matrix(matrix) => {
                let apart = |d: &fabric::Demand| topology.switch_of(d.source) != topology.switch_of(d.destination);
                matrix.demands().filter(apart).map(|demand| demand.amount).fold(0.0, f64::max)
            }
        };
        Self { rows, single_max }
    }

    /// The largest demand of one host for another at another switch, if there is any.
    pub(crate) fn single_max(&self) -> f64 {
        self.single_max
    }

    /// Writes what a switch sends to each: `row[switch]`, 0 to itself.
    pub(crate) fn row(&self, source: SwitchId, row: &mut [f64]) {
        match &self.rows {
            Rows::AllToAll(hosts) => {
                let senders = hosts[source.index()];
                row.iter_mut().zip(hosts).for_each(|(demand, hosts)| *demand = senders * hosts);
                row[source.index()] = 0.0;
            }
            Rows::Sparse(rows) => {
                row.fill(0.0);
                rows[source.index()].iter().for_each(|&(switch, amount)| row[switch.index()] = amount);
            }
        }
    }

    /// The switches that send anything to others, ascending.
    pub(crate) fn sources(&self) -> Vec<SwitchId> {
        match &self.rows {
            Rows::AllToAll(hosts) => {
                let with_hosts: Vec<SwitchId> =
                    SwitchId::all(hosts.len()).filter(|switch| hosts[switch.index()] > 0.0).collect();
                if with_hosts.len() > 1 { with_hosts } else { Vec::new() }
            }
            Rows::Sparse(rows) => SwitchId::all(rows.len()).filter(|switch| !rows[switch.index()].is_empty()).collect(),
        }
    }

    /// The border of a set that is empty so far.
    pub(crate) fn border(&self) -> Border<'_> {
        match &self.rows {
            Rows::AllToAll(hosts) => Border::Product { hosts, inside: 0.0, all: hosts.iter().sum() },
            Rows::Sparse(sent) => {
                let mut received = vec![Vec::new(); sent.len()];
                for (source, row) in SwitchId::all(sent.len()).zip(sent) {
                    row.iter().for_each(|&(switch, amount)| received[switch.index()].push((source, amount)));
                }
                Border::Sum { sent, received, inside: vec![false; sent.len()], out: 0.0, back: 0.0 }
            }
        }
    }

    /// How many steps it takes to let all switches into a border.
    pub(crate) fn border_steps(&self) -> usize {
        match &self.rows {
            Rows::AllToAll(hosts) => hosts.len(),
            Rows::Sparse(rows) => 2 * rows.iter().map(Vec::len).sum::<usize>(),
        }
    }
}

/// What crosses the border of a set of switches that grows.
pub(crate) enum Border<'a> {
    /// All-to-all: hosts inside, and in all.
    Product { hosts: &'a [f64], inside: f64, all: f64 },
    /// Anything else: what crosses outward and back.
    Sum {
        sent: &'a [Vec<(SwitchId, f64)>],
        received: Vec<Vec<(SwitchId, f64)>>,
        inside: Vec<bool>,
        out: f64,
        back: f64,
    },
}

impl Border<'_> {
    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        match self {
            Border::Product { inside, .. } => *inside = 0.0,
            Border::Sum { inside, out, back, .. } => {
                inside.fill(false);
                (*out, *back) = (0.0, 0.0);
            }
        }
    }

    /// Lets a switch in.
    pub(crate) fn enter(&mut self, switch: SwitchId) {
        match self {
            Border::Product { hosts, inside, .. } => *inside += hosts[switch.index()],
            Border::Sum { sent, received, inside, out, back } => {
                // What it exchanges with those inside stops crossing, all else starts to.
                for &(other, amount) in &sent[switch.index()] {
                    if inside[other.index()] { *back -= amount } else { *out += amount }
                }
                for &(other, amount) in &received[switch.index()] {
                    if inside[other.index()] { *out -= amount } else { *back += amount }
                }
                inside[switch.index()] = true;
            }
        }
    }

    /// What crosses outward, and back.
    pub(crate) fn crossing(&self) -> (f64, f64) {
        match self {
            Border::Product { inside, all, .. } => (inside * (all - inside), inside * (all - inside)),
            Border::Sum { out, back, .. } => (*out, *back),
        }
    }
}

/// Writes what some hosts send to those of each switch, their own included: `row[switch]`.
pub(crate) fn sent_by(topology: &Topology, traffic: &Traffic, senders: &[HostId], row: &mut [f64]) {
    match traffic {
        Traffic::AllToAll => {
            for switch in topology.switch_ids() {
                row[switch.index()] = (senders.len() * topology.hosts_of(switch).len()) as f64;
            }
        }
        Traffic::Matrix(matrix) => {
            row.fill(0.0);
            for &(destination, amount) in senders.iter().flat_map(|sender| matrix.sent_by(*sender)) {
                row[topology.switch_of(destination).index()] += amount;
            }
        }
    }
}
