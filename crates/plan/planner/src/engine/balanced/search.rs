//! Local search: reattach a subtree elsewhere, if that makes the whole cheaper.
//!
//! Moving a switch of a tree to another of the channels that enter it takes the load of everything below off the path
//! that led there and puts it on another; the two paths part at some ancestor, above which nothing changes. With prices
//! exponential in the load ([`Prices`]) such moves flatten the most loaded channels. Where ranks must
//! rise, the new channel's must lie between that of the channel before it and those of the channels after it, which
//! also rules out cycles; without ranks, the new parent must not lie below.
//!
//! ```text
//!        [r]                 [r]          b moves from a to c: −load on r▶a, a▶b
//!       ╱   ╲               ╱   ╲                              +load on r▶c, c▶b
//!     [a]   [c]    ─▶     [a]   [c]
//!      │                        ╱
//!     [b]─[d]             [b]─[d]
//! ```

use fabric::rng::Rng;

use super::{
    depth::{depth, height},
    forest::{Forest, Source},
    net::{NONE, Net},
    price::Prices,
    schedule::{Effort, PRICES},
    work::Work,
};

/// Tables kept between searches.
pub(super) struct Scratch {
    /// `stamp[switch]`: the last move for which the switch was an ancestor.
    stamp: Vec<u32>,
    /// `saved[switch]`: what taking the load off the path from there costs less.
    saved: Vec<f64>,
    now: u32,
    sources: Vec<u32>,
    switches: Vec<u32>,
    /// `path[switch · rates + class]`: weights on the way there at the last survey, by class of rate.
    path: Vec<f64>,
    /// `earliest[switch]`: the least rank by which a path may go on; beyond all ranks where there is no path.
    earliest: Vec<u32>,
    pending: Vec<u32>,
    promising: Vec<u32>,
    /// A rank of zero for every channel, where any turn is allowed.
    zeros: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(net: &Net, sources: usize) -> Self {
        Self {
            stamp: vec![0; net.switches],
            saved: vec![0.0; net.switches],
            now: 0,
            sources: (0..sources as u32).collect(),
            switches: (0..net.switches as u32).collect(),
            path: vec![0.0; net.switches * net.slowness.len().max(1)],
            earliest: vec![0; net.switches],
            pending: Vec::new(),
            promising: Vec::new(),
            zeros: vec![0; net.channels],
        }
    }

    /// Sums up the weights on all paths of a tree. As moves are made the sums grow old, but they only tell which
    /// channels are worth a closer look. Cost: O(switches).
    fn survey(&mut self, net: &Net, root: usize, rank: Option<&[u32]>, inward: &[u32], prices: &Prices) {
        const UNKNOWN: u32 = u32::MAX;
        let classes = net.slowness.len().max(1);
        self.earliest.fill(UNKNOWN);
        self.earliest[root] = 0;
        self.path[root * classes..][..classes].fill(0.0);
        for switch in 0..inward.len() {
            let mut at = switch;
            while self.earliest[at] == UNKNOWN && inward[at] != NONE {
                self.pending.push(at as u32);
                at = net.tail(inward[at]);
            }
            while let Some(next) = self.pending.pop() {
                let next = next as usize;
                let channel = inward[next] as usize;
                let tail = net.tail[channel] as usize;
                for class in 0..classes {
                    self.path[next * classes + class] = self.path[tail * classes + class];
                }
                self.path[next * classes + usize::from(net.class[channel])] += prices.weight[channel];
                self.earliest[next] = rank.map_or(0, |rank| rank[channel] + 1);
            }
        }
    }
}

/// What moves do not change.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) net: &'a Net,
    pub(super) sources: &'a [Source],
    /// `lane[source]`.
    pub(super) lane: &'a [u8],
    /// `rank[lane][channel]`: the order that the lane's trees must keep; empty if every turn is allowed.
    pub(super) rank: &'a [Vec<u32>],
}

/// Sweeps over all switches of all trees until a sweep changes little, at most `sweeps` times; returns the moves made.
pub(super) fn reattach(
    rules: Rules<'_>,
    forest: &mut Forest,
    scratch: &mut Scratch,
    Effort { sharpness, ambition, sweeps }: Effort,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> usize {
    let net = rules.net;
    let mut total = 0;
    let mut target = forest.peak(net) * ambition;
    let mut prices = Prices::new(net, &forest.load, sharpness, target);
    let mut order = std::mem::take(&mut scratch.sources);
    for _ in 0..sweeps {
        rng.shuffle(&mut order);
        let mut moves = 0;
        for &source in &order {
            let source = source as usize;
            if work.expired() {
                break;
            }
            let spent = sweep_tree(rules, forest, source, &mut prices, scratch, rng);
            moves += spent.0;
            work.spend(spent.1);
        }
        total += moves;
        if moves <= order.len() / 8 || work.expired() {
            break;
        }
        let lower = forest.peak(net) * ambition;
        if lower < target {
            target = lower;
            prices = Prices::new(net, &forest.load, sharpness, target);
        }
    }
    scratch.sources = order;
    total
}

/// The order that a source's tree must keep, if any.
#[inline]
pub(super) fn rank_of<'r>(rank: &'r [Vec<u32>], lane: &[u8], source: usize) -> Option<&'r [u32]> {
    rank.get(usize::from(lane[source])).map(Vec::as_slice)
}

/// Tries every switch of one tree; returns the moves made and the channels visited.
fn sweep_tree(
    rules: Rules<'_>,
    forest: &mut Forest,
    number: usize,
    prices: &mut Prices,
    scratch: &mut Scratch,
    rng: &mut Rng,
) -> (usize, usize) {
    let (net, source, rank) = (rules.net, &rules.sources[number], rank_of(rules.rank, rules.lane, number));
    let senders = source.senders();
    let root = source.root;
    let classes = net.slowness.len().max(1);
    let (inward, below, load) = forest.tree_mut(number);
    scratch.survey(net, root, rank, inward, prices);
    let (mut moves, mut visits) = (0, inward.len() / 2);
    let negligible = PRICES.negligible * prices.slope;
    let Scratch { stamp, saved, now, switches, path, earliest, promising, zeros, .. } = scratch;
    let ranks = rank.unwrap_or(zeros);
    rng.shuffle(switches);
    for &switch in switches.iter() {
        let switch = switch as usize;
        if below[switch] == 0 || switch == root {
            continue;
        }
        let pairs = u64::from(below[switch]) * senders;
        let factors = prices.factors(net, pairs);
        let by = prices.at(factors);
        let here = &path[switch * classes..][..classes];
        visits += 1;
        if here.iter().zip(&by.taken).map(|(path, taken)| path * taken).sum::<f64>() < negligible * pairs as f64 {
            continue;
        }
        // Which ways in may be cheaper, by what the survey knows.
        let into = net.into(switch);
        let ways = into.start as usize..into.end as usize;
        promising.clear();
        if let (&[here], &[added, ..], &[taken, ..]) = (here, &by.added[..], &by.taken[..]) {
            let tails = net.tail[ways.clone()].iter().zip(&ranks[ways.clone()]);
            for ((channel, (&tail, &own)), &weight) in into.zip(tails).zip(&prices.weight[ways]) {
                if own >= earliest[tail as usize] && weight * added < (here - path[tail as usize]) * taken {
                    promising.push(channel);
                }
            }
        } else {
            promising.extend(into.filter(|&channel| {
                let tail = net.tail(channel);
                let class = usize::from(net.class[channel as usize]);
                let there = &path[tail * classes..][..classes];
                let beside: f64 = (here.iter().zip(there).zip(by.added.iter().zip(&by.taken)))
                    .map(|((here, there), (added, taken))| (there - here) * if here < there { added } else { taken })
                    .sum();
                ranks[channel as usize] >= earliest[tail]
                    && prices.weight[channel as usize] * by.added[class] + beside < 0.0
            }));
        }
        visits += 1;
        let current = inward[switch];
        promising.retain(|&channel| channel != current && net.allows(root, channel));
        if let Some(limit) = net.confined.hops().filter(|_| !promising.is_empty()) {
            let height = height(net, inward, switch);
            promising.retain(|&channel| depth(net, root, inward, net.tail(channel)) + 1 + height <= limit.hops_max);
        }
        if promising.is_empty() {
            continue;
        }
        let latest = match rank {
            None => u32::MAX,
            Some(rank) => (net.from(switch).iter())
                .filter(|next| inward[net.head(**next)] == **next)
                .map(|next| rank[*next as usize])
                .min()
                .unwrap_or(u32::MAX),
        };
        // The path as it is, and what leaving it at each switch saves.
        *now = now.wrapping_add(1);
        let (mut at, mut saving) = (switch, 0.0);
        while at != root {
            let channel = inward[at] as usize;
            let class = usize::from(net.class[channel]);
            saving += prices.weight[channel] * by.taken[class] + by.hop[class];
            at = net.tail[channel] as usize;
            stamp[at] = *now;
            saved[at] = saving;
            visits += 1;
        }
        let mut best = (-1e-9 * (1.0 + saving), NONE);
        'candidates: for &channel in promising.iter() {
            if ranks[channel as usize] >= latest {
                continue;
            }
            let class = usize::from(net.class[channel as usize]);
            let mut cost = prices.weight[channel as usize] * by.added[class] + by.hop[class];
            let mut at = net.tail(channel);
            while stamp[at] != *now {
                if at == switch || cost > saving {
                    continue 'candidates;
                }
                let channel = inward[at] as usize;
                let class = usize::from(net.class[channel]);
                cost += prices.weight[channel] * by.added[class] + by.hop[class];
                at = net.tail[channel] as usize;
                visits += 1;
            }
            let change = cost - saved[at];
            if change < best.0 {
                best = (change, channel);
            }
        }
        let (_, channel) = best;
        if channel == NONE {
            continue;
        }
        let moved = below[switch];
        let mut at = switch;
        while at != root {
            let channel = inward[at] as usize;
            net.twins(channel as u32).iter().for_each(|twin| load[*twin as usize] -= pairs);
            prices.update(net, load, channel);
            at = net.tail[channel] as usize;
            below[at] -= moved;
        }
        inward[switch] = channel;
        if let Some(rank) = rank {
            earliest[switch] = rank[channel as usize] + 1;
        }
        at = switch;
        while at != root {
            let channel = inward[at] as usize;
            net.twins(channel as u32).iter().for_each(|twin| load[*twin as usize] += pairs);
            prices.update(net, load, channel);
            at = net.tail[channel] as usize;
            below[at] += moved;
        }
        moves += 1;
    }
    (moves, visits)
}
