//! A traffic matrix out of what each host sends and receives in all.
//!
//! Byte counters tell how much enters and leaves a fabric at each host, not who talks to whom. The *gravity model* assumes
//! that a sender's traffic divides among receivers as their share of everything: `T(i,j) ~ sent(i) · received(j)` (Zhang,
//! Roughan, Duffield and Greenberg, "Fast accurate computation of large-scale IP traffic matrices from link loads", 2003,
//! 3.1). Since no host sends to itself, rows and columns then sum to less than was counted. *Iterative proportional
//! fitting* scales rows and columns by turns until both fit (Kruithof, 1937; Deming and Stephan, 1940), which gives the
//! matrix nearest to the model in relative entropy. Here the matrix stays the product of two factors with an empty
//! diagonal, so a round is linear in the hosts.
//!
//! ```text
//!            sent 6 3 3, received 4 4 4         to: h0   h1   h2
//!   T(i,j) = a(i) · b(j), i ≠ j             from h0  ·   3    3        rows 6 3 3
//!                                                h1  2   ·    1
//!                                                h2  2   1    ·        columns 4 4 4
//! ```

use thiserror::Error;

use crate::{DEMANDS_MAX, Demand, HostId, TrafficError, TrafficMatrix};

/// Most rounds of fitting.
const ROUNDS_MAX: usize = 10_000;
/// How far the sums may be off, as a share of all traffic, before fitting stops.
const ENOUGH: f64 = 1e-9;

/// A matrix that was estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The matrix.
    pub matrix: TrafficMatrix,
    /// How much of all traffic its sums by sender miss what was counted, as a share. It is far from 0 only where no
    /// matrix can fit: where one host exchanges more than all others together.
    pub misfit: f64,
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EstimateError {
    /// Nothing was counted on one side.
    #[error("nothing was {0} by any host: is it the right file, and were there two readings with traffic in between?")]
    Nothing(&'static str),
    /// Too many pairs.
    #[error("{senders} senders and {receivers} receivers make more pairs than the {DEMANDS_MAX} that a matrix holds")]
    TooManyPairs {
        /// Hosts that send.
        senders: usize,
        /// Hosts that receive.
        receivers: usize,
    },
    /// The counts are no numbers, or too large.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
}

/// Estimates who sends what to whom from `sent[host]` and `received[host]`, in any one unit. Where the two do not sum to
/// the same, what is received is scaled. Cost: O(hosts · rounds + pairs).
///
/// # Errors
/// [`EstimateError`].
///
/// # Panics
/// If the two are not for the same number of hosts.
pub fn gravity(sent: &[f64], received: &[f64]) -> Result<Estimate, EstimateError> {
    assert_eq!(sent.len(), received.len(), "one count of each kind a host");
    if let Some(&amount) = sent.iter().chain(received).find(|amount| !(amount.is_finite() && **amount >= 0.0)) {
        return Err(TrafficError::Amount(amount).into());
    }
    let [senders, receivers] = [sent, received].map(|counts| counts.iter().filter(|count| **count > 0.0).count());
    if senders == 0 || receivers == 0 {
        return Err(EstimateError::Nothing(if senders == 0 { "sent" } else { "received" }));
    }
    if senders.saturating_mul(receivers) > DEMANDS_MAX {
        return Err(EstimateError::TooManyPairs { senders, receivers });
    }
    let all: f64 = sent.iter().sum();
    let scale = all / received.iter().sum::<f64>();
    // In shares of all traffic.
    let rows: Vec<f64> = sent.iter().map(|count| count / all).collect();
    let columns: Vec<f64> = received.iter().map(|count| count * scale / all).collect();
    let (mut a, mut b) = (rows.clone(), columns.clone());
    let mut misfit = f64::INFINITY;
    for _ in 0..ROUNDS_MAX {
        fit(&rows, &mut a, &b);
        fit(&columns, &mut b, &a);
        let sum: f64 = b.iter().sum();
        let missed = rows.iter().zip(a.iter().zip(&b)).map(|(row, (a, b))| (row - a * (sum - b)).abs());
        misfit = missed.sum();
        if misfit < ENOUGH {
            break;
        }
    }
    let mut demands = Vec::with_capacity(senders * receivers);
    for source in HostId::all(sent.len()).filter(|host| a[host.index()] > 0.0) {
        for destination in HostId::all(sent.len()).filter(|host| *host != source && b[host.index()] > 0.0) {
            let amount = a[source.index()] * b[destination.index()] * all;
            demands.push(Demand { source, destination, amount });
        }
    }
    Ok(Estimate { matrix: TrafficMatrix::new(sent.len(), demands)?, misfit })
}

/// Scales one factor so that its sums with the other, less the diagonal, are those wanted.
fn fit(wanted: &[f64], own: &mut [f64], other: &[f64]) {
    let sum: f64 = other.iter().sum();
    for ((own, wanted), other) in own.iter_mut().zip(wanted).zip(other) {
        let reach = sum - other;
        *own = if *wanted > 0.0 && reach > f64::MIN_POSITIVE { wanted / reach } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn sums(matrix: &TrafficMatrix) -> (Vec<f64>, Vec<f64>) {
        let (mut sent, mut received) = (vec![0.0; matrix.hosts()], vec![0.0; matrix.hosts()]);
        for Demand { source, destination, amount } in matrix.demands() {
            sent[source.index()] += amount;
            received[destination.index()] += amount;
        }
        (sent, received)
    }

    fn near(found: &[f64], expected: &[f64]) -> bool {
        let scale = expected.iter().sum::<f64>();
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 1e-6 * scale)
    }

    #[test]
    fn sums_fit_and_equal_hosts_share_alike() {
        let estimate = gravity(&[6.0, 3.0, 3.0], &[4.0, 4.0, 4.0]).expect("an estimate");
        let found: Vec<f64> = estimate.matrix.demands().map(|demand| demand.amount).collect();
        assert!(near(&found, &[3.0, 3.0, 2.0, 1.0, 2.0, 1.0]), "{found:?}");
        let even = gravity(&[3.0; 4], &[3.0; 4]).expect("an estimate").matrix;
        assert!(even.demands().all(|demand| (demand.amount - 1.0).abs() < 1e-6) && even.len() == 12);
    }

    #[test]
    fn random_counts_that_a_matrix_has_are_met() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let hosts = 3 + rng.below(40);
            let mut demands = Vec::new();
            for source in HostId::all(hosts) {
                for destination in HostId::all(hosts).filter(|host| *host != source) {
                    demands.push(Demand { source, destination, amount: 1e9 * rng.unit_f64() });
                }
            }
            let (sent, received) = sums(&TrafficMatrix::new(hosts, demands).expect("sound demands"));
            let estimate = gravity(&sent, &received).expect("an estimate");
            let found = sums(&estimate.matrix);
            assert!(estimate.misfit < 1e-6, "seed {seed}: {}", estimate.misfit);
            assert!(near(&found.0, &sent) && near(&found.1, &received), "seed {seed}");
        }
    }

    #[test]
    fn what_no_matrix_can_fit_is_said() {
        let estimate = gravity(&[10.0, 1.0, 0.0], &[10.0, 1.0, 0.0]).expect("an estimate");
        assert!(estimate.misfit > 0.1, "{}", estimate.misfit);
        assert_eq!(gravity(&[0.0, 0.0], &[1.0, 0.0]), Err(EstimateError::Nothing("sent")));
        assert_eq!(gravity(&[0.0, 1.0], &[0.0, 0.0]), Err(EstimateError::Nothing("received")));
        assert!(gravity(&[f64::NAN, 1.0], &[1.0, 0.0]).is_err());
        assert!(gravity(&vec![1.0; 5000], &vec![1.0; 5000]).is_err());
    }
}
