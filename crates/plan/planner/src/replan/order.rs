//! Numberings of channels that stay valid while dependencies are added: one a lane.
//!
//! Dependencies that climb the numbering cost nothing. Another one, from → to, is admitted unless it closes a cycle, and
//! then only the channels between the two change their numbers: those that lead to *from* are put before those that
//! follow from *to*, on the same numbers (D. Pearce and P. Kelly, "A dynamic topological sort algorithm for directed
//! acyclic graphs", 2006). The search for a cycle never leaves the numbers between the two ends.
//!
//! ```text
//!   0 ab   1 bc   2 cd        cd → ab is no climb, but closes no cycle without ab → … → cd:
//!   known: bc → cd            1 bc   2 cd   0 ab   becomes   0 bc   1 cd   2 ab
//! ```

/// A dependency: frames may go from one channel straight to the other.
pub(crate) type Dependency = (u32, u32);

/// One lane's numbering and the dependencies that it respects.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// `rank[channel]`: no two are the same.
    pub(crate) rank: Vec<u32>,
    next: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    /// Whether dependencies were noted that may close a cycle, so that the numbers may mean nothing.
    noted: bool,
    /// Scratch: `seen[channel]` is the search that saw it last.
    seen: Vec<u32>,
    search: u32,
}

impl Order {
    /// Numbers that may have gaps and ties, which are broken by channel. Cost: O(channels · log channels).
    pub(crate) fn new(numbers: &[u32]) -> Self {
        let mut channels: Vec<usize> = (0..numbers.len()).collect();
        channels.sort_by_key(|&channel| (numbers[channel], channel));
        let mut rank = vec![0; numbers.len()];
        channels.iter().enumerate().for_each(|(number, &channel)| rank[channel] = number as u32);
        let none = vec![Vec::new(); numbers.len()];
        Self { rank, next: none.clone(), before: none, noted: false, seen: vec![0; numbers.len()], search: 0 }
    }

    /// Whether a dependency climbs.
    pub(crate) fn climbs(&self, (from, to): Dependency) -> bool {
        self.rank[from as usize] < self.rank[to as usize]
    }

    /// Whether a dependency has been added.
    pub(crate) fn knows(&self, (from, to): Dependency) -> bool {
        self.next[from as usize].contains(&to)
    }

    /// Adds dependencies, those that climb and others; false, and nothing is added, if they close a cycle.
    pub(crate) fn admit(&mut self, dependencies: &[Dependency]) -> bool {
        self.try_admit(dependencies).is_some()
    }

    /// Adds dependencies as [`admit`](Self::admit) does, and returns those that are new.
    pub(crate) fn try_admit(&mut self, dependencies: &[Dependency]) -> Option<Vec<Dependency>> {
        let mut added = Vec::new();
        let before = self.rank_at_risk(dependencies);
        for &dependency in dependencies {
            match self.insert(dependency) {
                Insertion::New => added.push(dependency),
                Insertion::Known => {}
                Insertion::Cycle => {
                    self.withdraw(&added);
                    // Without a step down there is no cycle.
                    self.rank = before.expect("some dependency does not climb");
                    return None;
                }
            }
        }
        Some(added)
    }

    /// Whether dependencies could be added; they are not.
    pub(crate) fn admits(&mut self, dependencies: &[Dependency]) -> bool {
        let before = self.rank_at_risk(dependencies);
        let Some(added) = self.try_admit(dependencies) else { return false };
        self.withdraw(&added);
        if let Some(before) = before {
            self.rank = before;
        }
        true
    }

    /// The numbering as it is, if adding dependencies may change it: if some do not climb.
    fn rank_at_risk(&self, dependencies: &[Dependency]) -> Option<Vec<u32>> {
        dependencies.iter().any(|dependency| !self.climbs(*dependency)).then(|| self.rank.clone())
    }

    /// Takes back dependencies that were new when they were added, the latest first.
    pub(crate) fn withdraw(&mut self, added: &[Dependency]) {
        for &(from, to) in added.iter().rev() {
            self.next[from as usize].retain(|known| *known != to);
            self.before[to as usize].retain(|known| *known != from);
        }
    }

    /// Takes away every dependency of a channel.
    pub(crate) fn forget(&mut self, channel: u32) {
        for to in std::mem::take(&mut self.next[channel as usize]) {
            self.before[to as usize].retain(|known| *known != channel);
        }
        for from in std::mem::take(&mut self.before[channel as usize]) {
            self.next[from as usize].retain(|known| *known != channel);
        }
    }

    /// Adds dependencies whether or not they close a cycle, for fabrics where none must be absent.
    pub(crate) fn note(&mut self, dependencies: &[Dependency]) {
        for &(from, to) in dependencies {
            if !self.next[from as usize].contains(&to) {
                self.next[from as usize].push(to);
                self.before[to as usize].push(from);
                self.noted = true;
            }
        }
    }

    /// The numbering; none if there is a cycle.
    pub(crate) fn into_rank(mut self) -> Option<Vec<u32>> {
        if self.noted {
            let next = std::mem::take(&mut self.next);
            let all: Vec<Dependency> =
                (0_u32..).zip(&next).flat_map(|(from, next)| next.iter().map(move |&to| (from, to))).collect();
            self.before.iter_mut().for_each(Vec::clear);
            self.next = vec![Vec::new(); next.len()];
            if !self.admit(&all) {
                return None;
            }
        }
        Some(self.rank)
    }

    fn insert(&mut self, (from, to): Dependency) -> Insertion {
        if self.next[from as usize].contains(&to) {
            return Insertion::Known;
        }
        if !self.climbs((from, to)) && !self.make_room(from, to) {
            return Insertion::Cycle;
        }
        self.next[from as usize].push(to);
        self.before[to as usize].push(from);
        Insertion::New
    }

    /// Puts `to` behind `from`; false if it leads there.
    fn make_room(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return false;
        }
        let (lowest, highest) = (self.rank[to as usize], self.rank[from as usize]);
        let Some(mut following) = self.reach(to, |order| &order.next, |rank| rank <= highest, Some(from)) else {
            return false;
        };
        let Some(mut leading) = self.reach(from, |order| &order.before, |rank| rank >= lowest, None) else {
            return false;
        };
        following.sort_unstable_by_key(|&channel| self.rank[channel as usize]);
        leading.sort_unstable_by_key(|&channel| self.rank[channel as usize]);
        let moved: Vec<u32> = leading.into_iter().chain(following).collect();
        let mut numbers: Vec<u32> = moved.iter().map(|&channel| self.rank[channel as usize]).collect();
        numbers.sort_unstable();
        moved.iter().zip(numbers).for_each(|(&channel, number)| self.rank[channel as usize] = number);
        true
    }

    /// The channels that can be reached through numbers within bounds; none if `goal` is one of them.
    fn reach(
        &mut self,
        start: u32,
        beside: impl Fn(&Self) -> &Vec<Vec<u32>>,
        within: impl Fn(u32) -> bool,
        goal: Option<u32>,
    ) -> Option<Vec<u32>> {
        self.search += 1;
        self.seen[start as usize] = self.search;
        let mut reached = vec![start];
        let mut at = 0;
        while let Some(&channel) = reached.get(at) {
            at += 1;
            for index in 0..beside(self)[channel as usize].len() {
                let next = beside(self)[channel as usize][index];
                if Some(next) == goal {
                    return None;
                }
                if self.seen[next as usize] != self.search && within(self.rank[next as usize]) {
                    self.seen[next as usize] = self.search;
                    reached.push(next);
                }
            }
        }
        Some(reached)
    }
}

enum Insertion {
    New,
    Known,
    Cycle,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    #[test]
    fn what_closes_a_cycle_is_refused_and_forgotten() {
        let mut order = Order::new(&[0, 1, 2]);
        assert!(order.admit(&[(0, 1), (1, 2)]));
        assert!(!order.admit(&[(2, 0)]));
        assert_eq!(order.clone().into_rank(), Some(vec![0, 1, 2]));
        order.note(&[(2, 0)]);
        assert_eq!(order.into_rank(), None);
    }

    #[test]
    fn what_closes_none_moves_as_little_as_it_must() {
        let mut order = Order::new(&[0, 1, 2, 3]);
        assert!(order.admit(&[(1, 2)]) && order.admit(&[(2, 0)]));
        assert_eq!(order.rank, [2, 0, 1, 3]);
        assert!(order.admits(&[(3, 1)]) && !order.admits(&[(3, 1), (0, 3)]));
        assert!(order.admit(&[(0, 3)]), "what was only tried is forgotten");
    }

    #[test]
    fn admission_is_refused_for_cycles_and_for_nothing_else() {
        let mut rng = Rng::new(5);
        for _ in 0..100 {
            let channels = 2 + rng.below(12);
            let mut order = Order::new(&vec![0; channels]);
            let mut reaches = vec![vec![false; channels]; channels];
            for _ in 0..60 {
                let (from, to) = (rng.below(channels), rng.below(channels));
                let closes = from == to || reaches[to][from];
                assert_eq!(order.admit(&[(from as u32, to as u32)]), !closes);
                if !closes {
                    let before: Vec<usize> = (0..channels).filter(|&at| at == from || reaches[at][from]).collect();
                    let after: Vec<usize> = (0..channels).filter(|&at| at == to || reaches[to][at]).collect();
                    before.iter().for_each(|&one| after.iter().for_each(|&other| reaches[one][other] = true));
                }
                for (one, reached) in reaches.iter().enumerate() {
                    let climbs = |other: usize| order.climbs((one as u32, other as u32));
                    assert!((0..channels).all(|other| !reached[other] || climbs(other)));
                }
            }
        }
    }
}
