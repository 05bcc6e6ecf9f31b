//! Lengths that are 1 on the channels out of some set of switches and 0 elsewhere.
//!
//! What the hosts of a set send to all others must cross the channels that leave it. Sets are those of the switches nearer
//! to one pivot than to another by some difference, for pairs of pivots and every difference.
//!
//! ```text
//!        a   ·   ·  │  ·   ·   b        nearer to a by 1 or more: 3 switches; 3·3 pairs cross one channel to the right
//! ```

use fabric::{ChannelId, SwitchId};

use crate::demand::Border;

use super::{LoadBound, Search, shortest::Shortest};

/// Work spent, in visits of channels and demands.
const VISITS_MAX: usize = 12_000_000;
/// Most switches from which cuts are tried.
const PIVOTS_MAX: usize = 64;
/// Cuts between so many of them come first: all others are tried only if the best of those proves at least this share of
/// what is proven already. Where nothing is narrow, nothing comes near it.
const PIVOTS_FIRST: usize = 16;
const NARROW: f64 = 0.5;

/// Switches in some order, of which the first few are a set, and which way its frames cross.
struct Cut {
    order: Vec<usize>,
    count: usize,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

impl Search<'_> {
    /// Tries cuts between pivots, and keeps the one that proves most.
    pub(super) fn pivot_cuts(&self, best: &mut LoadBound) {
        let switches = self.topology.switches().len();
        let mut border = self.demand.border();
        let pairs_max = (VISITS_MAX / (self.head.len() + self.demand.border_steps())).max(1);
        let pivots_max = ((2 * pairs_max).isqrt() + 1).min(PIVOTS_MAX);
        let stride = self.sources.len().div_ceil(pivots_max).max(1);
        let mut shortest = Shortest::new(switches);
        let uniform = vec![1.0; self.head.len()];
        let distances: Vec<Vec<u32>> = (self.sources.iter().step_by(stride))
            .map(|&pivot| {
                shortest.run(self, pivot, &uniform);
                // Whole numbers; what cannot be reached is farthest.
                shortest.distance.iter().map(|&hops| hops.min(switches as f64) as u32).collect()
            })
            .collect();
        let mut found: Option<Cut> = None;
        let mut proven = best.load;
        let mut narrowest: f64 = 0.0;
        let (mut order, mut start) = (vec![0; switches], Vec::new());
        let every = distances.len().div_ceil(PIVOTS_FIRST).max(1);
        let is_first = |index: usize| index % every == 0;
        for round_is_first in [true, false] {
            for (index, one) in distances.iter().enumerate() {
                for (other_index, other) in distances.iter().enumerate().skip(index + 1) {
                    if (is_first(index) && is_first(other_index)) != round_is_first {
                        continue;
                    }
                    by_difference(one, other, &mut order, &mut start);
                    let (load, count, way) = self.best_prefix(&order, &mut border);
                    narrowest = narrowest.max(load);
                    if load > proven * (1.0 + 1e-12) {
                        proven = load;
                        found = Some(Cut { order: order.clone(), count, way });
                    }
                }
            }
            if narrowest < NARROW * best.load {
                break;
            }
        }
        if let Some(cut) = found {
            self.keep_better(&self.lengths_of(&cut), best);
        }
    }

    /// The prefix of `order` whose cut proves most, as `(load, switches in it, way)`.
    fn best_prefix(&self, order: &[usize], border: &mut Border<'_>) -> (f64, usize, Way) {
        border.clear();
        let mut within = vec![false; order.len()];
        let mut capacity = 0.0;
        let mut channels = 0_usize;
        let mut best = (0.0, 0, Way::Out);
        for (count, &switch) in order.iter().enumerate() {
            border.enter(SwitchId::new(switch));
            within[switch] = true;
            // A cable to a switch already inside stops crossing, any other starts to.
            for &channel in self.topology.channels_from(SwitchId::new(switch)) {
                let rate = 1.0 / self.slowness[channel.index()];
                if within[self.head[channel.index()]] {
                    (capacity, channels) = (capacity - rate, channels - 1);
                } else {
                    (capacity, channels) = (capacity + rate, channels + 1);
                }
            }
            if channels == 0 {
                // What rounding left of the capacity is nothing.
                capacity = 0.0;
                continue;
            }
            let (out, back) = border.crossing();
            for (demand, way) in [(out, Way::Out), (back, Way::In)] {
                if demand / capacity > best.0 {
                    best = (demand / capacity, count + 1, way);
                }
            }
        }
        best
    }

    fn lengths_of(&self, cut: &Cut) -> Vec<u32> {
        let mut within = vec![cut.way == Way::In; cut.order.len()];
        cut.order[..cut.count].iter().for_each(|&switch| within[switch] = cut.way == Way::Out);
        let leaves = |channel: ChannelId| {
            within[self.topology.tail(channel).index()] && !within[self.topology.head(channel).index()]
        };
        self.topology.channel_ids().map(|channel| u32::from(leaves(channel))).collect()
    }
}

/// Puts switches in the order of `one[switch] - other[switch]`, equals by number. Cost: O(switches + farthest).
fn by_difference(one: &[u32], other: &[u32], order: &mut [usize], start: &mut Vec<usize>) {
    let farthest = one.iter().chain(other).copied().max().unwrap_or(0);
    let place = |switch: usize| (one[switch] + farthest - other[switch]) as usize;
    start.clear();
    start.resize(2 * farthest as usize + 2, 0);
    (0..one.len()).for_each(|switch| start[place(switch) + 1] += 1);
    (1..start.len()).for_each(|at| start[at] += start[at - 1]);
    for switch in 0..one.len() {
        let at = &mut start[place(switch)];
        order[*at] = switch;
        *at += 1;
    }
}
