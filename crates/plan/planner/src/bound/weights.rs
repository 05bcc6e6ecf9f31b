//! Lengths by multiplicative weights.
//!
//! Route everything along shortest paths, average the loads of all rounds so far, make each channel's length exponential
//! in how long it takes, repeat; the average of all lengths proves most (Garg and Könemann, "Faster and simpler algorithms
//! for multicommodity flow", 1998).
//!
//! ```text
//!   round    a▶b, a▶c, c▶b: load     lengths of the next
//!   1          2    0    0            e   1   1           a▶b is crowded
//!   2          2    0    0            e   1   1           … and so it stays until e > 2, when the way over c is shorter
//! ```

use super::{LoadBound, Search, rounded};
use crate::exponential::exp;

/// Work spent, in channel relaxations.
const RELAXATIONS_MAX: usize = 12_000_000;
/// Most rounds, however small the network.
const ROUNDS_MAX: usize = 400;
/// How fast the weights sharpen, a round.
const SHARPENING: f64 = 0.15;

impl Search<'_> {
    /// Multiplicative weights; keeps the averaged lengths.
    pub(super) fn multiplicative_weights(&self, best: &mut LoadBound) {
        let channels = self.head.len();
        let rounds = (RELAXATIONS_MAX / (self.sources.len() * channels)).clamp(2, ROUNDS_MAX);
        // Prices of time on a channel; its length is that times how slow it is.
        let mut weights = vec![1.0; channels];
        let mut lengths = vec![0.0; channels];
        let mut average_lengths = vec![0.0; channels];
        let mut average_load = vec![0.0; channels];
        let mut load = vec![0.0; channels];
        for round in 0..rounds {
            for ((length, weight), slowness) in lengths.iter_mut().zip(&weights).zip(&self.slowness) {
                *length = weight * slowness;
            }
            let loads = self.in_crews(vec![0.0; channels], |shortest, source, row, load| {
                shortest.run(self, source, &lengths);
                self.demand.row(source, row);
                shortest.spread(self, row, load);
            });
            load.fill(0.0);
            for own in loads {
                load.iter_mut().zip(own).for_each(|(load, own)| *load += own);
            }
            let step = 1.0 / (round as f64 + 1.0);
            let sum: f64 = weights.iter().sum();
            let mut peak: f64 = 0.0;
            for ((average, load), slowness) in average_load.iter_mut().zip(&load).zip(&self.slowness) {
                *average += step * (load - *average);
                peak = peak.max(*average * slowness);
            }
            for (average, length) in average_lengths.iter_mut().zip(&lengths) {
                *average += step * (length / sum - *average);
            }
            let sharpness = 2.0 + SHARPENING * round as f64;
            for ((weight, average), slowness) in weights.iter_mut().zip(&average_load).zip(&self.slowness) {
                *weight = exp(sharpness * (average * slowness / peak - 1.0)) + 1e-6;
            }
        }
        self.keep_better(&rounded(&average_lengths), best);
    }
}
