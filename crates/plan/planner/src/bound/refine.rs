//! Lengths from a routing that is all but the best.
//!
//! Every pair's demand is split over several paths. The sum over channels of e^(β·time/peak) is lowered by moving flow from
//! a pair's long paths to its shortest one, a channel's length being the derivative of its term (the gradient projection of
//! traffic assignment: Bertsekas and Gafni, "Projected Newton methods and optimization of multicommodity flows", 1983);
//! shortest paths are added as they appear. Once all flow is on shortest paths, Σ demand · dist = Σ load · length, and the
//! lengths prove the peak but for its share ln(channels)/β. So β rises from stage to stage, and bound and peak close in on
//! the optimum from both sides: to 0.11 % of what an exact linear program finds, in a tenth of its time or less
//! (docs/benchmarks/bound.md).
//!
//! ```text
//!        ┌──1──┐         all of d on the short way: its length e^(β·d) is more than the long way's 2·e^0;
//!     s ─┤     ├─ t      move x with e^(β·(d − x)) = 2·e^(β·x)
//!        └1─·─1┘
//! ```

use crate::exponential::exp;

use super::{LoadBound, Search, rounded, shortest::Shortest};

/// Most pairs of switches with demand for which it pays.
const PAIRS_MAX: usize = 10_000;
/// Sharpness of each stage.
const SHARPNESS: [f64; 3] = [40.0, 120.0, 360.0];
/// Most rounds of shortest paths in a stage.
const ROUNDS_MAX: usize = 20;
/// Moves between two rounds of shortest paths, in visits of pairs; at least and at most so many passes over all of them.
const VISITS: usize = 20_000;
const PASSES: [usize; 2] = [8, 100];
/// A stage ends when flow lies on paths that are too long by no more than this share, over β.
const SETTLED: f64 = 0.25;
/// Paths that are longer than a pair's shortest one by no more than this, over β, keep their flow.
const TOLERANCE: f64 = 0.05;
/// What a channel without load is long, where 1 is one at the peak.
const FLOOR: f64 = 1e-9;

/// What one switch sends to another.
struct Pair {
    to: usize,
    demand: f64,
    paths: Vec<Path>,
}

struct Path {
    channels: Vec<u32>,
    flow: f64,
}

/// Loads, and the lengths that follow.
struct Flows<'a> {
    slowness: &'a [f64],
    sharpness: f64,
    peak: f64,
    load: Vec<f64>,
    length: Vec<f64>,
}

impl Search<'_> {
    /// Keeps the best lengths on the way to the optimum; false, with nothing done, if there are too many pairs. Cost: at most
    /// 60 rounds of shortest paths from every source, and as many times [`VISITS`].
    pub(super) fn refine(&self, best: &mut LoadBound) -> bool {
        let Some(mut pairs) = self.pairs() else { return false };
        let mut shortest = Shortest::new(self.topology.switches().len());
        let mut flows = Flows::new(&self.slowness);
        self.grow_paths(&mut pairs, &flows.length, &mut shortest);
        pairs.iter_mut().flatten().for_each(|pair| pair.paths[0].flow = pair.demand);
        flows.recount(&pairs);
        flows.peak = flows.time_max();
        let passes = (VISITS / pairs.iter().map(Vec::len).sum::<usize>()).clamp(PASSES[0], PASSES[1]);
        for sharpness in SHARPNESS {
            flows.sharpness = sharpness;
            for _ in 0..ROUNDS_MAX {
                flows.measure();
                let covered = self.grow_paths(&mut pairs, &flows.length, &mut shortest);
                let capacity: f64 = flows.length.iter().zip(&self.slowness).map(|(length, slow)| length / slow).sum();
                if covered / capacity > best.load * (1.0 + 1e-9) {
                    self.keep_better(&rounded(&flows.length), best);
                }
                if flows.peak <= best.load * self.enough {
                    return true;
                }
                let laid: f64 = flows.length.iter().zip(&flows.load).map(|(length, load)| length * load).sum();
                if laid - covered < laid * SETTLED / sharpness {
                    // Nearer than the stage's own error.
                    break;
                }
                for _ in 0..passes {
                    let moves: usize = pairs.iter_mut().flatten().map(|pair| flows.balance(pair)).sum();
                    if moves == 0 {
                        break;
                    }
                }
                flows.recount(&pairs);
                flows.peak = flows.peak.min(flows.time_max());
            }
        }
        true
    }

    /// By source, what it sends to whom; none if there are too many pairs.
    fn pairs(&self) -> Option<Vec<Vec<Pair>>> {
        let mut row = vec![0.0; self.topology.switches().len()];
        let mut count = 0;
        let mut pairs = Vec::with_capacity(self.sources.len());
        for &source in &self.sources {
            self.demand.row(source, &mut row);
            let receivers = row.iter().enumerate().filter(|(_, demand)| **demand > 0.0);
            let own: Vec<Pair> = receivers.map(|(to, &demand)| Pair { to, demand, paths: Vec::new() }).collect();
            count += own.len();
            if count > PAIRS_MAX {
                return None;
            }
            pairs.push(own);
        }
        Some(pairs)
    }

    /// Gives every pair its shortest path, unless it has it, and drops those that are out of use. Returns
    /// Σ demand · distance.
    fn grow_paths(&self, pairs: &mut [Vec<Pair>], length: &[f64], shortest: &mut Shortest) -> f64 {
        let mut covered = 0.0;
        let mut channels: Vec<u32> = Vec::new();
        for (&source, row) in self.sources.iter().zip(pairs) {
            shortest.run(self, source, length);
            for Pair { to, demand, paths } in row {
                covered += *demand * shortest.distance[*to];
                channels.clear();
                let mut at = *to;
                while let Some(channel) = shortest.inward[at] {
                    channels.push(channel.index() as u32);
                    at = self.topology.tail(channel).index();
                }
                paths.retain(|path| path.flow > 0.0);
                if paths.iter().all(|path| path.channels != channels) {
                    paths.push(Path { channels: channels.clone(), flow: 0.0 });
                }
            }
        }
        covered
    }
}

/// Most rounds of [`split`] in a stage.
pub(super) const SPLIT_ROUNDS: usize = 8;
/// A round that lowers the peak by less than this part of it is the last of its stage.
const SPLIT_GAIN: f64 = 1e-3;
/// Sharpness of the stages of [`split`], whose paths are given: there are fewer ways to come near.
const SPLIT_SHARPNESS: [f64; 3] = [40.0, 160.0, 640.0];

/// How long the most loaded channel takes where each demand splits over given paths, which do not grow.
pub(super) fn split(slowness: &[f64], demands: Vec<(f64, Vec<Vec<u32>>)>) -> f64 {
    let even = |(demand, paths): (f64, Vec<Vec<u32>>)| {
        let flow = demand / paths.len() as f64;
        Pair { to: 0, demand, paths: paths.into_iter().map(|channels| Path { channels, flow }).collect() }
    };
    let mut pairs: Vec<Vec<Pair>> = vec![demands.into_iter().map(even).collect()];
    let mut flows = Flows::new(slowness);
    flows.recount(&pairs);
    flows.peak = flows.time_max();
    if flows.peak == 0.0 {
        return 0.0;
    }
    let passes = (VISITS / pairs[0].len()).clamp(PASSES[0], PASSES[1]);
    for sharpness in SPLIT_SHARPNESS {
        flows.sharpness = sharpness;
        for _ in 0..SPLIT_ROUNDS {
            flows.measure();
            for _ in 0..passes {
                if pairs[0].iter_mut().map(|pair| flows.balance(pair)).sum::<usize>() == 0 {
                    break;
                }
            }
            flows.recount(&pairs);
            let before = flows.peak;
            flows.peak = before.min(flows.time_max());
            if flows.peak > before * (1.0 - SPLIT_GAIN) {
                break;
            }
        }
    }
    flows.peak
}

impl<'a> Flows<'a> {
    /// No flows, and lengths as if every channel were at the peak.
    fn new(slowness: &'a [f64]) -> Self {
        let load = vec![0.0; slowness.len()];
        Self { slowness, sharpness: SHARPNESS[0], peak: f64::INFINITY, load, length: slowness.to_vec() }
    }

    fn time_max(&self) -> f64 {
        self.load.iter().zip(self.slowness).map(|(load, slow)| load * slow).fold(0.0, f64::max)
    }

    /// Adds loads up anew, so that rounding does not.
    fn recount(&mut self, pairs: &[Vec<Pair>]) {
        self.load.fill(0.0);
        for path in pairs.iter().flatten().flat_map(|pair| &pair.paths) {
            path.channels.iter().for_each(|&channel| self.load[channel as usize] += path.flow);
        }
    }

    /// Makes all lengths those of the loads.
    fn measure(&mut self) {
        (0..self.load.len()).for_each(|channel| self.update(channel));
    }

    fn update(&mut self, channel: usize) {
        let slow = self.slowness[channel];
        let time = self.load[channel] * slow;
        self.length[channel] = slow * (exp(self.sharpness * (time / self.peak - 1.0)) + FLOOR);
    }

    fn length_of(&self, path: &Path) -> f64 {
        path.channels.iter().map(|&channel| self.length[channel as usize]).sum()
    }

    /// Moves flow from a pair's longer paths to its shortest one, each by a step of Newton's method; returns the moves.
    fn balance(&mut self, pair: &mut Pair) -> usize {
        let paths = &mut pair.paths;
        let lengths = paths.iter().map(|path| self.length_of(path)).enumerate();
        let Some((short, least)) = lengths.min_by(|a, b| a.1.total_cmp(&b.1)) else { return 0 };
        let mut moves = 0;
        let enough = least * (1.0 + TOLERANCE / self.sharpness);
        for long in 0..paths.len() {
            if long == short || paths[long].flow == 0.0 {
                continue;
            }
            // Moves of this pair have changed lengths since.
            let length = self.length_of(&paths[long]);
            let excess = length - self.length_of(&paths[short]);
            if length <= enough || excess <= 0.0 {
                continue;
            }
            let slope = (self.steepness(&paths[long], &paths[short]) + self.steepness(&paths[short], &paths[long]))
                * (self.sharpness / self.peak);
            let step = (excess / slope).min(paths[long].flow);
            self.shift(&mut paths[long], -step);
            self.shift(&mut paths[short], step);
            moves += 1;
        }
        moves
    }

    /// How fast the length of a path's own channels, those that the other does not have, grows with their load, over β/peak.
    fn steepness(&self, path: &Path, other: &Path) -> f64 {
        let own = path.channels.iter().filter(|channel| !other.channels.contains(channel));
        own.map(|&channel| self.length[channel as usize] * self.slowness[channel as usize]).sum()
    }

    fn shift(&mut self, path: &mut Path, flow: f64) {
        path.flow += flow;
        for &channel in &path.channels {
            self.load[channel as usize] += flow;
            self.update(channel as usize);
        }
    }
}
