//! What it costs to put one more frame on a channel: exponential in the channel's load.
//!
//! The sum over channels of e^(s·(time/target − 1)) is dominated by the most loaded ones, and more so the larger the
//! sharpness s: a smooth stand-in for the maximum (Garg and Könemann, 1998, use it for flows). Times are loads over
//! rates, so the same frames load a channel of half the rate twice as much.
//!
//! ```text
//!   cost ▲            ╱
//!        │          ╱        taking z pairs off saves w·(1 − e^(−kz)),
//!        │ ______－          adding them costs w·(e^(kz) − 1), with w = e^(k·load − s)
//!        └────────┴──▶ load
//!               target
//! ```

use super::{net::Net, schedule::PRICES};
use crate::exponential::exp;

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
            let hop_cost = PRICES.hop * net.pairs_per_unit;
            self.memo[at] = Factors {
                pairs,
                added: times().map(|time| exp(slope * time) - 1.0).collect(),
                taken: times().map(|time| 1.0 - exp(-slope * time)).collect(),
                hop: times().map(|time| hop_cost * time).collect(),
            };
        }
        at
    }

    /// The factors with this number.
    #[inline]
    pub(super) fn at(&self, factors: usize) -> &Factors {
        &self.memo[factors]
    }

    /// What so many pairs more, or less, change on a channel of shared trees.
    #[inline]
    pub(super) fn change(&self, net: &Net, channel: u32, pairs: f64) -> f64 {
        if pairs == 0.0 {
            return 0.0;
        }
        let time = self.slope * pairs * net.slowness_of(channel as usize);
        self.weight[channel as usize] * (exp(time) - 1.0) + PRICES.hop_shared * time
    }

    /// What a pair costs on a channel of shared trees, if it is the only change.
    #[inline]
    pub(super) fn of_pair(&self, net: &Net, channel: u32) -> f64 {
        self.slope * net.slowness_of(channel as usize) * (self.weight[channel as usize] + PRICES.hop_shared)
    }

    /// Whether all changes of load have been followed.
    pub(super) fn follows(&self, net: &Net, load: &[u64]) -> bool {
        (0..net.channels).all(|channel| self.weight[channel] == self.of(net, load, channel))
    }
}

/// The price of a channel by its load, as a share of the most loaded one's; `floor` is the cost of a hop. Beyond twice the
/// greatest load prices rise no more, so that single precision always holds them.
#[inline]
pub(super) fn of_share(share: f64, sharpness: f64, floor: f64) -> f64 {
    exp(sharpness * (share - 1.0).min(1.0).min(20.0 / sharpness)) + floor
}

/// Prices for whole paths: exponential in the load, with a floor so that hops count too.
pub(super) struct PathPrices {
    pub(super) price: Vec<f32>,
    sharpness: f64,
    floor: f64,
    peak: f64,
    scale: f64,
}

impl PathPrices {
    /// Scaled so that the average hop costs 1.
    pub(super) fn new(net: &Net, load: &[u64], sharpness: f64, floor: f64) -> Self {
        let times = (0..net.channels).map(|channel| load[channel] as f64 * net.slowness_of(channel));
        let peak = times.fold(1.0, f64::max);
        let mut prices = Self { price: vec![0.0; net.channels], sharpness, floor, peak, scale: 1.0 };
        let (mut weighted, mut all) = (0.0, 0.0);
        for channel in 0..net.channels {
            let price = prices.at(net, load, channel);
            weighted += price * load[channel] as f64;
            all += load[channel] as f64;
        }
        if weighted > 0.0 {
            prices.scale = all / weighted;
        }
        for channel in 0..net.channels {
            prices.price[channel] = (prices.scale * prices.at(net, load, channel)) as f32;
        }
        prices
    }

    /// Follows a change of a channel's load.
    #[inline]
    pub(super) fn update(&mut self, net: &Net, load: &[u64], channel: u32) {
        let price = (self.scale * self.at(net, load, channel as usize)) as f32;
        net.twins(channel).iter().for_each(|twin| self.price[*twin as usize] = price);
    }

    #[inline]
    fn at(&self, net: &Net, load: &[u64], channel: usize) -> f64 {
        let slowness = net.slowness_of(channel);
        let share = load[channel] as f64 * slowness / self.peak;
        slowness * of_share(share, self.sharpness, self.floor)
    }
}
