//! Start: trees within a channel order that was annealed, random or the best one reheated.
//!
//! Exploits: nothing but the load. Where no structure says which turns to forbid, an order is annealed from nothing under
//! fractional routing (`anneal.rs`); trees are grown within it and rebuilt, and of several tries only the one with the best trees
//! joins the contest. Every other order is the best so far, reheated a little.
//! Wins: with flow control on networks without structure: torus 6x6 less 3,1, 1.03 to 1.11; random-regular graphs are won by it
//! or by bending of what it began. It is the most that can be won on large random graphs, which the ablation has not.
//! Costs: at most a quarter of all work; 30 rounds over eight batches of sources where it is in a hurry, then 200 and 400 over all.
//!
//! ```text
//!   random order   ─┐
//!   best, reheated ─┼─▶ annealed ─▶ trees ─▶ rebuilt twice ─▶ the best of a few tries
//!   valid order    ─┘
//! ```

use fabric::rng::Rng;

use super::updown::valid_orders;
use crate::{
    Start,
    engine::balanced::{
        alternate::{Alternation, Patience, grow_all, rebuild},
        anneal::{self, Annealing},
        forest::{Forest, Source},
        improve::{Candidate, is_better},
        net::Net,
        schedule::{ANNEALING, AnnealingSchedule, GROWING},
        state::{Context, SearchState},
        work::Work,
    },
};

/// Orders to anneal, and how.
pub(in crate::engine::balanced) struct Challenge {
    sources: Vec<Source>,
    lane: Vec<u8>,
    lanes: usize,
    begin: Begin,
    schedule: AnnealingSchedule,
    tries: u64,
    rng: Rng,
}

/// Where annealing begins.
enum Begin {
    /// With random orders.
    Random,
    /// With the best so far.
    Best(Vec<Vec<u32>>),
    /// With orders that serve everybody: up*/down* ones, where what comes out is not as good but never breaks; ring cuts where
    /// trees are images of a few.
    Valid,
}

/// What is known when an order is due.
pub(in crate::engine::balanced) struct Occasion<'a> {
    pub(in crate::engine::balanced) net: &'a Net,
    pub(in crate::engine::balanced) sources: &'a [Source],
    pub(in crate::engine::balanced) lanes: usize,
    /// Orders before this one; where nothing is in a hurry, the first counts as the second.
    pub(in crate::engine::balanced) turn: usize,
    /// Visits of a first slice.
    pub(in crate::engine::balanced) slice: u64,
    /// Whether the best paths so far are long.
    pub(in crate::engine::balanced) has_long_paths: bool,
    /// The best routes so far.
    pub(in crate::engine::balanced) best: Option<(&'a [Source], &'a SearchState)>,
}

/// What joins the contest.
pub(in crate::engine::balanced) struct Annealed {
    pub(in crate::engine::balanced) start: Start,
    pub(in crate::engine::balanced) sources: Vec<Source>,
    pub(in crate::engine::balanced) alternation: Alternation,
}

impl Challenge {
    /// What to anneal next.
    pub(in crate::engine::balanced) fn new(occasion: &Occasion<'_>, mut rng: Rng) -> Self {
        let &Occasion { net, sources, lanes, turn, slice, has_long_paths, best } = occasion;
        let mut lane: Vec<u8> = (0..sources.len()).map(|number| (number % lanes) as u8).collect();
        rng.shuffle(&mut lane);
        let schedule = match (has_long_paths, turn) {
            (true, _) => ANNEALING.long_paths,
            (false, 0) => ANNEALING.hurried,
            (false, 1) => ANNEALING.second,
            (false, _) => ANNEALING.later[turn % ANNEALING.later.len()],
        };
        let tries = (2 * slice / anneal::cost(net, sources.len(), schedule).max(1)).clamp(1, ANNEALING.tries_max);
        let tries = if turn == 0 { 1 } else { tries };
        let random = sources.len() <= ANNEALING.random_sources_max && net.symmetry.is_none();
        let (begin, sources, lane) = match best.filter(|_| turn % 2 == 0 && turn > 2) {
            Some((sources, best)) => (Begin::Best(best.rank.clone()), sources, best.lane.clone()),
            None => (if random { Begin::Random } else { Begin::Valid }, sources, lane),
        };
        Self { sources: sources.to_vec(), lane, lanes, begin, schedule, tries, rng }
    }

    /// Visits that annealing takes, about.
    pub(in crate::engine::balanced) fn cost(&self, net: &Net, sources: usize) -> u64 {
        self.tries * anneal::cost(net, sources, self.schedule)
    }

    /// Anneals orders, grows trees within them, and keeps the best.
    pub(in crate::engine::balanced) fn run(
        self,
        net: &Net,
        patience: Patience,
        work: &mut Work<'_>,
    ) -> Option<Annealed> {
        let Self { sources, lane, lanes, mut begin, schedule, tries, mut rng } = self;
        let start = if matches!(begin, Begin::Best(_)) { Start::Reheated } else { Start::Annealed };
        let origins = anneal::origins(net, &sources);
        // The state to go on from, and the best one, which may differ a little.
        let mut best: Option<(f64, SearchState, SearchState)> = None;
        let mut turn = 0;
        while turn < tries && !work.expired() {
            turn += 1;
            let (rank, done) = match &begin {
                Begin::Random => (anneal::random_orders(net, lanes, &mut rng), 0.0),
                Begin::Best(rank) => (rank.clone(), ANNEALING.done_best),
                Begin::Valid => (valid_orders(net, lanes), ANNEALING.done_valid),
            };
            let schedule = AnnealingSchedule { done, ..schedule };
            let annealing = Annealing { origins: &origins, lane: &lane, closed: &[], schedule };
            let Some(rank) = anneal::anneal(net, &annealing, rank, &mut rng, work) else {
                break;
            };
            let mut context = Context::new(net, &sources, Rng::new(rng.next_u64()), work);
            let mut state = SearchState { forest: Forest::bare(net, sources.len()), lane: lane.clone(), rank };
            if !grow_all(&mut context, &mut state, patience) {
                if let (Begin::Random, None) = (&begin, &best) {
                    // Something must come out of it.
                    begin = Begin::Valid;
                    turn -= 1;
                }
                continue;
            }
            context.polish(&mut state);
            for _ in 0..ANNEALING.rebuilds {
                rebuild(&mut context, &mut state, GROWING.sharpness_again);
                context.polish(&mut state);
            }
            let norm = state.forest.norm(net);
            match &mut best {
                None => best = Some((norm, state.clone(), state)),
                Some((least, first, best)) => {
                    if is_better(state.quality(net), best.quality(net)) {
                        best.clone_from(&state);
                    }
                    if norm < *least {
                        (*least, *first) = (norm, state);
                    }
                }
            }
        }
        let (_, state, best) = best?;
        let mut alternation = Alternation::new(&Context::new(net, &sources, rng, work), state);
        alternation.best = best;
        Some(Annealed { start, sources, alternation })
    }
}
