//! Random traffic: messages of random sizes between random hosts at random times, and traffic matrices, as programs.
//!
//! ```text
//!   host a  ──wait t1──▶ send 3 KB to c      sources and receivers even, times those of a Poisson process,
//!           ──wait t2──▶ send 1 MB to b      sizes by a distribution
//! ```
//! The load is the share of the hosts' cables that payload would take on average if all of it got through at once.

use std::{fmt, str::FromStr};

use fabric::{HostId, Topology, TrafficMatrix, rng::Rng};

use crate::program::{Action, Builder, MESSAGE_BYTES_MAX, Program, ProgramError};

/// Payload of a full segment, in which the published distributions count.
const SEGMENT_BYTES: f64 = 1460.0;
/// Most messages of random traffic.
pub const MESSAGES_MAX: u64 = 10_000_000;

/// How sizes are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All alike.
    Fixed(u64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto with this mean and shape above 1.
    Pareto {
        /// The mean.
        mean: f64,
        /// The exponent of the tail.
        shape: f64,
    },
    /// A cluster that answers searches: Alizadeh et al., "pFabric", 2013, figure 4a, after DCTCP's measurements.
    WebSearch,
    /// A cluster that mines data: the same, figure 4b, after VL2's measurements.
    DataMining,
}

/// Segments, and the share of messages that have no more; straight lines between.
const WEB_SEARCH: &[(f64, f64)] = &[
    (1.0, 0.0),
    (6.0, 0.15),
    (13.0, 0.2),
    (19.0, 0.3),
    (33.0, 0.4),
    (53.0, 0.53),
    (133.0, 0.6),
    (667.0, 0.7),
    (1333.0, 0.8),
    (3333.0, 0.9),
    (6667.0, 0.97),
    (20_000.0, 1.0),
];
const DATA_MINING: &[(f64, f64)] = &[
    (1.0, 0.0),
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (7.0, 0.8),
    (267.0, 0.9),
    (2107.0, 0.95),
    (66_667.0, 0.99),
    (666_667.0, 1.0),
];

/// Random traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// How many messages.
    pub messages: u64,
    /// Share of the hosts' cables, above 0.
    pub load: f64,
    /// Their sizes.
    pub sizes: Sizes,
    /// Seed.
    pub seed: u64,
}

impl Sizes {
    /// The mean, in octets.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Exponential(mean) | Self::Pareto { mean, .. } => *mean,
            Self::WebSearch => table_mean(WEB_SEARCH),
            Self::DataMining => table_mean(DATA_MINING),
        }
    }

    /// A size by lot, 1 at least.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let lot = rng.unit_f64();
        let bytes = match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Exponential(mean) => -(1.0 - lot).ln() * mean,
            Self::Pareto { mean, shape } => mean * (shape - 1.0) / shape / (1.0 - lot).powf(1.0 / shape),
            Self::WebSearch => table_draw(WEB_SEARCH, lot),
            Self::DataMining => table_draw(DATA_MINING, lot),
        };
        (bytes.round().min(MESSAGE_BYTES_MAX as f64) as u64).max(1)
    }
}

fn table_mean(table: &[(f64, f64)]) -> f64 {
    let pieces = table.windows(2).map(|piece| (piece[1].1 - piece[0].1) * (piece[0].0 + piece[1].0) / 2.0);
    pieces.sum::<f64>() * SEGMENT_BYTES
}

fn table_draw(table: &[(f64, f64)], lot: f64) -> f64 {
    let at = table.partition_point(|(_, share)| *share <= lot).clamp(1, table.len() - 1);
    let ((from, below), (to, above)) = (table[at - 1], table[at]);
    (from + (to - from) * (lot - below) / (above - below)) * SEGMENT_BYTES
}

impl Random {
    /// The traffic as a program with a rank for each host.
    ///
    /// # Errors
    /// If it takes more than 11 days.
    ///
    /// # Panics
    /// If there are fewer than two hosts, or the load is not above 0.
    pub fn program(&self, topology: &Topology) -> Result<Program, ProgramError> {
        let hosts = topology.hosts();
        assert!(hosts.len() > 1 && self.load > 0.0, "random traffic needs two hosts and some load");
        let rate_bps: f64 = hosts.iter().map(|host| host.rate_bps as f64).sum();
        let gap_ps = self.sizes.mean() * 8e12 / (rate_bps * self.load);
        let (mut rng, mut builder, mut at_ps) = (Rng::new(self.seed), Builder::new(hosts.len()), 0.0);
        for number in 0..self.messages {
            at_ps += -(1.0 - rng.unit_f64()).ln() * gap_ps;
            let from = rng.below(hosts.len());
            let to = (from + 1 + rng.below(hosts.len() - 1)) % hosts.len();
            let bytes = self.sizes.draw(&mut rng);
            let tag = (number % (1 << 30)) as u32;
            let wait = builder.add(from as u32, Action::Wait { ps: at_ps.min(2e18) as u64 });
            let send = builder.add(from as u32, Action::Send { to: to as u32, tag, bytes, cpu: 0 });
            builder.after(send, wait, crate::program::Until::End);
            builder.add(to as u32, Action::Receive { from: Some(from as u32), tag: Some(tag), cpu: 0 });
        }
        builder.build()
    }
}

/// A matrix as a program with a rank for each host: each pair's demand, times `bytes_per_unit`, in one message at once.
///
/// # Errors
/// If a message would be too large.
pub fn matrix_program(matrix: &TrafficMatrix, bytes_per_unit: f64) -> Result<Program, ProgramError> {
    let mut builder = Builder::new(matrix.hosts());
    let rank = |host: HostId| host.index() as u32;
    for demand in matrix.demands() {
        let bytes = (demand.amount * bytes_per_unit).round().min(1e18) as u64;
        let (from, to) = (rank(demand.source), rank(demand.destination));
        builder.add(from, Action::Send { to, tag: 0, bytes, cpu: 0 });
        builder.add(to, Action::Receive { from: Some(from), tag: Some(0), cpu: 0 });
    }
    builder.build()
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "fixed={bytes}"),
            Self::Exponential(mean) => write!(f, "exponential={mean}"),
            Self::Pareto { mean, shape } => write!(f, "pareto={mean},{shape}"),
            Self::WebSearch => f.write_str("web-search"),
            Self::DataMining => f.write_str("data-mining"),
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is none of fixed=N, exponential=MEAN, pareto=MEAN,SHAPE (a shape above 1), web-search, data-mining"
            )
        };
        let (name, numbers) = text.split_once('=').unwrap_or((text, ""));
        let number = |text: &str| {
            let number = text.parse::<f64>().ok();
            number.filter(|number| (1.0..=MESSAGE_BYTES_MAX as f64).contains(number)).ok_or_else(refused)
        };
        match name {
            "fixed" => Ok(Self::Fixed(number(numbers)? as u64)),
            "exponential" => Ok(Self::Exponential(number(numbers)?)),
            "pareto" => {
                let (mean, shape) = numbers.split_once(',').ok_or_else(refused)?;
                let shape = shape.parse::<f64>().ok().filter(|shape| *shape > 1.0 && *shape < 100.0);
                Ok(Self::Pareto { mean: number(mean)?, shape: shape.ok_or_else(refused)? })
            }
            "web-search" if numbers.is_empty() => Ok(Self::WebSearch),
            "data-mining" if numbers.is_empty() => Ok(Self::DataMining),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_that_they_say() {
        for text in ["fixed=1000", "exponential=5000", "pareto=5000,2.5", "web-search", "data-mining"] {
            let sizes: Sizes = text.parse().expect("sizes");
            assert_eq!(sizes.to_string(), text);
            let (mut rng, draws) = (Rng::new(7), 400_000);
            let sum: f64 = (0..draws).map(|_| sizes.draw(&mut rng) as f64).sum();
            let mean = sum / f64::from(draws);
            assert!((mean / sizes.mean() - 1.0).abs() < 0.03, "{text}: {mean} is not {}", sizes.mean());
        }
        for wrong in ["fixed=0", "pareto=5", "pareto=5,1", "web", "web-search=1", "exponential=x"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
