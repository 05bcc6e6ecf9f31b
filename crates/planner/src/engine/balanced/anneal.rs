//! A good numbering of channels from nothing: anneal it under fractional routing.
//!
//! Every pair is routed by itself, along the cheapest path by rising ranks, over and over against prices exponential in
//! the averaged loads; a path may break the order a few times, at a penalty that rises from round to round. After every
//! round the order is sifted toward the turns that were used. In the end hardly anything breaks the order, and it is
//! kept as it was when nothing did.
//!
//! Cheapest rising paths from one source take one sweep over all channels in their order: a channel extends the best
//! path found so far to its tail. Sixteen sources are swept at once. Sweeping again, with what the sweep before left plus
//! the penalty, lets paths fall once. A sweep in reverse order gathers the flows.
//!
//! ```text
//!   order  sa  ab  bc            sweep 1: sa, ab, bc in turn: s reaches a, b and c
//!   order  bc  ab  sa            sweep 1: s reaches a only; sweep 2: b, after one fall; then c would take two
//! ```

use fabric::rng::Rng;

use super::{
    forest::Source,
    net::Net,
    order::{Sifter, ranks_by_key},
    price::{between, exp},
    work::Work,
};

/// Sources swept at once.
const BATCH: usize = 16;
/// No channel yet, in the tables of a sweep.
const START: u32 = u32::MAX;

/// How to anneal.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    /// Rounds in which the penalty rises.
    pub(super) rounds: usize,
    /// Rounds more, until nothing breaks the order.
    pub(super) extra_max: usize,
    /// Penalty for a fall at first; at last it is `PENALTY_LAST`.
    pub(super) penalty: f64,
    /// Share of the wanted turns that lasts from round to round.
    pub(super) memory: f32,
    /// How much more a fall counts for the order than other turns, at last.
    pub(super) urgency: f32,
    /// Sweeps: one more than the falls that a path may have.
    pub(super) sweeps: usize,
}

/// Most sources for which annealing pays; beyond, orders come from elsewhere.
pub(super) const SOURCES_MAX: usize = 512;
/// What the penalty rises to.
const PENALTY_LAST: f64 = 20.0;

/// An annealed order for each lane.
pub(super) struct Annealed {
    /// `rank[lane][channel]`.
    pub(super) rank: Vec<Vec<u32>>,
    /// Pairs that broke the order.
    pub(super) falls: f64,
}

/// Anneals an order for each lane, given each source's lane; none if time was up before there was any.
pub(super) fn anneal(
    net: &Net,
    sources: &[Source],
    lane: &[u8],
    lanes: usize,
    schedule: Schedule,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Option<Annealed> {
    let mut batches = batches(net, sources, lane, lanes, rng);
    let mut rank: Vec<Vec<u32>> =
        (0..lanes).map(|_| ranks_by_key(&(0..net.channels).map(|_| rng.unit_f64()).collect::<Vec<_>>())).collect();
    let mut wanted = vec![vec![0.0_f32; net.turns]; lanes];
    let mut used = vec![0.0_f32; net.turns];
    let mut load = vec![0.0_f64; net.channels];
    let mut price = vec![1.0_f32; net.channels];
    let mut fresh = vec![0.0_f32; net.channels];
    let mut order = vec![0_u32; net.channels];
    let mut sweeper = Sweeper::new(net, schedule.sweeps);
    let mut sifter = Sifter::default();
    let mut best: Option<Annealed> = None;
    let (mut round, mut extra) = (0, 0);
    while round < schedule.rounds + extra {
        let progress = (round as f64 / (schedule.rounds.max(2) - 1) as f64).min(1.0);
        let late = round.saturating_sub(schedule.rounds) as f64;
        let penalty = between(schedule.penalty, PENALTY_LAST, progress);
        let urgency = 1.0 + schedule.urgency * (progress * progress * exp(0.1 * late)) as f32;
        let before = (progress > 0.8).then(|| rank.clone());
        let mut falls = 0.0;
        for lane in 0..lanes {
            for (channel, &at) in rank[lane].iter().enumerate() {
                order[at as usize] = channel as u32;
            }
            used.fill(0.0);
            let own = (batches.iter_mut()).filter(|batch| usize::from(batch.lane) == lane);
            for batch in own {
                let step = if batch.rounds == 0 { 1.0 } else { (2.0 / (batch.rounds as f64 + 2.0)).max(0.15) } as f32;
                batch.rounds += 1;
                fresh.fill(0.0);
                falls += sweeper.route(net, batch, &order, &price, penalty as f32, urgency, &mut fresh, &mut used);
                if !work.spend(5 * schedule.sweeps * net.channels) {
                    return best;
                }
                for ((own, fresh), load) in batch.load.iter_mut().zip(&fresh).zip(&mut load) {
                    let next = *own * (1.0 - step) + step * fresh;
                    *load += f64::from(next - *own);
                    *own = next;
                }
            }
            for (wanted, used) in wanted[lane].iter_mut().zip(&used) {
                *wanted = if late > 0.0 {
                    *wanted * 0.97 + 0.3 * used
                } else {
                    *wanted * schedule.memory + (1.0 - schedule.memory) * used
                };
            }
            let visits = sifter.sift(net, &mut rank[lane], &wanted[lane], (3, 1.0), rng);
            work.spend(2 * visits);
        }
        let time = |channel: usize| load[channel] * net.slowness_of(channel);
        let peak = (0..net.channels).map(time).fold(1e-9, f64::max);
        let sharpness = 6.0 + 20.0 * progress;
        let (mut weighted, mut all) = (0.0, 0.0);
        for channel in 0..net.channels {
            let weight = net.slowness_of(channel) * (exp(sharpness * (time(channel) / peak - 1.0)) + 0.02);
            price[channel] = weight as f32;
            weighted += weight * load[channel];
            all += load[channel];
        }
        let scale = (all / weighted.max(1e-30)) as f32;
        price.iter_mut().for_each(|price| *price *= scale);
        if let Some(rank) = before.filter(|_| best.as_ref().is_none_or(|best| falls <= best.falls)) {
            best = Some(Annealed { rank, falls });
        }
        round += 1;
        if round == schedule.rounds + extra && falls > 0.0 && extra < schedule.extra_max {
            extra += 1;
        }
    }
    best
}

/// Sources of one lane that are swept together, and their averaged load.
struct Batch {
    lane: u8,
    roots: Vec<u32>,
    /// `units[switch]`: what each source sends there.
    units: Vec<Floats>,
    /// `load[channel]`.
    load: Vec<f32>,
    /// How often it has been routed.
    rounds: usize,
}

fn batches(net: &Net, sources: &[Source], lane: &[u8], lanes: usize, rng: &mut Rng) -> Vec<Batch> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    rng.shuffle(&mut order);
    let mut batches = Vec::new();
    for number in 0..lanes as u8 {
        let own: Vec<usize> = order.iter().copied().filter(|&source| lane[source] == number).collect();
        for chunk in own.chunks(BATCH) {
            batches.push(Batch {
                lane: number,
                roots: chunk.iter().map(|&source| sources[source].root as u32).collect(),
                units: units(net, sources, chunk),
                load: vec![0.0; net.channels],
                rounds: 0,
            });
        }
    }
    batches
}

fn units(net: &Net, sources: &[Source], chunk: &[usize]) -> Vec<Floats> {
    let mut units = vec![[0.0; BATCH]; net.switches];
    for (slot, &source) in chunk.iter().enumerate() {
        let senders = sources[source].senders() as f32;
        for (units, &share) in units.iter_mut().zip(sources[source].shares(net)) {
            units[slot] = share as f32 * senders;
        }
    }
    units
}

type Floats = [f32; BATCH];
type Channels = [u32; BATCH];

/// Tables of the sweeps, kept between batches.
struct Sweeper {
    sweeps: usize,
    /// `cost[switch]`, `last[switch]`: the best path of this sweep, and its last channel, counted on over sweeps.
    cost: Vec<Floats>,
    last: Vec<Channels>,
    /// The same over all sweeps.
    best_cost: Vec<Floats>,
    best_last: Vec<Channels>,
    /// `before[sweep · channels + channel]`: the channel before it, counted alike.
    before: Vec<Channels>,
    flow: Vec<Floats>,
    urgent: Vec<Floats>,
}

impl Sweeper {
    fn new(net: &Net, sweeps: usize) -> Self {
        let size = sweeps * net.channels;
        Self {
            sweeps,
            cost: vec![[0.0; BATCH]; net.switches],
            last: vec![[START; BATCH]; net.switches],
            best_cost: vec![[0.0; BATCH]; net.switches],
            best_last: vec![[START; BATCH]; net.switches],
            before: vec![[START; BATCH]; size],
            flow: vec![[0.0; BATCH]; size],
            urgent: vec![[0.0; BATCH]; size],
        }
    }

    /// Routes a batch; adds loads to `load[channel]` and used turns to `used[turn]`; returns the pairs that fall.
    #[allow(clippy::too_many_arguments)]
    fn route(
        &mut self,
        net: &Net,
        batch: &Batch,
        order: &[u32],
        price: &[f32],
        penalty: f32,
        urgency: f32,
        load: &mut [f32],
        used: &mut [f32],
    ) -> f64 {
        self.spread(net, batch, order, price, penalty);
        self.flow.fill([0.0; BATCH]);
        self.urgent.fill([0.0; BATCH]);
        for (switch, units) in batch.units.iter().enumerate().filter(|(switch, _)| net.hosts[*switch] > 0) {
            for (slot, &pairs) in units.iter().enumerate().take(batch.roots.len()) {
                let last = self.best_last[switch][slot];
                if last != START {
                    self.flow[last as usize][slot] += pairs;
                    self.urgent[last as usize][slot] +=
                        if last as usize >= net.channels { urgency * pairs } else { pairs };
                }
            }
        }
        self.gather(net, order, load, used)
    }

    fn spread(&mut self, net: &Net, batch: &Batch, order: &[u32], price: &[f32], penalty: f32) {
        self.cost.fill([f32::INFINITY; BATCH]);
        self.last.fill([START; BATCH]);
        for (slot, &root) in batch.roots.iter().enumerate() {
            self.cost[root as usize][slot] = 0.0;
        }
        for sweep in 0..self.sweeps {
            let base = (sweep * net.channels) as u32;
            if sweep > 0 {
                self.cost.iter_mut().flatten().for_each(|cost| *cost += penalty);
                for (slot, &root) in batch.roots.iter().enumerate() {
                    self.cost[root as usize][slot] = f32::INFINITY;
                }
            }
            for &channel in order {
                let (tail, head) = (net.tail(channel), net.head(channel));
                let price = price[channel as usize];
                let (from, last) = (self.cost[tail], self.last[tail]);
                self.before[(base + channel) as usize] = last;
                let (to, entry) = (&mut self.cost[head], &mut self.last[head]);
                for slot in 0..BATCH {
                    let through = from[slot] + price;
                    let better = through < to[slot];
                    to[slot] = if better { through } else { to[slot] };
                    entry[slot] = if better { base + channel } else { entry[slot] };
                }
            }
            if sweep == 0 {
                self.best_cost.copy_from_slice(&self.cost);
                self.best_last.copy_from_slice(&self.last);
            } else {
                for switch in 0..net.switches {
                    for slot in 0..BATCH {
                        let better = self.cost[switch][slot] < self.best_cost[switch][slot]
                            && self.last[switch][slot] >= base
                            && self.last[switch][slot] != START;
                        if better {
                            self.best_cost[switch][slot] = self.cost[switch][slot];
                            self.best_last[switch][slot] = self.last[switch][slot];
                        }
                    }
                }
            }
            for (slot, &root) in batch.roots.iter().enumerate() {
                self.best_cost[root as usize][slot] = 0.0;
                self.best_last[root as usize][slot] = START;
            }
        }
    }

    fn gather(&mut self, net: &Net, order: &[u32], load: &mut [f32], used: &mut [f32]) -> f64 {
        let mut falls = 0.0;
        for sweep in (0..self.sweeps).rev() {
            for &channel in order.iter().rev() {
                let at = sweep * net.channels + channel as usize;
                let flow = self.flow[at];
                let sum: f32 = flow.iter().sum();
                if sum == 0.0 {
                    continue;
                }
                load[channel as usize] += sum;
                let (before, urgent) = (self.before[at], self.urgent[at]);
                for slot in 0..BATCH {
                    if flow[slot] > 0.0 && before[slot] != START {
                        let previous = before[slot] as usize;
                        self.flow[previous][slot] += flow[slot];
                        self.urgent[previous][slot] += urgent[slot];
                        let fell = previous < sweep * net.channels;
                        falls += if fell { f64::from(flow[slot]) } else { 0.0 };
                        let previous = (previous % net.channels) as u32;
                        used[net.turn(previous, channel)] += urgent[slot];
                    }
                }
            }
        }
        falls
    }
}
