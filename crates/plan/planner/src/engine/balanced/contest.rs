//! Starts that compete for time.
//!
//! Which start leads to the best plan is not known beforehand: structure wins where there is some, annealed orders win
//! on random graphs, up*/down* sometimes in between. So all are searched on from for a slice of time, the worst are
//! dropped, slices grow, and again and again an annealed order joins: randomly chosen, or the best one reheated a little. The
//! searches of a round know nothing of each other, so threads can share them.
//!
//! ```text
//!   round   0     1     2     3        slices, longer every other round
//!   A      ▇▇▇   ▇▇▇   ▇▇    dropped
//!   B      ▇▇    ▇▇    ▇▇▇▇▇ ▇▇▇▇▇     the best gets the whole slice, others half of it
//!   C            ▇▇    ▇     ▇▇▇       annealed
//! ```

use fabric::{FlowControl, Policy, Topology, Tree, rng::Rng};

use crate::{Ending, SearchEvent, SearchPart, Start, candidate::attainable, routing::Routing};

use super::{
    alternate::{Alternation, Patience, TURNS_MAX, grow_all},
    forest::{Forest, Source},
    improve::{Candidate, Quality},
    net::{NONE, Net},
    schedule::{ANNEALING, FAR, PORTFOLIO, SLICES},
    share::Sharing,
    starts::{
        annealed::{Annealed, Challenge, Occasion},
        images,
        seed::{self, Ask},
        updown::valid_orders,
    },
    state::{Context, SearchState},
    work::Work,
};

/// Starts that compete.
pub(super) struct Contest<'a> {
    topology: &'a Topology,
    policy: &'a Policy,
    net: &'a Net,
    sharing: &'a Sharing<'a>,
    bound: f64,
    /// A load that cannot be improved on, in units.
    enough: f64,
    rng: Rng,
    runners: Vec<Runner>,
    /// Routes of other engines and their quality, and the best of their peaks.
    others: Vec<(Quality, Routing)>,
    others_peak: f64,
}

struct Runner {
    start: Start,
    sources: Vec<Source>,
    alternation: Alternation,
    /// Slices of time that it has had.
    slices: usize,
}

/// Orders that are annealed while there is no start at all.
const EMPTY_CHALLENGES_MAX: usize = 4;

/// What a job of a round is to do.
enum Task {
    GoOn(Runner),
    Challenge(Challenge),
}

impl<'a> Contest<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        policy: &'a Policy,
        net: &'a Net,
        sharing: &'a Sharing<'a>,
        bound: f64,
    ) -> Self {
        let enough = attainable(topology, &policy.traffic, bound) / sharing.quantum;
        let rng = Rng::new(policy.seed);
        let others_peak = f64::INFINITY;
        let (runners, others) = (Vec::new(), Vec::new());
        Self { topology, policy, net, sharing, bound, enough, rng, runners, others, others_peak }
    }

    /// Competes until time is up or nothing better is possible.
    pub(super) fn run(&mut self, work: &mut Work<'_>) {
        self.run_starts(work);
        let ending = if self.peak() <= self.enough { Ending::Optimal } else { Ending::Spent };
        work.happened(&SearchEvent::Ended(ending));
    }

    /// Searches for trees within these orders alone, `rank[lane][channel]`, until time is up or nothing better is possible.
    pub(super) fn run_within(&mut self, rank: Vec<Vec<u32>>, work: &mut Work<'_>) {
        let sources = self.sharing.one_source_a_switch();
        let Some(lane) = self.lanes_within(&sources, &rank, work) else { return };
        let [first, next] = [(); 2].map(|()| Rng::new(self.rng.next_u64()));
        let Some(mut runner) = self.start(sources, lane, rank, Patience::Endless, first, work) else { return };
        runner.start = Start::KeptOrder;
        runner.alternation = Alternation::within_order(runner.alternation.best);
        let mut context = Context::new(self.net, &runner.sources, next, work);
        runner.alternation.run(&mut context, u64::MAX, self.enough);
        self.join(runner, work);
    }

    /// A lane for each source whose order lets a tree reach everybody, in turn where several do; none if some source has none.
    fn lanes_within(&self, sources: &[Source], rank: &[Vec<u32>], work: &mut Work<'_>) -> Option<Vec<u8>> {
        let mut context = Context::new(self.net, sources, self.rng.clone(), work);
        let (flat, mut grown) = (vec![1.0; self.net.channels], vec![NONE; self.net.switches]);
        let mut reaches =
            |root, lane: usize| context.builder.grow_rising(self.net, root, &flat, &rank[lane], &mut grown);
        let lane = |(number, source): (usize, &Source)| {
            let mut lanes = (0..rank.len()).map(|turn| (number + turn) % rank.len());
            lanes.find(|lane| reaches(source.root, *lane)).map(|lane| lane as u8)
        };
        sources.iter().enumerate().map(lane).collect()
    }

    fn run_starts(&mut self, work: &mut Work<'_>) {
        let lanes = usize::from(self.policy.flow_control.lanes().unwrap_or(0));
        self.add_seeds(Ask::Structured, lanes, work);
        self.rank_runners();
        if self.peak() <= self.enough {
            return;
        }
        if !work.expired() {
            self.add_folded(lanes, work);
        }
        self.compete(&self.sharing.one_source_a_switch(), lanes, work);
    }

    /// Lets an order that serves everybody, up*/down* routes and annealed orders compete with what there is.
    fn compete(&mut self, sources: &[Source], lanes: usize, work: &mut Work<'_>) {
        self.rank_runners();
        if self.runners.is_empty() || !work.expired() {
            let lane = (0..sources.len()).map(|number| (number % lanes.max(1)) as u8).collect();
            let order = valid_orders(self.net, lanes);
            let rng = Rng::new(self.rng.next_u64());
            let own = self.start(sources.to_vec(), lane, order, Patience::Endless, rng, work);
            own.into_iter().for_each(|runner| self.join(runner, work));
        }
        if work.expired() {
            return;
        }
        let annealable = lanes > 0 && self.net.turns <= TURNS_MAX && work.uses(SearchPart::Annealed);
        let is_folded = self.net.symmetry.is_some();
        let is_quick = !is_folded && self.net.channels * sources.len() <= PORTFOLIO.updown_first_max;
        if is_quick {
            self.add_seeds(Ask::Updown, lanes, work);
            self.drop_the_worst();
        }
        let (mut annealing, mut challenges) = (0, 1);
        let mut hurried = false;
        if annealable && (is_folded || self.is_hopeless()) {
            // Nothing has structure, so an order that is annealed in a hurry is far better than what there is; or the search is
            // of so few trees that one is annealed soon.
            work.progress(self.peak() * self.sharing.quantum, self.bound);
            // On long paths haste does not pay: half of the orders are so bad that later ones hardly mend them.
            let turn = usize::from(is_folded || self.has_long_paths(sources));
            let challenge = self.challenge(sources, lanes, turn);
            let challenger = self.challenger(challenge, work);
            hurried = turn == 0 && challenger.is_some();
            challenger.into_iter().for_each(|runner| self.join(runner, work));
            annealing = work.total();
            challenges = turn + 1;
        }
        if !is_folded && !is_quick && !hurried && !work.expired() {
            self.add_seeds(Ask::Updown, lanes, work);
        }
        self.drop_the_worst();
        for round in 0_u32.. {
            self.rank_runners();
            work.progress(self.peak() * self.sharing.quantum, self.bound);
            if self.peak() <= self.enough || work.expired() {
                return;
            }
            // Where paths are limited, no start may have an order with trees as short.
            let is_empty = self.runners.is_empty();
            if is_empty && (!annealable || challenges > EMPTY_CHALLENGES_MAX) {
                return;
            }
            let hurried = hurried && round == 0;
            let longer = (round / SLICES.doubling_rounds).min(20);
            let slice = self.slice(sources.len()) << longer >> if hurried { SLICES.hurried_shift } else { 0 };
            // After an order that was annealed in a hurry, one that takes more time is due at once.
            let due = hurried
                || is_empty
                || work.total() >= (SLICES.annealing_rarity * annealing).max(self.slice(sources.len()));
            let challenge = (annealable && due).then(|| self.challenge(sources, lanes, challenges));
            let mut jobs = Vec::new();
            for (place, runner) in std::mem::take(&mut self.runners).into_iter().enumerate() {
                let visits = if runner.slices == 0 { 2 * slice } else { slice >> place.min(1) };
                jobs.push((visits, (visits, Rng::new(self.rng.next_u64()), Task::GoOn(runner))));
            }
            if let Some(challenge) = challenge {
                let visits = 2 * challenge.cost(self.net, sources.len()) + 2 * slice;
                jobs.push((visits, (2 * slice, Rng::new(self.rng.next_u64()), Task::Challenge(challenge))));
                challenges += 1;
            }
            let done = work.share(jobs, |(visits, rng, task), work| {
                let (runner, annealing) = match task {
                    Task::GoOn(runner) => (Some(runner), 0),
                    Task::Challenge(challenge) => (self.challenger(challenge, work), work.total()),
                };
                let runner = runner.map(|mut runner| {
                    runner.slices += 1;
                    let mut context = Context::new(self.net, &runner.sources, rng, work);
                    runner.alternation.run(&mut context, visits, self.enough);
                    runner
                });
                (runner, annealing)
            });
            for (runner, visits) in done {
                self.runners.extend(runner);
                annealing += visits;
            }
            self.drop_the_worst();
            let runners = self.runners.iter().map(|runner| (runner.start, self.load(runner))).collect();
            work.happened(&SearchEvent::Round { round: round as usize, runners });
        }
    }

    /// Lets a start compete.
    fn join(&mut self, runner: Runner, work: &mut Work<'_>) {
        work.happened(&SearchEvent::Start { start: runner.start, load: self.load(&runner) });
        self.runners.push(runner);
    }

    /// The best load of a start so far, in ordered pairs of hosts.
    fn load(&self, runner: &Runner) -> f64 {
        runner.alternation.best.forest.peak(self.net) * self.sharing.quantum
    }

    /// On a torus, lets trees compete that are images of a few, which are searched for first.
    fn add_folded(&mut self, lanes: usize, work: &mut Work<'_>) {
        // On one lane, orders that are alike under reflections alone are no better than the cuts that they come from.
        // Images of a tree that is confined need not be.
        if self.net.switches < PORTFOLIO.images_switches_min || lanes < 2 || !self.net.confined.is_empty() {
            return;
        }
        let Some((symmetry, exchanged)) = images::symmetries(self.topology, self.policy, self.net, lanes) else {
            return;
        };
        let all = self.sharing.one_source_a_switch();
        let sources: Vec<Source> = all.iter().filter(|source| symmetry.is_first(source.root)).cloned().collect();
        let net = self.net.folded(symmetry);
        let mut folded = Contest::new(self.topology, self.policy, &net, self.sharing, self.bound);
        folded.rng = Rng::new(self.rng.next_u64());
        let visits = SLICES.images * folded.slice(sources.len());
        work.part(visits, |work| folded.compete(&sources, exchanged, work));
        folded.rank_runners();
        let (Some(best), Some(symmetry)) = (folded.runners.first(), &net.symmetry) else { return };
        let state = best.alternation.best.unfolded(symmetry, self.net, &best.sources, &all);
        let context = Context::new(self.net, &all, self.rng.clone(), work);
        let alternation = Alternation::new(&context, spread_lanes(state, lanes));
        self.join(Runner { start: Start::Images, sources: all, alternation, slices: 0 }, work);
    }

    /// Visits of a first slice.
    fn slice(&self, sources: usize) -> u64 {
        (SLICES.visits_each * (self.net.channels * sources) as u64).max(SLICES.visits_min)
    }

    /// Lets the routes of other engines compete. On several lanes, each lane's order serves some of the spare ones too.
    fn add_seeds(&mut self, ask: Ask, lanes: usize, work: &mut Work<'_>) {
        let switches = self.net.hosts.iter().filter(|hosts| **hosts > 0).count();
        self.rank_runners();
        let part = match ask {
            Ask::Structured => SearchPart::Structured,
            Ask::Updown => SearchPart::Updown,
        };
        if !work.uses(part) {
            return;
        }
        let before = self.peak();
        for mut seed in seed::seeds(self.topology, self.policy, self.net, self.sharing, ask) {
            let quality = seed.state.quality(self.net);
            let peak = quality.0;
            self.others_peak = self.others_peak.min(peak);
            if peak > self.enough {
                seed.state = spread_lanes(seed.state, lanes);
            }
            self.others.push((quality, seed.routing));
            // More than one tree a switch must be worth it.
            if seed.sources.len() <= switches || peak < before * PORTFOLIO.more_trees {
                let context = Context::new(self.net, &seed.sources, self.rng.clone(), work);
                let alternation = Alternation::new(&context, seed.state);
                self.join(Runner { start: seed.start, sources: seed.sources, alternation, slices: 0 }, work);
            }
        }
    }

    /// Grows trees within orders, or without any.
    fn start(
        &self,
        sources: Vec<Source>,
        lane: Vec<u8>,
        rank: Vec<Vec<u32>>,
        patience: Patience,
        rng: Rng,
        work: &mut Work<'_>,
    ) -> Option<Runner> {
        let mut context = Context::new(self.net, &sources, rng, work);
        let mut state = SearchState { forest: Forest::bare(self.net, sources.len()), lane, rank };
        if !grow_all(&mut context, &mut state, patience) {
            return None;
        }
        let alternation = Alternation::new(&context, state);
        Some(Runner { start: Start::Grown, sources, alternation, slices: 0 })
    }

    /// What to anneal next.
    fn challenge(&mut self, sources: &[Source], lanes: usize, turn: usize) -> Challenge {
        let rng = Rng::new(self.rng.next_u64());
        let best = self.runners.first().map(|best| (&best.sources[..], &best.alternation.best));
        let has_long_paths = self.has_long_paths(sources);
        let slice = self.slice(sources.len());
        Challenge::new(&Occasion { net: self.net, sources, lanes, turn, slice, has_long_paths, best }, rng)
    }

    /// Whether the best paths so far are long.
    fn has_long_paths(&self, sources: &[Source]) -> bool {
        let pairs = sources.iter().map(|source| source.total(self.net)).sum::<u64>().max(1);
        let hops = self.runners.first().map_or(0, |runner| runner.alternation.best.forest.hops());
        hops as f64 / pairs as f64 > ANNEALING.long_hops
    }

    /// Routes within annealed orders. Where nothing is any good yet, what was annealed is made use of even if time is up.
    fn challenger(&self, challenge: Challenge, work: &mut Work<'_>) -> Option<Runner> {
        let patience = if self.is_hopeless() { Patience::Endless } else { Patience::Short };
        let Annealed { start, sources, alternation } = challenge.run(self.net, patience, work)?;
        Some(Runner { start, sources, alternation, slices: 0 })
    }

    /// Whether the best start is so far from the bound that nothing can have structure.
    fn is_hopeless(&self) -> bool {
        self.peak() > FAR * self.enough
    }

    /// Drops starts that are far behind the best one, and more than there may be.
    fn drop_the_worst(&mut self) {
        self.rank_runners();
        let limit = self.peak() * PORTFOLIO.lead;
        self.runners.retain(|runner| runner.alternation.best.forest.peak(self.net) <= limit);
        self.runners.truncate(PORTFOLIO.runners_max);
    }

    /// Best first; of equals, the earlier start.
    fn rank_runners(&mut self) {
        let net = self.net;
        self.runners.sort_by(|a, b| {
            let (a, b) = (a.alternation.best.quality(net), b.alternation.best.quality(net));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        });
    }

    fn peak(&self) -> f64 {
        self.runners.first().map_or(f64::INFINITY, |runner| runner.alternation.best.forest.peak(self.net))
    }

    /// The winner's routes, then those of other engines.
    pub(super) fn finish(mut self) -> Vec<Routing> {
        self.rank_runners();
        let peak = self.peak();
        let acceptable = (peak * PORTFOLIO.fewer_trees).min(self.others_peak.max(peak));
        let winner = (self.runners.iter())
            .filter(|runner| runner.alternation.best.forest.peak(self.net) <= acceptable)
            .min_by_key(|runner| runner.sources.len());
        let mut routings: Vec<Routing> = winner.map(|runner| self.routing(runner)).into_iter().collect();
        self.others.sort_by(|((a, a_hops), _), ((b, b_hops), _)| a.total_cmp(b).then(a_hops.cmp(b_hops)));
        let others = self.others.into_iter().map(|(_, routing)| routing);
        // Only those with more trees, which did not compete, can be better.
        let at = if self.others_peak < peak { 0 } else { routings.len() };
        routings.splice(at..at, others);
        routings
    }

    /// A runner's trees, without the branches that lead to no host.
    fn routing(&self, runner: &Runner) -> Routing {
        let state = &runner.alternation.best;
        let mut choice = vec![0; self.topology.hosts().len()];
        let mut trees = Vec::with_capacity(runner.sources.len());
        for (number, source) in runner.sources.iter().enumerate() {
            let (inward, below) = state.forest.tree(number);
            let links = (inward.iter().zip(below))
                .filter(|(channel, below)| **channel != NONE && **below > 0)
                .map(|(&channel, _)| self.net.id(channel).link());
            trees.push(Tree::new(self.topology, links).expect("channels into each switch form a tree"));
            source.hosts.iter().for_each(|host| choice[host.index()] = number);
        }
        let lane = (self.policy.flow_control != FlowControl::None).then(|| state.lane.clone());
        let numbering = match &state.rank[..] {
            [rank] if lane.is_some() => Some(self.net.by_id(rank)),
            _ => None,
        };
        Routing { lane, numbering, ..Routing::by_source(trees, choice) }
    }
}

/// Lets each lane's order serve some of the spare ones too.
fn spread_lanes(mut state: SearchState, lanes: usize) -> SearchState {
    let used = state.rank.len();
    if used > 0 && used < lanes {
        for spare in used..lanes {
            state.rank.push(state.rank[spare % used].clone());
        }
        for (number, lane) in state.lane.iter_mut().enumerate() {
            let copies = (lanes - usize::from(*lane)).div_ceil(used);
            *lane += (used * (number % copies)) as u8;
        }
    }
    state
}
