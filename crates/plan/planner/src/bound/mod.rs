//! A lower bound on how long the most loaded channel takes, with a certificate that anybody can check.
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

use fabric::{Bound, ChannelId, SwitchId, Topology};

use crate::{demand::Demand, threads::with_each};

use self::shortest::Shortest;

/// Lengths are stored as integers up to this.
const LENGTH_MAX: f64 = 1_000_000.0;

/// A bound within this factor of a routing's peak needs no more work.
const ENOUGH: f64 = 1.0005;

/// Groups of sources that may be worked on at the same time; fixed, so that sums are the same on any number of threads.
const CREWS: usize = 4;

/// A bound and its proof.
#[derive(Clone, Debug)]
pub(crate) struct LoadBound {
    /// No routing has a most loaded channel that takes less time.
    pub(crate) load: f64,
    /// The lengths that prove it.
    pub(crate) certificate: Bound,
}

/// The best bound that the budget of work finds. Cost: bounded, but at least two rounds of shortest paths from every
/// switch. The same bits on any number of threads.
pub(crate) fn bound(topology: &Topology, demand: &Demand, threads: usize) -> LoadBound {
    bound_within(topology, demand, ENOUGH, threads)
}

/// A bound that may be lower than the best by some factor. Cost: as that of [`bound`], less the work that the factor saves.
pub(crate) fn bound_within(topology: &Topology, demand: &Demand, enough: f64, threads: usize) -> LoadBound {
    let channels = topology.channel_count();
    let mut best = LoadBound { load: 0.0, certificate: Bound { lengths: vec![0; channels] } };
    let search = Search { enough, ..Search::new(topology, demand, threads) };
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

/// What lengths prove by themselves: `lengths[channel]`.
pub(crate) fn proven(topology: &Topology, demand: &Demand, lengths: &[u32]) -> f64 {
    Search::new(topology, demand, 1).proven(lengths)
}

/// How long the most loaded channel takes, or a little longer, where each demand splits over its own paths as suits all best:
/// `(amount, paths)`, a path being its channels. Cost: at most [`refine::SPLIT_ROUNDS`] times 20,000 visits of demands, or 8 to
/// 100 of each.
pub(crate) fn split(topology: &Topology, demands: Vec<(f64, Vec<Vec<u32>>)>) -> f64 {
    let slowness: Vec<f64> = topology.channel_ids().map(|channel| topology.slowness(channel)).collect();
    refine::split(&slowness, demands)
}

/// `distance[source][destination]` between switches in some lengths of channels; none from switches without hosts.
/// Cost: O(switches · links · log switches).
pub(crate) fn distances(topology: &Topology, lengths: &[u32]) -> Vec<Vec<f64>> {
    let demand = Demand::new(topology, &fabric::Traffic::AllToAll);
    let search = Search::new(topology, &demand, 1);
    let weights: Vec<f64> = lengths.iter().map(|&length| f64::from(length)).collect();
    let mut shortest = Shortest::new(topology.switches().len());
    let mut distance = vec![Vec::new(); topology.switches().len()];
    for source in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
        shortest.run(&search, source, &weights);
        distance[source.index()].clone_from(&shortest.distance);
    }
    distance
}

/// What searches for lengths share.
struct Search<'a> {
    topology: &'a Topology,
    demand: &'a Demand,
    /// Switches that send.
    sources: Vec<SwitchId>,
    /// How many threads may work at once.
    threads: usize,
    /// A bound within this factor of a routing's peak ends the search.
    enough: f64,
    /// `head[channel]`.
    head: Vec<usize>,
    /// Channels that leave each switch, with their heads; those of a switch begin at `ways_start[switch]`.
    ways: Vec<(ChannelId, u32)>,
    ways_start: Vec<usize>,
    /// `slowness[channel]`: the fastest link's rate over its own.
    slowness: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, demand: &'a Demand, threads: usize) -> Self {
        let (mut ways, mut ways_start) = (Vec::with_capacity(topology.channel_count()), vec![0]);
        for switch in topology.switch_ids() {
            let from = topology.channels_from(switch).iter();
            ways.extend(from.map(|&channel| (channel, topology.head(channel).index() as u32)));
            ways_start.push(ways.len());
        }
        Self {
            topology,
            demand,
            threads,
            enough: ENOUGH,
            ways,
            ways_start,
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
        let weights: Vec<f64> = lengths.iter().map(|&length| f64::from(length)).collect();
        let covered = self.in_crews(0.0, |shortest, source, row, covered| {
            shortest.run(self, source, &weights);
            self.demand.row(source, row);
            *covered += shortest.order.iter().map(|&switch| shortest.distance[switch] * row[switch]).sum::<f64>();
        });
        covered.into_iter().sum::<f64>() / capacity
    }

    /// Does something from every source, and returns what each of a fixed number of crews has gathered.
    fn in_crews<T: Clone + Send>(
        &self,
        nothing: T,
        act: impl Fn(&mut Shortest, SwitchId, &mut [f64], &mut T) + Sync,
    ) -> Vec<T> {
        let switches = self.topology.switches().len();
        let chunks = self.sources.chunks(self.sources.len().div_ceil(CREWS).max(1));
        let mut crews: Vec<(&[SwitchId], T)> = chunks.map(|chunk| (chunk, nothing.clone())).collect();
        with_each(self.threads, &mut crews, |(sources, gathered)| {
            let (mut shortest, mut row) = (Shortest::new(switches), vec![0.0; switches]);
            sources.iter().for_each(|&source| act(&mut shortest, source, &mut row, gathered));
        });
        crews.into_iter().map(|(_, gathered)| gathered).collect()
    }

    /// The channels that leave a switch, with their heads.
    #[inline]
    fn ways(&self, switch: usize) -> &[(ChannelId, u32)] {
        &self.ways[self.ways_start[switch]..self.ways_start[switch + 1]]
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
