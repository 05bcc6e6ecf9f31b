//! Pairs of switches share trees: every ordered pair takes whichever tree carries it best.
//!
//! Where the VLAN is chosen by sender and receiver, a tree need not be good for everybody: what counts is that every pair
//! finds a short way that is not busy in *some* tree, as SPAIN packs paths into VLANs (Mudigonda et al., NSDI 2010). So
//! pairs are taken up one after the other and turn to the tree where they cost least at the prices that the rest has
//! made; in between, branches of each tree move for the pairs that cross them (`branch.rs`). Pairs leave a tree
//! that others use more, and it bends to those that stay.
//!
//! ```text
//!   tree 1  a──b──c  d      a to c in tree 1, d to b in tree 2; a to d in either,
//!   tree 2  a──d──b  c      by prices
//! ```

use fabric::rng::Rng;

use crate::SearchPart;

use super::{
    bent_order::{Orders, Turn},
    branch::{Demand, Flow, Place, Scratch, sweep},
    improve::{self, Candidate, Next, Quality, Search, Stop},
    net::{NONE, Net},
    price::Prices,
    schedule::{PAIRS, SHARED},
    senders::Share,
    shared_trees::SharedTrees,
    work::Work,
};

/// No tree: a pair without hosts at one end, or a switch and itself.
pub(super) const NO_TREE: u16 = u16::MAX;

/// Trees, and which of them each ordered pair of switches takes.
pub(super) struct Pairs {
    pub(super) trees: SharedTrees,
    /// `choice[source · switches + destination]`.
    pub(super) choice: Vec<u16>,
}

impl Clone for Pairs {
    fn clone(&self) -> Self {
        Self { trees: self.trees.clone(), choice: self.choice.clone() }
    }

    /// Copies into the tables that are there.
    fn clone_from(&mut self, other: &Self) {
        self.trees.clone_from(&other.trees);
        self.choice.clone_from(&other.choice);
    }
}

impl Pairs {
    /// Every pair as its sender does; where senders of one switch differ, receivers take turns. None if that closes a cycle.
    pub(super) fn from_share(net: &Net, share: &Share) -> Option<Self> {
        let mut choice = vec![NO_TREE; net.switches * net.switches];
        let mut units: Vec<Vec<u16>> = vec![Vec::new(); net.switches];
        for unit in &share.units {
            units[unit.switch].extend(unit.hosts.iter().map(|_| unit.tree as u16));
        }
        for source in 0..net.switches {
            for destination in (0..net.switches).filter(|&d| d != source && net.hosts[d] > 0) {
                if !units[source].is_empty() {
                    choice[source * net.switches + destination] = units[source][destination % units[source].len()];
                }
            }
        }
        let mut trees = SharedTrees::new(net, share.trees.orders.as_ref().map(|orders| orders.unused()));
        for tree in 0..share.trees.len() {
            trees.push(share.trees.root(tree), share.trees.tree(tree), share.trees.lane[tree]);
        }
        let mut pairs = Self { trees, choice };
        pairs.settle(net).then_some(pairs)
    }

    /// Counts all loads, and takes all turns into use; false if they have a cycle.
    pub(super) fn settle(&mut self, net: &Net) -> bool {
        self.trees.load.fill(0);
        let (mut path, mut turns) = (Vec::new(), Vec::new());
        let mut walker = Walker::new(net);
        for source in 0..net.switches {
            for destination in 0..net.switches {
                let tree = self.choice[source * net.switches + destination];
                if tree == NO_TREE {
                    continue;
                }
                let tree = usize::from(tree);
                walker.path(net, self.trees.tree(tree), source, destination, &mut path);
                let pairs = weight(net, source, destination);
                path.iter().for_each(|channel| self.trees.load[*channel as usize] += pairs);
                if let Some(orders) = &mut self.trees.orders {
                    turns.clear();
                    turns_of(&path, &mut turns);
                    if !orders.adopt(net, self.trees.lane[tree], &turns) {
                        return false;
                    }
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

    /// Drops trees without pairs; one stays even if there are no pairs.
    pub(super) fn drop_unused(&mut self, net: &Net) {
        let mut used = vec![false; self.trees.len()];
        self.choice.iter().filter(|tree| **tree != NO_TREE).for_each(|&tree| used[usize::from(tree)] = true);
        if !used.contains(&true) {
            used[0] = true;
        }
        let mut number = vec![NO_TREE; self.trees.len()];
        let mut kept = SharedTrees::new(net, None);
        for tree in (0..self.trees.len()).filter(|tree| used[*tree]) {
            number[tree] = kept.len() as u16;
            kept.push(self.trees.root(tree), self.trees.tree(tree), self.trees.lane[tree]);
        }
        self.choice.iter_mut().filter(|tree| **tree != NO_TREE).for_each(|tree| *tree = number[usize::from(*tree)]);
        kept.load = std::mem::take(&mut self.trees.load);
        kept.orders = self.trees.orders.take();
        self.trees = kept;
    }

    /// Sweeps over all trees and all pairs once.
    pub(super) fn polish(
        &mut self,
        net: &Net,
        sharpness: f64,
        bold: OrderPolicy,
        scratch: &mut Scratch,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let mut prices = self.trees.prices(net, sharpness);
        let mut trees: Vec<usize> = (0..self.trees.len()).collect();
        rng.shuffle(&mut trees);
        for tree in trees {
            if !work.uses(SearchPart::MoveBranch) {
                break;
            }
            self.trees.root_at(net, tree, rng.below(net.switches));
            let mut crossing = Crossing::new(net, self, tree);
            let visits = sweep(net, &mut self.trees, tree, &mut crossing, &mut prices, scratch, rng);
            if !work.spend(visits + net.switches * net.switches / 32) {
                return;
            }
        }
        if work.uses(SearchPart::MoveSender) {
            self.turn_to_other_trees(net, &mut prices, bold, rng, work);
        }
        debug_assert!(prices.follows(net, &self.trees.load), "prices differ from those of the loads");
    }

    /// Lets every pair choose its tree again.
    pub(super) fn turn_to_other_trees(
        &mut self,
        net: &Net,
        prices: &mut Prices,
        bold: OrderPolicy,
        rng: &mut Rng,
        work: &mut Work<'_>,
    ) {
        let n = net.switches;
        let reach = if bold == OrderPolicy::Bending { SHARED.reach } else { usize::MAX };
        let trees = self.trees.len();
        let mut downward: Vec<u32> = Vec::with_capacity(trees * n);
        let mut order = Vec::new();
        for tree in 0..trees {
            self.trees.upward(net, tree, &mut order);
            downward.extend(order.iter().rev());
        }
        let mut price: Vec<f32> = (0..net.channels as u32).map(|channel| prices.of_pair(net, channel) as f32).collect();
        let (mut cost, mut last) = (vec![0.0_f32; n], vec![NONE; n]);
        let (mut least, mut which, mut own) = (vec![0.0_f32; n], vec![NO_TREE; n], vec![0.0_f32; n]);
        let mut sources: Vec<usize> = (0..n).filter(|source| net.hosts[*source] > 0).collect();
        rng.shuffle(&mut sources);
        let mut walker = Walker::new(net);
        let (mut old_path, mut new_path) = (Vec::new(), Vec::new());
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for source in sources {
            least.fill(f32::INFINITY);
            for tree in 0..trees {
                let inward = self.trees.tree(tree);
                let rank = match (&self.trees.orders, bold) {
                    (Some(orders), OrderPolicy::Rising) => Some(orders.rank(self.trees.lane[tree])),
                    _ => None,
                };
                let priced = PricedTree { inward, downward: &downward[tree * n..(tree + 1) * n], price: &price, rank };
                spread(net, &priced, source, &mut cost, &mut last);
                let row = &self.choice[source * n..(source + 1) * n];
                for ((least, which), cost) in least.iter_mut().zip(&mut which).zip(&cost) {
                    if *cost < *least {
                        (*least, *which) = (*cost, tree as u16);
                    }
                }
                for ((own, choice), cost) in own.iter_mut().zip(row).zip(&cost) {
                    if *choice == tree as u16 {
                        *own = *cost;
                    }
                }
            }
            let mut visits = trees * n / 2;
            let start = rng.below(n);
            for at in 0..n {
                let destination = (start + at) % n;
                let current = self.choice[source * n + destination];
                let tree = which[destination];
                if current == NO_TREE || tree == current || least[destination] >= own[destination] * PAIRS.gain {
                    continue;
                }
                let pairs = weight(net, source, destination);
                walker.path(net, self.trees.tree(usize::from(current)), source, destination, &mut old_path);
                walker.path(net, self.trees.tree(usize::from(tree)), source, destination, &mut new_path);
                visits += 2 * (old_path.len() + new_path.len());
                let mut carry = |trees: &mut SharedTrees, path: &[u32], sign: i64| {
                    for &channel in path {
                        let load = &mut trees.load[channel as usize];
                        *load = load.wrapping_add_signed(sign * pairs as i64);
                        prices.update(net, &trees.load, channel as usize);
                        price[channel as usize] = prices.of_pair(net, channel) as f32;
                    }
                    path.iter().map(|&channel| prices.change(net, channel, -sign as f64 * pairs as f64)).sum::<f64>()
                };
                let back_again = carry(&mut self.trees, &old_path, -1);
                let there = carry(&mut self.trees, &new_path, 1);
                let mut fits = -there < back_again;
                if let (true, Some(orders)) = (fits, &mut self.trees.orders) {
                    let [a, b] = [current, tree].map(|tree| self.trees.lane[usize::from(tree)]);
                    old.clear();
                    new.clear();
                    turns_of(&old_path, &mut old);
                    turns_of(&new_path, &mut new);
                    if a == b {
                        fits = orders.exchange(net, a, (&mut old, &mut new), reach, &mut visits);
                    } else {
                        fits = orders.exchange(net, b, (&mut Vec::new(), &mut new), reach, &mut visits);
                        if fits {
                            orders.exchange(net, a, (&mut old, &mut Vec::new()), reach, &mut visits);
                        }
                    }
                }
                if fits {
                    self.choice[source * n + destination] = tree;
                } else {
                    carry(&mut self.trees, &new_path, -1);
                    carry(&mut self.trees, &old_path, 1);
                }
            }
            if !work.spend(visits) {
                return;
            }
        }
    }
}

/// Whether pairs may take turns that the order has yet to allow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderPolicy {
    /// Only where the order rises already.
    Rising,
    /// Where it can be bent a little.
    Bending,
}

/// Hosts at the one end times hosts at the other.
#[inline]
pub(super) fn weight(net: &Net, source: usize, destination: usize) -> u64 {
    u64::from(net.hosts[source]) * u64::from(net.hosts[destination])
}

/// The turns of a path.
pub(super) fn turns_of(path: &[u32], turns: &mut Vec<Turn>) {
    turns.extend(path.windows(2).map(|two| (two[0], two[1])));
}

/// A tree, and what it costs to use its channels.
struct PricedTree<'a> {
    /// `inward[switch]`: the channel from its parent.
    inward: &'a [u32],
    /// Its switches, parents before children.
    downward: &'a [u32],
    /// `price[channel]`.
    price: &'a [f32],
    /// `rank[channel]`: must rise along every path, if there is one.
    rank: Option<&'a [u32]>,
}

/// What a pair from `source` costs to every switch in a tree; infinite where the order falls on the way.
fn spread(net: &Net, tree: &PricedTree<'_>, source: usize, cost: &mut [f32], last: &mut [u32]) {
    let &PricedTree { inward, downward, price, rank } = tree;
    // First up from the source, then down from wherever that led. Costs below 0 mark what is not known yet.
    cost.fill(-1.0);
    cost[source] = 0.0;
    last[source] = NONE;
    let rises = |before: u32, after: u32| match rank {
        Some(rank) => before == NONE || rank[before as usize] < rank[after as usize],
        None => true,
    };
    let mut at = source;
    while inward[at] != NONE {
        let channel = net.reverse(inward[at]);
        let above = net.head(channel);
        cost[above] = if rises(last[at], channel) { cost[at] + price[channel as usize] } else { f32::INFINITY };
        last[above] = channel;
        at = above;
    }
    for &switch in downward {
        let switch = switch as usize;
        if cost[switch] < 0.0 {
            let channel = inward[switch];
            let above = net.tail(channel);
            cost[switch] =
                if rises(last[above], channel) { cost[above] + price[channel as usize] } else { f32::INFINITY };
            last[switch] = channel;
        }
    }
}

/// Finds paths in trees.
#[derive(Default)]
pub(super) struct Walker {
    stamp: Vec<u32>,
    now: u32,
}

impl Walker {
    pub(super) fn new(net: &Net) -> Self {
        Self { stamp: vec![0; net.switches], now: 0 }
    }

    /// The channels from one switch to another in a tree, in order.
    pub(super) fn path(&mut self, net: &Net, inward: &[u32], from: usize, to: usize, path: &mut Vec<u32>) {
        path.clear();
        self.now += 1;
        let mut at = from;
        loop {
            self.stamp[at] = self.now;
            if inward[at] == NONE {
                break;
            }
            at = net.tail(inward[at]);
        }
        at = to;
        while self.stamp[at] != self.now {
            path.push(inward[at]);
            at = net.tail(inward[at]);
        }
        let (meeting, down) = (at, path.len());
        at = from;
        while at != meeting {
            path.push(net.reverse(inward[at]));
            at = net.tail(inward[at]);
        }
        let up = path.len() - down;
        path[..down].reverse();
        path.rotate_right(up);
    }
}

/// The pairs of one tree, by either end.
struct Crossing {
    out_start: Vec<u32>,
    /// Receivers and pairs of hosts.
    out: Vec<(u32, u32)>,
    into_start: Vec<u32>,
    into: Vec<(u32, u32)>,
    /// Switches, parents first and branches together: those at or below `switch` are
    /// `order[place[switch]..place[switch] + size[switch]]`.
    order: Vec<u32>,
    place: Vec<u32>,
    size: Vec<u32>,
    /// What the branch in question exchanges with what is at or below each switch.
    below: Vec<Flow>,
    touched: Vec<u32>,
    children_start: Vec<u32>,
    children: Vec<u32>,
    walker: Walker,
}

impl Crossing {
    fn new(net: &Net, pairs: &Pairs, tree: usize) -> Self {
        let n = net.switches;
        let mut mine: Vec<(u32, u32)> = Vec::new();
        for source in (0..n).filter(|source| net.hosts[*source] > 0) {
            let row = &pairs.choice[source * n..(source + 1) * n];
            mine.extend(
                row.iter()
                    .enumerate()
                    .filter(|(_, choice)| usize::from(**choice) == tree)
                    .map(|(destination, _)| (source as u32, destination as u32)),
            );
        }
        let (out_start, out) = by_first(net, &mine);
        mine.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
        let (into_start, into) = by_first(net, &mine);
        let mut crossing = Self {
            out_start,
            out,
            into_start,
            into,
            order: Vec::with_capacity(n),
            place: vec![0; n],
            size: vec![0; n],
            below: vec![Flow::default(); n],
            touched: Vec::new(),
            children_start: vec![0; n + 1],
            children: vec![0; n],
            walker: Walker::new(net),
        };
        crossing.arrange(net, pairs.trees.tree(tree));
        crossing
    }

    /// Puts branches together.
    fn arrange(&mut self, net: &Net, inward: &[u32]) {
        let n = net.switches;
        self.children_start.fill(0);
        let mut root = 0;
        for (switch, &channel) in inward.iter().enumerate() {
            if channel == NONE {
                root = switch;
            } else {
                self.children_start[net.tail(channel) + 1] += 1;
            }
        }
        (0..n).for_each(|switch| self.children_start[switch + 1] += self.children_start[switch]);
        self.size.copy_from_slice(&self.children_start[..n]);
        for (switch, &channel) in inward.iter().enumerate().filter(|(_, channel)| **channel != NONE) {
            let next = &mut self.size[net.tail(channel)];
            self.children[*next as usize] = switch as u32;
            *next += 1;
        }
        self.order.clear();
        let mut stack = vec![root as u32];
        while let Some(switch) = stack.pop() {
            self.place[switch as usize] = self.order.len() as u32;
            self.order.push(switch);
            let range = self.children_start[switch as usize]..self.children_start[switch as usize + 1];
            stack.extend(&self.children[range.start as usize..range.end as usize]);
        }
        self.size.fill(1);
        for &switch in self.order.iter().rev() {
            let channel = inward[switch as usize];
            if channel != NONE {
                self.size[net.tail(channel)] += self.size[switch as usize];
            }
        }
    }

    fn branch(&self, switch: usize) -> &[u32] {
        let (place, size) = (self.place[switch] as usize, self.size[switch] as usize);
        &self.order[place..place + size]
    }

    fn is_in_branch(&self, branch: usize, switch: u32) -> bool {
        self.place[switch as usize].wrapping_sub(self.place[branch]) < self.size[branch]
    }

    fn out_of(&self, switch: u32) -> &[(u32, u32)] {
        &self.out[self.out_start[switch as usize] as usize..self.out_start[switch as usize + 1] as usize]
    }

    fn toward(&self, switch: u32) -> &[(u32, u32)] {
        &self.into[self.into_start[switch as usize] as usize..self.into_start[switch as usize + 1] as usize]
    }
}

impl Demand for Crossing {
    fn turn_to(&mut self, net: &Net, inward: &[u32], switch: usize) -> Flow {
        let mut below = std::mem::take(&mut self.below);
        let mut touched = std::mem::take(&mut self.touched);
        touched.drain(..).for_each(|at| below[at as usize] = Flow::default());
        let mut total = Flow::default();
        let mut add = |other: u32, flow: Flow| {
            total.out += flow.out;
            total.into += flow.into;
            let mut at = other as usize;
            loop {
                if below[at] == Flow::default() {
                    touched.push(at as u32);
                }
                below[at].out += flow.out;
                below[at].into += flow.into;
                if inward[at] == NONE {
                    break;
                }
                at = net.tail(inward[at]);
            }
        };
        for &mine in self.branch(switch) {
            for &(other, pairs) in self.out_of(mine).iter().filter(|(other, _)| !self.is_in_branch(switch, *other)) {
                add(other, Flow { out: u64::from(pairs), into: 0 });
            }
            for &(other, pairs) in self.toward(mine).iter().filter(|(other, _)| !self.is_in_branch(switch, *other)) {
                add(other, Flow { out: 0, into: u64::from(pairs) });
            }
        }
        (self.below, self.touched) = (below, touched);
        total
    }

    #[inline]
    fn below(&self, switch: usize, _place: Place) -> Flow {
        self.below[switch]
    }

    fn turns(&mut self, net: &Net, inward: &[u32], switch: usize, _way: &[u32], turns: &mut Vec<Turn>) {
        let mut walker = std::mem::take(&mut self.walker);
        let mut path = Vec::new();
        for &mine in self.branch(switch) {
            for &(other, _) in self.out_of(mine).iter().filter(|(other, _)| !self.is_in_branch(switch, *other)) {
                walker.path(net, inward, mine as usize, other as usize, &mut path);
                turns_of(&path, turns);
            }
            for &(other, _) in self.toward(mine).iter().filter(|(other, _)| !self.is_in_branch(switch, *other)) {
                walker.path(net, inward, other as usize, mine as usize, &mut path);
                turns_of(&path, turns);
            }
        }
        self.walker = walker;
    }

    fn moved(&mut self, net: &Net, inward: &[u32], _switch: usize, _from: usize, _to: usize) {
        self.arrange(net, inward);
    }
}

/// Pairs by their first end, with the other one and how many pairs of hosts: `(start, table)`.
fn by_first(net: &Net, pairs: &[(u32, u32)]) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut start = vec![0_u32; net.switches + 1];
    pairs.iter().for_each(|pair| start[pair.0 as usize + 1] += 1);
    (0..net.switches).for_each(|switch| start[switch + 1] += start[switch]);
    let mut next = start.clone();
    let mut table = vec![(0, 0); pairs.len()];
    for &(one, other) in pairs {
        table[next[one as usize] as usize] = (other, weight(net, one as usize, other as usize) as u32);
        next[one as usize] += 1;
    }
    (start, table)
}

impl Candidate for Pairs {
    fn quality(&self, net: &Net) -> Quality {
        self.trees.quality(net)
    }
}

/// Sweeps over branches and pairs, from soft prices to sharp ones.
struct PairSearch<'r, 'w> {
    net: &'r Net,
    scratch: Scratch,
    rng: &'r mut Rng,
    work: &'r mut Work<'w>,
    /// Sweeps so far.
    sweeps: usize,
}

impl Search for PairSearch<'_, '_> {
    type Candidate = Pairs;

    fn net(&self) -> &Net {
        self.net
    }

    fn is_spent(&self, visits: u64) -> bool {
        self.work.is_spent(visits)
    }

    fn sweep(&mut self, pairs: &mut Pairs) {
        let turn = self.sweeps % PAIRS.sharpness.len();
        let bold = if turn % 2 == 0 { OrderPolicy::Bending } else { OrderPolicy::Rising };
        pairs.polish(self.net, PAIRS.sharpness[turn], bold, &mut self.scratch, self.rng, self.work);
        debug_assert!(pairs.is_counted(self.net), "loads or turns differ from a recount");
    }

    fn cool(&mut self, _pairs: &mut Pairs, cycles: usize) -> Next {
        self.sweeps += 1;
        if self.sweeps < cycles * PAIRS.sharpness.len() { Next::Sweep } else { Next::Stop }
    }
}

/// Goes on until it is to stop; the best is kept.
pub(super) fn improve(net: &Net, pairs: Pairs, stop: Stop, rng: &mut Rng, work: &mut Work<'_>) -> Pairs {
    let mut best = pairs.clone();
    let mut search = PairSearch { net, scratch: Scratch::new(net), rng, work, sweeps: 0 };
    improve::improve(&mut search, &mut best, pairs, stop);
    best
}
