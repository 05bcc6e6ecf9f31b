//! Starts that compete for time.
//!
//! Which start leads to the best plan is not known beforehand: structure wins where there is some, annealed orders win
//! on random graphs, up*/down* sometimes in between. So all are searched on from for a slice of time, the worst are
//! dropped, slices grow, and now and then a newly annealed order joins.
//!
//! ```text
//!   round   0     1     2     3        slices, longer every other round
//!   A      ▇▇▇   ▇▇▇   ▇▇    dropped
//!   B      ▇▇    ▇▇    ▇▇▇▇▇ ▇▇▇▇▇     the best gets the whole slice, the second half of it, the third a quarter
//!   C            ▇▇    ▇     ▇▇▇       annealed
//! ```

use fabric::{ChannelId, FlowControl, Policy, Topology, Tree, rng::Rng};

use crate::routing::Routing;

use super::{
    alternate::{Alternation, Patience, TURNS_MAX, grow_all},
    anneal::{Schedule, anneal},
    forest::{Forest, Source},
    net::{NONE, Net},
    seeds,
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
/// Starts whose busiest channel carries this much more than the best one's are dropped at once.
const HOPELESS: f64 = 1.5;
/// A plan with fewer trees may be worse by this much and still win.
const FEWER_TREES: f64 = 1.01;

/// Starts that compete.
pub(super) struct Contest<'a> {
    topology: &'a Topology,
    policy: &'a Policy,
    net: &'a Net,
    bound: f64,
    /// A load that cannot be improved on.
    enough: f64,
    rng: Rng,
    runners: Vec<Runner>,
    /// One that gets no more time, but may still be the best.
    standby: Option<Runner>,
    /// Routes of other engines, best first, and the best of their peaks.
    others: Vec<Routing>,
    others_peak: f64,
}

struct Runner {
    sources: Vec<Source>,
    alternation: Alternation,
}

impl<'a> Contest<'a> {
    pub(super) fn new(topology: &'a Topology, policy: &'a Policy, net: &'a Net, bound: f64) -> Self {
        // Loads are whole numbers where all rates are the same; where they differ the bound is not in seconds.
        let enough = if net.slowness.len() <= 1 { (bound - 1e-6).ceil() } else { 0.0 };
        let rng = Rng::new(policy.seed);
        let others_peak = f64::INFINITY;
        let (runners, standby, others) = (Vec::new(), None, Vec::new());
        Self { topology, policy, net, bound, enough, rng, runners, standby, others, others_peak }
    }

    /// Competes until time is up or nothing better is possible.
    pub(super) fn run(&mut self, work: &mut Work<'_>) {
        let sources = one_source_a_switch(self.topology);
        let lanes = usize::from(self.policy.flow_control.lanes().unwrap_or(0));
        let lane = (0..sources.len()).map(|number| (number % lanes.max(1)) as u8).collect();
        let order = if lanes > 0 { vec![seeds::updown_order(self.net); lanes] } else { Vec::new() };
        self.start(sources.clone(), lane, order, Patience::Endless, work);
        if work.expired() {
            return;
        }
        self.add_structured(lanes, work);
        let slice = (SLICE * (self.net.channels * sources.len()) as u64).max(SLICE_MIN);
        // What annealing has cost so far, and may once more at first.
        let (mut annealing, mut challenges) = (self.annealing_visits(sources.len()), 0);
        for round in 0_u32.. {
            self.rank_runners();
            work.progress(self.peak(), self.bound);
            if self.peak() <= self.enough || work.expired() {
                return;
            }
            if lanes > 0 && challenges < CHALLENGES_MAX && self.net.turns <= TURNS_MAX {
                let affordable = work.total() >= 3 * annealing || self.peak() > 2.0 * self.enough && challenges == 0;
                if affordable {
                    let before = work.total();
                    let rivals = self.runners.len();
                    self.challenge(&sources, lanes, challenges, work);
                    if self.runners.len() > rivals && self.peak() > 2.0 * self.enough {
                        // Nothing has structure: the others only stand by, in case time is up soon.
                        let annealed = self.runners.pop();
                        self.rank_runners();
                        self.standby = self.runners.drain(..).next();
                        self.runners.extend(annealed);
                    }
                    annealing += work.total() - before;
                    challenges += 1;
                    self.rank_runners();
                }
            }
            let hopeless = self.peak() * HOPELESS;
            self.runners.retain(|runner| runner.alternation.best.forest.peak(self.net) <= hopeless);
            self.runners.truncate(if round < 6 { 3 } else { 2 });
            let slice = slice << (round / 2).min(20);
            for (place, runner) in self.runners.iter_mut().enumerate() {
                let mut context = Context::new(self.net, &runner.sources, Rng::new(self.rng.next_u64()), work);
                runner.alternation.run(&mut context, slice >> place, self.enough);
            }
        }
    }

    /// Lets the routes of other engines compete. On several lanes, each lane's order serves some of the spare ones too.
    fn add_structured(&mut self, lanes: usize, work: &mut Work<'_>) {
        for mut seed in seeds::structured(self.topology, self.policy, self.net) {
            let peak = seed.state.forest.peak(self.net);
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
            let context = Context::new(self.net, &seed.sources, self.rng.clone(), work);
            let alternation = Alternation::new(&context, seed.state);
            self.runners.push(Runner { sources: seed.sources, alternation });
            self.others.push(seed.routing);
        }
    }

    /// Grows trees within orders, or without any, and lets them compete.
    fn start(
        &mut self,
        sources: Vec<Source>,
        lane: Vec<u8>,
        rank: Vec<Vec<u32>>,
        patience: Patience,
        work: &mut Work<'_>,
    ) {
        let mut context = Context::new(self.net, &sources, Rng::new(self.rng.next_u64()), work);
        let mut state = State { forest: Forest::bare(self.net, sources.len()), lane, rank };
        if grow_all(&mut context, &mut state, patience) {
            let alternation = Alternation::new(&context, state);
            self.runners.push(Runner { sources, alternation });
        }
    }

    /// Anneals orders and lets their trees compete.
    fn challenge(&mut self, sources: &[Source], lanes: usize, turn: usize, work: &mut Work<'_>) {
        let mut lane: Vec<u8> = (0..sources.len()).map(|number| (number % lanes) as u8).collect();
        self.rng.shuffle(&mut lane);
        let rounds = ANNEALING_ROUNDS << (turn / 2).min(2);
        let schedule = if turn % 4 == 3 {
            Schedule { rounds, extra_max: rounds / 2, penalty: 0.15, memory: 0.5, urgency: 1000.0, sweeps: 3 }
        } else {
            Schedule { rounds, extra_max: rounds / 2, penalty: 0.2, memory: 0.9, urgency: 100.0, sweeps: 2 }
        };
        let mut rng = Rng::new(self.rng.next_u64());
        if let Some(annealed) = anneal(self.net, sources, &lane, lanes, schedule, &mut rng, work) {
            self.start(sources.to_vec(), lane, annealed.rank, Patience::Short, work);
        }
    }

    /// About what annealing once costs.
    fn annealing_visits(&self, sources: usize) -> u64 {
        (ANNEALING_ROUNDS * sources.div_ceil(16).min(16) * 10 * self.net.channels) as u64
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
        routings.extend(self.others);
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

/// All hosts of each switch.
fn one_source_a_switch(topology: &Topology) -> Vec<Source> {
    (topology.switch_ids())
        .filter(|switch| !topology.hosts_of(*switch).is_empty())
        .map(|switch| Source { root: switch.index(), hosts: topology.hosts_of(switch).to_vec() })
        .collect()
}
