//! Which VLAN a frame takes: the one decision that every tagging mode makes differently.

use std::{collections::BTreeMap, sync::Arc};

use crate::HostId;

/// The choice of a `T` (a VLAN in a plan, a tree while planning) for every ordered pair of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment<T> {
    /// By sender: `choice[source]`. Switch-tagged and source-tagged plans.
    Source(Vec<T>),
    /// By receiver.
    Destination {
        /// `choice[destination]`.
        choice: Vec<T>,
        /// `broadcast[source]`: what the sender uses toward everybody.
        broadcast: Vec<T>,
    },
    /// By the end with the higher priority, the sender's on a tie (\[Miura\] 3.2): both directions share one choice
    /// whenever priorities differ.
    Priority {
        /// `choice[host]`.
        choice: Vec<T>,
        /// `priority[host]`; higher wins.
        priority: Vec<u32>,
        /// `broadcast[source]`: what the sender uses toward everybody.
        broadcast: Vec<T>,
    },
    /// By pair.
    Pair {
        /// `unicast[source]`: runs of destinations, ascending, without gaps. Senders that choose alike, as the hosts of a
        /// switch mostly do, share one row.
        unicast: Vec<Arc<Vec<HostRun<T>>>>,
        /// `broadcast[source]`: what the sender uses toward everybody.
        broadcast: Vec<T>,
    },
}

/// A choice for consecutive hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRun<T> {
    /// The first host.
    pub first: HostId,
    /// The last host.
    pub last: HostId,
    /// What is chosen for them.
    pub choice: T,
}

impl<T: Copy> Assignment<T> {
    /// What `source` uses toward `destination`. Cost: O(1), O(log runs) by pair.
    ///
    /// # Panics
    /// If either host is out of range, or a pair's runs have a gap at `destination`.
    pub fn unicast(&self, source: HostId, destination: HostId) -> T {
        match self {
            Self::Source(choice) => choice[source.index()],
            Self::Destination { choice, .. } => choice[destination.index()],
            Self::Priority { choice, priority, .. } => {
                let higher =
                    if priority[destination.index()] > priority[source.index()] { destination } else { source };
                choice[higher.index()]
            }
            Self::Pair { unicast, .. } => {
                let runs = &unicast[source.index()];
                let at = runs.partition_point(|run| run.last < destination);
                assert!(runs[at].first <= destination, "no choice from {source:?} to {destination:?}");
                runs[at].choice
            }
        }
    }

    /// What `source` uses for broadcast, multicast and addresses that no host of the topology owns.
    pub fn broadcast(&self, source: HostId) -> T {
        match self {
            Self::Source(choice) => choice[source.index()],
            Self::Destination { broadcast, .. } | Self::Priority { broadcast, .. } | Self::Pair { broadcast, .. } => {
                broadcast[source.index()]
            }
        }
    }

    /// What a host's own choice decides: what it sends, receives, or both; none by pair, where nothing is one host's.
    pub fn own(&self, host: HostId) -> Option<T> {
        match self {
            Self::Source(choice) | Self::Destination { choice, .. } | Self::Priority { choice, .. } => {
                Some(choice[host.index()])
            }
            Self::Pair { .. } => None,
        }
    }

    /// What each sender uses toward everybody, to be changed: `[source]`. By source that is what it uses toward each.
    pub fn broadcast_mut(&mut self) -> &mut Vec<T> {
        match self {
            Self::Source(broadcast)
            | Self::Destination { broadcast, .. }
            | Self::Priority { broadcast, .. }
            | Self::Pair { broadcast, .. } => broadcast,
        }
    }

    /// The same decisions with every choice replaced; rows that were shared still are.
    pub fn map<U>(&self, mut replace: impl FnMut(T) -> U) -> Assignment<U> {
        match self {
            Self::Source(choice) => Assignment::Source(choice.iter().map(|&c| replace(c)).collect()),
            Self::Destination { choice, broadcast } => {
                let mut all = |choices: &[T]| choices.iter().map(|&choice| replace(choice)).collect();
                Assignment::Destination { choice: all(choice), broadcast: all(broadcast) }
            }
            Self::Priority { choice, priority, broadcast } => {
                let mut all = |choices: &[T]| choices.iter().map(|&choice| replace(choice)).collect();
                Assignment::Priority { choice: all(choice), priority: priority.clone(), broadcast: all(broadcast) }
            }
            Self::Pair { unicast, broadcast } => {
                let mut shared: BTreeMap<*const Vec<HostRun<T>>, Arc<Vec<HostRun<U>>>> = BTreeMap::new();
                let mut row = |runs: &Arc<Vec<HostRun<T>>>| {
                    let replaced = shared.entry(Arc::as_ptr(runs)).or_insert_with(|| {
                        let run = |run: &HostRun<T>| HostRun {
                            first: run.first,
                            last: run.last,
                            choice: replace(run.choice),
                        };
                        Arc::new(runs.iter().map(run).collect())
                    });
                    Arc::clone(replaced)
                };
                let unicast = unicast.iter().map(&mut row).collect();
                Assignment::Pair { unicast, broadcast: broadcast.iter().map(|&c| replace(c)).collect() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_priority_decides_for_both_directions() {
        let (choice, broadcast) = (vec!['a', 'b', 'c'], vec!['x', 'y', 'z']);
        let by_priority = Assignment::Priority { choice, priority: vec![2, 1, 1], broadcast };
        let unicast = |s, d| by_priority.unicast(HostId::new(s), HostId::new(d));
        assert_eq!((unicast(0, 1), unicast(1, 0)), ('a', 'a'));
        assert_eq!((unicast(1, 2), unicast(2, 1)), ('b', 'c'));
        assert_eq!((by_priority.broadcast(HostId::new(1)), by_priority.own(HostId::new(1))), ('y', Some('b')));
    }

    #[test]
    fn a_pair_is_found_in_its_run() {
        let run = |first, last, choice| HostRun { first: HostId::new(first), last: HostId::new(last), choice };
        let row = Arc::new(vec![run(0, 1, 'a'), run(2, 5, 'b')]);
        let by_pair = Assignment::Pair { unicast: vec![row], broadcast: vec!['z'] };
        let found: String = (0..6).map(|d| by_pair.unicast(HostId::new(0), HostId::new(d))).collect();
        assert_eq!(found, "aabbbb");
        assert_eq!(by_pair.broadcast(HostId::new(0)), 'z');
    }

    #[test]
    fn shared_rows_stay_shared() {
        let run = |choice| Arc::new(vec![HostRun { first: HostId::new(0), last: HostId::new(2), choice }]);
        let (one, other) = (run('a'), run('b'));
        let by_pair = Assignment::Pair { unicast: vec![Arc::clone(&one), other, one], broadcast: vec!['a'; 3] };
        let Assignment::Pair { unicast, .. } = by_pair.map(|choice| choice as u32) else { panic!("still by pair") };
        assert!(Arc::ptr_eq(&unicast[0], &unicast[2]) && !Arc::ptr_eq(&unicast[0], &unicast[1]));
        assert_eq!((unicast[0][0].choice, unicast[1][0].choice), (u32::from('a'), u32::from('b')));
    }
}
