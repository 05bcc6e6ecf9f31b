//! A topological order of channels that is kept while dependencies are added.
//!
//! A dependency whose channels stand in order already costs nothing. One that stands the wrong way round moves only what
//! lies between: what `to` leads to, and what leads to `from`. If the two meet, the dependency would close a cycle and is
//! refused, with nothing changed.
//!
//! Source: Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", ACM JEA 11, 2007.
//!
//! ```text
//! order a b c d, b → c known; add d → b:   b and c go behind d:  a d b c      add c → d then: refused
//! ```

use fabric::ChannelId;

/// Channels in an order that every dependency follows.
#[derive(Clone, Debug)]
pub(crate) struct ChannelOrder {
    /// `position[channel]`; a permutation.
    position: Vec<usize>,
    next: Vec<Vec<ChannelId>>,
    before: Vec<Vec<ChannelId>>,
}

impl ChannelOrder {
    /// The order of ascending `rank[channel]`, ties by channel, without dependencies.
    pub(crate) fn by_rank(rank: &[u32]) -> Self {
        let mut order: Vec<usize> = (0..rank.len()).collect();
        order.sort_by_key(|&channel| (rank[channel], channel));
        let mut position = vec![0; rank.len()];
        for (at, &channel) in order.iter().enumerate() {
            position[channel] = at;
        }
        Self { position, next: vec![Vec::new(); rank.len()], before: vec![Vec::new(); rank.len()] }
    }

    /// Adds the dependency of a frame that holds `from` and waits for `to`; false if it would close a cycle.
    /// Cost: O(1) where the order fits, else the dependencies of the channels between the two.
    pub(crate) fn add(&mut self, from: ChannelId, to: ChannelId) -> bool {
        if from == to {
            return false;
        }
        if self.next[from.index()].contains(&to) {
            return true;
        }
        if self.position[from.index()] > self.position[to.index()] && !self.reorder(from, to) {
            return false;
        }
        self.next[from.index()].push(to);
        self.before[to.index()].push(from);
        true
    }

    /// Moves `from` and what leads to it before `to` and what it leads to; false if they meet.
    fn reorder(&mut self, from: ChannelId, to: ChannelId) -> bool {
        let (low, high) = (self.position[to.index()], self.position[from.index()]);
        let mut after = reach(to, &self.next, |channel| self.position[channel.index()] <= high);
        if after.contains(&from) {
            return false;
        }
        let mut moved = reach(from, &self.before, |channel| self.position[channel.index()] >= low);
        moved.sort_unstable_by_key(|channel| self.position[channel.index()]);
        after.sort_unstable_by_key(|channel| self.position[channel.index()]);
        moved.append(&mut after);
        let mut places: Vec<usize> = moved.iter().map(|channel| self.position[channel.index()]).collect();
        places.sort_unstable();
        for (channel, place) in moved.into_iter().zip(places) {
            self.position[channel.index()] = place;
        }
        true
    }
}

/// What can be reached from `start` without leaving what `within` allows.
fn reach(start: ChannelId, next: &[Vec<ChannelId>], within: impl Fn(ChannelId) -> bool) -> Vec<ChannelId> {
    let mut seen = std::collections::BTreeSet::from([start]);
    let mut reached = vec![start];
    let mut at = 0;
    while let Some(channel) = reached.get(at).copied() {
        at += 1;
        for &other in &next[channel.index()] {
            if within(other) && seen.insert(other) {
                reached.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;

    #[test]
    fn a_cycle_is_refused_and_leaves_no_trace() {
        let channel = ChannelId::new;
        let mut order = ChannelOrder::by_rank(&[0, 1, 2, 3]);
        assert!(order.add(channel(1), channel(2)));
        assert!(order.add(channel(3), channel(1)));
        let before = order.position.clone();
        assert!(!order.add(channel(2), channel(3)));
        assert!(!order.add(channel(0), channel(0)));
        assert_eq!(order.position, before);
        assert!(order.add(channel(2), channel(0)));
    }

    #[test]
    fn random_dependencies_are_taken_exactly_while_they_close_no_cycle() {
        let mut rng = Rng::new(5);
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..50 {
            let mut order = ChannelOrder::by_rank(&[0; 12]);
            for _ in 0..60 {
                let (from, to) = (ChannelId::new(rng.below(12)), ChannelId::new(rng.below(12)));
                let closes = reach(to, &order.next, |_| true).contains(&from);
                assert_eq!(order.add(from, to), !closes);
                if closes {
                    refused += 1
                } else {
                    taken += 1
                }
                for (from, next) in order.next.iter().enumerate() {
                    assert!(next.iter().all(|to| order.position[from] < order.position[to.index()]));
                }
            }
        }
        assert!(taken > 500 && refused > 500, "{taken} {refused}");
    }
}
