//! What it costs to put one more frame on a channel: exponential in how busy the channel is.
//!
//! The sum over channels of e^(s·(time/target − 1)) is dominated by the most loaded ones, and more so the larger the
//! sharpness s: a smooth stand-in for the maximum (Garg and Könemann, 1998, use it for flows). Times are loads over
//! rates, so a channel of half the rate is twice as busy.
//!
//! ```text
//!   cost ▲            ╱
//!        │          ╱        taking z pairs off saves w·(1 − e^(−kz)),
//!        │ ______－          adding them costs w·(e^(kz) − 1), with w = e^(k·load − s)
//!        └────────┴──▶ load
//!               target
//! ```

use super::net::Net;
use crate::exponential::exp;

/// What every pair costs on every channel beside its price, so that of two ways as good the shorter is taken.
const HOP_COST: f64 = 1e-7;

/// Prices that follow the loads.
pub(super) struct Prices {
    sharpness: f64,
    /// `sharpness / target`.
    pub(super) slope: f64,
    /// `weight[channel]`: e^(slope · time − sharpness).
    pub(super) weight: Vec<f64>,
    memo: Vec<Factors>,
}

/// What a number of pairs costs, by rate class, relative to a channel's weight.
#[derive(Clone, Default)]
pub(super) struct Factors {
    pairs: u64,
    /// `added[class]`, `taken[class]`, `hop[class]`.
    pub(super) added: Vec<f64>,
    pub(super) taken: Vec<f64>,
    pub(super) hop: Vec<f64>,
}

impl Prices {
    /// Prices by the loads as they are.
    pub(super) fn new(net: &Net, load: &[u64], sharpness: f64, target: f64) -> Self {
        let slope = sharpness / target.max(1.0);
        let mut prices =
            Self { sharpness, slope, weight: vec![0.0; net.channels], memo: vec![Factors::default(); 256] };
        (0..net.channels).for_each(|channel| prices.weight[channel] = prices.of(net, load, channel));
        prices
    }

    /// Follows a change of a channel's load.
    #[inline]
    pub(super) fn update(&mut self, net: &Net, load: &[u64], channel: usize) {
        let weight = self.of(net, load, channel);
        net.twins(channel as u32).iter().for_each(|twin| self.weight[*twin as usize] = weight);
    }

    #[inline]
    fn of(&self, net: &Net, load: &[u64], channel: usize) -> f64 {
        let time = load[channel] as f64 * net.slowness_of(channel);
        exp(self.slope * time - self.sharpness)
    }

    /// The factors for a number of pairs. Cost: O(rates), O(1) if it was asked for lately.
    #[inline]
    pub(super) fn factors(&mut self, net: &Net, pairs: u64) -> usize {
        let at = (pairs % 256) as usize;
        if self.memo[at].pairs != pairs || self.memo[at].added.is_empty() {
            let slope = self.slope;
            let times = || net.slowness.iter().map(|slowness| slowness * pairs as f64);
            let hop_cost = HOP_COST * net.pairs_per_unit;
            self.memo[at] = Factors {
                pairs,
                added: times().map(|time| exp(slope * time) - 1.0).collect(),
                taken: times().map(|time| 1.0 - exp(-slope * time)).collect(),
                hop: times().map(|time| hop_cost * time).collect(),
            };
        }
        at
    }

    #[inline]
    pub(super) fn at(&self, factors: usize) -> &Factors {
        &self.memo[factors]
    }
}
