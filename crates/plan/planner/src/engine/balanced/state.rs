//! Where a search stands: trees, the lane of each, and each lane's order of channels; and what every search needs.

use fabric::rng::Rng;

use super::{
    build::Builder,
    forest::{Forest, Source},
    net::{NONE, Net},
    order::Sifter,
    search::{Effort, Rules, Scratch, rank_of, reattach},
    symmetry::Symmetry,
    work::Work,
};
use crate::{SearchPart, exponential::exp};

/// Trees, lanes and orders. Without orders every turn is allowed.
#[derive(Clone)]
pub(super) struct SearchState {
    pub(super) forest: Forest,
    /// `lane[source]`.
    pub(super) lane: Vec<u8>,
    /// `rank[lane][channel]`: rises along every path of the lane's trees; empty if cycles are allowed.
    pub(super) rank: Vec<Vec<u32>>,
}

impl SearchState {
    /// The order that a source's tree must keep, if any.
    #[inline]
    pub(super) fn rank_of(&self, source: usize) -> Option<&[u32]> {
        rank_of(&self.rank, &self.lane, source)
    }

    /// Where a search for all sources stands: the trees of a few, which this state has, and all their images.
    pub(super) fn unfolded(&self, symmetry: &Symmetry, net: &Net, few: &[Source], all: &[Source]) -> Self {
        let mut number = vec![usize::MAX; net.switches];
        all.iter().enumerate().for_each(|(at, source)| number[source.root] = at);
        let (mut forest, mut lane) = (Forest::bare(net, all.len()), vec![0; all.len()]);
        for (at, source) in few.iter().enumerate() {
            let (inward, _) = self.forest.tree(at);
            for element in symmetry.elements() {
                let there = number[element.switch[source.root] as usize];
                lane[there] = self.lane[at] ^ element.lane;
                let image = forest.tree_mut(there).0;
                for (switch, &channel) in inward.iter().enumerate().filter(|(_, channel)| **channel != NONE) {
                    image[element.switch[switch] as usize] = element.channel[channel as usize];
                }
            }
        }
        all.iter().enumerate().for_each(|(at, source)| forest.lay(net, at, source));
        Self { forest, lane, rank: self.rank.clone() }
    }

    /// What makes one state better than another: the most loaded channel, then fewer hops.
    pub(super) fn quality(&self, net: &Net) -> (f64, u64) {
        (self.forest.peak(net), self.forest.hops())
    }
}

/// What searches share: the network, who sends, the tables and the sources of randomness and time.
pub(super) struct Context<'a, 'w> {
    pub(super) net: &'a Net,
    pub(super) sources: &'a [Source],
    pub(super) builder: Builder,
    pub(super) scratch: Scratch,
    pub(super) sifter: Sifter,
    pub(super) rng: Rng,
    pub(super) work: &'a mut Work<'w>,
}

impl<'a, 'w> Context<'a, 'w> {
    pub(super) fn new(net: &'a Net, sources: &'a [Source], rng: Rng, work: &'a mut Work<'w>) -> Self {
        let (builder, scratch) = (Builder::new(net), Scratch::new(net, sources.len()));
        Self { net, sources, builder, scratch, sifter: Sifter::default(), rng, work }
    }

    /// Local search with rising sharpness.
    pub(super) fn polish(&mut self, state: &mut SearchState, sharpness: f64) {
        for share in [0.2, 0.5, 1.0] {
            self.reattach(state, Effort { sharpness: sharpness * share, ambition: 0.98, sweeps: 1 });
        }
    }

    pub(super) fn reattach(&mut self, state: &mut SearchState, effort: Effort) -> usize {
        if !self.work.uses(SearchPart::Reattach) {
            self.work.spend(self.net.channels);
            return 0;
        }
        let SearchState { forest, lane, rank } = state;
        let rules = Rules { net: self.net, sources: self.sources, lane, rank };
        reattach(rules, forest, &mut self.scratch, effort, &mut self.rng, self.work)
    }

    pub(super) fn shuffled_sources(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        self.rng.shuffle(&mut order);
        order
    }
}

/// Prices for whole paths: exponential in the load, with a floor so that hops count too.
pub(super) struct PathPrices {
    pub(super) price: Vec<f32>,
    sharpness: f64,
    floor: f64,
    peak: f64,
    scale: f64,
}

impl PathPrices {
    /// Scaled so that the average hop costs 1.
    pub(super) fn new(net: &Net, load: &[u64], sharpness: f64, floor: f64) -> Self {
        let times = (0..net.channels).map(|channel| load[channel] as f64 * net.slowness_of(channel));
        let peak = times.fold(1.0, f64::max);
        let mut prices = Self { price: vec![0.0; net.channels], sharpness, floor, peak, scale: 1.0 };
        let (mut weighted, mut all) = (0.0, 0.0);
        for channel in 0..net.channels {
            let price = prices.at(net, load, channel);
            weighted += price * load[channel] as f64;
            all += load[channel] as f64;
        }
        if weighted > 0.0 {
            prices.scale = all / weighted;
        }
        for channel in 0..net.channels {
            prices.price[channel] = (prices.scale * prices.at(net, load, channel)) as f32;
        }
        prices
    }

    /// Follows a change of a channel's load.
    #[inline]
    pub(super) fn update(&mut self, net: &Net, load: &[u64], channel: u32) {
        let price = (self.scale * self.at(net, load, channel as usize)) as f32;
        net.twins(channel).iter().for_each(|twin| self.price[*twin as usize] = price);
    }

    #[inline]
    fn at(&self, net: &Net, load: &[u64], channel: usize) -> f64 {
        let slowness = net.slowness_of(channel);
        let share = load[channel] as f64 * slowness / self.peak;
        // Beyond twice the peak prices rise no more, so that single precision always holds them.
        slowness * (exp(self.sharpness * (share - 1.0).min(1.0).min(20.0 / self.sharpness)) + self.floor)
    }
}
