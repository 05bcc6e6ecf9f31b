//! A lower bound on how long the busiest channel takes, with a certificate that anybody can check.
//!
//! For any channel lengths l ≥ 0, every route from s to d covers at least dist(s, d), so all routes together cover
//! Σ demand · dist, while channels that take at most time m can cover at most m · Σ l · rate: hence
//! m ≥ Σ demand · dist / Σ l · rate (the dual of maximum concurrent flow; Shahrokhi and Matula, "The maximum concurrent
//! flow problem", 1990). Rates are relative to the fastest link's, so that m is demand on the fastest link. Good lengths
//! are long where every routing is crowded. Uniform ones and cuts are exact on many regular networks; on others they
//! are searched for. And since a pair of hosts takes one path, no routing is quicker than the largest single demand.
//!
//! ```text
//!   h─[a]═══[b]─h     two cables, two hosts a side: 4 ordered pairs go right, lengths 1 on both channels:
//!   h─┘       └─h     Σ dist = 4, Σ l = 2, so some channel carries at least 2
//! ```

mod cuts;
mod refine;
mod shortest;
mod weights;

use fabric::{Bound, SwitchId, Topology};

use crate::demand::Demand;

use self::shortest::Shortest;

/// Lengths are stored as integers up to this.
const LENGTH_MAX: f64 = 1_000_000.0;

/// A bound and its proof.
#[derive(Clone, Debug)]
pub(crate) struct LoadBound {
    /// No routing has a busiest channel that takes less time.
    pub(crate) load: f64,
    /// The lengths that prove it.
    pub(crate) certificate: Bound,
}

/// The best bound that the budget of work finds. Cost: bounded, but at least two rounds of shortest paths from every
/// switch.
pub(crate) fn bound(topology: &Topology, demand: &Demand) -> LoadBound {
    let channels = topology.channel_count();
    let mut best = LoadBound { load: 0.0, certificate: Bound { lengths: vec![0; channels] } };
    let search = Search::new(topology, demand);
    if channels == 0 || search.sources.is_empty() {
        return best;
    }
    search.keep_better(&vec![1; channels], &mut best);
    search.pivot_cuts(&mut best);
    if !search.refine(&mut best) {
        search.multiplicative_weights(&mut best);
    }
    best.load = best.load.max(demand.single_max());
    best
}

/// What searches for lengths share.
struct Search<'a> {
    topology: &'a Topology,
    demand: &'a Demand,
    /// Switches that send.
    sources: Vec<SwitchId>,
    /// `head[channel]`.
    head: Vec<usize>,
    /// `slowness[channel]`: the fastest link's rate over its own.
    slowness: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, demand: &'a Demand) -> Self {
        Self {
            topology,
            demand,
            sources: demand.sources(),
            head: topology.channel_ids().map(|channel| topology.head(channel).index()).collect(),
            slowness: topology.channel_ids().map(|channel| topology.slowness(channel)).collect(),
        }
    }

    /// What lengths prove; 0 if they are all zero.
    fn proven(&self, lengths: &[u32]) -> f64 {
        let capacity: f64 = lengths.iter().zip(&self.slowness).map(|(&length, slow)| f64::from(length) / slow).sum();
        if capacity == 0.0 {
            return 0.0;
        }
        let mut shortest = Shortest::new(self.topology.switches().len());
        let weights: Vec<f64> = lengths.iter().map(|&length| f64::from(length)).collect();
        let mut row = vec![0.0; self.topology.switches().len()];
        let mut covered = 0.0;
        for &source in &self.sources {
            shortest.run(self, source, &weights);
            self.demand.row(source, &mut row);
            covered += shortest.order.iter().map(|&switch| shortest.distance[switch] * row[switch]).sum::<f64>();
        }
        covered / capacity
    }

    /// Keeps `lengths` if they prove more.
    fn keep_better(&self, lengths: &[u32], best: &mut LoadBound) {
        let load = self.proven(lengths);
        if load > best.load * (1.0 + 1e-12) {
            *best = LoadBound { load, certificate: Bound { lengths: lengths.to_vec() } };
        }
    }
}

/// Lengths as integers in the same proportion.
fn rounded(lengths: &[f64]) -> Vec<u32> {
    let longest = lengths.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    lengths.iter().map(|length| (length / longest * LENGTH_MAX).round() as u32).collect()
}
