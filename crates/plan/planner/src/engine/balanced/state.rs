//! Where a search stands: trees, the lane of each, and each lane's order of channels; and what every search needs.

use fabric::rng::Rng;

use super::{
    build::Builder,
    forest::{Forest, Source},
    improve::{Candidate, Quality},
    net::{NONE, Net},
    order::Sifter,
    schedule::{Effort, REATTACHING},
    search::{Rules, Scratch, rank_of, reattach},
    symmetry::Symmetry,
    work::Work,
};
use crate::SearchPart;

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
}

impl Candidate for SearchState {
    fn quality(&self, net: &Net) -> Quality {
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

    /// Reattaches subtrees at rising sharpness.
    pub(super) fn polish(&mut self, state: &mut SearchState) {
        REATTACHING.cycle.into_iter().for_each(|effort| _ = self.reattach(state, effort));
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
