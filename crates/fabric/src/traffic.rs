//! What hosts send to each other: the load that a plan is to spread over the cables.

use thiserror::Error;

use crate::HostId;

/// Largest demand of one pair: sums over all pairs stay far from where numbers lose their digits.
pub const DEMAND_MAX: f64 = 1e18;
/// Most pairs that a matrix states, in a few hundred megabytes.
pub const DEMANDS_MAX: usize = 1 << 24;

/// What hosts send to each other.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Traffic {
    /// As much from every host to every other: a demand of one an ordered pair. Nothing is stored for it.
    #[default]
    AllToAll,
    /// So much from each host to each other.
    Matrix(TrafficMatrix),
}

impl Traffic {
    /// What a host sends to another; nothing to itself. Cost: O(log receivers of the source).
    pub fn demand(&self, source: HostId, destination: HostId) -> f64 {
        match self {
            _ if source == destination => 0.0,
            Self::AllToAll => 1.0,
            Self::Matrix(matrix) => matrix.demand(source, destination),
        }
    }

    /// Whether it can be meant for so many hosts.
    pub fn fits(&self, hosts: usize) -> bool {
        match self {
            Self::AllToAll => true,
            Self::Matrix(matrix) => matrix.hosts() == hosts,
        }
    }
}

/// A traffic matrix by hosts, of which only what is not zero is kept.
///
/// Demands are weights in any one unit (bytes, bit/s, messages): only their proportions matter to a planner, and loads
/// are reported in the same unit.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficMatrix {
    /// What host `h` sends: `entries[start[h]..start[h + 1]]`, ascending by receiver.
    start: Vec<usize>,
    entries: Vec<(HostId, f64)>,
}

impl Eq for TrafficMatrix {}

/// One entry of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Who sends.
    pub source: HostId,
    /// Who receives.
    pub destination: HostId,
    /// How much, 0 or more.
    pub amount: f64,
}

/// Why demands are no matrix.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrafficError {
    /// A host that there is not.
    #[error("there is no host {0:?}")]
    UnknownHost(HostId),
    /// A host that sends to itself.
    #[error("{0:?} sends to itself")]
    ToItself(HostId),
    /// A demand that is negative, too large or no number.
    #[error("a demand of {0}: it is 0 or more, and at most {DEMAND_MAX:e}")]
    Amount(f64),
    /// Two demands for one pair.
    #[error("the demand from {0:?} to {1:?} is stated twice")]
    Twice(HostId, HostId),
    /// More pairs than a matrix can hold.
    #[error("{0} demands are more than the {DEMANDS_MAX} that a matrix holds")]
    TooMany(usize),
}

impl TrafficMatrix {
    /// The sum of some traffic for so many hosts, each kind times its weight. Cost: O(demands), and O(hosts²) for all-to-all.
    ///
    /// # Errors
    /// [`TrafficError::TooMany`].
    ///
    /// # Panics
    /// If a matrix is for more hosts.
    pub fn weighted_sum(hosts: usize, parts: &[(f64, &Traffic)]) -> Result<Self, TrafficError> {
        let receivers = |source: HostId| {
            let mut row = vec![0.0; hosts];
            for (weight, traffic) in parts {
                match traffic {
                    Traffic::AllToAll => row.iter_mut().for_each(|sum| *sum += weight),
                    Traffic::Matrix(matrix) => {
                        matrix.sent_by(source).iter().for_each(|(to, amount)| row[to.index()] += weight * amount);
                    }
                }
            }
            row[source.index()] = 0.0;
            HostId::all(hosts).zip(row)
        };
        Self::of_rows(hosts, receivers)
    }

    /// A matrix for so many hosts; pairs without a demand send nothing. Cost: O(demands · log demands).
    ///
    /// # Errors
    /// [`TrafficError`], naming what is wrong.
    pub fn new(hosts: usize, mut demands: Vec<Demand>) -> Result<Self, TrafficError> {
        demands.sort_by_key(|demand| (demand.source, demand.destination));
        for &Demand { source, destination, amount } in &demands {
            if let Some(&host) = [source, destination].iter().find(|host| host.index() >= hosts) {
                return Err(TrafficError::UnknownHost(host));
            }
            if source == destination {
                return Err(TrafficError::ToItself(source));
            }
            if !(0.0..=DEMAND_MAX).contains(&amount) {
                return Err(TrafficError::Amount(amount));
            }
        }
        let twice = |pair: &[Demand]| (pair[0].source, pair[0].destination) == (pair[1].source, pair[1].destination);
        if let Some(pair) = demands.windows(2).find(|pair| twice(pair)) {
            return Err(TrafficError::Twice(pair[0].source, pair[0].destination));
        }
        demands.retain(|demand| demand.amount > 0.0);
        if demands.len() > DEMANDS_MAX {
            return Err(TrafficError::TooMany(demands.len()));
        }
        let mut start = vec![0; hosts + 1];
        demands.iter().for_each(|demand| start[demand.source.index() + 1] += 1);
        (0..hosts).for_each(|host| start[host + 1] += start[host]);
        let entries = demands.into_iter().map(|demand| (demand.destination, demand.amount)).collect();
        Ok(Self { start, entries })
    }

    /// A matrix in which each host sends so much to each of those that `receivers` names, ascending and without itself.
    /// Cost: O(demands).
    ///
    /// # Errors
    /// [`TrafficError::TooMany`].
    ///
    /// # Panics
    /// In debug builds, if the receivers of a host do not ascend, or it is one of them.
    pub(crate) fn of_rows<R: Iterator<Item = (HostId, f64)>>(
        hosts: usize,
        receivers: impl Fn(HostId) -> R,
    ) -> Result<Self, TrafficError> {
        let (mut start, mut entries) = (Vec::with_capacity(hosts + 1), Vec::new());
        start.push(0);
        for source in HostId::all(hosts) {
            let first = entries.len();
            entries.extend(receivers(source).filter(|(_, amount)| *amount > 0.0));
            let row = &entries[first..];
            debug_assert!(
                row.windows(2).all(|pair| pair[0].0 < pair[1].0) && row.iter().all(|entry| entry.0 != source)
            );
            // Nobody waits for what is refused anyway.
            if entries.len() > DEMANDS_MAX {
                return Err(TrafficError::TooMany(entries.len()));
            }
            start.push(entries.len());
        }
        Ok(Self { start, entries })
    }

    /// For how many hosts it is.
    pub fn hosts(&self) -> usize {
        self.start.len() - 1
    }

    /// What a host sends, ascending by receiver; what is zero is left out.
    pub fn sent_by(&self, source: HostId) -> &[(HostId, f64)] {
        &self.entries[self.start[source.index()]..self.start[source.index() + 1]]
    }

    /// What a host sends to another. Cost: O(log receivers of the source).
    pub fn demand(&self, source: HostId, destination: HostId) -> f64 {
        let row = self.sent_by(source);
        row.binary_search_by_key(&destination, |entry| entry.0).map_or(0.0, |at| row[at].1)
    }

    /// Every demand that is not zero, ascending by source and destination.
    pub fn demands(&self) -> impl Iterator<Item = Demand> + '_ {
        HostId::all(self.hosts()).flat_map(|source| {
            self.sent_by(source).iter().map(move |&(destination, amount)| Demand { source, destination, amount })
        })
    }

    /// The matrix with sources and destinations exchanged. Cost: O(demands).
    pub fn transposed(&self) -> Self {
        let hosts = self.hosts();
        let mut start = vec![0; hosts + 1];
        self.entries.iter().for_each(|entry| start[entry.0.index() + 1] += 1);
        (0..hosts).for_each(|host| start[host + 1] += start[host]);
        let mut next = start.clone();
        let mut entries = vec![(HostId::new(0), 0.0); self.entries.len()];
        for Demand { source, destination, amount } in self.demands() {
            let at = &mut next[destination.index()];
            entries[*at] = (source, amount);
            *at += 1;
        }
        Self { start, entries }
    }

    /// The number of pairs with a demand.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody sends anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The sum of all demands.
    pub fn total(&self) -> f64 {
        self.entries.iter().map(|entry| entry.1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(source: usize, destination: usize, amount: f64) -> Demand {
        Demand { source: HostId::new(source), destination: HostId::new(destination), amount }
    }

    #[test]
    fn a_matrix_knows_its_pairs() {
        let demands = vec![demand(2, 0, 1.5), demand(0, 2, 3.0), demand(0, 1, 0.0)];
        let matrix = TrafficMatrix::new(3, demands).expect("sound demands");
        assert_eq!((matrix.hosts(), matrix.len(), matrix.total()), (3, 2, 4.5));
        let other_way = vec![demand(0, 2, 1.5), demand(2, 0, 3.0)];
        assert_eq!(matrix.transposed(), TrafficMatrix::new(3, other_way).expect("sound demands"));
        let traffic = Traffic::Matrix(matrix);
        for (source, destination, amount) in [(0, 1, 0.0), (0, 2, 3.0), (2, 0, 1.5), (1, 1, 0.0), (1, 2, 0.0)] {
            assert_eq!(traffic.demand(HostId::new(source), HostId::new(destination)), amount);
        }
        assert!(traffic.fits(3) && !traffic.fits(4));
        let all = Traffic::AllToAll;
        assert_eq!(
            (all.demand(HostId::new(0), HostId::new(1)), all.demand(HostId::new(1), HostId::new(1))),
            (1.0, 0.0)
        );
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for (demands, error) in [
            (vec![demand(0, 3, 1.0)], TrafficError::UnknownHost(HostId::new(3))),
            (vec![demand(1, 1, 1.0)], TrafficError::ToItself(HostId::new(1))),
            (vec![demand(0, 1, -1.0)], TrafficError::Amount(-1.0)),
            (vec![demand(0, 1, f64::INFINITY)], TrafficError::Amount(f64::INFINITY)),
            (
                vec![demand(0, 1, 1.0), demand(1, 0, 1.0), demand(0, 1, 0.0)],
                TrafficError::Twice(HostId::new(0), HostId::new(1)),
            ),
        ] {
            assert_eq!(TrafficMatrix::new(3, demands), Err(error));
        }
        assert!(TrafficMatrix::new(3, vec![demand(0, 1, f64::NAN)]).is_err());
    }

    #[test]
    fn a_sum_has_each_kind_of_traffic_by_its_weight() {
        let one = Traffic::Matrix(TrafficMatrix::new(3, vec![demand(0, 1, 2.0), demand(2, 0, 5.0)]).expect("sound"));
        let parts = [(0.5, &Traffic::AllToAll), (3.0, &one), (0.0, &one)];
        let sum = TrafficMatrix::weighted_sum(3, &parts).expect("few demands");
        let amounts: Vec<f64> = sum.demands().map(|demand| demand.amount).collect();
        assert_eq!(amounts, [6.5, 0.5, 0.5, 0.5, 15.5, 0.5]);
        assert!(TrafficMatrix::weighted_sum(3, &[(0.0, &one)]).expect("few demands").is_empty());
    }
}
