//! Starts that compete for time.
//!
//! Which start leads to the best plan is not known beforehand: structure wins where there is some, annealed orders win
//! on random graphs, up*/down* sometimes in between. So all are searched on from for a slice of time, the worst are
//! dropped, slices grow, and now and then a newly annealed order joins.
//!
//! ```text
//!   round   0     1     2     3        slices, longer every other round
//!   A      ▇▇▇   ▇▇▇   ▇▇    dropped
//!   B      ▇▇    ▇▇    ▇▇▇▇▇ ▇▇▇▇▇     the best gets the whole slice, the second half of it
//!   C            ▇▇    ▇     ▇▇▇       annealed
//! ```

use fabric::{ChannelId, FlowControl, Policy, Topology, Tree, rng::Rng};

use crate::{attainable, routing::Routing};

use super::{
    alternate::{Alternation, Patience, TURNS_MAX, grow_all},
    anneal::{SOURCES_MAX, Schedule, anneal},
    forest::{Forest, Source},
    net::{NONE, Net},
    seeds::{self, Ask},
    share::Sharing,
    state::{Context, State},
    work::Work,
};

/// Visits of the first slice, for each channel and source; at least so many in all.
const SLICE: u64 = 60;
const SLICE_MIN: u64 = 4_000_000;
/// Most annealed orders that join.
const CHALLENGES_MAX: usize = 8;
/// Rounds of annealing at first.
const ANNEALING_ROUNDS: usize = 100;
/// Starts whose busiest channel carries this much more than the best one's are dropped.
const LEAD: f64 = 1.5;
/// If the best start carries this much more than the bound, the first annealed order is due at once.
const URGENT: f64 = 1.3;
/// If it carries this much more, it no longer competes with an annealed one.
const HOPELESS: f64 = 2.0;
/// Average hops from which on paths count as long.
const HOPS_LONG: f64 = 3.8;
/// A start with more than one tree a switch competes if its peak is less than this share of the first start's.
const MORE_TREES: f64 = 0.6;
/// A plan with fewer trees may be worse by this much and still win.
const FEWER_TREES: f64 = 1.01;

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
    /// One that gets no more time, but may still be the best.
    standby: Option<Runner>,
    /// Routes of other engines and their quality, and the best of their peaks.
    others: Vec<((f64, u64), Routing)>,
    others_peak: f64,
}

struct Runner {
    sources: Vec<Source>,
    alternation: Alternation,
    /// Slices of time that it has had.
    slices: usize,
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
        let (runners, standby, others) = (Vec::new(), None, Vec::new());
        Self { topology, policy, net, sharing, bound, enough, rng, runners, standby, others, others_peak }
    }

    /// Competes until time is up or nothing better is possible.
    pub(super) fn run(&mut self, work: &mut Work<'_>) {
        let sources = self.sharing.one_source_a_switch();
        let lanes = usize::from(self.policy.flow_control.lanes().unwrap_or(0));
        self.add_seeds(Ask::Structured, lanes, work);
        self.rank_runners();
        if self.peak() <= self.enough {
            return;
        }
        if self.runners.is_empty() || !work.expired() {
            let lane = (0..sources.len()).map(|number| (number % lanes.max(1)) as u8).collect();
            let order = if lanes > 0 { vec![seeds::updown_order(self.net); lanes] } else { Vec::new() };
            let own = self.start(sources.clone(), lane, order, Patience::Endless, work);
            self.runners.extend(own);
        }
        if work.expired() {
            return;
        }
        self.add_seeds(Ask::Updown, lanes, work);
        self.rank_runners();
        let limit = self.peak() * LEAD;
        self.runners.retain(|runner| runner.alternation.best.forest.peak(self.net) <= limit);
        if lanes > 0 && self.is_hopeless() {
            // Nothing but up*/down* orders, of which one is enough.
            self.runners.truncate(1);
        }
        let slice = (SLICE * (self.net.channels * sources.len()) as u64).max(SLICE_MIN);
        let annealable = lanes > 0 && self.net.turns <= TURNS_MAX && sources.len() <= SOURCES_MAX;
        let (mut annealing, mut challenges) = (0, 0);
        for round in 0_u32.. {
            self.rank_runners();
            work.progress(self.peak() * self.sharing.quantum, self.bound);
            if self.peak() <= self.enough || work.expired() {
                return;
            }
            let urgent = self.peak() > URGENT * self.enough;
            let hopeless = self.is_hopeless();
            let affordable = work.total() >= (3 * annealing).max(self.annealing_visits(sources.len()));
            if annealable && challenges < CHALLENGES_MAX && (affordable || (urgent && challenges == 0)) {
                let before = work.total();
                if let Some(runner) = self.challenger(&sources, lanes, challenges, work) {
                    if hopeless {
                        // Nothing has structure: the others only stand by, in case time is up soon.
                        self.standby = self.runners.drain(..).next();
                    }
                    self.runners.push(runner);
                }
                annealing += work.total() - before;
                challenges += 1;
            }
            let slice = slice << (round / 2).min(20);
            let mut rng = Rng::new(self.rng.next_u64());
            for (place, runner) in self.runners.iter_mut().enumerate() {
                let visits = if runner.slices == 0 { 2 * slice } else { slice >> place };
                runner.slices += 1;
                let mut context = Context::new(self.net, &runner.sources, Rng::new(rng.next_u64()), work);
                runner.alternation.run(&mut context, visits, self.enough);
            }
            self.rank_runners();
            let limit = self.peak() * LEAD;
            self.runners.retain(|runner| runner.alternation.best.forest.peak(self.net) <= limit);
            self.runners.truncate(2);
        }
    }

    /// Lets the routes of other engines compete. On several lanes, each lane's order serves some of the spare ones too.
    fn add_seeds(&mut self, ask: Ask, lanes: usize, work: &mut Work<'_>) {
        let switches = self.net.hosts.iter().filter(|hosts| **hosts > 0).count();
        self.rank_runners();
        let before = self.peak();
        for mut seed in seeds::seeds(self.topology, self.policy, self.net, self.sharing, ask) {
            let quality = seed.state.quality(self.net);
            let peak = quality.0;
            self.others_peak = self.others_peak.min(peak);
            let used = seed.state.rank.len();
            if used > 0 && used < lanes && peak > self.enough {
                for spare in used..lanes {
                    seed.state.rank.push(seed.state.rank[spare % used].clone());
                }
                for (number, lane) in seed.state.lane.iter_mut().enumerate() {
                    let copies = (lanes - usize::from(*lane)).div_ceil(used);
                    *lane += (used * (number % copies)) as u8;
                }
            }
            self.others.push((quality, seed.routing));
            // More than one tree a switch must be worth it.
            if seed.sources.len() <= switches || peak < before * MORE_TREES {
                let context = Context::new(self.net, &seed.sources, self.rng.clone(), work);
                let alternation = Alternation::new(&context, seed.state);
                self.runners.push(Runner { sources: seed.sources, alternation, slices: 0 });
            }
        }
    }

    /// Grows trees within orders, or without any.
    fn start(
        &mut self,
        sources: Vec<Source>,
        lane: Vec<u8>,
        rank: Vec<Vec<u32>>,
        patience: Patience,
        work: &mut Work<'_>,
    ) -> Option<Runner> {
        let mut context = Context::new(self.net, &sources, Rng::new(self.rng.next_u64()), work);
        let mut state = State { forest: Forest::bare(self.net, sources.len()), lane, rank };
        if !grow_all(&mut context, &mut state, patience) {
            return None;
        }
        let alternation = Alternation::new(&context, state);
        Some(Runner { sources, alternation, slices: 0 })
    }

    /// Anneals orders and grows trees within them.
    fn challenger(&mut self, sources: &[Source], lanes: usize, turn: usize, work: &mut Work<'_>) -> Option<Runner> {
        let mut lane: Vec<u8> = (0..sources.len()).map(|number| (number % lanes) as u8).collect();
        self.rng.shuffle(&mut lane);
        let rounds = ANNEALING_ROUNDS << (turn / 2).min(2);
        // Long paths need more falls at first, and time to lose them.
        let pairs = sources.iter().map(|source| source.total(self.net)).sum::<u64>().max(1);
        let hops = self.runners.first().map_or(0, |runner| runner.alternation.best.forest.hops());
        let long = hops as f64 / pairs as f64 > HOPS_LONG;
        let schedule = if long != (turn % 3 == 2) {
            let rounds = rounds + rounds / 2;
            Schedule { rounds, extra_max: rounds, penalty: 0.15, memory: 0.5, urgency: 1000.0, sweeps: 3 }
        } else {
            Schedule { rounds, extra_max: rounds / 2, penalty: 0.2, memory: 0.9, urgency: 100.0, sweeps: 2 }
        };
        let mut rng = Rng::new(self.rng.next_u64());
        let annealed = anneal(self.net, sources, &lane, lanes, schedule, &mut rng, work)?;
        self.start(sources.to_vec(), lane, annealed.rank, Patience::Short, work)
    }

    /// Whether the best start is so far from the bound that nothing can have structure.
    fn is_hopeless(&self) -> bool {
        self.peak() > HOPELESS * self.enough
    }

    /// About what annealing once costs.
    fn annealing_visits(&self, sources: usize) -> u64 {
        (ANNEALING_ROUNDS * sources.div_ceil(16) * 15 * self.net.channels) as u64
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
        self.runners.extend(self.standby.take());
        self.rank_runners();
        let peak = self.peak();
        let acceptable = (peak * FEWER_TREES).min(self.others_peak.max(peak));
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
                .map(|(&channel, _)| ChannelId::new(channel as usize).link());
            trees.push(Tree::new(self.topology, links).expect("channels into each switch form a tree"));
            source.hosts.iter().for_each(|host| choice[host.index()] = number);
        }
        let lane = (self.policy.flow_control != FlowControl::None).then(|| state.lane.clone());
        let numbering = match &state.rank[..] {
            [rank] if lane.is_some() => Some(rank.clone()),
            _ => None,
        };
        Routing { lane, numbering, ..Routing::by_source(trees, choice) }
    }
}
