//! Senders share trees: few trees, each for many senders, chosen together.
//!
//! Two kinds of moves lower the price of all channels together. A branch of a tree hangs up elsewhere (`sweep.rs`), and a
//! sender turns to another tree. Both are exact: a sender's frames cross every channel of its tree outward, each for the
//! hosts beyond. Where paths must rise, a turn is in use in a tree if a sender is before it and a host beyond it.
//!
//! ```text
//!   senders a, b   h─[a]──[m]──[b]─h      in use: am▶mb, bm▶ma, am▶mc, bm▶mc; from c nobody sends
//!                          │
//!                         [c]─h
//! ```

use fabric::HostId;

use crate::SearchPart;

use super::super::{
    build::{Builder, Rule},
    net::{NONE, Net},
    work::Work,
};
use super::{
    grove::{Grove, Toll, is_better},
    rising::{NEAR, Orders, Turn},
    sweep::{Demand, Flow, Place, Scratch, sweep},
};
use fabric::rng::Rng;

/// Hosts of one switch that share a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) switch: usize,
    pub(super) hosts: Vec<HostId>,
    pub(super) tree: usize,
}

/// Trees and who sends along them.
pub(super) struct Share {
    pub(super) grove: Grove,
    pub(super) units: Vec<Unit>,
}

impl Clone for Share {
    fn clone(&self) -> Self {
        Self { grove: self.grove.clone(), units: self.units.clone() }
    }

    /// Copies into the tables that are there.
    fn clone_from(&mut self, other: &Self) {
        self.grove.clone_from(&other.grove);
        self.units.clone_from(&other.units);
    }
}

/// The senders and receivers of one tree.
struct Crowd {
    senders: Vec<u32>,
    /// `hosts_below[switch]`, `senders_below[switch]`: at or below it.
    hosts_below: Vec<u32>,
    senders_below: Vec<u32>,
    all_hosts: u32,
    all_senders: u32,
    /// Hosts and senders of the branch in question.
    branch: (u32, u32),
}

impl Crowd {
    fn new(net: &Net, share: &Share, tree: usize, order: &mut Vec<u32>) -> Self {
        let mut senders = vec![0; net.switches];
        for unit in share.units.iter().filter(|unit| unit.tree == tree) {
            senders[unit.switch] += unit.hosts.len() as u32;
        }
        let mut crowd = Self {
            senders_below: senders.clone(),
            hosts_below: net.hosts.clone(),
            all_hosts: net.hosts.iter().sum(),
            all_senders: senders.iter().sum(),
            senders,
            branch: (0, 0),
        };
        share.grove.upward(net, tree, order);
        crowd.sum(net, share.grove.tree(tree), order);
        crowd
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

impl Demand for Crowd {
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
        self.grove.load.fill(0);
        let (mut order, mut turns) = (Vec::new(), Vec::new());
        for tree in 0..self.grove.len() {
            let crowd = Crowd::new(net, self, tree, &mut order);
            for (channel, pairs) in crowd.loads(net, self.grove.tree(tree)) {
                self.grove.load[channel as usize] += pairs;
            }
            if self.grove.orders.is_some() {
                turns.clear();
                crowd.all_turns(net, self.grove.tree(tree), &mut turns);
            }
            if let Some(orders) = &mut self.grove.orders {
                if !orders.adopt(net, self.grove.lane[tree], &turns) {
                    return false;
                }
            }
        }
        true
    }

    /// Whether what was added and subtracted move by move is what counting from nothing gives. Cost: as [`settle`](Self::settle).
    pub(super) fn is_counted(&self, net: &Net) -> bool {
        let mut recounted = self.clone();
        recounted.grove.orders = self.grove.orders.as_ref().map(Orders::unused);
        recounted.settle(net) && self.grove.agrees_with(&recounted.grove, net)
    }

    /// What a tree carries: channels, and pairs of hosts whose path crosses each.
    pub(super) fn loads(&self, net: &Net, tree: usize) -> Vec<(u32, u64)> {
        Crowd::new(net, self, tree, &mut Vec::new()).loads(net, self.grove.tree(tree))
    }

    /// Sweeps over all trees and all senders once.
    pub(super) fn polish(
        &mut self,
        net: &Net,
        (sharpness, ambition, slack): (f64, f64, f64),
        scratch: &mut Scratch,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let mut toll = Toll::new(net, &self.grove, sharpness, ambition);
        let mut trees: Vec<usize> = (0..self.grove.len()).collect();
        rng.shuffle(&mut trees);
        for tree in trees {
            if !self.sweep(net, tree, &mut toll, scratch, rng, work) {
                return;
            }
        }
        let senders: usize = self.units.iter().map(|unit| unit.hosts.len()).sum();
        let largest = self.units.iter().map(|unit| unit.hosts.len()).max().unwrap_or(1);
        let room = (senders as f64 * slack / self.grove.len() as f64).ceil().max(largest as f64) as u64;
        if work.uses(SearchPart::MoveSender) {
            self.turn_to_other_trees(net, &mut toll, room, rng, work);
        }
        debug_assert!(toll.follows(net, &self.grove), "prices differ from those of the loads");
    }

    /// Sweeps over one tree; false once time is up.
    pub(super) fn sweep(
        &mut self,
        net: &Net,
        tree: usize,
        toll: &mut Toll,
        scratch: &mut Scratch,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) -> bool {
        if !work.uses(SearchPart::MoveBranch) {
            return work.spend(net.switches);
        }
        self.grove.hang_from(net, tree, rng.below(net.switches));
        let mut crowd = Crowd::new(net, self, tree, &mut Vec::new());
        let visits = sweep(net, &mut self.grove, tree, &mut crowd, toll, scratch, rng);
        work.spend(visits + net.switches)
    }

    /// Lets every sender choose its tree again; those whose best tree is full may change places with one of its senders.
    pub(super) fn turn_to_other_trees(
        &mut self,
        net: &Net,
        toll: &mut Toll,
        room: u64,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let mut order = Vec::new();
        let mut crowds: Vec<Crowd> =
            (0..self.grove.len()).map(|tree| Crowd::new(net, self, tree, &mut order)).collect();
        let mut turn: Vec<usize> = (0..self.units.len()).collect();
        rng.shuffle(&mut turn);
        for unit in turn {
            let Unit { switch, ref hosts, tree: current } = self.units[unit];
            let senders = hosts.len() as u64;
            let mut visits = self.grove.len() * net.switches / 4;
            let mut prices: Vec<(f64, usize)> = (0..self.grove.len())
                .map(|tree| (fan_price(net, self.grove.tree(tree), &crowds[tree], switch, toll), tree))
                .collect();
            let own = prices[current].0;
            prices.retain(|price| price.0 < own);
            prices.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            prices.truncate(TRIES);
            for (price, tree) in prices {
                if u64::from(crowds[tree].all_senders) + senders <= room {
                    if self.relocate(net, &[(unit, tree)], &mut crowds, toll, &mut visits) {
                        break;
                    }
                    continue;
                }
                let partner = (0..self.units.len())
                    .filter(|&other| self.units[other].tree == tree && self.units[other].hosts.len() as u64 == senders)
                    .map(|other| {
                        let at = self.units[other].switch;
                        let here = fan_price(net, self.grove.tree(tree), &crowds[tree], at, toll);
                        let there = fan_price(net, self.grove.tree(current), &crowds[current], at, toll);
                        visits += net.switches;
                        (there - here, other)
                    })
                    .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                if let Some((_, other)) = partner.filter(|(loss, _)| loss + price < own) {
                    let swap = [(unit, tree), (other, current)];
                    if self.relocate(net, &swap, &mut crowds, toll, &mut visits) {
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
        crowds: &mut [Crowd],
        toll: &mut Toll,
        visits: &mut usize,
    ) -> bool {
        let from: Vec<usize> = moves.iter().map(|&(unit, _)| self.units[unit].tree).collect();
        let mut change = 0.0;
        for (&(unit, _), &from) in moves.iter().zip(&from) {
            change += self.carry(net, &crowds[from], from, unit, Sign::Less, toll);
        }
        for &(unit, to) in moves {
            change += self.carry(net, &crowds[to], to, unit, Sign::More, toll);
        }
        *visits += 2 * moves.len() * net.switches;
        let fits = change < -1e-9 && self.turn_over(net, moves, crowds, visits);
        for (&(unit, to), &from) in moves.iter().zip(&from) {
            if fits {
                self.units[unit].tree = to;
            } else {
                self.carry(net, &crowds[to], to, unit, Sign::Less, toll);
                self.carry(net, &crowds[from], from, unit, Sign::More, toll);
            }
        }
        fits
    }

    /// Counts senders where they will be, and exchanges the turns in use; false, with everything as before, if a cycle
    /// would come of it.
    fn turn_over(&mut self, net: &Net, moves: &[(usize, usize)], crowds: &mut [Crowd], visits: &mut usize) -> bool {
        let mut trees: Vec<usize> = moves.iter().flat_map(|&(unit, to)| [self.units[unit].tree, to]).collect();
        trees.sort_unstable();
        trees.dedup();
        let list = |grove: &Grove, crowds: &[Crowd]| -> Vec<Vec<Turn>> {
            let mut lists = vec![Vec::new(); grove.orders.as_ref().map_or(0, Orders::lanes)];
            if !lists.is_empty() {
                for &tree in &trees {
                    crowds[tree].all_turns(net, grove.tree(tree), &mut lists[usize::from(grove.lane[tree])]);
                }
            }
            lists
        };
        let mut old = list(&self.grove, crowds);
        let count = |share: &Self, crowds: &mut [Crowd], sign: i32| {
            for &(unit, to) in moves {
                let Unit { switch, ref hosts, tree } = share.units[unit];
                let senders = sign * hosts.len() as i32;
                crowds[tree].send(net, share.grove.tree(tree), switch, -senders);
                crowds[to].send(net, share.grove.tree(to), switch, senders);
            }
        };
        count(self, crowds, 1);
        let mut new = list(&self.grove, crowds);
        *visits += 4 * trees.len() * net.switches;
        let Some(orders) = &mut self.grove.orders else { return true };
        for lane in 0..old.len() {
            if !orders.exchange(net, lane as u8, (&mut old[lane], &mut new[lane]), NEAR, visits) {
                for lane in 0..lane {
                    let undone = orders.exchange(net, lane as u8, (&mut new[lane], &mut old[lane]), usize::MAX, visits);
                    debug_assert!(undone, "what was in use had no cycle");
                }
                count(self, crowds, -1);
                return false;
            }
        }
        true
    }

    /// Adds or removes what a sender sends along a tree, and says what that changed.
    fn carry(&mut self, net: &Net, crowd: &Crowd, tree: usize, unit: usize, sign: Sign, toll: &mut Toll) -> f64 {
        let Unit { switch: from, ref hosts, .. } = self.units[unit];
        let senders = hosts.len() as u64;
        let inward = self.grove.tree(tree).to_vec();
        let mut sum = 0.0;
        crowd.for_each_channel(net, &inward, from, &mut |channel, hosts| {
            let pairs = senders * hosts;
            let load = &mut self.grove.load[channel as usize];
            match sign {
                Sign::More => {
                    sum += toll.change(net, channel, pairs as f64);
                    *load += pairs;
                }
                Sign::Less => {
                    sum += toll.change(net, channel, -(pairs as f64));
                    *load -= pairs;
                }
            }
            toll.follow(net, &self.grove.load, channel);
        });
        sum
    }

    /// Splits a tree: it has a twin afterwards to which half of its senders turn, those that lie together on it. What was
    /// allowed stays allowed, since the twin is the same tree, and so do all loads. False, with everything as before, if it has
    /// but one sender. Cost: that of the turns of two trees.
    pub(super) fn split(&mut self, net: &Net, tree: usize) -> bool {
        let mut order = Vec::new();
        self.grove.upward(net, tree, &mut order);
        let mut place = vec![0; net.switches];
        let below = self.branches(net, tree, &order);
        below.into_iter().enumerate().for_each(|(at, switch)| place[switch] = at);
        let mut own: Vec<usize> = (0..self.units.len()).filter(|&unit| self.units[unit].tree == tree).collect();
        if own.len() < 2 {
            return false;
        }
        own.sort_by_key(|&unit| place[self.units[unit].switch]);
        let before = self.turns(net, tree);
        let inward = self.grove.tree(tree).to_vec();
        self.grove.push(self.grove.root(tree), &inward, self.grove.lane[tree]);
        let twin = self.grove.len() - 1;
        own.iter().skip(own.len() / 2).for_each(|&unit| self.units[unit].tree = twin);
        let [left, moved] = [tree, twin].map(|tree| self.turns(net, tree));
        if let Some(orders) = &mut self.grove.orders {
            // Another lane for the twin, if that closes no circle there; in its own it never does.
            let own = self.grove.lane[tree];
            let other = (twin % orders.lanes()) as u8;
            orders.release(net, own, &before);
            let is_kept = orders.adopt(net, own, &left);
            debug_assert!(is_kept, "half of the senders take no turn that all did not");
            let lane = [other, own].into_iter().find(|&lane| orders.adopt(net, lane, &moved));
            self.grove.lane[twin] = lane.expect("the twin's turns were in use in its own lane");
        }
        debug_assert!(self.is_counted(net), "loads or turns differ from a recount");
        true
    }

    /// The turns in use in a tree; none where any are allowed.
    fn turns(&self, net: &Net, tree: usize) -> Vec<Turn> {
        let mut turns = Vec::new();
        if self.grove.orders.is_some() {
            Crowd::new(net, self, tree, &mut Vec::new()).all_turns(net, self.grove.tree(tree), &mut turns);
        }
        turns
    }

    /// The switches of a tree, those of a branch next to each other; `order` has children before parents.
    fn branches(&self, net: &Net, tree: usize, order: &[u32]) -> Vec<usize> {
        let inward = self.grove.tree(tree);
        let mut size = vec![1_usize; net.switches];
        for &switch in order.iter().filter(|switch| inward[**switch as usize] != NONE) {
            size[net.tail(inward[switch as usize])] += size[switch as usize];
        }
        let mut place = vec![0; net.switches];
        let mut next = vec![1; net.switches];
        let mut found = vec![0; net.switches];
        for &switch in order.iter().rev() {
            let switch = switch as usize;
            if inward[switch] != NONE {
                let parent = net.tail(inward[switch]);
                place[switch] = place[parent] + next[parent];
                next[parent] += size[switch];
            }
            found[place[switch]] = switch;
        }
        found
    }

    /// The tree with the most to do with the busiest channel, of those that can be split.
    pub(super) fn busiest_tree(&self, net: &Net) -> Option<usize> {
        let mut units = vec![0_usize; self.grove.len()];
        self.units.iter().for_each(|unit| units[unit.tree] += 1);
        let time = |channel: usize| self.grove.load[channel] as f64 * net.slowness_of(channel);
        let busiest = (0..net.channels).max_by(|&a, &b| time(a).total_cmp(&time(b)).then(b.cmp(&a)))?;
        let share = |tree: usize| {
            let loads = self.loads(net, tree);
            loads.iter().find(|(channel, _)| *channel as usize == busiest).map_or(0, |(_, pairs)| *pairs)
        };
        (0..self.grove.len())
            .filter(|&tree| units[tree] > 1)
            .max_by_key(|&tree| (share(tree), units[tree], std::cmp::Reverse(tree)))
    }

    /// Drops trees without senders.
    pub(super) fn drop_unused(&mut self, net: &Net) {
        let mut number = vec![None; self.grove.len()];
        self.units.iter().for_each(|unit| number[unit.tree] = Some(0));
        let mut kept = Grove::new(net, None);
        for (tree, number) in number.iter_mut().enumerate() {
            if let Some(number) = number {
                *number = kept.len();
                kept.push(self.grove.root(tree), self.grove.tree(tree), self.grove.lane[tree]);
            }
        }
        self.units.iter_mut().for_each(|unit| unit.tree = number[unit.tree].expect("it is used"));
        kept.load = std::mem::take(&mut self.grove.load);
        kept.orders = self.grove.orders.take();
        self.grove = kept;
    }
}

/// The load aimed at, as a share of the busiest channel's.
pub(super) const AMBITION: f64 = 0.97;
/// Trees that a sender tries.
const TRIES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    More,
    Less,
}

/// What one more frame from a switch to every host costs in a tree, at the prices as they are.
fn fan_price(net: &Net, inward: &[u32], crowd: &Crowd, from: usize, toll: &Toll) -> f64 {
    let price = |channel: u32| toll.of_pair(net, channel);
    let mut sum = 0.0;
    for (switch, &channel) in inward.iter().enumerate() {
        if channel != NONE {
            sum += price(channel) * crowd.hosts_below[switch] as f64;
        }
    }
    let mut at = from;
    while inward[at] != NONE {
        let channel = inward[at];
        let below = crowd.hosts_below[at];
        sum += price(net.reverse(channel)) * (crowd.all_hosts - below) as f64 - price(channel) * below as f64;
        at = net.tail(channel);
    }
    sum
}

/// Few trees grown for all senders from switches spread over the network, each against the load of those before.
pub(super) fn spread(net: &Net, mut units: Vec<Unit>, trees: usize, rng: &mut Rng, work: &mut Work<'_>) -> Share {
    let mut grove = Grove::new(net, None);
    let mut builder = Builder::new(net);
    let mut inward = vec![NONE; net.switches];
    let mut grown = vec![false; net.switches];
    let uniform: Vec<f32> = (0..net.channels).map(|channel| net.slowness_of(channel) as f32).collect();
    // Farthest-point sampling.
    let mut nearest = vec![u32::MAX; net.switches];
    let mut roots = Vec::new();
    let mut next = rng.below(net.switches);
    for _ in 0..trees {
        roots.push(next);
        let mut queue = vec![next];
        nearest[next] = 0;
        let mut at = 0;
        while let Some(&switch) = queue.get(at) {
            at += 1;
            for &channel in net.from(switch) {
                let head = net.head(channel);
                if nearest[head] > nearest[switch] + 1 {
                    nearest[head] = nearest[switch] + 1;
                    queue.push(head);
                }
            }
        }
        grown[next] = true;
        let far = nearest.iter().copied().max().unwrap_or(0);
        let choices: Vec<usize> = (0..net.switches).filter(|&s| nearest[s] == far && !grown[s]).collect();
        next = if choices.is_empty() { rng.below(net.switches) } else { choices[rng.below(choices.len())] };
    }
    for &root in &roots {
        let price: Vec<f32> = uniform.iter().map(|price| price * (1.0 + 0.1 * rng.unit_f64() as f32)).collect();
        builder.grow(net, root, &price, Rule::Free, &mut inward);
        grove.push(root, &inward, 0);
        work.spend(5 * net.channels);
    }
    for (number, unit) in units.iter_mut().enumerate() {
        unit.tree = number % trees;
    }
    let mut share = Share { grove, units };
    share.settle(net);
    share
}

/// Sharpness and room of the sweeps of a cycle. Soft prices shorten paths and gather senders about the middle of their
/// tree; sharp ones flatten the busiest channels. With no room to spare all trees have as many senders.
const GATHERING: ([f64; 9], f64) = ([2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 100.0], 1.0);
const FLATTENING: ([f64; 9], f64) = ([6.0, 6.0, 9.0, 12.0, 18.0, 25.0, 40.0, 60.0, 100.0], 1.25);

/// When to stop improving, beside when time is up.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    /// The busiest channel is no busier than this.
    pub(super) enough: f64,
    /// Sweeps have gone from soft prices to sharp ones so often.
    pub(super) cycles: usize,
    /// So many channels have been visited in all.
    pub(super) visits: u64,
}

/// Goes on until it is to stop; the best is kept.
pub(super) fn improve(net: &Net, share: Share, stop: Stop, rng: &mut Rng, work: &mut Work<'_>) -> Share {
    let mut scratch = Scratch::new(net);
    let mut best = share.clone();
    let mut current = share;
    for cycle in 0..stop.cycles {
        let (sharpness, slack) = if cycle % 2 == 0 { GATHERING } else { FLATTENING };
        for sharpness in sharpness {
            if work.expired() || work.total() >= stop.visits || best.grove.peak(net) <= stop.enough {
                return best;
            }
            current.polish(net, (sharpness, AMBITION, slack), &mut scratch, rng, work);
            debug_assert!(current.is_counted(net), "loads or turns differ from a recount");
            if is_better(current.grove.quality(net), best.grove.quality(net)) {
                best.clone_from(&current);
            }
        }
    }
    best
}
