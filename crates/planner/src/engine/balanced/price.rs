//! What it costs to put one more frame on a channel: exponential in how busy the channel is.
//!
//! The sum over channels of e^(s·(time/target − 1)) is dominated by the busiest ones, and more so the larger the
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

/// e^x with a relative error below 10⁻⁸, the same bits on every machine. Beyond ±700 it stays where it is there.
#[inline]
pub(crate) fn exp(x: f64) -> f64 {
    let scaled = x.clamp(-700.0, 700.0) * std::f64::consts::LOG2_E;
    let whole = (scaled + 2048.5) as i64 - 2048;
    let r = (scaled - whole as f64) * std::f64::consts::LN_2;
    let series = 1.0
        + r * (1.0
            + r * (1.0 / 2.0
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r / 5040.0))))));
    series * f64::from_bits(((whole + 1023) as u64) << 52)
}

/// The natural logarithm of a positive number with an error below 10⁻⁹, the same bits on every machine.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    // A mantissa between √½ and √2, times a power of two.
    let high = u64::from(bits & ((1 << 52) - 1) > 0x6_a09e_667f_3bcd);
    let exponent = (bits >> 52) + high;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 - high) << 52);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let series =
        s * (2.0 + t * (2.0 / 3.0 + t * (2.0 / 5.0 + t * (2.0 / 7.0 + t * (2.0 / 9.0 + t * (2.0 / 11.0 + t / 6.5))))));
    series + (exponent as f64 - 1023.0) * std::f64::consts::LN_2
}

/// The number that lies so far, 0 to 1, on the way from one positive number to another, by ratios.
pub(super) fn between(low: f64, high: f64, way: f64) -> f64 {
    low * exp(way * ln(high / low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_exact_enough_everywhere() {
        for step in -7000..=7000 {
            let x = f64::from(step) / 10.0;
            assert!((ln(x.exp()) - x).abs() < 1e-9 * x.abs().max(1.0), "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
        assert!((between(0.2, 4.0, 0.5) - 0.8_f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn the_exponential_is_exact_enough_everywhere() {
        for step in -70_000..=70_000 {
            let x = f64::from(step) / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-8, "{x}");
        }
        assert_eq!((exp(0.0), exp(-1e300), exp(1e300)), (1.0, exp(-700.0), exp(700.0)));
    }
}
