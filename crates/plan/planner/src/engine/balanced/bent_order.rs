//! Orders of channels that bend as far as turns in use allow.
//!
//! Paths of a lane may take a turn only if no cycle of turns in use comes of it. Uses are counted, so turns that nothing
//! takes any more are free again; and an order of channels in which every turn in use rises is kept up to date: when a
//! turn that falls is taken into use, the channels between its ends that can be reached from the one or reach the other
//! change places, and meeting the other end on the way proves a cycle (Pearce and Kelly, "A dynamic topological sort
//! algorithm for directed acyclic graphs", 2006).
//!
//! ```text
//!   order  c d a b   in use c▶d, a▶b     take b▶c into use: it falls; before it come a b, after it c d
//!   order  a b c d
//! ```

use super::net::Net;

/// A turn: a channel and the next.
pub(super) type Turn = (u32, u32);

/// One order a lane.
pub(super) struct Orders {
    lanes: Vec<ChannelOrder>,
    scratch: Scratch,
}

#[derive(Clone)]
struct ChannelOrder {
    /// `rank[channel]`, a permutation.
    rank: Vec<u32>,
    /// `uses[turn]`.
    uses: Vec<u32>,
}

/// Tables of a search, kept between searches. What they hold says nothing once a search is over.
#[derive(Default)]
struct Scratch {
    /// Channels seen in this search have `stamp[channel] == now`.
    stamp: Vec<u32>,
    now: u32,
    after: Vec<u32>,
    before: Vec<u32>,
    places: Vec<u32>,
}

impl Clone for Orders {
    fn clone(&self) -> Self {
        Self { lanes: self.lanes.clone(), scratch: Scratch::default() }
    }

    /// Copies into the tables that are there.
    fn clone_from(&mut self, other: &Self) {
        self.lanes.truncate(other.lanes.len());
        for (own, other) in self.lanes.iter_mut().zip(&other.lanes) {
            own.rank.clone_from(&other.rank);
            own.uses.clone_from(&other.uses);
        }
        self.lanes.extend_from_slice(&other.lanes[self.lanes.len()..]);
    }
}

impl Orders {
    /// Nothing is in use yet.
    pub(super) fn new(net: &Net, rank: Vec<Vec<u32>>) -> Self {
        let order = |rank: Vec<u32>| ChannelOrder { rank, uses: vec![0; net.turns] };
        Self { lanes: rank.into_iter().map(order).collect(), scratch: Scratch::default() }
    }

    /// The same orders with nothing in use.
    pub(super) fn unused(&self) -> Self {
        let order = |order: &ChannelOrder| ChannelOrder { rank: order.rank.clone(), uses: vec![0; order.uses.len()] };
        Self { lanes: self.lanes.iter().map(order).collect(), scratch: Scratch::default() }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// `rank[channel]` of a lane.
    pub(super) fn rank(&self, lane: u8) -> &[u32] {
        &self.lanes[usize::from(lane)].rank
    }

    /// Whether the same turns are in use as in `recounted`, and all of them rise. Cost: O(turns).
    pub(super) fn agrees_with(&self, recounted: &Self, net: &Net) -> bool {
        self.lanes.iter().zip(&recounted.lanes).all(|(own, other)| own.uses == other.uses && own.rises(net))
    }

    /// Takes turns into use, however far the order must bend; false, with none of them in use, if they close a cycle with
    /// those that are. The order may have bent all the same.
    pub(super) fn adopt(&mut self, net: &Net, lane: u8, turns: &[Turn]) -> bool {
        let Self { lanes, scratch } = self;
        let order = &mut lanes[usize::from(lane)];
        for (at, &turn) in turns.iter().enumerate() {
            if !order.take(net, turn, usize::MAX, scratch, &mut 0) {
                turns[..at].iter().for_each(|&turn| order.leave(net, turn));
                return false;
            }
        }
        true
    }

    /// Takes turns out of use, each as often as it is listed.
    pub(super) fn release(&mut self, net: &Net, lane: u8, turns: &[Turn]) {
        turns.iter().for_each(|&turn| self.lanes[usize::from(lane)].leave(net, turn));
    }

    /// Takes turns out of use and others into use; false, with everything as before, if a cycle would come of it.
    /// Each turn counts as often as it is listed; at most `reach` channels on
    /// either side of a turn change places for it. `spent` counts visits to channels.
    pub(super) fn exchange(
        &mut self,
        net: &Net,
        lane: u8,
        (old, new): (&mut Vec<Turn>, &mut Vec<Turn>),
        reach: usize,
        spent: &mut usize,
    ) -> bool {
        cancel(old, new);
        let Self { lanes, scratch } = self;
        let order = &mut lanes[usize::from(lane)];
        for &turn in old.iter() {
            order.leave(net, turn);
        }
        for (at, &turn) in new.iter().enumerate() {
            if !order.take(net, turn, reach, scratch, spent) {
                new[..at].iter().for_each(|&turn| order.leave(net, turn));
                for &turn in old.iter() {
                    let taken = order.take(net, turn, usize::MAX, scratch, spent);
                    debug_assert!(taken, "what was in use had no cycle");
                }
                return false;
            }
        }
        true
    }
}

impl ChannelOrder {
    /// Whether every turn in use rises.
    fn rises(&self, net: &Net) -> bool {
        (0..net.channels as u32).all(|channel| {
            let followers = net.from(net.head(channel)).iter();
            let mut in_use = followers.filter(|follower| self.uses[net.turn(channel, **follower)] > 0);
            in_use.all(|follower| self.rank[channel as usize] < self.rank[*follower as usize])
        })
    }

    fn leave(&mut self, net: &Net, (a, c): Turn) {
        self.uses[net.turn(a, c)] -= 1;
    }

    fn take(&mut self, net: &Net, (a, c): Turn, reach: usize, scratch: &mut Scratch, spent: &mut usize) -> bool {
        let turn = net.turn(a, c);
        let falls = self.rank[a as usize] >= self.rank[c as usize];
        if self.uses[turn] == 0 && falls && !self.lift(net, (a, c), reach, scratch, spent) {
            return false;
        }
        self.uses[turn] += 1;
        true
    }

    /// Puts `c` and what follows it behind `a` and what leads to it; false if `a` follows `c`, or more channels than
    /// `reach` would have to move.
    fn lift(&mut self, net: &Net, (a, c): Turn, reach: usize, scratch: &mut Scratch, spent: &mut usize) -> bool {
        let Self { rank, uses } = self;
        let Scratch { stamp, now, after, before, places } = scratch;
        stamp.resize(net.channels, 0);
        let (low, high) = (rank[c as usize], rank[a as usize]);
        *now += 1;
        after.clear();
        after.push(c);
        stamp[c as usize] = *now;
        let mut next = 0;
        while let Some(&channel) = after.get(next) {
            next += 1;
            for &follower in net.from(net.head(channel)) {
                *spent += 1;
                if rank[follower as usize] <= high
                    && stamp[follower as usize] != *now
                    && uses[net.turn(channel, follower)] > 0
                {
                    if follower == a {
                        return false;
                    }
                    stamp[follower as usize] = *now;
                    after.push(follower);
                }
            }
            if after.len() > reach {
                return false;
            }
        }
        before.clear();
        before.push(a);
        stamp[a as usize] = *now;
        let mut next = 0;
        while let Some(&channel) = before.get(next) {
            next += 1;
            for leader in net.into(net.tail(channel)) {
                *spent += 1;
                if rank[leader as usize] >= low && stamp[leader as usize] != *now && uses[net.turn(leader, channel)] > 0
                {
                    stamp[leader as usize] = *now;
                    before.push(leader);
                }
            }
            if before.len() > reach {
                return false;
            }
        }
        before.sort_unstable_by_key(|channel| rank[*channel as usize]);
        after.sort_unstable_by_key(|channel| rank[*channel as usize]);
        places.clear();
        places.extend(before.iter().chain(&*after).map(|channel| rank[*channel as usize]));
        places.sort_unstable();
        for (&channel, &place) in before.iter().chain(&*after).zip(&*places) {
            rank[channel as usize] = place;
        }
        true
    }
}

/// Leaves out what both lists hold, as often as both do; sorts them.
fn cancel(old: &mut Vec<Turn>, new: &mut Vec<Turn>) {
    old.sort_unstable();
    new.sort_unstable();
    let (mut i, mut j, mut kept_old, mut kept_new) = (0, 0, 0, 0);
    while i < old.len() || j < new.len() {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other => (i, j) = (i + 1, j + 1),
            (Some(one), other) if other.is_none_or(|other| one < other) => {
                old[kept_old] = *one;
                (i, kept_old) = (i + 1, kept_old + 1);
            }
            (_, Some(other)) => {
                new[kept_new] = *other;
                (j, kept_new) = (j + 1, kept_new + 1);
            }
            _ => break,
        }
    }
    old.truncate(kept_old);
    new.truncate(kept_new);
}

#[cfg(test)]
mod tests {
    use fabric::{
        generate::{Kind, Options, generate},
        rng::Rng,
    };

    use super::*;

    /// Whether turns close a cycle, found by taking away channels that none of the rest leads to.
    fn have_cycle(turns: &[Turn], channels: usize) -> bool {
        let mut left = turns.to_vec();
        for _ in 0..channels {
            let led_to: Vec<u32> = left.iter().map(|turn| turn.1).collect();
            left.retain(|turn| led_to.contains(&turn.0));
        }
        !left.is_empty()
    }

    /// A turn is taken if and only if it closes no cycle with those in use, and a refusal changes nothing.
    #[test]
    fn turns_are_refused_for_cycles_and_for_nothing_else() {
        let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a size");
        let net = Net::new(&generate(&kind, &Options::default()).expect("sane"), 1.0);
        let all: Vec<Turn> = (0..net.channels as u32)
            .flat_map(|channel| net.from(net.head(channel)).iter().map(move |follower| (channel, *follower)))
            .filter(|(channel, follower)| net.reverse(*channel) != *follower)
            .collect();
        let (mut taken, mut refused) = (0, 0);
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let rank: Vec<u32> = (0..net.channels as u32).collect();
            let mut orders = Orders::new(&net, vec![rank.clone()]);
            let mut used: Vec<Turn> = Vec::new();
            for _ in 0..60 {
                let old: Vec<Turn> = (0..rng.below(3).min(used.len())).map(|at| used[at]).collect();
                let new: Vec<Turn> = (0..1 + rng.below(6)).map(|_| all[rng.below(all.len())]).collect();
                let mut wanted = used[old.len()..].to_vec();
                wanted.extend(&new);
                let lists = (&mut old.clone(), &mut new.clone());
                let is_taken = orders.exchange(&net, 0, lists, usize::MAX, &mut 0);
                assert_eq!(is_taken, !have_cycle(&wanted, net.channels), "seed {seed}");
                if is_taken {
                    (used, taken) = (wanted, taken + 1);
                } else {
                    refused += 1;
                }
                let mut recounted = Orders::new(&net, vec![rank.clone()]);
                assert!(recounted.adopt(&net, 0, &used), "seed {seed}");
                assert!(orders.agrees_with(&recounted, &net), "seed {seed}");
            }
        }
        assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
    }
}
