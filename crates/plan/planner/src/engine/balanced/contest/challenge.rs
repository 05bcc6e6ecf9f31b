//! Orders that are annealed to challenge the best start.
//!
//! An order is randomly chosen, or the best one is reheated a little; trees are grown within it and rebuilt, and of several tries
//! only the one with the best trees joins the contest.
//!
//! ```text
//!   random order   ─┐
//!   best, reheated ─┼─▶ annealed ─▶ trees ─▶ rebuilt twice ─▶ the best of a few tries
//!   valid order    ─┘
//! ```

use fabric::rng::Rng;

use super::{Contest, Runner};
use crate::{
    Start,
    engine::balanced::{
        alternate::{Alternation, Patience, grow_all, rebuild},
        anneal::{self, Annealing, Schedule},
        forest::{Forest, Source},
        state::{Context, SearchState},
        work::Work,
    },
};

/// Rounds of annealing, which grow from one challenge to the next; the first is for where there is nothing else.
const ANNEALING_ROUNDS: [usize; 3] = [30, 200, 400];
/// The same for long paths, which are never annealed in a hurry.
const ANNEALING_ROUNDS_LONG: usize = 250;
/// Most batches of sources that are swept in a round of annealing, at first and once the penalty is high.
const BATCHES_MAX: [usize; 2] = [32, usize::MAX];
/// The same in the first challenge.
const BATCHES_MAX_FIRST: [usize; 2] = [8, 32];
/// Most orders annealed at a time, of which only that with the best trees joins.
const TRIES_MAX: u64 = 4;
/// How much of its annealing is done already when an order is not random: the best so far is reheated less than one
/// that is merely valid.
const DONE_BEST: f64 = 0.6;
const DONE_VALID: f64 = 0.3;
/// With more sources than this a random order takes too long to become valid.
const LOTS_MAX: usize = 1024;
/// Sharpness of local search on trees within an order that was just annealed, and of rebuilding them.
const SHARPNESS: f64 = 100.0;
const REBUILDING: f64 = 20.0;
/// How often they are rebuilt before orders are compared.
const REBUILDS: usize = 2;
/// Average hops from which on paths count as long.
const HOPS_LONG: f64 = 5.0;

/// Orders to anneal, and how.
pub(super) struct Challenge {
    sources: Vec<Source>,
    lane: Vec<u8>,
    lanes: usize,
    begin: Begin,
    pub(super) schedule: Schedule,
    pub(super) tries: u64,
    rng: Rng,
}

/// Where annealing begins.
enum Begin {
    /// With random orders.
    Lots,
    /// With the best so far.
    Best(Vec<Vec<u32>>),
    /// With orders that serve everybody: up*/down* ones, where what comes out is not as good but never breaks; ring cuts where
    /// trees are images of a few.
    Valid,
}

impl Contest<'_> {
    /// What to anneal next.
    pub(super) fn challenge(&mut self, sources: &[Source], lanes: usize, turn: usize) -> Challenge {
        let mut rng = Rng::new(self.rng.next_u64());
        let mut lane: Vec<u8> = (0..sources.len()).map(|number| (number % lanes) as u8).collect();
        rng.shuffle(&mut lane);
        let long = self.has_long_paths(sources);
        let stage = turn.min(2);
        let schedule = match (long, turn) {
            (false, 0) => Schedule {
                rounds: ANNEALING_ROUNDS[0],
                extra_max: 2 * ANNEALING_ROUNDS[0],
                done: 0.0,
                penalty: 0.2,
                memory: 0.9,
                urgency: 100.0,
                sweeps: 2,
                batches_max: BATCHES_MAX_FIRST,
            },
            (false, _) => Schedule {
                rounds: ANNEALING_ROUNDS[stage],
                extra_max: ANNEALING_ROUNDS[stage] / 2,
                done: 0.0,
                penalty: 0.2,
                memory: if turn % 2 == 1 { 0.9 } else { 0.95 },
                urgency: 100.0,
                sweeps: 2,
                batches_max: BATCHES_MAX,
            },
            // Long paths need more falls at first, and time to lose them.
            (true, _) => Schedule {
                rounds: ANNEALING_ROUNDS_LONG,
                extra_max: ANNEALING_ROUNDS_LONG * 3 / 2,
                done: 0.0,
                penalty: 0.05,
                memory: 0.5,
                urgency: 300.0,
                sweeps: 3,
                batches_max: BATCHES_MAX,
            },
        };
        let tries = (2 * self.slice(sources.len()) / anneal::cost(self.net, sources.len(), schedule).max(1)).max(1);
        let (tries, sources) = (if turn == 0 { 1 } else { tries.min(TRIES_MAX) }, sources.to_vec());
        let (begin, sources, lane) = match self.runners.first().filter(|_| turn % 2 == 0 && turn > 2) {
            Some(Runner { sources, alternation: Alternation { best, .. }, .. }) => {
                (Begin::Best(best.rank.clone()), sources.clone(), best.lane.clone())
            }
            None if sources.len() <= LOTS_MAX && self.net.symmetry.is_none() => (Begin::Lots, sources, lane),
            None => (Begin::Valid, sources, lane),
        };
        Challenge { sources, lane, lanes, begin, schedule, tries, rng }
    }

    /// Whether the best paths so far are long.
    pub(super) fn has_long_paths(&self, sources: &[Source]) -> bool {
        let pairs = sources.iter().map(|source| source.total(self.net)).sum::<u64>().max(1);
        let hops = self.runners.first().map_or(0, |runner| runner.alternation.best.forest.hops());
        hops as f64 / pairs as f64 > HOPS_LONG
    }

    /// Anneals orders, grows trees within them, and keeps the best.
    pub(super) fn challenger(&self, challenge: Challenge, work: &mut Work<'_>) -> Option<Runner> {
        let Challenge { sources, lane, lanes, mut begin, schedule, tries, mut rng } = challenge;
        let start = if matches!(begin, Begin::Best(_)) { Start::Reheated } else { Start::Annealed };
        let origins = anneal::origins(self.net, &sources);
        // The state to go on from, and the best one, which may differ a little.
        let mut best: Option<(f64, SearchState, SearchState)> = None;
        let mut turn = 0;
        while turn < tries && !work.expired() {
            turn += 1;
            let (rank, done) = match &begin {
                Begin::Lots => (anneal::random_orders(self.net, lanes, &mut rng), 0.0),
                Begin::Best(rank) => (rank.clone(), DONE_BEST),
                Begin::Valid => (self.valid_orders(lanes), DONE_VALID),
            };
            let schedule = Schedule { done, ..schedule };
            let annealing = Annealing { origins: &origins, lane: &lane, closed: &[], schedule };
            let Some(rank) = anneal::anneal(self.net, &annealing, rank, &mut rng, work) else {
                break;
            };
            let mut context = Context::new(self.net, &sources, Rng::new(rng.next_u64()), work);
            let mut state = SearchState { forest: Forest::bare(self.net, sources.len()), lane: lane.clone(), rank };
            // Where nothing is any good yet, what was annealed is made use of even if time is up.
            let patience = if self.is_hopeless() { Patience::Endless } else { Patience::Short };
            if !grow_all(&mut context, &mut state, patience) {
                if let (Begin::Lots, None) = (&begin, &best) {
                    // Something must come out of it.
                    begin = Begin::Valid;
                    turn -= 1;
                }
                continue;
            }
            context.polish(&mut state, SHARPNESS);
            for _ in 0..REBUILDS {
                rebuild(&mut context, &mut state, REBUILDING);
                context.polish(&mut state, SHARPNESS);
            }
            let norm = state.forest.norm(self.net);
            match &mut best {
                None => best = Some((norm, state.clone(), state)),
                Some((least, first, best)) => {
                    if state.quality(self.net) < best.quality(self.net) {
                        best.clone_from(&state);
                    }
                    if norm < *least {
                        (*least, *first) = (norm, state);
                    }
                }
            }
        }
        let (_, state, best) = best?;
        let mut alternation = Alternation::new(&Context::new(self.net, &sources, rng, work), state);
        alternation.best = best;
        Some(Runner { start, sources, alternation, slices: 0 })
    }
}
