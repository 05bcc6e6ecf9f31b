//! Senders share trees: few trees, each for many senders, chosen together.
//!
//! Two kinds of moves lower the price of all channels together. A branch of a tree is reattached elsewhere (`branch.rs`), and a
//! sender turns to another tree. Both are exact: a sender's frames cross every channel of its tree outward, each for the
//! hosts beyond. Where paths must rise, a turn is in use in a tree if a sender is before it and a host beyond it.
//!
//! ```text
//!   senders a, b   h─[a]──[m]──[b]─h      in use: am▶mb, bm▶ma, am▶mc, bm▶mc; from c nobody sends
//!                          │
//!                         [c]─h
//! ```

use fabric::{HostId, rng::Rng};

use crate::SearchPart;

use super::{
    bent_order::{Orders, Turn},
    branch::{Demand, Flow, Place, Scratch, sweep},
    improve::{self, Candidate, Next, Quality, Search, Stop},
    net::{NONE, Net},
    price::Prices,
    schedule::{SHARED, SweepTerms},
    shared_trees::SharedTrees,
    work::Work,
};

/// Hosts of one switch that share a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) switch: usize,
    pub(super) hosts: Vec<HostId>,
    pub(super) tree: usize,
}

/// Trees and who sends along them.
pub(super) struct Share {
    pub(super) trees: SharedTrees,
    pub(super) units: Vec<Unit>,
}

impl Clone for Share {
    fn clone(&self) -> Self {
        Self { trees: self.trees.clone(), units: self.units.clone() }
    }

    /// Copies into the tables that are there.
    fn clone_from(&mut self, other: &Self) {
        self.trees.clone_from(&other.trees);
        self.units.clone_from(&other.units);
    }
}

/// The senders and receivers of one tree.
struct TreeUsers {
    senders: Vec<u32>,
    /// `hosts_below[switch]`, `senders_below[switch]`: at or below it.
    hosts_below: Vec<u32>,
    senders_below: Vec<u32>,
    all_hosts: u32,
    all_senders: u32,
    /// Hosts and senders of the branch in question.
    branch: (u32, u32),
}

impl TreeUsers {
    fn new(net: &Net, share: &Share, tree: usize, order: &mut Vec<u32>) -> Self {
        let mut senders = vec![0; net.switches];
        for unit in share.units.iter().filter(|unit| unit.tree == tree) {
            senders[unit.switch] += unit.hosts.len() as u32;
        }
        let mut users = Self {
            senders_below: senders.clone(),
            hosts_below: net.hosts.clone(),
            all_hosts: net.hosts.iter().sum(),
            all_senders: senders.iter().sum(),
            senders,
            branch: (0, 0),
        };
        share.trees.upward(net, tree, order);
        users.sum(net, share.trees.tree(tree), order);
        users
    }

    fn sum(&mut self, net: &Net, inward: &[u32], order: &[u32]) {
        for &switch in order {
            let switch = switch as usize;
            if inward[switch] != NONE {
                let parent = net.tail(inward[switch]);
                self.hosts_below[parent] += self.hosts_below[switch];
                self.senders_below[parent] += self.senders_below[switch];
            }
        }
    }

    /// Another sender at a switch, or one less.
    fn send(&mut self, net: &Net, inward: &[u32], switch: usize, count: i32) {
        self.senders[switch] = self.senders[switch].wrapping_add_signed(count);
        self.all_senders = self.all_senders.wrapping_add_signed(count);
        let mut at = switch;
        loop {
            self.senders_below[at] = self.senders_below[at].wrapping_add_signed(count);
            if inward[at] == NONE {
                return;
            }
            at = net.tail(inward[at]);
        }
    }

    /// Lists the turns in use at a switch.
    fn turns_at(&self, net: &Net, inward: &[u32], switch: usize, turns: &mut Vec<Turn>) {
        // Channels that lead out, with hosts and senders beyond.
        let mut sides: [(u32, bool, bool); 64] = [(NONE, false, false); 64];
        let mut count = 0;
        let mut more: Vec<(u32, bool, bool)> = Vec::new();
        for &channel in net.from(switch) {
            let head = net.head(channel);
            let side = if inward[head] == channel {
                (channel, self.hosts_below[head] > 0, self.senders_below[head] > 0)
            } else if inward[switch] == net.reverse(channel) {
                let hosts = self.all_hosts - self.hosts_below[switch];
                (channel, hosts > 0, self.all_senders - self.senders_below[switch] > 0)
            } else {
                continue;
            };
            if count < sides.len() {
                sides[count] = side;
                count += 1;
            } else {
                more.push(side);
            }
        }
        let sides = || sides[..count].iter().chain(&more);
        for &(from, _, _) in sides().filter(|side| side.2) {
            turns.extend(sides().filter(|to| to.1 && to.0 != from).map(|to| (net.reverse(from), to.0)));
        }
    }

    fn all_turns(&self, net: &Net, inward: &[u32], turns: &mut Vec<Turn>) {
        (0..net.switches).for_each(|switch| self.turns_at(net, inward, switch, turns));
    }

    /// The channels that its frames cross, with how many pairs do.
    fn loads(&self, net: &Net, inward: &[u32]) -> Vec<(u32, u64)> {
        let entered = inward.iter().enumerate().filter(|(_, channel)| **channel != NONE);
        entered
            .flat_map(|(switch, &channel)| {
                let (hosts, senders) = (self.hosts_below[switch], self.senders_below[switch]);
                let Flow { out, into } = flow(senders, self.all_hosts - hosts, self.all_senders - senders, hosts);
                [(channel, into), (net.reverse(channel), out)]
            })
            .filter(|(_, pairs)| *pairs > 0)
            .collect()
    }

    /// Visits the channels that frames from a switch cross, with the hosts beyond each.
    fn for_each_channel(&self, net: &Net, inward: &[u32], from: usize, visit: &mut dyn FnMut(u32, u64)) {
        let mut at = from;
        while inward[at] != NONE {
            let channel = inward[at];
            visit(net.reverse(channel), u64::from(self.all_hosts - self.hosts_below[at]));
            at = net.tail(channel);
        }
        let mut above = vec![false; net.switches];
        at = from;
        above[at] = true;
        while inward[at] != NONE {
            at = net.tail(inward[at]);
            above[at] = true;
        }
        for (switch, &channel) in inward.iter().enumerate() {
            if channel != NONE && !above[switch] && self.hosts_below[switch] > 0 {
                visit(channel, u64::from(self.hosts_below[switch]));
            }
        }
    }
}

impl Demand for TreeUsers {
    fn turn_to(&mut self, _net: &Net, _inward: &[u32], switch: usize) -> Flow {
        let (hosts, senders) = (self.hosts_below[switch], self.senders_below[switch]);
        self.branch = (hosts, senders);
        flow(senders, self.all_hosts - hosts, self.all_senders - senders, hosts)
    }

    #[inline]
    fn below(&self, switch: usize, place: Place) -> Flow {
        let (hosts, senders) = self.branch;
        let (there, thence) = match place {
            Place::Above => (self.hosts_below[switch] - hosts, self.senders_below[switch] - senders),
            Place::Beside => (self.hosts_below[switch], self.senders_below[switch]),
        };
        flow(senders, there, thence, hosts)
    }

    fn turns(&mut self, net: &Net, inward: &[u32], switch: usize, way: &[u32], turns: &mut Vec<Turn>) {
        self.turns_at(net, inward, switch, turns);
        way.iter().for_each(|&at| self.turns_at(net, inward, at as usize, turns));
    }

    fn moved(&mut self, net: &Net, inward: &[u32], switch: usize, from: usize, to: usize) {
        let (hosts, senders) = (self.hosts_below[switch], self.senders_below[switch]);
        let mut change = |from: usize, hosts: u32, senders: u32| {
            let mut at = from;
            loop {
                self.hosts_below[at] = self.hosts_below[at].wrapping_add(hosts);
                self.senders_below[at] = self.senders_below[at].wrapping_add(senders);
                if inward[at] == NONE {
                    return;
                }
                at = net.tail(inward[at]);
            }
        };
        change(from, hosts.wrapping_neg(), senders.wrapping_neg());
        change(to, hosts, senders);
    }
}

/// Frames of so many senders to so many hosts, and the other way.
#[inline]
fn flow(senders: u32, there: u32, thence: u32, hosts: u32) -> Flow {
    Flow { out: u64::from(senders) * u64::from(there), into: u64::from(thence) * u64::from(hosts) }
}

impl Share {
    /// Counts all loads, and takes all turns into use; false if they have a cycle.
    pub(super) fn settle(&mut self, net: &Net) -> bool {
        self.trees.load.fill(0);
        let (mut order, mut turns) = (Vec::new(), Vec::new());
        for tree in 0..self.trees.len() {
            let users = TreeUsers::new(net, self, tree, &mut order);
            for (channel, pairs) in users.loads(net, self.trees.tree(tree)) {
                self.trees.load[channel as usize] += pairs;
            }
            if self.trees.orders.is_some() {
                turns.clear();
                users.all_turns(net, self.trees.tree(tree), &mut turns);
            }
            if let Some(orders) = &mut self.trees.orders {
                if !orders.adopt(net, self.trees.lane[tree], &turns) {
                    return false;
                }
            }
        }
        true
    }

    /// Whether what was added and subtracted move by move is what counting from nothing gives. Cost: as
    /// [`settle`](Self::settle).
    pub(super) fn is_counted(&self, net: &Net) -> bool {
        let mut recounted = self.clone();
        recounted.trees.orders = self.trees.orders.as_ref().map(Orders::unused);
        recounted.settle(net) && self.trees.agrees_with(&recounted.trees, net)
    }

    /// What a tree carries: channels, and pairs of hosts whose path crosses each.
    pub(super) fn loads(&self, net: &Net, tree: usize) -> Vec<(u32, u64)> {
        TreeUsers::new(net, self, tree, &mut Vec::new()).loads(net, self.trees.tree(tree))
    }

    /// Sweeps over all trees and all senders once.
    pub(super) fn polish(
        &mut self,
        net: &Net,
        SweepTerms { sharpness, room }: SweepTerms,
        scratch: &mut Scratch,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let mut prices = self.trees.prices(net, sharpness);
        let mut trees: Vec<usize> = (0..self.trees.len()).collect();
        rng.shuffle(&mut trees);
        for tree in trees {
            if !self.sweep(net, tree, &mut prices, scratch, rng, work) {
                return;
            }
        }
        let senders: usize = self.units.iter().map(|unit| unit.hosts.len()).sum();
        let largest = self.units.iter().map(|unit| unit.hosts.len()).max().unwrap_or(1);
        let room = (senders as f64 * room / self.trees.len() as f64).ceil().max(largest as f64) as u64;
        if work.uses(SearchPart::MoveSender) {
            self.turn_to_other_trees(net, &mut prices, room, rng, work);
        }
        debug_assert!(prices.follows(net, &self.trees.load), "prices differ from those of the loads");
    }

    /// Sweeps over one tree; false once time is up.
    pub(super) fn sweep(
        &mut self,
        net: &Net,
        tree: usize,
        prices: &mut Prices,
        scratch: &mut Scratch,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> bool {
        if !work.uses(SearchPart::MoveBranch) {
            return work.spend(net.switches);
        }
        self.trees.root_at(net, tree, rng.below(net.switches));
        let mut users = TreeUsers::new(net, self, tree, &mut Vec::new());
        let visits = sweep(net, &mut self.trees, tree, &mut users, prices, scratch, rng);
        work.spend(visits + net.switches)
    }

    /// Lets every sender choose its tree again; those whose best tree is full may change places with one of its senders.
    pub(super) fn turn_to_other_trees(
        &mut self,
        net: &Net,
        prices: &mut Prices,
        room: u64,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let mut order = Vec::new();
        let mut users: Vec<TreeUsers> =
            (0..self.trees.len()).map(|tree| TreeUsers::new(net, self, tree, &mut order)).collect();
        let mut turn: Vec<usize> = (0..self.units.len()).collect();
        rng.shuffle(&mut turn);
        for unit in turn {
            let Unit { switch, ref hosts, tree: current } = self.units[unit];
            let senders = hosts.len() as u64;
            let mut visits = self.trees.len() * net.switches / 4;
            let mut cheaper: Vec<(f64, usize)> = (0..self.trees.len())
                .map(|tree| (fan_price(net, self.trees.tree(tree), &users[tree], switch, prices), tree))
                .collect();
            let own = cheaper[current].0;
            cheaper.retain(|price| price.0 < own);
            cheaper.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            cheaper.truncate(SHARED.tries);
            for (price, tree) in cheaper {
                if u64::from(users[tree].all_senders) + senders <= room {
                    if self.relocate(net, &[(unit, tree)], &mut users, prices, &mut visits) {
                        break;
                    }
                    continue;
                }
                let partner = (0..self.units.len())
                    .filter(|&other| self.units[other].tree == tree && self.units[other].hosts.len() as u64 == senders)
                    .map(|other| {
                        let at = self.units[other].switch;
                        let here = fan_price(net, self.trees.tree(tree), &users[tree], at, prices);
                        let there = fan_price(net, self.trees.tree(current), &users[current], at, prices);
                        visits += net.switches;
                        (there - here, other)
                    })
                    .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                if let Some((_, other)) = partner.filter(|(loss, _)| loss + price < own) {
                    let swap = [(unit, tree), (other, current)];
                    if self.relocate(net, &swap, &mut users, prices, &mut visits) {
                        break;
                    }
                }
            }
            if !work.spend(visits) {
                return;
            }
        }
    }

    /// Moves units to other trees all at once; false, with everything as before, if that is no gain or the order
    /// forbids it.
    fn relocate(
        &mut self,
        net: &Net,
        moves: &[(usize, usize)],
        users: &mut [TreeUsers],
        prices: &mut Prices,
        visits: &mut usize,
    ) -> bool {
        let from: Vec<usize> = moves.iter().map(|&(unit, _)| self.units[unit].tree).collect();
        let mut change = 0.0;
        for (&(unit, _), &from) in moves.iter().zip(&from) {
            change += self.carry(net, &users[from], from, unit, Sign::Less, prices);
        }
        for &(unit, to) in moves {
            change += self.carry(net, &users[to], to, unit, Sign::More, prices);
        }
        *visits += 2 * moves.len() * net.switches;
        let fits = change < -1e-9 && self.turn_over(net, moves, users, visits);
        for (&(unit, to), &from) in moves.iter().zip(&from) {
            if fits {
                self.units[unit].tree = to;
            } else {
                self.carry(net, &users[to], to, unit, Sign::Less, prices);
                self.carry(net, &users[from], from, unit, Sign::More, prices);
            }
        }
        fits
    }

    /// Counts senders where they will be, and exchanges the turns in use; false, with everything as before, if a cycle
    /// would come of it.
    fn turn_over(&mut self, net: &Net, moves: &[(usize, usize)], users: &mut [TreeUsers], visits: &mut usize) -> bool {
        let mut touched: Vec<usize> = moves.iter().flat_map(|&(unit, to)| [self.units[unit].tree, to]).collect();
        touched.sort_unstable();
        touched.dedup();
        let list = |trees: &SharedTrees, users: &[TreeUsers]| -> Vec<Vec<Turn>> {
            let mut lists = vec![Vec::new(); trees.orders.as_ref().map_or(0, Orders::lanes)];
            if !lists.is_empty() {
                for &tree in &touched {
                    users[tree].all_turns(net, trees.tree(tree), &mut lists[usize::from(trees.lane[tree])]);
                }
            }
            lists
        };
        let mut old = list(&self.trees, users);
        let count = |share: &Self, users: &mut [TreeUsers], sign: i32| {
            for &(unit, to) in moves {
                let Unit { switch, ref hosts, tree } = share.units[unit];
                let senders = sign * hosts.len() as i32;
                users[tree].send(net, share.trees.tree(tree), switch, -senders);
                users[to].send(net, share.trees.tree(to), switch, senders);
            }
        };
        count(self, users, 1);
        let mut new = list(&self.trees, users);
        *visits += 4 * touched.len() * net.switches;
        let Some(orders) = &mut self.trees.orders else { return true };
        for lane in 0..old.len() {
            if !orders.exchange(net, lane as u8, (&mut old[lane], &mut new[lane]), SHARED.reach, visits) {
                for lane in 0..lane {
                    let undone = orders.exchange(net, lane as u8, (&mut new[lane], &mut old[lane]), usize::MAX, visits);
                    debug_assert!(undone, "what was in use had no cycle");
                }
                count(self, users, -1);
                return false;
            }
        }
        true
    }

    /// Adds or removes what a sender sends along a tree, and says what that changed.
    fn carry(
        &mut self,
        net: &Net,
        users: &TreeUsers,
        tree: usize,
        unit: usize,
        sign: Sign,
        prices: &mut Prices,
    ) -> f64 {
        let Unit { switch: from, ref hosts, .. } = self.units[unit];
        let senders = hosts.len() as u64;
        let inward = self.trees.tree(tree).to_vec();
        let mut sum = 0.0;
        users.for_each_channel(net, &inward, from, &mut |channel, hosts| {
            let pairs = senders * hosts;
            let load = &mut self.trees.load[channel as usize];
            match sign {
                Sign::More => {
                    sum += prices.change(net, channel, pairs as f64);
                    *load += pairs;
                }
                Sign::Less => {
                    sum += prices.change(net, channel, -(pairs as f64));
                    *load -= pairs;
                }
            }
            prices.update(net, &self.trees.load, channel as usize);
        });
        sum
    }

    /// The turns in use in a tree; none where any are allowed.
    pub(super) fn turns(&self, net: &Net, tree: usize) -> Vec<Turn> {
        let mut turns = Vec::new();
        if self.trees.orders.is_some() {
            TreeUsers::new(net, self, tree, &mut Vec::new()).all_turns(net, self.trees.tree(tree), &mut turns);
        }
        turns
    }

    /// Drops trees without senders.
    pub(super) fn drop_unused(&mut self, net: &Net) {
        let mut number = vec![None; self.trees.len()];
        self.units.iter().for_each(|unit| number[unit.tree] = Some(0));
        let mut kept = SharedTrees::new(net, None);
        for (tree, number) in number.iter_mut().enumerate() {
            if let Some(number) = number {
                *number = kept.len();
                kept.push(self.trees.root(tree), self.trees.tree(tree), self.trees.lane[tree]);
            }
        }
        self.units.iter_mut().for_each(|unit| unit.tree = number[unit.tree].expect("it is used"));
        kept.load = std::mem::take(&mut self.trees.load);
        kept.orders = self.trees.orders.take();
        self.trees = kept;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    More,
    Less,
}

/// What one more frame from a switch to every host costs in a tree, at the prices as they are.
fn fan_price(net: &Net, inward: &[u32], users: &TreeUsers, from: usize, prices: &Prices) -> f64 {
    let price = |channel: u32| prices.of_pair(net, channel);
    let mut sum = 0.0;
    for (switch, &channel) in inward.iter().enumerate() {
        if channel != NONE {
            sum += price(channel) * users.hosts_below[switch] as f64;
        }
    }
    let mut at = from;
    while inward[at] != NONE {
        let channel = inward[at];
        let below = users.hosts_below[at];
        sum += price(net.reverse(channel)) * (users.all_hosts - below) as f64 - price(channel) * below as f64;
        at = net.tail(channel);
    }
    sum
}

impl Candidate for Share {
    fn quality(&self, net: &Net) -> Quality {
        self.trees.quality(net)
    }
}

/// Sweeps over branches and senders, from soft prices to sharp ones.
struct SenderSearch<'r, 'w> {
    net: &'r Net,
    scratch: Scratch,
    rng: &'r mut Rng,
    work: &'r mut Work<'w>,
    /// Sweeps so far.
    sweeps: usize,
}

impl SenderSearch<'_, '_> {
    /// Sweeps of a cycle, each of which has as many.
    const CYCLE: usize = SHARED.cycles[0].sharpness.len();
}

impl Search for SenderSearch<'_, '_> {
    type Candidate = Share;

    fn net(&self) -> &Net {
        self.net
    }

    fn is_spent(&self, visits: u64) -> bool {
        self.work.is_spent(visits)
    }

    fn sweep(&mut self, share: &mut Share) {
        let cycle = &SHARED.cycles[self.sweeps / Self::CYCLE % SHARED.cycles.len()];
        let terms = SweepTerms { sharpness: cycle.sharpness[self.sweeps % Self::CYCLE], room: cycle.room };
        share.polish(self.net, terms, &mut self.scratch, self.rng, self.work);
        debug_assert!(share.is_counted(self.net), "loads or turns differ from a recount");
    }

    fn cool(&mut self, _share: &mut Share, cycles: usize) -> Next {
        self.sweeps += 1;
        if self.sweeps < cycles * Self::CYCLE { Next::Sweep } else { Next::Stop }
    }
}

/// Goes on until it is to stop; the best is kept.
pub(super) fn improve(net: &Net, share: Share, stop: Stop, rng: &mut Rng, work: &mut Work<'_>) -> Share {
    let mut best = share.clone();
    let mut search = SenderSearch { net, scratch: Scratch::new(net), rng, work, sweeps: 0 };
    improve::improve(&mut search, &mut best, share, stop);
    best
}
