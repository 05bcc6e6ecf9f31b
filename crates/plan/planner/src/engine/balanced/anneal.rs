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

use std::borrow::Cow;

use fabric::rng::Rng;

use crate::{
    exponential::{between, exp},
    threads::with_each,
};

use super::{
    forest::Source,
    net::Net,
    order::{Sifter, Sifting},
    price::of_share,
    rank::ranks_by_key,
    schedule::{ANNEALING, AnnealingSchedule, PRICES},
    work::Work,
};

/// Sources swept at once.
const BATCH: usize = 16;
/// No channel yet, in the tables of a sweep.
const START: u32 = u32::MAX;

/// Groups of batches that may be swept at the same time.
const CREWS: usize = 8;

/// Where flow comes from, and what goes where.
pub(super) struct Origin<'a> {
    /// The switches at any of which its paths may begin, and what that costs; a hop costs 1 on average.
    pub(super) roots: Vec<(u32, f32)>,
    /// How many send, and what each sends to every switch.
    pub(super) senders: u64,
    pub(super) shares: &'a [u32],
}

/// An origin for each source.
pub(super) fn origins<'a>(net: &'a Net, sources: &'a [Source]) -> Vec<Origin<'a>> {
    let origin = |source: &'a Source| Origin {
        roots: vec![(source.root as u32, 0.0)],
        senders: source.senders(),
        shares: source.shares(net),
    };
    sources.iter().map(origin).collect()
}

/// About what annealing costs, in visits.
pub(super) fn cost(net: &Net, sources: usize, schedule: AnnealingSchedule) -> u64 {
    let batches = sources.div_ceil(BATCH);
    let (first, last) = schedule.batches_max.map(|most| batches.min(most)).into();
    let swept = (first as f64 * ANNEALING.detailed + last as f64 * (1.0 - ANNEALING.detailed)) * schedule.rounds as f64;
    (swept * (1.0 - schedule.done)) as u64 * visits_per_batch(net, schedule)
}

fn visits_per_batch(net: &Net, schedule: AnnealingSchedule) -> u64 {
    (2 * schedule.sweeps * net.channels) as u64
}

/// Random orders, one for each lane.
pub(super) fn random_orders(net: &Net, lanes: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
    let mut rank: Vec<Vec<u32>> =
        (0..lanes).map(|_| ranks_by_key(&(0..net.channels).map(|_| rng.unit_f64()).collect::<Vec<_>>())).collect();
    if let Some(symmetry) = &net.symmetry {
        symmetry.spread(&mut rank);
    }
    rank
}

/// What orders are annealed for, and how.
pub(super) struct Annealing<'a> {
    pub(super) origins: &'a [Origin<'a>],
    /// `lane[origin]`.
    pub(super) lane: &'a [u8],
    /// Nothing goes through channels with `closed[lane][channel]`, of which there are none where this is empty.
    pub(super) closed: &'a [Vec<bool>],
    pub(super) schedule: AnnealingSchedule,
}

/// Anneals `rank[lane][channel]`; none if time was up before that was done, so that what comes out never depends on how much
/// time was left.
pub(super) fn anneal(
    net: &Net,
    annealing: &Annealing<'_>,
    mut rank: Vec<Vec<u32>>,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Option<Vec<Vec<u32>>> {
    let &Annealing { origins, lane, closed, schedule } = annealing;
    let lanes = rank.len();
    let mut batches: Vec<Vec<Batch>> =
        (0..lanes).map(|number| batches(net, origins, lane, number as u8, rng)).collect();
    let mut wanted = vec![vec![0.0_f32; net.turns]; lanes];
    let mut load = vec![0.0_f64; net.channels];
    let mut price = vec![1.0_f32; net.channels];
    let mut order = vec![0_u32; net.channels];
    let mut crews: Vec<Crew> = (0..CREWS).map(|_| Crew::new(net, schedule.sweeps)).collect();
    let (mut sifter, sifting) = (Sifter::default(), Sifting { sweeps: ANNEALING.siftings, share: 1.0 });
    let tables = if net.symmetry.is_some() { net.turns } else { 0 };
    let (mut counted, mut folded) = (vec![0.0_f32; tables], vec![0.0_f32; tables]);
    // The pairs that broke the orders, and these.
    let mut best: Option<(f64, Vec<Vec<u32>>)> = None;
    let (mut round, mut extra) = ((schedule.done * schedule.rounds as f64) as usize, 0);
    while round < schedule.rounds + extra {
        let progress = (round as f64 / (schedule.rounds.max(2) - 1) as f64).min(1.0);
        let late = round.saturating_sub(schedule.rounds) as f64;
        let penalty = between(schedule.penalty, ANNEALING.penalty_last, progress) as f32;
        let urgency = 1.0 + schedule.urgency * (progress * progress * exp(ANNEALING.extra_urgency * late)) as f32;
        let before = (progress > ANNEALING.detailed).then(|| rank.clone());
        let mut falls = 0.0;
        folded.fill(0.0);
        for lane in 0..lanes {
            for (channel, &at) in rank[lane].iter().enumerate() {
                order[at as usize] = channel as u32;
            }
            let own = &mut batches[lane];
            let most = schedule.batches_max[usize::from(progress > ANNEALING.detailed)];
            let count = own.len().min(most);
            let middle = round * count % own.len().max(1);
            own.rotate_left(middle);
            let share = count.div_ceil(CREWS).max(1);
            let mut jobs: Vec<(&mut Crew, &mut [Batch])> =
                crews.iter_mut().zip(own[..count].chunks_mut(share)).collect();
            let prices = open_prices(&price, closed.get(lane));
            let terms = Terms { order: &order, price: &prices, penalty, urgency };
            with_each(work.threads(), &mut jobs, |(crew, batches)| crew.route(net, batches, terms));
            let crewed = jobs.len();
            own.rotate_right(middle);
            for crew in &crews[..crewed] {
                falls += crew.falls;
            }
            let fresh = if late > 0.0 { ANNEALING.extra_fresh } else { 1.0 - schedule.memory };
            let memory = if late > 0.0 { ANNEALING.extra_memory } else { schedule.memory };
            let used = |turn: usize| crews[..crewed].iter().map(|crew| crew.used[turn]).sum::<f32>();
            // Where lanes are alike, what is wanted on all of them decides the order of the first.
            let sifted = match &net.symmetry {
                None => {
                    let wanted = wanted[lane].iter_mut().enumerate();
                    wanted.for_each(|(turn, wanted)| *wanted = *wanted * memory + fresh * used(turn));
                    Some(lane)
                }
                Some(_) => {
                    counted.iter_mut().enumerate().for_each(|(turn, counted)| *counted = used(turn));
                    net.fold_turns(lane, &counted, &mut folded);
                    let wanted = wanted[0].iter_mut().zip(&folded);
                    let is_last = lane + 1 == lanes;
                    if is_last {
                        wanted.for_each(|(wanted, used)| *wanted = *wanted * memory + fresh * used);
                    }
                    is_last.then_some(0)
                }
            };
            let visits = sifted.map_or(0, |lane| sifter.sift(net, &mut rank[lane], &wanted[lane], sifting, rng));
            if let (Some(symmetry), Some(_)) = (&net.symmetry, sifted) {
                symmetry.spread(&mut rank);
            }
            if !work.spend(count * visits_per_batch(net, schedule) as usize + 2 * visits) {
                return None;
            }
        }
        load.fill(0.0);
        for batch in batches.iter().flatten() {
            load.iter_mut().zip(&batch.load).for_each(|(load, own)| *load += f64::from(*own));
        }
        if let Some(symmetry) = &net.symmetry {
            symmetry.fold_loads(&mut load);
        }
        let time = |channel: usize| load[channel] * net.slowness_of(channel);
        let peak = (0..net.channels).map(time).fold(1e-9, f64::max);
        let [soft, sharp] = ANNEALING.sharpness;
        let sharpness = soft + (sharp - soft) * progress;
        let (mut weighted, mut all) = (0.0, 0.0);
        for channel in 0..net.channels {
            let weight = net.slowness_of(channel) * of_share(time(channel) / peak, sharpness, PRICES.floor);
            price[channel] = weight as f32;
            weighted += weight * load[channel];
            all += load[channel];
        }
        let scale = (all / weighted.max(1e-30)) as f32;
        price.iter_mut().for_each(|price| *price *= scale);
        if let Some(rank) = before.filter(|_| best.as_ref().is_none_or(|best| falls <= best.0)) {
            best = Some((falls, rank));
        }
        round += 1;
        if round == schedule.rounds + extra && falls > 0.0 && extra < schedule.extra_max {
            extra += 1;
        }
    }
    best.map(|best| best.1)
}

/// What paths are found by.
#[derive(Clone, Copy)]
struct Terms<'a> {
    /// All channels, in the lane's order.
    order: &'a [u32],
    /// `price[channel]`.
    price: &'a [f32],
    /// What a turn against the order costs.
    penalty: f32,
    /// How much more than others flow counts that takes such a turn.
    urgency: f32,
}

/// What a channel costs on a lane.
fn open_prices<'p>(price: &'p [f32], closed: Option<&Vec<bool>>) -> Cow<'p, [f32]> {
    match closed {
        None => Cow::Borrowed(price),
        Some(closed) => {
            let open = |(&price, &closed): (&f32, &bool)| if closed { f32::INFINITY } else { price };
            Cow::Owned(price.iter().zip(closed).map(open).collect())
        }
    }
}

/// Origins of one lane that are swept together, and their averaged load.
struct Batch {
    roots: Vec<Vec<(u32, f32)>>,
    /// `units[switch]`: what each origin sends there.
    units: Vec<Floats>,
    /// `load[channel]`.
    load: Vec<f32>,
    /// How often it has been routed.
    rounds: usize,
}

impl Batch {
    /// Place in the batch, switch, and what it costs to begin there.
    fn each_root(&self) -> impl Iterator<Item = (usize, usize, f32)> {
        let slots = self.roots.iter().enumerate();
        slots.flat_map(|(slot, roots)| roots.iter().map(move |&(root, start)| (slot, root as usize, start)))
    }
}

fn batches(net: &Net, origins: &[Origin<'_>], lane: &[u8], number: u8, rng: &mut Rng) -> Vec<Batch> {
    let mut own: Vec<usize> = (0..origins.len()).filter(|&origin| lane[origin] == number).collect();
    rng.shuffle(&mut own);
    let batch = |chunk: &[usize]| Batch {
        roots: chunk.iter().map(|&origin| origins[origin].roots.clone()).collect(),
        units: units(net, origins, chunk),
        load: vec![0.0; net.channels],
        rounds: 0,
    };
    own.chunks(BATCH).map(batch).collect()
}

/// Tables of those who sweep batches one after the other.
struct Crew {
    sweeper: Sweeper,
    fresh: Vec<f32>,
    /// `used[turn]`: what crossed it.
    used: Vec<f32>,
    /// Pairs that broke the order.
    falls: f64,
}

impl Crew {
    fn new(net: &Net, sweeps: usize) -> Self {
        let (fresh, used) = (vec![0.0; net.channels], vec![0.0; net.turns]);
        Self { sweeper: Sweeper::new(net, sweeps), fresh, used, falls: 0.0 }
    }

    fn route(&mut self, net: &Net, batches: &mut [Batch], terms: Terms<'_>) {
        self.used.fill(0.0);
        self.falls = 0.0;
        for batch in batches {
            let step =
                if batch.rounds == 0 { 1.0 } else { (2.0 / (batch.rounds as f64 + 2.0)).max(ANNEALING.averaging_min) }
                    as f32;
            batch.rounds += 1;
            self.fresh.fill(0.0);
            let Self { sweeper, fresh, used, .. } = self;
            self.falls += sweeper.route(net, batch, terms, fresh, used);
            for (own, fresh) in batch.load.iter_mut().zip(&self.fresh) {
                *own = *own * (1.0 - step) + step * fresh;
            }
        }
    }
}

fn units(net: &Net, origins: &[Origin<'_>], chunk: &[usize]) -> Vec<Floats> {
    let mut units = vec![[0.0; BATCH]; net.switches];
    for (slot, &origin) in chunk.iter().enumerate() {
        let senders = origins[origin].senders as f32;
        for (units, &share) in units.iter_mut().zip(origins[origin].shares) {
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
    /// Pairs that cross a channel, and the same with falls counted more.
    flow: Vec<[(f32, f32); BATCH]>,
    /// `active[sweep · channels + channel]`: a bit for each source with flow there. Few have any, so only these are visited.
    active: Vec<u16>,
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
            flow: vec![[(0.0, 0.0); BATCH]; size],
            active: vec![0; size],
        }
    }

    /// Routes a batch; adds loads to `load[channel]` and used turns to `used[turn]`; returns the pairs that fall.
    fn route(&mut self, net: &Net, batch: &Batch, terms: Terms<'_>, load: &mut [f32], used: &mut [f32]) -> f64 {
        self.spread(net, batch, terms);
        for (switch, units) in batch.units.iter().enumerate().filter(|(switch, _)| net.hosts[*switch] > 0) {
            for (slot, &pairs) in units.iter().enumerate().take(batch.roots.len()) {
                let last = self.best_last[switch][slot];
                if last != START {
                    let urgent = if last as usize >= net.channels { terms.urgency * pairs } else { pairs };
                    self.push(last as usize, slot, pairs, urgent);
                }
            }
        }
        self.gather(net, terms.order, load, used)
    }

    fn spread(&mut self, net: &Net, batch: &Batch, Terms { order, price, penalty, .. }: Terms<'_>) {
        self.cost.fill([f32::INFINITY; BATCH]);
        self.last.fill([START; BATCH]);
        for (slot, root, start) in batch.each_root() {
            self.cost[root][slot] = start;
        }
        for sweep in 0..self.sweeps {
            let base = (sweep * net.channels) as u32;
            if sweep > 0 {
                self.cost.iter_mut().flatten().for_each(|cost| *cost += penalty);
                for (slot, root, _) in batch.each_root() {
                    self.cost[root][slot] = f32::INFINITY;
                }
            }
            let before = &mut self.before[base as usize..base as usize + net.channels];
            for &channel in order {
                let (tail, head) = (net.tail(channel), net.head(channel));
                let last = self.last[tail];
                before[channel as usize] = last;
                // Copies, since nothing in memory may change between the lanes of a vector.
                let (mut to, mut entry) = (self.cost[head], self.last[head]);
                extend(&self.cost[tail], price[channel as usize], base + channel, &mut to, &mut entry);
                (self.cost[head], self.last[head]) = (to, entry);
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
            for (slot, root, start) in batch.each_root() {
                self.best_cost[root][slot] = start;
                self.best_last[root][slot] = START;
            }
        }
    }

    #[inline]
    fn push(&mut self, at: usize, slot: usize, pairs: f32, urgent: f32) {
        let flow = &mut self.flow[at][slot];
        *flow = (flow.0 + pairs, flow.1 + urgent);
        self.active[at] |= 1 << slot;
    }

    fn gather(&mut self, net: &Net, order: &[u32], load: &mut [f32], used: &mut [f32]) -> f64 {
        let mut falls = 0.0;
        for sweep in (0..self.sweeps).rev() {
            let base = sweep * net.channels;
            for &channel in order.iter().rev() {
                let at = base + channel as usize;
                let mut active = std::mem::take(&mut self.active[at]);
                let mut sum = 0.0;
                while active != 0 {
                    let slot = active.trailing_zeros() as usize;
                    active &= active - 1;
                    let (pairs, urgent) = std::mem::take(&mut self.flow[at][slot]);
                    sum += pairs;
                    let before = self.before[at][slot];
                    if before != START {
                        let previous = before as usize;
                        self.push(previous, slot, pairs, urgent);
                        falls += if previous < base { f64::from(pairs) } else { 0.0 };
                        used[net.turn((previous % net.channels) as u32, channel)] += urgent;
                    }
                }
                load[channel as usize] += sum;
            }
        }
        falls
    }
}

/// Extends paths by a channel where that is cheaper than what leads to its head so far. Written for vectors.
#[inline(always)]
fn extend(from: &Floats, price: f32, channel: u32, to: &mut Floats, entry: &mut Channels) {
    for slot in 0..BATCH {
        let through = from[slot] + price;
        let mask = 0_u32.wrapping_sub(u32::from(through < to[slot]));
        to[slot] = if through < to[slot] { through } else { to[slot] };
        entry[slot] = (channel & mask) | (entry[slot] & !mask);
    }
}
