//! Suggesting cables: which further cables between free ports lower the maximum load most.
//!
//! Pairs of switches with free ports are ranked by what the bound's own lengths prove of them (`rank.rs`). The best get their
//! real bound, the best of these are really planned, and the cable with the lowest maximum load is taken; then the same goes on
//! with that cable in place.
//!
//! ```text
//!   plan ─▶ rank all pairs ─▶ bound the best 32 ─▶ plan the best 6 ─▶ take one ─▶ rank all pairs …
//! ```
//! The search makes no plans itself: whoever drives it asks what to plan next ([`CableSearch::poll_step`]), plans it as
//! long as time allows, and hands the plan back ([`CableSearch::handle_plan`]). Plans made in as many steps as [`crate::plan`]
//! takes are those that `plan` makes of the cabling with the suggested cables.

mod rank;

use std::vec;

use fabric::{Bound, Plan, Policy, PortId, PortNames, SwitchId, Topology, TopologyBuilder};

use self::rank::{Candidate, RankingInput, candidates};
use crate::{PlanError, bound, demand::Demand};

/// Pairs of switches that get a bound of their own, for each cable.
const BOUNDED_MAX: usize = 32;
/// Cables that are really planned, for each that is suggested: those with the lowest bounds.
const PLANNED_BY_BOUND: usize = 4;
/// Further ones that are planned: those that save most hops.
const PLANNED_BY_HOPS: usize = 2;
/// Figures that differ by no more than this part are the same.
const NEAR: f64 = 1e-9;

/// The ports of a topology's switches into which nothing is plugged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePorts {
    /// `of[switch]`: its free ports that are known, in front-panel order.
    pub of: Vec<Vec<PortId>>,
    /// Switches whose model lists their ports, all of which are taken.
    pub full: Vec<SwitchId>,
    /// Switches of a model that does not list ports, and for which the topology names no port without a cable.
    pub unknown: Vec<SwitchId>,
}

impl FreePorts {
    /// The free ports of a topology; the controller's port and those of standby edges are not free. Cost: O(ports · standby edges).
    pub fn of(topology: &Topology) -> Self {
        let is_free = |id: &PortId| topology.is_free(*id) && topology.port(*id).lag().is_none();
        let of: Vec<Vec<PortId>> =
            topology.switch_ids().map(|switch| topology.port_ids(switch).filter(is_free).collect()).collect();
        let taken = topology.switch_ids().filter(|switch| of[switch.index()].is_empty());
        let (unknown, full) = taken.partition(|switch| topology.switch(*switch).model.ports == PortNames::Any);
        Self { of, full, unknown }
    }

    /// The switches with a free port, ascending.
    fn ends(&self) -> Vec<SwitchId> {
        SwitchId::all(self.of.len()).filter(|switch| !self.of[switch.index()].is_empty()).collect()
    }
}

/// How good a cabling is, and how good it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadFigures {
    /// No routing has a lower `max_channel_time`.
    pub load_bound: f64,
    /// As [`fabric::Summary::max_channel_load`].
    pub max_channel_load: f64,
    /// As [`fabric::Summary::max_channel_time`].
    pub max_channel_time: f64,
}

impl LoadFigures {
    fn of(plan: &Plan) -> Self {
        let fabric::Summary { load_bound, max_channel_load, max_channel_time, .. } = plan.summary;
        Self { load_bound, max_channel_load, max_channel_time }
    }

    /// Whether the maximum load is lower, or the same with a lower bound.
    fn is_better_than(&self, other: &Self) -> bool {
        let lower = |mine: f64, theirs: f64| mine < theirs * (1.0 - NEAR);
        lower(self.max_channel_time, other.max_channel_time)
            || !lower(other.max_channel_time, self.max_channel_time) && lower(self.load_bound, other.load_bound)
    }
}

/// A cable that lowers the maximum load, or prepares the next one to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuggestedCable {
    /// One end; a free port of the topology.
    pub a: PortId,
    /// The other end.
    pub b: PortId,
    /// With the cables that were suggested before it, without it.
    pub before: LoadFigures,
    /// With it.
    pub after: LoadFigures,
}

/// Why a search for cables ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CableEnd {
    /// As many cables were found as were asked for.
    Complete,
    /// There are no two switches with free ports any more.
    NoPorts,
    /// No further single cable lowers the maximum load, as far as was tried.
    NoGain {
        /// Pairs of switches with free ports.
        pairs: usize,
        /// How many of them were planned with a cable.
        planned: usize,
        /// How many could not be planned, and why the first of them could not.
        refused: Option<(usize, PlanError)>,
        /// Whether it is proven: the plan has the load of the bound, whose lengths hold with each of these cables.
        proven: bool,
    },
    /// Whoever drove the search stopped it.
    Stopped,
}

/// What a search for cables found.
#[derive(Clone, Debug, PartialEq)]
pub struct SuggestedCables {
    /// The figures without any of them; none if the search was stopped before.
    pub now: Option<LoadFigures>,
    /// In the order in which they were taken: figures of each include those before it. The last one lowers the maximum load.
    pub cables: Vec<SuggestedCable>,
    /// The rate of each: that of the fastest link.
    pub rate_bps: u64,
    /// Why there are no more.
    pub end: CableEnd,
}

/// What a search for cables does next.
#[derive(Debug)]
pub enum CableStep<'a> {
    /// This cabling is to be planned, and the outcome given to [`CableSearch::handle_plan`].
    Plan(&'a Topology),
    /// Work was done; there is more.
    Ranked,
    /// The search is over: [`CableSearch::finish`].
    Done,
}

/// A search for cables, driven by whoever has time and processors. Call [`Self::poll_step`] until it says that it is done.
#[derive(Clone, Debug)]
pub struct CableSearch {
    policy: Policy,
    threads: usize,
    wanted: usize,
    /// With the cables taken so far.
    topology: Topology,
    now: Option<LoadFigures>,
    taken: Vec<SuggestedCable>,
    stage: Stage,
    /// What the last round found to be of no use, if it is over.
    last: CableEnd,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The cabling itself is to be planned.
    Base,
    /// Candidates get their bounds.
    Ranking(Ranking),
    /// Candidates are planned.
    Trying(Box<Trying>),
    Ended(CableEnd),
}

#[derive(Clone, Debug)]
struct Ranking {
    before: LoadFigures,
    pairs: usize,
    /// Best first.
    waiting: vec::IntoIter<Candidate>,
    bounded: Vec<(f64, Trial)>,
    by_hops: Vec<Candidate>,
}

#[derive(Clone, Debug)]
struct Trial {
    ends: [SwitchId; 2],
    cable: [PortId; 2],
    topology: Topology,
}

#[derive(Clone, Debug)]
struct Trying {
    before: LoadFigures,
    pairs: usize,
    planned: usize,
    refused: Option<(usize, PlanError)>,
    trials: vec::IntoIter<Trial>,
    /// What is being planned.
    current: Option<Trial>,
    best: Option<(LoadFigures, Bound, Trial)>,
}

impl CableSearch {
    /// A search for up to `wanted` cables, for a policy that drains nothing, by at most so many threads; what it finds does not depend on how many there are.
    pub fn new(topology: &Topology, policy: &Policy, wanted: usize, threads: usize) -> Self {
        let (policy, topology) = (policy.clone(), topology.clone());
        let (now, taken, stage) = (None, Vec::new(), Stage::Base);
        Self { policy, threads, wanted, topology, now, taken, stage, last: CableEnd::Complete }
    }

    /// How many plans there are still to be made at most.
    pub fn plans_left_max(&self) -> usize {
        let each = PLANNED_BY_BOUND + PLANNED_BY_HOPS;
        let rounds = self.wanted.saturating_sub(self.taken.len());
        match &self.stage {
            Stage::Base => 1 + rounds * each,
            Stage::Ranking(_) => rounds * each,
            Stage::Trying(trying) => {
                trying.trials.len() + usize::from(trying.current.is_some()) + rounds.saturating_sub(1) * each
            }
            Stage::Ended(_) => 0,
        }
    }

    /// How many cables have been taken.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Works on, or says what is to be planned. Cost: one bound at most, and for each cable the ranking of all pairs.
    pub fn poll_step(&mut self) -> CableStep<'_> {
        match &mut self.stage {
            Stage::Base => return CableStep::Plan(&self.topology),
            Stage::Ended(_) => return CableStep::Done,
            Stage::Trying(_) => {}
            Stage::Ranking(ranking) => {
                if let Some(candidate) = ranking.waiting.next() {
                    if let Some(trial) = Trial::new(&self.topology, candidate.ends) {
                        let bound = bound_of(&trial.topology, &self.policy, self.threads).map_or(0.0, |bound| bound.0);
                        ranking.bounded.push((bound, trial));
                    }
                } else {
                    self.stop_ranking();
                }
                return CableStep::Ranked;
            }
        }
        let Stage::Trying(trying) = &mut self.stage else { unreachable!("all other stages have been served") };
        if trying.current.is_none() {
            trying.current = trying.trials.next();
        }
        if trying.current.is_none() {
            self.end_round();
            return CableStep::Ranked;
        }
        let Stage::Trying(trying) = &self.stage else { unreachable!("all other stages have been served") };
        CableStep::Plan(&trying.current.as_ref().expect("it was just set").topology)
    }

    /// Goes on to planning with the candidates that have been ranked.
    pub fn stop_ranking(&mut self) {
        let Stage::Ranking(ranking) = &mut self.stage else { return };
        let Ranking { before, pairs, bounded, by_hops, .. } = ranking;
        // The order of the ranking decides between equal bounds.
        bounded.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut trials: Vec<Trial> = bounded.drain(..).take(PLANNED_BY_BOUND).map(|(_, trial)| trial).collect();
        let known: Vec<[SwitchId; 2]> = trials.iter().map(|trial| trial.ends).collect();
        let others = by_hops.iter().filter(|candidate| !known.contains(&candidate.ends)).take(PLANNED_BY_HOPS);
        trials.extend(others.filter_map(|candidate| Trial::new(&self.topology, candidate.ends)));
        self.stage = Stage::Trying(Box::new(Trying {
            before: *before,
            pairs: *pairs,
            planned: 0,
            refused: None,
            trials: trials.into_iter(),
            current: None,
            best: None,
        }));
    }

    /// Takes the plan of the cabling that was asked for last.
    ///
    /// # Errors
    /// The refusal of the cabling without any further cable. A refusal with one is noted: the next one is tried.
    ///
    /// # Panics
    /// If no plan was asked for.
    pub fn handle_plan(&mut self, outcome: Result<Plan, PlanError>) -> Result<(), PlanError> {
        match &mut self.stage {
            Stage::Base => {
                let plan = outcome?;
                let figures = LoadFigures::of(&plan);
                self.now = Some(figures);
                self.begin_round(figures, &plan.bound);
                Ok(())
            }
            Stage::Trying(trying) => {
                let trial = trying.current.take().expect("a plan was asked for");
                match outcome {
                    Ok(plan) => {
                        trying.planned += 1;
                        let figures = LoadFigures::of(&plan);
                        let least = trying.best.as_ref().map_or(&trying.before, |(best, ..)| best);
                        if figures.is_better_than(least) {
                            trying.best = Some((figures, plan.bound, trial));
                        }
                    }
                    Err(error) => match &mut trying.refused {
                        Some((count, _)) => *count += 1,
                        none => *none = Some((1, error)),
                    },
                }
                Ok(())
            }
            Stage::Ranking(_) | Stage::Ended(_) => panic!("no plan was asked for"),
        }
    }

    /// Ends the search with the best that was found.
    pub fn stop(&mut self) {
        if matches!(self.stage, Stage::Ended(_)) {
            return;
        }
        if matches!(&self.stage, Stage::Trying(trying) if trying.best.is_some()) {
            self.end_round();
        }
        let complete = self.taken.len() >= self.wanted;
        self.stage = Stage::Ended(if complete { CableEnd::Complete } else { CableEnd::Stopped });
    }

    /// What was found. Cables at the end that lower the bound and not the maximum load are left out.
    pub fn finish(mut self) -> SuggestedCables {
        self.stop();
        let Stage::Ended(mut end) = self.stage else { unreachable!("it was just stopped") };
        let useless =
            |cable: &SuggestedCable| cable.after.max_channel_time >= cable.before.max_channel_time * (1.0 - NEAR);
        while self.taken.last().is_some_and(useless) {
            self.taken.pop();
            if end == CableEnd::Complete {
                end = self.last.clone();
            }
        }
        SuggestedCables { now: self.now, cables: self.taken, rate_bps: self.topology.rate_max_bps(), end }
    }

    /// Ranks the pairs of switches with free ports.
    fn begin_round(&mut self, before: LoadFigures, bound: &Bound) {
        if self.taken.len() >= self.wanted {
            self.stage = Stage::Ended(CableEnd::Complete);
            return;
        }
        let ends = FreePorts::of(&self.topology).ends();
        let Some(demand) = demand(&self.topology, &self.policy).filter(|_| ends.len() > 1) else {
            self.stage = Stage::Ended(CableEnd::NoPorts);
            return;
        };
        let input =
            RankingInput { topology: &self.topology, demand: &demand, lengths: &bound.lengths, seed: self.policy.seed };
        let (mut list, pairs) = candidates(&input, &ends);
        // Where the load is that of the bound, only a lower bound can help.
        let is_tight = before.max_channel_time <= before.load_bound * (1.0 + NEAR);
        let whole = list.len() == pairs || list.iter().any(|candidate| candidate.span == 0);
        if is_tight {
            list.retain(|candidate| candidate.span > 0 && candidate.floor < before.load_bound * (1.0 - NEAR));
        }
        if list.is_empty() {
            self.stage = Stage::Ended(CableEnd::NoGain { pairs, planned: 0, refused: None, proven: whole });
            return;
        }
        let mut by_hops = list.clone();
        by_hops.sort_by(|a, b| b.saved.total_cmp(&a.saved));
        by_hops.truncate(PLANNED_BY_BOUND + PLANNED_BY_HOPS);
        list.truncate(BOUNDED_MAX);
        let bounded = Vec::with_capacity(list.len());
        self.stage = Stage::Ranking(Ranking { before, pairs, waiting: list.into_iter(), bounded, by_hops });
    }

    /// Takes the best cable that was planned, or ends the search.
    fn end_round(&mut self) {
        let Stage::Trying(trying) = &mut self.stage else { return };
        let Trying { before, pairs, planned, ref refused, .. } = **trying;
        let useless = CableEnd::NoGain { pairs, planned, refused: refused.clone(), proven: false };
        self.last = useless.clone();
        match trying.best.take() {
            None => self.stage = Stage::Ended(useless),
            Some((after, bound, trial)) => {
                let [a, b] = trial.cable;
                self.taken.push(SuggestedCable { a, b, before, after });
                self.topology = trial.topology;
                self.begin_round(after, &bound);
            }
        }
    }
}

impl Trial {
    /// The topology with a cable between the first free ports of two switches, of the rate of the fastest link; none if there can
    /// be no such cable.
    fn new(topology: &Topology, ends: [SwitchId; 2]) -> Option<Self> {
        let free = FreePorts::of(topology);
        let [a, b] = ends.map(|switch| free.of[switch.index()].first().copied());
        let cable = [a?, b?];
        let mut builder = TopologyBuilder::of(topology);
        builder.add_link(cable[0], cable[1], topology.rate_max_bps()).ok()?;
        Some(Self { ends, cable, topology: builder.finish().ok()? })
    }
}

fn demand(topology: &Topology, policy: &Policy) -> Option<Demand> {
    Some(Demand::new(topology, &*policy.demand(topology).ok()?))
}

/// The bound of a cabling, as its plan would state it, and its lengths.
fn bound_of(topology: &Topology, policy: &Policy, threads: usize) -> Option<(f64, Bound)> {
    let found = bound::bound(topology, &demand(topology, policy)?, threads);
    Some((found.load, found.certificate))
}
