//! Trees and order in alternation: each is improved while the other holds still.
//!
//! With the order fixed, local search and rebuilding balance the trees. Then trees are grown that may break the order
//! at a penalty: where they are cheaper than the real ones, the turns that they take are *wanted*, each pair's by what
//! it would save. Sifting the order by the turns that are in use plus those that are wanted legalises some of the
//! latter and breaks some trees; these are regrown within the new order. If one cannot be, the step was too large: it
//! is taken back, and the next sifts fewer channels. A cycle that ends not much worse than it began is kept.
//!
//! ```text
//!   ┌─▶ local search ─▶ wanted turns ─▶ sift ─▶ mend broken trees ─▶ rebuild all ─┐
//!   └─────────────────────────────────────────────────────────────────────────────┘
//! ```

use fabric::rng::Rng;

use super::{
    build::Rule,
    depth::is_too_deep,
    forest::Source,
    improve::{Next, Search, Stop, improve},
    net::{NONE, Net},
    order::Sifting,
    price::PathPrices,
    schedule::{BENDING, GROWING, Lateness, PRICES, REATTACHING},
    search::rank_of,
    state::{Context, SearchState},
};
use crate::{SearchPart, exponential::between};

/// Most turns for which orders are changed: tables are as large as that.
pub(super) const TURNS_MAX: usize = 1 << 24;

/// A run of cycles, which can be continued.
pub(super) struct Alternation {
    pub(super) best: SearchState,
    course: Course,
}

/// Where a run stands.
struct Course {
    /// The last state that was kept, and the norm of its loads.
    current: SearchState,
    norm: f64,
    /// `wanted[lane][turn]`; empty if there are no orders, if they are to stay, or if there are too many turns to change them.
    wanted: Vec<Vec<f32>>,
    /// Share of the channels sifted in a cycle.
    share: f64,
}

impl Alternation {
    pub(super) fn new(context: &Context<'_, '_>, state: SearchState) -> Self {
        let tables = if context.net.turns <= TURNS_MAX { state.rank.len() } else { 0 };
        let wanted = vec![vec![0.0; context.net.turns]; tables];
        Self { best: state.clone(), course: Course { norm: f64::INFINITY, current: state, wanted, share: 1.0 } }
    }

    /// The same, for a run that changes trees alone and keeps the orders.
    pub(super) fn within_order(state: SearchState) -> Self {
        let wanted = Vec::new();
        Self { best: state.clone(), course: Course { norm: f64::INFINITY, current: state, wanted, share: 1.0 } }
    }

    /// Goes on until so many channels have been visited, time is up, or the load is no more than `enough`.
    pub(super) fn run(&mut self, context: &mut Context<'_, '_>, visits: u64, enough: f64) {
        let stop = Stop { enough, cycles: usize::MAX, visits: context.work.total().saturating_add(visits) };
        let state = self.course.current.clone();
        improve(&mut Cycle { course: &mut self.course, context }, &mut self.best, state, stop);
    }
}

/// The moves of a run: subtrees in a sweep, channel orders and whole trees between two sweeps.
struct Cycle<'r, 'a, 'w> {
    course: &'r mut Course,
    context: &'r mut Context<'a, 'w>,
}

impl Search for Cycle<'_, '_, '_> {
    type Candidate = SearchState;

    fn net(&self) -> &Net {
        self.context.net
    }

    fn is_spent(&self, visits: u64) -> bool {
        self.context.work.is_spent(visits)
    }

    fn sweep(&mut self, state: &mut SearchState) {
        let context = &mut *self.context;
        context.polish(state);
        debug_assert!(state.is_sound(context.net, context.sources), "loads or orders differ from a recount");
        if state.forest.norm(context.net) < self.course.norm * REATTACHING.finest_norm {
            context.reattach(state, REATTACHING.finest);
        }
    }

    fn accept(&mut self, state: &mut SearchState, best: &SearchState) {
        let Self { course, context } = self;
        let norm = state.forest.norm(context.net);
        if norm <= course.norm * (1.0 + BENDING.tolerance * context.rng.unit_f64()) {
            course.norm = norm;
            course.current.clone_from(state);
        } else {
            state.clone_from(if context.rng.below(BENDING.restart) == 0 { best } else { &course.current });
        }
    }

    fn cool(&mut self, state: &mut SearchState, _cycles: usize) -> Next {
        let Self { course, context } = self;
        if !course.wanted.is_empty() && context.work.uses(SearchPart::Bend) {
            course.bend(context, state);
            if !mend(context, state) {
                course.share = (course.share * BENDING.rollback).max(2.0 / context.net.channels as f64);
                state.clone_from(&course.current);
                return Next::Again;
            }
            course.share = (course.share * BENDING.advance).min(1.0);
        }
        let [least, more] = BENDING.rebuilding;
        let sharpness = least + more * context.rng.unit_f64();
        if context.rng.unit_f64() < BENDING.rebuilds && context.work.uses(SearchPart::Rebuild) {
            rebuild(context, state, sharpness);
        }
        Next::Sweep
    }
}

impl Course {
    /// Sifts the orders toward the turns that are used or wanted.
    fn bend(&mut self, context: &mut Context<'_, '_>, state: &mut SearchState) {
        let net = context.net;
        let mut random = |[first, last]: [f64; 2]| between(first, last, context.rng.unit_f64());
        let sharpness = random(BENDING.sharpness);
        let prices = PathPrices::new(net, &state.forest.load, sharpness, PRICES.floor);
        let penalty = random(BENDING.penalty) as f32;
        let steadiness = random(BENDING.steadiness) as f32;
        let asked = context.shuffled_sources();
        let asked = &asked[..asked.len().min(BENDING.asked_max)];
        self.wanted.iter_mut().flatten().for_each(|wanted| *wanted *= BENDING.memory);
        let mut wish = vec![NONE; net.switches];
        let mut weight = vec![0.0_f64; net.switches];
        for &source in asked {
            if context.work.expired() {
                return;
            }
            let root = context.sources[source].root;
            let Some(rank) = state.rank_of(source) else { return };
            context.builder.grow(net, root, &prices.price, Rule::Soft(rank, penalty), &mut wish);
            context.work.spend(5 * net.channels);
            let (inward, _) = state.forest.tree(source);
            weight.fill(0.0);
            let cost = |inward: &[u32], switch: usize| {
                let (mut at, mut sum) = (switch, 0.0);
                while at != root {
                    sum += f64::from(prices.price[inward[at] as usize]);
                    at = net.tail(inward[at]);
                }
                sum
            };
            let shares = context.sources[source].shares(net);
            for (switch, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0) {
                let gain = (cost(inward, switch) - cost(&wish, switch)).clamp(0.0, BENDING.gain_max);
                if gain > 0.0 {
                    let pairs = f64::from(share) * context.sources[source].senders() as f64;
                    let mut at = switch;
                    while at != root {
                        weight[at] += 2.0 * gain * pairs;
                        at = net.tail(wish[at]);
                    }
                }
            }
            let wanted = &mut self.wanted[usize::from(state.lane[source])];
            for switch in (0..net.switches).filter(|&switch| weight[switch] > 0.0) {
                let tail = net.tail(wish[switch]);
                if tail != root {
                    wanted[net.turn(wish[tail], wish[switch])] += weight[switch] as f32 * (1.0 - BENDING.memory);
                }
            }
        }
        let every = context.sources.len() as f32 / asked.len().max(1) as f32;
        let mut pull = vec![0.0_f32; net.turns];
        let mut folded = vec![0.0_f32; if net.symmetry.is_some() { net.turns } else { 0 }];
        let share = self.share * between(BENDING.share[0], BENDING.share[1], context.rng.unit_f64());
        for lane in 0..state.rank.len() {
            pull.iter_mut().zip(&self.wanted[lane]).for_each(|(pull, wanted)| *pull = every * wanted);
            for (number, source) in context.sources.iter().enumerate() {
                if usize::from(state.lane[number]) != lane {
                    continue;
                }
                let (inward, below) = state.forest.tree(number);
                for switch in 0..net.switches {
                    if below[switch] > 0 && inward[switch] != NONE {
                        let tail = net.tail(inward[switch]);
                        if tail != source.root {
                            let pairs = (u64::from(below[switch]) * source.senders()) as f32;
                            pull[net.turn(inward[tail], inward[switch])] += steadiness * pairs;
                        }
                    }
                }
            }
            if net.symmetry.is_some() {
                net.fold_turns(lane, &pull, &mut folded);
                continue;
            }
            let sifting = sifting(share, &mut context.rng);
            let visits = context.sifter.sift(net, &mut state.rank[lane], &pull, sifting, &mut context.rng);
            context.work.spend(visits);
        }
        if let Some(symmetry) = &net.symmetry {
            let sifting = sifting(share, &mut context.rng);
            let visits = context.sifter.sift(net, &mut state.rank[0], &folded, sifting, &mut context.rng);
            symmetry.spread(&mut state.rank);
            context.work.spend(visits);
        }
    }
}

/// Sifts once, or where many channels are sifted, once or twice.
fn sifting(share: f64, rng: &mut Rng) -> Sifting {
    Sifting { share, sweeps: if share < BENDING.sifted_twice_share { 1 } else { 1 + rng.below(2) } }
}

/// Mends trees that the order has broken; false if one cannot be, or time is up.
pub(super) fn mend(context: &mut Context<'_, '_>, state: &mut SearchState) -> bool {
    let net = context.net;
    let mut prices = PathPrices::new(net, &state.forest.load, GROWING.sharpness_again, PRICES.floor);
    let mut fallen = Vec::new();
    for (number, source) in context.sources.iter().enumerate() {
        let Some(rank) = rank_of(&state.rank, &state.lane, number) else { return true };
        falls(net, source.root, rank, state.forest.tree(number).0, &mut fallen);
        if !context.work.spend(net.switches / 4) {
            return false;
        }
        if fallen.is_empty() {
            continue;
        }
        let old = state.forest.tree(number).0.to_vec();
        state.forest.lift(net, number, source);
        old.iter().filter(|c| **c != NONE).for_each(|&c| prices.update(net, &state.forest.load, c));
        let inward = state.forest.tree_mut(number).0;
        for &switch in &fallen {
            reattach_rising(net, source.root, rank, &prices.price, inward, switch);
        }
        context.work.spend(20 * fallen.len());
        falls(net, source.root, rank, inward, &mut fallen);
        let mut mended = true;
        if !fallen.is_empty() || is_too_deep(net, source.root, inward) {
            mended = context.builder.grow_rising(net, source.root, &prices.price, rank, inward);
            context.work.spend(5 * net.channels);
        }
        if !mended {
            inward.copy_from_slice(&old);
        }
        state.forest.lay(net, number, source);
        if !mended {
            return false;
        }
        let new = state.forest.tree(number).0;
        new.iter().filter(|c| **c != NONE).for_each(|&c| prices.update(net, &state.forest.load, c));
    }
    true
}

/// The switches that a tree enters against its order, or not at all although they have hosts.
fn falls(net: &Net, root: usize, rank: &[u32], inward: &[u32], fallen: &mut Vec<usize>) {
    let falls = |switch: usize| {
        let channel = inward[switch];
        if channel == NONE {
            return net.hosts[switch] > 0 && switch != root;
        }
        let tail = net.tail(channel);
        tail != root && (inward[tail] == NONE || rank[inward[tail] as usize] >= rank[channel as usize])
    };
    fallen.clear();
    fallen.extend((0..net.switches).filter(|&switch| falls(switch)));
}

/// Moves a switch, and what is below it, to the cheapest channel by which the order allows to enter it, if there is one.
fn reattach_rising(net: &Net, root: usize, rank: &[u32], price: &[f32], inward: &mut [u32], switch: usize) {
    let latest = (net.from(switch).iter())
        .filter(|next| inward[net.head(**next)] == **next)
        .map(|next| rank[*next as usize])
        .min()
        .unwrap_or(u32::MAX);
    let mut best = (f32::INFINITY, NONE);
    'candidates: for channel in net.into(switch).filter(|channel| net.allows(root, *channel)) {
        let mut at = net.tail(channel);
        let own = rank[channel as usize];
        if own >= latest || (at != root && (inward[at] == NONE || rank[inward[at] as usize] >= own)) {
            continue;
        }
        let mut cost = price[channel as usize];
        while at != root {
            // Other turns may still fall, so what is below cannot be told by rank.
            if at == switch || inward[at] == NONE || cost >= best.0 {
                continue 'candidates;
            }
            cost += price[inward[at] as usize];
            at = net.tail(inward[at]);
        }
        if cost < best.0 {
            best = (cost, channel);
        }
    }
    if best.1 != NONE {
        inward[switch] = best.1;
    }
}

impl SearchState {
    /// Whether loads are those of the trees counted from nothing, and every tree rises in its order.
    fn is_sound(&self, net: &Net, sources: &[Source]) -> bool {
        let rises = |(number, source): (usize, &Source)| {
            let mut fallen = Vec::new();
            if let Some(rank) = self.rank_of(number) {
                falls(net, source.root, rank, self.forest.tree(number).0, &mut fallen);
            }
            fallen.is_empty()
        };
        self.forest.is_counted(net, sources) && sources.iter().enumerate().all(rises)
    }
}

/// Lifts and regrows every tree against the load of all others, within its order or that of another lane.
pub(super) fn rebuild(context: &mut Context<'_, '_>, state: &mut SearchState, sharpness: f64) {
    let net = context.net;
    let mut prices = PathPrices::new(net, &state.forest.load, sharpness, PRICES.floor);
    let (mut grown, mut other) = (vec![NONE; net.switches], vec![NONE; net.switches]);
    for number in context.shuffled_sources() {
        let source = &context.sources[number];
        state.forest.lift(net, number, source);
        let old = state.forest.tree(number).0;
        old.iter().filter(|c| **c != NONE).for_each(|&c| prices.update(net, &state.forest.load, c));
        let rule = |lane: usize| match state.rank.get(lane) {
            Some(rank) => Rule::Strict(rank, Lateness::Costs(0.0)),
            None => Rule::Free,
        };
        let mut lane = usize::from(state.lane[number]);
        let mut reached = context.builder.grow(net, source.root, &prices.price, rule(lane), &mut grown);
        if state.rank.len() > 1 {
            let total = if reached { context.builder.total(source.shares(net)) } else { f64::INFINITY };
            let elsewhere = (lane + 1 + context.rng.below(state.rank.len() - 1)) % state.rank.len();
            let fits = context.builder.grow(net, source.root, &prices.price, rule(elsewhere), &mut other);
            context.work.spend(5 * net.channels);
            if fits && context.builder.total(source.shares(net)) < total {
                (lane, reached) = (elsewhere, true);
                std::mem::swap(&mut grown, &mut other);
            }
        }
        if reached {
            state.lane[number] = lane as u8;
            state.forest.tree_mut(number).0.copy_from_slice(&grown);
        }
        state.forest.lay(net, number, source);
        let new = state.forest.tree(number).0;
        new.iter().filter(|c| **c != NONE).for_each(|&c| prices.update(net, &state.forest.load, c));
        if !context.work.spend(5 * net.channels) {
            return;
        }
    }
}

/// What to do when time runs out with trees missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Give up: there are other trees.
    Short,
    /// Finish: there is nothing else.
    Endless,
}

/// Grows all trees one after the other, each against the load of those before; false if the order forbids one.
pub(super) fn grow_all(context: &mut Context<'_, '_>, state: &mut SearchState, patience: Patience) -> bool {
    let net = context.net;
    let mut grown = vec![NONE; net.switches];
    let first_prices = |load: &[u64]| PathPrices::new(net, load, GROWING.sharpness, PRICES.floor_first);
    let mut prices = first_prices(&state.forest.load);
    for (turn, number) in context.shuffled_sources().into_iter().enumerate() {
        let source = &context.sources[number];
        let reached = match state.rank_of(number) {
            Some(rank) => context.builder.grow_rising(net, source.root, &prices.price, rank, &mut grown),
            None => context.builder.grow(net, source.root, &prices.price, Rule::Free, &mut grown),
        };
        if !reached {
            return false;
        }
        state.forest.tree_mut(number).0.copy_from_slice(&grown);
        state.forest.lay(net, number, source);
        if !context.work.spend(5 * net.channels) && patience == Patience::Short {
            return false;
        }
        if turn < GROWING.repricing || turn % (turn / GROWING.repricing) == 0 {
            prices = first_prices(&state.forest.load);
        } else {
            grown.iter().filter(|c| **c != NONE).for_each(|&c| prices.update(net, &state.forest.load, c));
        }
    }
    true
}
